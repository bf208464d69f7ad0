//! What must be true of a world at its end, seen from outside: its journal, its files, its leases.

use std::collections::BTreeSet;
use std::fs;

use wiggum_core::budget::AtLimit;
use wiggum_core::event::{Envelope, Event};
use wiggum_core::question::{Meaning, meaning};
use wiggum_core::state::Loop;
use wiggum_core::task::{FileStatus, Work};
use wiggum_core::tasks::TaskState;
use wiggum_engine::state_dir::StateDir;
use wiggum_engine::status::Status;

use crate::theatre::Stage;
use crate::tools;

/// What journal, files and the truth say of each other.
pub(crate) fn outcome(journal: &[Envelope], state: &Loop, stage: &Stage) -> Vec<String> {
    let mut found = completions(journal, state, stage);
    found.extend(tools::unrecorded(journal, stage));
    found.extend(backlog(state, stage));
    found.extend(left_behind(state, stage));
    found.extend(overspent(state, stage));
    found
}

/// A budget that denies is overspent by an answer of the model, or by two where an agent does not end by
/// itself.
fn overspent(state: &Loop, stage: &Stage) -> Option<String> {
    let budget = &state.policy.budget;
    let limit = budget.own.max_cost.filter(|_| budget.action == AtLimit::Deny)?;
    let most = limit + 2.0 * stage.dearest_answer;
    let spent = state.usage.cost_usd;
    (spent > most + 1e-9).then(|| {
        format!("${spent:.2} of ${limit:.2} were spent, the dearest answer was ${:.2}", stage.dearest_answer)
    })
}

/// What counts as done was done, and somebody said so.
fn completions(journal: &[Envelope], state: &Loop, stage: &Stage) -> Vec<String> {
    let mut found = Vec::new();
    let mut completed = BTreeSet::new();
    let mut before = Loop::default();
    for envelope in journal {
        if let Event::QuestionAnswered { id, answer, .. } = &envelope.event
            && let Some(asked) = before.questions.get(id)
            && meaning(&asked.question, answer) == Meaning::Done
        {
            completed.extend(asked.task.clone());
        }
        before.apply(envelope);
        if let Event::TaskCompleted { task, verified, .. } = &envelope.event {
            completed.insert(task.clone());
            let work = state.task(task).map(|entry| &entry.spec.work);
            let visible = !matches!(work, Some(Work::Notice { .. }));
            if *verified && visible && !stage.is_done(task.as_str()) {
                found.push(format!("event {}: {task} is verified, but its work is not there", envelope.seq));
            }
        }
    }
    for entry in state.tasks.iter() {
        let id = entry.spec.id.as_str();
        let accounted = completed.contains(&entry.spec.id) || stage.done_by_hand.contains(id);
        if matches!(entry.state, TaskState::Done { .. }) && !accounted {
            found.push(format!("{id} is done, but nothing on record says why"));
        }
    }
    found
}

/// The statuses in the file are those of the journal.
fn backlog(state: &Loop, stage: &Stage) -> Vec<String> {
    // Nobody has come to look at the file since.
    let unread = stage.unticked_at.is_some_and(|length| u64::try_from(length) == Ok(state.seq));
    if state.backlog_broken.is_some() || stage.mended.is_some() || state.seq == 0 || unread {
        return Vec::new();
    }
    let Some(backlog) = stage.read_backlog() else { return vec!["the backlog cannot be read".to_owned()] };
    let mut found = Vec::new();
    for task in backlog.tasks() {
        let Some(entry) = state.task(&task.id) else { continue };
        let said = entry.state.file_status();
        let expected = if backlog.dialect().can_say(said) { said } else { FileStatus::Open };
        if task.status != expected {
            let (file, journal) = (task.status.name(), entry.state.name());
            found.push(format!("{} is {journal} in the journal, but {file} in the backlog", task.id));
        }
    }
    for entry in state.tasks.iter() {
        if backlog.task(entry.spec.id.as_str()).is_none() {
            found.push(format!("{} is gone from the backlog", entry.spec.id));
        }
    }
    found
}

/// After an engine that left in order, nobody holds the loop and its status is that of the journal.
fn left_behind(state: &Loop, stage: &Stage) -> Vec<String> {
    let Some(id) = stage.loop_id.filter(|_| stage.crashed_at.is_none()) else { return Vec::new() };
    let mut found = Vec::new();
    if stage.witness.holder().is_some() {
        found.push("the lease is still held".to_owned());
    }
    let file = stage.workspace.join(StateDir::shared_loop_dir(id)).join("status.json");
    let status = fs::read_to_string(&file).ok().and_then(|text| serde_json::from_str::<Status>(&text).ok());
    match status {
        None => found.push("status.json cannot be read".to_owned()),
        Some(status) if status.seq != state.seq => {
            found.push(format!("status.json is of event {}, the journal ends at {}", status.seq, state.seq));
        }
        Some(_) => {}
    }
    found
}

/// The time of all runs together, as the loop counts it.
pub(crate) fn active_ms(journal: &[Envelope]) -> u64 {
    let mut state = Loop::default();
    let mut before = 0;
    for envelope in journal {
        if matches!(envelope.event, Event::RunStarted { .. }) {
            before += state.run.active_ms;
        }
        state.apply(envelope);
    }
    before + state.run.active_ms
}
