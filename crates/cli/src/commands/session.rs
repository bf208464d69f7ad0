//! `wiggum session`: loops inside an agent's own session, from outside of it.

use std::path::Path;
use std::process::ExitCode;

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use wiggum_engine::error::chain;

use crate::args::{OutputArgs, SessionCommand, SessionStart, SessionWhich, TaskGuards};
use crate::commands::{print_json, run};
use crate::failure::Failure;
use crate::narrate::elapsed;
use crate::session::progress::Mark;
use crate::session::prompt::configured_checks;
use crate::session::slash;
use crate::session::state::{self, Agent, Place, Session, SessionError, SessionId, Start};
use crate::term::{self, Style};
use wiggum_engine::words::one_line;

pub(crate) fn session(command: &SessionCommand) -> Result<ExitCode, Failure> {
    match command {
        SessionCommand::Start(args) => start(args),
        SessionCommand::Cancel(args) => cancel(args),
        SessionCommand::Status(args) => status(args),
    }
}

fn start(args: &SessionStart) -> Result<ExitCode, Failure> {
    let id = caller(&args.which).ok_or_else(|| {
        Failure::usage("which session?")
            .hint("name it: `wiggum session start --session ID`; inside Claude Code and Codex it is found")
    })?;
    let id = SessionId::parse(&id)?;
    let workspace = run::workspace()?;
    let start = task(&args.prompt, &args.guards, &workspace)?;
    let inside = |variable: &str| std::env::var_os(variable).is_some();
    let agent = if inside("CLAUDECODE") {
        Agent::Claude
    } else if inside(CODEX_SESSION) {
        Agent::Codex
    } else {
        Agent::Other
    };
    let mut session = Session::new(&id, agent, start, Timestamp::now());
    session.seen.mark = Some(Mark::of(&workspace));
    Place::new(&workspace, &id).begin(&session, || {})?;
    if args.which.output.json {
        return print_json(&Block::of(&session));
    }
    Ok(term::print(&format!("the loop is on in session {id}: iteration {}\n", session.progress())))
}

/// In the environment of what Codex runs.
const CODEX_SESSION: &str = "CODEX_SESSION_ID";

/// The session that was named, or the one that calls us.
fn caller(which: &SessionWhich) -> Option<String> {
    which.id.clone().or_else(|| std::env::var(CODEX_SESSION).ok()).filter(|id| !id.is_empty())
}

/// A task with its guards, as it is begun in this workspace.
pub(crate) fn task(prompt: &str, guards: &TaskGuards, workspace: &Path) -> Result<Start, Failure> {
    let promise = guards.completion_promise.as_deref().map(slash::promise).transpose();
    let completion_promise =
        promise.map_err(|error| Failure::usage(format!("--completion-promise: {error}")))?;
    if prompt.trim().is_empty() {
        return Err(Failure::usage("the task is empty").hint("say what is to be done"));
    }
    let verify = if guards.verify.is_empty() {
        configured_checks(workspace).map_err(|problem| Failure::usage(problem.to_string()))?
    } else {
        guards.verify.clone()
    };
    for command in &verify {
        run::resolvable(workspace, command, "verify command")?;
    }
    Ok(Start {
        prompt: prompt.to_owned(),
        max_iterations: guards.max_iterations,
        completion_promise,
        verify,
        plan: guards.plan.clone(),
        complete_without_claim: guards.complete_without_claim,
        no_progress_limit: guards.no_progress,
        same_error_limit: guards.same_error,
    })
}

fn cancel(args: &SessionWhich) -> Result<ExitCode, Failure> {
    let workspace = run::workspace()?;
    let active = |session: &Session| session.ended.is_none();
    let id = match caller(args) {
        Some(id) => SessionId::parse(&id)?,
        None => only_active(&workspace)?,
    };
    let place = Place::new(&workspace, &id);
    if !place.file().exists() || !active(&place.load()?) {
        return Err(Failure::usage(format!("no loop runs in session {id}"))
            .hint("`wiggum session status` lists them"));
    }
    place.cancel()?;
    let session = place.load()?;
    if args.output.json {
        return print_json(&Block::of(&session));
    }
    Ok(term::print(&format!("the loop of session {id} is cancelled: it may stop\n")))
}

fn only_active(workspace: &Path) -> Result<SessionId, Failure> {
    let active: Vec<Session> =
        state::all(workspace).into_iter().flatten().filter(|session| session.ended.is_none()).collect();
    match active.as_slice() {
        [only] => Ok(SessionId::parse(&only.session_id)?),
        [] => {
            Err(Failure::usage("no loop runs in any session here").hint("`wiggum session status` lists them"))
        }
        several => {
            let ids: Vec<&str> = several.iter().map(|session| session.session_id.as_str()).collect();
            Err(Failure::usage(format!("several sessions have a loop: {}", ids.join(", ")))
                .hint("name one: `wiggum session cancel --session ID`"))
        }
    }
}

fn status(args: &OutputArgs) -> Result<ExitCode, Failure> {
    let sessions = state::all(&run::workspace()?);
    if args.json {
        return print_json(&shown(&sessions).collect::<Vec<_>>());
    }
    if sessions.is_empty() {
        return Ok(term::print("no loops in sessions here: `/ralph-loop` in an agent starts one\n"));
    }
    Ok(term::print(&blocks(&sessions, Timestamp::now(), Style::for_stdout()).join("\n")))
}

/// The sessions of the last day: an agent that was killed never says so, and who asks what goes on is
/// not interested in last week's.
pub(crate) fn recent(workspace: &Path, now: Timestamp) -> Vec<Result<Session, SessionError>> {
    let recent = |session: &Session| now.duration_since(session.updated_at) < DAY;
    let mut sessions = state::all(workspace);
    sessions.retain(|session| session.as_ref().map_or(true, recent));
    sessions
}

const DAY: SignedDuration = SignedDuration::from_hours(24);

/// A session as other programs see it.
#[derive(Serialize)]
pub(crate) struct Block<'a> {
    kind: &'static str,
    session_id: &'a str,
    agent: &'a str,
    state: &'static str,
    current_iteration: u32,
    max_iterations: Option<u32>,
    prompt: &'a str,
    last_action: &'a str,
    started_at: Timestamp,
    updated_at: Timestamp,
    termination_reason: Option<&'static str>,
    detail: Option<&'a str>,
}

impl<'a> Block<'a> {
    pub(crate) fn of(session: &'a Session) -> Self {
        let ended = session.ended.as_ref();
        Self {
            kind: "session",
            session_id: &session.session_id,
            agent: session.agent.name(),
            state: word(session),
            current_iteration: session.iteration,
            max_iterations: Some(session.max_iterations).filter(|max| *max > 0),
            prompt: &session.prompt,
            last_action: &session.last,
            started_at: session.started_at,
            updated_at: session.updated_at,
            termination_reason: ended.map(|ended| ended.reason.name()),
            detail: ended.map(|ended| ended.detail.as_str()),
        }
    }
}

/// Those that can be read, for other programs.
pub(crate) fn shown(sessions: &[Result<Session, SessionError>]) -> impl Iterator<Item = Block<'_>> {
    sessions.iter().flatten().map(Block::of)
}

pub(crate) fn word(session: &Session) -> &'static str {
    if session.working && session.ended.is_none() { "WORKING" } else { "READY" }
}

/// One block per session, for people.
pub(crate) fn blocks(
    sessions: &[Result<Session, SessionError>],
    now: Timestamp,
    style: Style,
) -> Vec<String> {
    let block = |session: &Result<Session, SessionError>| match session {
        Ok(session) => block(session, now, style),
        Err(error) => format!("{} {}\n", style.red("broken:"), chain(error)),
    };
    sessions.iter().map(block).collect()
}

fn block(session: &Session, now: Timestamp, style: Style) -> String {
    let state = match word(session) {
        "WORKING" => style.green("WORKING"),
        word => style.yellow(word),
    };
    let who = format!("{} {}", style.bold(session.agent.name()), one_line(&session.session_id));
    lines(&who, &state, session, now, style).join("\n") + "\n"
}

/// What is told of whoever works on a task.
pub(crate) fn lines(who: &str, state: &str, session: &Session, now: Timestamp, style: Style) -> Vec<String> {
    let mut lines = vec![
        format!("{who} - {state}  {}", style.dim(&one_line(&wiggum_core::text::clip(&session.prompt, 60)))),
        format!(
            "  Ralph: iteration {}, last: \"{}\", {} ago",
            session.progress(),
            one_line(&session.last),
            elapsed(session.updated_at, now)
        ),
    ];
    if let Some(ended) = &session.ended {
        lines.push(format!("  ended: {} ({})", one_line(&ended.detail), ended.reason.name()));
    }
    lines
}

impl From<SessionError> for Failure {
    fn from(error: SessionError) -> Self {
        match &error {
            SessionError::Id { .. } => {
                Self::usage(chain(&error)).hint("the agent tells its hooks the session's id")
            }
            SessionError::Broken { path, .. } | SessionError::Version { path, .. } => {
                let hint = format!("remove {} to forget that session", path.display());
                Self::other(chain(&error)).hint(hint)
            }
            SessionError::File { .. } => Self::other(chain(&error))
                .hint("check that the directory is writable and the disk is not full"),
        }
    }
}
