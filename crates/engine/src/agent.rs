//! The agents a loop may use: what they are given, and when they are given up.

use std::mem::discriminant;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use uuid::Uuid;
use wiggum_agents::{AgentEvent, Driver, Finished, Problem, Session};
use wiggum_core::event::Trouble;
use wiggum_core::policy::Millis;
use wiggum_core::redact::is_secret_name;
use wiggum_workspace::process::Stop;

use crate::clock::Clock;
use crate::engine::{Engine, Settings};

/// An agent as it is configured.
pub struct Agent {
    pub name: String,
    pub driver: Box<dyn Driver>,
    /// Further variables for it.
    pub env: Vec<(String, String)>,
    /// Names of variables that it gets although they look like secrets of somebody else. A `*` at the
    /// end stands for any rest.
    pub pass_env: Vec<String>,
}

impl Agent {
    /// The variables of our own environment that this agent does not get.
    pub fn withheld(&self) -> Vec<String> {
        let ours = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
        ours.filter(|name| is_secret_name(name) && !self.may_have(name)).collect()
    }

    fn may_have(&self, name: &str) -> bool {
        let passed = self.pass_env.iter().map(String::as_str).chain(self.driver.secrets().iter().copied());
        passed.into_iter().any(|pattern| match pattern.strip_suffix('*') {
            Some(beginning) => name.starts_with(beginning),
            None => name == pattern,
        })
    }
}

impl Settings {
    pub(crate) fn agent(&self, name: &str) -> Option<&Agent> {
        self.agents.iter().find(|agent| agent.name == name)
    }

    /// How the first choice is called, and who takes over.
    pub fn describe_agents(&self) -> String {
        let order = &self.policy.agents.order;
        let mut named = order.iter().filter_map(|name| self.agent(name));
        let first = named.next().or(self.agents.first());
        let described = first.map_or_else(String::new, |agent| agent.driver.describe());
        let others: Vec<&str> = named.map(|agent| agent.name.as_str()).collect();
        if others.is_empty() { described } else { format!("{described}, else {}", others.join(", ")) }
    }
}

/// The agent's own session for one iteration.
#[derive(Clone, Debug)]
pub(crate) enum ChosenSession {
    Named(String),
    Continued(String),
}

impl ChosenSession {
    pub(crate) fn id(&self) -> &str {
        let (Self::Named(id) | Self::Continued(id)) = self;
        id
    }

    pub(crate) fn session(&self) -> Session<'_> {
        match self {
            Self::Named(id) => Session::Named(id),
            Self::Continued(id) => Session::Continued(id),
        }
    }
}

/// How long an agent has said nothing, and how long it may.
#[derive(Clone)]
pub(crate) struct Quiet {
    clock: Clock,
    /// Milliseconds on the clock at the last sign of life.
    last: Arc<AtomicU64>,
    limit: Option<Duration>,
}

impl Quiet {
    pub(crate) fn new(clock: Clock, limit: Option<Millis>) -> Self {
        let quiet = Self { clock, last: Arc::default(), limit: limit.map(Millis::as_duration) };
        quiet.broken();
        quiet
    }

    /// Called on the thread that reads the output.
    pub(crate) fn broken(&self) {
        let now = u64::try_from(self.clock.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last.store(now, Ordering::Relaxed);
    }

    /// How much longer it may be silent; without a limit, for ever.
    fn left(&self) -> Option<Duration> {
        let silent_since = Duration::from_millis(self.last.load(Ordering::Relaxed));
        Some((silent_since + self.limit?).saturating_sub(self.clock.elapsed()))
    }
}

impl Engine<'_> {
    /// The session to go on with, or a new one that can be gone on with later.
    pub(crate) fn choose_session(&self, agent: &str) -> Option<ChosenSession> {
        let resumes = self.settings.agent(agent).is_some_and(|agent| agent.driver.abilities().resume);
        let state = &self.journal.state;
        let known = || state.agents.session(&state.policy.agents, agent).map(str::to_owned);
        resumes.then(|| match known() {
            Some(session) => ChosenSession::Continued(session),
            None => ChosenSession::Named(Uuid::now_v7().to_string()),
        })
    }

    /// Ends an agent that has been silent for too long; says how long it may still be.
    pub(crate) fn end_silent_agent(&mut self) -> Option<Duration> {
        let left = self.agent.as_ref().filter(|agent| agent.given_up.is_none())?.quiet.left()?;
        if left.is_zero() {
            self.give_up_agent(Trouble::Silent);
            return None;
        }
        Some(left)
    }

    /// What an agent says of itself while it runs can mean that it is not worth waiting for.
    pub(crate) fn heed(&mut self, event: &AgentEvent) {
        match event {
            AgentEvent::Retrying {
                trouble: trouble @ (Trouble::Authentication | Trouble::UsageLimit { .. }),
            } => {
                self.give_up_agent(trouble.clone());
            }
            AgentEvent::Context { used, window } => self.heed_context(*used, *window),
            AgentEvent::Retrying { .. }
            | AgentEvent::Output(_)
            | AgentEvent::ToolCall { .. }
            | AgentEvent::ToolResult { .. }
            | AgentEvent::Usage(_)
            | AgentEvent::Session(_)
            | AgentEvent::Limit { .. }
            | AgentEvent::Notice(_) => {}
        }
    }

    fn give_up_agent(&mut self, trouble: Trouble) {
        let grace = self.settings.grace;
        if let Some(agent) = self.agent.as_mut().filter(|agent| agent.given_up.is_none()) {
            agent.given_up = Some(trouble);
            agent.process.stop(Stop::Asked, grace);
        }
    }
}

/// What counts of an agent that was given up: why, and not how it took it.
pub(crate) fn given_up(finished: &Finished, trouble: Trouble) -> Finished {
    let problem = match &finished.problem {
        // In its own words, and with the end of a limit, which only they may tell.
        Some(problem) if discriminant(&problem.trouble) == discriminant(&trouble) => problem.clone(),
        Some(_) | None => Problem { message: trouble.to_string(), trouble },
    };
    Finished { problem: Some(problem), ..finished.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_that_is_given_up_may_still_say_when_its_limit_ends() {
        let resets_at = Some(jiff::Timestamp::UNIX_EPOCH);
        let told =
            Problem { trouble: Trouble::UsageLimit { resets_at }, message: "come back later".to_owned() };
        let finished = Finished { problem: Some(told.clone()), ..Finished::default() };
        let limit = Trouble::UsageLimit { resets_at: None };
        assert_eq!(given_up(&finished, limit).problem, Some(told));
        let silent = given_up(&finished, Trouble::Silent).problem.map(|problem| problem.trouble);
        assert_eq!(silent, Some(Trouble::Silent));
    }
}
