//! Results of earlier steps in the words of later ones: `{{ steps.1.result.id }}`.
//!
//! Only what begins with `steps.` is ours: other braces are somebody else's and stay. What is put in
//! is data and is not looked at again.

use serde_json::Value;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    #[error(
        "`{{{{ {expression} }}}}` is not understood; expected `steps.N.result` or `steps.N.result.FIELD`"
    )]
    Syntax { expression: String },
    #[error("`{{{{ {expression} }}}}`: {step} has no result (yet); it should be among the dependencies")]
    NoResult { expression: String, step: String },
    #[error("`{{{{ {expression} }}}}`: the result has no `{field}`")]
    NoField { expression: String, field: String },
}

/// The value with every result put in. Where a text is nothing but a result, it is replaced by it,
/// whatever its type.
pub fn fill(value: &Value, results: &dyn Fn(&str) -> Option<Value>) -> Result<Value, TemplateError> {
    Ok(match value {
        Value::String(text) => fill_text(text, results)?,
        Value::Array(items) => {
            Value::Array(items.iter().map(|item| fill(item, results)).collect::<Result<_, _>>()?)
        }
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| Ok((name.clone(), fill(value, results)?)));
            Value::Object(fields.collect::<Result<_, _>>()?)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    })
}

/// The text with every result put in.
pub fn fill_words(text: &str, results: &dyn Fn(&str) -> Option<Value>) -> Result<String, TemplateError> {
    fill_text(text, results).map(|value| in_words(&value))
}

fn fill_text(text: &str, results: &dyn Fn(&str) -> Option<Value>) -> Result<Value, TemplateError> {
    let mut filled = String::new();
    let mut rest = text;
    while let Some(found) = next(rest) {
        let value = look_up(found.expression, results)?;
        if rest.len() == text.len() && found.before.is_empty() && found.after.is_empty() {
            return Ok(value);
        }
        filled.push_str(found.before);
        filled.push_str(&in_words(&value));
        rest = found.after;
    }
    filled.push_str(rest);
    Ok(Value::String(filled))
}

struct Found<'a> {
    before: &'a str,
    expression: &'a str,
    after: &'a str,
}

fn next(text: &str) -> Option<Found<'_>> {
    let mut from = 0;
    loop {
        let start = from + text[from..].find("{{")?;
        let end = start + text[start..].find("}}")?;
        let expression = text[start + 2..end].trim();
        if expression.starts_with("steps.") {
            return Some(Found { before: &text[..start], expression, after: &text[end + 2..] });
        }
        from = start + 2;
    }
}

fn look_up(expression: &str, results: &dyn Fn(&str) -> Option<Value>) -> Result<Value, TemplateError> {
    let syntax = || TemplateError::Syntax { expression: expression.to_owned() };
    let mut parts = expression.split('.').skip(1);
    let step = parts.next().filter(|step| !step.is_empty()).ok_or_else(syntax)?;
    parts.next().filter(|word| *word == "result").ok_or_else(syntax)?;
    let step =
        if step.bytes().all(|byte| byte.is_ascii_digit()) { format!("step_{step}") } else { step.to_owned() };
    let result = results(&step);
    let result = result
        .ok_or_else(|| TemplateError::NoResult { expression: expression.to_owned(), step: step.clone() })?;
    parts.try_fold(result, |value, field| {
        let inner = match &value {
            Value::Object(fields) => fields.get(field),
            Value::Array(items) => field.parse().ok().and_then(|index: usize| items.get(index)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
        };
        let missing =
            || TemplateError::NoField { expression: expression.to_owned(), field: field.to_owned() };
        inner.cloned().ok_or_else(missing)
    })
}

fn in_words(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn results(step: &str) -> Option<Value> {
        match step {
            "step_1" => Some(json!({"id": 7, "tags": ["a", "b"], "evil": "{{ steps.1.result.id }}"})),
            "step_2" => Some(json!("plain")),
            _ => None,
        }
    }

    fn check(template: Value, expected: Value) {
        assert_eq!(fill(&template, &results), Ok(expected));
    }

    #[test]
    fn results_are_put_in_with_their_type_where_they_stand_alone() {
        check(json!({"to": "{{ steps.1.result.id }}"}), json!({"to": 7}));
        check(json!("{{steps.step_1.result.tags}}"), json!(["a", "b"]));
        check(json!("No. {{ steps.1.result.id }} of {{ steps.2.result }}!"), json!("No. 7 of plain!"));
        check(json!(["{{ steps.1.result.tags.1 }}", 3, null]), json!(["b", 3, null]));
    }

    #[test]
    fn other_braces_are_left_alone() {
        check(json!("{{ date }} {% x %} {{"), json!("{{ date }} {% x %} {{"));
        check(json!("{{ title }}: {{ steps.2.result }}"), json!("{{ title }}: plain"));
    }

    #[test]
    fn what_was_put_in_is_data() {
        check(json!("{{ steps.1.result.evil }} x"), json!("{{ steps.1.result.id }} x"));
    }

    #[test]
    fn what_is_not_there_is_named() {
        let error = |text: &str| fill(&json!(text), &results).unwrap_err().to_string();
        assert_eq!(
            error("{{ steps.9.result }}"),
            "`{{ steps.9.result }}`: step_9 has no result (yet); it should be among the dependencies"
        );
        assert_eq!(error("{{ steps.1.result.no }}"), "`{{ steps.1.result.no }}`: the result has no `no`");
        assert!(error("{{ steps.1.output }}").contains("not understood"));
    }
}
