//! Looking on at a loop from beside it: its journal as it grows, what its agent prints, how it is. Nothing is
//! looked at before something says that it changed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use wiggum_core::event::{Envelope, Event};
use wiggum_core::ids::{LoopId, Seq};
use wiggum_engine::desk::transcripts::{self, Following};
use wiggum_engine::desk::watch::Watch;
use wiggum_engine::desk::{DeskError, Loops, health};
use wiggum_engine::error::chain;
use wiggum_store::LoopRecord;

use crate::app::{Message, News};
use crate::model::{Book, MOST_WORDS};

/// Events that are handed over at once, so that keys are heard in between.
const BATCH: u32 = 2000;
/// How soon a store that cannot be read is tried again.
const RETRY: Duration = Duration::from_secs(2);
/// How often the first reading says how far it is.
const TELL: Seq = 20_000;

/// Follows a loop until it is told to stop; tells why if it cannot.
pub(crate) fn follow(loops: Loops, record: LoopRecord, sender: SyncSender<Message>, stop: Arc<AtomicBool>) {
    let id = record.id;
    let mut follower =
        Follower { loops, id, record, opened: false, sender, stop, seq: 0, agent: None, output: None };
    let mut gone = follower.open().err();
    while !follower.is_over() {
        if let Some(error) = &gone {
            follower.tell(News::Lost(chain(error)));
            // The store may be busy, or be put back where it was.
            Watch::over(&[follower.loops.dir.path().to_owned()]).wait(Some(RETRY));
            if let Ok(Some(loops)) = Loops::of(&follower.loops.checkout) {
                follower.loops = loops;
            }
        }
        gone = match follower.opened {
            true => follower.look_on().err(),
            false => follower.open().err(),
        };
    }
}

struct Follower {
    loops: Loops,
    id: LoopId,
    record: LoopRecord,
    opened: bool,
    sender: SyncSender<Message>,
    stop: Arc<AtomicBool>,
    seq: Seq,
    agent: Option<Agent>,
    output: Option<(std::path::PathBuf, Following)>,
}

/// The newest start of an agent.
struct Agent {
    iteration: u32,
    attempt: u32,
    name: String,
    command: String,
}

impl Follower {
    fn tell(&self, news: News) {
        // With nobody left to hear it there is nothing to do either.
        if self.sender.send(Message::Of(self.id, news)).is_err() {
            self.stop.store(true, Ordering::SeqCst);
        }
    }

    fn is_over(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }

    /// Reads the whole journal once.
    fn open(&mut self) -> Result<(), DeskError> {
        let mut book = Book::new(self.loops.checkout.path().to_owned(), self.record.clone());
        self.seq = 0;
        let of = self.loops.store.last_seq(self.id)?;
        while !self.is_over() {
            let events = self.loops.store.page(self.id, self.seq, BATCH)?;
            for envelope in &events {
                self.note(envelope);
                // To put a million events into words takes longer than to fold them.
                match of.saturating_sub(envelope.seq) > MOST_WORDS as Seq {
                    true => book.pass(envelope),
                    false => book.take(envelope),
                }
            }
            if events.len() < BATCH as usize {
                break;
            }
            if self.seq.is_multiple_of(TELL) {
                self.tell(News::Reading { read: self.seq, of });
            }
        }
        self.tell(News::Opened(Box::new(book)));
        self.opened = true;
        Ok(())
    }

    fn look_on(&mut self) -> Result<(), DeskError> {
        while !self.is_over() {
            let dir = &self.loops.dir;
            let places = [dir.loop_dir(self.id), dir.transcripts(self.id)];
            // Whatever comes into being from here on has to be watched as well.
            let there = places.iter().filter(|place| place.exists()).count();
            let mut watch = Watch::with_output(dir, self.id);
            let mut watched_pid = None;
            while !self.is_over() && places.iter().filter(|place| place.exists()).count() == there {
                self.look()?;
                let pid = self.loops.lease(self.id)?.alive().map(|holder| holder.pid);
                if let Some(pid) = pid.filter(|_| pid != watched_pid) {
                    watch.tell_end_of(pid);
                }
                watched_pid = pid;
                watch.wait(None);
            }
        }
        Ok(())
    }

    /// Tells what is new.
    fn look(&mut self) -> Result<(), DeskError> {
        loop {
            let events = self.loops.store.page(self.id, self.seq, BATCH)?;
            let more = events.len() == BATCH as usize;
            events.iter().for_each(|envelope| self.note(envelope));
            if !events.is_empty() {
                self.tell(News::Events(events));
            }
            if !more || self.is_over() {
                break;
            }
        }
        let health = Box::new(health::of(&self.loops, &self.record)?);
        self.tell(News::Vitals { health, letters: self.loops.inbox(None)? });
        self.look_at_output();
        Ok(())
    }

    fn note(&mut self, envelope: &Envelope) {
        self.seq = envelope.seq;
        if let Event::IterationStarted { iteration, attempt, agent, command, .. } = &envelope.event {
            let (name, command) = (agent.clone(), command.clone());
            self.agent = Some(Agent { iteration: *iteration, attempt: *attempt, name, command });
        }
    }

    /// A transcript that cannot be read is shown as one with nothing in it.
    fn look_at_output(&mut self) {
        let Some(Agent { iteration, attempt, name, command }) = &self.agent else { return };
        let (iteration, attempt) = (*iteration, *attempt);
        let Some(file) = transcripts::file(&self.loops.dir, self.id, iteration, attempt) else { return };
        let fresh = self.output.as_ref().is_none_or(|(known, _)| *known != file);
        if fresh {
            self.output = Following::open(&file, name, command).ok().map(|following| (file, following));
        }
        let entries = self.output.as_mut().map(|(_, following)| following.more()).unwrap_or_default();
        if fresh || !entries.is_empty() {
            self.tell(News::Output { iteration, attempt, fresh, entries });
        }
    }
}
