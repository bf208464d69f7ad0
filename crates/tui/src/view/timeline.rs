//! Iterations in time, the newest first, or every event in words.

use ratatui_core::layout::Rect;
use wiggum_core::policy::Millis;
use wiggum_engine::desk::chronicle::Span;
use wiggum_engine::words::{dollars, duration, thousands};

use super::canvas::{Canvas, Piece};
use crate::app::{App, View};
use crate::model::Model;
use crate::text::{line, pad, pad_left};

/// Below this, bars would say nothing.
const LEAST_BAR: usize = 12;

pub(super) fn draw(app: &App, model: &Model, area: Rect, canvas: &mut Canvas<'_>) {
    if app.shows_words {
        return words(app, model, area, canvas);
    }
    let spans = model.spans();
    let area = canvas.title(area, "Timeline", "newest first");
    if spans.is_empty() {
        canvas.pane(View::Timeline, area);
        return canvas.empty(area, &["No iteration yet.", "Each attempt of an agent appears here."]);
    }
    let scroll = &app.lists[View::Timeline as usize];
    let rows = canvas.list(View::Timeline, area, spans.len(), scroll);
    let seen: Vec<&Span> = rows.clone().filter_map(|place| spans.get(spans.len() - 1 - place)).collect();
    let ids = seen.iter().map(|span| span.task.chars().count()).max().unwrap_or(0).clamp(4, 16);
    let scale = Scale::of(&seen, app);
    let at = scroll.at.min(spans.len() - 1);
    for ((row, place), span) in (0..).zip(rows).zip(seen) {
        let mut pieces = facts(app, span, ids, canvas);
        let used: usize = pieces.iter().map(|(text, _)| crate::text::width(text)).sum();
        let room = usize::from(area.width).saturating_sub(used + 2);
        if room >= LEAST_BAR {
            pieces.extend(scale.bar(span, room, canvas));
        }
        canvas.row(area, row, &pieces);
        if place == at && app.view == View::Timeline {
            canvas.choose(area, row);
        }
    }
}

fn facts(app: &App, span: &Span, ids: usize, canvas: &Canvas<'_>) -> Vec<Piece> {
    let theme = canvas.theme;
    let (glyph, style) = theme.outcome(&span.outcome);
    let end = span.ended_at.unwrap_or(app.now);
    let took = duration(between(span.started_at, end));
    let cost = if span.cost_usd > 0.0 { dollars(span.cost_usd) } else { String::new() };
    vec![
        (pad_left(&span.iteration.to_string(), 4), theme.dim()),
        (format!(" {glyph} "), style),
        (pad(&line(&span.task), ids), theme.bold()),
        (pad_left(&format!("×{}", span.attempt), 4), theme.dim()),
        (format!("  {}", pad(&line(&span.outcome), 17)), style),
        (pad_left(&took, 11), theme.plain()),
        (pad_left(&cost, 9), theme.plain()),
    ]
}

/// The time that the rows which are seen took together.
struct Scale {
    from: i64,
    to: i64,
    now: i64,
}

impl Scale {
    fn of(spans: &[&Span], app: &App) -> Self {
        let now = app.now.as_millisecond();
        let from = spans.iter().map(|span| span.started_at.as_millisecond()).min().unwrap_or(now);
        let ends = spans.iter().map(|span| span.ended_at.map_or(now, |at| at.as_millisecond()));
        Self { from, to: ends.max().unwrap_or(now).max(from + 1), now }
    }

    /// The agent at work, and the checks after it.
    fn bar(&self, span: &Span, room: usize, canvas: &Canvas<'_>) -> Vec<Piece> {
        let theme = canvas.theme;
        let cell = |at: i64| {
            let part = (at - self.from) as f64 / (self.to - self.from) as f64;
            ((part * room as f64).floor() as usize).min(room)
        };
        let start = cell(span.started_at.as_millisecond()).min(room - 1);
        let end = cell(span.ended_at.map_or(self.now, |at| at.as_millisecond())).clamp(start + 1, room);
        let gone = span.agent_ended_at.map_or(end, |at| cell(at.as_millisecond()).clamp(start + 1, end));
        let (_, style) = theme.outcome(&span.outcome);
        vec![
            ("  ".to_owned() + &" ".repeat(start), theme.plain()),
            ("█".repeat(gone - start), style),
            ("▒".repeat(end - gone), style),
        ]
    }
}

fn words(app: &App, model: &Model, area: Rect, canvas: &mut Canvas<'_>) {
    let words = &model.book.words;
    let right = format!("event {} · newest first", thousands(model.head().seq));
    let area = canvas.title(area, "Events", &right);
    let scroll = &app.lists[View::Timeline as usize];
    let rows = canvas.list(View::Timeline, area, words.len(), scroll);
    let at = scroll.at.min(words.len().saturating_sub(1));
    for (row, place) in (0..).zip(rows) {
        let Some((when, text)) = words.get(words.len() - 1 - place) else { continue };
        let time = when.to_zoned(app.zone.clone()).strftime("%H:%M:%S").to_string();
        let found = !app.query.is_empty() && text.to_lowercase().contains(&app.query);
        let style = if found { canvas.theme.found() } else { canvas.theme.plain() };
        canvas.row(area, row, &[(format!(" {time}  "), canvas.theme.dim()), (line(text), style)]);
        if place == at && app.view == View::Timeline {
            canvas.choose(area, row);
        }
    }
}

fn between(from: jiff::Timestamp, to: jiff::Timestamp) -> Millis {
    let span = u64::try_from(to.as_millisecond() - from.as_millisecond()).unwrap_or(0);
    // What goes on changes once a second, what is over is told exactly.
    Millis(span)
}
