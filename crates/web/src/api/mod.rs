//! What can be asked and done, path by path.

pub(crate) mod acts;
pub(crate) mod attempts;
pub(crate) mod events;
pub(crate) mod loops;
pub(crate) mod tasks;

use schemars::JsonSchema;
use serde::Deserialize;
use wiggum_core::activity::EngineState;
use wiggum_core::state::Loop;
use wiggum_engine::desk::Loops;
use wiggum_store::LoopRecord;

use crate::books::Books;
use crate::refusal::Refusal;
use crate::routes::Route;

/// Every path there is, the stream of events apart.
pub(crate) fn all() -> Vec<Route> {
    [loops::routes(), tasks::routes(), attempts::routes(), events::routes(), acts::routes()]
        .into_iter()
        .flatten()
        .collect()
}

/// Names a moment.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct At {
    /// The loop as it was after the event of this number. Left out: as it is now
    pub(crate) at: Option<u64>,
}

/// A part of something long.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Part {
    /// Leave out so many of the first
    #[serde(default)]
    pub(crate) from: u64,
    /// At most so many
    pub(crate) limit: Option<u64>,
}

impl Part {
    /// The part of a list, of which at most so many are told at once.
    pub(crate) fn of<'a, T>(&self, all: &'a [T], most: usize) -> &'a [T] {
        let from = usize::try_from(self.from).unwrap_or(usize::MAX).min(all.len());
        let limit = self.limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(most).min(most);
        &all[from..from.saturating_add(limit).min(all.len())]
    }
}

/// Looks at a loop as it is, or as it was.
/// What was found of a loop's engine. Who has left since says nothing about a moment of the past.
pub(crate) fn engine_at(loops: &Loops, record: &LoopRecord, at: Option<u64>) -> Result<EngineState, Refusal> {
    Ok(match at {
        None => loops.lease(record.id)?.engine(),
        Some(_) => EngineState::Alive,
    })
}

pub(crate) fn state_at<T>(
    books: &Books,
    loops: &Loops,
    record: &LoopRecord,
    at: Option<u64>,
    look: impl FnOnce(&Loop) -> T,
) -> Result<T, Refusal> {
    let feed = books.feed(loops, record)?;
    match at {
        None => Ok(feed.look(|chronicle| look(chronicle.head()))),
        Some(seq) => Ok(look(&feed.look(|chronicle| chronicle.at(&loops.store, seq))?)),
    }
}
