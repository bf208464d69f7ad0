//! The front matter of a plan: read line by line, so that the place of every value is known and an
//! edit touches nothing else.

use std::ops::Range;

use super::yaml;
use crate::formats::markdown::Lines;
use crate::problem::Findings;

/// Long enough for any name, short enough for a file name with words around it.
const MAX_ID: usize = 100;

/// What the front matter of a plan says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanHeader {
    /// From the file's name where the file does not say it.
    pub plan_id: String,
    /// Does the file say its id itself?
    pub says_id: bool,
    pub objective: String,
    pub total_steps: Option<u32>,
    pub completed_steps: Option<u32>,
    pub status: Option<String>,
    pub approval_required: bool,
    pub iterations_used: Option<u32>,
    pub max_iterations: Option<u32>,
}

/// A value of the front matter that follows what happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanValue<'a> {
    TotalSteps(u32),
    CompletedSteps(u32),
    Status(&'a str),
    IterationsUsed(u32),
    MaxIterations(u32),
}

/// Where the values stand that are edited; empty for a key without a value.
#[derive(Clone, Debug, Default)]
pub(crate) struct Values {
    total_steps: Option<Range<usize>>,
    completed_steps: Option<Range<usize>>,
    status: Option<Range<usize>>,
    iterations_used: Option<Range<usize>>,
    max_iterations: Option<Range<usize>>,
}

impl Values {
    pub(crate) fn of(&self, value: PlanValue<'_>) -> Option<Range<usize>> {
        match value {
            PlanValue::TotalSteps(_) => self.total_steps.clone(),
            PlanValue::CompletedSteps(_) => self.completed_steps.clone(),
            PlanValue::Status(_) => self.status.clone(),
            PlanValue::IterationsUsed(_) => self.iterations_used.clone(),
            PlanValue::MaxIterations(_) => self.max_iterations.clone(),
        }
    }

    pub(crate) fn all(&mut self) -> impl Iterator<Item = &mut Range<usize>> {
        [
            &mut self.total_steps,
            &mut self.completed_steps,
            &mut self.status,
            &mut self.iterations_used,
            &mut self.max_iterations,
        ]
        .into_iter()
        .flatten()
    }
}

/// A plan's header and where it stands.
#[derive(Clone, Debug, Default)]
pub(crate) struct Front {
    pub(crate) header: PlanHeader,
    pub(crate) values: Values,
    /// Where the text behind it starts.
    pub(super) body_at: usize,
}

impl Front {
    pub(crate) fn note(&mut self, value: PlanValue<'_>) {
        match value {
            PlanValue::TotalSteps(count) => self.header.total_steps = Some(count),
            PlanValue::CompletedSteps(count) => self.header.completed_steps = Some(count),
            PlanValue::Status(word) => self.header.status = Some(word.to_owned()),
            PlanValue::IterationsUsed(count) => self.header.iterations_used = Some(count),
            PlanValue::MaxIterations(count) => self.header.max_iterations = Some(count),
        }
    }
}

/// How a value is written; `before` is the text up to its place.
pub(crate) fn written(value: PlanValue<'_>, before: &str) -> String {
    let text = match value {
        PlanValue::TotalSteps(count)
        | PlanValue::CompletedSteps(count)
        | PlanValue::IterationsUsed(count)
        | PlanValue::MaxIterations(count) => count.to_string(),
        // Anything but a word could mean something to YAML.
        PlanValue::Status(word) => {
            word.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
        }
    };
    if before.ends_with(':') { format!(" {text}") } else { text }
}

/// Reads the front matter; comments and blank lines may stand before it.
pub(super) fn read(text: &str, findings: &mut Findings) -> Front {
    let mut front = Front::default();
    let (inside, body_at) = match bounds(text) {
        Bounds::None => return front,
        Bounds::Unclosed(at) => {
            if text[at..].contains("plan_id:") {
                findings.add(at, "the front matter has no end; expected a line `---` behind it");
            }
            return front;
        }
        Bounds::Found { inside, body_at } => (inside, body_at),
    };
    front.body_at = body_at;
    for entry in entries(text, inside) {
        take(&mut front, text, &entry, findings);
    }
    front
}

/// Ids name folders and notes, so they are kept to what every file system and link can say.
pub(super) fn is_id(id: &str) -> bool {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    !id.is_empty()
        && id.len() <= MAX_ID
        && id.chars().all(is_plain)
        && !id.starts_with(['.', '-'])
        && !id.ends_with('.')
}

enum Bounds {
    None,
    Unclosed(usize),
    Found { inside: Range<usize>, body_at: usize },
}

fn bounds(text: &str) -> Bounds {
    let mut in_comment = false;
    let mut lines = Lines::new(text);
    while let Some(line) = lines.next() {
        let content = line.text.trim();
        if in_comment || content.starts_with("<!--") {
            in_comment = !content.contains("-->");
        } else if line.text.trim_end() == "---" {
            let start = lines.at();
            let end = lines.find(|line| matches!(line.text.trim_end(), "---" | "..."));
            return match end {
                Some(end) => Bounds::Found { inside: start..end.start, body_at: lines.at() },
                None => Bounds::Unclosed(line.start),
            };
        } else if !content.is_empty() {
            return Bounds::None;
        }
    }
    Bounds::None
}

/// A key at the start of a line, its value on that line, and all lines that belong to it.
struct Entry<'t> {
    key: &'t str,
    key_at: usize,
    value: Range<usize>,
    span: Range<usize>,
}

fn entries(text: &str, inside: Range<usize>) -> Vec<Entry<'_>> {
    let mut entries: Vec<Entry<'_>> = Vec::new();
    let mut lines = Lines::new(&text[..inside.end]);
    lines.skip_to(inside.start);
    for line in lines {
        let Some((key, after)) = key(line.text) else {
            if let Some(last) = entries.last_mut() {
                last.span.end = line.end();
            }
            continue;
        };
        let value_at = line.start + after;
        let value = scalar(&line.text[after..]);
        entries.push(Entry {
            key,
            key_at: line.start,
            value: value_at + value.start..value_at + value.end,
            span: line.start..line.end(),
        });
    }
    entries
}

/// The key a line starts with, and where behind the colon its value may begin.
fn key(line: &str) -> Option<(&str, usize)> {
    let colon = line.find(':')?;
    let (key, rest) = (line[..colon].trim_end(), &line[colon + 1..]);
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '"' | '\'');
    let is_key = !key.is_empty() && key.chars().all(is_word) && !key.starts_with('-');
    let ends = rest.is_empty() || rest.starts_with([' ', '\t']);
    (is_key && ends).then(|| (key.trim_matches(['"', '\'']), colon + 1))
}

/// Where in the rest of a line its scalar stands: within its quotes, or up to a comment.
fn scalar(rest: &str) -> Range<usize> {
    let start = rest.len() - rest.trim_start().len();
    let said = &rest[start..];
    if let Some(quote) = said.chars().next().filter(|c| matches!(c, '"' | '\'')) {
        let inside = &said[1..];
        let mut escaped = false;
        for (at, c) in inside.char_indices() {
            match c {
                '\\' if quote == '"' && !escaped => escaped = true,
                _ if c == quote && !escaped => return start + 1..start + 1 + at,
                _ => escaped = false,
            }
        }
    }
    if said.is_empty() || said.starts_with('#') {
        // Nothing is said: a value goes right behind the colon.
        return 0..0;
    }
    let comment = said.find(" #").or_else(|| said.find("\t#")).unwrap_or(said.len());
    start..start + said[..comment].trim_end().len()
}

fn take(front: &mut Front, text: &str, entry: &Entry<'_>, findings: &mut Findings) {
    let said = &text[entry.value.clone()];
    let is_nothing = said.is_empty() || matches!(said, "~" | "null");
    let header = &mut front.header;
    let values = &mut front.values;
    // A value of several lines is read, but not edited.
    let is_one_line = !said.starts_with(['|', '>']);
    let mut first = |place: &mut Option<Range<usize>>| {
        if is_one_line && place.replace(entry.value.clone()).is_some() {
            let message = format!("duplicate key `{}`; expected it once", entry.key);
            findings.add(entry.key_at, message);
        }
    };
    let counted = match entry.key {
        "plan_id" => {
            if header.says_id {
                findings.add(entry.key_at, "duplicate key `plan_id`; expected it once");
            } else if !is_id(said) {
                findings.add(
                    entry.key_at,
                    format!("plan_id `{said}` cannot name a file; expected letters, digits, `-`, `_` and `.`, at most {MAX_ID} bytes"),
                );
            }
            header.says_id = true;
            header.plan_id = said.to_owned();
            return;
        }
        "objective" => {
            header.objective = yaml::entry(&text[entry.span.clone()]).unwrap_or_else(|| said.to_owned());
            return;
        }
        "status" => {
            first(&mut values.status);
            header.status = (!is_nothing).then(|| said.to_owned());
            return;
        }
        "approval_required" => {
            header.approval_required = match said.to_ascii_lowercase().as_str() {
                "true" | "yes" | "on" => true,
                "false" | "no" | "off" => false,
                _ => {
                    let message = format!("`approval_required` is `{said}`; expected true or false");
                    findings.add(entry.key_at, message);
                    true
                }
            };
            return;
        }
        "total_steps" => (&mut header.total_steps, &mut values.total_steps),
        "completed_steps" => (&mut header.completed_steps, &mut values.completed_steps),
        "iterations_used" => (&mut header.iterations_used, &mut values.iterations_used),
        "max_iterations" => (&mut header.max_iterations, &mut values.max_iterations),
        _ => return,
    };
    first(counted.1);
    if is_nothing {
        return;
    }
    *counted.0 = said.parse().ok();
    if counted.0.is_none() {
        findings.add(entry.key_at, format!("`{}` is `{said}`; expected a whole number", entry.key));
    }
}
