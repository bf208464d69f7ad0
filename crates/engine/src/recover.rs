//! After a crash: end what still runs, see what really happened, and leave the rest to `decide`.
//!
//! The order matters and is the design's: processes first, then dead locks, then the question
//! whether the commit exists after all, then the partial work. Every step may itself be interrupted
//! and done again.

use wiggum_core::event::Event;
use wiggum_core::state::{OpenIteration, Stage};
use wiggum_core::task::FileStatus;
use wiggum_workspace::process;

use crate::crash;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::tree::ITERATION_TRAILER;

impl Engine<'_> {
    pub(crate) fn recover(&mut self) -> Result<(), EngineError> {
        if self.journal.state.seq == 0 {
            return Ok(());
        }
        let ended = process::end_marked("WIGGUM_LOOP_ID", &self.journal.id.to_string());
        crash::point("ended marked");
        if let Some(git) = &self.git {
            git.clear_dead_lock()?;
        }
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
