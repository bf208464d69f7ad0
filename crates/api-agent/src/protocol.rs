//! What is sent to a provider and what is made of its stream, as data: nothing here knows a network.

mod chat;
mod messages;

use serde_json::{Map, Value};
use wiggum_core::event::Usage;

use crate::answer::{Answer, Spoilt};
use crate::conversation::Conversation;
use crate::provider::Protocol;
use crate::tools::Tool;

/// What is asked of a model.
pub(crate) struct Question<'a> {
    pub(crate) model: &'a str,
    pub(crate) conversation: &'a Conversation,
    pub(crate) tools: &'a [Tool],
}

/// Makes an answer of the events of a stream.
pub(crate) trait Assembly {
    /// Takes in the data of one event. Text for people to read goes to `said` as it comes.
    fn read(&mut self, data: &str, said: &mut dyn FnMut(&str)) -> Result<(), Spoilt>;

    /// Nothing that counts comes after this.
    fn is_over(&self) -> bool;

    /// What the provider has told so far of what this answer uses.
    fn used(&self) -> Option<Usage>;

    /// How many bytes of text the model has written so far.
    fn written(&self) -> usize;

    /// The answer, if it is complete.
    fn finish(self: Box<Self>) -> Result<Answer, Spoilt>;
}

impl Protocol {
    pub(crate) fn body(self, question: &Question<'_>) -> Value {
        match self {
            Self::Chat => chat::body(question),
            Self::Messages => messages::body(question),
        }
    }

    pub(crate) fn key_header(self, key: &str) -> (&'static str, String) {
        match self {
            Self::Chat => ("authorization", format!("Bearer {key}")),
            Self::Messages => ("x-api-key", key.to_owned()),
        }
    }

    pub(crate) fn assembly(self) -> Box<dyn Assembly> {
        match self {
            Self::Chat => Box::new(chat::Assembly::default()),
            Self::Messages => Box::new(messages::Assembly::default()),
        }
    }
}

/// How many bytes of text there are in a part of an answer. A signature is nothing that the model wrote.
fn text_in(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(parts) => parts.iter().map(text_in).sum(),
        Value::Object(fields) => text_in_fields(fields),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

fn text_in_fields(fields: &Map<String, Value>) -> usize {
    const NOT_WRITTEN: [&str; 4] = ["id", "type", "role", "signature"];
    let written = fields.iter().filter(|(key, _)| !NOT_WRITTEN.contains(&key.as_str()));
    written.map(|(_, value)| text_in(value)).sum()
}

/// The JSON of one event; how much of what is none is shown.
fn parse(data: &str) -> Result<Value, Spoilt> {
    const SHOWN: usize = 120;
    serde_json::from_str(data)
        .map_err(|_| Spoilt::NotJson(data[..data.floor_char_boundary(SHOWN)].to_owned()))
}
