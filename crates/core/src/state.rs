//! What is true of a loop: the fold over its journal.
//!
//! [`Loop::apply`] is the only way the state changes. It never decides anything beyond what the
//! event itself settles; [`crate::decide`] does that. All work per event is independent of how
//! many tasks and events there are (a changed backlog excepted).

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use jiff::Timestamp;
use uuid::Uuid;

use crate::agents::Agents;
use crate::breaker::{self, Breaker};
use crate::budget::{self, Alert, Gauge, Spending, Strategy, Sum};
use crate::checkpoint::{Checkpoints, Ended, Phase};
use crate::event::{
    Answer, Claim, EndReason, Envelope, Event, Evidence, Exit, Failure, Flag, Question, QuestionKind,
    Trouble, Usage, Verdict,
};
use crate::forecast::{History, forecast};
use crate::handoff::{Handoffs, Handover, Trigger};
use crate::health::{self, Health, Vitals};
use crate::ids::{Attempt, Epoch, Iteration, LoopId, QuestionId, Seq, TaskId};
use crate::memory::Memory;
use crate::mutant::{Mutant, planted};
use crate::policy::{Millis, Policy};
use crate::question::{Meaning, failed_question, flagged, meaning, repeated_error};
use crate::restore::Restoring;
use crate::signal::notes::Notes;
use crate::signal::support::Rows;
use crate::task::{FileStatus, Task};
use crate::tasks::{AttemptMemory, TaskEntry, TaskState, Tasks};
use crate::text::head;
use crate::weaken::is_test_path;
use crate::work::{Call, Reported};

/// How many ended iterations the status shows.
const RECENT_ITERATIONS: usize = 20;

/// How many changed paths are remembered of an attempt.
const REMEMBERED_PATHS: usize = 20;

/// How much of an attempt's message is remembered.
const REMEMBERED_WORDS: usize = 600;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Loop {
    pub id: Option<LoopId>,
    pub name: String,
    pub repository: String,
    pub backlog: String,
    pub seq: Seq,
    pub epoch: Epoch,
    pub policy: Policy,
    pub agent: String,
    pub git: bool,
    pub run: Run,
    pub agents: Agents,
    pub breaker: Breaker,
    /// What the last iterations have in common.
    pub rows: Rows,
    pub tasks: Tasks,
    /// The iteration under way. One at a time for now; what it may do is in its stage.
    pub open: Option<OpenIteration>,
    pub iterations: Iteration,
    pub questions: BTreeMap<QuestionId, OpenQuestion>,
    pub next_question: u32,
    /// Questions that follow from what happened and are still to be put.
    pub to_ask: VecDeque<(Option<TaskId>, Question)>,
    /// Tasks that used up their attempts and are still to be failed.
    pub to_fail: VecDeque<(TaskId, String)>,
    pub paused: bool,
    pub backlog_broken: Option<String>,
    /// Whose unfinished work lies in the workspace.
    pub workspace: Workspace,
    /// An attempt ended with changes that are not under a ref yet.
    pub unkept: Option<(TaskId, Iteration)>,
    pub user_changes: Option<String>,
    pub usage: Usage,
    pub spending: Spending,
    /// What tasks have cost, to foresee what the others will.
    pub history: History,
    pub recent: VecDeque<EndedIteration>,
    pub last_at: Option<Timestamp>,
    /// Tasks whose status in the file is not what it should be.
    pub status_due: BTreeSet<TaskId>,
    pub checkpoints: Checkpoints,
    pub handoffs: Handoffs,
    pub memory: Memory,
    /// A restore was begun and has to be completed before anything else.
    pub restoring: Option<Restoring>,
}

/// Counters of the run under way; a new run starts with fresh ones.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Run {
    pub number: u32,
    pub active: bool,
    pub started_at: Option<Timestamp>,
    /// Time spent running, downtime after a crash left out.
    pub active_ms: u64,
    pub iterations: u32,
    pub completed: u32,
    pub consecutive_errors: u32,
    pub without_progress: u32,
    /// Agents in a row that were ended because they showed no sign of life.
    pub terminations: u32,
    pub usage: Usage,
    pub stop_requested: Option<String>,
    pub ended: Option<(EndReason, String)>,
    /// The checkpoint the loop was put back to since the run ended.
    pub restored: Option<Uuid>,
    /// Failed or blocking tasks a person was asked about in this run.
    pub asked_about: BTreeSet<TaskId>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Workspace {
    /// The last good commit.
    #[default]
    Clean,
    /// The last good commit and the unfinished work of this task.
    Holds(TaskId),
}

#[derive(Clone, Debug, PartialEq)]
pub struct OpenQuestion {
    pub task: Option<TaskId>,
    pub question: Question,
    pub raised_at: Timestamp,
}

#[derive(Clone, Debug, PartialEq)]
pub struct OpenIteration {
    pub iteration: Iteration,
    pub task: TaskId,
    pub attempt: Attempt,
    pub agent: String,
    pub base: Option<String>,
    pub branch: Option<String>,
    pub carried: Option<String>,
    pub started_at: Timestamp,
    pub stage: Stage,
    pub claim: Option<Claim>,
    pub asked: Vec<Question>,
    pub error: Option<Failure>,
    pub trouble: Option<Trouble>,
    pub session: Option<String>,
    pub exit: Option<Exit>,
    pub message: String,
    pub tree_taken: bool,
    pub evidence: Vec<Evidence>,
    pub inspection: Option<Inspection>,
    pub flags: Vec<Flag>,
    /// How often a hook changed the tree of this attempt.
    pub altered: u32,
    pub usage: Option<Usage>,
    pub vitals: Vitals,
    /// A phrase of its message that supports a claim.
    pub phrase: Option<String>,
    pub tool_calls: u32,
    pub agent_duration: Millis,
    pub notes: Notes,
    /// The agent should come to an end so that another can go on.
    pub handoff: Option<Handover>,
    /// The iteration before it handed over.
    pub after_handoff: Option<Trigger>,
    /// The engine does the work itself, without an agent.
    pub own: bool,
    /// The engine saw for itself that its own work is done.
    pub witnessed: bool,
    /// The call that was begun.
    pub call: Option<Call>,
    /// What the agent said through tools of ours.
    pub reported: Reported,
}

impl OpenIteration {
    /// What is looked at again after a crash is flagged once.
    fn note_flags(&mut self, flags: &[Flag]) {
        for flag in flags {
            if !self.flags.contains(flag) {
                self.flags.push(flag.clone());
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The agent runs.
    Agent,
    /// The agent is gone; evidence is gathered.
    Judging,
    /// Accepted; to be written to the backlog and committed.
    Landing { verified: bool },
}

#[derive(Clone, Debug, PartialEq)]
pub struct Inspection {
    /// The first paths that differ.
    pub changed: Vec<String>,
    pub changed_total: u32,
    /// Tests were changed, and nothing else.
    pub only_tests: bool,
    pub digest: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct EndedIteration {
    pub iteration: Iteration,
    pub task: TaskId,
    pub attempt: Attempt,
    pub started_at: Timestamp,
    pub ended_at: Timestamp,
    pub outcome: String,
    pub usage: Option<Usage>,
}

impl Loop {
    /// The loop after the whole of a journal.
    pub fn fold<'a>(journal: impl IntoIterator<Item = &'a Envelope>) -> Self {
        let mut state = Self::default();
        for envelope in journal {
            state.apply(envelope);
        }
        state
    }

    /// Takes one event in.
    pub fn apply(&mut self, envelope: &Envelope) {
        let at = envelope.at;
        self.seq = if planted(Mutant::SeqStandsStill) { self.seq.max(1) } else { envelope.seq };
        self.count_time(at, envelope);
        self.epoch = envelope.epoch;
        match &envelope.event {
            Event::LoopCreated { loop_id, name, repository, backlog } => {
                self.id = Some(*loop_id).filter(|_| !planted(Mutant::ForgetsItself));
                self.name.clone_from(name);
                self.repository.clone_from(repository);
                self.backlog.clone_from(backlog);
                self.run.active = planted(Mutant::RunsUnstarted);
            }
            Event::RunStarted { run, policy, agent, git, version: _, sandbox: _ } => {
                self.agents.start_anew();
                self.spending.start_anew();
                let number = if planted(Mutant::ForgetsRunNumber) { self.run.number } else { *run };
                self.run = Run { number, active: true, started_at: Some(at), ..Run::default() };
                self.adopt_policy(policy, agent);
                self.git = *git;
                self.paused = false;
            }
            Event::RunResumed { run: _, policy, agent, sandbox: _ } => {
                self.adopt_policy(policy, agent);
                self.run.stop_requested = None;
                self.check_anew();
            }
            Event::BacklogRead { added, changed, removed, order, revision: _ } => {
                self.backlog_broken = None;
                self.read_backlog(added, changed, removed, order.as_deref(), at);
            }
            Event::BacklogBroken { message } => self.backlog_broken = Some(message.clone()),
            Event::StatusWritten { task, status } => {
                if let Some(slot) = self.tasks.slot(task) {
                    self.tasks.entries[slot].spec.status = *status;
                    self.note_status_due(slot);
                }
            }
            Event::IterationStarted {
                iteration,
                task,
                attempt,
                agent,
                session,
                base,
                branch,
                carried,
                ..
            } => {
                let after_handoff = self.handoffs.pending.take();
                self.start_iteration(OpenIteration {
                    iteration: *iteration,
                    task: task.clone(),
                    attempt: *attempt,
                    agent: agent.clone(),
                    base: base.clone(),
                    branch: branch.clone(),
                    carried: carried.clone(),
                    started_at: at,
                    stage: Stage::Agent,
                    claim: None,
                    asked: Vec::new(),
                    error: None,
                    trouble: None,
                    session: session.clone(),
                    exit: None,
                    message: String::new(),
                    tree_taken: false,
                    evidence: Vec::new(),
                    inspection: None,
                    flags: Vec::new(),
                    altered: 0,
                    usage: None,
                    vitals: Vitals::new(at),
                    phrase: None,
                    tool_calls: 0,
                    agent_duration: Millis(0),
                    notes: Notes::default(),
                    handoff: None,
                    after_handoff,
                    own: self.is_own_work(task),
                    witnessed: false,
                    call: None,
                    reported: Reported::default(),
                });
            }
            Event::Charged { usage, model, .. } => self.charge(*usage, model.as_deref(), at),
            Event::AgentEnded {
                message,
                usage,
                claim,
                phrase,
                questions,
                error,
                exit,
                flags,
                facts,
                notes,
                duration,
                ..
            } => {
                self.close_question_of_agent();
                if let Some(usage) = usage {
                    self.charge(*usage, facts.model.as_deref(), at);
                }
                if let Some(open) = &mut self.open {
                    self.handoffs.note_window(&open.agent, facts.context);
                    open.tool_calls = facts.tool_calls;
                    open.agent_duration = *duration;
                    open.notes.clone_from(notes);
                    open.stage = Stage::Judging;
                    open.message.clone_from(&message.excerpt);
                    open.usage = *usage;
                    open.claim.clone_from(claim);
                    open.phrase.clone_from(phrase);
                    open.asked.clone_from(questions);
                    open.error.clone_from(error);
                    open.trouble.clone_from(&facts.trouble);
                    if facts.session.is_some() {
                        open.session.clone_from(&facts.session);
                    }
                    if facts.trouble == Some(Trouble::ContextFull) {
                        // Going on with it would only fail again.
                        open.session = None;
                    }
                    open.exit = Some(*exit);
                    open.note_flags(flags);
                }
            }
            Event::CallStarted { server, tool, repeatable, .. } => {
                self.start_call(server, tool, *repeatable);
            }
            Event::WorkEnded { duration, result, error, uncertain, .. } => {
                self.end_work(*duration, result, error.as_ref(), *uncertain);
            }
            Event::AgentReported { report, .. } => self.take_report(report),
            Event::TreeTaken { flags, .. } => {
                if let Some(open) = &mut self.open {
                    open.tree_taken = true;
                    open.note_flags(flags);
                }
            }
            Event::TreeAltered { .. } => {
                if let Some(open) = &mut self.open {
                    open.stage = Stage::Judging;
                    if planted(Mutant::TrustsAltered) {
                        return;
                    }
                    open.altered += 1;
                    open.tree_taken = false;
                    open.evidence.clear();
                    open.inspection = None;
                }
            }
            Event::EvidenceGathered { evidence, .. } => {
                if let Some(open) = &mut self.open {
                    open.evidence.push(evidence.clone());
                }
            }
            Event::WorkInspected { changed, changed_total, digest, flags, .. } => {
                if let Some(open) = &mut self.open {
                    open.inspection = Some(Inspection {
                        changed: changed.iter().take(REMEMBERED_PATHS).cloned().collect(),
                        changed_total: *changed_total,
                        digest: digest.clone(),
                        only_tests: !changed.is_empty() && changed.iter().all(|path| is_test_path(path)),
                    });
                    open.note_flags(flags);
                }
            }
            Event::Judged { verdict, .. } => self.judge(verdict, at),
            Event::WorkKept { task, commit, reference, .. } => {
                self.checkpoints.kept(task, commit, reference);
                if let Some(slot) = self.tasks.slot(task) {
                    self.tasks.entries[slot].kept = Some(commit.clone());
                }
                self.unkept = None;
                self.workspace = Workspace::Holds(task.clone());
            }
            Event::WorkspaceReset { .. } => {
                self.workspace = Workspace::Clean;
                self.unkept = None;
            }
            Event::TaskCompleted { task, verified, attempt, commit, .. } => {
                self.checkpoints.committed(commit.as_ref());
                self.complete(task, *attempt, *verified, at);
            }
            Event::CommitRefused { output, .. } => self.refuse_commit(&output.excerpt, at),
            Event::TaskFailed { task, reason } => {
                self.to_fail.retain(|(failing, _)| failing != task);
                self.set_state(task, TaskState::Failed { reason: reason.clone() }, at);
                self.ask_about_failed(task, reason);
            }
            Event::TaskSkipped { task, .. } => self.settle_by_person(task, TaskState::Skipped, at),
            Event::TaskReopened { task, .. } => self.reopen(task, at),
            Event::StatusSet { task, status, .. } => match status {
                FileStatus::Open => self.reopen(task, at),
                FileStatus::Done => self.settle_by_person(task, TaskState::Done { verified: false }, at),
                FileStatus::Failed => {
                    let reason = "set by a person".to_owned();
                    self.settle_by_person(task, TaskState::Failed { reason }, at);
                }
                FileStatus::Skipped => self.settle_by_person(task, TaskState::Skipped, at),
            },
            Event::StatusPutBack { .. } | Event::Noticed { .. } => {}
            Event::BudgetAlert { scope, task, unit, spent, limit, threshold } => {
                let (spent, limit, threshold) = (*spent, *limit, *threshold);
                let gauge = Gauge { scope: *scope, unit: *unit, spent, reserved: 0.0, limit };
                self.spending.note_alert(&Alert { gauge, task: task.clone(), threshold });
            }
            Event::BudgetAsked { granted, figures } => {
                self.spending.look(*figures, *granted, at);
                self.reconsider_order(at);
            }
            Event::QuestionRaised { id, task, question } => self.raise(*id, task, question, at),
            Event::QuestionAnswered { id, answer, .. } => self.answer(*id, answer, at),
            Event::Nudged { text, delivered, by, .. } => {
                if let Some(open) = self.open.as_ref().filter(|_| !delivered && !health::is_call(by))
                    && let Some(slot) = self.tasks.slot(&open.task)
                {
                    self.tasks.entries[slot].guidance.push(text.clone());
                }
            }
            Event::HealthChanged { health, last_beat, detail, .. } => {
                self.change_health(*health, *last_beat, detail, at);
            }
            Event::HandoffStarted { iteration, trigger, asked, .. } => {
                self.start_handoff(*iteration, trigger, *asked, at);
            }
            Event::Checkpointed { task, id, checkpoint, by, .. } => {
                self.checkpoints.checkpointed(*id, &checkpoint.sha256, by);
                let of_iteration = task.as_ref().filter(|_| by.is_empty());
                if let Some(slot) = of_iteration.and_then(|task| self.tasks.slot(task)) {
                    self.tasks.entries[slot].checkpoint = Some(checkpoint.sha256.clone());
                }
            }
            Event::RestoreStarted { id, commit, branch, reference, tasks, .. } => {
                self.restoring = Some(Restoring {
                    checkpoint: *id,
                    commit: commit.clone(),
                    branch: branch.clone(),
                    reference: reference.clone(),
                    tasks: tasks.clone(),
                });
            }
            Event::Restored { .. } => self.finish_restore(at),
            Event::Paused { .. } => self.paused = true,
            Event::Resumed { .. } => {
                self.paused = false;
                self.breaker.close();
            }
            Event::StopRequested { by } => self.run.stop_requested = Some(by.clone()),
            Event::Interrupted { .. } => self.interrupt(at),
            Event::UserChangesSetAside { commit, .. } => self.user_changes = Some(commit.clone()),
            Event::UserChangesPutBack { .. } => self.user_changes = None,
            Event::RunEnded { reason, detail, .. } => {
                self.run.active = planted(Mutant::NeverEnds);
                self.run.ended = Some((*reason, detail.clone()));
            }
        }
    }

    /// Milliseconds the run has been at work, up to `now`.
    pub fn active_ms(&self, now: Timestamp) -> u64 {
        let since = self.last_at.map_or(0, |last| millis_between(last, now));
        self.run.active_ms.saturating_add(if self.run.active { since } else { 0 })
    }

    pub fn task(&self, id: &TaskId) -> Option<&TaskEntry> {
        self.tasks.get(id)
    }

    /// Between two engines nobody works.
    fn count_time(&mut self, at: Timestamp, envelope: &Envelope) {
        let starts = matches!(envelope.event, Event::RunResumed { .. } | Event::RunStarted { .. });
        if self.run.active && !starts && self.epoch == envelope.epoch {
            let passed = self.last_at.map_or(0, |last| millis_between(last, at));
            self.run.active_ms = self.run.active_ms.saturating_add(passed);
        }
        self.last_at = Some(self.last_at.map_or(at, |last| last.max(at)));
    }

    fn adopt_policy(&mut self, policy: &Policy, agent: &str) {
        // Evidence counts for the checks it was gathered for.
        if self.policy.checks != policy.checks
            && let Some(open) = self.open.as_mut().filter(|open| open.stage == Stage::Judging)
        {
            open.evidence.clear();
            open.inspection = None;
        }
        self.policy = policy.clone();
        agent.clone_into(&mut self.agent);
        if self.tasks.selection != policy.selection {
            self.tasks.selection = policy.selection;
            self.tasks.rebuild(self.last_at.unwrap_or_default());
        }
        self.reconsider_order(self.last_at.unwrap_or_default());
    }

    fn read_backlog(
        &mut self,
        added: &[Task],
        changed: &[Task],
        removed: &[TaskId],
        order: Option<&[TaskId]>,
        at: Timestamp,
    ) {
        for task in added.iter().chain(changed) {
            if self.tasks.get(&task.id).is_some_and(|entry| entry.spec.status != task.status) {
                self.close_questions_of(&task.id);
            }
            self.tasks.upsert(task);
        }
        for id in removed {
            self.tasks.remove(id);
        }
        if let Some(order) = order {
            self.tasks.reorder(order);
        }
        self.tasks.rebuild(at);
        for task in added.iter().chain(changed) {
            if let Some(slot) = self.tasks.slot(&task.id) {
                self.note_status_due(slot);
            }
        }
    }

    /// While its agent works, or because of how it ended.
    fn start_handoff(&mut self, iteration: Iteration, trigger: &Trigger, asked: bool, at: Timestamp) {
        self.handoffs.due = None;
        match self.open.as_mut().filter(|open| open.iteration == iteration) {
            Some(open) => open.handoff = Some(Handover { trigger: trigger.clone(), since: at, asked }),
            None => {
                self.handoffs.pending = Some(trigger.clone());
                self.checkpoints.handed_over(iteration, trigger);
                self.agents.forget_sessions();
            }
        }
    }

    fn start_iteration(&mut self, open: OpenIteration) {
        let beyond = budget::is_beyond(self);
        self.spending.begin_call(open.started_at, self.policy.limits.calls_per_hour, beyond);
        self.checkpoints.iteration_started(open.base.as_ref(), open.branch.as_ref());
        self.iterations = open.iteration;
        self.run.iterations = self.run.iterations.saturating_add(1);
        self.breaker.probe();
        self.workspace =
            if open.carried.is_some() { Workspace::Holds(open.task.clone()) } else { Workspace::Clean };
        self.set_state(&open.task, TaskState::Running, open.started_at);
        self.open = Some(open);
    }

    /// A new engine runs all checks of an attempt again: what one of them leaves in the work tree is
    /// gone with the engine before, and the next may need it.
    fn check_anew(&mut self) {
        if let Some(open) = &mut self.open
            && open.stage == Stage::Judging
        {
            open.evidence.clear();
            open.inspection = None;
        }
    }

    /// A call is over, or was cut short, and used so much.
    fn charge(&mut self, usage: Usage, model: Option<&str>, at: Timestamp) {
        self.usage += usage;
        self.run.usage += usage;
        let has_price = model.is_some_and(|model| self.policy.prices.contains_key(model));
        self.spending.charge(usage, has_price || !usage.is_unpriced(), at);
        if let Some(slot) = self.open.as_ref().and_then(|open| self.tasks.slot(&open.task)) {
            self.tasks.entries[slot].spent += Sum::from(usage);
        }
        self.reconsider_order(at);
    }

    /// When money gets short it matters what goes first; all places are found anew, which happens
    /// once.
    fn reconsider_order(&mut self, at: Timestamp) {
        let critical = self.policy.budget.strategy == Strategy::CriticalPath && budget::is_short(self);
        if self.tasks.critical != critical {
            self.tasks.critical = critical;
            self.tasks.rebuild(at);
        }
    }

    fn judge(&mut self, verdict: &Verdict, at: Timestamp) {
        let worked = !matches!(verdict, Verdict::Unavailable { .. });
        if let Some(open) = self.open.as_ref().filter(|open| worked && !open.own) {
            self.rows = self.rows_with(open);
        }
        let accepted = match verdict {
            Verdict::Accepted { verified } => Some(*verified),
            _ => planted(Mutant::AcceptsEverything).then_some(false),
        };
        if let Some(verified) = accepted {
            if let Some(open) = &mut self.open {
                open.stage = Stage::Landing { verified };
            }
            return;
        }
        let Some(mut open) = self.open.take() else { return };
        let changed = open.inspection.as_ref().is_some_and(|seen| seen.changed_total > 0);
        if changed && self.git {
            self.unkept = Some((open.task.clone(), open.iteration));
        }
        if let Verdict::Unavailable { trouble, message } = verdict {
            self.note_unavailable(&open, trouble, message, at);
            return;
        }
        if matches!(verdict, Verdict::HandedOver { .. }) {
            // The next one starts with a fresh context.
            open.session = None;
        }
        self.note_worked(&open);
        if open.vitals.health != Health::Terminated {
            self.run.terminations = 0;
        }
        let progress = self.count_progress(&open);
        self.note_in_breaker(&open, verdict, progress, at);
        self.remember_ended(&open, verdict_name(verdict), at);
        self.close(&open, phase_after(verdict), verdict_name(verdict), at);
        let entry_limit = self.policy.limits.stuck_threshold;
        let Some(slot) = self.tasks.slot(&open.task) else { return };
        let no_failure =
            matches!(verdict, Verdict::Asked | Verdict::Held { .. } | Verdict::HandedOver { .. });
        self.tasks.note_attempt(slot, at, !no_failure);
        let entry = &mut self.tasks.entries[slot];
        entry.attempts = open.attempt;
        if !changed {
            entry.kept = None;
        }
        entry.remember(remembered(&open, verdict_name(verdict), feedback(verdict, &open)));
        let stuck = match verdict {
            // What needs no agent has its retries, and nobody it could be stuck with.
            Verdict::Errored { .. } if open.own => false,
            Verdict::Errored { failure } => entry.count_error(&failure.signature, entry_limit),
            Verdict::Refuted { .. }
            | Verdict::Unclaimed
            | Verdict::Asked
            | Verdict::Held { .. }
            | Verdict::HandedOver { .. } => {
                entry.error_streak = None;
                false
            }
            Verdict::Accepted { .. } | Verdict::Unavailable { .. } => false,
        };
        self.set_state(&open.task, TaskState::Open, at);
        if !stuck {
            let outcome = match verdict {
                // Nobody else has told what is wrong.
                Verdict::Errored { failure } if open.own => failure.message.as_str(),
                verdict => verdict_name(verdict),
            };
            self.note_exhausted(&open.task, outcome);
        }
        match verdict {
            Verdict::Errored { failure } if stuck => {
                self.run.consecutive_errors = 0;
                self.run.without_progress = 0;
                self.breaker.forget_streaks();
                self.to_ask
                    .push_back((Some(open.task.clone()), repeated_error(&open.task, failure, entry_limit)));
            }
            Verdict::Errored { .. } => {
                self.run.consecutive_errors += u32::from(!open.own);
                self.delay_after_error(&open.task, at);
            }
            Verdict::Asked => {
                self.run.consecutive_errors = 0;
                for question in &open.asked {
                    self.to_ask.push_back((Some(open.task.clone()), question.clone()));
                }
            }
            Verdict::Held { reasons } => {
                self.run.consecutive_errors = 0;
                self.to_ask.push_back((Some(open.task.clone()), flagged(&open.task, reasons)));
            }
            Verdict::Refuted { .. }
            | Verdict::Unclaimed
            | Verdict::HandedOver { .. }
            | Verdict::Accepted { .. }
            | Verdict::Unavailable { .. } => {
                self.run.consecutive_errors = 0;
            }
        }
    }

    /// The rows with the iteration under way.
    pub(crate) fn rows_with(&self, open: &OpenIteration) -> Rows {
        let says_done = open.claim.is_some() || open.phrase.is_some();
        self.rows.with(says_done, open.inspection.as_ref().is_some_and(|seen| seen.only_tests))
    }

    /// What every ended iteration leaves behind: a checkpoint to be made, what was learnt, and
    /// whether work is handed over.
    fn close(&mut self, open: &OpenIteration, phase: Phase, outcome: &str, at: Timestamp) {
        self.checkpoints.ended(Ended::of(open, phase, outcome, at));
        self.memory.remember(open.iteration, &open.task, &open.notes.learnt);
        let handoff = open.handoff.as_ref().filter(|_| phase == Phase::Handoff);
        self.handoffs.pending = handoff.map(|handoff| handoff.trigger.clone());
        let trigger = match open.error {
            Some(_) if open.own => None,
            Some(_) if open.handoff.is_none() => {
                self.handoffs.errored(&self.policy.handoff, open.exit == Some(Exit::TimedOut))
            }
            Some(_) | None => {
                self.handoffs.worked();
                None
            }
        };
        self.handoffs.due = trigger.map(|trigger| (open.iteration, open.attempt, trigger));
    }

    /// As if it had not been started, but for its work and for what is known of the agent now.
    fn note_unavailable(&mut self, open: &OpenIteration, trouble: &Trouble, message: &str, at: Timestamp) {
        self.breaker.lose_probe();
        let iteration = open.iteration;
        self.agents.note_trouble(&self.policy.agents, &open.agent, iteration, trouble, message, at);
        self.run.iterations = self.run.iterations.saturating_sub(1);
        self.remember_ended(open, "agent unavailable", at);
        self.handoffs.pending.clone_from(&open.after_handoff);
        self.set_state(&open.task, TaskState::Open, at);
    }

    /// No progress means neither a completion nor a change of the tree.
    fn count_progress(&mut self, open: &OpenIteration) -> bool {
        if open.own {
            return true;
        }
        let Some(slot) = self.tasks.slot(&open.task) else { return false };
        let entry = &mut self.tasks.entries[slot];
        let digest = open.inspection.as_ref().map(|seen| seen.digest.clone());
        let changed = match (&digest, &entry.last_digest) {
            (Some(now), Some(before)) => now != before,
            (Some(_), None) => open.inspection.as_ref().is_some_and(|seen| seen.changed_total > 0),
            (None, _) => false,
        };
        entry.last_digest = digest;
        if changed {
            self.run.without_progress = 0;
        } else {
            self.run.without_progress += 1;
        }
        changed
    }

    fn note_in_breaker(&mut self, open: &OpenIteration, verdict: &Verdict, progress: bool, at: Timestamp) {
        if open.own {
            return;
        }
        let seen = match verdict {
            Verdict::Errored { failure } => breaker::Seen::Failed {
                signature: &failure.signature,
                denied: open.trouble == Some(Trouble::PermissionDenied),
                progress,
            },
            Verdict::Asked | Verdict::Held { .. } => breaker::Seen::Asked,
            Verdict::Refuted { .. }
            | Verdict::Unclaimed
            | Verdict::HandedOver { .. }
            | Verdict::Accepted { .. }
            | Verdict::Unavailable { .. } => breaker::Seen::Ended { progress },
        };
        self.breaker.note(&self.policy.breaker, seen, self.run.number, at);
    }

    fn change_health(&mut self, health: Health, last_beat: Option<Timestamp>, detail: &str, at: Timestamp) {
        match health {
            Health::Healthy => self.close_question_of_agent(),
            Health::Terminated => {
                let by_person = self.open.as_ref().is_some_and(|open| open.vitals.is_told());
                self.run.terminations = if by_person { 0 } else { self.run.terminations + 1 };
                self.close_question_of_agent();
            }
            Health::Degraded | Health::Stuck | Health::Failing => {}
        }
        if let Some(open) = &mut self.open {
            open.vitals.change(health, last_beat, detail, at);
        }
    }

    /// Whatever the agent has come to, there is nothing left to ask about it.
    fn close_question_of_agent(&mut self) {
        if let Some(id) = self.open.as_mut().and_then(|open| open.vitals.question.take()) {
            self.questions.remove(&id);
        }
    }

    fn delay_after_error(&mut self, task: &TaskId, at: Timestamp) {
        let Some(slot) = self.tasks.slot(task) else { return };
        let retry = &self.policy.retry;
        let doublings = self.tasks.entries[slot].failures.saturating_sub(1).min(20);
        let wait = retry.backoff.0.saturating_mul(1 << doublings).min(retry.backoff_max.0);
        if wait > 0 {
            let until = add_millis(at, wait);
            self.tasks.delay(slot, until);
        }
    }

    fn complete(&mut self, task: &TaskId, attempt: Attempt, verified: bool, at: Timestamp) {
        let phase_before = self.tasks.current_phase();
        let open = self.open.take();
        if let Some(open) = &open {
            self.note_worked(open);
            self.remember_ended(open, "completed", at);
            self.close(open, Phase::Complete, "completed", at);
        }
        self.run.completed += 1;
        self.run.consecutive_errors = 0;
        self.run.without_progress = 0;
        self.run.terminations = 0;
        self.breaker.close();
        self.rows.commit();
        self.workspace = Workspace::Clean;
        self.unkept = None;
        if let Some(slot) = self.tasks.slot(task) {
            let entry = &mut self.tasks.entries[slot];
            entry.attempts = attempt;
            entry.forget_failures();
            entry.kept = None;
            if entry.spec.work.is_agents() {
                self.history.completed(&entry.spec, entry.spent);
            }
            if let Some(open) = &open {
                entry.remember(remembered(open, "completed", String::new()));
            }
        }
        self.set_state(task, TaskState::Done { verified }, at);
        let counts = self.tasks.counts();
        if self.history.first.is_none() && 4 * counts.done >= counts.total {
            self.history.first = forecast(self);
        }
        if let (Some(open), Some(phase), Some(next)) = (open, phase_before, self.tasks.current_phase())
            && self.policy.handoff.on_phase
            && next > phase
        {
            self.handoffs.due = Some((open.iteration, open.attempt, Trigger::Phase { phase }));
        }
    }

    fn refuse_commit(&mut self, output: &str, at: Timestamp) {
        let Some(open) = self.open.take() else { return };
        self.unkept = Some((open.task.clone(), open.iteration));
        self.run.consecutive_errors = 0;
        let progress = self.count_progress(&open);
        let seen = breaker::Seen::Ended { progress };
        self.breaker.note(&self.policy.breaker, seen, self.run.number, at);
        self.remember_ended(&open, "commit refused", at);
        self.close(&open, Phase::Testing, "commit refused", at);
        if let Some(slot) = self.tasks.slot(&open.task) {
            self.tasks.note_attempt(slot, at, true);
            let entry = &mut self.tasks.entries[slot];
            entry.attempts = open.attempt;
            entry.error_streak = None;
            let feedback = format!("The checks passed, but a git hook refused the commit:\n{output}");
            entry.remember(remembered(&open, "commit refused", feedback));
        }
        self.set_state(&open.task, TaskState::Open, at);
        self.note_exhausted(&open.task, "commit refused");
    }

    fn note_exhausted(&mut self, task: &TaskId, outcome: &str) {
        let Some(entry) = self.tasks.get(task) else { return };
        let early = u32::from(planted(Mutant::GivesUpEarly));
        let exhausted = entry.failures + early > entry.max_retries(&self.policy);
        if exhausted && !planted(Mutant::ForgivesFailures) {
            let reason = format!("{} attempts, the last: {outcome}", entry.failures);
            self.to_fail.push_back((task.clone(), reason));
        }
    }

    fn interrupt(&mut self, at: Timestamp) {
        self.close_question_of_agent();
        self.breaker.lose_probe();
        let under_way = self.open.clone().filter(|_| planted(Mutant::InterruptsTwice));
        let Some(open) = std::mem::replace(&mut self.open, under_way) else { return };
        self.iterations = open.iteration.saturating_sub(1);
        self.run.iterations = self.run.iterations.saturating_sub(1);
        if open.vitals.health == Health::Terminated {
            // It will be given up again, in the attempt that takes the place of this one.
            self.run.terminations = self.run.terminations.saturating_sub(1);
        }
        self.note_worked(&open);
        self.handoffs.pending.clone_from(&open.after_handoff);
        self.set_state(&open.task, TaskState::Open, at);
    }

    fn remember_ended(&mut self, open: &OpenIteration, outcome: &str, at: Timestamp) {
        if self.recent.len() == RECENT_ITERATIONS {
            self.recent.pop_front();
        }
        self.recent.push_back(EndedIteration {
            iteration: open.iteration,
            task: open.task.clone(),
            attempt: open.attempt,
            started_at: open.started_at,
            ended_at: at,
            outcome: outcome.to_owned(),
            usage: open.usage,
        });
    }

    /// The engine itself is not an agent that could come to be missed.
    fn note_worked(&mut self, open: &OpenIteration) {
        if !open.own {
            self.agents.worked(&open.agent, open.session.as_ref());
        }
    }

    fn ask_about_failed(&mut self, task: &TaskId, reason: &str) {
        if self.run.asked_about.insert(task.clone()) {
            let waiting = self.tasks.waiting_on(task);
            self.to_ask.push_back((Some(task.clone()), failed_question(task, reason, &waiting)));
        }
    }

    fn raise(&mut self, id: QuestionId, task: &Option<TaskId>, question: &Question, at: Timestamp) {
        self.next_question = self.next_question.max(id.0);
        if self.to_ask.front().is_some_and(|(of, asked)| of == task && asked == question) {
            self.to_ask.pop_front();
        }
        self.questions
            .insert(id, OpenQuestion { task: task.clone(), question: question.clone(), raised_at: at });
        if let Some(task) = task {
            match question.kind {
                QuestionKind::Stuck
                | QuestionKind::Deviation
                | QuestionKind::Repeated
                | QuestionKind::Flagged
                | QuestionKind::Uncertain => self.set_state(task, TaskState::Parked(id), at),
                QuestionKind::Failed | QuestionKind::Blocked => {
                    self.run.asked_about.insert(task.clone());
                }
                QuestionKind::Unresponsive => {
                    if let Some(open) = &mut self.open {
                        open.vitals.question = Some(id);
                    }
                }
            }
        }
    }

    fn answer(&mut self, id: QuestionId, answer: &Answer, at: Timestamp) {
        let Some(asked) = self.questions.remove(&id) else { return };
        self.breaker.close();
        if asked.question.kind == QuestionKind::Unresponsive {
            self.answer_about_agent(id, answer, at);
            return;
        }
        let meaning = meaning(&asked.question, answer);
        if meaning == Meaning::Abort {
            self.run.stop_requested = Some(format!("answer to {id}"));
        }
        let Some(task) = asked.task else { return };
        match meaning {
            Meaning::Guide(text) => {
                if let Some(slot) = self.tasks.slot(&task) {
                    self.tasks.entries[slot].guidance.push(text);
                }
                self.reopen(&task, at);
            }
            Meaning::Approve => {
                if let Some(slot) = self.tasks.slot(&task) {
                    let reasons = asked.question.context.lines().map(str::to_owned);
                    self.tasks.entries[slot].approved.extend(reasons);
                }
                self.reopen(&task, at);
            }
            Meaning::Retry => self.reopen(&task, at),
            Meaning::Done => {
                self.call_happened(&task);
                self.settle_by_person(&task, TaskState::Done { verified: false }, at);
            }
            Meaning::Skip => self.settle_by_person(&task, TaskState::Skipped, at),
            Meaning::SkipDependents => {
                for waiting in self.tasks.waiting_on(&task) {
                    self.settle_by_person(&waiting, TaskState::Skipped, at);
                }
            }
            // Whether it happened is still unknown.
            Meaning::Abort if asked.question.kind == QuestionKind::Uncertain => {
                self.to_ask.push_back((Some(task), asked.question));
            }
            Meaning::Abort => {
                if matches!(self.tasks.get(&task).map(|entry| &entry.state), Some(TaskState::Parked(_))) {
                    self.set_state(&task, TaskState::Open, at);
                    // The question stood in for its failure, which nobody has forgiven.
                    self.note_exhausted(&task, "nobody said how to go on");
                }
            }
        }
    }

    fn answer_about_agent(&mut self, id: QuestionId, answer: &Answer, at: Timestamp) {
        if *answer == Answer::Abort {
            self.run.stop_requested = Some(format!("answer to {id}"));
        }
        let Some(open) = &mut self.open else { return };
        open.vitals.answer(answer, at);
        if let Answer::Words { text } = answer
            && let Some(slot) = self.tasks.slot(&open.task)
        {
            self.tasks.entries[slot].guidance.push(text.clone());
        }
    }

    fn reopen(&mut self, task: &TaskId, at: Timestamp) {
        let Some(slot) = self.tasks.slot(task) else { return };
        if self.tasks.entries[slot].state == TaskState::Running {
            return;
        }
        self.close_questions_of(task);
        self.run.asked_about.remove(task);
        self.run.consecutive_errors = 0;
        self.run.without_progress = 0;
        self.run.terminations = 0;
        self.breaker.close();
        self.tasks.undelay(slot);
        self.tasks.entries[slot].fate = None;
        self.tasks.entries[slot].forget_failures();
        self.set_state(task, TaskState::Open, at);
    }

    fn settle_by_person(&mut self, task: &TaskId, state: TaskState, at: Timestamp) {
        self.breaker.close();
        self.close_questions_of(task);
        self.set_state(task, state, at);
    }

    pub(crate) fn close_questions_of(&mut self, task: &TaskId) {
        self.to_fail.retain(|(failing, _)| failing != task);
        self.questions.retain(|_, asked| asked.task.as_ref() != Some(task));
        self.to_ask.retain(|(of, _)| of.as_ref() != Some(task));
    }

    pub(crate) fn set_state(&mut self, task: &TaskId, state: TaskState, at: Timestamp) {
        if let Some(slot) = self.tasks.slot(task) {
            self.tasks.set_state(slot, state, at);
            self.note_status_due(slot);
        }
    }

    fn note_status_due(&mut self, slot: usize) {
        let entry = &self.tasks.entries[slot];
        if !entry.is_removed() && entry.state.file_status() != entry.spec.status {
            self.status_due.insert(entry.spec.id.clone());
        } else {
            self.status_due.remove(&entry.spec.id);
        }
    }
}

pub fn verdict_name(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Accepted { .. } => "accepted",
        Verdict::Refuted { .. } => "claim refuted",
        Verdict::Unclaimed => "no claim",
        Verdict::Errored { .. } => "error",
        Verdict::Unavailable { .. } => "agent unavailable",
        Verdict::Asked => "asked a question",
        Verdict::Held { .. } => "held for a person",
        Verdict::HandedOver { .. } => "handed over",
    }
}

/// Where the task stands after an attempt that was not accepted.
fn phase_after(verdict: &Verdict) -> Phase {
    match verdict {
        Verdict::Accepted { .. } => Phase::Complete,
        Verdict::Refuted { .. } => Phase::Testing,
        Verdict::Unclaimed | Verdict::Errored { .. } | Verdict::Unavailable { .. } => Phase::Implementing,
        Verdict::Asked | Verdict::Held { .. } => Phase::Reviewing,
        Verdict::HandedOver { .. } => Phase::Handoff,
    }
}

fn remembered(open: &OpenIteration, outcome: &str, feedback: String) -> AttemptMemory {
    let seen = open.inspection.as_ref();
    AttemptMemory {
        attempt: open.attempt,
        outcome: outcome.to_owned(),
        feedback,
        agent: open.agent.clone(),
        changed: seen.map(|seen| seen.changed.clone()).unwrap_or_default(),
        changed_total: seen.map_or(0, |seen| seen.changed_total),
        message: head(&open.message, REMEMBERED_WORDS).to_owned(),
    }
}

fn feedback(verdict: &Verdict, open: &OpenIteration) -> String {
    match verdict {
        Verdict::Accepted { .. } => String::new(),
        Verdict::Refuted { reasons } | Verdict::Held { reasons } => reasons.join("\n\n"),
        Verdict::Unclaimed => {
            format!("It ended without claiming to be done. Its last words:\n{}", open.message)
        }
        Verdict::Errored { failure } => failure.message.clone(),
        Verdict::Unavailable { message, .. } => message.clone(),
        Verdict::HandedOver { trigger } => match &open.notes.handoff {
            Some(why) => format!("It stopped so that you can go on ({trigger}): {why}"),
            None => format!("It stopped so that you can go on: {trigger}. Its last words:\n{}", open.message),
        },
        Verdict::Asked => open.asked.iter().map(|question| format!("Asked: {}", question.summary)).collect(),
    }
}

/// How long it is from one moment to a later one.
pub fn millis_between(from: Timestamp, to: Timestamp) -> u64 {
    u64::try_from(to.as_millisecond() - from.as_millisecond()).unwrap_or(0)
}

/// A moment later by so many milliseconds; the end of time at the latest.
pub fn add_millis(at: Timestamp, millis: u64) -> Timestamp {
    let millis = i64::try_from(millis).unwrap_or(i64::MAX);
    Timestamp::from_millisecond(at.as_millisecond().saturating_add(millis)).unwrap_or(Timestamp::MAX)
}
