//! What can be said to `wiggum mcp`.

use clap::{Args, Subcommand};

use super::OutputArgs;
use super::serve::{self, ServeArgs};

#[derive(Debug, Subcommand)]
pub(crate) enum McpCommand {
    /// The servers that are configured, and whether they answer
    ///
    /// Starts each of them, all at the same time, and ends them again.
    List(OutputArgs),
    /// The tools of one server or of all, with their parameters
    Tools(McpTools),
    /// Call a tool; its params are checked against its schema first
    ///
    /// Exit codes: 0 it was done, 1 it failed or nobody knows whether it happened, 2 there is no such server
    /// or tool or the params do not fit, 130 interrupted.
    #[command(after_help = CALL_EXAMPLES)]
    Call(McpCall),
    /// Serve the loops of this repository to an MCP client: tools, resources and prompts
    ///
    /// Over standard input and output, as clients start servers, or over HTTP. Standard output carries the
    /// protocol and nothing else.
    #[command(after_help = serve::EXAMPLES)]
    Serve(Box<ServeArgs>),
}

const CALL_EXAMPLES: &str = "\
Examples:
  wiggum mcp call time get_current_time timezone=Europe/Vienna
  wiggum mcp call files write_file --params '{\"path\": \"a.txt\", \"content\": \"hello\"}'
  jq -n '{path: \".\"}' | wiggum mcp call files list_directory --params - --json";

#[derive(Debug, Args)]
pub(crate) struct McpTools {
    /// The server [default: all of them]
    pub(crate) server: Option<String>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct McpCall {
    /// The server, as `wiggum mcp list` names it
    pub(crate) server: String,
    /// The tool, as `wiggum mcp tools` names it
    pub(crate) tool: String,
    /// A param; numbers, lists and the like are written as JSON where the tool wants them
    #[arg(value_name = "NAME=VALUE", conflicts_with = "params")]
    pub(crate) values: Vec<String>,
    /// All params as a JSON object; `-` reads it from standard input
    #[arg(long, value_name = "JSON")]
    pub(crate) params: Option<String>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
