//! One attempt: how it ended, its evidence, and what it changed.

use ratatui_core::layout::Rect;

use super::TWO;
use super::canvas::{Canvas, beside};
use crate::app::{App, Scroll, Text, View};
use crate::model::Model;
use crate::model::page::Line;
use crate::text::{line, wrap};

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
    let (width, height) = (usize::from(area.width), usize::from(area.height));
    let top = scroll.top.min(last_top(lines, width, height));
    canvas.seen.texts.push((which, height, top));
    let mut row = 0;
    let mut begun = top;
    for line in &lines[top.min(lines.len())..] {
        if row >= area.height {
            break;
        }
        begun += 1;
        let style = canvas.theme.tone(line.tone);
        let found = !app.query.is_empty() && line.text.to_lowercase().contains(&app.query);
        let style = if found { style.patch(canvas.theme.found()) } else { style };
        for part in wrap(&line.text, width) {
            canvas.text(area, row, part, style);
            row += 1;
        }
    }
    let left = lines.len() - begun.min(lines.len());
    if left > 0 && area.height > 1 {
        let text = format!(" {left} more ↓");
        let room = u16::try_from(text.chars().count()).unwrap_or(0).min(area.width);
        let place = Rect { x: area.right() - room, width: room, ..area };
        canvas.text(place, area.height - 1, &text, canvas.theme.dim());
    }
}

/// The first line of a window at whose end the text ends.
fn last_top(lines: &[Line], width: usize, height: usize) -> usize {
    let mut rows = 0;
    for (place, line) in lines.iter().enumerate().rev() {
        rows += wrap(&line.text, width).len();
        if rows > height {
            return place + 1;
        }
    }
    0
}
