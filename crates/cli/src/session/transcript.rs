//! An agent's own transcript, read from its end: it may be hundreds of megabytes long, and only the
//! last lines matter.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use serde::Deserialize;
use wiggum_workspace::beneath::{self, Links};

/// The most that is looked at.
const MOST: u64 = 4 * 1024 * 1024;
/// Read at once; the last message is nearly always within.
const FIRST: u64 = 64 * 1024;

pub(crate) struct Transcript {
    file: File,
    pub(crate) length: u64,
}

impl Transcript {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = beneath::open_plain(path, Links::Refuse)?;
        let length = file.metadata()?.len();
        Ok(Self { file, length })
    }

    /// Was a tool called after this length? Text that only speaks of it has its quotes escaped.
    pub(crate) fn used_tools_since(&mut self, length: u64) -> io::Result<bool> {
        let from = length.max(self.length.saturating_sub(MOST));
        let text = self.read_from(from)?;
        Ok(TOOL_USES.iter().any(|mark| text.contains(mark)))
    }

    /// The last message of the agent itself, not of its sub-agents.
    pub(crate) fn last_message(&mut self) -> io::Result<Option<String>> {
        self.last(message_of)
    }

    /// Why the last turn failed, in the agent's words, if it did.
    pub(crate) fn failure(&mut self) -> io::Result<Option<String>> {
        Ok(self.last(end_of_turn)?.flatten())
    }

    /// What is found in the last line in which something is found.
    fn last<T>(&mut self, find: impl Fn(&str) -> Option<T>) -> io::Result<Option<T>> {
        let mut amount = FIRST;
        loop {
            let from = self.length.saturating_sub(amount);
            let text = self.read_from(from)?;
            // The first line is cut unless it begins the file.
            let whole = if from == 0 { &text } else { text.split_once('\n').map_or("", |(_, rest)| rest) };
            if let Some(found) = whole.lines().rev().find_map(&find) {
                return Ok(Some(found));
            }
            if from == 0 || amount >= MOST {
                return Ok(None);
            }
            amount = (amount * 8).min(MOST);
        }
    }

    fn read_from(&mut self, from: u64) -> io::Result<String> {
        self.file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        self.file.by_ref().take(MOST).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// As Claude Code writes it, then as Codex does.
const TOOL_USES: [&str; 3] =
    [r#""type":"tool_use""#, r#""type":"function_call""#, r#""type":"custom_tool_call""#];

/// A line that begins or ends a turn: the failure it tells of, or none.
fn end_of_turn(line: &str) -> Option<Option<String>> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Turn {
        #[serde(default, rename = "type")]
        kind: String,
        #[serde(default)]
        is_sidechain: bool,
        #[serde(default)]
        is_api_error_message: bool,
        payload: Option<Payload>,
    }
    #[derive(Deserialize)]
    struct Payload {
        #[serde(default, rename = "type")]
        kind: String,
        error: Option<Failure>,
    }
    #[derive(Deserialize)]
    struct Failure {
        #[serde(default)]
        message: String,
    }
    let turn: Turn = serde_json::from_str(line).ok()?;
    match turn.kind.as_str() {
        "assistant" | "user" if turn.is_sidechain => None,
        "assistant" if turn.is_api_error_message => Some(message_of(line)),
        "assistant" | "user" => Some(None),
        "event_msg" => {
            let payload = turn.payload?;
            match payload.kind.as_str() {
                "task_complete" => Some(payload.error.map(|failure| failure.message)),
                "task_started" | "user_message" => Some(None),
                _ => None,
            }
        }
        _ => None,
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    #[serde(default, rename = "type")]
    kind: String,
    #[serde(default)]
    is_sidechain: bool,
    message: Option<Message>,
    payload: Option<Message>,
}

#[derive(Deserialize)]
struct Message {
    #[serde(default)]
    role: String,
    #[serde(default)]
    content: Vec<Block>,
}

#[derive(Deserialize)]
struct Block {
    #[serde(default, rename = "type")]
    kind: String,
    #[serde(default)]
    text: String,
}

fn message_of(line: &str) -> Option<String> {
    // Most lines need no parsing to be passed over.
    if !line.contains(r#""assistant""#) {
        return None;
    }
    let line: Line = serde_json::from_str(line).ok()?;
    let message = match line.kind.as_str() {
        "assistant" if !line.is_sidechain => line.message?,
        "response_item" => line.payload.filter(|payload| payload.role == "assistant")?,
        _ => return None,
    };
    let texts = message.content.iter().filter(|block| matches!(block.kind.as_str(), "text" | "output_text"));
    let text: Vec<&str> = texts.map(|block| block.text.as_str()).collect();
    let text = text.join("\n");
    (!text.trim().is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transcript(lines: &[&str]) -> (tempfile::TempDir, Transcript) {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("t.jsonl");
        std::fs::write(&path, lines.join("\n") + "\n").unwrap();
        let transcript = Transcript::open(&path).unwrap();
        (base, transcript)
    }

    const OWN: &str = r#"{"type":"assistant","isSidechain":false,"message":{"role":"assistant","content":[{"type":"text","text":"own"}]}}"#;
    const TOOL: &str = r#"{"type":"assistant","message":{"role":"assistant","content":[{"type":"tool_use","name":"Bash"}]}}"#;
    const SIDE: &str = r#"{"type":"assistant","isSidechain":true,"message":{"role":"assistant","content":[{"type":"text","text":"side"}]}}"#;

    #[test]
    fn the_last_message_is_the_agents_own() {
        let codex = r#"{"type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"codex"}]}}"#;
        let user = r#"{"type":"user","message":{"role":"user","content":"say \"assistant\""}}"#;
        let check = |lines: &[&str], expected: Option<&str>| {
            let (_base, mut transcript) = transcript(lines);
            assert_eq!(transcript.last_message().unwrap().as_deref(), expected, "{lines:?}");
        };
        check(&[OWN, SIDE, user, "not json \"assistant\"", "{\"type\":\"last-prompt\"}"], Some("own"));
        check(&[OWN, TOOL], Some("own"));
        check(&[codex, user], Some("codex"));
        check(&[SIDE], None);
        check(&[], None);
    }

    #[test]
    fn the_failure_of_the_last_turn_is_found() {
        let check = |lines: &[&str], expected: Option<&str>| {
            let (_base, mut transcript) = transcript(lines);
            assert_eq!(transcript.failure().unwrap().as_deref(), expected, "{lines:?}");
        };
        let limit = r#"{"type":"assistant","isApiErrorMessage":true,"error":"rate_limit","message":{"role":"assistant","content":[{"type":"text","text":"You've hit your limit"}]}}"#;
        let user = r#"{"type":"user","message":{"role":"user","content":"go on"}}"#;
        let prompt = r#"{"type":"last-prompt","lastPrompt":"x"}"#;
        check(&[OWN, limit, prompt], Some("You've hit your limit"));
        check(&[limit, SIDE], Some("You've hit your limit"));
        check(&[limit, user], None);
        check(&[limit, user, OWN], None);
        let failed =
            r#"{"type":"event_msg","payload":{"type":"task_complete","error":{"message":"at capacity"}}}"#;
        let fine = r#"{"type":"event_msg","payload":{"type":"task_complete","last_agent_message":"x"}}"#;
        let started = r#"{"type":"event_msg","payload":{"type":"task_started"}}"#;
        let count = r#"{"type":"event_msg","payload":{"type":"token_count","info":null}}"#;
        check(&[started, failed, count], Some("at capacity"));
        check(&[failed, started, count], None);
        check(&[failed, started, fine], None);
        check(&["{", "", "null", "[]"], None);
    }

    #[test]
    fn a_message_before_much_noise_is_found() {
        let noise = format!(r#"{{"type":"progress","data":"{}"}}"#, "x".repeat(200_000));
        let (_base, mut transcript) = transcript(&[OWN, &noise, &noise]);
        assert_eq!(transcript.last_message().unwrap().as_deref(), Some("own"));
    }

    #[test]
    fn tools_count_only_after_the_last_stop() {
        let (_base, mut transcript) = transcript(&[TOOL, OWN]);
        assert!(transcript.used_tools_since(0).unwrap());
        assert!(!transcript.used_tools_since(TOOL.len() as u64).unwrap());
        let quoted = serde_json::json!({"type":"user","text":TOOL}).to_string();
        let (_base, mut transcript) = self::transcript(&[&quoted]);
        assert!(!transcript.used_tools_since(0).unwrap());
    }
}
