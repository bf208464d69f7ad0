//! Handing over and remembering, from outside: what the next attempt finds and is told.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may fail here")]

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;
use support::{Sandbox, WORKER};
use wiggum_core::event::{Event, Verdict};
use wiggum_core::handoff::Trigger;

fn triggers(sandbox: &Sandbox) -> Vec<(Trigger, bool)> {
    let events = sandbox.events().into_iter().filter_map(|event| match event {
        Event::HandoffStarted { trigger, asked, .. } => Some((trigger, asked)),
        _ => None,
    });
    events.collect()
}

fn handed_over(sandbox: &Sandbox) -> usize {
    let verdict = |event: &Event| matches!(event, Event::Judged { verdict: Verdict::HandedOver { .. }, .. });
    sandbox.events().iter().filter(|event| verdict(event)).count()
}

#[test]
fn an_agent_with_a_full_context_is_ended_and_the_next_one_goes_on_with_its_work() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    let scenario = sandbox.base().join("scenario.toml");
    fs::write(
        &scenario,
        r#"
        [[attempt]]
        number = 1
        steps = [
          { write = { path = "half.txt", content = "half\n" } },
          { context = { used = 69, window = 100 } }, { run = "true" },
          { context = { used = 71, window = 100 } }, { run = "true" }, { hang = true },
        ]
        [[attempt]]
        steps = [{ run = "test -f half.txt && echo whole > whole.txt" }, { claim = "" }]
        "#,
    )
    .unwrap();
    let scenario = scenario.to_str().unwrap();
    let run = [
        "run",
        "--headless",
        "--baseline",
        "off",
        "--verify",
        "test -f whole.txt",
        "--max-retries",
        "0",
        "--scenario",
        scenario,
    ];
    sandbox.wiggum(&run).exits(0).says("handed over: its context is 71 % full");
    assert_eq!(triggers(&sandbox), [(Trigger::Context { used: 71, window: 100 }, false)]);
    assert_eq!(handed_over(&sandbox), 1);
    let checkpoints = sandbox.wiggum(&["checkpoint", "list", "--json"]).exits(0);
    let rows: Value = serde_json::from_str(&checkpoints.stdout).unwrap();
    assert_eq!((&rows[0]["phase"], &rows[1]["phase"]), (&"handoff".into(), &"complete".into()));
}

#[test]
fn a_claim_that_comes_with_the_answer_that_fills_the_context_or_the_budget_is_judged() {
    for (figure, action) in [
        ("context = { used = 71, window = 100 }", "deny"),
        ("usage = { input_tokens = 850 }", "deny"),
        ("usage = { input_tokens = 999999 }", "deny"),
        ("usage = { input_tokens = 999999 }", "allow"),
    ] {
        let mut sandbox = Sandbox::with_tasks(&["A"]);
        sandbox.env("WIGGUM_BUDGET_MAX_TOKENS", "1000");
        sandbox.env("WIGGUM_BUDGET_ACTION", action);
        let scenario = sandbox.base().join("scenario.toml");
        let steps = format!("{{ run = \"echo a > a.txt\" }}, {{ {figure} }}, {{ claim = \"\" }}");
        fs::write(&scenario, format!("[[attempt]]\nsteps = [{steps}]\n")).unwrap();
        let scenario = scenario.to_str().unwrap();
        sandbox.env("WIGGUM_CHECKS_BASELINE", "go-on");
        sandbox.wiggum(&["run", "--headless", "--verify", "test -f a.txt", "--scenario", scenario]).exits(0);
        assert_eq!((sandbox.worked_on().len(), triggers(&sandbox)), (1, vec![]), "{figure}");
    }
}

#[test]
fn an_agent_that_neither_goes_on_nor_ends_is_not_waited_for_for_ever() {
    let mut sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.env("WIGGUM_HANDOFF_GRACE", "50ms");
    let scenario = sandbox.base().join("scenario.toml");
    fs::write(
        &scenario,
        r#"
        [[attempt]]
        number = 1
        steps = [{ write = { path = "half.txt", content = "half" } }, { context = { used = 71, window = 100 } }, { hang = true }]
        [[attempt]]
        steps = [{ run = "test -f half.txt" }, { claim = "" }]
        "#,
    )
    .unwrap();
    let scenario = scenario.to_str().unwrap();
    sandbox.wiggum(&["run", "--headless", "--verify", "true", "--scenario", scenario]).exits(0);
    assert_eq!((triggers(&sandbox).len(), handed_over(&sandbox)), (1, 1));
}

#[test]
fn most_of_a_budget_spent_hands_over_once() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.write("wiggum.toml", "[budget]\nmax_tokens = 1000\n");
    let scenario = sandbox.base().join("scenario.toml");
    fs::write(
        &scenario,
        r#"
        [[attempt]]
        number = 1
        steps = [
          { write = { path = "half.txt", content = "half\n" } },
          { usage = { input_tokens = 700 } }, { run = "true" },
          { usage = { input_tokens = 150 } }, { run = "true" }, { hang = true },
        ]
        [[attempt]]
        steps = [
          { usage = { input_tokens = 10 } }, { run = "test -f half.txt && cp $WIGGUM_PROMPT_FILE $SANDBOX/prompt" },
          { claim = "" },
        ]
        "#,
    )
    .unwrap();
    let scenario = scenario.to_str().unwrap();
    let run = ["run", "--headless", "--verify", "true", "--max-retries", "0", "--scenario", scenario];
    sandbox.wiggum(&run).exits(0).says("handed over: 85 % of the budget is spent");
    // The second attempt starts above the threshold: it has the rest, and is told so.
    assert_eq!(triggers(&sandbox), [(Trigger::Budget { percent: 85 }, false)]);
    let told = sandbox.note("prompt");
    let rest = "Left for you of the loop budget of 1000 tokens: 150 tokens.";
    assert!(told.contains(rest), "{told}");
}

#[test]
fn thresholds_can_be_set_and_nonsense_is_refused_with_its_line() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.write("wiggum.toml", "[handoff]\ncontext_threshold = 70\n");
    let words = ["wiggum.toml:2:", "handoff.context_threshold", "found 70", "write 0.7"];
    sandbox.wiggum(&["config", "show"]).complains(2, &words);
    for nonsense in ["-0.5", "\"much\"", "inf", "nan"] {
        sandbox.write("wiggum.toml", &format!("[handoff]\n\nbudget_threshold = {nonsense}\n"));
        sandbox.wiggum(&["config", "show"]).complains(2, &["wiggum.toml:3:", "handoff.budget_threshold"]);
    }
    sandbox.write("wiggum.toml", "[handoff]\ncontext_threshold = 0.55\nerror_threshold = 5\n");
    sandbox.wiggum(&["config", "show"]).exits(0).says("0.55").says("wiggum.toml:2").says("0.8");
    sandbox.write("wiggum.toml", "[handoff]\ncontext_threshold = 0\non_phases = true\n");
    sandbox.wiggum(&["config", "show"]).complains(2, &["wiggum.toml:3:", "did you mean `on_phase`?"]);
}

/// An agent that knows nothing but its prompt: what it has to do is in the words of the one before.
#[test]
fn the_prompt_alone_is_enough_to_go_on() {
    let sandbox = Sandbox::with_tasks(&["A", "B"]);
    let agent = r#"keep_prompt
        prompt="$SANDBOX/prompt-$WIGGUM_TASK_ID-$WIGGUM_ATTEMPT"
        if [ $WIGGUM_TASK_ID = B ]; then echo b > b.txt; claim; exit; fi
        case $WIGGUM_ATTEMPT in
        1) echo one > one.txt
           echo 'I made the first file.'
           echo; echo 'Decisions:'; echo '- files are named after numbers'
           echo; echo 'Next steps:'; echo '- write two.txt containing zwei'; claim ;;
        *) step=$(sed -n 's/^- write \(.*\) containing \(.*\)$/\1 \2/p' "$prompt" | head -1)
           set -- $step; test -f one.txt && echo "$2" > "$1"; claim ;;
        esac"#;
    sandbox.run(agent, &["--verify", "[ $WIGGUM_TASK_ID = B ] || grep zwei two.txt"]).exits(0);
    let second = sandbox.prompt("A", 2);
    for needed in [
        "## Where the work stands",
        "After iteration 1, attempt 1 at A: claim refuted.",
        "lies in this directory already",
        "Pending: 2 (",
        "Decisions:\n- files are named after numbers",
        "Next steps:\n- write two.txt containing zwei",
        "### Attempt 1: claim refuted",
        "I made the first file. Changed: one.txt",
    ] {
        assert!(second.contains(needed), "{needed:?} is missing in\n{second}");
    }
    assert!(!sandbox.prompt("A", 1).contains("Where the work stands"));
    assert!(!sandbox.prompt("B", 1).contains("Where the work stands"), "{}", sandbox.prompt("B", 1));
}

#[test]
fn an_agent_can_hand_over_by_its_own_word() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    let agent = r#"keep_prompt
        if [ $WIGGUM_ATTEMPT = 1 ]; then echo 1 > a.txt; echo '<handoff>the parser comes next</handoff>'
        else echo 2 > b.txt; claim; fi"#;
    sandbox.run(agent, &["--verify", "true", "--max-retries", "0"]).exits(0);
    assert_eq!(triggers(&sandbox), [(Trigger::Requested { by: "the agent".to_owned() }, false)]);
    assert_eq!(handed_over(&sandbox), 1);
    let second = sandbox.prompt("A", 2);
    assert!(second.contains("handed over: the parser comes next"), "{second}");
    assert!(!second.contains("- the parser comes next"), "{second}");
    assert!(sandbox.exists("a.txt") && sandbox.exists("b.txt"));
}

#[test]
fn a_person_can_ask_for_a_handoff() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.make_pipe("ready");
    let agent = r#"cat > /dev/null; if [ $WIGGUM_ATTEMPT = 1 ]; then echo 1 > a.txt; hang; else claim; fi"#;
    let started =
        sandbox.start(agent, &["--baseline", "off", "--verify", "test -f a.txt", "--max-retries", "0"]);
    sandbox.wait_ready();
    let run = sandbox.launch(&sandbox.root, &["handoff"]).outcome_only();
    run.exits(0).says("hands over: asked for by");
    started.finish().exits(0);
    assert_eq!(handed_over(&sandbox), 1);
    sandbox.wiggum(&["handoff"]).complains(2, &["cannot hand over", "does not run"]);
}

/// Plays Claude Code: tells its figures, and hears what its hook is told.
const CLAUDE: &str = r#"#!/bin/sh
[ "$1" = --version ] && { echo "2.0.0 (Claude Code)"; exit; }
prompt=$(cat)
result() { # text used
  printf '{"type":"result","subtype":"success","is_error":false,"result":"%s","session_id":"s","total_cost_usd":0.1,"stop_reason":"end_turn","modelUsage":{"m":{"inputTokens":1,"outputTokens":1,"contextWindow":1000}}}\n' "$1"
}
used() { printf '{"type":"assistant","message":{"id":"m%s","content":[{"type":"text","text":"at work"}],"usage":{"input_tokens":%s,"output_tokens":1}},"session_id":"s"}\n' "$1" "$1"; }
echo '{"type":"system","subtype":"init","session_id":"s","model":"m"}'
echo "$WIGGUM_TASK_ID" >> "$WIGGUM_TASK_ID.txt"
used 100
if [ "$WIGGUM_TASK_ID-$WIGGUM_ATTEMPT" = B-1 ]; then
  used 750
  until heard=$(echo '{}' | "$WIGGUM_BIN" hook nudge) && [ -n "$heard" ]; do :; done
  echo "$heard" > "$SANDBOX/heard"
  result 'Wrapped up.\n\nNext steps:\n- finish B'
else
  echo "$prompt" > "$SANDBOX/prompt-$WIGGUM_TASK_ID-$WIGGUM_ATTEMPT"
  result '<promise>DONE</promise>'
fi
"#;

/// Two tasks, and Claude Code as played by this script.
fn with_claude(script: &str) -> Sandbox {
    let mut sandbox = Sandbox::with_tasks(&["A", "B"]);
    let bin = sandbox.base().join("bin");
    fs::create_dir(&bin).unwrap();
    fs::write(bin.join("claude"), script).unwrap();
    fs::set_permissions(bin.join("claude"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    sandbox.env("PATH", &path);
    sandbox
}

const WITH_CLAUDE: [&str; 10] =
    ["run", "--headless", "--agent", "claude", "--sandbox", "none", "--verify", "true", "--max-retries", "0"];

#[test]
fn an_agent_that_can_be_spoken_to_is_asked_to_wrap_up() {
    let sandbox = with_claude(CLAUDE);
    sandbox.wiggum(&WITH_CLAUDE).exits(0).says("asked to wrap up: its context is 75 % full");
    // How large its context is, it told at the end of the first task.
    assert_eq!(triggers(&sandbox), [(Trigger::Context { used: 750, window: 1000 }, true)]);
    assert!(sandbox.note("heard").contains("Wrap up now"), "{}", sandbox.note("heard"));
    assert_eq!(sandbox.read("B.txt"), "B\nB\n");
    let second = sandbox.prompt("B", 2);
    assert!(second.contains("handed over (its context is 75 % full)"), "{second}");
    assert!(second.contains("Next steps:\n- finish B"), "{second}");
    assert!(!second.contains("Wrap up now"), "{second}");
}

#[test]
fn an_agent_that_does_not_hear_is_ended_and_the_words_were_only_for_it() {
    let deaf = CLAUDE.replace("until heard=", "exec sleep 1000\n  until heard=");
    let mut sandbox = with_claude(&deaf);
    sandbox.env("WIGGUM_HANDOFF_GRACE", "50ms");
    sandbox.wiggum(&WITH_CLAUDE).exits(0);
    assert_eq!(triggers(&sandbox), [(Trigger::Context { used: 750, window: 1000 }, true)]);
    assert_eq!(handed_over(&sandbox), 1);
    assert!(!sandbox.prompt("B", 2).contains("Wrap up now"), "{}", sandbox.prompt("B", 2));
}

#[test]
fn what_a_task_taught_is_told_to_others_in_this_run_and_the_next() {
    let sandbox = Sandbox::with_tasks(&["A", "B"]);
    let agent = r#"keep_prompt; echo "$WIGGUM_TASK_ID" > "$WIGGUM_TASK_ID.txt"; echo 'Made the file.'
        [ $WIGGUM_TASK_ID = A ] && printf '<memory>\n- the tests need TZ=UTC\n</memory>\n'; claim"#;
    sandbox.run(agent, &["--verify", "true"]).exits(0);
    let taught = "## What other tasks taught\n\n- A: the tests need TZ=UTC\n";
    assert!(!sandbox.prompt("A", 1).contains("other tasks taught"));
    assert!(sandbox.prompt("B", 1).contains(taught), "{}", sandbox.prompt("B", 1));
    sandbox.wiggum(&["task", "add", "--id", "C", "--description", "more"]).exits(0);
    sandbox.commit_all("more to do");
    sandbox.run(agent, &["--verify", "true"]).exits(0);
    assert!(sandbox.prompt("C", 1).contains(taught), "{}", sandbox.prompt("C", 1));
    let shown = sandbox.wiggum(&["show", "A"]).exits(0);
    shown
        .says("Memory")
        .says("attempt 1, completed: Made the file. Changed: A.txt")
        .says("learnt: the tests need TZ=UTC");
    let shown = sandbox.wiggum(&["show", "A", "--json"]).exits(0);
    let shown: Value = serde_json::from_str(&shown.stdout).unwrap();
    assert_eq!(shown["memory"][0]["outcome"], "completed");
    assert_eq!(shown["learnt"][0], "the tests need TZ=UTC");
}

#[test]
fn status_says_that_work_is_being_handed_over() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    // Killed with the agent still to be ended: what is durable says so.
    sandbox.make_pipe("ready");
    let started = sandbox.start("cat > /dev/null; trap '' INT TERM; ready; while :; do sleep 1; done", &[]);
    sandbox.wait_ready();
    sandbox.ask(&wiggum_core::event::Request::Handoff);
    sandbox.wait_for(|event| matches!(event, Event::HandoffStarted { .. }));
    started.kill();
    let status = sandbox.launch(&sandbox.root, &["status", "--json"]).outcome_only().exits(0);
    assert!(status.stdout.contains("\"handoff\""), "{}", status.stdout);
    sandbox.run(WORKER, &["--verify", "true"]).exits(0);
}
