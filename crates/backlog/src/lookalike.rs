//! Members of a JSON task that look as if they said what it waits on, in a spelling nobody reads.
//!
//! They are never ignored: left out, tasks would be worked on in the wrong order.

use std::collections::HashMap;

use wiggum_core::ids::TaskId;
use wiggum_core::task::Task;

use crate::fields::{DEPENDS_ON, id_of};
use crate::json::{Kind, Value};
use crate::slug::slug;

/// Keys that mean a dependency whatever they hold, by their beginning.
const CERTAIN: [&str; 2] = ["depend", "blockedby"];
/// Keys that mean one where they name a task; elsewhere they hold words for people.
const LIKELY: [&str; 13] = [
    "prerequisites",
    "prerequisite",
    "prereqs",
    "prereq",
    "needs",
    "waitsfor",
    "waitson",
    "waitfor",
    "predecessors",
    "predecessor",
    "blockers",
    "follows",
    "runafter",
];
/// Keys that name the tasks which wait on this one.
const REVERSED: [&str; 4] = ["blocks", "blocking", "dependents", "dependants"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sense {
    Certain,
    Likely,
    Reversed,
}

/// A member that looks like a dependency.
#[derive(Clone, Debug)]
pub(crate) struct Lookalike {
    key: String,
    sense: Sense,
    /// What it names, be it tasks or not.
    names: Vec<String>,
}

impl Lookalike {
    /// Nothing where the key looks like none, or the value is empty.
    pub(crate) fn of(key: &str, value: Value<'_>) -> Option<Self> {
        let sense = sense_of(key)?;
        let names = names_in(value);
        (!names.is_empty()).then(|| Self { key: key.to_owned(), sense, names })
    }

    pub(crate) fn message(&self) -> String {
        format!("`{}` looks like a dependency and is not read; expected `depends_on`", self.key)
    }

    /// Does it say anything about the order of work that is not known without it?
    pub(crate) fn is_news(&self, task: &Task, tasks: &[Task], by_id: &HashMap<TaskId, usize>) -> bool {
        let waits_on = |task: &Task, name: &str| task.depends_on.iter().any(|id| id.as_str() == name);
        match self.sense {
            Sense::Certain => self.names.iter().any(|name| !waits_on(task, name)),
            Sense::Likely => {
                // Some files call tasks by their titles.
                let named = |name: &str| by_id.contains_key(name) || by_id.contains_key(slug(name).as_str());
                self.names.iter().any(|name| named(name) && !waits_on(task, name))
            }
            Sense::Reversed => self.names.iter().any(|name| {
                by_id.get(name.as_str()).is_some_and(|&other| !waits_on(&tasks[other], task.id.as_str()))
            }),
        }
    }
}

/// Does a label in Markdown, in any spelling that JSON has for it, say what a task waits on?
pub(crate) fn is_label(label: &str) -> bool {
    let same = |name: &str| letters(label).eq(letters(name));
    DEPENDS_ON.iter().any(|(_, name)| same(name))
        || matches!(sense_of(label), Some(Sense::Certain | Sense::Likely))
}

/// Without separators and capitals, letter by letter: most keys differ in the first.
fn letters(key: &str) -> impl Iterator<Item = u8> {
    key.bytes().filter(u8::is_ascii_alphabetic).map(|letter| letter.to_ascii_lowercase())
}

fn sense_of(key: &str) -> Option<Sense> {
    let is = |word: &&str| letters(key).eq(word.bytes());
    let begins = |word: &&str| letters(key).take(word.len()).eq(word.bytes());
    if REVERSED.iter().any(is) {
        Some(Sense::Reversed)
    } else if CERTAIN.iter().any(begins) {
        Some(Sense::Certain)
    } else if LIKELY.iter().any(is) {
        Some(Sense::Likely)
    } else {
        None
    }
}

fn names_in(value: Value<'_>) -> Vec<String> {
    let name = |value: Value<'_>| id_of(value).unwrap_or_else(|| value.raw().into()).trim().to_owned();
    let names: Vec<String> = match value.kind() {
        Kind::Array => value.items().map(name).collect(),
        Kind::String | Kind::EscapedString => {
            name(value).split(',').map(|part| part.trim().to_owned()).collect()
        }
        Kind::Object if value.members().next().is_none() => Vec::new(),
        Kind::Object | Kind::Number => vec![name(value)],
        Kind::True | Kind::False | Kind::Null => Vec::new(),
    };
    let says_something =
        |name: &String| !["", "none", "nothing", "-", "n/a"].contains(&name.to_lowercase().as_str());
    names.into_iter().filter(says_something).collect()
}
