//! One normal form for what agents ask of the different providers.

use std::collections::BTreeMap;

use serde_json::Value;

/// The interface of a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Anthropic's Messages.
    Anthropic,
    /// OpenAI's Responses.
    Responses,
    /// OpenAI's Chat completions.
    Chat,
    /// Google's `generateContent`.
    Gemini,
}

/// What an agent asked of the model.
#[derive(Clone, Debug, Default)]
pub struct Request {
    pub model: String,
    /// The names of the tools it offers.
    pub tools: Vec<String>,
    /// The agent's session, where it tells.
    pub session: String,
    pub system: String,
    /// All that the user said, in order; agents put words into the user's mouth too.
    pub user: Vec<String>,
    /// What tools gave back, in order.
    pub tool_results: Vec<String>,
    pub streamed: bool,
}

impl Dialect {
    pub(crate) fn of(path: &str) -> Option<Self> {
        let dialects = [
            ("/messages", Self::Anthropic),
            ("/responses", Self::Responses),
            ("/responses/compact", Self::Responses),
            ("/chat/completions", Self::Chat),
            (":generateContent", Self::Gemini),
            (":streamGenerateContent", Self::Gemini),
        ];
        dialects.into_iter().find(|(end, _)| path.ends_with(end)).map(|(_, dialect)| dialect)
    }
}

impl Request {
    pub(crate) fn read(
        dialect: Dialect,
        path: &str,
        headers: &BTreeMap<String, String>,
        body: &Value,
    ) -> Self {
        let mut request = Self {
            model: text(&body["model"]),
            streamed: body["stream"] == true || path.ends_with(":streamGenerateContent"),
            tools: list(&body["tools"]).iter().flat_map(tool_names).collect(),
            ..Self::default()
        };
        let header = |names: &[&str]| names.iter().find_map(|name| headers.get(*name)).cloned();
        match dialect {
            Dialect::Anthropic => {
                request.session = header(&["x-claude-code-session-id"]).unwrap_or_default();
                request.system = text(&body["system"]);
                list(&body["messages"]).iter().for_each(|message| request.add_anthropic(message));
            }
            Dialect::Responses => {
                let session = header(&["session_id", "session-id", "conversation_id"]);
                request.session = session.unwrap_or_else(|| text(&body["prompt_cache_key"]));
                request.system = text(&body["instructions"]);
                match &body["input"] {
                    Value::String(said) => request.user.push(said.clone()),
                    items => list(items).iter().for_each(|item| request.add_response_item(item)),
                }
            }
            Dialect::Chat => {
                request.session = header(&["x-session-id"]).unwrap_or_default();
                list(&body["messages"]).iter().for_each(|message| request.add_chat(message));
            }
            Dialect::Gemini => {
                request.model = gemini_model(path);
                request.system = text(&body["systemInstruction"]);
                list(&body["contents"]).iter().for_each(|content| request.add_gemini(content));
            }
        }
        request
    }

    /// The last thing the user said.
    pub fn last(&self) -> &str {
        self.user.last().map_or("", String::as_str)
    }

    /// The last result of a tool.
    pub fn tool_result(&self) -> &str {
        self.tool_results.last().map_or("", String::as_str)
    }

    /// The directory the agent says it works in.
    pub(crate) fn directory(&self) -> Option<&str> {
        let marks = ["Primary working directory:", "orking directory:", "<cwd>"];
        let texts = || std::iter::once(&self.system).chain(&self.user);
        let after = |mark| texts().find_map(|text| text.split_once(mark)).map(|(_, rest)| rest);
        let rest = marks.into_iter().find_map(after)?;
        rest.split(['\n', '<']).map(str::trim).find(|path| !path.is_empty())
    }

    fn add_anthropic(&mut self, message: &Value) {
        if message["role"] == "system" {
            self.add_system(&message["content"]);
        }
        if message["role"] != "user" {
            return;
        }
        if message["content"].is_string() {
            return self.user.push(text(&message["content"]));
        }
        let blocks = list(&message["content"]);
        let results = blocks.iter().filter(|block| block["type"] == "tool_result");
        self.tool_results.extend(results.map(|block| text(&block["content"])));
        self.add_user(blocks.iter().filter(|block| block["type"] == "text"));
    }

    fn add_response_item(&mut self, item: &Value) {
        let kind = item["type"].as_str().unwrap_or("message");
        match (kind, item["role"].as_str()) {
            ("message", Some("user")) => self.user.push(text(&item["content"])),
            ("message", Some("developer" | "system")) => self.add_system(&item["content"]),
            // Newer models of Codex carry their tools inside the input.
            ("additional_tools", _) => {
                self.tools.extend(list(&item["tools"]).iter().flat_map(tool_names));
            }
            _ if kind.ends_with("_output") => self.tool_results.push(text(&item["output"])),
            _ => {}
        }
    }

    fn add_chat(&mut self, message: &Value) {
        match message["role"].as_str() {
            Some("user") => self.user.push(text(&message["content"])),
            Some("system" | "developer") => self.add_system(&message["content"]),
            Some("tool") => self.tool_results.push(text(&message["content"])),
            _ => {}
        }
    }

    fn add_gemini(&mut self, content: &Value) {
        if content["role"] == "model" {
            return;
        }
        let parts = list(&content["parts"]);
        let responses = parts.iter().map(|part| &part["functionResponse"]["response"]);
        self.tool_results.extend(responses.filter(|response| !response.is_null()).map(Value::to_string));
        self.add_user(parts.iter().filter(|part| part["text"].is_string()));
    }

    fn add_system(&mut self, content: &Value) {
        self.system.push('\n');
        self.system.push_str(&text(content));
    }

    fn add_user<'a>(&mut self, parts: impl Iterator<Item = &'a Value>) {
        let said: Vec<String> = parts.map(text).collect();
        if !said.is_empty() {
            self.user.push(said.join("\n"));
        }
    }
}

/// The text in any provider's idea of content.
fn text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts: Vec<String> = parts.iter().map(text).filter(|text| !text.is_empty()).collect();
            texts.join("\n")
        }
        Value::Object(part) => {
            let holders = ["text", "content", "parts", "output"];
            holders.iter().find_map(|key| part.get(*key)).map(text).unwrap_or_default()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => String::new(),
    }
}

fn tool_names(tool: &Value) -> Vec<String> {
    let inner = [&tool["functionDeclarations"], &tool["tools"]].map(list).concat();
    if !inner.is_empty() {
        return inner.iter().flat_map(tool_names).collect();
    }
    let name = [&tool["function"]["name"], &tool["name"], &tool["type"]];
    name.into_iter().find_map(Value::as_str).map(str::to_owned).into_iter().collect()
}

fn gemini_model(path: &str) -> String {
    let (_, rest) = path.rsplit_once("models/").unwrap_or_default();
    rest.split(':').next().unwrap_or_default().to_owned()
}

pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::{Dialect, Request};
    use serde_json::{Value, json};
    use std::collections::BTreeMap;

    #[track_caller]
    fn check(path: &str, body: &Value) {
        let dialect = Dialect::of(path).expect("a model's path");
        let request = Request::read(dialect, path, &BTreeMap::new(), body);
        assert_eq!(request.last(), "go on", "{body}");
        assert_eq!(request.user.first().unwrap(), "begin", "{body}");
        assert_eq!(request.tool_result(), "a.txt", "{body}");
        assert_eq!(request.model, "m", "{body}");
        assert_eq!(request.tools, ["Bash"], "{body}");
        assert_eq!(request.directory(), Some("/home/ralph/a b"), "{body}");
    }

    #[test]
    fn every_dialect_is_understood() {
        let system = "x\nPrimary working directory: /home/ralph/a b\ny";
        check(
            "/v1/messages",
            &json!({"model": "m", "system": [{"type": "text", "text": system}], "tools": [{"name": "Bash"}],
            "messages": [
                {"role": "user", "content": "begin"},
                {"role": "assistant", "content": [{"type": "text", "text": "no"}]},
                {"role": "user", "content": [
                    {"type": "tool_result", "content": [{"type": "text", "text": "a.txt"}]},
                    {"type": "text", "text": "go on"}]}]}),
        );
        check(
            "/v1/responses",
            &json!({"model": "m", "instructions": system, "tools": [{"type": "function", "name": "Bash"}],
            "input": [
                {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "begin"}]},
                {"type": "function_call_output", "output": "a.txt"},
                {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go on"}]}]}),
        );
        check(
            "/v1/chat/completions",
            &json!({"model": "m", "tools": [{"type": "function", "function": {"name": "Bash"}}], "messages": [
                {"role": "system", "content": system},
                {"role": "user", "content": "begin"},
                {"role": "tool", "content": "a.txt"},
                {"role": "user", "content": [{"type": "text", "text": "go on"}]}]}),
        );
        let result = json!("a.txt");
        let mut request = json!({"systemInstruction": {"parts": [{"text": system}]},
            "tools": [{"functionDeclarations": [{"name": "Bash"}]}],
            "contents": [
                {"role": "user", "parts": [{"text": "begin"}]},
                {"role": "model", "parts": [{"text": "no"}]},
                {"role": "user", "parts": [{"functionResponse": {"response": {"output": "a.txt"}}}]},
                {"role": "user", "parts": [{"text": "go on"}]}]});
        let response = &mut request["contents"][2]["parts"][0]["functionResponse"]["response"];
        assert_eq!(response["output"], result);
        let dialect = Dialect::of("/v1beta/models/m:streamGenerateContent").unwrap();
        let read =
            Request::read(dialect, "/v1beta/models/m:streamGenerateContent", &BTreeMap::new(), &request);
        assert_eq!((read.model.as_str(), read.last(), read.streamed), ("m", "go on", true));
        assert_eq!(read.tool_result(), r#"{"output":"a.txt"}"#);
        assert_eq!(read.tools, ["Bash"]);
    }
}
