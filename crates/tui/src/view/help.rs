//! The help: every key there is, from the one table of keys.

use super::canvas::{Canvas, Piece};
use crate::app::View;
use crate::keys::{BINDINGS, Binding, Place};
use crate::text::pad;

/// Lines of the help.
pub(crate) fn rows() -> usize {
    sections().iter().map(|(_, bindings)| bindings.len() + 2).sum::<usize>() - 1
}

pub(super) fn lines(canvas: &Canvas<'_>) -> Vec<Vec<Piece>> {
    let theme = canvas.theme;
    let mut lines: Vec<Vec<Piece>> = Vec::new();
    for (name, bindings) in sections() {
        if !lines.is_empty() {
            lines.push(Vec::new());
        }
        lines.push(vec![(name, theme.bold())]);
        for binding in bindings {
            let keys: Vec<String> = binding.keys.iter().map(|key| key.name()).collect();
            lines.push(vec![
                (format!("  {}", pad(&keys.join(" "), 18)), theme.lively()),
                (binding.help.to_owned(), theme.plain()),
            ]);
        }
    }
    lines
}

/// What holds everywhere, and then view by view.
fn sections() -> Vec<(String, Vec<&'static Binding>)> {
    let everywhere = BINDINGS.iter().filter(|binding| matches!(binding.place, Place::Everywhere));
    let mut sections = vec![("Everywhere".to_owned(), everywhere.collect())];
    for view in View::ALL {
        let own =
            BINDINGS.iter().filter(|binding| matches!(binding.place, Place::In(_)) && binding.place.is(view));
        let own: Vec<&Binding> = own.collect();
        if !own.is_empty() {
            sections.push((view.name().to_owned(), own));
        }
    }
    sections
}
