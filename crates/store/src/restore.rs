//! Coming back after somebody deleted or replaced the files under an open store.
//!
//! An agent may run `git clean -fdx` and take `.wiggum/` with it. The open connection still holds
//! everything, so a copy of it is put back before the next kill could lose it.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use rusqlite::backup::Progress;
use rusqlite::types::Value;
use rusqlite::{Connection, MAIN_DB, params_from_iter};

use crate::error::{Explain, StoreError};
use crate::store::{Files, Store, beside, create_file, lock_directory_of};

impl Store {
    /// Puts the store's file back if it is gone or replaced; true if it did. A replacement that
    /// knows all we know (another connection was quicker) is taken over as it is.
    pub fn restore_if_gone(&mut self) -> Result<bool, StoreError> {
        if Files::at(&self.path) == self.files {
            return Ok(false);
        }
        let directory = lock_directory_of(&self.path)?;
        if let Some(replacement) = self.complete_replacement()? {
            *self = replacement;
            return Ok(false);
        }
        put_copy(&self.connection, &self.path)?;
        directory.sync_all().explain("restore the store", &self.path)?;
        // SQLite never touches the names of files that have moved, so closing the old connection,
        // which happens here, cannot delete the new one's log.
        *self = Self::connect(self.path.clone(), self.options.clone())?;
        Ok(true)
    }

    /// Puts a copy of the whole store in another place, durable before its name can be seen.
    pub fn copy_to(&self, path: &Path) -> Result<(), StoreError> {
        let directory = lock_directory_of(path)?;
        put_copy(&self.connection, path)?;
        directory.sync_all().explain("copy the store", path)
    }

    fn complete_replacement(&self) -> Result<Option<Self>, StoreError> {
        let (now, ours) = (Files::at(&self.path), self.files);
        // As long as one of the three is still ours this is no other store but a torn one of ours:
        // a second connection would read the wrong log, or empty the index we are working with.
        let torn = now.database == ours.database || now.log == ours.log || now.index == ours.index;
        if now.database.is_none() || torn {
            return Ok(None);
        }
        match Self::connect(self.path.clone(), self.options.clone()) {
            Ok(found) if self.is_within(&found).explain("compare with the replaced store", &self.path)? => {
                Ok(Some(found))
            }
            Err(error @ StoreError::Locked { .. }) => Err(error),
            Ok(_) | Err(_) => Ok(None),
        }
    }

    /// Does the other store have our last events, our leases and our requests?
    fn is_within(&self, other: &Self) -> rusqlite::Result<bool> {
        let mut marks = self.connection.prepare(
            "SELECT l.loop, l.epoch, e.seq, e.id, (SELECT count(*) FROM requests r WHERE r.loop = l.loop)
             FROM leases l LEFT JOIN events e ON e.tenant = 'local' AND e.loop = l.loop AND e.seq =
                 (SELECT max(seq) FROM events m WHERE m.tenant = 'local' AND m.loop = l.loop)",
        )?;
        let mut known = other.connection.prepare(
            "SELECT 1 FROM leases l WHERE l.loop = ?1 AND l.epoch >= ?2
             AND (?3 IS NULL OR EXISTS (SELECT 1 FROM events e WHERE
                  e.tenant = 'local' AND e.loop = ?1 AND e.seq = ?3 AND e.id = ?4))
             AND (SELECT count(*) FROM requests r WHERE r.loop = ?1) >= ?5",
        )?;
        let mut rows = marks.query([])?;
        while let Some(row) = rows.next()? {
            let mark = (0..5).map(|column| row.get(column)).collect::<rusqlite::Result<Vec<Value>>>()?;
            if !known.exists(params_from_iter(mark))? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Writes the copy beside its place and renames it, so that a kill leaves no half of it.
fn put_copy(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    let doing = "copy the store";
    let copy = beside(path, "-copy");
    for leftover in [&copy, &beside(&copy, "-journal"), &beside(&copy, "-wal"), &beside(&copy, "-shm")] {
        remove_if_there(leftover).explain(doing, leftover)?;
    }
    create_file(&copy)?;
    connection.backup(MAIN_DB, &copy, None::<fn(Progress)>).explain(doing, &copy)?;
    File::open(&copy).and_then(|file| file.sync_all()).explain(doing, &copy)?;
    for leftover in [beside(path, "-wal"), beside(path, "-shm")] {
        remove_if_there(&leftover).explain(doing, &leftover)?;
    }
    fs::rename(&copy, path).explain(doing, path)
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
