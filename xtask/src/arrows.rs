//! Which crate may know which: `core` knows nobody, the adapters know `core`, the engine joins them.

use std::collections::BTreeSet;

use crate::metadata::Metadata;

/// What each crate of ours may depend on among ours.
const ARROWS: [(&str, &[&str]); 18] = [
    ("wiggum-core", &[]),
    ("wiggum-backlog", &["wiggum-core"]),
    ("wiggum-store", &["wiggum-core"]),
    ("wiggum-agents", &["wiggum-core"]),
    ("wiggum-workspace", &["wiggum-core"]),
    ("wiggum-integrations", &["wiggum-core"]),
    // An agent itself rather than a driver of one: it prints the stream that its driver reads.
    ("wiggum-api-agent", &["wiggum-agents", "wiggum-core", "wiggum-workspace"]),
    (
        "wiggum-engine",
        &["wiggum-agents", "wiggum-backlog", "wiggum-core", "wiggum-store", "wiggum-workspace"],
    ),
    // A surface that keeps files of its own, through the same doors as the engine.
    ("wiggum-vault", &["wiggum-backlog", "wiggum-core", "wiggum-engine", "wiggum-store", "wiggum-workspace"]),
    // As another host for the engine, it builds what the engine is given, as the command line does.
    (
        "wiggum-sim",
        &[
            "wiggum-agents",
            "wiggum-backlog",
            "wiggum-core",
            "wiggum-engine",
            "wiggum-store",
            "wiggum-workspace",
        ],
    ),
    // A surface: whatever it does to a loop, the engine's desk does for it.
    ("wiggum-mcp", &["wiggum-core", "wiggum-door", "wiggum-engine", "wiggum-store"]),
    ("wiggum-web", &["wiggum-core", "wiggum-door", "wiggum-engine", "wiggum-store"]),
    ("wiggum-tui", &["wiggum-core", "wiggum-engine", "wiggum-store"]),
    // A surface that only tells: it reads journals, and keeps how far it told them.
    ("wiggum-notify", &["wiggum-core", "wiggum-engine", "wiggum-store", "wiggum-workspace"]),
    // Who may come in over HTTP; what is served, the others know.
    ("wiggum-door", &[]),
    (
        "wiggum-cli",
        &[
            "wiggum-agents",
            "wiggum-api-agent",
            "wiggum-backlog",
            "wiggum-core",
            "wiggum-door",
            "wiggum-engine",
            "wiggum-mcp",
            "wiggum-integrations",
            "wiggum-notify",
            "wiggum-sim",
            "wiggum-store",
            "wiggum-tui",
            "wiggum-web",
            "wiggum-vault",
            "wiggum-workspace",
        ],
    ),
    // For tests of all the others, which must not need it otherwise.
    ("wiggum-testkit", &["wiggum-core"]),
    ("xtask", &[]),
];

/// All that the pure core may use: no clock, no I/O, no runtime.
const CORE: [&str; 6] = ["jiff", "schemars", "serde", "serde_json", "thiserror", "uuid"];

/// A little above what the binary needed on all platforms together when this was last looked at (355).
/// Raise it knowingly. The built-in agent's HTTP, TLS and walk over files came with 45 of them, of which
/// Linux builds 24; the others are Windows' and macOS's own. MCP came with about 140: its library, tokio and hyper for
/// both directions, reqwest and the schemas of tools for the client. Drawing on terminals came with 32: cells and
/// their layout, and crossterm, with Windows' part of it.
const MOST_DEPENDENCIES: usize = 360;

#[test]
fn crates_know_only_whom_they_may() {
    let metadata = read();
    for package in metadata.packages.iter().filter(|package| package.source.is_none()) {
        let name = package.name.as_str();
        let Some((_, allowed)) = ARROWS.iter().find(|(known, _)| *known == name) else {
            panic!("{name} is new: say in xtask/src/arrows.rs whom it may know");
        };
        let known: Vec<&str> =
            metadata.direct(name).into_iter().filter(|other| other.starts_with("wiggum-")).collect();
        let wrong: Vec<&&str> = known.iter().filter(|other| !allowed.contains(other)).collect();
        assert!(wrong.is_empty(), "{name} must not depend on {wrong:?}");
    }
}

#[test]
fn the_core_stays_pure() {
    let metadata = read();
    assert_eq!(metadata.direct("wiggum-core"), BTreeSet::from(CORE));
}

#[test]
fn the_binary_needs_few_packages() {
    let metadata = read();
    let below = metadata.below("wiggum-cli");
    println!("the binary is built from {} packages", below.len());
    assert!(below.len() <= MOST_DEPENDENCIES, "{} packages, at most {MOST_DEPENDENCIES}", below.len());
}

fn read() -> Metadata {
    Metadata::read().expect("cargo knows this workspace")
}
