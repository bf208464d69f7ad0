//! Conversations that outlive their process, so that a later start can go on with them.
//!
//! They lie in the user's own state directory, one file each, readable by nobody else. A few hundred
//! are kept: who goes on with one does so soon.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use wiggum_workspace::paths::write_atomic;

use crate::conversation::Entry;
use crate::provider::Protocol;

/// How many sessions are kept.
const KEPT: usize = 200;

/// A session, and where it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    pub directory: PathBuf,
    pub id: String,
    pub begins: Begins,
}

/// What a session begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begins {
    Anew,
    /// With what was said before.
    WhereItWas,
}

/// What is written down of a conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// Messages of the assistant are in the form of this one and of no other.
    protocol: String,
    pub(crate) used: u64,
    pub(crate) entries: Vec<Entry>,
}

impl Record {
    pub(crate) fn new(protocol: Protocol, used: u64, entries: Vec<Entry>) -> Self {
        Self { protocol: protocol.name().to_owned(), used, entries }
    }
}

impl Session {
    /// What was said before, if it is still known and can be gone on with in this protocol.
    pub(crate) fn load(&self, protocol: Protocol) -> Option<Record> {
        let text = fs::read(self.path()?).ok()?;
        let record: Record = serde_json::from_slice(&text).ok()?;
        (record.protocol == protocol.name()).then_some(record)
    }

    pub(crate) fn save(&self, record: &Record) -> io::Result<()> {
        let path = self.path().ok_or_else(|| io::Error::other(format!("`{}` is no id", self.id)))?;
        if !path.exists() {
            make_private(&self.directory)?;
            create_private(&path)?;
            drop_oldest(&self.directory)?;
        }
        write_atomic(&path, &serde_json::to_vec(record)?)
    }

    /// An id is a name and never a path.
    fn path(&self) -> Option<PathBuf> {
        let plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
        let is_id = !self.id.is_empty() && self.id.chars().all(plain);
        is_id.then(|| self.directory.join(format!("{}.json", self.id)))
    }
}

fn make_private(directory: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(directory)
}

/// What is written later keeps the mode of what is there.
fn create_private(path: &Path) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.write(true).create(true).truncate(false).open(path).map(drop)
}

fn drop_oldest(directory: &Path) -> io::Result<()> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        files.push((entry.metadata()?.modified()?, entry.path()));
    }
    files.sort();
    let surplus = files.len().saturating_sub(KEPT);
    for (_, path) in &files[..surplus] {
        fs::remove_file(path)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn session(directory: &Path, id: &str) -> Session {
        Session { directory: directory.join("a/b"), id: id.to_owned(), begins: Begins::Anew }
    }

    fn record() -> Record {
        Record::new(Protocol::Chat, 7, vec![Entry::User("hello".to_owned())])
    }

    #[test]
    fn a_session_is_found_again_by_its_id_and_protocol() {
        let directory = tempfile::tempdir().unwrap();
        let session = session(directory.path(), "0192-abc");
        assert_eq!(session.load(Protocol::Chat), None);
        session.save(&record()).unwrap();
        assert_eq!(session.load(Protocol::Chat), Some(record()));
        assert_eq!(session.load(Protocol::Messages), None);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&session.directory), mode(&session.path().unwrap())), (0o700, 0o600));
        session.save(&record()).unwrap();
        assert_eq!(mode(&session.path().unwrap()), 0o600);
    }

    #[test]
    fn an_id_is_never_a_path() {
        let directory = tempfile::tempdir().unwrap();
        for id in ["", "../x", "a/b", "a.b"] {
            assert!(session(directory.path(), id).save(&record()).is_err(), "{id}");
        }
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn the_oldest_sessions_go() {
        let directory = tempfile::tempdir().unwrap();
        for number in 0..KEPT + 5 {
            session(directory.path(), &format!("{number}")).save(&record()).unwrap();
        }
        assert_eq!(fs::read_dir(directory.path().join("a/b")).unwrap().count(), KEPT);
        assert!(session(directory.path(), &format!("{}", KEPT + 4)).load(Protocol::Chat).is_some());
    }
}
