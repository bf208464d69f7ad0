//! What it takes to make the end of an iteration durable: its last events and its checkpoint in one
//! commit, against a bare commit to SQLite that waits for the disk as ours do.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use jiff::Timestamp;
use rusqlite::Connection;
use uuid::Uuid;
use wiggum_core::checkpoint;
use wiggum_core::event::{BlobRef, Envelope, Event};
use wiggum_core::ids::{Epoch, LoopId};
use wiggum_core::state::Loop;
use wiggum_store::{Append, Blob, Holder, Identity, Store};

use crate::journal::{Writer, attempts};
use crate::place::{BACKLOG, Place};
use crate::table::Table;
use crate::{Outcome, median};

const ROUNDS: usize = 10;
/// Commits of each in a round, in turns: the bare one, then ours.
const BLOCK: usize = 50;

pub(crate) fn measure(table: &mut Table) -> Outcome<()> {
    let place = Place::new()?;
    let mut floor = Floor::new(&place.root())?;
    let mut ours = Ours::new(&place.root(), 2 * ROUNDS * BLOCK)?;
    let (mut bare, mut made, mut ratios) = (vec![], vec![], vec![]);
    for _ in 0..ROUNDS {
        let floors = median(times(|| floor.commit())?);
        let own = median(times(|| ours.iteration())?);
        bare.push(floors);
        made.push(own);
        ratios.push(own / floors);
    }
    table.limited("checkpoint and journal of an iteration, against a bare commit", median(ratios), "×", 2.0);
    table.told("… the bare commit", median(bare), "ms");
    table.told("… checkpoint and journal", median(made), "ms");
    let slowest = under_load(&place.root(), || {
        let mut all: Vec<f64> = Vec::new();
        for _ in 0..ROUNDS {
            all.extend(times(|| ours.iteration())?);
        }
        all.sort_by(f64::total_cmp);
        Ok(all[all.len() * 99 / 100])
    })?;
    table.limited("… the slowest of a hundred, under load", slowest, "ms", 100.0);
    Ok(())
}

fn times(mut work: impl FnMut() -> Outcome<()>) -> Outcome<Vec<f64>> {
    let timed = |_| {
        let start = Instant::now();
        work()?;
        Ok(start.elapsed().as_secs_f64() * 1e3)
    };
    (0..BLOCK).map(timed).collect()
}

/// While others keep every processor busy and one of them the disk.
fn under_load<T>(root: &Path, work: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
    let over = AtomicBool::new(false);
    let spin = || {
        while !over.load(Ordering::Relaxed) {
            std::hint::spin_loop();
        }
    };
    let write = || -> std::io::Result<()> {
        let mut file = File::create(root.join("load"))?;
        while !over.load(Ordering::Relaxed) {
            file.write_all(&[0; 64 * 1024])?;
            file.sync_data()?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(spin);
        }
        let writer = scope.spawn(write);
        let outcome = work();
        over.store(true, Ordering::Relaxed);
        writer.join().map_err(|_| "the load gave up")??;
        outcome
    })
}

struct Floor {
    journal: Connection,
}

impl Floor {
    fn new(root: &Path) -> Outcome<Self> {
        let journal = Connection::open(root.join("bare.db"))?;
        journal.pragma_update(None, "journal_mode", "WAL")?;
        journal.pragma_update(None, "synchronous", "FULL")?;
        journal.execute_batch("CREATE TABLE events (seq INTEGER PRIMARY KEY, payload TEXT)")?;
        Ok(Self { journal })
    }

    fn commit(&mut self) -> Outcome<()> {
        let payload = "x".repeat(500);
        self.journal.prepare_cached("INSERT INTO events (payload) VALUES (?1)")?.execute([payload])?;
        Ok(())
    }
}

/// A loop as an engine keeps it.
struct Ours {
    store: Store,
    loop_id: LoopId,
    epoch: Epoch,
    writer: Writer,
    state: Loop,
    /// The second attempt at the task at hand.
    next: Option<Vec<Event>>,
    tasks: usize,
}

impl Ours {
    fn new(root: &Path, iterations: usize) -> Outcome<Self> {
        let database: PathBuf = root.with_file_name("state").join("wiggum.db");
        fs::create_dir_all(root.with_file_name("state"))?;
        let mut store = Store::open(&database)?;
        let repository = root.display().to_string();
        let identity =
            Identity { repository: repository.clone(), backlog: BACKLOG.to_owned(), name: "main".to_owned() };
        let loop_id = store.create_loop(&identity, LoopId(Uuid::now_v7()), Timestamp::UNIX_EPOCH)?.id;
        let holder = Holder { pid: 1, started: String::new(), boot: String::new(), host: String::new() };
        let epoch = store.acquire(loop_id, &holder, &|_| false, Timestamp::UNIX_EPOCH)?;
        let mut writer = Writer::new();
        let mut opening = writer.opening(loop_id, &repository, iterations);
        let (state, next, tasks) = (Loop::default(), None, 0);
        let mut ours = Self { store, loop_id, epoch, writer, state, next, tasks };
        ours.fold(&mut opening);
        ours.store(0, &opening, &[])?;
        Ok(ours)
    }

    /// All events of one attempt and its checkpoint, durable.
    fn iteration(&mut self) -> Outcome<()> {
        let events = match self.next.take() {
            Some(events) => events,
            None => {
                let [first, second] = attempts(self.tasks);
                self.tasks += 1;
                self.next = Some(second);
                first
            }
        };
        let mut batch: Vec<Envelope> = events.into_iter().map(|event| self.writer.envelope(event)).collect();
        // What is in the checkpoint is folded first, as the engine does.
        let expected_seq = self.state.seq;
        self.fold(&mut batch);
        let id = Uuid::now_v7();
        let made = checkpoint::build(&self.state, id, Timestamp::UNIX_EPOCH);
        let text = made.text();
        let sha256 = wiggum_engine::checkpoints::hash(&text);
        let last = self.writer.envelope(Event::Checkpointed {
            iteration: made.iteration,
            task: made.task,
            id,
            checkpoint: BlobRef { sha256: sha256.clone(), bytes: text.len() as u64, excerpt: String::new() },
            previous: made.previous,
            by: String::new(),
        });
        batch.push(last);
        if let Some(last) = batch.last_mut() {
            self.fold(std::slice::from_mut(last));
        }
        self.store(expected_seq, &batch, &[Blob { sha256: &sha256, text: &text }])
    }

    fn fold(&mut self, batch: &mut [Envelope]) {
        for envelope in batch {
            envelope.id = Uuid::now_v7();
            envelope.epoch = self.epoch;
            self.state.apply(envelope);
        }
    }

    fn store(&mut self, expected_seq: u64, envelopes: &[Envelope], blobs: &[Blob<'_>]) -> Outcome<()> {
        let projection = wiggum_engine::status::projection(&self.state, Timestamp::UNIX_EPOCH);
        Ok(self.store.append(&Append {
            loop_id: self.loop_id,
            expected_seq,
            epoch: self.epoch,
            envelopes,
            blobs,
            handled: &[],
            projection: Some(&projection),
        })?)
    }
}
