//! Whether a session may stop: pure, from what was seen of it.
//!
//! A promise needs its checks, a failed check is handed back with the task, and every limit lets the
//! agent go. "All tests passing" and the like support a promise; alone they complete nothing.

use jiff::Timestamp;
use wiggum_core::event::{EndReason, Exit, Trouble};
use wiggum_core::ids::TaskId;
use wiggum_core::signal::support::{Rows, Rules};
use wiggum_core::signal::{ClaimReader, DEFAULT_PROMISES, failure_from, read_escalations};
use wiggum_core::text::{clip, fold_whitespace, is_telling, trim_output};

use super::state::Session;

/// What was seen at a stop.
#[derive(Debug)]
pub(crate) struct Stop<'a> {
    pub(crate) message: &'a str,
    /// The message is only about what keeps the agent from working.
    pub(crate) trouble: Option<Trouble>,
    pub(crate) used_tools: bool,
    pub(crate) progress: bool,
    pub(crate) checked: Checked,
    /// How often in a row the agent lets itself be sent back without using a tool; `None` is no limit.
    pub(crate) cap: Option<u32>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Checked {
    NotConfigured,
    Passed {
        checks: usize,
    },
    /// Boxes of the plan are not ticked; none are known of a plan that cannot be read.
    Open {
        plan: String,
        boxes: Vec<String>,
    },
    Failed {
        command: String,
        exit: Exit,
        output: String,
    },
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Sent back to work: for the agent, and in a line for the user.
    Block { reason: String, note: String },
    /// Let go, with the reason for the user.
    Release { note: String },
}

/// How much of a failed check's output is handed back.
const MOST_OUTPUT: usize = 4_000;

pub(crate) fn judge(session: &mut Session, stop: &Stop<'_>, now: Timestamp) -> Verdict {
    session.updated_at = now;
    session.last = last_action(stop.message);
    if let Some(why) = waits(session, stop) {
        session.working = false;
        return Verdict::Release { note: why };
    }
    count(session, stop);
    if let Some(how) = done(session, stop) {
        let detail = format!("done after {}: {how}", iterations(session.iteration));
        return release(session, EndReason::GoalAchieved, detail, now);
    }
    if let Some((reason, detail)) = guard(session, stop) {
        return release(session, reason, detail, now);
    }
    session.iteration += 1;
    session.seen.blocks += 1;
    session.working = true;
    let missing = missing(session, &stop.checked);
    Verdict::Block {
        note: format!("wiggum: iteration {} begins: {}", session.progress(), missing.in_short),
        reason: handed_back(session, &missing.in_full),
    }
}

fn release(session: &mut Session, reason: EndReason, detail: String, now: Timestamp) -> Verdict {
    let note = format!("wiggum: {detail}");
    session.end(reason, detail, now);
    Verdict::Release { note }
}

/// Neither costs an iteration, and the loop goes on with the user's next words.
fn waits(session: &Session, stop: &Stop<'_>) -> Option<String> {
    if let Some(trouble) = &stop.trouble {
        let words = fold_whitespace(stop.message);
        return Some(format!("wiggum: the agent cannot work, which costs no iteration: {trouble}: {words}"));
    }
    let question = read_escalations(stop.message, &session.prompt).into_iter().next()?;
    let summary = clip(&fold_whitespace(&question.summary), 200).into_owned();
    Some(format!("wiggum: the agent asks you, and the loop waits for your answer: {summary}"))
}

fn count(session: &mut Session, stop: &Stop<'_>) {
    let seen = &mut session.seen;
    seen.without_progress = if stop.progress { 0 } else { seen.without_progress + 1 };
    seen.blocks = if stop.used_tools { 0 } else { seen.blocks };
    let rows = Rows { done: seen.ready, ..Rows::default() };
    seen.ready = rows.with(Rules::default().phrase(stop.message).is_some(), false).done;
    let error = error_of(stop).unwrap_or_default();
    seen.error_times = match error.is_empty() {
        true => 0,
        false if error == seen.error => seen.error_times + 1,
        false => 1,
    };
    seen.error = error;
}

/// The error of this iteration without its paths, numbers and times.
fn error_of(stop: &Stop<'_>) -> Option<String> {
    match &stop.checked {
        Checked::Failed { exit, output, .. } => Some(failure_from(*exit, output, "").signature),
        Checked::Passed { .. } | Checked::Open { .. } => None,
        Checked::NotConfigured => {
            let line = stop.message.lines().rfind(|line| is_telling(line))?;
            Some(wiggum_core::signal::signature(line))
        }
    }
}

/// How the work is known to be done, if it is.
fn done(session: &Session, stop: &Stop<'_>) -> Option<String> {
    let claim = claim(session, stop.message);
    match (claim, &stop.checked) {
        (_, Checked::Failed { .. } | Checked::Open { .. }) => None,
        (Some(claim), Checked::Passed { checks }) => {
            Some(format!("the agent says {claim} and {} passed", count_of(*checks)))
        }
        (Some(claim), Checked::NotConfigured) => {
            Some(format!("the agent says {claim} (unverified: no check is configured)"))
        }
        (None, Checked::Passed { checks }) => {
            // Said often enough in a row, it is taken at its word where the session allows it.
            let times = Rules::default().done_claims;
            let enough = session.complete_without_claim && session.seen.ready >= times;
            enough.then(|| {
                format!("the agent said {times} times that it is ready, and {} passed", count_of(*checks))
            })
        }
        (None, Checked::NotConfigured) => None,
    }
}

fn guard(session: &Session, stop: &Stop<'_>) -> Option<(EndReason, String)> {
    let seen = &session.seen;
    let open = |limit: u32, times: u32| limit > 0 && times >= limit;
    if open(session.same_error_limit, seen.error_times) {
        let detail = format!("stopped: the same error {} times in a row: {}", seen.error_times, seen.error);
        return Some((EndReason::CircuitBreakerOpen, detail));
    }
    if open(session.max_iterations, session.iteration) {
        let detail = format!(
            "stopped: the limit of {} is reached and the task is not done",
            iterations(session.max_iterations)
        );
        return Some((EndReason::MaxIterations, detail));
    }
    if open(session.no_progress_limit, seen.without_progress) {
        let detail = format!(
            "stopped: nothing in the repository changed for {}, and the task is not done",
            iterations(seen.without_progress)
        );
        return Some((EndReason::NoProgress, detail));
    }
    let cap = stop.cap.filter(|cap| seen.blocks >= *cap)?;
    let detail = format!(
        "stopped: {} lets itself be sent back {cap} times in a row without using a tool, and would end \
         silently now (CLAUDE_CODE_STOP_HOOK_BLOCK_CAP changes that)",
        session.agent.name()
    );
    Some((EndReason::MaxIterations, detail))
}

/// The promise in the agent's last message, if it makes one.
fn claim(session: &Session, message: &str) -> Option<String> {
    let task = TaskId::new(session.session_id.as_str());
    let own: Option<[&str; 1]> = session.completion_promise.as_deref().map(|promise| [promise]);
    let promises: &[&str] = own.as_ref().map_or(DEFAULT_PROMISES, |own| own);
    let given = format!("{}\n{}", instructions(session), session.prompt);
    let reader = ClaimReader { task: &task, prompt: &given, promises };
    reader.read(message).map(|claim| claim.text)
}

struct Missing {
    in_short: String,
    in_full: String,
}

fn missing(session: &Session, checked: &Checked) -> Missing {
    let promise = promise_line(session);
    match checked {
        Checked::Failed { command, exit, output } => Missing {
            in_short: format!("`{command}` failed ({exit})"),
            in_full: match indented(&trim_output(output, MOST_OUTPUT)) {
                none if none.is_empty() => format!("`{command}` failed ({exit}) and printed nothing."),
                output => format!("`{command}` failed ({exit}):\n\n{output}"),
            },
        },
        Checked::Open { plan, boxes } if boxes.is_empty() => Missing {
            in_short: format!("{plan} cannot be read"),
            in_full: format!("the plan {plan} cannot be read, so nothing is known to be done."),
        },
        Checked::Open { plan, boxes } => Missing {
            in_short: format!("{} of {plan}", open_count(boxes.len())),
            in_full: format!(
                "{} of {plan}:\n\n{}",
                open_count(boxes.len()),
                indented(&trim_output(&boxes.join("\n"), MOST_OUTPUT))
            ),
        },
        Checked::Passed { checks } => Missing {
            in_short: "the checks pass, and the task was not promised".to_owned(),
            in_full: format!("{} passed, but your message does not end with {promise}.", count_of(*checks)),
        },
        Checked::NotConfigured => Missing {
            in_short: "the task was not promised".to_owned(),
            in_full: format!("your message does not end with {promise}."),
        },
    }
}

/// What the agent is told when it is sent back: the task itself, never just "continue".
fn handed_back(session: &Session, missing: &str) -> String {
    format!(
        "The task is not done. Iteration {} begins.\n\nMissing: {missing}\n\nThe task, as it was given:\n\n{}\n\n{}",
        session.progress(),
        session.prompt,
        instructions(session)
    )
}

/// What the agent is told when its loop begins, or goes on after a break.
pub(crate) fn opening(session: &Session) -> String {
    format!(
        "This is iteration {} of a Ralph loop: whenever you stop before the task is done you are given it again. \
         The task:\n\n{}\n\n{}",
        session.progress(),
        session.prompt,
        instructions(session)
    )
}

/// How to end a session's loop, as the agent is told it.
fn instructions(session: &Session) -> String {
    let plan = session.plan.as_ref().map(|plan| format!("every box of {plan} ticked"));
    let commands = session.verify.iter().map(|command| format!("`{command}` successful"));
    let conditions: Vec<String> = plan.into_iter().chain(commands).collect();
    let checks = match conditions.as_slice() {
        [] => String::new(),
        conditions => format!("It counts only with {}. ", conditions.join(", ")),
    };
    format!(
        "Look at what is there already and go on from it. {checks}Only when all of the task is really done, end \
         your message with this line:\n\n{}",
        promise_line(session)
    )
}

fn promise_line(session: &Session) -> String {
    let promise = session.completion_promise.as_deref().unwrap_or(DEFAULT_PROMISES[0]);
    format!("<promise>{promise}</promise>")
}

fn last_action(message: &str) -> String {
    let line = message.lines().map(str::trim).find(|line| line.chars().any(char::is_alphanumeric));
    clip(&fold_whitespace(line.unwrap_or_default()), 100).into_owned()
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n")
}

fn open_count(count: usize) -> String {
    if count == 1 { "1 box is open".to_owned() } else { format!("{count} boxes are open") }
}

fn iterations(count: u32) -> String {
    if count == 1 { "1 iteration".to_owned() } else { format!("{count} iterations") }
}

fn count_of(count: usize) -> String {
    if count == 1 { "its check".to_owned() } else { format!("its {count} checks") }
}
