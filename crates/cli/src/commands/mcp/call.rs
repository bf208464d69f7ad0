//! `wiggum mcp call`: one call of a tool, by hand.

use std::io::{IsTerminal, Read};
use std::process::ExitCode;

use serde_json::{Map, Value, json};
use wiggum_integrations::{CallError, CallResult, Cancel, Tool};

use super::{Desk, INTERRUPTED};
use crate::args::McpCall;
use crate::commands::print_json;
use crate::failure::{FAILURE, Failure};
use crate::term::{self, harmless};

pub(super) fn call(desk: &Desk, args: &McpCall) -> Result<ExitCode, Failure> {
    let given = given(args)?;
    let cancel = Cancel::new();
    desk.heed_interruptions(Some(cancel.clone()))?;
    let params = match given {
        Given::Whole(params) => params,
        Given::Values(values) => typed(&desk.servers.tools(&args.server)?, &args.tool, values),
    };
    let prepared = desk.servers.prepare(&args.server, &args.tool, &params)?;
    match desk.servers.call(&prepared, &params, &cancel) {
        Ok(result) => told(args, &result),
        Err(error) => failed(args, &error, cancel.is_cancelled()),
    }
}

enum Given {
    Whole(Value),
    Values(Vec<(String, String)>),
}

fn given(args: &McpCall) -> Result<Given, Failure> {
    let how = "write --params '{\"name\": \"value\"}', or name=value";
    let Some(text) = &args.params else {
        let pairs = args.values.iter().map(|value| {
            let pair = value.split_once('=').filter(|(name, _)| !name.is_empty());
            pair.map(|(name, value)| (name.to_owned(), value.to_owned()))
                .ok_or_else(|| Failure::usage(format!("`{value}` is no param")).hint(how))
        });
        return Ok(Given::Values(pairs.collect::<Result<_, _>>()?));
    };
    let mut text = text.clone();
    if text == "-" {
        text.clear();
        std::io::stdin()
            .read_to_string(&mut text)
            .map_err(|error| Failure::usage(format!("cannot read the params: {error}")))?;
    }
    let params = serde_json::from_str(&text)
        .map_err(|error| Failure::usage(format!("the params are not JSON: {error}")).hint(how))?;
    Ok(Given::Whole(params))
}

/// Texts as what the tool wants: a number where it wants one, and a text wherever it takes one.
fn typed(tools: &[Tool], tool: &str, values: Vec<(String, String)>) -> Value {
    let parameters = tools.iter().find(|known| known.name == tool).map(Tool::parameters).unwrap_or_default();
    let takes_text = |name: &str| {
        let kind =
            parameters.iter().find(|parameter| parameter.name == name).map(|parameter| &parameter.kind);
        kind.is_some_and(|kind| kind.split(" or ").any(|kind| kind == "string" || kind.starts_with('"')))
    };
    let typed = values.into_iter().map(|(name, text)| {
        let read = if takes_text(&name) { None } else { serde_json::from_str(&text).ok() };
        (name, read.unwrap_or(Value::String(text)))
    });
    Value::Object(typed.collect::<Map<_, _>>())
}

fn told(args: &McpCall, result: &CallResult) -> Result<ExitCode, Failure> {
    let CallResult { text, structured, truncated } = result;
    if *truncated {
        term::note("the result was too large and is cut: see `max_result`\n");
    }
    if args.output.json {
        return print_json(&json!({ "text": text, "structured": structured, "truncated": truncated }));
    }
    match structured {
        Some(structured) if text.is_empty() => print_json(structured),
        // A file gets what the tool said; a terminal is not to be steered by it.
        Some(_) | None if std::io::stdout().is_terminal() => Ok(term::print(&(harmless(text) + "\n"))),
        Some(_) | None => Ok(term::print(&format!("{text}\n"))),
    }
}

fn failed(args: &McpCall, error: &CallError, interrupted: bool) -> Result<ExitCode, Failure> {
    let uncertain = matches!(error, CallError::Uncertain(_));
    let code = if interrupted { INTERRUPTED } else { FAILURE };
    if args.output.json {
        print_json(&json!({ "error": error.to_string(), "uncertain": uncertain }))?;
    }
    let failure = Failure { code, ..Failure::other(harmless(&error.to_string())) };
    Err(if uncertain { failure.hint("look whether it happened before you call it again") } else { failure })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_become_what_the_tool_wants() {
        let tool = Tool {
            name: "t".to_owned(),
            title: None,
            description: None,
            input_schema: json!({ "properties": {
                "text": { "type": "string" }, "count": { "type": "integer" }, "list": { "type": "array" },
                "colour": { "enum": ["1", "2"] }, "maybe": { "anyOf": [{ "type": "string" }, { "type": "null" }] },
            } }),
            read_only: false,
            idempotent: false,
            destructive: true,
        };
        let values = ["text=1", "count=2", "list=[3]", "colour=1", "maybe=4", "other=true", "word=a b"];
        let values = values.iter().filter_map(|value| value.split_once('='));
        let values = values.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let expected = json!({
            "text": "1", "count": 2, "list": [3], "colour": "1", "maybe": "4", "other": true, "word": "a b",
        });
        assert_eq!(typed(&[tool], "t", values), expected);
    }
}
