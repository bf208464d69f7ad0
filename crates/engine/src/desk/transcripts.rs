//! What an agent printed, read again as its own kind of stream: words, tools it called and what they gave
//! back. All of it was written by others; whoever shows it makes it harmless first.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;
use wiggum_agents::{
    AgentEvent, AgentSpec, CommandAgent, Driver, Family, PromptVia, ScriptedAgent, StreamParser,
};
use wiggum_core::ids::LoopId;
use wiggum_core::redact;
use wiggum_core::stream::Stream;
use wiggum_store::transcript::{self, Line};

use crate::state_dir::StateDir;

/// Entries one transcript is shown with; the last ones, if there are more.
const MOST_ENTRIES: usize = 200_000;

/// One thing that an agent said or did.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Entry {
    /// Milliseconds since it was started.
    pub ms: u64,
    pub kind: EntryKind,
    /// The tool, where one is called.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[cfg_attr(feature = "schema", schemars(default))]
    pub name: String,
    pub text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum EntryKind {
    Output,
    ToolCall,
    ToolResult,
    ToolError,
    Notice,
    /// The transcript may not hold more.
    Cut,
}

/// The file with what the agent of an attempt printed, the newest if it was interrupted and made again.
pub fn file(dir: &StateDir, id: LoopId, iteration: u32, attempt: u32) -> Option<PathBuf> {
    let start = format!("{iteration:05}-{attempt}-");
    let names = fs::read_dir(dir.transcripts(id)).ok()?.filter_map(Result::ok);
    let fits = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with(&start) && name.ends_with(".jsonl.zst"))
    };
    let found = names.map(|entry| entry.path()).filter(fits);
    // `x.jsonl.zst` is older than `x.2.jsonl.zst`, and that than `x.10.jsonl.zst`.
    found.max_by_key(|path| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let number = name.strip_suffix(".jsonl.zst").and_then(|name| name.rsplit('.').next()?.parse().ok());
        number.unwrap_or(1_u32)
    })
}

/// What the agent of that name, started by that command, printed so far.
pub fn read(path: &Path, agent: &str, command: &str) -> Result<Vec<Entry>, transcript::TranscriptError> {
    let mut parser = parser(agent, command);
    let mut entries: Vec<Entry> = Vec::new();
    transcript::read(path)?.for_each(|line| take(parser.as_mut(), line, &mut entries));
    entries.drain(..entries.len().saturating_sub(MOST_ENTRIES));
    Ok(entries)
}

/// What an agent prints, for whoever looks on while it does.
pub struct Following {
    lines: transcript::Growing,
    parser: Box<dyn StreamParser>,
}

impl Following {
    pub fn open(path: &Path, agent: &str, command: &str) -> Result<Self, transcript::TranscriptError> {
        Ok(Self { lines: transcript::Growing::open(path)?, parser: parser(agent, command) })
    }

    /// What came since the last look, bounded as by [`read`].
    pub fn more(&mut self) -> Vec<Entry> {
        let mut entries = Vec::new();
        while let Some(line) = self.lines.next_line() {
            take(self.parser.as_mut(), line, &mut entries);
            if entries.len() > 2 * MOST_ENTRIES {
                entries.drain(..MOST_ENTRIES);
            }
        }
        entries
    }
}

fn take(parser: &mut dyn StreamParser, line: Line, entries: &mut Vec<Entry>) {
    match line {
        Line::Output(output) => {
            let told = parser.push(output.stream, output.text.as_bytes());
            // Some agents' parsers keep complaints for the end; here they belong where they came.
            let silent = told.is_empty();
            entries.extend(told.into_iter().filter_map(|event| entry(output.ms, event)));
            if silent && output.stream == Stream::Stderr && !output.text.trim().is_empty() {
                let text = redact::text(&output.text).into_owned();
                entries.push(Entry { ms: output.ms, kind: EntryKind::Notice, name: String::new(), text });
            }
        }
        Line::Cut => {
            let ms = entries.last().map_or(0, |last| last.ms);
            entries.push(Entry { ms, kind: EntryKind::Cut, name: String::new(), text: String::new() });
        }
        Line::Unfinished => {}
    }
}

/// By its name, or by the program in its command, where people gave it a name of their own.
fn parser(agent: &str, command: &str) -> Box<dyn StreamParser> {
    let programs = || command.split_whitespace().filter_map(|word| word.rsplit('/').next());
    if command.starts_with("scripted agent") {
        return ScriptedAgent { scenario: PathBuf::new() }.parser();
    }
    let family = Family::from_name(agent).or_else(|| programs().find_map(Family::from_name));
    match family {
        Some(family) => Family::driver(AgentSpec::new(family)).parser(),
        None => CommandAgent { line: String::new(), prompt_via: PromptVia::Stdin }.parser(),
    }
}

fn entry(ms: u64, event: AgentEvent) -> Option<Entry> {
    let (kind, name, text) = match event {
        AgentEvent::Output(text) => (EntryKind::Output, String::new(), text),
        AgentEvent::ToolCall { name, detail } => (EntryKind::ToolCall, name, detail),
        AgentEvent::ToolResult { text, is_error: false } if text.is_empty() => return None,
        AgentEvent::ToolResult { text, is_error: false } => (EntryKind::ToolResult, String::new(), text),
        AgentEvent::ToolResult { text, is_error: true } => (EntryKind::ToolError, String::new(), text),
        AgentEvent::Notice(text) => (EntryKind::Notice, String::new(), text),
        AgentEvent::Retrying { trouble } => {
            (EntryKind::Notice, String::new(), format!("tries again: {trouble}"))
        }
        AgentEvent::Limit { reached: true, .. } => {
            (EntryKind::Notice, String::new(), "its usage limit is reached".to_owned())
        }
        AgentEvent::Limit { .. }
        | AgentEvent::Usage(_)
        | AgentEvent::Model(_)
        | AgentEvent::TurnEnded { .. }
        | AgentEvent::Context { .. }
        | AgentEvent::Session(_) => return None,
    };
    // What is read again was recorded as it came, and is decoded only here.
    let text = redact::text(&text).into_owned();
    Some(Entry { ms, kind, name, text })
}
