//! The YAML inside a plan, read as JSON: params in flow or block form, and lone strings.

use serde_json::{Map, Value};

/// Params of a tool: a mapping, or a list of single entries as people write bullets.
pub(super) fn mapping(text: &str) -> Result<Value, String> {
    if text.trim().is_empty() {
        return Ok(Value::Object(Map::new()));
    }
    let value = match value(text) {
        // `{{ … }}` is a mapping as a key to YAML, and a place for an earlier result to us.
        Err(_) if text.contains("{{") => value(&quoting_places(text))?,
        read => read?,
    };
    match value {
        Value::Object(_) => Ok(value),
        Value::Null => Ok(Value::Object(Map::new())),
        Value::Array(items) => merged(items).ok_or_else(|| "it is a list".to_owned()),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => Err("it is a single value".to_owned()),
    }
}

/// What a scalar says, quotes resolved; the text itself where it is none.
pub(super) fn string(text: &str) -> String {
    let text = text.trim();
    let is_quoted = |quote: char| text.len() > 1 && text.starts_with(quote) && text.ends_with(quote);
    if is_quoted('`') && !text.starts_with("``") {
        return text.trim_matches('`').trim().to_owned();
    }
    if !is_quoted('"') && !is_quoted('\'') {
        return text.to_owned();
    }
    match value(text) {
        Ok(Value::String(said)) => said,
        Ok(_) | Err(_) => text.to_owned(),
    }
}

/// The value of one entry of a mapping, which may go over several lines.
pub(super) fn entry(text: &str) -> Option<String> {
    match value(text).ok()? {
        Value::Object(entries) => match entries.into_iter().next()?.1 {
            Value::String(said) => Some(said.trim().to_owned()),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => None,
        },
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => None,
    }
}

/// `no` is a word here, as in YAML 1.2: the code of a country must not become false.
fn value(text: &str) -> Result<Value, String> {
    let options = serde_saphyr::options! { strict_booleans: true, with_snippet: false };
    serde_saphyr::from_str_with_options(text, options)
        .map_err(|error| error.to_string().lines().next().unwrap_or_default().to_owned())
}

fn merged(items: Vec<Value>) -> Option<Value> {
    let mut all = Map::new();
    for item in items {
        let Value::Object(entries) = item else { return None };
        all.extend(entries);
    }
    Some(Value::Object(all))
}

/// The text with quotes around every `{{ … }}` that stands in none.
fn quoting_places(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    let mut rest = text;
    let mut quote = None;
    while let Some(next) = rest.chars().next() {
        let place = rest.strip_prefix("{{").filter(|_| quote.is_none()).and_then(|inside| inside.find("}}"));
        let length = match place {
            Some(end) => {
                let place = &rest[..end + 4];
                out.push_str(&serde_json::to_string(place).unwrap_or_default());
                place.len()
            }
            None => {
                match quote {
                    None if matches!(next, '"' | '\'') => quote = Some(next),
                    Some(open) if open == next => quote = None,
                    Some(_) | None => {}
                }
                out.push(next);
                next.len_utf8()
            }
        };
        rest = &rest[length..];
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn mappings_in_every_form() {
        let check = |text: &str, expected: Value| assert_eq!(mapping(text), Ok(expected), "{text}");
        check("", json!({}));
        check("{}", json!({}));
        check(
            r#"{to: "a@b.c", subject: "Hi: there", n: 3}"#,
            json!({"to": "a@b.c", "subject": "Hi: there", "n": 3}),
        );
        check("{country: no, ok: true, none: null}", json!({"country": "no", "ok": true, "none": null}));
        check(
            "to: a\ntags: [x, 'y']\nin:\n  deep: 1.5",
            json!({"to": "a", "tags": ["x", "y"], "in": {"deep": 1.5}}),
        );
        check("- to: a\n- cc: b", json!({"to": "a", "cc": "b"}));
        check(
            "{id: {{ steps.1.result.id }}, x: \"{{ a }}\"}",
            json!({"id": "{{ steps.1.result.id }}", "x": "{{ a }}"}),
        );
        check("{\"json\": [1, {\"a\": null}]}", json!({"json": [1, {"a": null}]}));
        check("text: |\n  one\n  two", json!({"text": "one\ntwo\n"}));
    }

    #[test]
    fn what_is_no_mapping() {
        for text in ["[1, 2]", "word", "{a: 1", "{a: 1, a: 2}", "{a: b: c}", "&a [*a, *b]"] {
            assert!(mapping(text).is_err(), "{text}");
        }
        let bomb = "a: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e,*e]\ng: [*f,*f,*f,*f,*f,*f,*f,*f,*f,*f]";
        assert!(mapping(bomb).is_err());
        assert!(mapping(&format!("a: {}", "[".repeat(50_000))).is_err());
    }

    #[test]
    fn strings_lose_their_quotes() {
        for (text, expected) in [
            (" a b ", "a b"),
            ("\"a\\nb\"", "a\nb"),
            ("'it''s'", "it's"),
            ("`tool`", "tool"),
            ("\"half", "\"half"),
            ("\"a\" and \"b\"", "\"a\" and \"b\""),
        ] {
            assert_eq!(string(text), expected);
        }
    }
}
