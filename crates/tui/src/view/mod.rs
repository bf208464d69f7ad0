//! Drawing: what is known, as cells. Nothing here changes anything; what a drawing finds out (where things
//! are, how much has room) is returned.

mod attempt;
mod canvas;
mod dialog;
mod figures;
mod graph;
pub(crate) mod help;
mod inbox;
mod loops;
mod output;
mod tasks;
pub(crate) mod theme;
mod timeline;
mod top;

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::{Position, Rect};

use crate::app::{App, Seen, View};
use crate::keys::{BINDINGS, Command, Place};
use crate::model::Model;
use crate::text::width;
use canvas::{Canvas, Piece, above, below, beside};
use theme::Theme;
use wiggum_engine::words::thousands;

/// From here on two panes stand beside each other, and three.
const TWO: u16 = 120;
const THREE: u16 = 200;
/// Below this nothing can be read.
const LEAST: (u16, u16) = (40, 10);

/// Draws everything. Tells where things are, and where the cursor belongs.
pub(crate) fn draw(app: &App, theme: Theme, buffer: &mut Buffer) -> (Seen, Option<Position>) {
    let area = buffer.area;
    let mut canvas = Canvas { buffer, theme, seen: Seen::default(), cursor: None };
    if area.width < LEAST.0 || area.height < LEAST.1 {
        let (width, height) = LEAST;
        canvas.text(area, 0, &format!("needs {width}×{height}"), theme.bold());
        canvas.text(area, 1, &format!("has {}×{}", area.width, area.height), theme.plain());
        canvas.text(area, 2, "q leaves", theme.dim());
        return (canvas.seen, None);
    }
    let body = top::draw(app, area, &mut canvas);
    let (body, bottom) = (above(body, body.height.saturating_sub(1)), below(area, area.height - 1));
    match &app.model {
        Some(model) => draw_view(app, model, body, &mut canvas),
        None => draw_without(app, body, &mut canvas),
    }
    draw_bottom(app, bottom, &mut canvas);
    dialog::draw(app, area, &mut canvas);
    (canvas.seen, canvas.cursor)
}

fn draw_view(app: &App, model: &Model, area: Rect, canvas: &mut Canvas<'_>) {
    match app.view {
        View::Tasks => draw_tasks(app, model, area, canvas),
        View::Graph if area.width >= TWO => {
            let (left, line, right) = beside(area, area.width * 3 / 5);
            graph::draw(app, model, left, canvas);
            canvas.divide(line, area);
            tasks::detail(app, model, right, canvas);
        }
        View::Graph => graph::draw(app, model, area, canvas),
        View::Output => output::draw(app, model, area, canvas),
        View::Attempt => attempt::draw(app, model, area, canvas),
        View::Timeline => timeline::draw(app, model, area, canvas),
        View::Figures => figures::draw(app, model, area, canvas),
        View::Inbox => inbox::draw(app, model, area, canvas),
        View::Loops => loops::draw(app, area, canvas),
    }
}

/// The tasks, and as much of what is going on as has room beside or below them.
fn draw_tasks(app: &App, model: &Model, area: Rect, canvas: &mut Canvas<'_>) {
    if area.width >= THREE {
        let (left, line, rest) = beside(area, area.width * 2 / 5);
        let (middle, second, right) = beside(rest, rest.width / 2);
        tasks::draw(app, model, left, canvas);
        canvas.divide(line, area);
        let half = middle.height / 2;
        tasks::detail(app, model, above(middle, half), canvas);
        timeline::draw(app, model, below(middle, half), canvas);
        canvas.divide(second, area);
        output::draw(app, model, right, canvas);
    } else if area.width >= TWO {
        let (left, line, right) = beside(area, area.width / 2);
        tasks::draw(app, model, left, canvas);
        canvas.divide(line, area);
        let third = right.height * 2 / 5;
        tasks::detail(app, model, above(right, third), canvas);
        output::draw(app, model, below(right, third), canvas);
    } else if area.height >= 16 {
        let detail = area.height / 3;
        tasks::draw(app, model, above(area, area.height - detail), canvas);
        tasks::detail(app, model, below(area, area.height - detail), canvas);
    } else {
        tasks::draw(app, model, area, canvas);
    }
}

fn draw_without(app: &App, area: Rect, canvas: &mut Canvas<'_>) {
    if app.view == View::Loops {
        return loops::draw(app, area, canvas);
    }
    match (app.reading, app.attached) {
        (Some((read, of)), _) => {
            let share = format!("{} of {}", thousands(read), thousands(of));
            canvas.empty(area, &["Reading the journal …", &share]);
        }
        (None, Some(_)) => canvas.empty(area, &["Reading the journal …"]),
        (None, None) => {
            canvas.empty(
                area,
                &["No loop is looked at.", "8 shows the loops of this machine; `wiggum run` starts one."],
            );
        }
    }
}

/// Is there anything that a key could be about?
fn makes_sense(app: &App, command: Command) -> bool {
    let Some(model) = &app.model else {
        return matches!(command, Command::Open | Command::Look | Command::Help | Command::Leave);
    };
    match command {
        Command::Answer => app.letter().is_some(),
        Command::Pause | Command::Stop => model.is_alive(),
        Command::Nudge => model.is_working(),
        _ => true,
    }
}

/// What was just said, or the keys that do something here.
fn draw_bottom(app: &App, area: Rect, canvas: &mut Canvas<'_>) {
    let theme = canvas.theme;
    if let Some(said) = &app.said {
        let style = if said.failed { theme.bad() } else { theme.lively() };
        return canvas.text(area, 0, &said.text, style);
    }
    let own =
        BINDINGS.iter().filter(|binding| matches!(binding.place, Place::In(_)) && binding.place.is(app.view));
    let common = BINDINGS.iter().filter(|binding| matches!(binding.place, Place::Everywhere));
    let mut words: Vec<&str> = Vec::new();
    let hints: Vec<[Piece; 2]> = own
        .chain(common)
        .filter(|binding| !binding.word.is_empty() && makes_sense(app, binding.command))
        .filter(|binding| {
            let first = !words.contains(&binding.word);
            words.push(binding.word);
            first
        })
        .filter_map(|binding| {
            let key = binding.keys.first()?.name();
            Some([(key, theme.bold()), (format!(" {}  ", binding.word), theme.dim())])
        })
        .collect();
    // The way out and the way to the rest are always there.
    let wide = |hint: &[Piece; 2]| hint.iter().map(|(text, _)| width(text)).sum::<usize>();
    let (first, last) = hints.split_at(hints.len().saturating_sub(2));
    let mut room = usize::from(area.width).saturating_sub(last.iter().map(wide).sum());
    let mut line: Vec<Piece> = Vec::new();
    for hint in first {
        let Some(left) = room.checked_sub(wide(hint)) else { break };
        room = left;
        line.extend(hint.iter().cloned());
    }
    line.extend(last.iter().flatten().cloned());
    canvas.row(area, 0, &line);
}
