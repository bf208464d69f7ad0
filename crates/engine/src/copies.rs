//! Where there is no git: copies of what judges the work, as it was before the attempts at it, so that the same guards
//! hold there.
//!
//! They are of a moderate size, and renewed whenever a task was completed. Until then they are kept in the private state
//! as well, for the next run: what an attempt left in the tree is not what judges it then. While the former definition is in force, what it replaces lies in a directory
//! of the loop's, from which an engine after a crash puts it back.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use wiggum_core::definition::{self, Definition, Put, Tree};
use wiggum_core::event::Event;
use wiggum_core::ids::TaskId;
use wiggum_core::verdict::checks_for;
use wiggum_workspace::beneath;
use wiggum_workspace::git::{Change, Entry};
use wiggum_workspace::paths::{remove_tree, write_whole};

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
#[derive(Serialize, Deserialize)]
pub(crate) struct Copies {
    /// All files, by what tells one version from another.
    stamps: BTreeMap<String, Stamp>,
    texts: BTreeMap<String, Kept>,
    /// All files as the last run left them: what is another one since then is a person's.
    left: Option<BTreeMap<String, Stamp>>,
}

type Stamp = (u64, Option<SystemTime>);

#[derive(Serialize, Deserialize)]
struct Kept {
    text: String,
    mode: u32,
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
        let root = self.settings.workspace();
        let kept = Copies::read(&self.kept_copies()).map(|copies| copies.with_changes_of_people(root));
        self.copies = Some(kept.unwrap_or_else(|| Copies::take(root, &tree.files(), &named)));
        self.keep_copies();
    }

    /// The tree is left to people, who may change what judges the work.
    pub(crate) fn leave_copies(&mut self) {
        let root = self.settings.workspace();
        if let Some(copies) = &mut self.copies {
            copies.left = Some(stamps(root, &FilesNow::new(root).files()));
            self.keep_copies();
        }
    }

    /// A task was completed: what judges the next one is what is there now.
    pub(crate) fn forget_copies(&mut self) {
        if self.copies.take().is_some() {
            // One that stays is of what was there before, which is only stricter.
            drop(fs::remove_file(self.kept_copies()));
        }
    }

    fn kept_copies(&self) -> PathBuf {
        self.dir.loop_dir(self.journal.id).join("copies.json")
    }

    /// Without them the next run takes what it finds for what was there before.
    fn keep_copies(&mut self) {
        let Some(copies) = &self.copies else { return };
        let path = self.kept_copies();
        let kept = serde_json::to_vec(copies).map_err(io::Error::other);
        if let Err(error) = kept.and_then(|bytes| write_whole(&path, &bytes)) {
            let message = format!("what judges the work cannot be kept in {}: {error}", path.display());
            self.record(Event::Noticed { task: None, message });
        }
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
                (Put::AsBefore, Some(kept)) => write(root, path, kept.text.as_bytes(), Some(kept.mode)),
                (Put::AsBefore, None) | (Put::Younger, _) => Ok(()),
                (Put::Gone, _) => remove(root, path),
                (Put::Text(text), _) => {
                    let mode = fs::symlink_metadata(&place).ok().map(|found| mode(&found));
                    write(root, path, text.as_bytes(), mode)
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
        let mut copies = Self { stamps: BTreeMap::new(), texts: BTreeMap::new(), left: None };
        let mut left = MOST;
        for path in files {
            let Ok(found) = fs::symlink_metadata(root.join(path)) else { continue };
            copies.stamps.insert(path.clone(), stamp(&found));
            if !definition::may_judge(path) && !named.contains(path) {
                continue;
            }
            let Some(text) = read_text(&root.join(path)) else { continue };
            let Some(rest) = left.checked_sub(text.len()) else { continue };
            left = rest;
            copies.texts.insert(path.clone(), Kept { text, mode: mode(&found) });
        }
        copies
    }

    /// Those of an earlier run, if a task is still open that it worked on.
    fn read(path: &Path) -> Option<Self> {
        serde_json::from_slice(&beneath::bytes_of(path).ok()?).ok()
    }

    /// What people changed since the last run ended counts as it is now. After a kill nobody can tell them apart
    /// from the attempt.
    fn with_changes_of_people(mut self, root: &Path) -> Self {
        let Some(left) = self.left.take() else { return self };
        let now = stamps(root, &FilesNow::new(root).files());
        for path in now.keys().chain(left.keys()).filter(|path| now.get(*path) != left.get(*path)) {
            let place = root.join(path);
            match now.get(path) {
                Some(stamp) => drop(self.stamps.insert(path.clone(), *stamp)),
                None => drop(self.stamps.remove(path)),
            }
            let text = read_text(&place).zip(fs::symlink_metadata(&place).ok());
            match text.filter(|_| definition::may_judge(path) || self.texts.contains_key(path)) {
                Some((text, found)) => {
                    drop(self.texts.insert(path.clone(), Kept { text, mode: mode(&found) }))
                }
                None => drop(self.texts.remove(path)),
            }
        }
        self
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

fn stamps(root: &Path, files: &[String]) -> BTreeMap<String, Stamp> {
    let found = files.iter().filter_map(|path| {
        let found = fs::symlink_metadata(root.join(path)).ok()?;
        Some((path.clone(), stamp(&found)))
    });
    found.collect()
}

fn stamp(found: &fs::Metadata) -> Stamp {
    (found.len(), found.modified().ok())
}

fn write(root: &Path, path: &str, bytes: &[u8], mode: Option<u32>) -> io::Result<()> {
    beneath::replace(root, path, bytes).map_err(io::Error::other)?;
    mode.map_or(Ok(()), |mode| set_mode(&root.join(path), mode))
}

#[cfg(unix)]
fn mode(found: &fs::Metadata) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    found.permissions().mode()
}

#[cfg(unix)]
fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

/// Files have none there.
#[cfg(not(unix))]
fn mode(_: &fs::Metadata) -> u32 {
    0
}

#[cfg(not(unix))]
fn set_mode(_: &Path, _: u32) -> io::Result<()> {
    Ok(())
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
                let mode = mode(&fs::metadata(&kept)?);
                write(root, path, &fs::read(&kept)?, Some(mode))?;
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
