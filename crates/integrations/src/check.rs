//! Do params fit a tool? Asked of its schema before anything is sent, so that a mistake costs no call.

use jsonschema::{ValidationError, Validator};
use serde_json::Value;

use crate::heard::brief;
use crate::tool::Tool;

/// The first few say enough.
const SHOWN: usize = 8;
/// Nobody needs to see the value again that is wrong.
const SHOWN_VALUE: usize = 200;

/// All that is wrong with the params, each naming the field.
pub(crate) fn problems(tool: &Tool, params: &Value) -> Result<Vec<String>, String> {
    if !params.is_object() {
        return Ok(vec![format!(
            "params are a table of names and values, not {}",
            brief(&params.to_string(), 60)
        )]);
    }
    let schema = validator(&tool.input_schema)?;
    let mut problems: Vec<String> =
        schema.iter_errors(params).take(SHOWN).map(|error| problem(&error)).collect();
    problems.dedup();
    Ok(problems)
}

fn validator(schema: &Value) -> Result<Validator, String> {
    // An address in `$ref` is a stranger's: nothing is fetched (the features for it are not built in).
    jsonschema::options().build(schema).map_err(|error| brief(&error.to_string(), SHOWN_VALUE))
}

fn problem(error: &ValidationError<'_>) -> String {
    let at = error.instance_path().to_string();
    let field = at.trim_start_matches('/').replace('/', ".");
    let message = brief(&error.to_string(), SHOWN_VALUE);
    if field.is_empty() { message } else { format!("`{field}`: {message}") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool(schema: Value) -> Tool {
        Tool {
            name: "send".to_owned(),
            title: None,
            description: None,
            input_schema: schema,
            read_only: false,
            idempotent: false,
            destructive: true,
        }
    }

    fn check(schema: Value, params: Value) -> String {
        problems(&tool(schema), &params)
            .map_or_else(|problem| format!("schema: {problem}"), |all| all.join("; "))
    }

    #[test]
    fn what_is_wrong_names_the_field() {
        let schema = json!({
            "type": "object",
            "properties": {"to": {"type": "array", "items": {"type": "string"}}, "body": {"type": "string"}},
            "required": ["to", "body"],
            "additionalProperties": false,
        });
        assert_eq!(check(schema.clone(), json!({"to": ["a@b"], "body": "hi"})), "");
        assert_eq!(check(schema.clone(), json!({"to": ["a@b"]})), "\"body\" is a required property");
        assert_eq!(
            check(schema.clone(), json!({"to": [1], "body": ""})),
            "`to.0`: 1 is not of type \"string\""
        );
        let unknown = check(schema.clone(), json!({"to": [], "body": "", "cc": "x"}));
        assert!(unknown.contains("cc"), "{unknown}");
        let list = check(schema, json!(["a"]));
        assert!(list.contains("not [\"a\"]"), "{list}");
    }

    #[test]
    fn a_schema_that_makes_no_sense_or_points_elsewhere_is_said_to_be_one() {
        assert!(check(json!({"type": 5}), json!({})).starts_with("schema: "));
        let elsewhere = json!({"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:1/x.json"}}});
        assert!(check(elsewhere, json!({"a": 1})).starts_with("schema: "));
        let local = json!({"$ref": "#/$defs/a", "$defs": {"a": {"type": "object", "required": ["x"]}}});
        assert_eq!(check(local, json!({})), "\"x\" is a required property");
    }
}
