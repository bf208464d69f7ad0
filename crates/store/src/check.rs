//! What `wiggum doctor` asks of the store: is it whole?

use wiggum_core::ids::{LoopId, Seq};

use crate::blobs;
use crate::error::{Explain, StoreError};
use crate::store::Store;

impl Store {
    /// Everything that is wrong, in words; empty if all is well. Reads the whole store.
    pub fn check(&self) -> Result<Vec<String>, StoreError> {
        let doing = "check the database";
        let mut findings = self.check_file().explain(doing, &self.path)?;
        if !findings.is_empty() {
            // The rows of a damaged file mean nothing.
            return Ok(findings);
        }
        self.check_references(&mut findings).explain(doing, &self.path)?;
        for record in self.loops()? {
            self.check_journal(record.id, &mut findings)?;
            self.check_projection(record.id, &mut findings)?;
        }
        self.check_blobs(&mut findings)?;
        Ok(findings)
    }

    fn check_file(&self) -> rusqlite::Result<Vec<String>> {
        let mut check = self.connection.prepare("PRAGMA integrity_check")?;
        let lines: Vec<String> = check.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
        Ok(lines.into_iter().filter(|line| line != "ok").map(|line| format!("database: {line}")).collect())
    }

    fn check_references(&self, findings: &mut Vec<String>) -> rusqlite::Result<()> {
        let mut check = self.connection.prepare("PRAGMA foreign_key_check")?;
        for table in check.query_map([], |row| row.get::<_, String>(0))? {
            findings.push(format!("database: a row of {} belongs to no loop", table?));
        }
        Ok(())
    }

    fn check_journal(&self, loop_id: LoopId, findings: &mut Vec<String>) -> Result<(), StoreError> {
        let mut last: Seq = 0;
        self.for_each_readable(loop_id, 0, |envelope| {
            let seq = match envelope {
                Ok(envelope) => envelope.seq,
                Err(StoreError::Unreadable { seq, kind, .. }) => {
                    findings.push(format!("loop {loop_id}: event {seq} ({kind}) cannot be read"));
                    seq
                }
                Err(error) => return Err(error),
            };
            if seq != last + 1 {
                findings.push(format!("loop {loop_id}: event {seq} follows event {last}"));
            }
            last = seq;
            Ok(())
        })
    }

    fn check_projection(&self, loop_id: LoopId, findings: &mut Vec<String>) -> Result<(), StoreError> {
        let last = self.last_seq(loop_id)?;
        if let Some((seq, _)) = self.projection(loop_id)?
            && seq > last
        {
            findings
                .push(format!("loop {loop_id}: the status is of event {seq}, the journal ends at {last}"));
        }
        Ok(())
    }

    fn check_blobs(&self, findings: &mut Vec<String>) -> Result<(), StoreError> {
        let doing = "check the stored texts";
        let mut names = self.connection.prepare("SELECT sha256 FROM blobs").explain(doing, &self.path)?;
        let names = names.query_map([], |row| row.get::<_, String>(0)).explain(doing, &self.path)?;
        for name in names {
            let sha256 = name.explain(doing, &self.path)?;
            let stored = blobs::find(&self.connection, &sha256).explain(doing, &self.path)?;
            let text = stored.and_then(blobs::StoredBlob::text);
            if text.is_none_or(|text| blobs::hash(&text) != sha256) {
                findings.push(format!("stored text {sha256} differs from its hash"));
            }
        }
        Ok(())
    }
}
