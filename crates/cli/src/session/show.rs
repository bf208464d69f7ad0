//! What is told of sessions, to people and to other programs.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use wiggum_core::event::{EndReason, Usage};
use wiggum_core::policy::Millis;
use wiggum_core::state::millis_between;
use wiggum_engine::error::chain;
use wiggum_engine::words::{counted, one_line};

use super::checkpoint::Checkpoint;
use super::observe;
use super::state::{self, Session, SessionError, Waiting};
use super::usage::{ModelUsage, Used};
use crate::cost::{cost, dollars, lower_bound};
use crate::narrate::elapsed;
use crate::term::{self, Style, harmless};

/// All sessions of a workspace, as they are now.
pub(crate) fn all(workspace: &Path) -> Vec<Result<Session, SessionError>> {
    let mut sessions = state::all(workspace);
    sessions.iter_mut().flatten().for_each(observe::observe);
    sessions
}

/// The sessions of the last day: an agent that was killed never says so, and who asks what goes on is
/// not interested in last week's.
pub(crate) fn recent(workspace: &Path, now: Timestamp) -> Vec<Result<Session, SessionError>> {
    let recent = |session: &Session| now.duration_since(session.updated_at) < DAY;
    let mut sessions = all(workspace);
    sessions.retain(|session| session.as_ref().map_or(true, recent));
    sessions
}

const DAY: SignedDuration = SignedDuration::from_hours(24);

/// A session as other programs see it.
#[derive(Serialize)]
pub(crate) struct Block<'a> {
    kind: &'static str,
    session_id: &'a str,
    agent: &'a str,
    state: &'static str,
    current_iteration: u32,
    max_iterations: Option<u32>,
    prompt: &'a str,
    last_action: &'a str,
    started_at: Timestamp,
    updated_at: Timestamp,
    termination_reason: Option<&'static str>,
    detail: Option<&'a str>,
    /// Why it stands still, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    waits: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    waits_until: Option<Timestamp>,
    signals: Vec<String>,
}

impl<'a> Block<'a> {
    pub(crate) fn of(session: &'a Session) -> Self {
        let ended = session.ended.as_ref();
        let waiting = session.waiting.as_ref().filter(|_| ended.is_none());
        Self {
            kind: "session",
            session_id: &session.session_id,
            agent: session.agent.name(),
            state: State::of(session, Timestamp::now()).word(),
            current_iteration: session.iteration,
            max_iterations: Some(session.rules.max_iterations).filter(|max| *max > 0),
            prompt: &session.prompt,
            last_action: &session.last,
            started_at: session.started_at,
            updated_at: session.updated_at,
            termination_reason: ended.map(|ended| ended.reason.name()),
            detail: ended.map(|ended| ended.detail.as_str()),
            waits: waiting.map(ToString::to_string),
            waits_until: waiting.and_then(Waiting::until),
            signals: session.seen.signals.iter().map(ToString::to_string).collect(),
        }
    }
}

impl Block<'_> {
    /// For whoever knows more of it than the session says.
    pub(crate) fn in_state(self, state: State) -> Self {
        Self { state: state.word(), ..self }
    }
}

/// Those that can be read, for other programs.
pub(crate) fn shown(sessions: &[Result<Session, SessionError>]) -> impl Iterator<Item = Block<'_>> {
    sessions.iter().flatten().map(Block::of)
}

/// What a session does at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Working,
    /// For an agent that cannot work, or for a person.
    Waiting,
    /// It has nothing to do, or goes on with the user's next words.
    Ready,
    /// Its program has ended.
    Gone,
}

impl State {
    pub(crate) fn of(session: &Session, now: Timestamp) -> Self {
        let waits = session.waiting.as_ref().is_some_and(|waiting| !waiting.is_over(now));
        match (&session.ended, session.working) {
            (None, true) => Self::Working,
            (None, false) if waits => Self::Waiting,
            (None, false) | (Some(_), _) => Self::Ready,
        }
    }

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Working => "WORKING",
            Self::Waiting => "WAITING",
            Self::Ready => "READY",
            Self::Gone => "GONE",
        }
    }

    pub(crate) fn painted(self, style: Style) -> String {
        match self {
            Self::Working => style.green(self.word()),
            Self::Waiting | Self::Ready => style.yellow(self.word()),
            Self::Gone => style.red(self.word()),
        }
    }
}

/// One block per session, for people.
pub(crate) fn blocks(
    sessions: &[Result<Session, SessionError>],
    now: Timestamp,
    style: Style,
) -> Vec<String> {
    let block = |session: &Result<Session, SessionError>| match session {
        Ok(session) => block(session, now, style),
        Err(error) => format!("{} {}\n", style.red("broken:"), chain(error)),
    };
    sessions.iter().map(block).collect()
}

pub(crate) fn block(session: &Session, now: Timestamp, style: Style) -> String {
    let state = State::of(session, now).painted(style);
    let who = format!("{} {}", style.bold(session.agent.name()), one_line(&session.session_id));
    lines(&who, &state, session, now, style).join("\n") + "\n"
}

/// What is told of whoever works on a task.
pub(crate) fn lines(who: &str, state: &str, session: &Session, now: Timestamp, style: Style) -> Vec<String> {
    let mut lines = vec![
        format!("{who} - {state}  {}", style.dim(&one_line(&wiggum_core::text::clip(&session.prompt, 60)))),
        format!(
            "  Ralph: iteration {}, last: \"{}\", {} ago",
            session.progress(),
            one_line(&session.last),
            elapsed(session.updated_at, now)
        ),
    ];
    if let Some(ended) = &session.ended {
        lines.push(format!("  ended: {} ({})", one_line(&ended.detail), ended.reason.name()));
    } else if let Some(waiting) = &session.waiting {
        lines.push(format!("  {}", one_line(&waiting_words(waiting, now))));
    }
    lines
}

fn waiting_words(waiting: &Waiting, now: Timestamp) -> String {
    match waiting.until().filter(|until| *until <= now) {
        Some(until) => format!("the usage limit ended at {until:.0}: your next words go on with the task"),
        None => waiting.to_string(),
    }
}

/// How a session is, in the words that loops have too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Health {
    Healthy,
    /// Errors, or nothing changes.
    Degraded,
    /// At work without a sign of life.
    Stuck,
    /// A guard has ended it.
    Failing,
    Terminated,
}

/// As for the agents of loops, where nothing else is configured.
const STUCK_AFTER: Millis = Millis::from_secs(30 * 60);

impl Health {
    pub(crate) fn of(session: &Session, now: Timestamp) -> Self {
        let guarded = |reason: EndReason| match reason {
            EndReason::CircuitBreakerOpen
            | EndReason::HealthFailure
            | EndReason::ConsecutiveErrors
            | EndReason::NoProgress => true,
            EndReason::GoalAchieved
            | EndReason::BudgetExhausted
            | EndReason::MaxIterations
            | EndReason::MaxDuration
            | EndReason::PersonNeeded
            | EndReason::ExplicitStop => false,
        };
        let silent = millis_between(last_sign(session), now) >= STUCK_AFTER.0;
        let seen = &session.seen;
        match &session.ended {
            Some(ended) if guarded(ended.reason) => Self::Failing,
            Some(_) => Self::Terminated,
            None if session.working && silent => Self::Stuck,
            None if seen.errors > 0 || seen.without_progress > 1 => Self::Degraded,
            None => Self::Healthy,
        }
    }

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Healthy => "healthy",
            Self::Degraded => "degraded",
            Self::Stuck => "stuck",
            Self::Failing => "failing",
            Self::Terminated => "terminated",
        }
    }
}

/// When the agent was last heard of: its hooks, or what it writes about its work.
pub(crate) fn last_sign(session: &Session) -> Timestamp {
    let written = session.transcript.as_deref().and_then(|path| fs::metadata(path).ok()?.modified().ok());
    let written = written.and_then(|time| Timestamp::try_from(time).ok());
    written.map_or(session.updated_at, |written| written.max(session.updated_at))
}

/// How the session is, and what the guards have counted.
pub(crate) fn health(session: &Session, now: Timestamp, style: Style) -> String {
    let (seen, rules) = (&session.seen, &session.rules);
    let mut text = block(session, now, style);
    let mut line = |name: &str, words: &str| text.push_str(&format!("  {name:<10} {}\n", one_line(words)));
    if session.ended.is_none() {
        line("health", Health::of(session, now).word());
    }
    line("last sign", &format!("{} ago", elapsed(last_sign(session), now)));
    let counted: Vec<String> = [
        (seen.without_progress, rules.no_progress_limit, "without a change"),
        (seen.error_times, rules.same_error_limit, "with the same error"),
        (seen.errors, rules.error_limit, "errors in a row"),
    ]
    .into_iter()
    .filter(|(count, limit, _)| *count > 0 && *limit > 0)
    .map(|(count, limit, what)| format!("{count} of {limit} {what}"))
    .collect();
    line("guards", &joined(&counted, ", "));
    if !seen.error.is_empty() {
        line("error", &seen.error);
    }
    let signals: Vec<String> = seen.signals.iter().map(ToString::to_string).collect();
    line("signals", &joined(&signals, "; "));
    text
}

fn joined(items: &[String], separator: &str) -> String {
    if items.is_empty() { "none".to_owned() } else { items.join(separator) }
}

const NO_FIGURES: &str = "no figures: the agent's transcript tells none\n";

/// What the session used of each model.
pub(crate) fn tokens(session: &Session, used: &Used) -> String {
    if used.is_empty() {
        return NO_FIGURES.to_owned();
    }
    let head = ["", "calls", "input", "output", "cache read", "cache write", "cost"].map(str::to_owned);
    let row = |name: &str, used: &ModelUsage| {
        let Usage { input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, .. } = used.usage;
        let [input, output, read, written] =
            [input_tokens, output_tokens, cache_read_tokens, cache_write_tokens].map(term::thousands);
        [harmless(name), used.calls.to_string(), input, output, read, written, cost(&used.usage)]
    };
    let rows = used.iter().map(|(model, used)| row(model, used));
    let total = (used.len() > 1).then(|| row("total", &total(used)));
    let table = term::columns(&std::iter::once(head).chain(rows).chain(total).collect::<Vec<_>>());
    format!("iteration {}\n{table}", session.progress())
}

/// What the session cost, and what the iterations that are left may cost.
pub(crate) fn costs(session: &Session, used: &Used) -> String {
    if used.is_empty() {
        return NO_FIGURES.to_owned();
    }
    let mut text = String::new();
    for (model, used) in used {
        text.push_str(&format!("  {}: {}\n", harmless(model), cost(&used.usage)));
    }
    let unpriced: u64 =
        used.values().filter(|used| used.usage.is_unpriced()).map(|used| used.usage.tokens()).sum();
    let (spent, iterations) = (total(used).usage.cost_usd, session.iteration.max(1));
    text.push_str(&format!("  in all: {}, iteration {}\n", lower_bound(spent, unpriced), session.progress()));
    let each = spent / f64::from(iterations);
    if spent > 0.0 {
        text.push_str(&format!("  {} for each iteration", dollars(each)));
        let left = session.rules.max_iterations.saturating_sub(session.iteration);
        if left > 0 && session.ended.is_none() {
            let more = dollars(each * f64::from(left));
            text.push_str(&format!(
                "; at that rate {more} more for the {}",
                counted(left as usize, "iteration")
            ));
            text.push_str(" that are left at most");
        }
        text.push('\n');
    }
    for (model, _) in used.iter().filter(|(_, used)| used.usage.is_unpriced()) {
        let model = harmless(model);
        text.push_str(&format!("  no price is known of {model}: set [prices.\"{model}\"] in wiggum.toml\n"));
    }
    text
}

fn total(used: &Used) -> ModelUsage {
    used.values().fold(ModelUsage::default(), |mut sum, used| {
        sum.usage += used.usage;
        sum.calls += used.calls;
        sum
    })
}

/// All that is known of one session, for other programs.
#[derive(Serialize)]
pub(crate) struct Whole<'a> {
    #[serde(flatten)]
    pub(crate) block: Block<'a>,
    pub(crate) health: &'static str,
    pub(crate) last_sign_at: Timestamp,
    pub(crate) usage: &'a BTreeMap<String, ModelUsage>,
    pub(crate) checkpoint: Option<&'a Checkpoint>,
}

impl<'a> Whole<'a> {
    pub(crate) fn of(session: &'a Session, used: &'a Used, now: Timestamp) -> Self {
        Self {
            block: Block::of(session),
            health: Health::of(session, now).word(),
            last_sign_at: last_sign(session),
            usage: used,
            checkpoint: session.checkpoint.as_ref(),
        }
    }
}
