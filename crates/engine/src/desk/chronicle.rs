//! A loop's journal, read once and asked often: the loop as it is now and as it was at any event, its
//! iterations and what it cost. For surfaces that stay open beside a loop.
//!
//! The loop is kept as it was at some events on the way, so that going back folds a part of the journal and
//! not all of it. How many such marks there are depends on how much each of them holds.

use jiff::Timestamp;
use serde::Serialize;
use wiggum_core::event::{Envelope, Event, Verdict};
use wiggum_core::ids::{LoopId, Seq, TaskId};
use wiggum_core::state::{Loop, verdict_name};
use wiggum_store::{Store, StoreError};

use crate::checkpoints::Kept;
use crate::desk::calls::{self, Call};
use crate::desk::cost::{self, Left};

/// Events between two marks, as long as there are few.
const FIRST_STRIDE: Seq = 2000;
/// Tasks that all marks together may hold; one takes about a kilobyte.
const MARKED_TASKS: usize = 150_000;
/// Marks of small loops: with these, a million events are at most 8000 apart.
const MOST_MARKS: usize = 128;

/// What is known of one loop.
#[derive(Debug)]
pub struct Chronicle {
    id: LoopId,
    head: Loop,
    marks: Vec<Loop>,
    stride: Seq,
    /// Where the newest events begin for whoever follows.
    iterations: Vec<Span>,
    checkpoints: Vec<Kept>,
    calls: Vec<Call>,
    /// The events that told of the calls, and those with which the number of tasks left changed.
    calls_at: Vec<Seq>,
    burn_down: Vec<Left>,
    burn_down_at: Vec<Seq>,
}

/// An iteration in time.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Span {
    pub iteration: u32,
    pub task: String,
    pub attempt: u32,
    pub agent: String,
    /// The event it began with.
    pub seq: u64,
    /// The event it ended with; missing while it is under way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_seq: Option<u64>,
    pub started_at: Timestamp,
    /// When the agent was gone and the checks began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_ended_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// completed, claim refuted, unclaimed, error, interrupted … or under way.
    pub outcome: String,
    pub cost_usd: f64,
    pub tokens: u64,
}

impl Chronicle {
    /// Of a loop of which nothing was read yet.
    pub fn new(id: LoopId) -> Self {
        Self {
            id,
            head: Loop::default(),
            marks: Vec::new(),
            stride: FIRST_STRIDE,
            iterations: Vec::new(),
            checkpoints: Vec::new(),
            calls: Vec::new(),
            calls_at: Vec::new(),
            burn_down: Vec::new(),
            burn_down_at: Vec::new(),
        }
    }

    /// For whoever only looks at the present: nothing is kept on the way, so that going back folds the whole.
    pub fn of_the_present(id: LoopId) -> Self {
        Self { stride: Seq::MAX, ..Self::new(id) }
    }

    /// Reads what is new, and shows each event with the loop after it.
    pub fn catch_up(
        &mut self,
        store: &Store,
        mut show: impl FnMut(&Envelope, &Loop),
    ) -> Result<(), StoreError> {
        store.for_each(self.id, self.head.seq, |envelope| {
            self.take(&envelope);
            show(&envelope, &self.head);
        })
    }

    /// The loop as it is.
    pub fn head(&self) -> &Loop {
        &self.head
    }

    /// The loop as it was after this event.
    pub fn at(&self, store: &Store, seq: Seq) -> Result<Loop, StoreError> {
        if seq >= self.head.seq {
            return Ok(self.head.clone());
        }
        let later = self.marks.partition_point(|mark| mark.seq <= seq);
        let mut state = later.checked_sub(1).map(|at| self.marks[at].clone()).unwrap_or_default();
        let missing = u32::try_from(seq - state.seq).unwrap_or(u32::MAX);
        store.for_some(self.id, state.seq, missing, |envelope| state.apply(&envelope))?;
        Ok(state)
    }

    /// Every iteration, in the order they began.
    pub fn iterations(&self) -> &[Span] {
        &self.iterations
    }

    /// The newest start of an iteration; interrupted ones are made again under their number.
    pub fn iteration(&self, number: u32) -> Option<&Span> {
        self.iterations.iter().rfind(|span| span.iteration == number)
    }

    /// Every checkpoint, oldest first.
    pub fn checkpoints(&self) -> &[Kept] {
        &self.checkpoints
    }

    /// Every call of an agent that told what it used, with the event that told it.
    pub fn calls(&self) -> impl Iterator<Item = (Seq, &Call)> {
        self.calls_at.iter().copied().zip(&self.calls)
    }

    /// What it cost so far.
    pub fn cost(&self, by: cost::By) -> cost::Report {
        self.cost_at(&self.head, by)
    }

    /// What it had cost when it was as [`Self::at`] tells.
    pub fn cost_at(&self, then: &Loop, by: cost::By) -> cost::Report {
        let until = |all: &[Seq]| all.partition_point(|seq| *seq <= then.seq);
        let calls = &self.calls[..until(&self.calls_at)];
        let burn_down = self.burn_down[..until(&self.burn_down_at)].to_vec();
        cost::of(then, calls, burn_down, by, then.last_at.unwrap_or_default())
    }

    /// Takes in the next event, for whoever reads the journal elsewhere.
    pub fn take(&mut self, envelope: &Envelope) {
        self.calls.extend(calls::told_by(envelope, &self.head));
        self.calls_at.resize(self.calls.len(), envelope.seq);
        self.note(envelope);
        self.head.apply(envelope);
        self.burn_down.extend(cost::left(envelope, &self.head, self.burn_down.last()));
        self.burn_down_at.resize(self.burn_down.len(), envelope.seq);
        if envelope.seq.is_multiple_of(self.stride) {
            self.mark();
        }
    }

    fn mark(&mut self) {
        self.marks.push(self.head.clone());
        let tasks = self.head.tasks.counts().total.max(1);
        if self.marks.len() > (MARKED_TASKS / tasks).clamp(4, MOST_MARKS) {
            self.stride *= 2;
            let stride = self.stride;
            self.marks.retain(|mark| mark.seq.is_multiple_of(stride));
        }
    }

    fn note(&mut self, Envelope { seq, at, event, .. }: &Envelope) {
        match event {
            Event::IterationStarted { iteration, task, attempt, agent, .. } => self.iterations.push(Span {
                iteration: *iteration,
                task: task.to_string(),
                attempt: *attempt,
                agent: agent.clone(),
                seq: *seq,
                ended_seq: None,
                started_at: *at,
                agent_ended_at: None,
                ended_at: None,
                outcome: "under way".to_owned(),
                cost_usd: 0.0,
                tokens: 0,
            }),
            Event::AgentEnded { iteration, usage, .. } => {
                self.change(*iteration, |span| {
                    span.agent_ended_at = Some(*at);
                    span.cost_usd += usage.map_or(0.0, |usage| usage.cost_usd);
                    span.tokens += usage.map_or(0, |usage| usage.tokens());
                });
            }
            Event::Charged { iteration, usage, .. } => self.change(*iteration, |span| {
                span.cost_usd += usage.cost_usd;
                span.tokens += usage.tokens();
            }),
            // What was accepted has yet to be committed.
            Event::Judged { iteration, verdict: Verdict::Accepted { .. }, .. } => {
                self.change(*iteration, |span| "accepted".clone_into(&mut span.outcome));
            }
            Event::Judged { iteration, verdict, .. } => {
                self.end(*iteration, *seq, *at, verdict_name(verdict));
            }
            Event::TaskCompleted { iteration, .. } => self.end(*iteration, *seq, *at, "completed"),
            Event::CommitRefused { iteration, .. } => self.end(*iteration, *seq, *at, "commit refused"),
            Event::Interrupted { iteration, .. } => self.end(*iteration, *seq, *at, "interrupted"),
            Event::Checkpointed { iteration, task, id, checkpoint, previous, by } => {
                self.checkpoints.push(Kept {
                    seq: *seq,
                    at: *at,
                    id: *id,
                    sha256: checkpoint.sha256.clone(),
                    previous: previous.clone(),
                    iteration: *iteration,
                    task: task.clone(),
                    by: by.clone(),
                });
            }
            _ => {}
        }
    }

    fn end(&mut self, iteration: u32, seq: Seq, at: Timestamp, outcome: &str) {
        self.change(iteration, |span| {
            outcome.clone_into(&mut span.outcome);
            (span.ended_at, span.ended_seq) = (Some(at), Some(seq));
        });
    }

    fn change(&mut self, iteration: u32, change: impl FnOnce(&mut Span)) {
        if let Some(span) = self.iterations.iter_mut().rfind(|span| span.iteration == iteration) {
            change(span);
        }
    }
}

/// The task that an event is about, if it says so itself.
pub fn task_of(event: &Event) -> Option<&TaskId> {
    match event {
        Event::StatusWritten { task, .. }
        | Event::IterationStarted { task, .. }
        | Event::WorkKept { task, .. }
        | Event::TaskCompleted { task, .. }
        | Event::TaskFailed { task, .. }
        | Event::TaskSkipped { task, .. }
        | Event::SkipAsked { task, .. }
        | Event::TaskReopened { task, .. }
        | Event::StatusSet { task, .. }
        | Event::StatusPutBack { task, .. } => Some(task),
        Event::QuestionRaised { task, .. }
        | Event::Checkpointed { task, .. }
        | Event::Noticed { task, .. }
        | Event::RequestRefused { task, .. }
        | Event::BudgetAlert { task, .. } => task.as_ref(),
        _ => None,
    }
}

/// The iteration that an event is about, if it says so itself.
pub fn iteration_of(event: &Event) -> Option<u32> {
    match event {
        Event::IterationStarted { iteration, .. }
        | Event::AgentEnded { iteration, .. }
        | Event::CallStarted { iteration, .. }
        | Event::WorkEnded { iteration, .. }
        | Event::AgentReported { iteration, .. }
        | Event::CommitsFound { iteration, .. }
        | Event::TreeTaken { iteration, .. }
        | Event::TreeAltered { iteration, .. }
        | Event::EvidenceGathered { iteration, .. }
        | Event::WorkInspected { iteration, .. }
        | Event::Judged { iteration, .. }
        | Event::WorkKept { iteration, .. }
        | Event::TaskCompleted { iteration, .. }
        | Event::CommitRefused { iteration, .. }
        | Event::Nudged { iteration, .. }
        | Event::HealthChanged { iteration, .. }
        | Event::HandoffStarted { iteration, .. }
        | Event::Checkpointed { iteration, .. }
        | Event::Interrupted { iteration, .. }
        | Event::Charged { iteration, .. } => Some(*iteration),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use uuid::Uuid;
    use wiggum_core::event::EVENT_VERSION;
    use wiggum_store::{Append, Holder, Identity};

    use super::*;

    /// A journal in which every event leaves another state.
    fn journal(events: u64) -> (tempfile::TempDir, Store, LoopId, Vec<Envelope>) {
        let dir = tempfile::tempdir().unwrap();
        let mut store = Store::open(&dir.path().join("wiggum.db")).unwrap();
        let text = |text: &str| text.to_owned();
        let identity = Identity { repository: text("/r"), backlog: text("PRD.json"), name: text("main") };
        let at = Timestamp::UNIX_EPOCH;
        let id = store.create_loop(&identity, LoopId(Uuid::nil()), at).unwrap().id;
        let holder = Holder { pid: 1, started: text("0"), boot: text("b"), host: text("h") };
        let epoch = store.acquire(id, &holder, &|_| false, at).unwrap();
        let event = |seq: u64| match seq % 3 {
            0 => Event::Paused { by: seq.to_string() },
            1 => Event::Resumed { by: seq.to_string() },
            _ => Event::BacklogBroken { message: seq.to_string() },
        };
        let envelope =
            |seq| Envelope { v: EVENT_VERSION, seq, id: Uuid::nil(), at, epoch, event: event(seq) };
        let envelopes: Vec<Envelope> = (1..=events).map(envelope).collect();
        let nothing = (&[][..], &[][..]);
        let batch = Append {
            loop_id: id,
            expected_seq: 0,
            epoch,
            envelopes: &envelopes,
            blobs: nothing.0,
            handled: nothing.1,
            projection: None,
        };
        store.append(&batch).unwrap();
        (dir, store, id, envelopes)
    }

    #[test]
    fn a_loop_is_as_it_was_at_every_event() {
        let (_dir, store, id, envelopes) = journal(700);
        // So that marks are left out on the way.
        let mut chronicle = Chronicle { stride: 2, ..Chronicle::new(id) };
        chronicle.catch_up(&store, |_, _| {}).unwrap();
        assert!(chronicle.stride > 2 && !chronicle.marks.is_empty() && chronicle.marks.len() <= MOST_MARKS);
        let mut state = Loop::default();
        for envelope in &envelopes {
            state.apply(envelope);
            assert_eq!(chronicle.at(&store, envelope.seq).unwrap(), state, "{}", envelope.seq);
        }
        assert_eq!(chronicle.at(&store, 0).unwrap(), Loop::default());
        assert_eq!(chronicle.at(&store, u64::MAX).unwrap(), *chronicle.head());
    }

    #[test]
    fn what_is_new_is_read_once() {
        let (_dir, store, id, envelopes) = journal(30);
        let mut chronicle = Chronicle::new(id);
        let mut seen = Vec::new();
        chronicle.catch_up(&store, |envelope, _| seen.push(envelope.seq)).unwrap();
        chronicle.catch_up(&store, |envelope, _| seen.push(envelope.seq)).unwrap();
        assert_eq!(seen, (1..=30).collect::<Vec<u64>>());
        assert_eq!(*chronicle.head(), Loop::fold(&envelopes));
    }
}
