//! `tasks.json`: a bare array of tasks, chosen by score.

use wiggum_core::ids::TaskId;
use wiggum_core::task::{FileStatus, Kind as TaskKind, Task, Work};

use crate::fields::{Field, Fields, title_or};
use crate::json::{Kind, Value};
use crate::prd::object;
use crate::problem::Findings;
use crate::{Dialect, Parsed, Place};

/// In-progress is read as open: a crash of whoever wrote it must not leave a task stuck.
const STATUSES: [(&str, FileStatus); 6] = [
    ("pending", FileStatus::Open),
    ("inprogress", FileStatus::Open),
    ("in_progress", FileStatus::Open),
    ("in-progress", FileStatus::Open),
    ("completed", FileStatus::Done),
    ("failed", FileStatus::Failed),
];

const KINDS: [(&str, TaskKind); 2] = [("milestone", TaskKind::Milestone), ("recurring", TaskKind::Recurring)];

/// Roles whose work is a gate of the engine, not a prompt for an agent.
const GATES: [&str; 2] = ["security_gate", "coverage_enforcer"];

const OUTPUT_KINDS: [&str; 4] = ["file", "json", "summary", "sub_task_manifest"];

/// How the dialect spells a status; skipped has no word of its own (see [`status_of`]).
pub(crate) fn word_of(status: FileStatus) -> &'static str {
    match status {
        FileStatus::Open | FileStatus::Skipped => "pending",
        FileStatus::Done => "completed",
        FileStatus::Failed => "failed",
    }
}

/// What a status of the file means to us.
pub(crate) fn meaning_of(word: &str) -> Option<FileStatus> {
    STATUSES.iter().find(|(known, _)| *known == word).map(|(_, status)| *status)
}

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
        let mut unsupported = Vec::new();
        let task = read_task(&mut fields, id, &mut unsupported);
        parsed.unsupported.extend(unsupported.into_iter().map(|message| (task.id.clone(), message)));
        parsed.add(task, Place::json(item.span(), id_at));
    }
    parsed
}

fn report_missing(fields: &mut Fields<'_, '_>) {
    let required = [
        (Field::Id, "`id`"),
        (Field::Description, "`description`"),
        (Field::Status, "`status` (pending, inprogress, completed or failed)"),
    ];
    for (field, name) in required {
        if fields.value(field).is_none() {
            fields.missing(name);
        }
    }
}

fn read_task(fields: &mut Fields<'_, '_>, id: TaskId, unsupported: &mut Vec<String>) -> Task {
    let description = fields.string(Field::Description, "description").unwrap_or_default();
    let title = fields.string(Field::Title, "title");
    let mut task = Task::new(id.clone(), title_or(title, &description, &id));
    task.description = description;
    task.criteria = fields.criteria();
    task.depends_on = fields.depends_on();
    task.role = role(fields).unwrap_or(task.role);
    task.kind = fields.word(Field::Kind, "kind", &KINDS).unwrap_or_default();
    task.phase = fields.count(Field::Phase, "phase", 1).unwrap_or(1);
    task.priority = fields.integer(Field::Priority, "priority").unwrap_or(0);
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
    task.verify = evaluation(fields, unsupported);
    let status = fields.word(Field::Status, "status", &STATUSES).unwrap_or_default();
    task.status = status_of(status, fields.flag(Field::Skipped, "skipped"));
    check_other_fields(fields, unsupported);
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
fn evaluation(fields: &mut Fields<'_, '_>, unsupported: &mut Vec<String>) -> Option<String> {
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
        Some(mode @ ("agent_file" | "semantic")) => {
            unsupported.push(format!("evaluation mode `{mode}` is not available yet; expected `command`"));
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

/// Fields that have a type but, so far, no effect.
fn check_other_fields(fields: &mut Fields<'_, '_>, unsupported: &mut Vec<String>) {
    fields.count::<u64>(Field::CooldownSeconds, "cooldown_seconds", 0);
    fields.strings(Field::Inputs, "inputs");
    outputs(fields);
    let runtimes = [("local", true), ("gastown", false)];
    if fields.word(Field::Runtime, "runtime", &runtimes) == Some(false) {
        unsupported.push("runtime `gastown` is not available yet; expected `local`".to_owned());
    }
    let precondition = fields.string(Field::PreconditionPrompt, "precondition_prompt");
    if precondition.is_some_and(|prompt| !prompt.trim().is_empty()) {
        unsupported.push("`precondition_prompt` is not available yet; expected none".to_owned());
    }
}

fn outputs(fields: &mut Fields<'_, '_>) {
    let Some(value) = fields.value(Field::Outputs) else { return };
    if value.kind() != Kind::Array {
        fields.wrong(value, "outputs", "an array of {kind, name, path}");
    }
    for output in value.items() {
        if output.kind() != Kind::Object {
            fields.wrong(output, "outputs[]", "an object {kind, name, path}");
            continue;
        }
        fields.member_string(output, "name");
        fields.member_string(output, "path");
        if let Some(kind) = fields.member_string(output, "kind")
            && !OUTPUT_KINDS.contains(&kind.as_str())
        {
            let message = format!("unknown output kind `{kind}`; expected {}", OUTPUT_KINDS.join(", "));
            fields.findings.add(output.start(), message);
        }
    }
}
