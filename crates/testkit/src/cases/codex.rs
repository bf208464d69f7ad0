//! Codex.

use rustix::process::Signal;
use serde_json::json;

use crate::agents::Agent;
use crate::case::{Case, Moment};
use crate::scenario::{Cut, HttpError, Scenario, Turn, Usage};

const BOLD: [&str; 3] = ["exec", "--json", "--dangerously-bypass-approvals-and-sandbox"];

pub(super) fn cases() -> Vec<Case> {
    let mut all = endings();
    all.extend(provider_faults());
    all.extend(broken_streams());
    all.extend(interruptions());
    all
}

fn case(name: &'static str, scenario: impl Into<Scenario>) -> Case {
    Case::new(Agent::Codex, name, scenario).with_arguments(&bold(&["write hello"]))
}

/// The usual arguments, with all permissions, and some more.
fn bold<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&BOLD, more].concat()
}

fn exec(command: &str) -> Turn {
    Turn::calls("exec_command", json!({"cmd": command}))
}

fn done() -> Turn {
    Turn::says("Done.\n\n<promise>DONE</promise>")
}

fn endings() -> Vec<Case> {
    let usage = Usage { cache_read: 800, reasoning: 7, ..Usage::default() };
    let first =
        Turn { text: "I will write the file.".to_owned(), ..exec("printf 'hello\\n' > hello.txt; ls") };
    let patch = "*** Begin Patch\n*** Add File: second.txt\n+second\n*** End Patch\n";
    vec![
        case(
            "success",
            Scenario::from([
                first.thinking("Two files."),
                Turn::default().and_tells("apply_patch", patch),
                done(),
            ])
            .usage(usage),
        ),
        case(
            "parallel_tools",
            [exec("echo one > one.txt").and_calls("exec_command", json!({"cmd": "exit 3"})), done()],
        ),
        // What it says of it depends on the sandbox the machine has.
        case("read_only", [exec("touch a.txt"), done()])
            .with_arguments(&["exec", "--json", "-s", "read-only", "write hello"])
            .unsteady(),
        case("background_child", [exec("nohup sleep 300 > /dev/null 2>&1 &"), done()]),
        case("unknown_model", [done()]).with_arguments(&bold(&["-m", "nonesuch", "write hello"])),
        case("bad_flag", [done()]).with_arguments(&["exec", "--json", "--nonesuch"]),
        case("no_answer", [Turn::default()]),
        case("resumed", [done(), Turn::says("Still done.")])
            .after(&bold(&["write hello"]))
            .with_arguments(&bold(&["resume", "--last", "go on"])),
        case("resume_unknown", [done()]).with_arguments(&bold(&[
            "resume",
            "5b0f3c52-6d0a-4f6b-9a53-0d3c8a3d1e11",
            "go on",
        ])),
    ]
}

fn provider_faults() -> Vec<Case> {
    let limit = |resets_at: u64| {
        let body = json!({"error": {
            "type": "usage_limit_reached", "message": "The usage limit has been reached",
            "plan_type": "plus", "resets_at": resets_at}});
        [Turn::fails(HttpError::new(429, "").body(body)).forever()]
    };
    let in_stream = |kind: &str, message: &str| [Turn::default().with_error(kind, message).forever()];
    let fails = |status: u16, message: &str| [Turn::fails(HttpError::new(status, message)).forever()];
    vec![
        case("usage_limit", limit(2_110_086_276)),
        case("usage_limit_soon", limit(super::soon())),
        case("rate_limited", fails(429, "slow down")),
        case(
            "rate_limited_once",
            [Turn::fails(HttpError::new(429, "slow down").header("retry-after", "1")), done()],
        ),
        case("server_error", fails(500, "Internal server error")),
        case("overloaded", in_stream("server_is_overloaded", "Overloaded")),
        case("context_full", in_stream("context_length_exceeded", "Your input exceeds the context window.")),
        case("quota", in_stream("insufficient_quota", "You exceeded your current quota.")),
        case("wrong_key", fails(401, "Incorrect API key provided")),
        case("no_key", [done()]).without("OPENAI_API_KEY"),
        case("bad_request", fails(400, "input: not like this")),
    ]
}

fn broken_streams() -> Vec<Case> {
    vec![
        case("dropped_once", [Turn::says(&"word ".repeat(200)).cut(Cut::Middle), done()]),
        case("dropped", [Turn::says("never heard").cut(Cut::Before).forever()]),
        case("truncated_once", [Turn::says("half an answer").cut(Cut::End), done()]),
        case("truncated_stream", [Turn::says("half an answer").cut(Cut::End).forever()]),
        case("stalled", [Turn::says("half an answer").hangs_midway().forever()]),
    ]
}

fn interruptions() -> Vec<Case> {
    let busy = || [exec("echo > ready; sleep 300"), done()];
    vec![
        case("interrupted_in_tool", busy()).signalled(Moment::Ready, Signal::INT).unsteady(),
        case("interrupted_in_call", [Turn::says("never").hangs()])
            .signalled(Moment::Asked(1), Signal::INT)
            .unsteady(),
        case("terminated", busy()).signalled(Moment::Ready, Signal::TERM).unsteady(),
    ]
}
