//! The invariants every journal must keep, checked apart from the code that is meant to keep them.
//!
//! The checker folds the journal itself and looks at each event in the light of the state before
//! it. It runs on every journal in every test and in `wiggum doctor`. [`Rule`] names them all, each with
//! a mutant that breaks it.

mod budget;
mod calls;
mod end;
mod rule;
mod start;
mod verdict;

use std::fmt;

pub use rule::Rule;

use crate::event::{Envelope, Event};
use crate::health::Health;
use crate::ids::{Attempt, Iteration, Seq, TaskId};
use crate::state::{Loop, OpenIteration, Stage};
use crate::task::FileStatus;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub seq: Seq,
    pub rule: Rule,
    pub message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "event {}: {}", self.seq, self.message)
    }
}

/// Which rule is broken, and in which words.
type Broken = (Rule, String);

/// Everything in a journal that must not happen, in order.
pub fn check<'a>(journal: impl IntoIterator<Item = &'a Envelope>) -> Vec<Violation> {
    let mut state = Loop::default();
    let mut calls = calls::Calls::default();
    let mut violations = Vec::new();
    for envelope in journal {
        let mut found = check_order(&state, envelope);
        found.extend(calls.check(&state, &envelope.event));
        found.extend(check_event(&state, envelope));
        let seq = envelope.seq;
        violations.extend(found.into_iter().map(|(rule, message)| Violation { seq, rule, message }));
        state.apply(envelope);
    }
    violations
}

fn check_order(before: &Loop, envelope: &Envelope) -> Vec<Broken> {
    let mut found = Vec::new();
    if envelope.seq != before.seq.saturating_add(1) {
        found.push((Rule::Sequence, format!("follows event {}", before.seq)));
    }
    if envelope.epoch < before.epoch {
        found.push((Rule::Epoch, format!("epoch {} after epoch {}", envelope.epoch, before.epoch)));
    }
    found
}

fn check_event(before: &Loop, envelope: &Envelope) -> Option<Broken> {
    let Envelope { event, at, v, .. } = envelope;
    let at = *at;
    match event {
        Event::LoopCreated { .. } => {
            (before.seq != 0).then(|| (Rule::CreatedOnce, "the loop exists already".to_owned()))
        }
        Event::RunStarted { run, .. } => check_run(before, *run),
        Event::RunResumed { .. } => {
            (!before.run.active).then(|| (Rule::RunToResume, "no run to resume".to_owned()))
        }
        Event::IterationStarted { iteration, task, attempt, agent, accepted, .. } => {
            let by_agent = !accepted && !before.is_own_work(task);
            start::check(before, *v, *iteration, task, *attempt)
                .or_else(|| start::check_agent(before, task, agent, at).filter(|_| !accepted))
                .or_else(|| start::check_baseline(before, task, *accepted))
                .or_else(|| start::check_breaker(before, at).filter(|_| !accepted))
                .or_else(|| budget::check_start(before, task, at).filter(|_| by_agent))
        }
        Event::AgentEnded { iteration, attempt, .. }
        | Event::Charged { iteration, attempt, .. }
        | Event::BudgetReached { iteration, attempt, .. }
        | Event::UsageSeen { iteration, attempt, .. }
        | Event::Nudged { iteration, attempt, .. } => {
            verdict::check_fence(before, *iteration, *attempt, Stage::Agent)
        }
        Event::SkipAsked { iteration, attempt, task, .. } => {
            let fits = |open: &OpenIteration| open.attempt == *attempt && open.task == *task;
            let fits = before.open.get(*iteration).is_some_and(fits);
            (!fits).then(|| (Rule::FenceOpen, format!("{task} is not worked on in iteration {iteration}")))
        }
        Event::CallStarted { iteration, attempt, .. }
        | Event::WorkEnded { iteration, attempt, .. }
        | Event::AgentReported { iteration, attempt, .. } => {
            verdict::check_fence(before, *iteration, *attempt, Stage::Agent)
                .or_else(|| check_worker(before, *iteration, event))
        }
        Event::BudgetAlert { .. } => budget::check_alert(before, event),
        Event::BudgetAsked { granted, figures } => budget::check_asked(before, *granted, figures),
        Event::TreeTaken { iteration, attempt, .. } | Event::WorkInspected { iteration, attempt, .. } => {
            verdict::check_fence(before, *iteration, *attempt, Stage::Judging)
        }
        Event::EvidenceGathered { iteration, attempt, .. } => {
            verdict::check_fence(before, *iteration, *attempt, Stage::Judging)
                .or_else(|| verdict::check_evidence(before, *iteration))
        }
        Event::Judged { iteration, attempt, verdict, signals: _ } => {
            verdict::check_fence(before, *iteration, *attempt, Stage::Judging)
                .or_else(|| verdict::check(before, *iteration, verdict))
        }
        Event::TaskCompleted { iteration, task, attempt, verified, .. } => {
            verdict::check_completion(before, *iteration, task, *attempt, *verified)
        }
        Event::CommitRefused { iteration, attempt, .. } => {
            verdict::check_landing(before, *iteration, *attempt, Rule::RefusedAccepted)
        }
        Event::TreeAltered { iteration, attempt } => {
            verdict::check_landing(before, *iteration, *attempt, Rule::AlteredAccepted)
        }
        Event::Interrupted { iteration, attempt, .. } | Event::CommitsFound { iteration, attempt, .. } => {
            let fits = before.open.get(*iteration).is_some_and(|open| open.attempt == *attempt);
            (!fits).then(|| (Rule::InterruptedOnce, format!("iteration {iteration} is not under way")))
        }
        Event::HandoffStarted { iteration, attempt, .. } => check_handoff(before, *iteration, *attempt),
        Event::Checkpointed { previous, checkpoint, .. } => {
            check_checkpoint(before, previous.as_deref(), &checkpoint.sha256)
        }
        Event::RestoreStarted { to_seq, .. } => check_restore(before, *to_seq),
        Event::Restored { id } => {
            let begun = before.restoring.as_ref().is_some_and(|restoring| restoring.checkpoint == *id);
            (!begun).then(|| (Rule::RestoreBegun, "a restore that was not begun".to_owned()))
        }
        Event::HealthChanged { iteration, attempt, health, .. } => {
            verdict::check_fence(before, *iteration, *attempt, Stage::Agent)
                .or_else(|| check_health(before, *iteration, *health))
        }
        Event::QuestionAnswered { id, .. } => {
            (!before.questions.contains_key(id)).then(|| (Rule::AnswerOfOpen, format!("{id} is not open")))
        }
        Event::QuestionRaised { id, .. } => (id.0 != before.next_question.saturating_add(1))
            .then(|| (Rule::QuestionNumber, format!("{id} is out of turn"))),
        Event::StatusWritten { task, status } => check_status(before, task, *status),
        Event::TaskFailed { task, .. } => check_failed(before, task),
        Event::RunEnded { reason, .. } => end::check(before, *reason, at),
        Event::WorkKept { task, .. } => {
            let due = before.unkept.as_ref().is_some_and(|(unkept, _)| unkept == task);
            (!due).then(|| (Rule::KeptOnce, format!("no unfinished work of {task} to keep")))
        }
        Event::WorkspaceReset { .. } => check_reset(before),
        Event::BaselineStarted { .. } | Event::BaselineChecked { .. } | Event::CleanChecked { .. } => {
            check_untouched(before)
        }
        Event::LoopMoved { .. }
        | Event::SkipsCommitted { .. }
        | Event::TaskBaselineChecked { .. }
        | Event::RepairPlanned { .. }
        | Event::BacklogRead { .. }
        | Event::BacklogBroken { .. }
        | Event::TaskSkipped { .. }
        | Event::TaskReopened { .. }
        | Event::StatusSet { .. }
        | Event::StatusPutBack { .. }
        | Event::RequestRefused { .. }
        | Event::Paused { .. }
        | Event::Resumed { .. }
        | Event::StopRequested { .. }
        | Event::UserChangesSetAside { .. }
        | Event::UserChangesPutBack { .. }
        | Event::Noticed { .. } => None,
    }
}

/// The untouched tree is checked before an agent works on it.
fn check_untouched(before: &Loop) -> Option<Broken> {
    let at_work = before.open.iter().any(|open| !open.own);
    at_work
        .then(|| (Rule::UntouchedTree, "the untouched tree is checked while an agent works on it".to_owned()))
}

fn check_run(before: &Loop, run: u32) -> Option<Broken> {
    if before.run.active {
        return Some((Rule::OneRun, "a run starts inside a run".to_owned()));
    }
    (run != before.run.number.saturating_add(1))
        .then(|| (Rule::RunNumber, format!("run {run} after run {}", before.run.number)))
}

/// Agents report, and the engine works, each on what is theirs.
fn check_worker(before: &Loop, iteration: Iteration, event: &Event) -> Option<Broken> {
    let own = before.open.get(iteration)?.own;
    let fits = own != matches!(event, Event::AgentReported { .. });
    (!fits).then(|| (Rule::WorkByItsOwn, "somebody else works on it".to_owned()))
}

/// No step of the sequence is left out, but where an agent is ended without further ado.
fn check_health(before: &Loop, iteration: Iteration, health: Health) -> Option<Broken> {
    let vitals = &before.open.get(iteration)?.vitals;
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
        let message = format!("the agent's health goes from {from} to {to} after {} nudges", vitals.nudges);
        (Rule::HealthInSteps, message)
    })
}

/// The agent at work hands over, or the iteration that has just ended did.
fn check_handoff(before: &Loop, iteration: Iteration, attempt: Attempt) -> Option<Broken> {
    if !before.open.is_empty() {
        return verdict::check_fence(before, iteration, attempt, Stage::Agent);
    }
    let due = before.handoffs.due.as_ref();
    let fits = due.is_some_and(|(of, number, _)| (*of, *number) == (iteration, attempt));
    (!fits).then(|| (Rule::HandoffDue, format!("iteration {iteration} has nothing to hand over")))
}

fn check_checkpoint(before: &Loop, previous: Option<&str>, sha256: &str) -> Option<Broken> {
    let last = before.checkpoints.last.as_ref().map(|last| last.sha256.as_str());
    if previous != last {
        let message = "a checkpoint is not chained to the one before it".to_owned();
        return Some((Rule::CheckpointChain, message));
    }
    sha256.is_empty().then(|| (Rule::CheckpointText, "a checkpoint without a text".to_owned()))
}

fn check_restore(before: &Loop, to_seq: Seq) -> Option<Broken> {
    if !before.open.is_empty() || before.restoring.is_some() {
        return Some((Rule::RestoreAlone, "a restore in the middle of something else".to_owned()));
    }
    (to_seq > before.seq).then(|| (Rule::RestoreBack, "a restore of what has not happened".to_owned()))
}

/// What lies in the work tree is under a ref, or nobody's.
fn check_reset(before: &Loop) -> Option<Broken> {
    let unkept = before.unkept.as_ref().map(|(task, _)| task);
    let task = unkept.or(before.open.here().map(|open| &open.task))?;
    Some((Rule::ResetAfterKeeping, format!("the work tree is reset with work of {task} in it")))
}

fn check_status(before: &Loop, task: &TaskId, status: FileStatus) -> Option<Broken> {
    let entry = before.task(task)?;
    let landing = before.open.of_task(task).is_some_and(|open| matches!(open.stage, Stage::Landing { .. }));
    // Taken back where the commit did not come about.
    let is_true = status == entry.state.file_status() || (landing && status == FileStatus::Done);
    (!is_true).then(|| {
        let message = format!("{task} is {}, but {} was written", entry.state.name(), status.name());
        (Rule::StatusTrue, message)
    })
}

fn check_failed(before: &Loop, task: &TaskId) -> Option<Broken> {
    let entry = before.task(task)?;
    let used_up = entry.failures > entry.max_retries(&before.policy) || entry.permanent;
    let used_up = used_up || budget::is_task_used_up(before, task);
    (!used_up).then(|| (Rule::FailedForGood, format!("{task} has attempts left")))
}
