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
    assert!(rows[0]["alert"].as_str().unwrap().contains("no sign of life"), "{rows:?}");
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
