//! The rules a run goes by. Resolved once from configuration, then recorded in `RunStarted`:
//! the fold reads only that recorded copy.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::budget::Budget;
use crate::price::Prices;
use crate::task::{Selection, Task};

/// A span of time in milliseconds, as it is stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Millis(pub u64);

impl Millis {
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs * 1000)
    }

    pub fn as_duration(self) -> std::time::Duration {
        std::time::Duration::from_millis(self.0)
    }
}

impl From<std::time::Duration> for Millis {
    fn from(duration: std::time::Duration) -> Self {
        Self(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Policy {
    pub limits: Limits,
    pub retry: Retry,
    pub checks: Checks,
    pub protect: Protect,
    pub people: People,
    pub selection: Selection,
    pub agents: Agents,
    pub budget: Budget,
    /// What models cost whose agents do not say it, by the model's name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub prices: BTreeMap<String, Prices>,
    pub handoff: crate::handoff::Policy,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Limits {
    /// Iterations in one run; `None` means no limit.
    pub iterations: Option<u32>,
    pub duration: Option<Millis>,
    /// Errors in a row, over all tasks, that end the run.
    pub consecutive_errors: u32,
    /// Iterations in a row with neither a completion nor a change of the tree.
    pub no_progress: u32,
    /// The same error in a row on one task that raises a question.
    pub stuck_threshold: u32,
    /// How long one iteration's agent may run.
    pub agent_timeout: Option<Millis>,
    /// How many tasks a backlog may hold before additions made at run time are refused.
    pub max_tasks: u32,
    /// How many times an agent may be started within an hour.
    pub calls_per_hour: Option<u32>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            iterations: Some(50),
            duration: None,
            consecutive_errors: 3,
            no_progress: 3,
            stuck_threshold: 3,
            agent_timeout: None,
            max_tasks: 500,
            calls_per_hour: None,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Retry {
    /// Attempts after the first before a task is failed; a task may say its own number.
    pub max_retries: u32,
    /// Wait after an error (crash, timeout) before the same task is tried again; doubles each time.
    /// A refuted claim is retried at once: its feedback is what the next attempt needs.
    pub backoff: Millis,
    pub backoff_max: Millis,
    pub from: RetryFrom,
    /// With `from = work`: start clean again after this many attempts.
    pub clean_after: Option<u32>,
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            max_retries: 3,
            backoff: Millis::from_secs(1),
            backoff_max: Millis::from_secs(300),
            from: RetryFrom::Work,
            clean_after: None,
        }
    }
}

/// Who works, and what happens when they cannot.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Agents {
    /// Names of agents in the order in which they are asked.
    pub order: Vec<String>,
    /// Who is asked first for tasks of a role.
    pub roles: BTreeMap<String, String>,
    /// How long an agent may work on one attempt, where it has a limit of its own.
    pub timeouts: BTreeMap<String, Millis>,
    /// How long an agent that cannot work is waited for.
    pub max_wait: Millis,
    /// Wait after a fault of the provider; doubles each time.
    pub backoff: Millis,
    pub backoff_max: Millis,
    /// Go on with the agent's own session instead of a fresh one.
    pub continue_sessions: bool,
    /// How long an agent that tells what it does may say nothing.
    pub silence: Option<Millis>,
}

impl Default for Agents {
    fn default() -> Self {
        Self {
            order: Vec::new(),
            roles: BTreeMap::new(),
            timeouts: BTreeMap::new(),
            max_wait: Millis::from_secs(12 * 3600),
            backoff: Millis::from_secs(5),
            backoff_max: Millis::from_secs(600),
            continue_sessions: false,
            silence: Some(Millis::from_secs(1800)),
        }
    }
}

impl Agents {
    /// Who may work on a task, the first choice first.
    pub fn for_task<'a>(&'a self, task: &'a Task) -> Vec<&'a str> {
        let first = task.agent.as_ref().or_else(|| self.roles.get(&task.role));
        let mut order: Vec<&str> = first.map(String::as_str).into_iter().collect();
        order.extend(
            self.order.iter().map(String::as_str).filter(|name| first.is_none_or(|first| first != name)),
        );
        if order.is_empty() { vec![""] } else { order }
    }
}

/// What the next attempt at the same task starts from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RetryFrom {
    #[default]
    Work,
    Clean,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Checks {
    /// Commands that must exit 0 for every task.
    pub verify: Vec<String>,
    pub timeout: Option<Millis>,
    /// Complete a task whose evidence is all green even though nobody claimed it.
    pub complete_without_claim: bool,
}

impl Default for Checks {
    fn default() -> Self {
        Self { verify: Vec::new(), timeout: Some(Millis::from_secs(1800)), complete_without_claim: false }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Protect {
    /// Globs, relative to the workspace, that an agent should not change.
    pub paths: Vec<String>,
    pub on_touch: OnTouch,
    /// A file that a check's own command names (`sh verify.sh`) and that existed before: whoever
    /// edits the judge has no verdict, so this is stricter by default.
    pub on_check_touch: OnTouch,
    pub on_weakened_tests: OnTouch,
}

impl Default for Protect {
    fn default() -> Self {
        let paths = [
            ".github/**",
            ".gitlab-ci.yml",
            ".circleci/**",
            ".ci/**",
            "tests/**",
            "test/**",
            "**/*_test.go",
            "**/test_*.py",
            "**/*.test.*",
            "**/*.spec.*",
        ];
        Self {
            paths: paths.map(str::to_owned).to_vec(),
            on_touch: OnTouch::Warn,
            on_check_touch: OnTouch::Refuse,
            on_weakened_tests: OnTouch::Warn,
        }
    }
}

/// What happens when an agent changed something it should not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum OnTouch {
    /// Accept, and show a warning with the evidence.
    #[default]
    Warn,
    /// The attempt fails, with the reason as feedback.
    Refuse,
    /// A person decides.
    Ask,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct People {
    /// Is somebody there to ask? Headless runs park the task instead.
    pub present: bool,
    /// How long a question holds up the loop while other tasks could run.
    pub wait: Millis,
}

impl Default for People {
    fn default() -> Self {
        Self { present: false, wait: Millis::from_secs(300) }
    }
}
