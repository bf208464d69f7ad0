//! Test runners of other languages, in pinned versions, installed as [`crate::mcp`] installs servers.

use std::path::PathBuf;

use crate::mcp::{found, npm, venv};

const PYTHON: [&str; 2] = ["pytest==8.4.2", "rust-just==1.43.0"];
const NPM: [&str; 3] = ["jest@30.2.0", "mocha@11.7.4", "vitest@3.2.4"];

/// The directory in which `pytest` and `just` are.
pub fn python_or_skip(what: &str) -> Option<PathBuf> {
    found(venv("test-runners", &PYTHON), what)
}

/// The `node_modules` in which Jest, Mocha and Vitest are.
pub fn node_modules_or_skip(what: &str) -> Option<PathBuf> {
    let programs = found(npm("test-runners-js", &NPM), what)?;
    programs.parent().map(PathBuf::from)
}
