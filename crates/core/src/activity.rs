//! What a loop does right now, in one word: the one answer that every surface shows.
//!
//! It is made of two things. The journal says where the run stands; whether its engine lives has to be
//! looked at. [`activity`] takes both. Whoever has only a stored status, which its engine wrote while it
//! lived, corrects it with [`Activity::seen_with`].

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::decide::{Waiting, decide};
use crate::event::EndReason;
use crate::state::Loop;
use crate::tasks::TaskState;

/// What was found when somebody looked for the engine of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineState {
    /// Its process holds the lease.
    Alive,
    /// It gave the lease back, or there never was one.
    Gone,
    /// It holds the lease, and its process is dead.
    Dead,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Activity {
    /// No run has begun.
    #[default]
    NotStarted,
    /// An agent works, or its work is checked or committed, or the next step is about to be taken.
    Running,
    /// For a moment to come: a backoff, a usage limit, a budget, the circuit breaker.
    Waiting,
    /// Nothing goes on until a person answers a question or mends the backlog.
    Blocked,
    Paused,
    /// The run is unfinished, and its engine has stopped.
    Interrupted,
    /// The run is unfinished, and its engine was killed.
    Died,
    /// The run ended because a person is needed.
    PersonNeeded,
    /// The run ended because a person was needed, who has answered since: the next run goes on with it.
    Answered,
    Completed,
    Failed,
    /// The run ended by a limit, or because somebody stopped it.
    Terminated,
    /// The loop was put back to a checkpoint, and no run has begun since.
    Restored,
}

impl Activity {
    pub fn name(self) -> &'static str {
        match self {
            Self::NotStarted => "not_started",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Blocked => "blocked",
            Self::Paused => "paused",
            Self::Interrupted => "interrupted",
            Self::Died => "died",
            Self::PersonNeeded => "person_needed",
            Self::Answered => "answered",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Terminated => "terminated",
            Self::Restored => "restored",
        }
    }

    /// For people to read.
    pub fn says(self) -> &'static str {
        match self {
            Self::NotStarted => "not started",
            Self::Blocked => "waits for a person",
            Self::Died => "interrupted: its engine died",
            Self::PersonNeeded => "a person is needed",
            Self::Restored => "back at a checkpoint",
            Self::Running
            | Self::Waiting
            | Self::Paused
            | Self::Interrupted
            | Self::Answered
            | Self::Completed
            | Self::Failed
            | Self::Terminated => self.name(),
        }
    }

    /// Is a run unfinished that nobody works on?
    pub fn is_interrupted(self) -> bool {
        match self {
            Self::Interrupted | Self::Died => true,
            Self::NotStarted
            | Self::Running
            | Self::Waiting
            | Self::Blocked
            | Self::Paused
            | Self::PersonNeeded
            | Self::Answered
            | Self::Completed
            | Self::Failed
            | Self::Terminated
            | Self::Restored => false,
        }
    }

    /// What the journal says, corrected by what was found of the engine.
    pub fn seen_with(self, engine: EngineState) -> Self {
        match self {
            Self::NotStarted if engine == EngineState::Dead => Self::Died,
            Self::Running | Self::Waiting | Self::Blocked | Self::Paused => match engine {
                EngineState::Alive => self,
                EngineState::Gone => Self::Interrupted,
                EngineState::Dead => Self::Died,
            },
            Self::NotStarted
            | Self::Interrupted
            | Self::Died
            | Self::PersonNeeded
            | Self::Answered
            | Self::Completed
            | Self::Failed
            | Self::Terminated
            | Self::Restored => self,
        }
    }
}

/// The word for the state of a task, corrected in the same way: without an engine nobody works on it.
pub fn task_word(state: &TaskState, engine: EngineState) -> &'static str {
    match (state, engine) {
        (TaskState::Running, EngineState::Gone | EngineState::Dead) => INTERRUPTED,
        (TaskState::Running, EngineState::Alive)
        | (
            TaskState::Open
            | TaskState::Parked(_)
            | TaskState::Done { .. }
            | TaskState::Failed { .. }
            | TaskState::Skipped,
            _,
        ) => state.name(),
    }
}

/// What is said of a task whose engine is gone while it was worked on.
pub const INTERRUPTED: &str = "interrupted";

/// What a loop does.
pub fn activity(state: &Loop, engine: EngineState, now: Timestamp) -> Activity {
    told(state, now).seen_with(engine)
}

/// What the journal alone says, as if an engine were at work on it.
fn told(state: &Loop, now: Timestamp) -> Activity {
    if state.run.restored.is_some() {
        return Activity::Restored;
    }
    if let Some((reason, _)) = &state.run.ended {
        return ended(*reason);
    }
    match decide(state, now).waiting {
        _ if state.run.number == 0 => Activity::NotStarted,
        Some(Waiting::Answer { .. } | Waiting::Backlog { .. }) => Activity::Blocked,
        Some(Waiting::Paused) => Activity::Paused,
        // The agent at work may finish, but nothing follows.
        None
        | Some(
            Waiting::Agent { .. } | Waiting::Check { .. } | Waiting::Clean { .. } | Waiting::Baseline { .. },
        ) if state.paused => Activity::Paused,
        None
        | Some(
            Waiting::Agent { .. } | Waiting::Check { .. } | Waiting::Clean { .. } | Waiting::Baseline { .. },
        ) => Activity::Running,
        Some(
            Waiting::Backoff { .. }
            | Waiting::Unavailable { .. }
            | Waiting::Breaker { .. }
            | Waiting::Throttled { .. }
            | Waiting::Rate { .. }
            | Waiting::Budget { .. },
        ) => Activity::Waiting,
    }
}

fn ended(reason: EndReason) -> Activity {
    match reason {
        EndReason::GoalAchieved => Activity::Completed,
        EndReason::PersonNeeded => Activity::PersonNeeded,
        EndReason::CircuitBreakerOpen
        | EndReason::HealthFailure
        | EndReason::ConsecutiveErrors
        | EndReason::NoProgress => Activity::Failed,
        EndReason::BudgetExhausted
        | EndReason::MaxIterations
        | EndReason::MaxDuration
        | EndReason::ExplicitStop => Activity::Terminated,
    }
}
