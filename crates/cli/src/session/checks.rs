//! Runs the commands that must succeed before a session's work counts as done.

use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use wiggum_core::event::Exit;
use wiggum_workspace::process::{self, Capture, CommandLine, Ended, Grace, Launch, Running, Sink, Stream};

use super::judge::Checked;

/// All checks of one stop together; hooks are installed with a little more.
pub(crate) const BUDGET: Duration = Duration::from_secs(540);

/// In the environment of every check, so that those of a hook that was killed can be found.
const MARKER: &str = "WIGGUM_SESSION_ID";

/// Runs them in order up to the first that fails.
pub(crate) fn run(commands: &[String], workspace: &Path, session: &str) -> Checked {
    if commands.is_empty() {
        return Checked::NotConfigured;
    }
    process::end_marked(MARKER, session);
    let until = Instant::now() + BUDGET;
    for command in commands {
        let (exit, output) = run_one(command, workspace, session, until);
        if !exit.success() {
            return Checked::Failed { command: command.clone(), exit, output };
        }
    }
    Checked::Passed { commands: commands.len() }
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
