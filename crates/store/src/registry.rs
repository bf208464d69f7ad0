//! The loops of this machine, of all repositories of one user: where each keeps its state, when it
//! was last heard of, what it has spent, and what its call under way may still cost.
//!
//! It lies in the user's data directory, beside no repository. Nothing in it is needed to run a loop:
//! a loop that is missing here enters itself again, with what its journal says it has spent. So a
//! commit here need not outlive a power cut, and costs no sync; it outlives every kill of a process.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use rusqlite::{Connection, OpenFlags, OptionalExtension, Row, Transaction, TransactionBehavior};
use wiggum_core::budget::{Account, Shared, Span, Spans, Sum};
use wiggum_core::ids::LoopId;

use crate::error::{Explain, StoreError};
use crate::lease::Holder;
use crate::loops::{Identity, column};
use crate::store::{BUSY, create_file, lock_directory_of};

/// The format this build writes, kept in SQLite's `user_version`.
const FORMAT: u32 = 2;

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
        let doing = "enter the loop in the registry";
        let transaction = Transaction::new(&mut self.connection, TransactionBehavior::Immediate)
            .explain(doing, &self.path)?;
        note(&transaction, entry).explain(doing, &self.path)?;
        transaction.commit().explain(doing, &self.path)
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

    /// Is this loop entered?
    pub fn knows(&self, id: LoopId) -> Result<bool, StoreError> {
        self.connection
            .prepare_cached("SELECT count(*) FROM loops WHERE id = ?1")
            .and_then(|mut select| select.query_row([id.0.as_bytes()], |row| row.get(0)))
            .explain("look for the loop in the registry", &self.path)
    }

    /// Enters a loop that is not known here, with when it spent what, as its journal tells.
    pub fn enter(&mut self, entry: &Entry, charges: &[(Timestamp, Sum)]) -> Result<(), StoreError> {
        let doing = "enter the loop in the registry";
        let transaction = Transaction::new(&mut self.connection, TransactionBehavior::Immediate)
            .explain(doing, &self.path)?;
        let enter = || -> rusqlite::Result<()> {
            let told = Entry { spent: Sum::default(), ..entry.clone() };
            note(&transaction, &told)?;
            for (at, sum) in charges {
                charge(&transaction, entry.id, *sum, *at)?;
            }
            note(&transaction, entry)
        };
        enter().explain(doing, &self.path)?;
        transaction.commit().explain(doing, &self.path)
    }

    /// Sets money aside for one call, if `admits` finds that there is enough: looked at and taken in
    /// one transaction, so that no two loops take the same. What loops of dead processes had set
    /// aside is free again. `spans` are the times under way of budgets that begin anew.
    pub fn reserve(
        &mut self,
        entry: &Entry,
        estimate: Sum,
        spans: &Spans,
        is_alive: &dyn Fn(&Holder) -> bool,
        admits: &dyn Fn(&Shared) -> bool,
    ) -> Result<Reserved, StoreError> {
        let doing = "set money aside";
        let transaction = Transaction::new(&mut self.connection, TransactionBehavior::Immediate)
            .explain(doing, &self.path)?;
        let reserved =
            reserve(&transaction, entry, estimate, spans, is_alive, admits).explain(doing, &self.path)?;
        transaction.commit().explain(doing, &self.path)?;
        Ok(reserved)
    }

    /// The call under way has used this much so far; says what all others have spent and set aside.
    pub fn note_use(&mut self, id: LoopId, used: Sum, spans: &Spans) -> Result<Shared, StoreError> {
        note_use(&self.connection, id, used, spans).explain("note what a call has used", &self.path)
    }

    /// The call is over and cost this much; without a call under way nothing happens, so that none
    /// counts twice.
    pub fn settle(&mut self, id: LoopId, cost: Sum, at: Timestamp) -> Result<(), StoreError> {
        let doing = "settle what a call cost";
        let transaction = Transaction::new(&mut self.connection, TransactionBehavior::Immediate)
            .explain(doing, &self.path)?;
        settle(&transaction, id, cost, at).explain(doing, &self.path)?;
        transaction.commit().explain(doing, &self.path)
    }

    /// What the loops of a project, and all loops, have spent and set aside.
    pub fn shared(&self, project: &str, spans: &Spans) -> Result<Shared, StoreError> {
        shared(&self.connection, project, spans, None).explain("add up what was spent", &self.path)
    }

    fn connect(path: PathBuf) -> Result<Self, StoreError> {
        let doing = "open the registry";
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_with_flags(&path, flags).explain(doing, &path)?;
        connection.busy_timeout(BUSY).explain(doing, &path)?;
        let set_up = |connection: &Connection| {
            connection.pragma_update(None, "journal_mode", "WAL")?;
            connection.pragma_update(None, "foreign_keys", true)?;
            connection.pragma_update(None, "synchronous", "NORMAL")
        };
        set_up(&connection).explain(doing, &path)?;
        match connection.pragma_query_value(None, "user_version", |row| row.get(0)).explain(doing, &path)? {
            FORMAT => {}
            found @ (0 | 1) => bring_up_to_date(&mut connection, found).explain(doing, &path)?,
            found => return Err(StoreError::Newer { path, found, known: FORMAT }),
        }
        Ok(Self { connection, path })
    }
}

fn reserve(
    connection: &Connection,
    entry: &Entry,
    estimate: Sum,
    spans: &Spans,
    is_alive: &dyn Fn(&Holder) -> bool,
    admits: &dyn Fn(&Shared) -> bool,
) -> rusqlite::Result<Reserved> {
    note(connection, entry)?;
    release_dead(connection, entry.seen_at, is_alive)?;
    let shared = shared(connection, &entry.project, spans, None)?;
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

/// What is set aside for a call never shrinks below what it has used: that is gone.
fn note_use(connection: &Connection, id: LoopId, used: Sum, spans: &Spans) -> rusqlite::Result<Shared> {
    connection
        .prepare_cached(
            "UPDATE loops SET used_usd = ?2, used_tokens = ?3,
                 reserved_usd = max(reserved_usd, ?2), reserved_tokens = max(reserved_tokens, ?3)
             WHERE id = ?1 AND in_flight = 1",
        )?
        .execute((id.0.as_bytes(), used.cost_usd, used.tokens.cast_signed()))?;
    let project: String = connection
        .prepare_cached("SELECT project FROM loops WHERE id = ?1")?
        .query_row([id.0.as_bytes()], |row| row.get(0))?;
    shared(connection, &project, spans, Some(id))
}

fn settle(connection: &Connection, id: LoopId, cost: Sum, at: Timestamp) -> rusqlite::Result<()> {
    let under_way = connection
        .prepare_cached(
            "UPDATE loops SET in_flight = 0, reserved_usd = 0, reserved_tokens = 0, used_usd = 0, used_tokens = 0,
                 seen_at = ?4, spent_usd = spent_usd + ?2, spent_tokens = spent_tokens + ?3
             WHERE id = ?1 AND in_flight = 1",
        )?
        .execute((id.0.as_bytes(), cost.cost_usd, cost.tokens.cast_signed(), at.to_string()))?;
    if under_way > 0 { insert_charge(connection, id, cost, at) } else { Ok(()) }
}

/// Adds to what a loop has spent.
fn charge(connection: &Connection, id: LoopId, sum: Sum, at: Timestamp) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "UPDATE loops SET spent_usd = spent_usd + ?2, spent_tokens = spent_tokens + ?3 WHERE id = ?1",
        )?
        .execute((id.0.as_bytes(), sum.cost_usd, sum.tokens.cast_signed()))?;
    insert_charge(connection, id, sum, at)
}

fn insert_charge(connection: &Connection, id: LoopId, sum: Sum, at: Timestamp) -> rusqlite::Result<()> {
    if sum == Sum::default() {
        return Ok(());
    }
    connection
        .prepare_cached("INSERT INTO charges (loop, at, usd, tokens) VALUES (?1, ?2, ?3, ?4)")?
        .execute((id.0.as_bytes(), at.as_millisecond(), sum.cost_usd, sum.tokens.cast_signed()))?;
    Ok(())
}

/// Another process may have done it while this one waited.
fn bring_up_to_date(connection: &mut Connection, found: u32) -> rusqlite::Result<()> {
    let transaction = Transaction::new(connection, TransactionBehavior::Immediate)?;
    let found: u32 = transaction.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap_or(found);
    if found < 1 {
        transaction.execute_batch(include_str!("registry.sql"))?;
    }
    if found < 2 {
        transaction.execute_batch(include_str!("registry_2.sql"))?;
    }
    transaction.pragma_update(None, "user_version", FORMAT)?;
    transaction.commit()
}

/// Enters a loop or brings its entry up to date. A call that was under way and not settled is over: what it
/// had used is spent, though the loop's journal may not know it. What a loop has spent beyond what was
/// known here, it spent until now.
fn note(connection: &Connection, entry: &Entry) -> rusqlite::Result<()> {
    let Entry { id, identity, project, state_dir, holder, seen_at, spent } = entry;
    release(connection, *id, *seen_at)?;
    let before = connection
        .prepare_cached("SELECT spent_usd, spent_tokens FROM loops WHERE id = ?1")?
        .query_row([id.0.as_bytes()], |row| {
            Ok(Sum { cost_usd: row.get(0)?, tokens: column::counter(row, 1)? })
        })
        .optional()?
        .unwrap_or_default();
    let holder = holder.as_ref();
    connection
        .prepare_cached(
            "INSERT INTO loops (id, repository, backlog, name, project, state_dir, pid, started, boot, host,
                                seen_at, spent_usd, spent_tokens)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
             ON CONFLICT (id) DO UPDATE SET repository = ?2, backlog = ?3, name = ?4, project = ?5,
                 state_dir = ?6, pid = ?7, started = ?8, boot = ?9, host = ?10, seen_at = ?11,
                 spent_usd = max(spent_usd, ?12), spent_tokens = max(spent_tokens, ?13)",
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
    let more = Sum {
        cost_usd: (spent.cost_usd - before.cost_usd).max(0.0),
        tokens: spent.tokens.saturating_sub(before.tokens),
    };
    insert_charge(connection, *id, more, *seen_at)
}

/// A call that nobody will settle is over. What it had told to have used is spent.
fn release(connection: &Connection, id: LoopId, at: Timestamp) -> rusqlite::Result<()> {
    let used = connection
        .prepare_cached("SELECT used_usd, used_tokens FROM loops WHERE id = ?1 AND in_flight = 1")?
        .query_row([id.0.as_bytes()], |row| {
            Ok(Sum { cost_usd: row.get(0)?, tokens: column::counter(row, 1)? })
        })
        .optional()?;
    used.map_or(Ok(()), |used| settle(connection, id, used, at))
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

/// Whoever is dead makes no call any more.
fn release_dead(
    connection: &Connection,
    at: Timestamp,
    is_alive: &dyn Fn(&Holder) -> bool,
) -> rusqlite::Result<()> {
    let mut select =
        connection.prepare_cached("SELECT id, pid, started, boot, host FROM loops WHERE in_flight = 1")?;
    let found: Vec<(LoopId, Option<Holder>)> = select
        .query_map([], |row| Ok((LoopId(column::uuid(row, 0)?), holder(row, 1)?)))?
        .collect::<Result<_, _>>()?;
    for (id, _) in found.iter().filter(|(_, holder)| !holder.as_ref().is_some_and(is_alive)) {
        release(connection, *id, at)?;
    }
    Ok(())
}

/// What the loops of a project, and all loops, have spent in the times under way, and set aside. What
/// `except` has set aside does not count.
fn shared(
    connection: &Connection,
    project: &str,
    spans: &Spans,
    except: Option<LoopId>,
) -> rusqlite::Result<Shared> {
    let account = |project: Option<&str>, span: Option<Span>| -> rusqlite::Result<Account> {
        let spent = spent(connection, project, span)?;
        let mut account = connection
            .prepare_cached(
                "SELECT coalesce(sum(reserved_usd), 0.0), coalesce(sum(reserved_tokens), 0),
                        coalesce(sum(in_flight), 0)
                 FROM loops WHERE (?1 IS NULL OR project = ?1) AND id IS NOT ?2",
            )?
            .query_row((project, except.map(|id| id.0.into_bytes())), |row| {
                let reserved = Sum { cost_usd: row.get(0)?, tokens: column::counter(row, 1)? };
                Ok(Account { reserved, in_flight: row.get(2)?, ..Account::default() })
            })?;
        (account.spent, account.resets_at) = (spent, span.map(|span| span.ends));
        Ok(account)
    };
    Ok(Shared {
        project: account(Some(project), spans.project)?,
        organisation: account(None, spans.organisation)?,
    })
}

/// In the time under way, or ever.
fn spent(connection: &Connection, project: Option<&str>, span: Option<Span>) -> rusqlite::Result<Sum> {
    let read = |row: &Row<'_>| Ok(Sum { cost_usd: row.get(0)?, tokens: column::counter(row, 1)? });
    match span {
        None => connection
            .prepare_cached(
                "SELECT coalesce(sum(spent_usd), 0.0), coalesce(sum(spent_tokens), 0)
                 FROM loops WHERE ?1 IS NULL OR project = ?1",
            )?
            .query_row([project], read),
        Some(Span { begins, .. }) => connection
            .prepare_cached(
                "SELECT coalesce(sum(usd), 0.0), coalesce(sum(tokens), 0)
                 FROM charges JOIN loops ON loops.id = charges.loop
                 WHERE at >= ?2 AND (?1 IS NULL OR project = ?1)",
            )?
            .query_row((project, begins.as_millisecond()), read),
    }
}
