//! The reference documents are what the program itself says.
#![expect(clippy::unwrap_used, reason = "a test may fail here")]
#![expect(clippy::disallowed_methods, reason = "the program is a process of its own")]

use std::path::Path;
use std::process::Command;

use wiggum_core::termination::TABLE;

#[test]
fn the_reference_documents_are_up_to_date() {
    check("cli", "docs/reference/cli.md");
    check("configuration", "docs/configuration.md");
    check("config-schema", "docs/reference/wiggum.schema.json");
    check("event-schema", "docs/reference/events.schema.json");
    check("notification-schema", "docs/reference/notification.schema.json");
}

#[test]
fn the_reasons_in_the_documentation_are_those_of_the_table() {
    let read = |file: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(file);
        std::fs::read_to_string(path).unwrap()
    };
    let codes = read("exit-codes.md");
    for ending in &TABLE {
        let row = codes.lines().find(|line| line.contains(&format!("`{}`", ending.name))).unwrap_or_default();
        assert!(row.starts_with(&format!("| {} |", ending.exit_code)), "{}: {row:?}", ending.name);
    }
    let guards = read("guards.md");
    for (index, ending) in TABLE.iter().enumerate().take(7) {
        let line = format!("{}. `{}`", index + 1, ending.name);
        assert!(guards.lines().any(|found| found.starts_with(&line)), "guards.md: {line}");
    }
}

fn check(what: &str, file: &str) {
    let output = Command::new(env!("CARGO_BIN_EXE_wiggum")).args(["reference", what]).output().unwrap();
    assert!(output.status.success(), "{what}: {output:?}");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file);
    let committed = std::fs::read(path).unwrap_or_default();
    assert!(
        committed == output.stdout,
        "{file} is out of date; run: cargo run -p wiggum-cli -- reference {what} > {file}"
    );
}
