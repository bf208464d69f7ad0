//! `wiggum cost`: what a loop cost, by task, agent, model, day or loop; how that came about over time;
//! and what the rest will cost.

use std::process::ExitCode;

use jiff::Timestamp;
use wiggum_core::price::Parts;
use wiggum_engine::desk::calls::Spent;
use wiggum_engine::desk::cost::{self, IntervalShown, Report, Row};
use wiggum_engine::words::counted;

use crate::args::CostArgs;
use crate::commands::{loops, no_loops, print_json};
use crate::cost::{budget, dollars, lower_bound};
use crate::failure::Failure;
use crate::plot::Canvas;
use crate::term::{self, Style, harmless};

pub(crate) fn cost(args: &CostArgs) -> Result<ExitCode, Failure> {
    let Some(loops) = loops::open()? else { return no_loops(args.of.output.json) };
    let report = cost::report(&loops, args.of.which.as_deref(), args.by, Timestamp::now())?;
    if args.of.output.json {
        return print_json(&report);
    }
    if args.csv {
        return Ok(term::print(&csv(&report)));
    }
    Ok(term::print(&text(&report, args.forecast, Canvas::here(), Style::for_stdout())))
}

const CSV_HEAD: &str = "calls,input_tokens,output_tokens,cache_read_tokens,cache_write_tokens,cost_usd,\
                        unpriced_tokens,without_figures,input_usd,output_usd,cache_read_usd,cache_write_usd";

/// One line for each row; the total is their sum. No cost is an empty field.
fn csv(report: &Report) -> String {
    let mut text = format!("{},{CSV_HEAD}\r\n", report.by);
    for Row { key, spent } in &report.rows {
        let Spent { calls, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, .. } = spent;
        let cost = spent.cost_usd.map_or_else(String::new, |cost| cost.to_string());
        text.push_str(&format!(
            "{},{calls},{input_tokens},{output_tokens},{cache_read_tokens},{cache_write_tokens},{cost},{},{},{}\r\n",
            field(key),
            spent.unpriced_tokens,
            spent.without_figures,
            by_kind(spent).map(|(_, cost)| cost.map_or_else(String::new, |cost| cost.to_string())).join(","),
        ));
    }
    text
}

/// What each kind of token cost, where that is known.
fn by_kind(spent: &Spent) -> [(&'static str, Option<f64>); 4] {
    let of = |cost: fn(Parts) -> f64| spent.cost_by_kind.map(cost);
    [
        ("input", of(|parts| parts.input_usd)),
        ("output", of(|parts| parts.output_usd)),
        ("cache read", of(|parts| parts.cache_read_usd)),
        ("cache write", of(|parts| parts.cache_write_usd)),
    ]
}

/// The same in a line for people; nothing where nothing is known.
fn kinds(spent: &Spent) -> String {
    let known = by_kind(spent).into_iter().filter_map(|(kind, cost)| Some((kind, cost?)));
    let mut parts: Vec<String> = known.map(|(kind, cost)| format!("{kind} {}", dollars(cost))).collect();
    if parts.is_empty() {
        return String::new();
    }
    if spent.unsplit_usd > 0.0 {
        parts.push(format!("not split {}", dollars(spent.unsplit_usd)));
    }
    format!("  by kind of token: {}\n", parts.join(", "))
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
    text.push_str(&kinds(&report.total));
    for limit in &report.budgets {
        let line = format!("  {} budget: {}\n", limit.scope, budget(limit, report.total.unpriced_tokens));
        text.push_str(&if limit.spent >= limit.limit { style.red(&line) } else { line });
    }
    if report.total.without_figures > 0 {
        let calls = counted(report.total.without_figures, "call");
        text.push_str(&style.dim(&format!("  {calls} gave no figures: the total is a lower bound\n")));
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
