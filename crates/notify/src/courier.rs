//! Tells everybody, beside whatever else this process does: a thread for each receiver, so that one that is slow
//! holds up neither the others nor a loop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::thread;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use wiggum_engine::desk::watch::Watch;
use wiggum_engine::error::chain;
use wiggum_engine::state_dir::StateDir;

use crate::route::{Hurry, Route, Standing};
use crate::target::Target;

/// How long the end of a run may wait for its last messages; what is left goes out the next time.
const FLUSH: Duration = Duration::from_secs(3);
/// A change may be missed by whoever watches files; then it is seen so much later.
const REFRESH: Duration = Duration::from_secs(2);
/// After the store could not be read.
const TROUBLE: SignedDuration = SignedDuration::from_secs(5);

/// Those who tell. Dropped, it waits a moment for what is still to be said.
pub struct Courier {
    workers: Vec<Worker>,
    ended: Arc<AtomicBool>,
}

struct Worker {
    news: SyncSender<News>,
    /// Hears nothing but the thread's end.
    done: Receiver<()>,
}

#[derive(Clone, Copy, Debug)]
enum News {
    Changed,
    /// No more is coming; nothing that has to wait longer than this is waited for.
    End(Timestamp),
}

impl Courier {
    /// Tells these of the loops of a workspace from now on, and of what they have not been told yet.
    pub fn start(dir: &StateDir, targets: Vec<Target>) -> Self {
        let now = Timestamp::now();
        let mut workers = Vec::new();
        for target in targets {
            let (news, hears) = sync_channel(2);
            let (ends, done) = channel();
            let route = Route::new(target, dir, now);
            if thread::Builder::new()
                .name("notify".to_owned())
                .spawn(move || work(route, &hears, ends))
                .is_ok()
            {
                workers.push(Worker { news, done });
            }
        }
        let ended = Arc::new(AtomicBool::new(false));
        if !workers.is_empty() {
            let all: Vec<_> = workers.iter().map(|worker| worker.news.clone()).collect();
            let (dir, ended) = (dir.clone(), Arc::clone(&ended));
            thread::spawn(move || watch(&dir, &all, &ended));
        }
        Self { workers, ended }
    }

    fn finish(&self) {
        self.ended.store(true, Ordering::Relaxed);
        let deadline = Timestamp::now() + FLUSH;
        for worker in &self.workers {
            // One whose ears are full is busy, and hears of it when there is room.
            let (news, end) = (worker.news.clone(), News::End(deadline));
            thread::spawn(move || news.send(end).is_ok());
        }
        for worker in &self.workers {
            let left = deadline.duration_since(Timestamp::now());
            let left = Duration::try_from(left).unwrap_or(Duration::ZERO);
            let _ended = worker.done.recv_timeout(left);
        }
    }
}

impl Drop for Courier {
    fn drop(&mut self) {
        self.finish();
    }
}

/// Keeps telling one receiver. Whoever holds the other end of `ends` learns that it is over.
fn work(mut route: Route, hears: &Receiver<News>, ends: Sender<()>) {
    let mut deadline: Option<Timestamp> = None;
    // Whatever stood in the way when this program last ran may have been put right since.
    let mut hurry = Hurry::Yes;
    loop {
        let standing = route.pass(hurry).unwrap_or_else(|_| Standing::Waits(Timestamp::now() + TROUBLE));
        hurry = Hurry::No;
        if let Some(deadline) = deadline {
            match standing {
                Standing::Waits(at) if at < deadline => {}
                Standing::Elsewhere | Standing::Told | Standing::Waits(_) => break,
            }
        }
        let wait = match standing {
            Standing::Waits(at) => {
                Duration::try_from(at.duration_since(Timestamp::now())).unwrap_or_default()
            }
            Standing::Elsewhere | Standing::Told => REFRESH,
        };
        match hears.recv_timeout(wait) {
            Ok(News::End(at)) => deadline = Some(at),
            Ok(News::Changed) | Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    drop(ends);
}

/// Passes on that something was recorded.
fn watch(dir: &StateDir, workers: &[SyncSender<News>], ended: &AtomicBool) {
    while !ended.load(Ordering::Relaxed) {
        let places = places(dir);
        let watch = Watch::over(&places);
        // Told after the watch stands, so that nothing falls between two of them.
        poke(workers);
        while !ended.load(Ordering::Relaxed) && self::places(dir) == places {
            watch.wait(Some(REFRESH));
            poke(workers);
        }
    }
}

fn poke(workers: &[SyncSender<News>]) {
    for worker in workers {
        // One that has news waiting will look at everything.
        let _heard = worker.try_send(News::Changed);
    }
}

/// Where news of loops shows; there is a directory for each loop.
fn places(dir: &StateDir) -> Vec<std::path::PathBuf> {
    // Without it nothing can be watched; whoever has something to be told of is about to make it.
    drop(dir.create());
    let loops = std::fs::read_dir(dir.path().join("loops")).into_iter().flatten().flatten();
    let mut places = vec![dir.path().to_owned()];
    places.extend(loops.map(|entry| entry.path()));
    places[1..].sort();
    places
}

/// What came of sending everything at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Sent {
    pub name: String,
    pub sent: u64,
    pub given_up: u64,
    /// Something is still to be sent.
    pub left: bool,
    /// Another process sends to it.
    pub elsewhere: bool,
    pub problem: Option<String>,
}

/// Tries everything that is left once, without regard to pauses.
pub fn deliver(dir: &StateDir, targets: Vec<Target>) -> Vec<Sent> {
    let now = Timestamp::now();
    let one = |target: Target| {
        let name = target.name.clone();
        let mut route = Route::new(target, dir, now);
        let passed = route.pass(Hurry::Yes);
        let (left, elsewhere, problem) = match passed {
            Ok(standing) => (matches!(standing, Standing::Waits(_)), standing == Standing::Elsewhere, None),
            Err(error) => (true, false, Some(chain(&error))),
        };
        Sent { name, sent: route.sent, given_up: route.given_up, left, elsewhere, problem }
    };
    thread::scope(|scope| {
        let running: Vec<_> = targets.into_iter().map(|target| scope.spawn(|| one(target))).collect();
        running.into_iter().filter_map(|thread| thread.join().ok()).collect()
    })
}
