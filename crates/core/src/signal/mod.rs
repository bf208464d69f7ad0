//! What an agent's final message says: that the task is done, that a person must decide something,
//! or what went wrong.
//!
//! Reading is strict about meaning (a mention is not a statement) and lenient about form. It only
//! reads: what follows from a claim or a question is decided by verdicts and the scheduler.

pub mod claim;
mod echo;
mod elements;
pub mod error;
pub mod escalation;
mod lines;
pub mod mark;
pub mod notes;
mod place;
mod sentence;
mod status;
pub mod support;
mod tongues;

pub use claim::{ClaimReader, DEFAULT_PROMISES};
pub use error::{failure_from, failure_of, signature};
pub use escalation::read_escalations;
pub use mark::{claim_mark, wrong_mark};
pub use notes::{Notes, read_notes};
