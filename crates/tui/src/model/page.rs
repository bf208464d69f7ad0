//! An attempt as lines to read: how it ended and why, its evidence, and what it changed.

use wiggum_core::policy::Millis;
use wiggum_core::text::clip;
use wiggum_engine::desk::attempts::{Attempt, Diff, TextRef};
use wiggum_engine::words::{counted, duration, elapsed, flag_name, short};

use crate::text::{line, plain};

/// Lines of a diff and of a text that are shown; who needs more has git and `wiggum show`.
const MOST_LINES: usize = 20_000;
const MOST_TEXT: usize = 60;
/// Bytes of one line that are shown.
const MOST_LINE: usize = 4 << 10;

/// An attempt as it was read.
#[derive(Clone, Debug)]
pub(crate) struct Loaded {
    pub(crate) attempt: Attempt,
    pub(crate) diff: Option<Diff>,
    /// The event with which it began.
    pub(crate) seq: u64,
}

/// A line, and what it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) tone: Tone,
    pub(crate) text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    Heading,
    Plain,
    Dim,
    Good,
    Bad,
    Warning,
    /// Of a diff.
    Added,
    Removed,
    Hunk,
    File,
}

#[derive(Debug, Default)]
pub(crate) struct Pages {
    pub(crate) evidence: Vec<Line>,
    pub(crate) diff: Vec<Line>,
}

impl Pages {
    pub(crate) fn of(loaded: &Loaded) -> Self {
        Self { evidence: evidence(&loaded.attempt), diff: diff(loaded) }
    }
}

fn evidence(attempt: &Attempt) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut say = |tone: Tone, text: String| lines.push(Line { tone, text });
    say(Tone::Heading, format!("{} · attempt {}", line(&attempt.task), attempt.attempt));
    let tone = match attempt.outcome.as_str() {
        "completed" | "accepted" => Tone::Good,
        "under way" => Tone::Plain,
        "interrupted" | "asked a question" | "held for a person" | "handed over" => Tone::Warning,
        _ => Tone::Bad,
    };
    say(tone, format!("outcome   {}", line(&attempt.outcome)));
    for reason in &attempt.reasons {
        for text in plain(reason).lines().take(MOST_TEXT) {
            say(tone, format!("          {text}"));
        }
    }
    if let (Some(from), Some(to)) = (attempt.started_at, attempt.ended_at) {
        say(Tone::Plain, format!("took      {}", elapsed(from, to)));
    }
    let model = attempt.model.as_ref().map(|model| format!(" with {}", line(model))).unwrap_or_default();
    let took = attempt.agent_ms.map(|ms| format!(", {}", duration(Millis(ms)))).unwrap_or_default();
    say(Tone::Plain, format!("agent     {}{model}{took}", line(&attempt.agent)));
    if let Some(exit) = &attempt.exit {
        say(Tone::Plain, format!("ended     {exit}"));
    }
    if let Some(claim) = &attempt.claim {
        say(Tone::Plain, format!("claim     {}", line(claim)));
    }
    for (name, commit) in [("commit", &attempt.commit), ("kept", &attempt.kept), ("base", &attempt.base)] {
        if let Some(commit) = commit {
            say(Tone::Dim, format!("{name:<9} {}", short(commit)));
        }
    }
    for flag in &attempt.flags {
        say(Tone::Warning, format!("flagged   {}: {}", flag_name(flag.kind), line(&flag.what)));
    }
    checks(attempt, &mut lines);
    changed(attempt, &mut lines);
    if let Some(message) = attempt.message.as_ref().filter(|message| !message.end.trim().is_empty()) {
        lines.push(Line { tone: Tone::Plain, text: String::new() });
        lines.push(Line { tone: Tone::Heading, text: "Its last words".to_owned() });
        quote(message, Tone::Plain, &mut lines);
    }
    lines
}

fn checks(attempt: &Attempt, lines: &mut Vec<Line>) {
    lines.push(Line { tone: Tone::Plain, text: String::new() });
    lines.push(Line { tone: Tone::Heading, text: "Checks".to_owned() });
    if attempt.evidence.is_empty() {
        let text = match attempt.ended_at {
            None => "The checks run when the agent is done.",
            Some(_) => "No check ran: `checks.verify` in wiggum.toml names what must succeed.",
        };
        lines.push(Line { tone: Tone::Dim, text: text.to_owned() });
    }
    for check in &attempt.evidence {
        let (tone, glyph) = if check.passed { (Tone::Good, "✓") } else { (Tone::Bad, "✗") };
        let took = duration(Millis(check.duration_ms));
        lines.push(Line { tone, text: format!("{glyph} {}  ({}, {took})", line(&check.name), check.exit) });
        lines.push(Line { tone: Tone::Dim, text: format!("  $ {}", line(&check.command)) });
        if !check.passed {
            quote(&check.output, Tone::Plain, lines);
        }
    }
}

fn changed(attempt: &Attempt, lines: &mut Vec<Line>) {
    if attempt.changed_total == 0 {
        return;
    }
    lines.push(Line { tone: Tone::Plain, text: String::new() });
    lines.push(Line {
        tone: Tone::Heading,
        text: format!("Changed {}", counted(attempt.changed_total as usize, "path")),
    });
    lines.extend(
        attempt.changed.iter().map(|path| Line { tone: Tone::Plain, text: format!("  {}", line(path)) }),
    );
    if attempt.changed.len() < attempt.changed_total as usize {
        lines.push(Line { tone: Tone::Dim, text: "  …".to_owned() });
    }
}

/// The end of a text that others wrote.
fn quote(text: &TextRef, tone: Tone, lines: &mut Vec<Line>) {
    let clean = plain(&text.end);
    let all: Vec<&str> = clean.trim_end().lines().collect();
    if all.len() > MOST_TEXT || text.bytes > text.end.len() as u64 {
        lines.push(Line { tone: Tone::Dim, text: "  …".to_owned() });
    }
    let last = &all[all.len().saturating_sub(MOST_TEXT)..];
    lines.extend(last.iter().map(|text| Line { tone, text: format!("  {text}") }));
}

fn diff(loaded: &Loaded) -> Vec<Line> {
    let Some(diff) = &loaded.diff else {
        let text =
            "Nothing is known of what this attempt changed: it changed nothing, or there is no git here.";
        return vec![Line { tone: Tone::Dim, text: text.to_owned() }];
    };
    let mut lines = vec![Line { tone: Tone::Heading, text: line(&diff.of) }];
    let total = diff.text.lines().count();
    lines.extend(
        diff.text
            .lines()
            .take(MOST_LINES)
            .map(|text| Line { tone: tone(text), text: plain(&clip(text, MOST_LINE)).replace('\n', " ") }),
    );
    if total > MOST_LINES {
        lines.push(Line { tone: Tone::Dim, text: format!("… {} lines more", total - MOST_LINES) });
    }
    if total == 0 {
        lines.push(Line { tone: Tone::Dim, text: "No difference.".to_owned() });
    }
    lines
}

fn tone(text: &str) -> Tone {
    let file = ["diff ", "index ", "--- ", "+++ ", "new file", "deleted file", "similarity", "rename "];
    match text.as_bytes().first() {
        _ if file.iter().any(|start| text.starts_with(start)) => Tone::File,
        Some(b'@') => Tone::Hunk,
        Some(b'+') => Tone::Added,
        Some(b'-') => Tone::Removed,
        _ => Tone::Plain,
    }
}
