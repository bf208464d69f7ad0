//! Checkbox Markdown (fix_plan.md, PRD.md, TODO.md): every box of a list is a task.
//!
//! A box nested in another is its sub-task: the outer one is its parent and depends on it, so it
//! is worked on after all of its parts. Boxes in fenced code, HTML comments, block quotes and
//! sections set aside (Optional, Future, …) do not count. What a line says is read in [`text`], what its mark
//! means in [`legend`] where the file says that itself.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use wiggum_core::ids::TaskId;
use wiggum_core::task::{Criterion, FileStatus, Task};

use crate::json::BOM;
use crate::not_yet::NotYet;
use crate::slug::{Slugs, slug};
use crate::{Dialect, Parsed, Place, unique};

pub(crate) mod command;
mod legend;
pub(crate) mod region;
pub(crate) mod text;
pub(crate) mod words;

use super::{Family, Order, Part, Profile, Status};
use legend::Legend;
use region::{Inside, Region};
use text::{Detail, Head};
use words::Words;

pub(crate) const PROFILE: Profile = Profile {
    name: "Markdown",
    unit: "a box is a task; boxes below it are its parts",
    family: Family::Boxes,
    order: Order::File,
    status: Status::Text,
    says_failed: true,
    nests: true,
    agent_ticks: true,
    says: &[Part::Parent],
    criteria_key: "criteria",
    depends_key: "depends_on",
};

/// How a skipped task is marked, behind its text: readers who do not know of it see an open box.
pub(crate) const SKIPPED: &str = "(skipped)";

pub(crate) fn parse(file_name: &str, text: &str) -> Parsed {
    let mut reader = Reader::of_file(file_name, text);
    let names = reader.settle();
    let Reader { drafts, legend, .. } = reader;
    let is_unclear =
        |draft: &Draft, mark: &str| &text[draft.mark.clone()] == mark && legend.status(mark).is_none();
    let dashes = !is_plan_name(file_name) && drafts.iter().any(|draft| is_unclear(draft, "-"));
    let unknown = drafts
        .iter()
        .map(|draft| UNKNOWN.iter().copied().find(|mark| is_unclear(draft, mark)))
        .collect::<Vec<_>>();
    let mut parsed = Parsed { dashes, ..finish(drafts, &names) };
    let ids = parsed.tasks.iter().map(|task| task.id.clone());
    parsed.unknown_marks = ids.zip(unknown).filter_map(|(id, mark)| Some((id, mark?))).collect();
    parsed
}

/// Marks that mean so many things to so many people that we have no word for them. They are read as open.
pub(crate) const UNKNOWN: [&str; 2] = [">", "?"];

/// Plans are Obsidian's, where `[-]` is the mark of what was cancelled.
fn is_plan_name(file_name: &str) -> bool {
    let name = file_name.rsplit(['/', '\\']).next().unwrap_or(file_name);
    name.eq_ignore_ascii_case("plan.md")
}

/// Where the words of the box at this position stand.
pub(crate) fn words(text: &str, position: usize) -> Option<Words> {
    let mut reader = Reader::read(text);
    reader.settle();
    let draft = reader.drafts.into_iter().nth(position)?;
    Some(Words {
        head: Words::behind(text, draft.mark.end + 1),
        under: draft.content_indent,
        description: draft.description_at.into_iter().zip(draft.description).collect(),
        depends_on: draft.depends_at,
    })
}

/// A box of a Markdown list, as a plan's reader sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkbox {
    /// The line as it is written, without the white space around it.
    pub line: String,
    pub title: String,
    pub status: FileStatus,
    /// It says "(optional)" or `[ ]*`, or stands below one that does.
    pub optional: bool,
}

/// All boxes of a file but those that are no tasks: in code, comments, quotes and sections set aside.
pub fn checkboxes(file_name: &str, text: &str) -> Vec<Checkbox> {
    let checkbox = |draft: Draft| Checkbox {
        line: text[draft.span.start..].lines().next().unwrap_or_default().trim().to_owned(),
        title: draft.head.title,
        status: draft.status,
        optional: draft.optional,
    };
    Reader::of_file(file_name, text).drafts.into_iter().map(checkbox).collect()
}

/// Where boxes stand that are tasks.
pub(crate) fn box_places(text: &str) -> Vec<usize> {
    Reader::read(text).drafts.into_iter().map(|draft| draft.span.start).collect()
}

/// Headings of sections whose boxes do not count, and optional boxes.
pub(crate) fn set_aside(text: &str) -> Vec<(usize, String)> {
    let mut region = Region::default();
    let heading = |line: Line<'_>| {
        let content = line.text.trim();
        let item = list_item(line.text).map_or("", |item| item.content);
        if ["[ ]*", "[x]*", "[X]*", "[-]*"].iter().any(|mark| item.starts_with(mark)) {
            return Some((line.start, "a box with a star is optional, and no task".to_owned()));
        }
        let level = atx_level(content)?;
        let words = content[level..].trim();
        text::is_set_aside(content).then(|| (line.start, format!("the boxes below \"{words}\" are no tasks")))
    };
    let outside = |line: &Line<'_>| {
        let content = line.text.trim();
        let inside = region.take(content, columns(line.text));
        if let (Inside::Nothing, Some((marker, length))) = (&inside, fence(content)) {
            region = Region::Fence { marker, length, item: None };
        }
        matches!(inside, Inside::Nothing)
    };
    Lines::new(text).filter(outside).filter_map(heading).collect()
}

/// What is written between the brackets for a status; a skip is a note behind them.
pub(crate) fn mark_of(status: FileStatus) -> &'static str {
    match status {
        FileStatus::Open | FileStatus::Skipped => " ",
        FileStatus::Done => "x",
        FileStatus::Failed => "!",
    }
}

/// `None` if no box is written like this. `~`, `/` and `-` mean in progress to those who use them, which is
/// open to us; so are the marks we do not know. A legend in the file may say otherwise.
pub(crate) fn status_of(mark: &str) -> Option<FileStatus> {
    match mark {
        "x" | "X" | "✓" | "✔" | "✅" => Some(FileStatus::Done),
        "!" => Some(FileStatus::Failed),
        "" | " " | "\t" | "\u{a0}" | "~" | "/" | "-" | ">" | "?" => Some(FileStatus::Open),
        _ => None,
    }
}

/// A line without its end.
#[derive(Clone, Copy)]
pub(crate) struct Line<'t> {
    pub(crate) start: usize,
    pub(crate) text: &'t str,
}

impl Line<'_> {
    pub(crate) fn end(self) -> usize {
        self.start + self.text.len()
    }

    /// Where the words stand that this line ends with, but for white space.
    pub(crate) fn ending(self, words: &str) -> Range<usize> {
        let end = self.start + self.text.trim_end().len();
        end - words.len()..end
    }
}

pub(crate) struct Lines<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Lines<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Self { text, at: if text.starts_with(BOM) { BOM.len() } else { 0 } }
    }

    /// Where the next line starts.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// Goes on at a place that lies ahead.
    pub(crate) fn skip_to(&mut self, at: usize) {
        self.at = self.at.max(at);
    }
}

impl<'t> Iterator for Lines<'t> {
    type Item = Line<'t>;

    fn next(&mut self) -> Option<Line<'t>> {
        let start = self.at;
        let rest = &self.text[start..];
        if rest.is_empty() {
            return None;
        }
        let length = rest.find('\n').map_or(rest.len(), |at| at + 1);
        self.at += length;
        let text = rest[..length].trim_end_matches('\n');
        Some(Line { start, text: text.strip_suffix('\r').unwrap_or(text) })
    }
}

/// A box as it is being read.
struct Draft {
    parent: Option<usize>,
    span: Range<usize>,
    mark: Range<usize>,
    status: FileStatus,
    head: Head,
    /// The note that it is skipped, with the blank before it, and where one would go.
    note: Option<Range<usize>>,
    note_at: usize,
    description: Vec<String>,
    /// The lines those stand on.
    description_at: Vec<Range<usize>>,
    criteria: Vec<Criterion>,
    /// Lines of which it cannot be told whether they are checks.
    unclear: Vec<String>,
    depends_on: Vec<String>,
    /// Where lines under the box name dependencies, without their label.
    depends_at: Vec<Range<usize>>,
    /// What it depends on if those are tasks.
    waits: Vec<Waits>,
    /// Words that name a task and are no list of them.
    remarks: Vec<String>,
    /// Indentation of a `Criteria:` whose list follows.
    criteria_list: Option<usize>,
    /// Column at which its text starts; what is nested is indented to there.
    content_indent: usize,
    /// So is all that is nested in it.
    optional: bool,
}

/// Words that name what a task waits on, or something else.
struct Waits {
    /// The whole note or line.
    line: String,
    said: String,
    /// Where they stand on a line of their own, and where that begins.
    at: Option<(Range<usize>, usize)>,
}

impl Waits {
    /// Notes in brackets stay where they are.
    fn noted(said: &str) -> impl Iterator<Item = Self> {
        let waits =
            |(note, said): (&str, &str)| Self { line: format!("({note})"), said: said.to_owned(), at: None };
        text::waiting_notes(said).map(waits)
    }

    fn remark(&self, named: &str) -> String {
        format!(
            "`{}` names `{named}` and is read as words; `Depends on: {named}` below it makes it wait",
            self.line
        )
    }
}

impl Draft {
    /// Lines of the description turn out to name dependencies.
    fn take_lines(&mut self, taken: Vec<(Range<usize>, usize)>) {
        if taken.is_empty() {
            return;
        }
        let (said, starts): (Vec<Range<usize>>, HashSet<usize>) = taken.into_iter().unzip();
        let lines =
            std::mem::take(&mut self.description).into_iter().zip(std::mem::take(&mut self.description_at));
        let left = lines.filter(|(_, at)| !starts.contains(&at.start));
        (self.description, self.description_at) = left.unzip();
        self.depends_at.extend(said);
        self.depends_at.sort_by_key(|said| said.start);
    }

    fn add_criterion(&mut self, said: &str) {
        let (criterion, unclear) = text::criterion(said);
        self.criteria.push(criterion);
        self.unclear.extend(unclear.then(|| said.to_owned()));
    }
}

#[derive(Default)]
struct Reader {
    drafts: Vec<Draft>,
    /// The list items around the present line, outermost first.
    open: Vec<OpenItem>,
    region: Region,
    after_blank: bool,
    /// Level of the heading whose section does not count.
    set_aside: Option<usize>,
    legend: Legend,
}

struct OpenItem {
    indent: usize,
    is_bare: bool,
    /// The box, if it is one.
    draft: Option<usize>,
    optional: bool,
}

impl Reader {
    /// Reads a text with what its file's name says of its marks.
    fn of_file(file_name: &str, text: &str) -> Self {
        let mut reader = Self::read(text);
        if is_plan_name(file_name) && reader.legend.status("-").is_none() {
            let dashes = reader.drafts.iter_mut().filter(|draft| &text[draft.mark.clone()] == "-");
            dashes.for_each(|draft| draft.status = FileStatus::Skipped);
        }
        reader
    }

    fn read(text: &str) -> Self {
        let mut reader = Self { legend: Legend::read(text), ..Self::default() };
        let mut lines = Lines::new(text).peekable();
        while let Some(line) = lines.next() {
            let underline = lines.peek().and_then(|next| setext_level(next.text));
            reader.line(line, underline);
        }
        reader
    }

    fn line(&mut self, line: Line<'_>, underline: Option<usize>) {
        let content = line.text.trim();
        let indent = columns(line.text);
        if self.in_region(line, indent) {
            return;
        }
        if content.is_empty() {
            self.after_blank = true;
            return;
        }
        let inside_item = self.open.last().is_some_and(|item| item.indent < indent);
        let level = atx_level(content).or(underline.filter(|_| list_item(line.text).is_none()));
        if let Some(level) = level
            && !inside_item
        {
            self.heading(level, content);
        } else if content.starts_with("<!--") {
            if !content.contains("-->") {
                self.region = Region::Comment;
            }
        } else if content.starts_with('>') {
            self.leave_items(indent);
            self.describe(line);
        } else if let Some(item) = list_item(line.text).filter(|item| self.is_item(item)) {
            self.item(line, &item);
        } else {
            self.plain(line, indent);
        }
        self.after_blank = false;
    }

    /// Deals with lines inside comments and fences, and with those that open a fence.
    fn in_region(&mut self, line: Line<'_>, indent: usize) -> bool {
        let content = line.text.trim();
        match self.region.take(content, indent) {
            Inside::Comment => return true,
            Inside::Fence => {
                self.describe(line);
                return true;
            }
            Inside::Nothing => {}
        }
        let Some((marker, length)) = fence(content) else { return false };
        self.leave_items(indent);
        self.region = Region::Fence { marker, length, item: self.open.last().map(|item| item.indent) };
        self.describe(line);
        true
    }

    fn heading(&mut self, level: usize, content: &str) {
        self.open.clear();
        if self.set_aside.is_none_or(|outer| level <= outer) {
            self.set_aside = text::is_set_aside(content).then_some(level);
        }
    }

    /// A box without a bullet is an item at the margin and below another such box. Below an item with a bullet it
    /// may be the next line of a sentence, and further in it is code.
    fn is_item(&self, item: &ListItem<'_>) -> bool {
        let around = self.open.iter().rev().find(|outer| outer.indent < item.indent);
        !item.is_bare || around.map_or(item.indent < CODE_INDENT, |outer| outer.is_bare)
    }

    fn item(&mut self, line: Line<'_>, item: &ListItem<'_>) {
        self.leave_items(item.indent);
        let optional = text::is_optional(item.content) || self.open.iter().any(|outer| outer.optional);
        let draft = self.checkbox(line, item, optional);
        if draft.is_none() {
            self.detail(line, item.content, item.indent);
        }
        if let Some((marker, length)) = fence(item.content) {
            self.region = Region::Fence { marker, length, item: Some(item.indent) };
        }
        self.open.push(OpenItem { indent: item.indent, is_bare: item.is_bare, draft, optional });
        self.extend_open(line.end());
    }

    /// Adds a draft if the item has a box that counts.
    fn checkbox(&mut self, line: Line<'_>, item: &ListItem<'_>, optional: bool) -> Option<usize> {
        if self.set_aside.is_some() || self.legend.explains(line.start) {
            return None;
        }
        let (mark, said) = checkbox(item.content)?;
        let note = text::skipped_note(said);
        let head = match &note {
            Some(note) => text::head(&format!("{}{}", &said[..note.start], &said[note.end..]))?,
            None => text::head(said)?,
        };
        let status = self.legend.status(mark).or_else(|| status_of(mark))?;
        let status = match (status, &note) {
            (FileStatus::Open | FileStatus::Failed | FileStatus::Skipped, Some(_)) => FileStatus::Skipped,
            (FileStatus::Done, Some(_)) | (_, None) => status,
        };
        let mark_at = line.start + item.content_at + 1;
        let said_at = line.start + line.text.trim_end().len() - said.len();
        let note = note.map(|note| said_at + note.start..said_at + note.end);
        self.drafts.push(Draft {
            parent: self.open_draft(),
            span: line.start..line.end(),
            mark: mark_at..mark_at + mark.len(),
            status,
            depends_on: head.depends_on.clone(),
            waits: Waits::noted(&head.title).collect(),
            remarks: Vec::new(),
            head,
            note_at: note.as_ref().map_or(said_at + said.len(), |note| note.start),
            note,
            description: Vec::new(),
            description_at: Vec::new(),
            criteria: Vec::new(),
            unclear: Vec::new(),
            depends_at: Vec::new(),
            criteria_list: None,
            content_indent: item.content_indent(line.text),
            optional,
        });
        Some(self.drafts.len() - 1)
    }

    /// A line of text: it belongs to the item it is indented under, or to the one just above it.
    fn plain(&mut self, line: Line<'_>, indent: usize) {
        let is_lazy = !self.after_blank && !self.open.is_empty();
        if !is_lazy {
            self.leave_items(indent);
        }
        self.detail(line, line.text.trim(), indent);
        self.extend_open(line.end());
    }

    /// Reads a line nested in a box: criteria, dependencies, or else description.
    fn detail(&mut self, line: Line<'_>, content: &str, indent: usize) {
        let Some(position) = self.open_draft() else { return };
        let draft = &mut self.drafts[position];
        let in_criteria = draft.criteria_list.is_some_and(|list| indent > list);
        match text::detail(content) {
            Detail::Criteria("") => draft.criteria_list = Some(indent),
            Detail::Criteria(said) => draft.add_criterion(said),
            Detail::Checks(criteria) => draft.criteria.extend(criteria),
            Detail::DependsOn(said) => {
                draft.depends_on.extend(text::ids(said));
                draft.depends_at.push(line.ending(said));
            }
            Detail::Unclear => {
                draft.unclear.push(content.to_owned());
                self.describe(line);
            }
            Detail::Other | Detail::Waits(_) if in_criteria => draft.add_criterion(content),
            Detail::Waits(said) => {
                draft.criteria_list = None;
                draft.waits.push(Waits {
                    line: content.to_owned(),
                    said: said.to_owned(),
                    at: Some((line.ending(said), line.start)),
                });
                self.describe(line);
            }
            Detail::Other => {
                draft.criteria_list = None;
                draft.waits.extend(Waits::noted(content));
                self.describe(line);
            }
        }
    }

    fn describe(&mut self, line: Line<'_>) {
        let Some(position) = self.open_draft() else { return };
        let draft = &mut self.drafts[position];
        draft.description.push(dedent(line.text, draft.content_indent).trim_end().to_owned());
        draft.description_at.push(line.start..line.end());
        self.extend_open(line.end());
    }

    /// Reads words as dependencies where they name tasks of the file and nothing else.
    fn settle(&mut self) -> Names {
        let names = Names::of(&mut self.drafts);
        for position in 0..self.drafts.len() {
            let waits = std::mem::take(&mut self.drafts[position].waits);
            if waits.is_empty() {
                continue;
            }
            // What stands around a task is done after it.
            let around = self.around(position, &names.ids);
            let is_other = |id: &str| !around.contains(&id);
            let draft = &mut self.drafts[position];
            let mut taken = Vec::new();
            for waits in waits {
                let listed = names.list(&waits.said);
                let before = draft.depends_on.len();
                let others = listed.iter().flatten().map(TaskId::as_str).filter(|id| is_other(id));
                draft.depends_on.extend(others.map(str::to_owned));
                if draft.depends_on.len() > before {
                    taken.extend(waits.at);
                } else if listed.is_none() {
                    let named = text::id_words(&waits.said).find(|id| is_other(id) && names.is_given(id));
                    draft.remarks.extend(named.map(|named| waits.remark(named)));
                }
            }
            draft.take_lines(taken);
        }
        names
    }

    /// The ids of a draft and of those it is nested in.
    fn around<'n>(&self, position: usize, ids: &'n [TaskId]) -> Vec<&'n str> {
        let outwards = std::iter::successors(Some(position), |&inner| self.drafts[inner].parent);
        outwards.map(|position| ids[position].as_str()).collect()
    }

    /// Closes the items that a line of this indentation is not part of.
    fn leave_items(&mut self, indent: usize) {
        while self.open.last().is_some_and(|item| item.indent >= indent) {
            self.open.pop();
        }
    }

    /// The innermost box around the present line.
    fn open_draft(&self) -> Option<usize> {
        self.open.iter().rev().find_map(|item| item.draft)
    }

    fn extend_open(&mut self, end: usize) {
        for item in &self.open {
            if let Some(position) = item.draft {
                let span = &mut self.drafts[position].span;
                span.end = span.end.max(end);
            }
        }
    }
}

/// Turns drafts into tasks.
fn finish(drafts: Vec<Draft>, names: &Names) -> Parsed {
    let ids = &names.ids;
    let mut children: Vec<Vec<TaskId>> = vec![Vec::new(); drafts.len()];
    for (draft, id) in drafts.iter().zip(ids) {
        if let Some(parent) = draft.parent {
            children[parent].push(id.clone());
        }
    }
    let resolve = |name: String| names.find(&name).unwrap_or_else(|| TaskId::new(name));
    let mut parsed = Parsed::new(Dialect::Markdown, 0..0);
    for ((draft, id), children) in drafts.into_iter().zip(ids).zip(children) {
        let title = if draft.head.title.is_empty() { id.to_string() } else { draft.head.title };
        let mut task = Task::new(id.clone(), title);
        task.description = draft.description.join("\n").trim().to_owned();
        task.criteria = draft.criteria;
        parsed.not_yet.extend(draft.unclear.iter().map(|line| NotYet::unclear_check(id, line)));
        parsed.remarks.extend(draft.remarks.into_iter().map(|remark| (id.clone(), remark)));
        task.depends_on = unique(draft.depends_on.into_iter().map(resolve).chain(children).collect());
        task.parent = draft.parent.map(|parent| ids[parent].clone());
        task.status = draft.status;
        let place = Place {
            id_at: draft.mark.start,
            span: draft.span,
            mark: draft.mark,
            rank: None,
            note: draft.note,
            note_at: draft.note_at,
            marks: Vec::new(),
        };
        parsed.add(task, place);
    }
    parsed
}

/// By what the boxes of a file can be named.
struct Names {
    /// The id of each.
    ids: Vec<TaskId>,
    known: HashSet<TaskId>,
    /// What stands before the number of ids that are spelled out.
    beginnings: HashSet<String>,
    labels: Labels,
}

impl Names {
    /// Gives every box its id. Ids spelled out come first, so that a made one never takes theirs.
    fn of(drafts: &mut [Draft]) -> Self {
        let labels = Labels::take(drafts);
        let mut slugs = Slugs::default();
        for draft in &*drafts {
            slugs.reserve(draft.head.id.as_deref());
        }
        let ids: Vec<TaskId> = drafts
            .iter()
            .map(|draft| TaskId::new(draft.head.id.clone().unwrap_or_else(|| slugs.make(&draft.head.title))))
            .collect();
        let given = drafts.iter().filter_map(|draft| draft.head.id.as_deref());
        let beginnings = given.filter(|id| text::is_id(id)).map(beginning).map(str::to_owned).collect();
        Self { known: ids.iter().cloned().collect(), ids, beginnings, labels }
    }

    /// The task that is meant, be it by its id or by what it calls itself.
    fn find(&self, name: &str) -> Option<TaskId> {
        let made = slug(name);
        let known = [name, made.as_str()].into_iter().find_map(|name| self.known.get(name)).cloned();
        known.or_else(|| self.labels.only(name).map(|position| self.ids[position].clone()))
    }

    /// The tasks that a text lists; nothing where it names anything else. One that looks like those of the file is
    /// meant to be one, and is missed later on.
    fn list(&self, said: &str) -> Option<Vec<TaskId>> {
        let names = text::ids(said);
        let found: Option<Vec<TaskId>> = names
            .into_iter()
            .map(|name| self.find(&name).or_else(|| self.is_given(&name).then(|| TaskId::new(name))))
            .collect();
        found.filter(|ids| !ids.is_empty())
    }

    /// Is this spelled like the ids that the file gives its tasks?
    fn is_given(&self, name: &str) -> bool {
        text::is_id(name) && (self.known.contains(name) || self.beginnings.contains(beginning(name)))
    }
}

/// An id without its number.
fn beginning(id: &str) -> &str {
    id.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.')
}

/// What boxes call themselves where that is not their id. Others may name them by it.
struct Labels(HashMap<String, Vec<usize>>);

impl Labels {
    /// A letter that stands out and that no other box has is an id.
    fn take(drafts: &mut [Draft]) -> Self {
        let mut labels = Self(HashMap::new());
        for (position, draft) in drafts.iter().enumerate() {
            let named = draft.head.label.as_ref().map(|label| label.name.to_lowercase());
            labels.0.entry(named.unwrap_or_default()).or_default().push(position);
        }
        labels.0.remove("");
        let is_given = |name: &str, drafts: &[Draft]| {
            drafts
                .iter()
                .any(|draft| draft.head.id.as_deref().is_some_and(|id| id.eq_ignore_ascii_case(name)))
        };
        for position in 0..drafts.len() {
            let Some(label) = drafts[position].head.label.take_if(|label| label.is_letter) else { continue };
            if labels.only(&label.name).is_some() && !is_given(&label.name, drafts) {
                drafts[position].head.id = Some(label.name);
                drafts[position].head.title = label.rest;
            }
        }
        labels
    }

    /// The one box that is called like this.
    fn only(&self, name: &str) -> Option<usize> {
        match self.0.get(&name.to_lowercase())?.as_slice() {
            [position] => Some(*position),
            _ => None,
        }
    }
}

/// White space at the margin that makes a line code.
pub(crate) const CODE_INDENT: usize = 4;

/// A list item: where its marker stands, in columns, and what follows it.
pub(crate) struct ListItem<'t> {
    pub(crate) indent: usize,
    pub(crate) content_at: usize,
    pub(crate) content: &'t str,
    /// It is a box without a bullet.
    pub(crate) is_bare: bool,
}

impl ListItem<'_> {
    /// Column to which what is nested in the item is indented.
    fn content_indent(&self, line: &str) -> usize {
        let line = line.trim_start();
        let marker = marker_length(line).or_else(|| rare_bullet_length(line));
        self.indent + marker.map_or(1, |length| line[..length].chars().count()) + 1
    }
}

/// Lists may start within an item (`- 1. [ ] …`): then a box counts for the whole line.
pub(crate) fn list_item(line: &str) -> Option<ListItem<'_>> {
    let item = |content: &'_ str, is_bare: bool| {
        let content_at = line.len() - content.len();
        ListItem { indent: columns(line), content_at, content: &line[content_at..], is_bare }
    };
    if let Some(content) = bare_box(line) {
        return Some(item(content, true));
    }
    if let Some(content) = loose_box(line) {
        return Some(item(content, false));
    }
    let first = after_marker(line)?;
    let mut innermost = first;
    while checkbox(innermost).is_none()
        && let Some(inner) = after_marker(innermost)
    {
        innermost = inner;
    }
    Some(item(if checkbox(innermost).is_some() { innermost } else { first }, false))
}

/// What follows the marker that a line starts with.
fn after_marker(line: &str) -> Option<&str> {
    let marker_on = line.trim_start();
    let after = &marker_on[marker_length(marker_on)?..];
    let content = after.trim_start();
    (content.len() < after.len() || content.is_empty()).then_some(content)
}

/// A box that says something and has no bullet, unless it explains what its mark means.
fn bare_box(line: &str) -> Option<&str> {
    let content = line.trim_start();
    let (mark, said) = checkbox(content)?;
    (!mark.is_empty() && !said.is_empty() && !legend::explains(mark, said)).then_some(content)
}

/// A box behind a bullet that Markdown has not (`•`), or directly behind one that it has (`-[ ] text`). Without a
/// box neither is a list.
fn loose_box(line: &str) -> Option<&str> {
    let marker_on = line.trim_start();
    let rare = rare_bullet_length(marker_on).map(|length| marker_on[length..].trim_start());
    let joined = || Some(&marker_on[marker_length(marker_on)?..]);
    let content = rare.or_else(joined)?;
    let (mark, said) = checkbox(content)?;
    (!mark.is_empty() && !said.is_empty()).then_some(content)
}

/// Length of `-`, `*`, `+`, `1.` or `1)` at the start of a text.
pub(crate) fn marker_length(text: &str) -> Option<usize> {
    match text.as_bytes().first()? {
        b'-' | b'*' | b'+' => Some(1),
        b'0'..=b'9' => {
            let digits = text.bytes().take_while(u8::is_ascii_digit).count();
            let ends = matches!(text.as_bytes().get(digits), Some(b'.' | b')'));
            (ends && digits <= 9).then_some(digits + 1)
        }
        _ => None,
    }
}

/// Length of a bullet that word processors and mail programs write.
fn rare_bullet_length(text: &str) -> Option<usize> {
    let bullet = text.chars().next()?;
    matches!(bullet, '•' | '◦' | '▪' | '‣' | '●' | '○' | '·' | '–' | '—').then(|| bullet.len_utf8())
}

/// The mark of a box and what is said behind it.
pub(crate) fn checkbox(content: &str) -> Option<(&str, &str)> {
    let inside = content.strip_prefix('[')?;
    let end = inside.find(']')?;
    let (mark, rest) = (&inside[..end], &inside[end + 1..]);
    status_of(mark)?;
    let is_apart = rest.is_empty() || rest.starts_with(char::is_whitespace);
    // `[]byte` is a type.
    let is_joined = !mark.is_empty() && begins_words(rest);
    (is_apart || is_joined).then(|| (mark, rest.trim()))
}

/// Words right behind a box. Links (`[ ](…)`, `[x][ref]`, `[x]: …`) and optional boxes (`[ ]*`) begin otherwise.
fn begins_words(rest: &str) -> bool {
    rest.starts_with(char::is_alphanumeric)
        || ["**", "__", "`", "\""].iter().any(|start| rest.starts_with(start))
}

/// A line without the white space of its first columns.
pub(crate) fn dedent(line: &str, columns_off: usize) -> &str {
    let blanks = line.char_indices().take_while(|(_, c)| c.is_whitespace());
    let mut cut = 0;
    for (at, c) in blanks {
        let end = at + c.len_utf8();
        if columns(&line[..end]) > columns_off {
            break;
        }
        cut = end;
    }
    &line[cut..]
}

/// Columns of white space at the start of a line, tabs reaching to the next multiple of four.
pub(crate) fn columns(line: &str) -> usize {
    let blank = line.chars().take_while(|c| c.is_whitespace());
    blank.fold(0, |column, c| if c == '\t' { column / 4 * 4 + 4 } else { column + 1 })
}

pub(crate) fn fence(content: &str) -> Option<(char, usize)> {
    let marker = content.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let length = content.chars().take_while(|&c| c == marker).count();
    let info = &content[length..];
    (length >= 3 && !(marker == '`' && info.contains('`'))).then_some((marker, length))
}

pub(crate) fn atx_level(content: &str) -> Option<usize> {
    let level = content.bytes().take_while(|&b| b == b'#').count();
    let after = &content[level..];
    ((1..=6).contains(&level) && (after.is_empty() || after.starts_with([' ', '\t']))).then_some(level)
}

/// The level that a line of `===` or `---` gives the line above it.
pub(crate) fn setext_level(line: &str) -> Option<usize> {
    let content = line.trim();
    let all = |c: char| content.len() >= 3 && content.chars().all(|each| each == c);
    if all('=') {
        Some(1)
    } else if all('-') {
        Some(2)
    } else {
        None
    }
}
