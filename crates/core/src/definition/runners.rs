//! What is known of programs: which run tests, which read which settings, which only look.

use super::command::{Simple, join, simple_commands};
use super::manifests::{self, Part};

/// What a program does with its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Make,
    Just,
    /// Runs a script of `package.json`.
    PackageScript(String),
    /// Runs another program, which follows.
    Runs(Vec<String>),
    /// Runs a file, by this word.
    Script(String),
    /// Runs a module of Python.
    Module(String),
    /// Builds a program of Go and runs it.
    GoProgram(String),
    /// Builds something.
    Builder,
    TestRunner,
    /// Looks, builds or prints; runs nothing of the project's tests.
    Inert,
    Unknown,
}

const INTERPRETERS: [&str; 20] = [
    "sh", "bash", "dash", "zsh", "ksh", "python", "python3", "python2", "pypy3", "node", "nodejs", "deno",
    "bun", "ruby", "perl", "php", "lua", "tclsh", "source", ".",
];

const TEST_RUNNERS: [&str; 38] = [
    "pytest",
    "py.test",
    "tox",
    "nox",
    "unittest",
    "nose2",
    "ward",
    "behave",
    "jest",
    "vitest",
    "mocha",
    "ava",
    "tap",
    "c8",
    "nyc",
    "karma",
    "playwright",
    "cypress",
    "wdio",
    "jasmine",
    "qunit",
    "lab",
    "uvu",
    "cargo",
    "go",
    "gotestsum",
    "rspec",
    "rake",
    "minitest",
    "phpunit",
    "pest",
    "mix",
    "ctest",
    "dotnet",
    "gradle",
    "mvn",
    "swift",
    "zig",
];

const LOOKS: [&str; 82] = [
    "test", "[", "[[", "grep", "egrep", "fgrep", "rg", "ag", "diff", "cmp", "cat", "echo", "printf", "ls",
    "true", "false", "jq", "yq", "wc", "head", "tail", "sort", "uniq", "awk", "gawk", "sed", "find", "stat",
    "exit", "return", "export", "set", "unset", "shift", "trap", "local", "readonly", "sleep", "mkdir", "rm",
    "cp", "mv", "touch", "chmod", "pwd", "date", "which", "type", "fi", "done", "esac", "curl", "wget",
    "git", "tr", "cut", "}", "case", "in", "function", "break", "continue", "read", ":", "else", "mktemp",
    "basename", "dirname", "tee", "seq", "expr", "kill", "wait", "uname", "whoami", "hostname", "realpath",
    "readlink", "cd", "tac", "envsubst", "comm",
];

/// Programs that judge what others produced.
const JUDGES: [&str; 15] =
    ["test", "[", "[[", "grep", "egrep", "fgrep", "rg", "ag", "diff", "cmp", "jq", "yq", "awk", "gawk", "wc"];

pub(super) fn is_judge(program: &str) -> bool {
    JUDGES.contains(&program)
}

/// Does this program only look at what it is given, or print it?
pub(super) fn only_looks(program: &str) -> bool {
    LOOKS.contains(&program)
}

/// Does this program run what it is given, or tests?
pub(super) fn runs_others(program: &str) -> bool {
    INTERPRETERS.contains(&program)
        || TEST_RUNNERS.contains(&program)
        || matches!(program, "make" | "gmake" | "just" | "npm" | "pnpm" | "yarn" | "npx" | "xargs")
}

/// Does the text of a program name what runs tests?
pub(super) fn names_a_runner(text: &str) -> bool {
    ["unittest", "pytest", "doctest", "node:test", "jest", "vitest", "mocha"]
        .iter()
        .any(|name| text.contains(name))
}

/// Is this the name of a program that checks are made of?
pub(super) fn is_known(program: &str) -> bool {
    only_looks(program) || runs_others(program) || BUILDERS.contains(&program)
}

/// Programs that build something.
const BUILDERS: [&str; 44] = [
    "cc", "gcc", "clang", "c++", "g++", "clang++", "ld", "ar", "ranlib", "strip", "as", "nasm", "rustc",
    "javac", "jar", "kotlinc", "scalac", "ghc", "ocamlc", "ocamlopt", "dmd", "tsc", "esbuild", "webpack",
    "rollup", "swc", "babel", "sass", "lessc", "protoc", "flex", "bison", "yacc", "lex", "cmake", "ninja",
    "meson", "tar", "zip", "gzip", "ln", "install", "cd", "cython",
];

/// Does this command only build something, fetch what that needs, or move files about?
pub(super) fn is_builder(simple: &Simple) -> bool {
    let plain: Vec<&str> =
        simple.arguments().iter().map(String::as_str).filter(|word| !word.starts_with('-')).collect();
    let (first, second) = (plain.first().copied().unwrap_or(""), plain.get(1).copied().unwrap_or(""));
    match simple.program() {
        "cargo" => matches!(first, "build" | "b" | "fetch" | "doc"),
        "go" => matches!(first, "build" | "generate" | "mod" | "install" | "get"),
        "npm" | "pnpm" | "yarn" | "bun" => {
            matches!(first, "install" | "i" | "ci" | "add" | "build" | "compile")
                || first == "run" && matches!(second, "build" | "compile" | "bundle")
        }
        "pip" | "pip3" | "poetry" | "uv" | "bundle" => matches!(first, "install" | "sync"),
        "python" | "python3" => {
            simple.words.get(1).is_some_and(|word| word == "-m") && matches!(first, "build" | "pip")
        }
        "vite" => first == "build",
        program => BUILDERS.contains(&program) || only_looks(program) && !is_judge(program),
    }
}

/// The files that a judging command compares with, as its arguments name them. Of two files of `diff`, that
/// is each one that `is_there` beside one that is not, or beside standard input.
pub(super) fn compared_with(simple: &Simple, is_there: &dyn Fn(&str) -> bool) -> Vec<String> {
    let arguments = simple.arguments();
    match simple.program() {
        "diff" | "cmp" | "comm" => {
            let plain = arguments.iter().filter(|word| *word == "-" || !word.starts_with('-'));
            let (there, other): (Vec<&String>, Vec<&String>) =
                plain.partition(|word| *word != "-" && is_there(word));
            let is_alone = there.len() == 1 || !other.is_empty();
            let chosen = there.into_iter().filter(|word| is_alone || is_expectation(word));
            chosen.cloned().collect()
        }
        "grep" | "egrep" | "fgrep" | "rg" | "awk" | "gawk" | "jq" => {
            let mut found = Vec::new();
            let mut rest = arguments.iter();
            while let Some(word) = rest.next() {
                let is_short = word.starts_with('-') && !word.starts_with("--") && word.ends_with('f');
                if is_short || matches!(word.as_str(), "--file" | "--from-file") {
                    found.extend(rest.next().cloned());
                } else if let Some(file) =
                    word.strip_prefix("--file=").or_else(|| word.strip_prefix("--from-file="))
                {
                    found.push(file.to_owned());
                }
            }
            found
        }
        _ => Vec::new(),
    }
}

/// Does a file say by its name that it holds what is expected?
pub(super) fn is_expectation(path: &str) -> bool {
    const WORDS: [&str; 8] =
        ["expected", "expect", "golden", "gold", "snapshot", "reference", "baseline", "approved"];
    let mut words = path.split('/').flat_map(super::words_of);
    is_test_file(path) || words.any(|word| WORDS.contains(&word.as_str()))
}

/// What this command does.
pub(super) fn role_of(simple: &Simple) -> Role {
    let arguments = simple.arguments();
    let first = |skip: usize| {
        let plain = arguments.iter().skip(skip).find(|word| !word.starts_with('-'));
        plain.map_or("", String::as_str)
    };
    match simple.program() {
        "make" | "gmake" => Role::Make,
        "just" => Role::Just,
        "npm" | "pnpm" | "yarn" | "bun" => package_manager(simple),
        "npx" | "bunx" | "pnpx" => Role::Runs(from_first_plain(arguments)),
        "uv" | "poetry" | "pdm" | "pipenv" | "hatch" | "rye" | "bundle" | "conda" | "mamba"
            if matches!(first(0), "run" | "exec") =>
        {
            Role::Runs(from_first_plain(&from_first_plain(arguments)[1..]))
        }
        "cargo" => cargo(first(0)),
        "go" if matches!(first(0), "build" | "vet" | "fmt" | "mod" | "generate") => Role::Inert,
        "go" if first(0) == "run" => Role::GoProgram(first(1 + go_flags(arguments)).to_owned()),
        "deno" if matches!(first(0), "test" | "task") => Role::TestRunner,
        "node" | "nodejs" if arguments.iter().any(|word| word == "--test") => Role::TestRunner,
        "python" | "python3" | "python2" | "pypy3" => python(arguments),
        "tsc" | "eslint" | "prettier" | "ruff" | "black" | "mypy" | "gofmt" | "rustfmt" | "shellcheck" => {
            Role::Inert
        }
        "sh" | "bash" | "dash" | "zsh" | "ksh" => shell(arguments),
        program if INTERPRETERS.contains(&program) => interpreter(arguments),
        program if TEST_RUNNERS.contains(&program) => Role::TestRunner,
        program if LOOKS.contains(&program) => Role::Inert,
        program if BUILDERS.contains(&program) => Role::Builder,
        _ => Role::Unknown,
    }
}

/// How many flags stand before `run`.
fn go_flags(arguments: &[String]) -> usize {
    arguments.iter().take_while(|word| word.starts_with('-')).count()
}

/// Does this program print the files it is given, changed or not?
pub(super) fn prints_files(program: &str) -> bool {
    matches!(program, "cat" | "tr" | "sed" | "head" | "tail" | "tac" | "envsubst")
}

fn from_first_plain(words: &[String]) -> Vec<String> {
    words.iter().skip_while(|word| word.starts_with('-')).cloned().collect()
}

/// The directory that a package manager is told to work in, and its arguments without that.
pub(super) fn package_directory(simple: &Simple) -> (Option<String>, Vec<String>) {
    let (mut directory, mut words) = (None, Vec::new());
    let mut rest = simple.arguments().iter();
    while let Some(word) = rest.next() {
        let value = ["--prefix=", "--cwd=", "--dir="].iter().find_map(|option| word.strip_prefix(option));
        match word.as_str() {
            "--prefix" | "-C" | "--cwd" | "--dir" => directory = rest.next().cloned(),
            "--" => {
                words.push(word.clone());
                words.extend(rest.by_ref().cloned());
            }
            _ if value.is_some() => directory = value.map(str::to_owned),
            _ => words.push(word.clone()),
        }
    }
    (directory, words)
}

fn package_manager(simple: &Simple) -> Role {
    let plain = from_first_plain(&package_directory(simple).1);
    let (word, rest) = plain.split_first().map_or(("", &[][..]), |(word, rest)| (word.as_str(), rest));
    match (simple.program(), word) {
        ("npm", "test" | "t" | "tst") | ("pnpm" | "yarn", "test" | "t") => {
            Role::PackageScript("test".to_owned())
        }
        (_, "run" | "run-script") => match rest.iter().find(|word| !word.starts_with('-')) {
            Some(script) => Role::PackageScript(script.clone()),
            None => Role::Inert,
        },
        ("npm" | "pnpm" | "yarn", "exec" | "dlx" | "x") => Role::Runs(from_first_plain(rest)),
        ("bun", "test") => Role::TestRunner,
        ("bun", file) if file.contains('.') => Role::Script(file.to_owned()),
        (_, "install" | "i" | "ci" | "add" | "audit" | "pack" | "ls" | "") => Role::Inert,
        ("yarn" | "pnpm" | "bun", script) => Role::PackageScript(script.to_owned()),
        _ => Role::Inert,
    }
}

fn cargo(word: &str) -> Role {
    match word {
        "build" | "check" | "clippy" | "fmt" | "doc" | "b" | "c" | "deny" | "audit" => Role::Inert,
        "run" | "r" => Role::Inert,
        _ => Role::TestRunner,
    }
}

fn python(arguments: &[String]) -> Role {
    let mut rest = arguments.iter();
    while let Some(word) = rest.next() {
        match word.as_str() {
            "-m" => {
                let module = rest.next().cloned().unwrap_or_default();
                return match module.as_str() {
                    "http.server" | "compileall" | "py_compile" | "json.tool" | "mypy" | "ruff" => {
                        Role::Inert
                    }
                    _ => Role::Module(module),
                };
            }
            "-c" => return Role::Inert,
            "-W" | "-X" => drop(rest.next()),
            flag if flag.starts_with('-') => {}
            script => return Role::Script(script.to_owned()),
        }
    }
    Role::Inert
}

fn shell(arguments: &[String]) -> Role {
    let mut rest = arguments.iter();
    while let Some(word) = rest.next() {
        match word.as_str() {
            "--rcfile" | "--init-file" => drop(rest.next()),
            options if options.starts_with(['-', '+']) => {
                // `-euo pipefail`
                if options.ends_with('o') && !options.starts_with("--") {
                    rest.next();
                }
            }
            script => return Role::Script(script.to_owned()),
        }
    }
    Role::Inert
}

fn interpreter(arguments: &[String]) -> Role {
    let mut rest = arguments.iter();
    while let Some(word) = rest.next() {
        match word.as_str() {
            "-c" | "-e" | "--eval" | "-p" | "--print" => return Role::Inert,
            "-r" | "--require" | "--import" | "--loader" | "-o" | "+o" => drop(rest.next()),
            flag if flag.starts_with(['-', '+']) => {}
            "run" => {}
            script => return Role::Script(script.to_owned()),
        }
    }
    Role::Inert
}

/// Where a build tool looks, and for what.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Arguments {
    pub(super) directory: String,
    pub(super) file: Option<String>,
    pub(super) targets: Vec<String>,
}

pub(super) fn make_arguments(simple: &Simple) -> Arguments {
    let mut found = Arguments { directory: simple.directory.clone(), ..Arguments::default() };
    let mut rest = simple.arguments().iter();
    while let Some(word) = rest.next() {
        match word.as_str() {
            "-C" | "--directory" => {
                found.directory = join(&found.directory, rest.next().map_or("", String::as_str));
            }
            "-f" | "--file" | "--makefile" => found.file = rest.next().cloned(),
            joined if joined.starts_with("-C") => found.directory = join(&found.directory, &joined[2..]),
            "-j" | "-l" | "-o" | "-W" | "-I" => {
                // A number may follow; a target is no number.
                let mut next = rest.clone();
                if next.next().is_some_and(|word| word.bytes().all(|byte| byte.is_ascii_digit())) {
                    rest = next;
                }
            }
            flag if flag.starts_with('-') => {
                found.directory = flag
                    .strip_prefix("--directory=")
                    .map_or(found.directory.clone(), |value| join(&found.directory, value));
                found.file = flag.strip_prefix("--file=").map(str::to_owned).or(found.file);
            }
            assignment if assignment.contains('=') => {}
            target => found.targets.push(target.to_owned()),
        }
    }
    found
}

pub(super) fn just_arguments(simple: &Simple) -> Arguments {
    let mut found = Arguments { directory: simple.directory.clone(), ..Arguments::default() };
    let mut rest = simple.arguments().iter();
    while let Some(word) = rest.next() {
        match word.as_str() {
            "-f" | "--justfile" => found.file = rest.next().cloned(),
            "-d" | "--working-directory" | "--set" | "--shell" => drop(rest.next()),
            flag if flag.starts_with('-') => {}
            assignment if assignment.contains('=') => {}
            // What follows are the recipe's own arguments.
            recipe => {
                found.targets.push(recipe.to_owned());
                break;
            }
        }
    }
    found
}

/// Files that tell a test runner what to run, and how, wherever they lie.
const CONFIGS: [&str; 55] = [
    "pytest.toml",
    ".pytest.toml",
    "pytest.ini",
    ".pytest.ini",
    "tox.ini",
    "noxfile.py",
    "conftest.py",
    "sitecustomize.py",
    "usercustomize.py",
    "pytest.py",
    "unittest.py",
    "jest.config",
    "jest.setup",
    "jest.preset",
    "vitest.config",
    "vitest.setup",
    "vitest.workspace",
    "vitest.global-setup",
    "vite.config",
    "babel.config",
    ".babelrc",
    ".mocharc",
    "mocha.opts",
    "ava.config",
    ".taprc",
    "karma.conf",
    "playwright.config",
    "cypress.config",
    "cypress.json",
    "wdio.conf",
    "jasmine.json",
    ".nycrc",
    ".c8rc",
    "phpunit.xml",
    ".rspec",
    ".npmrc",
    ".yarnrc",
    ".pnpmfile",
    "bunfig.toml",
    "nextest.toml",
    "rust-toolchain",
    "GNUmakefile",
    "Rakefile",
    ".eslintrc",
    "eslint.config",
    "ruff.toml",
    ".flake8",
    "mypy.ini",
    "clippy.toml",
    ".golangci",
    "deno.json",
    "deno.jsonc",
    "setupTests",
    "testSetup",
    "test-setup",
];

/// Does a file of this path configure a test runner?
pub fn is_runner_config(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let is_it =
        |config: &str| name == config || name.strip_prefix(config).is_some_and(|rest| rest.starts_with('.'));
    CONFIGS.iter().any(|config| is_it(config))
        || name == "__init__.py" && is_test_file(path)
        || path.ends_with(".cargo/config")
        || path.ends_with(".cargo/config.toml")
        || path.starts_with("__mocks__/")
        || path.starts_with("pytest/")
        || path.starts_with("_pytest/")
}

/// Settings of JavaScript runners that name further files, by the names of their files without ending.
const NAMING_CONFIGS: [&str; 6] =
    ["jest.config", "vitest.config", "vite.config", ".mocharc", "playwright.config", "cypress.config"];

/// The files in which a runner's settings may name further files of the project.
pub(super) fn naming_configs() -> impl Iterator<Item = String> {
    let ends = ["js", "cjs", "mjs", "ts", "mts", "json", "yml", "yaml"];
    let files = NAMING_CONFIGS.iter().flat_map(move |name| ends.map(|end| format!("{name}.{end}")));
    files.chain([".mocharc".to_owned(), "package.json".to_owned()])
}

/// Files that a runner's settings name as run before, around or instead of the tests.
pub(super) fn named_in_config(text: &str) -> Vec<String> {
    const KEYS: [&str; 12] = [
        "setupFiles",
        "setupFilesAfterEnv",
        "setupFilesAfterEach",
        "globalSetup",
        "globalTeardown",
        "testEnvironment",
        "snapshotSerializers",
        "testRunner",
        "runner",
        "reporters",
        "require",
        "preset",
    ];
    let mut found = Vec::new();
    for key in KEYS {
        for (at, _) in text.match_indices(key) {
            let rest = text[at + key.len()..].trim_start_matches(['"', '\'']).trim_start();
            let Some(value) = rest.strip_prefix(':') else { continue };
            found.extend(first_value(value).into_iter().map(|name| name.replace("<rootDir>/", "./")));
        }
    }
    found
}

/// The texts of a value: one, a list in brackets, or lines of YAML that begin with a dash.
fn first_value(text: &str) -> Vec<String> {
    let (line, below) = text.split_once('\n').unwrap_or((text, ""));
    if text.trim_start().starts_with('[') {
        let list = text.split(']').next().unwrap_or(text);
        return list.split([',', '\n']).filter_map(quoted_or_word).collect();
    }
    if line.trim().is_empty() {
        let items = below.lines().map_while(|line| line.trim_start().strip_prefix("- "));
        return items.filter_map(quoted_or_word).collect();
    }
    quoted_or_word(line).into_iter().collect()
}

/// The first text in quotes, or the first word where there are none.
fn quoted_or_word(text: &str) -> Option<String> {
    let is_quote = |c: char| matches!(c, '"' | '\'' | '`');
    let mut pieces = text.split(is_quote);
    let before = pieces.next()?;
    let word = pieces.next().or_else(|| before.split_whitespace().next())?;
    Some(word.to_owned())
}

/// Does the text of a test file say how the tests beside it are run? Go's `TestMain` does.
pub(super) fn is_main(path: &str, text: &str) -> bool {
    path.ends_with("_test.go") && text.contains("func TestMain(")
}

/// Does a test file end the process that runs it? An added one could end the run before others fail.
pub(super) fn ends_its_process(text: &str) -> bool {
    const ENDS: [&str; 12] = [
        "os._exit(",
        "sys.exit(",
        "os.abort(",
        "os.kill(",
        "raise SystemExit",
        "pytest.exit(",
        "os.Exit(",
        "syscall.Exit(",
        "process.exit(",
        "process.reallyExit(",
        "process.exitCode",
        "process::exit(",
    ];
    ENDS.iter().any(|end| text.contains(end))
}

/// Folders of what a project makes, rather than of what checks it.
const SOURCES: [&str; 10] =
    ["src", "lib", "app", "pkg", "internal", "source", "sources", "cmd", "include", "packages"];

pub(super) fn is_source(path: &str) -> bool {
    let folders = path.rsplit_once('/').map_or("", |(folders, _)| folders);
    folders.split('/').any(|folder| SOURCES.contains(&folder))
}

/// Is an existing file of this path most likely part of a check, where nobody knows what the check runs?
pub(super) fn is_likely_check(path: &str) -> bool {
    const WORDS: [&str; 14] = [
        "test",
        "tests",
        "testing",
        "check",
        "checks",
        "checker",
        "verify",
        "verifier",
        "ci",
        "qa",
        "e2e",
        "smoke",
        "acceptance",
        "judge",
    ];
    const SCRIPTS: [&str; 15] =
        ["sh", "bash", "zsh", "py", "js", "mjs", "cjs", "ts", "rb", "pl", "php", "lua", "awk", "mk", "go"];
    if is_source(path) {
        return false;
    }
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
    let is_among =
        |folder: &str| matches!(folder, "test" | "tests" | "ci" | "check" | "checks" | "qa" | "e2e");
    let extension = name.rsplit_once('.').map(|(_, extension)| extension);
    let speaks = path.split('/').flat_map(super::words_of).any(|word| WORDS.contains(&word.as_str()));
    folders.split('/').any(is_among)
        || speaks && extension.is_none_or(|extension| SCRIPTS.contains(&extension))
}

/// Does the path of a file say that it helps others that check?
pub(super) fn is_helper(path: &str) -> bool {
    const WORDS: [&str; 18] = [
        "helper",
        "helpers",
        "support",
        "testing",
        "testutil",
        "testutils",
        "testlib",
        "fixture",
        "fixtures",
        "mock",
        "mocks",
        "stub",
        "stubs",
        "harness",
        "assertions",
        "asserts",
        "matchers",
        "expectations",
    ];
    let mut words = path.split('/').flat_map(super::words_of);
    words.any(|word| WORDS.contains(&word.as_str()))
}

/// Does a shell script judge something, in a function of its own or on the way?
pub(super) fn judges(text: &str) -> bool {
    let says_so = |name: &str| {
        let name = name.trim().trim_start_matches("function ").trim();
        let mut words = super::words_of(name).into_iter();
        super::speaks_of_checking(name)
            || words.any(|word| matches!(word.as_str(), "expect" | "refute" | "fail" | "require" | "should"))
    };
    let is_function = |line: &str| line.split_once("()").is_some_and(|(name, _)| says_so(name));
    let compares =
        |program: &str| is_judge(program) && !matches!(program, "test" | "[" | "[[" | "wc" | "awk" | "gawk");
    let is_judging = |line: &str| simple_commands(line).iter().any(|simple| compares(simple.program()));
    text.lines().any(|line| is_function(line) || is_judging(line))
}

/// Is a file of this path a test, or data of one, by the habits of common languages? Narrower than
/// what may be worth a look: what counts as a test here is put back as it was.
pub fn is_test_file(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let folders = path.rsplit_once('/').map_or("", |(folders, _)| folders);
    let in_tests = folders.split('/').any(|folder| {
        matches!(folder, "test" | "tests" | "__tests__" | "__snapshots__" | "e2e" | "testdata" | "fixtures")
    });
    let in_spec = folders.split('/').any(|folder| folder == "spec")
        && [".rb", ".js", ".ts", ".jsx", ".tsx", ".mjs", ".cjs"].iter().any(|end| name.ends_with(end));
    let (stem, extension) = name.rsplit_once('.').unwrap_or((name, ""));
    let marked = [".test", ".spec", "_test", "_spec", "-test", "-spec", ".cy", ".e2e"]
        .iter()
        .any(|mark| stem.ends_with(mark));
    let java = matches!(extension, "java" | "kt" | "cs" | "scala" | "swift" | "php")
        && ["Test", "Tests", "Spec"].iter().any(|end| stem.ends_with(end));
    let rust = extension == "rs" && (matches!(stem, "test" | "tests") || stem.ends_with("_tests"));
    // Where Django looks.
    let python = extension == "py" && stem == "tests";
    in_tests
        || in_spec
        || rust
        || python
        || marked
        || java
        || stem.starts_with("test_")
        || extension == "bats"
        || extension == "snap"
}

/// Manifests of which only a part says how tests run.
pub(super) fn sections_of(path: &str) -> Option<&'static [Part]> {
    match path.rsplit('/').next().unwrap_or(path) {
        "Cargo.toml" => Some(&manifests::CARGO),
        "pyproject.toml" => Some(&manifests::PYPROJECT),
        "setup.cfg" => Some(&manifests::SETUP_CFG),
        _ => None,
    }
}

/// The modules of its own project that a script takes in.
pub(super) fn imports(path: &str, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in text.lines().map(str::trim) {
        if path.ends_with(".py") {
            found.extend(python_imports(line));
        } else {
            let is_relative = |piece: &String| piece.starts_with("./") || piece.starts_with("../");
            found.extend(literals(line).into_iter().filter(is_relative));
        }
    }
    found
}

/// The modules of `import a.b, c` and `from a import b, c`, as paths.
fn python_imports(line: &str) -> Vec<String> {
    let module = |name: &str| {
        let name = name.split_whitespace().next().unwrap_or_default();
        name.trim_matches(['(', ')', '\\']).trim_start_matches('.').replace('.', "/")
    };
    let is_name = |name: &String| !name.is_empty() && *name != "*";
    if let Some(rest) = line.strip_prefix("import ") {
        return rest.split(',').map(module).filter(is_name).collect();
    }
    let Some((from, names)) = line.strip_prefix("from ").and_then(|rest| rest.split_once(" import ")) else {
        return Vec::new();
    };
    let from = module(from);
    let inner = names.split(',').map(module).filter(is_name);
    let inner: Vec<String> =
        inner.map(|name| if from.is_empty() { name } else { format!("{from}/{name}") }).collect();
    inner.into_iter().chain([from].into_iter().filter(is_name)).collect()
}

/// The texts in quotes of a line.
pub(super) fn literals(line: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = line;
    while let Some(at) = rest.find(['"', '\'', '`']) {
        let quote = &rest[at..=at];
        let Some((text, after)) = rest[at + 1..].split_once(quote) else { break };
        if !text.is_empty() {
            found.push(text.to_owned());
        }
        rest = after;
    }
    found
}

/// The files that an import may mean.
pub(super) fn import_candidates(parent: &str, name: &str) -> Vec<String> {
    ["", ".py", ".js", ".mjs", ".cjs", ".ts", "/__init__.py", "/index.js", "/index.ts"]
        .iter()
        .map(|end| join(parent, &format!("{name}{end}")))
        .collect()
}
