//! The circuit breaker: a loop that gets nowhere stops by itself, and tries again with one probe.
//!
//! Counted over iterations of all tasks and over runs, folded from what was judged. Open, it ends the
//! run; the next run waits for the rest of the cooldown, then one iteration shows whether things are
//! better (half open). A person who does something about it closes it at once.
//!
//! An agent that could not work says nothing about the work and does not count. An error counts as an
//! error and not as missing progress: it is named for what it is.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::policy::Millis;
use crate::state::add_millis;

/// How much in a row opens the breaker; 0 means never.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Rules {
    /// Iterations with neither a completion nor a change of the tree.
    pub no_progress: u32,
    /// Errors that are the same but for paths, numbers and times, whatever the task.
    pub same_error: u32,
    /// Attempts at which the agent was not permitted to act.
    pub permission_denied: u32,
    /// How long it stays open before one iteration is tried.
    pub cooldown: Millis,
}

impl Default for Rules {
    fn default() -> Self {
        Self { no_progress: 3, same_error: 5, permission_denied: 2, cooldown: Millis::from_secs(30 * 60) }
    }
}

impl Rules {
    /// For journals from before there was a breaker.
    pub(crate) fn off() -> Self {
        Self { no_progress: 0, same_error: 0, permission_denied: 0, cooldown: Millis(0) }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Breaker {
    pub phase: Phase,
    pub no_progress: u32,
    pub same_error: u32,
    error: String,
    pub denied: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    #[default]
    Closed,
    Open(Tripped),
    /// The probe is under way.
    HalfOpen(Tripped),
}

impl Phase {
    pub fn name(&self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open(_) => "open",
            Self::HalfOpen(_) => "half_open",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tripped {
    pub at: Timestamp,
    pub run: u32,
    pub why: String,
}

/// What an iteration tells.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Seen<'a> {
    /// It ended without an error.
    Ended {
        progress: bool,
    },
    Failed {
        signature: &'a str,
        denied: bool,
        progress: bool,
    },
    /// A person is asked, who will decide.
    Asked,
}

impl Breaker {
    pub(crate) fn note(&mut self, rules: &Rules, seen: Seen<'_>, run: u32, at: Timestamp) {
        let probing = matches!(self.phase, Phase::HalfOpen(_));
        match seen {
            Seen::Ended { progress } => {
                self.no_progress = if progress { 0 } else { self.no_progress + 1 };
                self.forget_errors();
            }
            Seen::Failed { signature, denied, progress } => {
                if progress {
                    self.no_progress = 0;
                }
                self.same_error = if self.error == signature { self.same_error + 1 } else { 1 };
                signature.clone_into(&mut self.error);
                self.denied = if denied { self.denied + 1 } else { 0 };
            }
            Seen::Asked => self.forget_errors(),
        }
        if probing {
            match seen {
                Seen::Ended { progress: true } | Seen::Asked => self.close(),
                Seen::Ended { progress: false } => {
                    self.open("the probe made no progress".to_owned(), run, at);
                }
                Seen::Failed { signature, .. } => {
                    self.open(format!("the probe failed: {signature}"), run, at)
                }
            }
        } else if let Some(why) = self.tripped(rules) {
            self.open(why, run, at);
        }
    }

    fn tripped(&self, rules: &Rules) -> Option<String> {
        let reached = |times: u32, limit: u32| limit > 0 && times >= limit;
        if reached(self.no_progress, rules.no_progress) {
            return Some(crate::text::without_progress(self.no_progress));
        }
        if reached(self.same_error, rules.same_error) {
            return Some(format!("the same error {} times in a row: {}", self.same_error, self.error));
        }
        reached(self.denied, rules.permission_denied)
            .then(|| format!("the agent was not permitted to act {} times in a row", self.denied))
    }

    fn open(&mut self, why: String, run: u32, at: Timestamp) {
        *self = Self { phase: Phase::Open(Tripped { at, run, why }), ..Self::default() };
    }

    fn forget_errors(&mut self) {
        self.same_error = 0;
        self.error.clear();
        self.denied = 0;
    }

    /// A task was completed, or a person did something: nothing of before counts.
    pub(crate) fn close(&mut self) {
        *self = Self::default();
    }

    /// The streaks have led to a question and are not counted twice.
    pub(crate) fn forget_streaks(&mut self) {
        *self = Self { phase: std::mem::take(&mut self.phase), ..Self::default() };
    }

    /// An iteration starts: while the breaker is open, that is the probe.
    pub(crate) fn probe(&mut self) {
        self.phase = match std::mem::take(&mut self.phase) {
            Phase::Open(tripped) => Phase::HalfOpen(tripped),
            other @ (Phase::Closed | Phase::HalfOpen(_)) => other,
        };
    }

    /// The probe ended without telling anything: another one may be tried.
    pub(crate) fn lose_probe(&mut self) {
        self.phase = match std::mem::take(&mut self.phase) {
            Phase::HalfOpen(tripped) => Phase::Open(tripped),
            other @ (Phase::Closed | Phase::Open(_)) => other,
        };
    }

    /// Why it opened in this run, which ends it.
    pub(crate) fn opened_in(&self, run: u32) -> Option<&Tripped> {
        match &self.phase {
            Phase::Open(tripped) if tripped.run == run => Some(tripped),
            Phase::Open(_) | Phase::Closed | Phase::HalfOpen(_) => None,
        }
    }

    /// Why it is open, and until when it stays so before a probe.
    pub fn cooling(&self, rules: &Rules) -> Option<(&Tripped, Timestamp)> {
        match &self.phase {
            Phase::Open(tripped) => Some((tripped, add_millis(tripped.at, rules.cooldown.0))),
            Phase::Closed | Phase::HalfOpen(_) => None,
        }
    }
}
