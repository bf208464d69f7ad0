//! `wiggum hook …`: a hook's question on standard input, our answer on standard output.
//!
//! Called many times a day by programs that wait, so it comes before the command line is parsed. It
//! always exits with 0; what went wrong is said in the answer, which then lets the agent go on.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt::Display;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};
use wiggum_core::event::EndReason;
use wiggum_engine::error::chain;

use super::judge::{self, Verdict};
use super::progress::Mark;
use super::slash::{self, Action, SlashCommand};
use super::state::{self, Agent, Answered, Place, Session, SessionError, SessionId};
use super::transcript::Transcript;
use super::turn::{self, Turn};
use super::{checks, ralph_file};
use crate::config::{self, Flags, Sources};
use crate::term;

/// What an agent tells its hooks, of which we need this.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Asked {
    session_id: Option<String>,
    transcript_path: Option<PathBuf>,
    cwd: Option<PathBuf>,
    hook_event_name: Option<String>,
    /// Only of sub-agents.
    agent_id: Option<Value>,
    /// Only from Codex.
    turn_id: Option<Value>,
    last_assistant_message: Option<String>,
    prompt: Option<String>,
    /// What the agent left running and will be told the end of.
    background_tasks: Option<Vec<Value>>,
}

enum Answer {
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
    let watchdog = Watchdog::start();
    std::panic::set_hook(Box::new(|panic| {
        say(&Answer::Note(our_fault(&format!("a mistake in wiggum itself: {panic}"))));
        std::process::exit(0);
    }));
    let answer = answer(&event.to_string_lossy(), &watchdog)
        .unwrap_or_else(|problem| Answer::Note(our_fault(&problem)));
    say(&answer);
    ExitCode::SUCCESS
}

fn our_fault(problem: &dyn Display) -> String {
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

/// Ends the whole program with an answer when something takes too long: a lock that is held, an
/// input that never ends.
struct Watchdog {
    more: Sender<Duration>,
}

/// Enough for anything but checks.
const PATIENCE: Duration = Duration::from_secs(10);

impl Watchdog {
    fn start() -> Self {
        let (more, extended) = channel();
        let watch = move || {
            let mut left = PATIENCE;
            loop {
                match extended.recv_timeout(left) {
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
        Self { more }
    }

    fn extend(&self, by: Duration) {
        // A watchdog that could not be started needs no more time.
        let _ = self.more.send(by);
    }
}

/// Our own failures in words.
type Problem = String;

fn answer(name: &str, watchdog: &Watchdog) -> Result<Answer, Problem> {
    let call = match name {
        "stop" => stop,
        "user-prompt-submit" => prompt_submitted,
        "session-end" => session_ended,
        "nudge" => return Ok(nudge()),
        _ => {
            return Err(format!(
                "there is no hook `{name}`; there are stop, user-prompt-submit, session-end and nudge"
            ));
        }
    };
    let asked = read_question()?;
    let subagent = asked.agent_id.is_some() || asked.hook_event_name.as_deref() == Some("SubagentStop");
    if subagent {
        return Ok(Answer::Silence);
    }
    let Some(id) = &asked.session_id else { return Err("the hook was given no session id".to_owned()) };
    let id = SessionId::parse(id).map_err(|error| chain(&error))?;
    call(&asked, &id, watchdog)
}

/// What somebody wants to say to the agent of a loop, after one of its tool calls.
fn nudge() -> Answer {
    let Some(prefix) = std::env::var_os(wiggum_engine::nudge::VARIABLE) else { return Answer::Silence };
    let said = wiggum_engine::nudge::take(Path::new(&prefix));
    if said.is_empty() { Answer::Silence } else { Answer::Nudge { context: said.join("\n\n") } }
}

/// More than any message; a larger question is not one.
const LARGEST_QUESTION: u64 = 32 * 1024 * 1024;

fn read_question() -> Result<Asked, Problem> {
    let mut bytes = Vec::new();
    let mut stdin = std::io::stdin().lock().take(LARGEST_QUESTION + 1);
    stdin.read_to_end(&mut bytes).map_err(|error| format!("cannot read the hook's input: {error}"))?;
    if bytes.len() as u64 > LARGEST_QUESTION {
        return Err("the hook's input is too large".to_owned());
    }
    serde_json::from_slice(&bytes).map_err(|error| format!("the hook's input is not understood: {error}"))
}

impl Asked {
    /// Where this session is at home: its project, then where it happens to be.
    fn directories(&self) -> Vec<PathBuf> {
        let project = std::env::var_os("CLAUDE_PROJECT_DIR").map(PathBuf::from);
        let here = self.cwd.clone().or_else(|| std::env::current_dir().ok());
        project.into_iter().chain(here).filter(|directory| directory.is_absolute()).collect()
    }

    fn agent(&self) -> Agent {
        if self.turn_id.is_some() {
            Agent::Codex
        } else if std::env::var_os("CLAUDECODE").is_some() {
            Agent::Claude
        } else {
            Agent::Other
        }
    }

    fn find(&self, id: &SessionId) -> Option<Place> {
        Place::find(id, self.directories().iter().map(PathBuf::as_path))
    }

    /// The workspace of a loop that begins here.
    fn workspace(&self) -> Result<PathBuf, Problem> {
        let directories = self.directories();
        let directory = directories.first().ok_or("the hook was given no directory")?;
        Ok(state::workspace_of(directory).to_owned())
    }
}

fn stop(asked: &Asked, id: &SessionId, watchdog: &Watchdog) -> Result<Answer, Problem> {
    let now = Timestamp::now();
    let place = match asked.find(id) {
        Some(place) => place,
        None => match take_over(asked, id, now)? {
            Some(place) => place,
            None => return Ok(Answer::Silence),
        },
    };
    let words = |error: SessionError| chain(&error);
    let _lock = place.lock().map_err(words)?;
    let mut session = place.load().map_err(words)?;
    if session.ended.is_some() {
        return farewell(&place, &mut session, now);
    }
    if session.agent == Agent::Other {
        // Started from outside, where it is not known whose session it is.
        session.agent = asked.agent();
    }
    let mut transcript = asked.transcript_path.as_deref().and_then(|path| Transcript::open(path).ok());
    let length = transcript.as_ref().map_or(0, |transcript| transcript.length);
    let message = message(asked, transcript.as_mut());
    let same = |answered: &mut Answered| now < answered.at && answered.message == hash(&message);
    if let Some(answered) = session.seen.answered.take_if(same) {
        // Asked before we had answered, so it is about the same stop, as when two installations call
        // us. Only once, or a clock that goes backwards could send an agent back for ever.
        place.save(&session).map_err(words)?;
        return Ok(Answer::Block { reason: answered.reason, note: None });
    }
    let used_tools = transcript
        .is_some_and(|mut transcript| transcript.used_tools_since(session.seen.transcript).unwrap_or(false));
    let waits = asked.background_tasks.as_ref().is_some_and(|tasks| !tasks.is_empty());
    if !session.verify.is_empty() {
        watchdog.extend(checks::BUDGET + PATIENCE);
    }
    let trouble = turn::trouble(&message);
    let turn = Turn { message: &message, trouble, used_tools, waits, cap: cap(session.agent) };
    let Some(mut verdict) = turn.judge(&place, &mut session, now) else {
        return farewell(&place, &mut place.load().map_err(words)?, now);
    };
    session.seen.transcript = length;
    session.seen.answered = match &verdict {
        Verdict::Block { reason, .. } => {
            Some(Answered { message: hash(&message), at: Timestamp::now(), reason: reason.clone() })
        }
        Verdict::Release { .. } => None,
    };
    if let Err(error) = place.save(&session) {
        // A block that is not counted could go on for ever.
        verdict = Verdict::Release { note: our_fault(&chain(&error)) };
    }
    Ok(match verdict {
        Verdict::Block { reason, note } => Answer::Block { reason, note: Some(note) },
        Verdict::Release { note } => Answer::Note(note),
    })
}

/// A loop that is over says so once, if it was ended from outside.
fn farewell(place: &Place, session: &mut Session, now: Timestamp) -> Result<Answer, Problem> {
    let cancelled =
        session.ended.as_mut().filter(|ended| ended.reason == EndReason::ExplicitStop && session.working);
    let Some(ended) = cancelled else { return Ok(Answer::Silence) };
    ended.at = now;
    let note = format!("wiggum: {}", ended.detail);
    session.working = false;
    place.save(session).map_err(|error| chain(&error))?;
    Ok(Answer::Note(note))
}

/// Goes on with the loop of the plugin that runs in this session, if there is one.
fn take_over(asked: &Asked, id: &SessionId, now: Timestamp) -> Result<Option<Place>, Problem> {
    let workspace = asked.workspace()?;
    let Some(found) = ralph_file::find(&workspace, id).map_err(|error| chain(&error))? else {
        return Ok(None);
    };
    let place = Place::new(&workspace, id);
    let mut session = found.session(id, asked.agent(), now);
    session.verify = configured_checks(&workspace)?;
    place.begin(&session).map_err(|error| chain(&error))?;
    found.put_aside(&place).map_err(|error| format!("cannot move {}: {error}", found.path.display()))?;
    Ok(Some(place))
}

/// What the agent said last.
fn message(asked: &Asked, transcript: Option<&mut Transcript>) -> String {
    let told = asked.last_assistant_message.clone().filter(|message| !message.trim().is_empty());
    let read = || transcript?.last_message().ok()?;
    told.or_else(read).unwrap_or_default()
}

fn hash(message: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    message.hash(&mut hasher);
    hasher.finish()
}

/// Measured: Claude Code overrides the ninth block in a row and ends with an empty result.
const CLAUDE_CAP: u32 = 8;

fn cap(agent: Agent) -> Option<u32> {
    if agent != Agent::Claude {
        return None;
    }
    let told = std::env::var("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP").ok().and_then(|cap| cap.trim().parse().ok());
    Some(told.unwrap_or(CLAUDE_CAP)).filter(|cap| *cap > 0)
}

fn prompt_submitted(asked: &Asked, id: &SessionId, watchdog: &Watchdog) -> Result<Answer, Problem> {
    let Some((command, arguments)) = asked.prompt.as_deref().and_then(slash::called) else {
        return set_working(asked, id, true);
    };
    match command.action {
        Action::Start => begin(asked, id, command, arguments),
        Action::Cancel => cancel(asked, id),
        Action::Show(arguments) => {
            watchdog.extend(PATIENCE * 6);
            show(asked, arguments)
        }
    }
}

fn begin(asked: &Asked, id: &SessionId, command: &SlashCommand, arguments: &str) -> Result<Answer, Problem> {
    let mut start = match slash::parse(arguments) {
        Ok(start) => start,
        Err(error) => {
            let usage = format!("usage: /{} {}", command.name, command.arguments);
            return Ok(Answer::Block { reason: format!("wiggum: {error}\n{usage}"), note: None });
        }
    };
    let workspace = asked.workspace()?;
    if start.verify.is_empty() {
        start.verify = configured_checks(&workspace)?;
    }
    let mut session = Session::new(id, asked.agent(), start, Timestamp::now());
    session.seen.mark = Some(Mark::of(&workspace));
    session.seen.transcript =
        asked.transcript_path.as_deref().and_then(|path| Some(path.metadata().ok()?.len())).unwrap_or(0);
    Place::new(&workspace, id).begin(&session).map_err(|error| chain(&error))?;
    Ok(Answer::Context {
        note: format!("wiggum: the loop is on, iteration {}", session.progress()),
        context: format!(
            "The options of the command are for the loop, not for you. {}",
            judge::opening(&session)
        ),
    })
}

fn cancel(asked: &Asked, id: &SessionId) -> Result<Answer, Problem> {
    let place = asked.find(id);
    let active = match &place {
        Some(place) => place.load().map_err(|error| chain(&error))?.ended.is_none(),
        None => false,
    };
    let Some(place) = place.filter(|_| active) else {
        return Ok(Answer::Block { reason: "wiggum: no loop runs in this session".to_owned(), note: None });
    };
    let words = |error: SessionError| chain(&error);
    place.cancel().map_err(words)?;
    let session = place.load().map_err(words)?;
    let detail = session.ended.map(|ended| ended.detail).unwrap_or_default();
    Ok(Answer::Block { reason: format!("wiggum: {detail}"), note: None })
}

/// Answers with what a command of ours prints, so that the agent need not be asked.
fn show(asked: &Asked, arguments: &[&str]) -> Result<Answer, Problem> {
    use wiggum_workspace::process::{CommandLine, Launch, run};
    let program =
        std::env::current_exe().map_err(|error| format!("cannot find this program's own path: {error}"))?;
    let launch = Launch::new(CommandLine::new(program, arguments), asked.workspace()?);
    let output = run(launch).map_err(|error| chain(&error))?;
    let text = if output.exit.success() { output.stdout } else { output.stderr };
    Ok(Answer::Block { reason: String::from_utf8_lossy(&text).trim_end().to_owned(), note: None })
}

fn session_ended(asked: &Asked, id: &SessionId, _: &Watchdog) -> Result<Answer, Problem> {
    set_working(asked, id, false)
}

/// Keeps what `wiggum status` shows true; a session without a loop has nothing to keep.
fn set_working(asked: &Asked, id: &SessionId, working: bool) -> Result<Answer, Problem> {
    let Some(place) = asked.find(id) else { return Ok(Answer::Silence) };
    let words = |error: SessionError| chain(&error);
    let _lock = place.lock().map_err(words)?;
    let mut session = place.load().map_err(words)?;
    if session.ended.is_none() && session.working != working {
        session.working = working;
        session.updated_at = Timestamp::now();
        place.save(&session).map_err(words)?;
    }
    Ok(Answer::Silence)
}

/// The checks of `wiggum.toml` and the user's own configuration, as they are when the loop begins.
pub(crate) fn configured_checks(workspace: &Path) -> Result<Vec<String>, Problem> {
    let variables = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let env: BTreeMap<String, String> = variables.collect();
    let flags = Flags::default();
    let sources = Sources { workspace, user_file: config::user_file(&env), env: &env, flags: &flags };
    let config = config::resolve(&sources).map_err(|problems| problems.to_string())?;
    Ok(config.policy.checks.verify)
}
