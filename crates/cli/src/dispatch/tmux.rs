//! The tmux program: one call per question, and no shell between us and it.
//!
//! Panes are named by their id, which tmux never gives twice while its server lives; a word of ours on
//! the pane tells it from one of a later server that got the same id.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use wiggum_workspace::process::{self, CommandLine, Input, Launch};

use super::DispatchError;

/// On every pane of ours, with the agent's token.
const MARK: &str = "@wiggum_agent";

/// Wide, so that programs break few lines; whoever attaches brings their own size.
const SIZE: [&str; 4] = ["-x", "200", "-y", "50"];

/// A server, by its socket; the user's own without one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tmux {
    pub(crate) socket: Option<PathBuf>,
}

/// Where an agent lives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Pane {
    pub(crate) socket: PathBuf,
    /// As in `%3`.
    pub(crate) id: String,
    /// Also in the environment of everything that runs there.
    pub(crate) token: String,
}

/// How a pane is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    Alive,
    /// Its program has ended; the pane still shows what it said.
    Ended(String),
    /// Closed, or its server has ended.
    Closed,
}

/// What a window is made with.
pub(crate) struct Window<'a> {
    pub(crate) session: &'a str,
    pub(crate) name: &'a str,
    pub(crate) directory: &'a Path,
    pub(crate) command: &'a CommandLine,
    pub(crate) env: &'a [(String, String)],
    pub(crate) token: &'a str,
}

impl Tmux {
    /// Opens a window and starts the program in it.
    pub(crate) fn open(&self, window: &Window<'_>) -> Result<Pane, DispatchError> {
        // A program that waits, until the pane is told to outlive the one that is wanted.
        let rest = ["-d", "-P", "-F", "#{pane_id} #{socket_path}", "-n", window.name, "cat", "-"];
        let target = format!("={}:", window.session);
        let made = match self.new_session(window.session, &rest) {
            Err(DispatchError::Refused { said, .. }) if said.contains("duplicate session") => {
                self.ask("new-window", ["new-window", "-t", &target].into_iter().chain(rest))?
            }
            made => made?,
        };
        let (id, socket) = made.trim_end().split_once(' ').unwrap_or((made.trim_end(), ""));
        let pane = Pane { socket: PathBuf::from(socket), id: id.to_owned(), token: window.token.to_owned() };
        let server = pane.server();
        let started = server
            .ask("set-option", ["set-option", "-p", "-t", &pane.id, "remain-on-exit", "on"])
            .and_then(|_| server.ask("set-option", ["set-option", "-p", "-t", &pane.id, MARK, window.token]))
            .and_then(|_| server.ask("respawn-pane", respawn(&pane, window)));
        if let Err(error) = started {
            pane.close();
            return Err(error);
        }
        Ok(pane)
    }

    /// A server that is about to end, since its last session has, now and then takes the command along; nothing of it was
    /// done then, so it is told again.
    fn new_session(&self, name: &str, rest: &[&str]) -> Result<String, DispatchError> {
        let ask = || {
            let words = ["new-session", "-s", name].into_iter().chain(SIZE);
            self.ask("new-session", words.chain(rest.iter().copied()))
        };
        for _ in 1..STARTS {
            match ask() {
                Err(DispatchError::Refused { said, .. }) if said.contains("server exited") => {}
                made => return made,
            }
        }
        ask()
    }

    /// Marks a pane that is there already as ours.
    pub(crate) fn adopt(&self, target: &str, token: &str) -> Result<Adopted, DispatchError> {
        let found = self.find(target)?;
        let pane = Pane { socket: found.socket, id: found.id, token: token.to_owned() };
        pane.server().ask("set-option", ["set-option", "-p", "-t", &pane.id, MARK, token])?;
        Ok(Adopted { pane, program: found.program, directory: found.directory })
    }

    /// A pane that can be spoken to and belongs to nobody.
    fn find(&self, target: &str) -> Result<Found, DispatchError> {
        let format = format!(
            "#{{pane_id}}\n#{{socket_path}}\n#{{pane_dead}}\n#{{pane_pipe}}\n#{{{MARK}}}\n#{{pane_current_command}}\n#{{pane_current_path}}"
        );
        let no_pane = || DispatchError::NoPane { target: target.to_owned() };
        let said = match self.ask("display-message", ["display-message", "-p", "-t", target, &format]) {
            Err(DispatchError::Refused { .. }) => return Err(no_pane()),
            said => said?,
        };
        let mut lines = said.trim_end_matches('\n').splitn(7, '\n').map(str::to_owned);
        let mut line = || lines.next().unwrap_or_default();
        let (id, socket, dead, piped, mark) = (line(), line(), line(), line(), line());
        let (program, directory) = (line(), PathBuf::from(line()));
        if id.is_empty() {
            return Err(no_pane());
        }
        if dead == "1" {
            return Err(DispatchError::Dead { pane: id });
        }
        if !mark.is_empty() {
            return Err(DispatchError::Taken { pane: id });
        }
        if is_our_own(&id, &socket) {
            return Err(DispatchError::OwnPane { pane: id });
        }
        if piped == "1" {
            return Err(DispatchError::Piped { pane: id });
        }
        Ok(Found { id, socket: PathBuf::from(socket), program, directory })
    }

    fn ask<A: Into<OsString>>(
        &self,
        command: &'static str,
        arguments: impl IntoIterator<Item = A>,
    ) -> Result<String, DispatchError> {
        self.tell(command, arguments, Input::Nothing)
    }

    fn tell<A: Into<OsString>>(
        &self,
        command: &'static str,
        arguments: impl IntoIterator<Item = A>,
        stdin: Input,
    ) -> Result<String, DispatchError> {
        let mut line = CommandLine::new("tmux", Vec::<OsString>::new());
        let here = Path::new("/");
        line.resolve(here).map_err(|_| DispatchError::NoTmux)?;
        if let Some(socket) = &self.socket {
            line.append([OsString::from("-S"), socket.clone().into_os_string()]);
        }
        line.append(arguments.into_iter().map(|argument| no_separator(argument.into())));
        let mut launch = Launch::new(line, here);
        launch.stdin = stdin;
        let output = process::run(launch)?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if output.exit.success() {
            return Ok(text(&output.stdout));
        }
        let said = crate::term::harmless(text(&output.stderr).trim());
        Err(DispatchError::Refused { command, said })
    }
}

/// A pane that was there before us, and what runs in it.
pub(crate) struct Adopted {
    pub(crate) pane: Pane,
    pub(crate) program: String,
    pub(crate) directory: PathBuf,
}

struct Found {
    id: String,
    socket: PathBuf,
    program: String,
    directory: PathBuf,
}

/// Do we run in this pane? What is typed there would come to us.
fn is_our_own(id: &str, socket: &str) -> bool {
    let set = |name: &str| std::env::var(name).unwrap_or_default();
    let server = set("TMUX");
    set("TMUX_PANE") == id && server.split(',').next() == Some(socket)
}

/// Two words at least, or tmux would give the only one to a shell.
fn respawn(pane: &Pane, window: &Window<'_>) -> Vec<OsString> {
    let directory = literal(&window.directory.to_string_lossy());
    let mut words: Vec<OsString> =
        ["respawn-pane", "-k", "-t", &pane.id, "-c", &directory].map(OsString::from).to_vec();
    for (name, value) in window.env {
        words.extend(["-e".into(), format!("{name}={value}").into()]);
    }
    words.extend(["--".into(), "env".into(), window.command.program.clone()]);
    words.extend(window.command.args.iter().cloned());
    words
}

/// For tmux an argument that ends in a semicolon ends a command.
fn no_separator(argument: OsString) -> OsString {
    let Some(text) = argument.to_str().and_then(|text| text.strip_suffix(';')) else { return argument };
    format!("{text}\\;").into()
}

/// Text that tmux would otherwise read as a format.
fn literal(text: &str) -> String {
    text.replace('#', "##")
}

/// How often a session is asked for if the server ends instead of making it.
const STARTS: usize = 3;

/// How often tmux is asked how a program ended before that stays unknown. The first program that tmux runs for us tells
/// it nearly always; a program on a busy machine may need a while between closing its terminal and its end.
const LOOKS: usize = 200;

impl Pane {
    fn server(&self) -> Tmux {
        Tmux { socket: Some(self.socket.clone()) }
    }

    fn ask(&self, command: &'static str, more: &[&str]) -> Result<String, DispatchError> {
        self.server().ask(command, [command, "-t", &self.id].iter().chain(more))
    }

    pub(crate) fn life(&self) -> Result<Life, DispatchError> {
        for _ in 0..LOOKS {
            let life = self.look()?;
            if life != Life::Ended(String::new()) {
                return Ok(life);
            }
            // Tmux 3.3 sometimes misses the signal that a program has ended, and leaves it unreaped until the next
            // program of its own ends. So it gets one that ends at once.
            self.server().ask("run-shell", ["run-shell", "true"])?;
        }
        Ok(Life::Ended("its program ended".to_owned()))
    }

    /// Ended without a word where it has closed its end, but tmux does not know yet how it ended.
    fn look(&self) -> Result<Life, DispatchError> {
        let format = format!("#{{{MARK}}} #{{pane_dead}} #{{pane_dead_status}} #{{pane_dead_signal}}");
        let said = match self.ask("display-message", &["-p", &format]) {
            Ok(said) => said,
            Err(DispatchError::Refused { .. }) => return Ok(Life::Closed),
            Err(error) => return Err(error),
        };
        let words: Vec<&str> = said.trim_end_matches('\n').split(' ').collect();
        Ok(match words.as_slice() {
            [token, "1", "", ""] if *token == self.token => Life::Ended(String::new()),
            [token, "1", "", signal] if *token == self.token => {
                Life::Ended(format!("its program was ended by signal {signal}"))
            }
            [token, "1", status, ..] if *token == self.token => {
                Life::Ended(format!("its program ended with exit code {status}"))
            }
            [token, ..] if *token == self.token => Life::Alive,
            _ => Life::Closed,
        })
    }

    /// The process of the program that was started in it.
    pub(crate) fn program(&self) -> Option<u32> {
        self.ask("display-message", &["-p", "#{pane_pid}"]).ok()?.trim().parse().ok()
    }

    /// What can be seen now.
    pub(crate) fn screen(&self) -> Result<String, DispatchError> {
        Ok(crate::term::harmless(&self.ask("capture-pane", &["-p"])?))
    }

    /// What can be seen and what has scrolled away, with lines that tmux broke put together.
    pub(crate) fn history(&self) -> Result<String, DispatchError> {
        Ok(crate::term::harmless(&self.ask("capture-pane", &["-p", "-J", "-S", "-"])?))
    }

    /// Types a text as one paste, without the key that sends it off.
    pub(crate) fn paste(&self, text: &str) -> Result<(), DispatchError> {
        let buffer = format!("wiggum-{}", self.token);
        let load = ["load-buffer", "-b", &buffer, "-"];
        self.server().tell("load-buffer", load, Input::Bytes(text.as_bytes().to_vec()))?;
        self.ask("paste-buffer", &["-p", "-d", "-b", &buffer]).map(drop)
    }

    pub(crate) fn press_enter(&self) -> Result<(), DispatchError> {
        self.ask("send-keys", &["Enter"]).map(drop)
    }

    pub(crate) fn press_escape(&self) -> Result<(), DispatchError> {
        self.ask("send-keys", &["Escape"]).map(drop)
    }

    /// Has all that the program writes copied into this pipe from now on. This is the one line that
    /// tmux gives to a shell.
    pub(crate) fn copy_output(&self, pipe: &Path) -> Result<(), DispatchError> {
        let quoted = CommandLine::new("exec", ["cat"]).to_string();
        let path = pipe.to_string_lossy().replace('\'', r"'\''").replace('%', "%%");
        self.ask("pipe-pane", &["-O", &format!("{quoted} > '{}'", literal(&path))]).map(drop)
    }

    pub(crate) fn stop_copying(&self) {
        // Of a pane that is gone nothing is copied.
        drop(self.ask("pipe-pane", &[]));
    }

    /// The command by which a person looks at it.
    pub(crate) fn attach_command(&self) -> Result<CommandLine, DispatchError> {
        let window = self.ask("display-message", &["-p", "#{session_name}:#{window_id}"])?;
        let socket = self.socket.to_string_lossy().into_owned();
        Ok(CommandLine::new("tmux", ["-S", &socket, "attach-session", "-t", window.trim_end()]))
    }

    /// Gives up a pane that was adopted.
    pub(crate) fn let_go(&self) {
        // It may be closed already.
        drop(self.ask("set-option", &["-p", "-u", MARK]));
    }

    pub(crate) fn close(&self) {
        // It may be closed already.
        drop(self.ask("kill-pane", &[]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_never_end_a_command_of_tmux() {
        let check = |argument: &str, expected: &str| assert_eq!(no_separator(argument.into()), expected);
        check("a;", "a\\;");
        check(";", "\\;");
        check("a;b", "a;b");
        check("", "");
    }
}
