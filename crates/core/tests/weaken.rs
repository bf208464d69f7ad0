//! Weakened tests are noticed, honest changes are not.

use proptest::prelude::*;
use wiggum_core::event::FlagKind;
use wiggum_core::weaken::{TestFile, is_test_path, weakened};

#[test]
fn test_files_are_known_by_their_path() {
    for path in [
        "tests/login.rs",
        "crates/core/tests/claims.rs",
        "src/login_test.go",
        "test_login.py",
        "app/tests/test_x.py",
        "src/login.test.ts",
        "src/login.spec.tsx",
        "src/__tests__/login.js",
        "src/test/java/LoginTest.java",
        "LoginTests.cs",
        "spec/login_spec.rb",
        "conftest.py",
        "e2e/checkout.ts",
        "tests\\win.py",
        "x.bats",
    ] {
        assert!(is_test_path(path), "{path}");
    }
    for path in [
        "src/login.rs",
        "src/contest.py",
        "latest.js",
        "src/testimony.ts",
        "README.md",
        "src/attest.go",
        "Test.md",
    ] {
        assert!(!is_test_path(path), "{path}");
    }
}

/// One file, changed: the details of all flags, joined.
fn change(path: &str, before: &str, after: &str) -> String {
    details(&[TestFile { path, before: Some(before), after: Some(after) }])
}

fn details(files: &[TestFile<'_>]) -> String {
    let flags = weakened(files);
    assert!(flags.iter().all(|flag| flag.kind == FlagKind::WeakenedTests));
    flags.iter().map(|flag| format!("{}: {}", flag.what, flag.detail)).collect::<Vec<_>>().join("\n")
}

const PYTHON: &str = "def test_a():\n    assert f() == 1\n\ndef test_b():\n    assert g() == 2\n\ndef test_c():\n    assert h()\n    assert i()\n";

#[test]
fn removed_tests_are_named() {
    let after = "def test_c():\n    assert h()\n    assert i()\n";
    assert_eq!(
        change("test_x.py", PYTHON, after),
        "test_x.py: 3 tests before, 1 after: removed test_a, test_b"
    );
}

#[test]
fn a_commented_out_test_is_removed() {
    let after =
        PYTHON.replace("def test_b():\n    assert g() == 2", "# def test_b():\n#     assert g() == 2");
    assert_eq!(change("test_x.py", PYTHON, &after), "test_x.py: 3 tests before, 2 after: removed test_b");
}

#[test]
fn a_deleted_file_is_flagged() {
    let deleted = [TestFile { path: "tests/test_x.py", before: Some(PYTHON), after: None }];
    assert_eq!(details(&deleted), "tests/test_x.py: test file deleted: 3 tests gone: test_a, test_b, test_c");
}

#[test]
fn a_moved_test_is_not_removed() {
    let whole = [
        TestFile { path: "tests/test_x.py", before: Some(PYTHON), after: None },
        TestFile { path: "tests/unit/test_x.py", before: None, after: Some(PYTHON) },
    ];
    assert_eq!(details(&whole), "");
    let (first, second) = PYTHON.split_at(PYTHON.find("def test_b").unwrap());
    let split = [
        TestFile { path: "tests/test_x.py", before: Some(PYTHON), after: Some(first) },
        TestFile { path: "tests/test_y.py", before: Some(""), after: Some(second) },
    ];
    assert_eq!(details(&split), "");
}

#[test]
fn a_move_that_loses_assertions_is_flagged() {
    let files = [
        TestFile { path: "tests/test_x.py", before: Some(PYTHON), after: None },
        TestFile {
            path: "tests/test_y.py",
            before: None,
            after: Some(&PYTHON.replace("    assert i()\n", "")),
        },
    ];
    assert_eq!(details(&files), "tests/test_x.py: fewer assertions: test_c (2 assertions before, 1 after)");
}

#[test]
fn new_tests_elsewhere_do_not_hide_a_removal() {
    let files = [
        TestFile {
            path: "test_x.py",
            before: Some(PYTHON),
            after: Some(&PYTHON.replace("def test_b", "def helper")),
        },
        TestFile {
            path: "test_new.py",
            before: None,
            after: Some("def test_n():\n    assert n()\n\ndef test_m():\n    assert m()\n"),
        },
    ];
    assert!(details(&files).contains("3 tests before, 2 after: removed test_b"), "{}", details(&files));
}

#[test]
fn honest_changes_are_not_flagged() {
    let check = |path: &str, before: &str, after: &str| {
        assert_eq!(change(path, before, after), "", "{before} → {after}")
    };
    check("test_x.py", PYTHON, PYTHON);
    check("test_x.py", PYTHON, &format!("{PYTHON}\ndef test_d():\n    assert j()\n"));
    check("test_x.py", PYTHON, &PYTHON.replace("test_b", "test_b_with_a_better_name"));
    check("test_x.py", PYTHON, &PYTHON.replace("g() == 2", "g() == 3"));
    check("test_x.py", "", "import pytest\n@pytest.mark.skip\ndef test_later():\n    assert x()\n");
    check("src/lib.rs", "fn f() { assert!(x > 1); assert!(y); }", "fn f() { assert!(x > 1); }");
    check(
        "tests/x.rs",
        "// assert!(a)\n#[test]\nfn t() { assert!(b()); }",
        "#[test]\nfn t() { assert!(b()); }",
    );
    check(
        "tests/x.rs",
        "#[test]\nfn t() { let v = it.skip(1); assert!(b()); }",
        "#[test]\nfn t() { let v = it.skip(1).skip(2); assert!(b()); }",
    );
    check(
        "x.test.ts",
        "it('a', () => { expect(f('http://x')).toBe(1) })",
        "it('a', () => { expect(f('http://y')).toBe(1) }) // it.skip",
    );
}

#[test]
fn newly_skipped_tests_are_flagged() {
    let check = |path: &str, before: &str, after: &str, detail: &str| {
        assert_eq!(change(path, before, after), format!("{path}: newly skipped or narrowed: {detail}"));
    };
    check(
        "tests/x.rs",
        "#[test]\nfn t() { assert!(b()); }",
        "#[test]\n#[ignore]\nfn t() { assert!(b()); }",
        "ignore on t",
    );
    check(
        "tests/x.rs",
        "#[tokio::test]\nasync fn t() { assert!(b()); }",
        "#[ignore = \"slow\"]\n#[tokio::test]\nasync fn t() { assert!(b()); }",
        "ignore on t",
    );
    check(
        "test_x.py",
        "def test_a():\n    assert f()\n",
        "@pytest.mark.skip(reason='x')\ndef test_a():\n    assert f()\n",
        "pytest.mark.skip on test_a",
    );
    check(
        "a.test.ts",
        "it('a', () => { expect(f()).toBe(1) })",
        "it.skip('a', () => { expect(f()).toBe(1) })",
        "it.skip on a",
    );
    check(
        "a.test.ts",
        "it('a', () => { expect(f()).toBe(1) })",
        "it.only('a', () => { expect(f()).toBe(1) })",
        "it.only on a",
    );
    check(
        "a.spec.js",
        "test('a', () => { expect(f()).toBe(1) })",
        "xit('a', () => { expect(f()).toBe(1) })",
        "xit on a",
    );
    check(
        "a_test.go",
        "func TestA(t *testing.T) {\n\tt.Fatal(1)\n}\n",
        "func TestA(t *testing.T) {\n\tt.Skip(\"later\")\n\tt.Fatal(1)\n}\n",
        "t.Skip on TestA",
    );
    check(
        "src/test/java/ATest.java",
        "@Test\npublic void adds() {\n assertEquals(3, f());\n}\n",
        "@Disabled\n@Test\npublic void adds() {\n assertEquals(3, f());\n}\n",
        "@Disabled on adds",
    );
}

#[test]
fn lost_assertions_are_flagged() {
    let check = |path: &str, before: &str, after: &str, name: &str| {
        assert_eq!(
            change(path, before, after),
            format!("{path}: fewer assertions: {name} (2 assertions before, 1 after)")
        );
    };
    check(
        "tests/x.rs",
        "#[test]\nfn t() {\n assert_eq!(a(), 1);\n assert!(b());\n}",
        "#[test]\nfn t() {\n a();\n assert!(b());\n}",
        "t",
    );
    check(
        "a.test.js",
        "it('a', () => {\n expect(f()).toBe(1);\n expect(g()).toBe(2);\n})",
        "it('a', () => {\n expect(f()).toBe(1);\n // expect(g()).toBe(2);\n})",
        "a",
    );
    check(
        "a_test.go",
        "func TestA(t *testing.T) {\n require.NoError(t, e)\n if x { t.Errorf(\"x\") }\n}",
        "func TestA(t *testing.T) {\n require.NoError(t, e)\n}",
        "TestA",
    );
    check(
        "spec/a_spec.rb",
        "it \"adds\" do\n expect(f).to eq 1\n expect(g).to eq 2\nend",
        "it \"adds\" do\n expect(f).to eq 1\nend",
        "adds",
    );
    check(
        "ATest.java",
        "@Test\nvoid adds() {\n assertEquals(1, f());\n assertTrue(g());\n}",
        "@Test\nvoid adds() {\n assertEquals(1, f());\n}",
        "adds",
    );
}

#[test]
fn a_test_made_trivial_is_flagged() {
    let check = |path: &str, before: &str, after: &str| {
        let found = change(path, before, after);
        assert!(found.contains("1 new assertion that cannot fail"), "{after}: {found:?}");
        assert!(found.contains("fewer assertions"), "{after}: {found:?}");
    };
    check("tests/x.rs", "#[test]\nfn t() { assert_eq!(f(), 2); }", "#[test]\nfn t() { assert!(true); }");
    check("test_x.py", "def test_a():\n    assert f() == 1\n", "def test_a():\n    assert True\n");
    check(
        "test_x.py",
        "def test_a(self):\n    self.assertEqual(f(), 1)\n",
        "def test_a(self):\n    self.assertTrue(True)\n",
    );
    check(
        "a.test.ts",
        "it('a', () => { expect(f()).toBe(1) })",
        "it('a', () => { expect(true).toBe(true) })",
    );
    check("ATest.java", "@Test\nvoid a() { assertEquals(1, f()); }", "@Test\nvoid a() { assertTrue(true); }");
}

#[test]
fn removed_tests_are_named_in_every_language() {
    let check = |path: &str, before: &str, after: &str, gone: &str| {
        assert_eq!(change(path, before, after), format!("{path}: 2 tests before, 1 after: removed {gone}"));
    };
    check(
        "src/lib.rs",
        "#[test]\nfn a() { assert!(x()); }\n#[test]\nfn b() { assert!(y()); }",
        "#[test]\nfn a() { assert!(x()); }",
        "b",
    );
    check(
        "a_test.go",
        "func TestA(t *testing.T) {}\nfunc TestB(t *testing.T) {}",
        "func TestA(t *testing.T) {}",
        "TestB",
    );
    check(
        "a.test.ts",
        "describe('x', () => {\n it('a', f)\n test(\"b\", g)\n})",
        "describe('x', () => {\n it('a', f)\n})",
        "b",
    );
    check("ATest.kt", "@Test\nfun a() {}\n@Test\nfun b() {}", "@Test\nfun a() {}", "b");
    check(
        "ATests.cs",
        "[Fact]\npublic void A() {}\n[Theory]\n[InlineData(1)]\npublic void B(int x) {}",
        "[Fact]\npublic void A() {}",
        "B",
    );
    check("spec/a_spec.rb", "it 'a' do\nend\nit 'b' do\nend", "it 'a' do\nend", "b");
    check(
        "tests/ATest.php",
        "public function testA() {}\npublic function testB() {}",
        "public function testA() {}",
        "testB",
    );
    check("ATests.swift", "func testA() {}\nfunc testB() throws {}", "func testA() {}", "testB");
    check("test/a_test.exs", "test \"a\" do\nend\ntest \"b\" do\nend", "test \"a\" do\nend", "b");
    check("tests/a_test.cpp", "TEST(S, A) {}\nTEST(S, B) {}", "TEST(S, A) {}", "S.B");
    check("a.bats", "@test \"a\" {\n}\n@test \"b\" {\n}", "@test \"a\" {\n}", "b");
}

#[test]
fn hostile_files_are_read_in_linear_time() {
    for unit in [
        "\"",
        "'",
        "`",
        "/*",
        "r#",
        "#[test",
        "fn ",
        "it('",
        "assert",
        "\"\"\"",
        "@Test(",
        "@test \"",
        "\\",
        "é",
        "import ",
        "= require('",
        "const = test ",
        "it('a', () => {\n",
        "def test_a():\n",
        "class A:\n    def test_a(self):\n",
        "#[test]\nfn t() {\n",
        "func TestA(t *testing.T) {\n",
        "assert(",
        "assert_eq!(\n",
        "expect(x)\n.",
        "return ",
        "if false {\n",
        "def pytest_collection_modifyitems():\n",
    ] {
        let text = unit.repeat(50_000 / unit.len());
        for path in ["tests/a.rs", "test_a.py", "a.test.ts", "a_test.go", "ATest.java"] {
            let start = std::time::Instant::now();
            change(path, &text, &text);
            let took = start.elapsed();
            // A quadratic reading takes minutes; the bound leaves room for a busy machine.
            assert!(took < std::time::Duration::from_secs(6), "{unit:?} in {path} took {took:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_source_text_panics(before in "(?s).{0,200}", after in "(?s).{0,200}", extension in "(rs|py|ts|go|java|rb|php|exs|cpp|swift|bats)") {
        change(&format!("tests/x.{extension}"), &before, &after);
    }

    #[test]
    fn an_unchanged_file_is_never_flagged(lines in proptest::collection::vec(prop::sample::select(vec![
        "#[test]", "fn t() {", "assert!(true);", "#[ignore]", "}", "def test_a():", "    assert x", "it('a', () => {", "import { it as x } from 'mocha'", "const t = require('node:test')", "x('a', () => {", "t(", "r#\"", "/*", "*/", "\"", "'",
    ]), 0..30), extension in "(rs|py|ts|go|java)") {
        let text = lines.join("\n");
        prop_assert_eq!(change(&format!("tests/x.{extension}"), &text, &text), "");
    }
}

#[test]
fn tests_under_imported_names_are_counted() {
    let file = |import: &str, name: &str, tests: &[&str]| {
        let test = |title: &&str| format!("{name}('{title}', () => {{\n  a.equal(f(), 1);\n}});\n");
        format!("{import};\nconst a = require('assert');\n{}", tests.iter().map(test).collect::<String>())
    };
    for (import, name) in [
        ("const t = require('node:test')", "t"),
        ("import t from 'node:test'", "t"),
        ("import { test as spec } from 'node:test'", "spec"),
        ("const { it: spec } = require('mocha')", "spec"),
    ] {
        let before = file(import, name, &["one", "two"]);
        let fewer = change("test/a.test.js", &before, &file(import, name, &["one"]));
        assert!(fewer.contains("2 tests before, 1 after: removed two"), "{import}: {fewer}");
        let empty = before.replacen("  a.equal(f(), 1);\n", "", 1);
        let fewer = change("test/a.test.js", &before, &empty);
        assert!(fewer.contains("fewer assertions: one (1 assertion before, 0 after)"), "{import}: {fewer}");
        let skipped = before.replace(&format!("{name}('two'"), &format!("{name}.skip('two'"));
        assert!(change("test/a.test.js", &before, &skipped).contains("skip on two"), "{import}");
        // Honest: the same tests under their usual name, and one more.
        let usual = file("const { test } = require('node:test')", "test", &["one", "two", "three"]);
        assert_eq!(change("test/a.test.js", &before, &usual), "", "{import}");
    }
}
