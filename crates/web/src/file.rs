//! The page as one file, with all it shows inside: to look at without a server, or to send to somebody.
//!
//! It is the page of [`crate::serve`] word for word. Its scripts become one, in the order in which they need
//! each other, and where the page would ask the server it looks into the data. Script and style are allowed
//! by their hashes, and nothing else is.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use wiggum_core::ids::LoopId;
use wiggum_core::state::Loop;
use wiggum_engine::desk::attempts;
use wiggum_engine::desk::chronicle::{Chronicle, Span};
use wiggum_engine::desk::cost::By;
use wiggum_engine::desk::{Loops, health, transcripts};
use wiggum_engine::status;
use wiggum_store::LoopRecord;

use crate::api::events::EventRow;
use crate::api::loops::{LoopStatus, checkpoint, shortened, summary};
use crate::api::tasks::{Known, TaskRow, graph};
use crate::assets;
use crate::refusal::Refusal;

/// Moments the slider stops at; each holds a status and a letter for each task.
const FRAMES: u64 = 200;
/// The newest of each are in the file: somebody has to load it.
const EVENTS: u64 = 20_000;
const ATTEMPTS: usize = 300;
const ENTRIES: usize = 400;
const DIFF_LINES: usize = 3000;

/// The page of one loop, as it is now.
pub fn file(loops: &Loops, record: &LoopRecord) -> Result<String, Refusal> {
    let data = data(loops, record)?;
    // Within a script element only this could end it.
    let data = serde_json::to_string(&data).unwrap_or_default().replace('<', "\\u003c");
    let (script, style) = (script(), assets::text("style.css"));
    let policy = format!(
        "default-src 'none'; script-src '{}'; style-src '{}'; img-src data:; base-uri 'none'; form-action 'none'",
        hash(&script),
        hash(style)
    );
    let page = assets::text("index.html").lines().filter(|line| !line.starts_with("<link rel=\"icon\"")).map(
        |line| match line {
            "<meta charset=\"utf-8\">" => {
                format!("{line}\n<meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">")
            }
            "<link rel=\"stylesheet\" href=\"/style.css\">" => format!("<style>{style}</style>"),
            "<script type=\"module\" src=\"/main.js\"></script>" => String::new(),
            "</body>" => format!(
                "<script type=\"application/json\" id=\"data\">{data}</script>\n\
                 <script type=\"module\">{script}</script>\n</body>"
            ),
            line => line.to_owned(),
        },
    );
    Ok(page.collect::<Vec<_>>().join("\n") + "\n")
}

/// All scripts as one: without the lines that fetch them from each other.
fn script() -> String {
    let mut all = String::new();
    for (_, text) in assets::scripts() {
        for line in text.lines().filter(|line| !line.starts_with("import ")) {
            all.push_str(line.strip_prefix("export ").unwrap_or(line));
            all.push('\n');
        }
    }
    all
}

/// As browsers compare it.
fn hash(text: &str) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digest = Sha256::digest(text);
    let mut out = "sha256-".to_owned();
    for chunk in digest.chunks(3) {
        let bytes = [chunk[0], chunk.get(1).copied().unwrap_or(0), chunk.get(2).copied().unwrap_or(0)];
        let bits = u32::from_be_bytes([0, bytes[0], bytes[1], bytes[2]]);
        for place in 0..4 {
            let digit = usize::try_from(bits >> (18 - 6 * place) & 63).unwrap_or_default();
            out.push(if place > chunk.len() { '=' } else { char::from(DIGITS[digit]) });
        }
    }
    out
}

/// A moment of the loop.
#[derive(Serialize)]
struct Frame {
    seq: u64,
    status: LoopStatus,
    /// A letter for each task that was there: done, unverified, running, parked, failed, skipped or open.
    states: BTreeMap<String, char>,
}

fn data(loops: &Loops, record: &LoopRecord) -> Result<Value, Refusal> {
    let now = Timestamp::now();
    let last = loops.store.last_seq(record.id)?;
    let (stride, old) = (last.div_ceil(FRAMES).max(1), last.saturating_sub(EVENTS));
    let (mut frames, mut events, mut failed) = (Vec::new(), Vec::new(), None);
    let mut chronicle = Chronicle::new(record.id);
    chronicle.catch_up(&loops.store, |envelope, state| {
        if envelope.seq > old {
            events.push(EventRow::of(envelope));
        }
        if envelope.seq.is_multiple_of(stride) || envelope.seq == last {
            let then = state.last_at.unwrap_or(now);
            match LoopStatus::of(loops, record, state, then) {
                Ok(status) => {
                    let status = if envelope.seq == last { status } else { status.then() };
                    frames.push(Frame { seq: envelope.seq, status, states: letters(state) });
                }
                Err(refusal) => failed = Some(refusal),
            }
        }
    })?;
    if let Some(refusal) = failed {
        return Err(refusal);
    }
    let state = chronicle.head();
    let order: Vec<String> = state.tasks.iter().map(|entry| entry.spec.id.to_string()).collect();
    let rows: Vec<TaskRow> = state.tasks.iter().map(|entry| TaskRow::of(state, entry, now)).collect();
    let specs: BTreeMap<&str, Known> =
        state.tasks.iter().map(|entry| (entry.spec.id.as_str(), Known::of(state, entry))).collect();
    let by = |by: By| shortened(chronicle.cost(by));
    Ok(json!({
        "version": env!("CARGO_PKG_VERSION"),
        "made_at": now,
        "last_seq": last,
        "summary": summary(loops, record)?,
        "frames": frames.iter().map(|frame| line(frame, &order)).collect::<Vec<_>>(),
        "tasks": with_graph(&rows, state),
        "specs": specs,
        "iterations": chronicle.iterations(),
        "attempts": attempts_of(loops, record, chronicle.iterations())?,
        "events": events,
        "cost": { "task": by(By::Task), "agent": by(By::Agent), "model": by(By::Model), "day": by(By::Day) },
        "checkpoints": chronicle.checkpoints().iter().rev().take(1000).map(checkpoint).collect::<Vec<_>>(),
        "health": health::of(loops, record)?,
        "last": status::status(state, now).updated_at,
    }))
}

/// A letter for each task of the last moment, in its order; a blank where it was not there yet.
fn line(frame: &Frame, order: &[String]) -> Value {
    let states: String = order.iter().map(|id| frame.states.get(id).copied().unwrap_or(' ')).collect();
    json!({ "seq": frame.seq, "status": frame.status, "states": states })
}

fn letters(state: &Loop) -> BTreeMap<String, char> {
    let row = |entry| {
        let row = TaskRow::of(state, entry, Timestamp::UNIX_EPOCH);
        (row.id, row.state.chars().next().unwrap_or(' '))
    };
    state.tasks.iter().map(row).collect()
}

/// The rows of the tasks, each with what it waits on by its place.
fn with_graph(rows: &[TaskRow], state: &Loop) -> Vec<Value> {
    let places = graph(state);
    rows.iter()
        .zip(places.after())
        .map(|(row, after)| {
            let mut row = json!(row);
            row["after"] = json!(after);
            row
        })
        .collect()
}

fn attempts_of(loops: &Loops, record: &LoopRecord, spans: &[Span]) -> Result<Value, Refusal> {
    let mut kept = serde_json::Map::new();
    for span in spans.iter().rev().take(ATTEMPTS) {
        let attempt = attempts::read(loops, record, span, u64::MAX)?;
        let diff = attempt.diff(loops).map(|diff| {
            let lines: Vec<&str> = diff.text.lines().take(DIFF_LINES).collect();
            json!({ "of": diff.of, "lines": lines })
        });
        let said = transcript(loops, record.id, span, &attempt.command);
        let value = json!({ "attempt": attempt, "diff": diff, "transcript": said });
        kept.entry(span.iteration.to_string()).or_insert(value);
    }
    Ok(Value::Object(kept))
}

/// The end of what its agent printed; a file without it is a file all the same.
fn transcript(loops: &Loops, id: LoopId, span: &Span, command: &str) -> Vec<transcripts::Entry> {
    let file = transcripts::file(&loops.dir, id, span.iteration, span.attempt);
    let read = file.and_then(|file| transcripts::read(&file, &span.agent, command).ok());
    let mut entries = read.unwrap_or_default();
    entries.drain(..entries.len().saturating_sub(ENTRIES));
    entries
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn hashes_are_as_browsers_write_them() {
        assert_eq!(hash(""), "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
    }

    /// What is one file for a browser must not have two things of one name.
    #[test]
    fn scripts_can_become_one() {
        let mut names = BTreeSet::new();
        let mut seen = BTreeSet::new();
        for (file, text) in assets::scripts() {
            for line in text.lines() {
                let code = line.strip_prefix("export ").unwrap_or(line);
                let mut words = code.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '$');
                let first = words.next().unwrap_or_default();
                let is_item = ["function", "const", "let", "class", "async"].contains(&first);
                if is_item && !code.starts_with(' ') {
                    let name = words.find(|word| !word.is_empty() && *word != "function").unwrap_or_default();
                    assert!(names.insert(name.to_owned()), "{name} of {file} is there twice");
                }
                if let Some(import) = line.strip_prefix("import ") {
                    let from = import.rsplit('"').nth(1).unwrap_or_default().trim_start_matches('.');
                    assert!(import.starts_with("{ ") && import.ends_with(".js\";"), "{file}: {line}");
                    assert!(!import.contains(" as "), "{file}: {line}");
                    assert!(seen.contains(from), "{file} needs {from}, which comes after it");
                }
                assert!(
                    !line.contains("innerHTML") && !line.contains("insertAdjacentHTML"),
                    "{file}: {line}"
                );
                assert!(!line.contains("</script"), "{file}: {line}");
            }
            seen.insert(file.to_owned());
        }
    }
}
