//! What other programs and `wiggum status` read: a loop's state as JSON, of bounded size.
//!
//! The shapes here are a public contract of their own, apart from the core's types: fields may be
//! added, none changes its meaning.

use std::collections::VecDeque;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use wiggum_core::activity::{Activity, EngineState, activity};
use wiggum_core::budget::{Gauge, Period, Unit, gauges};
use wiggum_core::checkpoint::Phase;
use wiggum_core::decide::decide;
use wiggum_core::handoff::Trigger;
use wiggum_core::ids::TaskId;
use wiggum_core::state::{EndedIteration, Loop, OpenIteration, Stage};

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Status {
    pub loop_id: String,
    /// The task at work, else the one that was worked on last.
    #[serde(default)]
    pub task_id: String,
    /// The directory of the repository, by its name.
    #[serde(default)]
    pub project_id: String,
    /// What the loop is for, in words.
    #[serde(default)]
    pub goal: String,
    #[serde(default)]
    pub config: ConfigStatus,
    pub name: String,
    pub repository: String,
    pub backlog: String,
    /// initializing, running, paused, handoff, completing, completed, failed or terminated.
    pub state: String,
    /// What the loop does right now. In `status.json` as its engine last wrote it; everywhere else it is
    /// also looked whether the engine still lives.
    pub activity: Activity,
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
    /// What went wrong in them, each with its iteration and task.
    #[serde(default)]
    pub errors: Vec<String>,
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
    /// The last iterations, oldest first.
    // The last field, so that whoever writes the status often can append them.
    pub iterations: Vec<IterationStatus>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Counts {
    pub total: usize,
    pub done: usize,
    pub unverified: usize,
    /// Done by the word of a person.
    pub by_hand: usize,
    pub failed: usize,
    pub skipped: usize,
    pub parked: usize,
    pub running: usize,
    /// Worked on by an engine that is gone.
    #[serde(default)]
    pub interrupted: usize,
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
    /// day, week or month, if it begins anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub period: Option<String>,
    /// When it begins anew, as far as this loop knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resets_at: Option<Timestamp>,
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
    /// The last sign of progress; in `status.json` a few seconds old at most, elsewhere as it was recorded.
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
    /// Are own words an answer? Not where no agent would read them.
    #[serde(default = "yes")]
    pub takes_words: bool,
    pub raised_at: Timestamp,
}

fn yes() -> bool {
    true
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
    /// Who worked; empty where the engine did it itself.
    #[serde(default)]
    pub agent_id: String,
    /// planning, implementing, testing, reviewing, handoff or complete.
    #[serde(default)]
    pub phase: String,
    /// The tasks that it completed.
    #[serde(default)]
    pub completed_items: Vec<TaskId>,
    /// The first of the tasks that it left to do.
    #[serde(default)]
    pub pending_items: Vec<TaskId>,
    #[serde(default)]
    pub errors: Vec<String>,
    /// Empty until there is one.
    #[serde(default)]
    pub checkpoint_id: String,
    /// context_threshold, phase_complete, error_threshold, explicit_request, token_budget or timeout; empty
    /// where nothing was handed over.
    #[serde(default)]
    pub handoff_trigger: String,
    /// How the agent was when it ended: healthy, degraded, stuck, failing or terminated.
    #[serde(default)]
    pub health_state: String,
}

/// The rules that a loop runs by, as far as other programs ask for them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ConfigStatus {
    pub max_iterations: Option<u32>,
    /// In dollars.
    pub max_cost: Option<f64>,
    pub max_duration_minutes: Option<f64>,
    /// The part of a model's context that may be used before work is handed over.
    pub context_threshold: Option<f64>,
    /// The agent that works first.
    pub agent_type: String,
    /// The model that worked last, as far as its agent told.
    pub model: String,
}

impl Status {
    /// Does nothing wait to be gone on with? A run that has ended, or a loop that was put back since.
    pub fn is_at_rest(&self) -> bool {
        self.termination_reason.is_some() || self.restored.is_some()
    }

    /// Corrects what the engine wrote by what was found when it was looked for: without an engine nobody
    /// works, so there is no agent that could be healthy and nothing that is waited for.
    pub fn seen_with(mut self, engine: EngineState) -> Self {
        self.activity = self.activity.seen_with(engine);
        match engine {
            EngineState::Alive => {}
            EngineState::Gone | EngineState::Dead => {
                self.health = None;
                self.waiting = None;
                self.counts.interrupted += std::mem::take(&mut self.counts.running);
            }
        }
        self
    }

    /// Nobody is needed any more where all questions have answers that wait for the next run.
    pub fn seen_with_answers(mut self, answered: &[String]) -> Self {
        let all = self.questions.iter().all(|question| answered.contains(&question.id));
        if self.activity == Activity::PersonNeeded && !self.questions.is_empty() && all {
            self.activity = Activity::Answered;
        }
        self
    }
}

/// Writes the status as it is stored beside the journal. That happens with every flush, so iterations that have
/// ended, which hardly ever change any more, are put into text once.
#[derive(Default)]
pub(crate) struct Projector {
    ended: VecDeque<(EndedIteration, String)>,
}

/// How a status without iterations ends, since they are its last field.
const NO_ITERATIONS: &str = "[]}";

impl Projector {
    pub(crate) fn text(&mut self, state: &Loop, now: Timestamp) -> String {
        self.text_of(state, &without_iterations(state, now))
    }

    /// The same for `status.json`, where the agent's last sign of progress is known better.
    pub(crate) fn text_with_beat(&mut self, state: &Loop, now: Timestamp, beat: Option<Timestamp>) -> String {
        let mut status = without_iterations(state, now);
        if let Some((health, beat)) = status.health.as_mut().zip(beat) {
            health.last_beat = beat;
        }
        self.text_of(state, &status)
    }

    fn text_of(&mut self, state: &Loop, without_iterations: &Status) -> String {
        self.follow(state);
        let mut text = serde_json::to_string(without_iterations).unwrap_or_default();
        if !self.ended.is_empty() && text.ends_with(NO_ITERATIONS) {
            text.truncate(text.len() - NO_ITERATIONS.len());
            for (position, (_, ended)) in self.ended.iter().enumerate() {
                text.push(if position == 0 { '[' } else { ',' });
                text.push_str(ended);
            }
            text.push_str("]}");
        }
        text
    }

    /// Has a text for each of the last iterations, and for no other.
    fn follow(&mut self, state: &Loop) {
        let Some(first) = state.recent.front() else { return self.ended.clear() };
        while self.ended.front().is_some_and(|(known, _)| known.started_at != first.started_at) {
            self.ended.pop_front();
        }
        self.ended.truncate(state.recent.len());
        for (position, ended) in state.recent.iter().enumerate() {
            if self.ended.get(position).is_some_and(|(known, _)| known == ended) {
                continue;
            }
            let text = serde_json::to_string(&iteration_status(ended)).unwrap_or_default();
            self.ended.truncate(position);
            self.ended.push_back((ended.clone(), text));
        }
    }
}

/// The status as it is stored beside the journal.
pub fn projection(state: &Loop, now: Timestamp) -> String {
    Projector::default().text(state, now)
}

/// What the journal says, as its engine tells it: [`Status::seen_with`] is for whoever looks from outside.
pub fn status(state: &Loop, now: Timestamp) -> Status {
    let iterations = state.recent.iter().map(iteration_status).collect();
    Status { iterations, ..without_iterations(state, now) }
}

fn without_iterations(state: &Loop, now: Timestamp) -> Status {
    let counts = state.tasks.counts();
    // How a run ended says nothing of a loop that was put back since.
    let ended = state.run.ended.as_ref().filter(|_| state.run.restored.is_none());
    Status {
        loop_id: state.id.map(|id| id.to_string()).unwrap_or_default(),
        task_id: task_id(state),
        project_id: project_id(&state.repository),
        goal: goal(state),
        config: config(state),
        name: state.name.clone(),
        repository: state.repository.clone(),
        backlog: state.backlog.clone(),
        state: state_name(state).to_owned(),
        activity: activity(state, EngineState::Alive, now),
        run: state.run.number,
        agent: state.agent.clone(),
        seq: state.seq,
        counts: Counts {
            total: counts.total,
            done: counts.done,
            unverified: counts.unverified,
            by_hand: counts.by_hand,
            failed: counts.failed,
            skipped: counts.skipped,
            parked: counts.parked,
            running: counts.running,
            interrupted: 0,
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
        errors: errors(state),
        total_input_tokens: state.usage.input_tokens,
        total_output_tokens: state.usage.output_tokens,
        total_cost: state.usage.cost_usd,
        unpriced_tokens: state.spending.unpriced,
        budgets: budgets(state, now),
        started_at: state.run.started_at,
        completed_at: ended.and(state.last_at),
        active_seconds: state.run.active_ms as f64 / 1000.0,
        termination_reason: ended.map(|(reason, _)| reason.name().to_owned()),
        detail: ended.map(|(_, detail)| detail.clone()),
        restored: state.run.restored.map(|id| id.to_string()),
        updated_at: state.last_at,
        iterations: Vec::new(),
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
    match state.open.here() {
        _ if state.run.number == 0 => "initializing",
        _ if state.paused => "paused",
        None if state.iterations == 0 && state.tasks.counts().total == 0 => "initializing",
        // No agent has worked yet: the tree is looked at first.
        None if state.run.iterations == 0 && state.baseline.under_way.is_some() => "initializing",
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

/// Is what is being committed all that was left?
pub(crate) fn is_completing(state: &Loop) -> bool {
    state.open.here().is_some_and(|open| is_last(state, open))
}

/// What is being landed is all that was left.
fn is_last(state: &Loop, open: &OpenIteration) -> bool {
    let counts = state.tasks.counts();
    matches!(open.stage, Stage::Landing { .. }) && counts.done + counts.skipped + 1 == counts.total
}

fn health(state: &Loop) -> Option<HealthStatus> {
    let vitals = &state.open.here().filter(|open| open.stage == Stage::Agent)?.vitals;
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
    let open = state.open.here().and_then(|open| open.handoff.as_ref()).map(|handoff| &handoff.trigger);
    open.or(state.handoffs.pending.as_ref()).filter(|_| state.run.active).map(ToString::to_string)
}

/// The agent is wrapping up, or has and nobody has gone on yet.
fn hands_over(state: &Loop) -> bool {
    let wraps_up = state.open.here().is_some_and(|open| open.handoff.is_some());
    wraps_up || state.handoffs.pending.is_some()
}

/// The limits of the loop and of what it shares with others.
pub fn budgets(state: &Loop, now: Timestamp) -> Vec<BudgetStatus> {
    let shown = |Gauge { scope, unit, spent, limit, period, resets_at, reserved: _ }: Gauge| {
        let scope = scope.name().to_owned();
        let period = (period != Period::None).then(|| period.name().to_owned());
        BudgetStatus { scope, unit, spent, limit, period, resets_at }
    };
    gauges(state, now).map(shown).collect()
}

/// What is under way. Once the run has ended, an attempt may wait for its checks until the next one.
fn current(state: &Loop) -> Option<Current> {
    let open = state.open.here().filter(|_| state.run.active)?;
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
            takes_words: state.takes_words(asked),
            raised_at: asked.raised_at,
        })
        .collect()
}

fn iteration_status(ended: &EndedIteration) -> IterationStatus {
    let usage = ended.usage.unwrap_or_default();
    let is_complete = ended.phase == Phase::Complete;
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
        agent_id: ended.agent.clone(),
        phase: ended.phase.name().to_owned(),
        completed_items: is_complete.then(|| ended.task.clone()).into_iter().collect(),
        pending_items: ended.pending.clone(),
        errors: ended.errors.clone(),
        checkpoint_id: ended.checkpoint.map(|id| id.to_string()).unwrap_or_default(),
        handoff_trigger: ended.handoff.as_ref().map_or("", Trigger::name).to_owned(),
        health_state: ended.health.name().to_owned(),
    }
}

fn task_id(state: &Loop) -> String {
    let open = state.open.here().map(|open| &open.task);
    let last = state.recent.back().map(|ended| &ended.task);
    open.or(last).map(ToString::to_string).unwrap_or_default()
}

fn project_id(repository: &str) -> String {
    std::path::Path::new(repository)
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default()
}

fn goal(state: &Loop) -> String {
    match state.tasks.counts().total {
        0 => format!("the tasks of {}", state.backlog),
        1 => format!("the 1 task of {}", state.backlog),
        total => format!("all {total} tasks of {}", state.backlog),
    }
}

fn config(state: &Loop) -> ConfigStatus {
    let policy = &state.policy;
    let model = state.recent.iter().rev().find_map(|ended| ended.model.clone());
    let first = policy.agents.order.first().filter(|name| !name.is_empty());
    ConfigStatus {
        max_iterations: policy.limits.iterations,
        max_cost: policy.budget.own.max_cost,
        max_duration_minutes: policy.limits.duration.map(|limit| limit.0 as f64 / 60_000.0),
        context_threshold: policy.handoff.context_threshold,
        agent_type: first.unwrap_or(&state.agent).clone(),
        model: model.unwrap_or_default(),
    }
}

fn errors(state: &Loop) -> Vec<String> {
    let all = state.recent.iter().flat_map(|ended| ended.errors.iter().map(move |error| (ended, error)));
    let worded = |(ended, error): (&EndedIteration, &String)| {
        format!("iteration {}, {}: {error}", ended.iteration, ended.task)
    };
    all.map(worded).collect()
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

    use wiggum_core::health::Health;

    use super::*;

    fn ended(iteration: u32, outcome: &str) -> EndedIteration {
        let at = |second: u32| Timestamp::from_second(i64::from(second)).unwrap();
        EndedIteration {
            iteration,
            task: TaskId::from("T1"),
            attempt: 1,
            started_at: at(iteration * 10),
            ended_at: at(iteration * 10 + 5),
            outcome: outcome.to_owned(),
            usage: None,
            agent: "claude".to_owned(),
            model: None,
            phase: Phase::Complete,
            errors: Vec::new(),
            checkpoint: None,
            handoff: None,
            health: Health::Healthy,
            pending: Vec::new(),
        }
    }

    #[test]
    fn a_status_written_again_and_again_is_the_same_as_one_written_anew() {
        let (mut state, mut projector) = (Loop::default(), Projector::default());
        let now = Timestamp::UNIX_EPOCH;
        let mut check = |state: &Loop| {
            let written: serde_json::Value = serde_json::from_str(&projector.text(state, now)).unwrap();
            assert_eq!(written, serde_json::to_value(status(state, now)).unwrap());
        };
        check(&state);
        for iteration in 1..=6 {
            if state.recent.len() == 3 {
                state.recent.pop_front();
            }
            state.recent.push_back(ended(iteration, "\"complete\""));
            check(&state);
            // A checkpoint is noted afterwards.
            state.recent.back_mut().unwrap().checkpoint = Some(uuid::Uuid::from_u128(u128::from(iteration)));
            check(&state);
        }
        // After going back to a checkpoint there are fewer, and others.
        state.recent = [ended(2, "another"), ended(6, "failed")].into();
        check(&state);
        state.recent.clear();
        check(&state);
    }

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
