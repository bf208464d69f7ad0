//! `wiggum pause`, `resume`, `stop`, `skip`, `retry` and `answer`: requests left in the store, where
//! the engine takes them up.
//!
//! Where an engine lives, the answer is what it made of the request; otherwise the request is kept
//! for the next run, if it still makes sense then.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde::Serialize;
use wiggum_core::event::{Answer, Event, Request};
use wiggum_core::ids::{QuestionId, Seq, TaskId};
use wiggum_core::state::Loop;
use wiggum_core::tasks::TaskState;
use wiggum_engine::wake;
use wiggum_store::{LoopRecord, RequestId};

use crate::args::{AnswerArgs, LoopArgs, NudgeArgs, TaskArgs};
use crate::commands::describe::describe;
use crate::commands::inbox::waiting_answer;
use crate::commands::loops::Loops;
use crate::commands::watch::{Happened, Watch};
use crate::commands::{print_json, refuse_inside_agent};
use crate::failure::Failure;
use crate::narrate::answer_words;
use crate::term;

/// How long we wait for the engine's word. It takes requests up within a tenth of a second, unless
/// it is just committing.
const PATIENCE: Duration = Duration::from_secs(2);

/// How many tasks a message names.
const NAMED: usize = 20;

pub(crate) fn pause(args: &LoopArgs) -> Result<ExitCode, Failure> {
    to_engine("pause", args, &Request::Pause, "already paused")
}

pub(crate) fn resume(args: &LoopArgs) -> Result<ExitCode, Failure> {
    to_engine("resume", args, &Request::Resume, "not paused")
}

pub(crate) fn stop(args: &LoopArgs) -> Result<ExitCode, Failure> {
    to_engine("stop", args, &Request::Stop, "stop asked for")
}

pub(crate) fn handoff(args: &LoopArgs) -> Result<ExitCode, Failure> {
    to_engine("hand over", args, &Request::Handoff, "the agent is wrapping up already")
}

pub(crate) fn nudge(args: &NudgeArgs) -> Result<ExitCode, Failure> {
    let request = Request::Nudge { text: args.text.clone() };
    to_engine("nudge", &args.of, &request, "waits for the agent's next tool call")
}

pub(crate) fn skip(args: &TaskArgs) -> Result<ExitCode, Failure> {
    about_task(args, |task| Request::Skip { task }, "already skipped")
}

pub(crate) fn retry(args: &TaskArgs) -> Result<ExitCode, Failure> {
    about_task(args, |task| Request::Retry { task }, "open already")
}

pub(crate) fn answer(args: &AnswerArgs) -> Result<ExitCode, Failure> {
    refuse_inside_agent()?;
    let mut loops = Loops::require()?;
    let id = args.question.parse::<QuestionId>().map_err(|_| {
        Failure::usage(format!("`{}` is not a question's id", args.question))
            .hint("questions are called q1, q2 …: see `wiggum inbox`")
    })?;
    let (record, options) = find_question(&loops, id, args.of.which.as_deref())?;
    let answer = understand(&args.answer, id, options)?;
    if let Some(given) = waiting_answer(&loops, &record, &id.to_string())? {
        return Err(Failure::usage(format!("{id} is answered already: {}", answer_words(&given)))
            .hint("`wiggum run` takes the answer up"));
    }
    let request = Request::Answer { question: id, answer };
    let settled = Settled { silence: "answered", takes_time: false };
    send(&mut loops, &record, &request, &settled, args.of.output.json)
}

/// What it means when the engine took up a request.
pub(crate) struct Settled {
    /// What to say when nothing happened because of it.
    pub(crate) silence: &'static str,
    /// It is only done once an agent is gone, some time after it was taken up.
    pub(crate) takes_time: bool,
}

/// A request in the store.
struct Posted<'a> {
    id: RequestId,
    request: &'a Request,
    /// Where the journal stood before.
    before: Seq,
}

/// What became of a request.
#[derive(Serialize)]
struct Reply<'a> {
    loop_id: String,
    #[serde(rename = "loop")]
    name: &'a str,
    request: &'a Request,
    /// done: the engine took it up; kept: for the next run; waiting: the engine is busy.
    state: &'static str,
    message: String,
}

/// Leaves a request and says what became of it.
pub(crate) fn send(
    loops: &mut Loops,
    record: &LoopRecord,
    request: &Request,
    settled: &Settled,
    json: bool,
) -> Result<ExitCode, Failure> {
    let (state, message) = deliver(loops, record, request, settled)?;
    if json {
        let (loop_id, name) = (record.id.to_string(), record.identity.name.as_str());
        return print_json(&Reply { loop_id, name, request, state, message });
    }
    Ok(term::print(&format!("{message}\n")))
}

/// Leaves a request; what became of it, in a word and in words.
pub(crate) fn deliver(
    loops: &mut Loops,
    record: &LoopRecord,
    request: &Request,
    settled: &Settled,
) -> Result<(&'static str, String), Failure> {
    let engine = loops.engine(record.id)?;
    // Watching starts first, so that nothing the engine does is missed.
    let watch = Watch::new(&loops.dir, record.id);
    let before = loops.store.last_seq(record.id)?;
    let id = loops.store.post(record.id, request, &who(), Timestamp::now())?;
    let posted = Posted { id, request, before };
    Ok(if engine.alive().is_some() {
        wake::wake(&loops.dir, record.id)
            .map_err(|error| Failure::other(format!("cannot wake the loop: {error}")))?;
        match outcome(loops, record, &posted, settled, &watch)? {
            Outcome::Happened(what) => ("done", what.unwrap_or_else(|| settled.silence.to_owned())),
            Outcome::Refused(why) => return Err(Failure::usage(why)),
            Outcome::Stopping => ("waiting", "its agent is being stopped, then it is skipped".to_owned()),
            Outcome::NotYet => ("waiting", "the loop is busy and takes it up as soon as it can".to_owned()),
        }
    } else {
        ("kept", "kept: no engine runs now, the next `wiggum run` takes it up".to_owned())
    })
}

/// Somebody's name for the journal.
pub(crate) fn who() -> String {
    let name = |variable| std::env::var(variable).ok().filter(|name: &String| !name.trim().is_empty());
    name("USER").or_else(|| name("LOGNAME")).unwrap_or_else(|| "command line".to_owned())
}

/// The task a loop knows by this id, or which there are.
pub(crate) fn require_task(state: &Loop, id: &str) -> Result<TaskId, Failure> {
    let id = TaskId::from(id);
    if state.task(&id).is_some_and(|entry| !entry.is_removed()) {
        return Ok(id);
    }
    let known: Vec<&str> = state.tasks.iter().map(|entry| entry.spec.id.as_str()).collect();
    Err(unknown_task(id.as_str(), &known))
}

pub(crate) fn unknown_task(id: &str, known: &[&str]) -> Failure {
    let mut text = known.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
    if known.len() > NAMED {
        text.push_str(&format!(" and {} more", known.len() - NAMED));
    }
    Failure::usage(format!("no task `{id}`")).hint(format!("there are: {text}"))
}

fn to_engine(
    verb: &str,
    args: &LoopArgs,
    request: &Request,
    silence: &'static str,
) -> Result<ExitCode, Failure> {
    refuse_inside_agent()?;
    let mut loops = Loops::require()?;
    let record = loops.select(args.which.as_deref())?;
    if loops.engine(record.id)?.alive().is_none() {
        return Err(Failure::usage(format!("cannot {verb} loop {}: it does not run", record.identity.name))
            .hint("`wiggum status` shows where it stands, `wiggum run` starts it"));
    }
    send(&mut loops, &record, request, &Settled { silence, takes_time: false }, args.output.json)
}

fn about_task(
    args: &TaskArgs,
    request: impl Fn(TaskId) -> Request,
    silence: &'static str,
) -> Result<ExitCode, Failure> {
    refuse_inside_agent()?;
    let mut loops = Loops::require()?;
    let record = loops.select(args.of.which.as_deref())?;
    let state = loops.state(record.id)?;
    let task = require_task(&state, &args.task)?;
    let running = state.task(&task).is_some_and(|entry| entry.state == TaskState::Running);
    let request = request(task);
    let takes_time = running && matches!(request, Request::Skip { .. });
    send(&mut loops, &record, &request, &Settled { silence, takes_time }, args.of.output.json)
}

enum Outcome {
    /// What the journal says of it, if anything.
    Happened(Option<String>),
    Refused(String),
    Stopping,
    NotYet,
}

fn outcome(
    loops: &Loops,
    record: &LoopRecord,
    posted: &Posted<'_>,
    settled: &Settled,
    watch: &Watch,
) -> Result<Outcome, Failure> {
    let Posted { id, request, before } = *posted;
    let deadline = Instant::now() + PATIENCE;
    loop {
        let handled = !loops.store.pending(record.id)?.iter().any(|pending| pending.id == id);
        let found = if handled { said(loops, record, before, request)? } else { None };
        if let Some(found) = found {
            return Ok(found);
        }
        if handled && !settled.takes_time {
            return Ok(Outcome::Happened(None));
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() || watch.wait(Some(left)) == Happened::Nothing {
            return Ok(if handled { Outcome::Stopping } else { Outcome::NotYet });
        }
    }
}

/// What the engine said to this request since.
fn said(
    loops: &Loops,
    record: &LoopRecord,
    before: Seq,
    request: &Request,
) -> Result<Option<Outcome>, Failure> {
    let mut found = None;
    loops.store.for_each(record.id, before, |envelope| {
        if found.is_none() {
            found = as_answer(&envelope.event, request);
        }
    })?;
    Ok(found)
}

/// Others may ask at the same time, so only what is about the same thing counts.
fn as_answer(event: &Event, request: &Request) -> Option<Outcome> {
    let subject = match request {
        Request::Pause | Request::Resume | Request::Stop | Request::Checkpoint => None,
        Request::Report { .. } => Some("report".to_owned()),
        Request::Handoff => Some("handoff".to_owned()),
        Request::Nudge { .. } => Some("nudge".to_owned()),
        Request::Skip { task } | Request::Retry { task } | Request::SetStatus { task, .. } => {
            Some(task.to_string())
        }
        Request::Answer { question, .. } => Some(question.to_string()),
    };
    if let (Event::Noticed { message, .. }, Some(subject)) = (event, subject) {
        return message.contains(&subject).then(|| Outcome::Refused(message.clone()));
    }
    let done = match request {
        Request::Pause => matches!(event, Event::Paused { .. }),
        Request::Resume => matches!(event, Event::Resumed { .. }),
        Request::Stop => matches!(event, Event::StopRequested { .. }),
        Request::Checkpoint => matches!(event, Event::Checkpointed { by, .. } if *by == who()),
        Request::Handoff => matches!(event, Event::HandoffStarted { .. }),
        Request::Report { report, .. } => {
            matches!(event, Event::AgentReported { report: of, .. } if of == report)
        }
        Request::Skip { task } => {
            // It may end by itself before its agent could be stopped.
            matches!(event, Event::TaskSkipped { task: of, .. } | Event::TaskCompleted { task: of, .. } if of == task)
        }
        Request::Nudge { text } => matches!(event, Event::Nudged { text: of, .. } if of == text),
        Request::Retry { task } => matches!(event, Event::TaskReopened { task: of, .. } if of == task),
        Request::SetStatus { task, .. } => matches!(event, Event::StatusSet { task: of, .. } if of == task),
        Request::Answer { question, .. } => {
            matches!(event, Event::QuestionAnswered { id, .. } if id == question)
        }
    };
    done.then(|| Outcome::Happened(Some(describe(event))))
}

/// The loop in which a question is open, and how many options it has.
fn find_question(loops: &Loops, id: QuestionId, which: Option<&str>) -> Result<(LoopRecord, usize), Failure> {
    let records = match which {
        Some(which) => vec![loops.select(Some(which))?],
        None => loops.all()?,
    };
    let (mut found, mut open) = (Vec::new(), Vec::new());
    for record in records {
        for question in loops.status(&record)?.questions {
            if question.id == id.to_string() {
                found.push((record.clone(), question.options.len()));
            }
            open.push(question.id);
        }
    }
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => Err(Failure::usage(format!("{id} is not open")).hint(match &open[..] {
            [] => "no question is".to_owned(),
            open => format!("open are: {}", open.join(", ")),
        })),
        _ => {
            let names: Vec<&str> = found.iter().map(|(record, _)| record.identity.name.as_str()).collect();
            Err(Failure::usage(format!("{id} is open in several loops: {}", names.join(", ")))
                .hint("name one with --loop"))
        }
    }
}

fn understand(text: &str, id: QuestionId, options: usize) -> Result<Answer, Failure> {
    let text = text.trim();
    match text.to_lowercase().as_str() {
        "" => return Err(Failure::usage("the answer is empty")),
        "skip" => return Ok(Answer::Skip),
        "retry" => return Ok(Answer::Retry),
        "abort" => return Ok(Answer::Abort),
        "done" => return Ok(Answer::Done),
        _ => {}
    }
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(Answer::Words { text: text.to_owned() });
    }
    match text.parse::<u32>() {
        Ok(number) if usize::try_from(number).is_ok_and(|n| (1..=options).contains(&n)) => {
            Ok(Answer::Option { number })
        }
        Ok(_) | Err(_) => Err(Failure::usage(format!("{id} has no option {text}")).hint(match options {
            0 => "it has no options: answer in your own words, or with skip, retry or abort".to_owned(),
            1 => "it has option 1; your own words, skip, retry and abort are fine too".to_owned(),
            _ => format!("it has options 1 to {options}; your own words, skip, retry and abort are fine too"),
        })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_options_words_or_commands() {
        let check = |text: &str, options: usize, expected: Option<Answer>| {
            assert_eq!(understand(text, QuestionId(1), options).ok(), expected, "{text:?}");
        };
        let words = |text: &str| Some(Answer::Words { text: text.to_owned() });
        check("2", 2, Some(Answer::Option { number: 2 }));
        check("3", 2, None);
        check("0", 2, None);
        check("1", 0, None);
        check("99999999999", 2, None);
        check("Skip", 0, Some(Answer::Skip));
        check(" retry ", 0, Some(Answer::Retry));
        check("abort", 3, Some(Answer::Abort));
        check("use the v2 API", 3, words("use the v2 API"));
        check("2 of them", 3, words("2 of them"));
        check("  ", 3, None);
    }
}
