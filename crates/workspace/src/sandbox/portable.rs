//! No Landlock outside of Linux.

use std::path::PathBuf;

use super::{SandboxError, Strength};

pub(super) fn confine(_writable: &[PathBuf]) -> Result<Strength, SandboxError> {
    Err(SandboxError::NotLinux)
}

pub(super) fn probe() -> Result<Strength, SandboxError> {
    Err(SandboxError::NotLinux)
}
