//! Command lines as people write them in configuration.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// A program and its arguments; see [`CommandLine::parse`] for how text becomes one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandLine {
    pub program: OsString,
    pub args: Vec<OsString>,
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ParseError {
    #[error("the command is empty")]
    Empty,
    #[error("a {quote} is never closed in `{line}`")]
    Unclosed { quote: char, line: String },
    #[error("`{line}` ends in a backslash")]
    TrailingBackslash { line: String },
    #[error("the command contains a zero byte")]
    ZeroByte,
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NotFound {
    #[error("`{program}` is not in PATH")]
    InPath { program: String },
    #[error("{} does not exist", path.display())]
    Missing { path: PathBuf },
    #[error("{} is not executable", path.display())]
    NotExecutable { path: PathBuf },
}

impl CommandLine {
    pub fn new(program: impl Into<OsString>, args: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        Self { program: program.into(), args: args.into_iter().map(Into::into).collect() }
    }

    /// Splits quotes and backslashes as a POSIX shell does and runs the program directly; a line
    /// with any other shell syntax outside quotes is given to a shell whole.
    pub fn parse(line: &str) -> Result<Self, ParseError> {
        if line.contains('\0') {
            return Err(ParseError::ZeroByte);
        }
        let trimmed = line.trim();
        if trimmed.is_empty() {
            return Err(ParseError::Empty);
        }
        match split(trimmed)? {
            Split::Shell => Ok(Self::shell(trimmed)),
            Split::Words(words) => {
                let mut words = words.into_iter().map(OsString::from);
                let program = words.next().filter(|program| !program.is_empty()).ok_or(ParseError::Empty)?;
                Ok(Self { program, args: words.collect() })
            }
        }
    }

    fn shell(line: &str) -> Self {
        if cfg!(windows) { Self::new("cmd", ["/C", line]) } else { Self::new("sh", ["-c", line]) }
    }

    /// Adds arguments at the end, as if they had been quoted and written there.
    pub fn append(&mut self, arguments: impl IntoIterator<Item = impl Into<OsString>>) {
        let arguments: Vec<OsString> = arguments.into_iter().map(Into::into).collect();
        let is_shell = self.program == *"sh" && self.args.len() == 2 && self.args[0] == *"-c";
        if is_shell && !arguments.is_empty() {
            self.args[1].push(" \"$@\"");
            self.args.push("sh".into());
        }
        self.args.extend(arguments);
    }

    /// Where the program is: by its path relative to `cwd`, or in `PATH`.
    pub fn resolve(&self, cwd: &Path) -> Result<PathBuf, NotFound> {
        self.resolve_in(cwd, &std::env::var_os("PATH").unwrap_or_default())
    }

    /// The same with another `PATH`.
    pub(super) fn resolve_in(&self, cwd: &Path, path: &OsStr) -> Result<PathBuf, NotFound> {
        let program = Path::new(&self.program);
        if program.components().count() > 1 || program.is_absolute() {
            let path = cwd.join(program);
            return match executable(&path) {
                Executable::Yes => Ok(path),
                Executable::No => Err(NotFound::NotExecutable { path }),
                Executable::Missing => Err(NotFound::Missing { path }),
            };
        }
        std::env::split_paths(path)
            .map(|directory| cwd.join(directory).join(program))
            .find(|candidate| executable(candidate) == Executable::Yes)
            .ok_or_else(|| NotFound::InPath { program: self.program.to_string_lossy().into_owned() })
    }
}

/// As it could be typed into a shell.
impl fmt::Display for CommandLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_word(f, &self.program)?;
        for arg in &self.args {
            f.write_str(" ")?;
            write_word(f, arg)?;
        }
        Ok(())
    }
}

fn write_word(f: &mut fmt::Formatter<'_>, word: &OsStr) -> fmt::Result {
    let word = word.to_string_lossy();
    let plain = |c: char| c.is_alphanumeric() || "-_./:=,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        f.write_str(&word)
    } else {
        write!(f, "'{}'", word.replace('\'', r"'\''"))
    }
}

enum Split {
    Words(Vec<String>),
    /// The line means more than words.
    Shell,
}

fn split(line: &str) -> Result<Split, ParseError> {
    let unclosed = |quote| ParseError::Unclosed { quote, line: line.to_owned() };
    let mut words: Vec<String> = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            '\n' | '|' | '&' | ';' | '<' | '>' | '(' | ')' | '$' | '`' | '*' | '?' | '[' | '{' => {
                return Ok(Split::Shell);
            }
            '~' | '#' if word.is_none() => return Ok(Split::Shell),
            '!' if word.is_none() && words.is_empty() => return Ok(Split::Shell),
            '=' if words.is_empty() && word.as_deref().is_some_and(is_variable_name) => {
                return Ok(Split::Shell);
            }
            ' ' | '\t' => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next().ok_or_else(|| unclosed('\''))? {
                        '\'' => break,
                        c => word.push(c),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next().ok_or_else(|| unclosed('"'))? {
                        '"' => break,
                        '$' | '`' => return Ok(Split::Shell),
                        '\\' => match chars.next().ok_or_else(|| unclosed('"'))? {
                            '\n' => {}
                            c @ ('$' | '`' | '"' | '\\') => word.push(c),
                            c => word.extend(['\\', c]),
                        },
                        c => word.push(c),
                    }
                }
            }
            '\\' => match chars.next() {
                Some('\n') => {}
                Some(c) => word.get_or_insert_default().push(c),
                None => return Err(ParseError::TrailingBackslash { line: line.to_owned() }),
            },
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Ok(Split::Words(words))
}

fn is_variable_name(word: &str) -> bool {
    let mut chars = word.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[derive(PartialEq, Eq)]
enum Executable {
    Yes,
    No,
    Missing,
}

fn executable(path: &Path) -> Executable {
    use std::os::unix::fs::PermissionsExt;
    match path.metadata() {
        Ok(metadata) if metadata.is_file() && metadata.permissions().mode() & 0o111 != 0 => Executable::Yes,
        Ok(_) => Executable::No,
        Err(_) => Executable::Missing,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Launch, run};
    use super::*;

    fn words(line: &str) -> Vec<String> {
        let command = CommandLine::parse(line).unwrap();
        let all = std::iter::once(&command.program).chain(&command.args);
        all.map(|word| word.to_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn plain_lines_are_split_like_a_shell_does() {
        let cases: [(&str, &[&str]); 13] = [
            ("true", &["true"]),
            ("  cargo   test\t-q ", &["cargo", "test", "-q"]),
            ("say 'two words' \"and three more\"", &["say", "two words", "and three more"]),
            (r"a\ b c\\d", &["a b", r"c\d"]),
            (r#"x "a\"b\\c\d""#, &["x", r#"a"b\c\d"#]),
            ("x '' \"\"", &["x", "", ""]),
            ("x a'b'\"c\"d", &["x", "abcd"]),
            ("x '| & ; < > ( ) $ ` * ?'", &["x", "| & ; < > ( ) $ ` * ?"]),
            (r"x \$HOME \*", &["x", "$HOME", "*"]),
            ("x a=b --c=d", &["x", "a=b", "--c=d"]),
            ("x a~b a#b", &["x", "a~b", "a#b"]),
            ("'my program' x", &["my program", "x"]),
            ("./grün ü", &["./grün", "ü"]),
        ];
        for (line, expected) in cases {
            assert_eq!(words(line), expected, "{line}");
        }
    }

    #[test]
    fn shell_syntax_goes_to_a_shell_whole() {
        let cases = [
            "a | b",
            "a && b",
            "a; b",
            "a > f",
            "a < f",
            "(a)",
            "echo $HOME",
            "echo \"$HOME\"",
            "echo \"`date`\"",
            "echo `date`",
            "ls *.rs",
            "ls ?",
            "ls [ab]",
            "ls ~/x",
            "a # comment",
            "a\nb",
            "X=1 a",
            "{ a; }",
            "! a",
        ];
        for line in cases {
            assert_eq!(words(line), ["sh", "-c", line], "{line}");
        }
    }

    #[test]
    fn what_a_shell_would_refuse_is_refused() {
        let unclosed = |quote, line: &str| ParseError::Unclosed { quote, line: line.to_owned() };
        let cases = [
            ("", ParseError::Empty),
            (" \t", ParseError::Empty),
            ("''", ParseError::Empty),
            ("a 'b", unclosed('\'', "a 'b")),
            ("a \"b", unclosed('"', "a \"b")),
            ("a \\", ParseError::TrailingBackslash { line: "a \\".to_owned() }),
            ("a\0", ParseError::ZeroByte),
        ];
        for (line, expected) in cases {
            assert_eq!(CommandLine::parse(line), Err(expected), "{line:?}");
        }
    }

    #[test]
    fn a_split_line_agrees_with_the_real_shell() {
        for line in [r#"printf %s, 'a  b' "c\d" e\ f "" g'h'"i""#, r#"printf %s, \\ \' \" '\n'"#] {
            let direct = run(Launch::new(CommandLine::parse(line).unwrap(), "/"));
            let shell = run(Launch::new(CommandLine::shell(line), "/"));
            assert_eq!(direct.unwrap().stdout, shell.unwrap().stdout, "{line}");
        }
    }

    #[test]
    fn what_is_shown_can_be_typed_again() {
        for line in ["true", "x 'a b' \"it's\" ''", "a | b"] {
            let command = CommandLine::parse(line).unwrap();
            assert_eq!(CommandLine::parse(&command.to_string()).unwrap(), command, "{line}");
        }
    }

    #[test]
    fn programs_are_found_in_path_or_beside_the_directory() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let script = directory.path().join("run me");
        std::fs::write(&script, "#!/bin/sh\n").unwrap();
        let resolve = |line: &str| CommandLine::parse(line).unwrap().resolve(directory.path());

        assert!(resolve("sh").unwrap().is_absolute());
        assert!(resolve("a | no-such-program").unwrap().ends_with("sh"));
        assert_eq!(
            resolve("no-such-program x"),
            Err(NotFound::InPath { program: "no-such-program".to_owned() })
        );
        assert!(matches!(resolve("./nothing"), Err(NotFound::Missing { .. })));
        assert!(matches!(resolve("'./run me'"), Err(NotFound::NotExecutable { .. })));
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert!(resolve("'./run me' now").is_ok());
    }
}
