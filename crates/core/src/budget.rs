//! Money: what may be spent, what was spent, and what follows when the one reaches the other.
//!
//! The figures are folded from events, so a restart keeps them. What several loops share is known
//! only as of the last look at it, which is an event too; looking and taking is one transaction of
//! the registry, which asks [`admits`]. Whether an iteration may start is judged by [`crate::decide`];
//! an agent that has started is bounded by what is left ([`ceiling()`]) and stopped when that is used up
//! ([`crate::figures`]), so that a loop overspends by one answer of the model where the agent tells
//! what it uses while it works.

mod ceiling;
mod judge;
mod period;
mod spending;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

pub use ceiling::{Ceiling, ceiling, nearest, told_to_agent, used_up};
pub use judge::{
    Alert, Gauge, Hold, admits, alert_due, exhausted, exhausted_scope, gauges, hold, task_gauges,
};
pub(crate) use judge::{gauges_with, is_beyond, is_short, task_exhausted};
pub use period::{Period, Span, Spans};
pub use spending::{Reached, Spending};

use crate::event::Usage;
use crate::policy::Millis;

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

    /// Does it mean anything to come near to a limit? Where nothing follows from reaching it, nothing
    /// follows from coming near.
    pub fn is_strict(&self) -> bool {
        match self.action {
            AtLimit::Deny | AtLimit::Throttle => true,
            AtLimit::Allow | AtLimit::AlertOnly => false,
        }
    }

    /// Is any budget in dollars, which tokens without a price would not count against?
    pub fn counts_cost(&self) -> bool {
        self.caps().iter().any(|cap| cap.max_cost.is_some())
    }

    /// Is any budget in tokens, which needs no price?
    pub fn counts_tokens(&self) -> bool {
        self.caps().iter().any(|cap| cap.max_tokens.is_some())
    }

    fn caps(&self) -> [&Cap; 4] {
        [&self.own, &self.task, &self.project, &self.organisation]
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
    /// When it begins anew; only budgets that loops share do.
    #[serde(skip_serializing_if = "Period::is_none")]
    pub period: Period,
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
    pub(crate) fn get(self, unit: Unit) -> f64 {
        match unit {
            Unit::Usd => self.cost_usd,
            Unit::Tokens => self.tokens as f64,
        }
    }

    /// What came to it.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
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

/// What loops with one budget have spent, and set aside for calls under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Account {
    pub spent: Sum,
    pub reserved: Sum,
    pub in_flight: u32,
    /// When the budget begins anew, and nothing of it is spent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resets_at: Option<Timestamp>,
}

/// What is shared with other loops, as of one look at it, without a call of this loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Shared {
    pub project: Account,
    pub organisation: Account,
}

impl Shared {
    /// What is still true of it: a budget that has begun anew since has nothing spent, as far as is known.
    #[must_use]
    pub fn at(self, now: Timestamp) -> Self {
        let still = |account: Account| match account.resets_at {
            Some(reset) if reset <= now => Account::default(),
            Some(_) | None => account,
        };
        Self { project: still(self.project), organisation: still(self.organisation) }
    }
}
