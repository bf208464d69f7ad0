//! What an agent may still use while it works, and when it has used it up.
//!
//! Only budgets that deny bound an agent: the others let it go on, later or at once.

use super::judge::{Gauge, gauges_with, task_gauges};
use super::{AtLimit, Shared, Strategy, Sum, Unit};
use crate::ids::TaskId;
use crate::state::Loop;

/// The most that one agent may use: what is left of the smallest budget that applies to it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Ceiling {
    pub cost_usd: Option<f64>,
    pub tokens: Option<u64>,
}

/// What an agent that starts on this task may use.
pub fn ceiling(state: &Loop, task: &TaskId) -> Ceiling {
    let strategy = state.policy.budget.strategy;
    let left = |unit: Unit| {
        let gauges = bounds(state, task, state.spending.shared);
        gauges.filter(|gauge| gauge.unit == unit).map(|gauge| gauge.left(strategy)).min_by(f64::total_cmp)
    };
    // Whole tokens, and no more than a count can hold.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is not negative")]
    let tokens = left(Unit::Tokens).map(|tokens| tokens as u64);
    Ceiling { cost_usd: left(Unit::Usd), tokens }
}

/// The budgets that are used up with what the agent at work has used so far, each with that figure.
/// `shared` is what is known of budgets that other loops spend from too.
pub fn used_up(state: &Loop, task: &TaskId, used: Sum, shared: Option<Shared>) -> Vec<Gauge> {
    let strategy = state.policy.budget.strategy;
    let is_used_up = |gauge: &Gauge| used.get(gauge.unit) >= gauge.left(strategy);
    bounds(state, task, shared).filter(is_used_up).map(|gauge| gauge.with(used)).collect()
}

/// The budget that an agent came closest to which ended by itself at its ceiling.
pub fn nearest(state: &Loop, task: &TaskId, used: Sum) -> Option<Gauge> {
    let gauges = bounds(state, task, state.spending.shared).map(|gauge| gauge.with(used));
    gauges.max_by(|one, other| one.part().total_cmp(&other.part()))
}

/// What an agent is told that starts with most of a budget gone: how much is left for it.
pub fn told_to_agent(state: &Loop, task: &TaskId) -> String {
    let threshold = state.policy.handoff.budget_threshold.unwrap_or(1.0);
    let strategy = state.policy.budget.strategy;
    let left = |gauge: &Gauge| gauge.left(strategy) / gauge.limit;
    let short = bounds(state, task, state.spending.shared).filter(|gauge| gauge.part() >= threshold);
    let Some(gauge) = short.min_by(|one, other| left(one).total_cmp(&left(other))) else {
        return String::new();
    };
    let (rest, limit) = (gauge.unit.show(gauge.left(strategy)), gauge.unit.show(gauge.limit));
    format!(
        "## Budget\n\nLeft for you of the {} budget of {limit}: {rest}. You are stopped when it is used up. Do what matters \
         most first, in small steps, and leave the files so that another can go on from them.\n",
        gauge.scope.name()
    )
}

/// The limits that an agent on this task must stay below.
fn bounds(state: &Loop, task: &TaskId, shared: Option<Shared>) -> impl Iterator<Item = Gauge> {
    let denies = state.policy.budget.action == AtLimit::Deny;
    let all = task_gauges(state, task).into_iter().chain(gauges_with(state, shared));
    all.filter(move |_| denies)
}

impl Gauge {
    /// What may still be used. What others have set aside is theirs, unless the strategy says otherwise.
    pub fn left(&self, strategy: Strategy) -> f64 {
        let reserved = match strategy {
            Strategy::Greedy => 0.0,
            Strategy::CriticalPath | Strategy::Conservative => self.reserved,
        };
        (self.limit - self.spent - reserved).max(0.0)
    }

    /// With so much spent beyond what is on record.
    pub(crate) fn with(self, used: Sum) -> Self {
        Self { spent: self.spent + used.get(self.unit), ..self }
    }
}
