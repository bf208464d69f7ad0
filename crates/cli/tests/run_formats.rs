//! What goes in and comes out: order of tasks, bytes of the backlog, environment, prompt, JSON.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may fail here")]

mod support;

use support::{Sandbox, WORKER};
use wiggum_core::event::{Envelope, Event};

fn sandbox_with(name: &str, text: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write(name, text);
    sandbox.commit_all("backlog");
    sandbox
}

#[test]
fn tasks_json_goes_by_phase_dependency_and_score() {
    let text = r#"[
  {"id": "later", "description": "x", "status": "pending", "phase": 2, "priority": 99},
  {"id": "low", "description": "x", "status": "pending", "priority": 1},
  {"id": "high", "description": "x", "status": "pending", "priority": 9},
  {"id": "after", "description": "x", "status": "pending", "priority": 50, "depends_on": ["low"]},
  {"id": "stuck", "description": "x", "status": "in_progress", "priority": 5}
]
"#;
    let sandbox = sandbox_with("tasks.json", text);
    sandbox.run(WORKER, &["--verify", "true"]).exits(0);
    let order = sandbox.worked_on();
    assert_eq!(order[0], "high");
    assert_eq!(order.last().unwrap(), "later");
    let place = |id: &str| order.iter().position(|found| found == id).unwrap();
    assert!(place("low") < place("after"), "{order:?}");
    assert_eq!(order.len(), 5);
    sandbox.assert_clean();
}

#[test]
fn only_the_bytes_of_the_statuses_change() {
    let cases = [
        (
            "PRD.json",
            "\u{feff}{\r\n\t\"userStories\" : [ {\"id\":\"A\", \"x\":1.50, \"title\":\"é\\u00e9\",\r\n\"passes\" : false}\r\n] , \"extra\":{\"passes\":false}}",
            "\"passes\" : false}\r\n]",
            "\"passes\" : true}\r\n]",
        ),
        (
            "fix_plan.md",
            "# Plan\r\n\r\n* [ ]  do it  \r\n\r\n## Optional\r\n- [ ] never\r\n",
            "* [ ]",
            "* [x]",
        ),
        (
            "tasks.json",
            "[{\"status\":\"pending\",\"id\":\"A\",\"description\":\"d\",\"zzz\":[1,2 ,3]}]",
            "pending",
            "completed",
        ),
    ];
    for (name, before, from, to) in cases {
        let sandbox = sandbox_with(name, before);
        sandbox.run("touch a.txt; claim", &["--verify", "true"]).exits(0);
        let mut after = sandbox.read(name);
        if name == "tasks.json" {
            // The one format with a place for it tells when it was tried.
            let at = after.find(",\"last_attempt_at\":").expect(&after);
            let end = at + 1 + after[at + 1..].find(',').expect(&after);
            after.replace_range(at..end, "");
        }
        assert_eq!(after, before.replacen(from, to, 1), "{name}");
        assert_eq!(sandbox.changed_in("HEAD").len(), 2);
        sandbox.assert_clean();
    }
}

#[test]
fn a_failed_task_is_written_where_the_format_has_a_word_for_it() {
    let text = "[{\"id\":\"A\",\"description\":\"d\",\"status\":\"pending\"},{\"id\":\"B\",\"description\":\"d\",\"status\":\"pending\"}]";
    let sandbox = sandbox_with("tasks.json", text);
    let verify = "test $WIGGUM_TASK_ID = B";
    sandbox.run(WORKER, &["--verify", verify, "--max-retries", "0"]).exits(6);
    assert!(sandbox.read("tasks.json").contains("\"failed\""));
    assert!(sandbox.read("tasks.json").contains("\"completed\""));
    // A new run does not forget it.
    sandbox.run(WORKER, &["--verify", "true"]).exits(6);
    assert_eq!(sandbox.worked_on().len(), 2);
}

const VARIABLES: &str = "env | grep '^WIGGUM_[A-Z]*\\(_[A-Z]*\\)\\?=' | grep -v RETRY | sort";

#[test]
fn agents_and_checks_know_where_they_are() {
    let mut sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.env("MINE", "kept");
    let agent = format!(
        r#"{VARIABLES} > "$SANDBOX/agent-env"; pwd > "$SANDBOX/agent-pwd"; echo "$MINE$GIT_DIR" > "$SANDBOX/mine"
        cmp - "$WIGGUM_PROMPT_FILE" && touch a.txt && claim"#
    );
    sandbox.env("GIT_DIR_OF_NOBODY", "");
    let verify = format!(r#"{VARIABLES} > "$SANDBOX/check-env""#);
    sandbox.run(&agent, &["--verify", &verify]).exits(0);
    let found = sandbox.note("agent-env");
    for (name, value) in [
        ("WIGGUM_LOOP_ID", sandbox.loop_id().to_string()),
        ("WIGGUM_TASK_ID", "A".to_owned()),
        ("WIGGUM_ITERATION", "1".to_owned()),
        ("WIGGUM_ATTEMPT", "1".to_owned()),
        ("WIGGUM_BIN", env!("CARGO_BIN_EXE_wiggum").to_owned()),
    ] {
        assert!(found.lines().any(|line| line == format!("{name}={value}")), "{name} in {found}");
    }
    // Where an agent is spoken to is no matter of checks.
    let shared: String = found
        .lines()
        .filter(|line| !line.starts_with("WIGGUM_NUDGES="))
        .map(|line| format!("{line}\n"))
        .collect();
    assert_eq!(sandbox.note("check-env"), shared);
    assert_eq!(sandbox.note("agent-pwd").trim(), sandbox.root.to_str().unwrap());
    assert_eq!(sandbox.note("mine"), "kept\n");
}

#[test]
fn a_git_hook_that_runs_wiggum_does_not_point_its_git_elsewhere() {
    let mut sandbox = Sandbox::with_tasks(&["A"]);
    let elsewhere = Sandbox::new();
    for (name, path) in [("GIT_DIR", ".git"), ("GIT_WORK_TREE", "."), ("GIT_INDEX_FILE", ".git/index")] {
        let path = elsewhere.root.join(path);
        sandbox.env(name, path.to_str().unwrap());
    }
    let command = sandbox.agent(WORKER);
    sandbox.wiggum(&["run", "--headless", "--agent-command", &command, "--verify", "true"]).exits(0);
    assert_eq!(elsewhere.subjects(), ["first"]);
    elsewhere.assert_clean();
    assert!(sandbox.exists("A.txt"));
}

#[test]
fn the_prompt_comes_by_input_argument_or_file() {
    for (via, take) in [("stdin", "cat"), ("argument", "printf %s \"$1\""), ("file", "cat \"$1\"")] {
        let sandbox = Sandbox::with_tasks(&["A"]);
        sandbox.write(
            "wiggum.toml",
            &format!("[agent]\nprompt_via = \"{via}\"\n[agent.env]\nEXTRA = \"more\"\n"),
        );
        let agent =
            format!(r#"{take} > "$SANDBOX/prompt"; echo "$EXTRA" > "$SANDBOX/extra"; touch a.txt; claim"#);
        sandbox.run(&agent, &["--verify", "true"]).exits(0);
        let prompt = sandbox.note("prompt");
        assert!(prompt.contains("# Task A: Do A") && prompt.contains("`true`"), "{via}: {prompt}");
        assert_eq!(sandbox.note("extra"), "more\n");
    }
}

#[test]
fn a_command_line_with_shell_syntax_is_a_shells() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    let command = "cat > /dev/null && touch \"a b.txt\"; echo '<promise>DONE</promise>' | cat";
    sandbox
        .wiggum(&[
            "run",
            "--headless",
            "--agent-command",
            command,
            "--baseline",
            "off",
            "--verify",
            "test -f 'a b.txt'",
        ])
        .exits(0);
    assert_eq!(sandbox.changed_in("HEAD"), ["PRD.json", "a b.txt"]);
}

#[test]
fn json_output_is_the_journal_and_nothing_else() {
    let sandbox = Sandbox::with_tasks(&["A", "B"]);
    let agent = format!("echo noise; echo noise >&2\n{WORKER}");
    let run = sandbox.run(&agent, &["--verify", "echo noise", "--json"]).exits(0);
    let lines: Vec<Envelope> = run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines, sandbox.journal());
    assert_eq!(run.stderr, "");
    assert!(matches!(lines.last().unwrap().event, Event::RunEnded { .. }));
}

#[test]
fn a_reader_that_goes_away_does_not_stop_the_loop() {
    let sandbox = Sandbox::with_tasks(&["A", "B"]);
    let command = sandbox.agent(WORKER);
    let line = format!(
        "'{}' run --headless --verify true --agent-command '{command}' | head -n 1",
        env!("CARGO_BIN_EXE_wiggum")
    );
    let status = sandbox.command("sh").current_dir(&sandbox.root).args(["-c", &line]).output().unwrap();
    assert!(status.status.success());
    sandbox.wait_for(|event| matches!(event, Event::RunEnded { .. }));
    assert_eq!(sandbox.subjects()[2..], ["A: Do A", "B: Do B"]);
}

#[test]
fn the_output_of_a_check_is_kept_and_bounded() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    let verify = "echo the-start; head -c 20000000 /dev/zero | tr '\\0' 'y'; echo; echo the-end; false";
    sandbox
        .run(
            &format!("keep_prompt\n{WORKER}"),
            &["--baseline", "off", "--verify", verify, "--max-iterations", "2", "--json"],
        )
        .exits(3);
    let evidence = sandbox.events().into_iter().find_map(|event| match event {
        Event::EvidenceGathered { evidence, .. } => Some(evidence),
        _ => None,
    });
    let output = evidence.unwrap().output;
    let text = sandbox.blob(&output.sha256);
    assert!(text.contains("the-end") && text.len() < 2_000_000, "{}", text.len());
    assert!(output.excerpt.ends_with("the-end\n") && output.excerpt.len() <= 2048);
    assert!(sandbox.prompt("A", 2).contains("the-end"));
    assert!(sandbox.prompt("A", 2).len() < 20_000);
}

#[test]
fn several_checks_run_in_order_until_all_are_seen() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    let check = |n: u32| format!(r#"echo {n} >> "$SANDBOX/order""#);
    sandbox.run(WORKER, &["--baseline", "off", "--verify", &check(1), "--verify", &check(2)]).exits(0);
    // And once more in a clean checkout.
    assert_eq!(sandbox.note("order"), "1\n2\n1\n2\n");
    let evidence = sandbox.trailer("HEAD", "Wiggum-Evidence");
    assert_eq!(evidence.lines().count(), 2, "{evidence}");
}

#[test]
fn names_with_every_kind_of_character_are_fine() {
    let names = [
        "with space.txt",
        "quo\"te.txt",
        "new\nline.txt",
        "ünï.txt",
        "-dash.txt",
        ":(top)x.txt",
        "[a-z]*.txt",
    ];
    let sandbox = Sandbox::with_tasks(&["A", "B"]);
    for (n, name) in names.iter().enumerate() {
        std::fs::write(sandbox.base().join(format!("name-{n}")), name).unwrap();
    }
    let agent = r#"for at in "$SANDBOX"/name-*; do echo "$WIGGUM_TASK_ID" > "./$(cat "$at")"; done; claim"#;
    let verify = "test $WIGGUM_TASK_ID = B";
    sandbox.run(agent, &["--verify", verify, "--max-retries", "0"]).exits(6);
    assert_eq!(
        sandbox.git(&["show", "--format=", "--name-only", "-z", "HEAD"]).split('\0').count(),
        names.len() + 2
    );
    for name in names {
        assert_eq!(sandbox.read(name), "B\n", "{name}");
    }
    sandbox.assert_clean();
}

#[test]
fn ids_with_every_kind_of_character_are_fine() {
    let ids = ["a b", "a/b", "../up", "ref.lock", "x~1^2:3", "-rf", "ü"];
    let stories: Vec<String> = ids.iter().map(|id| support::story(id, "")).collect();
    let sandbox = sandbox_with("PRD.json", &support::prd_of(&stories));
    let agent = r#"echo "$WIGGUM_TASK_ID" > work.txt; [ "$WIGGUM_ATTEMPT" = 2 ] && claim || echo later"#;
    sandbox.run(agent, &["--verify", "true"]).exits(0);
    assert_eq!(sandbox.read("PRD.json").matches("true").count(), ids.len());
    sandbox.assert_clean();
}

#[test]
fn a_task_names_the_model_it_wants() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "PRD.json",
        r#"{"project": "x", "userStories": [
            {"id": "A", "title": "a", "model": "small", "passes": false},
            {"id": "B", "title": "b", "passes": false}
        ]}"#,
    );
    sandbox.commit_all("backlog");
    let script = r#"echo "${WIGGUM_MODEL-none}" > "$WIGGUM_TASK_ID.txt"; claim"#;
    sandbox.run(script, &["--verify", "true"]).exits(0);
    assert_eq!((sandbox.read("A.txt").trim(), sandbox.read("B.txt").trim()), ("small", "none"));
}

#[test]
fn a_task_that_names_an_unknown_agent_is_refused_and_nobody_else_works_on_it() {
    let text = r#"[
  {"id": "old", "description": "x", "status": "completed", "agent": "gone"},
  {"id": "new", "description": "x", "status": "pending", "agent": "codexx"}
]
"#;
    let sandbox = sandbox_with("tasks.json", text);
    let refused = sandbox.run(WORKER, &["--verify", "true"]).exits(2);
    assert!(refused.stderr.contains("new: there is no agent `codexx`"), "{}", refused.stderr);
    sandbox.write("tasks.json", &text.replace("codexx", "agent"));
    sandbox.commit_all("the agent of --agent-command");
    sandbox.run(WORKER, &["--verify", "true"]).exits(0);
}
