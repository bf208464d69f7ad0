//! `wiggum dispatch`: agents in tmux panes.

use std::path::Path;
use std::process::ExitCode;

use jiff::Timestamp;
use serde::Serialize;
use wiggum_engine::error::chain;
use wiggum_workspace::process::CommandLine;

use crate::args::{DispatchCommand, DispatchSend, DispatchStart, OutputArgs};
use crate::commands::session;
use crate::commands::{print_json, resolvable, run, surroundings};
use crate::config::{self, Flags};
use crate::dispatch::DispatchError;
use crate::dispatch::roster::{self, Agent, MARKER, Roster};
use crate::dispatch::send::{self, INTERRUPTED, Manner, Outcome};
use crate::dispatch::tmux::{Life, Tmux, Window};
use crate::failure::Failure;
use crate::session::state::{self, Session};
use crate::team;
use crate::term::{self, Style};
use wiggum_engine::words::one_line;

pub(crate) fn dispatch(command: &DispatchCommand) -> Result<ExitCode, Failure> {
    match command {
        DispatchCommand::Start(args) => start(args),
        DispatchCommand::Send(args) => send(args),
        DispatchCommand::List(args) => list(args),
        DispatchCommand::Stop { name } => stop(name),
        DispatchCommand::Attach { name } => attach(name),
    }
}

fn start(args: &DispatchStart) -> Result<ExitCode, Failure> {
    let name = &args.name;
    roster::valid(name)?;
    roster::valid(&args.tmux)?;
    let here = run::workspace()?;
    let directory = match &args.dir {
        Some(dir) => dir
            .canonicalize()
            .map_err(|error| Failure::usage(format!("cannot work in {}: {error}", dir.display())))?,
        None => here.clone(),
    };
    let workspace = state::workspace_of(&directory).to_owned();
    let Program { name: agent, command, mut env } = program(args, &directory)?;
    let roster = Roster::of(&here);
    roster.create()?;
    let _lock = roster.lock(name)?;
    match roster.get(name) {
        Ok(known) if known.pane.life()? == Life::Alive => {
            return Err(DispatchError::Exists { name: name.clone() }.into());
        }
        Ok(known) => drop(known.end()),
        Err(DispatchError::Unknown { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    let started_at = Timestamp::now();
    let token = format!("{name}-{}-{}", std::process::id(), started_at.as_nanosecond());
    env.push((MARKER.to_owned(), token.clone()));
    let window = Window {
        session: &args.tmux,
        name,
        directory: &directory,
        command: &command,
        env: &env,
        token: &token,
    };
    let pane = Tmux { socket: args.socket.clone() }.open(&window)?;
    let agent =
        Agent { name: name.clone(), agent, command: command.to_string(), workspace, pane, started_at };
    if let Err(error) = agent.has_heard_nothing().and_then(|()| roster.note(&agent)) {
        // Nobody would find it again.
        agent.end();
        return Err(error.into());
    }
    Ok(term::print(&format!(
        "{name} is there: `wiggum dispatch send {name} TASK` gives it something to do, `wiggum dispatch attach {name}` \
         tells how to see it\n"
    )))
}

/// The interactive program that was asked for.
struct Program {
    /// What people call it.
    name: String,
    command: CommandLine,
    env: Vec<(String, String)>,
}

fn program(args: &DispatchStart, workspace: &Path) -> Result<Program, Failure> {
    if let Some(line) = &args.command {
        resolvable(workspace, line, "command")?;
        let command = CommandLine::parse(line).map_err(|error| Failure::usage(error.to_string()))?;
        let name = Path::new(&command.program).file_name().unwrap_or_default().to_string_lossy().into_owned();
        return Ok(Program { name, command, env: Vec::new() });
    }
    let name = args.agent.clone().unwrap_or_default();
    let config = config::resolve(&surroundings()?.sources(&Flags::default()))?;
    let (command, env) = team::interactive(workspace, &config, &name)?;
    Ok(Program { name, command, env })
}

fn send(args: &DispatchSend) -> Result<ExitCode, Failure> {
    let roster = Roster::of(&run::workspace()?);
    let agent = roster.get(&args.name)?;
    let quiet_after = run::duration("--quiet-after", Some(&args.quiet_after))?.unwrap_or_default();
    let start =
        args.task.as_deref().map(|task| session::task(task, &args.guards, &agent.workspace)).transpose()?;
    let manner = Manner { quiet_after: quiet_after.as_duration(), busy: args.busy.clone() };
    let name = &args.name;
    Ok(match send::send(&roster, name, start, manner)? {
        Outcome::Ended { reason, detail } => {
            term::print(&format!("{name}: {} ({})\n", one_line(&detail), reason.name()));
            ExitCode::from(reason.exit_code())
        }
        Outcome::Waits { detail } => {
            term::print(&format!("{name}: {} (person_needed)\n", one_line(&detail)));
            term::note(&format!(
                "hint: `wiggum dispatch attach {name}` tells how to see it; `wiggum dispatch send {name}` then goes on\n"
            ));
            ExitCode::from(wiggum_core::event::EndReason::PersonNeeded.exit_code())
        }
        Outcome::Interrupted => {
            term::note(&format!(
                "interrupted: the agent {name} is left alone; `wiggum dispatch send {name}` goes on with its task\n"
            ));
            ExitCode::from(INTERRUPTED)
        }
    })
}

fn list(args: &OutputArgs) -> Result<ExitCode, Failure> {
    let seen = all(&run::workspace()?);
    if args.json {
        return print_json(&shown(&seen).collect::<Vec<_>>());
    }
    if seen.is_empty() {
        return Ok(term::print("no agents here: `wiggum dispatch start NAME --agent claude` starts one\n"));
    }
    Ok(term::print(&blocks(&seen, Timestamp::now(), Style::for_stdout()).join("\n")))
}

fn stop(name: &str) -> Result<ExitCode, Failure> {
    let roster = Roster::of(&run::workspace()?);
    let agent = roster.get(name)?;
    if agent.session()?.is_some_and(|session| session.ended.is_none()) {
        agent.place()?.cancel().map_err(DispatchError::from)?;
    }
    let ended = agent.end();
    roster.forget(name)?;
    let count = if ended == 1 { "1 process".to_owned() } else { format!("{ended} processes") };
    Ok(term::print(&format!("{name} is stopped: {count} ended\n")))
}

fn attach(name: &str) -> Result<ExitCode, Failure> {
    let agent = Roster::of(&run::workspace()?).get(name)?;
    if agent.pane.life()? == Life::Closed {
        agent.present()?;
    }
    Ok(term::print(&format!("{}\n", agent.pane.attach_command()?)))
}

/// An agent, how it is and what it was given to do.
pub(crate) struct Seen {
    agent: Agent,
    life: Life,
    session: Option<Session>,
}

/// The agents of a workspace; what cannot be read is told.
pub(crate) fn all(workspace: &Path) -> Vec<Result<Seen, DispatchError>> {
    let look = |agent: Agent| {
        // Without tmux nobody can be there.
        let life = agent.pane.life().unwrap_or(Life::Closed);
        let session = agent.session()?;
        Ok(Seen { agent, life, session })
    };
    Roster::of(workspace).all().into_iter().map(|agent| agent.and_then(look)).collect()
}

impl Seen {
    /// Is this the session of an agent in a pane?
    pub(crate) fn is(&self, session: &Session) -> bool {
        self.agent.name == session.session_id
    }

    fn word(&self) -> &'static str {
        match (&self.life, &self.session) {
            (Life::Ended(_) | Life::Closed, _) => "GONE",
            (Life::Alive, Some(session)) => session::word(session),
            (Life::Alive, None) => "READY",
        }
    }
}

/// An agent in a pane as other programs see it.
#[derive(Serialize)]
pub(crate) struct Block<'a> {
    kind: &'static str,
    name: &'a str,
    agent: &'a str,
    command: &'a str,
    workspace: &'a Path,
    pane: &'a str,
    state: &'static str,
    task: Option<session::Block<'a>>,
}

/// Those that can be read, for other programs.
pub(crate) fn shown(seen: &[Result<Seen, DispatchError>]) -> impl Iterator<Item = Block<'_>> {
    seen.iter().flatten().map(|seen| Block {
        kind: "dispatch",
        name: &seen.agent.name,
        agent: &seen.agent.agent,
        command: &seen.agent.command,
        workspace: &seen.agent.workspace,
        pane: &seen.agent.pane.id,
        state: seen.word(),
        task: seen.session.as_ref().map(session::Block::of),
    })
}

/// One block per agent, for people.
pub(crate) fn blocks(seen: &[Result<Seen, DispatchError>], now: Timestamp, style: Style) -> Vec<String> {
    let block = |seen: &Result<Seen, DispatchError>| match seen {
        Ok(seen) => block(seen, now, style),
        Err(error) => format!("{} {}\n", style.red("broken:"), chain(error)),
    };
    seen.iter().map(block).collect()
}

fn block(seen: &Seen, now: Timestamp, style: Style) -> String {
    let who = format!("{} {}", style.bold(&one_line(&seen.agent.agent)), seen.agent.name);
    let state = match seen.word() {
        "WORKING" => style.green("WORKING"),
        "GONE" => style.red("GONE"),
        word => style.yellow(word),
    };
    let mut lines = match &seen.session {
        Some(session) => session::lines(&who, &state, session, now, style),
        None => vec![format!("{who} - {state}"), "  no task yet".to_owned()],
    };
    if let Life::Ended(how) = &seen.life {
        lines.push(format!("  {how}"));
    }
    lines.join("\n") + "\n"
}
