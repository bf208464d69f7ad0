//! What can go wrong around a loop. An agent that fails is not among it: that is an event.

use std::error::Error;
use std::io;
use std::path::PathBuf;

use uuid::Uuid;
use wiggum_store::StoreError;
use wiggum_workspace::git::GitError;

use crate::backlog_file::BacklogError;
use crate::checkout::CheckoutError;
use crate::checkpoints::Damage;

#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error("cannot create the state directory {path}")]
    StateDir { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Checkout(#[from] CheckoutError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Backlog(#[from] BacklogError),
    #[error("the backlog asks for what is not available yet:\n{}", problems.join("\n"))]
    Unsupported { problems: Vec<String> },
    #[error("the work tree has uncommitted changes: {}", list(paths))]
    Dirty { paths: Vec<String> },
    #[error("git is in the middle of a {operation}")]
    UnfinishedOperation { operation: &'static str },
    #[error("HEAD is detached: commits would belong to no branch")]
    DetachedHead,
    #[error("`{name}` is a pipe or a device, at which git waits for ever")]
    NoPlainFile { name: &'static str },
    #[error("the git repository of this loop is gone: there is none at {path}")]
    RepositoryGone { path: PathBuf },
    #[error("commits cannot be signed, which git is configured to do (commit.gpgsign): {message}")]
    CannotSign { message: String },
    #[error("another loop works in {path}{by}")]
    Busy {
        path: PathBuf,
        /// Which, if that can be told.
        by: String,
    },
    #[error("cannot read the prompt {path}")]
    Prompt { path: PathBuf, source: io::Error },
    #[error("cannot write {path}")]
    Write { path: PathBuf, source: io::Error },
    #[error("the protected path {pattern:?} is not a valid glob")]
    Glob { pattern: String, source: globset::Error },
    #[error("no checkpoint {id}")]
    NoCheckpoint { id: Uuid },
    #[error("the checkpoint {id} cannot be used")]
    DamagedCheckpoint { id: Uuid, source: Box<Damage> },
    #[error("the checkpoint {id} is from before the first commit")]
    BeforeCommits { id: Uuid },
    #[error("the commit {commit} of the checkpoint {id} is not in this repository any more")]
    CommitGone { id: Uuid, commit: String },
    #[error("the checkpoint is of {wanted}, but the work tree is on {found}")]
    OtherBranch { wanted: String, found: String },
    #[error("the work tree has uncommitted changes: {}", list(paths))]
    Uncommitted { paths: Vec<String> },
}

impl EngineError {
    /// Was git ended by a signal, a request or the end of the run's time?
    pub(crate) fn is_ended_git(&self) -> bool {
        matches!(self, Self::Git(GitError::Ended(_)))
    }

    /// Is it about what was asked, rather than something that failed? Then nothing has begun.
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(
            self,
            Self::Dirty { .. }
                | Self::UnfinishedOperation { .. }
                | Self::DetachedHead
                | Self::NoPlainFile { .. }
                | Self::RepositoryGone { .. }
                | Self::CannotSign { .. }
                | Self::Unsupported { .. }
                | Self::Prompt { .. }
                | Self::Glob { .. }
                | Self::Busy { .. }
        )
    }
}

/// An error with all its causes in one line.
pub fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(source) = cause {
        text.push_str(&format!(": {source}"));
        cause = source.source();
    }
    text
}

fn list(paths: &[String]) -> String {
    const SHOWN: usize = 5;
    let mut text = paths.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    if paths.len() > SHOWN {
        text.push_str(&format!(" and {} more", paths.len() - SHOWN));
    }
    text
}
