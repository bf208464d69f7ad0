//! What must hold before a session's work counts as done: a plan without open boxes, and commands
//! that succeed.

use std::fs;
use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use wiggum_core::event::Exit;
use wiggum_workspace::process::{self, Capture, CommandLine, Ended, Grace, Launch, Running, Sink, Stream};

use super::judge::Checked;
use super::state::Session;

/// All checks of one stop together; hooks are installed with a little more.
pub(crate) const BUDGET: Duration = Duration::from_secs(540);

/// In the environment of every check, so that those of a hook that was killed can be found.
const MARKER: &str = "WIGGUM_SESSION_ID";

/// Looks at them in order up to the first that does not hold.
pub(crate) fn run(session: &Session, workspace: &Path) -> Checked {
    if let Some(plan) = &session.plan {
        let open = open_boxes(&workspace.join(plan));
        if open.as_ref().map_or(true, |open| !open.is_empty()) {
            return Checked::Open { plan: plan.clone(), boxes: open.unwrap_or_default() };
        }
    }
    let (commands, planned) = (&session.verify, usize::from(session.plan.is_some()));
    if commands.len() + planned == 0 {
        return Checked::NotConfigured;
    }
    let session = &session.session_id;
    if !commands.is_empty() {
        process::end_marked(MARKER, session);
    }
    let until = Instant::now() + BUDGET;
    for command in commands {
        let (exit, output) = run_one(command, workspace, session, until);
        if !exit.success() {
            return Checked::Failed { command: command.clone(), exit, output };
        }
    }
    Checked::Passed { checks: commands.len() + planned }
}

/// The boxes of a plan that are not ticked, code left out.
fn open_boxes(plan: &Path) -> std::io::Result<Vec<String>> {
    let text = fs::read_to_string(plan)?;
    let mut in_code = false;
    let lines = text.lines().map(str::trim).filter(|line| {
        in_code ^= line.starts_with("```");
        !in_code
    });
    let item = |line: &str| {
        let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
        rest.strip_prefix(['-', '*', '+', '.', ')']).is_some_and(|rest| rest.trim_start().starts_with("[ ]"))
    };
    Ok(lines.filter(|line| item(line)).map(str::to_owned).collect())
}

fn run_one(line: &str, workspace: &Path, session: &str, until: Instant) -> (Exit, String) {
    let command = match CommandLine::parse(line) {
        Ok(command) => command,
        Err(error) => return (Exit::NotStarted, error.to_string()),
    };
    let mut launch = Launch::new(command, workspace);
    launch.marker = Some((MARKER.to_owned(), session.to_owned()));
    let (sender, receiver) = channel();
    let running = match process::launch(launch, Collector { sender, capture: Capture::new() }) {
        Ok(running) => running,
        Err(error) => return (Exit::NotStarted, wiggum_engine::error::chain(&error)),
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
    use super::*;

    #[test]
    fn open_boxes_are_found_in_lists_and_not_in_code() {
        let base = tempfile::tempdir().unwrap();
        let plan = base.path().join("plan.md");
        let text = "# Plan\n- [x] one\n- [ ] two\n  * [ ] three\n1. [ ] four\n```\n- [ ] shown\n```\na [ ] b\n- [X] five\n";
        fs::write(&plan, text).unwrap();
        assert_eq!(open_boxes(&plan).unwrap(), ["- [ ] two", "* [ ] three", "1. [ ] four"]);
        open_boxes(&base.path().join("none.md")).unwrap_err();
    }
}
