//! The real coding agents that tests run, in pinned versions, in a cache below `target`. Nothing is
//! installed for the whole machine, and npm knows where packages come from.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::steps::succeed;
use crate::tools::have;

/// Recorded transcripts are of these very versions; with others, record them again.
const PINNED: [(&str, &str); 4] = [
    ("@anthropic-ai/claude-code", "2.1.197"),
    ("@openai/codex", "0.166.0"),
    ("@github/copilot", "1.0.102"),
    ("@google/gemini-cli", "0.61.0"),
];

/// `wiggum_testkit::agents` looks for them here.
const CACHE: &str = "target/agents";

/// Installs what is missing or of another version; where it cannot, says loudly what will not be tested.
pub(crate) fn install() -> Result<String, String> {
    if !missing().is_empty()
        && let Err(problem) = npm_install()
    {
        eprintln!("warning: npm: {problem}");
    }
    let absent = missing();
    for (package, version) in &absent {
        eprintln!("warning: {package} {version} is MISSING; SKIPPED without it: its tests as a real agent");
    }
    let present = PINNED.iter().filter(|pinned| !absent.contains(pinned));
    let present: Vec<String> = present.map(|(package, version)| format!("{package} {version}")).collect();
    match absent.len() {
        0 => Ok(present.join(", ")),
        _ => Ok(format!("WITHOUT {} of {} agents", absent.len(), PINNED.len())),
    }
}

fn missing() -> Vec<(&'static str, &'static str)> {
    let is_there = |(package, version): &(&str, &str)| installed(package).as_deref() == Some(*version);
    PINNED.into_iter().filter(|pinned| !is_there(pinned)).collect()
}

fn installed(package: &str) -> Option<String> {
    let manifest = Path::new(CACHE).join("node_modules").join(package).join("package.json");
    let manifest: Value = serde_json::from_str(&std::fs::read_to_string(manifest).ok()?).ok()?;
    manifest["version"].as_str().map(str::to_owned)
}

fn npm_install() -> Result<(), String> {
    if !have("npm") || !have("node") {
        return Err("is not there, nor are real agents".to_owned());
    }
    println!("    installing {}", PINNED.map(|(package, version)| format!("{package} {version}")).join(", "));
    std::fs::create_dir_all(CACHE).map_err(|error| format!("{CACHE}: {error}"))?;
    #[expect(clippy::disallowed_methods, reason = "installing tools is what xtask is for")]
    let mut npm = Command::new("npm");
    // Without the network it should give up soon.
    npm.args(["install", "--no-audit", "--no-fund", "--loglevel=error", "--fetch-retries=1"]);
    npm.args(["--prefix", CACHE]).args(PINNED.map(|(package, version)| format!("{package}@{version}")));
    succeed(npm.stdout(Stdio::null()).status())
}
