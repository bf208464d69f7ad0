//! What a task says of itself, changed in place: its title, its description, its priority, what it
//! depends on.
//!
//! Every dialect writes what is new where the old stood and leaves the rest as it was. The new text is
//! read before it replaces the old one: if it does not say exactly what was asked, or says anything else
//! than before of any task, nothing is changed.

use std::collections::HashSet;

use wiggum_core::ids::TaskId;
use wiggum_core::task::{Task, Work};

use super::EditError;
use super::lines::one_line;
use crate::fields::RANKS;
use crate::formats::Family;
use crate::{Backlog, Dialect};

mod members;
mod nested;

/// What is to be different about a task. What is `None` stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskChange {
    pub title: Option<String>,
    pub description: Option<String>,
    pub priority: Option<i64>,
    /// All it is to depend on. The sub-tasks of a box in Markdown come with it, named or not.
    pub depends_on: Option<Vec<String>>,
}

impl TaskChange {
    /// Is nothing to be changed?
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Does a task whose id is made from its title get that id written beside it?
#[derive(Clone, Copy, PartialEq, Eq)]
enum Id {
    AsItIs,
    SpelledOut,
}

impl Backlog {
    /// Changes what a task says of itself. A task that was called by its title gets its id spelled out
    /// where a new title would give it another: what is known of it goes by that id.
    pub fn change(&mut self, id: &str, change: &TaskChange) -> Result<(), EditError> {
        let position = self.position(id)?;
        let change = self.tidy(position, change)?;
        if change.is_empty() {
            return Ok(());
        }
        let wanted = Wanted::new(&self.tasks[position], &change, self.parts_of(position));
        let ids = self.ids();
        let mut outcome = Err(self.scattered(position, &change));
        for text in self.changed(position, &change) {
            match self.read_edited(text, &ids) {
                Ok(next) if self.differs_only_in(&next, &wanted) => {
                    outcome = Ok(next);
                    break;
                }
                Ok(_) | Err(EditError::WouldRename { .. }) => {}
                Err(error) => outcome = Err(error),
            }
        }
        *self = outcome?;
        Ok(())
    }

    /// The task as a change would make it, for whoever has to judge that first.
    pub fn as_changed(&self, id: &str, change: &TaskChange) -> Result<Task, EditError> {
        let position = self.position(id)?;
        let change = self.tidy(position, change)?;
        Ok(Wanted::new(&self.tasks[position], &change, self.parts_of(position)).task)
    }

    /// The texts that may say it, in order of preference.
    fn changed(&self, position: usize, change: &TaskChange) -> Vec<String> {
        match self.dialect.family() {
            // An id made from the title is written beside a new one.
            Family::Objects | Family::Lines => [Id::AsItIs, Id::SpelledOut]
                .map(|id| members::changed(self, position, change, id))
                .into_iter()
                .collect(),
            Family::Boxes | Family::Steps => nested::changed(self, position, change),
            Family::Marked => Vec::new(),
        }
    }

    /// The change without what the file says already; refused where it cannot be.
    fn tidy(&self, position: usize, change: &TaskChange) -> Result<TaskChange, EditError> {
        let task = &self.tasks[position];
        let title = change.title.as_deref().map(one_line);
        if title.as_deref() == Some("") {
            return Err(EditError::EmptyTitle { id: task.id.to_string() });
        }
        let is_said = |priority: &i64| match self.dialect.is_ordered_by_priority() {
            // None at all comes last there, which no number says.
            true => self.places[position].rank == priority.checked_mul(RANKS),
            false => task.priority == *priority,
        };
        let priority = change.priority.filter(|priority| !is_said(priority));
        if priority.is_some() && !self.dialect.has_priority() {
            return Err(self.cannot_say(position, "priority"));
        }
        Ok(TaskChange {
            title: title.filter(|title| *title != task.title),
            description: change.description.clone().filter(|text| *text != task.description),
            priority,
            depends_on: self.new_dependencies(position, change.depends_on.as_deref()),
        })
    }

    /// What it is to depend on, each once, if that is anything new.
    fn new_dependencies(&self, position: usize, wanted: Option<&[String]>) -> Option<Vec<String>> {
        let task = &self.tasks[position];
        let parts = self.parts_of(position);
        let named = |id: &&str| !parts.contains(*id);
        let before: Vec<&str> = task.depends_on.iter().map(|id| id.as_str()).filter(named).collect();
        let mut seen = HashSet::new();
        let after: Vec<&str> =
            wanted?.iter().map(String::as_str).filter(|id| seen.insert(*id)).filter(named).collect();
        (before != after).then(|| after.into_iter().map(str::to_owned).collect())
    }

    /// The tasks that are part of this one by where they stand.
    fn parts_of(&self, position: usize) -> HashSet<String> {
        let id = &self.tasks[position].id;
        let is_part = |task: &&Task| self.dialect.nests() && task.parent.as_ref() == Some(id);
        self.tasks.iter().filter(is_part).map(|task| task.id.to_string()).collect()
    }

    /// Does the edited file say what is wanted of one task, and of every other what it said before?
    fn differs_only_in(&self, next: &Self, wanted: &Wanted) -> bool {
        let as_before = |task: &Task| match task.id == wanted.task.id {
            true => next.task(task.id.as_str()).is_some_and(|read| wanted.is(read, self.dialect)),
            false => next.task(task.id.as_str()) == Some(task),
        };
        self.tasks.iter().all(as_before)
    }

    fn cannot_say(&self, position: usize, what: &'static str) -> EditError {
        EditError::NotExpressible {
            id: self.tasks[position].id.to_string(),
            what,
            dialect: self.dialect.name(),
        }
    }

    fn scattered(&self, position: usize, change: &TaskChange) -> EditError {
        let fields = [
            ("title", change.title.is_some()),
            ("description", change.description.is_some()),
            ("priority", change.priority.is_some()),
            ("dependencies", change.depends_on.is_some()),
        ];
        let what: Vec<&str> = fields.iter().filter(|(_, given)| *given).map(|(name, _)| *name).collect();
        EditError::NotInPlace {
            id: self.tasks[position].id.to_string(),
            what: what.join(" and "),
            file: self.file.clone(),
        }
    }
}

/// The task as it is to be.
struct Wanted {
    task: Task,
    /// Where a file gives no title, the first line of the description stands for it, old or new.
    stand_in: Option<String>,
}

impl Wanted {
    fn new(old: &Task, change: &TaskChange, parts: HashSet<String>) -> Self {
        let mut task = old.clone();
        if let Some(title) = &change.title {
            // A notice without words of its own says its title.
            if task.work == (Work::Notice { message: old.title.clone() }) {
                task.work = Work::Notice { message: title.clone() };
            }
            task.title.clone_from(title);
        }
        if let Some(description) = &change.description {
            task.description.clone_from(description);
        }
        task.priority = change.priority.unwrap_or(old.priority);
        if let Some(depends_on) = &change.depends_on {
            task.depends_on = depends_on.iter().cloned().chain(parts).map(TaskId::new).collect();
        }
        let is_stood_for = change.title.is_none() && old.title == first_line(old);
        let stand_in = is_stood_for.then(|| first_line(&task).to_owned());
        Self { task, stand_in }
    }

    /// Is it this task that was read, as far as its dialect can tell?
    fn is(&self, read: &Task, dialect: Dialect) -> bool {
        let ids = |task: &Task| task.depends_on.iter().cloned().collect::<HashSet<TaskId>>();
        let is_title = read.title == self.task.title || Some(&read.title) == self.stand_in.as_ref();
        let rest = Task {
            title: self.task.title.clone(),
            description: self.task.description.clone(),
            depends_on: self.task.depends_on.clone(),
            ..read.clone()
        };
        let is_said = words(read, dialect) == words(&self.task, dialect);
        is_title && is_said && ids(read) == ids(&self.task) && rest == self.task
    }
}

/// The first line of the description, or the id where there is none.
fn first_line(task: &Task) -> &str {
    let mut lines = task.description.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.next().unwrap_or(task.id.as_str())
}

/// What a description says in its dialect: blank lines separate in Markdown, and say nothing.
fn words(task: &Task, dialect: Dialect) -> Vec<&str> {
    match dialect.family() {
        Family::Boxes | Family::Steps | Family::Marked => {
            let lines = task.description.trim().lines().map(str::trim_end);
            lines.filter(|line| !line.is_empty()).collect()
        }
        Family::Objects | Family::Lines => {
            vec![task.description.as_str()]
        }
    }
}
