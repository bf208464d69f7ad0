//! Asking the person at this terminal: what they type, whenever they type it, becomes an answer.

use std::collections::{BTreeMap, BTreeSet};
use std::io::BufRead;
use std::sync::{Arc, Mutex, PoisonError};

use wiggum_core::event::{Answer, Request};
use wiggum_core::ids::QuestionId;
use wiggum_core::state::{Loop, OpenQuestion};
use wiggum_engine::words::one_line;
use wiggum_engine::{Input, Remote};

use crate::term;

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
    /// Those that were open before.
    closed: BTreeSet<QuestionId>,
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
    /// Somebody reads words that are said to it.
    takes_words: bool,
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
        state: &Loop,
        words: impl Fn(QuestionId, &OpenQuestion) -> (String, String),
    ) -> Option<QuestionId> {
        let mut asked = self.lock();
        let (open, closed): (BTreeMap<_, _>, BTreeMap<_, _>) =
            std::mem::take(&mut asked.open).into_iter().partition(|(id, _)| state.questions.contains_key(id));
        asked.open = open;
        asked.closed.extend(closed.into_keys());
        for (id, question) in &state.questions {
            asked.open.entry(*id).or_insert_with(|| {
                let (brief, text) = words(*id, question);
                let options = question.question.options.len();
                Open { text, brief, options, takes_words: state.takes_words(question) }
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

    /// What stands before the cursor while this question waits.
    pub(crate) fn prompt(&self, id: QuestionId) -> String {
        self.lock().open.get(&id).map(|open| open.prompt(id)).unwrap_or_default()
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
        let (named, rest) = if self.custom { (None, line) } else { split_id(line) };
        match named {
            Some(id) if self.open.contains_key(&id) => self.turn_to(Some(id)),
            Some(id) => return Reply::Say(self.refuse(id)),
            None => {}
        }
        let Some((id, open)) = self.current.and_then(|id| Some((id, self.open.get(&id)?))) else {
            return Reply::Say("  no question is open\n".to_owned());
        };
        if self.answered {
            return Reply::Say(format!("  {id} is answered already\n"));
        }
        if matches!(rest.trim(), "" | "?") && !self.custom {
            return Reply::Say(format!("{}\n{}", open.text, open.prompt(id)));
        }
        match understand(rest, open, self.custom) {
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
                Reply::Say(format!("  `{typed}` is no answer to {id}\n{}", open.prompt(id)))
            }
        }
    }

    /// What is said to a question that is not open is no answer to another one.
    fn refuse(&self, id: QuestionId) -> String {
        let why = match self.closed.contains(&id) {
            true => format!("{id} is answered already"),
            false => format!("there is no question {id}"),
        };
        let current = self.current.and_then(|id| Some(self.open.get(&id)?.prompt(id)));
        format!("  {why}; nothing was answered\n{}", current.unwrap_or_default())
    }
}

impl Open {
    /// The question with the keys that answer it.
    fn prompt(&self, id: QuestionId) -> String {
        let option = match self.options {
            0 => String::new(),
            1 => "[1] option  ".to_owned(),
            count => format!("[1-{count}] option  "),
        };
        let custom = if self.takes_words { "[c]ustom  " } else { "" };
        format!("  {id}  {option}{custom}[s]kip  [r]etry  [d]one  [a]bort: ")
    }
}

/// A line may begin with the question that it answers.
fn split_id(line: &str) -> (Option<QuestionId>, &str) {
    let line = line.trim();
    let (first, rest) = line.split_once(' ').unwrap_or((line, ""));
    let name = first.trim_end_matches(':').to_ascii_lowercase();
    // A number alone is an option.
    match name.parse::<QuestionId>() {
        Ok(id) if name.starts_with('q') => (Some(id), rest),
        Ok(_) | Err(_) => (None, line),
    }
}

fn understand(line: &str, open: &Open, custom: bool) -> Typed {
    let line = line.trim();
    if line.is_empty() {
        return Typed::NotUnderstood;
    }
    if custom {
        return Typed::Answer(Answer::Words { text: line.to_owned() });
    }
    match line.to_ascii_lowercase().as_str() {
        "c" | "custom" if open.takes_words => Typed::AskForWords,
        "s" | "skip" => Typed::Answer(Answer::Skip),
        "r" | "retry" => Typed::Answer(Answer::Retry),
        "a" | "abort" => Typed::Answer(Answer::Abort),
        "d" | "done" => Typed::Answer(Answer::Done),
        _ => match line.parse::<u32>() {
            Ok(number) if usize::try_from(number).is_ok_and(|n| (1..=open.options).contains(&n)) => {
                Typed::Answer(Answer::Option { number })
            }
            Ok(_) => Typed::NotUnderstood,
            // More than a word is surely meant as one's own words; a single letter is a slip.
            Err(_) if line.contains(' ') && open.takes_words => {
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
        let open = [(QuestionId(1), question("first", 2)), (QuestionId(2), question("second", 0))];
        let closed = [QuestionId(3)].into();
        Asked { open: open.into(), closed, current: Some(QuestionId(2)), ..Asked::default() }
    }

    fn question(text: &str, options: usize) -> Open {
        Open { text: text.to_owned(), brief: String::new(), options, takes_words: true }
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
        check("c q9 is the one", answer(2, Answer::Words { text: "q9 is the one".to_owned() }));
        let second = "  q2  [c]ustom  [s]kip  [r]etry  [d]one  [a]bort: ";
        let first = "first\n  q1  [1-2] option  [c]ustom  [s]kip  [r]etry  [d]one  [a]bort: ";
        check("q1", Reply::Say(first.to_owned()));
        check("", Reply::Say(format!("second\n{second}")));
        check("1", Reply::Say(format!("  `1` is no answer to q2\n{second}")));
    }

    #[test]
    fn what_is_said_to_a_question_that_is_not_open_answers_no_other() {
        let check = |line: &str, why: &str| {
            let mut asked = open();
            let Reply::Say(text) = asked.take(line) else { panic!("{line:?} was sent") };
            assert!(text.contains(why) && text.contains("  q2  "), "{text}");
            assert_eq!(asked.take("skip"), answer(2, Answer::Skip));
        };
        check("q3 skip", "q3 is answered already; nothing was answered");
        check("q3 2", "q3 is answered already");
        check("q9 skip", "there is no question q9");
        check("q9 is the one", "there is no question q9");
    }

    #[test]
    fn a_choice_takes_no_words() {
        let mut asked = open();
        let choice = Open { takes_words: false, ..question("choose", 2) };
        asked.open.insert(QuestionId(2), choice);
        for line in ["c", "do as you like", "custom"] {
            let Reply::Say(text) = asked.take(line) else { panic!("{line:?} was sent") };
            assert!(text.ends_with("  q2  [1-2] option  [s]kip  [r]etry  [d]one  [a]bort: "), "{text}");
        }
        assert_eq!(asked.take("2"), answer(2, Answer::Option { number: 2 }));
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
            assert_eq!(understand(line, &question("", 2), custom), expected, "{line:?}");
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
