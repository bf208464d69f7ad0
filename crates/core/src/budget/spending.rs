//! What a loop has spent, folded from its events, and what people were told of it.

use std::collections::{BTreeMap, VecDeque};

use jiff::Timestamp;

use super::{Alert, Gauge, Scope, Shared, Sum, Unit};
use crate::event::Usage;
use crate::ids::TaskId;
use crate::mutant::{Mutant, planted};
use crate::state::add_millis;

/// An hour in milliseconds.
pub(super) const HOUR: u64 = 3_600_000;

/// What is known of a loop's spending, beside the sums that everybody can see.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spending {
    /// Tokens whose cost nobody told.
    pub unpriced: u64,
    /// Calls that told what they used, and what that was.
    told: u32,
    total: Sum,
    /// The dearest call so far, in dollars and in tokens.
    pub largest: Sum,
    /// Shared budgets as of the last look, with what this loop has spent since.
    pub shared: Option<Shared>,
    /// When calls of the last hour began, no more than the limit needs.
    pub(super) calls: VecDeque<Timestamp>,
    pub(super) last_call: Option<Timestamp>,
    /// Calls begun although a limit was reached.
    pub(super) beyond: u32,
    pub(super) refused: Option<Refusal>,
    /// An agent of this run had to stop at this limit of the loop, or of what it shares.
    pub(crate) reached: Option<Reached>,
    /// How much of which limit was said to be gone.
    alerted: BTreeMap<(Scope, Option<TaskId>, Unit), Alerted>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Refusal {
    pub(super) at: Timestamp,
    /// In a row.
    pub(super) times: u32,
}

/// A limit at which an agent had to stop, whatever is left of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reached {
    pub(crate) scope: Scope,
    pub(crate) unit: Unit,
    pub(crate) limit: f64,
    pub(crate) resets_at: Option<Timestamp>,
}

impl Reached {
    pub(crate) fn of(gauge: &Gauge) -> Self {
        let Gauge { scope, unit, limit, resets_at, .. } = *gauge;
        Self { scope, unit, limit, resets_at }
    }

    /// Is this still that limit? A raised one is another, and so is that of the next period.
    pub(crate) fn is_of(&self, gauge: &Gauge) -> bool {
        *self == Self::of(gauge)
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Alerted {
    limit: f64,
    threshold: f64,
    /// The end of the period it was told for.
    resets_at: Option<Timestamp>,
}

impl Spending {
    pub(crate) fn start_anew(&mut self) {
        self.shared = None;
        self.refused = None;
        self.reached = None;
        self.beyond = 0;
        if planted(Mutant::ForgetsAlerts) {
            self.alerted.clear();
        }
    }

    pub(crate) fn begin_call(&mut self, at: Timestamp, per_hour: Option<u32>, beyond: bool) {
        self.last_call = Some(at);
        self.refused = None;
        self.beyond = if beyond { self.beyond.saturating_add(1) } else { 0 };
        let Some(limit) = per_hour else { return self.calls.clear() };
        self.calls.push_back(at);
        while self.calls.len() > limit as usize {
            self.calls.pop_front();
        }
    }

    pub(crate) fn charge(&mut self, usage: Usage, priced: bool, at: Timestamp) {
        let sum = Sum::from(usage);
        self.last_call = Some(at);
        self.told = self.told.saturating_add(1);
        self.total += sum;
        self.largest = self.largest.largest(sum);
        if !priced {
            self.unpriced = self.unpriced.saturating_add(sum.tokens);
        }
        if let Some(shared) = &mut self.shared {
            shared.project.spent += sum;
            shared.organisation.spent += sum;
        }
    }

    pub(crate) fn look(&mut self, figures: Shared, granted: bool, at: Timestamp) {
        self.shared = Some(figures);
        let times = self.refused.map_or(0, |refused| refused.times);
        self.refused = (!granted).then_some(Refusal { at, times: times.saturating_add(1) });
    }

    pub(crate) fn note_alert(&mut self, alert: &Alert) {
        let Gauge { scope, unit, limit, resets_at, .. } = alert.gauge;
        let told = Alerted { limit, threshold: alert.threshold, resets_at };
        self.alerted.insert((scope, alert.task.clone(), unit), told);
    }

    /// What a call has cost on average.
    pub fn mean(&self) -> Sum {
        let calls = self.told.max(1);
        Sum { cost_usd: self.total.cost_usd / f64::from(calls), tokens: self.total.tokens / u64::from(calls) }
    }

    /// Was as much of this very limit already said to be gone?
    pub(crate) fn was_told(&self, alert: &Alert) -> bool {
        let Gauge { scope, unit, limit, resets_at, .. } = alert.gauge;
        self.alerted.get(&(scope, alert.task.clone(), unit)).is_some_and(|told| {
            (told.limit, told.resets_at) == (limit, resets_at) && told.threshold >= alert.threshold
        })
    }

    /// Is another call within the hour's number, for the checker?
    pub(crate) fn rate_allows(&self, per_hour: u32, at: Timestamp) -> bool {
        let within = |began: &&Timestamp| add_millis(**began, HOUR) > at;
        self.calls.iter().filter(within).count() < per_hour as usize
    }
}
