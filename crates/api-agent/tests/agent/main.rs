//! The agent against a model on loopback, over real HTTP: it changes files, it stays inside, and it
//! names what goes wrong.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may fail here")]

mod budget;
mod context;
mod desk;
mod faults;
mod hostile;
mod work;
