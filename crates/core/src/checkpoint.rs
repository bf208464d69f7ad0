//! The hashed summary at the end of an iteration: what is done, what is left and where to go on.
//!
//! A checkpoint is a pure function of the loop. It is stored as one text under the hash of that text
//! and names the hash of the one before it, so that none can be changed, or left out, without being
//! noticed. Nothing is decided from a checkpoint: the journal alone says what is true.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::decide::unmet;
use crate::event::Usage;
use crate::handoff::{Trigger, continuation};
use crate::ids::{Attempt, Iteration, LoopId, Seq, TaskId};
use crate::mutant::{Mutant, planted};
use crate::policy::Millis;
use crate::signal::notes::Notes;
use crate::state::{Loop, OpenIteration, Stage, millis_between};
use crate::tasks::TaskState;
use crate::text::clip;

/// Version of the shape below.
pub const VERSION: u32 = 1;

/// How many tasks of each group are named; the rest is counted.
const MAX_NAMED: usize = 24;
const MAX_REASON: usize = 200;
/// They are named among the pending too.
const MAX_WAITING: usize = 12;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Checkpoint {
    pub v: u32,
    /// A UUIDv7.
    pub id: Uuid,
    #[serde(rename = "loop")]
    pub loop_id: Option<LoopId>,
    pub at: Timestamp,
    pub run: u32,
    /// The task of the last iteration; none before the first.
    pub task: Option<TaskId>,
    pub agent: String,
    pub iteration: Iteration,
    pub attempt: Attempt,
    pub phase: Phase,
    /// How the iteration ended, in a few words.
    pub outcome: String,
    /// Why the work is handed over, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handoff: Option<Trigger>,
    pub completed: Group,
    pub pending: Group,
    /// Tasks that failed or wait for a person.
    pub blocked: Group,
    /// Tasks among the pending that wait on others.
    #[serde(default, skip_serializing_if = "Group::is_empty")]
    pub waiting: Group,
    #[serde(default)]
    pub decisions: Vec<String>,
    #[serde(default)]
    pub assumptions: Vec<String>,
    #[serde(default)]
    pub constraints: Vec<String>,
    pub metrics: Metrics,
    pub recovery: Recovery,
    /// Hash of the checkpoint before this one.
    pub previous: Option<String>,
}

impl Checkpoint {
    /// The one text of this checkpoint, whose hash is its own.
    pub fn text(&self) -> String {
        // Fields in the order of the type, no white space: the same checkpoint is the same text.
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// Where in its life the task stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Nothing was tried yet.
    #[default]
    Planning,
    Implementing,
    /// Checks run, or have failed.
    Testing,
    /// A person has to look at it.
    Reviewing,
    Handoff,
    Complete,
}

impl Phase {
    pub fn name(self) -> &'static str {
        match self {
            Self::Planning => "planning",
            Self::Implementing => "implementing",
            Self::Testing => "testing",
            Self::Reviewing => "reviewing",
            Self::Handoff => "handoff",
            Self::Complete => "complete",
        }
    }
}

/// Tasks of one kind: all counted, some named.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    pub count: usize,
    pub items: Vec<Item>,
}

impl Group {
    fn is_empty(&self) -> bool {
        self.count == 0
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    pub task: TaskId,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
}

/// Figures of the iteration, and of the loop so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Metrics {
    pub usage: Usage,
    pub total_usage: Usage,
    pub tool_calls: u32,
    pub checks_passed: u32,
    pub checks_failed: u32,
    pub changed_paths: u32,
    pub duration: Millis,
    pub agent_duration: Millis,
    pub check_duration: Millis,
}

/// What it takes to go on from here.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recovery {
    /// The last good commit.
    pub commit: Option<String>,
    pub branch: Option<String>,
    /// Commit with the unfinished work, and the ref it is under.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_under: Option<String>,
    /// The last event that is in this checkpoint.
    pub seq: Seq,
    #[serde(default)]
    pub next_steps: Vec<String>,
    /// How a person brings loop and tree back to where they were.
    #[serde(default)]
    pub rollback_instructions: Vec<String>,
    /// What the next attempt is told of where the work stands.
    #[serde(default)]
    pub continuation_prompt: String,
}

/// What the loop knows of its checkpoints.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Checkpoints {
    /// The iteration that ended last.
    pub latest: Option<Box<Ended>>,
    /// It has no checkpoint yet.
    pub due: bool,
    pub last: Option<Last>,
    pub count: u32,
    /// Where the work tree stood when it was seen last.
    tip: Tip,
}

/// The newest checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Last {
    pub id: Uuid,
    pub sha256: String,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Tip {
    commit: Option<String>,
    branch: Option<String>,
}

/// An iteration as it was when it ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Ended {
    pub task: TaskId,
    pub agent: String,
    pub iteration: Iteration,
    pub attempt: Attempt,
    pub phase: Phase,
    pub outcome: String,
    pub handoff: Option<Trigger>,
    pub notes: Notes,
    pub kept: Option<(String, String)>,
    metrics: Metrics,
}

impl Ended {
    pub(crate) fn of(open: &OpenIteration, phase: Phase, outcome: &str, at: Timestamp) -> Self {
        let passed = open.evidence.iter().filter(|evidence| evidence.passed()).count();
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Self {
            task: open.task.clone(),
            agent: open.agent.clone(),
            iteration: open.iteration,
            attempt: open.attempt,
            phase,
            outcome: outcome.to_owned(),
            handoff: open.handoff.as_ref().map(|handoff| handoff.trigger.clone()),
            notes: open.notes.clone(),
            kept: None,
            metrics: Metrics {
                usage: open.usage.unwrap_or_default(),
                total_usage: Usage::default(),
                tool_calls: open.tool_calls,
                checks_passed: count(passed),
                checks_failed: count(open.evidence.len() - passed),
                changed_paths: open.inspection.as_ref().map_or(0, |seen| seen.changed_total),
                duration: Millis(millis_between(open.started_at, at)),
                agent_duration: open.agent_duration,
                check_duration: Millis(
                    open.evidence.iter().fold(0, |sum: u64, seen| sum.saturating_add(seen.duration.0)),
                ),
            },
        }
    }
}

impl Checkpoints {
    pub(crate) fn iteration_started(&mut self, base: Option<&String>, branch: Option<&String>) {
        self.tip = Tip { commit: base.cloned(), branch: branch.cloned() };
    }

    /// An iteration has ended, and is to have a checkpoint.
    pub(crate) fn ended(&mut self, ended: Ended) {
        self.latest = Some(Box::new(ended));
        self.due = true;
    }

    pub(crate) fn committed(&mut self, commit: Option<&String>) {
        if commit.is_some() {
            self.tip.commit = commit.cloned();
        }
    }

    pub(crate) fn kept(&mut self, task: &TaskId, commit: &str, reference: &str) {
        if let Some(latest) = self.latest.as_mut().filter(|latest| latest.task == *task) {
            latest.kept = Some((commit.to_owned(), reference.to_owned()));
        }
    }

    pub(crate) fn handed_over(&mut self, iteration: Iteration, trigger: &Trigger) {
        if let Some(latest) = self.latest.as_mut().filter(|latest| latest.iteration == iteration) {
            latest.handoff = Some(trigger.clone());
        }
    }

    /// One that somebody asked for does not stand in for that of an iteration.
    pub(crate) fn checkpointed(&mut self, id: Uuid, sha256: &str, by: &str) {
        self.due &= !by.is_empty();
        self.count += 1;
        self.last = Some(Last { id, sha256: sha256.to_owned() });
    }

    pub(crate) fn restored(&mut self, commit: Option<&String>, branch: Option<&String>) {
        self.due = false;
        self.iteration_started(commit, branch);
    }
}

/// The checkpoint of the loop as it is now. While an iteration is under way it tells of that one.
pub fn build(state: &Loop, id: Uuid, at: Timestamp) -> Checkpoint {
    let checkpoints = &state.checkpoints;
    let under_way = state.open.here().map(|open| Box::new(Ended::of(open, phase_of(open), "under way", at)));
    let latest = under_way.or_else(|| checkpoints.latest.clone());
    let notes = latest.as_ref().map(|latest| standing_notes(state, latest)).unwrap_or_default();
    let metrics = latest.as_ref().map(|latest| latest.metrics).unwrap_or_default();
    let kept = latest.as_ref().and_then(|latest| latest.kept.clone());
    let (kept, kept_under) = kept.map_or((None, None), |(commit, under)| (Some(commit), Some(under)));
    let mut made = Checkpoint {
        v: VERSION,
        id,
        loop_id: state.id,
        at,
        run: state.run.number,
        task: latest.as_ref().map(|latest| latest.task.clone()),
        agent: latest.as_ref().map(|latest| latest.agent.clone()).unwrap_or_default(),
        iteration: latest.as_ref().map_or(0, |latest| latest.iteration),
        attempt: latest.as_ref().map_or(0, |latest| latest.attempt),
        phase: latest.as_ref().map(|latest| latest.phase).unwrap_or_default(),
        outcome: latest.as_ref().map(|latest| latest.outcome.clone()).unwrap_or_default(),
        handoff: latest.as_ref().and_then(|latest| latest.handoff.clone()),
        completed: completed(state),
        pending: pending(state),
        blocked: blocked(state),
        waiting: waiting(state),
        decisions: notes.decisions,
        assumptions: notes.assumptions,
        constraints: notes.constraints,
        metrics: Metrics { total_usage: state.usage, ..metrics },
        recovery: Recovery {
            commit: checkpoints.tip.commit.clone(),
            branch: checkpoints.tip.branch.clone(),
            kept,
            kept_under,
            seq: state.seq,
            next_steps: notes.next_steps,
            rollback_instructions: Vec::new(),
            continuation_prompt: String::new(),
        },
        previous: checkpoints
            .last
            .as_ref()
            .filter(|_| !planted(Mutant::BreaksChain))
            .map(|last| last.sha256.clone()),
    };
    made.recovery.rollback_instructions = rollback(&made);
    made.recovery.continuation_prompt = continuation(&made, made.recovery.kept.is_some());
    made
}

impl Checkpoint {
    /// The same iteration, told with the tasks and notes as they are now: an attempt may begin long after the
    /// checkpoint that it goes on from.
    pub fn as_of_now(mut self, state: &Loop) -> Self {
        self.completed = completed(state);
        self.pending = pending(state);
        self.blocked = blocked(state);
        self.waiting = waiting(state);
        if let Some(entry) = self.task.as_ref().and_then(|task| state.task(task)) {
            let Notes { decisions, assumptions, constraints, next_steps, .. } = entry.notes.clone();
            self.decisions = decisions;
            self.assumptions = assumptions;
            self.constraints = constraints;
            self.recovery.next_steps = next_steps;
        }
        self
    }
}

/// All that is known of the task, not only what its last attempt said.
fn standing_notes(state: &Loop, latest: &Ended) -> Notes {
    let mut notes = state.task(&latest.task).map(|entry| entry.notes.clone()).unwrap_or_default();
    notes.follow(&latest.notes);
    notes
}

fn rollback(made: &Checkpoint) -> Vec<String> {
    let mut steps = vec![format!("wiggum checkpoint restore {}", made.id)];
    if let Some(commit) = &made.recovery.commit {
        steps.push(format!("by hand, the files alone: git reset --hard {commit}"));
    }
    if let Some(kept) = &made.recovery.kept_under {
        steps.push(format!("the unfinished work is under {kept}: git checkout {kept} -- ."));
    }
    steps
}

fn phase_of(open: &OpenIteration) -> Phase {
    match open.stage {
        Stage::Agent if open.handoff.is_some() => Phase::Handoff,
        Stage::Agent => Phase::Implementing,
        Stage::Judging => Phase::Testing,
        Stage::Landing { .. } => Phase::Reviewing,
    }
}

/// The tasks that were completed last, newest first. Only what ended lately is looked at, however
/// many tasks there are.
fn completed(state: &Loop) -> Group {
    let mut seen = BTreeSet::new();
    let done = |task: &&TaskId| state.task(task).is_some_and(|entry| entry.is_done());
    let tasks = state.recent.iter().rev().map(|ended| &ended.task).filter(done);
    let items = tasks.filter(|task| seen.insert(*task)).take(MAX_NAMED);
    let items = items.map(|task| Item { task: task.clone(), why: String::new() }).collect();
    Group { count: state.tasks.counts().done, items }
}

/// The task that is worked on, those that could start next in their order, and then those that wait.
fn pending(state: &Loop) -> Group {
    let counts = state.tasks.counts();
    let running = state.open.iter().map(|open| Item { task: open.task.clone(), why: "under way".to_owned() });
    let ready = state.tasks.ready().map(|entry| {
        let why = entry.history.back().map(|past| format!("attempt {}: {}", past.attempt, past.outcome));
        Item { task: entry.spec.id.clone(), why: why.unwrap_or_default() }
    });
    let waiting = waiting_items(state);
    let items = running.chain(ready).chain(waiting).take(MAX_NAMED).collect();
    Group { count: counts.open() + counts.running, items }
}

/// The tasks that wait on others.
fn waiting(state: &Loop) -> Group {
    let count = state.tasks.waiting().len();
    Group { count, items: waiting_items(state).take(MAX_WAITING).collect() }
}

fn waiting_items(state: &Loop) -> impl Iterator<Item = Item> {
    state.tasks.waiting().map(|entry| {
        let on: Vec<String> = unmet(state, entry).take(3).map(|other| other.spec.id.to_string()).collect();
        Item { task: entry.spec.id.clone(), why: format!("waits on {}", on.join(", ")) }
    })
}

/// What failed, and what a person is asked about.
fn blocked(state: &Loop) -> Group {
    let counts = state.tasks.counts();
    let items = state.tasks.blocked().map(|entry| {
        let why = match &entry.state {
            TaskState::Failed { reason } => format!("failed: {reason}"),
            TaskState::Parked(id) => match state.questions.get(id) {
                Some(asked) => format!("{id}: {}", asked.question.summary),
                None => format!("waits for an answer to {id}"),
            },
            TaskState::Open | TaskState::Running | TaskState::Done { .. } | TaskState::Skipped => {
                entry.state.name().to_owned()
            }
        };
        Item { task: entry.spec.id.clone(), why: clip(&why, MAX_REASON).into_owned() }
    });
    Group { count: counts.parked + counts.failed, items: items.take(MAX_NAMED).collect() }
}
