//! What must be true before an iteration starts.

use jiff::Timestamp;

use super::{Broken, Rule};
use crate::ids::{Attempt, Iteration, TaskId};
use crate::state::{Loop, Workspace};
use crate::tasks::{TaskEntry, TaskState};

pub(super) fn check(
    before: &Loop,
    version: u32,
    iteration: Iteration,
    task: &TaskId,
    attempt: Attempt,
) -> Option<Broken> {
    check_rest(before)
        .or_else(|| check_tree(before, task))
        .or_else(|| check_number(before, version, iteration, task))
        .or_else(|| match before.task(task) {
            Some(entry) => check_task(before, entry, attempt),
            None => Some((Rule::TaskKnown, format!("unknown task {task}"))),
        })
}

/// The loop runs, and is through with what came before.
fn check_rest(before: &Loop) -> Option<Broken> {
    if !before.run.active {
        return Some((Rule::StartInRun, "an iteration outside any run".to_owned()));
    }
    if let Some(open) = before.open.here() {
        return Some((Rule::StartAlone, format!("iteration {} is still under way", open.iteration)));
    }
    if before.restoring.is_some() {
        let message = "an iteration starts in the middle of a restore".to_owned();
        return Some((Rule::StartAfterRestore, message));
    }
    // Loops of before there were checkpoints have none.
    if before.checkpoints.due && before.checkpoints.last.is_some() {
        let message = format!("iteration {} has no checkpoint", before.iterations);
        return Some((Rule::StartAfterCheckpoint, message));
    }
    if before.paused {
        return Some((Rule::StartUnpaused, "an iteration starts although the loop is paused".to_owned()));
    }
    let by = before.run.stop_requested.as_ref()?;
    Some((Rule::StartUnstopped, format!("an iteration starts although {by} asked to stop")))
}

/// Work carries over within a task, never across tasks.
fn check_tree(before: &Loop, task: &TaskId) -> Option<Broken> {
    if let Some((unkept, _)) = &before.unkept {
        return Some((Rule::StartAfterKeeping, format!("the unfinished work of {unkept} was not kept")));
    }
    match &before.workspace {
        Workspace::Holds(holder) if before.git && holder != task => {
            Some((Rule::StartOnOwnWork, format!("{task} starts in the unfinished work of {holder}")))
        }
        Workspace::Holds(_) | Workspace::Clean => None,
    }
}

fn check_number(before: &Loop, version: u32, iteration: Iteration, task: &TaskId) -> Option<Broken> {
    // In the first version the number of an interrupted iteration went to whichever task came next.
    let anybodys = version < 2 && before.interrupted.values().any(|number| *number == iteration);
    let expected = before.next_number(task);
    if iteration != expected && !anybodys {
        let message = format!("iteration {iteration} of {task}, which should be number {expected}");
        return Some((Rule::IterationNumber, message));
    }
    let limits = &before.policy.limits;
    let is_retry = before.task(task).is_some_and(|entry| entry.came_to_nothing);
    let used_up = limits.iterations.is_some_and(|limit| before.run.iterations >= limit);
    (used_up && (limits.retries_count || !is_retry))
        .then(|| (Rule::IterationLimit, "more iterations than the limit allows".to_owned()))
}

fn check_task(before: &Loop, entry: &TaskEntry, attempt: Attempt) -> Option<Broken> {
    let task = &entry.spec.id;
    if entry.state != TaskState::Open {
        return Some((Rule::TaskOpen, format!("{task} is {}", entry.state.name())));
    }
    if attempt != entry.attempts.saturating_add(1) {
        let message = format!("attempt {attempt} of {task} after attempt {}", entry.attempts);
        return Some((Rule::AttemptNumber, message));
    }
    if entry.failures > entry.max_retries(&before.policy) {
        return Some((Rule::AttemptsLeft, format!("{task} has used up its attempts")));
    }
    let unmet = |id: &&TaskId| before.task(id).is_some_and(|other| !other.is_done());
    let unmet = entry.spec.depends_on.iter().find(unmet)?;
    Some((Rule::DependenciesMet, format!("{task} waits on {unmet}")))
}

pub(super) fn check_agent(before: &Loop, task: &TaskId, agent: &str, at: Timestamp) -> Option<Broken> {
    let entry = before.task(task)?;
    if !entry.spec.work.is_agents() {
        let message = || format!("`{agent}` does {task}, which needs no agent");
        return (!agent.is_empty()).then(|| (Rule::AgentNeeded, message()));
    }
    if !before.policy.agents.for_task(&entry.spec).contains(&agent) {
        return Some((Rule::AgentOfTask, format!("`{agent}` is not an agent for {task}")));
    }
    let why = before.agents.unavailable(agent, at)?;
    Some((Rule::AgentAvailable, format!("`{agent}` works although it cannot: {why}")))
}

/// How to go on from checks that fail already is settled before money is spent.
pub(super) fn check_baseline(before: &Loop, task: &TaskId, accepted: bool) -> Option<Broken> {
    let is_repair = before.baseline.repair.as_ref() == Some(task);
    if accepted || is_repair || before.is_own_work(task) {
        return None;
    }
    crate::decide::baseline_due(before)
        .map(|_| (Rule::BaselineSettled, format!("{task} starts although the checks fail already")))
}

pub(super) fn check_breaker(before: &Loop, at: Timestamp) -> Option<Broken> {
    if before.breaker.opened_in(before.run.number).is_some() {
        let message = "an iteration starts in the run in which the breaker opened".to_owned();
        return Some((Rule::BreakerEndsRun, message));
    }
    let (_, until) = before.breaker.cooling(&before.policy.breaker)?;
    (at < until).then(|| {
        (Rule::BreakerCools, format!("an iteration starts although the breaker is open until {until}"))
    })
}
