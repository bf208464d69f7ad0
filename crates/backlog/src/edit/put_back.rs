//! Tasks put back that are gone from a newer version of the file: their former bytes, at their former place.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use wiggum_core::ids::TaskId;
use wiggum_core::task::Task;

use super::json::{self, Style};
use super::lines::line_end;
use super::{Change, EditError, plan, replaced};
use crate::Backlog;
use crate::formats::Family;
use crate::formats::plan::header::PlanValue;

impl Backlog {
    /// Puts tasks back as they were in an earlier version of the file, with all that was written under them. Refused
    /// where that cannot be done without changing another task.
    pub fn put_back(&mut self, earlier: &Self, ids: &HashSet<TaskId>) -> Result<(), EditError> {
        let mut gone = ids.iter().map(|id| earlier.position(id.as_str())).collect::<Result<Vec<_>, _>>()?;
        gone.sort_by_key(|position| earlier.places[*position].span.start);
        let text = match self.dialect.family() {
            Family::Boxes | Family::Steps | Family::Lines | Family::Marked => {
                with_lines(self, earlier, &gone)
            }
            Family::Objects => with_objects(self, earlier, &gone),
        };
        let mut wanted = self.ids();
        wanted.extend(ids.iter().map(ToString::to_string));
        let next = self.read_edited(text, &wanted)?;
        // A box has its parts back, and is then as it was too.
        let stays = |task: &Task| {
            let id = task.id.as_str();
            let was = earlier.task(id) == Some(task);
            if ids.contains(id) { was } else { was || self.task(id) == Some(task) }
        };
        if let Some(other) = next.tasks.iter().find(|task| !stays(task)) {
            let (id, what) = (other.id.to_string(), "place".to_owned());
            return Err(EditError::NotInPlace { id, what, file: self.file.clone() });
        }
        *self = next;
        if self.dialect.family() == Family::Steps {
            self.set_plan(PlanValue::TotalSteps(self.count()));
            self.set_plan(PlanValue::CompletedSteps(plan::completed(&self.tasks)));
        }
        Ok(())
    }
}

/// The text with objects of an earlier one, each behind the one that it stood behind, or else before the next.
fn with_objects(now: &Backlog, earlier: &Backlog, gone: &[usize]) -> String {
    let mut items: Vec<usize> = (0..earlier.places.len()).collect();
    items.sort_by_key(|position| earlier.places[*position].span.start);
    let span = |slot: usize| earlier.places[items[slot]].span.clone();
    let between = |before: usize| &earlier.text[span(before).end..span(before + 1).start];
    let there = |slot: usize| {
        let position = now.by_id.get(earlier.tasks[items[slot]].id.as_str())?;
        Some(now.places[*position].span.clone())
    };
    let present = json::file_order(now);
    let mut changes = Vec::new();
    let mut alone = String::new();
    for slot in (0..items.len()).filter(|slot| gone.contains(&items[*slot])) {
        let object = &earlier.text[span(slot)];
        if let Some(before) = (0..slot).rev().find_map(there) {
            let with = format!("{}{object}", between(slot - 1));
            changes.push(Change { range: before.end..before.end, with });
        } else if let Some(after) = (slot + 1..items.len()).find_map(there) {
            let with = format!("{object}{}", between(slot));
            changes.push(Change { range: after.start..after.start, with });
        } else if let Some(last) = present.last() {
            let style = Style::of(&now.text[last.clone()]);
            let separator = json::separator(&now.text, &now.list, &present, &style);
            changes.push(Change { range: last.end..last.end, with: format!("{separator}{object}") });
        } else {
            let before = if alone.is_empty() { "" } else { between(slot - 1) };
            alone.push_str(before);
            alone.push_str(object);
        }
    }
    if !alone.is_empty() && !items.is_empty() {
        let open = &earlier.text[earlier.list.start + 1..span(0).start];
        let close = &earlier.text[span(items.len() - 1).end..earlier.list.end - 1];
        let inside = now.list.start + 1..now.list.end - 1;
        changes.push(Change { range: inside, with: format!("{open}{alone}{close}") });
    }
    replaced(&now.text, changes)
}

/// The text with lines of an earlier one. Each block goes behind the nearest line before it that stands once in both
/// texts, or else before the nearest such line behind it, but never into the midst of another task.
fn with_lines(now: &Backlog, earlier: &Backlog, gone: &[usize]) -> String {
    let blocks = outermost(earlier, gone);
    let (new, old) = (Lines::of(&now.text), Lines::of(&earlier.text));
    let is_gone = |line: usize| blocks.iter().any(|block| block.contains(&old.spans[line].start));
    let stays: Vec<bool> = (0..old.spans.len()).map(|line| !is_gone(line)).collect();
    let once_before = old.once(&|line| stays[line]);
    let once_now = new.once(&|_| true);
    let same = |line: usize| {
        let text = old.text(line);
        once_before.get(text).and(once_now.get(text)).copied().filter(|_| stays[line])
    };
    let end = line_end(&now.text);
    let mut changes = Vec::new();
    for block in blocks {
        let lines = &earlier.text[block.clone()];
        let first = old.spans.partition_point(|line| line.start < block.start);
        let behind = old.spans.partition_point(|line| line.start < block.end);
        let above = (0..first).rev().find_map(|line| Some((line, same(line)?)));
        let below = || (behind..old.spans.len()).find_map(same);
        let (at, with) = if let Some((line, found)) = above {
            // What follows it in both texts, blank lines above all, stays between them.
            let follows = |at: usize, line: &usize| match new.spans.get(at + 1) {
                Some(_) if new.text(at + 1) == old.text(*line) => Ok(at + 1),
                Some(_) | None => Err(at),
            };
            let between: Vec<usize> = (line + 1..first).filter(|line| stays[*line]).collect();
            let last = between.iter().try_fold(found, follows).unwrap_or_else(|at| at);
            (out_of_others(now, earlier, &block, new.spans[last].end, Edge::End), format!("{end}{lines}"))
        } else if let Some(found) = below() {
            let at = out_of_others(now, earlier, &block, new.spans[found].start, Edge::Start);
            (at, format!("{lines}{end}"))
        } else if now.text.is_empty() || now.text.ends_with('\n') {
            (now.text.len(), format!("{lines}{end}"))
        } else {
            (now.text.len(), format!("{end}{lines}"))
        };
        changes.push(Change { range: at..at, with });
    }
    replaced(&now.text, changes)
}

/// The spans of tasks, without those that are part of another of them.
fn outermost(backlog: &Backlog, gone: &[usize]) -> Vec<Range<usize>> {
    let mut blocks: Vec<Range<usize>> = Vec::new();
    for position in gone {
        let span = &backlog.places[*position].span;
        if blocks.last().is_none_or(|block| span.start >= block.end) {
            blocks.push(span.clone());
        }
    }
    blocks
}

enum Edge {
    Start,
    End,
}

/// The place itself, or the edge of the task in whose midst it is, unless the block was part of that task.
fn out_of_others(now: &Backlog, earlier: &Backlog, block: &Range<usize>, at: usize, edge: Edge) -> usize {
    let was_part_of = |position: usize| {
        let former = earlier.by_id.get(now.tasks[position].id.as_str());
        former.is_some_and(|former| earlier.places[*former].span.contains(&block.start))
    };
    let inside =
        now.places.iter().enumerate().filter(|(position, place)| {
            place.span.start < at && at < place.span.end && !was_part_of(*position)
        });
    match edge {
        Edge::Start => inside.map(|(_, place)| place.span.start).min().unwrap_or(at),
        Edge::End => inside.map(|(_, place)| place.span.end).max().unwrap_or(at),
    }
}

/// The lines of a text, without their ends.
struct Lines<'a> {
    whole: &'a str,
    spans: Vec<Range<usize>>,
}

impl<'a> Lines<'a> {
    fn of(whole: &'a str) -> Self {
        let mut start = 0;
        let spans = whole.split_inclusive('\n').map(|line| {
            let own = line.trim_end_matches('\n').trim_end_matches('\r');
            let span = start..start + own.len();
            start += line.len();
            span
        });
        Self { whole, spans: spans.collect() }
    }

    fn text(&self, line: usize) -> &'a str {
        &self.whole[self.spans[line].clone()]
    }

    /// The lines that are there once and not blank.
    fn once(&self, counts: &dyn Fn(usize) -> bool) -> HashMap<&'a str, usize> {
        let mut once = HashMap::new();
        let mut again = HashSet::new();
        for line in (0..self.spans.len()).filter(|line| counts(*line)) {
            let text = self.text(line);
            if text.trim().is_empty() || once.insert(text, line).is_some() {
                again.insert(text);
            }
        }
        once.retain(|text, _| !again.contains(text));
        once
    }
}
