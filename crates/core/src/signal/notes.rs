//! Reads what an agent's final message leaves for those who come after it: what it decided, assumed
//! and was bound by, what it would do next, what others should remember, and that it hands over.
//!
//! Lenient about form (headings of several kinds, lists or a paragraph), strict about size: whatever
//! an agent writes, what is kept of it is bounded. Shown text (code, quotes) says nothing.

use serde::{Deserialize, Serialize};

use super::lines::{Line, LineKind, classify, strip_bullet};
use crate::text::{clip, fold_whitespace, strip_ansi};

/// How many items of each kind are kept, and how long each may be.
const MAX_ITEMS: usize = 12;
const MAX_ITEM: usize = 240;
/// What is worth remembering may take a little more room.
const MAX_LEARNT: usize = 400;
const MAX_REASON: usize = 600;
const MAX_SUMMARY: usize = 300;
const MAX_SUMMARY_LINES: usize = 20;

/// What an agent leaves for those who come after it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Notes {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub assumptions: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub constraints: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub next_steps: Vec<String>,
    /// From `<memory>` blocks: what other tasks should know.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub learnt: Vec<String>,
    /// From a `<handoff>` block: why it hands over instead of finishing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handoff: Option<String>,
    /// From a `<changed-checks>` block: why it had to change tests or checks that were there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changed_checks: Option<String>,
}

impl Notes {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// What is known after a further attempt at the same task. What was decided, assumed or found to bind stays
    /// until there is too much of it; the next steps are those that were said last. Why it handed over is the outcome
    /// of that attempt and no step.
    pub fn follow(&mut self, newer: &Self) {
        add_newer(&mut self.decisions, &newer.decisions);
        add_newer(&mut self.assumptions, &newer.assumptions);
        add_newer(&mut self.constraints, &newer.constraints);
        if !newer.next_steps.is_empty() {
            self.next_steps.clone_from(&newer.next_steps);
        }
    }

    fn list(&mut self, kind: Kind) -> &mut Vec<String> {
        match kind {
            Kind::Decisions => &mut self.decisions,
            Kind::Assumptions => &mut self.assumptions,
            Kind::Constraints => &mut self.constraints,
            Kind::NextSteps => &mut self.next_steps,
        }
    }

    fn add(&mut self, kind: Kind, item: &str) {
        push(self.list(kind), item, MAX_ITEM);
    }
}

/// The newest are kept; what is said again is only newer.
fn add_newer(known: &mut Vec<String>, newer: &[String]) {
    known.retain(|item| !newer.contains(item));
    known.extend_from_slice(newer);
    known.drain(..known.len().saturating_sub(MAX_ITEMS));
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Decisions,
    Assumptions,
    Constraints,
    NextSteps,
}

/// The notes in an agent's final message.
pub fn read_notes(message: &str) -> Notes {
    // Most messages have none, which a glance tells.
    if !may_matter(message) {
        return Notes::default();
    }
    let message = strip_ansi(message);
    let lines = classify(&message);
    let mut notes = Notes::default();
    for text in blocks(&lines, "memory") {
        for item in items_of(&text) {
            push(&mut notes.learnt, &item, MAX_LEARNT);
        }
    }
    let last =
        |name: &str| blocks(&lines, name).last().map(|text| clip(text.trim(), MAX_REASON).into_owned());
    notes.handoff = last("handoff");
    notes.changed_checks = last("changed-checks").filter(|why| !why.is_empty());
    read_lists(&lines, &mut notes);
    notes
}

/// The first paragraph of what it says, as what it did in its own words.
pub fn summary(message: &str) -> String {
    let lines = classify(message);
    let said = |line: &&Line<'_>| {
        line.kind == LineKind::Prose
            && heading(line.text).is_none()
            && !line.text.trim().starts_with(['<', '#'])
    };
    let first = lines.iter().skip_while(|line| !said(line)).take_while(said).take(MAX_SUMMARY_LINES);
    let text: Vec<&str> = first.map(|line| line.text).collect();
    let text = text.join(" ");
    clip(&fold_whitespace(&text), MAX_SUMMARY).into_owned()
}

fn may_matter(message: &str) -> bool {
    let lower = message.to_ascii_lowercase();
    HEADINGS.iter().any(|(word, _)| lower.contains(word))
        || lower.contains("<memory")
        || lower.contains("<handoff")
        || lower.contains("<changed-checks")
}

/// The texts between `<name>` at the beginning of a line and `</name>`. One that is never closed goes
/// to the end of the message: it was cut off.
fn blocks(lines: &[Line<'_>], name: &str) -> Vec<String> {
    let (open, close) = (format!("<{name}>"), format!("</{name}>"));
    let mut found = Vec::new();
    let mut block: Option<String> = None;
    for line in lines {
        if matches!(line.kind, LineKind::Code(_) | LineKind::FenceOpen(_) | LineKind::FenceClose(_))
            && block.is_none()
        {
            continue;
        }
        let text = line.text.trim();
        let rest = match &block {
            Some(_) => text,
            None => match strip_prefix_ignore_case(text, &open) {
                Some(rest) => {
                    block = Some(String::new());
                    rest
                }
                None => continue,
            },
        };
        let Some(inside) = &mut block else { continue };
        let end = rest.to_ascii_lowercase().find(&close);
        inside.push_str(&rest[..end.unwrap_or(rest.len())]);
        inside.push('\n');
        if end.is_some() {
            found.extend(block.take());
        }
    }
    found.extend(block);
    found
}

fn strip_prefix_ignore_case<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let start = text.get(..prefix.len())?;
    start.eq_ignore_ascii_case(prefix).then(|| &text[prefix.len()..])
}

/// One item per list entry, or the whole as one.
fn items_of(text: &str) -> Vec<String> {
    let entries: Vec<String> =
        text.lines().filter_map(|line| strip_bullet(line.trim())).map(str::to_owned).collect();
    if entries.is_empty() { vec![text.to_owned()] } else { entries }
}

fn read_lists(lines: &[Line<'_>], notes: &mut Notes) {
    let mut current: Option<Kind> = None;
    let mut item = String::new();
    for line in lines {
        let text = line.text.trim();
        if line.kind == LineKind::Prose
            && let Some((kind, rest)) = heading(text)
        {
            finish(notes, current, &mut item);
            current = Some(kind);
            item.push_str(rest);
            continue;
        }
        let (Some(kind), LineKind::Prose) = (current, line.kind) else {
            // A blank line between a heading and its list belongs to neither.
            if line.kind != LineKind::Blank {
                finish(notes, current.take(), &mut item);
            } else if let Some(kind) = current
                && !item.is_empty()
            {
                finish(notes, Some(kind), &mut item);
            }
            continue;
        };
        match strip_bullet(text) {
            Some(entry) => {
                finish(notes, Some(kind), &mut item);
                item.push_str(entry);
            }
            // Another heading, or prose after the list: what was listed is over.
            None if text.starts_with(['#', '<']) || (item.is_empty() && !notes.list(kind).is_empty()) => {
                finish(notes, current.take(), &mut item);
            }
            None => {
                if !item.is_empty() {
                    item.push(' ');
                }
                item.push_str(text);
            }
        }
    }
    finish(notes, current, &mut item);
}

fn finish(notes: &mut Notes, kind: Option<Kind>, item: &mut String) {
    if let Some(kind) = kind {
        notes.add(kind, item);
    }
    item.clear();
}

fn push(list: &mut Vec<String>, item: &str, max: usize) {
    let item = fold_whitespace(item);
    let item = item.trim_matches(['*', '_', '-', ' ']);
    let says_nothing =
        matches!(item.trim_end_matches('.').to_ascii_lowercase().as_str(), "" | "none" | "n/a" | "nothing");
    if says_nothing || list.len() == MAX_ITEMS {
        return;
    }
    let item = clip(item, max).into_owned();
    if !list.contains(&item) {
        list.push(item);
    }
}

/// What headings are called, longer ones first.
const HEADINGS: [(&str, Kind); 16] = [
    ("decisions made", Kind::Decisions),
    ("key decisions", Kind::Decisions),
    ("decisions", Kind::Decisions),
    ("decision", Kind::Decisions),
    ("assumptions made", Kind::Assumptions),
    ("assumptions", Kind::Assumptions),
    ("assumption", Kind::Assumptions),
    ("constraints", Kind::Constraints),
    ("constraint", Kind::Constraints),
    ("next steps", Kind::NextSteps),
    ("next step", Kind::NextSteps),
    ("remaining work", Kind::NextSteps),
    ("remaining steps", Kind::NextSteps),
    ("left to do", Kind::NextSteps),
    ("still to do", Kind::NextSteps),
    ("what is left", Kind::NextSteps),
];

/// `Decisions:`, `## Decisions`, `**Decisions**:` and the like, and what follows on the same line.
fn heading(line: &str) -> Option<(Kind, &str)> {
    let line = line.trim();
    let bare = line.trim_start_matches(['#', '*', '_', ' ']);
    let decorated = bare.len() < line.len();
    let (name, kind) = HEADINGS.iter().find(|(name, _)| strip_prefix_ignore_case(bare, name).is_some())?;
    let rest = bare[name.len()..].trim_start_matches(['*', '_', ' ']);
    match rest.strip_prefix(':') {
        Some(rest) => Some((*kind, rest.trim_start_matches(['*', '_', ' ']))),
        None if rest.is_empty() && decorated => Some((*kind, "")),
        None => None,
    }
}
