//! One loop as its journal grows: read once, told to all who listen.
//!
//! A batch of new events is put into words once and shared by every open page. Whoever cannot keep up reads
//! the journal at its own pace; nobody waits for anybody.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use serde::Serialize;
use tokio::sync::broadcast;
use wiggum_core::event::{Envelope, Event};
use wiggum_core::ids::{Seq, TaskId};
use wiggum_core::state::Loop;
use wiggum_engine::checkout::Checkout;
use wiggum_engine::desk::Loops;
use wiggum_engine::desk::chronicle::{Chronicle, Span, iteration_of, task_of};
use wiggum_engine::desk::watch::Watch;
use wiggum_store::LoopRecord;

use crate::api::events::EventRow;
use crate::api::loops::LoopStatus;
use crate::api::tasks::TaskRow;
use crate::books::hold;
use crate::refusal::Refusal;
use crate::stream::message;

/// Batches a listener may be behind before it reads the journal instead.
const BEHIND: usize = 32;
/// Events of one batch; whoever wants more reads the journal.
const MOST: usize = 400;
/// An engine that died tells nobody.
const LOOK: Duration = Duration::from_secs(2);

pub(crate) struct Feed {
    record: LoopRecord,
    chronicle: Mutex<Chronicle>,
    sender: broadcast::Sender<Arc<Batch>>,
    follows: AtomicBool,
    /// Did its engine live when somebody last looked?
    alive: AtomicBool,
}

/// What happened since the last batch.
pub(crate) struct Batch {
    pub(crate) first: Seq,
    pub(crate) last: Seq,
    /// The events as they are sent; none if there are too many.
    pub(crate) events: Option<Bytes>,
    /// What they changed.
    pub(crate) change: Bytes,
}

/// What differs for a page that shows the loop.
#[derive(Serialize)]
struct Change {
    status: LoopStatus,
    tasks: Vec<TaskRow>,
    iterations: Vec<Span>,
    /// More than is told here.
    reload: bool,
}

/// What was touched by a batch.
#[derive(Default)]
struct Touched {
    first: Option<Seq>,
    rows: Vec<u8>,
    count: usize,
    tasks: BTreeSet<String>,
    iterations: BTreeSet<u32>,
    /// More tasks than those named.
    all: bool,
}

impl Feed {
    pub(crate) fn new(record: LoopRecord) -> Self {
        let chronicle = Mutex::new(Chronicle::new(record.id));
        let sender = broadcast::Sender::new(BEHIND);
        let (follows, alive) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { record, chronicle, sender, follows, alive }
    }

    /// Looks at what is known.
    pub(crate) fn look<T>(&self, at: impl FnOnce(&Chronicle) -> T) -> T {
        at(&hold(&self.chronicle))
    }

    /// Reads what is new and tells it.
    pub(crate) fn catch_up(&self, loops: &Loops) -> Result<(), Refusal> {
        let mut chronicle = hold(&self.chronicle);
        let mut touched = Touched::default();
        let before = held_by(chronicle.head());
        let heard = self.sender.receiver_count() > 0;
        chronicle.catch_up(&loops.store, |envelope, _| {
            if heard {
                touched.note(envelope);
            }
        })?;
        // What every open task waits on is another now.
        touched.all |= held_by(chronicle.head()) != before;
        if let Some(first) = touched.first {
            let batch = self.batch(loops, &chronicle, first, touched)?;
            drop(self.sender.send(Arc::new(batch)));
        }
        Ok(())
    }

    /// Tells all from now on, and says whether the engine lives now; a thread looks for news as long as anybody has
    /// this.
    pub(crate) fn listen(self: &Arc<Self>, loops: &Loops) -> (broadcast::Receiver<Arc<Batch>>, bool) {
        let receiver = self.sender.subscribe();
        let alive = self.lives(loops);
        self.alive.store(alive, Ordering::SeqCst);
        if !self.follows.swap(true, Ordering::SeqCst) {
            let (feed, watch) = (Arc::downgrade(self), Watch::new(&loops.dir, self.record.id));
            let checkout = loops.checkout.clone();
            std::thread::spawn(move || follow(&feed, &watch, &checkout));
        }
        (receiver, alive)
    }

    fn lives(&self, loops: &Loops) -> bool {
        loops.lease(self.record.id).is_ok_and(|lease| lease.alive().is_some())
    }

    fn batch(
        &self,
        loops: &Loops,
        chronicle: &Chronicle,
        first: Seq,
        touched: Touched,
    ) -> Result<Batch, Refusal> {
        let (state, now) = (chronicle.head(), Timestamp::now());
        let iterations: Vec<Span> =
            touched.iterations.iter().filter_map(|number| chronicle.iteration(*number)).cloned().collect();
        let mut tasks = touched.tasks;
        tasks.extend(iterations.iter().map(|span| span.task.clone()));
        // What a task waits on changes with what it depends on.
        let of_tasks = |id: &String| {
            let id = TaskId::from(id.as_str());
            let dependents = state.tasks.dependents(&id).map(|entry| entry.spec.id.to_string());
            dependents.collect::<Vec<_>>()
        };
        let dependents: Vec<String> = tasks.iter().flat_map(of_tasks).collect();
        tasks.extend(dependents);
        let rows = tasks.iter().filter_map(|id| state.task(&id.as_str().into()));
        let crowd = touched.count > MOST;
        let engine = loops.lease(self.record.id)?.engine();
        let change = Change {
            status: LoopStatus::of(loops, &self.record, state, now)?,
            tasks: rows.map(|entry| TaskRow::of(state, entry, engine, now)).collect(),
            iterations,
            reload: touched.all || crowd,
        };
        Ok(Batch {
            first,
            last: state.seq,
            events: (!crowd).then(|| Bytes::from(touched.rows)),
            change: message("change", None, &change),
        })
    }

    /// The engine came, went or did not: nothing else tells.
    fn tell_lease(&self, loops: &Loops) -> Result<(), Refusal> {
        let chronicle = hold(&self.chronicle);
        let last = chronicle.head().seq;
        // Who works on a task, or nobody any more, changes with it.
        let tasks = chronicle.head().open.iter().map(|open| open.task.to_string()).collect();
        let batch = self.batch(loops, &chronicle, last + 1, Touched { tasks, ..Touched::default() })?;
        drop(self.sender.send(Arc::new(batch)));
        Ok(())
    }
}

impl Touched {
    fn note(&mut self, envelope: &Envelope) {
        self.first.get_or_insert(envelope.seq);
        self.count += 1;
        if self.count <= MOST {
            let row = EventRow::of(envelope);
            self.rows.extend_from_slice(&message("event", Some(row.seq), &row));
        }
        self.tasks.extend(task_of(&envelope.event).map(ToString::to_string));
        self.iterations.extend(iteration_of(&envelope.event));
        self.all |= matches!(envelope.event, Event::BacklogRead { .. } | Event::RestoreStarted { .. });
    }
}

/// What holds up tasks that nothing of their own holds up.
fn held_by(state: &Loop) -> (bool, Option<u32>) {
    (state.paused, state.tasks.current_phase())
}

/// Looks whenever something may have changed. Without listeners nothing is done but wait.
fn follow(feed: &Weak<Feed>, watch: &Watch, checkout: &Checkout) {
    let mut loops = None;
    loop {
        watch.wait(Some(LOOK));
        let Some(feed) = feed.upgrade() else { return };
        if feed.sender.receiver_count() == 0 {
            continue;
        }
        if loops.is_none() {
            loops = Loops::of(checkout).ok().flatten();
        }
        let Some(open) = &loops else { continue };
        // The store may be busy or gone; the next look may find it.
        if feed.catch_up(open).is_err() {
            loops = None;
            continue;
        }
        let lives = feed.lives(open);
        if feed.alive.swap(lives, Ordering::SeqCst) != lives {
            drop(feed.tell_lease(open));
        }
    }
}
