//! Makes agents of what is configured: who works, who takes over, and what each of them is given.

use std::path::Path;

use wiggum_agents::{AgentSpec, CommandAgent, Driver, Family, ScriptedAgent};
use wiggum_core::policy;
use wiggum_engine::Agent;
use wiggum_workspace::process::CommandLine;

use crate::api;
use crate::commands::resolvable;
use crate::config::{Config, NamedAgent};
use crate::failure::Failure;

/// The name of an agent that is a command or a scenario under `[agent]`.
const UNNAMED: &str = "agent";

/// Everybody who may work in a run, in any order, and the rules about them.
pub(crate) struct Team {
    pub(crate) agents: Vec<Agent>,
    pub(crate) rules: policy::Agents,
}

/// All agents that are configured or known, the first choice made sure to be there. `sandboxed` if
/// our own sandbox will be around them.
pub(crate) fn team(workspace: &Path, config: &Config, sandboxed: bool) -> Result<Team, Failure> {
    let first = first_choice(config)?;
    let mut rules = config.policy.agents.clone();
    rules.order = [first.clone()].into_iter().chain(config.agent.fallback.clone()).collect();
    let mut agents = Vec::new();
    if config.agent.name.is_none() {
        agents.push(unnamed(workspace, config)?);
    }
    for name in known(config) {
        let described = describe(config, &name, name == first);
        if let Some(timeout) = described.timeout {
            rules.timeouts.insert(name.clone(), timeout);
        }
        agents.push(named(config, &name, described, sandboxed)?);
    }
    for name in rules.order.iter().chain(rules.roles.values()) {
        if agents.iter().all(|agent| agent.name != *name) {
            return Err(unknown(config, name));
        }
        if family(config, name).is_some_and(Family::is_built_in) {
            api::check(&describe(config, name, *name == first))?;
        }
    }
    if rules.order.len() == 1 {
        present(workspace, config, &first)?;
    }
    Ok(Team { agents, rules })
}

fn first_choice(config: &Config) -> Result<String, Failure> {
    if config.agent.command.is_some() || config.agent.scenario.is_some() {
        return Ok(UNNAMED.to_owned());
    }
    config.agent.name.clone().ok_or_else(|| {
        Failure::usage("no agent is configured").hint(
            "name one: `wiggum run --agent claude` (`wiggum agents` tells what is there), or any command: \
             `wiggum run --agent-command 'my-agent --yes'`",
        )
    })
}

/// The names of agents: those of sections, and the families.
pub(crate) fn known(config: &Config) -> Vec<String> {
    let mut names: Vec<String> = Family::ALL.map(|family| family.name().to_owned()).to_vec();
    names.extend(config.agents.keys().filter(|name| Family::from_name(name).is_none()).cloned());
    names
}

/// What is known of an agent by its section and, for the first choice, by `[agent]`.
pub(crate) fn describe(config: &Config, name: &str, is_first: bool) -> NamedAgent {
    let mut agent = config.agents.get(name).cloned().unwrap_or_default();
    if is_first {
        agent.model = config.agent.model.clone().or(agent.model);
        agent.args.extend(config.agent.args.iter().cloned());
        agent.env.extend(config.agent.env.clone());
        agent.api = config.agent.api.clone().or(agent.api);
    }
    agent.pass_env.extend(config.agent.pass_env.iter().cloned());
    agent
}

fn unnamed(workspace: &Path, config: &Config) -> Result<Agent, Failure> {
    let driver: Box<dyn Driver> = match (&config.agent.scenario, &config.agent.command) {
        (Some(scenario), _) => {
            let scenario = std::path::absolute(scenario)
                .map_err(|error| Failure::other(format!("{}: {error}", scenario.display())))?;
            wiggum_agents::script::load(&scenario)
                .map_err(|error| Failure::usage(wiggum_engine::error::chain(&error)))?;
            Box::new(ScriptedAgent { scenario })
        }
        (None, line) => {
            let line = line.clone().unwrap_or_default();
            resolvable(workspace, &line, "agent command")?;
            Box::new(CommandAgent { line, prompt_via: config.agent.prompt_via })
        }
    };
    Ok(Agent {
        name: UNNAMED.to_owned(),
        driver,
        env: config.agent.env.clone().into_iter().collect(),
        pass_env: config.agent.pass_env.clone(),
    })
}

fn named(config: &Config, name: &str, mut described: NamedAgent, sandboxed: bool) -> Result<Agent, Failure> {
    if family(config, name).is_some_and(Family::is_built_in) {
        described.args.splice(0..0, api::arguments(&described.api));
        described.pass_env.extend(api::key_variables(&described.api));
    }
    let env: Vec<(String, String)> = described.env.into_iter().collect();
    let driver: Box<dyn Driver> = match (&described.command, family(config, name)) {
        (Some(line), _) => Box::new(CommandAgent { line: line.clone(), prompt_via: described.prompt_via }),
        (None, Some(family)) => Family::driver(AgentSpec {
            name: name.to_owned(),
            family,
            program: described.program,
            model: described.model,
            args: described.args,
            env: env.clone(),
            sandboxed,
        }),
        (None, None) => {
            let families = Family::ALL.map(Family::name).join(", ");
            return Err(Failure::usage(format!("the agent `{name}` has neither a family nor a command"))
                .hint(format!("write family = \"…\" below [agents.{name}]: {families}")));
        }
    };
    Ok(Agent { name: name.to_owned(), driver, env, pass_env: described.pass_env })
}

/// The family of an agent: what its section says, else the one of the same name.
pub(crate) fn family(config: &Config, name: &str) -> Option<Family> {
    let said = config.agents.get(name).and_then(|agent| agent.family.as_deref());
    Family::from_name(said.unwrap_or(name))
}

/// A missing program is said before anything runs, unless somebody else can take over.
fn present(workspace: &Path, config: &Config, name: &str) -> Result<(), Failure> {
    let Some(family) = family(config, name) else { return Ok(()) };
    if family.is_built_in() {
        return api::check_key(&describe(config, name, true));
    }
    let own = config.agents.get(name).and_then(|agent| agent.program.clone());
    let program = own.unwrap_or_else(|| family.program().to_owned());
    CommandLine::new(program, Vec::<String>::new()).resolve(workspace).map(drop).map_err(|error| {
        Failure::usage(format!("the agent `{name}` cannot be run: {error}"))
            .hint("install it, or give its path as `program`; `wiggum agents` tells what is there")
    })
}

/// How an agent is started for people to sit before it, and what its environment needs.
pub(crate) fn interactive(
    workspace: &Path,
    config: &Config,
    name: &str,
) -> Result<(CommandLine, Vec<(String, String)>), Failure> {
    let described = describe(config, name, config.agent.name.as_deref() == Some(name));
    let env = described.env.into_iter().collect();
    if let Some(line) = &described.command {
        resolvable(workspace, line, "agent command")?;
        let command = CommandLine::parse(line).map_err(|error| Failure::usage(error.to_string()))?;
        return Ok((command, env));
    }
    let family = family(config, name).ok_or_else(|| unknown(config, name))?;
    present(workspace, config, name)?;
    let model = described.model.into_iter().flat_map(|model| ["--model".to_owned(), model]);
    let program = described.program.unwrap_or_else(|| family.program().to_owned());
    Ok((CommandLine::new(program, model.chain(described.args)), env))
}

fn unknown(config: &Config, name: &str) -> Failure {
    Failure::usage(format!("there is no agent `{name}`"))
        .hint(format!("the agents are {}; others get a section [agents.NAME]", known(config).join(", ")))
}
