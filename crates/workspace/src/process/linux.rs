//! Process trees on Linux: sessions, subreaper, `/proc`, pidfds.
//!
//! A pidfd is opened before anything is read about a process, and signals go through it: if the
//! number was reused in between, the signal reaches nobody instead of a stranger.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Once;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Resource, Rlimit, Signal, WaitId, WaitIdOptions, WaitOptions, child_subreaper, getpid,
    getrlimit, kill_process, kill_process_group, pidfd_open, pidfd_send_signal, set_child_subreaper,
    setrlimit, waitid, waitpid,
};

use super::Tool;
use super::registry::{self, Live, Token};
use super::supervise::timespec;

/// What outlived its program gets this long after TERM: enough to remove a lock file, too short to
/// be noticed.
const KINDNESS: Duration = Duration::from_millis(200);
/// A killed process that is still there after this long is stuck in the kernel; look again.
const AFTER_KILL: Duration = Duration::from_secs(1);
/// Never hang on what cannot be ended (stuck in the kernel).
const GIVE_UP: Duration = Duration::from_secs(10);
/// How often a process without a pidfd is looked at: a tenth of what it is given to end in kindness, and far
/// from busy waiting.
const LOOK_EVERY: Duration = Duration::from_millis(20);

pub(super) fn adopt_orphans() -> io::Result<()> {
    Ok(set_child_subreaper(Some(getpid()))?)
}

/// Programs can be found by their marker.
pub(super) const FINDS_MARKED: bool = true;

/// Orphans that come into being meanwhile do not come back to us.
pub(super) fn without_adopting<T>(start: impl FnOnce() -> T) -> T {
    let adopting = child_subreaper().ok().flatten();
    // What was allowed before is allowed again; see `adopt_orphans` for a kernel that refuses.
    let _stopped = set_child_subreaper(None);
    let result = start();
    let _resumed = set_child_subreaper(adopting);
    result
}

/// The name under which this process is listed.
pub(super) fn call_ourselves(name: &str) {
    // A name that is not shown harms nobody.
    drop(fs::write("/proc/self/comm", name));
}

/// Starts a program with the token in a place that is inherited whatever a descendant does: the
/// soft limit on uninterrupted real-time CPU. It is in microseconds, so our values mean 90 000
/// years, and it applies to real-time scheduled processes only. The hard limit stays as it is.
///
/// The limit is ours for the moment of the start, since a program started by `vfork` cannot set it
/// for itself. Nobody else is started meanwhile: the registry is locked.
pub(super) fn with_token<T>(token: Token, start: impl FnOnce() -> T) -> T {
    static ADOPT: Once = Once::new();
    // A kernel that refuses is older than any we run on; `adopt_orphans` reports it.
    ADOPT.call_once(|| drop(adopt_orphans()));

    let ours = getrlimit(Resource::Rttime);
    // Refused under a lower hard limit: descendants are then told apart by session only.
    let marked = setrlimit(Resource::Rttime, Rlimit { current: Some(token.number()), ..ours });
    let result = start();
    if marked.is_ok() {
        // What was allowed a moment ago still is.
        let _restored = setrlimit(Resource::Rttime, ours);
    }
    result
}

/// Something that becomes readable when the process has ended.
pub(super) fn exit_signal(pid: Pid) -> io::Result<OwnedFd> {
    match pidfd_open(pid, PidfdFlags::empty()) {
        Err(error) if has_no_pidfds(error) => super::exit::waited_for(pid),
        opened => Ok(opened?),
    }
}

/// Kernels before 5.3, containers whose filters do not know the call, and valgrind.
fn has_no_pidfds(error: Errno) -> bool {
    matches!(error, Errno::NOSYS | Errno::PERM)
}

/// Ends what is left of a program that has ended and was reaped. Returns how many there were.
pub(super) fn end_survivors(main: Pid, token: Token) -> u32 {
    if has_no_children() {
        return 0;
    }
    end_all(|beyond_us| find_survivors(main, token, beyond_us))
}

pub(super) fn end_marked(name: &str, value: &str) -> u32 {
    end_all(|beyond_us| find_marked(name, value, beyond_us))
}

pub(super) fn marked(name: &str, value: &str) -> Vec<u32> {
    let found = find_marked(name, value, &HashSet::new());
    found.iter().map(|found| found.pid.as_raw_nonzero().get().unsigned_abs()).collect()
}

/// Every orphan comes back to us, so without children there is nobody to look for. One system call
/// instead of a walk through `/proc`, in the most common case.
fn has_no_children() -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    matches!(waitid(WaitId::All, options), Err(Errno::CHILD))
}

struct Found {
    pid: Pid,
    /// Where the kernel has none, the number and when the process started have to do: between a look and a signal
    /// the number could be given to another process, though kernels go through all others first.
    pidfd: Option<OwnedFd>,
    facts: Facts,
}

impl Found {
    fn signal(&self, signal: Signal) -> rustix::io::Result<()> {
        match &self.pidfd {
            Some(pidfd) => pidfd_send_signal(pidfd, signal),
            None if self.is_gone() => Err(Errno::SRCH),
            None => kill_process(self.pid, signal),
        }
    }

    fn is_gone(&self) -> bool {
        let now = Facts::read(self.pid.as_raw_nonzero().get());
        now.is_none_or(|now| now.is_dead() || now.start != self.facts.start)
    }
}

/// TERM, a moment, then KILL, looking again each time since they may fork, until none is found.
fn end_all(mut find: impl FnMut(&HashSet<Pid>) -> Vec<Found>) -> u32 {
    let give_up = Instant::now() + GIVE_UP;
    let mut ended = HashSet::new();
    let mut beyond_us = HashSet::new();
    let mut signal = Signal::TERM;
    loop {
        let (dead, alive): (Vec<_>, Vec<_>) =
            find(&beyond_us).into_iter().partition(|found| found.facts.is_dead());
        dead.iter().for_each(|found| reap(found.pid));
        if (alive.is_empty() && dead.is_empty()) || Instant::now() >= give_up {
            return u32::try_from(ended.len()).unwrap_or(u32::MAX);
        }
        let mut waiting = Vec::new();
        for found in alive {
            if send(&found, signal) == Err(Errno::PERM) {
                // Another user's process (sudo): not ours to end.
                beyond_us.insert(found.pid);
            } else {
                ended.insert((found.pid, found.facts.start));
                waiting.push(found);
            }
        }
        let patience = if signal == Signal::TERM { KINDNESS } else { AFTER_KILL };
        wait_until_dead(&waiting, patience);
        waiting.iter().for_each(|found| reap(found.pid));
        signal = Signal::KILL;
    }
}

/// A whole group is killed at once, since the kernel then lets none of its members fork away.
fn send(found: &Found, signal: Signal) -> rustix::io::Result<()> {
    let group = found.facts.group;
    let sent = found.signal(signal);
    if signal == Signal::KILL
        && sent.is_ok()
        && is_foreign_group(group)
        && let Some(group) = Pid::from_raw(group)
    {
        let _gone = kill_process_group(group, Signal::KILL);
    }
    sent
}

/// Not ours and not that of another program of ours.
fn is_foreign_group(group: i32) -> bool {
    group > 1
        && ourselves().is_none_or(|facts| facts.group != group)
        && registry::lock().iter().all(|live| live.main != Some(group))
}

fn wait_until_dead(processes: &[Found], patience: Duration) {
    let until = Instant::now() + patience;
    let mut left: Vec<&Found> = processes.iter().collect();
    while !left.is_empty() {
        let mut timeout = until.saturating_duration_since(Instant::now());
        let is_over = timeout.is_zero();
        let (watched, looked_at): (Vec<&Found>, Vec<&Found>) =
            left.into_iter().partition(|found| found.pidfd.is_some());
        if !looked_at.is_empty() {
            timeout = timeout.min(LOOK_EVERY);
        }
        let fds = watched.iter().filter_map(|found| found.pidfd.as_ref());
        let mut fds: Vec<_> =
            fds.map(|pidfd| PollFd::from_borrowed_fd(pidfd.as_fd(), PollFlags::IN)).collect();
        match poll(&mut fds, Some(&timespec(timeout))) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return,
        }
        let alive: Vec<bool> = fds.iter().map(|fd| fd.revents().is_empty()).collect();
        let watched = watched.iter().zip(alive).filter_map(|(found, alive)| alive.then_some(*found));
        left = watched.chain(looked_at.into_iter().filter(|found| !found.is_gone())).collect();
        if is_over {
            return;
        }
    }
}

/// Only our own children can be reaped; for others this does nothing. A program's main process is
/// left to its supervisor, which wants to know how it ended.
fn reap(pid: Pid) {
    let live = registry::lock();
    if live.iter().all(|live| live.main != Some(pid.as_raw_nonzero().get())) {
        let _status = waitpid(Some(pid), WaitOptions::NOHANG);
    }
}

/// The descendants of ours that this program left behind, those of other live programs excepted.
fn find_survivors(main: Pid, token: Token, beyond_us: &HashSet<Pid>) -> Vec<Found> {
    let live = registry::lock();
    let own_number = getpid().as_raw_nonzero().get();
    let own_session = ourselves().map_or(0, |facts| facts.session);
    let all = processes();
    let is_root = |(pid, facts): &&(i32, Facts)| {
        facts.parent == own_number
            // Whatever is still in our session was started by us and not through this door.
            && facts.session != own_session
            && live.iter().all(|live| live.main != Some(*pid))
            && belongs(*pid, *facts, main, token, &live)
    };
    let mut tree: Vec<i32> = all.iter().filter(is_root).map(|(pid, _)| *pid).collect();
    let mut next = 0;
    while next < tree.len() {
        let parent = tree[next];
        tree.extend(all.iter().filter(|(_, facts)| facts.parent == parent).map(|(pid, _)| *pid));
        next += 1;
    }
    tree.into_iter()
        .filter_map(Pid::from_raw)
        .filter(|pid| !beyond_us.contains(pid))
        .filter_map(open)
        .collect()
}

/// Whose is an orphan? Its token says so. Without one (it set its limits anew) its session may;
/// failing that it is left to whichever program ends last, so that none loses a process to another.
fn belongs(pid: i32, facts: Facts, main: Pid, token: Token, live: &[Live]) -> bool {
    match token_of(pid) {
        Some(found) if found == token => true,
        Some(found) if found.may_survive() => false,
        Some(found) if live.iter().any(|live| live.token == found) => false,
        Some(_) | None => {
            let others = live.iter().filter(|live| live.token != token && !live.token.may_survive());
            facts.session == main.as_raw_nonzero().get() || others.count() == 0
        }
    }
}

fn find_marked(name: &str, value: &str, beyond_us: &HashSet<Pid>) -> Vec<Found> {
    let entry = format!("{name}={value}").into_bytes();
    let all = processes();
    let spared = ourselves_and_ancestors(&all);
    all.iter()
        .filter(|(pid, facts)| !spared.contains(pid) && !facts.is_dead())
        .filter_map(|(pid, _)| Pid::from_raw(*pid))
        .filter(|pid| !beyond_us.contains(pid))
        .filter_map(open)
        .filter(|found| is_marked(found.pid.as_raw_nonzero().get(), name, value, &entry))
        .collect()
}

fn is_marked(pid: i32, name: &str, value: &str, entry: &[u8]) -> bool {
    let in_environment = || {
        fs::read(format!("/proc/{pid}/environ"))
            .is_ok_and(|environment| environment.split(|byte| *byte == 0).any(|found| found == entry))
    };
    token_of(pid).is_some_and(|token| token.has_marker(name, value)) || in_environment()
}

fn ourselves_and_ancestors(all: &[(i32, Facts)]) -> HashSet<i32> {
    let mut spared = HashSet::new();
    let mut next = Some(getpid().as_raw_nonzero().get());
    while let Some(pid) = next.filter(|pid| spared.insert(*pid)) {
        next = all.iter().find(|(other, _)| *other == pid).map(|(_, facts)| facts.parent);
    }
    spared
}

/// The other members of the program's session, which is its own, and all their descendants.
pub(super) fn tools(main: u32) -> Option<Vec<Tool>> {
    let main = i32::try_from(main).ok()?;
    let all = processes();
    let own = itself(main, &all);
    let tools = with_descendants(main, &all).into_iter().filter(|pid| !own.contains(pid));
    let tools = tools.filter_map(|pid| {
        let (_, facts) = all.iter().find(|(other, _)| *other == pid)?;
        let (own_ticks, of_ended) = ticks_of(pid)?;
        Some(Tool { pid: pid.unsigned_abs(), start: facts.start, used: time_of(own_ticks + of_ended) })
    });
    Some(tools.collect())
}

/// What a program and all that it started have used, if none of them runs or waits for a disk.
pub(super) fn time_at_rest(main: u32) -> Option<Duration> {
    let main = i32::try_from(main).ok()?;
    let all = processes();
    let tree = with_descendants(main, &all);
    let rests = |facts: &Facts| matches!(facts.state, b'S' | b'I' | b'Z');
    if tree.is_empty() || all.iter().any(|(pid, facts)| tree.contains(pid) && !rests(facts)) {
        return None;
    }
    let ticks = tree.into_iter().filter_map(ticks_of).map(|(own, of_ended)| own + of_ended);
    Some(time_of(ticks.sum()))
}

/// The members of the program's session, which is its own, and all their descendants.
fn with_descendants(main: i32, all: &[(i32, Facts)]) -> Vec<i32> {
    let mut tree: Vec<i32> = all
        .iter()
        .filter(|(pid, facts)| *pid == main || facts.session == main)
        .map(|(pid, _)| *pid)
        .collect();
    let mut next = 0;
    while next < tree.len() {
        let parent = tree[next];
        let children = all.iter().filter(|(_, facts)| facts.parent == parent).map(|(pid, _)| *pid);
        let new: Vec<i32> = children.filter(|pid| !tree.contains(pid)).collect();
        tree.extend(new);
        next += 1;
    }
    tree
}

fn time_of(ticks: u64) -> Duration {
    Duration::from_millis(ticks.saturating_mul(1000) / TICKS_PER_SECOND)
}

/// The program, also where it runs inside of a sandbox that was started in its place.
fn itself(main: i32, all: &[(i32, Facts)]) -> Vec<i32> {
    let is_sandbox = |pid: i32| fs::read(format!("/proc/{pid}/comm")).is_ok_and(|name| name == b"bwrap\n");
    let mut own = vec![main];
    let mut next = 0;
    while next < own.len() {
        let parent = own[next];
        if is_sandbox(parent) {
            own.extend(all.iter().filter(|(_, facts)| facts.parent == parent).map(|(pid, _)| *pid));
        }
        next += 1;
    }
    own
}

/// What the kernel counts in towards programs, on every architecture that we run on.
const TICKS_PER_SECOND: u64 = 100;

/// Its own time, and that of its children that have ended.
fn ticks_of(pid: i32) -> Option<(u64, u64)> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let after_name = stat.iter().rposition(|byte| *byte == b')')? + 1;
    let fields = std::str::from_utf8(&stat[after_name..]).ok()?.split_ascii_whitespace();
    let ticks: Vec<u64> = fields.skip(11).take(4).filter_map(|field| field.parse().ok()).collect();
    match ticks[..] {
        [user, system, children_user, children_system] => {
            Some((user + system, children_user + children_system))
        }
        _ => None,
    }
}

/// What `/proc/<pid>/stat` says.
#[derive(Clone, Copy)]
struct Facts {
    state: u8,
    parent: i32,
    group: i32,
    session: i32,
    start: u64,
}

impl Facts {
    fn read(pid: i32) -> Option<Self> {
        let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
        // The name before it is in brackets and may contain anything, brackets included.
        let after_name = stat.iter().rposition(|byte| *byte == b')')? + 1;
        let mut fields = std::str::from_utf8(&stat[after_name..]).ok()?.split_ascii_whitespace();
        Some(Self {
            state: *fields.next()?.as_bytes().first()?,
            parent: fields.next()?.parse().ok()?,
            group: fields.next()?.parse().ok()?,
            session: fields.next()?.parse().ok()?,
            start: fields.nth(15)?.parse().ok()?,
        })
    }

    fn is_dead(self) -> bool {
        matches!(self.state, b'Z' | b'X' | b'x')
    }
}

/// Not through `getpgrp` and `getsid`: in a container whose session began outside both are 0, which
/// is no number of a process and brings the wrappers of those calls down.
fn ourselves() -> Option<Facts> {
    Facts::read(getpid().as_raw_nonzero().get())
}

fn processes() -> Vec<(i32, Facts)> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(|pid| Some((pid, Facts::read(pid)?)))
        .collect()
}

fn open(pid: Pid) -> Option<Found> {
    let pidfd = match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(pidfd) => Some(pidfd),
        Err(error) if has_no_pidfds(error) => None,
        Err(_) => return None,
    };
    let facts = Facts::read(pid.as_raw_nonzero().get())?;
    Some(Found { pid, pidfd, facts })
}

fn token_of(pid: i32) -> Option<Token> {
    let limits = fs::read_to_string(format!("/proc/{pid}/limits")).ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max realtime timeout"))?;
    Token::from_number(line.split_ascii_whitespace().next()?.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::super::registry::Survivors;
    use super::*;

    /// As where the kernel has no pidfds.
    fn without_pidfd(pid: Pid) -> Found {
        Found { pid, pidfd: None, facts: Facts::read(pid.as_raw_nonzero().get()).unwrap() }
    }

    #[expect(clippy::disallowed_methods, reason = "a process that nobody supervises")]
    fn sleeper() -> (std::process::Child, Pid) {
        let child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        (child, pid)
    }

    #[test]
    fn without_pidfds_the_end_of_a_process_is_noticed() {
        let (mut child, pid) = sleeper();
        let exit = super::super::exit::waited_for(pid).unwrap();
        let mut fds = [PollFd::new(&exit, PollFlags::IN)];
        assert_eq!(poll(&mut fds, Some(&timespec(Duration::ZERO))).unwrap(), 0, "it still runs");
        child.kill().unwrap();
        poll(&mut fds, Some(&timespec(AFTER_KILL))).unwrap();
        assert!(!fds[0].revents().is_empty());
        assert!(child.wait().unwrap().code().is_none(), "its end was left to be read");
    }

    #[test]
    fn without_pidfds_survivors_end_and_strangers_do_not() {
        let (mut child, pid) = sleeper();
        let mut stranger = without_pidfd(pid);
        stranger.facts.start += 1;
        assert_eq!(send(&stranger, Signal::KILL), Err(Errno::SRCH), "the number was given to another");
        assert!(child.try_wait().unwrap().is_none());

        let found = vec![without_pidfd(pid)];
        send(&found[0], Signal::TERM).unwrap();
        wait_until_dead(&found, AFTER_KILL);
        assert!(found[0].is_gone());
        child.wait().unwrap();
    }

    #[test]
    fn the_token_is_there_for_the_moment_of_a_start_alone() {
        let _others_start_nothing = registry::lock();
        let ours = getrlimit(Resource::Rttime);
        let token = Token::new(None, Survivors::End);
        let own_number = i32::try_from(std::process::id()).unwrap();
        assert_eq!(with_token(token, || token_of(own_number)), Some(token));
        assert_eq!(getrlimit(Resource::Rttime), ours);
    }
}
