//! Looking after a short program that this thread waits for: it may be ended before its time.

use std::fmt::Debug;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, Signal, kill_process_group};

use super::supervise::timespec;
use super::system;

/// How long a program that is to end gets after TERM.
const GRACE: Duration = Duration::from_secs(2);

/// Decides how long somebody waits for a program that [`super::run`] runs.
pub trait Attend: Debug + Send + Sync {
    /// Readable when [`Attend::look`] should be asked before its time.
    fn wake(&self) -> BorrowedFd<'_>;

    /// The program has run for so long.
    fn look(&self, ran: Duration) -> Patience;
}

/// What follows from a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// Look again after this time at the latest; whenever woken, if nothing is said.
    Wait(Option<Duration>),
    /// End the program.
    End,
}

/// Waits until the program has ended. True if it was made to.
pub(super) fn attend_to(main: Pid, attendant: &dyn Attend) -> bool {
    // Where that cannot be had, whoever waits afterwards waits for its end.
    let Ok(exit) = system::exit_signal(main) else { return false };
    let started = Instant::now();
    let mut ending: Option<Ending> = None;
    loop {
        let limit = match &mut ending {
            Some(ending) => ending.go_on(main),
            None => match attendant.look(started.elapsed()) {
                Patience::Wait(limit) => limit,
                Patience::End => {
                    ending = Some(Ending::begin(main));
                    Some(GRACE)
                }
            },
        };
        let mut fds = vec![PollFd::from_borrowed_fd(exit.as_fd(), PollFlags::IN)];
        if ending.is_none() {
            fds.push(PollFd::from_borrowed_fd(attendant.wake(), PollFlags::IN));
        }
        // An interrupted poll (EINTR) reports nothing ready and is simply done again.
        let polled = poll(&mut fds, limit.map(timespec).as_ref()).is_ok();
        if polled && !fds[0].revents().is_empty() {
            return ending.is_some();
        }
    }
}

/// A program that is being ended: TERM, and KILL if that does not help.
struct Ending {
    kill_at: Option<Instant>,
}

impl Ending {
    fn begin(main: Pid) -> Self {
        signal(main, Signal::TERM);
        Self { kill_at: Some(Instant::now() + GRACE) }
    }

    /// How long to wait for its end.
    fn go_on(&mut self, main: Pid) -> Option<Duration> {
        let left = self.kill_at?.saturating_duration_since(Instant::now());
        if !left.is_zero() {
            return Some(left);
        }
        signal(main, Signal::KILL);
        self.kill_at = None;
        None
    }
}

/// To the program's whole group: a hook belongs to the git that runs it.
fn signal(main: Pid, signal: Signal) {
    // It may have ended a moment ago; until it is reaped its number belongs to nobody else.
    let _gone = kill_process_group(main, signal);
}
