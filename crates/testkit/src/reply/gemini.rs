//! Google's `generateContent`.

use serde_json::{Value, json};

use super::{Answer, Frame, Reply};

pub(super) fn reply(answer: &Answer<'_>) -> Reply {
    let finish_reason = answer.turn.stop_reason.as_deref().unwrap_or("STOP");
    let mut parts = Vec::new();
    if !answer.turn.thinking.is_empty() {
        parts.push(json!({"text": answer.turn.thinking, "thought": true}));
    }
    parts.extend(answer.pieces().into_iter().map(|piece| json!({"text": piece})));
    let calls = calls(answer);
    let last = if calls.is_empty() { vec![json!({"text": ""})] } else { calls.clone() };
    let chunk = |parts: &[Value], finish: Option<&str>| content(answer, parts, finish);
    Reply {
        opening: Vec::new(),
        body: parts.iter().map(|part| Frame::plain(&chunk(std::slice::from_ref(part), None))).collect(),
        closing: vec![Frame::plain(&chunk(&last, Some(finish_reason)))],
        ping: Frame::plain(&chunk(&[json!({"text": ""})], None)),
        whole: chunk(&[parts, calls].concat(), Some(finish_reason)),
    }
}

fn content(answer: &Answer<'_>, parts: &[Value], finish: Option<&str>) -> Value {
    let mut candidate = json!({"index": 0, "content": {"role": "model", "parts": parts}});
    if let Some(finish) = finish {
        candidate["finishReason"] = json!(finish);
    }
    json!({
        "candidates": [candidate], "modelVersion": answer.model, "responseId": answer.id(""),
        "usageMetadata": {
            "promptTokenCount": answer.all_input(), "candidatesTokenCount": answer.usage.output,
            "cachedContentTokenCount": answer.usage.cache_read,
            "thoughtsTokenCount": answer.usage.reasoning,
            "totalTokenCount": answer.all_input() + answer.usage.output}})
}

fn calls(answer: &Answer<'_>) -> Vec<Value> {
    let call = |(index, tool): (usize, &crate::scenario::ToolCall)| {
        let call = json!({"id": answer.part_id("fc_", index), "name": tool.name, "args": tool.input});
        json!({"functionCall": call, "thoughtSignature": "c3R1Yg=="})
    };
    answer.turn.tools.iter().enumerate().map(call).collect()
}
