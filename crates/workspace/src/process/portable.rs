//! Process groups only, for systems other than Linux: what leaves its group is not found.

use std::io;
use std::os::fd::OwnedFd;
use std::thread;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use super::registry::Token;

pub(super) fn adopt_orphans() -> io::Result<()> {
    Ok(())
}

/// No program can be found by its marker, so there is nothing a watchdog could do.
pub(super) const FINDS_MARKED: bool = false;

pub(super) fn without_adopting<T>(start: impl FnOnce() -> T) -> T {
    start()
}

pub(super) fn with_token<T>(_token: Token, start: impl FnOnce() -> T) -> T {
    start()
}

pub(super) fn call_ourselves(_name: &str) {}

/// Something that becomes readable when the process has ended.
pub(super) fn exit_signal(pid: Pid) -> io::Result<OwnedFd> {
    let (reader, writer) = io::pipe()?;
    thread::Builder::new().name("process exit".to_owned()).spawn(move || {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while matches!(waitid(WaitId::Pid(pid), options), Err(rustix::io::Errno::INTR)) {}
        // Closing the other end is the message.
        drop(writer);
    })?;
    Ok(reader.into())
}

/// The group's number cannot have been reused as long as it has members; without members the
/// signal reaches nobody.
pub(super) fn end_survivors(main: Pid, _token: Token) -> u32 {
    u32::from(kill_process_group(main, Signal::KILL).is_ok())
}

pub(super) fn time_at_rest(_main: u32) -> Option<std::time::Duration> {
    None
}

pub(super) fn tools(_main: u32) -> Option<Vec<super::Tool>> {
    None
}

pub(super) fn end_marked(_name: &str, _value: &str) -> u32 {
    0
}

pub(super) fn marked(_name: &str, _value: &str) -> Vec<u32> {
    Vec::new()
}
