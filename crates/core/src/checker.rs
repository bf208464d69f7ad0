//! The invariants every journal must keep, checked apart from the code that is meant to keep them.
//!
//! The checker folds the journal itself and looks at each event in the light of the state before
//! it. It runs on every journal in every test and in `wiggum doctor`.

mod budget;
mod calls;

use std::fmt;

use jiff::Timestamp;

use crate::event::{EndReason, Envelope, Event, Verdict};
use crate::health::Health;
use crate::ids::{Attempt, Iteration, Seq, TaskId};
use crate::state::{Loop, Stage};
use crate::task::FileStatus;
use crate::tasks::TaskState;
use crate::verdict::checks_for;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub seq: Seq,
    pub message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "event {}: {}", self.seq, self.message)
    }
}

/// Everything in a journal that must not happen, in order.
pub fn check<'a>(journal: impl IntoIterator<Item = &'a Envelope>) -> Vec<Violation> {
    let mut state = Loop::default();
    let mut calls = calls::Calls::default();
    let mut violations = Vec::new();
    for envelope in journal {
        let mut found = check_order(&state, envelope);
        found.extend(calls.check(&state, &envelope.event));
        found.extend(check_event(&state, &envelope.event, envelope.at));
        violations.extend(found.into_iter().map(|message| Violation { seq: envelope.seq, message }));
        state.apply(envelope);
    }
    violations
}

fn check_order(before: &Loop, envelope: &Envelope) -> Vec<String> {
    let mut found = Vec::new();
    if envelope.seq != before.seq.saturating_add(1) {
        found.push(format!("follows event {}", before.seq));
    }
    if envelope.epoch < before.epoch {
        found.push(format!("epoch {} after epoch {}", envelope.epoch, before.epoch));
    }
    found
}

fn check_event(before: &Loop, event: &Event, at: Timestamp) -> Option<String> {
    match event {
        Event::LoopCreated { .. } => (before.seq != 0).then(|| "the loop exists already".to_owned()),
        Event::RunStarted { run, .. } => {
            if before.run.active {
                return Some("a run starts inside a run".to_owned());
            }
            (*run != before.run.number.saturating_add(1))
                .then(|| format!("run {run} after run {}", before.run.number))
        }
        Event::RunResumed { .. } => (!before.run.active).then(|| "no run to resume".to_owned()),
        Event::IterationStarted { iteration, task, attempt, agent, .. } => {
            check_start(before, *iteration, task, *attempt)
                .or_else(|| check_agent(before, task, agent, at))
                .or_else(|| check_breaker(before, at))
                .or_else(|| budget::check_start(before, task, at).filter(|_| !before.is_own_work(task)))
        }
        Event::AgentEnded { iteration, attempt, .. } | Event::Charged { iteration, attempt, .. } => {
            check_fence(before, *iteration, *attempt, Stage::Agent)
        }
        Event::CallStarted { iteration, attempt, .. }
        | Event::WorkEnded { iteration, attempt, .. }
        | Event::AgentReported { iteration, attempt, .. } => {
            check_fence(before, *iteration, *attempt, Stage::Agent).or_else(|| check_worker(before, event))
        }
        Event::BudgetAlert { .. } => budget::check_alert(before, event),
        Event::BudgetAsked { granted, figures } => budget::check_asked(before, *granted, figures),
        Event::TreeTaken { iteration, attempt, .. }
        | Event::EvidenceGathered { iteration, attempt, .. }
        | Event::WorkInspected { iteration, attempt, .. } => {
            check_fence(before, *iteration, *attempt, Stage::Judging)
        }
        Event::Judged { iteration, attempt, verdict, signals: _ } => {
            check_fence(before, *iteration, *attempt, Stage::Judging)
                .or_else(|| check_verdict(before, verdict))
        }
        Event::TaskCompleted { iteration, task, attempt, verified, .. } => {
            check_completion(before, *iteration, task, *attempt, *verified)
        }
        Event::CommitRefused { iteration, attempt, .. } | Event::TreeAltered { iteration, attempt } => {
            check_landing(before, *iteration, *attempt)
        }
        Event::Interrupted { iteration, attempt, .. } => {
            let open = before.open.as_ref();
            let fits = open.is_some_and(|open| open.iteration == *iteration && open.attempt == *attempt);
            (!fits).then(|| format!("iteration {iteration} is not under way"))
        }
        Event::HandoffStarted { iteration, attempt, .. } => check_handoff(before, *iteration, *attempt),
        Event::Checkpointed { previous, checkpoint, .. } => {
            let last = before.checkpoints.last.as_ref().map(|last| &last.sha256);
            if previous.as_ref() != last {
                return Some("a checkpoint is not chained to the one before it".to_owned());
            }
            checkpoint.sha256.is_empty().then(|| "a checkpoint without a text".to_owned())
        }
        Event::RestoreStarted { to_seq, .. } => {
            if before.open.is_some() || before.restoring.is_some() {
                return Some("a restore in the middle of something else".to_owned());
            }
            (*to_seq > before.seq).then(|| "a restore of what has not happened".to_owned())
        }
        Event::Restored { id } => {
            let begun = before.restoring.as_ref().is_some_and(|restoring| restoring.checkpoint == *id);
            (!begun).then(|| "a restore that was not begun".to_owned())
        }
        Event::Nudged { iteration, attempt, .. } => check_fence(before, *iteration, *attempt, Stage::Agent),
        Event::HealthChanged { iteration, attempt, health, .. } => {
            check_fence(before, *iteration, *attempt, Stage::Agent).or_else(|| check_health(before, *health))
        }
        Event::QuestionAnswered { id, .. } => {
            (!before.questions.contains_key(id)).then(|| format!("{id} is not open"))
        }
        Event::QuestionRaised { id, .. } => {
            (id.0 != before.next_question.saturating_add(1)).then(|| format!("{id} is out of turn"))
        }
        Event::StatusWritten { task, status } => check_status(before, task, *status),
        Event::TaskFailed { task, .. } => check_failed(before, task),
        Event::RunEnded { reason, .. } => check_end(before, *reason),
        Event::WorkKept { task, .. } => {
            let due = before.unkept.as_ref().is_some_and(|(unkept, _)| unkept == task);
            (!due).then(|| format!("no unfinished work of {task} to keep"))
        }
        Event::BacklogRead { .. }
        | Event::BacklogBroken { .. }
        | Event::WorkspaceReset { .. }
        | Event::TaskSkipped { .. }
        | Event::TaskReopened { .. }
        | Event::StatusSet { .. }
        | Event::StatusPutBack { .. }
        | Event::Paused { .. }
        | Event::Resumed { .. }
        | Event::StopRequested { .. }
        | Event::UserChangesSetAside { .. }
        | Event::UserChangesPutBack { .. }
        | Event::Noticed { .. } => None,
    }
}

fn check_start(before: &Loop, iteration: Iteration, task: &TaskId, attempt: Attempt) -> Option<String> {
    if !before.run.active {
        return Some("an iteration outside any run".to_owned());
    }
    if let Some(open) = &before.open {
        return Some(format!("iteration {} is still under way", open.iteration));
    }
    if let Some((unkept, _)) = &before.unkept {
        return Some(format!("the unfinished work of {unkept} was not kept"));
    }
    if before.restoring.is_some() {
        return Some("an iteration starts in the middle of a restore".to_owned());
    }
    // Loops of before there were checkpoints have none.
    if before.checkpoints.due && before.checkpoints.last.is_some() {
        return Some(format!("iteration {} has no checkpoint", before.iterations));
    }
    if before.paused || before.run.stop_requested.is_some() {
        return Some("an iteration starts although the loop should not".to_owned());
    }
    if iteration != before.iterations.saturating_add(1) {
        return Some(format!("iteration {iteration} after iteration {}", before.iterations));
    }
    if before.policy.limits.iterations.is_some_and(|limit| before.run.iterations >= limit) {
        return Some("more iterations than the limit allows".to_owned());
    }
    let Some(entry) = before.task(task) else { return Some(format!("unknown task {task}")) };
    if entry.state != TaskState::Open {
        return Some(format!("{task} is {}", entry.state.name()));
    }
    if attempt != entry.attempts.saturating_add(1) {
        return Some(format!("attempt {attempt} of {task} after attempt {}", entry.attempts));
    }
    if entry.failures > entry.max_retries(&before.policy) {
        return Some(format!("{task} has used up its attempts"));
    }
    let unmet = |id: &&TaskId| before.task(id).is_some_and(|other| !other.is_done());
    entry.spec.depends_on.iter().find(unmet).map(|unmet| format!("{task} waits on {unmet}"))
}

fn check_agent(before: &Loop, task: &TaskId, agent: &str, at: Timestamp) -> Option<String> {
    let entry = before.task(task)?;
    if !entry.spec.work.is_agents() {
        return (!agent.is_empty()).then(|| format!("`{agent}` does {task}, which needs no agent"));
    }
    if !before.policy.agents.for_task(&entry.spec).contains(&agent) {
        return Some(format!("`{agent}` is not an agent for {task}"));
    }
    let why = before.agents.unavailable(agent, at)?;
    Some(format!("`{agent}` works although it cannot: {why}"))
}

/// Agents report, and the engine works, each on what is theirs.
fn check_worker(before: &Loop, event: &Event) -> Option<String> {
    let own = before.open.as_ref()?.own;
    let fits = own != matches!(event, Event::AgentReported { .. });
    (!fits).then(|| "somebody else works on it".to_owned())
}

fn check_breaker(before: &Loop, at: Timestamp) -> Option<String> {
    if before.breaker.opened_in(before.run.number).is_some() {
        return Some("an iteration starts in the run in which the breaker opened".to_owned());
    }
    let (_, until) = before.breaker.cooling(&before.policy.breaker)?;
    (at < until).then(|| format!("an iteration starts although the breaker is open until {until}"))
}

/// No step of the sequence is left out, but where an agent is ended without further ado.
fn check_health(before: &Loop, health: Health) -> Option<String> {
    let vitals = &before.open.as_ref()?.vitals;
    let rules = &before.policy.health;
    let abrupt = before.policy.agents.silence.is_some();
    let follows = match (vitals.health, health) {
        (Health::Terminated, _) => false,
        (Health::Healthy, Health::Degraded) => true,
        (Health::Degraded | Health::Stuck, Health::Stuck) => vitals.nudges < rules.nudges,
        (Health::Degraded | Health::Stuck, Health::Failing) => vitals.nudges >= rules.nudges,
        (Health::Degraded | Health::Stuck | Health::Failing, Health::Healthy)
        | (Health::Failing, Health::Terminated) => true,
        (_, Health::Terminated) => abrupt,
        (_, Health::Healthy | Health::Degraded | Health::Stuck | Health::Failing) => false,
    };
    (!follows).then(|| {
        let (from, to) = (vitals.health.name(), health.name());
        format!("the agent's health goes from {from} to {to} after {} nudges", vitals.nudges)
    })
}

/// The agent at work hands over, or the iteration that has just ended did.
fn check_handoff(before: &Loop, iteration: Iteration, attempt: Attempt) -> Option<String> {
    if before.open.is_some() {
        return check_fence(before, iteration, attempt, Stage::Agent);
    }
    let due = before.handoffs.due.as_ref();
    let fits = due.is_some_and(|(of, number, _)| (*of, *number) == (iteration, attempt));
    (!fits).then(|| format!("iteration {iteration} has nothing to hand over"))
}

fn check_fence(before: &Loop, iteration: Iteration, attempt: Attempt, stage: Stage) -> Option<String> {
    let Some(open) = &before.open else { return Some(format!("no iteration {iteration} under way")) };
    if (open.iteration, open.attempt) != (iteration, attempt) {
        return Some(format!("result of a stale attempt: iteration {iteration}, attempt {attempt}"));
    }
    (open.stage != stage).then(|| format!("iteration {iteration} is in {:?}, not {stage:?}", open.stage))
}

fn check_verdict(before: &Loop, verdict: &Verdict) -> Option<String> {
    let open = before.open.as_ref()?;
    if let Verdict::Unavailable { trouble, .. } = verdict
        && open.trouble.as_ref() != Some(trouble)
    {
        return Some("an agent is called unavailable that did not say so".to_owned());
    }
    if let Verdict::HandedOver { trigger } = verdict
        && open.handoff.as_ref().is_none_or(|handoff| handoff.trigger != *trigger)
    {
        return Some("handed over although nothing called for it".to_owned());
    }
    let Verdict::Accepted { verified } = verdict else { return None };
    if before.git && !open.tree_taken {
        return Some("accepted before its tree was taken".to_owned());
    }
    if open.claim.is_none() && !before.policy.checks.complete_without_claim {
        return Some("accepted without a claim".to_owned());
    }
    if open.error.is_some() || open.evidence.iter().any(|evidence| !evidence.passed()) {
        return Some("accepted against the evidence".to_owned());
    }
    let wanted = checks_for(&before.policy, &before.task(&open.task)?.spec);
    let missing = wanted.iter().find(|check| {
        !open.evidence.iter().any(|seen| seen.command == check.command && seen.name == check.name)
    });
    if let Some(missing) = missing {
        return Some(format!("accepted without the check \"{}\"", missing.name));
    }
    (*verified != open.is_witnessed()).then(|| "verified must mean that there is evidence".to_owned())
}

fn check_landing(before: &Loop, iteration: Iteration, attempt: Attempt) -> Option<String> {
    let Some(open) = &before.open else { return Some(format!("no iteration {iteration} under way")) };
    let fits =
        (open.iteration, open.attempt) == (iteration, attempt) && matches!(open.stage, Stage::Landing { .. });
    (!fits).then(|| format!("iteration {iteration} was not accepted"))
}

fn check_completion(
    before: &Loop,
    iteration: Iteration,
    task: &TaskId,
    attempt: Attempt,
    verified: bool,
) -> Option<String> {
    if let Some(problem) = check_landing(before, iteration, attempt) {
        return Some(problem);
    }
    let open = before.open.as_ref()?;
    if open.task != *task {
        return Some(format!("iteration {iteration} is about {}", open.task));
    }
    (open.stage != Stage::Landing { verified }).then(|| "verified differs from the verdict".to_owned())
}

fn check_status(before: &Loop, task: &TaskId, status: FileStatus) -> Option<String> {
    let entry = before.task(task)?;
    let landing = before
        .open
        .as_ref()
        .is_some_and(|open| open.task == *task && matches!(open.stage, Stage::Landing { .. }));
    let expected = if landing { FileStatus::Done } else { entry.state.file_status() };
    (status != expected)
        .then(|| format!("{task} is {}, but {} was written", entry.state.name(), status.name()))
}

fn check_failed(before: &Loop, task: &TaskId) -> Option<String> {
    let entry = before.task(task)?;
    let used_up = entry.failures > entry.max_retries(&before.policy) || budget::is_task_used_up(before, task);
    (!used_up).then(|| format!("{task} has attempts left"))
}

fn check_end(before: &Loop, reason: EndReason) -> Option<String> {
    if !before.run.active {
        return Some("no run to end".to_owned());
    }
    let counts = before.tasks.counts();
    match reason {
        EndReason::GoalAchieved => {
            let left = counts.total.saturating_sub(counts.done + counts.skipped);
            (left > 0).then(|| format!("goal achieved with {left} tasks left"))
        }
        EndReason::MaxIterations => {
            let reached = before.policy.limits.iterations.is_some_and(|limit| before.run.iterations >= limit);
            (!reached).then(|| "the iteration limit was not reached".to_owned())
        }
        EndReason::ExplicitStop => {
            before.run.stop_requested.is_none().then(|| "nobody asked to stop".to_owned())
        }
        EndReason::CircuitBreakerOpen => {
            let opened = before.breaker.opened_in(before.run.number).is_some();
            (!opened).then(|| "the breaker did not open in this run".to_owned())
        }
        EndReason::HealthFailure => {
            let limit = before.policy.health.max_terminations;
            let reached = limit > 0 && before.run.terminations >= limit;
            (!reached).then(|| "too few agents were ended for silence".to_owned())
        }
        EndReason::BudgetExhausted => budget::check_end(before),
        EndReason::ConsecutiveErrors
        | EndReason::MaxDuration
        | EndReason::NoProgress
        | EndReason::PersonNeeded => None,
    }
}
