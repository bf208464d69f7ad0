//! `wiggum hook …`: a hook's question on standard input, our answer on standard output.
//!
//! Called many times a day by programs that wait, so it comes before the command line is parsed. It
//! always exits with 0; what went wrong is said in the answer, which then lets the agent go on.

use std::cell::OnceCell;
use std::error::Error;
use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, retry_on_intr};
use serde::Deserialize;
use serde_json::{Value, json};
use wiggum_engine::error::chain;

use super::state::{self, Agent, Place, SessionId};
use super::{prompt, stop};
use crate::term;

/// What an agent tells its hooks, of which we need this.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Asked {
    session_id: Option<String>,
    pub(super) transcript_path: Option<PathBuf>,
    cwd: Option<PathBuf>,
    hook_event_name: Option<String>,
    /// Only of sub-agents.
    agent_id: Option<Value>,
    /// Only from Codex.
    turn_id: Option<Value>,
    /// Only from Claude Code.
    prompt_id: Option<Value>,
    pub(super) last_assistant_message: Option<String>,
    /// What kind of failure ended the turn.
    pub(super) error: Option<String>,
    pub(super) prompt: Option<String>,
    /// What the agent left running and will be told the end of.
    pub(super) background_tasks: Option<Vec<Value>>,
}

pub(super) enum Answer {
    /// Nothing of ours to say.
    Silence,
    /// Let it happen, and tell the user.
    Note(String),
    /// Sent back, or for a prompt: not passed on to the agent.
    Block { reason: String, note: Option<String> },
    /// Something for the agent to know, after a tool call.
    Nudge { context: String },
    /// Let the prompt through, with something for the agent to know.
    Context { context: String, note: String },
}

/// Runs the hook that was named, and answers it whatever happens.
pub(crate) fn run(event: &OsStr) -> ExitCode {
    let watchdog = Watchdog::default();
    // Whatever hangs, a file system that does not answer included, must not hold up the session.
    watchdog.allow(PATIENCE * 2);
    std::panic::set_hook(Box::new(|panic| {
        say(&Answer::Note(our_fault(&format!("a mistake in wiggum itself: {panic}"))));
        std::process::exit(0);
    }));
    let answer = answer(&event.to_string_lossy(), &watchdog)
        .unwrap_or_else(|problem| Answer::Note(our_fault(&problem)));
    say(&answer);
    ExitCode::SUCCESS
}

pub(super) fn our_fault(problem: &dyn fmt::Display) -> String {
    format!("wiggum: the loop is not in force: {problem}")
}

/// Two of us may want to answer, the one who works and the one who watches the clock: the first does.
fn say(answer: &Answer) {
    static SAID: AtomicBool = AtomicBool::new(false);
    if SAID.swap(true, Ordering::SeqCst) {
        return;
    }
    let value = match answer {
        Answer::Silence => return,
        Answer::Note(note) => json!({ "systemMessage": note }),
        Answer::Block { reason, note: None } => json!({ "decision": "block", "reason": reason }),
        Answer::Block { reason, note: Some(note) } => {
            json!({ "decision": "block", "reason": reason, "systemMessage": note })
        }
        Answer::Nudge { context } => json!({
            "hookSpecificOutput": { "hookEventName": "PostToolUse", "additionalContext": context },
        }),
        Answer::Context { context, note } => json!({
            "systemMessage": note,
            "hookSpecificOutput": { "hookEventName": "UserPromptSubmit", "additionalContext": context },
        }),
    };
    term::print(&format!("{value}\n"));
}

/// Ends the whole program with an answer when something takes too long: a lock that is held, a check.
#[derive(Default)]
pub(super) struct Watchdog {
    more: OnceCell<Sender<Duration>>,
}

/// Enough for anything but checks.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

impl Watchdog {
    /// From now on there is this much time.
    pub(super) fn allow(&self, time: Duration) {
        if let Some(more) = self.more.get() {
            // A watchdog that could not be started needs no more time.
            let _ = more.send(time);
            return;
        }
        let (more, allowed) = channel();
        let watch = move || {
            let mut left = time;
            loop {
                match allowed.recv_timeout(left) {
                    Ok(more) => left = more,
                    Err(RecvTimeoutError::Disconnected) => return,
                    Err(RecvTimeoutError::Timeout) => {
                        say(&Answer::Note(our_fault(&"the hook took too long")));
                        std::process::exit(0);
                    }
                }
            }
        };
        // Without it the agent's own time limit for hooks must do.
        drop(std::thread::Builder::new().spawn(watch));
        drop(self.more.set(more));
    }
}

/// A failure of ours, in words.
#[derive(Debug)]
pub(crate) struct Problem(String);

impl Problem {
    pub(super) fn new(words: impl Into<String>) -> Self {
        Self(words.into())
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<E: Error> From<E> for Problem {
    fn from(error: E) -> Self {
        Self(chain(&error))
    }
}

fn answer(name: &str, watchdog: &Watchdog) -> Result<Answer, Problem> {
    let call = match name {
        "stop" => stop::stop,
        "stop-failure" => stop::failed,
        "user-prompt-submit" => prompt::submitted,
        "session-end" => prompt::session_ended,
        "nudge" => return Ok(nudge()),
        _ => {
            let there = "there are stop, stop-failure, user-prompt-submit, session-end and nudge";
            return Err(Problem::new(format!("there is no hook `{name}`; {there}")));
        }
    };
    let asked = read_question()?;
    let subagent = asked.agent_id.is_some() || asked.hook_event_name.as_deref() == Some("SubagentStop");
    if subagent {
        return Ok(Answer::Silence);
    }
    let Some(id) = &asked.session_id else { return Err(Problem::new("the hook was given no session id")) };
    let id = SessionId::parse(id)?;
    call(&asked, &id, watchdog)
}

/// What somebody wants to say to the agent of a loop, after one of its tool calls.
fn nudge() -> Answer {
    let Some(prefix) = std::env::var_os(wiggum_engine::nudge::VARIABLE) else { return Answer::Silence };
    let said = wiggum_engine::nudge::take(Path::new(&prefix));
    if said.is_empty() { Answer::Silence } else { Answer::Nudge { context: said.join("\n\n") } }
}

/// More than any message; a larger question is not one.
const LARGEST_QUESTION: usize = 32 * 1024 * 1024;

fn read_question() -> Result<Asked, Problem> {
    let unreadable = |error: Errno| Problem::new(format!("cannot read the hook's input: {error}"));
    let until = Instant::now() + PATIENCE;
    let stdin = std::io::stdin();
    let mut bytes = Vec::new();
    let mut piece = [0; 8 * 1024];
    while bytes.len() <= LARGEST_QUESTION {
        let left = until.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).ok();
        let ready = retry_on_intr(|| poll(&mut [PollFd::new(&stdin, PollFlags::IN)], left.as_ref()));
        if ready.map_err(unreadable)? == 0 {
            return Err(Problem::new("the hook's input took too long"));
        }
        match retry_on_intr(|| rustix::io::read(&stdin, &mut piece)).map_err(unreadable)? {
            0 => break,
            length => bytes.extend_from_slice(&piece[..length]),
        }
    }
    if bytes.len() > LARGEST_QUESTION {
        return Err(Problem::new("the hook's input is too large"));
    }
    serde_json::from_slice(&bytes)
        .map_err(|error| Problem::new(format!("the hook's input is not understood: {error}")))
}

impl Asked {
    /// Where this session is at home: its project, then where it happens to be.
    fn directories(&self) -> Vec<PathBuf> {
        let project = std::env::var_os("CLAUDE_PROJECT_DIR").map(PathBuf::from);
        let here = self.cwd.clone().or_else(|| std::env::current_dir().ok());
        project.into_iter().chain(here).filter(|directory| directory.is_absolute()).collect()
    }

    /// Which of the user's prompts this is about, should several hooks be asked about it.
    pub(super) fn prompt_id(&self) -> Option<String> {
        self.prompt_id.as_ref().or(self.turn_id.as_ref()).map(ToString::to_string)
    }

    pub(super) fn agent(&self) -> Agent {
        if self.turn_id.is_some() {
            Agent::Codex
        } else if std::env::var_os("CLAUDECODE").is_some() {
            Agent::Claude
        } else {
            Agent::Other
        }
    }

    pub(super) fn find(&self, id: &SessionId) -> Option<Place> {
        Place::find(id, self.directories().iter().map(PathBuf::as_path))
    }

    /// The workspace of a loop that begins here.
    pub(super) fn workspace(&self) -> Result<PathBuf, Problem> {
        let directories = self.directories();
        let directory = directories.first().ok_or_else(|| Problem::new("the hook was given no directory"))?;
        Ok(state::workspace_of(directory).to_owned())
    }
}
