//! Files beside the tests that existing tests and scripts of a check read or take in: what they expect, and
//! what helps them. Found by the names in their texts, and only for files of which an attempt changed some.
//!
//! Product that tests import is not among them: a helper has to say by its path that it is one, and data must
//! not be used by the product itself.

use super::command::join;
use super::{Tree, glob, is_product_by_name, is_test_file, parent_of, runners, words_of};

/// How far from a test what helps it may be.
const MAX_HOPS: usize = 3;

/// How many files are read to find one that names another.
const MAX_READ: usize = 2000;

/// Texts that check something: where they run, and what they say.
pub(super) struct Checking {
    /// The directory they run in or lie in, and the name of the file.
    pub(super) path: String,
    pub(super) text: String,
}

/// Could a file of this path be what tests expect, or help them?
pub(super) fn is_candidate(path: &str) -> bool {
    is_expected(path) || is_data(path) || is_helper(path)
}

/// Which of these candidates are named by the existing tests, or by other texts that check something?
pub(super) fn of_checks<'a>(candidates: &[&'a str], own: &[Checking], tree: &dyn Tree) -> Vec<&'a str> {
    let files = tree.files();
    let tests = files.iter().filter(|path| is_code(path) && is_test_file(path)).take(MAX_READ);
    let tests = tests.filter_map(|path| Some(Checking { path: path.clone(), text: tree.read(path)? }));
    let tests = with_their_helpers(tests.collect(), &files, tree);
    let is_checking = |path: &str| {
        is_test_file(path)
            || !is_product_by_name(path)
            || tests.iter().chain(own).any(|checking| checking.path == path)
    };
    let mut found: Vec<&str> = candidates
        .iter()
        .copied()
        .filter(|path| tests.iter().chain(own).any(|text| text.names(path)))
        .filter(|path| !is_tool(path) || tree.read(path).is_some_and(|text| compares(&text)))
        .collect();
    let is_unsure = |path: &str| !is_expected(path) && (!speaks_of_tests(path) || runners::is_source(path));
    if found.iter().any(|path| is_unsure(path)) {
        let product = files.iter().filter(|path| is_code(path) && !is_checking(path)).take(MAX_READ);
        for path in product {
            let Some(text) = tree.read(path) else { continue };
            let product = Checking { path: path.clone(), text };
            found.retain(|path| !is_unsure(path) || *path == product.path || !product.names(path));
        }
    }
    found
}

/// Tests with what helps them, and what helps that in turn.
fn with_their_helpers(tests: Vec<Checking>, files: &[String], tree: &dyn Tree) -> Vec<Checking> {
    let may_help: Vec<&String> = files
        .iter()
        .filter(|path| is_code(path) && !is_test_file(path) && is_helper(path))
        .take(MAX_READ)
        .collect();
    let mut all = tests;
    let mut from = 0;
    for _ in 0..MAX_HOPS {
        let is_new = |path: &&String| !all.iter().any(|checking| checking.path == **path);
        let named = may_help.iter().copied().filter(is_new);
        let named: Vec<&String> =
            named.filter(|path| all[from..].iter().any(|checking| checking.takes_in(path))).collect();
        from = all.len();
        all.extend(named.into_iter().filter_map(|path| {
            let text = tree.read(path)?;
            (!is_tool(path) || compares(&text)).then(|| Checking { path: path.clone(), text })
        }));
    }
    all
}

/// Does a file define something that says that it compares or expects?
fn compares(text: &str) -> bool {
    const WORDS: [&str; 24] = [
        "equal", "equals", "eq", "same", "compare", "compares", "match", "matches", "expect", "expects",
        "assert", "asserts", "check", "checks", "verify", "verifies", "differ", "differs", "should",
        "ensure", "must", "require", "ne", "close",
    ];
    const DEFINING: [&str; 12] = [
        "def ",
        "async def ",
        "function ",
        "async function ",
        "exports.",
        "module.exports",
        "export ",
        "const ",
        "fn ",
        "pub fn ",
        "pub(crate) fn ",
        "func ",
    ];
    let mut lines =
        text.lines().map(str::trim).filter(|line| DEFINING.iter().any(|start| line.starts_with(start)));
    lines.any(|line| {
        let head = line.split(['(', '=']).next().unwrap_or(line);
        words_of(head).iter().any(|word| WORDS.contains(&word.as_str()))
    })
}

impl Checking {
    fn names(&self, path: &str) -> bool {
        if is_code(path) { self.takes_in(path) } else { self.reads(path) }
    }

    fn takes_in(&self, path: &str) -> bool {
        let parent = parent_of(&self.path);
        let is_package = |name: &String| {
            let folder = parent_of(path);
            path.ends_with(".go") && !folder.is_empty() && name.ends_with(folder)
        };
        let imports = runners::imports(&self.path, &self.text);
        let candidates = imports.iter().flat_map(|name| {
            [parent, ""].map(|from| runners::import_candidates(from, name)).into_iter().flatten()
        });
        candidates.into_iter().any(|found| found == path)
            || self.text.lines().flat_map(runners::literals).any(|name| is_package(&name))
    }

    fn reads(&self, path: &str) -> bool {
        const READING: [&str; 13] = [
            "open", "read", "Read", "glob", "listdir", "iterdir", "walk", "load", "Path", "include", "diff",
            "cmp", "snapshot",
        ];
        if !READING.iter().any(|word| self.text.contains(word)) {
            return false;
        }
        let parent = parent_of(&self.path);
        let is_it =
            |name: &str| ["", parent, parent_of(parent)].iter().any(|from| is_meant(&join(from, name), path));
        self.words().iter().any(|word| is_it(fixed_part(word)))
    }

    /// Texts in quotes; in a shell's script all words. Of what is put behind a directory, that alone as well.
    fn words(&self) -> Vec<String> {
        let is_shell = !is_code(&self.path) || self.path.ends_with("sh");
        let concatenates = self.text.contains("concat!");
        let quoted = self.text.lines().flat_map(|line| {
            let is_added = concatenates || line.contains('+');
            runners::literals(line).into_iter().flat_map(move |word| with_part_below(word, is_added))
        });
        let plain = self
            .text
            .split(|c: char| c.is_whitespace() || matches!(c, ';' | '"' | '\'' | '<' | '>' | '(' | ')'));
        let plain = plain.filter(|_| is_shell).filter(|word| !word.is_empty());
        quoted.chain(plain.flat_map(|word| with_part_below(word.to_owned(), false))).collect()
    }
}

/// A word, and what of it stands behind a directory: `"/../expected/sum.txt"` where it is added to one,
/// `${__dirname}/../expected/sum.txt`, `{}/expected/sum.txt`.
fn with_part_below(word: String, is_added: bool) -> Vec<String> {
    let below = if let Some(rest) = word.strip_prefix('/') {
        (is_added || rest.starts_with("..")).then_some(rest)
    } else if word.starts_with("${") || word.starts_with('{') {
        word.split_once("}/").map(|(_, rest)| rest)
    } else if word.starts_with('$') || word.starts_with("%s/") {
        word.split_once('/').map(|(_, rest)| rest)
    } else {
        None
    };
    let below = below.map(str::to_owned);
    below.into_iter().chain([word]).collect()
}

/// A name up to what is filled in: `data/{name}.json` is `data/`.
fn fixed_part(name: &str) -> &str {
    match name.find(['$', '{', '%']) {
        Some(at) => name[..at].rsplit_once('/').map_or("", |(folder, _)| folder),
        None => name,
    }
}

/// Does a name mean this path, the folder it is in, or a pattern in that folder?
fn is_meant(name: &str, path: &str) -> bool {
    let is_below = |folder: &str| {
        let below = path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
        below && !folder.is_empty() && !runners::is_source(&format!("{folder}/x"))
    };
    let is_pattern = glob::is_pattern(name);
    name == path || is_pattern && (glob::matches(name, path) || is_below(parent_of(name))) || is_below(name)
}

/// Does the path say that the file holds what is expected?
fn is_expected(path: &str) -> bool {
    !is_code(path) && runners::is_expectation(path)
}

/// Folders in which tests keep their data, but products may too.
fn is_data(path: &str) -> bool {
    const FOLDERS: [&str; 12] = [
        "data",
        "golden",
        "goldens",
        "expected",
        "expectations",
        "snapshots",
        "snapshot",
        "cases",
        "samples",
        "vectors",
        "results",
        "outputs",
    ];
    !is_code(path) && parent_of(path).split('/').any(|folder| FOLDERS.contains(&folder))
}

/// One that is among the product's sources has to be said to be for tests.
fn is_helper(path: &str) -> bool {
    let is_said = speaks_of_tests(path);
    is_code(path) && (is_said || (runners::is_helper(path) || is_tool(path)) && !runners::is_source(path))
}

/// A file in a folder of tools for those who make the product; whether it helps tests is for its text to say.
fn is_tool(path: &str) -> bool {
    const FOLDERS: [&str; 8] = ["scripts", "script", "tools", "tool", "hack", "dev", "devtools", "ci"];
    is_code(path)
        && !speaks_of_tests(path)
        && !runners::is_helper(path)
        && parent_of(path).split('/').any(|folder| FOLDERS.contains(&folder))
}

fn speaks_of_tests(path: &str) -> bool {
    let mut words = path.split('/').flat_map(words_of);
    words.any(|word| {
        matches!(word.as_str(), "test" | "tests" | "testing" | "testutil" | "testutils" | "testlib")
    })
}

pub(super) fn is_shell(path: &str) -> bool {
    path.ends_with(".sh") || path.ends_with(".bash")
}

pub(super) fn is_code(path: &str) -> bool {
    const CODE: [&str; 36] = [
        "py", "js", "mjs", "cjs", "ts", "mts", "cts", "tsx", "jsx", "rs", "go", "c", "h", "cc", "cpp", "hpp",
        "cxx", "java", "kt", "kts", "rb", "php", "sh", "bash", "pl", "lua", "swift", "cs", "scala", "zig",
        "ex", "exs", "hs", "ml", "vue", "svelte",
    ];
    let name = path.rsplit('/').next().unwrap_or(path);
    name.rsplit_once('.').is_some_and(|(_, extension)| CODE.contains(&extension))
}
