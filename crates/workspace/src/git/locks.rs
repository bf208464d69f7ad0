//! Traces in the git directory: locks of a git that died, and our line in `info/exclude`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::beneath::text_of;

use super::ignore::{STATE_DIR, ignoring_state};
use super::{Git, GitError, remove_if_there};

impl Git {
    /// Removes the locks of a git that died, and returns them. To be called only when no git of ours
    /// runs; while any other git works in this repository nothing is removed.
    ///
    /// A lock's age says nothing: after a crash we are back within milliseconds, and a commit whose
    /// hooks run the tests holds its lock for minutes. So it is asked who is there instead.
    pub fn clear_dead_lock(&self) -> Result<Vec<PathBuf>, GitError> {
        let mut locks: Vec<PathBuf> =
            ["index.lock", "HEAD.lock", "index.wiggum-files.lock", "index.wiggum-untracked.lock"]
                .map(|name| self.git_dir.join(name))
                .to_vec();
        let shared = ["packed-refs.lock", "config.lock", "HEAD.lock", "shallow.lock"];
        locks.extend(shared.map(|name| self.common_dir.join(name)));
        locks.extend(self.index.iter().map(|_| self.index_lock()));
        find_locks(&self.common_dir.join("refs"), &mut locks);
        locks.retain(|path| path.exists());
        locks.sort_unstable();
        locks.dedup();
        if locks.is_empty() || self.somebody_works_here() {
            return Ok(Vec::new());
        }
        for path in &locks {
            remove_if_there(path).map_err(|source| GitError::File { path: path.clone(), source })?;
        }
        Ok(locks)
    }

    /// Is there a lock that would keep us from staging or committing on this branch?
    pub fn is_locked(&self, branch: Option<&str>) -> bool {
        let of_branch = branch.map(|branch| self.common_dir.join(format!("refs/heads/{branch}.lock")));
        let others = ["index.lock", "HEAD.lock"].map(|name| self.git_dir.join(name));
        others.into_iter().chain(of_branch).any(|lock| lock.exists())
    }

    /// Is a git running whose directory lies in this repository?
    #[cfg(target_os = "linux")]
    fn somebody_works_here(&self) -> bool {
        let Ok(processes) = fs::read_dir("/proc") else { return true };
        let inside = |cwd: &Path| cwd.starts_with(&self.root) || cwd.starts_with(&self.common_dir);
        processes.filter_map(Result::ok).any(|process| {
            let name = fs::read_to_string(process.path().join("comm")).unwrap_or_default();
            (name == "git\n" || name.starts_with("git-"))
                && fs::read_link(process.path().join("cwd")).is_ok_and(|cwd| inside(&cwd))
        })
    }

    /// Elsewhere it cannot be asked; the caller has ended everything of its own.
    #[cfg(not(target_os = "linux"))]
    fn somebody_works_here(&self) -> bool {
        false
    }

    /// Keeps our files in `.wiggum/` out of git where no `.gitignore` does so already.
    pub fn exclude_state_dir(&self) -> Result<(), GitError> {
        let path = self.common_dir.join("info/exclude");
        let on_file = |source| GitError::File { path: path.clone(), source };
        let text = match text_of(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(on_file(error)),
        };
        // An older version ignored the whole directory here, and with it what people commit.
        let by_us = text.lines().any(|line| line.trim_end() == format!("{STATE_DIR}/"));
        let Some(text) = ignoring_state(&text) else { return Ok(()) };
        if !by_us && self.ignored(&format!("{STATE_DIR}/store"))? {
            return Ok(());
        }
        fs::create_dir_all(self.common_dir.join("info")).map_err(on_file)?;
        crate::paths::write_atomic(&path, text.as_bytes()).map_err(on_file)
    }
}

fn find_locks(directory: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.filter_map(Result::ok) {
        let path = entry.path();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            find_locks(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "lock") {
            found.push(path);
        }
    }
}
