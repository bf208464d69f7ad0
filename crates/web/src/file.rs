//! The page as one file, with all it shows inside: to look at without a server, or to send to somebody.
//!
//! It is the page of [`crate::serve`] word for word. Its scripts become one, in the order in which they need
//! each other, and where the page would ask the server it looks into the data. Script and style are allowed
//! by their hashes, and nothing else is.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use wiggum_core::activity::EngineState;
use wiggum_core::ids::LoopId;
use wiggum_core::state::Loop;
use wiggum_engine::desk::attempts::{self, Attempt, TextRef};
use wiggum_engine::desk::calls::{Call, Spent};
use wiggum_engine::desk::chronicle::{Chronicle, Span};
use wiggum_engine::desk::cost::{self, By};
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
/// Stored texts: of each so much, and of all together.
const TEXT_LINES: usize = 2000;
const TEXT_BYTES: usize = 8 << 20;
/// With more calls than that, what each task had cost at an earlier moment is left out.
const CALLS: usize = 5000;

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
    /// A letter for each task that was there: done, unverified, running, interrupted, parked, failed, skipped or open.
    states: BTreeMap<String, char>,
}

fn data(loops: &Loops, record: &LoopRecord) -> Result<Value, Refusal> {
    let now = Timestamp::now();
    let last = loops.store.last_seq(record.id)?;
    let (stride, old) = (last.div_ceil(FRAMES).max(1), last.saturating_sub(EVENTS));
    let (mut frames, mut events, mut failed) = (Vec::new(), Vec::new(), None);
    let mut chronicle = Chronicle::new(record.id);
    let engine = loops.lease(record.id)?.engine();
    chronicle.catch_up(&loops.store, |envelope, state| {
        if envelope.seq > old {
            events.push(EventRow::of(envelope));
        }
        if envelope.seq.is_multiple_of(stride) || envelope.seq == last {
            let then = state.last_at.unwrap_or(now);
            let status = match envelope.seq == last {
                true => LoopStatus::of(loops, record, state, then),
                false => LoopStatus::then(loops, record, status::status(state, then)),
            };
            match status {
                Ok(status) => {
                    let then = if envelope.seq == last { engine } else { EngineState::Alive };
                    frames.push(Frame { seq: envelope.seq, status, states: letters(state, then) });
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
    let rows: Vec<TaskRow> = state.tasks.iter().map(|entry| TaskRow::of(state, entry, engine, now)).collect();
    let specs: BTreeMap<&str, Known> =
        state.tasks.iter().map(|entry| (entry.spec.id.as_str(), Known::of(state, entry, engine))).collect();
    let by = |by: By| shortened(chronicle.cost(by));
    let attempts = attempts_of(loops, record, chronicle.iterations())?;
    Ok(json!({
        "version": env!("CARGO_PKG_VERSION"),
        "made_at": now,
        "last_seq": last,
        "summary": summary(loops, record)?,
        "frames": frames.iter().map(|frame| line(frame, &order)).collect::<Vec<_>>(),
        "tasks": with_graph(&rows, state, engine),
        "specs": specs,
        "iterations": chronicle.iterations(),
        "texts": texts(loops, &attempts)?,
        "attempts": attempts.iter().map(|kept| (kept.attempt.iteration.to_string(), kept)).collect::<BTreeMap<_, _>>(),
        "calls": calls(&chronicle),
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

fn letters(state: &Loop, engine: EngineState) -> BTreeMap<String, char> {
    let row = |entry| {
        let row = TaskRow::of(state, entry, engine, Timestamp::UNIX_EPOCH);
        (row.id, row.state.chars().next().unwrap_or(' '))
    };
    state.tasks.iter().map(row).collect()
}

/// The rows of the tasks, each with what it waits on by its place.
fn with_graph(rows: &[TaskRow], state: &Loop, engine: EngineState) -> Vec<Value> {
    let places = graph(state, engine);
    rows.iter()
        .zip(places.after())
        .map(|(row, after)| {
            let mut row = json!(row);
            row["after"] = json!(after);
            row
        })
        .collect()
}

/// What the file has of an attempt.
#[derive(Serialize)]
struct KeptAttempt {
    attempt: Attempt,
    diff: Option<Value>,
    transcript: Vec<transcripts::Entry>,
}

/// The newest attempts, the newest first; of one that was interrupted and made again, the last.
fn attempts_of(loops: &Loops, record: &LoopRecord, spans: &[Span]) -> Result<Vec<KeptAttempt>, Refusal> {
    let mut kept: Vec<KeptAttempt> = Vec::new();
    let mut seen = BTreeSet::new();
    for span in spans.iter().rev().take(ATTEMPTS).filter(|span| seen.insert(span.iteration)) {
        let attempt = attempts::read(loops, record, span, u64::MAX)?;
        let diff = attempt.diff(loops).map(|diff| {
            let lines: Vec<&str> = diff.text.lines().take(DIFF_LINES).collect();
            json!({ "of": diff.of, "lines": lines })
        });
        let transcript = transcript(loops, record.id, span, &attempt.command);
        kept.push(KeptAttempt { attempt, diff, transcript });
    }
    Ok(kept)
}

/// The texts of which an attempt shows only the end, by their hashes, as long as there is room.
fn texts(loops: &Loops, attempts: &[KeptAttempt]) -> Result<BTreeMap<String, Value>, Refusal> {
    let mut texts = BTreeMap::new();
    let mut room = TEXT_BYTES;
    let of = |kept: &KeptAttempt| {
        let Attempt { prompt, message, evidence, .. } = kept.attempt.clone();
        let outputs = evidence.into_iter().map(|evidence| evidence.output);
        outputs.chain(message).chain(prompt).filter(|text| text.bytes > text.end.len() as u64)
    };
    for TextRef { sha256, .. } in attempts.iter().flat_map(of) {
        if texts.contains_key(&sha256) || sha256.is_empty() {
            continue;
        }
        let Some(text) = loops.store.blob(&sha256)? else { continue };
        let lines: Vec<&str> = text.lines().take(TEXT_LINES).collect();
        let bytes = lines.iter().map(|line| line.len() + 1).sum();
        let Some(left) = room.checked_sub(bytes) else { continue };
        room = left;
        let text = json!({ "of": sha256, "total": text.lines().count(), "lines": lines });
        texts.insert(sha256, text);
    }
    Ok(texts)
}

/// Each call with what it is counted under, so that the file can add them up to any moment.
fn calls(chronicle: &Chronicle) -> Option<Vec<Value>> {
    let all: Vec<_> = chronicle.calls().collect();
    let name = &chronicle.head().name;
    let told = |(seq, call): &(u64, &Call)| {
        let spent: Spent = [*call].into_iter().collect();
        let keys: BTreeMap<&str, String> =
            By::ALL.into_iter().map(|by| (by.name(), cost::key(call, name, by))).collect();
        json!({ "seq": seq, "keys": keys, "spent": spent })
    };
    (all.len() <= CALLS).then(|| all.iter().map(told).collect())
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
