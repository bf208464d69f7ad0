//! opencode.
//!
//! No event says that it is finished: the last step's reason does. Figures come per step, and are
//! added up. While it waits for a provider that is out of order only its log tells, so that goes to
//! standard error.

use serde::Deserialize;
use serde_json::value::RawValue;
use wiggum_core::event::{AgentFacts, Trouble, Usage};

use crate::family::{Cli, Profile, Start, Traces, flag, words};
use crate::json::{End, JsonLines, Loose, Reader, decode, detail, kind, shown};
use crate::{Abilities, AgentEvent, AgentSpec, Assignment, Finished, Problem, Session, StreamParser, said};

pub(crate) const PROFILE: Profile = Profile {
    program: "opencode",
    start,
    parser,
    abilities: Abilities {
        live: true,
        calls: false,
        usage: true,
        usage_live: true,
        cost: true,
        model: false,
        bounds_cost: false,
        bounds_tokens: false,
        nudge: false,
        resume: true,
        sandbox: false,
        mcp: false,
    },
    own_paths: &[
        "~/.config/opencode",
        "~/.local/share/opencode",
        "~/.local/state/opencode",
        "~/.cache/opencode",
        "~/.npm",
    ],
    path_variables: &[
        "XDG_CONFIG_HOME/opencode",
        "XDG_DATA_HOME/opencode",
        "XDG_STATE_HOME/opencode",
        "XDG_CACHE_HOME/opencode",
    ],
    // It talks to any provider; which one, its configuration says.
    secrets: &[
        "OPENCODE_*",
        "ANTHROPIC_*",
        "OPENAI_*",
        "GEMINI_*",
        "GOOGLE_*",
        "OPENROUTER_*",
        "GROQ_*",
        "MISTRAL_*",
        "DEEPSEEK_*",
        "XAI_*",
    ],
    login: Traces {
        variables: &["OPENCODE_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY"],
        dir_variable: None,
        dir: ".local/share/opencode",
        files: &["auth.json"],
        // Models on this machine need no login.
        elsewhere: true,
        hint: "run `opencode auth login`",
    },
};

fn start(spec: &AgentSpec, assignment: &Assignment<'_>) -> Start {
    let mut arguments = words(&["run", "--format", "json", "--print-logs", "--log-level", "ERROR"]);
    if !spec.says(&["--auto"]) {
        arguments.push("--auto".to_owned());
    }
    if let Session::Continued(id) = assignment.session {
        flag(&mut arguments, "--session", id);
    }
    if let Some(model) = &spec.model {
        flag(&mut arguments, "--model", model);
    }
    arguments.extend(spec.args.iter().cloned());
    let env = vec![("OPENCODE_DISABLE_AUTOUPDATE", "1")];
    Start { arguments, stdin: Some(assignment.prompt.to_owned()), env }
}

fn parser(cli: &Cli) -> Box<dyn StreamParser> {
    Box::new(JsonLines::new(OpencodeStream::default(), &cli.spec))
}

#[derive(Default)]
struct OpencodeStream {
    facts: AgentFacts,
    message: String,
    usage: Option<Usage>,
    /// Why the last step ended.
    reason: String,
    error: Option<Failure>,
    /// Why it last tried again.
    retried: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Event<'a> {
    #[serde(rename = "sessionID")]
    session: Loose<Option<String>>,
    #[serde(borrow)]
    part: Part<'a>,
    error: Loose<Option<Failure>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Part<'a> {
    text: Loose<String>,
    tool: Loose<String>,
    #[serde(borrow)]
    state: Loose<ToolState<'a>>,
    reason: Loose<String>,
    tokens: Loose<Tokens>,
    cost: Loose<f64>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ToolState<'a> {
    status: Loose<String>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    #[serde(borrow)]
    output: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(default)]
struct Tokens {
    input: u64,
    output: u64,
    reasoning: u64,
    cache: Cache,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(default)]
struct Cache {
    read: u64,
    write: u64,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Failure {
    name: Loose<String>,
    data: Loose<FailureData>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct FailureData {
    message: Loose<String>,
    status_code: Loose<Option<u16>>,
}

impl Reader for OpencodeStream {
    fn read(&mut self, line: &str, events: &mut Vec<AgentEvent>) {
        let kind = kind(line);
        let Some(event) = decode::<Event<'_>>(line) else { return };
        if self.facts.session.is_none() && event.session.0.is_some() {
            events.extend(event.session.0.clone().map(AgentEvent::Session));
            self.facts.session = event.session.0;
        }
        let part = event.part;
        match &*kind {
            "step_start" => self.message.clear(),
            "text" => {
                events.push(AgentEvent::Output(format!("{}\n", part.text.0)));
                if !self.message.is_empty() {
                    self.message.push('\n');
                }
                self.message.push_str(&part.text.0);
            }
            "tool_use" => self.tool(part, events),
            "step_finish" => {
                self.error = None;
                self.retried = None;
                self.count(&part, events);
                self.reason = part.reason.0;
                match self.reason.as_str() {
                    "stop" => events.push(AgentEvent::TurnEnded { last: true }),
                    "tool-calls" => events.push(AgentEvent::TurnEnded { last: false }),
                    _ => {}
                }
            }
            "error" => self.error = event.error.0,
            _ => {}
        }
    }

    fn overhear(&mut self, line: &str, events: &mut Vec<AgentEvent>) {
        if !line.contains("message=\"stream error\"") {
            return;
        }
        let message = line.split_once("error.error=").map_or(line, |(_, words)| words.trim_matches('"'));
        let trouble = said::without_time(message).unwrap_or(Trouble::Other);
        self.retried = Some(message.to_owned());
        events.push(AgentEvent::Retrying { trouble });
    }

    fn finish(&mut self, end: &End<'_>) -> Finished {
        let problem = self.problem(end);
        let message = std::mem::take(&mut self.message);
        let facts = std::mem::take(&mut self.facts);
        Finished { message, usage: self.usage, problem, facts, ..Finished::default() }
    }
}

impl OpencodeStream {
    /// A call is told when it has ended.
    fn tool(&mut self, part: Part<'_>, events: &mut Vec<AgentEvent>) {
        self.facts.tool_calls += 1;
        self.message.clear();
        let state = part.state.0;
        let detail = state.input.map(detail).unwrap_or_default();
        events.push(AgentEvent::ToolCall { name: part.tool.0, detail });
        let text = state.output.or(state.error).map(shown).unwrap_or_default();
        events.push(AgentEvent::ToolResult { text, is_error: state.status.0 == "error" });
    }

    fn count(&mut self, part: &Part<'_>, events: &mut Vec<AgentEvent>) {
        let tokens = part.tokens.0;
        let usage = self.usage.get_or_insert_default();
        *usage += Usage {
            input_tokens: tokens.input,
            output_tokens: tokens.output.saturating_add(tokens.reasoning),
            cache_read_tokens: tokens.cache.read,
            cache_write_tokens: tokens.cache.write,
            cost_usd: part.cost.0,
        };
        events.push(AgentEvent::Usage(*usage));
    }

    fn problem(&self, end: &End<'_>) -> Option<Problem> {
        if let Some(failure) = &self.error {
            return Some(failure.problem(end));
        }
        let trouble = match self.reason.as_str() {
            "stop" if !self.message.trim().is_empty() => return None,
            "stop" => Trouble::Empty,
            "content-filter" => Trouble::Refused,
            "length" => Trouble::Truncated,
            _ => {
                let retried = self.retried.as_deref().map(|words| end.retried(words));
                return Some(retried.unwrap_or_else(|| end.cut_short(self.facts.session.is_some())));
            }
        };
        Some(Problem::silent(trouble))
    }
}

impl Failure {
    fn problem(&self, end: &End<'_>) -> Problem {
        let data = &self.data.0;
        let words = end.complaint(&data.message.0);
        let trouble = match (self.name.0.as_str(), data.status_code.0) {
            ("ProviderAuthError" | "ProviderModelNotFoundError", _) => Trouble::Authentication,
            ("ContextOverflowError", _) => Trouble::ContextFull,
            ("MessageAbortedError", _) => Trouble::Interrupted,
            ("MessageOutputLengthError", _) => Trouble::Truncated,
            (_, Some(status)) if words.trouble == Trouble::Other => {
                said::by_status(status).unwrap_or(Trouble::Other)
            }
            _ => words.trouble,
        };
        Problem { trouble, ..words }
    }
}
