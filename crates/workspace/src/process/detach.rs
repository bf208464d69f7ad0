//! Starting a program that is to outlive us.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use super::command::CommandLine;

/// Starts a program in a process group of its own, with nothing to read and its output in a file, and
/// leaves it alone. Returns the number of its process.
pub fn detach(command: &CommandLine, cwd: &Path, env: &[(OsString, OsString)], log: File) -> io::Result<u32> {
    let errors = log.try_clone()?;
    #[expect(clippy::disallowed_methods, reason = "this is the door")]
    let mut process = Command::new(&command.program);
    process.args(&command.args).current_dir(cwd).envs(env.iter().map(|(name, value)| (name, value)));
    process.stdin(Stdio::null()).stdout(log).stderr(errors).process_group(0);
    let mut child = process.spawn()?;
    let pid = child.id();
    // Whoever ends while we live must not stay as a zombie, which would look like an engine.
    thread::Builder::new().name(format!("detached {pid}")).spawn(move || drop(child.wait()))?;
    Ok(pid)
}
