//! Which errors are the same, and which line tells what went wrong.

use proptest::prelude::*;
use wiggum_core::event::Exit;
use wiggum_core::signal::{failure_from, signature};

#[test]
fn paths_numbers_and_times_do_not_tell_errors_apart() {
    let same = |one: &str, other: &str| assert_eq!(signature(one), signature(other), "{one:?} and {other:?}");
    same(
        "error[E0308]: mismatched types --> src/main.rs:12:5",
        "error[E0308]: mismatched types --> crates/x/src/lib.rs:7:30",
    );
    same("cannot open '/tmp/a b/c.txt'", "cannot open '/var/other dir/d.json'");
    same("connection to 10.0.0.1:5432 refused", "connection to 10.2.33.4:6000 refused");
    same("timeout after 30s", "timeout after 1.5s");
    same("at 2026-01-02T03:04:05Z: failed", "at 2027-11-12T13:14:15.123Z: failed");
    same("[12:30:01] failed", "[09:00:59] failed");
    same("object 0x7ffdeadbeef is null", "object 0x1 is null");
    same("commit 3f2a1bc9 not found", "commit 99aa00bb not found");
    same(
        "session 123e4567-e89b-12d3-a456-426614174000 lost",
        "session 00000000-e89b-12d3-a456-42661417abcd lost",
    );
    same("\u{1b}[31mError:\u{1b}[0m   Boom", "error: boom");
    same("worker17 died", "worker4 died");
    same("main.py:12: oops", "other.py:90: oops");
    same("fetch https://a.example/x?y=1 failed", "fetch https://b.example:80/z failed");
    same("C:\\Users\\a\\x.txt missing", "D:\\y\\z.txt missing");
}

#[test]
fn different_errors_stay_different() {
    let differ =
        |one: &str, other: &str| assert_ne!(signature(one), signature(other), "{one:?} and {other:?}");
    differ("error[E0308]: mismatched", "error[E0277]: mismatched");
    differ("cannot read file", "cannot write file");
    differ("TypeError: a.map is not a function", "TypeError: b.filter is not a function");
    differ("no such table: users", "no such table: orders");
    differ("read/write conflict", "merge conflict");
    differ("missing field `name`", "missing field `age`");
}

#[test]
fn the_telling_line_is_picked() {
    let check = |stderr: &str, message: &str, expected: &str| {
        assert_eq!(failure_from(Exit::Code { code: 1 }, stderr, message).message, expected, "{stderr}");
    };
    check("warning: x\nerror: no such command\nhint: look\n", "", "error: no such command");
    check(
        "error[E0308]: mismatched types\n  --> a.rs:1\n\nerror: could not compile `x` (lib) due to 1 previous error\n",
        "",
        "error[E0308]: mismatched types",
    );
    check("error: could not compile `x`\n", "", "error: could not compile `x`");
    check(
        "Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\n    f()\nValueError: bad value\n",
        "",
        "ValueError: bad value",
    );
    check(
        "Traceback (most recent call last):\n  File \"a.py\"\nKeyboardInterrupt\n",
        "",
        "KeyboardInterrupt",
    );
    check(
        "thread 'main' panicked at src/main.rs:2:3:\nindex out of bounds\nnote: run with …\n",
        "",
        "thread 'main' panicked at src/main.rs:2:3: index out of bounds",
    );
    check("fatal: not a git repository\n", "", "fatal: not a git repository");
    check("just words\nlast words\n\n", "", "last words");
    check("", "Working…\nError: usage limit reached\n", "Error: usage limit reached");
    // What it said last is not why it failed.
    check("", "I stopped here.\n", "exit code 1");
    check("", "<memory>\nuse tabs\n</memory>\n", "exit code 1");
    check("", "Error handling is done.\nFailed tests are none.\n", "exit code 1");
    check("segfault in parser\n", "<memory>\nuse tabs\n</memory>\n", "segfault in parser");
    check("", "", "exit code 1");
    check("\u{1b}[31merror\u{1b}[0m: red\n", "", "error: red");
}

#[test]
fn the_kind_of_end_is_part_of_the_failure() {
    let of = |exit, stderr| failure_from(exit, stderr, "").message;
    assert_eq!(of(Exit::TimedOut, "error: whatever"), "timed out");
    assert_eq!(of(Exit::Signal { signal: 9 }, ""), "ended by signal 9");
    assert_eq!(of(Exit::Signal { signal: 6 }, "fatal: abort"), "ended by signal 6: fatal: abort");
    assert_eq!(
        of(Exit::NotStarted, "No such file or directory"),
        "could not be started: No such file or directory"
    );
}

#[test]
fn hostile_output_is_read_in_linear_time() {
    for unit in ["'", "\"/", "error:\n", "Traceback\n", "0x", "a/", "error: could not compile\n", "`", "1-"] {
        let text = unit.repeat(250_000 / unit.len());
        let start = std::time::Instant::now();
        let failure = failure_from(Exit::Code { code: 1 }, &text, &text);
        signature(&text);
        assert!(start.elapsed() < std::time::Duration::from_secs(5), "{unit:?} took {:?}", start.elapsed());
        assert!(failure.message.len() <= 1000 && failure.signature.len() <= 240);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_output_panics(stderr in "(?s).{0,300}", message in "(?s).{0,300}") {
        let failure = failure_from(Exit::Code { code: 1 }, &stderr, &message);
        prop_assert!(failure.signature.len() <= 240);
    }

    #[test]
    fn numbers_never_matter(one in 0u64..u64::MAX, other in 0u64..u64::MAX) {
        prop_assert_eq!(signature(&format!("failed after {one} tries at line {other}")), signature("failed after 1 tries at line 2"));
    }
}

#[test]
fn decisive_lines_are_not_the_banner_of_a_package_manager() {
    let check = |output: &str, expected: &[&str]| {
        assert_eq!(wiggum_core::signal::error::decisive_lines(output), expected, "{output}");
    };
    let thrown = "/x/test.js:3\n  throw new Error('wanted 4, got 3');\n  ^\n\nError: wanted 4, got 3\n    at Object.<anonymous> (/x/test.js:3:9)\n\nNode.js v20.1.0\n";
    check(&format!("\n> c@1.0.0 test\n> node test.js\n\n{thrown}"), &["Error: wanted 4, got 3"]);
    check(
        "\n> c@1.0.0 test\n> node test.js\n\nadd(2, 2): wanted 4, got 3\n",
        &["add(2, 2): wanted 4, got 3"],
    );
    check("> test\n> sh t.sh\n\nit is broken\n", &["it is broken"]);
    check("> @a/b@0.1.0 test /x\n> vitest run\n\nit is broken\n", &["it is broken"]);
    check(
        "yarn run v1.22.19\n$ node test.js\nit is broken\nerror Command failed with exit code 1.\n",
        &["it is broken", "error Command failed with exit code 1."],
    );
    let lifecycle = "npm ERR! code ELIFECYCLE\nnpm ERR! errno 1\nnpm ERR! c@1.0.0 test: `node test.js`\n";
    check(
        &format!("> c@1.0.0 test\n> node test.js\n\nTypeError: x is not a function\n{lifecycle}"),
        &["TypeError: x is not a function"],
    );
    // Where npm is all that speaks, it is heard.
    check("npm ERR! Missing script: \"test\"\n", &["npm ERR! Missing script: \"test\""]);
    // What pytest, gradle and code frames mark is no banner.
    check(
        "    def test():\n>       assert add(2, 2) == 4\nE       assert 3 == 4\n",
        &[">       assert add(2, 2) == 4", "E       assert 3 == 4"],
    );
    check("> Task :test FAILED\n\nAppTest > adds FAILED\n", &["> Task :test FAILED"]);
}
