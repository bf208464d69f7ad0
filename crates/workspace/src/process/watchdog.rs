//! A small process beside an engine that outlives it: when the engine was killed, it ends what the
//! engine had started.
//!
//! The watchdog is this very binary, started with [`WATCHDOG`] as its first argument, once per run.
//! It waits at the read end of a pipe whose write end only the engine has. A byte means that the run
//! is over and nothing is to be done. The end of the pipe without a byte means that the engine is
//! gone, however it died: the watchdog then does what [`end_marked`](super::end_marked) does, which
//! is what the next start would do, notes where the branch stands then ([`Tip`]), and ends.
//!
//! It holds a lock from its start to its end. The next engine of the same loop waits for that lock
//! ([`await_watchdog`]) before it starts anything, because its own programs carry the same marker.
//!
//! Linux only, as markers are. Elsewhere no watchdog is started, and what a killed engine leaves
//! behind runs on.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::git::Git;

use super::registry::{self, Survivors, Token};
use super::{signals, system};

/// The argument by which this binary is the watchdog; the marker's name and value follow, and perhaps a [`Tip`].
pub const WATCHDOG: &str = "watchdog";

/// What `ps` shows. Not our own name: `killall -9 wiggum` should leave the watchdog to do its work.
const SHOWN_AS: &str = "loop-watchdog";

/// A watchdog that is on duty. Dropped without [`Watchdog::dismiss`], it takes us for dead.
#[derive(Debug)]
pub struct Watchdog {
    pipe: io::PipeWriter,
    /// Where it is a child of ours, which has to be reaped.
    child: Option<Child>,
}

/// Where it is noted on which commit a work tree stands once nothing of the engine's runs any more: whatever is
/// committed on top of that, no agent did.
#[derive(Clone, Copy, Debug)]
pub struct Tip<'a> {
    pub work_tree: &'a Path,
    pub file: &'a Path,
}

impl Tip<'_> {
    /// Nothing is noted where only git itself could tell.
    pub fn note(self) -> io::Result<()> {
        let head = Git::new(self.work_tree, None).head_from_files();
        match head.and_then(|head| head.commit) {
            Some(commit) => fs::write(self.file, commit),
            None => Ok(()),
        }
    }
}

impl Watchdog {
    /// The run ended in order: whatever runs on does so on purpose.
    pub fn dismiss(self) {
        let Self { mut pipe, child } = self;
        // If it is gone already there is nobody to tell.
        drop(pipe.write_all(b"."));
        drop(pipe);
        if let Some(mut child) = child {
            drop(child.wait());
        }
    }
}

/// Starts a watchdog for everything with this marker; `None` on systems that have no markers.
/// `program` is this binary, `lock` a file that the next engine asks [`await_watchdog`] about.
pub fn watch_over(
    program: &Path,
    name: &str,
    value: &str,
    lock: &Path,
    tip: Option<Tip<'_>>,
) -> io::Result<Option<Watchdog>> {
    if !system::FINDS_MARKED {
        return Ok(None);
    }
    let held = open(lock)?;
    held.try_lock()?;
    let (reader, pipe) = io::pipe()?;
    let mut command = command(program, name, value, reader, held);
    if let Some(Tip { work_tree, file }) = tip {
        command.args([work_tree, file]);
    }
    // Other programs of ours may run. If none does, the watchdog is made an orphan that does not come
    // back to us: as our child it would make each look for survivors take the long way.
    let live = registry::lock();
    let token = Token::new(None, Survivors::Leave);
    if !live.is_empty() {
        let child = system::with_token(token, || command.spawn())?;
        return Ok(Some(Watchdog { pipe, child: Some(child) }));
    }
    // SAFETY: between fork and exec only async-signal-safe calls are allowed; `fork` and `_exit` are.
    unsafe { command.pre_exec(leave_to_init) };
    // Until the one between has ended, the watchdog is its child: whoever adopts at that moment adopts it.
    let start = || command.spawn().and_then(|mut between| between.wait());
    system::with_token(token, || system::without_adopting(start))?;
    drop(live);
    Ok(Some(Watchdog { pipe, child: None }))
}

/// Nothing of ours but the pipe and the lock: no directory that could not be unmounted, no
/// environment with secrets in it.
fn command(program: &Path, name: &str, value: &str, reader: io::PipeReader, held: File) -> Command {
    #[expect(clippy::disallowed_methods, reason = "this is the door")]
    let mut command = Command::new(program);
    command.arg0(SHOWN_AS).args([WATCHDOG, name, value]).env_clear().current_dir("/");
    // Its standard output holds the lock; nothing is ever written there.
    command.stdin(reader).stdout(held).stderr(Stdio::null());
    let session = || {
        rustix::process::setsid()?;
        Ok(())
    };
    // SAFETY: between fork and exec only async-signal-safe calls are allowed, and `setsid` is one.
    unsafe { command.pre_exec(session) };
    command
}

fn leave_to_init() -> io::Result<()> {
    // SAFETY: the child goes on to exec, the parent does nothing but end.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(()),
        // SAFETY: it ends the process without running anything of ours.
        _ => unsafe { libc::_exit(0) },
    }
}

/// What the watchdog itself does, given the arguments after [`WATCHDOG`]. Says how many processes it
/// ended.
pub fn stand_watch(arguments: impl IntoIterator<Item = OsString>) -> u32 {
    let words: Vec<OsString> = arguments.into_iter().collect();
    let [name, value, rest @ ..] = words.as_slice() else { return 0 };
    let (Some(name), Some(value)) = (name.to_str(), value.to_str()) else { return 0 };
    signals::ignore_stop();
    system::call_ourselves(SHOWN_AS);
    match io::stdin().read(&mut [0]) {
        Ok(0) => {
            let ended = super::end_marked(name, value);
            if let [work_tree, file] = rest {
                // Without the note the next engine has doubts, which is all that it is for.
                drop(Tip { work_tree: work_tree.as_ref(), file: file.as_ref() }.note());
            }
            ended
        }
        Ok(_) | Err(_) => 0,
    }
}

/// Waits until the watchdog of an engine before us has ended; false if it is still there after so long.
pub fn await_watchdog(lock: &Path, patience: Duration) -> io::Result<bool> {
    if !lock.exists() {
        return Ok(true);
    }
    let file = open(lock)?;
    match file.try_lock() {
        Ok(()) => return Ok(true),
        Err(TryLockError::WouldBlock) => {}
        Err(TryLockError::Error(error)) => return Err(error),
    }
    let (sender, ended) = mpsc::channel();
    thread::Builder::new().name("await watchdog".to_owned()).spawn(move || {
        // Nobody listens any more if it took too long.
        drop(sender.send(file.lock()));
    })?;
    match ended.recv_timeout(patience) {
        Ok(locked) => locked.map(|()| true),
        Err(_) => Ok(false),
    }
}

/// To be locked, so that it need not be written; the file is made if need be.
fn open(lock: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(lock)
}
