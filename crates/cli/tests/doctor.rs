//! `wiggum doctor` against damage that is done for real: it is found, explained, and with `--fix`
//! repaired where that is safe.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may fail here")]

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;
use support::{Run, Sandbox, WORKER};

/// A sandbox in which a loop ran to its end.
fn after_a_run() -> Sandbox {
    let sandbox = Sandbox::with_tasks(&["A", "B"]);
    sandbox.run(WORKER, &["--verify", "true"]).exits(0);
    sandbox
}

/// Without the checks that every other command of a sandbox gets: here something is broken.
fn doctor(sandbox: &Sandbox, args: &[&str]) -> Run {
    let all: Vec<&str> = ["doctor"].iter().chain(args).copied().collect();
    sandbox.launch(&sandbox.root, &all).outcome_only()
}

fn findings(run: &Run) -> Vec<Value> {
    serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {run:?}"))
}

/// Damage that can be repaired: named first, repaired then, and gone afterwards.
fn check_fixed(sandbox: &Sandbox, named: &str, repair: &str) {
    let first = doctor(sandbox, &[]).exits(0).says(named).says("`wiggum doctor --fix` does it");
    drop(first);
    let fixed = doctor(sandbox, &["--fix", "--json"]).exits(0);
    let all = findings(&fixed);
    let one = all.iter().find(|finding| finding["fix"] == repair).unwrap_or_else(|| panic!("{all:?}"));
    assert!(one["message"].as_str().unwrap().contains(named), "{one}");
    assert!(one["fixed"].is_string(), "{one}");
    drop(doctor(sandbox, &[]).exits(0).never_says(named));
}

#[test]
fn a_healthy_loop_has_nothing_to_repair() {
    let sandbox = after_a_run();
    let run = doctor(&sandbox, &["--fix", "--json"]).exits(0);
    assert!(findings(&run).iter().all(|finding| finding["fix"].is_null()), "{run:?}");
}

#[test]
fn a_dead_engine_and_what_it_started_are_cleared_away() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.make_pipe("ready");
    let started = sandbox.start("hang", &["--verify", "true", "--sandbox", "landlock"]);
    let agent = sandbox.wait_ready();
    started.kill_with_watchdog();
    drop(doctor(&sandbox, &[]).exits(0).says("which is gone").says(agent.trim()));
    let run = doctor(&sandbox, &["--fix"]).exits(0).says("nobody holds it any more").says("ended 1 of them");
    drop(run);
    assert!(sandbox.processes().is_empty(), "{:?}", sandbox.processes());
    drop(doctor(&sandbox, &[]).exits(0).never_says("which is gone").never_says("without an engine"));
    // The loop itself was not touched: it goes on where it was.
    sandbox.run(WORKER, &["--verify", "true"]).exits(0);
    assert_eq!(sandbox.state().run.number, 1);
}

#[test]
fn an_engine_at_work_is_left_alone() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.make_pipe("ready");
    sandbox.make_pipe("go");
    let started = sandbox.start(&format!("ready; wait_for_go; {WORKER}"), &["--verify", "true"]);
    sandbox.wait_ready();
    drop(doctor(&sandbox, &["--fix"]).exits(0).says("is run by process").never_says("ended"));
    sandbox.go();
    started.finish().exits(0);
}

#[test]
fn a_broken_journal_is_named_and_not_touched() {
    let damages = [
        ("DELETE FROM events WHERE seq = 4", "event 5 follows event 3"),
        ("UPDATE events SET payload = '{\"type\":\"nonsense\"}' WHERE seq = 4", "event 4"),
        ("UPDATE blobs SET sha256 = 'x' || substr(sha256, 2)", "differs from its hash"),
        (
            "UPDATE events SET payload = replace(payload, '\"iteration\":1', '\"iteration\":7')
             WHERE type = 'task_completed'",
            "was not accepted",
        ),
    ];
    for (damage, named) in damages {
        let sandbox = after_a_run();
        let database = sandbox.state_dir().database();
        let connection = rusqlite::Connection::open(&database).unwrap();
        connection.pragma_update(None, "foreign_keys", false).unwrap();
        assert!(connection.execute(damage, []).unwrap() > 0, "{damage}");
        drop(connection);
        let before = sandbox.read("PRD.json");
        drop(doctor(&sandbox, &["--fix"]).exits(1).says("problem").says(named));
        assert_eq!(sandbox.read("PRD.json"), before);
    }
}

#[test]
fn a_work_tree_that_is_gone_is_forgotten() {
    let sandbox = after_a_run();
    let beside = sandbox.base().join("beside");
    sandbox.git(&["worktree", "add", "-q", "-b", "beside", beside.to_str().unwrap()]);
    fs::remove_dir_all(&beside).unwrap();
    check_fixed(&sandbox, "the work tree is gone", "prune_worktrees");
    sandbox.git(&["branch", "-D", "beside"]);
}

#[test]
fn the_lock_of_a_dead_git_is_removed() {
    let sandbox = after_a_run();
    sandbox.write(".git/index.lock", "");
    check_fixed(&sandbox, "a lock is left", "clear_locks");
    assert!(!sandbox.exists(".git/index.lock"));
}

#[test]
fn files_of_a_write_that_was_cut_off_are_removed() {
    let sandbox = after_a_run();
    sandbox.write(".PRD.json.4711-0.wiggum-tmp", "{ \"userStor");
    check_fixed(&sandbox, "a write that was cut off", "remove_temporary");
    assert!(!sandbox.exists(".PRD.json.4711-0.wiggum-tmp"));
}

#[test]
fn a_status_file_that_is_gone_is_written_anew() {
    let sandbox = after_a_run();
    let file = sandbox.shared_file("status.json");
    let before: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    fs::remove_file(&file).unwrap();
    check_fixed(&sandbox, "status.json of loop main", "write_status_file");
    let after: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(after["counts"], before["counts"]);
}

#[test]
fn state_that_others_could_read_or_commit_is_hidden() {
    let sandbox = after_a_run();
    fs::set_permissions(sandbox.state_dir().path(), fs::Permissions::from_mode(0o755)).unwrap();
    check_fixed(&sandbox, "can be read by others", "make_private");
    fs::remove_file(sandbox.root.join(".git/info/exclude")).unwrap();
    check_fixed(&sandbox, "is not ignored by git", "exclude");
}

#[test]
fn a_backlog_that_lags_behind_the_journal_is_written() {
    // Killed between the record that B is skipped and the file that should say so.
    let killed_at = |number: Option<usize>| {
        let mut sandbox = Sandbox::with_tasks(&["A", "B"]);
        sandbox.run(WORKER, &["--verify", "true", "--max-iterations", "1"]).exits(3);
        sandbox.wiggum(&["skip", "B"]).exits(0);
        let log = sandbox.base().join("points");
        match number {
            Some(number) => sandbox.env("WIGGUM_CRASH_AT", &number.to_string()),
            None => sandbox.env("WIGGUM_CRASH_LOG", log.to_str().unwrap()),
        }
        let run = sandbox.start(WORKER, &["--verify", "true"]).outcome_only();
        if number.is_none() {
            drop(run.exits(0));
        }
        let points = fs::read_to_string(&log).unwrap_or_default();
        (sandbox, points.lines().position(|point| point == "before status").map(|at| at + 1))
    };
    let (_, at) = killed_at(None);
    let (mut sandbox, _) = killed_at(at);
    sandbox.env("WIGGUM_CRASH_AT", "0");
    drop(doctor(&sandbox, &["--fix"]).exits(0).says("B is skipped").says("wrote 1 status"));
    assert!(sandbox.read("PRD.json").contains("\"skipped\": true"), "{}", sandbox.read("PRD.json"));
    drop(doctor(&sandbox, &[]).exits(0).never_says("does not say yet"));
    sandbox.run(WORKER, &["--verify", "true"]).exits(0);
    assert_eq!(sandbox.state_of("B"), "skipped");
}

#[test]
fn a_backlog_that_somebody_edited_is_shown_and_left_alone() {
    let sandbox = after_a_run();
    let text = sandbox.read("PRD.json").replacen("\"passes\": true", "\"passes\": false", 1);
    sandbox.write("PRD.json", &text);
    drop(doctor(&sandbox, &["--fix"]).exits(0).says("A is open there and was done"));
    assert_eq!(sandbox.read("PRD.json"), text);
}

#[test]
fn missing_tools_are_named() {
    let mut sandbox = after_a_run();
    sandbox.write(
        "wiggum.toml",
        "[agent]\ncommand = \"no-such-agent\"\n[checks]\nverify = [\"no-such-check\"]\n",
    );
    drop(doctor(&sandbox, &[]).exits(1).says("no-such-agent").says("no-such-check"));
    sandbox.env("PATH", "/nowhere");
    drop(doctor(&sandbox, &[]).exits(1).says("problem  git").says("install git"));
}

#[test]
fn agents_may_look_but_not_repair() {
    let mut sandbox = after_a_run();
    sandbox.env("WIGGUM_LOOP_ID", "some-loop");
    drop(doctor(&sandbox, &["--fix"]).complains(2, &["belong to people"]));
}
