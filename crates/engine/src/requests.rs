//! Requests of people and other programs, turned into events in the light of the state.

use wiggum_core::breaker::Phase;
use wiggum_core::event::{Answer, Event, QuestionKind, Request};
use wiggum_core::ids::TaskId;
use wiggum_core::mutant::{Mutant, planted};
use wiggum_core::state::{Loop, Stage};
use wiggum_core::tasks::TaskState;

pub(crate) enum Translated {
    Events(Vec<Event>),
    /// The task is being worked on: its agent has to be stopped first.
    SkipRunning(TaskId),
    /// Words for the agent at work.
    Nudge(String),
    Checkpoint,
    /// The agent at work should wrap up.
    Handoff,
    /// The agent at work is alive and says something.
    Report(Box<Event>),
}

/// Does a request mean the engine that runs now, rather than the loop?
pub(crate) fn is_about_the_engine(state: &Loop, request: &Request) -> bool {
    match request {
        // Said to a breaker that opened, it is about the loop.
        Request::Resume => state.breaker.phase == Phase::Closed,
        Request::Pause
        | Request::Stop
        | Request::Nudge { .. }
        | Request::Handoff
        | Request::Report { .. } => true,
        Request::Checkpoint
        | Request::Skip { .. }
        | Request::Retry { .. }
        | Request::Answer { .. }
        | Request::SetStatus { .. } => false,
    }
}

pub(crate) fn translate(state: &Loop, request: &Request, by: &str) -> Translated {
    let by = by.to_owned();
    let one = |event| Translated::Events(vec![event]);
    let notice = |task: Option<&TaskId>, message: String| {
        Translated::Events(vec![Event::Noticed { task: task.cloned(), message }])
    };
    match request {
        Request::Pause if state.paused => Translated::Events(Vec::new()),
        Request::Pause => one(Event::Paused { by }),
        Request::Resume if state.paused || state.breaker.phase != Phase::Closed => one(Event::Resumed { by }),
        Request::Resume => Translated::Events(Vec::new()),
        Request::Stop => one(Event::StopRequested { by }),
        Request::Checkpoint => Translated::Checkpoint,
        Request::Handoff => match &state.open {
            Some(open) if open.handoff.is_some() => Translated::Events(Vec::new()),
            Some(open) if open.stage == Stage::Agent => Translated::Handoff,
            Some(_) | None => notice(None, "no handoff: no agent is at work".to_owned()),
        },
        Request::Nudge { text } => match &state.open {
            Some(open) if open.stage == Stage::Agent || planted(Mutant::NudgesNobody) => {
                Translated::Nudge(text.clone())
            }
            None if planted(Mutant::NudgesTheAbsent) => one(Event::Nudged {
                iteration: state.iterations,
                attempt: 1,
                text: text.clone(),
                delivered: false,
                by,
            }),
            Some(_) | None => notice(None, "nobody heard the nudge: no agent is at work".to_owned()),
        },
        Request::Skip { task } => match state.task(task).map(|entry| &entry.state) {
            None => notice(None, format!("cannot skip {task}: there is no such task")),
            Some(TaskState::Done { .. }) => notice(Some(task), format!("{task} is done already")),
            Some(TaskState::Skipped) => Translated::Events(Vec::new()),
            Some(TaskState::Running) => Translated::SkipRunning(task.clone()),
            Some(TaskState::Open | TaskState::Parked(_) | TaskState::Failed { .. }) => {
                one(Event::TaskSkipped { task: task.clone(), by })
            }
        },
        Request::Retry { task } => match state.task(task).map(|entry| &entry.state) {
            None => notice(None, format!("cannot retry {task}: there is no such task")),
            Some(TaskState::Running) => notice(Some(task), format!("{task} is being worked on")),
            Some(
                TaskState::Open
                | TaskState::Parked(_)
                | TaskState::Done { .. }
                | TaskState::Failed { .. }
                | TaskState::Skipped,
            ) => one(Event::TaskReopened { task: task.clone(), by }),
        },
        Request::Answer { question, answer } => match state.questions.get(question) {
            None if planted(Mutant::AnswersTwice) => {
                one(Event::QuestionAnswered { id: *question, answer: answer.clone(), by })
            }
            None => notice(None, format!("{question} is not open (any more)")),
            Some(asked) => match answer {
                // Its agent is at work, and has to be stopped first.
                Answer::Skip if asked.question.kind == QuestionKind::Unresponsive => match &asked.task {
                    Some(task) => Translated::SkipRunning(task.clone()),
                    None => Translated::Events(Vec::new()),
                },
                Answer::Done if asked.question.kind == QuestionKind::Unresponsive => {
                    let message = "an agent is at work on it; skip it, or answer with an option";
                    notice(asked.task.as_ref(), format!("{question} is still open: {message}"))
                }
                // Whatever was meant, it must not be taken for leave to call again.
                Answer::Words { .. } if asked.question.kind == QuestionKind::Uncertain => {
                    let message = "did it happen? Answer done, retry, skip or abort";
                    notice(asked.task.as_ref(), format!("{question} is still open: {message}"))
                }
                Answer::Option { number }
                    if usize::try_from(*number).is_ok_and(|n| n == 0 || n > asked.question.options.len()) =>
                {
                    notice(asked.task.as_ref(), format!("{question} has no option {number}"))
                }
                Answer::Option { .. }
                | Answer::Words { .. }
                | Answer::Skip
                | Answer::Retry
                | Answer::Abort
                | Answer::Done => one(Event::QuestionAnswered { id: *question, answer: answer.clone(), by }),
            },
        },
        Request::Report { iteration, attempt, report } => match &state.open {
            Some(open)
                if (open.iteration, open.attempt) == (*iteration, *attempt)
                    && open.stage == Stage::Agent
                    && !open.own =>
            {
                let (iteration, attempt, report) = (*iteration, *attempt, report.clone());
                Translated::Report(Box::new(Event::AgentReported { iteration, attempt, report }))
            }
            Some(_) | None => {
                notice(None, format!("a report of iteration {iteration} came too late and was not heard"))
            }
        },
        Request::SetStatus { task, status } => match state.task(task) {
            None => notice(None, format!("cannot set the status of {task}: there is no such task")),
            Some(entry) if entry.state == TaskState::Running => {
                notice(Some(task), format!("{task} is being worked on; its status was not changed"))
            }
            Some(_) => one(Event::StatusSet { task: task.clone(), status: *status, by }),
        },
    }
}
