//! One engine per loop: who holds the lease, and which epoch may write.

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior};
use wiggum_core::ids::{Epoch, LoopId};

use crate::error::{Explain, StoreError};
use crate::loops::{self, column};
use crate::store::Store;

/// A process, told apart from every later one that gets the same number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    pub pid: u32,
    /// When the process started, as the operating system says it.
    pub started: String,
    pub boot: String,
    pub host: String,
}

/// The lease as it stands; without a holder it is free, but its epoch still counts.
pub(crate) struct Lease {
    pub(crate) epoch: Epoch,
    pub(crate) holder: Option<Holder>,
    since: Option<Timestamp>,
}

impl Store {
    /// Takes the lease if it is free or its holder is dead, and gives the new epoch. From then on
    /// everything the holder before would still write is refused.
    pub fn acquire(
        &mut self,
        loop_id: LoopId,
        holder: &Holder,
        is_alive: &dyn Fn(&Holder) -> bool,
        at: Timestamp,
    ) -> Result<Epoch, StoreError> {
        let doing = "take the lease";
        let path = &self.path;
        let transaction =
            Transaction::new(&mut self.connection, TransactionBehavior::Immediate).explain(doing, path)?;
        let Some(lease) = lease(&transaction, loop_id).explain(doing, path)? else {
            return Err(StoreError::UnknownLoop { loop_id, path: path.clone() });
        };
        if let Some(holder) = lease.holder.filter(|current| is_alive(current)) {
            let identity = loops::identity(&transaction, loop_id).explain(doing, path)?;
            return Err(StoreError::Held { identity: Box::new(identity), holder, since: lease.since });
        }
        let epoch = lease.epoch + 1;
        take(&transaction, loop_id, epoch, holder, at).explain(doing, path)?;
        transaction.commit().explain(doing, path)?;
        Ok(epoch)
    }

    /// Gives the lease back; no effect if somebody else has it by now.
    pub fn release(&mut self, loop_id: LoopId, epoch: Epoch) -> Result<(), StoreError> {
        self.connection
            .execute(
                "UPDATE leases SET pid = NULL, started = NULL, boot = NULL, host = NULL, since = NULL
                 WHERE loop = ?1 AND epoch = ?2",
                (loop_id.0.as_bytes(), epoch.cast_signed()),
            )
            .explain("give back the lease", &self.path)?;
        Ok(())
    }

    /// Who holds the lease; whether that process still lives is for the caller to find out.
    pub fn holder(&self, loop_id: LoopId) -> Result<Option<Holder>, StoreError> {
        let lease = lease(&self.connection, loop_id).explain("read the lease", &self.path)?;
        Ok(lease.and_then(|lease| lease.holder))
    }

    /// Since when somebody holds the lease.
    pub fn held_since(&self, loop_id: LoopId) -> Result<Option<Timestamp>, StoreError> {
        let lease = lease(&self.connection, loop_id).explain("read the lease", &self.path)?;
        Ok(lease.and_then(|lease| lease.since))
    }
}

pub(crate) fn lease(connection: &Connection, loop_id: LoopId) -> rusqlite::Result<Option<Lease>> {
    connection
        .prepare_cached("SELECT epoch, pid, started, boot, host, since FROM leases WHERE loop = ?1")?
        .query_row([loop_id.0.as_bytes()], |row| {
            let holder = match row.get(1)? {
                None => None,
                Some(pid) => Some(Holder { pid, started: row.get(2)?, boot: row.get(3)?, host: row.get(4)? }),
            };
            // Written by any version, read for people alone.
            let since = row.get::<_, Option<String>>(5)?.and_then(|since| since.parse().ok());
            Ok(Lease { epoch: column::counter(row, 0)?, holder, since })
        })
        .optional()
}

fn take(
    connection: &Connection,
    loop_id: LoopId,
    epoch: Epoch,
    holder: &Holder,
    at: Timestamp,
) -> rusqlite::Result<usize> {
    let Holder { pid, started, boot, host } = holder;
    connection.execute(
        "UPDATE leases SET epoch = ?2, pid = ?3, started = ?4, boot = ?5, host = ?6, since = ?7
         WHERE loop = ?1",
        (loop_id.0.as_bytes(), epoch.cast_signed(), pid, started, boot, host, at.to_string()),
    )
}
