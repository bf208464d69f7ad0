//! Back to a checkpoint: branch, tasks and backlog as they were, and nothing of what came after lost.
//!
//! The intention is durable before anything changes. Every step can be done again, so an engine that
//! finds a restore begun (whoever began it) completes it before it does anything else.

use uuid::Uuid;
use wiggum_core::event::Event;
use wiggum_core::ids::Seq;
use wiggum_core::mutant::{Mutant, planted};
use wiggum_core::restore;
use wiggum_core::state::{Loop, Workspace};
use wiggum_workspace::crash;

use crate::checkpoints::{self, Kept};
use crate::engine::Engine;
use crate::error::EngineError;

/// What a restore did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    pub commit: Option<String>,
    /// Where the tip of before, and what lay in the work tree, is kept.
    pub reference: Option<String>,
    pub tasks: usize,
}

/// What is done with uncommitted changes of the user's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changes {
    Refuse,
    /// They go under a ref.
    Keep,
}

impl Engine<'_> {
    /// Puts the loop back to a checkpoint. No run may be under way: this engine holds the lease.
    pub fn restore(&mut self, id: Uuid, changes: Changes, by: &str) -> Result<Restored, EngineError> {
        let result = self.go_back(id, changes, by);
        if result.is_ok() {
            self.write_status_file();
        }
        let epoch = self.journal.epoch();
        let released = self.journal.store.release(self.journal.id, epoch);
        let restored = result?;
        released?;
        Ok(restored)
    }

    fn go_back(&mut self, id: Uuid, changes: Changes, by: &str) -> Result<Restored, EngineError> {
        self.look_at_repository()?;
        let ended = self.sweep()?;
        self.complete_restore()?;
        self.come_to_rest(ended)?;
        let loop_id = self.journal.id;
        let all = checkpoints::list(&self.journal.store, loop_id)?;
        let kept = all.into_iter().find(|kept| kept.id == id).ok_or(EngineError::NoCheckpoint { id })?;
        let checkpoint = checkpoints::read(&self.journal.store, &kept)
            .map_err(|damage| EngineError::DamagedCheckpoint { id, source: Box::new(damage) })?;
        let (commit, branch) = (checkpoint.recovery.commit, checkpoint.recovery.branch);
        let from = self.fit_to_go_back(&kept, commit.as_deref(), branch.as_deref(), changes)?;
        let tasks = restore::plan(&self.journal.state, &self.state_at(kept.seq)?);
        let restored = Restored {
            commit: commit.clone(),
            reference: self.git.is_some().then(|| self.reference_of_restore()),
            tasks: tasks.len(),
        };
        self.record(Event::RestoreStarted {
            id,
            to_seq: if planted(Mutant::RestoresAhead) { Seq::MAX } else { kept.seq },
            commit,
            branch,
            from,
            reference: self.reference_of_restore(),
            tasks,
            by: by.to_owned(),
        });
        self.flush()?;
        crash::point("restore intended");
        self.complete_restore()?;
        Ok(restored)
    }

    /// Whatever an engine before us left half done is brought to an end first.
    fn come_to_rest(&mut self, ended: u32) -> Result<(), EngineError> {
        self.recover(ended)?;
        if !self.journal.state.open.is_empty() {
            self.interrupt_iteration("the loop goes back to a checkpoint", 0)?;
        }
        if let Some((task, iteration)) = self.journal.state.unkept.clone() {
            self.keep_work(&task, iteration)?;
        }
        if self.journal.state.checkpoints.due {
            self.checkpoint("");
        }
        self.read_backlog()?;
        self.flush()
    }

    /// The commit the work tree stands on, if going back from it can lose nothing.
    fn fit_to_go_back(
        &self,
        kept: &Kept,
        commit: Option<&str>,
        branch: Option<&str>,
        changes: Changes,
    ) -> Result<Option<String>, EngineError> {
        let Some(git) = &self.git else { return Ok(None) };
        let Some(commit) = commit else { return Err(EngineError::BeforeCommits { id: kept.id }) };
        if git.resolve(&format!("{commit}^{{commit}}"))?.is_none() {
            return Err(EngineError::CommitGone { id: kept.id, commit: commit.to_owned() });
        }
        let head = git.head()?;
        if head.branch.as_deref() != branch {
            let name = |branch: Option<&str>| branch.unwrap_or("a detached HEAD").to_owned();
            return Err(EngineError::OtherBranch {
                wanted: name(branch),
                found: name(head.branch.as_deref()),
            });
        }
        // The work of a task that lies there is under a ref already.
        if changes == Changes::Refuse && self.journal.state.workspace == Workspace::Clean {
            let own = self.own_paths(git)?;
            let paths: Vec<String> =
                git.status()?.paths().into_iter().filter(|path| !own.contains(path)).collect();
            if !paths.is_empty() {
                return Err(EngineError::Uncommitted { paths });
            }
        }
        Ok(head.commit)
    }

    /// The loop as it was after this event.
    fn state_at(&self, seq: Seq) -> Result<Loop, EngineError> {
        let mut state = Loop::default();
        self.journal.store.for_each(self.journal.id, 0, |envelope| {
            if envelope.seq <= seq {
                state.apply(&envelope);
            }
        })?;
        Ok(state)
    }

    fn reference_of_restore(&self) -> String {
        format!("refs/wiggum/{}/restored/{}", self.short_id(), self.journal.state.seq + 1)
    }

    /// Carries out what a restore that was begun is about. Nothing to do is fine.
    pub(crate) fn complete_restore(&mut self) -> Result<(), EngineError> {
        let restoring = self.journal.state.restoring.clone().filter(|_| !planted(Mutant::LeavesRestore));
        let Some(restoring) = restoring else { return Ok(()) };
        if let Some(git) = &self.git {
            // There, it was kept before anything changed, and must not be overwritten with less.
            match git.resolve(&restoring.reference)? {
                None => self.keep_what_is_there(&restoring.reference)?,
                Some(kept) => self.keep_what_came_since(&kept, restoring.commit.as_deref())?,
            }
            crash::point("tip kept");
        }
        if let Some(git) = &self.git {
            git.reset_hard(restoring.commit.as_deref(), &self.watched.excluded())?;
            crash::point("branch put back");
        }
        self.in_place = None;
        if planted(Mutant::RestoresTwice) {
            self.record(Event::Restored { id: restoring.checkpoint });
        }
        self.record(Event::Restored { id: restoring.checkpoint });
        self.flush()?;
        crash::point("restored");
        // The next run would write them too; people look at the file before that.
        while self.journal.state.backlog_broken.is_none()
            && let Some(task) = self.journal.state.status_due.first().cloned()
            && let Some(status) = self.journal.state.task(&task).map(|entry| entry.state.file_status())
        {
            self.write_status(&task, status)?;
        }
        self.flush()
    }

    /// Between a kill and now somebody may have worked here: on a commit or in files that are neither
    /// those of before nor those of the checkpoint.
    fn keep_what_came_since(&mut self, kept: &str, commit: Option<&str>) -> Result<(), EngineError> {
        let Some(git) = &self.git else { return Ok(()) };
        let excluded = self.watched.excluded();
        git.stage_all(&excluded)?;
        let is_known = |known: &str| Ok::<_, EngineError>(!git.index_differs_from(known, &excluded)?);
        let known_files = is_known(kept)? || commit.map_or(Ok(false), is_known)?;
        let known_tip = match git.head()?.commit {
            Some(tip) => Some(tip.as_str()) == commit || git.is_ancestor(&tip, kept)?,
            None => true,
        };
        if known_files && known_tip { Ok(()) } else { self.keep_found("files or commits") }
    }

    /// The tip, and on top of it what lies in the work tree if that is something else.
    fn keep_what_is_there(&self, reference: &str) -> Result<(), EngineError> {
        let Some(git) = &self.git else { return Ok(()) };
        git.stage_all(&self.watched.excluded())?;
        match git.head()?.commit {
            Some(tip) if git.index_tree()? == git.tree_of(&tip)? => git.set_reference(reference, &tip)?,
            Some(_) | None => drop(git.keep_work(reference, "The work tree before a restore")?),
        }
        Ok(())
    }
}
