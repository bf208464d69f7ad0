//! An answer in the words of a provider, as data: what is sent in order, before anything is sent.

mod anthropic;
mod chat;
mod gemini;
mod responses;

use serde_json::{Value, json};

use crate::request::Dialect;
use crate::scenario::{HttpError, StreamError, Turn, Usage};

/// What an answer is made of.
#[derive(Clone, Copy)]
pub(crate) struct Answer<'a> {
    pub(crate) turn: &'a Turn,
    pub(crate) usage: Usage,
    pub(crate) model: &'a str,
    /// The number of the request, from which all ids are made.
    pub(crate) number: usize,
}

/// An answer ready to be sent, as a stream or as a whole.
pub(crate) struct Reply {
    pub(crate) opening: Vec<Frame>,
    pub(crate) body: Vec<Frame>,
    /// Says that the answer is complete.
    pub(crate) closing: Vec<Frame>,
    /// A sign of life that says nothing.
    pub(crate) ping: Frame,
    pub(crate) whole: Value,
}

/// One server-sent event.
#[derive(Clone)]
pub(crate) struct Frame {
    event: Option<String>,
    data: String,
}

impl Reply {
    pub(crate) fn new(dialect: Dialect, answer: &Answer<'_>) -> Self {
        match dialect {
            Dialect::Anthropic => anthropic::reply(answer),
            Dialect::Responses => responses::reply(answer),
            Dialect::Chat => chat::reply(answer),
            Dialect::Gemini => gemini::reply(answer),
        }
    }
}

impl Frame {
    /// An event that is named after the type it carries.
    fn typed(data: &Value) -> Self {
        Self { event: data["type"].as_str().map(str::to_owned), data: data.to_string() }
    }

    fn plain(data: &Value) -> Self {
        Self { event: None, data: data.to_string() }
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let name = self.event.as_ref().map(|event| format!("event: {event}\n")).unwrap_or_default();
        format!("{name}data: {}\n\n", self.data).into_bytes()
    }
}

impl Answer<'_> {
    fn id(&self, prefix: &str) -> String {
        format!("{prefix}stub{:06}", self.number)
    }

    /// The id of one of several things in the answer.
    fn part_id(&self, prefix: &str, index: usize) -> String {
        format!("{}{index:02}", self.id(prefix))
    }

    /// The text in the pieces it is streamed in.
    fn pieces(&self) -> Vec<String> {
        const USUAL: usize = 400;
        let characters: Vec<char> = self.turn.text.chars().collect();
        let size = self.turn.chunk.unwrap_or(USUAL).max(1);
        characters.chunks(size).map(|piece| piece.iter().collect()).collect()
    }

    /// All that was read, from the cache or not.
    fn all_input(&self) -> u64 {
        self.usage.input + self.usage.cache_read
    }
}

/// How a provider tells an error instead of an answer.
pub(crate) fn error_body(dialect: Dialect, error: &HttpError) -> Value {
    let HttpError { status, kind, message, headers: _, body } = error;
    if let Some(body) = body {
        return body.clone();
    }
    match dialect {
        Dialect::Anthropic => {
            let kind = kind.as_deref().unwrap_or(match status {
                400 => "invalid_request_error",
                401 => "authentication_error",
                403 => "permission_error",
                404 => "not_found_error",
                413 => "request_too_large",
                429 => "rate_limit_error",
                529 => "overloaded_error",
                _ => "api_error",
            });
            json!({"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_stub"})
        }
        Dialect::Responses | Dialect::Chat => {
            let kind = kind.as_deref();
            json!({"error": {
                "message": message, "type": kind.unwrap_or("server_error"), "code": kind, "param": null}})
        }
        Dialect::Gemini => {
            let kind = kind.as_deref().unwrap_or(match status {
                429 => "RESOURCE_EXHAUSTED",
                503 => "UNAVAILABLE",
                _ => "INTERNAL",
            });
            json!({"error": {"code": status, "message": message, "status": kind}})
        }
    }
}

/// How a provider tells an error inside a stream that began well.
pub(crate) fn error_frame(dialect: Dialect, error: &StreamError, number: usize) -> Frame {
    let StreamError { kind, message } = error;
    match dialect {
        Dialect::Anthropic => {
            Frame::typed(&json!({"type": "error", "error": {"type": kind, "message": message}}))
        }
        Dialect::Responses => responses::failure(kind, message, number),
        Dialect::Chat => Frame::plain(&json!({"error": {"type": kind, "code": kind, "message": message}})),
        Dialect::Gemini => Frame::plain(&json!({"error": {"code": 500, "status": kind, "message": message}})),
    }
}
