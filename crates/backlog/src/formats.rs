//! The formats of backlogs. Each has a profile, which says how its files are ordered and edited, beside the reader
//! that recognises and reads them.
//!
//! A new format is a file of this folder, a line in [`Dialect::profile`], and a line in `docs/backlogs.md`.

use wiggum_core::ids::TaskId;
use wiggum_core::task::{FileStatus, Selection};

use crate::Parsed;
use crate::fields::{Field, Fields};
use crate::json::{Kind, Member, Value};
use crate::not_yet::NotYet;
use crate::problem::Findings;

pub(crate) mod backlog_md;
pub(crate) mod beads;
pub(crate) mod features;
pub(crate) mod mark;
pub(crate) mod markdown;
pub(crate) mod outline;
pub(crate) mod plan;
pub(crate) mod prd;
pub(crate) mod task_master;
pub(crate) mod tasks;
pub(crate) mod words;
pub(crate) mod yaml;

use words::Words;

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
    /// Task Master's tasks with `subtasks`, in lists by tag or in one.
    TaskMaster,
    /// Features, stories or items, each with `passes`, `completed`, `done` or a word for its status.
    Features,
    /// An issue of beads on each line.
    Beads,
    /// Checkboxes: fix_plan.md, PRD.md, TODO.md.
    Markdown,
    /// Headings as tasks, and what stands below each as its steps.
    Headings,
    /// Plain items of a list, in a file for work.
    Items,
    /// Rows of a table with a column for the status.
    Table,
    /// Backlog.md: a file is a task.
    BacklogMd,
    /// BMAD's sprint-status.yaml.
    SprintStatus,
    /// `tasks:` in YAML.
    RalphyYaml,
    /// Plan.md: front matter with a plan_id, and steps with an action type.
    Plan,
}

impl Dialect {
    /// The list of all formats.
    pub(crate) fn profile(self) -> &'static Profile {
        match self {
            Self::Prd => &prd::PRD,
            Self::Snarktank => &prd::SNARKTANK,
            Self::RalphTui => &prd::RALPH_TUI,
            Self::Ralphy => &prd::RALPHY,
            Self::Tasks => &tasks::PROFILE,
            Self::TaskMaster => &task_master::PROFILE,
            Self::Features => &features::PROFILE,
            Self::Beads => &beads::PROFILE,
            Self::Markdown => &markdown::PROFILE,
            Self::Headings => &outline::HEADINGS,
            Self::Items => &outline::ITEMS,
            Self::Table => &outline::TABLE,
            Self::BacklogMd => &backlog_md::PROFILE,
            Self::SprintStatus => &yaml::SPRINT_STATUS,
            Self::RalphyYaml => &yaml::RALPHY,
            Self::Plan => &plan::PROFILE,
        }
    }

    /// The word users see for this dialect.
    pub fn name(self) -> &'static str {
        self.profile().name
    }

    /// What is a task in this dialect, for people.
    pub fn unit(self) -> &'static str {
        self.profile().unit
    }

    /// By what the next task is chosen, for people.
    pub fn order(self) -> &'static str {
        match self.profile().order {
            Order::File => "in the order of the file",
            Order::Priority => "by priority, then in the order of the file",
            Order::Score => "by phase and score",
        }
    }

    /// Has this dialect a way to write that status? One without reads back as open.
    pub fn can_say(self, status: FileStatus) -> bool {
        match status {
            FileStatus::Open | FileStatus::Done | FileStatus::Skipped => true,
            FileStatus::Failed => self.profile().says_failed,
        }
    }

    /// Are tasks inside of others parts of those?
    pub(crate) fn nests(self) -> bool {
        self.profile().nests
    }

    pub(crate) fn family(self) -> Family {
        self.profile().family
    }

    /// Is a priority part of this dialect? Elsewhere a field of that name is its owner's.
    pub(crate) fn has_priority(self) -> bool {
        self.profile().order != Order::File
    }

    /// Tasks of these dialects are taken by `priority`, ties by their place in the file.
    pub(crate) fn is_ordered_by_priority(self) -> bool {
        self.profile().order == Order::Priority
    }
}

/// What is to be known of a format beside how it is read.
#[derive(Debug)]
pub(crate) struct Profile {
    pub(crate) name: &'static str,
    /// What is a task in it, in a sentence for people.
    pub(crate) unit: &'static str,
    pub(crate) family: Family,
    pub(crate) order: Order,
    pub(crate) status: Status,
    pub(crate) says_failed: bool,
    /// Is what stands inside a task part of it, and done before it?
    pub(crate) nests: bool,
    /// Does an agent tick its own box, by the custom of the format? Such a tick is a claim.
    pub(crate) agent_ticks: bool,
    /// What of a new task it has a place for, beside id, title, description, criteria and dependencies.
    pub(crate) says: &'static [Part],
    /// How a new member with criteria is called, and one with dependencies.
    pub(crate) criteria_key: &'static str,
    pub(crate) depends_key: &'static str,
}

/// What the places of tasks are made of, and so how they are edited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    /// JSON objects of a list.
    Objects,
    /// Boxes of Markdown lists, nested ones being parts of those around them.
    Boxes,
    /// Steps of a Plan.md.
    Steps,
    /// A JSON object on each line.
    Lines,
    /// Stretches of text with a place for their status: headings, bullets, rows, entries of YAML.
    Marked,
}

/// By what the next task is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    File,
    /// The lowest number first.
    Priority,
    Score,
}

impl Order {
    pub(crate) fn selection(self) -> Selection {
        match self {
            Self::File | Self::Priority => Selection::FileOrder,
            Self::Score => Selection::Score,
        }
    }
}

/// Where a status stands.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Status {
    /// `true` under this key is done, and `skipped` stands beside it.
    Flag(&'static str),
    /// A word under this key.
    Words(&'static str, &'static Words),
    /// In the text, between the brackets of a box or elsewhere.
    Text,
}

/// What some formats can say of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Role,
    Phase,
    Complexity,
    Parent,
    Labels,
}

/// The status that a word of a task says. A word that nobody knows is read as open, and the task is not run.
fn word_status(
    fields: &Fields<'_, '_>,
    field: Field,
    words: &Words,
    id: &TaskId,
    not_yet: &mut Vec<NotYet>,
) -> FileStatus {
    let Some(value) = fields.value(field) else { return FileStatus::Open };
    let word = value.as_str().unwrap_or_else(|| value.raw().into());
    words.meaning_of(&word).unwrap_or_else(|| {
        let known: Vec<&str> = words.meanings.iter().take(MAX_WORDS).map(|(word, _)| *word).collect();
        let message = format!("unknown status `{word}`; expected one like {}", known.join(", "));
        not_yet.push(NotYet::new(id, message));
        FileStatus::Open
    })
}

/// Words that are named where one is not known.
const MAX_WORDS: usize = 12;

/// The list in a document, by its key, and of which format it is.
pub(crate) fn parse_document(root: Value<'_>, tag: Option<&str>, findings: &mut Findings) -> Parsed {
    if root.kind() == Kind::Array {
        return match is_wide(root) {
            true => features::parse(root, root, findings),
            false => parse_tasks(root, root, findings),
        };
    }
    let is_list = |member: &Member<'_>| member.key.as_str().is_some_and(|key| KEYS.contains(&key.as_ref()));
    let lists: Vec<Member<'_>> = root.members().filter(is_list).collect();
    let Some(list) = lists.first() else { return parse_unnamed(root, tag, findings) };
    let is_plain = |list: &&Member<'_>| {
        let is_usual = list.key.as_str().is_some_and(|key| KEYS[..2].contains(&key.as_ref()));
        is_usual || list.value.items().next().is_some()
    };
    for second in lists.iter().skip(1).filter(is_plain) {
        findings.add(second.key.start(), "second list of tasks; expected one `userStories` or `tasks`");
    }
    let key = list.key.as_str().unwrap_or_default();
    if list.value.kind() != Kind::Array {
        let found = list.value.kind().name();
        findings.add(list.value.start(), format!("`{key}` is {found}; expected an array"));
        return Parsed::new(Dialect::Prd, 0..0);
    }
    match key.as_ref() {
        "userStories" if !has_only_words(list.value) => {
            prd::parse_stories(prd::dialect_of(root, list.value), list.value, findings)
        }
        "tasks" => parse_tasks(root, list.value, findings),
        _ => features::parse(root, list.value, findings),
    }
}

/// Keys of lists of tasks, of which a document has one.
const KEYS: [&str; 6] = ["userStories", "tasks", "user_stories", "stories", "features", "items"];

fn parse_tasks(root: Value<'_>, list: Value<'_>, findings: &mut Findings) -> Parsed {
    if let Some(seems) = of_an_editor(list) {
        findings.add(list.start(), format!("no tasks to work on; the file seems to be {seems}"));
        return Parsed::new(Dialect::Tasks, 0..0);
    }
    let is_bare = root.start() == list.start();
    if task_master::is_list(list) {
        return task_master::parse(list, findings);
    }
    if is_wide(list) {
        return features::parse(root, list, findings);
    }
    // Without this, a wrapped tasks.json would read as ralphy's with nothing completed.
    if is_bare || list.items().any(|item| item.get("status").is_some()) {
        return tasks::parse(list, findings);
    }
    prd::parse_ralphy(list, findings)
}

/// A document without a list of the usual name: lists by tag, or one list of another name.
fn parse_unnamed(root: Value<'_>, tag: Option<&str>, findings: &mut Findings) -> Parsed {
    if let Some(list) = task_master::tagged(root, tag) {
        return task_master::parse(list, findings);
    }
    let lists: Vec<Member<'_>> = root.members().filter(|member| features::is_list(member.value)).collect();
    match lists.as_slice() {
        [list] => return features::parse(root, list.value, findings),
        [] => {
            let expected =
                "an array of tasks, or an object with `userStories`, `tasks`, `stories` or `features`";
            let seems = if root.get("$schema").is_some() && root.get("properties").is_some() {
                "; the file seems to be a JSON schema"
            } else {
                ""
            };
            findings.add(root.start(), format!("no list of tasks; expected {expected}{seems}"));
        }
        [first, second, ..] => {
            let names = [first, second].map(|list| format!("`{}`", list.key.as_str().unwrap_or_default()));
            let message = format!("several lists of tasks ({}, …); expected one", names.join(", "));
            findings.add(second.key.start(), message);
        }
    }
    Parsed::new(Dialect::Prd, 0..0)
}

/// Do stories say their status as words, and nothing under `passes`?
fn has_only_words(list: Value<'_>) -> bool {
    let has_word =
        |item: Value<'_>| item.get("status").and_then(Value::as_str).is_some_and(|word| !word.is_empty());
    list.items().next().is_some() && list.items().all(|item| has_word(item) && item.get("passes").is_none())
}

/// Does a list say what is done in a way that tasks.json and PRD files do not?
fn is_wide(list: Value<'_>) -> bool {
    let has = |key: &str| list.items().any(|item| item.get(key).is_some());
    let is_tasks_json = tasks::OWN_KEYS.iter().any(|key| has(key));
    if list.items().next().is_none() || is_tasks_json || has("passes") && has("id") && has("status") {
        return false;
    }
    match features::status_in(list) {
        Some(Status::Flag("passes")) => true,
        Some(Status::Flag("completed") | Status::Text) | None => false,
        Some(Status::Flag(_) | Status::Words("state", _)) => true,
        Some(Status::Words(..)) => {
            let words: Vec<_> = list.items().filter_map(|item| item.get("status")?.as_str()).collect();
            let is_usual = |word: &str| tasks::WORDS.meanings.iter().any(|(known, _)| *known == word);
            let is_known = |word: &str| features::WORDS.meaning_of(word).is_some();
            words.iter().any(|word| !is_usual(word) && is_known(word))
        }
    }
}

/// What editors keep in files of the same name.
fn of_an_editor(list: Value<'_>) -> Option<&'static str> {
    let has = |item: Value<'_>, keys: &[&str]| keys.iter().any(|key| item.get(key).is_some());
    let is_own = |item: Value<'_>| {
        has(item, &["command", "type", "script", "taskName"])
            && !has(item, &["status", "passes", "completed", "id"])
    };
    (list.items().next().is_some() && list.items().all(is_own))
        .then_some("an editor's list of commands to run, not work to do")
}
