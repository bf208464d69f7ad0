//! Asking the person at this terminal: what they type, whenever they type it, becomes an answer.

use std::collections::BTreeMap;
use std::io::BufRead;
use std::sync::{Arc, Mutex, PoisonError};

use wiggum_core::event::{Answer, Request};
use wiggum_core::ids::QuestionId;
use wiggum_core::state::OpenQuestion;
use wiggum_engine::words::one_line;
use wiggum_engine::{Input, Remote};

use crate::term;

/// The keys under every question.
pub(crate) const KEYS: &str = "[number] of an option  [c]ustom  [s]kip  [r]etry  [d]one  [a]bort";

/// The questions that the person at this terminal can answer, shared between who shows them and who reads
/// the keyboard.
///
/// A line that is typed answers the question shown last; `q2 skip` answers another one, and `q2` alone shows
/// it. An empty line shows the question again.
#[derive(Clone, Default)]
pub(crate) struct Terminal {
    asked: Arc<Mutex<Asked>>,
}

#[derive(Default)]
struct Asked {
    open: BTreeMap<QuestionId, Open>,
    /// Whom a typed line answers.
    current: Option<QuestionId>,
    /// The next line is the person's own words.
    custom: bool,
    /// Its answer is on its way.
    answered: bool,
    /// Somebody pressed Enter since the prompt was written.
    entered: bool,
}

struct Open {
    /// All of it, as it is shown.
    text: String,
    /// What it is about, in a line.
    brief: String,
    options: usize,
}

/// What a typed line amounts to.
#[derive(Debug, PartialEq, Eq)]
enum Typed {
    Answer(Answer),
    AskForWords,
    NotUnderstood,
}

/// What follows from a typed line.
#[derive(Debug, PartialEq, Eq)]
enum Reply {
    Send(Request),
    Say(String),
}

impl Terminal {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Takes note of which questions are open. If the one on the screen is not among them any more, or there
    /// was none, the next one is returned: it is to be shown.
    pub(crate) fn follow(
        &self,
        questions: &BTreeMap<QuestionId, OpenQuestion>,
        words: impl Fn(QuestionId, &OpenQuestion) -> (String, String),
    ) -> Option<QuestionId> {
        let mut asked = self.lock();
        asked.open.retain(|id, _| questions.contains_key(id));
        for (id, question) in questions {
            asked.open.entry(*id).or_insert_with(|| {
                let (brief, text) = words(*id, question);
                Open { text, brief, options: question.question.options.len() }
            });
        }
        // If it was refused, the question is still there to be answered.
        asked.answered = false;
        if asked.current.is_some_and(|id| asked.open.contains_key(&id)) {
            return None;
        }
        asked.turn_to(None);
        asked.open.keys().next().copied()
    }

    /// From now on a typed line answers this question. Returns all that is to be shown of it.
    pub(crate) fn show(&self, id: QuestionId) -> String {
        let mut asked = self.lock();
        asked.turn_to(Some(id));
        asked.entered = false;
        asked.open.get(&id).map(|open| open.text.clone()).unwrap_or_default()
    }

    /// The question that a typed line answers.
    pub(crate) fn current(&self) -> Option<QuestionId> {
        self.lock().current
    }

    /// The same in a line.
    pub(crate) fn brief(&self) -> Option<(QuestionId, String)> {
        let asked = self.lock();
        let id = asked.current?;
        let more = match asked.open.len() {
            0 | 1 => String::new(),
            all => format!(" (and {} more)", all - 1),
        };
        Some((id, format!("{}{more}", asked.open.get(&id)?.brief)))
    }

    /// A prompt was written: the cursor stands behind it.
    pub(crate) fn prompted(&self) {
        self.lock().entered = false;
    }

    /// Has somebody pressed Enter since the prompt was written? Then the cursor is on a new line.
    pub(crate) fn was_entered(&self) -> bool {
        self.lock().entered
    }

    /// Nobody waits for answers any more.
    pub(crate) fn close(&self) {
        *self.lock() = Asked::default();
    }

    /// Reads the keyboard for as long as the program runs.
    pub(crate) fn listen(self, remote: Remote) {
        std::thread::spawn(move || {
            for line in std::io::stdin().lock().lines() {
                let Ok(line) = line else { return };
                if let Some(request) = self.hear(&line) {
                    remote.send(Input::Person(request));
                }
            }
        });
    }

    fn hear(&self, line: &str) -> Option<Request> {
        // Held while it prints: whoever writes next must find the cursor where it is.
        let mut asked = self.lock();
        asked.entered = true;
        match asked.take(line) {
            Reply::Send(request) => Some(request),
            Reply::Say(text) => {
                asked.entered = text.ends_with('\n');
                term::print_to_reader(&text);
                None
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Asked> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Asked {
    fn turn_to(&mut self, id: Option<QuestionId>) {
        if self.current != id {
            self.custom = false;
            self.answered = false;
        }
        self.current = id;
    }

    fn take(&mut self, line: &str) -> Reply {
        let (named, rest) = if self.custom { (None, line) } else { split_id(line, &self.open) };
        if let Some(id) = named {
            self.turn_to(Some(id));
        }
        let Some((id, open)) = self.current.and_then(|id| Some((id, self.open.get(&id)?))) else {
            return Reply::Say("  no question is open\n".to_owned());
        };
        if self.answered {
            return Reply::Say(format!("  {id} is answered already\n"));
        }
        if matches!(rest.trim(), "" | "?") && !self.custom {
            return Reply::Say(format!("{}\n{}", open.text, prompt(id)));
        }
        match understand(rest, open.options, self.custom) {
            Typed::Answer(answer) => {
                self.answered = true;
                self.custom = false;
                Reply::Send(Request::Answer { question: id, answer })
            }
            Typed::AskForWords => {
                self.custom = true;
                Reply::Say(format!("  {id}, your words: "))
            }
            Typed::NotUnderstood if self.custom => Reply::Say(format!("  {id}, your words: ")),
            Typed::NotUnderstood => {
                let typed = one_line(rest.trim());
                Reply::Say(format!("  `{typed}` is no answer to {id}\n{}", prompt(id)))
            }
        }
    }
}

/// What stands before the cursor while a question waits.
pub(crate) fn prompt(id: QuestionId) -> String {
    format!("  {id}  {KEYS}: ")
}

/// A line may begin with the question that it answers.
fn split_id<'a>(line: &'a str, open: &BTreeMap<QuestionId, Open>) -> (Option<QuestionId>, &'a str) {
    let line = line.trim();
    let (first, rest) = line.split_once(' ').unwrap_or((line, ""));
    let name = first.trim_end_matches(':').to_ascii_lowercase();
    // A number alone is an option.
    match name.parse::<QuestionId>() {
        Ok(id) if name.starts_with('q') && open.contains_key(&id) => (Some(id), rest),
        Ok(_) | Err(_) => (None, line),
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

    fn open() -> Asked {
        let question = |text: &str, options| Open { text: text.to_owned(), brief: String::new(), options };
        let open = [(QuestionId(1), question("first", 2)), (QuestionId(2), question("second", 0))];
        Asked { open: open.into(), current: Some(QuestionId(2)), ..Asked::default() }
    }

    fn answer(id: u32, answer: Answer) -> Reply {
        Reply::Send(Request::Answer { question: QuestionId(id), answer })
    }

    #[test]
    fn a_line_answers_the_question_on_the_screen_or_the_one_it_names() {
        let check = |line: &str, expected: Reply| assert_eq!(open().take(line), expected, "{line:?}");
        check("skip", answer(2, Answer::Skip));
        check("q1 2", answer(1, Answer::Option { number: 2 }));
        check("Q1: retry", answer(1, Answer::Retry));
        // That is no question, so it is an answer in own words.
        check("q9 is the one", answer(2, Answer::Words { text: "q9 is the one".to_owned() }));
        check("q1", Reply::Say(format!("first\n{}", prompt(QuestionId(1)))));
        check("", Reply::Say(format!("second\n{}", prompt(QuestionId(2)))));
        check("1", Reply::Say(format!("  `1` is no answer to q2\n{}", prompt(QuestionId(2)))));
    }

    #[test]
    fn an_answer_is_given_once_and_own_words_stay_with_their_question() {
        let mut asked = open();
        assert_eq!(asked.take("q1 c"), Reply::Say("  q1, your words: ".to_owned()));
        assert_eq!(asked.take("2"), answer(1, Answer::Words { text: "2".to_owned() }));
        assert!(matches!(asked.take("2"), Reply::Say(text) if text.contains("answered already")));
    }

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
