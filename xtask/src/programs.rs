//! The test programs of the workspace, two side by side.
//!
//! `cargo test` runs one after the other, and many of ours wait most of the time: for an agent, a browser, a
//! server. What each prints is shown in one piece when it is through.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::thread;
use std::time::Instant;

use serde_json::Value;

use crate::steps::{Tests, cargo, collect, seconds, succeed};

const SIDE_BY_SIDE: usize = 2;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Program {
    /// As people know it: `wiggum-cli tests/crash.rs`.
    name: String,
    executable: PathBuf,
    /// Where cargo would run it.
    directory: PathBuf,
    is_unit: bool,
    /// The words before it.
    through: &'static [&'static str],
}

/// What is tested as the administrator and as somebody who is not: the walls around an agent.
const FOR_BOTH: &str = "cli tests/walls/main.rs";

/// Becomes an ordinary user, who has none of the administrator's rights and the same files.
const AS_ORDINARY_USER: &[&str] = &["unshare", "--user", "--map-user=1000", "--map-group=1000"];

/// Builds them all, runs them all, whatever fails in between, and adds up their tests.
pub(crate) fn run(tests: &mut Tests) -> Result<(), String> {
    let mut programs = build()?;
    programs.extend(as_ordinary_user(&programs));
    // The short ones last, so that both lanes end at about the same time.
    programs.sort_by_key(|program| program.is_unit);
    let queue = Mutex::new(VecDeque::from(programs));
    let told = Mutex::new((tests, Vec::new()));
    let lane = || {
        while let Some(program) = next(&queue) {
            let started = Instant::now();
            let (output, result) = program.run();
            let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
            println!("     Ran {} in {}", program.name, seconds(started.elapsed()));
            println!("{}", output.trim_end());
            output.lines().for_each(|line| told.0.add(line));
            if let Err(problem) = result {
                println!("{}: {problem}", program.name);
                told.1.push(program.name);
            }
        }
    };
    thread::scope(|scope| (0..SIDE_BY_SIDE).for_each(|_| drop(scope.spawn(lane))));
    let failed = told.into_inner().unwrap_or_else(PoisonError::into_inner).1;
    if failed.is_empty() { Ok(()) } else { Err(format!("failed: {}", failed.join(", "))) }
}

/// Programs that run a second time, where we are the administrator.
fn as_ordinary_user(programs: &[Program]) -> Option<Program> {
    let program = programs.iter().find(|program| program.name == FOR_BOTH)?;
    let is_user = |through: &[&str], id: &str| {
        let said = command(through, Path::new("id")).arg("-u").output();
        said.is_ok_and(|said| said.status.success() && said.stdout.trim_ascii() == id.as_bytes())
    };
    if !is_user(&[], "0") {
        println!("SKIPPED: {FOR_BOTH} is NOT TESTED as root, since this is an ordinary user");
        return None;
    }
    if !is_user(AS_ORDINARY_USER, "1000") {
        println!(
            "SKIPPED: {FOR_BOTH} is NOT TESTED as an ordinary user: `unshare --user` does not work here"
        );
        return None;
    }
    let name = format!("{} as an ordinary user", program.name);
    Some(Program { name, through: AS_ORDINARY_USER, ..program.clone() })
}

/// A program, started by these words.
#[expect(clippy::disallowed_methods, reason = "starting tools is what xtask is for")]
fn command(through: &[&str], executable: &Path) -> Command {
    let Some((first, rest)) = through.split_first() else { return Command::new(executable) };
    let mut command = Command::new(first);
    command.args(rest).arg(executable);
    command
}

fn next(queue: &Mutex<VecDeque<Program>>) -> Option<Program> {
    queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
}

fn build() -> Result<Vec<Program>, String> {
    let output = cargo(["test", "--workspace", "--no-run", "--message-format=json-render-diagnostics"])
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("cargo cannot be started: {error}"))?;
    succeed(Ok(output.status))?;
    Ok(String::from_utf8_lossy(&output.stdout).lines().filter_map(Program::from_message).collect())
}

impl Program {
    /// One line of what cargo tells about a build; most are about something else.
    fn from_message(line: &str) -> Option<Self> {
        let message: Value = serde_json::from_str(line).ok()?;
        if message["reason"] != "compiler-artifact" || message["profile"]["test"] != true {
            return None;
        }
        let directory = Path::new(message["manifest_path"].as_str()?).parent()?;
        let source = Path::new(message["target"]["src_path"].as_str()?);
        let package = directory.file_name()?.to_string_lossy();
        let name = format!("{package} {}", source.strip_prefix(directory).unwrap_or(source).display());
        let executable = message["executable"].as_str()?.into();
        let is_unit = message["target"]["kind"][0] != "test";
        Some(Self { name, executable, directory: directory.to_owned(), is_unit, through: &[] })
    }

    fn run(&self) -> (String, Result<(), String>) {
        let mut command = command(self.through, &self.executable);
        command.current_dir(&self.directory).env("CARGO_MANIFEST_DIR", &self.directory);
        collect(&mut command)
    }
}

#[cfg(test)]
mod tests {
    use super::Program;

    #[test]
    fn programs_are_told_from_the_rest_of_a_build() {
        let line = r#"{"reason":"compiler-artifact","manifest_path":"/r/crates/cli/Cargo.toml",
            "target":{"kind":["test"],"name":"crash","src_path":"/r/crates/cli/tests/crash.rs"},
            "profile":{"test":true},"executable":"/r/target/debug/deps/crash-1"}"#;
        let program = Program::from_message(line).expect("a test program");
        assert_eq!(program.name, "cli tests/crash.rs");
        assert_eq!(program.directory.as_os_str(), "/r/crates/cli");
        assert!(!program.is_unit);
        assert_eq!(Program::from_message(&line.replace(r#""test":true"#, r#""test":false"#)), None);
        assert_eq!(Program::from_message(r#"{"reason":"build-finished","success":true}"#), None);
    }
}
