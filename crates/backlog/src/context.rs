//! What a file says around a task: the headings above it, what it begins with, and the words of its own section.
//! A task of one line often means something only beside those.

use std::collections::HashSet;

use crate::formats::Family;
use crate::formats::markdown::region::{Inside, Region};
use crate::formats::markdown::{Lines, atx_level, columns, fence, list_item};
use crate::json::{Document, Value};
use crate::{Backlog, Dialect};

/// What stands around a task, as far as it is no task itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Context {
    /// From the outermost to the nearest.
    pub headings: Vec<String>,
    /// What the file begins with, or says of the whole.
    pub preamble: String,
    /// The words of its section.
    pub section: String,
}

/// Bounds in bytes: what is said of everything is short where it is good, and a section has examples.
const MAX_PREAMBLE: usize = 1200;
const MAX_SECTION: usize = 2400;
const MAX_HEADINGS: usize = 5;

impl Backlog {
    pub fn context(&self, id: &str) -> Context {
        let Some(&position) = self.by_id.get(id) else { return Context::default() };
        match (self.dialect.family(), self.dialect) {
            (Family::Objects, _) => self.of_document(),
            (Family::Boxes | Family::Marked, dialect) if is_markdown(dialect) => self.of_markdown(position),
            (Family::Boxes | Family::Marked | Family::Lines | Family::Steps, _) => Context::default(),
        }
    }

    fn of_document(&self) -> Context {
        let Ok(document) = Document::scan(&self.text) else { return Context::default() };
        let said = ["description", "overview", "goal", "summary"].into_iter().find_map(|key| {
            document.root().get(key).and_then(Value::as_str).map(|text| text.trim().to_owned())
        });
        Context { preamble: cut(said.unwrap_or_default(), MAX_PREAMBLE), ..Context::default() }
    }

    fn of_markdown(&self, position: usize) -> Context {
        let own = self.places[position].span.start;
        let mut spans: Vec<_> = self.places.iter().map(|place| place.span.clone()).collect();
        spans.sort_by_key(|span| span.start);
        let starts: HashSet<usize> = spans.iter().map(|span| span.start).collect();
        let first_task = spans.first().map_or(self.text.len(), |span| span.start);
        let mut spans = spans.into_iter().peekable();
        let mut task_end = 0;
        let mut region = Region::default();
        let mut above: Vec<(usize, String)> = Vec::new();
        let (mut preamble, mut section) = (Vec::new(), Vec::new());
        let mut is_past = false;
        let mut lines = Lines::new(&self.text);
        lines.skip_to(crate::formats::outline::front_matter_end(&self.text));
        for line in lines {
            let content = line.text.trim();
            is_past |= line.start >= own;
            let inside = region.take(content, columns(line.text));
            if let (Inside::Nothing, Some((marker, length))) = (&inside, fence(content)) {
                region = Region::Fence { marker, length, item: None };
            }
            let level = atx_level(content).filter(|_| matches!(inside, Inside::Nothing));
            if let Some(level) = level {
                let is_own = line.start == own;
                // The section that the task stands in ends here.
                if is_past && !is_own && above.last().is_none_or(|(outer, _)| level <= *outer) {
                    break;
                }
                if !is_past || is_own {
                    above.retain(|(outer, _)| *outer < level);
                }
                if !is_past && !starts.contains(&line.start) {
                    above.push((level, content[level..].trim().to_owned()));
                    section.clear();
                    continue;
                }
            }
            while spans.peek().is_some_and(|span| span.start <= line.start) {
                task_end = spans.next().map_or(task_end, |span| task_end.max(span.end));
            }
            let is_words = !matches!(inside, Inside::Comment) && !content.starts_with("<!--");
            if line.start < task_end || !is_words || (is_past && level.is_some()) {
                continue;
            }
            let is_first = above.iter().all(|(level, _)| *level == 1) && line.start < first_task;
            if is_first && !is_past {
                preamble.push(line.text);
            } else if above.iter().any(|(level, _)| *level > 1) && !is_rule(content) {
                section.push(line.text);
            }
        }
        let said = |lines: Vec<&str>| lines.join("\n").trim_matches(['\n', '\r']).trim_end().to_owned();
        Context {
            headings: above
                .into_iter()
                .map(|(_, words)| words)
                .filter(|words| !words.is_empty())
                .take(MAX_HEADINGS)
                .collect(),
            preamble: cut(said(preamble), MAX_PREAMBLE),
            section: cut(said(section), MAX_SECTION),
        }
    }
}

fn is_markdown(dialect: Dialect) -> bool {
    matches!(dialect, Dialect::Markdown | Dialect::Headings | Dialect::Items | Dialect::Table)
}

fn is_rule(content: &str) -> bool {
    content.len() >= 3 && content.chars().all(|c| c == '-') && list_item(content).is_none()
}

/// At most so many bytes, in whole lines where that leaves any.
fn cut(text: String, max: usize) -> String {
    if text.len() <= max {
        return text;
    }
    let mut end = max;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let end = text[..end].rfind('\n').filter(|at| *at > max / 2).unwrap_or(end);
    format!("{}\n…", text[..end].trim_end())
}
