//! All servers that are configured, for a program that blocks.

use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use futures::future::join_all;
use serde_json::Value;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use wiggum_core::redact::Secrets;

use crate::cancel::Cancel;
use crate::check;
use crate::connection::{Connection, Failed, Means, Unusable};
use crate::error::{CallError, McpError};
use crate::launch::Launcher;
use crate::result::CallResult;
use crate::spec::ServerSpec;
use crate::tool::Tool;

/// When a program that was ended is still there after this, it is stuck in the kernel.
const GONE: Duration = Duration::from_secs(15);

/// The servers there are. Connections are made when first needed, kept, and made anew when a server died; dropped,
/// it ends them all, and the programs with everything they started.
///
/// Its methods block, and must not be called from within a runtime.
pub struct Servers {
    servers: Vec<Server>,
    launcher: Arc<dyn Launcher>,
    marker: Option<(String, String)>,
    runtime: OnceLock<Result<Runtime, String>>,
    connections: AtomicU64,
    /// Of each program that was started and has not been seen to end: whether it has.
    programs: Mutex<Vec<watch::Receiver<bool>>>,
}

struct Server {
    spec: ServerSpec,
    secrets: Secrets,
    connection: tokio::sync::Mutex<Option<Arc<Connection>>>,
}

/// A call that was checked and not made yet.
#[derive(Clone, Debug)]
pub struct Prepared {
    pub server: String,
    pub tool: Tool,
    /// The tool says of itself that calling it twice does no more than once.
    pub repeatable: bool,
    seen: Seen,
}

/// A connection, and how often the server had said on it that its tools changed, before they were asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seen {
    connection: u64,
    changes: u64,
}

impl Seen {
    fn on(connection: &Connection) -> Self {
        Self { connection: connection.number, changes: connection.changes() }
    }
}

impl Servers {
    /// The launcher starts the programs of those that are programs.
    pub fn new(specs: Vec<ServerSpec>, launcher: Arc<dyn Launcher>) -> Self {
        let servers = specs.into_iter().map(|spec| Server {
            secrets: spec.secrets(),
            spec,
            connection: tokio::sync::Mutex::default(),
        });
        Self {
            servers: servers.collect(),
            launcher,
            marker: None,
            runtime: OnceLock::new(),
            connections: AtomicU64::new(0),
            programs: Mutex::default(),
        }
    }

    /// Every process it starts carries this variable, so that a crashed engine's servers can be found and ended.
    #[must_use]
    pub fn with_marker(mut self, marker: (String, String)) -> Self {
        self.marker = Some(marker);
        self
    }

    pub fn names(&self) -> Vec<&str> {
        self.servers.iter().map(|server| server.spec.name.as_str()).collect()
    }

    /// The tools that a server has now.
    pub fn tools(&self, server: &str) -> Result<Vec<Tool>, McpError> {
        let server = self.find(server)?;
        self.block(self.connected_tools(server))?.map(|(_, tools)| tools)
    }

    /// Connects if need be, finds the tool, checks the params against its schema. Nothing has been sent to the tool.
    pub fn prepare(&self, server: &str, tool: &str, params: &Value) -> Result<Prepared, McpError> {
        let server = self.find(server)?;
        let (seen, tools) = self.block(self.connected_tools(server))??;
        let known: Vec<String> = tools.iter().map(|tool| tool.name.clone()).collect();
        let name = server.spec.name.clone();
        let Some(found) = tools.into_iter().find(|known| known.name == tool) else {
            return Err(McpError::UnknownTool { server: name, tool: tool.to_owned(), known });
        };
        server.check(&found, params)?;
        Ok(Prepared { server: name, repeatable: found.repeatable(), tool: found, seen })
    }

    /// Makes a call that was prepared; see [`CallError`] for what its failure means.
    pub fn call(
        &self,
        prepared: &Prepared,
        params: &Value,
        cancel: &Cancel,
    ) -> Result<CallResult, CallError> {
        let refused = |error: McpError| not_sent(&error);
        let server = self.find(&prepared.server).map_err(refused)?;
        self.block(self.make(server, prepared, params, cancel)).map_err(refused)?
    }

    async fn make(
        &self,
        server: &Server,
        prepared: &Prepared,
        params: &Value,
        cancel: &Cancel,
    ) -> Result<CallResult, CallError> {
        let connection = tokio::select! {
            biased;
            () = cancel.cancelled() => {
                return Err(CallError::Refused(format!("the call of `{}` was stopped before it was sent", prepared.tool.name)));
            }
            connection = self.unchanged(server, prepared, params) => {
                connection.map_err(|error| not_sent(&error))?
            }
        };
        let params = params.as_object().cloned().unwrap_or_default();
        let called = connection.call(&prepared.tool.name, params, server.spec.call_timeout, cancel).await;
        let name = &server.spec.name;
        match called {
            Ok(answer) => server.outcome(&prepared.tool.name, answer),
            Err(Failed::Refused(problem)) => {
                Err(CallError::Refused(server.hidden(&format!("MCP server `{name}` {problem}"))))
            }
            Err(Failed::Impossible(problem)) => {
                Err(CallError::Impossible(server.hidden(&format!("MCP server `{name}` {problem}"))))
            }
            Err(Failed::Uncertain(problem)) => {
                let said = connection.said();
                let said =
                    if said.is_empty() { String::new() } else { format!("; it said: {}", said.join(" / ")) };
                let told = format!(
                    "MCP server `{name}` {problem}: whether `{}` was carried out is not known{said}",
                    prepared.tool.name
                );
                Err(CallError::Uncertain(server.hidden(&told)))
            }
        }
    }

    /// The connection, on which the tool is still what it was when it was checked.
    async fn unchanged(
        &self,
        server: &Server,
        prepared: &Prepared,
        params: &Value,
    ) -> Result<Arc<Connection>, McpError> {
        server.check(&prepared.tool, params)?;
        let connection = self.connection(server).await.map_err(|unusable| server.error(unusable))?;
        if Seen::on(&connection) == prepared.seen {
            return Ok(connection);
        }
        let tools =
            connection.tools(server.spec.start_timeout).await.map_err(|unusable| server.error(unusable))?;
        if tools.contains(&prepared.tool) {
            return Ok(connection);
        }
        let changed =
            if tools.iter().any(|tool| tool.name == prepared.tool.name) { "changed" } else { "removed" };
        Err(McpError::Unusable {
            server: server.spec.name.clone(),
            problem: format!(
                "has {changed} `{}` since it was looked at; nothing was sent",
                prepared.tool.name
            ),
            said: Vec::new(),
            permanent: false,
        })
    }

    /// Asks for the tools. A connection that was kept may have died since: then once more on another.
    async fn connected_tools(&self, server: &Server) -> Result<(Seen, Vec<Tool>), McpError> {
        if let Some(connection) = server.kept().await {
            let seen = Seen::on(&connection);
            match connection.tools(server.spec.start_timeout).await {
                Ok(tools) => return Ok((seen, tools)),
                Err(unusable) if !unusable.lost => return Err(server.error(unusable)),
                Err(_) => server.give_up(connection).await,
            }
        }
        let connection = self.connection(server).await.map_err(|unusable| server.error(unusable))?;
        let seen = Seen::on(&connection);
        match connection.tools(server.spec.start_timeout).await {
            Ok(tools) => Ok((seen, tools)),
            Err(unusable) => {
                if unusable.lost {
                    server.give_up(connection).await;
                }
                Err(server.error(unusable))
            }
        }
    }

    /// The connection that is kept, or a new one.
    async fn connection(&self, server: &Server) -> Result<Arc<Connection>, Unusable> {
        let mut kept = server.connection.lock().await;
        if let Some(connection) = kept.as_ref().filter(|connection| !connection.is_lost()) {
            return Ok(Arc::clone(connection));
        }
        *kept = None;
        let means = Means {
            spec: &server.spec,
            launcher: self.launcher.as_ref(),
            marker: self.marker.as_ref(),
            started: &|ended| self.started(ended),
            number: self.connections.fetch_add(1, Ordering::Relaxed),
        };
        let connection = Arc::new(Connection::open(means).await?);
        *kept = Some(Arc::clone(&connection));
        Ok(connection)
    }

    fn started(&self, ended: watch::Receiver<bool>) {
        let mut programs = self.programs.lock().unwrap_or_else(PoisonError::into_inner);
        programs.retain(|ended| !*ended.borrow());
        programs.push(ended);
    }

    fn find(&self, name: &str) -> Result<&Server, McpError> {
        let known = || self.names().into_iter().map(str::to_owned).collect();
        let found = self.servers.iter().find(|server| server.spec.name == name);
        found.ok_or_else(|| McpError::UnknownServer { name: name.to_owned(), known: known() })
    }

    /// Runs something to its end on this thread; one other drives the connections meanwhile, and between calls.
    fn block<T>(&self, future: impl Future<Output = T>) -> Result<T, McpError> {
        let runtime = self.runtime.get_or_init(|| {
            let mut builder = tokio::runtime::Builder::new_multi_thread();
            builder
                .worker_threads(1)
                .thread_name("mcp")
                .enable_all()
                .build()
                .map_err(|error| error.to_string())
        });
        match runtime {
            Ok(runtime) => Ok(runtime.block_on(future)),
            Err(error) => Err(McpError::Runtime(error.clone())),
        }
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        let Some(Ok(runtime)) = self.runtime.take() else { return };
        let connections: Vec<Arc<Connection>> =
            self.servers.iter_mut().filter_map(|server| server.connection.get_mut().take()).collect();
        let programs = std::mem::take(&mut *self.programs.lock().unwrap_or_else(PoisonError::into_inner));
        runtime.block_on(async {
            join_all(connections.into_iter().filter_map(Arc::into_inner).map(Connection::close)).await;
            let ends = programs.into_iter().map(|mut program| async move {
                let _ended = program.wait_for(|ended| *ended).await;
            });
            let _in_time = tokio::time::timeout(GONE, join_all(ends)).await;
        });
        runtime.shutdown_background();
    }
}

impl Server {
    async fn kept(&self) -> Option<Arc<Connection>> {
        self.connection.lock().await.as_ref().filter(|connection| !connection.is_lost()).map(Arc::clone)
    }

    /// Nobody uses this connection any more, unless somebody else has made another meanwhile.
    async fn give_up(&self, connection: Arc<Connection>) {
        let mut kept = self.connection.lock().await;
        if kept.as_ref().is_some_and(|kept| kept.number == connection.number) {
            *kept = None;
        }
    }

    fn check(&self, tool: &Tool, params: &Value) -> Result<(), McpError> {
        let server = self.spec.name.clone();
        match check::problems(tool, params) {
            Ok(problems) if problems.is_empty() => Ok(()),
            Ok(problems) => {
                Err(McpError::Params { server, tool: tool.name.clone(), problems, wanted: tool.wanted() })
            }
            Err(problem) => Err(McpError::Unusable {
                server,
                problem: format!(
                    "describes the params of `{}` in a way that makes no sense: {problem}",
                    tool.name
                ),
                said: Vec::new(),
                permanent: true,
            }),
        }
    }

    fn outcome(&self, tool: &str, answer: rmcp::model::CallToolResult) -> Result<CallResult, CallError> {
        let is_error = answer.is_error == Some(true);
        let result = CallResult::new(answer, self.spec.max_result, &self.secrets);
        if is_error {
            Err(CallError::Refused(format!("`{tool}` failed: {}", result.text)))
        } else {
            Ok(result)
        }
    }

    fn error(&self, Unusable { problem, said, lost: _, permanent }: Unusable) -> McpError {
        let said = said.iter().map(|line| self.hidden(line)).collect();
        McpError::Unusable { server: self.spec.name.clone(), problem: self.hidden(&problem), said, permanent }
    }

    fn hidden(&self, text: &str) -> String {
        self.secrets.hide(text).into_owned()
    }
}

fn not_sent(error: &McpError) -> CallError {
    let told = with_hint(error);
    if error.is_permanent() { CallError::Impossible(told) } else { CallError::Refused(told) }
}

fn with_hint(error: &McpError) -> String {
    match error.hint() {
        Some(hint) => format!("{error} ({hint})"),
        None => error.to_string(),
    }
}
