//! The dull loop: take what came in, record it, ask the core what to do, do it.
//!
//! One thread owns the state. Agents and checks run beside it and report through a channel;
//! everything else is done inline. No decision is made here: [`wiggum_core::decide`] makes them.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use uuid::Uuid;
use wiggum_agents::{AgentEvent, Finished};
use wiggum_backlog::Backlog;
use wiggum_core::activity::EngineState;
use wiggum_core::decide::{Action, Plan, StopWhy, Waiting, decide, due_in_backlog, run_deadline};
use wiggum_core::event::{EndReason, Envelope, Event, Exit, Request, Trouble};
use wiggum_core::figures::Figures;
use wiggum_core::handoff::Trigger;
use wiggum_core::ids::{Attempt, Epoch, Iteration, LoopId, RequestId, TaskId};
use wiggum_core::mutant::{Mutant, planted};
use wiggum_core::policy::{Limits, Policy};
use wiggum_core::redact::Secrets;
use wiggum_core::state::{Loop, Stage};
use wiggum_core::stream::Stream;
use wiggum_core::task::FileStatus;
use wiggum_core::tasks::TaskEntry;
use wiggum_store::{Identity, Store, since_words};
use wiggum_workspace::beneath;
use wiggum_workspace::crash;
use wiggum_workspace::git::{Git, Guardian, Known};
use wiggum_workspace::paths::ProcessLock;
use wiggum_workspace::process::{Ended, Grace, Stop};

use crate::agent::Agent;
use crate::attempts::last_worked_on;
use crate::attendant::{Attendant, Tell};
use crate::backlog_file::{BacklogError, BacklogFile, Refresh, difference};
use crate::by_hand;
use crate::checkout::{Checkout, Origin};
use crate::checks::RunningCheck;
use crate::clock::Clock;
use crate::copies::Copies;
use crate::error::EngineError;
use crate::former::Redefinition;
use crate::health::Heart;
use crate::host::{Host, Machine, Program};
use crate::journal::Journal;
use crate::money::Purse;
use crate::nudge::Nudges;
use crate::private::OwnRepository;
use crate::programs::Programs;
use crate::report::Report;
use crate::reports::Reports;
use crate::requests;
use crate::sandbox::{Sandbox, around_git};
use crate::state_dir::{self, StateDir};
use crate::status;
use crate::tools::{CallOutcome, NotReady, Ready, Tools};
use crate::tree::{STAMPED, stamp_of_tree};
use crate::wake::Wake;
use crate::watchdog::{Standby, await_watchdog};
use crate::watched::{Watched, prompt_in_use};
use crate::work::{self, RunningCall};

/// What may wait in the channel before agents are slowed down.
const INPUTS: usize = 64;

/// A check that ends this soon is recorded in one transaction with what came before it. A check is
/// no effect that would have to be recorded first, and a crash in between only means that what it
/// checked is done again.
const MOMENT: Duration = Duration::from_millis(10);

/// How far `status.json` may be behind: nobody looks at it more often, and a fast loop would do
/// little else than write it.
const STATUS_INTERVAL: Duration = Duration::from_millis(100);
/// Whoever uses a mark uses it often; the first few tell which.
const MOST_MARKS_TOLD: usize = 3;

/// Everything a loop needs to know before it starts.
pub struct Settings {
    /// The directory agents work in, and where its private state is.
    pub checkout: Checkout,
    pub backlog: PathBuf,
    /// The backlog's path as people write it, relative to the workspace.
    pub backlog_name: String,
    pub name: String,
    pub prompt: Option<PathBuf>,
    pub policy: Policy,
    /// All checks that could be found in the project's files, if the policy's was found there and not configured.
    pub can_find: Option<Vec<String>>,
    /// All agents that the policy names.
    pub agents: Vec<Agent>,
    pub allow_dirty: bool,
    /// Files of the workspace that this process writes its own output to, as people write their paths.
    pub outputs: Vec<String>,
    /// May a repository around the workspace be committed to? Else it is as if there were none.
    pub git: bool,
    /// Folders of the workspace in which no task may create a file.
    pub closed: Vec<String>,
    /// Agents that know how are handed our own MCP server.
    pub agent_mcp: bool,
    /// What agents are kept in.
    pub sandbox: Sandbox,
    pub tap: Option<Arc<dyn Tap>>,
    /// Tells whoever looks on what is no event.
    pub tell: Option<Tell>,
    /// What tasks may call.
    pub tools: Option<Arc<dyn Tools>>,
    /// Where this machine's loops are entered.
    pub registry: Option<PathBuf>,
    /// This very program.
    pub wiggum: PathBuf,
    pub grace: Grace,
    pub version: String,
}

impl Settings {
    /// A loop over this backlog of the checkout by the default rules, with agents that are asked in this
    /// order and not confined.
    pub fn new(checkout: Checkout, backlog: &str, agents: Vec<Agent>) -> Self {
        let mut policy = Policy::default();
        policy.agents.order = agents.iter().map(|agent| agent.name.clone()).collect();
        Self {
            backlog: checkout.path().join(backlog),
            checkout,
            backlog_name: backlog.to_owned(),
            name: "main".to_owned(),
            prompt: None,
            policy,
            can_find: None,
            agents,
            allow_dirty: false,
            outputs: Vec::new(),
            git: true,
            closed: Vec::new(),
            agent_mcp: false,
            sandbox: Sandbox::default(),
            tap: None,
            tell: None,
            tools: None,
            registry: None,
            wiggum: PathBuf::from("wiggum"),
            grace: Grace::default(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }

    /// The directory agents work in.
    pub fn workspace(&self) -> &Path {
        self.checkout.path()
    }

    /// Files that change without anybody's work on a task: the backlog, and our own output.
    pub(crate) fn no_work(&self) -> Vec<PathBuf> {
        let outputs = self.outputs.iter().map(|name| self.workspace().join(name));
        outputs.chain([self.backlog.clone()]).collect()
    }
}

/// Somebody who watches a loop. Called on the engine's thread, so it should not take long.
pub trait Observer {
    /// Something happened, and is durable.
    fn event(&mut self, envelope: &Envelope, state: &Loop);
    /// These were all for now.
    fn shown(&mut self) {}
    fn agent(&mut self, event: &AgentEvent);
    fn check_output(&mut self, text: &str);
    /// The loop has nothing to do until this is over.
    fn waiting(&mut self, waiting: &Waiting, state: &Loop);
    /// Everything so far was told, and nothing follows before something happens outside of the loop.
    fn settled(&mut self) {}
}

/// Somebody who wants what an agent prints as it comes, without secrets but before anything is made of
/// it. Called on the thread that reads it: while a call takes, the agent waits.
pub trait Tap: Send + Sync {
    fn agent_started(&self, iteration: Iteration, attempt: Attempt, task: &TaskId, agent: &str);
    fn output(&self, stream: Stream, bytes: &[u8]);
    fn agent_ended(&self, exit: Exit);
}

/// What reaches the engine from outside.
pub enum Input {
    Agent(Vec<AgentEvent>),
    AgentEnded {
        ended: Ended,
        finished: Box<Finished>,
    },
    CheckOutput(String),
    CheckEnded {
        ended: Ended,
        output: String,
    },
    /// A call can be made, or could not be.
    CallReady {
        iteration: Iteration,
        attempt: Attempt,
        ready: Result<Box<dyn Ready>, NotReady>,
    },
    CallEnded {
        iteration: Iteration,
        attempt: Attempt,
        outcome: CallOutcome,
    },
    /// Something waits in the store.
    Wake,
    /// A person at this terminal.
    Person(Request),
    /// Ctrl-C and the like; the second one is in a hurry.
    Interrupt(&'static str),
}

/// How a call of [`Engine::run`] ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Ended {
        reason: EndReason,
        detail: String,
    },
    /// By a signal; the run goes on with the next start.
    Interrupted {
        signal: &'static str,
    },
}

impl Outcome {
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Ended { reason, .. } => reason.exit_code(),
            Self::Interrupted { .. } => 130,
        }
    }
}

pub struct Engine<'a> {
    pub(crate) settings: Settings,
    pub(crate) host: Arc<dyn Host>,
    pub(crate) journal: Journal,
    pub(crate) git: Option<Git>,
    /// Who says how long to wait for git.
    attendant: Arc<Attendant>,
    pub(crate) backlog: BacklogFile,
    /// What people did to the backlog through us since the attempt began: from which revision to which.
    pub(crate) edits_of_people: Vec<(String, String)>,
    pub(crate) dir: StateDir,
    pub(crate) clock: Clock,
    pub(crate) observer: &'a mut dyn Observer,
    pub(crate) inputs: Receiver<Input>,
    pub(crate) sender: SyncSender<Input>,
    pub(crate) agent: Option<RunningAgent>,
    pub(crate) check: Option<RunningCheck>,
    /// What the attempt under way changed of its checks.
    pub(crate) redefinition: Redefinition,
    /// The former definition lies in the work tree.
    pub(crate) former_in_place: bool,
    /// What judges the work, as it was, where there is no git.
    pub(crate) copies: Option<Copies>,
    /// What lies where the programs of checks are looked for.
    pub(crate) programs: Programs,
    /// What lies in the clean checkout.
    pub(crate) clean_checkout: Option<String>,
    /// The call under way.
    pub(crate) call: Option<RunningCall>,
    /// On the engine's own clock, as is the deadline.
    pub(crate) check_started: Option<Duration>,
    pub(crate) check_deadline: Option<Duration>,
    /// Commit whose tree the workspace is known to hold, by this very process.
    pub(crate) in_place: Option<String>,
    /// What an attempt started from that could not land because the branch had moved.
    pub(crate) moved_from: Option<String>,
    pub(crate) watched: Watched,
    /// The mark of an attempt in the workspace is to be taken away; an engine before us may have left one.
    pub(crate) attempt_lies_there: bool,
    /// What must not be stored or shown.
    pub(crate) secrets: Secrets,
    /// Variables of our own that neither checks nor git get.
    pub(crate) not_for_checks: Vec<OsString>,
    /// What git obeys, as it was before the agent, where the repository is shared.
    pub(crate) guardian: Option<Guardian>,
    /// The repository that agents see, where it is not the user's.
    pub(crate) own: Option<OwnRepository>,
    pub(crate) standby: Standby,
    pub(crate) purse: Purse,
    /// Hooks and configuration of git were just seen to be untouched, and nothing ran since.
    pub(crate) hooks_untouched: bool,
    /// What git need not be asked again.
    pub(crate) known: Known,
    /// Something waits in the store; set from the watcher's thread, so that no wake-up is lost
    /// while the channel is full.
    woken: Arc<AtomicBool>,
    _workspace: ProcessLock,
    /// Kept for as long as requests are to be noticed.
    watcher: Option<Box<dyn Send>>,
    last_waiting: Option<Waiting>,
    interrupted: Option<&'static str>,
    pub(crate) status: StatusFile,
}

/// Is `status.json` behind the state, and when was it written?
#[derive(Default)]
pub(crate) struct StatusFile {
    stale: bool,
    written: Option<Duration>,
}

impl StatusFile {
    /// How long until it has to be written, if it has to be.
    fn due_in(&self, now: Duration) -> Option<Duration> {
        let since = self.written.map_or(STATUS_INTERVAL, |at| now.saturating_sub(at));
        self.stale.then(|| STATUS_INTERVAL.saturating_sub(since))
    }

    /// Nothing was recorded, but what it tells beside that is old.
    pub(crate) fn refresh_after(&mut self, age: Duration, now: Duration) {
        self.stale |= self.written.is_some_and(|at| now.saturating_sub(at) >= age);
    }
}

/// The agent's process, and what this engine wants of it.
pub(crate) struct RunningAgent {
    pub(crate) process: Box<dyn Program>,
    /// What it was told, wherever its copy in a file has gone.
    pub(crate) prompt: String,
    pub(crate) stopping: Option<StopWhy>,
    pub(crate) heart: Heart,
    /// What it has used so far.
    pub(crate) figures: Figures,
    /// The model that answers, as it is configured or as the agent tells.
    pub(crate) model: Option<String>,
    /// It tells each tool call when it begins and when it ends.
    pub(crate) tells_calls: bool,
    pub(crate) nudges: Nudges,
    /// Where it is heard, if it was handed our MCP server.
    pub(crate) reports: Option<Reports>,
    /// What the agent was ended for that it would not have said itself.
    pub(crate) given_up: Option<Trouble>,
}

/// A way to reach a running engine from other threads.
#[derive(Clone)]
pub struct Remote {
    sender: SyncSender<Input>,
    attendant: Arc<Attendant>,
}

impl Remote {
    /// Hands something in; an engine that is gone does not need it any more.
    pub fn send(&self, input: Input) {
        if let Input::Interrupt(signal) = &input {
            self.attendant.interrupt(signal);
        }
        drop(self.sender.send(input));
    }
}

impl<'a> Engine<'a> {
    /// Takes the loop over and brings its journal, workspace and backlog in order.
    pub fn open(settings: Settings, observer: &'a mut dyn Observer) -> Result<Self, EngineError> {
        Self::open_on(Arc::new(Machine::new()), settings, observer)
    }

    /// As [`Engine::open`], on another host than this machine.
    pub fn open_on(
        host: Arc<dyn Host>,
        settings: Settings,
        observer: &'a mut dyn Observer,
    ) -> Result<Self, EngineError> {
        let checkout = settings.checkout.clone();
        let opened = Self::open_store_on(host, settings, observer);
        if opened.is_err()
            && let Ok(Some(dir)) = checkout.find()
        {
            // What was refused is told; that something of it is left is not.
            drop(checkout.take_back_unused(&dir));
        }
        opened
    }

    fn open_store_on(
        host: Arc<dyn Host>,
        mut settings: Settings,
        observer: &'a mut dyn Observer,
    ) -> Result<Self, EngineError> {
        let lock = state_dir::backlog_lock(settings.workspace());
        let mut backlog = BacklogFile::new(&settings.backlog, &settings.backlog_name, lock);
        backlog.refresh()?;
        refuse_unsupported(&backlog, &settings.policy)?;
        if let Some(backlog) = backlog.backlog() {
            settings.policy.selection = backlog.selection();
        }
        let git = if settings.git { host.repository(settings.workspace())? } else { None };
        let dir = settings.checkout.open(git.as_ref())?;
        let mut store = host.open_store(&dir.database())?;
        let (id, epoch) = take_over(host.as_ref(), &mut store, &settings)?;
        crash::point("loop taken over");
        let claimed = claim_workspace(host.as_ref(), &store, &dir, settings.workspace());
        let workspace = or_give_back(claimed, &mut store, id, epoch)?;
        let nobody_else = await_watchdog(host.as_ref(), &dir, id);
        or_give_back(nobody_else, &mut store, id, epoch)?;
        let state = read_state(&store, id)?;
        if settings.git && git.is_none() && state.git {
            let path = settings.workspace().to_owned();
            or_give_back(Err(EngineError::RepositoryGone { path }), &mut store, id, epoch)?;
        }
        backlog.read_boxes_of(&state);
        backlog.read_dashes_of(&state);
        backlog.in_progress = last_worked_on(&state);
        adopt_plan(&mut settings.policy.limits, backlog.backlog(), &state);
        let clock = Clock::starting_after(Arc::clone(&host), state.last_at);
        let marker = Some(("WIGGUM_LOOP_ID".to_owned(), id.to_string()));
        let attendant = Attendant::new(
            settings.workspace().to_owned(),
            dir.database(),
            id,
            clock.clone(),
            settings.tell.clone(),
        )
        .map_err(|source| EngineError::StateDir { path: dir.path().to_owned(), source });
        let attendant = Arc::new(or_give_back(attendant, &mut store, id, epoch)?);
        let attended = |git: Git| git.with_marker(marker).with_attendant(Arc::clone(&attendant) as _);
        let (mut git, mut own) = (git.map(attended), None);
        let not_for_checks = settings.not_for_checks();
        if let Some(found) = git.take() {
            let private = OwnRepository::of(&settings, &found, dir.lane(id)).map_err(EngineError::from);
            own = or_give_back(private, &mut store, id, epoch)?;
            // Nothing that an agent wrote is obeyed in a repository that it does not see.
            let confinement = match &own {
                Some(_) => Ok(None),
                None => around_git(&settings, &found).map_err(EngineError::from),
            };
            let confinement = or_give_back(confinement, &mut store, id, epoch)?;
            git = Some(found.with_confinement(confinement).without_variables(not_for_checks.clone()));
        }
        let (sender, inputs) = sync_channel(INPUTS);
        if settings.prompt.is_none() && !state.open.is_empty() {
            // The agent of before a crash may have removed it; it will be put back.
            settings.prompt = prompt_in_use(&dir.guard_dir(id));
        }
        let outputs = all_outputs(&dir.outputs(id), &settings.outputs);
        settings.outputs = or_give_back(outputs, &mut store, id, epoch)?;
        let watched = or_give_back(Watched::new(&settings), &mut store, id, epoch)?;
        let variables = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        let secrets =
            Secrets::among(variables.chain(settings.agents.iter().flat_map(|agent| agent.env.clone())));
        let mut engine = Self {
            host,
            journal: Journal::new(store, state, id, epoch, secrets.clone()),
            git,
            attendant,
            backlog,
            edits_of_people: Vec::new(),
            dir,
            clock,
            observer,
            inputs,
            sender,
            agent: None,
            check: None,
            redefinition: Redefinition::default(),
            copies: None,
            programs: Programs::default(),
            former_in_place: false,
            clean_checkout: None,
            call: None,
            check_started: None,
            check_deadline: None,
            in_place: None,
            moved_from: None,
            watched,
            attempt_lies_there: true,
            secrets,
            not_for_checks,
            guardian: None,
            own,
            standby: Standby::NotYet,
            purse: Purse::of(&settings),
            hooks_untouched: false,
            known: Known::default(),
            woken: Arc::new(AtomicBool::new(true)),
            _workspace: workspace,
            watcher: None,
            last_waiting: None,
            interrupted: None,
            status: StatusFile::default(),
            settings,
        };
        engine.make_directories()?;
        engine.watch_for_requests();
        Ok(engine)
    }

    /// The directories of the loop that have to be there before an agent is started.
    pub(crate) fn make_directories(&self) -> Result<(), EngineError> {
        let made = self.dir.create().and_then(|()| fs::create_dir_all(self.dir.agent_dir(self.journal.id)));
        made.map_err(|source| EngineError::StateDir { path: self.dir.path().to_owned(), source })
    }

    pub fn remote(&self) -> Remote {
        Remote { sender: self.sender.clone(), attendant: Arc::clone(&self.attendant) }
    }

    pub fn loop_id(&self) -> LoopId {
        self.journal.id
    }

    pub fn dir(&self) -> &StateDir {
        &self.dir
    }

    pub fn state(&self) -> &Loop {
        &self.journal.state
    }

    /// Runs until the run ends or is interrupted.
    pub fn run(&mut self) -> Result<Outcome, EngineError> {
        let mut result = self.begin().and_then(|()| self.turn());
        if result.as_ref().is_err_and(EngineError::is_ended_git)
            && let Some(signal) = self.attendant.take_signal()
        {
            self.end_processes();
            result = Ok(Outcome::Interrupted { signal });
        }
        if result.is_err() {
            // Nothing may outlive us; the journal keeps what was durable.
            self.end_processes();
        } else if self.status.stale {
            self.write_status_file();
        }
        self.note_tip();
        self.leave_copies();
        self.remove_clean_checkout();
        self.standby.dismiss();
        // Every call is settled already: that the loop has ended is only good to know.
        if self.journal.has_history() {
            drop(self.enter_registry(false));
        }
        crash::point("run over");
        let epoch = self.journal.epoch();
        let mut released = self.journal.store.release(self.journal.id, epoch);
        if result.as_ref().is_err_and(EngineError::is_refusal) && !self.journal.has_history() {
            // It was refused before anything happened: nobody should find an empty loop.
            released = released.and_then(|()| self.journal.store.forget_empty_loop(self.journal.id));
            drop(self.settings.checkout.take_back_unused(&self.dir));
        }
        let outcome = result?;
        released?;
        Ok(outcome)
    }

    fn begin(&mut self) -> Result<(), EngineError> {
        self.choose_index()?;
        let origin = self.settings.checkout.origin(&self.dir)?;
        if self.journal.state.id.is_none() {
            self.record(Event::LoopCreated {
                loop_id: self.journal.id,
                name: self.settings.name.clone(),
                repository: self.settings.workspace().display().to_string(),
                backlog: self.settings.backlog_name.clone(),
            });
            self.note_copy(&origin);
        }
        self.note_move(&origin);
        self.look_at_repository()?;
        let ended = self.sweep()?;
        self.complete_restore()?;
        self.start_run()?;
        self.enter_registry(true)?;
        self.recover(ended)?;
        self.read_backlog()?;
        self.prepare_confinement();
        self.flush()?;
        self.note_in_plan()
    }

    /// A checkout may have been moved since the loop last ran.
    fn note_move(&mut self, origin: &Origin) {
        let repository = self.settings.workspace().display().to_string();
        let from = self.journal.state.repository.clone();
        if from != repository {
            let copied = matches!(origin, Origin::TakenOver { from: former } if *former == from);
            self.record(Event::LoopMoved { repository, from, copied });
        }
    }

    /// A copy of a checkout brings everything but the history of its loops.
    fn note_copy(&mut self, origin: &Origin) {
        if let Origin::CopyOf { path } = origin {
            let message =
                format!("this is a copy of {path}: the loops of {path} go on there, this one begins anew");
            self.record(Event::Noticed { task: None, message });
        }
    }

    fn start_run(&mut self) -> Result<(), EngineError> {
        let earlier = &self.journal.state.policy.checks;
        let changed_checks = self.settings.policy.checks.remember(earlier, self.settings.can_find.as_deref());
        let dropped_checks = self.settings.policy.checks.tell_dropped(earlier);
        let policy = Box::new(self.settings.policy.clone());
        let agent = self.settings.describe_agents();
        let sandbox = self.settings.sandbox.says_of(self.dir.path());
        self.require_clean_tree()?;
        self.require_signature()?;
        let active = self.journal.state.run.active && !planted(Mutant::StartsInsideRun);
        if active || (self.journal.state.run.number > 0 && planted(Mutant::ResumesEndedRun)) {
            let run = self.journal.state.run.number;
            self.record(Event::RunResumed { run, policy, agent, sandbox });
        } else {
            let run = self.journal.state.run.number + 1;
            let version = self.settings.version.clone();
            let git = self.git.is_some();
            let tree = self.tree_name()?;
            self.record(Event::RunStarted { run, policy, agent, version, git, sandbox, tree });
        }
        let marks = self.backlog.backlog().map(Backlog::unknown_marks).unwrap_or_default();
        let marks = marks.iter().take(MOST_MARKS_TOLD).map(ToString::to_string);
        let overspenders = self.overspenders();
        for message in changed_checks.into_iter().chain(dropped_checks).chain(marks).chain(overspenders) {
            self.record(Event::Noticed { task: None, message });
        }
        Ok(())
    }

    /// What names the tree that a run starts from.
    fn tree_name(&self) -> Result<String, EngineError> {
        match &self.git {
            Some(git) => Ok(git.head()?.commit.unwrap_or_else(|| "unborn".to_owned())),
            None => Ok(stamp_of_tree(self.settings.workspace(), &self.settings.no_work(), STAMPED)),
        }
    }

    fn turn(&mut self) -> Result<Outcome, EngineError> {
        loop {
            if let Some(outcome) = self.finished()? {
                return Ok(outcome);
            }
            if self.woken.swap(false, Ordering::AcqRel) {
                self.note_delivered();
                self.take_reports()?;
                self.take_requests()?;
            }
            self.choose_index()?;
            if self.journal.state.open.is_empty() {
                self.read_backlog()?;
            }
            let mut plan = decide(&self.journal.state, self.clock.now());
            self.look_after_agent(&mut plan);
            if self.act_in_time(&plan)? {
                continue;
            }
            if let Some(input) = self.wait_a_moment() {
                self.take(input)?;
                continue;
            }
            if self.journal.state.open.is_empty() {
                self.tell_attempts(None)?;
            }
            self.flush()?;
            self.show_waiting(&plan);
            if self.status.due_in(self.clock.elapsed()) == Some(Duration::ZERO) {
                self.write_status_file();
            }
            self.observer.settled();
            if let Some(input) = self.wait(&plan) {
                self.take(input)?;
            }
        }
    }

    /// Carries out a plan as far as the run's time and people let it.
    fn act_in_time(&mut self, plan: &Plan) -> Result<bool, EngineError> {
        let now = self.clock.now();
        let deadline = run_deadline(&self.journal.state, now);
        self.attendant.set_deadline(deadline.map(|at| self.clock.until(at)));
        match self.act(plan) {
            Err(error) if error.is_ended_git() => {
                self.after_ended_git()?;
                Ok(true)
            }
            other => other,
        }
    }

    /// Git was ended in the middle of something: what it was about is decided anew, with what came in meanwhile.
    fn after_ended_git(&mut self) -> Result<(), EngineError> {
        self.known = Known::default();
        self.hooks_untouched = false;
        while let Some(input) = self.host.wait(&self.inputs, Some(Duration::ZERO)) {
            self.take(input)?;
        }
        // A request to stop that stayed there would end the next git as well.
        self.take_requests()?;
        if let Some(git) = &self.git {
            git.clear_dead_lock()?;
        }
        match self.journal.state.open.here().cloned() {
            Some(open) => self.recover_ended_git(&open),
            None => Ok(()),
        }
    }

    /// Carries out a plan; says whether anything was begun that was not under way already.
    fn act(&mut self, plan: &Plan) -> Result<bool, EngineError> {
        let mut acted = false;
        for action in &plan.actions {
            acted |= self.perform(action)?;
        }
        Ok(acted)
    }

    fn perform(&mut self, action: &Action) -> Result<bool, EngineError> {
        if !matches!(action, Action::RunCheck { former: true, .. }) {
            self.put_former_away()?;
        }
        match action {
            Action::Record(event) => {
                if matches!(**event, Event::RunEnded { .. }) {
                    if !self.is_done_checking() {
                        return Ok(false);
                    }
                    self.put_attempt_aside()?;
                }
                self.record(Event::clone(event));
            }
            // What a check leaves behind is put away when it ends, and must not be taken for the user's.
            Action::ResetWorkspace | Action::PutBackUserChanges { .. } if !self.is_done_checking() => {
                return Ok(false);
            }
            Action::StartIteration { iteration, task, attempt, agent, carried, accepted } => {
                self.start_iteration(*iteration, task, *attempt, agent, carried.as_deref(), *accepted)?;
            }
            Action::StopAgent { why: StopWhy::Unresponsive, .. } => self.give_up_agent(Trouble::Silent),
            Action::StopAgent { why, .. } => return self.stop_agent(*why),
            Action::HandOver { trigger, .. } => self.start_handoff(trigger.clone()),
            Action::Nudge { text, .. } => self.nudge(text.clone(), wiggum_core::health::NUDGER),
            Action::FeelPulse { .. } => self.feel_pulse(),
            Action::TakeTree { iteration, attempt } => self.take_tree(*iteration, *attempt)?,
            Action::RunCheck { iteration, attempt, index: _, check, former } => {
                return self.start_check(*iteration, *attempt, check, *former);
            }
            Action::RunClean { of, step } => return self.start_clean(of, step),
            Action::RunBaseline { check } => return self.start_baseline(check),
            Action::RunTaskBaseline { task, check } => return self.start_task_baseline(task, check),
            Action::PlanRepair => self.plan_repair()?,
            Action::AddRepair { task } => self.add_repair(task)?,
            Action::Inspect { iteration, attempt } => self.inspect(*iteration, *attempt)?,
            Action::Land { iteration, attempt } => return self.land(*iteration, *attempt),
            Action::KeepWork { task, iteration } => self.keep_work(task, *iteration)?,
            Action::ResetWorkspace => self.reset_workspace()?,
            Action::WriteStatus { task, status } => self.write_status(task, *status)?,
            Action::CommitSkips { tasks } => self.commit_skips(tasks)?,
            Action::PutBackUserChanges { commit } => self.put_back_user_changes(commit)?,
            Action::Checkpoint => self.checkpoint(""),
        }
        Ok(true)
    }

    fn finished(&mut self) -> Result<Option<Outcome>, EngineError> {
        if let Some(signal) = self.interrupted
            && self.agent.is_none()
            && self.check.is_none()
            && self.call.is_none()
        {
            self.leave_in_order()?;
            return Ok(Some(Outcome::Interrupted { signal }));
        }
        if self.journal.state.run.active {
            return Ok(None);
        }
        self.end_processes();
        self.tell_attempts(None)?;
        self.flush()?;
        self.note_in_plan()?;
        self.write_report();
        let ended = self.journal.state.run.ended.clone();
        Ok(ended.map(|(reason, detail)| Outcome::Ended { reason, detail }))
    }

    /// After Ctrl-C the user's tree is as it was. An attempt that waits for its checks is put aside until
    /// the next start; where changes of the user were set aside, it cannot wait.
    fn leave_in_order(&mut self) -> Result<(), EngineError> {
        if self.journal.state.user_changes.is_some() {
            self.interrupt_iteration("stopped", 0)?;
        }
        self.take_back_done()?;
        self.put_attempt_aside()?;
        if self.journal.state.unkept.is_none() && self.journal.state.open.is_empty() && self.git.is_some() {
            if self.journal.state.workspace != wiggum_core::state::Workspace::Clean {
                self.reset_workspace()?;
            }
            self.tell_backlog()?;
            if let Some(commit) = self.journal.state.user_changes.clone() {
                self.put_back_user_changes(&commit)?;
            }
        }
        if self.journal.state.open.is_empty() {
            self.tell_attempts(None)?;
        }
        self.flush()
    }

    /// What was acknowledged, such as a skip, is in the file when the run is over.
    fn tell_backlog(&mut self) -> Result<(), EngineError> {
        let most = self.journal.state.status_due.len() + 1;
        for _ in 0..most {
            let Some(plan) = due_in_backlog(&self.journal.state) else { return Ok(()) };
            self.act(&plan)?;
        }
        Ok(())
    }

    /// The commit of the attempt under way did not come about: the backlog, which says already that its task is done,
    /// has to wait for it.
    fn take_back_done(&mut self) -> Result<(), EngineError> {
        let Some(open) = self.journal.state.open.here() else { return Ok(()) };
        let task = open.task.clone();
        match self.journal.state.status_due.contains(&task) {
            true => self.write_status(&task, FileStatus::Open),
            false => Ok(()),
        }
    }

    /// What comes in while a check has only just begun.
    fn wait_a_moment(&self) -> Option<Input> {
        let started = self.check.as_ref().and(self.check_started)?;
        let passed = self.clock.elapsed().saturating_sub(started);
        self.host.wait(&self.inputs, Some(MOMENT.checked_sub(passed)?))
    }

    fn wait(&mut self, plan: &Plan) -> Option<Input> {
        let check_limit = self.check_deadline.map(|at| at.saturating_sub(self.clock.elapsed()));
        if check_limit == Some(Duration::ZERO) {
            self.check_deadline = None;
            if let Some(check) = &self.check {
                check.process.stop(Stop::TimedOut, self.settings.grace);
            }
        }
        let plan_limit = plan.wake_at.map(|at| self.clock.until(at));
        let status_limit = self.status.due_in(self.clock.elapsed());
        let limits = [plan_limit, check_limit, status_limit, self.landing_waits()];
        self.host.wait(&self.inputs, limits.into_iter().flatten().min())
    }

    fn take(&mut self, input: Input) -> Result<(), EngineError> {
        match input {
            Input::Agent(events) => {
                for event in &events {
                    self.observer.agent(event);
                    self.heed(event)?;
                }
                self.agent_speaks();
                Ok(())
            }
            Input::AgentEnded { ended, finished } => self.agent_ended(ended, &finished),
            Input::CheckOutput(text) => {
                self.observer.check_output(&text);
                Ok(())
            }
            Input::CheckEnded { ended, output } => self.check_ended(ended, &output),
            Input::CallReady { iteration, attempt, ready } => self.call_ready(iteration, attempt, ready),
            Input::CallEnded { iteration, attempt, outcome } => self.call_ended(iteration, attempt, outcome),
            Input::Wake => Ok(()),
            Input::Person(request) => self.handle_request(None, &request, "terminal"),
            Input::Interrupt(signal) => {
                self.interrupt(signal);
                Ok(())
            }
        }
    }

    fn interrupt(&mut self, signal: &'static str) {
        self.attendant.take_signal();
        let grace = match self.interrupted {
            None => self.settings.grace,
            Some(_) => Grace { int: Duration::ZERO, term: Duration::ZERO },
        };
        self.interrupted = Some(signal);
        if let Some(agent) = &mut self.agent {
            agent.stopping = Some(StopWhy::Asked);
            agent.process.stop(Stop::Asked, grace);
        }
        if let Some(check) = &self.check {
            check.process.stop(Stop::Asked, grace);
        }
        if let Some(call) = &mut self.call {
            call.interrupt(grace.term.is_zero());
        }
    }

    /// Stops whatever works on the open iteration; false if that is under way already.
    fn stop_agent(&mut self, why: StopWhy) -> Result<bool, EngineError> {
        let grace = self.settings.grace;
        if let Some(agent) = &mut self.agent {
            if agent.stopping.is_some() {
                return Ok(false);
            }
            agent.stopping = Some(why);
            let stop = if why == StopWhy::AgentTimeout { Stop::TimedOut } else { Stop::Asked };
            agent.process.stop(stop, grace);
            return Ok(true);
        }
        if let Some(call) = &mut self.call {
            return Ok(call.stop(why));
        }
        match &self.check {
            Some(check) => {
                check.process.stop(Stop::Asked, grace);
                self.check = None;
            }
            None if self.journal.state.open.is_empty() => return Ok(false),
            None => {}
        }
        self.interrupt_iteration("stopped", 0)?;
        Ok(true)
    }

    fn take_requests(&mut self) -> Result<(), EngineError> {
        let requests = self.journal.store.pending(self.journal.id)?;
        for (pending, next) in requests.iter().zip(1..) {
            self.journal.handled(pending.id);
            if let Some(why) = requests::corrected(pending, &requests[next..]) {
                self.refuse_request(Some(pending.id), None, &pending.by, why);
                continue;
            }
            // Whoever paused or stopped meant the engine of that time, not this one.
            let state = &self.journal.state;
            let stale = state.run.started_at.is_some_and(|at| pending.at < at);
            if !(stale && requests::is_about_the_engine(state, &pending.request)) {
                self.flag_request(&pending.request, &pending.by);
                self.handle_request(Some(pending.id), &pending.request, &pending.by)?;
            }
        }
        self.flush()?;
        if !requests.is_empty() {
            // Whoever asked waits for this file to change, also when nothing came of the request.
            self.write_status_file();
        }
        Ok(())
    }

    /// What came while somebody was at work who could have sent it is told, so that a person looks at it.
    fn flag_request(&mut self, request: &Request, by: &str) {
        if let Some(what) = requests::people_only(request).filter(|_| self.has_unconfined()) {
            let message = format!(
                "\"{what}\" by {by} came while an agent, or what it wrote, ran without a sandbox: it may be its own"
            );
            self.record(Event::Noticed { task: None, message });
        }
    }

    fn has_unconfined(&self) -> bool {
        let has_agent = self.settings.sandbox.kind.is_none() && !self.journal.state.open.is_empty();
        has_agent || self.check.as_ref().is_some_and(|check| !self.confines(check))
    }

    pub(crate) fn handle_request(
        &mut self,
        id: Option<RequestId>,
        request: &Request,
        by: &str,
    ) -> Result<(), EngineError> {
        if let Request::BacklogEdited { revision, former, .. } = request {
            self.edits_of_people.push((former.clone(), revision.clone()));
        }
        match requests::translate(&self.journal.state, request, by) {
            requests::Translated::Events(events) => {
                for event in events {
                    self.record(event);
                }
            }
            requests::Translated::Report(event) => {
                let now = self.clock.now();
                if let Some(agent) = &mut self.agent {
                    agent.heart.beat(now);
                }
                self.record(*event);
            }
            requests::Translated::Refused { task, why } => self.refuse_request(id, task, by, why),
            requests::Translated::Nudge(text) => self.nudge(text, by),
            requests::Translated::Checkpoint => self.checkpoint(by),
            requests::Translated::Handoff => self.start_handoff(Trigger::Requested { by: by.to_owned() }),
        }
        Ok(())
    }

    fn refuse_request(&mut self, request: Option<RequestId>, task: Option<TaskId>, by: &str, why: String) {
        self.record(Event::RequestRefused { request, task, by: by.to_owned(), why });
    }

    /// The iteration under way ends without outcome.
    pub(crate) fn interrupt_iteration(
        &mut self,
        reason: &str,
        ended_processes: u32,
    ) -> Result<(), EngineError> {
        if self.agent_stage() {
            for flag in self.note_found_commits()? {
                let message = format!("the commit {} {}", flag.what, flag.detail);
                self.record(Event::Noticed { task: None, message });
            }
        }
        let Some(open) = self.journal.state.open.here().cloned() else { return Ok(()) };
        let (iteration, attempt) = (open.iteration, open.attempt);
        let kept = self.undo_attempt(&open)?;
        self.record(Event::Interrupted {
            iteration,
            attempt,
            reason: reason.to_owned(),
            ended_processes,
            kept,
        });
        if let Some(by) = open.skipped_by {
            self.record(Event::TaskSkipped { task: open.task, by });
        }
        Ok(())
    }

    /// Takes in who set tasks to done before this loop knew of them.
    fn note_done_by_hand(&mut self) -> Result<(), EngineError> {
        for (task, by) in by_hand::said(&self.dir, &self.settings.backlog_name)? {
            if self.journal.state.task(&task).is_some_and(TaskEntry::came_done) {
                self.record(Event::StatusSet { task, status: FileStatus::Done, by });
            }
        }
        Ok(())
    }

    /// Reads the backlog if it changed. Between iterations, everything in it is a person's word.
    pub(crate) fn read_backlog(&mut self) -> Result<(), EngineError> {
        match self.backlog.refresh() {
            Ok(Refresh::Unchanged) if self.journal.state.backlog_broken.is_none() => return Ok(()),
            Ok(Refresh::Unchanged | Refresh::Changed) => {}
            Err(error @ (BacklogError::Read { .. } | BacklogError::Problems(_))) => {
                let message = crate::error::chain(&error);
                if self.journal.state.backlog_broken.as_ref() != Some(&message) {
                    self.record(Event::BacklogBroken { message });
                }
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        }
        let Some(backlog) = self.backlog.backlog() else { return Ok(()) };
        if let Some(message) = backlog.missing_steps() {
            // Whoever writes it is not done, and what is not there yet is not removed.
            if self.journal.state.backlog_broken.as_ref() != Some(&message) {
                self.record(Event::BacklogBroken { message });
            }
            return Ok(());
        }
        let event = difference(&self.journal.state, backlog).or_else(|| {
            self.journal.state.backlog_broken.as_ref().map(|_| Event::BacklogRead {
                revision: crate::backlog_file::revision(backlog.text()),
                added: Vec::new(),
                changed: Vec::new(),
                removed: Vec::new(),
                order: None,
            })
        });
        if let Some(event) = event {
            let unticked = work::opened(&event);
            self.record(event);
            self.note_done_by_hand()?;
            self.note_unticked(&unticked);
        }
        self.backlog.take_in();
        Ok(())
    }

    pub(crate) fn record(&mut self, event: Event) {
        let now = self.clock.now();
        self.journal.record(event, now);
    }

    /// Makes what was recorded durable and tells who watches.
    pub(crate) fn flush(&mut self) -> Result<(), EngineError> {
        let now = self.clock.now();
        let envelopes = self.journal.flush(now)?;
        self.show(&envelopes);
        self.forget_attempt()
    }

    /// Tells what is durable now.
    pub(crate) fn show(&mut self, envelopes: &[Envelope]) {
        for envelope in envelopes {
            self.observer.event(envelope, &self.journal.state);
        }
        if !envelopes.is_empty() {
            self.observer.shown();
        }
        self.status.stale |= !envelopes.is_empty();
    }

    fn show_waiting(&mut self, plan: &Plan) {
        if let Some(waiting) = &plan.waiting
            && self.last_waiting.as_ref() != Some(waiting)
        {
            self.observer.waiting(waiting, &self.journal.state);
        }
        self.last_waiting.clone_from(&plan.waiting);
    }

    /// `status.json` is a courtesy to other programs: the journal does not depend on it.
    pub(crate) fn write_status_file(&mut self) {
        let beat = self.last_beat();
        let status = self.journal.status_text(self.clock.now(), beat);
        // The private one tells those who watch the loop that there is news.
        drop(status::write(&self.dir.loop_dir(self.journal.id), "status.json", &status));
        self.publish("status.json", &status);
        self.status = StatusFile { stale: false, written: Some(self.clock.elapsed()) };
    }

    /// As `status.json`, a courtesy: `wiggum report` makes it again from the journal.
    fn write_report(&self) {
        let Ok(report) =
            Report::read(&self.journal.store, self.journal.id, EngineState::Alive, self.clock.now())
        else {
            return;
        };
        if let Ok(text) = serde_json::to_string_pretty(&report) {
            self.publish("report.json", &text);
        }
        self.publish("report.md", &report.markdown());
        self.publish("report.html", &report.html());
    }

    /// Writes a file of the loop that other programs read. Nothing hangs on it, and agents may have made
    /// anything of the place where it goes.
    fn publish(&self, name: &str, text: &str) {
        let path = format!("{}/{name}", StateDir::shared_loop_dir(self.journal.id));
        drop(beneath::replace(self.settings.workspace(), &path, text.as_bytes()));
    }

    fn end_processes(&mut self) {
        let hurry = Grace { int: Duration::ZERO, term: Duration::ZERO };
        if let Some(agent) = self.agent.take() {
            agent.process.stop(Stop::Asked, hurry);
        }
        if let Some(check) = self.check.take() {
            check.process.stop(Stop::Asked, hurry);
        }
        if let Some(call) = self.call.take() {
            call.cancel.cancel();
        }
        self.host.end_marked("WIGGUM_LOOP_ID", &self.journal.id.to_string());
    }

    pub(crate) fn watch_for_requests(&mut self) {
        let places = [self.dir.wake_dir(), self.dir.agent_dir(self.journal.id)];
        self.watcher = self.host.watch(&places, self.waker());
        self.woken.store(true, Ordering::Release);
    }

    /// Wakes this engine from another thread.
    pub(crate) fn waker(&self) -> Wake {
        let (sender, woken) = (self.sender.clone(), Arc::clone(&self.woken));
        let attendant = Arc::clone(&self.attendant);
        Arc::new(move || {
            woken.store(true, Ordering::Release);
            attendant.wake();
            // A full channel means that the engine is awake anyway.
            drop(sender.try_send(Input::Wake));
        })
    }

    pub(crate) fn is_interrupted(&self) -> bool {
        self.interrupted.is_some()
    }

    /// Is the open iteration in the hands of its agent?
    pub(crate) fn agent_stage(&self) -> bool {
        self.journal.state.open.here().is_some_and(|open| open.stage == Stage::Agent)
    }
}

/// The files of the workspace that a run of this loop has printed to, this one and those before: a
/// `journal.jsonl` of yesterday is still nobody's work.
fn all_outputs(noted: &Path, now: &[String]) -> Result<Vec<String>, EngineError> {
    let text = fs::read_to_string(noted).unwrap_or_default();
    let mut all: Vec<String> = text.lines().map(str::to_owned).collect();
    let new: Vec<String> = now.iter().filter(|name| !all.contains(name)).cloned().collect();
    if !new.is_empty() {
        all.extend(new);
        let parent = noted.parent().map_or(Ok(()), fs::create_dir_all);
        parent
            .and_then(|()| fs::write(noted, all.join("\n")))
            .map_err(|source| EngineError::Write { path: noted.to_owned(), source })?;
    }
    Ok(all)
}

/// Steps of a plan have retries, which are no iterations; and a plan may have used some before.
fn adopt_plan(limits: &mut Limits, backlog: Option<&Backlog>, state: &Loop) {
    let Some(plan) = backlog.and_then(Backlog::plan) else { return };
    limits.retries_count = false;
    limits.used_before = match state.run.number {
        0 => plan.iterations_used.unwrap_or(0),
        _ => state.policy.limits.used_before,
    };
}

fn refuse_unsupported(file: &BacklogFile, policy: &Policy) -> Result<(), EngineError> {
    let knows_role = |role: &str| policy.agents.roles.contains_key(role);
    let problems = file.backlog().map(|backlog| backlog.unsupported(&knows_role)).unwrap_or_default();
    if problems.is_empty() {
        return Ok(());
    }
    Err(EngineError::Unsupported { problems: problems.iter().map(ToString::to_string).collect() })
}

fn take_over(
    host: &dyn Host,
    store: &mut Store,
    settings: &Settings,
) -> Result<(LoopId, Epoch), EngineError> {
    let identity = Identity {
        repository: settings.workspace().display().to_string(),
        backlog: settings.backlog_name.clone(),
        name: settings.name.clone(),
    };
    let now = host.wall();
    let record = match store.find_loop(&identity)? {
        Some(record) => record,
        None => store.create_loop(&identity, LoopId(Uuid::now_v7()), now)?,
    };
    let epoch = acquire(host, store, record.id)?;
    if record.identity.repository != identity.repository {
        store.move_loop(record.id, &identity.repository)?;
    }
    Ok((record.id, epoch))
}

/// Takes the lease of a loop that no living engine holds.
pub(crate) fn acquire(host: &dyn Host, store: &mut Store, id: LoopId) -> Result<Epoch, EngineError> {
    Ok(store.acquire(id, &host.identity(), &|other| host.is_alive(other), host.wall())?)
}

/// A loop that is refused is as it was before: not taken over, and not there if it was not.
fn or_give_back<T>(
    result: Result<T, EngineError>,
    store: &mut Store,
    id: LoopId,
    epoch: Epoch,
) -> Result<T, EngineError> {
    if result.is_err() {
        store.release(id, epoch)?;
        store.forget_empty_loop(id)?;
    }
    result
}

/// Two loops may share a repository, but not a work tree at the same time.
fn claim_workspace(
    host: &dyn Host,
    store: &Store,
    dir: &StateDir,
    workspace: &Path,
) -> Result<ProcessLock, EngineError> {
    let path = dir.workspace_lock();
    match ProcessLock::try_acquire(&path) {
        Ok(Some(lock)) => Ok(lock),
        Ok(None) => Err(EngineError::Busy { path: workspace.to_owned(), by: who_works(host, store)? }),
        Err(source) => Err(EngineError::Write { path, source }),
    }
}

/// The other loop of this store that an engine runs: there can be only one.
fn who_works(host: &dyn Host, store: &Store) -> Result<String, EngineError> {
    let own = host.identity();
    for record in store.loops()? {
        let Some(holder) = store.holder(record.id)?.filter(|holder| *holder != own && host.is_alive(holder))
        else {
            continue;
        };
        let Identity { name, backlog, .. } = &record.identity;
        let since = since_words(store.held_since(record.id)?);
        return Ok(format!(": {name} over {backlog}, process {}{since}", holder.pid));
    }
    Ok(String::new())
}

/// The state of a loop as its journal tells it.
pub fn read_state(store: &Store, id: LoopId) -> Result<Loop, EngineError> {
    let mut state = Loop::default();
    store.for_each(id, 0, |envelope| state.apply(&envelope))?;
    Ok(state)
}
