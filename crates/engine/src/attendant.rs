//! How long the engine waits for git: its thread does nothing else meanwhile, and a hook may take for ever.
//!
//! A git command is ended by a signal that the engine has not heard of yet, by a request to stop, and by the end of the
//! run's time. What it was ended in is then done again or given up, as after a crash.

use std::fmt;
use std::io::{PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use wiggum_core::event::Request;
use wiggum_core::ids::LoopId;
use wiggum_store::Store;
use wiggum_workspace::git::free_readers;
use wiggum_workspace::process::{Attend, Patience};

use crate::clock::Clock;

/// Tells people something that is no event.
pub type Tell = Arc<dyn Fn(&str) + Send + Sync>;

/// Whoever looks on wonders after about a second.
const LONG: Duration = Duration::from_secs(1);

/// How soon a git that waited at a pipe is looked at again: long enough to come to the next one.
const AT_PIPES: Duration = Duration::from_millis(50);

/// What is left to be done when the time of a run is up has this long: the attempt is put aside, the user's tree
/// put back.
const TO_LEAVE: Duration = Duration::from_secs(10);

pub(crate) struct Attendant {
    workspace: PathBuf,
    database: PathBuf,
    id: LoopId,
    clock: Clock,
    tell: Option<Tell>,
    wake: (PipeReader, PipeWriter),
    state: Mutex<State>,
    /// Somebody may have left a request since it was last looked for.
    requests: AtomicBool,
}

#[derive(Clone, Copy, Default)]
struct State {
    /// A signal came that the engine has not dealt with.
    signal: Option<&'static str>,
    /// When the time of the run is up, on the engine's clock.
    deadline: Option<Duration>,
    /// It was told that this takes long.
    told: bool,
}

impl Attendant {
    pub(crate) fn new(
        workspace: PathBuf,
        database: PathBuf,
        id: LoopId,
        clock: Clock,
        tell: Option<Tell>,
    ) -> std::io::Result<Self> {
        let wake = std::io::pipe()?;
        rustix::io::ioctl_fionbio(&wake.0, true)?;
        rustix::io::ioctl_fionbio(&wake.1, true)?;
        let (state, requests) = (Mutex::default(), AtomicBool::new(false));
        Ok(Self { workspace, database, id, clock, tell, wake, state, requests })
    }

    /// Something waits in the store.
    pub(crate) fn wake(&self) {
        self.requests.store(true, Ordering::Release);
        // A full pipe wakes as well.
        drop((&self.wake.1).write_all(&[1]));
    }

    pub(crate) fn interrupt(&self, signal: &'static str) {
        self.state().signal = Some(signal);
        self.wake();
    }

    /// The engine knows of the signal; returns what it was.
    pub(crate) fn take_signal(&self) -> Option<&'static str> {
        self.state().signal.take()
    }

    pub(crate) fn set_deadline(&self, left: Option<Duration>) {
        self.state().deadline = left.map(|left| self.clock.elapsed().saturating_add(left));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_asked_to_stop(&self) -> bool {
        self.requests.swap(false, Ordering::AcqRel)
            && Store::open(&self.database)
                .and_then(|store| store.pending(self.id))
                .is_ok_and(|requests| requests.iter().any(|pending| pending.request == Request::Stop))
    }

    /// Once for each command.
    fn tell_of_long(&self, ran: Duration) {
        let is_long = ran >= LONG;
        let was_told = std::mem::replace(&mut self.state().told, is_long);
        if let Some(tell) = self.tell.as_ref().filter(|_| is_long && !was_told) {
            tell("git takes longer than a second: it, or a hook that it runs, is still at work");
        }
    }
}

impl Attend for Attendant {
    fn wake(&self) -> BorrowedFd<'_> {
        self.wake.0.as_fd()
    }

    fn look(&self, ran: Duration) -> Patience {
        // Only to be able to wait for more.
        while matches!((&self.wake.0).read(&mut [0; 64]), Ok(1..)) {}
        self.tell_of_long(ran);
        let State { signal, deadline, told: _ } = *self.state();
        if signal.is_some() || self.is_asked_to_stop() {
            return Patience::End;
        }
        let left = deadline.map(|deadline| {
            let now = self.clock.elapsed();
            let began_late = now.saturating_sub(ran) > deadline;
            if began_late { TO_LEAVE.saturating_sub(ran) } else { deadline.saturating_sub(now) }
        });
        if left == Some(Duration::ZERO) {
            return Patience::End;
        }
        // It may wait at a pipe that somebody put in the place of a file, and then at the next one.
        let again = match LONG.checked_sub(ran).filter(|left| !left.is_zero()) {
            None if free_readers(&self.workspace) > 0 => Some(AT_PIPES),
            None => Some(ran),
            until_long => until_long,
        };
        Patience::Wait(left.into_iter().chain(again).min())
    }
}

impl fmt::Debug for Attendant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attendant").field("id", &self.id).finish_non_exhaustive()
    }
}
