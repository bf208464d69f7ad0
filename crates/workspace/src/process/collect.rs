//! A short program whose output is wanted whole: the output goes to memory instead of a pipe, so that
//! we wake up once, when the program has ended, and not for every line of it.

use std::fs::File;
use std::io::{self, Read, Seek, Write};

use rustix::io::Errno;
use rustix::process::{Pid, WaitId, WaitIdOptions, WaitStatus, waitid};
use wiggum_core::event::Exit;

use super::attend::{Attend, attend_to};
use super::registry::{self, Live, Survivors, Token};
use super::spawn::{Spawned, Streams, spawn};
use super::supervise::wait_for;
use super::{Input, Launch, LaunchError, Output, system};

pub(super) fn run(launch: Launch, meanwhile: &mut dyn FnMut()) -> Result<Output, LaunchError> {
    let command = launch.command.to_string();
    let token = Token::new(launch.marker.as_ref(), Survivors::Leave);
    let Spawned { main, stdin, stdout, stderr } = {
        let mut live = registry::lock();
        let spawned = spawn(&launch, token, Streams::Memory).map_err(|source| LaunchError::Spawn {
            command: command.clone(),
            cwd: launch.cwd.clone(),
            source,
        })?;
        live.push(Live { main: Some(spawned.main.as_raw_nonzero().get()), token });
        spawned
    };
    if let (Some(mut pipe), Input::Bytes(bytes)) = (stdin, &launch.stdin) {
        // A program that closes its input without reading it is within its rights.
        drop(pipe.write_all(bytes));
    }
    meanwhile();
    let (status, was_ended) = wait(main, launch.attendant.as_deref());
    if was_ended {
        system::end_survivors(main, token);
    }
    registry::remove(token);
    if was_ended {
        return Err(LaunchError::Ended { command });
    }
    let collected = read(stdout).and_then(|stdout| Ok((stdout, read(stderr)?)));
    let (stdout, stderr) = collected.map_err(|source| LaunchError::Supervise { command, source })?;
    Ok(Output { exit: exit_of(status), stdout, stderr })
}

/// The registry is locked for the moment in which the number becomes free, not for the whole wait.
fn wait(main: Pid, attendant: Option<&dyn Attend>) -> (Option<WaitStatus>, bool) {
    let was_ended = attendant.is_some_and(|attendant| attend_to(main, attendant));
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    while matches!(waitid(WaitId::Pid(main), options), Err(Errno::INTR)) {}
    let mut live = registry::lock();
    let status = wait_for(main);
    let number = main.as_raw_nonzero().get();
    live.iter_mut().filter(|entry| entry.main == Some(number)).for_each(|entry| entry.main = None);
    (status, was_ended)
}

/// Whoever it left running may still write there; what is there now is the program's own.
fn read(mut file: File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn exit_of(status: Option<WaitStatus>) -> Exit {
    let code = status.and_then(WaitStatus::exit_status);
    let signal = status.and_then(WaitStatus::terminating_signal);
    match (code, signal) {
        (Some(code), _) => Exit::Code { code },
        (None, Some(signal)) => Exit::Signal { signal },
        (None, None) => Exit::Code { code: -1 },
    }
}
