//! Guards end to end: agents that fall silent, that only print dots, that wait for a busy child, and loops
//! that get nowhere.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may fail here")]

mod support;

use support::{Sandbox, WORKER};
use wiggum_core::event::{EndReason, Event, Trouble, Verdict};
use wiggum_core::health::{Health, NUDGER};

/// The whole sequence in well under a second of waiting.
const QUICK: &str = "[health]\nstuck_after = \"600ms\"\nnudge_wait = \"150ms\"\nescalate_wait = \"150ms\"\n";

fn sandbox(tasks: &[&str], settings: &str) -> Sandbox {
    let sandbox = Sandbox::with_tasks(tasks);
    sandbox.write("wiggum.toml", &format!("[retry]\nbackoff = \"0s\"\n{settings}"));
    sandbox.commit_all("settings");
    sandbox
}

/// What was recorded of the agent's health, attempt by attempt.
fn healths(sandbox: &Sandbox) -> Vec<(u32, Health)> {
    let changes = sandbox.events().into_iter().filter_map(|event| match event {
        Event::HealthChanged { attempt, health, .. } => Some((attempt, health)),
        _ => None,
    });
    changes.collect()
}

fn ended(sandbox: &Sandbox) -> EndReason {
    sandbox.state().run.ended.unwrap().0
}

/// The status file as other programs read it.
fn status(sandbox: &Sandbox) -> serde_json::Value {
    let path = sandbox.shared_file("status.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Waits for an event of a loop that may have to be made yet.
fn wait_for(sandbox: &Sandbox, wanted: impl Fn(&Event) -> bool) {
    while !sandbox.has_store() {
        std::thread::yield_now();
    }
    while sandbox.store().loops().unwrap().is_empty() {
        std::thread::yield_now();
    }
    sandbox.wait_for(wanted);
}

#[test]
fn a_silent_agent_is_nudged_then_asked_about_then_ended_and_its_work_goes_on() {
    let sandbox = sandbox(&["A"], QUICK);
    let agent = format!(
        r#"if [ $WIGGUM_ATTEMPT = 1 ]; then echo half > half.txt; exec sleep 1000; fi
        test -e half.txt || exit 9
        {WORKER}"#
    );
    let run = sandbox.run(&agent, &["--baseline", "off", "--verify", "test -e half.txt"]).exits(0);
    use Health::{Degraded, Failing, Stuck, Terminated};
    let expected = [Degraded, Stuck, Stuck, Stuck, Failing, Terminated].map(|health| (1, health));
    assert_eq!(healths(&sandbox), expected);
    let events = sandbox.events();
    let nudges = events.iter().filter(|e| matches!(e, Event::Nudged { by, .. } if by == NUDGER)).count();
    assert_eq!(nudges, 3);
    assert!(events.iter().any(|e| matches!(e, Event::AgentEnded { facts, .. }
        if facts.trouble == Some(Trouble::Silent))));
    assert!(run.stdout.contains("a person is asked"), "{}", run.stdout);
    assert!(run.stdout.contains("Force a handoff"), "{}", run.stdout);
    assert!(sandbox.state().questions.is_empty());
    // Nor is the call for a sign of progress taken for guidance.
    assert!(sandbox.state().task(&"A".into()).unwrap().guidance.is_empty());
    assert_eq!(sandbox.read("half.txt"), "half\n");
    sandbox.assert_clean();
}

#[test]
fn dots_are_no_progress_and_two_such_agents_end_the_run() {
    let sandbox = sandbox(&["A"], QUICK);
    let run = sandbox.run("while :; do printf .; sleep 0.1; done", &[]).exits(7);
    assert_eq!(ended(&sandbox), EndReason::HealthFailure);
    let ended = |attempt| healths(&sandbox).contains(&(attempt, Health::Terminated));
    assert!(ended(1) && ended(2));
    assert!(run.stdout.contains("hint:"), "{}", run.stdout);
    let status = status(&sandbox);
    assert_eq!(
        (status["state"].as_str(), status["termination_reason"].as_str()),
        (Some("failed"), Some("health_failure"))
    );
}

#[test]
fn a_child_that_is_busy_is_a_sign_of_progress() {
    let sandbox = sandbox(&["A"], QUICK);
    // The agent itself waits and says nothing for four times as long as it may.
    let agent = format!(
        r#"(end=$(($(date +%s%N) + 2400000000)); while [ $(date +%s%N) -lt $end ]; do i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; done) &
        wait
        {WORKER}"#
    );
    sandbox.run(&agent, &[]).exits(0);
    let bad =
        |(_, health): &(u32, Health)| matches!(health, Health::Stuck | Health::Failing | Health::Terminated);
    assert!(!healths(&sandbox).iter().any(bad), "{:?}", healths(&sandbox));
}

#[test]
fn files_that_change_are_a_sign_of_progress() {
    let sandbox = sandbox(&["A"], QUICK);
    let agent = format!(
        "for n in 1 2 3 4 5 6 7 8 9 10 11 12; do echo $n > progress; sleep 0.2; done\nrm progress\n{WORKER}"
    );
    sandbox.run(&agent, &[]).exits(0);
    assert!(!healths(&sandbox).iter().any(|(_, health)| *health == Health::Stuck), "{:?}", healths(&sandbox));
}

#[test]
fn an_agent_that_chatters_is_stuck_and_its_honest_twin_is_not() {
    let sandbox = sandbox(&["A"], QUICK);
    sandbox.run("i=0; while :; do i=$((i+1)); echo working $i; done", &[]).exits(7);
    assert_eq!(ended(&sandbox), EndReason::HealthFailure);
    // The twin says as much, and what it builds is of no interest to git.
    let twin = self::sandbox(&["A"], QUICK);
    twin.write(".gitignore", "target/\n");
    twin.commit_all("ignored");
    let agent = format!(
        "mkdir target; n=0; while [ $n -lt 12 ]; do n=$((n+1)); echo building $n; echo $n > target/made; sleep 0.2; done\n{WORKER}"
    );
    twin.run(&agent, &[]).exits(0);
    assert!(!healths(&twin).iter().any(|(_, health)| *health == Health::Stuck), "{:?}", healths(&twin));
}

/// Whatever moves without getting anywhere: each of these was once taken for work.
#[test]
fn motion_without_change_is_no_progress() {
    let once = format!("{QUICK}max_terminations = 1\n");
    for agent in [
        "while :; do /bin/echo working; done",
        "while :; do date > /dev/null; sleep 0.01; done",
        "while :; do touch README; sleep 0.05; done",
        "while :; do cp README copy; mv copy README; sleep 0.01; done",
        "while :; do git commit -q --allow-empty -m nothing; sleep 0.05; done",
    ] {
        let sandbox = sandbox(&["A"], &once);
        let run = sandbox.run(agent, &[]);
        assert_eq!(run.code(), Some(7), "{agent}: {}", run.stdout);
        assert_eq!(ended(&sandbox), EndReason::HealthFailure, "{agent}");
    }
}

#[test]
fn an_agent_that_calls_a_tool_again_is_healthy_again() {
    let sandbox = sandbox(&["A"], "[health]\nstuck_after = \"400ms\"\nnudge_wait = \"10s\"\n");
    let scenario = sandbox.base().join("scenario.toml");
    let steps =
        "{ say = \"a moment\" }, { run = \"sleep 1\" }, { run = \"echo x > a.txt\" }, { claim = \"\" }";
    std::fs::write(&scenario, format!("[[attempt]]\nsteps = [{steps}]\n")).unwrap();
    sandbox.wiggum(&["run", "--headless", "--scenario", scenario.to_str().unwrap()]).exits(0);
    let healths: Vec<Health> = healths(&sandbox).into_iter().map(|(_, health)| health).collect();
    assert_eq!(healths, [Health::Degraded, Health::Stuck, Health::Healthy]);
}

#[test]
fn a_person_forces_a_handoff_and_the_next_attempt_goes_on() {
    let sandbox = sandbox(&["A"], "[health]\nstuck_after = \"200ms\"\nnudges = 0\nescalate_wait = \"1h\"\n");
    let agent = format!(
        r#"if [ $WIGGUM_ATTEMPT = 1 ]; then echo half > half.txt; exec sleep 1000; fi
        test -e half.txt || exit 9
        {WORKER}"#
    );
    let running = sandbox.start(&agent, &[]);
    wait_for(&sandbox, |event| matches!(event, Event::QuestionRaised { .. }));
    let health = sandbox.launch(&sandbox.root, &["health", "--json"]).outcome_only().exits(0);
    let health: serde_json::Value = serde_json::from_str(&health.stdout).unwrap();
    assert_eq!(health[0]["health"]["health"], "failing");
    sandbox.launch(&sandbox.root, &["answer", "q1", "2"]).outcome_only().exits(0);
    running.finish().exits(0);
    let verdicts: Vec<Verdict> = sandbox
        .events()
        .into_iter()
        .filter_map(|event| match event {
            Event::Judged { verdict, .. } => Some(verdict),
            _ => None,
        })
        .collect();
    assert!(matches!(verdicts[..], [Verdict::HandedOver { .. }, Verdict::Accepted { .. }]), "{verdicts:?}");
}

#[test]
fn a_loop_that_gets_nowhere_opens_the_breaker_cools_down_and_is_probed() {
    let sandbox = sandbox(&["A", "B"], "max_retries = 9\n[breaker]\ncooldown = \"3s\"\n");
    sandbox.run("echo nothing to see", &[]).exits(7);
    assert_eq!(ended(&sandbox), EndReason::CircuitBreakerOpen);
    assert_eq!(sandbox.state().run.iterations, 3);
    assert_eq!(status(&sandbox)["breaker"]["state"], "open");

    // A probe that fails ends the run after one iteration.
    let run = sandbox.run("echo nothing to see", &[]).exits(7);
    assert!(run.stdout.contains("circuit breaker to cool down"), "{}", run.stdout);
    assert!(run.stdout.contains("half open"), "{}", run.stdout);
    assert_eq!((ended(&sandbox), sandbox.state().run.iterations), (EndReason::CircuitBreakerOpen, 1));

    // One that works closes it.
    sandbox.run(WORKER, &[]).exits(0);
    assert_eq!(status(&sandbox)["breaker"]["state"], "closed");
}

#[test]
fn a_person_need_not_wait_for_the_cooldown() {
    let sandbox = sandbox(&["A"], "[breaker]\ncooldown = \"1h\"\nno_progress = 1\n");
    sandbox.run("echo nothing to see", &[]).exits(7);
    let running = sandbox.start(WORKER, &[]);
    wait_for(&sandbox, |event| matches!(event, Event::RunStarted { run: 2, .. }));
    sandbox.launch(&sandbox.root, &["resume"]).outcome_only().exits(0);
    running.finish().exits(0);

    // Nor when it is said before the run.
    let sandbox = self::sandbox(&["A"], "[breaker]\ncooldown = \"1h\"\nno_progress = 1\n");
    sandbox.run("echo nothing to see", &[]).exits(7);
    sandbox.wiggum(&["retry", "A"]).exits(0);
    sandbox.run(WORKER, &[]).exits(0);
}

#[test]
fn nonsense_in_the_guards_is_refused_with_its_line() {
    let sandbox = sandbox(
        &["A"],
        "[health]\nstuck_after = \"soon\"\non_escalation = \"shoot\"\n[breaker]\nno_progress = -1\ncoldown = \"1m\"\n",
    );
    let run = sandbox.run(WORKER, &[]);
    for wanted in ["wiggum.toml:4", "wiggum.toml:5", "wiggum.toml:7", "wiggum.toml:8", "coldown"] {
        assert!(run.stderr.contains(wanted), "{wanted}: {}", run.stderr);
    }
    run.exits(2);
}

#[test]
fn what_supports_a_claim_is_shown_and_completes_nothing() {
    let sandbox = sandbox(&["A"], "max_retries = 9\n[claims]\npromises = [\"FERTIG\"]\n");
    // Says that it is ready, again and again, and changes only tests; promises only in the end.
    let agent = r#"mkdir -p tests; echo $WIGGUM_ATTEMPT > tests/a_test.py
        echo "All tests passing, ready for review."
        [ $WIGGUM_ATTEMPT = 1 ] && claim
        [ $WIGGUM_ATTEMPT = 4 ] && { echo; echo '<promise>FERTIG</promise>'; }
        true"#;
    let run = sandbox.run(agent, &["--verify", "true", "--max-iterations", "5"]).exits(0);
    assert_eq!(sandbox.worked_on().len(), 4, "neither words nor rows nor another promise complete a task");
    for wanted in [
        "it says \"all tests pass\"",
        "done was said 2 times in a row",
        "3 iterations in a row changed only tests",
        "2 iterations in a row led to no commit",
    ] {
        assert!(run.stdout.contains(wanted), "{wanted}: {}", run.stdout);
    }
    sandbox.wiggum(&["show", "A"]).exits(0).says("supports a claim: done was said 4 times in a row");
}

#[test]
fn the_bare_promise_is_understood_on_a_line_of_its_own() {
    let sandbox = sandbox(&["A"], "");
    sandbox.run("touch a.txt; echo; echo TASK_COMPLETE", &["--verify", "true"]).exits(0);
    let sandbox = self::sandbox(&["A"], "");
    let agent = "touch a.txt; echo when it is done I print TASK_COMPLETE";
    sandbox.run(agent, &["--verify", "true", "--max-iterations", "1"]).exits(3);
}
