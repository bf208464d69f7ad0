//! Google's Gemini CLI.
//!
//! Its exit code is the HTTP status modulo 256; its `result` event tells all.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use wiggum_core::event::{AgentFacts, Trouble, Usage};

use crate::family::{Cli, Profile, Start, Traces, flag, words};
use crate::json::{End, JsonLines, Loose, Reader, decode, detail, kind, shown};
use crate::{Abilities, AgentEvent, AgentSpec, Assignment, Finished, Problem, Session, StreamParser, said};

pub(crate) const PROFILE: Profile = Profile {
    program: "gemini",
    start,
    parser,
    abilities: Abilities {
        live: true,
        calls: true,
        usage: true,
        usage_live: false,
        cost: false,
        model: true,
        bounds_cost: false,
        bounds_tokens: false,
        nudge: false,
        resume: true,
        sandbox: true,
        mcp: false,
    },
    own_paths: &["~/.gemini", "~/.cache/gemini"],
    path_variables: &["GEMINI_CLI_HOME"],
    secrets: &["GEMINI_*", "GOOGLE_*"],
    login: Traces {
        variables: &["GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_APPLICATION_CREDENTIALS"],
        dir_variable: None,
        dir: ".gemini",
        files: &["oauth_creds.json"],
        elsewhere: false,
        hint: "run `gemini` and choose how to log in, or set GEMINI_API_KEY",
    },
};

fn start(spec: &AgentSpec, assignment: &Assignment<'_>) -> Start {
    let mut arguments = words(&["--output-format", "stream-json"]);
    if !spec.says(&["-y", "--yolo", "--approval-mode"]) {
        arguments.push("--yolo".to_owned());
    }
    match assignment.session {
        Session::Fresh => {}
        Session::Named(id) => flag(&mut arguments, "--session-id", id),
        Session::Continued(id) => flag(&mut arguments, "--resume", id),
    }
    if let Some(model) = &spec.model {
        flag(&mut arguments, "--model", model);
    }
    arguments.extend(spec.args.iter().cloned());
    // Whoever starts a loop in a directory trusts it; there is nobody to ask.
    let env = vec![("GEMINI_CLI_TRUST_WORKSPACE", "true")];
    Start { arguments, stdin: Some(assignment.prompt.to_owned()), env }
}

fn parser(cli: &Cli) -> Box<dyn StreamParser> {
    Box::new(JsonLines::new(GeminiStream::default(), &cli.spec))
}

#[derive(Default)]
struct GeminiStream {
    facts: AgentFacts,
    message: String,
    outcome: Option<Outcome>,
    /// Why it last tried again, which it may do for longer than it is let.
    retried: Option<String>,
    /// What it complained about last, which its result may not repeat.
    error: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Event<'a> {
    session_id: Loose<Option<String>>,
    model: Loose<Option<String>>,
    #[serde(borrow)]
    role: Loose<Cow<'a, str>>,
    #[serde(borrow)]
    content: Loose<Cow<'a, str>>,
    tool_name: Loose<String>,
    #[serde(borrow)]
    parameters: Option<&'a RawValue>,
    #[serde(borrow)]
    output: Option<&'a RawValue>,
    #[serde(borrow)]
    status: Loose<Cow<'a, str>>,
    #[serde(borrow)]
    severity: Loose<Cow<'a, str>>,
    message: Loose<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Outcome {
    status: Loose<String>,
    error: Loose<Failure>,
    stats: Loose<Stats>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Failure {
    #[serde(rename = "type")]
    kind: Loose<String>,
    message: Loose<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Stats {
    input_tokens: u64,
    output_tokens: u64,
    cached: u64,
}

impl Reader for GeminiStream {
    fn read(&mut self, line: &str, events: &mut Vec<AgentEvent>) {
        let kind = kind(line);
        if kind == "result" {
            self.outcome = decode(line);
            events.extend(self.usage().map(AgentEvent::Usage));
            events.push(AgentEvent::TurnEnded { last: true });
            return;
        }
        let Some(event) = decode::<Event<'_>>(line) else { return };
        match &*kind {
            "init" => {
                events.extend(event.session_id.0.clone().map(AgentEvent::Session));
                self.facts.session = event.session_id.0;
                events.extend(event.model.0.clone().map(AgentEvent::Model));
                self.facts.model = event.model.0;
            }
            "message" if event.role.0 == "assistant" => {
                self.retried = None;
                self.message.push_str(&event.content.0);
                events.push(AgentEvent::Output(event.content.0.into_owned()));
            }
            "tool_use" => {
                self.retried = None;
                self.facts.tool_calls += 1;
                self.message.clear();
                let detail = event.parameters.map(detail).unwrap_or_default();
                events.push(AgentEvent::ToolCall { name: event.tool_name.0, detail });
            }
            "tool_result" => {
                let text = event.output.map(shown).unwrap_or_default();
                events.push(AgentEvent::ToolResult { text, is_error: event.status.0 == "error" });
            }
            "error" => {
                events.push(AgentEvent::Notice(format!("{}: {}", event.severity.0, event.message.0)));
                self.error = event.message.0;
            }
            _ => {}
        }
    }

    fn overhear(&mut self, line: &str, events: &mut Vec<AgentEvent>) {
        if line.starts_with("Attempt ") && line.contains(" failed") {
            let trouble = said::without_time(line).unwrap_or(Trouble::Overloaded);
            self.retried = Some(line.to_owned());
            events.push(AgentEvent::Retrying { trouble });
        }
    }

    fn finish(&mut self, end: &End<'_>) -> Finished {
        let problem = self.problem(end);
        let usage = self.usage();
        let message = std::mem::take(&mut self.message);
        Finished { message, usage, problem, facts: std::mem::take(&mut self.facts), ..Finished::default() }
    }
}

impl GeminiStream {
    fn usage(&self) -> Option<Usage> {
        let stats = &self.outcome.as_ref()?.stats.0;
        Some(Usage {
            input_tokens: stats.input_tokens.saturating_sub(stats.cached),
            output_tokens: stats.output_tokens,
            cache_read_tokens: stats.cached,
            ..Usage::default()
        })
    }

    fn problem(&self, end: &End<'_>) -> Option<Problem> {
        let Some(outcome) = &self.outcome else {
            let retried = self.retried.as_deref().map(|words| end.retried(words));
            return Some(retried.unwrap_or_else(|| end.cut_short(self.facts.session.is_some())));
        };
        if outcome.status.0 != "success" {
            let failure = &outcome.error.0;
            let words = if failure.message.0.is_empty() { &self.error } else { &failure.message.0 };
            let problem = end.complaint(words);
            return Some(match failure.kind.0.as_str() {
                "FatalTurnLimitedError" => Problem { trouble: Trouble::OwnLimit, ..problem },
                "FatalAuthenticationError" => Problem { trouble: Trouble::Authentication, ..problem },
                _ if failure.message.0.is_empty() && self.message.is_empty() => {
                    Problem::silent(Trouble::Empty)
                }
                _ if words.contains("without a finish reason") => {
                    Problem { trouble: Trouble::Truncated, ..problem }
                }
                "FatalCancellationError" => Problem { trouble: Trouble::Interrupted, ..problem },
                _ => problem,
            });
        }
        self.message.trim().is_empty().then(|| Problem::silent(Trouble::Empty))
    }
}
