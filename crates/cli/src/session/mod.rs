//! The loop inside an agent's own session: its stop hook asks us whether the work is done, and we
//! say so or hand the task back.
//!
//! Everything here is small and quick, because an agent waits for it: one file of state per session,
//! no journal and no process unless a check is configured. And it never traps a session: whatever
//! goes wrong on our side lets the agent stop and says why.

pub(crate) mod checks;
pub(crate) mod hook;
pub(crate) mod judge;
pub(crate) mod progress;
pub(crate) mod prompt;
pub(crate) mod ralph_file;
pub(crate) mod slash;
pub(crate) mod state;
mod stop;
pub(crate) mod transcript;
pub(crate) mod turn;

/// Iterations of a session where nothing else is said.
pub(crate) const MAX_ITERATIONS: u32 = 10;
/// Iterations in a row that change nothing in the repository before the loop gives up.
pub(crate) const NO_PROGRESS: u32 = 3;
/// The same error in a row before the loop gives up.
pub(crate) const SAME_ERROR: u32 = 5;
