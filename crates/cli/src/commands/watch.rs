//! Waiting for a store to change, for an engine to end or for our reader to go away, without
//! looking again and again.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use notify::{Config, EventKind, PollWatcher, RecommendedWatcher, RecursiveMode, Watcher};
use rustix::event::{PollFd, PollFlags, poll};
use wiggum_engine::state_dir::StateDir;
use wiggum_store::Holder;

/// Where the platform has no events, or no more of them to give.
const FALLBACK_INTERVAL: Duration = Duration::from_millis(50);

/// How often the end of an engine is looked for where the system cannot tell us.
const WITHOUT_PIDFD: Duration = Duration::from_secs(1);

pub(crate) struct Watch {
    sender: SyncSender<Happened>,
    receiver: Receiver<Happened>,
    _watcher: Option<Box<dyn Send>>,
    longest: Option<Duration>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Happened {
    /// Something may have changed: look.
    Changed,
    /// Nobody reads our output any more.
    ReaderGone,
    /// The time is up.
    Nothing,
}

impl Watch {
    /// Watches the store of this directory from now on.
    pub(crate) fn new(dir: &StateDir) -> Self {
        // Both kinds of news must fit; more changes than one say nothing new.
        let (sender, receiver) = sync_channel(2);
        let tell = sender.clone();
        let changed = move || drop(tell.try_send(Happened::Changed));
        let watcher = by_events(dir.path(), changed.clone()).or_else(|| by_looking(dir.path(), changed));
        let longest = watcher.is_none().then_some(FALLBACK_INTERVAL);
        Self { sender, receiver, _watcher: watcher, longest }
    }

    /// Also tells when this process ends; the caller finds out whether it did.
    pub(crate) fn tell_end_of(&mut self, holder: &Holder) {
        let tell = self.sender.clone();
        if !on_exit(holder.pid, move || drop(tell.send(Happened::Changed))) {
            self.longest = Some(self.longest.map_or(WITHOUT_PIDFD, |longest| longest.min(WITHOUT_PIDFD)));
        }
    }

    /// Also tells when whoever reads our standard output went away.
    pub(crate) fn tell_end_of_reader(&self) {
        let tell = self.sender.clone();
        std::thread::spawn(move || {
            if wait_for(std::io::stdout().as_fd(), PollFlags::empty()) {
                drop(tell.send(Happened::ReaderGone));
            }
        });
    }

    pub(crate) fn wait(&self, limit: Option<Duration>) -> Happened {
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

fn by_events(dir: &Path, changed: impl Fn() + Send + 'static) -> Watcherish {
    let mut watcher: RecommendedWatcher = notify::recommended_watcher(handler(changed)).ok()?;
    watcher.watch(dir, RecursiveMode::NonRecursive).ok()?;
    Some(Box::new(watcher))
}

fn by_looking(dir: &Path, changed: impl Fn() + Send + 'static) -> Watcherish {
    let config = Config::default().with_poll_interval(FALLBACK_INTERVAL);
    let mut watcher = PollWatcher::new(handler(changed), config).ok()?;
    watcher.watch(dir, RecursiveMode::NonRecursive).ok()?;
    Some(Box::new(watcher))
}

/// Our own reading opens the files, so openings are no news.
fn handler(changed: impl Fn() + Send + 'static) -> impl Fn(notify::Result<notify::Event>) + Send + 'static {
    move |event| match event {
        Ok(event) if matches!(event.kind, EventKind::Access(_)) => {}
        Ok(event) if !event.paths.iter().any(|path| is_store(path)) => {}
        Ok(_) | Err(_) => changed(),
    }
}

fn is_store(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("wiggum.db"))
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
