//! What the rest of a loop will cost, from what its own tasks have cost so far.
//!
//! Tasks are alike if they have the same complexity and role, and both or neither say that several
//! agents work on them. Sums per group are kept event by event, so that a forecast looks at groups and
//! never at tasks.

use std::collections::BTreeMap;

use crate::budget::Sum;
use crate::state::Loop;
use crate::task::Task;

/// The label by which a task says that several agents work on it.
pub const MULTI_AGENT: &str = "multi-agent";

/// Samples from which a group speaks for itself.
const ENOUGH: u32 = 2;

/// So many standard deviations to each side hold four outcomes of five, if they are normal.
const SPREAD: f64 = 1.28;

/// Tasks that are expected to cost alike.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Group {
    pub complexity: u32,
    pub role: String,
    pub multi_agent: bool,
}

impl Group {
    pub(crate) fn of(task: &Task) -> Self {
        Self {
            complexity: task.complexity,
            role: task.role.clone(),
            multi_agent: task.labels.iter().any(|label| label == MULTI_AGENT),
        }
    }
}

/// What completed tasks cost, and what was foreseen.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    groups: BTreeMap<Group, Samples>,
    /// The first forecast made when a quarter of the tasks was done, to be held against the truth.
    pub first: Option<Forecast>,
}

/// Sums over the tasks of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Samples {
    count: u32,
    cost: Moments,
    tokens: Moments,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Moments {
    sum: f64,
    squares: f64,
}

/// What is still to be spent, at the likeliest and between which bounds in four cases of five.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Interval {
    pub low: f64,
    pub expected: f64,
    pub high: f64,
}

/// What finishing the tasks that are left will take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Forecast {
    /// Dollars still to come; none where tokens have no price.
    pub cost: Option<Interval>,
    /// Tokens still to come.
    pub tokens: Interval,
    /// What was spent when the forecast was made.
    pub spent: Sum,
    pub tasks_left: usize,
    pub tasks_done: usize,
    /// Completed tasks that it rests on.
    pub samples: u32,
}

impl Forecast {
    /// What it will have cost in the end.
    pub fn total_cost(&self) -> Option<Interval> {
        let spent = self.spent.cost_usd;
        let Interval { low, expected, high } = self.cost?;
        Some(Interval { low: low + spent, expected: expected + spent, high: high + spent })
    }
}

impl History {
    pub(crate) fn completed(&mut self, task: &Task, cost: Sum) {
        if cost == Sum::default() {
            // Nobody told anything, which is not the same as nothing.
            return;
        }
        let samples = self.groups.entry(Group::of(task)).or_default();
        samples.count += 1;
        samples.cost.add(cost.cost_usd);
        samples.tokens.add(cost.tokens as f64);
    }

    fn of(&self, multi_agent: bool) -> Samples {
        let alike = self.groups.iter().filter(|(group, _)| group.multi_agent == multi_agent);
        alike.fold(Samples::default(), |mut all, (_, samples)| {
            all.count += samples.count;
            all.cost.sum += samples.cost.sum;
            all.cost.squares += samples.cost.squares;
            all.tokens.sum += samples.tokens.sum;
            all.tokens.squares += samples.tokens.squares;
            all
        })
    }
}

/// What finishing will cost; `None` while no task of the loop has been completed with figures.
pub fn forecast(state: &Loop) -> Option<Forecast> {
    let history = &state.history;
    let (plain, multi) = (history.of(false), history.of(true));
    let samples = plain.count + multi.count;
    if samples == 0 {
        return None;
    }
    let factor = state.policy.budget.multi_agent_factor;
    let (mut cost, mut tokens) = (Total::default(), Total::default());
    for (group, left) in state.tasks.left() {
        let own = history.groups.get(group).copied().filter(|samples| samples.count >= ENOUGH);
        let (same, other, ratio) = if group.multi_agent {
            (multi, plain, factor)
        } else {
            (plain, multi, 1.0 / factor.max(f64::MIN_POSITIVE))
        };
        let (known, times) = match own {
            Some(own) => (own, 1.0),
            None if same.count > 0 => (same, 1.0),
            None => (other, ratio),
        };
        cost.add(known.cost, known.count, *left, times);
        tokens.add(known.tokens, known.count, *left, times);
    }
    let counts = state.tasks.counts();
    Some(Forecast {
        cost: (state.spending.unpriced == 0).then(|| cost.interval()),
        tokens: tokens.interval(),
        spent: Sum::from(state.usage),
        tasks_left: state.tasks.left().values().sum(),
        tasks_done: counts.done,
        samples,
    })
}

/// A sum over tasks that are independent of each other, and of whose mean only samples are known.
#[derive(Clone, Copy, Debug, Default)]
struct Total {
    expected: f64,
    variance: f64,
}

impl Total {
    fn add(&mut self, known: Moments, count: u32, left: usize, times: f64) {
        let (count, left) = (f64::from(count), left as f64);
        let mean = known.sum / count;
        // One sample says nothing of how much they differ: as much as they cost is then assumed.
        let variance = if count < f64::from(ENOUGH) {
            mean * mean
        } else {
            ((known.squares - count * mean * mean) / (count - 1.0)).max(0.0)
        };
        self.expected += left * mean * times;
        self.variance += (left + left * left / count) * variance * times * times;
    }

    fn interval(self) -> Interval {
        let spread = SPREAD * self.variance.sqrt();
        Interval {
            low: (self.expected - spread).max(0.0),
            expected: self.expected,
            high: self.expected + spread,
        }
    }
}

impl Moments {
    fn add(&mut self, value: f64) {
        self.sum += value;
        self.squares += value * value;
    }
}
