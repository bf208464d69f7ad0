//! `wiggum health`: how the agents of this repository's loops are, and what stands in the way of loops.

use std::process::ExitCode;

use jiff::Timestamp;
use wiggum_core::activity::Activity;
pub(crate) use wiggum_engine::desk::health::{LoopHealth, all, of};
use wiggum_engine::status::BreakerStatus;
use wiggum_engine::words::one_line;

use crate::args::OutputArgs;
use crate::commands::{loops, no_loops, print_json};
use crate::failure::Failure;
use crate::narrate::elapsed;
use crate::term::{self, Style};

pub(crate) fn health(args: &OutputArgs) -> Result<ExitCode, Failure> {
    let Some(loops) = loops::open()? else { return no_loops(args.json) };
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
    activity_words(seen.activity, &seen.state, style)
}

/// What a loop does; while it runs, its state says more.
pub(crate) fn activity_words(activity: Activity, state: &str, style: Style) -> String {
    match activity {
        Activity::Running => style.green(state),
        Activity::Completed => style.green(activity.says()),
        Activity::Died | Activity::Failed => style.red(activity.says()),
        Activity::NotStarted
        | Activity::Waiting
        | Activity::Blocked
        | Activity::Paused
        | Activity::Interrupted
        | Activity::PersonNeeded
        | Activity::Answered
        | Activity::Terminated
        | Activity::Restored => style.yellow(activity.says()),
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
