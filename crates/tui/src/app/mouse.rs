//! The mouse: what is clicked is chosen, what is clicked again is opened, the wheel moves what is below it.

use ratatui_core::layout::Position;
use ratatui_crossterm::crossterm::event::{MouseButton, MouseEvent, MouseEventKind};

use super::dialog::{Dialog, Outcome};
use super::{App, Effect, Hit, View};
use crate::keys::Command;

/// Rows for one notch of the wheel.
const NOTCH: usize = 3;

impl App {
    pub(super) fn mouse(&mut self, event: MouseEvent) -> Vec<Effect> {
        let place = Position::new(event.column, event.row);
        let hits = self.hits.iter().rev().filter(|(area, _)| area.contains(place));
        let hits: Vec<Hit> = hits.map(|(_, hit)| *hit).collect();
        match event.kind {
            MouseEventKind::ScrollUp => self.wheel(&hits, Command::Up),
            MouseEventKind::ScrollDown => self.wheel(&hits, Command::Down),
            MouseEventKind::Down(MouseButton::Left) => {
                self.said = None;
                return hits.first().map_or_else(Vec::new, |hit| self.click(*hit));
            }
            _ => {}
        }
        Vec::new()
    }

    fn wheel(&mut self, hits: &[Hit], command: Command) {
        if let Some(Dialog::Help(scroll)) = &mut self.dialog {
            let by = if command == Command::Up { -3 } else { 3 };
            scroll.step_text(by, crate::view::help::rows());
            return;
        }
        if self.dialog.is_some() {
            return;
        }
        let pane = hits.iter().find_map(|hit| match hit {
            Hit::Pane(view) => Some(*view),
            _ => None,
        });
        for _ in 0..NOTCH {
            self.step(pane.unwrap_or(self.view), command);
        }
    }

    fn click(&mut self, hit: Hit) -> Vec<Effect> {
        match (&mut self.dialog, hit) {
            (Some(Dialog::Answer(answer)), Hit::Choice(choice)) => {
                let again = answer.choice == choice && answer.words.text.is_empty();
                answer.choice = choice;
                let outcome = if again { Outcome::Do(answer.act()) } else { Outcome::Stay };
                return self.settle(outcome);
            }
            (Some(Dialog::Form(form)), Hit::Field(field)) => form.at = field,
            (Some(_), _) => {}
            (None, Hit::Tab(view)) => return self.show(view),
            (None, Hit::Question) => return self.ask(Command::Answer),
            (None, Hit::Row(view, row)) => return self.click_row(view, row),
            (None, Hit::Output(at)) => {
                let width = self.output_width;
                if let Some(model) = &mut self.model {
                    let output = model.output_mut();
                    match output.cursor == at && self.view == View::Output {
                        true => output.fold(),
                        false => output.put_cursor(at, width),
                    }
                }
            }
            (None, Hit::Pane(_) | Hit::Choice(_) | Hit::Field(_)) => {}
        }
        Vec::new()
    }

    fn click_row(&mut self, view: View, row: usize) -> Vec<Effect> {
        let list = &mut self.lists[view as usize];
        let again = list.at == row && self.view == view;
        list.at = row;
        match (again, view) {
            (true, View::Inbox) => self.ask(Command::Answer),
            (true, _) => self.walk(Command::Open),
            (false, _) => Vec::new(),
        }
    }
}
