//! The terminal interface: how long a frame takes with very many tasks, and how long it takes to open a very
//! long journal.

use std::path::PathBuf;
use std::time::Instant;

use jiff::Timestamp;
use uuid::Uuid;
use wiggum_core::event::{BlobRef, EVENT_VERSION, Envelope, Event};
use wiggum_core::ids::LoopId;
use wiggum_core::policy::Policy;
use wiggum_core::task::Task;
use wiggum_store::{Identity, LoopRecord};
use wiggum_tui::Mirror;

use crate::table::Table;
use crate::{Outcome, median};

const TASKS: usize = 10_000;
const FRAMES: usize = 100;
const EVENTS: usize = 1_000_000;
/// As many as are handed over at once.
const BATCH: usize = 2000;

/// A key, what it changed, and the frame after it, in every view.
pub(crate) fn measure(table: &mut Table) -> Outcome<()> {
    let mut mirror = mirror()?;
    mirror.events(beginning()?);
    let mut views = Vec::new();
    for (view, name) in [("1", "tasks"), ("2", "graph"), ("5", "timeline"), ("6", "figures")] {
        mirror.press(view);
        mirror.draw(300, 80);
        let frames = (0..FRAMES).map(|number| {
            let start = Instant::now();
            mirror.press(if number % 7 == 6 { "G" } else { "PageDown" });
            mirror.draw(300, 80);
            start.elapsed().as_secs_f64() * 1e3
        });
        views.push((name, median(frames.collect())));
    }
    let slowest = views.iter().map(|(_, taken)| *taken).fold(0.0, f64::max);
    table.limited("a frame of 300×80 with 10 000 tasks, the slowest view", slowest, "ms", 8.0);
    for (name, taken) in views {
        table.told(format!("… {name}"), taken, "ms");
    }
    events(table)
}

/// What a long journal costs whoever looks at it: all of it once, and each of its events when it comes.
fn events(table: &mut Table) -> Outcome<()> {
    let mut mirror = mirror()?;
    mirror.events(beginning()?);
    let (start, mut slowest) = (Instant::now(), 0.0_f64);
    let mut seq = 4;
    while seq < EVENTS {
        let batch = (seq..seq + BATCH).map(noticed).collect::<Outcome<Vec<_>>>()?;
        seq += BATCH;
        let start = Instant::now();
        mirror.events(batch);
        mirror.draw(300, 80);
        slowest = slowest.max(start.elapsed().as_secs_f64() * 1e3);
    }
    table.told(
        "a million events taken in and shown, in batches of 2 000",
        start.elapsed().as_secs_f64(),
        "s",
    );
    table.told("… the slowest batch with its frame", slowest, "ms");
    Ok(())
}

fn mirror() -> Outcome<Mirror> {
    let text = |text: &str| text.to_owned();
    let identity = Identity { repository: text("/r"), backlog: text("PRD.json"), name: text("main") };
    let record = LoopRecord { id: LoopId(Uuid::nil()), identity, created_at: at(0)? };
    Ok(Mirror::new(PathBuf::from("/r"), record, at(100)?, true))
}

fn beginning() -> Outcome<Vec<Envelope>> {
    let text = |text: &str| text.to_owned();
    let task = |number: usize| {
        let mut task = Task::new(format!("T{number}").as_str(), format!("A thing to do, number {number}"));
        task.depends_on =
            (number > 0).then(|| format!("T{}", number / 2).as_str().into()).into_iter().collect();
        task
    };
    let events = [
        Event::LoopCreated {
            loop_id: LoopId(Uuid::nil()),
            name: text("main"),
            repository: text("/r"),
            backlog: text("PRD.json"),
        },
        Event::RunStarted {
            run: 1,
            policy: Box::new(Policy::default()),
            agent: text("agent"),
            version: text("0"),
            git: true,
            sandbox: String::new(),
            tree: String::new(),
        },
        Event::BacklogRead {
            revision: String::new(),
            added: (0..TASKS).map(task).collect(),
            changed: Vec::new(),
            removed: Vec::new(),
            order: None,
        },
        Event::IterationStarted {
            iteration: 1,
            task: "T0".into(),
            attempt: 1,
            base: None,
            branch: None,
            carried: None,
            command: text("agent"),
            agent: text("agent"),
            session: None,
            workspace: text("/r"),
            prompt: BlobRef::default(),
            accepted: false,
        },
    ];
    events.into_iter().enumerate().map(|(number, event)| envelope(number + 1, event)).collect()
}

fn noticed(seq: usize) -> Outcome<Envelope> {
    envelope(seq + 1, Event::Noticed { task: None, message: format!("something happened: {seq}") })
}

fn envelope(seq: usize, event: Event) -> Outcome<Envelope> {
    Ok(Envelope { v: EVENT_VERSION, seq: seq as u64, id: Uuid::nil(), at: at(1)?, epoch: 1, event })
}

fn at(second: i64) -> Outcome<Timestamp> {
    Ok(Timestamp::from_second(1_794_700_800 + second)?)
}
