//! The questions the engine itself puts to people, which answers they take, and what those amount to.
//!
//! Own words are for an agent, which reads them in its next prompt. Work that the engine does itself has
//! nobody who would read them, and doing it again because somebody said something about it could send a
//! mail that they said not to send. So words are not taken there, and the question stays open.

use crate::event::{Answer, Failure, Question, QuestionKind};
use crate::ids::{QuestionId, TaskId};
use crate::signal::error::decisive_lines;
use crate::state::{Loop, OpenQuestion};
use crate::task::Work;

/// Options of a question about failed work that has no agent: "done" is the third of them. With an agent
/// there are three.
const WITH_DONE: usize = 4;

pub(crate) fn repeated_error(task: &TaskId, failure: &Failure, times: u32) -> Question {
    Question {
        kind: QuestionKind::Repeated,
        summary: format!("{task} failed {times} times in a row with the same error"),
        context: failure.message.clone(),
        options: Vec::new(),
        question: "How should it go on? Your words go into the next prompt.".to_owned(),
    }
}

pub(crate) fn repeated_evidence(task: &TaskId, failing: &str, times: u32) -> Question {
    Question {
        kind: QuestionKind::Repeated,
        summary: format!("{task} said done {times} times, and the same checks failed each time"),
        context: failing.to_owned(),
        options: Vec::new(),
        question: "How should it go on? Your words go into the next prompt.".to_owned(),
    }
}

pub(crate) fn repeated_refusal(task: &TaskId, output: &str, times: u32) -> Question {
    Question {
        kind: QuestionKind::Repeated,
        summary: format!(
            "a git hook refused the commit of {task} {times} times, and said the same each time"
        ),
        context: decisive_lines(output).join("\n"),
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
            "Accept it: the work is committed as it is, if the checks pass".to_owned(),
            "Reject it: the next attempt must do without".to_owned(),
        ],
        question: "Is that change acceptable?".to_owned(),
    }
}

pub(crate) fn failed_question(task: &TaskId, work: &Work, reason: &str, waiting: &[TaskId]) -> Question {
    let mut options = vec![format!("Try {task} again"), format!("Skip {task}"), "Stop the loop".to_owned()];
    let question = if work.is_agents() {
        "What should become of it? Your own words are passed on to another attempt.".to_owned()
    } else {
        options.insert(2, format!("{task} is done by hand: go on behind it"));
        format!("What should become of it? Answer retry, skip or done: {task} {}.", no_reader(work))
    };
    Question {
        kind: QuestionKind::Failed,
        summary: format!("{task} failed: {reason}"),
        context: waiting_text(waiting),
        options,
        question,
    }
}

/// What kind of work it is that nobody reads words for.
fn no_reader(work: &Work) -> &'static str {
    match work {
        Work::Agent => "is an agent's work",
        Work::McpCall { .. } => "calls a tool, which does not read words",
        Work::File { .. } => "writes a file as it is given, so nobody reads words",
        Work::Notice { .. } => "gives notice as it is written, so nobody reads words",
        Work::Command { .. } | Work::Gate { .. } | Work::Flow { .. } => "has no agent that reads words",
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

/// Does a question offer to take words, by what it says itself? What it is about is not known here.
pub fn offers_words(question: &Question) -> bool {
    match question.kind {
        QuestionKind::Uncertain | QuestionKind::Baseline => false,
        QuestionKind::Failed => question.options.len() != WITH_DONE,
        QuestionKind::Blocked
        | QuestionKind::Stuck
        | QuestionKind::Deviation
        | QuestionKind::Repeated
        | QuestionKind::Flagged
        | QuestionKind::Unresponsive => true,
    }
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
    /// With checks that fail already.
    GoOn,
    /// The checks that fail already first.
    Repair,
}

/// Reads an answer in the light of its question.
pub fn meaning(question: &Question, answer: &Answer) -> Meaning {
    match answer {
        Answer::Skip if question.kind == QuestionKind::Baseline => Meaning::GoOn,
        Answer::Done if question.kind == QuestionKind::Baseline => Meaning::Retry,
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
    let has_done = question.options.len() == WITH_DONE;
    match (question.kind, number) {
        (QuestionKind::Failed, 3) if has_done => Meaning::Done,
        (QuestionKind::Failed | QuestionKind::Blocked, 1) => Meaning::Retry,
        (QuestionKind::Failed, 2) => Meaning::Skip,
        (QuestionKind::Blocked, 2) => Meaning::SkipDependents,
        (QuestionKind::Failed | QuestionKind::Blocked, _) => Meaning::Abort,
        (QuestionKind::Flagged, 1) => Meaning::Approve,
        (QuestionKind::Uncertain, 1) => Meaning::Done,
        (QuestionKind::Uncertain, 2) => Meaning::Retry,
        (QuestionKind::Uncertain, 3) => Meaning::Skip,
        (QuestionKind::Uncertain, _) => Meaning::Abort,
        (QuestionKind::Baseline, 1) => Meaning::GoOn,
        (QuestionKind::Baseline, 3) => Meaning::Repair,
        (QuestionKind::Baseline, _) => Meaning::Abort,
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

/// A single word that begins one option, as in `accept`, means that option.
pub fn as_option(question: &Question, answer: &Answer) -> Answer {
    let Answer::Words { text } = answer else { return answer.clone() };
    let word = text.trim();
    let begins = |option: &String| {
        option.split_whitespace().next().is_some_and(|first| first.eq_ignore_ascii_case(word))
    };
    let mut fitting =
        (1..).zip(&question.options).filter(|(_, option)| begins(option)).map(|(number, _)| number);
    match (fitting.next(), fitting.next()) {
        (Some(number), None) => Answer::Option { number },
        (None | Some(_), _) => answer.clone(),
    }
}

impl Loop {
    /// Does somebody read words that are said to this question?
    pub fn takes_words(&self, asked: &OpenQuestion) -> bool {
        let is_choice = matches!(asked.question.kind, QuestionKind::Uncertain | QuestionKind::Baseline);
        !is_choice && self.own_work_of(asked).is_none()
    }

    /// Why an answer to an open question is not taken, for people to read. The question stays open.
    pub fn refusal(&self, id: QuestionId, answer: &Answer) -> Option<String> {
        let asked = self.questions.get(&id)?;
        let (question, options) = (&asked.question, asked.question.options.len());
        let answer = &as_option(question, answer);
        let still_open = |why: String| Some(format!("{id} is still open: {why}"));
        match answer {
            Answer::Option { number } if !has_option(options, *number) => {
                return Some(format!("{id} has no option {number}"));
            }
            // Whatever was meant, it must not be taken for leave to call again.
            Answer::Words { .. } if question.kind == QuestionKind::Uncertain => {
                return still_open("did it happen? Answer done, retry, skip or abort".to_owned());
            }
            Answer::Words { .. } if question.kind == QuestionKind::Baseline => {
                return still_open("choose one of its options".to_owned());
            }
            Answer::Done if question.kind == QuestionKind::Unresponsive => {
                return still_open("an agent is at work on it; skip it, or answer with an option".to_owned());
            }
            Answer::Option { .. }
            | Answer::Words { .. }
            | Answer::Skip
            | Answer::Retry
            | Answer::Abort
            | Answer::Done => {}
        }
        match (meaning(question, answer), self.own_work_of(asked)) {
            (Meaning::Guide(_), Some((task, work))) => {
                still_open(format!("{task} {}; answer retry, skip, done or abort", no_reader(work)))
            }
            (
                Meaning::Guide(_)
                | Meaning::Approve
                | Meaning::Retry
                | Meaning::Skip
                | Meaning::SkipDependents
                | Meaning::Abort
                | Meaning::Done
                | Meaning::GoOn
                | Meaning::Repair,
                _,
            ) => None,
        }
    }

    /// The work without an agent that a question is about.
    fn own_work_of<'l>(&'l self, asked: &'l OpenQuestion) -> Option<(&'l TaskId, &'l Work)> {
        let task = asked.task.as_ref()?;
        let work = &self.task(task)?.spec.work;
        (!work.is_agents()).then_some((task, work))
    }
}

fn has_option(options: usize, number: u32) -> bool {
    usize::try_from(number).is_ok_and(|number| (1..=options).contains(&number))
}
