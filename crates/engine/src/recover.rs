//! After a crash: end what still runs, see what really happened, and leave the rest to `decide`.
//!
//! The order matters and is the design's: processes first, then dead locks, then the question
//! whether the commit exists after all, then the partial work. Every step may itself be interrupted
//! and done again.

use wiggum_core::event::Event;
use wiggum_core::ids::TaskId;
use wiggum_core::mutant::{Mutant, planted};
use wiggum_core::state::{OpenIteration, Stage, Workspace};
use wiggum_core::task::FileStatus;
use wiggum_workspace::crash;
use wiggum_workspace::git::is_index;

use crate::backlog_file::BacklogError;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::land::ITERATION_TRAILER;
use crate::tools::CallOutcome;

impl Engine<'_> {
    /// Ends what an engine before us left running, and removes the locks it left behind.
    pub(crate) fn sweep(&mut self) -> Result<u32, EngineError> {
        if self.journal.state.seq == 0 {
            return Ok(0);
        }
        let ended = self.host.end_marked("WIGGUM_LOOP_ID", &self.journal.id.to_string());
        crash::point("ended marked");
        self.backlog.remove_temporary()?;
        if let Some(git) = &self.git {
            git.clear_dead_lock()?;
        }
        Ok(ended)
    }

    /// Settles an iteration that was under way when the engine before us ended.
    pub(crate) fn recover(&mut self, ended: u32) -> Result<(), EngineError> {
        self.put_copies_away()?;
        let Some(open) = self.journal.state.open.here().cloned() else {
            return self.keep_found_changes();
        };
        match open.stage {
            Stage::Agent if open.is_in_doubt() && !planted(Mutant::CallsInDoubt) => {
                let why = "the engine was gone before the answer came";
                self.work_ended(&open, CallOutcome::Uncertain { message: why.to_owned() });
            }
            Stage::Agent if open.own => self.interrupt_iteration("the engine was gone", ended)?,
            Stage::Agent => self.interrupt_agent("the engine was gone", ended)?,
            Stage::Judging if open.tree_taken && self.lost_taken_tree() => {
                self.give_up_taken_tree(&open, ended)?
            }
            // Accepted work that was not taken yet may not lie there.
            Stage::Judging if open.accepted && !open.tree_taken => {
                self.interrupt_iteration("the engine was gone", ended)?;
            }
            // The checks run again, all of them: what one leaves behind, the next may need.
            Stage::Judging if open.tree_taken => self.return_to_attempt()?,
            // The agent had ended by itself: what lies there is its work.
            Stage::Judging => {}
            Stage::Landing { verified } => self.recover_landing(&open, verified, ended)?,
        }
        crash::point("recovered");
        self.flush()?;
        // From here on programs of ours run again.
        self.forget_tip()
    }

    /// A power cut may take the saved index, or what is in it, though not what the journal says of it.
    fn lost_taken_tree(&self) -> bool {
        self.git.is_some() && !is_index(&self.taken_index())
    }

    /// Nobody can tell any more what was checked, so what lies in the tree is kept under a ref and the attempt is
    /// made again.
    fn give_up_taken_tree(&mut self, open: &OpenIteration, ended: u32) -> Result<(), EngineError> {
        self.take_back_completion(&open.task)?;
        self.interrupt_iteration("the tree that was taken is gone", ended)
    }

    /// The backlog says that a task is done before the commit that makes it true. Where there will be none, that must
    /// not be read as a person's word.
    fn take_back_completion(&mut self, task: &TaskId) -> Result<(), EngineError> {
        let known = self.journal.state.task(task).map(|entry| entry.spec.status);
        let restored = known.filter(|status| *status != FileStatus::Done).unwrap_or(FileStatus::Open);
        let mut was_done = false;
        let edited = self.backlog.edit(|backlog| {
            was_done =
                backlog.tasks().iter().any(|found| found.id == *task && found.status == FileStatus::Done);
            if was_done { backlog.set_status(task.as_str(), restored) } else { Ok(()) }
        });
        match edited {
            Ok(()) if was_done => {
                let found = FileStatus::Done;
                self.record(Event::StatusPutBack { task: task.clone(), found, restored });
                Ok(())
            }
            // What cannot be read says nothing; that it is broken is found out, and told, later.
            Ok(()) | Err(BacklogError::Edit(_) | BacklogError::Read { .. } | BacklogError::Problems(_)) => {
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The tree is as it was taken, without what came into it while nobody ran; on top of what somebody
    /// committed meanwhile.
    pub(crate) fn return_to_attempt(&mut self) -> Result<(), EngineError> {
        self.keep_what_came()?;
        let base = self.journal.state.open.here().and_then(|open| open.base.clone());
        for flag in self.note_found_commits()? {
            let message = format!("the commit {} {}", flag.what, flag.detail);
            self.record(Event::Noticed { task: None, message });
        }
        let Some(open) = self.journal.state.open.here().filter(|open| open.base != base) else {
            return self.return_to_taken_tree();
        };
        let task = open.task.clone();
        if self.move_taken_tree(base.as_deref())? {
            return Ok(());
        }
        let message = format!(
            "the work that waited for its checks does not fit on what was committed meanwhile; it is kept under refs/wiggum/{}/taken",
            self.short_id()
        );
        self.record(Event::Noticed { task: Some(task), message });
        self.interrupt_iteration("the branch moved on", 0)
    }

    /// Where the engine before us was killed, the attempt lies in the tree; where it left in order, only
    /// what people did since is there.
    fn keep_what_came(&mut self) -> Result<(), EngineError> {
        let Some(git) = &self.git else { return Ok(()) };
        let status = git.status()?;
        if !status.staged.is_empty() {
            return self.keep_changes_since_taken();
        }
        let left = self.changed_since_taken(&status);
        if left.is_empty() {
            return Ok(());
        }
        git.stage_all(&self.watched.excluded())?;
        self.keep_found(&left.join(", "))
    }

    /// Between iterations the tree may hold the work of a task. It is about to be overwritten with
    /// just that, so what somebody added meanwhile goes under a ref.
    fn keep_found_changes(&mut self) -> Result<(), EngineError> {
        let Some(git) = &self.git else { return Ok(()) };
        if self.journal.state.unkept.is_some() {
            return self.keep_changes_since_taken();
        }
        let Workspace::Holds(task) = &self.journal.state.workspace else { return Ok(()) };
        let Some(kept) = self.journal.state.task(task).and_then(|entry| entry.kept.clone()) else {
            return Ok(());
        };
        git.stage_all(&self.watched.excluded())?;
        let found = git.index_tree()?;
        // We may also have been killed just after the tree was reset.
        let head = git.head()?.commit.map(|commit| git.tree_of(&commit)).transpose()?;
        if found != git.tree_of(&kept)? && Some(found) != head {
            self.keep_found("files")?;
        }
        Ok(())
    }

    fn keep_changes_since_taken(&mut self) -> Result<(), EngineError> {
        let Some(git) = &self.git else { return Ok(()) };
        git.put_back_index(&self.taken_index())?;
        let left = self.changed_since_taken(&git.status()?);
        if left.is_empty() {
            return Ok(());
        }
        git.stage_all(&self.watched.excluded())?;
        self.keep_found(&left.join(", "))
    }

    pub(crate) fn keep_found(&mut self, what: &str) -> Result<(), EngineError> {
        let Some(git) = &self.git else { return Ok(()) };
        let reference = format!("refs/wiggum/{}/found/{}", self.short_id(), self.journal.state.seq);
        git.keep_work(&reference, "Found in the tree when the loop went on")?;
        let message = format!("found in the work tree, and kept under {reference}: {what}");
        self.record(Event::Noticed { task: None, message });
        Ok(())
    }

    /// Git was ended while it dealt with this attempt, in the middle of its commit for instance.
    pub(crate) fn recover_ended_git(&mut self, open: &OpenIteration) -> Result<(), EngineError> {
        match open.stage {
            Stage::Landing { verified } => self.recover_landing(open, verified, 0),
            Stage::Agent | Stage::Judging => Ok(()),
        }
    }

    fn recover_landing(
        &mut self,
        open: &OpenIteration,
        verified: bool,
        ended: u32,
    ) -> Result<(), EngineError> {
        let Some(git) = &self.git else { return Ok(()) };
        let key = self.iteration_key(open.iteration);
        match git.find_commit(ITERATION_TRAILER, &key)? {
            Some(commit) => {
                if let Some(landing) = self.lock_for_landing()? {
                    self.publish_index(landing, open.base.as_deref(), &commit)?;
                }
                self.record(Event::StatusWritten { task: open.task.clone(), status: FileStatus::Done });
                self.accept_commit(open, commit, verified)
            }
            None if open.tree_taken && self.lost_taken_tree() => self.give_up_taken_tree(open, ended),
            None => self.return_to_attempt(),
        }
    }
}
