//! Lists of features, stories or items, as many programs and people write them: `{"features": [{name, steps,
//! passes}]}`, a bare array, and the like.
//!
//! Which member says that an item is done is told by the file: `passes`, `completed`, `done` and others as `true`, or
//! a word under `status` or `state`. Where the file has a priority it decides, the lowest number first.

use wiggum_core::ids::TaskId;
use wiggum_core::task::{Criterion, FileStatus, Task};

use super::prd::{object, status_of};
use super::words::{OwnWords, Words};
use super::{Dialect, Family, Order, Part, Profile, Status};
use crate::fields::{Field, Fields, title_or};
use crate::json::{Kind, Value};
use crate::not_yet;
use crate::problem::Findings;
use crate::slug::Slugs;
use crate::{Parsed, Place};

pub(crate) const PROFILE: Profile = Profile {
    name: "feature list",
    unit: "an entry of the list is a task; `steps` are its criteria",
    family: Family::Objects,
    order: Order::Priority,
    status: Status::Flag("passes"),
    says_failed: false,
    nests: false,
    agent_ticks: false,
    says: &[Part::Labels],
    criteria_key: "acceptance_criteria",
    depends_key: "depends_on",
};

/// What waits for a person, is blocked or was given up is set aside. Features that fail are yet to be built.
pub(super) static WORDS: Words = Words {
    meanings: &[
        ("pending", FileStatus::Open),
        ("todo", FileStatus::Open),
        ("open", FileStatus::Open),
        ("not_started", FileStatus::Open),
        ("not-started", FileStatus::Open),
        ("not started", FileStatus::Open),
        ("new", FileStatus::Open),
        ("backlog", FileStatus::Open),
        ("planned", FileStatus::Open),
        ("ready", FileStatus::Open),
        ("next", FileStatus::Open),
        ("queued", FileStatus::Open),
        ("proposed", FileStatus::Open),
        ("draft", FileStatus::Open),
        ("failing", FileStatus::Open),
        ("fail", FileStatus::Open),
        ("failed", FileStatus::Open),
        ("partial", FileStatus::Open),
        ("incomplete", FileStatus::Open),
        ("not_implemented", FileStatus::Open),
        ("in_progress", FileStatus::Open),
        ("in-progress", FileStatus::Open),
        ("inprogress", FileStatus::Open),
        ("in progress", FileStatus::Open),
        ("active", FileStatus::Open),
        ("started", FileStatus::Open),
        ("doing", FileStatus::Open),
        ("wip", FileStatus::Open),
        ("done", FileStatus::Done),
        ("completed", FileStatus::Done),
        ("complete", FileStatus::Done),
        ("passing", FileStatus::Done),
        ("passed", FileStatus::Done),
        ("pass", FileStatus::Done),
        ("closed", FileStatus::Done),
        ("finished", FileStatus::Done),
        ("implemented", FileStatus::Done),
        ("shipped", FileStatus::Done),
        ("released", FileStatus::Done),
        ("deployed", FileStatus::Done),
        ("merged", FileStatus::Done),
        ("resolved", FileStatus::Done),
        ("verified", FileStatus::Done),
        ("skipped", FileStatus::Skipped),
        ("deferred", FileStatus::Skipped),
        ("blocked", FileStatus::Skipped),
        ("cancelled", FileStatus::Skipped),
        ("canceled", FileStatus::Skipped),
        ("on_hold", FileStatus::Skipped),
        ("on-hold", FileStatus::Skipped),
        ("paused", FileStatus::Skipped),
        ("postponed", FileStatus::Skipped),
        ("review", FileStatus::Skipped),
        ("in_review", FileStatus::Skipped),
        ("in-review", FileStatus::Skipped),
        ("rejected", FileStatus::Skipped),
        ("abandoned", FileStatus::Skipped),
        ("dropped", FileStatus::Skipped),
        ("obsolete", FileStatus::Skipped),
        ("removed", FileStatus::Skipped),
        ("superseded", FileStatus::Skipped),
        ("wontfix", FileStatus::Skipped),
    ],
    in_progress: &[
        "in_progress",
        "in-progress",
        "inprogress",
        "in progress",
        "active",
        "started",
        "doing",
        "wip",
    ],
    has_skipped_flag: false,
};

/// Flags that say that an item is done, in the order in which they are looked for.
const FLAGS: [(&str, Field); 5] = [
    ("passes", Field::Passes),
    ("completed", Field::Completed),
    ("done", Field::Done),
    ("passing", Field::Passing),
    ("implemented", Field::Implemented),
];

const WORD_KEYS: [(&str, Field); 2] = [("status", Field::Status), ("state", Field::State)];

/// Where the items of a list say whether they are done.
pub(super) fn status_in(list: Value<'_>) -> Option<Status> {
    let flag =
        |key: &str| list.items().any(|item| item.get(key).is_some_and(|value| value.as_bool().is_some()));
    let word =
        |key: &str| list.items().any(|item| item.get(key).is_some_and(|value| value.as_str().is_some()));
    let flags = FLAGS.iter().map(|(key, _)| *key).find(|key| flag(key)).map(Status::Flag);
    let words =
        || WORD_KEYS.iter().map(|(key, _)| *key).find(|key| word(key)).map(|key| Status::Words(key, &WORDS));
    // A flag on a few items beside a word on all is about something else.
    match flags {
        Some(Status::Flag(key)) if key != "passes" => words().or(flags),
        Some(_) => flags,
        None => words(),
    }
}

/// Is every item one that says what is to be done?
pub(super) fn is_list(list: Value<'_>) -> bool {
    let says =
        |item: Value<'_>| ["title", "name", "description", "id"].iter().any(|key| item.get(key).is_some());
    list.kind() == Kind::Array
        && list.items().next().is_some()
        && list.items().all(|item| item.kind() == Kind::Object && says(item))
        && status_in(list).is_some()
}

pub(super) fn parse(root: Value<'_>, list: Value<'_>, findings: &mut Findings) -> Parsed {
    let mut parsed = Parsed::for_list(Dialect::Features, list);
    match status_in(list) {
        Some(status) => parsed.status = status,
        None if list.items().next().is_none() => {}
        None => {
            let expected = "`passes`, `completed` or `done`, or a `status`";
            findings.add(list.start(), format!("no item says whether it is done; expected {expected}"));
            return parsed;
        }
    }
    let mut slugs = Slugs::default();
    for item in list.items() {
        slugs.reserve(item.get("id").and_then(crate::fields::id_of).as_deref());
    }
    for item in list.items() {
        let Some(mut fields) = object(item, findings) else { continue };
        let title = fields.text(Field::Title).or_else(|| fields.text(Field::Name));
        let description = fields.text(Field::Description).or_else(|| fields.text(Field::Summary));
        let description = description.or_else(|| fields.text(Field::Behaviour));
        let given = fields.id();
        let (id, id_at) = match (given, title.as_ref().or(description.as_ref())) {
            (Some(given), _) => given,
            (None, Some(words)) => (TaskId::new(slugs.make(first_words(words))), fields.start()),
            (None, None) => {
                fields.missing("a `title`, `name` or `description`");
                continue;
            }
        };
        let mut not_yet = not_yet::borrowed(&fields, &id);
        let mut task =
            Task::new(id.clone(), title_or(title, description.as_deref().unwrap_or_default(), &id));
        task.description = description.unwrap_or_default();
        task.criteria = criteria(&mut fields);
        task.depends_on = fields.depends_on();
        task.notes = fields.text(Field::Notes);
        task.labels = fields.texts(Field::Labels);
        task.labels.extend(fields.text(Field::Category));
        task.priority = fields.value(Field::Priority).and_then(Value::as_integer).unwrap_or(0);
        task.status = match parsed.status {
            Status::Flag(key) => {
                let field =
                    FLAGS.iter().find(|(name, _)| *name == key).map_or(Field::Passes, |(_, field)| *field);
                let status = status_of(fields.flag(field, key), fields.flag(Field::Skipped, "skipped"));
                if status == FileStatus::Open {
                    not_yet.extend(not_yet::done_elsewhere(&fields, &id, field));
                }
                status
            }
            Status::Words(key, words) => {
                let field = WORD_KEYS
                    .iter()
                    .find(|(name, _)| *name == key)
                    .map_or(Field::Status, |(_, field)| *field);
                if let Some(word) = fields.value(field).and_then(Value::as_str) {
                    parsed.spellings.status.note(words, &word);
                }
                super::word_status(&fields, field, words, &id, &mut not_yet)
            }
            Status::Text => FileStatus::Open,
        };
        let place = Place { rank: fields.rank(), ..Place::json(item.span(), id_at) };
        parsed.add_json(task, place, fields, not_yet);
    }
    findings.set_about(None);
    parsed.spellings.status = parsed.spellings.status.or(legend(root, list));
    parsed.sort_by_rank();
    parsed
}

/// An id made of a whole paragraph says no more than one made of its first line.
fn first_words(text: &str) -> &str {
    text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or(text)
}

fn criteria(fields: &mut Fields<'_, '_>) -> Vec<Criterion> {
    let mut criteria = fields.criteria();
    for field in [Field::Acceptance, Field::Steps] {
        criteria.extend(fields.loose_criteria(field));
    }
    criteria
}

/// The words of a file's own account (`status_legend`, `valid_status`), for those that no item uses yet.
fn legend(root: Value<'_>, list: Value<'_>) -> OwnWords {
    let mut own = OwnWords::default();
    let beside = root.members().filter(|member| member.value.start() != list.start());
    for member in beside {
        let inner = member.value.members().map(|member| member.value);
        let lists = inner.chain([member.value]).filter(|value| value.kind() == Kind::Array);
        for word in lists.flat_map(Value::items).filter_map(Value::as_str) {
            own.note(&WORDS, &word);
        }
        for key in member.value.members().filter_map(|member| member.key.as_str()) {
            own.note(&WORDS, &key);
        }
    }
    own
}
