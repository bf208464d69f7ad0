//! Who waits on whom.

use ratatui_core::layout::Rect;

use super::canvas::{Canvas, Piece};
use crate::app::{App, View};
use crate::model::graph::{Lane, Node};
use crate::model::{Model, is_about, mark};
use crate::text::line;

pub(super) fn draw(app: &App, model: &Model, area: Rect, canvas: &mut Canvas<'_>) {
    let area = canvas.title(area, "Graph", "what has to be done first stands above");
    let scroll = &app.lists[View::Graph as usize];
    if model.graph.is_empty() {
        return canvas.empty(area, &["No tasks yet.", "a adds one."]);
    }
    let at = scroll.at.min(model.graph.len() - 1);
    let chosen = model.graph.get(at).map(|node| node.task.clone());
    let around = chosen.as_ref().and_then(|id| model.head().task(id));
    let rows = canvas.list(View::Graph, area, model.graph.len(), scroll);
    for (row, place) in (0..).zip(rows) {
        let node = &model.graph[place];
        let theme = canvas.theme;
        let Some(entry) = model.head().task(&node.task) else { continue };
        let (glyph, style) = theme.mark(mark(model, entry, app.now));
        let mut pieces = lines(node, glyph, style, theme.dim());
        let is_before = around.is_some_and(|chosen| chosen.spec.depends_on.contains(&node.task));
        let is_after = chosen.as_ref().is_some_and(|id| entry.spec.depends_on.contains(id));
        let near = if is_before || is_after { theme.lively() } else { theme.plain() };
        let found = !app.query.is_empty() && is_about(entry, &app.query);
        pieces.push((line(node.task.as_str()), near.patch(theme.bold())));
        pieces.push((format!("  {}", line(&entry.spec.title)), if found { theme.found() } else { near }));
        let unlinked: Vec<String> = node.unlinked.iter().take(8).map(|id| line(id.as_str())).collect();
        let mut right: Vec<Piece> = Vec::new();
        if !unlinked.is_empty() {
            right.push((format!("after {}", unlinked.join(", ")), theme.dim()));
        }
        canvas.row_with(area, row, &pieces, &right);
        if place == at {
            canvas.choose(area, row);
        }
    }
}

fn lines(
    node: &Node,
    glyph: &str,
    style: ratatui_core::style::Style,
    dim: ratatui_core::style::Style,
) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = vec![(" ".to_owned(), dim)];
    for lane in &node.lanes {
        let (left, right) = lane.cells();
        match lane {
            Lane::Task { .. } => {
                pieces.push((glyph.to_owned(), style));
                pieces.push((right.to_string(), dim));
            }
            _ => pieces.push((format!("{left}{right}"), dim)),
        }
    }
    pieces
}
