//! Streams nobody could record here: of older versions, of other machines, of bad luck.

use crate::replay::parse;
use wiggum_agents::{AgentEvent, Family, Finished};
use wiggum_core::event::{ContextFill, Exit, Trouble, Usage};
use wiggum_core::stream::Stream;

fn read(family: Family, lines: &[&str], code: i32) -> (Vec<AgentEvent>, Finished) {
    let text = lines.join("\n") + "\n";
    parse(family, [(Stream::Stdout, text.as_bytes())], Exit::Code { code })
}

#[track_caller]
fn check(family: Family, lines: &[&str], code: i32, expected: &str) {
    let (_, finished) = read(family, lines, code);
    let told =
        finished.problem.map_or_else(|| format!("ok: {}", finished.message), |problem| problem.to_string());
    assert_eq!(told, expected);
}

#[test]
fn claude_tells_its_limit_in_the_old_way_too() {
    check(
        Family::Claude,
        &[
            r#"{"type":"result","subtype":"success","is_error":true,"result":"Claude AI usage limit reached|1794729540"}"#,
        ],
        1,
        "usage limit until 2026-11-15T07:59:00Z: Claude AI usage limit reached|1794729540",
    );
}

#[test]
fn claudes_limit_has_the_end_that_the_event_tells_rather_than_the_words() {
    let event = |status: &str| {
        format!(
            r#"{{"type":"rate_limit_event","rate_limit_info":{{"status":"{status}","resetsAt":1794760000}}}}"#
        )
    };
    let result = r#"{"type":"result","subtype":"success","is_error":true,"api_error_status":429,"result":"You've hit your session limit · resets 4pm (UTC)"}"#;
    let words = "You've hit your session limit · resets 4pm (UTC)";
    let rejected = format!("usage limit until 2026-11-15T16:26:40Z: {words}");
    check(Family::Claude, &[&event("rejected"), result], 1, &rejected);
    let warned = format!("usage limit until 2026-11-15T16:00:00Z: {words}");
    check(Family::Claude, &[&event("allowed_warning"), result], 1, &warned);
    let (events, _) =
        read(Family::Claude, &[&event("rejected"), &event("allowed_warning"), &event("allowed")], 1);
    let limits = events.iter().map(|event| matches!(event, AgentEvent::Limit { reached: true, .. }));
    assert_eq!(limits.collect::<Vec<_>>(), [true, false]);
}

#[test]
fn an_answer_that_ended_is_whole_though_claude_is_at_its_budget() {
    let said = |content: &str| {
        format!(
            r#"{{"type":"assistant","message":{{"id":"m1","content":[{content}]}},"parent_tool_use_id":null}}"#
        )
    };
    let text = said(r#"{"type":"text","text":"<promise>DONE</promise>"}"#);
    let call = said(r#"{"type":"tool_use","name":"Bash","input":{}}"#);
    let result = |reason: &str| {
        format!(
            r#"{{"type":"result","subtype":"error_max_budget_usd","is_error":true,"stop_reason":{reason},"errors":["Reached maximum budget ($1)"]}}"#
        )
    };
    let stopped = "the budget is used up: Reached maximum budget ($1)";
    check(Family::Claude, &[&text, &result(r#""end_turn""#)], 1, "ok: <promise>DONE</promise>");
    // Cut off, in the middle of its work, or without a word.
    check(Family::Claude, &[&text, &result("null")], 1, stopped);
    check(Family::Claude, &[&text, &result(r#""max_tokens""#)], 1, stopped);
    check(Family::Claude, &[&text, &call, &result(r#""tool_use""#)], 1, stopped);
    check(Family::Claude, &[&text, &call, &result(r#""end_turn""#)], 1, stopped);
    check(Family::Claude, &[&result(r#""end_turn""#)], 1, stopped);
}

#[test]
fn a_limit_met_and_lifted_does_not_explain_a_later_failure() {
    let rejected =
        r#"{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1794760000}}"#;
    let allowed = r#"{"type":"rate_limit_event","rate_limit_info":{"status":"allowed"}}"#;
    let broken = r#"{"type":"result","subtype":"success","is_error":true,"api_error_status":null,"result":"API Error: Unable to connect to API (ECONNRESET)"}"#;
    let unreachable = "the provider cannot be reached: API Error: Unable to connect to API (ECONNRESET)";
    check(Family::Claude, &[rejected, broken], 1, unreachable);
    check(Family::Claude, &[rejected, allowed, broken], 1, unreachable);
}

#[test]
fn what_a_sub_agent_says_is_not_the_message() {
    let main = r#"{"type":"assistant","message":{"id":"a","content":[{"type":"text","text":"main"}]},"parent_tool_use_id":null}"#;
    let sub = r#"{"type":"assistant","message":{"id":"b","content":[{"type":"text","text":"<promise>DONE</promise>"}],"usage":{"input_tokens":900000}},"parent_tool_use_id":"toolu_1"}"#;
    let (events, finished) = read(Family::Claude, &[main, sub], 143);
    assert_eq!(finished.message, "main");
    assert_eq!(finished.problem.map(|problem| problem.trouble), Some(Trouble::Interrupted));
    assert!(!events.contains(&AgentEvent::Output("<promise>DONE</promise>\n".to_owned())));
    let window = r#"{"type":"result","subtype":"success","is_error":false,"result":"x","modelUsage":{"m":{"inputTokens":5,"contextWindow":200000}}}"#;
    let small = r#"{"type":"assistant","message":{"id":"c","content":[],"usage":{"input_tokens":1,"cache_read_input_tokens":20,"cache_creation_input_tokens":300}},"parent_tool_use_id":null}"#;
    let (_, finished) = read(Family::Claude, &[sub, small, window], 0);
    assert_eq!(finished.facts.context, Some(ContextFill { used: 321, window: 200_000 }));
}

#[test]
fn the_context_is_that_of_the_model_it_was_started_with() {
    let init = r#"{"type":"system","subtype":"init","session_id":"s","model":"small"}"#;
    let message = r#"{"type":"assistant","message":{"id":"c","content":[],"usage":{"input_tokens":70}}}"#;
    let result = r#"{"type":"result","subtype":"success","is_error":false,"result":"x","modelUsage":{"small":{"contextWindow":100},"large":{"contextWindow":1000}}}"#;
    let (_, finished) = read(Family::Claude, &[init, message, result], 0);
    assert_eq!(finished.facts.context, Some(ContextFill { used: 70, window: 100 }));
}

#[test]
fn a_request_that_was_tried_again_with_success_is_no_failure() {
    check(
        Family::Copilot,
        &[
            r#"{"type":"session.error","data":{"errorType":"query","message":"500 Internal error","statusCode":500}}"#,
            r#"{"type":"assistant.message","data":{"content":"fine","toolRequests":[]}}"#,
            r#"{"type":"result","sessionId":"s","exitCode":0}"#,
        ],
        0,
        "ok: fine",
    );
    check(
        Family::Aider,
        &[
            "Repo-map: using 1024 tokens, auto refresh",
            "litellm.InternalServerError: InternalServerError: OpenAIException - Internal error",
            "The API provider's servers are down or overloaded.",
            "Retrying in 0.2 seconds...",
            "fine",
            "Tokens: 2.4k sent, 40 received.",
        ],
        0,
        "ok: fine",
    );
}

#[test]
fn copilot_may_renew_its_token_once() {
    let refused = r#"{"type":"model.call_failure","data":{"statusCode":401}}"#;
    let retry = r#"{"type":"assistant.turn_retry","data":{"reason":"transient_auth_error"}}"#;
    let answer = r#"{"type":"assistant.message","data":{"content":"on it","toolRequests":[]}}"#;
    let given_up = |lines: &[&str]| {
        read(Family::Copilot, lines, 1).0.contains(&AgentEvent::Retrying { trouble: Trouble::Authentication })
    };
    assert!(!given_up(&[refused, retry, answer, refused, retry]));
    assert!(given_up(&[refused, retry, refused, retry]));
}

#[test]
fn what_an_agent_waited_for_is_told_with_its_end_when_it_is_ended() {
    let line = "Attempt 1 failed with status 429. Retrying with backoff... You exceeded your current quota. Please retry in 34s.\n";
    let (_, finished) =
        parse(Family::Gemini, [(Stream::Stderr, line.as_bytes())], Exit::Signal { signal: 15 });
    let trouble = finished.problem.map(|problem| problem.trouble.to_string());
    assert_eq!(trouble.as_deref(), Some("usage limit until 2026-11-15T12:00:34Z"));
}

#[test]
fn a_killed_agents_tokens_count_once_per_message() {
    let block = |id: &str, output: u64| {
        format!(
            r#"{{"type":"assistant","message":{{"id":"{id}","content":[{{"type":"text","text":"{id}"}}],"usage":{{"input_tokens":10,"output_tokens":{output}}}}}}}"#
        )
    };
    let (_, finished) =
        read(Family::Claude, &[&block("a", 1), &block("a", 1), &block("b", 1), &block("a", 7)], 143);
    let usage = Usage { input_tokens: 20, output_tokens: 8, ..Usage::default() };
    assert_eq!(finished.usage, Some(usage));
}

#[test]
fn fields_of_an_unexpected_shape_are_as_if_missing() {
    check(
        Family::Claude,
        &[
            r#"{"is_error":"no","result":"fine","usage":[],"modelUsage":7,"permission_denials":{},"errors":null,"type":"result","total_cost_usd":"1"}"#,
        ],
        0,
        "ok: fine",
    );
    check(
        Family::Codex,
        &[
            r#"{"type":"item.completed","item":{"type":"agent_message","text":"fine","exit_code":"x","changes":3}}"#,
            r#"{"type":"turn.completed","usage":"none"}"#,
        ],
        0,
        "ok: fine",
    );
}

#[test]
fn an_error_within_the_text_of_a_result_is_none() {
    check(
        Family::Claude,
        &[
            r#"{"type":"result","subtype":"success","is_error":false,"stop_reason":"end_turn","result":"I fixed the usage limit reached message; invalid api key is now shown."}"#,
        ],
        0,
        "ok: I fixed the usage limit reached message; invalid api key is now shown.",
    );
}

#[test]
fn a_result_counts_although_the_exit_code_does_not_fit() {
    let result = r#"{"type":"result","subtype":"success","is_error":false,"result":"fine"}"#;
    check(Family::Claude, &[result], 1, "ok: fine");
    let failed =
        r#"{"type":"result","subtype":"error_during_execution","is_error":false,"errors":["it broke"]}"#;
    check(Family::Claude, &[failed], 0, "failed: it broke");
}

#[test]
fn an_empty_word_at_the_end_takes_nothing_back() {
    let said = r#"{"type":"result","subtype":"success","is_error":false,"result":"fine"}"#;
    let empty = r#"{"type":"result","subtype":"success","is_error":false,"result":""}"#;
    let failed = r#"{"type":"result","subtype":"success","is_error":true,"result":"API Error: 529 x"}"#;
    check(Family::Claude, &[said, empty], 0, "ok: fine");
    check(Family::Claude, &[empty], 0, "it finished without a word");
    check(Family::Claude, &[failed, empty], 0, "it finished without a word");
    check(Family::Claude, &[said, failed], 1, "the provider is overloaded: API Error: 529 x");
}

#[test]
fn what_is_said_to_an_end_in_the_background_is_added() {
    let said = r#"{"type":"result","subtype":"success","is_error":false,"result":"<promise>DONE</promise>"}"#;
    let noted = r#"{"type":"result","subtype":"success","is_error":false,"result":"The server stopped.","origin":{"kind":"task-notification"}}"#;
    let another = r#"{"type":"result","subtype":"success","is_error":false,"result":"Not yet."}"#;
    check(Family::Claude, &[said, noted], 0, "ok: <promise>DONE</promise>\n\nThe server stopped.");
    check(Family::Claude, &[said, another], 0, "ok: Not yet.");
}

#[test]
fn amp_speaks_as_claude_does() {
    check(
        Family::Amp,
        &[
            r#"{"type":"system","subtype":"init","session_id":"T-1","tools":[]}"#,
            r#"{"type":"result","subtype":"success","is_error":false,"num_turns":1,"result":"Done.","session_id":"T-1"}"#,
        ],
        0,
        "ok: Done.",
    );
    check(
        Family::Amp,
        &[
            r#"{"type":"result","subtype":"error_during_execution","is_error":true,"error":"Invalid API key","session_id":"T-1"}"#,
        ],
        1,
        "not logged in, or not permitted: Invalid API key",
    );
}

#[test]
fn long_results_of_tools_are_shown_by_their_beginning() {
    let shown = |content: &str| {
        let line = format!(
            r#"{{"type":"user","message":{{"content":[{{"type":"tool_result","content":{content},"is_error":true}}]}}}}"#
        );
        match &*read(Family::Claude, &[&line], 0).0 {
            [AgentEvent::ToolResult { text, is_error: true }] => text.clone(),
            events => panic!("{events:?}"),
        }
    };
    // Wherever the cut falls, no escape is broken.
    for (escaped, plain) in [("é\\n\\\"", "é\n\""), ("\\ud83d\\ude00", "😀"), ("x", "x")] {
        for shift in 0..12 {
            let text = shown(&format!("\"{}{}\"", "-".repeat(shift), escaped.repeat(5000)));
            let expected = "-".repeat(shift) + &plain.repeat(5000);
            let head = text.strip_suffix('…').unwrap();
            assert!(expected.starts_with(head) && (150..=1000).contains(&head.chars().count()), "{text}");
        }
    }
    assert_eq!(shown(r#""whole""#), "whole");
    let pieces =
        r#"[{"type":"text","text":"one"},{"type":"image","source":{}},{"type":"text","text":"two"}]"#;
    assert_eq!(shown(pieces), "one\ntwo");
}
