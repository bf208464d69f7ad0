//! What a product does to the tests that try it: it replaces what they assert with, forges the summary of their
//! runner, or ends the program that runs them while it is loaded.
//!
//! Read in files that are no tests themselves. What ends a process when it is called is usual in programs, so
//! only ends that no program needs count.

use super::body;
use super::language::Language;
use crate::tally::tests_passed;

/// What of this file reaches into tests. `code` has no comments, `plain` has no strings either.
pub(super) fn reaches_into_tests(language: Language, code: &str, plain: &str) -> Vec<String> {
    let mut found = forged_summary(language, code);
    match language {
        Language::Python => found.extend(python(plain)),
        Language::JavaScript => found.extend(javascript(code)),
        Language::Cpp => found.extend(plain.lines().filter_map(c)),
        Language::Rust
        | Language::Go
        | Language::Annotated
        | Language::Swift
        | Language::Ruby
        | Language::Php
        | Language::Elixir
        | Language::Dart
        | Language::Shell => {}
    }
    found
}

pub(super) fn compact(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

/// A text that is read as the summary of a test runner, in a file that ends its process as well.
fn forged_summary(language: Language, code: &str) -> Vec<String> {
    const ENDS: [&str; 9] = [
        "os._exit(",
        "sys.exit(",
        "SystemExit",
        "process.exit(",
        "process.reallyExit(",
        "process::exit(",
        "process::abort(",
        "os.Exit(",
        "syscall.Exit(",
    ];
    if !ENDS.iter().any(|end| code.contains(end)) {
        return Vec::new();
    }
    let quotes: &[char] = match language {
        Language::Rust | Language::Annotated | Language::Swift | Language::Cpp => &['"'],
        Language::Python
        | Language::JavaScript
        | Language::Go
        | Language::Ruby
        | Language::Php
        | Language::Elixir
        | Language::Dart
        | Language::Shell => &['"', '\'', '`'],
    };
    let texts = code
        .lines()
        .flat_map(|line| quotes.iter().flat_map(move |quote| line.split(*quote).skip(1).step_by(2)));
    let is_summary = |text: &str| tests_passed(&text.replace("\\n", "\n").replace("\\t", "\t")).is_some();
    texts.filter(|text| is_summary(text)).map(|text| format!("prints \"{}\" itself", text.trim())).collect()
}

/// Functions and classes of Python's that decide how tests end.
const PATCHED: [&str; 22] = [
    "unittest.",
    "doctest.",
    "DocTestRunner.",
    "DocTestFinder.",
    "OutputChecker.",
    "TestCase.",
    "pytest.",
    "_pytest.",
    "builtins.AssertionError",
    "AssertionError.",
    "sys.exit",
    "os._exit",
    "TestResult.",
    "TextTestResult.",
    "TextTestRunner.",
    "TestProgram.",
    "builtins.isinstance",
    "builtins.len",
    "builtins.abs",
    "builtins.sorted",
    "builtins.all",
    "builtins.any",
];

fn python(plain: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in plain.lines() {
        let text = compact(line);
        if body::indent(line) == 0 {
            let ends = ["os._exit(", "os.abort(", "os.execv", "os.execl", "os.kill(os.getpid("];
            found.extend(
                ends.iter()
                    .filter(|end| text.starts_with(**end))
                    .map(|end| format!("{end}…) where it is imported")),
            );
        }
        if text.contains("atexit.register(os._exit") || text.contains("atexit.register(os.abort") {
            found.push("os._exit at the end of the process".to_owned());
        }
        let targets = targets(&text).into_iter();
        let patched = targets.filter(|target| PATCHED.iter().any(|known| is_patched(target, known)));
        found.extend(patched.map(|target| format!("replaces {target}")));
        let set = ["setattr(unittest", "setattr(doctest", "setattr(pytest", "setattr(_pytest"];
        found.extend(set.iter().filter(|set| text.contains(**set)).map(|set| format!("{set}…)")));
        let gives = text.starts_with("return") || text.contains("lambda");
        if gives && text.contains("mock.ANY") && !text.contains("==") {
            found.push("returns ANY, which is equal to everything".to_owned());
        }
    }
    found
}

/// What a line assigns to: `a` and `b` of `a=b=c`.
fn targets(text: &str) -> Vec<&str> {
    let mut parts: Vec<&str> = text.split('=').collect();
    if text.contains("==") {
        parts.truncate(if parts.get(1).is_some_and(|second| second.is_empty()) { 0 } else { 2 });
    }
    parts.pop();
    parts
}

/// Does a name mean one of those, or for those that end with a dot, a part of one?
fn is_patched(target: &str, known: &str) -> bool {
    let is_below = |rest: &str| if known.ends_with('.') { is_dotted(rest) } else { rest.is_empty() };
    target.strip_prefix(known).is_some_and(is_below)
}

fn is_dotted(rest: &str) -> bool {
    rest.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.'))
}

fn javascript(code: &str) -> Vec<String> {
    const ENDS: [&str; 4] = ["process.exit", "process.reallyExit", "process.abort", "process.exitCode"];
    const GLOBALS: [&str; 5] = ["expect", "test", "it", "describe", "assert"];
    const MODULES: [&str; 7] =
        ["assert", "node:assert", "assert/strict", "node:assert/strict", "node:test", "chai", "expect"];
    let mut found = Vec::new();
    for line in code.lines() {
        let text = compact(line).replace(['\'', '`'], "\"");
        for end in ENDS {
            if text.split_once(&format!("{end}=")).is_some_and(|(before, value)| {
                !value.starts_with('=') && !before.ends_with(char::is_alphanumeric)
            }) {
                let is_usual = end == "process.exitCode" && !text.contains("process.on(\"exit\"");
                found.extend((!is_usual).then(|| format!("replaces {end}")));
            }
        }
        for name in GLOBALS {
            let forms = [format!("globalThis.{name}="), format!("global.{name}=")];
            if forms
                .iter()
                .any(|form| text.split_once(form).is_some_and(|(_, value)| !value.starts_with('=')))
            {
                found.push(format!("replaces {name}"));
            }
        }
        for module in MODULES {
            let Some((_, rest)) = text.split_once(&format!("require(\"{module}\").")) else { continue };
            if rest
                .split_once('=')
                .is_some_and(|(target, value)| is_dotted(target) && !value.starts_with(['=', '>']))
            {
                found.push(format!("replaces what {module} has"));
            }
        }
        let method = text.strip_prefix("assert.").or_else(|| text.strip_prefix("assert[\""));
        if let Some((target, value)) = method.and_then(|rest| rest.split_once('='))
            && is_dotted(target.trim_end_matches("\"]"))
            && !value.starts_with('=')
        {
            found.push(format!("replaces assert.{}", target.trim_end_matches("\"]")));
        }
        let swallowed = [
            "process.on(\"uncaughtException\",",
            "process.on(\"unhandledRejection\",",
            "process.once(\"uncaughtException\",",
        ];
        for start in swallowed {
            let handler = text.split_once(start).map(|(_, handler)| handler);
            let is_silent = |handler: &str| {
                ["{})", "process.exit(0)", "exitCode=0"].iter().any(|form| handler.contains(form))
            };
            found.extend(handler.is_some_and(is_silent).then(|| "swallows failures".to_owned()));
        }
        if text.contains("AssertionError.prototype") && text.contains('=') {
            found.push("replaces AssertionError".to_owned());
        }
    }
    found
}

/// `#define NDEBUG`, `#define assert(…)`, and the function behind a failed assertion: tests that include it, or are
/// linked with it, check nothing any more.
fn c(line: &str) -> Option<String> {
    if let Some(rest) = line.trim().strip_prefix('#') {
        let name = rest.trim_start().strip_prefix("define")?.strip_prefix([' ', '\t'])?.trim_start();
        let end = name.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(name.len());
        return matches!(&name[..end], "NDEBUG" | "assert").then(|| format!("defines {}", &name[..end]));
    }
    let behind = ["__assert_fail", "__assert_rtn", "__assert"];
    let is_one = |name: &&&str| compact(line).contains(&format!("{name}(")) && line.trim_end().ends_with('{');
    behind.iter().find(is_one).map(|name| format!("replaces {name}"))
}
