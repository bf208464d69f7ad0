//! `git status` without git, where the answer is beyond doubt: the work tree is exactly what the index
//! holds. Whatever looks different, unusual or unknown, git is asked.
//!
//! Known are the tree of HEAD, as the index that was committed, and what git ignores, as it said
//! itself. A file that is in neither is unknown. So a mistake here can only cost a process.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::fs::{self, DirEntry};
use std::path::Path;

use super::index::{FILE_KIND, Index, Tracked};
use super::status::{Change, Entry, Status};
use super::{Git, GitError};

/// How many entries are looked at before it is cheaper to ask.
const MAX_ENTRIES: usize = 20_000;

/// What is known of a repository between two questions to git.
#[derive(Debug, Default)]
pub struct Known {
    /// A commit, and an index with its very tree.
    head: Option<(String, Index)>,
    ignored: Option<HashSet<String>>,
}

impl Known {
    /// The index is what was just committed, and nobody touched it since.
    pub fn committed(&mut self, git: &Git, commit: &str) {
        self.head = Index::read(&git.index_path()).map(|index| (commit.to_owned(), index));
    }

    pub fn forget_head(&mut self) {
        self.head = None;
    }
}

impl Git {
    /// As [`Git::status`], by looking at the files alone where that is enough. Whether the paths
    /// `apart` changed since they were staged is not looked at.
    pub fn status_known(&self, known: &mut Known, apart: &[String]) -> Result<Status, GitError> {
        if let Some(status) = self.glance(known, apart) {
            return Ok(status);
        }
        let (status, ignored) = self.status_and_ignored()?;
        known.ignored = Some(ignored.into_iter().collect());
        Ok(status)
    }

    fn glance(&self, known: &Known, apart: &[String]) -> Option<Status> {
        let (commit, base) = known.head.as_ref()?;
        if self.head().ok()?.commit.as_ref() != Some(commit) {
            return None;
        }
        let index = Index::read(&self.index_path())?;
        let staged = difference(base, &index);
        // What is ignored may be another matter now.
        if staged.iter().any(|entry| entry.path.rsplit('/').next() == Some(".gitignore")) {
            return None;
        }
        let ignored = known.ignored.as_ref()?;
        let mut walk = Walk { index: &index, ignored, apart, seen: 0, found: 0 };
        walk.finds_what_was_staged(&self.root).then(|| Status { staged, ..Status::default() })
    }
}

/// HEAD against the index; both are sorted.
fn difference(base: &Index, index: &Index) -> Vec<Entry> {
    let (mut before, mut after) = (base.iter().peekable(), index.iter().peekable());
    let mut changes = Vec::new();
    loop {
        let order = match (before.peek(), after.peek()) {
            (None, None) => return changes,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(old), Some(new)) => old.path.cmp(new.path),
        };
        let old = if order == Ordering::Greater { None } else { before.next() };
        let new = if order == Ordering::Less { None } else { after.next() };
        changes.extend(change(old, new));
    }
}

fn change(old: Option<Tracked<'_>>, new: Option<Tracked<'_>>) -> Option<Entry> {
    let change = match (&old, &new) {
        (Some(old), Some(new)) if old.same_content(new) => return None,
        (Some(old), Some(new)) if (old.mode() ^ new.mode()) & FILE_KIND != 0 => Change::TypeChanged,
        (Some(_), Some(_)) => Change::Modified,
        (Some(_), None) => Change::Deleted,
        (None, _) => Change::Added,
    };
    let newest = new.or(old)?;
    Some(Entry {
        path: newest.path.to_owned(),
        change,
        blob_before: old.map(|old| old.blob()),
        blob_after: new.map(|new| new.blob()),
        mode: newest.mode(),
    })
}

struct Walk<'a> {
    index: &'a Index,
    ignored: &'a HashSet<String>,
    apart: &'a [String],
    /// Entries of directories.
    seen: usize,
    /// Files of the index.
    found: usize,
}

impl Walk<'_> {
    fn finds_what_was_staged(&mut self, root: &Path) -> bool {
        let apart = self.apart.iter().filter(|path| self.index.get(path).is_some()).count();
        self.look_into(root, "").is_some() && self.found + apart == self.index.len()
    }

    /// Nothing as soon as there is a doubt.
    fn look_into(&mut self, directory: &Path, prefix: &str) -> Option<()> {
        for entry in fs::read_dir(directory).ok()? {
            let entry = entry.ok()?;
            self.seen += 1;
            if self.seen > MAX_ENTRIES {
                return None;
            }
            let name = entry.file_name().into_string().ok()?;
            if name == ".git" {
                // Further down it is a repository inside this one.
                if prefix.is_empty() { continue } else { return None }
            }
            self.look_at(&entry, format!("{prefix}{name}"))?;
        }
        Some(())
    }

    fn look_at(&mut self, entry: &DirEntry, mut path: String) -> Option<()> {
        if entry.file_type().ok()?.is_dir() {
            path.push('/');
            return if self.ignored.contains(&path) {
                Some(())
            } else {
                self.look_into(&entry.path(), &path)
            };
        }
        if self.apart.contains(&path) {
            return Some(());
        }
        let Some(tracked) = self.index.get(&path) else { return self.ignored.contains(&path).then_some(()) };
        self.found += 1;
        self.index.holds(&tracked, &entry.metadata().ok()?).then_some(())
    }
}
