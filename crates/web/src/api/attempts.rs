//! One attempt: its evidence, what it changed, what its agent printed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wiggum_engine::desk::Loops;
use wiggum_engine::desk::attempts::{self, Attempt};
use wiggum_engine::desk::chronicle::Span;
use wiggum_engine::desk::transcripts::{self, Entry};
use wiggum_store::LoopRecord;

use super::{At, Part};
use crate::books::Books;
use crate::refusal::Refusal;
use crate::routes::Route;

/// Lines of a text, and entries of a transcript, that are told at once.
const MOST_LINES: usize = 5000;
const MOST_ENTRIES: usize = 2000;
/// A hash, in hexadecimal.
const HASH: usize = 64;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::look(
            "/loops/{loop}/iterations/{iteration}",
            "One attempt with its evidence, flags and verdict",
            |books, names, At { at }| {
                books.of(&names[0], |loops, record| {
                    let span = span(books, loops, record, &names[1])?;
                    Ok::<Attempt, Refusal>(attempts::read(loops, record, &span, at.unwrap_or(u64::MAX))?)
                })
            },
        ),
        Route::look(
            "/loops/{loop}/iterations/{iteration}/diff",
            "What an attempt changed, as lines of a diff",
            |books, names, part: Part| {
                books.of(&names[0], |loops, record| {
                    let span = span(books, loops, record, &names[1])?;
                    let attempt = attempts::read(loops, record, &span, u64::MAX)?;
                    let diff = attempt.diff(loops).ok_or_else(|| {
                        Refusal::not_found("nothing is known of what this attempt changed")
                            .hint("without git, and after an attempt that changed nothing, there is no diff")
                    })?;
                    Ok(Lines::of(diff.of, &diff.text, &part))
                })
            },
        ),
        Route::look(
            "/loops/{loop}/iterations/{iteration}/transcript",
            "What the agent of an attempt said and did, as far as it got",
            |books, names, query: TranscriptQuery| {
                books.of(&names[0], |loops, record| transcript(books, loops, record, &names[1], &query))
            },
        ),
        Route::look(
            "/loops/{loop}/texts/{sha256}",
            "A stored text (a prompt, a message, a check's output) by its hash, as lines",
            |books, names, part: Part| {
                books.of(&names[0], |loops, _| {
                    let hash = &names[1];
                    let is_hash = hash.len() == HASH && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
                    let text = if is_hash { loops.store.blob(hash)? } else { None };
                    let text = text.ok_or_else(|| Refusal::not_found(format!("no text `{hash}`")))?;
                    Ok(Lines::of(hash.clone(), &text, &part))
                })
            },
        ),
    ]
}

/// A part of a long text.
#[derive(Serialize, JsonSchema)]
struct Lines {
    /// What it is.
    of: String,
    /// Lines in all.
    total: usize,
    lines: Vec<String>,
}

impl Lines {
    fn of(of: String, text: &str, part: &Part) -> Self {
        let all: Vec<&str> = text.lines().collect();
        let lines = part.of(&all, MOST_LINES).iter().map(|line| (*line).to_owned()).collect();
        Self { of, total: all.len(), lines }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TranscriptQuery {
    /// Leave out so many of the first entries. Left out: the last ones are told
    from: Option<u64>,
    /// At most so many
    limit: Option<u64>,
}

#[derive(Serialize, JsonSchema)]
struct Transcript {
    iteration: u32,
    attempt: u32,
    /// Is its agent at work?
    running: bool,
    /// Entries in all.
    total: usize,
    /// The number of the first one here.
    from: usize,
    entries: Vec<Entry>,
}

fn transcript(
    books: &Books,
    loops: &Loops,
    record: &LoopRecord,
    iteration: &str,
    query: &TranscriptQuery,
) -> Result<Transcript, Refusal> {
    let span = span(books, loops, record, iteration)?;
    let attempt = attempts::read(loops, record, &span, span.seq)?;
    let file = transcripts::file(&loops.dir, record.id, span.iteration, span.attempt);
    let read = file.map(|file| books.transcript(&file, &attempt.agent, &attempt.command)).transpose()?;
    let all: &[Entry] = read.as_deref().map_or(&[], Vec::as_slice);
    let limit = query.limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(MOST_ENTRIES);
    let limit = limit.min(MOST_ENTRIES);
    let last = all.len().saturating_sub(limit);
    let from = query.from.map_or(last, |from| usize::try_from(from).unwrap_or(usize::MAX).min(all.len()));
    let entries = all[from..from.saturating_add(limit).min(all.len())].to_vec();
    let running = span.agent_ended_at.is_none() && span.ended_at.is_none();
    let (iteration, attempt) = (span.iteration, span.attempt);
    Ok(Transcript { iteration, attempt, running, total: all.len(), from, entries })
}

fn span(books: &Books, loops: &Loops, record: &LoopRecord, iteration: &str) -> Result<Span, Refusal> {
    let unknown = || Refusal::not_found(format!("no iteration `{iteration}`"));
    let number = iteration.parse().map_err(|_| unknown())?;
    let feed = books.feed(loops, record)?;
    feed.look(|chronicle| chronicle.iteration(number).cloned()).ok_or_else(unknown)
}
