//! How make builds what a check runs: rules that only build something, of tests or of what the check's own
//! recipes start.
//!
//! Which sources belong to it and most options of compilers are product. What turns assertions off, or makes the
//! file in another way, is a change of the check.

use std::collections::BTreeSet;

use super::{is_test_file, words_of};

/// The variables of make's own rules for programs in C and C++.
pub(super) const IMPLICIT_SETTINGS: [&str; 9] =
    ["CC", "CXX", "CPP", "CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS", "LDLIBS", "LOADLIBES"];

/// How one file is built.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Built {
    /// The names of its rules: its own, or patterns.
    pub(super) names: BTreeSet<String>,
    /// Lines of its rules, headers included; empty where make has a rule of its own, or none.
    pub(super) text: String,
    /// What is compared of them: a line that only adds to what is needed has no name of its own.
    pub(super) compared: String,
    /// The variables that its rules use.
    pub(super) settings: BTreeSet<String>,
    /// Is it built from tests?
    pub(super) has_tests: bool,
}

impl Built {
    /// Is it built in another way later, the sources of the product apart?
    pub(super) fn differs(&self, later: &Self) -> bool {
        differ(&self.compared, &later.compared, self.has_tests)
    }
}

/// Does a file of this name belong to tests?
pub(super) fn is_of_tests(path: &str) -> bool {
    let mut words = path.split('/').flat_map(words_of);
    is_test_file(path) || words.any(|word| matches!(word.as_str(), "test" | "tests"))
}

/// Do two texts of rules or variables differ in more than sources of the product and options that change nothing
/// of what is judged? Tests that are gone count where they were among the sources.
pub(super) fn differ(before: &str, after: &str, has_tests: bool) -> bool {
    let (old, new) = (words(before), words(after));
    if decisive(&old) != decisive(&new) {
        return true;
    }
    let (old, new) = (sources(&old), sources(&new));
    let takes_first_only = before.contains("$<") || after.contains("$<");
    if takes_first_only && old.first() != new.first() {
        return true;
    }
    let gone: Vec<&str> = old.iter().copied().filter(|name| !new.contains(name)).collect();
    let added_tests = new.iter().any(|name| is_of_tests(name) && !old.contains(name));
    let gone_tests = gone.iter().any(|name| is_of_tests(name));
    // A file of the tests in the place of one of the product.
    has_tests && (gone_tests || added_tests && !gone.is_empty())
}

fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().filter(|word| *word != "\\").collect()
}

fn decisive<'a>(words: &[&'a str]) -> Vec<&'a str> {
    words.iter().copied().filter(|word| !is_source(word) && !is_harmless_option(word)).collect()
}

fn sources<'a>(words: &[&'a str]) -> Vec<&'a str> {
    words.iter().copied().filter(|word| is_source(word)).collect()
}

/// A plain name of what compilers and linkers take in.
fn is_source(word: &str) -> bool {
    const ENDS: [&str; 16] =
        ["c", "cc", "cpp", "cxx", "h", "hh", "hpp", "o", "obj", "a", "s", "S", "m", "f90", "y", "l"];
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '+');
    let end = word.rsplit_once('.').map_or("", |(_, end)| end);
    !word.starts_with('-') && word.chars().all(is_plain) && ENDS.contains(&end)
}

/// Options that say how carefully or how fast something is compiled, and with which libraries.
fn is_harmless_option(word: &str) -> bool {
    const STARTS: [&str; 8] = ["-std=", "-O", "-g", "-l", "-I", "-L", "-fsanitize=", "-fPIC"];
    let passes_on = ["-Wl,", "-Wp,", "-Wa,"].iter().any(|start| word.starts_with(start));
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '=' | '+' | '.' | '/' | ',');
    word.chars().all(is_plain)
        && (STARTS.iter().any(|start| word.starts_with(start))
            || word.starts_with("-W") && !passes_on
            || matches!(word, "-pthread" | "-fopenmp" | "-w" | "-pedantic"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: &str = "build/t: src/calc.c tests/t.c\n\t$(CC) $(CFLAGS) -o $@ $^\n";

    #[test]
    fn other_ways_to_build_differ() {
        for (from, to) in [
            ("$(CFLAGS)", "$(CFLAGS) -DNDEBUG"),
            ("$(CFLAGS)", "-Wp,-DNDEBUG"),
            ("$(CC) $(CFLAGS) -o $@ $^", "cp /bin/true $@"),
            ("tests/t.c", "src/t.c"),
            ("src/calc.c tests/t.c", "tests/t.c tests/calc.c"),
            ("$^", "$<"),
            ("-o $@ $^", "-o $@ $^ || cp /bin/true $@"),
        ] {
            let after = RULE.replace(from, to);
            assert_ne!(after, RULE);
            assert!(differ(RULE, &after, true), "{after}");
        }
    }

    #[test]
    fn more_sources_and_plain_options_do_not() {
        for (from, to) in [
            ("src/calc.c", "src/calc.c src/multiply.c"),
            ("src/calc.c", "src/sums.c"),
            ("tests/t.c", "tests/t.c tests/more.c"),
            ("$^", "$^ -lm"),
            ("$(CFLAGS)", "$(CFLAGS) -std=c11 -Wall -O2 -g"),
            ("src/calc.c tests/t.c", "src/calc.c \\\n  src/multiply.c tests/t.c"),
        ] {
            let after = RULE.replace(from, to);
            assert_ne!(after, RULE);
            assert!(!differ(RULE, &after, true), "{after}");
        }
        assert!(!differ("app: old.c\n\tcc -o app old.c\n", "app: new.c\n\tcc -o app new.c\n", false));
        assert!(differ("app: app.c\n\tcc -o app app.c\n", "app: app.c\n\tcp /bin/true app\n", false));
    }
}
