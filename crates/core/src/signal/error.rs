//! What went wrong in an attempt, and when two errors are the same.

use crate::event::{Exit, Failure};
use crate::text::{clip, head, strip_ansi, tail};

/// The longest signature and the longest message kept.
const MAX_SIGNATURE: usize = 240;
const MAX_MESSAGE: usize = 1000;
/// How much is looked at: an error is stated near the end of what was printed.
const MAX_READ: usize = 64 * 1024;

/// What stays of an error message when paths, numbers, times and the like are taken out: equal
/// signatures mean the same error.
pub fn signature(message: &str) -> String {
    let plain = strip_ansi(head(message, MAX_READ));
    let mut signature = String::new();
    for token in without_quoted_paths(&plain).split_whitespace() {
        if signature.len() > MAX_SIGNATURE {
            break;
        }
        push_words(&mut signature, token);
    }
    clip(&signature, MAX_SIGNATURE).into_owned()
}

/// An error in the words of whoever met it.
pub fn failure_of(text: &str) -> Failure {
    let text = strip_ansi(tail(text, MAX_READ));
    Failure { signature: signature(&text), message: clip(&text, MAX_MESSAGE).into_owned() }
}

/// How many lines tell what a check found.
const DECISIVE_LINES: usize = 6;

/// The lines of a check's output that say why it failed, at most a few; the last ones where none does.
pub fn decisive_lines(output: &str) -> Vec<String> {
    let output = strip_ansi(tail(output, MAX_READ));
    let lines = lines_of(&output);
    let telling = telling(&lines);
    let all = if telling.is_empty() { lines } else { telling };
    shortened(&all)
}

/// Those of them that say why it failed, if any do.
pub fn telling_lines(output: &str) -> Vec<String> {
    shortened(&telling(&lines_of(&strip_ansi(tail(output, MAX_READ)))))
}

fn lines_of(output: &str) -> Vec<&str> {
    let lines: Vec<&str> = output.lines().map(str::trim_end).filter(|line| !line.trim().is_empty()).collect();
    without_banners(&lines)
}

fn telling<'t>(lines: &[&'t str]) -> Vec<&'t str> {
    let decides = |line: &&&str| {
        (states_error(line) && !sums_up(line) && !is_package_managers(line)) || states_failure(line)
    };
    lines.iter().filter(decides).copied().collect()
}

/// The last of these lines.
fn shortened(lines: &[&str]) -> Vec<String> {
    let last = &lines[lines.len().saturating_sub(DECISIVE_LINES)..];
    last.iter().map(|line| clip(line.trim(), MAX_SIGNATURE).into_owned()).collect()
}

/// The lines without what npm, pnpm and yarn print of the script that they run: `> name@1.0.0 test`, the command
/// below it, `$ command`. A package without a name has only `> test` there.
fn without_banners<'t>(lines: &[&'t str]) -> Vec<&'t str> {
    let is_quoted = |line: &str| line.strip_prefix("> ").is_some_and(|rest| !rest.starts_with([' ', '|']));
    let is_versioned = |line: &str| {
        let version = line.split_whitespace().nth(1).and_then(|word| word.rsplit_once('@'));
        version.is_some_and(|(_, version)| version.starts_with(|c: char| c.is_ascii_digit()))
    };
    let begins = |index: usize| {
        let line = lines[index];
        let is_alone = line.split_whitespace().count() == 2;
        let is_followed = lines.get(index + 1).is_some_and(|next| is_quoted(next));
        is_quoted(line) && (is_versioned(line) || is_alone && is_followed)
    };
    let is_yarn = |line: &str| line.starts_with("yarn run v");
    let is_banner = |index: usize| {
        let line = lines[index];
        let behind = index.checked_sub(1);
        let is_command = behind.is_some_and(|above| {
            is_quoted(line) && begins(above) || line.starts_with("$ ") && is_yarn(lines[above])
        });
        begins(index) || is_yarn(line) || is_command
    };
    (0..lines.len()).filter(|&index| !is_banner(index)).map(|index| lines[index]).collect()
}

/// npm says behind the output of a script that the script failed, and where its log is.
fn is_package_managers(line: &str) -> bool {
    let lower = line.trim_start().to_ascii_lowercase();
    ["npm err", "npm warn", "npm notice"].iter().any(|start| lower.starts_with(start))
}

/// `wanted 4, got 3`, as tests without a framework say it; not the code that says so.
fn compares(line: &str) -> bool {
    if line.starts_with("throw ") || line.ends_with([';', '{']) {
        return false;
    }
    let lower = line.to_lowercase();
    let has = |word: &str| lower.split(|c: char| !c.is_alphanumeric()).any(|found| found == word);
    (has("wanted") || has("want")) && (has("got") || has("have"))
}

/// What test runners print of a test that failed.
fn states_failure(line: &str) -> bool {
    let line = line.trim_start();
    if compares(line) {
        return true;
    }
    let starts = [
        "FAILED",
        "FAIL",
        "not ok",
        "--- FAIL",
        "\u{2717}",
        "\u{2716}",
        "\u{d7} ",
        "AssertionError",
        "> ",
        "E  ",
    ];
    let contains = ["... FAILED", "assertion `", "assert ", "Expected", "expected ", "left: ", "right: "];
    starts.iter().any(|start| line.starts_with(start)) || contains.iter().any(|words| line.contains(words))
}

/// Why an attempt that ended like this counts as an error.
pub fn failure_from(exit: Exit, stderr_tail: &str, message: &str) -> Failure {
    let stderr = strip_ansi(tail(stderr_tail, MAX_READ));
    let message = strip_ansi(tail(message, MAX_READ));
    // What it says is about its work; only a line that reports an error outright is about its failure.
    let telling = telling_line(&stderr, states_error).or_else(|| telling_line(&message, reports_error));
    let last = || last_line(&stderr).map(str::to_owned);
    let text = match exit {
        Exit::Code { .. } => telling.or_else(last).unwrap_or_else(|| exit.to_string()),
        // What it was doing when its time was up changes; that it was up is the error.
        Exit::TimedOut => exit.to_string(),
        Exit::Signal { .. } => with_reason(exit, telling),
        Exit::NotStarted => with_reason(exit, telling.or_else(last)),
    };
    Failure { signature: signature(&text), message: clip(&text, MAX_MESSAGE).into_owned() }
}

fn with_reason(exit: Exit, reason: Option<String>) -> String {
    match reason {
        Some(reason) => format!("{exit}: {reason}"),
        None => exit.to_string(),
    }
}

fn last_line(text: &str) -> Option<&str> {
    text.lines().map(str::trim).rfind(|line| !line.is_empty())
}

/// The last line that states an error; lines that only sum up others are taken when there is no better.
fn telling_line(text: &str, states_error: fn(&str) -> bool) -> Option<String> {
    let lines: Vec<&str> = text.lines().collect();
    let errors = (0..lines.len()).rev().filter(|&index| states_error(lines[index]));
    let mut summary = None;
    for index in errors {
        if !sums_up(lines[index]) {
            return Some(explained(&lines, index));
        }
        summary = summary.or(Some(index));
    }
    summary.map(|index| explained(&lines, index))
}

fn states_error(line: &str) -> bool {
    let line = line.trim_start();
    let lower = line.to_lowercase();
    let starts = ["error", "fatal", "traceback", "panic:", "failed", "fail ", "fail:", "e   "];
    starts.iter().any(|start| lower.starts_with(start)) || reports_error(line)
}

/// As programs do, and people who talk about errors do not.
fn reports_error(line: &str) -> bool {
    let line = line.trim_start();
    let lower = line.to_lowercase();
    let words =
        ["error:", "error[", "fatal:", "panic:", "panicked at", "exception:", "error -", "[error]", "err!"];
    words.iter().any(|word| lower.contains(word)) || is_exception(line)
}

/// `ValueError: …`, `java.io.IOException`
fn is_exception(line: &str) -> bool {
    let name = line.split([':', ' ', '(']).next().unwrap_or_default();
    name.len() > 5 && (name.ends_with("Error") || name.ends_with("Exception"))
}

fn sums_up(line: &str) -> bool {
    let lower = line.to_lowercase();
    let phrases = [
        "could not compile",
        "aborting due to",
        "previous error",
        "test failed, to rerun",
        "command failed",
        "exit status",
        "exited with",
        "exit code",
        "a complete log of this run",
        "lifecycle",
        "recipe for target",
        "failures:",
        "target failed",
        "targets failed",
    ];
    phrases.iter().any(|phrase| lower.contains(phrase))
}

/// The line, with the one that holds its reason where the reason stands apart.
fn explained(lines: &[&str], index: usize) -> String {
    let line = lines[index].trim();
    let rest =
        || lines[index + 1..].iter().map(|line| line.trim_end()).filter(|line| !line.trim().is_empty());
    if line.starts_with("Traceback") {
        // The exception is the first line after the frames, which are indented.
        return rest().find(|line| !line.starts_with([' ', '\t'])).unwrap_or(line).trim().to_owned();
    }
    if line.ends_with(':')
        && let Some(reason) = rest().next()
    {
        return format!("{line} {}", reason.trim());
    }
    line.to_owned()
}

/// The text without quoted stretches that are paths (these may hold spaces).
fn without_quoted_paths(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        let mut rest = line;
        while let Some(at) = rest.find(['"', '\'', '`']) {
            let quote = rest.as_bytes()[at] as char;
            let body = &rest[at + 1..];
            out.push_str(&rest[..at]);
            match body.find(quote) {
                Some(close) if is_path(&body[..close]) => rest = &body[close + 1..],
                _ => {
                    out.push(' ');
                    rest = body;
                }
            }
        }
        out.push_str(rest);
        out.push('\n');
    }
    out
}

fn is_path(token: &str) -> bool {
    let token = token.trim_matches(['(', ')', '[', ']', ',', ';', ':', '<', '>', '=']);
    let slashes = token.matches(['/', '\\']).count();
    let drive = token.as_bytes().get(1) == Some(&b':') && slashes > 0;
    if token.starts_with(['/', '~']) && slashes > 0
        || token.starts_with("./")
        || token.starts_with("../")
        || drive
        || slashes > 1
    {
        return true;
    }
    let name = token.rsplit(['/', '\\']).next().unwrap_or(token);
    let mut parts = name.split(':');
    let file = parts.next().unwrap_or_default();
    let has_line =
        parts.next().is_some_and(|line| !line.is_empty() && line.bytes().all(|b| b.is_ascii_digit()));
    let Some((stem, extension)) = file.rsplit_once('.') else { return false };
    !stem.is_empty() && (has_line || slashes > 0 || EXTENSIONS.contains(&extension))
}

const EXTENSIONS: [&str; 32] = [
    "rs", "py", "js", "ts", "tsx", "jsx", "mjs", "cjs", "go", "java", "kt", "c", "h", "cc", "cpp", "hpp",
    "cs", "rb", "php", "swift", "ex", "exs", "sh", "json", "toml", "yaml", "yml", "md", "txt", "lock", "log",
    "html",
];

fn push_words(signature: &mut String, token: &str) {
    if is_path(token) || is_time(token) || is_uuid(token) {
        return;
    }
    for piece in token.split(|c: char| !c.is_alphanumeric() && c != '_') {
        let word = without_numbers(piece);
        if word.is_empty() {
            continue;
        }
        if !signature.is_empty() {
            signature.push(' ');
        }
        signature.push_str(&word);
    }
}

/// Dates, times of day and durations such as `2026-01-02T03:04:05Z`, `12:30:01.5`, `1h30m`.
fn is_time(token: &str) -> bool {
    let token = token.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    token.starts_with(|c: char| c.is_ascii_digit())
        && token.bytes().all(|b| {
            b.is_ascii_digit()
                || matches!(b, b':' | b'-' | b'.' | b'+' | b'/' | b'T' | b'Z' | b'h' | b'm' | b's')
        })
}

fn is_uuid(token: &str) -> bool {
    let token = token.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    token.len() == 36
        && token.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-')
        && token.matches('-').count() == 4
}

fn without_numbers(piece: &str) -> String {
    let digits = piece.chars().filter(char::is_ascii_digit).count();
    if digits == 0 {
        return piece.to_lowercase();
    }
    let hex_literal = piece.starts_with("0x") || piece.starts_with("0X");
    let hash = piece.len() >= 7 && piece.bytes().all(|b| b.is_ascii_hexdigit());
    if piece.starts_with(|c: char| c.is_ascii_digit()) || hex_literal || hash {
        return String::new();
    }
    if is_error_code(piece) {
        return piece.to_lowercase();
    }
    piece.chars().filter(|c| !c.is_ascii_digit()).collect::<String>().to_lowercase()
}

/// `E0308`, `TS2345`, `SC2086`: the number is the name of the error.
fn is_error_code(piece: &str) -> bool {
    let letters = piece.chars().take_while(char::is_ascii_uppercase).count();
    let digits = &piece[letters..];
    (1..=4).contains(&letters)
        && (3..=5).contains(&digits.len())
        && digits.bytes().all(|b| b.is_ascii_digit())
}
