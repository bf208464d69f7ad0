//! Where views draw: cells of a buffer, with what can be clicked and scrolled noted on the way.

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::{Position, Rect};
use ratatui_core::style::Style;

use super::theme::Theme;
use crate::app::{Hit, Scroll, Seen, View};
use crate::text::{fit, width};

pub(crate) struct Canvas<'a> {
    pub(crate) buffer: &'a mut Buffer,
    pub(crate) theme: Theme,
    pub(crate) seen: Seen,
    /// Where somebody types.
    pub(crate) cursor: Option<Position>,
}

/// Text in one style.
pub(crate) type Piece = (String, Style);

impl Canvas<'_> {
    /// Writes pieces into one row of an area, as far as they have room.
    pub(crate) fn row(&mut self, area: Rect, row: u16, pieces: &[Piece]) {
        if row >= area.height {
            return;
        }
        let (mut x, y) = (area.x, area.y + row);
        for (text, style) in pieces {
            let room = area.right().saturating_sub(x);
            let text = fit(text, room.into());
            (x, _) = self.buffer.set_stringn(x, y, &text, room.into(), *style);
        }
    }

    /// As [`Canvas::row`], with something at the right edge, which goes first where there is no room for both.
    pub(crate) fn row_with(&mut self, area: Rect, row: u16, left: &[Piece], right: &[Piece]) {
        let room: usize = right.iter().map(|(text, _)| width(text)).sum();
        let room = u16::try_from(room).unwrap_or(u16::MAX);
        if room + 1 >= area.width {
            return self.row(area, row, left);
        }
        self.row(Rect { width: area.width - room - 1, ..area }, row, left);
        self.row(Rect { x: area.right() - room, width: room, ..area }, row, right);
    }

    pub(crate) fn text(&mut self, area: Rect, row: u16, text: &str, style: Style) {
        self.row(area, row, &[(text.to_owned(), style)]);
    }

    /// A whole row as the chosen one.
    pub(crate) fn choose(&mut self, area: Rect, row: u16) {
        if row < area.height {
            self.buffer.set_style(Rect { y: area.y + row, height: 1, ..area }, self.theme.chosen());
        }
    }

    /// A heading with a rule behind it; what is left of the area is returned.
    pub(crate) fn title(&mut self, area: Rect, left: &str, right: &str) -> Rect {
        if area.height == 0 {
            return area;
        }
        let dim = self.theme.dim();
        let left = fit(&format!("{left} "), area.width.into());
        let rule = "─".repeat(usize::from(area.width).saturating_sub(width(&left)));
        self.row(area, 0, &[(left.clone(), self.theme.bold()), (rule, dim)]);
        if !right.is_empty() && width(&left) + width(right) + 2 < area.width.into() {
            let room = u16::try_from(width(right)).unwrap_or(0) + 1;
            let place = Rect { x: area.right() - room, width: room, ..area };
            self.text(place, 0, &format!(" {right}"), dim);
        }
        below(area, 1)
    }

    /// A line between two columns.
    pub(crate) fn divide(&mut self, x: u16, area: Rect) {
        for y in area.y..area.bottom() {
            self.buffer.set_stringn(x, y, "│", 1, self.theme.dim());
        }
    }

    /// The rows of a list that are seen, each of which can be clicked. Returns the first of them.
    pub(crate) fn list(
        &mut self,
        view: View,
        area: Rect,
        count: usize,
        scroll: &Scroll,
    ) -> std::ops::Range<usize> {
        let height = usize::from(area.height);
        let first = scroll.first(count, height);
        self.seen.lists.push((view, first, height));
        self.pane(view, area);
        let rows = first..count.min(first + height);
        for (row, place) in (area.y..).zip(rows.clone()) {
            self.seen.hits.push((Rect { y: row, height: 1, ..area }, Hit::Row(view, place)));
        }
        rows
    }

    pub(crate) fn pane(&mut self, view: View, area: Rect) {
        self.seen.hits.push((area, Hit::Pane(view)));
    }

    /// Says, in the middle of an empty area, why it is empty and what to do.
    pub(crate) fn empty(&mut self, area: Rect, lines: &[&str]) {
        let height = u16::try_from(lines.len()).unwrap_or(0);
        let top = area.height.saturating_sub(height) / 3;
        for (row, line) in (top..).zip(lines) {
            let room = usize::from(area.width).saturating_sub(width(line)) / 2;
            let style = if row == top { self.theme.plain() } else { self.theme.dim() };
            self.text(area, row, &format!("{}{line}", " ".repeat(room)), style);
        }
    }

    pub(crate) fn clear(&mut self, area: Rect) {
        for y in area.y..area.bottom() {
            for x in area.x..area.right() {
                if let Some(cell) = self.buffer.cell_mut((x, y)) {
                    cell.reset();
                }
            }
        }
    }
}

/// What is left of an area below its first rows.
pub(crate) fn below(area: Rect, rows: u16) -> Rect {
    let rows = rows.min(area.height);
    Rect { y: area.y + rows, height: area.height - rows, ..area }
}

/// The first rows of an area.
pub(crate) fn above(area: Rect, rows: u16) -> Rect {
    Rect { height: rows.min(area.height), ..area }
}

/// Two columns with a line between them: where it is, and what is left and right of it.
pub(crate) fn beside(area: Rect, left: u16) -> (Rect, u16, Rect) {
    let left = left.min(area.width.saturating_sub(3));
    let line = area.x + left + 1;
    let right = Rect { x: line + 2, width: area.width.saturating_sub(left + 3), ..area };
    (Rect { width: left, ..area }, line, right)
}

/// A bar of so many cells, filled to a part.
pub(crate) fn bar(part: f64, cells: usize) -> (String, String) {
    let part = if part.is_finite() { part.clamp(0.0, 1.0) } else { 0.0 };
    let full = (part * cells as f64).round() as usize;
    ("━".repeat(full), "─".repeat(cells.saturating_sub(full)))
}
