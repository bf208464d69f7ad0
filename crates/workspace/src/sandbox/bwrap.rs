//! `bwrap`: a view of the file system in which everything else is read-only.
//!
//! Process numbers stay those of the system, since programs inside look for ours, and `/proc` is
//! therefore the system's own too. It is not tied to our life (`--die-with-parent`), which would
//! mean the thread that started it; after a crash of ours the watchdog finds it by its marker.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::process::{self, CommandLine, Launch};

use super::{Confinement, Kind, Mount, SandboxError};

pub(super) fn probe() -> Result<PathBuf, SandboxError> {
    if cfg!(not(target_os = "linux")) {
        return Err(SandboxError::NotLinux);
    }
    let name = CommandLine::new("bwrap", Vec::<OsString>::new());
    let program = name.resolve(&std::env::temp_dir()).map_err(|_| SandboxError::NoBwrap)?;
    // What it is really called with, since some containers allow one mount and not another.
    let here = std::env::temp_dir();
    let mut arguments = arguments(&Confinement {
        kind: Kind::Bwrap { program: program.clone(), landlock: false },
        helper: PathBuf::new(),
        writable: vec![here.clone()],
        read_only: Vec::new(),
        writable_again: Vec::new(),
        hidden: vec![here],
        mounts: Vec::new(),
    });
    arguments.extend(["--".into(), "/bin/sh".into(), "-c".into(), ":".into()]);
    let broken = SandboxError::BrokenBwrap;
    let tried = process::run(Launch::new(CommandLine::new(&program, arguments), "/"))
        .map_err(|error| broken(error.to_string()))?;
    if tried.exit.success() {
        return Ok(program);
    }
    let complaint = String::from_utf8_lossy(&tried.stderr).trim().to_owned();
    Err(broken(if complaint.is_empty() { tried.exit.to_string() } else { complaint }))
}

/// Mounts come in this order: what comes later lies over what came before.
pub(super) fn arguments(confinement: &Confinement) -> Vec<OsString> {
    let Confinement { writable, read_only, writable_again, hidden, mounts: other, .. } = confinement;
    let mut all = words(&["--ro-bind", "/", "/", "--dev-bind", "/dev", "/dev"]);
    let elsewhere = writable.iter().filter(|path| !path.starts_with("/dev"));
    all.extend(mounts("--bind-try", elsewhere));
    let (directories, files): (Vec<_>, Vec<_>) =
        hidden.iter().filter(|path| path.exists()).partition(|path| path.is_dir());
    all.extend(directories.iter().flat_map(|path| ["--tmpfs".into(), path.into()]));
    // On a mount that knows no devices, where it cannot be opened.
    all.extend(files.iter().flat_map(|path| ["--ro-bind".into(), "/dev/null".into(), path.into()]));
    all.extend(mounts("--ro-bind-try", read_only));
    all.extend(mounts("--bind-try", writable_again));
    all.extend(other.iter().flat_map(|Mount { from, at, writable }| {
        let how = if *writable { "--bind" } else { "--ro-bind" };
        [how.into(), from.into(), at.into()]
    }));
    // Not before everything that is seen inside of them has its place.
    let may_write = |path: &PathBuf| writable.iter().any(|place| path.starts_with(place));
    let closed = directories.iter().filter(|path| !may_write(path));
    all.extend(closed.flat_map(|path| ["--remount-ro".into(), path.into()]));
    // As root it would otherwise be able to undo all this.
    all.extend(words(&["--cap-drop", "CAP_SYS_ADMIN"]));
    all
}

/// What is not there is left out.
fn mounts<'a>(how: &'a str, paths: impl IntoIterator<Item = &'a PathBuf>) -> impl Iterator<Item = OsString> {
    paths.into_iter().flat_map(move |path| [how.into(), path.into(), path.into()])
}

fn words(words: &[&str]) -> Vec<OsString> {
    words.iter().map(Into::into).collect()
}
