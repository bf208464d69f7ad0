//! Takes what stands inside elements out of what a message says: tool results, reminders, thoughts,
//! transcripts, elements of any name.
//!
//! Escalations have a reader of their own and are left alone.

use std::collections::HashMap;

use super::lines::{Line, LineKind, REGIONS};

/// Marks the prose inside elements as shown. An element that is never closed is one only if programs
/// write it and its tag stands alone on a line: then the rest of the message may be cut off.
pub(super) fn hide_elements(lines: &mut [Line<'_>]) {
    if !lines.iter().any(|line| line.text.contains('<')) {
        return;
    }
    let tags: Vec<Vec<Tag>> = lines
        .iter()
        .map(|line| if line.kind == LineKind::Prose { tags(line.text) } else { Vec::new() })
        .collect();
    let mut last_close: HashMap<&str, usize> = HashMap::new();
    for (index, tag) in each(&tags).filter(|(_, tag)| tag.side == Side::Close) {
        last_close.insert(&tag.name, index);
    }
    let mut open: Option<(&str, usize)> = None;
    for (line, tags) in tags.iter().enumerate() {
        let mut hidden = open.is_some();
        for tag in tags {
            open = match open {
                Some((name, depth)) if name == tag.name => match tag.side {
                    Side::Open => Some((name, depth + 1)),
                    Side::Close => (depth > 1).then(|| (name, depth - 1)),
                },
                Some(other) => Some(other),
                None => {
                    let ends = last_close.get(tag.name.as_str()).is_some_and(|&close| close >= line);
                    let opens = tag.side == Side::Open && (ends || (tag.alone && is_of_programs(&tag.name)));
                    hidden |= opens && tag.first;
                    opens.then_some((tag.name.as_str(), 1))
                }
            };
        }
        if hidden && lines[line].kind == LineKind::Prose {
            lines[line].kind = LineKind::Shown;
        }
    }
}

fn each(tags: &[Vec<Tag>]) -> impl Iterator<Item = (usize, &Tag)> {
    tags.iter().enumerate().flat_map(|(index, tags)| tags.iter().map(move |tag| (index, tag)))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Open,
    Close,
}

struct Tag {
    name: String,
    side: Side,
    /// Nothing stands before it on its line.
    first: bool,
    /// Nothing else stands on its line.
    alone: bool,
}

/// Elements that programs write around what is not the agent's own word.
fn is_of_programs(name: &str) -> bool {
    REGIONS.contains(&name) && !matches!(name, "escalate" | "pre" | "code" | "memory" | "handoff")
}

/// The tags of a line outside of inline code. Those that claim and ask are left out.
fn tags(line: &str) -> Vec<Tag> {
    let mut tags = Vec::new();
    let mut in_code = false;
    for (at, c) in line.char_indices() {
        match c {
            '`' => in_code = !in_code,
            '<' if !in_code => tags.extend(tag(line, at)),
            _ => {}
        }
    }
    tags
}

fn tag(line: &str, at: usize) -> Option<Tag> {
    let rest = &line[at + 1..];
    let (side, rest) = match rest.strip_prefix('/') {
        Some(rest) => (Side::Close, rest),
        None => (Side::Open, rest),
    };
    let length = rest.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':' | '.')));
    let (name, behind) = rest.split_at(length.unwrap_or(rest.len()));
    // A tag ends on its line, before another one begins.
    let end = behind.find(['>', '<']).filter(|&end| behind[end..].starts_with('>'))?;
    let named = name.starts_with(|c: char| c.is_ascii_alphabetic());
    let attributes = behind[..end].trim_end();
    let separate = attributes.is_empty() || attributes.starts_with(char::is_whitespace);
    let name = name.to_ascii_lowercase();
    if !named || !separate || attributes.ends_with('/') || matches!(name.as_str(), "promise" | "escalate") {
        return None;
    }
    let first = line[..at].trim().is_empty();
    Some(Tag { name, side, first, alone: first && behind[end + 1..].trim().is_empty() })
}
