//! Tools that look at loops, and the one that starts them.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use wiggum_engine::desk::DeskError;
use wiggum_engine::desk::cost::By;
use wiggum_engine::desk::launch::Begun;
use wiggum_engine::desk::watch::Watch;
use wiggum_engine::desk::{Loops, Seen, cost, health, tokens};

use super::{About, Effect, Entry, Nothing, WhichLoop, Whom, list_of, newest, shape, text, value, whole};
use crate::office::{Office, RunOptions};
use crate::refusal::Refusal;

/// A run that has not opened its loop by then is slow, or waits for something.
const PATIENCE: Duration = Duration::from_secs(15);

pub(super) fn entries() -> Vec<Entry> {
    let reads = |name, title, description, output| About {
        name,
        title,
        description,
        output,
        effect: Effect::Reads,
        whom: Whom::Clients,
    };
    vec![
        Entry::new(
            reads(
                "list_loops",
                "List loops",
                "Every loop of this repository in one line each: its id and name, the backlog it works on, its \
                 state, how many tasks are done, how many questions wait for a person, and whether an engine \
                 runs it now. Start here; the other tools take a loop's name or the beginning of its id.",
                shape(json!({ "loops": list_of("The loops, in the order they were made") })),
            ),
            |office, _: Nothing| list(office),
        ),
        Entry::new(
            About {
                name: "start_loop",
                title: "Start a loop",
                description: "Starts `wiggum run` in the background on a backlog, as the command line would: \
                              agents work on its tasks until all are done and checked, and what they finish is \
                              committed. Goes on where a loop over this backlog stood. Spends tokens. Returns \
                              when the loop has begun; `status` then shows where it stands.",
                output: shape(json!({
                    "loop_id": text("Its id"),
                    "loop": text("Its name"),
                    "backlog": text("The backlog it works on"),
                    "pid": whole("The engine's process"),
                    "log": text("The file with what it prints"),
                    "watch_with": text("How to follow it in a terminal"),
                })),
                effect: Effect::Acts,
                whom: Whom::Clients,
            },
            start,
        ),
        Entry::new(
            About {
                whom: Whom::Both,
                ..reads(
                    "status",
                    "Status of a loop",
                    "Where a loop stands: state, counts of tasks, the task and attempt at work, what it waits \
                     for, open questions, the last iterations, tokens and cost so far, and why the last run \
                     ended. `engine_alive` says whether somebody is at work on it.",
                    status_shape(),
                )
            },
            |office, WhichLoop { which }| status(office, which.as_deref()),
        ),
        Entry::new(
            reads(
                "health_status",
                "Health of loops",
                "How the agents of this repository's loops are: healthy, degraded, stuck, failing or \
                 terminated, their last sign of progress, the breaker that stops a loop which gets nowhere, and \
                 loops whose engine died.",
                shape(json!({ "loops": list_of("One entry for each loop") })),
            ),
            |office, _: Nothing| Ok(json!({ "loops": value(&health::all(&office.loops()?)?)? })),
        ),
        Entry::new(
            reads(
                "token_status",
                "Tokens of a loop",
                "What the agents of a loop used: tokens and cost in total, by task, agent and model, and for \
                 each start of an agent (the newest are shown). Figures are the agents' own; \
                 `without_figures` counts starts that gave none.",
                shape(json!({
                    "loop": text("Its name"),
                    "total": { "type": "object", "description": "Tokens and cost of all starts together" },
                    "by_task": { "type": "object" }, "by_agent": { "type": "object" },
                    "by_model": { "type": "object" },
                    "starts": list_of("The newest starts of agents"),
                })),
            ),
            |office, WhichLoop { which }| tokens_of(office, which.as_deref()),
        ),
        Entry::new(
            reads(
                "cost_report",
                "Cost of a loop, and forecast",
                "What a loop cost, by task, agent, model, day or loop, against its budgets, and what the rest \
                 will cost: `forecast.remaining_usd` holds in four cases of five between `low` and `high`; it \
                 is null while no task was completed with figures.",
                shape(json!({
                    "loop": text("Its name"),
                    "by": text("What the rows are told apart by"),
                    "total": { "type": "object" },
                    "rows": list_of("Their sums are the total"),
                    "budgets": list_of("Limits, and what of them is spent"),
                    "forecast": { "type": ["object", "null"] },
                })),
            ),
            cost_of,
        ),
    ]
}

/// The loops, as the tool and the resource of that name tell them.
pub(crate) fn list(office: &Office) -> Result<Value, Refusal> {
    let Some(loops) = Loops::of(&office.checkout)? else { return Ok(json!({ "loops": [] })) };
    let mut listed = Vec::new();
    for record in loops.all()? {
        let Seen { status, lease } = loops.look(&record)?;
        listed.push(json!({
            "loop_id": status.loop_id,
            "name": status.name,
            "backlog": status.backlog,
            "state": status.state,
            "activity": status.activity,
            "tasks": status.counts.total,
            "done": status.counts.done,
            "questions": status.questions.len(),
            "engine_alive": lease.alive().is_some(),
            "interrupted": status.activity.is_interrupted(),
        }));
    }
    Ok(json!({ "loops": listed }))
}

fn status_shape() -> Value {
    shape(json!({
        "loop_id": text("Its id"),
        "name": text("Its name"),
        "backlog": text("The backlog it works on"),
        "state": text("initializing, running, paused, handoff, completing, completed, failed or terminated"),
        "activity": text(
            "What it does right now: not_started, running, waiting, blocked, paused, interrupted, died, \
             person_needed, answered, completed, failed, terminated or restored",
        ),
        "engine_alive": { "type": "boolean", "description": "Is somebody at work on it?" },
        "counts": { "type": "object", "description": "How many tasks are in which state" },
        "current": { "type": ["object", "null"], "description": "The task and attempt at work" },
        "waiting": { "type": ["string", "null"], "description": "What it waits for" },
        "questions": list_of("Open questions"),
        "termination_reason": { "type": ["string", "null"], "description": "Why the last run ended" },
    }))
}

/// The status of a loop, as the tool and the resource of that name tell it.
pub(crate) fn status(office: &Office, which: Option<&str>) -> Result<Value, Refusal> {
    let loops = office.loops()?;
    let record = office.select(&loops, which)?;
    let Seen { status, lease } = loops.look(&record)?;
    let mut status = value(&status)?;
    if let Some(object) = status.as_object_mut() {
        object.insert("engine_alive".to_owned(), lease.alive().is_some().into());
    }
    Ok(status)
}

fn tokens_of(office: &Office, which: Option<&str>) -> Result<Value, Refusal> {
    let loops = office.loops()?;
    let record = office.select(&loops, which)?;
    let mut report = value(&tokens::of(&loops, &record)?)?;
    newest(&mut report, "starts");
    Ok(report)
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CostInput {
    /// Name of a loop, or the beginning of its id. Left out: the loop that runs, else the one that ran last
    #[serde(rename = "loop")]
    which: Option<String>,
    /// What the rows are told apart by; `loop` is about all loops of the repository
    #[serde(default)]
    by: By,
}

fn cost_of(office: &Office, CostInput { which, by }: CostInput) -> Result<Value, Refusal> {
    let mut report =
        value(&cost::report(&office.loops()?, office.meant(which.as_deref()), by, jiff::Timestamp::now())?)?;
    for field in ["rows", "over_time", "burn_down"] {
        newest(&mut report, field);
    }
    Ok(report)
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StartInput {
    /// The backlog, as a path inside the repository. Left out: the configured one, else the first of the
    /// usual names (PRD.json, tasks.json, fix_plan.md …)
    backlog: Option<String>,
    /// Name of the loop, where several work on one backlog
    name: Option<String>,
    /// The agent that does the work: claude, codex, gemini … or one from wiggum.toml
    agent: Option<String>,
    /// The model it is to use
    model: Option<String>,
    /// Stop after so many iterations
    max_iterations: Option<u32>,
    /// Stop before more than so many dollars are spent
    max_cost: Option<f64>,
}

fn start(office: &Office, input: StartInput) -> Result<Value, Refusal> {
    let StartInput { backlog, name, agent, model, max_iterations, max_cost } = input;
    let options = RunOptions { backlog, name, agent, model, max_iterations, max_cost };
    let dir = office.checkout.open(None).map_err(DeskError::from)?;
    let watch = Watch::over(&[dir.path().to_owned()]);
    let launched = office.program.run(&options)?;
    let record = match launched.begun(&office.checkout, watch, PATIENCE)? {
        Begun::Loop(record) => record,
        Begun::Ended(said) => return Err(Refusal::new(format!("the loop did not start:\n{said}"))),
        Begun::NotYet => {
            let log = launched.log.display();
            return Err(Refusal::new(format!("process {} has not begun its loop yet", launched.pid))
                .hint(format!("`list_loops` shows it once it has; what it prints is in {log}")));
        }
    };
    Ok(json!({
        "loop_id": record.id.to_string(),
        "loop": record.identity.name,
        "backlog": record.identity.backlog,
        "pid": launched.pid,
        "log": launched.log.display().to_string(),
        "watch_with": format!("wiggum events --follow --loop {}", record.identity.name),
    }))
}
