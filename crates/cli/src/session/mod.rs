//! The loop inside an agent's own session: its stop hook asks us whether the work is done, and we
//! say so or hand the task back.
//!
//! Everything here is small and quick, because an agent waits for it: one file of state per session,
//! no journal and no process unless a check is configured. And it never traps a session: whatever
//! goes wrong on our side lets the agent stop and says why.

pub(crate) mod checkpoint;
pub(crate) mod checks;
pub(crate) mod hook;
pub(crate) mod judge;
pub(crate) mod known;
pub(crate) mod observe;
pub(crate) mod progress;
pub(crate) mod prompt;
pub(crate) mod ralph_file;
pub(crate) mod rules;
pub(crate) mod show;
pub(crate) mod slash;
pub(crate) mod state;
mod stop;
pub(crate) mod transcript;
pub(crate) mod turn;
pub(crate) mod usage;
