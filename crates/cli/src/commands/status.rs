//! `wiggum status`: what the loops of this repository are doing, from the stored status alone, and
//! the loops inside agents' own sessions and in tmux panes beside them.

use std::process::ExitCode;

use jiff::Timestamp;
use serde::Serialize;
use wiggum_core::activity::Activity;
use wiggum_core::event::Request;
use wiggum_engine::desk::inbox::how_to_answer;
use wiggum_engine::status::{QuestionStatus, Status};

use crate::args::OutputArgs;
use crate::commands::health::activity_words;
use crate::commands::loops::{self, Lease, Loops};
use crate::commands::surroundings_of;
use crate::commands::{dispatch, no_loops, print_json};
use crate::cost::{budget, lower_bound};
use crate::failure::Failure;
use crate::narrate::elapsed;
use crate::session::show;
use crate::session::state::Session;
use crate::term::{self, Style};
use wiggum_engine::words::one_line;
use wiggum_store::Pending;

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
    /// Questions whose answers wait for the next run.
    #[serde(skip)]
    answered: Vec<String>,
    /// What a command has to call this loop to answer its questions, if other loops ask too.
    #[serde(skip)]
    named: Option<String>,
    /// What was asked of the loop and not taken up yet, oldest first.
    pending: Vec<Asked>,
    /// Where its journal and the rest of its private state are.
    state_dir: String,
}

/// A request that waits for the engine.
#[derive(Serialize)]
struct Asked {
    request: Request,
    by: String,
    at: Timestamp,
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
    Session(show::Block<'a>),
    Dispatch(dispatch::Block<'a>),
}

pub(crate) fn status(args: &OutputArgs) -> Result<ExitCode, Failure> {
    let workspace = loops::workspace()?;
    let now = Timestamp::now();
    let agents = dispatch::all(&workspace);
    let mut sessions = show::recent(&workspace, now);
    let in_pane = |session: &Session| agents.iter().flatten().any(|agent| agent.is(session));
    sessions.retain(|session| !session.as_ref().is_ok_and(in_pane));
    let seen = match Loops::of(&surroundings_of(workspace.clone()).checkout()?)? {
        Some(loops) => all(&loops)?,
        None => Vec::new(),
    };
    if args.json {
        let loops = seen.iter().map(Shown::Loop);
        let sessions = show::shown(&sessions).map(Shown::Session);
        let agents = dispatch::shown(&agents).map(Shown::Dispatch);
        return print_json(&loops.chain(sessions).chain(agents).collect::<Vec<_>>());
    }
    if seen.is_empty() && sessions.is_empty() && agents.is_empty() {
        return no_loops(false);
    }
    let style = Style::for_stdout();
    let mut blocks: Vec<String> = seen.iter().map(|seen| block(seen, now, style)).collect();
    blocks.extend(show::blocks(&sessions, now, style));
    blocks.extend(dispatch::blocks(&agents, now, style));
    blocks.extend(seen.first().map(|seen| style.dim(&format!("state in {}", seen.state_dir)) + "\n"));
    Ok(term::print(&blocks.join("\n")))
}

/// Every loop of the store, in the order they were made.
pub(crate) fn all(loops: &Loops) -> Result<Vec<Seen>, Failure> {
    let mut all = Vec::new();
    for record in loops.all()? {
        let wiggum_engine::desk::Seen { status, lease } = loops.look(&record)?;
        let engine = match lease {
            Lease::Alive(holder) => Some(LiveEngine { pid: holder.pid, host: holder.host }),
            Lease::Dead(_) | Lease::None => None,
        };
        let interrupted = status.activity.is_interrupted();
        let state_dir = loops.dir.path().display().to_string();
        let unanswered = loops.unanswered(&record, &status.questions)?;
        let is_answered = |id: &String| unanswered.iter().all(|question| question.id != *id);
        let answered = status.questions.iter().map(|question| question.id.clone()).filter(is_answered);
        let answered = answered.collect();
        let pending = loops.store.pending(record.id)?.into_iter();
        let pending = pending.map(|Pending { request, by, at, .. }| Asked { request, by, at }).collect();
        let named = if unanswered.is_empty() { None } else { loops.named_to_answer(&record)? };
        all.push(Seen { status, engine, interrupted, answered, named, pending, state_dir });
    }
    Ok(all)
}

fn block(seen: &Seen, now: Timestamp, style: Style) -> String {
    let status = &seen.status;
    let mut lines = vec![headline(seen, style), format!("  {}", progress(status, style))];
    lines.extend(current(seen, now));
    if let Some(health) = status.health.as_ref() {
        let detail =
            if health.detail.is_empty() { String::new() } else { format!(": {}", one_line(&health.detail)) };
        let word = super::health::health_word(&health.health, style);
        lines.push(format!("  health     {word} since {}{detail}", elapsed(health.since, now)));
    }
    if let Some(why) = status.breaker.why.as_ref() {
        lines.push(format!("  breaker    {}: {}", style.red(&status.breaker.state), one_line(why)));
    }
    if let Some(waiting) = status.waiting.as_ref() {
        lines.push(format!("  waits for  {}", one_line(waiting)));
    }
    for question in &status.questions {
        if seen.answered.contains(&question.id) {
            let waits = format!("  · {} is answered: `wiggum run` goes on with it", question.id);
            lines.push(style.dim(&waits));
        } else {
            let how = how_to_answer(question, seen.named.as_deref());
            lines.extend(question_lines(question, &how, now, style));
        }
    }
    let who_takes_it =
        if seen.engine.is_some() { "the loop takes it up" } else { "`wiggum run` takes it up" };
    lines.extend(
        seen.pending
            .iter()
            .filter_map(asked_words)
            .map(|asked| style.dim(&format!("  · {asked}: {who_takes_it}"))),
    );
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

/// A request that waits, in words. Answers are shown with their questions, and what means the engine that ran when it
/// was asked for is nothing to wait for.
fn asked_words(asked: &Asked) -> Option<String> {
    let what = match &asked.request {
        Request::Skip { task } => format!("skip {task}"),
        Request::Retry { task } => format!("retry {task}"),
        Request::SetStatus { task, status } => format!("set {task} to {}", status.name()),
        Request::Checkpoint => "a checkpoint".to_owned(),
        Request::Answer { .. }
        | Request::BacklogEdited { .. }
        | Request::Pause
        | Request::Resume
        | Request::Stop
        | Request::Nudge { .. }
        | Request::Handoff
        | Request::Report { .. } => return None,
    };
    Some(one_line(&format!("{what}, asked for by {}", asked.by)))
}

fn headline(seen: &Seen, style: Style) -> String {
    let Status { name, backlog, state, run, agent, .. } = &seen.status;
    let activity = seen.status.activity;
    let goes_on = match activity {
        Activity::Interrupted | Activity::Restored | Activity::Answered => ": `wiggum run` goes on",
        Activity::Died => "; `wiggum run` goes on",
        Activity::NotStarted
        | Activity::Running
        | Activity::Waiting
        | Activity::Blocked
        | Activity::Paused
        | Activity::PersonNeeded
        | Activity::Completed
        | Activity::Failed
        | Activity::Terminated => "",
    };
    let state = format!("{}{goes_on}", activity_words(activity, state, style));
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

fn progress(status: &Status, style: Style) -> String {
    let counts = &status.counts;
    let filled = (counts.done * BAR).checked_div(counts.total).unwrap_or(0).min(BAR);
    let bar = format!("{}{}", "█".repeat(filled), "░".repeat(BAR - filled));
    let mut text = format!("{} {}/{} done", style.green(&bar), counts.done, counts.total);
    let others = [
        (counts.unverified, "unverified"),
        (counts.by_hand, "by hand"),
        (counts.running, "running"),
        (counts.interrupted, "interrupted"),
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
    let stage = match seen.status.activity.is_interrupted() {
        true => format!("interrupted at the stage \"{}\"", current.stage),
        false => format!("{} since {}", current.stage, elapsed(current.started_at, now)),
    };
    Some(format!(
        "  iteration  {}{limit}: {}, attempt {}, {stage}",
        seen.status.current_iteration,
        one_line(&format!("{}{title}", current.task)),
        current.attempt,
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
pub(crate) fn question_lines(
    question: &QuestionStatus,
    how: &str,
    now: Timestamp,
    style: Style,
) -> [String; 2] {
    let about = question.task.as_ref().map(|task| format!(" about {}", one_line(task))).unwrap_or_default();
    [
        format!(
            "  {} {}{about}: {}{}",
            style.yellow("?"),
            style.bold(&question.id),
            one_line(&question.summary),
            style.dim(&format!("  {} ago", elapsed(question.raised_at, now)))
        ),
        format!("      {}", style.cyan(how)),
    ]
}
