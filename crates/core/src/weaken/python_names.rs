//! Names that a Python file gives to what it imports from pytest and unittest, such as
//! `from pytest import skip as later`: they are written with the usual names again, so that they are seen
//! as what they are.

use std::collections::HashMap;

/// What is looked for by its full name, and the modules it comes from.
const MODULES: [&str; 3] = ["pytest", "unittest", "_pytest.outcomes"];

/// The code with the full names in place of a file's own.
pub(super) fn with_full_names(code: &str) -> String {
    with_names_of(code, |module| MODULES.contains(&module))
}

/// As that; of product, the parts of these modules matter too: `import unittest.runner as r`.
pub(super) fn with_full_names_in_product(code: &str) -> String {
    with_names_of(code, |module| {
        let top = module.split('.').next().unwrap_or_default();
        matches!(top, "unittest" | "doctest" | "pytest" | "_pytest" | "mock")
    })
}

fn with_names_of(code: &str, is_known: impl Fn(&str) -> bool) -> String {
    let meanings = meanings(code, is_known);
    if meanings.is_empty() {
        return code.to_owned();
    }
    let mut out = String::with_capacity(code.len());
    for line in code.split_inclusive('\n') {
        if is_import(line) { out.push_str(line) } else { rewrite(line, &meanings, &mut out) }
    }
    out
}

fn is_import(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("import ") || line.starts_with("from ")
}

fn meanings(code: &str, is_known: impl Fn(&str) -> bool) -> HashMap<String, String> {
    let mut found = HashMap::new();
    if !["pytest", "unittest", "doctest", "mock"].iter().any(|module| code.contains(module)) {
        return found;
    }
    let joined = code.replace("(\n", "(").replace(",\n", ", ");
    for line in joined.lines().map(str::trim) {
        if let Some((module, names)) = line.strip_prefix("from ").and_then(|rest| rest.split_once(" import "))
        {
            if is_known(module.trim()) {
                let module = if module.contains("pytest") { "pytest" } else { module.trim() };
                note(&mut found, names, |name| format!("{module}.{name}"));
            }
        } else if let Some(names) = line.strip_prefix("import ") {
            let known = names.split(',').filter(|part| is_known(first_word(part)));
            known.for_each(|part| note(&mut found, part, str::to_owned));
        } else if let Some((name, value)) = line.split_once(" = ") {
            // `later = pytest.mark.skip`
            let value = value.trim();
            let of_module = value.starts_with("pytest.") || value.starts_with("unittest.");
            if of_module && !name.contains(['.', '[', ' ']) && name != "pytestmark" {
                found.insert(name.to_owned(), value.to_owned());
            }
        }
    }
    found.retain(|name, meaning| !name.is_empty() && name != meaning);
    found
}

fn first_word(text: &str) -> &str {
    text.split_whitespace().next().unwrap_or_default()
}

/// Takes in `a, b as c`.
fn note(found: &mut HashMap<String, String>, names: &str, full: impl Fn(&str) -> String) {
    for part in names.trim_matches(['(', ')', ' ']).split(',') {
        let part = part.trim().trim_matches(['(', ')']).trim();
        let (name, own) = part.split_once(" as ").unwrap_or((part, part));
        found.insert(own.trim().to_owned(), full(name.trim()));
    }
}

fn rewrite(line: &str, meanings: &HashMap<String, String>, out: &mut String) {
    let mut rest = line;
    let mut before = ' ';
    while let Some(c) = rest.chars().next() {
        let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
        let (name, length) = if end == 0 { ("", c.len_utf8()) } else { (&rest[..end], end) };
        let defines = rest[length..].starts_with(" = ") || before == '.';
        match meanings.get(name).filter(|_| !defines) {
            Some(full) => out.push_str(full),
            None => out.push_str(&rest[..length]),
        }
        before = rest[..length].chars().next_back().unwrap_or(' ');
        rest = &rest[length..];
    }
}

#[cfg(test)]
mod tests {
    use super::with_full_names;

    #[track_caller]
    fn check(code: &str, expected: &str) {
        let found = with_full_names(code);
        assert_eq!(found.lines().last().unwrap_or_default(), expected, "{code}");
    }

    #[test]
    fn own_names_are_the_full_ones() {
        check("from pytest import skip\nskip('x')", "pytest.skip('x')");
        check("from pytest import skip as later, raises\nlater('x')", "pytest.skip('x')");
        check("from pytest import (\n    mark,\n    raises,\n)\n@mark.skip", "@pytest.mark.skip");
        check("import pytest as pt\n@pt.mark.xfail", "@pytest.mark.xfail");
        check("from unittest import TestCase, skip\n@skip('x')", "@unittest.skip('x')");
        check("import unittest as u\n@u.skipIf(True, '')", "@unittest.skipIf(True, '')");
        check("import pytest\nlater = pytest.mark.skip\n@later", "@pytest.mark.skip");
    }

    #[test]
    fn other_names_stay() {
        for code in ["skip('x')", "from list import skip\nskip('x')", "import pytest\nit.skip('x')"] {
            check(code, code.lines().last().unwrap());
        }
    }
}
