//! The events of Claude Code's stream, as far as they are read.

use std::borrow::Cow;
use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::json::Loose;

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct System<'a> {
    #[serde(borrow)]
    pub(super) subtype: Loose<Cow<'a, str>>,
    pub(super) session_id: Loose<Option<String>>,
    pub(super) model: Loose<Option<String>>,
    #[serde(borrow)]
    pub(super) error: Loose<Cow<'a, str>>,
    pub(super) error_status: Loose<Option<u16>>,
    #[serde(borrow)]
    pub(super) fallback_model: Loose<Cow<'a, str>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Assistant<'a> {
    #[serde(borrow)]
    pub(super) message: Message<'a>,
    pub(super) parent_tool_use_id: Loose<Option<String>>,
    pub(super) error: Loose<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Message<'a> {
    pub(super) id: Loose<String>,
    #[serde(borrow)]
    pub(super) content: Loose<Vec<Block<'a>>>,
    pub(super) usage: Loose<Tokens>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Block<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Loose<Cow<'a, str>>,
    pub(super) text: Loose<String>,
    pub(super) name: Loose<String>,
    #[serde(borrow)]
    pub(super) input: Option<&'a RawValue>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub(super) struct Tokens {
    pub(super) input_tokens: u64,
    pub(super) output_tokens: u64,
    pub(super) cache_read_input_tokens: u64,
    pub(super) cache_creation_input_tokens: u64,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct User<'a> {
    #[serde(borrow)]
    pub(super) message: Results<'a>,
    pub(super) parent_tool_use_id: Loose<Option<String>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Results<'a> {
    /// Anything else, such as the prompt, is nothing to show. Most of a stream's bytes are here, so
    /// they are gone through once only.
    #[serde(borrow)]
    pub(super) content: Vec<ToolResult<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ToolResult<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Loose<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) content: Option<&'a RawValue>,
    pub(super) is_error: Loose<bool>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct RateLimitEvent {
    pub(super) rate_limit_info: Loose<RateLimit>,
}

#[derive(Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct RateLimit {
    pub(super) status: String,
    pub(super) resets_at: Loose<Option<i64>>,
}

impl RateLimit {
    pub(super) fn reached(&self) -> bool {
        self.status == "rejected"
    }

    pub(super) fn resets_at(&self) -> Option<Timestamp> {
        self.resets_at.0.and_then(|seconds| Timestamp::from_second(seconds).ok())
    }
}

/// The event that ends a turn of the whole agent.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Outcome {
    pub(super) subtype: Loose<String>,
    pub(super) is_error: Loose<bool>,
    pub(super) api_error_status: Loose<Option<u16>>,
    pub(super) result: Loose<String>,
    pub(super) errors: Loose<Vec<String>>,
    /// Amp's only one.
    pub(super) error: Loose<String>,
    /// The inner one is missing if the model's answer was cut off.
    #[serde(deserialize_with = "said_or_not")]
    pub(super) stop_reason: Option<Option<String>>,
    pub(super) terminal_reason: Loose<String>,
    pub(super) session_id: Loose<Option<String>>,
    pub(super) total_cost_usd: Loose<f64>,
    pub(super) usage: Loose<Tokens>,
    #[serde(rename = "modelUsage")]
    pub(super) model_usage: Loose<BTreeMap<String, ModelUsage>>,
    pub(super) permission_denials: Loose<Vec<Denial>>,
    /// What it answers to, if that is not the prompt.
    pub(super) origin: Loose<Origin>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ModelUsage {
    pub(super) input_tokens: u64,
    pub(super) output_tokens: u64,
    pub(super) cache_read_input_tokens: u64,
    pub(super) cache_creation_input_tokens: u64,
    pub(super) context_window: u64,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Denial {
    pub(super) tool_name: Loose<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Origin {
    pub(super) kind: String,
}

fn said_or_not<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<String>>, D::Error> {
    Loose::deserialize(deserializer).map(|reason| Some(reason.0))
}
