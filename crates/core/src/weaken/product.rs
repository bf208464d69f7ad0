//! What a product does to the tests that try it: it replaces what they assert with, is equal to everything,
//! forges the summary of their runner, or ends the program that runs them while it is loaded.
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
        Language::Rust => found.extend(rust(plain)),
        Language::Go
        | Language::Annotated
        | Language::Swift
        | Language::Ruby
        | Language::Php
        | Language::Elixir
        | Language::Cpp
        | Language::Dart
        | Language::Shell => {}
    }
    found
}

/// How a product can ask whether it is being tested. There are good reasons for it, and bad ones.
pub(super) fn asks_if_tested(language: Language, code: &str) -> Vec<&'static str> {
    let forms: &[&str] = match language {
        Language::Python => &[
            "\"unittest\"insys.modules",
            "'unittest'insys.modules",
            "\"pytest\"insys.modules",
            "'pytest'insys.modules",
            "\"_pytest\"insys.modules",
            "PYTEST_CURRENT_TEST",
            "PYTEST_VERSION",
        ],
        Language::JavaScript => &[
            "NODE_TEST_CONTEXT",
            "JEST_WORKER_ID",
            "VITEST_WORKER_ID",
            "process.env.VITEST",
            "MOCHA_COLORS",
            "globalThis.describe",
            "typeofjest",
            "typeofdescribe",
        ],
        Language::Rust => &["cfg!(test)", "#[cfg(not(test))]", "\"NEXTEST"],
        Language::Go => &["testing.Testing()", "flag.Lookup(\"test.v\")"],
        Language::Annotated
        | Language::Swift
        | Language::Ruby
        | Language::Php
        | Language::Elixir
        | Language::Cpp
        | Language::Dart
        | Language::Shell => &[],
    };
    let text = compact(code);
    forms.iter().flat_map(|form| text.matches(form).map(|_| *form)).collect()
}

fn compact(text: &str) -> String {
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
const PATCHED: [&str; 18] = [
    "unittest.",
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
    let lines: Vec<&str> = plain.lines().collect();
    for (index, line) in lines.iter().enumerate() {
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
        if let Some((target, value)) = text.split_once('=')
            && !value.starts_with('=')
            && PATCHED.iter().any(|known| is_patched(target, known))
        {
            found.push(format!("replaces {target}"));
        }
        let set = ["setattr(unittest", "setattr(pytest", "setattr(_pytest"];
        found.extend(set.iter().filter(|set| text.contains(**set)).map(|set| format!("{set}…)")));
        if text.starts_with("def__eq__(") && answers_always(&lines, index, "True") {
            found.push("is equal to everything".to_owned());
        }
        if text.starts_with("def__ne__(") && answers_always(&lines, index, "False") {
            found.push("differs from nothing".to_owned());
        }
    }
    found
}

/// Does a name mean one of those, or for those that end with a dot, a part of one?
fn is_patched(target: &str, known: &str) -> bool {
    let is_below = |rest: &str| if known.ends_with('.') { is_dotted(rest) } else { rest.is_empty() };
    target.strip_prefix(known).is_some_and(is_below)
}

fn is_dotted(rest: &str) -> bool {
    rest.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.'))
}

/// Does this method of Python's do nothing but return one value?
fn answers_always(lines: &[&str], index: usize, value: &str) -> bool {
    let head = compact(lines[index]);
    let wanted = format!("return{value}");
    if head.ends_with(&format!(":{wanted}")) {
        return true;
    }
    let depth = body::indent(lines[index]);
    let inside = lines[index + 1..].iter().filter(|line| !line.trim().is_empty());
    let inside: Vec<String> =
        inside.take_while(|line| body::indent(line) > depth).map(|line| compact(line)).collect();
    inside == [wanted]
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

fn rust(plain: &str) -> Vec<String> {
    let text = compact(plain);
    let mut found = Vec::new();
    for (at, _) in text.match_indices("PartialEq") {
        let Some((_, inside)) = text[at..].split_once('{') else { continue };
        let is_impl =
            text[..at].rfind(['}', ';', ']']).map_or(&text[..at], |from| &text[from..at]).contains("impl");
        let Some(body) = inside.strip_prefix("#[inline]").unwrap_or(inside).strip_prefix("fneq(") else {
            continue;
        };
        if is_impl
            && body
                .split_once("->bool{")
                .is_some_and(|(_, body)| body.starts_with("true}") || body.starts_with("returntrue;}"))
        {
            found.push("is equal to everything".to_owned());
        }
    }
    found
}
