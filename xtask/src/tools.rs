//! The programs that tests use, installed by package name where that is possible.

use std::path::Path;
use std::process::Command;

use crate::steps::succeed;

/// A program and what is not tested without it.
const NEEDED: [(&str, &str); 7] = [
    ("bwrap", "agents in a sandbox where the kernel has no Landlock"),
    ("git", "everything about commits"),
    ("go", "cheats with checks of Go"),
    ("make", "cheats with checks of make"),
    ("python3", "processes that try to survive"),
    ("strace", "the counts of processes and fsyncs"),
    ("tmux", "what people see and type in a terminal"),
];

/// Installs what is missing; where it cannot, says loudly what will not be tested.
pub(crate) fn install() -> Result<String, String> {
    let absent = missing();
    if !absent.is_empty() && have("apt-get") && is_root() {
        println!("    installing {}", absent.join(", "));
        let install = apt_get(&["install", "-y", "--no-install-recommends"], &absent);
        // A fresh image knows no packages before an update.
        let result = install.or_else(|_| {
            apt_get(&["update"], &[])?;
            apt_get(&["install", "-y", "--no-install-recommends"], &absent)
        });
        if let Err(problem) = result {
            eprintln!("warning: apt-get: {problem}");
        }
    }
    let absent = missing();
    if absent.is_empty() {
        return Ok(NEEDED.map(|(program, _)| program).join(", "));
    }
    for (program, what) in NEEDED.iter().filter(|(program, _)| absent.contains(program)) {
        eprintln!("warning: `{program}` is MISSING; SKIPPED without it: {what}");
    }
    Ok(format!("WITHOUT {}", absent.join(", ")))
}

/// Is a program of this name on the path?
pub(crate) fn have(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(program).is_file())
}

fn missing() -> Vec<&'static str> {
    NEEDED.iter().map(|(program, _)| *program).filter(|program| !have(program)).collect()
}

#[expect(clippy::disallowed_methods, reason = "installing tools is what xtask is for")]
fn apt_get(arguments: &[&str], packages: &[&str]) -> Result<(), String> {
    let mut command = Command::new("apt-get");
    let packages = packages.iter().map(|program| match *program {
        "bwrap" => "bubblewrap",
        "go" => "golang-go",
        same => same,
    });
    command.args(arguments).args(packages).env("DEBIAN_FRONTEND", "noninteractive");
    succeed(command.stdout(std::process::Stdio::null()).status())
}

/// Whose process is this? Asked of the kernel's files, to need no library.
fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(Path::new("/proc/self")).is_ok_and(|data| data.uid() == 0)
}
