//! Wiggum's own MCP server: the loops of a repository, their tasks, questions and reports, for agents and
//! for clients.
//!
//! [`Office`] is where a server works and for whom: a client may do what a person at the command line may,
//! the agent of a loop only what agents may. [`Server`] speaks the protocol over any transport;
//! [`serve_stdio`] and [`http::serve`] bring one. What is done to a running loop is a request that its
//! engine takes up (see [`wiggum_engine::desk`]); nothing is decided here, and standard output carries the
//! protocol and nothing else.

pub mod http;
mod office;
mod prompts;
mod refusal;
mod resources;
mod server;
mod tools;

use std::io;

use rmcp::ServiceExt;
use rmcp::transport::async_rw::AsyncRwTransport;

pub use office::{Assignment, Audience, Office, Program, RunOptions};
pub use refusal::Refusal;
pub use server::Server;
pub use wiggum_door::Reach;

/// The longest message that is read. Tasks and answers are texts that people or agents wrote.
pub const MAX_MESSAGE: usize = 1024 * 1024;

/// Serves one client over standard input and output, until it goes away.
pub fn serve_stdio(office: Office) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let served: Result<(), io::Error> = runtime.block_on(async {
        let (input, output) = rmcp::transport::stdio();
        let transport = AsyncRwTransport::new(input, output).with_max_line_length(MAX_MESSAGE);
        let running = Server::new(office, Reach::Full).serve(transport).await.map_err(io::Error::other)?;
        running.waiting().await.map(drop).map_err(io::Error::other)
    });
    // Reading standard input cannot be taken back: whoever waited for that thread would wait for ever.
    runtime.shutdown_background();
    served
}
