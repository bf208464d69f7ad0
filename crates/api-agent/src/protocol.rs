//! What is sent to a provider and what is made of its stream, as data: nothing here knows a network.

mod chat;
mod messages;

use serde_json::Value;

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

/// The JSON of one event; how much of what is none is shown.
fn parse(data: &str) -> Result<Value, Spoilt> {
    const SHOWN: usize = 120;
    serde_json::from_str(data)
        .map_err(|_| Spoilt::NotJson(data[..data.floor_char_boundary(SHOWN)].to_owned()))
}
