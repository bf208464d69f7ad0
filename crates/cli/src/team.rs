//! Makes agents of what is configured: who works, who takes over, and what each of them is given.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use wiggum_agents::{AgentSpec, CommandAgent, Driver, Family, ScriptedAgent};
use wiggum_core::policy;
use wiggum_core::task::{FileStatus, Task};
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
pub(crate) fn team(
    workspace: &Path,
    config: &Config,
    sandboxed: bool,
    tasks: &[Task],
) -> Result<Team, Failure> {
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
    check_tasks(config, &agents, tasks)?;
    // Somebody else may take over, but not if nobody is there.
    let absent = rules.order.iter().filter_map(|name| present(workspace, config, name).err());
    let absent: Vec<Failure> = absent.collect();
    if absent.len() == rules.order.len() {
        return Err(together(absent));
    }
    Ok(Team { agents, rules })
}

/// A task that names somebody nobody knows is not given to somebody else.
fn check_tasks(config: &Config, agents: &[Agent], tasks: &[Task]) -> Result<(), Failure> {
    let is_left = |task: &&Task| match task.status {
        FileStatus::Open | FileStatus::Failed => true,
        FileStatus::Done | FileStatus::Skipped => false,
    };
    let is_known = |name: &String| agents.iter().any(|agent| agent.name == *name);
    let named = tasks.iter().filter(is_left).filter_map(|task| Some((&task.id, task.agent.as_ref()?)));
    match named.into_iter().find(|(_, name)| !is_known(name)) {
        Some((task, name)) => {
            let failure = unknown(config, name);
            Err(Failure { message: format!("{task}: {}", failure.message), ..failure })
        }
        None => Ok(()),
    }
}

/// Agents that may be asked to work and cannot, for want of a key, while others can: each with why.
pub(crate) fn without_key(config: &Config) -> Vec<String> {
    let first = config.agent.name.iter();
    let named: BTreeSet<&String> =
        first.chain(&config.agent.fallback).chain(config.policy.agents.roles.values()).collect();
    let why = |name: &&String| missing_key(config, name).map(|failure| (name.to_string(), failure.message));
    named.iter().filter_map(why).map(|(name, why)| format!("{name} cannot work: {why}")).collect()
}

/// The built-in agent is known to fail without its key, before anybody is asked.
fn missing_key(config: &Config, name: &str) -> Option<Failure> {
    family(config, name).filter(|family| family.is_built_in())?;
    api::check_key(&describe(config, name, config.agent.name.as_deref() == Some(name))).err()
}

pub(crate) const NO_AGENT: &str = "no agent is configured";

fn first_choice(config: &Config) -> Result<String, Failure> {
    if config.agent.command.is_some() || config.agent.scenario.is_some() {
        return Ok(UNNAMED.to_owned());
    }
    config.agent.name.clone().ok_or_else(|| {
        Failure::usage(NO_AGENT).hint(
            "name one: `wiggum run --agent claude` (`wiggum agents` tells what is there), or any command: \
             `wiggum run --agent-command 'my-agent --yes'`; or set `name` or `command` in [agent] of wiggum.toml",
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

pub(crate) fn named(
    config: &Config,
    name: &str,
    mut described: NamedAgent,
    sandboxed: bool,
) -> Result<Agent, Failure> {
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
            settings_model: settings_model(family, &described.args, &env),
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

/// The model that the agent's own settings choose.
fn settings_model(family: Family, args: &[String], env: &[(String, String)]) -> Option<String> {
    let own = |name: &str| env.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
    let home = own("HOME").map(PathBuf::from).or_else(|| std::env::var_os("HOME").map(PathBuf::from));
    let variable = |name: &str| own(name).or_else(|| std::env::var(name).ok());
    family.settings_model(args, &variable, &home.unwrap_or_default())
}

/// The family of an agent: what its section says, else the one of the same name.
pub(crate) fn family(config: &Config, name: &str) -> Option<Family> {
    let said = config.agents.get(name).and_then(|agent| agent.family.as_deref());
    Family::from_name(said.unwrap_or(name))
}

/// What is wrong with several agents, as one message with the advice for the first.
fn together(failures: Vec<Failure>) -> Failure {
    let messages: Vec<String> = failures.iter().map(|failure| failure.message.clone()).collect();
    let first = failures.into_iter().next().unwrap_or_else(|| Failure::usage(""));
    Failure { message: messages.join("; "), ..first }
}

/// Is its program there, or its key, as far as can be told before it runs?
fn present(workspace: &Path, config: &Config, name: &str) -> Result<(), Failure> {
    let Some(family) = family(config, name) else { return Ok(()) };
    if family.is_built_in() {
        return api::check_key(&describe(config, name, config.agent.name.as_deref() == Some(name)));
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
