//! What was foreseen to be spent, held against what was.

use serde::Serialize;
use wiggum_core::forecast::Interval;
use wiggum_core::state::Loop;

/// The cost of the whole loop as it was foreseen early on, and as it is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Foreseen {
    /// How many tasks were done when it was foreseen.
    pub tasks_done: usize,
    pub low_usd: f64,
    pub expected_usd: f64,
    pub high_usd: f64,
    pub actual_usd: f64,
    /// How far off it was, as a part of the truth: above 0 if too much was foreseen.
    pub error: f64,
    /// Is that the whole truth, with no task left?
    pub complete: bool,
}

impl Foreseen {
    pub(super) fn of(state: &Loop) -> Option<Self> {
        let first = state.history.first?;
        let Interval { low, expected, high } = first.total_cost()?;
        let actual = state.usage.cost_usd;
        (actual > 0.0 && state.spending.unpriced == 0).then(|| Self {
            tasks_done: first.tasks_done,
            low_usd: low,
            expected_usd: expected,
            high_usd: high,
            actual_usd: actual,
            error: expected / actual - 1.0,
            complete: state.tasks.left().is_empty(),
        })
    }

    /// For people to read.
    pub(super) fn sentence(&self) -> String {
        let Self { tasks_done, low_usd, expected_usd, high_usd, actual_usd, error, complete } = *self;
        let after = if tasks_done == 1 { "one task".to_owned() } else { format!("{tasks_done} tasks") };
        let foreseen =
            format!("Foreseen after {after}: ${expected_usd:.2} (${low_usd:.2} to ${high_usd:.2}) in all");
        if !complete {
            return format!("{foreseen}; ${actual_usd:.2} so far, with tasks left.");
        }
        let off = match error {
            e if e.abs() < 0.005 => "exactly that".to_owned(),
            e if e > 0.0 => format!("{:.0} % too much", e * 100.0),
            e => format!("{:.0} % too little", -e * 100.0),
        };
        let held =
            if (low_usd - 0.005..=high_usd + 0.005).contains(&actual_usd) { "within" } else { "outside" };
        format!("{foreseen}; it was ${actual_usd:.2}: {off}, {held} the interval.")
    }
}
