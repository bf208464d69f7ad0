//! Cost and what is foreseen of it, budgets, tokens, health.

use ratatui_core::layout::Rect;
use wiggum_core::budget::Unit;
use wiggum_engine::desk::cost::{ForecastShown, Report};
use wiggum_engine::words::{counted, dollars, elapsed, thousands};

use super::TWO;
use super::canvas::{Canvas, Piece, above, bar, below, beside};
use crate::app::{App, View};
use crate::model::Model;
use crate::text::{line, pad, pad_left};

/// Rows of the curve.
const CURVE: [&str; 8] = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];

pub(super) fn draw(app: &App, model: &Model, area: Rect, canvas: &mut Canvas<'_>) {
    let Some(report) = &model.cost else { return canvas.empty(area, &["Adding up …"]) };
    if area.width >= TWO {
        let (left, middle, right) = beside(area, area.width / 2);
        let used = figures(app, model, report, left, canvas);
        curve(report, below(left, used + 1), canvas);
        canvas.divide(middle, area);
        table(app, report, right, canvas);
    } else {
        let used = figures(app, model, report, above(area, area.height.saturating_sub(4)), canvas);
        table(app, report, below(area, used), canvas);
    }
}

/// Tells how many rows it took.
fn figures(app: &App, model: &Model, report: &Report, area: Rect, canvas: &mut Canvas<'_>) -> u16 {
    let mut lines: Vec<Vec<Piece>> = Vec::new();
    spent(report, canvas, &mut lines);
    budgets(report, area.width, canvas, &mut lines);
    health(app, model, canvas, &mut lines);
    let body = canvas.title(area, "Figures", "");
    for (row, line) in (0..body.height).zip(&lines) {
        canvas.row(body, row, line);
    }
    u16::try_from(lines.len() + 1).unwrap_or(u16::MAX).min(area.height)
}

fn fact(name: &str, text: String, style: ratatui_core::style::Style, canvas: &Canvas<'_>) -> Vec<Piece> {
    vec![(format!(" {}", pad(name, 11)), canvas.theme.dim()), (text, style)]
}

fn spent(report: &Report, canvas: &Canvas<'_>, lines: &mut Vec<Vec<Piece>>) {
    let theme = canvas.theme;
    let total = &report.total;
    let calls = counted(total.calls, "call");
    let cost = total.cost_usd.map_or_else(|| "nothing with a price".to_owned(), dollars);
    lines.push(fact("spent", format!("{cost} in {calls}"), theme.bold(), canvas));
    if total.unpriced_tokens > 0 || total.without_figures > 0 {
        let mut parts = Vec::new();
        if total.unpriced_tokens > 0 {
            parts.push(format!("{} tokens without a price", thousands(total.unpriced_tokens)));
        }
        if total.without_figures > 0 {
            parts.push(format!("{} without figures", counted(total.without_figures, "call")));
        }
        lines.push(fact("", format!("at least: {}", parts.join(", ")), theme.warning(), canvas));
    }
    let tokens = format!(
        "{} in · {} out · {} cached",
        thousands(total.input_tokens),
        thousands(total.output_tokens),
        thousands(total.cache_read_tokens + total.cache_write_tokens)
    );
    lines.push(fact("tokens", tokens, theme.plain(), canvas));
    if let Some(forecast) = report.forecast.as_ref().filter(|forecast| forecast.tasks_left > 0) {
        lines.push(fact("the rest", foreseen(forecast), theme.plain(), canvas));
    }
}

fn foreseen(forecast: &ForecastShown) -> String {
    let tasks = counted(forecast.tasks_left, "task");
    match &forecast.remaining_usd {
        Some(rest) => format!(
            "about {} ({} to {}) for {tasks}",
            dollars(rest.expected),
            dollars(rest.low),
            dollars(rest.high)
        ),
        None => format!("about {} tokens for {tasks}", thousands(forecast.remaining_tokens.expected as u64)),
    }
}

fn budgets(report: &Report, width: u16, canvas: &Canvas<'_>, lines: &mut Vec<Vec<Piece>>) {
    let theme = canvas.theme;
    let cells = usize::from(width).saturating_sub(48).clamp(8, 40);
    for budget in &report.budgets {
        let part = budget.spent / budget.limit;
        let style = match part {
            _ if part >= 1.0 => theme.bad(),
            _ if part >= 0.8 => theme.warning(),
            _ => theme.good(),
        };
        let (full, rest) = bar(part, cells);
        let amount = |value: f64| match budget.unit {
            Unit::Usd => dollars(value),
            Unit::Tokens => format!("{} tokens", thousands(value.max(0.0) as u64)),
        };
        let period = budget.period.as_ref().map_or_else(String::new, |period| format!(" a {period}"));
        let (spent, limit) = (amount(budget.spent), amount(budget.limit));
        let text = format!(" {:.0} %  {spent} of {limit}{period}", part * 100.0);
        lines.push(vec![
            (format!(" {}", pad(&budget.scope, 11)), theme.dim()),
            (full, style),
            (rest, theme.dim()),
            (text, style),
        ]);
    }
    if report.budgets.is_empty() {
        lines.push(fact("budget", "none: --max-cost or [budget] sets one".to_owned(), theme.dim(), canvas));
    }
}

fn health(app: &App, model: &Model, canvas: &Canvas<'_>, lines: &mut Vec<Vec<Piece>>) {
    let theme = canvas.theme;
    let Some(health) = &model.health else { return };
    let engine = match health.engine {
        Some(pid) => format!("process {pid}"),
        None if health.died => "died".to_owned(),
        None => "does not run".to_owned(),
    };
    let style = if health.died { theme.bad() } else { theme.plain() };
    lines.push(fact("engine", engine, style, canvas));
    if let Some(agent) = &health.health {
        let style = match agent.health.as_str() {
            "healthy" => theme.good(),
            "degraded" | "stuck" => theme.warning(),
            _ => theme.bad(),
        };
        let nudges = if agent.nudges > 0 {
            format!(", {}", counted(agent.nudges as usize, "nudge"))
        } else {
            String::new()
        };
        let text = format!(
            "{}, last progress {} ago{nudges}",
            agent.health,
            super::top::clock(app, agent.last_beat)
        );
        lines.push(fact("agent", text, style, canvas));
    }
    let breaker = &health.breaker;
    let style = if breaker.state == "closed" { theme.plain() } else { theme.warning() };
    let why = breaker.why.as_ref().map(|why| format!(": {}", line(why))).unwrap_or_default();
    let until =
        breaker.until.map(|until| format!(", opens in {}", elapsed(app.now, until))).unwrap_or_default();
    lines.push(fact("breaker", format!("{}{why}{until}", breaker.state), style, canvas));
    if let Some(waiting) = &health.waiting {
        lines.push(fact("waits for", line(waiting), theme.plain(), canvas));
    }
}

fn table(app: &App, report: &Report, area: Rect, canvas: &mut Canvas<'_>) {
    let area = canvas.title(area, &format!("Cost by {}", report.by), "");
    let scroll = &app.lists[View::Figures as usize];
    if report.rows.is_empty() {
        return canvas.empty(area, &["No agent told what it used yet."]);
    }
    let rows = canvas.list(View::Figures, area, report.rows.len(), scroll);
    let at = scroll.at.min(report.rows.len() - 1);
    for (row, place) in (0..).zip(rows) {
        let theme = canvas.theme;
        let entry = &report.rows[place];
        let spent = &entry.spent;
        let cost = spent.cost_usd.map_or_else(|| "unpriced".to_owned(), dollars);
        let tokens = thousands(spent.input_tokens + spent.output_tokens);
        let right = vec![
            (pad_left(&counted(spent.calls, "call"), 10), theme.dim()),
            (pad_left(&tokens, 13), theme.plain()),
            (pad_left(&cost, 10), theme.bold()),
        ];
        canvas.row_with(area, row, &[(format!(" {}", line(&entry.key)), theme.plain())], &right);
        if place == at {
            canvas.choose(area, row);
        }
    }
}

/// What was spent in time, as a curve.
fn curve(report: &Report, area: Rect, canvas: &mut Canvas<'_>) {
    let area = canvas.title(area, "Spent over time", "");
    let (Some(first), Some(last)) = (report.over_time.first(), report.over_time.last()) else { return };
    let height = area.height.min(12);
    let (from, to) = (first.at.as_millisecond(), last.at.as_millisecond().max(first.at.as_millisecond() + 1));
    let most = last.cost_usd.max(f64::MIN_POSITIVE);
    let width = usize::from(area.width);
    let mut place = 0;
    for x in 0..width {
        let until = from + ((to - from) as f64 * (x + 1) as f64 / width as f64) as i64;
        while report.over_time.get(place + 1).is_some_and(|moment| moment.at.as_millisecond() <= until) {
            place += 1;
        }
        let eighths = (report.over_time[place].cost_usd / most * f64::from(height) * 8.0) as usize;
        for row in 0..height {
            let filled = eighths.saturating_sub(usize::from(height - 1 - row) * 8).min(8);
            if let (Some(cell), Some(column)) = (filled.checked_sub(1), u16::try_from(x).ok()) {
                let spot = Rect { x: area.x + column, width: 1, ..area };
                canvas.text(spot, row, CURVE[cell], canvas.theme.good());
            }
        }
    }
}
