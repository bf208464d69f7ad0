//! How many tests of a check passed, read from what test runners print at their end.
//!
//! A check that passes because its runner ended early, was shadowed or selected nothing prints another number than
//! before, or none. What has no summary that is known here says nothing: then there is nothing to compare.

use crate::event::{Flag, FlagKind};
use crate::state::{Loop, OpenIteration};
use crate::text::strip_ansi;

/// Words by which a runner is asked for some of the tests only, depending on what was changed.
const SELECTING: [&str; 12] = [
    "affected",
    "--changed",
    "--changedsince",
    "--lf",
    "--last-failed",
    "--onlychanged",
    "--only-changed",
    "--onlyfailures",
    "--picked",
    "--related",
    "--since",
    "--testmon",
];

/// The number of tests that passed; `None` where no summary was found.
pub fn tests_passed(output: &str) -> Option<u32> {
    let output = strip_ansi(output);
    let lines = || output.lines().map(str::trim);
    let counted = lines().filter_map(summary).reduce(|one, other| one.saturating_add(other));
    let others = lines().filter_map(told_apart).sum::<u32>();
    let summed = counted.map(|count| count.saturating_sub(others));
    let largest = || lines().filter_map(nested_summary).max();
    let listed = || Some(lines().filter(|line| is_single(line)).count()).filter(|count| *count > 0);
    summed.or_else(largest).or_else(|| listed().and_then(|count| u32::try_from(count).ok()))
}

/// Checks that passed with fewer tests than the last time they passed on a tree that counts. Where that is not
/// known, the former definition of a check tells how many it runs. Of a changed definition only its own number
/// counts: whatever it leaves out, the next task can break.
pub fn fewer(state: &Loop, open: &OpenIteration) -> Vec<Flag> {
    let mut flags = Vec::new();
    for evidence in open.evidence.iter().filter(|evidence| evidence.passed()) {
        let former = open.former_evidence.iter().find(|former| former.command == evidence.command);
        let before = state.tests.get(&evidence.command).copied();
        let Some(before) = before.or_else(|| former?.tests) else { continue };
        let now = evidence.tests;
        if now.unwrap_or(0) < before && !selects(&evidence.command) {
            let detail = match now {
                Some(now) => format!("{before} tests passed before, {now} now"),
                None => format!("{before} tests passed before, now its output tells of none"),
            };
            flags.push(Flag { kind: FlagKind::WeakenedTests, what: evidence.command.clone(), detail });
        }
    }
    flags
}

fn selects(command: &str) -> bool {
    let lower = command.to_lowercase();
    lower.split_whitespace().any(|word| {
        SELECTING
            .iter()
            .any(|known| word == *known || word.strip_prefix(known).is_some_and(|rest| rest.starts_with('=')))
    })
}

/// What one line says of one part of the tests; several such lines are added up.
fn summary(line: &str) -> Option<u32> {
    let words = Words::of(line);
    // cargo: `test result: ok. 3 passed; 0 failed; 1 ignored`
    if line.starts_with("test result:") {
        return words.sum(&["passed"]);
    }
    // cargo-nextest: `Summary [ 0.1s] 3 tests run: 3 passed, 0 skipped`
    if line.starts_with("Summary [") {
        return words.sum(&["passed"]);
    }
    // pytest: `== 3 passed, 1 skipped in 0.12s ==`
    if line.contains(" in ") && line.trim_end_matches([' ', '=']).ends_with(['s', ')']) {
        let counted = words.sum(&["passed", "xfailed"]);
        if counted.is_some() && !line.contains("tests") {
            return counted;
        }
    }
    // unittest: `Ran 3 tests in 0.001s`, and `OK (skipped=1)`, which is looked at apart
    if let Some(rest) = line.strip_prefix("Ran ") {
        return rest.contains(" in ").then(|| Words::of(rest).before(&["test", "tests"]))?;
    }
    // node: `# pass 3`, `ℹ pass 3`; tape: `# pass  3`
    if let Some(rest) = line.strip_prefix("# ").or_else(|| line.strip_prefix("ℹ ")) {
        let mut words = rest.split_whitespace();
        return match (words.next(), words.next(), words.next()) {
            (Some("pass"), Some(number), None) => number.parse().ok(),
            _ => None,
        };
    }
    // jest: `Tests:       1 skipped, 3 passed, 4 total`; vitest: `Tests  3 passed | 1 skipped (4)`
    if line.starts_with("Tests:") || line.starts_with("Tests ") {
        return words.sum(&["passed"]).or_else(|| phpunit(line));
    }
    // mocha: `3 passing (5ms)`; bun: `3 pass`; ava: `3 tests passed`; deno: `ok | 3 passed | 0 failed`
    if let Some(number) = words.first_number() {
        match words.rest() {
            ["passing", ..] | ["pass"] => return Some(number),
            ["test" | "tests", "passed"] => return Some(number),
            // rspec, exunit: `3 examples, 0 failures, 1 pending`
            ["example" | "examples" | "tests" | "test", ..] if line.contains("failure") => {
                let left_out = words.sum(&["failure", "failures", "pending", "skipped", "excluded"]);
                return Some(number.saturating_sub(left_out.unwrap_or(0)));
            }
            // minitest: `3 runs, 5 assertions, 0 failures, 0 errors, 1 skips`
            ["runs", ..] if line.contains("assertions") => {
                return Some(number.saturating_sub(words.sum(&["failures", "errors", "skips"]).unwrap_or(0)));
            }
            _ => {}
        }
    }
    if line.starts_with("ok | ") {
        return words.sum(&["passed"]);
    }
    others(line, &words)
}

/// unittest tells on a line of its own how many of the tests it counted did not pass: `OK (skipped=1)`,
/// `FAILED (failures=1, errors=2)`.
fn told_apart(line: &str) -> Option<u32> {
    let rest = line.strip_prefix("OK (").or_else(|| line.strip_prefix("FAILED ("))?;
    let labels = ["failures=", "errors=", "skipped=", "unexpected successes="];
    Some(labels.iter().filter_map(|label| after(rest, label)).sum())
}

fn others(line: &str, words: &Words<'_>) -> Option<u32> {
    // phpunit: `OK (3 tests, 5 assertions)`
    if line.starts_with("OK (") && line.contains("assertion") {
        return words.before(&["test", "tests"]);
    }
    // surefire: `Tests run: 3, Failures: 0, Errors: 0, Skipped: 1`; its lines of single classes come again in the sum
    if let Some((_, rest)) = line.split_once("Tests run: ").filter(|_| !line.contains("Time elapsed")) {
        let others = ["Failures:", "Errors:", "Skipped:"].iter().filter_map(|label| after(rest, label));
        return Some(leading_number(rest)?.saturating_sub(others.sum()));
    }
    // dotnet: `Passed!  - Failed:     0, Passed:     3, Skipped:     0, Total:     3`
    if line.contains("Passed:") && line.contains("Total:") {
        return after(line, "Passed:");
    }
    // prove: `Files=1, Tests=3,  0 wallclock secs`
    if line.starts_with("Files=") {
        return after(line, "Tests=");
    }
    // ctest: `100% tests passed, 0 tests failed out of 3`
    if line.contains("tests passed") && line.contains("out of") {
        let failed = after(line, "tests passed,").unwrap_or(0);
        return Some(after(line, "out of")?.saturating_sub(failed));
    }
    // googletest: `[  PASSED  ] 3 tests.`
    line.strip_prefix("[  PASSED  ] ").and_then(leading_number)
}

/// phpunit with skipped tests: `Tests: 3, Assertions: 5, Skipped: 1.`
fn phpunit(line: &str) -> Option<u32> {
    let all = after(line, "Tests:").filter(|_| line.contains("Assertions:"))?;
    Some(all.saturating_sub(after(line, "Skipped:").unwrap_or(0)))
}

/// Suites inside each other, of which the largest has all: XCTest's `Executed 3 tests, with 0 failures`.
fn nested_summary(line: &str) -> Option<u32> {
    line.strip_prefix("Executed ").filter(|rest| rest.contains("failure")).and_then(leading_number)
}

/// One test, or one package of them, where no summary follows: go's and TAP's lines.
fn is_single(line: &str) -> bool {
    let lower = line.to_lowercase();
    let of_go = line.starts_with("--- PASS: ")
        || (line.starts_with("ok  \t")
            && !line.contains("[no tests to run]")
            && !line.contains("[no test files]"));
    let of_tap = line.strip_prefix("ok ").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        && !lower.contains("# skip")
        && !lower.contains("# todo");
    of_go || of_tap
}

fn leading_number(text: &str) -> Option<u32> {
    let text = text.trim_start();
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text[..end].parse().ok()
}

fn after(line: &str, label: &str) -> Option<u32> {
    leading_number(line.split_once(label)?.1)
}

/// The words of a line, without what separates them.
struct Words<'a>(Vec<&'a str>);

impl<'a> Words<'a> {
    fn of(line: &'a str) -> Self {
        let is_between = |c: char| c.is_whitespace() || ",;|()=:.".contains(c);
        Self(line.split(is_between).filter(|word| !word.is_empty()).collect())
    }

    fn first_number(&self) -> Option<u32> {
        self.0.first()?.parse().ok()
    }

    fn rest(&self) -> &[&'a str] {
        self.0.get(1..).unwrap_or_default()
    }

    /// The number before the first of these words.
    fn before(&self, wanted: &[&str]) -> Option<u32> {
        let pairs = self.0.windows(2).filter(|pair| wanted.contains(&pair[1]));
        pairs.filter_map(|pair| pair[0].parse().ok()).next()
    }

    /// All numbers before these words; `None` if there is none.
    fn sum(&self, wanted: &[&str]) -> Option<u32> {
        let pairs = self.0.windows(2).filter(|pair| wanted.contains(&pair[1]));
        let numbers = pairs.filter_map(|pair| pair[0].parse::<u32>().ok());
        numbers.reduce(|one, other| one.saturating_add(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(output: &str, expected: Option<u32>) {
        assert_eq!(tests_passed(output), expected, "{output}");
    }

    #[test]
    fn the_summaries_of_common_runners_are_read() {
        check(
            "running 3 tests\ntest a ... ok\n\ntest result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s\n",
            Some(3),
        );
        check(
            "test result: ok. 3 passed; 0 failed; 0 ignored\n   Doc-tests x\ntest result: ok. 2 passed; 0 failed; 0 ignored\n",
            Some(5),
        );
        check("     Summary [   0.012s] 7 tests run: 7 passed, 1 skipped\n", Some(7));
        check("..s\n======= 3 passed, 1 skipped in 0.12s =======\n", Some(3));
        check("3 passed in 0.01s\n", Some(3));
        check("=== 2 passed, 1 xfailed, 3 warnings in 61.20s (0:01:01) ===\n", Some(3));
        check("== 2 failed, 1 passed in 0.03s ==\n", Some(1));
        check("no tests ran in 0.00s\n", None);
        check("...\n----\nRan 3 tests in 0.001s\n\nOK\n", Some(3));
        check("F..\nRan 3 tests in 0.001s\n\nFAILED (failures=1)\n", Some(2));
        check("s.\nRan 3 tests in 0.001s\n\nOK (skipped=1)\n", Some(2));
        check("TAP version 13\nok 1 - a\n# tests 1\n# suites 0\n# pass 1\n# fail 0\n# skipped 0\n", Some(1));
        check("✔ a (0.5ms)\nℹ tests 3\nℹ pass 2\nℹ fail 0\nℹ skipped 1\n", Some(2));
        check("\u{1b}[34mℹ pass 4\u{1b}[39m\n", Some(4));
        check("Test Suites: 1 passed, 1 total\nTests:       1 skipped, 3 passed, 4 total\n", Some(3));
        check(" Test Files  1 passed (1)\n      Tests  3 passed | 1 skipped (4)\n", Some(3));
        check("  calc\n    ✔ adds\n\n  3 passing (5ms)\n", Some(3));
        check("  ✔ adds\n  ─\n\n  3 tests passed\n", Some(3));
        check(" 3 pass\n 0 fail\n 3 expect() calls\n", Some(3));
        check("ok | 3 passed | 0 failed (5ms)\n", Some(3));
        check(
            "ok  \texample.com/a\t0.003s\nok  \texample.com/b\t(cached)\n?   \texample.com/c\t[no test files]\n",
            Some(2),
        );
        check("=== RUN   TestA\n--- PASS: TestA (0.00s)\n    --- PASS: TestA/x (0.00s)\nPASS\n", Some(2));
        check("3 examples, 0 failures, 1 pending\n", Some(2));
        check("3 tests, 0 failures\n", Some(3));
        check("3 runs, 5 assertions, 0 failures, 0 errors, 1 skips\n", Some(2));
        check("OK (3 tests, 5 assertions)\n", Some(3));
        check("Tests: 3, Assertions: 5, Skipped: 1.\n", Some(2));
        check(
            "[INFO] Tests run: 2, Failures: 0, Errors: 0, Skipped: 0, Time elapsed: 0.1 s - in A\n[INFO] Tests run: 5, Failures: 0, Errors: 0, Skipped: 1\n",
            Some(4),
        );
        check(
            "Passed!  - Failed:     0, Passed:     3, Skipped:     1, Total:     4, Duration: 5 ms\n",
            Some(3),
        );
        check("All tests successful.\nFiles=1, Tests=3,  0 wallclock secs\nResult: PASS\n", Some(3));
        check("100% tests passed, 0 tests failed out of 3\n", Some(3));
        check("[==========] 3 tests from 1 test suite ran.\n[  PASSED  ] 3 tests.\n", Some(3));
        check("1..2\nok 1 adds\nok 2 subtracts # skip not here\n", Some(1));
        check(
            "Executed 2 tests, with 0 failures\nExecuted 5 tests, with 0 failures (0 unexpected)\n",
            Some(5),
        );
    }

    #[test]
    fn what_is_no_summary_counts_nothing() {
        for output in [
            "",
            "hello\n",
            "make: 'test' is up to date.\n",
            "3 files changed in src\n",
            "Compiled 5 modules in 3s\n",
            "ok\n",
            "all is well, 3 passed by\n",
        ] {
            check(output, None);
        }
    }

    #[test]
    fn a_command_that_selects_tests_by_what_was_changed_is_known() {
        for command in
            ["jest --onlyChanged", "npx nx affected -t test", "vitest --changed=main", "pytest --testmon -q"]
        {
            assert!(selects(command), "{command}");
        }
        for command in ["jest", "npm test", "pytest -k changed"] {
            assert!(!selects(command), "{command}");
        }
    }
}
