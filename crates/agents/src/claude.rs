//! Claude Code.

mod stream;
mod wire;

use serde_json::json;

use crate::family::{Cli, Profile, Start, Traces, flag, nudge_hook, words};
use crate::json::JsonLines;
use crate::{Abilities, AgentSpec, Assignment, Session, StreamParser, mcp};

pub(crate) use stream::ClaudeStream;

pub(crate) const PROFILE: Profile = Profile {
    program: "claude",
    start,
    parser,
    abilities: Abilities {
        live: true,
        calls: true,
        usage: true,
        usage_live: true,
        cost: true,
        model: true,
        bounds_cost: true,
        bounds_tokens: false,
        nudge: true,
        resume: true,
        sandbox: true,
        mcp: true,
    },
    own_paths: &["~/.claude", "~/.claude.json", "~/.cache/claude", "~/.cache/claude-cli-nodejs"],
    path_variables: &["CLAUDE_CONFIG_DIR"],
    secrets: &["ANTHROPIC_*", "CLAUDE_*"],
    login: Traces {
        variables: &["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"],
        dir_variable: Some("CLAUDE_CONFIG_DIR"),
        dir: ".claude",
        files: &[".credentials.json"],
        // On a Mac it is in the keychain.
        elsewhere: cfg!(target_os = "macos"),
        hint: "run `claude` and then `/login`, or set ANTHROPIC_API_KEY or CLAUDE_CODE_OAUTH_TOKEN",
    },
};

/// Flags that say what it may do; with one of them we do not say that it may do everything.
const PERMISSION_FLAGS: [&str; 5] = [
    "--permission-mode",
    "--dangerously-skip-permissions",
    "--permission-prompt-tool",
    "--allowedTools",
    "--allowed-tools",
];

fn start(spec: &AgentSpec, assignment: &Assignment<'_>) -> Start {
    let mut arguments = words(&["-p", "--output-format", "stream-json", "--verbose"]);
    if !spec.says(&PERMISSION_FLAGS) {
        arguments.push("--dangerously-skip-permissions".to_owned());
    }
    match assignment.session {
        Session::Fresh => {}
        Session::Named(id) => flag(&mut arguments, "--session-id", id),
        Session::Continued(id) => flag(&mut arguments, "--resume", id),
    }
    if !spec.says(&["--settings"]) {
        flag(&mut arguments, "--settings", &settings(assignment));
    }
    if let Some(server) = assignment.mcp {
        flag(&mut arguments, "--mcp-config", &server.json(&[]));
    }
    if let Some(model) = &spec.model {
        flag(&mut arguments, "--model", model);
    }
    if let Some(limit) = assignment.ceiling.cost_usd.filter(|_| !spec.says(&[BUDGET_FLAG])) {
        flag(&mut arguments, BUDGET_FLAG, &dollars(limit));
    }
    arguments.extend(spec.args.iter().cloned());
    Start { arguments, stdin: Some(assignment.prompt.to_owned()), env: environment(is_root()) }
}

/// The flag by which it is told what it may spend.
const BUDGET_FLAG: &str = "--max-budget-usd";

/// An amount as it takes it: plain digits, and more than nothing.
fn dollars(amount: f64) -> String {
    format!("{:.6}", amount.max(0.000_001))
}

/// After each of its tool calls it asks us whether somebody has something to say. Our own tools it may use
/// whatever its permissions are.
fn settings(assignment: &Assignment<'_>) -> String {
    let hook = json!({ "type": "command", "command": nudge_hook(assignment.wiggum), "timeout": 10 });
    let mut settings = json!({ "hooks": { "PostToolUse": [{ "hooks": [hook] }] } });
    if assignment.mcp.is_some() {
        settings["permissions"] = json!({ "allow": [format!("mcp__{}", mcp::NAME)] });
    }
    settings.to_string()
}

fn environment(root: bool) -> Vec<(&'static str, &'static str)> {
    let mut env = vec![
        // A few seconds of patience; longer waits are ours, where people see and can end them.
        ("CLAUDE_CODE_MAX_RETRIES", "3"),
        // A new version in the middle of a loop would be a surprise.
        ("DISABLE_AUTOUPDATER", "1"),
        // Started from within a session, it is still one of its own.
        ("CLAUDECODE", ""),
    ];
    if root {
        // Without it, it refuses to skip permissions.
        env.push(("IS_SANDBOX", "1"));
    }
    env
}

fn parser(cli: &Cli) -> Box<dyn StreamParser> {
    let stream = ClaudeStream::new(cli.spec.says(&[BUDGET_FLAG]));
    Box::new(JsonLines::new(stream, &cli.spec))
}

#[cfg(unix)]
fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[cfg(not(unix))]
fn is_root() -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_root_is_said_to_be_in_a_sandbox() {
        let says = |root| environment(root).contains(&("IS_SANDBOX", "1"));
        assert_eq!((says(true), says(false)), (true, false));
    }
}
