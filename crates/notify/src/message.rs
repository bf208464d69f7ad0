//! What is told of an event: one pure function, in the words that every surface uses.
//!
//! A message says nothing that is not in the journal, and is the same however often it is sent.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wiggum_core::event::{EndReason, Envelope, Event, Question};
use wiggum_core::ids::{LoopId, TaskId};
use wiggum_core::question::offers_words;
use wiggum_core::termination;
use wiggum_engine::desk::inbox::answer_with;
use wiggum_engine::words::{answer_words, describe, harmless, one_line};

/// More than a screen of a telephone; the rest is where the link or the command leads.
const TEXT: usize = 1500;

/// What a message is about, as `on` in the configuration names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A question waits for a person.
    Escalation,
    /// A question was answered, so that nobody else has to.
    Answer,
    /// The loop reached its goal.
    Completion,
    /// So much of a budget is spent, or all of it.
    Budget,
    /// A task was given up, or the loop ended before its goal.
    Failure,
    /// A task was begun, done, failed, skipped, opened again or set by hand.
    Transition,
    /// Something a person should know, such as a notice that a plan asks for.
    Notice,
}

impl Kind {
    pub const ALL: [Self; 7] = [
        Self::Escalation,
        Self::Answer,
        Self::Completion,
        Self::Budget,
        Self::Failure,
        Self::Transition,
        Self::Notice,
    ];

    /// What people are told if they do not say what they want to be told.
    pub const USUAL: [Self; 5] =
        [Self::Escalation, Self::Answer, Self::Completion, Self::Budget, Self::Failure];

    pub fn name(self) -> &'static str {
        match self {
            Self::Escalation => "escalation",
            Self::Answer => "answer",
            Self::Completion => "completion",
            Self::Budget => "budget",
            Self::Failure => "failure",
            Self::Transition => "transition",
            Self::Notice => "notice",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// What somebody is told.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Message {
    pub kind: Kind,
    /// One line.
    pub title: String,
    /// Some lines of plain text; may be empty.
    pub text: String,
    /// Where to look: the page, if it was served when this was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// The command that answers a question.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer_with: Option<String>,
    #[serde(rename = "loop")]
    pub of: LoopName,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskName>,
    /// With an escalation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question: Option<Asked>,
    /// With an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<Given>,
    /// With the end of a run: why it ended, one of the documented strings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The number of the event in the journal of its loop; later events have higher ones.
    pub seq: u64,
    /// When it happened.
    pub at: Timestamp,
    /// Does a task change its state by it?
    #[serde(skip)]
    pub transition: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LoopName {
    pub id: String,
    pub name: String,
    /// The name of its repository's directory.
    pub project: String,
    pub backlog: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TaskName {
    pub id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Asked {
    pub id: String,
    pub summary: String,
    pub context: String,
    pub question: String,
    pub options: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Given {
    /// The question.
    pub id: String,
    /// Who answered first.
    pub by: String,
    pub answer: String,
}

/// What is known around an event.
pub(crate) struct About<'a> {
    pub of: &'a LoopName,
    /// What a task is called, beside its id.
    pub title: &'a dyn Fn(&TaskId) -> Option<String>,
    /// The address of the page, without a token.
    pub page: Option<&'a str>,
}

/// What there is to tell of an event, if anything.
pub(crate) fn message(id: LoopId, envelope: &Envelope, about: &About<'_>) -> Option<Message> {
    let Envelope { seq, at, event, .. } = envelope;
    let (kind, headline) = headline(event)?;
    let task = task_of(event).map(|task| TaskName {
        id: task.to_string(),
        title: (about.title)(task).map(|title| one_line(&title)).filter(|title| !title.is_empty()),
    });
    let question = match event {
        Event::QuestionRaised { id, question, .. } => Some(asked(id.to_string(), question)),
        _ => None,
    };
    let answer = match event {
        Event::QuestionAnswered { id, answer, by } => {
            Some(Given { id: id.to_string(), by: one_line(by), answer: bounded(&answer_words(answer)) })
        }
        _ => None,
    };
    let reason = match event {
        Event::RunEnded { reason, .. } => Some(reason.name().to_owned()),
        _ => None,
    };
    Some(Message {
        kind,
        title: one_line(&format!("{}: {headline}", about.of.name)),
        text: bounded(&text(event, task.as_ref(), question.as_ref())),
        link: about.page.map(|page| format!("{}/#/l/{id}", page.trim_end_matches('/'))),
        answer_with: how_to_answer(event),
        of: about.of.clone(),
        task,
        question,
        answer,
        reason,
        seq: *seq,
        at: *at,
        transition: is_transition(event),
    })
}

fn how_to_answer(event: &Event) -> Option<String> {
    let Event::QuestionRaised { id, question, .. } = event else { return None };
    Some(answer_with(&id.to_string(), question.options.len(), offers_words(question), None))
}

/// The message that `wiggum notify test` sends.
pub fn trial(at: Timestamp) -> Message {
    let of = LoopName {
        id: "00000000-0000-0000-0000-000000000000".to_owned(),
        name: "test".to_owned(),
        project: "wiggum".to_owned(),
        backlog: String::new(),
    };
    Message {
        kind: Kind::Notice,
        title: "wiggum can reach you here".to_owned(),
        text: "This is a test: no loop is behind it.".to_owned(),
        link: None,
        answer_with: None,
        of,
        task: None,
        question: None,
        answer: None,
        reason: None,
        seq: 0,
        at,
        transition: false,
    }
}

/// What is worth telling, and how it is called. The others are for those who follow the journal.
fn headline(event: &Event) -> Option<(Kind, String)> {
    Some(match event {
        Event::QuestionRaised { id, task, .. } => {
            let about = task.as_ref().map(|task| format!(" about {task}")).unwrap_or_default();
            (Kind::Escalation, format!("{id} waits for you{about}"))
        }
        Event::QuestionAnswered { id, by, .. } => (Kind::Answer, format!("{id} was answered by {by}")),
        Event::BudgetAlert { .. } => (Kind::Budget, describe(event)),
        Event::RunEnded { reason, detail, .. } => {
            (ending(*reason), termination::headline(*reason, detail).to_owned())
        }
        Event::TaskFailed { task, .. } => (Kind::Failure, format!("{task} was given up")),
        Event::Noticed { .. } | Event::RequestRefused { .. } => (Kind::Notice, "a notice".to_owned()),
        Event::IterationStarted { .. }
        | Event::TaskCompleted { .. }
        | Event::TaskSkipped { .. }
        | Event::TaskReopened { .. }
        | Event::StatusSet { .. } => (Kind::Transition, describe(event)),
        Event::SkipAsked { .. }
        | Event::LoopCreated { .. }
        | Event::LoopMoved { .. }
        | Event::BaselineStarted { .. }
        | Event::BaselineChecked { .. }
        | Event::TaskBaselineChecked { .. }
        | Event::RepairPlanned { .. }
        | Event::RunStarted { .. }
        | Event::RunResumed { .. }
        | Event::BacklogRead { .. }
        | Event::BacklogBroken { .. }
        | Event::StatusWritten { .. }
        | Event::AgentEnded { .. }
        | Event::CallStarted { .. }
        | Event::WorkEnded { .. }
        | Event::AgentReported { .. }
        | Event::CommitsFound { .. }
        | Event::TreeTaken { .. }
        | Event::SkipsCommitted { .. }
        | Event::TreeAltered { .. }
        | Event::EvidenceGathered { .. }
        | Event::CleanChecked { .. }
        | Event::WorkInspected { .. }
        | Event::Judged { .. }
        | Event::WorkKept { .. }
        | Event::WorkspaceReset { .. }
        | Event::CommitRefused { .. }
        | Event::StatusPutBack { .. }
        | Event::Nudged { .. }
        | Event::HealthChanged { .. }
        | Event::HandoffStarted { .. }
        | Event::Checkpointed { .. }
        | Event::RestoreStarted { .. }
        | Event::Restored { .. }
        | Event::Paused { .. }
        | Event::Resumed { .. }
        | Event::StopRequested { .. }
        | Event::Interrupted { .. }
        | Event::UserChangesSetAside { .. }
        | Event::UserChangesPutBack { .. }
        | Event::BudgetAsked { .. }
        // The end of the run or of its task follows, and is told.
        | Event::BudgetReached { .. }
        | Event::UsageSeen { .. }
        | Event::Charged { .. } => return None,
    })
}

fn ending(reason: EndReason) -> Kind {
    match reason {
        EndReason::GoalAchieved => Kind::Completion,
        EndReason::BudgetExhausted => Kind::Budget,
        EndReason::CircuitBreakerOpen
        | EndReason::HealthFailure
        | EndReason::ConsecutiveErrors
        | EndReason::MaxIterations
        | EndReason::MaxDuration
        | EndReason::NoProgress
        | EndReason::PersonNeeded
        | EndReason::ExplicitStop => Kind::Failure,
    }
}

fn is_transition(event: &Event) -> bool {
    matches!(
        event,
        Event::IterationStarted { .. }
            | Event::TaskCompleted { .. }
            | Event::TaskFailed { .. }
            | Event::TaskSkipped { .. }
            | Event::TaskReopened { .. }
            | Event::StatusSet { .. }
    )
}

fn task_of(event: &Event) -> Option<&TaskId> {
    match event {
        Event::QuestionRaised { task, .. }
        | Event::Noticed { task, .. }
        | Event::RequestRefused { task, .. }
        | Event::BudgetAlert { task, .. } => task.as_ref(),
        Event::IterationStarted { task, .. }
        | Event::TaskCompleted { task, .. }
        | Event::TaskFailed { task, .. }
        | Event::TaskSkipped { task, .. }
        | Event::TaskReopened { task, .. }
        | Event::StatusSet { task, .. } => Some(task),
        _ => None,
    }
}

fn asked(id: String, question: &Question) -> Asked {
    Asked {
        id,
        summary: bounded(&question.summary),
        context: bounded(&question.context),
        question: bounded(&question.question),
        options: question.options.iter().map(|option| bounded(option)).collect(),
    }
}

fn text(event: &Event, task: Option<&TaskName>, question: Option<&Asked>) -> String {
    let title = task.and_then(|task| Some(format!("{}: {}", task.id, task.title.as_ref()?)));
    let mut lines: Vec<String> = title.into_iter().collect();
    match event {
        Event::RunEnded { reason, detail, .. } => {
            lines.push(detail.clone());
            lines.push(reason.ending().hint.to_owned());
        }
        Event::TaskFailed { reason, .. } => lines.push(reason.clone()),
        Event::QuestionAnswered { answer, .. } => lines.push(answer_words(answer)),
        Event::Noticed { message: words, .. } | Event::RequestRefused { why: words, .. } => {
            lines.push(words.clone())
        }
        _ => {}
    }
    if let Some(Asked { summary, context, question, options, .. }) = question {
        lines.extend([summary.clone(), context.clone(), question.clone()]);
        lines.extend(options.iter().enumerate().map(|(index, option)| format!("{}. {option}", index + 1)));
    }
    lines.retain(|line| !line.trim().is_empty());
    lines.join("\n")
}

/// Text of others, harmless and of a length that every receiver takes.
fn bounded(text: &str) -> String {
    let text = harmless(text);
    let text = text.trim();
    match text.char_indices().nth(TEXT) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;
    use wiggum_core::budget::{Scope, Unit};
    use wiggum_core::event::{Answer, EVENT_VERSION, QuestionKind};
    use wiggum_core::ids::QuestionId;

    fn of() -> LoopName {
        let text = |text: &str| text.to_owned();
        LoopName { id: text("1"), name: text("main"), project: text("p"), backlog: text("PRD.json") }
    }

    fn told(event: Event) -> Option<Message> {
        let at = "2026-11-15T12:00:00Z".parse().unwrap();
        let envelope = Envelope { v: EVENT_VERSION, seq: 7, id: Uuid::nil(), at, epoch: 1, event };
        let of = of();
        let title = |task: &TaskId| (task.as_str() == "A").then(|| "Add \x1b[31mlogin".to_owned());
        let about = About { of: &of, title: &title, page: Some("http://127.0.0.1:7787/") };
        message(LoopId(Uuid::nil()), &envelope, &about)
    }

    fn ended(reason: EndReason) -> Kind {
        told(Event::RunEnded { run: 1, reason, detail: String::new() }).unwrap().kind
    }

    #[test]
    fn a_question_is_told_with_all_that_is_needed_to_answer_it() {
        let question = Question {
            kind: QuestionKind::Stuck,
            summary: "no \x1b]0;x\x07access".to_owned(),
            context: String::new(),
            options: vec!["wait".to_owned(), "go on".to_owned()],
            question: "What now?".to_owned(),
        };
        let told = told(Event::QuestionRaised { id: QuestionId(1), task: Some("A".into()), question });
        let told = told.unwrap();
        assert_eq!((told.kind, told.title.as_str()), (Kind::Escalation, "main: q1 waits for you about A"));
        assert_eq!(told.text, "A: Add login\nno access\nWhat now?\n1. wait\n2. go on");
        assert_eq!(
            told.answer_with.as_deref(),
            Some("wiggum answer q1 1-2|\"your own words\"|skip|retry|done|abort")
        );
        assert_eq!(
            told.link.as_deref(),
            Some("http://127.0.0.1:7787/#/l/00000000-0000-0000-0000-000000000000")
        );
    }

    #[test]
    fn the_others_are_told_who_was_first() {
        let answer = Answer::Words { text: "use v2".to_owned() };
        let told = told(Event::QuestionAnswered { id: QuestionId(1), answer, by: "ann".to_owned() }).unwrap();
        assert_eq!((told.kind, told.title.as_str()), (Kind::Answer, "main: q1 was answered by ann"));
        assert_eq!(told.text, "use v2");
    }

    #[test]
    fn the_end_of_a_run_is_what_its_reason_is() {
        assert_eq!(ended(EndReason::GoalAchieved), Kind::Completion);
        assert_eq!(ended(EndReason::BudgetExhausted), Kind::Budget);
        assert_eq!(ended(EndReason::NoProgress), Kind::Failure);
    }

    #[test]
    fn a_budget_is_told_with_its_figures() {
        let told = told(Event::BudgetAlert {
            scope: Scope::Loop,
            task: None,
            unit: Unit::Usd,
            spent: 4.0,
            limit: 5.0,
            threshold: 0.8,
            resets_at: None,
        });
        let told = told.unwrap();
        assert_eq!(told.kind, Kind::Budget);
        assert_eq!(told.title, "main: $4.00 of $5.00 are spent (budget: loop)");
    }

    #[test]
    fn what_is_told_is_bounded_and_what_changes_a_task_is_known() {
        let told = told(Event::TaskFailed { task: "A".into(), reason: "x".repeat(9000) }).unwrap();
        assert!(told.transition && told.text.chars().count() < 1600);
        assert_eq!(self::told(Event::Paused { by: String::new() }), None);
    }

    #[test]
    fn kinds_are_called_as_they_are_written() {
        for kind in Kind::ALL {
            assert_eq!(Kind::parse(kind.name()), Some(kind));
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
        }
    }
}
