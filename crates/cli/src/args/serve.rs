//! `wiggum mcp serve`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

pub(crate) const EXAMPLES: &str = "\
Examples:
  claude mcp add wiggum -- wiggum mcp serve      Claude Code talks to the loops of this repository
  codex mcp add wiggum -- wiggum mcp serve       so does Codex
  wiggum mcp serve --http 8765                   over HTTP on this machine; prints what clients need
  wiggum mcp serve --http 8765 --token-file ~/.config/wiggum/mcp-token
                                                 with the same token every time

Which tools, resources and prompts there are, and which of them agents get, is in docs/mcp-server.md.";

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Serve over HTTP at this address, or at this port of this machine, in place of standard input and output
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) http: Option<String>,
    /// Whom it serves: a person's client, or the agent of a loop, which may look, claim and ask
    ///
    /// Inside of a loop (WIGGUM_LOOP_ID is set) it is always the agent.
    #[arg(long = "for", value_enum, value_name = "WHOM")]
    pub(crate) whom: Option<Whom>,
    /// The loop that is meant where a call names none
    #[arg(long = "loop", value_name = "NAME|ID")]
    pub(crate) which: Option<String>,
    /// Where the token for HTTP is, or is to be put; without it there is a new one every time
    #[arg(long, value_name = "FILE", requires = "http")]
    pub(crate) token_file: Option<PathBuf>,
    /// Where a second token is, or is to be put, with which one may look and change nothing
    #[arg(long, value_name = "FILE", requires = "http")]
    pub(crate) read_only_token_file: Option<PathBuf>,
    /// Let other machines in: whoever can reach the address and has the token can start agents here, and what
    /// is sent is not encrypted
    #[arg(long, requires = "http")]
    pub(crate) listen_anywhere: bool,
    /// A name by which clients may call this machine, as their URLs have it (repeatable)
    #[arg(long = "host", value_name = "NAME", requires = "http")]
    pub(crate) hosts: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Whom {
    Client,
    Agent,
}
