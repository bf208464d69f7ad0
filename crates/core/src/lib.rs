//! The heart of Wiggum: what happened is a sequence of [`event`]s, what is true is a fold over
//! them, and what to do next is a pure function of that.
//!
//! This crate does no I/O, has no clock and no randomness: time and ids come in as arguments, so
//! the same journal and the same `now` always give the same plan.

pub mod agents;
pub mod checker;
pub mod decide;
pub mod event;
pub mod ids;
pub mod mutant;
pub mod policy;
pub mod prompt;
pub mod question;
pub mod redact;
pub mod schedule;
pub mod signal;
pub mod state;
pub mod stream;
pub mod task;
pub mod tasks;
pub mod text;
pub mod verdict;
pub mod weaken;
