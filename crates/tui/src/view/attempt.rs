//! One attempt: how it ended, its evidence, and what it changed.

use ratatui_core::layout::Rect;

use super::TWO;
use super::canvas::{Canvas, beside};
use crate::app::{App, Scroll, Text, View};
use crate::model::Model;
use crate::model::page::Line;
use crate::text::line;

pub(super) fn draw(app: &App, model: &Model, area: Rect, canvas: &mut Canvas<'_>) {
    let count = model.spans().len();
    let Some(newest) = count.checked_sub(1) else {
        let area = canvas.title(area, "Attempt", "");
        return canvas
            .empty(area, &["Nothing was tried yet.", "An attempt's evidence and diff appear here."]);
    };
    let place = app.attempt.unwrap_or(newest).min(newest);
    let span = &model.spans()[place];
    let (glyph, _) = canvas.theme.outcome(&span.outcome);
    let right = format!("{} of {count}  ← earlier  later →", place + 1);
    let title = format!("{glyph} Iteration {} · {}", span.iteration, line(&span.task));
    let body = canvas.title(area, &title, &right);
    canvas.pane(View::Attempt, body);
    let Some((_, pages)) = app.pages.as_ref().filter(|(loaded, _)| loaded.seq == span.seq) else {
        return canvas.empty(body, &["Reading …"]);
    };
    if body.width >= TWO {
        let (left, middle, right) = beside(body, body.width * 2 / 5);
        let hint = |shown: bool| if shown { "" } else { "d moves here" };
        let left = canvas.title(left, "Evidence", hint(!app.shows_diff));
        let right = canvas.title(right, "Changes", hint(app.shows_diff));
        text(app, &pages.evidence, &app.evidence, Text::Evidence, left, canvas);
        canvas.divide(middle, body);
        text(app, &pages.diff, &app.diff, Text::Diff, right, canvas);
    } else if app.shows_diff {
        text(app, &pages.diff, &app.diff, Text::Diff, body, canvas);
    } else {
        text(app, &pages.evidence, &app.evidence, Text::Evidence, body, canvas);
    }
}

fn text(app: &App, lines: &[Line], scroll: &Scroll, which: Text, area: Rect, canvas: &mut Canvas<'_>) {
    let height = usize::from(area.height);
    canvas.seen.texts.push((which, height));
    let top = scroll.top.min(lines.len().saturating_sub(1));
    for (row, line) in (0..area.height).zip(lines.iter().skip(top)) {
        let style = canvas.theme.tone(line.tone);
        let found = !app.query.is_empty() && line.text.to_lowercase().contains(&app.query);
        canvas.text(area, row, &line.text, if found { style.patch(canvas.theme.found()) } else { style });
    }
    let left = lines.len().saturating_sub(top + height);
    if left > 0 && area.height > 1 {
        let text = format!(" {left} more ↓");
        let room = u16::try_from(text.chars().count()).unwrap_or(0).min(area.width);
        let place = Rect { x: area.right() - room, width: room, ..area };
        canvas.text(place, area.height - 1, &text, canvas.theme.dim());
    }
}
