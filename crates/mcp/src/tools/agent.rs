//! Tools by which the agent of a loop speaks for itself. They are told apart by iteration and attempt, so
//! that nobody speaks for an agent that came later.

use std::time::Duration;

use serde_json::{Value, json};
use wiggum_core::event::{Event, Request};
use wiggum_engine::reports::{self, Report};
use wiggum_engine::words::describe;

use super::Entry;
use crate::office::{Assignment, Office};
use crate::refusal::Refusal;

/// An engine that is just committing takes this long at most.
const PATIENCE: Duration = Duration::from_secs(5);

pub(super) fn entries() -> Vec<Entry> {
    Vec::new()
}

/// Puts something before the engine of the agent's own loop, and says what became of it.
pub(super) fn report(office: &Office, of: &Assignment, request: Request) -> Result<Value, Refusal> {
    let loops = office.loops()?;
    let record = office.select(&loops, None)?;
    let current = loops.status(&record)?.current;
    let is_current = current.is_some_and(|now| (now.iteration, now.attempt) == (of.iteration, of.attempt));
    if !is_current {
        return Err(Refusal::new(format!(
            "iteration {}, attempt {} is over: this came too late and was refused",
            of.iteration, of.attempt
        ))
        .hint("stop working; another attempt has begun, or the loop has ended"));
    }
    let before = loops.store.last_seq(record.id)?;
    let report = Report { iteration: of.iteration, attempt: of.attempt, request };
    let place = reports::put(&of.reports, &report)
        .map_err(|error| Refusal::new(format!("cannot reach the loop: {error}")))?;
    if !reports::is_taken(&place, PATIENCE) {
        let message = "the loop is busy and takes it up as soon as it can";
        return Ok(json!({ "state": "waiting", "message": message }));
    }
    let mut said = None;
    let mut refused = None;
    loops.store.for_each(record.id, before, |envelope| match &envelope.event {
        Event::Noticed { message, .. } if message.contains("refused") => refused = Some(message.clone()),
        event if is_about(event, &report) => said = Some(describe(event)),
        _ => {}
    })?;
    match (said, refused) {
        (Some(message), _) => Ok(json!({ "state": "done", "message": message })),
        (None, Some(why)) => Err(Refusal::new(why)),
        (None, None) => Ok(json!({ "state": "done", "message": "taken" })),
    }
}

/// Is this what became of it?
fn is_about(event: &Event, report: &Report) -> bool {
    match (&report.request, event) {
        (Request::Handoff, Event::HandoffStarted { .. }) => true,
        (Request::Checkpoint, Event::Checkpointed { by, .. }) => !by.is_empty(),
        _ => false,
    }
}
