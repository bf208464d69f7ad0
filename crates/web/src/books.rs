//! What the server keeps open between requests: connections to the store, and what was read of each loop.

use std::collections::{HashMap, VecDeque};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use wiggum_core::ids::LoopId;
use wiggum_engine::desk::transcripts::{self, Entry};
use wiggum_engine::desk::{DeskError, Loops};
use wiggum_engine::state_dir::StateDir;
use wiggum_store::LoopRecord;

use crate::Site;
use crate::feed::Feed;
use crate::refusal::Refusal;

/// Connections that are kept for the next requests.
const KEPT: usize = 4;
/// Transcripts that are kept as they were read: the one that is looked at, and the one before.
const READ: usize = 2;

pub(crate) struct Books {
    pub(crate) site: Site,
    idle: Mutex<Idle>,
    feeds: Mutex<HashMap<LoopId, Arc<Feed>>>,
    read: Mutex<VecDeque<(Version, Arc<Vec<Entry>>)>>,
}

/// Connections nobody uses, and the file they are to.
#[derive(Default)]
struct Idle {
    file: Option<(u64, u64)>,
    loops: Vec<Loops>,
}

/// A file as it was when it was read.
type Version = (PathBuf, u64, Option<SystemTime>);

impl Books {
    pub(crate) fn new(site: Site) -> Self {
        Self { site, idle: Mutex::default(), feeds: Mutex::default(), read: Mutex::default() }
    }

    /// Does something with the store, or `none` where there is no loop yet.
    pub(crate) fn if_any<T>(
        &self,
        none: T,
        work: impl FnOnce(&mut Loops) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        let file = fs::metadata(StateDir::of(&self.site.workspace).database()).ok();
        let file = file.map(|data| (data.dev(), data.ino()));
        let kept = {
            let mut idle = hold(&self.idle);
            // Somebody may have thrown the store away and begun another.
            if idle.file != file {
                *idle = Idle { file, loops: Vec::new() };
                hold(&self.feeds).clear();
            }
            idle.loops.pop()
        };
        let Some(mut loops) =
            kept.map_or_else(|| Loops::of(&self.site.workspace), |loops| Ok(Some(loops)))?
        else {
            return Ok(none);
        };
        let done = work(&mut loops);
        let mut idle = hold(&self.idle);
        if idle.file == file && idle.loops.len() < KEPT {
            idle.loops.push(loops);
        }
        done
    }

    /// Does something with the store.
    pub(crate) fn with<T>(&self, work: impl FnOnce(&mut Loops) -> Result<T, Refusal>) -> Result<T, Refusal> {
        self.if_any(Err(DeskError::NoLoops.into()), |loops| work(loops).map(Ok))?
    }

    /// Does something with a loop that was named.
    pub(crate) fn of<T>(
        &self,
        which: &str,
        work: impl FnOnce(&mut Loops, &LoopRecord) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        self.with(|loops| {
            let record = loops.select(Some(which))?;
            work(loops, &record)
        })
    }

    /// What is known of a loop, up to now.
    pub(crate) fn feed(&self, loops: &Loops, record: &LoopRecord) -> Result<Arc<Feed>, Refusal> {
        let feed = {
            let mut feeds = hold(&self.feeds);
            Arc::clone(feeds.entry(record.id).or_insert_with(|| Arc::new(Feed::new(record.clone()))))
        };
        feed.catch_up(loops)?;
        Ok(feed)
    }

    /// The entries of a transcript, read again only if it has grown.
    pub(crate) fn transcript(
        &self,
        path: &Path,
        agent: &str,
        command: &str,
    ) -> Result<Arc<Vec<Entry>>, Refusal> {
        let data = fs::metadata(path).ok();
        let version = (
            path.to_owned(),
            data.as_ref().map_or(0, fs::Metadata::len),
            data.as_ref().and_then(|data| data.modified().ok()),
        );
        if let Some((_, entries)) = hold(&self.read).iter().find(|(known, _)| *known == version) {
            return Ok(Arc::clone(entries));
        }
        let entries = transcripts::read(path, agent, command)
            .map_err(|error| Refusal::not_found(wiggum_engine::error::chain(&error)))?;
        let entries = Arc::new(entries);
        let mut read = hold(&self.read);
        read.retain(|((known, ..), _)| known != path);
        read.push_front((version, Arc::clone(&entries)));
        read.truncate(READ);
        Ok(entries)
    }
}

/// Whoever panicked with it has left nothing half done that matters.
pub(crate) fn hold<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
