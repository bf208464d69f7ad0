//! A request, from the door to its answer: who asks, by which name and from which page, is looked at before
//! what is asked.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, HeaderName,
    IF_NONE_MATCH, LOCATION, REFERRER_POLICY, SET_COOKIE, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use tokio::time::timeout;
use wiggum_door::{Access, BODY_PATIENCE, Reach, Seat, is_own_page};

use crate::api;
use crate::assets::{self, Asset};
use crate::books::Books;
use crate::openapi::openapi;
use crate::refusal::Refusal;
use crate::routes::{Input, ROOT, Route, pairs, parts};
use crate::session::Sessions;
use crate::stream::{self, aside};

/// The longest body: a task or an answer, as people write them.
const MAX_BODY: usize = 256 * 1024;

/// Nothing but what we serve ourselves, and no text that becomes markup.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
                      connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

pub(crate) type Body = BoxBody<Bytes, Infallible>;

pub(crate) struct Door {
    books: Arc<Books>,
    routes: Arc<Vec<Route>>,
    access: Access,
    sessions: Sessions,
}

impl Door {
    pub(crate) fn new(books: Books, access: Access, address: SocketAddr) -> io::Result<Self> {
        let sessions = Sessions::new(address.port())?;
        Ok(Self { books: Arc::new(books), routes: Arc::new(api::all()), access, sessions })
    }

    pub(crate) async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        let (head, body) = request.into_parts();
        let answered = match self.admit(&head) {
            Ok(Admitted::In(reach)) if head.method == Method::GET => {
                keep_seat(&head);
                self.carry_out(&head, body, reach).await
            }
            Ok(Admitted::In(reach)) => self.carry_out(&head, body, reach).await,
            Ok(Admitted::ToFiles) => asset(&head),
            Ok(Admitted::Welcome(response)) => Ok(*response),
            Err(refusal) => Err(refusal),
        };
        let mut response = answered.unwrap_or_else(|refusal| refused(&refusal));
        guard(response.headers_mut());
        response
    }

    /// Who asks, and how far they may go.
    fn admit(&self, head: &Parts) -> Result<Admitted, Refusal> {
        let refuse = |why: &str| Err(Refusal::new(StatusCode::FORBIDDEN, why));
        if !self.access.is_called(&head.headers) {
            return refuse("this server is not called by that name").map_err(|refusal: Refusal| {
                refusal.hint("use the address it printed, or start it with --host NAME")
            });
        }
        if let Some(token) = link_token(head) {
            let reach = self.access.reach_with(&token).ok_or_else(no_token)?;
            return Ok(Admitted::Welcome(Box::new(self.welcome(reach)?)));
        }
        let by_token = self.access.reach(&head.headers);
        let by_session = self.sessions.reach(&head.headers);
        let may_have_files = || !head.uri.path().starts_with(ROOT) && self.sessions.is_known(&head.headers);
        if by_token.is_none() && by_session.is_none() && !may_have_files() {
            return Err(no_token());
        }
        // A browser says of whatever it sends from which page it comes; what is to be done must come from ours.
        let unsaid = by_token.is_none() && head.headers.get(http::header::ORIGIN).is_none();
        if !is_own_page(&head.headers) || (unsaid && head.method != Method::GET) {
            return refuse("this request comes from another page");
        }
        Ok(by_token.or(by_session).map_or(Admitted::ToFiles, Admitted::In))
    }

    /// The token goes from the address, where it would be seen and kept, and a session takes its place. Its key
    /// is in the part of the new address that browsers send to nobody; the page takes it away from there.
    fn welcome(&self, reach: Reach) -> Result<Response<Body>, Refusal> {
        let failed = |what: &dyn std::fmt::Display| {
            Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, format!("no session can be opened: {what}"))
        };
        let session = self.sessions.open(reach).map_err(|error| failed(&error))?;
        let value = |text: &str| HeaderValue::from_str(text).map_err(|error| failed(&error));
        let mut response = Response::new(whole(Vec::new()));
        *response.status_mut() = StatusCode::SEE_OTHER;
        response.headers_mut().insert(LOCATION, value(&format!("/#key={}", session.key))?);
        response.headers_mut().insert(SET_COOKIE, value(&session.cookie)?);
        Ok(response)
    }

    async fn carry_out(&self, head: &Parts, body: Incoming, reach: Reach) -> Result<Response<Body>, Refusal> {
        let path = head.uri.path();
        let Some(below) = path.strip_prefix(ROOT) else { return asset(head) };
        let known = || Refusal::not_found(format!("nothing is at {path}")).hint("openapi.json says what is");
        let parts = parts(below).ok_or_else(known)?;
        let names: Vec<&str> = parts.iter().map(String::as_str).collect();
        if head.method == Method::GET {
            match names[..] {
                ["openapi.json"] => return Ok(json(StatusCode::OK, openapi().to_string().into_bytes())),
                ["session"] => return Ok(json(StatusCode::OK, session(reach))),
                ["loops", which, "events", "stream"] => return self.stream(head, which).await,
                _ => {}
            }
        }
        let mut fitting = self
            .routes
            .iter()
            .enumerate()
            .filter_map(|(at, route)| route.fits(&parts).map(|names| (at, route.method.clone(), names)));
        let mut allowed = Vec::new();
        let found = fitting.find(|(_, method, _)| {
            allowed.push(method.clone());
            *method == head.method
        });
        let Some((at, method, names)) = found else {
            return if allowed.is_empty() { Err(known()) } else { Ok(not_allowed(&allowed)) };
        };
        if method != Method::GET && reach == Reach::ReadOnly {
            return Err(Refusal::new(StatusCode::FORBIDDEN, "this token is for looking only")
                .hint("use the other link that `wiggum serve` printed"));
        }
        let input = Input { query: query(head)?, body: read(head, body).await? };
        let routes = Arc::clone(&self.routes);
        let told = aside(&self.books, move |books| routes[at].run(books, &names, input)).await?;
        Ok(json(StatusCode::OK, told))
    }

    async fn stream(&self, head: &Parts, which: &str) -> Result<Response<Body>, Refusal> {
        let wrong = || Refusal::new(StatusCode::BAD_REQUEST, "where to begin is the number of an event");
        let said = head.headers.get("last-event-id").map(|id| id.to_str().unwrap_or("?").to_owned());
        let mut asked = None;
        for (name, value) in query(head)? {
            match name.as_str() {
                "after" => asked = Some(value),
                _ => return Err(wrong()),
            }
        }
        let after = said.or(asked).map(|text| text.parse().map_err(|_| wrong())).transpose()?;
        let stream = stream::open(Arc::clone(&self.books), which.to_owned(), after).await?;
        let mut response = Response::new(stream.boxed());
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        Ok(response)
    }
}

enum Admitted {
    In(Reach),
    /// To the files of the page, which are the same for everybody.
    ToFiles,
    Welcome(Box<Response<Body>>),
}

/// The token of the link that is opened in a browser: on the page itself, and nowhere else.
fn link_token(head: &Parts) -> Option<String> {
    if head.uri.path() != "/" || head.method != Method::GET {
        return None;
    }
    let mut pairs = pairs(head.uri.query()?)?.into_iter();
    pairs.find(|(name, _)| name == "token").map(|(_, token)| token)
}

fn no_token() -> Refusal {
    Refusal::new(StatusCode::UNAUTHORIZED, "a token is needed")
        .hint("open the link that `wiggum serve` printed, or send `Authorization: Bearer TOKEN`")
}

fn query(head: &Parts) -> Result<Vec<(String, String)>, Refusal> {
    pairs(head.uri.query().unwrap_or_default())
        .ok_or_else(|| Refusal::new(StatusCode::BAD_REQUEST, "the query cannot be read"))
}

async fn read(head: &Parts, body: Incoming) -> Result<Vec<u8>, Refusal> {
    let too_long =
        || Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, format!("a body has at most {MAX_BODY} bytes"));
    let length = head.headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    if length.is_some_and(|length: usize| length > MAX_BODY) {
        return Err(too_long());
    }
    let late = |_| Refusal::new(StatusCode::REQUEST_TIMEOUT, "the request took too long to come");
    let read = timeout(BODY_PATIENCE, Limited::new(body, MAX_BODY).collect()).await.map_err(late)?;
    let bytes = read.map_err(|_| too_long())?.to_bytes();
    let kind = head.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let is_json = kind.split(';').next().is_some_and(|kind| kind.trim() == "application/json");
    keep_seat(head);
    // A form on a page elsewhere can send text, and never this type without asking first.
    if !bytes.is_empty() && !is_json {
        return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "a body is application/json"));
    }
    Ok(bytes.into())
}

/// Who was let in and has said all of what is wanted does not lose its connection to others.
fn keep_seat(head: &Parts) {
    if let Some(seat) = head.extensions.get::<Seat>() {
        seat.keep();
    }
}

fn session(reach: Reach) -> Vec<u8> {
    let told = serde_json::json!({
        "version": env!("CARGO_PKG_VERSION"),
        "read_only": reach == Reach::ReadOnly,
    });
    told.to_string().into_bytes()
}

fn asset(head: &Parts) -> Result<Response<Body>, Refusal> {
    let path = head.uri.path();
    let found = assets::find(path).ok_or_else(|| Refusal::not_found(format!("nothing is at {path}")))?;
    if head.method != Method::GET && head.method != Method::HEAD {
        return Ok(not_allowed(&[Method::GET]));
    }
    let Asset { kind, text, tag } = found;
    let known = head.headers.get(IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes());
    let mut response = Response::new(whole(if known { Vec::new() } else { text.as_bytes().to_vec() }));
    if known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    if let Ok(tag) = HeaderValue::from_str(tag) {
        headers.insert(ETAG, tag);
    }
    Ok(response)
}

fn json(status: StatusCode, text: Vec<u8>) -> Response<Body> {
    let mut response = Response::new(whole(text));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn refused(refusal: &Refusal) -> Response<Body> {
    let mut response = json(refusal.status, serde_json::to_vec(&refusal.told).unwrap_or_default());
    if refusal.status == StatusCode::UNAUTHORIZED {
        let realm = HeaderValue::from_static("Bearer realm=\"wiggum\"");
        response.headers_mut().insert(WWW_AUTHENTICATE, realm);
    }
    response
}

fn not_allowed(allowed: &[Method]) -> Response<Body> {
    let names: Vec<&str> = allowed.iter().map(Method::as_str).collect();
    let mut response =
        refused(&Refusal::new(StatusCode::METHOD_NOT_ALLOWED, format!("here is {} only", names.join(", "))));
    if let Ok(names) = HeaderValue::from_str(&names.join(", ")) {
        response.headers_mut().insert(ALLOW, names);
    }
    response
}

/// What every answer says to a browser, refusals included.
fn guard(headers: &mut HeaderMap) {
    let mut say = |name: HeaderName, value: &'static str| {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    };
    say(CONTENT_SECURITY_POLICY, POLICY);
    say(REFERRER_POLICY, "no-referrer");
    say(X_CONTENT_TYPE_OPTIONS, "nosniff");
    say(CACHE_CONTROL, "no-store");
    say(HeaderName::from_static("cross-origin-opener-policy"), "same-origin");
    say(HeaderName::from_static("cross-origin-resource-policy"), "same-origin");
}

fn whole(bytes: Vec<u8>) -> Body {
    Full::new(Bytes::from(bytes)).boxed()
}
