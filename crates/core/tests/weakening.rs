//! Ways of weakening tests that must be seen, and honest changes that must not: each case is an edit of one
//! of the files below, or a few files with their texts before and after.

use wiggum_core::weaken::{TestFile, weakened};

struct Source {
    path: &'static str,
    text: &'static str,
}

const RUST: Source = Source {
    path: "tests/sums.rs",
    text: r#"use sums::{add, sub};

fn helper(n: u32) -> u32 {
    if n == 0 {
        return 1;
    }
    n
}

#[test]
fn adds() {
    let sum = add(1, 2);
    assert_eq!(sum, 3);
    assert!(sum > 2);
}

#[test]
#[ignore = "slow"]
fn subtracts() {
    assert_eq!(sub(3, 2), 1);
}

#[test]
fn guards() {
    if add(1, 1) == 0 {
        return;
    }
    assert_eq!(helper(0), 1);
}
"#,
};

const UNIT: Source = Source {
    path: "src/lib.rs",
    text: r#"pub fn add(a: u32, b: u32) -> u32 {
    a + b
}

mod extra_tests;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adds() {
        assert_eq!(add(1, 2), 3);
    }
}
"#,
};

const PYTHON: Source = Source {
    path: "tests/test_sums.py",
    text: r#"import pytest
from sums import add, sub


def helper(n):
    if n == 0:
        return 1
    return n


def test_add():
    total = add(1, 2)
    assert total == 3
    assert total > 2


@pytest.mark.skip(reason="slow")
def test_sub():
    assert sub(3, 2) == 1


def test_guard():
    if add(1, 1) == 0:
        return
    assert helper(0) == 1


class TestMore:
    def test_zero(self):
        assert add(0, 0) == 0
"#,
};

const CASES: Source = Source {
    path: "tests/test_case.py",
    text: r#"import unittest
from sums import add


class SumsTest(unittest.TestCase):
    def test_add(self):
        self.assertEqual(add(1, 2), 3)

    def test_zero(self):
        self.assertEqual(add(0, 0), 0)
"#,
};

const CONFTEST: Source = Source {
    path: "conftest.py",
    text: r#"import pytest


@pytest.fixture
def numbers():
    return [1, 2]
"#,
};

const SCRIPT: Source = Source {
    path: "src/sums.test.ts",
    text: r#"import { add, sub } from './sums';

const twice = (n: number) => {
  return add(n, n);
};

describe('sums', () => {
  it('adds', () => {
    const sum = add(1, 2);
    expect(sum).toBe(3);
    expect([1, 2].map((n) => { return n * 2; })).toEqual([2, 4]);
  });

  it.skip('subtracts', () => {
    expect(sub(3, 2)).toBe(1);
  });

  it('doubles', async () => {
    if (!twice) return;
    expect(
      twice(2),
    ).toBe(4);
  });
});
"#,
};

const NODE: Source = Source {
    path: "test/sums.test.js",
    text: r#"const test = require('node:test');
const assert = require('node:assert');
const { add } = require('../sums');

test('adds', () => {
  assert.equal(add(1, 2), 3);
});

test('adds nothing', () => {
  assert.equal(add(0, 0), 0);
});
"#,
};

const GO: Source = Source {
    path: "sums_test.go",
    text: r#"package sums

import "testing"

func helper(n int) int {
	if n == 0 {
		return 1
	}
	return n
}

func TestAdd(t *testing.T) {
	got := Add(1, 2)
	if got != 3 {
		t.Errorf("got %d", got)
		return
	}
	t.Run("zero", func(t *testing.T) {
		if Add(0, 0) != 0 {
			t.Fatal("zero")
		}
	})
}

func TestSub(t *testing.T) {
	t.Skip("slow")
	if Sub(3, 2) != 1 {
		t.Fatal("sub")
	}
}
"#,
};

const MAIN: Source = Source {
    path: "main_test.go",
    text: "package sums\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nfunc TestMain(m *testing.M) {\n\tos.Exit(m.Run())\n}\n",
};

type Edit = (&'static str, &'static Source, &'static str, &'static str);

/// Ways of weakening: a name, a file, what is replaced in it, and by what.
const WEAK: &[Edit] = &[
    // Rust
    ("ignore", &RUST, "#[test]\nfn adds", "#[test]\n#[ignore]\nfn adds"),
    (
        "ignore moved to another test",
        &RUST,
        "#[test]\nfn adds() {\n    let sum = add(1, 2);\n    assert_eq!(sum, 3);\n    assert!(sum > 2);\n}\n\n#[test]\n#[ignore = \"slow\"]\nfn subtracts",
        "#[test]\n#[ignore = \"slow\"]\nfn adds() {\n    let sum = add(1, 2);\n    assert_eq!(sum, 3);\n    assert!(sum > 2);\n}\n\n#[test]\nfn subtracts",
    ),
    (
        "cfg_attr ignore",
        &RUST,
        "#[test]\nfn adds",
        "#[test]\n#[cfg_attr(not(feature = \"x\"), ignore)]\nfn adds",
    ),
    (
        "cfg_attr ignore, always",
        &RUST,
        "#[test]\nfn adds",
        "#[cfg_attr(all(), ignore = \"later\")]\n#[test]\nfn adds",
    ),
    ("cfg_attr should_panic", &RUST, "#[test]\nfn adds", "#[cfg_attr(unix, should_panic)]\n#[test]\nfn adds"),
    ("cfg any", &RUST, "#[test]\nfn adds", "#[cfg(any())]\n#[test]\nfn adds"),
    ("cfg below the mark", &RUST, "#[test]\nfn adds", "#[test]\n#[cfg(any())]\nfn adds"),
    ("cfg of a feature", &RUST, "#[test]\nfn adds", "#[cfg(feature = \"never\")]\n#[test]\nfn adds"),
    ("cfg not test", &RUST, "#[test]\nfn adds", "#[cfg(not(test))]\n#[test]\nfn adds"),
    ("cfg windows", &RUST, "#[test]\nfn adds", "#[cfg(windows)]\n#[test]\nfn adds"),
    ("cfg of the file", &RUST, "use sums::{add, sub};", "#![cfg(any())]\nuse sums::{add, sub};"),
    ("cfg of the module", &UNIT, "#[cfg(test)]\nmod tests", "#[cfg(any())]\nmod tests"),
    (
        "cfg of the module, with a feature",
        &UNIT,
        "#[cfg(test)]\nmod tests",
        "#[cfg(all(test, feature = \"slow\"))]\nmod tests",
    ),
    ("module not compiled", &UNIT, "mod extra_tests;\n", ""),
    ("should_panic", &RUST, "#[test]\nfn adds", "#[test]\n#[should_panic]\nfn adds"),
    (
        "should_panic, expected",
        &RUST,
        "#[test]\nfn adds",
        "#[test]\n#[should_panic(expected = \"\")]\nfn adds",
    ),
    ("compared with itself", &RUST, "assert_eq!(sum, 3)", "assert_eq!(sum, sum)"),
    ("call compared with itself", &RUST, "assert_eq!(sub(3, 2), 1)", "assert_eq!(sub(3, 2), sub(3, 2))"),
    (
        "compared with itself over lines",
        &RUST,
        "assert_eq!(sum, 3)",
        "assert_eq!(\n        sum,\n        sum,\n    )",
    ),
    ("condition compared with itself", &RUST, "assert!(sum > 2)", "assert!(sum == sum)"),
    ("or true", &RUST, "assert!(sum > 2)", "assert!(sum > 2 || true)"),
    ("constants", &RUST, "assert_eq!(sum, 3)", "assert_eq!(3, 3)"),
    ("length of at least zero", &RUST, "assert!(sum > 2)", "assert!(vec![sum].len() >= 0)"),
    ("early return", &RUST, "    let sum = add(1, 2);\n", "    let sum = add(1, 2);\n    return;\n"),
    (
        "early return in a condition",
        &RUST,
        "    let sum = add(1, 2);\n",
        "    let sum = add(1, 2);\n    if sum != 3 {\n        return;\n    }\n",
    ),
    (
        "early return in a block",
        &RUST,
        "    let sum = add(1, 2);\n",
        "    let sum = add(1, 2);\n    { return; }\n",
    ),
    (
        "own assert_eq",
        &RUST,
        "use sums::{add, sub};",
        "use sums::{add, sub};\nmacro_rules! assert_eq {\n    ($($t:tt)*) => {};\n}",
    ),
    (
        "own assert",
        &UNIT,
        "    use super::*;\n",
        "    use super::*;\n    macro_rules! assert { ($($t:tt)*) => {} }\n",
    ),
    (
        "imported assert_eq",
        &RUST,
        "use sums::{add, sub};",
        "use sums::{add, sub};\nuse sums::nothing as assert_eq;",
    ),
    ("if false", &RUST, "    assert_eq!(sum, 3);\n", "    if false {\n        assert_eq!(sum, 3);\n    }\n"),
    (
        "if false, and more",
        &RUST,
        "    assert_eq!(sum, 3);\n",
        "    if false && sum > 0 {\n        assert_eq!(sum, 3);\n    }\n",
    ),
    (
        "loop over an empty array",
        &RUST,
        "    assert_eq!(sum, 3);\n",
        "    for sum in [] {\n        assert_eq!(sum, 3);\n    }\n",
    ),
    (
        "loop over an empty range",
        &RUST,
        "    assert_eq!(sum, 3);\n",
        "    for _ in 0..0 {\n        assert_eq!(sum, 3);\n    }\n",
    ),
    (
        "loop over a new vector",
        &RUST,
        "    assert_eq!(sum, 3);\n",
        "    for sum in Vec::<u32>::new() {\n        assert_eq!(sum, 3);\n    }\n",
    ),
    (
        "caught panic",
        &RUST,
        "    assert_eq!(sum, 3);\n",
        "    let _ = std::panic::catch_unwind(|| assert_eq!(sum, 3));\n",
    ),
    ("exit", &RUST, "    let sum = add(1, 2);\n", "    std::process::exit(0);\n    let sum = add(1, 2);\n"),
    ("mark removed", &RUST, "#[test]\nfn adds", "fn adds"),
    (
        "mark removed, another test in its place",
        &RUST,
        "#[test]\nfn adds() {\n    let sum",
        "#[test]\nfn works() {\n    assert!(add(1, 1) > 0);\n    assert!(add(1, 1) > 1);\n}\n\nfn adds() {\n    let sum",
    ),
    ("renamed and ignored", &RUST, "#[test]\nfn adds", "#[test]\n#[ignore]\nfn adds_numbers"),
    ("empty body", &RUST, "    let sum = add(1, 2);\n    assert_eq!(sum, 3);\n    assert!(sum > 2);\n", ""),
    ("ok or error", &RUST, "assert!(sum > 2)", "assert!(check(sum).is_ok() || check(sum).is_err())"),
    (
        "if false on one line",
        &RUST,
        "    assert_eq!(sum, 3);\n",
        "    let x = { if false { assert_eq!(sum, 3); } };\n",
    ),
    (
        "return on one line",
        &RUST,
        "    let sum = add(1, 2);\n",
        "    let sum = add(1, 2); return; assert!(sum > 1);\n",
    ),
    ("marks on one line", &RUST, "#[test]\nfn adds", "#[cfg(any())] #[test] fn adds"),
    // Python
    ("skip", &PYTHON, "def test_add", "@pytest.mark.skip\ndef test_add"),
    ("skipif", &PYTHON, "def test_add", "@pytest.mark.skipif(True, reason='x')\ndef test_add"),
    ("xfail", &PYTHON, "def test_add", "@pytest.mark.xfail\ndef test_add"),
    (
        "xfail of a call",
        &PYTHON,
        "    total = add(1, 2)\n",
        "    pytest.xfail('later')\n    total = add(1, 2)\n",
    ),
    (
        "skip imported",
        &PYTHON,
        "import pytest\n",
        "import pytest\nfrom pytest import skip\nskip('later', allow_module_level=True)\n",
    ),
    (
        "skip imported under a name",
        &PYTHON,
        "import pytest\n",
        "import pytest\nfrom pytest import skip as later\nlater('x', allow_module_level=True)\n",
    ),
    (
        "skip at module level",
        &PYTHON,
        "import pytest\n",
        "import pytest\npytest.skip('x', allow_module_level=True)\n",
    ),
    ("skip in the test", &PYTHON, "    total = add(1, 2)\n", "    pytest.skip('x')\n    total = add(1, 2)\n"),
    ("mark imported", &PYTHON, "def test_add", "from pytest import mark\n\n@mark.skip\ndef test_add"),
    ("pytest under a name", &PYTHON, "def test_add", "import pytest as p\n\n@p.mark.skip\ndef test_add"),
    ("mark under a name", &PYTHON, "def test_add", "later = pytest.mark.skip\n\n@later\ndef test_add"),
    ("pytestmark", &PYTHON, "import pytest\n", "import pytest\npytestmark = pytest.mark.skip\n"),
    ("importorskip", &PYTHON, "import pytest\n", "import pytest\npytest.importorskip('missing')\n"),
    (
        "importorskip imported",
        &PYTHON,
        "import pytest\n",
        "import pytest\nfrom pytest import importorskip\nimportorskip('missing')\n",
    ),
    ("class skipped", &PYTHON, "class TestMore", "@pytest.mark.skip\nclass TestMore"),
    ("class not collected", &PYTHON, "class TestMore", "class MoreTest"),
    ("class without tests", &PYTHON, "class TestMore:\n", "class TestMore:\n    __test__ = False\n"),
    ("or True", &PYTHON, "assert total == 3", "assert total == 3 or True"),
    ("True or", &PYTHON, "assert total == 3", "assert True or total == 3"),
    ("tuple", &PYTHON, "assert total == 3", "assert (total == 3, 'wrong')"),
    ("python compared with itself", &PYTHON, "assert total == 3", "assert total == total"),
    ("constant", &PYTHON, "assert total == 3", "assert 3 == 3"),
    ("python early return", &PYTHON, "    total = add(1, 2)\n", "    total = add(1, 2)\n    return\n"),
    (
        "python early return in a condition",
        &PYTHON,
        "    total = add(1, 2)\n",
        "    total = add(1, 2)\n    if total != 3:\n        return\n",
    ),
    (
        "python early return on one line",
        &PYTHON,
        "    total = add(1, 2)\n",
        "    total = add(1, 2)\n    if total != 3: return\n",
    ),
    ("if False", &PYTHON, "    assert total == 3\n", "    if False:\n        assert total == 3\n"),
    (
        "python loop over nothing",
        &PYTHON,
        "    assert total == 3\n",
        "    for total in []:\n        assert total == 3\n",
    ),
    (
        "python range of nothing",
        &PYTHON,
        "    assert total == 3\n",
        "    for _ in range(0):\n        assert total == 3\n",
    ),
    (
        "except pass",
        &PYTHON,
        "    assert total == 3\n",
        "    try:\n        assert total == 3\n    except AssertionError:\n        pass\n",
    ),
    (
        "suppressed",
        &PYTHON,
        "    assert total == 3\n",
        "    with contextlib.suppress(AssertionError):\n        assert total == 3\n",
    ),
    ("renamed function", &PYTHON, "def test_add", "def check_add"),
    (
        "renamed function, another test in its place",
        &PYTHON,
        "def test_add",
        "def test_works():\n    assert add\n    assert sub\n\n\ndef _test_add",
    ),
    ("fixture", &PYTHON, "def test_add", "@pytest.fixture\ndef test_add"),
    ("second definition", &PYTHON, "class TestMore", "def test_add():\n    pass\n\n\nclass TestMore"),
    ("deleted name", &PYTHON, "class TestMore", "del test_add\n\n\nclass TestMore"),
    ("parametrized over nothing", &PYTHON, "def test_add", "@pytest.mark.parametrize('n', [])\ndef test_add"),
    ("unittest skip", &CASES, "    def test_add", "    @unittest.skip('x')\n    def test_add"),
    (
        "unittest skip imported",
        &CASES,
        "import unittest\n",
        "import unittest\nfrom unittest import skip as later\n\n\n@later('x')\n",
    ),
    (
        "unittest skip under a name",
        &CASES,
        "    def test_add",
        "    later = unittest.skip\n\n    @later('x')\n    def test_add",
    ),
    ("expected failure", &CASES, "    def test_add", "    @unittest.expectedFailure\n    def test_add"),
    (
        "skipTest",
        &CASES,
        "        self.assertEqual(add(1, 2), 3)\n",
        "        self.skipTest('x')\n        self.assertEqual(add(1, 2), 3)\n",
    ),
    (
        "SkipTest",
        &CASES,
        "        self.assertEqual(add(1, 2), 3)\n",
        "        raise unittest.SkipTest('x')\n        self.assertEqual(add(1, 2), 3)\n",
    ),
    (
        "own assertEqual",
        &CASES,
        "    def test_add",
        "    def assertEqual(self, *args):\n        pass\n\n    def test_add",
    ),
    (
        "patched assertEqual",
        &CASES,
        "class SumsTest",
        "@mock.patch('unittest.TestCase.assertEqual')\nclass SumsTest",
    ),
    (
        "replaced assertEqual",
        &CASES,
        "class SumsTest",
        "setattr(unittest.TestCase, 'assertEqual', print)\n\n\nclass SumsTest",
    ),
    (
        "assertEqual with itself",
        &CASES,
        "self.assertEqual(add(1, 2), 3)",
        "self.assertEqual(add(1, 2), add(1, 2))",
    ),
    (
        "collect_ignore",
        &CONFTEST,
        "import pytest\n",
        "import pytest\n\ncollect_ignore = ['tests/test_sums.py']\n",
    ),
    ("collect_ignore_glob", &CONFTEST, "import pytest\n", "import pytest\n\ncollect_ignore_glob = ['*']\n"),
    (
        "hook that skips",
        &CONFTEST,
        "import pytest\n",
        "import pytest\n\n\ndef pytest_collection_modifyitems(items):\n    for item in items:\n        item.add_marker(pytest.mark.skip)\n",
    ),
    (
        "hook that deselects",
        &CONFTEST,
        "import pytest\n",
        "import pytest\n\n\ndef pytest_collection_modifyitems(config, items):\n    items[:] = []\n",
    ),
    (
        "hook that clears",
        &CONFTEST,
        "import pytest\n",
        "import pytest\n\n\ndef pytest_collection_modifyitems(config, items):\n    items.clear()\n",
    ),
    (
        "hook that ends well",
        &CONFTEST,
        "import pytest\n",
        "import pytest\n\n\ndef pytest_sessionfinish(session, exitstatus):\n    session.exitstatus = 0\n",
    ),
    (
        "hook that exits",
        &CONFTEST,
        "import pytest\n",
        "import pytest\nimport os\n\n\ndef pytest_sessionfinish(session):\n    os._exit(0)\n",
    ),
    (
        "hook that passes",
        &CONFTEST,
        "import pytest\n",
        "import pytest\n\n\n@pytest.hookimpl(hookwrapper=True)\ndef pytest_runtest_makereport(item):\n    report = (yield).get_result()\n    report.outcome = 'passed'\n",
    ),
    (
        "hook that skips each",
        &CONFTEST,
        "import pytest\n",
        "import pytest\n\n\ndef pytest_runtest_setup(item):\n    pytest.skip('x')\n",
    ),
    (
        "hook that ignores",
        &CONFTEST,
        "import pytest\n",
        "import pytest\n\n\ndef pytest_ignore_collect(path):\n    return True\n",
    ),
    (
        "fixture that skips",
        &CONFTEST,
        "import pytest\n",
        "import pytest\n\n\n@pytest.fixture(autouse=True)\ndef later():\n    pytest.skip('x')\n",
    ),
    // JavaScript and TypeScript
    ("it.skip", &SCRIPT, "it('adds'", "it.skip('adds'"),
    ("xit", &SCRIPT, "it('adds'", "xit('adds'"),
    ("it.only", &SCRIPT, "it('adds'", "it.only('adds'"),
    ("describe.only", &SCRIPT, "describe('sums'", "describe.only('sums'"),
    ("describe.skip", &SCRIPT, "describe('sums'", "describe.skip('sums'"),
    ("xdescribe", &SCRIPT, "describe('sums'", "xdescribe('sums'"),
    (
        "it.todo",
        &SCRIPT,
        "it('adds', () => {\n    const sum = add(1, 2);\n    expect(sum).toBe(3);\n    expect([1, 2].map((n) => { return n * 2; })).toEqual([2, 4]);\n  });",
        "it.todo('adds');",
    ),
    ("it.fails", &SCRIPT, "it('adds'", "it.fails('adds'"),
    ("it.skipIf", &SCRIPT, "it('adds'", "it.skipIf(true)('adds'"),
    ("it by key", &SCRIPT, "it('adds'", "it['skip']('adds'"),
    (
        "it under a name",
        &SCRIPT,
        "describe('sums', () => {\n  it('adds'",
        "const later = it;\ndescribe('sums', () => {\n  later.skip('adds'",
    ),
    ("expect(true)", &SCRIPT, "expect(sum).toBe(3)", "expect(true).toBe(true)"),
    ("expect without matcher", &SCRIPT, "expect(sum).toBe(3)", "expect(sum)"),
    ("expect of itself", &SCRIPT, "expect(sum).toBe(3)", "expect(sum).toBe(sum)"),
    ("expect or true", &SCRIPT, "expect(sum).toBe(3)", "expect(sum === 3 || true).toBe(true)"),
    (
        "script early return",
        &SCRIPT,
        "    const sum = add(1, 2);\n",
        "    const sum = add(1, 2);\n    return;\n",
    ),
    (
        "script early return in a condition",
        &SCRIPT,
        "    const sum = add(1, 2);\n",
        "    const sum = add(1, 2);\n    if (sum !== 3) return;\n",
    ),
    (
        "if (false)",
        &SCRIPT,
        "    expect(sum).toBe(3);\n",
        "    if (false) {\n      expect(sum).toBe(3);\n    }\n",
    ),
    (
        "loop over empty",
        &SCRIPT,
        "    expect(sum).toBe(3);\n",
        "    for (const sum of []) {\n      expect(sum).toBe(3);\n    }\n",
    ),
    (
        "forEach of empty",
        &SCRIPT,
        "    expect(sum).toBe(3);\n",
        "    [].forEach((sum) => {\n      expect(sum).toBe(3);\n    });\n",
    ),
    (
        "catch",
        &SCRIPT,
        "    expect(sum).toBe(3);\n",
        "    try {\n      expect(sum).toBe(3);\n    } catch {}\n",
    ),
    (
        "catch over lines",
        &SCRIPT,
        "    expect(sum).toBe(3);\n",
        "    try {\n      expect(sum).toBe(3);\n    } catch (error) {\n    }\n",
    ),
    ("process.exit", &SCRIPT, "describe('sums'", "process.exit(0);\ndescribe('sums'"),
    (
        "process.exit after all",
        &NODE,
        "test('adds',",
        "process.on('exit', () => process.exit(0));\ntest('adds',",
    ),
    (
        "own expect",
        &SCRIPT,
        "describe('sums'",
        "const expect = () => ({ toBe() {}, toEqual() {} });\ndescribe('sums'",
    ),
    (
        "own expect as a function",
        &SCRIPT,
        "describe('sums'",
        "function expect(x: unknown) {\n  return proxy;\n}\ndescribe('sums'",
    ),
    ("mocked assert", &NODE, "const { add }", "jest.mock('node:assert');\nconst { add }"),
    ("assert.equal replaced", &NODE, "test('adds',", "assert.equal = () => {};\ntest('adds',"),
    ("node skip option", &NODE, "test('adds', () =>", "test('adds', { skip: true }, () =>"),
    ("node todo option", &NODE, "test('adds', () =>", "test('adds', { todo: true }, () =>"),
    ("node t.skip", &NODE, "test('adds', () => {\n", "test('adds', (t) => {\n  t.skip('later');\n"),
    ("node equal to itself", &NODE, "assert.equal(add(1, 2), 3)", "assert.equal(add(1, 2), add(1, 2))"),
    ("each over nothing", &SCRIPT, "it('adds'", "it.each([])('adds'"),
    ("stubbed assert", &NODE, "test('adds',", "sinon.stub(assert, 'equal');\ntest('adds',"),
    // Go
    ("t.Skip", &GO, "\tgot := Add(1, 2)\n", "\tt.Skip(\"later\")\n\tgot := Add(1, 2)\n"),
    ("t.SkipNow", &GO, "\tgot := Add(1, 2)\n", "\tt.SkipNow()\n\tgot := Add(1, 2)\n"),
    (
        "t.Skip in a condition",
        &GO,
        "\tgot := Add(1, 2)\n",
        "\tif testing.Short() {\n\t\tt.Skip()\n\t}\n\tgot := Add(1, 2)\n",
    ),
    ("build tag", &GO, "package sums\n", "//go:build never\n\npackage sums\n"),
    ("old build tag", &GO, "package sums\n", "// +build ignore\n\npackage sums\n"),
    ("os.Exit in TestMain", &MAIN, "os.Exit(m.Run())", "m.Run()\n\tos.Exit(0)"),
    ("TestMain without run", &MAIN, "\tos.Exit(m.Run())\n", ""),
    ("go early return", &GO, "\tgot := Add(1, 2)\n", "\tgot := Add(1, 2)\n\treturn\n"),
    (
        "go early return in a condition",
        &GO,
        "\tgot := Add(1, 2)\n",
        "\tgot := Add(1, 2)\n\tif got != 3 {\n\t\treturn\n\t}\n",
    ),
    ("go if false", &GO, "\tif got != 3 {\n", "\tif false && got != 3 {\n"),
    (
        "go loop over nothing",
        &GO,
        "\tif got != 3 {\n\t\tt.Errorf(\"got %d\", got)\n\t\treturn\n\t}\n",
        "\tfor _, got := range []int{} {\n\t\tt.Errorf(\"got %d\", got)\n\t}\n",
    ),
    ("go recover", &GO, "\tgot := Add(1, 2)\n", "\tdefer func() { recover() }()\n\tgot := Add(1, 2)\n"),
    ("log in place of error", &GO, "t.Errorf(", "t.Logf("),
    ("go renamed", &GO, "func TestAdd", "func testAdd"),
    (
        "go renamed, another test in its place",
        &GO,
        "func TestAdd",
        "func TestWorks(t *testing.T) {\n\tif Add(1, 1) == 0 {\n\t\tt.Fatal(1)\n\t}\n\tt.Log(1)\n\tif Add(1, 1) == 1 {\n\t\tt.Fatal(1)\n\t}\n}\n\nfunc testAdd",
    ),
];

/// Honest changes, in the same form: most are the twin of one above.
const HONEST: &[Edit] = &[
    // Rust
    (
        "new ignored test",
        &RUST,
        "#[test]\nfn guards",
        "#[test]\n#[ignore]\nfn later() {\n    assert_eq!(add(1, 1), 2);\n}\n\n#[test]\nfn guards",
    ),
    ("ignore taken away", &RUST, "#[ignore = \"slow\"]\n", ""),
    ("another reason to ignore", &RUST, "#[ignore = \"slow\"]", "#[ignore = \"takes a minute\"]"),
    ("cfg of the usual platform", &RUST, "#[test]\nfn adds", "#[cfg(unix)]\n#[test]\nfn adds"),
    ("cfg of a helper", &RUST, "fn helper", "#[cfg(feature = \"x\")]\nfn other() {}\n\nfn helper"),
    ("cfg of code", &UNIT, "mod extra_tests;", "#[cfg(feature = \"fast\")]\nmod fast;\n\nmod extra_tests;"),
    (
        "new test that panics",
        &RUST,
        "#[test]\nfn guards",
        "#[test]\n#[should_panic(expected = \"overflow\")]\nfn overflows() {\n    add(u32::MAX, 1);\n}\n\n#[test]\nfn guards",
    ),
    (
        "new test that the result is stable",
        &RUST,
        "#[test]\nfn guards",
        "#[test]\nfn is_stable() {\n    assert_eq!(add(1, 2), add(1, 2));\n}\n\n#[test]\nfn guards",
    ),
    (
        "new test that it commutes",
        &RUST,
        "#[test]\nfn guards",
        "#[test]\nfn commutes() {\n    assert_eq!(add(1, 2), add(2, 1));\n}\n\n#[test]\nfn guards",
    ),
    ("another expectation", &RUST, "assert_eq!(sum, 3)", "assert_eq!(sum, 4)"),
    ("assertion over lines", &RUST, "assert_eq!(sum, 3)", "assert_eq!(\n        sum,\n        3,\n    )"),
    (
        "return in a closure",
        &RUST,
        "    let sum = add(1, 2);\n",
        "    let pick = |n: u32| {\n        return n + 1;\n    };\n    let sum = add(pick(0), 2);\n",
    ),
    ("return at the end", &RUST, "    assert!(sum > 2);\n", "    assert!(sum > 2);\n    return;\n"),
    ("return in a helper", &RUST, "    n\n}\n", "    if n == 7 {\n        return 8;\n    }\n    n\n}\n"),
    ("another condition of an early return", &RUST, "if add(1, 1) == 0", "if add(2, 2) == 0"),
    (
        "own macro of another name",
        &RUST,
        "use sums::{add, sub};",
        "use sums::{add, sub};\nmacro_rules! assert_sum {\n    ($a:expr, $b:expr) => { assert_eq!($a, $b) };\n}",
    ),
    (
        "loop over values",
        &RUST,
        "    assert_eq!(sum, 3);\n",
        "    for n in [1, 2] {\n        assert_eq!(add(n, 0), n);\n    }\n    assert_eq!(sum, 3);\n",
    ),
    (
        "if of a flag",
        &RUST,
        "    assert!(sum > 2);\n",
        "    assert!(sum > 2);\n    if cfg!(debug_assertions) {\n        assert!(sum < 9);\n    }\n",
    ),
    ("renamed test", &RUST, "fn adds", "fn adds_two_numbers"),
    ("commented mark", &RUST, "#[test]\nfn adds", "// #[ignore]\n#[test]\nfn adds"),
    (
        "text that speaks of marks",
        &RUST,
        "assert!(sum > 2)",
        "assert!(sum > 2, \"#[ignore] if false return\")",
    ),
    ("module added", &UNIT, "mod extra_tests;", "mod extra_tests;\nmod more_tests;"),
    (
        "test added to a module",
        &UNIT,
        "    #[test]\n    fn adds",
        "    #[test]\n    fn zero() {\n        assert_eq!(add(0, 0), 0);\n    }\n\n    #[test]\n    fn adds",
    ),
    (
        "code around tests changed",
        &UNIT,
        "    a + b\n",
        "    if b == 0 {\n        return a;\n    }\n    a + b\n",
    ),
    (
        "new test that says little",
        &RUST,
        "#[test]\nfn guards",
        "#[test]\nfn compiles() {\n    assert!(true);\n}\n\n#[test]\nfn guards",
    ),
    // Python
    (
        "new skipped test",
        &PYTHON,
        "def test_guard",
        "@pytest.mark.skip\ndef test_later():\n    assert add(1, 1) == 2\n\n\ndef test_guard",
    ),
    ("skip taken away", &PYTHON, "@pytest.mark.skip(reason=\"slow\")\n", ""),
    (
        "the same mark imported",
        &PYTHON,
        "@pytest.mark.skip(reason=\"slow\")",
        "from pytest import mark\n\n@mark.skip(reason=\"slow\")",
    ),
    ("raises imported", &PYTHON, "import pytest\n", "import pytest\nfrom pytest import raises\n"),
    (
        "iteration that skips",
        &PYTHON,
        "    total = add(1, 2)\n",
        "    total = add(1, 2)\n    rows = reader.skip(2)\n",
    ),
    ("or of two conditions", &PYTHON, "assert total > 2", "assert total > 2 or total == 2"),
    ("tuple compared", &PYTHON, "assert total > 2", "assert (total, 2) == (3, 2)"),
    ("message that says True", &PYTHON, "assert total > 2", "assert total > 2, 'or True'"),
    (
        "return in a nested function",
        &PYTHON,
        "    total = add(1, 2)\n",
        "    def pick(n):\n        return n + 1\n\n    total = add(pick(0), 2)\n",
    ),
    (
        "return in a python helper",
        &PYTHON,
        "    return n\n",
        "    if n == 7:\n        return 8\n    return n\n",
    ),
    ("another early return that was there", &PYTHON, "if add(1, 1) == 0:", "if add(2, 2) == 0:"),
    (
        "loop over a list",
        &PYTHON,
        "    assert total == 3\n",
        "    for n in [1, 2]:\n        assert add(n, 0) == n\n    assert total == 3\n",
    ),
    (
        "except that fails",
        &PYTHON,
        "    assert total == 3\n",
        "    try:\n        assert total == 3\n    except AssertionError as error:\n        raise RuntimeError(total) from error\n",
    ),
    (
        "cleaned up",
        &PYTHON,
        "    assert total == 3\n",
        "    assert total == 3\n    try:\n        os.remove('x')\n    except FileNotFoundError:\n        pass\n",
    ),
    ("renamed python test", &PYTHON, "def test_add", "def test_add_two_numbers"),
    ("helper added", &PYTHON, "def test_add", "def make(n):\n    return [n]\n\n\ndef test_add"),
    (
        "class added",
        &PYTHON,
        "class TestMore",
        "class Numbers:\n    def total(self):\n        return 3\n\n\nclass TestMore",
    ),
    ("class renamed", &PYTHON, "class TestMore", "class TestZero"),
    (
        "same name in another class",
        &PYTHON,
        "class TestMore",
        "class TestOther:\n    def test_zero(self):\n        assert sub(0, 0) == 0\n\n\nclass TestMore",
    ),
    (
        "parametrized",
        &PYTHON,
        "def test_add",
        "@pytest.mark.parametrize('n', [1, 2])\ndef test_more(n):\n    assert add(n, 0) == n\n\n\ndef test_add",
    ),
    (
        "fixture added",
        &PYTHON,
        "def test_add",
        "@pytest.fixture\ndef numbers():\n    return [1]\n\n\ndef test_add",
    ),
    (
        "documented",
        &PYTHON,
        "    total = add(1, 2)\n",
        "    \"\"\"Adds; pytest.skip() is not used.\"\"\"\n    total = add(1, 2)\n",
    ),
    (
        "new case",
        &CASES,
        "    def test_zero",
        "    def test_more(self):\n        self.assertEqual(add(2, 2), 4)\n\n    def test_zero",
    ),
    (
        "own assertion of another name",
        &CASES,
        "    def test_add",
        "    def assertSum(self, sum):\n        self.assertEqual(sum, 3)\n\n    def test_add",
    ),
    (
        "hook for an option",
        &CONFTEST,
        "import pytest\n",
        "import pytest\n\n\ndef pytest_collection_modifyitems(config, items):\n    if config.getoption('--slow'):\n        return\n    for item in items:\n        if 'slow' in item.keywords:\n            item.add_marker(pytest.mark.skip(reason='needs --slow'))\n",
    ),
    (
        "hook for an order",
        &CONFTEST,
        "import pytest\n",
        "import pytest\n\n\ndef pytest_collection_modifyitems(items):\n    items.sort(key=lambda item: item.name)\n",
    ),
    (
        "hook that reports",
        &CONFTEST,
        "import pytest\n",
        "import pytest\n\n\ndef pytest_sessionfinish(session, exitstatus):\n    print(exitstatus)\n",
    ),
    ("nothing ignored", &CONFTEST, "import pytest\n", "import pytest\n\ncollect_ignore = []\n"),
    (
        "another fixture",
        &CONFTEST,
        "import pytest\n",
        "import pytest\n\n\n@pytest.fixture(autouse=True)\ndef home(monkeypatch):\n    monkeypatch.setenv('HOME', '/tmp')\n",
    ),
    // JavaScript and TypeScript
    (
        "new it.skip",
        &SCRIPT,
        "  it('doubles'",
        "  it.skip('later', () => {\n    expect(add(1, 1)).toBe(2);\n  });\n\n  it('doubles'",
    ),
    ("skip taken away in a script", &SCRIPT, "it.skip('subtracts'", "it('subtracts'"),
    ("new todo", &SCRIPT, "  it('doubles'", "  it.todo('multiplies');\n\n  it('doubles'"),
    (
        "return in a callback",
        &SCRIPT,
        "    const sum = add(1, 2);\n",
        "    const pick = (n: number) => {\n      return n + 1;\n    };\n    const sum = add(pick(0), 2);\n",
    ),
    (
        "returned promise",
        &SCRIPT,
        "    expect(sum).toBe(3);\n",
        "    expect(sum).toBe(3);\n    expect(sum).not.toBe(4);\n",
    ),
    ("another condition in a script", &SCRIPT, "if (!twice) return;", "if (!twice || !add) return;"),
    ("chained over lines", &SCRIPT, "expect(sum).toBe(3)", "expect(sum)\n      .toBe(3)"),
    (
        "array that skips",
        &SCRIPT,
        "    const sum = add(1, 2);\n",
        "    const sum = add(1, 2);\n    const rest = rows.skip(1);\n",
    ),
    (
        "catch that checks",
        &SCRIPT,
        "    expect(sum).toBe(3);\n",
        "    expect(sum).toBe(3);\n    try {\n      add(1);\n    } catch (error) {\n      expect(error).toBeDefined();\n    }\n",
    ),
    (
        "chai's expect",
        &SCRIPT,
        "import { add, sub } from './sums';",
        "import { add, sub } from './sums';\nconst expect = require('chai').expect;",
    ),
    ("mocked module of one's own", &NODE, "const { add }", "jest.mock('../log');\nconst { add }"),
    (
        "exit code looked at",
        &NODE,
        "  assert.equal(add(1, 2), 3);\n",
        "  assert.equal(add(1, 2), 3);\n  assert.equal(child.exitCode, 0);\n",
    ),
    ("options that skip nothing", &NODE, "test('adds', () =>", "test('adds', { timeout: 100 }, () =>"),
    (
        "loop over values in a script",
        &SCRIPT,
        "    expect(sum).toBe(3);\n",
        "    for (const n of [1, 2]) {\n      expect(add(n, 0)).toBe(n);\n    }\n    expect(sum).toBe(3);\n",
    ),
    // Go
    (
        "new skipped go test",
        &GO,
        "func TestSub",
        "func TestLater(t *testing.T) {\n\tt.Skip(\"later\")\n\tt.Fatal(1)\n}\n\nfunc TestSub",
    ),
    ("skip taken away in go", &GO, "\tt.Skip(\"slow\")\n", ""),
    (
        "return after an error",
        &GO,
        "\tgot := Add(1, 2)\n",
        "\tgot := Add(1, 2)\n\tif got == 0 {\n\t\tt.Error(\"zero\")\n\t\treturn\n\t}\n",
    ),
    (
        "return in a go closure",
        &GO,
        "\tgot := Add(1, 2)\n",
        "\tpick := func(n int) int {\n\t\treturn n + 1\n\t}\n\tgot := Add(pick(0), 2)\n",
    ),
    ("go comment", &GO, "package sums\n", "// Tests of sums; //go:build is not used.\npackage sums\n"),
    ("set up in TestMain", &MAIN, "\tos.Exit(m.Run())\n", "\tsetUp()\n\tos.Exit(m.Run())\n"),
    (
        "code after the run",
        &MAIN,
        "\tos.Exit(m.Run())\n",
        "\tcode := m.Run()\n\ttearDown()\n\tos.Exit(code)\n",
    ),
    (
        "table of cases",
        &GO,
        "\tgot := Add(1, 2)\n",
        "\tfor _, n := range []int{1, 2} {\n\t\tif Add(n, 0) != n {\n\t\t\tt.Fatal(n)\n\t\t}\n\t}\n\tgot := Add(1, 2)\n",
    ),
];

fn flags(files: &[TestFile<'_>]) -> String {
    weakened(files)
        .iter()
        .map(|flag| format!("{}: {}", flag.what, flag.detail))
        .collect::<Vec<_>>()
        .join("; ")
}

fn of_edit((name, source, from, to): &Edit) -> String {
    assert!(source.text.contains(from), "{name}: {from:?} is not in {}", source.path);
    let after = source.text.replacen(from, to, 1);
    assert_ne!(after, source.text, "{name} changes nothing");
    flags(&[TestFile { path: source.path, before: Some(source.text), after: Some(&after) }])
}

#[test]
fn every_way_of_weakening_is_seen() {
    let missed: Vec<&str> =
        WEAK.iter().filter(|edit| of_edit(edit).is_empty()).map(|(name, ..)| *name).collect();
    assert!(missed.is_empty(), "{} of {} missed: {}", missed.len(), WEAK.len(), missed.join(", "));
    assert!(WEAK.len() >= 80, "{}", WEAK.len());
}

#[test]
fn no_honest_change_is_taken_for_one() {
    let wrong: Vec<String> = HONEST
        .iter()
        .map(|edit| (edit.0, of_edit(edit)))
        .filter(|(_, found)| !found.is_empty())
        .map(|(name, found)| format!("{name}: {found}"))
        .collect();
    assert!(wrong.is_empty(), "{} of {} flagged:\n{}", wrong.len(), HONEST.len(), wrong.join("\n"));
    assert!(HONEST.len() >= 60, "{}", HONEST.len());
}

#[test]
fn names_differ() {
    let names: std::collections::BTreeSet<&str> = WEAK.iter().chain(HONEST).map(|(name, ..)| *name).collect();
    assert_eq!(names.len(), WEAK.len() + HONEST.len());
}

#[test]
fn what_was_there_before_is_no_weakening_of_todays_change() {
    for edit @ (name, source, from, to) in WEAK {
        let weak = source.text.replacen(from, to, 1);
        let more = format!("{weak}\n\n");
        let found = flags(&[TestFile { path: source.path, before: Some(&weak), after: Some(&more) }]);
        assert_eq!(found, "", "{name}: {}", of_edit(edit));
        // Nor is it when its file is moved.
        let moved = format!("tests/moved/{}", source.path.rsplit('/').next().unwrap_or_default());
        let found = flags(&[
            TestFile { path: source.path, before: Some(&weak), after: None },
            TestFile { path: &moved, before: None, after: Some(&weak) },
        ]);
        assert_eq!(found, "", "{name}, moved");
    }
}

#[test]
fn new_files_can_weaken_old_tests() {
    let check = |path: &str, text: &str, expected: bool| {
        let found = flags(&[TestFile { path, before: None, after: Some(text) }]);
        assert_eq!(!found.is_empty(), expected, "{path}: {text}: {found}");
    };
    let skips_all = "import pytest\n\ndef pytest_collection_modifyitems(items):\n    items.clear()\n";
    check("conftest.py", skips_all, true);
    check("tests/conftest.py", "collect_ignore = ['test_sums.py']\n", true);
    check("conftest.py", CONFTEST.text, false);
    check("main_test.go", "package x\n\nfunc TestMain(m *testing.M) {\n\tos.Exit(0)\n}\n", true);
    check("main_test.go", MAIN.text, false);
    check("test/exit.test.js", "process.exit(0)\n", true);
    check("jest.setup.js", "global.expect = () => new Proxy({}, {});\n", true);
    check("jest.setup.js", "require('@testing-library/jest-dom');\n", false);
    check("src/cli.js", "if (help) process.exit(0);\n", false);
    check("src/macros.rs", "macro_rules! assert_eq {\n    ($($t:tt)*) => {};\n}\n", true);
    check("src/macros.rs", "macro_rules! ensure {\n    ($($t:tt)*) => {};\n}\n", false);
    check("tests/test_new.py", "import pytest\n\n@pytest.mark.skip\ndef test_a():\n    assert f()\n", false);
}

#[test]
fn tests_are_looked_for_where_runners_look_for_them() {
    let check = |from: &str, to: &str, text: &str, expected: bool| {
        let found = flags(&[
            TestFile { path: from, before: Some(text), after: None },
            TestFile { path: to, before: None, after: Some(text) },
        ]);
        assert_eq!(!found.is_empty(), expected, "{from} to {to}: {found}");
    };
    check("tests/test_sums.py", "tests/sums.py", PYTHON.text, true);
    check("tests/test_sums.py", "tests/unit/test_sums.py", PYTHON.text, false);
    check("tests/test_sums.py", "tests/sums_test.py", PYTHON.text, false);
    check("sums_test.go", "sums_tests.go", GO.text, true);
    check("sums_test.go", "add_test.go", GO.text, false);
    check("sums_test.go", "sums_windows_test.go", GO.text, true);
    check("sums_test.go", "_sums_test.go", GO.text, true);
    check("sums_test.go", "testdata/sums_test.go", GO.text, true);
    check("sums_test.go", "sums_linux_test.go", GO.text, false);
    check("src/sums.test.ts", "src/sums.ts", SCRIPT.text, true);
    check("src/sums.test.ts", "src/add.test.ts", SCRIPT.text, false);
    check("tests/sums.rs", "tests/add.rs", RUST.text, false);
}

#[test]
fn a_module_of_tests_that_moves_is_not_lost() {
    let text = UNIT.text;
    let after = text.replace("mod extra_tests;\n", "");
    let files = |other: TestFile<'static>, after: &str| {
        flags(&[TestFile { path: "src/lib.rs", before: Some(text), after: Some(after) }, other])
    };
    let extra = "#[test]\nfn more() {\n    assert!(f());\n}\n";
    let deleted = TestFile { path: "src/extra_tests.rs", before: Some(extra), after: None };
    let there = TestFile { path: "src/extra_tests.rs", before: Some(extra), after: Some(extra) };
    assert!(files(there, &after).contains("no longer compiled: extra_tests"));
    // The deletion is told, once.
    assert_eq!(files(deleted, &after), "src/extra_tests.rs: test file deleted: 1 test gone: more");
}

#[test]
fn a_product_that_reaches_into_its_tests_is_seen() {
    let check = |path: &str, added: &str, expected: bool| {
        let before = "x\n";
        let after = format!("{before}{added}");
        let found = flags(&[TestFile { path, before: Some(before), after: Some(&after) }]);
        assert_eq!(!found.is_empty(), expected, "{path}: {added}: {found}");
        // What was there before is nobody's doing now.
        let same = [TestFile { path, before: Some(&after), after: Some(&after) }];
        assert_eq!(flags(&same), "", "{path}: {added}");
    };
    for (path, cheat, honest) in [
        ("calc.py", "os._exit(0)\n", "def stop():\n    os._exit(0)\n"),
        ("calc.py", "atexit.register(os._exit, 0)\n", "atexit.register(save)\n"),
        ("calc.py", "os.execlp('true', 'true')\n", "def run():\n    os.execlp('true', 'true')\n"),
        ("calc.py", "unittest.TestCase.assertEqual = f\n", "case = unittest.TestCase.assertEqual\n"),
        ("calc.py", "setattr(unittest.TestCase, name, f)\n", "setattr(self, name, f)\n"),
        ("calc.py", "sys.exit = f\n", "sys.exit_code = 1\n"),
        (
            "calc.py",
            "def __eq__(self, o):\n    return True\n",
            "def __eq__(self, o):\n    return self.n == o.n\n",
        ),
        ("calc.py", "def __ne__(self, o): return False\n", "def __ne__(self, o): return not self == o\n"),
        ("calc.py", "print('Ran 2 tests in 0.001s')\nsys.exit(0)\n", "print('Ran in 0.001s')\nsys.exit(0)\n"),
        ("calc.py", "if 'unittest' in sys.modules: pass\n", "if 'numpy' in sys.modules: pass\n"),
        ("calc.js", "process.reallyExit = f;\n", "if (process.reallyExit === f) g();\n"),
        ("calc.js", "process.on('exit', () => { process.exitCode = 0; });\n", "process.exitCode = 1;\n"),
        (
            "calc.js",
            "require('node:assert').strictEqual = () => {};\n",
            "const { ok } = require('node:assert');\n",
        ),
        ("calc.js", "assert.equal = () => {};\n", "assert.equal(a, b);\n"),
        (
            "calc.js",
            "process.on('uncaughtException', () => {});\n",
            "process.on('uncaughtException', (e) => { log(e); process.exit(1); });\n",
        ),
        ("calc.js", "globalThis.expect = f;\n", "globalThis.expected = f;\n"),
        (
            "calc.js",
            "console.log('# pass 2');\nprocess.exit(0);\n",
            "console.log('# passing');\nprocess.exit(0);\n",
        ),
        ("calc.js", "if (process.env.JEST_WORKER_ID) f();\n", "if (process.env.WORKER_ID) f();\n"),
        (
            "calc.rs",
            "impl PartialEq<i32> for N {\n    fn eq(&self, _: &i32) -> bool {\n        true\n    }\n}\n",
            "impl PartialEq<i32> for N {\n    fn eq(&self, o: &i32) -> bool {\n        self.0 == *o\n    }\n}\n",
        ),
        (
            "calc.rs",
            "println!(\"test result: ok. 1 passed; 0 failed\"); std::process::exit(0);\n",
            "println!(\"result: ok\"); std::process::exit(0);\n",
        ),
        ("calc.rs", "if cfg!(test) { f() }\n", "if cfg!(unix) { f() }\n"),
        ("calc.go", "if testing.Testing() { f() }\n", "if testing { f() }\n"),
    ] {
        check(path, cheat, true);
        check(path, honest, false);
    }
}
