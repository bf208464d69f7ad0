//! What follows from the figures: what ends a run, what makes it wait, what people are told.

use jiff::Timestamp;

use super::spending::HOUR;
use super::{Account, AtLimit, Budget, Cap, Period, Scope, Shared, Strategy, Sum, Unit};
use crate::ids::TaskId;
use crate::mutant::{Mutant, planted};
use crate::state::{Loop, add_millis};

/// How long to wait for calls of others before looking again: the first time, and at most.
const LOOK_AGAIN: u64 = 1000;
const LOOK_AGAIN_MAX: u64 = 60_000;

/// A limit and how near it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gauge {
    pub scope: Scope,
    pub unit: Unit,
    pub spent: f64,
    pub reserved: f64,
    pub limit: f64,
    pub period: Period,
    /// When it begins anew.
    pub resets_at: Option<Timestamp>,
}

/// Something people should be told once.
#[derive(Clone, Debug, PartialEq)]
pub struct Alert {
    pub gauge: Gauge,
    pub task: Option<TaskId>,
    pub threshold: f64,
}

/// Why nothing starts just now.
#[derive(Clone, Debug, PartialEq)]
pub enum Hold {
    /// A budget is used up, and each call waits.
    Throttled { gauge: Gauge, until: Timestamp },
    /// As many calls as an hour may have.
    Rate { limit: u32, until: Timestamp },
    /// What is left is set aside for calls of others.
    Bound { until: Timestamp },
}

impl Gauge {
    /// As an event tells it.
    pub(crate) fn told(
        scope: Scope,
        unit: Unit,
        spent: f64,
        limit: f64,
        resets_at: Option<Timestamp>,
    ) -> Self {
        Self { scope, unit, spent, reserved: 0.0, limit, period: Period::None, resets_at }
    }

    pub fn part(&self) -> f64 {
        self.spent / self.limit
    }

    fn is_used_up(&self) -> bool {
        self.spent >= self.limit
    }

    /// Does the strategy let another call begin?
    fn admits(&self, strategy: Strategy, dearest: Sum) -> bool {
        let bound = self.spent + self.reserved;
        match strategy {
            Strategy::Greedy => !self.is_used_up(),
            Strategy::CriticalPath => bound < self.limit,
            Strategy::Conservative => bound < self.limit && bound + dearest.get(self.unit) <= self.limit,
        }
    }
}

impl std::fmt::Display for Gauge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (spent, limit) = (self.unit.show(self.spent), self.unit.show(self.limit));
        write!(f, "{spent} of {limit} ({} budget", self.scope.name())?;
        match self.period {
            Period::None => {}
            Period::Day => f.write_str(" of today")?,
            Period::Week => f.write_str(" of this week")?,
            Period::Month => f.write_str(" of this month")?,
        }
        if let Some(reset) = self.resets_at {
            write!(f, ", resets {reset:.0}")?;
        }
        f.write_str(")")?;
        let over = self.spent - self.limit;
        if over > 0.0 { write!(f, ", {} over", self.unit.show(over)) } else { Ok(()) }
    }
}

/// The limits of the loop and of what it shares, with what is known of them at this moment.
pub fn gauges(state: &Loop, now: Timestamp) -> impl Iterator<Item = Gauge> + use<> {
    gauges_with(state, state.spending.shared.map(|shared| shared.at(now)))
}

/// As [`gauges`], with other figures of what is shared.
pub(crate) fn gauges_with(state: &Loop, shared: Option<Shared>) -> impl Iterator<Item = Gauge> + use<> {
    let budget = &state.policy.budget;
    let own = Account { spent: Sum::from(state.usage), ..Account::default() };
    let shared = shared.map(|shared| shared_gauges(budget, shared));
    of(Scope::Loop, budget.own, own).chain(shared.into_iter().flatten())
}

fn shared_gauges(budget: &Budget, shared: Shared) -> impl Iterator<Item = Gauge> + use<> {
    of(Scope::Project, budget.project, shared.project).chain(of(
        Scope::Organisation,
        budget.organisation,
        shared.organisation,
    ))
}

fn of(scope: Scope, cap: Cap, account: Account) -> impl Iterator<Item = Gauge> {
    let cost = cap.max_cost.map(|limit| (Unit::Usd, limit));
    let tokens = cap.max_tokens.map(|limit| (Unit::Tokens, limit as f64));
    cost.into_iter().chain(tokens).map(move |(unit, limit)| Gauge {
        scope,
        unit,
        spent: account.spent.get(unit),
        reserved: account.reserved.get(unit),
        limit,
        period: cap.period,
        resets_at: account.resets_at,
    })
}

/// May another call begin, as far as the budgets go that loops share? Asked inside the transaction
/// that then sets the money aside.
pub fn admits(budget: &Budget, dearest: Sum, shared: &Shared) -> bool {
    let mut gauges = shared_gauges(budget, *shared);
    if planted(Mutant::GrantsEverything) || planted(Mutant::RefusesEverything) {
        return planted(Mutant::GrantsEverything);
    }
    budget.action != AtLimit::Deny || gauges.all(|gauge| gauge.admits(budget.strategy, dearest))
}

/// The budget that ends the run, with its figures.
pub fn exhausted(state: &Loop, now: Timestamp) -> Option<String> {
    let budget = &state.policy.budget;
    if budget.action != AtLimit::Deny || planted(Mutant::IgnoresBudget) {
        return None;
    }
    if planted(Mutant::EndsRich) && gauges(state, now).next().is_some() {
        return Some(String::new());
    }
    let dearest = state.spending.largest;
    let Some(gauge) = full_gauge(state, now) else { return too_little_left(state, now) };
    if gauge.is_used_up() {
        return Some(format!("spent {gauge}"));
    }
    let dearest = gauge.unit.show(dearest.get(gauge.unit));
    Some(format!("spent {gauge}: another call as dear as the dearest so far ({dearest}) would go beyond"))
}

/// Whose budget ends the run.
pub fn exhausted_scope(state: &Loop, now: Timestamp) -> Option<Scope> {
    let gauge = full_gauge(state, now).or_else(|| reached_gauge(state, now))?;
    Some(gauge.scope)
}

/// The first budget that admits no further call.
fn full_gauge(state: &Loop, now: Timestamp) -> Option<Gauge> {
    let settled = |gauge: &Gauge| Gauge { reserved: 0.0, ..*gauge };
    let (strategy, dearest) = (state.policy.budget.strategy, state.spending.largest);
    gauges(state, now).find(|gauge| !settled(gauge).admits(strategy, dearest))
}

fn reached_gauge(state: &Loop, now: Timestamp) -> Option<Gauge> {
    let reached = state.spending.reached?;
    gauges(state, now).find(|gauge| reached.is_of(gauge))
}

/// The budget at which an agent had to stop although something is left of it: too little.
fn too_little_left(state: &Loop, now: Timestamp) -> Option<String> {
    let gauge = reached_gauge(state, now)?;
    Some(format!("spent {gauge}: too little is left for another call"))
}

/// Why a task that may start has to wait, if it has to.
pub fn hold(state: &Loop, now: Timestamp) -> Option<Hold> {
    let spending = &state.spending;
    if let Some(limit) = state.policy.limits.calls_per_hour
        && spending.calls.len() >= limit as usize
        && let Some(until) = spending.calls.front().map(|oldest| add_millis(*oldest, HOUR))
        && until > now
        && !planted(Mutant::IgnoresRate)
    {
        return Some(Hold::Rate { limit, until });
    }
    let budget = &state.policy.budget;
    if budget.action == AtLimit::Throttle
        && let Some(gauge) = gauges(state, now).find(Gauge::is_used_up)
        && let Some(last) = spending.last_call
    {
        let doublings = spending.beyond.min(20);
        let wait = budget.throttle.0.saturating_mul(1 << doublings).min(budget.throttle_max.0);
        let until = add_millis(last, wait);
        if until > now {
            return Some(Hold::Throttled { gauge, until });
        }
    }
    let refused = spending.refused?;
    let wait = LOOK_AGAIN.saturating_mul(1 << refused.times.saturating_sub(1).min(10)).min(LOOK_AGAIN_MAX);
    let until = add_millis(refused.at, wait);
    (until > now).then_some(Hold::Bound { until })
}

/// Is the end of a budget in sight, so that it matters what goes first?
pub(crate) fn is_short(state: &Loop, now: Timestamp) -> bool {
    let first = state.policy.budget.alert_at.iter().copied().fold(1.0, f64::min);
    gauges(state, now).any(|gauge| gauge.part() >= first)
}

/// Is a limit reached that calls go beyond?
pub(crate) fn is_beyond(state: &Loop, now: Timestamp) -> bool {
    state.policy.budget.action == AtLimit::Throttle && gauges(state, now).any(|gauge| gauge.is_used_up())
}

/// The part of a budget that is gone and was not told yet.
pub fn alert_due(state: &Loop, now: Timestamp) -> Option<Alert> {
    let budget = &state.policy.budget;
    if budget.action == AtLimit::Allow {
        return None;
    }
    // The end of a run says itself that a budget is used up.
    let at_limit = (budget.action != AtLimit::Deny).then_some(1.0);
    let reached = |part: f64| {
        let part = if planted(Mutant::AlertsEarly) { 2.0 * part } else { part };
        let thresholds = budget.alert_at.iter().copied().chain(at_limit);
        thresholds.filter(|threshold| part >= *threshold).max_by(f64::total_cmp)
    };
    let alert = |gauge: Gauge, task: Option<&TaskId>| {
        let alert = Alert { gauge, task: task.cloned(), threshold: reached(gauge.part())? };
        (!state.spending.was_told(&alert)).then_some(alert)
    };
    let of_task = state.recent.back().and_then(|ended| {
        task_gauges(state, &ended.task).into_iter().find_map(|gauge| alert(gauge, Some(&ended.task)))
    });
    of_task.or_else(|| gauges(state, now).find_map(|gauge| alert(gauge, None)))
}

/// Why a task is not tried again for its cost.
pub(crate) fn task_exhausted(state: &Loop, task: &TaskId) -> Option<String> {
    if state.policy.budget.action != AtLimit::Deny || planted(Mutant::IgnoresTaskBudget) {
        return None;
    }
    let gauges = task_gauges(state, task);
    if let Some(gauge) = gauges.iter().find(|gauge| gauge.is_used_up()) {
        return Some(format!("it cost {gauge}"));
    }
    let reached = state.task(task)?.budget_reached?;
    let gauge = gauges.iter().find(|gauge| reached.is_of(gauge))?;
    Some(format!("it cost {gauge}: too little is left for another call"))
}

/// What a task cost since it was last opened, against what it may.
pub fn task_gauges(state: &Loop, task: &TaskId) -> Vec<Gauge> {
    let cap = state.policy.budget.task;
    if cap.is_none() {
        return Vec::new();
    }
    let Some(entry) = state.task(task) else { return Vec::new() };
    let spent = entry.spent.since(entry.spent_before);
    of(Scope::Task, cap, Account { spent, ..Account::default() }).collect()
}
