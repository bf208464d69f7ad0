//! MCP servers as they are configured here, started through the one door for programs.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde_json::Value;
use wiggum_core::stream::Stream;
use wiggum_engine::tools::{self as engine, CallOutcome, NotReady, Ready, ToolCall, Tools};
use wiggum_integrations::{CallError, CallResult, Launcher, Prepared, Program, Running, Servers, Sink};
use wiggum_workspace::process::{self, CommandLine, Ended, Grace, Input, Launch, LaunchError, Stop};

use crate::config::Config;

/// A server has nothing to save that it would not have saved before: it gets a moment.
const GRACE: Grace = Grace { int: Duration::from_millis(500), term: Duration::from_millis(500) };

/// All servers of this configuration; none is started yet.
pub(crate) fn servers(workspace: &Path, config: &Config, env: &BTreeMap<String, String>) -> Servers {
    let specs = config.mcp.iter().map(|(name, server)| server.spec(name, workspace, env));
    Servers::new(specs.collect(), Arc::new(Door { workspace: workspace.to_owned() }))
}

struct Door {
    workspace: PathBuf,
}

impl Launcher for Door {
    fn launch(&self, program: Program, sink: Box<dyn Sink>) -> io::Result<Box<dyn Running>> {
        let Program { program, arguments, env, directory, stdin, marker } = program;
        let mut launch = Launch::new(
            CommandLine::new(&program, arguments),
            directory.unwrap_or_else(|| self.workspace.clone()),
        );
        let keeps = |name: &OsString| env.iter().any(|(kept, _)| kept == name);
        launch.env_remove = std::env::vars_os().map(|(name, _)| name).filter(|name| !keeps(name)).collect();
        launch.env = env;
        launch.stdin = Input::Pipe(Arc::new(stdin));
        launch.marker = marker;
        let running = process::launch(launch, Passing(sink)).map_err(|error| match error {
            // Without the arguments, which may hold a secret.
            LaunchError::Spawn { source, .. } | LaunchError::Supervise { source, .. } => {
                io::Error::new(source.kind(), format!("`{program}`: {source}"))
            }
            LaunchError::Ended { .. } => io::Error::other(format!("`{program}` was ended")),
        })?;
        Ok(Box::new(Started(running)))
    }
}

struct Passing(Box<dyn Sink>);

impl process::Sink for Passing {
    fn output(&mut self, stream: Stream, bytes: &[u8]) {
        self.0.output(stream, bytes);
    }

    fn ended(&mut self, ended: Ended) {
        self.0.ended(ended.exit);
    }
}

struct Started(process::Running);

impl Running for Started {
    fn stop(&self) {
        self.0.stop(Stop::Asked, GRACE);
    }
}

/// The servers of a configuration as tools of a loop. They are started when first needed and end with it.
pub(crate) fn tools(workspace: &Path, config: &Config, env: &BTreeMap<String, String>) -> Arc<dyn Tools> {
    let (workspace, config, env) = (workspace.to_owned(), config.clone(), env.clone());
    Arc::new(Toolbox { workspace, config, env, servers: OnceLock::new() })
}

struct Toolbox {
    workspace: PathBuf,
    config: Config,
    env: BTreeMap<String, String>,
    servers: OnceLock<Arc<Servers>>,
}

impl Tools for Toolbox {
    fn prepare(&self, call: &ToolCall, marker: &(String, String)) -> Result<Box<dyn Ready>, NotReady> {
        let servers = self.servers.get_or_init(|| {
            Arc::new(servers(&self.workspace, &self.config, &self.env).with_marker(marker.clone()))
        });
        let prepared = servers.prepare(&call.server, &call.tool, &call.params).map_err(|error| {
            let hint = error.hint().map_or_else(String::new, |hint| format!("; {hint}"));
            let message = format!("{error}{hint}");
            if error.is_permanent() {
                NotReady::Permanent { message }
            } else {
                NotReady::Temporary { message }
            }
        })?;
        Ok(Box::new(Call { servers: Arc::clone(servers), prepared, params: call.params.clone() }))
    }
}

struct Call {
    servers: Arc<Servers>,
    prepared: Prepared,
    params: Value,
}

impl Ready for Call {
    fn is_repeatable(&self) -> bool {
        self.prepared.repeatable
    }

    fn call(self: Box<Self>, cancel: &engine::Cancel) -> CallOutcome {
        let wish = wiggum_integrations::Cancel::new();
        let heard = wish.clone();
        cancel.then(move || heard.cancel());
        match self.servers.call(&self.prepared, &self.params, &wish) {
            // What a tool answers as data is data for later steps; words are words.
            Ok(CallResult { structured: Some(data), .. }) => CallOutcome::Done { result: data.to_string() },
            Ok(CallResult { text, .. }) => CallOutcome::Done { result: text },
            Err(CallError::Refused(message)) => CallOutcome::Refused { message },
            Err(CallError::Impossible(message)) => CallOutcome::Impossible { message },
            Err(CallError::Uncertain(message)) => CallOutcome::Uncertain { message },
        }
    }
}
