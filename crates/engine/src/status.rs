//! What other programs and `wiggum status` read: a loop's state as JSON, of bounded size.
//!
//! The shapes here are a public contract of their own, apart from the core's types: fields may be
//! added, none changes its meaning.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use wiggum_core::budget::{Gauge, Unit, gauges};
use wiggum_core::decide::decide;
use wiggum_core::state::{Loop, OpenIteration, Stage};

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Status {
    pub loop_id: String,
    pub name: String,
    pub repository: String,
    pub backlog: String,
    /// initializing, running, paused, handoff, completing, completed, failed or terminated.
    pub state: String,
    pub run: u32,
    pub agent: String,
    pub seq: u64,
    pub counts: Counts,
    pub current: Option<Current>,
    pub current_iteration: u32,
    pub max_iterations: Option<u32>,
    /// What the loop waits for, in words.
    pub waiting: Option<String>,
    /// Of the agent at work.
    #[serde(default)]
    pub health: Option<HealthStatus>,
    #[serde(default)]
    pub breaker: BreakerStatus,
    pub questions: Vec<QuestionStatus>,
    /// The newest checkpoint.
    #[serde(default)]
    pub last_checkpoint_id: Option<String>,
    /// Why work is being handed over, in words.
    #[serde(default)]
    pub handoff: Option<String>,
    /// The last iterations, oldest first.
    pub iterations: Vec<IterationStatus>,
    pub total_input_tokens: u64,
    pub total_output_tokens: u64,
    pub total_cost: f64,
    /// Tokens whose cost nobody told, so that the cost is a lower bound.
    #[serde(default)]
    pub unpriced_tokens: u64,
    #[serde(default)]
    pub budgets: Vec<BudgetStatus>,
    pub started_at: Option<Timestamp>,
    pub completed_at: Option<Timestamp>,
    pub active_seconds: f64,
    /// Why the run ended, if it did: one of the documented strings.
    pub termination_reason: Option<String>,
    pub detail: Option<String>,
    /// The checkpoint the loop was put back to; no run has begun since.
    #[serde(default)]
    pub restored: Option<String>,
    pub updated_at: Option<Timestamp>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Counts {
    pub total: usize,
    pub done: usize,
    pub unverified: usize,
    pub failed: usize,
    pub skipped: usize,
    pub parked: usize,
    pub running: usize,
    pub open: usize,
}

/// A limit on money, as far as this loop knows of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BudgetStatus {
    /// task, loop, project or organisation.
    pub scope: String,
    /// usd or tokens.
    pub unit: Unit,
    pub spent: f64,
    pub limit: f64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Current {
    pub iteration: u32,
    pub task: String,
    pub title: String,
    pub attempt: u32,
    pub stage: String,
    pub started_at: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HealthStatus {
    /// healthy, degraded, stuck, failing or terminated.
    pub health: String,
    pub since: Timestamp,
    /// The last sign of life; in `status.json` a few seconds old at most, elsewhere as it was recorded.
    pub last_beat: Timestamp,
    pub nudges: u32,
    pub detail: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BreakerStatus {
    /// closed, open or half_open.
    pub state: String,
    pub why: Option<String>,
    pub until: Option<Timestamp>,
    /// What is counted towards its opening.
    pub no_progress: u32,
    pub same_error: u32,
    pub permission_denied: u32,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QuestionStatus {
    pub id: String,
    pub task: Option<String>,
    pub kind: String,
    pub summary: String,
    pub context: String,
    pub question: String,
    pub options: Vec<String>,
    pub raised_at: Timestamp,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IterationStatus {
    pub iteration: u32,
    pub task: String,
    pub attempt: u32,
    pub started_at: Timestamp,
    pub completed_at: Timestamp,
    pub outcome: String,
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub cost: f64,
}

impl Status {
    /// Does nothing wait to be gone on with? A run that has ended, or a loop that was put back since.
    pub fn is_at_rest(&self) -> bool {
        self.termination_reason.is_some() || self.restored.is_some()
    }
}

/// The status as it is stored beside the journal.
pub fn projection(state: &Loop, now: Timestamp) -> String {
    serde_json::to_string(&status(state, now)).unwrap_or_default()
}

pub fn status(state: &Loop, now: Timestamp) -> Status {
    let counts = state.tasks.counts();
    // How a run ended says nothing of a loop that was put back since.
    let ended = state.run.ended.as_ref().filter(|_| state.run.restored.is_none());
    Status {
        loop_id: state.id.map(|id| id.to_string()).unwrap_or_default(),
        name: state.name.clone(),
        repository: state.repository.clone(),
        backlog: state.backlog.clone(),
        state: state_name(state).to_owned(),
        run: state.run.number,
        agent: state.agent.clone(),
        seq: state.seq,
        counts: Counts {
            total: counts.total,
            done: counts.done,
            unverified: counts.unverified,
            failed: counts.failed,
            skipped: counts.skipped,
            parked: counts.parked,
            running: counts.running,
            open: counts.open(),
        },
        current: current(state),
        current_iteration: state.run.iterations,
        max_iterations: state.policy.limits.iterations,
        waiting: decide(state, now).waiting.map(|waiting| waiting.to_string()),
        health: health(state),
        breaker: breaker(state),
        questions: questions(state),
        last_checkpoint_id: state.checkpoints.last.as_ref().map(|last| last.id.to_string()),
        handoff: handoff(state),
        iterations: iterations(state),
        total_input_tokens: state.usage.input_tokens,
        total_output_tokens: state.usage.output_tokens,
        total_cost: state.usage.cost_usd,
        unpriced_tokens: state.spending.unpriced,
        budgets: budgets(state),
        started_at: state.run.started_at,
        completed_at: ended.and(state.last_at),
        active_seconds: state.run.active_ms as f64 / 1000.0,
        termination_reason: ended.map(|(reason, _)| reason.name().to_owned()),
        detail: ended.map(|(_, detail)| detail.clone()),
        restored: state.run.restored.map(|id| id.to_string()),
        updated_at: state.last_at,
    }
}

/// The states a loop can be in.
fn state_name(state: &Loop) -> &'static str {
    if state.run.restored.is_some() {
        return "initializing";
    }
    if let Some((reason, _)) = &state.run.ended {
        return reason.ending().state;
    }
    match &state.open {
        _ if state.run.number == 0 => "initializing",
        _ if state.paused => "paused",
        None if state.iterations == 0 && state.tasks.counts().total == 0 => "initializing",
        None if is_done(state) => "completing",
        Some(open) if is_last(state, open) => "completing",
        _ if hands_over(state) => "handoff",
        None | Some(_) => "running",
    }
}

fn is_done(state: &Loop) -> bool {
    let counts = state.tasks.counts();
    counts.done + counts.skipped == counts.total
}

/// What is being landed is all that was left.
fn is_last(state: &Loop, open: &OpenIteration) -> bool {
    let counts = state.tasks.counts();
    matches!(open.stage, Stage::Landing { .. }) && counts.done + counts.skipped + 1 == counts.total
}

fn health(state: &Loop) -> Option<HealthStatus> {
    let vitals = &state.open.as_ref().filter(|open| open.stage == Stage::Agent)?.vitals;
    Some(HealthStatus {
        health: vitals.health.name().to_owned(),
        since: vitals.since,
        last_beat: vitals.last_beat,
        nudges: vitals.nudges,
        detail: vitals.detail.clone(),
    })
}

fn breaker(state: &Loop) -> BreakerStatus {
    let breaker = &state.breaker;
    let cooling = breaker.cooling(&state.policy.breaker);
    BreakerStatus {
        state: breaker.phase.name().to_owned(),
        why: cooling.map(|(tripped, _)| tripped.why.clone()),
        until: cooling.map(|(_, until)| until),
        no_progress: breaker.no_progress,
        same_error: breaker.same_error,
        permission_denied: breaker.denied,
    }
}

fn handoff(state: &Loop) -> Option<String> {
    let open = state.open.as_ref().and_then(|open| open.handoff.as_ref()).map(|handoff| &handoff.trigger);
    open.or(state.handoffs.pending.as_ref()).filter(|_| state.run.active).map(ToString::to_string)
}

/// The agent is wrapping up, or has and nobody has gone on yet.
fn hands_over(state: &Loop) -> bool {
    let wraps_up = state.open.as_ref().is_some_and(|open| open.handoff.is_some());
    wraps_up || state.handoffs.pending.is_some()
}

/// The limits of the loop and of what it shares with others.
pub fn budgets(state: &Loop) -> Vec<BudgetStatus> {
    let shown = |Gauge { scope, unit, spent, limit, reserved: _ }: Gauge| {
        let scope = scope.name().to_owned();
        BudgetStatus { scope, unit, spent, limit }
    };
    gauges(state).map(shown).collect()
}

fn current(state: &Loop) -> Option<Current> {
    let open = state.open.as_ref()?;
    let stage = match open.stage {
        Stage::Agent => "agent",
        Stage::Judging => "checks",
        Stage::Landing { .. } => "landing",
    };
    Some(Current {
        iteration: open.iteration,
        task: open.task.to_string(),
        title: state.task(&open.task).map(|entry| entry.spec.title.clone()).unwrap_or_default(),
        attempt: open.attempt,
        stage: stage.to_owned(),
        started_at: open.started_at,
    })
}

fn questions(state: &Loop) -> Vec<QuestionStatus> {
    let text = |value: &wiggum_core::event::QuestionKind| format!("{value:?}").to_lowercase();
    state
        .questions
        .iter()
        .map(|(id, asked)| QuestionStatus {
            id: id.to_string(),
            task: asked.task.as_ref().map(ToString::to_string),
            kind: text(&asked.question.kind),
            summary: asked.question.summary.clone(),
            context: asked.question.context.clone(),
            question: asked.question.question.clone(),
            options: asked.question.options.clone(),
            raised_at: asked.raised_at,
        })
        .collect()
}

fn iterations(state: &Loop) -> Vec<IterationStatus> {
    state
        .recent
        .iter()
        .map(|ended| {
            let usage = ended.usage.unwrap_or_default();
            IterationStatus {
                iteration: ended.iteration,
                task: ended.task.to_string(),
                attempt: ended.attempt,
                started_at: ended.started_at,
                completed_at: ended.ended_at,
                outcome: ended.outcome.clone(),
                input_tokens: usage.input_tokens,
                output_tokens: usage.output_tokens,
                cost: usage.cost_usd,
            }
        })
        .collect()
}

/// Replaces a file of the loop's directory as a whole. Not synced: it can be made again.
pub(crate) fn write(dir: &std::path::Path, name: &str, text: &str) -> std::io::Result<()> {
    std::fs::create_dir_all(dir)?;
    let temporary = dir.join(format!(".{name}.tmp"));
    std::fs::write(&temporary, text)?;
    std::fs::rename(temporary, dir.join(name))
}

/// As `write` does, for a file nobody reads at this moment: in place where it is a plain file, which
/// spares the file system a new file and the end of an old one.
pub(crate) fn rewrite(dir: &std::path::Path, name: &str, text: &str) -> std::io::Result<()> {
    use std::io::Write;
    use std::os::unix::fs::MetadataExt;
    let path = dir.join(name);
    // Whatever an agent may have put there instead is replaced, not followed.
    let is_plain = std::fs::symlink_metadata(&path).is_ok_and(|data| data.is_file() && data.nlink() == 1);
    let Some(mut file) = is_plain.then(|| std::fs::OpenOptions::new().write(true).open(&path).ok()).flatten()
    else {
        return write(dir, name, text);
    };
    file.write_all(text.as_bytes())?;
    file.set_len(text.len() as u64)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::rewrite;

    #[test]
    fn rewriting_leaves_nothing_of_a_longer_text() {
        let dir = tempfile::tempdir().unwrap();
        for text in ["", "a long text\n", "short", "a longer one again"] {
            rewrite(dir.path(), "prompt.md", text).unwrap();
            assert_eq!(fs::read_to_string(dir.path().join("prompt.md")).unwrap(), text);
        }
    }

    #[test]
    fn what_somebody_put_in_its_place_is_replaced_and_not_written_to() {
        let dir = tempfile::tempdir().unwrap();
        let (path, theirs) = (dir.path().join("prompt.md"), dir.path().join("theirs"));
        fs::write(&theirs, "theirs").unwrap();
        std::os::unix::fs::symlink(&theirs, &path).unwrap();
        rewrite(dir.path(), "prompt.md", "ours").unwrap();
        fs::remove_file(&path).unwrap();
        fs::hard_link(&theirs, &path).unwrap();
        rewrite(dir.path(), "prompt.md", "ours").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "ours");
        assert_eq!(fs::read_to_string(&theirs).unwrap(), "theirs");
    }
}
