//! Starting a program in a session of its own, as the standard library does it: for systems other
//! than Linux.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use rustix::process::{Pid, setsid};

use super::registry::Token;
use super::{GIT_LOCATION, Input, Launch};

pub(super) struct Spawned {
    pub(super) main: Pid,
    pub(super) stdin: Option<File>,
    pub(super) stdout: File,
    pub(super) stderr: File,
}

/// Where a program's output goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Streams {
    Pipes,
}

pub(super) fn spawn(launch: &Launch, _token: Token, _streams: Streams) -> io::Result<Spawned> {
    if launch.confinement.is_some() {
        // Nothing can be confined here, and nothing runs as if it were.
        return Err(io::ErrorKind::Unsupported.into());
    }
    let mut child = command(launch).spawn()?;
    let closed = || io::Error::from(io::ErrorKind::BrokenPipe);
    let main = i32::try_from(child.id()).ok().and_then(Pid::from_raw).ok_or_else(closed)?;
    let stdin = child.stdin.take().map(|pipe| File::from(OwnedFd::from(pipe)));
    let stdout = File::from(OwnedFd::from(child.stdout.take().ok_or_else(closed)?));
    let stderr = File::from(OwnedFd::from(child.stderr.take().ok_or_else(closed)?));
    Ok(Spawned { main, stdin, stdout, stderr })
}

fn command(launch: &Launch) -> Command {
    #[expect(clippy::disallowed_methods, reason = "this is the door")]
    let mut command = Command::new(&launch.command.program);
    command.args(&launch.command.args).current_dir(&launch.cwd);
    for name in GIT_LOCATION {
        command.env_remove(name);
    }
    for name in &launch.env_remove {
        command.env_remove(name);
    }
    command.envs(launch.env.iter().map(|(name, value)| (name, value)));
    if let Some((name, value)) = &launch.marker {
        command.env(name, value);
    }
    let stdin = match &launch.stdin {
        Input::Nothing => Stdio::null(),
        Input::Bytes(_) => Stdio::piped(),
        Input::Pipe(reader) => reader.try_clone().map_or_else(|_| Stdio::null(), Stdio::from),
    };
    command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
    let prepare = || {
        setsid()?;
        Ok(())
    };
    // SAFETY: between fork and exec only async-signal-safe calls are allowed, and `setsid` is one.
    unsafe { command.pre_exec(prepare) };
    command
}
