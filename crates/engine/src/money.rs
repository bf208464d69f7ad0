//! What an agent's work costs, and money that several loops share.
//!
//! The registry of the machine is asked before a call and told after it. A loop without a shared budget
//! only enters itself there, at the beginning and the end of a run, and does not mind if it cannot.

use std::path::PathBuf;

use wiggum_agents::Finished;
use wiggum_core::budget::{Strategy, Sum, admits};
use wiggum_core::event::{Event, Usage};
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
            registry.note(&entry)?;
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

    /// Sets money aside for the call about to begin; false if there is none. Without a shared budget
    /// there is nothing to ask.
    pub(crate) fn set_money_aside(&mut self) -> Result<bool, EngineError> {
        if self.purse.registry.is_none() {
            return Ok(true);
        }
        let (entry, state) = (self.entry(true), &self.journal.state);
        let (budget, dearest) = (&state.policy.budget, state.spending.largest);
        let estimate = match budget.strategy {
            Strategy::Greedy | Strategy::CriticalPath => state.spending.mean(),
            Strategy::Conservative => dearest,
        };
        let (host, Some(registry)) = (&self.host, &mut self.purse.registry) else { return Ok(true) };
        let admits = |shared: &_| admits(budget, dearest, shared);
        let reserved = registry.reserve(&entry, estimate, &|holder| host.is_alive(holder), &admits)?;
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

    /// What the agent used, with the cost from the user's prices where it tells none itself.
    pub(crate) fn usage_of(&self, finished: &Finished) -> Option<Usage> {
        let model = finished.facts.model.as_ref();
        let prices = model.and_then(|model| self.journal.state.policy.prices.get(model));
        finished.usage.map(|usage| usage.priced(prices))
    }

    /// Somebody who set a budget in dollars should know that this agent's work does not count.
    pub(crate) fn warn_of_unpriced(&mut self, usage: Option<Usage>, model: Option<&str>) {
        let policy = &self.journal.state.policy;
        let has_price = model.is_some_and(|model| policy.prices.contains_key(model));
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
        let common = self.git.as_ref().map_or(settings.workspace.as_path(), |git| git.common_dir());
        // A linked work tree names it by way of its own directory.
        let project = common.canonicalize().unwrap_or_else(|_| common.to_owned());
        Entry {
            id: self.journal.id,
            identity: Identity {
                repository: settings.workspace.display().to_string(),
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
