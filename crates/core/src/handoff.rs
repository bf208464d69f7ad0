//! Handing over: when an agent should stop in good order, and what the next one is told.
//!
//! Every iteration has a fresh context anyway; a handoff is the decision that this moment has come
//! before the task is done, or that what follows should know where things stand. The figures are the
//! agent's own; what is told comes from a checkpoint.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::budget::{self, Gauge, Shared, Sum};
use crate::checkpoint::{Checkpoint, Group};
use crate::event::{ContextFill, Usage};
use crate::ids::{Attempt, Iteration};
use crate::policy::Millis;
use crate::state::Loop;
use crate::task::Task;
use crate::text::clip;

/// When work is handed over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Policy {
    /// The part of the model's context that may be used; without one, any.
    pub context_threshold: Option<f64>,
    /// Errors in a row; 0 means never.
    pub error_threshold: u32,
    /// The part of a budget that may be used; without one, any.
    pub budget_threshold: Option<f64>,
    /// At the end of each phase of the backlog.
    pub on_phase: bool,
    /// When an agent was stopped at its time limit.
    pub on_timeout: bool,
    /// How long an agent that was asked to wrap up may take for it.
    pub grace: Millis,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            context_threshold: Some(0.70),
            error_threshold: 3,
            budget_threshold: Some(0.80),
            on_phase: true,
            on_timeout: true,
            grace: Millis::from_secs(300),
        }
    }
}

/// Why work is handed over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Trigger {
    /// The model's context is nearly full.
    Context { used: u64, window: u64 },
    /// A phase of the backlog is complete.
    Phase { phase: u32 },
    /// Errors in a row.
    Errors { count: u32 },
    /// Most of a budget is spent.
    Budget { percent: u32 },
    /// The agent's time was up.
    Timeout,
    /// Somebody asked for it: the agent itself, or a person.
    Requested { by: String },
}

/// Who asked, where the agent itself did.
pub const BY_AGENT: &str = "the agent";

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Context { used, window } => write!(f, "its context is {} % full", percent(*used, *window)),
            Self::Phase { phase } => write!(f, "phase {phase} is complete"),
            Self::Errors { count } => write!(f, "{count} errors in a row"),
            Self::Budget { percent } => write!(f, "{percent} % of the budget is spent"),
            Self::Timeout => f.write_str("its time was up"),
            Self::Requested { by } => write!(f, "asked for by {by}"),
        }
    }
}

impl Trigger {
    /// The name that other programs know it by.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Context { .. } => "context_threshold",
            Self::Phase { .. } => "phase_complete",
            Self::Errors { .. } => "error_threshold",
            Self::Budget { .. } => "token_budget",
            Self::Timeout => "timeout",
            Self::Requested { .. } => "explicit_request",
        }
    }
}

fn percent(part: u64, whole: u64) -> u64 {
    part.saturating_mul(100) / whole.max(1)
}

impl Policy {
    /// Is the context of a running agent full enough to hand over?
    pub fn by_context(&self, fill: ContextFill) -> Option<Trigger> {
        let full = over(fill.used as f64, fill.window as f64, self.context_threshold?);
        full.then_some(Trigger::Context { used: fill.used, window: fill.window })
    }

    /// Is enough of a budget spent to hand over? Of an agent that started with less than the threshold
    /// spent, the whole budget counts. One that started beyond it has the rest as its own budget, of
    /// which the same part may be used: so it is neither handed over at once, nor never.
    pub fn by_budget(&self, before: f64, spent: f64, limit: f64) -> Option<Trigger> {
        let threshold = self.budget_threshold?;
        let start = if over(before, limit, threshold) { before } else { 0.0 };
        let crossed = over(spent - start, limit - start, threshold);
        crossed.then(|| Trigger::Budget { percent: percent_spent(spent, limit) })
    }
}

/// How much of a limit is spent.
pub(crate) fn percent_spent(spent: f64, limit: f64) -> u32 {
    // Budgets are small numbers of dollars or large ones of tokens; a percentage fits any.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
    let percent = (spent / limit * 100.0).clamp(0.0, 1_000_000.0) as u32;
    percent
}

/// Does what the agent at work has used so far bring a budget over its threshold? `shared` is what is
/// known of budgets that other loops spend from too.
pub fn by_spending(state: &Loop, usage: Usage, shared: Option<Shared>) -> Option<Trigger> {
    let (open, used) = (state.open.here()?, Sum::from(usage));
    let mut gauges = budget::gauges_with(state, shared).chain(budget::task_gauges(state, &open.task));
    let trigger = gauges.find_map(|Gauge { spent, unit, limit, .. }| {
        state.policy.handoff.by_budget(spent, spent + used.get(unit), limit)
    });
    trigger.filter(|_| state.policy.budget.is_strict())
}

fn over(part: f64, whole: f64, threshold: f64) -> bool {
    whole > 0.0 && part / whole > threshold
}

/// A running agent that should come to an end.
#[derive(Clone, Debug, PartialEq)]
pub struct Handover {
    pub trigger: Trigger,
    pub since: Timestamp,
    /// It was asked to wrap up; otherwise it cannot be spoken to.
    pub asked: bool,
}

/// What the loop knows of handing over.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Handoffs {
    /// Follows from how an iteration ended and is still to be recorded.
    pub due: Option<(Iteration, Attempt, Trigger)>,
    /// The last iteration handed over, and no other has started since.
    pub pending: Option<Trigger>,
    errors: u32,
    /// How large each agent's context is, by its own word.
    windows: BTreeMap<String, u64>,
}

impl Handoffs {
    /// The size of an agent's context, as far as it has ever told.
    pub fn window(&self, agent: &str) -> Option<u64> {
        self.windows.get(agent).copied()
    }

    pub(crate) fn note_window(&mut self, agent: &str, fill: Option<ContextFill>) {
        if let Some(fill) = fill {
            self.windows.insert(agent.to_owned(), fill.window);
        }
    }

    /// Counts an error; the trigger if it was one too many.
    pub(crate) fn errored(&mut self, policy: &Policy, timed_out: bool) -> Option<Trigger> {
        self.errors += 1;
        if policy.error_threshold > 0 && self.errors >= policy.error_threshold {
            let count = std::mem::take(&mut self.errors);
            return Some(Trigger::Errors { count });
        }
        (timed_out && policy.on_timeout).then_some(Trigger::Timeout)
    }

    pub(crate) fn worked(&mut self) {
        self.errors = 0;
    }
}

/// What an agent near the end of its context is asked.
pub fn wrap_up(trigger: &Trigger) -> String {
    format!(
        "Wrap up now: {trigger}. Finish the step you are in, leave the files so that another can go on, and end. \
         In your last message say what is done, and list `Decisions:` and `Next steps:`. Somebody else continues \
         from there with a fresh context."
    )
}

/// How much is told of what the tasks before decided.
const MAX_DECIDED: usize = 3 * 1024;

/// What the tasks that a task depends on decided, and what they left to be done: it holds until one of them says
/// otherwise.
pub fn decided_before(state: &Loop, task: &Task) -> Vec<String> {
    let mut told = Vec::new();
    let mut room = MAX_DECIDED;
    for entry in task.depends_on.iter().filter_map(|id| state.task(id)) {
        let notes = &entry.notes;
        let decided = notes.decisions.iter().map(|text| format!("{}: {text}", entry.spec.id));
        let bound = notes.constraints.iter().map(|text| format!("{}: constraint: {text}", entry.spec.id));
        let next = notes.next_steps.iter().map(|text| format!("{}: next step: {text}", entry.spec.id));
        for line in decided.chain(bound).chain(next) {
            let line = clip(&line.replace('\n', " "), 600).into_owned();
            let Some(left) = room.checked_sub(line.len() + "- \n".len()) else { return told };
            room = left;
            told.push(line);
        }
    }
    told
}

/// How long the section on where the work stands may be, and each of its lists.
pub const MAX_CONTINUATION: usize = 4 * 1024;
const MAX_NAMES: usize = 12;

/// What the next attempt is told of where the work stands. `carried`: the unfinished work lies in the
/// directory.
pub fn continuation(checkpoint: &Checkpoint, carried: bool) -> String {
    let mut text = String::from("## Where the work stands\n\n");
    let _ = writeln!(text, "{}", ended(checkpoint));
    if carried {
        text.push_str("Its unfinished work lies in this directory already: look at it before you go on.\n");
    }
    text.push('\n');
    group(&mut text, "Completed", &checkpoint.completed, "");
    group(&mut text, "Pending", &checkpoint.pending, "");
    group(&mut text, "Blocked", &checkpoint.blocked, "waits for a person");
    list(&mut text, "Decisions", &checkpoint.decisions);
    list(&mut text, "Assumptions", &checkpoint.assumptions);
    list(&mut text, "Constraints", &checkpoint.constraints);
    list(&mut text, "Next steps", &checkpoint.recovery.next_steps);
    text
}

fn ended(checkpoint: &Checkpoint) -> String {
    let Checkpoint { iteration, attempt, outcome, handoff, .. } = checkpoint;
    let task = checkpoint.task.as_ref().map_or("no task", |task| task.as_str());
    let mut text = format!("After iteration {iteration}, attempt {attempt} at {task}: {outcome}");
    if let Some(trigger) = handoff {
        let _ = write!(text, " ({trigger})");
    }
    text + "."
}

/// One line: a count and the first names. The lists below matter more, so these stay short.
fn group(text: &mut String, name: &str, group: &Group, default: &str) {
    if group.count == 0 && group.items.is_empty() {
        return;
    }
    let names = group.items.iter().take(MAX_NAMES).map(|item| match item.why.as_str() {
        "" if default.is_empty() => item.task.to_string(),
        "" => format!("{} ({default})", item.task),
        why => format!("{} ({})", item.task, clip(why, 80)),
    });
    let names: Vec<String> = names.collect();
    let more = if group.count > names.len() { ", …" } else { "" };
    let line = match names.is_empty() {
        true => format!("{name}: {}", group.count),
        false => format!("{name}: {} ({}{more})", group.count, names.join(", ")),
    };
    let _ = writeln!(text, "{}", clip(&line.replace('\n', " "), 600));
}

fn list(text: &mut String, name: &str, items: &[String]) {
    if items.is_empty() {
        return;
    }
    let _ = write!(text, "\n{name}:\n");
    for item in items {
        let line = format!("- {}\n", clip(&item.replace('\n', " "), 600));
        if text.len() + line.len() > MAX_CONTINUATION - "- …\n".len() {
            text.push_str("- …\n");
            return;
        }
        text.push_str(&line);
    }
}
