//! `wiggum mcp`.

mod serve;

use std::process::ExitCode;

use crate::args::McpCommand;
use crate::failure::Failure;

pub(crate) fn mcp(command: &McpCommand) -> Result<ExitCode, Failure> {
    match command {
        McpCommand::Serve(args) => serve::serve(args),
    }
}
