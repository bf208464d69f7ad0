//! The interface without a terminal: what it would show, for tests and for measuring.

use std::path::PathBuf;

use jiff::Timestamp;
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_crossterm::crossterm::event::{
    Event, KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind,
};
use wiggum_core::event::Envelope;
use wiggum_core::ids::LoopId;
use wiggum_engine::checkout::Checkout;
use wiggum_engine::desk::attempts::{Attempt, Diff};
use wiggum_engine::desk::health::LoopHealth;
use wiggum_engine::desk::inbox::Letter;
use wiggum_engine::desk::transcripts::Entry;
use wiggum_store::LoopRecord;

use crate::app::{App, Effect, LoopRow, Message, News};
use crate::model::Book;
use crate::model::page::Loaded;
use crate::view::draw;
use crate::view::theme::Theme;

pub struct Mirror {
    app: App,
    id: LoopId,
    theme: Theme,
    now: Timestamp,
}

impl Mirror {
    /// Of a loop without events.
    pub fn new(workspace: PathBuf, record: LoopRecord, now: Timestamp, colour: bool) -> Self {
        let id = record.id;
        let mut mirror = Self { app: App::new(Some(id), now), id, theme: Theme { colour }, now };
        mirror.open(workspace, record);
        mirror
    }

    /// Its journal was read, and is empty.
    pub fn open(&mut self, workspace: PathBuf, record: LoopRecord) {
        self.news(News::Opened(Box::new(Book::new(workspace, record))));
    }

    pub fn events(&mut self, events: Vec<Envelope>) {
        self.news(News::Events(events));
    }

    pub fn vitals(&mut self, health: LoopHealth, letters: Vec<Letter>) {
        self.news(News::Vitals { health: Box::new(health), letters });
    }

    pub fn output(&mut self, iteration: u32, attempt: u32, entries: Vec<Entry>) {
        self.news(News::Output { iteration, attempt, fresh: true, entries });
    }

    /// The attempt that began with this event.
    pub fn attempt(&mut self, attempt: Attempt, diff: Option<Diff>, seq: u64) {
        self.news(News::Attempt(Box::new(Loaded { attempt, diff, seq })));
    }

    pub fn loops(&mut self, rows: Vec<(PathBuf, LoopRecord, LoopHealth)>) {
        let rows = rows.into_iter().map(|(workspace, record, health)| LoopRow {
            checkout: Checkout::at(workspace, ""),
            record,
            health,
        });
        let message = Message::Loops(rows.collect());
        self.message(message);
    }

    /// Presses keys as people call them: `j`, `Enter`, `^S`. Tells what was to be done outside.
    pub fn press(&mut self, keys: &str) -> Vec<String> {
        keys.split(' ').flat_map(|key| self.message(Message::Input(Event::Key(event(key))))).collect()
    }

    pub fn type_text(&mut self, text: &str) -> Vec<String> {
        self.message(Message::Input(Event::Paste(text.to_owned())))
    }

    pub fn click(&mut self, column: u16, row: u16) -> Vec<String> {
        let kind = MouseEventKind::Down(MouseButton::Left);
        self.message(Message::Input(Event::Mouse(MouseEvent {
            kind,
            column,
            row,
            modifiers: KeyModifiers::NONE,
        })))
    }

    pub fn wheel_down(&mut self, column: u16, row: u16) {
        let kind = MouseEventKind::ScrollDown;
        let event = MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE };
        self.message(Message::Input(Event::Mouse(event)));
    }

    /// What a screen of this size shows.
    pub fn draw(&mut self, width: u16, height: u16) -> Buffer {
        let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
        let (seen, _) = draw(&self.app, self.theme, &mut buffer);
        self.app.see(seen);
        buffer
    }

    fn news(&mut self, news: News) {
        self.message(Message::Of(self.id, news));
    }

    fn message(&mut self, message: Message) -> Vec<String> {
        let name = |effect: &Effect| match effect {
            Effect::Do(act) => format!("{act:?}"),
            Effect::Attach(row) => format!("attach to {}", row.record.id),
            Effect::LoadAttempt(span) => format!("load attempt {} of {}", span.attempt, span.task),
            Effect::LoadOutput(span) => format!("load output {} of {}", span.attempt, span.task),
            Effect::ListLoops => "list loops".to_owned(),
            Effect::TakeMouse(taken) => format!("take the mouse: {taken}"),
            Effect::Redraw => "redraw".to_owned(),
            Effect::Leave => "leave".to_owned(),
        };
        self.app.update(message, self.now).iter().map(name).collect()
    }
}

fn event(key: &str) -> KeyEvent {
    let code = match key {
        "Enter" => KeyCode::Enter,
        "Esc" => KeyCode::Esc,
        "Tab" => KeyCode::Tab,
        "Space" => KeyCode::Char(' '),
        "Up" => KeyCode::Up,
        "Down" => KeyCode::Down,
        "Left" => KeyCode::Left,
        "Right" => KeyCode::Right,
        "End" => KeyCode::End,
        "PageDown" => KeyCode::PageDown,
        "Backspace" => KeyCode::Backspace,
        other => {
            let control = other.strip_prefix('^').filter(|rest| !rest.is_empty());
            let c = control.unwrap_or(other).chars().next().unwrap_or(' ');
            let modifiers = if control.is_some() { KeyModifiers::CONTROL } else { KeyModifiers::NONE };
            return KeyEvent::new(
                KeyCode::Char(if control.is_some() { c.to_ascii_lowercase() } else { c }),
                modifiers,
            );
        }
    };
    KeyEvent::new(code, KeyModifiers::NONE)
}
