//! What stands in front of everything else: a question put to whoever sits there, or a form.

use ratatui_crossterm::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use wiggum_engine::desk::inbox::Letter;

use crate::app::editor::Editor;
use crate::app::form::Form;
use crate::app::{Act, Scroll};

#[derive(Debug)]
pub(crate) enum Dialog {
    Help(Scroll),
    Confirm { question: String, act: Act },
    Answer(Box<AnswerBox>),
    Nudge(Editor),
    Search(Editor),
    Form(Box<Form>),
}

/// An answer that is being given.
#[derive(Debug)]
pub(crate) struct AnswerBox {
    pub(crate) letter: Letter,
    pub(crate) words: Editor,
    /// The choice that is sent if nothing is typed.
    pub(crate) choice: usize,
}

/// What became of a key.
#[derive(Debug)]
pub(crate) enum Outcome {
    Stay,
    Close,
    Do(Act),
    Search(String),
}

impl Dialog {
    pub(crate) fn key(&mut self, event: &KeyEvent) -> Outcome {
        if event.code == KeyCode::Esc || (event.code == KeyCode::Char('c') && is_control(event)) {
            return Outcome::Close;
        }
        match self {
            Self::Help(_) => match event.code {
                KeyCode::Char('q' | '?') | KeyCode::Enter => Outcome::Close,
                _ => Outcome::Stay,
            },
            Self::Confirm { act, .. } => match event.code {
                KeyCode::Char('y' | 'Y') | KeyCode::Enter => Outcome::Do(act.clone()),
                KeyCode::Char('n' | 'N' | 'q') => Outcome::Close,
                _ => Outcome::Stay,
            },
            Self::Answer(answer) => answer.key(event),
            Self::Nudge(editor) => match event.code {
                KeyCode::Enter if !editor.text.trim().is_empty() && event.modifiers.is_empty() => {
                    Outcome::Do(Act::Nudge(editor.text.clone()))
                }
                _ => typed(editor, event),
            },
            Self::Search(editor) => match event.code {
                KeyCode::Enter => Outcome::Search(editor.text.clone()),
                _ => typed(editor, event),
            },
            Self::Form(form) => form.key(event),
        }
    }

    pub(crate) fn paste(&mut self, text: &str) {
        match self {
            Self::Answer(answer) => answer.words.type_text(text),
            Self::Nudge(editor) | Self::Search(editor) => editor.type_text(text),
            Self::Form(form) => form.editor_mut().type_text(text),
            Self::Help(_) | Self::Confirm { .. } => {}
        }
    }
}

impl AnswerBox {
    pub(crate) fn new(letter: Letter) -> Self {
        Self { letter, words: Editor::default(), choice: 0 }
    }

    /// What can be sent without typing: the word, and how it is shown.
    pub(crate) fn choices(&self) -> Vec<(String, String)> {
        let options = (1..).zip(&self.letter.question.options);
        let mut choices: Vec<(String, String)> =
            options.map(|(number, text)| (number.to_string(), crate::text::line(text))).collect();
        let about_task = self.letter.question.task.is_some();
        let others: [(&str, &str, bool); 4] = [
            ("skip", "leave the task out", about_task),
            ("retry", "try the task again", about_task),
            ("done", "it is done", !self.letter.question.takes_words),
            ("abort", "end the run", true),
        ];
        let others = others.into_iter().filter(|(_, _, fits)| *fits);
        choices.extend(others.map(|(word, text, _)| (word.to_owned(), text.to_owned())));
        choices
    }

    pub(crate) fn key(&mut self, event: &KeyEvent) -> Outcome {
        let last = self.choices().len() - 1;
        match event.code {
            KeyCode::Up | KeyCode::BackTab => self.choice = self.choice.saturating_sub(1),
            KeyCode::Down | KeyCode::Tab => self.choice = (self.choice + 1).min(last),
            KeyCode::Enter if event.modifiers.is_empty() => return Outcome::Do(self.act()),
            _ => return typed(&mut self.words, event),
        }
        Outcome::Stay
    }

    pub(crate) fn act(&self) -> Act {
        let words = self.words.text.trim();
        let choice = self.choices().into_iter().nth(self.choice).map(|(word, _)| word);
        let text = if words.is_empty() { choice.unwrap_or_default() } else { words.to_owned() };
        let (loop_id, question) = (self.letter.loop_id.clone(), self.letter.question.id.clone());
        Act::Answer { loop_id, question, text }
    }
}

pub(crate) fn typed(editor: &mut Editor, event: &KeyEvent) -> Outcome {
    editor.key(event);
    Outcome::Stay
}

fn is_control(event: &KeyEvent) -> bool {
    event.modifiers.contains(KeyModifiers::CONTROL)
}
