//! Starting programs and making sure that nothing they started outlives them.
//!
//! [`launch`] starts a program in its own session and supervises it from one thread: it feeds the
//! input, delivers the output, stops it on request (INT, TERM, KILL) and, when the program has
//! ended, ends whatever it left behind. [`run`] does the same on the caller's thread for short
//! programs whose output is wanted whole.
//!
//! How descendants are found: we are a child subreaper, so an orphan comes back to us however it
//! was forked; and every program carries a token in an inherited resource limit, which neither
//! `setsid` nor `env -i` nor a double fork removes, so an orphan can be told apart from those of
//! other programs running at the same time. Both are Linux only; elsewhere the process group must
//! do.
//!
//! After a kill -9 of ourselves a watchdog ([`watch_over`]) ends what we had started, and the next start
//! calls [`end_marked`] once more. `PR_SET_PDEATHSIG` is deliberately not used: it fires when the
//! *thread* that forked ends, and it does not reach grandchildren. Where there are no markers (not on
//! Linux) there is no watchdog either, and what a killed engine leaves behind runs on.

mod attend;
mod capture;
mod command;
mod detach;
mod exit;
mod identity;
mod registry;
pub(crate) mod signals;
mod supervise;
mod watchdog;

#[cfg(target_os = "linux")]
#[path = "linux.rs"]
mod system;
#[cfg(not(target_os = "linux"))]
#[path = "portable.rs"]
mod system;

#[cfg(target_os = "linux")]
mod spawn;
#[cfg(not(target_os = "linux"))]
#[path = "fork.rs"]
mod spawn;

#[cfg(target_os = "linux")]
mod collect;
#[cfg(not(target_os = "linux"))]
#[path = "supervised.rs"]
mod collect;

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use thiserror::Error;
use wiggum_core::event::Exit;

pub use attend::{Attend, Patience};
pub use capture::Capture;
pub use command::{CommandLine, NotFound, ParseError};
pub use detach::detach;

pub use identity::{Identity, end_self, identity, is_alive, is_running};
pub use watchdog::{Tip, WATCHDOG, Watchdog, await_watchdog, stand_watch, watch_over};
pub use wiggum_core::stream::Stream;

use registry::Survivors;

use crate::sandbox::Confinement;
use supervise::{Heard, StopRequest, Supervisor};

/// A program to be started.
#[derive(Clone, Debug)]
pub struct Launch {
    pub command: CommandLine,
    pub cwd: PathBuf,
    pub env: Vec<(OsString, OsString)>,
    pub env_remove: Vec<OsString>,
    pub stdin: Input,
    /// A variable of the environment by which [`end_marked`] finds everything this program
    /// started, even what threw its environment away.
    pub marker: Option<(String, String)>,
    /// Where it may write; everywhere, if nothing is said.
    pub confinement: Option<Confinement>,
    /// Who says how long [`run`] waits for it; until it ends, if nobody does. Linux only.
    pub attendant: Option<Arc<dyn Attend>>,
}

impl Launch {
    pub fn new(command: CommandLine, cwd: impl Into<PathBuf>) -> Self {
        Self {
            command,
            cwd: cwd.into(),
            env: Vec::new(),
            env_remove: Vec::new(),
            stdin: Input::Nothing,
            marker: None,
            confinement: None,
            attendant: None,
        }
    }
}

#[derive(Clone, Debug, Default)]
pub enum Input {
    #[default]
    Nothing,
    Bytes(Vec<u8>),
    /// What somebody writes at the other end while the program runs.
    Pipe(Arc<io::PipeReader>),
}

/// Receives what a program does, on its supervising thread. While a call blocks, the program's
/// pipes fill up and a stop request waits.
pub trait Sink: Send {
    fn output(&mut self, stream: Stream, bytes: &[u8]);
    /// Nothing has come for a moment: whoever gathers output may pass it on.
    fn silence(&mut self) {}
    /// Called exactly once, after all output, when nothing of the program is left.
    fn ended(&mut self, ended: Ended);
}

impl Sink for Box<dyn Sink> {
    fn output(&mut self, stream: Stream, bytes: &[u8]) {
        self.as_mut().output(stream, bytes);
    }

    fn silence(&mut self) {
        self.as_mut().silence();
    }

    fn ended(&mut self, ended: Ended) {
        self.as_mut().ended(ended);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    pub exit: Exit,
    pub duration: Duration,
    /// Processes that were still there after the program itself had ended.
    pub ended_processes: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Its time is up: the exit will be [`Exit::TimedOut`].
    TimedOut,
    /// Somebody wants it stopped: the exit says how it ended.
    Asked,
}

/// How long a program gets after INT, and then after TERM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grace {
    pub int: Duration,
    pub term: Duration,
}

impl Default for Grace {
    /// Measured with real agents: they save their session within three seconds of an INT.
    fn default() -> Self {
        Self { int: Duration::from_secs(3), term: Duration::from_secs(2) }
    }
}

#[derive(Debug, Error)]
pub enum LaunchError {
    #[error("cannot start `{command}` in {}", cwd.display())]
    Spawn { command: String, cwd: PathBuf, source: io::Error },
    #[error("cannot supervise `{command}`")]
    Supervise { command: String, source: io::Error },
    #[error("`{command}` was ended before it was done")]
    Ended { command: String },
}

/// Starts a program. It is supervised to its end even if the returned handle is dropped.
pub fn launch(launch: Launch, mut sink: impl Sink + 'static) -> Result<Running, LaunchError> {
    let command = launch.command.to_string();
    let supervise_error = |source| LaunchError::Supervise { command: command.clone(), source };
    let (wake_receiver, wake) = io::pipe().map_err(supervise_error)?;
    let request = Arc::new(Mutex::new(None));
    let supervisor = Supervisor::start(launch, Survivors::End)?;
    let supervisor = supervisor.listen(wake_receiver, Arc::clone(&request));
    let pid = supervisor.pid();

    // Inside a cell, so that a program whose thread cannot be started is not left unsupervised.
    let cell = Arc::new(Mutex::new(Some(supervisor)));
    let for_thread = Arc::clone(&cell);
    let thread = thread::Builder::new().name(format!("process {pid}")).spawn(move || {
        if let Some(supervisor) = take(&for_thread) {
            let ended = supervisor.supervise(&mut |heard| match heard {
                Heard::Output(stream, bytes) => sink.output(stream, bytes),
                Heard::Silence => sink.silence(),
            });
            sink.ended(ended);
        }
    });
    if let Err(source) = thread {
        if let Some(supervisor) = take(&cell) {
            supervisor.abandon();
        }
        return Err(supervise_error(source));
    }
    Ok(Running { pid, request, wake })
}

/// A program that was launched.
#[derive(Debug)]
pub struct Running {
    pid: u32,
    request: Arc<Mutex<Option<StopRequest>>>,
    wake: io::PipeWriter,
}

impl Running {
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// The programs at work that it started, without itself; nothing where the system cannot tell.
    pub fn tools(&self) -> Option<Vec<Tool>> {
        system::tools(self.pid)
    }

    /// Asks for its end and returns at once. The reason of the first request counts; a later one can
    /// only shorten the grace. After the program has ended none changes anything.
    pub fn stop(&self, why: Stop, grace: Grace) {
        {
            let mut request = self.request.lock().unwrap_or_else(PoisonError::into_inner);
            let first = *request;
            let shorter = |first: &StopRequest| grace.int < first.grace.int || grace.term < first.grace.term;
            if first.as_ref().is_some_and(|first| !shorter(first)) {
                return;
            }
            *request = Some(StopRequest { why: first.map_or(why, |first| first.why), grace });
        }
        // A failure means that the supervisor is gone: there is nothing left to stop. So few bytes
        // as there can be ever shorter graces cannot fill the pipe and block.
        drop((&self.wake).write_all(&[1]));
    }
}

/// A program at work that another one started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tool {
    pub pid: u32,
    /// Tells it from another one that has the number later.
    pub start: u64,
    /// Processor time that it used, and what it started and has ended.
    pub used: Duration,
}

/// What a short program wrote, and how it ended.
#[derive(Debug)]
pub struct Output {
    pub exit: Exit,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

/// Runs a program to its end on this thread and collects all its output. What it leaves running is
/// left alone: git starts helpers that are meant to stay, such as `gpg-agent`.
pub fn run(launch: Launch) -> Result<Output, LaunchError> {
    collect::run(launch, &mut || {})
}

/// As [`run`], with something to be done here while the program runs. Not done where it cannot be
/// started.
pub fn run_while(launch: Launch, meanwhile: &mut dyn FnMut()) -> Result<Output, LaunchError> {
    collect::run(launch, meanwhile)
}

/// Makes orphaned descendants come back to this process, where they are found. [`launch`] does it
/// too; calling it at the start makes a refusal visible.
pub fn adopt_orphans() -> io::Result<()> {
    system::adopt_orphans()
}

/// Ends every process that was launched with this marker or has it in its environment, except
/// ourselves and our ancestors, until none is left. Returns how many there were.
pub fn end_marked(name: &str, value: &str) -> u32 {
    system::end_marked(name, value)
}

/// The processor time of a program that leads a session and of all that it started, if all of them rest: none runs,
/// and none waits for a disk. Known on Linux alone.
pub fn time_at_rest(pid: u32) -> Option<Duration> {
    system::time_at_rest(pid)
}

/// The processes that [`end_marked`] would end; they are left alone.
pub fn marked(name: &str, value: &str) -> Vec<u32> {
    system::marked(name, value)
}

/// Variables that point git at another repository than the one a program runs in: set while a git
/// hook runs us, they would make every child work on the wrong index.
pub(crate) const GIT_LOCATION: [&str; 9] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
    "GIT_SHALLOW_FILE",
];

fn take<T>(cell: &Mutex<Option<T>>) -> Option<T> {
    cell.lock().unwrap_or_else(PoisonError::into_inner).take()
}
