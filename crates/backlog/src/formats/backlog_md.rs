//! Backlog.md: a file is a task, with its status in the front matter and its acceptance criteria as boxes.
//!
//! What it depends on stands in other files, which are not read with it: such a task is named, and not run while it
//! is not done.

use wiggum_core::ids::TaskId;
use wiggum_core::task::{Criterion, FileStatus, Task};

use super::mark::Mark;
use super::markdown::{self, Lines, atx_level, checkbox, list_item};
use super::outline::front_matter_end;
use super::words::Words;
use super::{Dialect, Profile, outline, yaml};
use crate::Parsed;
use crate::not_yet::NotYet;

pub(crate) const PROFILE: Profile = Profile {
    name: "Backlog.md",
    unit: "the file is a task; its acceptance criteria are boxes",
    agent_ticks: false,
    ..outline::HEADINGS
};

static WORDS: Words = Words {
    meanings: &[
        ("To Do", FileStatus::Open),
        ("In Progress", FileStatus::Open),
        ("Backlog", FileStatus::Open),
        ("Open", FileStatus::Open),
        ("Pending", FileStatus::Open),
        ("Ready", FileStatus::Open),
        ("Done", FileStatus::Done),
        ("Complete", FileStatus::Done),
        ("Completed", FileStatus::Done),
        ("Closed", FileStatus::Done),
        ("Deferred", FileStatus::Skipped),
        ("Draft", FileStatus::Skipped),
        ("Blocked", FileStatus::Skipped),
        ("Cancelled", FileStatus::Skipped),
        ("Archived", FileStatus::Skipped),
        ("Review", FileStatus::Skipped),
        ("In Review", FileStatus::Skipped),
    ],
    in_progress: &["In Progress"],
    has_skipped_flag: false,
};

/// `None` if this is another kind of Markdown.
pub(crate) fn parse(text: &str) -> Option<Parsed> {
    let body_at = front_matter_end(text);
    let front = text[..body_at].trim_start_matches(crate::json::BOM);
    let inside = front.trim_end().strip_prefix("---")?.strip_suffix("---")?;
    let values = yaml::read(inside)?;
    let said = |key: &str| values.get(key).and_then(yaml::words);
    let (id, title, word) = (said("id")?, said("title")?, said("status")?);
    // Other programs' notes may have these three as well, but not these.
    ["assignee", "dependencies", "created_date", "labels"].iter().find(|key| values.get(**key).is_some())?;
    let status_at = yaml::value_of(text, 0..body_at, "status", 0)?;
    let id = TaskId::new(id);
    let mut task = Task::new(id.clone(), title);
    let mut parsed = Parsed::new(Dialect::BacklogMd, 0..0);
    task.status = WORDS.meaning_of(&word).unwrap_or_else(|| {
        let message = format!("unknown status `{word}`; expected one like To Do, In Progress, Done");
        parsed.not_yet.push(NotYet::new(&id, message));
        FileStatus::Open
    });
    let others: Vec<String> = values.get("dependencies").map(yaml::list).unwrap_or_default();
    if !others.is_empty() {
        let others = others.join(", ");
        let message = format!("depends on {others}, which are other files; run it once they are done");
        parsed.not_yet.push(NotYet::new(&id, message));
    }
    task.labels = values.get("labels").map(yaml::list).unwrap_or_default();
    (task.description, task.criteria) = body(&text[body_at..]);
    let own = |status: FileStatus, usual: &str| {
        if task.status == status { Some(text[status_at.clone()].to_owned()) } else { Some(usual.to_owned()) }
    };
    let mark = Mark {
        open: own(FileStatus::Open, "To Do"),
        done: own(FileStatus::Done, "Done"),
        skipped: own(FileStatus::Skipped, "Deferred"),
        at: status_at,
    };
    parsed.add_marked((task, vec![mark]), 0..text.len());
    Some(parsed)
}

/// The sections as description, and the boxes as criteria: those below a heading that says so, or all of them.
fn body(text: &str) -> (String, Vec<Criterion>) {
    let mut lines = Vec::new();
    let mut criteria = Vec::new();
    let mut is_criteria = false;
    for line in Lines::new(text) {
        let content = line.text.trim();
        if let Some(level) = atx_level(content) {
            is_criteria = content[level..].to_lowercase().contains("criteria");
        }
        let said = list_item(line.text).and_then(|item| checkbox(item.content));
        match said {
            Some((_, said)) if is_criteria => {
                let said = said
                    .split_once(' ')
                    .filter(|(number, _)| is_number(number))
                    .map_or(said, |(_, rest)| rest);
                criteria.push(markdown::text::criterion(said).0);
            }
            // Ticked or not, the task stays the same.
            Some((_, said)) => lines.push(format!("- [ ] {said}")),
            None if content.starts_with("<!--") && content.ends_with("-->") => {}
            None if is_criteria && atx_level(content).is_some() => {}
            None => lines.push(line.text.trim_end().to_owned()),
        }
    }
    (lines.join("\n").trim_matches('\n').to_owned(), criteria)
}

/// `#1`, as it numbers criteria.
fn is_number(word: &str) -> bool {
    word.strip_prefix('#')
        .is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
}
