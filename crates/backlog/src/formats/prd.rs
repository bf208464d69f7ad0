//! `{userStories: […]}` in its three dialects and ralphy's `{tasks: […]}`.

use std::collections::HashMap;

use wiggum_core::ids::TaskId;
use wiggum_core::task::{FileStatus, Task};

use crate::fields::{Field, Fields, title_or};
use crate::json::{Kind, Value};
use crate::not_yet::{self, Ascending, NotYet};
use crate::problem::Findings;
use crate::slug::Slugs;
use crate::{Dialect, Parsed, Place};

use super::{Family, Order, Part, Profile, Status};

pub(crate) const PRD: Profile = Profile {
    name: "PRD.json",
    unit: "an entry of `userStories` is a task",
    family: Family::Objects,
    order: Order::File,
    status: Status::Flag("passes"),
    says_failed: false,
    nests: false,
    agent_ticks: false,
    says: &[],
    criteria_key: "criteria",
    depends_key: "depends_on",
};

pub(crate) const SNARKTANK: Profile = Profile {
    name: "prd.json (snarktank)",
    order: Order::Priority,
    agent_ticks: true,
    criteria_key: "acceptanceCriteria",
    ..PRD
};

pub(crate) const RALPH_TUI: Profile = Profile {
    name: "prd.json (ralph-tui)",
    agent_ticks: false,
    says: &[Part::Labels],
    depends_key: "dependsOn",
    ..SNARKTANK
};

pub(crate) const RALPHY: Profile = Profile {
    name: "ralphy JSON",
    unit: "an entry of `tasks` is a task",
    status: Status::Flag("completed"),
    ..PRD
};

/// Which of the `userStories` dialects a file is.
///
/// ralph-tui grew out of snarktank's format and has its marks too, so its own are looked for first.
pub(crate) fn dialect_of(root: Value<'_>, stories: Value<'_>) -> Dialect {
    let any_story_has = |keys: &[&str]| {
        stories.items().any(|story| {
            story.members().any(|member| member.key.as_str().is_some_and(|key| keys.contains(&key.as_ref())))
        })
    };
    if root.get("name").is_some() || any_story_has(&["dependsOn", "labels", "completionNotes"]) {
        Dialect::RalphTui
    } else if root.get("branchName").is_some() || any_story_has(&["acceptanceCriteria"]) {
        Dialect::Snarktank
    } else {
        Dialect::Prd
    }
}

pub(crate) fn parse_stories(dialect: Dialect, stories: Value<'_>, findings: &mut Findings) -> Parsed {
    let mut parsed = Parsed::for_list(dialect, stories);
    let mut phases = Ascending::default();
    for story in stories.items() {
        let Some(mut fields) = object(story, findings) else { continue };
        let Some((id, id_at)) = fields.id() else {
            if fields.value(Field::Id).is_none() {
                fields.missing("`id`");
            }
            continue;
        };
        let title = fields.string(Field::Title, "title");
        let mut task = read_task(&mut fields, id, title);
        let passes = fields.flag(Field::Passes, "passes");
        task.status = status_of(passes, fields.flag(Field::Skipped, "skipped"));
        task.priority = fields.value(Field::Priority).and_then(Value::as_integer).unwrap_or(0);
        let mut place = Place::json(story.span(), id_at);
        place.rank = if dialect.is_ordered_by_priority() { fields.rank() } else { None };
        let mut not_yet = not_honoured(&fields, &task, Field::Passes);
        // Where priorities decide, they decide before phases.
        let phase = fields.value(Field::Phase).filter(|_| !dialect.is_ordered_by_priority());
        not_yet.extend(phases.next(&task.id, "phase", "phases", phase));
        parsed.add_json(task, place, fields, not_yet);
    }
    findings.set_about(None);
    if dialect.is_ordered_by_priority() {
        parsed.sort_by_rank();
    }
    parsed
}

/// ralphy's tasks have unique titles and no ids: the id is made from the title.
pub(crate) fn parse_ralphy(tasks: Value<'_>, findings: &mut Findings) -> Parsed {
    let mut parsed = Parsed::for_list(Dialect::Ralphy, tasks);
    let mut slugs = Slugs::default();
    for item in tasks.items() {
        slugs.reserve(item.get("id").and_then(Value::as_str).as_deref());
    }
    let mut by_title: HashMap<String, TaskId> = HashMap::new();
    let mut groups = Ascending::default();
    for item in tasks.items() {
        let Some(mut fields) = object(item, findings) else { continue };
        let title = fields.string(Field::Title, "title").filter(|title| !title.trim().is_empty());
        let given = fields.id();
        let (id, id_at) = match (given, &title) {
            (Some(given), _) => given,
            (None, Some(title)) => (TaskId::new(slugs.make(title)), fields.start()),
            (None, None) => {
                fields.missing("a `title`");
                continue;
            }
        };
        if let Some(title) = &title
            && by_title.insert(title.clone(), id.clone()).is_some()
        {
            let message = format!("duplicate title `{title}`; expected every title once");
            fields.findings.add(id_at, message);
        }
        let mut task = read_task(&mut fields, id, title);
        let completed = fields.flag(Field::Completed, "completed");
        task.status = status_of(completed, fields.flag(Field::Skipped, "skipped"));
        let mut not_yet = not_honoured(&fields, &task, Field::Completed);
        not_yet.extend(groups.next(&task.id, "parallel_group", "groups", fields.value(Field::ParallelGroup)));
        parsed.add_json(task, Place::json(item.span(), id_at), fields, not_yet);
    }
    findings.set_about(None);
    for task in &mut parsed.tasks {
        for dependency in &mut task.depends_on {
            if let Some(id) = by_title.get(dependency.as_str()) {
                *dependency = id.clone();
            }
        }
    }
    parsed
}

/// What all dialects of this family have in common.
fn read_task(fields: &mut Fields<'_, '_>, id: TaskId, title: Option<String>) -> Task {
    let description = fields.string(Field::Description, "description").unwrap_or_default();
    let mut task = Task::new(id.clone(), title_or(title, &description, &id));
    task.description = description;
    task.criteria = fields.criteria();
    task.depends_on = fields.depends_on();
    task.labels = fields.strings(Field::Labels, "labels");
    task.agent = fields.string(Field::Agent, "agent").filter(|agent| !agent.trim().is_empty());
    task.model = fields.string(Field::Model, "model").filter(|model| !model.trim().is_empty());
    task.notes = fields.string(Field::Notes, "notes").filter(|notes| !notes.trim().is_empty());
    task.work = fields.work();
    let number = |field| fields.value(field).and_then(Value::as_integer);
    task.max_retries = number(Field::MaxRetries).and_then(|number| u32::try_from(number).ok());
    task.timeout_seconds = number(Field::TimeoutSeconds).and_then(|number| u64::try_from(number).ok());
    task.verify = command_of(fields);
    task
}

/// The task's own verify command, as in tasks.json. Anything else under that name is its owner's.
fn command_of(fields: &Fields<'_, '_>) -> Option<String> {
    let evaluation = fields.value(Field::Evaluation)?;
    let text = |key: &str| evaluation.get(key).and_then(Value::as_str);
    text("mode").filter(|mode| mode == "command")?;
    text("command").map(|command| command.trim().to_owned()).filter(|command| !command.is_empty())
}

/// What the file says of an unfinished task and nobody honours.
fn not_honoured(fields: &Fields<'_, '_>, task: &Task, done: Field) -> Vec<NotYet> {
    let mut found = not_yet::borrowed(fields, &task.id);
    if task.status == FileStatus::Open {
        found.extend(not_yet::done_elsewhere(fields, &task.id, done));
    }
    found
}

/// A task both done and skipped is done.
pub(crate) fn status_of(done: bool, skipped: bool) -> FileStatus {
    match (done, skipped) {
        (true, _) => FileStatus::Done,
        (false, true) => FileStatus::Skipped,
        (false, false) => FileStatus::Open,
    }
}

/// The fields of an item of the list, which must be an object.
pub(crate) fn object<'d, 'f>(item: Value<'d>, findings: &'f mut Findings) -> Option<Fields<'d, 'f>> {
    if item.kind() != Kind::Object {
        findings.set_about(None);
        let message = format!("{} in the list of tasks; expected an object", item.kind().name());
        findings.add(item.start(), message);
        return None;
    }
    Some(Fields::read(item, findings))
}
