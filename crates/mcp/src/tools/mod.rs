//! The tools, each with words that teach, schemas for what goes in and comes out, and hints for clients.

mod agent;
mod loops;
mod people;
mod tasks;

use rmcp::handler::server::tool::schema_for_input;
use rmcp::model::{Tool, ToolAnnotations};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use std::sync::Arc;

pub(crate) use loops::{list as list_loops, status};

use crate::office::{Audience, Office};
use crate::refusal::Refusal;

/// How many entries of a long list are shown.
pub(crate) const MOST: usize = 200;

/// A tool, for whom it is, and what it does.
pub(crate) struct Entry {
    pub(crate) tool: Tool,
    whom: Whom,
    run: Box<Run>,
}

type Run = dyn Fn(&Office, Value) -> Result<Value, Refusal> + Send + Sync;

/// For whom a tool is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whom {
    /// People's programs only: it decides something.
    Clients,
    /// The agent of a loop only: it speaks for itself.
    Agents,
    Both,
}

/// What a tool does to the world, in the words of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    Reads,
    /// Adds something; twice is twice.
    Adds,
    /// Twice is as once.
    Sets,
    /// Starts or ends the work of others, or decides for them.
    Acts,
}

/// What is known of a tool beside its input.
pub(crate) struct About {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) description: &'static str,
    pub(crate) output: Value,
    pub(crate) effect: Effect,
    pub(crate) whom: Whom,
}

impl Entry {
    pub(crate) fn new<I: DeserializeOwned + JsonSchema + 'static>(
        about: About,
        run: impl Fn(&Office, I) -> Result<Value, Refusal> + Send + Sync + 'static,
    ) -> Self {
        let About { name, title, description, output, effect, whom } = about;
        let input = schema_for_input::<I>().unwrap_or_default();
        let hints = ToolAnnotations::with_title(title).open_world(effect == Effect::Acts);
        let hints = match effect {
            Effect::Reads => hints.read_only(true),
            Effect::Adds => hints.read_only(false).destructive(false).idempotent(false),
            Effect::Sets => hints.read_only(false).destructive(false).idempotent(true),
            Effect::Acts => hints.read_only(false).destructive(true).idempotent(false),
        };
        let tool = Tool::new(name, description, input)
            .with_title(title)
            .with_raw_output_schema(Arc::new(object(output)))
            .with_annotations(hints);
        let run = move |office: &Office, arguments: Value| {
            let input = serde_json::from_value(arguments).map_err(|error| {
                Refusal::new(format!("the arguments of `{name}` do not fit: {error}"))
                    .hint("its input schema says which there are")
            })?;
            run(office, input)
        };
        Self { tool, whom, run: Box::new(run) }
    }

    pub(crate) fn run(&self, office: &Office, arguments: Value) -> Result<Value, Refusal> {
        (self.run)(office, arguments)
    }

    pub(crate) fn is_for(&self, audience: &Audience) -> bool {
        match (self.whom, audience) {
            (Whom::Both, _) | (Whom::Clients, Audience::Client) | (Whom::Agents, Audience::Agent(_)) => true,
            (Whom::Clients, Audience::Agent(_)) | (Whom::Agents, Audience::Client) => false,
        }
    }

    pub(crate) fn is_read_only(&self) -> bool {
        self.tool.annotations.as_ref().and_then(|hints| hints.read_only_hint) == Some(true)
    }
}

/// Every tool there is.
pub(crate) fn all() -> Vec<Entry> {
    [loops::entries(), tasks::entries(), people::entries(), agent::entries()].into_iter().flatten().collect()
}

/// Names the loop that is meant.
#[derive(Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WhichLoop {
    /// Name of a loop, or the beginning of its id (see `list_loops`). Left out: the loop that runs, else the
    /// one that ran last
    #[serde(rename = "loop")]
    pub(crate) which: Option<String>,
}

/// Takes nothing.
#[derive(Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Nothing {}

/// A schema of an object with these properties, all of which are there.
pub(crate) fn shape(properties: Value) -> Value {
    let required: Vec<&String> = properties.as_object().map(|all| all.keys().collect()).unwrap_or_default();
    json!({ "type": "object", "properties": properties, "required": required })
}

/// A schema of a list of objects.
pub(crate) fn list_of(what: &str) -> Value {
    json!({ "type": "array", "description": what, "items": { "type": "object" } })
}

pub(crate) fn text(what: &str) -> Value {
    json!({ "type": "string", "description": what })
}

pub(crate) fn whole(what: &str) -> Value {
    json!({ "type": "integer", "description": what })
}

/// What became of a request, which several tools tell.
pub(crate) fn reply_shape() -> Value {
    shape(json!({
        "state": { "type": "string", "enum": ["done", "kept", "waiting"],
            "description": "done: the engine took it up; kept: no engine runs, the next run takes it up; \
                            waiting: the engine is busy" },
        "message": text("The same in words"),
    }))
}

pub(crate) fn value(of: &impl serde::Serialize) -> Result<Value, Refusal> {
    serde_json::to_value(of).map_err(|error| Refusal::new(format!("cannot be told as JSON: {error}")))
}

/// Keeps the newest of a list that may be long, and says how many are left out.
pub(crate) fn newest(of: &mut Value, field: &str) {
    let Some(list) = of.get_mut(field).and_then(Value::as_array_mut) else { return };
    let omitted = list.len().saturating_sub(MOST);
    list.drain(..omitted);
    if omitted > 0
        && let Some(object) = of.as_object_mut()
    {
        object.insert(format!("{field}_omitted"), omitted.into());
    }
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::office::Assignment;

    fn names(audience: &Audience) -> BTreeSet<String> {
        let offered = all().into_iter().filter(|entry| entry.is_for(audience));
        offered.map(|entry| entry.tool.name.to_string()).collect()
    }

    #[test]
    fn every_tool_teaches_and_says_what_goes_in_and_out() {
        let mut seen = BTreeSet::new();
        for Entry { tool, .. } in all() {
            assert!(seen.insert(tool.name.clone()), "{} is there twice", tool.name);
            assert!(tool.title.is_some() && tool.annotations.is_some(), "{}", tool.name);
            assert!(tool.description.as_ref().is_some_and(|text| text.len() > 60), "{}", tool.name);
            assert_eq!(tool.input_schema["type"], "object", "{}", tool.name);
            assert_eq!(tool.input_schema["additionalProperties"], false, "{}", tool.name);
            assert_eq!(tool.output_schema.as_ref().unwrap()["type"], "object", "{}", tool.name);
        }
    }

    #[test]
    fn an_agent_is_not_offered_what_only_people_may_do() {
        let assignment = Assignment {
            loop_id: "l".to_owned(),
            task: "t".to_owned(),
            iteration: 1,
            attempt: 1,
            reports: "/nowhere".into(),
        };
        let agents: Vec<String> = names(&Audience::Agent(assignment)).into_iter().collect();
        assert_eq!(
            agents,
            [
                "add_task",
                "checkpoint",
                "claim_done",
                "list_tasks",
                "raise_escalation",
                "report_progress",
                "request_handoff",
                "status",
                "task_evidence",
            ]
        );
    }
}
