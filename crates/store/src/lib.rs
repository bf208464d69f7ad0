//! The journal of every loop, and what is kept beside it, in one SQLite file.
//!
//! - [`Store`] keeps events, leases, requests, blobs and projections. One [`Store::append`] is one
//!   durable commit: either all of it happened or none of it.
//! - [`transcript`] keeps what an agent printed, in compressed files of its own.
//! - [`recording`] keeps a run as it was seen, in a file to be shown again elsewhere.
//! - [`registry`] keeps which loops this machine has, and what they spent of a budget they share.
//!
//! Absent on purpose: the store draws no conclusions from events, reads no clock and makes no ids;
//! it refuses what it cannot read instead of skipping it.

mod blobs;
mod check;
mod error;
mod journal;
mod lease;
mod loops;
mod projections;
pub mod recording;
pub mod registry;
mod requests;
mod restore;
mod store;
pub mod transcript;

pub use blobs::Blob;
pub use error::StoreError;
pub use journal::Append;
pub use lease::Holder;
pub use loops::{Identity, LoopRecord};
pub use registry::Registry;
pub use requests::{Pending, RequestId};
pub use store::{Disk, Options, Store};
pub use transcript::Transcript;
