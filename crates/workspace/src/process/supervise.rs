//! One program from its start to the end of the last thing it started.
//!
//! A single `poll` waits for everything at once: room in the program's input, its output, its end,
//! a stop request, the end of a grace period. So nothing is polled by sleeping, no thread blocks on
//! a pipe, and a program that never reads its input or floods its output harms nobody.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process_group, waitpid};
use wiggum_core::event::Exit;

use super::registry::{self, Live, Survivors, Token};
use super::spawn::{Spawned, Streams, spawn};
use super::{Ended, Grace, Input, Launch, LaunchError, Stop, Stream, system};

/// As much as a pipe holds.
const CHUNK: usize = 64 * 1024;

/// Longer than a program that is printing pauses, shorter than a person who looks on notices.
const SILENCE: Duration = Duration::from_millis(100);

/// What is heard of a program while it runs.
pub(super) enum Heard<'b> {
    Output(Stream, &'b [u8]),
    /// Nothing for a moment, after something.
    Silence,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct StopRequest {
    pub(super) why: Stop,
    pub(super) grace: Grace,
}

pub(super) struct Supervisor {
    main: Pid,
    token: Token,
    survivors: Survivors,
    started: Instant,
    /// Becomes readable when the program has ended.
    exit: OwnedFd,
    /// Its parent in the sandbox tells a signal as a shell does, by its code.
    signal_as_code: bool,
    stdin: Option<Feed>,
    stdout: Option<File>,
    stderr: Option<File>,
    control: Option<Control>,
    stopping: Stopping,
    /// When silence is worth telling; nobody waits for it while there was nothing to hear.
    silent_at: Option<Instant>,
}

struct Feed {
    pipe: File,
    bytes: Vec<u8>,
    written: usize,
}

struct Control {
    wake: io::PipeReader,
    request: Arc<Mutex<Option<StopRequest>>>,
}

/// How far a requested stop has come.
#[derive(Clone, Copy)]
enum Stopping {
    No,
    Interrupted { request: StopRequest, until: Instant },
    Terminated { request: StopRequest, until: Instant },
    Killed { request: StopRequest },
}

impl Supervisor {
    pub(super) fn start(launch: Launch, survivors: Survivors) -> Result<Self, LaunchError> {
        let shown = launch.command.to_string();
        let cwd = launch.cwd.clone();
        let token = Token::new(launch.marker.as_ref(), survivors);
        let started = Instant::now();
        let Spawned { main, stdin, stdout, stderr } = {
            let mut live = registry::lock();
            let spawned = spawn(&launch, token, Streams::Pipes).map_err(|source| LaunchError::Spawn {
                command: shown.clone(),
                cwd,
                source,
            })?;
            live.push(Live { main: Some(spawned.main.as_raw_nonzero().get()), token });
            spawned
        };
        let exit = set_nonblocking([stdin.as_ref(), Some(&stdout), Some(&stderr)])
            .and_then(|()| system::exit_signal(main));
        let exit = match exit {
            Ok(exit) => exit,
            Err(source) => {
                abandon(main, token);
                return Err(LaunchError::Supervise { command: shown, source });
            }
        };
        let signal_as_code = launch.confinement.as_ref().is_some_and(|walls| walls.kind.can_mount());
        let stdin = stdin.zip(match launch.stdin {
            Input::Nothing | Input::Pipe(_) => None,
            Input::Bytes(bytes) => Some(bytes),
        });
        Ok(Self {
            main,
            token,
            survivors,
            started,
            exit,
            signal_as_code,
            stdin: stdin.map(|(pipe, bytes)| Feed { pipe, bytes, written: 0 }),
            stdout: Some(stdout),
            stderr: Some(stderr),
            control: None,
            stopping: Stopping::No,
            silent_at: None,
        })
    }

    pub(super) fn listen(mut self, wake: io::PipeReader, request: Arc<Mutex<Option<StopRequest>>>) -> Self {
        self.control = Some(Control { wake, request });
        self
    }

    pub(super) fn pid(&self) -> u32 {
        self.main.as_raw_nonzero().get().unsigned_abs()
    }

    pub(super) fn abandon(self) {
        abandon(self.main, self.token);
    }

    pub(super) fn supervise(mut self, output: &mut dyn FnMut(Heard<'_>)) -> Ended {
        let mut buffer = vec![0; CHUNK];
        while !self.step(&mut buffer, output) {}
        let status = self.reap();
        let ended_processes = match self.survivors {
            Survivors::End => system::end_survivors(self.main, self.token),
            Survivors::Leave => 0,
        };
        // Whoever could still write is gone, or is meant to stay: what is in the pipes is all.
        drain(&mut self.stdout, Stream::Stdout, &mut buffer, output);
        drain(&mut self.stderr, Stream::Stderr, &mut buffer, output);
        registry::remove(self.token);
        Ended { exit: self.exit_of(status), duration: self.started.elapsed(), ended_processes }
    }

    /// Waits for the next thing to happen and deals with it; true when the program has ended.
    fn step(&mut self, buffer: &mut [u8], output: &mut dyn FnMut(Heard<'_>)) -> bool {
        let ready = self.wait();
        if ready.stdin {
            self.feed();
        }
        let out = ready.stdout && read(&mut self.stdout, Stream::Stdout, buffer, output);
        let err = ready.stderr && read(&mut self.stderr, Stream::Stderr, buffer, output);
        if out || err {
            self.silent_at = Some(Instant::now() + SILENCE);
        } else if self.silent_at.is_some_and(|at| Instant::now() >= at) {
            self.silent_at = None;
            output(Heard::Silence);
        }
        if ready.exit {
            self.stdin = None;
            return true;
        }
        if ready.control {
            self.begin_stop();
        }
        self.go_on_stopping();
        false
    }

    fn wait(&self) -> Ready {
        let watched = [
            Some((self.exit.as_fd(), PollFlags::IN)),
            self.stdin.as_ref().map(|feed| (feed.pipe.as_fd(), PollFlags::OUT)),
            self.stdout.as_ref().map(|pipe| (pipe.as_fd(), PollFlags::IN)),
            self.stderr.as_ref().map(|pipe| (pipe.as_fd(), PollFlags::IN)),
            self.control.as_ref().map(|control| (control.wake.as_fd(), PollFlags::IN)),
        ];
        let present = watched.iter().flatten();
        let mut fds: Vec<_> = present.map(|(fd, flags)| PollFd::from_borrowed_fd(*fd, *flags)).collect();
        let timeout = self.timeout().map(timespec);
        // An interrupted poll (EINTR) reports nothing ready and is simply done again.
        let polled = poll(&mut fds, timeout.as_ref()).is_ok();
        let mut results = fds.iter().map(|fd| polled && !fd.revents().is_empty());
        let [exit, stdin, stdout, stderr, control] =
            watched.map(|watched| watched.is_some() && results.next().unwrap_or(false));
        Ready { exit, stdin, stdout, stderr, control }
    }

    fn timeout(&self) -> Option<Duration> {
        let stop_at = match self.stopping {
            Stopping::No | Stopping::Killed { .. } => None,
            Stopping::Interrupted { until, .. } | Stopping::Terminated { until, .. } => Some(until),
        };
        let next = stop_at.into_iter().chain(self.silent_at).min()?;
        Some(next.saturating_duration_since(Instant::now()))
    }

    /// Writes what fits. A program that closes its input without reading it is within its rights.
    fn feed(&mut self) {
        let Some(feed) = &mut self.stdin else { return };
        match feed.pipe.write(&feed.bytes[feed.written..]) {
            Ok(written) => feed.written += written,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(_) => feed.written = feed.bytes.len(),
        }
        if feed.written >= feed.bytes.len() {
            self.stdin = None;
        }
    }

    fn begin_stop(&mut self) {
        let Some(control) = &mut self.control else { return };
        let request = *control.request.lock().unwrap_or_else(PoisonError::into_inner);
        // At its end the handle was dropped: nobody can ask any more.
        if !matches!(control.wake.read(&mut [0; 16]), Ok(1..)) {
            self.control = None;
        }
        let Some(request) = request else { return };
        let now = Instant::now();
        self.stopping = match self.stopping {
            Stopping::No => {
                self.signal(Signal::INT);
                Stopping::Interrupted { request, until: now + request.grace.int }
            }
            Stopping::Interrupted { until, .. } => {
                Stopping::Interrupted { request, until: until.min(now + request.grace.int) }
            }
            Stopping::Terminated { until, .. } => {
                Stopping::Terminated { request, until: until.min(now + request.grace.term) }
            }
            Stopping::Killed { request } => Stopping::Killed { request },
        };
    }

    fn go_on_stopping(&mut self) {
        match self.stopping {
            Stopping::No | Stopping::Killed { .. } => {}
            Stopping::Interrupted { request, until } => {
                if Instant::now() >= until {
                    self.signal(Signal::TERM);
                    let until = Instant::now() + request.grace.term;
                    self.stopping = Stopping::Terminated { request, until };
                }
            }
            Stopping::Terminated { request, until } => {
                if Instant::now() >= until {
                    self.signal(Signal::KILL);
                    self.stopping = Stopping::Killed { request };
                }
            }
        }
    }

    /// To the program's own group; what left the group is dealt with when the program has ended.
    fn signal(&self, signal: Signal) {
        // It may have ended a moment ago; until it is reaped its number belongs to nobody else.
        let _gone = kill_process_group(self.main, signal);
    }

    /// How the program ended; `None` if somebody else in this process reaped it.
    fn reap(&mut self) -> Option<WaitStatus> {
        let mut live = registry::lock();
        let status = wait_for(self.main);
        for entry in live.iter_mut().filter(|entry| entry.token == self.token) {
            entry.main = None;
        }
        status
    }

    fn exit_of(&self, status: Option<WaitStatus>) -> Exit {
        let why = match self.stopping {
            Stopping::No => None,
            Stopping::Interrupted { request, .. }
            | Stopping::Terminated { request, .. }
            | Stopping::Killed { request } => Some(request.why),
        };
        let (code, signal) =
            status.map_or((None, None), |status| (status.exit_status(), status.terminating_signal()));
        match (why, code, signal) {
            (Some(Stop::TimedOut), _, _) => Exit::TimedOut,
            (Some(Stop::Asked) | None, Some(code @ 129..160), _) if self.signal_as_code => {
                Exit::Signal { signal: code - 128 }
            }
            (Some(Stop::Asked) | None, Some(code), _) => Exit::Code { code },
            (Some(Stop::Asked) | None, None, Some(signal)) => Exit::Signal { signal },
            (Some(Stop::Asked) | None, None, None) => Exit::Code { code: -1 },
        }
    }
}

struct Ready {
    exit: bool,
    stdin: bool,
    stdout: bool,
    stderr: bool,
    control: bool,
}

fn set_nonblocking(pipes: [Option<&File>; 3]) -> io::Result<()> {
    for pipe in pipes.into_iter().flatten() {
        let flags = rustix::fs::fcntl_getfl(pipe)?;
        rustix::fs::fcntl_setfl(pipe, flags | rustix::fs::OFlags::NONBLOCK)?;
    }
    Ok(())
}

/// Ends a program that cannot be supervised.
fn abandon(main: Pid, token: Token) {
    let _gone = kill_process_group(main, Signal::KILL);
    wait_for(main);
    system::end_survivors(main, token);
    registry::remove(token);
}

pub(super) fn wait_for(main: Pid) -> Option<WaitStatus> {
    loop {
        match waitpid(Some(main), WaitOptions::empty()) {
            Ok(ended) => return ended.map(|(_, status)| status),
            Err(Errno::INTR) => {}
            Err(_) => return None,
        }
    }
}

/// Reads once and reports whether there may be more; the pipe is closed at its end.
fn read<P: Read>(
    pipe: &mut Option<P>,
    stream: Stream,
    buffer: &mut [u8],
    output: &mut dyn FnMut(Heard<'_>),
) -> bool {
    let Some(open) = pipe else { return false };
    match open.read(buffer) {
        Ok(0) => *pipe = None,
        Ok(count) => {
            output(Heard::Output(stream, &buffer[..count]));
            return true;
        }
        Err(error) if error.kind() == ErrorKind::Interrupted => return true,
        Err(error) if error.kind() == ErrorKind::WouldBlock => {}
        Err(_) => *pipe = None,
    }
    false
}

fn drain<P: Read>(
    pipe: &mut Option<P>,
    stream: Stream,
    buffer: &mut [u8],
    output: &mut dyn FnMut(Heard<'_>),
) {
    while read(pipe, stream, buffer, output) {}
}

pub(super) fn timespec(duration: Duration) -> Timespec {
    // A `Duration` this long is never asked for; saturating keeps it a wait.
    Timespec::try_from(duration).unwrap_or(Timespec { tv_sec: i64::MAX, tv_nsec: 0 })
}
