//! What can go wrong with the store, sorted by what a person can do about it.

use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use rusqlite::ErrorCode;
use rusqlite::ffi;
use thiserror::Error;
use wiggum_core::ids::{Epoch, LoopId, RequestId, Seq};

use crate::lease::Holder;
use crate::loops::Identity;

#[derive(Debug, Error)]
pub enum StoreError {
    #[error("could not {doing}: the disk is full ({})", path.display())]
    DiskFull { doing: &'static str, path: PathBuf, source: Cause },
    #[error("could not {doing}: {} cannot be written", path.display())]
    ReadOnly { doing: &'static str, path: PathBuf, source: Option<Cause> },
    #[error("could not {doing}: {} is locked by another program", path.display())]
    Locked { doing: &'static str, path: PathBuf, source: Cause },
    #[error("could not {doing}: {} is damaged or not a store", path.display())]
    Corrupt { doing: &'static str, path: PathBuf, source: Option<Cause> },
    #[error("could not {doing} ({})", path.display())]
    Failed { doing: &'static str, path: PathBuf, source: Cause },
    #[error("{} has format {found}, this wiggum knows formats up to {known}", path.display())]
    Newer { path: PathBuf, found: u32, known: u32 },
    #[error("there is no loop {loop_id} in {}", path.display())]
    UnknownLoop { loop_id: LoopId, path: PathBuf },
    #[error("the journal of loop {loop_id} went on: it is at event {found}, the writer knew {expected}")]
    Conflict { loop_id: LoopId, expected: Seq, found: Seq },
    #[error("loop {loop_id} was taken over: the writer has epoch {epoch}, the lease has epoch {current}")]
    Fenced { loop_id: LoopId, epoch: Epoch, current: Epoch },
    #[error(
        "loop {} over {} is run by process {} on {}{}",
        identity.name, identity.backlog, holder.pid, holder.host, since_words(*since)
    )]
    Held { identity: Box<Identity>, holder: Holder, since: Option<Timestamp> },
    #[error("event {seq} ({kind}) of loop {loop_id} cannot be read")]
    Unreadable { loop_id: LoopId, seq: Seq, kind: String, source: Option<serde_json::Error> },
    #[error("request {id} to loop {loop_id} cannot be read")]
    UnreadableRequest { loop_id: LoopId, id: RequestId, source: serde_json::Error },
    #[error("the stored text {sha256} is damaged ({})", path.display())]
    DamagedBlob { sha256: String, path: PathBuf },
}

impl StoreError {
    /// What a person can do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::DiskFull { .. } => Some("make room on the disk and run again: nothing recorded was lost"),
            Self::ReadOnly { .. } => Some("make the directory writable for you, or work in a writable copy"),
            Self::Locked { .. } => Some("close the program that has the database open, then try again"),
            Self::Corrupt { .. } => {
                Some("move the file aside to start anew, or put back a copy; `wiggum doctor` says more")
            }
            Self::Newer { .. } | Self::Unreadable { .. } | Self::UnreadableRequest { .. } => {
                Some("it was written by a newer wiggum: upgrade this one")
            }
            Self::Conflict { .. } | Self::Fenced { .. } => {
                Some("another wiggum runs this loop now; watch it with `wiggum status`")
            }
            Self::Held { .. } => Some(
                "watch it with `wiggum events -f`, end it with `wiggum stop`, or work beside it in a work tree \
                 of its own: `git worktree add`",
            ),
            Self::DamagedBlob { .. } => Some("run `wiggum doctor` to see what else is damaged"),
            Self::Failed { .. } | Self::UnknownLoop { .. } => None,
        }
    }
}

/// For people: since when somebody has been at it.
pub fn since_words(since: Option<Timestamp>) -> String {
    since.map(|since| format!(" since {since:.0}")).unwrap_or_default()
}

/// What SQLite or the operating system said.
#[derive(Debug, Error)]
pub enum Cause {
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Says what was being tried, and on which file, when a lower layer fails.
pub(crate) trait Explain<T> {
    fn explain(self, doing: &'static str, path: &Path) -> Result<T, StoreError>;
}

impl<T> Explain<T> for Result<T, rusqlite::Error> {
    fn explain(self, doing: &'static str, path: &Path) -> Result<T, StoreError> {
        self.map_err(|error| sort_sqlite(error, doing, path.to_owned()))
    }
}

impl<T> Explain<T> for Result<T, io::Error> {
    fn explain(self, doing: &'static str, path: &Path) -> Result<T, StoreError> {
        self.map_err(|error| sort_io(error, doing, path.to_owned()))
    }
}

fn sort_sqlite(error: rusqlite::Error, doing: &'static str, path: PathBuf) -> StoreError {
    let failure = error.sqlite_error().copied();
    let source = Cause::Sqlite(error);
    let Some(failure) = failure else {
        return StoreError::Failed { doing, path, source };
    };
    match (failure.code, failure.extended_code) {
        // Growing the shared index is the one place where SQLite does not call a full disk by name.
        (ErrorCode::DiskFull, _) | (_, ffi::SQLITE_IOERR_SHMSIZE) => {
            StoreError::DiskFull { doing, path, source }
        }
        (ErrorCode::ReadOnly, _) => StoreError::ReadOnly { doing, path, source: Some(source) },
        (ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed, _) => {
            StoreError::Locked { doing, path, source }
        }
        (ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase, _) => {
            StoreError::Corrupt { doing, path, source: Some(source) }
        }
        _ => StoreError::Failed { doing, path, source },
    }
}

fn sort_io(error: io::Error, doing: &'static str, path: PathBuf) -> StoreError {
    let kind = error.kind();
    let source = Cause::Io(error);
    match kind {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            StoreError::DiskFull { doing, path, source }
        }
        io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => {
            StoreError::ReadOnly { doing, path, source: Some(source) }
        }
        _ => StoreError::Failed { doing, path, source },
    }
}
