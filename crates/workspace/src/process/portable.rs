//! Process groups only, for systems other than Linux: what leaves its group is not found.

use std::io;

use rustix::process::{Pid, Signal, kill_process_group};

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

pub(super) use super::exit::waited_for as exit_signal;

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
