//! A run that somebody started in a process of its own, until its loop is there to be looked at.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use wiggum_store::LoopRecord;
use wiggum_workspace::process;

use crate::checkout::Checkout;
use crate::desk::watch::{Happened, Watch};
use crate::desk::{DeskError, Loops};
use crate::words::harmless;

/// How much of what a run printed says why it did not begin.
const LOG_END: usize = 2000;

/// A run in the background.
#[derive(Clone, Debug)]
pub struct Launched {
    pub pid: u32,
    /// The backlog, as loops call it.
    pub backlog: String,
    pub name: String,
    /// What it prints.
    pub log: PathBuf,
    pub at: Timestamp,
}

/// What became of it.
#[derive(Clone, Debug)]
pub enum Begun {
    Loop(Box<LoopRecord>),
    /// It ended before, with this as its last words.
    Ended(String),
    NotYet,
}

impl Launched {
    /// Waits until the run has begun its loop. One over a backlog without open tasks has ended by then.
    pub fn begun(
        &self,
        checkout: &Checkout,
        mut watch: Watch,
        patience: Duration,
    ) -> Result<Begun, DeskError> {
        watch.tell_end_of(self.pid);
        loop {
            let ended = !process::is_running(self.pid);
            if let Some(record) = self.opened(checkout)? {
                return Ok(Begun::Loop(Box::new(record)));
            }
            if ended {
                return Ok(Begun::Ended(log_end(&self.log)));
            }
            if watch.wait(Some(patience)) == Happened::Nothing {
                return Ok(Begun::NotYet);
            }
        }
    }

    /// The loop, once this run holds it or has been through it.
    fn opened(&self, checkout: &Checkout) -> Result<Option<LoopRecord>, DeskError> {
        let Some(loops) = Loops::of(checkout)? else { return Ok(None) };
        for record in loops.all()? {
            let ours = record.identity.backlog == self.backlog && record.identity.name == self.name;
            if !ours {
                continue;
            }
            let holds = loops.lease(record.id)?.alive().is_some_and(|holder| holder.pid == self.pid);
            if holds || loops.status(&record)?.started_at.is_some_and(|at| at >= self.at) {
                return Ok(Some(record));
            }
        }
        Ok(None)
    }
}

fn log_end(log: &Path) -> String {
    let text = fs::read(log).unwrap_or_default();
    let end = &text[text.len().saturating_sub(LOG_END)..];
    harmless(&String::from_utf8_lossy(end)).trim().to_owned()
}
