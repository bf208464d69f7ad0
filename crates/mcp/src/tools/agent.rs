//! Tools by which the agent of a loop speaks for itself. They are told apart by iteration and attempt, so
//! that nobody speaks for an agent that came later.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use wiggum_core::event::{self as core, Event, Question, QuestionKind, Request};
use wiggum_engine::reports::{self, Report};
use wiggum_engine::words::describe;

use super::{About, Effect, Entry, Whom, reply_shape};
use crate::office::{Assignment, Audience, Office};
use crate::refusal::Refusal;

/// An engine that is just committing takes this long at most.
const PATIENCE: Duration = Duration::from_secs(5);

/// A sentence, and a page or two.
const MAX_LINE: usize = 1024;
const MAX_TEXT: usize = 16 * 1024;
const MAX_OPTIONS: usize = 20;

pub(super) fn entries() -> Vec<Entry> {
    let about = |name, title, description, effect| About {
        name,
        title,
        description,
        output: reply_shape(),
        effect,
        whom: Whom::Agents,
    };
    vec![
        Entry::new(
            about(
                "report_progress",
                "Report progress",
                "Says that you are alive and what you are doing, in a sentence. Call it now and then while \
                 something takes long (a build, a big test run): an agent that shows no progress is taken \
                 for stuck and ended. It changes nothing else.",
                Effect::Adds,
            ),
            |office, ProgressInput { message }: ProgressInput| {
                say(office, core::Report::Progress { text: bounded("message", &message, MAX_LINE)? })
            },
        ),
        Entry::new(
            about(
                "claim_done",
                "Claim that the task is done",
                "Claims that all of your task is done. Call it once, when every criterion holds and you saw \
                 the checks pass; then finish. The checks are run again without you, and the claim counts only \
                 if they pass: one that is not true costs an attempt. Say what you did and how you know.",
                Effect::Sets,
            ),
            |office, ClaimInput { summary }: ClaimInput| {
                say(office, core::Report::Done { text: bounded("summary", &summary, MAX_TEXT)? })
            },
        ),
        Entry::new(
            about(
                "raise_escalation",
                "Ask a person",
                "Puts a question to a person, and stops the work on this task until it is answered. Use \
                 `stuck` when you cannot make progress (access, a decision, information is missing) and \
                 `deviation` when you could go on but should not without approval. Give what you know in \
                 `context` and the ways to go on in `options`. Then end your work: the answer reaches the next \
                 attempt.",
                Effect::Adds,
            ),
            escalate,
        ),
    ]
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ProgressInput {
    /// What you are doing, in a sentence
    message: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ClaimInput {
    /// What was done, and how you know that it works
    summary: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EscalationInput {
    /// Why a person is needed
    #[serde(rename = "type")]
    kind: Escalation,
    /// The matter in one line
    summary: String,
    /// What you know and what you tried
    #[serde(default)]
    context: String,
    /// The ways to go on, of which the person may choose one
    #[serde(default)]
    options: Vec<String>,
    /// What you want to know
    question: String,
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Escalation {
    /// No progress is possible
    Stuck,
    /// Going on needs approval
    Deviation,
}

fn escalate(office: &Office, input: EscalationInput) -> Result<Value, Refusal> {
    let EscalationInput { kind, summary, context, options, question } = input;
    if options.len() > MAX_OPTIONS {
        return Err(Refusal::new(format!("{} options are too many to choose from", options.len()))
            .hint(format!("give {MAX_OPTIONS} at most")));
    }
    let options: Result<Vec<String>, Refusal> =
        options.iter().map(|option| bounded("options", option, MAX_LINE)).collect();
    let question = Question {
        kind: match kind {
            Escalation::Stuck => QuestionKind::Stuck,
            Escalation::Deviation => QuestionKind::Deviation,
        },
        summary: bounded("summary", &summary, MAX_LINE)?,
        context: match context.trim() {
            "" => String::new(),
            context => bounded("context", context, MAX_TEXT)?,
        },
        options: options?,
        question: bounded("question", &question, MAX_TEXT)?,
    };
    say(office, core::Report::Question { question })
}

/// Text that is there and not too long.
fn bounded(name: &str, text: &str, most: usize) -> Result<String, Refusal> {
    match text.trim() {
        "" => Err(Refusal::new(format!("`{name}` is empty"))),
        text if text.len() > most => {
            Err(Refusal::new(format!("`{name}` has {} bytes, more than {most}", text.len()))
                .hint("put what is long into a file of the repository, and name it"))
        }
        text => Ok(text.to_owned()),
    }
}

fn say(office: &Office, report: core::Report) -> Result<Value, Refusal> {
    let Audience::Agent(of) = &office.audience else {
        return Err(Refusal::new("only the agent of a loop speaks for it"));
    };
    let request = Request::Report { iteration: of.iteration, attempt: of.attempt, report };
    self::report(office, of, request)
}

/// Puts something before the engine of the agent's own loop, and says what became of it.
pub(super) fn report(office: &Office, of: &Assignment, request: Request) -> Result<Value, Refusal> {
    let loops = office.loops()?;
    let record = office.select(&loops, None)?;
    let current = loops.status(&record)?.current;
    let is_current = current.is_some_and(|now| (now.iteration, now.attempt) == (of.iteration, of.attempt));
    if !is_current {
        return Err(Refusal::new(format!(
            "iteration {}, attempt {} is over: this came too late and was refused",
            of.iteration, of.attempt
        ))
        .hint("stop working; another attempt has begun, or the loop has ended"));
    }
    let before = loops.store.last_seq(record.id)?;
    let report = Report { iteration: of.iteration, attempt: of.attempt, request };
    let place = reports::put(&of.reports, &report)
        .map_err(|error| Refusal::new(format!("cannot reach the loop: {error}")))?;
    if !reports::is_taken(&place, PATIENCE) {
        let message = "the loop is busy and takes it up as soon as it can";
        return Ok(json!({ "state": "waiting", "message": message }));
    }
    let mut said = None;
    let mut refused = None;
    loops.store.for_each(record.id, before, |envelope| match &envelope.event {
        Event::RequestRefused { request: None, why, .. } => refused = Some(why.clone()),
        event if is_about(event, &report) => said = Some(describe(event)),
        _ => {}
    })?;
    match (said, refused) {
        (Some(message), _) => Ok(json!({ "state": "done", "message": message })),
        (None, Some(why)) => Err(Refusal::new(why)),
        (None, None) => Ok(json!({ "state": "done", "message": "taken" })),
    }
}

/// Is this what became of it?
fn is_about(event: &Event, report: &Report) -> bool {
    match (&report.request, event) {
        (Request::Report { report, .. }, Event::AgentReported { report: of, .. }) => of == report,
        (Request::Handoff, Event::HandoffStarted { .. }) => true,
        (Request::Checkpoint, Event::Checkpointed { by, .. }) => !by.is_empty(),
        _ => false,
    }
}
