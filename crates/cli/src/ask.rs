//! Asking the person at this terminal: what they type becomes an answer to the question shown.

use std::io::BufRead;
use std::sync::{Arc, Mutex, PoisonError};

use wiggum_core::event::{Answer, Question, Request};
use wiggum_core::ids::QuestionId;
use wiggum_engine::{Input, Remote};

use crate::term;

/// The keys under every question.
pub(crate) const KEYS: &str = "[1-9] option  [c]ustom  [s]kip  [r]etry  [d]one  [a]bort";

/// The question on the screen, shared between who shows it and who reads the keyboard.
#[derive(Clone, Default)]
pub(crate) struct Terminal {
    shown: Arc<Mutex<Option<Shown>>>,
}

struct Shown {
    id: QuestionId,
    options: usize,
    /// The next line is the person's own words.
    custom: bool,
}

/// What a typed line amounts to.
#[derive(Debug, PartialEq, Eq)]
enum Typed {
    Answer(Answer),
    AskForWords,
    NotUnderstood,
}

impl Terminal {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn show(&self, id: QuestionId, question: &Question) {
        *self.lock() = Some(Shown { id, options: question.options.len(), custom: false });
    }

    pub(crate) fn clear(&self, id: QuestionId) {
        let mut shown = self.lock();
        if shown.as_ref().is_some_and(|shown| shown.id == id) {
            *shown = None;
        }
    }

    /// Reads the keyboard for as long as the program runs.
    pub(crate) fn listen(self, remote: Remote) {
        std::thread::spawn(move || {
            for line in std::io::stdin().lock().lines() {
                let Ok(line) = line else { return };
                if let Some(request) = self.take(&line) {
                    remote.send(Input::Person(request));
                }
            }
        });
    }

    fn take(&self, line: &str) -> Option<Request> {
        let mut guard = self.lock();
        let shown = guard.as_mut()?;
        match understand(line, shown.options, shown.custom) {
            Typed::Answer(answer) => {
                let question = shown.id;
                *guard = None;
                Some(Request::Answer { question, answer })
            }
            Typed::AskForWords => {
                shown.custom = true;
                term::note("Your words: ");
                None
            }
            Typed::NotUnderstood => {
                term::note(&format!("{KEYS}: "));
                None
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Shown>> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn understand(line: &str, options: usize, custom: bool) -> Typed {
    let line = line.trim();
    if line.is_empty() {
        return Typed::NotUnderstood;
    }
    if custom {
        return Typed::Answer(Answer::Words { text: line.to_owned() });
    }
    match line.to_ascii_lowercase().as_str() {
        "c" | "custom" => Typed::AskForWords,
        "s" | "skip" => Typed::Answer(Answer::Skip),
        "r" | "retry" => Typed::Answer(Answer::Retry),
        "a" | "abort" => Typed::Answer(Answer::Abort),
        "d" | "done" => Typed::Answer(Answer::Done),
        _ => match line.parse::<u32>() {
            Ok(number) if usize::try_from(number).is_ok_and(|n| (1..=options).contains(&n)) => {
                Typed::Answer(Answer::Option { number })
            }
            Ok(_) => Typed::NotUnderstood,
            // More than a word is surely meant as one's own words; a single letter is a slip.
            Err(_) if line.contains(' ') => {
                let text = line.strip_prefix("c ").unwrap_or(line).to_owned();
                Typed::Answer(Answer::Words { text })
            }
            Err(_) => Typed::NotUnderstood,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typed_lines_are_answers_only_when_they_fit() {
        let check = |line: &str, custom: bool, expected: Typed| {
            assert_eq!(understand(line, 2, custom), expected, "{line:?}");
        };
        check("2", false, Typed::Answer(Answer::Option { number: 2 }));
        check("3", false, Typed::NotUnderstood);
        check("0", false, Typed::NotUnderstood);
        check("s", false, Typed::Answer(Answer::Skip));
        check("RETRY", false, Typed::Answer(Answer::Retry));
        check("a", false, Typed::Answer(Answer::Abort));
        check("c", false, Typed::AskForWords);
        check("use v2", false, Typed::Answer(Answer::Words { text: "use v2".to_owned() }));
        check("c use v2", false, Typed::Answer(Answer::Words { text: "use v2".to_owned() }));
        check("x", false, Typed::NotUnderstood);
        check("", true, Typed::NotUnderstood);
        check("1", true, Typed::Answer(Answer::Words { text: "1".to_owned() }));
    }
}
