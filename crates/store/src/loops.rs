//! Which loops there are.

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, TransactionBehavior};
use wiggum_core::ids::LoopId;

use crate::error::{Explain, StoreError};
use crate::store::Store;

/// What makes a loop this loop and not another.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
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
    pub fn find_loop(&self, identity: &Identity) -> Result<Option<LoopRecord>, StoreError> {
        find(&self.connection, identity).explain("look up the loop", &self.path)
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

    /// All loops, in the order they were made.
    pub fn loops(&self) -> Result<Vec<LoopRecord>, StoreError> {
        all(&self.connection).explain("list the loops", &self.path)
    }
}

fn find(connection: &Connection, identity: &Identity) -> rusqlite::Result<Option<LoopRecord>> {
    connection
        .prepare_cached(
            "SELECT id, repository, backlog, name, created_at FROM loops
             WHERE tenant = 'local' AND repository = ?1 AND backlog = ?2 AND name = ?3",
        )?
        .query_row((&identity.repository, &identity.backlog, &identity.name), record)
        .optional()
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
