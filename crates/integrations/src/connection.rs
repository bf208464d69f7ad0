//! One connection to one server: greeting it, asking for its tools, calling one.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, ClientCapabilities, ClientConfig, ClientRequest,
    ErrorCode, Implementation, JsonObject, ListToolsRequest, ListToolsResult, PaginatedRequestParams,
    ProtocolVersion, RequestId, ServerResult,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, ClientServiceExt, NotificationContext, PeerRequestOptions,
    RequestHandle, RunningService,
};
use rmcp::{ClientHandler, RoleClient, ServiceError};
use tokio::sync::watch;

use crate::cancel::Cancel;
use crate::environment::environment;
use crate::heard::Heard;
use crate::http;
use crate::launch::{Launcher, Program};
use crate::spec::{ServerSpec, Transport};
use crate::stdio::{self, Process};
use crate::tool::Tool;

/// The largest message that is read at all: what the protocol's own libraries take.
const LARGEST_MESSAGE: usize = 16 * 1024 * 1024;
/// A result of so many bytes may be written with so many times more: every one of them as `\u0000`, and twice.
const ESCAPED: usize = 16;
/// No server means more; one that gives page after page means to keep us.
const MOST_PAGES: usize = 200;
const MOST_TOOLS: usize = 10_000;
/// For telling a server that a call is not wanted any more; it may not read what we write.
const FAREWELL: Duration = Duration::from_secs(2);

/// What is needed to connect.
#[derive(Clone, Copy)]
pub(crate) struct Means<'a> {
    pub(crate) spec: &'a ServerSpec,
    pub(crate) launcher: &'a dyn Launcher,
    pub(crate) marker: Option<&'a (String, String)>,
    /// Told of every program that is started.
    pub(crate) started: &'a (dyn Fn(watch::Receiver<bool>) + Sync),
    pub(crate) number: u64,
}

pub(crate) struct Connection {
    /// No two connections of a program have the same.
    pub(crate) number: u64,
    service: RunningService<RoleClient, Client>,
    process: Option<Process>,
    heard: Arc<Heard>,
}

/// Why a server cannot be used, in words that follow its name, and what it said last.
#[derive(Debug)]
pub(crate) struct Unusable {
    pub(crate) problem: String,
    pub(crate) said: Vec<String>,
    /// Nothing more is to be expected of this connection.
    pub(crate) lost: bool,
    /// Nor of another, until somebody changes the configuration.
    pub(crate) permanent: bool,
}

/// How a call failed, in words that follow the server's name.
pub(crate) enum Failed {
    Refused(String),
    Impossible(String),
    Uncertain(String),
}

impl Connection {
    pub(crate) async fn open(means: Means<'_>) -> Result<Self, Unusable> {
        let limit = means.spec.start_timeout;
        // Outside of what may take too long, so that it is still there to explain it.
        let heard = Arc::new(Heard::default());
        let opened = tokio::time::timeout(limit, Self::greet(means, &heard)).await;
        let (problem, permanent) = match opened {
            Ok(Ok(connection)) => return Ok(connection),
            Ok(Err(error)) => (error.told(&heard), error.is_permanent()),
            Err(_) => (format!("did not answer within {}", seconds(limit)), false),
        };
        Err(Unusable { problem: problem + &heard.oddity(), said: heard.said(), lost: true, permanent })
    }

    async fn greet(means: Means<'_>, heard: &Arc<Heard>) -> Result<Self, ClientError> {
        let versions = ClientLifecycleMode::Auto {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
        };
        match Self::attempt(means, heard, versions).await {
            Ok(connection) => Ok(connection),
            // A server that does not know the newest greeting should say so; one that ends, stumbles or says something
            // else instead may know the old one.
            Err(error) if error.may_be_old() => {
                Self::attempt(means, heard, ClientLifecycleMode::Initialize).await
            }
            Err(error) => Err(error),
        }
    }

    async fn attempt(
        means: Means<'_>,
        heard: &Arc<Heard>,
        mode: ClientLifecycleMode,
    ) -> Result<Self, ClientError> {
        let spec = means.spec;
        let longest = LARGEST_MESSAGE.max(spec.max_result.saturating_mul(ESCAPED));
        let (service, process) = match &spec.transport {
            Transport::Stdio { program, arguments, env, directory } => {
                let describe = |stdin| Program {
                    program: program.clone(),
                    arguments: arguments.clone(),
                    env: environment(env, means.marker),
                    directory: directory.clone(),
                    stdin,
                    marker: means.marker.cloned(),
                };
                let started = stdio::start(means.launcher, describe, longest, heard);
                let (transport, process) = started.map_err(ClientError::Start)?;
                (means.started)(process.has_ended());
                (Client { counts: None }.serve_with_lifecycle(transport, mode).await?, Some(process))
            }
            Transport::Http { url, headers, bearer } => {
                let transport =
                    http::transport(url, headers.clone(), bearer.as_ref(), spec.start_timeout, longest);
                let client = Client { counts: Some(Arc::clone(heard)) };
                (
                    client.serve_with_lifecycle(transport.map_err(ClientError::Configuration)?, mode).await?,
                    None,
                )
            }
            Transport::Unusable { problem } => return Err(ClientError::Configuration(problem.clone())),
        };
        Ok(Self { number: means.number, service, process, heard: Arc::clone(heard) })
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.service.peer().is_transport_closed()
    }

    /// How often the server said that its tools changed.
    pub(crate) fn changes(&self) -> u64 {
        self.heard.changes()
    }

    /// All its tools, as they are now: not from `rmcp`'s memory of what they were.
    pub(crate) async fn tools(&self, limit: Duration) -> Result<Vec<Tool>, Unusable> {
        match tokio::time::timeout(limit, self.pages()).await {
            Ok(Ok(tools)) => Ok(tools),
            Ok(Err(unusable)) => Err(unusable),
            Err(_) => Err(self.unusable(format!("did not tell its tools within {}", seconds(limit)), true)),
        }
    }

    async fn pages(&self) -> Result<Vec<Tool>, Unusable> {
        let mut tools: Vec<Tool> = Vec::new();
        let mut cursor = None;
        for _ in 0..MOST_PAGES {
            let Some(page) = self.page(cursor).await? else { return Ok(tools) };
            tools.extend(page.tools.into_iter().map(Tool::from));
            if tools.len() > MOST_TOOLS {
                return Err(self.unusable(format!("has more than {MOST_TOOLS} tools"), false));
            }
            cursor = page.next_cursor;
            if cursor.is_none() {
                return Ok(tools);
            }
        }
        Err(self.unusable(format!("tells its tools on more than {MOST_PAGES} pages"), false))
    }

    /// Nothing from a server that knows no tools at all.
    async fn page(&self, cursor: Option<String>) -> Result<Option<ListToolsResult>, Unusable> {
        let params = cursor.map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor)));
        let request = ListToolsRequest { params, ..ListToolsRequest::default() };
        match self.service.peer().send_request(ClientRequest::ListToolsRequest(request)).await {
            Ok(ServerResult::ListToolsResult(page)) => Ok(Some(page)),
            Ok(_) => Err(self.unusable("tells its tools in a way that cannot be read".to_owned(), false)),
            Err(ServiceError::McpError(error)) if error.code == ErrorCode::METHOD_NOT_FOUND => Ok(None),
            Err(ServiceError::McpError(error)) => {
                Err(self.unusable(format!("does not tell its tools: {}", error.message), false))
            }
            Err(error) => Err(self.unusable(self.lost(&error), true)),
        }
    }

    /// Calls a tool. Whatever goes wrong once the request is on its way is uncertain, unless the server says no.
    pub(crate) async fn call(
        &self,
        tool: &str,
        params: JsonObject,
        limit: Duration,
        cancel: &Cancel,
    ) -> Result<CallToolResult, Failed> {
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(params);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let sent =
            self.service.peer().send_request_with_option(request, PeerRequestOptions::no_options()).await;
        let mut handle =
            sent.map_err(|error| Failed::Refused(format!("{}; nothing was sent", self.lost(&error))))?;
        let why = tokio::select! {
            biased;
            answer = &mut handle.rx => {
                let answer = answer.unwrap_or(Err(ServiceError::TransportClosed));
                return answer.map_err(|error| self.failed(&error, &handle.id)).and_then(final_answer);
            }
            () = cancel.cancelled() => "was told to stop".to_owned(),
            () = tokio::time::sleep(limit) => format!("did not answer within {}", seconds(limit)),
        };
        forget(handle).await;
        Err(Failed::Uncertain(why + &self.heard.oddity()))
    }

    fn failed(&self, error: &ServiceError, id: &RequestId) -> Failed {
        match error {
            ServiceError::McpError(error) if self.heard.was_unreadable(id) => {
                Failed::Uncertain(format!("sent {}", error.message))
            }
            ServiceError::McpError(error)
                if matches!(error.code, ErrorCode::INVALID_PARAMS | ErrorCode::METHOD_NOT_FOUND) =>
            {
                Failed::Impossible(format!("refused: {}", error.message))
            }
            ServiceError::McpError(error) => Failed::Refused(format!("refused: {}", error.message)),
            ServiceError::TransportSend(sending)
                if http::fault(sending).is_some_and(http::Fault::is_permanent) =>
            {
                Failed::Impossible(self.lost(error))
            }
            ServiceError::TransportSend(sending)
                if http::fault(sending).is_some_and(http::Fault::is_refusal) =>
            {
                Failed::Refused(self.lost(error))
            }
            _ => Failed::Uncertain(self.lost(error) + &self.heard.oddity()),
        }
    }

    /// What became of a connection, in words that follow the server's name.
    fn lost(&self, error: &ServiceError) -> String {
        match error {
            ServiceError::TransportSend(sending) => {
                http::fault(sending).map_or_else(|| self.heard.end(), ToString::to_string)
            }
            ServiceError::TransportClosed => self.heard.end(),
            other => format!("failed: {other}"),
        }
    }

    fn unusable(&self, problem: String, lost: bool) -> Unusable {
        let permanent = false;
        Unusable { problem: problem + &self.heard.oddity(), said: self.heard.said(), lost, permanent }
    }

    pub(crate) fn said(&self) -> Vec<String> {
        self.heard.said()
    }

    /// Says goodbye, as far as the server listens.
    pub(crate) async fn close(mut self) {
        let _closed = self.service.close_with_timeout(FAREWELL).await;
        if let Some(process) = self.process {
            process.end().await;
        }
    }
}

fn final_answer(answer: ServerResult) -> Result<CallToolResult, Failed> {
    match answer {
        ServerResult::CallToolResult(result) => Ok(result),
        ServerResult::InputRequiredResult(_) => {
            Err(Failed::Refused("wants to ask a person first, which is not possible here".to_owned()))
        }
        ServerResult::CreateTaskResult(_) => {
            Err(Failed::Uncertain("goes on in the background, where its result is not waited for".to_owned()))
        }
        _ => Err(Failed::Uncertain("sent an answer that is no result of a tool".to_owned())),
    }
}

/// Tells the server that the answer is not wanted any more.
async fn forget(handle: RequestHandle<RoleClient>) {
    let told = handle.cancel(Some("not wanted any more".to_owned()));
    let _in_time = tokio::time::timeout(FAREWELL, told).await;
}

/// What we are to a server. Its requests to us are declined: it gets no model, no person and no directory.
#[derive(Clone, Debug)]
struct Client {
    /// Where changes of the tools are counted, if the transport does not do it.
    counts: Option<Arc<Heard>>,
}

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        let ourselves = Implementation::new("wiggum", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), ourselves)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        if let Some(heard) = &self.counts {
            heard.change();
        }
    }
}

enum ClientError {
    Greeting(Box<ClientInitializeError>),
    Start(io::Error),
    /// As it is configured, it cannot be used.
    Configuration(String),
}

impl From<ClientInitializeError> for ClientError {
    fn from(error: ClientInitializeError) -> Self {
        Self::Greeting(Box::new(error))
    }
}

impl ClientError {
    fn may_be_old(&self) -> bool {
        let Self::Greeting(error) = self else { return false };
        match error.as_ref() {
            ClientInitializeError::ConnectionClosed(_)
            | ClientInitializeError::ExpectedInitResult(_)
            | ClientInitializeError::ExpectedInitResponse(_)
            | ClientInitializeError::ConflictInitResponseId(..)
            | ClientInitializeError::UncorrelatedErrorResponse { .. } => true,
            ClientInitializeError::TransportError { error, .. } => {
                http::fault(error).is_some_and(http::Fault::is_stumble)
            }
            _ => false,
        }
    }

    fn told(&self, heard: &Heard) -> String {
        match self {
            Self::Configuration(problem) => problem.clone(),
            Self::Start(error) => format!("cannot be started: {error}"),
            Self::Greeting(error) => greeting(error, heard),
        }
    }

    /// Will it be the same until somebody changes something?
    fn is_permanent(&self) -> bool {
        match self {
            Self::Configuration(_) => true,
            Self::Start(error) => {
                matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied)
            }
            Self::Greeting(error) => match error.as_ref() {
                ClientInitializeError::TransportError { error, .. } => {
                    http::fault(error).is_some_and(http::Fault::is_permanent)
                }
                ClientInitializeError::NoCompatibleProtocolVersion { .. } => true,
                _ => false,
            },
        }
    }
}

fn greeting(error: &ClientInitializeError, heard: &Heard) -> String {
    match error {
        ClientInitializeError::ConnectionClosed(_) => heard.end(),
        ClientInitializeError::TransportError { error, .. } => http::fault(error)
            .map_or_else(|| format!("{} ({})", heard.end(), error.error), ToString::to_string),
        ClientInitializeError::JsonRpcError(error) => {
            format!("refuses to be connected to: {}", error.message)
        }
        ClientInitializeError::NoCompatibleProtocolVersion { server_supported, .. } => {
            let versions: Vec<String> = server_supported.iter().map(ToString::to_string).collect();
            format!("speaks only versions of the protocol that are not spoken here: {}", versions.join(", "))
        }
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => greeting(fallback, heard),
        other => format!(
            "answers a greeting with something else: {}",
            crate::heard::brief(&other.to_string(), 200)
        ),
    }
}

fn seconds(time: Duration) -> String {
    if time.subsec_millis() == 0 {
        format!("{} s", time.as_secs())
    } else {
        format!("{} ms", time.as_millis())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_not_there_stays_so_and_one_that_is_busy_does_not() {
        let start = |kind: io::ErrorKind| ClientError::Start(kind.into()).is_permanent();
        assert!(start(io::ErrorKind::NotFound) && start(io::ErrorKind::PermissionDenied));
        assert!(!start(io::ErrorKind::WouldBlock) && !start(io::ErrorKind::OutOfMemory));
        assert!(ClientError::Configuration("needs $TOKEN".to_owned()).is_permanent());
        let closed = ClientInitializeError::ConnectionClosed("greeting".to_owned());
        assert!(!ClientError::from(closed).is_permanent());
    }
}
