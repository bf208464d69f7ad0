//! Going back to a checkpoint: which tasks are put back to what, and how the fold takes that.
//!
//! The journal only grows. What came after the checkpoint stays in it, attempt and iteration numbers
//! go on from where they are, and what agents learnt is not forgotten.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::ids::TaskId;
use crate::state::{Loop, Workspace};
use crate::tasks::{TaskEntry, TaskState};

/// A task as it was then.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TaskThen {
    pub task: TaskId,
    pub state: Then,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failures: u32,
    /// Commit with its unfinished work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<String>,
    /// Its newest checkpoint at that time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(n: &u32) -> bool {
    *n == 0
}

/// The states a task can be put back to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Then {
    Open,
    Done {
        verified: bool,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        by_hand: bool,
    },
    Failed {
        reason: String,
    },
    Skipped,
}

impl From<Then> for TaskState {
    fn from(then: Then) -> Self {
        match then {
            Then::Open => Self::Open,
            Then::Done { verified, by_hand } => Self::Done { verified, by_hand },
            Then::Failed { reason } => Self::Failed { reason },
            Then::Skipped => Self::Skipped,
        }
    }
}

/// A restore that was begun and whose end is not recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restoring {
    pub checkpoint: Uuid,
    pub commit: Option<String>,
    pub branch: Option<String>,
    /// Where the tip of before, and what lay in the tree, is kept.
    pub reference: String,
    pub tasks: Vec<TaskThen>,
}

/// What has to be put back so that the tasks are as they were `then`. Only what differs.
pub fn plan(now: &Loop, then: &Loop) -> Vec<TaskThen> {
    let back = |entry: &TaskEntry| {
        let before = then.task(&entry.spec.id);
        let (state, failures, kept, checkpoint) = match before {
            Some(before) => (
                then_state(entry, &before.state)?,
                before.failures,
                before.kept.clone(),
                before.checkpoint.clone(),
            ),
            // It came later: whatever became of it is not there any more.
            None => (new_since(&entry.state)?, 0, None, None),
        };
        let same =
            TaskState::from(state.clone()) == entry.state && failures == entry.failures && kept == entry.kept;
        (!same).then(|| TaskThen { task: entry.spec.id.clone(), state, failures, kept, checkpoint })
    };
    now.tasks.iter().filter_map(back).collect()
}

/// Nothing where the task waits for the same answer now as then.
fn then_state(entry: &TaskEntry, before: &TaskState) -> Option<Then> {
    Some(match before {
        TaskState::Parked(_) if entry.state == *before => return None,
        // Whatever was asked then has been answered since, and the answer still counts.
        TaskState::Parked(_) | TaskState::Open | TaskState::Running => Then::Open,
        TaskState::Done { verified, by_hand } => Then::Done { verified: *verified, by_hand: *by_hand },
        TaskState::Failed { reason } => Then::Failed { reason: reason.clone() },
        TaskState::Skipped => Then::Skipped,
    })
}

fn new_since(state: &TaskState) -> Option<Then> {
    match state {
        TaskState::Done { .. } | TaskState::Failed { .. } => Some(Then::Open),
        TaskState::Open | TaskState::Running | TaskState::Parked(_) | TaskState::Skipped => None,
    }
}

impl Loop {
    /// The restore that was begun is complete: the tasks are as they were.
    pub(crate) fn finish_restore(&mut self, at: Timestamp) {
        let Some(restoring) = self.restoring.take() else { return };
        if !self.run.active {
            self.run.restored = Some(restoring.checkpoint);
        }
        for then in restoring.tasks {
            self.put_back(then, at);
        }
        self.checkpoints.restored(restoring.commit.as_ref(), restoring.branch.as_ref());
        self.handoffs.due = None;
        self.handoffs.pending = None;
        self.workspace = Workspace::Clean;
        self.unkept = None;
        self.run.consecutive_errors = 0;
        self.run.without_progress = 0;
    }

    fn put_back(&mut self, then: TaskThen, at: Timestamp) {
        let Some(slot) = self.tasks.slot(&then.task) else { return };
        self.close_questions_of(&then.task);
        self.run.asked_about.remove(&then.task);
        self.tasks.undelay(slot);
        let entry = &mut self.tasks.entries[slot];
        entry.error_streak = None;
        entry.failures = then.failures;
        entry.permanent = false;
        entry.kept = then.kept;
        entry.checkpoint = then.checkpoint;
        entry.last_digest = None;
        self.set_state(&then.task, then.state.into(), at);
    }
}
