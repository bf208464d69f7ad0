//! A backlog file and the loop over it: reads and edits the file, safely beside a running loop and other
//! editors.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use wiggum_backlog::generate_task_id;
pub use wiggum_backlog::{Backlog, EditError, NewTask, Position, Problem, TaskChange};
use wiggum_core::activity::EngineState;
use wiggum_core::admit::{Change, Proposal, Proposer, Refusal, Refused, admit};
use wiggum_core::decide::{Why, why};
use wiggum_core::event::Request;
use wiggum_core::ids::TaskId;
use wiggum_core::policy::Policy;
use wiggum_core::state::Loop;
use wiggum_core::task::{FileStatus, Task};
use wiggum_core::tasks::TaskState;
use wiggum_store::LoopRecord;
use wiggum_workspace::git::Git;

use crate::backlog_file::{BacklogError, BacklogFile, revision};
use crate::by_hand;
use crate::checkout::{Checkout, CheckoutError};
use crate::desk::post::{Reply, Settled, require_task};
use crate::desk::{DeskError, Lease, Loops};
use crate::error::chain;
use crate::host::{Host, Machine};
use crate::state_dir::{StateDir, backlog_lock, make_private};
use crate::wake;

/// A backlog somebody asked for.
pub struct OpenBacklog {
    checkout: Checkout,
    /// As loops and people call it.
    pub name: String,
    pub file: BacklogFile,
    /// How many tasks it may grow to, and which roles there are.
    policy: Policy,
    by: Proposer,
}

const PERSON: Proposer = Proposer::Person { insists: false };

/// Where a task is to stand, as clients say it.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Place {
    First,
    Last,
    /// In front of this task
    Before(String),
    /// Behind this task
    After(String),
}

impl From<Place> for Position {
    fn from(place: Place) -> Self {
        match place {
            Place::First => Self::First,
            Place::Last => Self::Last,
            Place::Before(other) => Self::Before(other),
            Place::After(other) => Self::After(other),
        }
    }
}

/// A task in a list.
#[derive(Clone, Debug, Serialize)]
pub struct Listed {
    pub id: String,
    pub title: String,
    pub status: &'static str,
    /// What it waits on, or why it is where it is.
    pub why: String,
    pub depends_on: Vec<TaskId>,
    pub role: String,
    pub phase: u32,
    pub priority: i64,
    pub labels: Vec<String>,
}

/// The loop over a backlog.
pub struct OverLoop {
    pub loops: Loops,
    pub record: LoopRecord,
    pub alive: bool,
    /// Did its engine end without giving the loop back? What its agent did is then still to be looked at.
    pub killed: bool,
}

/// How a status came to be changed.
#[derive(Clone, Debug)]
pub enum StatusChange {
    /// The engine is the one who writes statuses while it runs.
    Asked { record: Box<LoopRecord>, request: Request, reply: Reply },
    /// Nobody runs: the file says it now.
    Written,
}

impl OpenBacklog {
    /// The backlog at this place. It is not read yet.
    pub fn new(checkout: &Checkout, path: PathBuf, policy: &Policy) -> Self {
        let name = name_inside(checkout.path(), &path);
        let file = BacklogFile::new(path, &name, backlog_lock(checkout.path()));
        Self { checkout: checkout.clone(), name, file, policy: policy.clone(), by: PERSON }
    }

    /// For the agent of a loop rather than for a person.
    #[must_use]
    pub fn for_agent(self, is_agent: bool) -> Self {
        Self { by: if is_agent { Proposer::Agent } else { PERSON }, ..self }
    }

    /// Reads the file, by what the loop over it knows.
    pub fn read(&mut self) -> Result<(), DeskError> {
        self.file.refresh()?;
        self.read_dashes()
    }

    /// The tasks, once it was read.
    pub fn backlog(&mut self) -> Result<&Backlog, DeskError> {
        if self.file.backlog().is_none() {
            self.read()?;
        }
        self.file.backlog().ok_or(DeskError::Refused { why: format!("{} was not read", self.name) })
    }

    /// The loop over this backlog, and whether an engine runs it.
    pub fn loop_over(&self) -> Result<Option<OverLoop>, DeskError> {
        let Some(loops) = Loops::of(&self.checkout)? else { return Ok(None) };
        let Some(record) = loops.over(&self.name)? else { return Ok(None) };
        let (alive, killed) = match loops.lease(record.id)? {
            Lease::Alive(_) => (true, false),
            Lease::Dead(_) => (false, true),
            Lease::None => (false, false),
        };
        Ok(Some(OverLoop { loops, record, alive, killed }))
    }

    /// What tasks ask for and nobody can do yet.
    pub fn unsupported(&mut self) -> Result<Vec<Problem>, DeskError> {
        let roles = self.policy.agents.roles.clone();
        Ok(self.backlog()?.unsupported(&|role| roles.contains_key(role)))
    }

    /// Boxes `[-]` are skips where the loop over this backlog wrote them.
    fn read_dashes(&mut self) -> Result<(), DeskError> {
        if self.file.backlog().is_some_and(Backlog::has_dashes)
            && let Some(state) = self.any_state()?
        {
            self.file.read_dashes_of(&state);
        }
        Ok(())
    }

    /// What the loop over this backlog knows, be it running or not.
    pub fn any_state(&self) -> Result<Option<Loop>, DeskError> {
        self.loop_over()?.map(|over| over.loops.state(over.record.id)).transpose()
    }

    /// What was found of the engine of the loop over this backlog.
    pub fn engine(&self) -> Result<EngineState, DeskError> {
        Ok(match self.loop_over()? {
            Some(over) if over.alive => EngineState::Alive,
            Some(over) if over.killed => EngineState::Dead,
            Some(_) | None => EngineState::Gone,
        })
    }

    /// What the loop over this backlog knows, if an engine runs it.
    pub fn live_state(&self) -> Result<Option<Loop>, DeskError> {
        let alive = self.loop_over()?.filter(|over| over.alive);
        alive.map(|over| over.loops.state(over.record.id)).transpose()
    }

    /// Every task, as the loop that runs knows it, else as the file says.
    pub fn list(&mut self, now: Timestamp) -> Result<Vec<Listed>, DeskError> {
        let known = Known::of(self)?;
        let backlog = self.backlog()?;
        Ok(backlog.tasks().iter().map(|task| listed(task, backlog, &known, now)).collect())
    }

    /// Adds a task in somebody's name; one without an id gets the next of its kind. Tells the id.
    pub fn add(&mut self, mut task: NewTask, by: &str) -> Result<String, DeskError> {
        self.prepare_editing()?;
        if let Some(backlog) = self.file.backlog().filter(|backlog| !backlog.may_become_list()) {
            backlog.recognised().map_err(BacklogError::Problems)?;
        }
        let mut gate = self.gate();
        if let Proposer::Person { insists } = &mut gate.by {
            *insists = !task.id.is_empty();
        }
        self.edit_and_tell(by, |backlog| {
            if task.id.is_empty() {
                task.id = generate_task_id(backlog, prefix(backlog));
            }
            gate.admit(backlog, Change::Add(task.task()))?;
            backlog.add(&task)?;
            let added = backlog.task(&task.id).cloned().into_iter().collect();
            Ok((task.id, Edited { added, removed: Vec::new() }))
        })
    }

    /// Sets a status in somebody's name: by the engine where one runs, in the file otherwise.
    pub fn set_status(&mut self, id: &str, status: FileStatus, by: &str) -> Result<StatusChange, DeskError> {
        if let Some(OverLoop { mut loops, record, alive: true, .. }) = self.loop_over()? {
            let task = require_task(&loops.state(record.id)?, id)?;
            let request = Request::SetStatus { task, status };
            let settled = Settled { silence: "set", ..Settled::default() };
            let reply = loops.deliver(&record, &request, by, settled)?;
            return Ok(StatusChange::Asked { record: Box::new(record), request, reply });
        }
        self.edit(|backlog| {
            if !backlog.dialect().can_say(status) && backlog.task(id).is_some() {
                let (id, what) = (id.to_owned(), "status `failed`");
                return Err(EditError::NotExpressible { id, what, dialect: backlog.dialect().name() });
            }
            backlog.set_status(id, status)
        })?;
        self.note_word(&id.into(), status, by)?;
        Ok(StatusChange::Written)
    }

    /// Keeps who set a task to done, for the loop that takes it in.
    fn note_word(&self, task: &TaskId, status: FileStatus, by: &str) -> Result<(), DeskError> {
        if status == FileStatus::Done {
            let git = Machine::new().repository(self.checkout.path()).map_err(CheckoutError::from)?;
            let dir = self.checkout.open(git.as_ref())?;
            by_hand::note(&dir, &self.name, task, Some(by))?;
        } else if let Some(dir) = self.checkout.find()? {
            by_hand::note(&dir, &self.name, task, None)?;
        }
        Ok(())
    }

    /// Changes what a task says of itself, unless an agent is at work by what it said.
    pub fn change(&mut self, id: &str, change: TaskChange) -> Result<(), DeskError> {
        self.refuse_at_work(id)?;
        let gate = self.gate();
        self.edit(|backlog| {
            let wanted = backlog.as_changed(id, &change)?;
            gate.admit(backlog, Change::Update(wanted))?;
            backlog.change(id, &change)
        })
    }

    /// Gives a task another place.
    pub fn move_task(&mut self, id: &str, to: Position) -> Result<(), DeskError> {
        let gate = self.gate();
        self.edit(|backlog| {
            gate.admit(backlog, Change::Move(id.into()))?;
            backlog.move_task(id, to)
        })
    }

    /// Takes a task out in somebody's name, unless an agent is at work on it.
    pub fn delete(&mut self, id: &str, by: &str) -> Result<(), DeskError> {
        self.refuse_at_work(id)?;
        self.prepare_editing()?;
        let gone = self.edit_and_tell(by, |backlog| {
            backlog.delete(id)?;
            Ok(((), Edited { added: Vec::new(), removed: vec![id.into()] }))
        });
        self.or_known(gone)
    }

    /// Changes the newest version of the file, alone.
    fn edit(&mut self, by: impl FnOnce(&mut Backlog) -> Result<(), EditError>) -> Result<(), DeskError> {
        self.prepare_editing()?;
        let edited = self.file.edit(by).map_err(DeskError::from);
        self.or_known(edited)
    }

    /// Whoever named a task that is not there is told of those that are.
    fn or_known(&mut self, edited: Result<(), DeskError>) -> Result<(), DeskError> {
        let id = match edited {
            Err(DeskError::Backlog(BacklogError::Edit(EditError::UnknownTask { id, .. }))) => id,
            Err(DeskError::Backlog(BacklogError::Edit(EditError::Refused(Refused {
                task,
                why: Refusal::UnknownTask,
                ..
            })))) => task.to_string(),
            other => return other,
        };
        self.file.refresh()?;
        let known = self.backlog()?.tasks().iter().map(|task| task.id.to_string()).collect();
        Err(DeskError::UnknownTask { id, known })
    }

    /// As [`OpenBacklog::edit`], and tells the loop over this backlog whose edit it was before anybody can see it: what
    /// an agent writes into the file at the same time is judged otherwise.
    fn edit_and_tell<T>(
        &mut self,
        by: &str,
        change: impl FnOnce(&mut Backlog) -> Result<(T, Edited), EditError>,
    ) -> Result<T, DeskError> {
        let mut over = match self.by {
            Proposer::Person { .. } => self.loop_over()?.filter(|over| over.alive || over.killed),
            Proposer::Agent => None,
        };
        let request = RefCell::new(None);
        let mut told = Ok(());
        let edited = self.file.edit_after(
            |backlog| {
                let former = revision(backlog.text());
                let (result, Edited { added, removed }) = change(backlog)?;
                let revision = revision(backlog.text());
                request.replace(Some(Request::BacklogEdited { revision, former, added, removed }));
                Ok(result)
            },
            || {
                if let (Some(over), Some(request)) = (&mut over, request.take()) {
                    let posted = over.loops.store.post(over.record.id, &request, by, Machine::new().wall());
                    told = posted.map(drop);
                }
                told.is_ok()
            },
        );
        let (result, replaced) = edited?;
        told?;
        self.file.sync(replaced.as_ref())?;
        if let Some(over) = over.filter(|over| over.alive) {
            wake::wake(&over.loops.dir, over.record.id).map_err(|source| DeskError::Wake { source })?;
        }
        Ok(result)
    }

    fn gate(&self) -> Gate {
        Gate { policy: self.policy.clone(), by: self.by }
    }

    fn refuse_at_work(&self, id: &str) -> Result<(), DeskError> {
        let running = |state: Loop| {
            state.task(&TaskId::from(id)).is_some_and(|entry| entry.state == TaskState::Running)
        };
        match self.live_state()?.is_some_and(running) {
            true => Err(DeskError::AtWork { id: id.to_owned() }),
            false => Ok(()),
        }
    }

    /// Makes the directory in which writers lock each other out, hidden from git, and reads the file.
    fn prepare_editing(&mut self) -> Result<(), DeskError> {
        let failed = |error: &dyn std::error::Error| DeskError::Prepare {
            path: self.checkout.path().join(StateDir::NAME),
            problem: chain(error),
        };
        let workspace = self.checkout.path();
        make_private(&workspace.join(StateDir::NAME)).map_err(|error| failed(&error))?;
        if workspace.join(".git").exists() {
            Git::new(workspace, None).exclude_state_dir().map_err(|error| failed(&error))?;
        }
        self.file.read()?;
        self.read_dashes()
    }
}

/// What a person's edit brings, for the loop.
struct Edited {
    added: Vec<Task>,
    removed: Vec<TaskId>,
}

/// What every change of a backlog has to pass.
struct Gate {
    policy: Policy,
    by: Proposer,
}

impl Gate {
    /// Judged against the file, whose newest version is the truth while it is locked.
    fn admit(&self, backlog: &Backlog, change: Change) -> Result<(), EditError> {
        let state = Loop::knowing(backlog.tasks(), self.policy.clone());
        Ok(admit(&state, &Proposal { by: self.by, changes: vec![change] }).whole()?)
    }
}

/// A path as people and git write it: relative to the workspace where it lies inside, and whole elsewhere.
pub fn name_inside(workspace: &Path, path: &Path) -> String {
    let Ok(inside) = path.strip_prefix(workspace) else { return path.display().to_string() };
    inside.components().map(|part| part.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/")
}

/// What is known of tasks beside their file.
struct Known {
    /// Of the loop over it.
    state: Option<Loop>,
    alive: bool,
    /// It was killed, so that what stands in the file may be its agent's.
    killed: bool,
    /// Tasks that a person set to done while no loop ran.
    done_by_hand: BTreeMap<TaskId, String>,
}

impl Known {
    fn of(open: &OpenBacklog) -> Result<Self, DeskError> {
        let dir = open.checkout.find()?;
        let done_by_hand = dir.map(|dir| by_hand::said(&dir, &open.name)).transpose()?.unwrap_or_default();
        let Some(over) = open.loop_over()? else {
            return Ok(Self { state: None, alive: false, killed: false, done_by_hand });
        };
        let state = Some(over.loops.state(over.record.id)?);
        Ok(Self { state, alive: over.alive, killed: over.killed, done_by_hand })
    }

    /// Is a task that is done in the file so by a person's word? A loop at rest takes any change for one.
    fn is_by_hand(&self, task: &Task) -> bool {
        let said = || self.done_by_hand.contains_key(&task.id);
        match self.state.as_ref().and_then(|state| state.task(&task.id)) {
            None => said(),
            Some(entry) => match entry.state {
                TaskState::Done { by_hand, .. } => by_hand || (entry.came_done() && said()),
                TaskState::Open
                | TaskState::Running
                | TaskState::Parked(_)
                | TaskState::Failed { .. }
                | TaskState::Skipped => !self.killed,
            },
        }
    }
}

fn listed(task: &Task, backlog: &Backlog, known: &Known, now: Timestamp) -> Listed {
    let live = known.state.as_ref().filter(|_| known.alive);
    let live = live.and_then(|state| Some((state.task(&task.id)?, why(state, &task.id, now)?)));
    let (status, why) = match live {
        Some((entry, why)) => (entry.state.name(), why.to_string()),
        None if task.status == FileStatus::Done && known.is_by_hand(task) => {
            (task.status.name(), Why::DoneByHand.to_string())
        }
        None => (task.status.name(), waits_on(task, backlog)),
    };
    Listed {
        id: task.id.to_string(),
        title: task.title.clone(),
        status,
        why,
        depends_on: task.depends_on.clone(),
        role: task.role.clone(),
        phase: task.phase,
        priority: task.priority,
        labels: task.labels.clone(),
    }
}

fn waits_on(task: &Task, backlog: &Backlog) -> String {
    match task.status {
        FileStatus::Open => {}
        FileStatus::Done | FileStatus::Failed | FileStatus::Skipped => return task.status.name().to_owned(),
    }
    let unmet = task.depends_on.iter().filter_map(|id| {
        let other = backlog.task(id.as_str()).filter(|other| other.status != FileStatus::Done)?;
        Some(format!("{} ({})", other.id, other.status.name()))
    });
    let unmet: Vec<String> = unmet.collect();
    if unmet.is_empty() { "ready".to_owned() } else { format!("waits on {}", unmet.join(", ")) }
}

/// What comes before the number in the ids of this backlog.
fn prefix(backlog: &Backlog) -> &str {
    let numbered = backlog.tasks().iter().rev().map(|task| task.id.as_str());
    let mut prefixes = numbered
        .filter(|id| id.ends_with(|c: char| c.is_ascii_digit()))
        .map(|id| id.trim_end_matches(|c: char| c.is_ascii_digit()));
    prefixes.next().unwrap_or_default()
}
