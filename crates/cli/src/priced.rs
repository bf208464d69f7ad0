//! Whether budgets can hold the agents that are to work: said before anything is spent.

use std::collections::BTreeMap;

use wiggum_agents::Unpriced;
use wiggum_core::budget::AtLimit;
use wiggum_core::policy::Policy;
use wiggum_core::task::Task;
use wiggum_engine::{Agent, Settings};

use crate::config::{Config, ConfigSource};
use crate::failure::Failure;

/// The keys that set a limit in dollars.
const LIMITS: [&str; 4] =
    ["budget.max_cost", "budget.task_cost", "budget.project_cost", "budget.organisation_cost"];

/// Refuses a limit in dollars that somebody set for agents that are known to have no price: it would be
/// without effect. Where tokens are limited too, or nothing follows from the limit, it does no harm.
pub(crate) fn check(
    config: &Config,
    policy: &Policy,
    agents: &[Agent],
    tasks: &[Task],
) -> Result<(), Failure> {
    let budget = &policy.budget;
    let strict = matches!(budget.action, AtLimit::Deny | AtLimit::Throttle);
    let set = LIMITS.into_iter().find(|key| *config.source(key) != ConfigSource::Default);
    let Some(key) = set.filter(|_| strict && budget.counts_cost() && !config.allow_unpriced) else {
        return Ok(());
    };
    if budget.counts_tokens() {
        return Ok(());
    }
    match unpriced(policy, agents, tasks).into_iter().next() {
        None => Ok(()),
        Some((agent, why)) => Err(refusal(key, &agent, &why)),
    }
}

/// What people should know of the agents and the budgets of a run that is about to start.
pub(crate) fn notes(settings: &Settings) -> Vec<String> {
    let budget = &settings.policy.budget;
    let mut notes = Vec::new();
    if budget.action != AtLimit::Deny || !(budget.counts_cost() || budget.counts_tokens()) {
        return notes;
    }
    let unpriced = unpriced(&settings.policy, &settings.agents, &[]);
    for name in workers(&settings.policy, &[]).keys() {
        let Some(agent) = settings.agents.iter().find(|agent| agent.name == *name) else { continue };
        let abilities = agent.driver.abilities();
        if budget.counts_cost() && unpriced.iter().any(|(other, _)| other == name) {
            notes.push(format!("nobody knows what {name} costs: no budget in dollars holds it"));
        } else if !abilities.usage_live {
            notes.push(format!(
                "{name} tells what it used only when it ends: it is not stopped in the middle of its work, and may \
                 go beyond a budget"
            ));
        }
    }
    notes
}

/// Who may work, each with the models that tasks want of it beside its own.
fn workers(policy: &Policy, tasks: &[Task]) -> BTreeMap<String, Vec<Option<String>>> {
    let rules = &policy.agents;
    let mut workers: BTreeMap<String, Vec<Option<String>>> = BTreeMap::new();
    for name in rules.order.iter().chain(rules.roles.values()) {
        workers.entry(name.clone()).or_default().push(None);
    }
    for task in tasks.iter().filter(|task| task.work.is_agents()) {
        if let Some(first) = rules.for_task(task).first() {
            workers.entry((*first).to_owned()).or_default().push(task.model.clone());
        }
    }
    workers
}

/// The agents that are known to have no price, and why.
fn unpriced(policy: &Policy, agents: &[Agent], tasks: &[Task]) -> Vec<(String, Unpriced)> {
    let mut found = Vec::new();
    for (name, models) in workers(policy, tasks) {
        let Some(agent) = agents.iter().find(|agent| agent.name == name) else { continue };
        let why = |model: Option<String>| {
            let model = model.as_deref().or(agent.driver.model());
            agent.driver.abilities().unpriced(model, &policy.prices)
        };
        found.extend(models.into_iter().find_map(why).map(|why| (name.clone(), why)));
    }
    found
}

fn refusal(key: &str, agent: &str, why: &Unpriced) -> Failure {
    let message = format!("`{key}` cannot hold the agent `{agent}`: {}", words(why));
    let otherwise = "limit tokens too (`budget.max_tokens`), or go on without that limit: --allow-unpriced";
    let hint = match why {
        Unpriced::NoFigures => {
            "limit iterations or time instead (--max-iterations, --max-duration), or go on without: --allow-unpriced"
                .to_owned()
        }
        Unpriced::NoModel => format!("name its model (`--model`), {otherwise}"),
        Unpriced::NoPrice { model } => format!("set its price under [prices.{model:?}], {otherwise}"),
    };
    Failure::usage(message).hint(hint)
}

fn words(why: &Unpriced) -> String {
    match why {
        Unpriced::NoFigures => "it does not tell what it uses".to_owned(),
        Unpriced::NoModel => "it tells neither its cost nor its model, so nobody knows its price".to_owned(),
        Unpriced::NoPrice { model } => format!("nobody knows what its model `{model}` costs"),
    }
}
