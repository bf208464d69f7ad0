//! Text of others, fit for cells of the screen: harmless, of a known width, cut and wrapped by it.

use unicode_width::UnicodeWidthChar;
use wiggum_engine::words::harmless;

/// Marks that may be put on one character; more are only there to spill over the neighbours.
const MARKS: usize = 2;
/// Columns to the next stop of a tab.
const TAB: usize = 4;

/// Text as it may be shown: nothing in it drives a terminal, reorders, hides or piles up. Line ends stay.
pub(crate) fn plain(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let (mut column, mut marks) = (0, MARKS);
    for c in harmless(text).chars() {
        match c {
            '\n' | '\u{2028}' | '\u{2029}' => {
                clean.push('\n');
                (column, marks) = (0, MARKS);
            }
            '\t' => {
                let gap = TAB - column % TAB;
                clean.extend(std::iter::repeat_n(' ', gap));
                column += gap;
            }
            c if is_invisible(c) => {}
            c => match c.width().unwrap_or(0) {
                0 if marks >= MARKS => {}
                0 => {
                    marks += 1;
                    clean.push(c);
                }
                width => {
                    (column, marks) = (column + width, 0);
                    clean.push(c);
                }
            },
        }
    }
    clean
}

/// Text as part of one line.
pub(crate) fn line(text: &str) -> String {
    plain(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What is there and cannot be seen.
fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

/// Columns that text takes, once it is plain.
pub(crate) fn width(text: &str) -> usize {
    text.chars().map(|c| c.width().unwrap_or(0)).sum()
}

/// As much of a text as has room, with an ellipsis where something is missing.
pub(crate) fn fit(text: &str, room: usize) -> String {
    if text.len() <= room || width(text) <= room {
        return text.to_owned();
    }
    if room == 0 {
        return String::new();
    }
    let end = split(text, room - 1);
    format!("{}…", text[..end].trim_end())
}

/// Exactly as wide as the room.
pub(crate) fn pad(text: &str, room: usize) -> String {
    let mut text = fit(text, room);
    let missing = room.saturating_sub(width(&text));
    text.extend(std::iter::repeat_n(' ', missing));
    text
}

/// As [`pad`], at the right edge.
pub(crate) fn pad_left(text: &str, room: usize) -> String {
    let text = fit(text, room);
    " ".repeat(room.saturating_sub(width(&text))) + &text
}

/// The rows that one line takes; none is wider than the room. Words stay whole where they fit.
pub(crate) fn wrap(text: &str, room: usize) -> Vec<&str> {
    let room = room.max(2);
    let mut rows = Vec::new();
    let mut rest = text;
    loop {
        let end = split(rest, room);
        if end == rest.len() {
            rows.push(rest);
            return rows;
        }
        let space = rest[..end].rfind(' ').filter(|at| *at > 0 && !rest[end..].starts_with(' '));
        let end = space.map_or(end, |at| at + 1);
        rows.push(rest[..end].trim_end());
        rest = rest[end..].trim_start_matches(' ');
        if rest.is_empty() {
            return rows;
        }
    }
}

/// Every line of a text, wrapped.
pub(crate) fn paragraph(text: &str, room: usize) -> Vec<String> {
    text.lines().flat_map(|line| wrap(line, room)).map(str::to_owned).collect()
}

/// Where text of this width ends.
fn split(text: &str, room: usize) -> usize {
    let mut used = 0;
    for (at, c) in text.char_indices() {
        used += c.width().unwrap_or(0);
        if used > room {
            return at;
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_others_write_hides_moves_or_piles_up() {
        let check = |text: &str, expected: &str| assert_eq!(plain(text), expected, "{text:?}");
        check("a\tb\u{200b}c\u{202e}d\u{feff}", "a   bcd");
        check("\x1b[2J\x1b]52;c;ZXZpbA==\x07x\u{9b}31mred", "x31mred");
        check("z\u{300}\u{301}\u{302}\u{303}a", "z\u{300}\u{301}a");
        check("\u{301}a\n\u{301}b", "a\nb");
        check("one\u{2028}two\r\nthree\u{e0041}", "one\ntwo\nthree");
        check("👨\u{200d}👩\u{fe0f}", "👨👩");
    }

    #[test]
    fn widths_are_those_of_the_screen() {
        assert_eq!(fit("abcdef", 4), "abc…");
        assert_eq!(fit("日本語", 5), "日本…");
        assert_eq!(fit("日本語", 4), "日…");
        assert_eq!(pad("日", 4), "日  ");
        assert_eq!(pad_left("日本語", 4), " 日…");
        assert_eq!(fit("x", 0), "");
    }

    #[test]
    fn long_lines_become_rows_none_of_which_is_too_wide() {
        let check = |text: &str, room: usize, expected: &[&str]| assert_eq!(wrap(text, room), expected);
        check("", 10, &[""]);
        check("one two three", 8, &["one two", "three"]);
        check("one two three", 7, &["one two", "three"]);
        check("abcdefghij", 4, &["abcd", "efgh", "ij"]);
        check("日本語日本語", 5, &["日本", "語日", "本語"]);
        check("ends here ", 9, &["ends here"]);
        for room in 2..20 {
            let text = "some words 日本語 and averyverylongwordwithoutanyspace in it";
            assert!(wrap(text, room).iter().all(|row| width(row) <= room), "{room}");
        }
    }
}
