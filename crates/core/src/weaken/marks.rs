//! Marks that keep tests from running and that a search for words does not find.

use super::language::identifier;

/// What an attribute does to the test or module it stands on, or a line to the whole program.
pub(super) fn rust_marks(line: &str, plain: &str) -> Vec<String> {
    if !["#[", "#![", "exit("].iter().any(|mark| plain.contains(mark)) {
        return Vec::new();
    }
    let compact: String = line.chars().filter(|c| !c.is_whitespace()).collect();
    let mut found: Vec<String> = ["#[ignore", "#[should_panic"]
        .iter()
        .filter(|mark| compact.contains(*mark))
        .map(|mark| (*mark).to_owned())
        .collect();
    if let Some((_, rest)) = compact.split_once("[cfg_attr(") {
        let gives = |what: &str| rest.contains(&format!(",{what}"));
        found.extend(gives("ignore").then(|| "cfg_attr ignore".to_owned()));
        found.extend(gives("should_panic").then(|| "cfg_attr should_panic".to_owned()));
    }
    if let Some((_, rest)) = compact.split_once("[cfg(") {
        let predicate = rest.rsplit_once(")]").map_or(rest, |(predicate, _)| predicate);
        found.extend((!is_on(predicate)).then(|| format!("cfg({predicate})")));
    }
    if compact.contains("process::exit(0)") {
        found.push("process::exit(0)".to_owned());
    }
    found
}

/// Does this condition hold where tests usually run?
fn is_on(predicate: &str) -> bool {
    let predicate =
        predicate.strip_prefix("all(").and_then(|rest| rest.strip_suffix(')')).unwrap_or(predicate);
    predicate.split(',').all(|part| {
        matches!(
            part,
            "test"
                | "unix"
                | "not(windows)"
                | "target_os=\"linux\""
                | "target_family=\"unix\""
                | "not(miri)"
                | "debug_assertions"
        ) || part.starts_with("not(target_os=") && part != "not(target_os=\"linux\")"
            || part.starts_with("not(target_arch=\"wasm")
            || part.starts_with("not(target_family=\"wasm")
    })
}

/// What takes a Python test away from its runner without a word of skipping.
pub(super) fn python_marks(line: &str) -> Vec<String> {
    let compact: String = line.chars().filter(|c| !c.is_whitespace()).collect();
    let mut found = Vec::new();
    if compact.contains("parametrize(") && compact.ends_with(",[])") {
        found.push("parametrize over nothing".to_owned());
    }
    if compact.starts_with("@pytest.fixture") {
        found.push("pytest.fixture".to_owned());
    }
    let replaced = line.strip_prefix("del test").is_some()
        || line
            .split_once(" = ")
            .is_some_and(|(name, _)| name.starts_with("test_") && identifier(name) == name);
    if replaced && !line.starts_with(char::is_whitespace) {
        found.push("replaced test".to_owned());
    }
    found
}

/// The build constraints of a Go file, which stand in comments.
pub(super) fn build_tags(text: &str) -> impl Iterator<Item = String> {
    let head = text.lines().take_while(|line| !line.starts_with("package "));
    head.filter_map(|line| {
        let line = line.trim();
        let tags = line.strip_prefix("//go:build ").or(line.strip_prefix("// +build "))?;
        Some(format!("build tag {}", tags.trim()))
    })
}
