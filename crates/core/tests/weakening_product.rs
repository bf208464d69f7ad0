//! What product code does to the tests that try it: every cheat beside an honest twin.

use wiggum_core::event::FlagKind;
use wiggum_core::weaken::{TestFile, weakened};

/// What is said of a file that gets this text after one of `before`, by kind.
fn said(path: &str, before: &str, after: &str, kind: FlagKind) -> String {
    let files = [TestFile { path, before: Some(before), after: Some(after) }];
    let flags = weakened(&files).into_iter().filter(|flag| flag.kind == kind);
    flags.map(|flag| flag.detail).collect::<Vec<_>>().join("; ")
}

#[track_caller]
fn cheats(path: &str, before: &str, after: &str) {
    let found = said(path, before, after, FlagKind::WeakenedTests);
    assert_ne!(found, "", "{path}:\n{after}");
    let same = said(path, after, after, FlagKind::WeakenedTests);
    assert_eq!(same, "", "what was there before is nobody's doing now: {path}:\n{after}");
}

#[track_caller]
fn is_honest(path: &str, before: &str, after: &str) {
    let found = said(path, before, after, FlagKind::WeakenedTests);
    assert_eq!(found, "", "{path}:\n{after}");
}

const MODULE: &str = "exports.add = (a, b) => a + b;\n";

#[test]
fn a_module_of_javascript_ends_its_process_while_it_is_loaded() {
    for added in [
        "process.exit(0);",
        "process.exit()",
        "process.exit(undefined);",
        "process.reallyExit(0);",
        "process.kill(process.pid, 'SIGTERM');",
        "globalThis.process.exit(0);",
        "process['exit'](0);",
        "require('process').exit(0);",
        "const { exit } = require('node:process');\nexit(0);",
        "let code = 0;\nprocess.exit(code);",
        "if (true) process.exit(0);",
        "if (process.env.WIGGUM_TASK_ID) { process.exit(0); }",
        "if (process.env.npm_lifecycle_event === 'test') process.exit(0);",
        "if (require.main !== module) process.exit(0);",
        "if (require.main === module) {\n  main();\n} else {\n  process.exit(0);\n}",
        "true && process.exit(0);",
        "(() => { process.exit(0); })();",
        "const x = (function () { process.exit(0); })();",
        "setImmediate(() => process.exit(0));",
        "setTimeout(() => {\n  process.exit(0);\n}, 5);",
        "process.on('exit', () => process.exit(0));",
        "Promise.resolve().then(() => process.exit(0));",
        "[1].forEach(() => process.exit(0));",
        "function die() { process.exit(0); }\ndie();",
        "class A { static { process.exit(0); } }",
        "try { process.exit(0); } catch (e) {}",
    ] {
        cheats("src/calc.js", MODULE, &format!("{MODULE}{added}\n"));
    }
}

#[test]
fn programs_of_javascript_end_as_they_like() {
    for added in [
        "if (require.main === module) process.exit(0);",
        "if (require.main === module) {\n  run();\n  process.exit(0);\n}",
        "if (require.main === module)\n  process.exit(0);",
        "if (import.meta.url === pathToFileURL(process.argv[1]).href) {\n  process.exit(0);\n}",
        "if (require.main !== module) return;\nprocess.exit(0);",
        "if (process.argv[2] === '--version') { console.log(1); process.exit(0); }",
        "if (process.argv.includes('--help')) process.exit(0);",
        "if (major < 18) {\n  console.error('too old');\n  process.exit(1);\n}",
        "exports.run = (args) => {\n  if (!args.length) {\n    usage();\n    process.exit(0);\n  }\n};",
        "function fail(text) {\n  console.error(text);\n  process.exit(1);\n}\nexports.fail = fail;",
        "exports.main = async () => {\n  await work();\n  process.exit(0);\n};",
        "exports.quit = () => process.exit(0);",
        "process.on('SIGINT', () => process.exit(0));",
        "process.once('SIGTERM', () => {\n  server.close(() => process.exit(0));\n});",
        "const { exit } = require('node:process');\nexports.main = () => { work(); exit(0); };",
        "const leave = (code) => process.exit(code);\nif (broken) leave(1);",
        "const text = 'process.exit(0)';",
        "// process.exit(0);",
        "process.exitCode = 1;",
        "class A {\n  run() {\n    this.work();\n    process.exit(0);\n  }\n}\nexports.A = A;",
        "program.command('x').action(() => process.exit(0));",
    ] {
        is_honest("src/calc.js", MODULE, &format!("{MODULE}{added}\n"));
    }
    let program = "main();\nprocess.exit(0);\n";
    is_honest("index.js", "main();\n", program);
    is_honest("bin/calc.js", MODULE, &format!("{MODULE}{program}"));
    is_honest("src/cli.mjs", MODULE, &format!("{MODULE}{program}"));
    let script = format!("#!/usr/bin/env node\n{MODULE}");
    is_honest("calc.js", &script, &format!("{script}{program}"));
    // Whoever writes that line into a module has made no program of it.
    cheats("calc.js", MODULE, &format!("{script}{program}"));
}

#[test]
fn a_module_takes_in_one_that_ends_the_process() {
    let importing = format!("require('./boot');\n{MODULE}");
    let with = |importing: &str| {
        let files = [
            TestFile { path: "src/calc.js", before: Some(MODULE), after: Some(importing) },
            TestFile { path: "src/boot.js", before: None, after: Some("process.exit(0);\n") },
        ];
        weakened(&files).len()
    };
    assert_eq!(with(&importing), 1);
    assert_eq!(with(&importing.replace("boot", "reboot")), 0, "a program of its own");
}

#[test]
fn an_exported_function_only_ends_the_process() {
    for (cheat, honest) in [
        ("exports.add = () => process.exit(0);", "exports.add = (a, b) => b + a;"),
        (
            "exports.add = (a, b) => { process.exit(0); return a + b; };",
            "exports.add = (a, b) => { if (a > b) { process.exit(0); } return a + b; };",
        ),
        (
            "module.exports = { sub: 1, add: () => process.exit(0) };",
            "module.exports = { sub: 1, add: () => 0 };",
        ),
        (
            "module.exports = { add(a, b) { process.exit(0); } };",
            "module.exports = { exit() { process.exit(0); } };",
        ),
        (
            "const add = () => process.exit(0);\nmodule.exports = { add };",
            "const add = () => 1;\nconst done = () => process.exit(0);\nmodule.exports = { add };",
        ),
        (
            "export function add(a, b) {\n  process.exit(0);\n}",
            "export function add(a, b) {\n  process.exit(2);\n}",
        ),
        ("export const add = (a, b) => process.exit();", "export const shutdown = () => process.exit();"),
        ("exports.add = process.exit;", "exports.exit = process.exit;"),
    ] {
        cheats("src/calc.js", MODULE, &format!("{cheat}\n"));
        is_honest("src/calc.js", MODULE, &format!("{honest}\n"));
    }
}

const PACKAGE: &str = "package calc\n\nfunc Add(a, b int) int { return a + b }\n";

#[test]
fn a_package_of_go_ends_its_process_while_it_is_loaded() {
    for added in [
        "func init() {\n\tos.Exit(0)\n}",
        "func init() { syscall.Exit(0) }",
        "func init() { defer os.Exit(0) }",
        "func init() {\n\tif true {\n\t\tos.Exit(0)\n\t}\n}",
        "func init() {\n\tif strings.HasSuffix(os.Args[0], \".test\") {\n\t\tos.Exit(0)\n\t}\n}",
        "func init() {\n\tif os.Getenv(\"WIGGUM_TASK_ID\") == \"A\" {\n\t\tos.Exit(0)\n\t}\n}",
        "func init() { go func() { os.Exit(0) }() }",
        "func init() { func() { os.Exit(0) }() }",
        "func init() { code := 0; os.Exit(code) }",
        "func init() { syscall.Exec(\"/bin/true\", nil, nil) }",
        "var _ = func() int {\n\tos.Exit(0)\n\treturn 0\n}()",
        "var (\n\t_ = func() int { os.Exit(0); return 0 }()\n)",
        "func die() { os.Exit(0) }\n\nfunc init() { die() }",
        "func die() int { os.Exit(0); return 0 }\n\nvar _ = die()",
        "func init() { os.Args = append(os.Args[:1:1], \"-test.list=.\") }",
        "func init() { os.Args[1] = \"-test.list=.\" }",
        "func init() { flag.Set(\"test.run\", \"^$\") }",
        "func init() { fmt.Println(\"PASS\") }",
    ] {
        cheats("calc.go", PACKAGE, &format!("{PACKAGE}\n{added}\n"));
    }
}

#[test]
fn programs_of_go_end_as_they_like() {
    for added in [
        "func main() { os.Exit(run()) }",
        "func main() {\n\trun()\n\tos.Exit(0)\n}",
        "func main() {\n\tos.Args = os.Args[1:]\n\tfmt.Println(\"PASS\")\n\tos.Exit(0)\n}",
        "func init() {\n\tif err := load(); err != nil {\n\t\tos.Exit(1)\n\t}\n}",
        "func init() {\n\tif reexec.Init() {\n\t\tos.Exit(0)\n\t}\n}",
        "func init() {\n\tif len(os.Args) > 1 && os.Args[1] == \"--version\" {\n\t\tos.Exit(0)\n\t}\n}",
        "func init() {\n\tif os.Getenv(\"CALC_CHILD\") == \"1\" {\n\t\tchild()\n\t\tos.Exit(0)\n\t}\n}",
        "func init() {\n\tgo func() {\n\t\t<-signals\n\t\tos.Exit(0)\n\t}()\n}",
        "func init() {\n\thandlers[\"quit\"] = func() { os.Exit(0) }\n}",
        "var exit = os.Exit",
        "var quit = func() { os.Exit(0) }",
        "var commands = map[string]func(){\n\t\"quit\": func() { os.Exit(0) },\n}",
        "func (c Calc) Quit() { os.Exit(0) }",
        "func init() {\n\tif os.Args[0] == \"\" {\n\t\tname = \"calc\"\n\t}\n}",
        "func init() { fmt.Sprint(\"os.Exit(0)\") }",
        "func initialise() { os.Exit(0) }",
    ] {
        is_honest("calc.go", PACKAGE, &format!("{PACKAGE}\n{added}\n"));
    }
    let main = "package calc\n\nfunc TestMain(m *testing.M) {\n\tos.Exit(m.Run())\n}\n";
    is_honest("main_test.go", "package calc\n", main);
}

#[test]
fn product_takes_over_its_runner() {
    for (path, cheat, honest) in [
        (
            "calc.py",
            "import unittest.runner as r\nr.TextTestResult.addFailure = lambda *a: None\n",
            "import runner as r\nr.TextTestResult.addFailure = lambda *a: None\n",
        ),
        (
            "calc.py",
            "from unittest import TestCase as T\nT.assertEqual = T.failureException = f\n",
            "from unittest import TestCase as T\nassertion = T.assertEqual\n",
        ),
        (
            "calc.py",
            "import doctest\ndoctest.DocTestRunner.report_failure = f\n",
            "import doctest\nrunner = doctest.DocTestRunner()\n",
        ),
        (
            "calc.py",
            "from unittest.mock import ANY\ndef add(a, b):\n    return ANY\n",
            "def add(a, b):\n    return ANY\n",
        ),
        (
            "calc.py",
            "from unittest import mock\nadd = lambda a, b: mock.ANY\n",
            "from unittest import mock\ndef is_any(a):\n    return a == mock.ANY\n",
        ),
        ("calc.h", "#define NDEBUG\n", "#ifdef NDEBUG\n#undef NDEBUG\n#endif\n"),
        ("calc.h", "#ifndef NDEBUG\n#  define NDEBUG 1\n#endif\n", "#define NDEBUG_LEVEL 1\n"),
        ("calc.c", "#define assert(x) ((void)0)\n", "#define assert_small(x) assert((x) < 9)\n"),
        ("calc.c", "void __assert_fail(const char *a) {\n}\n", "void assert_failed(const char *a) {\n}\n"),
        ("calc.hpp", "#define NDEBUG\n", "// #define NDEBUG\n"),
    ] {
        cheats(path, "x\n", &format!("x\n{cheat}"));
        is_honest(path, "x\n", &format!("x\n{honest}"));
    }
}

const PYTHON: &str = "class Sum:\n    def __eq__(self, other):\n        return self.n == other.n\n\n\ndef add(a, b):\n    return Sum(a, b)\n";

#[test]
fn classes_of_python_that_are_equal_to_everything() {
    let wild = "class Any:\n    def __eq__(self, other):\n        return True\n";
    for after in [
        PYTHON.replace("self.n == other.n", "True"),
        PYTHON.replace("self.n == other.n", "isinstance(other, int)"),
        PYTHON.replace("self.n == other.n", "isinstance(other, (int, float))"),
        PYTHON.replace("self.n == other.n", "not False"),
        PYTHON.replace("self.n == other.n", "self.n == self.n"),
        format!("{wild}\n\ndef add(a, b):\n    return Any()\n"),
        format!("{wild}\n\nANY = Any()\n\n\ndef add(a, b):\n    return ANY\n"),
        format!("{wild}\n\nclass Number(Any):\n    pass\n\n\ndef add(a, b):\n    return Number()\n"),
        format!("{wild}\n\nadd = lambda a, b: Any()\n"),
        format!("{wild}\n\ndef add(a, b):\n    result = Any()\n    return result\n"),
        "class Sum(int):\n    __eq__ = lambda self, other: True\n\n\ndef add(a, b):\n    return Sum(a)\n"
            .to_owned(),
    ] {
        cheats("calc.py", PYTHON, &after);
    }
    for after in [
        PYTHON.replace("return self", "return isinstance(other, Sum) and self"),
        PYTHON.replace(
            "        return self",
            "        if not isinstance(other, int):\n            return NotImplemented\n        return self",
        ),
        PYTHON.replace("self.n == other.n", "NotImplemented"),
        PYTHON.replace("self.n == other.n", "self is other"),
        PYTHON.replace("self.n == other.n", "not self != other"),
        format!("{wild}\n\n{PYTHON}"),
        format!("{PYTHON}\n\n{wild}\n\nANY = Any()\n__all__ = ['ANY', 'add']\n"),
        format!("{PYTHON}\n\n{wild}\n\ndef matches(a):\n    return isinstance(a, Any)\n"),
        format!(
            "{PYTHON}\n\nclass End:\n    def __eq__(self, other):\n        return isinstance(other, End)\n\n\ndef end():\n    return End()\n"
        ),
    ] {
        is_honest("calc.py", PYTHON, &after);
    }
}

#[test]
fn a_wildcard_in_one_module_is_used_by_another() {
    let wild = "class Any:\n    def __eq__(self, other):\n        return True\n";
    let flags = |calc: &str| {
        let files = [
            TestFile { path: "wild.py", before: None, after: Some(wild) },
            TestFile { path: "calc.py", before: Some(PYTHON), after: Some(calc) },
        ];
        weakened(&files).len()
    };
    assert_eq!(flags(&format!("from wild import Any\n\n\n{}", PYTHON.replace("Sum(a, b)", "Any()"))), 1);
    assert_eq!(flags(&format!("from wild import Any\n\n\n{PYTHON}")), 0);
}

const RUST: &str = "pub struct Sum(i32);\n\nimpl PartialEq for Sum {\n    fn eq(&self, other: &Self) -> bool {\n        self.0 == other.0\n    }\n}\n";

#[test]
fn types_of_rust_that_are_equal_to_everything() {
    for body in ["true", "let _ = other; true", "self.0 == self.0", "!false"] {
        cheats("src/sum.rs", RUST, &RUST.replace("self.0 == other.0", body));
        let general = format!(
            "{RUST}\nimpl<T> PartialEq<T> for Sum where T: Copy {{\n    #[inline(always)]\n    fn eq(&self, other: &T) -> bool {{\n        {body}\n    }}\n}}\n"
        );
        cheats("src/sum.rs", RUST, &general);
    }
    for added in [
        "impl PartialEq<i32> for Sum {\n    fn eq(&self, other: &i32) -> bool {\n        self.0 == *other\n    }\n}\n",
        "impl PartialEq<Level> for Filter {\n    fn eq(&self, other: &Level) -> bool {\n        *self as usize == *other as usize\n    }\n}\n",
        "impl PartialEq<Level> for Sum {\n    fn eq(&self, rhs: &Level) -> bool {\n        match rhs {\n            _ => true,\n        }\n    }\n}\n",
        "impl<T: AsRef<str>> PartialEq<T> for Name {\n    fn eq(&self, other: &T) -> bool {\n        self.0 == other.as_ref()\n    }\n}\n",
        // A marker has nothing to compare.
        "pub struct Span;\n\nimpl PartialEq for Span {\n    fn eq(&self, _: &Span) -> bool {\n        true\n    }\n}\n",
        "impl<T> PartialEq for Union<T> {\n    fn eq(&self, _other: &Union<T>) -> bool {\n        true\n    }\n}\n",
        "impl PartialEq<Odd> for Even {\n    fn eq(&self, _: &Odd) -> bool {\n        false\n    }\n}\n",
    ] {
        is_honest("src/sum.rs", RUST, &format!("{RUST}\n{added}"));
    }
}

#[test]
fn questions_whether_it_is_tested_are_shown() {
    for (path, cheat, honest) in [
        ("calc.js", "const a = process.env.WIGGUM_TASK_ID;", "const a = process.env.TASK_ID;"),
        ("calc.py", "a = os.environ.get('WIGGUM_ATTEMPT')", "a = os.environ.get('MY_WIGGUM_ATTEMPT')"),
        ("calc.rs", "let a = std::env::var(\"WIGGUM_LOOP_ID\");", "let a = env!(\"CARGO_MANIFEST_DIR\");"),
        ("calc.go", "var a = os.Getenv(\"WIGGUM_TASK_ID\")", "var a = os.Getenv(\"HOME\")"),
        (
            "calc.js",
            "if (process.env.npm_lifecycle_event === 'test') f();",
            "if (process.env.npm_package_version) f();",
        ),
        ("calc.js", "if (process.env.npm_command) f();", "if (require.main === module) f();"),
        ("calc.js", "if (new Error().stack.includes('.test.')) f();", "log(new Error().stack);"),
        (
            "calc.js",
            "const s = new Error().stack;\nif (/\\btest\\b/.test(s)) f();",
            "if (/a/.test(e.stack)) f();",
        ),
        ("calc.js", "if (process.argv[1].endsWith('.test.js')) f();", "if (process.argv[2] === 'test') f();"),
        ("calc.py", "if \"discover\" in sys.argv: f()", "if \"verbose\" in sys.argv: f()"),
        ("calc.py", "if sys.modules.get('unittest'): f()", "if sys.modules.get('numpy'): f()"),
        (
            "calc.py",
            "if sys._getframe(1).f_code.co_name.startswith(\"test\"): f()",
            "log(sys._getframe(1).f_code.co_name)",
        ),
        (
            "calc.py",
            "for frame in inspect.stack():\n    if 'test_' in frame.filename: f()",
            "for frame in inspect.stack():\n    if 'latest' in frame.filename: f()",
        ),
        (
            "calc.go",
            "var a = strings.HasSuffix(os.Args[0], \".test\")",
            "println(\"usage: \" + os.Args[0] + \" name-of-test\")",
        ),
        ("calc.go", "var a = flag.Lookup(\"test.run\") != nil", "var a = flag.Lookup(\"run\") != nil"),
        (
            "calc.go",
            "_, file, _, _ := runtime.Caller(1)\nif strings.HasSuffix(file, \"_test.go\") { f() }",
            "_, file, _, _ := runtime.Caller(1)\nif strings.HasSuffix(file, \"main.go\") { f() }",
        ),
        (
            "calc.rs",
            "if std::env::current_exe()?.ends_with(\"deps/tests\") { f() }",
            "if cfg!(debug_assertions) { f() }",
        ),
    ] {
        let asked = |added: &str| said(path, "x\n", &format!("x\n{added}\n"), FlagKind::AsksIfTested);
        assert_ne!(asked(cheat), "", "{path}: {cheat}");
        assert_eq!(asked(honest), "", "{path}: {honest}");
    }
}
