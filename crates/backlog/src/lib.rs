//! Backlog files: text in, tasks out; a change in, edited text out.
//!
//! Files are read tolerantly and written minimally: an edit changes the bytes of the values it is
//! about and nothing else, so unknown fields, key order, indentation, line ends and number
//! spellings stay as their owner left them. What is wrong with a file is reported all at once,
//! each problem with its line.
//!
//! This crate opens no files. Whoever holds the text reads and writes it, and keeps others from
//! writing at the same time.
//!
//! ```
//! use wiggum_backlog::Backlog;
//! use wiggum_core::task::FileStatus;
//!
//! let text = r#"{ "project": "x", "userStories": [ { "id": "A", "title": "a",   "passes": false } ] }"#;
//! let mut backlog = Backlog::parse("PRD.json", text)?;
//! assert_eq!(backlog.tasks()[0].id.as_str(), "A");
//!
//! backlog.set_status("A", FileStatus::Done)?;
//! assert_eq!(backlog.text(), text.replace("false", "true"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use wiggum_core::ids::TaskId;
use wiggum_core::task::{FileStatus, Selection, Task};

mod edit;
mod fields;
mod graph;
pub mod json;
mod markdown;
mod plan;
mod prd;
mod problem;
mod slug;
mod tasks;

pub use edit::{EditError, NewTask, Position, TaskChange};
pub use plan::header::{PlanHeader, PlanValue};
pub use problem::{Problem, Problems};

use json::{BOM, Document, Kind, Value};
use plan::header::Front;
use problem::Findings;

/// A backlog file as it was read: its text, its tasks, and where in the text each stands.
#[derive(Clone, Debug)]
pub struct Backlog {
    file: String,
    text: String,
    dialect: Dialect,
    /// In the order in which they are to be taken, as are `places`.
    tasks: Vec<Task>,
    places: Vec<Place>,
    by_id: HashMap<TaskId, usize>,
    /// The JSON array of the tasks, brackets included; nothing for Markdown.
    list: Range<usize>,
    unsupported: Vec<(TaskId, String)>,
    /// Of a plan.
    front: Option<Front>,
}

/// Which program's format a file is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// `{userStories: [{id, title, description, criteria, passes, depends_on, skipped}]}`
    Prd,
    /// The same with `branchName`, `acceptanceCriteria`, `priority` (1 is first) and `notes`.
    Snarktank,
    /// The same again with `name`, `dependsOn`, `labels`, `completionNotes` and `metadata`.
    RalphTui,
    /// `{tasks: [{title, completed}]}`
    Ralphy,
    /// `[{id, description, status, …}]`, or that array as `tasks` of an object.
    Tasks,
    /// Checkboxes: fix_plan.md, PRD.md, TODO.md.
    Markdown,
    /// Plan.md: front matter with a plan_id, and steps with an action type.
    Plan,
}

impl Dialect {
    /// The word users see for this dialect.
    pub fn name(self) -> &'static str {
        match self {
            Self::Prd => "PRD.json",
            Self::Snarktank => "prd.json (snarktank)",
            Self::RalphTui => "prd.json (ralph-tui)",
            Self::Ralphy => "ralphy JSON",
            Self::Tasks => "tasks.json",
            Self::Markdown => "Markdown",
            Self::Plan => "Plan.md",
        }
    }

    /// Has this dialect a way to write that status? One without reads back as open.
    pub fn can_say(self, status: FileStatus) -> bool {
        match status {
            FileStatus::Open | FileStatus::Done | FileStatus::Skipped => true,
            FileStatus::Failed => match self {
                Self::Tasks | Self::Markdown | Self::Plan => true,
                Self::Prd | Self::Snarktank | Self::RalphTui | Self::Ralphy => false,
            },
        }
    }

    /// Is a priority part of this dialect? Elsewhere a field of that name is its owner's.
    fn has_priority(self) -> bool {
        self.is_ordered_by_priority() || self == Self::Tasks
    }

    /// Stories of these dialects are taken by `priority`, ties by their place in the file.
    fn is_ordered_by_priority(self) -> bool {
        match self {
            Self::Snarktank | Self::RalphTui => true,
            Self::Prd | Self::Ralphy | Self::Tasks | Self::Markdown | Self::Plan => false,
        }
    }
}

/// File names looked for when none is given, in this order.
pub fn candidates() -> &'static [&'static str] {
    &[
        "PRD.json",
        "prd.json",
        "tasks.json",
        "scripts/ralph/prd.json",
        ".ralph/prd.json",
        ".ralph/fix_plan.md",
        "fix_plan.md",
        "@fix_plan.md",
        "Plan.md",
        "PLAN.md",
        "PRD.md",
        "prd.md",
        "TODO.md",
        "todo.md",
        "tasks.md",
    ]
}

/// The next free id of the form `<prefix>N`, with as many digits as its predecessors have.
pub fn generate_task_id(backlog: &Backlog, prefix: &str) -> String {
    let numbers = backlog.tasks.iter().filter_map(|task| {
        let digits = task.id.as_str().strip_prefix(prefix)?;
        let number: u64 = digits.parse().ok().filter(|_| digits.bytes().all(|b| b.is_ascii_digit()))?;
        Some((number, digits.len()))
    });
    let (highest, width) = numbers.max().unwrap_or((0, 1));
    let id = |number: u64| format!("{prefix}{number:0width$}");
    (highest.saturating_add(1)..).map(id).find(|id| backlog.task(id).is_none()).unwrap_or_else(|| id(highest))
}

impl Backlog {
    /// Reads a backlog; `file_name` tells dialects apart where the content does not, and names the
    /// file in problems.
    pub fn parse(file_name: &str, text: impl Into<String>) -> Result<Self, Problems> {
        let text = text.into();
        let mut findings = Findings::default();
        let parsed = parse_text(file_name, &text, &mut findings);
        let by_id = graph::index(&parsed, &mut findings);
        graph::check(&text, &parsed, &by_id, &mut findings);
        if !findings.is_empty() {
            return Err(findings.into_problems(file_name, &text));
        }
        let Parsed { dialect, tasks, places, list, unsupported, front } = parsed;
        Ok(Self { file: file_name.to_owned(), text, dialect, tasks, places, by_id, list, unsupported, front })
    }

    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// The tasks in the order in which they are to be taken.
    pub fn tasks(&self) -> &[Task] {
        &self.tasks
    }

    pub fn task(&self, id: &str) -> Option<&Task> {
        self.by_id.get(id).map(|&position| &self.tasks[position])
    }

    pub fn selection(&self) -> Selection {
        match self.dialect {
            Dialect::Tasks => Selection::Score,
            Dialect::Prd
            | Dialect::Snarktank
            | Dialect::RalphTui
            | Dialect::Ralphy
            | Dialect::Markdown
            | Dialect::Plan => Selection::FileOrder,
        }
    }

    /// What the front matter says, if this is a plan.
    pub fn plan(&self) -> Option<&PlanHeader> {
        self.front.as_ref().map(|front| &front.header)
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// Is it the convention of this dialect that the agent ticks its own box? Such a tick is a
    /// claim; elsewhere it is undone.
    pub fn ticks_are_claims(&self) -> bool {
        match self.dialect {
            Dialect::Snarktank | Dialect::Markdown => true,
            Dialect::Prd | Dialect::RalphTui | Dialect::Ralphy | Dialect::Tasks | Dialect::Plan => false,
        }
    }

    /// The line on which a task's id stands (its box in Markdown), counted from 1.
    pub fn line_of(&self, id: &str) -> Option<usize> {
        let position = *self.by_id.get(id)?;
        Some(json::line_at(self.text.as_bytes(), self.places[position].id_at))
    }

    /// What tasks that are still to be worked on ask for and this build cannot do.
    pub fn unsupported(&self) -> Vec<Problem> {
        use wiggum_core::task::Work;
        let mut findings = Findings::default();
        let mut report = |id: &TaskId, message: &str| {
            let Some(&position) = self.by_id.get(id) else { return };
            match self.tasks[position].status {
                FileStatus::Open | FileStatus::Failed => {
                    findings.add(self.places[position].id_at, format!("`{id}`: {message}"));
                }
                FileStatus::Done | FileStatus::Skipped => {}
            }
        };
        for (id, message) in &self.unsupported {
            report(id, message);
        }
        for task in &self.tasks {
            match task.work {
                Work::Agent | Work::File { .. } | Work::Notice { .. } | Work::McpCall { .. } => {}
                Work::Command { .. } | Work::Gate { .. } | Work::Flow { .. } => {
                    let (name, known) = (task.work.name(), "`agent`, `file`, `notice` or `mcp_call`");
                    report(
                        &task.id,
                        &format!("work of kind `{name}` is not available yet; expected {known}"),
                    );
                }
            }
        }
        findings.into_problems(&self.file, &self.text).0
    }
}

/// What a reader of one dialect hands back.
struct Parsed {
    dialect: Dialect,
    tasks: Vec<Task>,
    /// Where each task stands.
    places: Vec<Place>,
    list: Range<usize>,
    unsupported: Vec<(TaskId, String)>,
    front: Option<Front>,
}

impl Parsed {
    fn new(dialect: Dialect, list: Range<usize>) -> Self {
        Self { dialect, tasks: Vec::new(), places: Vec::new(), list, unsupported: Vec::new(), front: None }
    }

    fn for_list(dialect: Dialect, list: Value<'_>) -> Self {
        let mut parsed = Self::new(dialect, list.span());
        let count = list.items().count();
        parsed.tasks.reserve(count);
        parsed.places.reserve(count);
        parsed
    }

    fn add(&mut self, task: Task, place: Place) {
        self.tasks.push(task);
        self.places.push(place);
    }

    /// By priority, ties as in the file; a task without a priority comes last.
    fn sort_by_rank(&mut self) {
        let (tasks, places) = (std::mem::take(&mut self.tasks), std::mem::take(&mut self.places));
        let mut both: Vec<(Task, Place)> = tasks.into_iter().zip(places).collect();
        both.sort_by_key(|(_, place)| (place.rank.is_none(), place.rank));
        (self.tasks, self.places) = both.into_iter().unzip();
    }
}

/// Where a task stands in the text.
#[derive(Clone, Debug)]
struct Place {
    /// JSON: the task's object. Markdown: its lines with all that is nested in it, without the
    /// last line end.
    span: Range<usize>,
    id_at: usize,
    /// Markdown: what is between the brackets of the box.
    mark: Range<usize>,
    /// The `priority` of the file, where the order goes by it.
    rank: Option<i64>,
    /// Plan: the note that a step failed, with the blank before it.
    note: Option<Range<usize>>,
    /// Plan: where such a note goes.
    note_at: usize,
}

impl Place {
    fn json(span: Range<usize>, id_at: usize) -> Self {
        Self { span, id_at, mark: 0..0, rank: None, note: None, note_at: 0 }
    }
}

/// Each id once, the first time it comes.
fn unique(mut ids: Vec<TaskId>) -> Vec<TaskId> {
    // Nearly every list is this short, and comparing beats hashing there.
    if ids.len() <= 8 {
        for position in (1..ids.len()).rev() {
            if ids[..position].contains(&ids[position]) {
                ids.remove(position);
            }
        }
        return ids;
    }
    let mut seen = HashSet::new();
    ids.retain(|id| seen.insert(id.clone()));
    ids
}

/// Content decides; the name only where the content could be either.
fn parse_text(file_name: &str, text: &str, findings: &mut Findings) -> Parsed {
    let name = file_name.to_ascii_lowercase();
    if name.ends_with(".json") || looks_like_json(text) {
        return parse_json(text, findings);
    }
    if name.ends_with(".yaml") || name.ends_with(".yml") {
        findings.add(
            0,
            "YAML task lists are not read; expected ralphy's JSON form {\"tasks\": [{\"title\": …}]}",
        );
        return Parsed::new(Dialect::Ralphy, 0..0);
    }
    plan::parse(file_name, text, findings).unwrap_or_else(|| markdown::parse(text))
}

/// Markdown may start with a bracket too, but not like this.
fn looks_like_json(text: &str) -> bool {
    let mut start = text.trim_start_matches(BOM).chars().filter(|c| !c.is_whitespace());
    match (start.next(), start.next()) {
        (Some('{'), Some('"' | '}')) | (Some('['), Some('{')) => true,
        (Some(_), _) | (None, _) => false,
    }
}

fn parse_json(text: &str, findings: &mut Findings) -> Parsed {
    match Document::scan(text) {
        Ok(document) => parse_document(document.root(), findings),
        Err(error) => {
            findings.add(error.offset, error.message);
            Parsed::new(Dialect::Prd, 0..0)
        }
    }
}

fn parse_document(root: Value<'_>, findings: &mut Findings) -> Parsed {
    if root.kind() == Kind::Array {
        return tasks::parse(root, findings);
    }
    let lists: Vec<_> = root
        .members()
        .filter(|member| member.key.as_str().is_some_and(|key| key == "userStories" || key == "tasks"))
        .collect();
    for second in lists.iter().skip(1) {
        findings.add(second.key.start(), "second list of tasks; expected one `userStories` or `tasks`");
    }
    let Some(list) = lists.first() else {
        let expected = "an array of tasks, or an object with `userStories` or `tasks`";
        findings.add(root.start(), format!("no list of tasks; expected {expected}"));
        return Parsed::new(Dialect::Prd, 0..0);
    };
    let is_stories = list.key.as_str().is_some_and(|key| key == "userStories");
    if list.value.kind() != Kind::Array {
        let name = if is_stories { "userStories" } else { "tasks" };
        let found = list.value.kind().name();
        findings.add(list.value.start(), format!("`{name}` is {found}; expected an array"));
        return Parsed::new(Dialect::Prd, 0..0);
    }
    if is_stories {
        return prd::parse_stories(prd::dialect_of(root, list.value), list.value, findings);
    }
    // Without this, a wrapped tasks.json would read as ralphy's with nothing completed.
    if list.value.items().any(|item| item.get("status").is_some()) {
        return tasks::parse(list.value, findings);
    }
    prd::parse_ralphy(list.value, findings)
}
