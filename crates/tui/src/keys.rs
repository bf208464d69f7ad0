//! The keys: one table of what is pressed, what it does and how help says it. Dispatch, the line at the bottom
//! and the help are all made of it.

use ratatui_crossterm::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::app::View;

/// What a key asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Leave,
    Help,
    Show(View),
    NextView,
    EarlierView,
    Up,
    Down,
    PageUp,
    PageDown,
    First,
    Last,
    Open,
    Back,
    Search,
    NextMatch,
    EarlierMatch,
    Answer,
    Pause,
    Stop,
    Handoff,
    Nudge,
    Skip,
    Retry,
    Add,
    Edit,
    Filter,
    Fold,
    FoldAll,
    Follow,
    Earlier,
    Later,
    Diff,
    Words,
    By,
    Look,
    Mouse,
    Redraw,
}

/// Where a key means something.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    Everywhere,
    In(&'static [View]),
}

impl Place {
    pub(crate) fn is(self, view: View) -> bool {
        match self {
            Self::Everywhere => true,
            Self::In(views) => views.contains(&view),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Binding {
    pub(crate) keys: &'static [Key],
    pub(crate) command: Command,
    pub(crate) place: Place,
    /// A word for the line at the bottom; empty keys stand in the help alone.
    pub(crate) word: &'static str,
    pub(crate) help: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    Char(char),
    Control(char),
    Code(KeyCode),
}

impl Key {
    /// As people call it.
    pub(crate) fn name(self) -> String {
        match self {
            Self::Char(' ') => "Space".to_owned(),
            Self::Char(c) => c.to_string(),
            Self::Control(c) => format!("^{}", c.to_ascii_uppercase()),
            Self::Code(KeyCode::Up) => "↑".to_owned(),
            Self::Code(KeyCode::Down) => "↓".to_owned(),
            Self::Code(KeyCode::Left) => "←".to_owned(),
            Self::Code(KeyCode::Right) => "→".to_owned(),
            Self::Code(KeyCode::BackTab) => "Shift-Tab".to_owned(),
            Self::Code(code) => code.to_string(),
        }
    }

    fn is(self, event: &KeyEvent) -> bool {
        let control = event.modifiers.contains(KeyModifiers::CONTROL);
        let plain = !event.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
        match self {
            Self::Char(c) => plain && event.code == KeyCode::Char(c),
            Self::Control(c) => control && event.code == KeyCode::Char(c),
            Self::Code(code) => plain && event.code == code,
        }
    }
}

/// The command of a key in a view. What a view says of a key outweighs what holds everywhere.
pub(crate) fn command(event: &KeyEvent, view: View) -> Option<Command> {
    let fits = |binding: &&Binding| binding.place.is(view) && binding.keys.iter().any(|key| key.is(event));
    let own = BINDINGS.iter().filter(|binding| matches!(binding.place, Place::In(_))).find(fits);
    own.or_else(|| BINDINGS.iter().find(fits)).map(|binding| binding.command)
}

const fn everywhere(
    keys: &'static [Key],
    command: Command,
    word: &'static str,
    help: &'static str,
) -> Binding {
    Binding { keys, command, place: Place::Everywhere, word, help }
}

const fn inside(
    views: &'static [View],
    keys: &'static [Key],
    command: Command,
    word: &'static str,
    help: &'static str,
) -> Binding {
    Binding { keys, command, place: Place::In(views), word, help }
}

use Key::{Char, Code, Control};

/// In the order in which the help tells them.
pub(crate) const BINDINGS: &[Binding] = &[
    inside(
        &[View::Tasks, View::Graph],
        &[Code(KeyCode::Enter)],
        Command::Open,
        "attempts",
        "the task's newest attempt",
    ),
    inside(&[View::Tasks, View::Graph], &[Char('a')], Command::Add, "add", "add a task to the backlog"),
    inside(&[View::Tasks, View::Graph], &[Char('e')], Command::Edit, "edit", "edit the task in the backlog"),
    inside(&[View::Tasks, View::Graph], &[Char('s')], Command::Skip, "skip", "leave the task out"),
    inside(&[View::Tasks, View::Graph], &[Char('r')], Command::Retry, "retry", "try the task again"),
    inside(&[View::Tasks], &[Char('t')], Command::Filter, "show", "show all tasks, or those of one state"),
    inside(
        &[View::Output],
        &[Char(' '), Code(KeyCode::Enter)],
        Command::Fold,
        "fold",
        "open or close a tool call",
    ),
    inside(&[View::Output], &[Char('o')], Command::FoldAll, "all", "open or close all tool calls"),
    inside(&[View::Output], &[Char('f')], Command::Follow, "follow", "follow the agent at work"),
    inside(
        &[View::Output, View::Attempt],
        &[Char('['), Code(KeyCode::Left), Char('h')],
        Command::Earlier,
        "earlier",
        "the attempt before",
    ),
    inside(
        &[View::Output, View::Attempt],
        &[Char(']'), Code(KeyCode::Right), Char('l')],
        Command::Later,
        "later",
        "the attempt after",
    ),
    inside(
        &[View::Attempt],
        &[Char('d'), Code(KeyCode::Enter)],
        Command::Diff,
        "diff",
        "evidence, or what it changed",
    ),
    inside(
        &[View::Timeline],
        &[Code(KeyCode::Enter)],
        Command::Open,
        "attempt",
        "the attempt's evidence and diff",
    ),
    inside(&[View::Timeline], &[Char('v')], Command::Words, "events", "iterations, or all events in words"),
    inside(
        &[View::Figures],
        &[Char('b'), Code(KeyCode::Right), Code(KeyCode::Left)],
        Command::By,
        "by",
        "cost by task, agent, model or day",
    ),
    inside(&[View::Inbox], &[Code(KeyCode::Enter)], Command::Answer, "answer", "answer the question"),
    inside(&[View::Loops], &[Code(KeyCode::Enter)], Command::Open, "attach", "look at this loop"),
    inside(&[View::Loops], &[Char('r')], Command::Look, "refresh", "look for loops again"),
    everywhere(&[Char('i')], Command::Answer, "answer", "answer the question that waits"),
    everywhere(&[Char('p')], Command::Pause, "pause", "pause the loop, or let it go on"),
    everywhere(&[Char('u')], Command::Nudge, "nudge", "say something to the agent at work"),
    everywhere(&[Char('w')], Command::Handoff, "", "have the agent wrap up and a fresh one go on"),
    everywhere(&[Char('S')], Command::Stop, "stop", "end the run in good order"),
    everywhere(&[Char('/')], Command::Search, "search", "search in tasks, output and the rest"),
    everywhere(&[Char('n')], Command::NextMatch, "", "the next place with what was searched"),
    everywhere(&[Char('N')], Command::EarlierMatch, "", "the place before"),
    everywhere(&[Char('k'), Code(KeyCode::Up)], Command::Up, "", "up"),
    everywhere(&[Char('j'), Code(KeyCode::Down)], Command::Down, "", "down"),
    everywhere(&[Code(KeyCode::PageUp), Control('u'), Control('b')], Command::PageUp, "", "a page up"),
    everywhere(&[Code(KeyCode::PageDown), Control('d'), Control('f')], Command::PageDown, "", "a page down"),
    everywhere(&[Char('g'), Code(KeyCode::Home)], Command::First, "", "the first"),
    everywhere(&[Char('G'), Code(KeyCode::End)], Command::Last, "", "the last"),
    everywhere(&[Code(KeyCode::Esc)], Command::Back, "", "clear the search, or back to the tasks"),
    everywhere(&[Code(KeyCode::Tab)], Command::NextView, "", "the next view"),
    everywhere(&[Code(KeyCode::BackTab)], Command::EarlierView, "", "the view before"),
    everywhere(&[Char('1')], Command::Show(View::Tasks), "", "tasks"),
    everywhere(&[Char('2')], Command::Show(View::Graph), "", "who waits on whom"),
    everywhere(&[Char('3')], Command::Show(View::Output), "", "what the agent says and does"),
    everywhere(&[Char('4')], Command::Show(View::Attempt), "", "an attempt: evidence and diff"),
    everywhere(&[Char('5')], Command::Show(View::Timeline), "", "iterations in time"),
    everywhere(&[Char('6')], Command::Show(View::Figures), "", "cost, budgets, tokens, health"),
    everywhere(&[Char('7')], Command::Show(View::Inbox), "", "questions that wait for a person"),
    everywhere(&[Char('8')], Command::Show(View::Loops), "", "other loops, of this machine"),
    everywhere(&[Char('m')], Command::Mouse, "", "leave the mouse to the terminal, or take it back"),
    everywhere(&[Control('l')], Command::Redraw, "", "draw everything anew"),
    everywhere(&[Char('?'), Code(KeyCode::F(1))], Command::Help, "help", "these keys"),
    everywhere(&[Char('q'), Control('c')], Command::Leave, "leave", "leave; the loop goes on"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_means_two_things_in_one_view() {
        for view in View::ALL {
            let mut own: Vec<Key> = Vec::new();
            let mut common: Vec<Key> = Vec::new();
            for binding in BINDINGS.iter().filter(|binding| binding.place.is(view)) {
                let seen = if matches!(binding.place, Place::In(_)) { &mut own } else { &mut common };
                for key in binding.keys {
                    assert!(!seen.contains(key), "{view:?}: {}", key.name());
                    seen.push(*key);
                }
            }
        }
    }

    #[test]
    fn every_view_can_be_reached() {
        for view in View::ALL {
            assert!(BINDINGS.iter().any(|binding| binding.command == Command::Show(view)), "{view:?}");
        }
    }
}
