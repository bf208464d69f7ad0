//! The heart of Wiggum: what happened is a sequence of [`event`]s, what is true is a fold over
//! them, and what to do next is a pure function of that.
//!
//! This crate does no I/O, has no clock and no randomness: time and ids come in as arguments, so
//! the same journal and the same `now` always give the same plan.

pub mod agents;
pub mod budget;
pub mod checker;
pub mod checkpoint;
pub mod decide;
pub mod event;
pub mod forecast;
pub mod handoff;
pub mod ids;
pub mod memory;
pub mod mutant;
pub mod policy;
pub mod price;
pub mod prompt;
pub mod question;
pub mod redact;
pub mod restore;
pub mod schedule;
pub mod signal;
pub mod state;
pub mod stream;
pub mod task;
pub mod tasks;
pub mod text;
pub mod verdict;
pub mod weaken;
