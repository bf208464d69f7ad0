//! Running a command, with an end that is certain: of its time, of its output, and of everything it
//! started.

use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use serde::Deserialize;
use wiggum_core::event::Exit;
use wiggum_core::stream::Stream;
use wiggum_workspace::process::{self, Capture, CommandLine, Ended, Grace, Launch, Sink, Stop};

use super::{Place, ToolError, shorten};

const USUAL_TIME: u64 = 120;
/// Below the silence that the engine suffers, so that the model hears of it rather than being ended.
const MOST_TIME: u64 = 1200;

#[derive(Debug, Deserialize)]
pub(super) struct Run {
    command: Command,
    timeout_seconds: Option<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Command {
    Line(String),
    Words(Vec<String>),
}

/// What it printed, on both streams in the order it came, and how it ended. To fail is not an error
/// of the tool: tests do.
pub(super) fn run(place: &Place, Run { command, timeout_seconds }: &Run) -> Result<String, ToolError> {
    let command = match command {
        Command::Line(line) => CommandLine::parse(line)?,
        Command::Words(words) => {
            let (program, arguments) =
                words.split_first().ok_or(ToolError::Command(process::ParseError::Empty))?;
            CommandLine::new(program, arguments)
        }
    };
    let mut launch = Launch::new(command, place.root());
    launch.env_remove = place.withheld.clone();
    let limit = Duration::from_secs(timeout_seconds.unwrap_or(USUAL_TIME).clamp(1, MOST_TIME));

    let (sender, ended) = channel();
    let running = process::launch(launch, Collect { capture: Capture::new(), sender })?;
    let (capture, ended) = match ended.recv_timeout(limit) {
        Ok(result) => result,
        Err(_) => {
            running.stop(Stop::TimedOut, Grace::default());
            ended
                .recv()
                .map_err(|_| ToolError::Failed("the command could not be followed to its end".to_owned()))?
        }
    };
    Ok(report(&capture, ended, limit))
}

fn report(capture: &Capture, ended: Ended, limit: Duration) -> String {
    let mut text = shorten(capture.text());
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    let end = match ended.exit {
        Exit::TimedOut => format!("ended after {} seconds, which was its limit", limit.as_secs()),
        exit => exit.to_string(),
    };
    let left = match ended.ended_processes {
        0 => String::new(),
        1 => ", and a process it had left running was ended".to_owned(),
        count => format!(", and {count} processes it had left running were ended"),
    };
    format!("{text}[{end}{left}]")
}

struct Collect {
    capture: Capture,
    sender: Sender<(Capture, Ended)>,
}

impl Sink for Collect {
    fn output(&mut self, _stream: Stream, bytes: &[u8]) {
        self.capture.push(bytes);
    }

    fn ended(&mut self, ended: Ended) {
        // Nobody listens any more only if we are at our end ourselves.
        drop(self.sender.send((std::mem::take(&mut self.capture), ended)));
    }
}

#[cfg(test)]
mod tests {
    use super::super::call;
    use super::*;
    use serde_json::{Value, json};

    fn run_in(directory: &std::path::Path, withheld: &[&str], arguments: Value) -> Result<String, String> {
        let withheld = withheld.iter().map(Into::into).collect();
        let place = Place::new(directory, withheld).unwrap();
        call(&place, "run", &arguments.to_string()).map_err(|error| error.to_string())
    }

    fn run(arguments: Value) -> Result<String, String> {
        run_in(tempfile::tempdir().unwrap().path(), &[], arguments)
    }

    #[test]
    fn a_command_is_a_line_or_words() {
        assert_eq!(run(json!({"command": "echo a; echo b >&2; exit 3"})).unwrap(), "a\nb\n[exit code 3]");
        assert_eq!(run(json!({"command": ["echo", "$HOME; x"]})).unwrap(), "$HOME; x\n[exit code 0]");
        assert_eq!(run(json!({"command": "true"})).unwrap(), "[exit code 0]");
        assert!(run(json!({"command": []})).unwrap_err().contains("is empty"));
        assert!(run(json!({"command": "echo 'a"})).unwrap_err().contains("never closed"));
        assert!(run(json!({"command": ["no-such-program"]})).unwrap_err().contains("no-such-program"));
    }

    #[test]
    fn it_runs_in_the_workspace_and_without_the_key() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        assert!(run_in(&root, &[], json!({"command": ["pwd"]})).unwrap().starts_with(root.to_str().unwrap()));
        let line = "echo ${CARGO_MANIFEST_DIR:+set}";
        assert_eq!(run_in(&root, &[], json!({"command": line})).unwrap(), "set\n[exit code 0]");
        let withheld = ["CARGO_MANIFEST_DIR"];
        assert_eq!(run_in(&root, &withheld, json!({"command": line})).unwrap(), "\n[exit code 0]");
    }

    #[test]
    fn its_time_is_limited_and_nothing_is_left_of_it() {
        let directory = tempfile::tempdir().unwrap();
        let line = "echo begun; (setsid sleep 1000 & echo $! > pid); exec sleep 1000";
        let said = run_in(directory.path(), &[], json!({"command": line, "timeout_seconds": 1})).unwrap();
        assert!(said.starts_with("begun\n[ended after 1 seconds, which was its limit"), "{said}");
        let pid = std::fs::read_to_string(directory.path().join("pid")).unwrap();
        assert!(!std::path::Path::new("/proc").join(pid.trim()).exists());
    }

    #[test]
    fn what_it_leaves_in_the_background_is_ended_with_it() {
        let said = run(json!({"command": "sleep 1000 & echo done"})).unwrap();
        assert_eq!(said, "done\n[exit code 0, and a process it had left running was ended]");
    }

    #[test]
    fn floods_are_cut() {
        let said = run(json!({"command": "echo first; yes | head -c 10000000; echo last"})).unwrap();
        assert!(said.starts_with("first\n") && said.ends_with("last\n[exit code 0]"));
        assert!(said.contains("bytes cut") && said.len() < 40_000, "{}", said.len());
    }
}
