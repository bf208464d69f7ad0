//! Serving over HTTP: where, and with which tokens. For every server that this program can be.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use wiggum_door::Access;

use crate::failure::Failure;

/// Bytes of a token that we make: nobody guesses that many.
const TOKEN_BYTES: usize = 32;
/// A token that people chose must not be shorter than this.
const MIN_TOKEN: usize = 16;
const MAX_TOKEN: usize = 4096;

/// What somebody asked for.
pub(crate) struct Wanted<'a> {
    pub(crate) address: SocketAddr,
    /// May other machines come?
    pub(crate) anywhere: bool,
    pub(crate) token_file: Option<&'a Path>,
    pub(crate) read_only_token_file: Option<&'a Path>,
    pub(crate) hosts: &'a [String],
}

impl Wanted<'_> {
    /// Where to serve and for whom, if that is safe or was said.
    pub(crate) fn access(self) -> Result<Access, Failure> {
        let address = self.address;
        if !address.ip().is_loopback() && !self.anywhere {
            return Err(Failure::usage(format!("{address} can be reached by other machines")).hint(
                "serve at 127.0.0.1, or say --listen-anywhere: whoever reaches it and has the token can then \
                 start agents here, and nothing is encrypted",
            ));
        }
        let token = match self.token_file {
            Some(file) => token_in(file)?,
            None => new_token()?,
        };
        let read_only_token = self.read_only_token_file.map(token_in).transpose()?;
        if read_only_token.as_ref() == Some(&token) {
            return Err(Failure::usage("both tokens are the same").hint("use two files with a token each"));
        }
        let mut hosts = self.hosts.to_vec();
        if !address.ip().is_unspecified() {
            hosts.push(address.ip().to_string());
        }
        Ok(Access { address, token, read_only_token, hosts })
    }
}

/// A port alone is one of this machine.
pub(crate) fn listen_at(text: &str) -> Result<SocketAddr, Failure> {
    let here = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let port = text.parse().map(|port| SocketAddr::new(here, port)).ok();
    port.or_else(|| text.replacen("localhost", "127.0.0.1", 1).parse().ok()).ok_or_else(|| {
        Failure::usage(format!("`{text}` is no address to serve at"))
            .hint("give a port, or an address and a port: 8765 or 127.0.0.1:8765")
    })
}

/// The token in a file; where there is none yet, a new one is put there for its owner alone.
fn token_in(file: &Path) -> Result<String, Failure> {
    let failed = |doing: &str, error: std::io::Error| {
        Failure::usage(format!("cannot {doing} the token in {}: {error}", file.display()))
    };
    let mut text = String::new();
    match File::open(file) {
        Ok(open) => {
            open.take(MAX_TOKEN as u64).read_to_string(&mut text).map_err(|error| failed("read", error))?;
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            text = new_token()?;
            let mut open = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file);
            let written = open.as_mut().map(|open| writeln!(open, "{text}"));
            written
                .map_err(|error| failed("write", std::io::Error::from(error.kind())))?
                .map_err(|error| failed("write", error))?;
        }
        Err(error) => return Err(failed("read", error)),
    }
    let token = text.trim();
    let fits = token.len() >= MIN_TOKEN && token.bytes().all(|byte| byte.is_ascii_graphic());
    if !fits {
        return Err(Failure::usage(format!("the token in {} does not do", file.display())).hint(format!(
            "it needs {MIN_TOKEN} or more letters, digits and signs in one line; without the file we make one"
        )));
    }
    Ok(token.to_owned())
}

pub(crate) fn new_token() -> Result<String, Failure> {
    let mut bytes = [0_u8; TOKEN_BYTES];
    let read = File::open("/dev/urandom").and_then(|mut random| random.read_exact(&mut bytes));
    read.map_err(|error| Failure::other(format!("no random numbers for a token: {error}")))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_port_is_one_of_this_machine() {
        for (text, expected) in [
            ("8765", Some("127.0.0.1:8765")),
            ("localhost:1", Some("127.0.0.1:1")),
            ("0.0.0.0:80", Some("0.0.0.0:80")),
            ("[::1]:9", Some("[::1]:9")),
            ("everywhere", None),
            ("99999", None),
        ] {
            assert_eq!(listen_at(text).ok().map(|at| at.to_string()).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn a_token_is_made_once_and_only_its_owner_reads_it() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("token");
        let made = token_in(&file).unwrap();
        assert_eq!(token_in(&file).unwrap(), made);
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        for bad in ["short", "with a space in the middle of it", ""] {
            fs::write(&file, bad).unwrap();
            assert!(token_in(&file).is_err(), "{bad:?}");
        }
    }
}
