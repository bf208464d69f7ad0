//! `wiggum mcp`: the MCP servers that are configured here, their tools, and a call of one by hand; and our own.

mod call;
mod list;
mod serve;
mod tools;

use std::process::ExitCode;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use wiggum_integrations::{Cancel, McpError, Servers};
use wiggum_workspace::process;

use crate::args::McpCommand;
use crate::commands::surroundings;
use crate::config::{self, Config, Flags};
use crate::failure::Failure;
use crate::servers::servers;

/// As shells say that a command was interrupted.
const INTERRUPTED: u8 = 130;
/// What the servers of one command carry, so that all of them are found when it is interrupted.
const MARKER: &str = "WIGGUM_MCP";

pub(crate) fn mcp(command: &McpCommand) -> Result<ExitCode, Failure> {
    match command {
        McpCommand::List(output) => list::list(&Desk::open()?, output),
        McpCommand::Tools(args) => tools::tools(&Desk::open()?, args),
        McpCommand::Call(args) => call::call(&Desk::open()?, args),
        McpCommand::Serve(args) => serve::serve(args),
    }
}

/// The servers, and the configuration they came from.
struct Desk {
    config: Config,
    servers: Servers,
    marker: (String, String),
}

impl Desk {
    fn open() -> Result<Self, Failure> {
        let here = surroundings()?;
        let config = config::resolve(&here.sources(&Flags::default()))?;
        let marker = (MARKER.to_owned(), std::process::id().to_string());
        let servers = servers(&here.workspace, &config, &here.env).with_marker(marker.clone());
        Ok(Self { config, servers, marker })
    }

    /// From now on an interruption ends the servers with us: they are in sessions of their own, where nobody's Ctrl-C
    /// reaches them. With a wish to cancel, the first interruption is one, and only the next does that.
    fn heed_interruptions(&self, cancel: Option<Cancel>) -> Result<(), Failure> {
        let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP])
            .map_err(|error| Failure::other(format!("cannot watch for signals: {error}")))?;
        let (name, value) = self.marker.clone();
        std::thread::spawn(move || {
            let mut signals = signals.forever();
            if let Some(cancel) = cancel {
                signals.next();
                cancel.cancel();
            }
            signals.next();
            process::end_marked(&name, &value);
            std::process::exit(INTERRUPTED.into());
        });
        Ok(())
    }
}

impl From<McpError> for Failure {
    fn from(error: McpError) -> Self {
        let hint = error.hint();
        let failure = match error {
            McpError::UnknownServer { .. } | McpError::UnknownTool { .. } | McpError::Params { .. } => {
                Self::usage(error.to_string())
            }
            McpError::Unusable { .. } | McpError::Runtime(_) => Self::other(error.to_string()),
        };
        Self { hint, ..failure }
    }
}
