//! A backlog file and the loop over it: reads and edits the file, safely beside a running loop and other
//! editors.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use wiggum_backlog::generate_task_id;
pub use wiggum_backlog::{Backlog, EditError, NewTask, Position, TaskChange};
use wiggum_core::decide::why;
use wiggum_core::event::Request;
use wiggum_core::ids::TaskId;
use wiggum_core::state::Loop;
use wiggum_core::task::{FileStatus, Task};
use wiggum_core::tasks::TaskState;
use wiggum_store::LoopRecord;
use wiggum_workspace::git::Git;

use crate::backlog_file::{BacklogError, BacklogFile};
use crate::desk::post::{Reply, Settled, require_task};
use crate::desk::{DeskError, Loops};
use crate::error::chain;
use crate::state_dir::StateDir;

/// A backlog somebody asked for.
pub struct OpenBacklog {
    workspace: PathBuf,
    dir: StateDir,
    /// As loops and people call it.
    pub name: String,
    pub file: BacklogFile,
    /// How many tasks it may grow to.
    max_tasks: u32,
}

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
}

/// The loop over a backlog.
pub struct OverLoop {
    pub loops: Loops,
    pub record: LoopRecord,
    pub alive: bool,
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
    pub fn new(workspace: &Path, path: PathBuf, max_tasks: u32) -> Self {
        let name = name_inside(workspace, &path);
        let dir = StateDir::of(workspace);
        let file = BacklogFile::new(path, &name, dir.backlog_lock());
        Self { workspace: workspace.to_owned(), dir, name, file, max_tasks }
    }

    /// The tasks, once it was read.
    pub fn backlog(&mut self) -> Result<&Backlog, DeskError> {
        if self.file.backlog().is_none() {
            self.file.refresh()?;
        }
        self.file.backlog().ok_or(DeskError::Refused { why: format!("{} was not read", self.name) })
    }

    /// The loop over this backlog, and whether an engine runs it.
    pub fn loop_over(&self) -> Result<Option<OverLoop>, DeskError> {
        let Some(loops) = Loops::of(&self.workspace)? else { return Ok(None) };
        let Some(record) = loops.over(&self.name)? else { return Ok(None) };
        let alive = loops.lease(record.id)?.alive().is_some();
        Ok(Some(OverLoop { loops, record, alive }))
    }

    /// What the loop over this backlog knows, be it running or not.
    pub fn any_state(&self) -> Result<Option<Loop>, DeskError> {
        self.loop_over()?.map(|over| over.loops.state(over.record.id)).transpose()
    }

    /// What the loop over this backlog knows, if an engine runs it.
    pub fn live_state(&self) -> Result<Option<Loop>, DeskError> {
        let alive = self.loop_over()?.filter(|over| over.alive);
        alive.map(|over| over.loops.state(over.record.id)).transpose()
    }

    /// Every task, as the loop that runs knows it, else as the file says.
    pub fn list(&mut self, now: Timestamp) -> Result<Vec<Listed>, DeskError> {
        let state = self.live_state()?;
        let backlog = self.backlog()?;
        Ok(backlog.tasks().iter().map(|task| listed(task, backlog, state.as_ref(), now)).collect())
    }

    /// Adds a task; one without an id gets the next of its kind. Tells the id.
    pub fn add(&mut self, mut task: NewTask) -> Result<String, DeskError> {
        let max = self.max_tasks;
        self.prepare_editing()?;
        let added = self.file.edit(|backlog| {
            if task.id.is_empty() {
                task.id = generate_task_id(backlog, prefix(backlog));
            }
            backlog.add(&task, Some(max)).map(|()| task.id)
        });
        Ok(added?)
    }

    /// Sets a status in somebody's name: by the engine where one runs, in the file otherwise.
    pub fn set_status(&mut self, id: &str, status: FileStatus, by: &str) -> Result<StatusChange, DeskError> {
        if let Some(OverLoop { mut loops, record, alive: true }) = self.loop_over()? {
            let task = require_task(&loops.state(record.id)?, id)?;
            let request = Request::SetStatus { task, status };
            let settled = Settled { silence: "set", takes_time: false };
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
        Ok(StatusChange::Written)
    }

    /// Changes what a task says of itself, unless an agent is at work by what it said.
    pub fn change(&mut self, id: &str, change: TaskChange) -> Result<(), DeskError> {
        self.refuse_at_work(id)?;
        self.edit(|backlog| backlog.change(id, &change))
    }

    /// Takes a task out, unless an agent is at work on it.
    pub fn delete(&mut self, id: &str) -> Result<(), DeskError> {
        self.refuse_at_work(id)?;
        self.edit(|backlog| backlog.delete(id))
    }

    /// Changes the newest version of the file, alone.
    pub fn edit(&mut self, by: impl FnOnce(&mut Backlog) -> Result<(), EditError>) -> Result<(), DeskError> {
        self.prepare_editing()?;
        match self.file.edit(by) {
            Err(BacklogError::Edit(EditError::UnknownTask { id, .. })) => {
                self.file.refresh()?;
                let known = self.backlog()?.tasks().iter().map(|task| task.id.to_string()).collect();
                Err(DeskError::UnknownTask { id, known })
            }
            other => Ok(other?),
        }
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

    /// Makes the directory in which writers lock each other out, hidden from git.
    fn prepare_editing(&self) -> Result<(), DeskError> {
        let failed = |error: &dyn std::error::Error| DeskError::Prepare {
            path: self.dir.path().to_owned(),
            problem: chain(error),
        };
        // An agent's directory may be there and not its own to change.
        if !self.dir.backlog_lock().exists() {
            self.dir.create().map_err(|error| failed(&error))?;
        }
        if self.workspace.join(".git").exists() {
            Git::new(&self.workspace, None).exclude_state_dir().map_err(|error| failed(&error))?;
        }
        Ok(())
    }
}

/// A path as people and git write it: relative to the workspace where it lies inside.
pub fn name_inside(workspace: &Path, path: &Path) -> String {
    let inside = path.strip_prefix(workspace).unwrap_or(path);
    inside.components().map(|part| part.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/")
}

fn listed(task: &Task, backlog: &Backlog, state: Option<&Loop>, now: Timestamp) -> Listed {
    let live = state.and_then(|state| Some((state.task(&task.id)?, why(state, &task.id, now)?)));
    let (status, why) = match live {
        Some((entry, why)) => (entry.state.name(), why.to_string()),
        None => (task.status.name(), waits_on(task, backlog)),
    };
    Listed {
        id: task.id.to_string(),
        title: task.title.clone(),
        status,
        why,
        depends_on: task.depends_on.clone(),
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
