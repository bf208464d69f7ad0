//! The questions that wait for a person.

use ratatui_core::layout::Rect;
use wiggum_engine::desk::inbox::Letter;
use wiggum_engine::words::{answer_words, elapsed};

use super::TWO;
use super::canvas::{Canvas, Piece, above, below, beside};
use crate::app::{App, View};
use crate::model::Model;
use crate::text::{line, pad, paragraph, plain};

pub(super) fn draw(app: &App, model: &Model, area: Rect, canvas: &mut Canvas<'_>) {
    if model.letters.is_empty() {
        let area = canvas.title(area, "Inbox", "");
        return canvas
            .empty(area, &["No question waits.", "When an agent or the loop asks, it appears here."]);
    }
    let (list, letter) = if area.width >= TWO {
        let (left, line, right) = beside(area, area.width * 2 / 5);
        canvas.divide(line, area);
        (left, right)
    } else {
        let rows = u16::try_from(model.letters.len() + 1).unwrap_or(u16::MAX).min(area.height / 3).max(2);
        (above(area, rows), below(area, rows))
    };
    let list = canvas.title(list, "Inbox", "all loops of this repository");
    let scroll = &app.lists[View::Inbox as usize];
    let at = scroll.at.min(model.letters.len() - 1);
    let rows = canvas.list(View::Inbox, list, model.letters.len(), scroll);
    for (row, place) in (0..).zip(rows) {
        let letter = &model.letters[place];
        canvas.row_with(list, row, &left(letter, canvas), &right(app, letter, canvas));
        if place == at {
            canvas.choose(list, row);
        }
    }
    one(&model.letters[at], letter, canvas);
}

fn left(letter: &Letter, canvas: &Canvas<'_>) -> Vec<Piece> {
    let theme = canvas.theme;
    let (glyph, style) =
        if letter.answered.is_some() { ("✓", theme.good()) } else { ("?", theme.warning()) };
    vec![
        (format!(" {glyph} "), style),
        (pad(&letter.question.id, 4), theme.bold()),
        (format!(" {}", line(&letter.question.summary)), theme.plain()),
    ]
}

fn right(app: &App, letter: &Letter, canvas: &Canvas<'_>) -> Vec<Piece> {
    let age = elapsed(letter.question.raised_at, app.now);
    vec![(format!("{} {age}", line(&letter.loop_name)), canvas.theme.dim())]
}

/// A question as a whole.
pub(super) fn one(letter: &Letter, area: Rect, canvas: &mut Canvas<'_>) {
    let question = &letter.question;
    let task = question.task.as_ref().map(|task| format!(" · {}", line(task))).unwrap_or_default();
    let area = canvas.title(area, &format!("{}{task}", question.id), &question.kind);
    let mut lines = lines(letter, area.width, canvas);
    shorten(&mut lines, area.height.into(), canvas);
    for (row, line) in (0..).zip(&lines) {
        canvas.row(area, row, line);
    }
}

/// Leaves out what has no room, and says so.
pub(super) fn shorten(lines: &mut Vec<Vec<Piece>>, most: usize, canvas: &Canvas<'_>) {
    if lines.len() > most {
        let left = lines.len() - most.saturating_sub(1);
        lines.truncate(most.saturating_sub(1));
        lines.push(vec![(
            format!("… {left} lines more: `wiggum inbox` has them all"),
            canvas.theme.warning(),
        )]);
    }
}

pub(super) fn lines(letter: &Letter, width: u16, canvas: &Canvas<'_>) -> Vec<Vec<Piece>> {
    let theme = canvas.theme;
    let room = usize::from(width);
    let question = &letter.question;
    let mut lines: Vec<Vec<Piece>> = Vec::new();
    let mut add = |text: &str, style| {
        let rows = paragraph(&plain(wiggum_core::text::head(text, 16 << 10)), room);
        lines.extend(rows.into_iter().map(|row| vec![(row, style)]));
    };
    add(&question.summary, theme.bold());
    add(&question.context, theme.dim());
    add(&question.question, theme.plain());
    for (number, option) in (1..).zip(&question.options) {
        add(&format!("{number}. {}", line(option)), theme.plain());
    }
    if let Some(answer) = &letter.answered {
        add(&format!("answered: {}; the next run takes it up", answer_words(answer)), theme.good());
    }
    lines
}
