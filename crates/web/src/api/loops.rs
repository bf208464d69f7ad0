//! Loops: all of them, one of them at any moment, what it cost, how it is, what it asks.

use std::sync::Arc;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wiggum_core::activity::Activity;
use wiggum_core::state::Loop;
use wiggum_engine::checkpoints::Kept;
use wiggum_engine::desk::cost::{self, By};
use wiggum_engine::desk::health::{self, LoopHealth};
use wiggum_engine::desk::inbox::Letter;
use wiggum_engine::desk::machine::Registered;
use wiggum_engine::desk::{Loops, Seen};
use wiggum_engine::status::{self, Status};
use wiggum_store::LoopRecord;

use super::{At, Part, state_at};
use crate::books::Books;
use crate::refusal::Refusal;
use crate::routes::{Nothing, Route};

/// Points of a curve that a page can show; the rest is left out evenly.
const POINTS: usize = 2000;
const MOST_CHECKPOINTS: usize = 1000;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::look(
            "/loops",
            "All loops of the repository in the order they were made, and those of this machine's others",
            |books, _, _: Nothing| all(books),
        ),
        Route::look(
            "/inbox",
            "The questions that wait for a person, in all loops",
            |books, _, _: Nothing| inbox(books),
        ),
        Route::look("/loops/{loop}", "Where a loop stands, or stood", |books, names, At { at }| {
            books.of(&names[0], |loops, record| one(books, loops, record, at))
        }),
        Route::look("/loops/{loop}/inbox", "The questions of one loop", |books, names, _: Nothing| {
            books.of(&names[0], |loops, record| {
                Ok(Inbox { questions: loops.inbox(Some(&record.id.to_string()))? })
            })
        }),
        Route::look(
            "/loops/{loop}/health",
            "How a loop's engine and agent are",
            |books, names, _: Nothing| {
                books.of(&names[0], |loops, record| Ok::<LoopHealth, Refusal>(health::of(loops, record)?))
            },
        ),
        Route::look(
            "/loops/{loop}/cost",
            "What a loop cost, how that came about, and what the rest will cost",
            |books, names, CostQuery { by, at }| {
                books.of(&names[0], |loops, record| {
                    let feed = books.feed(loops, record)?;
                    Ok::<_, Refusal>(shortened(feed.look(|chronicle| match at {
                        None => Ok(chronicle.cost(by)),
                        Some(at) => chronicle.at(&loops.store, at).map(|then| chronicle.cost_at(&then, by)),
                    })?))
                })
            },
        ),
        Route::look(
            "/loops/{loop}/checkpoints",
            "A loop's checkpoints, newest first",
            |books, names, part: Part| {
                books.of(&names[0], |loops, record| {
                    let feed = books.feed(loops, record)?;
                    Ok(feed.look(|chronicle| {
                        let all: Vec<_> = chronicle.checkpoints().iter().rev().collect();
                        let checkpoints = part.of(&all, MOST_CHECKPOINTS).iter();
                        Checkpoints {
                            total: all.len(),
                            checkpoints: checkpoints.map(|kept| checkpoint(kept)).collect(),
                        }
                    }))
                })
            },
        ),
    ]
}

#[derive(Serialize, JsonSchema)]
struct Inbox {
    questions: Vec<Letter>,
}

#[derive(Serialize, JsonSchema)]
struct AllLoops {
    /// The repository they work in.
    repository: String,
    loops: Vec<Summary>,
    /// Other repositories of this machine, the one heard of last first.
    elsewhere: Vec<OtherLoops>,
}

/// The loops of another repository, named by their whole ids.
#[derive(Clone, Serialize, JsonSchema)]
struct OtherLoops {
    repository: String,
    loops: Vec<Summary>,
    /// Why they cannot be told.
    problem: Option<String>,
}

/// What another workspace has for the lists.
pub(crate) struct Elsewhere {
    loops: OtherLoops,
    questions: Vec<Letter>,
}

/// A loop in a list.
#[derive(Clone, Serialize, JsonSchema)]
pub(crate) struct Summary {
    id: String,
    name: String,
    backlog: String,
    /// initializing, running, paused, handoff, completing, completed, failed or terminated.
    state: String,
    /// What the loop does right now.
    activity: Activity,
    engine_alive: bool,
    counts: status::Counts,
    /// The task at work.
    task: Option<String>,
    /// What it waits for, in words.
    waiting: Option<String>,
    questions: usize,
    iterations: u32,
    cost_usd: f64,
    last_seq: u64,
    updated_at: Option<Timestamp>,
    termination_reason: Option<String>,
}

/// Where a loop stands.
#[derive(Serialize, JsonSchema)]
pub(crate) struct LoopStatus {
    #[serde(flatten)]
    status: Status,
    engine_alive: bool,
    /// A run is unfinished, and its engine is gone.
    interrupted: bool,
    /// The newest event there is.
    last_seq: u64,
    created_at: Timestamp,
}

#[derive(Serialize, JsonSchema)]
struct Checkpoints {
    total: usize,
    checkpoints: Vec<Checkpoint>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Checkpoint {
    id: String,
    /// The event that recorded it.
    seq: u64,
    at: Timestamp,
    iteration: u32,
    task: Option<String>,
    sha256: String,
    previous: Option<String>,
    /// Who asked for it; empty where it belongs to the end of an iteration.
    by: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CostQuery {
    /// What the rows are told apart by
    #[serde(default)]
    by: By,
    /// As it was after the event of this number. Left out: as it is now
    at: Option<u64>,
}

impl LoopStatus {
    pub(crate) fn of(
        loops: &Loops,
        record: &LoopRecord,
        state: &Loop,
        now: Timestamp,
    ) -> Result<Self, Refusal> {
        let lease = loops.lease(record.id)?;
        let status = status::status(state, now).seen_with(lease.engine());
        let status = status.seen_with_answers(&loops.answered(record.id)?);
        Self::with(loops, record, Seen { status, lease })
    }

    /// As it was at a moment of the past. Who has left since says nothing about then.
    pub(crate) fn then(loops: &Loops, record: &LoopRecord, status: Status) -> Result<Self, Refusal> {
        Self::with(loops, record, Seen { status, lease: loops.lease(record.id)? })
    }

    fn with(loops: &Loops, record: &LoopRecord, Seen { status, lease }: Seen) -> Result<Self, Refusal> {
        Ok(Self {
            interrupted: status.activity.is_interrupted(),
            status,
            engine_alive: lease.alive().is_some(),
            last_seq: loops.store.last_seq(record.id)?,
            created_at: record.created_at,
        })
    }
}

fn all(books: &Books) -> Result<AllLoops, Refusal> {
    let repository = books.site.checkout.path().display().to_string();
    let loops = books.if_any(Vec::new(), |loops| {
        loops.all()?.iter().map(|record| summary(loops, record)).collect::<Result<_, Refusal>>()
    })?;
    let elsewhere = elsewhere(books)?.iter().map(|place| place.loops.clone()).collect();
    Ok(AllLoops { repository, loops, elsewhere })
}

fn inbox(books: &Books) -> Result<Inbox, Refusal> {
    let mut questions = books.if_any(Vec::new(), |loops| Ok(loops.inbox(None)?))?;
    questions.extend(elsewhere(books)?.iter().flat_map(|place| place.questions.iter().cloned()));
    Ok(Inbox { questions })
}

/// The other repositories; one that cannot be read says why, and is in nobody's way.
fn elsewhere(books: &Books) -> Result<Arc<Vec<Elsewhere>>, Refusal> {
    books.elsewhere(|| {
        let told = |place: &Registered| {
            let read = books.at(&place.checkout, |loops| {
                let all = loops.all()?;
                let told = all.iter().map(|record| summary(loops, record)).collect::<Result<_, Refusal>>()?;
                Ok((told, loops.inbox(None)?))
            });
            let ((loops, questions), problem) = match read {
                Ok(read) => (read.unwrap_or_default(), None),
                Err(refusal) => (Default::default(), Some(refusal.told.error)),
            };
            let repository = place.checkout.path().display().to_string();
            Elsewhere { loops: OtherLoops { repository, loops, problem }, questions }
        };
        Ok(books.registered()?.iter().map(told).collect())
    })
}

pub(crate) fn summary(loops: &Loops, record: &LoopRecord) -> Result<Summary, Refusal> {
    let Seen { status, lease } = loops.look(record)?;
    Ok(Summary {
        id: record.id.to_string(),
        name: status.name,
        backlog: status.backlog,
        state: status.state,
        activity: status.activity,
        engine_alive: lease.alive().is_some(),
        counts: status.counts,
        task: status.current.map(|current| current.task),
        waiting: status.waiting,
        questions: status.questions.len(),
        iterations: status.current_iteration,
        cost_usd: status.total_cost,
        last_seq: status.seq,
        updated_at: status.updated_at,
        termination_reason: status.termination_reason,
    })
}

pub(crate) fn checkpoint(kept: &Kept) -> Checkpoint {
    Checkpoint {
        id: kept.id.to_string(),
        seq: kept.seq,
        at: kept.at,
        iteration: kept.iteration,
        task: kept.task.as_ref().map(ToString::to_string),
        sha256: kept.sha256.clone(),
        previous: kept.previous.clone(),
        by: kept.by.clone(),
    }
}

/// The newest is known without folding the journal, so that a page is there at once.
fn one(books: &Books, loops: &Loops, record: &LoopRecord, at: Option<u64>) -> Result<LoopStatus, Refusal> {
    if at.is_none() {
        return LoopStatus::with(loops, record, loops.look(record)?);
    }
    let then = state_at(books, loops, record, at, |state| {
        status::status(state, state.last_at.unwrap_or(record.created_at))
    })?;
    LoopStatus::then(loops, record, then)
}

pub(crate) fn shortened(mut report: cost::Report) -> cost::Report {
    thin(&mut report.over_time);
    thin(&mut report.burn_down);
    report
}

/// Leaves out points evenly, and never the last.
fn thin<T>(points: &mut Vec<T>) {
    let step = points.len().div_ceil(POINTS).max(1);
    let last = points.len().saturating_sub(1);
    let mut number = 0;
    points.retain(|_| {
        number += 1;
        (number - 1) % step == 0 || number - 1 == last
    });
}
