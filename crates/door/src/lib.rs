//! Who may come in over HTTP, for every server of ours: who has a token is asked before anything is read,
//! who calls this machine by a strange name or comes from a strange page is turned away, and connections
//! are bounded in number and in patience.
//!
//! What is served, and by which paths, is not known here.

mod accept;

use std::net::SocketAddr;

use http::header::{AUTHORIZATION, HOST, ORIGIN};
use http::{HeaderMap, HeaderName};

pub use accept::{BODY_PATIENCE, Bounds, Seat, serve};

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

/// How far a client may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    Full,
    /// It may look, and change nothing.
    ReadOnly,
}

/// The names of this machine that mean nobody else's.
pub const OWN_NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

impl Access {
    /// How far whoever sends these headers may go, by the token in `Authorization`.
    pub fn reach(&self, headers: &HeaderMap) -> Option<Reach> {
        let said = headers.get(AUTHORIZATION)?.to_str().ok()?;
        let (scheme, token) = said.split_once(' ')?;
        if scheme.eq_ignore_ascii_case("bearer") { self.reach_with(token.trim()) } else { None }
    }

    /// How far one may go with this token.
    pub fn reach_with(&self, token: &str) -> Option<Reach> {
        let is = |expected: &str| same(token.as_bytes(), expected.as_bytes());
        // An empty one opens nothing, whatever somebody configured.
        if token.is_empty() {
            return None;
        }
        if is(&self.token) {
            return Some(Reach::Full);
        }
        self.read_only_token.as_deref().is_some_and(is).then_some(Reach::ReadOnly)
    }

    /// Is this server called by a name it has? A page elsewhere whose name was made to mean this machine
    /// calls it by its own.
    pub fn is_called(&self, headers: &HeaderMap) -> bool {
        let mut hosts = headers.get_all(HOST).iter();
        let (Some(host), None) = (hosts.next(), hosts.next()) else { return false };
        let Some(name) = host.to_str().ok().and_then(name_of) else { return false };
        OWN_NAMES.iter().any(|own| own.eq_ignore_ascii_case(name))
            || self.hosts.iter().any(|own| own.eq_ignore_ascii_case(name))
    }
}

/// Does a request come from a page of the very server it is sent to, or from no page at all?
pub fn is_own_page(headers: &HeaderMap) -> bool {
    let text = |name: &HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    if let Some(origin) = text(&ORIGIN) {
        return text(&HOST).is_some_and(|host| origin.eq_ignore_ascii_case(&format!("http://{host}")));
    }
    let site = text(&HeaderName::from_static("sec-fetch-site"));
    matches!(site, None | Some("same-origin" | "none"))
}

/// A host without its port.
fn name_of(host: &str) -> Option<&str> {
    let (name, port) = match host.strip_prefix('[') {
        Some(rest) => {
            let (name, port) = rest.split_once(']')?;
            (name, port.strip_prefix(':').unwrap_or(port))
        }
        None => host.split_once(':').unwrap_or((host, "")),
    };
    port.bytes().all(|byte| byte.is_ascii_digit()).then_some(name)
}

/// Takes the same time wherever the difference is.
pub fn same(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn access() -> Access {
        Access {
            address: ([127, 0, 0, 1], 1).into(),
            token: "secret".to_owned(),
            read_only_token: Some("look".to_owned()),
            hosts: vec!["box.example".to_owned()],
        }
    }

    fn headers(all: &[(&'static str, &'static str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        all.iter().map(pair).collect()
    }

    #[test]
    fn tokens_are_the_same_or_not() {
        assert!(same(b"secret", b"secret"));
        for other in [&b"secreT"[..], b"secre", b"secrets", b""] {
            assert!(!same(other, b"secret"));
        }
    }

    #[test]
    fn a_token_says_how_far_one_may_go() {
        let reach = |said| access().reach(&headers(&[("authorization", said)]));
        assert_eq!(reach("Bearer secret"), Some(Reach::Full));
        assert_eq!(reach("bearer look"), Some(Reach::ReadOnly));
        for said in ["secret", "Basic secret", "Bearer", "Bearer ", "Bearer secrets", ""] {
            assert_eq!(reach(said), None, "{said:?}");
        }
    }

    #[test]
    fn only_its_own_names_are_answered_to() {
        let called = |host| access().is_called(&headers(&[("host", host)]));
        for host in ["127.0.0.1:8080", "localhost", "LOCALHOST:1", "[::1]:80", "box.example:9"] {
            assert!(called(host), "{host}");
        }
        for host in
            ["evil.example", "127.0.0.1.evil.example", "localhost:x", "", "[::1", "box.example@evil:1", "::1"]
        {
            assert!(!called(host), "{host}");
        }
        assert!(!access().is_called(&HeaderMap::new()));
    }

    #[test]
    fn pages_of_others_are_known_by_their_origin() {
        let own = |more: &[(&'static str, &'static str)]| {
            is_own_page(&headers(&[&[("host", "127.0.0.1:8")], more].concat()))
        };
        assert!(own(&[]));
        assert!(own(&[("origin", "http://127.0.0.1:8")]));
        assert!(own(&[("sec-fetch-site", "same-origin")]));
        for origin in ["http://127.0.0.1:9", "https://127.0.0.1:8", "http://evil.example", "null"] {
            assert!(!own(&[("origin", origin)]), "{origin}");
        }
        assert!(!own(&[("sec-fetch-site", "cross-site")]));
        assert!(!own(&[("sec-fetch-site", "same-site")]));
    }
}
