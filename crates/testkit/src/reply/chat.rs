//! OpenAI's Chat completions.

use serde_json::{Value, json};

use super::{Answer, Frame, Reply};

pub(super) fn reply(answer: &Answer<'_>) -> Reply {
    let turn = answer.turn;
    let calls = calls(answer);
    let usual = if calls.is_empty() { "stop" } else { "tool_calls" };
    let finish_reason = turn.stop_reason.as_deref().unwrap_or(usual);
    let chunk = |delta: Value, finish: Option<&str>| {
        let mut chunk = envelope(answer, "chat.completion.chunk");
        chunk["choices"] = json!([{"index": 0, "delta": delta, "finish_reason": finish}]);
        Frame::plain(&chunk)
    };
    let texts = answer.pieces().into_iter().map(|piece| chunk(json!({"content": piece}), None));
    let streamed_calls = calls.iter().enumerate().map(|(index, call)| {
        let mut call = call.clone();
        call["index"] = json!(index);
        chunk(json!({"tool_calls": [call]}), None)
    });
    let mut last = envelope(answer, "chat.completion.chunk");
    (last["choices"], last["usage"]) = (json!([]), usage(answer));
    let done = Frame { event: None, data: "[DONE]".to_owned() };
    Reply {
        opening: vec![chunk(json!({"role": "assistant", "content": ""}), None)],
        body: texts.chain(streamed_calls).collect(),
        closing: vec![chunk(json!({}), Some(finish_reason)), Frame::plain(&last), done],
        ping: chunk(json!({}), None),
        whole: whole(answer, &calls, finish_reason),
    }
}

fn whole(answer: &Answer<'_>, calls: &[Value], finish_reason: &str) -> Value {
    let mut message = json!({"role": "assistant", "content": answer.turn.text});
    if !calls.is_empty() {
        message["tool_calls"] = json!(calls);
    }
    let mut whole = envelope(answer, "chat.completion");
    whole["choices"] = json!([{"index": 0, "message": message, "finish_reason": finish_reason}]);
    whole["usage"] = usage(answer);
    whole
}

fn envelope(answer: &Answer<'_>, object: &str) -> Value {
    json!({"id": answer.id("chatcmpl-"), "object": object, "created": 0, "model": answer.model})
}

fn usage(answer: &Answer<'_>) -> Value {
    json!({
        "prompt_tokens": answer.all_input(), "completion_tokens": answer.usage.output,
        "total_tokens": answer.all_input() + answer.usage.output,
        "prompt_tokens_details": {"cached_tokens": answer.usage.cache_read},
        "completion_tokens_details": {"reasoning_tokens": answer.usage.reasoning}})
}

fn calls(answer: &Answer<'_>) -> Vec<Value> {
    let call = |(index, tool): (usize, &crate::scenario::ToolCall)| {
        json!({
            "id": answer.part_id("call_", index), "type": "function",
            "function": {"name": tool.name, "arguments": tool.input.to_string()}})
    };
    answer.turn.tools.iter().enumerate().map(call).collect()
}
