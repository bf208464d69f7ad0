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
    Unusable { server: String, problem: String, said: Vec<String> },
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
            Self::Unusable { .. } | Self::Runtime(_) => None,
        }
    }
}

/// How a call failed. Which of the two it is decides whether it may be made again.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum CallError {
    /// The server said no, or nothing was sent.
    #[error("{0}")]
    Refused(String),
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
