//! The moments of a loop that a person would tell about.

use jiff::Timestamp;
use serde::Serialize;
use wiggum_core::event::{Envelope, Event};
use wiggum_core::state::verdict_name;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Moment {
    pub at: Timestamp,
    pub seq: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    pub what: String,
}

/// Nothing for what is only a step on the way.
pub(super) fn moment(envelope: &Envelope) -> Option<Moment> {
    let (task, what) = match &envelope.event {
        Event::RunStarted { run, agent, .. } => (None, format!("run {run} started with {agent}")),
        Event::RunResumed { run, .. } => (None, format!("run {run} goes on after an interruption")),
        Event::BacklogBroken { message } => (None, format!("the backlog cannot be read: {message}")),
        Event::IterationStarted { iteration, task, attempt, .. } => {
            (Some(task), format!("iteration {iteration}, attempt {attempt}"))
        }
        Event::Judged { iteration, verdict, .. } => {
            (None, format!("iteration {iteration}: {}", verdict_name(verdict)))
        }
        Event::TaskCompleted { task, verified, .. } => {
            (Some(task), if *verified { "done" } else { "done, unverified" }.to_owned())
        }
        Event::CommitRefused { iteration, .. } => (None, format!("iteration {iteration}: commit refused")),
        Event::TaskFailed { task, reason } => (Some(task), format!("failed: {reason}")),
        Event::TaskSkipped { task, by } => (Some(task), format!("skipped by {by}")),
        Event::TaskReopened { task, by } => (Some(task), format!("opened again by {by}")),
        Event::QuestionRaised { id, task, question } => {
            (task.as_ref(), format!("{id} asked: {}", question.summary))
        }
        Event::QuestionAnswered { id, by, .. } => (None, format!("{id} answered by {by}")),
        Event::Nudged { by, text, .. } => (None, format!("nudged by {by}: {text}")),
        Event::HealthChanged { iteration, health, detail, .. } => {
            (None, format!("iteration {iteration}: the agent is {}: {detail}", health.name()))
        }
        Event::HandoffStarted { iteration, trigger, .. } => {
            (None, format!("iteration {iteration} hands over: {trigger}"))
        }
        Event::RestoreStarted { to_seq, by, .. } => (None, format!("{by} goes back to event {to_seq}")),
        Event::Restored { .. } => (None, "back at the checkpoint".to_owned()),
        Event::Paused { by } => (None, format!("paused by {by}")),
        Event::Resumed { by } => (None, format!("resumed by {by}")),
        Event::StopRequested { by } => (None, format!("stop asked for by {by}")),
        Event::Interrupted { iteration, reason, .. } => {
            (None, format!("iteration {iteration} interrupted: {reason}"))
        }
        Event::BudgetAlert { scope, task, unit, spent, limit, .. } => {
            let (spent, limit) = (unit.show(*spent), unit.show(*limit));
            (task.as_ref(), format!("{spent} of {limit} spent (budget: {})", scope.name()))
        }
        Event::SkipAsked { task, by, .. } => (Some(task), format!("to be skipped, by {by}")),
        Event::RequestRefused { task, why, .. } => (task.as_ref(), why.clone()),
        Event::Noticed { task, message } => (task.as_ref(), message.clone()),
        Event::RunEnded { reason, detail, .. } => (None, format!("run ended: {}: {detail}", reason.name())),
        _ => return None,
    };
    Some(Moment { at: envelope.at, seq: envelope.seq, task: task.map(ToString::to_string), what })
}
