//! Who does the work: the agents a run may use, in order, and which of them cannot work just now.
//!
//! A used-up allowance, an overloaded provider or a missing login is no failure of a task: the next
//! agent takes over, or the loop waits.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::event::Trouble;
use crate::ids::Iteration;
use crate::mutant::{Mutant, planted};
use crate::policy::{Agents as Rules, Millis};
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
    faults: Faults,
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

    /// Does this say that the agent cannot work, whatever the task? `continued`: it was to go on with a session of its
    /// own. Only then is a lost session no failure, since the next start begins a new one.
    fn makes_unavailable(&self, continued: bool) -> bool {
        match self {
            Self::UsageLimit { .. }
            | Self::Overloaded
            | Self::Network
            | Self::Authentication
            | Self::Missing => true,
            Self::SessionLost => continued,
            Self::ContextFull
            | Self::Truncated
            | Self::Empty
            | Self::Refused
            | Self::OwnLimit
            | Self::Budget
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
            known.faults = Faults::default();
        }
    }

    /// The agent worked, whatever came of it.
    pub(crate) fn worked(&mut self, agent: &str, session: Option<&String>) {
        let known = self.known.entry(agent.to_owned()).or_default();
        known.unavailable = None;
        known.faults = Faults::default();
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
        let faults = known.faults.count(trouble, at);
        let since = faults.since().unwrap_or(at);
        let until = back_at(rules, trouble, faults, iteration, at);
        if *trouble == Trouble::SessionLost {
            known.session = None;
        }
        known.unavailable =
            Some(Unavailable { trouble: trouble.clone(), message: message.to_owned(), since, until });
    }

    /// Does this trouble of the agent at work say that it cannot work, whatever the task?
    pub(crate) fn is_unavailable_by(&self, rules: &Rules, agent: &str, trouble: &Trouble) -> bool {
        trouble.makes_unavailable(self.session(rules, agent).is_some())
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

/// Says in the message of an error that a variable was not passed on.
pub const WITHHELD: &str = "withheld by wiggum";

/// How an agent's provider has failed up to now, without a success in between.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    in_a_row: u32,
    /// Usage limits that did not say when they end.
    unannounced: u32,
    since: Option<Timestamp>,
}

impl Faults {
    pub fn count(&mut self, trouble: &Trouble, at: Timestamp) -> Self {
        self.in_a_row += 1;
        self.unannounced += u32::from(matches!(trouble, Trouble::UsageLimit { resets_at: None }));
        self.since.get_or_insert(at);
        *self
    }

    /// Since when nothing has come of it.
    pub fn since(&self) -> Option<Timestamp> {
        self.since
    }
}

/// When an agent that gave this trouble may be asked again; not before a person did something about it
/// where nothing is said.
pub fn back_at(
    rules: &Rules,
    trouble: &Trouble,
    faults: Faults,
    iteration: Iteration,
    at: Timestamp,
) -> Option<Timestamp> {
    if faults.in_a_row > MOST_FAULTS {
        return None;
    }
    let backoff = || add_millis(at, backoff(rules.backoff, rules.backoff_max, faults.in_a_row, iteration));
    match trouble {
        // The first time it is believed. A limit that is there again after its own reset, or should be over
        // already, is asked about less and less often.
        Trouble::UsageLimit { resets_at: Some(reset) } if *reset > at && faults.in_a_row <= 1 => Some(*reset),
        Trouble::UsageLimit { resets_at: Some(reset) } => Some(backoff().max(*reset)),
        Trouble::UsageLimit { resets_at: None } => {
            let wait = self::backoff(rules.limit_wait, LONGEST_LIMIT_WAIT, faults.unannounced, iteration);
            // As long as anybody wants to wait: then it is tried once more before the loop gives up.
            let end = add_millis(faults.since.unwrap_or(at), rules.max_wait.0);
            let until = add_millis(at, wait);
            Some(if end > at { until.min(end) } else { until })
        }
        Trouble::Overloaded | Trouble::Network => Some(backoff()),
        Trouble::SessionLost => Some(at),
        Trouble::ContextFull
        | Trouble::Truncated
        | Trouble::Empty
        | Trouble::Authentication
        | Trouble::Missing
        | Trouble::Refused
        | Trouble::OwnLimit
        | Trouble::Budget
        | Trouble::PermissionDenied
        | Trouble::Silent
        | Trouble::Interrupted
        | Trouble::Other => None,
    }
}

/// So many starts without any work need a person, however short the waits between them are set. With the waits of the
/// default policy, `max_wait` (12 hours) is over after fewer than 160.
const MOST_FAULTS: u32 = 200;

/// Allowances come back after hours; looking once an hour loses little of them and asks seldom.
const LONGEST_LIMIT_WAIT: Millis = Millis::from_secs(3600);

/// Doubles with every fault, and varies with the iteration so that many loops do not come back at
/// the same moment.
fn backoff(first: Millis, most: Millis, faults: u32, iteration: Iteration) -> u64 {
    let doublings = faults.saturating_sub(1).min(20);
    let longest = first.0.saturating_mul(1 << doublings).min(most.0);
    let part = u64::from(iteration.wrapping_mul(0x9e37_79b1) >> 24);
    longest / 2 + longest / 2 * part / 256
}

impl std::fmt::Display for Unavailable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.trouble.with(&self.message))
    }
}
