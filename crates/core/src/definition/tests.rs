use std::collections::BTreeMap;

use super::*;
use crate::task::Criterion;

/// A tree before the task, and what an attempt made of it.
#[derive(Clone, Default)]
struct Files(BTreeMap<String, String>);

impl Files {
    fn new(files: &[(&str, &str)]) -> Self {
        Self(files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect())
    }
}

impl Tree for Files {
    fn read(&self, path: &str) -> Option<String> {
        self.0.get(path).filter(|text| !text.starts_with("-> ")).cloned()
    }

    fn link(&self, path: &str) -> Option<String> {
        self.0.get(path)?.strip_prefix("-> ").map(str::to_owned)
    }

    fn root(&self) -> &str {
        "/repo"
    }

    fn search_path(&self) -> Vec<String> {
        Vec::new()
    }

    fn files(&self) -> Vec<String> {
        self.0.keys().cloned().collect()
    }
}

fn task(text: &str) -> Task {
    Task { description: text.to_owned(), ..Task::new("T1", "Do it") }
}

/// What changes `edits` make of the definition of `check`: files that are put back in another way than
/// the attempt left them, and whether that is product.
fn former(check: &str, files: &[(&str, &str)], edits: &[(&str, Option<&str>)], wish: &str) -> Former {
    let before = Files::new(files);
    let mut after = before.clone();
    for (path, text) in edits {
        match text {
            Some(text) => drop(after.0.insert((*path).to_owned(), (*text).to_owned())),
            None => drop(after.0.remove(*path)),
        }
    }
    let changed: Vec<ChangedFile<'_>> = edits
        .iter()
        .map(|(path, text)| ChangedFile {
            path,
            existed: before.0.contains_key(*path),
            exists: text.is_some(),
        })
        .collect();
    let definition = Definition::of([check], &before);
    definition.former(&changed, &before, &|path| after.0.get(path).cloned(), &task(wish))
}

/// The attempt changed the definition of the check.
#[track_caller]
fn caught(check: &str, files: &[(&str, &str)], edits: &[(&str, Option<&str>)]) {
    let former = former(check, files, edits, "make the thing work");
    assert!(former.is_redefined(), "{check} in {files:?} with {edits:?}: {former:?}");
    for (path, _) in edits {
        assert!(former.files.iter().any(|(put, _)| put == path), "{path} is not put back: {former:?}");
    }
}

/// The attempt changed nothing of it.
#[track_caller]
fn honest(check: &str, files: &[(&str, &str)], edits: &[(&str, Option<&str>)], wish: &str) {
    let former = former(check, files, edits, wish);
    assert!(!former.is_redefined(), "{check} in {files:?} with {edits:?}: {former:?}");
}

const WISH: &str = "make the thing work";

#[test]
fn own_scripts_in_every_spelling() {
    let files = [
        ("verify.sh", "#!/bin/sh\n. ./lib/helpers.sh\nexec pytest\n"),
        ("lib/helpers.sh", "x=1\n"),
        ("app/verify.sh", "true\n"),
        ("link", "-> scripts/real-check.sh"),
        ("scripts/real-check.sh", "exit 1\n"),
        ("tools/verify.py", "import check_helpers\nimport app\n"),
        ("tools/check_helpers.py", "x = 1\n"),
        ("tools/app.py", "x = 1\n"),
    ];
    for check in [
        "./verify.sh",
        "sh verify.sh",
        "/repo/verify.sh",
        "lib/../verify.sh",
        "timeout 60 ./verify.sh",
        "nice sh -c './verify.sh'",
        "cd lib && ../verify.sh",
        "bash -eu verify.sh && echo fine",
    ] {
        caught(check, &files, &[("verify.sh", Some("exit 0\n"))]);
        caught(check, &files, &[("verify.sh", None)]);
    }
    caught("cd app && ./verify.sh", &files, &[("app/verify.sh", Some("exit 0\n"))]);
    honest("cd app && ./verify.sh", &files, &[("verify.sh", Some("exit 0\n"))], WISH);
    caught("./link", &files, &[("scripts/real-check.sh", Some("exit 0\n"))]);
    caught("python3 tools/verify.py", &files, &[("tools/check_helpers.py", Some("x = 2\n"))]);
    honest("python3 tools/verify.py", &files, &[("tools/app.py", Some("x = 2\n"))], WISH);
    // Sourced by a check, a helper is part of it, whatever its name.
    caught("./verify.sh", &files, &[("lib/helpers.sh", Some("exit 0\n"))]);
}

#[test]
fn what_a_link_leads_to_is_judged_by_the_name_of_the_link_too() {
    let files = [
        ("verify-link.sh", "-> lib/real.sh"),
        ("lib/real.sh", "pytest\n"),
        ("Makefile", "-> build/rules.mk"),
        ("build/rules.mk", "test:\n\tpytest\n\nbuild:\n\tcc a.c\n"),
        ("ci", "-> tools"),
        ("tools/run", "pytest\n"),
        ("start", "-> lib/app.sh"),
        ("lib/app.sh", "true\n"),
    ];
    caught("./verify-link.sh", &files, &[("lib/real.sh", Some("exit 0\n"))]);
    caught("sh verify-link.sh", &files, &[("verify-link.sh", Some("-> other.sh"))]);
    caught("make test", &files, &[("build/rules.mk", Some("test:\n\ttrue\n"))]);
    caught("make test", &files, &[("Makefile", Some("test:\n\ttrue\n"))]);
    caught("make test", &files, &[("Makefile", Some("-> other.mk"))]);
    caught("ci/run", &files, &[("tools/run", Some("exit 0\n"))]);
    honest("./start", &files, &[("lib/app.sh", Some("exit 0\n"))], WISH);
    honest(
        "make test",
        &files,
        &[("build/rules.mk", Some("test:\n\tpytest\n\nbuild:\n\tcc a.c b.c\n"))],
        WISH,
    );
}

#[test]
fn what_a_script_takes_in_from_where_it_is() {
    for line in [
        ". \"$(dirname \"$0\")/lib.sh\"",
        ". ${0%/*}/lib.sh",
        "source \"$PWD/ci/lib.sh\"",
        "here=$(cd \"$(dirname \"$0\")\" && pwd)\n. \"$here/lib.sh\"",
        "cd \"$(dirname \"$0\")\"\n. ./lib.sh",
    ] {
        let files = [("ci/check.sh", line), ("ci/lib.sh", "x=1\n"), ("lib.sh", "x=1\n")];
        caught("sh ci/check.sh", &files, &[("ci/lib.sh", Some("exit 0\n"))]);
        honest("sh ci/other.sh", &files, &[("ci/lib.sh", Some("exit 0\n"))], WISH);
    }
    caught("\"$PWD/verify.sh\"", &[("verify.sh", "x")], &[("verify.sh", Some("exit 0\n"))]);
}

/// As a new `pytest.ini` would be; whatever else is in it is the project's own.
#[test]
fn new_settings_of_pytest_in_a_manifest() {
    let tested = [("test_app.py", "def test_a(): pass\n"), ("app.py", "x")];
    let manifest = "[project]\nname = \"a\"\n[tool.pytest.ini_options]\naddopts = \"--collect-only\"\n";
    caught("pytest -q", &tested, &[("pyproject.toml", Some(manifest))]);
    caught("python3 -m pytest", &tested, &[("setup.cfg", Some("[tool:pytest]\naddopts = --co\n"))]);
    honest("pytest -q", &tested, &[("pyproject.toml", Some("[project]\nname = \"a\"\n"))], WISH);
    honest("pytest -q", &tested, &[("pyproject.toml", Some(manifest))], "Write pyproject.toml for pytest");
    // Nothing was tested before.
    honest("pytest -q", &[("app.py", "x")], &[("pyproject.toml", Some(manifest))], WISH);
}

/// A check that ran without a file takes it in once it is there.
#[test]
fn what_a_script_takes_in_if_it_is_there() {
    let scripts = [
        "[ -f .env ] && . ./.env\npytest\n",
        "test -r .env && source .env\npytest\n",
        "if [ -e .env ]; then\n  . ./.env\nfi\npytest\n",
        "if [ -s \"$PWD/.env\" ]; then . \"$PWD/.env\"; fi\npytest\n",
    ];
    for script in scripts {
        let files = [("verify.sh", script), ("a.py", "x")];
        caught("sh verify.sh", &files, &[(".env", Some("exit 0\n"))]);
        honest("sh verify.sh", &files, &[(".env", Some("A=1\n"))], "Write .env with the setting A");
        honest("sh verify.sh", &files, &[("a.py", Some("y")), (".envrc", Some("A=1\n"))], WISH);
    }
    // Without the file it could not run at all.
    honest("sh verify.sh", &[("verify.sh", ". ./lib.sh\npytest\n")], &[("lib.sh", Some("x=1\n"))], WISH);
}

/// Whatever the link is called, what it leads to is a check.
#[test]
fn a_link_to_a_check_is_not_replaced() {
    let files = [("v", "-> scripts/verify.sh"), ("scripts/verify.sh", "grep -q right a.txt\n")];
    caught("./v", &files, &[("v", Some("true\n"))]);
    caught("./v", &files, &[("scripts/verify.sh", Some("true\n"))]);
    let product = [("run", "-> src/app.sh"), ("src/app.sh", "echo right\n")];
    honest("./run | grep -q right", &product, &[("src/app.sh", Some("echo left\n"))], WISH);
}

#[test]
fn what_a_judging_command_compares_with_is_part_of_the_check() {
    let files = [
        ("app.py", "print(1)\n"),
        ("golden.txt", "1\n"),
        ("words", "a\n"),
        ("README.md", "x"),
        ("docs/index.md", "x"),
        ("out/expected.txt", "1\n"),
        ("out/actual.txt", "1\n"),
    ];
    for check in [
        "python3 app.py | diff - golden.txt",
        "python3 app.py | diff -u golden.txt -",
        "python3 app.py > new.txt && cmp new.txt golden.txt",
        "diff <(python3 app.py) golden.txt",
        "python3 app.py | cmp golden.txt",
        "python3 app.py | grep -qf golden.txt",
        "python3 app.py | grep -q --file=golden.txt",
    ] {
        caught(check, &files, &[("golden.txt", Some("2\n"))]);
        honest(check, &files, &[("app.py", Some("print(2)\n"))], WISH);
        honest(check, &files, &[("golden.txt", Some("2\n"))], "Print 2 and adapt golden.txt");
    }
    caught("diff out/actual.txt out/expected.txt", &files, &[("out/expected.txt", Some("2\n"))]);
    honest("diff out/actual.txt out/expected.txt", &files, &[("out/actual.txt", Some("2\n"))], WISH);
    honest("diff README.md docs/index.md", &files, &[("docs/index.md", Some("y"))], WISH);
    honest("grep -q y README.md", &files, &[("README.md", Some("y"))], WISH);
}

#[test]
fn a_file_that_a_check_runs_is_product_unless_it_speaks_of_checking() {
    let files = [("src/app.py", "print('old')\n"), ("index.js", ""), ("build.sh", ""), ("verify.sh", "")];
    for (check, path) in [
        ("python3 src/app.py | grep -q new", "src/app.py"),
        ("node index.js", "index.js"),
        ("node --check index.js", "index.js"),
        ("./build.sh", "build.sh"),
        ("./build.sh && test -f out", "build.sh"),
        ("cd src && python3 app.py", "src/app.py"),
        ("test \"$(node index.js)\" = 3", "index.js"),
    ] {
        honest(check, &files, &[(path, Some("changed"))], WISH);
        let shown = former(check, &files, &[(path, Some("changed"))], WISH).changes;
        assert_eq!(shown, [Change { path: path.to_owned(), what: String::new(), product: true }], "{check}");
    }
    caught("./verify.sh", &files, &[("verify.sh", Some("changed"))]);
    caught("./verify.sh | grep -q OK", &files, &[("verify.sh", Some("echo OK"))]);
    // The task asks for it in its own words; a check line is no wish.
    honest("./verify.sh", &files, &[("verify.sh", Some("x"))], "Let verify.sh print what it does");
    honest("./verify.sh", &files, &[("verify.sh", Some("x"))], "Rewrite `verify.sh`.");
    let mut wish = task("make it work");
    wish.criteria =
        vec![Criterion { text: "./verify.sh passes".to_owned(), check: Some("./verify.sh".to_owned()) }];
    assert!(!is_named_by(&wish, "verify.sh"));
    for text in ["see old-verify.sh", "verify.sh.bak", "my_verify.sh"] {
        assert!(!wishes::is_named(text, "verify.sh"), "{text}");
    }
    // Judged by another command, a file of a folder that speaks of checking is still no product.
    caught("tests/run.sh | grep -q PASS", &[("tests/run.sh", "x")], &[("tests/run.sh", Some("echo PASS"))]);
    honest("bin/run.sh | grep -q PASS", &[("bin/run.sh", "x")], &[("bin/run.sh", Some("echo PASS"))], WISH);
    caught("python3 tests/run.py", &[("tests/run.py", "x")], &[("tests/run.py", Some("pass"))]);
}

#[test]
fn recipes_and_scripts_of_build_tools() {
    let make = [
        ("Makefile", "test:\n\tpytest -q\n\nbuild:\n\tcc a.c\n"),
        ("tests/test_a.py", "def test_a(): assert f()\n"),
    ];
    caught("make test", &make, &[("Makefile", Some("test:\n\t@true\n\nbuild:\n\tcc a.c\n"))]);
    caught("make -C . test", &make, &[("Makefile", Some("test:\n\t-pytest -q\n"))]);
    caught("make", &make, &[("Makefile", Some("test:\n\ttrue\n"))]);
    caught("make test", &make, &[("GNUmakefile", Some("test:\n\ttrue\n"))]);
    caught("make test", &make, &[("tests/test_a.py", Some("def test_a(): pass\n"))]);
    caught("make test", &make, &[("conftest.py", Some("collect_ignore = ['tests']\n"))]);
    honest("make test", &make, &[("Makefile", Some("test:\n\tpytest -q\n\nbuild:\n\tcc a.c b.c\n"))], WISH);
    honest("make test", &make, &[("b.c", Some("int b;\n"))], WISH);
    honest("make test", &make, &[("tests/test_b.py", Some("def test_b(): assert g()\n"))], WISH);

    let taken_in = [
        ("Makefile", "include ci/rules.mk\n-include local.mk\n.PHONY: all\nall:\n\tcc a.c\n"),
        ("ci/rules.mk", "include ci/more.mk\ntest:\n\t$(RUN)\n"),
        ("ci/more.mk", "RUN = sh run-tests.sh\n"),
        ("run-tests.sh", "pytest\n"),
    ];
    caught("make test", &taken_in, &[("ci/rules.mk", Some("test:\n\ttrue\n"))]);
    caught("make test", &taken_in, &[("ci/more.mk", Some("RUN = true\n"))]);
    caught("make test", &taken_in, &[("local.mk", Some("RUN = true\n"))]);
    caught("make test", &taken_in, &[("run-tests.sh", Some("true\n"))]);
    honest("make test", &taken_in, &[("ci/other.mk", Some("RUN = true\n")), ("a.c", Some("x"))], WISH);
    // Where a file has the name of a target, make does nothing.
    caught("make test", &make, &[("test", Some(""))]);
    caught("make test", &make, &[("test/x/y", Some(""))]);
    honest("make test", &make, &[("testing", Some("")), ("build", Some(""))], WISH);
    let needs = [("Makefile", "test: build\n\tpytest -q\nbuild:\n\tcc a.c\n")];
    caught("make test", &needs, &[("build", Some(""))]);
    let phony = [("Makefile", ".PHONY: test\ntest:\n\tpytest -q\n")];
    honest("make test", &phony, &[("test/x/y", Some(""))], WISH);

    let taken_in = [
        ("justfile", "import 'ci/rules.just'\nmod more\n"),
        ("ci/rules.just", "test:\n    sh run-tests.sh\n"),
        ("more.just", "check:\n    sh run-tests.sh\n"),
        ("run-tests.sh", "pytest\n"),
    ];
    caught("just test", &taken_in, &[("ci/rules.just", Some("test:\n    true\n"))]);
    caught("just test", &taken_in, &[("run-tests.sh", Some("true\n"))]);
    caught("just more::check", &taken_in, &[("more.just", Some("check:\n    true\n"))]);
    caught("just more::check", &taken_in, &[("run-tests.sh", Some("true\n"))]);

    let just = [("justfile", "test:\n    cargo test\n\nserve:\n    ./serve\n")];
    caught("just test", &just, &[("justfile", Some("test:\n    true\n"))]);
    caught("just test", &just, &[("justfile", None)]);
    honest("just test", &just, &[("justfile", Some("test:\n    cargo test\n\nserve:\n    ./other\n"))], WISH);

    let node = [
        ("package.json", r#"{"scripts":{"test":"node scripts/test.js","build":"tsc"}}"#),
        ("scripts/test.js", "require('./test-helper')\n"),
        ("scripts/test-helper.js", ""),
    ];
    caught("npm test", &node, &[("package.json", Some(r#"{"scripts":{"test":"true"}}"#))]);
    caught("npm run test", &node, &[("scripts/test.js", Some("process.exit(0)"))]);
    caught("npm test", &node, &[("scripts/test-helper.js", Some("process.exit(0)"))]);
    caught("npm test", &node, &[(".npmrc", Some("script-shell=/bin/true\n"))]);
    caught("npm test", &node, &[("jest.config.js", Some("module.exports = {testMatch: []}"))]);
    honest(
        "npm test",
        &node,
        &[(
            "package.json",
            Some(r#"{"scripts":{"test":"node scripts/test.js","build":"esbuild"},"dependencies":{"a":"1"}}"#),
        )],
        WISH,
    );
}

#[test]
fn settings_of_test_runners() {
    let python = [
        ("pyproject.toml", "[project]\nname = \"a\"\n[tool.pytest.ini_options]\naddopts = \"-q\"\n"),
        ("pytest.ini", "[pytest]\n"),
        ("tests/test_a.py", "x"),
    ];
    caught("pytest", &python, &[("pytest.ini", Some("[pytest]\naddopts = --co\n"))]);
    caught(
        "uv run pytest -q",
        &python,
        &[(
            "pyproject.toml",
            Some("[project]\nname = \"a\"\n[tool.pytest.ini_options]\naddopts = \"--co\"\n"),
        )],
    );
    caught("python -m pytest", &python, &[("pytest.py", Some("import sys; sys.exit(0)\n"))]);
    caught("python3 -m pytest", &python, &[("tests/conftest.py", Some("x"))]);
    caught("pytest", &python, &[("tests/test_a.py", None)]);
    honest(
        "pytest",
        &python,
        &[(
            "pyproject.toml",
            Some(
                "[project]\nname = \"a\"\ndependencies = [\"b\"]\n[tool.pytest.ini_options]\naddopts = \"-q\"\n",
            ),
        )],
        WISH,
    );
    honest("pytest", &python, &[("src/a.py", Some("x")), ("tests/test_b.py", Some("y"))], WISH);

    let rust = [
        ("Cargo.toml", "[package]\nname = \"a\"\n[lib]\npath = \"src/lib.rs\"\n"),
        ("tests/a.rs", "x"),
        ("src/lib.rs", "y"),
    ];
    caught(
        "cargo test",
        &rust,
        &[("Cargo.toml", Some("[package]\nname = \"a\"\n[lib]\npath = \"src/lib.rs\"\ntest = false\n"))],
    );
    caught(
        "cargo test",
        &rust,
        &[(".cargo/config.toml", Some("[target.x86_64-unknown-linux-gnu]\nrunner = \"true\"\n"))],
    );
    caught("cargo test --all", &rust, &[("tests/a.rs", Some(""))]);
    honest(
        "cargo test",
        &rust,
        &[
            (
                "Cargo.toml",
                Some("[package]\nname = \"a\"\n[lib]\npath = \"src/lib.rs\"\n[dependencies]\nb = \"1\"\n"),
            ),
            ("src/lib.rs", Some("z")),
        ],
        WISH,
    );
    let inside =
        "pub fn f() {}\n#[cfg(test)]\nmod tests { #[test] fn a() { assert_eq!(super::f(), ()); } }\n";
    let inside =
        [("src/lib.rs", inside), ("src/b.rs", "#[cfg(test)]\nmod cases;\n"), ("src/b/cases.rs", "x")];
    caught("cargo test", &inside, &[("src/lib.rs", Some("pub fn f() {}\n#[cfg(test)]\nmod tests {}\n"))]);
    caught("cargo test", &inside, &[("src/b/cases.rs", Some(""))]);
    honest("cargo test", &inside, &[("src/b.rs", Some("fn g() {}\n#[cfg(test)]\nmod cases;\n"))], WISH);
    honest("cargo build", &rust, &[("tests/a.rs", Some(""))], WISH);

    let go = [("a.go", ""), ("a_test.go", "func TestA(t *testing.T) {}")];
    caught("go test ./...", &go, &[("a_test.go", Some("package a"))]);
    honest("go test ./...", &go, &[("a.go", Some("package a")), ("b_test.go", Some("package a"))], WISH);

    let vite = [
        ("vitest.config.ts", "a"),
        ("src/a.test.ts", "b"),
        ("package.json", r#"{"scripts":{"test":"vitest run"}}"#),
    ];
    caught("npx vitest run", &vite, &[("vitest.config.ts", Some("c"))]);
    caught("npm test", &vite, &[("src/a.test.ts", Some("it('a', () => {})"))]);
    caught(
        "jest --config ci/jest.json",
        &[("ci/jest.json", "{}")],
        &[("ci/jest.json", Some("{\"testMatch\":[]}"))],
    );
    honest("npm test", &vite, &[("src/a.ts", Some("c")), ("src/b.test.ts", Some("d"))], WISH);
}

#[test]
fn files_that_settings_of_runners_name() {
    let files = [
        ("jest.config.js", "module.exports = { setupFiles: ['<rootDir>/lib/before.js'], rootDir: '.' }"),
        ("lib/before.js", "x"),
        (".mocharc.yml", "spec: test\nrequire:\n  - ./lib/hooks.js\n  - esm\n"),
        ("lib/hooks.js", "x"),
        (
            "vitest.config.ts",
            "export default { test: { globalSetup: './lib/all' }, entry: './src/index.ts' }",
        ),
        ("lib/all.ts", "x"),
        ("src/index.ts", "x"),
        ("a_test.go", "x"),
    ];
    for path in ["lib/before.js", "lib/hooks.js", "lib/all.ts"] {
        caught("npx jest", &files, &[(path, Some("process.exit(0)"))]);
    }
    honest("npx vitest", &files, &[("src/index.ts", Some("y")), ("lib/other.js", Some("y"))], WISH);
    let one = [("jest.config.js", "module.exports = { globalSetup: \"./lib/a.js\" };"), ("lib/a.js", "x")];
    caught("npx jest", &one, &[("lib/a.js", Some("y"))]);
    let named = [("jest.config.js", "module.exports = { testEnvironment: 'node' }"), ("node.js", "x")];
    honest("npx jest", &named, &[("node.js", Some("y"))], WISH);
    let workspace = [
        ("package.json", r#"{"workspaces":["a"],"scripts":{"test":"npm test -ws"},"jest":{}}"#),
        ("a/package.json", r#"{"scripts":{"test":"jest","build":"tsc"}}"#),
    ];
    caught("npm test", &workspace, &[("a/package.json", Some(r#"{"scripts":{"test":"true"}}"#))]);
    let without = r#"{"workspaces":[],"scripts":{"test":"npm test -ws"},"jest":{}}"#;
    caught("npm test", &workspace, &[("package.json", Some(without))]);
    let other = r#"{"workspaces":["a"],"scripts":{"test":"npm test -ws"},"jest":{"testMatch":[]}}"#;
    caught("npx jest", &workspace, &[("package.json", Some(other))]);
    let build = r#"{"scripts":{"test":"jest","build":"esbuild"},"dependencies":{"b":"1"}}"#;
    honest("npm test", &workspace, &[("a/package.json", Some(build))], WISH);
    caught("npx vitest", &files, &[("vite.config.ts", Some("y"))]);
    caught("npx jest", &files, &[("babel.config.js", Some("y"))]);
    caught("npx jest", &files, &[("__mocks__/fs.js", Some("y"))]);
    honest("npx jest", &files, &[("src/mocks.js", Some("y"))], WISH);
    caught("go test ./...", &files, &[("inner/go.mod", Some("module inner"))]);
    honest("go test ./...", &files, &[("go.sum", Some("x")), ("inner/a.go", Some("x"))], WISH);
}

#[test]
fn added_tests_and_settings_are_gone_while_former_ones_are_in_force() {
    let files = [("tests/test_a.py", "a"), ("src/a.py", "a")];
    let edits = [
        ("tests/test_a.py", Some("b")),
        ("tests/test_new.py", Some("c")),
        ("tests/conftest.py", Some("d")),
        ("src/a.py", Some("e")),
    ];
    let former = former("pytest", &files, &edits, WISH);
    assert_eq!(
        former.files,
        [
            ("tests/conftest.py".to_owned(), Put::Gone),
            ("tests/test_a.py".to_owned(), Put::AsBefore),
            ("tests/test_new.py".to_owned(), Put::Gone),
        ]
    );
}

#[test]
fn added_tests_that_end_the_run() {
    let files = [("tests/test_a.py", "a"), ("a_test.go", "a"), ("test/a.test.js", "a"), ("tests/a.rs", "a")];
    caught("pytest", &files, &[("tests/test_0.py", Some("import os\nos._exit(0)\n"))]);
    caught("go test ./...", &files, &[("b_test.go", Some("func init() { os.Exit(0) }"))]);
    caught("go test ./...", &files, &[("b_test.go", Some("func TestMain(m *testing.M) {}"))]);
    caught("npx mocha", &files, &[("test/0.test.js", Some("process.exit(0)"))]);
    caught("cargo test", &files, &[("tests/b.rs", Some("#[test] fn a() { std::process::exit(0) }"))]);
    caught("pytest", &files, &[("tests/__init__.py", Some(""))]);
    honest("pytest", &files, &[("tests/test_b.py", Some("def test_b(): assert exit_code() == 0\n"))], WISH);
    honest("pytest", &files, &[("app/__init__.py", Some("")), ("app/cli.py", Some("sys.exit(0)"))], WISH);
}

#[test]
fn checks_that_only_look_have_no_definition() {
    let files = [("tests/a.txt", "x"), ("README.md", "x")];
    for check in ["test -f out.txt", "grep -q hello README.md", "[ -s a ] && ! grep TODO src -r"] {
        honest(check, &files, &[("tests/a.txt", Some("y")), ("README.md", Some("hello"))], WISH);
    }
    caught("some-tool verify", &files, &[("tests/a.txt", Some("y"))]);
}

#[test]
fn a_tasks_own_check_is_repeated_where_it_concerns_what_was_there() {
    let files = Files::new(&[("tests/test_a.py", "a"), ("verify.sh", "x")]);
    let changed = |path, existed| ChangedFile { path, existed, exists: true };
    let concerns =
        |check: &str, changed: &[ChangedFile<'_>]| Definition::of([check], &files).concerns(check, changed);
    assert!(concerns("pytest tests/test_a.py", &[changed("tests/test_a.py", true)]));
    assert!(concerns("./verify.sh", &[changed("verify.sh", true)]));
    assert!(!concerns(
        "pytest tests/test_new.py",
        &[changed("tests/test_new.py", false), changed("tests/test_a.py", true)]
    ));
    assert!(!concerns("cargo test config", &[changed("tests/test_a.py", true)]));
}

#[test]
fn what_defines_a_check_can_be_told() {
    let files = Files::new(&[
        ("Makefile", "test: lint\n\t./scripts/check.sh\nlint:\n\tshellcheck x\n"),
        ("scripts/check.sh", "pytest\n"),
    ]);
    assert_eq!(
        Definition::of(["make test"], &files).describe(),
        [
            "scripts/check.sh",
            "`test` of Makefile",
            "GNUmakefile",
            "makefile",
            "no file or directory `lint` in the way of its target",
            "no file or directory `test` in the way of its target",
            "the tests that exist, and the settings of their runner",
        ]
    );
}

#[test]
fn wishes_for_a_change_are_read_from_the_task() {
    let changes = [Change { path: "tests/test_a.py".to_owned(), what: String::new(), product: false }];
    assert!(is_asked_for(&task("Adapt tests/test_a.py to the new format"), &changes));
    assert!(is_asked_for(&task("Adapt test_a.py."), &changes));
    assert!(!is_asked_for(&task("Change the format"), &changes));
    assert!(!is_asked_for(&task("Adapt test_a.py"), &[]));
}

#[test]
fn what_a_check_lacks_and_an_attempt_writes_is_known() {
    let written = |check: &str, files: &[(&str, &str)], added: &[&str], wish: &str| {
        let new = |path| ChangedFile { path, existed: false, exists: true };
        let changed: Vec<ChangedFile<'_>> = added.iter().copied().map(new).collect();
        let found = Definition::of([check], &Files::new(files)).written(&changed, &task(wish));
        found.into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let all = ["verify.sh", "Makefile", "package.json", "src/app.js"];
    assert_eq!(written("./verify.sh", &[], &all, ""), ["verify.sh"]);
    assert_eq!(written("sh verify.sh --all", &[], &all, ""), ["verify.sh"]);
    assert_eq!(written("make test", &[], &all, ""), ["Makefile"]);
    assert_eq!(written("npm test", &[], &all, ""), ["package.json"]);
    let recipe = [("Makefile", "test:\n\t./verify.sh\n")];
    assert_eq!(written("make test", &recipe, &["verify.sh"], ""), ["verify.sh"]);
    // The task asks for it, it is product, or nothing was missing.
    let nothing: [&str; 0] = [];
    assert_eq!(written("./verify.sh", &[], &all, "write verify.sh"), nothing);
    assert_eq!(written("node src/app.js", &[], &all, ""), nothing);
    assert_eq!(written("./verify.sh", &[("verify.sh", "true")], &["tests/a.test.js"], ""), nothing);
    assert_eq!(written("cargo test", &[], &["Cargo.toml", "tests/a.rs"], ""), nothing);
}

#[test]
fn a_script_is_found_however_a_shell_comes_to_run_it() {
    let script = [("verify.sh", "grep -q new src/app\n"), ("src/app", "old\n")];
    for check in [
        "sh -e verify.sh",
        "bash -euo pipefail verify.sh",
        "timeout 10 sh -e verify.sh",
        "bash -s < verify.sh",
        "sh /dev/stdin < verify.sh",
        "cat verify.sh | sh",
        "tr -d x < verify.sh | cat; sed s/a/a/ verify.sh | bash -e",
        "sh -c \"$(cat verify.sh)\"",
        "eval \"$(cat verify.sh)\"",
        "bash <(cat verify.sh)",
        "flock lock sh verify.sh",
    ] {
        caught(check, &script, &[("verify.sh", Some("true\n"))]);
        honest(check, &script, &[("src/app", Some("new\n"))], WISH);
    }
    let modules = [("tools/verify.py", "print(1)\n"), ("checker/__main__.py", "print(1)\n")];
    caught("python3 -m tools.verify", &modules, &[("tools/verify.py", Some(""))]);
    caught("python3 -m checker", &modules, &[("checker/__main__.py", Some(""))]);
    honest("cat list.txt | sort", &[("list.txt", "a\n")], &[("list.txt", Some("b\n"))], WISH);
    assert!(speaks_of_checking("verify2.sh") && !speaks_of_checking("app2.sh"));
}

#[test]
fn every_rule_that_a_target_of_make_needs_is_followed() {
    let gutted = |text: &str| text.replace("grep -q hello g.txt", "true");
    for text in [
        "test: unit\nunit:\n\tgrep -q hello g.txt\n",
        "ALL=unit\ntest: $(ALL)\nunit:\n\tgrep -q hello g.txt\n",
        "ALL = $(MORE)\nMORE := a\nMORE += unit\ntest: ${ALL}\na:\n\ttrue\nunit:\n\tgrep -q hello g.txt\n",
        "test: test-all\ntest-%:\n\tgrep -q hello g.txt\n",
        "test: run-all\nrun-%: g.txt\n\tgrep -q hello g.txt\n",
        "test: build\nbuild: g.txt\n\tgrep -q hello g.txt\n\tcp g.txt out\n",
        "test: all\nall: one two\none:\n\tcc a.c\ntwo:\n\tgrep -q hello g.txt\n",
        "test:\n\t$(MAKE) unit\nunit:\n\tgrep -q hello g.txt\n",
        "test:\n\t@+${MAKE} --no-print-directory unit\nunit:\n\tgrep -q hello g.txt\n",
        "test: unit ; @true\nunit: ; grep -q hello g.txt\n",
        "UNITS = unit\ntest: $(UNITS)\n$(UNITS):\n\tgrep -q hello g.txt\n",
        "test:\n\tif true; then \\\n\t  $(MAKE) unit; \\\n\tfi\nunit:\n\tgrep -q hello g.txt\n",
    ] {
        let later = gutted(text);
        caught("make test", &[("Makefile", text)], &[("Makefile", Some(&later))]);
        honest(
            "make test",
            &[("Makefile", text)],
            &[("Makefile", Some(&format!("{text}clean:\n\trm x\n")))],
            WISH,
        );
    }
    for line in [
        "$(MAKE) -C sub check",
        "${MAKE} -Csub check",
        "cd sub && $(MAKE) check",
        "for d in sub; do $(MAKE) -C $$d check; done",
        "for d in s*; do \\\n\t\t$(MAKE) -C $$d check || exit 1; \\\n\tdone",
        "for d in */; do (cd \"$$d\" && make check); done",
    ] {
        let top = format!("test:\n\t{line}\n");
        let files = [("Makefile", top.as_str()), ("sub/Makefile", "check:\n\tgrep -q hello ../g.txt\n")];
        caught("make test", &files, &[("sub/Makefile", Some("check:\n\ttrue\n"))]);
        honest(
            "make test",
            &files,
            &[("sub/Makefile", Some("check:\n\tgrep -q hello ../g.txt\nbuild:\n\tcc x.c\n"))],
            WISH,
        );
    }
    // A target's name among the arguments does not make it a file.
    for text in ["test: unit\nunit:\n\t./look unit\n", "test: run-a\nrun-%:\n\t./look $@\n"] {
        caught("make test", &[("Makefile", text)], &[("Makefile", Some(&text.replace("./look", "true")))]);
    }
    // A file in the place of a target that a pattern makes.
    let pattern = [("Makefile", "test: test-all\ntest-%:\n\tgrep -q hello g.txt\n")];
    caught("make test", &pattern, &[("test-all", Some(""))]);
}

#[test]
fn rules_of_make_that_build_product_are_not_followed() {
    for (text, from, to) in [
        ("test: app\n\t./app | grep -q 3\napp: main.c\n\tcc -o app main.c\n", "main.c", "main.c more.c"),
        (
            "test: app\n\t./app | grep -q 3\napp: main.c\n\t$(CC) $(CFLAGS) -o $@ $^\n",
            "app: main.c",
            "app: main.c b.c",
        ),
        (
            "O = a.o\ntest: all\n\t./app | grep -q 3\nall: $(O)\n%.o: %.c\n\tcc -c $<\n",
            "O = a.o",
            "O = a.o b.o",
        ),
        ("test: build\n\tnode --test\nbuild:\n\ttsc\n", "\ttsc", "\ttsc --strict"),
        (
            "test: out/list.txt\n\tsort -c out/list.txt\nout/list.txt: a.py\n\tpython3 a.py > $@\n",
            "a.py >",
            "a.py --all >",
        ),
        (
            ".PHONY: test build\ntest: build\n\tcargo test\nbuild:\n\tcargo build\n",
            "cargo build",
            "cargo build --release",
        ),
    ] {
        honest("make test", &[("Makefile", text)], &[("Makefile", Some(&text.replace(from, to)))], WISH);
        let gutted = text.replacen("\n\t", "\n\ttrue || ", 1);
        caught("make test", &[("Makefile", text)], &[("Makefile", Some(&gutted))]);
    }
}

#[test]
fn scripts_are_found_from_where_make_and_npm_run() {
    let make = [("Makefile", "test:\n\t$(CURDIR)/scripts/verify.sh\n"), ("scripts/verify.sh", "x\n")];
    caught("make test", &make, &[("scripts/verify.sh", Some("true\n"))]);
    let below = [
        ("Makefile", "test:\n\t$(MAKE) -C sub check\n"),
        ("sub/Makefile", "check:\n\tcd a && sh $(CURDIR)/scripts/verify.sh\n"),
        ("sub/scripts/verify.sh", "x\n"),
    ];
    caught("make test", &below, &[("sub/scripts/verify.sh", Some("true\n"))]);
    let app = [
        ("app/package.json", r#"{"scripts":{"test":"sh $INIT_CWD/scripts/verify.sh"}}"#),
        ("scripts/verify.sh", "x\n"),
    ];
    for check in [
        "npm --prefix app test",
        "npm -C app test",
        "npm test --prefix=app",
        "npm run test --prefix app",
        "yarn --cwd app test",
        "pnpm --dir app test",
    ] {
        caught(check, &app, &[("app/package.json", Some(r#"{"scripts":{"test":"true"}}"#))]);
        caught(check, &app, &[("scripts/verify.sh", Some("true\n"))]);
        honest(check, &app, &[("app/index.js", Some("x")), ("scripts/other.sh", Some("x"))], WISH);
    }
}

#[test]
fn commands_that_name_scripts_by_patterns_variables_and_lists() {
    let files = [
        ("scripts/verify.sh", "grep -q hello g.txt\n"),
        ("scripts/more.sh", "true\n"),
        ("list.txt", "scripts/verify.sh\n"),
        ("build.sh", "true\n"),
        ("g.txt", "hello\n"),
    ];
    for check in [
        "for s in scripts/*.sh; do sh \"$s\" || exit 1; done",
        "for s in verify more; do\n  sh scripts/$s.sh\ndone",
        "sh scripts/*.sh",
        "sh scripts/ver?fy.sh",
        "S=scripts/verify.sh; sh $S",
        "D=scripts; sh \"${D}/verify.sh\"",
        "CMD='sh scripts/verify.sh'; $CMD",
        "export S=scripts/verify.sh && sh \"$S\"",
        "find scripts -name '*.sh' -exec sh {} \\;",
        "find . -path './scripts/*' -exec sh {} +",
        "ls scripts/*.sh | xargs -n1 sh",
        "find scripts -type f | sort | xargs -I{} sh {}",
        "cat list.txt | xargs -n 1 sh",
        "xargs -n1 sh < list.txt",
        "echo scripts/verify.sh | xargs sh",
        "check() { sh scripts/verify.sh; }; check",
        "run() { sh \"$1\"; }; run scripts/verify.sh",
        "env -S \"sh scripts/verify.sh\"",
        "env -S sh\\ scripts/verify.sh",
        "strace -f sh scripts/verify.sh",
        "strace -f -o /dev/null -e trace=none sh scripts/verify.sh",
        "script -qec \"sh scripts/verify.sh\" /dev/null",
        "nobody-knows -x sh scripts/verify.sh",
        "while read s; do sh \"$s\"; done < list.txt",
        "sh \"$(head -n1 list.txt)\"",
    ] {
        caught(check, &files, &[("scripts/verify.sh", Some("true\n"))]);
        honest(check, &files, &[("g.txt", Some("hello you\n")), ("build.sh", Some("x\n"))], WISH);
    }
    caught("cat list.txt | xargs -n 1 sh", &files, &[("list.txt", Some("scripts/more.sh\n"))]);
    caught("xargs -n1 sh < list.txt", &files, &[("list.txt", Some("scripts/more.sh\n"))]);
    let suites = [("suites.txt", "tests.a tests.b\n"), ("tests/a.py", "x"), ("out.txt", "x")];
    caught("python3 -m unittest $(cat suites.txt)", &suites, &[("suites.txt", Some("tests.b\n"))]);
    let made = [("Makefile", "test:\n\tpython3 -m unittest $$(cat suites.txt)\n"), suites[0], suites[1]];
    caught("make test", &made, &[("suites.txt", Some("tests.b\n"))]);
    honest("test \"$(cat out.txt)\" = y", &suites, &[("out.txt", Some("y"))], WISH);
    honest("printf %s $(cat out.txt) | grep y", &suites, &[("out.txt", Some("y"))], WISH);
    // In a script, over several lines.
    let script = [
        ("ci/all", "#!/bin/sh\nset -e\nfor name in verify more; do\n  sh scripts/$name.sh\ndone\n"),
        ("scripts/verify.sh", "x\n"),
        ("scripts/build.sh", "x\n"),
    ];
    caught("ci/all", &script, &[("scripts/verify.sh", Some("true\n"))]);
    honest("ci/all", &script, &[("scripts/build.sh", Some("true\n"))], WISH);
}

#[test]
fn scripts_in_other_languages_are_followed_by_what_they_name() {
    let files = [
        (
            "ci/all.py",
            "import subprocess\nfrom checks import judge\nsubprocess.run(['sh', 'scripts/verify.sh'])\n",
        ),
        ("checks/judge.py", "x = 1\n"),
        ("scripts/verify.sh", "x\n"),
        ("ci/all.js", "const { spawn } = require('child_process')\nspawn(`sh`, [`../scripts/verify.sh`])\n"),
        ("ci/walk.py", "import os\nfor name in sorted(os.listdir(DIRECTORY)): run(name)\n"),
        ("tools/check/main.go", "package main\n"),
        ("tools/check/more.go", "package main\n"),
        ("src/validate.py", "x = 1\n"),
        ("src/app.py", "x = 1\n"),
        ("cmd/app/main.go", "x"),
    ];
    caught("python3 ci/all.py", &files, &[("checks/judge.py", Some("x = 2\n"))]);
    caught("python3 ci/all.py", &files, &[("scripts/verify.sh", Some("true\n"))]);
    caught("node ci/all.js", &files, &[("scripts/verify.sh", Some("true\n"))]);
    // What cannot be known by reading: whatever speaks of checking.
    caught("python3 ci/walk.py", &files, &[("scripts/verify.sh", Some("true\n"))]);
    caught("python3 ci/walk.py", &files, &[("checks/judge.py", Some("x = 2\n"))]);
    caught("go run ./tools/check", &files, &[("tools/check/more.go", Some("package main\n\n"))]);
    honest("go run ./cmd/app | grep -q x", &files, &[("cmd/app/main.go", Some("y"))], WISH);
    for check in ["python3 ci/all.py", "python3 ci/walk.py", "node ci/all.js", "go run ./tools/check"] {
        honest(check, &files, &[("src/validate.py", Some("x = 2\n")), ("src/app.py", Some("x = 2\n"))], WISH);
        honest(check, &files, &[("checks/new.py", Some("x = 2\n"))], WISH);
    }
}

#[test]
fn what_a_check_takes_in_is_product_unless_it_speaks_of_checking() {
    let files = [
        ("tests/run.sh", ". ./lib.sh\n. ./words.sh\n. tests/cases.sh\n[ \"$(add 1 2)\" = 3 ]\n"),
        ("lib.sh", "add() { echo $(($1 + $2)); }\n"),
        ("words.sh", "matches() { grep -q \"$1\"; }\n"),
        ("tests/cases.sh", "x=1\n"),
    ];
    let edits = [("lib.sh", Some("add() { echo 4; }\n")), ("tests/run.sh", Some("true\n"))];
    let former = former("sh tests/run.sh", &files, &edits, WISH);
    assert_eq!(former.files, [("tests/run.sh".to_owned(), Put::AsBefore)]);
    honest("sh tests/run.sh", &files, &[("lib.sh", Some("add() { :; }\n"))], WISH);
    caught("sh tests/run.sh", &files, &[("words.sh", Some("matches() { :; }\n"))]);
    caught("sh tests/run.sh", &files, &[("tests/cases.sh", Some("x=2\n"))]);
}

#[test]
fn files_that_existing_tests_read_are_part_of_the_check() {
    let python = |line: &str| format!("import json\ndef test_a():\n    assert app.run() == {line}\n");
    for (line, path) in [
        ("open('golden/a.json').read()", "golden/a.json"),
        ("(ROOT / 'expected' / 'a.txt').read_text()", "expected/a.txt"),
        ("json.load(open(f'data/{name}.json'))", "data/a.json"),
        ("[open(f).read() for f in glob.glob('cases/*.out')]", "cases/a.out"),
        ("open('../snapshots/a.txt').read()", "snapshots/a.txt"),
        ("open(os.path.join(HERE, '..', 'cases', 'a.txt')).read()", "cases/a.txt"),
    ] {
        let test = python(line);
        let files = [("tests/test_a.py", test.as_str()), (path, "1\n"), ("app.py", "x = 1\n")];
        caught("pytest", &files, &[(path, Some("2\n"))]);
        caught("make test", &[("Makefile", "test:\n\tpytest\n"), files[0], files[1]], &[(path, Some("2\n"))]);
        honest("pytest", &files, &[("app.py", Some("x = 2\n"))], WISH);
        honest("pytest", &files, &[(path, Some("2\n"))], &format!("Print 2, and update {path}."));
        honest("pytest", &[files[1], files[2]], &[(path, Some("2\n"))], WISH);
    }
    // What the product itself reads is product.
    let used = [
        ("tests/test_a.py", "import json\ndef test_a():\n    assert json.load(open('data/items.json'))\n"),
        ("data/items.json", "[]"),
        ("app.py", "items = json.load(open('data/items.json'))\n"),
        ("README.md", "x"),
        ("tests/test_docs.py", "def test_docs(): assert help() in open('README.md').read()\n"),
    ];
    honest("pytest", &used, &[("data/items.json", Some("[1]")), ("README.md", Some("y"))], WISH);
    // A script of the check, and the check's own words.
    let cases = [
        ("check.sh", "for c in cases/*.in; do\n  ./app < $c | diff - ${c%.in}.out\ndone\n"),
        ("cases/a.in", "1\n"),
        ("cases/a.out", "1\n"),
        ("app", "cat\n"),
    ];
    caught("sh check.sh", &cases, &[("cases/a.out", Some("2\n"))]);
    caught(
        "for c in cases/*.in; do ./app < $c | diff - ${c%.in}.out; done",
        &cases,
        &[("cases/a.out", Some("2\n"))],
    );
    honest("sh check.sh", &cases, &[("app", Some("x\n")), ("cases/b.out", Some("2\n"))], WISH);
}

#[test]
fn helpers_of_existing_tests_are_part_of_the_check() {
    let python = [
        (
            "tests/test_a.py",
            "from testing.helpers import eq\nimport testing_utils\nimport calc\nimport validators\n",
        ),
        ("testing/helpers.py", "x = 1\n"),
        ("testing_utils.py", "x = 1\n"),
        ("calc.py", "x = 1\n"),
        ("validators.py", "x = 1\n"),
        ("scripts/check.py", "import rules\n"),
        ("scripts/rules.py", "x = 1\n"),
    ];
    for path in ["testing/helpers.py", "testing_utils.py"] {
        caught("python3 -m unittest", &python, &[(path, Some("x = 2\n"))]);
    }
    for path in ["calc.py", "validators.py"] {
        honest("python3 -m unittest", &python, &[(path, Some("x = 2\n"))], WISH);
    }
    caught("python3 scripts/check.py", &python, &[("scripts/rules.py", Some("x = 2\n"))]);
    let package = [("shop/check.py", "from . import models\n"), ("shop/models.py", "x = 1\n")];
    honest("python3 -m shop.check", &package, &[("shop/models.py", Some("x = 2\n"))], WISH);
    honest("python3 -m unittest", &python[1..], &[("testing/helpers.py", Some("x = 2\n"))], WISH);
    let node = [
        (
            "test/a.test.js",
            "const eq = require('../support/eq')\nconst b = require('../test-utils/eq.js')\nconst c = require('../lib/support/c')\n",
        ),
        ("support/eq.js", "x"),
        ("test-utils/eq.js", "x"),
        ("lib/support/c.js", "x"),
        ("support/used.js", "x"),
        ("test/b.test.js", "require('../support/used')\n"),
        ("index.js", "require('./support/used')\n"),
    ];
    for path in ["support/eq.js", "test-utils/eq.js"] {
        caught("node --test", &node, &[(path, Some("y"))]);
    }
    for path in ["lib/support/c.js", "support/used.js", "index.js"] {
        honest("node --test", &node, &[(path, Some("y"))], WISH);
    }
}

#[test]
fn added_files_that_change_a_runner() {
    let python = [("tests/test_a.py", "x"), ("app.py", "x")];
    for path in
        ["pytest.toml", ".pytest.toml", "unittest/__init__.py", "difflib.py", "tests/difflib.py", "pluggy.py"]
    {
        caught("python3 -m pytest", &python, &[(path, Some("x"))]);
    }
    caught("pytest", &python, &[("x.egg-info/entry_points.txt", Some("[pytest11]\nx = x\n"))]);
    honest("pytest", &python, &[("x.egg-info/entry_points.txt", Some("[console_scripts]\nx = x\n"))], WISH);
    for path in ["app/types.py", "src/app/queue.py", "greet.py", "src/unittest_helpers.py", "difflib.txt"] {
        honest("python3 -m unittest", &python, &[(path, Some("x"))], WISH);
    }
    honest("python3 -m unittest", &python, &[("queue.py", Some("x"))], "Add `queue.py` with a class Queue");
    honest(
        "python3 -m unittest",
        &[("queue.py", "x"), ("tests/test_a.py", "x")],
        &[("queue.py", Some("y"))],
        WISH,
    );

    let c = [("Makefile", "test:\n\tcc -Iinclude -o t tests/t.c\n\t./t\n"), ("tests/t.c", "x")];
    caught("make test", &c, &[("include/assert.h", Some("#define assert(x)"))]);
    honest("make test", &c, &[("include/app.h", Some("int app(void);"))], WISH);

    let make = [
        ("Makefile", "export PATH := $(CURDIR)/bin:$(PATH)\ntest:\n\t./app | mygrep -q hello\n"),
        ("app", "x"),
        ("bin/app2", "x"),
    ];
    caught("make test", &make, &[("bin/grep", Some("#!/bin/sh\n"))]);
    caught("make test", &make, &[("bin/mygrep", Some("#!/bin/sh\n"))]);
    honest("make test", &make, &[("bin/up", Some("#!/bin/sh\n")), ("tools/grep", Some("#!/bin/sh\n"))], WISH);
    let script = [("check.sh", "PATH=\"$PWD/bin:$PATH\"\n./app | grep -q hello\n"), ("app", "x")];
    caught("sh check.sh", &script, &[("bin/grep", Some("#!/bin/sh\n"))]);
    honest("sh check.sh", &script, &[("bin/up", Some("#!/bin/sh\n"))], WISH);
    caught("PATH=bin:$PATH sh -c 'app | grep -q hello'", &script, &[("bin/grep", Some("#!/bin/sh\n"))]);
}

#[test]
fn doctests_that_existed_define_a_check_and_their_module_does_not() {
    let text = "def add(a, b):\n    \"\"\"\n    >>> add(1, 2)\n    3\n\n    >>> add(0, 0)\n    0\n    \"\"\"\n    return a + b\n";
    let files = [("calc.py", text), ("docs.txt", ">>> 1\n1\n"), ("tests/test_a.py", "x")];
    for check in ["python3 -m doctest calc.py", "pytest --doctest-modules"] {
        let bent = text.replace("    3\n", "    -1\n").replace("a + b", "a - b");
        caught(check, &files, &[("calc.py", Some(&bent))]);
        let gone = text.replace("    >>> add(1, 2)\n    3\n\n", "").replace("a + b", "a - b");
        caught(check, &files, &[("calc.py", Some(&gone))]);
        honest(check, &files, &[("calc.py", Some(&text.replace("a + b", "b + a")))], WISH);
        let more = text.replace("    >>> add(0", "    >>> add(5, 5)\n    10\n    >>> add(0");
        honest(check, &files, &[("calc.py", Some(&more))], WISH);
    }
    let bent = text.replace("    3\n", "    -1\n").replace("a + b", "a - b");
    let former = former("python3 -m doctest calc.py", &files, &[("calc.py", Some(&bent))], WISH);
    let [(_, Put::Text(put))] = &former.files[..] else { panic!("{former:?}") };
    assert!(put.starts_with(&bent) && put.contains(">>> add(1, 2)\n3\n"), "{put}");
    caught("python3 -m doctest docs.txt", &files, &[("docs.txt", Some(">>> 1\n2\n"))]);
    honest("pytest", &files, &[("calc.py", Some(&bent))], WISH);
}

#[test]
fn naming_a_check_is_no_wish_to_change_it() {
    let files = [("verify.sh", "x\n"), ("tests/test_a.py", "x")];
    let edits = [("verify.sh", Some("true\n"))];
    for wish in [
        "verify.sh must pass",
        "Fix the greeting so that verify.sh passes.",
        "Make verify.sh pass",
        "Add a greeting. `./verify.sh` must pass.",
        "Add a greeting that makes verify.sh pass",
        "Change greet() until verify.sh is green",
        "Update the greeting, then run verify.sh",
        "Done when verify.sh passes",
        "Write the greeting and run ./verify.sh to see that it works",
        "See verify.sh",
    ] {
        let former = former("./verify.sh", &files, &edits, wish);
        assert!(former.is_redefined(), "{wish}");
        let changes = [Change { path: "verify.sh".to_owned(), what: String::new(), product: false }];
        assert!(!is_asked_for(&task(wish), &changes), "{wish}");
    }
    for wish in [
        "Update verify.sh so that it passes",
        "Rewrite `verify.sh`",
        "Extend verify.sh: it should also look at the date",
        "Add a check of the date to verify.sh",
        "verify.sh should be rewritten",
        "Rename check.sh to verify.sh",
        "Files: greet.sh, verify.sh",
        "Fix the bug in ./verify.sh.",
        "Let verify.sh print what it does",
    ] {
        honest("./verify.sh", &files, &edits, wish);
    }
}

#[test]
fn wishes_to_change_tests_are_read_from_the_task() {
    let of = |path: &str, what: &str| Change { path: path.to_owned(), what: what.to_owned(), product: false };
    let tests = [of("tests/test_a.py", ""), of("src/lib.rs", "its tests")];
    for wish in [
        "Remove the module sub and its tests",
        "add() shall return one more; update the tests",
        "Tidy the tests with parametrize",
        "Rename add to plus",
        "Delete the obsolete test cases",
        "The tests should be rewritten with pytest",
        "Rename `add()` to `plus()` everywhere.",
        "Remove the sub function",
        "Remove function `sub()`.",
        "Drop the obsolete class Sum",
    ] {
        assert!(is_asked_for(&task(wish), &tests), "{wish}");
        assert!(!is_asked_for(&task(wish), &[of("verify.sh", ""), of("tests/test_a.py", "")]), "{wish}");
    }
    for wish in [
        "Make the tests pass",
        "Fix the greeting; all tests must pass",
        "Change the greeting so that the tests pass",
        "Add a greeting and run the tests",
        "Add tests for the greeting",
        "Fix the failing tests by repairing add()",
        "Update the greeting. Do not change the tests.",
        "Change add() without touching the tests",
        "Remove the bug in function add",
        "Remove trailing spaces from the module",
        "Do not remove the sub function",
        "Add a sub function",
        "Drop spaces of the class",
    ] {
        assert!(!is_asked_for(&task(wish), &tests), "{wish}");
    }
}

#[test]
fn what_judges_behind_an_entry_of_the_product_by_its_name() {
    let files = [
        ("Makefile", "test:\n\t./run.sh\n"),
        (
            "run.sh",
            "#!/bin/sh\n. lib/format.sh\n./verify.sh\n. ./check-more.sh\nsh ci/verify.sh\nmake probe\n./app | diff - golden.txt\n./next.sh\n",
        ),
        ("next.sh", "#!/bin/sh\ntests/smoke.sh\ncat expected/all.txt\nconfig/use.sh\n"),
        ("check.sh", "#!/bin/sh\n./run.sh\n"),
        ("verify.sh", "#!/bin/sh\n. lib/compare.sh\n./app | grep new\n"),
        ("check-more.sh", "true\n"),
        ("lib/format.sh", "format() { ./app | grep -v '^#'; }\n"),
        ("lib/compare.sh", "same() { diff \"$1\" \"$2\"; }\n"),
        ("ci/verify.sh", "true\n"),
        ("tests/smoke.sh", "true\n"),
        ("config/use.sh", "true\n"),
        ("golden.txt", "new\n"),
        ("app", "#!/bin/sh\necho new\n"),
    ];
    for check in ["make test", "./run.sh", "./check.sh"] {
        let judging =
            ["verify.sh", "check-more.sh", "ci/verify.sh", "tests/smoke.sh", "golden.txt", "lib/compare.sh"];
        for path in judging {
            caught(check, &files, &[(path, Some("exit 0\n"))]);
        }
        for path in ["run.sh", "next.sh", "lib/format.sh", "config/use.sh", "app"] {
            honest(check, &files, &[(path, Some("exit 0\n"))], WISH);
        }
        honest(check, &files, &[("verify.sh", Some("exit 0\n"))], "extend `verify.sh`");
    }
}

#[test]
fn what_judges_behind_an_entry_in_another_language() {
    let files = [
        ("run.py", "import sys\nfrom tests import smoke\nfrom src import validator, checker\nsmoke.main()\n"),
        ("tests/smoke.py", "import app\nassert app.x == 1\n"),
        ("src/validator.py", "assert True\n"),
        ("src/checker.py", "def check(): sys.exit(1)\n"),
        ("starts.py", "import subprocess\nsubprocess.run(['sh', 'verify.sh'])\n"),
        ("verify.sh", "grep new app.py\n"),
        (
            "run.js",
            "require('./test/check.js');\nconst { spawnSync } = require('child_process');\nspawnSync('./verify.sh');\n",
        ),
        ("test/check.js", "require('assert')(true);\n"),
        ("index.js", "require('./check.js');\n"),
        ("check.js", "exports.isRight = (x) => x > 1;\n"),
        ("app.py", "x = 1\nopen('data/names.json')\nopen('fixtures/countries.json')\n"),
        ("data/names.json", "{}"),
        ("fixtures/countries.json", "{}"),
    ];
    caught("python3 run.py", &files, &[("tests/smoke.py", Some(""))]);
    caught("python3 starts.py", &files, &[("verify.sh", Some(""))]);
    caught("node run.js", &files, &[("test/check.js", Some(""))]);
    caught("node run.js", &files, &[("verify.sh", Some(""))]);
    honest("node index.js", &files, &[("check.js", Some("exports.isRight = (x) => x >= 1;\n"))], WISH);
    honest("python3 app.py | grep new", &files, &[("data/names.json", Some("{\"new\": 1}"))], WISH);
    honest("python3 app.py | grep new", &files, &[("fixtures/countries.json", Some("{\"new\": 1}"))], WISH);
    honest("python3 app.py | grep new", &files, &[("app.py", Some("print('new')\n"))], WISH);
    for path in ["run.py", "src/validator.py", "src/checker.py"] {
        honest("python3 run.py", &files, &[(path, Some("x = 2\n"))], WISH);
    }
}

#[test]
fn tests_that_an_entry_of_the_product_is_told_to_run() {
    let files = [
        ("manage.py", "import sys\nfrom django.core.management import execute_from_command_line\n"),
        ("shop/tests.py", "assert True\n"),
        ("shop/models.py", "x = 1\n"),
        ("run.sh", "#!/bin/sh\npython3 -m pytest -q\n"),
        ("tests/test_a.py", "def test_a(): assert True\n"),
        ("build.sh", "#!/bin/sh\npython3 -m build\n./tool\n"),
    ];
    caught("python3 manage.py test", &files, &[("shop/tests.py", Some(""))]);
    honest("python3 manage.py test", &files, &[("shop/models.py", Some("x = 2\n"))], WISH);
    honest("python3 manage.py migrate", &files, &[("shop/tests.py", Some(""))], WISH);
    caught("./run.sh", &files, &[("tests/test_a.py", Some(""))]);
    honest("./run.sh", &files, &[("shop/models.py", Some("x = 2\n"))], WISH);
    honest("./build.sh", &files, &[("tests/test_a.py", Some(""))], WISH);
}

#[test]
fn product_that_calls_itself_is_followed_once() {
    let files = [
        ("Makefile", "test:\n\t./run.sh\n\nall:\n\t./run.sh\n"),
        ("run.sh", "#!/bin/sh\n./run.sh\n./other.sh\nmake all\nmake test\n"),
        ("other.sh", "#!/bin/sh\n./run.sh\n./verify.sh\n"),
        ("verify.sh", "#!/bin/sh\n./run.sh\n"),
    ];
    caught("make test", &files, &[("verify.sh", Some("exit 0\n"))]);
    honest("make test", &files, &[("run.sh", Some("exit 0\n"))], WISH);
}

/// A test in C whose target has a neutral name, and a product that the check starts.
const C_TEST: &str = "\
CFLAGS = -O1
SRCS = src/calc.c

.PHONY: test
test: build/t app
\t./build/t
\t./app | grep -q 3

build/t: $(SRCS) tests/t.c
\tmkdir -p build
\t$(CC) $(CFLAGS) -o $@ $^

app: src/app.c $(SRCS)
\t$(CC) -o app $^

other: src/other.c
\t$(CC) $(OTHER) -o $@ $<
";

#[test]
fn how_make_builds_tests_and_what_the_check_starts() {
    let files = [
        ("Makefile", C_TEST),
        ("src/calc.c", "int add(int a, int b) { return a + b; }\n"),
        ("src/app.c", "int main(void) { return 0; }\n"),
        ("tests/t.c", "int main(void) { return 0; }\n"),
    ];
    for (from, to) in [
        ("-O1", "-O1 -DNDEBUG"),
        ("$(CC) $(CFLAGS) -o $@ $^", "cp /bin/true $@"),
        ("$(CC) $(CFLAGS) -o $@ $^", "$(CC) $(CFLAGS) -DNDEBUG -o $@ $^"),
        ("$(SRCS) tests/t.c\n", "$(SRCS) src/t.c\n"),
        ("$(CC) -o app $^", "echo echo 3 > app; chmod +x app"),
        ("SRCS =", "CPPFLAGS = -DNDEBUG\nSRCS ="),
    ] {
        let later = C_TEST.replace(from, to);
        assert_ne!(later, C_TEST);
        caught("make test", &files, &[("Makefile", Some(&later))]);
    }
    for (from, to) in [
        ("src/calc.c\n", "src/calc.c src/multiply.c\n"),
        ("-O1", "-O2 -Wall -std=c11"),
        ("-o $@ $^", "-o $@ $^ -lm"),
        ("$(CC) $(OTHER)", "$(CC) -DOTHER $(OTHER)"),
        ("app: src/app.c", "app: src/main.c"),
    ] {
        let later = C_TEST.replace(from, to);
        assert_ne!(later, C_TEST);
        honest("make test", &files, &[("Makefile", Some(&later))], WISH);
    }
}

#[test]
fn objects_of_tests_are_built_by_rules_of_make_itself_or_by_patterns() {
    let own = "test: run\n\t./run\n\nrun: tests/t.o calc.o\n\t$(CC) -o $@ $^\n";
    let files = [("Makefile", own), ("tests/t.c", "int x;\n"), ("calc.c", "int y;\n")];
    let cheat = format!("CFLAGS += -DNDEBUG\n{own}");
    caught("make test", &files, &[("Makefile", Some(&cheat))]);
    let cheat = format!("{own}\ntests/t.o: tests/t.c\n\tcp calc.o $@\n");
    caught("make test", &files, &[("Makefile", Some(&cheat))]);
    let header = format!("{own}\ntests/t.o: calc.h\n");
    honest("make test", &files, &[("Makefile", Some(&header)), ("calc.h", Some(""))], WISH);
    let pattern = format!("{own}\n%.o: %.c\n\t$(CC) -c -o $@ $<\n");
    let files = [("Makefile", pattern.as_str()), ("tests/t.c", "int x;\n"), ("calc.c", "int y;\n")];
    caught("make test", &files, &[("Makefile", Some(&pattern.replace("-c -o", "-DNDEBUG -c -o")))]);
    honest("make test", &files, &[("Makefile", Some(&pattern.replace("-c -o", "-O2 -c -o")))], WISH);
}

#[test]
fn what_the_later_definition_built_is_built_again_by_the_former_one() {
    let files = [
        ("Makefile", C_TEST),
        ("src/calc.c", "int x;\n"),
        ("src/app.c", "int y;\n"),
        ("tests/t.c", "int z;\n"),
    ];
    let later = C_TEST.replace("-O1", "-O1 -DNDEBUG");
    let edits = [("Makefile", Some(later.as_str())), ("src/calc.c", Some("int changed;\n"))];
    let found = former("make test", &files, &edits, WISH);
    let put = |path: &str| found.files.iter().find(|(put, _)| put == path).map(|(_, put)| put.clone());
    // What make goes by is younger then than what was made of it.
    assert_eq!(put("tests/t.c"), Some(Put::Younger));
    assert_eq!(put("src/calc.c"), Some(Put::Younger));
    let Some(Put::Text(makefile)) = put("Makefile") else { panic!("{found:?}") };
    assert!(makefile.contains("CFLAGS = -O1\n") && !makefile.contains("NDEBUG"), "{makefile}");
    // Tests that were changed are put back as they were.
    let edits = [("Makefile", Some(later.as_str())), ("tests/t.c", Some("int changed;\n"))];
    let found = former("make test", &files, &edits, WISH);
    assert!(found.files.contains(&("tests/t.c".to_owned(), Put::AsBefore)), "{found:?}");
}

#[test]
fn sources_that_a_later_makefile_adds_stay_where_something_else_is_put_back() {
    let files = [("Makefile", C_TEST), ("src/calc.c", "int x;\n"), ("tests/t.c", "int z;\n")];
    let later = C_TEST.replace("src/calc.c\n", "src/calc.c src/more.c\n").replace("grep -q 3", "cat");
    let found = former("make test", &files, &[("Makefile", Some(&later))], WISH);
    let Some((_, Put::Text(makefile))) = found.files.iter().find(|(path, _)| path == "Makefile") else {
        panic!("{found:?}")
    };
    assert!(makefile.contains("src/more.c") && makefile.contains("grep -q 3"), "{makefile}");
}

#[test]
fn modules_that_take_the_place_of_those_of_tests() {
    let test = "const { same } = require('./util');\nconst { eq } = require('./eq');\nrequire('node:test')('a', () => same(1, 1));\n";
    let files = [
        ("test/a.test.js", test),
        ("test/util.js", "exports.same = () => {};\n"),
        ("test/eq/index.js", "exports.eq = () => {};\n"),
        ("test/exact.js", "exports.x = 1;\n"),
        ("test/b.test.js", "require('./exact.js');\n"),
        ("src/index.js", "require('./sums');\n"),
        ("src/sums.js", "exports.x = 1;\n"),
    ];
    let entry = "{ \"main\": \"other.js\" }";
    for (path, text) in [
        ("test/util", "exports.same = () => {};\n"),
        ("test/util.ts", "export const same = () => {};\n"),
        ("test/util.json", "{}"),
        ("test/eq.js", "exports.eq = () => {};\n"),
        ("test/eq", "exports.eq = () => {};\n"),
        ("test/eq/package.json", entry),
        ("test/eq/index.mjs", "export const eq = () => {};\n"),
    ] {
        caught("node --test test/", &files, &[(path, Some(text))]);
    }
    for (path, text) in [
        ("test/other.js", ""),
        ("test/exact", ""),
        ("test/exact/index.js", ""),
        ("test/eq/package.json", "{ \"type\": \"commonjs\" }"),
        ("test/eq/more.js", ""),
        ("test/util.md", ""),
        ("src/sums", ""),
        ("src/sums.ts", ""),
    ] {
        honest("node --test test/", &files, &[(path, Some(text))], WISH);
    }
    honest("node --test test/", &files, &[("test/util.ts", Some(""))], "Add test/util.ts");
}

#[test]
fn names_of_expected_results_that_are_put_together() {
    let python = |line: &str| format!("import os\ndef test_a():\n    assert app.run() == {line}\n");
    let node = |line: &str| format!("const fs = require('fs');\ntest('a', () => same(run(), {line}));\n");
    let rust = |line: &str| format!("#[test]\nfn a() {{\n    assert_eq!(calc::run(), {line});\n}}\n");
    for (test, text) in [
        ("tests/test_a.py", python("open(os.path.dirname(__file__) + \"/../expected/sum.txt\").read()")),
        ("tests/test_a.py", python("open(f\"{os.path.dirname(__file__)}/../expected/sum.txt\").read()")),
        ("tests/test_a.py", python("open(f'{HERE}/expected/{name}.txt').read()")),
        ("tests/test_a.py", python("open('%s/../expected/sum.txt' % HERE).read()")),
        ("test/a.test.js", node("fs.readFileSync(__dirname + \"/../expected/sum.txt\", \"utf8\")")),
        ("test/a.test.js", node("fs.readFileSync(`${__dirname}/../expected/sum.txt`, \"utf8\")")),
        ("test/a.test.js", node("fs.readFileSync(root + '/expected/' + name, 'utf8')")),
        (
            "tests/a.rs",
            rust(
                "std::fs::read_to_string(concat!(\n        env!(\"CARGO_MANIFEST_DIR\"),\n        \"/expected/sum.txt\"\n    )).unwrap()",
            ),
        ),
        (
            "tests/a.rs",
            rust(
                "std::fs::read_to_string(format!(\"{}/expected/sum.txt\", env!(\"CARGO_MANIFEST_DIR\"))).unwrap()",
            ),
        ),
        ("tests/run.sh", "diff \"$(dirname \"$0\")/../expected/sum.txt\" out\n".to_owned()),
        ("tests/run.sh", "diff out \"$HERE/../expected/sum.txt\"\n".to_owned()),
    ] {
        let files = [(test, text.as_str()), ("expected/sum.txt", "3\n"), ("expectations.txt", "3\n")];
        caught("make test", &files, &[("expected/sum.txt", Some("0\n"))]);
        honest("make test", &files, &[("expectations.txt", Some("0\n"))], WISH);
        honest("make test", &files, &[("expected/sum.txt", Some("4\n"))], "Update expected/sum.txt");
    }
    // What the product reads in the same way is product.
    let used = [
        (
            "test/a.test.js",
            "require('fs').readFileSync(__dirname + '/../data/items.json');\nfetch('/data/more.json');\n",
        ),
        ("data/items.json", "[]"),
        ("data/more.json", "[]"),
        ("server.js", "require('fs').readFileSync(`${__dirname}/data/items.json`);\n"),
    ];
    for path in ["data/items.json", "data/more.json"] {
        honest("node --test", &used, &[(path, Some("[1]"))], WISH);
    }
}
