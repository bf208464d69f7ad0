//! What a test, a skipped test and an assertion look like, language by language.

use super::aliases::with_usual_names;
use super::hooks;
use super::marks::{build_tags, python_marks, rust_marks};
use super::python_names::{with_full_names, with_full_names_in_product};
use super::reader::Reader;
use super::strip::{Syntax, without_comments, without_strings};

/// The tests of one file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Suite {
    pub(super) tests: Vec<TestCase>,
    /// What keeps tests from running, or from meaning anything.
    pub(super) marks: Vec<Mark>,
    /// Assertions anywhere in the file that can fail.
    pub(super) assertions: usize,
    /// Assertions that cannot fail.
    pub(super) trivial: Vec<Trivial>,
    /// Functions that are no tests.
    pub(super) others: Vec<String>,
    /// Modules with tests that this file declares and another one holds.
    pub(super) modules: Vec<String>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct TestCase {
    pub(super) name: String,
    pub(super) assertions: usize,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) what: String,
    pub(super) on: On,
}

/// What a mark stands on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum On {
    Test(String),
    /// A class, a module, a file.
    Group,
    /// The whole run, whichever file it is in.
    Run,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Trivial {
    pub(super) text: String,
    pub(super) test: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Language {
    Rust,
    Python,
    JavaScript,
    Go,
    /// Java, Kotlin, C#, Scala, Groovy: a mark before the method.
    Annotated,
    Swift,
    Ruby,
    Php,
    Elixir,
    Cpp,
    Dart,
    Shell,
}

impl Language {
    pub(super) fn of(path: &str) -> Option<Self> {
        let extension = path.rsplit(['/', '\\']).next()?.rsplit_once('.')?.1;
        Some(match extension {
            "rs" => Self::Rust,
            "py" => Self::Python,
            "js" | "ts" | "jsx" | "tsx" | "mjs" | "cjs" | "mts" | "cts" | "vue" | "svelte" => {
                Self::JavaScript
            }
            "go" => Self::Go,
            "java" | "kt" | "kts" | "cs" | "scala" | "groovy" => Self::Annotated,
            "swift" => Self::Swift,
            "rb" => Self::Ruby,
            "php" => Self::Php,
            "ex" | "exs" => Self::Elixir,
            "c" | "cc" | "cpp" | "cxx" | "h" | "hpp" => Self::Cpp,
            "dart" => Self::Dart,
            "sh" | "bats" | "bash" => Self::Shell,
            _ => return None,
        })
    }

    /// Reads a file line by line: what stands between two tests belongs to the first, and marks
    /// right above a test to that test.
    pub(super) fn read(self, path: &str, text: &str) -> Suite {
        let code = without_comments(text, self.syntax());
        let code = match self {
            Self::JavaScript => with_usual_names(&code),
            Self::Python => with_full_names(&code),
            Self::Rust
            | Self::Go
            | Self::Annotated
            | Self::Swift
            | Self::Ruby
            | Self::Php
            | Self::Elixir
            | Self::Cpp
            | Self::Dart
            | Self::Shell => code,
        };
        let plain = without_strings(&code, self.syntax());
        let mut suite = Reader::new(self, &code, &plain).read_lines();
        let marks = hooks::of_file(self, path, &code, &plain);
        suite.marks.extend(marks.into_iter().map(|what| Mark { what, on: On::Run }));
        if self == Self::Go {
            suite.marks.extend(build_tags(text).map(|what| Mark { what, on: On::Group }));
        }
        suite
    }

    /// A text without comments, and without strings either.
    pub(super) fn code_of(self, text: &str) -> (String, String) {
        let code = without_comments(text, self.syntax());
        let code = if self == Self::Python { with_full_names_in_product(&code) } else { code };
        let plain = without_strings(&code, self.syntax());
        (code, plain)
    }

    fn syntax(self) -> Syntax {
        match self {
            Self::Rust | Self::Swift | Self::Annotated | Self::Cpp => {
                Syntax::Slashes { single_quotes: false, backticks: false }
            }
            Self::JavaScript | Self::Php | Self::Dart => {
                Syntax::Slashes { single_quotes: true, backticks: true }
            }
            Self::Go => Syntax::Slashes { single_quotes: false, backticks: true },
            Self::Python => Syntax::Hash { triple_quotes: true },
            Self::Ruby | Self::Elixir | Self::Shell => Syntax::Hash { triple_quotes: false },
        }
    }

    /// Does this line say that the next function is a test?
    pub(super) fn marks_test(self, line: &str) -> bool {
        match self {
            Self::Rust => line.split("#[").skip(1).any(|attribute| {
                let path = attribute.split([']', '(', ' ', '=']).next().unwrap_or_default();
                let name = path.rsplit("::").next().unwrap_or_default();
                matches!(
                    name,
                    "test"
                        | "rstest"
                        | "test_case"
                        | "quickcheck"
                        | "wasm_bindgen_test"
                        | "proptest"
                        | "case"
                )
            }),
            Self::Annotated => [
                "@Test",
                "@ParameterizedTest",
                "@RepeatedTest",
                "@Property",
                "[Fact",
                "[Theory",
                "[Test",
                "[TestMethod",
                "[TestCase",
            ]
            .iter()
            .any(|mark| has_word(line, mark)),
            Self::Swift | Self::Php => has_word(line, "@Test") || has_word(line, "#[Test"),
            Self::Python
            | Self::JavaScript
            | Self::Go
            | Self::Ruby
            | Self::Elixir
            | Self::Cpp
            | Self::Dart
            | Self::Shell => false,
        }
    }

    pub(super) fn test_name(self, line: &str, marked: bool) -> Option<String> {
        match self {
            Self::Rust => after_word(line, "fn ").filter(|_| marked).map(identifier),
            Self::Python => after_word(line, "def ").map(identifier).filter(|name| name.starts_with("test")),
            Self::JavaScript | Self::Dart => call_with_name(
                line,
                &["it", "test", "specify", "testWidgets", "Deno.test", "xit", "xtest", "fit"],
            ),
            Self::Go => after_word(line, "func ")
                .map(identifier)
                .filter(|name| ["Test", "Fuzz", "Example"].iter().any(|start| name.starts_with(start)))
                .or_else(|| call_with_name(line, &["t.Run"])),
            Self::Annotated => marked.then(|| method_name(line)).flatten(),
            Self::Swift => {
                after_word(line, "func ").map(identifier).filter(|name| marked || name.starts_with("test"))
            }
            Self::Php => after_word(line, "function ")
                .map(identifier)
                .filter(|name| marked || name.starts_with("test"))
                .or_else(|| call_with_name(line, &["it", "test"])),
            Self::Ruby => after_word(line, "def ")
                .map(identifier)
                .filter(|name| name.starts_with("test"))
                .or_else(|| quoted_after(line, &["it ", "test ", "specify ", "scenario ", "xit ", "it("])),
            Self::Elixir => quoted_after(line, &["test ", "property "]),
            Self::Cpp => ["TEST(", "TEST_F(", "TEST_P(", "TEST_CASE(", "BOOST_AUTO_TEST_CASE("]
                .iter()
                .find_map(|start| line.strip_prefix(start))
                .map(|rest| rest.split(')').next().unwrap_or(rest).replace(['"', ' '], "").replace(',', ".")),
            Self::Shell => quoted_after(line, &["@test "]),
        }
        .filter(|name| !name.is_empty())
    }

    /// `plain`: the line without its strings, where words mean nothing.
    pub(super) fn skip_marks(self, line: &str, plain: &str) -> Vec<String> {
        let marks: &[&'static str] = match self {
            Self::Rust => return rust_marks(line, plain),
            Self::Python => &[
                "pytest.mark.skip",
                "pytest.mark.xfail",
                "unittest.skip",
                "pytest.skip(",
                "pytest.xfail(",
                "pytest.importorskip(",
                "unittest.SkipTest",
                "self.skipTest(",
                "expectedFailure",
                "__test__ = False",
            ],
            Self::JavaScript => &[
                "it.skip",
                "test.skip",
                "describe.skip",
                "suite.skip",
                "context.skip",
                "xit(",
                "xtest(",
                "xdescribe(",
                "it.todo",
                "test.todo",
                "it.only",
                "test.only",
                "describe.only",
                "fit(",
                "fdescribe(",
                "this.skip(",
                "test.fixme",
                "it.skipIf",
                "test.skipIf",
                "describe.skipIf",
                "it.runIf",
                "test.runIf",
                "describe.runIf",
                "it.fails",
                "test.fails",
                "it.failing",
                "test.failing",
                "it.concurrent.skip",
                "test.concurrent.skip",
                "it.concurrent.only",
                "test.concurrent.only",
                "describe.todo",
                "suite.only",
                "context.only",
                "specify.skip",
                "specify.only",
                "xcontext(",
                "fcontext(",
                "t.skip(",
                "ctx.skip(",
                "t.todo(",
                "pending(",
                "skip: true",
                "todo: true",
                "only: true",
                "skip: '",
                "skip: \"",
                "['skip']",
                "['only']",
                "expect.assertions(0)",
                ".each([])",
            ],
            Self::Go => &["t.Skip(", "t.Skipf(", "t.SkipNow(", "tb.Skip(", "tt.Skip(", "b.Skip(", "f.Skip("],
            Self::Annotated => &["@Disabled", "@Ignore", "[Ignore", "Skip =", "Skip=", "assumeTrue(false)"],
            Self::Swift => &["XCTSkip", ".disabled("],
            Self::Ruby => &["xit ", "xdescribe ", "xcontext ", "skip ", "pending ", "skip: true"],
            Self::Php => &["markTestSkipped", "markTestIncomplete", "->skip("],
            Self::Elixir => &["@tag :skip", "@moduletag :skip", "@tag skip"],
            Self::Cpp => &["DISABLED_", "GTEST_SKIP"],
            Self::Dart => &["skip: true", "skip: '"],
            Self::Shell => &["skip"],
        };
        let mut found: Vec<String> = marks
            .iter()
            .filter(|mark| has_word(if mark.contains(['\'', '"']) { line } else { plain }, mark))
            .map(|mark| (*mark).to_owned())
            .collect();
        if self == Self::Python {
            found.extend(python_marks(line));
        }
        found
    }

    pub(super) fn assertions_in(self, line: &str) -> usize {
        let starts: &[&str] = match self {
            Self::Rust => &["assert", "prop_assert", "debug_assert", "panic!"],
            Self::Python => &["assert", "self.assert", "pytest.raises", "self.fail"],
            Self::JavaScript => &[
                "expect(",
                "expect.",
                "assert",
                "should.",
                "should(",
                "t.is(",
                "t.deepEqual(",
                "t.true(",
                "t.throws(",
            ],
            Self::Go => &["t.Error", "t.Fatal", "t.Fail", "require.", "assert.", "is."],
            Self::Annotated => &["assert", "Assert.", "verify(", "expect", "fail(", "should"],
            Self::Swift => &["XCTAssert", "XCTFail", "#expect", "#require", "XCTUnwrap"],
            Self::Ruby => &["assert", "refute", "expect(", "expect {", "should", "must_"],
            Self::Php => &["$this->assert", "self::assert", "expect(", "$this->expectException", "assert"],
            Self::Elixir => &["assert", "refute"],
            Self::Cpp => &["ASSERT", "EXPECT", "REQUIRE", "CHECK", "assert"],
            Self::Dart => &["expect(", "expectLater("],
            Self::Shell => &["assert", "[ ", "[[ ", "refute", "diff ", "grep -q"],
        };
        count_starts(line, starts)
    }
}

pub(super) fn is_attribute(line: &str) -> bool {
    line.starts_with("#[") || line.starts_with('@') || line.starts_with('[')
}

/// Does the line hold this text, not as the end of a longer word?
fn has_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let joined = |c: char| c.is_alphanumeric() || c == '_';
        let starts = !word.starts_with(joined) || !line[..at].ends_with(joined);
        let ends = !word.ends_with(joined)
            || word.ends_with('_')
            || !line[at + word.len()..].starts_with(|c: char| c.is_lowercase() && !word.ends_with("skip"));
        starts && ends
    })
}

/// How many words of the line begin with one of these.
fn count_starts(line: &str, starts: &[&str]) -> usize {
    let mut count = 0;
    let mut at = 0;
    let mut in_word = false;
    while let Some(c) = line[at..].chars().next() {
        let rest = &line[at..];
        let word_char = c.is_alphanumeric() || c == '_';
        if !in_word && let Some(start) = starts.iter().find(|start| rest.starts_with(**start)) {
            count += 1;
            at += start.len();
            in_word = start.ends_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '.'));
            continue;
        }
        in_word = word_char || (c == '.' && in_word) || (c == ':' && in_word && rest.starts_with("::"));
        at += c.len_utf8();
    }
    count
}

/// What follows the keyword, if it stands at the start of a word.
pub(super) fn after_word<'a>(line: &'a str, keyword: &str) -> Option<&'a str> {
    let at = line
        .match_indices(keyword)
        .map(|(at, _)| at)
        .find(|&at| at == 0 || line[..at].ends_with([' ', '\t', ')']))?;
    Some(line[at + keyword.len()..].trim_start())
}

pub(super) fn identifier(text: &str) -> String {
    text.chars().take_while(|c| c.is_alphanumeric() || matches!(c, '_' | '?' | '!')).collect()
}

/// `name(` or `name.each(…)(` at the start of the line, and the first string after it.
fn call_with_name(line: &str, calls: &[&str]) -> Option<String> {
    calls.iter().find_map(|call| {
        let rest = line.strip_prefix(call)?;
        rest.starts_with(['(', '.']).then(|| quoted(rest))?
    })
}

fn quoted_after(line: &str, starts: &[&str]) -> Option<String> {
    starts.iter().find_map(|start| line.strip_prefix(start)).and_then(quoted)
}

fn quoted(text: &str) -> Option<String> {
    let at = text.find(['"', '\'', '`'])?;
    let quote = char::from(text.as_bytes()[at]);
    let body = &text[at + 1..];
    Some(body[..body.find(quote).unwrap_or(body.len())].to_owned())
}

/// The identifier before the first bracket of a method's declaration.
fn method_name(line: &str) -> Option<String> {
    let line = line.trim_start_matches(|c: char| c != ')' && (c == '@' || c == '['));
    let head = line.split('(').next().filter(|head| head.len() < line.len())?;
    if is_attribute(line)
        || head.starts_with("Test")
        || head.starts_with("Fact")
        || head.starts_with("Theory")
    {
        return None;
    }
    let name = head.trim_end().trim_end_matches('`');
    let words = name.split_whitespace().count();
    let last = name.rsplit(|c: char| !(c.is_alphanumeric() || c == '_')).next().unwrap_or_default();
    // A declaration has a type or keyword before its name; an annotation's arguments do not.
    (words > 1 && !last.is_empty()).then(|| last.to_owned())
}
