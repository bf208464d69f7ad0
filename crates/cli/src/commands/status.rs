//! `wiggum status`: what the loops of this repository are doing, from the stored status alone, and
//! the loops inside agents' own sessions and in tmux panes beside them.

use std::process::ExitCode;

use jiff::Timestamp;
use serde::Serialize;
use wiggum_engine::desk::inbox::how_to_answer;
use wiggum_engine::status::{Counts, QuestionStatus, Status};

use crate::args::OutputArgs;
use crate::commands::loops::{self, Lease, Loops};
use crate::commands::{dispatch, no_loops, print_json, session};
use crate::cost::{budget, lower_bound};
use crate::failure::Failure;
use crate::narrate::elapsed;
use crate::session::state::Session;
use crate::term::{self, Style};
use wiggum_engine::words::one_line;

/// Cells of the progress bar.
const BAR: usize = 24;

/// The stored status, and whether somebody is at work on it.
#[derive(Serialize)]
pub(crate) struct Seen {
    #[serde(flatten)]
    pub(crate) status: Status,
    engine: Option<LiveEngine>,
    /// A run is unfinished and nobody is at work on it: `wiggum run` goes on.
    interrupted: bool,
}

#[derive(Serialize)]
struct LiveEngine {
    pid: u32,
    host: String,
}

/// One block of the answer to other programs; all but loops have a `kind`.
#[derive(Serialize)]
#[serde(untagged)]
enum Shown<'a> {
    Loop(&'a Seen),
    Session(session::Block<'a>),
    Dispatch(dispatch::Block<'a>),
}

pub(crate) fn status(args: &OutputArgs) -> Result<ExitCode, Failure> {
    let workspace = loops::workspace()?;
    let now = Timestamp::now();
    let agents = dispatch::all(&workspace);
    let mut sessions = session::recent(&workspace, now);
    let in_pane = |session: &Session| agents.iter().flatten().any(|agent| agent.is(session));
    sessions.retain(|session| !session.as_ref().is_ok_and(in_pane));
    let seen = match Loops::of(&workspace)? {
        Some(loops) => all(&loops)?,
        None => Vec::new(),
    };
    if args.json {
        let loops = seen.iter().map(Shown::Loop);
        let sessions = session::shown(&sessions).map(Shown::Session);
        let agents = dispatch::shown(&agents).map(Shown::Dispatch);
        return print_json(&loops.chain(sessions).chain(agents).collect::<Vec<_>>());
    }
    if seen.is_empty() && sessions.is_empty() && agents.is_empty() {
        return no_loops(false);
    }
    let style = Style::for_stdout();
    let mut blocks: Vec<String> = seen.iter().map(|seen| block(seen, now, style)).collect();
    blocks.extend(session::blocks(&sessions, now, style));
    blocks.extend(dispatch::blocks(&agents, now, style));
    Ok(term::print(&blocks.join("\n")))
}

/// Every loop of the store, in the order they were made.
pub(crate) fn all(loops: &Loops) -> Result<Vec<Seen>, Failure> {
    let mut all = Vec::new();
    for record in loops.all()? {
        // Who is alive comes first: a run that ends in between is then seen as ended, not as lost.
        let engine = match loops.lease(record.id)? {
            Lease::Alive(holder) => Some(LiveEngine { pid: holder.pid, host: holder.host }),
            Lease::Dead(_) | Lease::None => None,
        };
        let status = loops.status(&record)?;
        let interrupted = engine.is_none() && !status.is_at_rest();
        all.push(Seen { status, engine, interrupted });
    }
    Ok(all)
}

fn block(seen: &Seen, now: Timestamp, style: Style) -> String {
    let status = &seen.status;
    let mut lines = vec![headline(seen, style), format!("  {}", progress(&status.counts, style))];
    lines.extend(current(seen, now));
    if let Some(health) = status.health.as_ref().filter(|_| seen.engine.is_some()) {
        let detail =
            if health.detail.is_empty() { String::new() } else { format!(": {}", one_line(&health.detail)) };
        let word = super::health::health_word(&health.health, style);
        lines.push(format!("  health     {word} since {}{detail}", elapsed(health.since, now)));
    }
    if let Some(why) = status.breaker.why.as_ref() {
        lines.push(format!("  breaker    {}: {}", style.red(&status.breaker.state), one_line(why)));
    }
    if let Some(waiting) = status.waiting.as_ref().filter(|_| seen.engine.is_some()) {
        lines.push(format!("  waits for  {}", one_line(waiting)));
    }
    for question in &status.questions {
        lines.extend(question_lines(question, now, style));
    }
    lines.extend(last(status, now).map(|last| format!("  last       {last}")));
    lines.extend(cost(status).map(|cost| format!("  cost       {cost}")));
    lines.extend(
        status
            .budgets
            .iter()
            .map(|limit| format!("  budget     {} ({})", budget(limit, status.unpriced_tokens), limit.scope)),
    );
    if let Some(detail) = &status.detail {
        let reason = status.termination_reason.as_deref().unwrap_or_default();
        lines.push(format!("  ended      {} ({reason})", one_line(detail)));
    }
    lines.join("\n") + "\n"
}

fn headline(seen: &Seen, style: Style) -> String {
    let Status { name, backlog, state, run, agent, .. } = &seen.status;
    let state = if seen.interrupted {
        style.yellow("interrupted: `wiggum run` goes on")
    } else if seen.status.restored.is_some() {
        style.yellow("back at a checkpoint: `wiggum run` goes on")
    } else {
        match state.as_str() {
            "running" | "completed" => style.green(state),
            "failed" => style.red(state),
            _ => style.yellow(state),
        }
    };
    let mut text = format!("{}  {state}  {}", style.bold(&one_line(name)), one_line(backlog));
    if *run > 0 {
        text.push_str(&format!(" · run {run}"));
    }
    if let Some(engine) = &seen.engine {
        text.push_str(&format!(" · process {}", engine.pid));
    }
    if !agent.is_empty() {
        text.push_str(&style.dim(&format!(" · {}", one_line(agent))));
    }
    text
}

fn progress(counts: &Counts, style: Style) -> String {
    let filled = (counts.done * BAR).checked_div(counts.total).unwrap_or(0).min(BAR);
    let bar = format!("{}{}", "█".repeat(filled), "░".repeat(BAR - filled));
    let mut text = format!("{} {}/{} done", style.green(&bar), counts.done, counts.total);
    let others = [
        (counts.unverified, "unverified"),
        (counts.running, "running"),
        (counts.open, "open"),
        (counts.parked, "parked"),
        (counts.failed, "failed"),
        (counts.skipped, "skipped"),
    ];
    for (count, word) in others.into_iter().filter(|(count, _)| *count > 0) {
        text.push_str(&format!(", {count} {word}"));
    }
    text
}

fn current(seen: &Seen, now: Timestamp) -> Option<String> {
    let current = seen.status.current.as_ref()?;
    let limit = seen.status.max_iterations.map(|max| format!("/{max}")).unwrap_or_default();
    let title = if current.title == current.task { String::new() } else { format!(" {}", current.title) };
    Some(format!(
        "  iteration  {}{limit}: {}, attempt {}, {} since {}",
        seen.status.current_iteration,
        one_line(&format!("{}{title}", current.task)),
        current.attempt,
        current.stage,
        elapsed(current.started_at, now)
    ))
}

fn last(status: &Status, now: Timestamp) -> Option<String> {
    let last = status.iterations.last()?;
    Some(format!(
        "{}, attempt {}: {}, {} ago",
        one_line(&last.task),
        last.attempt,
        last.outcome,
        elapsed(last.completed_at, now)
    ))
}

fn cost(status: &Status) -> Option<String> {
    let (input, output) = (status.total_input_tokens, status.total_output_tokens);
    if status.total_cost <= 0.0 && input + output == 0 {
        return None;
    }
    let cost = lower_bound(status.total_cost, status.unpriced_tokens);
    Some(format!("{cost}, {input} tokens in, {output} out"))
}

/// A question as the status and the inbox begin it.
pub(crate) fn question_lines(question: &QuestionStatus, now: Timestamp, style: Style) -> [String; 2] {
    let about = question.task.as_ref().map(|task| format!(" about {}", one_line(task))).unwrap_or_default();
    [
        format!(
            "  {} {}{about}: {}{}",
            style.yellow("?"),
            style.bold(&question.id),
            one_line(&question.summary),
            style.dim(&format!("  {} ago", elapsed(question.raised_at, now)))
        ),
        format!("      {}", style.cyan(&how_to_answer(question))),
    ]
}
