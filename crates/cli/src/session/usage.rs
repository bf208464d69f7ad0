//! What a session used, from the transcript that its agent writes: one figure for each answer of a
//! model, since the loop began.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use wiggum_core::event::Usage;
use wiggum_core::price::{self, Prices};
use wiggum_workspace::beneath::{self, Links};

use super::state::Session;

/// More than any session writes; what lies behind it is not looked at.
const MOST: u64 = 1024 * 1024 * 1024;

/// Agents write whole files into one line, and no more than models can take.
const LONGEST_LINE: u64 = 64 * 1024 * 1024;

/// What was used of one model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct ModelUsage {
    #[serde(flatten)]
    pub(crate) usage: Usage,
    pub(crate) calls: u32,
}

/// By the names of models.
pub(crate) type Used = BTreeMap<String, ModelUsage>;

/// Nothing where the agent tells no figures.
pub(crate) fn of(session: &Session, prices: &BTreeMap<String, Prices>) -> io::Result<Used> {
    let Some(path) = &session.transcript else { return Ok(Used::new()) };
    let mut reader = Reader { since: session.started_at, ..Reader::default() };
    reader.read(path, session.transcript_start)?;
    for path in sub_agents(path) {
        reader.read(&path, 0)?;
    }
    Ok(reader.used(prices))
}

/// Claude Code writes what its sub-agents do into files of their own.
fn sub_agents(transcript: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(transcript.with_extension("").join("subagents"));
    let paths = entries.into_iter().flatten().flatten().map(|entry| entry.path());
    paths.filter(|path| path.extension().is_some_and(|ending| ending == "jsonl")).collect()
}

#[derive(Default)]
struct Reader {
    since: Timestamp,
    /// Answers by their id: Claude Code writes a line for each part of one, with the same figures.
    answers: BTreeMap<String, (String, Usage)>,
    /// The model of the turn, and what Codex says was used in all: it says so again now and then.
    model: String,
    total: Option<CodexUsage>,
    codex: Used,
}

impl Reader {
    fn read(&mut self, path: &Path, from: u64) -> io::Result<()> {
        let mut file = beneath::open_plain(path, Links::Refuse)?;
        // A shorter one is another one.
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(if from <= length { from } else { 0 }))?;
        let mut lines = BufReader::new(file.take(MOST));
        let mut line = Vec::new();
        while lines.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line)? > 0 {
            // The rest of a line that is longer is no line of an agent, and passed over as such.
            self.line(&String::from_utf8_lossy(&line));
            line.clear();
        }
        Ok(())
    }

    fn line(&mut self, line: &str) {
        // Most lines need no parsing to be passed over.
        if !["\"usage\"", "\"token_count\"", "\"turn_context\""].iter().any(|mark| line.contains(mark)) {
            return;
        }
        let Ok(line) = serde_json::from_str::<Line>(line) else { return };
        if line.timestamp.is_some_and(|at| at < self.since) {
            return;
        }
        match (line.kind.as_str(), line.message, line.payload) {
            ("assistant", Some(message), _) => self.answer(message, line.cost_usd),
            ("turn_context", _, Some(payload)) => self.model = payload.model.unwrap_or_default(),
            ("event_msg", _, Some(payload)) => self.token_count(payload),
            _ => {}
        }
    }

    fn answer(&mut self, message: Message, cost: Option<f64>) {
        let (Some(id), Some(model), Some(told)) = (message.id, message.model, message.usage) else { return };
        // A message that Claude Code has made itself.
        if model == "<synthetic>" {
            return;
        }
        let usage = Usage {
            input_tokens: told.input_tokens,
            output_tokens: told.output_tokens,
            cache_read_tokens: told.cache_read_input_tokens,
            cache_write_tokens: told.cache_creation_input_tokens,
            cost_usd: cost.unwrap_or(0.0),
        };
        self.answers.insert(id, (model, usage));
    }

    fn token_count(&mut self, payload: Payload) {
        let Some(info) = payload.info.filter(|_| payload.kind == "token_count") else { return };
        if self.total.replace(info.total_token_usage) == Some(info.total_token_usage) {
            return;
        }
        let told = info.last_token_usage;
        let usage = Usage {
            input_tokens: told.input_tokens.saturating_sub(told.cached_input_tokens),
            output_tokens: told.output_tokens,
            cache_read_tokens: told.cached_input_tokens,
            cache_write_tokens: told.cache_write_input_tokens,
            ..Usage::default()
        };
        let model = if self.model.is_empty() { "codex" } else { &self.model };
        self.codex.entry(model.to_owned()).or_default().add(usage);
    }

    fn used(self, prices: &BTreeMap<String, Prices>) -> Used {
        let mut used = self.codex;
        for (model, usage) in self.answers.into_values() {
            used.entry(model).or_default().add(usage);
        }
        for (model, used) in &mut used {
            used.usage = used.usage.priced(price::find(prices, model).as_ref());
        }
        used
    }
}

impl ModelUsage {
    pub(crate) fn add(&mut self, usage: Usage) {
        self.usage += usage;
        self.calls += 1;
    }
}

#[derive(Deserialize)]
struct Line {
    #[serde(default, rename = "type")]
    kind: String,
    timestamp: Option<Timestamp>,
    message: Option<Message>,
    payload: Option<Payload>,
    /// Only from earlier versions of Claude Code.
    #[serde(rename = "costUSD")]
    cost_usd: Option<f64>,
}

#[derive(Deserialize)]
struct Message {
    id: Option<String>,
    model: Option<String>,
    usage: Option<ClaudeUsage>,
}

#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
struct ClaudeUsage {
    input_tokens: u64,
    output_tokens: u64,
    cache_read_input_tokens: u64,
    cache_creation_input_tokens: u64,
}

#[derive(Deserialize)]
struct Payload {
    #[serde(default, rename = "type")]
    kind: String,
    model: Option<String>,
    info: Option<Info>,
}

#[derive(Deserialize)]
struct Info {
    total_token_usage: CodexUsage,
    last_token_usage: CodexUsage,
}

/// What was read from a cache is part of the input.
#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct CodexUsage {
    input_tokens: u64,
    cached_input_tokens: u64,
    cache_write_input_tokens: u64,
    output_tokens: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &[&str]) -> Used {
        let mut reader = Reader { since: "2026-01-01T00:00:00Z".parse().unwrap(), ..Reader::default() };
        lines.iter().for_each(|line| reader.line(line));
        let prices = Prices { input: 3.0, output: 15.0, cache_read: 0.3, cache_write: 4.0 };
        reader.used(&BTreeMap::from([("claude-x".to_owned(), prices)]))
    }

    fn claude(id: &str, at: &str) -> String {
        format!(
            r#"{{"type":"assistant","timestamp":"{at}","message":{{"id":"{id}","model":"claude-x","usage":{{"input_tokens":1000000,"output_tokens":100000}}}}}}"#
        )
    }

    #[test]
    fn an_answer_counts_once_and_since_the_loop_began() {
        let (first, again) = (claude("m1", "2026-01-02T00:00:00Z"), claude("m1", "2026-01-02T00:00:01Z"));
        let (second, before) = (claude("m2", "2026-01-02T00:00:00Z"), claude("m0", "2025-12-31T00:00:00Z"));
        let made =
            r#"{"type":"assistant","message":{"id":"s","model":"<synthetic>","usage":{"input_tokens":9}}}"#;
        let said = r#"{"type":"user","message":{"role":"user","content":"\"usage\""}}"#;
        let used = read(&[&first, &again, &second, &before, made, said, "{\"usage\"", "null \"usage\""]);
        assert_eq!(used.len(), 1, "{used:?}");
        let one = used["claude-x"];
        assert_eq!((one.calls, one.usage.input_tokens, one.usage.output_tokens), (2, 2_000_000, 200_000));
        assert_eq!(one.usage.cost_usd, 9.0);
    }

    #[test]
    fn codex_says_the_same_figures_more_than_once() {
        let count = |total: u64, last: u64| {
            format!(
                r#"{{"type":"event_msg","payload":{{"type":"token_count","info":{{"total_token_usage":{{"input_tokens":{total}}},"last_token_usage":{{"input_tokens":{last},"cached_input_tokens":800,"output_tokens":40}}}}}}}}"#
            )
        };
        let turn = r#"{"type":"turn_context","payload":{"model":"gpt-5.5"}}"#;
        let empty = r#"{"type":"event_msg","payload":{"type":"token_count","info":null}}"#;
        let used = read(&[turn, &count(2000, 2000), &count(2000, 2000), empty, &count(4000, 2000)]);
        let one = used["gpt-5.5"];
        assert_eq!((one.calls, one.usage.input_tokens, one.usage.cache_read_tokens), (2, 2400, 1600));
    }

    #[test]
    fn the_table_of_this_program_has_the_prices_that_nobody_set() {
        let named = |model: &str| claude("m1", "2026-01-02T00:00:00Z").replace("claude-x", model);
        let cost = |model: &str| read(&[&named(model)])[model].usage;
        // A million tokens of input and a tenth of that of output, also under a name with a date.
        assert_eq!(cost("claude-opus-4-5-20251101").cost_usd, 7.5);
        assert_eq!(cost("claude-x").cost_usd, 4.5, "the user's own price wins");
        assert!(cost("unheard-of").is_unpriced(), "no price is guessed");
    }
}
