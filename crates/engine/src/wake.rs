//! Waking a running engine: whoever posts a request touches the loop's file in the store's `wake` directory, and
//! the engine, which watches that directory, looks into the store.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use notify::event::{AccessKind, AccessMode};
use notify::{Config, Event, EventKind, PollWatcher, RecommendedWatcher, RecursiveMode, Watcher};
use wiggum_core::ids::LoopId;

use crate::state_dir::StateDir;

/// Where the platform has no events, or no more of them to give.
const FALLBACK_INTERVAL: Duration = Duration::from_millis(50);

pub(crate) type Wake = Arc<dyn Fn() + Send + Sync>;

/// `None` if the directories cannot be watched at all; requests are then seen between iterations.
pub(crate) fn watch(places: &[PathBuf], wake: &Wake) -> Option<Box<dyn Send>> {
    places.iter().try_for_each(fs::create_dir_all).ok()?;
    by_events(places, Arc::clone(wake)).or_else(|| by_looking(places, Arc::clone(wake)))
}

fn by_events(places: &[PathBuf], wake: Wake) -> Option<Box<dyn Send>> {
    let hear = move |event: notify::Result<Event>| {
        if event.is_ok_and(|event| is_look(&event.kind)) {
            return;
        }
        wake();
    };
    let mut watcher: RecommendedWatcher = notify::recommended_watcher(hear).ok()?;
    places.iter().try_for_each(|place| watcher.watch(place, RecursiveMode::NonRecursive)).ok()?;
    Some(Box::new(watcher))
}

/// Somebody read something. Whoever is woken does, and would wake himself for ever.
fn is_look(kind: &EventKind) -> bool {
    match kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => false,
        EventKind::Access(_) => true,
        EventKind::Any
        | EventKind::Create(_)
        | EventKind::Modify(_)
        | EventKind::Remove(_)
        | EventKind::Other => false,
    }
}

fn by_looking(places: &[PathBuf], wake: Wake) -> Option<Box<dyn Send>> {
    let config = Config::default().with_poll_interval(FALLBACK_INTERVAL);
    let mut watcher = PollWatcher::new(move |_: notify::Result<notify::Event>| wake(), config).ok()?;
    places.iter().try_for_each(|place| watcher.watch(place, RecursiveMode::NonRecursive)).ok()?;
    Some(Box::new(watcher))
}

/// Wakes the engine of a loop, if one runs.
pub fn wake(dir: &StateDir, id: LoopId) -> io::Result<()> {
    fs::create_dir_all(dir.wake_dir())?;
    fs::write(dir.wake_file(id), b"")
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn a_change_wakes_and_a_look_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let (sender, wakes) = mpsc::channel();
        let wake: Wake = Arc::new(move || sender.send(()).unwrap_or_default());
        let _watcher = watch(&[dir.path().to_owned()], &wake).unwrap();
        for _ in 0..100 {
            assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        }
        fs::write(dir.path().join("request"), b"").unwrap();
        wakes.recv_timeout(Duration::from_secs(10)).expect("a change wakes");
        // What happened before the change would have been heard before it.
        assert!(wakes.try_iter().count() < 10, "a look wakes too");
    }
}
