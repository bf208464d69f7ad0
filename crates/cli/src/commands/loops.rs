//! The loops of the repository in which a command was called.

use std::path::PathBuf;

pub(crate) use wiggum_engine::desk::{DeskError, Lease, Loops};
use wiggum_engine::state_dir::StateDir;

use crate::commands::run;
use crate::failure::Failure;

/// `None` where no loop ever ran.
pub(crate) fn open() -> Result<Option<Loops>, Failure> {
    Ok(Loops::of(&workspace()?)?)
}

/// As [`open`], for commands that make no sense without a loop.
pub(crate) fn require() -> Result<Loops, Failure> {
    Ok(open()?.ok_or(DeskError::NoLoops)?)
}

/// Where a command works. As [`run::workspace`], but without asking git where a loop has run.
pub(crate) fn workspace() -> Result<PathBuf, Failure> {
    let here = std::env::current_dir().and_then(|here| here.canonicalize());
    let root = here.ok().and_then(|here| {
        let root = here.ancestors().find(|ancestor| ancestor.join(".git").exists())?;
        StateDir::of(root).database().exists().then(|| root.to_owned())
    });
    root.map_or_else(run::workspace, Ok)
}
