//! Markdown in which tasks are something else than boxes: headings with steps below them, rows of a table with a
//! status, or plain items of a list.
//!
//! A heading is a task where it says so (`### Task 3: title`, `## US-001: title`, `## [ ] title`); the boxes below it
//! are its steps, and it is done when they are. Without boxes, tables with a column for the status come next, then
//! phases, stages and milestones of a plan, and the items of a list in files whose name says that they are for work.

use wiggum_core::ids::TaskId;
use wiggum_core::task::{FileStatus, Task};

use super::mark::Mark;
use super::markdown::region::{Inside, Region};
use super::markdown::text::{Detail, detail, ids, is_id, is_set_aside, waiting_notes};
use super::markdown::{
    self, CODE_INDENT, Line, Lines, atx_level, checkbox, columns, dedent, fence, list_item, setext_level,
};
use super::{Dialect, Family, Profile, features};
use crate::json::BOM;
use crate::recognise::{is_list_heading, is_markdown};
use crate::slug::{Slugs, slug};
use crate::{Parsed, Place, unique};

pub(crate) const HEADINGS: Profile = Profile {
    name: "Markdown (headings)",
    unit: "a heading is a task; boxes below it are its steps",
    family: Family::Marked,
    says_failed: false,
    nests: false,
    agent_ticks: true,
    says: &[],
    ..markdown::PROFILE
};

pub(crate) const ITEMS: Profile = Profile {
    name: "Markdown (list)",
    unit: "an item of a list is a task; what is nested is part of it",
    ..HEADINGS
};

pub(crate) const TABLE: Profile =
    Profile { name: "Markdown (table)", unit: "a row of a table with a status is a task", ..HEADINGS };

/// What a line of Markdown is, outside of code and comments.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// Code, a comment, or blank.
    Other,
    Heading(usize),
    Item {
        indent: usize,
        content_at: usize,
        is_box: bool,
    },
    Row,
    Text,
}

struct Outline<'t> {
    text: &'t str,
    lines: Vec<(Line<'t>, Shape)>,
}

/// The tasks of a file by what it has most plainly; nothing where boxes are the tasks, or where there is none.
pub(crate) fn parse(file_name: &str, text: &str, keep: Option<Dialect>) -> Option<Parsed> {
    let name = file_name.rsplit(['/', '\\']).next().unwrap_or(file_name);
    if name.contains('.') && !is_markdown(name) {
        return None;
    }
    let outline = Outline::read(text);
    let has_boxes = outline.lines.iter().any(|(_, shape)| matches!(shape, Shape::Item { is_box: true, .. }));
    let work = is_for_work(file_name);
    let some = |parsed: Parsed| (!parsed.tasks.is_empty()).then_some(parsed);
    let headings = |kind: Heads| outline.headings(kind).and_then(some);
    let kept = match keep {
        Some(Dialect::Headings) => {
            headings(Heads::Marked).or_else(|| headings(Heads::Tasks)).or_else(|| headings(Heads::Phases))
        }
        Some(Dialect::Items) => some(outline.items()),
        Some(Dialect::Table) => some(outline.tables()),
        Some(Dialect::Markdown) => return None,
        Some(_) | None => None,
    };
    if kept.is_some() {
        return kept;
    }
    if has_boxes {
        return headings(Heads::Tasks).filter(|_| outline.boxes_are_steps());
    }
    headings(Heads::Marked)
        .or_else(|| headings(Heads::Tasks))
        .or_else(|| some(outline.tables()))
        .or_else(|| headings(Heads::Phases).filter(|_| work.is_plan))
        .or_else(|| some(outline.items()).filter(|_| work.is_list))
}

/// Where the tasks of one of GSD's plans begin: elements of XML, which nobody ticks. Its boxes are checks of the whole.
pub(crate) fn gsd_plan(text: &str) -> Option<usize> {
    let tasks = text.find("<tasks>")?;
    (text.contains("<task type=") && text.contains("</task>")).then_some(tasks)
}

/// What a file's name says of what is in it.
struct Work {
    is_plan: bool,
    is_list: bool,
}

fn is_for_work(file_name: &str) -> Work {
    let path = file_name.to_lowercase().replace(['-', ' '], "_");
    let name = path.rsplit(['/', '\\']).next().unwrap_or_default();
    let is = |words: &[&str]| words.iter().any(|word| name.contains(word));
    let is_list =
        is(&["todo", "roadmap", "backlog", "fix_plan", "implementation_plan", "next_steps", "tasks"]);
    let is_plan =
        is_list || is(&["plan", "phases", "milestones", "steps", "sprint"]) || path.contains("/plans/");
    Work { is_plan, is_list }
}

/// Which headings are tasks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Heads {
    /// `## [ ] title`
    Marked,
    /// `### Task 3: title`, `### US-001: title`
    Tasks,
    /// `## Phase 1: title`
    Phases,
}

const TASK_WORDS: [&str; 6] = ["task", "iteration", "story", "user story", "ticket", "issue"];
const PHASE_WORDS: [&str; 8] =
    ["phase", "stage", "milestone", "step", "sprint", "part", "work package", "workstream"];

impl<'t> Outline<'t> {
    fn read(text: &'t str) -> Self {
        let mut region = Region::default();
        let mut lines = Vec::new();
        let mut all = Lines::new(text);
        all.skip_to(front_matter_end(text));
        let mut all = all.peekable();
        let mut is_underline = false;
        while let Some(line) = all.next() {
            let content = line.text.trim();
            if std::mem::take(&mut is_underline) {
                lines.push((line, Shape::Other));
                continue;
            }
            let shape = match region.take(content, columns(line.text)) {
                Inside::Comment | Inside::Fence => Shape::Other,
                Inside::Nothing => shape(line, content, &mut region),
            };
            let underline = all.peek().and_then(|next| setext_level(next.text));
            let shape = match underline.filter(|_| shape == Shape::Text && !content.contains('|')) {
                Some(level) => {
                    is_underline = true;
                    Shape::Heading(level)
                }
                None => shape,
            };
            lines.push((line, shape));
        }
        Self { text, lines }
    }

    fn headings(&self, kind: Heads) -> Option<Parsed> {
        let mut heads: Vec<(usize, usize, Head)> = Vec::new();
        for (position, (line, shape)) in self.lines.iter().enumerate() {
            let Shape::Heading(level) = *shape else { continue };
            if let Some(head) = Head::read(heading_words(line.text), kind) {
                heads.push((position, level, head));
            }
        }
        // A single phase is a heading like any other, and what phases contain is theirs.
        let level = match kind {
            Heads::Marked | Heads::Tasks => None,
            Heads::Phases => heads.iter().map(|(_, level, _)| *level).min(),
        };
        heads.retain(|(_, own, _)| level.is_none_or(|level| *own == level));
        if kind == Heads::Phases && heads.len() < 2 {
            return None;
        }
        let mut parsed = Parsed::new(Dialect::Headings, 0..0);
        let mut ids = Ids::new(heads.iter().map(|(_, _, head)| head.id.clone()));
        for (position, level, head) in heads {
            let end = self.section_end(position, level);
            let id = ids.next(head.id.clone(), &head.title);
            let mut section = Section::default();
            for (line, shape) in &self.lines[position + 1..end] {
                section.line(*line, *shape);
            }
            parsed.add_marked(self.task_of_heading(position, &head, section, &id), self.span(position, end));
        }
        resolve(&mut parsed);
        Some(parsed)
    }

    fn task_of_heading(
        &self,
        position: usize,
        head: &Head,
        section: Section,
        id: &TaskId,
    ) -> (Task, Vec<Mark>) {
        let (line, _) = self.lines[position];
        let content = heading_words(line.text);
        let start = line.start + (line.text.trim_end().len() - content.len());
        let (plain, said) = decorated(content);
        let mut task = Task::new(id.clone(), head.title.clone());
        task.description = section.text();
        task.depends_on = unique(section.depends_on.into_iter().chain(waits_on(&head.title)).collect());
        let are_ticked = !section.boxes.is_empty() && section.boxes.iter().all(|(_, ticked)| *ticked);
        task.status = match (said, are_ticked) {
            (Some(status), _) if status != FileStatus::Open => status,
            (_, true) => FileStatus::Done,
            (Some(_) | None, false) => section.status.as_ref().map_or(FileStatus::Open, |value| value.means),
        };
        let own = Mark::of_words(start..start + content.len(), content, &plain);
        let is_said_elsewhere = !section.boxes.is_empty() || section.status.is_some();
        let own = match is_said_elsewhere && said.is_none() {
            true => Mark { done: None, ..own },
            false => own,
        };
        let boxes = section.boxes.into_iter().map(|(at, _)| Mark {
            at,
            open: Some(" ".to_owned()),
            done: Some("x".to_owned()),
            skipped: None,
        });
        // Boxes of a task that is open stay as they are; only one that was done is open again in all its steps.
        let was_done = task.status == FileStatus::Done;
        let boxes = boxes.map(|mark| if was_done { mark } else { Mark { open: None, ..mark } });
        let value = section.status.map(|value| value.mark(self.text));
        (task, [own].into_iter().chain(boxes).chain(value).collect())
    }

    /// Where the section of a heading ends, as a position among the lines.
    fn section_end(&self, position: usize, level: usize) -> usize {
        let ends = |(_, shape): &(Line<'_>, Shape)| matches!(shape, Shape::Heading(other) if *other <= level);
        self.lines[position + 1..]
            .iter()
            .position(ends)
            .map_or(self.lines.len(), |length| position + 1 + length)
    }

    /// The bytes of lines, without the blank ones at the end and the last line end.
    fn span(&self, from: usize, to: usize) -> std::ops::Range<usize> {
        let last = self.lines[from..to].iter().rev().find(|(line, _)| !line.text.trim().is_empty());
        self.lines[from].0.start..last.map_or(self.lines[from].0.end(), |(line, _)| line.end())
    }

    /// Do most boxes stand below headings that are tasks, of which there are at least two?
    fn boxes_are_steps(&self) -> bool {
        let (mut below, mut all, mut heads) = (0, 0, 0);
        let mut open: Option<usize> = None;
        for (line, shape) in &self.lines {
            match *shape {
                Shape::Heading(level) => {
                    let is_task = Head::read(heading_words(line.text), Heads::Tasks).is_some();
                    heads += usize::from(is_task);
                    if is_task {
                        open = Some(level);
                    } else if open.is_some_and(|outer| level <= outer) {
                        open = None;
                    }
                }
                Shape::Item { is_box: true, .. } => {
                    all += 1;
                    below += usize::from(open.is_some());
                }
                Shape::Other | Shape::Item { .. } | Shape::Row | Shape::Text => {}
            }
        }
        heads >= 2 && below * 2 > all
    }

    /// Items of lists at the margin.
    fn items(&self) -> Parsed {
        let mut parsed = Parsed::new(Dialect::Items, 0..0);
        let mut ids = Ids::new(std::iter::empty());
        let mut section = About::Work;
        let mut set_aside: Option<usize> = None;
        // Where a heading says that a list of tasks follows, only that is one.
        let lists = |line: &Line<'_>| is_list_heading(heading_words(line.text));
        let has_list = self.lines.iter().any(|(line, shape)| match shape {
            Shape::Heading(_) => lists(line),
            Shape::Other | Shape::Item { .. } | Shape::Row | Shape::Text => false,
        });
        let mut below_list: Option<usize> = None;
        let mut position = 0;
        while position < self.lines.len() {
            let (line, shape) = self.lines[position];
            position += 1;
            match shape {
                Shape::Heading(level) => {
                    let heading = heading_words(line.text);
                    if lists(&line) {
                        below_list = Some(level);
                    } else if below_list.is_some_and(|outer| level <= outer) {
                        below_list = None;
                    }
                    if set_aside.is_none_or(|outer| level <= outer) {
                        section = About::of(heading);
                        set_aside = (section != About::Work).then_some(level);
                    }
                }
                Shape::Item { indent, content_at, .. } if indent < 2 => {
                    let end = self.item_end(position, indent);
                    let content = line.text[content_at..].trim_end();
                    let first = position;
                    position = end;
                    let is_listed = !has_list || below_list.is_some() || section == About::Done;
                    if section == About::Other || !is_listed || !is_work(content) {
                        continue;
                    }
                    let (plain, said) = decorated(content);
                    let (given, title) = markdown::text::leading_id(&plain)
                        .map_or((None, plain.clone()), |(id, title)| (Some(id.to_owned()), title));
                    let id = match given {
                        Some(own) => ids.row(own),
                        None => ids.next(None, &title),
                    };
                    let mut task = Task::new(id, if title.is_empty() { plain.clone() } else { title });
                    let mut body = Section { indent: content_at, ..Section::default() };
                    for (line, shape) in &self.lines[first..end] {
                        body.line(*line, *shape);
                    }
                    task.description = body.text();
                    task.depends_on =
                        unique(body.depends_on.into_iter().chain(waits_on(&task.title)).collect());
                    let is_done = section == About::Done;
                    task.status = said.unwrap_or(if is_done { FileStatus::Done } else { FileStatus::Open });
                    let start = line.start + content_at;
                    let mark = Mark::of_words(start..start + content.len(), content, &plain);
                    parsed.add_marked((task, vec![mark]), self.span(first - 1, end));
                }
                Shape::Item { .. } | Shape::Other | Shape::Row | Shape::Text => {}
            }
        }
        resolve(&mut parsed);
        parsed
    }

    /// Where the lines end that belong to an item above.
    fn item_end(&self, from: usize, indent: usize) -> usize {
        let mut end = from;
        let mut after_blank = false;
        for (position, (line, shape)) in self.lines.iter().enumerate().skip(from) {
            let is_blank = line.text.trim().is_empty();
            let is_part = match *shape {
                Shape::Heading(_) | Shape::Row => false,
                Shape::Item { indent: own, .. } => own > indent,
                Shape::Other => is_blank || columns(line.text) > indent,
                Shape::Text => columns(line.text) > indent || !after_blank,
            };
            if !is_part {
                break;
            }
            after_blank = is_blank;
            if !is_blank {
                end = position + 1;
            }
        }
        end
    }

    /// Rows of tables that have a column for the status.
    fn tables(&self) -> Parsed {
        let mut parsed = Parsed::new(Dialect::Table, 0..0);
        let mut ids = Ids::new(std::iter::empty());
        let mut position = 0;
        while position < self.lines.len() {
            let end = position
                + self.lines[position..].iter().take_while(|(_, shape)| *shape == Shape::Row).count();
            if end < position + 3 {
                position = end.max(position + 1);
                continue;
            }
            let rows: Vec<Line<'_>> = self.lines[position..end].iter().map(|(line, _)| *line).collect();
            if let Some(table) = Table::read(&rows) {
                table.add_to(&mut parsed, &mut ids);
            }
            position = end;
        }
        parsed
    }
}

/// A heading without what makes it one.
fn heading_words(line: &str) -> &str {
    let content = line.trim();
    atx_level(content).map_or(content, |level| content[level..].trim())
}

/// What the notes of a title name.
fn waits_on(title: &str) -> impl Iterator<Item = TaskId> {
    waiting_notes(title).flat_map(|(_, said)| ids(said)).map(TaskId::new)
}

/// Finds the tasks that others name, be it by id or by words. Other names are of programs and people; what stands
/// first in the file is done first anyway.
fn resolve(parsed: &mut Parsed) {
    let mut known: std::collections::HashMap<String, TaskId> = std::collections::HashMap::new();
    for task in &parsed.tasks {
        known.insert(slug(task.id.as_str()), task.id.clone());
        known.entry(slug(&task.title)).or_insert_with(|| task.id.clone());
    }
    for task in &mut parsed.tasks {
        let own = task.id.clone();
        let named = std::mem::take(&mut task.depends_on);
        let found = named.iter().filter_map(|name| known.get(&slug(name.as_str())).cloned());
        task.depends_on = unique(found.filter(|id| *id != own).collect());
    }
}

fn shape(line: Line<'_>, content: &str, region: &mut Region) -> Shape {
    if content.is_empty() {
        return Shape::Other;
    }
    if let Some((marker, length)) = fence(content) {
        *region = Region::Fence { marker, length, item: None };
        return Shape::Other;
    }
    if content.starts_with("<!--") {
        if !content.contains("-->") {
            *region = Region::Comment;
        }
        return Shape::Other;
    }
    if let Some(level) = atx_level(content).filter(|_| columns(line.text) < CODE_INDENT) {
        return Shape::Heading(level);
    }
    if content.starts_with('|') {
        return Shape::Row;
    }
    let is_rule = content.len() >= 3 && content.chars().all(|c| matches!(c, '-' | '*' | '_' | ' '));
    match list_item(line.text).filter(|item| !item.is_bare || item.indent < CODE_INDENT) {
        Some(item) if !is_rule => Shape::Item {
            indent: item.indent,
            content_at: item.content_at,
            is_box: checkbox(item.content).is_some(),
        },
        Some(_) | None => Shape::Text,
    }
}

/// What a heading says that is a task.
#[derive(Clone)]
struct Head {
    id: Option<String>,
    title: String,
}

impl Head {
    fn read(heading: &str, kind: Heads) -> Option<Self> {
        let (plain, said) = decorated(heading);
        let is_marked = checkbox(heading).is_some();
        if kind == Heads::Marked {
            let title = plain.trim_start_matches("Track:").trim().to_owned();
            return (is_marked && said.is_some() && !title.is_empty()).then_some(Self { id: None, title });
        }
        let words: &[&str] = if kind == Heads::Tasks { &TASK_WORDS } else { &PHASE_WORDS };
        let lower = plain.to_lowercase();
        let word = words.iter().find(|word| {
            lower.strip_prefix(**word).is_some_and(|rest| rest.starts_with([' ', '-', '#', '_']))
        });
        if let Some(word) = word {
            let rest = plain[word.len()..].trim_start_matches([' ', '-', '#', '_']);
            let end = rest.find([' ', ':', '\t', '–', '—', ')']).unwrap_or(rest.len());
            let number = rest[..end].trim_end_matches(['.', '-']);
            let is_number = number.len() <= 8 && number.starts_with(|c: char| c.is_ascii_digit())
                || number.len() == 1 && number.starts_with(|c: char| c.is_ascii_uppercase());
            let title = rest[end..].trim_start_matches([' ', ':', '\t', '-', '–', '—', '.', ')']).trim();
            if !is_number {
                return None;
            }
            let id = format!("{}-{}", word.replace(' ', "-"), number);
            return Some(Self {
                title: if title.is_empty() { plain.clone() } else { title.to_owned() },
                id: Some(id),
            });
        }
        if kind == Heads::Phases {
            return None;
        }
        let (id, title) = markdown::text::leading_id(&plain)?;
        (is_id(id) && !title.is_empty() && id.contains(|c: char| c.is_ascii_digit()))
            .then(|| Self { id: Some(id.to_owned()), title })
    }
}

/// A value behind `Status:`, and what it says.
struct Value {
    at: std::ops::Range<usize>,
    means: FileStatus,
}

impl Value {
    fn mark(self, text: &str) -> Mark {
        let word = &text[self.at.clone()];
        let like = |usual: &str| Some(like(word, usual));
        let (open, done) = match self.means {
            FileStatus::Done => (like("Not started"), Some(word.to_owned())),
            FileStatus::Skipped => (like("Not started"), like("Complete")),
            FileStatus::Open | FileStatus::Failed => (Some(word.to_owned()), like("Complete")),
        };
        let skipped = match self.means {
            FileStatus::Skipped => None,
            FileStatus::Open | FileStatus::Done | FileStatus::Failed => like("Skipped"),
        };
        Mark { at: self.at, open, done, skipped }
    }
}

/// A word in the capitals of another.
fn like(other: &str, word: &str) -> String {
    let letters: Vec<char> = other.chars().filter(|c| c.is_alphabetic()).collect();
    if letters.len() > 1 && letters.iter().all(|c| c.is_uppercase()) {
        return word.to_uppercase();
    }
    if letters.first().is_some_and(|c| c.is_lowercase()) { word.to_lowercase() } else { word.to_owned() }
}

/// What stands below a heading or an item.
#[derive(Default)]
struct Section {
    lines: Vec<String>,
    indent: usize,
    boxes: Vec<(std::ops::Range<usize>, bool)>,
    depends_on: Vec<TaskId>,
    status: Option<Value>,
}

impl Section {
    fn line(&mut self, line: Line<'_>, shape: Shape) {
        let content = line.text.trim();
        if let Shape::Item { content_at, is_box: true, .. } = shape
            && let Some((mark, said)) = checkbox(&line.text[content_at..])
        {
            let at = line.start + content_at + 1;
            let ticked = markdown::status_of(mark) == Some(FileStatus::Done);
            self.boxes.push((at..at + mark.len(), ticked));
            // Its state is in the file and changes; the task does not.
            self.lines.push(format!("{}[ ] {said}", dedent(&line.text[..content_at], self.indent)));
            return;
        }
        if shape != Shape::Other {
            let item = list_item(line.text).map_or(content, |item| item.content);
            if let Some(value) = status_value(line, item).filter(|_| self.status.is_none()) {
                self.status = Some(value);
                return;
            }
            if let Detail::DependsOn(said) | Detail::Waits(said) = detail(item) {
                self.depends_on.extend(ids(said).into_iter().map(TaskId::new));
            }
            self.depends_on.extend(waits_on(item));
        }
        self.lines.push(dedent(line.text, self.indent).trim_end().to_owned());
    }

    fn text(&self) -> String {
        self.lines.join("\n").trim_matches('\n').trim_end().to_owned()
    }
}

/// `**Status**: Not started`, where the word is one of a status and nothing else.
fn status_value(line: Line<'_>, content: &str) -> Option<Value> {
    let (label, said) = markdown::text::label(content)?;
    if label != "status" && label != "state" {
        return None;
    }
    let said = said.trim_matches(['*', '_', '`', ' ']);
    let means = meaning(said)?;
    let at = line.start + line.text.rfind(said)?;
    Some(Value { at: at..at + said.len(), means })
}

/// What a cell or a value says of the status, if it is a word for one, with signs around it.
fn meaning(said: &str) -> Option<FileStatus> {
    let signs = sign(said);
    let words: String =
        said.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_' | '/')).collect();
    let words = words.trim();
    if words.is_empty() || words == "-" {
        return signs.or((said.trim() == "-" || said.trim() == "—").then_some(FileStatus::Open));
    }
    let whole = features::WORDS.meaning_of(words);
    let first = || words.split_whitespace().next().and_then(|word| features::WORDS.meaning_of(word));
    let two = || {
        let mut parts = words.split_whitespace();
        let (one, other) = (parts.next()?, parts.next()?);
        features::WORDS.meaning_of(&format!("{one} {other}"))
    };
    whole.or_else(two).or_else(first).or(signs)
}

/// What a sign says that people put before or behind words.
fn sign(text: &str) -> Option<FileStatus> {
    let has = |signs: &[&str]| signs.iter().any(|sign| text.contains(sign));
    if has(&["✅", "☑", "✔", "✓", "🟢"]) {
        Some(FileStatus::Done)
    } else if has(&["⬜", "🔲", "☐", "⏳", "🚧", "🔄", "🟡", "🔴", "⚪", "📋", "🔜", "❌"])
    {
        Some(FileStatus::Open)
    } else {
        None
    }
}

/// Signs and notes that say a status beside words, and the words without those that we would write or take away.
pub(super) fn decorated(content: &str) -> (String, Option<FileStatus>) {
    let content = content.trim();
    if let Some((mark, said)) = checkbox(content) {
        let status = markdown::status_of(mark);
        let note = markdown::text::skipped_note(said).filter(|_| status != Some(FileStatus::Done));
        return match note {
            Some(note) => {
                (format!("{}{}", &said[..note.start], &said[note.end..]), Some(FileStatus::Skipped))
            }
            None => (said.to_owned(), status),
        };
    }
    let mut plain = content;
    let mut said = None;
    if let Some(note) = markdown::text::skipped_note(plain) {
        plain = plain[..note.start].trim_end();
        said = Some(FileStatus::Skipped);
    }
    for sign in ["✅", "☑️", "☑", "✔️", "✔", "✓"] {
        let rest = plain.strip_prefix(sign).or_else(|| plain.strip_suffix(sign)).map(str::trim);
        if let Some(rest) = rest.filter(|rest| !rest.is_empty()) {
            plain = rest;
            said = Some(FileStatus::Done);
        }
    }
    let struck = plain.strip_prefix("~~").and_then(|rest| rest.strip_suffix("~~"));
    if let Some(struck) = struck.filter(|struck| !struck.is_empty() && !struck.contains("~~")) {
        plain = struck;
        said = Some(FileStatus::Done);
    }
    let lower = plain.to_ascii_lowercase();
    for note in [
        "(done)",
        "[done]",
        "(completed)",
        "(complete)",
        "[complete]",
        "[completed]",
        "- done",
        "— done",
        "– done",
        "**done**",
        "- complete",
        "— complete",
        "– complete",
    ] {
        if lower.ends_with(note) && lower.len() > note.len() + 1 {
            plain = plain[..plain.len() - note.len()].trim_end();
            said = Some(FileStatus::Done);
            break;
        }
    }
    let lower = plain.to_ascii_lowercase();
    for note in ["[done]", "done:", "(done)"] {
        if lower.starts_with(note) && plain.len() > note.len() + 1 {
            plain = plain[note.len()..].trim_start();
            said = Some(FileStatus::Done);
            break;
        }
    }
    (plain.to_owned(), said)
}

impl Mark {
    /// The words of a heading or an item, with a sign behind them where they are done.
    fn of_words(at: std::ops::Range<usize>, content: &str, plain: &str) -> Self {
        if let Some((mark, _)) = checkbox(content) {
            let with = |mark: &str| Some(format!("[{mark}] {plain}"));
            let open = with(if markdown::status_of(mark) == Some(FileStatus::Done) { " " } else { mark });
            return Self {
                at,
                open,
                done: with("x"),
                skipped: Some(format!("[ ] {plain} {}", markdown::SKIPPED)),
            };
        }
        let is_done = decorated(content).1 == Some(FileStatus::Done);
        let done = if is_done { content.to_owned() } else { format!("{plain} ✅") };
        Self {
            at,
            open: Some(plain.to_owned()),
            done: Some(done),
            skipped: Some(format!("{plain} {}", markdown::SKIPPED)),
        }
    }
}

/// What the items below a heading are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum About {
    Work,
    Done,
    /// Words for people.
    Other,
}

const DONE_HEADINGS: [&str; 7] =
    ["done", "completed", "complete", "shipped", "finished", "recently completed", "implemented"];
const OTHER_HEADINGS: [&str; 30] = [
    "notes",
    "note",
    "references",
    "reference",
    "links",
    "resources",
    "legend",
    "overview",
    "background",
    "context",
    "goals",
    "goal",
    "non-goals",
    "non goals",
    "principles",
    "risks",
    "open questions",
    "questions",
    "assumptions",
    "constraints",
    "success criteria",
    "success metrics",
    "definition of done",
    "summary",
    "glossary",
    "changelog",
    "how to use",
    "table of contents",
    "contents",
    "dependencies",
];

impl About {
    fn of(heading: &str) -> Self {
        let words = heading.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
        let is_done = DONE_HEADINGS.contains(&words.as_str()) || heading.contains('✅');
        if is_done {
            Self::Done
        } else if OTHER_HEADINGS.contains(&words.as_str()) || is_set_aside(heading) {
            Self::Other
        } else {
            Self::Work
        }
    }
}

/// Links alone, labels and file names are no work.
fn is_work(content: &str) -> bool {
    let has_words = content.chars().filter(|c| c.is_alphanumeric()).count() >= 2;
    let is_link = content.starts_with('[') && content.ends_with(')') && content.contains("](");
    has_words && !is_link && !content.starts_with("http")
}

/// Ids for what has none of its own.
struct Ids {
    slugs: Slugs,
    given: std::collections::HashMap<String, usize>,
}

impl Ids {
    fn new(given: impl Iterator<Item = Option<String>>) -> Self {
        let mut ids = Self { slugs: Slugs::default(), given: std::collections::HashMap::new() };
        for id in given.flatten() {
            *ids.given.entry(id).or_default() += 1;
        }
        for (id, count) in &ids.given {
            ids.slugs.reserve(Some(id).filter(|_| *count == 1).map(String::as_str));
        }
        ids
    }

    /// The id that stands there, if no other has it; else one made of the words.
    fn next(&mut self, given: Option<String>, title: &str) -> TaskId {
        match given {
            Some(id) if self.given.get(&id) == Some(&1) => TaskId::new(id),
            Some(id) => TaskId::new(self.slugs.make(&id)),
            None => TaskId::new(self.slugs.make(title)),
        }
    }
}

/// A table with a column for the status.
struct Table<'t> {
    rows: Vec<Line<'t>>,
    names: Vec<String>,
    status: usize,
    id: Option<usize>,
    title: usize,
    done: String,
}

const STATUS_COLUMNS: [&str; 5] = ["status", "state", "done", "progress", "done?"];
const ID_COLUMNS: [&str; 8] = ["#", "id", "no", "nr", "issue", "key", "task id", "ticket"];
const TITLE_COLUMNS: [&str; 12] = [
    "title",
    "task",
    "feature",
    "item",
    "name",
    "story",
    "what",
    "description",
    "work item",
    "requirement",
    "phase",
    "module",
];

impl<'t> Table<'t> {
    fn read(rows: &[Line<'t>]) -> Option<Self> {
        let cells_of = |line: &Line<'t>| -> Vec<&'t str> {
            cells(*line).into_iter().map(|range| &line.text[range]).collect()
        };
        let [header, rule, rows @ ..] = rows else { return None };
        let is_rule =
            cells_of(rule).iter().all(|cell| cell.contains('-') && cell.chars().all(|c| "-: ".contains(c)));
        let plain = |cell: &&str| cell.trim_matches(['*', '_', '`', ' ']).to_lowercase();
        let names: Vec<String> = cells_of(header).iter().map(plain).collect();
        let find =
            |known: &[&str]| known.iter().find_map(|name| names.iter().position(|other| other == name));
        let status = find(&STATUS_COLUMNS).filter(|_| is_rule)?;
        let id = find(&ID_COLUMNS);
        let other = || (0..names.len()).find(|column| *column != status && Some(*column) != id);
        let title = find(&TITLE_COLUMNS).filter(|column| Some(*column) != id).or_else(other).or(id)?;
        let known = |line: &&Line<'t>| cells_of(line).get(status).is_some_and(|cell| meaning(cell).is_some());
        let count = rows.iter().filter(known).count();
        if count == 0 || count * 2 < rows.len() {
            return None;
        }
        let done = rows.iter().find_map(|line| {
            let cell = *cells_of(line).get(status)?;
            (meaning(cell) == Some(FileStatus::Done) && cell.chars().count() <= 14).then(|| cell.to_owned())
        });
        let signs_only = rows.iter().any(|line| {
            cells_of(line)
                .get(status)
                .is_some_and(|cell| !cell.is_empty() && !cell.contains(char::is_alphanumeric))
        });
        let done = done.unwrap_or_else(|| if signs_only { "✅".to_owned() } else { "Done".to_owned() });
        Some(Self { rows: rows.to_vec(), names, status, id, title, done })
    }

    fn add_to(&self, parsed: &mut Parsed, ids: &mut Ids) {
        for line in &self.rows {
            let ranges = cells(*line);
            let cell = |column: usize| ranges.get(column).map_or("", |range| &line.text[range.clone()]);
            let (plain, struck) = decorated(cell(self.title));
            let title = plain.trim_matches(['*', '_', '`', ' ']).to_owned();
            let Some(at) = ranges.get(self.status) else { continue };
            if title.is_empty() {
                continue;
            }
            let own =
                self.id.map(|column| cell(column).trim_matches(['*', '_', '`', '#', ' ', '~']).to_owned());
            let id =
                match own.filter(|own| !own.is_empty() && own.chars().count() <= 24 && !own.contains(' ')) {
                    Some(own) => ids.row(own),
                    None => ids.next(None, &title),
                };
            let mut task = Task::new(id, title);
            let others = self.names.iter().enumerate().filter(|(column, _)| {
                *column != self.status && *column != self.title && Some(*column) != self.id
            });
            let said = others.filter(|(column, _)| !cell(*column).is_empty());
            let said = said.map(|(column, name)| format!("{name}: {}", cell(column)));
            task.description = said.collect::<Vec<_>>().join("\n");
            let value = cell(self.status);
            task.status = struck.or_else(|| meaning(value)).unwrap_or(FileStatus::Open);
            let open = match task.status {
                FileStatus::Open | FileStatus::Failed => value.to_owned(),
                FileStatus::Done | FileStatus::Skipped => "Open".to_owned(),
            };
            let done = if task.status == FileStatus::Done { value.to_owned() } else { self.done.clone() };
            let skipped = if task.status == FileStatus::Skipped { value } else { "Skipped" }.to_owned();
            let at = line.start + at.start..line.start + at.end;
            let mark = Mark { at, open: Some(open), done: Some(done), skipped: Some(skipped) };
            parsed.add_marked((task, vec![mark]), line.start..line.end());
        }
    }
}

impl Ids {
    /// An id of a row or an item, where it is the first to have it.
    fn row(&mut self, own: String) -> TaskId {
        let count = self.given.entry(own.clone()).or_default();
        *count += 1;
        if *count > 1 {
            return TaskId::new(self.slugs.make(&own));
        }
        self.slugs.reserve(Some(&own));
        TaskId::new(own)
    }
}

/// Where the cells of a row stand, without the blanks around them.
fn cells(line: Line<'_>) -> Vec<std::ops::Range<usize>> {
    let text = line.text;
    let mut bars: Vec<usize> = Vec::new();
    let (mut in_code, mut escaped) = (false, false);
    for (at, c) in text.char_indices() {
        match c {
            '|' if !in_code && !escaped => bars.push(at),
            '`' => in_code = !in_code,
            _ => {}
        }
        escaped = c == '\\' && !escaped;
    }
    let mut ranges = Vec::new();
    let ends = bars.iter().skip(1).copied().chain(
        text[bars.last().map_or(0, |bar| bar + 1)..].contains(char::is_alphanumeric).then_some(text.len()),
    );
    for (start, end) in bars.iter().map(|bar| bar + 1).zip(ends) {
        let cell = &text[start..end];
        let blank = cell.len() - cell.trim_start().len();
        let length = cell.trim().len();
        // An empty cell is filled behind its first blank.
        let at = if length == 0 { start + blank.min(1) } else { start + blank };
        ranges.push(at..at + length);
    }
    ranges
}

/// Where the body of a file begins.
pub(crate) fn front_matter_end(text: &str) -> usize {
    let start = if text.starts_with(BOM) { BOM.len() } else { 0 };
    let mut lines = Lines::new(text);
    if lines.next().is_none_or(|line| line.text.trim_end() != "---") {
        return start;
    }
    let closing = lines.find(|line| line.text.trim_end() == "---");
    closing.map_or(start, |line| text[line.end()..].find('\n').map_or(text.len(), |at| line.end() + at + 1))
}

impl Parsed {
    /// Adds a task with the places that say its status.
    pub(super) fn add_marked(&mut self, (task, marks): (Task, Vec<Mark>), span: std::ops::Range<usize>) {
        let place = Place { marks, ..Place::json(span.clone(), span.start) };
        self.add(task, place);
    }
}
