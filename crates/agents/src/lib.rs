//! Drivers for what does the work of an iteration.
//!
//! A driver has three parts that never mix: it says how to start the agent ([`Driver::invocation`]),
//! the engine starts it, and a pure [`StreamParser`] reads what it prints. Nothing here spawns a
//! process, except the scripted agent, which *is* one ([`script::play`]).
//!
//! ```
//! use jiff::Zoned;
//! use wiggum_agents::{AgentSpec, Family};
//! use wiggum_core::event::Exit;
//! use wiggum_core::stream::Stream;
//!
//! let driver = Family::driver(AgentSpec::new(Family::Claude));
//! let mut parser = driver.parser();
//! // As it comes, in pieces that end anywhere.
//! parser.push(Stream::Stdout, br#"{"type":"result","subtype":"success","is_error":false,"#);
//! parser.push(Stream::Stdout, b"\"result\":\"<promise>DONE</promise>\",\"total_cost_usd\":0.25}\n");
//! let now: Zoned = "2026-01-01T00:00:00[UTC]".parse()?;
//! let finished = parser.finish(Exit::Code { code: 0 }, &now);
//! assert_eq!(finished.message, "<promise>DONE</promise>");
//! assert_eq!(finished.usage.map(|usage| usage.cost_usd), Some(0.25));
//! # Ok::<(), jiff::Error>(())
//! ```

mod aider;
mod amp;
pub mod api;
mod claude;
mod codex;
pub mod command;
mod copilot;
mod family;
mod gemini;
mod json;
mod lines;
mod mcp;
mod opencode;
mod said;
pub mod script;
mod tokens;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jiff::{Timestamp, Zoned};
use wiggum_core::budget::Ceiling;
use wiggum_core::event::{AgentFacts, Exit, Trouble, Usage};
use wiggum_core::price::{self, Prices};
use wiggum_core::stream::Stream;

pub use command::{CommandAgent, PromptVia};
pub use family::{AgentSpec, Family, Login};
pub use mcp::McpServer;
pub use said::{in_complaint as trouble_in_complaint, in_line as trouble_in_line};
pub use script::ScriptedAgent;

/// One kind of agent.
pub trait Driver: Send {
    /// How the agent is called, for people to read.
    fn describe(&self) -> String;

    /// How to start it on an assignment.
    fn invocation(&self, assignment: &Assignment<'_>) -> Invocation;

    /// A fresh reader for the output of one start.
    fn parser(&self) -> Box<dyn StreamParser>;

    fn abilities(&self) -> Abilities {
        Abilities::default()
    }

    /// The model it is told to use; without one it is the agent's choice.
    fn model(&self) -> Option<&str> {
        None
    }

    /// Where it keeps settings, sessions and caches, which it has to write to; `~/` is the user's
    /// home.
    fn own_paths(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    /// The name of the program, where it may be that of directories in which it keeps something.
    fn program(&self) -> Option<&str> {
        None
    }

    /// Variables of the environment that say where such a directory is instead. `XDG_DATA_HOME/name` is a directory in
    /// one that all programs share.
    fn path_variables(&self) -> &[&str] {
        &[]
    }

    /// Names of variables with secrets that are meant for it. A `*` at the end stands for any rest.
    fn secrets(&self) -> &[&str] {
        &[]
    }
}

/// What a driver can do beside starting its agent and reading its message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Abilities {
    /// Tells what it does while it does it, so that silence means something.
    pub live: bool,
    /// Tells each tool call when it begins and when it ends.
    pub calls: bool,
    /// Tells how many tokens were used.
    pub usage: bool,
    /// Tells it while it works, not only at its end.
    pub usage_live: bool,
    /// Tells what they cost.
    pub cost: bool,
    /// Tells which model answers.
    pub model: bool,
    /// Can be given a limit on its cost, and ends by itself there.
    pub bounds_cost: bool,
    /// Can be given a limit on its tokens, and ends by itself there.
    pub bounds_tokens: bool,
    /// Can be spoken to while it works.
    pub nudge: bool,
    /// Can continue an earlier session.
    pub resume: bool,
    /// Has a sandbox of its own.
    pub sandbox: bool,
    /// Can be handed an MCP server at its start.
    pub mcp: bool,
}

/// Why nobody will know what an agent costs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unpriced {
    /// It does not tell what it uses.
    NoFigures,
    /// It tells neither its cost nor its model, and none is configured.
    NoModel,
    /// Nobody knows what this model costs.
    NoPrice { model: String },
}

impl Abilities {
    /// Why it is known before its start that nobody will know what it costs, if that is so. `model` is the
    /// one it is told to use, `own` are the user's prices.
    pub fn unpriced(&self, model: Option<&str>, own: &BTreeMap<String, Prices>) -> Option<Unpriced> {
        match model {
            _ if self.cost => None,
            _ if !self.usage => Some(Unpriced::NoFigures),
            Some(model) if price::find(own, model).is_some() => None,
            Some(model) => Some(Unpriced::NoPrice { model: model.to_owned() }),
            None if self.model => None,
            None => Some(Unpriced::NoModel),
        }
    }
}

/// Reads an agent's output as it comes. Pure, and safe with any bytes in any portions.
pub trait StreamParser: Send {
    fn push(&mut self, stream: Stream, bytes: &[u8]) -> Vec<AgentEvent>;

    /// What is known when nothing more will come, and how the program ended. Agents tell times as a
    /// clock on the wall does ("resets 7:35am"): `now` and its time zone make moments of them.
    fn finish(&mut self, exit: Exit, now: &Zoned) -> Finished;
}

/// What an agent is given.
#[derive(Clone, Copy, Debug)]
pub struct Assignment<'a> {
    pub prompt: &'a str,
    pub prompt_file: &'a Path,
    /// This very program, for agents that are part of it.
    pub wiggum: &'a Path,
    pub session: Session<'a>,
    /// The model that the task wants, in place of the agent's own.
    pub model: Option<&'a str>,
    /// A server of tools for it, if it can be handed one.
    pub mcp: Option<&'a McpServer>,
    /// The most that it may use, for agents that end by themselves there.
    pub ceiling: Ceiling,
    /// What its model costs, for agents that do not know it.
    pub prices: Option<Prices>,
}

/// Which of the agent's own sessions an assignment is for, where it has such.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Session<'a> {
    /// A new one.
    #[default]
    Fresh,
    /// A new one with this id, a UUID, so that it can be continued even if the agent is killed before
    /// it says a word. Agents that choose the id themselves ignore it.
    Named(&'a str),
    Continued(&'a str),
}

/// How to start an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invocation {
    pub command: CommandText,
    pub stdin: Option<Vec<u8>>,
    /// Added to the environment.
    pub env: Vec<(String, String)>,
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
    /// What a tool gave back, shortened.
    ToolResult {
        text: String,
        is_error: bool,
    },
    /// The model has answered, and all answers together have used this.
    Usage(Usage),
    /// The model that answers, as soon as it is known.
    Model(String),
    /// It says of the model's last answer whether it was the last of all, or whether it goes on.
    TurnEnded {
        last: bool,
    },
    /// How much of its context the last request took, and how much there is, if it tells.
    Context {
        used: u64,
        window: Option<u64>,
    },
    /// Its session, as soon as it is known.
    Session(String),
    /// It comes near to the account's allowance, or has met it.
    Limit {
        reached: bool,
        resets_at: Option<Timestamp>,
    },
    /// It tries again by itself after a fault of the provider. What is worse than waiting should be
    /// ended by the engine: the trouble says which.
    Retrying {
        trouble: Trouble,
    },
    /// Something else worth a line.
    Notice(String),
}

/// The outcome of one start, as the agent's own output tells it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Finished {
    /// The final assistant message; claims and questions are read from it and nothing else.
    pub message: String,
    pub usage: Option<Usage>,
    /// What it wrote to standard error, the end of it.
    pub complaints: String,
    /// Why this start was no success; without one it was.
    pub problem: Option<Problem>,
    /// Session, model, tool calls, context. Its trouble is the problem's.
    pub facts: AgentFacts,
}

/// Why a start of an agent was no success.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub trouble: Trouble,
    /// In the agent's words where it has some; empty if only the exit tells.
    pub message: String,
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.message.as_str() {
            "" => self.trouble.fmt(f),
            message => write!(f, "{}: {message}", self.trouble),
        }
    }
}

impl Problem {
    /// Nobody said a word about it.
    pub(crate) fn silent(trouble: Trouble) -> Self {
        Self { trouble, message: String::new() }
    }
}

/// A plain program's problem: it did not exit with 0.
pub(crate) fn problem_by_exit(exit: Exit) -> Option<Problem> {
    (!exit.success()).then(|| Problem::silent(Trouble::Other))
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
