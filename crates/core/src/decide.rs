//! What to do next: a pure function of the state and the time.
//!
//! [`decide`] leaves the engine no choice: it says which actions to start now and when to ask
//! again. An action already under way may be named again; the engine starts each only once.

use jiff::Timestamp;

use crate::activity::{EngineState, INTERRUPTED, task_word};
use crate::agents::{Pick, Unavailable};
use crate::baseline::{self, Due};
use crate::budget::{self, Alert, Hold};
use crate::clean;
use crate::event::{EndReason, Event};
use crate::handoff::Trigger;
use crate::ids::{Attempt, Iteration, QuestionId, TaskId};
use crate::mutant::{Mutant, planted};
use crate::policy::{Baseline, RetryFrom};
use crate::question::{blocked_question, failed_question};
use crate::signal::support::{Rows, Signal};
use crate::state::{Loop, OpenIteration, Stage, Workspace, add_millis};
use crate::task::FileStatus;
use crate::tasks::{TaskEntry, TaskState};
use crate::termination;
use crate::verdict::{Check, checks_for, former_checks, judge, own_checks, wants_evidence};

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    pub actions: Vec<Action>,
    /// When to ask again even if nothing happens.
    pub wake_at: Option<Timestamp>,
    /// What the loop is waiting for, for people to read.
    pub waiting: Option<Waiting>,
}

/// Something the engine should do.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Nothing to carry out: the decision itself is what happens.
    Record(Box<Event>),
    StartIteration {
        iteration: Iteration,
        task: TaskId,
        attempt: Attempt,
        agent: String,
        carried: Option<String>,
        /// A person accepted the work that is carried over: no agent is needed.
        accepted: bool,
    },
    /// Run one of the loop's own checks on the untouched tree.
    RunBaseline {
        check: Check,
    },
    /// Run one of a task's own checks before its first attempt.
    RunTaskBaseline {
        task: TaskId,
        check: Check,
    },
    /// Give the task that repairs the checks an id.
    PlanRepair,
    /// Add that task to the backlog.
    AddRepair {
        task: TaskId,
    },
    StopAgent {
        iteration: Iteration,
        why: StopWhy,
    },
    /// Speak to the agent at work.
    Nudge {
        iteration: Iteration,
        text: String,
    },
    /// Ask the agent at work to wrap up, or end it if it cannot be spoken to.
    HandOver {
        iteration: Iteration,
        trigger: Trigger,
    },
    /// Look for signs of progress that do not show by themselves.
    FeelPulse {
        iteration: Iteration,
    },
    /// Write the attempt's work as a tree.
    TakeTree {
        iteration: Iteration,
        attempt: Attempt,
    },
    RunCheck {
        iteration: Iteration,
        attempt: Attempt,
        index: usize,
        check: Check,
        /// With its definition as it was before the task.
        former: bool,
    },
    /// Run a step in a clean checkout of this commit, or of the tree that an attempt's checks passed on.
    RunClean {
        of: CleanOf,
        step: Check,
    },
    /// See what the attempt changed, and put back what was not its to change.
    Inspect {
        iteration: Iteration,
        attempt: Attempt,
    },
    /// Write the completion to the backlog and commit it with the work.
    Land {
        iteration: Iteration,
        attempt: Attempt,
    },
    /// Put an ended attempt's unfinished work under a ref.
    KeepWork {
        task: TaskId,
        iteration: Iteration,
    },
    ResetWorkspace,
    WriteStatus {
        task: TaskId,
        status: FileStatus,
    },
    /// Commit the backlog, which says already that these tasks were skipped.
    CommitSkips {
        tasks: Vec<TaskId>,
    },
    PutBackUserChanges {
        commit: String,
    },
    /// Sum up the loop, at the end of an iteration.
    Checkpoint,
}

/// What is checked out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CleanOf {
    Commit(String),
    Attempt { iteration: Iteration, attempt: Attempt },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopWhy {
    /// The agent's own time is up: a failed attempt.
    AgentTimeout,
    /// It makes no progress, or is silent: a failed attempt.
    Unresponsive,
    /// The run's time is up: an interruption.
    RunDuration,
    /// Somebody asked: an interruption.
    Asked,
    /// It should hand over: not a failure.
    Handoff,
    /// It has used up a budget: not a failure.
    OverBudget,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Waiting {
    Agent {
        task: TaskId,
    },
    Check {
        task: TaskId,
        name: String,
    },
    /// A check runs in a clean checkout.
    Clean {
        command: String,
    },
    /// A check runs before any agent works.
    Baseline {
        command: String,
    },
    Answer {
        questions: Vec<QuestionId>,
    },
    Backoff {
        task: TaskId,
        until: Timestamp,
    },
    /// No agent can work just now; this one comes back first.
    Unavailable {
        agent: String,
        why: String,
        until: Timestamp,
    },
    /// The circuit breaker is open; then one iteration is tried.
    Breaker {
        why: String,
        until: Timestamp,
    },
    Paused,
    Backlog {
        problem: String,
    },
    /// A budget is used up, and each call waits.
    Throttled {
        budget: String,
        until: Timestamp,
    },
    /// As many calls as an hour may have.
    Rate {
        calls_per_hour: u32,
        until: Timestamp,
    },
    /// What is left of a shared budget is set aside for calls of other loops.
    Budget {
        until: Timestamp,
    },
}

impl std::fmt::Display for Waiting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Agent { task } => write!(f, "the agent works on {task}"),
            Self::Check { task, name } => write!(f, "{task} is checked: {name}"),
            Self::Clean { command } => write!(f, "the work is checked in a clean checkout: {command}"),
            Self::Baseline { command } => write!(f, "the tree is checked before work begins: {command}"),
            Self::Answer { questions } => {
                let ids: Vec<String> = questions.iter().map(ToString::to_string).collect();
                write!(f, "an answer to {}", ids.join(", "))
            }
            Self::Backoff { task, until } => write!(f, "{task} is tried again at {until:.0}"),
            Self::Unavailable { agent, why, until } if agent.is_empty() => {
                write!(f, "the agent comes back at {until:.0} ({why})")
            }
            Self::Unavailable { agent, why, until } => write!(f, "{agent} comes back at {until:.0} ({why})"),
            Self::Breaker { why, until } => {
                write!(
                    f,
                    "the circuit breaker to cool down until {until:.0} ({why}); `wiggum resume` goes on at once"
                )
            }
            Self::Paused => f.write_str("paused"),
            Self::Backlog { problem } => write!(f, "the backlog to be mended: {problem}"),
            Self::Throttled { budget, until } => write!(f, "throttled until {until:.0}: spent {budget}"),
            Self::Rate { calls_per_hour, until } => {
                write!(f, "{calls_per_hour} calls an hour are used, the next at {until:.0}")
            }
            Self::Budget { until } => {
                write!(f, "other loops with the same budget to finish their calls, looks again at {until:.0}")
            }
        }
    }
}

pub fn decide(state: &Loop, now: Timestamp) -> Plan {
    if !state.run.active {
        return Plan::default();
    }
    if let Some(open) = state.open.here().filter(|_| !planted(Mutant::StartsBeside)) {
        return go_on(state, open, now);
    }
    if let Some(plan) = tidy(state) {
        return plan;
    }
    if let Some(alert) = budget::alert_due(state, now) {
        return record(told(alert));
    }
    if let Some(by) = state.run.stop_requested.as_ref().filter(|_| !planted(Mutant::IgnoresStop)) {
        return end(state, now, EndReason::ExplicitStop, format!("stopped by {by}"));
    }
    if let Some(problem) = &state.backlog_broken {
        return wait_for_backlog(state, problem, now);
    }
    if let Some(plan) = answer_by_policy(state) {
        return plan;
    }
    let counts = state.tasks.counts();
    let left_out = if planted(Mutant::CallsItDone) { counts.failed + counts.parked } else { 0 };
    if counts.done + counts.skipped + left_out == counts.total {
        return end(state, now, EndReason::GoalAchieved, goal_text(state));
    }
    if state.paused && planted(Mutant::StopsUnasked) {
        return end(state, now, EndReason::ExplicitStop, String::new());
    }
    if state.paused && !planted(Mutant::StartsWhilePaused) {
        return Plan { waiting: Some(Waiting::Paused), ..Plan::default() };
    }
    if let Some(plan) = hold_for_answer(state, now) {
        return plan;
    }
    start_next(state, now)
}

/// What a task waits on, or why it does not run any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    Ready,
    Running,
    /// It was worked on by an engine that is gone.
    Interrupted,
    Done {
        verified: bool,
    },
    DoneByHand,
    Failed {
        reason: String,
    },
    Skipped,
    Question(QuestionId),
    Dependencies(Vec<(TaskId, &'static str)>),
    Phase {
        current: u32,
    },
    Backoff {
        until: Timestamp,
    },
    Paused,
}

impl std::fmt::Display for Why {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Ready => f.write_str("ready"),
            Self::Running => f.write_str("running"),
            Self::Interrupted => f.write_str(INTERRUPTED),
            Self::Done { verified: true } => f.write_str("done"),
            Self::Done { verified: false } => f.write_str("done, unverified"),
            Self::DoneByHand => f.write_str("done by hand"),
            Self::Failed { reason } => write!(f, "failed: {reason}"),
            Self::Skipped => f.write_str("skipped"),
            Self::Question(id) => write!(f, "waits for an answer to {id}"),
            Self::Dependencies(unmet) => {
                let names: Vec<String> = unmet.iter().map(|(id, state)| format!("{id} ({state})")).collect();
                write!(f, "waits on {}", names.join(", "))
            }
            Self::Phase { current } => write!(f, "waits for phase {current} to finish"),
            Self::Backoff { until } => write!(f, "tried again at {until:.0}"),
            Self::Paused => f.write_str("the loop is paused"),
        }
    }
}

/// Why a task is where it is, as the loop's engine sees it.
pub fn why(state: &Loop, task: &TaskId, now: Timestamp) -> Option<Why> {
    // An attempt may wait for its checks until the next run.
    let engine = if state.run.active { EngineState::Alive } else { EngineState::Gone };
    why_seen(state, task, engine, now)
}

/// The same for whoever looks at a loop from outside, with what was found of its engine.
pub fn why_seen(state: &Loop, task: &TaskId, engine: EngineState, now: Timestamp) -> Option<Why> {
    let entry = state.task(task)?;
    Some(match &entry.state {
        TaskState::Running if engine == EngineState::Alive => Why::Running,
        TaskState::Running => Why::Interrupted,
        TaskState::Parked(id) => Why::Question(*id),
        TaskState::Done { by_hand: true, .. } => Why::DoneByHand,
        TaskState::Done { verified, by_hand: false } => Why::Done { verified: *verified },
        TaskState::Failed { reason } => Why::Failed { reason: reason.clone() },
        TaskState::Skipped => Why::Skipped,
        TaskState::Open => why_open(state, entry, engine, now),
    })
}

/// What a task depends on and is not done yet.
pub fn unmet<'a>(state: &'a Loop, entry: &'a TaskEntry) -> impl Iterator<Item = &'a TaskEntry> {
    entry.spec.depends_on.iter().filter_map(|id| state.task(id)).filter(|other| !other.is_done())
}

fn why_open(state: &Loop, entry: &TaskEntry, engine: EngineState, now: Timestamp) -> Why {
    let unmet: Vec<(TaskId, &'static str)> =
        unmet(state, entry).map(|other| (other.spec.id.clone(), task_word(&other.state, engine))).collect();
    if !unmet.is_empty() {
        return Why::Dependencies(unmet);
    }
    match state.tasks.current_phase() {
        Some(current) if current < entry.spec.phase => return Why::Phase { current },
        Some(_) | None => {}
    }
    match entry.not_before {
        Some(until) if until > now => Why::Backoff { until },
        Some(_) | None if state.paused => Why::Paused,
        Some(_) | None => Why::Ready,
    }
}

fn go_on(state: &Loop, open: &OpenIteration, now: Timestamp) -> Plan {
    if open.skipped_by.is_some() {
        let waiting = Some(Waiting::Agent { task: open.task.clone() });
        return Plan { waiting, ..give_up(open, StopWhy::Asked) };
    }
    match open.stage {
        Stage::Agent => watch_agent(state, open, now),
        Stage::Judging => match &state.run.stop_requested {
            Some(_) if state.user_changes.is_some() => give_up(open, StopWhy::Asked),
            Some(by) => end(state, now, EndReason::ExplicitStop, format!("stopped by {by}")),
            None => gather(state, open, now),
        },
        Stage::Landing { .. } => land(state, open, now),
    }
}

fn land(state: &Loop, open: &OpenIteration, now: Timestamp) -> Plan {
    if let Some((reason, detail)) = cut_short(state, open, now) {
        return match &state.user_changes {
            Some(_) => give_up(open, StopWhy::Asked),
            None => end(state, now, reason, detail),
        };
    }
    match &state.backlog_broken {
        Some(_) if state.user_changes.is_some() && !state.policy.people.present => {
            give_up(open, StopWhy::Asked)
        }
        Some(problem) => wait_for_backlog(state, problem, now),
        None => one(Action::Land { iteration: open.iteration, attempt: open.attempt }),
    }
}

/// How long accepted work may wait for a lock of the repository when the time of the run is up.
const TIME_TO_LAND: u64 = 10_000;

/// Accepted work is landed at once, also when the time is up. Where that did not succeed, because a commit hook does not
/// end or somebody else keeps the repository locked, the next run does it.
fn cut_short(state: &Loop, open: &OpenIteration, now: Timestamp) -> Option<(EndReason, String)> {
    if let Some(by) = &state.run.stop_requested {
        return Some((EndReason::ExplicitStop, format!("stopped by {by}")));
    }
    let detail = termination::time_is_up(state, now)?;
    let was_begun = state.task(&open.task).is_some_and(|entry| entry.spec.status == FileStatus::Done);
    let limit = state.policy.limits.duration?.0;
    let is_late = state.active_ms(now) >= limit.saturating_add(TIME_TO_LAND);
    (was_begun || is_late).then_some((EndReason::MaxDuration, detail))
}

/// The run ends and the tree has to be the user's again, so this attempt cannot stay as it is.
fn give_up(open: &OpenIteration, why: StopWhy) -> Plan {
    one(Action::StopAgent { iteration: open.iteration, why })
}

fn watch_agent(state: &Loop, open: &OpenIteration, now: Timestamp) -> Plan {
    let iteration = open.iteration;
    let own_limit =
        state.task(&open.task).and_then(|entry| entry.spec.timeout_seconds).map(|s| s.saturating_mul(1000));
    let agents_limit = state.policy.agents.timeouts.get(&open.agent).copied();
    let agents_limit = agents_limit.or(state.policy.limits.agent_timeout).filter(|_| !open.own);
    let agent_limit = own_limit.or(agents_limit.map(|limit| limit.0));
    let agent_deadline = agent_limit.map(|limit| add_millis(open.started_at, limit));
    let run_deadline = run_deadline(state, now);
    let handoff_deadline = open.handoff.as_ref().map(|handoff| {
        let grace = if handoff.asked { state.policy.handoff.grace.0 } else { 0 };
        add_millis(handoff.since, grace)
    });
    let why = if state.run.stop_requested.is_some() {
        Some(StopWhy::Asked)
    } else if run_deadline.is_some_and(|at| at <= now) {
        Some(StopWhy::RunDuration)
    } else if open.over_budget.is_some() {
        Some(StopWhy::OverBudget)
    } else if handoff_deadline.is_some_and(|at| at <= now) {
        Some(StopWhy::Handoff)
    } else if agent_deadline.is_some_and(|at| at <= now) {
        Some(StopWhy::AgentTimeout)
    } else {
        None
    };
    Plan {
        actions: why.map(|why| Action::StopAgent { iteration, why }).into_iter().collect(),
        wake_at: [run_deadline, agent_deadline, handoff_deadline]
            .into_iter()
            .flatten()
            .filter(|at| *at > now)
            .min(),
        waiting: Some(Waiting::Agent { task: open.task.clone() }),
    }
}

/// When the time of the run is up, if it goes on without a break.
pub fn run_deadline(state: &Loop, now: Timestamp) -> Option<Timestamp> {
    let limit = state.policy.limits.duration?;
    Some(add_millis(now, limit.0.saturating_sub(state.active_ms(now))))
}

/// The steps between the agent's end and the verdict, one after the other.
fn gather(state: &Loop, open: &OpenIteration, now: Timestamp) -> Plan {
    let (iteration, attempt) =
        (open.iteration, open.attempt.saturating_add(u32::from(planted(Mutant::StaleResults))));
    let too_early = planted(Mutant::ChecksFirst) && open.evidence.is_empty() && open.claim.is_some();
    if !open.tree_taken && !too_early {
        return one(Action::TakeTree { iteration, attempt });
    }
    if wants_evidence(state, open) {
        let checks = state.spec_of(open).map(|task| checks_for(&state.policy, task));
        if let Some(check) = checks.unwrap_or_default().into_iter().nth(open.evidence.len()) {
            return run_check(state, open, check, false, now);
        }
    }
    if open.inspection.is_none() {
        return one(Action::Inspect { iteration, attempt });
    }
    if let Some(check) = former_checks(state, open).into_iter().nth(open.former_evidence.len()) {
        return run_check(state, open, check, true, now);
    }
    if let Some(step) = clean::next_for_attempt(state, open) {
        return run_clean(state, CleanOf::Attempt { iteration, attempt }, step, now);
    }
    record(Event::Judged { iteration, attempt, verdict: judge(state, open), signals: signals(state, open) })
}

/// A check has the time that the run has: the attempt then waits for its checks until the next run.
fn run_check(state: &Loop, open: &OpenIteration, check: Check, former: bool, now: Timestamp) -> Plan {
    if let Some(detail) = termination::time_is_up(state, now) {
        return match &state.user_changes {
            Some(_) => give_up(open, StopWhy::RunDuration),
            None => end(state, now, EndReason::MaxDuration, detail),
        };
    }
    let index = if former { open.former_evidence.len() } else { open.evidence.len() };
    let waiting = Waiting::Check { task: open.task.clone(), name: check.name.clone() };
    let (iteration, attempt) = (open.iteration, open.attempt);
    let action = Action::RunCheck { iteration, attempt, index, check, former };
    Plan { actions: vec![action], wake_at: run_deadline(state, now), waiting: Some(waiting) }
}

fn run_clean(state: &Loop, of: CleanOf, step: Check, now: Timestamp) -> Plan {
    let waiting = Some(Waiting::Clean { command: step.command.clone() });
    Plan { actions: vec![Action::RunClean { of, step }], wake_at: run_deadline(state, now), waiting }
}

fn signals(state: &Loop, open: &OpenIteration) -> Vec<Signal> {
    if open.own {
        // Nobody claims anything.
        return Vec::new();
    }
    let counts = state.tasks.counts();
    let others_done = counts.total > 1 && counts.done + counts.skipped + 1 == counts.total;
    // Whether this one leads to a commit is not known yet.
    let without_commit = state.rows.without_commit.saturating_sub(u32::from(open.is_judged_again()));
    let rows = Rows { without_commit, ..state.rows_with(open) };
    state.policy.claims.signals(&rows, open.phrase.as_deref(), others_done)
}

/// What follows from the last event and has to be out of the way before anything new starts.
fn tidy(state: &Loop) -> Option<Plan> {
    if state.unkept.is_some() && planted(Mutant::ResetsUnkept) {
        return Some(one(Action::ResetWorkspace));
    }
    if let Some((task, iteration)) = state.unkept.as_ref().filter(|_| !planted(Mutant::ForgetsWork)) {
        return Some(one(Action::KeepWork { task: task.clone(), iteration: *iteration }));
    }
    if let Some((task, reason)) = state.to_fail.front() {
        return Some(record(Event::TaskFailed { task: task.clone(), reason: reason.clone() }));
    }
    if let Some((task, question)) = state.to_ask.front() {
        return Some(raise(state, task.clone(), question.clone()));
    }
    if let Some((iteration, attempt, trigger)) = state.handoffs.due.clone() {
        let iteration = iteration + u32::from(planted(Mutant::HandsOverAnother));
        return Some(record(Event::HandoffStarted { iteration, attempt, trigger, asked: false }));
    }
    let left_out = planted(Mutant::SkipsCheckpoints) && state.checkpoints.last.is_some();
    if state.checkpoints.due && !left_out {
        return Some(one(Action::Checkpoint));
    }
    due_in_backlog(state)
}

/// What the backlog has to be told.
pub fn due_in_backlog(state: &Loop) -> Option<Plan> {
    write_status(state).or_else(|| commit_skips(state))
}

/// A completion has its commit; so has what a person decided instead of it.
fn commit_skips(state: &Loop) -> Option<Plan> {
    let due = &state.skips_to_commit;
    let ready = state.backlog_broken.is_none() && !due.is_empty();
    ready.then(|| one(Action::CommitSkips { tasks: due.iter().cloned().collect() }))
}

/// A status that the backlog does not have yet.
fn write_status(state: &Loop) -> Option<Plan> {
    let task = state.status_due.first().filter(|_| state.backlog_broken.is_none())?;
    let entry = state.task(task)?;
    let status =
        if planted(Mutant::WritesWrongStatus) { FileStatus::Done } else { entry.state.file_status() };
    Some(one(Action::WriteStatus { task: task.clone(), status }))
}

fn raise(state: &Loop, task: Option<TaskId>, question: crate::event::Question) -> Plan {
    record(Event::QuestionRaised {
        id: QuestionId(
            state.next_question.saturating_add(1 + u32::from(planted(Mutant::SkipsQuestionNumber))),
        ),
        task,
        question,
    })
}

fn wait_for_backlog(state: &Loop, problem: &str, now: Timestamp) -> Plan {
    if state.policy.people.present {
        let waiting = Some(Waiting::Backlog { problem: problem.to_owned() });
        return Plan { waiting, ..Plan::default() };
    }
    end(state, now, EndReason::PersonNeeded, format!("the backlog cannot be read: {problem}"))
}

/// With somebody there, a fresh question holds up the loop for a while before it goes on elsewhere.
fn hold_for_answer(state: &Loop, now: Timestamp) -> Option<Plan> {
    if !state.policy.people.present {
        return None;
    }
    let until = |raised_at| add_millis(raised_at, state.policy.people.wait.0);
    // One of an earlier run has waited already.
    let fresh = state.questions.values().filter(|asked| Some(asked.raised_at) >= state.run.started_at);
    let held = fresh.map(|asked| until(asked.raised_at)).filter(|at| *at > now).min()?;
    Some(wait_for_answers(state, Some(held), now))
}

/// People may take longer than the run has time for.
fn wait_for_answers(state: &Loop, until: Option<Timestamp>, now: Timestamp) -> Plan {
    if let Some(detail) = termination::time_is_up(state, now) {
        return end(state, now, EndReason::MaxDuration, detail);
    }
    let questions = state.questions.keys().copied().collect();
    Plan {
        wake_at: [until, run_deadline(state, now)].into_iter().flatten().min(),
        waiting: Some(Waiting::Answer { questions }),
        ..Plan::default()
    }
}

fn start_next(state: &Loop, now: Timestamp) -> Plan {
    // What a person accepted costs nothing any more.
    if let Some(entry) = state.to_land.first().and_then(|task| state.task(task)) {
        return start_with(state, entry, String::new(), true);
    }
    let next = first_repair(state).or_else(|| state.tasks.next(now));
    let delayed = state.tasks.next_delayed(now);
    if next.is_none() && delayed.is_none() {
        return ask_or_end(state, now);
    }
    if let Some((reason, detail)) = termination::reached(state, now) {
        return end(state, now, reason, detail);
    }
    if let Some(plan) = cool_down(state, now) {
        return plan;
    }
    if let Some(entry) = next {
        let by_agent = entry.spec.work.is_agents();
        let held = hold_for_budget(state, now).or_else(|| look_first(state, entry, now));
        return held.filter(|_| by_agent).unwrap_or_else(|| start(state, entry, now));
    }
    let waiting = delayed.map(|(until, entry)| (until, entry.spec.id.clone()));
    Plan {
        wake_at: [waiting.as_ref().map(|(until, _)| *until), run_deadline(state, now)]
            .into_iter()
            .flatten()
            .min(),
        waiting: waiting.map(|(until, task)| Waiting::Backoff { task, until }),
        ..Plan::default()
    }
}

/// The task that repairs the checks, while they are to be repaired.
fn first_repair(state: &Loop) -> Option<&TaskEntry> {
    let entry = state.task(state.baseline.repair.as_ref()?)?;
    (entry.state == TaskState::Open && !entry.is_removed()).then_some(entry)
}

/// What the checks on the untouched tree leave to be done before an agent may start.
pub(crate) fn baseline_due(state: &Loop) -> Option<Due> {
    let repair = state.baseline.repair.as_ref();
    let has_repair = repair.is_some_and(|task| state.task(task).is_some_and(|entry| !entry.is_removed()));
    state.baseline.due(&state.policy, has_repair)
}

/// Whoever says with `--baseline` how to go on has answered the question of a former run.
fn answer_by_policy(state: &Loop) -> Option<Plan> {
    let id = state.baseline.question.filter(|id| state.questions.contains_key(id))?;
    let answer = baseline::Baseline::answer_of(&state.policy)?;
    let by = format!("the policy (baseline: {})", state.policy.checks.baseline.name());
    Some(record(Event::QuestionAnswered { id, answer, by }))
}

/// Checks that run before money is spent: the loop's own on the untouched tree, and the task's own.
fn look_first(state: &Loop, entry: &TaskEntry, now: Timestamp) -> Option<Plan> {
    if state.baseline.repair.as_ref() != Some(&entry.spec.id)
        && let Some(due) = baseline_due(state)
    {
        return Some(match due {
            Due::Check(check) => check_first(state, check, None, now),
            Due::Ask(question) => raise(state, None, *question),
            Due::Wait if state.policy.people.present => wait_for_answers(state, None, now),
            Due::Wait | Due::Stop => {
                let why = "the checks fail before any agent has worked".to_owned();
                end(state, now, EndReason::PersonNeeded, why)
            }
            Due::PlanRepair => one(Action::PlanRepair),
            Due::AddRepair(task) => one(Action::AddRepair { task }),
        });
    }
    let fresh = entry.attempts == 0 && state.policy.checks.baseline != Baseline::Off;
    let own = own_checks(&entry.spec).into_iter().nth(entry.baseline.len()).filter(|_| fresh)?;
    Some(check_first(state, own, Some(entry.spec.id.clone()), now))
}

fn check_first(state: &Loop, check: Check, task: Option<TaskId>, now: Timestamp) -> Plan {
    // What another task has not finished is no part of the tree before this one.
    if state.git && state.workspace != Workspace::Clean {
        return one(Action::ResetWorkspace);
    }
    let waiting = Some(Waiting::Baseline { command: check.command.clone() });
    let action = match task {
        Some(task) => Action::RunTaskBaseline { task, check },
        None => Action::RunBaseline { check },
    };
    Plan { actions: vec![action], waiting, wake_at: run_deadline(state, now) }
}

/// The breaker opened in a run before this one.
fn cool_down(state: &Loop, now: Timestamp) -> Option<Plan> {
    let (tripped, until) = state.breaker.cooling(&state.policy.breaker)?;
    let waiting = Waiting::Breaker { why: tripped.why.clone(), until };
    let wake_at = [Some(until), run_deadline(state, now)].into_iter().flatten().min();
    let cools = until > now && !planted(Mutant::IgnoresCooldown);
    cools.then(|| Plan { wake_at, waiting: Some(waiting), ..Plan::default() })
}

fn hold_for_budget(state: &Loop, now: Timestamp) -> Option<Plan> {
    let (waiting, until) = match budget::hold(state, now)? {
        Hold::Throttled { gauge, until } => (Waiting::Throttled { budget: gauge.to_string(), until }, until),
        Hold::Rate { limit, until } => (Waiting::Rate { calls_per_hour: limit, until }, until),
        Hold::Bound { until } => (Waiting::Budget { until }, until),
    };
    let wake_at = [Some(until), run_deadline(state, now)].into_iter().flatten().min();
    Some(Plan { wake_at, waiting: Some(waiting), ..Plan::default() })
}

fn told(Alert { gauge, task, threshold }: Alert) -> Event {
    let budget::Gauge { scope, unit, spent, limit, resets_at, .. } = gauge;
    Event::BudgetAlert { scope, task, unit, spent, limit, threshold, resets_at }
}

fn start(state: &Loop, entry: &TaskEntry, now: Timestamp) -> Plan {
    if !entry.spec.work.is_agents() {
        let somebody = if planted(Mutant::SendsAgent) { "somebody" } else { "" };
        return start_with(state, entry, somebody.to_owned(), false);
    }
    if let Some(reason) = budget::task_exhausted(state, &entry.spec.id) {
        return record(Event::TaskFailed { task: entry.spec.id.clone(), reason });
    }
    let agent = match state.agents.pick(&state.policy.agents, &entry.spec, now) {
        Pick::Agent(_) if planted(Mutant::WrongAgent) => "somebody".to_owned(),
        Pick::Agent(agent) => agent.to_owned(),
        Pick::Wait { agent, why, until } => {
            let waiting = Waiting::Unavailable { agent: agent.to_owned(), why: why.to_string(), until };
            let wake_at = [Some(until), run_deadline(state, now)].into_iter().flatten().min();
            return Plan { wake_at, waiting: Some(waiting), ..Plan::default() };
        }
        Pick::Nobody { why } => return end(state, now, EndReason::PersonNeeded, nobody_text(&why)),
    };
    start_with(state, entry, agent, false)
}

/// Where nobody but the engine is needed, the agent has no name.
fn start_with(state: &Loop, entry: &TaskEntry, agent: String, accepted: bool) -> Plan {
    let unknown = planted(Mutant::UnknownTask).then(|| TaskId::from("unknown"));
    let task = unknown.unwrap_or_else(|| entry.spec.id.clone());
    let retry = &state.policy.retry;
    let clean = retry.from == RetryFrom::Clean || retry.clean_after.is_some_and(|n| entry.failures >= n);
    let carried = match accepted {
        true => entry.accepted.clone(),
        false => entry.kept.clone().filter(|_| !clean),
    };
    let fits = match &state.workspace {
        Workspace::Clean => true,
        Workspace::Holds(holder) => *holder == task && carried.is_some(),
    };
    if !fits && state.git && !planted(Mutant::CarriesAcross) {
        return one(Action::ResetWorkspace);
    }
    one(Action::StartIteration {
        iteration: state.next_number(&task).saturating_add(u32::from(planted(Mutant::SkipsNumber))),
        task,
        attempt: if planted(Mutant::MiscountsAttempts) { 1 } else { entry.attempts.saturating_add(1) },
        agent,
        carried,
        accepted,
    })
}

/// Nothing can start: people are asked about what stands in the way, or needed to answer.
fn ask_or_end(state: &Loop, now: Timestamp) -> Plan {
    for blocker in state.tasks.blockers() {
        let task = &blocker.spec.id;
        if state.run.asked_about.contains(task)
            || state.questions.values().any(|q| q.task.as_ref() == Some(task))
        {
            continue;
        }
        let waiting = state.tasks.waiting_on(task);
        let question = match &blocker.state {
            TaskState::Failed { reason } => failed_question(task, &blocker.spec.work, reason, &waiting),
            TaskState::Skipped
            | TaskState::Open
            | TaskState::Running
            | TaskState::Parked(_)
            | TaskState::Done { .. } => blocked_question(task, &waiting),
        };
        return raise(state, Some(task.clone()), question);
    }
    if state.policy.people.present && !state.questions.is_empty() {
        return wait_for_answers(state, None, now);
    }
    end(state, now, EndReason::PersonNeeded, needed_text(state))
}

/// Ends the run, with the workspace as its user would want to find it: the unfinished work is under
/// a ref and comes back with its task.
fn end(state: &Loop, now: Timestamp, reason: EndReason, detail: String) -> Plan {
    if state.open.is_empty() && state.git && state.workspace != Workspace::Clean {
        return one(Action::ResetWorkspace);
    }
    if state.open.is_empty()
        && let Some((commit, step)) = clean::next_for_tip(state, reason)
    {
        if let Some(detail) = termination::time_is_up(state, now) {
            return finish(state, EndReason::MaxDuration, detail);
        }
        return run_clean(state, CleanOf::Commit(commit), step, now);
    }
    match clean::complaint(state) {
        Some(complaint) if reason == EndReason::GoalAchieved => {
            finish(state, EndReason::PersonNeeded, complaint)
        }
        Some(complaint) => finish(state, reason, format!("{detail}; {complaint}")),
        None => finish(state, reason, detail),
    }
}

fn finish(state: &Loop, reason: EndReason, detail: String) -> Plan {
    // A run may end with an attempt under way, while a person has just said something of another task.
    if let Some(plan) = write_status(state) {
        return plan;
    }
    match &state.user_changes {
        Some(commit) => one(Action::PutBackUserChanges { commit: commit.clone() }),
        None => {
            let mut plan = record(Event::RunEnded { run: state.run.number, reason, detail });
            if planted(Mutant::EndsTwice) {
                plan.actions.extend_from_within(..);
            }
            plan
        }
    }
}

fn goal_text(state: &Loop) -> String {
    let counts = state.tasks.counts();
    match (counts.total, counts.skipped) {
        (0, _) => termination::NO_TASKS.to_owned(),
        (_, 0) => termination::ALL_COMPLETE.to_owned(),
        (_, skipped) => format!("{} done, {skipped} skipped", counts.done),
    }
}

fn needed_text(state: &Loop) -> String {
    let counts = state.tasks.counts();
    let mut parts = Vec::new();
    if !state.questions.is_empty() {
        let ids: Vec<String> = state.questions.keys().map(ToString::to_string).collect();
        parts.push(format!("open questions: {}", ids.join(", ")));
    }
    if counts.failed > 0 {
        parts.push(format!("{} failed", counts.failed));
    }
    if counts.open() > 0 {
        parts.push(format!("{} waiting on others", counts.open()));
    }
    parts.join("; ")
}

fn nobody_text(why: &[(&str, &Unavailable)]) -> String {
    let part = |(agent, why): &(&str, &Unavailable)| {
        let until = why.until.map_or_else(String::new, |until| format!(" (until {until:.0})"));
        let agent = if agent.is_empty() { "the agent" } else { agent };
        format!("{agent} cannot work: {why}{until}")
    };
    why.iter().map(part).collect::<Vec<_>>().join("; ")
}

fn one(action: Action) -> Plan {
    Plan { actions: vec![action], ..Plan::default() }
}

fn record(event: Event) -> Plan {
    one(Action::Record(Box::new(event)))
}
