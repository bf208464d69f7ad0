//! How a product can ask whether it is being tested. There are good reasons for it, and bad ones: it is shown.

use super::language::Language;
use super::product::compact;

/// The questions of a file, as they are written in it. `code` has no comments.
pub(super) fn asks_if_tested(language: Language, code: &str) -> Vec<String> {
    let text = compact(code);
    let forms = forms(language).iter().flat_map(|form| text.matches(form).map(|found| (*found).to_owned()));
    forms.chain(own_variables(code)).chain(asking_lines(language, code)).collect()
}

/// What is a question by itself, without whitespace.
fn forms(language: Language) -> &'static [&'static str] {
    match language {
        Language::Python => &["PYTEST_CURRENT_TEST", "PYTEST_VERSION"],
        Language::JavaScript => &[
            "NODE_TEST_CONTEXT",
            "JEST_WORKER_ID",
            "VITEST_WORKER_ID",
            "process.env.VITEST",
            "MOCHA_COLORS",
            "globalThis.describe",
            "typeofjest",
            "typeofdescribe",
            "npm_lifecycle_event",
            "npm_lifecycle_script",
            "npm_command",
        ],
        Language::Rust => &[
            "cfg!(test)",
            "#[cfg(not(test))]",
            "\"NEXTEST",
            "thread::current().name()==Some(\"main\")",
            "thread::current().name()!=Some(\"main\")",
        ],
        Language::Go => &["testing.Testing()", "flag.Lookup(\"test."],
        Language::Annotated
        | Language::Swift
        | Language::Ruby
        | Language::Php
        | Language::Elixir
        | Language::Cpp
        | Language::Dart
        | Language::Shell => &[],
    }
}

/// Variables that the engine itself gives to checks.
fn own_variables(code: &str) -> impl Iterator<Item = String> {
    let joined = |c: char| c.is_alphanumeric() || c == '_';
    let names = code.match_indices("WIGGUM_").filter(move |(at, _)| !code[..*at].ends_with(joined));
    names.map(move |(at, _)| code[at..].chars().take_while(|c| joined(*c)).collect())
}

/// What tells of the program that runs, or of who calls.
struct Sources {
    /// These ask where the same line names tests.
    in_line: &'static [&'static str],
    /// These where any line of the file compares something with the name of tests.
    in_file: &'static [&'static str],
}

fn sources(language: Language) -> Sources {
    match language {
        Language::Python => Sources {
            in_line: &["sys.modules", "insys.argv", "sys.argv[0]", "f_code.co_name", "f_code.co_filename"],
            in_file: &[
                "_getframe(",
                "inspect.stack(",
                "inspect.currentframe(",
                "extract_stack(",
                "format_stack(",
            ],
        },
        Language::JavaScript => Sources {
            in_line: &[
                "process.argv[1]",
                "process.execArgv",
                "require.main.filename",
                "module.parent.filename",
            ],
            in_file: &["Error().stack", "captureStackTrace("],
        },
        Language::Go => Sources {
            in_line: &["os.Args[0]", "os.Executable()"],
            in_file: &["runtime.Caller(", "runtime.Callers(", "debug.Stack("],
        },
        Language::Rust => {
            Sources { in_line: &["current_exe()"], in_file: &["Backtrace::", "thread::current().name()"] }
        }
        Language::Annotated
        | Language::Swift
        | Language::Ruby
        | Language::Php
        | Language::Elixir
        | Language::Cpp
        | Language::Dart
        | Language::Shell => Sources { in_line: &[], in_file: &[] },
    }
}

/// Longer lines are data.
const LONGEST_LINE: usize = 400;

fn asking_lines(language: Language, code: &str) -> Vec<String> {
    const COMPARES: [&str; 20] = [
        "startswith(",
        "endswith(",
        "\"in",
        "'in",
        "insys.",
        "sys.modules[",
        ".get(",
        "==",
        "!=",
        "includes(",
        "match(",
        "indexOf(",
        "search(",
        ".test(",
        "startsWith(",
        "endsWith(",
        "Contains(",
        "Has",
        "contains(",
        "_with(",
    ];
    let sources = sources(language);
    let text = compact(code);
    let is_of_callers = sources.in_file.iter().any(|source| text.contains(source));
    let asks = |line: &&str| {
        let compact = compact(line);
        let is_source = is_of_callers || sources.in_line.iter().any(|source| compact.contains(source));
        let compares = || COMPARES.iter().any(|form| compact.contains(form));
        is_source && compact.len() < LONGEST_LINE && compares() && names_tests(language, &compact)
    };
    let lines = code.lines().filter(asks);
    lines.map(|line| crate::text::clip(line.trim(), 80).into_owned()).collect()
}

/// Does a text in this line, or a regular expression, speak of tests?
fn names_tests(language: Language, line: &str) -> bool {
    let line = line.replace(".test(", "(").replace("\\b", " ");
    let quotes: &[char] = match language {
        Language::Rust => &['"'],
        Language::JavaScript => &['"', '\'', '`', '/'],
        Language::Python
        | Language::Go
        | Language::Annotated
        | Language::Swift
        | Language::Ruby
        | Language::Php
        | Language::Elixir
        | Language::Cpp
        | Language::Dart
        | Language::Shell => &['"', '\'', '`'],
    };
    quotes.iter().flat_map(|quote| line.split(*quote).skip(1).step_by(2)).any(is_of_tests)
}

fn is_of_tests(text: &str) -> bool {
    let lower = text.to_lowercase();
    let begins = |at: usize| !lower[..at].ends_with(|c: char| c.is_alphabetic());
    let runners = ["unittest", "pytest", "doctest", "nose", "jest", "mocha", "vitest", "discover", "/deps"];
    lower.match_indices("test").any(|(at, _)| begins(at))
        || runners.iter().any(|name| lower.starts_with(name))
}
