//! `wiggum checkpoint`: what can be said.

use clap::{Args, Subcommand};

use super::LoopArgs;

#[derive(Debug, Subcommand)]
pub(crate) enum CheckpointCommand {
    /// Sum the loop up as it is now, whether or not it runs
    ///
    /// Every iteration ends with a checkpoint anyway.
    Create(LoopArgs),
    /// The checkpoints of a loop, oldest first
    List(LoopArgs),
    /// All of one checkpoint
    #[command(after_help = "Examples:\n  wiggum checkpoint show\n  wiggum checkpoint show 3f2a9c --json")]
    Show(WhichCheckpoint),
    /// Put branch, tasks and backlog back to a checkpoint; what came after is kept under a ref
    ///
    /// Only while the loop does not run. The tip of the branch and what lies in the work tree go under
    /// refs/wiggum/LOOP/restored/ first. In the backlog only statuses are changed. The journal keeps
    /// all that happened, and the next `wiggum run` goes on from the checkpoint.
    #[command(after_help = "Example:\n  wiggum checkpoint restore 3f2a9c")]
    Restore(RestoreArgs),
    /// Prove the whole chain: every text has its hash, and none is missing
    Verify(LoopArgs),
}

#[derive(Debug, Args)]
pub(crate) struct WhichCheckpoint {
    /// The beginning of its hash or id, or `last`
    #[arg(default_value = "last")]
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) of: LoopArgs,
}

#[derive(Debug, Args)]
pub(crate) struct RestoreArgs {
    /// The beginning of its hash or id, or `last`
    pub(crate) id: String,
    /// Keep uncommitted changes under the ref as well, and take them out of the work tree
    #[arg(long)]
    pub(crate) keep_changes: bool,
    #[command(flatten)]
    pub(crate) of: LoopArgs,
}
