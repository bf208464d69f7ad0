//! The journal: events in order, written by whoever holds the lease, read by everyone.
//!
//! Order is by sequence number alone: clocks may go backwards, and an event's time is kept as given.

use std::path::Path;

use jiff::Timestamp;
use rusqlite::{Connection, Row, Transaction, TransactionBehavior};
use uuid::Uuid;
use wiggum_core::event::{EVENT_VERSION, Envelope, Event};
use wiggum_core::ids::{Epoch, LoopId, RequestId, Seq};
use wiggum_core::mutant::{Mutant, planted};

use crate::blobs::{self, Blob};
use crate::error::{Explain, StoreError};
use crate::lease::lease;
use crate::loops::column;
use crate::projections;
use crate::requests;
use crate::store::Store;

/// What one step of an engine records, all of it or nothing.
#[derive(Clone, Copy, Debug)]
pub struct Append<'a> {
    pub loop_id: LoopId,
    /// The last event the writer knows; 0 before the first.
    pub expected_seq: Seq,
    pub epoch: Epoch,
    /// Numbered from `expected_seq + 1`, without gaps.
    pub envelopes: &'a [Envelope],
    pub blobs: &'a [Blob<'a>],
    /// Requests these events deal with.
    pub handled: &'a [RequestId],
    /// The status after the last of these events.
    pub projection: Option<&'a str>,
}

impl Append<'_> {
    fn last_seq(&self) -> Seq {
        self.expected_seq + self.envelopes.len() as Seq
    }
}

impl Store {
    /// Records the batch durably, in one commit: when this returns, a power cut cannot undo it.
    pub fn append(&mut self, batch: &Append<'_>) -> Result<(), StoreError> {
        assert_in_order(batch);
        let doing = "append to the journal";
        let path = &self.path;
        if let Some(disk) = &self.options.disk {
            disk().explain(doing, path)?;
        }
        // Immediate, so that nobody can append between our look at the journal and our write.
        let transaction =
            Transaction::new(&mut self.connection, TransactionBehavior::Immediate).explain(doing, path)?;
        check_epoch(&transaction, batch, path)?;
        check_expected(&transaction, batch, path)?;
        write(&transaction, batch).explain(doing, path)?;
        transaction.commit().explain(doing, path)?;
        if self.options.frugal {
            self.connection.execute_batch("PRAGMA shrink_memory").explain(doing, path)?;
        }
        Ok(())
    }

    /// The events after the given one, all in memory.
    pub fn read(&self, loop_id: LoopId, after: Seq) -> Result<Vec<Envelope>, StoreError> {
        let mut envelopes = Vec::new();
        self.for_each(loop_id, after, |envelope| envelopes.push(envelope))?;
        Ok(envelopes)
    }

    /// Shows the events after the given one, one at a time. Stops with an error at the first that
    /// this version cannot read.
    pub fn for_each(
        &self,
        loop_id: LoopId,
        after: Seq,
        mut visit: impl FnMut(Envelope),
    ) -> Result<(), StoreError> {
        self.for_each_readable(loop_id, after, |envelope| envelope.map(&mut visit))
    }

    /// At most so many of the events after the given one.
    pub fn page(&self, loop_id: LoopId, after: Seq, most: u32) -> Result<Vec<Envelope>, StoreError> {
        let mut envelopes = Vec::new();
        self.for_some(loop_id, after, most, |envelope| envelopes.push(envelope))?;
        Ok(envelopes)
    }

    /// As [`Store::for_each`], for at most so many.
    pub fn for_some(
        &self,
        loop_id: LoopId,
        after: Seq,
        most: u32,
        mut visit: impl FnMut(Envelope),
    ) -> Result<(), StoreError> {
        self.visit(loop_id, after, i64::from(most), |envelope| envelope.map(&mut visit))
    }

    /// The last event's number; 0 for an empty journal.
    pub fn last_seq(&self, loop_id: LoopId) -> Result<Seq, StoreError> {
        last_seq(&self.connection, loop_id).explain("read the journal", &self.path)
    }

    /// Shows every event, or why it cannot be read, until `visit` has enough.
    pub(crate) fn for_each_readable(
        &self,
        loop_id: LoopId,
        after: Seq,
        visit: impl FnMut(Result<Envelope, StoreError>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        // To SQLite this is no limit.
        self.visit(loop_id, after, -1, visit)
    }

    fn visit(
        &self,
        loop_id: LoopId,
        after: Seq,
        most: i64,
        mut visit: impl FnMut(Result<Envelope, StoreError>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let doing = "read the journal";
        let path = &self.path;
        let mut select = self
            .connection
            .prepare_cached(
                "SELECT seq, id, at, epoch, v, type, payload FROM events
                 WHERE tenant = 'local' AND loop = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3",
            )
            .explain(doing, path)?;
        let mut rows =
            select.query((loop_id.0.as_bytes(), after.cast_signed(), most)).explain(doing, path)?;
        while let Some(row) = rows.next().explain(doing, path)? {
            visit(StoredEvent::of(row).explain(doing, path)?.decode(loop_id))?;
        }
        Ok(())
    }
}

fn assert_in_order(batch: &Append<'_>) {
    for (envelope, seq) in batch.envelopes.iter().zip(batch.expected_seq + 1..) {
        assert_eq!(envelope.seq, seq, "events are numbered without gaps from the last known one");
        assert_eq!(envelope.epoch, batch.epoch, "an event carries the epoch it is written under");
    }
}

fn check_epoch(connection: &Connection, batch: &Append<'_>, path: &Path) -> Result<(), StoreError> {
    let loop_id = batch.loop_id;
    let Some(lease) = lease(connection, loop_id).explain("read the lease", path)? else {
        return Err(StoreError::UnknownLoop { loop_id, path: path.to_owned() });
    };
    if lease.epoch != batch.epoch || lease.holder.is_none() {
        return Err(StoreError::Fenced { loop_id, epoch: batch.epoch, current: lease.epoch });
    }
    Ok(())
}

fn check_expected(connection: &Connection, batch: &Append<'_>, path: &Path) -> Result<(), StoreError> {
    let found = last_seq(connection, batch.loop_id).explain("read the journal", path)?;
    if found != batch.expected_seq {
        return Err(StoreError::Conflict { loop_id: batch.loop_id, expected: batch.expected_seq, found });
    }
    Ok(())
}

fn write(connection: &Connection, batch: &Append<'_>) -> rusqlite::Result<()> {
    for envelope in batch.envelopes {
        let lost = planted(Mutant::LosesEvents) && envelope.seq < batch.last_seq();
        if lost && matches!(envelope.event, Event::TreeTaken { .. }) {
            continue;
        }
        insert(connection, batch.loop_id, envelope)?;
    }
    blobs::keep(connection, batch.blobs)?;
    requests::mark_handled(connection, batch.loop_id, batch.handled, batch.last_seq())?;
    if let Some(status) = batch.projection {
        projections::replace(connection, batch.loop_id, batch.last_seq(), status)?;
    }
    Ok(())
}

fn insert(connection: &Connection, loop_id: LoopId, envelope: &Envelope) -> rusqlite::Result<()> {
    let Envelope { v, seq, id, at, epoch, event } = envelope;
    let forgotten = planted(Mutant::ForgetsEpoch) && matches!(event, Event::TreeTaken { .. });
    let epoch = if forgotten { 0 } else { *epoch };
    let payload = serde_json::to_string(event)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))?;
    connection
        .prepare_cached(
            "INSERT INTO events (loop, seq, id, at, epoch, v, type, payload)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        )?
        .execute((
            loop_id.0.as_bytes(),
            seq.cast_signed(),
            id.as_bytes(),
            at.to_string(),
            epoch.cast_signed(),
            v,
            kind_of(&payload),
            &payload,
        ))?;
    Ok(())
}

/// The event's type, which serde writes first. Reading it off spares parsing a whole backlog.
fn kind_of(payload: &str) -> &str {
    payload
        .strip_prefix(r#"{"type":""#)
        .and_then(|rest| rest.split('"').next())
        .expect("an internally tagged enum is written with its tag first")
}

pub(crate) fn last_seq(connection: &Connection, loop_id: LoopId) -> rusqlite::Result<Seq> {
    connection
        .prepare_cached("SELECT coalesce(max(seq), 0) FROM events WHERE tenant = 'local' AND loop = ?1")?
        .query_row([loop_id.0.as_bytes()], |row| column::counter(row, 0))
}

/// A row as it is in the table.
struct StoredEvent<'a> {
    seq: Seq,
    id: Uuid,
    at: Timestamp,
    epoch: Epoch,
    v: u32,
    kind: &'a str,
    payload: &'a str,
}

impl<'a> StoredEvent<'a> {
    fn of(row: &'a Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            seq: column::counter(row, 0)?,
            id: column::uuid(row, 1)?,
            at: column::timestamp(row, 2)?,
            epoch: column::counter(row, 3)?,
            v: row.get(4)?,
            kind: row.get_ref(5)?.as_str()?,
            payload: row.get_ref(6)?.as_str()?,
        })
    }

    fn decode(self, loop_id: LoopId) -> Result<Envelope, StoreError> {
        let Self { seq, id, at, epoch, v, kind, payload } = self;
        let unreadable = |source| StoreError::Unreadable { loop_id, seq, kind: kind.to_owned(), source };
        if v > EVENT_VERSION {
            return Err(unreadable(None));
        }
        let event: Event = serde_json::from_str(payload).map_err(|error| unreadable(Some(error)))?;
        Ok(Envelope { v, seq, id, at, epoch, event })
    }
}
