//! An MCP server that an agent is handed at its start, in the ways in which agents are told of one.

use std::path::PathBuf;

use serde_json::{Map, Value, json};

/// What agents call the server, and so the first part of its tools' names.
pub(crate) const NAME: &str = "wiggum";

/// A server that the agent starts and talks to over its standard input and output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpServer {
    pub program: PathBuf,
    pub arguments: Vec<String>,
    /// Told in full: some agents keep their own environment from servers.
    pub env: Vec<(String, String)>,
}

impl McpServer {
    /// As a JSON text in the shape that Claude Code made usual. `more` is what others want beside that.
    pub(crate) fn json(&self, more: &[(&str, Value)]) -> String {
        let env: Map<String, Value> =
            self.env.iter().map(|(name, value)| (name.clone(), value.clone().into())).collect();
        let mut server = json!({ "command": self.program, "args": self.arguments, "env": env });
        for (name, value) in more {
            server[*name] = value.clone();
        }
        json!({ "mcpServers": { NAME: server } }).to_string()
    }

    /// As the settings of Codex, one for each `-c`.
    pub(crate) fn toml(&self) -> Vec<String> {
        // A JSON text is a TOML text as well, but for objects.
        let string = |text: &str| Value::String(text.to_owned()).to_string();
        let arguments: Vec<String> = self.arguments.iter().map(|argument| string(argument)).collect();
        let env: Vec<String> =
            self.env.iter().map(|(name, value)| format!("{name}={}", string(value))).collect();
        vec![
            format!("mcp_servers.{NAME}.command={}", string(&self.program.to_string_lossy())),
            format!("mcp_servers.{NAME}.args=[{}]", arguments.join(",")),
            format!("mcp_servers.{NAME}.env={{{}}}", env.join(",")),
        ]
    }
}
