//! Checks in a clean checkout: what git has of the work, and nothing that git ignores.
//!
//! A check in the work tree may lean on files that no clone will have. So the tip of a run is looked at
//! once more in a checkout of its own when the run ends; or each task before it is committed, if the
//! policy says so or if the attempt hides files from git.
//!
//! Where checks cannot run there, because what they need is installed beside the project, or where they failed in the
//! same way in a clean checkout of what was there before, nothing is said against the work.

use crate::baseline;
use crate::event::{BaselineOutcome, EndReason, Evidence, FlagKind};
use crate::ids::TaskId;
use crate::policy::{Clean as Rule, Policy};
use crate::signal::error::decisive_lines;
use crate::state::{Loop, OpenIteration};
use crate::verdict::{Check, checks_for};

/// What the first step is called, where there is one.
const SETUP: &str = "setup";

/// What is known of the newest commit in a clean checkout.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Clean {
    /// Tasks that were committed since a clean checkout last passed.
    pub tasks: Vec<TaskId>,
    /// The last of these commits, and the one before the first of them.
    pub tip: Option<String>,
    base: Option<String>,
    /// All checks passed in the work tree before the first of these tasks.
    passed_before: bool,
    /// What came of the steps for each.
    tip_results: Vec<Evidence>,
    base_results: Vec<Evidence>,
}

/// What a clean checkout came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Green,
    Red { failed: String },
    NotTried { why: String },
}

impl Clean {
    /// `passed_before`: the checks passed in the work tree before this task.
    pub(crate) fn committed(
        &mut self,
        task: &TaskId,
        base: Option<&String>,
        commit: Option<&String>,
        passed_before: bool,
    ) {
        let Some(commit) = commit else { return };
        if self.tasks.is_empty() {
            self.base = base.cloned();
            self.passed_before = passed_before;
        }
        self.tasks.push(task.clone());
        self.look_anew(commit);
    }

    /// The run starts from this commit: somebody may have mended what was red, here or beside the project.
    pub(crate) fn start_run(&mut self, tree: &str) {
        if !self.tasks.is_empty() {
            self.look_anew(tree);
        }
    }

    fn look_anew(&mut self, commit: &str) {
        self.tip = Some(commit.to_owned());
        self.tip_results.clear();
        self.base_results.clear();
    }

    pub(crate) fn note(&mut self, policy: &Policy, commit: &str, evidence: &Evidence) {
        match self.tip.as_deref() == Some(commit) {
            true => self.tip_results.push(evidence.clone()),
            false => self.base_results.push(evidence.clone()),
        }
        let all = self.tip_results.len() == steps(policy, baseline::checks(policy)).len();
        if all && self.outcome() == Some(Outcome::Green) {
            self.tasks.clear();
        }
    }

    /// The commit and the step that come next.
    fn next(&self, policy: &Policy) -> Option<(&str, Check)> {
        if self.tip_results.iter().all(Evidence::passed) {
            let steps = steps(policy, baseline::checks(policy));
            return Some((self.tip.as_deref()?, steps.into_iter().nth(self.tip_results.len())?));
        }
        // It may have failed here before as well, though it passed in the work tree.
        let failed = self.tip_results.iter().find(|evidence| !evidence.passed())?;
        if !self.passed_before {
            doubt(failed)?;
        }
        let again = Check { name: failed.name.clone(), command: failed.command.clone() };
        let steps = if again.name == SETUP { vec![again] } else { steps(policy, vec![again]) };
        let passed = self.base_results.iter().all(Evidence::passed);
        let next = steps.into_iter().nth(self.base_results.len()).filter(|_| passed)?;
        Some((self.base.as_deref()?, next))
    }

    /// What came of it so far; nothing if nobody has looked.
    pub fn outcome(&self) -> Option<Outcome> {
        let Some(failed) = self.tip_results.iter().find(|evidence| !evidence.passed()) else {
            return (!self.tip_results.is_empty()).then_some(Outcome::Green);
        };
        let could_run_before =
            !self.base_results.is_empty() && self.base_results.iter().all(Evidence::passed);
        let before = self.base_results.iter().find(|evidence| !evidence.passed());
        let as_before = before.filter(|before| self.passed_before && described(before) == described(failed));
        Some(match (doubt(failed), as_before) {
            _ if could_run_before => Outcome::Red { failed: described(failed) },
            (Some(why), _) => Outcome::NotTried { why },
            (None, Some(before)) => Outcome::NotTried {
                why: format!(
                    "it failed there in the same way before this work ({}); `setup` and `copy` under [workspace] give it what it needs",
                    described(before)
                ),
            },
            (None, None) => Outcome::Red { failed: described(failed) },
        })
    }
}

/// What has to be run in a clean checkout, one after the other.
fn steps(policy: &Policy, checks: Vec<Check>) -> Vec<Check> {
    let setup = policy.workspace.setup.iter();
    let setup = setup.map(|command| Check { name: SETUP.to_owned(), command: command.clone() });
    setup.chain(checks).collect()
}

/// The next step for the tip, and which commit it is for, before a run may end for this reason.
pub(crate) fn next_for_tip(state: &Loop, reason: EndReason) -> Option<(String, Check)> {
    let in_a_hurry = match reason {
        EndReason::ExplicitStop | EndReason::MaxDuration => true,
        EndReason::GoalAchieved
        | EndReason::CircuitBreakerOpen
        | EndReason::HealthFailure
        | EndReason::ConsecutiveErrors
        | EndReason::BudgetExhausted
        | EndReason::MaxIterations
        | EndReason::NoProgress
        | EndReason::PersonNeeded => false,
    };
    let wanted = state.policy.checks.clean == Rule::End && state.git && !in_a_hurry;
    let has_checks = || !baseline::checks(&state.policy).is_empty();
    if !wanted || state.clean.tasks.is_empty() || !has_checks() {
        return None;
    }
    let (commit, step) = state.clean.next(&state.policy)?;
    Some((commit.to_owned(), step))
}

/// What a person should know of the last look at the tip, unless it passed.
pub fn doubts(state: &Loop) -> Option<String> {
    match state.clean.outcome()? {
        Outcome::Green => None,
        Outcome::Red { .. } => complaint(state),
        Outcome::NotTried { why } => Some(format!("the checks were not tried in a clean checkout: {why}")),
    }
}

/// Why a run whose tip fails in a clean checkout needs a person.
pub(crate) fn complaint(state: &Loop) -> Option<String> {
    let Some(Outcome::Red { failed }) = state.clean.outcome() else { return None };
    let tip: String = state.clean.tip.as_deref().unwrap_or_default().chars().take(10).collect();
    let tasks: Vec<&str> = state.clean.tasks.iter().map(TaskId::as_str).collect();
    Some(format!(
        "the checks fail in a clean checkout of {tip}, without files that git ignores: {failed}; done since they last passed there: {}",
        tasks.join(", ")
    ))
}

/// The next step for an attempt whose tree has passed in the work tree.
pub(crate) fn next_for_attempt(state: &Loop, open: &OpenIteration) -> Option<Check> {
    let all = open.evidence.iter().chain(&open.former_evidence).chain(&open.clean_evidence);
    let settled = open.evidence.is_empty() || !all.into_iter().all(Evidence::passed);
    if settled || !is_wanted(state, open) {
        return None;
    }
    let task = state.spec_of(open)?;
    steps(&state.policy, checks_for(&state.policy, task)).into_iter().nth(open.clean_evidence.len())
}

/// Each attempt, if the policy says so; otherwise those that hide files from git.
fn is_wanted(state: &Loop, open: &OpenIteration) -> bool {
    let hides = open.flags.iter().any(|flag| flag.kind == FlagKind::IgnoreRules);
    match state.policy.checks.clean {
        Rule::Task => state.git,
        Rule::End => state.git && hides,
        Rule::Never => false,
    }
}

/// Why an attempt is refused that passes only with what no clone has.
pub(crate) fn refusal(open: &OpenIteration) -> Option<String> {
    let failed = open.clean_evidence.iter().find(|evidence| !evidence.passed())?;
    doubt(failed).is_none().then(|| {
        format!(
            "In a clean checkout of this work `{}` fails ({}): it passes here only with files that git ignores or does not have. \
             Let git have what it needs, or do without.\n{}",
            failed.command, failed.exit, failed.output.excerpt
        )
    })
}

/// Why a failure may say nothing of the work, if it may.
fn doubt(failed: &Evidence) -> Option<String> {
    let output = &failed.output.excerpt;
    if failed.name == SETUP {
        return Some(described(failed));
    }
    let line = match baseline::outcome(failed.exit, output) {
        BaselineOutcome::CannotRun { why } => why,
        BaselineOutcome::Green
        | BaselineOutcome::Red
        | BaselineOutcome::LeftOut { .. }
        | BaselineOutcome::Interrupted => missing_package(output)?,
    };
    Some(format!(
        "what the checks need is not in the repository ({line}); `setup` under [workspace] can install it"
    ))
}

fn described(failed: &Evidence) -> String {
    let line = decisive_lines(&failed.output.excerpt).into_iter().next();
    format!("`{}`: {}", failed.command, line.unwrap_or_else(|| failed.exit.to_string()))
}

/// What a program says that misses something which is installed beside a project, not kept in it.
fn missing_package(output: &str) -> Option<String> {
    let is_missing = |line: &&str| {
        let named = ["ModuleNotFoundError: No module named", "ERR_MODULE_NOT_FOUND", "Cannot find package"];
        // A path is a file of the project itself.
        let module = line.split_once("Cannot find module '").map(|(_, name)| !name.starts_with(['.', '/']));
        module.unwrap_or(false) || named.iter().any(|words| line.contains(words))
    };
    output.lines().find(is_missing).map(|line| line.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{BlobRef, Exit};
    use crate::policy::Millis;

    fn evidence(name: &str, command: &str, code: i32, output: &str) -> Evidence {
        Evidence {
            name: name.to_owned(),
            command: command.to_owned(),
            exit: Exit::Code { code },
            output: BlobRef { excerpt: output.to_owned(), ..BlobRef::default() },
            duration: Millis(1),
            former: false,
            clean: true,
            tests: None,
            withheld: Vec::new(),
        }
    }

    fn policy() -> Policy {
        let mut policy = Policy::default();
        policy.checks.verify = vec!["make test".to_owned()];
        policy.workspace.setup = Some("npm ci".to_owned());
        policy
    }

    /// What comes next, as `COMMIT COMMAND`, after each of these.
    fn story(results: &[(&str, Evidence)]) -> (Vec<String>, Option<Outcome>, usize) {
        story_after(false, results)
    }

    /// The same, where the checks passed in the work tree before the first task.
    fn story_after(passed: bool, results: &[(&str, Evidence)]) -> (Vec<String>, Option<Outcome>, usize) {
        let policy = policy();
        let mut clean = Clean::default();
        clean.committed(&TaskId::from("A"), Some(&"base".to_owned()), Some(&"one".to_owned()), passed);
        clean.committed(&TaskId::from("B"), Some(&"one".to_owned()), Some(&"tip".to_owned()), true);
        let next = |clean: &Clean| {
            let next = clean.next(&policy);
            next.map_or_else(|| "nothing".to_owned(), |(commit, step)| format!("{commit} {}", step.command))
        };
        let mut asked = vec![next(&clean)];
        for (commit, evidence) in results {
            clean.note(&policy, commit, evidence);
            asked.push(next(&clean));
        }
        (asked, clean.outcome(), clean.tasks.len())
    }

    #[test]
    fn setup_comes_first_and_green_settles_all_tasks() {
        let steps =
            [("tip", evidence(SETUP, "npm ci", 0, "")), ("tip", evidence("verify", "make test", 0, ""))];
        let (asked, outcome, tasks) = story(&steps);
        assert_eq!(asked, ["tip npm ci", "tip make test", "nothing"]);
        assert_eq!((outcome, tasks), (Some(Outcome::Green), 0));
    }

    #[test]
    fn a_failing_test_is_red() {
        let red = evidence("verify", "make test", 1, "FAIL: 3 is not 4");
        let (asked, outcome, tasks) = story(&[("tip", evidence(SETUP, "npm ci", 0, "")), ("tip", red)]);
        assert_eq!(asked.last().unwrap(), "nothing");
        assert!(matches!(outcome, Some(Outcome::Red { failed }) if failed.contains("3 is not 4")));
        assert_eq!(tasks, 2);
    }

    #[test]
    fn what_failed_in_the_same_way_before_is_nobodys_fault() {
        let setup = || evidence(SETUP, "npm ci", 0, "");
        let red = |words| evidence("verify", "make test", 1, words);
        let with = |before| {
            [("tip", setup()), ("tip", red("error: .env: not found")), ("base", setup()), ("base", before)]
        };
        let (asked, outcome, _) = story_after(true, &with(red("error: .env: not found")));
        assert_eq!(asked[2..], ["base npm ci", "base make test", "nothing"]);
        assert!(matches!(outcome, Some(Outcome::NotTried { why }) if why.contains(".env: not found")));
        for other in [red("error: 3 is not 4"), evidence("verify", "make test", 0, "")] {
            assert!(matches!(story_after(true, &with(other)).1, Some(Outcome::Red { .. })));
        }
        // What never passed anywhere may be missing because the work hides it from git.
        let hidden = [("tip", setup()), ("tip", red("error: answer: not found"))];
        assert!(matches!(story(&hidden).1, Some(Outcome::Red { .. })));
    }

    #[test]
    fn what_cannot_run_is_red_only_if_it_could_run_before() {
        let setup = || evidence(SETUP, "npm ci", 0, "");
        let missing = || evidence("verify", "make test", 1, "ModuleNotFoundError: No module named 'calc'");
        let doubtful = [("tip", setup()), ("tip", missing())];
        let (asked, outcome, _) = story(&doubtful);
        assert_eq!(asked.last().unwrap(), "base npm ci");
        assert!(matches!(outcome, Some(Outcome::NotTried { .. })));
        let before = |result| [&doubtful[..], &[("base", setup()), ("base", result)]].concat();
        let (asked, outcome, _) = story(&before(evidence("verify", "make test", 0, "")));
        assert_eq!(asked.last().unwrap(), "nothing");
        assert!(matches!(outcome, Some(Outcome::Red { .. })), "{outcome:?}");
        let (asked, outcome, _) = story(&before(missing()));
        assert_eq!(asked.last().unwrap(), "nothing");
        assert!(matches!(outcome, Some(Outcome::NotTried { .. })), "{outcome:?}");
    }

    #[test]
    fn packages_are_told_from_files_of_the_project() {
        assert!(missing_package("Error: Cannot find module 'mocha'").is_some());
        assert!(missing_package("Error: Cannot find module './lib/app.js'").is_none());
        assert!(missing_package("1 failed").is_none());
    }
}
