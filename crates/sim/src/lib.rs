//! Loops in virtual time: the real core, the real engine and the real store, with scripted agents,
//! people who are late, and machines that break down at any moment.
//!
//! Everything follows from a seed ([`simulate`]), so what went wrong can be looked at again. At its
//! end every world is held against the invariant checker, its files and the truth, which only the
//! simulation knows: whether the work was really done.
//!
//! ```
//! use wiggum_sim::{Setup, simulate};
//!
//! let directory = tempfile::tempdir()?;
//! let trial = simulate(7, &Setup::default(), directory.path(), false)?;
//! assert!(trial.violations.is_empty(), "{:?}", trial.violations);
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! Absent on purpose: git. A simulated loop works outside a repository; what the engine does to git is
//! held against kills in `crates/cli/tests/crash.rs`.

mod act;
mod batch;
mod crowd;
mod fault;
mod people;
mod rng;
mod theatre;
mod tools;
mod trial;
mod verify;
mod witness;
mod world;

pub use act::{Act, Mix};
pub use batch::{fast_place, simulate_many};
pub use crowd::{Crowd, crowd};
pub use fault::Fault;
pub use trial::{Trial, simulate};
pub use world::{Given, Setup};
