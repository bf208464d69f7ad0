//! Plans in an Obsidian vault: a person approves one by moving its file, the engine carries it out, and
//! questions come back as notes that are answered by ticking a box.
//!
//! The vault shows what the journal tells: the state, log, notes and dashboard are projections, written
//! as things happen and put right at every start. What a person says in the vault (a plan moved, a box
//! ticked) becomes a request in the store, as from every other surface.
//!
//! Nothing here decides how a plan goes on; that is the core's business. Agents and tools are handed in
//! with the settings.

mod copies;
mod dashboard;
mod keeper;
mod layout;
mod log;
mod notes;
mod plans;
mod projection;
mod story;
mod watch;
mod words;

pub use dashboard::Row;
pub use keeper::{Keeper, NotCarriedOut, Problem, Ran, Rules, Setup, Signal, Told, survey};
pub use layout::{Vault, VaultError};
pub use plans::Approved;
