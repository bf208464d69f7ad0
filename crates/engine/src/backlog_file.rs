//! The backlog as a file: read again when it changed, edited under a lock, written whole or not at
//! all. What is in it is the business of `wiggum-backlog`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use sha2::{Digest, Sha256};
use wiggum_backlog::{Backlog, Dialect, EditError, Problems, Reading};
use wiggum_core::event::Event;
use wiggum_core::ids::TaskId;
use wiggum_core::redact;
use wiggum_core::state::Loop;
use wiggum_core::task::{FileStatus, Task};
use wiggum_core::tasks::TaskEntry;
use wiggum_core::text::hex;
use wiggum_workspace::beneath::{self, Links};
use wiggum_workspace::paths::{FileLock, Replaced, real, remove_temporary, write_atomic_after, write_whole};

/// A hundred thousand tasks take less.
const MOST: usize = 256 * 1024 * 1024;

#[derive(Debug, thiserror::Error)]
pub enum BacklogError {
    #[error("cannot read the backlog {path}")]
    Read { path: PathBuf, source: io::Error },
    #[error("cannot write the backlog {path}")]
    Write { path: PathBuf, source: io::Error },
    #[error("cannot lock {path}")]
    Lock { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Problems(#[from] Problems),
    #[error(transparent)]
    Edit(#[from] EditError),
}

#[derive(Debug)]
pub struct BacklogFile {
    path: PathBuf,
    /// How messages call it.
    name: String,
    lock: PathBuf,
    /// Where the file really was when it was read first. A link that somebody puts in its place later leads
    /// elsewhere, and nothing is read or written there.
    place: Option<PathBuf>,
    stamp: Option<Stamp>,
    backlog: Option<Backlog>,
    /// Has the loop been told of everything in what was read last?
    taken_in: bool,
    /// If not: the version before, of which it was told everything.
    known: Option<Backlog>,
    /// The task of which the file says that somebody works on it, if we wrote that.
    pub(crate) in_progress: Option<TaskId>,
}

/// What tells one version of a file from another without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    modified: Option<SystemTime>,
    length: u64,
    node: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refresh {
    Unchanged,
    Changed,
}

impl BacklogFile {
    pub fn new(path: impl Into<PathBuf>, name: impl Into<String>, lock: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            name: name.into(),
            lock: lock.into(),
            place: None,
            stamp: None,
            backlog: None,
            taken_in: false,
            known: None,
            in_progress: None,
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What was read last.
    pub fn backlog(&self) -> Option<&Backlog> {
        self.backlog.as_ref()
    }

    /// The loop knows what is in the file now.
    pub fn take_in(&mut self) {
        self.taken_in = true;
        self.known = None;
    }

    /// The last version of which the loop was told everything, by this very process.
    pub(crate) fn last_known(&self) -> Option<&Backlog> {
        if self.taken_in { self.backlog.as_ref() } else { self.known.as_ref() }
    }

    /// Is the file the one read last, with nothing in it the loop does not know? Costs one look at
    /// the file, however long it is.
    pub fn is_known(&self) -> bool {
        let same = |stamp| self.stamp == Some(stamp);
        self.taken_in && self.backlog.is_some() && self.look().is_ok_and(same)
    }

    /// Reads the file again if it is not the one read last. It counts as changed until it is taken
    /// in, whoever read it first: an edit, or the process that starts. A file in which nothing is
    /// recognised is refused.
    pub fn refresh(&mut self) -> Result<Refresh, BacklogError> {
        self.read()?;
        if let Some(backlog) = &self.backlog {
            backlog.recognised()?;
        }
        Ok(if self.taken_in { Refresh::Unchanged } else { Refresh::Changed })
    }

    /// As [`BacklogFile::refresh`], whatever is in it.
    pub(crate) fn read(&mut self) -> Result<(), BacklogError> {
        let stamp = self.look()?;
        if self.stamp == Some(stamp) && self.backlog.is_some() {
            return Ok(());
        }
        let text = self.text().map_err(|source| self.cannot_read(source))?;
        let next = match &self.backlog {
            Some(backlog) if backlog.text() == text => None,
            Some(backlog) => Some(backlog.reread(text)?),
            None => Some(self.parse(text)?),
        };
        if next.is_some() {
            let former = std::mem::replace(&mut self.backlog, next);
            if self.taken_in {
                self.known = former;
            }
            self.taken_in = false;
        }
        self.stamp = Some(stamp);
        Ok(())
    }

    fn parse(&self, text: String) -> Result<Backlog, Problems> {
        let tag = self.current_tag();
        Backlog::parse_as(&self.name, text, Reading { tag: tag.as_deref(), keep: None })
    }

    /// The list that is current in Task Master's own state, where this is its file.
    fn current_tag(&self) -> Option<String> {
        let folder = self.path.parent()?.parent()?;
        folder.file_name().filter(|name| *name == ".taskmaster")?;
        let state = beneath::text_of(&folder.join("state.json")).ok()?;
        let state: serde_json::Value = serde_json::from_str(&state).ok()?;
        Some(state.get("currentTag")?.as_str()?.to_owned())
    }

    /// Reads boxes as the tasks of a file whose headings are tasks now, where that is what the loop knows of it: older
    /// versions knew no headings.
    pub(crate) fn read_boxes_of(&mut self, state: &Loop) {
        let Some(backlog) = self.backlog.as_ref().filter(|backlog| backlog.dialect() == Dialect::Headings)
        else {
            return;
        };
        let known =
            |read: &Backlog| read.tasks().iter().filter(|task| state.task(&task.id).is_some()).count();
        let reading = Reading { tag: None, keep: Some(Dialect::Markdown) };
        let Ok(boxes) = Backlog::parse_as(&self.name, backlog.text(), reading) else { return };
        if known(&boxes) > known(backlog) {
            self.backlog = Some(boxes);
        }
    }

    /// Reads boxes `[-]` as skipped where the loop knows that they are: older versions wrote them so.
    pub fn read_dashes_of(&mut self, state: &Loop) {
        if let Some(backlog) = &mut self.backlog {
            backlog.read_dashes_as_skipped(&|id| state.task(id).is_some_and(TaskEntry::is_known_skipped));
        }
    }

    /// Changes the newest version of the file without waiting for the disk: for what is only good to know. The
    /// change is lost with the power, and so may be the file's new content.
    pub(crate) fn edit_loosely(
        &mut self,
        change: impl FnOnce(&mut Backlog) -> Result<(), EditError>,
    ) -> Result<(), BacklogError> {
        let _lock = self.lock()?;
        self.read()?;
        let Some(mut backlog) = self.backlog.take() else { return Ok(()) };
        let old = backlog.text().to_owned();
        if let Err(error) = change(&mut backlog) {
            self.backlog = Some(backlog.reread(old)?);
            return Err(error.into());
        }
        let is_new = backlog.text() != old;
        let written = if is_new { write_whole(&self.path, backlog.text().as_bytes()) } else { Ok(()) };
        self.backlog = Some(backlog);
        written.map_err(|source| BacklogError::Write { path: self.path.clone(), source })?;
        self.stamp = Some(self.look()?);
        Ok(())
    }

    /// Changes the newest version of the file, alone.
    pub fn edit<T>(
        &mut self,
        change: impl FnOnce(&mut Backlog) -> Result<T, EditError>,
    ) -> Result<T, BacklogError> {
        let (result, replaced) = self.edit_after(change, || true)?;
        self.sync(replaced.as_ref())?;
        Ok(result)
    }

    /// Waits until the disk knows of an edit.
    pub(crate) fn sync(&self, replaced: Option<&Replaced>) -> Result<(), BacklogError> {
        let synced = replaced.map_or(Ok(()), Replaced::sync);
        synced.map_err(|source| BacklogError::Write { path: self.path.clone(), source })
    }

    /// As [`BacklogFile::edit`]; `before` is done before the change can be seen, and says whether it
    /// may be. Where the file cannot be read or the change is refused, it is not done at all.
    pub(crate) fn edit_after<T>(
        &mut self,
        change: impl FnOnce(&mut Backlog) -> Result<T, EditError>,
        before: impl FnOnce() -> bool,
    ) -> Result<(T, Option<Replaced>), BacklogError> {
        let _lock = self.lock()?;
        self.read()?;
        let Some(mut backlog) = self.backlog.take() else {
            return Err(self.cannot_read(io::ErrorKind::NotFound.into()));
        };
        let old = backlog.text().to_owned();
        let result = change(&mut backlog);
        let written = match &result {
            Ok(_) if backlog.text() != old => self.write(backlog.text(), before).map(Some),
            Ok(_) => {
                before();
                Ok(None)
            }
            // A refused edit may have left the copy in memory half done.
            Err(_) => {
                self.backlog = Some(backlog.reread(old)?);
                return Ok((result?, None));
            }
        };
        self.backlog = Some(backlog);
        let replaced = written?;
        Ok((result?, replaced))
    }

    /// Puts a known good text back in place of what is there, which is returned.
    pub fn put_back(&mut self, good: Backlog) -> Result<Vec<u8>, BacklogError> {
        let _lock = self.lock()?;
        let found = beneath::read_plain(&self.path, Links::Refuse, MOST).unwrap_or_default();
        self.clear_place().map_err(|source| BacklogError::Write { path: self.path.clone(), source })?;
        let replaced = self.write(good.text(), || true)?;
        self.sync(Some(&replaced))?;
        self.backlog = Some(good);
        Ok(found)
    }

    /// Removes what a crash in the middle of a write left beside the file.
    pub fn remove_temporary(&self) -> Result<(), BacklogError> {
        let _lock = self.lock()?;
        remove_temporary(&self.path).map_err(|source| BacklogError::Write { path: self.path.clone(), source })
    }

    fn text(&mut self) -> io::Result<String> {
        let place = real(&self.path).map_err(io::Error::other)?;
        if self.place.as_ref().is_some_and(|known| *known != place) {
            return Err(io::Error::other("it is not where it was: a link leads elsewhere"));
        }
        let text = beneath::read_plain_text(&self.path, Links::Follow, MOST)?;
        self.place = Some(place);
        Ok(text)
    }

    /// Takes away what somebody put in the place of the file: a directory, a link, a pipe.
    fn clear_place(&self) -> io::Result<()> {
        let Ok(found) = fs::symlink_metadata(&self.path) else { return Ok(()) };
        let place = real(&self.path).ok();
        if found.is_dir() {
            fs::remove_dir_all(&self.path)
        } else if place == self.place && (found.is_file() || found.is_symlink()) {
            Ok(())
        } else {
            fs::remove_file(&self.path)
        }
    }

    fn write(&mut self, text: &str, before: impl FnOnce() -> bool) -> Result<Replaced, BacklogError> {
        let replaced = write_atomic_after(&self.path, text.as_bytes(), before)
            .map_err(|source| BacklogError::Write { path: self.path.clone(), source })?;
        self.stamp = Some(self.look()?);
        Ok(replaced)
    }

    fn lock(&self) -> Result<FileLock, BacklogError> {
        FileLock::acquire(&self.lock).map_err(|source| BacklogError::Lock { path: self.lock.clone(), source })
    }

    fn look(&self) -> Result<Stamp, BacklogError> {
        let data = fs::metadata(&self.path).map_err(|source| self.cannot_read(source))?;
        Ok(Stamp { modified: data.modified().ok(), length: data.len(), node: node(&data) })
    }

    fn cannot_read(&self, source: io::Error) -> BacklogError {
        BacklogError::Read { path: self.path.clone(), source }
    }
}

#[cfg(unix)]
fn node(data: &fs::Metadata) -> u64 {
    use std::os::unix::fs::MetadataExt;
    data.ino()
}

#[cfg(not(unix))]
fn node(_data: &fs::Metadata) -> u64 {
    0
}

/// The hash that names a version of the backlog's text.
pub fn revision(text: &str) -> String {
    hex(&Sha256::digest(text.as_bytes())[..8])
}

/// What differs between the tasks a loop knows and those in the file, as the event that says so.
pub fn difference(state: &Loop, backlog: &Backlog) -> Option<Event> {
    let (mut added, mut changed) = (Vec::new(), Vec::new());
    for task in backlog.tasks() {
        match state.task(&task.id).filter(|entry| !entry.is_removed()) {
            None => added.push(as_known(state, backlog, task)),
            Some(entry) => {
                let task = as_known(state, backlog, task);
                if entry.spec != task {
                    changed.push(task);
                }
            }
        }
    }
    let present: std::collections::HashSet<&TaskId> = backlog.tasks().iter().map(|task| &task.id).collect();
    let known: Vec<&TaskId> = state.tasks.iter().map(|entry| &entry.spec.id).collect();
    let removed: Vec<TaskId> =
        known.iter().filter(|id| !present.contains(*id)).map(|id| (*id).clone()).collect();
    let expected =
        known.iter().copied().filter(|id| present.contains(id)).chain(added.iter().map(|task| &task.id));
    let order = (!expected.eq(backlog.tasks().iter().map(|task| &task.id)))
        .then(|| backlog.tasks().iter().map(|task| task.id.clone()).collect());
    if added.is_empty() && changed.is_empty() && removed.is_empty() && order.is_none() {
        return None;
    }
    Some(Event::BacklogRead { revision: revision(backlog.text()), added, changed, removed, order })
}

/// The task as the file has it, where the file can say what it means: a dialect without a word for
/// "failed" reads as open, which is then nobody's edit.
fn as_known(state: &Loop, backlog: &Backlog, task: &Task) -> Task {
    // Secrets are for whoever does the work, not for the journal.
    let mut task = redact::task(task.clone());
    if let Some(entry) = state.task(&task.id)
        && task.status == FileStatus::Open
        && !backlog.dialect().can_say(entry.spec.status)
    {
        task.status = entry.spec.status;
    }
    task
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_known_version_outlasts_edits_of_a_newer_one() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("TODO.md");
        let was = "- [ ] T1: one\n- [ ] T2: two\n- [ ] T3: three\n";
        fs::write(&path, was).unwrap();
        let mut file = BacklogFile::new(&path, "TODO.md", directory.path().join("lock"));
        file.refresh().unwrap();
        assert!(file.last_known().is_none(), "nobody was told of it yet");
        file.take_in();
        let known = |file: &BacklogFile| file.last_known().map(|backlog| backlog.text().to_owned());

        fs::write(&path, "- [ ] T1: one\n- [ ] T3: three\n").unwrap();
        file.edit(|backlog| backlog.set_status("T3", FileStatus::Done)).unwrap();
        assert_eq!(known(&file).as_deref(), Some(was));
        // A refused edit changes nothing about it, nor about what was read.
        file.edit(|backlog| backlog.set_status("T2", FileStatus::Done)).unwrap_err();
        assert_eq!(known(&file).as_deref(), Some(was));
        assert_eq!(file.backlog().map(Backlog::text), Some("- [ ] T1: one\n- [x] T3: three\n"));

        file.take_in();
        assert_eq!(known(&file).as_deref(), Some("- [ ] T1: one\n- [x] T3: three\n"));
        file.edit(|backlog| backlog.set_status("T2", FileStatus::Done)).unwrap_err();
        assert!(file.is_known(), "a refused edit leaves what is known");
    }
}
