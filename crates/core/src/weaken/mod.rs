//! Notices when a change weakens tests: deletes or skips them, takes away what they assert, or keeps them
//! from having an effect.
//!
//! A heuristic with clear words, not a judge: it reads test files of common languages as text,
//! without comments, and compares each test by name before and after. Moving or renaming a test is
//! not weakening, nor is what was there before. Data files, snapshots and what a test's helpers do are
//! not looked into.

mod aliases;
mod asks;
mod body;
mod constant;
mod endings;
mod equality;
mod examples;
mod hooks;
mod language;
mod loading;
mod marks;
mod modules;
mod product;
mod python_names;
mod reader;
mod replaced;
mod strip;

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::event::{Flag, FlagKind};
use language::{Language, Mark, On, Suite, TestCase};

/// A file of the change, as it was and as it is.
pub struct TestFile<'a> {
    pub path: &'a str,
    pub before: Option<&'a str>,
    pub after: Option<&'a str>,
}

/// Does a file of this path hold tests, by the habits of common languages?
pub fn is_test_path(path: &str) -> bool {
    let mut parts = path.split(['/', '\\']).rev();
    let name = parts.next().unwrap_or_default();
    let in_test_folder = parts.any(|folder| {
        matches!(
            folder,
            "test" | "tests" | "spec" | "specs" | "__tests__" | "e2e" | "integration-tests" | "testing"
        ) || folder.ends_with("Tests")
            || folder.ends_with(".Test")
    });
    in_test_folder || is_test_name(name)
}

fn is_test_name(name: &str) -> bool {
    let (stem, extension) = name.rsplit_once('.').unwrap_or((name, ""));
    let lower = stem.to_lowercase();
    let marked = ["test", "spec", "tests", "e2e"].iter().any(|mark| {
        // A mark ends the name behind one of these; alone it is a name as any other.
        lower.strip_suffix(mark).is_some_and(|before| before.ends_with(['.', '_', '-']))
    });
    let class = ["Test", "Tests", "Spec", "IT", "TestCase"].iter().any(|end| stem.ends_with(end))
        && matches!(extension, "java" | "kt" | "scala" | "groovy" | "cs" | "swift" | "php" | "hs");
    marked
        || class
        || lower.starts_with("test_")
        || extension == "bats"
        || matches!(name, "conftest.py" | "tests.py" | "tests.rs" | "test.rs")
}

/// Can a file of this path weaken tests that are elsewhere, even if it is new?
pub fn governs_tests(path: &str) -> bool {
    let name = path.rsplit(['/', '\\']).next().unwrap_or_default().to_lowercase();
    let (stem, extension) = name.rsplit_once('.').unwrap_or((&name, ""));
    let script = matches!(extension, "js" | "ts" | "mjs" | "cjs" | "mts" | "cts" | "jsx" | "tsx");
    let runner =
        ["test", "jest", "vitest", "mocha", "spec"].iter().any(|runner| path.to_lowercase().contains(runner));
    name == "conftest.py"
        || (extension == "go" && stem.ends_with("_test"))
        || (script && runner && stem.contains("setup"))
}

/// Can any test of this file fail? In doubt it can: where we cannot read it, or find no tests in it.
pub fn can_fail(path: &str, text: &str) -> bool {
    let Some(language) = Language::of(path) else { return true };
    let suite = language.read(path, text);
    let is_idle = |test: &TestCase| {
        let is_marked = suite.marks.iter().any(|mark| place(mark) == test.name);
        test.assertions == 0 || is_marked
    };
    suite.tests.is_empty() || suite.assertions > 0 && !suite.tests.iter().all(is_idle)
}

/// What the change weakens, one flag per file and way.
pub fn weakened(files: &[TestFile<'_>]) -> Vec<Flag> {
    let mut flags = weaker_suites(&files.iter().filter_map(Compared::new).collect::<Vec<_>>(), files);
    flags.extend(weaker_examples(files));
    flags.extend(reaching_into_tests(files));
    flags.extend(standing_in(files));
    flags
}

fn weaker_suites(suites: &[Compared<'_>], files: &[TestFile<'_>]) -> Vec<Flag> {
    let before = Tally::of(suites.iter().map(|file| &file.before));
    let after = Tally::of(suites.iter().map(|file| &file.after));
    let mut flags = Vec::new();
    for file in suites {
        flags.extend(removed_tests(file, &before, &after, files));
        flags.extend(renamed_away(file, &after));
        flags.extend(lost_modules(file, files));
        flags.extend(weaker_tests(file, &before, &after));
    }
    flags
}

/// What became of tests that are still there.
fn weaker_tests(file: &Compared<'_>, before: &Tally<'_>, after: &Tally<'_>) -> Vec<Flag> {
    let marks = new_marks(file, before, after);
    let fewer = lost_assertions(file, before, after);
    let trivial = trivial_assertions(file, before, after);
    marks.into_iter().chain(fewer).chain(trivial).collect()
}

/// As for tests, of the examples in comments that are tests too.
fn weaker_examples(files: &[TestFile<'_>]) -> Vec<Flag> {
    let texts = files.iter().filter_map(|file| Some((file.path, file.after?)));
    let explained = examples::explained(texts);
    let suites: Vec<Compared<'_>> =
        files.iter().filter_map(|file| Compared::of_examples(file, &explained)).collect();
    let before = Tally::of(suites.iter().map(|file| &file.before));
    let after = Tally::of(suites.iter().map(|file| &file.after));
    let weaker = |file| {
        let mut flags = weaker_tests(file, &before, &after);
        let gone: BTreeSet<&str> = names(&file.before).filter(|name| after.count(name) == 0).collect();
        flags.extend((!gone.is_empty()).then(|| file.flag(format!("removed {}", listed(&gone)))));
        flags
    };
    suites.iter().flat_map(weaker).collect()
}

/// What files that are no tests themselves do to tests now and did not do before.
fn reaching_into_tests(files: &[TestFile<'_>]) -> Vec<Flag> {
    let products: Vec<Product<'_>> = files.iter().filter_map(Product::new).collect();
    products.iter().flat_map(|product| product.flags(&products)).collect()
}

/// What tests put in the place of the product now and did not before.
fn standing_in(files: &[TestFile<'_>]) -> Vec<Flag> {
    let products: Vec<Product<'_>> = files.iter().filter_map(Product::new).collect();
    let modules = products.iter().map(|product| module_of(product.path)).collect();
    let variables = products.iter().filter(|product| product.language == Language::Go).flat_map(|product| {
        let before = replaced::variables_of(&product.before.code);
        replaced::variables_of(&product.after.code).into_iter().filter(move |name| !before.contains(name))
    });
    let variables = variables.collect();
    let tests = files.iter().filter(|file| is_test_path(file.path) || governs_tests(file.path));
    let found = tests.filter_map(|file| {
        let language = Language::of(file.path)?;
        let read = |text: Option<&str>| {
            let (code, _) = language.code_of(text.unwrap_or_default());
            replaced::replaced(language, &code, &modules, &variables)
        };
        let new = added(&read(file.before), read(file.after));
        let detail = format!("puts its own in the place of {}", listed(&new));
        let flag = Flag { kind: FlagKind::WeakenedTests, what: file.path.to_owned(), detail };
        (!new.is_empty()).then_some(flag)
    });
    found.collect()
}

/// The name by which a file is imported: that of its folder, if it stands for it.
fn module_of(path: &str) -> &str {
    let mut parts = path.rsplit('/');
    let name = parts.next().unwrap_or_default();
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    if stem == "__init__" { parts.next().unwrap_or(stem) } else { stem }
}

/// A file of the change that is no test and sets none up.
struct Product<'a> {
    path: &'a str,
    language: Language,
    /// The first text that we know of it.
    first: &'a str,
    before: Code,
    after: Code,
}

/// A text without comments, and without strings either.
struct Code {
    code: String,
    plain: String,
}

impl<'a> Product<'a> {
    fn new(file: &TestFile<'a>) -> Option<Self> {
        let is_product = !is_test_path(file.path) && !governs_tests(file.path);
        let language = Language::of(file.path).filter(|_| is_product)?;
        let read = |text: Option<&str>| {
            let (code, plain) = language.code_of(text.unwrap_or_default());
            Code { code, plain }
        };
        let first = file.before.or(file.after).unwrap_or_default();
        let (before, after) = (read(file.before), read(file.after));
        Some(Self { path: file.path, language, first, before, after })
    }

    fn flags(&self, all: &[Self]) -> Vec<Flag> {
        let alike: Vec<&Self> = all.iter().filter(|other| other.language == self.language).collect();
        let is_loaded = self.is_loaded(&alike);
        let read = |code: &Code| self.reaches(code, is_loaded);
        let mut reached = added(&read(&self.before), read(&self.after));
        reached.extend(self.equalities(&alike));
        let asks = |code: &Code| asks::asks_if_tested(self.language, &code.code);
        let asked = added(&asks(&self.before), asks(&self.after));
        let flag = |kind, detail| Flag { kind, what: self.path.to_owned(), detail };
        let mut flags = Vec::new();
        if !reached.is_empty() {
            let detail = format!("the product reaches into the tests: {}", listed(&reached));
            flags.push(flag(FlagKind::WeakenedTests, detail));
        }
        if !asked.is_empty() {
            flags.push(flag(FlagKind::AsksIfTested, listed(&asked)));
        }
        flags
    }

    fn reaches(&self, Code { code, plain }: &Code, is_loaded: bool) -> Vec<String> {
        let mut found = product::reaches_into_tests(self.language, code, plain);
        if is_loaded {
            found.extend(loading::ends_when_loaded(self.language, code, plain));
        }
        found
    }

    /// Is it imported, rather than run as a program?
    fn is_loaded(&self, alike: &[&Self]) -> bool {
        let others: Vec<(&str, &str)> = alike.iter().map(|other| (other.path, &*other.after.code)).collect();
        self.language != Language::JavaScript
            || !modules::is_only_run(self.path, self.first, &self.after.plain, &others)
    }

    fn equalities(&self, alike: &[&Self]) -> Vec<String> {
        let before: Vec<&str> = alike.iter().map(|other| &*other.before.plain).collect();
        let after: Vec<&str> = alike.iter().map(|other| &*other.after.plain).collect();
        let sides = equality::Sides { before: &before, after: &after };
        equality::newly_equal_to_everything(self.language, &self.after.plain, &sides)
    }
}

/// What is there more often than before.
fn added<T: PartialEq + Clone>(before: &[T], after: Vec<T>) -> Vec<T> {
    let mut known = before.to_vec();
    let is_new = |found: &T| match known.iter().position(|other| other == found) {
        Some(at) => {
            known.swap_remove(at);
            false
        }
        None => true,
    };
    after.into_iter().filter(is_new).collect()
}

struct Compared<'a> {
    file: &'a TestFile<'a>,
    before: Suite,
    after: Suite,
}

impl<'a> Compared<'a> {
    /// Files in languages we cannot read, and code without tests on either side, say nothing.
    fn new(file: &'a TestFile<'a>) -> Option<Self> {
        let language = Language::of(file.path)?;
        let before = language.read(file.path, file.before.unwrap_or_default());
        let mut after = language.read(file.path, file.after.unwrap_or_default());
        if file.before.is_none() && !is_collected(language, file.path) {
            // Tests that came to where no runner looks for them are no tests any more.
            after.tests.clear();
        }
        let of_run = after.marks.iter().any(|mark| mark.on == On::Run);
        let modules = before.modules != after.modules;
        let tests = is_test_path(file.path)
            || !before.tests.is_empty()
            || !after.tests.is_empty()
            || of_run
            || modules;
        tests.then_some(Self { file, before, after })
    }

    /// The examples of what is still there; those of what is gone went with it.
    fn of_examples(file: &'a TestFile<'a>, explained: &HashSet<String>) -> Option<Self> {
        let mut before = examples::suite_of(file.path, file.before.unwrap_or_default());
        let after = examples::suite_of(file.path, file.after.unwrap_or_default());
        before.tests.retain(|test| explained.contains(&test.name));
        (!before.tests.is_empty() || !after.tests.is_empty()).then_some(Self { file, before, after })
    }

    fn flag(&self, detail: String) -> Flag {
        Flag { kind: FlagKind::WeakenedTests, what: self.file.path.to_owned(), detail }
    }
}

/// Do runners find tests in a file of this name, where they go by names?
fn is_collected(language: Language, path: &str) -> bool {
    let name = path.rsplit(['/', '\\']).next().unwrap_or_default();
    match language {
        Language::Python => {
            name.starts_with("test") || name.ends_with("_test.py") || name.ends_with("_tests.py")
        }
        Language::Go => {
            let elsewhere =
                ["windows", "darwin", "plan9", "js", "wasip1", "solaris", "aix", "android", "ios"];
            let stem = name.strip_suffix("_test.go");
            stem.is_some_and(|stem| !elsewhere.iter().any(|system| stem.ends_with(&format!("_{system}"))))
                && !name.starts_with(['_', '.'])
                && !path.contains("testdata/")
        }
        Language::JavaScript => is_test_path(path),
        Language::Rust
        | Language::Annotated
        | Language::Swift
        | Language::Ruby
        | Language::Php
        | Language::Elixir
        | Language::Cpp
        | Language::Dart
        | Language::Shell => true,
    }
}

/// How often each test name occurs over all files, how much tests of that name assert, and their marks.
struct Tally<'a> {
    tests: HashMap<&'a str, (usize, usize)>,
    marks: HashMap<(&'a str, &'a str), usize>,
    trivial: HashMap<&'a str, usize>,
}

impl<'a> Tally<'a> {
    fn of(suites: impl Iterator<Item = &'a Suite>) -> Self {
        let mut tests: HashMap<&str, (usize, usize)> = HashMap::new();
        let mut marks: HashMap<(&str, &str), usize> = HashMap::new();
        let mut trivial: HashMap<&str, usize> = HashMap::new();
        for suite in suites {
            for test in &suite.tests {
                let entry = tests.entry(&test.name).or_default();
                entry.0 += 1;
                entry.1 += test.assertions;
            }
            for trivial_one in &suite.trivial {
                *trivial.entry(trivial_one.text.as_str()).or_default() += 1;
            }
            for mark in &suite.marks {
                *marks.entry((&mark.what, place(mark))).or_default() += 1;
            }
        }
        Self { tests, marks, trivial }
    }

    fn marked(&self, mark: &Mark) -> usize {
        self.marks.get(&(mark.what.as_str(), place(mark))).copied().unwrap_or_default()
    }

    fn count(&self, name: &str) -> usize {
        self.tests.get(name).map_or(0, |entry| entry.0)
    }

    fn assertions(&self, name: &str) -> usize {
        self.tests.get(name).map_or(0, |entry| entry.1)
    }
}

/// The test that a mark stands on; empty for groups and the run.
fn place(mark: &Mark) -> &str {
    match &mark.on {
        On::Test(name) => name,
        On::Group | On::Run => "",
    }
}

fn removed_tests(
    file: &Compared<'_>,
    before: &Tally<'_>,
    after: &Tally<'_>,
    files: &[TestFile<'_>],
) -> Option<Flag> {
    let gone: BTreeSet<&str> =
        names(&file.before).filter(|name| after.count(name) < before.count(name)).collect();
    let (was, is) = (file.before.tests.len(), file.after.tests.len());
    if file.file.before.is_some() && file.file.after.is_none() {
        if was == 0 && !moved_whole(file.file, files) && file.before.assertions > 0 {
            return Some(
                file.flag(format!("test file deleted, with {}", count(file.before.assertions, "assertion"))),
            );
        }
        return (!gone.is_empty()).then(|| {
            file.flag(format!("test file deleted: {} gone: {}", count(gone.len(), "test"), listed(&gone)))
        });
    }
    // As many tests under new names are renamed ones.
    (is < was && !gone.is_empty())
        .then(|| file.flag(format!("{} before, {is} after: removed {}", count(was, "test"), listed(&gone))))
}

fn names(suite: &Suite) -> impl Iterator<Item = &str> {
    suite.tests.iter().map(|test| test.name.as_str())
}

fn moved_whole(file: &TestFile<'_>, files: &[TestFile<'_>]) -> bool {
    files.iter().any(|other| other.before.is_none() && other.after == file.before)
}

/// Tests that are still there as functions nobody calls, while others make up their number.
fn renamed_away(file: &Compared<'_>, after: &Tally<'_>) -> Option<Flag> {
    if file.after.tests.len() < file.before.tests.len() {
        return None;
    }
    let gone = names(&file.before).filter(|name| after.count(name) == 0);
    let idle: BTreeSet<&str> =
        gone.filter(|name| file.after.others.iter().any(|other| is_left_of(other, name, file))).collect();
    (!idle.is_empty()).then(|| file.flag(format!("no longer run as tests: {}", listed(&idle))))
}

/// Is this function what is left of a test: `b`, `_test_b` and `disabled_test_b` of `test_b`, `testB` of `TestB`?
fn is_left_of(other: &str, test: &str, file: &Compared<'_>) -> bool {
    if file.before.others.iter().any(|before| before == other) {
        return false;
    }
    let bare = test.strip_prefix("test_").unwrap_or(test);
    let taken = names(&file.after).any(|name| name.contains(bare));
    other.contains(test) || other.eq_ignore_ascii_case(test) || (other == bare && !taken)
}

/// Modules of tests that are not compiled any more, although their file is still there.
fn lost_modules(file: &Compared<'_>, files: &[TestFile<'_>]) -> Option<Flag> {
    let lost: BTreeSet<&str> = file
        .before
        .modules
        .iter()
        .filter(|name| !file.after.modules.contains(name))
        .filter(|name| {
            !files
                .iter()
                .any(|other| is_module(other.path, name) && (other.before.is_none() || other.after.is_none()))
        })
        .map(String::as_str)
        .collect();
    (!lost.is_empty() && file.file.after.is_some())
        .then(|| file.flag(format!("no longer compiled: {}", listed(lost.iter().copied()))))
}

fn is_module(path: &str, name: &str) -> bool {
    path.ends_with(&format!("{name}.rs")) || path.ends_with(&format!("{name}/mod.rs"))
}

/// Marks that were not there before. A new test that is skipped takes nothing away; a mark that narrows the
/// run to one test, or stands on a whole group or the run, does. One that moved along with its test is not new.
fn new_marks(file: &Compared<'_>, before: &Tally<'_>, after: &Tally<'_>) -> Option<Flag> {
    let mut was: Vec<&Mark> = file.before.marks.iter().collect();
    let mut fresh: Vec<String> = Vec::new();
    for mark in &file.after.marks {
        if let Some(known) = was.iter().position(|other| *other == mark) {
            was.swap_remove(known);
            continue;
        }
        if after.marked(mark) > before.marked(mark) && takes_away(mark, file, before) {
            fresh.push(match &mark.on {
                On::Test(name) => format!("{} on {name}", shown(&mark.what)),
                On::Group | On::Run => shown(&mark.what).to_owned(),
            });
        }
    }
    (!fresh.is_empty()).then(|| {
        file.flag(format!("newly skipped or narrowed: {}", listed(fresh.iter().map(String::as_str))))
    })
}

fn takes_away(mark: &Mark, file: &Compared<'_>, before: &Tally<'_>) -> bool {
    let is_new = file.file.before.is_none();
    match &mark.on {
        On::Run => true,
        On::Group => !is_new || governs_tests(file.file.path) && file.file.path.ends_with(".py"),
        On::Test(name) => {
            before.count(name) > 0 || (narrows(&mark.what) && !is_new) || stands_in(name, file, before)
        }
    }
}

/// Is this marked test what a former one became under another name?
fn stands_in(name: &str, file: &Compared<'_>, before: &Tally<'_>) -> bool {
    let gone = names(&file.before).filter(|former| !names(&file.after).any(|name| name == *former)).count();
    let fresh = names(&file.after).filter(|name| before.count(name) == 0);
    let unmarked = fresh.filter(|name| !file.after.marks.iter().any(|mark| place(mark) == *name)).count();
    before.count(name) == 0 && unmarked < gone
}

fn narrows(mark: &str) -> bool {
    mark.contains("only")
        || mark.starts_with("fit")
        || mark.starts_with("fdescribe")
        || mark.starts_with("fcontext")
}

/// The mark as people call it, without an opening bracket left over from the search.
fn shown(mark: &str) -> &str {
    let mark = mark.trim_start_matches("#[");
    if mark.ends_with("()") || mark.ends_with(')') {
        mark
    } else {
        mark.trim_end_matches(['(', ' ', '\'', '"'])
    }
}

/// Tests that still exist but assert less, and renamed tests that assert less together.
fn lost_assertions(file: &Compared<'_>, before: &Tally<'_>, after: &Tally<'_>) -> Option<Flag> {
    let mut weaker: Vec<String> = Vec::new();
    let kept: BTreeSet<&str> = names(&file.before).filter(|name| after.count(name) > 0).collect();
    for name in kept {
        let (was, is) = (before.assertions(name), after.assertions(name));
        if is < was && after.count(name) >= before.count(name) {
            weaker.push(format!("{name} ({} before, {is} after)", count(was, "assertion")));
        }
    }
    let renamed_was: usize = asserted(&file.before, |test| after.count(&test.name) == 0);
    let renamed_is: usize = asserted(&file.after, |test| before.count(&test.name) == 0);
    let as_many_tests = file.after.tests.len() >= file.before.tests.len() && file.file.after.is_some();
    if as_many_tests && renamed_is < renamed_was {
        weaker
            .push(format!("renamed tests ({} before, {renamed_is} after)", count(renamed_was, "assertion")));
    }
    (!weaker.is_empty())
        .then(|| file.flag(format!("fewer assertions: {}", listed(weaker.iter().map(String::as_str)))))
}

fn asserted(suite: &Suite, wanted: impl Fn(&TestCase) -> bool) -> usize {
    suite.tests.iter().filter(|test| wanted(test)).map(|test| test.assertions).sum()
}

/// Assertions of tests that were there, or of no test, that cannot fail any more. A new test takes nothing away
/// from others, however little it says.
fn trivial_assertions(file: &Compared<'_>, before: &Tally<'_>, after: &Tally<'_>) -> Option<Flag> {
    let (former, now) = (&before.trivial, &after.trivial);
    let is_new = |test: &Option<String>| test.as_ref().is_some_and(|name| before.count(name) == 0);
    let after: Vec<&str> = file
        .after
        .trivial
        .iter()
        .filter(|trivial| !is_new(&trivial.test))
        .map(|trivial| trivial.text.as_str())
        .collect();
    let was: Vec<&str> = file.before.trivial.iter().map(|trivial| trivial.text.as_str()).collect();
    let example = after.iter().find(|text| !was.contains(text)).or(after.last())?;
    let more = after.len().checked_sub(was.len()).filter(|more| *more > 0)?;
    // What came along with its test from another file is not new.
    if after.iter().all(|text| now.get(text) <= former.get(text)) {
        return None;
    }
    Some(file.flag(format!("{} that cannot fail: {example}", count(more, "new assertion"))))
}

fn count(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

/// The first few names; a person looks at the diff for the rest.
fn listed<'a>(names: impl IntoIterator<Item = &'a (impl AsRef<str> + ?Sized + 'a)>) -> String {
    const SHOWN: usize = 8;
    let names: Vec<&str> = names.into_iter().map(AsRef::as_ref).collect();
    let mut text = names.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN {
        text.push_str(&format!(" and {} more", names.len() - SHOWN));
    }
    text
}
