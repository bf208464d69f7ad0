//! The reference documents are what the program itself says.
#![expect(clippy::unwrap_used, reason = "a test may fail here")]
#![expect(clippy::disallowed_methods, reason = "the program is a process of its own")]

use std::path::Path;
use std::process::Command;

#[test]
fn the_reference_documents_are_up_to_date() {
    check("cli", "docs/reference/cli.md");
    check("configuration", "docs/configuration.md");
    check("config-schema", "docs/reference/wiggum.schema.json");
    check("event-schema", "docs/reference/events.schema.json");
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
