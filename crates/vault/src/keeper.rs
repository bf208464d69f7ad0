//! Looks after a vault: notices approved plans and answers, carries plans out, several at once, and puts
//! them where they belong when they are done.
//!
//! One thread owns everything here; each plan that is carried out has a thread with an engine of its
//! own. They talk by [`Signal`]s, as do the watcher and the signals of the process.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use serde::Serialize;
use wiggum_core::policy::Millis;
use wiggum_engine::EngineError;
use wiggum_engine::checkout::Checkout;
use wiggum_engine::state_dir::StateDir;
use wiggum_engine::{Input, Outcome, Remote, Settings};
use wiggum_store::{Identity, LoopRecord, Store};
use wiggum_workspace::crash;
use wiggum_workspace::paths::FileLock;

use crate::copies::is_copy_of;
use crate::dashboard::Row;
use crate::layout::{APPROVED, DONE, NEEDS_ACTION, Vault, VaultError, WAITING};
use crate::plans::{Approved, Look, Stamp, is_note, stem};
use crate::projection::{Projection, Standing};
use crate::watch::Watch;
use crate::words::{link, plan_link};

mod answers;
mod begun;
mod carry;
mod files;
mod overview;
mod problems;
mod survey;

use begun::{Begun, Claim, is_same_id};
pub use carry::NotCarriedOut;
pub use problems::Problem;
pub use survey::survey;

/// How far the dashboard may be behind.
const DASHBOARD_INTERVAL: Duration = Duration::from_millis(250);
/// Files of the vault that say how plans are carried out.
const CONFIGURATION: [&str; 2] = ["wiggum.toml", ".mcp.json"];

const OWN_ID: &str = "Give this plan a plan_id of its own.";

/// What plans go by where they say nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// How many plans are carried out at the same time.
    pub jobs: u32,
    /// Iterations of a plan that does not name a limit itself.
    pub max_iterations: u32,
    /// No plan may use more than this without being asked about, whatever it says itself.
    pub most_iterations: Option<u32>,
    /// Attempts at a step after the first.
    pub retries: u32,
    /// Wait before the first of them; doubles each time.
    pub backoff: Millis,
    /// How long a plan must have been left alone before it counts as written.
    pub settle: Millis,
    /// May a repository around the vault be committed to?
    pub git: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            jobs: 4,
            max_iterations: 10,
            most_iterations: None,
            retries: 3,
            backoff: Millis::from_secs(5),
            // Editors and scripts write a file in several goes, and a plan is short.
            settle: Millis::from_secs(2),
            git: false,
        }
    }
}

impl Rules {
    /// Iterations that a plan may use in all, with what it says itself.
    pub fn limit(&self, said: Option<u32>) -> u32 {
        let said = said.unwrap_or(self.max_iterations);
        self.most_iterations.map_or(said, |most| said.min(most))
    }
}

/// What reaches the keeper.
pub enum Signal {
    Changed(PathBuf),
    /// Anything may have changed.
    Look,
    Opened {
        plan: String,
        remote: Remote,
    },
    Shown(Row),
    Ended {
        plan: String,
        result: Result<Outcome, NotCarriedOut>,
    },
    /// The process is to end; said twice, in a hurry.
    Stop(&'static str),
}

/// What a keeper tells whoever started it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "told", rename_all = "snake_case")]
pub enum Told {
    /// What a keeper found when it began.
    Opened {
        vault: String,
        watching: bool,
        approved: usize,
        waiting: usize,
        needs_action: usize,
    },
    Started {
        plan: String,
    },
    Ended {
        plan: String,
        status: String,
        detail: String,
    },
    Completed {
        plan: String,
        file: String,
    },
    Problem {
        what: String,
        message: String,
    },
}

/// What became of the approved plans.
#[derive(Debug)]
pub struct Ran {
    /// Those that rest.
    pub rows: Vec<Row>,
    /// Those that were not carried out.
    pub problems: Vec<Problem>,
}

/// Makes the settings of a plan's loop: agents, tools, configuration.
pub type Setup = Arc<dyn Fn(&Approved) -> Result<Settings, String> + Send + Sync>;

pub struct Keeper {
    vault: Vault,
    rules: Rules,
    setup: Setup,
    tell: Box<dyn FnMut(&Told)>,
    store: Store,
    dir: StateDir,
    sender: Sender<Signal>,
    signals: Receiver<Signal>,
    watch: Option<Watch>,
    /// Files of the folder of approved plans, by their paths in it.
    files: BTreeMap<String, Known>,
    /// What is not carried out, by the same paths.
    problems: BTreeMap<String, Problem>,
    /// What was begun, by this keeper or by one before it.
    begun: Begun,
    /// Which file has a plan's id.
    owners: BTreeMap<String, String>,
    running: BTreeMap<String, Option<Remote>>,
    queue: VecDeque<String>,
    timers: BTreeSet<(Instant, String)>,
    rows: BTreeMap<String, Row>,
    /// Limits that were raised in a note. Once the plan goes on, its journal knows of it.
    granted: BTreeMap<String, u32>,
    /// Plans that nobody has approved.
    waiting: Vec<String>,
    waiting_stale: bool,
    plans_waiting: overview::Index,
    notes_waiting: overview::Index,
    dashboard_due: Option<Instant>,
    /// When everything is looked at again.
    next_look: Instant,
    stopping: Option<&'static str>,
    _lock: FileLock,
}

/// A file as it was last seen.
struct Known {
    stamp: Stamp,
    since: Instant,
    look: Option<Look>,
}

impl Keeper {
    /// Takes a vault over, which must be one. There is one keeper of a vault at a time.
    pub fn open(
        vault: Vault,
        checkout: &Checkout,
        rules: Rules,
        setup: Setup,
        tell: impl FnMut(&Told) + 'static,
    ) -> Result<Self, VaultError> {
        vault.require_folders()?;
        vault.make_folders()?;
        let failed = |source| VaultError::Write { path: StateDir::NAME.to_owned(), source };
        vault.place(StateDir::NAME)?;
        let dir = checkout.open(None).map_err(EngineError::from)?;
        let lock = FileLock::try_acquire(&dir.path().join("vault.lock")).map_err(failed)?;
        let lock = lock.ok_or_else(|| VaultError::Busy { path: vault.root().to_owned() })?;
        let store = Store::open(&dir.database())?;
        let begun = Begun::open(&store, &dir)?;
        let (sender, signals) = channel();
        Ok(Self {
            vault,
            rules,
            setup,
            tell: Box::new(tell),
            store,
            dir,
            sender,
            signals,
            watch: None,
            files: BTreeMap::new(),
            problems: BTreeMap::new(),
            begun,
            owners: BTreeMap::new(),
            running: BTreeMap::new(),
            queue: VecDeque::new(),
            timers: BTreeSet::new(),
            rows: BTreeMap::new(),
            granted: BTreeMap::new(),
            waiting: Vec::new(),
            waiting_stale: false,
            plans_waiting: overview::Index::default(),
            notes_waiting: overview::Index::default(),
            dashboard_due: None,
            next_look: Instant::now(),
            stopping: None,
            _lock: lock,
        })
    }

    /// A way to reach the keeper from other threads.
    pub fn sender(&self) -> Sender<Signal> {
        self.sender.clone()
    }

    /// Carries out what is approved now.
    pub fn run(mut self) -> Result<Ran, VaultError> {
        self.look_at_all()?;
        self.tell_of_start(false);
        while self.stopping.is_none() || !self.running.is_empty() {
            self.start_queued()?;
            let settling = self.files.values().any(|known| known.look.is_none());
            if self.running.is_empty() && self.queue.is_empty() && !settling {
                break;
            }
            self.turn()?;
        }
        self.tell_of_broken(Duration::ZERO)?;
        self.write_dashboard()?;
        Ok(Ran { rows: self.rows.into_values().collect(), problems: self.problems.into_values().collect() })
    }

    /// Carries out whatever is approved, until it is told to stop.
    pub fn watch(mut self) -> Result<(), VaultError> {
        let place = |folder: &str| self.vault.place(folder);
        let folders =
            vec![self.vault.root().to_owned(), place("Approved")?, place(NEEDS_ACTION)?, self.dir.wake_dir()];
        let trees = [place(APPROVED)?, place(WAITING[0])?, place(WAITING[1])?];
        self.watch = Some(Watch::new(folders, trees.into(), self.sender.clone()));
        self.look_at_all()?;
        self.tell_of_start(true);
        while self.stopping.is_none() || !self.running.is_empty() {
            self.start_queued()?;
            self.turn()?;
        }
        self.write_dashboard()
    }

    /// Waits for the next thing and deals with it.
    fn turn(&mut self) -> Result<(), VaultError> {
        let timer = self.timers.first().map(|(at, _)| *at);
        let due = [timer, self.dashboard_due].into_iter().flatten().fold(self.next_look, Instant::min);
        match self.signals.recv_timeout(due.saturating_duration_since(Instant::now())) {
            Ok(signal) => self.take(signal)?,
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
        }
        if self.next_look <= Instant::now() {
            self.look_at_all()?;
        }
        self.take_timers()?;
        if self.dashboard_due.is_some_and(|due| due <= Instant::now()) {
            self.write_dashboard()?;
        }
        Ok(())
    }

    fn take(&mut self, signal: Signal) -> Result<(), VaultError> {
        match signal {
            Signal::Changed(path) => self.changed(&path),
            Signal::Look => self.look_at_all(),
            Signal::Opened { plan, remote } => {
                if let Some(reason) = self.stopping {
                    remote.send(Input::Interrupt(reason));
                }
                self.running.insert(plan, Some(remote));
                Ok(())
            }
            Signal::Shown(row) => {
                self.show(row);
                Ok(())
            }
            Signal::Ended { plan, result } => self.ended(&plan, result),
            Signal::Stop(reason) => {
                self.stopping = Some(reason);
                self.queue.clear();
                for remote in self.running.values().flatten() {
                    remote.send(Input::Interrupt(reason));
                }
                Ok(())
            }
        }
    }

    fn changed(&mut self, path: &Path) -> Result<(), VaultError> {
        if self.watch.as_ref().is_some_and(|watch| watch.is_folder(path)) {
            // Nobody is to put a link to elsewhere in its place, and it may be another folder now.
            self.vault.make_folders()?;
            if let Some(watch) = &mut self.watch {
                watch.attach();
            }
            return self.look_at_all();
        }
        if path.parent() == Some(self.dir.wake_dir().as_path()) {
            return path.file_name().and_then(|name| name.to_str()).map_or(Ok(()), |name| self.woken(name));
        }
        let Some(relative) = path.strip_prefix(self.vault.root()).ok().and_then(Path::to_str) else {
            return Ok(());
        };
        let relative = relative.replace('\\', "/");
        let inside = |folder: &str| relative.strip_prefix(folder)?.strip_prefix('/');
        if CONFIGURATION.contains(&relative.as_str()) {
            self.try_again();
        } else if let Some(name) = inside(APPROVED) {
            // A folder that came or went may hold any number of plans.
            return if is_note(name) { self.look_at(name) } else { self.look_at_all() };
        } else if let Some(name) = inside(NEEDS_ACTION).filter(|name| is_note(name)) {
            self.dashboard_soon();
            return self.note_changed(stem(name));
        } else if WAITING.iter().any(|folder| inside(folder).is_some()) {
            self.waiting_changed();
        }
        Ok(())
    }

    /// Decides what is to be done about a plan.
    fn consider(&mut self, name: &str) -> Result<(), VaultError> {
        let Some(known) = self.files.get(name) else { return Ok(()) };
        let plan = match &known.look {
            Some(Look::Plan(plan)) => Approved::clone(plan),
            Some(Look::Broken(_)) => {
                self.timers.insert((known.since + files::PATIENCE, name.to_owned()));
                return Ok(());
            }
            Some(Look::Gone | Look::NotStarted) | None => return Ok(()),
        };
        match self.claim(name, &plan)? {
            Claim::Plan => {}
            Claim::Unclear => {
                self.look_later(name);
                return Ok(());
            }
            Claim::CopyOf(original) => return self.refuse_copy(name, &original),
            Claim::Taken(owner) => return self.refuse_taken(name, plan.id(), &owner),
            Claim::OtherCase(other) => {
                let message = format!(
                    "the plan_id `{}` differs only by case from `{other}`, a plan that was begun already",
                    plan.id()
                );
                return self.refuse(name, &message, OWN_ID);
            }
        }
        if let Some((id, owner)) = self.owner_of(plan.id()).filter(|(_, owner)| owner != name) {
            if self.running.contains_key(&id) {
                return self.refuse_taken(name, plan.id(), &owner);
            }
            // It was looked at first, but it is not the plan.
            if is_copy_of(&owner, name) {
                self.refuse_copy(&owner, name)?;
            } else {
                self.refuse_taken(&owner, plan.id(), name)?;
            }
            self.owners.remove(&id);
        }
        self.owners.insert(plan.id().to_owned(), name.to_owned());
        if self.running.contains_key(plan.id()) {
            return Ok(());
        }
        match self.next(&plan)? {
            Next::Start => self.enqueue(plan.id()),
            Next::Finish => self.finish(&plan)?,
            Next::Rest => {}
            Next::OtherPlan => {
                self.owners.remove(plan.id());
                let from = self.begun_from(plan.id());
                let message =
                    format!("the plan `{}` was begun from {from}, and this file has other steps", plan.id());
                let hint = "Give this plan a plan_id of its own. If it is that plan, give the file its \
                            former name.";
                return self.refuse(name, &message, hint);
            }
            Next::CarriedOut => {
                let message =
                    format!("the plan `{}` was carried out already and is not run again", plan.id());
                return self.refuse(name, &message, "To have it done again, give it another plan_id.");
            }
        }
        self.problem_is_over(name)
    }

    /// Which file has a plan's id, as far as this keeper knows.
    fn owner_of(&self, id: &str) -> Option<(String, String)> {
        let owned = self.owners.iter().find(|(other, _)| is_same_id(other, id))?;
        Some((owned.0.clone(), owned.1.clone())).filter(|(_, owner)| self.files.contains_key(owner))
    }

    /// What follows from a plan's journal, its file and the notes about it.
    fn next(&mut self, plan: &Approved) -> Result<Next, VaultError> {
        let Some(record) = self.record(plan.id())? else { return Ok(Next::Start) };
        let store = Store::open(self.store.path())?;
        let (mut projection, state) = Projection::open(&self.vault, plan, store, Some(record.id))?;
        if let Some(granted) = state.policy.limits.granted {
            self.granted.entry(plan.id().to_owned()).or_insert(granted);
        }
        projection.limit = self.limit(plan);
        let standing = Standing::of(&state);
        if standing == Standing::Completed {
            if plan.open > 0 {
                return Ok(Next::CarriedOut);
            }
            // Killed before it was moved, it may not have told all of it.
            projection.write()?;
            return Ok(Next::Finish);
        }
        if !self.is_the_plan_begun(plan, &state) {
            return Ok(Next::OtherPlan);
        }
        projection.write()?;
        self.show(projection.row());
        let said = self.take_answers(plan, &record, &projection.story, &projection.about())?;
        let asked = !self.store.pending(record.id)?.is_empty();
        // Whoever raised the limit in the plan itself wants it to go on as well, unless somebody said otherwise.
        let raised = at_limit(&state) && self.limit(plan) > state.used && !said.left;
        Ok(match standing {
            Standing::Executing => Next::Start,
            // It could not be read when it was moved or half written; now it can.
            Standing::Blocked if state.backlog_broken.is_some() => Next::Start,
            Standing::Blocked | Standing::Escalated | Standing::Stopped if asked || said.go_on || raised => {
                Next::Start
            }
            Standing::Blocked | Standing::Escalated | Standing::Stopped | Standing::Completed => Next::Rest,
        })
    }

    /// Iterations a plan may use in all, what was said in a note included.
    fn limit(&self, plan: &Approved) -> u32 {
        carry::limit(&self.rules, plan, self.granted.get(plan.id()).copied())
    }

    fn enqueue(&mut self, plan: &str) {
        if self.stopping.is_none() && !self.queue.iter().any(|queued| queued == plan) {
            self.queue.push_back(plan.to_owned());
        }
    }

    fn start_queued(&mut self) -> Result<(), VaultError> {
        while self.running.len() < self.rules.jobs.max(1) as usize
            && let Some(id) = self.queue.pop_front()
        {
            let Some(plan) = self.plan(&id) else { continue };
            if self.running.contains_key(&id) {
                continue;
            }
            self.begun.note(&id, &plan.name)?;
            self.running.insert(id.clone(), None);
            (self.tell)(&Told::Started { plan: id.clone() });
            let job = carry::Job {
                vault: self.vault.clone(),
                rules: self.rules,
                setup: Arc::clone(&self.setup),
                limit: self.limit(&plan),
                granted: self.granted.get(plan.id()).copied(),
                plan,
                sender: self.sender.clone(),
                dir: self.dir.clone(),
            };
            if let Err(error) = job.start() {
                self.running.remove(&id);
                return Err(VaultError::Write { path: id, source: error });
            }
        }
        Ok(())
    }

    fn ended(&mut self, id: &str, result: Result<Outcome, NotCarriedOut>) -> Result<(), VaultError> {
        self.running.remove(id);
        let name = self.owners.get(id).cloned();
        match result {
            Err(error) => match name {
                Some(name) => self.could_not_start(&name, error),
                None => Ok(()),
            },
            Ok(Outcome::Interrupted { .. }) if self.stopping.is_some() => Ok(()),
            Ok(outcome) => {
                if let Outcome::Ended { detail, .. } = &outcome {
                    let status = self.rows.get(id).map_or_else(String::new, |row| row.status.clone());
                    (self.tell)(&Told::Ended { plan: id.to_owned(), status, detail: detail.clone() });
                }
                match name {
                    // The engine wrote it.
                    Some(name) => self.look_once_more(&name),
                    // It was moved away, and wrote its state once more.
                    None => self.vault.remove_state(id),
                }
            }
        }
    }

    /// A plan is done: it goes where the others went.
    fn finish(&mut self, plan: &Approved) -> Result<(), VaultError> {
        carry::set_status(&self.vault, plan, Standing::Completed.name())?;
        crash::point("before the move");
        let file = self.vault.move_into(&plan.place(), DONE)?;
        crash::point("plan moved");
        self.follow(plan, &file)?;
        self.vault.remove_state(plan.id())?;
        self.forget(&plan.name);
        (self.tell)(&Told::Completed { plan: plan.id().to_owned(), file });
        Ok(())
    }

    /// Links in a plan's notes that name its folder go with it.
    fn follow(&self, plan: &Approved, file: &str) -> Result<(), VaultError> {
        let (old, new) = (plan_link(plan.stem()), link(stem(file)));
        let is_about = |name: &&String| name.starts_with("plan_") && stem(name).contains(plan.id());
        for name in self.vault.names(NEEDS_ACTION).iter().filter(is_about) {
            let follow = |text: &str| text.replace(&old, &new);
            self.vault
                .rewrite(&format!("{NEEDS_ACTION}/{name}"), |text| text.map_or_else(String::new, follow))?;
        }
        Ok(())
    }

    fn plan(&self, id: &str) -> Option<Approved> {
        let known = self.files.get(self.owners.get(id)?)?;
        match known.look.as_ref()? {
            Look::Plan(plan) => Some(Approved::clone(plan)),
            Look::Broken(_) | Look::NotStarted | Look::Gone => None,
        }
    }

    fn record(&self, id: &str) -> Result<Option<LoopRecord>, VaultError> {
        Ok(self.store.find_loop(&identity(&self.vault, id))?)
    }

    fn show(&mut self, row: Row) {
        if self.rows.get(&row.plan_id) != Some(&row) {
            self.rows.insert(row.plan_id.clone(), row);
            self.dashboard_soon();
        }
    }

    fn dashboard_soon(&mut self) {
        self.dashboard_due.get_or_insert_with(|| Instant::now() + DASHBOARD_INTERVAL);
    }
}

enum Next {
    Start,
    /// All is done but the moving.
    Finish,
    /// A person has to say something first.
    Rest,
    CarriedOut,
    /// Another plan was begun under its id.
    OtherPlan,
}

fn at_limit(state: &wiggum_core::state::Loop) -> bool {
    let ended = state.run.ended.as_ref();
    ended.is_some_and(|(reason, _)| *reason == wiggum_core::event::EndReason::MaxIterations)
}

/// A plan's loop is known by the plan's id, wherever its file is and whatever it is called.
pub(crate) fn identity(vault: &Vault, plan: &str) -> Identity {
    Identity {
        repository: vault.root().display().to_string(),
        backlog: backlog_name(plan),
        name: plan.to_owned(),
    }
}

pub(crate) fn backlog_name(plan: &str) -> String {
    format!("{APPROVED}/{plan}.md")
}
