//! Values that are equal to whatever they are compared with.
//!
//! There are honest ones: a marker without fields, a wildcard of patterns. What counts is one that tests can
//! come upon: where it compares with values of other types, where its type compared honestly before, and in
//! Python where a function of the change uses it.

use super::body;
use super::language::Language;
use super::product::compact;

/// The files of the change in one language, without comments and strings.
pub(super) struct Sides<'a> {
    pub(super) before: &'a [&'a str],
    pub(super) after: &'a [&'a str],
}

/// What of this file is equal to everything, and was not before.
pub(super) fn newly_equal_to_everything(language: Language, plain: &str, sides: &Sides<'_>) -> Vec<String> {
    let wild: fn(&str) -> Vec<Wild> = match language {
        Language::Python => in_python,
        Language::Rust => in_rust,
        Language::JavaScript
        | Language::Go
        | Language::Annotated
        | Language::Swift
        | Language::Ruby
        | Language::Php
        | Language::Elixir
        | Language::Cpp
        | Language::Dart
        | Language::Shell => return Vec::new(),
    };
    let found = wild(plain);
    if found.is_empty() {
        return Vec::new();
    }
    let former: Vec<Wild> = sides.before.iter().flat_map(|text| wild(text)).collect();
    let counts = |one: &Wild| {
        let was_wild = former.iter().any(|other| other == one);
        let was_there = sides.before.iter().any(|text| has_word(text, &one.name));
        match language {
            // Who used it before is not looked into; who begins to use it is.
            Language::Python if !one.name.is_empty() && (was_wild || !was_there) => {
                !is_used(&one.name, sides.before) && is_used(&one.name, sides.after)
            }
            _ => !was_wild && (one.is_of_others || was_there),
        }
    };
    found.iter().filter(|one| counts(one)).map(|one| one.words()).collect()
}

/// A type that is equal to everything.
#[derive(PartialEq, Eq)]
struct Wild {
    name: String,
    /// It compares with values of other types, or belongs to nothing that we know.
    is_of_others: bool,
    differs: bool,
}

impl Wild {
    fn words(&self) -> String {
        if self.differs { "differs from nothing" } else { "is equal to everything" }.to_owned()
    }
}

fn has_word(text: &str, word: &str) -> bool {
    let joined = |c: char| c.is_alphanumeric() || c == '_';
    let is_whole = |(at, _): (usize, &str)| {
        !text[..at].ends_with(joined) && !text[at + word.len()..].starts_with(joined)
    };
    !word.is_empty() && text.match_indices(word).any(is_whole)
}

fn in_python(plain: &str) -> Vec<Wild> {
    let lines: Vec<&str> = plain.lines().collect();
    let mut found = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let text = compact(line);
        let lambda = text.strip_prefix("__eq__=lambda").and_then(|rest| rest.split_once(':'));
        let is_equal = text.starts_with("def__eq__(") && ignores_other(&lines, index, "False")
            || lambda.is_some_and(|(_, value)| value == "True");
        let differs = text.starts_with("def__ne__(") && ignores_other(&lines, index, "True");
        if is_equal || differs {
            let name = class_around(&lines, index).unwrap_or_default();
            found.push(Wild { is_of_others: name.is_empty(), name, differs });
        }
    }
    found
}

/// Does this method of Python's say the same whatever it is compared with? `harmless`: what it may say so.
fn ignores_other(lines: &[&str], index: usize, harmless: &str) -> bool {
    let head = compact(lines[index]);
    let parameters = head.split_once('(').map_or("", |(_, rest)| rest);
    let other = parameters.split([',', ')']).nth(1).unwrap_or_default();
    let other = other.split(':').next().unwrap_or_default();
    let depth = body::indent(lines[index]);
    let inside = lines[index + 1..].iter().filter(|line| !line.trim().is_empty());
    let inside = inside.take_while(|line| body::indent(line) > depth).map(|line| line.trim());
    let mut inside: Vec<&str> =
        inside.filter(|line| !line.starts_with("_ = ") && !line.starts_with("del ")).collect();
    inside.extend(
        lines[index].rsplit_once(':').map(|(_, value)| value.trim()).filter(|value| !value.is_empty()),
    );
    let [single] = inside.as_slice() else { return false };
    let Some(value) = single.strip_prefix("return ").map(str::trim) else { return false };
    let is_constant = !has_word(value, other) && !matches!(value, "NotImplemented" | "None");
    (is_constant && value != harmless) || is_a_plain_value(&compact(value), other)
}

/// `isinstance(other, int)`, and nothing else. A class that asks for its own kind compares markers.
fn is_a_plain_value(value: &str, other: &str) -> bool {
    const PLAIN: [&str; 10] =
        ["int", "float", "str", "bytes", "list", "dict", "tuple", "set", "object", "complex"];
    let kinds = value.strip_prefix("isinstance(").and_then(|rest| rest.strip_prefix(other));
    let kinds = kinds.and_then(|rest| rest.strip_prefix(',')).and_then(|rest| rest.strip_suffix(')'));
    let is_single = |kinds: &&str| !kinds.contains("and") && kinds.matches(')').count() <= 1;
    kinds.filter(is_single).is_some_and(|kinds| PLAIN.iter().any(|kind| has_word(kinds, kind)))
}

fn class_around(lines: &[&str], index: usize) -> Option<String> {
    let depth = body::indent(lines[index]);
    let above =
        lines[..index].iter().rev().find(|line| !line.trim().is_empty() && body::indent(line) < depth);
    above.and_then(|line| class_name(line))
}

fn class_name(line: &str) -> Option<String> {
    let rest = line.trim_start().strip_prefix("class ")?;
    let name: String = rest.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    (!name.is_empty()).then_some(name)
}

/// Does something other than the class itself use it, or a value or a class made of it? A value for a whole
/// module, and code that asks whether it is given one, do not count.
fn is_used(class: &str, texts: &[&str]) -> bool {
    let mut names = vec![class.to_owned()];
    let mut at = 0;
    while let Some(name) = names.get(at).filter(|_| at < MOST_NAMES).cloned() {
        at += 1;
        for line in texts.iter().flat_map(|text| text.lines()) {
            let made = line.split_once('=').filter(|(_, value)| is_made_of(value, &name));
            let derived = class_name(line).filter(|own| *own != name && has_word(line, &name));
            let own = made.map(|(own, _)| own.trim().to_owned()).filter(|_| body::indent(line) == 0);
            names.extend(own.into_iter().chain(derived).filter(|own| !own.contains([' ', '.', '['])));
        }
    }
    names.dedup();
    texts.iter().any(|text| uses(text, &names))
}

/// More names than a wildcard has; the bound keeps hostile input cheap.
const MOST_NAMES: usize = 8;

/// `Any()`
fn is_made_of(value: &str, class: &str) -> bool {
    compact(value).strip_prefix(class).is_some_and(|rest| rest.starts_with('(') && rest.ends_with(')'))
}

fn uses(text: &str, names: &[String]) -> bool {
    let mut inside: Option<usize> = None;
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let depth = body::indent(line);
        if inside.is_some_and(|of| depth <= of) {
            inside = None;
        }
        if let Some(class) = class_name(line) {
            inside = inside.or(names.contains(&class).then_some(depth));
            continue;
        }
        let is_import = line.trim_start().starts_with("import ") || line.trim_start().starts_with("from ");
        if inside.is_some() || is_import || !names.iter().any(|name| has_word(line, name)) {
            continue;
        }
        let is_value = depth == 0
            && line.split_once('=').is_some_and(|(own, value)| {
                let is_name = own.trim().chars().all(|c| c.is_alphanumeric() || c == '_');
                is_name && names.iter().any(|name| is_made_of(value, name))
            });
        let asks = names.iter().all(|name| {
            !has_word(line, name)
                || line.contains("isinstance(") && !line.contains(&format!("{name}("))
                || [" is ", " == ", " is not ", " != "]
                    .iter()
                    .any(|sign| line.contains(&format!("{sign}{name}")))
        });
        if !is_value && !asks {
            return true;
        }
    }
    false
}

fn in_rust(plain: &str) -> Vec<Wild> {
    let text = plain.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut found = Vec::new();
    for (at, _) in text.match_indices("PartialEq") {
        let start = text[..at].rfind(['}', ';', ']']).map_or(0, |from| from + 1);
        let is_impl = has_word(&text[start..at], "impl");
        let Some((head, inside)) = text[at..].split_once('{').filter(|_| is_impl) else { continue };
        let head = compact(head.strip_prefix("PartialEq").unwrap_or(head));
        let (with, of) = compared_types(&head);
        let Some(own) = of else { continue };
        if ignores_its_argument(inside) {
            let name: String = own.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            let is_of_others = with.is_some_and(|with| with != "Self" && with != own);
            found.push(Wild { name, is_of_others, differs: false });
        }
    }
    found
}

/// Of `<T>forX<U>whereT:Copy`: `T` and `X<U>`.
fn compared_types(head: &str) -> (Option<&str>, Option<&str>) {
    let mut depth = 0_usize;
    let end = head.char_indices().find(|(_, c)| {
        match c {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0
    });
    let (with, rest) = match (head.starts_with('<'), end) {
        (true, Some((end, _))) => (head.get(1..end), &head[end + 1..]),
        (true, None) | (false, _) => (None, head),
    };
    let own = rest.strip_prefix("for").map(|own| own.split("where").next().unwrap_or(own));
    (with, own.map(|own| own.rsplit("::").next().unwrap_or(own)))
}

/// Does the `eq` that begins here never look at what it compares with, and say yes?
fn ignores_its_argument(inside: &str) -> bool {
    let mut inside = inside.trim_start();
    while let Some((_, rest)) = inside.strip_prefix("#[").and_then(|rest| rest.split_once(']')) {
        inside = rest.trim_start();
    }
    let Some((parameters, body)) = inside.strip_prefix("fn eq(").and_then(|rest| rest.split_once('{')) else {
        return false;
    };
    let other =
        parameters.split(',').nth(1).and_then(|part| part.split(':').next()).unwrap_or_default().trim();
    let mut depth = 1_usize;
    let end = body.find(|c| {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        depth == 0
    });
    let body = body[..end.unwrap_or(body.len())].replace(&format!("let _ = {other};"), "");
    let body = body.trim();
    let says_no = matches!(body, "false" | "return false;");
    let fails =
        ["unimplemented!", "todo!", "panic!", "unreachable!"].iter().any(|name| body.starts_with(name));
    (other == "_" || !has_word(body, other)) && !says_no && !fails
}
