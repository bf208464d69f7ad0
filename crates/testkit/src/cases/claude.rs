//! Claude Code.

use rustix::process::Signal;
use serde_json::json;

use crate::agents::Agent;
use crate::case::{Case, Moment};
use crate::scenario::{Cut, HttpError, Scenario, Turn, Usage, When};

const PLAIN: [&str; 5] = ["-p", "write hello", "--output-format", "stream-json", "--verbose"];

const SESSION: &str = "5b0f3c52-6d0a-4f6b-9a53-0d3c8a3d1e11";

/// Some day in 2036.
const FAR: u64 = 2_110_086_276;

pub(super) fn cases() -> Vec<Case> {
    let mut all = endings();
    all.extend(provider_faults());
    all.extend(limits());
    all.extend(interruptions());
    all.extend(sessions());
    all
}

fn case(name: &'static str, scenario: impl Into<Scenario>) -> Case {
    // Its own retries take minutes; the engine does better.
    let case = Case::new(Agent::Claude, name, scenario).with("CLAUDE_CODE_MAX_RETRIES", "1");
    case.with_arguments(&bold(&[]))
}

/// The usual arguments, with all permissions, and some more.
fn bold<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&PLAIN, &["--dangerously-skip-permissions"][..], more].concat()
}

fn bash(command: &str) -> Turn {
    Turn::calls("Bash", json!({"command": command, "description": "a step"}))
}

fn done() -> Turn {
    Turn::says("Done.\n\n<promise>DONE</promise>")
}

fn endings() -> Vec<Case> {
    let usage = Usage { cache_read: 800, cache_write: 300, ..Usage::default() };
    let write = json!({"file_path": "${cwd}/second.txt", "content": "second\n"});
    let write_first = bash("printf 'hello\\n' > hello.txt && ls");
    let hook = r#"{"hooks":{"Stop":[{"hooks":[{"type":"command",
        "command":"echo '{\"decision\":\"block\",\"reason\":\"not yet\"}'"}]}]}}"#;
    let agent = json!({"description": "sub", "prompt": "SUBTASK do it", "subagent_type": "general-purpose"});
    vec![
        case(
            "success",
            Scenario::from([
                Turn { text: "I will write the file.".to_owned(), ..write_first }.thinking("Two files."),
                Turn::calls("Write", write),
                done(),
            ])
            .usage(usage),
        ),
        case(
            "parallel_tools",
            [
                bash("echo one > one.txt").and_calls("Bash", json!({"command": "false", "description": "x"})),
                done(),
            ],
        ),
        case(
            "subagent",
            [
                Turn::says("the subagent says hi").when(When::First("SUBTASK".to_owned())),
                Turn::calls("Agent", agent),
                done(),
            ],
        ),
        case("max_turns", [bash("date").forever()]).with_arguments(&bold(&["--max-turns", "1"])),
        case("max_budget", [bash("date").uses(Usage { input: 900_000, ..Usage::default() }).forever()])
            .with_arguments(&bold(&["--max-budget-usd", "1"])),
        case("permission_denied", [bash("touch a.txt"), done()]).with_arguments(&PLAIN),
        case("truncated_stream", [Turn::says("half an answer, and no end").cut(Cut::End)]),
        case("truncated_later", [bash("date"), Turn::says("half an answer, and no end").cut(Cut::End)]),
        case("refusal", [Turn::says("I will not.").stops_for("refusal")]),
        case("max_tokens", [Turn::says("first half").stops_for("max_tokens"), done()]),
        case("empty_result", [Turn::says("I think I am done").forever()]).file(".claude/settings.json", hook),
        case("background_child", [background("sleep 300"), done()]),
        case("not_verbose", [done()]).with_arguments(&PLAIN[..4]),
    ]
}

fn background(command: &str) -> Turn {
    Turn::calls("Bash", json!({"command": command, "description": "x", "run_in_background": true}))
}

fn provider_faults() -> Vec<Case> {
    let overloaded = || Turn::fails(HttpError::new(529, "Overloaded"));
    let too_long = || Turn::fails(HttpError::new(400, "prompt is too long: 214000 tokens > 200000 maximum"));
    vec![
        case("bad_request", [Turn::fails(HttpError::new(400, "messages: not like this")).forever()]),
        case("overloaded", [overloaded().forever()]),
        case("overloaded_once", [overloaded(), done()]),
        case("server_error", [Turn::fails(HttpError::new(500, "Internal server error")).forever()]),
        case("wrong_key", [Turn::fails(HttpError::new(401, "invalid x-api-key")).forever()]),
        case("no_key", [done()]).without("ANTHROPIC_API_KEY"),
        case("model_not_found", [Turn::fails(HttpError::new(404, "model: nonesuch")).forever()])
            .with_arguments(&bold(&["--model", "nonesuch"])),
        case("error_in_stream", [Turn::default().with_error("overloaded_error", "Overloaded"), done()]),
        case("dropped_once", [Turn::says(&"word ".repeat(200)).cut(Cut::Middle), done()]),
        case("dropped", [Turn::says("never heard").cut(Cut::Before).forever()]),
        case("unreachable", [done()]).with("ANTHROPIC_BASE_URL", "http://127.0.0.1:9"),
        case("context_full", [too_long().forever()]),
        case(
            "compacted",
            [bash("date"), bash("pwd"), bash("ls"), too_long(), Turn::says("go on"), done(), done()],
        ),
        case("fallback_model", [overloaded().times(3), done()])
            .with("CLAUDE_CODE_MAX_RETRIES", "4")
            .with_arguments(&bold(&["--fallback-model", "haiku"])),
    ]
}

fn limits() -> Vec<Case> {
    let message = "This request would exceed your account's rate limit.";
    let limit = || HttpError::new(429, message).header("retry-after", "3600");
    let rejected = |resets_at: u64| {
        let mut error = limit().header("x-should-retry", "false");
        error.headers.extend(subscription("rejected", resets_at));
        [Turn::fails(error).forever()]
    };
    let warned = Turn { headers: subscription("allowed_warning", FAR).into(), ..done() };
    let subscribed =
        |case: Case| case.without("ANTHROPIC_API_KEY").with("CLAUDE_CODE_OAUTH_TOKEN", "sk-ant-oat01-stub");
    vec![
        subscribed(case("usage_limit", rejected(FAR))),
        subscribed(case("usage_limit_soon", rejected(super::soon()))),
        subscribed(case("usage_warning", [warned])),
        case("usage_limit_with_key", [Turn::fails(limit()).forever()]),
        case(
            "rate_limited_once",
            [Turn::fails(HttpError::new(429, "slow down").header("retry-after", "1")), done()],
        ),
    ]
}

/// What the provider tells a subscriber about the allowance, in headers.
fn subscription(status: &str, resets_at: u64) -> [(String, String); 7] {
    let resets_at = resets_at.to_string();
    [
        ("status", status),
        ("reset", &resets_at),
        ("representative-claim", "five_hour"),
        ("overage-status", "rejected"),
        ("5h-utilization", "0.95"),
        ("5h-reset", &resets_at),
        ("5h-surpassed-threshold", "0.9"),
    ]
    .map(|(name, value)| (format!("anthropic-ratelimit-unified-{name}"), value.to_owned()))
}

fn interruptions() -> Vec<Case> {
    let busy = || [bash("echo > ready; sleep 300"), done()];
    vec![
        case("interrupted_in_tool", busy()).signalled(Moment::Ready, Signal::INT).unsteady(),
        case("interrupted_in_call", [Turn::says("never").hangs_midway()])
            .signalled(Moment::Asked(1), Signal::INT)
            .unsteady(),
        case("terminated", busy()).signalled(Moment::Ready, Signal::TERM),
        case("killed", busy()).signalled(Moment::Ready, Signal::KILL),
    ]
}

fn sessions() -> Vec<Case> {
    let first = bold(&["--session-id", SESSION]);
    vec![
        case("resumed", [done(), Turn::says("Still done.")])
            .after(&first)
            .with_arguments(&bold(&["--resume", SESSION])),
        case("resume_unknown", [done()]).with_arguments(&bold(&["--resume", SESSION])),
        case("session_in_use", [done(), done()]).after(&first).with_arguments(&first),
    ]
}
