//! The loop's own checks on the untouched tree, before money is spent on agents.
//!
//! Where they fail already, no agent can be judged by them: a person says how to go on, or the policy.
//! A tree on which they passed is not checked again.

use crate::definition::speaks_of_checking;
use crate::event::{Answer, BaselineOutcome, Evidence, Exit, Question, QuestionKind};
use crate::ids::{QuestionId, TaskId};
use crate::policy::{self, Policy};
use crate::signal::error::decisive_lines;
use crate::text::strip_ansi;
use crate::verdict::Check;

/// A command that names this is about single tasks and says nothing of a tree without one.
const OF_TASKS: &str = "WIGGUM_TASK_";

/// The options of the question, as they are numbered there.
const GO_ON: u32 = 1;
const REPAIR: u32 = 3;

/// What is known of the checks on trees that nobody has worked on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Baseline {
    /// What names the tree that this run started from.
    pub tree: String,
    /// The tree on which these commands passed last.
    green: Option<(String, Vec<String>)>,
    /// What came of them in this run, in their order.
    pub results: Vec<Checked>,
    /// What was said of a red one, and of which tree.
    decided: Option<(String, Decision)>,
    pub question: Option<QuestionId>,
    /// The task that is to repair them.
    pub repair: Option<TaskId>,
    /// An agent has worked in this run: what it found untouched is past.
    pub(crate) is_past: bool,
    /// A check was begun of which nothing was heard since.
    pub under_way: Option<String>,
    /// A person said in this run that it should stop.
    is_stopped: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Checked {
    pub command: String,
    pub outcome: BaselineOutcome,
    pub evidence: Option<Evidence>,
}

/// How to go on from a red baseline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    GoOn,
    Stop,
    Repair,
}

/// What has to happen before an agent may start.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Due {
    Check(Check),
    /// A person is to be asked.
    Ask(Box<Question>),
    /// The run cannot go on without an answer.
    Wait,
    /// A person wants it to stop.
    Stop,
    PlanRepair,
    /// The task that repairs them is still to be added to the backlog.
    AddRepair(TaskId),
}

/// The loop's own checks, as far as they say anything without a task.
pub fn checks(policy: &Policy) -> Vec<Check> {
    let commands = policy.checks.verify.iter().filter(|command| !command.contains(OF_TASKS));
    commands.map(|command| Check { name: "verify".to_owned(), command: command.clone() }).collect()
}

/// Is a check with this script about single tasks?
pub fn is_of_tasks(script: &str) -> bool {
    script.contains(OF_TASKS)
}

impl Baseline {
    pub(crate) fn start_run(&mut self, tree: &str) {
        tree.clone_into(&mut self.tree);
        self.results.clear();
        self.is_past = false;
        self.is_stopped = false;
    }

    pub(crate) fn note(&mut self, policy: &Policy, checked: Checked) {
        self.results.push(checked);
        let commands = commands(policy);
        let passed = |result: &Checked| result.outcome == BaselineOutcome::Green;
        if self.results.len() == commands.len() && self.results.iter().all(passed) {
            self.green = Some((self.tree.clone(), commands));
        }
    }

    /// Work was committed for which all of the loop's checks passed.
    pub(crate) fn committed(&mut self, policy: &Policy, commit: &str) {
        self.green = Some((commit.to_owned(), commands(policy)));
    }

    pub(crate) fn decide(&mut self, decision: Option<Decision>) {
        match decision {
            // Asked again in the next run.
            Some(Decision::Stop) => self.is_stopped = true,
            Some(decision) => self.decided = Some((self.tree.clone(), decision)),
            // Somebody has seen to it: look again.
            None => self.results.clear(),
        }
    }

    /// Did this command pass on a tree that nobody was working on?
    pub fn has_passed(&self, command: &str) -> bool {
        let in_this_run = self.results.iter().filter(|result| result.outcome == BaselineOutcome::Green);
        let before = self.green.iter().flat_map(|(_, commands)| commands);
        in_this_run.map(|result| &result.command).chain(before).any(|known| known == command)
    }

    pub fn red(&self) -> impl Iterator<Item = &Checked> {
        self.results.iter().filter(|result| result.outcome == BaselineOutcome::Red)
    }

    /// What is said of this tree already, by a person or the policy.
    fn decision(&self, policy: &Policy) -> Option<Decision> {
        let decided = self.decided.as_ref().filter(|(tree, _)| *tree == self.tree);
        decided.map(|(_, decision)| *decision).or(match policy.checks.baseline {
            policy::Baseline::GoOn => Some(Decision::GoOn),
            policy::Baseline::Repair => Some(Decision::Repair),
            policy::Baseline::Ask | policy::Baseline::Stop | policy::Baseline::Off => None,
        })
    }

    /// The answer that the policy of this run gives to a question that a former run has left open.
    pub(crate) fn answer_of(policy: &Policy) -> Option<Answer> {
        match policy.checks.baseline {
            policy::Baseline::GoOn => Some(Answer::Option { number: GO_ON }),
            policy::Baseline::Repair => Some(Answer::Option { number: REPAIR }),
            // Nobody looks, so nothing is decided of the tree.
            policy::Baseline::Off => Some(Answer::Retry),
            policy::Baseline::Ask | policy::Baseline::Stop => None,
        }
    }

    /// What comes before the next agent. `has_repair`: the task for it is in the backlog.
    pub(crate) fn due(&self, policy: &Policy, has_repair: bool) -> Option<Due> {
        if self.is_past || policy.checks.baseline == policy::Baseline::Off || self.tree.is_empty() {
            return None;
        }
        let checks = checks(policy);
        let known = self.green.as_ref().is_some_and(|(tree, green)| {
            *tree == self.tree && checks.iter().all(|check| green.contains(&check.command))
        });
        if known && self.results.is_empty() {
            return None;
        }
        if let Some(check) = checks.into_iter().nth(self.results.len()) {
            return Some(Due::Check(check));
        }
        self.red().next()?;
        if self.is_stopped {
            return Some(Due::Stop);
        }
        match (self.decision(policy), &self.repair) {
            (Some(Decision::GoOn), _) => None,
            (Some(Decision::Repair), None) => Some(Due::PlanRepair),
            (Some(Decision::Repair), Some(_)) if has_repair => None,
            (Some(Decision::Repair), Some(task)) => Some(Due::AddRepair(task.clone())),
            (Some(Decision::Stop) | None, _) => Some(match self.question {
                Some(_) => Due::Wait,
                None => Due::Ask(Box::new(self.asked())),
            }),
        }
    }

    fn asked(&self) -> Question {
        Question {
            kind: QuestionKind::Baseline,
            summary: "the checks fail before any agent has worked".to_owned(),
            context: self.red().map(described).collect::<Vec<_>>().join("\n\n"),
            options: vec![
                "Go on: agents are judged by checks that fail already".to_owned(),
                "Stop".to_owned(),
                "Make repairing them the first task".to_owned(),
            ],
            question: "How should it go on? Or repair them yourself and answer `retry`. To decide beforehand, run with \
                       `--baseline go-on|stop|repair`, or set `baseline` under [checks]."
                .to_owned(),
        }
    }

    /// The words of the task that repairs them.
    pub fn repair_text(&self) -> (String, String) {
        let failing = self.red().map(described).collect::<Vec<_>>().join("\n\n");
        let text = format!(
            "The checks below fail on the tree as it is, before any work was done. Find the cause and repair it, \
             without weakening tests or checks. Change nothing else.\n\n{failing}"
        );
        ("Repair the checks that fail already".to_owned(), text)
    }
}

fn commands(policy: &Policy) -> Vec<String> {
    checks(policy).into_iter().map(|check| check.command).collect()
}

fn described(checked: &Checked) -> String {
    let lines = checked.evidence.as_ref().map(|evidence| decisive_lines(&evidence.output.excerpt));
    let lines = lines.unwrap_or_default().join("\n");
    let exit = checked.evidence.as_ref().map_or_else(String::new, |evidence| format!(": {}", evidence.exit));
    let withheld = checked.evidence.as_ref().and_then(Evidence::about_withheld);
    let withheld = withheld.map_or_else(String::new, |words| format!("\nVariables {words}"));
    format!("`{}` fails{exit}\n{lines}{withheld}", checked.command).trim_end().to_owned()
}

/// What a check on the untouched tree says.
pub fn outcome(exit: Exit, output: &str) -> BaselineOutcome {
    if exit.success() {
        return match nothing_done(output) {
            Some(line) => {
                BaselineOutcome::CannotRun { why: format!("it ran nothing ({line}){}", hint(&line)) }
            }
            None => BaselineOutcome::Green,
        };
    }
    match cannot_run(exit, &strip_ansi(output)) {
        Some(why) => BaselineOutcome::CannotRun { why },
        None => BaselineOutcome::Red,
    }
}

/// What make or a test runner says where that is all that a check printed: it found nothing to do, or no test, so
/// nothing was checked.
pub fn nothing_done(output: &str) -> Option<String> {
    let output = strip_ansi(output);
    if let Some(line) = no_test(&output) {
        return Some(line);
    }
    let lines = output.lines().map(str::trim).filter(|line| !line.is_empty());
    let lines =
        lines.filter(|line| !line.contains("Entering directory") && !line.contains("Leaving directory"));
    let lines: Vec<&str> = lines.collect();
    let is_idle = |line: &&str| {
        let words =
            line.split_once(": ").filter(|(program, _)| program.contains("make")).map(|(_, words)| words);
        words.is_some_and(|words| {
            words.contains("is up to date") || words.starts_with("Nothing to be done for")
        })
    };
    (!lines.is_empty() && lines.iter().all(is_idle)).then(|| lines[0].to_owned())
}

/// What Python's unittest and Node's runner print where they found no test; both call that a success.
fn no_test(output: &str) -> Option<String> {
    let lines = || output.lines().map(str::trim).filter(|line| !line.is_empty());
    let is_rest = |line: &str| {
        line.starts_with(['#', '-', 'ℹ']) || matches!(line, "OK" | "TAP version 13" | "1..0" | "NO TESTS RAN")
    };
    let says_none =
        |line: &&str| line.starts_with("Ran 0 tests in") || matches!(*line, "# tests 0" | "ℹ tests 0");
    let said = lines().find(says_none)?;
    lines().all(|line| line == said || is_rest(line)).then(|| said.to_owned())
}

/// How a target is made although something has its name.
fn hint(line: &str) -> String {
    let target = line.split(['\'', '`', '‘', '’']).nth(1).unwrap_or_default();
    match target {
        "" => String::new(),
        target => format!("; add `.PHONY: {target}` to the Makefile"),
    }
}

/// What programs print where there is nothing to test yet.
const NOTHING_YET: [&str; 29] = [
    "command not found",
    "could not find `Cargo.toml`",
    "no targets specified in the manifest",
    "Missing script:",
    "missing script:",
    "Could not read package.json",
    "Couldn't find a package.json",
    "No package.json",
    "no test specified",
    "No rule to make target",
    "No targets specified and no makefile found",
    "No justfile found",
    "does not contain recipe",
    "go.mod file not found",
    "does not contain main module",
    "Could not find '",
    "could not determine executable to run",
    "npx canceled due to missing packages",
    "can't cd to",
    ": cd: ",
    "go: no packages",
    "matched no packages",
    "No tests found",
    "No test files found",
    "no tests ran",
    "No module named pytest",
    "NO TESTS RAN",
    "Could not find a pom.xml",
    // Of jest, where there is neither a package.json nor settings of its own.
    "Could not find a config file",
];

fn cannot_run(exit: Exit, output: &str) -> Option<String> {
    if let Some(line) = output.lines().find(|line| NOTHING_YET.iter().any(|words| line.contains(words))) {
        return Some(line.trim().to_owned());
    }
    // A script of the check's own that is not there yet; any other missing file is a failure.
    let missing = |line: &&str| {
        // The first is all that dash says.
        let named = ["No such file", "can't open file", "Cannot find module"];
        let is_own = line.split([' ', ':', '\'']).any(speaks_of_checking) || is_folder_of_make(line);
        named.iter().any(|words| line.contains(words)) && is_own
    };
    match exit {
        Exit::NotStarted => Some(output.lines().next().unwrap_or("it could not be started").to_owned()),
        Exit::Code { code: 126 | 127 } => Some(
            output.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("not found").trim().to_owned(),
        ),
        // What a recipe of make calls is not there.
        Exit::Code { .. } if output.contains("] Error 127") => {
            output.lines().find(|line| !line.trim().is_empty()).map(str::to_owned)
        }
        Exit::Code { .. } => {
            output.lines().find(missing).filter(|_| output.lines().count() < 25).map(str::to_owned)
        }
        Exit::Signal { .. } | Exit::TimedOut => None,
    }
}

/// `make: *** sub: No such file or directory.  Stop.`: the folder of `make -C sub test`.
fn is_folder_of_make(line: &str) -> bool {
    let (make, said) = line.split_once(": *** ").unwrap_or_default();
    (make == "make" || make.starts_with("make[")) && !said.starts_with('[')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(code: i32) -> Exit {
        Exit::Code { code }
    }

    #[test]
    fn what_cannot_run_yet_is_told_from_what_fails() {
        let cannot = [
            (127, "sh: 1: pytest: not found"),
            (101, "error: could not find `Cargo.toml` in `/x` or any parent directory"),
            (1, "npm error Missing script: \"test\""),
            (2, "make: *** No rule to make target 'test'.  Stop."),
            (5, "============ no tests ran in 0.01s ============"),
            (1, "No tests found, exiting with code 1"),
            (1, "/usr/bin/python3: No module named pytest"),
            (2, "sh: 0: cannot open verify.sh: No such file or directory"),
            (
                1,
                "pattern ./...: directory prefix . does not contain main module or its selected dependencies",
            ),
            (1, "Could not find '/x/tests'"),
            (
                1,
                "node:internal/modules/cjs/loader:1\n  throw err;\n\nError: Cannot find module '/x/tests/a.js'\n  at a\n  at b",
            ),
            (1, "sh: 1: cd: can't cd to app"),
            (1, "bash: line 1: cd: app: No such file or directory"),
            (2, "sh: 0: cannot open tests/all.sh: No such file"),
            (2, "make: *** sub: No such file or directory.  Stop."),
            (
                2,
                "make: Entering directory '/x'\nmake[1]: *** sub: No such file or directory.  Stop.\nmake: *** [Makefile:2: test] Error 2",
            ),
            (
                1,
                "● Validation Error:\n\n  Could not find a config file based on provided values:\n  path: \"/x\"",
            ),
            (2, "make: nosuchtool: No such file or directory\nmake: *** [Makefile:2: test] Error 127"),
        ];
        for (exit, output) in cannot {
            assert!(matches!(outcome(code(exit), output), BaselineOutcome::CannotRun { .. }), "{output}");
        }
        for (exit, output) in [
            (1, "1 failed, 3 passed"),
            (101, "test result: FAILED. 1 passed; 2 failed"),
            (1, "FileNotFoundError: [Errno 2] No such file or directory: 'data.csv'\na\nb\nc\nd\ne"),
            (1, "Error: Cannot find module './lib/app.js'\n  at a"),
            (1, ""),
            (2, "make: *** [Makefile:2: test] Error 1"),
            (2, "cat: data.csv: No such file or directory\nmake: *** [Makefile:2: test] Error 1"),
            (2, "sh: 1: cannot open data.csv: No such file"),
        ] {
            assert_eq!(outcome(code(exit), output), BaselineOutcome::Red, "{output}");
        }
        assert_eq!(outcome(code(0), "no tests ran"), BaselineOutcome::Green);
        assert_eq!(outcome(Exit::TimedOut, ""), BaselineOutcome::Red);
    }

    #[test]
    fn a_check_for_which_make_had_nothing_to_do_tells_nothing() {
        for output in [
            "make: 'test' is up to date.\n",
            "make: `test' is up to date.",
            "make[1]: Entering directory '/x'\nmake[1]: 'test' is up to date.\nmake[1]: Leaving directory '/x'\n",
            "make: Nothing to be done for 'test'.",
        ] {
            let BaselineOutcome::CannotRun { why } = outcome(code(0), output) else { panic!("{output}") };
            assert!(why.ends_with("add `.PHONY: test` to the Makefile"), "{why}");
        }
        for output in [
            "----------------------------------------------------------------------\nRan 0 tests in 0.000s\n\nOK\n",
            "TAP version 13\n1..0\n# tests 0\n# suites 0\n# pass 0\n",
            "ℹ tests 0\nℹ suites 0\nℹ pass 0\n",
        ] {
            assert!(nothing_done(output).is_some(), "{output}");
        }
        assert_eq!(nothing_done("lint is clean\nRan 0 tests in 0.000s\n\nOK\n"), None);
        for output in ["", "3 passed\nmake: 'build' is up to date.", "the list is up to date", "fine"] {
            assert_eq!(outcome(code(0), output), BaselineOutcome::Green, "{output}");
        }
    }

    #[test]
    fn checks_of_single_tasks_say_nothing_of_a_tree() {
        let mut policy = Policy::default();
        policy.checks.verify = vec!["make test".to_owned(), "test -s \"$WIGGUM_TASK_ID.txt\"".to_owned()];
        assert_eq!(commands(&policy), ["make test"]);
    }
}
