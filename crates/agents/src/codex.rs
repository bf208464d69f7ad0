//! OpenAI's Codex.
//!
//! Only `turn.completed` is a success and only `turn.failed` tells why it is none: events of the
//! type `error` may come from a request that was tried again, and items of that type are warnings.

use std::borrow::Cow;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use wiggum_core::event::{AgentFacts, Exit, Trouble, Usage};

use crate::family::{Cli, Profile, Start, Traces, flag, nudge_hook, words};
use crate::json::{End, JsonLines, Loose, Reader, decode, kind, one_line, shown};
use crate::tokens::Before;
use crate::{
    Abilities, AgentEvent, AgentSpec, Assignment, Finished, McpServer, Problem, Session, StreamParser, said,
};

pub(crate) const PROFILE: Profile = Profile {
    program: "codex",
    start,
    parser,
    abilities: Abilities {
        live: true,
        calls: true,
        usage: true,
        usage_live: false,
        cost: false,
        model: false,
        bounds_cost: false,
        bounds_tokens: false,
        nudge: true,
        resume: true,
        sandbox: true,
        mcp: true,
    },
    own_paths: &["~/.codex"],
    path_variables: &["CODEX_HOME"],
    secrets: &["OPENAI_*", "CODEX_*", "AZURE_OPENAI_*"],
    login: Traces {
        variables: &["CODEX_API_KEY", "OPENAI_API_KEY"],
        dir_variable: Some("CODEX_HOME"),
        dir: ".codex",
        files: &["auth.json"],
        elsewhere: false,
        hint: "run `codex login`, or set CODEX_API_KEY",
    },
};

/// The variable whose value is the key of the provider that a `config.toml` chooses.
pub(crate) fn key_variable(config: &str) -> Option<String> {
    let config: toml::Table = config.parse().ok()?;
    let provider = config.get("model_provider")?.as_str()?;
    let variable = config.get("model_providers")?.get(provider)?.get("env_key")?.as_str()?;
    Some(variable.to_owned())
}

/// The model that a `config.toml` chooses, by its profile if it has one, unless the arguments choose another.
pub(crate) fn model(config: &str, args: &[String]) -> Option<String> {
    if let Some(model) = argument(args, &["-m", "--model"]).or_else(|| overridden(args, "model")) {
        return Some(model);
    }
    let config: toml::Table = config.parse().ok()?;
    let text = |value: Option<&toml::Value>| value?.as_str().map(str::to_owned);
    let profile = argument(args, &["-p", "--profile"]).or_else(|| overridden(args, "profile"));
    let profile = profile.or_else(|| text(config.get("profile")));
    let of_profile = profile.and_then(|name| text(config.get("profiles")?.get(&name)?.get("model")));
    of_profile.or_else(|| text(config.get("model")))
}

/// The value of a flag, whichever way it is written.
fn argument(args: &[String], flags: &[&str]) -> Option<String> {
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.split_once('=') {
            Some((name, value)) if flags.contains(&name) => return Some(value.to_owned()),
            Some(_) | None if flags.contains(&arg.as_str()) => return args.next().cloned(),
            Some(_) | None => {}
        }
    }
    None
}

/// The value of a setting that an argument replaces, as in `-c model="gpt-5"`.
fn overridden(args: &[String], key: &str) -> Option<String> {
    let settings = args.iter().flat_map(|arg| [arg.as_str(), arg.trim_start_matches("--config=")]);
    let mut values = settings.filter_map(|setting| setting.strip_prefix(key)?.strip_prefix('='));
    values.next_back().map(|value| value.trim_matches(['"', '\'']).to_owned())
}

/// Flags that say what it may do.
const SANDBOX_FLAGS: [&str; 4] =
    ["-s", "--sandbox", "--full-auto", "--dangerously-bypass-approvals-and-sandbox"];

fn start(spec: &AgentSpec, assignment: &Assignment<'_>) -> Start {
    let mut arguments = words(&["exec", "--json", "--skip-git-repo-check"]);
    if !spec.says(&SANDBOX_FLAGS) {
        // Sandboxes do not nest.
        arguments.extend(match spec.sandboxed {
            true => words(&["--dangerously-bypass-approvals-and-sandbox"]),
            false => words(&["--sandbox", "workspace-write"]),
        });
    }
    if let Some(model) = &spec.model {
        flag(&mut arguments, "--model", model);
    }
    if spec.sandboxed {
        // Its hooks want to be trusted, those of the repository with ours: in our sandbox they may run.
        arguments.push("--dangerously-bypass-hook-trust".to_owned());
        flag(&mut arguments, "-c", &nudge_setting(assignment.wiggum));
    }
    for setting in assignment.mcp.into_iter().flat_map(McpServer::toml) {
        flag(&mut arguments, "-c", &setting);
    }
    arguments.extend(spec.args.iter().cloned());
    if let Session::Continued(id) = assignment.session {
        flag(&mut arguments, "resume", id);
    }
    arguments.push("-".to_owned());
    Start { arguments, stdin: Some(assignment.prompt.to_owned()), env: Vec::new() }
}

/// After each of its tool calls it asks us whether somebody has something to say.
fn nudge_setting(wiggum: &Path) -> String {
    // A JSON text is a TOML text as well.
    let command = Value::String(nudge_hook(wiggum));
    format!("hooks.PostToolUse=[{{hooks=[{{type=\"command\",command={command},timeout=10}}]}}]")
}

fn parser(cli: &Cli) -> Box<dyn StreamParser> {
    let stream = CodexStream { before: cli.before.clone(), ..CodexStream::default() };
    Box::new(JsonLines::new(stream, &cli.spec))
}

#[derive(Default)]
struct CodexStream {
    before: Before,
    facts: AgentFacts,
    message: String,
    usage: Option<Usage>,
    /// Tool calls that began and have not ended.
    open: Vec<String>,
    completed: bool,
    failure: Option<String>,
    /// The last error that may or may not have been the end.
    error: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Event<'a> {
    thread_id: Loose<Option<String>>,
    #[serde(borrow)]
    item: Item<'a>,
    usage: Loose<Option<Tokens>>,
    message: Loose<String>,
    error: Loose<Failure>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Item<'a> {
    id: Loose<String>,
    #[serde(borrow, rename = "type")]
    kind: Loose<Cow<'a, str>>,
    text: Loose<String>,
    message: Loose<String>,
    #[serde(borrow)]
    command: Loose<Cow<'a, str>>,
    #[serde(borrow)]
    aggregated_output: Option<&'a RawValue>,
    exit_code: Loose<Option<i64>>,
    #[serde(borrow)]
    status: Loose<Cow<'a, str>>,
    changes: Loose<Vec<Change>>,
    #[serde(borrow)]
    tool: Loose<Cow<'a, str>>,
    #[serde(borrow)]
    server: Loose<Cow<'a, str>>,
    #[serde(borrow)]
    query: Loose<Cow<'a, str>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Change {
    path: String,
    kind: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Failure {
    message: String,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(default)]
struct Tokens {
    input_tokens: u64,
    cached_input_tokens: u64,
    cache_write_input_tokens: u64,
    output_tokens: u64,
}

impl Reader for CodexStream {
    fn read(&mut self, line: &str, events: &mut Vec<AgentEvent>) {
        let kind = kind(line);
        let Some(event) = decode::<Event<'_>>(line) else { return };
        match &*kind {
            "thread.started" => {
                events.extend(event.thread_id.0.clone().map(AgentEvent::Session));
                self.facts.session = event.thread_id.0;
            }
            "item.started" => self.begin(&event.item, events),
            "item.completed" => self.complete(event.item, events),
            "error" => self.complain(event.message.0, events),
            "turn.completed" => {
                self.completed = true;
                self.count(event.usage.0, events);
                events.push(AgentEvent::TurnEnded { last: true });
            }
            "turn.failed" => self.failure = Some(event.error.0.message),
            _ => {}
        }
    }

    fn finish(&mut self, end: &End<'_>) -> Finished {
        let problem = self.problem(end);
        let message = std::mem::take(&mut self.message);
        let facts = std::mem::take(&mut self.facts);
        Finished { message, usage: self.usage, problem, facts, ..Finished::default() }
    }
}

impl CodexStream {
    fn begin(&mut self, item: &Item<'_>, events: &mut Vec<AgentEvent>) {
        if let Some((name, detail)) = item.tool_call() {
            self.open.push(item.id.0.clone());
            self.call(name, detail, events);
        }
    }

    fn call(&mut self, name: String, detail: String, events: &mut Vec<AgentEvent>) {
        self.facts.tool_calls += 1;
        self.message.clear();
        events.push(AgentEvent::ToolCall { name, detail });
    }

    fn complete(&mut self, item: Item<'_>, events: &mut Vec<AgentEvent>) {
        match &*item.kind.0 {
            "agent_message" => {
                events.push(AgentEvent::Output(format!("{}\n", item.text.0)));
                self.message = item.text.0;
            }
            "error" => events.push(AgentEvent::Notice(item.message.0)),
            _ => {
                let Some((name, detail)) = item.tool_call() else { return };
                let known = self.open.iter().position(|id| *id == item.id.0);
                match known {
                    Some(at) => drop(self.open.swap_remove(at)),
                    None => self.call(name, detail, events),
                }
                let is_error = item.status.0 == "failed" || item.exit_code.0.is_some_and(|code| code != 0);
                let text = item.aggregated_output.map(shown).unwrap_or_default();
                events.push(AgentEvent::ToolResult { text, is_error });
            }
        }
    }

    fn complain(&mut self, message: String, events: &mut Vec<AgentEvent>) {
        if message.starts_with("Reconnecting") {
            let trouble = said::without_time(&message).unwrap_or(Trouble::Network);
            events.push(AgentEvent::Retrying { trouble });
        }
        self.error = message;
    }

    /// Figures are those of the whole thread, and input counts what was cached too.
    fn count(&mut self, tokens: Option<Tokens>, events: &mut Vec<AgentEvent>) {
        let Some(tokens) = tokens else { return };
        let thread = self.facts.session.as_deref().unwrap_or_default();
        let usage = self.before.since(
            thread,
            Usage {
                input_tokens: tokens.input_tokens.saturating_sub(tokens.cached_input_tokens),
                output_tokens: tokens.output_tokens,
                cache_read_tokens: tokens.cached_input_tokens,
                cache_write_tokens: tokens.cache_write_input_tokens,
                cost_usd: 0.0,
            },
        );
        self.usage = Some(usage);
        events.push(AgentEvent::Usage(usage));
    }

    fn problem(&mut self, end: &End<'_>) -> Option<Problem> {
        if let Some(message) = self.failure.take() {
            let message = if message.is_empty() { std::mem::take(&mut self.error) } else { message };
            return Some(end.complaint(&message));
        }
        if self.completed {
            return self.message.is_empty().then(|| Problem::silent(Trouble::Empty));
        }
        let began = self.facts.session.is_some();
        if began && !self.error.is_empty() {
            return Some(end.complaint(&self.error));
        }
        let problem = end.cut_short(began);
        // That is how it ends when it is interrupted; everything else it would have told.
        let interrupted = end.exit == Exit::Code { code: 1 } && problem.trouble == Trouble::Truncated;
        Some(if interrupted { Problem::silent(Trouble::Interrupted) } else { problem })
    }
}

impl Item<'_> {
    /// Name and detail, if the item is the use of a tool.
    fn tool_call(&self) -> Option<(String, String)> {
        Some(match &*self.kind.0 {
            "command_execution" => ("shell".to_owned(), one_line(&self.command.0)),
            "file_change" => {
                let changes = self.changes.0.iter().map(|change| format!("{} {}", change.kind, change.path));
                ("edit".to_owned(), one_line(&changes.collect::<Vec<_>>().join(", ")))
            }
            "mcp_tool_call" => (format!("{}.{}", self.server.0, self.tool.0), String::new()),
            "collab_tool_call" => (self.tool.0.to_string(), String::new()),
            "web_search" => ("web_search".to_owned(), one_line(&self.query.0)),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn its_settings_tell_the_model() {
        let config = "model = \"gpt-5.5\"\n[profiles.cheap]\nmodel = \"gpt-5-mini\"\n[profiles.plain]\n";
        let model = |config: &str, args: &[&str]| {
            super::model(config, &args.iter().map(|&arg| arg.to_owned()).collect::<Vec<_>>())
        };
        let check = |args: &[&str], expected: &str| {
            assert_eq!(model(config, args).as_deref(), Some(expected), "{args:?}");
        };
        check(&[], "gpt-5.5");
        check(&["--profile", "cheap"], "gpt-5-mini");
        check(&["-p=plain"], "gpt-5.5");
        check(&["-c", "profile=\"cheap\""], "gpt-5-mini");
        check(&["-m", "o9", "--profile", "cheap"], "o9");
        check(&["-c", "model=\"o9\""], "o9");
        check(&["--config=model=o9"], "o9");
        check(&["-c", "model_provider=\"x\""], "gpt-5.5");
        let chosen = format!("profile = \"cheap\"\n{config}");
        assert_eq!(model(&chosen, &[]).as_deref(), Some("gpt-5-mini"));
        for nothing in ["", "model = 5", "not toml"] {
            assert_eq!(model(nothing, &[]), None);
        }
    }
}
