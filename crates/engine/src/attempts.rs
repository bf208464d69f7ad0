//! Who works on what and how often that failed, told in the backlog where its format has words for it.
//!
//! Nothing is read back from these words, and no iteration waits for the disk because of them: they travel with edits
//! that happen anyway, or are written without a sync.

use wiggum_backlog::{Backlog, EditError};
use wiggum_core::ids::TaskId;
use wiggum_core::state::Loop;

use crate::backlog_file::BacklogError;
use crate::engine::Engine;
use crate::error::EngineError;

/// The task of which the file may say that somebody works on it, after a crash.
pub(crate) fn last_worked_on(state: &Loop) -> Option<TaskId> {
    let ended = || state.recent.back().map(|ended| ended.task.clone());
    state.open.here().map(|open| open.task.clone()).or_else(ended)
}

/// How often attempts at a task failed, and when the last one ended.
pub(crate) fn tell_failures(state: &Loop, backlog: &mut Backlog, task: &TaskId) -> Result<(), EditError> {
    let Some(entry) = state.task(task) else { return Ok(()) };
    backlog.record_attempt(task.as_str(), entry.failed_attempts(), entry.last_attempt)
}

impl Engine<'_> {
    /// This task is worked on now, or none; the one before is not any more.
    pub(crate) fn tell_attempts(&mut self, started: Option<&TaskId>) -> Result<(), EngineError> {
        let before = self.backlog.in_progress.take();
        self.backlog.in_progress = started.cloned();
        if (before.is_none() && started.is_none())
            || !self.backlog.backlog().is_some_and(Backlog::tells_attempts)
        {
            return Ok(());
        }
        let state = &self.journal.state;
        let told = self.backlog.edit_loosely(|backlog| {
            let before = before.filter(|before| backlog.task(before.as_str()).is_some());
            if let Some(before) = before {
                backlog.mark_in_progress(before.as_str(), false)?;
                tell_failures(state, backlog, &before)?;
            }
            started.map_or(Ok(()), |started| backlog.mark_in_progress(started.as_str(), true))
        });
        match told {
            // What is wrong with the file is told when it is read.
            Ok(()) | Err(BacklogError::Read { .. } | BacklogError::Problems(_) | BacklogError::Edit(_)) => {
                Ok(())
            }
            Err(error @ (BacklogError::Write { .. } | BacklogError::Lock { .. })) => Err(error.into()),
        }
    }
}
