//! `wiggum cost`: what a loop cost, by task, agent, model, day or loop; how that came about over time;
//! and what the rest will cost.

use std::collections::BTreeMap;
use std::process::ExitCode;

use jiff::tz::TimeZone;
use serde::Serialize;
use wiggum_core::event::Envelope;
use wiggum_core::forecast::{self, Forecast, Interval};
use wiggum_core::state::Loop;
use wiggum_engine::status::{self, BudgetStatus};

use crate::args::{By, CostArgs};
use crate::commands::calls::{self, Call, Spent};
use crate::commands::loops::Loops;
use crate::commands::{no_loops, print_json};
use crate::cost::{budget, dollars, lower_bound};
use crate::failure::Failure;
use crate::plot::Canvas;
use crate::term::{self, Style, harmless};

/// The JSON of `wiggum cost`; fields may be added, none changes its meaning.
#[derive(Debug, Serialize)]
struct Report {
    #[serde(rename = "loop")]
    name: String,
    by: &'static str,
    total: Spent,
    /// Their sums are the total.
    rows: Vec<Row>,
    budgets: Vec<BudgetStatus>,
    /// Null while no task was completed with figures.
    forecast: Option<ForecastShown>,
    /// The one made when a quarter of the tasks was done.
    first_forecast: Option<ForecastShown>,
    /// What was spent up to each call, in order of time.
    over_time: Vec<Moment>,
    /// How many tasks were left, whenever that changed.
    burn_down: Vec<Left>,
}

#[derive(Debug, Serialize)]
struct Row {
    key: String,
    #[serde(flatten)]
    spent: Spent,
}

#[derive(Debug, Serialize)]
struct ForecastShown {
    /// Dollars still to come: `low` to `high` in four cases of five. Null where tokens have no price.
    remaining_usd: Option<IntervalShown>,
    total_usd: Option<IntervalShown>,
    remaining_tokens: IntervalShown,
    spent_usd: f64,
    tasks_left: usize,
    tasks_done: usize,
    /// Completed tasks that it rests on.
    samples: u32,
}

#[derive(Debug, Serialize)]
struct IntervalShown {
    low: f64,
    expected: f64,
    high: f64,
}

#[derive(Debug, Serialize)]
struct Moment {
    at: jiff::Timestamp,
    cost_usd: f64,
}

#[derive(Debug, Serialize)]
struct Left {
    at: jiff::Timestamp,
    tasks: usize,
}

pub(crate) fn cost(args: &CostArgs) -> Result<ExitCode, Failure> {
    let Some(loops) = Loops::open()? else { return no_loops(args.of.output.json) };
    let report = report(&loops, args)?;
    if args.of.output.json {
        return print_json(&report);
    }
    if args.csv {
        return Ok(term::print(&csv(&report)));
    }
    Ok(term::print(&text(&report, args.forecast, Canvas::here(), Style::for_stdout())))
}

fn report(loops: &Loops, args: &CostArgs) -> Result<Report, Failure> {
    if args.by == By::Loop {
        return of_all_loops(loops);
    }
    let record = loops.select(args.of.which.as_deref())?;
    let journal = loops.store.read(record.id, 0)?;
    let (calls, state, burn_down) = read(&journal);
    let mut rows: BTreeMap<String, Spent> = BTreeMap::new();
    for call in &calls {
        *rows.entry(key(call, args.by)).or_default() += call;
    }
    let rows = rows.into_iter().map(|(key, spent)| Row { key, spent }).collect();
    Ok(Report {
        name: record.identity.name.clone(),
        by: args.by.name(),
        total: calls.iter().collect(),
        rows,
        budgets: status::budgets(&state),
        forecast: forecast::forecast(&state).as_ref().map(shown_forecast),
        first_forecast: state.history.first.as_ref().map(shown_forecast),
        over_time: over_time(&calls),
        burn_down,
    })
}

/// The loops of this repository beside each other; what is foreseen of one says nothing of all.
fn of_all_loops(loops: &Loops) -> Result<Report, Failure> {
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
        let counts = state.tasks.counts();
        let tasks = counts.total - counts.done - counts.skipped;
        if burn_down.last().map_or(tasks > 0, |last| last.tasks != tasks) {
            burn_down.push(Left { at: envelope.at, tasks });
        }
    });
    (calls, state, burn_down)
}

fn key(call: &Call, by: By) -> String {
    match by {
        By::Task => call.task.clone(),
        By::Agent if call.agent.is_empty() => "agent".to_owned(),
        By::Agent => call.agent.clone(),
        By::Model => call.model.clone().unwrap_or_else(|| "not told".to_owned()),
        By::Day => call.ended_at.to_zoned(TimeZone::system()).date().to_string(),
        By::Loop => String::new(),
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

const CSV_HEAD: &str = "calls,input_tokens,output_tokens,cache_read_tokens,cache_write_tokens,cost_usd,\
                        unpriced_tokens,without_figures";

/// One line for each row; the total is their sum. No cost is an empty field.
fn csv(report: &Report) -> String {
    let mut text = format!("{},{CSV_HEAD}\r\n", report.by);
    for Row { key, spent } in &report.rows {
        let Spent { calls, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, .. } = spent;
        let cost = spent.cost_usd.map_or_else(String::new, |cost| cost.to_string());
        text.push_str(&format!(
            "{},{calls},{input_tokens},{output_tokens},{cache_read_tokens},{cache_write_tokens},{cost},{},{}\r\n",
            field(key),
            spent.unpriced_tokens,
            spent.without_figures,
        ));
    }
    text
}

/// As RFC 4180 wants it. What a spreadsheet would take for a formula is not one.
fn field(text: &str) -> String {
    let formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let text = if formula { format!("'{text}") } else { text.to_owned() };
    if text.contains(['"', ',', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

fn text(report: &Report, with_forecast: bool, canvas: Canvas, style: Style) -> String {
    if report.total.calls == 0 {
        return "no agent has ended yet\n".to_owned();
    }
    let mut text = style.bold(&format!("{}\n", harmless(&report.name)));
    text.push_str(&table(report));
    for limit in &report.budgets {
        let line = format!("  {} budget: {}\n", limit.scope, budget(limit, report.total.unpriced_tokens));
        text.push_str(&if limit.spent >= limit.limit { style.red(&line) } else { line });
    }
    if report.total.without_figures > 0 {
        let count = report.total.without_figures;
        text.push_str(&style.dim(&format!("  {count} calls gave no figures: the total is a lower bound\n")));
    }
    let changes: Vec<(i64, f64)> =
        report.over_time.iter().map(|moment| (moment.at.as_millisecond(), moment.cost_usd)).collect();
    if changes.len() > 1 {
        text.push_str(&picture("cost over time", &changes, dollars, canvas, style));
    }
    let left: Vec<(i64, f64)> =
        report.burn_down.iter().map(|left| (left.at.as_millisecond(), left.tasks as f64)).collect();
    if left.len() > 1 {
        text.push_str(&picture("tasks left", &left, |tasks| format!("{tasks:.0}"), canvas, style));
    }
    if with_forecast {
        text.push_str(&forecast_text(report, canvas, style));
    }
    text
}

fn table(report: &Report) -> String {
    let head = [report.by, "calls", "tokens", "cost"].map(str::to_owned);
    let row = |name: &str, spent: &Spent| {
        let tokens =
            spent.input_tokens + spent.output_tokens + spent.cache_read_tokens + spent.cache_write_tokens;
        [harmless(name), spent.calls.to_string(), term::thousands(tokens), cost_of(spent)]
    };
    let rows = report.rows.iter().map(|Row { key, spent }| row(key, spent));
    let total = row("total", &report.total);
    term::columns(&std::iter::once(head).chain(rows).chain([total]).collect::<Vec<_>>())
}

fn cost_of(spent: &Spent) -> String {
    match (spent.cost_usd, spent.unpriced_tokens) {
        (None, 0) => "?".to_owned(),
        (cost, unpriced) => lower_bound(cost.unwrap_or(0.0), unpriced),
    }
}

fn picture(
    title: &str,
    changes: &[(i64, f64)],
    show: impl Fn(f64) -> String,
    canvas: Canvas,
    style: Style,
) -> String {
    let values = canvas.over_time(changes);
    let top = show(values.iter().copied().fold(0.0, f64::max));
    let mut text = format!("\n  {}\n", style.bold(title));
    for (number, line) in canvas.area(&values, 4).into_iter().enumerate() {
        let label = if number == 0 { top.as_str() } else { "" };
        text.push_str(format!("  {label:>8} {}", style.cyan(&line)).trim_end());
        text.push('\n');
    }
    text
}

fn forecast_text(report: &Report, canvas: Canvas, style: Style) -> String {
    let title = style.bold("forecast");
    let Some(forecast) = &report.forecast else {
        return format!("\n  {title}\n  no history: no task was completed with figures yet\n");
    };
    let basis = format!("{} tasks left, from {} completed", forecast.tasks_left, forecast.samples);
    let Some(rest) = &forecast.remaining_usd else {
        let IntervalShown { low, expected, high } = forecast.remaining_tokens;
        let figure = |tokens: f64| term::thousands(tokens.round() as u64);
        let (low, expected, high) = (figure(low), figure(expected), figure(high));
        return format!("\n  {title}\n  {expected} tokens to come ({low} to {high}), unpriced; {basis}\n");
    };
    let spent = forecast.spent_usd;
    let ends = [spent, spent + rest.low, spent + rest.expected, spent + rest.high];
    let [low, expected, high] = [rest.low, rest.expected, rest.high].map(dollars);
    format!(
        "\n  {title}\n  {expected} to come, {low} to {high} in four cases of five; {basis}\n  {}\n  \
         {} spent, {} to {} in the end\n",
        style.cyan(&canvas.bar(&ends)),
        dollars(spent),
        dollars(ends[1]),
        dollars(ends[3]),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_that_would_break_a_table_are_quoted() {
        for (text, expected) in [
            ("plain", "plain"),
            ("a,b", "\"a,b\""),
            ("say \"hi\"", "\"say \"\"hi\"\"\""),
            ("=1+1", "'=1+1"),
            ("", ""),
        ] {
            assert_eq!(field(text), expected);
        }
    }
}
