//! Reads whether an agent's final message claims its task.
//!
//! A claim counts only when it is meant: said as a sentence of its own, not shown in code or quotes,
//! not negated, not conditional, not announced for later, not repeated from the prompt. Where a
//! message says several things, the last one meant wins. Sentences are matched against what a claim
//! looks like rather than searched for words that spoil one, so an unforeseen turn of phrase is no
//! claim. Whether the claim is true is not decided here.

use std::cell::OnceCell;

use super::echo::Echo;
use super::lines::{Line, LineKind, classify, is_list_item, strip_bullet};
use super::sentence;
use super::status::{Reported, StatusBlock};
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
        if self.promises.contains(&BARE) && message.contains(BARE) {
            let (message, prompt) = (with_tags(message), with_tags(self.prompt));
            return ClaimReader { prompt: &prompt, ..*self }.read_tagged(&message);
        }
        self.read_tagged(message)
    }

    fn read_tagged(&self, message: &str) -> Option<Claim> {
        let message = strip_ansi(message);
        let mut lines = classify(&message);
        let blocks = StatusBlock::find(&mut lines);
        // Most messages need no comparison with the prompt: it is prepared on first use.
        let cell = OnceCell::new();
        let echo = || cell.get_or_init(|| Echo::new(self.prompt, lines.iter().map(|line| line.text)));
        let mut last: Option<(usize, Statement)> = None;
        for index in 0..lines.len() {
            if let Some(statement) = self.read_line(&lines, index, echo) {
                last = Some((index, statement));
            }
        }
        for block in blocks {
            if last.as_ref().is_some_and(|(index, _)| *index > block.lines.end)
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
        let text = joined_promise(lines, index);
        // Most lines of a long message can be dismissed by a glance.
        if !sentence::may_matter(&text, self.task) {
            return None;
        }
        let line = undecorated(&text)?;
        let masked = mask_quotes(line, self.task.as_str());
        let statement = self.last_statement(&masked)?;
        match statement {
            Statement::NotDone => Some(Statement::NotDone),
            Statement::Done(claim) => {
                let meant = !echo().is_echo(index)
                    && !lead_in_spoils(lines, index)
                    && !continuation_spoils(&masked, lines, index);
                meant.then_some(Statement::Done(claim))
            }
        }
    }

    fn last_statement(&self, line: &str) -> Option<Statement> {
        split_sentences(line)
            .filter_map(|text| self.read_promise(text).or_else(|| sentence::read(text, self.task)))
            .last()
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
        if self.promises.iter().any(|promise| promise.eq_ignore_ascii_case(&word)) {
            let text = format!("<promise>{word}</promise>");
            return Some(Statement::Done(Claim { text, source: ClaimSource::Promise }));
        }
        let word = word.to_ascii_uppercase();
        let unfinished = ["NOT", "IN_PROGRESS", "IN PROGRESS", "BLOCKED", "INCOMPLETE"];
        unfinished.iter().any(|start| word.starts_with(start)).then_some(Statement::NotDone)
    }
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

/// A promise may be spread over three lines; then they are read as one.
fn joined_promise<'a>(lines: &[Line<'a>], index: usize) -> std::borrow::Cow<'a, str> {
    let first = lines[index].text;
    let end = first.trim_end();
    let opens = end.len().checked_sub(OPEN.len()).and_then(|at| end.get(at..));
    if !opens.is_some_and(|tag| tag.eq_ignore_ascii_case(OPEN)) {
        return first.into();
    }
    let mut joined = first.trim_end().to_owned();
    for line in lines.iter().skip(index + 1).take(2) {
        joined.push_str(line.text.trim());
        if line.text.to_ascii_lowercase().contains(CLOSE) {
            break;
        }
    }
    joined.into()
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
fn split_sentences(line: &str) -> impl Iterator<Item = &str> {
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

/// Emphasis, emoji and final punctuation: nothing that could change the meaning of what it stands by.
fn is_decoration(text: &str, after: bool) -> bool {
    text.chars().all(|c| {
        c.is_whitespace()
            || matches!(c, '*' | '_' | '#')
            || (after && matches!(c, '.' | '!' | '…' | '。' | '！'))
            || is_symbol(c)
    })
}

/// Emoji, ticks, joiners and the like.
pub(super) fn is_symbol(c: char) -> bool {
    !c.is_ascii()
        && !c.is_alphanumeric()
        && !matches!(
            c,
            '“' | '”'
                | '„'
                | '«'
                | '»'
                | '‹'
                | '›'
                | '‘'
                | '’'
                | '「'
                | '」'
                | '？'
                | '…'
                | '，'
                | '。'
        )
}

/// "Status:", "All done —": words that can stand before a promise without making it a mention.
fn is_introduction(text: &str) -> bool {
    if is_decoration(text, false) {
        return true;
    }
    let mut words = text
        .split(|c: char| !c.is_alphanumeric() && c != QUOTED && c != '\'')
        .filter(|word| !word.is_empty());
    let plain = text.chars().all(|c| {
        c.is_alphanumeric()
            || c.is_whitespace()
            || matches!(c, ':' | ',' | '-' | '*' | '_' | '=' | '>')
            || is_symbol(c)
    });
    // "The signal is" wants the promise as its last word: a sentence about it.
    let open_ended = text.trim_end().ends_with(" is") || text.trim_end().ends_with(" the");
    plain && !open_ended && words.all(|word| INTRODUCTION.contains(&word.to_ascii_lowercase().as_str()))
}

const INTRODUCTION: [&str; 43] = [
    "a",
    "acceptance",
    "all",
    "and",
    "are",
    "claim",
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
    "fully",
    "green",
    "hence",
    "implemented",
    "is",
    "met",
    "outcome",
    "output",
    "outputting",
    "passed",
    "passing",
    "pass",
    "result",
    "signal",
    "signalling",
    "so",
    "status",
    "story",
    "successfully",
    "task",
    "tests",
    "the",
    "therefore",
    "thus",
    "verified",
    "work",
];

/// Do the words that lead to this line make it a mention ("Once it works I will print:")?
fn lead_in_spoils(lines: &[Line<'_>], index: usize) -> bool {
    let Some((before, gap)) = said_before(lines, index) else { return false };
    let list_item = is_list_item(lines[index].text.trim());
    let before = if list_item { introduction_of_list(lines, index).unwrap_or(before) } else { before };
    let text = lines[before].text.trim().trim_end_matches(['*', '_']);
    let last_sentence = split_sentences(text).last().unwrap_or(text);
    let heading = text.starts_with('#');
    if heading || text.ends_with(':') || (list_item && !is_list_item(text)) {
        return sentence::is_guarded(last_sentence) || sentence::is_plan(last_sentence);
    }
    if gap || is_list_item(text) || text.ends_with(['.', '!', '?', '。', '！']) {
        return false;
    }
    // The sentence simply runs on into this line.
    sentence::is_guarded(last_sentence) && sentence::speaks(last_sentence)
}

/// The nearest line before that has words, and whether a blank line or code lies between.
fn said_before(lines: &[Line<'_>], index: usize) -> Option<(usize, bool)> {
    // Code, quotes and blank lines are few in a row; a bound keeps hostile input linear.
    let mut gap = false;
    for before in (index.saturating_sub(LOOK_BACK)..index).rev() {
        match lines[before].kind {
            LineKind::Prose if lines[before].text.chars().any(char::is_alphanumeric) => {
                return Some((before, gap));
            }
            LineKind::Prose => {}
            LineKind::Blank
            | LineKind::FenceOpen(_)
            | LineKind::Code(_)
            | LineKind::FenceClose(_)
            | LineKind::Shown
            | LineKind::Escalation => gap = true,
        }
    }
    None
}

/// How many lines before a claim are looked at for what leads to it.
const LOOK_BACK: usize = 40;

/// The line before the list that this item belongs to.
fn introduction_of_list(lines: &[Line<'_>], index: usize) -> Option<usize> {
    (index.saturating_sub(LOOK_BACK)..index).rev().find(|&before| {
        let line = &lines[before];
        line.kind == LineKind::Prose && !line.text.starts_with([' ', '\t']) && !is_list_item(line.text.trim())
    })
}

/// Does the sentence go on in the next line ("… is what I will print")?
fn continuation_spoils(line: &str, lines: &[Line<'_>], index: usize) -> bool {
    if line.trim_end().ends_with(['.', '!', '。', '！']) {
        return false;
    }
    let Some(next) = lines.get(index + 1).filter(|next| next.kind == LineKind::Prose) else { return false };
    let first = next.text.split_whitespace().next().unwrap_or_default();
    let first = first.trim_end_matches(|c: char| !c.is_alphanumeric());
    CONTINUATIONS.contains(&first)
}

const CONTINUATIONS: [&str; 19] = [
    "after", "as", "at", "before", "but", "cannot", "if", "in", "is", "once", "only", "should", "to",
    "unless", "until", "was", "when", "will", "would",
];
