//! Tools about the backlog and what is known of its tasks.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use wiggum_core::task::{Criterion, FileStatus};
use wiggum_engine::desk::backlog::{NewTask, Place, StatusChange, TaskChange};
use wiggum_engine::desk::post::require_task;

use super::{About, Effect, Entry, MOST, Whom, list_of, reply_shape, shape, text, value, whole};
use crate::office::{Audience, Office};
use crate::refusal::Refusal;

/// Attempts of a task that are shown.
const ATTEMPTS: usize = 10;

pub(super) fn entries() -> Vec<Entry> {
    vec![
        Entry::new(
            About {
                name: "list_tasks",
                title: "List tasks",
                description: "The tasks of a backlog in the order in which they are taken, with their status \
                              (open, running, parked, done, failed, skipped) and why each is where it is: \
                              ready, or what it waits on. Long lists come in pages.",
                output: shape(json!({
                    "backlog": text("The file"),
                    "total": whole("How many there are, with the status that was asked for"),
                    "tasks": list_of("id, title, status, why, depends_on, role, phase, priority, labels"),
                })),
                effect: Effect::Reads,
                whom: Whom::Both,
            },
            list,
        ),
        Entry::new(
            About {
                name: "add_task",
                title: "Add a task",
                description: "Adds a task at the end of the backlog, in the style of the file, also while a \
                              loop runs, which takes it up by itself. Say in `criteria` how one sees that it \
                              is done, and in `depends_on` which tasks come first. Returns the id it got.",
                output: shape(json!({ "id": text("The new task"), "backlog": text("The file it is in") })),
                effect: Effect::Adds,
                whom: Whom::Both,
            },
            add,
        ),
        Entry::new(
            About {
                name: "update_task",
                title: "Change a task",
                description: "Changes what a task says (title, description, priority, dependencies), sets its \
                              status to open, done, failed or skipped, or moves it in the backlog (first, \
                              last, before or after another). Only what is given changes. While a loop \
                              runs, its engine writes the status; a task that is being worked on is left \
                              alone.",
                output: reply_shape(),
                effect: Effect::Acts,
                whom: Whom::Clients,
            },
            update,
        ),
        Entry::new(
            About {
                name: "task_evidence",
                title: "Evidence of a task",
                description: "What the engine saw itself of a task's attempts, the newest first: each check's \
                              command, how it exited and the end of its output, what was made of the attempt \
                              and why, paths changed and anything suspicious. An agent's own words are not \
                              evidence and not part of this.",
                output: shape(json!({
                    "task": text("The task"),
                    "state": text("open, running, parked, done, failed or skipped"),
                    "verified": { "type": "boolean", "description": "Did checks pass for it?" },
                    "attempts": list_of("The newest first, each with its `evidence`"),
                })),
                effect: Effect::Reads,
                whom: Whom::Both,
            },
            evidence,
        ),
    ]
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum Status {
    Open,
    Running,
    Parked,
    Done,
    Failed,
    Skipped,
}

impl Status {
    fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Running => "running",
            Self::Parked => "parked",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
        }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListInput {
    /// The backlog, as a path inside the repository. Left out: the configured one, else the usual names
    backlog: Option<String>,
    /// Only tasks with this status
    status: Option<Status>,
    /// Leave out so many of the first
    #[serde(default)]
    offset: usize,
    /// At most so many (200 at most)
    limit: Option<usize>,
}

fn list(office: &Office, input: ListInput) -> Result<Value, Refusal> {
    let ListInput { backlog, status, offset, limit } = input;
    let mut open = office.backlog(backlog.as_deref())?;
    let mut tasks = open.list(Timestamp::now())?;
    tasks.retain(|task| status.is_none_or(|status| task.status == status.name()));
    let total = tasks.len();
    let limit = limit.unwrap_or(MOST).min(MOST);
    let page: Vec<_> = tasks.into_iter().skip(offset).take(limit).collect();
    Ok(json!({ "backlog": open.name, "total": total, "tasks": value(&page)? }))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AddInput {
    /// What is to be done, in one line
    title: String,
    /// More about it, for the agent that does it
    description: Option<String>,
    /// How one sees that it is done
    #[serde(default)]
    criteria: Vec<String>,
    /// Ids of tasks that have to be done before
    #[serde(default)]
    depends_on: Vec<String>,
    /// Its id. Left out: the next of its kind
    id: Option<String>,
    /// The backlog, as a path inside the repository. Left out: the configured one, else the usual names
    backlog: Option<String>,
}

fn add(office: &Office, input: AddInput) -> Result<Value, Refusal> {
    let AddInput { title, description, criteria, depends_on, id, backlog } = input;
    if title.trim().is_empty() {
        return Err(Refusal::new("the title is empty").hint("say in one line what is to be done"));
    }
    let mut open = office.backlog(backlog.as_deref())?;
    let new = NewTask {
        id: id.unwrap_or_default(),
        title,
        description: description.unwrap_or_default(),
        criteria: criteria.into_iter().map(|text| Criterion { text, check: None }).collect(),
        depends_on,
        ..NewTask::default()
    };
    let id = open.add(new, &office.by)?;
    Ok(json!({ "id": id, "backlog": open.name }))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct UpdateInput {
    /// The task
    task: String,
    /// Its new status
    status: Option<FileStatus>,
    /// Its new place
    position: Option<Place>,
    /// Its new title, in one line
    title: Option<String>,
    /// Its new description, for the agent that does it
    description: Option<String>,
    /// Its new priority, where the backlog's format has one
    priority: Option<i64>,
    /// Ids of all tasks that have to be done before, instead of those it has
    depends_on: Option<Vec<String>>,
    /// The backlog, as a path inside the repository. Left out: the configured one, else the usual names
    backlog: Option<String>,
}

fn update(office: &Office, input: UpdateInput) -> Result<Value, Refusal> {
    let UpdateInput { task, status, position, title, description, priority, depends_on, backlog } = input;
    let mut open = office.backlog(backlog.as_deref())?;
    let mut said = Vec::new();
    let mut state = "done";
    let change = TaskChange { title, description, priority, depends_on };
    if !change.is_empty() {
        open.change(&task, change)?;
        said.push(format!("{task} changed ({})", open.name));
    }
    if let Some(place) = position {
        open.move_task(&task, place.into())?;
        said.push(format!("{task} moved ({})", open.name));
    }
    if let Some(status) = status {
        match open.set_status(&task, status, &office.by)? {
            StatusChange::Asked { reply, .. } => {
                state = reply.state.name();
                said.push(reply.message);
            }
            StatusChange::Written => said.push(format!("{task} set to {} ({})", status.name(), open.name)),
        }
    }
    if said.is_empty() {
        return Err(Refusal::new("nothing is to be changed")
            .hint("give `title`, `description`, `priority`, `depends_on`, `status` or `position`"));
    }
    Ok(json!({ "state": state, "message": said.join("; ") }))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EvidenceInput {
    /// The task. An agent may leave it out: its own
    task: Option<String>,
    /// Name of a loop, or the beginning of its id. Left out: the loop that runs, else the one that ran last
    #[serde(rename = "loop")]
    which: Option<String>,
}

fn evidence(office: &Office, EvidenceInput { task, which }: EvidenceInput) -> Result<Value, Refusal> {
    let task = match (task, &office.audience) {
        (Some(task), _) => task,
        (None, Audience::Agent(assignment)) => assignment.task.clone(),
        (None, Audience::Client) => return Err(Refusal::new("no task is named").hint("give `task`")),
    };
    let loops = office.loops()?;
    let record = office.select(&loops, which.as_deref())?;
    require_task(&loops.state(record.id)?, &task)?;
    let report = loops.report(&record)?;
    let found = report.tasks.into_iter().find(|reported| reported.id == task);
    let Some(found) = found else { return Err(Refusal::new(format!("nothing is known of `{task}` yet"))) };
    let attempts: Vec<_> = found.history.iter().rev().take(ATTEMPTS).collect();
    Ok(json!({
        "task": found.id,
        "title": found.title,
        "state": found.state,
        "verified": found.verified,
        "why": found.why,
        "commit": found.commit,
        "attempts": value(&attempts)?,
        "attempts_omitted": found.history.len() - attempts.len(),
    }))
}
