//! Where a claim can be meant: among the closing lines of a message, not led in as a mention, and not
//! taken back by what follows it.

use super::claim::{is_introduction, split_sentences};
use super::lines::{Line, LineKind, is_list_item};
use super::{sentence, tongues};

/// How many lines with words may follow a claim: room for a short summary, not for a report or a log in
/// which the claim is only one line of many.
const CLOSING: usize = 6;

/// The first of the closing lines.
pub(super) fn closing_start(lines: &[Line<'_>]) -> usize {
    // What others wrote is passed over: an agent may leave notes for other tasks behind its claim.
    let with_words = |index: &usize| {
        let line = &lines[*index];
        line.kind != LineKind::Shown && line.text.chars().any(char::is_alphanumeric)
    };
    // A promise or a block of several lines begins before the line it ends on.
    (0..lines.len()).rev().filter(with_words).nth(CLOSING).unwrap_or(0)
}

/// What lies between a line and the one with words before it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Between {
    Nothing,
    Gap,
    /// Code, quotes, elements: what a colon before them leads to.
    Shown,
}

/// Do the words that lead to this line make it a mention ("The promise is:", "Once it works I will print:")?
pub(super) fn lead_in_spoils(lines: &[Line<'_>], index: usize) -> bool {
    let Some((before, between)) = said_before(lines, index) else { return false };
    let list_item = is_list_item(lines[index].text.trim());
    let before = if list_item { introduction_of_list(lines, index).unwrap_or(before) } else { before };
    let text = lines[before].text.trim().trim_end_matches(['*', '_']);
    let last_sentence = split_sentences(text).last().unwrap_or(text);
    if sentence::says_not_done_of_task(last_sentence) || tongues::says_not_done(last_sentence) {
        return true;
    }
    if text.starts_with("$ ") && between == Between::Nothing {
        // What a command printed.
        return true;
    }
    if text.ends_with('=') {
        // Code or a line of figures, unless it speaks: "I will print =".
        return sentence::is_mention(last_sentence);
    }
    let leads = text.ends_with([':', '：', '—', '–']) || text.ends_with(" -");
    if list_item && !is_list_item(text) {
        return sentence::is_mention(last_sentence) || tongues::puts_off(last_sentence);
    }
    if text.starts_with('#') || (leads && between == Between::Shown) {
        return sentence::is_guarded(last_sentence) || sentence::is_plan(last_sentence);
    }
    if leads {
        return !is_introduction(last_sentence) && !presents(last_sentence);
    }
    if between != Between::Nothing || is_list_item(text) || text.ends_with(['.', '!', '?', '。', '！']) {
        return false;
    }
    // The sentence simply runs on into this line.
    let wants_more = sentence::is_guarded(last_sentence) && sentence::speaks(last_sentence);
    wants_more || sentence::is_open_ended(last_sentence) || tongues::puts_off(last_sentence)
}

/// "So here it is:", "Here is my promise:"
fn presents(sentence: &str) -> bool {
    let lower = sentence.to_lowercase();
    let words: Vec<&str> =
        lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let own = ["is", "it", "my", "the", "completion", "final", "promise", "signal", "claim", "mark"];
    let after = words.iter().rposition(|word| *word == "here").map(|at| &words[at + 1..]);
    after.is_some_and(|after| !after.is_empty() && after.iter().all(|word| own.contains(word)))
        && !sentence::is_guarded(sentence)
}

/// The nearest line before that has words, and what lies between.
fn said_before(lines: &[Line<'_>], index: usize) -> Option<(usize, Between)> {
    // Code, quotes and blank lines are few in a row; a bound keeps hostile input linear.
    let mut between = Between::Nothing;
    for before in (index.saturating_sub(LOOK_BACK)..index).rev() {
        match lines[before].kind {
            LineKind::Prose if lines[before].text.chars().any(char::is_alphanumeric) => {
                return Some((before, between));
            }
            LineKind::Prose => {}
            LineKind::Blank if between == Between::Nothing => between = Between::Gap,
            LineKind::Blank => {}
            LineKind::FenceOpen(_)
            | LineKind::Code(_)
            | LineKind::FenceClose(_)
            | LineKind::Shown
            | LineKind::Escalation => between = Between::Shown,
        }
    }
    None
}

/// How many lines before a claim are looked at for what leads to it.
const LOOK_BACK: usize = 40;

/// The line before the list that this item belongs to.
fn introduction_of_list(lines: &[Line<'_>], index: usize) -> Option<usize> {
    (index.saturating_sub(LOOK_BACK)..index).rev().find(|&before| {
        let line = &lines[before];
        line.kind == LineKind::Prose && !line.text.starts_with([' ', '\t']) && !is_list_item(line.text.trim())
    })
}

/// Does what follows go on with the sentence ("… is what I will print") or leave something out ("Except …")?
/// `end`: the last line of the claim.
pub(super) fn continuation_spoils(line: &str, lines: &[Line<'_>], end: usize) -> bool {
    if next_line(lines, end).is_some_and(|next| begins_exception(next.text)) {
        return true;
    }
    if line.trim_end().ends_with(['.', '!', '。', '！']) {
        return false;
    }
    let Some(next) = lines.get(end + 1).filter(|next| next.kind == LineKind::Prose) else { return false };
    CONTINUATIONS.contains(&first_word(next.text))
        || (tongues::begins_small(next.text) && tongues::puts_off(next.text))
}

/// The next line that says something.
fn next_line<'l, 'a>(lines: &'l [Line<'a>], index: usize) -> Option<&'l Line<'a>> {
    let says =
        |line: &&Line<'_>| line.kind != LineKind::Blank && line.text.chars().any(char::is_alphanumeric);
    lines.iter().skip(index + 1).take(LOOK_BACK).find(says).filter(|line| line.kind == LineKind::Prose)
}

fn begins_exception(line: &str) -> bool {
    let text = line.trim().trim_start_matches(['(', '[', '-', '*', '_', ' ']);
    EXCEPTIONS.contains(&first_word(text).to_lowercase().as_str())
        || text.to_lowercase().starts_with("other than")
        || tongues::begins_exception(text)
}

fn first_word(text: &str) -> &str {
    let first = text.split_whitespace().next().unwrap_or_default();
    first.trim_end_matches(|c: char| !c.is_alphanumeric())
}

const EXCEPTIONS: [&str; 18] = [
    "except",
    "excepting",
    "excluding",
    "apart",
    "aside",
    "but",
    "however",
    "although",
    "though",
    "minus",
    "unless",
    "without",
    "only",
    "save",
    "still",
    "missing",
    "pending",
    "todo",
];

const CONTINUATIONS: [&str; 26] = [
    "after", "as", "at", "because", "before", "but", "cannot", "comes", "except", "follows", "if", "in",
    "is", "means", "once", "only", "or", "should", "to", "unless", "until", "was", "when", "will", "without",
    "would",
];
