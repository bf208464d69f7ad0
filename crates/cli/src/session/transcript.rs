//! An agent's own transcript, read from its end: it may be hundreds of megabytes long, and only the
//! last lines matter.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use serde::Deserialize;

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
        // Whoever names a pipe or a device here would have us wait for ever, even to open it.
        let metadata = fs::metadata(path)?;
        if !metadata.is_file() {
            return Err(io::Error::other("not a file"));
        }
        Ok(Self { file: File::open(path)?, length: metadata.len() })
    }

    /// Was a tool called after this length? Text that only speaks of it has its quotes escaped.
    pub(crate) fn used_tools_since(&mut self, length: u64) -> io::Result<bool> {
        let from = length.max(self.length.saturating_sub(MOST));
        let text = self.read_from(from)?;
        Ok(TOOL_USES.iter().any(|mark| text.contains(mark)))
    }

    /// The last message of the agent itself, not of its sub-agents.
    pub(crate) fn last_message(&mut self) -> io::Result<Option<String>> {
        let mut amount = FIRST;
        loop {
            let from = self.length.saturating_sub(amount);
            let text = self.read_from(from)?;
            // The first line is cut unless it begins the file.
            let whole = if from == 0 { &text } else { text.split_once('\n').map_or("", |(_, rest)| rest) };
            if let Some(message) = whole.lines().rev().find_map(message_of) {
                return Ok(Some(message));
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
