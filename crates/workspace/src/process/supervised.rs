//! A short program whose output is wanted whole, where there are no files in memory.

use super::registry::Survivors;
use super::supervise::{Heard, Supervisor};
use super::{Launch, LaunchError, Output, Stream};

pub(super) fn run(launch: Launch, meanwhile: &mut dyn FnMut()) -> Result<Output, LaunchError> {
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let supervisor = Supervisor::start(launch, Survivors::Leave)?;
    meanwhile();
    let ended = supervisor.supervise(&mut |heard| match heard {
        Heard::Output(Stream::Stdout, bytes) => stdout.extend_from_slice(bytes),
        Heard::Output(Stream::Stderr, bytes) => stderr.extend_from_slice(bytes),
        Heard::Silence => {}
    });
    Ok(Output { exit: ended.exit, stdout, stderr })
}
