//! Reading agents' streams: how fast on one core, and in how much memory.

use std::hint::black_box;
use std::time::Duration;

use jiff::Zoned;
use serde_json::json;
use wiggum_agents::{AgentSpec, Family, StreamParser};
use wiggum_core::event::Exit;
use wiggum_core::stream::Stream;

use crate::table::Table;
use crate::{Outcome, busy};

const BYTES: usize = 300_000_000;
/// What a pipe holds, and so what arrives at once.
const PORTION: usize = 64 * 1024;
const LINE: usize = 1_000_000_000;

pub(crate) fn measure(table: &mut Table) -> Outcome<()> {
    for (family, turn) in [(Family::Claude, claude_turn()?), (Family::Codex, codex_turn()?)] {
        let (mut reader, mut rest) = (Reader::new(family)?, BYTES);
        while rest > 0 {
            // Many turns in one piece, so that portions end anywhere in a line.
            let piece = turn.repeat(50).into_bytes();
            reader.read(&piece)?;
            rest = rest.saturating_sub(piece.len());
        }
        let name = family.name();
        table.limited(format!("reading 300 MB of {name}'s stream"), reader.spent.as_secs_f64(), "s", 1.0);
        table.limited(format!("memory grown by that ({name})"), reader.grown, "MiB", 32.0);
    }
    let mut reader = Reader::new(Family::Claude)?;
    let piece = vec![b'x'; 10_000_000];
    for _ in 0..LINE / piece.len() {
        reader.read(&piece)?;
    }
    table.limited("memory grown by a line of 1 GB", reader.grown, "MiB", 32.0);
    Ok(())
}

struct Reader {
    parser: Box<dyn StreamParser>,
    spent: Duration,
    before: f64,
    /// The most so far, in MiB.
    grown: f64,
}

impl Reader {
    fn new(family: Family) -> Outcome<Self> {
        let parser = Family::driver(AgentSpec::new(family)).parser();
        Ok(Self { parser, spent: Duration::ZERO, before: resident()?, grown: 0.0 })
    }

    fn read(&mut self, piece: &[u8]) -> Outcome<()> {
        let start = busy()?;
        for portion in piece.chunks(PORTION) {
            black_box(self.parser.push(Stream::Stdout, portion));
        }
        self.spent += busy()? - start;
        self.grown = self.grown.max(resident()? - self.before);
        Ok(())
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        drop(black_box(self.parser.finish(Exit::Code { code: 0 }, &Zoned::default())));
    }
}

/// In MiB.
fn resident() -> Outcome<f64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").parse::<f64>()? / 1024.0)
}

/// Source text, as agents read and write most of the time.
fn source(bytes: usize) -> String {
    let text = include_str!("parse.rs");
    text.chars().cycle().take(bytes).collect()
}

/// The agent says something, reads a file, writes one, and runs the tests.
fn claude_turn() -> Outcome<String> {
    let usage = json!({"input_tokens": 12, "cache_read_input_tokens": 84_000, "output_tokens": 1});
    let assistant = |block: serde_json::Value| {
        json!({
            "type": "assistant",
            "message": {"id": "msg_01", "role": "assistant", "model": "m", "content": [block], "usage": usage},
            "parent_tool_use_id": null, "session_id": "s", "uuid": "u",
        })
    };
    let user = |text: String| {
        json!({
            "type": "user",
            "message": {"role": "user", "content": [
                {"tool_use_id": "toolu_01", "type": "tool_result", "content": text, "is_error": false},
            ]},
            "parent_tool_use_id": null, "tool_use_result": {"stdout": text, "stderr": ""}, "session_id": "s",
        })
    };
    let call = |name: &str, input: serde_json::Value| {
        assistant(json!({"type": "tool_use", "id": "toolu_01", "name": name, "input": input}))
    };
    lines(&[
        assistant(json!({"type": "text", "text": source(400)})),
        call("Read", json!({"file_path": "src/main.rs"})),
        user(source(20_000)),
        call("Write", json!({"file_path": "src/main.rs", "content": source(6_000)})),
        user("The file src/main.rs has been updated successfully.".to_owned()),
        call("Bash", json!({"command": "cargo test", "description": "Run the tests"})),
        user(source(8_000)),
    ])
}

fn codex_turn() -> Outcome<String> {
    let command = |status: &str, output: String| {
        json!({
            "type": format!("item.{status}"),
            "item": {"id": "item_1", "type": "command_execution", "command": "/bin/bash -lc 'cat src/main.rs'",
                     "aggregated_output": output, "exit_code": 0, "status": "completed"},
        })
    };
    lines(&[
        json!({"type": "item.completed", "item": {"id": "item_0", "type": "agent_message", "text": source(400)}}),
        command("started", String::new()),
        command("completed", source(20_000)),
    ])
}

/// One JSON value per line, with the type first, as the agents write it.
fn lines(values: &[serde_json::Value]) -> Outcome<String> {
    let mut text = String::new();
    for value in values {
        let kind = value["type"].as_str().ok_or("no type")?;
        let rest: serde_json::Map<String, serde_json::Value> = value
            .as_object()
            .into_iter()
            .flatten()
            .filter(|(name, _)| *name != "type")
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        let rest = serde_json::to_string(&rest)?;
        text.push_str(&format!("{{\"type\":\"{kind}\",{}\n", &rest[1..]));
    }
    Ok(text)
}
