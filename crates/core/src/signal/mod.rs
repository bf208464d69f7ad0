//! What an agent's final message says: that the task is done, that a person must decide something,
//! or what went wrong.
//!
//! Reading is strict about meaning (a mention is not a statement) and lenient about form. It only
//! reads: what follows from a claim or a question is decided by verdicts and the scheduler.

pub mod claim;
mod echo;
pub mod error;
pub mod escalation;
mod lines;
pub mod notes;
mod sentence;
mod status;

pub use claim::{ClaimReader, DEFAULT_PROMISES};
pub use error::{failure_from, failure_of, signature};
pub use escalation::read_escalations;
pub use notes::{Notes, read_notes};
