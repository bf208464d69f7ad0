//! What must hold before a session's work counts as done: a plan without open boxes, and commands
//! that succeed.

use std::io;
use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use wiggum_core::event::Exit;
use wiggum_core::task::FileStatus;
use wiggum_engine::OfChecks;
use wiggum_engine::error::chain;
use wiggum_workspace::beneath::{self, Links};
use wiggum_workspace::git::Git;
use wiggum_workspace::process::{self, Capture, CommandLine, Ended, Grace, Launch, Running, Sink, Stream};
use wiggum_workspace::sandbox::Confinement;

use super::judge::{Checked, MissingInPlan};
use super::rules::Rules;
use super::state::Session;
use crate::sandbox;

/// All checks of one stop together; hooks are installed with a little more.
pub(crate) const BUDGET: Duration = Duration::from_secs(540);

/// In the environment of every check, so that those of a hook that was killed can be found.
const MARKER: &str = "WIGGUM_SESSION_ID";

/// Looks at them in order up to the first that does not hold.
pub(crate) fn run(session: &Session, workspace: &Path) -> Checked {
    if let Some(plan) = &session.rules.plan
        && let Some(missing) = missing_in_plan(&workspace.join(plan))
    {
        return Checked::Unfinished { plan: plan.clone(), missing };
    }
    let (commands, planned) = (&session.rules.verify, usize::from(session.rules.plan.is_some()));
    if commands.len() + planned == 0 {
        return Checked::NotConfigured;
    }
    let (rules, session, timeout) = (&session.rules, &session.session_id, session.rules.check_timeout);
    if commands.is_empty() {
        return Checked::Passed { checks: planned };
    }
    process::end_marked(MARKER, session);
    let walls = match Walls::of(rules, workspace) {
        Ok(walls) => walls,
        Err(problem) => {
            let command = commands[0].clone();
            return Checked::Failed { command, exit: Exit::NotStarted, output: problem };
        }
    };
    let until = Instant::now() + BUDGET;
    for command in commands {
        let own = timeout.map(|timeout| Instant::now() + timeout.as_duration());
        let until = own.map_or(until, |own| own.min(until));
        let (exit, output) = run_one(command, workspace, session, &walls, until);
        if !exit.success() {
            return Checked::Failed { command: command.clone(), exit, output: walls.explain(output) };
        }
    }
    Checked::Passed { checks: commands.len() + planned }
}

/// What keeps checks from more than they need: they run what the agent has written.
struct Walls {
    confinement: Option<Confinement>,
    rules: OfChecks,
    withheld: Vec<String>,
}

impl Walls {
    fn of(rules: &Rules, workspace: &Path) -> Result<Self, String> {
        let sandbox = sandbox::in_force(workspace, &rules.sandbox).map_err(|failure| failure.message)?;
        let helper = std::env::current_exe().map_err(|error| error.to_string())?;
        let git = Git::discover(workspace).map_err(|error| chain(&error))?;
        if sandbox.kind.is_some() {
            wiggum_engine::make_caches();
        }
        // Tools that know the whole repository write at its root, wherever the agent works in it.
        let root = git.as_ref().map_or(workspace, Git::root);
        // Nothing of it is a check's to see.
        let private = super::state::kept_for(workspace, "sessions");
        let private = private.parent().unwrap_or(&private);
        let confinement = wiggum_engine::around_check(&sandbox, &helper, root, git.as_ref(), private);
        let passed: Vec<&str> = sandbox.checks.pass_env.iter().map(String::as_str).collect();
        let withheld = wiggum_engine::withheld(&passed);
        Ok(Self { confinement, withheld, rules: sandbox.checks })
    }

    /// A check that failed and speaks of variables says which of them it did not get. Others are of no use to an agent,
    /// who can pass none on.
    fn explain(&self, output: String) -> String {
        let named = self.withheld.iter().filter(|name| output.contains(name.as_str()));
        let names = named.map(String::as_str).collect::<Vec<_>>().join(", ");
        match names.is_empty() {
            true => output,
            false => format!(
                "{}\n\nVariables withheld from it: {names} (`pass_env` under [checks] passes them on).",
                output.trim_end()
            ),
        }
    }
}

/// A plan is read by people; a larger one is none.
const LONGEST_PLAN: usize = 16 * 1024 * 1024;

/// The agent can write it, and so put anything in its place.
pub(super) fn read_plan(plan: &Path) -> io::Result<String> {
    beneath::read_plain_text(plan, Links::Refuse, LONGEST_PLAN)
}

/// What a plan lacks to be done: boxes that need not be ticked do not count.
fn missing_in_plan(plan: &Path) -> Option<MissingInPlan> {
    let Ok(text) = read_plan(plan) else { return Some(MissingInPlan::Unreadable) };
    let boxes = wiggum_backlog::checkboxes(&plan.to_string_lossy(), &text);
    if boxes.is_empty() {
        return Some(MissingInPlan::NoBoxes);
    }
    let is_open = |status: FileStatus| match status {
        FileStatus::Open | FileStatus::Failed => true,
        FileStatus::Done | FileStatus::Skipped => false,
    };
    let open = boxes.into_iter().filter(|found| is_open(found.status) && !found.optional);
    let open: Vec<String> = open.map(|found| found.line).collect();
    (!open.is_empty()).then_some(MissingInPlan::Open(open))
}

fn run_one(line: &str, workspace: &Path, session: &str, walls: &Walls, until: Instant) -> (Exit, String) {
    let command = match CommandLine::parse(line) {
        Ok(command) => command,
        Err(error) => return (Exit::NotStarted, error.to_string()),
    };
    let mut launch = Launch::new(command, workspace);
    launch.marker = Some((MARKER.to_owned(), session.to_owned()));
    launch.env_remove = walls.withheld.iter().map(Into::into).collect();
    launch.confinement = walls.confinement.clone().filter(|_| walls.rules.confines(line));
    let (sender, receiver) = channel();
    let running = match process::launch(launch, Collector { sender, capture: Capture::new() }) {
        Ok(running) => running,
        Err(error) => return (Exit::NotStarted, chain(&error)),
    };
    let left = until.saturating_duration_since(Instant::now());
    if let Ok(outcome) = receiver.recv_timeout(left) {
        return outcome;
    }
    stop(&running);
    receiver.recv().unwrap_or((Exit::TimedOut, String::new()))
}

fn stop(running: &Running) {
    running
        .stop(process::Stop::TimedOut, Grace { int: Duration::from_secs(1), term: Duration::from_secs(1) });
}

struct Collector {
    sender: Sender<(Exit, String)>,
    capture: Capture,
}

impl Sink for Collector {
    fn output(&mut self, _: Stream, bytes: &[u8]) {
        self.capture.push(bytes);
    }

    fn ended(&mut self, ended: Ended) {
        // Nobody listens any more only when the whole program is about to end.
        drop(self.sender.send((ended.exit, self.capture.text())));
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<MissingInPlan>) {
        let base = tempfile::tempdir().unwrap();
        let plan = base.path().join("plan.md");
        fs::write(&plan, text).unwrap();
        assert_eq!(missing_in_plan(&plan), expected, "{text}");
    }

    fn open(lines: &[&str]) -> Option<MissingInPlan> {
        Some(MissingInPlan::Open(lines.iter().map(|line| (*line).to_owned()).collect()))
    }

    #[test]
    fn open_boxes_are_found_in_lists_and_not_in_code() {
        let text = "# Plan\n- [x] one\n- [ ] two\n  * [ ] three\n1. [ ] four\n```\n- [ ] shown\n```\na [ ] b\n- [X] five\n";
        check(text, open(&["- [ ] two", "* [ ] three", "1. [ ] four"]));
        check("- [x] one\n~~~\n- [ ] shown\n~~~\n<!-- - [ ] not yet -->\n> - [ ] quoted\n", None);
        assert_eq!(missing_in_plan(Path::new("/none.md")), Some(MissingInPlan::Unreadable));
    }

    #[test]
    fn boxes_that_are_neither_ticked_nor_skipped_are_open() {
        check(
            "- [~] one\n- [/] two\n- [!] three\n- [-] four\n- [ ] five (skipped)\n",
            // In a plan `[-]` is cancelled.
            open(&["- [~] one", "- [/] two", "- [!] three"]),
        );
        check("Marks: [-] dropped\n\n- [x] one\n- [-] two\n", None);
    }

    #[test]
    fn optional_boxes_need_not_be_ticked() {
        let text = "- [x] one\n- [ ] two (optional)\n- [ ]* 2.1 three\n  - [ ] part of three\n\n## Future\n- [ ] four\n";
        check(text, None);
        check(
            "- [ ] Make the field optional\n- [ ] Tests (Optional, later)\n",
            open(&["- [ ] Make the field optional"]),
        );
    }

    #[test]
    fn a_plan_without_boxes_says_nothing() {
        check("# Plan\n\nAll done.\n", Some(MissingInPlan::NoBoxes));
        check("", Some(MissingInPlan::NoBoxes));
    }
}
