//! MCP servers as they are configured here, started through the one door for programs; and their tools as a loop
//! calls them.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use wiggum_core::stream::Stream;
use wiggum_engine::tools::{self, CallOutcome, Ready, ToolCall, Tools};
use wiggum_integrations::{
    CallError, CallResult, Cancel, Launcher, McpError, Prepared, Program, Running, ServerSpec, Servers, Sink,
};
use wiggum_workspace::process::{self, CommandLine, Ended, Grace, Input, Launch, LaunchError, Stop};

use crate::config::Config;

/// A server has nothing to save that it would not have saved before: it gets a moment.
const GRACE: Grace = Grace { int: Duration::from_millis(500), term: Duration::from_millis(500) };

/// All servers of this configuration; none is started yet.
pub(crate) fn servers(workspace: &Path, config: &Config, env: &BTreeMap<String, String>) -> Servers {
    Servers::new(specs(workspace, config, env), door(workspace))
}

/// The tools that the tasks of a loop may call; nothing is started before one does.
pub(crate) fn loop_tools(
    workspace: &Path,
    config: &Config,
    env: &BTreeMap<String, String>,
) -> Arc<dyn Tools> {
    let (specs, door) = (specs(workspace, config, env), door(workspace));
    Arc::new(LoopTools { specs, door, servers: OnceLock::new() })
}

fn specs(workspace: &Path, config: &Config, env: &BTreeMap<String, String>) -> Vec<ServerSpec> {
    config.mcp.iter().map(|(name, server)| server.spec(name, workspace, env)).collect()
}

fn door(workspace: &Path) -> Arc<dyn Launcher> {
    Arc::new(Door { workspace: workspace.to_owned() })
}

struct LoopTools {
    specs: Vec<ServerSpec>,
    door: Arc<dyn Launcher>,
    /// Made with the marker of the loop that asks first: there is one for each run.
    servers: OnceLock<Arc<Servers>>,
}

impl Tools for LoopTools {
    fn prepare(&self, call: &ToolCall, marker: &(String, String)) -> Result<Box<dyn Ready>, String> {
        let servers = self.servers.get_or_init(|| {
            let servers = Servers::new(self.specs.clone(), Arc::clone(&self.door));
            Arc::new(servers.with_marker(marker.clone()))
        });
        let ToolCall { server, tool, params } = call;
        let prepared = servers.prepare(server, tool, params).map_err(|error| with_hint(&error))?;
        Ok(Box::new(ReadyCall { servers: Arc::clone(servers), prepared, params: params.clone() }))
    }
}

fn with_hint(error: &McpError) -> String {
    error.hint().map_or_else(|| error.to_string(), |hint| format!("{error}\nhint: {hint}"))
}

struct ReadyCall {
    servers: Arc<Servers>,
    prepared: Prepared,
    params: serde_json::Value,
}

impl Ready for ReadyCall {
    fn is_repeatable(&self) -> bool {
        self.prepared.repeatable
    }

    fn call(self: Box<Self>, cancel: &tools::Cancel) -> CallOutcome {
        let wish = Cancel::new();
        let wished = wish.clone();
        cancel.then(move || wished.cancel());
        match self.servers.call(&self.prepared, &self.params, &wish) {
            Ok(result) => CallOutcome::Done { result: told(result) },
            Err(CallError::Refused(message)) => CallOutcome::Refused { message },
            Err(CallError::Uncertain(message)) => CallOutcome::Uncertain { message },
        }
    }
}

/// Data where there is some: later steps take fields out of it.
fn told(CallResult { text, structured, truncated: _ }: CallResult) -> String {
    structured.map_or(text, |structured| structured.to_string())
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
