//! The repository that an agent and its checks see, and the index that an attempt's work is taken with.
//!
//! Where the sandbox can show a program another directory in the place of `.git`, neither is the
//! user's: the agent works in a repository of its own, which is made anew for it and again for each
//! check, and its work is taken with an index of ours. Commits that appear in the user's repository
//! meanwhile are then surely somebody else's. While no work lies in the tree, the index is the user's.
//!
//! Elsewhere the repository is shared, and what git obeys is watched instead (`git::Guardian`).

use std::path::{Path, PathBuf};
use std::time::Duration;

use wiggum_core::event::{Event, Flag, FlagKind};
use wiggum_core::state::{OpenIteration, Workspace};
use wiggum_workspace::git::{Git, GitError, Head, IndexStamp, Inside, Private, UsersIndex};
use wiggum_workspace::sandbox::Mount;

use crate::engine::{Engine, Settings};
use crate::error::EngineError;
use crate::sandbox::around_git;
use crate::state_dir::StateDir;
use crate::tree::{flag, short};

/// How soon an index that another git has locked is tried again.
const TRY_AGAIN: Duration = Duration::from_millis(100);

/// What stands in for the user's repository while an attempt is under way.
pub(crate) struct OwnRepository {
    private: Private,
    index: PathBuf,
    /// The user's index when the attempt began.
    seen: Option<IndexStamp>,
    /// Somebody else has locked the user's index, which was told; when to try again, on the engine's clock.
    locked_until: Option<Duration>,
}

impl OwnRepository {
    /// Nothing where the repository has to be shared.
    pub(crate) fn of(settings: &Settings, git: &Git, lane: PathBuf) -> Result<Option<Self>, GitError> {
        let mounts = settings.sandbox.kind.as_ref().is_some_and(|kind| kind.can_mount());
        if !mounts || !Private::fits(git)? {
            return Ok(None);
        }
        let (private, index) = (Private::mounted(&lane), lane.join("index"));
        Ok(Some(Self { private, index, seen: None, locked_until: None }))
    }
}

impl OwnRepository {
    /// What an agent added as a submodule becomes one of the user's repository.
    pub(crate) fn hand_over_submodules(&self, git: &Git) -> Result<(), GitError> {
        self.private.hand_over_submodules(git)
    }
}

impl Engine<'_> {
    /// While work of a task lies in the tree the index is ours, otherwise it is the user's.
    pub(crate) fn choose_index(&mut self) -> Result<(), EngineError> {
        let state = &self.journal.state;
        let holds_work =
            !state.open.is_empty() || state.unkept.is_some() || state.workspace != Workspace::Clean;
        let (Some(git), Some(own)) = (&mut self.git, &mut self.own) else { return Ok(()) };
        match (holds_work, git.has_own_index()) {
            (true, false) => {
                *git = git.clone().with_index(&own.index);
                // A power cut may have taken it; what was staged is staged again.
                if !own.index.exists() {
                    git.take_users_index()?;
                }
            }
            (false, true) => {
                *git = git.of_user();
                own.seen = None;
            }
            (true, true) | (false, false) => {}
        }
        Ok(())
    }

    /// An attempt is about to begin: its index starts as the user's. False where the repository is shared.
    pub(crate) fn begin_own_repository(&mut self) -> Result<bool, EngineError> {
        if let Some(git) = self.git.as_ref().filter(|git| !Private::still_fits(git)) {
            // A task has brought a submodule.
            self.own = None;
            let git = git.of_user();
            let confinement = around_git(&self.settings, &git)?;
            self.git = Some(git.with_confinement(confinement));
        }
        let (Some(git), Some(own)) = (&mut self.git, &mut self.own) else { return Ok(false) };
        std::fs::create_dir_all(own.index.parent().unwrap_or(Path::new(".")))
            .map_err(|source| EngineError::Write { path: own.index.clone(), source })?;
        if !git.has_own_index() {
            *git = git.clone().with_index(&own.index);
            own.seen = Some(git.take_users_index()?);
        }
        Ok(true)
    }

    /// Makes the repository that the next program sees anew: HEAD is where the attempt began, the index is this one.
    pub(crate) fn renew_private(&self, index: &Path) -> Result<(), EngineError> {
        let (Some(git), Some(own)) = (&self.git, &self.own) else { return Ok(()) };
        let head = match self.journal.state.open.here() {
            Some(open) => Head { branch: open.branch.clone(), commit: open.base.clone() },
            None => git.head()?,
        };
        Ok(own.private.make(git, &head, index)?)
    }

    /// What a program is shown in place of the user's repository.
    pub(crate) fn private_mounts(&self) -> Vec<Mount> {
        match (&self.git, &self.own) {
            (Some(git), Some(own)) => own.private.mounts(git),
            (Some(_) | None, _) => Vec::new(),
        }
    }

    /// The index that the next agent or check is to find in its repository.
    pub(crate) fn index_to_show(&self) -> PathBuf {
        let taken = self.journal.state.open.here().is_some_and(|open| open.tree_taken);
        match (&self.git, taken) {
            (_, true) => self.taken_index(),
            (Some(git), false) => git.index_path(),
            (None, false) => PathBuf::new(),
        }
    }

    /// What the agent did in its own repository that people may want to know.
    pub(crate) fn done_in_private(
        &self,
        git: &Git,
        open: &OpenIteration,
        began_at: Option<&str>,
    ) -> Result<Vec<Flag>, EngineError> {
        let Some(head) = self.own.as_ref().and_then(|own| own.private.head()) else { return Ok(Vec::new()) };
        let mut flags = Vec::new();
        // Where somebody else committed meanwhile, an agent that stayed where it was threw nothing away.
        let stayed = head.commit.as_deref() == began_at;
        if let (Some(_), Some(base), false) = (self.went_back_to(git, open)?, &open.base, stayed) {
            let detail = "was thrown away by the agent; put back";
            return Ok(vec![flag(FlagKind::BranchSwitched, &short(base), detail)]);
        }
        if head.branch != open.branch {
            let name = head.branch.as_deref().unwrap_or("a detached HEAD");
            flags.push(flag(
                FlagKind::BranchSwitched,
                name,
                "the agent switched to it in its own repository",
            ));
        }
        if head.commit != open.base && !stayed {
            let name = head.commit.as_deref().map_or_else(String::new, short);
            flags.push(flag(FlagKind::AgentCommitted, &name, "becomes part of the task's commit"));
        }
        Ok(flags)
    }

    /// The commit that the agent went back to in its own repository, if that is one before the attempt's base.
    pub(crate) fn went_back_to(
        &self,
        git: &Git,
        open: &OpenIteration,
    ) -> Result<Option<String>, EngineError> {
        let head = self.own.as_ref().and_then(|own| own.private.head());
        let (Some(at), Some(base)) = (head.and_then(|head| head.commit), &open.base) else { return Ok(None) };
        let is_before = at != *base && git.has_commit(&at)? && git.is_ancestor(&at, base)?;
        Ok(is_before.then_some(at))
    }

    /// Nobody can commit with the user's index while we land. `None` while another git has it.
    pub(crate) fn lock_for_landing(&mut self) -> Result<Option<Landing>, EngineError> {
        let (Some(git), Some(own)) = (&self.git, &mut self.own) else { return Ok(Some(Landing(None))) };
        let now = self.clock.elapsed();
        if own.locked_until.is_some_and(|until| now < until) {
            return Ok(None);
        }
        match git.lock_users_index() {
            Ok(lock) => {
                own.locked_until = None;
                Ok(Some(Landing(Some(lock))))
            }
            Err(GitError::Locked { path }) => {
                let is_told = own.locked_until.replace(now + TRY_AGAIN).is_some();
                if !is_told {
                    let message = format!(
                        "another git works in this repository ({} exists): committing waits for it",
                        path.display()
                    );
                    self.record(Event::Noticed { task: None, message });
                }
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// When landing is to be tried again, if it waits for another git.
    pub(crate) fn landing_waits(&self) -> Option<Duration> {
        let until = self.own.as_ref()?.locked_until?;
        Some(until.saturating_sub(self.clock.elapsed()))
    }

    /// The user's index follows what was committed.
    pub(crate) fn publish_index(
        &mut self,
        landing: Landing,
        from: Option<&str>,
        to: &str,
    ) -> Result<(), EngineError> {
        let (Landing(Some(lock)), Some(git)) = (landing, &self.git) else { return Ok(()) };
        let from = match from {
            Some(from) => from.to_owned(),
            None => git.empty_tree()?,
        };
        let seen = self.own.as_ref().and_then(|own| own.seen.as_ref());
        if !lock.publish(seen, &from, to)? {
            let message = "what you have staged is in the way of the task's commit: `git status` shows the rest of it as changed; \
                           `git reset` (which keeps the files) puts the index in order";
            self.record(Event::Noticed { task: None, message: message.to_owned() });
        }
        Ok(())
    }

    /// Hooks of a commit in the user's own repository may be files that an agent wrote.
    pub(crate) fn behind_walls(&self, git: &Git) -> Result<Git, EngineError> {
        let walls = match &self.own {
            Some(_) => around_git(&self.settings, git)?,
            None => return Ok(git.clone()),
        };
        Ok(git.clone().with_confinement(walls))
    }

    /// A file was committed with our index while an attempt is under way. Where another git has the user's, that goes
    /// on showing the file as changed.
    pub(crate) fn show_in_users_index(&mut self, path: &str) {
        let (Some(git), Some(own)) = (&self.git, &mut self.own) else { return };
        if !git.has_own_index() {
            return;
        }
        let user = git.of_user();
        let is_as_seen = own.seen == Some(user.users_index_stamp());
        if user.stage(&[path]).is_ok() && is_as_seen {
            own.seen = Some(user.users_index_stamp());
        }
    }

    /// The tree went back to what it was when the attempt began. The user's index has that too, but not how the files
    /// look now, so that programs which only compare times would take them for changed.
    pub(crate) fn refresh_users_index(&self) -> Result<(), EngineError> {
        let (Some(git), Some(OwnRepository { seen: Some(seen), .. })) = (&self.git, &self.own) else {
            return Ok(());
        };
        match git.lock_users_index() {
            Ok(lock) => Ok(lock.publish_if_seen(seen)?),
            Err(GitError::Locked { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Commits in the repository that stands in for the user's, hooks included.
    pub(crate) fn commit_in_private(
        &self,
        git: &Git,
        message: &str,
        include: &[&str],
    ) -> Result<Inside, EngineError> {
        // Without walls it would be a commit of the user's own repository.
        let Some(confinement) = self.around_own_check() else {
            return Ok(Inside::Refused("git hooks cannot be run: there is no sandbox for them".to_owned()));
        };
        self.renew_private(&self.taken_index())?;
        Ok(git.commit_inside(message, include, &confinement)?)
    }
}

/// The right to commit: the lock of the user's index, where an attempt has one of its own.
pub(crate) struct Landing(Option<UsersIndex>);

impl StateDir {
    /// What belongs to the one work tree of a loop: the repository that its agents see, our index.
    pub(crate) fn lane(&self, id: wiggum_core::ids::LoopId) -> PathBuf {
        self.loop_dir(id).join("lane")
    }
}
