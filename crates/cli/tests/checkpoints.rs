//! Checkpoints from outside: every iteration has one, damage to any is named, and going back to one
//! loses nothing, wherever the plug is pulled.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may fail here")]

mod support;

use std::fs;

use serde_json::Value;
use support::{Sandbox, WORKER};
use wiggum_core::event::Event;

/// Three tasks, all done.
fn done() -> Sandbox {
    let sandbox = Sandbox::with_tasks(&["A", "B", "C"]);
    sandbox.run(WORKER, &["--verify", "true"]).exits(0);
    sandbox
}

fn json(sandbox: &Sandbox, args: &[&str]) -> Value {
    let mut all = args.to_vec();
    all.push("--json");
    serde_json::from_str(&sandbox.wiggum(&all).exits(0).stdout).unwrap()
}

fn list(sandbox: &Sandbox) -> Vec<Value> {
    json(sandbox, &["checkpoint", "list"]).as_array().unwrap().clone()
}

/// The hash of the checkpoint of an iteration.
fn of_iteration(sandbox: &Sandbox, iteration: u64) -> String {
    let found = list(sandbox).into_iter().find(|row| row["iteration"] == iteration).unwrap();
    found["sha256"].as_str().unwrap().to_owned()
}

fn database(sandbox: &Sandbox) -> rusqlite::Connection {
    rusqlite::Connection::open(sandbox.state_dir().database()).unwrap()
}

fn kept_under(sandbox: &Sandbox) -> Vec<String> {
    let all = sandbox.git(&["for-each-ref", "--format=%(refname)", "refs/wiggum"]);
    all.lines().filter(|name| name.contains("/restored/")).map(str::to_owned).collect()
}

#[test]
fn every_iteration_has_a_checkpoint_that_can_be_looked_at_and_proved() {
    let sandbox = done();
    let rows = list(&sandbox);
    let seen: Vec<(u64, &str, &str)> = rows
        .iter()
        .map(|row| {
            let text = |name: &str| row[name].as_str().unwrap();
            (row["iteration"].as_u64().unwrap(), text("task"), text("phase"))
        })
        .collect();
    assert_eq!(seen, [(1, "A", "complete"), (2, "B", "complete"), (3, "C", "complete")]);
    assert_eq!(rows[0]["previous"], Value::Null);
    assert_eq!(rows[1]["previous"], rows[0]["sha256"]);
    assert_eq!(rows[2]["previous"], rows[1]["sha256"]);

    let shown = json(&sandbox, &["checkpoint", "show", &of_iteration(&sandbox, 2)[..10]]);
    assert_eq!(shown["sha256"], rows[1]["sha256"]);
    assert_eq!(shown["id"], rows[1]["id"]);
    assert_eq!(shown["completed"]["count"], 2);
    assert_eq!(shown["pending"]["items"][0]["task"], "C");
    assert_eq!(shown["metrics"]["checks_passed"], 1);
    assert_eq!(shown["recovery"]["commit"], sandbox.git(&["rev-parse", "HEAD~1"]).as_str());
    let id: uuid::Uuid = shown["id"].as_str().unwrap().parse().unwrap();
    assert_eq!(id.get_version_num(), 7);
    sandbox.wiggum(&["checkpoint", "show"]).exits(0).says("iteration 3").says("complete");
    sandbox.wiggum(&["checkpoint", "list"]).exits(0).says(&of_iteration(&sandbox, 1)[..12]);
    sandbox.wiggum(&["checkpoint", "verify"]).exits(0).says("3 checkpoints").says("chain is whole");
    assert_eq!(json(&sandbox, &["checkpoint", "verify"])["valid"], true);
    sandbox.wiggum(&["checkpoint", "show", "zzz"]).complains(2, &["no checkpoint `zzz`", "checkpoint list"]);
}

#[test]
fn one_changed_byte_is_found_and_named() {
    let sandbox = done();
    let sha256 = of_iteration(&sandbox, 2);
    let change =
        "UPDATE blobs SET data = CAST(substr(data, 1, length(data) - 1) || 'x' AS BLOB) WHERE sha256 = ?1";
    assert_eq!(database(&sandbox).execute(change, [&sha256]).unwrap(), 1);
    let words = [&sha256[..12], "iteration 2", "of B", "changed or damaged"];
    sandbox.wiggum(&["checkpoint", "verify"]).complains(1, &words);
    sandbox.wiggum(&["checkpoint", "show", &sha256[..12]]).complains(1, &words);
    sandbox.wiggum(&["checkpoint", "restore", &sha256[..12]]).complains(1, &["cannot be used"]);
    sandbox.wiggum(&["checkpoint", "list"]).exits(0).says("damaged");
    let run = sandbox.wiggum(&["checkpoint", "verify", "--json"]).exits(1);
    let verified: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!((&verified["valid"], &verified["first_bad"]["iteration"]), (&false.into(), &2.into()));
    // The others are as they were.
    sandbox.wiggum(&["checkpoint", "show", &of_iteration(&sandbox, 1)]).exits(0);
}

#[test]
fn one_that_is_missing_or_replaced_is_found_and_named() {
    let sandbox = done();
    let (first, second) = (of_iteration(&sandbox, 1), of_iteration(&sandbox, 2));
    // The text of the second stands where the first was, under a hash that is right for it.
    let forge =
        "UPDATE events SET payload = replace(payload, ?1, ?2) WHERE type = 'checkpointed' AND payload LIKE
                 '%\"iteration\":1,%'";
    assert_eq!(database(&sandbox).execute(forge, [&first, &second]).unwrap(), 1);
    sandbox
        .launch(&sandbox.root, &["checkpoint", "verify"])
        .outcome_only()
        .complains(1, &["iteration 1", "another"]);

    // One is taken out of the journal: the next does not follow the one before any more.
    let sandbox = done();
    let remove = "DELETE FROM events WHERE type = 'checkpointed' AND payload LIKE '%\"iteration\":2,%'";
    assert_eq!(database(&sandbox).execute(remove, []).unwrap(), 1);
    let words = ["iteration 3", "does not follow"];
    sandbox.launch(&sandbox.root, &["checkpoint", "verify"]).outcome_only().complains(1, &words);

    let sandbox = done();
    let second = of_iteration(&sandbox, 2);
    database(&sandbox).execute("DELETE FROM blobs WHERE sha256 = ?1", [&second]).unwrap();
    sandbox.wiggum(&["checkpoint", "verify"]).complains(1, &["iteration 2", "missing"]);
}

#[test]
fn a_checkpoint_can_be_asked_for_whether_or_not_the_loop_runs() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.wiggum(&["checkpoint", "create"]).complains(2, &["no loops here yet"]);
    sandbox.make_pipe("ready");
    sandbox.make_pipe("go");
    let started =
        sandbox.start("cat > /dev/null; ready; wait_for_go; echo > x; claim", &["--verify", "true"]);
    sandbox.wait_ready();
    let run = sandbox.launch(&sandbox.root, &["checkpoint", "create", "--json"]).outcome_only().exits(0);
    let made: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!((&made["phase"], &made["outcome"]), (&"implementing".into(), &"under way".into()));
    assert_eq!(made["sha256"].as_str().unwrap().len(), 64);
    let run = sandbox.launch(&sandbox.root, &["checkpoint", "restore", "last"]).outcome_only();
    run.complains(2, &["runs", "wiggum stop"]);
    sandbox.go();
    started.finish().exits(0);
    let made = json(&sandbox, &["checkpoint", "create"]);
    assert_eq!((&made["phase"], &made["task"]), (&"complete".into(), &"A".into()));
    assert_eq!(list(&sandbox).len(), 3);
    sandbox.wiggum(&["checkpoint", "verify"]).exits(0);
    assert_eq!(sandbox.state().run.number, 1);
}

#[test]
fn going_back_puts_branch_tasks_and_backlog_back_and_keeps_what_came_after() {
    let sandbox = done();
    let (tip, first) = (sandbox.git(&["rev-parse", "HEAD"]), sandbox.git(&["rev-parse", "HEAD~2"]));
    // A person's own edit of the backlog, committed, stays.
    sandbox.write("PRD.json", &sandbox.read("PRD.json").replace("Do C", "Do C well"));
    sandbox.commit_all("other words");
    let tip_with_words = sandbox.git(&["rev-parse", "HEAD"]);
    let went = json(&sandbox, &["checkpoint", "restore", &of_iteration(&sandbox, 1)]);
    assert_eq!((&went["commit"], &went["tasks_changed"]), (&first.as_str().into(), &2.into()));
    assert_eq!(sandbox.git(&["rev-parse", "HEAD"]), first);
    assert_eq!(sandbox.git(&["symbolic-ref", "HEAD"]), "refs/heads/main");
    assert!(sandbox.exists("A.txt") && !sandbox.exists("B.txt") && !sandbox.exists("C.txt"));
    let backlog = sandbox.read("PRD.json");
    assert!(backlog.contains("Do C well"), "{backlog}");
    assert_eq!(backlog.matches("\"passes\": true").count(), 1, "{backlog}");
    assert_eq!([sandbox.state_of("A"), sandbox.state_of("B")], ["done", "open"]);
    // Nobody takes it for the run that ended, in whatever they look.
    let file = fs::read_to_string(sandbox.shared_file("status.json")).unwrap();
    for status in [serde_json::from_str(&file).unwrap(), json(&sandbox, &["status"])[0].clone()] {
        assert_eq!(
            (&status["state"], &status["restored"]),
            (&"initializing".into(), &went["id"]),
            "{status}"
        );
        assert_eq!((&status["termination_reason"], &status["counts"]["done"]), (&Value::Null, &1.into()));
    }
    sandbox.wiggum(&["status"]).exits(0).says("back at a checkpoint: `wiggum run` goes on").says("1/3 done");
    let kept = kept_under(&sandbox);
    assert_eq!(kept, [went["kept_under"].as_str().unwrap()]);
    assert_eq!(sandbox.git(&["rev-parse", &kept[0]]), tip_with_words);
    sandbox.git(&["merge-base", "--is-ancestor", &tip, &kept[0]]);

    sandbox.run(WORKER, &["--verify", "true"]).exits(0);
    assert_eq!(sandbox.worked_on(), ["A", "B", "C", "B", "C"]);
    assert_eq!(json(&sandbox, &["status"])[0]["state"], "completed");
    assert_eq!(sandbox.state().task(&"B".into()).unwrap().attempts, 2);
    assert_eq!(sandbox.git(&["rev-parse", "HEAD~2"]), first);
    assert!(sandbox.exists("C.txt"));
    sandbox.assert_clean();
    sandbox.wiggum(&["checkpoint", "verify"]).exits(0).says("5 checkpoints");
    // And forward again, to what was left behind.
    sandbox.wiggum(&["checkpoint", "restore", &of_iteration(&sandbox, 3)]).exits(0);
    assert_eq!(sandbox.git(&["rev-parse", "HEAD"]), tip);
    assert_eq!(sandbox.state().tasks.counts().done, 3);
}

#[test]
fn uncommitted_changes_are_refused_or_kept() {
    let sandbox = done();
    let first = of_iteration(&sandbox, 1);
    sandbox.write("B.txt", "mine\n");
    sandbox.write("new.txt", "mine too\n");
    let restore = ["checkpoint", "restore", &first];
    sandbox.wiggum(&restore).complains(2, &["uncommitted changes", "B.txt", "--keep-changes"]);
    assert_eq!(sandbox.read("B.txt"), "mine\n");
    sandbox.wiggum(&[&restore[..], &["--keep-changes"]].concat()).exits(0);
    assert!(!sandbox.exists("new.txt") && !sandbox.exists("B.txt"));
    let kept = kept_under(&sandbox);
    assert_eq!(sandbox.git(&["show", &format!("{}:B.txt", kept[0])]), "mine");
    assert_eq!(sandbox.git(&["show", &format!("{}:new.txt", kept[0])]), "mine too");
    sandbox.run(WORKER, &["--verify", "true"]).exits(0);
}

#[test]
fn what_cannot_be_gone_back_to_is_said_before_anything_changes() {
    let sandbox = done();
    let first = of_iteration(&sandbox, 1);
    sandbox.git(&["switch", "-q", "-c", "side"]);
    sandbox.wiggum(&["checkpoint", "restore", &first]).complains(2, &["is of main", "on side", "git switch"]);
    assert!(kept_under(&sandbox).is_empty());
    assert!(!sandbox.events().iter().any(|event| matches!(event, Event::RestoreStarted { .. })));
}

#[test]
fn an_unfinished_attempt_is_settled_before_going_back() {
    let sandbox = Sandbox::with_tasks(&["A", "B"]);
    sandbox.make_pipe("ready");
    let agent = r#"cat > /dev/null; echo half > "$WIGGUM_TASK_ID.txt"; [ $WIGGUM_TASK_ID = A ] && { claim; exit; }; hang"#;
    let started = sandbox.start(agent, &["--verify", "true"]);
    sandbox.wait_ready();
    started.kill();
    sandbox.wiggum(&["checkpoint", "restore", "last"]).exits(0).says("back at checkpoint");
    assert!(!sandbox.exists("B.txt"));
    assert!(sandbox.events().iter().any(|event| matches!(event, Event::Interrupted { .. })));
    sandbox.run(WORKER, &["--verify", "true"]).exits(0);
    assert_eq!(sandbox.read("B.txt"), "B\n");
}

/// Copies a directory of the sandbox, in place of what is there.
/// Copies the repository and its private state, which lies elsewhere.
fn copy(sandbox: &Sandbox, from: &str, to: &str) {
    let state = |of: &str| if of == "repo" { "home".to_owned() } else { format!("{of}-home") };
    for (from, to) in [(from.to_owned(), to.to_owned()), (state(from), state(to))] {
        let (from, to) = (sandbox.base().join(from), sandbox.base().join(to));
        drop(fs::remove_dir_all(&to));
        let status = sandbox.command("cp").arg("-a").arg(from).arg(&to).status().unwrap();
        assert!(status.success());
    }
}

/// Goes back to a checkpoint, up to a crash point if one is given; nothing if it was killed.
fn restore(sandbox: &Sandbox, which: &str, crash_at: Option<usize>) -> Option<i32> {
    let mut command = sandbox.command(env!("CARGO_BIN_EXE_wiggum"));
    command.current_dir(&sandbox.root).args(["checkpoint", "restore", which, "--keep-changes"]);
    command.env("WIGGUM_CRASH_LOG", sandbox.base().join("points"));
    command.envs(crash_at.map(|at| ("WIGGUM_CRASH_AT", at.to_string())));
    command.output().unwrap().status.code()
}

/// The crash points of a restore that nobody disturbs, which then has happened.
fn points(sandbox: &Sandbox, which: &str) -> Vec<String> {
    assert_eq!(restore(sandbox, which, None), Some(0));
    sandbox.note("points").lines().map(str::to_owned).collect()
}

#[test]
fn what_somebody_does_between_a_killed_restore_and_the_next_start_is_kept() {
    let sandbox = done();
    let first = of_iteration(&sandbox, 1);
    copy(&sandbox, "repo", "before");
    // A copy is another directory, which is noted: so it is one both times.
    copy(&sandbox, "before", "repo");
    let kept = points(&sandbox, &first).iter().position(|point| point == "tip kept").unwrap() + 1;
    copy(&sandbox, "before", "repo");
    assert_eq!(restore(&sandbox, &first, Some(kept)), None);
    sandbox.write("later.txt", "committed\n");
    sandbox.commit_all("later");
    sandbox.write("later.txt", "and changed\n");
    sandbox.run(WORKER, &["--verify", "true"]).exits(0);
    assert!(!sandbox.exists("later.txt"));
    let found = sandbox.git(&["for-each-ref", "--format=%(refname)", "refs/wiggum"]);
    let found = found.lines().find(|name| name.contains("/found/")).unwrap();
    assert_eq!(sandbox.git(&["show", &format!("{found}:later.txt")]), "and changed");
    assert_eq!(sandbox.git(&["show", &format!("{found}~1:later.txt")]), "committed");
}

#[test]
fn a_restore_killed_anywhere_is_completed_by_the_next_start() {
    let sandbox = done();
    sandbox.write("B.txt", "mine\n");
    let first = of_iteration(&sandbox, 1);
    copy(&sandbox, "repo", "before");
    let outcome = || {
        sandbox.run(WORKER, &["--verify", "true"]).exits(0);
        sandbox.assert_clean();
        let kept = kept_under(&sandbox);
        let kept: Vec<String> =
            kept.iter().map(|kept| sandbox.git(&["log", "-2", "--format=%T %s", kept])).collect();
        let log = sandbox.git(&["log", "--format=%T %s"]);
        let state = sandbox.state();
        let tasks: Vec<String> =
            state.tasks.iter().map(|entry| format!("{:?} {}", entry.state, entry.attempts)).collect();
        (kept, log, sandbox.read("PRD.json"), tasks, state.restoring)
    };
    let points = points(&sandbox, &first);
    let undisturbed = outcome();
    assert_eq!((undisturbed.0.len(), undisturbed.4.is_none()), (1, true));
    for wanted in ["restore intended", "tip kept", "branch put back", "restored", "status written"] {
        assert!(points.iter().any(|point| point == wanted), "{wanted} is not among {points:?}");
    }
    for (at, point) in points.iter().enumerate() {
        copy(&sandbox, "before", "repo");
        assert_eq!(restore(&sandbox, &first, Some(at + 1)), None, "{point}");
        let begun = sandbox.events().iter().any(|event| matches!(event, Event::RestoreStarted { .. }));
        if !begun {
            assert_eq!(sandbox.read("B.txt"), "mine\n", "nothing has changed before {point}");
            assert_eq!(restore(&sandbox, &first, None), Some(0), "{point}");
        }
        assert_eq!(outcome(), undisturbed, "killed at point {}, {point}", at + 1);
    }
}
