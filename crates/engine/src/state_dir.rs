//! Where a repository's loops keep their state: the layout of `.wiggum/`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use wiggum_core::ids::LoopId;
pub use wiggum_workspace::paths::FileId;
use wiggum_workspace::paths::file_id;

#[derive(Clone, Debug)]
pub struct StateDir {
    root: PathBuf,
}

impl StateDir {
    pub const NAME: &'static str = ".wiggum";

    /// The state directory of a workspace, whether it exists or not.
    pub fn of(workspace: &Path) -> Self {
        Self { root: workspace.join(Self::NAME) }
    }

    /// Creates what is missing; only its owner may look inside.
    pub fn create(&self) -> io::Result<()> {
        make_private(&self.root)?;
        fs::create_dir_all(self.wake_dir())
    }

    pub fn path(&self) -> &Path {
        &self.root
    }

    pub fn database(&self) -> PathBuf {
        self.root.join("wiggum.db")
    }

    /// Which file the database is in: another one once somebody has thrown it away and begun anew.
    pub fn database_id(&self) -> Option<FileId> {
        file_id(&self.database())
    }

    /// Touching a file in here wakes the engine of the loop it is named after.
    pub fn wake_dir(&self) -> PathBuf {
        self.root.join("wake")
    }

    pub fn wake_file(&self, id: LoopId) -> PathBuf {
        self.wake_dir().join(id.to_string())
    }

    /// What the paths of words for an agent begin with. They lie where the engine is woken when they
    /// are taken.
    pub(crate) fn nudges(&self, id: LoopId) -> PathBuf {
        self.wake_dir().join(format!("{id}.nudge"))
    }

    /// Held by whoever writes the backlog file.
    pub fn backlog_lock(&self) -> PathBuf {
        self.root.join("backlog.lock")
    }

    /// Held by the engine whose agents work in this directory.
    pub fn workspace_lock(&self) -> PathBuf {
        self.root.join("workspace.lock")
    }

    pub fn loop_dir(&self, id: LoopId) -> PathBuf {
        self.root.join("loops").join(id.to_string())
    }

    pub fn transcripts(&self, id: LoopId) -> PathBuf {
        self.root.join("transcripts").join(id.to_string())
    }

    pub fn prompt_file(&self, id: LoopId) -> PathBuf {
        self.loop_dir(id).join("prompt.md")
    }

    /// Where the agent at work puts what it tells through its MCP server.
    pub(crate) fn reports(&self, id: LoopId) -> PathBuf {
        self.loop_dir(id).join("reports")
    }

    /// The index as it was when an attempt's tree was taken.
    pub fn taken_index(&self, id: LoopId) -> PathBuf {
        self.loop_dir(id).join("taken-index")
    }

    /// Copies of git's hooks and configuration from before the agent ran.
    pub fn guard_dir(&self, id: LoopId) -> PathBuf {
        self.loop_dir(id).join("guard")
    }
}

#[cfg(unix)]
fn make_private(dir: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

#[cfg(not(unix))]
fn make_private(dir: &Path) -> io::Result<()> {
    fs::create_dir_all(dir)
}
