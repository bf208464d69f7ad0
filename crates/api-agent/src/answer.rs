//! An answer of a model, whoever gave it, and how pieces of JSON become a whole.

use serde_json::{Map, Value};
use thiserror::Error;
use wiggum_core::event::Usage;

/// What a model answered.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Answer {
    /// To be sent back as it is, with fields we know nothing of.
    pub(crate) message: Value,
    pub(crate) text: String,
    pub(crate) calls: Vec<ToolCall>,
    pub(crate) stop: Stop,
    pub(crate) usage: Option<Usage>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ToolCall {
    pub(crate) id: String,
    pub(crate) name: String,
    /// The model's own words, which should be JSON.
    pub(crate) arguments: String,
}

/// Why a model stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Stop {
    #[default]
    Done,
    /// At the limit on the length of an answer.
    Length,
    Refused,
    /// At the end of its context.
    ContextFull,
}

impl Answer {
    /// Has nothing that could be sent back.
    pub(crate) fn is_empty(&self) -> bool {
        let content = &self.message["content"];
        let said = content.as_str().is_some_and(|text| !text.is_empty())
            || content.as_array().is_some_and(|blocks| !blocks.is_empty());
        !said && self.calls.is_empty()
    }
}

/// Why there is no answer although the provider began one.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum Spoilt {
    #[error("{message}")]
    Error { kind: String, message: String },
    #[error("the provider sent what is not JSON: {0}")]
    NotJson(String),
    #[error("the provider's answer ends before it is complete")]
    Incomplete,
}

impl Spoilt {
    /// Of the `error` that providers put into a stream instead of an answer.
    pub(crate) fn of(error: &Value) -> Self {
        let part = |name: &str| error[name].as_str().filter(|text| !text.is_empty());
        let kind = part("code").or_else(|| part("type")).unwrap_or_default().to_owned();
        let message = part("message").or(error.as_str()).unwrap_or(&kind).to_owned();
        Self::Error { kind, message }
    }
}

/// Parts that come whole, and may come again.
const WHOLE: [&str; 5] = ["role", "id", "type", "name", "index"];

/// Adds a piece of a streamed object to what came before: texts are continued, all else is taken over,
/// whether we know the field or not.
pub(crate) fn merge(whole: &mut Map<String, Value>, piece: &Map<String, Value>) {
    for (key, value) in piece {
        match (whole.get_mut(key), value) {
            (Some(Value::String(before)), Value::String(more)) if !WHOLE.contains(&key.as_str()) => {
                before.push_str(more);
            }
            (Some(Value::String(before)), Value::String(more)) if more.is_empty() && !before.is_empty() => {}
            (Some(Value::Object(before)), Value::Object(more)) => merge(before, more),
            (Some(Value::Array(before)), Value::Array(more)) => before.extend(more.iter().cloned()),
            (Some(_), Value::Null) => {}
            (Some(before), value) => *before = value.clone(),
            (None, value) => drop(whole.insert(key.clone(), value.clone())),
        }
    }
}

/// The text of a field, if it has one.
pub(crate) fn text(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_default().to_owned()
}

/// The number in a field, if it has one.
pub(crate) fn number(value: &Value, key: &str) -> Option<u64> {
    value[key].as_u64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn merged(pieces: &[Value]) -> Value {
        let mut whole = Map::new();
        for piece in pieces {
            merge(&mut whole, piece.as_object().unwrap());
        }
        Value::Object(whole)
    }

    #[test]
    fn texts_are_continued_and_everything_else_is_kept() {
        let pieces = [
            json!({"role": "assistant", "content": null, "odd": {"a": "x"}}),
            json!({"role": "assistant", "content": "Hel", "reasoning_content": "hm"}),
            json!({"content": "lo", "reasoning_content": "m", "odd": {"a": "y", "b": 1}, "role": ""}),
            json!({"content": null}),
        ];
        let expected = json!({
            "role": "assistant", "content": "Hello", "reasoning_content": "hmm", "odd": {"a": "xy", "b": 1}});
        assert_eq!(merged(&pieces), expected);
    }

    #[test]
    fn errors_are_told_in_the_words_they_have() {
        let check = |error: Value, kind: &str, message: &str| {
            let expected = Spoilt::Error { kind: kind.to_owned(), message: message.to_owned() };
            assert_eq!(Spoilt::of(&error), expected, "{error}");
        };
        check(json!({"type": "overloaded_error", "message": "Overloaded"}), "overloaded_error", "Overloaded");
        check(json!({"type": "a", "code": "b"}), "b", "b");
        check(json!("just words"), "", "just words");
        check(json!(null), "", "");
    }
}
