//! The end of a process as something to poll, where the system has nothing of that kind: a thread waits for it.

use std::io;
use std::os::fd::OwnedFd;
use std::thread;

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

/// Becomes readable when the process has ended, which is left to be reaped.
pub(super) fn waited_for(pid: Pid) -> io::Result<OwnedFd> {
    let (reader, writer) = io::pipe()?;
    thread::Builder::new().name("process exit".to_owned()).spawn(move || {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while matches!(waitid(WaitId::Pid(pid), options), Err(rustix::io::Errno::INTR)) {}
        // Closing the other end is the message.
        drop(writer);
    })?;
    Ok(reader.into())
}
