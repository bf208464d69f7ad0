//! Opening the file: who may read it, how durable it is, which format it has.

use std::fmt;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};

use crate::error::{Explain, StoreError};

/// The format this build writes, kept in SQLite's `user_version`.
const FORMAT: u32 = 2;

/// What makes each format of the one before it.
const STEPS: [&str; FORMAT as usize] = [include_str!("schema.sql"), include_str!("notify.sql")];

/// Pages of 4 KiB in the write-ahead log before they are moved into the database: about 8 MiB, some
/// hundreds of appends. More would make the first reader after a kill -9 slow: it reads all of it.
const CHECKPOINT_PAGES: u32 = 2000;

/// There are about thirty statements in this crate; each is prepared once.
const CACHED_STATEMENTS: usize = 32;

/// Pages that one of a thousand stores keeps at hand; more come and go with an append.
const FRUGAL_PAGES: i64 = 4;
/// The others are prepared again, which is cheaper than keeping them a thousand times.
const FRUGAL_STATEMENTS: usize = 3;

/// How long another process may hold a database up: a commit on a slow disk, and some more.
pub(crate) const BUSY: Duration = Duration::from_secs(5);

/// The journals of one repository. One connection; other processes may have their own.
#[derive(Debug)]
pub struct Store {
    pub(crate) connection: Connection,
    pub(crate) path: PathBuf,
    pub(crate) files: Files,
    pub(crate) options: Options,
}

/// What tests need to set; everybody else takes the default.
#[doc(hidden)]
#[derive(Clone)]
pub struct Options {
    pub busy_timeout: Duration,
    /// Does a commit wait for the disk? Without it a power cut may take the last ones.
    pub durable: bool,
    /// Gives memory back after every append, for a process with a thousand stores.
    pub frugal: bool,
    /// Asked before every append: a disk that is out of order says so here.
    pub disk: Option<Disk>,
}

pub type Disk = Arc<dyn Fn() -> io::Result<()> + Send + Sync>;

impl Default for Options {
    fn default() -> Self {
        Self { busy_timeout: BUSY, durable: true, frugal: false, disk: None }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { busy_timeout, durable, frugal, disk: _ } = self;
        f.debug_struct("Options")
            .field("busy_timeout", busy_timeout)
            .field("durable", durable)
            .field("frugal", frugal)
            .finish_non_exhaustive()
    }
}

impl Store {
    /// Opens the store, making it (and its directory) if need be, for this user's eyes only.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        Self::open_with(path, Options::default())
    }

    #[doc(hidden)]
    pub fn open_with(path: &Path, options: Options) -> Result<Self, StoreError> {
        let path = absolute(path)?;
        let _lock = lock_directory_of(&path)?;
        create_file(&path)?;
        let store = Self::connect(path, options)?;
        if store.is_readonly()? { Err(read_only(&store.path)) } else { Ok(store) }
    }

    /// Opens the store if there is one: for commands that only look, and may where they may not write,
    /// as agents in a sandbox.
    pub fn open_existing(path: &Path) -> Result<Option<Self>, StoreError> {
        let path = absolute(path)?;
        if !path.try_exists().explain("look for the store", &path)? {
            return Ok(None);
        }
        let _lock = lock_directory_of(&path)?;
        Self::connect(path, Options::default()).map(Some)
    }

    /// Where the store's file is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Expects the file to exist and the directory to be locked.
    pub(crate) fn connect(path: PathBuf, options: Options) -> Result<Self, StoreError> {
        let doing = "open the store";
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_with_flags(&path, flags).explain(doing, &path)?;
        let statements = if options.frugal { FRUGAL_STATEMENTS } else { CACHED_STATEMENTS };
        connection.set_prepared_statement_cache_capacity(statements);
        connection.busy_timeout(options.busy_timeout).explain(doing, &path)?;
        // One that nobody has open would have to be written to even for looking.
        let in_use = beside(&path, "-shm").exists();
        if !in_use && connection.is_readonly("main").explain(doing, &path)? {
            return Err(read_only(&path));
        }
        set_up(&connection, &options).explain(doing, &path)?;
        bring_to_format(&mut connection, &path)?;
        let files = Files::at(&path);
        Ok(Self { connection, path, files, options })
    }

    fn is_readonly(&self) -> Result<bool, StoreError> {
        self.connection.is_readonly("main").explain("open the store", &self.path)
    }
}

fn read_only(path: &Path) -> StoreError {
    StoreError::ReadOnly { doing: "open the store", path: path.to_owned(), source: None }
}

/// Which files a connection works on. Their names may come to mean other files, or none, while the
/// connection goes on using these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Files {
    pub(crate) database: Option<Inode>,
    pub(crate) log: Option<Inode>,
    pub(crate) index: Option<Inode>,
}

pub(crate) type Inode = (u64, u64);

impl Files {
    pub(crate) fn at(path: &Path) -> Self {
        Self { database: inode(path), log: inode(&beside(path, "-wal")), index: inode(&beside(path, "-shm")) }
    }
}

/// The path with something added to its file name.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Makes the directory if need be and keeps others from creating or replacing the store in it for
/// as long as the result lives. Two connections that turn a new file into a store at the same time
/// would find it busy in ways SQLite does not wait for.
pub(crate) fn lock_directory_of(path: &Path) -> Result<File, StoreError> {
    let doing = "open the store's directory";
    let directory = path.parent().unwrap_or(Path::new("/"));
    if !directory.try_exists().explain(doing, directory)? {
        DirBuilder::new().recursive(true).mode(0o700).create(directory).explain(doing, directory)?;
    }
    let lock = File::open(directory).explain(doing, directory)?;
    lock.lock().explain(doing, directory)?;
    Ok(lock)
}

fn absolute(path: &Path) -> Result<PathBuf, StoreError> {
    std::path::absolute(path).explain("find the store", path)
}

/// SQLite would create the file readable for everyone. It must never be opened by us once it
/// exists: closing that handle would drop the locks of every other connection of this process.
pub(crate) fn create_file(path: &Path) -> Result<(), StoreError> {
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error).explain("create the store", path),
    }
}

fn set_up(connection: &Connection, options: &Options) -> rusqlite::Result<()> {
    connection.pragma_update(None, "journal_mode", "WAL")?;
    let synchronous = if options.durable { "FULL" } else { "OFF" };
    connection.pragma_update(None, "synchronous", synchronous)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    // Otherwise SQLite plans a statement anew whenever it is given other values.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    if options.frugal {
        connection.pragma_update(None, "cache_size", FRUGAL_PAGES)?;
    }
    connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)
}

fn bring_to_format(connection: &mut Connection, path: &Path) -> Result<(), StoreError> {
    let doing = "read the store's format";
    match format(connection).explain(doing, path)? {
        FORMAT => Ok(()),
        // Whoever may only look finds there what there is.
        1..FORMAT if connection.is_readonly("main").explain(doing, path)? => Ok(()),
        0..FORMAT => upgrade(connection).explain("create the store's tables", path),
        found => Err(StoreError::Newer { path: path.to_owned(), found, known: FORMAT }),
    }
}

fn format(connection: &Connection) -> rusqlite::Result<u32> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

fn upgrade(connection: &mut Connection) -> rusqlite::Result<()> {
    let transaction = Transaction::new(connection, TransactionBehavior::Immediate)?;
    // Asked again, since another process may have been quicker.
    let found = format(&transaction)? as usize;
    for step in STEPS.iter().skip(found) {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "user_version", FORMAT)?;
    transaction.commit()
}

fn inode(path: &Path) -> Option<Inode> {
    fs::metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()))
}
