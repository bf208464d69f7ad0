//! The way to one receiver: which messages it gets next, in the order of each journal, and how far it is.
//!
//! A place in a journal is moved on after a message was sent, never before: killed in between, the message is sent
//! again, under the same id. One process at a time sends to a receiver; the others leave it to that one.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::path::Path;

use jiff::{SignedDuration, Timestamp};
use wiggum_core::event::{Envelope, Event};
use wiggum_core::ids::{LoopId, Seq, TaskId};
use wiggum_engine::desk::{DeskError, Loops};
use wiggum_engine::state_dir::{FileId, StateDir};
use wiggum_store::{Delivery as Place, Failing, LoopRecord, StoreError, Undelivered};
use wiggum_workspace::paths::ProcessLock;

use crate::message::{About, LoopName, Message, message};
use crate::page;
use crate::retry::{Next, next};
use crate::send::{Delivery, Outcome, Sender};
use crate::target::Target;

/// Events read at once.
const PAGE: u32 = 200;
/// So many events of no interest are looked at again after a kill, rather than noted one by one.
const STRIDE: Seq = 1000;
/// Where this process keeps others from sending at the same time.
const LOCKS: &str = "notify";

/// How a receiver stands after all there was to send has been tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Another process sends.
    Elsewhere,
    /// Nothing is left.
    Told,
    /// Something is to be tried again then.
    Waits(Timestamp),
}

/// Whether what failed is tried before its time has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hurry {
    No,
    Yes,
}

pub(crate) struct Route {
    sender: Sender,
    /// What happened before this is no news to a receiver that nobody knew.
    since: Timestamp,
    dir: StateDir,
    lock: Option<ProcessLock>,
    store: Option<Opened>,
    lines: BTreeMap<LoopId, Line>,
    pub(crate) sent: u64,
    pub(crate) given_up: u64,
}

/// The loops, read from this very file: an agent may delete it, and the engine puts another in its place.
struct Opened {
    loops: Loops,
    file: Option<FileId>,
}

/// One journal, as far as this receiver is concerned.
struct Line {
    of: LoopName,
    place: Place,
    /// Read up to here; what lies between it and the place was of no interest.
    seen: Seq,
    /// What tasks are called, once that was needed.
    titles: Option<HashMap<TaskId, String>>,
}

impl Route {
    pub(crate) fn new(target: Target, dir: &StateDir, since: Timestamp) -> Self {
        Self {
            sender: Sender::new(target, dir.workspace()),
            since,
            dir: dir.clone(),
            lock: None,
            store: None,
            lines: BTreeMap::new(),
            sent: 0,
            given_up: 0,
        }
    }

    /// Sends what there is to send, of every loop.
    pub(crate) fn pass(&mut self, hurry: Hurry) -> Result<Standing, DeskError> {
        let Some(mut opened) = self.open()? else { return Ok(Standing::Told) };
        let standing = self.tell_all(&mut opened.loops, hurry);
        self.store = Some(opened);
        standing
    }

    fn tell_all(&mut self, loops: &mut Loops, hurry: Hurry) -> Result<Standing, DeskError> {
        if !self.alone()? {
            return Ok(Standing::Elsewhere);
        }
        let since = loops.store.known_since(&self.sender.target().name, self.since)?;
        let mut standing = Standing::Told;
        for record in loops.all()? {
            let waits = self.tell(loops, &record, since, hurry)?;
            standing = match (standing, waits) {
                (Standing::Waits(one), Some(other)) => Standing::Waits(one.min(other)),
                (Standing::Elsewhere | Standing::Told, Some(at)) => Standing::Waits(at),
                (standing, None) => standing,
            };
        }
        Ok(standing)
    }

    fn open(&mut self) -> Result<Option<Opened>, DeskError> {
        let file = self.dir.database_id();
        if let Some(opened) = self.store.take().filter(|opened| opened.file == file) {
            return Ok(Some(opened));
        }
        Ok(Loops::of(&self.dir.checkout())?.map(|loops| Opened { loops, file }))
    }

    fn alone(&mut self) -> Result<bool, DeskError> {
        if self.lock.is_none() {
            let place = self.dir.path().join(LOCKS);
            let problem = |error: std::io::Error| DeskError::Prepare {
                path: self.dir.path().join(LOCKS),
                problem: error.to_string(),
            };
            std::fs::create_dir_all(&place).map_err(problem)?;
            let file = place.join(format!("{}.lock", self.sender.target().name));
            self.lock = ProcessLock::try_acquire(&file).map_err(problem)?;
            // Whoever sent until now has gone further than we remember.
            self.lines.clear();
        }
        Ok(self.lock.is_some())
    }

    /// Tells of one loop up to its last event, or to what cannot be sent now: then it says when to come back.
    fn tell(
        &mut self,
        loops: &mut Loops,
        record: &LoopRecord,
        since: Timestamp,
        hurry: Hurry,
    ) -> Result<Option<Timestamp>, DeskError> {
        let mut line = match self.lines.remove(&record.id) {
            Some(line) => line,
            None => Line::open(loops, record, &self.sender.target().name, since)?,
        };
        let told = self.go_on(loops, record.id, &mut line, hurry);
        self.lines.insert(record.id, line);
        told
    }

    fn go_on(
        &mut self,
        loops: &mut Loops,
        id: LoopId,
        line: &mut Line,
        hurry: Hurry,
    ) -> Result<Option<Timestamp>, DeskError> {
        if let Some(failing) = &line.place.failing
            && hurry == Hurry::No
            && failing.next_try > Timestamp::now()
        {
            return Ok(Some(failing.next_try));
        }
        loop {
            let page = loops.store.page(id, line.seen, PAGE)?;
            if page.is_empty() {
                break;
            }
            for envelope in &page {
                line.learn(envelope);
                if let Some(message) = self.wanted(loops, id, line, envelope)?
                    && let Some(later) = self.attempt(loops, id, line, message)?
                {
                    return Ok(Some(later));
                }
                line.seen = envelope.seq;
            }
        }
        if line.seen >= line.place.cursor + STRIDE {
            line.place.cursor = line.seen;
            self.note(loops, id, line, None)?;
        }
        Ok(None)
    }

    /// The message of an event, if this receiver wants it.
    fn wanted(
        &self,
        loops: &Loops,
        id: LoopId,
        line: &mut Line,
        envelope: &Envelope,
    ) -> Result<Option<Message>, DeskError> {
        let target = self.sender.target();
        let draft = message(id, envelope, &About { of: &line.of, title: &|_| None, page: None });
        let Some(draft) = draft.filter(|draft| target.wants(draft)) else { return Ok(None) };
        if draft.task.is_some() && line.titles.is_none() {
            let state = loops.state(id)?;
            let known = state.tasks.iter().map(|entry| (entry.spec.id.clone(), entry.spec.title.clone()));
            line.titles = Some(known.collect());
        }
        let title = |task: &TaskId| line.titles.as_ref()?.get(task).cloned();
        let page = target.link.clone().or_else(|| page::find(&self.dir));
        Ok(message(id, envelope, &About { of: &line.of, title: &title, page: page.as_deref() }))
    }

    /// Says when to try again, if it has to be tried again.
    fn attempt(
        &mut self,
        loops: &mut Loops,
        id: LoopId,
        line: &mut Line,
        message: Message,
    ) -> Result<Option<Timestamp>, DeskError> {
        let (seq, now) = (message.seq, Timestamp::now());
        let until = too_old(&message, self.sender.target());
        let before = line.place.failing.take().filter(|failing| failing.seq == seq);
        let attempts = before.as_ref().map_or(0, |failing| failing.attempts);
        if now > until {
            let problem = before
                .map_or("it was too old when it could first be sent".to_owned(), |failing| failing.problem);
            self.give_up(loops, id, line, seq, attempts, problem)?;
            return Ok(None);
        }
        let delivery = Delivery::new(id, &self.sender.target().name, message);
        match self.sender.send(&delivery, now) {
            Outcome::Sent => {
                line.place =
                    Place { cursor: seq, sent: line.place.sent + 1, sent_at: Some(now), failing: None };
                self.sent += 1;
                self.note(loops, id, line, None)?;
                Ok(None)
            }
            Outcome::Failed { problem, again } => {
                let attempts = attempts + 1;
                match next(again, attempts, Timestamp::now(), until, jitter()) {
                    Next::Try(next_try) => {
                        line.place.failing = Some(Failing { seq, attempts, next_try, problem });
                        self.note(loops, id, line, None)?;
                        Ok(Some(next_try))
                    }
                    Next::GiveUp => {
                        self.give_up(loops, id, line, seq, attempts, problem)?;
                        Ok(None)
                    }
                }
            }
        }
    }

    fn give_up(
        &mut self,
        loops: &mut Loops,
        id: LoopId,
        line: &mut Line,
        seq: Seq,
        attempts: u32,
        problem: String,
    ) -> Result<(), StoreError> {
        line.place.cursor = seq;
        self.given_up += 1;
        let target = self.sender.target().name.clone();
        let given_up = Undelivered { loop_id: id, target, seq, at: Timestamp::now(), attempts, problem };
        self.note(loops, id, line, Some(&given_up))
    }

    fn note(
        &self,
        loops: &mut Loops,
        id: LoopId,
        line: &Line,
        given_up: Option<&Undelivered>,
    ) -> Result<(), StoreError> {
        loops.store.note_delivery(id, &self.sender.target().name, &line.place, given_up)
    }
}

impl Line {
    fn open(loops: &Loops, record: &LoopRecord, target: &str, since: Timestamp) -> Result<Self, DeskError> {
        let place = match loops.store.delivery(record.id, target)? {
            Some(place) => place,
            None => Place { cursor: last_before(loops, record.id, since)?, ..Place::default() },
        };
        Ok(Self { of: loop_name(record), seen: place.cursor, place, titles: None })
    }

    fn learn(&mut self, envelope: &Envelope) {
        if let (Some(titles), Event::BacklogRead { added, changed, .. }) = (&mut self.titles, &envelope.event)
        {
            titles.extend(added.iter().chain(changed).map(|task| (task.id.clone(), task.title.clone())));
        }
    }
}

/// What a loop is called to others.
pub(crate) fn loop_name(record: &LoopRecord) -> LoopName {
    let project = Path::new(&record.identity.repository).file_name();
    LoopName {
        id: record.id.to_string(),
        name: record.identity.name.clone(),
        project: project.map_or_else(String::new, |name| name.to_string_lossy().into_owned()),
        backlog: record.identity.backlog.clone(),
    }
}

fn too_old(message: &Message, target: &Target) -> Timestamp {
    let span = SignedDuration::try_from(target.give_up_after).unwrap_or(SignedDuration::MAX);
    message.at.checked_add(span).unwrap_or(Timestamp::MAX)
}

/// The last event before a moment. Journals are in order of time but for clocks that were set, so halving will do.
fn last_before(loops: &Loops, id: LoopId, moment: Timestamp) -> Result<Seq, StoreError> {
    let (mut old, mut new) = (0, loops.store.last_seq(id)? + 1);
    while new - old > 1 {
        let middle = old + (new - old) / 2;
        let at = loops.store.page(id, middle - 1, 1)?.first().map(|envelope| envelope.at);
        if at.is_some_and(|at| at < moment) { old = middle } else { new = middle }
    }
    Ok(old)
}

/// Between 0 and 1, another one each time.
fn jitter() -> f64 {
    RandomState::new().hash_one(0u8) as f64 / u64::MAX as f64
}
