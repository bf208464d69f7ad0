//! After a crash: end what still runs, see what really happened, and leave the rest to `decide`.
//!
//! The order matters and is the design's: processes first, then dead locks, then the question
//! whether the commit exists after all, then the partial work. Every step may itself be interrupted
//! and done again.

use wiggum_core::event::Event;
use wiggum_core::state::{OpenIteration, Stage};
use wiggum_core::task::FileStatus;
use wiggum_workspace::crash;
use wiggum_workspace::process;

use crate::engine::Engine;
use crate::error::EngineError;
use crate::tree::ITERATION_TRAILER;

impl Engine<'_> {
    /// Ends what an engine before us left running, and removes the locks it left behind.
    pub(crate) fn sweep(&mut self) -> Result<u32, EngineError> {
        if self.journal.state.seq == 0 {
            return Ok(0);
        }
        let ended = process::end_marked("WIGGUM_LOOP_ID", &self.journal.id.to_string());
        crash::point("ended marked");
        if let Some(git) = &self.git {
            git.clear_dead_lock()?;
        }
        Ok(ended)
    }

    /// Settles an iteration that was under way when the engine before us ended.
    pub(crate) fn recover(&mut self, ended: u32) -> Result<(), EngineError> {
        let Some(open) = self.journal.state.open.clone() else { return Ok(()) };
        match open.stage {
            Stage::Agent => self.interrupt_agent("the engine was gone", ended)?,
            Stage::Judging if open.tree_taken => self.return_to_taken_tree()?,
            // The agent had ended by itself: what lies there is its work.
            Stage::Judging => {}
            Stage::Landing { verified } => self.recover_landing(&open, verified)?,
        }
        crash::point("recovered");
        self.flush()
    }

    fn recover_landing(&mut self, open: &OpenIteration, verified: bool) -> Result<(), EngineError> {
        let Some(git) = &self.git else { return Ok(()) };
        let key = self.iteration_key(open.iteration);
        match git.find_commit(ITERATION_TRAILER, &key)? {
            Some(commit) => {
                self.record(Event::StatusWritten { task: open.task.clone(), status: FileStatus::Done });
                self.accept_commit(open, commit, verified)
            }
            None => self.return_to_taken_tree(),
        }
    }
}
