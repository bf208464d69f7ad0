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
    #[serde(skip_serializing_if = "Workspace::is_default")]
    pub workspace: Workspace,
    pub protect: Protect,
    pub people: People,
    pub selection: Selection,
    pub agents: Agents,
    pub claims: crate::signal::support::Rules,
    pub health: crate::health::Rules,
    /// Runs from before there was one went on without.
    #[serde(default = "crate::breaker::Rules::off")]
    pub breaker: crate::breaker::Rules,
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
    /// The same failing checks in a row on one task that raise one; 0 means never.
    #[serde(default)]
    pub same_evidence: u32,
    /// How long one iteration's agent may run.
    pub agent_timeout: Option<Millis>,
    /// How many tasks a backlog may hold before additions made at run time are refused.
    pub max_tasks: u32,
    /// How many times an agent may be started within an hour.
    pub calls_per_hour: Option<u32>,
    /// Does another attempt after one that failed count as an iteration? Not in a plan, where it uses up
    /// one of its step's retries instead.
    #[serde(skip_serializing_if = "is_true")]
    pub retries_count: bool,
    /// Iterations that were used before the loop's journal began, as a plan tells it.
    #[serde(skip_serializing_if = "is_zero")]
    pub used_before: u32,
    /// What a person raised a plan's limit to, over all runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub granted: Option<u32>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            iterations: Some(50),
            duration: None,
            consecutive_errors: 3,
            no_progress: 3,
            stuck_threshold: 3,
            same_evidence: 3,
            agent_timeout: None,
            max_tasks: 500,
            calls_per_hour: None,
            retries_count: true,
            used_before: 0,
            granted: None,
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_true(value: &bool) -> bool {
    *value
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(count: &u32) -> bool {
    *count == 0
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
    /// Do attempts use up retries that changed the tree and claimed nothing? They did once.
    #[serde(default = "yes")]
    pub unclaimed_counts: bool,
}

fn yes() -> bool {
    true
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            max_retries: 3,
            backoff: Millis::from_secs(1),
            backoff_max: Millis::from_secs(300),
            from: RetryFrom::Work,
            clean_after: None,
            unclaimed_counts: false,
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
    /// Wait after a usage limit that does not say when it ends; doubles each time, up to an hour.
    pub limit_wait: Millis,
    /// Go on with the agent's own session instead of a fresh one.
    pub continue_sessions: bool,
    /// How long an agent that tells what it does may say nothing before it is ended without further ado.
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
            limit_wait: Millis::from_secs(300),
            continue_sessions: false,
            silence: None,
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
    /// Those that this run of the loop, or an earlier one, found by itself in the project's files.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub found: Vec<String>,
    pub timeout: Option<Millis>,
    /// Complete a task whose evidence is all green even though nobody claimed it.
    pub complete_without_claim: bool,
    /// What happens when the commands fail before any agent has worked.
    #[serde(default = "Baseline::off")]
    pub baseline: Baseline,
    /// When the work is checked in a checkout that has nothing but what git has.
    #[serde(default = "Clean::never")]
    pub clean: Clean,
}

/// When the work is checked in a clean checkout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Clean {
    /// The last commit, when a run ends; an attempt that hides files from git, before it is committed.
    #[default]
    End,
    /// Each task before it is committed.
    Task,
    Never,
}

impl Clean {
    /// Runs of before there was one went on without.
    fn never() -> Self {
        Self::Never
    }
}

/// What a work tree needs beside what git has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Workspace {
    /// The command that installs what the checks need.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub setup: Option<String>,
    /// Files that git ignores and that are copied along, such as `.env`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub copy: Vec<String>,
}

impl Workspace {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// What happens when the loop's own checks fail on the untouched tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Baseline {
    /// A person is asked; without one the run stops.
    #[default]
    Ask,
    /// It is told, and the run goes on.
    GoOn,
    Stop,
    /// Repairing them becomes the first task.
    Repair,
    /// They are not run before the first task.
    Off,
}

impl Baseline {
    /// As it is written in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::GoOn => "go-on",
            Self::Stop => "stop",
            Self::Repair => "repair",
            Self::Off => "off",
        }
    }

    /// Runs of before there was one went on without.
    fn off() -> Self {
        Self::Off
    }
}

impl Checks {
    /// Remembers which commands earlier runs of the loop found. Where this run found its own (`can_find` is all that could
    /// be), those of before are run too while they can be: an agent may have written the file that was found now. Says
    /// what is different.
    pub fn remember(&mut self, earlier: &Self, can_find: Option<&[String]>) -> Option<String> {
        let Some(can_find) = can_find else {
            self.found.clone_from(&earlier.found);
            return None;
        };
        let (kept, gone): (Vec<String>, Vec<String>) =
            earlier.found.iter().cloned().partition(|command| can_find.contains(command));
        let new: Vec<String> =
            self.verify.iter().filter(|command| !kept.contains(command)).cloned().collect();
        let said = difference(&kept, &gone, &new);
        self.verify = kept.into_iter().chain(new).collect();
        self.found.clone_from(&self.verify);
        said
    }

    /// Tells of commands that somebody gave to an earlier run and not to this one.
    pub fn tell_dropped(&self, earlier: &Self) -> Option<String> {
        let is_dropped =
            |command: &&String| !self.verify.contains(command) && !earlier.found.contains(command);
        let dropped: Vec<String> =
            earlier.verify.iter().filter(is_dropped).map(|command| format!("`{command}`")).collect();
        let dropped = (!dropped.is_empty()).then(|| dropped.join(", "))?;
        Some(format!(
            "the last run was checked by {dropped}, this one is not (--verify, or `verify` under [checks] in wiggum.toml)"
        ))
    }
}

/// The change in the commands that were found, if there is one. A project that had none may get some.
fn difference(kept: &[String], gone: &[String], new: &[String]) -> Option<String> {
    let quoted = |commands: &[String]| {
        commands.iter().map(|command| format!("`{command}`")).collect::<Vec<_>>().join(", ")
    };
    let had_some = !kept.is_empty() || !gone.is_empty();
    let new = (had_some && !new.is_empty()).then(|| match kept.is_empty() {
        true => format!("{} is found now", quoted(new)),
        false => format!("{} is found now and runs beside {}", quoted(new), quoted(kept)),
    });
    let gone = (!gone.is_empty()).then(|| format!("{} cannot be run here any more", quoted(gone)));
    let said: Vec<String> = gone.into_iter().chain(new).collect();
    let said = (!said.is_empty()).then(|| said.join("; "))?;
    Some(format!("the checks of this loop changed: {said} (`verify` under [checks] in wiggum.toml decides)"))
}

impl Default for Checks {
    fn default() -> Self {
        Self {
            verify: Vec::new(),
            found: Vec::new(),
            timeout: Some(Millis::from_secs(1800)),
            complete_without_claim: false,
            baseline: Baseline::Ask,
            clean: Clean::End,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Protect {
    /// Globs, relative to the workspace, that an agent should not change.
    pub paths: Vec<String>,
    pub on_touch: OnTouch,
    /// What defines a check was changed, and with its former definition the check fails.
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
            on_weakened_tests: OnTouch::Refuse,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_checked_any_more_is_told() {
        let of = |verify: &[&str], found: &[&str]| {
            let owned = |commands: &[&str]| commands.iter().map(|&command| command.to_owned()).collect();
            Checks { verify: owned(verify), found: owned(found), ..Checks::default() }
        };
        let told = of(&["b"], &[]).tell_dropped(&of(&["a", "b"], &[])).unwrap();
        assert!(told.contains("checked by `a`, this one is not"), "{told}");
        assert_eq!(of(&["a", "c"], &[]).tell_dropped(&of(&["a"], &[])), None);
        assert_eq!(of(&[], &[]).tell_dropped(&of(&["a"], &["a"])), None, "found, not given");
    }

    /// What a run finds by itself, after what earlier ones did: the commands it runs, and what it says.
    #[track_caller]
    fn check(earlier: &[&str], can_find: &[&str], runs: &[&str], says: &str) {
        let owned =
            |commands: &[&str]| commands.iter().map(|&command| command.to_owned()).collect::<Vec<_>>();
        let earlier = Checks { found: owned(earlier), ..Checks::default() };
        let verify = owned(&can_find[..can_find.len().min(1)]);
        let mut checks = Checks { verify, ..Checks::default() };
        let said = checks.remember(&earlier, Some(&owned(can_find))).unwrap_or_default();
        assert_eq!((&checks.verify, &checks.found), (&owned(runs), &owned(runs)));
        assert!(if says.is_empty() { said.is_empty() } else { said.contains(says) }, "{said}");
    }

    #[test]
    fn a_new_manifest_does_not_replace_the_check_that_was_found_before() {
        check(&[], &["cargo test"], &["cargo test"], "");
        check(&["cargo test"], &["cargo test"], &["cargo test"], "");
        check(
            &["cargo test"],
            &["just test", "cargo test"],
            &["cargo test", "just test"],
            "`just test` is found now and runs beside `cargo test`",
        );
        // It is said once.
        check(&["cargo test", "just test"], &["just test", "cargo test"], &["cargo test", "just test"], "");
        // What cannot be run any more stops nobody.
        check(&["make test"], &["just test"], &["just test"], "`make test` cannot be run here any more");
        check(&["make test"], &[], &[], "`make test` cannot be run here any more");
    }

    #[test]
    fn what_was_found_outlasts_a_run_with_other_checks() {
        let earlier = Checks { found: vec!["cargo test".to_owned()], ..Checks::default() };
        let mut configured = Checks { verify: vec!["true".to_owned()], ..Checks::default() };
        assert_eq!(configured.remember(&earlier, None), None);
        assert_eq!((configured.verify, configured.found), (vec!["true".to_owned()], earlier.found));
    }
}
