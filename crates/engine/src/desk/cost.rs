//! What a loop cost, by task, agent, model, day or loop; how that came about over time; and what the rest
//! will cost.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use wiggum_core::event::Envelope;
use wiggum_core::forecast::{self, Forecast, Interval};
use wiggum_core::state::Loop;

use crate::desk::calls::{self, Call, Spent};
use crate::desk::{DeskError, Loops};
use crate::status::{self, BudgetStatus};

/// What costs are told apart by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum By {
    #[default]
    Task,
    Agent,
    Model,
    Day,
    Loop,
}

impl By {
    pub const ALL: [Self; 5] = [Self::Task, Self::Agent, Self::Model, Self::Day, Self::Loop];

    pub fn name(self) -> &'static str {
        match self {
            Self::Task => "task",
            Self::Agent => "agent",
            Self::Model => "model",
            Self::Day => "day",
            Self::Loop => "loop",
        }
    }
}

/// The cost of a loop. As JSON, fields may be added and none changes its meaning.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Report {
    #[serde(rename = "loop")]
    pub name: String,
    pub by: &'static str,
    pub total: Spent,
    /// Their sums are the total.
    pub rows: Vec<Row>,
    pub budgets: Vec<BudgetStatus>,
    /// Null while no task was completed with figures.
    pub forecast: Option<ForecastShown>,
    /// The one made when a quarter of the tasks was done.
    pub first_forecast: Option<ForecastShown>,
    /// What was spent up to each call, in order of time.
    pub over_time: Vec<Moment>,
    /// How many tasks were left, whenever that changed.
    pub burn_down: Vec<Left>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Row {
    pub key: String,
    #[serde(flatten)]
    pub spent: Spent,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ForecastShown {
    /// Dollars still to come: `low` to `high` in four cases of five. Null where tokens have no price.
    pub remaining_usd: Option<IntervalShown>,
    pub total_usd: Option<IntervalShown>,
    pub remaining_tokens: IntervalShown,
    pub spent_usd: f64,
    pub tasks_left: usize,
    pub tasks_done: usize,
    /// Completed tasks that it rests on.
    pub samples: u32,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IntervalShown {
    pub low: f64,
    pub expected: f64,
    pub high: f64,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Moment {
    pub at: Timestamp,
    pub cost_usd: f64,
}

#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Left {
    pub at: Timestamp,
    pub tasks: usize,
}

/// Reads what the loop that is meant cost, or what all did if that is asked.
pub fn report(loops: &Loops, which: Option<&str>, by: By, now: Timestamp) -> Result<Report, DeskError> {
    if by == By::Loop {
        return of_all_loops(loops);
    }
    let record = loops.select(which)?;
    let journal = loops.store.read(record.id, 0)?;
    let (calls, state, burn_down) = read(&journal);
    Ok(of(&state, &calls, burn_down, by, now))
}

/// The cost of a loop of which these calls and this burn-down are known.
pub fn of(state: &Loop, calls: &[Call], burn_down: Vec<Left>, by: By, now: Timestamp) -> Report {
    let mut rows: BTreeMap<String, Spent> = BTreeMap::new();
    for call in calls {
        *rows.entry(key(call, &state.name, by)).or_default() += call;
    }
    let rows = rows.into_iter().map(|(key, spent)| Row { key, spent }).collect();
    Report {
        name: state.name.clone(),
        by: by.name(),
        total: calls.iter().collect(),
        rows,
        budgets: status::budgets(state, now),
        forecast: forecast::forecast(state).as_ref().map(shown_forecast),
        first_forecast: state.history.first.as_ref().map(shown_forecast),
        over_time: over_time(calls),
        burn_down,
    }
}

/// The loops of this repository beside each other; what is foreseen of one says nothing of all.
fn of_all_loops(loops: &Loops) -> Result<Report, DeskError> {
    let (mut rows, mut all) = (Vec::new(), Vec::new());
    for record in loops.all()? {
        let journal = loops.store.read(record.id, 0)?;
        let (calls, ..) = read(&journal);
        let key = format!("{} over {}", record.identity.name, record.identity.backlog);
        rows.push(Row { key, spent: calls.iter().collect() });
        all.extend(calls);
    }
    all.sort_by_key(|call| call.ended_at);
    Ok(Report {
        name: "all loops".to_owned(),
        by: By::Loop.name(),
        total: all.iter().collect(),
        rows,
        budgets: Vec::new(),
        forecast: None,
        first_forecast: None,
        over_time: over_time(&all),
        burn_down: Vec::new(),
    })
}

fn read(journal: &[Envelope]) -> (Vec<Call>, Loop, Vec<Left>) {
    let mut burn_down: Vec<Left> = Vec::new();
    let (calls, state) = calls::read(journal, |envelope, state| {
        burn_down.extend(left(envelope, state, burn_down.last()));
    });
    (calls, state, burn_down)
}

/// How many tasks are left after an event, if that is another number than before.
pub(crate) fn left(envelope: &Envelope, after: &Loop, last: Option<&Left>) -> Option<Left> {
    let counts = after.tasks.counts();
    let tasks = counts.total - counts.done - counts.skipped;
    let differs = last.map_or(tasks > 0, |last| last.tasks != tasks);
    differs.then_some(Left { at: envelope.at, tasks })
}

/// What a call is counted under, in the loop of this name.
pub fn key(call: &Call, name: &str, by: By) -> String {
    match by {
        By::Task => call.task.clone(),
        By::Agent if call.agent.is_empty() => "agent".to_owned(),
        By::Agent => call.agent.clone(),
        By::Model => call.model.clone().unwrap_or_else(|| "not told".to_owned()),
        By::Day => call.ended_at.to_zoned(TimeZone::system()).date().to_string(),
        By::Loop => name.to_owned(),
    }
}

fn over_time(calls: &[Call]) -> Vec<Moment> {
    let mut cost_usd = 0.0;
    calls
        .iter()
        .filter_map(|call| {
            cost_usd += call.usage.filter(|_| call.priced)?.cost_usd;
            Some(Moment { at: call.ended_at, cost_usd })
        })
        .collect()
}

fn shown_forecast(forecast: &Forecast) -> ForecastShown {
    let shown = |Interval { low, expected, high }: Interval| IntervalShown { low, expected, high };
    ForecastShown {
        remaining_usd: forecast.cost.map(shown),
        total_usd: forecast.total_cost().map(shown),
        remaining_tokens: shown(forecast.tokens),
        spent_usd: forecast.spent.cost_usd,
        tasks_left: forecast.tasks_left,
        tasks_done: forecast.tasks_done,
        samples: forecast.samples,
    }
}
