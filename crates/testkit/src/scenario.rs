//! What the stub says to whom: turns in order, each with the guard that lets it be taken and the
//! fault that spoils it. Written in Rust, or as a file in JSON.
//!
//! In texts and tool calls `${last}` stands for the last thing the user said, `${n}` for the number
//! of the request and `${cwd}` for the directory the agent says it works in.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Scenario {
    /// What a turn uses that does not say.
    pub usage: Usage,
    /// The answer to requests that offer no tools: titles, summaries and the like.
    pub side: Turn,
    /// Those requests take turns as any other.
    pub side_takes_turns: bool,
    /// The answer when no turn is left that fits.
    pub fallback: Turn,
    /// Every session of an agent gets all turns for itself.
    pub per_session: bool,
    pub turns: Vec<Turn>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Usage {
    /// Neither read from the cache nor written to it.
    pub input: u64,
    pub output: u64,
    pub cache_read: u64,
    pub cache_write: u64,
    /// The part of the output that was thought.
    pub reasoning: u64,
}

/// One answer of the model.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Turn {
    /// A turn that does not fit the request is passed over and stays available.
    pub when: Option<When>,
    pub repeat: Repeat,
    pub thinking: String,
    pub text: String,
    /// Called at once, in parallel.
    pub tools: Vec<ToolCall>,
    pub usage: Option<Usage>,
    /// In the words of the provider that is spoken; by default what fits the rest.
    pub stop_reason: Option<String>,
    /// Seconds before anything is sent.
    pub delay: f64,
    /// Characters of text in one event of the stream.
    pub chunk: Option<usize>,
    /// Seconds between two events of the stream.
    pub chunk_delay: f64,
    pub headers: BTreeMap<String, String>,
    pub fault: Option<Fault>,
}

/// A regular expression, and what of the request it must match.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// The last thing the user said.
    Last(String),
    /// The first thing the user said.
    First(String),
    /// Any of it.
    Anywhere(String),
    System(String),
    Model(String),
    /// The last result of a tool.
    ToolResult(String),
}

/// How many requests may take a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Repeat {
    Forever,
    #[serde(untagged)]
    Times(usize),
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolCall {
    pub name: String,
    #[serde(default)]
    pub input: Value,
    /// Plain text instead of JSON, for tools such as Codex's `apply_patch`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// What goes wrong with an answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// Another status than 200.
    Http(HttpError),
    /// A 200 whose stream tells an error.
    Stream(StreamError),
    /// The connection is cut.
    Cut(Cut),
    /// Nothing is sent any more, with the connection open.
    Hang(Hang),
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HttpError {
    pub status: u16,
    /// The provider's word for it; by default what fits the status.
    #[serde(default)]
    pub kind: Option<String>,
    #[serde(default)]
    pub message: String,
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// Sent as it is, instead of what the provider would send.
    #[serde(default)]
    pub body: Option<Value>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamError {
    pub kind: String,
    pub message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cut {
    /// Reset before a byte is sent.
    Before,
    /// Reset after the head of the answer.
    Head,
    /// Closed in the middle of the answer. Not reset: that would take back, or not, what was sent.
    Middle,
    /// The answer ends as if nothing were wrong, without the event that says it is complete.
    End,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hang {
    pub seconds: f64,
    /// In the middle of the stream rather than before it.
    #[serde(default)]
    pub midway: bool,
    /// Seconds between signs of life that say nothing; without any it is silent.
    #[serde(default)]
    pub ping: Option<f64>,
}

impl Default for Scenario {
    fn default() -> Self {
        Self {
            usage: Usage::default(),
            side: Turn::says("ok"),
            side_takes_turns: false,
            fallback: Turn::says("stub: no turn is left"),
            per_session: false,
            turns: Vec::new(),
        }
    }
}

impl Scenario {
    #[must_use]
    pub fn usage(self, usage: Usage) -> Self {
        Self { usage, ..self }
    }

    #[must_use]
    pub fn per_session(self) -> Self {
        Self { per_session: true, ..self }
    }

    #[must_use]
    pub fn fallback(self, fallback: Turn) -> Self {
        Self { fallback, ..self }
    }
}

impl<const N: usize> From<[Turn; N]> for Scenario {
    fn from(turns: [Turn; N]) -> Self {
        Self { turns: turns.into(), ..Self::default() }
    }
}

impl Default for Usage {
    fn default() -> Self {
        Self { input: 1200, output: 40, cache_read: 0, cache_write: 0, reasoning: 0 }
    }
}

impl Default for Repeat {
    fn default() -> Self {
        Self::Times(1)
    }
}

impl Turn {
    pub fn says(text: &str) -> Self {
        Self { text: text.to_owned(), ..Self::default() }
    }

    pub fn calls(tool: &str, input: Value) -> Self {
        Self::default().and_calls(tool, input)
    }

    pub fn fails(error: HttpError) -> Self {
        Self { fault: Some(Fault::Http(error)), ..Self::default() }
    }

    #[must_use]
    pub fn and_calls(mut self, tool: &str, input: Value) -> Self {
        self.tools.push(ToolCall { name: tool.to_owned(), input, text: None });
        self
    }

    /// A tool that takes plain text.
    #[must_use]
    pub fn and_tells(mut self, tool: &str, text: &str) -> Self {
        self.tools.push(ToolCall { name: tool.to_owned(), input: Value::Null, text: Some(text.to_owned()) });
        self
    }

    #[must_use]
    pub fn thinking(self, thought: &str) -> Self {
        Self { thinking: thought.to_owned(), ..self }
    }

    #[must_use]
    pub fn when(self, when: When) -> Self {
        Self { when: Some(when), ..self }
    }

    #[must_use]
    pub fn times(self, times: usize) -> Self {
        Self { repeat: Repeat::Times(times), ..self }
    }

    #[must_use]
    pub fn forever(self) -> Self {
        Self { repeat: Repeat::Forever, ..self }
    }

    #[must_use]
    pub fn uses(self, usage: Usage) -> Self {
        Self { usage: Some(usage), ..self }
    }

    #[must_use]
    pub fn stops_for(self, reason: &str) -> Self {
        Self { stop_reason: Some(reason.to_owned()), ..self }
    }

    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.insert(name.to_owned(), value.to_owned());
        self
    }

    #[must_use]
    pub fn after(self, delay: Duration) -> Self {
        Self { delay: delay.as_secs_f64(), ..self }
    }

    /// In pieces of so many characters, with a pause after each.
    #[must_use]
    pub fn in_pieces(self, chunk: usize, pause: Duration) -> Self {
        Self { chunk: Some(chunk), chunk_delay: pause.as_secs_f64(), ..self }
    }

    #[must_use]
    pub fn with_error(self, kind: &str, message: &str) -> Self {
        let error = StreamError { kind: kind.to_owned(), message: message.to_owned() };
        Self { fault: Some(Fault::Stream(error)), ..self }
    }

    #[must_use]
    pub fn cut(self, at: Cut) -> Self {
        Self { fault: Some(Fault::Cut(at)), ..self }
    }

    /// Silent before the answer, until the stub ends.
    #[must_use]
    pub fn hangs(self) -> Self {
        self.hanging(false)
    }

    /// Silent in the middle of the answer, until the stub ends.
    #[must_use]
    pub fn hangs_midway(self) -> Self {
        self.hanging(true)
    }

    fn hanging(self, midway: bool) -> Self {
        let hang = Hang { seconds: f64::from(u32::MAX), midway, ping: None };
        Self { fault: Some(Fault::Hang(hang)), ..self }
    }
}

impl HttpError {
    pub fn new(status: u16, message: &str) -> Self {
        let message = message.to_owned();
        Self { status, kind: None, message, headers: BTreeMap::new(), body: None }
    }

    #[must_use]
    pub fn kind(self, kind: &str) -> Self {
        Self { kind: Some(kind.to_owned()), ..self }
    }

    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.insert(name.to_owned(), value.to_owned());
        self
    }

    #[must_use]
    pub fn body(self, body: Value) -> Self {
        Self { body: Some(body), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::{Fault, Repeat, Scenario, When};

    #[test]
    fn a_scenario_is_read_from_json() {
        let text = r#"{ "usage": {"cache_read": 800}, "turns": [
            {"when": {"last": "hello"}, "text": "hi", "tools": [{"name": "Bash", "input": {"command": "ls"}}]},
            {"repeat": 3, "fault": {"http": {"status": 529, "message": "Overloaded"}}},
            {"repeat": "forever", "text": "half", "fault": {"cut": "end"}} ] }"#;
        let scenario: Scenario = serde_json::from_str(text).unwrap();
        assert_eq!((scenario.usage.input, scenario.usage.cache_read), (1200, 800));
        assert!(matches!(&scenario.turns[0].when, Some(When::Last(pattern)) if pattern == "hello"));
        assert_eq!(scenario.turns[1].repeat, Repeat::Times(3));
        assert_eq!(scenario.turns[2].repeat, Repeat::Forever);
        assert!(matches!(&scenario.turns[1].fault, Some(Fault::Http(error)) if error.status == 529));
    }

    #[test]
    fn a_misspelt_key_is_refused() {
        assert!(serde_json::from_str::<Scenario>(r#"{"turns": [{"txt": "hi"}]}"#).is_err());
    }
}
