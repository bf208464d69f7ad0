//! Waits until a pane is quiet. tmux copies what the program writes into a pipe, and that wakes us;
//! nothing is asked while nothing happens.
//!
//! Quiet is a pane that wrote nothing for a while. Some programs never stop writing, since they show a
//! clock or a spinner: such a pane is looked at now and then, and is quiet once the letters on it have
//! stayed the same four times as long, unless it looks like an agent at work: it tells how to interrupt
//! it, or what moves is a line with an ellipsis.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::io::Errno;
use wiggum_workspace::process::{self, CommandLine, Launch};

use super::DispatchError;
use super::screen;
use super::tmux::Pane;

/// How much longer than a silent pane one that only blinks is waited for.
const BLINKING: u32 = 4;

/// How long a program may take before it draws or reads anything; agents were seen to take eight
/// seconds on a busy machine.
const SLOWEST: Duration = Duration::from_secs(20);

/// How long a program that has drawn nothing must have used no processor time. One that is starting does
/// not go without for so long, unless it waits for somebody else.
const RESTED: Duration = Duration::from_secs(1);

/// Why waiting ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Woken {
    Quiet,
    /// Nothing will come any more: the pane, or all of tmux, is gone.
    Closed,
    Interrupted,
}

pub(crate) struct Watch {
    pane: Pane,
    path: PathBuf,
    pipe: File,
    signals: io::PipeReader,
    pub(crate) quiet_after: Duration,
    pub(crate) busy: Vec<String>,
}

impl Watch {
    pub(crate) fn new(pane: &Pane, path: &Path) -> Result<Self, DispatchError> {
        let failed = |source: io::Error| DispatchError::File { path: path.to_owned(), source };
        let signals = listen().map_err(DispatchError::Wait)?;
        // One that was left behind may still have a reader.
        drop(fs::remove_file(path));
        make_pipe(path)?;
        // Otherwise opening would wait for the writer, who may never come.
        let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
        let pipe = OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(failed)?;
        pane.copy_output(path)?;
        Ok(Self {
            pane: pane.clone(),
            path: path.to_owned(),
            pipe,
            signals,
            quiet_after: Duration::from_secs(5),
            busy: Vec::new(),
        })
    }

    /// Waits until the pane is quiet.
    pub(crate) fn until_quiet(&mut self) -> Result<Woken, DispatchError> {
        let mut silent_since = Instant::now();
        let mut same_since = silent_since;
        let mut earlier: Option<String> = None;
        let mut look_at = silent_since + self.quiet_after;
        loop {
            let quiet_at = silent_since + self.quiet_after;
            match self.wait(quiet_at.min(look_at.max(Instant::now())))? {
                Some(Woken::Quiet) | None => {}
                Some(woken) => return Ok(woken),
            }
            let wrote = self.drain().map_err(DispatchError::Wait)?;
            let now = Instant::now();
            if wrote {
                silent_since = now;
            } else if now >= quiet_at {
                return Ok(Woken::Quiet);
            }
            if now < look_at {
                continue;
            }
            look_at = now + self.quiet_after;
            let Ok(screen) = self.pane.screen() else { return Ok(Woken::Closed) };
            let only_blinks = earlier.as_ref().is_some_and(|earlier| {
                screen::letters(earlier) == screen::letters(&screen)
                    && !screen::looks_busy(earlier, &screen, &self.busy)
            });
            earlier = Some(screen);
            if !only_blinks {
                same_since = now;
            } else if now.duration_since(same_since) >= self.quiet_after * BLINKING {
                return Ok(Woken::Quiet);
            }
        }
    }

    /// Waits until a program that was just started has drawn something and is quiet: what is typed
    /// sooner is lost. One that draws nothing is waited for until it rests: a program that is still
    /// starting uses the processor.
    pub(crate) fn until_ready(&mut self) -> Result<Woken, DispatchError> {
        let until = Instant::now() + SLOWEST;
        let program = self.pane.program();
        let used = || program.and_then(process::time_at_rest);
        let (mut rests_since, mut before) = (Instant::now(), used());
        loop {
            let woken = self.until_quiet()?;
            let blank = self.pane.screen().is_ok_and(|screen| screen.trim().is_empty());
            if woken != Woken::Quiet || !blank || Instant::now() >= until {
                return Ok(woken);
            }
            let now = used();
            if now.is_none() || now != before {
                (rests_since, before) = (Instant::now(), now);
            } else if rests_since.elapsed() >= RESTED {
                return Ok(woken);
            }
        }
    }

    /// Waits until what was typed has been drawn: a key that comes sooner may be taken for a part of it.
    /// A program that shows nothing of it either hides it or is not ready to read yet.
    pub(crate) fn until_drawn(&mut self) -> Result<Woken, DispatchError> {
        const SETTLED: Duration = Duration::from_millis(200);
        const ENOUGH: Duration = Duration::from_secs(3);
        let mut until = Instant::now() + SLOWEST;
        let mut settled = until;
        loop {
            match self.wait(settled.min(until))? {
                None if Instant::now() < until => {}
                None => return Ok(Woken::Quiet),
                Some(woken) => return Ok(woken),
            }
            self.drain().map_err(DispatchError::Wait)?;
            settled = Instant::now() + SETTLED;
            until = until.min(settled + ENOUGH);
        }
    }

    /// Waits for a moment of the wall clock, whatever the program writes meanwhile. Ends early when `over`,
    /// which is looked at whenever something is written into the pipe.
    pub(crate) fn until_moment(
        &mut self,
        moment: Timestamp,
        over: impl Fn() -> bool,
    ) -> Result<Woken, DispatchError> {
        /// A machine that slept wakes up with another time on its clock than we had reckoned with.
        const LONGEST: Duration = Duration::from_secs(30);
        loop {
            let left = Duration::try_from(moment.duration_since(Timestamp::now())).unwrap_or_default();
            if left.is_zero() || over() {
                return Ok(Woken::Quiet);
            }
            match self.wait(Instant::now() + left.min(LONGEST))? {
                None => drop(self.drain().map_err(DispatchError::Wait)?),
                Some(Woken::Quiet) => {}
                Some(woken) => return Ok(woken),
            }
        }
    }

    /// Was there a signal?
    pub(crate) fn interrupted(&self) -> Result<bool, DispatchError> {
        Ok(self.wait(Instant::now())? == Some(Woken::Interrupted))
    }

    /// Waits for output, which is `None`, or why there was none until then.
    fn wait(&self, until: Instant) -> Result<Option<Woken>, DispatchError> {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let timeout =
                Timespec::try_from(left).map_err(|error| DispatchError::Wait(io::Error::other(error)))?;
            let mut fds = [
                PollFd::from_borrowed_fd(self.signals.as_fd(), PollFlags::IN),
                PollFd::from_borrowed_fd(self.pipe.as_fd(), PollFlags::IN),
            ];
            match poll(&mut fds, Some(&timeout)) {
                Ok(0) => return Ok(Some(Woken::Quiet)),
                Ok(_) if !fds[0].revents().is_empty() => return Ok(Some(Woken::Interrupted)),
                Ok(_) if fds[1].revents().contains(PollFlags::IN) => return Ok(None),
                Ok(_) => return Ok(Some(Woken::Closed)),
                Err(Errno::INTR) => {}
                Err(error) => return Err(DispatchError::Wait(error.into())),
            }
        }
    }

    /// Takes what has come, and tells whether there was any. What it was is read from the screen.
    fn drain(&mut self) -> io::Result<bool> {
        let mut buffer = [0; 64 * 1024];
        let mut wrote = false;
        loop {
            match self.pipe.read(&mut buffer) {
                Ok(0) => return Ok(wrote),
                Ok(_) => wrote = true,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(wrote),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.pane.stop_copying();
        drop(fs::remove_file(&self.path));
    }
}

/// By the program for it, since not every system has a call for it that we could use.
fn make_pipe(path: &Path) -> Result<(), DispatchError> {
    let arguments = ["-m".as_ref(), "600".as_ref(), "--".as_ref(), path.as_os_str()];
    let output = process::run(Launch::new(CommandLine::new("mkfifo", arguments), "/"))?;
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    let failed = || DispatchError::File { path: path.to_owned(), source: io::Error::other(said) };
    if output.exit.success() { Ok(()) } else { Err(failed()) }
}

/// Signals that end us arrive here; a second one ends us at once, should a check take long.
fn listen() -> io::Result<io::PipeReader> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let (receiver, sender) = io::pipe()?;
    let again = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        let code = super::send::INTERRUPTED.into();
        signal_hook::flag::register_conditional_shutdown(signal, code, Arc::clone(&again))?;
        signal_hook::flag::register(signal, Arc::clone(&again))?;
        signal_hook::low_level::pipe::register(signal, sender.try_clone()?)?;
    }
    Ok(receiver)
}
