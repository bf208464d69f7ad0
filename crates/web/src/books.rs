//! What the server keeps open between requests: connections to stores, and what was read of each loop.

use std::collections::{HashMap, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use wiggum_core::ids::LoopId;
use wiggum_engine::checkout::Checkout;
use wiggum_engine::desk::machine::{self, Registered};
use wiggum_engine::desk::transcripts::{self, Entry};
use wiggum_engine::desk::{DeskError, Loops};
use wiggum_engine::state_dir::FileId;
use wiggum_store::LoopRecord;

use crate::Site;
use crate::api::loops::Elsewhere;
use crate::feed::Feed;
use crate::refusal::Refusal;

/// Connections that are kept for the next requests to our own store, and other stores to which one is.
const KEPT: usize = 4;
const KEPT_ELSEWHERE: usize = 32;
/// How many letters an id has.
const WHOLE_ID: usize = 36;
/// How old what is known of other workspaces may be.
const FRESH: Duration = Duration::from_millis(500);
/// Transcripts that are kept as they were read: the one that is looked at, and the one before.
const READ: usize = 2;

pub(crate) struct Books {
    pub(crate) site: Site,
    places: Mutex<HashMap<Checkout, Place>>,
    read: Mutex<VecDeque<(Version, Arc<Vec<Entry>>)>>,
    registered: Recent<Vec<Registered>>,
    elsewhere: Recent<Vec<Elsewhere>>,
}

/// Something that many ask for at once, and that may be a moment old.
struct Recent<T>(Mutex<Option<(Instant, Arc<T>)>>);

impl<T> Default for Recent<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> Recent<T> {
    /// As it is known, or found out by one while the others wait.
    fn get(&self, find: impl FnOnce() -> Result<T, Refusal>) -> Result<Arc<T>, Refusal> {
        let mut known = hold(&self.0);
        if let Some((at, known)) = known.as_ref()
            && at.elapsed() < FRESH
        {
            return Ok(Arc::clone(known));
        }
        let found = Arc::new(find()?);
        *known = Some((Instant::now(), Arc::clone(&found)));
        Ok(found)
    }
}

/// What is kept of one workspace: connections nobody uses, the file they are to, and what was read of its
/// loops.
#[derive(Default)]
struct Place {
    file: Option<FileId>,
    idle: Vec<Loops>,
    feeds: HashMap<LoopId, Arc<Feed>>,
}

/// A file as it was when it was read.
type Version = (PathBuf, u64, Option<SystemTime>);

impl Books {
    pub(crate) fn new(site: Site) -> Self {
        Self {
            site,
            places: Mutex::default(),
            read: Mutex::default(),
            registered: Recent::default(),
            elsewhere: Recent::default(),
        }
    }

    /// Does something with the store of our own workspace, or `none` where there is no loop yet.
    pub(crate) fn if_any<T>(
        &self,
        none: T,
        work: impl FnOnce(&mut Loops) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        Ok(self.at(&self.site.checkout, work)?.unwrap_or(none))
    }

    /// Does something with the store of a workspace, if it has one.
    pub(crate) fn at<T>(
        &self,
        checkout: &Checkout,
        work: impl FnOnce(&mut Loops) -> Result<T, Refusal>,
    ) -> Result<Option<T>, Refusal> {
        let file = checkout.find().map_err(DeskError::from)?.and_then(|dir| dir.database_id());
        let kept = {
            let mut places = hold(&self.places);
            let place = places.entry(checkout.clone()).or_default();
            // Somebody may have thrown the store away and begun another.
            if place.file != file {
                *place = Place { file, ..Place::default() };
            }
            place.idle.pop()
        };
        let Some(mut loops) = kept.map_or_else(|| Loops::of(checkout), |loops| Ok(Some(loops)))? else {
            return Ok(None);
        };
        let done = work(&mut loops);
        self.keep(checkout, file, loops);
        done.map(Some)
    }

    /// Keeps a connection for the next request, unless there are enough of them.
    fn keep(&self, checkout: &Checkout, file: Option<FileId>, loops: Loops) {
        let mut places = hold(&self.places);
        let is_own = *checkout == self.site.checkout;
        let others = places.values().filter(|place| !place.idle.is_empty()).count();
        let most = if is_own { KEPT } else { usize::from(others < KEPT_ELSEWHERE) };
        if let Some(place) = places.get_mut(checkout)
            && place.file == file
            && place.idle.len() < most
        {
            place.idle.push(loops);
        }
    }

    /// Does something with a loop that was named: one of ours by its name or the beginning of its id, one of
    /// another workspace by its whole id.
    pub(crate) fn of<T>(
        &self,
        which: &str,
        work: impl FnOnce(&mut Loops, &LoopRecord) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        let checkout = self.checkout_of(which)?.unwrap_or_else(|| self.site.checkout.clone());
        let done = self.at(&checkout, |loops| {
            let record = loops.select(Some(which))?;
            work(loops, &record)
        })?;
        done.ok_or_else(|| DeskError::NoLoops.into())
    }

    /// The checkout in which this loop was entered, if that is not our own.
    fn checkout_of(&self, which: &str) -> Result<Option<Checkout>, Refusal> {
        if which.len() != WHOLE_ID {
            return Ok(None);
        }
        let is_meant = |record: &LoopRecord| record.id.to_string() == which;
        if self.if_any(false, |loops| Ok(loops.all()?.iter().any(is_meant)))? {
            return Ok(None);
        }
        let registered = self.registered()?;
        let found = registered.iter().find(|place| place.has(which));
        Ok(found.map(|place| place.checkout.clone()))
    }

    /// The other workspaces of this machine. Loops use the registry too: it is not asked for every request.
    pub(crate) fn registered(&self) -> Result<Arc<Vec<Registered>>, Refusal> {
        self.registered.get(|| {
            let Some(registry) = &self.site.registry else { return Ok(Vec::new()) };
            let mut found = machine::registered(registry)?;
            found.insert(0, Registered { checkout: self.site.checkout.clone(), loops: Vec::new() });
            Ok(machine::each_once(found, |place| &place.checkout).split_off(1))
        })
    }

    /// What the other workspaces have for the lists.
    pub(crate) fn elsewhere(
        &self,
        look: impl FnOnce() -> Result<Vec<Elsewhere>, Refusal>,
    ) -> Result<Arc<Vec<Elsewhere>>, Refusal> {
        self.elsewhere.get(look)
    }

    /// What is known of a loop, up to now.
    pub(crate) fn feed(&self, loops: &Loops, record: &LoopRecord) -> Result<Arc<Feed>, Refusal> {
        let feed = {
            let mut places = hold(&self.places);
            let feeds = &mut places.entry(loops.checkout.clone()).or_default().feeds;
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
