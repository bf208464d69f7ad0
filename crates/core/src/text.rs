//! Small work on text that came out of programs: colours off, whitespace folded, output cut down
//! to what matters.
//!
//! Everything here takes linear time and never splits a character.

use std::borrow::Cow;

/// What is said of a loop that gets nowhere.
pub(crate) fn without_progress(iterations: u32) -> String {
    let plural = if iterations == 1 { "" } else { "s" };
    format!("{iterations} iteration{plural} without a completion or a change")
}

/// The text without terminal escape sequences and other control characters (tab and line feed stay).
pub fn strip_ansi(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_unwanted_control) {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => skip_escape(&mut chars),
            '\r' if chars.peek() == Some(&'\n') => {}
            // A lone carriage return overwrites the line: what was there is no longer seen.
            '\r' => plain.truncate(plain.rfind('\n').map_or(0, |at| at + 1)),
            c if is_unwanted_control(c) => {}
            c => plain.push(c),
        }
    }
    Cow::Owned(plain)
}

fn is_unwanted_control(c: char) -> bool {
    c.is_control() && c != '\n' && c != '\t'
}

/// Consumes what follows an escape character: a CSI sequence, an OSC string, or one character.
fn skip_escape(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    match chars.peek() {
        Some('[') => {
            chars.next();
            // A sequence ends with its final byte; a line feed means it was cut off.
            while let Some(&c) = chars.peek() {
                if c == '\n' {
                    return;
                }
                chars.next();
                if ('@'..='~').contains(&c) {
                    return;
                }
            }
        }
        Some(']') => {
            while let Some(&c) = chars.peek() {
                if c == '\n' || c == '\u{1b}' {
                    return;
                }
                chars.next();
                if c == '\u{7}' {
                    return;
                }
            }
        }
        Some('\n') | None => {}
        Some(_) => {
            chars.next();
        }
    }
}

/// The words of the text with single spaces between them.
pub fn fold_whitespace(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !folded.is_empty() {
            folded.push(' ');
        }
        folded.push_str(word);
    }
    folded
}

/// Bytes as people write hashes.
pub fn hex(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from(b"0123456789abcdef"[usize::from(value)]);
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        text.push(digit(byte >> 4));
        text.push(digit(byte & 15));
    }
    text
}

/// The beginning of the text, at most `max` bytes, cut between characters.
pub fn head(text: &str, max: usize) -> &str {
    &text[..text.floor_char_boundary(max)]
}

/// The end of the text, at most `max` bytes, cut between characters.
pub fn tail(text: &str, max: usize) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(max))..]
}

/// The text, or its beginning and an ellipsis where it is longer than `max` bytes.
pub fn clip(text: &str, max: usize) -> Cow<'_, str> {
    if text.len() <= max {
        return Cow::Borrowed(text);
    }
    if max < ELLIPSIS.len() {
        return Cow::Borrowed(head(text, max));
    }
    Cow::Owned(format!("{}{ELLIPSIS}", head(text, max - ELLIPSIS.len()).trim_end()))
}

const ELLIPSIS: &str = "…";

/// Does this line of a program's output report that something went wrong?
pub fn is_telling(line: &str) -> bool {
    let line = line.trim();
    if line.ends_with("... ok") || line.starts_with("PASS") || line.starts_with(['✓', '✔']) {
        return false;
    }
    let lower = line.to_lowercase();
    let lower = lower.replace("0 failed", "").replace("0 errors", "").replace("0 failures", "");
    TELLING.iter().any(|word| lower.contains(word))
        || line.starts_with("E  ")
        || line.starts_with(['✗', '✘', '×', '✖'])
}

const TELLING: [&str; 18] = [
    "error",
    "fail",
    "panicked",
    "assert",
    "exception",
    "traceback",
    "fatal",
    "expected",
    "left:",
    "right:",
    "not ok",
    "undefined",
    "cannot find",
    "not found",
    "no such",
    "denied",
    "segmentation",
    "refused",
];

/// A program's output in at most `max` bytes: the lines that tell of errors with what stands around
/// them, and the end; what was cut is marked.
pub fn trim_output(text: &str, max: usize) -> String {
    let plain = strip_ansi(text);
    let plain = plain.trim_end();
    if plain.len() <= max {
        return plain.to_owned();
    }
    if max < SMALLEST_SELECTION {
        return tail(plain, max).to_owned();
    }
    // No single line may eat the whole allowance.
    let lines: Vec<Cow<'_, str>> = plain.lines().map(|line| clip(line.trim_end(), max / 4)).collect();
    let mut selection = Selection::new(&lines, max);
    selection.take((0..lines.len()).rev(), max / 4);
    let telling: Vec<usize> = (0..lines.len()).filter(|&i| is_telling(&lines[i])).collect();
    selection.take(telling.iter().copied(), max / 4 * 3);
    for &line in &telling {
        selection.take(line.saturating_sub(1)..(line + CONTEXT_AFTER).min(lines.len()), max);
    }
    selection.take((0..lines.len()).rev(), max);
    selection.render()
}

/// Below this there is no room for choosing lines and marking cuts.
const SMALLEST_SELECTION: usize = 160;
/// Compilers and test runners explain an error in the lines after it.
const CONTEXT_AFTER: usize = 5;
/// Room for one "… 123456789 lines cut …" with its line feed.
const CUT_MARK: usize = 32;

struct Selection<'a> {
    lines: &'a [Cow<'a, str>],
    kept: Vec<bool>,
    used: usize,
    max: usize,
}

impl<'a> Selection<'a> {
    fn new(lines: &'a [Cow<'a, str>], max: usize) -> Self {
        Self { lines, kept: vec![false; lines.len()], used: CUT_MARK, max }
    }

    /// Keeps these lines in this order until one would bring the whole above `limit`.
    fn take(&mut self, order: impl Iterator<Item = usize>, limit: usize) {
        for line in order {
            if self.kept[line] {
                continue;
            }
            let cost = self.cost(line);
            if self.used + cost > limit.min(self.max) {
                return;
            }
            self.kept[line] = true;
            self.used += cost;
        }
    }

    /// A line between two gaps splits one gap in two, so it pays for a second mark.
    fn cost(&self, line: usize) -> usize {
        let beside_kept = (line > 0 && self.kept[line - 1]) || self.kept.get(line + 1) == Some(&true);
        self.lines[line].len() + 1 + if beside_kept { 0 } else { CUT_MARK }
    }

    fn render(&self) -> String {
        let mut out = String::with_capacity(self.used);
        let mut cut = 0;
        for (line, kept) in self.lines.iter().zip(&self.kept) {
            if *kept {
                push_cut_mark(&mut out, cut);
                cut = 0;
                out.push_str(line);
                out.push('\n');
            } else {
                cut += 1;
            }
        }
        push_cut_mark(&mut out, cut);
        out.truncate(out.trim_end().len());
        out
    }
}

fn push_cut_mark(out: &mut String, cut: usize) {
    match cut {
        0 => {}
        1 => out.push_str("… 1 line cut …\n"),
        _ => out.push_str(&format!("… {cut} lines cut …\n")),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn colours_and_overwritten_progress_are_gone() {
        let check = |text: &str, expected: &str| assert_eq!(strip_ansi(text), expected, "{text:?}");
        check("plain", "plain");
        check("\u{1b}[31merror\u{1b}[0m: x", "error: x");
        check("\u{1b}]8;;http://x\u{7}link\u{1b}]8;;\u{7}", "link");
        check("10%\r50%\r100%\nend", "100%\nend");
        check("a\r\nb", "a\nb");
        check("cut \u{1b}[3\nnext", "cut \nnext");
    }

    #[test]
    fn short_output_stays_whole() {
        assert_eq!(trim_output("one\ntwo\n", 100), "one\ntwo");
    }

    #[test]
    fn errors_and_the_end_survive_and_cuts_are_marked() {
        let mut text: String = (0..200).map(|n| format!("test case_{n} ... ok\n")).collect();
        text.push_str("---- login stdout ----\nassertion `left == right` failed\n  left: 1\n right: 2\n");
        text.push_str(&(0..200).map(|n| format!("building thing {n}\n")).collect::<String>());
        text.push_str("test result: FAILED. 200 passed; 1 failed\n");
        let trimmed = trim_output(&text, 600);
        for kept in
            ["login stdout", "assertion `left == right` failed", "left: 1", "right: 2", "test result: FAILED"]
        {
            assert!(trimmed.contains(kept), "{kept} is missing in\n{trimmed}");
        }
        assert!(trimmed.contains("lines cut …"), "{trimmed}");
        assert!(!trimmed.contains("case_17 "), "{trimmed}");
        assert!(trimmed.len() <= 600, "{}", trimmed.len());
    }

    #[test]
    fn every_error_comes_before_the_context_of_the_first() {
        let noise = "a line about nothing in particular, rather long\n".repeat(20);
        let text: String = (0..8).map(|n| format!("error: cause {n}\n{noise}")).collect();
        let trimmed = trim_output(&text, 800);
        for n in 0..8 {
            assert!(trimmed.contains(&format!("error: cause {n}")), "{n} is missing in\n{trimmed}");
        }
    }

    #[test]
    fn the_number_of_cut_lines_adds_up() {
        let text: String = (0..500).map(|n| format!("line {n}\n")).collect();
        let trimmed = trim_output(&text, 400);
        let cut: usize = trimmed
            .lines()
            .filter(|line| line.starts_with('…'))
            .map(|line| line.split(' ').nth(1).unwrap().parse::<usize>().unwrap())
            .sum();
        let kept = trimmed.lines().filter(|line| line.starts_with("line")).count();
        assert_eq!(cut + kept, 500, "{trimmed}");
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn trimming_keeps_its_bound(text in "(?s).{0,2000}", max in 0usize..900) {
            let trimmed = trim_output(&text, max);
            prop_assert!(trimmed.len() <= max);
        }

        #[test]
        fn many_short_lines_keep_the_bound(lines in proptest::collection::vec("(error|ok|é|)", 0..400), max in 0usize..900) {
            prop_assert!(trim_output(&lines.join("\n"), max).len() <= max);
        }
    }
}
