//! Checkbox Markdown (fix_plan.md, PRD.md, TODO.md): every box of a list is a task.
//!
//! A box nested in another is its sub-task: the outer one is its parent and depends on it, so it
//! is worked on after all of its parts. Boxes in fenced code, HTML comments, block quotes and
//! sections set aside (Optional, Future, …) do not count. What a line says is read in [`text`].

use std::ops::Range;

use wiggum_core::ids::TaskId;
use wiggum_core::task::{Criterion, FileStatus, Task};

use crate::json::BOM;
use crate::slug::{Slugs, slug};
use crate::{Dialect, Parsed, Place, unique};

pub(crate) mod region;
pub(crate) mod text;
pub(crate) mod words;

use region::{Inside, Region};
use text::{Detail, Head};
use words::Words;

pub(crate) fn parse(text: &str) -> Parsed {
    finish(drafts(text))
}

/// Where the words of the box at this position stand.
pub(crate) fn words(text: &str, position: usize) -> Option<Words> {
    let draft = drafts(text).into_iter().nth(position)?;
    Some(Words {
        head: Words::behind(text, draft.mark.end + 1),
        under: draft.content_indent,
        description: draft.description_at.into_iter().zip(draft.description).collect(),
        depends_on: draft.depends_at,
    })
}

fn drafts(text: &str) -> Vec<Draft> {
    let mut reader = Reader::default();
    let mut lines = Lines::new(text).peekable();
    while let Some(line) = lines.next() {
        let underline = lines.peek().and_then(|next| setext_level(next.text));
        reader.line(line, underline);
    }
    reader.drafts
}

/// What is written between the brackets for a status.
pub(crate) fn mark_of(status: FileStatus) -> &'static str {
    match status {
        FileStatus::Open => " ",
        FileStatus::Done => "x",
        FileStatus::Failed => "!",
        FileStatus::Skipped => "-",
    }
}

/// `None` if no box is written like this. `~` and `/` mean in progress to those who use them,
/// which is open to us; so are the marks we do not know.
pub(crate) fn status_of(mark: &str) -> Option<FileStatus> {
    match mark {
        "x" | "X" | "✓" | "✔" | "✅" => Some(FileStatus::Done),
        "!" => Some(FileStatus::Failed),
        "-" => Some(FileStatus::Skipped),
        "" | " " | "\t" | "\u{a0}" | "~" | "/" | ">" | "?" => Some(FileStatus::Open),
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
    description: Vec<String>,
    /// The lines those stand on.
    description_at: Vec<Range<usize>>,
    criteria: Vec<Criterion>,
    depends_on: Vec<String>,
    /// Where lines under the box name dependencies, without their label.
    depends_at: Vec<Range<usize>>,
    /// Indentation of a `Criteria:` whose list follows.
    criteria_list: Option<usize>,
    /// Column at which its text starts; what is nested is indented to there.
    content_indent: usize,
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
}

struct OpenItem {
    indent: usize,
    /// The box, if it is one.
    draft: Option<usize>,
}

impl Reader {
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
        } else if let Some(item) = list_item(line.text) {
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

    fn item(&mut self, line: Line<'_>, item: &ListItem<'_>) {
        self.leave_items(item.indent);
        let draft = self.checkbox(line, item);
        if draft.is_none() {
            self.detail(line, item.content, item.indent);
        }
        if let Some((marker, length)) = fence(item.content) {
            self.region = Region::Fence { marker, length, item: Some(item.indent) };
        }
        self.open.push(OpenItem { indent: item.indent, draft });
        self.extend_open(line.end());
    }

    /// Adds a draft if the item has a box that counts.
    fn checkbox(&mut self, line: Line<'_>, item: &ListItem<'_>) -> Option<usize> {
        if self.set_aside.is_some() {
            return None;
        }
        let (mark, said) = checkbox(item.content)?;
        let head = text::head(said)?;
        let mark_at = line.start + item.content_at + 1;
        self.drafts.push(Draft {
            parent: self.open_draft(),
            span: line.start..line.end(),
            mark: mark_at..mark_at + mark.len(),
            status: status_of(mark)?,
            depends_on: head.depends_on.clone(),
            head,
            description: Vec::new(),
            description_at: Vec::new(),
            criteria: Vec::new(),
            depends_at: Vec::new(),
            criteria_list: None,
            content_indent: item.indent + marker_length(line.text.trim_start()).unwrap_or(1) + 1,
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
            Detail::Criteria(said) => draft.criteria.push(text::criterion(said)),
            Detail::Check(criterion) => draft.criteria.push(criterion),
            Detail::DependsOn(said) => {
                draft.depends_on.extend(text::ids(said));
                draft.depends_at.push(line.ending(said));
            }
            Detail::Other if in_criteria => draft.criteria.push(text::criterion(content)),
            Detail::Other => {
                draft.criteria_list = None;
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

/// Gives every box its id, then turns drafts into tasks. Ids spelled out come first, so that a
/// made one never takes theirs.
fn finish(drafts: Vec<Draft>) -> Parsed {
    let mut slugs = Slugs::default();
    for draft in &drafts {
        slugs.reserve(draft.head.id.as_deref());
    }
    let ids: Vec<TaskId> = drafts
        .iter()
        .map(|draft| TaskId::new(draft.head.id.clone().unwrap_or_else(|| slugs.make(&draft.head.title))))
        .collect();
    let mut children: Vec<Vec<TaskId>> = vec![Vec::new(); drafts.len()];
    for (draft, id) in drafts.iter().zip(&ids) {
        if let Some(parent) = draft.parent {
            children[parent].push(id.clone());
        }
    }
    let known: std::collections::HashSet<&TaskId> = ids.iter().collect();
    let resolve = |name: String| {
        let id = TaskId::new(name);
        let made = TaskId::new(slug(id.as_str()));
        if known.contains(&id) || !known.contains(&made) { id } else { made }
    };
    let mut parsed = Parsed::new(Dialect::Markdown, 0..0);
    for ((draft, id), children) in drafts.into_iter().zip(&ids).zip(children) {
        let title = if draft.head.title.is_empty() { id.to_string() } else { draft.head.title };
        let mut task = Task::new(id.clone(), title);
        task.description = draft.description.join("\n").trim().to_owned();
        task.criteria = draft.criteria;
        task.depends_on = unique(draft.depends_on.into_iter().map(resolve).chain(children).collect());
        task.parent = draft.parent.map(|parent| ids[parent].clone());
        task.status = draft.status;
        let place = Place {
            id_at: draft.mark.start,
            span: draft.span,
            mark: draft.mark,
            rank: None,
            note: None,
            note_at: 0,
        };
        parsed.add(task, place);
    }
    parsed
}

/// A list item: where its marker stands, in columns, and what follows it.
pub(crate) struct ListItem<'t> {
    pub(crate) indent: usize,
    pub(crate) content_at: usize,
    pub(crate) content: &'t str,
}

/// Lists may start within an item (`- 1. [ ] …`): then a box counts for the whole line.
pub(crate) fn list_item(line: &str) -> Option<ListItem<'_>> {
    let first = after_marker(line)?;
    let mut innermost = first;
    while checkbox(innermost).is_none()
        && let Some(inner) = after_marker(innermost)
    {
        innermost = inner;
    }
    let content = if checkbox(innermost).is_some() { innermost } else { first };
    Some(ListItem { indent: columns(line), content_at: line.len() - content.len(), content })
}

/// What follows the marker that a line starts with.
fn after_marker(line: &str) -> Option<&str> {
    let marker_on = line.trim_start();
    let after = &marker_on[marker_length(marker_on)?..];
    let content = after.trim_start();
    (content.len() < after.len() || content.is_empty()).then_some(content)
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

/// The mark of a box and what is said behind it.
pub(crate) fn checkbox(content: &str) -> Option<(&str, &str)> {
    let inside = content.strip_prefix('[')?;
    let end = inside.find(']')?;
    let (mark, rest) = (&inside[..end], &inside[end + 1..]);
    status_of(mark)?;
    (rest.is_empty() || rest.starts_with(char::is_whitespace)).then(|| (mark, rest.trim()))
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
fn setext_level(line: &str) -> Option<usize> {
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
