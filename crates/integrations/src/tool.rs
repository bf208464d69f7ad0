//! A tool as its server describes it.

use serde::Serialize;
use serde_json::{Map, Value};

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tool {
    pub name: String,
    pub title: Option<String>,
    pub description: Option<String>,
    pub input_schema: Value,
    /// It changes nothing.
    pub read_only: bool,
    /// Calling it again with the same params changes nothing more.
    pub idempotent: bool,
    /// It may destroy something; so may every tool that does not say.
    pub destructive: bool,
}

/// One thing a tool wants to know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Parameter {
    pub name: String,
    /// As people say it: `string`, `number or null`, `"a" | "b"`.
    #[serde(rename = "type")]
    pub kind: String,
    pub required: bool,
    pub description: Option<String>,
}

impl Tool {
    /// Only what a server states itself makes a tool repeatable: to be silent is no promise.
    pub fn repeatable(&self) -> bool {
        self.read_only || self.idempotent
    }

    /// The required ones first, in the order in which the schema requires them.
    pub fn parameters(&self) -> Vec<Parameter> {
        let none = Map::new();
        let properties = self.input_schema.get("properties").and_then(Value::as_object).unwrap_or(&none);
        let required: Vec<&str> = self
            .input_schema
            .get("required")
            .and_then(Value::as_array)
            .map(|names| names.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default();
        let parameter = |(name, schema): (&String, &Value)| Parameter {
            name: name.clone(),
            kind: kind(schema),
            required: required.contains(&name.as_str()),
            description: schema.get("description").and_then(Value::as_str).map(str::to_owned),
        };
        let mut parameters: Vec<Parameter> = properties.iter().map(parameter).collect();
        let place = |name: &str| required.iter().position(|other| *other == name).unwrap_or(usize::MAX);
        parameters.sort_by_key(|parameter| place(&parameter.name));
        parameters
    }

    /// Its parameters in one line, for a hint.
    pub(crate) fn wanted(&self) -> String {
        let parameters = self.parameters();
        if parameters.is_empty() {
            return "no params".to_owned();
        }
        let shown = parameters.iter().map(|Parameter { name, kind, required, .. }| {
            if *required { format!("{name}: {kind}") } else { format!("{name}?: {kind}") }
        });
        shown.collect::<Vec<_>>().join(", ")
    }
}

impl From<rmcp::model::Tool> for Tool {
    fn from(tool: rmcp::model::Tool) -> Self {
        let annotations = tool.annotations.unwrap_or_default();
        let read_only = annotations.read_only_hint.unwrap_or(false);
        Self {
            name: tool.name.into_owned(),
            title: tool.title.or(annotations.title),
            description: tool.description.map(std::borrow::Cow::into_owned),
            input_schema: Value::Object((*tool.input_schema).clone()),
            read_only,
            idempotent: annotations.idempotent_hint.unwrap_or(false),
            destructive: !read_only && annotations.destructive_hint.unwrap_or(true),
        }
    }
}

/// The type that a schema allows, in a few words.
fn kind(schema: &Value) -> String {
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        return values.iter().map(Value::to_string).collect::<Vec<_>>().join(" | ");
    }
    if let Some(value) = schema.get("const") {
        return value.to_string();
    }
    for choice in ["anyOf", "oneOf"] {
        if let Some(kinds) = schema.get(choice).and_then(Value::as_array) {
            return either(kinds.iter().map(kind));
        }
    }
    match schema.get("type") {
        Some(Value::String(name)) if name == "array" => match schema.get("items") {
            Some(items) => format!("array of {}", kind(items)),
            None => "array".to_owned(),
        },
        Some(Value::String(name)) => name.clone(),
        Some(Value::Array(names)) => either(names.iter().filter_map(Value::as_str).map(str::to_owned)),
        Some(_) | None if schema.get("$ref").is_some() => "object".to_owned(),
        Some(_) | None => "any".to_owned(),
    }
}

fn either(kinds: impl Iterator<Item = String>) -> String {
    let mut distinct: Vec<String> = Vec::new();
    for kind in kinds {
        if !distinct.contains(&kind) {
            distinct.push(kind);
        }
    }
    distinct.join(" or ")
}
