//! Edits of plans: the mark and the note of a step, the count in the front matter, steps added.

use std::iter;

use wiggum_core::task::{FileStatus, Task};

use super::lines::{inserted, line_end, one_line};
use super::{Change, EditError, NewTask, noted};
use crate::Backlog;
use crate::formats::plan::header::{PlanValue, written};
use crate::formats::plan::{FAILED, mark_of};

/// What changes with the status of a step. The count of completed steps is part of it, where the
/// file has one.
pub(super) fn status(backlog: &mut Backlog, position: usize, status: FileStatus) -> Vec<Change> {
    let mut changes = noted(&mut backlog.places[position], FAILED, status == FileStatus::Failed);
    let mark = backlog.places[position].mark.clone();
    changes.push(Change { range: mark, with: mark_of(status).to_owned() });
    let was = completed(&backlog.tasks);
    let before = u32::from(backlog.tasks[position].status == FileStatus::Done);
    let count = PlanValue::CompletedSteps(was - before + u32::from(status == FileStatus::Done));
    if let Some(front) = &mut backlog.front
        && let Some(range) = front.values.of(count)
    {
        front.note(count);
        let with = written(count, &backlog.text[..range.start]);
        changes.push(Change { range, with });
    }
    changes
}

pub(super) fn completed(tasks: &[Task]) -> u32 {
    tasks.iter().fold(0, |count, task| count + u32::from(task.status == FileStatus::Done))
}

/// The text with a step for an agent behind the last one, in the style of that.
pub(super) fn with_added(backlog: &Backlog, task: &NewTask) -> Result<String, EditError> {
    let refused =
        |what| EditError::NotExpressible { id: task.id.clone(), what, dialect: backlog.dialect.name() };
    let number =
        task.id.strip_prefix("step_").filter(|number| is_number(number)).ok_or_else(|| refused("id"))?;
    if !task.criteria.is_empty() {
        return Err(refused("criteria"));
    }
    let title = one_line(&task.title());
    if title.contains(FAILED) || title.contains("(action") {
        return Err(refused("title"));
    }
    let text = &backlog.text;
    let last = backlog.places.iter().max_by_key(|place| place.span.start).ok_or_else(|| refused("place"))?;
    let first_line = text[last.span.clone()].lines().next().unwrap_or_default();
    let blank = &first_line[..first_line.len() - first_line.trim_start().len()];
    let marker = first_line.trim_start().chars().next().filter(|c| "-*+".contains(*c)).unwrap_or('-');
    let head = format!("{blank}{marker} [ ] **Step {number}:** {title} (action_type: agent)");
    let depends = match task.depends_on.is_empty() {
        true => "none".to_owned(),
        false => task.depends_on.join(", "),
    };
    let depends = format!("{blank}  - Dependencies: {depends}");
    let words = task.description.lines().map(str::trim).filter(|line| !line.is_empty() && *line != title);
    let words = words.map(|line| format!("{blank}  {line}"));
    let end = line_end(text);
    let lines: Vec<String> = iter::once(head).chain(words).chain([depends]).collect();
    // A blank line where the steps have one between them.
    let gap = if has_gaps(backlog) { end } else { "" };
    Ok(inserted(text, last.span.end, &format!("{end}{gap}{}", lines.join(end))))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.len() <= 6 && text.bytes().all(|b| b.is_ascii_digit()) && !text.starts_with('0')
}

fn has_gaps(backlog: &Backlog) -> bool {
    let first = backlog.places.iter().map(|place| place.span.end).min().unwrap_or(0);
    let rest = &backlog.text[first..];
    backlog.places.len() > 1 && (rest.starts_with("\n\n") || rest.starts_with("\r\n\r\n"))
}
