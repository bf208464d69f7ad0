//! The engine: joins the pure core with the journal, the agents, the work tree and the backlog file.
//!
//! [`Engine`] is the dull loop; [`status`] is what other programs read; [`backlog_file`] and
//! [`wake`] are also used by commands that act while no engine of their own runs. Printing and
//! asking people is the surfaces' business: they watch as [`Observer`]s.

mod agent;
pub mod backlog_file;
mod check_files;
pub mod checkpoints;
pub mod clock;
mod engine;
pub mod error;
mod handoff;
mod health;
pub mod host;
mod iteration;
mod journal;
mod land;
mod money;
pub mod nudge;
mod recover;
pub mod report;
mod requests;
mod restore;
mod sandbox;
pub mod state_dir;
pub mod status;
mod tree;
pub mod wake;
mod watched;

pub use agent::Agent;
pub use engine::{Engine, Input, Observer, Outcome, Remote, Settings, Tap, read_state};
pub use error::EngineError;
pub use host::{Host, Machine, Program};
pub use iteration::command_line;
pub use restore::{Changes, Restored};
pub use sandbox::Sandbox;
