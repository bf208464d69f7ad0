//! Hooks and configuration as they were before an agent ran.
//!
//! A hook that an agent plants would run in the next commit with the user's rights, and a changed
//! configuration can name commands too. The snapshot is a file, so that it outlives a kill -9.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};

use super::{Git, GitError};
use crate::paths::{remove_temporary, write_atomic};

/// A snapshot, and where it is stored.
#[derive(Clone, Debug)]
pub struct Guardian {
    common_dir: PathBuf,
    git_dir: PathBuf,
    entries: BTreeMap<String, Thing>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Thing {
    File { mode: u32, bytes: Vec<u8> },
    Link { target: PathBuf },
}

impl Guardian {
    /// Looks at hooks and configuration now and stores what it saw in `directory`.
    pub fn take(git: &Git, directory: &Path) -> Result<Self, GitError> {
        let mut guardian = Self::empty(git);
        guardian.entries = guardian.look()?;
        guardian.store(directory)?;
        Ok(guardian)
    }

    /// Stores the snapshot, for whoever comes after a kill.
    pub fn store(&self, directory: &Path) -> Result<(), GitError> {
        let path = directory.join(SNAPSHOT);
        let on_file = |source| GitError::File { path: path.clone(), source };
        let bytes = encode(&self.entries);
        // Usually nothing changed since the last time.
        if fs::read(&path).ok().as_deref() == Some(&bytes) {
            return Ok(());
        }
        fs::create_dir_all(directory).map_err(on_file)?;
        write(&path, &bytes).map_err(on_file)
    }

    /// The snapshot stored in `directory`, if there is one that can be read.
    pub fn open(git: &Git, directory: &Path) -> Result<Option<Self>, GitError> {
        let path = directory.join(SNAPSHOT);
        match fs::read(&path) {
            Ok(bytes) => Ok(decode(&bytes).map(|entries| Self { entries, ..Self::empty(git) })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(GitError::File { path, source }),
        }
    }

    /// What is not as it was, as names like `hooks/pre-commit`.
    pub fn compare(&self) -> Result<Vec<String>, GitError> {
        let now = self.look()?;
        let names: BTreeSet<&String> = now.keys().chain(self.entries.keys()).collect();
        Ok(names.into_iter().filter(|name| now.get(*name) != self.entries.get(*name)).cloned().collect())
    }

    /// Makes everything as it was and returns what was not, as names like `hooks/pre-commit`.
    pub fn compare_and_put_back(&self) -> Result<Vec<String>, GitError> {
        let now = self.look()?;
        let mut changed = Vec::new();
        // What is new goes first: it may be a link in the place of a directory that was there.
        for name in now.keys().filter(|name| !self.entries.contains_key(*name)) {
            let path = self.path_of(name);
            remove(&path).map_err(|source| GitError::File { path, source })?;
            changed.push(name.clone());
        }
        for (name, thing) in &self.entries {
            if now.get(name) != Some(thing) {
                self.put_back(name, thing)?;
                changed.push(name.clone());
            }
        }
        changed.sort_unstable();
        Ok(changed)
    }

    fn empty(git: &Git) -> Self {
        Self { common_dir: git.common_dir.clone(), git_dir: git.git_dir.clone(), entries: BTreeMap::new() }
    }

    fn path_of(&self, name: &str) -> PathBuf {
        match name.strip_prefix(WORKTREE) {
            Some(name) => self.git_dir.join(name),
            None => self.common_dir.join(name),
        }
    }

    fn look(&self) -> Result<BTreeMap<String, Thing>, GitError> {
        let mut seen = BTreeMap::new();
        for name in ["config", "hooks", "info/attributes"] {
            self.look_at(name, &mut seen)?;
        }
        self.look_at(&format!("{WORKTREE}config.worktree"), &mut seen)?;
        let hooks = match seen.get("config") {
            Some(Thing::File { bytes, .. }) => hooks_path_in(&String::from_utf8_lossy(bytes)),
            Some(Thing::Link { .. }) => hooks_path(&self.common_dir),
            None => None,
        };
        if let Some(name) = hooks.and_then(|path| self.name_inside(&path)) {
            self.look_at(&name, &mut seen)?;
        }
        Ok(seen)
    }

    /// A hooks directory in the work tree is the user's own source and guarded as such.
    fn name_inside(&self, hooks: &str) -> Option<String> {
        let root = self.common_dir.parent()?;
        let path = root.join(hooks);
        let name = path.strip_prefix(&self.common_dir).ok()?;
        let plain = name.components().all(|component| matches!(component, Component::Normal(_)));
        (plain && name.components().next().is_some()).then(|| name.to_str().map(str::to_owned))?
    }

    fn look_at(&self, name: &str, seen: &mut BTreeMap<String, Thing>) -> Result<(), GitError> {
        let path = self.path_of(name);
        let on_file = |source| GitError::File { path: path.clone(), source };
        let metadata = match fs::symlink_metadata(&path) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(on_file(error)),
        };
        if metadata.is_symlink() {
            let target = fs::read_link(&path).map_err(on_file)?;
            seen.insert(name.to_owned(), Thing::Link { target });
        } else if metadata.is_dir() {
            for entry in fs::read_dir(&path).map_err(on_file)? {
                let child = entry.map_err(on_file)?.file_name().to_string_lossy().into_owned();
                // Git itself never runs these.
                if !child.ends_with(".sample") {
                    self.look_at(&format!("{name}/{child}"), seen)?;
                }
            }
        } else if metadata.is_file() {
            let bytes = fs::read(&path).map_err(on_file)?;
            seen.insert(name.to_owned(), Thing::File { mode: metadata.permissions().mode() & 0o7777, bytes });
        }
        Ok(())
    }

    fn put_back(&self, name: &str, thing: &Thing) -> Result<(), GitError> {
        let path = self.path_of(name);
        let on_file = |source| GitError::File { path: path.clone(), source };
        // Also in place of a directory that is now a link, or a file that is now a directory.
        for ancestor in path.ancestors().skip(1).take_while(|path| **path != self.common_dir) {
            if ancestor.is_symlink() || ancestor.is_file() {
                remove(ancestor).map_err(on_file)?;
            }
        }
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(on_file)?;
        }
        if fs::symlink_metadata(&path).is_ok_and(|found| !found.is_file()) {
            remove(&path).map_err(on_file)?;
        }
        match thing {
            Thing::Link { target } => {
                remove(&path).map_err(on_file)?;
                symlink(target, &path).map_err(on_file)
            }
            Thing::File { mode, bytes } => {
                write(&path, bytes).map_err(on_file)?;
                fs::set_permissions(&path, fs::Permissions::from_mode(*mode)).map_err(on_file)
            }
        }
    }
}

const SNAPSHOT: &str = "git-guard";
/// Marks names that belong to this work tree rather than to the whole repository.
const WORKTREE: &str = "worktree:";

/// `core.hooksPath` as the repository's own configuration has it.
pub(super) fn hooks_path(common_dir: &Path) -> Option<String> {
    hooks_path_in(&fs::read_to_string(common_dir.join("config")).ok()?)
}

fn hooks_path_in(config: &str) -> Option<String> {
    let mut in_core = false;
    let mut found = None;
    for line in config.lines().map(str::trim) {
        if let Some(section) = line.strip_prefix('[') {
            in_core = section.split(']').next().is_some_and(|name| name.trim().eq_ignore_ascii_case("core"));
        }
        let assignment = line.rsplit(']').next().unwrap_or(line).split_once('=');
        match assignment {
            Some((name, value)) if in_core && name.trim().eq_ignore_ascii_case("hookspath") => {
                found = Some(value.trim().trim_matches('"').to_owned());
            }
            Some(_) | None => {}
        }
    }
    found
}

/// Also removes what a crash left of the same write: it is then made again, so it is due here.
fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    remove_temporary(path)?;
    write_atomic(path, bytes)
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

const HEADING: &[u8] = b"wiggum git guard 1\n";

/// Each field with its length before it, since names and content may hold any byte.
fn encode(entries: &BTreeMap<String, Thing>) -> Vec<u8> {
    let mut out = HEADING.to_vec();
    for (name, thing) in entries {
        let (kind, content) = match thing {
            Thing::File { mode, bytes } => (format!("file {mode:o}"), bytes.clone()),
            Thing::Link { target } => ("link".to_owned(), target.as_os_str().as_encoded_bytes().to_vec()),
        };
        for field in [name.as_bytes(), kind.as_bytes(), &content] {
            out.extend(format!("{}\n", field.len()).into_bytes());
            out.extend_from_slice(field);
        }
    }
    out.extend_from_slice(b"end\n");
    out
}

/// `None` for anything but a whole snapshot.
fn decode(bytes: &[u8]) -> Option<BTreeMap<String, Thing>> {
    use std::os::unix::ffi::OsStrExt;
    let mut rest = bytes.strip_prefix(HEADING)?;
    let mut entries = BTreeMap::new();
    while rest != b"end\n" {
        let name = String::from_utf8(field(&mut rest)?.to_vec()).ok()?;
        let kind = std::str::from_utf8(field(&mut rest)?).ok()?;
        let content = field(&mut rest)?;
        let thing = match kind.strip_prefix("file ") {
            Some(mode) => Thing::File { mode: u32::from_str_radix(mode, 8).ok()?, bytes: content.to_vec() },
            None => Thing::Link { target: PathBuf::from(std::ffi::OsStr::from_bytes(content)) },
        };
        entries.insert(name, thing);
    }
    Some(entries)
}

fn field<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let line_end = rest.iter().position(|byte| *byte == b'\n')?;
    let length: usize = std::str::from_utf8(&rest[..line_end]).ok()?.parse().ok()?;
    let start = line_end + 1;
    let field = rest.get(start..start.checked_add(length)?)?;
    *rest = &rest[start + length..];
    Some(field)
}
