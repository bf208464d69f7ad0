//! Checkpoints in the store: made with the journal, read with every doubt.
//!
//! The text of a checkpoint is kept under its hash, and the event that recorded it names that hash and
//! the one before. Whoever reads one compares all of it, so that what was damaged or changed is named
//! instead of believed.

use std::sync::Arc;

use jiff::Timestamp;
use sha2::{Digest, Sha256};
use uuid::Uuid;
use wiggum_core::checkpoint::{self, Checkpoint};
use wiggum_core::event::Event;
use wiggum_core::ids::{Iteration, LoopId, Seq, TaskId};
use wiggum_core::mutant::{Mutant, planted};
use wiggum_core::redact::Secrets;
use wiggum_core::text::hex;
use wiggum_store::{Store, StoreError};
use wiggum_workspace::crash;

use crate::clock::Clock;
use crate::engine::{Engine, acquire, read_state};
use crate::error::EngineError;
use crate::host::Machine;
use crate::journal::Journal;

/// A checkpoint as the journal knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    pub seq: Seq,
    pub at: Timestamp,
    pub id: Uuid,
    pub sha256: String,
    pub previous: Option<String>,
    pub iteration: Iteration,
    pub task: Option<TaskId>,
    /// Who asked for it; empty where it belongs to the end of an iteration.
    pub by: String,
}

/// What is wrong with a checkpoint.
#[derive(Debug, thiserror::Error)]
pub enum Damage {
    #[error("its text is missing")]
    Missing,
    #[error("its text was changed or damaged: it does not have its hash any more")]
    Hash,
    #[error("its text is no checkpoint")]
    Unreadable(#[source] serde_json::Error),
    #[error("its text is that of another checkpoint")]
    Another,
    #[error("it does not follow the checkpoint before it")]
    Chain,
    #[error(transparent)]
    Store(Box<StoreError>),
}

/// All checkpoints of a loop, oldest first.
pub fn list(store: &Store, id: LoopId) -> Result<Vec<Kept>, StoreError> {
    let mut found = Vec::new();
    store.for_each(id, 0, |envelope| {
        if let Event::Checkpointed { iteration, task, id, checkpoint, previous, by } = envelope.event {
            let (seq, at, sha256) = (envelope.seq, envelope.at, checkpoint.sha256);
            found.push(Kept { seq, at, id, sha256, previous, iteration, task, by });
        }
    })?;
    Ok(found)
}

/// The checkpoint itself, if it is the one that was recorded.
pub fn read(store: &Store, kept: &Kept) -> Result<Checkpoint, Damage> {
    let text = match store.blob(&kept.sha256) {
        Ok(text) => text.ok_or(Damage::Missing)?,
        Err(StoreError::DamagedBlob { .. }) => return Err(Damage::Hash),
        Err(error) => return Err(Damage::Store(Box::new(error))),
    };
    if hash(&text) != kept.sha256 {
        return Err(Damage::Hash);
    }
    let checkpoint: Checkpoint = serde_json::from_str(&text).map_err(Damage::Unreadable)?;
    let same = checkpoint.id == kept.id
        && checkpoint.previous == kept.previous
        && checkpoint.iteration == kept.iteration
        && checkpoint.recovery.seq + 1 == kept.seq;
    if same { Ok(checkpoint) } else { Err(Damage::Another) }
}

/// Looks at every checkpoint and at the chain they form; the first that is not as it was made.
pub fn verify<'a>(store: &Store, all: &'a [Kept]) -> Result<(), (&'a Kept, Damage)> {
    let mut before: Option<&Kept> = None;
    for kept in all {
        if kept.previous.as_ref() != before.map(|before| &before.sha256) {
            return Err((kept, Damage::Chain));
        }
        read(store, kept).map_err(|damage| (kept, damage))?;
        before = Some(kept);
    }
    Ok(())
}

/// Makes a checkpoint of a loop that no engine works on.
pub fn create(mut store: Store, id: LoopId, by: &str) -> Result<Kept, EngineError> {
    let machine = Machine::new();
    let epoch = acquire(&machine, &mut store, id)?;
    let state = read_state(&store, id)?;
    let now = Clock::starting_after(Arc::new(machine), state.last_at).now();
    let mut journal = Journal::new(store, state, id, epoch, Secrets::among([]));
    let kept = journal.checkpoint(by, now);
    let flushed = journal.flush(now);
    let released = journal.store.release(id, epoch);
    flushed?;
    released?;
    Ok(kept)
}

impl Journal {
    /// Sums the loop up; durable with the next flush.
    pub(crate) fn checkpoint(&mut self, by: &str, now: Timestamp) -> Kept {
        let id = Uuid::now_v7();
        let made = checkpoint::build(&self.state, id, now);
        let text = if planted(Mutant::LosesCheckpoint) { String::new() } else { made.text() };
        let checkpoint = self.keep_whole(&text);
        let kept = Kept {
            seq: self.state.seq + 1,
            at: now,
            id,
            sha256: checkpoint.sha256.clone(),
            previous: made.previous.clone(),
            iteration: made.iteration,
            task: made.task.clone(),
            by: by.to_owned(),
        };
        let (iteration, task, previous) = (made.iteration, made.task, made.previous);
        self.record(
            Event::Checkpointed { iteration, task, id, checkpoint, previous, by: by.to_owned() },
            now,
        );
        kept
    }
}

impl Engine<'_> {
    pub(crate) fn checkpoint(&mut self, by: &str) {
        let now = self.clock.now();
        self.journal.checkpoint(by, now);
        crash::point("checkpoint made");
    }
}

/// What a text is kept under.
pub fn hash(text: &str) -> String {
    hex(&Sha256::digest(text.as_bytes()))
}
