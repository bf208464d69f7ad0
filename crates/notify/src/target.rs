//! Whom to tell, and how they are reached.

use std::time::Duration;

use ureq::http::Uri;

use crate::message::{Kind, Message};
use crate::sign::Key;

/// One receiver of messages.
#[derive(Clone, Debug)]
pub struct Target {
    /// Letters, digits, `-` and `_`: it is part of file names and of the ids of messages.
    pub name: String,
    /// What it is told.
    pub on: Vec<Kind>,
    pub way: Way,
    /// The address under which the receiver reaches the page, if not the one it is served at.
    pub link: Option<String>,
    /// How long one attempt may take.
    pub timeout: Duration,
    /// How old a message may become before nobody tries to send it any more.
    pub give_up_after: Duration,
}

impl Target {
    pub fn wants(&self, message: &Message) -> bool {
        self.on.contains(&message.kind) || message.transition && self.on.contains(&Kind::Transition)
    }
}

/// How a receiver is reached.
#[derive(Clone, Debug)]
pub enum Way {
    /// A webhook by the Standard Webhooks specification, signed if there is a key.
    Webhook {
        to: Address,
        key: Option<Key>,
    },
    /// The address ends in the topic.
    Ntfy {
        to: Address,
        token: Option<Secret>,
    },
    Slack {
        to: Address,
    },
    Discord {
        to: Address,
    },
    Telegram {
        to: Address,
        token: Secret,
        chat: String,
    },
    /// A notification of this desktop.
    Desktop,
    /// The bell of the terminal.
    Bell,
    /// A program of one's own.
    Command {
        program: String,
        args: Vec<String>,
    },
    /// It was configured, but something it needs is missing.
    Unusable {
        kind: &'static str,
        problem: String,
    },
}

impl Way {
    pub fn name(&self) -> &'static str {
        match self {
            Self::Webhook { .. } => "webhook",
            Self::Ntfy { .. } => "ntfy",
            Self::Slack { .. } => "slack",
            Self::Discord { .. } => "discord",
            Self::Telegram { .. } => "telegram",
            Self::Desktop => "desktop",
            Self::Bell => "bell",
            Self::Command { .. } => "command",
            Self::Unusable { kind, .. } => kind,
        }
    }

    /// Where that is, without anything that is a secret.
    pub fn place(&self) -> Option<&str> {
        match self {
            Self::Webhook { to, .. }
            | Self::Ntfy { to, .. }
            | Self::Slack { to }
            | Self::Discord { to }
            | Self::Telegram { to, .. } => Some(&to.host),
            Self::Command { program, .. } => Some(program),
            Self::Desktop | Self::Bell | Self::Unusable { .. } => None,
        }
    }

    pub fn problem(&self) -> Option<&str> {
        match self {
            Self::Unusable { problem, .. } => Some(problem),
            _ => None,
        }
    }
}

/// An address on the web. Tokens are part of many, so only the host is ever shown.
#[derive(Clone)]
pub struct Address {
    url: String,
    host: String,
}

impl Address {
    pub fn parse(url: &str) -> Result<Self, String> {
        let uri: Uri = url.trim().parse().map_err(|_| "is no address: write https://…".to_owned())?;
        match uri.scheme_str() {
            Some("http" | "https") => {}
            Some(_) | None => return Err("is no address: only http:// and https:// are spoken".to_owned()),
        }
        let host = uri.host().filter(|host| !host.is_empty()).ok_or("names no host")?;
        let port = uri.port_u16().map(|port| format!(":{port}")).unwrap_or_default();
        Ok(Self { url: url.trim().to_owned(), host: format!("{host}{port}") })
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub fn host(&self) -> &str {
        &self.host
    }
}

impl std::fmt::Debug for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Address({})", self.host)
    }
}

/// Something that is shown nowhere.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    pub fn new(text: &str) -> Self {
        Self(text.trim().to_owned())
    }

    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_an_address_only_the_host_is_shown() {
        let slack = Address::parse("https://hooks.slack.example/services/T0/B0/secret").unwrap();
        assert_eq!(format!("{slack:?}"), "Address(hooks.slack.example)");
        let own = Address::parse(" http://user:pass@127.0.0.1:8080/x?key=1 ").unwrap();
        assert_eq!(own.host(), "127.0.0.1:8080");
        for refused in ["", "hooks.example/x", "file:///etc/passwd", "ftp://x/y", "http://"] {
            assert!(Address::parse(refused).is_err(), "{refused}");
        }
    }
}
