//! The agents a loop may use: what they are given, and when they are given up.

use std::mem::discriminant;

use uuid::Uuid;
use wiggum_agents::{Abilities, AgentEvent, Driver, Finished, Problem, Session};
use wiggum_core::agents::WITHHELD;
use wiggum_core::event::{Failure, Trouble};
use wiggum_core::redact::is_secret_variable;

use crate::engine::{Engine, Settings};
use crate::error::EngineError;
use crate::withheld::{may_have, withheld};

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
        withheld(&self.passed())
    }

    /// What to do about an error that is about a variable which this agent did not get.
    pub fn about_withheld(&self, message: &str) -> Option<String> {
        let mut words = message.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let is_secret = |name: &str| {
            std::env::var_os(name).is_some_and(|value| is_secret_variable(name, &value.to_string_lossy()))
        };
        let is_withheld = |name: &str| !name.is_empty() && is_secret(name) && !may_have(name, &self.passed());
        let name = words.find(|word| is_withheld(word))?;
        Some(format!("{name} is {WITHHELD}; pass_env = [\"{name}\"] under [agent] lets it through"))
    }

    fn passed(&self) -> Vec<&str> {
        self.pass_env.iter().map(String::as_str).chain(self.driver.secrets().iter().copied()).collect()
    }
}

impl Settings {
    pub(crate) fn agent(&self, name: &str) -> Option<&Agent> {
        self.agents.iter().find(|agent| agent.name == name)
    }

    /// Does this agent get our own MCP server?
    pub(crate) fn hands_tools_to(&self, name: &str) -> bool {
        self.agent_mcp && self.agent(name).is_some_and(|agent| agent.driver.abilities().mcp)
    }

    /// Those of its agents that cannot be handed our MCP server although it is asked for.
    pub fn without_tools(&self) -> Vec<&str> {
        let named = self.policy.agents.order.iter().map(String::as_str);
        named.filter(|name| self.agent_mcp && !self.hands_tools_to(name)).collect()
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

impl Engine<'_> {
    /// An agent that misses a key tells people to log in; it was us who kept the key.
    pub(crate) fn with_withheld(&self, mut failure: Failure) -> Failure {
        let agent = self.journal.state.open.here().and_then(|open| self.settings.agent(&open.agent));
        if let Some(advice) = agent.and_then(|agent| agent.about_withheld(&failure.message)) {
            failure.message = format!("{}; {advice}", failure.message.trim_end_matches('.'));
        }
        failure
    }

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

    /// Takes in what an agent says of itself while it runs. What follows is decided by the core, except
    /// that some troubles are not worth waiting for.
    pub(crate) fn heed(&mut self, event: &AgentEvent) -> Result<(), EngineError> {
        if let AgentEvent::Usage(usage) = event {
            return self.heed_usage(*usage);
        }
        let now = self.clock.now();
        let Some(agent) = &mut self.agent else { return Ok(()) };
        match event {
            AgentEvent::Retrying {
                trouble: trouble @ (Trouble::Authentication | Trouble::UsageLimit { .. }),
            } => {
                self.give_up_agent(trouble.clone());
            }
            AgentEvent::Context { used, window } => self.heed_context(*used, *window),
            AgentEvent::Model(model) => agent.model = Some(model.clone()),
            AgentEvent::TurnEnded { last } => agent.figures.turn_ended(*last),
            AgentEvent::ToolCall { .. } => {
                agent.heart.beat(now);
                if agent.tells_calls {
                    agent.figures.called();
                }
            }
            AgentEvent::ToolResult { .. } => {
                agent.heart.beat(now);
                if agent.tells_calls {
                    agent.figures.returned();
                }
            }
            AgentEvent::Retrying { .. }
            | AgentEvent::Output(_)
            | AgentEvent::Usage(_)
            | AgentEvent::Session(_)
            | AgentEvent::Limit { .. }
            | AgentEvent::Notice(_) => {}
        }
        Ok(())
    }

    /// What the agent at work can do.
    pub(crate) fn abilities_at_work(&self) -> Abilities {
        let open = self.journal.state.open.here();
        let agent = open.and_then(|open| self.settings.agent(&open.agent));
        agent.map(|agent| agent.driver.abilities()).unwrap_or_default()
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
