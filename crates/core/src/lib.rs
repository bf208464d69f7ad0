//! The heart of Wiggum: what happened is a sequence of [`event`]s, what is true is a fold over
//! them, and what to do next is a pure function of that.
//!
//! This crate does no I/O, has no clock and no randomness: time and ids come in as arguments, so
//! the same journal and the same `now` always give the same plan.
//!
//! A loop is folded from its journal and asked what to do:
//!
//! ```
//! use jiff::Timestamp;
//! use uuid::Uuid;
//! use wiggum_core::decide::{Action, decide};
//! use wiggum_core::event::{EVENT_VERSION, Envelope, Event};
//! use wiggum_core::policy::Policy;
//! use wiggum_core::state::Loop;
//! use wiggum_core::task::Task;
//!
//! let now: Timestamp = "2026-01-01T00:00:00Z".parse()?;
//! let happened = [
//!     Event::RunStarted {
//!         run: 1,
//!         policy: Box::new(Policy::default()),
//!         agent: "any".to_owned(),
//!         version: "1".to_owned(),
//!         git: false,
//!         sandbox: String::new(),
//!         tree: String::new(),
//!     },
//!     Event::BacklogRead {
//!         revision: "1".to_owned(),
//!         added: vec![Task::new("A", "The first thing")],
//!         changed: vec![],
//!         removed: vec![],
//!         order: None,
//!     },
//! ];
//! let journal: Vec<Envelope> = (1..)
//!     .zip(happened)
//!     .map(|(seq, event)| Envelope { v: EVENT_VERSION, seq, id: Uuid::nil(), at: now, epoch: 1, event })
//!     .collect();
//!
//! let state = Loop::fold(&journal);
//! let plan = decide(&state, now);
//! assert!(matches!(&plan.actions[..], [Action::StartIteration { attempt: 1, .. }]));
//! // The rules that every journal keeps are checked by code of their own.
//! assert!(wiggum_core::checker::check(&journal).is_empty());
//! # Ok::<(), jiff::Error>(())
//! ```

pub mod activity;
pub mod admit;
pub mod agents;
pub mod baseline;
pub mod breaker;
pub mod budget;
pub mod checker;
pub mod checkpoint;
pub mod clean;
pub mod commits;
pub mod decide;
pub mod definition;
pub mod event;
pub mod figures;
pub mod forecast;
pub mod handoff;
pub mod health;
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
pub mod tally;
pub mod task;
pub mod tasks;
pub mod template;
pub mod termination;
pub mod text;
pub mod verdict;
pub mod weaken;
pub mod work;

pub use admit::admit;
