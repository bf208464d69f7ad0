//! Edits of Markdown texts: whole lines added, moved and taken out.

use std::ops::Range;

use wiggum_core::task::{Criterion, FileStatus};

use super::{Change, EditError, NewTask, noted, replaced};
use crate::formats::markdown::text::{is_id, leading_id, waiting_notes};
use crate::formats::markdown::{ListItem, SKIPPED, checkbox, list_item, mark_of};
use crate::json::BOM;
use crate::slug::slug;
use crate::{Backlog, Place};

/// What changes with the status of a box: its mark, and the note behind it where it is skipped.
pub(super) fn status(text: &str, place: &mut Place, status: FileStatus) -> Vec<Change> {
    let mut changes = noted(place, SKIPPED, status == FileStatus::Skipped);
    let (present, mark) = (&text[place.mark.clone()], mark_of(status));
    if present != mark {
        changes.push(Change { range: place.mark.clone(), with: mark.to_owned() });
    }
    changes
}

/// The text with a box added, in order of preference: behind the last one, or, where there is
/// none yet, at the end or the start of the file.
pub(super) fn with_added(backlog: &Backlog, task: &NewTask) -> Vec<String> {
    let text = &backlog.text;
    let line_end = line_end(text);
    let is_in_list = |position: &usize| {
        backlog.tasks[*position].parent.as_ref().map(|id| id.as_str()) == task.parent.as_deref()
    };
    let neighbour = (0..backlog.tasks.len()).rev().find(is_in_list);
    let parent = task.parent.as_deref().and_then(|id| backlog.by_id.get(id).copied());
    if let Some(neighbour) = neighbour {
        let first_line = first_line(backlog, neighbour);
        let lines = render(task, &prefix_like(first_line), Some(first_line), line_end);
        return vec![inserted(text, backlog.places[neighbour].span.end, &format!("{line_end}{lines}"))];
    }
    if let Some(parent) = parent {
        let lines = render(task, &prefix_under(first_line(backlog, parent)), None, line_end);
        return vec![inserted(text, backlog.places[parent].span.end, &format!("{line_end}{lines}"))];
    }
    let lines = render(task, "- ", None, line_end);
    let start = if text.starts_with(BOM) { BOM.len() } else { 0 };
    let is_empty = text.len() == start;
    let at_end = match text.ends_with('\n') || is_empty {
        true => format!("{text}{lines}{line_end}"),
        false => format!("{text}{line_end}{lines}"),
    };
    vec![at_end, inserted(text, start, &format!("{lines}{line_end}{line_end}"))]
}

/// The text with a plain item behind the last one. Criteria and dependencies have no form there.
pub(super) fn with_item_added(backlog: &Backlog, task: &NewTask) -> Result<String, EditError> {
    let last = (0..backlog.places.len()).max_by_key(|position| backlog.places[*position].span.start);
    let Some(last) = last.filter(|_| task.criteria.is_empty() && task.depends_on.is_empty()) else {
        return Err(backlog.not_expressible(task, "criteria and dependencies"));
    };
    let first_line = first_line(backlog, last);
    let prefix = prefix_like(first_line);
    let under = " ".repeat(nested_by(&prefix));
    let lines = description(task).into_iter().map(|line| format!("{under}{line}"));
    let lines: Vec<String> = [format!("{prefix}{}", head(task, None))].into_iter().chain(lines).collect();
    let end = line_end(&backlog.text);
    Ok(inserted(&backlog.text, backlog.places[last].span.end, &format!("{end}{}", lines.join(end))))
}

/// Does the text say of the new task what was asked?
pub(super) fn says(backlog: &Backlog, task: &NewTask) -> bool {
    let Some(read) = backlog.task(&task.id) else { return false };
    let depends_on: Vec<&str> = read.depends_on.iter().map(|id| id.as_str()).collect();
    let wanted: Vec<&str> = task.depends_on.iter().map(String::as_str).collect();
    let criteria: Vec<Criterion> = task.criteria.iter().map(one_line_criterion).collect();
    read.title == one_line(&task.title())
        && read.description == description(task).join("\n")
        && read.criteria == criteria
        && depends_on.strip_prefix(wanted.as_slice()).is_some_and(|more| more.is_empty() || words_wait(task))
        && read.parent.as_ref().map(|id| id.as_str()) == task.parent.as_deref()
}

/// Do its words name what it depends on, in a note?
fn words_wait(task: &NewTask) -> bool {
    [task.title().as_str(), &task.description].iter().any(|said| waiting_notes(said).next().is_some())
}

/// The text with the lines of one box moved before or behind those of another.
pub(super) fn with_moved(backlog: &Backlog, from: usize, target: usize, after: bool) -> String {
    let text = &backlog.text;
    let line_end = line_end(text);
    let span = backlog.places[from].span.clone();
    let target = &backlog.places[target].span;
    let lines = &text[span.clone()];
    let (at, moved) = match after {
        true => (target.end, format!("{line_end}{lines}")),
        false => (target.start, format!("{lines}{line_end}")),
    };
    let taken = with_line_end(text, span);
    if at >= taken.end {
        let mut out = inserted(text, at, &moved);
        out.replace_range(taken, "");
        return out;
    }
    let mut out = text.clone();
    out.replace_range(taken, "");
    out.insert_str(at, &moved);
    out
}

pub(super) fn without(text: &str, span: Range<usize>) -> String {
    let mut out = text.to_owned();
    out.replace_range(with_line_end(text, span), "");
    out
}

/// The text without the lines of some of the boxes, with all that is nested in them.
pub(super) fn without_all(backlog: &Backlog, is_gone: impl Fn(usize) -> bool) -> String {
    let spans = backlog.places.iter().enumerate().filter(|(position, _)| is_gone(*position));
    let mut spans: Vec<Range<usize>> = spans.map(|(_, place)| place.span.clone()).collect();
    spans.sort_by_key(|span| span.start);
    let mut blocks: Vec<Range<usize>> = Vec::new();
    for span in spans {
        match blocks.last_mut() {
            // What is nested goes with what it is nested in, and neighbours go as one.
            Some(block) if span.start <= block.end => block.end = block.end.max(span.end),
            Some(block) if matches!(&backlog.text[block.end..span.start], "\n" | "\r\n") => {
                block.end = span.end
            }
            Some(_) | None => blocks.push(span),
        }
    }
    let change = |block| Change { range: with_line_end(&backlog.text, block), with: String::new() };
    replaced(&backlog.text, blocks.into_iter().map(change).collect())
}

/// Whole lines, with the line end behind them, or the one before where the file ends without.
pub(super) fn with_line_end(text: &str, span: Range<usize>) -> Range<usize> {
    let rest = &text[span.end..];
    if let Some(length) = ["\r\n", "\n"].iter().find(|end| rest.starts_with(**end)).map(|end| end.len()) {
        return span.start..span.end + length;
    }
    let before = &text[..span.start];
    let length = ["\r\n", "\n"].iter().find(|end| before.ends_with(**end)).map_or(0, |end| end.len());
    span.start - length..span.end
}

/// The lines of a new box, without the last line end.
fn render(task: &NewTask, prefix: &str, neighbour: Option<&str>, line_end: &str) -> String {
    let blank = &prefix[..prefix.len() - prefix.trim_start().len()];
    let under = format!("{blank}{}", " ".repeat(nested_by(prefix)));
    let mut lines = vec![format!("{prefix}[ ] {}", head(task, neighbour))];
    lines.extend(description(task).iter().map(|line| format!("{under}{line}")));
    if !task.depends_on.is_empty() {
        lines.push(format!("{under}- Depends on: {}", task.depends_on.join(", ")));
    }
    for criterion in task.criteria.iter().map(one_line_criterion) {
        let check = criterion.check.map(|check| format!(" (check: `{check}`)")).unwrap_or_default();
        lines.push(format!("{under}- Criteria: {}{check}", criterion.text));
    }
    lines.join(line_end)
}

/// Id and title, the id in the form the neighbour uses.
fn head(task: &NewTask, neighbour: Option<&str>) -> String {
    let title = one_line(&task.title());
    let id = &task.id;
    if slug(&title) == *id && leading_id(&title).is_none() {
        return title;
    }
    if !is_id(id) {
        return format!("{title} (id: {id})");
    }
    let said =
        neighbour.and_then(list_item).and_then(|item| checkbox(item.content)).map_or("", |(_, said)| said);
    let form = leading_id(said).map(|(other, _)| said.replacen(other, "\0", 1)).unwrap_or_default();
    if form.starts_with("**\0**") {
        format!("**{id}**: {title}")
    } else if form.starts_with("**\0:**") {
        format!("**{id}:** {title}")
    } else if form.starts_with("[\0]") {
        format!("[{id}] {title}")
    } else if form.starts_with("\0.") {
        format!("{id}. {title}")
    } else {
        format!("{id}: {title}")
    }
}

/// The description, unless it only repeats the title.
fn description(task: &NewTask) -> Vec<String> {
    let lines = task.description.lines().map(str::trim).filter(|line| !line.is_empty());
    let skipped = usize::from(task.title.trim().is_empty());
    lines.skip(skipped).map(str::to_owned).collect()
}

fn one_line_criterion(criterion: &Criterion) -> Criterion {
    Criterion { text: one_line(&criterion.text), check: criterion.check.as_deref().map(one_line) }
}

pub(super) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Indentation and marker for the item after this one; numbers count on.
fn prefix_like(line: &str) -> String {
    let Some(ListItem { content_at, .. }) = list_item(line) else { return "- ".to_owned() };
    let prefix = &line[..content_at];
    let digits: String = prefix.chars().filter(char::is_ascii_digit).collect();
    match digits.parse::<u64>() {
        Ok(number) if prefix.matches(&digits).count() == 1 => {
            prefix.replacen(&digits, &number.saturating_add(1).to_string(), 1)
        }
        Ok(_) | Err(_) => prefix.to_owned(),
    }
}

/// Indentation and marker for the first item nested in this one.
fn prefix_under(line: &str) -> String {
    let blank = &line[..line.len() - line.trim_start().len()];
    let inner = match (blank.contains('\t'), list_item(line)) {
        (true, _) => "\t".to_owned(),
        (false, Some(item)) => " ".repeat(nested_by(&line[..item.content_at])),
        (false, None) => "  ".to_owned(),
    };
    format!("{blank}{inner}- ")
}

/// Columns by which lines are nested in an item that begins like this. A box may have no bullet, or no blank
/// behind it; its lines are indented all the same.
fn nested_by(prefix: &str) -> usize {
    prefix.trim_start().chars().count().max(2)
}

fn first_line(backlog: &Backlog, position: usize) -> &str {
    let own = &backlog.text[backlog.places[position].span.clone()];
    own.lines().next().unwrap_or_default()
}

pub(super) fn inserted(text: &str, at: usize, what: &str) -> String {
    format!("{}{what}{}", &text[..at], &text[at..])
}

pub(super) fn line_end(text: &str) -> &'static str {
    if text.contains("\r\n") { "\r\n" } else { "\n" }
}
