//! Drivers for what does the work of an iteration.
//!
//! A driver has three parts that never mix: it says how to start the agent ([`Driver::invocation`]),
//! the engine starts it, and a pure [`StreamParser`] reads what it prints. Nothing here spawns a
//! process, except the scripted agent, which *is* one ([`script::play`]).

pub mod command;
pub mod script;

use std::path::Path;

use wiggum_core::event::Usage;
use wiggum_core::stream::Stream;

pub use command::{CommandAgent, PromptVia};
pub use script::ScriptedAgent;

/// One kind of agent.
pub trait Driver: Send {
    /// How the agent is called, for people to read.
    fn describe(&self) -> String;

    /// How to start it on an assignment.
    fn invocation(&self, assignment: &Assignment<'_>) -> Invocation;

    /// A fresh reader for the output of one start.
    fn parser(&self) -> Box<dyn StreamParser>;
}

/// Reads an agent's output as it comes. Pure, and safe with any bytes in any portions.
pub trait StreamParser: Send {
    fn push(&mut self, stream: Stream, bytes: &[u8]) -> Vec<AgentEvent>;

    /// What is known when nothing more will come.
    fn finish(&mut self) -> Finished;
}

/// What an agent is given.
#[derive(Clone, Copy, Debug)]
pub struct Assignment<'a> {
    pub prompt: &'a str,
    pub prompt_file: &'a Path,
    /// This very program, for agents that are part of it.
    pub wiggum: &'a Path,
}

/// How to start an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invocation {
    pub command: CommandText,
    pub stdin: Option<Vec<u8>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandText {
    /// A command line as people write it, with arguments to be added to it.
    Line {
        line: String,
        arguments: Vec<String>,
    },
    Program {
        program: String,
        arguments: Vec<String>,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub enum AgentEvent {
    /// Text for people to read while it runs.
    Output(String),
    ToolCall {
        name: String,
        detail: String,
    },
}

/// The outcome of one start, as the agent's own output tells it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Finished {
    /// The final assistant message; claims and questions are read from it and nothing else.
    pub message: String,
    pub usage: Option<Usage>,
    /// What it wrote to standard error, the end of it.
    pub complaints: String,
}

/// Keeps the end of a text without ever growing beyond twice its limit.
#[derive(Clone, Debug)]
pub(crate) struct Tail {
    bytes: Vec<u8>,
    limit: usize,
}

impl Tail {
    pub(crate) fn new(limit: usize) -> Self {
        Self { bytes: Vec::new(), limit }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let bytes = &bytes[bytes.len().saturating_sub(self.limit)..];
        self.bytes.extend_from_slice(bytes);
        if self.bytes.len() > 2 * self.limit {
            self.bytes.drain(..self.bytes.len() - self.limit);
        }
    }

    pub(crate) fn text(&self) -> String {
        let start = self.bytes.len().saturating_sub(self.limit);
        String::from_utf8_lossy(&self.bytes[start..]).into_owned()
    }
}

/// Hands out whole characters only: what is cut in the middle waits for the rest.
#[derive(Clone, Debug, Default)]
pub(crate) struct Utf8Pieces {
    held: Vec<u8>,
}

impl Utf8Pieces {
    pub(crate) fn push(&mut self, bytes: &[u8]) -> String {
        self.held.extend_from_slice(bytes);
        let keep = match std::str::from_utf8(&self.held) {
            Ok(_) => 0,
            Err(error) if error.error_len().is_none() => self.held.len() - error.valid_up_to(),
            Err(_) => 0,
        };
        let rest = self.held.split_off(self.held.len() - keep);
        let text = String::from_utf8_lossy(&self.held).into_owned();
        self.held = rest;
        text
    }
}
