//! Plan.md: front matter, and steps as checkboxes `- [ ] **Step N:** text (action_type: …)` with what
//! they need as bullets under them.
//!
//! Read tolerantly: other sections, other bullets, gaps in the numbers, comments and code fences are
//! left alone. What a step's bullets mean is read in [`step`], the front matter in [`header`].

use std::ops::Range;

use wiggum_core::ids::TaskId;
use wiggum_core::task::FileStatus;

use crate::formats::markdown::region::{Inside, Region};
use crate::formats::markdown::text::{label, take_note, without_comments};
use crate::formats::markdown::words::Words;
use crate::formats::markdown::{
    self, Line, Lines, ListItem, atx_level, checkbox, columns, dedent, fence, list_item,
};
use crate::problem::Findings;
use crate::{Dialect, Parsed, Place};

pub(crate) mod header;
mod step;
mod yaml;

use super::{Family, Profile};
use step::{Detail, Key};

pub(crate) const PROFILE: Profile = Profile {
    name: "Plan.md",
    unit: "a step is a task",
    family: Family::Steps,
    nests: false,
    agent_ticks: false,
    says: &[],
    ..markdown::PROFILE
};

/// How a step that failed is marked for people, beside its box.
pub(crate) const FAILED: &str = "(FAILED)";

/// What is written between the brackets for a status: as elsewhere, but that Obsidian has a mark for what is
/// cancelled.
pub(crate) fn mark_of(status: FileStatus) -> &'static str {
    match status {
        FileStatus::Skipped => "-",
        FileStatus::Open | FileStatus::Done | FileStatus::Failed => markdown::mark_of(status),
    }
}

fn status_of(mark: &str) -> Option<FileStatus> {
    if mark == "-" { Some(FileStatus::Skipped) } else { markdown::status_of(mark) }
}

/// `None` if this is not a plan but other Markdown.
pub(crate) fn parse(file_name: &str, text: &str, findings: &mut Findings) -> Option<Parsed> {
    let may_be = ["plan_id", "Step", "step", "STEP"].iter().any(|word| text.contains(word));
    if !may_be {
        return None;
    }
    let mut own = Findings::default();
    let mut front = header::read(text, &mut own);
    let drafts = Reader::read(text, front.body_at);
    let says_how = drafts.iter().any(|draft| draft.action.is_some());
    let is_named = !drafts.is_empty() && stem(file_name).to_ascii_lowercase().starts_with("plan");
    if !front.header.says_id && !says_how && !is_named {
        return None;
    }
    if drafts.is_empty() {
        own.add(
            front.body_at,
            "a plan without steps; expected `- [ ] **Step 1:** what to do (action_type: …)`",
        );
    }
    if !front.header.says_id {
        front.header.plan_id = id_from(file_name);
    }
    let mut parsed = Parsed::new(Dialect::Plan, 0..0);
    for draft in drafts {
        let place = draft.place();
        let task = step::task(draft, &mut own);
        parsed.add(task, place);
    }
    parsed.front = Some(front);
    parsed.unknown_marks = unknown_marks(text, &parsed);
    findings.append(own);
    Some(parsed)
}

fn unknown_marks(text: &str, parsed: &Parsed) -> Vec<(TaskId, &'static str)> {
    let known = parsed.tasks.iter().zip(&parsed.places);
    let unknown = |mark: &str| markdown::UNKNOWN.iter().copied().find(|unknown| *unknown == mark);
    known.filter_map(|(task, place)| Some((task.id.clone(), unknown(&text[place.mark.clone()])?))).collect()
}

/// Where the words of the step at this position stand.
pub(crate) fn words(text: &str, position: usize) -> Option<Words> {
    let front = header::read(text, &mut Findings::default());
    let draft = Reader::read(text, front.body_at).into_iter().nth(position)?;
    let depends_on = draft.details.iter().filter(|detail| detail.key == Key::Dependencies);
    Some(Words {
        head: Words::behind(text, draft.note_at),
        under: draft.content_indent,
        depends_on: depends_on.map(|detail| detail.span.clone()).collect(),
        description: draft.description_at.into_iter().zip(draft.description).collect(),
    })
}

fn stem(file_name: &str) -> &str {
    let name = file_name.rsplit(['/', '\\']).next().unwrap_or(file_name);
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}

/// A file's name as an id; what an id cannot have becomes `_`.
fn id_from(file_name: &str) -> String {
    let stem = stem(file_name);
    if header::is_id(stem) {
        return stem.to_owned();
    }
    let made: String =
        stem.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).take(60).collect();
    if header::is_id(&made) { made } else { "plan".to_owned() }
}

/// A step as it is being read.
struct Draft {
    number: u32,
    span: Range<usize>,
    mark: Range<usize>,
    status: FileStatus,
    title: String,
    /// What carries it out, as the step says it.
    action: Option<String>,
    note: Option<Range<usize>>,
    note_at: usize,
    indent: usize,
    content_indent: usize,
    details: Vec<Detail>,
    description: Vec<String>,
    /// The lines those stand on.
    description_at: Vec<Range<usize>>,
}

impl Draft {
    fn start(&self) -> usize {
        self.mark.start
    }

    fn place(&self) -> Place {
        Place {
            span: self.span.clone(),
            id_at: self.mark.start,
            mark: self.mark.clone(),
            rank: None,
            note: self.note.clone(),
            note_at: self.note_at,
            marks: Vec::new(),
        }
    }
}

#[derive(Default)]
struct Reader {
    drafts: Vec<Draft>,
    /// Is the last draft still open, so that what is nested belongs to it?
    in_step: bool,
    /// Is the last detail of that step one that may go on over lines?
    in_detail: bool,
    region: Region,
    after_blank: bool,
}

impl Reader {
    fn read(text: &str, body_at: usize) -> Vec<Draft> {
        let mut reader = Self::default();
        let mut lines = Lines::new(text);
        lines.skip_to(body_at);
        for line in lines {
            reader.line(line);
        }
        reader.drafts
    }

    fn line(&mut self, line: Line<'_>) {
        let content = line.text.trim();
        let indent = columns(line.text);
        if self.goes_on(line, content, indent) || self.in_region(line, content, indent) {
            return;
        }
        if content.is_empty() {
            self.after_blank = true;
            return;
        }
        if let Some(item) = list_item(line.text) {
            self.item(line, &item);
        } else if content.starts_with("<!--") {
            if !content.contains("-->") {
                self.region = Region::Comment;
            }
        } else if atx_level(content).is_some() && !self.is_inside(indent) || is_rule(line.text) {
            self.leave();
        } else if self.is_inside(indent) || (self.in_step && !self.after_blank) {
            self.plain(line, content);
        } else {
            self.leave();
        }
        self.after_blank = false;
    }

    /// Does a line belong to the detail above it? Blank lines do if more of it follows.
    fn goes_on(&mut self, line: Line<'_>, content: &str, indent: usize) -> bool {
        if !self.in_detail {
            return false;
        }
        let after_blank = self.after_blank;
        let Some(draft) = self.drafts.last_mut() else { return false };
        let Some(detail) = draft.details.last_mut() else { return false };
        if content.is_empty() {
            detail.lines.push(String::new());
            self.after_blank = true;
            return true;
        }
        let is_lazy = || {
            let opens =
                list_item(line.text).is_some() || atx_level(content).is_some() || fence(content).is_some();
            !after_blank && !opens && !content.starts_with("<!--") && !is_rule(line.text)
        };
        if indent > detail.indent || (detail.takes_lazy_lines() && is_lazy()) {
            detail.lines.push(line.text.to_owned());
            detail.span.end = line.start + line.text.trim_end().len();
            draft.span.end = line.end();
            self.after_blank = false;
            return true;
        }
        self.in_detail = false;
        false
    }

    fn in_region(&mut self, line: Line<'_>, content: &str, indent: usize) -> bool {
        match self.region.take(content, indent) {
            Inside::Comment => return true,
            Inside::Fence => {
                self.describe(line);
                return true;
            }
            Inside::Nothing => {}
        }
        let Some((marker, length)) = fence(content) else { return false };
        if !self.is_inside(indent) {
            self.leave();
        }
        self.region = Region::Fence { marker, length, item: self.open_indent() };
        self.describe(line);
        true
    }

    fn item(&mut self, line: Line<'_>, item: &ListItem<'_>) {
        if let Some(draft) = draft(line, item) {
            self.drafts.push(draft);
            self.in_step = true;
            return;
        }
        if !self.is_inside(item.indent) {
            self.leave();
            return;
        }
        if let Some((key, value)) =
            label(item.content).and_then(|(name, said)| Some((Key::of_bullet(&name, said)?, said)))
            && let Some(draft) = self.drafts.last_mut()
        {
            let at = line.start + item.content_at;
            draft.details.push(Detail {
                key,
                at,
                span: line.ending(value),
                indent: item.indent,
                value: value.to_owned(),
                lines: Vec::new(),
            });
            draft.span.end = line.end();
            self.in_detail = key.may_go_on(value);
            return;
        }
        if let Some((marker, length)) = fence(item.content) {
            self.region = Region::Fence { marker, length, item: self.open_indent() };
        }
        self.describe(line);
    }

    /// More words of the step: of its title while that is not complete, else of its description.
    fn plain(&mut self, line: Line<'_>, content: &str) {
        if let Some(draft) = self.drafts.last_mut()
            && draft.action.is_none()
            && draft.details.is_empty()
            && draft.description.is_empty()
        {
            let mut said = without_comments(content);
            draft.action = take_note(&mut said, &["action_type", "action type"]);
            if draft.action.is_some() {
                draft.title = format!("{} {said}", draft.title).trim().to_owned();
                draft.span.end = line.end();
                return;
            }
        }
        self.describe(line);
    }

    fn describe(&mut self, line: Line<'_>) {
        if !self.in_step {
            return;
        }
        if let Some(draft) = self.drafts.last_mut() {
            draft.description.push(dedent(line.text, draft.content_indent).trim_end().to_owned());
            draft.description_at.push(line.start..line.end());
            draft.span.end = line.end();
        }
    }

    fn is_inside(&self, indent: usize) -> bool {
        self.open_indent().is_some_and(|step| indent > step)
    }

    fn open_indent(&self) -> Option<usize> {
        self.drafts.last().filter(|_| self.in_step).map(|draft| draft.indent)
    }

    fn leave(&mut self) {
        self.in_step = false;
        self.in_detail = false;
    }
}

/// A line of dashes, stars or underscores at the margin, which ends what stands above it.
fn is_rule(line: &str) -> bool {
    let content = line.trim_end();
    ['-', '*', '_'].iter().any(|&c| content.len() >= 3 && content.chars().all(|each| each == c))
}

/// The step that an item is, if it is one.
fn draft(line: Line<'_>, item: &ListItem<'_>) -> Option<Draft> {
    let (mark, said) = checkbox(item.content)?;
    let (number, head) = step_number(said)?;
    let status = status_of(mark)?;
    let mark_at = line.start + item.content_at + 1;
    let behind = &item.content[mark.len() + 2..];
    let said_at = line.start + item.content_at + item.content.len() - behind.trim_start().len();
    let note_at = said_at + head;
    let rest = &said[head..];
    let note = failed_note(rest, status);
    let mut words = rest.to_owned();
    if let Some(note) = &note {
        words.replace_range(note.clone(), "");
    }
    let mut title = without_comments(&words);
    let action = take_note(&mut title, &["action_type", "action type"]);
    Some(Draft {
        number,
        span: line.start..line.end(),
        mark: mark_at..mark_at + mark.len(),
        status,
        title: title.trim().to_owned(),
        action,
        note: note.map(|note| note.start + note_at..note.end + note_at),
        note_at,
        indent: item.indent,
        content_indent: item.indent + (item.content_at - (line.text.len() - line.text.trim_start().len())),
        details: Vec::new(),
        description: Vec::new(),
        description_at: Vec::new(),
    })
}

/// The number in `**Step N:**`, and how long that head is.
fn step_number(said: &str) -> Option<(u32, usize)> {
    let emphasis = ["**", "__"].into_iter().find(|mark| said.starts_with(mark)).unwrap_or("");
    let word = &said[emphasis.len()..];
    let after = word.get(..4).filter(|step| step.eq_ignore_ascii_case("step")).map(|_| &word[4..])?;
    let digits_on = after.trim_start_matches([' ', '\t', '_', '#']);
    let length = digits_on.bytes().take_while(u8::is_ascii_digit).count();
    let number = digits_on[..length].parse().ok().filter(|_| length <= 6 && digits_on.len() < after.len())?;
    let rest = &digits_on[length..];
    let colon = |text: &'_ str| text.strip_prefix([':', '.', ')']).map_or(text.len(), str::len);
    let closed = &rest[rest.len() - colon(rest)..];
    let ended = closed.strip_prefix(emphasis)?;
    let left = colon(ended);
    let has_colon = closed.len() < rest.len() || left < ended.len();
    (has_colon || !emphasis.is_empty()).then(|| (number, said.len() - left))
}

/// Where `(FAILED)` stands, with the blank before it: behind the head, or at the end of a failed step.
fn failed_note(rest: &str, status: FileStatus) -> Option<Range<usize>> {
    let blank = rest.len() - rest.trim_start().len();
    if rest[blank..].starts_with(FAILED) {
        return Some(0..blank + FAILED.len());
    }
    let end = rest.trim_end().len();
    let start = rest[..end].strip_suffix(FAILED).filter(|_| status == FileStatus::Failed)?.trim_end().len();
    Some(start..end)
}
