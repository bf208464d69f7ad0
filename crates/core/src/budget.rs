//! Money: what may be spent, what was spent, and what follows when the one reaches the other.
//!
//! The figures are folded from events, so a restart keeps them. What several loops share is known
//! only as of the last look at it, which is an event too; looking and taking is one transaction of
//! the registry, which asks [`admits`]. Everything else is judged by [`crate::decide`] before an
//! iteration starts: a call that has begun is never ended for its cost, so what is overspent is at
//! most what the calls under way cost.

use std::collections::{BTreeMap, VecDeque};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::event::Usage;
use crate::ids::TaskId;
use crate::policy::Millis;
use crate::state::{Loop, add_millis};

/// What may be spent, and how strictly that is meant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Budget {
    /// What this loop may spend, in all its runs.
    #[serde(rename = "loop")]
    pub own: Cap,
    /// What one task may cost, counted since it was last opened.
    pub task: Cap,
    /// What all loops of the repository may spend.
    pub project: Cap,
    /// What all loops of this user on this machine may spend.
    pub organisation: Cap,
    /// What happens at the limit.
    pub action: AtLimit,
    /// Parts of a budget at which it is said how much is gone.
    pub alert_at: Vec<f64>,
    pub strategy: Strategy,
    /// With `throttle`: the first wait; doubles with each call beyond the limit.
    pub throttle: Millis,
    pub throttle_max: Millis,
    /// How many times as dear a task with several agents is, as long as none is known.
    pub multi_agent_factor: f64,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            own: Cap::default(),
            task: Cap::default(),
            project: Cap::default(),
            organisation: Cap::default(),
            action: AtLimit::Deny,
            alert_at: vec![0.8],
            strategy: Strategy::CriticalPath,
            throttle: Millis::from_secs(30),
            throttle_max: Millis::from_secs(1800),
            multi_agent_factor: 15.0,
        }
    }
}

impl Budget {
    /// Do other loops spend from the same budget?
    pub fn is_shared(&self) -> bool {
        !(self.project.is_none() && self.organisation.is_none())
    }

    /// Is any budget in dollars, which tokens without a price would not count against?
    pub fn counts_cost(&self) -> bool {
        [&self.own, &self.task, &self.project, &self.organisation].iter().any(|cap| cap.max_cost.is_some())
    }
}

/// A limit; none where it says nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Cap {
    /// In US dollars.
    pub max_cost: Option<f64>,
    pub max_tokens: Option<u64>,
}

impl Cap {
    fn is_none(&self) -> bool {
        self.max_cost.is_none() && self.max_tokens.is_none()
    }
}

/// What happens when a budget is used up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum AtLimit {
    /// Nothing: the budget is only looked at.
    Allow,
    /// Goes on, but waits before each call, longer each time.
    Throttle,
    #[default]
    Deny,
    /// Says so once and goes on.
    AlertOnly,
}

/// How what is left of a budget is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Strategy {
    /// In the usual order, for as long as there is anything left.
    Greedy,
    /// Counts calls under way as spent; when money gets short, what most others wait on goes first.
    #[default]
    CriticalPath,
    /// Starts only what is paid for even if it gets as dear as the dearest call so far.
    Conservative,
}

/// Whose budget is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    Task,
    Loop,
    Project,
    Organisation,
}

impl Scope {
    pub fn name(self) -> &'static str {
        match self {
            Self::Task => "task",
            Self::Loop => "loop",
            Self::Project => "project",
            Self::Organisation => "organisation",
        }
    }
}

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    Usd,
    Tokens,
}

impl Unit {
    /// A figure as people read it.
    pub fn show(self, figure: f64) -> String {
        match self {
            Self::Usd if figure != 0.0 && figure.abs() < 0.01 => format!("${figure:.4}"),
            Self::Usd => format!("${figure:.2}"),
            Self::Tokens => format!("{figure:.0} tokens"),
        }
    }
}

/// Dollars and tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Sum {
    pub cost_usd: f64,
    pub tokens: u64,
}

impl Sum {
    fn get(self, unit: Unit) -> f64 {
        match unit {
            Unit::Usd => self.cost_usd,
            Unit::Tokens => self.tokens as f64,
        }
    }

    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            cost_usd: (self.cost_usd - before.cost_usd).max(0.0),
            tokens: self.tokens.saturating_sub(before.tokens),
        }
    }

    fn largest(self, other: Self) -> Self {
        Self { cost_usd: self.cost_usd.max(other.cost_usd), tokens: self.tokens.max(other.tokens) }
    }
}

impl From<Usage> for Sum {
    fn from(usage: Usage) -> Self {
        Self { cost_usd: usage.cost_usd, tokens: usage.tokens() }
    }
}

impl std::ops::AddAssign for Sum {
    fn add_assign(&mut self, other: Self) {
        self.cost_usd += other.cost_usd;
        self.tokens = self.tokens.saturating_add(other.tokens);
    }
}

/// What loops with one purse have spent, and set aside for calls under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Account {
    pub spent: Sum,
    pub reserved: Sum,
    pub in_flight: u32,
}

/// What is shared with other loops, as of one look at it, without a call of this loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Shared {
    pub project: Account,
    pub organisation: Account,
}

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
    calls: VecDeque<Timestamp>,
    last_call: Option<Timestamp>,
    /// Calls begun although a limit was reached.
    beyond: u32,
    refused: Option<Refusal>,
    /// How much of which limit was said to be gone.
    alerted: BTreeMap<(Scope, Option<TaskId>, Unit), Alerted>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Refusal {
    at: Timestamp,
    /// In a row.
    times: u32,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Alerted {
    limit: f64,
    threshold: f64,
}

/// A limit and how near it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gauge {
    pub scope: Scope,
    pub unit: Unit,
    pub spent: f64,
    pub reserved: f64,
    pub limit: f64,
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

/// An hour in milliseconds.
const HOUR: u64 = 3_600_000;

/// How long to wait for calls of others before looking again: the first time, and at most.
const LOOK_AGAIN: u64 = 1000;
const LOOK_AGAIN_MAX: u64 = 60_000;

impl Spending {
    pub(crate) fn start_anew(&mut self) {
        self.shared = None;
        self.refused = None;
        self.beyond = 0;
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
        let Gauge { scope, unit, limit, .. } = alert.gauge;
        let told = Alerted { limit, threshold: alert.threshold };
        self.alerted.insert((scope, alert.task.clone(), unit), told);
    }

    /// What a call has cost on average.
    pub fn mean(&self) -> Sum {
        let calls = self.told.max(1);
        Sum { cost_usd: self.total.cost_usd / f64::from(calls), tokens: self.total.tokens / u64::from(calls) }
    }

    /// Was as much of this very limit already said to be gone?
    pub(crate) fn was_told(&self, alert: &Alert) -> bool {
        let Gauge { scope, unit, limit, .. } = alert.gauge;
        self.alerted
            .get(&(scope, alert.task.clone(), unit))
            .is_some_and(|told| told.limit == limit && told.threshold >= alert.threshold)
    }
}

impl Gauge {
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
        write!(f, "{spent} of {limit} ({} budget)", self.scope.name())
    }
}

/// The limits of the loop and of what it shares, with what is known of them.
pub fn gauges(state: &Loop) -> impl Iterator<Item = Gauge> {
    let budget = &state.policy.budget;
    let own = Account { spent: Sum::from(state.usage), ..Account::default() };
    let shared = state.spending.shared.map(|shared| {
        of(Scope::Project, budget.project, shared.project).chain(of(
            Scope::Organisation,
            budget.organisation,
            shared.organisation,
        ))
    });
    of(Scope::Loop, budget.own, own).chain(shared.into_iter().flatten())
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
    })
}

/// May another call begin, as far as the budgets go that loops share? Asked inside the transaction
/// that then sets the money aside.
pub fn admits(budget: &Budget, dearest: Sum, shared: &Shared) -> bool {
    let gauges = of(Scope::Project, budget.project, shared.project).chain(of(
        Scope::Organisation,
        budget.organisation,
        shared.organisation,
    ));
    budget.action != AtLimit::Deny || gauges.into_iter().all(|gauge| gauge.admits(budget.strategy, dearest))
}

/// The budget that ends the run, with its figures.
pub fn exhausted(state: &Loop) -> Option<String> {
    let budget = &state.policy.budget;
    if budget.action != AtLimit::Deny {
        return None;
    }
    let dearest = state.spending.largest;
    let settled = |gauge: &Gauge| Gauge { reserved: 0.0, ..*gauge };
    let gauge = gauges(state).find(|gauge| !settled(gauge).admits(budget.strategy, dearest))?;
    if gauge.is_used_up() {
        return Some(format!("spent {gauge}"));
    }
    let dearest = gauge.unit.show(dearest.get(gauge.unit));
    Some(format!("spent {gauge}: another call as dear as the dearest so far ({dearest}) would go beyond"))
}

/// Why a task that may start has to wait, if it has to.
pub fn hold(state: &Loop, now: Timestamp) -> Option<Hold> {
    let spending = &state.spending;
    if let Some(limit) = state.policy.limits.calls_per_hour
        && spending.calls.len() >= limit as usize
        && let Some(until) = spending.calls.front().map(|oldest| add_millis(*oldest, HOUR))
        && until > now
    {
        return Some(Hold::Rate { limit, until });
    }
    let budget = &state.policy.budget;
    if budget.action == AtLimit::Throttle
        && let Some(gauge) = gauges(state).find(Gauge::is_used_up)
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
pub(crate) fn is_short(state: &Loop) -> bool {
    let first = state.policy.budget.alert_at.iter().copied().fold(1.0, f64::min);
    gauges(state).any(|gauge| gauge.part() >= first)
}

/// Is a limit reached that calls go beyond?
pub(crate) fn is_beyond(state: &Loop) -> bool {
    state.policy.budget.action == AtLimit::Throttle && gauges(state).any(|gauge| gauge.is_used_up())
}

/// The part of a budget that is gone and was not told yet.
pub fn alert_due(state: &Loop) -> Option<Alert> {
    let budget = &state.policy.budget;
    if budget.action == AtLimit::Allow {
        return None;
    }
    // The end of a run says itself that a budget is used up.
    let at_limit = (budget.action != AtLimit::Deny).then_some(1.0);
    let reached = |part: f64| {
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
    of_task.or_else(|| gauges(state).find_map(|gauge| alert(gauge, None)))
}

/// Why a task is not tried again for its cost.
pub(crate) fn task_exhausted(state: &Loop, task: &TaskId) -> Option<String> {
    if state.policy.budget.action != AtLimit::Deny {
        return None;
    }
    let gauge = task_gauges(state, task).into_iter().find(Gauge::is_used_up)?;
    Some(format!("it cost {gauge}"))
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

impl Spending {
    /// Is another call within the hour's number, for the checker?
    pub(crate) fn rate_allows(&self, per_hour: u32, at: Timestamp) -> bool {
        let within = |began: &&Timestamp| add_millis(**began, HOUR) > at;
        self.calls.iter().filter(within).count() < per_hour as usize
    }
}
