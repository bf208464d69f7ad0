//! `wiggum pause`, `resume`, `stop`, `skip`, `retry` and `answer`: requests left in the store, where
//! the engine takes them up, and what it says to them.

use std::process::ExitCode;

use serde::Serialize;
use wiggum_core::event::Request;
use wiggum_core::ids::TaskId;
use wiggum_engine::desk::inbox::Given;
use wiggum_engine::desk::post::Reply;
use wiggum_store::LoopRecord;

use crate::args::{AnswerArgs, LoopArgs, NudgeArgs, TaskArgs};
use crate::commands::{loops, print_json, refuse_inside_agent};
use crate::failure::Failure;
use crate::term;

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
    let answer = args.answer.join(" ");
    let mut loops = loops::require()?;
    let given = loops.answer_or_correct(args.of.which.as_deref(), &args.question, &answer, &who())?;
    let Given { record, request, reply } = &given;
    show(record, request, reply, args.of.output.json)
}

/// What became of a request.
#[derive(Serialize)]
struct Shown<'a> {
    loop_id: String,
    #[serde(rename = "loop")]
    name: &'a str,
    request: &'a Request,
    /// done: the engine took it up; kept: for the next run; waiting: the engine is busy.
    state: &'static str,
    message: &'a str,
}

/// Says what became of a request.
pub(crate) fn show(
    record: &LoopRecord,
    request: &Request,
    reply: &Reply,
    json: bool,
) -> Result<ExitCode, Failure> {
    let Reply { state, message } = reply;
    if json {
        let (loop_id, name) = (record.id.to_string(), record.identity.name.as_str());
        return print_json(&Shown { loop_id, name, request, state: state.name(), message });
    }
    Ok(term::print(&format!("{message}\n")))
}

/// Somebody's name for the journal.
pub(crate) fn who() -> String {
    let name = |variable| std::env::var(variable).ok().filter(|name: &String| !name.trim().is_empty());
    name("USER").or_else(|| name("LOGNAME")).unwrap_or_else(|| "command line".to_owned())
}

fn to_engine(
    verb: &str,
    args: &LoopArgs,
    request: &Request,
    silence: &'static str,
) -> Result<ExitCode, Failure> {
    refuse_inside_agent()?;
    let mut loops = loops::require()?;
    let record = loops.select(args.which.as_deref())?;
    let reply = loops.tell_engine(&record, verb, request, &who(), silence)?;
    show(&record, request, &reply, args.output.json)
}

fn about_task(
    args: &TaskArgs,
    request: impl Fn(TaskId) -> Request,
    silence: &'static str,
) -> Result<ExitCode, Failure> {
    refuse_inside_agent()?;
    let mut loops = loops::require()?;
    let record = loops.select(args.of.which.as_deref())?;
    let (request, reply) = loops.about_task(&record, &args.task, request, &who(), silence)?;
    show(&record, &request, &reply, args.of.output.json)
}
