//! Reads the questions an agent asks of a person in `<escalate>` blocks.
//!
//! Lenient about form: parts may be missing or come in any order, the closing tag may be lost, text
//! may be escaped or in CDATA, options may be numbered, bulleted or elements. Strict about meaning:
//! a block in code, in a quote or copied from the prompt's own example asks nothing.

use std::collections::HashSet;

use super::lines::{Line, LineKind, classify, strip_bullet};
use crate::event::{Question, QuestionKind};
use crate::text::{clip, fold_whitespace, strip_ansi};

/// Bounds of what one message can put into the inbox.
pub const MAX_SUMMARY: usize = 500;
pub const MAX_CONTEXT: usize = 8 * 1024;
pub const MAX_OPTIONS: usize = 9;
const MAX_OPTION: usize = 500;
const MAX_QUESTION: usize = 2 * 1024;
const MAX_BLOCKS: usize = 9;
/// How many tags are looked at: far more than anybody means, few enough to be cheap.
const MAX_CANDIDATES: usize = 200;

/// The questions asked in an agent's final message, in order.
pub fn read_escalations(message: &str, prompt: &str) -> Vec<Question> {
    let message = strip_ansi(message);
    let message = message.as_ref();
    let mut blocks = find_blocks(message).peekable();
    if blocks.peek().is_none() {
        return Vec::new();
    }
    let lines = classify(message);
    let examples = Examples::of(prompt);
    let mut questions: Vec<Question> = Vec::new();
    for block in blocks {
        if questions.len() == MAX_BLOCKS {
            break;
        }
        let Some(question) = parse(&block) else { continue };
        if is_said(&block, message, &lines) && !examples.contain(&question) && !questions.contains(&question)
        {
            questions.push(question);
        }
    }
    questions
}

/// One `<escalate …>` with what belongs to it.
struct Block<'a> {
    /// Where its tag begins.
    start: usize,
    /// Where the block ends, closing tag included.
    end: usize,
    attributes: &'a str,
    body: &'a str,
    closed: bool,
}

/// Every opening tag with the text up to its closing tag, the next opening tag, or the end. Each
/// stretch of text belongs to one block at most, so this is linear.
fn find_blocks(text: &str) -> impl Iterator<Item = Block<'_>> {
    let lower = text.to_ascii_lowercase();
    let starts: Vec<usize> = lower
        .match_indices(OPEN)
        .map(|(at, _)| at)
        .filter(|at| is_tag(&lower[at + OPEN.len()..]))
        .take(MAX_CANDIDATES)
        .collect();
    let ends: Vec<usize> = starts.iter().skip(1).copied().chain([text.len()]).collect();
    starts.into_iter().zip(ends).filter_map(move |(start, limit)| {
        let inside = start + OPEN.len();
        let tag_end = inside + lower[inside..limit].find('>')?;
        let body_start = tag_end + 1;
        let close = lower[body_start..limit].find("</escalate");
        let body_end = close.map_or(limit, |close| body_start + close);
        let end = match close {
            Some(_) => body_end + lower[body_end..limit].find('>').map_or(limit - body_end, |at| at + 1),
            None => limit,
        };
        Some(Block {
            start,
            end,
            attributes: &text[inside..tag_end],
            body: &text[body_start..body_end],
            closed: close.is_some(),
        })
    })
}

const OPEN: &str = "<escalate";

fn is_tag(after_name: &str) -> bool {
    after_name.starts_with(|c: char| c.is_whitespace() || c == '>')
}

fn is_said(block: &Block<'_>, message: &str, lines: &[Line<'_>]) -> bool {
    let index = lines.partition_point(|line| line.start <= block.start) - 1;
    let line = &lines[index];
    let before = &message[line.start..block.start];
    match line.kind {
        LineKind::Prose | LineKind::Escalation => {
            let alone = before.chars().all(|c| c.is_whitespace() || matches!(c, '*' | '_' | '#' | '-'));
            let quoted = before.matches(['`', '"']).count() % 2 == 1;
            !quoted && (has_parts(block) || (alone && is_block(block)))
        }
        LineKind::Code(_) => fills_fence(block, message, lines, index),
        LineKind::Blank | LineKind::FenceOpen(_) | LineKind::FenceClose(_) | LineKind::Shown => false,
    }
}

/// Without parts or an end, a tag that says its type or stands alone on its line still opens a block.
fn is_block(block: &Block<'_>) -> bool {
    block.attributes.to_ascii_lowercase().contains("type") || block.body.starts_with(['\n', '\r'])
}

/// A mention in the middle of a sentence has neither parts nor an end.
fn has_parts(block: &Block<'_>) -> bool {
    let lower = block.body.to_ascii_lowercase();
    PARTS.iter().any(|part| element(block.body, &lower, part).is_some())
        || (block.closed && !block.body.trim().is_empty())
}

/// Agents wrap the block they mean in a fence; then nothing else is in that fence.
fn fills_fence(block: &Block<'_>, message: &str, lines: &[Line<'_>], index: usize) -> bool {
    let opened = index > 0 && matches!(lines[index - 1].kind, LineKind::FenceOpen(_));
    let starts = message[lines[index].start..block.start].trim().is_empty();
    let after = message[block.end..].trim_start();
    opened
        && starts
        && block.closed
        && (after.is_empty() || after.starts_with("```") || after.starts_with("~~~"))
}

const PARTS: [&str; 4] = ["summary", "context", "options", "question"];

fn parse(block: &Block<'_>) -> Option<Question> {
    let kind = kind(block.attributes)?;
    let lower = block.body.to_ascii_lowercase();
    let part = |name: &str| element(block.body, &lower, name).map(plain).unwrap_or_default();
    let loose = loose_text(block.body, &lower);
    let question = clip(&part("question"), MAX_QUESTION).into_owned();
    let mut context = part("context");
    let options = element(block.body, &lower, "options").map(options).unwrap_or_default();
    let mut summary = fold_whitespace(&part("summary"));
    if context.is_empty() {
        context.clone_from(&loose);
    }
    if summary.is_empty() {
        let first = [question.as_str(), context.as_str()]
            .into_iter()
            .find_map(|text| text.lines().next().filter(|line| !line.trim().is_empty()));
        summary = fold_whitespace(first?);
        if context.trim() == summary {
            context.clear();
        }
    }
    Some(Question {
        kind,
        summary: clip(&summary, MAX_SUMMARY).into_owned(),
        context: clip(&context, MAX_CONTEXT).into_owned(),
        options,
        question,
    })
}

/// The kind of question; `stuck|deviation` is a template, not a choice.
fn kind(attributes: &str) -> Option<QuestionKind> {
    let lower = attributes.to_ascii_lowercase();
    let value = lower
        .split_once("type")
        .and_then(|(_, rest)| rest.trim_start().strip_prefix('='))
        .unwrap_or_default()
        .trim_start();
    let value = match value.chars().next() {
        Some(quote @ ('"' | '\'')) => value[1..].split(quote).next().unwrap_or_default(),
        _ => value.split_whitespace().next().unwrap_or_default(),
    };
    match value.trim() {
        template if template.contains('|') => None,
        "deviation" => Some(QuestionKind::Deviation),
        _ => Some(QuestionKind::Stuck),
    }
}

/// The raw content of the first element of this name: up to its closing tag, or to the next part.
fn element<'a>(body: &'a str, lower: &str, name: &str) -> Option<&'a str> {
    let (_, start, end, _) = element_bounds(lower, name)?;
    Some(&body[start..end])
}

/// Begin of the tag, begin and end of the content, end of the element.
fn element_bounds(lower: &str, name: &str) -> Option<(usize, usize, usize, usize)> {
    let open = format!("<{name}");
    let (at, _) = lower.match_indices(&open).find(|(at, _)| is_tag(&lower[at + open.len()..]))?;
    let start = at + lower[at..].find('>')? + 1;
    let inside = &lower[start..];
    // Inside CDATA a closing tag is text.
    let skip = match inside.trim_start().strip_prefix(CDATA) {
        Some(data) => inside.len() - data.len() + data.find("]]>").unwrap_or(0),
        None => 0,
    };
    let close = format!("</{name}");
    if let Some(found) = inside[skip..].find(&close) {
        let end = start + skip + found;
        let after = lower[end..].find('>').map_or(lower.len(), |at| end + at + 1);
        return Some((at, start, end, after));
    }
    let next = PARTS.iter().filter_map(|part| inside[skip..].find(&format!("<{part}"))).min();
    let end = next.map_or(lower.len(), |next| start + skip + next);
    Some((at, start, end, end))
}

const CDATA: &str = "<![cdata[";

/// What stands in the block outside its parts.
fn loose_text(body: &str, lower: &str) -> String {
    let mut bounds: Vec<(usize, usize)> = PARTS
        .iter()
        .filter_map(|part| element_bounds(lower, part))
        .map(|(at, _, _, after)| (at, after))
        .collect();
    bounds.sort_unstable();
    let mut loose = String::new();
    let mut from = 0;
    for (at, after) in bounds {
        if at > from {
            loose.push_str(&body[from..at]);
        }
        from = from.max(after);
    }
    loose.push_str(&body[from.min(body.len())..]);
    // What follows a lost closing tag may be anything; a fence's end is surely not ours.
    plain(loose.trim().trim_end_matches('`'))
}

/// The text an element holds: CDATA unwrapped, entities decoded, common indentation gone.
fn plain(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = rest.find("<![") {
        let (before, cdata) = rest.split_at(at);
        decode_entities(before, &mut out);
        let is_cdata = cdata.get(..CDATA.len()).is_some_and(|start| start.eq_ignore_ascii_case(CDATA));
        if !is_cdata {
            out.push_str("<![");
            rest = &cdata[3..];
            continue;
        }
        let data = &cdata[CDATA.len()..];
        let end = data.find("]]>").unwrap_or(data.len());
        out.push_str(&data[..end]);
        rest = data.get(end + 3..).unwrap_or_default();
    }
    decode_entities(rest, &mut out);
    dedent(&out)
}

fn decode_entities(text: &str, out: &mut String) {
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        // The longest entity we know is `&#x10FFFF;`.
        let end = rest.bytes().take(10).position(|b| b == b';');
        match end.and_then(|end| entity(&rest[1..end]).map(|c| (c, end))) {
            Some((c, end)) => {
                out.push(c);
                rest = &rest[end + 1..];
            }
            None => {
                out.push('&');
                rest = &rest[1..];
            }
        }
    }
    out.push_str(rest);
}

fn entity(name: &str) -> Option<char> {
    match name {
        "lt" => Some('<'),
        "gt" => Some('>'),
        "amp" => Some('&'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        "nbsp" => Some(' '),
        _ => {
            let number = name.strip_prefix('#')?;
            let code = match number.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16).ok()?,
                None => number.parse().ok()?,
            };
            char::from_u32(code).filter(|c| !c.is_control())
        }
    }
}

fn dedent(text: &str) -> String {
    let text = text.trim_matches(['\n', '\r']);
    let indent = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| line.len() - line.trim_start_matches(' ').len())
        .min();
    let indent = indent.unwrap_or(0);
    let lines: Vec<&str> =
        text.lines().map(|line| line.get(indent..).unwrap_or_default().trim_end()).collect();
    lines.join("\n").trim().to_owned()
}

fn options(raw: &str) -> Vec<String> {
    let lower = raw.to_ascii_lowercase();
    let found =
        if lower.contains("<option") { option_elements(raw, &lower) } else { option_lines(&plain(raw)) };
    found
        .into_iter()
        .map(|option| clip(&fold_whitespace(&option), MAX_OPTION).into_owned())
        .filter(|option| !option.is_empty())
        .take(MAX_OPTIONS)
        .collect()
}

fn option_elements(raw: &str, lower: &str) -> Vec<String> {
    let starts: Vec<usize> = lower
        .match_indices("<option")
        .map(|(at, _)| at)
        .filter(|at| is_tag(&lower[at + "<option".len()..]))
        .take(MAX_OPTIONS)
        .collect();
    let limits = starts.iter().skip(1).copied().chain([raw.len()]);
    starts
        .iter()
        .zip(limits)
        .filter_map(|(&at, limit)| {
            let start = at + lower[at..limit].find('>')? + 1;
            let end = lower[start..limit].find("</option").map_or(limit, |close| start + close);
            let text = plain(&raw[start..end]);
            Some(strip_number(&text).unwrap_or(&text).to_owned())
        })
        .collect()
}

/// Numbered or bulleted items, each with the lines that continue it; without marks, one line each.
fn option_lines(text: &str) -> Vec<String> {
    let split = split_inline(text);
    let lines: Vec<&str> =
        split.iter().map(|line| line.trim_end()).filter(|line| !line.trim().is_empty()).collect();
    let outermost =
        lines.iter().filter(|line| strip_number(line.trim()).is_some()).map(|line| indent(line)).min();
    let Some(outermost) = outermost else { return lines.iter().map(|line| (*line).to_owned()).collect() };
    let mut options: Vec<String> = Vec::new();
    for line in lines {
        match strip_number(line.trim()).filter(|_| indent(line) <= outermost) {
            Some(item) => options.push(item.to_owned()),
            // What comes before the first item introduces the list.
            None => {
                if let Some(option) = options.last_mut() {
                    option.push(' ');
                    option.push_str(line.trim());
                }
            }
        }
    }
    options
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// "1. this 2. that" on one line is two lines.
fn split_inline(text: &str) -> Vec<String> {
    let single = text.trim();
    if single.contains('\n') || !single.starts_with("1") {
        return text.lines().map(str::to_owned).collect();
    }
    let mark = single.as_bytes().get(1).copied().filter(|b| matches!(b, b'.' | b')')).map(char::from);
    let Some(mark) = mark else { return vec![single.to_owned()] };
    let mut lines = Vec::new();
    let mut rest = single;
    for number in 2..=MAX_OPTIONS {
        let Some(at) = rest.find(&format!(" {number}{mark} ")) else { break };
        lines.push(rest[..at].to_owned());
        rest = &rest[at + 1..];
    }
    lines.push(rest.to_owned());
    lines
}

/// An item without its number, bullet, letter or "Option 2:".
fn strip_number(text: &str) -> Option<&str> {
    let text = text.trim_start_matches("**");
    if let Some(item) = strip_bullet(text) {
        // "- Option A: …" has two marks; more are the text's own.
        return Some(strip_label(item).unwrap_or(item));
    }
    strip_label(text)
}

fn strip_label(text: &str) -> Option<&str> {
    if let Some(rest) = text
        .get(.."option ".len())
        .filter(|start| start.eq_ignore_ascii_case("option "))
        .map(|start| &text[start.len()..])
    {
        let after = rest.trim_start_matches(|c: char| c.is_ascii_alphanumeric());
        let number = rest.len() - after.len();
        if (1..=2).contains(&number) {
            return after
                .strip_prefix([':', '.', ')', '-'])
                .map(|item| item.trim_start_matches("**").trim_start());
        }
    }
    let rest = text.strip_prefix(|c: char| c.is_ascii_alphanumeric())?;
    let number = text.as_bytes()[0].is_ascii_digit();
    let item = match number {
        true => rest.strip_prefix([':', '.', ')'])?,
        false => rest.strip_prefix([')', '.'])?,
    };
    item.starts_with([' ', '\t']).then(|| item.trim_start())
}

/// The examples a prompt gives of the block, to tell an echo from a question.
struct Examples {
    summaries: HashSet<String>,
    questions: Vec<Question>,
}

impl Examples {
    fn of(prompt: &str) -> Self {
        let questions: Vec<Question> = find_blocks(prompt).filter_map(|block| parse(&block)).collect();
        let templates = find_blocks(prompt).filter_map(|block| {
            let lower = block.body.to_ascii_lowercase();
            element(block.body, &lower, "summary").map(|text| fold_whitespace(&plain(text)))
        });
        let summaries = templates.filter(|summary| !summary.is_empty()).collect();
        Self { summaries, questions }
    }

    fn contain(&self, question: &Question) -> bool {
        self.summaries.contains(&question.summary)
            || self.questions.iter().any(|example| example.summary == question.summary)
    }
}
