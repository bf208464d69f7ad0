//! What a tool answered, as text and as data, within bounds and without secrets.

use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::Value;
use wiggum_core::redact::Secrets;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct CallResult {
    pub text: String,
    pub structured: Option<Value>,
    /// Something is missing: the answer was larger than it may be.
    pub truncated: bool,
}

impl CallResult {
    pub(crate) fn new(answer: CallToolResult, most: usize, secrets: &Secrets) -> Self {
        let blocks: Vec<String> = answer.content.iter().map(told).collect();
        let mut text = secrets.hide(&blocks.join("\n")).into_owned();
        let mut structured = answer.structured_content.map(|value| hidden(value, secrets));
        let mut truncated = cut(&mut text, most);
        // Half of a structure is none.
        if structured.as_ref().is_some_and(|value| value.to_string().len() > most) {
            structured = None;
            truncated = true;
        }
        Self { text, structured, truncated }
    }
}

/// A block in words; pictures and sounds are only named, since nobody here can see or hear them.
fn told(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => format!("[image, {}, {} bytes]", image.mime_type, decoded(&image.data)),
        ContentBlock::Audio(audio) => format!("[audio, {}, {} bytes]", audio.mime_type, decoded(&audio.data)),
        ContentBlock::ResourceLink(link) => format!("[{}]", link.uri),
        ContentBlock::Resource(embedded) => match &embedded.resource {
            ResourceContents::TextResourceContents { text, .. } => text.clone(),
            ResourceContents::BlobResourceContents { uri, blob, .. } => {
                format!("[{uri}, {} bytes]", decoded(blob))
            }
            _ => "[a resource of an unknown kind]".to_owned(),
        },
        _ => "[something of an unknown kind]".to_owned(),
    }
}

/// How many bytes this much base64 stands for.
fn decoded(base64: &str) -> usize {
    base64.trim_end_matches('=').len() * 3 / 4
}

/// Leaves at most so many bytes, whole characters; was there more?
fn cut(text: &mut String, most: usize) -> bool {
    let fits = text.len() <= most;
    if !fits {
        text.truncate(text.floor_char_boundary(most));
    }
    !fits
}

fn hidden(value: Value, secrets: &Secrets) -> Value {
    match value {
        Value::String(text) => Value::String(secrets.hide(&text).into_owned()),
        Value::Array(items) => items.into_iter().map(|item| hidden(item, secrets)).collect(),
        Value::Object(fields) => {
            fields.into_iter().map(|(name, field)| (name, hidden(field, secrets))).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(answer: Value, most: usize) -> CallResult {
        let secrets = Secrets::among([("API_KEY".to_owned(), "hunter22hunter22".to_owned())]);
        CallResult::new(serde_json::from_value(answer).unwrap(), most, &secrets)
    }

    #[test]
    fn an_answer_becomes_text_and_data() {
        let answer = json!({
            "content": [
                {"type": "text", "text": "one"},
                {"type": "image", "data": "QUJD", "mimeType": "image/png"},
                {"type": "resource", "resource": {"uri": "file:///a", "text": "two"}},
                {"type": "resource_link", "uri": "file:///b", "name": "b"},
            ],
            "structuredContent": {"id": 7},
        });
        let result = read(answer, 1000);
        assert_eq!(result.text, "one\n[image, image/png, 3 bytes]\ntwo\n[file:///b]");
        assert_eq!(result.structured, Some(json!({"id": 7})));
        assert!(!result.truncated);
    }

    #[test]
    fn what_is_too_long_is_cut_at_a_character_and_half_a_structure_is_none() {
        let answer =
            json!({"content": [{"type": "text", "text": "äöü"}], "structuredContent": {"a": "bcdef"}});
        let result = read(answer, 5);
        assert_eq!((result.text.as_str(), result.structured, result.truncated), ("äö", None, true));
    }

    #[test]
    fn secrets_of_the_server_are_not_repeated() {
        let answer = json!({
            "content": [{"type": "text", "text": "key hunter22hunter22"}],
            "structuredContent": {"all": ["hunter22hunter22"]},
        });
        let result = read(answer, 1000);
        assert_eq!(result.text, "key [API_KEY redacted]");
        assert_eq!(result.structured, Some(json!({"all": ["[API_KEY redacted]"]})));
    }
}
