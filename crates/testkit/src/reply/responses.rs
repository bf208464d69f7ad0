//! OpenAI's Responses.

use serde_json::{Value, json};

use super::{Answer, Frame, Reply};

pub(super) fn reply(answer: &Answer<'_>) -> Reply {
    let items = items(answer);
    let started = response(&answer.id("resp_"), answer.model);
    let mut whole = started.clone();
    whole["status"] = json!("completed");
    whole["output"] = json!(items);
    whole["usage"] = usage(answer);
    let progress = Frame::typed(&json!({"type": "response.in_progress", "response": started}));
    let created = Frame::typed(&json!({"type": "response.created", "response": started}));
    Reply {
        opening: vec![created, progress.clone()],
        body: items.iter().enumerate().flat_map(|(index, item)| frames(answer, index, item)).collect(),
        closing: vec![Frame::typed(&json!({"type": "response.completed", "response": whole}))],
        ping: progress,
        whole,
    }
}

/// A response that failed after it had begun.
pub(super) fn failure(code: &str, message: &str, number: usize) -> Frame {
    let mut response = response(&format!("resp_stub{number:06}"), "");
    response["status"] = json!("failed");
    response["error"] = json!({"code": code, "message": message});
    Frame::typed(&json!({"type": "response.failed", "response": response}))
}

fn response(id: &str, model: &str) -> Value {
    json!({
        "id": id, "object": "response", "created_at": 0, "model": model, "status": "in_progress",
        "output": [], "parallel_tool_calls": true, "tools": [], "error": null, "usage": null})
}

fn usage(answer: &Answer<'_>) -> Value {
    let usage = answer.usage;
    json!({
        "input_tokens": answer.all_input(), "input_tokens_details": {"cached_tokens": usage.cache_read},
        "output_tokens": usage.output, "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": answer.all_input() + usage.output})
}

fn items(answer: &Answer<'_>) -> Vec<Value> {
    let turn = answer.turn;
    let mut items = Vec::new();
    if !turn.thinking.is_empty() {
        items.push(json!({
            "type": "reasoning", "id": answer.id("rs_"), "encrypted_content": "c3R1Yg==",
            "summary": [{"type": "summary_text", "text": turn.thinking}]}));
    }
    if !turn.text.is_empty() {
        items.push(json!({
            "type": "message", "id": answer.id("msg_"), "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": turn.text, "annotations": []}]}));
    }
    for (index, tool) in turn.tools.iter().enumerate() {
        // Tools of MCP servers are in a namespace of their own.
        let (namespace, name) = match tool.name.split_once('/') {
            Some((namespace, name)) => (Some(namespace), name),
            None => (None, tool.name.as_str()),
        };
        let mut item = json!({
            "call_id": answer.part_id("call_", index), "name": name, "status": "completed"});
        if let Some(namespace) = namespace {
            item["namespace"] = json!(namespace);
        }
        match &tool.text {
            Some(text) => {
                item["type"] = json!("custom_tool_call");
                item["id"] = json!(answer.part_id("ctc_", index));
                item["input"] = json!(text);
            }
            None => {
                item["type"] = json!("function_call");
                item["id"] = json!(answer.part_id("fc_", index));
                item["arguments"] = json!(tool.input.to_string());
            }
        }
        items.push(item);
    }
    items
}

fn frames(answer: &Answer<'_>, index: usize, item: &Value) -> Vec<Frame> {
    let event = |kind: &str, more: Value| {
        let mut event = json!({"type": kind, "item_id": item["id"], "output_index": index});
        if let (Some(event), Value::Object(more)) = (event.as_object_mut(), more) {
            event.extend(more);
        }
        Frame::typed(&event)
    };
    let mut empty = item.clone();
    empty["status"] = json!("in_progress");
    let inner = match item["type"].as_str() {
        Some("message") => {
            empty["content"] = json!([]);
            message_frames(answer, item, &event)
        }
        Some("function_call") => vec![
            event("response.function_call_arguments.delta", json!({"delta": item["arguments"]})),
            event("response.function_call_arguments.done", json!({"arguments": item["arguments"]})),
        ],
        Some("custom_tool_call") => vec![
            event("response.custom_tool_call_input.delta", json!({"delta": item["input"]})),
            event("response.custom_tool_call_input.done", json!({"input": item["input"]})),
        ],
        _ => Vec::new(),
    };
    let mut frames = vec![event("response.output_item.added", json!({"item": empty}))];
    frames.extend(inner);
    frames.push(event("response.output_item.done", json!({"item": item})));
    frames
}

fn message_frames(answer: &Answer<'_>, item: &Value, event: &impl Fn(&str, Value) -> Frame) -> Vec<Frame> {
    let part = &item["content"][0];
    let empty = json!({"type": "output_text", "text": "", "annotations": []});
    let mut frames = vec![event("response.content_part.added", json!({"content_index": 0, "part": empty}))];
    frames.extend(
        answer
            .pieces()
            .into_iter()
            .map(|piece| event("response.output_text.delta", json!({"content_index": 0, "delta": piece}))),
    );
    frames.push(event("response.output_text.done", json!({"content_index": 0, "text": part["text"]})));
    frames.push(event("response.content_part.done", json!({"content_index": 0, "part": part})));
    frames
}
