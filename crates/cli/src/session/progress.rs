//! Did the repository change since the last stop? Read from files alone: where HEAD is, the index,
//! and the times and sizes of the work tree's files as far as they can be looked at in passing.

use std::collections::VecDeque;
use std::fs::{self, Metadata};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};
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
}

impl Mark {
    pub(crate) fn of(workspace: &Path) -> Self {
        let git = Git::new(workspace, None);
        let mut hasher = DefaultHasher::new();
        if let Some(head) = git.head_from_files() {
            (head.branch, head.commit).hash(&mut hasher);
        }
        if let Ok(index) = fs::metadata(git.git_dir().join("index")) {
            look(&index).hash(&mut hasher);
        }
        let (files, partial) = files(workspace);
        files.hash(&mut hasher);
        Self { hash: hasher.finish(), partial }
    }

    /// Has anything been done between the earlier mark and this one? Where the tree is too large to
    /// tell, an agent that used its tools is believed.
    pub(crate) fn moved_since(self, earlier: Self, used_tools: bool) -> bool {
        self.hash != earlier.hash || (self.partial && used_tools)
    }
}

/// A sum over the files, so that the order in which a directory lists them does not matter.
fn files(workspace: &Path) -> (u64, bool) {
    let (mut sum, mut count) = (0u64, 0);
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
                return (sum, true);
            }
            count += 1;
            let mut hasher = DefaultHasher::new();
            entry.path().hash(&mut hasher);
            entry.metadata().as_ref().map(look).ok().hash(&mut hasher);
            sum = sum.wrapping_add(hasher.finish());
        }
    }
    (sum, false)
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
