//! Anthropic's Messages.

use serde_json::{Value, json};

use super::{Answer, Frame, Reply};

/// Stands for what proves a thought to be the model's own.
const SIGNATURE: &str = "c3R1Yg==";

pub(super) fn reply(answer: &Answer<'_>) -> Reply {
    let turn = answer.turn;
    let usual = if turn.tools.is_empty() { "end_turn" } else { "tool_use" };
    let stop_reason = turn.stop_reason.as_deref().unwrap_or(usual);
    let blocks = blocks(answer);
    let usage = usage(answer);
    let mut start = json!({
        "id": answer.id("msg_"), "type": "message", "role": "assistant", "model": answer.model,
        "content": [], "stop_reason": null, "stop_sequence": null, "usage": usage});
    // At its start a message counts one token of output; the true count comes at its end.
    start["usage"]["output_tokens"] = json!(1);
    let mut whole = start.clone();
    whole["content"] = json!(blocks);
    whole["stop_reason"] = json!(stop_reason);
    whole["usage"] = usage.clone();
    let ping = Frame::typed(&json!({"type": "ping"}));
    Reply {
        opening: vec![Frame::typed(&json!({"type": "message_start", "message": start})), ping.clone()],
        body: blocks.iter().enumerate().flat_map(|(index, block)| frames(answer, index, block)).collect(),
        closing: vec![
            Frame::typed(&json!({
                "type": "message_delta", "usage": usage,
                "delta": {"stop_reason": stop_reason, "stop_sequence": null}})),
            Frame::typed(&json!({"type": "message_stop"})),
        ],
        ping,
        whole,
    }
}

fn usage(answer: &Answer<'_>) -> Value {
    let usage = answer.usage;
    json!({
        "input_tokens": usage.input, "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cache_read, "output_tokens": usage.output,
        "service_tier": "standard"})
}

fn blocks(answer: &Answer<'_>) -> Vec<Value> {
    let turn = answer.turn;
    let mut blocks = Vec::new();
    if !turn.thinking.is_empty() {
        blocks.push(json!({"type": "thinking", "thinking": turn.thinking, "signature": SIGNATURE}));
    }
    if !turn.text.is_empty() {
        blocks.push(json!({"type": "text", "text": turn.text}));
    }
    for (index, tool) in turn.tools.iter().enumerate() {
        let id = answer.part_id("toolu_", index);
        blocks.push(json!({"type": "tool_use", "id": id, "name": tool.name, "input": tool.input}));
    }
    blocks
}

fn frames(answer: &Answer<'_>, index: usize, block: &Value) -> Vec<Frame> {
    let mut empty = block.clone();
    let deltas: Vec<Value> = match block["type"].as_str() {
        Some("text") => {
            empty["text"] = json!("");
            let pieces = answer.pieces().into_iter();
            pieces.map(|piece| json!({"type": "text_delta", "text": piece})).collect()
        }
        Some("thinking") => {
            (empty["thinking"], empty["signature"]) = (json!(""), json!(""));
            vec![
                json!({"type": "thinking_delta", "thinking": block["thinking"]}),
                json!({"type": "signature_delta", "signature": SIGNATURE}),
            ]
        }
        _ => {
            empty["input"] = json!({});
            let input = block["input"].to_string();
            let middle = (input.len() / 2..).find(|at| input.is_char_boundary(*at)).unwrap_or_default();
            let (first, second) = input.split_at(middle);
            let delta = |text| json!({"type": "input_json_delta", "partial_json": text});
            vec![delta(first), delta(second)]
        }
    };
    let start = json!({"type": "content_block_start", "index": index, "content_block": empty});
    let mut frames = vec![Frame::typed(&start)];
    frames.extend(
        deltas.iter().map(|delta| {
            Frame::typed(&json!({"type": "content_block_delta", "index": index, "delta": delta}))
        }),
    );
    frames.push(Frame::typed(&json!({"type": "content_block_stop", "index": index})));
    frames
}
