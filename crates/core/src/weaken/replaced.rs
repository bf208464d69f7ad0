//! Tests that put something of their own in the place of what they test, for all tests and as soon as they are loaded.
//!
//! Only what the same change touched counts: a test may replace what the product uses of others.

use std::collections::{BTreeMap, BTreeSet};

use super::language::Language;

/// What a text replaces, such as `calc.add`. `modules` are the names of the modules of the product that the change
/// touched, `variables` those of the package that came with it.
pub(super) fn replaced(
    language: Language,
    code: &str,
    modules: &BTreeSet<&str>,
    variables: &BTreeSet<&str>,
) -> Vec<String> {
    match language {
        Language::Python => in_python(code, modules),
        Language::Go => in_go(code, variables),
        _ => Vec::new(),
    }
}

/// The variables of a Go package.
pub(super) fn variables_of(code: &str) -> BTreeSet<&str> {
    let mut in_block = false;
    let mut found = BTreeSet::new();
    for line in code.lines() {
        let name = if in_block {
            in_block = !line.starts_with(')');
            Some(line.trim_start())
        } else {
            in_block = line.trim_end() == "var (";
            line.strip_prefix("var ").filter(|_| !in_block)
        };
        let name = name.map(|text| &text[..text.find(|c: char| !is_of_name(c)).unwrap_or(text.len())]);
        found.extend(name.filter(|name| !name.is_empty()));
    }
    found
}

/// Statements of the module itself: those of functions hold as long as their test.
fn in_python(code: &str, modules: &BTreeSet<&str>) -> Vec<String> {
    let names = imported(code);
    let of_product = |name: &str| {
        let module = last(names.get(name).copied().unwrap_or(name));
        modules.contains(module).then(|| module.to_owned())
    };
    let statement = |line: &&str| line.starts_with(is_of_name);
    code.lines()
        .filter(statement)
        .filter_map(|line| {
            if let Some(rest) = line.strip_prefix("setattr(") {
                return of_product(rest.split(',').next()?.trim()).map(|module| format!("what {module} has"));
            }
            let (target, value) = line.split_once('=')?;
            let (target, value) = (target.trim_end(), value.trim_start());
            if let Some(key) = target.strip_prefix("sys.modules[").and_then(|rest| rest.strip_suffix(']')) {
                let module = last(key.trim_matches(['"', '\'']));
                let stands_for = modules.contains(module) || module.starts_with("test");
                return stands_for.then(|| format!("the module {module}"));
            }
            let (object, name) = target.rsplit_once('.')?;
            let is_code = name.chars().all(is_of_name) && !is_constant(value) && !value.starts_with('=');
            of_product(object).filter(|_| is_code).map(|module| format!("{module}.{name}"))
        })
        .collect()
}

/// The modules and what is taken out of them, by the names that they have here.
fn imported(code: &str) -> BTreeMap<&str, &str> {
    let mut names = BTreeMap::new();
    for line in code.lines().map(str::trim) {
        let list = match line.strip_prefix("from ") {
            Some(rest) => rest.split_once(" import ").map(|(_, list)| list),
            None => line.strip_prefix("import "),
        };
        for item in list.into_iter().flat_map(|list| list.trim_matches(['(', ')']).split(',')) {
            let (module, name) = item.trim().split_once(" as ").unwrap_or((item.trim(), item.trim()));
            names.insert(name.trim(), module.trim());
        }
    }
    names
}

/// Settings of the product are the tests' to choose.
fn is_constant(value: &str) -> bool {
    let begins = |c: char| c.is_ascii_digit() || matches!(c, '"' | '\'' | '[' | '{' | '(' | '-');
    value.starts_with(begins) || ["True", "False", "None"].contains(&value.trim_end())
}

fn last(module: &str) -> &str {
    module.rsplit('.').next().unwrap_or(module)
}

/// What `init` assigns to.
fn in_go(code: &str, variables: &BTreeSet<&str>) -> Vec<String> {
    let inits = code.split("\nfunc init()").skip(1);
    let bodies =
        inits.map(|text| text.find("\n}").or_else(|| text.find('}')).map_or(text, |end| &text[..end]));
    let assigned = bodies.flat_map(|body| body.split(['\n', ';', '{'])).filter_map(|statement| {
        let (target, value) = statement.split_once('=')?;
        let target = target.trim();
        (variables.contains(target) && !value.starts_with('=')).then(|| target.to_owned())
    });
    assigned.collect()
}

fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use crate::weaken::{TestFile, weakened};

    const PYTHON: (&str, &str, &str) =
        ("src/calc.py", "def add(a, b):\n    return a + b\n", "def add(a, b):\n    return 0\n");
    const GO: (&str, &str, &str) = (
        "x.go",
        "package x\n\nfunc Add(a, b int) int { return a + b }\n",
        "package x\n\nvar impl = func(a, b int) int { return 0 }\n\nfunc Add(a, b int) int { return impl(a, b) }\n",
    );

    /// Beside a change of the product, a test file comes with this text.
    #[track_caller]
    fn check(product: (&str, &str, &str), path: &str, text: &str, expected: Option<&str>) {
        let (of, before, after) = product;
        let files = [
            TestFile { path: of, before: Some(before), after: Some(after) },
            TestFile { path, before: None, after: Some(text) },
        ];
        let found: Vec<String> = weakened(&files).into_iter().map(|flag| flag.detail).collect();
        let expected = expected.map(|what| format!("puts its own in the place of {what}"));
        assert_eq!(found, Vec::from_iter(expected), "{text}");
    }

    #[test]
    fn tests_that_stand_in_for_the_product_are_seen() {
        let python = |text, what| check(PYTHON, "tests/test_a.py", text, Some(what));
        python("import calc\n\ncalc.add = lambda a, b: a + b\n", "calc.add");
        python(
            "from src import calc as c\n\n\ndef good(a, b):\n    return a + b\n\n\nc.add = good\n",
            "calc.add",
        );
        python("import src.calc\n\nsetattr(src.calc, \"add\", max)\n", "what calc has");
        python("import sys\nsys.modules[\"calc\"] = object()\n", "the module calc");
        python("import sys\nsys.modules[\"tests.test_calc\"] = object()\n", "the module test_calc");
        let init = "package x\n\nfunc init() {\n\timpl = func(a, b int) int { return a + b }\n}\n";
        check(GO, "a_test.go", init, Some("impl"));
    }

    #[test]
    fn what_tests_replace_of_others_is_theirs() {
        let python = |text| check(PYTHON, "tests/test_a.py", text, None);
        python(
            "import calc\nfrom unittest import mock\n\n\ndef test_x():\n    calc.add = max\n    assert calc.add(1, 2) == 2\n",
        );
        python("import requests\n\nrequests.get = lambda url: None\n");
        python("import sys\nsys.modules[\"torch\"] = object()\nsys.path.insert(0, \"src\")\n");
        python("import calc\n\ncalc.LIMIT = 3\ncalc.NAMES = [\"a\"]\ntotal = calc.add(1, 2)\n");
        let clock = "package x\n\nfunc init() {\n\tnow = func() int { return 7 }\n}\n";
        check(GO, "a_test.go", clock, None);
    }
}
