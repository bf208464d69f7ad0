//! Tasks: a window of the list, the picture of what waits on what, one in full.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wiggum_core::activity::{EngineState, task_word};
use wiggum_core::decide::{unmet, why_seen};
use wiggum_core::state::Loop;
use wiggum_core::task::Task;
use wiggum_core::tasks::{TaskEntry, TaskState};
use wiggum_engine::desk::DeskError;
use wiggum_engine::desk::chronicle::Span;
use wiggum_engine::desk::post::require_task;

use super::{At, Part, engine_at, state_at};
use crate::routes::Route;

const MOST_TASKS: usize = 1000;
const MOST_SPANS: usize = 5000;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::look(
            "/loops/{loop}/tasks",
            "A window of a loop's tasks, in the order of the backlog",
            |books, names, query: TasksQuery| {
                books.of(&names[0], |loops, record| {
                    let engine = engine_at(loops, record, query.at)?;
                    state_at(books, loops, record, query.at, |state| window(state, engine, &query))
                })
            },
        ),
        Route::look(
            "/loops/{loop}/graph",
            "Every task with what it waits on, small enough for thousands",
            |books, names, At { at }| {
                books.of(&names[0], |loops, record| {
                    let engine = engine_at(loops, record, at)?;
                    state_at(books, loops, record, at, |state| graph(state, engine))
                })
            },
        ),
        Route::look(
            "/loops/{loop}/tasks/{task}",
            "One task in full, with its attempts",
            |books, names, At { at }| {
                books.of(&names[0], |loops, record| {
                    let engine = engine_at(loops, record, at)?;
                    let known = state_at(books, loops, record, at, |state| {
                        let id = require_task(state, &names[1])?;
                        Ok::<_, DeskError>(state.task(&id).map(|entry| Known::of(state, entry, engine)))
                    })??;
                    let spans = books.feed(loops, record)?.look(|chronicle| {
                        let of = chronicle.iterations().iter().filter(|span| span.task == names[1]);
                        of.filter(|span| at.is_none_or(|at| span.seq <= at)).cloned().collect()
                    });
                    known
                        .map(|known| OneTask { known, iterations: spans })
                        .ok_or_else(|| crate::Refusal::not_found(format!("no task `{}`", names[1])))
                })
            },
        ),
        Route::look(
            "/loops/{loop}/iterations",
            "A loop's iterations in time, in the order they began",
            |books, names, part: Part| {
                books.of(&names[0], |loops, record| {
                    let feed = books.feed(loops, record)?;
                    Ok(feed.look(|chronicle| {
                        let all = chronicle.iterations();
                        Iterations { total: all.len(), iterations: part.of(all, MOST_SPANS).to_vec() }
                    }))
                })
            },
        ),
    ]
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TasksQuery {
    /// The tasks as they were after the event of this number
    at: Option<u64>,
    /// Leave out so many of the first
    #[serde(default)]
    from: u64,
    /// At most so many
    limit: Option<u64>,
    /// Only tasks in this state
    state: Option<String>,
    /// Only tasks whose id or title has this in it
    search: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct Tasks {
    /// The moment.
    seq: u64,
    /// How many fit the query.
    total: usize,
    tasks: Vec<TaskRow>,
}

/// A task in a list.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct TaskRow {
    pub(crate) id: String,
    title: String,
    /// open, running, interrupted, parked, done, unverified, failed or skipped.
    pub(crate) state: &'static str,
    /// Why it is where it is.
    why: String,
    attempts: u32,
    cost_usd: f64,
}

impl TaskRow {
    pub(crate) fn of(state: &Loop, entry: &TaskEntry, engine: EngineState, now: Timestamp) -> Self {
        let why = why_seen(state, &entry.spec.id, engine, now);
        Self {
            id: entry.spec.id.to_string(),
            title: entry.spec.title.clone(),
            state: shade(&entry.state, engine),
            why: why.map(|why| why.to_string()).unwrap_or_default(),
            attempts: entry.attempts,
            cost_usd: entry.spent.cost_usd,
        }
    }
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Graph {
    seq: u64,
    nodes: Vec<Node>,
}

impl Graph {
    /// What each node waits on.
    pub(crate) fn after(&self) -> impl Iterator<Item = &[usize]> {
        self.nodes.iter().map(|node| node.after.as_slice())
    }
}

#[derive(Serialize, JsonSchema)]
struct Node {
    id: String,
    title: String,
    state: &'static str,
    /// Which nodes it waits on, by their places in the list.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    after: Vec<usize>,
}

#[derive(Serialize, JsonSchema)]
struct OneTask {
    #[serde(flatten)]
    known: Known,
    /// Its attempts, in the order they began.
    iterations: Vec<Span>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Known {
    #[serde(flatten)]
    row: TaskRow,
    /// As the backlog describes it.
    task: Task,
    /// What people said to it.
    guidance: Vec<String>,
    /// What it depends on and is not done yet.
    waits_on: Vec<String>,
    /// Who depends on it.
    dependents: Vec<String>,
}

impl Known {
    pub(crate) fn of(state: &Loop, entry: &TaskEntry, engine: EngineState) -> Self {
        let now = state.last_at.unwrap_or_else(Timestamp::now);
        let dependents = state.tasks.dependents(&entry.spec.id).filter(|other| !other.is_removed());
        Self {
            row: TaskRow::of(state, entry, engine, now),
            task: entry.spec.clone(),
            guidance: entry.guidance.clone(),
            waits_on: unmet(state, entry).map(|other| other.spec.id.to_string()).collect(),
            dependents: dependents.map(|other| other.spec.id.to_string()).collect(),
        }
    }
}

#[derive(Serialize, JsonSchema)]
struct Iterations {
    total: usize,
    iterations: Vec<Span>,
}

/// What a task's colour tells.
fn shade(state: &TaskState, engine: EngineState) -> &'static str {
    match state {
        TaskState::Done { verified: false, .. } => "unverified",
        TaskState::Open
        | TaskState::Running
        | TaskState::Parked(_)
        | TaskState::Done { verified: true, .. }
        | TaskState::Failed { .. }
        | TaskState::Skipped => task_word(state, engine),
    }
}

fn window(state: &Loop, engine: EngineState, query: &TasksQuery) -> Tasks {
    let now = state.last_at.unwrap_or_else(Timestamp::now);
    let search = query.search.as_deref().unwrap_or_default().to_lowercase();
    let fits = |entry: &&TaskEntry| {
        query.state.as_deref().is_none_or(|wanted| shade(&entry.state, engine) == wanted)
            && (search.is_empty()
                || entry.spec.title.to_lowercase().contains(&search)
                || entry.spec.id.as_str().to_lowercase().contains(&search))
    };
    let all: Vec<&TaskEntry> = state.tasks.iter().filter(fits).collect();
    let part = Part { from: query.from, limit: query.limit };
    let tasks =
        part.of(&all, MOST_TASKS).iter().map(|entry| TaskRow::of(state, entry, engine, now)).collect();
    Tasks { seq: state.seq, total: all.len(), tasks }
}

pub(crate) fn graph(state: &Loop, engine: EngineState) -> Graph {
    let entries: Vec<&TaskEntry> = state.tasks.iter().collect();
    let places: std::collections::HashMap<&str, usize> =
        entries.iter().enumerate().map(|(place, entry)| (entry.spec.id.as_str(), place)).collect();
    let node = |entry: &&TaskEntry| Node {
        id: entry.spec.id.to_string(),
        title: entry.spec.title.clone(),
        state: shade(&entry.state, engine),
        after: entry.spec.depends_on.iter().filter_map(|id| places.get(id.as_str()).copied()).collect(),
    };
    Graph { seq: state.seq, nodes: entries.iter().map(node).collect() }
}
