//! Agents that people name themselves: the sections `[agents.NAME]`, and the keys in them.

use std::collections::BTreeMap;

use wiggum_agents::PromptVia;
use wiggum_api_agent::Provider;
use wiggum_core::policy::Millis;

use super::keys::{prompt_via, prompt_via_word};
use super::value::{Shape, Value, Zero};
use super::{ConfigSource, Explained};

/// The section that holds one section for each agent.
pub(super) const SECTION: &str = "agents";

/// An agent as its section describes it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct NamedAgent {
    pub(crate) family: Option<String>,
    pub(crate) program: Option<String>,
    pub(crate) command: Option<String>,
    pub(crate) prompt_via: PromptVia,
    pub(crate) model: Option<String>,
    pub(crate) args: Vec<String>,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) pass_env: Vec<String>,
    pub(crate) timeout: Option<Millis>,
    pub(crate) api: ApiConfig,
    origins: BTreeMap<&'static str, ConfigSource>,
}

/// Whom the built-in agent asks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ApiConfig {
    pub(crate) provider: Option<String>,
    pub(crate) base_url: Option<String>,
    pub(crate) key_env: Option<String>,
    pub(crate) context_window: Option<u32>,
    pub(crate) max_turns: Option<u32>,
    pub(crate) prices: BTreeMap<String, String>,
}

impl ApiConfig {
    /// What this one does not say is as the other says.
    pub(crate) fn or(self, other: Self) -> Self {
        Self {
            provider: self.provider.or(other.provider),
            base_url: self.base_url.or(other.base_url),
            key_env: self.key_env.or(other.key_env),
            context_window: self.context_window.or(other.context_window),
            max_turns: self.max_turns.or(other.max_turns),
            prices: if self.prices.is_empty() { other.prices } else { self.prices },
        }
    }
}

/// One thing that can be said about an agent.
#[derive(Debug)]
pub(crate) struct AgentKey {
    pub(crate) name: &'static str,
    pub(crate) shape: Shape,
    pub(crate) help: &'static str,
    get: fn(&NamedAgent) -> Value,
    set: fn(&mut NamedAgent, Value),
}

/// One key set for one agent in one layer.
#[derive(Debug)]
pub(super) struct Setting {
    pub(super) agent: String,
    pub(super) key: &'static AgentKey,
    pub(super) value: Value,
    pub(super) source: ConfigSource,
}

pub(crate) const AGENT_KEYS: &[AgentKey] = &[
    AgentKey {
        name: "family",
        shape: Shape::Choice(&["claude", "codex", "gemini", "copilot", "opencode", "aider", "amp", "api"]),
        help: "What kind of agent it is: how it is started and how its output is read.",
        get: |agent| text(agent.family.as_ref()),
        set: |agent, value| agent.family = value.optional_text(),
    },
    AgentKey {
        name: "program",
        shape: Shape::Command,
        help: "The program to start, where it is not the family's usual one.",
        get: |agent| text(agent.program.as_ref()),
        set: |agent, value| agent.program = value.optional_text(),
    },
    AgentKey {
        name: "command",
        shape: Shape::Command,
        help: "Instead of a family: any command that works on one task.",
        get: |agent| text(agent.command.as_ref()),
        set: |agent, value| agent.command = value.optional_text(),
    },
    AgentKey {
        name: "prompt_via",
        shape: Shape::Choice(&["stdin", "argument", "file"]),
        help: "How such a command gets the prompt.",
        get: |agent| Value::Text(prompt_via_word(agent.prompt_via).to_owned()),
        set: |agent, value| agent.prompt_via = prompt_via(&value.text()),
    },
    AgentKey {
        name: "model",
        shape: Shape::Command,
        help: "The model that it should use.",
        get: |agent| text(agent.model.as_ref()),
        set: |agent, value| agent.model = value.optional_text(),
    },
    AgentKey {
        name: "args",
        shape: Shape::Words,
        help: "Further arguments for its program.",
        get: |agent| Value::List(agent.args.clone()),
        set: |agent, value| agent.args = value.list(),
    },
    AgentKey {
        name: "env",
        shape: Shape::Variables,
        help: "Environment variables for it, on top of your own.",
        get: |agent| Value::Variables(agent.env.clone()).without_secrets(),
        set: |agent, value| agent.env = value.variables(),
    },
    AgentKey {
        name: "pass_env",
        shape: Shape::Words,
        help: "Secrets of your environment that it gets beside its own.",
        get: |agent| Value::List(agent.pass_env.clone()),
        set: |agent, value| agent.pass_env = value.list(),
    },
    AgentKey {
        name: "timeout",
        shape: Shape::Duration(Zero::NoLimit),
        help: "How long it may work on one attempt. 0 is no limit.",
        get: |agent| agent.timeout.map_or(Value::None, Value::Duration),
        set: |agent, value| agent.timeout = value.optional_duration(),
    },
    AgentKey {
        name: "provider",
        shape: Shape::Choice(Provider::NAMES),
        help: "Whose models the built-in agent (family \"api\") asks.",
        get: |agent| text(agent.api.provider.as_ref()),
        set: |agent, value| agent.api.provider = value.optional_text(),
    },
    AgentKey {
        name: "base_url",
        shape: Shape::Command,
        help: "Where it asks, if not at the provider's usual address; without a provider, anybody who answers as \
               OpenAI does.",
        get: |agent| text(agent.api.base_url.as_ref()),
        set: |agent, value| agent.api.base_url = value.optional_text(),
    },
    AgentKey {
        name: "key_env",
        shape: Shape::Command,
        help: "The name of the variable with the key, if not the provider's usual one.",
        get: |agent| text(agent.api.key_env.as_ref()),
        set: |agent, value| agent.api.key_env = value.optional_text(),
    },
    AgentKey {
        name: "context_window",
        shape: Shape::Count(Zero::NoLimit),
        help: "How many tokens fit into the model's context.",
        get: |agent| agent.api.context_window.map_or(Value::None, Value::Count),
        set: |agent, value| agent.api.context_window = value.optional_count(),
    },
    AgentKey {
        name: "max_turns",
        shape: Shape::Count(Zero::NoLimit),
        help: "How many answers of the model one attempt may take.",
        get: |agent| agent.api.max_turns.map_or(Value::None, Value::Count),
        set: |agent, value| agent.api.max_turns = value.optional_count(),
    },
    AgentKey {
        name: "prices",
        shape: Shape::Pairs,
        help: "Dollars per million tokens: input, output, cache_read and cache_write. Without them [prices] counts, else \
               the built-in table.",
        get: |agent| Value::Variables(agent.api.prices.clone()),
        set: |agent, value| agent.api.prices = value.variables(),
    },
];

impl NamedAgent {
    pub(super) fn set(&mut self, key: &'static AgentKey, value: Value, source: ConfigSource) {
        (key.set)(self, value);
        self.origins.insert(key.name, source);
    }

    /// What was said about it, and where.
    pub(super) fn explain(&self, agent: &str) -> Vec<Explained> {
        let said = AGENT_KEYS.iter().filter_map(|key| Some((key, self.origins.get(key.name)?)));
        said.map(|(key, source)| Explained {
            key: format!("{SECTION}.{agent}.{}", key.name),
            value: (key.get)(self),
            source: source.clone(),
            help: key.help,
        })
        .collect()
    }
}

fn text(text: Option<&String>) -> Value {
    text.cloned().map_or(Value::None, Value::Text)
}
