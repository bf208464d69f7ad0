//! Names that a JavaScript file gives to what it imports, such as `import { test as spec } from 'node:test'`:
//! calls are written with the usual names again, so that they are counted as what they are.

use std::collections::HashMap;

/// What defines tests, or asserts something, under its own name wherever it comes from.
const KNOWN: [&str; 9] =
    ["it", "test", "specify", "describe", "suite", "context", "expect", "assert", "should"];

/// What a test function can be followed by and still define a test.
const VARIANTS: [&str; 12] = [
    "skip",
    "only",
    "todo",
    "each",
    "concurrent",
    "sequential",
    "serial",
    "failing",
    "fails",
    "runIf",
    "skipIf",
    "fixme",
];

/// Modules that are test functions themselves, or hold them.
const FRAMEWORKS: [&str; 13] = [
    "node:test",
    "test",
    "ava",
    "tape",
    "tap",
    "uvu",
    "zora",
    "vitest",
    "mocha",
    "bun:test",
    "@jest/globals",
    "@playwright/test",
    "@japa/runner",
];

/// Modules that are assertions.
const ASSERTIONS: [&str; 7] =
    ["node:assert", "node:assert/strict", "assert", "assert/strict", "chai", "uvu/assert", "power-assert"];

/// What a name stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Meaning {
    /// One thing under another name.
    Same(String),
    /// A whole module of a test framework, which may be called itself.
    Framework,
}

/// The code with the usual names in place of a file's own.
pub(super) fn with_usual_names(code: &str) -> String {
    let meanings = meanings(code);
    if meanings.is_empty() { code.to_owned() } else { rewritten(code, &meanings) }
}

fn meanings(code: &str) -> HashMap<String, Meaning> {
    let mut found = HashMap::new();
    if !["import", "require(", "= test", "= it"].iter().any(|mark| code.contains(mark)) {
        return found;
    }
    let flat = code.split_whitespace().collect::<Vec<_>>().join(" ");
    for statement in flat.split("import ").skip(1) {
        let Some((clause, module)) = up_to_string(statement) else { continue };
        if let Some(clause) = clause.trim_end().strip_suffix("from") {
            note(&mut found, clause.trim(), module, "");
        }
    }
    for call in ["require(", "import("] {
        let pieces: Vec<&str> = flat.split(call).collect();
        for (before, statement) in pieces.iter().zip(pieces.iter().skip(1)) {
            let Some((_, module)) = up_to_string(statement) else { continue };
            let behind = statement.split_once(')').map_or("", |(_, behind)| behind);
            let member = behind.strip_prefix('.').map_or("", identifier);
            if let Some(pattern) = declared(before) {
                note(&mut found, pattern, module, member);
            }
        }
    }
    for declaration in ["const ", "let ", "var "] {
        for (at, _) in flat.match_indices(declaration) {
            let (name, rest) = split_identifier(&flat[at + declaration.len()..]);
            let value = rest.strip_prefix(" = ").map_or("", identifier);
            if KNOWN.contains(&value) && !rest[" = ".len() + value.len()..].starts_with(['.', '(', '`']) {
                found.insert(name.to_owned(), Meaning::Same(value.to_owned()));
            }
        }
    }
    found.retain(|name, meaning| !name.is_empty() && *meaning != Meaning::Same(name.clone()));
    found
}

/// The text before the next string, and that string.
fn up_to_string(text: &str) -> Option<(&str, &str)> {
    let at = text.find(['\'', '"', '`'])?;
    let quote = char::from(text.as_bytes()[at]);
    let body = &text[at + 1..];
    Some((&text[..at], &body[..body.find(quote)?]))
}

/// What is declared by the statement whose value comes next.
fn declared(before: &str) -> Option<&str> {
    let before = before.trim_end();
    let before = before.strip_suffix("await").unwrap_or(before).trim_end().strip_suffix('=')?;
    let starts = ["const ", "let ", "var "].iter().filter_map(|word| Some(before.rfind(word)? + word.len()));
    Some(before[starts.max()?..].trim())
}

/// Takes in what a clause such as `name, { test as spec }` names. `member`: only this part of the module.
fn note(found: &mut HashMap<String, Meaning>, clause: &str, module: &str, member: &str) {
    let of_member = |name: &str| -> Option<Meaning> {
        if ASSERTIONS.contains(&module) && !KNOWN.contains(&name) && name != "default" {
            return Some(Meaning::Same(format!("assert.{name}")));
        }
        let is_whole = name == "default" && FRAMEWORKS.contains(&module);
        is_whole
            .then_some(Meaning::Framework)
            .or(KNOWN.contains(&name).then(|| Meaning::Same(name.to_owned())))
    };
    let whole = || match () {
        () if FRAMEWORKS.contains(&module) => Some(Meaning::Framework),
        () if ASSERTIONS.contains(&module) => Some(Meaning::Same("assert".to_owned())),
        () => None,
    };
    let (outside, inside) = match clause.split_once('{') {
        Some((outside, inside)) => (outside, inside.split('}').next().unwrap_or_default()),
        None => (clause, ""),
    };
    let name = outside.trim().trim_end_matches(',').trim();
    let name = identifier(name.strip_prefix("* as ").unwrap_or(name));
    let meaning = if member.is_empty() { whole() } else { of_member(member) };
    found.extend(meaning.map(|meaning| (name.to_owned(), meaning)));
    for part in inside.split(',') {
        let part = part.split('=').next().unwrap_or_default().trim();
        let (imported, own) = part.split_once(" as ").or(part.split_once(':')).unwrap_or((part, part));
        let meaning = of_member(imported.trim());
        found.extend(meaning.map(|meaning| (own.trim().to_owned(), meaning)));
    }
}

/// Calls under a file's own names, written with the usual ones. Strings stay as they are.
fn rewritten(code: &str, meanings: &HashMap<String, Meaning>) -> String {
    let mut out = String::with_capacity(code.len());
    let mut rest = code;
    let mut before = ' ';
    while let Some(c) = rest.chars().next() {
        let (name, behind) = split_identifier(rest);
        let taken = if matches!(c, '\'' | '"' | '`') {
            let length = string_length(rest, c);
            out.push_str(&rest[..length]);
            length
        } else if name.is_empty() {
            out.push(c);
            c.len_utf8()
        } else {
            let is_free = before != '.' && behind.starts_with(['(', '.', '`']);
            match meanings.get(name).filter(|_| is_free) {
                Some(Meaning::Same(usual)) => out.push_str(usual),
                Some(Meaning::Framework) if behind.starts_with('.') => {
                    let member = identifier(&behind[1..]);
                    match member {
                        _ if VARIANTS.contains(&member) => out.push_str("test"),
                        // `module.test(` is `test(`.
                        _ if KNOWN.contains(&member) => {
                            rest = &behind[1..];
                            before = ' ';
                            continue;
                        }
                        _ => out.push_str(name),
                    }
                }
                Some(Meaning::Framework) => out.push_str("test"),
                None => out.push_str(name),
            }
            name.len()
        };
        before = rest[..taken].chars().next_back().unwrap_or(' ');
        rest = &rest[taken..];
    }
    out
}

fn string_length(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            // A quote that opens no string must not hide the rest of the file.
            '\n' if quote != '`' => return at,
            _ if c == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

fn identifier(text: &str) -> &str {
    split_identifier(text).0
}

fn split_identifier(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '$'))).unwrap_or(text.len());
    text.split_at(end)
}

#[cfg(test)]
mod tests {
    use super::with_usual_names;

    #[track_caller]
    fn check(code: &str, expected: &str) {
        let found = with_usual_names(code);
        assert_eq!(found.lines().last().unwrap_or_default(), expected, "{code}");
    }

    #[test]
    fn own_names_are_the_usual_ones() {
        check("const t = require('node:test')\nt('x', () => {})", "test('x', () => {})");
        check("const t = require('node:test')\nt.skip('x', () => {})", "test.skip('x', () => {})");
        check("const t = require('node:test')\nt.it('x', () => {})", "it('x', () => {})");
        check("const spec = require('node:test').test\nspec('x')", "test('x')");
        check("import { test as spec } from 'node:test';\nspec.only('x')", "test.only('x')");
        check("import {\n  describe,\n  it as check,\n} from \"vitest\";\ncheck('x')", "it('x')");
        check("import base, { expect as e } from '@playwright/test'\ne(f()).toBe(1)", "expect(f()).toBe(1)");
        check("import * as v from 'vitest'\nv.it.each([1])('x')", "it.each([1])('x')");
        check("const { test: spec, after } = await import('node:test')\nspec('x')", "test('x')");
        check("import { test } from 'node:test'\nconst spec = test;\nspec('x')", "test('x')");
        check("import a from 'node:assert/strict'\na.equal(f(), 1)", "assert.equal(f(), 1)");
        check("import { equal as eq } from 'node:assert'\neq(f(), 1)", "assert.equal(f(), 1)");
    }

    #[test]
    fn other_names_stay() {
        for code in [
            "const t = require('./table')\nt('x')",
            "const t = require('node:test')\nboot('t(x)', t.name, a.t('x'))",
            "import test from 'ava'\nnot.spec('x')",
            "const x = test('a')\nx('b')",
            "// nothing at all\nt('x')",
        ] {
            check(code, code.lines().last().unwrap());
        }
    }
}
