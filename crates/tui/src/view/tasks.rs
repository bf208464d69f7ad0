//! The tasks as a list, and what is known of the one that is chosen.

use ratatui_core::layout::Rect;
use wiggum_core::activity::{EngineState, INTERRUPTED, task_word};
use wiggum_core::decide::{Why, why, why_seen};
use wiggum_core::ids::TaskId;
use wiggum_core::tasks::{TaskEntry, TaskState};
use wiggum_engine::words::dollars;

use super::canvas::{Canvas, Piece};
use super::theme::Theme;
use crate::app::{App, View};
use crate::model::{Filter, Mark, Model, mark};
use crate::text::{fit, line, pad, pad_left, paragraph};

/// Neighbours that are named; more than a line has room for.
const NAMED: usize = 40;

pub(super) fn draw(app: &App, model: &Model, area: Rect, canvas: &mut Canvas<'_>) {
    let counts = model.head().tasks.counts();
    let right = match (model.filter(), model.query()) {
        (Filter::All, "") => summary(&counts, model.engine()),
        (filter, query) => {
            let query = if query.is_empty() { String::new() } else { format!(" with `{query}`") };
            format!("{} {}{query}", model.tasks.len(), filter.name())
        }
    };
    let area = canvas.title(area, "Tasks", &right);
    if model.tasks.is_empty() {
        canvas.pane(View::Tasks, area);
        return match counts.total {
            0 => canvas.empty(area, &["The backlog is empty.", "a adds a task; the file can be edited too."]),
            _ => canvas.empty(area, &["No task fits.", "Esc shows all of them again."]),
        };
    }
    let scroll = &app.lists[View::Tasks as usize];
    let rows = canvas.list(View::Tasks, area, model.tasks.len(), scroll);
    let ids = longest(model, rows.clone());
    let at = scroll.at.min(model.tasks.len() - 1);
    for (row, place) in (0..).zip(rows) {
        let Some(entry) = model.head().task(&model.tasks[place]) else { continue };
        let (left, right) = pieces(app, model, entry, ids, area.width, canvas.theme);
        canvas.row_with(area, row, &left, &right);
        if place == at {
            canvas.choose(area, row);
        }
    }
}

fn summary(counts: &wiggum_core::tasks::Counts, engine: EngineState) -> String {
    let parts = [
        (counts.done, "done"),
        (counts.running, task_word(&TaskState::Running, engine)),
        (counts.parked, "asked"),
        (counts.failed, "failed"),
        (counts.skipped, "skipped"),
        (counts.open(), "open"),
    ];
    let parts = parts.iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}"));
    parts.collect::<Vec<_>>().join(" · ")
}

/// The widest id among those that are seen, within reason.
fn longest(model: &Model, rows: std::ops::Range<usize>) -> usize {
    model.tasks[rows].iter().map(|id| id.as_str().chars().count()).max().unwrap_or(0).clamp(2, 16)
}

fn pieces(
    app: &App,
    model: &Model,
    entry: &TaskEntry,
    ids: usize,
    width: u16,
    theme: Theme,
) -> (Vec<Piece>, Vec<Piece>) {
    let mark = mark(model, entry, app.now);
    let (glyph, style) = theme.mark(mark);
    let quiet = matches!(mark, Mark::Done | Mark::Skipped);
    let title =
        if app.query.is_empty() { if quiet { theme.dim() } else { theme.plain() } } else { theme.found() };
    let left = vec![
        (format!(" {glyph} "), style),
        (pad(&line(entry.spec.id.as_str()), ids) + "  ", theme.bold()),
        (line(&entry.spec.title), title),
    ];
    let attempts = if entry.attempts > 1 { format!("×{}", entry.attempts) } else { String::new() };
    let cost = if entry.spent.cost_usd > 0.0 { dollars(entry.spent.cost_usd) } else { String::new() };
    let mut right = Vec::new();
    if let Some(note) = note(app, model, entry, mark) {
        right.push((fit(&note, usize::from(width) / 3), style));
    }
    if !attempts.is_empty() || !cost.is_empty() {
        right.push((format!(" {} {}", pad_left(&attempts, 3), pad_left(&cost, 7)), theme.dim()));
    }
    (left, right)
}

/// Why a task stands where it stands, where its mark does not say it all.
fn note(app: &App, model: &Model, entry: &TaskEntry, mark: Mark) -> Option<String> {
    match mark {
        Mark::Ready | Mark::Done | Mark::Skipped => None,
        Mark::Unverified => Some("unverified".to_owned()),
        Mark::ByHand => Some("by hand".to_owned()),
        Mark::Running => Some(model.head().open.here().map_or_else(
            || "running".to_owned(),
            |open| format!("attempt {} · {}", open.attempt, super::top::clock(app, open.started_at)),
        )),
        Mark::Interrupted => Some(INTERRUPTED.to_owned()),
        Mark::Waiting | Mark::Asked | Mark::Failed => {
            Some(match why(model.head(), &entry.spec.id, app.now)? {
                Why::Question(id) => format!("asks {id}"),
                Why::Dependencies(unmet) => format!("after {}", names(unmet.iter().map(|(id, _)| id))),
                other => line(&other.to_string()),
            })
        }
    }
}

/// What is known of the chosen task.
pub(super) fn detail(app: &App, model: &Model, area: Rect, canvas: &mut Canvas<'_>) {
    let Some(entry) = app.chosen_task().and_then(|id| model.head().task(&id)) else {
        canvas.title(area, "Task", "");
        return;
    };
    let theme = canvas.theme;
    let right = format!("priority {}", entry.spec.priority);
    let area = canvas.title(area, &line(entry.spec.id.as_str()), &right);
    let (glyph, style) = theme.mark(mark(model, entry, app.now));
    let why = why_seen(model.head(), &entry.spec.id, model.engine(), app.now);
    let why = why.map(|why| line(&why.to_string())).unwrap_or_default();
    let room = usize::from(area.width);
    let mut lines: Vec<Vec<Piece>> = Vec::new();
    lines
        .extend(paragraph(&line(&entry.spec.title), room).into_iter().map(|text| vec![(text, theme.bold())]));
    let tried = match (entry.attempts, entry.spent.cost_usd) {
        (0, _) => String::new(),
        (count, cost) if cost > 0.0 => format!(" · {count}× tried · {}", dollars(cost)),
        (count, _) => format!(" · {count}× tried"),
    };
    lines.push(vec![(format!("{glyph} {why}"), style), (tried, theme.dim())]);
    let after = names(entry.spec.depends_on.iter());
    let before = names(model.head().tasks.dependents(&entry.spec.id).map(|entry| &entry.spec.id));
    for (word, names) in [("after ", after), ("before ", before)] {
        if !names.is_empty() {
            lines.push(vec![(word.to_owned(), theme.dim()), (names, theme.plain())]);
        }
    }
    for criterion in &entry.spec.criteria {
        lines.push(vec![(format!("□ {}", line(&criterion.text)), theme.plain())]);
    }
    for text in &entry.guidance {
        lines.push(vec![(format!("» {}", line(text)), theme.lively())]);
    }
    if let Some(last) = entry.history.back().filter(|last| !last.feedback.is_empty()) {
        lines.push(vec![(format!("last: {}", line(&last.feedback)), theme.warning())]);
    }
    let description = crate::text::plain(wiggum_core::text::head(&entry.spec.description, 8 << 10));
    lines.extend(paragraph(&description, room).into_iter().map(|text| vec![(text, theme.dim())]));
    for (row, line) in (0..area.height).zip(&lines) {
        canvas.row(area, row, line);
    }
}

/// The first of some tasks.
fn names<'a>(ids: impl Iterator<Item = &'a TaskId>) -> String {
    ids.take(NAMED).map(|id| line(id.as_str())).collect::<Vec<_>>().join(", ")
}
