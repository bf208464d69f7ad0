//! `wiggum vault`: the whole way of a plan through the program, and killed at every point of it.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may fail here")]

mod support;

use std::fs;

use support::Sandbox;
use wiggum_core::checker;
use wiggum_store::Store;

const PLAN: &str = "---
plan_id: move_in
objective: \"Move in\"
total_steps: 3
completed_steps: 0
status: awaiting_approval
approval_required: true
iterations_used: 0
max_iterations: 10
---

- [ ] **Step 1:** Write the list (action_type: create_file)
  - Dependencies: none
  - File: vault/Lists/boxes.md
  - Content: |
      - one box
- [ ] **Step 2:** Write the letter (action_type: create_file)
  - Dependencies: step_1
  - File: Letters/landlord.md
  - Content: {{ steps.1.result }}
- [ ] **Step 3:** Tell Ann (action_type: notify_human)
  - Dependencies: step_1, step_2
  - Message: All is written.
";

/// What a plan's way comes to, wherever it was cut.
const END: [(&str, &str); 3] = [
    ("Lists/boxes.md", "- one box\n"),
    // Created, or there already when it was cut between the file and its record.
    ("Letters/landlord.md", "Lists/boxes.md"),
    ("Done/move_in.md", ""),
];

fn approved(plan: &str) -> Sandbox {
    let mut sandbox = Sandbox::plain();
    // Nobody else writes these plans.
    sandbox.env("WIGGUM_PLANS_SETTLE", "0s");
    sandbox.wiggum(&["vault", "init", "v"]).exits(0);
    sandbox.write("v/Approved/Plans/move_in.md", plan);
    sandbox
}

/// A plan of one step.
fn of_one(id: &str, step: &str) -> String {
    format!("---\nplan_id: {id}\nmax_iterations: 10\n---\n- [ ] **Step 1:** Do it {step}\n")
}

const MAIL: &str =
    "(action_type: mcp_email)\n  - MCP Server: mail\n  - Tool: send\n  - Params: {to: \"a@b.c\"}";

/// The lines of the log, without their times and without those that tell of the interruption.
fn log(sandbox: &Sandbox) -> Vec<String> {
    let text = sandbox.read("v/Logs/Plan_Execution/move_in.md");
    let entries: Vec<&str> = text.lines().filter(|line| line.starts_with("- ")).collect();
    let mut numbers: Vec<u64> =
        entries.iter().map(|line| line.rsplit_once(" ^e").unwrap().1.parse().unwrap()).collect();
    let sorted = numbers.clone();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers, sorted, "every entry once and in order:\n{text}");
    let said = |line: &&str| line.splitn(3, ' ').nth(2).unwrap().rsplit_once(" ^e").unwrap().0.to_owned();
    entries.iter().map(said).collect()
}

#[test]
fn a_plan_goes_its_way_and_waits_for_approval_before() {
    let sandbox = Sandbox::plain();
    let made = sandbox.wiggum(&["vault", "init", "v"]).exits(0);
    assert!(made.stdout.contains("created Approved/Plans/"), "{}", made.stdout);
    sandbox.wiggum(&["vault", "init", "v", "--json"]).exits(0);
    sandbox.write("v/Plans/move_in.md", PLAN);
    sandbox.wiggum(&["run", "v/Plans/move_in.md"]).complains(2, &["waits for approval", "Approved/Plans"]);
    sandbox.wiggum(&["vault", "run", "v"]).exits(0);
    assert_eq!(sandbox.read("v/Plans/move_in.md"), PLAN);

    fs::rename(sandbox.root.join("v/Plans/move_in.md"), sandbox.root.join("v/Approved/Plans/move_in.md"))
        .unwrap();
    let status = sandbox.wiggum(&["vault", "status", "v", "--json"]).exits(0);
    let rows: serde_json::Value = serde_json::from_str(&status.stdout).unwrap();
    assert_eq!((&rows[0]["plan_id"], &rows[0]["status"]), (&"move_in".into(), &"queued".into()));
    let ran = sandbox.wiggum(&["vault", "run", "v"]).exits(0);
    assert!(ran.stdout.contains("completed move_in, now in Done/move_in.md"), "{}", ran.stdout);
    for (path, text) in END {
        assert!(sandbox.read(&format!("v/{path}")).contains(text), "{path}");
    }
    let dashboard = sandbox.read("v/Dashboard.md");
    assert!(dashboard.contains("- [[Done/move_in]]") && dashboard.contains("```mermaid"), "{dashboard}");
}

#[test]
fn a_plan_that_cannot_go_on_says_so_with_its_exit_code() {
    let sandbox = approved(&PLAN.replace("Lists/boxes.md", "Approved/Plans/more.md"));
    sandbox.write("v/wiggum.toml", "[plans]\nretries = 0\n");
    sandbox.wiggum(&["vault", "run", "v"]).exits(6);
    let status = sandbox.wiggum(&["vault", "status", "v"]).exits(0);
    assert!(
        status.stdout.contains("blocked") && status.stdout.contains("Needs_Action/plan_blocked_move_in.md")
    );
    let note = sandbox.read("v/Needs_Action/plan_blocked_move_in.md");
    assert!(note.contains("is not for a plan to write"), "{note}");
    // Done by hand, and ticked.
    let ticked = note.replace("- [ ] **Done by hand**", "- [x] **Done by hand**");
    sandbox.write("v/Needs_Action/plan_blocked_move_in.md", &ticked);
    sandbox.write(
        "v/Approved/Plans/move_in.md",
        &sandbox.read("v/Approved/Plans/move_in.md").replace("{{ steps.1.result }}", "x"),
    );
    sandbox.wiggum(&["vault", "run", "v"]).exits(0);
    assert!(sandbox.exists("v/Done/move_in.md"));
}

#[test]
fn what_is_no_vault_is_refused_and_stays_what_it_was() {
    let sandbox = Sandbox::plain();
    fs::create_dir(sandbox.root.join("d")).unwrap();
    for command in ["watch", "run", "status"] {
        sandbox.wiggum(&["vault", command, "d"]).complains(2, &["is not a vault", "wiggum vault init"]);
    }
    assert_eq!(fs::read_dir(sandbox.root.join("d")).unwrap().count(), 0);
}

#[test]
fn plans_that_are_not_carried_out_are_named_at_the_end() {
    let sandbox = approved(PLAN);
    sandbox.write("v/Approved/Plans/broken.md", "---\nplan_id: broken\n---\n");
    sandbox.write("v/Approved/Plans/move_in (conflicted copy).md", PLAN);
    let ran = sandbox.wiggum(&["vault", "run", "v"]).complains(
        2,
        &["not carried out: `broken.md`, `move_in (conflicted copy).md`", "hint: Needs_Action/plan_problem_"],
    );
    assert!(ran.stdout.contains("looked at") && ran.stdout.contains("3 plans approved"), "{}", ran.stdout);
    assert!(sandbox.exists("v/Done/move_in.md"));
}

#[test]
fn an_agent_that_cannot_start_ends_the_run_and_is_told_of() {
    for config in ["", "[agent]\ncommand = \"no-such-agent\"\n"] {
        let sandbox = approved(PLAN);
        sandbox.write("v/wiggum.toml", config);
        sandbox.write("v/Approved/Plans/ask.md", &of_one("ask", "(action_type: agent)"));
        sandbox.wiggum(&["vault", "run", "v"]).complains(2, &["not carried out: `ask.md`"]);
        assert!(sandbox.exists("v/Done/move_in.md"));
        let note = sandbox.read("v/Needs_Action/plan_problem_ask.md");
        assert!(note.contains("agent"), "{note}");
    }
}

#[test]
fn who_runs_plans_bounds_them() {
    let mut sandbox = approved(PLAN);
    sandbox.env("MAX_PLAN_ITERATIONS", "2");
    sandbox.wiggum(&["vault", "run", "v"]).exits(6);
    let note = sandbox.read("v/Needs_Action/plan_escalated_move_in.md");
    assert!(note.contains("2/3 steps, 2 of 2 iterations"), "{note}");
}

#[test]
fn own_words_about_a_call_are_refused_at_the_command_line() {
    let sandbox = approved(&of_one("post", MAIL));
    let started = std::time::Instant::now();
    sandbox.wiggum(&["vault", "run", "v"]).exits(6);
    assert!(
        started.elapsed() < std::time::Duration::from_secs(5),
        "no retries for a server that is not there"
    );
    let note = sandbox.read("v/Needs_Action/plan_blocked_post.md");
    assert!(note.contains("there is no MCP server") && note.contains("mcp.servers"), "{note}");
    let v = sandbox.root.join("v");
    let answer = |words: &str| sandbox.wiggum_in(&v, &["answer", "q1", words]);
    answer("do NOT send this mail").complains(2, &["takes no words", "skip, retry, done"]);
    let inbox = sandbox.wiggum_in(&v, &["inbox"]).exits(0);
    assert!(inbox.stdout.contains("skip|retry|done|abort"), "{}", inbox.stdout);
    answer("done").exits(0);
    sandbox.wiggum(&["vault", "run", "v"]).exits(0);
}

#[test]
fn events_have_no_secrets_in_them() {
    let token = format!("{}{}", "ghp_", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
    let mail = MAIL.replace("to: ", &format!("note: \"{token}\", password: \"hunter2\", to: "));
    let sandbox = approved(&of_one("post", &mail).replace("Do it", &format!("Do it with {token}")));
    sandbox.wiggum(&["vault", "run", "v"]).exits(6);
    let v = sandbox.root.join("v");
    for args in [&["events", "--json"][..], &["events"], &["inbox"], &["status"]] {
        let shown = sandbox.wiggum_in(&v, args).exits(0).stdout;
        assert!(!shown.contains(&token) && !shown.contains("hunter2"), "{args:?}: {shown}");
        if args.contains(&"--json") {
            assert!(shown.contains("[redacted]"));
            shown.lines().for_each(|line| drop(serde_json::from_str::<serde_json::Value>(line).unwrap()));
        }
    }
}

#[test]
fn a_vault_that_is_watched_says_so() {
    let sandbox = approved(PLAN);
    let watching = sandbox.launch(&sandbox.root, &["vault", "watch", "v"]);
    while !sandbox.exists("v/Done/move_in.md") {
        std::thread::yield_now();
    }
    watching.signal("INT");
    let run = watching.finish();
    let said = format!("watching {}", sandbox.root.join("v").display());
    assert!(run.stdout.contains(&said) && run.stdout.contains("1 plan approved"), "{}", run.stdout);
}

#[test]
fn a_repository_around_a_vault_is_left_alone() {
    let sandbox = Sandbox::new();
    sandbox.wiggum(&["vault", "init", "v"]).exits(0);
    sandbox.write("v/Approved/Plans/move_in.md", PLAN);
    sandbox.write("dirt", "uncommitted\n");
    sandbox.wiggum(&["vault", "run", "v"]).exits(0);
    assert_eq!(sandbox.subjects(), ["first"]);
    assert!(sandbox.exists("v/Done/move_in.md"));
}

#[test]
fn killed_anywhere_a_plan_comes_to_the_same() {
    let mut sandbox = approved(PLAN);
    let points = sandbox.root.join("points");
    sandbox.env("WIGGUM_CRASH_LOG", points.to_str().unwrap());
    sandbox.wiggum(&["vault", "run", "v"]).exits(0);
    let expected = log(&sandbox);
    let done = sandbox.read("v/Done/move_in.md");
    let count = fs::read_to_string(&points).unwrap().lines().count();
    assert!(count > 60, "{count} points");
    for name in ["notices given", "log written", "before the move", "plan has both names", "plan moved"] {
        assert!(fs::read_to_string(&points).unwrap().contains(name), "{name}");
    }
    // Every seventh, begun elsewhere in each half, so that a run of the test stays short.
    let full = std::env::var_os("WIGGUM_SWEEP").is_some();
    for at in (1..=count).filter(|at| full || at % 7 == 3 || *at + 12 > count) {
        let mut sandbox = approved(PLAN);
        sandbox.env("WIGGUM_CRASH_AT", &at.to_string());
        sandbox.wiggum(&["vault", "run", "v"]);
        sandbox.env("WIGGUM_CRASH_AT", "1000000");
        sandbox.wiggum(&["vault", "run", "v"]).exits(0);
        sandbox.wiggum(&["vault", "run", "v"]).exits(0);
        assert_eq!(sandbox.read("v/Done/move_in.md"), done, "killed at {at}");
        for (path, text) in END {
            assert!(sandbox.read(&format!("v/{path}")).contains(text), "{path}, killed at {at}");
        }
        let names = |folder: &str| fs::read_dir(sandbox.root.join("v").join(folder)).unwrap().count();
        assert_eq!(
            (names("Done"), names("Approved/Plans"), names("In_Progress")),
            (1, 0, 0),
            "killed at {at}"
        );
        assert!(sandbox.exists("v/Needs_Action/plan_notification_move_in_step_3.md"), "killed at {at}");
        let log = log(&sandbox);
        for entry in &expected {
            let again = |line: &&String| line.contains("just so") && entry.contains("succeeded: created");
            assert!(
                log.contains(entry) || log.iter().any(|line| again(&line)),
                "{entry}, killed at {at}: {log:#?}"
            );
        }
        let store = Store::open(&sandbox.state_dir_of(&sandbox.root.join("v")).unwrap().database()).unwrap();
        let journal = store.read(store.loops().unwrap()[0].id, 0).unwrap();
        assert_eq!(checker::check(&journal), vec![], "killed at {at}");
    }
}
