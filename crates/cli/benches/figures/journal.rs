//! Journals such as real loops write: most tasks fail once, are retried with feedback, and land.

use jiff::Timestamp;
use uuid::Uuid;
use wiggum_core::event::{
    BlobRef, Claim, ClaimSource, EVENT_VERSION, Envelope, Event, Evidence, Exit, Usage, Verdict,
};
use wiggum_core::ids::{Attempt, Iteration, LoopId, TaskId};
use wiggum_core::policy::{Millis, Policy};
use wiggum_core::state::Loop;
use wiggum_core::task::{FileStatus, Task};
use wiggum_engine::checkout::Checkout;
use wiggum_store::{Append, Holder, Identity, Store};

use crate::Outcome;

/// Events of one task: an attempt that is refuted, and one that lands.
pub(crate) const PER_TASK: usize = 15;

/// Numbers events as a journal does.
pub(crate) struct Writer {
    seq: u64,
    at: Timestamp,
}

impl Writer {
    pub(crate) fn new() -> Self {
        Self { seq: 0, at: Timestamp::UNIX_EPOCH }
    }

    pub(crate) fn envelope(&mut self, event: Event) -> Envelope {
        self.seq += 1;
        self.at = self.at.saturating_add(std::time::Duration::from_secs(1)).unwrap_or(Timestamp::MAX);
        // Which id an event has matters to nobody here; making one takes longer than folding it.
        Envelope { v: EVENT_VERSION, seq: self.seq, id: Uuid::nil(), at: self.at, epoch: 1, event }
    }

    /// The events before the first iteration, with a backlog of so many tasks.
    pub(crate) fn opening(&mut self, loop_id: LoopId, repository: &str, tasks: usize) -> Vec<Envelope> {
        let added =
            (0..tasks).map(|number| Task::new(id(number).as_str(), format!("Task {number}"))).collect();
        let events = [
            Event::LoopCreated {
                loop_id,
                name: "main".to_owned(),
                repository: repository.to_owned(),
                backlog: crate::place::BACKLOG.to_owned(),
            },
            Event::RunStarted {
                run: 1,
                policy: Box::new(Policy::default()),
                agent: "agent".to_owned(),
                version: "0.1.0".to_owned(),
                git: true,
                sandbox: String::new(),
                tree: String::new(),
            },
            Event::BacklogRead {
                revision: "0123456789abcdef".to_owned(),
                added,
                changed: Vec::new(),
                removed: Vec::new(),
                order: None,
            },
        ];
        events.map(|event| self.envelope(event)).into()
    }

    /// Everything that happens to one task.
    pub(crate) fn task(&mut self, number: usize) -> Vec<Envelope> {
        attempts(number).into_iter().flatten().map(|event| self.envelope(event)).collect()
    }
}

/// The two attempts at a task.
pub(crate) fn attempts(number: usize) -> [Vec<Event>; 2] {
    let task = id(number);
    let iteration = Iteration::try_from(number * 2 + 1).unwrap_or(Iteration::MAX);
    let refuted = Verdict::Refuted { reasons: vec!["The check \"verify\" failed: exit code 1.".to_owned()] };
    let kept = Event::WorkKept {
        iteration,
        task: task.clone(),
        reference: format!("refs/wiggum/0123456789ab/{task}/{iteration}"),
        commit: hash(iteration),
    };
    let mut first = attempt(&task, iteration, 1, 1, refuted);
    first.push(kept);
    let mut second = attempt(&task, iteration + 1, 2, 0, Verdict::Accepted { verified: true });
    second.push(Event::StatusWritten { task: task.clone(), status: FileStatus::Done });
    let commit = Some(hash(iteration + 1));
    second.push(Event::TaskCompleted { iteration: iteration + 1, task, attempt: 2, commit, verified: true });
    [first, second]
}

/// The six events that every attempt with one check has.
fn attempt(task: &TaskId, iteration: Iteration, attempt: Attempt, code: i32, verdict: Verdict) -> Vec<Event> {
    let evidence = Evidence {
        name: "verify".to_owned(),
        command: "cargo test".to_owned(),
        exit: Exit::Code { code },
        output: blob("test result: FAILED. 12 passed; 1 failed", iteration),
        duration: Millis(4321),
        former: false,
        clean: false,
        tests: None,
        withheld: Vec::new(),
    };
    vec![
        Event::IterationStarted {
            iteration,
            task: task.clone(),
            attempt,
            base: Some(hash(iteration)),
            branch: Some("main".to_owned()),
            carried: (attempt > 1).then(|| hash(iteration)),
            command: "agent --print".to_owned(),
            agent: "agent".to_owned(),
            session: None,
            workspace: "/repository".to_owned(),
            prompt: blob("Work on the task below.", iteration),
            accepted: false,
        },
        Event::AgentEnded {
            iteration,
            attempt,
            exit: Exit::Code { code: 0 },
            message: blob("All tests pass now.\n<promise>DONE</promise>", iteration),
            duration: Millis(123_456),
            usage: Some(Usage {
                input_tokens: 12_000,
                output_tokens: 900,
                cost_usd: 0.05,
                ..Usage::default()
            }),
            facts: Box::default(),
            claim: Some(Claim { text: "<promise>DONE</promise>".to_owned(), source: ClaimSource::Promise }),
            questions: Vec::new(),
            error: None,
            flags: Vec::new(),
            phrase: None,
            notes: Box::default(),
            ended_processes: 0,
        },
        Event::TreeTaken { iteration, attempt, flags: Vec::new() },
        Event::EvidenceGathered { iteration, attempt, evidence },
        Event::WorkInspected {
            iteration,
            attempt,
            changed: ["src/lib.rs", "src/parse.rs", "tests/parse.rs"].map(str::to_owned).into(),
            changed_total: 3,
            digest: hash(iteration),
            flags: Vec::new(),
            former_checks: Vec::new(),
            written_checks: Vec::new(),
            redefined: Vec::new(),
        },
        Event::Judged { iteration, attempt, verdict, signals: Vec::new() },
    ]
}

fn id(number: usize) -> TaskId {
    format!("TASK-{number}").as_str().into()
}

fn hash(number: Iteration) -> String {
    format!("{number:040x}")
}

fn blob(text: &str, iteration: Iteration) -> BlobRef {
    BlobRef { sha256: format!("{iteration:064x}"), bytes: 5000, excerpt: text.repeat(3) }
}

/// A store whose only loop has at least so many events, with the status an engine would have left.
pub(crate) fn store(checkout: &Checkout, events: usize) -> Outcome<(Store, LoopId)> {
    let mut store = Store::open(&checkout.open(None)?.database())?;
    let repository = checkout.path().display().to_string();
    let identity = Identity {
        repository: repository.clone(),
        backlog: crate::place::BACKLOG.to_owned(),
        name: "main".to_owned(),
    };
    let loop_id = store.create_loop(&identity, LoopId(Uuid::now_v7()), Timestamp::UNIX_EPOCH)?.id;
    let holder = Holder { pid: 1, started: String::new(), boot: String::new(), host: String::new() };
    let epoch = store.acquire(loop_id, &holder, &|_| false, Timestamp::UNIX_EPOCH)?;
    let tasks = events / PER_TASK;
    let (mut writer, mut state) = (Writer::new(), Loop::default());
    let mut batch = writer.opening(loop_id, &repository, tasks);
    for number in 0..tasks {
        batch.extend(writer.task(number));
        if batch.len() < 1000 && number + 1 < tasks {
            continue;
        }
        let expected_seq = state.seq;
        for envelope in &mut batch {
            envelope.id = Uuid::now_v7();
            envelope.epoch = epoch;
            state.apply(envelope);
        }
        let projection = wiggum_engine::status::projection(&state, writer.at);
        store.append(&Append {
            loop_id,
            expected_seq,
            epoch,
            envelopes: &batch,
            blobs: &[],
            handled: &[],
            projection: Some(&projection),
        })?;
        batch.clear();
    }
    store.release(loop_id, epoch)?;
    Ok((store, loop_id))
}
