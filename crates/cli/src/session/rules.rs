//! The rules a session's loop goes by: what was asked for when it began, over the configuration as it
//! was then.
//!
//! Values of `[limits]`, `[breaker]`, `[claims]` and `[checks]` count where somebody has set them. Where
//! nobody has, a session has defaults of its own, which differ from those of `wiggum run`: a person sits
//! in front of it and sees every stop.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use wiggum_core::policy::Millis;
use wiggum_core::signal::DEFAULT_PROMISES;
use wiggum_core::signal::support;

use super::hook::Problem;
use crate::config::{self, Config, ConfigSource, Flags, Sources};
use crate::sandbox::Wanted;

/// Iterations of a session where nothing else is said.
pub(crate) const MAX_ITERATIONS: u32 = 10;
/// Iterations in a row that change nothing in the repository before the loop gives up.
pub(crate) const NO_PROGRESS: u32 = 3;
/// The same error in a row before the loop gives up.
pub(crate) const SAME_ERROR: u32 = 5;

/// What is configured for this workspace.
pub(crate) fn configuration(workspace: &Path) -> Result<Config, Problem> {
    let variables = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let env: BTreeMap<String, String> = variables.collect();
    let flags = Flags::default();
    let sources = Sources { workspace, user_file: config::user_file(&env), env: &env, flags: &flags };
    config::resolve(&sources).map_err(|problems| Problem::new(problems.to_string()))
}

/// What somebody asked for; all that is left open comes from the configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LoopOptions {
    pub(crate) prompt: String,
    pub(crate) max_iterations: Option<u32>,
    pub(crate) completion_promise: Option<String>,
    pub(crate) verify: Vec<String>,
    pub(crate) plan: Option<String>,
    pub(crate) complete_without_claim: bool,
    pub(crate) no_progress: Option<u32>,
    pub(crate) same_error: Option<u32>,
}

/// The rules of one loop, kept with its state. 0 is no limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Rules {
    pub(crate) max_iterations: u32,
    #[serde(default)]
    pub(crate) max_duration: Option<Millis>,
    /// Errors in a row, whatever they are.
    #[serde(default)]
    pub(crate) error_limit: u32,
    pub(crate) no_progress_limit: u32,
    pub(crate) same_error_limit: u32,
    /// The one promise that counts, in place of those of `claims`.
    pub(crate) completion_promise: Option<String>,
    #[serde(default)]
    pub(crate) claims: support::Rules,
    /// Commands that must succeed.
    pub(crate) verify: Vec<String>,
    /// How long one of them may run.
    #[serde(default)]
    pub(crate) check_timeout: Option<Millis>,
    /// A file of the workspace in which every box must be ticked.
    pub(crate) plan: Option<String>,
    pub(crate) complete_without_claim: bool,
    /// What the commands are kept in.
    #[serde(default)]
    pub(crate) sandbox: Wanted,
}

impl Rules {
    /// For a loop that begins in this workspace now.
    pub(crate) fn at_start(options: &LoopOptions, workspace: &Path) -> Result<Self, Problem> {
        Ok(Self::of(options, &configuration(workspace)?))
    }

    pub(super) fn of(options: &LoopOptions, config: &Config) -> Self {
        let policy = &config.policy;
        let is_set = |key: &str| *config.source(key) != ConfigSource::Default;
        let set = |key: &str, value: u32| is_set(key).then_some(value);
        let (limits, breaker, checks) = (&policy.limits, &policy.breaker, &policy.checks);
        let iterations = set("limits.iterations", limits.iterations.unwrap_or(0));
        let no_progress = strictest([
            set("breaker.no_progress", breaker.no_progress),
            set("limits.no_progress", limits.no_progress),
        ]);
        let same_error = strictest([
            set("breaker.same_error", breaker.same_error),
            set("limits.stuck_threshold", limits.stuck_threshold),
        ]);
        Self {
            max_iterations: options.max_iterations.or(iterations).unwrap_or(MAX_ITERATIONS),
            max_duration: limits.duration,
            error_limit: set("limits.consecutive_errors", limits.consecutive_errors).unwrap_or(0),
            no_progress_limit: options.no_progress.or(no_progress).unwrap_or(NO_PROGRESS),
            same_error_limit: options.same_error.or(same_error).unwrap_or(SAME_ERROR),
            completion_promise: options.completion_promise.clone(),
            claims: policy.claims.clone(),
            verify: if options.verify.is_empty() { checks.verify.clone() } else { options.verify.clone() },
            check_timeout: checks.timeout,
            plan: options.plan.clone(),
            complete_without_claim: options.complete_without_claim || checks.complete_without_claim,
            sandbox: Wanted::of(config),
        }
    }

    /// The words of which one is to be promised; never none.
    pub(crate) fn promises(&self) -> Vec<&str> {
        let configured = self.claims.promises.iter().map(String::as_str);
        match &self.completion_promise {
            Some(promise) => vec![promise],
            None if self.claims.promises.is_empty() => DEFAULT_PROMISES.to_vec(),
            None => configured.collect(),
        }
    }
}

/// Two limits on the same thing: the one that is reached first. 0 is never.
fn strictest(set: [Option<u32>; 2]) -> Option<u32> {
    let set = || set.into_iter().flatten();
    set().filter(|limit| *limit > 0).min().or_else(|| set().next())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(options: &LoopOptions, env: &[(&str, &str)], toml: &str) -> Rules {
        let base = tempfile::tempdir().unwrap();
        std::fs::write(base.path().join(config::WORKSPACE_FILE), toml).unwrap();
        let env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let flags = Flags::default();
        let sources = Sources { workspace: base.path(), user_file: None, env: &env, flags: &flags };
        Rules::of(options, &config::resolve(&sources).unwrap_or_else(|problems| panic!("{problems}")))
    }

    fn configured(toml: &str) -> Rules {
        rules(&LoopOptions::default(), &[], toml)
    }

    #[test]
    fn without_configuration_a_session_has_its_own_defaults() {
        let rules = configured("");
        assert_eq!((rules.max_iterations, rules.no_progress_limit, rules.same_error_limit), (10, 3, 5));
        assert_eq!((rules.error_limit, rules.max_duration), (0, None));
        assert_eq!(rules.promises(), DEFAULT_PROMISES);
    }

    #[test]
    fn what_is_set_counts_and_what_was_asked_for_wins() {
        let toml = "[limits]\niterations = 40\nduration = \"2h\"\nconsecutive_errors = 4\n\
                    [claims]\npromises = [\"SHIPPED\"]\n[checks]\ncomplete_without_claim = true\ntimeout = \"1m\"\n";
        let rules = configured(toml);
        assert_eq!((rules.max_iterations, rules.error_limit), (40, 4));
        assert_eq!(rules.max_duration, Some(Millis::from_secs(7200)));
        assert_eq!(rules.check_timeout, Some(Millis::from_secs(60)));
        assert_eq!(rules.promises(), ["SHIPPED"]);
        assert!(rules.complete_without_claim);

        let asked = LoopOptions {
            max_iterations: Some(3),
            completion_promise: Some("OK".to_owned()),
            ..LoopOptions::default()
        };
        let rules = self::rules(&asked, &[("RALPH_MAX_ITERATIONS", "7")], toml);
        assert_eq!((rules.max_iterations, rules.promises()), (3, vec!["OK"]));
    }

    #[test]
    fn variables_of_the_seeds_count_in_sessions_too() {
        let iterations = |env: &[(&str, &str)]| {
            rules(&LoopOptions::default(), env, "[limits]\niterations = 40\n").max_iterations
        };
        assert_eq!(iterations(&[("RALPH_MAX_ITERATIONS", "7")]), 7);
        assert_eq!(iterations(&[("MAX_ITERATIONS", "8")]), 8);
        assert_eq!(iterations(&[("RALPH_MAX_ITERATIONS", "7"), ("WIGGUM_MAX_ITERATIONS", "9")]), 9);
        assert_eq!(iterations(&[("RALPH_MAX_ITERATIONS", "")]), 40);
        let stuck = rules(&LoopOptions::default(), &[("STUCK_THRESHOLD", "2")], "");
        assert_eq!(stuck.same_error_limit, 2);
    }

    #[test]
    fn of_two_limits_on_the_same_thing_the_first_that_is_reached_counts() {
        let check = |toml: &str, no_progress: u32, same_error: u32| {
            let rules = configured(toml);
            assert_eq!(
                (rules.no_progress_limit, rules.same_error_limit),
                (no_progress, same_error),
                "{toml}"
            );
        };
        check("[breaker]\nno_progress = 6\nsame_error = 8\n", 6, 8);
        check("[limits]\nno_progress = 7\nstuck_threshold = 2\n", 7, 2);
        check("[breaker]\nno_progress = 6\n[limits]\nno_progress = 4\n", 4, 5);
        check("[breaker]\nno_progress = 0\nsame_error = 0\n", 0, 0);
        check("[breaker]\nno_progress = 0\n[limits]\nno_progress = 4\n", 4, 5);
    }

    #[test]
    fn there_is_always_something_to_promise() {
        assert_eq!(configured("[claims]\npromises = []\n").promises(), DEFAULT_PROMISES);
    }
}
