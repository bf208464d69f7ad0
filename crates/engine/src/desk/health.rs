//! How loops are: the engine, the agent at work, and what stands in the way.

use jiff::Timestamp;
use serde::Serialize;
use wiggum_core::activity::Activity;
use wiggum_store::LoopRecord;
use wiggum_workspace::beneath;

use crate::desk::inbox::how_to_answer;
use crate::desk::{DeskError, Loops, Seen};
use crate::status::{BreakerStatus, HealthStatus, Status};

/// How one loop is.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoopHealth {
    pub loop_id: String,
    pub name: String,
    pub repository: String,
    pub backlog: String,
    /// initializing, running, paused, handoff, completing, completed, failed or terminated.
    pub state: String,
    /// What the loop does right now.
    pub activity: Activity,
    pub done: usize,
    pub total: usize,
    pub task: Option<String>,
    /// The number of the engine's process, if there is one.
    pub engine: Option<u32>,
    /// A run is unfinished, and its engine is gone.
    pub interrupted: bool,
    /// That engine gave nothing back: it was killed, or its machine failed.
    pub died: bool,
    /// Of the agent at work.
    pub health: Option<HealthStatus>,
    pub breaker: BreakerStatus,
    pub waiting: Option<String>,
    /// How each open question is answered.
    pub questions: Vec<String>,
    pub termination_reason: Option<String>,
}

/// Every loop of a store, in the order they were made.
pub fn all(loops: &Loops) -> Result<Vec<LoopHealth>, DeskError> {
    loops.all()?.iter().map(|record| of(loops, record)).collect()
}

/// One loop.
pub fn of(loops: &Loops, record: &LoopRecord) -> Result<LoopHealth, DeskError> {
    let Seen { mut status, lease } = loops.look(record)?;
    let engine = lease.alive().map(|holder| holder.pid);
    let written = last_beat(loops, record);
    let health = status.health.take();
    let unanswered = loops.unanswered(record, &status.questions)?;
    let named = if unanswered.is_empty() { None } else { loops.named_to_answer(record)? };
    Ok(LoopHealth {
        activity: status.activity,
        interrupted: status.activity.is_interrupted(),
        died: status.activity == Activity::Died,
        loop_id: status.loop_id,
        name: status.name,
        repository: status.repository,
        backlog: status.backlog,
        state: status.state,
        done: status.counts.done,
        total: status.counts.total,
        task: status.current.map(|current| current.task),
        health: health.map(|health| HealthStatus {
            last_beat: written.map_or(health.last_beat, |written| written.max(health.last_beat)),
            ..health
        }),
        breaker: status.breaker,
        waiting: status.waiting,
        questions: unanswered.iter().map(|question| how_to_answer(question, named.as_deref())).collect(),
        termination_reason: status.termination_reason,
        engine,
    })
}

/// The engine tells the last sign of progress in the status file only: it is not worth a transaction.
fn last_beat(loops: &Loops, record: &LoopRecord) -> Option<Timestamp> {
    let text = beneath::text_of(&loops.dir.loop_dir(record.id).join("status.json")).ok()?;
    serde_json::from_str::<Status>(&text).ok()?.health.map(|health| health.last_beat)
}
