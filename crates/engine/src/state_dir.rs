//! Where a checkout's loops keep their files: the layout of the private state directory, and of
//! `.wiggum/` in the checkout.
//!
//! What must not be forged is private and lies outside of every workspace ([`crate::checkout`] says
//! where). `.wiggum/` has the mark that names the store, the lock of the backlog, and files that other
//! programs read: nothing in it is ever read back as the state of a loop.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use wiggum_core::ids::LoopId;
use wiggum_workspace::git::{STATE_DIR, STATE_FILES};
pub use wiggum_workspace::paths::FileId;
use wiggum_workspace::paths::file_id;

use crate::checkout::Checkout;

/// The directories of one checkout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateDir {
    workspace: PathBuf,
    private: PathBuf,
}

impl StateDir {
    /// The directory in the checkout.
    pub const NAME: &'static str = STATE_DIR;

    /// Paths below [`StateDir::NAME`] that are written by us. The rest of it is for people to commit.
    pub const OWN: [&'static str; 3] = STATE_FILES;

    pub(crate) fn new(workspace: impl Into<PathBuf>, private: impl Into<PathBuf>) -> Self {
        Self { workspace: workspace.into(), private: private.into() }
    }

    /// Creates what is missing; only its owner may look inside.
    pub fn create(&self) -> io::Result<()> {
        self.create_private()?;
        self.create_shared()
    }

    /// The part of it that no agent can write to.
    pub(crate) fn create_private(&self) -> io::Result<()> {
        make_private(&self.private)?;
        fs::create_dir_all(self.wake_dir())
    }

    /// The part of it that lies in the workspace.
    pub(crate) fn create_shared(&self) -> io::Result<()> {
        make_private(&self.shared())
    }

    /// The checkout, with its state where it was found.
    pub fn checkout(&self) -> Checkout {
        Checkout::at(&self.workspace, &self.private)
    }

    /// The directory in which agents work.
    pub fn workspace(&self) -> &Path {
        &self.workspace
    }

    /// The store's own directory, outside of the workspace.
    pub fn path(&self) -> &Path {
        &self.private
    }

    /// `.wiggum/` in the workspace.
    pub fn shared(&self) -> PathBuf {
        self.workspace.join(Self::NAME)
    }

    /// Is this path, relative to the workspace and as git writes it, one of our files in the checkout?
    pub fn is_own(path: &str) -> bool {
        let inside = path.strip_prefix(Self::NAME).and_then(|rest| rest.strip_prefix('/'));
        inside.is_some_and(|inside| {
            let first = inside.split('/').next().unwrap_or_default();
            Self::OWN.contains(&first)
        })
    }

    pub fn database(&self) -> PathBuf {
        self.private.join(DATABASE)
    }

    /// Which file the database is in: another one once somebody has thrown it away and begun anew.
    pub fn database_id(&self) -> Option<FileId> {
        file_id(&self.database())
    }

    /// The mark by which the checkout finds its store.
    pub fn mark(&self) -> PathBuf {
        self.shared().join(MARK)
    }

    /// Touching a file in here wakes the engine of the loop it is named after.
    pub fn wake_dir(&self) -> PathBuf {
        self.private.join("wake")
    }

    pub fn wake_file(&self, id: LoopId) -> PathBuf {
        self.wake_dir().join(id.to_string())
    }

    /// Held by whoever writes the backlog file, which agents may do too: they add tasks.
    pub fn backlog_lock(&self) -> PathBuf {
        backlog_lock(&self.workspace)
    }

    /// Held by the engine whose agents work in this directory.
    pub fn workspace_lock(&self) -> PathBuf {
        self.private.join("workspace.lock")
    }

    /// The private files of a loop.
    pub fn loop_dir(&self, id: LoopId) -> PathBuf {
        self.private.join("loops").join(id.to_string())
    }

    /// What other programs read of a loop, relative to the workspace.
    pub fn shared_loop_dir(id: LoopId) -> String {
        format!("{}/loops/{id}", Self::NAME)
    }

    /// Held by the watchdog of the engine that runs the loop.
    pub(crate) fn watchdog_lock(&self, id: LoopId) -> PathBuf {
        self.loop_dir(id).join("watchdog.lock")
    }

    /// The commit that the branch stood on when nothing of the loop ran any more, while an attempt waits.
    pub(crate) fn left_at(&self, id: LoopId) -> PathBuf {
        self.loop_dir(id).join("left-at")
    }

    /// The files of the workspace that runs of the loop have printed to.
    pub(crate) fn outputs(&self, id: LoopId) -> PathBuf {
        self.loop_dir(id).join("outputs")
    }

    pub fn transcripts(&self, id: LoopId) -> PathBuf {
        self.private.join("transcripts").join(id.to_string())
    }

    pub fn prompt_file(&self, id: LoopId) -> PathBuf {
        self.loop_dir(id).join("prompt.md")
    }

    /// The one directory in here that the agent at work may write to.
    pub(crate) fn agent_dir(&self, id: LoopId) -> PathBuf {
        self.loop_dir(id).join("agent")
    }

    /// What the paths of words for an agent begin with; its hook takes them away.
    pub(crate) fn nudges(&self, id: LoopId) -> PathBuf {
        self.agent_dir(id).join("nudge")
    }

    /// Where the agent at work puts what it tells through its MCP server.
    pub(crate) fn reports(&self, id: LoopId) -> PathBuf {
        self.agent_dir(id).join("reports")
    }

    /// The index as it was when an attempt's tree was taken.
    pub fn taken_index(&self, id: LoopId) -> PathBuf {
        self.loop_dir(id).join("taken-index")
    }

    /// Copies of git's hooks and configuration from before the agent ran.
    pub fn guard_dir(&self, id: LoopId) -> PathBuf {
        self.loop_dir(id).join("guard")
    }

    /// Those of all loops.
    pub(crate) fn guard_dirs(&self) -> Vec<PathBuf> {
        let loops = std::fs::read_dir(self.private.join("loops")).into_iter().flatten().flatten();
        loops.map(|entry| entry.path().join("guard")).collect()
    }
}

/// The lock of the backlogs of a workspace, whether it has a store or not.
pub fn backlog_lock(workspace: &Path) -> PathBuf {
    workspace.join(StateDir::NAME).join("backlog.lock")
}

pub(crate) const DATABASE: &str = "wiggum.db";
pub(crate) const MARK: &str = "store";

#[cfg(unix)]
pub(crate) fn make_private(dir: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

#[cfg(not(unix))]
pub(crate) fn make_private(dir: &Path) -> io::Result<()> {
    fs::create_dir_all(dir)
}

#[cfg(test)]
mod tests {
    use super::StateDir;

    #[test]
    fn what_people_commit_is_not_ours() {
        for own in [".wiggum/store", ".wiggum/loops/1/status.json", ".wiggum/backlog.lock"] {
            assert!(StateDir::is_own(own), "{own}");
        }
        for other in [".wiggum/plans/a.json", ".wiggum/store2", "src/.wiggum/store", ".wiggumstore", "a"] {
            assert!(!StateDir::is_own(other), "{other}");
        }
    }
}
