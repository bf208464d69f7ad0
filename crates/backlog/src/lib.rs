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

mod checks;
mod context;
mod edit;
mod fields;
mod formats;
mod graph;
pub mod json;
mod lookalike;
mod not_yet;
mod problem;
mod recognise;
mod slug;

pub use context::Context;
pub use edit::{EditError, NewTask, Position, TaskChange};
pub use formats::Dialect;
pub use formats::markdown::{Checkbox, checkboxes};
pub use formats::plan::header::{PlanHeader, PlanValue};
pub use problem::{Problem, Problems};

use checks::Checks;
use fields::Fields;
use formats::mark::Mark;
use formats::plan::header::Front;
use formats::words::OwnWords;
use formats::{Family, Status, backlog_md, beads, markdown, outline, plan, yaml};
use json::{BOM, Document, Value};
use lookalike::Lookalike;
use not_yet::NotYet;
use problem::Findings;

/// A backlog file as it was read: its text, its tasks, and where in the text each stands.
#[derive(Clone, Debug)]
pub struct Backlog {
    file: String,
    /// Which of several lists in the file is meant.
    tag: Option<String>,
    text: String,
    dialect: Dialect,
    /// In the order in which they are to be taken, as are `places`.
    tasks: Vec<Task>,
    places: Vec<Place>,
    by_id: HashMap<TaskId, usize>,
    /// The JSON array of the tasks, brackets included; nothing for Markdown.
    list: Range<usize>,
    not_yet: Vec<NotYet>,
    lookalikes: Vec<(TaskId, Lookalike)>,
    remarks: Vec<(TaskId, String)>,
    spellings: Spellings,
    /// Where and how this file writes a status.
    status: Status,
    /// Are there boxes `[-]` of which the file does not say what they mean?
    dashes: bool,
    unknown_marks: Vec<(TaskId, &'static str)>,
    /// Of a plan.
    front: Option<Front>,
}

/// What is known of a file beside its name and its text.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reading<'a> {
    /// Which of several lists in the file is meant.
    pub tag: Option<&'a str>,
    /// What it was read as before: whatever is written into it, headings stay the tasks of a file whose tasks were
    /// headings, as long as there are any.
    pub keep: Option<Dialect>,
}

/// What is left out is named this often; after that it is a habit of the file.
const MAX_LEFT_OUT: usize = 20;

/// Words of which a JSON file uses one of several, for whoever adds to it.
#[derive(Clone, Copy, Debug, Default)]
struct Spellings {
    depends_on: Option<&'static str>,
    status: OwnWords,
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
        ".taskmaster/tasks/tasks.json",
        "feature_list.json",
        ".beads/issues.jsonl",
        "IMPLEMENTATION_PLAN.md",
        "plans/prd.json",
        "prd.yaml",
        "tasks.yaml",
        "docs/sprint-artifacts/sprint-status.yaml",
        "_bmad-output/implementation-artifacts/sprint-status.yaml",
        ".planning/ROADMAP.md",
        "ROADMAP.md",
    ]
}

/// Paths looked for after those, where `*` is any one folder or file name. Of these there may be several, and which is
/// meant is for a person to say.
pub fn candidate_patterns() -> &'static [&'static str] {
    &[
        "specs/*/tasks.md",
        ".kiro/specs/*/tasks.md",
        "openspec/changes/*/tasks.md",
        "conductor/tracks/*/plan.md",
        "docs/superpowers/plans/*.md",
        "docs/plans/*.md",
        "plans/*.md",
        "backlog/tasks/*.md",
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
        Self::parse_as(file_name, text, Reading::default())
    }

    /// As [`Backlog::parse`], with what is known from elsewhere.
    pub fn parse_as(
        file_name: &str,
        text: impl Into<String>,
        reading: Reading<'_>,
    ) -> Result<Self, Problems> {
        let text = text.into();
        let mut findings = Findings::default();
        let mut parsed = parse_text(file_name, &text, reading, &mut findings);
        graph::forget_finished(&mut parsed);
        let by_id = graph::index(&parsed, &mut findings);
        graph::check(&text, &parsed, &by_id, &mut findings);
        if !findings.is_empty() {
            return Err(findings.into_problems(file_name, &text));
        }
        let Parsed {
            dialect,
            tasks,
            places,
            list,
            not_yet,
            lookalikes,
            remarks,
            spellings,
            status,
            dashes,
            unknown_marks,
            front,
        } = parsed;
        Ok(Self {
            file: file_name.to_owned(),
            tag: reading.tag.map(str::to_owned),
            text,
            dialect,
            tasks,
            places,
            by_id,
            list,
            not_yet,
            lookalikes,
            remarks,
            spellings,
            status,
            dashes,
            unknown_marks,
            front,
        })
    }

    /// Reads the file's text again, by what is known of it: its words for one thing, and which dashes are skips.
    pub fn reread(&self, text: impl Into<String>) -> Result<Self, Problems> {
        let mut next = Self::parse_as(
            &self.file,
            text,
            Reading { tag: self.tag.as_deref(), keep: (!self.tasks.is_empty()).then_some(self.dialect) },
        )?;
        let Spellings { depends_on, status } = self.spellings;
        next.spellings.depends_on = next.spellings.depends_on.or(depends_on);
        next.spellings.status = next.spellings.status.or(status);
        next.read_dashes_as_skipped(&|id| self.is_skipped_by_dash(id));
        Ok(next)
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
        self.dialect.profile().order.selection()
    }

    /// What the front matter says, if this is a plan.
    pub fn plan(&self) -> Option<&PlanHeader> {
        self.front.as_ref().map(|front| &front.header)
    }

    /// What is to be said of a plan that has not as many steps as its front matter says.
    pub fn miscounted_steps(&self) -> Option<String> {
        let said = self.plan()?.total_steps.filter(|said| *said as usize != self.tasks.len())?;
        Some(format!("the front matter says {said} steps, but there are {}", self.tasks.len()))
    }

    /// The same, if steps are missing: the rest of the file may still be to come.
    pub fn missing_steps(&self) -> Option<String> {
        let said = self.plan()?.total_steps?;
        self.miscounted_steps().filter(|_| said as usize > self.tasks.len())
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// Is it the convention of this dialect that the agent ticks its own box? Such a tick is a
    /// claim; elsewhere it is undone.
    pub fn ticks_are_claims(&self) -> bool {
        self.dialect.profile().agent_ticks
    }

    /// Are there boxes `[-]` of which the file does not say what they mean? They are read as in progress. Loops of
    /// older versions wrote them for skipped tasks.
    pub fn has_dashes(&self) -> bool {
        self.dashes && (0..self.tasks.len()).any(|position| self.is_dash(position))
    }

    /// Boxes that are read as open although nobody said what their marks mean (`[>]`, `[?]`).
    pub fn unknown_marks(&self) -> Vec<Problem> {
        let mut findings = Findings::default();
        for (id, mark) in &self.unknown_marks {
            let Some(&position) = self.by_id.get(id) else { continue };
            let message = format!(
                "`{id}`: the mark `[{mark}]` is not known and is read as open; `[x]` is done, `(skipped)` behind the \
                 text skips it, or say in the file what it means (`[{mark}] = skipped`)"
            );
            findings.add(self.places[position].id_at, message);
        }
        findings.into_problems(&self.file, &self.text).0
    }

    /// What tasks that are not finished say in words, though they may mean a check or a dependency.
    pub fn remarks(&self) -> Vec<Problem> {
        let mut findings = Findings::default();
        for (id, message) in &self.remarks {
            let Some(&position) = self.by_id.get(id) else { continue };
            if matches!(self.tasks[position].status, FileStatus::Open | FileStatus::Failed) {
                findings.add(self.places[position].id_at, format!("`{id}`: {message}"));
            }
        }
        findings.into_problems(&self.file, &self.text).0
    }

    /// Stretches of the file that look like work and are no tasks, each with its line.
    pub fn left_out(&self) -> Vec<String> {
        let notes = match self.dialect.family() {
            Family::Boxes => markdown::set_aside(&self.text),
            Family::Marked if self.dialect == Dialect::Headings => self.boxes_elsewhere(),
            Family::Objects | Family::Lines | Family::Marked | Family::Steps => Vec::new(),
        };
        let note = |(at, what): (usize, String)| {
            format!("{}:{}: {what}", self.file, json::line_at(self.text.as_bytes(), at))
        };
        notes.into_iter().map(note).collect()
    }

    /// Boxes outside of the headings that are tasks.
    fn boxes_elsewhere(&self) -> Vec<(usize, String)> {
        let is_inside = |at: usize| self.places.iter().any(|place| place.span.contains(&at));
        let boxes = markdown::box_places(&self.text).into_iter().filter(|at| !is_inside(*at));
        boxes
            .map(|at| (at, "a box below no heading that is a task is none".to_owned()))
            .take(MAX_LEFT_OUT)
            .collect()
    }

    /// Reads such a box as skipped where a loop knows that it is.
    pub fn read_dashes_as_skipped(&mut self, is_skipped: &dyn Fn(&TaskId) -> bool) {
        if !self.dashes {
            return;
        }
        for position in 0..self.tasks.len() {
            if self.is_dash(position)
                && self.tasks[position].status == FileStatus::Open
                && is_skipped(&self.tasks[position].id)
            {
                self.tasks[position].status = FileStatus::Skipped;
            }
        }
    }

    fn is_skipped_by_dash(&self, id: &TaskId) -> bool {
        self.by_id.get(id).is_some_and(|&position| {
            self.is_dash(position)
                && self.places[position].note.is_none()
                && self.tasks[position].status == FileStatus::Skipped
        })
    }

    fn is_dash(&self, position: usize) -> bool {
        self.dialect == Dialect::Markdown && &self.text[self.places[position].mark.clone()] == "-"
    }

    /// The line on which a task's id stands (its box in Markdown), counted from 1.
    pub fn line_of(&self, id: &str) -> Option<usize> {
        let position = *self.by_id.get(id)?;
        Some(json::line_at(self.text.as_bytes(), self.places[position].id_at))
    }

    /// Refuses a file in which nothing was recognised, and says what it seems to be. A list of tasks that is there
    /// and empty is fine.
    pub fn recognised(&self) -> Result<(), Problems> {
        if self.dialect.family() != Family::Boxes || !self.tasks.is_empty() {
            return Ok(());
        }
        let Some(seems) = recognise::seems(&self.file, &self.text) else { return Ok(()) };
        let message = format!(
            "no task is recognised; looked for boxes (`- [ ] text`) outside of code, comments and quotes, headings such \
             as `## Task 1: text`, and tables with a status; the file seems to be {seems}"
        );
        Err(Problems(vec![Problem { file: self.file.clone(), line: 1, message }]))
    }

    /// May a first task be added to a file in which none was recognised? A note may become a list; another program's
    /// file may not.
    pub fn may_become_list(&self) -> bool {
        self.dialect != Dialect::Markdown || recognise::is_markdown(&self.file) || self.recognised().is_ok()
    }

    /// What tasks ask for and this build cannot do: fields that would change the order of work, its
    /// completion or who does it. Roles beside the usual ones are known if `knows_role` says so.
    pub fn unsupported(&self, knows_role: &dyn Fn(&str) -> bool) -> Vec<Problem> {
        let mut findings = Findings::default();
        let mut report = |id: &TaskId, done_too: bool, message: &str| {
            let Some(&position) = self.by_id.get(id) else { return };
            let counts = match self.tasks[position].status {
                FileStatus::Open | FileStatus::Failed => true,
                FileStatus::Done => done_too,
                FileStatus::Skipped => false,
            };
            if counts {
                findings.add(self.places[position].id_at, format!("`{id}`: {message}"));
            }
        };
        for NotYet { task, message, done_too } in &self.not_yet {
            report(task, *done_too, message);
        }
        for (id, lookalike) in &self.lookalikes {
            let is_news =
                self.task(id.as_str()).is_some_and(|task| lookalike.is_news(task, &self.tasks, &self.by_id));
            if is_news {
                report(id, false, &lookalike.message());
            }
        }
        for task in &self.tasks {
            if let Some(message) = not_yet::work(task) {
                report(&task.id, false, &message);
            } else if let Some(message) = not_yet::role(task, knows_role) {
                report(&task.id, false, &message);
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
    not_yet: Vec<NotYet>,
    lookalikes: Vec<(TaskId, Lookalike)>,
    /// What is read as words though it may be meant as more.
    remarks: Vec<(TaskId, String)>,
    spellings: Spellings,
    status: Status,
    dashes: bool,
    unknown_marks: Vec<(TaskId, &'static str)>,
    front: Option<Front>,
}

impl Parsed {
    fn new(dialect: Dialect, list: Range<usize>) -> Self {
        Self {
            dialect,
            tasks: Vec::new(),
            places: Vec::new(),
            list,
            not_yet: Vec::new(),
            lookalikes: Vec::new(),
            remarks: Vec::new(),
            spellings: Spellings::default(),
            status: dialect.profile().status,
            dashes: false,
            unknown_marks: Vec::new(),
            front: None,
        }
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

    /// Adds what was read of an object, with what was not.
    fn add_json(&mut self, task: Task, place: Place, fields: Fields<'_, '_>, not_yet: Vec<NotYet>) {
        self.not_yet.extend(not_yet);
        self.spellings.depends_on = self.spellings.depends_on.or_else(|| fields.depends_key());
        let id = || task.id.clone();
        self.lookalikes.extend(fields.lookalikes.into_iter().map(|lookalike| (id(), lookalike)));
        self.add_checks(&task.id, fields.checks);
        self.add(task, place);
    }

    /// What is to be said of the checks of a task.
    fn add_checks(&mut self, id: &TaskId, checks: Checks) {
        self.not_yet.extend(checks.unclear.into_iter().map(|message| NotYet::new(id, message)));
        self.remarks.extend(checks.told.into_iter().map(|message| (id.clone(), message)));
    }

    /// Puts tasks into another order.
    fn reorder(&mut self, order: &[usize]) {
        let take = |position: &usize| (self.tasks[*position].clone(), self.places[*position].clone());
        (self.tasks, self.places) = order.iter().map(take).unzip();
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
    /// Plan: the note that a step failed; Markdown: that a task is skipped. With the blank before it.
    note: Option<Range<usize>>,
    /// Where such a note goes.
    note_at: usize,
    /// Everything that says the status, where that is more than one mark.
    marks: Vec<Mark>,
}

impl Place {
    fn json(span: Range<usize>, id_at: usize) -> Self {
        Self { span, id_at, mark: 0..0, rank: None, note: None, note_at: 0, marks: Vec::new() }
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
fn parse_text(file_name: &str, text: &str, reading: Reading<'_>, findings: &mut Findings) -> Parsed {
    let name = file_name.to_ascii_lowercase();
    if beads::are_lines(&name, text) {
        return beads::parse(text, findings);
    }
    if name.ends_with(".json") || looks_like_json(text) {
        return parse_json(text, reading.tag, findings);
    }
    if name.ends_with(".yaml") || name.ends_with(".yml") {
        return yaml::parse(text, findings);
    }
    if let Some(parsed) = backlog_md::parse(text) {
        return parsed;
    }
    if let Some(at) = outline::gsd_plan(text) {
        let message = "a plan of GSD, whose tasks have no place for a status; run its `.planning/ROADMAP.md`";
        findings.add(at, message);
        return Parsed::new(Dialect::Headings, 0..0);
    }
    plan::parse(file_name, text, findings)
        .or_else(|| outline::parse(file_name, text, reading.keep))
        .unwrap_or_else(|| markdown::parse(file_name, text))
}

/// Markdown may start with a bracket too, but not like this.
fn looks_like_json(text: &str) -> bool {
    let mut start = text.trim_start_matches(BOM).chars().filter(|c| !c.is_whitespace());
    match (start.next(), start.next()) {
        (Some('{'), Some('"' | '}')) | (Some('['), Some('{')) => true,
        (Some(_), _) | (None, _) => false,
    }
}

fn parse_json(text: &str, tag: Option<&str>, findings: &mut Findings) -> Parsed {
    match Document::scan(text) {
        Ok(document) => formats::parse_document(document.root(), tag, findings),
        Err(error) => {
            findings.add(error.offset, error.message);
            Parsed::new(Dialect::Prd, 0..0)
        }
    }
}
