//! What stands in front of everything else.

use ratatui_core::layout::{Position, Rect};
use ratatui_core::style::Style;

use super::canvas::{Canvas, Piece};
use super::{help, inbox};
use crate::app::dialog::{AnswerBox, Dialog};
use crate::app::editor::Editor;
use crate::app::form::{FIELDS, Form};
use crate::app::{App, Hit, Scroll, Text};
use crate::text::{pad, paragraph, width, wrap};

pub(super) fn draw(app: &App, area: Rect, canvas: &mut Canvas<'_>) {
    match &app.dialog {
        None => {}
        Some(Dialog::Search(editor)) => search(editor, area, canvas),
        Some(Dialog::Help(scroll)) => draw_help(scroll, area, canvas),
        Some(Dialog::Confirm { question, .. }) => confirm(question, area, canvas),
        Some(Dialog::Nudge(editor)) => nudge(editor, area, canvas),
        Some(Dialog::Answer(answer)) => draw_answer(answer, area, canvas),
        Some(Dialog::Form(form)) => draw_form(form, area, canvas),
    }
}

/// A box in the middle; what is inside of it is returned.
fn window(title: &str, keys: &str, columns: u16, rows: u16, area: Rect, canvas: &mut Canvas<'_>) -> Rect {
    let columns = columns.min(area.width);
    let rows = (rows + 2).min(area.height);
    let place = Rect {
        x: area.x + (area.width - columns) / 2,
        y: area.y + (area.height - rows) / 2,
        width: columns,
        height: rows,
    };
    canvas.clear(place);
    let theme = canvas.theme;
    let inner = usize::from(columns.saturating_sub(2));
    canvas.text(place, 0, &format!("╭{}╮", "─".repeat(inner)), theme.plain());
    for row in 1..rows.saturating_sub(1) {
        canvas.text(place, row, "│", theme.plain());
        let edge = Rect { x: place.right() - 1, width: 1, ..place };
        canvas.text(edge, row, "│", theme.plain());
    }
    canvas.text(place, rows - 1, &format!("╰{}╯", "─".repeat(inner)), theme.plain());
    let label = Rect { x: place.x + 2, width: columns.saturating_sub(4), ..place };
    canvas.text(label, 0, &format!(" {title} "), theme.bold());
    canvas.text(label, rows - 1, &format!(" {keys} "), theme.dim());
    Rect { x: place.x + 2, y: place.y + 1, width: columns.saturating_sub(4), height: rows.saturating_sub(2) }
}

fn search(editor: &Editor, area: Rect, canvas: &mut Canvas<'_>) {
    let place = Rect { y: area.bottom() - 1, height: 1, ..area };
    canvas.clear(place);
    canvas.text(place, 0, "/", canvas.theme.bold());
    input(editor, Rect { x: place.x + 1, width: place.width - 1, ..place }, true, canvas);
}

fn draw_help(scroll: &Scroll, area: Rect, canvas: &mut Canvas<'_>) {
    let lines = help::lines(canvas);
    let rows = u16::try_from(lines.len()).unwrap_or(u16::MAX);
    let inside = window("Keys", "Esc closes · ↑ ↓ move", 76, rows, area, canvas);
    let top = scroll.top.min(lines.len().saturating_sub(inside.height.into()));
    canvas.seen.texts.push((Text::Help, inside.height.into(), top));
    for (row, line) in (0..inside.height).zip(lines.iter().skip(top)) {
        canvas.row(inside, row, line);
    }
}

fn confirm(question: &str, area: Rect, canvas: &mut Canvas<'_>) {
    let columns = 64.min(area.width);
    let lines = paragraph(&crate::text::line(question), usize::from(columns).saturating_sub(4));
    let rows = u16::try_from(lines.len()).unwrap_or(u16::MAX);
    let inside = window("Sure?", "y yes · n no", columns, rows, area, canvas);
    for (row, line) in (0..).zip(&lines) {
        canvas.text(inside, row, line, canvas.theme.plain());
    }
}

fn nudge(editor: &Editor, area: Rect, canvas: &mut Canvas<'_>) {
    let inside = window("Say to the agent", "Enter sends · Esc leaves it", 72, 2, area, canvas);
    canvas.text(inside, 0, "It hears it after its next tool call.", canvas.theme.dim());
    input(editor, Rect { y: inside.y + 1, height: 1, ..inside }, true, canvas);
}

fn draw_answer(answer: &AnswerBox, area: Rect, canvas: &mut Canvas<'_>) {
    let columns = area.width.saturating_sub(4).min(100);
    let inner = columns.saturating_sub(4);
    let mut text = inbox::lines(&answer.letter, inner, canvas);
    // The options are below, where they can be chosen.
    text.truncate(text.len().saturating_sub(option_rows(answer, inner, canvas)));
    let choices = answer.choices();
    let fixed = choices.len() + 2;
    let most = usize::from(area.height.saturating_sub(2)).saturating_sub(fixed);
    inbox::shorten(&mut text, most, canvas);
    let rows = u16::try_from(text.len() + fixed).unwrap_or(u16::MAX);
    let title = format!("{} asks {}", crate::text::line(&answer.letter.loop_name), answer.letter.question.id);
    let keys = "↑↓ choose · Enter answers · or type · Esc later";
    let inside = window(&title, keys, columns, rows, area, canvas);
    for (row, line) in (0..).zip(&text) {
        canvas.row(inside, row, line);
    }
    let first = u16::try_from(text.len()).unwrap_or(0) + 1;
    let typed = !answer.words.text.is_empty();
    for (number, (word, text)) in choices.iter().enumerate() {
        let row = first + u16::try_from(number).unwrap_or(0);
        if row + 1 >= inside.height {
            break;
        }
        let theme = canvas.theme;
        let label =
            if word.parse::<u32>().is_ok() { format!(" {word}. ") } else { format!(" {} ", pad(word, 6)) };
        let style = if typed { theme.dim() } else { theme.plain() };
        canvas.row(inside, row, &[(label, theme.bold().patch(style)), (text.clone(), style)]);
        if number == answer.choice && !typed {
            canvas.choose(inside, row);
        }
        let place = Rect { y: inside.y + row, height: 1, ..inside };
        canvas.seen.hits.push((place, Hit::Choice(number)));
    }
    let last = Rect { y: inside.bottom().saturating_sub(1), height: 1, ..inside };
    let theme = canvas.theme;
    if !answer.letter.question.takes_words && !typed {
        canvas.text(last, 0, "takes no words: no agent would read them", theme.dim());
        return;
    }
    canvas.text(last, 0, "own words ", if typed { theme.bold() } else { theme.dim() });
    input(&answer.words, Rect { x: last.x + 10, width: last.width.saturating_sub(10), ..last }, true, canvas);
}

/// Rows that the options of a question take among its lines.
fn option_rows(answer: &AnswerBox, room: u16, canvas: &Canvas<'_>) -> usize {
    let mut without = answer.letter.clone();
    without.question.options.clear();
    inbox::lines(&answer.letter, room, canvas).len() - inbox::lines(&without, room, canvas).len()
}

fn draw_form(form: &Form, area: Rect, canvas: &mut Canvas<'_>) {
    let title = match &form.task {
        Some(task) => format!("Edit {}", crate::text::line(task.id.as_str())),
        None => "New task".to_owned(),
    };
    let description = (area.height / 3).clamp(3, 12);
    let rows = description + 5;
    let keys = "Tab next · ^J new line · ^S saves · Esc leaves it";
    let inside = window(&title, keys, area.width.saturating_sub(4).min(100), rows, area, canvas);
    let mut y = 0;
    for (number, (name, editor)) in FIELDS.iter().zip(&form.fields).enumerate() {
        let height = if editor.lines { description } else { 1 };
        let focused = number == form.at;
        let theme = canvas.theme;
        canvas.text(inside, y, &pad(name, 13), if focused { theme.bold() } else { theme.dim() });
        let place = Rect {
            x: inside.x + 13,
            y: inside.y + y,
            width: inside.width.saturating_sub(13),
            height: height.min(inside.height.saturating_sub(y)),
        };
        input(editor, place, focused, canvas);
        canvas.seen.hits.push((Rect { height: place.height, y: place.y, ..inside }, Hit::Field(number)));
        y += height;
    }
    let problem =
        form.problem.as_deref().unwrap_or("written to the backlog file; a running loop takes it in");
    let style = if form.problem.is_some() { canvas.theme.bad() } else { canvas.theme.dim() };
    canvas.text(inside, inside.height.saturating_sub(1), problem, style);
}

/// What is typed, with the cursor in sight.
fn input(editor: &Editor, area: Rect, focused: bool, canvas: &mut Canvas<'_>) {
    if area.width == 0 || area.height == 0 {
        return;
    }
    let field: Style = if focused { canvas.theme.plain() } else { canvas.theme.dim() };
    let room = usize::from(area.width).saturating_sub(1).max(2);
    let (rows, at) = typed_rows(editor, room);
    let top = at.0.saturating_sub(usize::from(area.height) - 1);
    for (row, text) in (0..area.height).zip(rows.iter().skip(top)) {
        canvas.row(area, row, &[(text.clone(), field)] as &[Piece]);
    }
    if focused {
        let column = u16::try_from(at.1).unwrap_or(0).min(area.width - 1);
        let row = u16::try_from(at.0 - top).unwrap_or(0);
        canvas.cursor = Some(Position::new(area.x + column, area.y + row));
    }
}

/// The rows of what is typed, and where the cursor is among them. A single line scrolls instead of wrapping.
fn typed_rows(editor: &Editor, room: usize) -> (Vec<String>, (usize, usize)) {
    let before = &editor.text[..editor.at];
    if !editor.lines {
        let mut start = 0;
        while width(&before[start..]) > room {
            start += before[start..].chars().next().map_or(1, char::len_utf8);
        }
        return (vec![editor.text[start..].to_owned()], (0, width(&before[start..])));
    }
    let mut rows: Vec<String> = Vec::new();
    for line in editor.text.split('\n') {
        rows.extend(wrap(line, room).into_iter().map(str::to_owned));
    }
    let mut above: Vec<&str> = Vec::new();
    for line in before.split('\n') {
        above.extend(wrap(line, room));
    }
    let last = above.last().copied().unwrap_or_default();
    // A space at the end of a row is typed, though not shown.
    let spaces = before.len() - before.trim_end_matches(' ').len();
    let column = if last.ends_with(' ') { width(last) } else { width(last) + spaces };
    (rows, (above.len().saturating_sub(1), column.min(room)))
}
