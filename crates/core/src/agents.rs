//! Who does the work: the agents a run may use, in order, and which of them cannot work just now.
//!
//! A used-up allowance, an overloaded provider or a missing login is no failure of a task: the next
//! agent takes over, or the loop waits.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::event::Trouble;
use crate::ids::Iteration;
use crate::mutant::{Mutant, planted};
use crate::policy::Agents as Rules;
use crate::state::{add_millis, millis_between};
use crate::task::Task;

/// What is known of the agents that gave trouble, or can be continued.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Agents {
    known: BTreeMap<String, Known>,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Known {
    unavailable: Option<Unavailable>,
    /// Faults of the provider in a row.
    faults: u32,
    session: Option<String>,
}

/// Why an agent cannot work just now.
#[derive(Clone, Debug, PartialEq)]
pub struct Unavailable {
    pub trouble: Trouble,
    /// In the agent's words.
    pub message: String,
    /// When the trouble began.
    pub since: Timestamp,
    /// Without it, not before a person has done something about it.
    pub until: Option<Timestamp>,
}

/// Who works next.
#[derive(Clone, Debug, PartialEq)]
pub enum Pick<'a> {
    Agent(&'a str),
    /// All are unavailable; this one comes back first.
    Wait {
        agent: &'a str,
        why: &'a Unavailable,
        until: Timestamp,
    },
    /// All are unavailable, for longer than anybody wants to wait.
    Nobody {
        why: Vec<(&'a str, &'a Unavailable)>,
    },
}

impl Trouble {
    /// Together with what the agent said of it, if that says more.
    pub fn with(&self, message: &str) -> String {
        let trouble = self.to_string();
        if message.is_empty() || message == trouble { trouble } else { format!("{trouble}: {message}") }
    }

    /// Does this say that the agent cannot work, whatever the task?
    pub fn makes_unavailable(&self) -> bool {
        match self {
            Self::UsageLimit { .. }
            | Self::Overloaded
            | Self::Network
            | Self::Authentication
            | Self::Missing
            | Self::SessionLost => true,
            Self::ContextFull
            | Self::Truncated
            | Self::Empty
            | Self::Refused
            | Self::OwnLimit
            | Self::PermissionDenied
            | Self::Silent
            | Self::Interrupted
            | Self::Other => false,
        }
    }
}

impl Agents {
    /// A person starts anew and may have seen to everything.
    pub(crate) fn start_anew(&mut self) {
        for known in self.known.values_mut() {
            known.unavailable = None;
            known.faults = 0;
        }
    }

    /// The agent worked, whatever came of it.
    pub(crate) fn worked(&mut self, agent: &str, session: Option<&String>) {
        let known = self.known.entry(agent.to_owned()).or_default();
        known.unavailable = None;
        known.faults = 0;
        known.session = session.cloned();
    }

    /// What follows starts with a fresh context, also where sessions are kept.
    pub(crate) fn forget_sessions(&mut self) {
        for known in self.known.values_mut() {
            known.session = None;
        }
    }

    pub(crate) fn note_trouble(
        &mut self,
        rules: &Rules,
        agent: &str,
        iteration: Iteration,
        trouble: &Trouble,
        message: &str,
        at: Timestamp,
    ) {
        let known = self.known.entry(agent.to_owned()).or_default();
        known.faults += 1;
        let backoff = || add_millis(at, backoff(rules, known.faults, iteration));
        let until = match trouble {
            Trouble::UsageLimit { resets_at } => {
                Some(resets_at.filter(|reset| *reset > at).unwrap_or_else(backoff))
            }
            Trouble::Overloaded | Trouble::Network => Some(backoff()),
            Trouble::SessionLost => Some(at),
            _ => None,
        };
        if *trouble == Trouble::SessionLost {
            known.session = None;
        }
        let since = known.unavailable.as_ref().map_or(at, |before| before.since);
        known.unavailable =
            Some(Unavailable { trouble: trouble.clone(), message: message.to_owned(), since, until });
    }

    /// The session to go on with, if sessions are kept.
    pub fn session(&self, rules: &Rules, agent: &str) -> Option<&str> {
        let known = self.known.get(agent).filter(|_| rules.continue_sessions)?;
        known.session.as_deref()
    }

    /// Why this agent cannot work at the moment.
    pub fn unavailable(&self, agent: &str, now: Timestamp) -> Option<&Unavailable> {
        let why = self.known.get(agent)?.unavailable.as_ref()?;
        why.until.is_none_or(|until| until > now).then_some(why)
    }

    pub(crate) fn pick<'a>(&'a self, rules: &'a Rules, task: &'a Task, now: Timestamp) -> Pick<'a> {
        let order = rules.for_task(task);
        let mut why = Vec::new();
        for agent in &order {
            match self.unavailable(agent, now).filter(|_| !planted(Mutant::IgnoresUnavailable)) {
                None => return Pick::Agent(agent),
                Some(unavailable) => why.push((*agent, unavailable)),
            }
        }
        let patient = |why: &Unavailable| {
            let until = why.until?;
            (millis_between(why.since, until) <= rules.max_wait.0).then_some(until)
        };
        let first = why.iter().filter_map(|(agent, why)| Some((patient(why)?, *agent, *why)));
        match first.min_by_key(|(until, ..)| *until) {
            Some((until, agent, why)) => Pick::Wait { agent, why, until },
            None => Pick::Nobody { why },
        }
    }
}

/// Doubles with every fault, and varies with the iteration so that many loops do not come back at
/// the same moment.
fn backoff(rules: &Rules, faults: u32, iteration: Iteration) -> u64 {
    let doublings = faults.saturating_sub(1).min(20);
    let longest = rules.backoff.0.saturating_mul(1 << doublings).min(rules.backoff_max.0);
    let part = u64::from(iteration.wrapping_mul(0x9e37_79b1) >> 24);
    longest / 2 + longest / 2 * part / 256
}

impl std::fmt::Display for Unavailable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.trouble.with(&self.message))
    }
}
