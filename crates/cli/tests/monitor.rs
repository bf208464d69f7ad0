//! `wiggum monitor` with real engines that are killed, and agents that fall silent.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may fail here")]

mod support;

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;
use support::{Sandbox, WORKER};
use wiggum_core::event::{EndReason, Event};

fn look(sandbox: &Sandbox, args: &[&str]) -> Vec<Value> {
    let mut all = vec!["monitor", "--once", "--json"];
    all.extend(args);
    let run = sandbox.launch(&sandbox.base(), &all).outcome_only().exits(0);
    serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {}", run.stdout))
}

fn store(sandbox: &Sandbox) -> String {
    sandbox.root.to_str().unwrap().to_owned()
}

/// Waits for the end of a run that nobody of ours has started.
fn wait_for_end(sandbox: &Sandbox) {
    sandbox.wait_for(|event| matches!(event, Event::RunEnded { .. }));
    let until = Instant::now() + Duration::from_secs(30);
    while !sandbox.processes().is_empty() {
        assert!(Instant::now() < until, "still there: {:?}", sandbox.processes());
        std::thread::yield_now();
    }
}

/// A loop whose engine was killed in the middle of its first task.
fn killed(agent: &str) -> Sandbox {
    let sandbox = Sandbox::with_tasks(&["A", "B"]);
    sandbox.make_pipe("ready");
    let running = sandbox.start(agent, &["--verify", "true"]);
    sandbox.wait_ready();
    running.kill();
    sandbox
}

const HANGS_ONCE: &str = r#"[ -e "$SANDBOX/hung" ] || { touch "$SANDBOX/hung"; hang; }"#;

#[test]
fn an_engine_that_was_killed_is_brought_back_and_finishes() {
    let sandbox = killed(&format!("{HANGS_ONCE}\n{WORKER}"));
    let rows = look(&sandbox, &[&store(&sandbox)]);
    assert_eq!((rows[0]["interrupted"].as_bool(), rows[0]["did"].as_str()), (Some(true), None));
    assert!(rows[0]["alert"].as_str().unwrap().contains("its engine died"), "{rows:?}");

    let rows = look(&sandbox, &["--restart", &store(&sandbox)]);
    assert!(rows[0]["did"].as_str().unwrap().starts_with("started again"), "{rows:?}");
    wait_for_end(&sandbox);
    let ended = sandbox.state().run.ended.unwrap().0;
    assert_eq!(ended, EndReason::GoalAchieved);
    assert_eq!(sandbox.state().run.number, 1, "the same run went on");
    assert_eq!(sandbox.subjects().len(), 4);
    sandbox.check();

    // With nothing to do, nothing is done.
    let rows = look(&sandbox, &["--restart", &store(&sandbox)]);
    assert_eq!((rows[0]["state"].as_str(), rows[0]["did"].as_str()), (Some("completed"), None));
    assert_eq!(sandbox.state().run.number, 1);
}

#[test]
fn a_run_that_a_person_interrupted_is_left_to_that_person() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.make_pipe("ready");
    let running = sandbox.start("hang", &[]);
    sandbox.wait_ready();
    running.signal("INT");
    running.finish().exits(130);
    let rows = look(&sandbox, &["--restart", &store(&sandbox)]);
    assert_eq!((&rows[0]["interrupted"], &rows[0]["did"]), (&Value::Bool(true), &Value::Null));
}

#[test]
fn loops_of_the_machine_are_known_from_everywhere() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.run(WORKER, &["--verify", "true"]).exits(0);
    let rows = look(&sandbox, &[]);
    assert_eq!((rows.len(), rows[0]["repository"].as_str()), (1, sandbox.root.to_str()));
    // Named as well, it is still one.
    assert_eq!(look(&sandbox, &[&store(&sandbox)]).len(), 1);
}

#[test]
fn sessions_are_listed_beside_loops_from_everywhere() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    let start = ["session", "start", "--session", "s1", "--prompt", "make it", "--max-iterations", "7"];
    sandbox.wiggum(&start).exits(0);
    // Before any loop was there.
    let rows = look(&sandbox, &[]);
    assert_eq!(rows.len(), 1, "{rows:?}");
    assert_eq!((rows[0]["kind"].as_str(), rows[0]["session_id"].as_str()), (Some("session"), Some("s1")));
    assert_eq!(
        (rows[0]["state"].as_str(), rows[0]["repository"].as_str()),
        (Some("WORKING"), sandbox.root.to_str())
    );
    assert_eq!((&rows[0]["current_iteration"], &rows[0]["max_iterations"]), (&1.into(), &7.into()));
    assert_eq!(
        (rows[0]["last_action"].as_str(), rows[0]["health"].as_str()),
        (Some("Starting task"), Some("healthy"))
    );

    sandbox.run(WORKER, &["--verify", "true"]).exits(0);
    let rows = look(&sandbox, &[]);
    assert_eq!(
        (rows.len(), rows[0]["state"].as_str(), rows[1]["kind"].as_str()),
        (2, Some("completed"), Some("session"))
    );
    let table = sandbox.launch(&sandbox.base(), &["monitor", "--once"]).outcome_only().exits(0).stdout;
    let lines: Vec<&str> = table.lines().collect();
    assert!(lines[0].starts_with("LOOP") && lines[3].starts_with("SESSION"), "{table}");
    for words in ["agent s1", "WORKING", "1/7", "Starting task"] {
        assert!(lines[4].contains(words), "{words}: {table}");
    }

    sandbox.wiggum(&["session", "cancel", "--session", "s1"]).exits(0);
    assert_eq!(look(&sandbox, &[])[1]["termination_reason"], "explicit_stop");
    std::fs::write(sandbox.state_root().of_path("sessions", &sandbox.root).join("s1.json"), "{").unwrap();
    let run = sandbox.wiggum(&["monitor", "--once", "--json"]).exits(0);
    assert!(run.stderr.contains("the state of this session in"), "{}", run.stderr);
}

#[test]
fn what_a_session_waits_for_is_told() {
    let sandbox = Sandbox::new();
    let ask = |hook: &str, more: &str| {
        let question = format!("{{\"session_id\":\"s1\",\"cwd\":{:?}{more}}}", sandbox.root);
        let mut command = sandbox.command(env!("CARGO_BIN_EXE_wiggum"));
        let mut child =
            command.args(["hook", hook]).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), question.as_bytes()).unwrap();
        assert!(child.wait().unwrap().success());
    };
    ask("user-prompt-submit", r#","prompt":"/ralph-loop make it""#);
    ask(
        "stop",
        r#","last_assistant_message":"<escalate type=\"stuck\"><summary>Which one?</summary></escalate>""#,
    );
    let rows = look(&sandbox, &[]);
    assert_eq!(
        (rows[0]["state"].as_str(), rows[0]["alert"].as_str()),
        (Some("WAITING"), Some("waits for your answer: Which one?"))
    );
    ask("user-prompt-submit", r#","prompt":"this one""#);
    ask("stop-failure", r#","last_assistant_message":"Claude AI usage limit reached|2110086276""#);
    let rows = look(&sandbox, &[]);
    assert_eq!(
        (rows[0]["state"].as_str(), rows[0]["alert"].as_str()),
        (Some("WAITING"), None),
        "it ends by itself"
    );
    assert_eq!(rows[0]["waits_until"], "2036-11-12T07:04:36Z");
}

#[test]
fn several_monitors_at_once_start_one_engine() {
    let sandbox = killed(&format!("{HANGS_ONCE}\n{WORKER}"));
    let store = store(&sandbox);
    let args = ["monitor", "--once", "--restart", "--json", &store];
    let monitors: Vec<_> = (0..4).map(|_| sandbox.launch(&sandbox.base(), &args)).collect();
    let did: Vec<bool> = monitors
        .into_iter()
        .map(|monitor| monitor.outcome_only().exits(0).stdout.contains("started again"))
        .collect();
    assert_eq!(did.iter().filter(|did| **did).count(), 1, "{did:?}");
    wait_for_end(&sandbox);
    let resumed = sandbox.events().iter().filter(|e| matches!(e, Event::RunResumed { .. })).count();
    assert_eq!(resumed, 1);
    sandbox.check();
}

#[test]
fn a_stuck_agent_is_nudged_once_through_the_store() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.write("wiggum.toml", "[health]\nstuck_after = \"100ms\"\nnudge_wait = \"1h\"\n");
    sandbox.commit_all("settings");
    sandbox.make_pipe("ready");
    let running = sandbox.start("hang", &[]);
    sandbox.wait_ready();
    sandbox.wait_for(|event| matches!(event, Event::Nudged { by, .. } if by == "health"));
    let rows = look(&sandbox, &[&store(&sandbox)]);
    assert_eq!(rows[0]["health"]["health"], "stuck");
    assert_eq!(rows[0]["did"], "nudged its agent");
    assert!(rows[0]["alert"].as_str().unwrap().contains("no progress"), "{rows:?}");
    sandbox.wait_for(|event| matches!(event, Event::Nudged { by, .. } if by == "monitor"));
    assert_eq!(look(&sandbox, &[&store(&sandbox)])[0]["did"], Value::Null);
    running.signal("INT");
    running.finish().exits(130);
}

#[test]
fn piped_it_tells_changes_line_by_line_until_nobody_reads() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.run(WORKER, &["--verify", "true"]).exits(0);
    let mut command = sandbox.command(env!("CARGO_BIN_EXE_wiggum"));
    command.current_dir(&sandbox.root).arg("monitor").stdin(Stdio::null()).stdout(Stdio::piped());
    let mut monitor = command.spawn().unwrap();
    let mut lines = BufReader::new(monitor.stdout.take().unwrap());
    let mut first = String::new();
    lines.read_line(&mut first).unwrap();
    assert!(first.contains("completed") && first.contains("1/1"), "{first}");
    assert!(!first.contains('\x1b'), "{first}");
    sandbox.write("PRD.json", &support::prd(&["A", "B"]));
    sandbox.commit_all("more");
    let running = sandbox.start(WORKER, &["--verify", "true"]);
    running.outcome_only().exits(0);
    let mut rest = String::new();
    while !rest.contains("2/2") {
        lines.read_line(&mut rest).unwrap();
    }
    drop(lines);
    assert!(monitor.wait().unwrap().success());
    sandbox.check();
}

#[test]
fn for_people_it_is_a_table_and_a_wrong_store_is_named() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.run(WORKER, &["--verify", "true"]).exits(0);
    let run = sandbox.wiggum(&["monitor", "--once"]).exits(0);
    assert!(run.stdout.starts_with("LOOP") && run.stdout.contains("completed"), "{}", run.stdout);
    sandbox.wiggum(&["monitor", "--once", "nowhere"]).complains(2, &["nowhere", "hint:"]);
}

#[test]
fn a_checkout_that_was_moved_or_removed_is_listed_once() {
    let mut sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.run(WORKER, &["--verify", "true"]).exits(0);
    sandbox.move_to("elsewhere");
    let rows = look(&sandbox, &[&store(&sandbox)]);
    let shown: Vec<&str> = rows.iter().map(|row| row["repository"].as_str().unwrap()).collect();
    assert_eq!(shown, [store(&sandbox)]);
    std::fs::remove_dir_all(&sandbox.root).unwrap();
    let shown = sandbox.launch(&sandbox.base(), &["monitor", "--once"]).outcome_only().exits(0);
    let shown = shown.says("(no longer there)");
    assert_eq!(shown.stdout.matches("PRD.json").count(), 1, "{}", shown.stdout);
}
