//! The formats of backlogs. Each has a profile, which says how its files are ordered and edited, beside the reader
//! that recognises and reads them.
//!
//! A new format is a file of this folder, a line in [`Dialect::profile`], and a line in `docs/backlogs.md`.

use wiggum_core::task::{FileStatus, Selection};

pub(crate) mod mark;
pub(crate) mod markdown;
pub(crate) mod plan;
pub(crate) mod prd;
pub(crate) mod tasks;
pub(crate) mod words;

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
    /// Checkboxes: fix_plan.md, PRD.md, TODO.md.
    Markdown,
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
            Self::Markdown => &markdown::PROFILE,
            Self::Plan => &plan::PROFILE,
        }
    }

    /// The word users see for this dialect.
    pub fn name(self) -> &'static str {
        self.profile().name
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
    /// A word under `status`.
    Words(&'static Words),
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
