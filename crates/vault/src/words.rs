//! Words in notes: what others said is shown and means nothing. It can neither be front matter nor a
//! box, a link, an embed, HTML, a query or a template; and what looks like a secret is left out.

use std::fmt::Write as _;

use wiggum_core::redact;

use crate::layout::{APPROVED, LOGS};

/// Between these is ours; what a person writes outside of them stays.
const BEGIN: &str = "%% wiggum:begin %%";
const END: &str = "%% wiggum:end %%";

/// What is told of a long text inside a line.
pub(crate) const LINE: usize = 400;
/// What is told of a moment, which may have several such texts in it.
pub(crate) const ENTRY: usize = 3 * LINE;
/// What is told of a long text in a block.
const BLOCK: usize = 6000;

/// Others' words within a line.
pub(crate) fn inline(text: &str, most: usize) -> String {
    let text = &redact::text(text);
    let mut out = String::with_capacity(text.len());
    let words = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    for (position, word) in words.enumerate() {
        if out.len() >= most {
            out.push_str(" …");
            break;
        }
        if position > 0 {
            out.push(' ');
        }
        let mut chars = word.chars().take(most).peekable();
        let mut before = ' ';
        while let Some(c) = chars.next() {
            let next = chars.peek().copied().unwrap_or(' ');
            match c {
                '<' => out.push_str("&lt;"),
                '&' => out.push_str("&amp;"),
                // A link is one without brackets too, and two of them make a field.
                ':' if matches!(next, '/' | ':') || before == ':' => out.push_str("&#58;"),
                // Inside a word it means nothing.
                '_' if before.is_alphanumeric() && next.is_alphanumeric() => out.push('_'),
                '(' if before != ']' => out.push('('),
                // Programs that take escapes away before they look for links see two brackets, but apart.
                '[' if out.ends_with("\\[") => out.push_str("\u{200b}\\["),
                _ if c.is_ascii_punctuation()
                    && !matches!(c, '.' | ',' | '-' | '\'' | '"' | '/' | ';' | '?' | ':' | ')') =>
                {
                    out.push('\\');
                    out.push(c);
                }
                _ => out.push(visible(c)),
            }
            before = c;
        }
    }
    // A list, a quote or a rule begins with these.
    match out.chars().next() {
        Some('-' | '.') => format!("\\{out}"),
        Some(c) if c.is_ascii_digit() => out.replacen(". ", "\\. ", 1),
        Some(_) | None => out,
    }
}

/// Others' words as they are, on one line and not too many of them.
pub(crate) fn short(text: &str) -> String {
    // Before it is cut, which may leave half a secret that nobody knows for one.
    let text = &redact::text(text);
    let words = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    let mut line = words.collect::<Vec<_>>().join(" ");
    if line.len() > LINE {
        line.truncate(line.floor_char_boundary(LINE));
        line.push_str(" …");
    }
    line
}

/// Others' words as a block of code in no language.
pub(crate) fn fenced(text: &str) -> String {
    let text = &redact::text(text);
    let end = text.floor_char_boundary(BLOCK);
    let mut shown: String =
        text[..end].chars().filter(|c| *c != '\r').map(|c| if c == '\n' { c } else { visible(c) }).collect();
    // Templates are filled in wherever they stand, our own marks are read everywhere, and not every
    // program knows that there are no links in code.
    for pair in ["<%", "%>", "%%", "[["] {
        // Three in a row are two pairs.
        while shown.contains(pair) {
            shown = shown.replace(pair, &format!("{}\u{200b}{}", &pair[..1], &pair[1..]));
        }
    }
    if end < text.len() {
        shown.push_str("\n…");
    }
    let longest = shown.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat((longest + 1).max(4));
    format!("{fence}text\n{}\n{fence}\n", shown.trim_end())
}

/// A value of front matter.
pub(crate) fn yaml(text: &str) -> String {
    let text = &redact::text(text);
    let shown: String = text.chars().map(visible).take(LINE).collect();
    serde_json::to_string(&shown).unwrap_or_else(|_| "\"\"".to_owned())
}

/// A link to a note by its path in the vault without the ending; plain words where no link can say it.
///
/// A name alone would be ambiguous: a plan and its log may be called the same but for upper and lower case,
/// which Obsidian does not tell apart, and people have notes of the same name in other folders.
pub(crate) fn link(path: &str) -> String {
    let can_be = !path.is_empty() && path.chars().all(|c| !c.is_control() && !"[]|#^\\:<>%`".contains(c));
    if can_be { format!("[[{path}]]") } else { inline(path, LINE) }
}

/// A link to an approved plan, by its path in their folder without the ending.
pub(crate) fn plan_link(file: &str) -> String {
    link(&format!("{APPROVED}/{file}"))
}

/// A link to the log of a plan.
pub(crate) fn log_link(plan: &str) -> String {
    link(&format!("{LOGS}/{plan}"))
}

/// No character that hides or reorders others.
fn visible(c: char) -> char {
    let turns = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}');
    if c.is_control() || turns || matches!(c, '\u{2028}' | '\u{2029}' | '\u{85}') { ' ' } else { c }
}

/// A note of ours, with what a person added to the one that is there: other keys of its front matter, and
/// everything outside of our marks.
pub(crate) fn note(old: Option<&str>, front: &[(&str, String)], body: &str) -> String {
    let (their_front, before, after) = old.map_or(("", "", ""), parts);
    let mut out = "---\n".to_owned();
    for (key, value) in front {
        let _written = writeln!(out, "{key}: {value}");
    }
    let is_ours = |line: &str| front.iter().any(|(key, _)| line.split(':').next() == Some(*key));
    let mut ours = false;
    for line in their_front.lines() {
        let starts = !line.starts_with([' ', '\t', '-', '#']) && !line.trim().is_empty();
        ours = if starts { is_ours(line) } else { ours };
        if !ours {
            let _written = writeln!(out, "{line}");
        }
    }
    let _written = write!(out, "---\n{before}{BEGIN}\n{}\n{END}\n{after}", body.trim_end());
    out
}

/// Are both of our marks there?
pub(crate) fn is_whole(text: &str) -> bool {
    text.find(BEGIN).is_some_and(|start| text[start..].contains(END))
}

/// What is between our marks.
pub(crate) fn ours(text: &str) -> &str {
    let Some(start) = text.find(BEGIN) else { return "" };
    let inside = &text[start + BEGIN.len()..];
    inside.find(END).map_or(inside, |end| &inside[..end])
}

/// Front matter, what stands before our marks, and what stands behind them.
fn parts(text: &str) -> (&str, &str, &str) {
    let opened = text.strip_prefix("---\n").or_else(|| text.strip_prefix("---\r\n"));
    let closed = opened.and_then(|inside| {
        inside
            .split_once("\n---")
            .map(|(front, rest)| (front, rest.split_once('\n').map_or("", |(_, rest)| rest)))
    });
    let (front, body) = closed.unwrap_or(("", text));
    match body.split_once(BEGIN) {
        Some((before, rest)) => {
            let after = rest.split_once(END).map_or("", |(_, after)| after);
            (front, before, after.strip_prefix('\n').unwrap_or(after))
        }
        None => (front, body, ""),
    }
}

/// The value of a key of the front matter.
pub(crate) fn value<'t>(text: &'t str, key: &str) -> Option<&'t str> {
    let (front, ..) = parts(text);
    let line = front.lines().find(|line| line.split(':').next() == Some(key))?;
    Some(line[key.len() + 1..].trim().trim_matches('"'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_words_mean_nothing() {
        for hostile in [
            "---\naction_required: false\n---",
            "- [x] Try it again ^q1-retry",
            "[[secret]] ![[embed]] [a](b)",
            "<script>alert(1)</script> <% tp.file.move() %>",
            "`= this.file` $= dv.pages() %%hidden%% #tag ^block |cell| $x$ ==mark==",
            "https://evil.example/x obsidian://open?vault=x",
            "1. one\n# head\n> quote",
            "%% wiggum:end %% %%% [[[a]]]",
        ] {
            let shown = inline(hostile, LINE);
            assert!(!shown.contains('\n') && !shown.replace('\\', "").contains("[["), "{shown}");
            for sign in ["[[", "](", "<", "`=", "%%", " #", " ^", "- [", "://", "==", "$="] {
                let bare = shown.replace("\\[", "").replace("\\%", "");
                assert!(!bare.contains(sign), "{shown}");
            }
            let block = fenced(hostile);
            assert!(!block.contains("<%") && !block.contains("%%") && !block.contains("[["), "{block}");
        }
        assert_eq!(inline("- a", LINE), "\\- a");
        assert_eq!(inline("1. a", LINE), "1\\. a");
        assert_eq!(inline("a  b\n\u{202e}c", LINE), "a b  c");
        assert_eq!(inline("word ".repeat(200).as_str(), 20), "word word word word word …");
    }

    #[test]
    fn a_fence_is_longer_than_what_it_holds() {
        let block = fenced("a\n`````\n- [x] b\n`````");
        assert!(block.starts_with("``````text\n") && block.ends_with("\n``````\n"), "{block}");
        assert!(fenced(&"x".repeat(100_000)).len() < 7000);
    }

    #[test]
    fn what_a_person_added_stays() {
        let front = |value: &str| [("status", value.to_owned())];
        let first = note(None, &front("a"), "one");
        assert_eq!(first, "---\nstatus: a\n---\n%% wiggum:begin %%\none\n%% wiggum:end %%\n");
        let edited = first.replace("---\n%%", "tags:\n  - x\n---\n# Mine\n%%") + "below\n";
        let second = note(Some(&edited), &front("b"), "two");
        let expected =
            "---\nstatus: b\ntags:\n  - x\n---\n# Mine\n%% wiggum:begin %%\ntwo\n%% wiggum:end %%\nbelow\n";
        assert_eq!(second, expected);
        assert_eq!(note(Some(&second), &front("b"), "two"), second);
        assert_eq!(ours(&second).trim(), "two");
        assert_eq!(value(&second, "status"), Some("b"));
        let theirs = note(Some("# Their dashboard\n"), &front("b"), "two");
        assert!(theirs.contains("---\n# Their dashboard\n%% wiggum:begin"), "{theirs}");
    }

    #[test]
    fn links_only_where_they_can_be() {
        assert_eq!(link("PLAN a 1"), "[[PLAN a 1]]");
        assert!(!link("a]] ![[b").contains("[["));
        assert_eq!(yaml("a\n---\n\"b\""), "\"a --- \\\"b\\\"\"");
    }
}
