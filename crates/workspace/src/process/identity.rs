//! Telling one process from another, also after its number was given to somebody else.

use std::fs;

/// A process for all time: the number alone may be used again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    pub pid: u32,
    /// When it started, in the system's own words; empty where that cannot be told.
    pub started: String,
    /// Which start of the machine that was.
    pub boot: String,
    pub host: String,
}

/// Who we are.
pub fn identity() -> Identity {
    let pid = std::process::id();
    Identity { pid, started: started(pid).unwrap_or_default(), boot: boot(), host: host() }
}

/// Is that process still there? One of another machine counts as alive: we cannot look.
pub fn is_alive(other: &Identity) -> bool {
    if other.host != host() {
        return true;
    }
    other.boot == boot() && started(other.pid).is_some_and(|started| started == other.started)
}

/// Is there a process of this number? One that only waits to be reaped is not.
pub fn is_running(pid: u32) -> bool {
    started(pid).is_some()
}

/// Ends this process at once, as `kill -9` would.
pub fn end_self() -> ! {
    #[cfg(unix)]
    {
        use rustix::process::{Signal, getpid, kill_process};
        let _impossible = kill_process(getpid(), Signal::KILL);
    }
    std::process::abort()
}

#[cfg(target_os = "linux")]
fn started(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // After the command's name, which may contain anything, the start time is the 20th field; a
    // process that only waits to be reaped is gone for all we care.
    let rest: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    if matches!(rest.first(), Some(&("Z" | "X"))) {
        return None;
    }
    rest.get(19).map(|text| (*text).to_owned())
}

#[cfg(all(unix, not(target_os = "linux")))]
fn started(pid: u32) -> Option<String> {
    use rustix::process::{Pid, test_kill_process};
    let pid = Pid::from_raw(i32::try_from(pid).ok()?)?;
    test_kill_process(pid).ok().map(|()| String::new())
}

#[cfg(not(unix))]
fn started(pid: u32) -> Option<String> {
    (pid == std::process::id()).then(String::new)
}

fn boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

fn host() -> String {
    #[cfg(unix)]
    return rustix::system::uname().nodename().to_string_lossy().into_owned();
    #[cfg(not(unix))]
    std::env::var("COMPUTERNAME").unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn we_are_alive_and_nobody_else_is_us() {
        let me = identity();
        assert!(is_alive(&me));
        assert!(!is_alive(&Identity { started: "1".to_owned(), ..me.clone() }));
        assert!(!is_alive(&Identity { boot: "another".to_owned(), ..me.clone() }));
        assert!(!is_alive(&Identity { pid: u32::MAX >> 1, ..me }));
    }
}
