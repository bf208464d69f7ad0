//! Notices when a change weakens tests: deletes or skips them, or takes away what they assert.
//!
//! A heuristic with clear words, not a judge: it reads test files of common languages as text,
//! without comments, and compares each test by name before and after. Moving or renaming a test is
//! not weakening. Data files, snapshots and what a test's helpers do are not looked into.

mod language;
mod strip;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::event::{Flag, FlagKind};
use language::{Language, Suite, TestCase};

/// A file of the change, as it was and as it is.
pub struct TestFile<'a> {
    pub path: &'a str,
    pub before: Option<&'a str>,
    pub after: Option<&'a str>,
}

/// Does a file of this path hold tests, by the habits of common languages?
pub fn is_test_path(path: &str) -> bool {
    let path = path.replace('\\', "/");
    let mut parts = path.split('/').rev();
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
        lower.ends_with(&format!(".{mark}"))
            || lower.ends_with(&format!("_{mark}"))
            || lower.ends_with(&format!("-{mark}"))
    });
    let class = ["Test", "Tests", "Spec", "IT", "TestCase"].iter().any(|end| stem.ends_with(end))
        && matches!(extension, "java" | "kt" | "scala" | "groovy" | "cs" | "swift" | "php" | "hs");
    marked
        || class
        || lower.starts_with("test_")
        || extension == "bats"
        || matches!(name, "conftest.py" | "tests.py" | "tests.rs" | "test.rs")
}

/// What the change weakens, one flag per file and way.
pub fn weakened(files: &[TestFile<'_>]) -> Vec<Flag> {
    let suites: Vec<Compared<'_>> = files.iter().filter_map(Compared::new).collect();
    let before = Tally::of(suites.iter().map(|file| &file.before));
    let after = Tally::of(suites.iter().map(|file| &file.after));
    let mut flags = Vec::new();
    for file in &suites {
        flags.extend(removed_tests(file, &before, &after, files));
        flags.extend(new_skips(file, &before));
        flags.extend(lost_assertions(file, &before, &after));
        flags.extend(trivial_assertions(file));
    }
    flags
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
        let before = language.read(file.before.unwrap_or_default());
        let after = language.read(file.after.unwrap_or_default());
        let tests = is_test_path(file.path) || !before.tests.is_empty() || !after.tests.is_empty();
        tests.then_some(Self { file, before, after })
    }

    fn flag(&self, detail: String) -> Flag {
        Flag { kind: FlagKind::WeakenedTests, what: self.file.path.to_owned(), detail }
    }
}

/// How often each test name occurs over all files, and how much tests of that name assert.
struct Tally<'a> {
    tests: HashMap<&'a str, (usize, usize)>,
}

impl<'a> Tally<'a> {
    fn of(suites: impl Iterator<Item = &'a Suite>) -> Self {
        let mut tests: HashMap<&str, (usize, usize)> = HashMap::new();
        for test in suites.flat_map(|suite| &suite.tests) {
            let entry = tests.entry(&test.name).or_default();
            entry.0 += 1;
            entry.1 += test.assertions;
        }
        Self { tests }
    }

    fn count(&self, name: &str) -> usize {
        self.tests.get(name).map_or(0, |entry| entry.0)
    }

    fn assertions(&self, name: &str) -> usize {
        self.tests.get(name).map_or(0, |entry| entry.1)
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

/// Skip marks that were not there before. A new test that is skipped takes nothing away; a mark
/// that narrows the run to one test, or stands on a whole group, does.
fn new_skips(file: &Compared<'_>, before: &Tally<'_>) -> Option<Flag> {
    let is_new = file.file.before.is_none();
    let mut was = marks(&file.before);
    let mut fresh: Vec<String> = Vec::new();
    for (mark, test) in &file.after.skips {
        if let Some(left) = was.get_mut(mark.as_str()).filter(|left| **left > 0) {
            *left -= 1;
            continue;
        }
        let weakens = match test {
            Some(name) => before.count(name) > 0 || (narrows(mark) && !is_new),
            None => !is_new,
        };
        if weakens {
            fresh.push(match test {
                Some(name) => format!("{} on {name}", shown(mark)),
                None => shown(mark).to_owned(),
            });
        }
    }
    (!fresh.is_empty()).then(|| {
        file.flag(format!("newly skipped or narrowed: {}", listed(fresh.iter().map(String::as_str))))
    })
}

fn narrows(mark: &str) -> bool {
    mark.contains("only") || mark.starts_with("fit") || mark.starts_with("fdescribe")
}

/// The mark as people call it, without an opening bracket left over from the search.
fn shown(mark: &str) -> &str {
    mark.trim_start_matches("#[").trim_end_matches(['(', ' ', '\''])
}

fn marks(suite: &Suite) -> BTreeMap<&str, usize> {
    let mut marks = BTreeMap::new();
    for (mark, _) in &suite.skips {
        *marks.entry(mark.as_str()).or_default() += 1;
    }
    marks
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

fn trivial_assertions(file: &Compared<'_>) -> Option<Flag> {
    let (was, is) = (file.before.trivial.len(), file.after.trivial.len());
    let example = file
        .after
        .trivial
        .iter()
        .find(|text| !file.before.trivial.contains(text))
        .or(file.after.trivial.last())?;
    (is > was).then(|| file.flag(format!("{} that cannot fail: {example}", count(is - was, "new assertion"))))
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
