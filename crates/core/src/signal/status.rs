//! Finds `---RALPH_STATUS---` blocks, as loops of the `.ralph/` kind ask their agents to write.
//!
//! Only the two fields that decide are read; counters such as `TASKS_COMPLETED_THIS_LOOP` say
//! nothing about the task.

use std::ops::Range;

use super::lines::{Line, LineKind};

pub(super) struct StatusBlock {
    pub(super) lines: Range<usize>,
    pub(super) reported: Reported,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reported {
    Complete,
    Unfinished,
    /// Complete, but not to be taken as the end; or nothing we know.
    Unclear,
}

impl StatusBlock {
    /// The blocks that are said: in prose, or alone in a fence. Their lines are no longer prose then.
    pub(super) fn find(lines: &mut [Line<'_>]) -> Vec<Self> {
        let mut blocks = Vec::new();
        let mut index = 0;
        while index < lines.len() {
            if is_mark(lines[index].text, "RALPH_STATUS") && is_said(lines, index) {
                let end = block_end(lines, index);
                blocks.push(Self { lines: index..end, reported: reported(&lines[index..end]) });
                for line in &mut lines[index..end] {
                    line.kind = LineKind::Shown;
                }
                index = end;
            } else {
                index += 1;
            }
        }
        blocks
    }
}

fn is_mark(line: &str, name: &str) -> bool {
    line.trim().trim_matches('-').trim() == name && line.trim().starts_with("---")
}

/// Agents often wrap the block in a fence; a fence with something else in it too only shows it.
fn is_said(lines: &[Line<'_>], index: usize) -> bool {
    match lines[index].kind {
        LineKind::Prose => true,
        LineKind::Code(_) => {
            let opened = index
                .checked_sub(1)
                .is_some_and(|before| matches!(lines[before].kind, LineKind::FenceOpen(_)));
            let end = block_end(lines, index);
            opened && lines.get(end).is_none_or(|after| matches!(after.kind, LineKind::FenceClose(_)))
        }
        LineKind::Blank
        | LineKind::FenceOpen(_)
        | LineKind::FenceClose(_)
        | LineKind::Shown
        | LineKind::Escalation => false,
    }
}

/// A block has about ten lines; one whose end is missing is not searched for further than this.
const LONGEST: usize = 40;

fn block_end(lines: &[Line<'_>], start: usize) -> usize {
    let limit = (start + LONGEST).min(lines.len());
    for (index, line) in lines.iter().enumerate().take(limit).skip(start + 1) {
        if is_mark(line.text, "END_RALPH_STATUS") {
            return index + 1;
        }
        if is_mark(line.text, "RALPH_STATUS")
            || matches!(line.kind, LineKind::FenceClose(_) | LineKind::FenceOpen(_))
        {
            return index;
        }
    }
    limit
}

fn reported(lines: &[Line<'_>]) -> Reported {
    let mut status = String::new();
    let mut exit = String::new();
    for line in lines {
        let Some((key, value)) = line.text.split_once(':') else { continue };
        match key.trim().trim_matches('*') {
            "STATUS" => status = value.trim().trim_matches('*').trim().to_ascii_uppercase(),
            "EXIT_SIGNAL" => exit = value.trim().trim_matches('*').trim().to_ascii_lowercase(),
            _ => {}
        }
    }
    match (status.as_str(), exit.as_str()) {
        ("COMPLETE", "true") => Reported::Complete,
        ("IN_PROGRESS" | "BLOCKED", _) => Reported::Unfinished,
        _ => Reported::Unclear,
    }
}
