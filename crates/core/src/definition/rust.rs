//! Tests inside the sources of a Rust product: items under `#[cfg(test)]`.
//!
//! Not a parser: items on the top level of a file are told apart by attributes and balanced brackets,
//! with regard to strings and comments. A file that cannot be taken apart so is left as it is.

use super::command::join;
use super::parent_of;

/// Does the later text have other test items than there were? Tests in a file that had none are new tests.
pub(super) fn tests_differ(before: &str, after: &str) -> bool {
    let (Some(before), Some(after)) = (items(before), items(after)) else { return false };
    let plain = |items: &[Item<'_>]| -> Vec<String> {
        let tests = items.iter().filter(|item| item.is_test);
        tests.map(|item| item.text.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
    };
    let former = plain(&before);
    !former.is_empty() && former != plain(&after)
}

/// The later text with the former test items in place of its own.
pub(super) fn with_former_tests(before: &str, after: &str) -> Option<String> {
    let former: Vec<Item<'_>> = items(before)?.into_iter().filter(|item| item.is_test).collect();
    let later = items(after)?;
    let mut text = String::new();
    let mut at = 0;
    for item in &later {
        // An item of the same name would stand beside the former one.
        let takes_its_place = item.module.is_some() && former.iter().any(|other| other.module == item.module);
        if item.is_test || takes_its_place {
            text.push_str(&after[at..item.start]);
            at = item.start + item.text.len();
        }
    }
    text.push_str(&after[at..]);
    for item in former {
        text.push('\n');
        text.push_str(item.text);
        text.push('\n');
    }
    Some(text)
}

/// Is this file a module that another one declares under `#[cfg(test)]`?
pub(super) fn is_test_module(path: &str, read: &dyn Fn(&str) -> Option<String>) -> bool {
    if !path.ends_with(".rs") {
        return false;
    }
    let folder = parent_of(path);
    let above = parent_of(folder);
    let mut declaring: Vec<String> = Vec::new();
    for folder in [folder, above] {
        declaring.extend(["lib.rs", "main.rs", "mod.rs"].map(|name| join(folder, name)));
        declaring.extend((!folder.is_empty()).then(|| format!("{folder}.rs")));
    }
    declaring.iter().filter(|other| *other != path).any(|other| {
        let Some(text) = read(other) else { return false };
        let found = items(&text).unwrap_or_default();
        found.iter().filter(|item| item.is_test).any(|item| item.files(other).iter().any(|file| file == path))
    })
}

/// An item on the top level, with its attributes.
struct Item<'a> {
    start: usize,
    text: &'a str,
    /// It is there for tests only, or is a test itself.
    is_test: bool,
    /// The name, if it is a module.
    module: Option<&'a str>,
    /// The value of `#[path = "…"]`.
    path: Option<&'a str>,
}

impl Item<'_> {
    /// The files that a `mod name;` of this file may stand for.
    fn files(&self, of: &str) -> Vec<String> {
        let Some(module) = self.module.filter(|_| self.text.ends_with(';')) else { return Vec::new() };
        let folder = parent_of(of);
        if let Some(path) = self.path {
            return vec![join(folder, path)];
        }
        let name = of.rsplit('/').next().unwrap_or(of).trim_end_matches(".rs");
        let folder =
            if matches!(name, "lib" | "main" | "mod") { folder.to_owned() } else { join(folder, name) };
        vec![join(&folder, &format!("{module}.rs")), join(&folder, &format!("{module}/mod.rs"))]
    }
}

/// The items on the top level of a file; nothing where brackets do not match.
fn items(text: &str) -> Option<Vec<Item<'_>>> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < text.len() {
        if let Some(end) = skip_unread(text, at) {
            at = end;
        } else if text[at..].starts_with(char::is_whitespace) {
            at += char_len(text, at);
        } else {
            let item = item(text, at)?;
            at += item.text.len();
            found.push(item);
        }
    }
    Some(found)
}

fn item(text: &str, start: usize) -> Option<Item<'_>> {
    let mut item = Item { start, text: "", is_test: false, module: None, path: None };
    let mut at = start;
    // Attributes; an inner one stands for itself.
    while text[at..].starts_with('#') {
        let open = at + text[at..].find('[')?;
        let end = closing(text, open)?;
        if text[at..open].contains('!') {
            item.text = &text[start..end];
            return Some(item);
        }
        let attribute = text[open + 1..end - 1].trim();
        item.is_test |= is_test_attribute(attribute);
        item.path = path_of(attribute).or(item.path);
        at = end;
        while let Some(next) = skip_unread(text, at)
            .or_else(|| text[at..].starts_with(char::is_whitespace).then(|| at + char_len(text, at)))
        {
            at = next;
        }
    }
    let words = words_without_visibility(&text[at..]);
    item.module = module_name(words);
    let ends_with_semicolon =
        ["use", "const", "static", "type", "extern crate"].iter().any(|word| starts_with_word(words, word))
            && !["const fn", "const unsafe", "const async"].iter().any(|word| starts_with_word(words, word));
    while at < text.len() {
        if let Some(end) = skip_unread(text, at) {
            at = end;
            continue;
        }
        match text.as_bytes()[at] {
            b';' => {
                item.text = &text[start..=at];
                return Some(item);
            }
            b'{' if !ends_with_semicolon => {
                item.text = &text[start..closing(text, at)?];
                return Some(item);
            }
            b'{' | b'(' | b'[' => at = closing(text, at)?,
            b'}' | b')' | b']' => return None,
            _ => at += char_len(text, at),
        }
    }
    None
}

fn words_without_visibility(text: &str) -> &str {
    let Some(rest) = text.strip_prefix("pub") else { return text };
    let rest = rest.trim_start();
    match rest.strip_prefix('(').and_then(|inner| inner.split_once(')')) {
        Some((_, rest)) => rest.trim_start(),
        None => rest,
    }
}

fn starts_with_word(text: &str, word: &str) -> bool {
    text.strip_prefix(word).is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
}

fn module_name(words: &str) -> Option<&str> {
    let rest = words.strip_prefix("mod").filter(|_| starts_with_word(words, "mod"))?.trim_start();
    let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
    Some(&rest[..end])
}

/// `cfg(test)`, `cfg(all(test, …))`, `test`, `tokio::test`; not `cfg(not(test))`.
fn is_test_attribute(attribute: &str) -> bool {
    let plain: String = attribute.split_whitespace().collect();
    let name = plain.split(['(', '=']).next().unwrap_or_default();
    if name == "cfg" {
        let without_strings: String = plain.split('"').step_by(2).collect();
        let words = without_strings.replace("not(test)", "");
        return words.split(|c: char| !(c.is_alphanumeric() || c == '_')).any(|word| word == "test");
    }
    name == "test" || name.ends_with("::test")
}

fn path_of(attribute: &str) -> Option<&str> {
    let value = attribute.strip_prefix("path")?.trim_start().strip_prefix('=')?;
    value.trim().strip_prefix('"')?.strip_suffix('"')
}

/// Past the bracket that closes the one at `open`.
fn closing(text: &str, open: usize) -> Option<usize> {
    let mut expected: Vec<u8> = Vec::new();
    let mut at = open;
    while at < text.len() {
        if let Some(end) = skip_unread(text, at) {
            at = end;
            continue;
        }
        match text.as_bytes()[at] {
            b'{' => expected.push(b'}'),
            b'(' => expected.push(b')'),
            b'[' => expected.push(b']'),
            close @ (b'}' | b')' | b']') if expected.pop() != Some(close) => return None,
            _ => {}
        }
        at += char_len(text, at);
        if expected.is_empty() {
            return Some(at);
        }
    }
    None
}

/// Past the comment, string or character that begins here.
fn skip_unread(text: &str, at: usize) -> Option<usize> {
    let rest = &text[at..];
    let after_word = text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
    let end_of = |from: usize, mark: &str| rest[from..].find(mark).map_or(text.len(), |end| at + from + end);
    if rest.starts_with("//") {
        return Some(end_of(2, "\n"));
    }
    if rest.starts_with("/*") {
        return Some(end_of_comment(text, at));
    }
    let raw = rest.strip_prefix('r').or_else(|| rest.strip_prefix("br")).filter(|_| !after_word);
    if let Some(raw) = raw {
        let marks = raw.len() - raw.trim_start_matches('#').len();
        if raw[marks..].starts_with('"') {
            let from = rest.len() - raw.len() + marks + 1;
            let mark = format!("\"{}", "#".repeat(marks));
            return Some((end_of(from, &mark) + mark.len()).min(text.len()));
        }
    }
    if rest.starts_with('"') {
        return Some(end_of_string(text, at));
    }
    let character = rest.strip_prefix('\'')?;
    if character.starts_with('\\') {
        let end = character.get(2..)?.find('\'')?;
        return Some(at + 1 + 2 + end + 1);
    }
    // A lifetime has no closing mark.
    let first = character.chars().next()?;
    character[first.len_utf8()..].starts_with('\'').then(|| at + 2 + first.len_utf8())
}

fn end_of_comment(text: &str, start: usize) -> usize {
    let (mut depth, mut at) = (0_usize, start);
    while at < text.len() {
        if text[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if text[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
        } else {
            at += char_len(text, at);
        }
        if depth == 0 {
            break;
        }
    }
    at
}

fn end_of_string(text: &str, start: usize) -> usize {
    let mut at = start + 1;
    while at < text.len() {
        match text.as_bytes()[at] {
            b'"' => return at + 1,
            b'\\' => {
                at += 1;
                at += char_len(text, at);
            }
            _ => at += char_len(text, at),
        }
    }
    text.len()
}

/// How long the character is that begins here; at least one, so that whoever goes on gets on.
fn char_len(text: &str, at: usize) -> usize {
    text.get(at..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = r##"//! A crate's words: `#[cfg(test)]` { is not meant here.
#![allow(dead_code)]

use std::{fmt, io};

const OPEN: char = '{';
const TEXT: &str = "}} #[cfg(test)]";
const RAW: &str = r#"{ " "#;

pub fn add<'a>(a: &'a i32, b: i32) -> i32 { /* } /* } */ */ a + b }

#[cfg(not(test))]
fn product() {}

/// Its tests.
#[cfg(test)]
mod tests {
    #[test]
    fn small() { assert_eq!(super::add(&1, 2), 3, "}}"); }
}
"##;

    #[track_caller]
    fn differs(from: &str, to: &str) {
        let after = SOURCE.replace(from, to);
        assert_ne!(after, SOURCE);
        assert!(tests_differ(SOURCE, &after), "{to}");
        let put_back = with_former_tests(SOURCE, &after).unwrap();
        assert!(!tests_differ(SOURCE, &put_back), "{put_back}");
        assert_eq!(put_back.matches("mod tests").count(), 1, "{put_back}");
    }

    #[test]
    fn changed_tests_are_put_back() {
        differs("2), 3", "2), -1");
        differs("#[test]", "#[test] #[should_panic]");
        differs("assert_eq!(super", "return; assert_eq!(super");
        differs("\n#[cfg(test)]", "\n#[cfg(all(test, windows))]");
        differs("\n#[cfg(test)]", "\n#[cfg(any())]");
        differs("\n#[cfg(test)]", "\n");
        let gone = &SOURCE[..SOURCE.find("/// Its tests").unwrap()];
        assert!(tests_differ(SOURCE, gone));
        assert!(!tests_differ(SOURCE, &with_former_tests(SOURCE, gone).unwrap()));
    }

    #[test]
    fn modules_in_files_of_their_own() {
        let before = "mod a;\n#[cfg(test)]\nmod tests;\n";
        for after in ["mod a;\n", "mod a;\n#[cfg(test)]\n#[path = \"t2.rs\"]\nmod tests;\n"] {
            assert!(tests_differ(before, after));
            let put_back = with_former_tests(before, after).unwrap();
            assert!(put_back.contains("mod tests;") && !put_back.contains("t2.rs"), "{put_back}");
        }
        let read = |path: &str| match path {
            "src/lib.rs" => Some("mod a;\n#[cfg(test)]\n#[path = \"t2.rs\"]\nmod tests;\n".to_owned()),
            "src/a.rs" => Some("#[cfg(test)]\nmod cases;\nmod b;\n".to_owned()),
            _ => None,
        };
        for (path, expected) in
            [("src/t2.rs", true), ("src/a/cases.rs", true), ("src/a/b.rs", false), ("src/a.rs", false)]
        {
            assert_eq!(is_test_module(path, &read), expected, "{path}");
        }
    }

    #[test]
    fn product_beside_tests_does_not_matter() {
        for (from, to) in [("a + b", "b + a"), ("fn product() {}", "fn product() { let _ = '\\''; }")] {
            assert!(!tests_differ(SOURCE, &SOURCE.replace(from, to)), "{to}");
        }
        assert!(!tests_differ("fn a() {}\n", SOURCE), "new tests");
        assert!(!tests_differ(SOURCE, "fn broken( {"), "what cannot be taken apart is left");
        let both = SOURCE.replace("a + b", "b + a").replace("2), 3", "2), 4");
        assert!(with_former_tests(SOURCE, &both).unwrap().contains("b + a"));
    }
}
