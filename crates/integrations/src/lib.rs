//! Other people's services. Today: MCP servers, whose tools a loop calls.
//!
//! [`Servers`] is all there is to use: it blocks as the rest of the program does, connects when a server is first
//! needed, keeps the connection, and makes it anew where a server died. A call has two halves, so that the engine can
//! write down between them what it is about to do: [`Servers::prepare`] sends nothing to the tool, [`Servers::call`]
//! says of every failure whether the call can have happened.
//!
//! What a server sends is data: it is bounded in size and time, and nothing in it is done.
//!
//! Absent on purpose: starting programs (see [`Launcher`]), retries, and any knowledge of tasks and loops.

mod cancel;
mod check;
mod connection;
mod environment;
mod error;
mod heard;
mod http;
mod launch;
mod result;
mod servers;
mod spec;
mod stdio;
mod tool;

pub use cancel::Cancel;
pub use error::{CallError, McpError};
pub use launch::{Launcher, Program, Running, Sink};
pub use result::CallResult;
pub use servers::{Prepared, Servers};
pub use spec::{Secret, ServerSpec, Transport};
pub use tool::{Parameter, Tool};
