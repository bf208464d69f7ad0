//! Lists of tasks in YAML: BMAD's `sprint-status.yaml`, and ralphy's `tasks:`.
//!
//! What they say is read by a reader of YAML, entry by entry; where a value stands is found by the indentation of its
//! lines, since only that is ever changed. Flow style and anchors are read where they are values, not as structure.

use std::ops::Range;

use serde_json::Value;
use wiggum_core::ids::TaskId;
use wiggum_core::task::{Criterion, FileStatus, Task};

use super::mark::Mark;
use super::markdown::{Line, Lines};
use super::words::Words;
use super::{Dialect, Profile, features, outline};
use crate::checks::{Checks, Sense};
use crate::not_yet::{Ascending, NotYet};
use crate::problem::Findings;
use crate::slug::Slugs;
use crate::{Parsed, unique};

pub(crate) const SPRINT_STATUS: Profile = Profile {
    name: "sprint-status.yaml",
    unit: "a story is a task; epics and retrospectives are not",
    agent_ticks: false,
    ..outline::HEADINGS
};

pub(crate) const RALPHY: Profile =
    Profile { name: "ralphy YAML", unit: "an entry of the list is a task", ..SPRINT_STATUS };

/// A story that is drafted or ready is to be built; one in review waits for its reviewer.
static STORY_WORDS: Words = Words {
    meanings: &[
        ("ready-for-dev", FileStatus::Open),
        ("backlog", FileStatus::Open),
        ("drafted", FileStatus::Open),
        ("contexted", FileStatus::Open),
        ("in-progress", FileStatus::Open),
        ("todo", FileStatus::Open),
        ("pending", FileStatus::Open),
        ("done", FileStatus::Done),
        ("completed", FileStatus::Done),
        ("deployed", FileStatus::Done),
        ("deferred", FileStatus::Skipped),
        ("review", FileStatus::Skipped),
        ("optional", FileStatus::Skipped),
        ("blocked", FileStatus::Skipped),
        ("cancelled", FileStatus::Skipped),
        ("skipped", FileStatus::Skipped),
        ("superseded", FileStatus::Skipped),
    ],
    in_progress: &["in-progress"],
    has_skipped_flag: false,
};

pub(crate) fn parse(text: &str, findings: &mut Findings) -> Parsed {
    let lines: Vec<Line<'_>> = Lines::new(text).collect();
    let top = |key: &str| lines.iter().position(|line| key_of(line.text) == Some((0, key)));
    if let Some(at) = top("development_status") {
        return sprint_status(text, &lines, at, findings);
    }
    let list =
        ["tasks", "features", "stories", "userStories", "user_stories", "items"].into_iter().find_map(top);
    if let Some(at) = list {
        return items(text, &lines, at, findings);
    }
    let expected = "`tasks:` with a list, or the `development_status:` of a sprint-status.yaml";
    findings.add(0, format!("no list of tasks in this YAML; expected {expected}"));
    Parsed::new(Dialect::RalphyYaml, 0..0)
}

fn sprint_status(text: &str, lines: &[Line<'_>], at: usize, findings: &mut Findings) -> Parsed {
    let mut parsed = Parsed::new(Dialect::SprintStatus, 0..0);
    let location = lines.iter().find_map(|line| {
        let (_, key) = key_of(line.text)?;
        let said = line.text.split_once(':')?.1.split(" #").next()?.trim().trim_matches(['"', '\'']);
        (key == "story_location").then(|| said.trim_end_matches('/').to_owned())
    });
    let mut epic = String::new();
    for line in &lines[at + 1..] {
        let content = line.text.trim();
        if let Some(comment) = content.strip_prefix('#') {
            let comment = comment.trim();
            if comment.to_lowercase().starts_with("epic") {
                comment.clone_into(&mut epic);
            }
            continue;
        }
        if content.is_empty() {
            continue;
        }
        let Some((indent, key)) = key_of(line.text) else {
            findings.add(line.start, "expected `story: status` on a line");
            continue;
        };
        if indent == 0 {
            break;
        }
        // What an epic's status is follows from its stories, and a retrospective is for people.
        if key.starts_with("epic-")
            || key.ends_with("-retrospective")
            || !key.starts_with(|c: char| c.is_ascii_digit())
        {
            continue;
        }
        let Some(value) = value_on(*line).filter(|at| !at.is_empty()) else {
            findings.add(line.start, format!("`{key}` has no status"));
            continue;
        };
        let word = text[value.clone()].trim_matches(['"', '\'']);
        let id = TaskId::new(key);
        let mut task = Task::new(id.clone(), title_of(key));
        let file =
            location.as_ref().map_or_else(|| format!("{key}.md"), |folder| format!("{folder}/{key}.md"));
        let epic = if epic.is_empty() { String::new() } else { format!("{epic}\n") };
        task.description = format!("{epic}The story is in {file}.");
        task.status = STORY_WORDS.meaning_of(word).unwrap_or_else(|| {
            let message = format!("unknown status `{word}`; expected one like backlog, ready-for-dev, done");
            parsed.not_yet.push(NotYet::new(&id, message));
            FileStatus::Open
        });
        let own = |status: FileStatus, usual: &str| {
            Some(if task.status == status { text[value.clone()].to_owned() } else { usual.to_owned() })
        };
        let mark = Mark {
            open: own(FileStatus::Open, "ready-for-dev"),
            done: own(FileStatus::Done, "done"),
            skipped: own(FileStatus::Skipped, "deferred"),
            at: value.clone(),
        };
        parsed.add_marked((task, vec![mark]), line.start..line.end());
    }
    parsed
}

/// `1-2-user-login` as words.
fn title_of(key: &str) -> String {
    let words = key.trim_start_matches(|c: char| c.is_ascii_digit() || c == '-').replace('-', " ");
    let mut letters = words.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => key.to_owned(),
    }
}

/// A list of entries that say with `completed`, `passes`, `done` or `status` whether they are done.
fn items(text: &str, lines: &[Line<'_>], at: usize, findings: &mut Findings) -> Parsed {
    let mut parsed = Parsed::new(Dialect::RalphyYaml, 0..0);
    let blocks = blocks(lines, at + 1);
    let entries: Vec<(Range<usize>, usize, Value)> = blocks
        .into_iter()
        .filter_map(|(range, indent)| {
            let block = &text[range.clone()];
            let dedented: String = block.replacen('-', " ", 1);
            let value = read(&dedented);
            if !value.as_ref().is_some_and(Value::is_object) {
                findings.add(
                    range.start,
                    "an entry that cannot be read; expected `- title: …` with its members below",
                );
            }
            Some((range, indent, value.filter(Value::is_object)?))
        })
        .collect();
    let flags = ["completed", "passes", "done"];
    let has = |key: &str| entries.iter().any(|(_, _, value)| value.get(key).is_some());
    let key = flags.into_iter().chain(["status"]).find(|key| has(key)).unwrap_or("completed");
    let mut slugs = Slugs::default();
    for (_, _, value) in &entries {
        slugs.reserve(value.get("id").and_then(words).as_deref());
    }
    let mut groups = Ascending::default();
    let mut titles = Vec::new();
    for (range, indent, value) in entries {
        let said = |key: &str| value.get(key).and_then(words);
        let title = said("title").or_else(|| said("name")).or_else(|| said("description"));
        let id = said("id").or_else(|| title.as_ref().map(|title| slugs.make(title)));
        let (Some(id), Some(title)) = (id, title) else {
            findings.add(range.start, "missing field; expected a `title`");
            continue;
        };
        let id = TaskId::new(id);
        titles.push((title.clone(), id.clone()));
        let mut task = Task::new(id.clone(), title);
        task.description = said("description").unwrap_or_default();
        task.notes = said("details").or_else(|| said("notes"));
        let criteria = ["acceptance_criteria", "acceptanceCriteria", "criteria", "steps"];
        let criteria = criteria.iter().filter_map(|key| value.get(key)).flat_map(list);
        task.criteria = criteria.map(|text| Criterion { text, check: None }).collect();
        let mut checks = Checks::default();
        for (key, value) in value.as_object().into_iter().flatten() {
            if let Some(sense) = Sense::of(key) {
                checks.add(key, sense, value);
            }
        }
        task.criteria.append(&mut checks.criteria);
        parsed.add_checks(&id, checks);
        let depends_on =
            crate::fields::DEPENDS_ON.iter().filter_map(|(_, key)| value.get(key)).flat_map(list);
        task.depends_on = unique(depends_on.map(TaskId::new).collect());
        let group = value.get("parallel_group").and_then(Value::as_i64);
        parsed.not_yet.extend(groups.next_number(&id, "parallel_group", "groups", group));
        let (is_done, is_skipped) = match value.get(key) {
            Some(Value::Bool(done)) => (*done, false),
            Some(word) => {
                let word = words(word).unwrap_or_default();
                let meaning = features::WORDS.meaning_of(&word).or_else(|| STORY_WORDS.meaning_of(&word));
                if meaning.is_none() {
                    parsed.not_yet.push(NotYet::new(&id, format!("unknown status `{word}`")));
                }
                (meaning == Some(FileStatus::Done), meaning == Some(FileStatus::Skipped))
            }
            None => (false, false),
        };
        let flag = value.get("skipped").and_then(Value::as_bool) == Some(true);
        task.status = match (is_done, is_skipped || flag) {
            (true, _) => FileStatus::Done,
            (false, true) => FileStatus::Skipped,
            (false, false) => FileStatus::Open,
        };
        let marks = marks(text, &range, indent, key, task.status, flag);
        parsed.add_marked((task, marks), range.start..range.start + text[range.clone()].trim_end().len());
    }
    for task in &mut parsed.tasks {
        for dependency in &mut task.depends_on {
            if let Some((_, id)) = titles.iter().find(|(title, _)| title == dependency.as_str()) {
                dependency.clone_from(id);
            }
        }
    }
    parsed
}

/// Where an entry says its status, or where a line that does so goes.
fn marks(
    text: &str,
    range: &Range<usize>,
    indent: usize,
    key: &str,
    now: FileStatus,
    flag: bool,
) -> Vec<Mark> {
    let line_end = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let end = range.start + text[range.clone()].trim_end().len();
    let new = |key: &str| format!("{line_end}{}{key}: true", " ".repeat(indent));
    let mut marks = Vec::new();
    let status = value_of(text, range.clone(), key, indent);
    match status {
        Some(at) if key == "status" => {
            let own = |status: FileStatus, usual: &str| {
                Some(if now == status { text[at.clone()].to_owned() } else { usual.to_owned() })
            };
            marks.push(Mark {
                open: own(FileStatus::Open, "pending"),
                done: own(FileStatus::Done, "done"),
                skipped: own(FileStatus::Skipped, "skipped"),
                at: at.clone(),
            });
            return marks;
        }
        Some(at) => marks.push(Mark {
            at,
            open: Some("false".to_owned()),
            done: Some("true".to_owned()),
            skipped: Some("false".to_owned()),
        }),
        None => marks.push(Mark { at: end..end, open: None, done: Some(new(key)), skipped: None }),
    }
    match value_of(text, range.clone(), "skipped", indent).filter(|_| flag || now != FileStatus::Skipped) {
        Some(at) => marks.push(Mark {
            at,
            open: Some("false".to_owned()),
            done: None,
            skipped: Some("true".to_owned()),
        }),
        None => marks.push(Mark { at: end..end, open: None, done: None, skipped: Some(new("skipped")) }),
    }
    marks
}

/// The entries below a key: their bytes, and the column at which their members stand.
fn blocks(lines: &[Line<'_>], from: usize) -> Vec<(Range<usize>, usize)> {
    let mut blocks: Vec<(Range<usize>, usize)> = Vec::new();
    let mut dash: Option<usize> = None;
    for line in &lines[from..] {
        let content = line.text.trim_start_matches(' ');
        let indent = line.text.len() - content.len();
        if content.trim().is_empty() || content.starts_with('#') && dash.is_none_or(|dash| indent <= dash) {
            continue;
        }
        let is_entry = content.starts_with("- ") || content.trim_end() == "-";
        if is_entry && dash.is_none_or(|dash| indent == dash) {
            dash = Some(indent);
            let rest = content[1..].trim_start_matches(' ');
            blocks.push((line.start..line.end(), indent + content.len() - rest.len()));
            continue;
        }
        match (dash, blocks.last_mut()) {
            (Some(dash), Some((range, _))) if indent > dash => range.end = line.end(),
            _ => break,
        }
    }
    blocks
}

/// Where the value of a member stands within some bytes, for members at that column.
pub(super) fn value_of(text: &str, within: Range<usize>, key: &str, column: usize) -> Option<Range<usize>> {
    let part = &text[within.clone()];
    let line = Lines::new(part).find(|line| {
        // The first line of an entry has a dash before its member.
        let spaced = if line.start == 0 { line.text.replacen('-', " ", 1) } else { line.text.to_owned() };
        key_of(&spaced) == Some((column, key))
    })?;
    let at = value_on(line)?;
    Some(at.start + within.start..at.end + within.start)
}

/// The column and the key of a line `key: …`.
fn key_of(line: &str) -> Option<(usize, &str)> {
    let content = line.trim_start_matches([' ', '\u{feff}']);
    let (key, rest) = content.split_once(':')?;
    let is_key = !key.is_empty()
        && !key.contains([' ', '#', '"', '\''])
        && (rest.is_empty() || rest.starts_with([' ', '\r']));
    is_key.then(|| (line.trim_start_matches('\u{feff}').len() - content.len(), key))
}

/// Where the value of a line `key: value  # remark` stands.
fn value_on(line: Line<'_>) -> Option<Range<usize>> {
    let colon = line.text.find(':')?;
    let rest = &line.text[colon + 1..];
    let rest = rest.find(" #").map_or(rest, |at| &rest[..at]);
    let start = colon + 1 + (rest.len() - rest.trim_start().len());
    Some(line.start + start..line.start + start + rest.trim().len())
}

/// What a piece of YAML says, if it can be read.
pub(super) fn read(text: &str) -> Option<Value> {
    serde_saphyr::from_str(text).ok()
}

/// A text or a number as words.
pub(super) fn words(value: &Value) -> Option<String> {
    let words = match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return None,
    };
    Some(words).filter(|words| !words.is_empty())
}

/// The texts of a list, or one alone.
pub(super) fn list(value: &Value) -> Vec<String> {
    match value {
        Value::Array(items) => items.iter().filter_map(words).collect(),
        other => words(other).into_iter().filter(|name| !crate::fields::names_nothing(name)).collect(),
    }
}
