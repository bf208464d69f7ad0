//! The backlog a command is about, and what the loop over it knows.

use std::path::{Path, PathBuf};

use wiggum_backlog::Backlog;
use wiggum_core::state::Loop;
use wiggum_engine::backlog_file::{BacklogError, BacklogFile};
use wiggum_engine::state_dir::StateDir;
use wiggum_store::LoopRecord;
use wiggum_workspace::git::Git;

use crate::commands::loops::Loops;
use crate::commands::{find_backlog, run, surroundings};
use crate::config::{self, Config, Flags};
use crate::failure::Failure;

pub(crate) struct OpenBacklog {
    pub(crate) workspace: PathBuf,
    pub(crate) dir: StateDir,
    pub(crate) config: Config,
    /// As loops and people call it.
    pub(crate) name: String,
    pub(crate) file: BacklogFile,
}

impl OpenBacklog {
    /// The backlog that was named, or is configured, or has one of the usual names. It is not read
    /// yet.
    pub(crate) fn locate(named: Option<&Path>) -> Result<Self, Failure> {
        let here = surroundings()?;
        let flags = Flags { backlog: named.map(Path::to_owned), ..Flags::default() };
        let config = config::resolve(&here.sources(&flags))?;
        let path = find_backlog(&here.workspace, config.backlog.as_deref())?;
        let name = run::name_inside(&here.workspace, &path);
        let dir = StateDir::of(&here.workspace);
        let file = BacklogFile::new(path, &name, dir.backlog_lock());
        Ok(Self { workspace: here.workspace, dir, config, name, file })
    }

    /// As [`OpenBacklog::locate`], and read.
    pub(crate) fn find(named: Option<&Path>) -> Result<Self, Failure> {
        let mut open = Self::locate(named)?;
        open.file.refresh().map_err(broken)?;
        Ok(open)
    }

    pub(crate) fn backlog(&self) -> Result<&Backlog, Failure> {
        self.file.backlog().ok_or_else(|| Failure::other(format!("{} was not read", self.name)))
    }

    /// The loop over this backlog, and whether an engine runs it.
    pub(crate) fn loop_over(&self) -> Result<Option<OverLoop>, Failure> {
        let Some(loops) = Loops::of(&self.workspace)? else { return Ok(None) };
        let Some(record) = loops.over(&self.name)? else { return Ok(None) };
        let alive = loops.engine(record.id)?.alive().is_some();
        Ok(Some(OverLoop { loops, record, alive }))
    }

    /// What the loop over this backlog knows, be it running or not.
    pub(crate) fn any_state(&self) -> Result<Option<Loop>, Failure> {
        self.loop_over()?.map(|over| over.loops.state(over.record.id)).transpose()
    }

    /// What the loop over this backlog knows, if an engine runs it.
    pub(crate) fn live_state(&self) -> Result<Option<Loop>, Failure> {
        let alive = self.loop_over()?.filter(|over| over.alive);
        alive.map(|over| over.loops.state(over.record.id)).transpose()
    }

    /// Makes the directory in which writers lock each other out, hidden from git.
    pub(crate) fn prepare_editing(&self) -> Result<(), Failure> {
        let failed = |error: &dyn std::error::Error| {
            Failure::other(format!(
                "cannot prepare {}: {}",
                self.dir.path().display(),
                wiggum_engine::error::chain(error)
            ))
        };
        self.dir.create().map_err(|error| failed(&error))?;
        if self.workspace.join(".git").exists() {
            Git::new(&self.workspace, None).exclude_state_dir().map_err(|error| failed(&error))?;
        }
        Ok(())
    }
}

pub(crate) struct OverLoop {
    pub(crate) loops: Loops,
    pub(crate) record: LoopRecord,
    pub(crate) alive: bool,
}

/// Nothing was started here: what is wrong is said, and no more.
pub(crate) fn broken(error: BacklogError) -> Failure {
    let problems = matches!(error, BacklogError::Problems(_));
    let failure = Failure::from(error);
    if problems { failure.hint("mend the backlog; `wiggum task validate` checks it") } else { failure }
}
