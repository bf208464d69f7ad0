//! Attacks of an agent on what is not its own, by the wall that holds them. Each attack has a control,
//! which shows that it succeeds where the wall is missing.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may fail here")]
#![expect(clippy::print_stderr, reason = "what is not tested is said")]

mod caches;
mod checks;
mod claims;
mod git;
mod links;
mod obeyed;
mod people;
mod secrets;
mod sight;
#[path = "../support/mod.rs"]
mod support;

use wiggum_workspace::sandbox;

/// The ways to confine an agent that this system has, and none at all. None is left out silently.
fn sandboxes() -> Vec<&'static str> {
    let found = [("landlock", sandbox::landlock()), ("bwrap", sandbox::bwrap())];
    let works = |(name, kind): (&'static str, Result<_, sandbox::SandboxError>)| match kind {
        Ok(_) => Some(name),
        Err(error) => {
            eprintln!("SKIPPED: the sandbox {name} is NOT TESTED here: {error}");
            None
        }
    };
    found.into_iter().filter_map(works).collect()
}
