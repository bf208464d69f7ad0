//! The sessions and dispatched agents of a workspace, as the monitor shows them beside loops.

use std::path::Path;

use jiff::Timestamp;
use serde::Serialize;
use wiggum_core::event::Trouble;
use wiggum_core::text::clip;
use wiggum_engine::words::one_line;

use crate::commands::dispatch::{self, Seen};
use crate::narrate::elapsed;
use crate::session::show::{self, Block, Health, State};
use crate::session::state::{Session, Waiting};
use crate::term::Style;

/// A session, or an agent in a pane with its task.
#[derive(Debug)]
pub(super) enum Worker {
    Session(Box<Session>),
    Agent(Box<Seen>),
}

/// What is shown of it.
#[derive(Debug)]
pub(super) struct WorkerRow {
    repository: String,
    worker: Worker,
    /// What a person should know.
    pub(super) alert: Option<String>,
}

/// As other programs see it.
#[derive(Serialize)]
pub(super) struct ShownRow<'a> {
    #[serde(flatten)]
    block: ShownBlock<'a>,
    repository: &'a str,
    health: Option<&'static str>,
    alert: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum ShownBlock<'a> {
    Session(Block<'a>),
    Agent(dispatch::Block<'a>),
}

/// Everybody who works in this workspace, or has lately; what cannot be read is told.
pub(super) fn look_at(workspace: &Path, now: Timestamp) -> (Vec<WorkerRow>, Vec<String>) {
    let repository = workspace.display().to_string();
    let (mut rows, mut problems) = (Vec::new(), Vec::new());
    let mut add = |worker: Worker| {
        let alert = worker.alert(now);
        rows.push(WorkerRow { repository: repository.clone(), worker, alert });
    };
    let agents = dispatch::all(workspace);
    let in_pane = |session: &Session| agents.iter().flatten().any(|agent| agent.is(session));
    for session in show::recent(workspace, now) {
        match session {
            Ok(session) if in_pane(&session) => {}
            Ok(session) => add(Worker::Session(Box::new(session))),
            Err(error) => problems.push(wiggum_engine::error::chain(&error)),
        }
    }
    for agent in agents {
        match agent {
            Ok(agent) => add(Worker::Agent(Box::new(agent))),
            Err(error) => problems.push(wiggum_engine::error::chain(&error)),
        }
    }
    (rows, problems)
}

impl Worker {
    fn session(&self) -> Option<&Session> {
        match self {
            Self::Session(session) => Some(session),
            Self::Agent(agent) => agent.session.as_ref(),
        }
    }

    fn state(&self, now: Timestamp) -> State {
        match self {
            Self::Session(session) => State::of(session, now),
            Self::Agent(agent) => agent.state(now),
        }
    }

    /// Only what a person can do something about: a limit that ends by itself needs nobody.
    fn alert(&self, now: Timestamp) -> Option<String> {
        let session = self.session().filter(|session| session.ended.is_none())?;
        if let (State::Gone, Self::Agent(agent)) = (self.state(now), self) {
            return Some(format!(
                "its program has ended before its task: `wiggum dispatch start {}` starts it again",
                agent.agent.name
            ));
        }
        match &session.waiting {
            Some(waiting @ Waiting::Person { .. }) => Some(waiting.to_string()),
            Some(Waiting::Agent { trouble: Trouble::UsageLimit { resets_at: Some(_) }, .. }) => None,
            Some(waiting @ Waiting::Agent { .. }) => Some(waiting.to_string()),
            None if Health::of(session, now) == Health::Stuck => {
                Some(format!("no sign of life for {}", elapsed(show::last_sign(session), now)))
            }
            None => None,
        }
    }
}

impl WorkerRow {
    pub(super) const HEADING: [&'static str; 6] =
        ["SESSION", "STATE", "ITERATION", "LAST ACTION", "LAST SIGN", "WHERE"];

    pub(super) fn shown(&self) -> ShownRow<'_> {
        let (block, session) = match &self.worker {
            Worker::Session(session) => (ShownBlock::Session(Block::of(session)), Some(&**session)),
            Worker::Agent(agent) => (ShownBlock::Agent(agent.block()), agent.session.as_ref()),
        };
        ShownRow {
            block,
            repository: &self.repository,
            health: session.map(|session| Health::of(session, Timestamp::now()).word()),
            alert: self.alert.as_deref(),
        }
    }

    /// What has to change before it is told again.
    pub(super) fn change_key(&self, now: Timestamp) -> String {
        let session = self.worker.session();
        let iteration = session.map(|session| (session.iteration, session.started_at));
        format!(
            "{:?}",
            (&self.repository, self.name(), self.worker.state(now).word(), iteration, &self.alert)
        )
    }

    pub(super) fn name(&self) -> String {
        match &self.worker {
            Worker::Session(session) => {
                format!("{} {}", session.agent.name(), clip(&one_line(&session.session_id), 12))
            }
            Worker::Agent(agent) => format!("{} {}", one_line(&agent.agent.agent), agent.agent.name),
        }
    }

    pub(super) fn cells(&self, style: Style, now: Timestamp) -> [String; 6] {
        let session = self.worker.session();
        let or_nothing = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        let waits = session.and_then(|session| session.waiting.as_ref()).and_then(Waiting::until);
        let until = waits.filter(|until| *until > now).map(|until| format!(" until {until:.0}"));
        [
            self.name(),
            self.worker.state(now).painted(style) + &until.unwrap_or_default(),
            or_nothing(session.map(Session::progress)),
            or_nothing(session.map(|session| clip(&one_line(&session.last), 40).into_owned())),
            or_nothing(session.map(|session| format!("{} ago", elapsed(show::last_sign(session), now)))),
            one_line(&self.repository),
        ]
    }
}
