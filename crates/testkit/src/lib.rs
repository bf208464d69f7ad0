//! What tests with real coding agents need: a model to talk to, the agents, and what they once said.
//!
//! - [`StubModel`] answers on loopback as the model providers do, by a [`Scenario`], faults included.
//! - [`agents`] finds the real programs that `cargo xtask test` installs, and says how to run them
//!   against the stub, and nothing else, in a home of their own.
//! - [`browser`] drives a real browser.
//! - [`mcp`] installs real MCP servers and the protocol's conformance suite.
//! - [`cases`] are the things that can happen with them, and [`Transcript`]s what they then print.
//!
//! Only tests depend on this. It holds no agent of its own and knows nothing of the engine.

pub mod agents;
pub mod browser;
#[cfg(unix)]
mod case;
#[cfg(unix)]
pub mod cases;
mod choose;
mod http;
pub mod mcp;
#[cfg(unix)]
mod place;
mod play;
mod reply;
mod request;
pub mod runners;
pub mod scenario;
mod stub;
pub mod transcript;

#[cfg(unix)]
pub use case::{Case, CaseError};
#[cfg(unix)]
pub use place::Place;
pub use request::{Dialect, Request};
pub use scenario::{Cut, Fault, HttpError, Scenario, StreamError, Turn, Usage, When};
pub use stub::{Asked, Choice, Seen, StartError, StubModel};
pub use transcript::Transcript;
