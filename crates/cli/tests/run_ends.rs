//! How runs end, and what is refused before one starts.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may fail here")]

mod support;

use support::{Sandbox, WORKER, prd, prd_of, story};
use wiggum_core::event::{EndReason, Event, Request};

fn ended(sandbox: &Sandbox) -> EndReason {
    let reasons = sandbox.events().into_iter().filter_map(|event| match event {
        Event::RunEnded { reason, .. } => Some(reason),
        _ => None,
    });
    reasons.last().unwrap()
}

#[test]
fn the_iteration_limit_ends_with_3_and_says_so() {
    let sandbox = Sandbox::with_tasks(&["A", "B"]);
    sandbox.run(WORKER, &["--verify", "true", "--max-iterations", "1"]).exits(3).says("iteration limit");
    assert_eq!(ended(&sandbox), EndReason::MaxIterations);
}

#[test]
fn completion_in_the_last_iteration_is_completion() {
    let sandbox = Sandbox::with_tasks(&["A", "B"]);
    sandbox.run(WORKER, &["--verify", "true", "--max-iterations", "2"]).exits(0);
    assert_eq!(ended(&sandbox), EndReason::GoalAchieved);
}

#[test]
fn a_limit_of_nothing_is_no_limit() {
    let sandbox = Sandbox::with_tasks(&["A", "B"]);
    sandbox.run(WORKER, &["--verify", "true", "--max-iterations", "0"]).exits(0);
}

#[test]
fn the_time_limit_ends_with_5_and_takes_the_agent_along() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.run("echo half > half.txt; sleep 1000", &["--max-duration", "300ms"]).exits(5);
    assert_eq!(ended(&sandbox), EndReason::MaxDuration);
    // An interruption costs no attempt, and the work is under a ref.
    assert_eq!(sandbox.state().task(&"A".into()).unwrap().attempts, 0);
    sandbox.assert_clean();
}

#[test]
fn an_agent_over_its_time_has_failed() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    let agent = r#"keep_prompt; [ "$WIGGUM_ATTEMPT" = 1 ] && sleep 1000; touch a.txt; claim"#;
    sandbox.run(agent, &["--verify", "true", "--agent-timeout", "200ms"]).exits(0);
    assert!(sandbox.prompt("A", 2).contains("stopped after"), "{}", sandbox.prompt("A", 2));
    assert_eq!(sandbox.worked_on(), ["A", "A"]);
}

#[test]
fn a_check_over_its_time_is_no_evidence() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.write("wiggum.toml", "[checks]\ntimeout = \"200ms\"\n");
    sandbox
        .run(WORKER, &["--baseline", "off", "--verify", "sleep 1000", "--max-iterations", "1"])
        .exits(3)
        .says("timed out");
}

#[test]
fn iterations_without_progress_end_with_7() {
    let sandbox = Sandbox::with_tasks(&["A", "B", "C", "D"]);
    sandbox.run("echo thinking", &["--verify", "true"]).exits(7);
    assert_eq!(ended(&sandbox), EndReason::CircuitBreakerOpen);
    assert_eq!(sandbox.worked_on().len(), 3);
}

#[test]
fn different_errors_in_a_row_end_with_7() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    let agent = r#"case $WIGGUM_ATTEMPT in 1) echo no such file >&2;; 2) echo connection refused >&2;; *) echo segfault >&2;; esac
        echo "$WIGGUM_ATTEMPT" > half.txt; exit 1"#;
    sandbox.run(agent, &["--verify", "true"]).exits(7);
    assert_eq!(ended(&sandbox), EndReason::ConsecutiveErrors);
}

#[test]
fn the_same_error_three_times_becomes_a_question() {
    let sandbox = Sandbox::with_tasks(&["A", "B"]);
    let agent = format!(
        r#"if [ "$WIGGUM_TASK_ID" = A ]; then echo "$WIGGUM_ATTEMPT" > half.txt; echo "cannot reach 10.0.0.$WIGGUM_ATTEMPT" >&2; exit 1; fi
        {WORKER}"#
    );
    sandbox.run(&agent, &["--verify", "true"]).exits(6).says("q1");
    assert_eq!(sandbox.worked_on(), ["A", "A", "A", "B"]);
    assert_eq!(sandbox.state_of("A"), "parked");
    assert_eq!(sandbox.changed_in("HEAD"), ["B.txt", "PRD.json"]);
}

#[test]
fn a_failed_task_blocks_only_what_waits_on_it() {
    let sandbox = Sandbox::new();
    let after_a = r#", "depends_on": ["A"]"#;
    sandbox.write("PRD.json", &prd_of(&[story("A", ""), story("B", after_a), story("C", "")]));
    sandbox.commit_all("backlog");
    let verify = "test $WIGGUM_TASK_ID != A";
    sandbox
        .run(WORKER, &["--verify", verify, "--max-retries", "1"])
        .exits(6)
        .never_says("All tasks complete")
        .says("waits on A (failed)");
    assert_eq!(sandbox.worked_on(), ["A", "A", "C"]);
}

#[test]
fn a_skipped_dependency_is_explained_and_never_all_complete() {
    let sandbox = Sandbox::new();
    let a = story("A", r#", "skipped": true"#);
    sandbox.write("PRD.json", &prd_of(&[a, story("B", r#", "depends_on": ["A"]"#)]));
    sandbox.commit_all("backlog");
    sandbox
        .run(WORKER, &["--verify", "true"])
        .exits(6)
        .never_says("All tasks complete")
        .says("waits on A (skipped)")
        .says("B waits on A, which was skipped");
    assert!(sandbox.worked_on().is_empty());
}

#[test]
fn done_and_skipped_is_not_all_complete_but_nothing_left() {
    let sandbox = Sandbox::new();
    sandbox.write("PRD.json", &prd_of(&[story("A", r#", "skipped": true"#), story("B", "")]));
    sandbox.commit_all("backlog");
    sandbox.run(WORKER, &["--verify", "true"]).exits(0).never_says("All tasks complete").says("1 skipped");
}

#[test]
fn a_request_to_stop_ends_with_8_and_the_next_run_goes_on() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.make_pipe("ready");
    let started = sandbox.start("echo half > half.txt; hang", &[]);
    sandbox.wait_ready();
    sandbox.ask(&Request::Stop);
    started.finish().exits(8);
    assert_eq!(ended(&sandbox), EndReason::ExplicitStop);
    sandbox.assert_clean();
    sandbox.run(WORKER, &["--verify", "true"]).exits(0);
}

#[test]
fn an_empty_or_finished_backlog_is_success() {
    let sandbox = Sandbox::new();
    sandbox.write("PRD.json", &prd(&[]));
    sandbox.run(WORKER, &[]).exits(0).says("no tasks");
    sandbox.write("PRD.json", &prd(&["A"]).replace("false", "true"));
    sandbox.run(WORKER, &[]).exits(0);
    assert!(sandbox.worked_on().is_empty());
}

#[test]
fn a_missing_agent_or_a_check_that_is_none_is_said_before_anything_starts() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    let run = |args: &[&str]| {
        let mut all = vec!["run", "--headless"];
        all.extend(args);
        sandbox.wiggum(&all)
    };
    run(&["--agent-command", "no-such-agent --yes"]).complains(2, &["no-such-agent", "hint:"]);
    run(&["--agent-command", "./no-such-agent"]).complains(2, &["no-such-agent", "hint:"]);
    run(&["--agent-command", "sh -c 'unclosed"]).complains(2, &["never closed"]);
    run(&[]).complains(2, &["no agent", "hint:", "--agent-command"]);
    run(&["--agent-command", "true", "--verify", "check 'unclosed"]).complains(2, &["never closed"]);
    run(&["--agent-command", "true", "--prompt", "nowhere.md"]).complains(2, &["nowhere.md", "hint:"]);
    run(&["--agent-command", "true", "--max-duration", "soon"]).complains(2, &["--max-duration", "soon"]);
    run(&["--agent-command", "true", "nowhere.json"]).complains(2, &["nowhere.json", "hint:"]);
    assert!(!sandbox.has_store());
    sandbox.assert_clean();
}

#[test]
fn everything_wrong_with_a_backlog_is_reported_at_once_with_its_line() {
    let sandbox = Sandbox::new();
    let stories = [
        story("A", r#", "depends_on": ["B"]"#),
        story("B", r#", "depends_on": ["A"]"#),
        story("C", r#", "depends_on": ["X"]"#),
        story("D", ""),
        story("D", ""),
    ];
    sandbox.write("PRD.json", &prd_of(&stories));
    sandbox.run(WORKER, &[]).complains(2, &["PRD.json:4", "PRD.json:6", "`X`", "PRD.json:8", "`D`", "hint:"]);
    assert!(!sandbox.exists("A.txt"));
}

#[test]
fn work_of_a_kind_that_is_not_there_yet_is_refused() {
    let sandbox = Sandbox::new();
    for role in ["security_gate", "ideas", "evaluator", "changelog_generator"] {
        let task = format!(r#"[{{"id":"A","description":"a","status":"pending","role":"{role}"}}]"#);
        sandbox.write("tasks.json", &task);
        sandbox.run(WORKER, &[]).complains(2, &["tasks.json:1", "`A`", "not available yet", "hint:"]);
    }
}

#[test]
fn a_check_that_may_be_words_is_refused_by_name() {
    let sandbox = Sandbox::new();
    sandbox.write("TODO.md", "- [ ] T1: Do it\n  - check: frobnicate\n");
    sandbox.commit_all("backlog");
    let named = ["TODO.md:1", "`T1`", "`check: frobnicate` may be a command or words", "backticks"];
    sandbox.run(WORKER, &["--verify", "true"]).complains(2, &named);
    let validated = sandbox.wiggum(&["task", "validate"]).exits(2);
    named.iter().for_each(|words| assert!(validated.stdout.contains(words), "{}", validated.stdout));
    // A command without backticks is a check, and counts.
    sandbox.write("TODO.md", "- [ ] T1: Do it\n  - verify: false\n");
    sandbox.commit_all("a check that fails");
    sandbox.run(WORKER, &["--verify", "true", "--max-retries", "0", "--baseline", "off"]).exits(6);
    assert_eq!(sandbox.state_of("T1"), "failed");
}

#[test]
fn a_run_that_was_refused_leaves_no_loop_behind() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.write("mine.txt", "not committed\n");
    sandbox.run(WORKER, &["--verify", "true"]).complains(2, &["uncommitted changes", "mine.txt"]);
    sandbox.wiggum(&["status"]).exits(0).says("no loops here yet");
    sandbox.wiggum(&["monitor", "--once"]).exits(0).says("no loops");
    // One with a history stays, however its next start ends.
    sandbox.git(&["stash", "-u", "--quiet"]);
    sandbox.run(WORKER, &["--verify", "true"]).exits(0);
    sandbox.write("mine.txt", "not committed\n");
    sandbox.run(WORKER, &["--verify", "true"]).complains(2, &["uncommitted changes"]);
    sandbox.wiggum(&["status"]).exits(0).says("1/1 done");
}

#[test]
fn a_refused_run_leaves_neither_store_nor_mark() {
    let mut sandbox = Sandbox::with_tasks(&["A", "B"]);
    sandbox.run(WORKER, &["--verify", "true", "--max-iterations", "1"]).exits(3);
    let (id, former) = (sandbox.loop_id(), sandbox.root.file_name().unwrap().to_str().unwrap().to_owned());
    sandbox.move_to("elsewhere");
    std::fs::remove_dir_all(sandbox.root.join(".wiggum")).unwrap();
    sandbox.write("mine.txt", "not committed\n");
    sandbox.run(WORKER, &["--verify", "true"]).complains(2, &["uncommitted changes"]);
    assert!(!sandbox.exists(".wiggum/store"));
    sandbox.move_to(&former);
    sandbox.git(&["stash", "-u", "--quiet"]);
    sandbox.run(WORKER, &["--verify", "true"]).exits(0);
    assert_eq!(sandbox.loop_id(), id);
}

#[test]
fn a_backlog_of_another_repository_is_refused() {
    let (sandbox, other) = (Sandbox::new(), Sandbox::with_tasks(&["A"]));
    let file = other.root.join("PRD.json").display().to_string();
    let hint = format!("`cd {} && wiggum run PRD.json`", other.root.display());
    let here = sandbox.root.display().to_string();
    sandbox
        .run(WORKER, &[&file, "--verify", "true"])
        .complains(2, &["belongs to the repository", &here, &hint]);
    assert!(!sandbox.exists("A.txt") && !sandbox.exists(".wiggum"));
    other.assert_clean();
    // A plan that is in no repository is for the one here.
    let plan = sandbox.base().join("plan.md");
    std::fs::write(&plan, "- [ ] T1: Do it\n").unwrap();
    let plan = plan.display().to_string();
    sandbox.run(WORKER, &[&plan, "--verify", "true"]).exits(0).says(&plan).never_says(&format!("/{plan}"));
    assert!(sandbox.exists("T1.txt"));
    assert!(std::fs::read_to_string(&plan).unwrap().starts_with("- [x] T1"));
}

#[test]
fn a_loop_that_finds_another_at_work_is_not_begun() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.make_pipe("ready");
    let started = sandbox.start("hang", &["--verify", "true"]);
    sandbox.wait_ready();
    let agent = sandbox.agent(WORKER);
    let run = |args: &[&str]| sandbox.launch(&sandbox.root, args).outcome_only();
    run(&["run", "--headless", "--name", "other", "--agent-command", &agent])
        .complains(2, &["another loop works in", "hint:"]);
    run(&["status"]).exits(0).never_says("other");
    assert_eq!(sandbox.store().loops().unwrap().len(), 1);
    started.signal("INT");
    let run = started.finish().exits(130);
    let again = format!("`wiggum run --headless --agent-command '{agent}' --verify true` goes on from here");
    assert!(run.stderr.contains(&again), "{}", run.stderr);
}

#[test]
fn no_backlog_is_a_usage_error() {
    let sandbox = Sandbox::new();
    sandbox.run(WORKER, &[]).complains(2, &["no backlog", "hint:", "PRD.json"]);
    assert!(!sandbox.exists(".wiggum"));
}

#[test]
fn a_wrong_configuration_is_a_usage_error_with_its_line() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.write("wiggum.toml", "name = \"x\"\n\n[limits]\niteratoins = 3\nduration = \"soon\"\n");
    sandbox.run(WORKER, &[]).complains(2, &["wiggum.toml:4", "iteratoins", "wiggum.toml:5", "hint:"]);
    sandbox.write("wiggum.toml", "name = \"x\n");
    sandbox.run(WORKER, &[]).complains(2, &["wiggum.toml:1"]);
    sandbox.write("wiggum.toml", "[protect]\npaths = [\"a[\"]\n");
    sandbox.run(WORKER, &[]).complains(2, &["a["]);
    assert!(!sandbox.exists("A.txt"));
}

#[test]
fn outside_a_repository_it_works_without_commits_and_says_so() {
    let sandbox = Sandbox::plain();
    sandbox.write("PRD.json", &prd(&["A", "B"]));
    let agent = r#"keep_prompt; echo "$WIGGUM_ATTEMPT" >> "$WIGGUM_TASK_ID.txt"; claim"#;
    let verify = r#"test "$WIGGUM_TASK_ID" = B || grep -q 2 A.txt"#;
    sandbox.run(agent, &["--verify", verify]).exits(0).says("not a git repository");
    assert_eq!(sandbox.read("A.txt"), "1\n2\n");
    assert_eq!(sandbox.read("PRD.json").matches("\"passes\": true").count(), 2);
    let shown = sandbox.wiggum(&["show", "A"]).exits(0);
    shown.says("no diff: this is no git repository");
}

#[test]
fn outside_a_repository_no_progress_is_noticed_too() {
    let sandbox = Sandbox::plain();
    sandbox.write("PRD.json", &prd(&["A", "B", "C", "D"]));
    sandbox.run("echo thinking", &["--verify", "true"]).exits(7);
    assert_eq!(ended(&sandbox), EndReason::CircuitBreakerOpen);
}

#[test]
fn a_branch_without_commits_is_fine() {
    let sandbox = Sandbox::unborn();
    sandbox.write("PRD.json", &prd(&["A", "B"]));
    let agent = r#"echo "$WIGGUM_ATTEMPT" > "$WIGGUM_TASK_ID.txt"; claim"#;
    let verify = r#"test "$WIGGUM_TASK_ID" = B || grep -q 2 A.txt"#;
    sandbox.run(agent, &["--verify", verify]).exits(0);
    assert_eq!(sandbox.subjects(), ["A: Do A", "B: Do B"]);
    assert_eq!(sandbox.changed_in("HEAD"), ["B.txt"]);
    assert_eq!(sandbox.dirt(), "?? PRD.json");
}

#[test]
fn a_branch_without_commits_survives_a_failed_task_and_ctrl_c() {
    let sandbox = Sandbox::unborn();
    sandbox.write("PRD.json", &prd(&["A", "B"]));
    sandbox.make_pipe("ready");
    let started = sandbox.start("echo half > half.txt; hang", &[]);
    sandbox.wait_ready();
    started.signal("INT");
    started.finish().exits(130);
    assert_eq!(sandbox.dirt(), "?? PRD.json");
    let verify = "test $WIGGUM_TASK_ID = B";
    sandbox.run(WORKER, &["--verify", verify, "--max-retries", "0"]).exits(6);
    assert_eq!(sandbox.subjects(), ["B: Do B"]);
    assert_eq!(sandbox.changed_in("HEAD"), ["B.txt"]);
}

#[test]
fn from_a_subdirectory_the_whole_repository_is_meant() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.write("sub/x", "x\n");
    sandbox.commit_all("sub");
    let command = sandbox.agent(WORKER);
    let args =
        ["run", "--headless", "--agent-command", &command, "--baseline", "off", "--verify", "test -f A.txt"];
    sandbox.wiggum_in(&sandbox.root.join("sub"), &args).exits(0);
    assert_eq!(sandbox.changed_in("HEAD"), ["A.txt", "PRD.json"]);
    assert!(sandbox.exists(".wiggum") && !sandbox.exists("sub/.wiggum"));
}

#[test]
fn a_backlog_in_a_subdirectory_is_committed_there() {
    let sandbox = Sandbox::new();
    sandbox.write("plans/PRD.json", &prd(&["A"]));
    sandbox.commit_all("backlog");
    let command = sandbox.agent(WORKER);
    let args = ["run", "PRD.json", "--headless", "--agent-command", &command, "--verify", "true"];
    sandbox.wiggum_in(&sandbox.root.join("plans"), &args).exits(0);
    assert_eq!(sandbox.changed_in("HEAD"), ["A.txt", "plans/PRD.json"]);
    sandbox.assert_clean();
}

#[test]
fn backlog_and_prompt_may_lie_elsewhere() {
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.base().join("PRD.json"), prd(&["A"])).unwrap();
    std::fs::write(sandbox.base().join("words.md"), "Special words.\n").unwrap();
    let agent = format!("keep_prompt\n{WORKER}");
    let args = ["--verify", "true", "--prompt", "../words.md", "../PRD.json"];
    sandbox.run(&agent, &args).exits(0);
    assert!(sandbox.prompt("A", 1).starts_with("Special words."));
    assert!(sandbox.note("PRD.json").contains("true"));
    assert_eq!(sandbox.changed_in("HEAD"), ["A.txt"]);
    sandbox.assert_clean();
}

#[test]
fn a_linked_work_tree_has_its_own_loop() {
    let sandbox = Sandbox::with_tasks(&["A", "B"]);
    let tree = sandbox.base().join("tree");
    sandbox.git(&["worktree", "add", "-q", "-b", "side", tree.to_str().unwrap()]);
    let command = sandbox.agent("rm -f .git-nothing; echo x > \"$WIGGUM_TASK_ID.txt\"; claim");
    let args = ["run", "--headless", "--agent-command", &command, "--verify", "true"];
    sandbox.wiggum_in(&tree, &args).exits(0);
    assert_eq!(sandbox.git(&["log", "-1", "--format=%s", "side"]), "B: Do B");
    assert_eq!(sandbox.git(&["log", "-1", "--format=%s", "main"]), "backlog");
    assert_eq!(sandbox.git_in(&tree, &["status", "--porcelain"]), "");
    assert!(tree.join(".wiggum").exists() && !sandbox.exists(".wiggum"));
    sandbox.assert_clean();
}

/// What the demo says to look at next is there, under the address it names.
#[test]
fn the_next_step_of_the_demo_works() {
    let sandbox = Sandbox::plain();
    let run = sandbox.wiggum(&["demo", "--dir", "shown"]).exits(0);
    let step = run.stdout.lines().find_map(|line| line.trim().strip_prefix("cd ")).unwrap();
    let (project, show) = step.split_once(" && wiggum ").unwrap();
    assert!(show.starts_with("show greet"), "{step}");
    let project = std::path::Path::new(project);
    sandbox.wiggum_in(project, &["show", "greet"]).exits(0).says("Attempt 1").says("sh check.sh greet");
    sandbox.wiggum_in(project, &["events"]).exits(0).says("run 1 started");
}

#[test]
fn the_time_of_a_run_bounds_a_check_that_hangs() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    let hangs = "test ! -e A.txt || { echo junk > junk.txt; exec sleep 1000; }";
    sandbox
        .run(WORKER, &["--verify", hangs, "--max-duration", "3s"])
        .exits(5)
        .says("the time limit is reached")
        .says("A  interrupted");
    sandbox.wiggum(&["status"]).exits(0).never_says("checks since");
    sandbox.assert_clean();
    let entry = sandbox.state().task(&"A".into()).unwrap().clone();
    assert_eq!((entry.failures, entry.attempts), (0, 0), "no attempt has failed");
    // The work waits for its checks, and needs no agent again.
    sandbox.run("exit 9", &["--verify", "test -e A.txt", "--max-duration", "1h"]).exits(0);
    assert_eq!(sandbox.changed_in("HEAD"), ["A.txt", "PRD.json"]);
}

#[test]
fn the_time_of_a_run_bounds_the_checks_before_any_agent() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    let hangs = "echo junk > junk.txt; exec sleep 1000";
    sandbox.run(WORKER, &["--verify", hangs, "--max-duration", "300ms"]).exits(5);
    sandbox.assert_clean();
    assert_eq!(sandbox.state().iterations, 0);
    sandbox.run(WORKER, &["--verify", "true", "--max-duration", "1h"]).exits(0);
}

#[test]
fn the_status_file_tells_that_the_last_commit_is_made() {
    let sandbox = Sandbox::with_tasks(&["A", "B"]);
    let hook = "#!/bin/sh\ncat .wiggum/loops/*/status.json >> \"$SANDBOX/seen\"\necho >> \"$SANDBOX/seen\"\n";
    sandbox.write_program(".git/hooks/pre-commit", hook);
    sandbox.run(WORKER, &["--verify", "true"]).exits(0);
    let seen = sandbox.note("seen");
    let states: Vec<String> = seen
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .map(|status| status["state"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(states.last().map(String::as_str), Some("completing"), "{states:?}");
    assert!(states.iter().rev().skip(1).all(|state| state != "completing"), "{states:?}");
}

/// A hook that says that it began, and never ends.
fn with_hanging_hook(name: &str) -> Sandbox {
    let sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.make_pipe("ready");
    let hook = "#!/bin/sh\necho begun > \"$SANDBOX/ready\"\nsleep 1000\n";
    sandbox.write_program(&format!(".git/hooks/{name}"), hook);
    sandbox
}

/// The attempt was accepted: without the hook it is committed, and no agent works again.
fn lands_without_another_agent(sandbox: &Sandbox) {
    sandbox.assert_clean();
    assert!(sandbox.read("PRD.json").contains("\"passes\": false"), "{}", sandbox.read("PRD.json"));
    std::fs::remove_dir_all(sandbox.root.join(".git/hooks")).unwrap();
    sandbox.run("echo again > again.txt; claim", &["--verify", "true"]).exits(0);
    assert_eq!(sandbox.subjects(), ["first", "backlog", "A: Do A"]);
    assert_eq!(sandbox.read("A.txt"), "A\n");
    assert_eq!(sandbox.worked_on(), ["A"]);
}

#[test]
fn the_time_of_a_run_bounds_a_hook_that_hangs() {
    for sandboxed in ["none", "bwrap"] {
        let sandbox = Sandbox::with_tasks(&["A"]);
        sandbox.write_program(".git/hooks/pre-commit", "#!/bin/sh\nsleep 1000\n");
        let limits = ["--verify", "true", "--max-duration", "3s", "--sandbox", sandboxed];
        let run = sandbox.run(WORKER, &limits).exits(5);
        assert!(run.stderr.contains("a hook that it runs"), "{}", run.stderr);
        lands_without_another_agent(&sandbox);
    }
}

#[test]
fn ctrl_c_is_heard_while_a_hook_hangs() {
    let sandbox = with_hanging_hook("pre-commit");
    let run = sandbox.start(WORKER, &["--verify", "true", "--sandbox", "none"]);
    sandbox.wait_ready();
    run.signal("INT");
    run.finish().exits(130);
    lands_without_another_agent(&sandbox);
}

#[test]
fn a_request_to_stop_is_heard_while_a_hook_hangs() {
    let sandbox = with_hanging_hook("commit-msg");
    let run = sandbox.start(WORKER, &["--verify", "true", "--sandbox", "none"]);
    sandbox.wait_ready();
    sandbox.ask(&Request::Stop);
    run.finish().exits(8);
    lands_without_another_agent(&sandbox);
}

/// The commit was made before the hook began: it is not made again.
#[test]
fn a_hook_that_hangs_after_the_commit_costs_nothing() {
    let sandbox = with_hanging_hook("post-commit");
    let run = sandbox.start(WORKER, &["--verify", "true", "--sandbox", "none"]);
    sandbox.wait_ready();
    run.signal("INT");
    run.finish().exits(130);
    sandbox.assert_clean();
    sandbox.run("false", &[]).exits(0);
    assert_eq!(sandbox.subjects(), ["first", "backlog", "A: Do A"]);
    assert_eq!(sandbox.worked_on(), ["A"]);
}
