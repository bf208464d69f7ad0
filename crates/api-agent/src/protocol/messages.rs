//! Anthropic's Messages.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use wiggum_core::event::Usage;

use super::{Question, parse, text_in_fields};
use crate::answer::{Answer, Spoilt, Stop, ToolCall, merge, number, text};
use crate::conversation::{Entry, ToolResult};
use crate::tools::Tool;

/// The protocol wants a limit on every answer; this one is below that of all current models. An
/// answer that meets it is gone on with.
const MAX_TOKENS: u32 = 16_384;

pub(super) fn body(question: &Question<'_>) -> Value {
    let conversation = question.conversation;
    let mut messages: Vec<Value> = conversation.entries.iter().map(message_of).collect();
    if let Some(last) = messages.last_mut() {
        mark_for_cache(last);
    }
    json!({
        "model": question.model,
        "max_tokens": MAX_TOKENS,
        "system": [{"type": "text", "text": conversation.system, "cache_control": {"type": "ephemeral"}}],
        "messages": messages,
        "tools": question.tools.iter().map(tool).collect::<Vec<_>>(),
        "stream": true,
    })
}

/// Everything up to here is the same the next time. The provider keeps it, for a tenth of the price.
fn mark_for_cache(message: &mut Value) {
    if let Some(block) = message["content"].as_array_mut().and_then(|blocks| blocks.last_mut()) {
        block["cache_control"] = json!({"type": "ephemeral"});
    }
}

fn tool(tool: &Tool) -> Value {
    json!({"name": tool.name, "description": tool.description, "input_schema": (tool.parameters)()})
}

fn message_of(entry: &Entry) -> Value {
    match entry {
        Entry::User(said) => json!({"role": "user", "content": [{"type": "text", "text": said}]}),
        Entry::Assistant(message) => message.clone(),
        Entry::Results(results) => {
            json!({"role": "user", "content": results.iter().map(result).collect::<Vec<_>>()})
        }
    }
}

fn result(result: &ToolResult) -> Value {
    json!({
        "type": "tool_result", "tool_use_id": result.id,
        "content": [{"type": "text", "text": result.text}], "is_error": result.is_error})
}

#[derive(Default)]
pub(super) struct Assembly {
    /// By their index.
    blocks: BTreeMap<u64, Block>,
    stop_reason: Option<String>,
    usage: Map<String, Value>,
    stopped: bool,
}

#[derive(Default)]
struct Block {
    block: Map<String, Value>,
    /// The input of a tool, as far as it came.
    input: String,
}

impl super::Assembly for Assembly {
    fn read(&mut self, data: &str, said: &mut dyn FnMut(&str)) -> Result<(), Spoilt> {
        if data.trim().is_empty() {
            return Ok(());
        }
        let event = parse(data)?;
        match event["type"].as_str().unwrap_or_default() {
            "message_start" => self.count(&event["message"]["usage"]),
            "content_block_start" => {
                let block = event["content_block"].as_object().cloned().unwrap_or_default();
                self.blocks.insert(index(&event), Block { block, input: String::new() });
            }
            "content_block_delta" => {
                let block = self.blocks.entry(index(&event)).or_default();
                block.add(&event["delta"], said);
            }
            "message_delta" => {
                if let Some(reason) = event["delta"]["stop_reason"].as_str() {
                    self.stop_reason = Some(reason.to_owned());
                }
                self.count(&event["usage"]);
            }
            "message_stop" => self.stopped = true,
            "error" => return Err(Spoilt::of(&event["error"])),
            // Signs of life, and whatever will be invented.
            _ => {}
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.stopped
    }

    fn used(&self) -> Option<Usage> {
        (!self.usage.is_empty()).then(|| usage(&Value::Object(self.usage.clone())))
    }

    fn written(&self) -> usize {
        self.blocks.values().map(|block| block.input.len() + text_in_fields(&block.block)).sum()
    }

    fn finish(self: Box<Self>) -> Result<Answer, Spoilt> {
        if !self.stopped {
            return Err(Spoilt::Incomplete);
        }
        let stop = match self.stop_reason.as_deref() {
            Some("max_tokens") => Stop::Length,
            Some("refusal") => Stop::Refused,
            Some("model_context_window_exceeded") => Stop::ContextFull,
            _ => Stop::Done,
        };
        let mut answer = Answer { stop, usage: self.used(), ..Answer::default() };
        let mut content = Vec::new();
        for block in self.blocks.into_values() {
            block.finish(&mut answer, &mut content);
        }
        answer.message = json!({"role": "assistant", "content": content});
        Ok(answer)
    }
}

impl Assembly {
    /// The figures of the end replace those of the beginning.
    fn count(&mut self, told: &Value) {
        for (key, value) in told.as_object().into_iter().flatten().filter(|(_, value)| value.is_u64()) {
            self.usage.insert(key.clone(), value.clone());
        }
    }
}

impl Block {
    fn add(&mut self, delta: &Value, said: &mut dyn FnMut(&str)) {
        let Some(mut delta) = delta.as_object().cloned() else { return };
        // The block has a type of its own.
        delta.remove("type");
        if let Some(Value::String(more)) = delta.remove("partial_json") {
            self.input.push_str(&more);
        }
        if let Some(words) = delta.get("text").and_then(Value::as_str) {
            said(words);
        }
        merge(&mut self.block, &delta);
    }

    fn finish(mut self, answer: &mut Answer, content: &mut Vec<Value>) {
        let kind = self.block.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
        if kind == "tool_use" {
            self.take_input();
        }
        let block = Value::Object(self.block);
        match kind.as_str() {
            // Sent back, a text without a word would be refused.
            "text" if text(&block, "text").trim().is_empty() => return,
            "text" => answer.text.push_str(&text(&block, "text")),
            "tool_use" => answer.calls.push(ToolCall {
                id: text(&block, "id"),
                name: text(&block, "name"),
                arguments: match self.input.trim() {
                    "" => block["input"].to_string(),
                    written => written.to_owned(),
                },
            }),
            _ => {}
        }
        content.push(block);
    }

    /// What is not JSON cannot be sent back as the object it should have been; the result says what
    /// was wrong with it.
    fn take_input(&mut self) {
        if !self.input.trim().is_empty() {
            let input = serde_json::from_str(&self.input).ok().filter(Value::is_object);
            self.block.insert("input".to_owned(), input.unwrap_or_else(|| json!({})));
        }
    }
}

fn index(event: &Value) -> u64 {
    number(event, "index").unwrap_or_default()
}

fn usage(told: &Value) -> Usage {
    let tokens = |key| number(told, key).unwrap_or(0);
    Usage {
        input_tokens: tokens("input_tokens"),
        output_tokens: tokens("output_tokens"),
        cache_read_tokens: tokens("cache_read_input_tokens"),
        cache_write_tokens: tokens("cache_creation_input_tokens"),
        cost_usd: 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Assembly as _;
    use super::*;
    use crate::conversation::Conversation;

    fn read(events: &[Value]) -> Result<Answer, Spoilt> {
        let mut assembly = Box::new(Assembly::default());
        for event in events {
            assembly.read(&event.to_string(), &mut |_| {})?;
        }
        assembly.finish()
    }

    fn start(index: u64, block: Value) -> Value {
        json!({"type": "content_block_start", "index": index, "content_block": block})
    }

    fn delta(index: u64, delta: Value) -> Value {
        json!({"type": "content_block_delta", "index": index, "delta": delta})
    }

    fn end(reason: &str) -> [Value; 2] {
        [
            json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 9}}),
            json!({"type": "message_stop"}),
        ]
    }

    fn input(index: u64, text: &str) -> Value {
        delta(index, json!({"type": "input_json_delta", "partial_json": text}))
    }

    fn tool_use(index: u64, id: &str) -> Value {
        start(index, json!({"type": "tool_use", "id": id, "name": "read", "input": {}}))
    }

    #[test]
    fn thoughts_texts_and_parallel_calls_are_put_together_and_sent_back_whole() {
        let [delta_end, stop] = end("tool_use");
        let answer = read(&[
            json!({"type": "message_start", "message": {"usage": {"input_tokens": 5, "output_tokens": 1,
                "cache_read_input_tokens": 3, "cache_creation_input_tokens": 2, "service_tier": "x"}}}),
            start(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
            delta(0, json!({"type": "thinking_delta", "thinking": "h"})),
            delta(0, json!({"type": "thinking_delta", "thinking": "m"})),
            delta(0, json!({"type": "signature_delta", "signature": "sig"})),
            start(1, json!({"type": "text", "text": ""})),
            json!({"type": "ping"}),
            delta(1, json!({"type": "text_delta", "text": "Look"})),
            tool_use(2, "a"),
            tool_use(3, "b"),
            input(2, "{\"pa"),
            input(3, "{}"),
            input(2, "th\": \"x\"}"),
            json!({"type": "something_new"}),
            delta_end,
            stop,
        ])
        .unwrap();
        assert_eq!(answer.text, "Look");
        let calls: Vec<_> =
            answer.calls.iter().map(|call| (call.id.as_str(), call.arguments.as_str())).collect();
        assert_eq!(calls, [("a", "{\"path\": \"x\"}"), ("b", "{}")]);
        assert_eq!(
            answer.message["content"][0],
            json!({"type": "thinking", "thinking": "hm", "signature": "sig"})
        );
        assert_eq!(answer.message["content"][2]["input"], json!({"path": "x"}));
        let usage = answer.usage.unwrap();
        assert_eq!((usage.input_tokens, usage.output_tokens), (5, 9));
        assert_eq!((usage.cache_read_tokens, usage.cache_write_tokens), (3, 2));
    }

    #[test]
    fn input_that_is_not_json_reaches_the_tool_as_it_is() {
        let [delta_end, stop] = end("tool_use");
        let answer = read(&[tool_use(0, "a"), input(0, "{\"path\": "), delta_end, stop]).unwrap();
        assert_eq!(answer.calls[0].arguments, "{\"path\":");
        assert_eq!(answer.message["content"][0]["input"], json!({}));
    }

    #[test]
    fn an_answer_is_complete_only_if_it_says_so() {
        let [delta_end, stop] = end("end_turn");
        assert_eq!(read(std::slice::from_ref(&delta_end)), Err(Spoilt::Incomplete));
        assert_eq!(read(&[delta_end, stop]).unwrap().stop, Stop::Done);
        for (reason, expected) in [
            ("max_tokens", Stop::Length),
            ("refusal", Stop::Refused),
            ("model_context_window_exceeded", Stop::ContextFull),
        ] {
            assert_eq!(read(&end(reason)).unwrap().stop, expected);
        }
        let error = json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
        assert!(matches!(read(&[error]), Err(Spoilt::Error { .. })));
    }

    #[test]
    fn the_last_message_is_marked_for_the_cache() {
        let mut conversation = Conversation::new("s".to_owned(), "p".to_owned(), None);
        let result = |id: &str| ToolResult { id: id.to_owned(), text: "t".to_owned(), is_error: true };
        conversation.add_results(vec![result("a"), result("b")]);
        let body = body(&Question { model: "m", conversation: &conversation, tools: &[] });
        assert_eq!(body["messages"][0]["content"][0].get("cache_control"), None);
        assert_eq!(body["messages"][1]["content"][0].get("cache_control"), None);
        assert_eq!(body["messages"][1]["content"][1]["cache_control"]["type"], "ephemeral");
        assert_eq!(body["messages"][1]["content"][1]["is_error"], true);
    }
}
