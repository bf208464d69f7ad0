//! `tasks.json`: a bare array of tasks, chosen by score.

use wiggum_core::ids::TaskId;
use wiggum_core::task::{FileStatus, Kind as TaskKind, Task, Work};

use super::prd::object;
use super::words::Words;
use super::{Family, Order, Part, Profile, Status};
use crate::fields::{Field, Fields, title_or};
use crate::json::{Kind, Value};
use crate::not_yet::{self, INPUTS, NotYet, OUTPUTS, PRECONDITION};
use crate::problem::Findings;
use crate::{Dialect, Parsed, Place};

pub(crate) const PROFILE: Profile = Profile {
    name: "tasks.json",
    unit: "an entry of the list is a task",
    family: Family::Objects,
    order: Order::Score,
    status: Status::Words("status", &WORDS),
    says_failed: true,
    nests: false,
    agent_ticks: false,
    says: &[Part::Role, Part::Phase, Part::Complexity, Part::Parent, Part::Labels],
    criteria_key: "acceptance_criteria",
    depends_key: "depends_on",
};

/// In-progress is read as open: a crash of whoever wrote it must not leave a task stuck.
pub(super) static WORDS: Words = Words {
    meanings: &[
        ("pending", FileStatus::Open),
        ("inprogress", FileStatus::Open),
        ("in_progress", FileStatus::Open),
        ("in-progress", FileStatus::Open),
        ("completed", FileStatus::Done),
        ("failed", FileStatus::Failed),
    ],
    in_progress: &["inprogress", "in_progress", "in-progress"],
    has_skipped_flag: true,
};

/// Members that other lists of tasks do not have.
pub(super) const OWN_KEYS: [&str; 8] =
    ["role", "kind", "evaluation", "work", "max_retries", "failed_attempts", "inputs", "outputs"];

const KINDS: [(&str, TaskKind); 2] = [("milestone", TaskKind::Milestone), ("recurring", TaskKind::Recurring)];

/// Roles whose work is a gate of the engine, not a prompt for an agent.
const GATES: [&str; 2] = ["security_gate", "coverage_enforcer"];

/// Ways to judge a task beside a command.
pub(crate) const OTHER_EVALUATIONS: [&str; 2] = ["agent_file", "semantic"];

pub(crate) const OUTPUT_KINDS: [&str; 4] = ["file", "json", "summary", "sub_task_manifest"];

/// `"skipped": true` stands beside the status, as in PRD files; a completed task stays completed.
fn status_of(status: FileStatus, skipped: bool) -> FileStatus {
    match (status, skipped) {
        (FileStatus::Done, _) => FileStatus::Done,
        (FileStatus::Open | FileStatus::Failed | FileStatus::Skipped, true) => FileStatus::Skipped,
        (FileStatus::Open | FileStatus::Failed | FileStatus::Skipped, false) => status,
    }
}

pub(crate) fn parse(list: Value<'_>, findings: &mut Findings) -> Parsed {
    let mut parsed = Parsed::for_list(Dialect::Tasks, list);
    for item in list.items() {
        let Some(mut fields) = object(item, findings) else { continue };
        let id = fields.id();
        report_missing(&mut fields);
        let Some((id, id_at)) = id else { continue };
        let mut not_yet = Vec::new();
        let task = read_task(&mut fields, id, &mut not_yet);
        if let Some(word) = fields.value(Field::Status).and_then(Value::as_str) {
            parsed.spellings.status.note(&WORDS, &word);
        }
        parsed.add_json(task, Place::json(item.span(), id_at), fields, not_yet);
    }
    findings.set_about(None);
    parsed
}

/// A title says what is to be done as well as a description does.
fn report_missing(fields: &mut Fields<'_, '_>) {
    let required = [
        (&[Field::Id][..], "`id`"),
        (&[Field::Description, Field::Title], "`description` or `title`"),
        (&[Field::Status], "`status` (pending, inprogress, completed or failed)"),
    ];
    for (any_of, name) in required {
        if any_of.iter().all(|field| fields.value(*field).is_none()) {
            fields.missing(name);
        }
    }
}

fn read_task(fields: &mut Fields<'_, '_>, id: TaskId, not_yet: &mut Vec<NotYet>) -> Task {
    let description = fields.string(Field::Description, "description").unwrap_or_default();
    let title = fields.string(Field::Title, "title");
    let mut task = Task::new(id.clone(), title_or(title, &description, &id));
    task.description = description;
    task.criteria = fields.criteria();
    task.depends_on = fields.depends_on();
    task.role = role(fields).unwrap_or(task.role);
    task.kind = fields.word(Field::Kind, "kind", &KINDS).unwrap_or_default();
    task.phase = fields.count(Field::Phase, "phase", 1).unwrap_or(1);
    task.priority = fields.importance().unwrap_or(0);
    task.complexity = fields.count(Field::Complexity, "complexity", 0).unwrap_or(1);
    task.failed_attempts = fields.count(Field::FailedAttempts, "failed_attempts", 0).unwrap_or(0);
    task.last_attempt_at = fields.integer(Field::LastAttemptAt, "last_attempt_at");
    task.max_retries = fields.count(Field::MaxRetries, "max_retries", 0);
    task.timeout_seconds = fields.count(Field::TimeoutSeconds, "timeout_seconds", 0);
    task.agent = fields.string(Field::Agent, "agent").filter(|agent| !agent.trim().is_empty());
    task.model = fields.string(Field::Model, "model").filter(|model| !model.trim().is_empty());
    task.parent = fields.string(Field::ParentId, "parent_id").filter(|id| !id.is_empty()).map(TaskId::new);
    task.labels = fields.strings(Field::Labels, "labels");
    task.notes = notes(fields);
    task.work = work(fields, &task.role);
    task.verify = evaluation(fields, &task.id, not_yet);
    let status = fields.word(Field::Status, "status", WORDS.meanings).unwrap_or_default();
    task.status = status_of(status, fields.flag(Field::Skipped, "skipped"));
    check_other_fields(fields, &task, not_yet);
    task
}

fn role(fields: &mut Fields<'_, '_>) -> Option<String> {
    fields.string(Field::Role, "role").filter(|role| !role.trim().is_empty())
}

fn notes(fields: &mut Fields<'_, '_>) -> Option<String> {
    let own = fields.string(Field::SystemPromptOverride, "system_prompt_override");
    let notes = fields.string(Field::Notes, "notes");
    let said: Vec<String> = own.into_iter().chain(notes).filter(|text| !text.trim().is_empty()).collect();
    (!said.is_empty()).then(|| said.join("\n\n"))
}

/// `work` where it is given; else a gate where the role is one.
fn work(fields: &mut Fields<'_, '_>, role: &str) -> Work {
    if fields.value(Field::Work).is_none() && GATES.contains(&role) {
        return Work::Gate { gate: role.to_owned() };
    }
    fields.work()
}

/// The task's own verify command.
fn evaluation(fields: &mut Fields<'_, '_>, id: &TaskId, not_yet: &mut Vec<NotYet>) -> Option<String> {
    let value = fields.value(Field::Evaluation)?;
    if value.kind() != Kind::Object {
        fields.wrong(value, "evaluation", "an object {mode, …}");
        return None;
    }
    match fields.member_string(value, "mode").as_deref() {
        Some("command") => {
            let command = fields.member_string(value, "command");
            if command.is_none() {
                fields
                    .findings
                    .add(value.start(), "`evaluation` without `command`; expected the command to run");
            }
            command
        }
        Some(mode) if OTHER_EVALUATIONS.contains(&mode) => {
            not_yet.push(NotYet::evaluation(id, mode));
            None
        }
        Some(mode) => {
            let message = format!("unknown evaluation mode `{mode}`; expected command, agent_file, semantic");
            fields.findings.add(value.start(), message);
            None
        }
        None => {
            fields
                .findings
                .add(value.start(), "`evaluation` without `mode`; expected command, agent_file, semantic");
            None
        }
    }
}

/// Fields that have a type but, so far, no effect: `cooldown_seconds` matters to recurring tasks alone.
fn check_other_fields(fields: &mut Fields<'_, '_>, task: &Task, not_yet: &mut Vec<NotYet>) {
    fields.count::<u64>(Field::CooldownSeconds, "cooldown_seconds", 0);
    let has_inputs = !fields.strings(Field::Inputs, "inputs").is_empty();
    let has_outputs = outputs(fields);
    let runtimes = [("local", true), ("gastown", false)];
    let elsewhere = fields.word(Field::Runtime, "runtime", &runtimes) == Some(false);
    let precondition = fields.string(Field::PreconditionPrompt, "precondition_prompt");
    let has_precondition = precondition.is_some_and(|prompt| !prompt.trim().is_empty());
    let id = &task.id;
    let found = [
        elsewhere.then(|| NotYet::gastown(id)),
        has_precondition.then(|| NotYet::field(id, PRECONDITION)),
        (task.kind == TaskKind::Recurring).then(|| NotYet::recurring(id)),
        has_inputs.then(|| NotYet::field(id, INPUTS)),
        has_outputs.then(|| NotYet::field(id, OUTPUTS)),
        not_yet::done_elsewhere(fields, id, Field::Status).filter(|_| task.status != FileStatus::Done),
    ];
    not_yet.extend(found.into_iter().flatten());
}

/// Does it declare any? They are refused anyway, in whatever shape.
fn outputs(fields: &Fields<'_, '_>) -> bool {
    fields.value(Field::Outputs).is_some_and(|value| match value.kind() {
        Kind::Array => value.items().next().is_some(),
        Kind::Object => value.members().next().is_some(),
        Kind::String | Kind::EscapedString => value.as_str().is_some_and(|text| !text.trim().is_empty()),
        Kind::Number | Kind::True => true,
        Kind::False | Kind::Null => false,
    })
}
