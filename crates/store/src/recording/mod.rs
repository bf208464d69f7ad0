//! A run as it was seen, in one file that can be shown again without agent, model or repository.
//!
//! Compressed JSON lines: first a header, then everything in the order it was seen, each with its time.
//! [`Recorder`] writes it on a thread of its own; [`read()`] gives it back as far as it can be read.
//! A record is for people and bug reports: no run depends on one, and none is changed by one. Secrets
//! and the name of the home directory do not get in.

mod read;
mod write;

use std::io;
use std::path::PathBuf;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use wiggum_core::event::{Envelope, Exit, Trouble, Usage};
use wiggum_core::ids::{Attempt, Iteration, Seq, TaskId};
use wiggum_core::policy::Policy;
use wiggum_core::stream::Stream;

pub use read::{Reader, read};
pub use write::{Recorder, Target};

/// Version of the lines written by this build.
pub const VERSION: u32 = 1;

#[derive(Debug, Error)]
pub enum RecordingError {
    #[error("could not write the recording {}", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("could not read {}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{} is not a recording", path.display())]
    Foreign { path: PathBuf },
    #[error("{} was made by a later version (format {found}, known is {VERSION})", path.display())]
    Newer { path: PathBuf, found: u32 },
}

/// One line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// Milliseconds since the recording began.
    pub ms: u64,
    #[serde(flatten)]
    pub entry: Entry,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "snake_case")]
pub enum Entry {
    Header(Header),
    /// An event of the journal from before the recording.
    Before {
        envelope: Box<Envelope>,
    },
    /// An event, and how far the journal was when it was shown.
    Event {
        envelope: Box<Envelope>,
        upto: Seq,
    },
    /// A text that an event refers to. What was hidden in it is not what its hash was made of.
    Blob {
        sha256: String,
        text: String,
    },
    AgentStarted {
        iteration: Iteration,
        attempt: Attempt,
        task: TaskId,
        agent: String,
    },
    /// What the agent printed, as it came.
    Output {
        stream: Stream,
        text: String,
    },
    /// How much output was not recorded, since the disk was too slow for it.
    Dropped {
        bytes: u64,
    },
    AgentEnded {
        exit: Exit,
    },
    /// What was made of it.
    Shown {
        event: Shown,
    },
    CheckOutput {
        text: String,
    },
    /// The loop began to wait.
    Waiting {
        at: Timestamp,
    },
    /// The run was over, and this is the end of the recording.
    End {
        exit_code: u8,
    },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    pub version: u32,
    /// Of the program that recorded it.
    pub wiggum: String,
    pub at: Timestamp,
    pub policy: Box<Policy>,
}

/// What an agent told while it worked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Shown {
    Output { text: String },
    ToolCall { name: String, detail: String },
    ToolResult { text: String, is_error: bool },
    Usage { usage: Usage },
    Context { used: u64, window: Option<u64> },
    Session { id: String },
    Limit { reached: bool, resets_at: Option<Timestamp> },
    Retrying { trouble: Trouble },
    Notice { text: String },
}
