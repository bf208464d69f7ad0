//! What an append costs against a bare commit, and what `wiggum status` reads of a long journal.
//!
//! `cargo run --release -p wiggum-store --example append [DIRECTORY [APPENDS [EVENTS]]]`
#![expect(clippy::print_stdout, reason = "its output is its purpose")]

use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use uuid::Uuid;
use wiggum_core::event::{BlobRef, EVENT_VERSION, Envelope, Event, Exit};
use wiggum_core::ids::{Epoch, LoopId, Seq};
use wiggum_core::policy::Millis;
use wiggum_store::{Append, Blob, Holder, Identity, Store};

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let appends: u64 = arguments.next().map_or(Ok(500), |n| n.parse())?;
    let events: u64 = arguments.next().map_or(Ok(100_000), |n| n.parse())?;
    let place = directory.join(format!("wiggum-append-{}", std::process::id()));
    std::fs::create_dir_all(&place)?;
    let outcome = measure(&place, appends, events);
    std::fs::remove_dir_all(&place)?;
    outcome
}

fn measure(place: &Path, appends: u64, events: u64) -> Outcome<()> {
    let mut bare = Bare::open(&place.join("bare.db"))?;
    let mut one = Writer::open(&place.join("one.db"))?;
    let mut full = Writer::open(&place.join("full.db"))?;
    // In turns, so that a busy disk is busy for all of them.
    let mut spent = [Duration::ZERO; 3];
    for _ in 0..appends {
        spent[0] += timed(|| bare.commit())?;
        spent[1] += timed(|| one.append_one())?;
        spent[2] += timed(|| full.append_step())?;
    }
    let names = ["bare one-row commit", "append of 1 event", "append of 3 events, blob, status"];
    for (name, spent_on_it) in names.iter().zip(spent) {
        let each = spent_on_it.as_secs_f64() / appends as f64;
        let ratio = spent_on_it.as_secs_f64() / spent[0].as_secs_f64();
        println!("{name:34} {:8.1} µs  {:8.0}/s  {ratio:.2} x", each * 1e6, 1.0 / each);
    }
    status(&place.join("long.db"), events)
}

/// What `wiggum status` asks of the store, in a journal of so many events.
fn status(path: &Path, events: u64) -> Outcome<()> {
    let mut writer = Writer::open(path)?;
    let filled = timed(|| writer.fill(events))?;
    let loop_id = writer.loop_id;
    println!("{events} events written in {filled:?}, {} bytes", std::fs::metadata(path)?.len());
    for name in ["while it is written", "alone"] {
        let mut pending = 0;
        let asked = timed(|| {
            let store = Store::open_existing(path)?.ok_or("no store")?;
            store.loops()?;
            store.projection(loop_id)?.ok_or("no projection")?;
            assert_eq!(store.last_seq(loop_id)?, writer.seq);
            pending = store.pending(loop_id)?.len();
            Ok(())
        })?;
        println!("status {name}: {asked:?} ({pending} pending)");
        writer = Writer { store: Store::open(&path.with_extension("other"))?, ..writer };
    }
    let store = Store::open(path)?;
    let mut seen = 0;
    let read = timed(|| Ok(store.for_each(loop_id, 0, |_| seen += 1)?))?;
    println!("{seen} events read and decoded in {read:?}");
    Ok(())
}

fn timed(work: impl FnOnce() -> Outcome<()>) -> Outcome<Duration> {
    let start = Instant::now();
    work()?;
    Ok(start.elapsed())
}

/// The floor: the least SQLite can do durably.
struct Bare(rusqlite::Connection);

impl Bare {
    fn open(path: &Path) -> Outcome<Self> {
        let connection = rusqlite::Connection::open(path)?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.execute_batch("CREATE TABLE rows (id INTEGER PRIMARY KEY, text TEXT)")?;
        Ok(Self(connection))
    }

    fn commit(&mut self) -> Outcome<()> {
        self.0.prepare_cached("INSERT INTO rows (text) VALUES ('one row')")?.execute([])?;
        Ok(())
    }
}

struct Writer {
    store: Store,
    loop_id: LoopId,
    epoch: Epoch,
    seq: Seq,
}

impl Writer {
    fn open(path: &Path) -> Outcome<Self> {
        let mut store = Store::open(path)?;
        let identity = Identity { repository: "/r".into(), backlog: "b".into(), name: "main".into() };
        let loop_id = store.create_loop(&identity, LoopId(Uuid::now_v7()), Timestamp::UNIX_EPOCH)?.id;
        let holder = Holder { pid: 1, started: String::new(), boot: String::new(), host: String::new() };
        let epoch = store.acquire(loop_id, &holder, &|_| false, Timestamp::UNIX_EPOCH)?;
        Ok(Self { store, loop_id, epoch, seq: 0 })
    }

    fn append_one(&mut self) -> Outcome<()> {
        let event = Event::Noticed { task: Some("US-1".into()), message: "something small".into() };
        self.append(&[event], &[], None)
    }

    /// About what the end of an iteration records.
    fn append_step(&mut self) -> Outcome<()> {
        let text = format!("output of step {} ", self.seq).repeat(100);
        let sha256 = sha256(&text);
        let message =
            BlobRef { sha256: sha256.clone(), bytes: text.len() as u64, excerpt: text[..400].to_owned() };
        let (iteration, attempt) = (1, 1);
        let events = [
            Event::AgentEnded {
                iteration,
                attempt,
                exit: Exit::Code { code: 0 },
                message,
                duration: Millis(1234),
                usage: None,
                facts: Box::default(),
                claim: None,
                questions: Vec::new(),
                error: None,
                flags: Vec::new(),
                notes: Box::default(),
                ended_processes: 0,
            },
            Event::Interrupted { iteration, attempt, reason: "none".into(), ended_processes: 0, kept: None },
            Event::TaskSkipped { task: "US-1".into(), by: "me".into() },
        ];
        let status = format!("{{\"tasks\":\"{}\"}}", "x".repeat(1000));
        self.append(&events, &[Blob { sha256: &sha256, text: &text }], Some(&status))
    }

    fn fill(&mut self, events: u64) -> Outcome<()> {
        let event = Event::Noticed { task: Some("US-1".into()), message: "m".repeat(200) };
        let batch = vec![event; 1000];
        while self.seq < events {
            let room = usize::try_from(events - self.seq)?.min(batch.len());
            self.append(&batch[..room], &[], Some("{}"))?;
        }
        Ok(())
    }

    fn append(&mut self, events: &[Event], blobs: &[Blob<'_>], projection: Option<&str>) -> Outcome<()> {
        let epoch = self.epoch;
        let at = Timestamp::UNIX_EPOCH;
        let envelopes: Vec<Envelope> = (self.seq + 1..)
            .zip(events)
            .map(|(seq, event)| Envelope {
                v: EVENT_VERSION,
                seq,
                id: Uuid::now_v7(),
                at,
                epoch,
                event: event.clone(),
            })
            .collect();
        self.store.append(&Append {
            loop_id: self.loop_id,
            expected_seq: self.seq,
            epoch,
            envelopes: &envelopes,
            blobs,
            handled: &[],
            projection,
        })?;
        self.seq += envelopes.len() as Seq;
        Ok(())
    }
}

fn sha256(text: &str) -> String {
    use sha2::{Digest, Sha256};
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}
