//! `wiggum dispatch`: agents in tmux panes.

use std::path::Path;
use std::process::ExitCode;

use jiff::Timestamp;
use serde::Serialize;
use wiggum_engine::error::chain;
use wiggum_workspace::paths::ProcessLock;
use wiggum_workspace::process::CommandLine;

use crate::args::{DispatchAdopt, DispatchCommand, DispatchSend, DispatchStart, OutputArgs};
use crate::commands::session;
use crate::commands::{print_json, resolvable, run, surroundings, surroundings_of};
use crate::config::{self, Flags};
use crate::dispatch::DispatchError;
use crate::dispatch::roster::{self, Agent, MARKER, Roster};
use crate::dispatch::send::{self, INTERRUPTED, Manner, Outcome};
use crate::dispatch::tmux::{Life, Tmux, Window};
use crate::failure::Failure;
use crate::session::show::{self, State};
use crate::session::state::{self, Session};
use crate::team;
use crate::term::{self, Style};
use wiggum_engine::words::one_line;

pub(crate) fn dispatch(command: &DispatchCommand) -> Result<ExitCode, Failure> {
    match command {
        DispatchCommand::Start(args) => start(args),
        DispatchCommand::Adopt(args) => adopt(args),
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
    let _lock = free_name(&roster, name)?;
    let (started_at, token) = new_token(name);
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
    let command = command.to_string();
    let name = name.clone();
    enter(&roster, &Agent { name, agent, command, workspace, pane, started_at, adopted: false })
}

/// Takes in an agent that lives in a pane already.
fn adopt(args: &DispatchAdopt) -> Result<ExitCode, Failure> {
    let name = &args.name;
    roster::valid(name)?;
    let roster = Roster::of(&run::workspace()?);
    let _lock = free_name(&roster, name)?;
    let (started_at, token) = new_token(name);
    let found = Tmux { socket: args.socket.clone() }.adopt(&args.pane, &token)?;
    let directory = args.dir.as_ref().unwrap_or(&found.directory);
    let directory = directory.canonicalize().map_err(|error| {
        found.pane.let_go();
        Failure::usage(format!("cannot work in {}: {error}", directory.display()))
            .hint("name the directory of the agent: --dir DIR")
    })?;
    let agent = Agent {
        name: name.clone(),
        agent: found.program.clone(),
        command: found.program,
        workspace: state::workspace_of(&directory).to_owned(),
        pane: found.pane,
        started_at,
        adopted: true,
    };
    enter(&roster, &agent)
}

/// Held while a name that nobody has is given to an agent.
fn free_name(roster: &Roster, name: &str) -> Result<ProcessLock, DispatchError> {
    roster.create()?;
    let lock = roster.lock(name)?;
    match roster.get(name) {
        Ok(known) if known.pane.life()? == Life::Alive => {
            return Err(DispatchError::Exists { name: name.to_owned() });
        }
        Ok(known) => drop(known.end()),
        Err(DispatchError::Unknown { .. }) => {}
        Err(error) => return Err(error),
    }
    Ok(lock)
}

fn new_token(name: &str) -> (Timestamp, String) {
    let now = Timestamp::now();
    (now, format!("{name}-{}-{}", std::process::id(), now.as_nanosecond()))
}

fn enter(roster: &Roster, agent: &Agent) -> Result<ExitCode, Failure> {
    if let Err(error) = agent.has_heard_nothing().and_then(|()| roster.note(agent)) {
        // Nobody would find it again.
        agent.end();
        return Err(error.into());
    }
    let name = &agent.name;
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
    let task =
        args.task.as_deref().map(|task| session::task(task, &args.guards, &agent.workspace)).transpose()?;
    let config = config::resolve(&surroundings_of(agent.workspace.clone()).sources(&Flags::default()))?;
    let patience = config.policy.agents;
    let manner = Manner { quiet_after: quiet_after.as_duration(), busy: args.busy.clone(), patience };
    let name = &args.name;
    Ok(match send::send(&roster, name, task, manner)? {
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
    if agent.adopted {
        return Ok(term::print(&format!("{name} is let go: its program is left running\n")));
    }
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
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) agent: Agent,
    life: Life,
    /// A `send` is under way, which may still wait until the program is ready.
    spoken_to: bool,
    pub(crate) session: Option<Session>,
}

/// The agents of a workspace; what cannot be read is told.
pub(crate) fn all(workspace: &Path) -> Vec<Result<Seen, DispatchError>> {
    let roster = Roster::of(workspace);
    let look = |agent: Agent| {
        // Without tmux nobody can be there.
        let life = agent.pane.life().unwrap_or(Life::Closed);
        let session = agent.session()?;
        Ok(Seen { spoken_to: roster.is_spoken_to(&agent.name), agent, life, session })
    };
    roster.all().into_iter().map(|agent| agent.and_then(look)).collect()
}

impl Seen {
    /// Is this the session of an agent in a pane?
    pub(crate) fn is(&self, session: &Session) -> bool {
        self.agent.name == session.session_id
    }

    pub(crate) fn state(&self, now: Timestamp) -> State {
        match (&self.life, &self.session) {
            (Life::Ended(_) | Life::Closed, _) => State::Gone,
            (Life::Alive, Some(session)) => match State::of(session, now) {
                State::Ready if self.spoken_to && session.ended.is_none() => State::Working,
                state @ (State::Working | State::Waiting | State::Ready | State::Gone) => state,
            },
            (Life::Alive, None) => State::Ready,
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
    task: Option<show::Block<'a>>,
}

impl Seen {
    /// What its task does, whether its program is there or not.
    fn task_state(&self, session: &Session) -> State {
        let now = Timestamp::now();
        match self.life {
            Life::Alive => self.state(now),
            Life::Ended(_) | Life::Closed => State::of(session, now),
        }
    }

    pub(crate) fn block(&self) -> Block<'_> {
        Block {
            kind: "dispatch",
            name: &self.agent.name,
            agent: &self.agent.agent,
            command: &self.agent.command,
            workspace: &self.agent.workspace,
            pane: &self.agent.pane.id,
            state: self.state(Timestamp::now()).word(),
            task: self
                .session
                .as_ref()
                .map(|session| show::Block::of(session).in_state(self.task_state(session))),
        }
    }
}

/// Those that can be read, for other programs.
pub(crate) fn shown(seen: &[Result<Seen, DispatchError>]) -> impl Iterator<Item = Block<'_>> {
    seen.iter().flatten().map(Seen::block)
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
    let state = seen.state(now).painted(style);
    let mut lines = match &seen.session {
        Some(session) => show::lines(&who, &state, session, now, style),
        None => vec![format!("{who} - {state}"), "  no task yet".to_owned()],
    };
    if let Life::Ended(how) = &seen.life {
        lines.push(format!("  {how}"));
    }
    lines.join("\n") + "\n"
}
