//! The loop's journal and the state folded from it, kept in step.
//!
//! Recording an event changes the state at once and is durable with the next [`Journal::flush`]:
//! the engine flushes before every effect that the outside could see, so that what was done is
//! never ahead of what was recorded.

use jiff::Timestamp;
use uuid::Uuid;
use wiggum_core::event::{BlobRef, EVENT_VERSION, Envelope, Event, MAX_EXCERPT};
use wiggum_core::ids::{Epoch, LoopId};
use wiggum_core::mutant::{Mutant, planted};
use wiggum_core::state::Loop;
use wiggum_store::{Append, Blob, RequestId, Store, StoreError};
use wiggum_workspace::crash;

use crate::checkpoints::hash;
use crate::status;

pub(crate) struct Journal {
    pub(crate) store: Store,
    pub(crate) state: Loop,
    pub(crate) id: LoopId,
    epoch: Epoch,
    durable: u64,
    pending: Vec<Envelope>,
    blobs: Vec<(String, String)>,
    handled: Vec<RequestId>,
}

impl Journal {
    pub(crate) fn new(store: Store, state: Loop, id: LoopId, epoch: Epoch) -> Self {
        let durable = state.seq;
        Self { store, state, id, epoch, durable, pending: Vec::new(), blobs: Vec::new(), handled: Vec::new() }
    }

    pub(crate) fn record(&mut self, event: Event, at: Timestamp) {
        let envelope = Envelope {
            v: EVENT_VERSION,
            seq: self.state.seq + 1,
            id: Uuid::now_v7(),
            at,
            epoch: self.epoch - u64::from(planted(Mutant::StaleEpoch)),
            event,
        };
        self.state.apply(&envelope);
        self.pending.push(envelope);
    }

    /// Stores a text together with the next flush.
    pub(crate) fn keep(&mut self, text: &str) -> BlobRef {
        let excerpt = excerpt(text);
        if text.is_empty() {
            return BlobRef::default();
        }
        let sha256 = hash(text);
        self.blobs.push((sha256.clone(), text.to_owned()));
        BlobRef { sha256, bytes: text.len() as u64, excerpt }
    }

    /// A stored text, also one that is not durable yet.
    pub(crate) fn text(&self, sha256: &str) -> Result<Option<String>, StoreError> {
        match self.blobs.iter().find(|(hash, _)| hash == sha256) {
            Some((_, text)) => Ok(Some(text.clone())),
            None => self.store.blob(sha256),
        }
    }

    /// As [`Journal::keep`], for what nobody wants to see at a glance.
    pub(crate) fn keep_whole(&mut self, text: &str) -> BlobRef {
        BlobRef { excerpt: String::new(), ..self.keep(text) }
    }

    /// A request was turned into events (or refused); it is gone with the next flush.
    pub(crate) fn handled(&mut self, request: RequestId) {
        self.handled.push(request);
    }

    /// Makes everything recorded durable, in one transaction, and returns it.
    pub(crate) fn flush(&mut self, now: Timestamp) -> Result<Vec<Envelope>, StoreError> {
        if self.pending.is_empty() && self.handled.is_empty() {
            return Ok(Vec::new());
        }
        crash::point("before append");
        let blobs: Vec<Blob<'_>> = self.blobs.iter().map(|(sha256, text)| Blob { sha256, text }).collect();
        let projection = status::projection(&self.state, now);
        self.store.append(&Append {
            loop_id: self.id,
            expected_seq: self.durable,
            epoch: self.epoch,
            envelopes: &self.pending,
            blobs: &blobs,
            handled: &self.handled,
            projection: Some(&projection),
        })?;
        crash::point("after append");
        self.durable = self.state.seq;
        self.blobs.clear();
        self.handled.clear();
        Ok(std::mem::take(&mut self.pending))
    }

    pub(crate) fn epoch(&self) -> Epoch {
        self.epoch
    }
}

/// The end of a text, where what matters usually is, cut at a line or at least a character.
fn excerpt(text: &str) -> String {
    if text.len() <= MAX_EXCERPT {
        return text.to_owned();
    }
    let mut start = text.len() - MAX_EXCERPT;
    while !text.is_char_boundary(start) {
        start += 1;
    }
    let tail = &text[start..];
    tail.split_once('\n').map_or(tail, |(_, rest)| rest).to_owned()
}
