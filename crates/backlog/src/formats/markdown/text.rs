//! What the words of a box and of the lines under it say: ids, dependencies, criteria.

use std::ops::Range;

use wiggum_core::task::Criterion;

use super::SKIPPED;
use super::command::{self, Said, code};
use crate::checks;
use crate::lookalike::is_label;

/// How a note in brackets that names dependencies begins.
pub(crate) const DEPENDS: [&str; 3] = ["depends on", "depends", "deps"];

/// The text of a box, taken apart.
pub(crate) struct Head {
    pub(crate) id: Option<String>,
    pub(crate) title: String,
    pub(crate) depends_on: Vec<String>,
    /// What the text calls itself where that does not look like an id: `**Parser**: …`, `A: …`.
    pub(crate) label: Option<Label>,
}

/// A word before the rest of a text.
pub(crate) struct Label {
    pub(crate) name: String,
    pub(crate) rest: String,
    /// It is a bold letter, or one in backticks: nobody writes that who means words.
    pub(crate) is_letter: bool,
}

/// `**A**: text`, `**A:** text`, `` `A`: text `` or `A: text`.
fn named(said: &str) -> Option<Label> {
    let quote = ["**", "__", "`"].into_iter().find(|quote| said.starts_with(quote)).unwrap_or("");
    let (name, rest) = match quote {
        "" => said.split_once(':')?,
        quote => said[quote.len()..].split_once(quote)?,
    };
    let is_closed = quote.is_empty() || name.ends_with(':') || rest.starts_with(':');
    let name = name.trim_end_matches(':').trim();
    let rest = rest.trim_start_matches(':').trim();
    let is_letter =
        !quote.is_empty() && name.len() == 1 && name.starts_with(|c: char| c.is_ascii_uppercase());
    let is_name = is_closed && !name.is_empty() && !rest.is_empty();
    is_name.then(|| Label { name: name.to_owned(), rest: rest.to_owned(), is_letter })
}

/// `None` where a box says nothing at all: there is nothing to do.
pub(crate) fn head(said: &str) -> Option<Head> {
    let mut said = without_comments(said);
    let id_note = take_note(&mut said, &["id"]);
    let depends_note = take_note(&mut said, &DEPENDS);
    let said = said.trim();
    let (id, title) = match leading_id(said) {
        Some((id, title)) if id_note.is_none() => (Some(id.to_owned()), title),
        Some(_) | None => (id_note, said.to_owned()),
    };
    let depends_on = depends_note.map(|note| ids(&note)).unwrap_or_default();
    let label = if id.is_none() { named(&title) } else { None };
    (id.is_some() || !title.is_empty()).then_some(Head { id, title, depends_on, label })
}

/// Where a box says that it is skipped, with the blank before that: behind its words, where only other notes and
/// comments may follow.
pub(crate) fn skipped_note(said: &str) -> Option<Range<usize>> {
    let lower = said.to_ascii_lowercase();
    let at = lower.rfind(SKIPPED)?;
    let mut behind = without_comments(&said[at + SKIPPED.len()..]);
    take_note(&mut behind, &["id"]);
    take_note(&mut behind, &DEPENDS);
    let before = said[..at].trim_end();
    let is_note = behind.trim().is_empty() && !before.is_empty() && before.len() < at;
    is_note.then(|| before.len()..at + SKIPPED.len())
}

/// What a line under a box is about.
pub(crate) enum Detail<'t> {
    Criteria(&'t str),
    Checks(Vec<Criterion>),
    DependsOn(&'t str),
    /// It depends on these where they are tasks; elsewhere they are words.
    Waits(&'t str),
    /// It may be a check, or words.
    Unclear,
    Other,
}

impl Detail<'_> {
    fn of(said: Said) -> Self {
        match said {
            Said::Commands(commands) => Self::Checks(commands.into_iter().map(checks::succeeds).collect()),
            Said::Words => Self::Other,
            Said::Unclear => Self::Unclear,
        }
    }
}

pub(crate) fn detail(content: &str) -> Detail<'_> {
    let waits = || waits(content).map_or(Detail::Other, Detail::Waits);
    let Some((label, said)) = label(content) else { return waits() };
    match label.as_str() {
        "criteria"
        | "criterion"
        | "acceptance"
        | "acceptance criteria"
        | "acceptance criterion"
        | "ac"
        | "done when" => Detail::Criteria(said),
        "depends on" | "depends_on" | "depends-on" | "dependson" | "depends" | "dependencies" | "deps" => {
            Detail::DependsOn(said)
        }
        "check" | "checks" => Detail::of(command::behind_check(said)),
        "verify" | "verification" => Detail::of(command::behind_verify(said)),
        _ => waits(),
    }
}

/// What a text names that begins with one of the words for a dependency: `Needs: T1`, `blocked by T1`.
fn waits(content: &str) -> Option<&str> {
    if let Some((_, said)) = label(content).filter(|(label, _)| is_label(label)) {
        return Some(said).filter(|said| !said.is_empty());
    }
    let behind = |words: &&str| {
        let begins = content.get(..words.len()).is_some_and(|start| start.eq_ignore_ascii_case(words));
        let said =
            content.get(words.len()..).filter(|said| begins && said.starts_with(char::is_whitespace))?;
        Some(said.trim()).filter(|said| !said.is_empty())
    };
    WAITS.iter().find_map(behind)
}

/// Words for a dependency that people write without a colon too.
const WAITS: [&str; 8] =
    ["depends on", "blocked by", "requires", "needs", "after", "waits for", "waits on", "prerequisite"];

/// What the notes in brackets of a text name in such words: `Publish (depends on T1)`.
/// Each note comes with those names.
pub(crate) fn waiting_notes(said: &str) -> impl Iterator<Item = (&str, &str)> {
    let notes = said.split('(').skip(1).filter_map(|rest| rest.split_once(')'));
    notes.filter_map(|(note, _)| Some((note.trim(), waits(note.trim())?)))
}

/// The words of a text that look like ids.
pub(crate) fn id_words(said: &str) -> impl Iterator<Item = &str> {
    let words = said.split(|c: char| !c.is_alphanumeric() && !matches!(c, '-' | '_' | '.'));
    words.map(|word| word.trim_end_matches('.')).filter(|word| is_id(word))
}

/// A criterion with its command where it says ``check: `cmd` ``, and whether it may have one that cannot be told
/// from words.
pub(crate) fn criterion(said: &str) -> (Criterion, bool) {
    let lower = said.to_ascii_lowercase();
    let mut unclear = false;
    for label in ["check:", "verify:"] {
        // Without backticks only the first counts: a line may be nothing but labels.
        let mut looked = false;
        for (at, _) in lower.match_indices(label) {
            let (before, after) = (&said[..at], &said[at + label.len()..]);
            let before = before.trim_end();
            let stripped = before.trim_end_matches(['(', '[', ';', ',', '-', '–', '—']).trim_end();
            let is_note = stripped.len() < before.len() || before.is_empty();
            let (command, rest) = match code(after) {
                Some((command, rest)) if is_note || label == "check:" => (command.to_owned(), rest),
                Some(_) => continue,
                None if !is_note || looked => continue,
                None => {
                    looked = true;
                    let end = after.rfind([')', ']']).filter(|_| before.ends_with(['(', '[']));
                    let (inside, rest) = after.split_at(end.unwrap_or(after.len()));
                    match command::behind_verify(inside) {
                        Said::Commands(commands) => (commands.join(" && "), rest),
                        Said::Words => continue,
                        Said::Unclear => {
                            unclear = true;
                            continue;
                        }
                    }
                }
            };
            let rest = rest.trim_start_matches([')', ']']).trim();
            let text = format!("{stripped} {rest}").trim().to_owned();
            let text = if text.is_empty() { format!("`{command}` succeeds") } else { text };
            return (Criterion { text, check: Some(command) }, false);
        }
    }
    (Criterion { text: said.to_owned(), check: None }, unclear)
}

/// Ids in a list such as ``A, `B` and C``; `none` names nothing.
pub(crate) fn ids(said: &str) -> Vec<String> {
    said.replace(" and ", ",")
        .split([',', ';'])
        .map(|id| id.trim().trim_matches(['`', '*', '[', ']', '"']).trim_end_matches('.').trim().to_owned())
        .filter(|id| {
            !id.is_empty() && !["none", "nothing", "-", "—", "n/a"].contains(&id.to_lowercase().as_str())
        })
        .collect()
}

/// Is this heading the name of a section that does not count?
pub(crate) fn is_set_aside(heading: &str) -> bool {
    let before_note = heading.split('(').next().unwrap_or_default().replace(['-', '_'], " ");
    let is_word = |word: &&str| word.chars().any(char::is_alphabetic);
    let words: Vec<String> = before_note
        .split_whitespace()
        .filter(is_word)
        .map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase())
        .collect();
    ["optional", "future", "future enhancements", "nice to have"].contains(&words.join(" ").as_str())
}

/// Does a list item say of itself that it need not be done? `[ ]* text` is how Kiro writes it.
pub(crate) fn is_optional(content: &str) -> bool {
    let starred = content.strip_prefix('[').and_then(|inside| inside.split_once(']'));
    if starred.is_some_and(|(mark, rest)| mark.chars().count() <= 1 && rest.starts_with('*')) {
        return true;
    }
    let lower = without_comments(content).to_lowercase();
    let said = lower.split_once(']').map_or(lower.as_str(), |(_, said)| said);
    let noted = |open: char| {
        said.split(open).skip(1).any(|note| {
            let rest = note.trim_start().strip_prefix("optional");
            rest.is_some_and(|rest| rest.starts_with([')', ']', ',', ':', ';', ' ']))
        })
    };
    let begins = said.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, '*' | '_'));
    begins.starts_with("optional:") || noted('(') || noted('[')
}

/// Is this a task id that stands out from words: `US-001`, `T1`, `auth-api-01`, `T1.2`?
pub(crate) fn is_id(text: &str) -> bool {
    let is_number = |part: &str| {
        part.split('.').all(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
    };
    match text.rsplit_once(['-', '_']) {
        Some((words, number)) => {
            let starts_well = words.starts_with(|c: char| c.is_ascii_alphabetic());
            let is_plain = words.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
            starts_well && is_plain && is_number(number)
        }
        None => {
            let letters = text.bytes().take_while(u8::is_ascii_uppercase).count();
            letters > 0 && is_number(&text[letters..])
        }
    }
}

/// The id a text starts with, in any of the usual forms, and what is left of the text.
pub(crate) fn leading_id(said: &str) -> Option<(&str, String)> {
    let after_id = |rest: &str| rest.trim_start_matches([':', '-', '–', '—', '.', ' ', '\t']).to_owned();
    for quote in ["**", "__", "`"] {
        let Some(inside) = said.strip_prefix(quote) else { continue };
        let (inside, rest) = inside.split_once(quote)?;
        if is_id(inside.trim_end_matches(':').trim()) {
            return Some((inside.trim_end_matches(':').trim(), after_id(rest)));
        }
        let (id, title) = bare_id(inside)?;
        return Some((id, format!("{}{rest}", after_id(title))));
    }
    if let Some(inside) = said.strip_prefix('[') {
        let (id, rest) = inside.split_once(']')?;
        return (is_id(id) && !rest.starts_with('(')).then(|| (id, after_id(rest)));
    }
    bare_id(said).map(|(id, rest)| (id, after_id(rest)))
}

/// `US-001: …`, `T1. …`, `US-001 - …`, spec-kit's `T001 …`, or an id and nothing else.
fn bare_id(said: &str) -> Option<(&str, &str)> {
    let end = said.find([':', ' ', '\t']).unwrap_or(said.len());
    let (word, rest) = said.split_at(end);
    let id = word.strip_suffix('.').unwrap_or(word);
    let is_closed = word.len() > id.len() || rest.starts_with(':') || rest.is_empty();
    let has_dash = ["- ", "– ", "— "].iter().any(|dash| rest.trim_start().starts_with(dash));
    let is_numbered = id.len() >= 4 && id.starts_with('T');
    (is_id(id) && (is_closed || has_dash || is_numbered)).then_some((id, rest))
}

/// Takes `(name: …)` out of a text and returns what stood behind the colon.
pub(crate) fn take_note(said: &mut String, names: &[&str]) -> Option<String> {
    let Note { whole, value } = note(said, names)?;
    let value = said[value].trim().to_owned();
    let joined = format!("{} {}", said[..whole.start].trim_end(), said[whole.end..].trim_start());
    *said = joined.trim().to_owned();
    Some(value).filter(|value| !value.is_empty())
}

/// Where `(name: …)` stands in a text, and what it says.
pub(crate) struct Note {
    pub(crate) whole: Range<usize>,
    pub(crate) value: Range<usize>,
}

pub(crate) fn note(said: &str, names: &[&str]) -> Option<Note> {
    let lower = said.to_ascii_lowercase();
    for (open, _) in lower.match_indices('(') {
        for name in names {
            let Some(rest) = lower[open + 1..].trim_start().strip_prefix(name) else { continue };
            let Some(rest) = rest.trim_start().strip_prefix(':') else { continue };
            let value_at = lower.len() - rest.len();
            let end = value_at + rest.find(')')?;
            return Some(Note { whole: open..end + 1, value: value_at..end });
        }
    }
    None
}

/// A comment that ends on its own line is not part of the text, unless it stands in code.
pub(crate) fn without_comments(said: &str) -> String {
    let mut out = String::with_capacity(said.len());
    let mut rest = said;
    let mut in_code = false;
    // Looked for once, so that a line of nothing but openings stays cheap.
    let last_end = said.rfind("-->").map_or(0, |at| said.len() - at);
    while let Some(at) = rest.find(['`', '<']) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let may_be_comment = !in_code && rest.len() > last_end && last_end > 0;
        let inside = rest.strip_prefix("<!--").filter(|_| may_be_comment);
        let comment = inside.and_then(|inside| inside.split_once("-->"));
        if let Some((_, after)) = comment {
            rest = after;
            continue;
        }
        in_code ^= rest.starts_with('`');
        out.push_str(&rest[..1]);
        rest = &rest[1..];
    }
    out.push_str(rest);
    out
}

/// `Label: said` at the start of a line, emphasis on the label ignored; the label in lower case.
pub(crate) fn label(content: &str) -> Option<(String, &str)> {
    let (label, said) = content.split_once(':')?;
    let name = label.trim().trim_matches(['*', '_']);
    let is_emphasised = name.len() < label.trim().len();
    let said = if is_emphasised { said.trim_start_matches(['*', '_']) } else { said };
    Some((name.trim().to_lowercase(), said.trim()))
}
