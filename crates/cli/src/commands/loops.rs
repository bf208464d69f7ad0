//! The loops of the repository in which a command was called.

use std::path::PathBuf;

use wiggum_engine::checkout::Checkout;
pub(crate) use wiggum_engine::desk::{DeskError, Lease, Loops};
use wiggum_engine::state_dir::StateDir;

use crate::commands::{run, surroundings_of};
use crate::failure::Failure;

/// `None` where no loop ever ran.
pub(crate) fn open() -> Result<Option<Loops>, Failure> {
    let loops = Loops::of(&checkout()?)?;
    let here = run::directory()?;
    Ok(loops.map(|loops| loops.seen_from(&here)))
}

/// As [`open`], for commands that make no sense without a loop.
pub(crate) fn require() -> Result<Loops, Failure> {
    Ok(open()?.ok_or(DeskError::NoLoops)?)
}

/// The checkout in which a command works.
pub(crate) fn checkout() -> Result<Checkout, Failure> {
    surroundings_of(workspace()?).checkout()
}

/// Where a command works. As [`run::workspace`], but without asking git where a loop has run.
pub(crate) fn workspace() -> Result<PathBuf, Failure> {
    let here = std::env::current_dir().and_then(|here| here.canonicalize());
    let root = here.ok().and_then(|here| {
        let root = here.ancestors().find(|ancestor| ancestor.join(".git").exists())?;
        root.join(StateDir::NAME).is_dir().then(|| root.to_owned())
    });
    root.map_or_else(run::workspace, Ok)
}
