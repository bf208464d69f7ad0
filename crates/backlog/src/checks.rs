//! Checks of a task under the names that people give them: `verify`, `checks`, `test_command` and the like.
//!
//! What can only be a command is run. Words are a criterion for whoever does the task. What may be either, or stands
//! in a shape that is not read, is told: left out in silence, a task would be done without its check.

use serde_json::{Map, Value};
use wiggum_core::task::Criterion;

use crate::formats::markdown::command::{Said, in_account, in_command_value, in_value, says_nothing};

/// What is meant by a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sense {
    /// A command: `verify_command`, `testCommand`.
    Command,
    /// A command, or words that say what to look at: `verify`, `check`, `checks`.
    Check,
    /// Mostly words, or how far somebody has come with it: `verification`.
    Account,
}

const COMMANDS: [&str; 12] = [
    "verifycommand",
    "verifycommands",
    "verifycmd",
    "verificationcommand",
    "verificationcommands",
    "testcommand",
    "testcommands",
    "testcmd",
    "checkcommand",
    "checkcommands",
    "checkcmd",
    "validationcommand",
];

impl Sense {
    /// Capitals and separators do not count.
    pub(crate) fn of(key: &str) -> Option<Self> {
        let letters =
            || key.bytes().filter(u8::is_ascii_alphabetic).map(|letter| letter.to_ascii_lowercase());
        let is = |word: &&str| letters().eq(word.bytes());
        if !key.starts_with(['v', 'V', 't', 'T', 'c', 'C']) {
            None
        } else if COMMANDS.iter().any(is) {
            Some(Self::Command)
        } else if ["verify", "check", "checks"].iter().any(is) {
            Some(Self::Check)
        } else {
            is(&"verification").then_some(Self::Account)
        }
    }
}

/// What a task says of its checks, beside its criteria.
#[derive(Default)]
pub(crate) struct Checks {
    pub(crate) criteria: Vec<Criterion>,
    /// Why the task is not run.
    pub(crate) unclear: Vec<String>,
    /// What is read as words.
    pub(crate) told: Vec<String>,
}

impl Checks {
    pub(crate) fn add(&mut self, key: &str, sense: Sense, value: &Value) {
        let read = Read::of(sense, value);
        self.criteria.extend(read.commands.into_iter().map(succeeds));
        if let Some(words) = some_of(&read.words) {
            self.told.push(format!("`{key}` says {words} in words, and nothing is run for it"));
        }
        self.criteria.extend(read.words.into_iter().map(in_words));
        if let Some(said) = some_of(&read.unclear) {
            let looks =
                if sense == Sense::Command { "looks like words" } else { "may be a command or words" };
            let message =
                format!("`{key}` says {said}, which {looks}; {BACKTICKS}, or the words among the criteria");
            match sense {
                Sense::Command | Sense::Check => self.unclear.push(message),
                Sense::Account => {
                    self.told.push(message);
                    self.criteria
                        .extend(read.unclear.into_iter().filter(|said| !is_state(said)).map(in_words));
                }
            }
        }
        if read.is_odd {
            let expected = "a command, a list of commands, or {\"command\": …}";
            let message = format!("`{key}` is in a shape that is not read as a check; expected {expected}");
            match sense {
                Sense::Command | Sense::Check => self.unclear.push(message),
                Sense::Account => self.told.push(message),
            }
        }
    }
}

const BACKTICKS: &str = "put a command in backticks";

/// The check of a criterion, which stands beside its text.
pub(crate) struct Beside {
    pub(crate) command: Option<String>,
    /// Words that belong to the text.
    pub(crate) words: Vec<String>,
    pub(crate) unclear: Option<String>,
}

impl Beside {
    pub(crate) fn of(key: &str, sense: Sense, value: &Value) -> Self {
        let mut read = Read::of(sense, value);
        if sense == Sense::Account {
            read.unclear.retain(|said| !is_state(said));
            read.words.append(&mut read.unclear);
            read.is_odd = false;
        }
        let unclear = match read.unclear.first() {
            Some(said) => Some(format!(
                "`{key}` of a criterion says `{}`, which may be a command or words; {BACKTICKS}, or the words in its text",
                short(said)
            )),
            None => read.is_odd.then(|| {
                format!(
                    "`{key}` of a criterion is in a shape that is not read as a check; expected a command"
                )
            }),
        };
        let command = (!read.commands.is_empty()).then(|| read.commands.join(" && "));
        Self { command, words: read.words, unclear }
    }
}

/// A criterion that is nothing but a command.
pub(crate) fn succeeds(command: String) -> Criterion {
    Criterion { text: format!("`{command}` succeeds"), check: Some(command) }
}

fn in_words(text: String) -> Criterion {
    Criterion { text, check: None }
}

/// The first of some texts, and how many there are beside it.
fn some_of(said: &[String]) -> Option<String> {
    let (first, others) = said.split_first()?;
    let more = if others.is_empty() { String::new() } else { format!(" (and {} more)", others.len()) };
    Some(format!("`{}`{more}", short(first)))
}

/// What a value says, taken apart.
#[derive(Default)]
struct Read {
    commands: Vec<String>,
    words: Vec<String>,
    unclear: Vec<String>,
    is_odd: bool,
}

impl Read {
    fn of(sense: Sense, value: &Value) -> Self {
        let mut read = Self::default();
        read.value(sense, value);
        read
    }

    fn value(&mut self, sense: Sense, value: &Value) {
        match value {
            Value::Null | Value::Bool(false) => {}
            Value::Bool(true) | Value::Number(_) => self.is_odd = true,
            Value::String(said) => self.text(sense, said),
            Value::Array(items) => items.iter().for_each(|item| self.value(sense, item)),
            Value::Object(members) => self.object(members),
        }
    }

    fn text(&mut self, sense: Sense, said: &str) {
        let said = said.trim();
        if says_nothing(said) || !said.contains(char::is_alphanumeric) {
            return;
        }
        let read = match sense {
            Sense::Command => in_command_value(said),
            Sense::Check => in_value(said),
            Sense::Account => in_account(said),
        };
        match (read, sense) {
            (Said::Commands(commands), _) => self.commands.extend(commands),
            (Said::Unclear, _) | (Said::Words, Sense::Command) => self.unclear.push(said.to_owned()),
            (Said::Words, Sense::Check | Sense::Account) => self.words.push(said.to_owned()),
        }
    }

    /// `{"command": "…"}` with a name beside it, or words alone. Other members may say where a command is run, or
    /// what it is to print.
    fn object(&mut self, members: &Map<String, Value>) {
        let runs = |key: &str| {
            let sense = RUN.contains(&key).then_some(Sense::Command);
            sense.or_else(|| Sense::of(key)).filter(|sense| *sense != Sense::Account)
        };
        let is_known = |key: &String| runs(key).is_some() || NAMES.contains(&key.as_str());
        let mut commands = members.iter().filter_map(|(key, value)| Some((runs(key)?, value)));
        let text = |key: &&str| members.get(*key).and_then(Value::as_str);
        match (commands.next(), commands.next()) {
            (Some((sense, Value::String(said))), None) if members.keys().all(is_known) => {
                self.text(sense, said)
            }
            (None, None) => match NAMES.iter().find_map(text) {
                Some(said) => self.words.push(said.trim().to_owned()),
                None => self.is_odd |= !members.is_empty(),
            },
            (Some(_), _) | (None, Some(_)) => self.is_odd = true,
        }
    }
}

/// Members that hold a command, beside those which do as keys of a task.
const RUN: [&str; 3] = ["command", "cmd", "run"];

/// Members beside a command that do not change what it does, texts first.
const NAMES: [&str; 11] = [
    "text",
    "description",
    "criterion",
    "title",
    "name",
    "label",
    "id",
    "type",
    "kind",
    "required",
    "status",
];

/// A single word says how far somebody has come with it: `verified`, `pending`.
fn is_state(said: &str) -> bool {
    said.split_whitespace().nth(1).is_none()
}

/// The beginning of a text, on one line.
fn short(said: &str) -> String {
    let line = said.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// Characters of a text that are shown: enough to find it in the file.
const LONGEST: usize = 80;
