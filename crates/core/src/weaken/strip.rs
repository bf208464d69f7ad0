//! Takes comments out of source text, so that a commented-out test is no test.

/// How a language writes comments and strings.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Syntax {
    /// `//`, `/* */`; strings in double quotes, and in single quotes and backticks unless they
    /// mean something else.
    Slashes { single_quotes: bool, backticks: bool },
    /// `#`; with triple quotes that hold documentation in Python.
    Hash { triple_quotes: bool },
}

/// The text with comments replaced by spaces; lines stay where they are.
pub(super) fn without_comments(text: &str, syntax: Syntax) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let (length, keep) = next_piece(rest, c, syntax);
        let piece = &rest[..length];
        if keep {
            out.push_str(piece);
        } else {
            out.extend(piece.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
        }
        rest = &rest[length..];
    }
    out
}

/// Length of the comment, string or character at the start, and whether it is code.
fn next_piece(rest: &str, c: char, syntax: Syntax) -> (usize, bool) {
    match syntax {
        Syntax::Slashes { single_quotes, backticks } => {
            if rest.starts_with("//") {
                (line_end(rest), false)
            } else if let Some(comment) = rest.strip_prefix("/*") {
                (comment.find("*/").map_or(rest.len(), |at| at + 4), false)
            } else if c == '"' {
                (string_end(rest, '"', !single_quotes), true)
            } else if c == '\'' && single_quotes {
                (string_end(rest, '\'', false), true)
            } else if c == '`' && backticks {
                (string_end(rest, '`', true), true)
            } else if c == '\'' {
                // A character that is itself a quote, as in Rust's '"'.
                (
                    if rest.starts_with("'\"'") {
                        3
                    } else if rest.starts_with("'\\\"'") {
                        4
                    } else {
                        1
                    },
                    true,
                )
            } else if let Some(length) = raw_string(rest) {
                (length, true)
            } else {
                (c.len_utf8(), true)
            }
        }
        Syntax::Hash { triple_quotes } => {
            if c == '#' {
                (line_end(rest), false)
            } else if triple_quotes
                && let Some(quote) = ["\"\"\"", "'''"].into_iter().find(|quote| rest.starts_with(quote))
            {
                (rest[3..].find(quote).map_or(rest.len(), |at| at + 6), false)
            } else if c == '"' || c == '\'' {
                (string_end(rest, c, false), true)
            } else {
                (c.len_utf8(), true)
            }
        }
    }
}

fn line_end(rest: &str) -> usize {
    rest.find('\n').unwrap_or(rest.len())
}

/// Where the string ends; one that may not span lines ends with its line, which bounds the damage
/// of a quote that was none.
fn string_end(rest: &str, quote: char, multiline: bool) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '\n' if !multiline => return at,
            _ if c == quote => return at + c.len_utf8(),
            _ => {}
        }
    }
    rest.len()
}

/// Rust's `r#"…"#`.
fn raw_string(rest: &str) -> Option<usize> {
    let after = rest.strip_prefix("r#")?;
    let hashes = 1 + after.len() - after.trim_start_matches('#').len();
    let body = rest.get(1 + hashes..)?.strip_prefix('"')?;
    let close = format!("\"{}", "#".repeat(hashes));
    body.find(&close).map(|at| 2 + hashes + at + close.len())
}

/// The text with what stands in strings replaced by spaces, so that brackets and words in them mean nothing.
pub(super) fn without_strings(code: &str, syntax: Syntax) -> String {
    let mut out = String::with_capacity(code.len());
    let mut rest = code;
    while let Some(c) = rest.chars().next() {
        let (length, _) = next_piece(rest, c, syntax);
        let piece = &rest[..length];
        if piece.len() > 1 && piece.starts_with(['"', '\'', '`', 'r']) {
            out.extend(piece.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
        } else {
            out.push_str(piece);
        }
        rest = &rest[length..];
    }
    out
}
