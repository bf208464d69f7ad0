//! Which loops there are.

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, TransactionBehavior};
use wiggum_core::ids::LoopId;

use crate::error::{Explain, StoreError};
use crate::store::Store;

/// What makes a loop this loop and not another: its backlog and its name, in one store.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    /// Where the checkout was when the loop last ran. A checkout may be moved, so it tells no loop from
    /// another.
    pub repository: String,
    pub backlog: String,
    pub name: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoopRecord {
    pub id: LoopId,
    pub identity: Identity,
    pub created_at: Timestamp,
}

impl Store {
    /// The loop over this backlog with this name, wherever the checkout was at the time. A checkout that was
    /// moved before stores knew of moves may have several; the newest goes on.
    pub fn find_loop(&self, identity: &Identity) -> Result<Option<LoopRecord>, StoreError> {
        find(&self.connection, identity).explain("look up the loop", &self.path)
    }

    /// Notes where the checkout of a loop is now.
    pub fn move_loop(&mut self, id: LoopId, repository: &str) -> Result<(), StoreError> {
        // An older loop of the same backlog and name may be entered for that place already. It stays there.
        self.connection
            .execute(
                "UPDATE OR IGNORE loops SET repository = ?2 WHERE id = ?1",
                (id.0.as_bytes(), repository),
            )
            .explain("note where the loop's checkout is", &self.path)?;
        Ok(())
    }

    /// The loop of this identity: the one there is, else a new one under the given id. When two ask
    /// at once, one of them makes it and both get the same.
    pub fn create_loop(
        &mut self,
        identity: &Identity,
        id: LoopId,
        at: Timestamp,
    ) -> Result<LoopRecord, StoreError> {
        create(&mut self.connection, identity, id, at).explain("record the loop", &self.path)
    }

    /// Takes out a loop of which nothing was ever recorded; one with a history stays.
    pub fn forget_empty_loop(&mut self, id: LoopId) -> Result<(), StoreError> {
        forget_empty(&mut self.connection, id).explain("take out the loop", &self.path)
    }

    /// All loops, in the order they were made.
    pub fn loops(&self) -> Result<Vec<LoopRecord>, StoreError> {
        all(&self.connection).explain("list the loops", &self.path)
    }
}

fn find(connection: &Connection, identity: &Identity) -> rusqlite::Result<Option<LoopRecord>> {
    connection
        .prepare_cached(
            "SELECT id, repository, backlog, name, created_at FROM loops
             WHERE tenant = 'local' AND backlog = ?1 AND name = ?2 ORDER BY rowid DESC LIMIT 1",
        )?
        .query_row((&identity.backlog, &identity.name), record)
        .optional()
}

/// What a loop that there is was made for.
pub(crate) fn identity(connection: &Connection, id: LoopId) -> rusqlite::Result<Identity> {
    connection
        .prepare_cached("SELECT id, repository, backlog, name, created_at FROM loops WHERE id = ?1")?
        .query_row([id.0.as_bytes()], record)
        .map(|record| record.identity)
}

fn create(
    connection: &mut Connection,
    identity: &Identity,
    id: LoopId,
    at: Timestamp,
) -> rusqlite::Result<LoopRecord> {
    let transaction = Transaction::new(connection, TransactionBehavior::Immediate)?;
    if let Some(found) = find(&transaction, identity)? {
        return Ok(found);
    }
    let Identity { repository, backlog, name } = identity;
    transaction.execute(
        "INSERT INTO loops (id, repository, backlog, name, created_at) VALUES (?1, ?2, ?3, ?4, ?5)",
        (id.0.as_bytes(), repository, backlog, name, at.to_string()),
    )?;
    transaction.execute("INSERT INTO leases (loop) VALUES (?1)", [id.0.as_bytes()])?;
    transaction.commit()?;
    Ok(LoopRecord { id, identity: identity.clone(), created_at: at })
}

fn forget_empty(connection: &mut Connection, id: LoopId) -> rusqlite::Result<()> {
    let transaction = Transaction::new(connection, TransactionBehavior::Immediate)?;
    let id = id.0.as_bytes();
    let history = "SELECT 1 FROM events WHERE tenant = 'local' AND loop = ?1 UNION SELECT 1 FROM requests WHERE loop = ?1";
    if !transaction.prepare_cached(history)?.exists([id])? {
        transaction.execute("DELETE FROM leases WHERE loop = ?1", [id])?;
        transaction.execute("DELETE FROM loops WHERE id = ?1", [id])?;
    }
    transaction.commit()
}

fn all(connection: &Connection) -> rusqlite::Result<Vec<LoopRecord>> {
    connection
        .prepare_cached("SELECT id, repository, backlog, name, created_at FROM loops ORDER BY rowid")?
        .query_map([], record)?
        .collect()
}

fn record(row: &Row<'_>) -> rusqlite::Result<LoopRecord> {
    let identity = Identity { repository: row.get(1)?, backlog: row.get(2)?, name: row.get(3)? };
    Ok(LoopRecord { id: LoopId(column::uuid(row, 0)?), identity, created_at: column::timestamp(row, 4)? })
}

/// Columns whose stored shape is not their domain type.
pub(crate) mod column {
    use jiff::Timestamp;
    use rusqlite::types::{FromSqlError, Type};
    use rusqlite::{Error, Row};
    use uuid::Uuid;

    pub(crate) fn uuid(row: &Row<'_>, index: usize) -> rusqlite::Result<Uuid> {
        Ok(Uuid::from_bytes(row.get(index)?))
    }

    pub(crate) fn timestamp(row: &Row<'_>, index: usize) -> rusqlite::Result<Timestamp> {
        let text = row.get_ref(index)?.as_str()?;
        text.parse().map_err(|error: jiff::Error| {
            Error::FromSqlConversionFailure(index, Type::Text, Box::new(FromSqlError::other(error)))
        })
    }

    /// Counters are stored as SQLite's signed integers; none comes near the sign.
    pub(crate) fn counter(row: &Row<'_>, index: usize) -> rusqlite::Result<u64> {
        row.get::<_, i64>(index).map(i64::cast_unsigned)
    }
}
