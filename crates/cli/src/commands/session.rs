//! `wiggum session`: loops inside an agent's own session, from outside of it.

use std::path::Path;
use std::process::ExitCode;

use jiff::Timestamp;
use wiggum_engine::error::chain;

use crate::args::{OutputArgs, SessionCheckpoint, SessionCommand, SessionStart, SessionWhich, TaskGuards};
use crate::commands::{print_json, run};
use crate::dispatch::roster::Roster;
use crate::failure::Failure;
use crate::session::progress::Mark;
use crate::session::rules::{self, LoopOptions, Rules};
use crate::session::show::{self, Block, Whole};
use crate::session::state::{self, Agent, Place, Session, SessionError, SessionId};
use crate::session::{observe, prompt, slash, usage};
use crate::term::{self, Style, harmless};

pub(crate) fn session(command: &SessionCommand) -> Result<ExitCode, Failure> {
    match command {
        SessionCommand::Start(args) => start(args),
        SessionCommand::Cancel(args) => cancel(args),
        SessionCommand::Status(args) => status(args),
        SessionCommand::Show(args) => show(args),
        SessionCommand::Checkpoint(args) => checkpoint(args),
    }
}

fn start(args: &SessionStart) -> Result<ExitCode, Failure> {
    let id = caller(&args.which).ok_or_else(|| {
        Failure::usage("which session?")
            .hint("name it: `wiggum session start --session ID`; inside Claude Code and Codex it is found")
    })?;
    let id = SessionId::parse(&id)?;
    let workspace = run::workspace()?;
    let task = task(&args.prompt, &args.guards, &workspace)?;
    let inside = |variable: &str| std::env::var_os(variable).is_some();
    let agent = if inside("CLAUDECODE") {
        Agent::Claude
    } else if inside(CODEX_SESSION) {
        Agent::Codex
    } else {
        Agent::Other
    };
    let mut session = Session::new(&id, agent, &task.prompt, task.rules, Timestamp::now());
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

/// A task, and the rules by which it is begun in this workspace.
pub(crate) struct Task {
    pub(crate) prompt: String,
    pub(crate) rules: Rules,
}

/// A task with its guards, as it is begun in this workspace.
pub(crate) fn task(prompt: &str, guards: &TaskGuards, workspace: &Path) -> Result<Task, Failure> {
    let promise = guards.completion_promise.as_deref().map(slash::promise).transpose();
    let completion_promise =
        promise.map_err(|error| Failure::usage(format!("--completion-promise: {error}")))?;
    if prompt.trim().is_empty() {
        return Err(Failure::usage("the task is empty").hint("say what is to be done"));
    }
    let options = LoopOptions {
        prompt: prompt.to_owned(),
        max_iterations: guards.max_iterations,
        completion_promise,
        verify: guards.verify.clone(),
        plan: guards.plan.clone(),
        complete_without_claim: guards.complete_without_claim,
        no_progress: guards.no_progress,
        same_error: guards.same_error,
    };
    let rules =
        Rules::at_start(&options, workspace).map_err(|problem| Failure::usage(problem.to_string()))?;
    for command in &rules.verify {
        let line = run::valid(command, "verify command")?;
        if let Err(error) = line.resolve(workspace) {
            term::note(&format!("note: the verify command `{command}` cannot run yet: {error}\n"));
        }
    }
    Ok(Task { prompt: options.prompt, rules })
}

fn cancel(args: &SessionWhich) -> Result<ExitCode, Failure> {
    let workspace = run::workspace()?;
    let place = chosen(args, &workspace)?;
    let id = place.id();
    if place.load()?.ended.is_some() {
        return Err(no_loop(&id.to_string()));
    }
    place.cancel()?;
    Roster::of(&workspace).wake(&id.to_string());
    let session = place.load()?;
    if args.output.json {
        return print_json(&Block::of(&session));
    }
    Ok(term::print(&format!("the loop of session {id} is cancelled: it may stop\n")))
}

/// The session that is meant, which has or had a loop.
fn chosen(which: &SessionWhich, workspace: &Path) -> Result<Place, Failure> {
    let id = match caller(which) {
        Some(id) => SessionId::parse(&id)?,
        None => only_active(workspace)?,
    };
    let place = Place::new(workspace, &id);
    if place.file().exists() { Ok(place) } else { Err(no_loop(&id.to_string())) }
}

fn no_loop(id: &str) -> Failure {
    Failure::usage(format!("no loop runs in session {id}")).hint("`wiggum session status` lists them")
}

fn show(args: &SessionWhich) -> Result<ExitCode, Failure> {
    let place = chosen(args, &run::workspace()?)?;
    let mut session = place.load()?;
    observe::observe(&mut session);
    let config =
        rules::configuration(&place.workspace).map_err(|problem| Failure::usage(problem.to_string()))?;
    // A transcript that is gone tells no figures.
    let used = usage::of(&session, &config.policy.prices).unwrap_or_default();
    let now = Timestamp::now();
    if args.output.json {
        return print_json(&Whole::of(&session, &used, now));
    }
    let health = show::health(&session, now, Style::for_stdout());
    let stands = session.checkpoint.as_ref().map(|checkpoint| format!("\n{}", harmless(&checkpoint.text())));
    let (tokens, costs) = (show::tokens(&session, &used), show::costs(&session, &used));
    let figures = if used.is_empty() { tokens } else { format!("{tokens}\n{costs}") };
    Ok(term::print(&format!("{health}\n{figures}{}", stands.unwrap_or_default())))
}

fn checkpoint(args: &SessionCheckpoint) -> Result<ExitCode, Failure> {
    let place = chosen(&args.which, &run::workspace()?)?;
    let note = args.note.as_deref().unwrap_or_default();
    let checkpoint = prompt::make_checkpoint(&place, note, || {})?;
    if args.which.output.json {
        return print_json(&checkpoint);
    }
    Ok(term::print(&harmless(&checkpoint.text())))
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
    let sessions = show::all(&run::workspace()?);
    if args.json {
        return print_json(&show::shown(&sessions).collect::<Vec<_>>());
    }
    if sessions.is_empty() {
        return Ok(term::print("no loops in sessions here: `/ralph-loop` in an agent starts one\n"));
    }
    Ok(term::print(&show::blocks(&sessions, Timestamp::now(), Style::for_stdout()).join("\n")))
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
