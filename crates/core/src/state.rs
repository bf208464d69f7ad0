//! What is true of a loop: the fold over its journal.
//!
//! [`Loop::apply`] is the only way the state changes. It never decides anything beyond what the
//! event itself settles; [`crate::decide`] does that. All work per event is independent of how
//! many tasks and events there are (a changed backlog excepted).

mod ends;
mod open;
mod questions;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use jiff::Timestamp;
use uuid::Uuid;

use crate::agents::Agents;
use crate::baseline::{Baseline, Checked};
use crate::breaker::Breaker;
use crate::budget::{self, Alert, Gauge, Reached, Scope, Spending, Strategy, Sum};
use crate::checkpoint::{Checkpoints, Phase};
use crate::clean::Clean;
use crate::event::{
    AgentFacts, BaselineOutcome, EndReason, Envelope, Event, Evidence, Question, Usage, Verdict,
};
use crate::forecast::History;
use crate::handoff::{self, Handoffs, Handover, Trigger};
use crate::health::{self, Health};
use crate::ids::{Attempt, Epoch, Iteration, LoopId, QuestionId, Seq, TaskId};
use crate::memory::Memory;
use crate::mutant::{Mutant, planted};
use crate::policy::Policy;
use crate::price;
use crate::restore::Restoring;
use crate::signal::support::Rows;
use crate::task::{FileStatus, Task};
use crate::tasks::{TaskEntry, TaskState, Tasks};

pub use open::{Inspection, OpenIteration, Seen, Stage, UnderWay};

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
    /// The loop's own checks on the tree before anybody works on it.
    pub baseline: Baseline,
    /// The newest commit in a clean checkout.
    pub clean: Clean,
    /// What the last iterations have in common.
    pub rows: Rows,
    pub tasks: Tasks,
    /// The iterations under way. One at a time for now; what it may do is in its stage.
    pub open: UnderWay,
    /// The number of the newest iteration.
    pub iterations: Iteration,
    /// The numbers of interrupted iterations: the next one of the same task has the number again.
    pub interrupted: BTreeMap<TaskId, Iteration>,
    /// Iterations that count against the limit, over all runs and before the first of them.
    pub used: u32,
    pub questions: BTreeMap<QuestionId, OpenQuestion>,
    pub next_question: u32,
    /// Questions that follow from what happened and are still to be put.
    pub to_ask: VecDeque<(Option<TaskId>, Question)>,
    /// Tasks whose kept work a person accepted: it is landed before anything else starts.
    pub to_land: BTreeSet<TaskId>,
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
    /// How many tests of each check passed when it last did on a tree that counts.
    pub tests: BTreeMap<String, u32>,
    /// What tasks have cost, to foresee what the others will.
    pub history: History,
    pub recent: VecDeque<EndedIteration>,
    pub last_at: Option<Timestamp>,
    /// Tasks whose status in the file is not what it should be.
    pub status_due: BTreeSet<TaskId>,
    /// Skipped, and the commit that says so is still to be made.
    pub skips_to_commit: BTreeSet<TaskId>,
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
    /// Iterations that count against the limit.
    pub iterations: u32,
    pub completed: u32,
    /// The commit with changes of the user that could not be put back.
    pub left_aside: Option<String>,
    pub consecutive_errors: u32,
    pub without_progress: u32,
    /// Agents in a row that were ended because they made no progress.
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
pub struct EndedIteration {
    pub iteration: Iteration,
    pub task: TaskId,
    pub attempt: Attempt,
    pub started_at: Timestamp,
    pub ended_at: Timestamp,
    pub outcome: String,
    pub usage: Option<Usage>,
    pub agent: String,
    pub model: Option<String>,
    pub phase: Phase,
    /// What went wrong, each in a line.
    pub errors: Vec<String>,
    pub checkpoint: Option<Uuid>,
    pub handoff: Option<Trigger>,
    pub health: Health,
    /// The first of what it left to do, in the order of the backlog.
    pub pending: Vec<TaskId>,
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

    /// A loop that knows these tasks by what their file says, and of which nothing else is known: for whoever wants to
    /// change a backlog that nobody works on.
    pub fn knowing(tasks: &[Task], policy: Policy) -> Self {
        let mut state = Self { policy, ..Self::default() };
        state.read_backlog(tasks, &[], &[], None, Timestamp::UNIX_EPOCH);
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
                self.create(*loop_id, name, repository, backlog);
            }
            Event::LoopMoved { repository, .. } => repository.clone_into(&mut self.repository),
            Event::RunStarted { run, policy, agent, git, tree, .. } => {
                self.start_run(*run, policy, agent, *git, at);
                self.baseline.start_run(tree);
                self.clean.start_run(tree);
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
            Event::StatusWritten { task, status } => self.note_written(task, *status),
            event @ Event::IterationStarted { .. } => self.start_iteration(event, at),
            Event::UsageSeen { iteration, usage, model, .. } => {
                let seen = Seen { usage: *usage, model: model.clone() };
                self.note_open(*iteration, |open| open.seen = Some(seen));
            }
            Event::Charged { iteration, usage, model, .. } => {
                self.note_open(*iteration, |open| open.seen = None);
                self.charge(*iteration, *usage, model.as_deref(), at);
            }
            event @ Event::AgentEnded { iteration, usage, facts, .. } => {
                self.end_agent(*iteration, event, *usage, facts, at);
            }
            Event::CallStarted { iteration, server, tool, repeatable, .. } => {
                self.start_call(*iteration, server, tool, *repeatable);
            }
            Event::WorkEnded { iteration, duration, result, error, uncertain, permanent, .. } => {
                self.end_work(*iteration, *duration, result, error.as_ref(), *uncertain);
                self.note_open(*iteration, |open| open.permanent = *permanent);
            }
            Event::AgentReported { iteration, report, .. } => {
                self.note_open(*iteration, |open| open.take_report(report));
            }
            Event::CommitsFound { iteration, commit, .. } => {
                self.note_open(*iteration, |open| {
                    open.base = Some(commit.clone());
                    // What was checked was another tree.
                    open.forget_evidence();
                });
                self.checkpoints.committed(Some(commit));
            }
            Event::TreeTaken { iteration, flags, .. } => {
                self.note_open(*iteration, |open| open.take_tree(flags));
            }
            Event::TreeAltered { iteration, .. } => self.note_open(*iteration, OpenIteration::alter_tree),
            Event::EvidenceGathered { iteration, evidence, .. } => {
                self.note_open(*iteration, |open| open.gather(evidence));
            }
            Event::BaselineStarted { command } => self.baseline.under_way = Some(command.clone()),
            Event::BaselineChecked { command, outcome, evidence, .. } => {
                self.baseline.under_way = None;
                // A run that found none is told as well: what is there later came after it.
                if *outcome != BaselineOutcome::Interrupted {
                    self.note_tests(evidence.iter());
                }
                if *outcome != BaselineOutcome::Interrupted {
                    let (command, outcome) = (command.clone(), outcome.clone());
                    self.baseline
                        .note(&self.policy, Checked { command, outcome, evidence: evidence.clone() });
                    self.close_settled_baseline();
                }
            }
            Event::TaskBaselineChecked { task, command, outcome } => {
                self.note_task_baseline(task, command, outcome);
            }
            Event::RepairPlanned { task } => self.baseline.repair = Some(task.clone()),
            Event::CleanChecked { commit, evidence } => self.clean.note(&self.policy, commit, evidence),
            event @ Event::WorkInspected { iteration, .. } => {
                self.note_open(*iteration, |open| open.inspect(event));
            }
            Event::Judged { iteration, verdict, .. } => self.judge(*iteration, verdict, at),
            Event::WorkKept { task, commit, reference, .. } => self.keep_work(task, commit, reference),
            Event::WorkspaceReset { .. } => {
                self.workspace = Workspace::Clean;
                self.unkept = None;
            }
            Event::TaskCompleted { iteration, task, verified, attempt, commit } => {
                let checks = crate::baseline::checks(&self.policy);
                let passed_before = checks.iter().all(|check| self.baseline.has_passed(&check.command));
                if let Some(commit) = commit.as_ref().filter(|_| *verified) {
                    self.baseline.committed(&self.policy, commit);
                }
                self.checkpoints.committed(commit.as_ref());
                let base = self.open.get(*iteration).and_then(|open| open.base.as_ref());
                self.clean.committed(task, base, commit.as_ref(), passed_before);
                self.complete(*iteration, task, *attempt, *verified, at);
            }
            Event::CommitRefused { iteration, output, .. } => {
                self.refuse_commit(*iteration, &output.excerpt, at);
            }
            Event::TaskFailed { task, reason } => {
                self.to_fail.retain(|(failing, _)| failing != task);
                self.set_state(task, TaskState::Failed { reason: reason.clone() }, at);
                self.ask_about_failed(task, reason);
            }
            Event::TaskSkipped { task, .. } => self.settle_by_person(task, TaskState::Skipped, at),
            Event::TaskReopened { task, .. } => self.reopen(task, at),
            Event::StatusSet { task, status, .. } => self.set_status(task, *status, at),
            Event::SkipsCommitted { tasks, commit } => {
                self.skips_to_commit.retain(|task| !tasks.contains(task));
                self.checkpoints.committed(commit.as_ref());
            }
            Event::SkipAsked { iteration, by, .. } => {
                self.note_open(*iteration, |open| open.skipped_by = Some(by.clone()));
            }
            Event::StatusPutBack { .. } | Event::RequestRefused { .. } | Event::Noticed { .. } => {}
            Event::BudgetAlert { scope, task, unit, spent, limit, threshold, resets_at } => {
                let gauge = Gauge::told(*scope, *unit, *spent, *limit, *resets_at);
                self.spending.note_alert(&Alert { gauge, task: task.clone(), threshold: *threshold });
            }
            Event::BudgetAsked { granted, figures } => {
                self.spending.look(*figures, *granted, at);
                self.reconsider_order(at);
            }
            Event::BudgetReached { iteration, scope, unit, spent, limit, resets_at, .. } => {
                let gauge = Gauge::told(*scope, *unit, *spent, *limit, *resets_at);
                self.reach_budget(*iteration, gauge, at);
            }
            Event::QuestionRaised { id, task, question } => self.raise(*id, task, question, at),
            Event::QuestionAnswered { id, answer, .. } => self.answer(*id, answer, at),
            Event::Nudged { iteration, text, delivered, by, .. } => {
                self.note_nudge(*iteration, text, *delivered, by);
            }
            Event::HealthChanged { iteration, health, last_beat, detail, .. } => {
                self.change_health(*iteration, *health, *last_beat, detail, at);
            }
            Event::HandoffStarted { iteration, trigger, asked, .. } => {
                self.start_handoff(*iteration, trigger, *asked, at);
            }
            Event::Checkpointed { task, id, checkpoint, by, .. } => {
                self.note_checkpoint(task.as_ref(), *id, &checkpoint.sha256, by);
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
            Event::Interrupted { iteration, .. } => self.interrupt(*iteration, at),
            Event::UserChangesSetAside { commit, .. } => self.user_changes = Some(commit.clone()),
            Event::UserChangesPutBack { commit, clean } => {
                self.user_changes = None;
                self.run.left_aside = (!clean).then(|| commit.clone());
            }
            Event::RunEnded { reason, detail, .. } => {
                self.run.active = planted(Mutant::NeverEnds);
                self.run.ended = Some((*reason, detail.clone()));
            }
        }
    }

    /// Remembers how many tests there were in checks that passed.
    fn note_tests<'a>(&mut self, evidence: impl Iterator<Item = &'a Evidence>) {
        for passed in evidence.filter(|evidence| evidence.passed()) {
            match passed.tests {
                Some(count) => drop(self.tests.insert(passed.command.clone(), count)),
                None => drop(self.tests.remove(&passed.command)),
            }
        }
    }

    /// Milliseconds the run has been at work, up to `now`.
    pub fn active_ms(&self, now: Timestamp) -> u64 {
        let since = self.last_at.map_or(0, |last| millis_between(last, now));
        self.run.active_ms.saturating_add(if self.run.active { since } else { 0 })
    }

    /// Would its next attempt be one of the iterations that are limited?
    pub(crate) fn counts(&self, entry: &TaskEntry) -> bool {
        self.policy.limits.retries_count || !entry.came_to_nothing
    }

    /// The number of a task's next iteration: that of its interrupted one, or a new one.
    pub fn next_number(&self, task: &TaskId) -> Iteration {
        let interrupted = self.interrupted.get(task).copied();
        interrupted.unwrap_or(self.iterations.saturating_add(1))
    }

    /// How many iterations there were, those apart that were interrupted and not begun again.
    pub fn total_iterations(&self) -> u32 {
        let interrupted = u32::try_from(self.interrupted.len()).unwrap_or(u32::MAX);
        self.iterations.saturating_sub(interrupted)
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

    fn create(&mut self, id: LoopId, name: &str, repository: &str, backlog: &str) {
        self.id = Some(id).filter(|_| !planted(Mutant::ForgetsItself));
        name.clone_into(&mut self.name);
        repository.clone_into(&mut self.repository);
        backlog.clone_into(&mut self.backlog);
        self.run.active = planted(Mutant::RunsUnstarted);
    }

    fn start_run(&mut self, run: u32, policy: &Policy, agent: &str, git: bool, at: Timestamp) {
        self.agents.start_anew();
        self.spending.start_anew();
        let number = if planted(Mutant::ForgetsRunNumber) { self.run.number } else { run };
        self.run = Run { number, active: true, started_at: Some(at), ..Run::default() };
        self.adopt_policy(policy, agent);
        if run == 1 {
            self.used = policy.limits.used_before;
            self.run.iterations = policy.limits.used_before;
        }
        self.git = git;
        self.paused = false;
    }

    fn adopt_policy(&mut self, policy: &Policy, agent: &str) {
        // Evidence counts for the checks it was gathered for.
        if self.policy.checks != policy.checks {
            self.check_anew();
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
        for open in self.open.iter_mut() {
            open.added.extend(added.iter().map(|task| task.id.clone()));
            open.added.retain(|id| !removed.contains(id));
        }
        if changed.is_empty() && removed.is_empty() && order.is_none() && self.tasks.append(added, at) {
            return;
        }
        for task in added.iter().chain(changed) {
            if self.tasks.get(&task.id).is_some_and(|entry| entry.spec.status != task.status) {
                self.close_questions_of(&task.id);
            }
            self.keep_former_spec(task);
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

    /// What is checked, and what was asked for, is what the task said when its attempt began.
    fn keep_former_spec(&mut self, task: &Task) {
        let Some(open) = self.open.of_task_mut(&task.id) else { return };
        if let Some(entry) = self.tasks.get(&task.id) {
            open.spec.get_or_insert_with(|| Box::new(entry.spec.clone()));
        }
    }

    /// The task of an iteration under way as it was when it began.
    pub fn spec_of<'a>(&'a self, open: &'a OpenIteration) -> Option<&'a Task> {
        open.spec.as_deref().or_else(|| self.task(&open.task).map(|entry| &entry.spec))
    }

    /// While its agent works, or because of how it ended.
    fn start_handoff(&mut self, iteration: Iteration, trigger: &Trigger, asked: bool, at: Timestamp) {
        self.handoffs.due = None;
        match self.open.get_mut(iteration) {
            Some(open) => open.handoff = Some(Handover { trigger: trigger.clone(), since: at, asked }),
            None => {
                self.handoffs.pending = Some(trigger.clone());
                self.checkpoints.handed_over(iteration, trigger);
                if let Some(ended) = self.recent.back_mut().filter(|ended| ended.iteration == iteration) {
                    ended.handoff = Some(trigger.clone());
                }
                self.agents.forget_sessions();
            }
        }
    }

    /// The agent comes to an end, and another goes on from there once there is money for it.
    fn reach_budget(&mut self, iteration: Iteration, gauge: Gauge, at: Timestamp) {
        let Some(open) = self.open.get_mut(iteration) else { return };
        let trigger = Trigger::Budget { percent: handoff::percent_spent(gauge.spent, gauge.limit) };
        open.over_budget = Some(gauge);
        open.handoff = Some(Handover { trigger, since: at, asked: false });
        let reached = Some(Reached::of(&gauge));
        match gauge.scope {
            Scope::Task => {
                if let Some(slot) = self.tasks.slot(&open.task) {
                    self.tasks.entries[slot].budget_reached = reached;
                }
            }
            Scope::Loop | Scope::Project | Scope::Organisation => self.spending.reached = reached,
        }
    }

    fn start_iteration(&mut self, event: &Event, at: Timestamp) {
        let after_handoff = self.handoffs.pending.take();
        let own = matches!(event, Event::IterationStarted { task, .. } if self.is_own_work(task));
        let Some(mut open) = OpenIteration::new(event, own, after_handoff, at) else { return };
        open.counts = self.task(&open.task).is_none_or(|entry| self.counts(entry));
        if !open.own && !open.accepted {
            let beyond = budget::is_beyond(self, at);
            self.spending.begin_call(open.started_at, self.policy.limits.calls_per_hour, beyond);
            self.baseline.is_past = true;
        }
        self.checkpoints.iteration_started(open.base.as_ref(), open.branch.as_ref());
        self.iterations = self.iterations.max(open.iteration);
        // Journals of the first version give the number to whichever task comes next.
        self.interrupted.retain(|task, number| *task != open.task && *number != open.iteration);
        self.run.iterations = self.run.iterations.saturating_add(u32::from(open.counts));
        self.used = self.used.saturating_add(u32::from(open.counts));
        // Whatever was to be asked about it before, somebody has decided.
        self.to_ask.retain(|(of, _)| of.as_ref() != Some(&open.task));
        self.breaker.probe();
        self.workspace =
            if open.carried.is_some() { Workspace::Holds(open.task.clone()) } else { Workspace::Clean };
        self.set_state(&open.task, TaskState::Running, open.started_at);
        self.accept_kept(&open.task.clone(), None);
        self.open.begin(open);
    }

    /// Checks that pass now leave nothing to ask about.
    fn close_settled_baseline(&mut self) {
        let settled = self.baseline.red().next().is_none();
        if let Some(id) = self.baseline.question.take_if(|_| settled) {
            self.questions.remove(&id);
        }
    }

    fn note_task_baseline(&mut self, task: &TaskId, command: &str, outcome: &BaselineOutcome) {
        self.baseline.under_way = None;
        if let Some(slot) = self.tasks.slot(task).filter(|_| *outcome != BaselineOutcome::Interrupted) {
            self.tasks.entries[slot].baseline.push((command.to_owned(), outcome.clone()));
        }
    }

    fn end_agent(
        &mut self,
        iteration: Iteration,
        event: &Event,
        usage: Option<Usage>,
        facts: &AgentFacts,
        at: Timestamp,
    ) {
        self.close_question_of_agent(iteration);
        if let Some(usage) = usage {
            self.charge(iteration, usage, facts.model.as_deref(), at);
        }
        if let Some(open) = self.open.get_mut(iteration) {
            self.handoffs.note_window(&open.agent, facts.context);
            open.model.clone_from(&facts.model);
            open.end_agent(event);
        }
    }

    /// What happens to an iteration matters only while it is open.
    fn note_open(&mut self, iteration: Iteration, note: impl FnOnce(&mut OpenIteration)) {
        if let Some(open) = self.open.get_mut(iteration) {
            note(open);
        }
    }

    fn keep_work(&mut self, task: &TaskId, commit: &str, reference: &str) {
        self.checkpoints.kept(task, commit, reference);
        if let Some(slot) = self.tasks.slot(task) {
            self.tasks.entries[slot].kept = Some(commit.to_owned());
        }
        self.unkept = None;
        self.workspace = Workspace::Holds(task.clone());
    }

    fn note_checkpoint(&mut self, task: Option<&TaskId>, id: Uuid, sha256: &str, by: &str) {
        self.checkpoints.checkpointed(id, sha256, by);
        if let Some(ended) = self.recent.back_mut().filter(|_| by.is_empty()) {
            ended.checkpoint = Some(id);
        }
        let of_iteration = task.filter(|_| by.is_empty());
        if let Some(slot) = of_iteration.and_then(|task| self.tasks.slot(task)) {
            self.tasks.entries[slot].checkpoint = Some(sha256.to_owned());
        }
    }

    /// What the agent under way did not hear is for the next attempt.
    fn note_nudge(&mut self, iteration: Iteration, text: &str, delivered: bool, by: &str) {
        if let Some(open) = self.open.get(iteration).filter(|_| !delivered && !health::is_call(by))
            && let Some(slot) = self.tasks.slot(&open.task)
        {
            self.tasks.entries[slot].guidance.push(text.to_owned());
        }
    }

    /// A new engine runs all checks of an attempt again: what one of them leaves in the work tree is
    /// gone with the engine before, and the next may need it.
    fn check_anew(&mut self) {
        for open in self.open.iter_mut().filter(|open| open.stage == Stage::Judging) {
            open.forget_evidence();
        }
    }

    /// A call is over, or was cut short, and used so much.
    fn charge(&mut self, iteration: Iteration, usage: Usage, model: Option<&str>, at: Timestamp) {
        self.usage += usage;
        self.run.usage += usage;
        let has_price = model.is_some_and(|model| price::find_own(&self.policy.prices, model).is_some());
        self.spending.charge(usage, has_price || !usage.is_unpriced(), at);
        if let Some(slot) = self.open.get(iteration).and_then(|open| self.tasks.slot(&open.task)) {
            self.tasks.entries[slot].spent += Sum::from(usage);
        }
        self.reconsider_order(at);
    }

    /// When money gets short it matters what goes first; all places are found anew, which happens
    /// once.
    fn reconsider_order(&mut self, at: Timestamp) {
        let critical = self.policy.budget.strategy == Strategy::CriticalPath && budget::is_short(self, at);
        if self.tasks.critical != critical {
            self.tasks.critical = critical;
            self.tasks.rebuild(at);
        }
    }

    fn change_health(
        &mut self,
        iteration: Iteration,
        health: Health,
        last_beat: Option<Timestamp>,
        detail: &str,
        at: Timestamp,
    ) {
        match health {
            Health::Healthy => self.close_question_of_agent(iteration),
            Health::Terminated => {
                let by_person = self.open.get(iteration).is_some_and(|open| open.vitals.is_told());
                self.run.terminations = if by_person { 0 } else { self.run.terminations + 1 };
                self.close_question_of_agent(iteration);
            }
            Health::Degraded | Health::Stuck | Health::Failing => {}
        }
        self.note_open(iteration, |open| open.vitals.change(health, last_beat, detail, at));
    }

    /// A person accepted the kept work of a task as it is.
    pub(crate) fn accept_kept(&mut self, task: &TaskId, kept: Option<String>) {
        let Some(slot) = self.tasks.slot(task) else { return };
        if kept.is_some() {
            self.to_land.insert(task.clone());
        } else {
            self.to_land.remove(task);
        }
        self.tasks.entries[slot].accepted = kept;
    }

    /// A person wants it done again, a call included that was made before.
    fn reopen(&mut self, task: &TaskId, at: Timestamp) {
        if let Some(slot) = self.tasks.slot(task).filter(|slot| !self.is_running(*slot)) {
            self.tasks.entries[slot].fate = None;
        }
        self.open_again(task, at);
    }

    /// A person lets it go on. What happened already does not happen again.
    fn open_again(&mut self, task: &TaskId, at: Timestamp) {
        let Some(slot) = self.tasks.slot(task).filter(|slot| !self.is_running(*slot)) else { return };
        self.close_questions_of(task);
        self.run.asked_about.remove(task);
        self.run.consecutive_errors = 0;
        self.run.without_progress = 0;
        self.run.terminations = 0;
        self.breaker.close();
        self.accept_kept(task, None);
        self.tasks.undelay(slot);
        self.tasks.entries[slot].forget_failures();
        self.set_state(task, TaskState::Open, at);
    }

    fn is_running(&self, slot: usize) -> bool {
        self.tasks.entries[slot].state == TaskState::Running
    }

    fn settle_by_person(&mut self, task: &TaskId, state: TaskState, at: Timestamp) {
        self.breaker.close();
        self.close_questions_of(task);
        self.set_state(task, state, at);
    }

    pub(crate) fn set_state(&mut self, task: &TaskId, state: TaskState, at: Timestamp) {
        if self.git && state == TaskState::Skipped {
            self.skips_to_commit.insert(task.clone());
        } else {
            self.skips_to_commit.remove(task);
        }
        if let Some(slot) = self.tasks.slot(task) {
            self.tasks.set_state(slot, state, at);
            self.note_status_due(slot);
        }
    }

    fn note_written(&mut self, task: &TaskId, status: FileStatus) {
        if let Some(slot) = self.tasks.slot(task) {
            self.tasks.entries[slot].note_written(status);
            self.note_status_due(slot);
        }
    }

    /// A person has settled it, or opens it again.
    fn set_status(&mut self, task: &TaskId, status: FileStatus, at: Timestamp) {
        let state = match status {
            FileStatus::Open => return self.reopen(task, at),
            FileStatus::Done => TaskState::BY_HAND,
            FileStatus::Failed => TaskState::Failed { reason: "set by a person".to_owned() },
            FileStatus::Skipped => TaskState::Skipped,
        };
        self.settle_by_person(task, state, at);
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

/// What an attempt is called whose claim did not hold.
pub const REFUTED: &str = "claim refuted";

pub fn verdict_name(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Accepted { .. } => "accepted",
        Verdict::Refuted { .. } => REFUTED,
        Verdict::Unclaimed => "no claim",
        Verdict::Errored { .. } => "error",
        Verdict::Unavailable { .. } => "agent unavailable",
        Verdict::Asked => "asked a question",
        Verdict::Held { .. } => "held for a person",
        Verdict::HandedOver { .. } => "handed over",
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
