//! Sessions of the page: what a browser keeps in place of the token.
//!
//! Cookies know no ports: every server on this machine is sent ours. So a cookie alone opens nothing but the files of
//! the page, which are the same for everybody. Whatever is asked or done needs the key besides, which is handed to the
//! page in the part of its address that is never sent, kept where only pages of this very address and port look, and
//! sent in a header that no other page can send. Both end with this process.

use std::fs::File;
use std::io::{self, Read};

use http::HeaderMap;
use http::header::COOKIE;
use sha2::{Digest, Sha256};
use wiggum_door::{Reach, same};

/// The header with the key.
pub(crate) const KEY_HEADER: &str = "x-wiggum-key";

/// Random bytes of a session, and those from which all keys are made: nobody guesses 256 bits.
const RANDOM: usize = 32;

pub(crate) struct Sessions {
    /// Known to this process only.
    secret: [u8; RANDOM],
    /// Every server has a cookie of its own name, so that two of them do not take each other's away.
    cookie: String,
}

/// What a browser is given for a token.
pub(crate) struct Session {
    /// A whole `Set-Cookie`.
    pub(crate) cookie: String,
    pub(crate) key: String,
}

impl Sessions {
    pub(crate) fn new(port: u16) -> io::Result<Self> {
        Ok(Self { secret: random()?, cookie: format!("wiggum-{port}") })
    }

    pub(crate) fn open(&self, reach: Reach) -> io::Result<Session> {
        let id = hex(&random()?);
        let value = format!("{id}.{}", self.sign("session", &id));
        let cookie = format!("{}={value}; Path=/; HttpOnly; SameSite=Strict", self.cookie);
        Ok(Session { cookie, key: self.sign(purpose(reach), &id) })
    }

    /// Does this come from a browser that has opened the link? It may have the page's files.
    pub(crate) fn is_known(&self, headers: &HeaderMap) -> bool {
        self.id(headers).is_some()
    }

    /// How far the page that sends cookie and key may go.
    pub(crate) fn reach(&self, headers: &HeaderMap) -> Option<Reach> {
        let id = self.id(headers)?;
        let mut keys = headers.get_all(KEY_HEADER).iter();
        let (Some(key), None) = (keys.next(), keys.next()) else { return None };
        let fits = |reach: &Reach| same(key.as_bytes(), self.sign(purpose(*reach), id).as_bytes());
        [Reach::Full, Reach::ReadOnly].into_iter().find(fits)
    }

    /// The session of a cookie that this process made. Other servers can set cookies of the same name, so each is
    /// looked at.
    fn id<'h>(&self, headers: &'h HeaderMap) -> Option<&'h str> {
        let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        let pairs = cookies.flat_map(|text| text.split(';')).filter_map(|pair| pair.trim().split_once('='));
        let mut ours = pairs.filter(|(name, _)| *name == self.cookie);
        ours.find_map(|(_, value)| {
            let (id, signature) = value.split_once('.')?;
            same(signature.as_bytes(), self.sign("session", id).as_bytes()).then_some(id)
        })
    }

    /// HMAC in short: the secret and both texts have fixed lengths or no dots, and the second hash hides the first.
    fn sign(&self, purpose: &str, id: &str) -> String {
        let inner =
            Sha256::new().chain_update(self.secret).chain_update(format!("{purpose}.{id}")).finalize();
        hex(&Sha256::new().chain_update(self.secret).chain_update(inner).finalize())
    }
}

fn purpose(reach: Reach) -> &'static str {
    match reach {
        Reach::Full => "full",
        Reach::ReadOnly => "read-only",
    }
}

fn random() -> io::Result<[u8; RANDOM]> {
    let mut bytes = [0; RANDOM];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn headers(cookie: &str, key: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let cookie = cookie.split(';').next().unwrap();
        headers.insert(COOKIE, HeaderValue::from_str(cookie).unwrap());
        if !key.is_empty() {
            headers.insert(KEY_HEADER, HeaderValue::from_str(key).unwrap());
        }
        headers
    }

    #[test]
    fn both_halves_of_one_session_are_needed() {
        let sessions = Sessions::new(1).unwrap();
        let full = sessions.open(Reach::Full).unwrap();
        let look = sessions.open(Reach::ReadOnly).unwrap();
        let reach = |session: &Session, key: &str| sessions.reach(&headers(&session.cookie, key));
        assert_eq!(reach(&full, &full.key), Some(Reach::Full));
        assert_eq!(reach(&look, &look.key), Some(Reach::ReadOnly));
        for (session, key) in [(&full, ""), (&full, "x"), (&full, &look.key), (&look, &full.key)] {
            assert_eq!(reach(session, key), None);
        }
        let signature = full.cookie.split(['.', ';']).nth(1).unwrap();
        assert_eq!(reach(&full, signature), None, "what is in the cookie is no key");
        assert!(!full.cookie.contains(&full.key));
        let mut twice = headers(&full.cookie, &full.key);
        twice.append(KEY_HEADER, HeaderValue::from_static("x"));
        assert_eq!(sessions.reach(&twice), None);
    }

    #[test]
    fn a_cookie_is_one_of_this_process_and_port() {
        let (sessions, other) = (Sessions::new(1).unwrap(), Sessions::new(1).unwrap());
        let ours = sessions.open(Reach::Full).unwrap();
        let theirs = other.open(Reach::Full).unwrap();
        assert!(sessions.is_known(&headers(&ours.cookie, "")));
        assert!(!sessions.is_known(&headers(&theirs.cookie, "")));
        assert_eq!(sessions.reach(&headers(&theirs.cookie, &theirs.key)), None);
        let made_up = ours.cookie.replace("wiggum-1=", "wiggum-1=0");
        assert!(!sessions.is_known(&headers(&made_up, "")));
        // Another server set one of the same name beside it.
        let both = format!("wiggum-1=x.y; {}", ours.cookie.split(';').next().unwrap());
        let mut headers = headers(&ours.cookie, &ours.key);
        headers.insert(COOKIE, HeaderValue::from_str(&both).unwrap());
        assert_eq!(sessions.reach(&headers), Some(Reach::Full));
    }
}
