//! Notices what changes in the folders of a vault: by the platform's events where it has them, by a slow
//! look where it has none. What is to be made of a change is the keeper's business.

use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;
use std::time::Duration;

use notify::event::{AccessKind, AccessMode, EventKind};
use notify::{Config, RecommendedWatcher, RecursiveMode, Watcher};

use crate::keeper::Signal;

/// How often everything is looked at where nothing tells of changes.
const LOOK_WITHOUT_EVENTS: Duration = Duration::from_secs(2);
/// How often it is looked at nevertheless: a network's file system may have events of its own alone.
const LOOK_ANYWAY: Duration = Duration::from_secs(60);

pub(crate) struct Watch {
    watcher: Option<RecommendedWatcher>,
    folders: Vec<PathBuf>,
    /// Folders that are watched with all that is below them.
    trees: Vec<PathBuf>,
    /// Some folder is not watched.
    blind: bool,
}

impl Watch {
    pub(crate) fn new(folders: Vec<PathBuf>, trees: Vec<PathBuf>, signals: Sender<Signal>) -> Self {
        // Nothing behind a link is ours.
        let config = Config::default().with_follow_symlinks(false);
        let watcher = RecommendedWatcher::new(move |event| tell(event, &signals), config).ok();
        let mut watch = Self { blind: watcher.is_none(), watcher, folders, trees };
        watch.attach();
        watch
    }

    /// Watches every folder, also one that was made anew under its old name.
    pub(crate) fn attach(&mut self) {
        let Some(watcher) = &mut self.watcher else { return };
        self.blind = false;
        let alone = self.folders.iter().map(|folder| (folder, RecursiveMode::NonRecursive));
        let whole = self.trees.iter().map(|folder| (folder, RecursiveMode::Recursive));
        for (folder, mode) in alone.chain(whole) {
            // A watch on a folder that is gone would keep a new one from being watched.
            let _gone = watcher.unwatch(folder);
            self.blind |= watcher.watch(folder, mode).is_err();
        }
    }

    pub(crate) fn is_folder(&self, path: &Path) -> bool {
        self.folders.iter().chain(&self.trees).any(|folder| folder == path)
    }

    /// When to look at everything again.
    pub(crate) fn look_every(&self) -> Duration {
        if self.blind { LOOK_WITHOUT_EVENTS } else { LOOK_ANYWAY }
    }
}

fn tell(event: notify::Result<notify::Event>, signals: &Sender<Signal>) {
    // Whoever does not listen any more needs no signals.
    match event {
        Ok(event) if event.need_rescan() => drop(signals.send(Signal::Look)),
        Ok(event) => {
            let is_change = match event.kind {
                EventKind::Access(AccessKind::Close(AccessMode::Write)) => true,
                EventKind::Access(_) => false,
                EventKind::Any
                | EventKind::Create(_)
                | EventKind::Modify(_)
                | EventKind::Remove(_)
                | EventKind::Other => true,
            };
            if is_change {
                event.paths.into_iter().for_each(|path| drop(signals.send(Signal::Changed(path))));
            }
        }
        Err(_) => drop(signals.send(Signal::Look)),
    }
}
