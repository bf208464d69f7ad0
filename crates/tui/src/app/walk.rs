//! Moving about: in lists and texts, from one attempt to another, to what was searched.

use wiggum_core::ids::TaskId;
use wiggum_engine::desk::cost::By;

use super::{App, Effect, Scroll, View};
use crate::keys::Command;
use crate::model::is_about;
use crate::text::line;

/// By how many lines a command moves a text.
pub(super) fn lines(command: Command, scroll: &Scroll) -> Option<isize> {
    Some(match command {
        Command::Up => -1,
        Command::Down => 1,
        Command::PageUp => -scroll.page(),
        Command::PageDown => scroll.page(),
        Command::First => isize::MIN / 2,
        Command::Last => isize::MAX / 2,
        _ => return None,
    })
}

impl App {
    pub(super) fn walk(&mut self, command: Command) -> Vec<Effect> {
        if lines(command, self.list()).is_some() {
            self.step(self.view, command);
            return Vec::new();
        }
        match command {
            Command::Open => return self.open(),
            Command::Back => return self.back(),
            Command::Earlier => return self.choose(-1),
            Command::Later => return self.choose(1),
            Command::Diff => self.shows_diff = !self.shows_diff,
            Command::Words => self.shows_words = !self.shows_words,
            Command::Filter => self.filter(),
            Command::By => {
                self.by = match self.by {
                    By::Task => By::Agent,
                    By::Agent => By::Model,
                    By::Model => By::Day,
                    By::Day | By::Loop => By::Task,
                };
                if let Some(model) = &mut self.model {
                    model.cost_by(self.by);
                }
            }
            Command::Fold => self.on_output(|output| output.fold()),
            Command::FoldAll => self.on_output(|output| output.fold_all()),
            Command::Follow => {
                if let Some(model) = &mut self.model {
                    model.earlier = None;
                    model.live.go_last();
                }
                self.attempt = None;
            }
            _ => {}
        }
        Vec::new()
    }

    fn on_output(&mut self, change: impl FnOnce(&mut crate::model::output::Output)) {
        if let Some(model) = &mut self.model {
            change(model.output_mut());
        }
    }

    /// Moves within a pane.
    pub(super) fn step(&mut self, pane: View, command: Command) {
        match pane {
            View::Output => {
                let page = Scroll { height: self.output_height, ..Scroll::default() };
                let (by, width) = (lines(command, &page).unwrap_or(0), self.output_width);
                self.on_output(|output| match command {
                    Command::First => output.go_first(),
                    Command::Last => output.go_last(),
                    _ => output.step(by, width),
                });
            }
            View::Attempt => {
                let Some((_, pages)) = &self.pages else { return };
                let (scroll, count) = match self.shows_diff {
                    true => (&mut self.diff, pages.diff.len()),
                    false => (&mut self.evidence, pages.evidence.len()),
                };
                scroll.step_text(lines(command, scroll).unwrap_or(0), count);
            }
            View::Tasks | View::Graph | View::Timeline | View::Figures | View::Inbox | View::Loops => {
                let count = self.count(pane);
                let list = &mut self.lists[pane as usize];
                list.step(lines(command, list).unwrap_or(0), count);
            }
        }
    }

    /// Rows of a list.
    pub(crate) fn count(&self, pane: View) -> usize {
        let Some(model) = &self.model else {
            return if pane == View::Loops { self.loops.as_ref().map_or(0, Vec::len) } else { 0 };
        };
        match pane {
            View::Tasks => model.tasks.len(),
            View::Graph => model.graph.len(),
            View::Timeline if self.shows_words => model.book.words.len(),
            View::Timeline => model.spans().len(),
            View::Figures => model.cost.as_ref().map_or(0, |report| report.rows.len()),
            View::Inbox => model.letters.len(),
            View::Loops => self.loops.as_ref().map_or(0, Vec::len),
            View::Output | View::Attempt => 0,
        }
    }

    /// The task that is chosen in the list or in the picture.
    pub(crate) fn chosen_task(&self) -> Option<TaskId> {
        let model = self.model.as_ref()?;
        let at = |view: View, count: usize| self.lists[view as usize].at.min(count.saturating_sub(1));
        match self.view {
            View::Graph => model.graph.get(at(View::Graph, model.graph.len())).map(|node| node.task.clone()),
            _ => model.tasks.get(at(View::Tasks, model.tasks.len())).cloned(),
        }
    }

    fn open(&mut self) -> Vec<Effect> {
        match self.view {
            View::Tasks | View::Graph => {
                let Some(task) = self.chosen_task() else { return Vec::new() };
                let spans = self.model.as_ref().map_or(&[][..], |model| model.spans());
                match spans.iter().rposition(|span| span.task == task.as_str()) {
                    Some(place) => {
                        self.attempt = Some(place);
                        self.show(View::Attempt)
                    }
                    None => {
                        self.say(&format!("{task} was not tried yet"), false);
                        Vec::new()
                    }
                }
            }
            View::Timeline if !self.shows_words => {
                let count = self.count(View::Timeline);
                // The newest comes first.
                self.attempt = count.checked_sub(1 + self.list().at.min(count.saturating_sub(1)));
                self.show(View::Attempt)
            }
            View::Loops => self.attach(self.list().at),
            View::Timeline | View::Output | View::Attempt | View::Figures | View::Inbox => Vec::new(),
        }
    }

    pub(super) fn attach(&mut self, place: usize) -> Vec<Effect> {
        let Some(row) = self.loops.as_ref().and_then(|rows| rows.get(place)).cloned() else {
            return Vec::new();
        };
        let fresh = Self::new(Some(row.record.id), self.now);
        *self = Self { mouse: self.mouse, zone: self.zone.clone(), loops: self.loops.take(), ..fresh };
        vec![Effect::Attach(Box::new(row))]
    }

    fn back(&mut self) -> Vec<Effect> {
        if !self.query.is_empty() {
            self.search(String::new());
            return Vec::new();
        }
        match self.view {
            View::Tasks => {
                if let Some(model) = &mut self.model {
                    model.list_only(Default::default(), "");
                }
                Vec::new()
            }
            _ => self.show(View::Tasks),
        }
    }

    fn filter(&mut self) {
        let Some(model) = &mut self.model else { return };
        let filter = model.filter().next();
        model.list_only(filter, &self.query);
        let name = filter.name();
        self.say(&format!("showing {name}"), false);
    }

    /// The attempt before or after the chosen one.
    fn choose(&mut self, by: isize) -> Vec<Effect> {
        let Some(model) = &mut self.model else { return Vec::new() };
        let Some(newest) = model.spans().len().checked_sub(1) else { return Vec::new() };
        let place = self.attempt.unwrap_or(newest).saturating_add_signed(by).min(newest);
        self.attempt = (place < newest).then_some(place);
        (self.evidence.top, self.diff.top) = (0, 0);
        if self.view == View::Attempt {
            return self.load_shown();
        }
        match self.attempt {
            None => {
                model.earlier = None;
                Vec::new()
            }
            Some(place) => vec![Effect::LoadOutput(model.spans()[place].clone())],
        }
    }

    /// Has the chosen attempt read, if it is looked at.
    pub(super) fn load_shown(&mut self) -> Vec<Effect> {
        let Some(model) = self.model.as_ref().filter(|_| self.view == View::Attempt) else {
            return Vec::new();
        };
        let place = self.attempt.or_else(|| model.spans().len().checked_sub(1));
        place
            .and_then(|place| model.spans().get(place))
            .cloned()
            .map(Effect::LoadAttempt)
            .into_iter()
            .collect()
    }

    pub(super) fn search(&mut self, words: String) {
        self.query = words.trim().to_lowercase();
        if let Some(model) = &mut self.model {
            model.list_only(model.filter(), &self.query);
        }
        if !self.query.is_empty() && self.view != View::Tasks {
            self.find(true);
        }
    }

    /// Goes to the next place with what was searched.
    pub(super) fn find(&mut self, forward: bool) {
        let words = self.query.clone();
        if words.is_empty() {
            return;
        }
        let found = match self.view {
            View::Output => self.model.as_mut().is_some_and(|model| model.output_mut().find(&words, forward)),
            View::Attempt => self.find_line(&words, forward),
            view => {
                let count = self.count(view);
                let at = self.lists[view as usize].at.min(count.saturating_sub(1));
                let places =
                    (1..=count).map(|step| if forward { at + step } else { at + count - step } % count);
                let found = places.into_iter().find(|place| self.row_has(view, *place, &words));
                if let Some(place) = found {
                    self.lists[view as usize].at = place;
                }
                found.is_some()
            }
        };
        if !found {
            self.say(&format!("`{words}` is not here"), true);
        }
    }

    fn find_line(&mut self, words: &str, forward: bool) -> bool {
        let Some((_, pages)) = &self.pages else { return false };
        let (scroll, page) = match self.shows_diff {
            true => (&mut self.diff, &pages.diff),
            false => (&mut self.evidence, &pages.evidence),
        };
        let (count, top) = (page.len(), scroll.top);
        let mut places =
            (1..=count).map(|step| if forward { top + step } else { top + count - step } % count);
        let found = places.find(|place| page[*place].text.to_lowercase().contains(words));
        found.inspect(|place| scroll.top = *place).is_some()
    }

    fn row_has(&self, view: View, place: usize, words: &str) -> bool {
        let has = |text: &str| text.to_lowercase().contains(words);
        let Some(model) = &self.model else { return false };
        match view {
            View::Tasks => true,
            View::Graph => model
                .graph
                .get(place)
                .and_then(|node| model.head().task(&node.task))
                .is_some_and(|entry| is_about(entry, words)),
            View::Timeline if self.shows_words => {
                model.book.words.iter().rev().nth(place).is_some_and(|(_, text)| has(text))
            }
            View::Timeline => {
                let span = model.spans().iter().rev().nth(place);
                span.is_some_and(|span| has(&span.task) || has(&span.outcome) || has(&span.agent))
            }
            View::Figures => {
                model.cost.as_ref().and_then(|report| report.rows.get(place)).is_some_and(|row| has(&row.key))
            }
            View::Inbox => model
                .letters
                .get(place)
                .is_some_and(|letter| has(&letter.question.summary) || has(&letter.question.question)),
            View::Loops => self.loops.as_ref().and_then(|rows| rows.get(place)).is_some_and(|row| {
                has(&line(&row.health.name)) || has(&row.checkout.path().to_string_lossy())
            }),
            View::Output | View::Attempt => false,
        }
    }
}
