//! beads: `.beads/issues.jsonl`, an issue on each line.
//!
//! Issues are taken by priority, 0 first, and then by age. One that `blocks` another is done before it, and so are the
//! children of an epic. Deleted issues (`tombstone`) are no tasks, and what is blocked or deferred is set aside.

use wiggum_core::ids::TaskId;
use wiggum_core::task::{FileStatus, Task};

use super::words::Words;
use super::{Dialect, Family, Order, Profile, Status};
use crate::fields::{Field, Fields, title_or};
use crate::formats::markdown::Lines;
use crate::json::{Document, Kind, Value};
use crate::problem::Findings;
use crate::{Parsed, Place, unique};

pub(crate) const PROFILE: Profile = Profile {
    name: "beads",
    unit: "an issue is a task; children come before their epic",
    family: Family::Lines,
    order: Order::Priority,
    status: Status::Words("status", &WORDS),
    says_failed: false,
    nests: false,
    agent_ticks: false,
    says: &[],
    criteria_key: "acceptance_criteria",
    depends_key: "dependencies",
};

static WORDS: Words = Words {
    meanings: &[
        ("open", FileStatus::Open),
        ("in_progress", FileStatus::Open),
        ("closed", FileStatus::Done),
        ("deferred", FileStatus::Skipped),
        ("blocked", FileStatus::Skipped),
        ("hooked", FileStatus::Skipped),
        ("pinned", FileStatus::Skipped),
        ("draft", FileStatus::Skipped),
        ("review", FileStatus::Skipped),
    ],
    in_progress: &["in_progress"],
    has_skipped_flag: false,
};

const DELETED: &str = "tombstone";

/// Does a file hold a JSON object on each line?
pub(crate) fn are_lines(name: &str, text: &str) -> bool {
    if name.ends_with(".jsonl") {
        return true;
    }
    let mut lines = Lines::new(text).map(|line| line.text.trim()).filter(|line| !line.is_empty());
    let is_issue = |line: &str| {
        line.starts_with('{')
            && line.ends_with('}')
            && Document::scan(line).is_ok_and(|document| document.root().get("issue_type").is_some())
    };
    lines.next().is_some_and(is_issue)
}

pub(crate) fn parse(text: &str, findings: &mut Findings) -> Parsed {
    let mut parsed = Parsed::new(Dialect::Beads, 0..text.len());
    let mut ages = Vec::new();
    for line in Lines::new(text).filter(|line| !line.text.trim().is_empty()) {
        let mut own = Findings::default();
        match Document::scan(line.text) {
            Ok(document) => ages.extend(issue(document.root(), line.start, &mut own, &mut parsed)),
            Err(error) => own.add(error.offset, error.message),
        }
        findings.append_at(own, line.start);
    }
    // Lines are in the order of made-up ids.
    let mut order: Vec<usize> = (0..ages.len()).collect();
    order.sort_by_key(|position| &ages[*position]);
    parsed.reorder(&order);
    parsed.sort_by_rank();
    link_children(&mut parsed.tasks);
    parsed
}

/// Adds the issue of a line, and says when it was created.
fn issue(root: Value<'_>, line: usize, findings: &mut Findings, parsed: &mut Parsed) -> Option<String> {
    if root.kind() != Kind::Object {
        findings
            .add(root.start(), format!("{} on a line; expected an issue as an object", root.kind().name()));
        return None;
    }
    let word = root.get("status").and_then(Value::as_str);
    if word.is_some_and(|word| word == DELETED) || root.get("id").is_none() && root.get("title").is_none() {
        return None;
    }
    let mut fields = Fields::read(root, findings);
    let Some((id, id_at)) = fields.id() else {
        fields.missing("`id`");
        return None;
    };
    let mut not_yet = Vec::new();
    let description = fields.string(Field::Description, "description").unwrap_or_default();
    let mut task = Task::new(id.clone(), title_or(fields.text(Field::Title), &description, &id));
    task.description = description;
    task.criteria = fields.criteria();
    task.labels = fields.texts(Field::Labels);
    let said: Vec<String> =
        [Field::Design, Field::Notes].into_iter().filter_map(|field| fields.text(field)).collect();
    task.notes = (!said.is_empty()).then(|| said.join("\n\n"));
    task.priority = fields.value(Field::Priority).and_then(Value::as_integer).unwrap_or(0);
    let links: Vec<Value<'_>> =
        fields.value(Field::Dependencies).map(|list| list.items().collect()).unwrap_or_default();
    let end =
        |link: &Value<'_>| link.get("depends_on_id").and_then(Value::as_str).map(|id| TaskId::new(&*id));
    let is = |link: &Value<'_>, kinds: &[&str]| {
        let kind = link.get("type").and_then(Value::as_str);
        kinds.iter().any(|known| kind.as_deref().unwrap_or("blocks") == *known)
    };
    task.parent = links.iter().find(|link| is(link, &["parent-child", "parent_child"])).and_then(end);
    let blocking = links.iter().filter(|link| is(link, &["blocks", "conditional-blocks", "waits-for"]));
    task.depends_on = unique(blocking.filter_map(end).collect());
    if let Some(word) = fields.value(Field::Status).and_then(Value::as_str) {
        parsed.spellings.status.note(&WORDS, &word);
    }
    task.status = super::word_status(&fields, Field::Status, &WORDS, &id, &mut not_yet);
    let span = root.start() + line..root.end() + line;
    let place = Place { rank: fields.rank(), ..Place::json(span, id_at + line) };
    let age = fields.text(Field::CreatedAt).unwrap_or_default();
    parsed.add_json(task, place, fields, not_yet);
    Some(age)
}

/// An epic is done after its children; what one of them waits on of its own epic is said by that.
fn link_children(tasks: &mut [Task]) {
    let positions: std::collections::HashMap<TaskId, usize> =
        tasks.iter().enumerate().map(|(position, task)| (task.id.clone(), position)).collect();
    for position in 0..tasks.len() {
        let Some(parent) = tasks[position].parent.clone() else { continue };
        let Some(&above) = positions.get(&parent) else {
            tasks[position].parent = None;
            continue;
        };
        tasks[position].depends_on.retain(|id| *id != parent);
        let id = tasks[position].id.clone();
        if !tasks[above].depends_on.contains(&id) {
            tasks[above].depends_on.push(id);
        }
    }
    // What an issue waits on may have been deleted, or live elsewhere.
    for task in tasks {
        task.depends_on.retain(|id| positions.contains_key(id));
    }
}
