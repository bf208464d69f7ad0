//! Changes to a backlog, as the smallest edits of its text.
//!
//! A change of status replaces the bytes of one value (or adds one member that was missing) and
//! moves the known positions along. Adding, moving and deleting read the new text again before it
//! replaces the old one, so an edit that would not say what was asked is refused instead. Whether a
//! task should be added or changed at all is judged by [`wiggum_core::admit()`] before.

use std::collections::HashSet;
use std::ops::Range;

use wiggum_core::admit::Refused;
use wiggum_core::ids::TaskId;
use wiggum_core::task::{Criterion, FileStatus, Task};

use self::lines::one_line;
use crate::formats::plan::header::{PlanValue, written};
use crate::formats::{Family, Order, Part, Status};
use crate::problem::Problems;
use crate::{Backlog, Dialect, Place};

mod change;
mod json;
mod lines;
mod plan;
mod put_back;

pub use change::TaskChange;

/// A task to be added to a backlog. What is left empty is not written.
#[derive(Clone, Debug, Default)]
pub struct NewTask {
    pub id: String,
    pub title: String,
    pub description: String,
    pub criteria: Vec<Criterion>,
    pub depends_on: Vec<String>,
    pub parent: Option<String>,
    pub role: Option<String>,
    pub phase: Option<u32>,
    pub priority: Option<i64>,
    pub complexity: Option<u32>,
    pub labels: Vec<String>,
}

impl NewTask {
    /// The title, or what stands for it.
    fn title(&self) -> String {
        let first_line =
            |text: &str| text.lines().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned);
        first_line(&self.title).or_else(|| first_line(&self.description)).unwrap_or_else(|| self.id.clone())
    }

    /// The task it is to become.
    pub fn task(&self) -> Task {
        let mut task = Task::new(self.id.as_str(), self.title());
        task.description.clone_from(&self.description);
        task.criteria.clone_from(&self.criteria);
        task.depends_on = self.depends_on.iter().map(|id| TaskId::from(id.as_str())).collect();
        task.parent = self.parent.as_deref().map(TaskId::from);
        task.role = self.role.clone().unwrap_or(task.role);
        task.phase = self.phase.unwrap_or(task.phase);
        task.priority = self.priority.unwrap_or(task.priority);
        task.complexity = self.complexity.unwrap_or(task.complexity);
        task.labels.clone_from(&self.labels);
        task
    }
}

/// What of a task can be written in any dialect; the rest is left to its defaults.
impl From<&Task> for NewTask {
    fn from(task: &Task) -> Self {
        let description = if task.description == task.title { "" } else { task.description.as_str() };
        Self {
            id: task.id.to_string(),
            title: task.title.clone(),
            description: description.to_owned(),
            criteria: task.criteria.clone(),
            depends_on: task.depends_on.iter().map(ToString::to_string).collect(),
            parent: task.parent.as_ref().map(ToString::to_string),
            ..Self::default()
        }
    }
}

/// Where a task is moved to, in the order in which tasks are taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Position {
    First,
    Last,
    Before(String),
    After(String),
}

#[derive(Debug, thiserror::Error)]
pub enum EditError {
    #[error("no task `{id}` in {file}")]
    UnknownTask { id: String, file: String },
    #[error("a task needs an id")]
    EmptyId,
    /// By the gate, before anything was edited.
    #[error(transparent)]
    Refused(#[from] Refused),
    #[error("the title of `{id}` would be empty")]
    EmptyTitle { id: String },
    #[error("{} depend on `{id}`", quoted(.by))]
    StillNeeded { id: String, by: Vec<String> },
    #[error("`{id}` has sub-tasks: {}", quoted(.by))]
    HasSubTasks { id: String, by: Vec<String> },
    #[error("`{id}` and `{target}` are not in the same list: a sub-task moves among its siblings only")]
    NotSiblings { id: String, target: String },
    #[error("{dialect} cannot say the {what} of `{id}`")]
    NotExpressible { id: String, what: &'static str, dialect: &'static str },
    #[error("the {what} of `{id}` cannot be changed where it stands; edit {file} by hand")]
    NotInPlace { id: String, what: String, file: String },
    #[error("ids made from text would change: {}; give those tasks ids of their own first", quoted(.ids))]
    WouldRename { ids: Vec<String> },
    #[error("the backlog would no longer be valid")]
    Invalid(#[source] Problems),
}

fn quoted(ids: &[String]) -> String {
    ids.iter().map(|id| format!("`{id}`")).collect::<Vec<_>>().join(", ")
}

/// What changes with a note behind a box: put there, taken out, or nothing.
fn noted(place: &mut Place, note: &str, is_wanted: bool) -> Vec<Change> {
    let change = match (&place.note, is_wanted) {
        (None, true) => {
            let at = place.note_at..place.note_at;
            place.note = Some(at.clone());
            Change { range: at, with: format!(" {note}") }
        }
        (Some(there), false) => Change { range: there.clone(), with: String::new() },
        (Some(_), true) | (None, false) => return Vec::new(),
    };
    vec![change]
}

/// Bytes to be replaced.
pub(crate) struct Change {
    pub(crate) range: Range<usize>,
    pub(crate) with: String,
}

/// The text with bytes replaced; what is put at one place comes in the order of the changes.
fn replaced(text: &str, mut changes: Vec<Change>) -> String {
    changes.sort_by_key(|change| change.range.start);
    let mut out = String::with_capacity(text.len());
    let mut copied = 0;
    for Change { range, with } in changes {
        // Whatever two changes have in common is gone with the first.
        out.push_str(&text[copied..range.start.max(copied)]);
        out.push_str(&with);
        copied = range.end.max(copied);
    }
    out.push_str(&text[copied..]);
    out
}

impl Backlog {
    /// Writes a status in the way of the dialect. PRD dialects and ralphy have no word for failed:
    /// such a task stays open in the file. Nothing is written where the file says it already.
    pub fn set_status(&mut self, id: &str, status: FileStatus) -> Result<(), EditError> {
        let position = self.position(id)?;
        let status = self.writable(status);
        if self.tasks[position].status == status {
            return Ok(());
        }
        let own = self.spellings.status;
        let changes = match (self.dialect.family(), self.status) {
            (Family::Objects | Family::Lines, Status::Flag(key)) => {
                self.object_changes(position, |object| json::flag_status(object, key, status))
            }
            (Family::Objects | Family::Lines, Status::Words(key, words)) => {
                self.object_changes(position, |object| json::word_status(object, key, words, own, status))
            }
            (Family::Boxes | Family::Objects | Family::Lines, _) => {
                lines::status(&self.text, &mut self.places[position], status)
            }
            (Family::Steps, _) => plan::status(self, position, status),
            (Family::Marked, _) => return self.set_marks(position, status),
        };
        self.splice(changes);
        self.tasks[position].status = status;
        if let Some(place) = self.places.get_mut(position) {
            // A note just written stands where the next one would go; one taken out is no more.
            place.note = place.note.take().filter(|note| !note.is_empty());
        }
        Ok(())
    }

    /// Writes a value of a plan's front matter, in the place and the quotes of the old one. A key
    /// that the file does not have is not added.
    pub fn set_plan(&mut self, value: PlanValue<'_>) {
        let Some(front) = &mut self.front else { return };
        front.note(value);
        let Some(range) = front.values.of(value) else { return };
        let with = written(value, &self.text[..range.start]);
        if self.text[range.clone()] != with {
            self.splice(vec![Change { range, with }]);
        }
    }

    /// Brings `failed_attempts` and `last_attempt_at` of a tasks.json up to date; other formats do not have them.
    pub fn record_attempt(
        &mut self,
        id: &str,
        failed_attempts: u32,
        last_attempt_at: Option<i64>,
    ) -> Result<(), EditError> {
        let position = self.position(id)?;
        if !self.tells_attempts() {
            return Ok(());
        }
        let failures = ("failed_attempts", i64::from(failed_attempts));
        let values: Vec<(&str, i64)> =
            [failures].into_iter().chain(last_attempt_at.map(|at| ("last_attempt_at", at))).collect();
        let changes = self.object_changes(position, |object| json::numbers(object, &values));
        self.splice(changes);
        let object = &self.text[self.places[position].span.clone()];
        let [has_failures, has_time] =
            ["failed_attempts", "last_attempt_at"].map(|key| json::has_member(object, key));
        let task = &mut self.tasks[position];
        if has_failures {
            task.failed_attempts = failed_attempts;
        }
        if has_time {
            task.last_attempt_at = last_attempt_at.or(task.last_attempt_at);
        }
        Ok(())
    }

    /// Says in a tasks.json that somebody works on a task, in the file's own spelling, or that nobody does any
    /// more. To us such a task is open: its status stays what it was. Other formats have no word for it.
    pub fn mark_in_progress(&mut self, id: &str, is_in_progress: bool) -> Result<(), EditError> {
        let position = self.position(id)?;
        let Status::Words(key, words) = self.status else { return Ok(()) };
        if self.tasks[position].status != FileStatus::Open {
            return Ok(());
        }
        let own = self.spellings.status;
        let changes =
            self.object_changes(position, |object| json::progress(object, key, words, own, is_in_progress));
        self.splice(changes);
        Ok(())
    }

    /// Has the format words for who works on a task and how often that failed?
    pub fn tells_attempts(&self) -> bool {
        self.dialect.profile().order == Order::Score
    }

    /// Writes a status at each place that says it, and reads the file again: nothing else may change by that.
    fn set_marks(&mut self, position: usize, status: FileStatus) -> Result<(), EditError> {
        let changes: Vec<Change> =
            self.places[position].marks.iter().filter_map(|mark| mark.change(&self.text, status)).collect();
        let next = self.read_edited(replaced(&self.text, changes), &self.ids())?;
        let stays = |task: &Task| next.task(task.id.as_str()).is_some_and(|read| read.status == task.status);
        let own = &self.tasks[position].id;
        let is_said = next.task(own.as_str()).is_some_and(|read| read.status == status);
        if !is_said || !self.tasks.iter().filter(|task| task.id != *own).all(stays) {
            let (id, what) = (own.to_string(), "status".to_owned());
            return Err(EditError::NotInPlace { id, what, file: self.file.clone() });
        }
        *self = next;
        Ok(())
    }

    /// Adds a task behind the others (under its parent in Markdown), in their style.
    pub fn add(&mut self, task: &NewTask) -> Result<(), EditError> {
        if task.id.trim().is_empty() {
            return Err(EditError::EmptyId);
        }
        self.check_expressible(task)?;
        let mut ids = self.ids();
        ids.insert(task.id.clone());
        match self.dialect.family() {
            Family::Boxes => {}
            Family::Marked if self.dialect == Dialect::Items => {
                let next = self.read_edited(lines::with_item_added(self, task)?, &ids)?;
                if next.task(&task.id).is_none_or(|read| read.title != one_line(&task.title())) {
                    return Err(self.not_expressible(task, "text"));
                }
                *self = next;
                return Ok(());
            }
            Family::Lines | Family::Marked => {
                let (id, what) = (task.id.clone(), "list".to_owned());
                return Err(EditError::NotInPlace { id, what, file: self.file.clone() });
            }
            Family::Steps => {
                self.adopt(plan::with_added(self, task)?, &ids)?;
                self.set_plan(PlanValue::TotalSteps(self.count()));
                return Ok(());
            }
            Family::Objects => {
                return self.adopt(json::with_added(self, task), &ids);
            }
        }
        let mut outcome = Err(self.not_expressible(task, "text"));
        for text in lines::with_added(self, task) {
            outcome = self.read_edited(text, &ids).and_then(|next| match lines::says(&next, task) {
                true => Ok(next),
                false => Err(self.not_expressible(task, "text")),
            });
            if outcome.is_ok() {
                break;
            }
        }
        *self = outcome?;
        Ok(())
    }

    /// Moves a task. Where the order goes by priority, it takes its new neighbour's.
    pub fn move_task(&mut self, id: &str, to: Position) -> Result<(), EditError> {
        let from = self.position(id)?;
        let last = self.tasks.len() - 1;
        let (target, after) = match &to {
            Position::First => (self.edge_sibling(from, 0..=last), false),
            Position::Last => (self.edge_sibling(from, (0..=last).rev()), true),
            Position::Before(other) => (self.position(other)?, false),
            Position::After(other) => (self.position(other)?, true),
        };
        if target == from {
            return Ok(());
        }
        if self.dialect.nests() && self.tasks[from].parent != self.tasks[target].parent {
            let target = self.tasks[target].id.to_string();
            return Err(EditError::NotSiblings { id: id.to_owned(), target });
        }
        let text = match self.dialect.family() {
            Family::Boxes | Family::Steps | Family::Lines | Family::Marked => {
                lines::with_moved(self, from, target, after)
            }
            Family::Objects => json::with_moved(self, from, target, after),
        };
        self.adopt(text, &self.ids())
    }

    /// Takes out tasks that were added and that nobody may keep, all at once. Refused where any other task would not
    /// stay as it is.
    pub fn withdraw(&mut self, gone: &HashSet<TaskId>) -> Result<(), EditError> {
        let mut ids = self.ids();
        ids.retain(|id| !gone.contains(id.as_str()));
        let is_gone = |position: usize| gone.contains(&self.tasks[position].id);
        let text = match self.dialect.family() {
            Family::Boxes | Family::Steps | Family::Lines | Family::Marked => {
                lines::without_all(self, is_gone)
            }
            Family::Objects => json::without_all(self, is_gone),
        };
        self.adopt(text, &ids)?;
        if self.dialect.family() == Family::Steps {
            self.set_plan(PlanValue::TotalSteps(self.count()));
        }
        Ok(())
    }

    /// Gives tasks the words back that they had in an earlier version of the file. Refused where any other task
    /// would not stay as it is.
    pub fn restore(&mut self, earlier: &Self, ids: &HashSet<TaskId>) -> Result<(), EditError> {
        let mut changes = Vec::new();
        for id in ids {
            let position = self.position(id.as_str())?;
            let before = earlier.position(id.as_str())?;
            let with = earlier.text[earlier.places[before].span.clone()].to_owned();
            changes.push(Change { range: self.places[position].span.clone(), with });
        }
        let next = self.read_edited(replaced(&self.text, changes), &self.ids())?;
        let stays = |task: &Task| match ids.contains(&task.id) {
            true => next.task(task.id.as_str()) == earlier.task(task.id.as_str()),
            false => next.task(task.id.as_str()) == Some(task),
        };
        if let Some(other) = self.tasks.iter().find(|task| !stays(task)) {
            let (id, what) = (other.id.to_string(), "words".to_owned());
            return Err(EditError::NotInPlace { id, what, file: self.file.clone() });
        }
        *self = next;
        Ok(())
    }

    /// Takes a task out, unless others depend on it or are part of it.
    pub fn delete(&mut self, id: &str) -> Result<(), EditError> {
        let position = self.position(id)?;
        let task = &self.tasks[position];
        let names = |wanted: &dyn Fn(&Task) -> bool| -> Vec<String> {
            self.tasks.iter().filter(|other| wanted(other)).map(|other| other.id.to_string()).collect()
        };
        // In Markdown a parent depends on its parts by containing them.
        let contains = |other: &Task| self.dialect.nests() && task.parent.as_ref() == Some(&other.id);
        let by =
            names(&|other| other.depends_on.contains(&task.id) && other.id != task.id && !contains(other));
        if !by.is_empty() {
            return Err(EditError::StillNeeded { id: id.to_owned(), by });
        }
        let by = names(&|other| other.parent.as_ref() == Some(&task.id));
        if !by.is_empty() {
            return Err(EditError::HasSubTasks { id: id.to_owned(), by });
        }
        let mut ids = self.ids();
        ids.remove(id);
        let text = match self.dialect.family() {
            Family::Boxes | Family::Steps | Family::Lines | Family::Marked => {
                lines::without(&self.text, self.places[position].span.clone())
            }
            Family::Objects => json::without(self, position),
        };
        self.adopt(text, &ids)?;
        if self.dialect.family() == Family::Steps {
            self.set_plan(PlanValue::TotalSteps(self.count()));
            self.set_plan(PlanValue::CompletedSteps(plan::completed(&self.tasks)));
        }
        Ok(())
    }

    fn count(&self) -> u32 {
        u32::try_from(self.tasks.len()).unwrap_or(u32::MAX)
    }

    fn position(&self, id: &str) -> Result<usize, EditError> {
        let unknown = || EditError::UnknownTask { id: id.to_owned(), file: self.file.clone() };
        self.by_id.get(id).copied().ok_or_else(unknown)
    }

    fn ids(&self) -> HashSet<String> {
        self.tasks.iter().map(|task| task.id.to_string()).collect()
    }

    /// The status as the dialect can say it.
    fn writable(&self, status: FileStatus) -> FileStatus {
        if self.dialect.can_say(status) { status } else { FileStatus::Open }
    }

    /// Refuses what the dialect has no field for, rather than dropping it.
    fn check_expressible(&self, task: &NewTask) -> Result<(), EditError> {
        let says = |part| self.dialect.profile().says.contains(&part);
        let fields = [
            ("role", task.role.is_some(), says(Part::Role)),
            ("phase", task.phase.is_some(), says(Part::Phase)),
            ("complexity", task.complexity.is_some(), says(Part::Complexity)),
            ("parent", task.parent.is_some(), says(Part::Parent)),
            ("labels", !task.labels.is_empty(), says(Part::Labels)),
            ("priority", task.priority.is_some(), self.dialect.has_priority()),
        ];
        match fields.iter().find(|(_, is_given, is_known)| *is_given && !is_known) {
            Some((what, ..)) => Err(self.not_expressible(task, what)),
            None => Ok(()),
        }
    }

    fn not_expressible(&self, task: &NewTask, what: &'static str) -> EditError {
        EditError::NotExpressible { id: task.id.clone(), what, dialect: self.dialect.name() }
    }

    /// The first of these positions whose task has the same parent as the one at `from`; all
    /// tasks of a JSON file count as siblings.
    fn edge_sibling(&self, from: usize, mut positions: impl Iterator<Item = usize>) -> usize {
        let is_sibling = |position: &usize| {
            !self.dialect.nests() || self.tasks[*position].parent == self.tasks[from].parent
        };
        positions.find(is_sibling).unwrap_or(from)
    }

    /// Changes within the object of one task, told by their place in that object.
    fn object_changes(&self, position: usize, changes: impl FnOnce(&str) -> Vec<Change>) -> Vec<Change> {
        let span = &self.places[position].span;
        let mut changes = changes(&self.text[span.clone()]);
        for change in &mut changes {
            change.range = change.range.start + span.start..change.range.end + span.start;
        }
        changes
    }

    /// Replaces bytes and moves every known position behind them.
    fn splice(&mut self, mut changes: Vec<Change>) {
        changes.sort_by_key(|change| std::cmp::Reverse(change.range.start));
        for Change { range, with } in changes {
            self.text.replace_range(range.clone(), &with);
            let moved = |at: usize| if at >= range.end { at - range.len() + with.len() } else { at };
            let own = |place: &mut Range<usize>| {
                *place = if *place == range {
                    range.start..range.start + with.len()
                } else {
                    moved(place.start)..moved(place.end)
                };
            };
            for Place { span, id_at, mark, rank: _, note, note_at, marks: _ } in &mut self.places {
                *span = moved(span.start)..moved(span.end);
                *id_at = if *mark == range { *id_at } else { moved(*id_at) };
                *note_at = if range.start == *note_at { *note_at } else { moved(*note_at) };
                own(mark);
                note.iter_mut().for_each(own);
            }
            self.front.iter_mut().flat_map(|front| front.values.all()).for_each(own);
            self.list = moved(self.list.start)..moved(self.list.end);
        }
    }

    fn adopt(&mut self, text: String, ids: &HashSet<String>) -> Result<(), EditError> {
        *self = self.read_edited(text, ids)?;
        Ok(())
    }

    /// Reads an edited text, which must hold these tasks and no others.
    fn read_edited(&self, text: String, ids: &HashSet<String>) -> Result<Self, EditError> {
        let next = self.reread(text).map_err(EditError::Invalid)?;
        let mut changed: Vec<String> = next.ids().symmetric_difference(ids).cloned().collect();
        if changed.is_empty() {
            return Ok(next);
        }
        changed.sort();
        Err(EditError::WouldRename { ids: changed })
    }
}
