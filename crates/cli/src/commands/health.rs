//! `wiggum health`: how the agents of this repository's loops are, and what stands in the way of loops.

use std::process::ExitCode;

use jiff::Timestamp;
use serde::Serialize;
use wiggum_engine::status::{BreakerStatus, HealthStatus, Status};
use wiggum_store::LoopRecord;

use crate::args::OutputArgs;
use crate::commands::describe::one_line;
use crate::commands::loops::{Engine, Loops};
use crate::commands::status::how_to_answer;
use crate::commands::{no_loops, print_json};
use crate::failure::Failure;
use crate::narrate::elapsed;
use crate::term::{self, Style};

/// How one loop is.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct LoopHealth {
    pub(crate) loop_id: String,
    pub(crate) name: String,
    pub(crate) repository: String,
    pub(crate) backlog: String,
    /// initializing, running, paused, handoff, completing, completed, failed or terminated.
    pub(crate) state: String,
    pub(crate) done: usize,
    pub(crate) total: usize,
    pub(crate) task: Option<String>,
    /// The number of the engine's process, if there is one.
    pub(crate) engine: Option<u32>,
    /// A run is unfinished, and its engine is gone.
    pub(crate) interrupted: bool,
    /// That engine gave nothing back: it was killed, or its machine failed.
    pub(crate) died: bool,
    /// Of the agent at work.
    pub(crate) health: Option<HealthStatus>,
    pub(crate) breaker: BreakerStatus,
    pub(crate) waiting: Option<String>,
    /// How each open question is answered.
    pub(crate) questions: Vec<String>,
    pub(crate) termination_reason: Option<String>,
}

pub(crate) fn health(args: &OutputArgs) -> Result<ExitCode, Failure> {
    let Some(loops) = Loops::open()? else { return no_loops(args.json) };
    let all = all(&loops)?;
    if args.json {
        return print_json(&all);
    }
    if all.is_empty() {
        return no_loops(false);
    }
    let (now, style) = (Timestamp::now(), Style::for_stdout());
    let blocks: Vec<String> = all.iter().map(|seen| block(seen, now, style)).collect();
    Ok(term::print(&blocks.join("\n")))
}

/// Every loop of a store, in the order they were made.
pub(crate) fn all(loops: &Loops) -> Result<Vec<LoopHealth>, Failure> {
    loops.all()?.iter().map(|record| of(loops, record)).collect()
}

pub(crate) fn of(loops: &Loops, record: &LoopRecord) -> Result<LoopHealth, Failure> {
    // Who is alive comes first: a run that ends in between is then seen as ended, not as lost.
    let (engine, dead) = match loops.engine(record.id)? {
        Engine::Alive(holder) => (Some(holder.pid), false),
        Engine::Dead(_) => (None, true),
        Engine::None => (None, false),
    };
    let mut status = loops.status(record)?;
    let written = last_beat(loops, record);
    let health = status.health.take().filter(|_| engine.is_some());
    let rests = status.termination_reason.is_some() || status.restored.is_some();
    let interrupted = engine.is_none() && !rests && status.run > 0;
    Ok(LoopHealth {
        interrupted,
        died: interrupted && dead,
        loop_id: status.loop_id,
        name: status.name,
        repository: status.repository,
        backlog: status.backlog,
        state: status.state,
        done: status.counts.done,
        total: status.counts.total,
        task: status.current.map(|current| current.task),
        health: health.map(|health| HealthStatus {
            last_beat: written.map_or(health.last_beat, |written| written.max(health.last_beat)),
            ..health
        }),
        breaker: status.breaker,
        waiting: status.waiting.filter(|_| engine.is_some()),
        questions: status.questions.iter().map(how_to_answer).collect(),
        termination_reason: status.termination_reason,
        engine,
    })
}

/// The engine tells the last sign of life in the status file only: it is not worth a transaction.
fn last_beat(loops: &Loops, record: &LoopRecord) -> Option<Timestamp> {
    let text = std::fs::read_to_string(loops.dir.loop_dir(record.id).join("status.json")).ok()?;
    serde_json::from_str::<Status>(&text).ok()?.health.map(|health| health.last_beat)
}

fn block(seen: &LoopHealth, now: Timestamp, style: Style) -> String {
    let mut lines = vec![format!(
        "{}  {}  {}",
        style.bold(&one_line(&seen.name)),
        state_words(seen, style),
        one_line(&seen.backlog)
    )];
    if let Some(health) = &seen.health {
        let since = elapsed(health.since, now);
        let detail = if health.detail.is_empty() { String::new() } else { format!(": {}", health.detail) };
        let word = health_word(&health.health, style);
        lines.push(format!("  agent      {word} for {since}{}", one_line(&detail)));
        let nudges = match health.nudges {
            0 => String::new(),
            1 => ", 1 nudge since".to_owned(),
            nudges => format!(", {nudges} nudges since"),
        };
        lines.push(format!("  last beat  {} ago{nudges}", elapsed(health.last_beat, now)));
    }
    lines.push(format!("  breaker    {}", breaker_words(&seen.breaker, style)));
    if let Some(waiting) = &seen.waiting {
        lines.push(format!("  waits for  {}", one_line(waiting)));
    }
    lines.extend(seen.questions.iter().map(|question| format!("  question   {}", style.cyan(question))));
    lines.join("\n") + "\n"
}

pub(crate) fn state_words(seen: &LoopHealth, style: Style) -> String {
    if seen.died {
        return style.red("interrupted: its engine died");
    }
    if seen.interrupted {
        return style.yellow("interrupted");
    }
    match seen.state.as_str() {
        "running" | "completing" | "completed" => style.green(&seen.state),
        "failed" => style.red(&seen.state),
        _ => style.yellow(&seen.state),
    }
}

pub(crate) fn health_word(word: &str, style: Style) -> String {
    match word {
        "healthy" => style.green(word),
        "degraded" | "stuck" => style.yellow(word),
        _ => style.red(word),
    }
}

fn breaker_words(breaker: &BreakerStatus, style: Style) -> String {
    let why = breaker.why.as_ref().map(|why| format!(": {}", one_line(why))).unwrap_or_default();
    let until = breaker.until.map(|until| format!(" until {until:.0}")).unwrap_or_default();
    match breaker.state.as_str() {
        "" | "closed" => {
            let counted: Vec<String> = [
                (breaker.no_progress, "without progress"),
                (breaker.same_error, "with the same error"),
                (breaker.permission_denied, "not permitted to act"),
            ]
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
            let counted =
                if counted.is_empty() { String::new() } else { format!(" ({})", counted.join(", ")) };
            format!("{}{counted}", style.green("closed"))
        }
        state => format!("{}{until}{why}", style.red(state)),
    }
}
