//! Examples in the comments of Rust, which `cargo test` runs: each item's examples are read as one test.
//!
//! An example goes with what it explains: where an item is gone, its examples are not missed.

use std::collections::HashSet;

use super::language::{Language, Mark, On, Suite, TestCase, identifier};

/// The examples of a file, as tests that are called after what they explain.
pub(super) fn suite_of(path: &str, text: &str) -> Suite {
    let mut suite = Suite::default();
    if !has_examples(path) {
        return suite;
    }
    for example in examples(path, text) {
        let name = format!("example of {}", example.item);
        let code = format!("#[test]\nfn example() {{\n{}\n}}\n", example.code);
        let read = Language::Rust.read(path, &code);
        // One block of several may be empty; what an item's examples assert is counted together.
        let marks = read.marks.into_iter().map(|mark| mark.what).filter(|mark| mark != "empty body");
        let marks = marks.chain(example.marks);
        let on = On::Test(name.clone());
        suite.marks.extend(marks.map(|what| Mark { what, on: on.clone() }));
        suite.trivial.extend(read.trivial.into_iter().map(|mut trivial| {
            trivial.test = Some(name.clone());
            trivial
        }));
        match suite.tests.iter_mut().find(|test| test.name == name) {
            Some(test) => test.assertions += read.assertions,
            None => suite.tests.push(TestCase { name, assertions: read.assertions }),
        }
    }
    suite
}

/// The names of what these files define, as examples are called after them.
pub(super) fn explained<'a>(texts: impl Iterator<Item = (&'a str, &'a str)>) -> HashSet<String> {
    let mut found = HashSet::new();
    for (path, text) in texts {
        found.insert(format!("example of {}", module_of(path)));
        let mut owner = Owner::default();
        for line in text.lines() {
            owner.note(line);
            found.extend(owner.defined(line).map(|name| format!("example of {name}")));
        }
    }
    found
}

/// Does rustdoc look for examples here? It does in libraries, of which a program and tests are none.
fn has_examples(path: &str) -> bool {
    const APART: [&str; 6] = ["bin", "tests", "examples", "benches", "fuzz", "xtask"];
    path.ends_with(".rs")
        && !matches!(path.rsplit('/').next(), Some("main.rs" | "build.rs"))
        && !path.split('/').any(|folder| APART.contains(&folder))
}

struct Example {
    item: String,
    code: String,
    /// `no_run`, `ignore` and what else keeps it from being run, or from having to pass.
    marks: Vec<String>,
}

fn examples(path: &str, text: &str) -> Vec<Example> {
    let mut found = Vec::new();
    let mut outer = Comment::default();
    let mut inner = Comment::default();
    let mut owner = Owner::default();
    for line in text.lines() {
        owner.note(line);
        let text = line.trim();
        if let Some(words) = text.strip_prefix("//!") {
            inner.take(words);
        } else if let Some(words) = text.strip_prefix("///").filter(|rest| !rest.starts_with('/')) {
            outer.take(words);
        } else if let Some(item) = owner.defined(line) {
            found.extend(outer.end(&item));
        } else if !is_between(text) {
            // A field or a variant.
            found.extend(outer.end("a part"));
        }
    }
    found.extend(inner.end(&module_of(path)));
    found
}

/// The type or trait whose methods the lines are.
#[derive(Default)]
struct Owner(Option<String>);

impl Owner {
    fn note(&mut self, line: &str) {
        if line.starts_with('}') {
            self.0 = None;
        }
        let of_impl = line.strip_prefix("unsafe ").unwrap_or(line).strip_prefix("impl");
        if let Some(rest) = of_impl.filter(|rest| rest.starts_with([' ', '<'])) {
            let own = rest
                .rsplit_once(" for ")
                .map_or_else(|| rest.rsplit_once("> ").map_or(rest, |(_, own)| own), |(_, own)| own);
            let path = own.trim_start().split(['<', ' ', '{']).next().unwrap_or_default();
            self.0 = path.rsplit("::").next().map(identifier);
        } else if line.starts_with("pub trait ") || line.starts_with("trait ") {
            self.0 = defined(line);
        }
    }

    fn defined(&self, line: &str) -> Option<String> {
        let name = defined(line.trim())?;
        let is_inside = line.starts_with([' ', '\t']);
        Some(match &self.0 {
            Some(owner) if is_inside => format!("{owner}::{name}"),
            Some(_) | None => name,
        })
    }
}

/// What may stand between a comment and the item that it explains.
fn is_between(line: &str) -> bool {
    line.is_empty()
        || line.starts_with("#[")
        || line.starts_with("//")
        || line.ends_with(")]")
        || line.ends_with(',')
}

/// The comment above an item.
#[derive(Default)]
struct Comment {
    examples: Vec<(String, Vec<String>)>,
    /// The code of the block that is open; nothing where it is no code of Rust.
    open: Option<Option<usize>>,
}

impl Comment {
    fn take(&mut self, words: &str) {
        let words = words.strip_prefix(' ').unwrap_or(words);
        let fence = words.trim_start().strip_prefix("```").or(words.trim_start().strip_prefix("~~~"));
        match (fence, self.open) {
            (Some(_), Some(_)) => self.open = None,
            (Some(info), None) => {
                let marks = marks_of(info);
                self.open = Some(marks.is_some().then_some(self.examples.len()));
                self.examples.extend(marks.map(|marks| (String::new(), marks)));
            }
            (None, Some(Some(at))) => {
                // A hash hides a line from readers, not from the test; two stand for one.
                let code = words.trim_start();
                let code = code.strip_prefix("# ").unwrap_or(code);
                if let Some((text, _)) = self.examples.get_mut(at).filter(|_| code != "#") {
                    text.push_str(code);
                    text.push('\n');
                }
            }
            (None, Some(None) | None) => {}
        }
    }

    fn end(&mut self, item: &str) -> Vec<Example> {
        let examples = std::mem::take(self).examples;
        let named = examples.into_iter().map(|(code, marks)| Example { item: item.to_owned(), code, marks });
        named.collect()
    }
}

/// What a fence says of its code; nothing if it is code of something else.
fn marks_of(info: &str) -> Option<Vec<String>> {
    let words = info.split([',', ' ', '{', '}']).map(str::trim).filter(|word| !word.is_empty());
    let mut marks = Vec::new();
    for word in words {
        match word {
            "no_run" | "should_panic" | "compile_fail" => marks.push(word.to_owned()),
            "rust" | "test_harness" | "allow_fail" | "standalone" | "standalone_crate" => {}
            _ if word.starts_with("ignore") => marks.push(word.to_owned()),
            _ if word.starts_with("edition") || is_error_code(word) => {}
            _ => return None,
        }
    }
    Some(marks)
}

fn is_error_code(word: &str) -> bool {
    word.strip_prefix('E').is_some_and(|code| code.len() == 4 && code.bytes().all(|c| c.is_ascii_digit()))
}

/// The name of the item that a line of Rust defines.
fn defined(line: &str) -> Option<String> {
    const KINDS: [&str; 9] =
        ["fn", "struct", "enum", "trait", "union", "mod", "static", "type", "macro_rules!"];
    // `pub(in crate::x) const unsafe extern "C" fn`
    const LONGEST_HEAD: usize = 8;
    let is_before = |word: &str| {
        word.starts_with("pub")
            || word.ends_with(['"', ')'])
            || matches!(word, "async" | "unsafe" | "extern" | "default")
    };
    let mut words = line.split_whitespace().take(LONGEST_HEAD);
    let mut is_constant = false;
    while let Some(word) = words.next() {
        if KINDS.contains(&word) {
            return words.next().map(identifier).filter(|name| !name.is_empty());
        }
        if word == "const" {
            is_constant = true;
        } else if !is_before(word) {
            return is_constant.then(|| identifier(word)).filter(|name| !name.is_empty());
        }
    }
    None
}

/// The module that a file is.
fn module_of(path: &str) -> String {
    let path = path.strip_suffix(".rs").unwrap_or(path);
    let path = path.strip_suffix("/mod").unwrap_or(path);
    format!("module {}", path.rsplit('/').next().unwrap_or(path))
}
