//! The status of each loop as of some event: disposable, since the journal can be folded again.

use rusqlite::{Connection, OptionalExtension};
use wiggum_core::ids::{LoopId, Seq};

use crate::error::{Explain, StoreError};
use crate::loops::column;
use crate::store::Store;

impl Store {
    /// The JSON text of the status, and the last event it stands for.
    pub fn projection(&self, loop_id: LoopId) -> Result<Option<(Seq, String)>, StoreError> {
        find(&self.connection, loop_id).explain("read the status", &self.path)
    }

    /// Drops every projection; the next append that brings one writes it anew.
    pub fn forget_projections(&mut self) -> Result<(), StoreError> {
        self.connection.execute("DELETE FROM projections", []).explain("drop the status", &self.path)?;
        Ok(())
    }
}

pub(crate) fn replace(
    connection: &Connection,
    loop_id: LoopId,
    seq: Seq,
    status: &str,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached("INSERT OR REPLACE INTO projections (loop, seq, status) VALUES (?1, ?2, ?3)")?
        .execute((loop_id.0.as_bytes(), seq.cast_signed(), status))?;
    Ok(())
}

fn find(connection: &Connection, loop_id: LoopId) -> rusqlite::Result<Option<(Seq, String)>> {
    connection
        .prepare_cached("SELECT seq, status FROM projections WHERE loop = ?1")?
        .query_row([loop_id.0.as_bytes()], |row| Ok((column::counter(row, 0)?, row.get(1)?)))
        .optional()
}
