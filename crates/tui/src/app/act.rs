//! What can be done to a loop and its tasks, and when that has to be confirmed.

use wiggum_core::tasks::TaskState;
use wiggum_engine::desk::backlog::{NewTask, TaskChange};
use wiggum_engine::desk::inbox::Letter;

use super::dialog::{AnswerBox, Dialog};
use super::editor::Editor;
use super::form::Form;
use super::{App, Effect, View};
use crate::keys::Command;

/// Something that is left at the desk.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    Pause,
    Resume,
    Stop,
    Handoff,
    Nudge(String),
    Skip(String),
    Retry(String),
    Answer { loop_id: String, question: String, text: String },
    Add(Box<NewTask>),
    Change { task: String, change: Box<TaskChange> },
}

impl Act {
    /// What to ask before it is done, where it cannot simply be undone.
    pub(crate) fn hurts(&self) -> Option<String> {
        match self {
            Self::Stop => Some(
                "End the run? Its agent is stopped. What it did so far is kept, and `wiggum run` goes on."
                    .to_owned(),
            ),
            Self::Handoff => Some("Have the agent wrap up, so that a fresh one goes on?".to_owned()),
            Self::Skip(task) => Some(format!(
                "Leave {task} out? What waits on it waits on; an agent at work on it is stopped."
            )),
            Self::Answer { question, text, .. } if text.eq_ignore_ascii_case("abort") => {
                Some(format!("Answer {question} with abort? The run ends."))
            }
            Self::Pause
            | Self::Resume
            | Self::Nudge(_)
            | Self::Retry(_)
            | Self::Answer { .. }
            | Self::Add(_)
            | Self::Change { .. } => None,
        }
    }

    /// While it is on its way.
    pub(crate) fn doing(&self) -> &'static str {
        match self {
            Self::Pause => "pausing …",
            Self::Resume => "going on …",
            Self::Stop => "stopping …",
            Self::Handoff => "handing over …",
            Self::Nudge(_) => "telling the agent …",
            Self::Skip(_) => "skipping …",
            Self::Retry(_) => "opening it again …",
            Self::Answer { .. } => "answering …",
            Self::Add(_) | Self::Change { .. } => "writing the backlog …",
        }
    }
}

impl App {
    /// Asks for whatever is missing before something is done.
    pub(super) fn ask(&mut self, command: Command) -> Vec<Effect> {
        let Some(model) = &self.model else {
            self.say("no loop is looked at", true);
            return Vec::new();
        };
        let needs_engine = matches!(command, Command::Pause | Command::Stop | Command::Handoff);
        if needs_engine && !model.is_alive() {
            self.say("the loop does not run: `wiggum run` goes on", true);
            return Vec::new();
        }
        let act = match command {
            Command::Pause if model.head().paused => Act::Resume,
            Command::Pause => Act::Pause,
            Command::Stop => Act::Stop,
            Command::Handoff => Act::Handoff,
            Command::Nudge if model.is_working() => {
                self.dialog = Some(Dialog::Nudge(Editor::default()));
                return Vec::new();
            }
            Command::Nudge => {
                self.say("no agent is at work", true);
                return Vec::new();
            }
            Command::Answer => return self.open_answer(),
            Command::Add => {
                self.dialog = Some(Dialog::Form(Box::new(Form::new())));
                return Vec::new();
            }
            Command::Skip | Command::Retry | Command::Edit => return self.about_task(command),
            _ => return Vec::new(),
        };
        self.propose(act)
    }

    fn propose(&mut self, act: Act) -> Vec<Effect> {
        match act.hurts() {
            Some(question) => {
                self.dialog = Some(Dialog::Confirm { question, act });
                Vec::new()
            }
            None => self.act(act),
        }
    }

    fn about_task(&mut self, command: Command) -> Vec<Effect> {
        let entry = self.model.as_ref().zip(self.chosen_task());
        let Some(entry) = entry.and_then(|(model, id)| model.head().task(&id)) else {
            self.say("no task is chosen", true);
            return Vec::new();
        };
        let id = entry.spec.id.to_string();
        match command {
            Command::Skip => self.propose(Act::Skip(id)),
            Command::Retry => self.propose(Act::Retry(id)),
            _ if entry.state == TaskState::Running => {
                self.say(&format!("an agent is at work on {id}: nudge it instead"), true);
                Vec::new()
            }
            _ => {
                let form = Form::of(&entry.spec);
                self.dialog = Some(Dialog::Form(Box::new(form)));
                Vec::new()
            }
        }
    }

    fn open_answer(&mut self) -> Vec<Effect> {
        match self.letter().cloned() {
            Some(letter) => self.dialog = Some(Dialog::Answer(Box::new(AnswerBox::new(letter)))),
            None => self.say("no question waits for an answer", false),
        }
        Vec::new()
    }

    /// The question that is chosen in the inbox, else the first that waits, of this loop if it has one.
    pub(crate) fn letter(&self) -> Option<&Letter> {
        let model = self.model.as_ref()?;
        if self.view == View::Inbox {
            return model.letters.get(self.list().at.min(model.letters.len().saturating_sub(1)));
        }
        let mut waiting = model.letters.iter().filter(|letter| letter.answered.is_none());
        let own = waiting.clone().find(|letter| letter.loop_id == model.id().to_string());
        own.or_else(|| waiting.next())
    }
}
