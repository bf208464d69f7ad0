//! The questions the engine itself puts to people, and what their answers amount to.

use crate::event::{Answer, Failure, Question, QuestionKind};
use crate::ids::TaskId;

pub(crate) fn repeated_error(task: &TaskId, failure: &Failure, times: u32) -> Question {
    Question {
        kind: QuestionKind::Repeated,
        summary: format!("{task} failed {times} times in a row with the same error"),
        context: failure.message.clone(),
        options: Vec::new(),
        question: "How should it go on? Your words go into the next prompt.".to_owned(),
    }
}

pub(crate) fn flagged(task: &TaskId, reasons: &[String]) -> Question {
    Question {
        kind: QuestionKind::Flagged,
        summary: format!("{task} changed something it should not have"),
        context: reasons.join("\n"),
        options: vec![
            "Approve the change".to_owned(),
            "Reject it: the next attempt must do without".to_owned(),
        ],
        question: "Is that change acceptable?".to_owned(),
    }
}

pub(crate) fn failed_question(task: &TaskId, reason: &str, waiting: &[TaskId]) -> Question {
    Question {
        kind: QuestionKind::Failed,
        summary: format!("{task} failed: {reason}"),
        context: waiting_text(waiting),
        options: vec![format!("Try {task} again"), format!("Skip {task}"), "Stop the loop".to_owned()],
        question: "What should become of it? Your own words are passed on to another attempt.".to_owned(),
    }
}

/// The question about a call of which nobody knows whether it happened.
pub(crate) fn uncertain(task: &TaskId, call: &str, why: &str) -> Question {
    Question {
        kind: QuestionKind::Uncertain,
        summary: format!("{task}: nobody knows whether {call} happened"),
        context: why.to_owned(),
        options: vec![
            "It happened: the task is done".to_owned(),
            "It did not happen: call it again".to_owned(),
            format!("Skip {task}"),
            "Stop the loop".to_owned(),
        ],
        question: "Did it happen? It is not called again before somebody says so.".to_owned(),
    }
}

/// The question about work that waits on a skipped task.
pub fn blocked_question(task: &TaskId, waiting: &[TaskId]) -> Question {
    Question {
        kind: QuestionKind::Blocked,
        summary: format!("{} on {task}, which was skipped", waits(waiting)),
        context: String::new(),
        options: vec![
            format!("Work on {task} after all"),
            format!("Skip {}", list(waiting)),
            "Stop the loop".to_owned(),
        ],
        question: "How should it go on?".to_owned(),
    }
}

fn waiting_text(waiting: &[TaskId]) -> String {
    if waiting.is_empty() { String::new() } else { format!("{} on it.", waits(waiting)) }
}

fn waits(waiting: &[TaskId]) -> String {
    format!("{} {}", list(waiting), if waiting.len() == 1 { "waits" } else { "wait" })
}

fn list(tasks: &[TaskId]) -> String {
    const SHOWN: usize = 5;
    let mut text = tasks.iter().take(SHOWN).map(TaskId::as_str).collect::<Vec<_>>().join(", ");
    if tasks.len() > SHOWN {
        text.push_str(&format!(" and {} more", tasks.len() - SHOWN));
    }
    text
}

/// What an answer amounts to for the task it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meaning {
    Guide(String),
    Approve,
    Retry,
    Skip,
    SkipDependents,
    Abort,
    Done,
}

/// Reads an answer in the light of its question.
pub fn meaning(question: &Question, answer: &Answer) -> Meaning {
    match answer {
        Answer::Words { text } => Meaning::Guide(text.clone()),
        Answer::Skip if question.kind == QuestionKind::Blocked => Meaning::SkipDependents,
        Answer::Skip => Meaning::Skip,
        Answer::Retry => Meaning::Retry,
        Answer::Abort => Meaning::Abort,
        Answer::Done => Meaning::Done,
        Answer::Option { number } => chosen(question, *number),
    }
}

fn chosen(question: &Question, number: u32) -> Meaning {
    match (question.kind, number) {
        (QuestionKind::Failed | QuestionKind::Blocked, 1) => Meaning::Retry,
        (QuestionKind::Failed, 2) => Meaning::Skip,
        (QuestionKind::Blocked, 2) => Meaning::SkipDependents,
        (QuestionKind::Failed | QuestionKind::Blocked, _) => Meaning::Abort,
        (QuestionKind::Flagged, 1) => Meaning::Approve,
        (QuestionKind::Uncertain, 1) => Meaning::Done,
        (QuestionKind::Uncertain, 2) => Meaning::Retry,
        (QuestionKind::Uncertain, 3) => Meaning::Skip,
        (QuestionKind::Uncertain, _) => Meaning::Abort,
        (
            QuestionKind::Stuck
            | QuestionKind::Deviation
            | QuestionKind::Repeated
            | QuestionKind::Flagged
            | QuestionKind::Unresponsive,
            number,
        ) => {
            let text = usize::try_from(number).ok().and_then(|n| question.options.get(n.wrapping_sub(1)));
            Meaning::Guide(match text {
                Some(text) => format!("To \"{}\": proceed with option {number}: {text}", question.summary),
                None => format!("Proceed with option {number}."),
            })
        }
    }
}
