//! Waiting for a loop to go on, for its engine to end or for our reader to go away, without looking
//! again and again.
//!
//! The database's log is written before its content can be seen by others, so a change of it alone
//! may come too early. The loop's status file is replaced after every step that was recorded; that
//! is the sign to look.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use notify::{Config, EventKind, PollWatcher, RecommendedWatcher, RecursiveMode, Watcher};
use rustix::event::{PollFd, PollFlags, poll};
use wiggum_core::ids::LoopId;

use crate::checkout::Checkout;
use crate::state_dir::StateDir;

/// Where the platform has no events, or no more of them to give.
const FALLBACK_INTERVAL: Duration = Duration::from_millis(50);

/// How often the end of an engine is looked for where the system cannot tell us.
const WITHOUT_PIDFD: Duration = Duration::from_secs(1);

/// A watch over loops.
pub struct Watch {
    sender: SyncSender<Happened>,
    receiver: Receiver<Happened>,
    _watcher: Option<Box<dyn Send>>,
    longest: Option<Duration>,
}

/// Why a wait ended.
#[derive(Debug, PartialEq, Eq)]
pub enum Happened {
    /// Something may have changed: look.
    Changed,
    /// Nobody reads our output any more.
    ReaderGone,
    /// The time is up.
    Nothing,
}

impl Watch {
    /// Watches a loop from now on.
    pub fn new(dir: &StateDir, id: LoopId) -> Self {
        Self::over(&[dir.path().to_owned(), dir.loop_dir(id)])
    }

    /// Watches directories of loops, the first of which must exist.
    pub fn over(places: &[PathBuf]) -> Self {
        Self::on(places, is_news)
    }

    /// As [`Watch::new`], and what its agents print. Directories that come later are news, and have to be
    /// watched by another.
    pub fn with_output(dir: &StateDir, id: LoopId) -> Self {
        let output = dir.transcripts(id);
        let above = output.parent().map(Path::to_owned);
        let places = [dir.path().to_owned(), dir.loop_dir(id)].into_iter().chain(above).chain([output]);
        Self::on(&places.collect::<Vec<_>>(), |path| {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            is_news(path) || name.ends_with(".jsonl.zst") || path.extension().is_none()
        })
    }

    /// Watches a directory in which everything is news.
    pub fn over_any(place: &Path) -> Self {
        Self::on(&[place.to_owned()], |_| true)
    }

    /// Watches a checkout in which no loop ran yet for the first one to begin. What is there later is watched by
    /// another.
    pub fn before_first(checkout: &Checkout) -> Self {
        let marks = checkout.path().join(StateDir::NAME);
        let state = checkout.find().ok().flatten().map(|dir| dir.path().to_owned());
        let places = [checkout.path().to_owned(), marks].into_iter().chain(state);
        Self::on(&places.collect::<Vec<_>>(), |_| true)
    }

    fn on(places: &[PathBuf], is_news: fn(&Path) -> bool) -> Self {
        // Both kinds of news must fit; more changes than one say nothing new.
        let (sender, receiver) = sync_channel(2);
        let tell = sender.clone();
        let changed = move || drop(tell.try_send(Happened::Changed));
        let watcher =
            by_events(places, is_news, changed.clone()).or_else(|| by_looking(places, is_news, changed));
        let longest = watcher.is_none().then_some(FALLBACK_INTERVAL);
        Self { sender, receiver, _watcher: watcher, longest }
    }

    /// Also tells when this process ends; the caller finds out whether it did.
    pub fn tell_end_of(&mut self, pid: u32) {
        let tell = self.sender.clone();
        if !on_exit(pid, move || drop(tell.send(Happened::Changed))) {
            self.longest = Some(self.longest.map_or(WITHOUT_PIDFD, |longest| longest.min(WITHOUT_PIDFD)));
        }
    }

    /// Also tells when whoever reads our standard output went away.
    pub fn tell_end_of_reader(&self) {
        let tell = self.sender.clone();
        std::thread::spawn(move || {
            if wait_for(std::io::stdout().as_fd(), PollFlags::empty()) {
                drop(tell.send(Happened::ReaderGone));
            }
        });
    }

    /// Waits for the next of these, at most so long.
    pub fn wait(&self, limit: Option<Duration>) -> Happened {
        let limits = limit.into_iter().chain(self.longest);
        match limits.min() {
            None => self.receiver.recv().unwrap_or(Happened::Changed),
            Some(shortest) => match self.receiver.recv_timeout(shortest) {
                Ok(happened) => happened,
                Err(RecvTimeoutError::Timeout) if Some(shortest) == limit => Happened::Nothing,
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => Happened::Changed,
            },
        }
    }
}

type Watcherish = Option<Box<dyn Send>>;

fn by_events(
    places: &[PathBuf],
    is_news: fn(&Path) -> bool,
    changed: impl Fn() + Send + 'static,
) -> Watcherish {
    let mut watcher: RecommendedWatcher = notify::recommended_watcher(handler(is_news, changed)).ok()?;
    watch_all(&mut watcher, places)?;
    Some(Box::new(watcher))
}

fn by_looking(
    places: &[PathBuf],
    is_news: fn(&Path) -> bool,
    changed: impl Fn() + Send + 'static,
) -> Watcherish {
    let config = Config::default().with_poll_interval(FALLBACK_INTERVAL);
    let mut watcher = PollWatcher::new(handler(is_news, changed), config).ok()?;
    watch_all(&mut watcher, places)?;
    Some(Box::new(watcher))
}

/// The first place must exist; a loop that has not recorded anything yet has no directory.
fn watch_all(watcher: &mut dyn Watcher, places: &[PathBuf]) -> Option<()> {
    let mut watched = places.iter().map(|place| watcher.watch(place, RecursiveMode::NonRecursive));
    watched.next()?.ok()?;
    watched.for_each(drop);
    Some(())
}

/// Our own reading opens the files, so openings are no news.
fn handler(
    is_news: fn(&Path) -> bool,
    changed: impl Fn() + Send + 'static,
) -> impl Fn(notify::Result<notify::Event>) + Send + 'static {
    move |event| match event {
        Ok(event) if matches!(event.kind, EventKind::Access(_)) => {}
        Ok(event) if !event.paths.iter().any(|path| is_news(path)) => {}
        Ok(_) | Err(_) => changed(),
    }
}

fn is_news(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == "status.json" || name == "wiggum.db-wal")
}

/// Says whether it will be told.
#[cfg(target_os = "linux")]
fn on_exit(pid: u32, tell: impl FnOnce() + Send + 'static) -> bool {
    use rustix::process::{Pid, PidfdFlags, pidfd_open};
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    // A process that cannot be opened is gone, or on another machine, where nobody can watch it.
    let Some(Ok(process)) = pid.map(|pid| pidfd_open(pid, PidfdFlags::empty())) else {
        return false;
    };
    std::thread::spawn(move || {
        if wait_for(process.as_fd(), PollFlags::IN) {
            tell();
        }
    });
    true
}

#[cfg(not(target_os = "linux"))]
fn on_exit(_pid: u32, _tell: impl FnOnce() + Send + 'static) -> bool {
    false
}

/// Waits until the file says something; errors and hang-ups are always among it.
fn wait_for(file: BorrowedFd<'_>, flags: PollFlags) -> bool {
    let mut files = [PollFd::new(&file, flags)];
    loop {
        match poll(&mut files, None) {
            Ok(_) => return true,
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}
