//! What is asked for, done at the desk: one thing after the other, beside the screen, which never waits for it.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender};

use wiggum_core::event::Request;
use wiggum_core::ids::LoopId;
use wiggum_engine::checkout::Checkout;
use wiggum_engine::desk::attempts;
use wiggum_engine::desk::backlog::OpenBacklog;
use wiggum_engine::desk::chronicle::Span;
use wiggum_engine::desk::health;
use wiggum_engine::desk::machine;
use wiggum_engine::desk::transcripts;
use wiggum_engine::desk::{DeskError, Loops};
use wiggum_engine::error::chain;
use wiggum_store::LoopRecord;

use crate::app::{Act, LoopRow, Message, News};
use crate::follow::follow;
use crate::model::page::Loaded;

/// Something for the desk.
pub(crate) enum Errand {
    Attach { checkout: Checkout, record: Box<LoopRecord> },
    Do(Act),
    LoadAttempt(Span),
    LoadOutput(Span),
    ListLoops,
}

pub(crate) struct Clerk {
    /// Where it was started.
    pub(crate) home: Checkout,
    pub(crate) registry: Option<PathBuf>,
    /// In whose name things are done.
    pub(crate) by: String,
    pub(crate) sender: SyncSender<Message>,
    pub(crate) at: Option<Attached>,
}

/// The loop that is looked at.
pub(crate) struct Attached {
    loops: Loops,
    record: LoopRecord,
    stop: Arc<AtomicBool>,
}

impl Clerk {
    /// Runs errands for as long as there are any.
    pub(crate) fn work(mut self, errands: &Receiver<Errand>) {
        while let Ok(errand) = errands.recv() {
            if let Err(error) = self.run(errand) {
                let hint = error.hint().map(|hint| format!(" ({hint})")).unwrap_or_default();
                self.say(format!("{}{hint}", chain(&error)), true);
            }
        }
        self.leave();
    }

    fn run(&mut self, errand: Errand) -> Result<(), DeskError> {
        match errand {
            Errand::Attach { checkout, record } => self.attach(&checkout, *record),
            Errand::ListLoops => {
                let rows = self.list();
                self.send(Message::Loops(rows));
                Ok(())
            }
            Errand::Do(act) => {
                let said = self.act(act)?;
                self.say(said, false);
                Ok(())
            }
            Errand::LoadAttempt(span) => {
                let Some(at) = &self.at else { return Ok(()) };
                let attempt = attempts::read(&at.loops, &at.record, &span, u64::MAX)?;
                let diff = attempt.diff(&at.loops);
                let loaded = Box::new(Loaded { attempt, diff, seq: span.seq });
                self.send(Message::Of(at.record.id, News::Attempt(loaded)));
                Ok(())
            }
            Errand::LoadOutput(span) => self.load_output(&span),
        }
    }

    fn attach(&mut self, checkout: &Checkout, record: LoopRecord) -> Result<(), DeskError> {
        self.leave();
        let (loops, own) = (open(checkout)?, open(checkout)?);
        let stop = Arc::new(AtomicBool::new(false));
        let (told, sender, followed) = (Arc::clone(&stop), self.sender.clone(), record.clone());
        std::thread::spawn(move || follow(own, followed, sender, told));
        self.at = Some(Attached { loops, record, stop });
        Ok(())
    }

    fn leave(&mut self) {
        if let Some(at) = self.at.take() {
            at.stop.store(true, Ordering::SeqCst);
        }
    }

    fn load_output(&self, span: &Span) -> Result<(), DeskError> {
        let Some(at) = &self.at else { return Ok(()) };
        let attempt = attempts::read(&at.loops, &at.record, span, span.seq)?;
        let file = transcripts::file(&at.loops.dir, at.record.id, span.iteration, span.attempt);
        let read = file.map(|file| transcripts::read(&file, &attempt.agent, &attempt.command));
        let entries = match read {
            None => Vec::new(),
            Some(Ok(entries)) => entries,
            Some(Err(error)) => {
                self.say(chain(&error), true);
                return Ok(());
            }
        };
        let (iteration, attempt) = (span.iteration, span.attempt);
        self.send(Message::Of(at.record.id, News::Earlier { iteration, attempt, entries }));
        Ok(())
    }

    /// Does something to the loop that is looked at, and says what became of it.
    fn act(&mut self, act: Act) -> Result<String, DeskError> {
        let by = self.by.clone();
        let Some(at) = &mut self.at else { return Err(DeskError::NoLoops) };
        let record = at.record.clone();
        let loops = &mut at.loops;
        let reply = match act {
            Act::Pause => loops.tell_engine(&record, "pause", &Request::Pause, &by, "already paused")?,
            Act::Resume => loops.tell_engine(&record, "resume", &Request::Resume, &by, "not paused")?,
            Act::Stop => loops.tell_engine(&record, "stop", &Request::Stop, &by, "stop asked for")?,
            Act::Handoff => {
                let silence = "the agent is wrapping up already";
                loops.tell_engine(&record, "hand over", &Request::Handoff, &by, silence)?
            }
            Act::Nudge(text) => {
                let silence = "waits for the agent's next tool call";
                loops.tell_engine(&record, "nudge", &Request::Nudge { text }, &by, silence)?
            }
            Act::Skip(task) => {
                loops.about_task(&record, &task, |task| Request::Skip { task }, &by, "already skipped")?.1
            }
            Act::Retry(task) => {
                loops.about_task(&record, &task, |task| Request::Retry { task }, &by, "open already")?.1
            }
            Act::Answer { loop_id, question, text } => {
                loops.answer(Some(&loop_id), &question, &text, &by)?.reply
            }
            Act::Add(task) => {
                let mut backlog = backlog(loops, &record)?;
                let id = backlog.add(*task, &by)?;
                return Ok(format!("{id} added to {}", backlog.name));
            }
            Act::Change { task, change } => {
                let mut backlog = backlog(loops, &record)?;
                backlog.change(&task, *change)?;
                return Ok(format!("{task} changed in {}{}", backlog.name, when(loops, &record)?));
            }
        };
        Ok(reply.message)
    }

    /// The loops of this repository first, then those of the machine. One that cannot be read is left out.
    fn list(&self) -> Vec<LoopRow> {
        let mut rows = Vec::new();
        let mut places = vec![self.home.clone()];
        places.extend(self.at.iter().map(|at| at.loops.checkout.clone()));
        places.extend(self.registered());
        let mut seen: Vec<LoopId> = Vec::new();
        for checkout in places {
            let Ok(Some(loops)) = Loops::of(&checkout) else { continue };
            for record in loops.all().unwrap_or_default() {
                if seen.contains(&record.id) {
                    continue;
                }
                seen.push(record.id);
                if let Ok(health) = health::of(&loops, &record) {
                    rows.push(LoopRow { checkout: checkout.clone(), record, health });
                }
            }
        }
        rows
    }

    fn registered(&self) -> Vec<Checkout> {
        let places = self.registry.as_deref().map(machine::registered).and_then(Result::ok);
        places.into_iter().flatten().map(|place| place.checkout).collect()
    }

    fn say(&self, text: String, failed: bool) {
        self.send(Message::Said { text, failed });
    }

    fn send(&self, message: Message) {
        drop(self.sender.send(message));
    }
}

fn open(checkout: &Checkout) -> Result<Loops, DeskError> {
    Loops::of(checkout)?.ok_or(DeskError::NoLoops)
}

/// When a loop that runs takes in what was written.
fn when(loops: &Loops, record: &LoopRecord) -> Result<&'static str, DeskError> {
    let works = loops.lease(record.id)?.alive().is_some() && loops.status(record)?.current.is_some();
    Ok(if works { "; the loop takes it in after this agent" } else { "" })
}

/// The backlog a loop works on; it grows as far as the loop's own policy lets it.
fn backlog(loops: &Loops, record: &LoopRecord) -> Result<OpenBacklog, DeskError> {
    let policy = loops.state(record.id)?.policy;
    let path = loops.checkout.path().join(&record.identity.backlog);
    Ok(OpenBacklog::new(&loops.checkout, path, &policy))
}
