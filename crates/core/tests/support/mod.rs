//! A world without processes, files or git that carries out plans with seeded outcomes.

use jiff::Timestamp;
use uuid::Uuid;
use wiggum_core::budget::{self, Account, AtLimit, Cap, Period, Shared, Strategy, Sum};
use wiggum_core::decide::{Action, CleanOf, StopWhy, decide};
use wiggum_core::definition::Change;
use wiggum_core::event::{
    AgentFacts, Answer, BaselineOutcome, BlobRef, Claim, ClaimSource, EndReason, Envelope, Event, Evidence,
    Exit, Failure, Question, QuestionKind, Trouble, Usage,
};
use wiggum_core::figures;
use wiggum_core::handoff::Trigger;
use wiggum_core::health::{self, OnEscalation, Pulse, Sample};
use wiggum_core::ids::{LoopId, TaskId};
use wiggum_core::policy::{Millis, Policy};
use wiggum_core::signal::notes::Notes;
use wiggum_core::state::{Loop, Stage, add_millis};
use wiggum_core::task::{FileStatus, Task};

/// How the agent of a world behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mood {
    Diligent,
    Liar,
    Idle,
    FailsAlike,
    FailsDifferently,
    /// Changes something each time and never says that it is done.
    WorksOn,
    Random,
}

pub(crate) struct World {
    pub(crate) state: Loop,
    pub(crate) journal: Vec<Envelope>,
    pub(crate) policy: Policy,
    pub(crate) interrupt_first: u32,
    /// What every call costs, in cents and in tokens; nothing is told if it is nothing.
    pub(crate) cents: u64,
    /// What other loops with the same budget have spent, and set aside.
    pub(crate) others: Account,
    /// Every attempt changes what defines its checks; whether they pass with the former definition.
    pub(crate) redefines: Option<bool>,
    /// How many tests the checks count, and how many with their former definition.
    pub(crate) tests: Option<u32>,
    pub(crate) former_tests: Option<u32>,
    /// Why it says it had to.
    pub(crate) says_why: Option<String>,
    /// The checks fail before anybody works.
    pub(crate) red_baseline: bool,
    mood: Mood,
    seed: u64,
    pub(crate) now: Timestamp,
    changes: u32,
}

impl World {
    pub(crate) fn new(seed: u64, mood: Mood) -> Self {
        let mut policy = Policy::default();
        policy.checks.verify = vec!["check".to_owned()];
        Self {
            state: Loop::default(),
            journal: Vec::new(),
            policy,
            interrupt_first: 0,
            cents: 0,
            others: Account::default(),
            redefines: None,
            tests: None,
            former_tests: None,
            says_why: None,
            red_baseline: false,
            mood,
            seed,
            now: Timestamp::UNIX_EPOCH,
            changes: 0,
        }
    }

    /// A world in which everything may happen, from the policy to the people.
    pub(crate) fn random(seed: u64) -> Self {
        let mut world = Self::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) + 1, Mood::Random);
        world.policy.limits.iterations = world.maybe(3).then(|| world.below(30) + 1);
        if world.policy.limits.iterations.is_none() {
            world.policy.limits.iterations = Some(200);
        }
        world.policy.limits.no_progress = world.below(4) + 1;
        world.policy.breaker.no_progress = world.below(5);
        world.policy.breaker.same_error = world.below(6);
        world.policy.health.nudges = world.below(4);
        world.policy.health.on_escalation =
            [OnEscalation::Terminate, OnEscalation::Wait, OnEscalation::Handoff][world.below(3) as usize];
        world.policy.people.present = world.maybe(3);
        world.policy.agents.order = (0..=world.below(2)).map(|number| format!("agent {number}")).collect();
        world.policy.checks.complete_without_claim = world.maybe(4);
        if world.maybe(5) {
            world.policy.checks.verify.clear();
        }
        world.random_budget();
        let count = world.below(12);
        let names: Vec<String> = (0..count)
            .map(|n| match n {
                0 => "t0".to_owned(),
                n if world.maybe(2) => format!("t{n}<t{}", world.below(n)),
                n => format!("t{n}"),
            })
            .collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        world.start(&names);
        world
    }

    /// Starts a run over tasks written as `id` or `id<dependency`.
    pub(crate) fn start(&mut self, tasks: &[&str]) {
        let tasks: Vec<Task> = tasks
            .iter()
            .map(|text| {
                let (id, dependency) = text.split_once('<').map_or((*text, None), |(id, d)| (id, Some(d)));
                let mut task = Task::new(id, format!("task {id}"));
                task.depends_on = dependency.into_iter().map(TaskId::from).collect();
                task
            })
            .collect();
        self.push(Event::LoopCreated {
            loop_id: LoopId(Uuid::nil()),
            name: "main".to_owned(),
            repository: "/repository".to_owned(),
            backlog: "PRD.json".to_owned(),
        });
        self.start_again();
        self.push(Event::BacklogRead {
            revision: "1".to_owned(),
            added: tasks,
            changed: Vec::new(),
            removed: Vec::new(),
            order: None,
        });
    }

    pub(crate) fn resume(&mut self) {
        let policy = Box::new(self.policy.clone());
        self.push(Event::RunResumed { run: 1, policy, agent: "agent".to_owned(), sandbox: String::new() });
    }

    pub(crate) fn push(&mut self, event: Event) {
        let envelope =
            Envelope { v: 1, seq: self.state.seq + 1, id: Uuid::nil(), at: self.now, epoch: 1, event };
        self.state.apply(&envelope);
        self.journal.push(envelope);
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.now
    }

    pub(crate) fn advance_seconds(&mut self, seconds: u64) {
        self.now = add_millis(self.now, seconds * 1000);
    }

    pub(crate) fn ended(&self) -> EndReason {
        self.state.run.ended.clone().expect("the run ended").0
    }

    /// Carries out plans until the run ends.
    pub(crate) fn run(&mut self) {
        self.run_until(|_| false);
    }

    /// Carries out plans until this has just happened or the run ends, within a bound that no sane
    /// plan needs.
    pub(crate) fn run_until(&mut self, wanted: impl Fn(&Event) -> bool) {
        for _ in 0..20_000 {
            let happened = self.journal.last().is_some_and(|envelope| wanted(&envelope.event));
            if !self.state.run.active || happened {
                return;
            }
            if self.mood == Mood::Random {
                self.meddle();
            }
            let plan = decide(&self.state, self.now);
            for action in &plan.actions {
                self.perform(action);
            }
            if plan.actions.is_empty() {
                self.wait(plan.wake_at);
            }
        }
    }

    fn wait(&mut self, wake_at: Option<Timestamp>) {
        if !self.state.open.is_empty() {
            if self.mood == Mood::Random && self.maybe(6) {
                self.fall_silent();
            }
            if self.mood == Mood::Random && self.maybe(10) {
                self.stop_short();
            }
            if self.state.open.here().is_some_and(|open| open.stage == Stage::Agent) {
                self.end_agent();
            }
        } else if self.mood == Mood::Random && self.maybe(2) && !self.state.questions.is_empty() {
            self.answer();
        } else if let Some(at) = wake_at {
            self.now = at;
        } else if self.state.paused {
            self.push(Event::Resumed { by: "test".to_owned() });
        } else {
            self.answer();
        }
    }

    pub(crate) fn perform(&mut self, action: &Action) {
        self.now = add_millis(self.now, 250);
        match action.clone() {
            Action::Record(event) => self.push(*event),
            Action::StartIteration { .. } if !self.set_money_aside() => {}
            Action::StartIteration { iteration, task, attempt, agent, carried, accepted } => {
                self.push(Event::IterationStarted {
                    iteration,
                    task,
                    attempt,
                    base: Some("base".to_owned()),
                    branch: None,
                    carried,
                    command: "agent".to_owned(),
                    agent,
                    session: None,
                    workspace: "/repository".to_owned(),
                    prompt: BlobRef::default(),
                    accepted,
                });
                self.now = add_millis(self.now, 1000);
            }
            Action::StopAgent { why: StopWhy::AgentTimeout | StopWhy::Handoff, .. } => self.end_agent(),
            Action::StopAgent { why: StopWhy::OverBudget, .. } => self.stop_agent(),
            Action::StopAgent { why: StopWhy::Unresponsive, .. } => self.end_silent_agent(),
            Action::Nudge { .. } | Action::FeelPulse { .. } => {}
            Action::HandOver { iteration, trigger } => {
                let attempt = self.state.open.here().map_or(1, |open| open.attempt);
                self.push(Event::HandoffStarted { iteration, attempt, trigger, asked: false });
            }
            Action::StopAgent { why: StopWhy::Asked | StopWhy::RunDuration, .. } => self.interrupt(),
            Action::TakeTree { iteration, attempt } => {
                self.push(Event::TreeTaken { iteration, attempt, flags: Vec::new() });
            }
            Action::RunBaseline { check } => {
                let red = self.red_baseline || (self.mood == Mood::Random && self.maybe(4));
                let outcome = if red { BaselineOutcome::Red } else { BaselineOutcome::Green };
                let tree = self.state.baseline.tree.clone();
                self.push(Event::BaselineChecked { tree, command: check.command, outcome, evidence: None });
            }
            Action::RunTaskBaseline { task, check } => {
                let outcome = BaselineOutcome::Red;
                self.push(Event::TaskBaselineChecked { task, command: check.command, outcome });
            }
            Action::PlanRepair => self.push(Event::RepairPlanned { task: "repair-1".into() }),
            Action::AddRepair { task } => {
                let revision = "repair".to_owned();
                let added = vec![Task::new(task, "Repair the checks")];
                let (changed, removed, order) = (Vec::new(), Vec::new(), None);
                self.push(Event::BacklogRead { revision, added, changed, removed, order });
            }
            Action::RunCheck { iteration, attempt, check, former, .. } => {
                let passes = match self.mood {
                    Mood::Liar => false,
                    Mood::Random => !self.maybe(3),
                    Mood::Diligent
                    | Mood::Idle
                    | Mood::FailsAlike
                    | Mood::FailsDifferently
                    | Mood::WorksOn => true,
                };
                let passes = if former { self.redefines.unwrap_or(passes) } else { passes };
                let evidence = Evidence {
                    name: check.name,
                    command: check.command,
                    exit: Exit::Code { code: i32::from(!passes) },
                    output: BlobRef::default(),
                    duration: Millis(5),
                    former,
                    clean: false,
                    tests: if former { self.former_tests } else { self.tests },
                    withheld: Vec::new(),
                };
                self.push(Event::EvidenceGathered { iteration, attempt, evidence });
            }
            Action::RunClean { of, step } => {
                let evidence = Evidence {
                    name: step.name,
                    command: step.command,
                    exit: Exit::Code { code: i32::from(self.maybe(4)) },
                    output: BlobRef::default(),
                    duration: Millis(5),
                    former: false,
                    clean: true,
                    tests: None,
                    withheld: Vec::new(),
                };
                self.push(match of {
                    CleanOf::Commit(commit) => Event::CleanChecked { commit, evidence },
                    CleanOf::Attempt { iteration, attempt } => {
                        Event::EvidenceGathered { iteration, attempt, evidence }
                    }
                });
            }
            Action::Inspect { iteration, attempt } => self.inspect(iteration, attempt),
            Action::Land { iteration, attempt } => self.land(iteration, attempt),
            Action::KeepWork { task, iteration } => {
                self.push(Event::WorkKept {
                    iteration,
                    task,
                    reference: "refs/wiggum/x".to_owned(),
                    commit: format!("kept{iteration}"),
                });
            }
            Action::ResetWorkspace => self.push(Event::WorkspaceReset { commit: "base".to_owned() }),
            Action::WriteStatus { task, status } => self.push(Event::StatusWritten { task, status }),
            Action::PutBackUserChanges { commit } => {
                self.push(Event::UserChangesPutBack { commit, clean: true });
            }
            Action::CommitSkips { tasks } => {
                self.push(Event::SkipsCommitted { tasks, commit: Some("skips".to_owned()) });
            }
            Action::Checkpoint => self.checkpoint(),
        }
    }

    fn end_agent(&mut self) {
        let Some(open) = self.state.open.here().cloned() else { return };
        if self.interrupt_first > 0 {
            self.interrupt_first -= 1;
            self.interrupt();
            return;
        }
        let outcome = match self.mood {
            Mood::Diligent | Mood::Liar => 0,
            Mood::Idle | Mood::WorksOn => 1,
            Mood::FailsAlike => 2,
            Mood::FailsDifferently => 3,
            Mood::Random => self.below(6).min(5),
        };
        let claim = (outcome == 0 || outcome == 5)
            .then(|| Claim { text: "done".to_owned(), source: ClaimSource::Promise });
        let error = match outcome {
            2 => Some(Failure { message: "boom".to_owned(), signature: "boom".to_owned() }),
            3 => {
                let text = format!("boom {}", self.below(1_000_000));
                Some(Failure { message: text.clone(), signature: text })
            }
            _ => None,
        };
        let trouble = error.as_ref().and_then(|_| self.trouble());
        let questions = if outcome == 4 { vec![question()] } else { Vec::new() };
        self.push(Event::AgentEnded {
            iteration: open.iteration,
            attempt: open.attempt,
            exit: Exit::Code { code: i32::from(error.is_some()) },
            message: BlobRef::default(),
            duration: Millis(1000),
            usage: self.usage(),
            facts: Box::new(AgentFacts { trouble, ..AgentFacts::default() }),
            claim,
            questions,
            error,
            flags: Vec::new(),
            phrase: None,
            notes: Box::new(Notes { changed_checks: self.says_why.clone(), ..Notes::default() }),
            ended_processes: 0,
        });
    }

    /// As the engine does when it gave the agent up.
    pub(crate) fn end_silent_agent(&mut self) {
        let text = Trouble::Silent.to_string();
        self.fail_agent(Trouble::Silent, &text);
    }

    /// As the engine does when it stopped the agent at a budget: what it used is on record.
    pub(crate) fn stop_agent(&mut self) {
        self.fail_agent_with(Trouble::Interrupted, "interrupted", self.usage());
    }

    /// The agent stops by itself, because what is left of a budget is too little for its next call.
    fn stop_short(&mut self) {
        let at_work = self.state.open.here().cloned().filter(|open| open.stage == Stage::Agent);
        let Some(open) = at_work else { return };
        let used = self.usage().map_or_else(Sum::default, Sum::from);
        if let Some(gauge) = budget::nearest(&self.state, &open.task, used) {
            self.push(figures::reached(&open, gauge));
            self.fail_agent_with(Trouble::Budget, "the budget is used up", self.usage());
        }
    }

    pub(crate) fn fail_agent(&mut self, trouble: Trouble, text: &str) {
        self.fail_agent_with(trouble, text, None);
    }

    fn fail_agent_with(&mut self, trouble: Trouble, text: &str, usage: Option<Usage>) {
        let Some(open) = self.state.open.here().cloned() else { return };
        self.push(Event::AgentEnded {
            iteration: open.iteration,
            attempt: open.attempt,
            exit: Exit::Signal { signal: 2 },
            message: BlobRef::default(),
            duration: Millis(1000),
            usage,
            facts: Box::new(AgentFacts { trouble: Some(trouble), ..AgentFacts::default() }),
            claim: None,
            questions: Vec::new(),
            error: Some(Failure { message: text.to_owned(), signature: text.to_owned() }),
            flags: Vec::new(),
            notes: Box::default(),
            phrase: None,
            ended_processes: 0,
        });
    }

    /// Begins the next run of a loop whose last one ended.
    pub(crate) fn start_again(&mut self) {
        self.push(Event::RunStarted {
            run: self.state.run.number + 1,
            policy: Box::new(self.policy.clone()),
            agent: "agent".to_owned(),
            version: "0".to_owned(),
            git: true,
            sandbox: String::new(),
            tree: self.tree(),
        });
    }

    /// Nobody looks at a tree without a name.
    fn tree(&self) -> String {
        if self.mood == Mood::Random || self.red_baseline {
            format!("tree {}", self.state.iterations)
        } else {
            String::new()
        }
    }

    pub(crate) fn set_mood(&mut self, mood: Mood) {
        self.mood = mood;
    }

    fn usage(&self) -> Option<Usage> {
        let usage =
            Usage { input_tokens: self.cents, cost_usd: self.cents as f64 / 100.0, ..Usage::default() };
        (self.cents > 0).then_some(usage)
    }

    /// As the registry does, with other loops that spend at the same time.
    fn set_money_aside(&mut self) -> bool {
        let budget = &self.state.policy.budget;
        if !budget.is_shared() {
            return true;
        }
        let mut spent = self.others.spent;
        spent += Sum::from(self.state.usage);
        let account = Account { spent, ..self.others };
        let figures = Shared { project: account, organisation: account };
        let granted = budget::admits(budget, self.state.spending.largest, &figures);
        if self.mood == Mood::Random {
            let (spends, waits) = (self.maybe(3), self.maybe(2));
            self.others.spent.cost_usd += if spends { 0.2 } else { 0.0 };
            self.others.reserved.cost_usd = if waits { 0.3 } else { 0.0 };
            self.others.in_flight = u32::from(waits);
        }
        self.push(Event::BudgetAsked { granted, figures });
        granted
    }

    fn random_budget(&mut self) {
        self.cents = u64::from(self.below(60));
        let mut cap = || Cap {
            max_cost: self.maybe(4).then(|| f64::from(self.below(800)) / 100.0 + 0.01),
            max_tokens: self.maybe(8).then(|| u64::from(self.below(600)) + 1),
            period: Period::None,
        };
        let (own, task, project, organisation) = (cap(), cap(), cap(), cap());
        let actions = [AtLimit::Allow, AtLimit::Throttle, AtLimit::Deny, AtLimit::Deny, AtLimit::AlertOnly];
        let strategies = [Strategy::Greedy, Strategy::CriticalPath, Strategy::Conservative];
        let budget = &mut self.policy.budget;
        (budget.own, budget.task, budget.project, budget.organisation) = (own, task, project, organisation);
        self.policy.budget.action = actions[self.below(5) as usize];
        self.policy.budget.strategy = strategies[self.below(3) as usize];
        self.policy.budget.alert_at = [vec![0.8], vec![0.5, 0.9], Vec::new()][self.below(3) as usize].clone();
        self.policy.limits.calls_per_hour = self.maybe(6).then(|| self.below(6) + 1);
    }

    /// Now and then it is the agent that cannot work.
    fn trouble(&mut self) -> Option<Trouble> {
        if self.mood != Mood::Random {
            return None;
        }
        let resets_at = Some(add_millis(self.now, 60_000));
        let troubles = [
            Trouble::UsageLimit { resets_at },
            Trouble::UsageLimit { resets_at: None },
            Trouble::Overloaded,
            Trouble::SessionLost,
            Trouble::ContextFull,
            Trouble::Authentication,
            Trouble::PermissionDenied,
        ];
        troubles.get(self.below(12) as usize).cloned()
    }

    /// The agent says nothing for a while, is nudged, and perhaps answers; a person may be quicker.
    fn fall_silent(&mut self) {
        let mut pulse = Pulse::new(self.now, false);
        for _ in 0..self.below(40) {
            if !self.state.open.here().is_some_and(|open| open.stage == Stage::Agent) {
                return;
            }
            if self.maybe(12) {
                pulse.beat(self.now);
            }
            if self.maybe(6) {
                self.answer();
            }
            let plan = health::decide(&self.state, &pulse, self.now);
            for action in &plan.actions {
                match action {
                    Action::FeelPulse { .. } => pulse.feel(Sample::default(), self.now),
                    action => self.perform(action),
                }
            }
            if let Some(at) = plan.wake_at {
                self.now = self.now.max(at);
            }
        }
    }

    fn inspect(&mut self, iteration: u32, attempt: u32) {
        let changed = match self.mood {
            Mood::Diligent | Mood::Liar | Mood::WorksOn => true,
            Mood::Idle | Mood::FailsAlike | Mood::FailsDifferently => false,
            Mood::Random => self.maybe(2),
        };
        if changed {
            self.changes += 1;
        }
        let redefined = self.redefines.is_some() || (self.mood == Mood::Random && self.maybe(4));
        let redefined: Vec<Change> = redefined
            .then(|| Change { path: "Makefile".to_owned(), what: "recipe `test`".to_owned(), product: false })
            .into_iter()
            .collect();
        let former_checks = if redefined.is_empty() { Vec::new() } else { self.policy.checks.verify.clone() };
        self.push(Event::WorkInspected {
            iteration,
            attempt,
            changed: Vec::new(),
            changed_total: u32::from(changed),
            digest: if changed { format!("digest {}", self.changes) } else { "same".to_owned() },
            flags: Vec::new(),
            former_checks,
            written_checks: Vec::new(),
            redefined,
        });
    }

    fn land(&mut self, iteration: u32, attempt: u32) {
        let Some(open) = self.state.open.here().cloned() else { return };
        let Stage::Landing { verified } = open.stage else { return };
        self.push(Event::StatusWritten { task: open.task.clone(), status: FileStatus::Done });
        if self.mood == Mood::Random && self.maybe(8) {
            self.push(Event::CommitRefused { iteration, attempt, output: BlobRef::default() });
        } else if self.mood == Mood::Random && self.maybe(8) && open.altered < 3 {
            self.push(Event::TreeAltered { iteration, attempt });
        } else {
            self.push(Event::TaskCompleted { iteration, task: open.task, attempt, commit: None, verified });
        }
    }

    /// Stored nowhere: its id stands for its hash.
    pub(crate) fn checkpoint(&mut self) {
        let id = Uuid::from_u128(u128::from(self.state.seq));
        let checkpoint = wiggum_core::checkpoint::build(&self.state, id, self.now);
        self.push(Event::Checkpointed {
            iteration: checkpoint.iteration,
            task: checkpoint.task,
            id,
            checkpoint: BlobRef { sha256: id.to_string(), ..BlobRef::default() },
            previous: checkpoint.previous,
            by: String::new(),
        });
    }

    fn interrupt(&mut self) {
        let Some(open) = self.state.open.here().cloned() else { return };
        self.push(Event::Interrupted {
            iteration: open.iteration,
            attempt: open.attempt,
            reason: "test".to_owned(),
            ended_processes: 0,
            kept: None,
        });
    }

    fn answer(&mut self) {
        let Some(id) = self.state.questions.keys().next().copied() else { return };
        let answer = match self.below(5) {
            0 => Answer::Skip,
            1 => Answer::Retry,
            2 => Answer::Words { text: "try harder".to_owned() },
            3 => Answer::Option { number: 1 },
            _ => Answer::Abort,
        };
        self.push(Event::QuestionAnswered { id, answer, by: "test".to_owned() });
    }

    /// People, crashes and edits, at any moment.
    fn meddle(&mut self) {
        if !self.maybe(40) {
            return;
        }
        let by = "test".to_owned();
        let tasks: Vec<TaskId> = self.state.tasks.iter().map(|entry| entry.spec.id.clone()).collect();
        let any = (!tasks.is_empty()).then(|| tasks[self.below(tasks.len() as u32) as usize].clone());
        let running = self.state.open.here().map(|open| open.task.clone());
        match (self.below(7), any) {
            (0, _) => self.push(Event::Paused { by }),
            (1, _) if self.maybe(4) => self.push(Event::StopRequested { by }),
            (2, Some(task)) if Some(&task) != running.as_ref() => {
                self.push(Event::TaskSkipped { task, by });
            }
            (3, Some(task)) if Some(&task) != running.as_ref() => {
                self.push(Event::TaskReopened { task, by });
            }
            (4, _) => self.resume(),
            (5, Some(task)) if Some(&task) != running.as_ref() => {
                let Some(entry) = self.state.task(&task) else { return };
                let mut changed = entry.spec.clone();
                changed.title.push('!');
                self.push(Event::BacklogRead {
                    revision: "2".to_owned(),
                    added: Vec::new(),
                    changed: vec![changed],
                    removed: Vec::new(),
                    order: None,
                });
            }
            (6, _) => self.hand_over(by),
            _ => {}
        }
    }

    fn hand_over(&mut self, by: String) {
        let asked = self.maybe(2);
        let Some(open) = self.state.open.here().filter(|open| open.stage == Stage::Agent) else { return };
        let (iteration, attempt) = (open.iteration, open.attempt);
        self.push(Event::HandoffStarted { iteration, attempt, trigger: Trigger::Requested { by }, asked });
    }

    fn maybe(&mut self, one_in: u32) -> bool {
        self.below(one_in) == 0
    }

    fn below(&mut self, bound: u32) -> u32 {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.seed >> 33) as u32) % bound.max(1)
    }
}

pub(crate) fn question() -> Question {
    Question {
        kind: QuestionKind::Deviation,
        summary: "which way?".to_owned(),
        context: String::new(),
        options: vec!["left".to_owned(), "right".to_owned()],
        question: String::new(),
    }
}
