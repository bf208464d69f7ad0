//! What can go wrong, in words for people.

use std::fmt::Write as _;

use thiserror::Error;

/// Why a call could not even be prepared. Nothing has been sent to a tool.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum McpError {
    #[error("there is no MCP server `{name}`")]
    UnknownServer { name: String, known: Vec<String> },
    /// `said` is what it wrote to its standard error last.
    #[error("MCP server `{server}` {problem}{}", told(said))]
    Unusable { server: String, problem: String, said: Vec<String>, permanent: bool },
    #[error("MCP server `{server}` has no tool `{tool}`")]
    UnknownTool { server: String, tool: String, known: Vec<String> },
    #[error("the params do not fit `{tool}` of MCP server `{server}`: {}", problems.join("; "))]
    Params { server: String, tool: String, problems: Vec<String>, wanted: String },
    #[error("the runtime for MCP servers cannot be started: {0}")]
    Runtime(String),
}

impl McpError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::UnknownServer { known, .. } if known.is_empty() => {
                Some("configure one in `[mcp.servers.NAME]` of wiggum.toml, or in .mcp.json".to_owned())
            }
            Self::UnknownServer { known, .. } => Some(format!("there is {}", listed(known))),
            Self::UnknownTool { known, .. } if known.is_empty() => Some("it has no tools at all".to_owned()),
            Self::UnknownTool { known, .. } => Some(format!("it has {}", listed(known))),
            Self::Params { tool, wanted, .. } => Some(format!("`{tool}` wants {wanted}")),
            Self::Unusable { permanent: true, .. } => {
                Some("see `[mcp.servers]` of wiggum.toml, and `wiggum mcp list`".to_owned())
            }
            Self::Unusable { .. } | Self::Runtime(_) => None,
        }
    }

    /// Will it be the same until somebody changes the call or the configuration?
    pub fn is_permanent(&self) -> bool {
        match self {
            Self::UnknownServer { .. } | Self::UnknownTool { .. } | Self::Params { .. } => true,
            Self::Unusable { permanent, .. } => *permanent,
            Self::Runtime(_) => false,
        }
    }
}

/// How a call failed. Which of these it is decides whether it may be made again.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum CallError {
    /// The server said no, or nothing was sent.
    #[error("{0}")]
    Refused(String),
    /// Nothing happened, and nothing will until somebody changes the call or the configuration.
    #[error("{0}")]
    Impossible(String),
    /// Nobody knows whether it happened.
    #[error("{0}")]
    Uncertain(String),
}

/// A list of names that stays readable however many there are.
fn listed(names: &[String]) -> String {
    const SHOWN: usize = 30;
    let shown: Vec<String> = names.iter().take(SHOWN).map(|name| format!("`{name}`")).collect();
    let mut text = shown.join(", ");
    if names.len() > SHOWN {
        // Writing to a string cannot fail.
        let _written = write!(text, " and {} more", names.len() - SHOWN);
    }
    text
}

fn told(said: &[String]) -> String {
    if said.is_empty() { String::new() } else { format!("; it said: {}", said.join(" / ")) }
}
