//! Streamable HTTP, with the walls around it: who may speak is asked before anything is read, pages from
//! elsewhere are turned away, and everything is bounded.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, WWW_AUTHENTICATE};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited, combinators::BoxBody};
use hyper::body::Incoming;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpListener;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use wiggum_door::{Access, BODY_PATIENCE, Bounds, OWN_NAMES, Reach, Seat};

use crate::MAX_MESSAGE;
use crate::office::Office;
use crate::server::Server;

/// The one path that is served.
pub const PATH: &str = "/mcp";

/// A client has a few connections, and says soon what it wants.
const BOUNDS: Bounds = Bounds { connections: 256, headers: Duration::from_secs(10) };

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
        wiggum_door::serve(listener, BOUNDS, move |request| {
            let door = Arc::clone(&door);
            async move { door.answer(request).await }
        })
        .await
    })
}

impl Door {
    fn new(office: Arc<Office>, access: Access) -> Self {
        let hosts = OWN_NAMES.map(str::to_owned).into_iter().chain(access.hosts.clone());
        let config = StreamableHttpServerConfig::default()
            .with_allowed_hosts(hosts)
            // Pages from elsewhere have no business here, whatever name they call this machine by.
            .with_allowed_origins(["http://localhost:*", "http://127.0.0.1:*", "http://[::1]:*"])
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
        let service = match self.access.reach(request.headers()) {
            Some(Reach::Full) => &self.full,
            Some(Reach::ReadOnly) => &self.read_only,
            None => return unauthorized(),
        };
        match whole(request).await {
            Ok(request) => service.handle(request).await,
            Err(refused) => refused,
        }
    }
}

/// The request with all of its body. Until that has come, the client has no place of its own.
async fn whole(request: Request<Incoming>) -> Result<Request<Full<Bytes>>, Response<Body>> {
    let (head, body) = request.into_parts();
    let read = timeout(BODY_PATIENCE, Limited::new(body, MAX_MESSAGE).collect()).await;
    let read = read
        .map_err(|_| plain(StatusCode::REQUEST_TIMEOUT, "the request took too long to come".to_owned()))?
        .map_err(|_| {
            let words = format!("a message has at most {MAX_MESSAGE} bytes");
            plain(StatusCode::PAYLOAD_TOO_LARGE, words)
        })?;
    if let Some(seat) = head.extensions.get::<Seat>() {
        seat.keep();
    }
    Ok(Request::from_parts(head, Full::new(read.to_bytes())))
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
