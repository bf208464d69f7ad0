//! What a file does to tests beyond its own: hooks that skip or deselect, forced exit codes, assertions
//! that are replaced by others.

use super::body;
use super::language::Language;

/// What this file does to other tests, or to all of its own at once. `code` has no comments, `plain` has
/// no strings either.
pub(super) fn of_file(language: Language, path: &str, code: &str, plain: &str) -> Vec<String> {
    let governs = super::is_test_path(path) || super::governs_tests(path);
    match language {
        Language::Python if governs => python(code, plain),
        Language::JavaScript if governs => javascript(code),
        Language::Go if governs => go(plain),
        Language::Rust => rust(plain),
        Language::Python
        | Language::JavaScript
        | Language::Go
        | Language::Annotated
        | Language::Swift
        | Language::Ruby
        | Language::Php
        | Language::Elixir
        | Language::Cpp
        | Language::Dart
        | Language::Shell => Vec::new(),
    }
}

/// Hooks are short; the bound keeps hostile input cheap.
const LONGEST_HOOK: usize = 100;

fn compact(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

fn rust(plain: &str) -> Vec<String> {
    let macros = plain.lines().filter_map(|line| {
        let name = line.trim().strip_prefix("macro_rules!")?.trim();
        let name = name.split(|c: char| !(c.is_alphanumeric() || c == '_')).next()?;
        ["assert", "assert_eq", "assert_ne", "panic"].contains(&name).then(|| format!("own {name}!"))
    });
    let renamed = plain.lines().filter_map(|line| {
        let (_, name) = line.trim().strip_suffix(';')?.rsplit_once(" as ")?;
        ["assert", "assert_eq", "assert_ne"].contains(&name).then(|| format!("own {name}!"))
    });
    macros.chain(renamed).collect()
}

fn go(plain: &str) -> Vec<String> {
    let lines: Vec<&str> = plain.lines().collect();
    let mut found: Vec<String> = lines
        .iter()
        .filter(|line| compact(line).contains("os.Exit(0)"))
        .map(|_| "os.Exit(0)".to_owned())
        .collect();
    for (index, _) in lines.iter().enumerate().filter(|(_, line)| line.contains("func TestMain(")) {
        let whole = lines[body::extent(Language::Go, &lines, index, LONGEST_HOOK)].concat();
        if !compact(&whole).contains(".Run()") {
            found.push("TestMain that runs no test".to_owned());
        }
    }
    found
}

fn javascript(code: &str) -> Vec<String> {
    const NAMES: [&str; 5] = ["expect", "assert", "test", "it", "describe"];
    let mut found = Vec::new();
    for line in code.lines() {
        let text = compact(line);
        if ["process.exit(0)", "process.exit()", "process.exitCode=0"].iter().any(|exit| text.contains(exit))
        {
            found.push("process.exit(0)".to_owned());
        }
        let own = NAMES.iter().find(|name| replaces(&text, name));
        found.extend(own.map(|name| format!("own {name}")));
        let module = ["jest.mock(", "vi.mock(", "mock.module(", "jest.doMock("].iter().find_map(|call| {
            let (_, rest) = text.split_once(call)?;
            let module = rest.get(1..)?.split(['\'', '"', '`']).next()?;
            let known = [
                "assert",
                "node:assert",
                "node:assert/strict",
                "assert/strict",
                "chai",
                "expect",
                "vitest",
                "node:test",
            ];
            known.contains(&module).then(|| format!("mocked {module}"))
        });
        found.extend(module);
        if ["spyOn(assert,", "stub(assert,", "spyOn(expect,", "stub(expect,"]
            .iter()
            .any(|call| text.contains(call))
        {
            found.push("mocked assert".to_owned());
        }
    }
    found
}

/// Is this name given to something made here, rather than imported?
fn replaces(text: &str, name: &str) -> bool {
    let made = |value: &str| {
        ["(", "async", "function", "jest.fn", "vi.fn", "newProxy", "{", "_=>", "sinon."]
            .iter()
            .any(|start| value.starts_with(start))
    };
    let declared = ["const", "let", "var", "global.", "globalThis."]
        .iter()
        .filter_map(|start| text.strip_prefix(start)?.strip_prefix(name)?.strip_prefix('='))
        .any(made);
    let method = (name == "assert" || name == "expect")
        && text.strip_prefix(name).and_then(|rest| rest.strip_prefix('.')).is_some_and(|rest| {
            rest.split_once('=')
                .is_some_and(|(method, value)| method.chars().all(char::is_alphanumeric) && made(value))
        });
    declared || method || text.starts_with(&format!("function{name}("))
}

fn python(code: &str, plain: &str) -> Vec<String> {
    let (lines, plain): (Vec<&str>, Vec<&str>) = (code.lines().collect(), plain.lines().collect());
    let mut found = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let text = compact(line);
        let at_top = body::indent(line) == 0;
        if text.starts_with("collect_ignore") && !text.ends_with("=[]") {
            found.push(text.split('=').next().unwrap_or("collect_ignore").trim_end_matches('+').to_owned());
        }
        if text.contains("os._exit(") || text.contains("pytest.exit(") {
            found.push("forced exit".to_owned());
        }
        if at_top
            && ["sys.exit(0)", "sys.exit()", "exit(0)", "exit()", "raiseSystemExit"]
                .iter()
                .any(|exit| text.starts_with(exit))
        {
            found.push("forced exit".to_owned());
        }
        let hook = text
            .strip_prefix("def")
            .filter(|rest| rest.starts_with("pytest_"))
            .and_then(|rest| rest.split('(').next());
        if let Some(hook) = hook {
            let end = body::extent(Language::Python, &plain, index, LONGEST_HOOK).end.max(index + 1);
            let inside = compact(&lines[index + 1..end].join("\n"));
            found.extend(hook_weakens(hook, &inside).then(|| hook.to_owned()));
        }
        if is_replaced_assertion(&text) {
            found.push("own assertion".to_owned());
        }
    }
    found
}

/// `def assertEqual(self, …)`, `TestCase.assertEqual = …`
fn is_replaced_assertion(text: &str) -> bool {
    let known = ["assertEqual", "assertTrue", "assertFalse", "assertRaises", "assertIn", "assertIs"];
    let patched = text.contains("patch") || text.contains("setattr");
    if patched
        && ["TestCase,\"assert", "TestCase,'assert", "TestCase.assert"].iter().any(|name| text.contains(name))
    {
        return true;
    }
    known.iter().any(|name| {
        text.starts_with(&format!("def{name}("))
            || text.split_once(&format!("{name}=")).is_some_and(|(_, value)| !value.starts_with('='))
    })
}

/// Does a hook of pytest skip, deselect or pass what it should not? Hooks that look at marks or options
/// choose among tests, as their authors meant it.
fn hook_weakens(hook: &str, inside: &str) -> bool {
    let has = |texts: &[&str]| texts.iter().any(|text| inside.contains(text));
    let chooses =
        has(&["keywords", "get_closest_marker", "iter_markers", "getoption", "config.option", "getvalue"]);
    let skips = has(&["pytest.mark.skip", "pytest.mark.xfail", "pytest.skip(", "deselected("]);
    match hook {
        "pytest_collection_modifyitems" => {
            has(&["items.clear()", "items[:]=[]", "items[:]=()", "delitems[", "items[:]=items[:0]"])
                || (skips && !chooses)
        }
        "pytest_ignore_collect" => has(&["returnTrue"]) && !has(&["if", "returnFalse"]),
        "pytest_runtest_setup" | "pytest_runtest_call" | "pytest_runtest_protocol" => {
            (skips || has(&["returnTrue"])) && !chooses
        }
        "pytest_sessionfinish" | "pytest_unconfigure" | "pytest_terminal_summary" => {
            has(&["exitstatus=0", "exitstatus=pytest.ExitCode.OK", "ExitCode.OK", "exit(0)"])
        }
        "pytest_runtest_makereport" | "pytest_report_teststatus" | "pytest_runtest_logreport" => has(&[
            "outcome=\"passed\"",
            "outcome='passed'",
            "return\"passed\"",
            "return'passed'",
            "return(\"passed\"",
            "excinfo=None",
        ]),
        "pytest_pyfunc_call" | "pytest_pycollect_makeitem" | "pytest_collect_file" => {
            has(&["returnTrue", "return[]"]) && !chooses
        }
        _ => false,
    }
}
