//! Did the repository change since the last stop? Read from files alone: where HEAD is, the index,
//! and the times and sizes of the work tree's files as far as they can be looked at in passing.

use std::collections::VecDeque;
use std::fs::{self, DirEntry, Metadata};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};
use wiggum_core::weaken::is_test_path;
use wiggum_workspace::git::Git;

/// Files that are looked at before we stop looking: a few milliseconds of an agent's time.
const MOST_FILES: usize = 2_000;

/// Where builds and tools put what is no work of the agent's.
const NOT_WORK: [&str; 5] = ["target", "node_modules", "__pycache__", "venv", "dist"];

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Mark {
    hash: u64,
    /// The tree is larger than what was looked at, so an equal mark proves nothing.
    partial: bool,
    /// Parts of the whole, each of its own. Marks of earlier versions have none.
    #[serde(default)]
    parts: Option<Parts>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Parts {
    /// Branch and commit.
    head: u64,
    files: u64,
    /// The files that hold no tests.
    product: u64,
}

impl Mark {
    pub(crate) fn of(workspace: &Path) -> Self {
        let git = Git::new(workspace, None);
        let head = git.head_from_files().map(|head| (head.branch, head.commit));
        let index = fs::metadata(git.git_dir().join("index")).ok();
        let Files { all, product, partial } = Files::of(workspace);
        let parts = Parts { head: hash(&head), files: all, product };
        Self { hash: hash(&(parts, index.as_ref().map(look))), partial, parts: Some(parts) }
    }

    /// Has anything been done between the earlier mark and this one? Where the tree is too large to
    /// tell, an agent that used its tools is believed.
    pub(crate) fn moved_since(self, earlier: Self, used_tools: bool) -> bool {
        self.hash != earlier.hash || (self.partial && used_tools)
    }

    /// Was a commit made, or another one checked out?
    pub(crate) fn committed_since(self, earlier: Self) -> bool {
        self.compared(earlier, |now, before| now.head != before.head)
    }

    /// Were tests changed, and nothing else? Nobody knows in a tree too large to look at.
    pub(crate) fn only_tests_since(self, earlier: Self) -> bool {
        let whole = !self.partial && !earlier.partial;
        whole
            && self
                .compared(earlier, |now, before| now.files != before.files && now.product == before.product)
    }

    fn compared(self, earlier: Self, compare: impl FnOnce(Parts, Parts) -> bool) -> bool {
        self.parts.zip(earlier.parts).is_some_and(|(now, before)| compare(now, before))
    }
}

/// Sums over files, so that the order in which a directory lists them does not matter.
#[derive(Default)]
struct Files {
    all: u64,
    product: u64,
    partial: bool,
}

impl Files {
    fn of(workspace: &Path) -> Self {
        let (mut files, mut count) = (Self::default(), 0);
        let mut directories = VecDeque::from([workspace.to_owned()]);
        while let Some(directory) = directories.pop_front() {
            for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
                let name = entry.file_name();
                let Ok(kind) = entry.file_type() else { continue };
                if kind.is_dir() {
                    let skipped =
                        name.as_encoded_bytes().starts_with(b".") || NOT_WORK.iter().any(|not| name == *not);
                    if !skipped {
                        directories.push_back(entry.path());
                    }
                    continue;
                }
                if count == MOST_FILES {
                    return Self { partial: true, ..files };
                }
                count += 1;
                files.add(workspace, &entry);
            }
        }
        files
    }

    fn add(&mut self, workspace: &Path, entry: &DirEntry) {
        let path = entry.path();
        let hash = hash(&(&path, entry.metadata().as_ref().map(look).ok()));
        self.all = self.all.wrapping_add(hash);
        let inside = path.strip_prefix(workspace).unwrap_or(&path);
        if !is_test_path(&inside.to_string_lossy()) {
            self.product = self.product.wrapping_add(hash);
        }
    }
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

fn look(metadata: &Metadata) -> (u64, Option<u128>) {
    let modified = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    (metadata.len(), modified.map(|time| time.as_nanos()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_file_is_progress_and_a_build_is_not() {
        let base = tempfile::tempdir().unwrap();
        let root = base.path();
        fs::create_dir_all(root.join("src")).unwrap();
        fs::create_dir_all(root.join("target")).unwrap();
        fs::write(root.join("src/a"), "one").unwrap();
        let first = Mark::of(root);
        assert!(!Mark::of(root).moved_since(first, true));
        fs::write(root.join("target/out"), "x").unwrap();
        assert!(!Mark::of(root).moved_since(first, true));
        fs::write(root.join("src/a"), "longer").unwrap();
        assert!(Mark::of(root).moved_since(first, false));
    }

    #[test]
    fn a_change_of_tests_alone_is_told_from_others() {
        let base = tempfile::tempdir().unwrap();
        let root = base.path();
        fs::create_dir_all(root.join("tests")).unwrap();
        fs::write(root.join("a.rs"), "one").unwrap();
        let first = Mark::of(root);
        assert!(!Mark::of(root).only_tests_since(first), "nothing changed");
        fs::write(root.join("tests/a.rs"), "one").unwrap();
        let tests = Mark::of(root);
        assert!(tests.only_tests_since(first));
        fs::write(root.join("a.rs"), "other").unwrap();
        assert!(!Mark::of(root).only_tests_since(first) && !Mark::of(root).only_tests_since(tests));
        let old = Mark { parts: None, ..first };
        assert!(tests.moved_since(old, false) && !tests.only_tests_since(old) && !tests.committed_since(old));
    }

    #[test]
    fn a_tree_too_large_to_look_at_leaves_the_benefit_of_the_doubt() {
        let base = tempfile::tempdir().unwrap();
        for n in 0..=MOST_FILES {
            fs::write(base.path().join(n.to_string()), "").unwrap();
        }
        let mark = Mark::of(base.path());
        assert!(mark.partial);
        assert!(mark.moved_since(mark, true));
        assert!(!mark.moved_since(mark, false));
    }
}
