//! What somebody does and what happens, folded into what is shown next: a pure update. Whatever has to be
//! done outside is returned as an effect.

pub(crate) mod act;
pub(crate) mod dialog;
pub(crate) mod editor;
pub(crate) mod form;
mod message;
mod mouse;
mod scroll;
mod walk;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use ratatui_core::layout::Rect;
use ratatui_crossterm::crossterm::event::{Event, KeyEvent, KeyEventKind};
use wiggum_core::event::Envelope;
use wiggum_core::ids::LoopId;
use wiggum_engine::desk::chronicle::iteration_of;
use wiggum_engine::desk::cost::By;
use wiggum_engine::desk::inbox::Letter;

use crate::keys::{self, Command};
use crate::model::Model;
use crate::model::output::Output;
use crate::model::page::{Loaded, Pages};

pub(crate) use act::Act;
use dialog::{Dialog, Outcome};
pub(crate) use message::{Effect, Hit, LoopRow, Message, News, Said, Seen, Text};
pub(crate) use scroll::Scroll;

/// What is looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum View {
    #[default]
    Tasks,
    Graph,
    Output,
    Attempt,
    Timeline,
    Figures,
    Inbox,
    Loops,
}

impl View {
    pub(crate) const ALL: [Self; 8] = [
        Self::Tasks,
        Self::Graph,
        Self::Output,
        Self::Attempt,
        Self::Timeline,
        Self::Figures,
        Self::Inbox,
        Self::Loops,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Tasks => "Tasks",
            Self::Graph => "Graph",
            Self::Output => "Output",
            Self::Attempt => "Attempt",
            Self::Timeline => "Timeline",
            Self::Figures => "Figures",
            Self::Inbox => "Inbox",
            Self::Loops => "Loops",
        }
    }
}

pub(crate) struct App {
    pub(crate) model: Option<Model>,
    /// The loop that was asked for; news of others are old.
    pub(crate) attached: Option<LoopId>,
    pub(crate) reading: Option<(u64, u64)>,
    pub(crate) lost: Option<String>,
    pub(crate) view: View,
    pub(crate) lists: [Scroll; View::ALL.len()],
    pub(crate) evidence: Scroll,
    pub(crate) diff: Scroll,
    pub(crate) shows_diff: bool,
    pub(crate) shows_words: bool,
    /// The attempt that was chosen, by its place; the newest without one.
    pub(crate) attempt: Option<usize>,
    pub(crate) pages: Option<(Loaded, Pages)>,
    pub(crate) dialog: Option<Dialog>,
    pub(crate) said: Option<Said>,
    pub(crate) query: String,
    pub(crate) loops: Option<Vec<LoopRow>>,
    pub(crate) by: By,
    pub(crate) mouse: bool,
    pub(crate) now: Timestamp,
    /// In which times of day are told.
    pub(crate) zone: TimeZone,
    pub(crate) output_width: usize,
    pub(crate) output_height: usize,
    hits: Vec<(Rect, Hit)>,
    /// A loop was opened just now: what it works on is chosen.
    arrives: bool,
}

impl App {
    pub(crate) fn new(attached: Option<LoopId>, now: Timestamp) -> Self {
        Self {
            model: None,
            attached,
            reading: None,
            lost: None,
            view: if attached.is_some() { View::Tasks } else { View::Loops },
            lists: [Scroll::default(); View::ALL.len()],
            evidence: Scroll::default(),
            diff: Scroll::default(),
            shows_diff: false,
            shows_words: false,
            attempt: None,
            pages: None,
            dialog: None,
            said: None,
            query: String::new(),
            loops: None,
            by: By::Task,
            mouse: true,
            now,
            zone: TimeZone::UTC,
            output_width: 80,
            output_height: 10,
            hits: Vec::new(),
            arrives: false,
        }
    }

    /// What a message makes of it, and what has to be done about it.
    pub(crate) fn update(&mut self, message: Message, now: Timestamp) -> Vec<Effect> {
        self.now = now;
        let effects = match message {
            Message::Input(Event::Key(key)) if key.kind != KeyEventKind::Release => self.key(&key),
            Message::Input(Event::Mouse(mouse)) => self.mouse(mouse),
            Message::Input(Event::Paste(text)) => {
                if let Some(dialog) = &mut self.dialog {
                    dialog.paste(&text);
                }
                Vec::new()
            }
            Message::Input(_) | Message::Tick => Vec::new(),
            Message::Leave => vec![Effect::Leave],
            Message::Of(id, news) if self.attached == Some(id) => self.news(news),
            Message::Of(..) => Vec::new(),
            Message::Loops(rows) => {
                self.loops = Some(rows);
                Vec::new()
            }
            Message::Said { text, failed } => {
                self.say(&text, failed);
                Vec::new()
            }
        };
        let view = self.view;
        if let Some(model) = &mut self.model {
            model.freshen(view == View::Graph, view == View::Figures);
            if std::mem::take(&mut self.arrives) {
                let at = model.head().open.here().and_then(|open| model.place_of(&open.task));
                self.lists[View::Tasks as usize].at = at.unwrap_or(0);
            }
        }
        effects
    }

    /// Remembers what the last drawing found out.
    pub(crate) fn see(&mut self, seen: Seen) {
        self.hits = seen.hits;
        for (view, top, height) in seen.lists {
            let list = &mut self.lists[view as usize];
            (list.top, list.height) = (top, height);
        }
        for (text, height, top) in seen.texts {
            let scroll = match (text, &mut self.dialog) {
                (Text::Evidence, _) => &mut self.evidence,
                (Text::Diff, _) => &mut self.diff,
                (Text::Help, Some(Dialog::Help(scroll))) => scroll,
                (Text::Help, _) => continue,
            };
            (scroll.height, scroll.top) = (height, top);
        }
        if let Some((top, width, height)) = seen.output {
            (self.output_width, self.output_height) = (width, height);
            if let Some(model) = &mut self.model {
                model.output_mut().top = top;
            }
        }
    }

    pub(crate) fn say(&mut self, text: &str, failed: bool) {
        self.said = Some(Said { text: crate::text::line(text), failed });
    }

    fn news(&mut self, news: News) -> Vec<Effect> {
        match news {
            News::Reading { read, of } => self.reading = Some((read, of)),
            News::Opened(book) => {
                (self.reading, self.lost) = (None, None);
                let mut model = Model::new(*book);
                model.cost_by(self.by);
                self.model = Some(model);
                self.arrives = true;
                return self.load_shown();
            }
            News::Lost(why) => self.lost = Some(crate::text::line(&why)),
            News::Attempt(loaded) => {
                let pages = Pages::of(&loaded);
                self.pages = Some((*loaded, pages));
            }
            News::Events(events) => return self.events(&events),
            News::Vitals { health, letters } => {
                self.lost = None;
                self.letters(letters);
                if let Some(model) = &mut self.model {
                    model.health = Some(*health);
                }
            }
            News::Output { iteration, attempt, fresh, entries } => {
                if let Some(model) = &mut self.model {
                    if fresh {
                        model.live = Output::of(iteration, attempt);
                    }
                    model.live.take(entries);
                }
            }
            News::Earlier { iteration, attempt, entries } => {
                if let Some(model) = &mut self.model {
                    let mut output = Output::of(iteration, attempt);
                    output.take(entries);
                    output.follows = false;
                    model.earlier = Some(output);
                }
            }
        }
        Vec::new()
    }

    fn events(&mut self, events: &[Envelope]) -> Vec<Effect> {
        let Some(model) = &mut self.model else { return Vec::new() };
        model.take(events);
        let shown = self.pages.as_ref().map(|(loaded, _)| loaded.attempt.iteration);
        let about_shown =
            events.iter().any(|event| iteration_of(&event.event).is_some_and(|it| Some(it) == shown));
        let newest_started = self.attempt.is_none();
        if self.view == View::Attempt && (about_shown || newest_started) {
            self.load_shown()
        } else {
            Vec::new()
        }
    }

    /// Whoever is about to answer what was answered elsewhere is told.
    fn letters(&mut self, letters: Vec<Letter>) {
        if let Some(Dialog::Answer(answer)) = &self.dialog {
            let asked = &answer.letter;
            let still = letters.iter().any(|letter| {
                letter.loop_id == asked.loop_id
                    && letter.question.id == asked.question.id
                    && letter.answered.is_none()
            });
            if !still {
                let id = asked.question.id.clone();
                self.dialog = None;
                self.say(&format!("{id} was answered elsewhere"), false);
            }
        }
        if let Some(model) = &mut self.model {
            model.letters = letters;
        }
    }

    fn key(&mut self, key: &KeyEvent) -> Vec<Effect> {
        self.said = None;
        if let Some(dialog) = &mut self.dialog {
            if let Dialog::Help(scroll) = dialog
                && let Some(by) =
                    keys::command(key, self.view).and_then(|command| walk::lines(command, scroll))
            {
                scroll.step_text(by, crate::view::help::rows());
                return Vec::new();
            }
            let outcome = dialog.key(key);
            return self.settle(outcome);
        }
        match keys::command(key, self.view) {
            Some(command) => self.command(command),
            None => Vec::new(),
        }
    }

    pub(crate) fn settle(&mut self, outcome: Outcome) -> Vec<Effect> {
        match outcome {
            Outcome::Stay => Vec::new(),
            Outcome::Close => {
                self.dialog = None;
                Vec::new()
            }
            Outcome::Search(words) => {
                self.dialog = None;
                self.search(words);
                Vec::new()
            }
            Outcome::Do(act) => {
                let confirmed = matches!(self.dialog, Some(Dialog::Confirm { .. }));
                self.dialog = None;
                match act.hurts() {
                    Some(question) if !confirmed => {
                        self.dialog = Some(Dialog::Confirm { question, act });
                        Vec::new()
                    }
                    _ => self.act(act),
                }
            }
        }
    }

    fn act(&mut self, act: Act) -> Vec<Effect> {
        self.say(act.doing(), false);
        vec![Effect::Do(act)]
    }

    fn command(&mut self, command: Command) -> Vec<Effect> {
        match command {
            Command::Leave => return vec![Effect::Leave],
            Command::Redraw => return vec![Effect::Redraw],
            Command::Help => self.dialog = Some(Dialog::Help(Scroll::default())),
            Command::Show(view) => return self.show(view),
            Command::NextView => return self.show(self.beside(1)),
            Command::EarlierView => return self.show(self.beside(View::ALL.len() - 1)),
            Command::Search => self.dialog = Some(Dialog::Search(editor::Editor::with(&self.query, false))),
            Command::NextMatch => self.find(true),
            Command::EarlierMatch => self.find(false),
            Command::Mouse => {
                self.mouse = !self.mouse;
                let said = if self.mouse { "the mouse is ours" } else { "the mouse is the terminal's" };
                self.say(said, false);
                return vec![Effect::TakeMouse(self.mouse)];
            }
            Command::Look => {
                self.say("looking for loops …", false);
                return vec![Effect::ListLoops];
            }
            Command::Up
            | Command::Down
            | Command::PageUp
            | Command::PageDown
            | Command::First
            | Command::Last
            | Command::Open
            | Command::Back
            | Command::Filter
            | Command::Fold
            | Command::FoldAll
            | Command::Follow
            | Command::Earlier
            | Command::Later
            | Command::Diff
            | Command::Words
            | Command::By => return self.walk(command),
            Command::Answer
            | Command::Pause
            | Command::Stop
            | Command::Handoff
            | Command::Nudge
            | Command::Skip
            | Command::Retry
            | Command::Add
            | Command::Edit => return self.ask(command),
        }
        Vec::new()
    }

    pub(crate) fn show(&mut self, view: View) -> Vec<Effect> {
        self.view = view;
        match view {
            View::Loops => vec![Effect::ListLoops],
            View::Attempt => self.load_shown(),
            View::Tasks | View::Graph | View::Output | View::Timeline | View::Figures | View::Inbox => {
                Vec::new()
            }
        }
    }

    fn beside(&self, by: usize) -> View {
        View::ALL[(self.view as usize + by) % View::ALL.len()]
    }

    pub(crate) fn list(&self) -> &Scroll {
        &self.lists[self.view as usize]
    }
}
