//! What is configured of a server.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use wiggum_core::redact::Secrets;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerSpec {
    pub name: String,
    pub transport: Transport,
    /// For starting and greeting it, and for asking what tools it has.
    pub start_timeout: Duration,
    pub call_timeout: Duration,
    /// Bytes of a result that are kept.
    pub max_result: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transport {
    Stdio {
        program: String,
        arguments: Vec<String>,
        /// Beside the few variables that every program needs; nothing else of ours is passed on.
        env: BTreeMap<String, String>,
        directory: Option<PathBuf>,
    },
    Http {
        url: String,
        headers: BTreeMap<String, String>,
        bearer: Option<Secret>,
    },
    /// It is configured, but not so that it could be used: why, in words that follow its name.
    Unusable {
        problem: String,
    },
}

/// Shorter values of headers are words.
const MIN_SECRET: usize = 8;

/// A text that is not shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

impl ServerSpec {
    /// What must not be read in anything that the server says. It knows these, and may well repeat them.
    pub(crate) fn secrets(&self) -> Secrets {
        match &self.transport {
            Transport::Stdio { env, .. } => {
                Secrets::among(env.iter().map(|(name, value)| (name.clone(), value.clone())))
            }
            Transport::Http { headers, bearer, .. } => {
                let mut secrets = Secrets::among([]);
                for (name, value) in headers.iter().filter(|(_, value)| value.len() >= MIN_SECRET) {
                    // What `Bearer` and the like are followed by is the secret, with or without that word.
                    let token = value.split_once(' ').map_or(value.as_str(), |(_, token)| token.trim());
                    let shown = format!("[{name} redacted]");
                    secrets = secrets.and(value, &shown).and(token, &shown);
                }
                match bearer {
                    Some(bearer) => secrets.and(bearer.reveal(), "[bearer redacted]"),
                    None => secrets,
                }
            }
            Transport::Unusable { .. } => Secrets::among([]),
        }
    }
}
