//! Where there is no git: copies of what judges the work, as it was before the attempts at it, so that the same guards
//! hold there.
//!
//! They are in memory, of a moderate size, and renewed whenever a task was completed. After a crash of the engine there
//! are none for the attempt under way. While the former definition is in force, what it replaces lies in a directory
//! of the loop's, from which an engine after a crash puts it back.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Permissions};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use wiggum_core::definition::{self, Definition, Put, Tree};
use wiggum_core::ids::TaskId;
use wiggum_core::verdict::checks_for;
use wiggum_workspace::beneath;
use wiggum_workspace::git::{Change, Entry};
use wiggum_workspace::paths::remove_tree;

use crate::engine::Engine;
use crate::error::EngineError;
use crate::former::{FilesNow, read_text, remove};

/// What is kept in memory, all together. Tests of large projects have a few megabytes.
const MOST: usize = 64 * 1024 * 1024;

/// How git writes a plain file.
const PLAIN: u32 = 0o100_644;

/// The list of what lies aside; written last, so that it is whole if it is there.
const LIST: &str = "list";

/// What judges the work, as it was.
pub(crate) struct Copies {
    /// All files, by what tells one version from another.
    stamps: BTreeMap<String, Stamp>,
    texts: BTreeMap<String, Kept>,
}

type Stamp = (u64, Option<SystemTime>);

struct Kept {
    text: String,
    permissions: Permissions,
}

impl Engine<'_> {
    /// Keeps copies before an agent works where no git does.
    pub(crate) fn note_copies(&mut self, task: &TaskId) {
        if self.git.is_some() || self.copies.is_some() {
            return;
        }
        let Some(entry) = self.journal.state.task(task) else { return };
        let checks = checks_for(&self.journal.state.policy, &entry.spec);
        let tree = FilesNow::new(self.settings.workspace());
        let definition = Definition::of(checks.iter().map(|check| check.command.as_str()), &tree);
        let named: BTreeSet<String> = definition.files().map(str::to_owned).collect();
        self.copies = Some(Copies::take(self.settings.workspace(), &tree.files(), &named));
    }

    /// What changed since the copies were made, as git would tell it.
    pub(crate) fn changed_without_git(&self) -> Vec<Entry> {
        let Some(copies) = &self.copies else { return Vec::new() };
        let root = self.settings.workspace();
        let apart = self.settings.no_work();
        let mut changed = copies.compare(root, &FilesNow::new(root).files());
        changed.retain(|entry| !apart.contains(&root.join(&entry.path)));
        changed
    }

    /// Puts the former definition in place, and what it replaces aside.
    pub(crate) fn put_copies_in_place(&self) -> Result<(), EngineError> {
        let root = self.settings.workspace();
        let aside = self.aside();
        let on_path = |path: &Path| {
            let path = path.to_owned();
            move |source| EngineError::Write { path, source }
        };
        let files = &self.redefinition.former.files;
        // By its age a file is known again here.
        let files: Vec<&(String, Put)> = files.iter().filter(|(_, put)| *put != Put::Younger).collect();
        set_aside(root, &aside, files.iter().map(|(path, _)| path.as_str())).map_err(on_path(&aside))?;
        for (path, put) in files {
            let place = root.join(path);
            let kept = self.copies.as_ref().and_then(|copies| copies.texts.get(path));
            let done = match (put, kept) {
                (Put::AsBefore, Some(kept)) => {
                    write(root, path, kept.text.as_bytes(), Some(&kept.permissions))
                }
                (Put::AsBefore, None) | (Put::Younger, _) => Ok(()),
                (Put::Gone, _) => remove(root, path),
                (Put::Text(text), _) => {
                    let permissions = fs::symlink_metadata(&place).ok().map(|found| found.permissions());
                    write(root, path, text.as_bytes(), permissions.as_ref())
                }
            };
            done.map_err(on_path(&place))?;
        }
        Ok(())
    }

    /// The tree is the attempt's again, also after a crash.
    pub(crate) fn put_copies_away(&self) -> Result<(), EngineError> {
        let aside = self.aside();
        if self.git.is_some() || !aside.join(LIST).exists() {
            return Ok(());
        }
        let on_path = |source| EngineError::Write { path: aside.clone(), source };
        bring_back(self.settings.workspace(), &aside).map_err(on_path)
    }

    fn aside(&self) -> PathBuf {
        self.dir.guard_dir(self.journal.id).join("replaced")
    }
}

impl Copies {
    fn take(root: &Path, files: &[String], named: &BTreeSet<String>) -> Self {
        let mut copies = Self { stamps: BTreeMap::new(), texts: BTreeMap::new() };
        let mut left = MOST;
        for path in files {
            let Ok(found) = fs::symlink_metadata(root.join(path)) else { continue };
            copies.stamps.insert(path.clone(), (found.len(), found.modified().ok()));
            if !definition::may_judge(path) && !named.contains(path) {
                continue;
            }
            let Some(text) = read_text(&root.join(path)) else { continue };
            let Some(rest) = left.checked_sub(text.len()) else { continue };
            left = rest;
            copies.texts.insert(path.clone(), Kept { text, permissions: found.permissions() });
        }
        copies
    }

    /// What a file said, if a copy of it was made.
    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.texts.get(path).map(|kept| kept.text.as_str())
    }

    fn compare(&self, root: &Path, files: &[String]) -> Vec<Entry> {
        let mut changed = Vec::new();
        let mut note = |path: &str, change| {
            let path = path.to_owned();
            changed.push(Entry { path, change, blob_before: None, blob_after: None, mode: PLAIN });
        };
        for path in files {
            let Some(stamp) = self.stamps.get(path) else {
                note(path, Change::Added);
                continue;
            };
            let place = root.join(path);
            let Ok(found) = fs::symlink_metadata(&place) else { continue };
            let is_other = match self.text(path) {
                // Times can be set; what it says cannot be.
                Some(text) => read_text(&place).as_deref() != Some(text),
                None => (found.len(), found.modified().ok()) != *stamp,
            };
            if is_other {
                note(path, Change::Modified);
            }
        }
        let gone = self.stamps.keys().filter(|path| files.binary_search(path).is_err());
        gone.for_each(|path| note(path, Change::Deleted));
        changed
    }
}

fn write(root: &Path, path: &str, bytes: &[u8], permissions: Option<&Permissions>) -> io::Result<()> {
    beneath::replace(root, path, bytes).map_err(io::Error::other)?;
    match permissions {
        Some(permissions) => fs::set_permissions(root.join(path), permissions.clone()),
        None => Ok(()),
    }
}

#[cfg(unix)]
fn link(target: PathBuf, place: PathBuf) -> io::Result<()> {
    std::os::unix::fs::symlink(target, place)
}

#[cfg(not(unix))]
fn link(_: PathBuf, _: PathBuf) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Copies what lies at these paths: files as they are, links by where they lead.
fn set_aside<'a>(root: &Path, aside: &Path, paths: impl Iterator<Item = &'a str>) -> io::Result<()> {
    if aside.exists() {
        remove_tree(aside)?;
    }
    fs::create_dir_all(aside)?;
    let mut list = String::new();
    for (number, path) in paths.filter(|path| !path.contains('\n')).enumerate() {
        let place = root.join(path);
        let kind = match fs::symlink_metadata(&place) {
            Ok(found) if found.is_symlink() => {
                link(fs::read_link(&place)?, aside.join(number.to_string()))?;
                "link"
            }
            Ok(found) if found.is_file() => {
                fs::copy(&place, aside.join(number.to_string()))?;
                "file"
            }
            Ok(_) | Err(_) => "none",
        };
        list.push_str(&format!("{number} {kind} {path}\n"));
    }
    fs::write(aside.join(LIST), list)
}

fn bring_back(root: &Path, aside: &Path) -> io::Result<()> {
    for line in fs::read_to_string(aside.join(LIST))?.lines() {
        let mut words = line.splitn(3, ' ');
        let (Some(number), Some(kind), Some(path)) = (words.next(), words.next(), words.next()) else {
            continue;
        };
        let kept = aside.join(number);
        match kind {
            "file" => {
                let permissions = fs::metadata(&kept)?.permissions();
                write(root, path, &fs::read(&kept)?, Some(&permissions))?;
            }
            "link" => {
                remove(root, path)?;
                if let Some(parent) = root.join(path).parent() {
                    fs::create_dir_all(parent)?;
                }
                link(fs::read_link(&kept)?, root.join(path))?;
            }
            _ => remove(root, path)?,
        }
    }
    remove_tree(aside)
}
