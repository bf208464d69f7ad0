//! Streamable HTTP, with the walls around it: who may speak is asked before anything is read, whoever comes
//! through a browser is turned away, and everything is bounded.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, WWW_AUTHENTICATE};
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, combinators::BoxBody};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::MAX_MESSAGE;
use crate::office::Office;
use crate::server::{Reach, Server};

/// The one path that is served.
pub const PATH: &str = "/mcp";

/// Connections at a time; a client has a few.
const MAX_CONNECTIONS: usize = 64;

/// A client that takes longer to say what it wants is none.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);

/// Where and for whom to serve.
#[derive(Clone, Debug)]
pub struct Access {
    pub address: SocketAddr,
    /// Whoever has it may do everything a person may.
    pub token: String,
    /// Whoever has it may look.
    pub read_only_token: Option<String>,
    /// Names by which clients may call this server, beside those of this machine itself.
    pub hosts: Vec<String>,
}

type Body = BoxBody<Bytes, Infallible>;
type Service = StreamableHttpService<Server, LocalSessionManager>;

struct Door {
    access: Access,
    full: Service,
    read_only: Service,
}

/// Serves until the process is ended. `ready` is told where, once clients may come.
pub fn serve(office: Office, access: Access, ready: impl FnOnce(SocketAddr)) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind(access.address).await?;
        let address = listener.local_addr()?;
        let door = Arc::new(Door::new(Arc::new(office), access));
        ready(address);
        let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        loop {
            // Who comes when all places are taken waits outside.
            let Ok(place) = Arc::clone(&room).acquire_owned().await else { return Ok(()) };
            let Ok((stream, _)) = listener.accept().await else { continue };
            let door = Arc::clone(&door);
            tokio::spawn(async move {
                let service = service_fn(move |request| {
                    let door = Arc::clone(&door);
                    async move { Ok::<_, Infallible>(door.answer(request).await) }
                });
                let mut connection = hyper::server::conn::http1::Builder::new();
                connection.timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT);
                drop(connection.serve_connection(TokioIo::new(stream), service).await);
                drop(place);
            });
        }
    })
}

impl Door {
    fn new(office: Arc<Office>, access: Access) -> Self {
        let hosts =
            ["localhost", "127.0.0.1", "::1"].map(str::to_owned).into_iter().chain(access.hosts.clone());
        let config = StreamableHttpServerConfig::default()
            .with_allowed_hosts(hosts)
            // Pages in a browser have no business here: whatever has an origin is refused.
            .enforce_origin_validation()
            .with_max_request_body_bytes(MAX_MESSAGE)
            .with_cancellation_token(CancellationToken::new());
        let service = |reach: Reach| {
            let office = Arc::clone(&office);
            let make = move || Ok(Server::sharing(Arc::clone(&office), reach));
            StreamableHttpService::new(make, Arc::new(LocalSessionManager::default()), config.clone())
        };
        Self { full: service(Reach::Full), read_only: service(Reach::ReadOnly), access }
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        if request.uri().path() != PATH {
            return plain(StatusCode::NOT_FOUND, format!("the server is at {PATH}"));
        }
        // A session belongs to the service that made it, and so to one kind of token.
        match self.reach(request.headers()) {
            Some(Reach::Full) => self.full.handle(request).await,
            Some(Reach::ReadOnly) => self.read_only.handle(request).await,
            None => unauthorized(),
        }
    }

    fn reach(&self, headers: &HeaderMap) -> Option<Reach> {
        let said = headers.get(AUTHORIZATION)?.to_str().ok()?;
        let (scheme, token) = said.split_once(' ')?;
        if !scheme.eq_ignore_ascii_case("bearer") {
            return None;
        }
        let is = |expected: &str| same(token.trim().as_bytes(), expected.as_bytes());
        if is(&self.access.token) {
            return Some(Reach::Full);
        }
        self.access.read_only_token.as_deref().is_some_and(is).then_some(Reach::ReadOnly)
    }
}

/// Takes the same time wherever the difference is.
fn same(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
}

fn unauthorized() -> Response<Body> {
    let mut response = plain(
        StatusCode::UNAUTHORIZED,
        "a token is needed: send `Authorization: Bearer TOKEN` with the one that `wiggum mcp serve` names"
            .to_owned(),
    );
    let realm = http::HeaderValue::from_static("Bearer realm=\"wiggum\"");
    response.headers_mut().insert(WWW_AUTHENTICATE, realm);
    response
}

fn plain(status: StatusCode, text: String) -> Response<Body> {
    let mut response = Response::new(Full::new(Bytes::from(text + "\n")).boxed());
    *response.status_mut() = status;
    let kind = http::HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_the_same_or_not() {
        assert!(same(b"secret", b"secret"));
        for other in [&b"secreT"[..], b"secre", b"secrets", b""] {
            assert!(!same(other, b"secret"));
        }
    }
}
