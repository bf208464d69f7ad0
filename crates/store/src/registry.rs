//! The loops of this machine, of all repositories of one user: where each keeps its state, when it
//! was last heard of, what it has spent, and what its call under way may still cost.
//!
//! It lies in the user's data directory, beside no repository. Nothing in it is needed to run a loop:
//! a loop that is missing here enters itself again, with what its journal says it has spent. So a
//! commit here need not outlive a power cut, and costs no sync; it outlives every kill of a process.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use rusqlite::{Connection, OpenFlags, Row, Transaction, TransactionBehavior};
use wiggum_core::budget::{Account, Shared, Sum};
use wiggum_core::ids::LoopId;

use crate::error::{Explain, StoreError};
use crate::lease::Holder;
use crate::loops::{Identity, column};
use crate::store::{BUSY, create_file, lock_directory_of};

/// The format this build writes, kept in SQLite's `user_version`.
const FORMAT: u32 = 1;

/// What this machine knows of its loops.
#[derive(Debug)]
pub struct Registry {
    connection: Connection,
    path: PathBuf,
}

/// A loop as it is entered.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    pub id: LoopId,
    pub identity: Identity,
    /// What its work trees have in common: git's own directory, or the workspace outside of git.
    pub project: String,
    /// Where its journal is: a `.wiggum` directory.
    pub state_dir: PathBuf,
    /// The process that runs it; whether that still lives is for the caller to find out.
    pub holder: Option<Holder>,
    /// When it last began or ended a run, or an iteration under a shared budget.
    pub seen_at: Timestamp,
    /// In all its runs, as far as it was told.
    pub spent: Sum,
}

/// What came of asking for money.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reserved {
    /// The call may begin; these are the figures before it.
    Granted(Shared),
    Refused(Shared),
}

impl Registry {
    /// The file's name in the data directory.
    pub const FILE: &'static str = "registry.db";

    /// Opens the registry, making it (and its directory) if need be, for this user's eyes only.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let path = std::path::absolute(path).explain("find the registry", path)?;
        let _lock = lock_directory_of(&path)?;
        create_file(&path)?;
        Self::connect(path)
    }

    /// Opens it if there is one.
    pub fn open_existing(path: &Path) -> Result<Option<Self>, StoreError> {
        let path = std::path::absolute(path).explain("find the registry", path)?;
        if !path.try_exists().explain("look for the registry", &path)? {
            return Ok(None);
        }
        let _lock = lock_directory_of(&path)?;
        Self::connect(path).map(Some)
    }

    /// Enters a loop, or brings its entry up to date. What it has spent only grows: a call may have
    /// been counted here and not in the journal of a loop that was killed just then.
    pub fn note(&mut self, entry: &Entry) -> Result<(), StoreError> {
        note(&self.connection, entry).explain("enter the loop in the registry", &self.path)
    }

    /// All loops, the one heard of last first.
    pub fn entries(&self) -> Result<Vec<Entry>, StoreError> {
        entries(&self.connection).explain("list the loops of this machine", &self.path)
    }

    /// Takes a loop out, such as one whose repository is gone.
    pub fn forget(&mut self, id: LoopId) -> Result<(), StoreError> {
        let delete = "DELETE FROM loops WHERE id = ?1";
        self.connection
            .execute(delete, [id.0.as_bytes()])
            .explain("take the loop out of the registry", &self.path)?;
        Ok(())
    }

    /// Sets money aside for one call, if `admits` finds that there is enough: looked at and taken in
    /// one transaction, so that no two loops take the same. What loops of dead processes had set
    /// aside is free again.
    pub fn reserve(
        &mut self,
        entry: &Entry,
        estimate: Sum,
        is_alive: &dyn Fn(&Holder) -> bool,
        admits: &dyn Fn(&Shared) -> bool,
    ) -> Result<Reserved, StoreError> {
        let doing = "set money aside";
        let transaction = Transaction::new(&mut self.connection, TransactionBehavior::Immediate)
            .explain(doing, &self.path)?;
        let reserved = reserve(&transaction, entry, estimate, is_alive, admits).explain(doing, &self.path)?;
        transaction.commit().explain(doing, &self.path)?;
        Ok(reserved)
    }

    /// The call is over and cost this much; without a call under way nothing happens, so that none
    /// counts twice.
    pub fn settle(&mut self, id: LoopId, cost: Sum, at: Timestamp) -> Result<(), StoreError> {
        self.connection
            .prepare_cached(
                "UPDATE loops SET in_flight = 0, reserved_usd = 0, reserved_tokens = 0, seen_at = ?4,
                 spent_usd = spent_usd + ?2, spent_tokens = spent_tokens + ?3
                 WHERE id = ?1 AND in_flight = 1",
            )
            .and_then(|mut update| {
                update.execute((id.0.as_bytes(), cost.cost_usd, cost.tokens.cast_signed(), at.to_string()))
            })
            .explain("settle what a call cost", &self.path)?;
        Ok(())
    }

    /// What the loops of a project, and all loops, have spent and set aside.
    pub fn shared(&self, project: &str) -> Result<Shared, StoreError> {
        shared(&self.connection, project).explain("add up what was spent", &self.path)
    }

    fn connect(path: PathBuf) -> Result<Self, StoreError> {
        let doing = "open the registry";
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_with_flags(&path, flags).explain(doing, &path)?;
        connection.busy_timeout(BUSY).explain(doing, &path)?;
        let set_up = |connection: &Connection| {
            connection.pragma_update(None, "journal_mode", "WAL")?;
            connection.pragma_update(None, "synchronous", "NORMAL")
        };
        set_up(&connection).explain(doing, &path)?;
        match connection.pragma_query_value(None, "user_version", |row| row.get(0)).explain(doing, &path)? {
            FORMAT => {}
            0 => create_tables(&mut connection).explain(doing, &path)?,
            found => return Err(StoreError::Newer { path, found, known: FORMAT }),
        }
        Ok(Self { connection, path })
    }
}

fn reserve(
    connection: &Connection,
    entry: &Entry,
    estimate: Sum,
    is_alive: &dyn Fn(&Holder) -> bool,
    admits: &dyn Fn(&Shared) -> bool,
) -> rusqlite::Result<Reserved> {
    note(connection, entry)?;
    release_dead(connection, is_alive)?;
    let shared = shared(connection, &entry.project)?;
    if !admits(&shared) {
        return Ok(Reserved::Refused(shared));
    }
    connection
        .prepare_cached(
            "UPDATE loops SET in_flight = 1, reserved_usd = ?2, reserved_tokens = ?3 WHERE id = ?1",
        )?
        .execute((entry.id.0.as_bytes(), estimate.cost_usd, estimate.tokens.cast_signed()))?;
    Ok(Reserved::Granted(shared))
}

fn create_tables(connection: &mut Connection) -> rusqlite::Result<()> {
    let transaction = Transaction::new(connection, TransactionBehavior::Immediate)?;
    transaction.execute_batch(include_str!("registry.sql"))?;
    transaction.pragma_update(None, "user_version", FORMAT)?;
    transaction.commit()
}

fn note(connection: &Connection, entry: &Entry) -> rusqlite::Result<()> {
    let Entry { id, identity, project, state_dir, holder, seen_at, spent } = entry;
    let holder = holder.as_ref();
    connection
        .prepare_cached(
            "INSERT INTO loops (id, repository, backlog, name, project, state_dir, pid, started, boot, host,
                                seen_at, spent_usd, spent_tokens)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
             ON CONFLICT (id) DO UPDATE SET repository = ?2, backlog = ?3, name = ?4, project = ?5,
                 state_dir = ?6, pid = ?7, started = ?8, boot = ?9, host = ?10, seen_at = ?11,
                 spent_usd = max(spent_usd, ?12), spent_tokens = max(spent_tokens, ?13),
                 in_flight = 0, reserved_usd = 0, reserved_tokens = 0",
        )?
        .execute((
            id.0.as_bytes(),
            &identity.repository,
            &identity.backlog,
            &identity.name,
            project,
            state_dir.to_string_lossy(),
            holder.map(|holder| holder.pid),
            holder.map(|holder| &holder.started),
            holder.map(|holder| &holder.boot),
            holder.map(|holder| &holder.host),
            seen_at.to_string(),
            spent.cost_usd,
            spent.tokens.cast_signed(),
        ))?;
    Ok(())
}

const COLUMNS: &str = "id, repository, backlog, name, project, state_dir, pid, started, boot, host, seen_at,
                       spent_usd, spent_tokens";

fn entries(connection: &Connection) -> rusqlite::Result<Vec<Entry>> {
    let select = format!("SELECT {COLUMNS} FROM loops ORDER BY seen_at DESC, id");
    connection.prepare_cached(&select)?.query_map([], entry)?.collect()
}

fn entry(row: &Row<'_>) -> rusqlite::Result<Entry> {
    Ok(Entry {
        id: LoopId(column::uuid(row, 0)?),
        identity: Identity { repository: row.get(1)?, backlog: row.get(2)?, name: row.get(3)? },
        project: row.get(4)?,
        state_dir: row.get::<_, String>(5)?.into(),
        holder: holder(row, 6)?,
        seen_at: column::timestamp(row, 10)?,
        spent: Sum { cost_usd: row.get(11)?, tokens: column::counter(row, 12)? },
    })
}

fn holder(row: &Row<'_>, first: usize) -> rusqlite::Result<Option<Holder>> {
    let Some(pid) = row.get(first)? else { return Ok(None) };
    Ok(Some(Holder {
        pid,
        started: row.get(first + 1)?,
        boot: row.get(first + 2)?,
        host: row.get(first + 3)?,
    }))
}

/// Whoever is dead makes no call any more. What the call has cost until then nobody knows.
fn release_dead(connection: &Connection, is_alive: &dyn Fn(&Holder) -> bool) -> rusqlite::Result<()> {
    let mut select =
        connection.prepare_cached("SELECT id, pid, started, boot, host FROM loops WHERE in_flight = 1")?;
    let found: Vec<([u8; 16], Option<Holder>)> =
        select.query_map([], |row| Ok((row.get(0)?, holder(row, 1)?)))?.collect::<Result<_, _>>()?;
    for (id, _) in found.iter().filter(|(_, holder)| !holder.as_ref().is_some_and(is_alive)) {
        connection
            .prepare_cached(
                "UPDATE loops SET in_flight = 0, reserved_usd = 0, reserved_tokens = 0 WHERE id = ?1",
            )?
            .execute([id])?;
    }
    Ok(())
}

fn shared(connection: &Connection, project: &str) -> rusqlite::Result<Shared> {
    let sums =
        "coalesce(sum(spent_usd), 0.0), coalesce(sum(spent_tokens), 0), coalesce(sum(reserved_usd), 0.0),
                coalesce(sum(reserved_tokens), 0), coalesce(sum(in_flight), 0) FROM loops";
    let read = |row: &Row<'_>| {
        Ok(Account {
            spent: Sum { cost_usd: row.get(0)?, tokens: column::counter(row, 1)? },
            reserved: Sum { cost_usd: row.get(2)?, tokens: column::counter(row, 3)? },
            in_flight: row.get(4)?,
        })
    };
    let of_project = connection
        .prepare_cached(&format!("SELECT {sums} WHERE project = ?1"))?
        .query_row([project], read)?;
    let of_all = connection.prepare_cached(&format!("SELECT {sums}"))?.query_row([], read)?;
    Ok(Shared { project: of_project, organisation: of_all })
}
