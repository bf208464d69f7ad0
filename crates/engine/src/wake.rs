//! Waking a running engine: whoever posts a request touches the loop's file in `.wiggum/wake/`, and
//! the engine, which watches that directory, looks into the store.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use notify::{Config, PollWatcher, RecommendedWatcher, RecursiveMode, Watcher};
use wiggum_core::ids::LoopId;

use crate::state_dir::StateDir;

/// Where the platform has no events, or no more of them to give.
const FALLBACK_INTERVAL: Duration = Duration::from_millis(50);

pub(crate) type Wake = Arc<dyn Fn() + Send + Sync>;

/// `None` if the directory cannot be watched at all; requests are then seen between iterations.
pub(crate) fn watch(dir: &Path, wake: &Wake) -> Option<Box<dyn Send>> {
    fs::create_dir_all(dir).ok()?;
    by_events(dir, Arc::clone(wake)).or_else(|| by_looking(dir, Arc::clone(wake)))
}

fn by_events(dir: &Path, wake: Wake) -> Option<Box<dyn Send>> {
    let mut watcher: RecommendedWatcher =
        notify::recommended_watcher(move |_: notify::Result<notify::Event>| wake()).ok()?;
    watcher.watch(dir, RecursiveMode::NonRecursive).ok()?;
    Some(Box::new(watcher))
}

fn by_looking(dir: &Path, wake: Wake) -> Option<Box<dyn Send>> {
    let config = Config::default().with_poll_interval(FALLBACK_INTERVAL);
    let mut watcher = PollWatcher::new(move |_: notify::Result<notify::Event>| wake(), config).ok()?;
    watcher.watch(dir, RecursiveMode::NonRecursive).ok()?;
    Some(Box::new(watcher))
}

/// Wakes the engine of a loop, if one runs.
pub fn wake(dir: &StateDir, id: LoopId) -> io::Result<()> {
    fs::create_dir_all(dir.wake_dir())?;
    fs::write(dir.wake_file(id), b"")
}
