//! The journal of every loop, and what is kept beside it, in one SQLite file.
//!
//! - [`Store`] keeps events, leases, requests, blobs, projections and how far others were told. One [`Store::append`] is one
//!   durable commit: either all of it happened or none of it.
//! - [`transcript`] keeps what an agent printed, in compressed files of its own.
//! - [`recording`] keeps a run as it was seen, in a file to be shown again elsewhere.
//! - [`registry`] keeps which loops this machine has, and what they spent of a budget they share.
//!
//! Absent on purpose: the store draws no conclusions from events, reads no clock and makes no ids;
//! it refuses what it cannot read instead of skipping it.
//!
//! ```
//! use jiff::Timestamp;
//! use uuid::Uuid;
//! use wiggum_core::event::{EVENT_VERSION, Envelope, Event};
//! use wiggum_core::ids::LoopId;
//! use wiggum_store::{Append, Holder, Identity, Store};
//!
//! let dir = tempfile::tempdir()?;
//! let now: Timestamp = "2026-01-01T00:00:00Z".parse()?;
//! let mut store = Store::open(&dir.path().join("wiggum.db"))?;
//! let identity =
//!     Identity { repository: "/r".to_owned(), backlog: "PRD.json".to_owned(), name: "main".to_owned() };
//! let id = store.create_loop(&identity, LoopId(Uuid::nil()), now)?.id;
//!
//! // Who appends holds the loop's lease; the epoch fences off whoever held it before.
//! let me = Holder { pid: 1, started: "0".to_owned(), boot: "b".to_owned(), host: "h".to_owned() };
//! let epoch = store.acquire(id, &me, &|_| false, now)?;
//! let event = Event::Noticed { task: None, message: "hello".to_owned() };
//! let envelope = Envelope { v: EVENT_VERSION, seq: 1, id: Uuid::nil(), at: now, epoch, event };
//! let batch = Append {
//!     loop_id: id,
//!     expected_seq: 0,
//!     epoch,
//!     envelopes: &[envelope.clone()],
//!     blobs: &[],
//!     handled: &[],
//!     projection: None,
//! };
//! store.append(&batch)?;
//! assert_eq!(store.read(id, 0)?, [envelope]);
//! // What was appended once cannot be appended again.
//! assert!(store.append(&batch).is_err());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod blobs;
mod check;
mod deliveries;
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
pub use deliveries::{Delivery, Failing, Undelivered};
pub use error::{StoreError, since_words};
pub use journal::Append;
pub use lease::Holder;
pub use loops::{Identity, LoopRecord};
pub use registry::{Entry, Registry};
pub use requests::{Left, Pending};
pub use store::{Disk, Options, Store};
pub use transcript::Transcript;
