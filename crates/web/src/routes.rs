//! The paths of the API: each with the types that go in and come out, from which it is carried out and
//! described alike.

use std::collections::BTreeSet;

use http::{Method, StatusCode};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::books::Books;
use crate::refusal::Refusal;

/// Where the API begins.
pub(crate) const ROOT: &str = "/api/v1";

type Describe = fn(&mut SchemaGenerator) -> Schema;
type Run = dyn Fn(&Books, &[String], Input) -> Result<Vec<u8>, Refusal> + Send + Sync;

/// One thing that can be asked or done.
pub(crate) struct Route {
    pub(crate) method: Method,
    /// Below [`ROOT`], with names in braces.
    pub(crate) path: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) query: Option<Describe>,
    pub(crate) body: Option<Describe>,
    pub(crate) answer: Describe,
    run: Box<Run>,
}

/// What came with a request.
#[derive(Debug, Default)]
pub(crate) struct Input {
    pub(crate) query: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

/// Takes nothing.
#[derive(Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Nothing {}

impl Route {
    /// Something to look at.
    pub(crate) fn look<Q, A>(
        path: &'static str,
        summary: &'static str,
        run: impl Fn(&Books, &[String], Q) -> Result<A, Refusal> + Send + Sync + 'static,
    ) -> Self
    where
        Q: DeserializeOwned + JsonSchema,
        A: Serialize + JsonSchema,
    {
        let numbers = numbers_of::<Q>();
        let run = move |books: &Books, names: &[String], input: Input| {
            let query = understood(input.query, &numbers)?;
            tell(&run(books, names, query)?)
        };
        Self {
            method: Method::GET,
            path,
            summary,
            query: Some(SchemaGenerator::root_schema_for::<Q>).map(|_| describe_inline::<Q> as Describe),
            body: None,
            answer: describe::<A>,
            run: Box::new(run),
        }
    }

    /// Something to be done.
    pub(crate) fn act<B, A>(
        method: Method,
        path: &'static str,
        summary: &'static str,
        run: impl Fn(&Books, &[String], B) -> Result<A, Refusal> + Send + Sync + 'static,
    ) -> Self
    where
        B: DeserializeOwned + JsonSchema,
        A: Serialize + JsonSchema,
    {
        let run = move |books: &Books, names: &[String], input: Input| {
            understood::<Nothing>(input.query, &BTreeSet::new())?;
            // What needs nothing said may be asked for without a word.
            let body = if input.body.is_empty() { b"{}" } else { input.body.as_slice() };
            let body = serde_json::from_slice(body).map_err(|error| {
                Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, format!("the body does not fit: {error}"))
                    .hint("openapi.json says what it has")
            })?;
            tell(&run(books, names, body)?)
        };
        Self {
            method,
            path,
            summary,
            query: None,
            body: Some(describe::<B>),
            answer: describe::<A>,
            run: Box::new(run),
        }
    }

    /// The names in its path.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
    }

    /// What stands for its names in a path, if that is one of its own.
    pub(crate) fn fits(&self, parts: &[String]) -> Option<Vec<String>> {
        let mut names = Vec::new();
        let own = self.path.split('/').skip(1);
        if own.clone().count() != parts.len() {
            return None;
        }
        for (own, part) in own.zip(parts) {
            if own.starts_with('{') {
                names.push(part.clone());
            } else if own != part {
                return None;
            }
        }
        Some(names)
    }

    pub(crate) fn run(&self, books: &Books, names: &[String], input: Input) -> Result<Vec<u8>, Refusal> {
        (self.run)(books, names, input)
    }
}

fn describe<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

fn describe_inline<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    T::json_schema(generator)
}

/// Which fields of a query are numbers; all of it comes as text.
fn numbers_of<Q: JsonSchema>() -> BTreeSet<String> {
    let schema = schemars::schema_for!(Q).to_value();
    let Some(fields) = schema["properties"].as_object() else { return BTreeSet::new() };
    let is_number = |field: &Value| match &field["type"] {
        Value::String(kind) => kind == "integer",
        Value::Array(kinds) => kinds.iter().any(|kind| kind == "integer"),
        _ => false,
    };
    fields.iter().filter(|(_, field)| is_number(field)).map(|(name, _)| name.clone()).collect()
}

fn understood<Q: DeserializeOwned>(
    query: Vec<(String, String)>,
    numbers: &BTreeSet<String>,
) -> Result<Q, Refusal> {
    let wrong = |why: String| Refusal::new(StatusCode::BAD_REQUEST, format!("the query does not fit: {why}"));
    let mut fields = Map::new();
    for (name, text) in query {
        let value = if numbers.contains(&name) {
            if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
                return Err(wrong(format!("`{name}` is not a whole number")));
            }
            // There are no more events than that.
            text.parse().unwrap_or(u64::MAX).into()
        } else {
            text.into()
        };
        if fields.insert(name.clone(), value).is_some() {
            return Err(wrong(format!("`{name}` is there twice")));
        }
    }
    serde_json::from_value(Value::Object(fields)).map_err(|error| wrong(error.to_string()))
}

fn tell(answer: &impl Serialize) -> Result<Vec<u8>, Refusal> {
    serde_json::to_vec(answer).map_err(|error| {
        Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, format!("cannot be told as JSON: {error}"))
    })
}

/// The parts of a path, decoded; none where it is no path of ours.
pub(crate) fn parts(path: &str) -> Option<Vec<String>> {
    path.strip_prefix('/')?.split('/').map(|part| decode(part, false).filter(|part| is_name(part))).collect()
}

fn is_name(part: &str) -> bool {
    !part.is_empty() && !part.chars().any(char::is_control)
}

/// The pairs of a query, decoded.
pub(crate) fn pairs(query: &str) -> Option<Vec<(String, String)>> {
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        Some((decode(name, true)?, decode(value, true)?))
    };
    query.split('&').filter(|text| !text.is_empty()).map(pair).collect()
}

fn decode(text: &str, plus: bool) -> Option<String> {
    let mut bytes = text.bytes();
    let mut out = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'%' => {
                let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
                let (high, low) = (digit(bytes.next())?, digit(bytes.next())?);
                u8::try_from(high * 16 + low).ok()?
            }
            b'+' if plus => b' ',
            byte => byte,
        });
    }
    String::from_utf8(out).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_taken_apart_before_they_are_decoded() {
        assert_eq!(parts("/loops/a%2Fb/x").unwrap(), ["loops", "a/b", "x"]);
        for path in ["", "loops", "/loops//x", "/a%00b", "/a%zz", "/a%f", "/%ff", "/a%0a"] {
            assert!(parts(path).is_none(), "{path}");
        }
    }

    #[test]
    fn queries_are_pairs() {
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(pairs("a=1&b=x+y%26&c").unwrap(), [pair("a", "1"), pair("b", "x y&"), pair("c", "")]);
        assert!(pairs("a=%").is_none());
    }
}
