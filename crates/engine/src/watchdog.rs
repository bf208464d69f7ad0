//! The process beside the engine that ends agents, checks and servers if the engine is killed.
//!
//! One per run, started with the first program of the run: a run that starts nothing needs none.

use std::fs;
use std::io::ErrorKind;
use std::time::Duration;

use wiggum_core::event::Event;
use wiggum_core::ids::LoopId;
use wiggum_workspace::process::{self, Tip, Watchdog};

use crate::engine::Engine;
use crate::error::EngineError;
use crate::host::Host;
use crate::state_dir::StateDir;

/// A watchdog gives up after ten seconds on what cannot be ended; a little more than that.
const PATIENCE: Duration = Duration::from_secs(12);

/// Is somebody there to tidy up after us?
pub(crate) enum Standby {
    NotYet,
    Ready(Watchdog),
    /// Not on this system, or it could not be started, which was told.
    Nobody,
}

impl Standby {
    /// The run is over, and nothing that it started is left.
    pub(crate) fn dismiss(&mut self) {
        match std::mem::replace(self, Self::NotYet) {
            Self::Ready(watchdog) => watchdog.dismiss(),
            Self::NotYet | Self::Nobody => {}
        }
    }
}

/// Before we start anything: what we start carries the marker that a watchdog of an engine before us may be
/// looking for, and so do we while we start it.
pub(crate) fn await_watchdog(host: &dyn Host, dir: &StateDir, id: LoopId) -> Result<(), EngineError> {
    let lock = dir.watchdog_lock(id);
    let failed = |source| EngineError::Write { path: lock.clone(), source };
    if process::await_watchdog(&lock, Duration::ZERO).map_err(failed)? {
        return Ok(());
    }
    // An agent that is left may hold the lock itself, which then ends with it.
    host.end_marked("WIGGUM_LOOP_ID", &id.to_string());
    process::await_watchdog(&lock, PATIENCE).map_err(failed)?;
    Ok(())
}

impl Engine<'_> {
    /// An attempt waits for the next start, and nothing of ours runs any more: what is committed from here on
    /// is a person's.
    pub(crate) fn note_tip(&self) {
        let (Some(git), Some(_)) = (&self.git, self.journal.state.open.here()) else { return };
        let file = self.dir.left_at(self.journal.id);
        // Without the note the next start has doubts, which is all that it is for.
        drop(Tip { work_tree: git.root(), file: &file }.note());
    }

    /// The commit that the branch stood on when nothing of the engine before us ran any more.
    pub(crate) fn noted_tip(&self) -> Option<String> {
        fs::read_to_string(self.dir.left_at(self.journal.id)).ok()
    }

    /// An agent is about to be started: what was noted before says nothing of its commits.
    pub(crate) fn forget_tip(&self) -> Result<(), EngineError> {
        let path = self.dir.left_at(self.journal.id);
        match fs::remove_file(&path) {
            Err(source) if source.kind() != ErrorKind::NotFound => Err(EngineError::Write { path, source }),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Before the first program of a run is started.
    pub(crate) fn keep_watchdog(&mut self) {
        match self.standby {
            Standby::NotYet => {}
            Standby::Ready(_) | Standby::Nobody => return,
        }
        let lock = self.dir.watchdog_lock(self.journal.id);
        let id = self.journal.id.to_string();
        let file = self.dir.left_at(self.journal.id);
        let tip = self.git.as_ref().map(|git| Tip { work_tree: git.root(), file: &file });
        self.standby = match self.host.watch_over(&self.settings.wiggum, "WIGGUM_LOOP_ID", &id, &lock, tip) {
            Ok(Some(watchdog)) => Standby::Ready(watchdog),
            Ok(None) => Standby::Nobody,
            Err(error) => {
                let message = format!(
                    "the watchdog cannot be started ({error}): if this process is killed, agents run on until the next `wiggum run`"
                );
                self.record(Event::Noticed { task: None, message });
                Standby::Nobody
            }
        };
    }
}
