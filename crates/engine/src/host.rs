//! The machine a loop runs on, as far as a loop needs it: time, programs, and a place for its journal.
//!
//! [`Machine`] is the real one. Another one makes hours pass in microseconds and lets things go wrong
//! on purpose (`wiggum-sim`), or runs agents without a process of their own. Files are not part of it:
//! a loop's directory is a real one everywhere.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use wiggum_store::{Holder, Store, StoreError};
use wiggum_workspace::git::{Git, GitError};
use wiggum_workspace::process::{
    self, Grace, Identity, Launch, LaunchError, Running, Sink, Stop, Tip, Tool, Watchdog,
};

use crate::engine::Input;
use crate::wake;

pub trait Host: Send + Sync {
    /// What the clock on the wall says, which somebody may set.
    fn wall(&self) -> Timestamp;

    /// Time since some moment; it never goes back.
    fn steady(&self) -> Duration;

    /// Waits for the next input, at most so long.
    fn wait(&self, inputs: &Receiver<Input>, limit: Option<Duration>) -> Option<Input>;

    /// Starts a program. It is looked after to its end even if what is returned is dropped.
    fn launch(&self, launch: Launch, sink: Box<dyn Sink>) -> Result<Box<dyn Program>, LaunchError>;

    /// Does something that may take long beside the loop, which hears of its end as an input.
    fn beside(&self, job: Box<dyn FnOnce() + Send>);

    /// Ends everything that was launched with this marker, and says how much that was.
    fn end_marked(&self, name: &str, value: &str) -> u32;

    /// Starts a process beside us which ends everything with this marker if we are killed; `None` where
    /// that is not possible or not needed. `program` is this binary.
    fn watch_over(
        &self,
        program: &Path,
        name: &str,
        value: &str,
        lock: &Path,
        tip: Option<Tip<'_>>,
    ) -> std::io::Result<Option<Watchdog>>;

    /// Who this engine is, to tell it from all others.
    fn identity(&self) -> Holder;

    /// Is that engine still there?
    fn is_alive(&self, holder: &Holder) -> bool;

    fn open_store(&self, path: &Path) -> Result<Store, StoreError>;

    /// The repository around a directory, if there is one.
    fn repository(&self, workspace: &Path) -> Result<Option<Git>, GitError>;

    /// Calls `wake` whenever something in these directories changes, as long as what is returned is kept.
    fn watch(&self, places: &[PathBuf], wake: Arc<dyn Fn() + Send + Sync>) -> Option<Box<dyn Send>>;
}

/// A program that was launched.
pub trait Program {
    /// Asks for its end and returns at once.
    fn stop(&self, why: Stop, grace: Grace);

    /// The programs at work that it started; nothing where that cannot be told.
    fn tools(&self) -> Option<Vec<Tool>> {
        None
    }
}

impl Program for Running {
    fn stop(&self, why: Stop, grace: Grace) {
        Self::stop(self, why, grace);
    }

    fn tools(&self) -> Option<Vec<Tool>> {
        Self::tools(self)
    }
}

/// This machine, as it is.
#[derive(Debug)]
pub struct Machine {
    started: Instant,
}

impl Machine {
    #[expect(clippy::disallowed_methods, reason = "this is the door to the clock")]
    pub fn new() -> Self {
        Self { started: Instant::now() }
    }
}

impl Default for Machine {
    fn default() -> Self {
        Self::new()
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the door to clock and programs")]
impl Host for Machine {
    fn wall(&self) -> Timestamp {
        Timestamp::now()
    }

    fn steady(&self) -> Duration {
        self.started.elapsed()
    }

    fn wait(&self, inputs: &Receiver<Input>, limit: Option<Duration>) -> Option<Input> {
        match limit {
            None => inputs.recv().ok(),
            Some(limit) => inputs.recv_timeout(limit).ok(),
        }
    }

    fn launch(&self, launch: Launch, sink: Box<dyn Sink>) -> Result<Box<dyn Program>, LaunchError> {
        process::launch(launch, sink).map(|running| Box::new(running) as Box<dyn Program>)
    }

    fn beside(&self, job: Box<dyn FnOnce() + Send>) {
        std::thread::spawn(job);
    }

    fn end_marked(&self, name: &str, value: &str) -> u32 {
        process::end_marked(name, value)
    }

    fn watch_over(
        &self,
        program: &Path,
        name: &str,
        value: &str,
        lock: &Path,
        tip: Option<Tip<'_>>,
    ) -> std::io::Result<Option<Watchdog>> {
        process::watch_over(program, name, value, lock, tip)
    }

    fn identity(&self) -> Holder {
        let Identity { pid, started, boot, host } = process::identity();
        Holder { pid, started, boot, host }
    }

    fn is_alive(&self, holder: &Holder) -> bool {
        let Holder { pid, started, boot, host } = holder.clone();
        process::is_alive(&Identity { pid, started, boot, host })
    }

    fn open_store(&self, path: &Path) -> Result<Store, StoreError> {
        Store::open(path)
    }

    fn repository(&self, workspace: &Path) -> Result<Option<Git>, GitError> {
        Git::discover(workspace)
    }

    fn watch(&self, places: &[PathBuf], wake: Arc<dyn Fn() + Send + Sync>) -> Option<Box<dyn Send>> {
        wake::watch(places, &wake)
    }
}
