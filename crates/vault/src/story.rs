//! What the vault tells of a plan, beside its state: the questions with their answers, what happened
//! last, and a line for the log of every action. A fold over the journal, like the state itself.

use std::collections::BTreeMap;

use jiff::Timestamp;
use wiggum_core::event::{Answer, BlobRef, EndReason, Envelope, Event, Question, Verdict};
use wiggum_core::ids::{QuestionId, Seq, TaskId};
use wiggum_core::state::{Loop, OpenQuestion};
use wiggum_core::task::Work;

use crate::words::{ENTRY, inline, short};

#[derive(Debug, Default)]
pub(crate) struct Story {
    pub(crate) asked: BTreeMap<QuestionId, Asked>,
    /// Every end of a run that a person may have something to say about.
    pub(crate) ends: Vec<End>,
    /// What happened last, in words of ours.
    pub(crate) last_action: String,
    pub(crate) last_at: Option<Timestamp>,
    pub(crate) started_at: Option<Timestamp>,
    /// The step of the newest iteration.
    step: Option<TaskId>,
    /// What went wrong last with a step.
    errors: BTreeMap<TaskId, String>,
    /// What is still to be told.
    pub(crate) news: Vec<News>,
}

#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) task: Option<TaskId>,
    pub(crate) question: Question,
    /// What went wrong last with the step it is about.
    pub(crate) error: Option<String>,
    /// Does an agent read words that are said to it?
    pub(crate) takes_words: bool,
    pub(crate) answer: Option<(Answer, String, Timestamp)>,
}

#[derive(Debug)]
pub(crate) struct End {
    pub(crate) run: u32,
    pub(crate) reason: EndReason,
    pub(crate) detail: String,
    /// When it went on after all.
    pub(crate) went_on: Option<Timestamp>,
}

#[derive(Debug)]
pub(crate) struct News {
    pub(crate) seq: Seq,
    /// A line for the log, without what names the event.
    pub(crate) line: String,
    /// What a step tells people.
    pub(crate) notice: Option<Notice>,
}

#[derive(Debug)]
pub(crate) struct Notice {
    pub(crate) step: TaskId,
    pub(crate) title: String,
    pub(crate) message: BlobRef,
}

impl Story {
    /// Takes in an event; `state` is the loop with it, and perhaps with later ones.
    pub(crate) fn take(&mut self, envelope: &Envelope, state: &Loop) {
        let at = envelope.at;
        self.last_at = Some(at);
        self.started_at.get_or_insert(at);
        match &envelope.event {
            Event::QuestionRaised { id, task, question } => {
                let error = task.as_ref().and_then(|task| self.errors.get(task)).cloned();
                let open = OpenQuestion { task: task.clone(), question: question.clone(), raised_at: at };
                let takes_words = state.takes_words(&open);
                let OpenQuestion { task, question, .. } = open;
                self.asked.insert(*id, Asked { task, question, error, takes_words, answer: None });
            }
            Event::QuestionAnswered { id, answer, by } => {
                if let Some(asked) = self.asked.get_mut(id) {
                    asked.answer = Some((answer.clone(), by.clone(), at));
                }
            }
            Event::IterationStarted { task, .. } => self.step = Some(task.clone()),
            Event::Judged { verdict, .. } => {
                if let Some((step, error)) = self.step.clone().zip(error_of(verdict)) {
                    self.errors.insert(step, error);
                }
            }
            Event::RunStarted { .. } => {
                if let Some(end) = self.ends.last_mut() {
                    end.went_on = Some(at);
                }
            }
            // What a question is about is asked there, and a plan that could not be read goes on when it can.
            Event::RunEnded { reason: EndReason::PersonNeeded, .. }
                if self.is_asked() || state.backlog_broken.is_some() => {}
            Event::RunEnded { run, reason, detail } if *reason != EndReason::GoalAchieved => {
                self.ends.push(End { run: *run, reason: *reason, detail: detail.clone(), went_on: None });
            }
            _ => {}
        }
        let step = self.step.as_ref();
        let Some(said) = said(&envelope.event, step) else { return };
        let notice = notice(&envelope.event, step, state);
        self.last_action.clone_from(&said);
        self.news.push(News { seq: envelope.seq, line: format!("{at:.0} {}", inline(&said, ENTRY)), notice });
    }

    fn is_asked(&self) -> bool {
        self.asked.values().any(|asked| asked.answer.is_none())
    }
}

fn error_of(verdict: &Verdict) -> Option<String> {
    match verdict {
        Verdict::Errored { failure } => Some(failure.message.clone()),
        Verdict::Refuted { reasons } | Verdict::Held { reasons } => Some(reasons.join("\n")),
        Verdict::Unavailable { message, .. } => Some(message.clone()),
        Verdict::Unclaimed => Some("the agent ended without claiming that the step is done".to_owned()),
        Verdict::Accepted { .. } | Verdict::Asked | Verdict::HandedOver { .. } => None,
    }
}

fn notice(event: &Event, step: Option<&TaskId>, state: &Loop) -> Option<Notice> {
    let Event::WorkEnded { result, error: None, .. } = event else { return None };
    let spec = &state.task(step?)?.spec;
    match spec.work {
        Work::Notice { .. } => {
            Some(Notice { step: spec.id.clone(), title: spec.title.clone(), message: result.clone() })
        }
        Work::Agent
        | Work::Command { .. }
        | Work::File { .. }
        | Work::McpCall { .. }
        | Work::Gate { .. }
        | Work::Flow { .. } => None,
    }
}

/// What an event is to people, as it is; nothing for those that only the engine needs.
fn said(event: &Event, step: Option<&TaskId>) -> Option<String> {
    let step = step.map_or("", TaskId::as_str);
    Some(match event {
        Event::RunStarted { run, .. } => format!("run {run} began"),
        Event::RunResumed { run, .. } => format!("run {run} went on"),
        Event::IterationStarted { iteration, task, attempt, command, .. } => {
            format!("{task}: iteration {iteration}, attempt {attempt}: {}", short(command))
        }
        Event::CallStarted { server, tool, params, .. } => {
            format!("{step}: calls {} of {} with {}", short(tool), short(server), short(&params.excerpt))
        }
        Event::WorkEnded { error: Some(failure), uncertain: true, .. } => {
            format!("{step}: nobody knows whether it happened: {}", short(&failure.message))
        }
        Event::WorkEnded { error: Some(failure), .. } => {
            format!("{step}: failed: {}", short(&failure.message))
        }
        Event::WorkEnded { result, .. } => format!("{step}: succeeded: {}", short(&result.excerpt)),
        Event::AgentEnded { exit, message, .. } => {
            format!("{step}: the agent ended ({exit}): {}", short(&message.excerpt))
        }
        Event::EvidenceGathered { evidence, .. } => {
            format!("{step}: check {}: {}", short(&evidence.command), evidence.exit)
        }
        Event::TaskCompleted { task, .. } => format!("{task}: completed"),
        Event::TaskFailed { task, reason } => format!("{task}: failed for good: {}", short(reason)),
        Event::TaskSkipped { task, by } => format!("{task}: skipped by {}", short(by)),
        Event::TaskReopened { task, by } => format!("{task}: opened again by {}", short(by)),
        Event::StatusSet { task, status, by } => {
            format!("{task}: set to {} by {}", status.name(), short(by))
        }
        Event::QuestionRaised { id, question, .. } => {
            format!("{id} asked: {}", short(&question.summary))
        }
        Event::QuestionAnswered { id, answer, by } => {
            format!("{id} answered by {}: {}", short(by), short(&in_words(answer)))
        }
        Event::Paused { by } => format!("paused by {}", short(by)),
        Event::Resumed { by } => format!("resumed by {}", short(by)),
        Event::StopRequested { by } => format!("stop asked for by {}", short(by)),
        Event::Interrupted { reason, .. } => format!("{step}: interrupted: {}", short(reason)),
        Event::BacklogBroken { message } => format!("the plan cannot be read: {}", short(message)),
        Event::SkipAsked { task, by, .. } => format!("{task}: to be skipped, by {}", short(by)),
        Event::RequestRefused { why, .. } => short(why),
        Event::Noticed { message, .. } => short(message),
        Event::RunEnded { run, reason, detail } => {
            let name = wiggum_core::termination::TABLE
                .iter()
                .find(|ending| ending.reason == *reason)
                .map_or("ended", |ending| ending.name);
            format!("run {run} ended: {}: {}", short(name), short(detail))
        }
        _ => return None,
    })
}

/// An answer as people would say it.
pub(crate) fn in_words(answer: &Answer) -> String {
    match answer {
        Answer::Option { number } => format!("option {number}"),
        Answer::Words { text } => text.clone(),
        Answer::Skip => "skip".to_owned(),
        Answer::Retry => "retry".to_owned(),
        Answer::Abort => "abort".to_owned(),
        Answer::Done => "done by hand".to_owned(),
    }
}
