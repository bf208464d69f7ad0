//! Copies of the caches of package managers, and of the files beside them, which confined agents and checks fill in place of the user's: nothing
//! that they put there is ever run by a program of the user's.
//!
//! A copy is made once, of what is in the user's cache by then, and serves all checkouts of the user. Whoever wants
//! a new one removes it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use wiggum_workspace::paths::{FileLock, copy_tree, remove_tree};
use wiggum_workspace::sandbox::Mount;

/// What is larger is fetched again rather than copied.
const MOST_BYTES: u64 = 1 << 30;
const MOST_FILES: u64 = 200_000;

/// Directories of `~/.cache` that package managers write to. What else is too large to be copied is only read.
const OF_PACKAGES: [&str; 20] = [
    "Cypress",
    "bazel",
    "bun",
    "ccache",
    "composer",
    "deno",
    "go-build",
    "golangci-lint",
    "node",
    "node-gyp",
    "npm",
    "pip",
    "pnpm",
    "poetry",
    "pre-commit",
    "pypoetry",
    "sccache",
    "turbo",
    "uv",
    "yarn",
];

/// A cache of the user's, and the copy that is seen in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Copied {
    place: PathBuf,
    own: PathBuf,
}

impl Copied {
    /// `root` is where all copies lie. `place` leads through no link.
    pub(crate) fn of(root: &Path, place: PathBuf, home: Option<&Path>) -> Self {
        let inside = home.and_then(|home| place.strip_prefix(home.canonicalize().ok()?).ok());
        let name = inside.unwrap_or(&place).to_string_lossy().replace('/', "-");
        let own = root.join(name.trim_start_matches(['-', '.']));
        Self { place, own }
    }

    pub(crate) fn place(&self) -> &Path {
        &self.place
    }

    /// Does this place lie in the cache, and does no link in the copy lead elsewhere from there?
    pub(crate) fn has_place_for(&self, path: &Path) -> bool {
        let Ok(inside) = path.strip_prefix(&self.place) else { return false };
        let mut way = self.own.clone();
        let is_link = |part| {
            way.push(part);
            way.is_symlink()
        };
        inside != Path::new("") && !inside.components().any(is_link)
    }

    /// Makes the copy unless it is there, and says whether it did. Of what cannot be read there is none.
    pub(crate) fn make(&self) -> io::Result<bool> {
        if self.own.exists() {
            return Ok(false);
        }
        let Some(root) = self.own.parent() else { return Ok(false) };
        fs::create_dir_all(root)?;
        let _lock = FileLock::acquire(&root.join("lock"))?;
        // Somebody else may have made it meanwhile.
        if self.own.exists() {
            return Ok(false);
        }
        let half = self.own.with_added_extension("half");
        remove_tree(&half)?;
        if self.place.is_file() {
            copy_tree(&self.place, &half)?;
            return fs::rename(half, &self.own).map(|()| true);
        }
        fs::create_dir(&half)?;
        for entry in fs::read_dir(&self.place)? {
            let (from, name) = match entry {
                Ok(entry) => (entry.path(), entry.file_name()),
                Err(_) => continue,
            };
            // The copies themselves.
            if self.own.starts_with(&from) {
                continue;
            }
            let to = half.join(&name);
            if Size::of(&from).is_some() {
                match copy_tree(&from, &to) {
                    Err(error) if error.kind() == io::ErrorKind::StorageFull => return Err(error),
                    Err(_) => remove_tree(&to)?,
                    Ok(()) => {}
                }
            } else if !OF_PACKAGES.iter().any(|known| name == *known) {
                fs::create_dir(&to)?;
            }
        }
        fs::rename(half, &self.own)?;
        Ok(true)
    }

    /// What a confined program sees in the place of the user's cache.
    pub(crate) fn mounts(&self) -> Vec<Mount> {
        if !self.own.exists() {
            return Vec::new();
        }
        let mut all = vec![Mount { from: self.own.clone(), at: self.place.clone(), writable: true }];
        if self.place.ends_with(".cache") {
            let read = self.only_read().into_iter();
            all.extend(read.map(|path| Mount { from: path.clone(), at: path, writable: false }));
        }
        all
    }

    /// Directories that the copy has only a place for.
    fn only_read(&self) -> Vec<PathBuf> {
        let is_empty = |path: &Path| fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none());
        let is_directory = |path: &Path| fs::symlink_metadata(path).is_ok_and(|found| found.is_dir());
        let entries = fs::read_dir(&self.own).into_iter().flatten().flatten();
        let places = entries.filter(|entry| is_directory(&entry.path()) && is_empty(&entry.path()));
        places
            .filter(|entry| !OF_PACKAGES.iter().any(|known| entry.file_name() == *known))
            .map(|entry| self.place.join(entry.file_name()))
            .filter(|theirs| is_directory(theirs) && !is_empty(theirs) && !self.own.starts_with(theirs))
            .collect()
    }
}

/// What is left of the limits.
struct Size {
    bytes: u64,
    files: u64,
}

impl Size {
    /// Nothing where it is more than is copied.
    fn of(path: &Path) -> Option<Self> {
        let mut left = Self { bytes: MOST_BYTES, files: MOST_FILES };
        left.take(path)?;
        Some(left)
    }

    fn take(&mut self, path: &Path) -> Option<()> {
        let Ok(found) = fs::symlink_metadata(path) else { return Some(()) };
        self.files = self.files.checked_sub(1)?;
        if found.is_file() {
            self.bytes = self.bytes.checked_sub(found.len())?;
        } else if found.is_dir() {
            for entry in fs::read_dir(path).into_iter().flatten().flatten() {
                self.take(&entry.path())?;
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_made_once_and_has_a_place_for_what_is_too_large() {
        let base = tempfile::tempdir().unwrap();
        let home = base.path().canonicalize().unwrap();
        let cache = home.join(".cache");
        for dir in ["pip", "uv", "models", "wiggum/packages"] {
            fs::create_dir_all(cache.join(dir)).unwrap();
        }
        fs::write(cache.join("pip/wheel"), "w").unwrap();
        std::os::unix::fs::symlink("pip", cache.join("link")).unwrap();
        // Files with holes, which take no room.
        for name in ["models/large", "uv/large"] {
            fs::File::create(cache.join(name)).unwrap().set_len(MOST_BYTES + 1).unwrap();
        }
        let copied = Copied::of(&cache.join("wiggum/packages"), cache.clone(), Some(&home));
        assert!(copied.mounts().is_empty(), "nothing is mounted that is not there");
        assert!(copied.make().unwrap() && !copied.make().unwrap());
        let own = cache.join("wiggum/packages/cache");
        assert_eq!(fs::read_to_string(own.join("pip/wheel")).unwrap(), "w");
        assert!(own.join("link").is_symlink() && own.join("models").is_dir());
        assert!(
            !own.join("models/large").exists() && !own.join("uv").exists() && !own.join("wiggum").exists()
        );
        let mounts = copied.mounts();
        let models = cache.join("models");
        assert_eq!(
            mounts,
            [
                Mount { from: own.clone(), at: cache, writable: true },
                Mount { from: models.clone(), at: models, writable: false }
            ]
        );
        // An agent's own directory of that name is not hidden.
        fs::write(own.join("models/mine"), "").unwrap();
        assert_eq!(copied.mounts().len(), 1);
    }

    #[test]
    fn copies_have_the_names_of_what_they_are_copies_of() {
        let base = tempfile::tempdir().unwrap();
        let home = base.path().canonicalize().unwrap();
        let name = |place: PathBuf| Copied::of(Path::new("/p"), place, Some(&home)).own;
        assert_eq!(name(home.join(".cargo/registry")), Path::new("/p/cargo-registry"));
        assert_eq!(name("/srv/pip".into()), Path::new("/p/srv-pip"));
    }
}
