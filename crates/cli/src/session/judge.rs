//! Whether a session may stop: pure, from what was seen of it.
//!
//! A promise needs its checks, a failed check is handed back with the task, and every limit lets the
//! agent go. "All tests passing" and the like support a promise; alone they complete nothing.

use jiff::Timestamp;
use wiggum_core::event::{EndReason, Exit, Trouble};
use wiggum_core::ids::TaskId;
use wiggum_core::signal::support::{Rows, Signal};
use wiggum_core::signal::{ClaimReader, failure_from, read_escalations};
use wiggum_core::state::millis_between;
use wiggum_core::text::{clip, fold_whitespace, is_telling, trim_output};

use super::state::{Session, Waiting};
use crate::config::value::format_duration;

/// What was seen at a stop.
#[derive(Debug)]
pub(crate) struct Stop<'a> {
    pub(crate) message: &'a str,
    /// The message is only about what keeps the agent from working.
    pub(crate) trouble: Option<Trouble>,
    pub(crate) used_tools: bool,
    pub(crate) progress: bool,
    /// Since the last stop a commit was made.
    pub(crate) committed: bool,
    /// Since the last stop tests were changed, and nothing else.
    pub(crate) only_tests: bool,
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
    /// The plan is not done.
    Unfinished {
        plan: String,
        missing: MissingInPlan,
    },
    Failed {
        command: String,
        exit: Exit,
        output: String,
    },
}

/// Why a plan does not count as done.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum MissingInPlan {
    Unreadable,
    /// Nothing in it could be ticked.
    NoBoxes,
    Open(Vec<String>),
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
    if let Some(trouble) = &stop.trouble {
        return unavailable(session, trouble.clone(), stop.message);
    }
    session.last = last_action(stop.message);
    if let Some(question) = question(session, stop) {
        let note = format!("wiggum: the agent asks you, and the loop waits for your answer: {question}");
        session.wait(Waiting::Person { question });
        return Verdict::Release { note };
    }
    session.waiting = None;
    session.noted.take(session.iteration, stop.message, stop.progress);
    count(session, stop);
    if let Some(how) = done(session, stop) {
        let detail = format!("done after {}: {how}", iterations(session.iteration));
        return release(session, EndReason::GoalAchieved, detail, now);
    }
    if let Some((reason, detail)) = guard(session, stop, now) {
        return release(session, reason, detail, now);
    }
    session.iteration += 1;
    session.seen.blocks += 1;
    session.working = true;
    let missing = missing(session, &stop.checked);
    session.noted.missing.clone_from(&missing.in_short);
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

/// The agent cannot work. That costs no iteration, and the loop goes on with the user's next words.
pub(crate) fn unavailable(session: &mut Session, trouble: Trouble, message: &str) -> Verdict {
    let message = clip(&fold_whitespace(message), 300).into_owned();
    let why = trouble.with(&message);
    let waiting = Waiting::Agent { trouble, message };
    let note = match waiting.until() {
        Some(until) => format!(
            "wiggum: the loop waits until {until:.0}, which costs no iteration: {why}. After that it goes on with \
             your next words"
        ),
        None => format!("wiggum: the agent cannot work, which costs no iteration: {why}"),
    };
    session.wait(waiting);
    Verdict::Release { note }
}

/// What a person has to decide. That costs no iteration either.
fn question(session: &Session, stop: &Stop<'_>) -> Option<String> {
    let question = read_escalations(stop.message, &session.prompt).into_iter().next()?;
    Some(clip(&fold_whitespace(&question.summary), 200).into_owned())
}

fn count(session: &mut Session, stop: &Stop<'_>) {
    let signals = signals(session, stop);
    let seen = &mut session.seen;
    seen.without_progress = if stop.progress { 0 } else { seen.without_progress + 1 };
    seen.blocks = if stop.used_tools { 0 } else { seen.blocks };
    (seen.rows, seen.signals) = signals;
    let error = error_of(stop).unwrap_or_default();
    seen.errors = if error.is_empty() { 0 } else { seen.errors + 1 };
    seen.error_times = match error.is_empty() {
        true => 0,
        false if error == seen.error => seen.error_times + 1,
        false => 1,
    };
    seen.error = error;
}

/// What supports a claim, with the rows behind it. Alone it completes nothing.
fn signals(session: &Session, stop: &Stop<'_>) -> (Rows, Vec<Signal>) {
    let rules = &session.rules.claims;
    let phrase = rules.phrase(stop.message);
    let says_done = phrase.is_some() || claim(session, stop.message).is_some();
    let mut rows = session.seen.rows.with(says_done, stop.only_tests);
    if stop.committed {
        rows.without_commit = 0;
    }
    let boxes_ticked = match &stop.checked {
        Checked::NotConfigured | Checked::Unfinished { .. } => false,
        Checked::Passed { .. } | Checked::Failed { .. } => session.rules.plan.is_some(),
    };
    (rows, rules.signals(&rows, phrase, boxes_ticked))
}

/// The error of this iteration without its paths, numbers and times.
fn error_of(stop: &Stop<'_>) -> Option<String> {
    match &stop.checked {
        Checked::Failed { exit, output, .. } => Some(failure_from(*exit, output, "").signature),
        Checked::Passed { .. } | Checked::Unfinished { .. } => None,
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
        (_, Checked::Failed { .. } | Checked::Unfinished { .. }) => None,
        (Some(claim), Checked::Passed { checks }) => {
            Some(format!("the agent says {claim} and {} passed", count_of(*checks)))
        }
        (Some(claim), Checked::NotConfigured) => {
            Some(format!("the agent says {claim} (unverified: no check is configured)"))
        }
        (None, Checked::Passed { checks }) => {
            // Said often enough in a row, it is taken at its word where the session allows it.
            let times = session.rules.claims.done_claims;
            let enough = session.rules.complete_without_claim && times > 0 && session.seen.rows.done >= times;
            enough.then(|| {
                format!("the agent said {times} times that it is ready, and {} passed", count_of(*checks))
            })
        }
        (None, Checked::NotConfigured) => None,
    }
}

fn guard(session: &Session, stop: &Stop<'_>, now: Timestamp) -> Option<(EndReason, String)> {
    let (seen, rules) = (&session.seen, &session.rules);
    let open = |limit: u32, times: u32| limit > 0 && times >= limit;
    if open(rules.same_error_limit, seen.error_times) {
        let detail = format!("stopped: the same error {} times in a row: {}", seen.error_times, seen.error);
        return Some((EndReason::CircuitBreakerOpen, detail));
    }
    if open(rules.error_limit, seen.errors) {
        let detail = format!("stopped: {} errors in a row, the last one: {}", seen.errors, seen.error);
        return Some((EndReason::ConsecutiveErrors, detail));
    }
    if open(rules.max_iterations, session.iteration) {
        let detail = format!(
            "stopped: the limit of {} is reached and the task is not done",
            iterations(rules.max_iterations)
        );
        return Some((EndReason::MaxIterations, detail));
    }
    if let Some(limit) = rules.max_duration.filter(|limit| millis_between(session.started_at, now) >= limit.0)
    {
        let detail = format!("stopped: its time is up ({}) and the task is not done", format_duration(limit));
        return Some((EndReason::MaxDuration, detail));
    }
    if open(rules.no_progress_limit, seen.without_progress) {
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
    let promises = session.rules.promises();
    let given = format!("{}\n{}", instructions(session), session.prompt);
    let reader = ClaimReader { task: &task, prompt: &given, promises: &promises, mark: None };
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
        Checked::Unfinished { plan, missing } => missing_in_plan(plan, missing),
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

fn missing_in_plan(plan: &str, missing: &MissingInPlan) -> Missing {
    match missing {
        MissingInPlan::Unreadable => Missing {
            in_short: format!("{plan} cannot be read"),
            in_full: format!("the plan {plan} cannot be read, so nothing is known to be done."),
        },
        MissingInPlan::NoBoxes => Missing {
            in_short: format!("{plan} has no boxes"),
            in_full: format!("the plan {plan} has no boxes to tick, so nothing is known to be done."),
        },
        MissingInPlan::Open(boxes) => Missing {
            in_short: format!("{} of {plan}", open_count(boxes.len())),
            in_full: format!(
                "{} of {plan}:\n\n{}",
                open_count(boxes.len()),
                indented(&trim_output(&boxes.join("\n"), MOST_OUTPUT))
            ),
        },
    }
}

/// What the agent is told when it is sent back: the task itself, never just "continue".
fn handed_back(session: &mut Session, missing: &str) -> String {
    let stands = session.carry_checkpoint().map(|stands| format!("{stands}\n")).unwrap_or_default();
    format!(
        "The task is not done. Iteration {} begins.\n\nMissing: {missing}\n\n{stands}The task, as it was given:\n\n\
         {}\n\n{}",
        session.progress(),
        session.prompt,
        instructions(session)
    )
}

/// What the agent is told when its loop begins, or goes on after a break: then it may know nothing of
/// what was before.
pub(crate) fn opening(session: &Session) -> String {
    let stands = session.checkpoint.as_ref().map(|checkpoint| format!("{}\n", checkpoint.text()));
    format!(
        "This is iteration {} of a Ralph loop: whenever you stop before the task is done you are given it again. \
         The task:\n\n{}\n\n{}{}",
        session.progress(),
        session.prompt,
        stands.unwrap_or_default(),
        instructions(session)
    )
}

/// How to end a session's loop, as the agent is told it.
fn instructions(session: &Session) -> String {
    let plan = session.rules.plan.as_ref().map(|plan| format!("every box of {plan} ticked"));
    let commands = session.rules.verify.iter().map(|command| format!("`{command}` successful"));
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
    format!("<promise>{}</promise>", session.rules.promises()[0])
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::rules::{LoopOptions, Rules};
    use crate::session::state::{Agent, SessionId};

    fn session(change: impl FnOnce(&mut Rules)) -> Session {
        let mut rules = Rules::of(&LoopOptions::default(), &crate::config::Config::default());
        change(&mut rules);
        let id = SessionId::parse("s").unwrap();
        Session::new(&id, Agent::Claude, "make it", rules, Timestamp::UNIX_EPOCH)
    }

    fn stop(message: &str) -> Stop<'_> {
        Stop {
            message,
            trouble: None,
            used_tools: true,
            progress: true,
            committed: false,
            only_tests: false,
            checked: Checked::Passed { checks: 1 },
            cap: None,
        }
    }

    fn signals(session: &Session) -> Vec<String> {
        session.seen.signals.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_supports_a_claim_is_kept_and_completes_nothing() {
        let mut session = session(|rules| rules.plan = Some("plan.md".to_owned()));
        let tests = || Stop { only_tests: true, ..stop("All tests passing.") };
        for _ in 0..3 {
            assert!(matches!(judge(&mut session, &tests(), Timestamp::UNIX_EPOCH), Verdict::Block { .. }));
        }
        let expected = [
            "it says \"all tests pass\"",
            "all other boxes are ticked",
            "done was said 3 times in a row",
            "3 iterations in a row changed only tests",
            "3 iterations in a row led to no commit",
        ];
        assert_eq!(signals(&session), expected);
        let committed = Stop { committed: true, ..stop("More to do.") };
        judge(&mut session, &committed, Timestamp::UNIX_EPOCH);
        assert_eq!(signals(&session), ["all other boxes are ticked"]);
    }

    #[test]
    fn how_often_ready_must_be_said_is_configured() {
        let check = |done_claims: u32, stops: usize| {
            let mut session = session(|rules| {
                rules.complete_without_claim = true;
                rules.claims.done_claims = done_claims;
            });
            let mut judged =
                (0..9).map(|_| judge(&mut session, &stop("Ready for review."), Timestamp::UNIX_EPOCH));
            let done = judged.position(|verdict| matches!(verdict, Verdict::Release { .. }));
            assert_eq!(done.map_or(0, |before| before + 1), stops, "{done_claims}");
        };
        check(2, 2);
        check(4, 4);
        check(0, 0);
    }
}
