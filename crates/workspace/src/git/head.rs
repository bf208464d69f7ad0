//! Where HEAD is, read from the files.
//!
//! Anything unusual (a symbolic link, a chain of symbolic refs, the reftable format) is left to git.

use std::io;
use std::path::{Path, PathBuf};

use wiggum_core::event::Exit;

use super::{Git, GitError, Hooks, failed, text};
use crate::beneath::{self, Links};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// `None` when HEAD is detached.
    pub branch: Option<String>,
    /// `None` on a branch without commits.
    pub commit: Option<String>,
}

impl Git {
    pub fn head(&self) -> Result<Head, GitError> {
        match self.head_from_files() {
            Some(head) => Ok(head),
            None => self.head_from_git(),
        }
    }

    /// `None` where only git itself can tell.
    pub fn head_from_files(&self) -> Option<Head> {
        read_head(&self.git_dir, &self.common_dir)
    }

    fn head_from_git(&self) -> Result<Head, GitError> {
        let symbolic = ["symbolic-ref", "--quiet", "HEAD"];
        let output = self.output(&symbolic, Hooks::Off)?;
        let branch = match output.exit {
            Exit::Code { code: 0 } => {
                let reference = text(&output.stdout);
                let reference = reference.trim_end();
                Some(reference.strip_prefix("refs/heads/").unwrap_or(reference).to_owned())
            }
            Exit::Code { code: 1 } => None,
            _ => return Err(failed(&symbolic, &output)),
        };
        Ok(Head { branch, commit: self.resolve("HEAD^{commit}")? })
    }
}

/// `None` where only git itself can tell.
pub(super) fn read_head(git_dir: &Path, common_dir: &Path) -> Option<Head> {
    let path = git_dir.join("HEAD");
    if path.is_symlink() {
        return None;
    }
    let head = read(&path).ok()?;
    let Some(reference) = head.strip_prefix("ref: ") else {
        return Some(Head { branch: None, commit: Some(object_id(&head)?) });
    };
    let reference = reference.trim_end();
    let branch = reference.strip_prefix("refs/heads/")?;
    // What the reftable format writes here for older programs.
    if branch == ".invalid" {
        return None;
    }
    let commit = branch_commit(common_dir, reference)?;
    Some(Head { branch: Some(branch.to_owned()), commit })
}

/// The outer `None` means that git should be asked.
fn branch_commit(common_dir: &Path, reference: &str) -> Option<Option<String>> {
    match read(&common_dir.join(reference)) {
        Ok(content) => Some(Some(object_id(&content)?)),
        Err(error) if is_absent(&error) => packed_commit(common_dir, reference),
        Err(_) => None,
    }
}

fn packed_commit(common_dir: &Path, reference: &str) -> Option<Option<String>> {
    let packed = match read(&common_dir.join("packed-refs")) {
        Ok(packed) => packed,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Some(None),
        Err(_) => return None,
    };
    let line = packed.lines().find_map(|line| line.strip_suffix(reference)?.strip_suffix(' '));
    Some(match line {
        Some(id) => Some(object_id(id)?),
        None => None,
    })
}

/// The largest of these files, `packed-refs`, has some 70 bytes for each of a repository's branches and tags.
const MOST: usize = 256 * 1024 * 1024;

/// Agents can write these files: what is no plain file is left to git, which is confined.
fn read(path: &Path) -> io::Result<String> {
    match beneath::read_plain_text(path, Links::Follow, MOST) {
        Err(_) if path.is_dir() => Err(io::Error::from(io::ErrorKind::IsADirectory)),
        read => read,
    }
}

/// A branch may also be a directory of branches (`a` beside `a/b`): then it does not exist.
fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::IsADirectory | io::ErrorKind::NotADirectory
    )
}

fn object_id(text: &str) -> Option<String> {
    let id = text.trim_end();
    let length = matches!(id.len(), 40 | 64);
    (length && id.bytes().all(|byte| byte.is_ascii_hexdigit())).then(|| id.to_owned())
}

/// `.git`, or what the file of that name in a linked work tree or submodule points to.
pub(super) fn git_dir(root: &Path) -> PathBuf {
    let dot_git = root.join(".git");
    let pointer = read(&dot_git).ok();
    match pointer.as_deref().and_then(|text| text.strip_prefix("gitdir: ")) {
        Some(target) => root.join(target.trim_end_matches('\n')),
        None => dot_git,
    }
}

pub(super) fn common_dir(git_dir: &Path) -> PathBuf {
    match read(&git_dir.join("commondir")) {
        Ok(relative) => git_dir.join(relative.trim_end_matches('\n')),
        Err(_) => git_dir.to_owned(),
    }
}
