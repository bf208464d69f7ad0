//! How loops are: the engine, the agent at work, and what stands in the way.

use jiff::Timestamp;
use serde::Serialize;
use wiggum_store::LoopRecord;

use crate::desk::inbox::how_to_answer;
use crate::desk::{DeskError, Lease, Loops};
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
    // Who is alive comes first: a run that ends in between is then seen as ended, not as lost.
    let (engine, dead) = match loops.lease(record.id)? {
        Lease::Alive(holder) => (Some(holder.pid), false),
        Lease::Dead(_) => (None, true),
        Lease::None => (None, false),
    };
    let mut status = loops.status(record)?;
    let written = last_beat(loops, record);
    let health = status.health.take().filter(|_| engine.is_some());
    let interrupted = engine.is_none() && !status.is_at_rest() && status.run > 0;
    Ok(LoopHealth {
        interrupted,
        died: interrupted && dead,
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
        waiting: status.waiting.filter(|_| engine.is_some()),
        questions: status.questions.iter().map(how_to_answer).collect(),
        termination_reason: status.termination_reason,
        engine,
    })
}

/// The engine tells the last sign of life in the status file only: it is not worth a transaction.
fn last_beat(loops: &Loops, record: &LoopRecord) -> Option<Timestamp> {
    let text = std::fs::read_to_string(loops.dir.loop_dir(record.id).join("status.json")).ok()?;
    serde_json::from_str::<Status>(&text).ok()?.health.map(|health| health.last_beat)
}
