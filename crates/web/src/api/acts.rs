//! What can be done: to a loop, to its tasks, to what it asks. All of it is left at the desk.

use http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wiggum_core::event::Request;
use wiggum_core::ids::TaskId;
use wiggum_core::task::{Criterion, FileStatus};
use wiggum_engine::desk::Loops;
use wiggum_engine::desk::backlog::{NewTask, OpenBacklog, Place, StatusChange, TaskChange};
use wiggum_engine::desk::post::Reply;
use wiggum_store::LoopRecord;

use crate::books::Books;
use crate::refusal::Refusal;
use crate::routes::{Nothing, Route};

pub(crate) fn routes() -> Vec<Route> {
    vec![
        to_engine(
            "/loops/{loop}/pause",
            "Let the agent finish, then wait",
            "pause",
            Request::Pause,
            "already paused",
        ),
        to_engine("/loops/{loop}/resume", "Go on after a pause", "resume", Request::Resume, "not paused"),
        to_engine("/loops/{loop}/stop", "End the run in good order", "stop", Request::Stop, "stop asked for"),
        to_engine(
            "/loops/{loop}/handoff",
            "Have the agent wrap up and a fresh one go on",
            "hand over",
            Request::Handoff,
            "the agent is wrapping up already",
        ),
        Route::act(
            Method::POST,
            "/loops/{loop}/nudge",
            "Say something to the agent at work",
            |books, names, Nudge { text }: Nudge| {
                if text.trim().is_empty() {
                    return Err(Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, "the nudge is empty"));
                }
                books.of(&names[0], |loops, record| {
                    let (request, silence) =
                        (Request::Nudge { text }, "waits for the agent's next tool call");
                    Ok(Done::from(loops.tell_engine(record, "nudge", &request, &books.site.by, silence)?))
                })
            },
        ),
        Route::act(
            Method::POST,
            "/loops/{loop}/questions/{question}/answer",
            "Answer a question; the first answer wins",
            |books, names, Answer { answer }: Answer| {
                books.of(&names[0], |loops, record| {
                    let id = record.id.to_string();
                    Ok(Done::from(loops.answer(Some(&id), &names[1], &answer, &books.site.by)?.reply))
                })
            },
        ),
        about_task(
            "/loops/{loop}/tasks/{task}/skip",
            "Leave a task out",
            |task| Request::Skip { task },
            "already skipped",
        ),
        about_task(
            "/loops/{loop}/tasks/{task}/retry",
            "Try a failed or skipped task again",
            |task| Request::Retry { task },
            "open already",
        ),
        Route::act(
            Method::POST,
            "/loops/{loop}/tasks",
            "Add a task to the backlog",
            |books, names, new: AddTask| books.of(&names[0], |loops, record| add(books, loops, record, new)),
        ),
        Route::act(
            Method::PATCH,
            "/loops/{loop}/tasks/{task}",
            "Change what a task says, its status, or its place in the backlog",
            |books, names, change: ChangeTask| {
                books.of(&names[0], |loops, record| edit(books, loops, record, &names[1], change))
            },
        ),
    ]
}

/// What became of it.
#[derive(Debug, Serialize, JsonSchema)]
struct Done {
    /// done: it is so; kept: no engine runs, the next run takes it up; waiting: the engine is busy.
    state: &'static str,
    /// The same in words.
    message: String,
}

impl From<Reply> for Done {
    fn from(reply: Reply) -> Self {
        Self { state: reply.state.name(), message: reply.message }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Nudge {
    /// What to tell the agent
    #[schemars(length(min = 1))]
    text: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Answer {
    /// The number of an option, skip, retry, abort or done, or own words where `takes_words` says so
    #[schemars(length(min = 1))]
    answer: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AddTask {
    /// What is to be done, in one line
    #[schemars(length(min = 1))]
    title: String,
    /// More about it, for the agent that does it
    #[serde(default)]
    description: String,
    /// How one sees that it is done
    #[serde(default)]
    criteria: Vec<String>,
    /// Ids of tasks that have to be done before
    #[serde(default)]
    depends_on: Vec<String>,
    /// Its id. Left out: the next of its kind
    #[serde(default)]
    id: String,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Added {
    id: String,
    backlog: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ChangeTask {
    /// Its new title, in one line
    title: Option<String>,
    /// Its new description, for the agent that does it
    description: Option<String>,
    /// Its new priority, where the backlog's format has one
    priority: Option<i64>,
    /// Ids of all tasks that have to be done before, instead of those it has
    depends_on: Option<Vec<String>>,
    /// Its new status
    status: Option<FileStatus>,
    /// Its new place
    place: Option<Place>,
}

fn to_engine(
    path: &'static str,
    summary: &'static str,
    verb: &'static str,
    request: Request,
    silence: &'static str,
) -> Route {
    Route::act(Method::POST, path, summary, move |books, names, _: Nothing| {
        books.of(&names[0], |loops, record| {
            Ok(Done::from(loops.tell_engine(record, verb, &request, &books.site.by, silence)?))
        })
    })
}

fn about_task(
    path: &'static str,
    summary: &'static str,
    request: fn(TaskId) -> Request,
    silence: &'static str,
) -> Route {
    Route::act(Method::POST, path, summary, move |books, names, _: Nothing| {
        books.of(&names[0], |loops, record| {
            let (_, reply) = loops.about_task(record, &names[1], request, &books.site.by, silence)?;
            Ok(Done::from(reply))
        })
    })
}

fn add(books: &Books, loops: &Loops, record: &LoopRecord, new: AddTask) -> Result<Added, Refusal> {
    let AddTask { title, description, criteria, depends_on, id } = new;
    if title.trim().is_empty() {
        return Err(Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, "the title is empty")
            .hint("say in one line what is to be done"));
    }
    let mut backlog = backlog(books, loops, record)?;
    let criteria = criteria.into_iter().map(|text| Criterion { text, check: None }).collect();
    let new = NewTask { id, title, description, criteria, depends_on, ..NewTask::default() };
    let id = backlog.add(new, &books.site.by)?;
    Ok(Added { id, backlog: backlog.name })
}

fn edit(
    books: &Books,
    loops: &Loops,
    record: &LoopRecord,
    task: &str,
    change: ChangeTask,
) -> Result<Done, Refusal> {
    let ChangeTask { title, description, priority, depends_on, status, place } = change;
    let mut backlog = backlog(books, loops, record)?;
    let mut done = None;
    let words = TaskChange { title, description, priority, depends_on };
    if !words.is_empty() {
        backlog.change(task, words)?;
        // What a loop knows of its tasks is what it read.
        let (state, later) = match loops.lease(record.id)?.alive() {
            Some(_) => ("waiting", "; the loop reads it before it goes on"),
            None => ("kept", "; the next run takes it up"),
        };
        done = Some(Done { state, message: format!("{task} changed ({}){later}", backlog.name) });
    }
    if let Some(place) = place {
        backlog.move_task(task, place.into())?;
        done = Some(Done { state: "done", message: format!("{task} moved ({})", backlog.name) });
    }
    if let Some(status) = status {
        done = Some(match backlog.set_status(task, status, &books.site.by)? {
            StatusChange::Asked { reply, .. } => reply.into(),
            StatusChange::Written => {
                Done { state: "done", message: format!("{task} set to {} ({})", status.name(), backlog.name) }
            }
        });
    }
    done.ok_or_else(|| {
        Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, "nothing is to be changed")
            .hint("give `title`, `description`, `priority`, `depends_on`, `status` or `place`")
    })
}

/// The backlog a loop works on; it grows as far as the loop's own policy lets it.
fn backlog(books: &Books, loops: &Loops, record: &LoopRecord) -> Result<OpenBacklog, Refusal> {
    let policy = books.feed(loops, record)?.look(|chronicle| chronicle.head().policy.clone());
    let path = loops.checkout.path().join(&record.identity.backlog);
    Ok(OpenBacklog::new(&loops.checkout, path, &policy))
}
