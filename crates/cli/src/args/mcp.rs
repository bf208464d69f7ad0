//! `wiggum mcp`.

use clap::Subcommand;

use super::serve::{self, ServeArgs};

#[derive(Debug, Subcommand)]
pub(crate) enum McpCommand {
    /// Serve the loops of this repository to an MCP client: tools, resources and prompts
    ///
    /// Over standard input and output, as clients start servers, or over HTTP. Standard output carries the
    /// protocol and nothing else.
    #[command(after_help = serve::EXAMPLES)]
    Serve(Box<ServeArgs>),
}
