//! What developers and the build run: `cargo xtask test` before a change goes in, `bench` and `soak`
//! when it is about speed or crashes.
//!
//! Nothing here ends up in the program. Standard library and `serde_json` alone, so that it builds in
//! seconds on a fresh machine.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "telling people what it does is its purpose")]

mod agents;
mod doors;
mod licences;
mod metadata;
mod programs;
mod steps;
mod tools;
mod tracked;

#[cfg(test)]
mod arrows;

use std::path::Path;
use std::process::ExitCode;

use steps::{Failed, Steps, cargo};

const HELP: &str = "\
Usage: cargo xtask <COMMAND>

Commands:
  test    Everything that must hold before a change goes in; installs what the tests need
  lint    Formatting, clippy, documentation, licences and tracked files, without running tests
  agents  Installs the real coding agents that tests run, below target/
  bench   Measures the release build against a floor done by hand (docs/performance.md)
  soak    The full crash sweep: kills the engine at every point of a run (takes long)

`test` and `lint` stop at the first failure. Exit codes: 0 all well, 1 something failed, 2 usage.
Arguments after `bench` or `soak` go to the benches (`cargo xtask bench status`) and tests.
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let rest: Vec<&str> = arguments.iter().skip(1).map(String::as_str).collect();
    // All paths below are relative to the repository.
    if let Err(error) = std::env::set_current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("..")) {
        eprintln!("error: cannot go to the repository: {error}");
        return ExitCode::FAILURE;
    }
    let result = match arguments.first().map(String::as_str) {
        Some("test") if rest.is_empty() => test(),
        Some("lint") if rest.is_empty() => lint(),
        Some("agents") if rest.is_empty() => agents(),
        Some("bench") => bench(&rest),
        Some("soak") => soak(&rest),
        Some("help" | "--help" | "-h") => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprint!("{HELP}");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(summary) => {
            println!("{summary}");
            ExitCode::SUCCESS
        }
        Err(Failed(summary)) => {
            println!("{summary}");
            ExitCode::FAILURE
        }
    }
}

fn test() -> Result<String, Failed> {
    let mut steps = Steps::new("test");
    steps.step("tools", tools::install)?;
    steps.step("agents", agents::install)?;
    lint_steps(&mut steps)?;
    // The arrows between crates and the comparison of generated files are part of this.
    steps.counting("tests", programs::run)?;
    steps.counted("examples in the documentation", cargo(["test", "--workspace", "--doc"]))?;
    // Apart from the others, so that no other build ever holds a mutant; as part of the workspace, so that
    // what others wrote is not built again.
    let mutants = ["test", "--workspace", "--features", "wiggum-sim/mutants", "--test", "mutants"];
    steps.counted("mutants", cargo(mutants))?;
    Ok(steps.summary())
}

fn agents() -> Result<String, Failed> {
    let mut steps = Steps::new("agents");
    steps.step("agents", agents::install)?;
    Ok(steps.summary())
}

fn lint() -> Result<String, Failed> {
    let mut steps = Steps::new("lint");
    lint_steps(&mut steps)?;
    Ok(steps.summary())
}

fn lint_steps(steps: &mut Steps) -> Result<(), Failed> {
    steps.step("tracked files", tracked::check)?;
    steps.step("files opened", doors::check)?;
    steps.run("format", cargo(["fmt", "--all", "--check"]))?;
    steps.step("licences and sources", licences::check)?;
    if tools::have("cargo-deny") {
        steps.run("cargo deny", cargo(["deny", "--offline", "check", "licenses", "bans", "sources"]))?;
    }
    steps.run("clippy", cargo(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))?;
    let mut doc = cargo(["doc", "--workspace", "--no-deps", "--document-private-items", "--quiet"]);
    doc.env("RUSTDOCFLAGS", "-D warnings");
    steps.run("documentation", doc)
}

fn bench(which: &[&str]) -> Result<String, Failed> {
    let mut steps = Steps::new("bench");
    steps.run("build", cargo(["build", "--release", "-p", "wiggum-cli"]))?;
    let mut run = cargo(["bench", "-p", "wiggum-cli", "--bench", "figures", "--"]);
    run.args(which);
    steps.run("figures", run)?;
    Ok(steps.summary())
}

fn soak(rest: &[&str]) -> Result<String, Failed> {
    let mut steps = Steps::new("soak");
    let mut run = cargo(["test", "-p", "wiggum-cli", "--test", "crash", "--"]);
    run.args(rest).env("WIGGUM_SWEEP", "full");
    steps.counted("crash sweep", run)?;
    Ok(steps.summary())
}
