//! What a first night with one's own backlog is like: what is read, what is refused, which file is taken, and what is
//! written back.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may fail here")]

mod support;

use support::{Run, Sandbox, WORKER};
use wiggum_core::event::{Event, FlagKind};

fn sandbox_with(name: &str, text: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write(name, text);
    sandbox.commit_all("backlog");
    sandbox
}

/// A command while a loop runs, whose processes may well be there.
fn beside(sandbox: &Sandbox, args: &[&str]) -> Run {
    sandbox.launch(&sandbox.root, args).outcome_only()
}

#[test]
fn nothing_recognised_is_no_success() {
    let sandbox = sandbox_with("fix_plan.md", "# Fix plan\n\nMend the lexer and the parser.\n");
    let looked_for = "fix_plan.md:1: no task is recognised; looked for boxes (`- [ ] text`)";
    let seems = "the file seems to be Markdown with headings and text, but no list";
    sandbox.run(WORKER, &[]).complains(2, &[looked_for, seems, "hint:"]).never_says("complete");
    sandbox
        .run(WORKER, &["/etc/passwd"])
        .complains(2, &["the file seems to be records"])
        .never_says("complete");
    // Also before anything else that may be missing, and for whoever only looks.
    sandbox.wiggum(&["run", "--headless"]).complains(2, &["no task is recognised"]);
    sandbox.wiggum(&["task", "list"]).complains(2, &["no task is recognised"]);
    sandbox.wiggum(&["task", "validate"]).exits(2).says("no task is recognised");
    assert!(!sandbox.has_store(), "nothing was started");
    for heading in ["Todo", "TODO list", "Backlog"] {
        let prose = sandbox_with("TODO.md", &format!("# {heading}\n\nMend the lexer and the parser.\n"));
        prose.run(WORKER, &[]).complains(2, &[seems]).never_says("No tasks yet");
    }
    // A list that is there and empty needs no agent.
    for (name, text) in [("tasks.json", "[]"), ("PRD.json", "{\"userStories\": []}"), ("TODO.md", "# TODO\n")]
    {
        let sandbox = sandbox_with(name, text);
        sandbox.wiggum(&["run", "--headless"]).exits(0).says("No tasks yet").never_says("complete");
    }
    // A note may become a list, another program's file may not.
    sandbox.wiggum(&["task", "add", "--description", "first", "--backlog", "fix_plan.md"]).exits(0);
    assert!(sandbox.read("fix_plan.md").contains("\n- [ ] first"));
    sandbox.write("words.csv", "a,b,c\n1,2,3\n");
    let add = ["task", "add", "--description", "x", "--backlog", "words.csv"];
    sandbox.wiggum(&add).complains(2, &["the file seems to be records"]);
}

#[test]
fn json_dependencies_order_the_work() {
    let text = r#"[{"id":"a","description":"d","status":"pending","dependencies":["b"]},{"id":"b","description":"e","status":"pending"}]"#;
    let sandbox = sandbox_with("tasks.json", text);
    sandbox.run(WORKER, &["--verify", "true"]).exits(0);
    assert_eq!(sandbox.worked_on(), ["b", "a"]);
}

#[test]
fn what_is_not_honoured_is_refused_by_name() {
    let task =
        |id: &str, more: &str| format!(r#"{{"id":"{id}","description":"{id}","status":"pending",{more}}}"#);
    let tasks = [
        task("a", r#""kind":"recurring""#),
        task("b", r#""outputs":[{"kind":"file","name":"o","path":"p"}]"#),
        task("c", r#""role":"poet""#),
        task("d", r#""prerequisites":["a"]"#),
        task(
            "e",
            r#""inputs":["b/o"],"precondition_prompt":"p","runtime":"gastown","evaluation":{"mode":"semantic"}"#,
        ),
    ];
    let sandbox = sandbox_with("tasks.json", &format!("[{}]", tasks.join(",\n")));
    let said = [
        "`a`: kind `recurring`",
        "`b`: `outputs`",
        "`c`: unknown role `poet`",
        "`d`: `prerequisites` looks like",
    ];
    let more = [
        "`e`: `inputs`",
        "`e`: `precondition_prompt`",
        "`e`: runtime `gastown`",
        "`e`: evaluation mode `semantic`",
    ];
    let all: Vec<&str> = said.into_iter().chain(more).collect();
    sandbox.run(WORKER, &[]).complains(2, &all);
    let validated = sandbox.wiggum(&["task", "validate"]).exits(2);
    assert!(all.iter().all(|part| validated.stdout.contains(part)), "{}", validated.stdout);
    assert!(!sandbox.has_store());
    // A role that is configured is known.
    let sandbox = sandbox_with("tasks.json", &format!("[{}]", task("c", r#""role":"poet""#)));
    let command = sandbox.agent(WORKER);
    sandbox.write(
        "wiggum.toml",
        &format!("[agent]\nroles = {{ poet = \"bard\" }}\n[agents.bard]\ncommand = \"{command}\"\n"),
    );
    sandbox.wiggum(&["task", "validate"]).exits(0);
    sandbox.run(WORKER, &["--verify", "true"]).exits(0);
}

#[test]
fn a_check_under_an_obvious_name_is_run_or_named() {
    let story =
        |check: &str| format!(r#"{{"userStories":[{{"id":"a","title":"t","passes":false,{check}}}]}}"#);
    let sandbox = sandbox_with("PRD.json", &story(r#""verify_command":"test -f a.txt""#));
    sandbox.run(WORKER, &[]).exits(0).says("1/1").never_says("(unverified)");
    let sandbox = sandbox_with("PRD.json", &story(r#""verify_command":"test -f b.txt""#));
    sandbox.run(WORKER, &["--max-iterations", "1"]).says("claimed, but not done").says("0/1");
    let sandbox = sandbox_with("PRD.json", &story(r#""verify":"mytool run""#));
    let why = "`a`: `verify` says `mytool run`, which may be a command or words";
    sandbox.run(WORKER, &[]).complains(2, &[why]);
    sandbox.wiggum(&["task", "validate"]).exits(2).says(why);
    // Words are no command, which is told and stops nobody.
    let sandbox = sandbox_with("PRD.json", &story(r#""verification":"manual test of the login page""#));
    let note = "note: PRD.json:1: `a`: `verification` says `manual test of the login page` in words";
    sandbox.wiggum(&["task", "validate"]).exits(0).says(note);
    sandbox.wiggum(&["task", "explain"]).exits(0).says(note);
    let told = sandbox.wiggum(&["task", "validate", "--json"]).exits(0).stdout;
    assert!(told.contains("in words, and nothing is run for it"), "{told}");
    sandbox.run(WORKER, &["--verify", "true"]).exits(0);
}

/// Both loops are called main, and both ask a q1.
#[test]
fn in_a_folder_its_own_loop_is_meant() {
    let sandbox = Sandbox::new();
    sandbox.write("TODO.md", "- [ ] **R1**: root\n");
    sandbox.write("packages/a/TODO.md", "- [ ] **A1**: inner\n");
    sandbox.write("packages/a/src/lib.txt", "");
    sandbox.commit_all("monorepo");
    let asks = sandbox.agent(
        "printf '<escalate type=\"stuck\">\\n<summary>Which?</summary>\\n<options>\\n1. one\\n2. two\\n</options>\\n</escalate>\\n'",
    );
    let run = ["run", "--headless", "--verify", "true", "--agent-command", &asks];
    let (root, inside) = (sandbox.root.clone(), sandbox.root.join("packages/a/src"));
    sandbox.wiggum_in(&inside, &run).exits(6);
    sandbox.wiggum_in(&root, &run).exits(6);
    sandbox.wiggum_in(&inside, &["show", "A1"]).exits(0);
    sandbox.wiggum_in(&root, &["show", "R1"]).exits(0);
    sandbox.wiggum_in(&inside, &["skip", "A1"]).exits(0);
    sandbox.wiggum_in(&inside, &["retry", "A1"]).exits(0);
    // From anywhere, what the inbox prints can be typed.
    let inbox = sandbox.wiggum_in(&root, &["inbox"]).exits(0).stdout;
    for backlog in ["TODO.md", "packages/a/TODO.md"] {
        assert!(inbox.contains(&format!("wiggum answer --loop {backlog} q1 ")), "{inbox}");
        assert!(inbox.contains(&format!("loop main over {backlog}")), "{inbox}");
    }
    sandbox.wiggum_in(&root, &["answer", "--loop", "packages/a/TODO.md", "q1", "1"]).exits(0);
    sandbox.wiggum_in(&root, &["answer", "--loop", "main", "q1", "2"]).exits(0);
    // In the folder, its own: that was answered already, the other one is not touched.
    sandbox.wiggum_in(&inside, &["answer", "q1", "2"]).exits(0).says("in place of \"option 1\"");
    // The loop of the folder says that it waits for nobody any more, and so does the other.
    let status = sandbox.wiggum_in(&inside, &["status"]).exits(0).never_says("a person is needed").stdout;
    assert_eq!(status.matches("main  answered: `wiggum run` goes on").count(), 2, "{status}");
    sandbox.wiggum_in(&inside, &["report"]).exits(0).never_says("wiggum answer");
}

#[test]
fn the_nearest_backlog_is_worked() {
    let sandbox = Sandbox::new();
    sandbox.write("TODO.md", "- [ ] root\n");
    sandbox.write("packages/a/TODO.md", "- [ ] inner\n");
    sandbox.write("packages/a/src/lib.txt", "");
    sandbox.write("packages/b/README", "");
    sandbox.write("wiggum.toml", "backlog = \"TODO.md\"\n");
    sandbox.commit_all("monorepo");
    let command = sandbox.agent("echo x > \"$WIGGUM_TASK_ID.txt\"; claim");
    let run = ["run", "--headless", "--verify", "true", "--agent-command", &command];
    let inside = |path: &str| sandbox.root.join(path);
    let taken = sandbox.wiggum_in(&inside("packages/a/src"), &run).exits(0).stderr;
    let why = "packages/a/TODO.md is taken, the nearest to here, though TODO.md is configured";
    assert!(taken.contains(why), "{taken}");
    assert_eq!(sandbox.read("packages/a/TODO.md"), "- [x] inner\n");
    assert_eq!(sandbox.read("TODO.md"), "- [ ] root\n");
    assert!(sandbox.exists("inner.txt"), "the workspace is the repository");
    assert_eq!(sandbox.state().backlog, "packages/a/TODO.md");
    sandbox.wiggum_in(&inside("packages/a"), &["task", "list"]).exits(0).says("inner");
    // Named is named, and where nothing is nearer the root's is.
    sandbox
        .wiggum_in(&inside("packages/a"), &["task", "list", "--backlog", "../../TODO.md"])
        .exits(0)
        .says("root");
    assert_eq!(sandbox.wiggum_in(&inside("packages/b"), &run).exits(0).stderr, "");
    assert_eq!(sandbox.read("TODO.md"), "- [x] root\n");
    sandbox.assert_clean();
}

#[test]
fn an_agent_adds_to_the_backlog_of_its_loop() {
    let sandbox = Sandbox::new();
    sandbox.write("TODO.md", "- [ ] root\n");
    sandbox.write("packages/a/TODO.md", "- [ ] inner\n");
    sandbox.commit_all("monorepo");
    let agent = r#"[ "$WIGGUM_TASK_ID" = root ] && (cd packages/a && "$WIGGUM_BIN" task add --id more --description more)
        touch "$WIGGUM_TASK_ID.txt"; claim"#;
    sandbox.run(agent, &["--verify", "true"]).exits(0);
    assert_eq!(sandbox.worked_on(), ["root", "more"]);
    assert_eq!(sandbox.read("packages/a/TODO.md"), "- [ ] inner\n");
}

#[test]
fn several_backlogs_in_one_place_are_told() {
    let sandbox = sandbox_with("TODO.md", "- [ ] one\n");
    sandbox.write("tasks.json", "[]");
    sandbox.commit_all("two of them");
    let said = sandbox.wiggum(&["run", "--headless"]).exits(0).stderr;
    assert!(said.contains("tasks.json is taken; also here: TODO.md"), "{said}");
}

#[test]
fn init_in_a_folder_prints_a_command_that_works_there() {
    let sandbox = sandbox_with("packages/a/TODO.md", "- [ ] inner\n");
    let inside = sandbox.root.join("packages/a");
    let init = sandbox.wiggum_in(&inside, &["init"]).exits(0);
    let root = sandbox.root.display();
    let init =
        init.says(&format!("in        {root} (the root of the repository)")).says("packages/a/TODO.md");
    let command = init.stdout.lines().find(|line| line.contains("git add")).unwrap().trim().to_owned();
    let identity = "git config user.name t && git config user.email t@t";
    let line = format!("{identity} && {command}");
    let added = sandbox.command("sh").current_dir(&inside).args(["-c", &line]).output().unwrap();
    assert!(added.status.success(), "{command}: {added:?}");
    sandbox.assert_clean();
    assert_eq!(sandbox.changed_in("HEAD"), [".gitignore", "PROMPT.md", "wiggum.toml"]);
}

#[test]
fn a_dash_is_worked_on_unless_this_loop_skipped_it() {
    let sandbox = sandbox_with("TODO.md", "- [-] T1: one\n- [ ] T2: two\n- [ ] T3: three\n");
    let agent = format!("[ \"$WIGGUM_TASK_ID\" = T2 ] && {{ ready; wait_for_go; }}\n{WORKER}");
    sandbox.make_pipe("ready");
    sandbox.make_pipe("go");
    let run = sandbox.start(&agent, &["--verify", "true"]);
    sandbox.wait_ready();
    beside(&sandbox, &["skip", "T3"]).exits(0);
    sandbox.go();
    run.finish().exits(0);
    assert_eq!(sandbox.worked_on(), ["T1", "T2"], "in progress without an iteration of ours is ready");
    assert_eq!(sandbox.read("TODO.md"), "- [x] T1: one\n- [x] T2: two\n- [ ] T3: three (skipped)\n");
    // As an older version wrote it: the journal knows what it means.
    sandbox.write("TODO.md", "- [x] T1: one\n- [x] T2: two\n- [-] T3: three\n- [-] T4: four\n");
    sandbox.commit_all("as an older version wrote it");
    sandbox.wiggum(&["task", "list"]).exits(0).says("T3  skipped").says("T4  open");
    sandbox.run(WORKER, &["--verify", "true"]).exits(0);
    assert_eq!(sandbox.worked_on(), ["T1", "T2", "T4"]);
    assert_eq!(sandbox.read("TODO.md"), "- [x] T1: one\n- [x] T2: two\n- [-] T3: three\n- [x] T4: four\n");
    sandbox.wiggum(&["task", "set-status", "T3", "open"]).exits(0);
    assert!(sandbox.read("TODO.md").contains("- [ ] T3: three\n"));
}

#[test]
fn tasks_json_says_who_works_and_how_often_it_failed() {
    let text = r#"[
  {"id": "a", "description": "one", "status": "pending", "failed_attempts": 1, "last_attempt_at": null, "priority": 9, "labels": ["ui"], "role": "implementer", "phase": 1},
  {"id": "b", "description": "two", "status": "in-progress"}
]
"#;
    let sandbox = sandbox_with("tasks.json", text);
    let agent = format!("cp tasks.json \"$SANDBOX/seen-$WIGGUM_TASK_ID-$WIGGUM_ATTEMPT\"\n{WORKER}");
    let verify = "test $WIGGUM_TASK_ID = b -o $WIGGUM_ATTEMPT = 2";
    sandbox.run(&agent, &["--verify", verify]).exits(0);
    let word = |seen: &str, id: &str| {
        let tasks: serde_json::Value = serde_json::from_str(&sandbox.note(seen)).unwrap();
        let task = tasks.as_array().unwrap().iter().find(|task| task["id"] == id).unwrap().clone();
        (task["status"].as_str().unwrap().to_owned(), task["failed_attempts"].as_u64())
    };
    assert_eq!(word("seen-a-1", "a"), ("in-progress".to_owned(), Some(1)), "in the spelling of the file");
    assert_eq!(word("seen-a-2", "a"), ("in-progress".to_owned(), Some(2)));
    assert_eq!(word("seen-b-1", "a"), ("completed".to_owned(), Some(2)));
    assert_eq!(word("seen-b-1", "b"), ("in-progress".to_owned(), None));
    let last = sandbox.read("tasks.json");
    assert!(!last.contains("progress") && !last.contains("null"), "{last}");
    let listed = sandbox.wiggum(&["task", "list", "--json"]).exits(0);
    let listed: serde_json::Value = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!(
        (&listed[0]["role"], &listed[0]["phase"], &listed[0]["priority"], &listed[0]["labels"]),
        (&"implementer".into(), &1.into(), &9.into(), &serde_json::json!(["ui"]))
    );
    sandbox.assert_clean();
}

#[test]
fn nobody_works_on_a_task_after_the_run() {
    let text = r#"[{"id": "a", "description": "one", "status": "pending"}, {"id": "b", "description": "two", "status": "pending"}]"#;
    let sandbox = sandbox_with("tasks.json", text);
    sandbox.make_pipe("ready");
    let run = sandbox.start("hang", &["--verify", "true"]);
    sandbox.wait_ready();
    assert!(sandbox.read("tasks.json").contains("\"inprogress\""));
    run.signal("INT");
    run.finish().exits(130);
    assert_eq!(sandbox.read("tasks.json"), text);
    sandbox.assert_clean();
    // Nor while the loop waits, or when it gave up.
    sandbox.run("echo no >&2; exit 1", &["--max-iterations", "1"]).exits(3);
    let tasks: serde_json::Value = serde_json::from_str(&sandbox.read("tasks.json")).unwrap();
    assert_eq!((&tasks[0]["status"], &tasks[0]["failed_attempts"]), (&"pending".into(), &1.into()));
    assert!(tasks[0]["last_attempt_at"].as_i64().is_some_and(|at| at > 1_700_000_000), "{tasks}");
    assert_eq!(tasks[1], serde_json::json!({"id": "b", "description": "two", "status": "pending"}));
}

/// Overfills the backlog while a person adds to it.
#[test]
fn what_people_added_outlasts_an_agent_that_overfills_the_file() {
    let sandbox = sandbox_with("TODO.md", "- [ ] T1: one\n- [x] T0: done before\n");
    sandbox.write("wiggum.toml", "[limits]\nmax_tasks = 5\n");
    sandbox.commit_all("limit");
    sandbox.make_pipe("ready");
    sandbox.make_pipe("go");
    let agent = r#"if [ "$WIGGUM_TASK_ID" = T1 ]; then ready; wait_for_go
          for n in 1 2 3 4; do echo "- [ ] X$n: surplus $n" >> TODO.md; done
          echo "- [ ] X9: One!" >> TODO.md
          sed -i 's/done before/done otherwise/' TODO.md
        fi; echo x > "$WIGGUM_TASK_ID.txt"; claim"#;
    let run = sandbox.start(agent, &["--verify", "true"]);
    sandbox.wait_ready();
    beside(&sandbox, &["task", "add", "--id", "P1", "--description", "of a person"])
        .exits(0)
        .says("P1 added");
    beside(&sandbox, &["task", "add", "--id", "P2", "--description", "of another"]).exits(0).says("P2 added");
    sandbox
        .wait_for(|event| matches!(event, Event::BacklogRead { added, .. } if added[0].id.as_str() == "P2"));
    let known: Vec<String> = sandbox.state().tasks.iter().map(|entry| entry.spec.id.to_string()).collect();
    assert!(known.contains(&"P1".to_owned()), "the loop knows at once: {known:?}");
    sandbox.go();
    run.finish().exits(0).says("more than the 5 tasks");
    assert_eq!(sandbox.worked_on(), ["T1", "P1", "P2", "X1"]);
    assert_eq!(
        sandbox.read("TODO.md"),
        "- [x] T1: one\n- [x] T0: done before\n- [x] P1: of a person\n- [x] P2: of another\n- [x] X1: surplus 1\n"
    );
    let flags: Vec<String> = sandbox
        .events()
        .into_iter()
        .filter_map(|event| match event {
            Event::AgentEnded { flags, .. } => Some(flags),
            _ => None,
        })
        .flatten()
        .filter(|flag| flag.kind == FlagKind::BacklogTouched)
        .map(|flag| flag.detail)
        .collect();
    let said = |part: &str| flags.iter().filter(|flag| flag.contains(part)).count();
    assert_eq!(
        (said("more than the 5"), said("says the same as `T1`"), said("`T0` is done")),
        (3, 1, 1),
        "{flags:?}"
    );
}

#[test]
fn what_people_added_outlasts_an_agent_that_breaks_or_overwrites_the_file() {
    for ruin in ["echo '{' > PRD.json", "cp \"$SANDBOX/copy\" PRD.json"] {
        let sandbox = Sandbox::with_tasks(&["A"]);
        std::fs::copy(sandbox.root.join("PRD.json"), sandbox.base().join("copy")).unwrap();
        sandbox.make_pipe("ready");
        sandbox.make_pipe("go");
        let agent = format!(
            "[ \"$WIGGUM_TASK_ID\" = A ] && {{ ready; wait_for_go; {ruin}; }}; touch \"$WIGGUM_TASK_ID.txt\"; claim"
        );
        let run = sandbox.start(&agent, &["--verify", "true"]);
        sandbox.wait_ready();
        let add = ["task", "add", "--id", "P", "--title", "mine", "--description", "of a person"];
        beside(&sandbox, &add).exits(0);
        beside(&sandbox, &["task", "add", "--id", "Q", "--description", "not meant"]).exits(0);
        beside(&sandbox, &["task", "delete", "Q"]).exits(0);
        sandbox.go();
        run.finish().exits(0).says("P was added while the agent worked, and was put back");
        assert_eq!(sandbox.worked_on(), ["A", "P"], "{ruin}");
        assert!(
            sandbox.read("PRD.json").contains("of a person")
                && !sandbox.read("PRD.json").contains("not meant")
        );
    }
}

/// It was added while another agent worked, or while none did.
#[test]
fn what_people_added_outlasts_every_later_agent() {
    let ruins = [
        "sed -i '/P1/d; /P2/d' TODO.md",
        "{ echo '- [ ] T1: one'; echo '- [ ] T2: two'; for n in 1 2 3 4 5; do echo \"- [ ] X$n: surplus $n\"; done; } > TODO.md",
        "git checkout -q HEAD~1 TODO.md || : > TODO.md",
    ];
    for ruin in ruins {
        let sandbox = sandbox_with("TODO.md", "- [ ] T1: one\n- [ ] T2: two\n");
        sandbox.write("wiggum.toml", "[limits]\nmax_tasks = 5\n");
        sandbox.commit_all("limit");
        sandbox.wiggum(&["task", "add", "--id", "P1", "--description", "of a person"]).exits(0);
        sandbox.commit_all("added");
        sandbox.make_pipe("ready");
        sandbox.make_pipe("go");
        let agent = format!(
            "case $WIGGUM_TASK_ID in T1) ready; wait_for_go;; T2) {ruin};; esac; echo x > $WIGGUM_TASK_ID.txt; claim"
        );
        let run = sandbox.start(&agent, &["--verify", "true"]);
        sandbox.wait_ready();
        beside(&sandbox, &["task", "add", "--id", "P2", "--description", "of another"]).exits(0);
        sandbox.go();
        run.finish().exits(0);
        for task in ["T1", "T2", "P1", "P2"] {
            assert_eq!(sandbox.state_of(task), "done", "{ruin}: {}", sandbox.read("TODO.md"));
            assert!(sandbox.read("TODO.md").contains(&format!("- [x] {task}: ")), "{ruin}");
        }
    }
}

#[test]
fn messages_name_the_cause() {
    let mut sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.make_pipe("ready");
    let run = sandbox.start("hang", &["--verify", "true"]);
    sandbox.wait_ready();
    let pid = run.pid();
    let held = format!("loop main over PRD.json is run by process {pid} on ");
    let command = sandbox.agent_named("second", WORKER);
    let second = ["run", "--headless", "--agent-command", &command];
    beside(&sandbox, &second).complains(2, &[&held, " since 2", "`wiggum events -f`", "`wiggum stop`"]);
    let root = sandbox.root.display().to_string();
    let busy = format!("another loop works in {root}: main over PRD.json, process {pid} since 2");
    beside(&sandbox, &[&second[..], &["--name", "other"]].concat())
        .complains(2, &[&busy, "git worktree add"]);
    run.signal("INT");
    run.finish().exits(130);
    sandbox.env("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1");
    let mend = format!("git config --global --add safe.directory {root}");
    sandbox.wiggum(&["run", "--headless"]).complains(2, &["dubious ownership", &mend]);
}

#[test]
fn without_a_home_the_message_says_so() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    for args in [&["run", "--headless", "--agent-command", "true"][..], &["status"], &["events", "-f"]] {
        let program = env!("CARGO_BIN_EXE_wiggum");
        let mut command = sandbox.command(program);
        command.current_dir(&sandbox.root).args(args).env_remove("HOME").env_remove("XDG_STATE_HOME");
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.contains("HOME is not set") && said.contains("hint: set HOME"), "{args:?}: {said}");
        let said = command.env("HOME", "not/absolute").output().unwrap();
        let said = String::from_utf8_lossy(&said.stderr).into_owned();
        assert!(said.contains("HOME is `not/absolute`, which is no absolute path"), "{args:?}: {said}");
    }
}

#[test]
fn events_are_followed_from_the_first_one_on() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    let follower = sandbox.launch(&sandbox.root, &["events", "-f", "--json"]);
    sandbox.run(WORKER, &["--verify", "true"]).exits(0);
    let followed = follower.finish().exits(0);
    assert!(followed.stderr.contains("waiting for its first event"), "{}", followed.stderr);
    let events: Vec<wiggum_core::event::Envelope> =
        followed.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(events, sandbox.journal());
}
