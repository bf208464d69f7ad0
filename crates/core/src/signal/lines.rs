//! Sorts the lines of a message into what is said and what is only shown (code, quotes, thoughts).
//!
//! Knows as much of Markdown as meaning needs, no more.

/// What a line is, by its place in the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineKind {
    Prose,
    Blank,
    /// The line that opens a fence, with the number of the fence.
    FenceOpen(usize),
    /// Inside a fence.
    Code(usize),
    FenceClose(usize),
    /// Shown, not said: block quotes, indented code, thoughts, examples, tables.
    Shown,
    /// In an `<escalate>` block, or what could be one.
    Escalation,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Line<'a> {
    pub(super) text: &'a str,
    /// Where the line begins in the message.
    pub(super) start: usize,
    pub(super) kind: LineKind,
}

pub(super) fn classify(message: &str) -> Vec<Line<'_>> {
    let mut lines = split(message);
    mark_code_and_quotes(&mut lines);
    mark_regions(&mut lines);
    lines
}

fn split(message: &str) -> Vec<Line<'_>> {
    let mut start = 0;
    message
        .split_inclusive('\n')
        .map(|text| {
            let line = Line { text: text.trim_end_matches(['\n', '\r']), start, kind: LineKind::Prose };
            start += text.len();
            line
        })
        .collect()
}

fn mark_code_and_quotes(lines: &mut [Line<'_>]) {
    let mut open: Option<Fence> = None;
    let mut fences = 0;
    let mut after_gap = true;
    let mut in_list = false;
    for line in lines {
        let text = line.text.trim();
        line.kind = match open {
            Some(fence) if fence.closes(text) => {
                open = None;
                LineKind::FenceClose(fences)
            }
            Some(_) => LineKind::Code(fences),
            None => {
                if let Some(fence) = Fence::opens(text) {
                    open = Some(fence);
                    fences += 1;
                    LineKind::FenceOpen(fences)
                } else if text.is_empty() {
                    LineKind::Blank
                } else if text.starts_with(['>', '|']) || (after_gap && !in_list && is_indented(line.text)) {
                    LineKind::Shown
                } else {
                    LineKind::Prose
                }
            }
        };
        match line.kind {
            LineKind::Blank => after_gap = true,
            LineKind::Prose => {
                after_gap = false;
                if is_list_item(text) {
                    in_list = true;
                } else if !line.text.starts_with([' ', '\t']) {
                    in_list = false;
                }
            }
            // Code after code is still code.
            LineKind::Shown => after_gap = is_indented(line.text),
            LineKind::FenceOpen(_) | LineKind::Code(_) | LineKind::FenceClose(_) | LineKind::Escalation => {
                after_gap = false;
            }
        }
    }
}

fn is_indented(line: &str) -> bool {
    line.starts_with("    ") || line.starts_with('\t')
}

/// A bullet or a number with a space after it.
pub(super) fn is_list_item(text: &str) -> bool {
    strip_bullet(text).is_some()
}

/// What stands after the bullet or number of a list item.
pub(super) fn strip_bullet(text: &str) -> Option<&str> {
    if let Some(rest) = text.strip_prefix(['-', '*', '+', '•', '–', '◦']) {
        return rest.strip_prefix([' ', '\t']).map(str::trim_start);
    }
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    if rest.len() == text.len() || text.len() - rest.len() > 3 {
        return None;
    }
    rest.strip_prefix(['.', ')'])?.strip_prefix([' ', '\t']).map(str::trim_start)
}

#[derive(Clone, Copy)]
struct Fence {
    mark: char,
    length: usize,
}

impl Fence {
    fn opens(text: &str) -> Option<Self> {
        let mark = text.chars().next().filter(|c| matches!(c, '`' | '~'))?;
        let length = text.chars().take_while(|&c| c == mark).count();
        let info = &text[length..];
        // A fence of backticks has no backticks in its info string; otherwise it is inline code.
        (length >= 3 && !(mark == '`' && info.contains('`'))).then_some(Self { mark, length })
    }

    fn closes(self, text: &str) -> bool {
        text.len() >= self.length && text.chars().all(|c| c == self.mark)
    }
}

/// Elements whose content is not addressed to us as a statement.
pub(super) const REGIONS: [&str; 27] = [
    ESCALATE,
    "think",
    "thinking",
    "reasoning",
    "scratchpad",
    "analysis",
    "example",
    "instructions",
    "prompt",
    "quote",
    "blockquote",
    "pre",
    "code",
    "memory",
    "handoff",
    "tool_result",
    "tool-result",
    "tool_results",
    "tool_use",
    "tool_call",
    "function_results",
    "function_calls",
    "system-reminder",
    "system_reminder",
    "output",
    "stdout",
    "stderr",
];
const ESCALATE: &str = "escalate";

/// Marks what stands between a line that opens an element (or a comment) and the one that closes it.
/// An element that is never closed is not one, except an escalation, which may be cut off.
fn mark_regions(lines: &mut [Line<'_>]) {
    let lower: Vec<String> = lines.iter().map(|line| line.text.trim().to_ascii_lowercase()).collect();
    let mut last_close = [None; REGIONS.len() + 1];
    for (index, line) in lower.iter().enumerate() {
        if line.contains("-->") {
            last_close[REGIONS.len()] = Some(index);
        }
        for (slot, name) in last_close.iter_mut().zip(REGIONS) {
            if line.contains("</") && contains_close(line, name) {
                *slot = Some(index);
            }
        }
    }
    let mut open: Option<usize> = None;
    for (index, line) in lower.iter().enumerate() {
        if lines[index].kind != LineKind::Prose {
            continue;
        }
        if open.is_none() {
            open = opened_region(line).filter(|&region| {
                last_close[region].is_some_and(|close| close >= index) || opens_escalation(line)
            });
            if open.is_none() {
                continue;
            }
        }
        let escalation = open.is_some_and(|region| REGIONS.get(region) == Some(&ESCALATE));
        lines[index].kind = if escalation { LineKind::Escalation } else { LineKind::Shown };
        let closed = open.is_some_and(|region| match REGIONS.get(region) {
            Some(name) => contains_close(line, name),
            None => line.contains("-->"),
        });
        if closed {
            open = None;
        }
    }
}

fn opened_region(line: &str) -> Option<usize> {
    if line.starts_with("<!--") {
        return Some(REGIONS.len());
    }
    let tag = line.strip_prefix('<')?;
    REGIONS.iter().position(|name| {
        tag.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(['>', ' ', '\t', '/']))
    })
}

/// Does this line open an escalation even if its end is lost, rather than mention one?
fn opens_escalation(line: &str) -> bool {
    let Some(rest) = line.strip_prefix("<escalate") else { return false };
    let (attributes, after) = rest.split_once('>').unwrap_or((rest, ""));
    attributes.contains("type") || after.trim().is_empty() || after.contains("<summary")
}

fn contains_close(line: &str, name: &str) -> bool {
    line.match_indices("</").any(|(at, _)| {
        line[at + 2..].strip_prefix(name).is_some_and(|rest| rest.trim_start().starts_with('>'))
    })
}
