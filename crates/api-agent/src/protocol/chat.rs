//! OpenAI's chat completions, as OpenAI and its many imitators stream them.

use serde_json::{Map, Value, json};
use wiggum_core::event::Usage;

use super::{Question, parse, text_in_fields};
use crate::answer::{Answer, Spoilt, Stop, ToolCall, merge, number, text};
use crate::conversation::{Entry, ToolResult};
use crate::tools::Tool;

pub(super) fn body(question: &Question<'_>) -> Value {
    let conversation = question.conversation;
    let mut messages = vec![json!({"role": "system", "content": conversation.system})];
    messages.extend(conversation.entries.iter().flat_map(messages_of));
    json!({
        "model": question.model,
        "messages": messages,
        "tools": question.tools.iter().map(tool).collect::<Vec<_>>(),
        "stream": true,
        "stream_options": {"include_usage": true},
    })
}

fn tool(tool: &Tool) -> Value {
    json!({"type": "function", "function": {
        "name": tool.name, "description": tool.description, "parameters": (tool.parameters)()}})
}

fn messages_of(entry: &Entry) -> Vec<Value> {
    match entry {
        Entry::User(said) => vec![json!({"role": "user", "content": said})],
        Entry::Assistant(message) => vec![message.clone()],
        Entry::Results(results) => results.iter().map(result).collect(),
    }
}

/// There is no field for an error here, so the text says it.
fn result(result: &ToolResult) -> Value {
    let sign = if result.is_error { "error: " } else { "" };
    json!({"role": "tool", "tool_call_id": result.id, "content": format!("{sign}{}", result.text)})
}

#[derive(Default)]
pub(super) struct Assembly {
    message: Map<String, Value>,
    calls: Vec<Call>,
    finish_reason: Option<String>,
    usage: Option<Usage>,
    done: bool,
}

/// A tool call under way, known by its index, or by its id where all have the same index.
#[derive(Default)]
struct Call {
    index: Option<u64>,
    call: Map<String, Value>,
}

impl super::Assembly for Assembly {
    fn read(&mut self, data: &str, said: &mut dyn FnMut(&str)) -> Result<(), Spoilt> {
        if self.done || data.trim().is_empty() {
            return Ok(());
        }
        if data.trim() == "[DONE]" {
            self.done = true;
            return Ok(());
        }
        let chunk = parse(data)?;
        if let Some(error) = chunk.get("error").filter(|error| !error.is_null()) {
            return Err(Spoilt::of(error));
        }
        if chunk["usage"].is_object() {
            self.usage = Some(usage(&chunk["usage"]));
        }
        let choice = &chunk["choices"][0];
        if let Some(reason) = choice["finish_reason"].as_str() {
            self.finish_reason = Some(reason.to_owned());
        }
        if let Some(delta) = choice["delta"].as_object() {
            self.add(delta, said);
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.done
    }

    fn used(&self) -> Option<Usage> {
        self.usage
    }

    fn written(&self) -> usize {
        let calls = self.calls.iter().map(|call| text_in_fields(&call.call));
        text_in_fields(&self.message) + calls.sum::<usize>()
    }

    fn finish(self: Box<Self>) -> Result<Answer, Spoilt> {
        let Some(reason) = &self.finish_reason else { return Err(Spoilt::Incomplete) };
        let stop = match reason.as_str() {
            "length" => Stop::Length,
            "content_filter" => Stop::Refused,
            _ => Stop::Done,
        };
        let refused =
            self.message.get("refusal").and_then(Value::as_str).is_some_and(|said| !said.is_empty());
        let stop = if refused { Stop::Refused } else { stop };
        let (calls, raw): (Vec<_>, Vec<_>) =
            self.calls.into_iter().enumerate().map(|(index, call)| call.finish(index)).unzip();
        let mut message = self.message;
        message.insert("role".to_owned(), json!("assistant"));
        message.entry("content").or_insert(Value::Null);
        if !raw.is_empty() {
            message.insert("tool_calls".to_owned(), Value::Array(raw));
        }
        let message = Value::Object(message);
        Ok(Answer { text: text(&message, "content"), message, calls, stop, usage: self.usage })
    }
}

impl Assembly {
    fn add(&mut self, delta: &Map<String, Value>, said: &mut dyn FnMut(&str)) {
        let mut delta = delta.clone();
        if let Some(Value::Array(pieces)) = delta.remove("tool_calls") {
            pieces.iter().filter_map(Value::as_object).for_each(|piece| self.add_call(piece));
        }
        for key in ["content", "refusal"] {
            if let Some(words) = delta.get(key).and_then(Value::as_str).filter(|words| !words.is_empty()) {
                said(words);
            }
        }
        merge(&mut self.message, &delta);
    }

    fn add_call(&mut self, piece: &Map<String, Value>) {
        let index = piece.get("index").and_then(Value::as_u64);
        let id = piece.get("id").and_then(Value::as_str).filter(|id| !id.is_empty());
        // Some give every call the index 0, or none, and only the id tells that a new one begins.
        let at = self.calls.iter().rposition(|call| call.index == index && !call.is_other_than(id));
        let at = at.unwrap_or_else(|| {
            self.calls.push(Call { index, call: Map::new() });
            self.calls.len() - 1
        });
        merge(&mut self.calls[at].call, piece);
    }
}

impl Call {
    fn is_other_than(&self, id: Option<&str>) -> bool {
        let own = self.call.get("id").and_then(Value::as_str);
        own.zip(id).is_some_and(|(own, id)| own != id)
    }

    /// The call, and what is sent back of it. A call that was given no id gets one, since its result
    /// has to name it.
    fn finish(mut self, index: usize) -> (ToolCall, Value) {
        self.call.remove("index");
        let id = self.call.get("id").and_then(Value::as_str).filter(|id| !id.is_empty());
        let id = id.map_or_else(|| format!("call_{index}"), str::to_owned);
        self.call.insert("id".to_owned(), json!(id));
        self.call.entry("type").or_insert_with(|| json!("function"));
        let mut raw = Value::Object(self.call);
        let function = &mut raw["function"];
        // Some have an object where OpenAI has its text.
        let arguments = match &function["arguments"] {
            Value::String(arguments) => arguments.clone(),
            Value::Null => String::new(),
            other => other.to_string(),
        };
        // Some refuse a conversation with arguments that cannot be read, although they come from the
        // model itself. The result says what was wrong with them.
        let readable = serde_json::from_str::<Value>(&arguments).is_ok();
        function["arguments"] = json!(if readable { arguments.as_str() } else { "{}" });
        (ToolCall { id, name: text(function, "name"), arguments }, raw)
    }
}

/// Input counts what was cached too.
fn usage(told: &Value) -> Usage {
    let all_input = number(told, "prompt_tokens").unwrap_or(0);
    let cached = number(&told["prompt_tokens_details"], "cached_tokens").unwrap_or(0);
    Usage {
        input_tokens: all_input.saturating_sub(cached),
        output_tokens: number(told, "completion_tokens").unwrap_or(0),
        cache_read_tokens: cached,
        cache_write_tokens: 0,
        cost_usd: 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Assembly as _;
    use super::*;

    fn read(events: &[Value]) -> Result<Answer, Spoilt> {
        let mut assembly = Box::new(Assembly::default());
        for event in events {
            assembly.read(&event.to_string(), &mut |_| {})?;
        }
        assembly.finish()
    }

    fn delta(delta: Value) -> Value {
        json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
    }

    fn end(reason: &str) -> Value {
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
    }

    fn call(index: Value, id: &str, name: &str, arguments: &str) -> Value {
        let function = json!({"name": name, "arguments": arguments});
        delta(json!({"tool_calls": [{"index": index, "id": id, "function": function}]}))
    }

    fn names(answer: &Answer) -> Vec<(&str, &str, &str)> {
        let calls = answer.calls.iter();
        calls.map(|call| (call.id.as_str(), call.name.as_str(), call.arguments.as_str())).collect()
    }

    #[test]
    fn parallel_calls_come_in_pieces_and_mixed() {
        let answer = read(&[
            call(json!(0), "a", "read", "{\"pa"),
            call(json!(1), "b", "list", ""),
            delta(json!({"tool_calls": [{"index": 0, "function": {"arguments": "th\":1}"}}]})),
            delta(json!({"tool_calls": [{"index": 1, "function": {"arguments": "{}"}}]})),
            end("tool_calls"),
        ])
        .unwrap();
        assert_eq!(names(&answer), [("a", "read", "{\"path\":1}"), ("b", "list", "{}")]);
        let sent_back = &answer.message["tool_calls"][0];
        let function = json!({"name": "read", "arguments": "{\"path\":1}"});
        assert_eq!(*sent_back, json!({"id": "a", "type": "function", "function": function}));
    }

    #[test]
    fn calls_without_a_true_index_or_an_id_are_told_apart() {
        let same = [call(json!(0), "a", "read", "{}"), call(json!(0), "b", "list", "{}"), end("stop")];
        assert_eq!(names(&read(&same).unwrap()), [("a", "read", "{}"), ("b", "list", "{}")]);
        let none = [call(json!(null), "", "read", "{}"), end("stop")];
        assert_eq!(names(&read(&none).unwrap()), [("call_0", "read", "{}")]);
        let repeated = [call(json!(0), "a", "read", "{"), call(json!(0), "a", "read", "}"), end("stop")];
        assert_eq!(names(&read(&repeated).unwrap()), [("a", "read", "{}")]);
    }

    #[test]
    fn arguments_that_cannot_be_read_are_not_sent_back() {
        let answer = read(&[call(json!(0), "a", "read", "{\"path\": "), end("tool_calls")]).unwrap();
        assert_eq!(names(&answer), [("a", "read", "{\"path\": ")]);
        assert_eq!(answer.message["tool_calls"][0]["function"]["arguments"], "{}");
    }

    #[test]
    fn unknown_fields_are_sent_back() {
        let signed = json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "read", "arguments": "{}"},
            "extra_content": {"google": {"thought_signature": "s"}}}]});
        let answer =
            read(&[delta(json!({"reasoning_content": "hm"})), delta(signed), end("tool_calls")]).unwrap();
        assert_eq!(answer.message["reasoning_content"], "hm");
        assert_eq!(answer.message["tool_calls"][0]["extra_content"]["google"]["thought_signature"], "s");
    }

    #[test]
    fn an_answer_needs_a_reason_for_its_end() {
        assert_eq!(read(&[delta(json!({"content": "half"}))]), Err(Spoilt::Incomplete));
        let stop = |reason| read(&[delta(json!({"content": "x"})), end(reason)]).unwrap().stop;
        assert_eq!(stop("stop"), Stop::Done);
        assert_eq!(stop("length"), Stop::Length);
        assert_eq!(stop("content_filter"), Stop::Refused);
        let refusal = read(&[delta(json!({"refusal": "No."})), end("stop")]).unwrap();
        assert_eq!(refusal.stop, Stop::Refused);
    }

    #[test]
    fn usage_is_told_without_what_was_cached() {
        let told = json!({"choices": [], "usage": {"prompt_tokens": 1000, "completion_tokens": 7,
            "prompt_tokens_details": {"cached_tokens": 800}}});
        let usage = read(&[end("stop"), told]).unwrap().usage.unwrap();
        assert_eq!((usage.input_tokens, usage.cache_read_tokens, usage.output_tokens), (200, 800, 7));
        assert_eq!(read(&[end("stop")]).unwrap().usage, None);
    }

    #[test]
    fn an_error_in_the_stream_is_one() {
        let error = json!({"error": {"code": "server_error", "message": "sorry"}});
        let expected = Spoilt::Error { kind: "server_error".to_owned(), message: "sorry".to_owned() };
        assert_eq!(read(&[delta(json!({"content": "x"})), error]), Err(expected));
        let mut assembly = Assembly::default();
        assert!(matches!(assembly.read("<html>", &mut |_| {}), Err(Spoilt::NotJson(_))));
    }
}
