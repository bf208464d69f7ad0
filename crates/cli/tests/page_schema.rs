//! The API against its own description: schemathesis makes requests of it, fitting and not, and looks
//! whether the answers are what the description says.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may fail here")]

mod serving;
mod support;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serving::Page;
use support::Sandbox;

const TOOL: &str = "schemathesis==4.32.5";

#[test]
fn the_api_is_as_it_describes_itself() {
    let Some(tool) = tool() else { return };
    let sandbox = Sandbox::with_tasks(&["A", "B"]);
    sandbox.run("echo fine > \"$WIGGUM_TASK_ID.txt\"; claim", &["--verify", "true"]).exits(0);
    let page = Page::open(&sandbox, &[]);
    let mut command = sandbox.command(&tool.display().to_string());
    command.args(["run", &format!("http://{}/api/v1/openapi.json", page.address)]);
    command.args(["-H", &format!("Authorization: Bearer {}", page.token), "--no-color"]);
    // A stream does not end; and words that are nothing but blanks fit a schema and are refused.
    command.args(["--exclude-path-regex", "stream$", "--exclude-checks", "positive_data_acceptance"]);
    command.args(["--max-examples", "10", "--seed", "7", "--request-timeout", "10", "--workers", "1"]);
    let output = command.current_dir(sandbox.base()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
}

/// Its program, installed once below `target/`; none where that cannot be.
#[expect(clippy::print_stderr, reason = "what is skipped must be seen")]
fn tool() -> Option<PathBuf> {
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    let cache = target.canonicalize().unwrap_or(target).join("schemathesis");
    fs::create_dir_all(&cache).unwrap();
    let lock = File::create(cache.join("lock")).unwrap();
    lock.lock().unwrap();
    let bin = cache.join("venv/bin");
    if !bin.join("schemathesis").exists() {
        let run = |program: &Path, args: &[&str]| {
            #[expect(clippy::disallowed_methods, reason = "tests install what they need")]
            let mut command = Command::new(program);
            let status = command.args(args).stdout(Stdio::null()).status();
            status.is_ok_and(|status| status.success())
        };
        let venv = cache.join("venv").display().to_string();
        let made = run(Path::new("python3"), &["-m", "venv", &venv]);
        if !made || !run(&bin.join("pip"), &["install", "-q", TOOL]) {
            eprintln!("SKIPPED: the API is not tried against its description: {TOOL} cannot be installed");
            return None;
        }
    }
    Some(bin.join("schemathesis"))
}
