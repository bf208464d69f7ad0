//! Changes to the words of a box in Markdown, or of a step of a plan: one field after the other, each
//! found anew in the text that the one before left behind.

use std::ops::Range;

use super::TaskChange;
use crate::edit::lines::{inserted, line_end, with_line_end};
use crate::edit::{Change, replaced};
use crate::formats::markdown::text::{DEPENDS, ids, note};
use crate::formats::markdown::words::Words;
use crate::formats::{Family, markdown, plan};
use crate::{Backlog, Dialect};

/// A title may stand in its line more than once; which of them it is shows when the line is read.
const PLACES: usize = 8;

/// The texts that may say it, in order of preference; none where the words cannot be found.
pub(super) fn changed(backlog: &Backlog, position: usize, change: &TaskChange) -> Vec<String> {
    let slot = Slot { dialect: backlog.dialect, position };
    let mut text = backlog.text.clone();
    if let Some(description) = &change.description {
        let Some(next) = slot.describe(&text, &own_words(backlog, position, description)) else {
            return Vec::new();
        };
        text = next;
    }
    if let Some(wanted) = &change.depends_on {
        let Some(next) = slot.depend(&text, wanted) else { return Vec::new() };
        text = next;
    }
    let task = &backlog.tasks[position];
    match &change.title {
        Some(title) => slot.entitle(&text, &task.title, title, task.id.as_str()),
        None => vec![text],
    }
}

/// The description without what a step for an agent shows of its bullets behind it: those stay.
fn own_words<'t>(backlog: &Backlog, position: usize, description: &'t str) -> Vec<&'t str> {
    let said = &backlog.tasks[position].description;
    let own = Slot { dialect: backlog.dialect, position }.words(&backlog.text).map(|words| words.description);
    let own: Vec<String> = own.unwrap_or_default().into_iter().map(|(_, line)| line).collect();
    let shown = said.strip_prefix(own.join("\n").trim()).unwrap_or_default().trim_start();
    let description = description.trim();
    let description = description.strip_suffix(shown).unwrap_or(description).trim_end();
    description.lines().map(str::trim_end).collect()
}

/// One box or step of a file.
struct Slot {
    dialect: Dialect,
    position: usize,
}

impl Slot {
    fn words(&self, text: &str) -> Option<Words> {
        match self.dialect.family() {
            Family::Steps => plan::words(text, self.position),
            Family::Objects | Family::Lines | Family::Boxes | Family::Marked => {
                markdown::words(text, self.position)
            }
        }
    }

    /// The texts in which the title is another, at each place at which the old one may stand.
    fn entitle(&self, text: &str, old: &str, new: &str, id: &str) -> Vec<String> {
        let Some(words) = self.words(text) else { return Vec::new() };
        let head = &text[words.head.clone()];
        let named = format!("{new} (id: {id})");
        let spellings = match self.dialect.family() {
            Family::Steps => vec![new],
            Family::Objects | Family::Lines | Family::Boxes | Family::Marked => vec![new, named.as_str()],
        };
        let at = |(at, _): (usize, &str)| words.head.start + at..words.head.start + at + old.len();
        let places: Vec<_> = head.match_indices(old).take(PLACES).map(at).collect();
        let with = |title: &str| {
            let places = places.iter().cloned();
            places.map(|range| replaced(text, vec![Change { range, with: title.to_owned() }])).collect()
        };
        spellings.into_iter().flat_map(|title| -> Vec<String> { with(title) }).collect()
    }

    /// The text with other lines of description. Lines that stay, at the start and at the end, are not
    /// touched; nor are criteria and sub-tasks between them.
    fn describe(&self, text: &str, new: &[&str]) -> Option<String> {
        let words = self.words(text)?;
        let old: Vec<&str> = shown(&words);
        let same = old.iter().zip(new).take_while(|(a, b)| a == b).count();
        let rest = old.len().min(new.len()) - same;
        let tail = old[same..].iter().rev().zip(new[same..].iter().rev()).take(rest);
        let tail = tail.take_while(|(a, b)| a == b).count();
        let (gone, come) = (&words.description[same..old.len() - tail], &new[same..new.len() - tail]);
        let end = line_end(text);
        let under = under(text, &words);
        let indented = |line: &&str| if line.is_empty() { String::new() } else { format!("{under}{line}") };
        let lines = come.iter().map(indented).collect::<Vec<_>>().join(end);
        let mut changes = Vec::new();
        let mut gone = gone.iter().map(|(range, _)| range.clone());
        if !lines.is_empty() {
            let before = words.description[..same].last().map_or(words.head.end, |(range, _)| range.end);
            changes.push(match gone.next() {
                Some(range) => Change { range, with: lines },
                None => Change { range: before..before, with: format!("{end}{lines}") },
            });
        }
        changes.extend(without_lines(text, gone));
        Some(replaced(text, changes))
    }

    /// The text with other dependencies, where the old ones are named: on a line of their own, else in
    /// a note on the first line, else on a new line.
    fn depend(&self, text: &str, wanted: &[String]) -> Option<String> {
        let words = self.words(text)?;
        let head = &text[words.head.clone()];
        let note = note(head, &DEPENDS).filter(|_| self.dialect.family() == Family::Boxes);
        let shifted = |at: usize| words.head.start + at;
        let lines = words.depends_on.as_slice();
        let mut changes = Vec::new();
        let is_only = lines.len() + usize::from(note.is_some()) == 1;
        let value =
            |range: Range<usize>| Change { with: value(&text[range.clone()], wanted, is_only), range };
        let is_kept = !wanted.is_empty() || self.dialect.family() == Family::Steps;
        match (lines, &note) {
            ([first, others @ ..], _) if is_kept => {
                changes.push(value(first.clone()));
                changes.extend(without_lines(text, others.iter().map(|range| line_at(text, range.start))));
            }
            ([], Some(note)) if is_kept => {
                changes.push(value(shifted(note.value.start)..shifted(note.value.end)));
            }
            ([], None) => {
                let label =
                    if self.dialect.family() == Family::Steps { "Dependencies" } else { "Depends on" };
                let line =
                    format!("{}{}- {label}: {}", line_end(text), under(text, &words), wanted.join(", "));
                let at = words.description.last().map_or(words.head.end, |(range, _)| range.end);
                return Some(inserted(text, at, &line));
            }
            (lines, _) => {
                changes.extend(without_lines(text, lines.iter().map(|range| line_at(text, range.start))));
            }
        }
        if let Some(note) = note.filter(|_| !lines.is_empty() || !is_kept) {
            let start = head[..note.whole.start].trim_end().len();
            changes.push(Change { range: shifted(start)..shifted(note.whole.end), with: String::new() });
        }
        Some(replaced(text, changes))
    }
}

/// The lines of a description as readers of the file are shown them.
fn shown(words: &Words) -> Vec<&str> {
    let mut lines: Vec<&str> = words.description.iter().map(|(_, line)| line.as_str()).collect();
    if let Some(first) = lines.first_mut() {
        *first = first.trim_start();
    }
    lines
}

/// What a list of dependencies says; one that only grows keeps how its beginning is spelled.
fn value(old: &str, wanted: &[String], is_only: bool) -> String {
    let kept = old.trim();
    let blank = &old[..old.len() - old.trim_start().len()];
    match wanted.strip_prefix(ids(kept).as_slice()) {
        Some(more) if is_only && more.len() < wanted.len() => format!("{blank}{kept}, {}", more.join(", ")),
        Some(_) | None if wanted.is_empty() => format!("{blank}none"),
        Some(_) | None => format!("{blank}{}", wanted.join(", ")),
    }
}

/// The line around a place, without its end.
fn line_at(text: &str, at: usize) -> Range<usize> {
    Words::behind(text, text[..at].rfind('\n').map_or(0, |end| end + 1))
}

/// Takes whole lines out. Those that follow each other go as one: at the end of a file without a line end,
/// the one before them goes too, and only that.
fn without_lines(text: &str, lines: impl Iterator<Item = Range<usize>>) -> Vec<Change> {
    let mut blocks: Vec<Range<usize>> = Vec::new();
    for line in lines {
        match blocks.last_mut() {
            Some(block) if matches!(text.get(block.end..line.start), Some("\n" | "\r\n")) => {
                block.end = line.end;
            }
            Some(_) | None => blocks.push(line),
        }
    }
    let change = |block| Change { range: with_line_end(text, block), with: String::new() };
    blocks.into_iter().map(change).collect()
}

/// What lines nested in the box are indented by.
fn under(text: &str, words: &Words) -> String {
    let start = text[..words.head.start].rfind('\n').map_or(0, |end| end + 1);
    let line = text[start..].trim_start_matches(crate::json::BOM);
    let blank: String = line.chars().take_while(|c| c.is_whitespace()).collect();
    let more = words.under.saturating_sub(markdown::columns(&blank));
    format!("{blank}{}", " ".repeat(more))
}
