//! Task Master's tasks: `{"master": {"tasks": […]}}` with a list for each tag, or `{"tasks": […]}`.
//!
//! A sub-task is a part of its task, and is done before it. Its id is `4.2`; a bare number among its dependencies is
//! one of its siblings. What waits for a review, is deferred, blocked or cancelled is set aside: nobody works on it,
//! and what depends on it waits, as it does there.

use std::collections::HashSet;

use wiggum_core::ids::TaskId;
use wiggum_core::task::{Criterion, FileStatus, Task};

use super::prd::object;
use super::words::Words;
use super::{Dialect, Family, Order, Profile, Status};
use crate::fields::{Field, Fields, RANKS, title_or};
use crate::json::{Kind, Value};
use crate::not_yet::NotYet;
use crate::problem::Findings;
use crate::{Parsed, Place, unique};

pub(crate) const PROFILE: Profile = Profile {
    name: "Task Master",
    unit: "a task, and before it each of its `subtasks`",
    family: Family::Objects,
    order: Order::Priority,
    status: Status::Words("status", &WORDS),
    says_failed: false,
    nests: true,
    agent_ticks: false,
    says: &[],
    criteria_key: "acceptanceCriteria",
    depends_key: "dependencies",
};

static WORDS: Words = Words {
    meanings: &[
        ("pending", FileStatus::Open),
        ("in-progress", FileStatus::Open),
        ("in_progress", FileStatus::Open),
        ("todo", FileStatus::Open),
        ("done", FileStatus::Done),
        ("completed", FileStatus::Done),
        ("deferred", FileStatus::Skipped),
        ("review", FileStatus::Skipped),
        ("blocked", FileStatus::Skipped),
        ("cancelled", FileStatus::Skipped),
        ("canceled", FileStatus::Skipped),
    ],
    in_progress: &["in-progress", "in_progress"],
    has_skipped_flag: false,
};

/// The list of a tag, where a document has such lists: the one asked for, `master`, or the first.
pub(super) fn tagged<'d>(root: Value<'d>, tag: Option<&str>) -> Option<Value<'d>> {
    let list_of = |value: Value<'d>| value.get("tasks").filter(|list| list.kind() == Kind::Array);
    let wanted = |name: &str| root.get(name).and_then(list_of);
    let first = || root.members().find_map(|member| list_of(member.value));
    tag.and_then(wanted).or_else(|| wanted("master")).or_else(first)
}

/// Do these look like its tasks? Others have lists called `tasks` too.
pub(super) fn is_list(list: Value<'_>) -> bool {
    let has = |item: Value<'_>, key: &str| item.get(key).is_some();
    let is_own = |item: Value<'_>| {
        let is_numbered = item.get("id").is_some_and(|id| id.as_integer().is_some());
        has(item, "testStrategy") || has(item, "subtasks") || (is_numbered && has(item, "details"))
    };
    list.items().any(is_own) && list.items().all(|item| has(item, "id") && has(item, "title"))
}

pub(super) fn parse(list: Value<'_>, findings: &mut Findings) -> Parsed {
    let mut parsed = Parsed::for_list(Dialect::TaskMaster, list);
    let top: HashSet<String> = list.items().filter_map(own_id).collect();
    for item in list.items() {
        let Some(mut fields) = object(item, findings) else { continue };
        let Some((id, id_at)) = fields.id() else {
            fields.missing("`id`");
            continue;
        };
        // Without a priority a task is of medium priority there.
        let rank = fields.rank().unwrap_or(2 * RANKS);
        let subtasks = fields.value(Field::Subtasks);
        let mut not_yet = Vec::new();
        let mut task = read_task(&mut fields, id, None, &mut not_yet);
        note_word(&fields, &mut parsed);
        let parts: Vec<Value<'_>> = subtasks.map(|list| list.items().collect()).unwrap_or_default();
        let siblings: HashSet<String> = parts.iter().copied().filter_map(own_id).collect();
        let part_ids = siblings.iter().map(|sibling| TaskId::new(format!("{}.{sibling}", task.id)));
        let mut part_ids: Vec<TaskId> = part_ids.collect();
        part_ids.sort();
        let is_finished = task.status == FileStatus::Done;
        let place = Place { rank: Some(rank), ..Place::json(item.span(), id_at) };
        task.depends_on.extend(part_ids);
        task.depends_on = unique(std::mem::take(&mut task.depends_on));
        let parent = task.clone();
        parsed.add_json(task, place, fields, not_yet);
        for part in parts {
            let Some(mut fields) = object(part, findings) else { continue };
            let Some((own, id_at)) = fields.id() else {
                fields.missing("`id`");
                continue;
            };
            let id = TaskId::new(format!("{}.{own}", parent.id));
            let mut not_yet = Vec::new();
            let mut task = read_task(&mut fields, id, Some(&parent), &mut not_yet);
            // Nobody works on the rest of a task that is done.
            if is_finished {
                task.status = FileStatus::Done;
            }
            let named = std::mem::take(&mut task.depends_on).into_iter();
            let resolved = named.map(|name| match name.as_str() {
                name if siblings.contains(name) => TaskId::new(format!("{}.{name}", parent.id)),
                name if top.contains(name) || name.contains('.') => TaskId::new(name),
                name => TaskId::new(format!("{}.{name}", parent.id)),
            });
            // It is part of that task, which is done after it.
            task.depends_on = unique(resolved.filter(|id| *id != parent.id).collect());
            note_word(&fields, &mut parsed);
            let place = Place { rank: Some(rank), ..Place::json(part.span(), id_at) };
            parsed.add_json(task, place, fields, not_yet);
        }
    }
    findings.set_about(None);
    parsed.sort_by_rank();
    parsed
}

fn own_id(item: Value<'_>) -> Option<String> {
    crate::fields::id_of(item.get("id")?).map(std::borrow::Cow::into_owned)
}

fn note_word(fields: &Fields<'_, '_>, parsed: &mut Parsed) {
    if let Some(word) = fields.value(Field::Status).and_then(Value::as_str) {
        parsed.spellings.status.note(&WORDS, &word);
    }
}

fn read_task(
    fields: &mut Fields<'_, '_>,
    id: TaskId,
    parent: Option<&Task>,
    not_yet: &mut Vec<NotYet>,
) -> Task {
    let description = fields.text(Field::Description).unwrap_or_default();
    let title = fields.text(Field::Title);
    let mut task = Task::new(id.clone(), title_or(title, &description, &id));
    task.description = fields.string(Field::Description, "description").unwrap_or_default();
    task.depends_on = fields.depends_on();
    let tests = fields.text(Field::TestStrategy);
    task.criteria = fields.criteria();
    task.criteria.extend(tests.map(|text| Criterion { text, check: None }));
    let whole = parent.map(|parent| {
        let description =
            if parent.description.trim() == parent.title.trim() { "" } else { &parent.description };
        format!("Part of task {}: {}\n\n{description}", parent.id, parent.title).trim().to_owned()
    });
    let said = [whole, fields.text(Field::Details), fields.text(Field::Notes)];
    let said: Vec<String> = said.into_iter().flatten().collect();
    task.notes = (!said.is_empty()).then(|| said.join("\n\n"));
    task.parent = parent.map(|parent| parent.id.clone());
    task.status = super::word_status(fields, Field::Status, &WORDS, &id, not_yet);
    task
}
