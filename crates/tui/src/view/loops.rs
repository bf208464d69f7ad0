//! The loops that can be looked at: this repository's and the machine's.

use ratatui_core::layout::Rect;

use super::canvas::{Canvas, Piece};
use super::top::activity_mark;
use crate::app::{App, LoopRow, View};
use crate::text::{line, pad, pad_left};

pub(super) fn draw(app: &App, area: Rect, canvas: &mut Canvas<'_>) {
    let area = canvas.title(area, "Loops", "of this machine");
    let Some(rows) = &app.loops else { return canvas.empty(area, &["Looking for loops …"]) };
    if rows.is_empty() {
        return canvas.empty(area, &["No loops yet.", "`wiggum run` starts one; r looks again."]);
    }
    let scroll = &app.lists[View::Loops as usize];
    let at = scroll.at.min(rows.len() - 1);
    let names = rows.iter().map(|row| row.health.name.chars().count()).max().unwrap_or(0).clamp(4, 20);
    for (row, place) in (0..).zip(canvas.list(View::Loops, area, rows.len(), scroll)) {
        let (left, right) = pieces(app, &rows[place], names, canvas);
        canvas.row_with(area, row, &left, &right);
        if place == at {
            canvas.choose(area, row);
        }
    }
}

fn pieces(app: &App, row: &LoopRow, names: usize, canvas: &Canvas<'_>) -> (Vec<Piece>, Vec<Piece>) {
    let theme = canvas.theme;
    let health = &row.health;
    let (glyph, word, style) = activity_mark(health.activity, &health.state, theme);
    let here = if app.attached == Some(row.record.id) { "»" } else { " " };
    let left = vec![
        (here.to_owned(), theme.bold()),
        (format!("{glyph} "), style),
        (pad(&line(&health.name), names), theme.bold()),
        (format!("  {}", pad(word, 18)), style),
        (pad_left(&format!("{}/{}", health.done, health.total), 9), theme.plain()),
        (format!("  {} ", line(&health.backlog)), theme.plain()),
        (line(&row.checkout.path().to_string_lossy()), theme.dim()),
    ];
    let asks = health.questions.len();
    let right = if asks > 0 { vec![(format!("? {asks}"), theme.loud())] } else { Vec::new() };
    (left, right)
}
