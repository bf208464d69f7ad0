//! What the helper does: it confines itself and becomes the program.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use crate::process::signals;

use super::{HELPER, SandboxError, landlock};

/// `landlock PLACE… -- PROGRAM ARGUMENT…`
pub(super) const LANDLOCK: &str = "landlock";
/// `bwrap ITS-PATH ITS-ARGUMENT… -- landlock PLACE… -- PROGRAM ARGUMENT…`, or with [`INSIDE`] instead
pub(super) const BWRAP: &str = "bwrap";
/// `inside -- PROGRAM ARGUMENT…`: what bwrap starts where the kernel has no Landlock.
pub(super) const INSIDE: &str = "inside";
pub(super) const END: &str = "--";

/// Becomes the program that the arguments after [`HELPER`] name, confined as they say. Returns only
/// if that is not possible; the program was not started then.
pub fn become_program(arguments: impl IntoIterator<Item = OsString>) -> SandboxError {
    let mut arguments = arguments.into_iter();
    let how = arguments.next().unwrap_or_default();
    let before: Vec<OsString> = arguments.by_ref().take_while(|argument| argument != END).collect();
    let after: Vec<OsString> = arguments.collect();
    match how.to_str() {
        Some(LANDLOCK) => {
            let places: Vec<PathBuf> = before.into_iter().map(Into::into).collect();
            signals::heed_stop();
            match landlock::confine(&places).and_then(|_| give_up_powers()) {
                Ok(()) => exec(after),
                Err(error) => error,
            }
        }
        Some(BWRAP) => under_bwrap(before, after),
        Some(INSIDE) => {
            signals::heed_stop();
            match give_up_powers() {
                Ok(()) => exec(after),
                Err(error) => error,
            }
        }
        Some(_) | None => SandboxError::Arguments(how.to_string_lossy().into_owned()),
    }
}

#[cfg(target_os = "linux")]
fn give_up_powers() -> Result<(), SandboxError> {
    super::powers::give_up().map_err(SandboxError::Powers)
}

#[cfg(not(target_os = "linux"))]
fn give_up_powers() -> Result<(), SandboxError> {
    Err(SandboxError::NotLinux)
}

/// `bwrap` stays beside the program as its parent and in its group, so it gets every signal too. It
/// must not fall before the program, which may need its time to end: it ignores what the program
/// should heed, and what inherits that from it heeds it again.
fn under_bwrap(mut bwrap: Vec<OsString>, inside: Vec<OsString>) -> SandboxError {
    let own = match std::env::current_exe() {
        Ok(own) => own,
        Err(source) => return SandboxError::Exec { program: HELPER.into(), source },
    };
    bwrap.extend([END.into(), own.into(), HELPER.into()]);
    bwrap.extend(inside);
    signals::ignore_stop();
    exec(bwrap)
}

fn exec(mut words: Vec<OsString>) -> SandboxError {
    if words.is_empty() {
        return SandboxError::Arguments("no program".to_owned());
    }
    let program = words.remove(0);
    #[expect(clippy::disallowed_methods, reason = "the helper starts no program, it becomes one")]
    let source = Command::new(&program).args(words).exec();
    SandboxError::Exec { program: program.into(), source }
}
