//! Requests to a loop, and what became of them.
//!
//! Where an engine lives, the reply is what it made of the request; otherwise the request is kept for
//! the next run, if it still makes sense then.

use std::sync::Arc;
use std::time::Duration;

use wiggum_core::event::{Event, Request};
use wiggum_core::ids::{QuestionId, RequestId, Seq, TaskId};
use wiggum_core::state::Loop;
use wiggum_core::tasks::TaskState;
use wiggum_store::{Left, LoopRecord, Pending};

use crate::clock::Clock;
use crate::desk::watch::{Happened, Watch};
use crate::desk::{DeskError, Loops};
use crate::host::{Host, Machine};
use crate::wake;
use crate::words::{answer_words, describe};

/// How long we wait for the engine's word. It takes requests up within a tenth of a second, unless
/// it is just committing.
const PATIENCE: Duration = Duration::from_secs(2);

/// How often it is looked again whether a question is open, while the loop goes on.
const LOOKS: u32 = 10;

/// What it means when the engine took up a request.
#[derive(Clone, Copy, Debug, Default)]
pub struct Settled {
    /// What to say when nothing happened because of it.
    pub silence: &'static str,
    /// It is only done once an agent is gone, some time after it was taken up.
    pub takes_time: bool,
    pub corrects: Corrects,
}

/// What an answer may take the place of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Corrects {
    /// Of nothing: the first answer counts.
    #[default]
    Nothing,
    /// Of an answer of the same person that nobody has taken up yet.
    OwnAnswer,
}

/// What became of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    pub state: ReplyState,
    /// The same in words.
    pub message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyState {
    /// The engine took it up.
    Done,
    /// No engine runs: it is for the next one.
    Kept,
    /// The engine is busy.
    Waiting,
}

impl ReplyState {
    pub fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Kept => "kept",
            Self::Waiting => "waiting",
        }
    }
}

/// A request in the store.
struct Posted<'a> {
    id: RequestId,
    request: &'a Request,
    by: &'a str,
    /// Where the journal stood before.
    before: Seq,
}

enum Outcome {
    /// What the journal says of it, if anything.
    Happened(Option<String>),
    Refused(String),
    Stopping,
    NotYet,
}

impl Loops {
    /// Leaves a request in somebody's name, and waits a moment for what becomes of it.
    pub fn deliver(
        &mut self,
        record: &LoopRecord,
        request: &Request,
        by: &str,
        settled: Settled,
    ) -> Result<Reply, DeskError> {
        let lease = self.lease(record.id)?;
        // Watching starts first, so that nothing the engine does is missed.
        let watch = Watch::new(&self.dir, record.id);
        let before = self.store.last_seq(record.id)?;
        let id = self.leave(record, request, by, settled.corrects)?;
        let posted = Posted { id, request, by, before };
        if lease.alive().is_none() {
            let message = "kept: no engine runs now, the next `wiggum run` takes it up".to_owned();
            return Ok(Reply { state: ReplyState::Kept, message });
        }
        wake::wake(&self.dir, record.id).map_err(|source| DeskError::Wake { source })?;
        let (state, message) = match self.outcome(record, &posted, settled, &watch)? {
            Outcome::Happened(what) => (ReplyState::Done, what.unwrap_or_else(|| settled.silence.to_owned())),
            Outcome::Refused(why) => return Err(DeskError::Refused { why }),
            Outcome::Stopping => {
                (ReplyState::Waiting, "its agent is being stopped, then it is skipped".to_owned())
            }
            Outcome::NotYet => {
                (ReplyState::Waiting, "the loop is busy and takes it up as soon as it can".to_owned())
            }
        };
        Ok(Reply { state, message })
    }

    /// Of several answers to a question the first is left, and the others are told of it. One that came while the
    /// question was open, with no other before it, is the first. Somebody who may correct an own answer that nobody
    /// has taken up yet leaves another one; the engine uses the last.
    fn leave(
        &mut self,
        record: &LoopRecord,
        request: &Request,
        by: &str,
        corrects: Corrects,
    ) -> Result<RequestId, DeskError> {
        let Request::Answer { question: id, .. } = *request else {
            return Ok(self.store.post(record.id, request, by, Machine::new().wall())?);
        };
        let about_it =
            |other: &Pending| matches!(&other.request, Request::Answer { question, .. } if *question == id);
        let same = |waiting: &[Pending]| {
            let last = waiting.iter().rfind(|other| about_it(other))?;
            let is_corrected = corrects == Corrects::OwnAnswer && last.by == by && last.request != *request;
            (!is_corrected).then(|| last.clone())
        };
        let mut looks = LOOKS;
        loop {
            let status = self.status(record)?;
            self.require_open(record, id, &status)?;
            // A loop that never rests cannot be waited for: its engine says what it makes of it.
            let as_of = (looks > 0).then_some(status.seq);
            match self.store.post_first(record.id, request, by, Machine::new().wall(), as_of, &same)? {
                Left::First(left) => return Ok(left),
                Left::Taken(first) => return Err(waits(id, &first)),
                Left::Moved => looks = looks.saturating_sub(1),
            }
        }
    }

    /// As [`Loops::deliver`], for requests that mean the engine that runs now.
    pub fn tell_engine(
        &mut self,
        record: &LoopRecord,
        verb: &str,
        request: &Request,
        by: &str,
        silence: &'static str,
    ) -> Result<Reply, DeskError> {
        if self.lease(record.id)?.alive().is_none() {
            let (verb, name) = (verb.to_owned(), record.identity.name.clone());
            return Err(DeskError::NotRunning { verb, name });
        }
        self.deliver(record, request, by, Settled { silence, ..Settled::default() })
    }

    /// A request about a task of a loop, which must know it.
    pub fn about_task(
        &mut self,
        record: &LoopRecord,
        task: &str,
        request: impl Fn(TaskId) -> Request,
        by: &str,
        silence: &'static str,
    ) -> Result<(Request, Reply), DeskError> {
        let state = self.state(record.id)?;
        let task = require_task(&state, task)?;
        let running = state.task(&task).is_some_and(|entry| entry.state == TaskState::Running);
        let request = request(task);
        let takes_time = running && matches!(request, Request::Skip { .. });
        let reply =
            self.deliver(record, &request, by, Settled { silence, takes_time, ..Settled::default() })?;
        Ok((request, reply))
    }

    fn outcome(
        &self,
        record: &LoopRecord,
        posted: &Posted<'_>,
        settled: Settled,
        watch: &Watch,
    ) -> Result<Outcome, DeskError> {
        let clock = Clock::starting_after(Arc::new(Machine::new()), None);
        loop {
            let handled = !self.store.pending(record.id)?.iter().any(|pending| pending.id == posted.id);
            let found = if handled { self.said(record, posted)? } else { None };
            if let Some(found) = found {
                return Ok(found);
            }
            if handled && !settled.takes_time {
                return Ok(Outcome::Happened(None));
            }
            let left = PATIENCE.saturating_sub(clock.elapsed());
            if left.is_zero() || watch.wait(Some(left)) == Happened::Nothing {
                return Ok(if handled { Outcome::Stopping } else { Outcome::NotYet });
            }
        }
    }

    /// What the engine said to this request since.
    fn said(&self, record: &LoopRecord, posted: &Posted<'_>) -> Result<Option<Outcome>, DeskError> {
        let mut found = None;
        self.store.for_each(record.id, posted.before, |envelope| {
            if found.is_none() {
                found = as_answer(&envelope.event, posted);
            }
        })?;
        Ok(found)
    }
}

/// What somebody is told whose answer comes after another that nobody has taken up yet.
pub(crate) fn waits(id: QuestionId, first: &Pending) -> DeskError {
    let answer = match &first.request {
        Request::Answer { answer, .. } => answer_words(answer),
        _ => String::new(),
    };
    DeskError::AnswerWaits { id, by: first.by.clone(), at: first.at, answer }
}

/// The task a loop knows by this id, or which there are.
pub fn require_task(state: &Loop, id: &str) -> Result<TaskId, DeskError> {
    let id = TaskId::from(id);
    if state.task(&id).is_some_and(|entry| !entry.is_removed()) {
        return Ok(id);
    }
    let known = state.tasks.iter().map(|entry| entry.spec.id.to_string()).collect();
    Err(DeskError::UnknownTask { id: id.to_string(), known })
}

/// What an event says of a request. A refusal names it; of what was done, others may ask for the same at the same time.
fn as_answer(event: &Event, posted: &Posted<'_>) -> Option<Outcome> {
    let Posted { id, request, by: asker, .. } = *posted;
    if let Event::RequestRefused { request: refused, why, .. } = event {
        return (*refused == Some(id)).then(|| Outcome::Refused(why.clone()));
    }
    let done = match request {
        Request::Pause => matches!(event, Event::Paused { .. }),
        Request::Resume => matches!(event, Event::Resumed { .. }),
        Request::Stop => matches!(event, Event::StopRequested { .. }),
        Request::Checkpoint => matches!(event, Event::Checkpointed { by, .. } if by == asker),
        Request::Handoff => matches!(event, Event::HandoffStarted { .. }),
        Request::Report { report, .. } => {
            matches!(event, Event::AgentReported { report: of, .. } if of == report)
        }
        Request::BacklogEdited { revision, .. } => {
            matches!(event, Event::BacklogRead { revision: of, .. } if of == revision)
        }
        Request::Skip { task } => {
            // It may end by itself before its agent could be stopped.
            matches!(event, Event::TaskSkipped { task: of, .. } | Event::TaskCompleted { task: of, .. } if of == task)
        }
        Request::Nudge { text } => matches!(event, Event::Nudged { text: of, .. } if of == text),
        Request::Retry { task } => matches!(event, Event::TaskReopened { task: of, .. } if of == task),
        Request::SetStatus { task, .. } => matches!(event, Event::StatusSet { task: of, .. } if of == task),
        Request::Answer { question, answer } => match event {
            Event::QuestionAnswered { id, answer: given, by } if id == question => {
                let ours = (given, by.as_str()) == (answer, asker);
                // Somebody else was quicker: what happened is theirs.
                return Some(if ours { Outcome::Happened(Some(describe(event))) } else { lost(event) });
            }
            _ => false,
        },
    };
    done.then(|| Outcome::Happened(Some(describe(event))))
}

fn lost(event: &Event) -> Outcome {
    Outcome::Refused(describe(event))
}

#[cfg(test)]
mod tests {
    use super::*;
    use wiggum_core::event::Answer;

    #[test]
    fn an_answer_that_somebody_else_gave_is_not_ours() {
        let option = |number| Answer::Option { number };
        let request = Request::Answer { question: QuestionId(1), answer: option(1) };
        let posted = Posted { id: RequestId(1), request: &request, by: "ann", before: 0 };
        let happened = |id, answer, by: &str| {
            let event = Event::QuestionAnswered { id: QuestionId(id), answer, by: by.to_owned() };
            as_answer(&event, &posted)
        };
        assert!(matches!(happened(1, option(1), "ann"), Some(Outcome::Happened(Some(_)))));
        let others = happened(1, option(1), "bob");
        assert!(matches!(others, Some(Outcome::Refused(why)) if why == "q1 answered by bob: option 1"));
        assert!(matches!(happened(1, option(2), "ann"), Some(Outcome::Refused(_))));
        assert!(happened(2, option(1), "ann").is_none());
    }

    /// Neither the words of a notice nor the refusal of a similar request say anything of this one.
    #[test]
    fn only_a_refusal_that_names_a_request_is_about_it() {
        let request = Request::Skip { task: "T1".into() };
        let posted = Posted { id: RequestId(7), request: &request, by: "ann", before: 0 };
        let refused = |request: Option<i64>| Event::RequestRefused {
            request: request.map(RequestId),
            task: Some("T1".into()),
            by: "ann".to_owned(),
            why: "T1 is done already".to_owned(),
        };
        let message = "T10 is done already".to_owned();
        for other in [Event::Noticed { task: None, message }, refused(Some(8)), refused(None)] {
            assert!(as_answer(&other, &posted).is_none(), "{other:?}");
        }
        let why = as_answer(&refused(Some(7)), &posted);
        assert!(matches!(why, Some(Outcome::Refused(why)) if why == "T1 is done already"));
    }
}
