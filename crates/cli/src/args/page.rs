//! `wiggum serve`.

use std::path::PathBuf;

use clap::Args;

use super::OutputArgs;

pub(crate) const EXAMPLES: &str = "\
Examples:
  wiggum serve                       open the page of this machine's loops, this repository's first
  wiggum serve --here                only this repository's
  wiggum serve --no-open --read-only print a link for somebody who may only look
  wiggum serve --json --no-open      the link for other programs; curl works with the token:
                                     curl -H \"Authorization: Bearer $TOKEN\" http://127.0.0.1:7787/api/v1/loops

What the page shows, and the HTTP API under it, is in docs/page.md and docs/reference/openapi.json.";

#[derive(Debug, Args)]
pub(crate) struct PageArgs {
    /// The port of this machine [default: 7787, or any that is free]
    #[arg(long, value_name = "N")]
    pub(crate) port: Option<u16>,
    /// The address to listen at; others than this machine's own need --listen-anywhere [default: 127.0.0.1]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<std::net::IpAddr>,
    /// Let other machines in: whoever can reach the address and has the token can steer the loops here, and
    /// what is sent is not encrypted
    #[arg(long)]
    pub(crate) listen_anywhere: bool,
    /// A name by which browsers may call this machine, as their addresses have it (repeatable)
    #[arg(long = "host", value_name = "NAME")]
    pub(crate) hosts: Vec<String>,
    /// Only the loops of this repository, and not those of the whole machine
    #[arg(long)]
    pub(crate) here: bool,
    /// Only look: the link that is printed cannot change anything
    #[arg(long)]
    pub(crate) read_only: bool,
    /// Where the token is, or is to be put; without it there is a new one every time
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Only print the link, and open no browser
    #[arg(long)]
    pub(crate) no_open: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
