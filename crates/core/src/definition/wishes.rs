//! What a task asks for in its own words, its checks apart: to change a file, or to change tests.
//!
//! Naming a check as something that must pass is no wish to change it: a wish has a verb of change beside
//! what is named.

use super::words_of;
use crate::task::Task;

/// Verbs by which people ask for a change of something.
const VERBS: [&str; 56] = [
    "write",
    "add",
    "change",
    "update",
    "fix",
    "rewrite",
    "create",
    "extend",
    "adapt",
    "rename",
    "remove",
    "move",
    "delete",
    "replace",
    "modify",
    "edit",
    "refactor",
    "adjust",
    "convert",
    "correct",
    "drop",
    "introduce",
    "implement",
    "port",
    "migrate",
    "simplify",
    "clean",
    "tidy",
    "split",
    "merge",
    "improve",
    "let",
    "teach",
    "turn",
    "rework",
    "regenerate",
    "generate",
    "repair",
    "amend",
    "expand",
    "shorten",
    "reformat",
    "format",
    "revise",
    "insert",
    "append",
    "put",
    "bump",
    "reduce",
    "parametrize",
    "restructure",
    "generalise",
    "set",
    "configure",
    "enable",
    "disable",
];

/// Verbs that take away or reshape what there is; adding tests asks for no change of those that exist.
const RESHAPING: [&str; 26] = [
    "change",
    "update",
    "rewrite",
    "adapt",
    "rename",
    "remove",
    "move",
    "delete",
    "replace",
    "modify",
    "refactor",
    "adjust",
    "convert",
    "drop",
    "port",
    "migrate",
    "simplify",
    "clean",
    "tidy",
    "split",
    "merge",
    "rework",
    "restructure",
    "reduce",
    "revise",
    "regenerate",
];

/// Words that ask for a result rather than for a change of what gives it.
const RESULTS: [&str; 13] = [
    "pass", "passes", "passing", "passed", "succeed", "succeeds", "green", "run", "runs", "running", "works",
    "accepts", "ok",
];

const REFUSALS: [&str; 8] = ["not", "never", "without", "no", "don", "dont", "cannot", "nor"];

/// How many words may stand between a verb and what it is about, where a result is asked for too.
const NEAR: usize = 2;

/// Does the task ask for a change of this file?
pub(super) fn asks_for_file(task: &Task, path: &str) -> bool {
    let text = text_of(task);
    let mut listed = text.lines().filter(|line| {
        let start = line.trim_start_matches([' ', '-', '*', '#']).to_lowercase();
        start.starts_with("files:") || start.starts_with("file:")
    });
    listed.any(|line| is_named(line, path)) || clauses(&text).any(|clause| asks_in(clause, path))
}

/// Does the task ask for a change of the tests that there are? Renaming something changes its tests too, and
/// what is removed takes its tests along.
pub(super) fn asks_for_tests(task: &Task) -> bool {
    let text = text_of(task);
    clauses(&text).any(|clause| {
        let words = words_of(clause);
        let words: Vec<&str> = words.iter().map(String::as_str).filter(|word| !word.is_empty()).collect();
        let verb = words.iter().position(|word| RESHAPING.iter().any(|verb| is_form(word, verb)));
        let tests =
            words.iter().position(|word| matches!(*word, "test" | "tests" | "testcases" | "spec" | "specs"));
        let renames = words.iter().position(|word| is_form(word, "rename"));
        let is_renamed =
            renames.is_some_and(|at| words[at..].contains(&"to") || words[at..].contains(&"into"));
        let is_refused = words.iter().any(|word| REFUSALS.contains(word));
        let wants_result = words.iter().any(|word| RESULTS.contains(word));
        let is_asked = verb.is_some() && tests.is_some() || is_renamed || removes_code(&words);
        !is_refused && !wants_result && is_asked
    })
}

/// "Remove the sub function", "drop class Sum": something that tests may be about goes as a whole.
fn removes_code(words: &[&str]) -> bool {
    const CODE: [&str; 16] = [
        "function",
        "functions",
        "method",
        "methods",
        "class",
        "classes",
        "struct",
        "structs",
        "trait",
        "traits",
        "enum",
        "type",
        "module",
        "modules",
        "endpoint",
        "command",
    ];
    /// What follows one of these is where something is removed from.
    const PLACES: [&str; 6] = ["in", "from", "of", "inside", "within", "for"];
    let verb =
        words.iter().position(|word| ["remove", "delete", "drop"].iter().any(|verb| is_form(word, verb)));
    let object = verb.map_or(&[][..], |at| &words[at + 1..]);
    let object = object.iter().take_while(|word| !PLACES.contains(*word));
    object.take(OBJECT).any(|word| CODE.contains(word))
}

/// How many words name what is removed: "the obsolete sub function".
const OBJECT: usize = 4;

/// Does the task ask for tests to be written, rather than to pass?
pub(super) fn asks_for_new_tests(task: &Task) -> bool {
    const WRITING: [&str; 9] =
        ["add", "write", "create", "extend", "implement", "cover", "introduce", "expand", "improve"];
    let text = text_of(task);
    clauses(&text).any(|clause| {
        let words = words_of(clause);
        let words: Vec<&str> = words.iter().map(String::as_str).filter(|word| !word.is_empty()).collect();
        let verb = words.iter().position(|word| WRITING.iter().any(|verb| is_form(word, verb)));
        let tests = words.iter().rposition(|word| {
            matches!(*word, "test" | "tests" | "testcase" | "testcases" | "spec" | "specs")
        });
        let is_refused = words.iter().any(|word| REFUSALS.contains(word));
        let wants_result = words.iter().any(|word| RESULTS.contains(word));
        !is_refused && !wants_result && verb.zip(tests).is_some_and(|(verb, tests)| verb < tests)
    })
}

/// What a task says; its checks are not among it.
fn text_of(task: &Task) -> String {
    let criteria = task.criteria.iter().map(|criterion| criterion.text.as_str());
    let checks: Vec<&str> = task.criteria.iter().filter_map(|criterion| criterion.check.as_deref()).collect();
    let mut text =
        [task.title.as_str(), &task.description].into_iter().chain(criteria).collect::<Vec<_>>().join("\n");
    // Where a check stands in the text itself, it is no wish.
    for check in checks.into_iter().chain(task.verify.as_deref()) {
        text = text.replace(check, " ");
    }
    text
}

/// Parts of sentences that ask for one thing each.
fn clauses(text: &str) -> impl Iterator<Item = &str> {
    let sentences = text.split(['\n', ';', '!', '?']).flat_map(|line| line.split(". "));
    let joints =
        [" so that ", " such that ", " until ", ", then ", " then ", " and run ", " when ", " to see "];
    joints
        .into_iter()
        .fold(sentences.collect::<Vec<_>>(), |clauses, joint| {
            clauses.into_iter().flat_map(|clause| clause.split(joint)).collect()
        })
        .into_iter()
}

fn asks_in(clause: &str, path: &str) -> bool {
    let Some((at, length)) = place_of(clause, path) else { return false };
    let words =
        |text: &str| -> Vec<String> { words_of(text).into_iter().filter(|word| !word.is_empty()).collect() };
    let (before, after) = (words(&clause[..at]), words(&clause[at + length..]));
    let is_verb = |word: &String| VERBS.iter().any(|verb| is_form(word, verb));
    let is_refused = before.iter().any(|word| REFUSALS.contains(&word.as_str()));
    let wants_result = before.iter().chain(&after).any(|word| RESULTS.contains(&word.as_str()));
    if is_refused {
        return false;
    }
    match wants_result {
        true => before.iter().rev().take(NEAR + 1).any(is_verb),
        false => before.iter().chain(&after).any(is_verb),
    }
}

/// Is a word this verb, in one of its forms?
fn is_form(word: &str, verb: &str) -> bool {
    let stem = verb.strip_suffix('e').unwrap_or(verb);
    let stem = stem.strip_suffix('y').filter(|_| !word.starts_with(verb)).unwrap_or(stem);
    let irregular =
        matches!((word, verb), ("written", "write") | ("rewritten", "rewrite") | ("dropped", "drop"));
    let ends = ["e", "es", "s", "d", "ed", "ing", "y", "ies", "ied", "ying"];
    let is_regular = |end: &str| word.strip_prefix(stem) == Some(end);
    word == verb || irregular || ends.iter().any(|end| is_regular(end))
}

/// Does a text name this file, by its path or its name?
pub(super) fn is_named(text: &str, path: &str) -> bool {
    place_of(text, path).is_some()
}

/// Where a text names this file, and in how many bytes.
fn place_of(text: &str, path: &str) -> Option<(usize, usize)> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let joined = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '/');
    let stands_alone = |needle: &str| {
        let found = text.match_indices(needle).find(|(at, _)| {
            let after = &text[at + needle.len()..];
            let goes_on = after.strip_prefix('.').unwrap_or(after).starts_with(joined);
            !text[..*at].ends_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '-')) && !goes_on
        });
        found.map(|(at, _)| (at, needle.len()))
    };
    stands_alone(path).or_else(|| stands_alone(name).filter(|_| name.len() > 2))
}
