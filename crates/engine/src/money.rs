//! What an agent's work costs, and money that several loops share.
//!
//! The registry of the machine is asked before a call and told after it. A loop without a shared budget
//! only enters itself there, at the beginning and the end of a run, and does not mind if it cannot.

use std::path::PathBuf;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use wiggum_agents::Finished;
use wiggum_core::budget::{self, Spans, Strategy, Sum, admits};
use wiggum_core::event::{Event, Trouble, Usage};
use wiggum_core::figures::{self, Figures};
use wiggum_core::price::{self, Prices};
use wiggum_core::state::Loop;
use wiggum_store::registry::{Entry, Registry, Reserved};
use wiggum_store::{Identity, StoreError};
use wiggum_workspace::crash;

use crate::engine::{Engine, Settings};
use crate::error::EngineError;

/// How this loop gets at the money it shares.
#[derive(Debug, Default)]
pub(crate) struct Purse {
    /// Where the registry is; none for a loop that is nobody's business.
    path: Option<PathBuf>,
    /// Open for as long as money is shared.
    registry: Option<Registry>,
    /// It was said that tokens without a price do not count.
    warned: bool,
}

impl Purse {
    pub(crate) fn of(settings: &Settings) -> Self {
        Self { path: settings.registry.clone(), ..Self::default() }
    }
}

impl Engine<'_> {
    /// Enters the loop in the registry, as running or as ended.
    pub(crate) fn enter_registry(&mut self, running: bool) -> Result<(), EngineError> {
        let Some(path) = self.purse.path.clone() else { return Ok(()) };
        let entry = self.entry(running);
        let entered = (|| -> Result<(), StoreError> {
            let mut registry = match self.purse.registry.take() {
                Some(registry) => registry,
                None => Registry::open(&path)?,
            };
            if registry.knows(entry.id)? {
                registry.note(&entry)?;
            } else {
                registry.enter(&entry, &self.charges()?)?;
            }
            self.purse.registry = Some(registry);
            Ok(())
        })();
        if !self.settings.policy.budget.is_shared() {
            // Nothing hangs on it, and nobody should wait for its locks.
            self.purse.registry = None;
            return Ok(());
        }
        Ok(entered?)
    }

    /// When this loop spent what, as its journal tells. Asked once, where the registry does not know it.
    fn charges(&self) -> Result<Vec<(Timestamp, Sum)>, StoreError> {
        if self.journal.state.usage == Usage::default() {
            return Ok(Vec::new());
        }
        let (mut charges, mut state) = (Vec::new(), Loop::default());
        self.journal.store.for_each(self.journal.id, 0, |envelope| {
            let before = Sum::from(state.usage);
            state.apply(&envelope);
            let more = Sum::from(state.usage).since(before);
            charges.extend((more != Sum::default()).then_some((envelope.at, more)));
        })?;
        Ok(charges)
    }

    /// The times under way of budgets that begin anew, by this machine's calendar.
    fn spans(&self) -> Spans {
        let now = self.clock.now().to_zoned(TimeZone::system());
        self.journal.state.policy.budget.spans(&now)
    }

    /// Sets money aside for the call about to begin; false if there is none. Without a shared budget
    /// there is nothing to ask.
    pub(crate) fn set_money_aside(&mut self) -> Result<bool, EngineError> {
        if self.purse.registry.is_none() {
            return Ok(true);
        }
        let (entry, spans, state) = (self.entry(true), self.spans(), &self.journal.state);
        let (budget, dearest) = (&state.policy.budget, state.spending.largest);
        let estimate = match budget.strategy {
            Strategy::Greedy | Strategy::CriticalPath => state.spending.mean(),
            Strategy::Conservative => dearest,
        };
        let (host, Some(registry)) = (&self.host, &mut self.purse.registry) else { return Ok(true) };
        let admits = |shared: &_| admits(budget, dearest, shared);
        let is_alive = |holder: &_| host.is_alive(holder);
        let reserved = registry.reserve(&entry, estimate, &spans, &is_alive, &admits)?;
        crash::point("money set aside");
        let (granted, figures) = match reserved {
            Reserved::Granted(figures) => (true, figures),
            Reserved::Refused(figures) => (false, figures),
        };
        self.record(Event::BudgetAsked { granted, figures });
        Ok(granted)
    }

    /// The call is over. Told before the journal knows, so that what was spent is not forgotten if we
    /// are killed in between: the journal then knows of an interruption only.
    pub(crate) fn settle(&mut self, usage: Option<Usage>) -> Result<(), EngineError> {
        let now = self.clock.now();
        if let Some(registry) = &mut self.purse.registry {
            registry.settle(self.journal.id, usage.map_or_else(Sum::default, Sum::from), now)?;
            crash::point("call settled");
        }
        Ok(())
    }

    /// What the agent used, with the cost from the price table where it tells none itself. One that was
    /// stopped may tell less in the end than it had told before.
    pub(crate) fn usage_of(&self, finished: &Finished, figures: Option<&Figures>) -> Option<Usage> {
        let prices = finished.facts.model.as_deref().and_then(|model| self.prices_of(model));
        let told = finished.usage.map(|usage| usage.credible().priced(prices.as_ref()));
        told.or_else(|| figures.and_then(Figures::used))
    }

    /// What a model costs, where that is known.
    pub(crate) fn prices_of(&self, model: &str) -> Option<Prices> {
        price::find(&self.journal.state.policy.prices, model)
    }

    /// An agent tells what it has used so far. Others who spend from the same budget see it at once.
    pub(crate) fn heed_usage(&mut self, usage: Usage) -> Result<(), EngineError> {
        let (now, usage) = (self.clock.now(), usage.credible());
        let spans = self.purse.registry.as_ref().map(|_| self.spans()).unwrap_or_default();
        let model = self.agent.as_ref().and_then(|agent| agent.model.as_deref());
        let prices = model.and_then(|model| self.prices_of(model));
        let priced = usage.priced(prices.as_ref());
        let shared = match &mut self.purse.registry {
            Some(registry) => Some(registry.note_use(self.journal.id, Sum::from(priced), &spans)?),
            None => None,
        };
        if let Some(agent) = &mut self.agent {
            agent.figures.answered(priced, usage.is_unpriced(), now);
            shared.into_iter().for_each(|shared| agent.figures.look(shared));
        }
        Ok(())
    }

    /// An agent that ended by itself at its ceiling has reached the budget that the ceiling comes from.
    pub(crate) fn note_ceiling(&mut self, finished: &Finished, usage: Option<Usage>) {
        let stopped = finished.problem.as_ref().is_some_and(|problem| problem.trouble == Trouble::Budget);
        let state = &self.journal.state;
        let Some(open) = state.open.here().filter(|open| stopped && open.over_budget.is_none()) else {
            return;
        };
        let used = usage.map_or_else(Sum::default, Sum::from);
        if let Some(gauge) = budget::nearest(state, &open.task, used) {
            self.record(figures::reached(open, gauge));
        }
    }

    /// Somebody who set a budget should know beforehand which agents cannot be held to it while they work.
    pub(crate) fn overspenders(&self) -> Option<String> {
        let budget = &self.settings.policy.budget;
        let is_held = |agent: &&crate::agent::Agent| {
            let can = agent.driver.abilities();
            can.usage_live || can.bounds_cost || can.bounds_tokens
        };
        let limited = budget.is_strict() && (budget.counts_cost() || budget.counts_tokens());
        let order = &self.settings.policy.agents.order;
        let first = self.settings.agents.first().filter(|_| order.is_empty());
        let chosen = order.iter().filter_map(|name| self.settings.agent(name)).chain(first);
        let names: Vec<&str> = chosen
            .filter(|agent| limited && !is_held(agent))
            .map(|agent| if agent.name.is_empty() { "the agent" } else { agent.name.as_str() })
            .collect();
        let (tells, its) = if names.len() == 1 { ("tells", "its") } else { ("tell", "their") };
        (!names.is_empty()).then(|| {
            format!(
                "{} {tells} what was used only at {its} end, if at all: a budget may be overspent by what one agent uses",
                names.join(", ")
            )
        })
    }

    /// Somebody who set a budget in dollars should know that this agent's work does not count.
    pub(crate) fn warn_of_unpriced(&mut self, usage: Option<Usage>, model: Option<&str>) {
        let policy = &self.journal.state.policy;
        let has_price = model.is_some_and(|model| self.prices_of(model).is_some());
        let counts = has_price || usage.is_some_and(|usage| !usage.is_unpriced());
        if counts || !policy.budget.counts_cost() || self.purse.warned {
            return;
        }
        self.purse.warned = true;
        let price = model.map_or_else(String::new, |model| format!(": set [prices.{model:?}]"));
        let message =
            format!("the agent does not tell what it costs, so no budget in dollars counts it{price}");
        self.record(Event::Noticed { task: None, message });
    }

    fn entry(&self, running: bool) -> Entry {
        let settings = &self.settings;
        let common = self.git.as_ref().map_or(settings.workspace(), |git| git.common_dir());
        // A linked work tree names it by way of its own directory.
        let project = common.canonicalize().unwrap_or_else(|_| common.to_owned());
        Entry {
            id: self.journal.id,
            identity: Identity {
                repository: settings.workspace().display().to_string(),
                backlog: settings.backlog_name.clone(),
                name: settings.name.clone(),
            },
            project: project.display().to_string(),
            state_dir: self.dir.path().to_owned(),
            holder: running.then(|| self.host.identity()),
            seen_at: self.clock.now(),
            spent: Sum::from(self.journal.state.usage),
        }
    }
}
