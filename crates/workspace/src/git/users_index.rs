//! The user's index beside an index of our own: taken at the start of an attempt, and brought up to date when its work
//! is committed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::{Git, GitError, Hooks, copy, remove_if_there};
use crate::crash;
use crate::paths::{FileId, file_id};

/// What tells whether the index is still the one that was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexStamp(Option<(FileId, u64, Option<std::time::SystemTime>)>);

/// The lock of the user's index: no git of theirs can change it, and so commit, while we have it.
#[derive(Debug)]
pub struct UsersIndex {
    git: Git,
    lock: PathBuf,
}

impl Git {
    /// Our index becomes a copy of the user's; says which one that was.
    pub fn take_users_index(&self) -> Result<IndexStamp, GitError> {
        let user = self.of_user();
        let stamp = IndexStamp::of(&user.index_path());
        if let Some(own) = &self.index {
            user.copy_index(own)?;
        }
        Ok(stamp)
    }

    /// Tells whether the user's index is still the same.
    pub fn users_index_stamp(&self) -> IndexStamp {
        IndexStamp::of(&self.of_user().index_path())
    }

    /// Takes the lock of the user's index. [`GitError::Locked`] while another git has it.
    pub fn lock_users_index(&self) -> Result<UsersIndex, GitError> {
        let user = self.of_user();
        let lock = user.index_lock();
        match fs::OpenOptions::new().write(true).create_new(true).open(&lock) {
            Ok(_) => Ok(UsersIndex { git: self.clone(), lock }),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Err(GitError::Locked { path: lock })
            }
            Err(source) => Err(GitError::File { path: lock, source }),
        }
    }
}

impl IndexStamp {
    fn of(path: &Path) -> Self {
        let found = file_id(path).zip(fs::symlink_metadata(path).ok());
        Self(found.map(|(id, metadata)| (id, metadata.len(), metadata.modified().ok())))
    }
}

impl UsersIndex {
    /// The user's index has what became a commit: no file of it looks changed any more. Where the user has staged
    /// something since their index was `seen`, that stays staged. False if it is in the way: then nothing was done.
    pub fn publish(self, seen: Option<&IndexStamp>, from: &str, to: &str) -> Result<bool, GitError> {
        let Some(own) = &self.git.index else { return Ok(true) };
        let index = self.git.of_user().index_path();
        if seen == Some(&IndexStamp::of(&index)) {
            self.replace(own, &index)?;
            return Ok(true);
        }
        let mut beside = own.as_os_str().to_owned();
        beside.push(".users");
        let merged = self.git.clone().with_index(beside);
        merged.take_users_index()?;
        let fits = merged.output(&["read-tree", "-i", "-m", from, to], Hooks::Off)?.exit.success();
        if fits {
            self.replace(&merged.index_path(), &index)?;
        }
        Ok(fits)
    }

    /// As [`UsersIndex::publish`], where nobody has touched the index since it was `seen`.
    pub fn publish_if_seen(self, seen: &IndexStamp) -> Result<(), GitError> {
        let index = self.git.of_user().index_path();
        match &self.git.index {
            Some(own) if *seen == IndexStamp::of(&index) => self.replace(own, &index),
            Some(_) | None => Ok(()),
        }
    }

    fn replace(&self, from: &Path, index: &Path) -> Result<(), GitError> {
        let on_lock = |source| GitError::File { path: self.lock.clone(), source };
        remove_if_there(&self.lock).and_then(|()| copy(from, &self.lock)).map_err(on_lock)?;
        crash::point("index locked");
        fs::rename(&self.lock, index).map_err(on_lock)?;
        crash::point("index renamed");
        Ok(())
    }
}

impl Drop for UsersIndex {
    fn drop(&mut self) {
        // Published, it is the index.
        drop(remove_if_there(&self.lock));
    }
}
