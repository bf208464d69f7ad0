//! GitHub's Copilot CLI.
//!
//! It tells no tokens. On autopilot it talks to itself until it calls the task complete or has gone
//! on as often as it may; the summary it gives then is its last word.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use wiggum_core::event::{AgentFacts, Trouble, Usage};

use crate::family::{Cli, Profile, Start, Traces, flag, words};
use crate::json::{End, JsonLines, Loose, Reader, decode, detail, kind, shown};
use crate::{Abilities, AgentEvent, AgentSpec, Assignment, Finished, Problem, Session, StreamParser, said};

pub(crate) const PROFILE: Profile = Profile {
    program: "copilot",
    start,
    parser,
    abilities: Abilities {
        live: true,
        calls: true,
        usage: false,
        usage_live: false,
        cost: false,
        model: true,
        bounds_cost: false,
        bounds_tokens: false,
        nudge: false,
        resume: true,
        sandbox: true,
        mcp: true,
    },
    own_paths: &["~/.copilot", "~/.cache/copilot"],
    path_variables: &["COPILOT_HOME"],
    secrets: &["COPILOT_*", "GH_TOKEN", "GITHUB_TOKEN", "GITHUB_COPILOT_*"],
    login: Traces {
        variables: &["COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN", "COPILOT_PROVIDER_BASE_URL"],
        dir_variable: Some("COPILOT_HOME"),
        dir: ".copilot",
        files: &[],
        // In a keychain, or with `gh`.
        elsewhere: true,
        hint: "run `copilot login`",
    },
};

/// Flags that say what it may do.
const PERMISSION_FLAGS: [&str; 5] =
    ["--allow-all-tools", "--allow-all", "--yolo", "--allow-tool", "--available-tools"];

fn start(spec: &AgentSpec, assignment: &Assignment<'_>) -> Start {
    // There is nobody to ask, and a question would be its last word.
    let mut arguments = words(&["--output-format", "json", "--no-ask-user"]);
    if !spec.says(&PERMISSION_FLAGS) {
        arguments.push("--allow-all-tools".to_owned());
    }
    match assignment.session {
        Session::Fresh => {}
        Session::Named(id) => flag(&mut arguments, "--session-id", id),
        Session::Continued(id) => arguments.push(format!("--resume={id}")),
    }
    if let Some(model) = &spec.model {
        flag(&mut arguments, "--model", model);
    }
    if let Some(server) = assignment.mcp {
        let more = [("type", "local".into()), ("tools", vec!["*"].into())];
        flag(&mut arguments, "--additional-mcp-config", &server.json(&more));
    }
    arguments.extend(spec.args.iter().cloned());
    let env = vec![("COPILOT_AUTO_UPDATE", "false")];
    Start { arguments, stdin: Some(assignment.prompt.to_owned()), env }
}

fn parser(cli: &Cli) -> Box<dyn StreamParser> {
    Box::new(JsonLines::new(CopilotStream::default(), &cli.spec))
}

#[derive(Default)]
struct CopilotStream {
    facts: AgentFacts,
    message: String,
    usage: Option<Usage>,
    error: Option<Failure>,
    /// Of the last request that failed, if there was an answer.
    last_status: Option<u16>,
    /// In a row.
    retries: u32,
    cap_reached: bool,
    /// Tool calls it was not permitted.
    denied: u32,
    /// Its own exit code.
    exit: Option<i64>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Event<'a> {
    #[serde(borrow)]
    data: Data<'a>,
    #[serde(rename = "sessionId")]
    session: Loose<Option<String>>,
    #[serde(rename = "exitCode")]
    exit: Loose<Option<i64>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Data<'a> {
    #[serde(borrow)]
    content: Loose<Cow<'a, str>>,
    model: Loose<Option<String>>,
    /// Of the call whose sub-agent speaks.
    parent_tool_call_id: Loose<Option<String>>,
    tool_name: Loose<String>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    success: Loose<Option<bool>>,
    #[serde(borrow)]
    result: Loose<ToolResult<'a>>,
    #[serde(borrow)]
    error: Loose<ToolFailure<'a>>,
    #[serde(borrow)]
    summary: Loose<Cow<'a, str>>,
    #[serde(borrow)]
    reason: Loose<Cow<'a, str>>,
    error_type: Loose<String>,
    message: Loose<String>,
    status_code: Loose<Option<u16>>,
    input_tokens: Loose<u64>,
    output_tokens: Loose<u64>,
    cache_read_tokens: Loose<u64>,
    cache_write_tokens: Loose<u64>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ToolResult<'a> {
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ToolFailure<'a> {
    #[serde(borrow)]
    code: Loose<Cow<'a, str>>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
}

struct Failure {
    kind: String,
    message: String,
    status: Option<u16>,
}

/// The only events that are read, of some thirty.
const READ: [&str; 10] = [
    "assistant.message",
    "assistant.turn_retry",
    "assistant.usage",
    "tool.execution_start",
    "tool.execution_complete",
    "model.call_failure",
    "session.error",
    "session.task_complete",
    "session.autopilot_stopped",
    "result",
];

impl Reader for CopilotStream {
    fn read(&mut self, line: &str, events: &mut Vec<AgentEvent>) {
        let kind = kind(line);
        if !READ.contains(&&*kind) {
            return;
        }
        let Some(event) = decode::<Event<'_>>(line) else { return };
        let data = event.data;
        match &*kind {
            "assistant.message" => self.hear(data, events),
            "assistant.usage" => self.count(&data, events),
            "tool.execution_start" => {
                self.facts.tool_calls += 1;
                let detail = data.arguments.map(detail).unwrap_or_default();
                events.push(AgentEvent::ToolCall { name: data.tool_name.0, detail });
            }
            "tool.execution_complete" => self.tool_ended(&data, events),
            "model.call_failure" => self.last_status = data.status_code.0,
            "assistant.turn_retry" => self.retry(events),
            "session.error" => {
                let (kind, message) = (data.error_type.0, data.message.0);
                self.error = Some(Failure { kind, message, status: data.status_code.0 });
            }
            "session.task_complete" => self.message = data.summary.0.into_owned(),
            "session.autopilot_stopped" => self.cap_reached = data.reason.0 == "cap_reached",
            _ => {
                events.extend(event.session.0.clone().map(AgentEvent::Session));
                self.facts.session = event.session.0;
                self.exit = event.exit.0.or(Some(0));
                events.push(AgentEvent::TurnEnded { last: true });
            }
        }
    }

    fn finish(&mut self, end: &End<'_>) -> Finished {
        let problem = self.problem(end);
        let message = std::mem::take(&mut self.message);
        let facts = std::mem::take(&mut self.facts);
        Finished { message, usage: self.usage, problem, facts, ..Finished::default() }
    }
}

impl CopilotStream {
    fn hear(&mut self, data: Data<'_>, events: &mut Vec<AgentEvent>) {
        if data.parent_tool_call_id.0.is_some() {
            return;
        }
        // An answer came after all.
        self.error = None;
        self.retries = 0;
        if data.model.0.is_some() && data.model.0 != self.facts.model {
            events.extend(data.model.0.clone().map(AgentEvent::Model));
            self.facts.model = data.model.0;
        }
        self.message = data.content.0.into_owned();
        if !self.message.is_empty() {
            events.push(AgentEvent::Output(format!("{}\n", self.message)));
        }
    }

    fn retry(&mut self, events: &mut Vec<AgentEvent>) {
        self.retries += 1;
        let trouble = self.last_status.map_or(Some(Trouble::Network), said::by_status);
        match trouble.unwrap_or(Trouble::Other) {
            // A token that ran out is renewed before it tries again.
            Trouble::Authentication if self.retries == 1 => {}
            trouble => events.push(AgentEvent::Retrying { trouble }),
        }
    }

    fn count(&mut self, data: &Data<'_>, events: &mut Vec<AgentEvent>) {
        let usage = self.usage.get_or_insert_default();
        *usage += Usage {
            input_tokens: data.input_tokens.0.saturating_sub(data.cache_read_tokens.0),
            output_tokens: data.output_tokens.0,
            cache_read_tokens: data.cache_read_tokens.0,
            cache_write_tokens: data.cache_write_tokens.0,
            cost_usd: 0.0,
        };
        events.push(AgentEvent::Usage(*usage));
    }

    fn tool_ended(&mut self, data: &Data<'_>, events: &mut Vec<AgentEvent>) {
        if data.error.0.code.0 == "denied" {
            self.denied += 1;
        }
        let text = data.result.0.content.or(data.error.0.message).map(shown).unwrap_or_default();
        events.push(AgentEvent::ToolResult { text, is_error: data.success.0 == Some(false) });
    }

    fn problem(&self, end: &End<'_>) -> Option<Problem> {
        if let Some(failure) = &self.error {
            let words = end.complaint(&failure.message);
            let trouble = match (failure.kind.as_str(), failure.status) {
                ("authentication" | "authorization", _) => Trouble::Authentication,
                _ if failure.message.starts_with("No response was returned") => Trouble::Empty,
                ("context_limit", _) => Trouble::ContextFull,
                ("quota", _) if !matches!(words.trouble, Trouble::UsageLimit { .. }) => {
                    Trouble::UsageLimit { resets_at: None }
                }
                (_, Some(status)) if words.trouble == Trouble::Other => {
                    said::by_status(status).unwrap_or(Trouble::Other)
                }
                // No status means no answer, or none to its end, however often it tried.
                ("query", None) if words.trouble == Trouble::Other && self.last_status.is_none() => {
                    Trouble::Network
                }
                _ => words.trouble,
            };
            return Some(Problem { trouble, message: words.message });
        }
        let trouble = match self.exit {
            None => return Some(end.cut_short(self.facts.tool_calls > 0 || !self.message.is_empty())),
            Some(0) if self.cap_reached => Trouble::OwnLimit,
            Some(0) if self.message.trim().is_empty() => Trouble::Empty,
            Some(0) if self.denied > 0 && self.denied >= self.facts.tool_calls => Trouble::PermissionDenied,
            Some(0) => return None,
            Some(_) => Trouble::Other,
        };
        Some(Problem::silent(trouble))
    }
}
