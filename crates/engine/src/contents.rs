//! Which files of a workspace get content that they did not have before.
//!
//! Whoever touches a file, writes the same bytes again or copies one to another name changes nothing. Files are read
//! only where their size or time has changed since the last look, and of large ones only both ends.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use wiggum_workspace::beneath::{self, Links};

use crate::state_dir::StateDir;

/// How many files a look goes through: more than most workspaces have with all that builds leave there, and few enough
/// to take a second or two every quarter of an hour.
const LOOKED_AT: usize = 200_000;

/// How much is read of each end of a file.
const READ: u64 = 64 * 1024;

/// How much one look reads in all. It ends with the first new content, so only a workspace in which everything was
/// touched, and nothing changed, comes near to it.
const READ_IN_ALL: u64 = 512 * 1024 * 1024;

#[derive(Default)]
pub(crate) struct Contents {
    /// By the hash of the path. Empty before the first look.
    files: HashMap<u64, Seen>,
    /// Everything that was read, by its hash.
    known: HashSet<u64>,
    /// How many looks found something new.
    changes: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Seen {
    size: u64,
    modified: Option<SystemTime>,
    /// The hash of its content, where that was read.
    digest: Option<u64>,
}

impl Contents {
    /// Looks at all files but those in `apart`. Another number than the last time means that there is new content.
    pub(crate) fn look(&mut self, root: &Path, apart: &[PathBuf]) -> u64 {
        let is_first = self.files.is_empty();
        let (mut found, mut left) = (false, READ_IN_ALL);
        for (path, mut seen) in list(root, apart) {
            let key = hash_of(&path);
            let before = self.files.get(&key).copied();
            if before.is_some_and(|before| (before.size, before.modified) == (seen.size, seen.modified)) {
                continue;
            }
            // After the first find the rest would change nothing.
            if !is_first && !found && left > 0 {
                seen.digest = digest(&path, seen.size).ok();
                left = left.saturating_sub(seen.size.min(2 * READ));
                found = self.is_new(before, seen);
            }
            self.files.insert(key, seen);
        }
        self.changes += u64::from(found);
        self.changes
    }

    fn is_new(&mut self, before: Option<Seen>, seen: Seen) -> bool {
        let is_unknown = seen.digest.is_some_and(|digest| self.known.insert(digest));
        // It may well have been the same: it is known from now on.
        let only_touched = before.is_some_and(|before| before.size == seen.size && before.digest.is_none());
        is_unknown && !only_touched && seen.size > 0
    }
}

/// The files below a directory. Nothing is followed out of it.
fn list(root: &Path, apart: &[PathBuf]) -> Vec<(PathBuf, Seen)> {
    let (mut files, mut todo) = (Vec::new(), vec![root.to_owned()]);
    while let Some(dir) = todo.pop() {
        let Ok(entries) = fs::read_dir(&dir) else { continue };
        for entry in entries.flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            if name == StateDir::NAME || name == ".git" || apart.contains(&path) {
                continue;
            }
            let Ok(data) = entry.metadata() else { continue };
            if data.is_dir() {
                todo.push(path);
            } else if data.is_file() {
                files.push((path, Seen { size: data.len(), modified: data.modified().ok(), digest: None }));
            }
            if files.len() == LOOKED_AT {
                return files;
            }
        }
    }
    files
}

fn digest(path: &Path, size: u64) -> io::Result<u64> {
    // It may have become something else since it was listed.
    let mut file = beneath::open_plain(path, Links::Refuse)?;
    let mut bytes = Vec::new();
    (&mut file).take(READ).read_to_end(&mut bytes)?;
    if size > READ {
        file.seek(SeekFrom::Start((size - READ).max(READ)))?;
        file.take(READ).read_to_end(&mut bytes)?;
    }
    Ok(hash_of(&(size, bytes)))
}

fn hash_of(what: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    struct Place {
        dir: tempfile::TempDir,
        contents: Contents,
        changes: u64,
        clock: u64,
    }

    impl Place {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let mut place = Self { dir, contents: Contents::default(), changes: 0, clock: 0 };
            place.write("verify.sh", "exit 1\n");
            place.write("old.txt", "old\n");
            assert!(!place.changed(), "the first look has nothing to compare with");
            place
        }

        /// Each time is another one.
        fn write(&mut self, name: &str, text: &str) {
            let path = self.dir.path().join(name);
            fs::write(&path, text).unwrap();
            self.clock += 1;
            let at = SystemTime::UNIX_EPOCH + Duration::from_secs(self.clock);
            fs::File::options().append(true).open(path).unwrap().set_modified(at).unwrap();
        }

        fn changed(&mut self) -> bool {
            let changes = self.contents.look(self.dir.path(), &[self.dir.path().join("TODO.md")]);
            std::mem::replace(&mut self.changes, changes) != changes
        }
    }

    #[test]
    fn touching_a_file_or_writing_the_same_again_is_no_change() {
        let mut place = Place::new();
        for _ in 0..3 {
            place.write("verify.sh", "exit 1\n");
            place.write("TODO.md", &format!("- [ ] {}\n", place.clock));
            assert!(!place.changed());
        }
    }

    #[test]
    fn copies_under_ever_new_names_are_no_change_but_the_first() {
        let mut place = Place::new();
        place.write("copy 0", "exit 1\n");
        place.changed();
        for number in 1..4 {
            fs::remove_file(place.dir.path().join(format!("copy {}", number - 1))).unwrap();
            place.write(&format!("copy {number}"), "exit 1\n");
            place.write(&format!("empty {number}"), "");
            assert!(!place.changed());
        }
    }

    #[test]
    fn new_content_is_a_change_wherever_it_is() {
        let mut place = Place::new();
        place.write("target.o", "compiled\n");
        assert!(place.changed());
        place.write("old.txt", "new and longer\n");
        assert!(place.changed());
        place.write("old.txt", "NEW AND LONGER\n");
        assert!(place.changed());
        place.write("old.txt", "new and longer\n");
        assert!(!place.changed(), "that was there before");
        let large = |end: &str| "x".repeat(300_000) + end;
        place.write("large", &large("one"));
        assert!(place.changed());
        place.write("large", &large("two"));
        assert!(place.changed());
    }
}
