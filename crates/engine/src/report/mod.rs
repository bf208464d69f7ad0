//! The account of a loop: what happened, what it cost, why it stopped, and what a person should look
//! at. Told by the journal alone, so it can be made again at any time.
//!
//! Like [`crate::status`], the shape of `report.json` is a public contract: fields may be added.

mod attention;
mod foreseen;
mod html;
mod markdown;
mod timeline;

use std::collections::{BTreeMap, HashMap};

use jiff::Timestamp;
use serde::Serialize;
use wiggum_core::activity::{EngineState, task_word};
use wiggum_core::decide::why_seen;
use wiggum_core::event::{Envelope, Event, Evidence, Flag, Usage, Verdict};
use wiggum_core::ids::{Iteration, LoopId};
use wiggum_core::state::{Loop, verdict_name};
use wiggum_core::tasks::TaskState;
use wiggum_store::Store;

use crate::desk::inbox::answered;
use crate::error::EngineError;
use crate::status::{Status, status};

pub use attention::Attention;
pub use foreseen::Foreseen;
pub use timeline::Moment;

/// How many moments and attempts a report holds before it leaves out the oldest.
const MAX_MOMENTS: usize = 1000;
const MAX_ATTEMPTS: usize = 5000;
/// Lines of a check's output, from its end.
const OUTPUT_LINES: usize = 12;

#[derive(Clone, Debug, Serialize)]
pub struct Report {
    #[serde(flatten)]
    pub status: Status,
    pub exit_code: Option<u8>,
    /// What agents were kept in, at the last start.
    pub sandbox: String,
    /// When it was made; times of what is under way are told up to then.
    pub made_at: Timestamp,
    /// Of all runs; `current_iteration` and `active_seconds` are those of the last one.
    pub total_iterations: u32,
    pub total_active_seconds: f64,
    /// What a person should look at, the most important first.
    pub attention: Vec<Attention>,
    /// Why the checks did not pass in a clean checkout of the last commit.
    #[serde(skip)]
    clean: Option<String>,
    /// The commit with changes of the user that could not be put back.
    #[serde(skip)]
    left_aside: Option<String>,
    pub tasks: Vec<TaskReport>,
    pub cost: CostReport,
    pub timeline: Vec<Moment>,
    /// Moments and attempts that are left out, since there are too many; the journal has them all.
    pub omitted: usize,
}

#[derive(Clone, Debug, Serialize)]
pub struct TaskReport {
    pub id: String,
    pub title: String,
    pub state: String,
    pub verified: bool,
    /// Done by the word of a person.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub by_hand: bool,
    pub attempts: u32,
    /// Why it is where it is.
    pub why: String,
    pub commit: Option<String>,
    /// The attempts that ended, oldest first.
    pub history: Vec<AttemptReport>,
    pub cost: f64,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct AttemptReport {
    pub iteration: u32,
    pub attempt: u32,
    pub agent: String,
    pub model: Option<String>,
    pub started_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    pub outcome: String,
    /// Why, where it did not succeed.
    pub reasons: Vec<String>,
    pub evidence: Vec<EvidenceReport>,
    pub changed: u32,
    pub flags: Vec<FlagReport>,
    pub usage: Option<Usage>,
    /// Where unfinished work was kept.
    pub kept: Option<String>,
}

#[derive(Clone, Debug, Serialize)]
pub struct EvidenceReport {
    pub name: String,
    pub command: String,
    pub passed: bool,
    pub exit: String,
    pub seconds: f64,
    /// The end of what it printed.
    pub output: String,
    /// Hash of all it printed, by which the store has it.
    pub output_sha256: String,
}

#[derive(Clone, Debug, Serialize)]
pub struct FlagReport {
    pub kind: wiggum_core::event::FlagKind,
    pub what: String,
    pub detail: String,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct CostReport {
    pub total: Usage,
    pub by_agent: BTreeMap<String, Usage>,
    pub by_model: BTreeMap<String, Usage>,
    /// The first forecast, made when a quarter of the tasks was done, against the truth.
    pub foreseen: Option<Foreseen>,
}

impl Report {
    /// Of a loop, from its journal and what was found of its engine.
    pub fn read(store: &Store, id: LoopId, engine: EngineState, now: Timestamp) -> Result<Self, EngineError> {
        let mut account = Account::default();
        store.for_each(id, 0, |envelope| account.take(&envelope))?;
        Ok(account.close(engine, now, &answered(store, id)?))
    }

    /// For people: in a terminal, a file, a mail.
    pub fn markdown(&self) -> String {
        markdown::render(self)
    }

    /// One page by itself, without scripts and without anything from elsewhere.
    pub fn html(&self) -> String {
        html::render(self)
    }

    /// How many iterations, and in how many of them the last run had its part.
    fn iterations(&self) -> String {
        let Status { current_iteration, run, .. } = &self.status;
        if self.total_iterations == *current_iteration {
            return format!("{current_iteration} in run {run}");
        }
        format!("{current_iteration} in run {run}, {} in all", self.total_iterations)
    }

    fn time_at_work(&self) -> String {
        let of_run = spoken(self.status.active_seconds);
        // Only what is shown of it counts.
        match spoken(self.total_active_seconds) {
            total if total == of_run => of_run,
            total => format!("{of_run} in run {}, {total} in all", self.status.run),
        }
    }

    /// When an attempt ended, or until when it is told.
    fn end_of(&self, attempt: &AttemptReport) -> Option<Timestamp> {
        let works = !self.status.activity.is_interrupted() && !self.status.is_at_rest();
        attempt.ended_at.or(works.then_some(self.made_at))
    }

    /// How long an attempt took, or takes so far.
    fn took(&self, attempt: &AttemptReport) -> Option<String> {
        let took = spoken(seconds_between(attempt.started_at, self.end_of(attempt)?));
        Some(if attempt.ended_at.is_some() { took } else { format!("{took} so far") })
    }

    fn attempts(&self) -> impl Iterator<Item = (&TaskReport, &AttemptReport)> {
        self.tasks.iter().flat_map(|task| task.history.iter().map(move |attempt| (task, attempt)))
    }
}

/// What is noted while the journal goes by.
#[derive(Default)]
struct Account {
    state: Loop,
    attempts: Vec<(String, AttemptReport)>,
    commits: HashMap<String, String>,
    cost: CostReport,
    timeline: Vec<Moment>,
    sandbox: String,
    /// The time at work of the runs before the last one.
    former_ms: u64,
}

impl Account {
    fn take(&mut self, envelope: &Envelope) {
        if matches!(envelope.event, Event::RunStarted { .. }) {
            self.former_ms = self.former_ms.saturating_add(self.state.run.active_ms);
        }
        if let Event::RunStarted { sandbox, .. } | Event::RunResumed { sandbox, .. } = &envelope.event {
            self.sandbox.clone_from(sandbox);
        }
        self.state.apply(envelope);
        self.timeline.extend(timeline::moment(envelope));
        let at = envelope.at;
        match &envelope.event {
            Event::IterationStarted { iteration, task, attempt, agent, .. } => {
                let started = AttemptReport {
                    iteration: *iteration,
                    attempt: *attempt,
                    agent: agent.clone(),
                    started_at: at,
                    outcome: "under way".to_owned(),
                    ..AttemptReport::default()
                };
                self.attempts.push((task.to_string(), started));
            }
            Event::AgentEnded { iteration, usage, facts, flags, .. } => {
                self.count(*iteration, *usage, facts.model.as_deref());
                let open = self.of(*iteration);
                open.usage = *usage;
                open.model.clone_from(&facts.model);
                open.note(flags);
            }
            Event::Charged { iteration, usage, model, .. } => {
                self.count(*iteration, Some(*usage), model.as_deref());
            }
            Event::TreeTaken { iteration, flags, .. } => self.of(*iteration).note(flags),
            Event::TreeAltered { iteration, .. } => self.of(*iteration).evidence.clear(),
            Event::EvidenceGathered { iteration, evidence, .. } => {
                self.of(*iteration).evidence.push(EvidenceReport::of(evidence));
            }
            Event::WorkInspected { iteration, changed_total, flags, .. } => {
                let open = self.of(*iteration);
                open.changed = *changed_total;
                open.note(flags);
            }
            Event::Judged { iteration, verdict, .. } => self.of(*iteration).judge(verdict, at),
            Event::WorkKept { iteration, reference, .. } => {
                self.of(*iteration).kept = Some(reference.clone());
            }
            Event::TaskCompleted { iteration, task, commit, .. } => {
                self.of(*iteration).end("completed", at);
                if let Some(commit) = commit {
                    self.commits.insert(task.to_string(), commit.clone());
                }
            }
            Event::CommitRefused { iteration, output, .. } => {
                let open = self.of(*iteration);
                open.end("commit refused", at);
                open.reasons = vec![output.excerpt.clone()];
            }
            // It will be made again under the same number.
            Event::Interrupted { .. } => drop(self.attempts.pop()),
            _ => {}
        }
    }

    /// The attempt of an iteration; what belongs to none is noted for nobody.
    fn of(&mut self, iteration: Iteration) -> &mut AttemptReport {
        let at = self.attempts.iter().rposition(|(_, attempt)| attempt.iteration == iteration);
        let at = at.unwrap_or_else(|| {
            self.attempts.push((String::new(), AttemptReport::default()));
            self.attempts.len() - 1
        });
        &mut self.attempts[at].1
    }

    fn count(&mut self, iteration: Iteration, usage: Option<Usage>, model: Option<&str>) {
        let Some(usage) = usage else { return };
        let agent = self.of(iteration).agent.clone();
        let agent = if agent.is_empty() { self.state.agent.clone() } else { agent };
        *self.cost.by_agent.entry(agent).or_default() += usage;
        *self.cost.by_model.entry(model.unwrap_or("unknown").to_owned()).or_default() += usage;
    }

    fn close(mut self, engine: EngineState, now: Timestamp, answered: &[String]) -> Report {
        self.cost.total = self.state.usage;
        self.cost.foreseen = Foreseen::of(&self.state);
        let too_old = self.timeline.len().saturating_sub(MAX_MOMENTS);
        self.timeline.drain(..too_old);
        let too_many = self.attempts.len().saturating_sub(MAX_ATTEMPTS);
        self.attempts.drain(..too_many);
        let mut histories: HashMap<String, Vec<AttemptReport>> = HashMap::new();
        for (task, attempt) in self.attempts {
            histories.entry(task).or_default().push(attempt);
        }
        let tasks = self
            .state
            .tasks
            .iter()
            .map(|entry| {
                let id = entry.spec.id.to_string();
                let history = histories.remove(&id).unwrap_or_default();
                TaskReport {
                    title: entry.spec.title.clone(),
                    state: task_word(&entry.state, engine).to_owned(),
                    verified: matches!(entry.state, TaskState::Done { verified: true, .. }),
                    by_hand: matches!(entry.state, TaskState::Done { by_hand: true, .. }),
                    attempts: entry.attempts,
                    why: why_seen(&self.state, &entry.spec.id, engine, now)
                        .map(|why| why.to_string())
                        .unwrap_or_default(),
                    commit: self.commits.remove(&id),
                    cost: entry.spent.cost_usd,
                    history,
                    id,
                }
            })
            .collect();
        let active_ms = match engine {
            // Nothing was recorded since, but it was at work.
            EngineState::Alive => self.state.active_ms(now),
            EngineState::Gone | EngineState::Dead => self.state.run.active_ms,
        };
        let seconds = |ms: u64| ms as f64 / 1000.0;
        let mut status = status(&self.state, now).seen_with(engine).seen_with_answers(answered);
        status.active_seconds = seconds(active_ms);
        let mut report = Report {
            made_at: now,
            total_iterations: self.state.total_iterations(),
            total_active_seconds: seconds(self.former_ms.saturating_add(active_ms)),
            status,
            exit_code: self.state.run.ended.as_ref().map(|(reason, _)| reason.exit_code()),
            sandbox: self.sandbox,
            attention: Vec::new(),
            clean: wiggum_core::clean::doubts(&self.state),
            left_aside: self.state.run.left_aside.clone(),
            tasks,
            cost: self.cost,
            timeline: self.timeline,
            omitted: too_old + too_many,
        };
        report.attention = attention::of(&report, answered);
        report
    }
}

impl AttemptReport {
    fn note(&mut self, flags: &[Flag]) {
        self.flags.extend(flags.iter().map(|flag| FlagReport {
            kind: flag.kind,
            what: flag.what.clone(),
            detail: flag.detail.clone(),
        }));
    }

    fn end(&mut self, outcome: &str, at: Timestamp) {
        outcome.clone_into(&mut self.outcome);
        self.ended_at = Some(at);
    }

    fn judge(&mut self, verdict: &Verdict, at: Timestamp) {
        self.end(verdict_name(verdict), at);
        self.reasons = match verdict {
            Verdict::Refuted { reasons } | Verdict::Held { reasons } => reasons.clone(),
            Verdict::Errored { failure } => vec![failure.message.clone()],
            Verdict::Unavailable { message, .. } => vec![message.clone()],
            Verdict::HandedOver { trigger } => vec![trigger.to_string()],
            _ => Vec::new(),
        };
    }
}

impl EvidenceReport {
    fn of(evidence: &Evidence) -> Self {
        let lines: Vec<&str> = evidence.output.excerpt.lines().collect();
        Self {
            name: evidence.name.clone(),
            command: evidence.command.clone(),
            passed: evidence.passed(),
            exit: evidence.exit.to_string(),
            seconds: evidence.duration.as_duration().as_secs_f64(),
            output: lines[lines.len().saturating_sub(OUTPUT_LINES)..].join("\n"),
            output_sha256: evidence.output.sha256.clone(),
        }
    }
}

/// Seconds as people say them.
fn spoken(seconds: f64) -> String {
    match seconds {
        s if s < 10.0 => format!("{s:.1} s"),
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

/// Between two moments, in seconds.
fn seconds_between(from: Timestamp, to: Timestamp) -> f64 {
    (to - from).total(jiff::Unit::Second).unwrap_or_default().max(0.0)
}

fn short(commit: &str) -> &str {
    commit.get(..9).unwrap_or(commit)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const LOOP: &str = "01a1e047-2acf-7059-b131-2e3765990bf3";

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    /// A report of these events, each with the second at which it happened.
    fn report(events: &[(i64, serde_json::Value)], engine: EngineState, now: i64) -> String {
        let mut account = Account::default();
        for (index, (second, event)) in events.iter().enumerate() {
            let mut text = json!({ "v": 1, "seq": index + 1, "id": LOOP, "at": at(*second), "epoch": 1 });
            text.as_object_mut().unwrap().extend(event.as_object().unwrap().clone());
            account.take(&serde_json::from_value(text).unwrap());
        }
        account.close(engine, at(now), &[]).markdown()
    }

    fn run_started(run: u32) -> serde_json::Value {
        let policy = wiggum_core::policy::Policy::default();
        json!({ "type": "run_started", "run": run, "policy": policy, "agent": "sh", "version": "0", "git": true })
    }

    fn run_ended(run: u32) -> serde_json::Value {
        json!({ "type": "run_ended", "run": run, "reason": "goal_achieved", "detail": "" })
    }

    fn at_work() -> Vec<(i64, serde_json::Value)> {
        let created = json!({ "type": "loop_created", "loop_id": LOOP, "name": "main", "repository": "", "backlog": "b" });
        let read = json!({ "type": "backlog_read", "revision": "r", "changed": [], "removed": [],
            "added": [{ "id": "A", "title": "Do A", "description": "" }] });
        let started = json!({ "type": "iteration_started", "iteration": 1, "task": "A", "attempt": 1,
            "command": "sh", "workspace": "", "prompt": { "bytes": 0 } });
        vec![(0, created), (0, run_started(1)), (1, read), (1, started)]
    }

    #[test]
    fn what_is_under_way_is_told_up_to_now() {
        let told = report(&at_work(), EngineState::Alive, 61);
        assert!(told.contains("| time at work | 61 s |"), "{told}");
        assert!(told.contains("**under way**, 60 s so far"), "{told}");
        // Nobody knows how long somebody worked who was killed.
        let told = report(&at_work(), EngineState::Dead, 61);
        assert!(told.contains("| time at work | 1.0 s |") && !told.contains("so far"), "{told}");
    }

    #[test]
    fn a_run_with_nothing_to_do_leaves_the_figures_of_the_others() {
        let mut events = at_work();
        let judged =
            json!({ "type": "judged", "iteration": 1, "attempt": 1, "verdict": { "kind": "unclaimed" } });
        events.extend([(51, judged), (51, run_ended(1)), (100, run_started(2)), (102, run_ended(2))]);
        let told = report(&events, EngineState::Gone, 200);
        assert!(told.contains("| iterations | 0 in run 2, 1 in all |"), "{told}");
        assert!(told.contains("| time at work | 2.0 s in run 2, 53 s in all |"), "{told}");
    }

    /// What is to be looked at after an attempt with flags of these kinds.
    fn looked_at(kinds: &[&str]) -> String {
        let mut events = at_work();
        let flags: Vec<_> =
            kinds.iter().map(|kind| json!({ "kind": kind, "what": "TODO.md", "detail": "how" })).collect();
        let ended = json!({ "type": "agent_ended", "iteration": 1, "attempt": 1, "exit": { "kind": "code", "code": 0 },
            "message": { "bytes": 0 }, "duration": 1, "flags": flags });
        let judged =
            json!({ "type": "judged", "iteration": 1, "attempt": 1, "verdict": { "kind": "unclaimed" } });
        events.extend([(2, ended), (3, judged), (4, run_ended(1))]);
        let told = report(&events, EngineState::Gone, 5);
        told.split("## What to look at").nth(1).unwrap().split("\n## ").next().unwrap().to_owned()
    }

    #[test]
    fn what_an_agent_did_to_backlog_and_branch_is_to_be_looked_at() {
        let told = looked_at(&["backlog_touched", "branch_switched"]);
        assert!(told.contains("the agent wrote to the backlog: TODO.md: how (iteration 1)"), "{told}");
        assert!(
            told.contains("the branch was switched during an attempt: TODO.md: how (iteration 1)"),
            "{told}"
        );
        // Every agent commits, and what a check left behind is gone.
        assert!(looked_at(&["agent_committed", "check_leftovers"]).contains("Nothing."));
    }
}
