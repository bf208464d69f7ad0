//! The loop's journal and the state folded from it, kept in step.
//!
//! Recording an event changes the state at once and is durable with the next [`Journal::flush`]:
//! the engine flushes before every effect that the outside could see, so that what was done is
//! never ahead of what was recorded.

use jiff::Timestamp;
use uuid::Uuid;
use wiggum_core::event::{BlobRef, EVENT_VERSION, Envelope, Event, MAX_EXCERPT};
use wiggum_core::ids::{Epoch, LoopId, RequestId};
use wiggum_core::mutant::{Mutant, planted};
use wiggum_core::redact::{self, Secrets};
use wiggum_core::signal::error::telling_lines;
use wiggum_core::state::Loop;
use wiggum_core::text::tail;
use wiggum_store::{Append, Blob, Store, StoreError};
use wiggum_workspace::crash;

use crate::checkpoints::hash;
use crate::status::Projector;

pub(crate) struct Journal {
    pub(crate) store: Store,
    pub(crate) state: Loop,
    pub(crate) id: LoopId,
    epoch: Epoch,
    durable: u64,
    pending: Vec<Envelope>,
    blobs: Vec<(String, String)>,
    handled: Vec<RequestId>,
    projector: Projector,
    secrets: Secrets,
}

impl Journal {
    pub(crate) fn new(store: Store, state: Loop, id: LoopId, epoch: Epoch, secrets: Secrets) -> Self {
        let durable = state.seq;
        Self {
            store,
            state,
            id,
            epoch,
            durable,
            pending: Vec::new(),
            blobs: Vec::new(),
            handled: Vec::new(),
            projector: Projector::default(),
            secrets,
        }
    }

    /// Records it without secrets: those who made it read what was decoded, and may have put a value together.
    pub(crate) fn record(&mut self, mut event: Event, at: Timestamp) {
        redact::event(&self.secrets, &mut event);
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

    /// Stores a text together with the next flush, without anything that is or looks like a secret.
    pub(crate) fn keep(&mut self, text: &str) -> BlobRef {
        let hidden = self.secrets.hide(text);
        let shown = redact::text(&hidden);
        self.store(&shown, excerpt(&shown))
    }

    /// Stores a text as it is, for others to go on with; only what is shown of it has no secrets.
    pub(crate) fn keep_exact(&mut self, text: &str) -> BlobRef {
        self.store(text, excerpt(&redact::text(text)))
    }

    /// As [`Journal::keep_exact`], for what nobody wants to see at a glance.
    pub(crate) fn keep_whole(&mut self, text: &str) -> BlobRef {
        self.store(text, String::new())
    }

    fn store(&mut self, text: &str, excerpt: String) -> BlobRef {
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

    /// A request was turned into events (or refused); it is gone with the next flush.
    /// Was this request taken up already, though that is not durable yet?
    pub(crate) fn is_handled(&self, request: RequestId) -> bool {
        self.handled.contains(&request)
    }

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
        let projection = self.projector.text(&self.state, now);
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

    /// What `status.json` says, with the agent's last sign of progress.
    pub(crate) fn status_text(&mut self, now: Timestamp, beat: Option<Timestamp>) -> String {
        self.projector.text_with_beat(&self.state, now, beat)
    }

    /// Is anything of the loop durable?
    pub(crate) fn has_history(&self) -> bool {
        self.durable > 0
    }

    pub(crate) fn epoch(&self) -> Epoch {
        self.epoch
    }
}

/// What is shown of a text: its end, where what matters usually is, and the lines before it that say what went wrong.
fn excerpt(text: &str) -> String {
    if text.len() <= MAX_EXCERPT {
        return text.to_owned();
    }
    let end = last_lines(text, MAX_EXCERPT);
    let told: Vec<String> = telling_lines(text).into_iter().filter(|line| !end.contains(line)).collect();
    if told.is_empty() {
        return end.to_owned();
    }
    let told = format!("{}\n[…]\n", told.join("\n"));
    let end = last_lines(text, MAX_EXCERPT.saturating_sub(told.len()));
    told + end
}

/// As many whole lines of its end as there is room for.
fn last_lines(text: &str, room: usize) -> &str {
    let end = tail(text, room);
    end.split_once('\n').map_or(end, |(_, rest)| rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_went_wrong_is_shown_however_much_follows() {
        let noise =
            |count: usize| (0..count).map(|number| format!("tail noise {number}\n")).collect::<String>();
        let text = format!("{}src/x.rs:10: error: expected 3, got 0\n{}", noise(9), noise(2000));
        let shown = excerpt(&text);
        assert!(shown.starts_with("src/x.rs:10: error: expected 3, got 0\n[…]\n"), "{shown}");
        assert!(shown.ends_with("tail noise 1999\n") && shown.len() <= MAX_EXCERPT, "{}", shown.len());
        // Where the end says it, the end is all.
        let text = format!("{}error: late\n", noise(2000));
        assert!(!excerpt(&text).contains("[…]") && excerpt(&text).ends_with("error: late\n"));
        assert_eq!(excerpt("short"), "short");
    }
}
