//! Telling through a program of this machine: the desktop's own, or one of the user's. And the terminal's bell.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use wiggum_core::stream::Stream;
use wiggum_engine::words::one_line;
use wiggum_workspace::process::{self, CommandLine, Ended, Grace, Input, Launch, Sink, Stop};

use crate::message::{Kind, Message};
use crate::retry::Again;
use crate::send::{Delivery, Outcome};
use crate::shapes::{Payload, with_command};

/// How much of what a program prints is kept, to say why it failed.
const KEPT: usize = 2048;
/// It has nothing to save.
const GRACE: Grace = Grace { int: Duration::from_millis(200), term: Duration::from_millis(500) };

/// Rings where somebody sits at a terminal; elsewhere nobody would hear it.
pub(crate) fn bell() -> Outcome {
    let mut terminal = std::io::stderr();
    if terminal.is_terminal() {
        drop(terminal.write_all(b"\x07").and_then(|()| terminal.flush()));
    }
    Outcome::Sent
}

/// A notification of the desktop. Where there is none, the terminal's bell has to do.
pub(crate) fn desktop(message: &Message, workspace: &Path, timeout: Duration) -> Outcome {
    let command = desktop_command(message);
    if let Err(error) = command.resolve(workspace) {
        if std::io::stderr().is_terminal() {
            return bell();
        }
        return Outcome::failed(format!("no notifications on this desktop: {error}"), Again::Refused);
    }
    let mut launch = Launch::new(command, workspace);
    launch.env = variables(message);
    run(launch, timeout, Again::Refused)
}

/// A program of the user's own, called without a shell: the message is on its standard input as JSON, and in
/// variables. `WIGGUM_LOOP_ID` is not among them: that one says that an agent is calling.
pub(crate) fn command(
    program: &str,
    args: &[String],
    delivery: &Delivery,
    workspace: &Path,
    timeout: Duration,
) -> Outcome {
    let mut launch = Launch::new(CommandLine::new(program, args), workspace);
    launch.stdin = Input::Bytes(Payload::of(delivery).json().into_bytes());
    launch.env = variables(&delivery.message);
    launch.env.push(("WIGGUM_NOTIFY_ID".into(), delivery.id.as_str().into()));
    run(launch, timeout, Again::Later)
}

/// What the variables of a program begin with.
const VARIABLES: &str = "WIGGUM_NOTIFY_";

fn variables(message: &Message) -> Vec<(std::ffi::OsString, std::ffi::OsString)> {
    let task = message.task.as_ref().map(|task| task.id.as_str());
    let question = message.question.as_ref().map(|asked| asked.id.as_str());
    let answered = message.answer.as_ref().map(|given| given.id.as_str());
    let pairs = [
        ("KIND", Some(message.kind.name())),
        ("TITLE", Some(message.title.as_str())),
        ("TEXT", Some(message.text.as_str())),
        ("LOOP", Some(message.of.name.as_str())),
        ("LOOP_ID", Some(message.of.id.as_str())),
        ("TASK", task),
        ("QUESTION", question.or(answered)),
        ("LINK", message.link.as_deref()),
    ];
    let set = pairs.into_iter().filter_map(|(name, value)| Some((name, value?)));
    set.map(|(name, value)| (format!("{VARIABLES}{name}").into(), value.replace('\0', "").into())).collect()
}

/// By program and arguments, in which nothing of an agent's is read as a command.
fn desktop_command(message: &Message) -> CommandLine {
    let (title, text) = (message.title.clone(), with_command(message));
    if cfg!(target_os = "macos") {
        let script = [
            "-e",
            "on run argv",
            "-e",
            "display notification (item 2 of argv) with title (item 1 of argv)",
            "-e",
            "end run",
        ];
        let said = [title, text];
        return CommandLine::new("osascript", script.map(str::to_owned).into_iter().chain(said));
    }
    if cfg!(windows) {
        // The words come as variables, which are not read as a script.
        let script = "Add-Type -AssemblyName System.Windows.Forms,System.Drawing; \
                      $n = New-Object System.Windows.Forms.NotifyIcon; \
                      $n.Icon = [System.Drawing.SystemIcons]::Information; $n.Visible = $true; \
                      $n.ShowBalloonTip(9000, $env:WIGGUM_NOTIFY_TITLE, $env:WIGGUM_NOTIFY_TEXT + ' ', 'Info'); \
                      Start-Sleep 1; $n.Dispose()";
        return CommandLine::new("powershell", ["-NoProfile", "-NonInteractive", "-Command", script]);
    }
    let urgency = match message.kind {
        Kind::Escalation | Kind::Failure | Kind::Budget => "--urgency=critical",
        Kind::Answer | Kind::Completion | Kind::Transition | Kind::Notice => "--urgency=normal",
    };
    // The text may be read as markup.
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    CommandLine::new("notify-send", ["--app-name=wiggum", urgency, "--", &title, &text])
}

fn run(launch: Launch, timeout: Duration, again: Again) -> Outcome {
    let name = launch.command.program.to_string_lossy().into_owned();
    let (sender, ended) = channel();
    let running = match process::launch(launch, Listening { heard: Vec::new(), sender }) {
        Ok(running) => running,
        Err(error) => return Outcome::failed(wiggum_engine::error::chain(&error), again),
    };
    let Ok((end, heard)) = ended.recv_timeout(timeout) else {
        running.stop(Stop::TimedOut, GRACE);
        // The supervisor says so in any case, a moment later.
        drop(ended.recv());
        return Outcome::failed(format!("{name} took longer than {} s", timeout.as_secs()), again);
    };
    if end.exit.success() {
        return Outcome::Sent;
    }
    let heard = one_line(&String::from_utf8_lossy(&heard));
    let said = if heard.is_empty() { String::new() } else { format!(": {heard}") };
    Outcome::failed(format!("{name}: {}{said}", end.exit), again)
}

struct Listening {
    heard: Vec<u8>,
    sender: Sender<(Ended, Vec<u8>)>,
}

impl Sink for Listening {
    fn output(&mut self, _: Stream, bytes: &[u8]) {
        let room = KEPT.saturating_sub(self.heard.len());
        self.heard.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    fn ended(&mut self, ended: Ended) {
        drop(self.sender.send((ended, std::mem::take(&mut self.heard))));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::trial;

    #[test]
    #[cfg(target_os = "linux")]
    fn what_an_agent_says_is_no_option_and_no_markup() {
        let message = trial("2026-11-15T12:00:00Z".parse().unwrap());
        let message = Message { title: "--help".to_owned(), text: "<b>&".to_owned(), ..message };
        let command = desktop_command(&message);
        assert_eq!(command.program, "notify-send");
        assert_eq!(command.args[2..], ["--", "--help", "&lt;b&gt;&amp;"]);
    }

    #[test]
    fn a_program_of_ones_own_is_heard_when_it_fails_and_ended_when_it_hangs() {
        let dir = tempfile::tempdir().unwrap();
        let delivery = Delivery { id: "x".to_owned(), message: trial(jiff::Timestamp::UNIX_EPOCH) };
        let run = |line: &str, timeout| {
            command("sh", &["-c".to_owned(), line.to_owned()], &delivery, dir.path(), timeout)
        };
        let long = Duration::from_secs(20);
        assert_eq!(run("grep -q wiggum.notice && test $WIGGUM_NOTIFY_ID = x", long), Outcome::Sent);
        let failed = run("echo no such host >&2; exit 3", long);
        assert_eq!(failed, Outcome::failed("sh: exit code 3: no such host", Again::Later));
        let hangs = run("sleep 60", Duration::from_millis(50));
        assert!(matches!(hangs, Outcome::Failed { .. }), "{hangs:?}");
    }
}
