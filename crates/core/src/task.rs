//! A task as the backlog describes it: what is to be done, what it waits for, how it is judged.
//!
//! These shapes are part of the stored language (they travel inside `BacklogRead` events), so
//! changes must be additive. What happened to a task is not here but in [`crate::state`].

use serde::{Deserialize, Serialize};

use crate::ids::TaskId;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Task {
    pub id: TaskId,
    /// Short name; equal to the id or the first line of the description where the file has none.
    pub title: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub criteria: Vec<Criterion>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<TaskId>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub work: Work,
    #[serde(default = "default_role", skip_serializing_if = "is_default_role")]
    pub role: String,
    #[serde(default, skip_serializing_if = "is_default")]
    pub kind: Kind,
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub phase: u32,
    #[serde(default, skip_serializing_if = "is_default")]
    pub priority: i64,
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub complexity: u32,
    /// Failed attempts the file already knows of (from before this loop's journal began).
    #[serde(default, skip_serializing_if = "is_default")]
    pub failed_attempts: u32,
    /// Unix seconds of the last attempt the file knows of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_attempt_at: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_retries: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u64>,
    /// The agent that should work on it, by its name in the configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The model that agent should use for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The task's own verify command (`evaluation: {mode: "command", command: …}`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<TaskId>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// Notes of the file meant for whoever works on the task (`notes`, `system_prompt_override`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub status: FileStatus,
}

impl Task {
    /// A task with every field at its default but the id and the title.
    pub fn new(id: impl Into<TaskId>, title: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            title: title.into(),
            description: String::new(),
            criteria: Vec::new(),
            depends_on: Vec::new(),
            work: Work::default(),
            role: default_role(),
            kind: Kind::default(),
            phase: 1,
            priority: 0,
            complexity: 1,
            failed_attempts: 0,
            last_attempt_at: None,
            max_retries: None,
            timeout_seconds: None,
            agent: None,
            model: None,
            verify: None,
            parent: None,
            labels: Vec::new(),
            notes: None,
            status: FileStatus::Open,
        }
    }
}

/// One acceptance criterion: text for the agent, and a command if it can be checked by itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Criterion {
    pub text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<String>,
}

/// Who or what carries out a task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Work {
    /// A prompt for the loop's agent, built from the task itself.
    #[default]
    Agent,
    Command {
        command: String,
    },
    File {
        path: String,
        content: String,
        /// Replace what is there, if it is something else.
        #[serde(default, skip_serializing_if = "is_default")]
        overwrite: bool,
    },
    Notice {
        message: String,
    },
    McpCall {
        server: String,
        tool: String,
        #[serde(default)]
        params: serde_json::Value,
    },
    Gate {
        gate: String,
    },
    Flow {
        flow: String,
    },
}

impl Work {
    /// Does somebody else do it than the engine itself?
    pub fn is_agents(&self) -> bool {
        *self == Self::Agent
    }

    /// The word users see for this kind of work.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Command { .. } => "command",
            Self::File { .. } => "file",
            Self::Notice { .. } => "notice",
            Self::McpCall { .. } => "mcp call",
            Self::Gate { .. } => "gate",
            Self::Flow { .. } => "flow",
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    #[default]
    Milestone,
    Recurring,
}

/// What the file says of a task. `in_progress` in a file is read as open: who works on a task is
/// known to the journal alone, so a crash cannot leave one stuck.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FileStatus {
    #[default]
    Open,
    Done,
    Failed,
    Skipped,
}

impl FileStatus {
    pub fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
        }
    }
}

/// In which order ready tasks are taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Selection {
    /// The first in the file wins (PRD and Markdown).
    #[default]
    FileOrder,
    /// The highest score wins (tasks.json).
    Score,
}

fn default_role() -> String {
    "implementer".to_owned()
}

fn is_default_role(role: &str) -> bool {
    role == "implementer"
}

fn one() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_one(n: &u32) -> bool {
    *n == 1
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
