//! The front matter of a plan follows what happens to it: how far it is, and where it stands.
//!
//! As the statuses of its steps, these values are a projection: whatever is lost in a crash is written
//! again with the next step or the next start.

use wiggum_backlog::{Backlog, PlanValue};
use wiggum_core::event::EndReason;
use wiggum_core::state::Loop;

use crate::backlog_file::BacklogError;
use crate::engine::Engine;
use crate::error::EngineError;

/// Where a plan stands, in the words of its format.
const EXECUTING: &str = "executing";
const COMPLETED: &str = "completed";
const BLOCKED: &str = "blocked";
const ESCALATED: &str = "escalated";

/// How far a plan is.
pub(crate) struct Progress {
    iterations: u32,
    status: &'static str,
}

impl Progress {
    /// With the step that is about to be completed, which may be the last.
    pub(crate) fn with_step(state: &Loop) -> Self {
        let counts = state.tasks.counts();
        let last = counts.done + counts.skipped + 1 == counts.total;
        Self { iterations: state.used, status: if last { COMPLETED } else { EXECUTING } }
    }

    /// Does nothing to a backlog that is no plan.
    pub(crate) fn note(&self, backlog: &mut Backlog) {
        backlog.set_plan(PlanValue::IterationsUsed(self.iterations));
        backlog.set_plan(PlanValue::Status(self.status));
    }
}

impl Engine<'_> {
    /// The run begins, or has ended.
    pub(crate) fn note_in_plan(&mut self) -> Result<(), EngineError> {
        if self.backlog.backlog().is_none_or(|backlog| backlog.plan().is_none()) {
            return Ok(());
        }
        let state = &self.journal.state;
        let status = match &state.run.ended {
            None => EXECUTING,
            Some((EndReason::GoalAchieved, _)) => COMPLETED,
            Some((EndReason::MaxIterations | EndReason::MaxDuration | EndReason::BudgetExhausted, _)) => {
                ESCALATED
            }
            Some((
                EndReason::PersonNeeded
                | EndReason::CircuitBreakerOpen
                | EndReason::HealthFailure
                | EndReason::ConsecutiveErrors
                | EndReason::NoProgress
                | EndReason::ExplicitStop,
                _,
            )) => BLOCKED,
        };
        let progress = Progress { iterations: state.used, status };
        let noted = self.backlog.edit(|backlog| {
            progress.note(backlog);
            Ok(())
        });
        match noted {
            // What is wrong with it is told when it is read.
            Ok(()) | Err(BacklogError::Read { .. } | BacklogError::Problems(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
