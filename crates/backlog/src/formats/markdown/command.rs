//! What stands behind `check:` or `verify:` under a box: commands, or words for whoever does the task.
//!
//! A command in backticks is clear. Without them a line is a command where it begins with a program or a script and
//! has no words of a sentence in it. What may be either is told as such, so that no check is lost and no sentence is run.

use super::text::without_comments;

/// What a line behind such a label says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Said {
    Commands(Vec<String>),
    Words,
    /// It may be a command.
    Unclear,
}

/// What stands behind `check:`: there a command in backticks counts whatever is said of it.
pub(crate) fn behind_check(said: &str) -> Said {
    let said = without_comments(said);
    let (commands, _) = code_spans(&said);
    if commands.is_empty() { behind_verify(&said) } else { Said::Commands(commands) }
}

/// What stands behind `verify:`, where people also write sentences about code.
pub(crate) fn behind_verify(said: &str) -> Said {
    let said = without_comments(said);
    let said = said.trim();
    let introduced = INTRODUCTIONS.iter().find_map(|words| {
        let begins = said.get(..words.len()).is_some_and(|start| start.eq_ignore_ascii_case(words));
        begins.then(|| said[words.len()..].trim_start())
    });
    let (commands, behind) = code_spans(introduced.unwrap_or(said));
    let behind = behind.trim_matches([' ', '.', ')', ']']);
    if commands.is_empty() {
        return if said.contains('`') { Said::Words } else { bare(said) };
    }
    if behind.is_empty() || SUCCEEDS.contains(&behind) {
        Said::Commands(commands)
    } else if commands.iter().any(|command| matches!(bare(command), Said::Commands(_))) {
        Said::Unclear
    } else {
        Said::Words
    }
}

/// What a value says that may be a check, outside of Markdown: there `<!--` is part of a command. Words of other
/// languages are words, also behind the name of a program, and a path may be a page of the thing that is built.
pub(crate) fn in_value(said: &str) -> Said {
    let outside = without_quoted(said);
    if outside.chars().any(|c| c.is_alphabetic() && !c.is_ascii()) {
        return Said::Words;
    }
    let read = if said.contains('`') { behind_verify(said) } else { bare(said) };
    let is_page = said.starts_with('/') && !PROGRAM_FOLDERS.iter().any(|folder| said.starts_with(folder));
    if is_page && matches!(read, Said::Commands(_)) { Said::Unclear } else { read }
}

const PROGRAM_FOLDERS: [&str; 3] = ["/bin/", "/usr/", "/opt/"];

/// What a value says that holds words in most files: a command only where nothing hints at anything else. What starts
/// a server does not end, and is a step for a person.
pub(crate) fn in_account(said: &str) -> Said {
    let is_step = |command: &String| {
        let mut words =
            command.split_whitespace().map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()));
        words.any(|word| STARTS.contains(&word) || OUTCOMES.contains(&word.to_lowercase().as_str()))
    };
    match in_value(said) {
        Said::Commands(commands) if commands.iter().any(is_step) => Said::Unclear,
        read @ (Said::Commands(_) | Said::Words | Said::Unclear) => read,
    }
}

const STARTS: [&str; 9] =
    ["dev", "start", "serve", "server", "preview", "watch", "up", "http.server", "runserver"];

/// Words about how a command should end, which are seldom part of one.
const OUTCOMES: [&str; 16] = [
    "ok",
    "green",
    "pass",
    "passed",
    "passing",
    "success",
    "successful",
    "successfully",
    "succeed",
    "without",
    "errors",
    "no",
    "not",
    "output",
    "then",
    "manually",
];

/// What a value says that is to be a command: only a sentence is none.
pub(crate) fn in_command_value(said: &str) -> Said {
    if said.contains('`')
        && let Said::Commands(commands) = behind_check(said)
    {
        return Said::Commands(commands);
    }
    match bare(said) {
        Said::Words => Said::Words,
        Said::Commands(_) | Said::Unclear => Said::Commands(vec![said.to_owned()]),
    }
}

/// Is this what people write in place of a check?
pub(crate) fn says_nothing(said: &str) -> bool {
    let said = said.trim_end_matches('.').to_lowercase();
    said.is_empty() || NOTHING.contains(&said.as_str())
}

/// What may come before a command in backticks, and behind it.
const INTRODUCTIONS: [&str; 4] = ["run ", "by running ", "running ", "execute "];
const SUCCEEDS: [&str; 7] = ["passes", "pass", "succeeds", "succeed", "works", "exits 0", "is green"];

/// The code spans a text starts with, where nothing but "and" or the like stands between them, and what follows.
fn code_spans(said: &str) -> (Vec<String>, &str) {
    let mut spans = Vec::new();
    let mut rest = said;
    let mut behind = said;
    while let Some((command, after)) = code(rest) {
        spans.push(command.to_owned());
        behind = after;
        rest = after.trim_start_matches([',', ';', '&', ' ']);
        let next = ["and then ", "and ", "then "].iter().find_map(|word| rest.strip_prefix(word));
        rest = next.unwrap_or(rest);
    }
    (spans, behind)
}

/// The code span a text starts with, and what follows it.
pub(super) fn code(said: &str) -> Option<(&str, &str)> {
    let (command, rest) = said.trim_start().strip_prefix('`')?.split_once('`')?;
    (!command.trim().is_empty()).then(|| (command.trim(), rest))
}

/// A line without backticks.
fn bare(said: &str) -> Said {
    if let Some(command) = elsewhere(said) {
        return match bare(command) {
            Said::Commands(_) => Said::Commands(vec![said.to_owned()]),
            Said::Words | Said::Unclear => Said::Unclear,
        };
    }
    let outside = without_quoted(said);
    let mut words = outside.split_whitespace().skip_while(|word| *word == "!" || is_assignment(word));
    let Some(first) = words.next() else { return Said::Words };
    if says_nothing(said) {
        return Said::Words;
    }
    let rest: Vec<&str> = words.collect();
    let sentence = is_sentence(&outside);
    let technical = rest.iter().any(|word| is_technical(word)) || is_assignment(said);
    let command = || Said::Commands(vec![said.to_owned()]);
    match (begins_command(first), sentence) {
        (Beginning::Program, false) => command(),
        (Beginning::Program, true) => Said::Unclear,
        (Beginning::ProgramOrWord, false) if technical || is_usual(first, &rest) => command(),
        (Beginning::ProgramOrWord, false) => Said::Unclear,
        (Beginning::ProgramOrWord | Beginning::Unknown, true) if technical && !is_sentence(first) => {
            Said::Unclear
        }
        (Beginning::ProgramOrWord | Beginning::Unknown, true) => Said::Words,
        (Beginning::Unknown, false) if first.starts_with(char::is_uppercase) && !technical => Said::Words,
        (Beginning::Unknown, false) => Said::Unclear,
    }
}

/// The command behind `cd frontend &&`.
fn elsewhere(said: &str) -> Option<&str> {
    let (folder, command) = said.strip_prefix("cd ")?.split_once("&&")?;
    let is_folder = !folder.trim().is_empty() && !folder.trim().contains(char::is_whitespace);
    let is_last = !command.trim_start().starts_with("cd ");
    (is_folder && is_last).then(|| command.trim())
}

enum Beginning {
    Program,
    /// A program whose name is a usual word as well.
    ProgramOrWord,
    Unknown,
}

fn begins_command(first: &str) -> Beginning {
    let is_path = ["./", "../", "/", "~/"].iter().any(|start| first.starts_with(start));
    let is_script =
        [".sh", ".bash", ".py", ".js", ".mjs", ".ts", ".rb", ".pl"].iter().any(|end| first.ends_with(end));
    if PROGRAMS.contains(&first) || is_path || is_script {
        Beginning::Program
    } else if WORDS_TOO.contains(&first) {
        Beginning::ProgramOrWord
    } else {
        Beginning::Unknown
    }
}

/// `make test`, `go vet`, `true`: such programs are called like this with a plain word, or alone.
fn is_usual(first: &str, rest: &[&str]) -> bool {
    match (first, rest) {
        ("make" | "just" | "true" | "false", []) => true,
        ("make" | "just" | "yarn" | "bun" | "task", [_]) => true,
        ("go", [verb, ..]) => ["test", "build", "vet", "run", "fmt", "generate", "tool"].contains(verb),
        (_, _) => false,
    }
}

/// Does a word look like a flag, a path, an operator of the shell?
fn is_technical(word: &str) -> bool {
    let is_flag = word.len() > 1 && word.starts_with('-') && !word.starts_with("---");
    let inside = word.trim_end_matches(['.', ',', ':', ';', '?', '!', ')']);
    let is_operator = ["&&", "||", "|", ">", ">>", "<", "!", "[", "]"].contains(&word);
    is_flag || is_operator || inside.contains(['/', '.', '=', '$', '*', '|', '>', '_'])
}

fn is_assignment(word: &str) -> bool {
    let name = word.split_once('=').map_or("", |(name, _)| name);
    let is_plain =
        name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_');
    is_plain && name.starts_with(|c: char| c.is_ascii_uppercase() || c == '_')
}

fn is_sentence(said: &str) -> bool {
    let is_word = |word: &str| {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
        SENTENCE.contains(&word.as_str())
    };
    let ends = said
        .trim_end()
        .strip_suffix(['.', '?', '!'])
        .is_some_and(|said| said.ends_with(char::is_alphanumeric));
    ends || said.split_whitespace().any(is_word)
}

/// Blanks out what stands in quotes: it may be words in a command as well.
fn without_quoted(said: &str) -> String {
    let mut out = String::with_capacity(said.len());
    let mut rest = said;
    while let Some(at) = rest.find(['"', '\'']) {
        let (before, quoted) = rest.split_at(at);
        let quote = &quoted[..1];
        let Some(end) = quoted[1..].find(quote) else { break };
        out.push_str(before);
        out.push('_');
        rest = &quoted[end + 2..];
    }
    out.push_str(rest);
    out
}

/// Words that are seldom part of a command.
const SENTENCE: [&str; 38] = [
    "that", "the", "a", "an", "is", "are", "be", "it", "its", "if", "whether", "should", "must", "can",
    "sure", "works", "passes", "succeeds", "loads", "renders", "shows", "returns", "prints", "fails",
    "exits", "starts", "appears", "every", "each", "when", "with", "and", "or", "of", "to", "still", "there",
    "this",
];

/// Said in place of a check.
const NOTHING: [&str; 7] = ["manual", "manually", "by hand", "none", "n/a", "tbd", "todo"];

const PROGRAMS: [&str; 75] = [
    "cargo",
    "npm",
    "npx",
    "pnpm",
    "deno",
    "pytest",
    "python",
    "python3",
    "pip",
    "ruby",
    "bundle",
    "rake",
    "rspec",
    "php",
    "composer",
    "phpunit",
    "mvn",
    "gradle",
    "dotnet",
    "docker",
    "docker-compose",
    "podman",
    "kubectl",
    "curl",
    "wget",
    "grep",
    "egrep",
    "rg",
    "jq",
    "sed",
    "awk",
    "bash",
    "sh",
    "zsh",
    "git",
    "gh",
    "tox",
    "nox",
    "uv",
    "poetry",
    "ruff",
    "mypy",
    "pylint",
    "flake8",
    "eslint",
    "tsc",
    "jest",
    "vitest",
    "mocha",
    "cypress",
    "cmake",
    "ctest",
    "ninja",
    "bazel",
    "xcodebuild",
    "flutter",
    "dart",
    "cabal",
    "zig",
    "terraform",
    "helm",
    "shellcheck",
    "golangci-lint",
    "gofmt",
    "rustc",
    "rustfmt",
    "gcc",
    "clang",
    "pre-commit",
    "prettier",
    "markdownlint",
    "sqlite3",
    "psql",
    "[",
    "[[",
];

const WORDS_TOO: [&str; 34] = [
    "make",
    "just",
    "go",
    "test",
    "true",
    "false",
    "find",
    "which",
    "cat",
    "sort",
    "head",
    "tail",
    "diff",
    "cmp",
    "touch",
    "time",
    "node",
    "yarn",
    "bun",
    "task",
    "mix",
    "stack",
    "swift",
    "echo",
    "ls",
    "env",
    "stat",
    "command",
    "timeout",
    "exit",
    "java",
    "perl",
    "black",
    "playwright",
];
