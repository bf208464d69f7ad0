//! Landlock: the kernel itself refuses writes elsewhere, to this process and all it starts.

use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::thread;

use landlock::{
    ABI, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, RestrictionStatus, Ruleset,
    RulesetAttr, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};

use super::{SandboxError, Strength};

/// Without the right to move files between directories, which came second, no git and no compiler
/// works; so a kernel of before has none for us.
const OLDEST: ABI = ABI::V2;

/// Everything that changes a file or a directory. Reading, running, and sockets that are files are free.
fn writing() -> BitFlags<AccessFs> {
    AccessFs::from_write(OLDEST) | AccessFs::Truncate
}

/// From here on this thread, and what it starts or becomes, writes to these places only.
pub(super) fn confine(writable: &[PathBuf]) -> Result<Strength, SandboxError> {
    let status = restrict(writable)?;
    match status.ruleset {
        RulesetStatus::FullyEnforced => Ok(Strength::Full),
        // What is hard to do without is required below, so it is one of the others that is missing.
        RulesetStatus::PartiallyEnforced if knows_truncation() => Ok(Strength::WithoutScopes),
        RulesetStatus::PartiallyEnforced => Ok(Strength::WithoutTruncation),
        RulesetStatus::NotEnforced => Err(SandboxError::NotEnforced),
    }
}

fn restrict(writable: &[PathBuf]) -> Result<RestrictionStatus, SandboxError> {
    let old = |error: RulesetError| SandboxError::OldKernel(Box::new(error));
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_write(OLDEST))
        .map_err(old)?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::Truncate)
        .map_err(old)?
        .scope(Scope::Signal | Scope::AbstractUnixSocket)
        .map_err(old)?
        .create()
        .map_err(old)?;
    for path in writable {
        // It may have gone a moment ago, and what is not there needs no permission.
        let Ok(place) = PathFd::new(path) else { continue };
        ruleset = ruleset.add_rule(PathBeneath::new(place, rights(path))).map_err(old)?;
    }
    ruleset.restrict_self().map_err(old)
}

fn knows_truncation() -> bool {
    let required = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    required.handle_access(AccessFs::Truncate).is_ok()
}

/// A file has no entries to make or remove.
fn rights(path: &Path) -> BitFlags<AccessFs> {
    if path.is_dir() { writing() } else { writing() & AccessFs::from_file(ABI::V3) }
}

/// On a thread of its own: what it gives up, only it has lost.
pub(super) fn probe() -> Result<Strength, SandboxError> {
    let tried = thread::spawn(|| {
        let strength = confine(&[])?;
        match OpenOptions::new().write(true).open("/dev/null") {
            Err(error) if error.kind() == ErrorKind::PermissionDenied => Ok(strength),
            Ok(_) | Err(_) => Err(SandboxError::NotEnforced),
        }
    });
    tried.join().unwrap_or(Err(SandboxError::NotEnforced))
}
