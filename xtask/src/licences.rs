//! Licences and sources of everything we build from, against the list in `deny.toml`.
//!
//! cargo-deny does this and more, but takes many minutes to build on a small machine; it runs as well
//! where it is installed.

use std::fs;

use crate::metadata::Metadata;

pub(crate) fn check() -> Result<String, String> {
    let text = fs::read_to_string("deny.toml").map_err(|error| format!("deny.toml: {error}"))?;
    let allowed = allow_list(&text);
    let metadata = Metadata::read()?;
    let mut problems = Vec::new();
    for package in &metadata.packages {
        let (name, version) = (&package.name, &package.version);
        match &package.licence {
            Some(licence) if permitted(licence, &allowed) => {}
            Some(licence) => problems.push(format!("{name} {version}: licence `{licence}` is not allowed")),
            None => problems.push(format!("{name} {version}: names no licence")),
        }
        if let Some(source) = package.source.as_deref().filter(|source| !is_default_registry(source)) {
            problems.push(format!("{name} {version}: comes from {source}"));
        }
    }
    match problems.len() {
        0 => {
            let (all, binary) = (metadata.packages.len(), metadata.below("wiggum-cli").len());
            Ok(format!("{all} packages, {binary} of them below the binary"))
        }
        _ => Err(problems.join("\n")),
    }
}

fn is_default_registry(source: &str) -> bool {
    source.starts_with("registry+") && source.ends_with(concat!("crates", ".io-index"))
}

/// The strings of `allow = [ … ]` under `[licenses]`.
fn allow_list(text: &str) -> Vec<String> {
    let section = text.split_once("[licenses]").map_or("", |(_, rest)| rest);
    let list = section.split_once("allow = [").map_or("", |(_, rest)| rest);
    let list = list.split_once(']').map_or("", |(list, _)| list);
    list.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

/// Is there a way to satisfy the expression with allowed licences alone?
fn permitted(expression: &str, allowed: &[String]) -> bool {
    // The old way to write OR.
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let mut words = spaced.split_whitespace().peekable();
    let result = any(&mut words, allowed);
    result && words.next().is_none()
}

type Words<'a> = std::iter::Peekable<std::str::SplitWhitespace<'a>>;

fn any(words: &mut Words<'_>, allowed: &[String]) -> bool {
    let mut result = all(words, allowed);
    while words.next_if_eq(&"OR").is_some() {
        result |= all(words, allowed);
    }
    result
}

fn all(words: &mut Words<'_>, allowed: &[String]) -> bool {
    let mut result = one(words, allowed);
    while words.next_if_eq(&"AND").is_some() {
        result &= one(words, allowed);
    }
    result
}

fn one(words: &mut Words<'_>, allowed: &[String]) -> bool {
    let Some(word) = words.next() else { return false };
    if word == "(" {
        let result = any(words, allowed);
        return words.next() == Some(")") && result;
    }
    let name = match words.next_if_eq(&"WITH").and_then(|_| words.next()) {
        Some(exception) => format!("{word} WITH {exception}"),
        None => word.to_owned(),
    };
    allowed.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::{allow_list, permitted};

    #[track_caller]
    fn check(expression: &str, expected: bool) {
        let allowed = allow_list(
            "[bans]\nallow = [\"GPL\"]\n[licenses]\nallow = [\n \"MIT\",\n \"ISC\",\n \"A WITH e\"]\n",
        );
        assert_eq!(permitted(expression, &allowed), expected, "{expression}");
    }

    #[test]
    fn an_expression_is_satisfied_by_allowed_licences_alone() {
        check("MIT", true);
        check("GPL", false);
        check("GPL OR MIT", true);
        check("GPL/MIT", true);
        check("GPL AND MIT", false);
        check("MIT AND ISC", true);
        check("(GPL OR MIT) AND ISC", true);
        check("(GPL OR MIT) AND GPL", false);
        check("GPL AND MIT OR ISC", true);
        check("A WITH e", true);
        check("A", false);
        check("MIT WITH e", false);
    }

    #[test]
    fn what_cannot_be_read_is_not_permitted() {
        check("", false);
        check("(MIT", false);
        check("MIT ISC", false);
        check("OR", false);
    }
}
