//! What the agent says and does.

use ratatui_core::layout::Rect;

use super::canvas::Canvas;
use crate::app::{App, Hit, View};
use crate::model::Model;
use crate::model::output::{Row, RowKind};
use crate::text::line;

pub(super) fn draw(app: &App, model: &Model, area: Rect, canvas: &mut Canvas<'_>) {
    let output = model.output();
    let span = model
        .spans()
        .iter()
        .rfind(|span| (span.iteration, span.attempt) == (output.iteration, output.attempt));
    let (title, right) = match span.filter(|_| !output.is_empty() || model.earlier.is_some()) {
        Some(span) => {
            let follows = if model.earlier.is_some() {
                "an earlier attempt"
            } else if output.follows && model.is_working() {
                "following"
            } else {
                ""
            };
            (
                format!("Output · {} attempt {} · {}", line(&span.task), span.attempt, line(&span.agent)),
                follows,
            )
        }
        None => ("Output".to_owned(), ""),
    };
    let area = canvas.title(area, title.trim_end_matches(" · "), right);
    canvas.pane(View::Output, area);
    if output.is_empty() {
        return empty(model, area, canvas);
    }
    let (width, height) = (usize::from(area.width).saturating_sub(1), usize::from(area.height));
    let (top, rows) = output.window(width, height);
    canvas.seen.output = Some((top, width, height));
    let focused = app.view == View::Output;
    let cursor = output.cursor;
    let last = rows.iter().rposition(|(at, _)| at.item == cursor.item && at.row <= cursor.row);
    for (number, (at, row)) in rows.iter().enumerate() {
        let place = u16::try_from(number).unwrap_or(u16::MAX);
        draw_row(app, row, area, place, canvas);
        canvas.seen.hits.push((Rect { y: area.y + place, height: 1, ..area }, Hit::Output(*at)));
        if focused && Some(number) == last {
            canvas.choose(area, place);
        }
    }
}

fn draw_row(app: &App, row: &Row, area: Rect, place: u16, canvas: &mut Canvas<'_>) {
    let theme = canvas.theme;
    let style = match row.kind {
        RowKind::Words => theme.plain(),
        RowKind::Tool => theme.lively(),
        RowKind::Failed => theme.bad(),
        RowKind::Detail | RowKind::Notice => theme.dim(),
    };
    let found = !app.query.is_empty() && row.text.to_lowercase().contains(&app.query);
    let style = if found { style.patch(theme.found()) } else { style };
    let right: &[_] = if row.note.is_empty() { &[] } else { &[(row.note.clone(), theme.dim())] };
    canvas.row_with(area, place, &[(row.text.clone(), style)], right);
}

fn empty(model: &Model, area: Rect, canvas: &mut Canvas<'_>) {
    if model.is_working() {
        canvas.empty(area, &["The agent has not said anything yet."]);
    } else if model.spans().is_empty() {
        canvas.empty(area, &["No agent was at work yet.", "What it says and does appears here as it comes."]);
    } else {
        canvas.empty(area, &["Nothing was printed.", "[ and ] show other attempts."]);
    }
}
