//! Goes through a test file line by line and notes its tests, marks and assertions.

use super::body;
use super::constant::trivial_in;
use super::language::{Language, Mark, On, Suite, TestCase, Trivial, after_word, identifier, is_attribute};

/// Goes through the lines of a file.
pub(super) struct Reader<'a> {
    language: Language,
    /// Without comments.
    code: Vec<&'a str>,
    /// Without comments and strings.
    plain: Vec<&'a str>,
    suite: Suite,
    /// The tests whose lines have not ended, innermost last, with the line after their last.
    open: Vec<(String, usize)>,
    /// Marks that wait for what they stand on.
    above: Vec<String>,
    /// The Python class around the lines, whose tests nobody collects: its indentation.
    uncollected: Option<usize>,
    /// The line after the hook of pytest around the lines.
    hook: usize,
    /// How many lines of tests are still to be looked into. Tests are hardly nested, so that each line is
    /// looked at a few times; the bound keeps hostile input cheap.
    budget: usize,
    /// Definitions of Python tests, to see which replace others.
    defined: Vec<(usize, String)>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(language: Language, code: &'a str, plain: &'a str) -> Self {
        Self {
            language,
            code: code.lines().collect(),
            plain: plain.lines().collect(),
            suite: Suite::default(),
            open: Vec::new(),
            above: Vec::new(),
            uncollected: None,
            hook: 0,
            budget: 2000 + 4 * code.lines().count(),
            defined: Vec::new(),
        }
    }

    pub(super) fn read_lines(mut self) -> Suite {
        let mut marked = false;
        for index in 0..self.code.len() {
            let line = self.code[index].trim();
            if line.is_empty() {
                continue;
            }
            self.open.retain(|(_, end)| *end > index);
            if self.language == Language::Python {
                self.note_class(index);
            }
            if self.language.marks_test(line) {
                marked = true;
            }
            let name = self.language.test_name(line, marked).filter(|_| self.uncollected.is_none());
            let started = name.is_some();
            match name {
                Some(name) => {
                    marked = false;
                    self.begin(index, name);
                }
                None => self.note_other(line),
            }
            self.note_marks(index, started);
            self.count_assertions(index);
        }
        let left = std::mem::take(&mut self.above);
        self.suite.marks.extend(left.into_iter().map(|what| Mark { what, on: On::Group }));
        self.suite
    }

    fn begin(&mut self, index: usize, name: String) {
        let most = body::LONGEST.min(self.budget);
        let lines = body::extent(self.language, &self.plain, index, most);
        self.budget = self.budget.saturating_sub(lines.len());
        let marks = std::mem::take(&mut self.above);
        let language = self.language;
        let hollow =
            body::hollow(language, &self.plain[lines.clone()], |line| language.assertions_in(line) > 0);
        let of_test = marks.into_iter().chain(hollow.into_iter().map(str::to_owned));
        let on = On::Test(name.clone());
        self.suite.marks.extend(of_test.map(|what| Mark { what, on: on.clone() }));
        if language == Language::Python {
            let place = (body::indent(self.code[index]), name.clone());
            if place.0 == 0 && self.defined.contains(&place) {
                self.suite.marks.push(Mark { what: "second definition".to_owned(), on });
            }
            self.defined.push(place);
        }
        self.suite.tests.push(TestCase { name: name.clone(), assertions: 0 });
        self.open.push((name, lines.end));
    }

    /// Classes that pytest and unittest pass over: neither called `Test…` nor derived from anything.
    fn note_class(&mut self, index: usize) {
        let line = self.code[index];
        let indent = body::indent(line);
        if self.uncollected.is_some_and(|of| indent <= of) {
            self.uncollected = None;
        }
        let Some(class) = line.trim().strip_prefix("class ") else { return };
        let derived = class.contains('(') && !class.contains("()") && !class.contains("(object)");
        if self.uncollected.is_none() && !class.starts_with("Test") && !derived {
            self.uncollected = Some(indent);
        }
    }

    fn note_other(&mut self, line: &str) {
        let keyword = match self.language {
            Language::Rust => "fn ",
            Language::Python => "def ",
            Language::Go => "func ",
            Language::JavaScript
            | Language::Annotated
            | Language::Swift
            | Language::Ruby
            | Language::Php
            | Language::Elixir
            | Language::Cpp
            | Language::Dart
            | Language::Shell => return,
        };
        self.suite.others.extend(after_word(line, keyword).map(identifier).filter(|name| !name.is_empty()));
        let declared = after_word(line, "mod ").filter(|_| self.language == Language::Rust);
        // A line such as `mod tests { use super::*;` has its module in this file.
        let declared = declared.and_then(|rest| rest.split_once(';')).map(|(name, _)| name.trim_end());
        let is_name = |name: &&str| identifier(name) == **name && name.contains("test");
        self.suite.modules.extend(declared.filter(is_name).map(str::to_owned));
    }

    fn note_marks(&mut self, index: usize, started: bool) {
        let line = self.code[index].trim();
        let attribute = !started && is_attribute(line);
        let hooks = self.language == Language::Python && line.starts_with("def pytest_");
        if hooks {
            self.hook = body::extent(self.language, &self.plain, index, body::LONGEST).end;
        }
        if index < self.hook {
            // What hooks do is looked at as a whole.
            return;
        }
        for what in self.language.skip_marks(line, self.plain[index].trim()) {
            if attribute {
                self.above.push(what);
            } else if started || concerns(&what, line) {
                let on = self.open.last().map_or(On::Group, |(name, _)| On::Test(name.clone()));
                self.suite.marks.push(Mark { what, on });
            }
        }
        if !started && !attribute {
            // The marks stood on something that is no test: a class, a module.
            let marks = std::mem::take(&mut self.above);
            let marks = marks.into_iter().filter(|what| concerns(what, line));
            self.suite.marks.extend(marks.map(|what| Mark { what, on: On::Group }));
        }
    }

    fn count_assertions(&mut self, index: usize) {
        let line = self.code[index].trim();
        let all = self.language.assertions_in(line);
        if all == 0 {
            return;
        }
        let statement = self.statement(index);
        let compact: String = line.chars().filter(|c| !c.is_whitespace()).collect::<String>().to_lowercase();
        let whole = usize::from(TRIVIAL_LINES.iter().any(|text| compact.starts_with(text)));
        let trivial = (whole + trivial_in(self.language, &statement, all)).min(all);
        if trivial > 0 {
            let text = crate::text::clip(line.trim_end_matches(';'), 80).into_owned();
            let test = self.suite.tests.last().map(|test| test.name.clone());
            self.suite.trivial.push(Trivial { text, test });
        }
        self.suite.assertions += all - trivial;
        if let Some(test) = self.suite.tests.last_mut() {
            test.assertions += all - trivial;
        }
    }

    /// The line with those that go on with it: until its brackets are closed, and where a call follows.
    fn statement(&self, index: usize) -> String {
        let mut statement = self.code[index].trim().to_owned();
        let mut depth = depth_of(self.plain[index]);
        let next = |line: usize| self.code.get(line).zip(self.plain.get(line));
        for line in index + 1..=index + LONGEST_STATEMENT {
            let Some((code, plain)) = next(line) else { break };
            if depth <= 0 && !code.trim_start().starts_with('.') {
                break;
            }
            statement.push_str(code.trim());
            depth += depth_of(plain);
        }
        statement
    }
}

/// Longer ones are data; the bound keeps hostile input cheap.
const LONGEST_STATEMENT: usize = 12;

fn depth_of(line: &str) -> i64 {
    line.chars().fold(0, |depth, c| match c {
        '(' | '[' | '{' => depth + 1,
        ')' | ']' | '}' => depth - 1,
        _ => depth,
    })
}

/// Does a mark above this line, or in it, concern tests? Most of what is compiled conditionally does not.
fn concerns(mark: &str, line: &str) -> bool {
    if !mark.starts_with("cfg(") {
        return mark != "pytest.fixture" && mark != "#[should_panic";
    }
    let module = after_word(line, "mod ").map(identifier);
    line.starts_with("#![cfg") || module.is_some_and(|name| name.contains("test") || name.contains("spec"))
}

/// Assertions that hold whatever the code does, without whitespace, in lower case: as the whole of a line.
const TRIVIAL_LINES: [&str; 2] = ["assertthat(true).istrue()", "refutefalse"];
