//! What people ask of a loop, waiting until its engine turns it into events.

use jiff::Timestamp;
use rusqlite::{Connection, Row, Transaction, TransactionBehavior};
use wiggum_core::event::Request;
use wiggum_core::ids::{LoopId, RequestId, Seq};

use crate::error::{Explain, StoreError};
use crate::journal::last_seq;
use crate::lease::lease;
use crate::loops::column;
use crate::store::Store;

/// A request nobody has dealt with yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    pub id: RequestId,
    pub request: Request,
    pub by: String,
    pub at: Timestamp,
}

/// What became of a request of which only the first counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Left {
    First(RequestId),
    /// This one was there before.
    Taken(Pending),
    /// The journal has gone on: look again whether it still makes sense.
    Moved,
}

impl Store {
    pub fn post(
        &mut self,
        loop_id: LoopId,
        request: &Request,
        by: &str,
        at: Timestamp,
    ) -> Result<RequestId, StoreError> {
        let doing = "leave the request";
        let known = lease(&self.connection, loop_id).explain(doing, &self.path)?;
        if known.is_none() {
            return Err(StoreError::UnknownLoop { loop_id, path: self.path.clone() });
        }
        insert(&self.connection, loop_id, request, by, at).explain(doing, &self.path)
    }

    /// As [`Store::post`], unless one of those that wait already takes its place, or the journal has gone on from
    /// where the request made sense.
    pub fn post_first(
        &mut self,
        loop_id: LoopId,
        request: &Request,
        by: &str,
        at: Timestamp,
        as_of: Option<Seq>,
        takes_its_place: &dyn Fn(&[Pending]) -> Option<Pending>,
    ) -> Result<Left, StoreError> {
        let doing = "leave the request";
        let path = &self.path;
        // Immediate, so that nobody can leave one between our look and our own.
        let transaction =
            Transaction::new(&mut self.connection, TransactionBehavior::Immediate).explain(doing, path)?;
        if lease(&transaction, loop_id).explain(doing, path)?.is_none() {
            return Err(StoreError::UnknownLoop { loop_id, path: path.clone() });
        }
        let last = last_seq(&transaction, loop_id).explain(doing, path)?;
        if as_of.is_some_and(|seq| seq != last) {
            return Ok(Left::Moved);
        }
        let rows = unhandled(&transaction, loop_id).explain(doing, path)?;
        let waiting = rows.into_iter().map(|row| row.decode(loop_id)).collect::<Result<Vec<_>, _>>()?;
        if let Some(other) = takes_its_place(&waiting) {
            return Ok(Left::Taken(other));
        }
        let id = insert(&transaction, loop_id, request, by, at).explain(doing, path)?;
        transaction.commit().explain(doing, path)?;
        Ok(Left::First(id))
    }

    /// The requests still to be dealt with, oldest first.
    pub fn pending(&self, loop_id: LoopId) -> Result<Vec<Pending>, StoreError> {
        let rows = unhandled(&self.connection, loop_id).explain("read the requests", &self.path)?;
        rows.into_iter().map(|row| row.decode(loop_id)).collect()
    }
}

pub(crate) fn mark_handled(
    connection: &Connection,
    loop_id: LoopId,
    ids: &[RequestId],
    seq: Seq,
) -> rusqlite::Result<()> {
    let mut update = connection.prepare_cached(
        "UPDATE requests SET handled_at_seq = ?3 WHERE id = ?1 AND loop = ?2 AND handled_at_seq IS NULL",
    )?;
    for id in ids {
        update.execute((id.0, loop_id.0.as_bytes(), seq.cast_signed()))?;
    }
    Ok(())
}

fn insert(
    connection: &Connection,
    loop_id: LoopId,
    request: &Request,
    by: &str,
    at: Timestamp,
) -> rusqlite::Result<RequestId> {
    let request = serde_json::to_string(request)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))?;
    connection.execute(
        "INSERT INTO requests (loop, request, by, at) VALUES (?1, ?2, ?3, ?4)",
        (loop_id.0.as_bytes(), request, by, at.to_string()),
    )?;
    Ok(RequestId(connection.last_insert_rowid()))
}

struct StoredRequest {
    id: RequestId,
    request: String,
    by: String,
    at: Timestamp,
}

impl StoredRequest {
    fn of(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            id: RequestId(row.get(0)?),
            request: row.get(1)?,
            by: row.get(2)?,
            at: column::timestamp(row, 3)?,
        })
    }

    fn decode(self, loop_id: LoopId) -> Result<Pending, StoreError> {
        let Self { id, request, by, at } = self;
        match serde_json::from_str(&request) {
            Ok(request) => Ok(Pending { id, request, by, at }),
            Err(source) => Err(StoreError::UnreadableRequest { loop_id, id, source }),
        }
    }
}

fn unhandled(connection: &Connection, loop_id: LoopId) -> rusqlite::Result<Vec<StoredRequest>> {
    connection
        .prepare_cached(
            "SELECT id, request, by, at FROM requests
             WHERE loop = ?1 AND handled_at_seq IS NULL ORDER BY id",
        )?
        .query_map([loop_id.0.as_bytes()], StoredRequest::of)?
        .collect()
}
