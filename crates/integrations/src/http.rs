//! A server somewhere else: messages are HTTP requests, answers come as JSON or as a stream of events.
//!
//! Ours rather than `rmcp`'s own, because that reads JSON of any size, and says of a request that failed neither
//! whether it was sent nor in words for people what came back.

use std::collections::HashMap;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use ::http::{HeaderName, HeaderValue, StatusCode, header};
use futures::StreamExt;
use futures::stream::BoxStream;
use reqwest::{RequestBuilder, Response};
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ErrorData, RequestId, ServerJsonRpcMessage};
use rmcp::transport::DynamicTransportError;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClient, StreamableHttpClientTransport, StreamableHttpClientTransportConfig,
    StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::{Sse, SseStream};
use thiserror::Error as ThisError;

use crate::heard::brief;
use crate::spec::Secret;

const SESSION: &str = "Mcp-Session-Id";
const LAST_EVENT: &str = "Last-Event-Id";
const EVENTS: &str = "text/event-stream";
const JSON: &str = "application/json";
/// These are the transport's own.
const RESERVED: [&str; 4] = ["accept", "content-type", "mcp-session-id", "last-event-id"];
/// Of a page that explains a failure.
const PAGE: usize = 64 * 1024;
const SHOWN: usize = 300;

type Failed = StreamableHttpError<Fault>;
type Answer = StreamableHttpPostResponse;
type Headers = HashMap<HeaderName, HeaderValue>;

/// How a request can fail, in words that follow the server's name.
#[derive(Debug, ThisError)]
pub(crate) enum Fault {
    #[error("cannot be reached: {0}")]
    NotReached(String),
    #[error("answered HTTP {status}{}{text}", if text.is_empty() { "" } else { ": " })]
    Status { status: u16, text: String },
    #[error("sent an answer of more than {0} bytes")]
    TooLarge(usize),
    #[error("sent an answer that cannot be read: {0}")]
    Unreadable(String),
    #[error("broke the connection off: {0}")]
    Broken(String),
}

impl Fault {
    /// Is it certain that nothing was done?
    pub(crate) fn is_refusal(&self) -> bool {
        match self {
            Self::NotReached(_) => true,
            // The server gave up waiting for the request, or says it did.
            Self::Status { status: 408, .. } => false,
            Self::Status { status, .. } => (300..500).contains(status),
            Self::TooLarge(_) | Self::Unreadable(_) | Self::Broken(_) => false,
        }
    }

    /// Does the server refuse whoever asks like this? It is about who we are or where it is.
    pub(crate) fn is_permanent(&self) -> bool {
        match self {
            Self::Status { status, .. } => matches!(*status, 300..=399 | 401 | 403 | 405 | 410),
            Self::NotReached(_) | Self::TooLarge(_) | Self::Unreadable(_) | Self::Broken(_) => false,
        }
    }

    /// Did the server fail at what it was asked?
    pub(crate) fn is_stumble(&self) -> bool {
        match self {
            Self::Status { status, .. } => *status >= 500,
            Self::Unreadable(_) | Self::Broken(_) => true,
            Self::NotReached(_) | Self::TooLarge(_) => false,
        }
    }
}

/// What is behind an error of the transport, if it is one of ours.
pub(crate) fn fault(error: &DynamicTransportError) -> Option<&Fault> {
    match error.error.downcast_ref::<Failed>() {
        Some(StreamableHttpError::Client(fault)) => Some(fault),
        Some(_) | None => None,
    }
}

/// The transport to a server; its connections are made when the first message is sent.
pub(crate) fn transport(
    url: &str,
    headers: impl IntoIterator<Item = (String, String)>,
    bearer: Option<&Secret>,
    connect_timeout: Duration,
    most: usize,
) -> Result<StreamableHttpClientTransport<Client>, String> {
    let parsed = reqwest::Url::parse(url).map_err(|error| format!("has an address that is none: {error}"))?;
    if !matches!(parsed.scheme(), "http" | "https") {
        return Err(format!("has an address that begins with `{}:` instead of `https:`", parsed.scheme()));
    }
    let http = reqwest::Client::builder()
        .user_agent(concat!("wiggum/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(connect_timeout)
        // The token is for the address that was configured, and for no other.
        .redirect(reqwest::redirect::Policy::none())
        .tls_backend_preconfigured(tls(parsed.scheme() == "https")?)
        .build()
        .map_err(|error| format!("cannot be spoken to: {}", chain(&error)))?;
    let mut config = StreamableHttpClientTransportConfig::with_uri(url).custom_headers(checked(headers)?);
    config.max_sse_event_size = most;
    if let Some(bearer) = bearer {
        config = config.auth_header(bearer.reveal());
    }
    Ok(StreamableHttpClientTransport::with_client(Client { http, most }, config))
}

/// Whom the system trusts: companies look into their connections with certificates of their own.
fn tls(needed: bool) -> Result<rustls::ClientConfig, String> {
    let mut roots = rustls::RootCertStore::empty();
    if needed {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| format!("cannot be spoken to: {error}"))?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

fn checked(headers: impl IntoIterator<Item = (String, String)>) -> Result<Headers, String> {
    let mut checked = Headers::new();
    for (name, value) in headers {
        let wrong = |what: &str| format!("has a header `{name}` whose {what} no header can have");
        let parsed = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong("name"))?;
        if RESERVED.contains(&parsed.as_str()) {
            return Err(format!("has a header `{name}`, which is the protocol's own"));
        }
        let mut value = HeaderValue::from_str(&value).map_err(|_| wrong("value"))?;
        value.set_sensitive(true);
        checked.insert(parsed, value);
    }
    Ok(checked)
}

#[derive(Clone)]
pub(crate) struct Client {
    http: reqwest::Client,
    most: usize,
}

impl StreamableHttpClient for Client {
    type Error = Fault;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        bearer: Option<String>,
        headers: Headers,
    ) -> Result<Answer, Failed> {
        let body = serde_json::to_vec(&message)?;
        let request = self.http.post(uri.as_ref()).header(header::CONTENT_TYPE, JSON).body(body);
        let in_session = session.is_some();
        let response = send(with_headers(request, session, bearer, headers)).await?;
        let status = response.status();
        match status {
            StatusCode::ACCEPTED | StatusCode::NO_CONTENT => Ok(Answer::Accepted),
            StatusCode::NOT_FOUND if in_session => Err(StreamableHttpError::SessionExpired),
            _ if status.is_success() => self.answer(response, &message).await,
            _ => refusal(response, &message, in_session).await,
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        bearer: Option<String>,
        headers: Headers,
    ) -> Result<(), Failed> {
        // A courtesy: a server that does not take it ends the session by itself.
        send(with_headers(self.http.delete(uri.as_ref()), Some(session), bearer, headers)).await.map(drop)
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        bearer: Option<String>,
        headers: Headers,
    ) -> Result<BoxStream<'static, Result<Sse, sse_stream::Error>>, Failed> {
        let mut request = self.http.get(uri.as_ref());
        if let Some(last_event) = last_event {
            request = request.header(LAST_EVENT, last_event);
        }
        let response = send(with_headers(request, session, bearer, headers)).await?;
        match response.status() {
            StatusCode::METHOD_NOT_ALLOWED => Err(StreamableHttpError::ServerDoesNotSupportSse),
            status if status.is_success() && is(&response, EVENTS) => Ok(self.events(response)),
            status if status.is_success() => Err(StreamableHttpError::ServerDoesNotSupportSse),
            status => Err(StreamableHttpError::Client(explained(status, &page(response).await))),
        }
    }
}

impl Client {
    async fn answer(&self, response: Response, message: &ClientJsonRpcMessage) -> Result<Answer, Failed> {
        let session =
            response.headers().get(SESSION).and_then(|value| value.to_str().ok()).map(str::to_owned);
        if is(&response, EVENTS) {
            return Ok(Answer::Sse(self.events(response), session));
        }
        let body = whole(response, self.most).await?;
        match serde_json::from_slice::<ServerJsonRpcMessage>(&body) {
            Ok(answer) => Ok(Answer::Json(answer, session)),
            // What is no request gets no answer, whatever comes back.
            Err(_) if asked(message).is_none() => Ok(Answer::Accepted),
            Err(_) => {
                let shown = brief(&String::from_utf8_lossy(&body), SHOWN);
                Err(StreamableHttpError::Client(Fault::Unreadable(shown)))
            }
        }
    }

    fn events(&self, response: Response) -> BoxStream<'static, Result<Sse, sse_stream::Error>> {
        let mut limit = EventLimit::new(self.most);
        let most = self.most;
        let chunks = response.bytes_stream().map(move |chunk| {
            let chunk = chunk.map_err(|error| Fault::Broken(chain(&error.without_url())))?;
            if limit.allows(&chunk) { Ok(chunk) } else { Err(Fault::TooLarge(most)) }
        });
        SseStream::from_bytes_stream(chunks).boxed()
    }
}

/// Counts the bytes of an event, which ends with an empty line.
struct EventLimit {
    most: usize,
    event: usize,
    line: usize,
}

impl EventLimit {
    fn new(most: usize) -> Self {
        Self { most, event: 0, line: 0 }
    }

    fn allows(&mut self, chunk: &[u8]) -> bool {
        for byte in chunk {
            match byte {
                b'\n' if self.line == 0 => self.event = 0,
                b'\n' => self.line = 0,
                b'\r' => {}
                _ => {
                    self.line += 1;
                    self.event += 1;
                }
            }
            if self.event > self.most {
                return false;
            }
        }
        true
    }
}

async fn send(request: RequestBuilder) -> Result<Response, Failed> {
    request.send().await.map_err(|error| {
        let not_sent = error.is_connect() || error.is_builder();
        let text = chain(&error.without_url());
        StreamableHttpError::Client(if not_sent { Fault::NotReached(text) } else { Fault::Broken(text) })
    })
}

fn with_headers(
    request: RequestBuilder,
    session: Option<Arc<str>>,
    bearer: Option<String>,
    headers: Headers,
) -> RequestBuilder {
    let mut request = request.header(header::ACCEPT, format!("{JSON}, {EVENTS}"));
    if let Some(bearer) = bearer {
        request = request.bearer_auth(bearer);
    }
    for (name, value) in headers {
        request = request.header(name, value);
    }
    match session {
        Some(session) => request.header(SESSION, session.as_ref()),
        None => request,
    }
}

/// What another status than success means.
async fn refusal(
    response: Response,
    message: &ClientJsonRpcMessage,
    in_session: bool,
) -> Result<Answer, Failed> {
    let status = response.status();
    let moved =
        response.headers().get(header::LOCATION).and_then(|value| value.to_str().ok()).map(str::to_owned);
    if let Some(elsewhere) = moved.filter(|_| status.is_redirection()) {
        let text = format!("it is at {} now, and must be configured so", brief(&elsewhere, SHOWN));
        return Err(StreamableHttpError::Client(Fault::Status { status: status.as_u16(), text }));
    }
    let body = page(response).await;
    let is_login = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
    if is_login || status == StatusCode::TOO_MANY_REQUESTS {
        return Err(StreamableHttpError::Client(explained(status, &body)));
    }
    let told = match serde_json::from_str(&body) {
        Ok(ServerJsonRpcMessage::Error(error)) => Some(error),
        Ok(_) | Err(_) => None,
    };
    // A server that does not know the newest greeting refuses it in whatever way it can, and is then greeted in the
    // old one.
    if let Some(id) = greeting(message).filter(|_| !in_session && status.is_client_error()) {
        let error = told
            .map_or_else(|| ErrorData::invalid_request(format!("HTTP {status}"), None), |told| told.error);
        return Ok(Answer::Json(ServerJsonRpcMessage::error(error, Some(id.clone())), None));
    }
    match told {
        Some(told) => Ok(Answer::Json(ServerJsonRpcMessage::Error(told), None)),
        None => Err(StreamableHttpError::Client(explained(status, &body))),
    }
}

fn explained(status: StatusCode, page: &str) -> Fault {
    Fault::Status { status: status.as_u16(), text: brief(page, SHOWN) }
}

/// The number of a request; nothing for what gets no answer.
fn asked(message: &ClientJsonRpcMessage) -> Option<&RequestId> {
    match message {
        ClientJsonRpcMessage::Request(request) => Some(&request.id),
        _ => None,
    }
}

fn greeting(message: &ClientJsonRpcMessage) -> Option<&RequestId> {
    match message {
        ClientJsonRpcMessage::Request(request)
            if matches!(request.request, ClientRequest::DiscoverRequest(_)) =>
        {
            Some(&request.id)
        }
        _ => None,
    }
}

fn is(response: &Response, kind: &str) -> bool {
    let given = response.headers().get(header::CONTENT_TYPE);
    given.is_some_and(|given| given.as_bytes().to_ascii_lowercase().starts_with(kind.as_bytes()))
}

async fn whole(mut response: Response, most: usize) -> Result<Vec<u8>, Failed> {
    let mut body = Vec::new();
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) if body.len() + chunk.len() > most => {
                return Err(StreamableHttpError::Client(Fault::TooLarge(most)));
            }
            Ok(Some(chunk)) => body.extend_from_slice(&chunk),
            Ok(None) => return Ok(body),
            Err(error) => {
                let text = chain(&error.without_url());
                return Err(StreamableHttpError::Client(Fault::Broken(text)));
            }
        }
    }
}

/// The beginning of what came with a failure, or nothing.
async fn page(response: Response) -> String {
    let body = whole(response, PAGE).await.unwrap_or_default();
    String::from_utf8_lossy(&body).into_owned()
}

/// An error and its causes, each once.
fn chain(error: &dyn Error) -> String {
    let mut texts = vec![error.to_string()];
    let mut cause = error.source();
    while let Some(error) = cause {
        let text = error.to_string();
        if texts.iter().all(|known| !known.contains(&text)) {
            texts.push(text);
        }
        cause = error.source();
    }
    texts.join(": ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_may_be_so_long_and_a_stream_of_them_endless() {
        let mut limit = EventLimit::new(12);
        for _ in 0..100 {
            assert!(limit.allows(b"data: 12345\r\n\r\n"));
        }
        assert!(limit.allows(b"data: 12"));
        assert!(!limit.allows(b"345678"));
    }

    #[test]
    fn only_what_was_not_sent_or_refused_is_certain() {
        let status = |status| Fault::Status { status, text: String::new() };
        assert!(Fault::NotReached(String::new()).is_refusal());
        assert!(status(401).is_refusal() && status(404).is_refusal() && status(307).is_refusal());
        assert!(!status(408).is_refusal() && !status(500).is_refusal() && !status(503).is_refusal());
        assert!(!Fault::Broken(String::new()).is_refusal() && !Fault::TooLarge(1).is_refusal());
    }

    #[test]
    fn only_what_may_pass_is_worth_another_attempt() {
        let status = |status| Fault::Status { status, text: String::new() };
        assert!([301, 401, 403, 405, 410].map(status).iter().all(Fault::is_permanent));
        assert!(![400, 404, 408, 429, 500, 503].map(status).iter().any(Fault::is_permanent));
        assert!(!Fault::NotReached(String::new()).is_permanent());
    }

    #[test]
    fn headers_of_the_protocol_are_its_own() {
        let one = |name: &str, value: &str| checked([(name.to_owned(), value.to_owned())]);
        assert!(one("X-Api-Key", "k").is_ok());
        assert!(one("Accept", "x").is_err_and(|problem| problem.contains("`Accept`")));
        assert!(one("a b", "x").is_err_and(|problem| problem.contains("name")));
        assert!(one("a", "x\ny").is_err_and(|problem| problem.contains("value") && !problem.contains('y')));
    }
}
