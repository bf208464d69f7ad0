//! Reads whether an agent's final message claims its task.
//!
//! A claim counts only when it is meant: in the closing lines, alone on its line as a sentence of its
//! own, not shown in code, quotes or elements, not negated, not conditional, not announced for later,
//! not repeated from the prompt. Where a message says several things, the last one meant wins. Sentences
//! are matched against what a claim looks like rather than searched for words that spoil one, so an
//! unforeseen turn of phrase is no claim: a claim that is missed costs one short iteration, a false one
//! costs trust. Whether the claim is true is not decided here.

use std::borrow::Cow;
use std::cell::OnceCell;

use super::echo::Echo;
use super::elements::hide_elements;
use super::lines::{Line, LineKind, classify, strip_bullet};
use super::mark::Promised;
use super::status::{Reported, StatusBlock};
use super::{place, sentence};
use crate::event::{Claim, ClaimSource};
use crate::ids::TaskId;
use crate::text::{fold_whitespace, strip_ansi};

/// Words inside `<promise>…</promise>` that claim the task.
pub const DEFAULT_PROMISES: &[&str] = &["DONE", "COMPLETE", "TASK_COMPLETE"];

pub struct ClaimReader<'a> {
    pub task: &'a TaskId,
    /// What the agent was given, to tell its own words from an echo.
    pub prompt: &'a str,
    pub promises: &'a [&'a str],
    /// The mark that this attempt was asked to put into its promise, if any.
    pub mark: Option<&'a str>,
}

/// The one promise that is also understood without its tags, on a line of its own.
const BARE: &str = "TASK_COMPLETE";

/// What a sentence of the message says about the task.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Statement {
    Done(Claim),
    NotDone,
}

impl ClaimReader<'_> {
    /// The claim in an agent's final message, if it makes one.
    pub fn read(&self, message: &str) -> Option<Claim> {
        let task = TaskId::new(plain(self.task.as_str()).as_ref());
        let (message, prompt) = (plain(message), plain(self.prompt));
        if self.promises.contains(&BARE) && message.contains(BARE) {
            let (message, prompt) = (with_tags(&message), with_tags(&prompt));
            return ClaimReader { task: &task, prompt: &prompt, ..*self }.read_plain(&message);
        }
        ClaimReader { task: &task, prompt: &prompt, ..*self }.read_plain(&message)
    }

    fn read_plain(&self, message: &str) -> Option<Claim> {
        let message = strip_ansi(message);
        let mut lines = classify(&message);
        hide_elements(&mut lines);
        let blocks = StatusBlock::find(&mut lines);
        // Most messages need no comparison with the prompt: it is prepared on first use.
        let cell = OnceCell::new();
        let echo = || cell.get_or_init(|| Echo::new(self.prompt, lines.iter().map(|line| line.text)));
        let closing = place::closing_start(&lines);
        let mut last: Option<(usize, Statement)> = None;
        for index in closing..lines.len() {
            if let Some(statement) = self.read_line(&lines, index, echo) {
                last = Some((index, statement));
            }
        }
        for block in blocks {
            if block.lines.end <= closing
                || last.as_ref().is_some_and(|(index, _)| *index > block.lines.end)
                || echo().is_echoed_block(block.lines.clone())
            {
                continue;
            }
            match block.reported {
                Reported::Complete => {
                    let text = "STATUS: COMPLETE, EXIT_SIGNAL: true".to_owned();
                    let claim = Claim { text, source: ClaimSource::StatusBlock };
                    last = Some((block.lines.end, Statement::Done(claim)));
                }
                Reported::Unfinished => last = Some((block.lines.end, Statement::NotDone)),
                Reported::Unclear => {}
            }
        }
        match last?.1 {
            Statement::Done(claim) => Some(claim),
            Statement::NotDone => None,
        }
    }

    fn read_line<'e>(
        &self,
        lines: &[Line<'_>],
        index: usize,
        echo: impl Fn() -> &'e Echo,
    ) -> Option<Statement> {
        if lines[index].kind != LineKind::Prose {
            return None;
        }
        let (text, end) = joined_promise(lines, index);
        // Most lines of a long message can be dismissed by a glance.
        if !sentence::may_matter(&text, self.task) {
            return None;
        }
        let line = undecorated(&text)?;
        let masked = mask_quotes(line, self.task.as_str());
        let statement = self.statement_of(&masked)?;
        match statement {
            Statement::NotDone => Some(Statement::NotDone),
            Statement::Done(claim) => {
                let meant = !echo().is_echo(index)
                    && !place::lead_in_spoils(lines, index)
                    && !place::continuation_spoils(&masked, lines, end);
                meant.then_some(Statement::Done(claim))
            }
        }
    }

    /// What the sentences of a line come to. A claim stands alone: beside it there is at most a plain
    /// word of success, such as "All tests pass."
    fn statement_of(&self, line: &str) -> Option<Statement> {
        let mut found = None;
        let mut alone = true;
        for text in split_sentences(line) {
            match self.read_promise(text).or_else(|| sentence::read(text, self.task)) {
                Some(statement) => found = Some(statement),
                None => alone &= is_introduction(text.trim_end_matches(['.', '!', ' '])),
            }
        }
        match found? {
            Statement::Done(claim) => alone.then_some(Statement::Done(claim)),
            Statement::NotDone => Some(Statement::NotDone),
        }
    }

    /// `<promise>WORD</promise>` as a sentence of its own, perhaps introduced by "Status:" or the like.
    fn read_promise(&self, text: &str) -> Option<Statement> {
        let lower = text.to_ascii_lowercase();
        let open = lower.find(OPEN)?;
        let inside = open + OPEN.len();
        let close = inside + lower[inside..].find(CLOSE)?;
        let after = &text[close + CLOSE.len()..];
        if !is_decoration(after, true) || !is_introduction(&text[..open]) {
            return None;
        }
        let word = fold_whitespace(&text[inside..close]);
        match Promised::read(&word, self.promises, self.mark) {
            Promised::Counts => {
                let text = format!("<promise>{word}</promise>");
                return Some(Statement::Done(Claim { text, source: ClaimSource::Promise }));
            }
            Promised::WrongMark(_) => return None,
            Promised::Other => {}
        }
        let word = word.to_ascii_uppercase();
        let unfinished = ["NOT", "IN_PROGRESS", "IN PROGRESS", "BLOCKED", "INCOMPLETE"];
        unfinished.iter().any(|start| word.starts_with(start)).then_some(Statement::NotDone)
    }
}

/// The text as it would be typed: hyphens of typesetters are hyphens, and what has no width is gone.
fn plain(text: &str) -> Cow<'_, str> {
    if !text.contains(is_typeset) {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let joins = plain.ends_with(char::is_alphanumeric)
            && chars.peek().is_some_and(|next| next.is_alphanumeric() || is_typeset(*next));
        match c {
            '\u{2010}' | '\u{2011}' | '\u{fe63}' | '\u{ff0d}' => plain.push('-'),
            // A dash between words is one; within an id it is a hyphen.
            '\u{2012}' | '\u{2013}' | '\u{2212}' if joins => plain.push('-'),
            '\u{ad}' | '\u{200b}'..='\u{200d}' | '\u{2060}' | '\u{feff}' => {}
            _ => plain.push(c),
        }
    }
    Cow::Owned(plain)
}

fn is_typeset(c: char) -> bool {
    matches!(
        c,
        '\u{ad}' | '\u{200b}'..='\u{200d}' | '\u{2010}'..='\u{2013}' | '\u{2060}' | '\u{2212}' | '\u{fe63}' | '\u{feff}' | '\u{ff0d}'
    )
}

fn with_tags(text: &str) -> String {
    let tagged = text.lines().map(|line| {
        let word = line.trim().trim_matches(['*', '.', '!']);
        if word == BARE { line.replace(BARE, "<promise>TASK_COMPLETE</promise>") } else { line.to_owned() }
    });
    tagged.collect::<Vec<_>>().join("\n")
}

const OPEN: &str = "<promise>";
const CLOSE: &str = "</promise>";

/// A promise may be spread over three lines; then they are read as one. With the last of them.
fn joined_promise<'a>(lines: &[Line<'a>], index: usize) -> (Cow<'a, str>, usize) {
    let first = lines[index].text;
    let end = first.trim_end();
    let opens = end.len().checked_sub(OPEN.len()).and_then(|at| end.get(at..));
    if !opens.is_some_and(|tag| tag.eq_ignore_ascii_case(OPEN)) {
        return (first.into(), index);
    }
    let mut joined = first.trim_end().to_owned();
    let mut last = index;
    for line in lines.iter().skip(index + 1).take(2) {
        joined.push_str(line.text.trim());
        last += 1;
        if line.text.to_ascii_lowercase().contains(CLOSE) {
            break;
        }
    }
    (joined.into(), last)
}

/// The line without bullets, heading marks, ticked boxes; nothing for a box that is not ticked.
fn undecorated(line: &str) -> Option<&str> {
    let mut rest = line.trim();
    if let Some(item) = strip_bullet(rest) {
        rest = item;
    }
    let heading = rest.trim_start_matches('#');
    if heading.len() < rest.len() && heading.starts_with([' ', '\t']) {
        rest = heading.trim_start();
    }
    if rest.starts_with("[ ]") {
        return None;
    }
    for ticked in ["[x]", "[X]"] {
        rest = rest.strip_prefix(ticked).unwrap_or(rest).trim_start();
    }
    // Without a space after it, a plus or minus is a diff's.
    (!rest.starts_with(['+', '-', '$', '%'])).then_some(rest)
}

/// Stands for something quoted, which is never part of a statement.
pub(super) const QUOTED: char = '\u{2}';

/// Replaces what stands in quotes or inline code. A quoted task id is only emphasised, so it stays.
fn mask_quotes(line: &str, task: &str) -> String {
    let mut masked = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find(is_opening_quote) {
        masked.push_str(&rest[..at]);
        let quote = &rest[at..];
        let ticks = quote.len() - quote.trim_start_matches('`').len();
        let (opening, closing) = match quote.chars().next() {
            Some('`') => (ticks, &quote[..ticks]),
            Some('“') => ('“'.len_utf8(), "”"),
            Some('„') => ('„'.len_utf8(), "“"),
            Some('«') => ('«'.len_utf8(), "»"),
            Some('「') => ('「'.len_utf8(), "」"),
            Some(other) => (other.len_utf8(), "\""),
            None => break,
        };
        let body = &quote[opening..];
        // What is never closed is quoted to the end of the line.
        let (content, end) = match body.find(closing) {
            Some(close) => (&body[..close], close + closing.len()),
            None => (body, body.len()),
        };
        if content.trim().eq_ignore_ascii_case(task) {
            masked.push_str(content.trim());
        } else {
            masked.push(QUOTED);
        }
        rest = &body[end..];
    }
    masked.push_str(rest);
    masked
}

fn is_opening_quote(c: char) -> bool {
    matches!(c, '`' | '"' | '“' | '„' | '«' | '「')
}

/// Sentences with their final punctuation.
pub(super) fn split_sentences(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line;
    std::iter::from_fn(move || {
        rest = rest.trim_start();
        if rest.is_empty() {
            return None;
        }
        let end = sentence_end(rest);
        let (sentence, after) = rest.split_at(end);
        rest = after;
        Some(sentence)
    })
}

fn sentence_end(text: &str) -> usize {
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let ends = match c {
            '。' | '！' | '？' => true,
            '.' | '!' | '?' | ';' | '…' => {
                chars.peek().is_none_or(|(_, next)| next.is_whitespace() || matches!(next, '*' | '_' | '<'))
            }
            _ => false,
        };
        if ends {
            return at + c.len_utf8();
        }
    }
    text.len()
}

/// Emphasis, ticks and final punctuation: nothing that could change the meaning of what it stands by.
fn is_decoration(text: &str, after: bool) -> bool {
    text.chars().all(|c| {
        c.is_whitespace()
            || matches!(c, '*' | '_' | '#')
            || (after && matches!(c, '.' | '!' | '…' | '。' | '！'))
            || is_cheer(c)
    })
}

/// Ticks, cheers, bullets and arrows. Any other sign may say the opposite: a cross, an empty box, an hourglass.
pub(super) fn is_cheer(c: char) -> bool {
    matches!(
        c,
        '✅' | '✔'
            | '✓'
            | '☑'
            | '🗸'
            | '🎉'
            | '🎊'
            | '✨'
            | '🚀'
            | '🏁'
            | '💯'
            | '🙌'
            | '👍'
            | '👏'
            | '🥳'
            | '⭐'
            | '🌟'
            | '🟢'
            | '💚'
            | '🏆'
            | '🎯'
            | '💪'
            | '😀'
            | '😊'
            | '•'
            | '·'
            | '●'
            | '⏺'
            | '▶'
            | '►'
            | '→'
            | '➜'
            | '⇒'
            | '–'
            | '—'
            | '\u{fe0f}'
    )
}

/// "Status:", "All done —", "All 14 tests pass": words that can stand beside a promise without making it a
/// mention.
pub(super) fn is_introduction(text: &str) -> bool {
    if is_decoration(text, false) {
        return true;
    }
    let words: Vec<String> = text
        .split(|c: char| !c.is_alphanumeric() && c != QUOTED && c != '\'')
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    let plain = text.chars().all(|c| {
        c.is_alphanumeric()
            || c.is_whitespace()
            || matches!(c, ':' | ',' | '-' | '*' | '_' | '=' | '>' | '#')
            || is_cheer(c)
    });
    // "The signal is:" wants the promise as its last word: a sentence about it.
    let open_ended =
        words.last().is_some_and(|word| ["is", "are", "the", "a", "and"].contains(&word.as_str()));
    // A number alone is the time of a log's line.
    let says = words.iter().any(|word| !is_number(word));
    let known = |word: &String| INTRODUCTION.contains(&word.as_str()) || is_number(word);
    plain && says && !open_ended && words.iter().all(known)
}

fn is_number(word: &str) -> bool {
    word.chars().all(|c| c.is_ascii_digit())
}

const INTRODUCTION: [&str; 61] = [
    "a",
    "acceptance",
    "all",
    "and",
    "answer",
    "are",
    "been",
    "build",
    "checks",
    "claim",
    "clean",
    "complete",
    "completed",
    "completion",
    "conclusion",
    "criteria",
    "done",
    "emitting",
    "everything",
    "final",
    "finally",
    "finished",
    "for",
    "fully",
    "green",
    "has",
    "have",
    "hence",
    "implemented",
    "is",
    "met",
    "now",
    "outcome",
    "pass",
    "passed",
    "passes",
    "passing",
    "ready",
    "requirements",
    "result",
    "review",
    "signal",
    "signalling",
    "so",
    "status",
    "story",
    "successfully",
    "suite",
    "summary",
    "task",
    "tested",
    "tests",
    "the",
    "therefore",
    "thus",
    "verdict",
    "verification",
    "verified",
    "with",
    "work",
    "works",
];
