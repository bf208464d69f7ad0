//! Requests of people and other programs, turned into events in the light of the state.

use wiggum_core::breaker::Phase;
use wiggum_core::event::{Answer, Event, QuestionKind, Request};
use wiggum_core::ids::TaskId;
use wiggum_core::mutant::{Mutant, planted};
use wiggum_core::question::as_option;
use wiggum_core::state::{Loop, Stage};
use wiggum_core::task::Task;
use wiggum_core::tasks::TaskState;
use wiggum_store::Pending;

use crate::words::answer_words;

pub(crate) enum Translated {
    Events(Vec<Event>),
    /// Nothing comes of it.
    Refused {
        task: Option<TaskId>,
        why: String,
    },
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
        | Request::SetStatus { .. }
        | Request::BacklogEdited { .. } => false,
    }
}

/// What only a person should ask for, in a few words.
pub(crate) fn people_only(request: &Request) -> Option<String> {
    match request {
        Request::Stop => Some("stop".to_owned()),
        Request::Skip { task } => Some(format!("skip {task}")),
        Request::Retry { task } => Some(format!("retry {task}")),
        Request::Answer { question, .. } => Some(format!("answer {question}")),
        Request::SetStatus { task, .. } => Some(format!("set the status of {task}")),
        Request::Pause
        | Request::Resume
        | Request::Checkpoint
        | Request::Nudge { .. }
        | Request::Handoff
        | Request::Report { .. }
        | Request::BacklogEdited { .. } => None,
    }
}

/// An answer that the same person has replaced before anybody used it, in words for the journal.
pub(crate) fn corrected(pending: &Pending, later: &[Pending]) -> Option<String> {
    let Request::Answer { question, answer } = &pending.request else { return None };
    let replaces = |other: &Pending| {
        let about_it = matches!(&other.request, Request::Answer { question: of, .. } if of == question);
        about_it && other.by == pending.by
    };
    later.iter().any(replaces).then(|| {
        let words = answer_words(answer);
        format!("the answer \"{words}\" to {question} was corrected by {} before it was used", pending.by)
    })
}

pub(crate) fn translate(state: &Loop, request: &Request, by: &str) -> Translated {
    let by = by.to_owned();
    let one = |event| Translated::Events(vec![event]);
    let refused = |task: Option<&TaskId>, why: String| Translated::Refused { task: task.cloned(), why };
    match request {
        Request::Pause if state.paused => Translated::Events(Vec::new()),
        Request::Pause => one(Event::Paused { by }),
        Request::Resume if state.paused || state.breaker.phase != Phase::Closed => one(Event::Resumed { by }),
        Request::Resume => Translated::Events(Vec::new()),
        Request::Stop => one(Event::StopRequested { by }),
        Request::Checkpoint => Translated::Checkpoint,
        Request::Handoff => match state.open.here() {
            Some(open) if open.handoff.is_some() => Translated::Events(Vec::new()),
            Some(open) if open.stage == Stage::Agent => Translated::Handoff,
            Some(_) | None => refused(None, "no handoff: no agent is at work".to_owned()),
        },
        Request::Nudge { text } => match state.open.here() {
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
            Some(_) | None => refused(None, "nobody heard the nudge: no agent is at work".to_owned()),
        },
        Request::Skip { task } => match state.task(task).map(|entry| &entry.state) {
            None => refused(None, format!("cannot skip {task}: there is no such task")),
            Some(TaskState::Done { .. }) => refused(Some(task), format!("{task} is done already")),
            Some(TaskState::Skipped) => Translated::Events(Vec::new()),
            Some(TaskState::Running) => skip_running(state, task, by),
            Some(TaskState::Open | TaskState::Parked(_) | TaskState::Failed { .. }) => {
                one(Event::TaskSkipped { task: task.clone(), by })
            }
        },
        Request::Retry { task } => match state.task(task).map(|entry| &entry.state) {
            None => refused(None, format!("cannot retry {task}: there is no such task")),
            Some(TaskState::Running) => refused(Some(task), format!("{task} is being worked on")),
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
            None => refused(None, format!("{question} is not open (any more)")),
            Some(asked) => match (answer, state.refusal(*question, answer)) {
                (_, Some(why)) => refused(asked.task.as_ref(), why),
                // Its agent is at work, and has to be stopped first.
                (Answer::Skip, None) if asked.question.kind == QuestionKind::Unresponsive => {
                    match &asked.task {
                        Some(task) => skip_running(state, task, by),
                        None => Translated::Events(Vec::new()),
                    }
                }
                (_, None) => {
                    let answer = as_option(&asked.question, answer);
                    let left_out = asked.task.as_ref().filter(|_| answer == Answer::Done);
                    let left_out = left_out.and_then(|task| untaken_work(state, task));
                    let answered = Event::QuestionAnswered { id: *question, answer, by };
                    Translated::Events(std::iter::once(answered).chain(left_out).collect())
                }
            },
        },
        Request::Report { iteration, attempt, report } => match state.open.here() {
            Some(open)
                if (open.iteration, open.attempt) == (*iteration, *attempt)
                    && open.stage == Stage::Agent
                    && !open.own =>
            {
                let (iteration, attempt, report) = (*iteration, *attempt, report.clone());
                Translated::Report(Box::new(Event::AgentReported { iteration, attempt, report }))
            }
            Some(_) | None => {
                refused(None, format!("a report of iteration {iteration} came too late and was not heard"))
            }
        },
        Request::BacklogEdited { revision, former: _, added, removed } => {
            Translated::Events(edited(state, revision, added, removed).into_iter().collect())
        }
        Request::SetStatus { task, status } => match state.task(task) {
            None => refused(None, format!("cannot set the status of {task}: there is no such task")),
            Some(entry) if entry.state == TaskState::Running => {
                refused(Some(task), format!("{task} is being worked on; its status was not changed"))
            }
            Some(_) => one(Event::StatusSet { task: task.clone(), status: *status, by }),
        },
    }
}

/// Whatever works on the task has to be stopped first.
fn skip_running(state: &Loop, task: &TaskId, by: String) -> Translated {
    let asked = state.open.of_task(task).filter(|open| open.skipped_by.is_none()).map(|open| {
        let (iteration, attempt) = (open.iteration, open.attempt);
        Event::SkipAsked { iteration, attempt, task: task.clone(), by }
    });
    Translated::Events(asked.into_iter().collect())
}

/// What a person's edit of the backlog brings that the loop does not know yet. During an iteration, the file may hold
/// more than that, so it is taken in at once; between iterations the file itself is read.
fn edited(state: &Loop, revision: &str, added: &[Task], removed: &[TaskId]) -> Option<Event> {
    state.open.here()?;
    let is_known = |id: &TaskId| state.task(id).is_some_and(|entry| !entry.is_removed());
    let is_open = |id: &TaskId| state.task(id).is_some_and(|entry| entry.state != TaskState::Running);
    let added: Vec<Task> = added.iter().filter(|task| !is_known(&task.id)).cloned().collect();
    let removed: Vec<TaskId> = removed.iter().filter(|id| is_known(id) && is_open(id)).cloned().collect();
    (!added.is_empty() || !removed.is_empty()).then(|| Event::BacklogRead {
        revision: revision.to_owned(),
        added,
        changed: Vec::new(),
        removed,
        order: None,
    })
}

/// Whoever says that a task is done may believe that its kept work is in the tree.
fn untaken_work(state: &Loop, task: &TaskId) -> Option<Event> {
    let kept = state.task(task)?.kept.as_deref()?;
    let message = format!(
        "{task} is done by a person's word: what its agents had done so far is not in the tree (`git show {}`)",
        kept.get(..12).unwrap_or(kept)
    );
    Some(Event::Noticed { task: Some(task.clone()), message })
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use wiggum_core::ids::{QuestionId, RequestId};

    use super::*;

    #[test]
    fn the_last_answer_of_a_person_counts() {
        let pending = |question: u32, number: u32, by: &str| Pending {
            id: RequestId(i64::from(number)),
            request: Request::Answer { question: QuestionId(question), answer: Answer::Option { number } },
            by: by.to_owned(),
            at: Timestamp::UNIX_EPOCH,
        };
        let all = [pending(1, 1, "ann"), pending(2, 2, "ann"), pending(1, 3, "bob"), pending(1, 4, "ann")];
        let told: Vec<Option<String>> =
            all.iter().zip(1..).map(|(one, next)| corrected(one, &all[next..])).collect();
        let words = "the answer \"option 1\" to q1 was corrected by ann before it was used";
        assert_eq!(told, [Some(words.to_owned()), None, None, None]);
    }
}
