//! Which private state belongs to a checkout.
//!
//! A store lies in a directory of its own below the user's state directory ([`StateRoot`]), never in a
//! workspace: no sandbox can keep an agent from a part of a tree that it may write to. The checkout has
//! a mark, `.wiggum/store`, with the store's id, so that a checkout that was moved finds its store
//! again. An agent can change the mark, so it is believed only where the store's own record of its
//! checkout agrees: the same path, or a path that is gone and the same repository.
//!
//! | what happened to the checkout | its store |
//! |---|---|
//! | nothing, or the mark was deleted (`git clean -fdx`) | the same: path and directory are the same |
//! | moved | the same: the old path is gone, the repository is the same |
//! | copied (the old path is still there), cloned, a linked work tree | a new one |
//! | copied, and the old path is gone | the same, for whichever is used first |
//! | replaced by another repository at the same path | a new one |
//!
//! Where a copy was made and the original was moved before the copy was ever used, nothing says which of
//! the two should go on. A run that is refused takes a store that it made back, with its mark: the mark
//! would hide the store of a checkout that is moved back to where it was. [`Checkout::origin`] tells whether a store was taken over by another directory
//! than the one it was made for, and whether a checkout began as a copy, so that people are told.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;
use wiggum_core::text::hex;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use uuid::Uuid;
use wiggum_store::{Store, StoreError};
use wiggum_workspace::beneath;
use wiggum_workspace::git::{Git, GitError};
use wiggum_workspace::paths::{self, FileLock, write_atomic};

use crate::desk;
use crate::state_dir::{DATABASE, MARK, StateDir, make_private};

/// The directory below which the stores of a user lie.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StateRoot(PathBuf);

/// A directory in which loops work, and where its private state is looked for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Checkout {
    path: PathBuf,
    state: Whereabouts,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Whereabouts {
    /// In the store that belongs to this checkout.
    Below(StateRoot),
    /// In this very directory, as the registry of the machine knows it.
    At(PathBuf),
}

/// How a checkout came by its store, as far as people should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// It has always had it, or took it along when it was moved.
    Own,
    /// It is another directory than the one that had the store at this path, which is gone.
    TakenOver { from: String },
    /// It began as a copy of this checkout, which goes on with its own store.
    CopyOf { path: String },
}

#[derive(Debug, thiserror::Error)]
pub enum CheckoutError {
    #[error("cannot {doing} {}", path.display())]
    File { doing: &'static str, path: PathBuf, source: io::Error },
    #[error("the state directory {} lies in the workspace {}", root.display(), workspace.display())]
    Inside { root: PathBuf, workspace: PathBuf },
    #[error("cannot write the mark of the store below {}", workspace.display())]
    Mark { workspace: PathBuf, source: beneath::CreateError },
    #[error("{} is no directory", path.display())]
    NoDirectory { path: PathBuf },
    #[error("an older version of wiggum runs a loop here ({})", path.display())]
    OlderVersionRuns { path: PathBuf },
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Git(#[from] GitError),
}

impl StateRoot {
    /// Where it really is: a sandbox mounts nothing at a path that leads through a link.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        Self(paths::real(&path).unwrap_or(path))
    }

    /// `$XDG_STATE_HOME/wiggum`, or `~/.local/state/wiggum`; nothing where neither is known.
    pub fn of_user(xdg_state_home: Option<&Path>, home: Option<&Path>) -> Option<Self> {
        let moved = xdg_state_home.filter(|path| path.is_absolute()).map(Path::to_owned);
        let usual = || home.filter(|path| path.is_absolute()).map(|home| home.join(".local/state"));
        Some(Self::new(moved.or_else(usual)?.join("wiggum")))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    fn store(&self, id: Uuid) -> PathBuf {
        self.0.join(id.to_string())
    }

    /// Where it stands which store belongs to the checkout at a path.
    fn index(&self, path: &str) -> PathBuf {
        self.0.join("paths").join(hash(path))
    }

    /// A directory for what belongs to a path rather than to a store, such as the sessions of agents that
    /// people talk to there.
    pub fn of_path(&self, what: &str, path: &Path) -> PathBuf {
        self.0.join(what).join(hash(&path.display().to_string()))
    }
}

impl Checkout {
    /// The checkout at this path, whose state lies below `root`.
    pub fn new(path: impl Into<PathBuf>, root: &StateRoot) -> Self {
        let path = path.into();
        let path = path.canonicalize().unwrap_or(path);
        Self { path, state: Whereabouts::Below(root.clone()) }
    }

    /// A checkout whose state is known to be in this directory.
    pub fn at(path: impl Into<PathBuf>, state: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), state: Whereabouts::At(state.into()) }
    }

    /// The directory in which agents work.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where its state is; `None` where no loop ever ran. Nothing is written.
    pub fn find(&self) -> Result<Option<StateDir>, CheckoutError> {
        let root = match &self.state {
            Whereabouts::Below(root) => root,
            Whereabouts::At(dir) => {
                return Ok(dir.join(DATABASE).exists().then(|| StateDir::new(&self.path, dir)));
            }
        };
        if let Some(owner) = self.owner(root)? {
            return Ok(Some(StateDir::new(&self.path, root.store(owner.store))));
        }
        Ok(self.legacy().is_file().then(|| StateDir::new(&self.path, self.path.join(StateDir::NAME))))
    }

    /// Where its state is, made if need be. State that an older version kept in the checkout is moved
    /// there.
    pub fn open(&self, git: Option<&Git>) -> Result<StateDir, CheckoutError> {
        let root = match &self.state {
            Whereabouts::Below(root) => root,
            Whereabouts::At(dir) => return created(StateDir::new(&self.path, dir)),
        };
        self.refuse_inside(root)?;
        let shared = self.path.join(StateDir::NAME);
        if fs::symlink_metadata(&shared).is_ok_and(|found| !found.is_dir() && !found.is_symlink()) {
            return Err(CheckoutError::NoDirectory { path: shared });
        }
        make_private(root.path()).map_err(on("create", root.path()))?;
        let lock = root.path().join("lock");
        let _lock = FileLock::acquire(&lock).map_err(on("lock", &lock))?;
        let owner = match self.owner(root)? {
            Some(owner) if owner.is_of_repository(git)? => owner,
            Some(_) | None => self.new_record(root)?,
        };
        let dir = created(StateDir::new(&self.path, root.store(owner.store)))?;
        let now = owner.with(self, git)?;
        if now != owner {
            now.write(root)?;
        }
        self.write_mark(owner.store)?;
        self.move_legacy(&dir, git)?;
        Ok(dir)
    }

    /// How this checkout came by the store that was opened.
    pub fn origin(&self, dir: &StateDir) -> Result<Origin, CheckoutError> {
        let record = Record::at(&dir.path().join(RECORD))?.unwrap_or_default();
        Ok(match (record.copy_of, record.taken_over_from) {
            (Some(path), _) => Origin::CopyOf { path },
            (None, Some(from)) => Origin::TakenOver { from },
            (None, None) => Origin::Own,
        })
    }

    /// Takes a store back in which no loop ever ran, so that the checkout is as it was before it was made.
    pub(crate) fn take_back_unused(&self, dir: &StateDir) -> Result<(), CheckoutError> {
        let Whereabouts::Below(root) = &self.state else { return Ok(()) };
        let lock = root.path().join("lock");
        let _lock = FileLock::acquire(&lock).map_err(on("lock", &lock))?;
        let record = Record::at(&dir.path().join(RECORD))?.unwrap_or_default();
        let Some(former) = record.instead_of else { return Ok(()) };
        if !holds_nothing(dir)? {
            return Ok(());
        }
        let index = root.index(&record.path);
        match former.at_path {
            Some(id) => write_atomic(&index, id.to_string().as_bytes()).map_err(on("write", &index))?,
            None => removed(&index)?,
        }
        match former.marked {
            Some(id) => self.write_mark(id)?,
            None => removed(&dir.mark())?,
        }
        fs::remove_dir_all(dir.path()).map_err(on("remove", dir.path()))?;
        // Only where it is empty: whatever else stands there stays.
        drop(fs::remove_dir(dir.shared()));
        Ok(())
    }

    fn new_record(&self, root: &StateRoot) -> Result<Record, CheckoutError> {
        let marked = self.marked().map(|id| Record::read(root, id)).transpose()?.flatten();
        let original = marked.filter(|record| record.path != self.name() && record.is_still_there());
        let copy_of = original.map(|record| record.path);
        let at_path = Record::of_path(root, &self.name())?.map(|record| record.store);
        let instead_of = Some(Former { marked: self.marked(), at_path });
        Ok(Record { store: Uuid::now_v7(), copy_of, instead_of, ..Record::default() })
    }

    /// Writes the mark again if somebody removed it; true if so.
    pub(crate) fn restore_mark(dir: &StateDir) -> Result<bool, CheckoutError> {
        let name = dir.path().file_name().and_then(|name| name.to_str());
        let Some(id) = name.and_then(|name| Uuid::parse_str(name).ok()) else { return Ok(false) };
        let checkout = Self::at(dir.workspace(), dir.path());
        if checkout.marked() == Some(id) {
            return Ok(false);
        }
        checkout.write_mark(id).map(|()| true)
    }

    /// The record of the store that belongs to this checkout.
    fn owner(&self, root: &StateRoot) -> Result<Option<Record>, CheckoutError> {
        if let Some(record) = self.marked().map(|id| Record::read(root, id)).transpose()?.flatten() {
            if record.path == self.name() {
                return Ok(Some(record));
            }
            if !record.is_still_there() && record.is_of_repository(Git::discover(&self.path)?.as_ref())? {
                return Ok(Some(record));
            }
        }
        // The mark is gone, or was copied from elsewhere.
        let record = Record::of_path(root, &self.name())?;
        Ok(record
            .filter(|record| record.path == self.name() && record.directory == Directory::at(&self.path)))
    }

    fn name(&self) -> String {
        self.path.display().to_string()
    }

    fn marked(&self) -> Option<Uuid> {
        marked(&self.path)
    }

    fn write_mark(&self, id: Uuid) -> Result<(), CheckoutError> {
        if self.marked() == Some(id) {
            return Ok(());
        }
        let text =
            format!("{id}\n# The private state of wiggum for this checkout; `wiggum doctor` says where.\n");
        let mark = format!("{}/{MARK}", StateDir::NAME);
        beneath::create(&self.path, &mark, text.as_bytes(), true)
            .map(drop)
            .map_err(|source| CheckoutError::Mark { workspace: self.path.clone(), source })
    }

    fn refuse_inside(&self, root: &StateRoot) -> Result<(), CheckoutError> {
        let real = paths::real(root.path()).unwrap_or_else(|_| root.path().to_owned());
        if !real.starts_with(&self.path) {
            return Ok(());
        }
        Err(CheckoutError::Inside { root: root.path().to_owned(), workspace: self.path.clone() })
    }

    fn legacy(&self) -> PathBuf {
        self.path.join(StateDir::NAME).join(DATABASE)
    }

    /// Moves what an older version kept below `.wiggum/`. A database that came with the repository is
    /// nobody's history and stays where it is.
    fn move_legacy(&self, dir: &StateDir, git: Option<&Git>) -> Result<(), CheckoutError> {
        let legacy = self.legacy();
        let is_plain = fs::symlink_metadata(&legacy).is_ok_and(|found| found.is_file());
        if !is_plain || dir.database().exists() {
            return Ok(());
        }
        if let Some(git) = git
            && git.is_tracked(&format!("{}/{DATABASE}", StateDir::NAME))?
        {
            return Ok(());
        }
        let Some(store) = Store::open_existing(&legacy)? else { return Ok(()) };
        for record in store.loops()? {
            if store.holder(record.id)?.is_some_and(|holder| desk::is_alive(&holder)) {
                return Err(CheckoutError::OlderVersionRuns { path: self.path.clone() });
            }
        }
        let from = self.path.join(StateDir::NAME).join("transcripts");
        move_tree(&from, &dir.path().join("transcripts")).map_err(on("move", &from))?;
        store.copy_to(&dir.database())?;
        drop(store);
        for suffix in ["", "-wal", "-shm"] {
            removed(&self.path.join(StateDir::NAME).join(format!("{DATABASE}{suffix}")))?;
        }
        Ok(())
    }
}

/// What a store knows of the checkout it belongs to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Record {
    store: Uuid,
    /// Where the checkout was when a loop last ran.
    path: String,
    directory: Option<Directory>,
    /// A commit of its repository: whoever has it is that repository, or a clone of it.
    commit: Option<String>,
    remote: Option<String>,
    /// The checkout from whose copy it began.
    #[serde(skip_serializing_if = "Option::is_none")]
    copy_of: Option<String>,
    /// Where it was when another directory took it over.
    #[serde(skip_serializing_if = "Option::is_none")]
    taken_over_from: Option<String>,
    /// What led elsewhere when the store was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    instead_of: Option<Former>,
}

/// The stores that a checkout named before it had its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Former {
    marked: Option<Uuid>,
    at_path: Option<Uuid>,
}

/// Tells a directory from another one that has taken its place. The number of a file alone is used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Directory {
    inode: u64,
    /// Nanoseconds since 1970, where the file system tells.
    created: Option<u64>,
}

const RECORD: &str = "checkout.json";

impl Record {
    fn read(root: &StateRoot, id: Uuid) -> Result<Option<Self>, CheckoutError> {
        let record = Self::at(&root.store(id).join(RECORD))?;
        Ok(record.map(|record| Self { store: id, ..record }))
    }

    fn at(path: &Path) -> Result<Option<Self>, CheckoutError> {
        let text = match beneath::text_of(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(on("read", path)(error)),
        };
        let record =
            serde_json::from_str(&text).map_err(|error| on("understand", path)(io::Error::other(error)))?;
        Ok(Some(record))
    }

    /// The record of the store whose checkout was last seen at this path.
    fn of_path(root: &StateRoot, path: &str) -> Result<Option<Self>, CheckoutError> {
        let index = root.index(path);
        match beneath::text_of(&index) {
            Ok(id) => Uuid::parse_str(id.trim())
                .ok()
                .map(|id| Self::read(root, id))
                .transpose()
                .map(Option::flatten),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(on("read", &index)(error)),
        }
    }

    fn write(&self, root: &StateRoot) -> Result<(), CheckoutError> {
        let path = root.store(self.store).join(RECORD);
        let text = serde_json::to_string_pretty(self).unwrap_or_default();
        write_atomic(&path, text.as_bytes()).map_err(on("write", &path))?;
        let index = root.index(&self.path);
        index.parent().map_or(Ok(()), make_private).map_err(on("create", &index))?;
        write_atomic(&index, self.store.to_string().as_bytes()).map_err(on("write", &index))
    }

    /// With what can be said of the checkout now.
    fn with(&self, checkout: &Checkout, git: Option<&Git>) -> Result<Self, CheckoutError> {
        let mut now =
            Self { path: checkout.name(), directory: Directory::at(&checkout.path), ..self.clone() };
        if !self.path.is_empty() && self.path != now.path {
            let is_other = self.directory.is_some() && self.directory != now.directory;
            now.taken_over_from = is_other.then(|| self.path.clone());
        }
        if let Some(git) = git.filter(|_| self.commit.is_none() || self.path != now.path) {
            now.commit = git.head()?.commit.or(now.commit);
            now.remote = git.remote_url()?;
        }
        Ok(now)
    }

    /// Is the checkout still where it was?
    fn is_still_there(&self) -> bool {
        marked(Path::new(&self.path)) == Some(self.store)
    }

    /// Can this be the repository that the store belongs to? Without git, and where history was cut
    /// off, nothing speaks against it.
    fn is_of_repository(&self, git: Option<&Git>) -> Result<bool, CheckoutError> {
        let Some(git) = git else { return Ok(true) };
        let Some(commit) = &self.commit else { return Ok(true) };
        if git.head()?.commit.as_ref() == Some(commit) || git.is_shallow() || git.has_commit(commit)? {
            return Ok(true);
        }
        Ok(self.remote.is_some() && git.remote_url()? == self.remote)
    }
}

impl Directory {
    #[cfg(unix)]
    fn at(path: &Path) -> Option<Self> {
        use std::os::unix::fs::MetadataExt;
        let found = fs::metadata(path).ok()?;
        Some(Self { inode: found.ino(), created: created_at(&found) })
    }

    #[cfg(not(unix))]
    fn at(path: &Path) -> Option<Self> {
        let found = fs::metadata(path).ok()?;
        Some(Self { inode: 0, created: created_at(&found) })
    }
}

fn created_at(found: &fs::Metadata) -> Option<u64> {
    let since = found.created().ok()?.duration_since(UNIX_EPOCH).ok()?;
    u64::try_from(since.as_nanos()).ok()
}

fn hash(path: &str) -> String {
    hex(&Sha256::digest(path.as_bytes())[..16])
}

/// The store that a checkout says it belongs to. More than a line is none of ours.
fn marked(checkout: &Path) -> Option<Uuid> {
    const MOST: u64 = 4096;
    let mark = checkout.join(StateDir::NAME).join(MARK);
    let found = fs::symlink_metadata(&mark).ok()?;
    if !found.is_file() || found.len() > MOST {
        return None;
    }
    let text = beneath::text_of(&mark).ok()?;
    Uuid::parse_str(text.lines().next()?.trim()).ok()
}

/// Is there neither a loop in the store, nor a file that is about anything but loops?
fn holds_nothing(dir: &StateDir) -> Result<bool, CheckoutError> {
    if let Some(store) = Store::open_existing(&dir.database())?
        && !store.loops()?.is_empty()
    {
        return Ok(false);
    }
    let is_of_loops = |name: &str| {
        let is_directory = ["loops", "transcripts", "wake"].contains(&name);
        is_directory || name == RECORD || name.starts_with(DATABASE) || name.ends_with("lock")
    };
    let mut entries = fs::read_dir(dir.path()).map_err(on("read", dir.path()))?;
    Ok(entries.all(|entry| entry.is_ok_and(|entry| entry.file_name().to_str().is_some_and(is_of_loops))))
}

fn removed(path: &Path) -> Result<(), CheckoutError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(on("remove", path)(error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

fn created(dir: StateDir) -> Result<StateDir, CheckoutError> {
    dir.create_private().map_err(on("create", dir.path()))?;
    dir.create_shared().map_err(on("create", &dir.shared()))?;
    Ok(dir)
}

pub(crate) fn on<'a>(doing: &'static str, path: &'a Path) -> impl Fn(io::Error) -> CheckoutError + 'a {
    move |source| CheckoutError::File { doing, path: path.to_owned(), source }
}

/// Moves a directory, also to another file system. Links stay behind.
fn move_tree(from: &Path, to: &Path) -> io::Result<()> {
    if !fs::symlink_metadata(from).is_ok_and(|found| found.is_dir()) || to.exists() {
        return Ok(());
    }
    if fs::rename(from, to).is_ok() {
        return Ok(());
    }
    let half = to.with_extension("half");
    if half.exists() {
        fs::remove_dir_all(&half)?;
    }
    copy_tree(from, &half)?;
    fs::rename(&half, to)?;
    fs::remove_dir_all(from)
}

fn copy_tree(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (kind, target) = (entry.file_type()?, to.join(entry.file_name()));
        if kind.is_dir() {
            copy_tree(&entry.path(), &target)?;
        } else if kind.is_file() {
            fs::copy(entry.path(), &target)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Directories below one that is removed afterwards, and the state of a user.
    struct Place {
        base: tempfile::TempDir,
    }

    impl Place {
        fn new() -> Self {
            Self { base: tempfile::tempdir().unwrap() }
        }

        fn path(&self, name: &str) -> PathBuf {
            self.base.path().canonicalize().unwrap().join(name)
        }

        fn directory(&self, name: &str) -> PathBuf {
            fs::create_dir_all(self.path(name)).unwrap();
            self.path(name)
        }

        fn checkout(&self, name: &str) -> Checkout {
            Checkout::new(self.path(name), &StateRoot::new(self.path("state")))
        }

        fn open(&self, name: &str) -> PathBuf {
            let git = Git::discover(&self.path(name)).unwrap();
            let dir = self.checkout(name).open(git.as_ref()).unwrap();
            // A look finds what was opened.
            assert_eq!(self.checkout(name).find().unwrap().as_ref(), Some(&dir));
            dir.path().to_owned()
        }

        fn repository(&self, name: &str, content: &str) {
            let path = self.directory(name);
            git(&path, &["init", "--quiet"]);
            fs::write(path.join("a"), content).unwrap();
            git(&path, &["add", "-A"]);
            git(&path, &["-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "-m", "first"]);
        }

        fn rename(&self, from: &str, to: &str) {
            fs::rename(self.path(from), self.path(to)).unwrap();
        }

        fn copy(&self, from: &str, to: &str) {
            copy_tree(&self.path(from), &self.path(to)).unwrap();
        }
    }

    fn git(directory: &Path, args: &[&str]) {
        use wiggum_workspace::process::{self, CommandLine, Launch};
        let done = process::run(Launch::new(CommandLine::new("git", args), directory)).unwrap();
        assert!(done.exit.success(), "git {args:?}: {}", String::from_utf8_lossy(&done.stderr));
    }

    #[test]
    fn looking_makes_nothing() {
        let place = Place::new();
        place.directory("a");
        assert_eq!(place.checkout("a").find().unwrap(), None);
        assert!(!place.path("state").exists() && !place.path("a/.wiggum").exists());
    }

    #[test]
    fn a_checkout_keeps_its_store_and_takes_it_along() {
        let place = Place::new();
        place.repository("a", "x");
        let store = place.open("a");
        assert_eq!(place.open("a"), store);
        place.rename("a", "b");
        assert_eq!(place.open("b"), store);
        place.rename("b", "a");
        assert_eq!(place.open("a"), store);
    }

    #[test]
    fn a_directory_without_git_takes_its_store_along_too() {
        let place = Place::new();
        place.directory("vault");
        let store = place.open("vault");
        place.rename("vault", "elsewhere");
        assert_eq!(place.open("elsewhere"), store);
    }

    #[test]
    fn copies_clones_and_work_trees_have_stores_of_their_own() {
        let place = Place::new();
        place.repository("a", "x");
        let store = place.open("a");
        place.copy("a", "copy");
        git(&place.path("a"), &["clone", "--quiet", ".", "../clone"]);
        git(&place.path("a"), &["worktree", "add", "--quiet", "../tree"]);
        let others = ["copy", "clone", "tree"].map(|name| place.open(name));
        let mut all = [&others[..], std::slice::from_ref(&store)].concat();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 4);
        // And keep them.
        assert_eq!(["copy", "clone", "tree"].map(|name| place.open(name)), others);
        assert_eq!(place.open("a"), store);
    }

    #[test]
    fn people_can_be_told_how_a_checkout_came_by_its_store() {
        let place = Place::new();
        place.repository("a", "x");
        let origin = |name: &str| {
            let dir = place.checkout(name).find().unwrap().unwrap();
            place.checkout(name).origin(&dir).unwrap()
        };
        let named = |name: &str| place.path(name).display().to_string();
        let store = place.open("a");
        assert_eq!(origin("a"), Origin::Own);
        // A copy that is used while the original is there.
        place.copy("a", "used");
        assert_ne!(place.open("used"), store);
        assert_eq!(origin("used"), Origin::CopyOf { path: named("a") });
        // A copy that nobody has used when the original moves: whoever comes first goes on with the store.
        place.copy("a", "copy");
        place.rename("a", "b");
        assert_eq!(place.open("b"), store);
        assert_eq!(origin("b"), Origin::Own, "it is the directory of before");
        place.rename("b", "c");
        assert_eq!(place.open("copy"), store);
        assert_eq!(origin("copy"), Origin::TakenOver { from: named("b") });
        // The other one begins anew.
        assert_ne!(place.open("c"), store);
        assert_eq!(origin("c"), Origin::CopyOf { path: named("copy") });
        // And that is history once it has moved on.
        place.rename("copy", "d");
        assert_eq!(place.open("d"), store);
        assert_eq!(origin("d"), Origin::Own);
    }

    #[test]
    fn a_store_that_was_not_used_is_taken_back() {
        let place = Place::new();
        place.repository("a", "x");
        let store = place.open("a");
        let take_back = |name: &str| {
            let dir = place.checkout(name).find().unwrap().unwrap();
            drop(Store::open(&dir.database()).unwrap());
            place.checkout(name).take_back_unused(&dir).unwrap();
        };
        // Moved, and the mark is gone: the store of a refused run would be found first after moving back.
        place.rename("a", "b");
        fs::remove_dir_all(place.path("b/.wiggum")).unwrap();
        let unused = place.open("b");
        assert_ne!(unused, store);
        take_back("b");
        assert!(!unused.exists() && !place.path("b/.wiggum").exists());
        assert_eq!(place.checkout("b").find().unwrap(), None);
        place.rename("b", "a");
        assert_eq!(place.open("a"), store);

        // A copy is still known as one.
        place.copy("a", "copy");
        place.open("copy");
        take_back("copy");
        let dir = place.checkout("copy").open(None).unwrap();
        let origin = place.checkout("copy").origin(&dir).unwrap();
        assert_eq!(origin, Origin::CopyOf { path: place.path("a").display().to_string() });

        // What somebody put into it is not thrown away, nor is a loop.
        fs::write(dir.path().join("done_by_hand.json"), "{}").unwrap();
        take_back("copy");
        assert!(dir.path().join("done_by_hand.json").exists());
        fs::remove_file(dir.path().join("done_by_hand.json")).unwrap();
        let id = wiggum_core::ids::LoopId(Uuid::now_v7());
        let identity =
            wiggum_store::Identity { repository: String::new(), backlog: "x".into(), name: "y".into() };
        let now = jiff::Timestamp::UNIX_EPOCH;
        Store::open(&dir.database()).unwrap().create_loop(&identity, id, now).unwrap();
        take_back("copy");
        assert!(dir.database().exists() && dir.mark().exists());
    }

    #[test]
    fn a_mark_that_was_removed_is_no_loss() {
        let place = Place::new();
        place.repository("a", "x");
        let store = place.open("a");
        fs::remove_dir_all(place.path("a/.wiggum")).unwrap();
        assert_eq!(place.checkout("a").find().unwrap().unwrap().path(), store);
        assert_eq!(place.open("a"), store);
        assert!(place.path("a/.wiggum/store").exists());
    }

    #[test]
    fn another_repository_in_its_place_begins_anew() {
        let place = Place::new();
        place.repository("a", "x");
        let store = place.open("a");
        // The same path and even the same mark, but another history.
        fs::remove_dir_all(place.path("a/.git")).unwrap();
        place.repository("a", "y");
        assert_ne!(place.open("a"), store);
        // The moved one is found although its path was taken by a clone of it.
        place.repository("b", "z");
        let store = place.open("b");
        place.rename("b", "c");
        git(&place.path("c"), &["clone", "--quiet", ".", "../b"]);
        let clone = place.open("b");
        assert_ne!(clone, store);
        assert_eq!(place.open("c"), store);
        assert_eq!(place.open("b"), clone);
    }

    #[test]
    fn a_forged_mark_opens_nobody_elses_store() {
        let place = Place::new();
        place.repository("victim", "x");
        place.repository("mine", "y");
        let (victim, mine) = (place.open("victim"), place.open("mine"));
        let mark = fs::read(place.path("victim/.wiggum/store")).unwrap();
        fs::write(place.path("mine/.wiggum/store"), &mark).unwrap();
        assert_eq!(place.open("mine"), mine);
        // Also after the victim was moved away: the history is another.
        place.rename("victim", "elsewhere");
        fs::write(place.path("mine/.wiggum/store"), &mark).unwrap();
        assert_eq!(place.open("mine"), mine);
        assert_eq!(place.open("elsewhere"), victim);
        for garbage in ["", "../../etc", "not an id"] {
            fs::write(place.path("mine/.wiggum/store"), garbage).unwrap();
            assert_eq!(place.open("mine"), mine, "{garbage:?}");
        }
    }

    #[test]
    fn state_never_lies_in_the_workspace() {
        let place = Place::new();
        place.directory("a");
        let inside = Checkout::new(place.path("a"), &StateRoot::new(place.path("a/state")));
        assert!(matches!(inside.open(None), Err(CheckoutError::Inside { .. })));
        std::os::unix::fs::symlink(place.path("a"), place.path("link")).unwrap();
        let inside = Checkout::new(place.path("a"), &StateRoot::new(place.path("link/state")));
        assert!(matches!(inside.open(None), Err(CheckoutError::Inside { .. })));
        assert!(!place.path("a/state").exists());
    }

    #[test]
    fn a_link_in_place_of_our_directory_is_refused() {
        let place = Place::new();
        place.directory("a");
        let theirs = place.directory("theirs");
        std::os::unix::fs::symlink(&theirs, place.path("a/.wiggum")).unwrap();
        assert!(matches!(place.checkout("a").open(None), Err(CheckoutError::Mark { .. })));
        assert_eq!(fs::read_dir(theirs).unwrap().count(), 0);
    }

    #[test]
    fn a_file_in_place_of_our_directory_is_named() {
        let place = Place::new();
        place.directory("a");
        fs::write(place.path("a/.wiggum"), "hi").unwrap();
        let refused = place.checkout("a").open(None);
        let path = place.path("a/.wiggum");
        assert!(
            matches!(&refused, Err(CheckoutError::NoDirectory { path: of }) if *of == path),
            "{refused:?}"
        );
        assert_eq!(fs::read_to_string(path).unwrap(), "hi");
    }

    #[test]
    fn what_an_older_version_kept_is_moved_once_with_its_history() {
        let place = Place::new();
        place.repository("a", "x");
        let legacy = place.path("a/.wiggum/wiggum.db");
        let identity = wiggum_store::Identity {
            repository: "/long/ago".to_owned(),
            backlog: "PRD.json".to_owned(),
            name: "main".to_owned(),
        };
        let (first, second) = (Uuid::now_v7(), Uuid::now_v7());
        let mut store = Store::open(&legacy).unwrap();
        let now = jiff::Timestamp::UNIX_EPOCH;
        store.create_loop(&identity, wiggum_core::ids::LoopId(first), now).unwrap();
        drop(store);
        fs::create_dir_all(place.path("a/.wiggum/transcripts/x")).unwrap();
        fs::write(place.path("a/.wiggum/transcripts/x/1.jsonl.zst"), "text").unwrap();
        // Whoever only looks finds it where it is.
        assert_eq!(place.checkout("a").find().unwrap().unwrap().database(), legacy);
        let dir = place.open("a");
        assert!(!legacy.exists() && dir.join("transcripts/x/1.jsonl.zst").exists());
        let store = Store::open_existing(&dir.join(DATABASE)).unwrap().unwrap();
        let here = wiggum_store::Identity { repository: place.path("a").display().to_string(), ..identity };
        assert_eq!(store.find_loop(&here).unwrap().unwrap().id.0, first);
        drop(store);
        // What appears there later is nobody's history.
        let mut planted = Store::open(&legacy).unwrap();
        planted.create_loop(&here, wiggum_core::ids::LoopId(second), now).unwrap();
        drop(planted);
        assert_eq!(place.open("a"), dir);
        let store = Store::open_existing(&dir.join(DATABASE)).unwrap().unwrap();
        assert_eq!(store.loops().unwrap().len(), 1);
    }

    #[test]
    fn a_database_that_came_with_the_repository_is_not_believed() {
        let place = Place::new();
        place.repository("a", "x");
        drop(Store::open(&place.path("a/.wiggum/wiggum.db")).unwrap());
        git(&place.path("a"), &["add", "-f", ".wiggum/wiggum.db"]);
        let dir = place.open("a");
        assert!(!dir.join(DATABASE).exists() && place.path("a/.wiggum/wiggum.db").exists());
    }
}
