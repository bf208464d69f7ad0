//! How far each of those who want to be told of a loop has been told: the journal is the outbox, and this is
//! where in it they are.
//!
//! Whoever sends moves the place on only after it was sent. Two that send to the same target are kept apart
//! elsewhere; here a place never goes back.

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, TransactionBehavior};
use wiggum_core::ids::{LoopId, Seq};

use crate::error::{Explain, StoreError};
use crate::loops::column;
use crate::store::Store;

/// How many messages that were given up are remembered of each target; more would be read by nobody.
const REMEMBERED: i64 = 100;

/// How far a target has been told of a loop.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delivery {
    /// The last event that is dealt with.
    pub cursor: Seq,
    /// Messages that were sent.
    pub sent: u64,
    pub sent_at: Option<Timestamp>,
    /// What cannot be sent at the moment.
    pub failing: Option<Failing>,
}

/// A message that could not be sent, and will be tried again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failing {
    pub seq: Seq,
    pub attempts: u32,
    pub next_try: Timestamp,
    pub problem: String,
}

/// A message that nobody tries to send any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undelivered {
    pub loop_id: LoopId,
    pub target: String,
    pub seq: Seq,
    /// When it was given up.
    pub at: Timestamp,
    pub attempts: u32,
    pub problem: String,
}

impl Store {
    /// Since when a target is known here: from now on, if it was not known before.
    pub fn known_since(&mut self, target: &str, now: Timestamp) -> Result<Timestamp, StoreError> {
        let doing = "note who is to be told";
        // Looked for first: to write, even nothing, would be in the engine's way.
        if let Some(since) = known(&self.connection, target).explain(doing, &self.path)? {
            return Ok(since);
        }
        self.connection
            .execute("INSERT OR IGNORE INTO targets (name, since) VALUES (?1, ?2)", (target, now.to_string()))
            .explain(doing, &self.path)?;
        Ok(known(&self.connection, target).explain(doing, &self.path)?.unwrap_or(now))
    }

    pub fn delivery(&self, loop_id: LoopId, target: &str) -> Result<Option<Delivery>, StoreError> {
        let select = format!("SELECT {COLUMNS} FROM deliveries WHERE loop = ?1 AND target = ?2");
        self.connection
            .prepare_cached(&select)
            .and_then(|mut select| {
                select.query_row((loop_id.0.as_bytes(), target), |row| delivery(row, 0)).optional()
            })
            .explain("read what was told", &self.path)
    }

    /// Of every loop and target.
    pub fn deliveries(&self) -> Result<Vec<(LoopId, String, Delivery)>, StoreError> {
        let select = format!("SELECT loop, target, {COLUMNS} FROM deliveries ORDER BY target, loop");
        let read = |row: &Row<'_>| Ok((LoopId(column::uuid(row, 0)?), row.get(1)?, delivery(row, 2)?));
        self.connection
            .prepare_cached(&select)
            .and_then(|mut select| select.query_map([], read)?.collect())
            .explain("read what was told", &self.path)
    }

    /// Notes how far a target has been told, unless it is further already, and what was given up on the way.
    pub fn note_delivery(
        &mut self,
        loop_id: LoopId,
        target: &str,
        delivery: &Delivery,
        given_up: Option<&Undelivered>,
    ) -> Result<(), StoreError> {
        let doing = "note what was told";
        let transaction = Transaction::new(&mut self.connection, TransactionBehavior::Immediate)
            .explain(doing, &self.path)?;
        write(&transaction, loop_id, target, delivery).explain(doing, &self.path)?;
        if let Some(given_up) = given_up {
            forget_for(&transaction, given_up).explain(doing, &self.path)?;
        }
        transaction.commit().explain(doing, &self.path)
    }

    /// What was given up, the latest last.
    pub fn undelivered(&self) -> Result<Vec<Undelivered>, StoreError> {
        let read = |row: &Row<'_>| {
            Ok(Undelivered {
                loop_id: LoopId(column::uuid(row, 0)?),
                target: row.get(1)?,
                seq: column::counter(row, 2)?,
                at: column::timestamp(row, 3)?,
                attempts: row.get(4)?,
                problem: row.get(5)?,
            })
        };
        self.connection
            .prepare_cached(
                "SELECT loop, target, seq, at, attempts, problem FROM undelivered ORDER BY at, loop, seq",
            )
            .and_then(|mut select| select.query_map([], read)?.collect())
            .explain("read what was given up", &self.path)
    }

    /// Somebody has seen what was given up for this target.
    pub fn clear_undelivered(&mut self, target: &str) -> Result<usize, StoreError> {
        self.connection
            .execute("DELETE FROM undelivered WHERE target = ?1", [target])
            .explain("forget what was given up", &self.path)
    }
}

fn known(connection: &Connection, target: &str) -> rusqlite::Result<Option<Timestamp>> {
    connection
        .prepare_cached("SELECT since FROM targets WHERE name = ?1")?
        .query_row([target], |row| column::timestamp(row, 0))
        .optional()
}

const COLUMNS: &str = "cursor, sent, sent_at, failing_seq, attempts, next_try, problem";

fn delivery(row: &Row<'_>, first: usize) -> rusqlite::Result<Delivery> {
    let optional = |index: usize| -> rusqlite::Result<Option<Timestamp>> {
        let text: Option<String> = row.get(index)?;
        text.map(|_| column::timestamp(row, index)).transpose()
    };
    let failing = match row.get::<_, Option<i64>>(first + 3)? {
        None => None,
        Some(_) => Some(Failing {
            seq: column::counter(row, first + 3)?,
            attempts: row.get(first + 4)?,
            next_try: column::timestamp(row, first + 5)?,
            problem: row.get(first + 6)?,
        }),
    };
    Ok(Delivery {
        cursor: column::counter(row, first)?,
        sent: column::counter(row, first + 1)?,
        sent_at: optional(first + 2)?,
        failing,
    })
}

fn write(
    connection: &Connection,
    loop_id: LoopId,
    target: &str,
    delivery: &Delivery,
) -> rusqlite::Result<()> {
    let Delivery { cursor, sent, sent_at, failing } = delivery;
    let failing = failing.as_ref();
    connection
        .prepare_cached(
            "INSERT INTO deliveries (loop, target, cursor, sent, sent_at, failing_seq, attempts, next_try, problem)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
             ON CONFLICT (loop, target) DO UPDATE SET cursor = ?3, sent = ?4, sent_at = ?5,
                 failing_seq = ?6, attempts = ?7, next_try = ?8, problem = ?9
             WHERE cursor <= ?3",
        )?
        .execute((
            loop_id.0.as_bytes(),
            target,
            cursor.cast_signed(),
            sent.cast_signed(),
            sent_at.map(|at| at.to_string()),
            failing.map(|failing| failing.seq.cast_signed()),
            failing.map(|failing| failing.attempts),
            failing.map(|failing| failing.next_try.to_string()),
            failing.map(|failing| &failing.problem),
        ))?;
    Ok(())
}

fn forget_for(connection: &Connection, given_up: &Undelivered) -> rusqlite::Result<()> {
    let Undelivered { loop_id, target, seq, at, attempts, problem } = given_up;
    connection.execute(
        "INSERT OR REPLACE INTO undelivered (loop, target, seq, at, attempts, problem)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        (loop_id.0.as_bytes(), target, seq.cast_signed(), at.to_string(), attempts, problem),
    )?;
    connection.execute(
        "DELETE FROM undelivered WHERE target = ?1 AND (loop, seq) NOT IN
         (SELECT loop, seq FROM undelivered WHERE target = ?1 ORDER BY at DESC, seq DESC LIMIT ?2)",
        (target, REMEMBERED),
    )?;
    Ok(())
}
