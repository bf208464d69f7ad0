//! Programs have one door, and it is not in this crate: whoever makes [`crate::Servers`] brings it.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use wiggum_core::event::Exit;
use wiggum_core::stream::Stream;

/// Starts the programs of servers.
pub trait Launcher: Send + Sync {
    /// Starts one in a session of its own, with this environment and no other.
    fn launch(&self, program: Program, sink: Box<dyn Sink>) -> io::Result<Box<dyn Running>>;
}

/// The program of a server.
#[derive(Debug)]
pub struct Program {
    pub program: String,
    pub arguments: Vec<String>,
    /// All variables that it gets, the marker included.
    pub env: Vec<(OsString, OsString)>,
    /// The current one, if nothing is said.
    pub directory: Option<PathBuf>,
    pub stdin: io::PipeReader,
    /// The variable among `env` by which all that it starts is found again.
    pub marker: Option<(String, String)>,
}

/// Receives what a program does, on a thread of the launcher's. A call may block, which keeps the program from
/// writing more.
pub trait Sink: Send {
    fn output(&mut self, stream: Stream, bytes: &[u8]);
    /// Once, after all output, when nothing of the program is left.
    fn ended(&mut self, exit: Exit);
}

/// A program that was started.
pub trait Running: Send + Sync {
    /// Ends it and everything it started, and returns at once.
    fn stop(&self);
}
