//! The heart of Wiggum: what happened is a sequence of [`event`]s, what is true is a fold over
//! them, and what to do next is a pure function of that.
//!
//! This crate does no I/O, has no clock and no randomness: time and ids come in as arguments, so
//! the same journal and the same `now` always give the same plan.

pub mod checker;
pub mod decide;
pub mod event;
pub mod ids;
pub mod policy;
pub mod question;
pub mod schedule;
pub mod state;
pub mod stream;
pub mod task;
<<<<<<< HEAD
pub mod tasks;
pub mod verdict;
=======

pub mod prompt;
pub mod signal;
pub mod text;
pub mod weaken;
>>>>>>> signal
