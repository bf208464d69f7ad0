//! Everything that reads what others wrote, as functions over bytes: none may panic or take long,
//! whatever it is given. `fuzz/` runs the same functions under cargo-fuzz.

use std::fs;

use jiff::{Timestamp, Zoned};
use wiggum_agents::{AgentSpec, CommandAgent, Driver, Family, PromptVia};
use wiggum_backlog::Backlog;
use wiggum_core::checker;
use wiggum_core::decide::{decide, why};
use wiggum_core::event::{Envelope, Exit, Request};
use wiggum_core::ids::{QuestionId, TaskId};
use wiggum_core::policy::Policy;
use wiggum_core::redact::{Redactor, Secrets};
use wiggum_core::signal::claim::{ClaimReader, DEFAULT_PROMISES};
use wiggum_core::signal::error::failure_of;
use wiggum_core::signal::escalation::read_escalations;
use wiggum_core::state::Loop;
use wiggum_core::stream::Stream;
use wiggum_core::task::FileStatus;
use wiggum_workspace::process::CommandLine;

pub(crate) type Target = fn(&[u8]);

pub(crate) const TARGETS: [(&str, Target); 9] = [
    ("backlog", backlog),
    ("claim", claim),
    ("escalation", escalation),
    ("stream", stream),
    ("plain output and reset times", plain_output),
    ("journal", journal),
    ("recording", recording),
    ("redaction", redaction),
    ("command line", command_line),
];

pub(crate) fn backlog(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    for name in [
        "tasks.json",
        "PRD.json",
        "fix_plan.md",
        "Plan.md",
        "issues.jsonl",
        "tasks.yaml",
        "sprint-status.yaml",
        "ROADMAP.md",
    ] {
        let Ok(mut backlog) = Backlog::parse(name, text.as_ref()) else { continue };
        let first = backlog.tasks().first().map(|task| task.id.clone());
        if let Some(id) = first {
            drop(backlog.set_status(id.as_str(), FileStatus::Done));
        }
    }
}

pub(crate) fn claim(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (prompt, message) = halves(&text);
    let task = TaskId::from("T1");
    ClaimReader { task: &task, prompt, promises: DEFAULT_PROMISES, mark: None }.read(message);
    let failure = failure_of(message);
    assert!(failure.signature.len() <= message.len() + 64, "a signature is no longer than its message");
}

pub(crate) fn escalation(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (prompt, message) = halves(&text);
    assert!(read_escalations(message, prompt).len() <= 9);
}

/// In two portions, so that a line is cut somewhere.
pub(crate) fn stream(bytes: &[u8]) {
    let (first, second) = bytes.split_at(bytes.len() / 2);
    for family in Family::ALL {
        let mut parser = Family::driver(AgentSpec::new(family)).parser();
        parser.push(Stream::Stdout, first);
        parser.push(Stream::Stdout, second);
        parser.push(Stream::Stderr, first);
        parser.finish(Exit::Code { code: i32::from(bytes.len().is_multiple_of(2)) }, &now());
    }
}

pub(crate) fn plain_output(bytes: &[u8]) {
    let agent = CommandAgent { line: "agent".to_owned(), prompt_via: PromptVia::Stdin };
    let mut parser = agent.parser();
    parser.push(Stream::Stderr, bytes);
    parser.finish(Exit::Code { code: 1 }, &now());
    for line in String::from_utf8_lossy(bytes).lines() {
        wiggum_agents::trouble_in_line(line, now);
    }
}

/// A journal as it is printed, one event a line: what can be read is folded, whatever sense it makes.
pub(crate) fn journal(bytes: &[u8]) {
    let mut state = Loop::default();
    let mut read = Vec::new();
    for line in bytes.split(|byte| *byte == b'\n') {
        drop(serde_json::from_slice::<Request>(line));
        drop(serde_json::from_slice::<Policy>(line));
        let Ok(envelope) = serde_json::from_slice::<Envelope>(line) else { continue };
        state.apply(&envelope);
        read.push(envelope);
    }
    let now = state.last_at.unwrap_or(Timestamp::UNIX_EPOCH);
    for at in [Timestamp::MIN, now, Timestamp::MAX] {
        decide(&state, at);
        wiggum_engine::status::status(&state, at);
        state.tasks.iter().for_each(|entry| drop(why(&state, &entry.spec.id, at)));
    }
    checker::check(&read);
}

pub(crate) fn recording(bytes: &[u8]) {
    let Ok(directory) = tempfile::tempdir_in(wiggum_sim::fast_place()) else { return };
    let path = directory.path().join("file");
    // As it is, and as what was compressed.
    for bytes in [bytes.to_vec(), zstd_frame(bytes)] {
        if fs::write(&path, bytes).is_err() {
            return;
        }
        if let Ok(reader) = wiggum_store::recording::read(&path) {
            reader.take(10_000).for_each(drop);
        }
        if let Ok(lines) = wiggum_store::transcript::read(&path) {
            lines.take(10_000).for_each(drop);
        }
    }
}

pub(crate) fn redaction(bytes: &[u8]) {
    let secrets = Secrets::among([("MY_TOKEN".to_owned(), "s3cret-value-s3cret".to_owned())]);
    let mut redactor = Redactor::new(secrets);
    let (first, second) = bytes.split_at(bytes.len() / 2);
    let mut shown = redactor.push(first).into_owned();
    shown.extend_from_slice(&redactor.push(second));
    shown.extend_from_slice(&redactor.finish());
    assert!(!String::from_utf8_lossy(&shown).contains("s3cret-value-s3cret"));
}

pub(crate) fn command_line(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    drop(CommandLine::parse(&text));
    drop(text.parse::<QuestionId>());
}

fn halves(text: &str) -> (&str, &str) {
    text.split_at(text.floor_char_boundary(text.len() / 2))
}

/// A frame of stored, not compressed, bytes: enough for a decoder to get to what is inside.
fn zstd_frame(bytes: &[u8]) -> Vec<u8> {
    let bytes = &bytes[..bytes.len().min(120_000)];
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x58];
    let header = (bytes.len() << 3) | 1;
    frame.extend_from_slice(&header.to_le_bytes()[..3]);
    frame.extend_from_slice(bytes);
    frame
}

fn now() -> Zoned {
    Timestamp::UNIX_EPOCH.to_zoned(jiff::tz::TimeZone::UTC)
}
