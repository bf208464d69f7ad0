//! Is a Markdown file without tasks an empty list, or no list of tasks at all? The second is never taken for a
//! backlog in which everything is done.

use crate::formats::markdown::region::{Inside, Region};
use crate::formats::markdown::{
    CODE_INDENT, Lines, atx_level, checkbox, columns, fence, list_item, setext_level,
};
use crate::json::BOM;

/// Headings of lists of tasks. Where no list follows, there are no tasks yet.
const LISTS: [&str; 9] =
    ["tasks", "task list", "open tasks", "todo", "todos", "to do", "to-do", "backlog", "checklist"];

/// Endings of files in which `#` begins a heading rather than a comment.
const MARKDOWN: [&str; 4] = [".md", ".markdown", ".mdx", ".txt"];

/// What a file without tasks seems to be; nothing where it is an empty list of tasks.
pub(crate) fn seems(file_name: &str, text: &str) -> Option<String> {
    let text = text.trim_start_matches(BOM);
    let is_markdown = is_markdown(file_name);
    let found = Found::count(text);
    if text.trim().is_empty() || found.boxes > 0 || (is_markdown && found.is_empty_list()) {
        return None;
    }
    Some(if is_markdown || found.hidden_boxes > 0 {
        found.markdown()
    } else {
        other(&file_name.to_ascii_lowercase(), text)
    })
}

pub(crate) fn is_markdown(file_name: &str) -> bool {
    let name = file_name.to_ascii_lowercase();
    MARKDOWN.iter().any(|ending| name.ends_with(ending))
}

/// What stands in a text, read as Markdown.
#[derive(Default)]
struct Found {
    /// Also those in sections that do not count.
    boxes: usize,
    hidden_boxes: usize,
    items: usize,
    headings: usize,
    has_table: bool,
    has_words: bool,
    /// A heading of a list of tasks, below which there was nothing but smaller headings.
    has_empty_list: bool,
    /// The level of such a heading, as long as nothing else follows it.
    below_list_heading: Option<usize>,
}

impl Found {
    fn count(text: &str) -> Self {
        let mut found = Self::default();
        let mut region = Region::default();
        let mut lines = Lines::new(text).peekable();
        let mut is_underline = false;
        while let Some(line) = lines.next() {
            let content = line.text.trim();
            match region.take(content, columns(line.text)) {
                Inside::Comment => {
                    found.hidden_boxes += usize::from(is_box(content));
                    continue;
                }
                Inside::Fence => {
                    found.hidden_boxes += usize::from(is_box(content));
                    found.words(content);
                    continue;
                }
                Inside::Nothing => {}
            }
            if let Some((marker, length)) = fence(content) {
                region = Region::Fence { marker, length, item: None };
                continue;
            }
            if std::mem::take(&mut is_underline) {
                continue;
            }
            let underline = lines.peek().and_then(|next| setext_level(next.text));
            let underline = underline.filter(|_| !content.is_empty() && list_item(line.text).is_none());
            is_underline = underline.is_some();
            found.line(line.text, underline, &mut region);
        }
        found.has_empty_list |= found.below_list_heading.is_some();
        found
    }

    fn line(&mut self, line: &str, underline: Option<usize>, region: &mut Region) {
        let content = line.trim();
        if let Some(level) = atx_level(content).or(underline) {
            self.headings += 1;
            let is_part = self.below_list_heading.is_some_and(|list| level > list);
            if !is_part || is_list_heading(content) {
                self.has_empty_list |= self.below_list_heading.is_some();
                self.below_list_heading = is_list_heading(content).then_some(level);
            }
        } else if let Some(comment) = content.strip_prefix("<!--") {
            self.hidden_boxes += usize::from(is_box(comment));
            if !content.contains("-->") {
                *region = Region::Comment;
            }
        } else if let Some(quoted) = content.strip_prefix('>') {
            self.hidden_boxes += usize::from(is_box(quoted));
            self.words(quoted);
        } else if let Some(item) = list_item(line).filter(|item| !item.is_bare || item.indent < CODE_INDENT) {
            self.below_list_heading = None;
            match checkbox(item.content) {
                Some(_) => self.boxes += 1,
                None => self.items += usize::from(!item.content.is_empty()),
            }
        } else if content.starts_with('|') {
            self.has_table = true;
            self.below_list_heading = None;
        } else {
            self.words(content);
        }
    }

    /// Text may be the work that nobody wrote as a list, unless it says that there is none.
    fn words(&mut self, text: &str) {
        if text.contains(char::is_alphanumeric) {
            self.has_words = true;
            self.below_list_heading = self.below_list_heading.filter(|_| says_empty(text));
        }
    }

    /// Headings and nothing else, or the heading of a list that has no items.
    fn is_empty_list(&self) -> bool {
        let only_headings = self.items == 0 && !self.has_table && !self.has_words && self.hidden_boxes == 0;
        (only_headings && self.headings > 0) || (self.has_empty_list && self.hidden_boxes == 0)
    }

    fn markdown(&self) -> String {
        let plural = |count: usize| if count == 1 { "" } else { "s" };
        match self {
            Self { hidden_boxes: 1, .. } => {
                "Markdown whose only box is in code, a comment or a quote".to_owned()
            }
            Self { hidden_boxes: count @ 2.., .. } => {
                format!("Markdown whose {count} boxes are all in code, comments or quotes")
            }
            Self { items: count @ 1.., .. } => {
                format!("Markdown with {count} plain list item{}", plural(*count))
            }
            Self { has_table: true, .. } => "Markdown with a table".to_owned(),
            Self { headings: 1.., .. } => "Markdown with headings and text, but no list".to_owned(),
            Self { .. } => "Markdown with text, but no list".to_owned(),
        }
    }
}

fn is_box(line: &str) -> bool {
    list_item(line).is_some_and(|item| checkbox(item.content).is_some())
}

/// Is a text nothing but that there is nothing: "None at the moment.", "No open tasks"?
fn says_empty(text: &str) -> bool {
    let words: Vec<String> = text
        .split(|c: char| !c.is_alphanumeric() && c != '/')
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    let is = |list: &[&str], word: &String| list.contains(&word.as_str());
    words.iter().any(|word| is(&NOTHING, word))
        && words.iter().all(|word| is(&NOTHING, word) || is(&ABOUT_NOTHING, word))
}

const NOTHING: [&str; 7] = ["none", "nothing", "no", "empty", "n/a", "tbd", "done"];

/// Words that such a text has beside those.
const ABOUT_NOTHING: [&str; 32] = [
    "all",
    "and",
    "are",
    "at",
    "currently",
    "do",
    "else",
    "everything",
    "for",
    "here",
    "is",
    "item",
    "items",
    "left",
    "list",
    "moment",
    "more",
    "now",
    "open",
    "outstanding",
    "planned",
    "present",
    "remaining",
    "right",
    "so",
    "far",
    "task",
    "tasks",
    "the",
    "there",
    "to",
    "yet",
];

pub(crate) fn is_list_heading(heading: &str) -> bool {
    let words = heading.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
    LISTS.contains(&words.as_str())
}

/// A guess at what a file is that is not Markdown.
fn other(name: &str, text: &str) -> String {
    let start = text.trim_start().to_ascii_lowercase();
    if start.starts_with("#!") {
        return "a script".to_owned();
    }
    if start.starts_with('<') {
        return "a page of HTML or XML".to_owned();
    }
    if let Some(separator) = [':', ',', '\t', ';'].into_iter().find(|separator| are_records(text, *separator))
    {
        let shown = if separator == '\t' { "tabs".to_owned() } else { format!("`{separator}`") };
        return format!("records with fields separated by {shown}");
    }
    if [".toml", ".ini", ".cfg", ".conf", ".env"].iter().any(|ending| name.ends_with(ending)) {
        return "a configuration file".to_owned();
    }
    let file = name.rsplit('/').next().unwrap_or(name);
    match file.rsplit_once('.') {
        Some((stem, ending)) if !stem.is_empty() => format!("text that is no Markdown (.{ending})"),
        Some(_) | None => "plain text".to_owned(),
    }
}

/// Do the first lines have the same number of fields, three at least?
fn are_records(text: &str, separator: char) -> bool {
    let mut fields =
        text.lines().filter(|line| !line.is_empty()).take(20).map(|line| line.split(separator).count());
    let Some(first) = fields.next() else { return false };
    first >= 3 && fields.all(|count| count == first)
}
