//! People beside a running loop: they edit the backlog, ask for things and answer questions.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may fail here")]

mod support;

use std::time::Duration;

use support::{Sandbox, Started, WORKER, prd, prd_of, story};
use wiggum_core::event::{Answer, Event, FlagKind, Request};
use wiggum_core::ids::QuestionId;
use wiggum_workspace::process;

/// Waits in task A until the test has done its part.
const WAITS_IN_A: &str = r#"keep_prompt
    if [ "$WIGGUM_TASK_ID" = A ]; then ready; wait_for_go; fi
    echo "$WIGGUM_TASK_ID" > "$WIGGUM_TASK_ID.txt"; claim"#;

fn during_a<'a>(sandbox: &'a Sandbox, args: &[&str]) -> Started<'a> {
    sandbox.make_pipe("ready");
    sandbox.make_pipe("go");
    let started = sandbox.start(WAITS_IN_A, args);
    sandbox.wait_ready();
    started
}

#[test]
fn edits_while_an_agent_runs_are_respected_at_the_next_decision() {
    let sandbox = Sandbox::with_tasks(&["A", "B", "C", "D"]);
    let started = during_a(&sandbox, &["--verify", "true"]);
    // B gets other words, C goes by command, X comes, and D comes before B.
    sandbox.launch(&sandbox.root, &["task", "delete", "C"]).outcome_only().exits(0);
    let b = story("B", r#", "description": "special words""#).replace("Do B", "Another title");
    sandbox.write("PRD.json", &prd_of(&[story("A", ""), story("D", ""), b, story("X", "")]));
    sandbox.go();
    started.finish().exits(0);
    assert_eq!(sandbox.worked_on(), ["A", "D", "B", "X"]);
    assert!(sandbox.prompt("B", 1).contains("special words"));
    assert_eq!(sandbox.subjects()[2..], ["A: Do A", "D: Do D", "B: Another title", "X: Do X"]);
    sandbox.assert_clean();
}

#[test]
fn edits_between_two_runs_are_respected() {
    let sandbox = Sandbox::with_tasks(&["A", "B"]);
    sandbox.run(WORKER, &["--verify", "true", "--max-iterations", "1"]).exits(3);
    // Between runs a status is a person's word: A is to be done again, B is done.
    let text = sandbox.read("PRD.json");
    let text = text.replace("true", "later").replace("false", "true").replace("later", "false");
    sandbox.write("PRD.json", &text);
    sandbox.run(WORKER, &["--verify", "true"]).exits(0);
    assert_eq!(sandbox.worked_on(), ["A", "A"]);
}

#[test]
fn statuses_changed_while_an_agent_runs_are_put_back_and_flagged() {
    let sandbox = Sandbox::with_tasks(&["A", "B"]);
    let started = during_a(&sandbox, &["--verify", "true"]);
    sandbox.write("PRD.json", &prd(&["A", "B"]).replace("false", "true"));
    sandbox.go();
    started.finish().exits(0);
    assert_eq!(sandbox.worked_on(), ["A", "B"]);
    assert!(sandbox.has_flag(FlagKind::BacklogTouched));
}

#[test]
fn a_task_deleted_while_it_is_worked_on_still_lands() {
    let sandbox = Sandbox::with_tasks(&["A", "B"]);
    let started = during_a(&sandbox, &["--verify", "true"]);
    sandbox.write("PRD.json", &prd(&["B"]));
    sandbox.go();
    started.finish().exits(0).says("`A` was taken out and is still to be done; put back");
    assert_eq!(sandbox.worked_on(), ["A", "B"]);
    assert_eq!(sandbox.subjects()[2..], ["A: Do A", "B: Do B"]);
    assert_eq!(sandbox.read("PRD.json"), prd(&["A", "B"]).replace("false", "true"));
    sandbox.assert_clean();
}

/// The engine writes into the file between what the agent does and its end.
#[test]
fn a_status_that_a_person_sets_meanwhile_does_not_hide_what_the_agent_took_out() {
    let sandbox = Sandbox::new();
    sandbox.write("TODO.md", "- [ ] T1: one\n- [ ] T2: two\n- [ ] T3: three\n");
    sandbox.commit_all("backlog");
    sandbox.make_pipe("ready");
    sandbox.make_pipe("go");
    let agent =
        format!("[ $WIGGUM_TASK_ID = T1 ] && {{ sed -i /T2:/d TODO.md; ready; wait_for_go; }}\n{WORKER}");
    let started = sandbox.start(&agent, &["--verify", "true"]);
    sandbox.wait_ready();
    sandbox.ask(&Request::Skip { task: "T3".into() });
    sandbox.wait_for(|event| matches!(event, Event::TaskSkipped { .. }));
    sandbox.go();
    started.finish().exits(0);
    assert_eq!(sandbox.worked_on(), ["T1", "T2"]);
    assert_eq!(sandbox.read("TODO.md"), "- [x] T1: one\n- [x] T2: two\n- [ ] T3: three (skipped)\n");
}

#[test]
fn people_take_tasks_out() {
    // By command while an agent works, which may break the file.
    for ruin in ["true", "echo '{' > PRD.json", "rm PRD.json"] {
        let sandbox = Sandbox::with_tasks(&["A", "B", "C"]);
        sandbox.make_pipe("ready");
        sandbox.make_pipe("go");
        let agent = format!("[ $WIGGUM_TASK_ID = A ] && {{ ready; wait_for_go; {ruin}; }}\n{WORKER}");
        let started = sandbox.start(&agent, &["--verify", "true"]);
        sandbox.wait_ready();
        sandbox.launch(&sandbox.root, &["task", "delete", "B"]).outcome_only().exits(0);
        sandbox.go();
        started.finish().exits(0);
        assert_eq!(sandbox.worked_on(), ["A", "C"], "{ruin}");
        assert!(!sandbox.read("PRD.json").contains("\"B\""), "{ruin}");
    }
    // With an editor between two iterations, or between two runs.
    let sandbox = Sandbox::with_tasks(&["A", "B", "C", "D"]);
    let edit = |left: &[&str]| prd(left).replacen("false", "true", 1);
    std::fs::write(sandbox.base().join("edited"), edit(&["A", "C", "D"])).unwrap();
    let hook = "#!/bin/sh\ntest -e \"$SANDBOX/once\" || { touch \"$SANDBOX/once\"; cp \"$SANDBOX/edited\" PRD.json; }\n";
    sandbox.write_program(".git/hooks/post-commit", hook);
    sandbox.run(WORKER, &["--verify", "true", "--max-iterations", "1"]).exits(3);
    sandbox.run(WORKER, &["--verify", "true", "--max-iterations", "1", "--allow-dirty"]).exits(3);
    sandbox.write("PRD.json", &edit(&["A"]));
    sandbox.run(WORKER, &["--verify", "true", "--allow-dirty"]).exits(0);
    assert_eq!(sandbox.worked_on(), ["A", "C"]);
}

#[test]
fn a_half_written_backlog_between_iterations_needs_a_person_and_is_left_alone() {
    let sandbox = Sandbox::with_tasks(&["A", "B"]);
    // Written after A's commit, so it is nobody's agent.
    sandbox.write_program(".git/hooks/post-commit", "#!/bin/sh\nprintf '{ \"userStories\": [' > PRD.json\n");
    sandbox.run(WORKER, &["--verify", "true"]).exits(6).says("PRD.json:1");
    assert_eq!(sandbox.read("PRD.json"), "{ \"userStories\": [");
    assert_eq!(sandbox.worked_on(), ["A"]);

    std::fs::remove_file(sandbox.root.join(".git/hooks/post-commit")).unwrap();
    sandbox.git(&["checkout", "-q", "HEAD", "PRD.json"]);
    sandbox.run(WORKER, &["--verify", "true"]).exits(0);
    assert_eq!(sandbox.worked_on(), ["A", "B"]);
}

#[test]
fn a_backlog_broken_during_the_check_does_not_lose_the_attempt() {
    for more in [&[][..], &["--allow-dirty"]] {
        let sandbox = Sandbox::with_tasks(&["A"]);
        if !more.is_empty() {
            sandbox.write("README", "mine\n");
        }
        let verify = r#"test -e "$SANDBOX/broken" || { touch "$SANDBOX/broken"; echo '{' > PRD.json; }"#;
        let mut args = vec!["--verify", verify];
        args.extend(more);
        sandbox.run(WORKER, &args).exits(6);
        sandbox.git(&["checkout", "-q", "HEAD", "PRD.json"]);
        let run = sandbox.run(WORKER, &args).exits(0);
        assert_eq!(sandbox.changed_in("HEAD"), ["A.txt", "PRD.json"]);
        let expected = if more.is_empty() { "" } else { " M README" };
        assert_eq!(sandbox.dirt(), expected, "{}\n{:#?}", run.stdout, sandbox.events());
    }
}

/// The run ends while a check still runs: that has to be over before the user's changes come back.
#[test]
fn a_backlog_broken_before_the_first_agent_does_not_take_the_users_changes_away() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.write("README", "mine\n");
    let verify = "echo '{' > PRD.json; echo broken; exec sleep 1000";
    sandbox.run(WORKER, &["--verify", verify, "--allow-dirty"]).exits(6).says("PRD.json");
    assert_eq!(sandbox.dirt(), " M PRD.json\n M README");
}

#[test]
fn an_edit_made_while_we_write_a_status_is_not_overlooked() {
    let sandbox = Sandbox::with_tasks(&["A", "B"]);
    // During A's check, just before its status is written.
    let verify =
        r#"test -e "$SANDBOX/edited" || { touch "$SANDBOX/edited"; sed -i 's/Do B/Better B/' PRD.json; }"#;
    sandbox.run(WORKER, &["--verify", verify]).exits(0);
    assert_eq!(sandbox.subjects()[2..], ["A: Do A", "B: Better B"]);
}

const ESCALATION: &str = r#"
<escalate type="stuck">
<summary>Which database?</summary>
<context>Both are mentioned.</context>
<options>
1. PostgreSQL with the pool of service X
2. SQLite in one file
</options>
<question>Which one should be used?</question>
</escalate>"#;

fn asks_in_a() -> String {
    format!(
        r#"keep_prompt
        if [ "$WIGGUM_TASK_ID$WIGGUM_ATTEMPT" = A1 ]; then echo half > half.txt
        cat <<'EOT'
{ESCALATION}
EOT
        else echo "$WIGGUM_TASK_ID" > "$WIGGUM_TASK_ID.txt"; claim; fi"#
    )
}

#[test]
fn a_question_parks_its_task_and_the_chosen_option_enters_the_next_prompt() {
    let sandbox = Sandbox::with_tasks(&["A", "B"]);
    sandbox.run(&asks_in_a(), &["--verify", "true"]).exits(6).says("Which database?").says("2. SQLite");
    assert_eq!(sandbox.worked_on(), ["A", "B"]);
    assert_eq!(sandbox.state_of("A"), "parked");
    sandbox.assert_clean();

    answer(&sandbox, Answer::Option { number: 2 });
    sandbox.run(&asks_in_a(), &["--verify", "true"]).exits(0);
    assert!(sandbox.prompt("A", 2).contains("SQLite in one file"), "{}", sandbox.prompt("A", 2));
    // A question is no failure.
    assert_eq!(sandbox.state().task(&"A".into()).unwrap().failures, 0);
}

#[test]
fn answers_in_own_words_skip_and_abort() {
    let cases = [
        (Answer::Words { text: "use files".to_owned() }, 0, "done"),
        (Answer::Retry, 0, "done"),
        (Answer::Skip, 0, "skipped"),
        (Answer::Abort, 8, "open"),
    ];
    for (given, code, state) in cases {
        let sandbox = Sandbox::with_tasks(&["A"]);
        sandbox.run(&asks_in_a(), &["--verify", "true"]).exits(6);
        answer(&sandbox, given.clone());
        sandbox.run(&asks_in_a(), &["--verify", "true"]).exits(code);
        assert_eq!(sandbox.state_of("A"), state, "{given:?}");
        if let Answer::Words { text } = given {
            assert!(sandbox.prompt("A", 2).contains(&text));
        }
    }
}

#[test]
fn a_wrong_answer_changes_nothing_and_is_said() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.run(&asks_in_a(), &["--verify", "true"]).exits(6);
    answer(&sandbox, Answer::Option { number: 7 });
    sandbox.ask(&Request::Answer { question: QuestionId(9), answer: Answer::Retry });
    sandbox.run(&asks_in_a(), &["--verify", "true"]).exits(6).says("no option 7").says("q9 is not open");
    assert_eq!(sandbox.state_of("A"), "parked");
}

#[test]
fn requests_reach_a_running_loop_at_once() {
    let sandbox = Sandbox::with_tasks(&["A", "B"]);
    let started = during_a(&sandbox, &["--verify", "true"]);
    sandbox.ask(&Request::Skip { task: "A".into() });
    started.finish().exits(0);
    assert_eq!(sandbox.state_of("A"), "skipped");
    assert_eq!(sandbox.subjects()[2..], ["A: skipped", "B: Do B"]);
    assert_eq!(sandbox.changed_in("HEAD"), ["B.txt", "PRD.json"]);
    sandbox.assert_clean();
}

#[test]
fn requests_are_heard_after_the_state_directory_was_deleted() {
    let sandbox = Sandbox::with_tasks(&["A", "B"]);
    sandbox.make_pipe("ready");
    let agent = format!("if [ $WIGGUM_TASK_ID = A ]; then rm -rf .wiggum; {WORKER}; else hang; fi");
    let started = sandbox.start(&agent, &["--verify", "true"]);
    sandbox.wait_ready();
    sandbox.ask(&Request::Stop);
    started.finish().exits(8);
    assert_eq!(sandbox.state_of("A"), "done");
}

#[test]
fn a_paused_loop_starts_nothing_until_it_is_resumed() {
    let sandbox = Sandbox::with_tasks(&["A", "B"]);
    let started = during_a(&sandbox, &["--verify", "true"]);
    sandbox.ask(&Request::Pause);
    sandbox.go();
    sandbox.wait_for(|event| matches!(event, Event::TaskCompleted { .. }));
    assert_eq!(sandbox.worked_on(), ["A"]);
    sandbox.ask(&Request::Resume);
    started.finish().exits(0);
    assert_eq!(sandbox.worked_on(), ["A", "B"]);
}

#[test]
fn a_retry_reopens_a_failed_task() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.run(WORKER, &["--baseline", "off", "--verify", "false", "--max-retries", "0"]).exits(6);
    assert_eq!(sandbox.state_of("A"), "failed");
    sandbox.ask(&Request::Retry { task: "A".into() });
    sandbox.run(WORKER, &["--baseline", "off", "--verify", "true", "--max-retries", "0"]).exits(0);
}

fn answer(sandbox: &Sandbox, answer: Answer) {
    sandbox.ask(&Request::Answer { question: QuestionId(1), answer });
}

#[test]
fn a_nudge_that_cannot_be_heard_is_guidance_for_the_next_attempt() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.make_pipe("ready");
    sandbox.make_pipe("go");
    let agent =
        "keep_prompt; if [ $WIGGUM_ATTEMPT = 1 ]; then ready; wait_for_go; else echo x > x; claim; fi";
    let started = sandbox.start(agent, &["--verify", "true"]);
    sandbox.wait_ready();
    sandbox.ask(&Request::Nudge { text: "mind the gap".to_owned() });
    sandbox.wait_for(|event| matches!(event, Event::Nudged { delivered: false, .. }));
    sandbox.go();
    started.finish().exits(0).says("mind the gap");
    assert!(!sandbox.prompt("A", 1).contains("mind the gap"));
    assert!(sandbox.prompt("A", 2).contains("mind the gap"));
}

#[test]
fn what_a_person_says_is_done_is_by_hand_and_never_verified() {
    let sandbox = Sandbox::with_tasks(&["A", "B", "C"]);
    let agent = "[ $WIGGUM_TASK_ID = A ] || exit 1; echo a > a.txt; claim";
    sandbox.run(agent, &["--verify", "true", "--max-retries", "0", "--max-iterations", "2"]);
    // One at the command line, one in the file.
    sandbox.wiggum(&["task", "set-status", "B", "done"]).exits(0);
    let text = sandbox.read("PRD.json");
    let (before, after) = text.split_at(text.find("\"C\"").unwrap());
    sandbox.write("PRD.json", &format!("{before}{}", after.replace("\"passes\": false", "\"passes\": true")));
    sandbox.run(agent, &["--verify", "true", "--allow-dirty"]).exits(0).says("2 done by hand");
    let counts = sandbox.state().tasks.counts();
    assert_eq!((counts.done, counts.by_hand, counts.unverified), (3, 2, 0));
    sandbox.wiggum(&["status"]).says("2 by hand");
    for (task, says) in [("A", "done"), ("B", "done by hand"), ("C", "done by hand")] {
        let shown = sandbox.wiggum(&["show", task, "--json"]).exits(0).stdout;
        let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
        assert_eq!((&shown["why"], &shown["verified"]), (&says.into(), &(task == "A").into()));
    }
    let report: serde_json::Value =
        serde_json::from_str(&sandbox.wiggum(&["report", "--json"]).exits(0).stdout).unwrap();
    let by_hand: Vec<bool> =
        report["tasks"].as_array().unwrap().iter().map(|task| task["by_hand"] == true).collect();
    assert_eq!(by_hand, [false, true, true]);
}

#[test]
fn what_a_person_says_is_done_before_the_first_run_is_by_hand_too() {
    let sandbox = Sandbox::with_tasks(&["A", "B", "C", "D"]);
    for task in ["A", "B"] {
        sandbox.wiggum(&["task", "set-status", task, "done"]).exits(0);
    }
    sandbox.wiggum(&["task", "set-status", "B", "open"]).exits(0);
    // Nobody said who did D: it came like this.
    let text = sandbox.read("PRD.json");
    let (before, after) = text.split_at(text.find("\"D\"").unwrap());
    sandbox.write("PRD.json", &format!("{before}{}", after.replace("\"passes\": false", "\"passes\": true")));
    sandbox.commit_all("backlog");
    sandbox.wiggum(&["status"]).exits(0).says("no loops here yet");
    let by_hand = || {
        let listed = sandbox.wiggum(&["task", "list", "--json"]).exits(0).stdout;
        let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
        let done: Vec<bool> =
            listed.as_array().unwrap().iter().map(|task| task["why"] == "done by hand").collect();
        done
    };
    assert_eq!(by_hand(), [true, false, false, false]);
    sandbox.wiggum(&["task", "list"]).says("(done by hand)");
    sandbox.run(WORKER, &["--verify", "true", "--max-iterations", "1"]).says("1 done by hand");
    assert_eq!(by_hand(), [true, false, false, false]);
    // As after it: the file alone is changed, and the loop at rest will take it for a person's word.
    sandbox.wiggum(&["task", "set-status", "C", "done"]).exits(0);
    assert_eq!(by_hand(), [true, false, true, false]);
    sandbox.run(WORKER, &["--verify", "true", "--allow-dirty"]).exits(0).says("2 done by hand");
    assert_eq!(by_hand(), [true, false, true, false]);
    let why = |task: &str| {
        let shown = sandbox.wiggum(&["show", task, "--json"]).exits(0).stdout;
        serde_json::from_str::<serde_json::Value>(&shown).unwrap()["why"].clone()
    };
    assert_eq!((why("A"), why("C")), ("done by hand".into(), "done by hand".into()));
}

#[test]
fn a_skip_is_committed_as_a_completion_is() {
    let sandbox = Sandbox::with_tasks(&["A", "B"]);
    sandbox.run(WORKER, &["--verify", "true", "--max-iterations", "1"]).exits(3);
    sandbox.ask(&Request::Skip { task: "B".into() });
    sandbox.run(WORKER, &["--verify", "true"]).exits(0);
    assert_eq!(sandbox.subjects(), ["first", "backlog", "A: Do A", "B: skipped"]);
    assert_eq!(sandbox.changed_in("HEAD"), ["PRD.json"]);
    assert_eq!(sandbox.trailer("HEAD", "Wiggum-Task"), "B");
    sandbox.assert_clean();
}

#[test]
fn a_skip_commits_the_backlog_alone() {
    // A has unfinished work when it is skipped; B goes on after that.
    let sandbox = Sandbox::with_tasks(&["A", "B"]);
    sandbox.make_pipe("ready");
    let agent = format!(
        "if [ $WIGGUM_TASK_ID = A ]; then echo half > half.txt; git add half.txt; hang; fi; {WORKER}"
    );
    let started = sandbox.start(&agent, &["--verify", "true"]);
    sandbox.wait_ready();
    sandbox.ask(&Request::Skip { task: "A".into() });
    started.finish().exits(0);
    assert_eq!(sandbox.subjects(), ["first", "backlog", "A: skipped", "B: Do B"]);
    assert_eq!(sandbox.changed_in("HEAD~1"), ["PRD.json"]);
    sandbox.assert_clean();

    // Untracked, it is nobody's to commit; and a hook may have its say.
    let sandbox = Sandbox::new();
    sandbox.write("PRD.json", &prd(&["A"]));
    skip_at_work(&sandbox);
    assert_eq!(sandbox.subjects(), ["first"]);
}

/// A is skipped while its agent works.
fn skip_at_work(sandbox: &Sandbox) {
    sandbox.make_pipe("ready");
    let started = sandbox.start("hang", &["--verify", "true"]);
    sandbox.wait_ready();
    sandbox.ask(&Request::Skip { task: "A".into() });
    started.finish().exits(0);
}

#[test]
fn a_skip_is_committed_once_wherever_the_plug_is_pulled() {
    let make = || {
        let sandbox = Sandbox::with_tasks(&["A", "B"]);
        sandbox.run(WORKER, &["--verify", "true", "--max-iterations", "1"]).exits(3);
        sandbox.ask(&Request::Skip { task: "B".into() });
        sandbox
    };
    let mut sandbox = make();
    let points = sandbox.base().join("points");
    sandbox.env("WIGGUM_CRASH_LOG", points.to_str().unwrap());
    sandbox.run(WORKER, &["--verify", "true"]).exits(0);
    let log = std::fs::read_to_string(&points).unwrap();
    let commit = log.lines().position(|point| point == "after git commit").unwrap() + 1;
    for at in commit - 6..=commit + 3 {
        let mut sandbox = make();
        let command = sandbox.agent(WORKER);
        let args = ["run", "--headless", "--agent-command", &command, "--verify", "true"];
        sandbox.env("WIGGUM_CRASH_AT", &at.to_string());
        sandbox.launch(&sandbox.root, &args).outcome_only();
        sandbox.env("WIGGUM_CRASH_AT", "1000000");
        sandbox.wiggum(&args).exits(0);
        assert_eq!(sandbox.subjects(), ["first", "backlog", "A: Do A", "B: skipped"], "killed at {at}");
        sandbox.assert_clean();
    }
}

#[test]
fn a_hook_that_refuses_a_skip_stops_nothing() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.write_program(".git/hooks/commit-msg", "#!/bin/sh\necho no skips here; exit 1\n");
    skip_at_work(&sandbox);
    assert_eq!(sandbox.subjects(), ["first", "backlog"]);
    assert_eq!(sandbox.state_of("A"), "skipped");
    let told =
        |event: &Event| matches!(event, Event::Noticed { message, .. } if message.contains("no skips here"));
    assert!(sandbox.events().iter().any(told));
}

/// What somebody commits in another terminal while the agent works.
fn commit_meanwhile(sandbox: &Sandbox, path: &str, text: &str) {
    sandbox.write(path, text);
    sandbox.git(&["add", path]);
    sandbox.git(&[
        "-c",
        "user.name=Ann",
        "-c",
        "user.email=ann@example.com",
        "commit",
        "-q",
        "-m",
        "Ann's own",
    ]);
}

const OWN_COMMIT: &str = "git -c user.name=a -c user.email=a@b commit -q -m own";

#[test]
fn a_persons_commit_during_an_iteration_stays_theirs() {
    let agents = [
        ("without commits of its own", "echo work > work.txt; ready; wait_for_go; claim".to_owned()),
        (
            "with commits before and after",
            format!(
                "echo work > work.txt; git add work.txt; {OWN_COMMIT}; ready; wait_for_go
                echo more >> work.txt; git add work.txt; {OWN_COMMIT}; claim"
            ),
        ),
    ];
    for (name, agent) in agents {
        let sandbox = Sandbox::with_tasks(&["A"]);
        for pipe in ["ready", "go"] {
            sandbox.make_pipe(pipe);
        }
        let started = sandbox.start(&agent, &["--verify", "true"]);
        sandbox.wait_ready();
        commit_meanwhile(&sandbox, "ann.txt", "hers\n");
        let hers = sandbox.git(&["rev-parse", "HEAD"]);
        sandbox.go();
        let run = started.finish().exits(0).says("somebody else committed meanwhile").says("Ann's own");
        run.never_says("thrown away");
        assert_eq!(sandbox.git(&["rev-parse", "HEAD~1"]), hers, "{name}");
        assert_eq!(sandbox.changed_in("HEAD~1"), ["ann.txt"], "{name}");
        assert!(sandbox.changed_in("HEAD").contains(&"PRD.json".to_owned()), "{name}");
        assert!(!sandbox.changed_in("HEAD").contains(&"ann.txt".to_owned()), "{name}");
        sandbox.assert_clean();
    }
}

#[test]
fn a_persons_commit_outlives_an_interrupted_attempt() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.make_pipe("ready");
    let started = sandbox.start("echo half > half.txt; hang", &["--verify", "true"]);
    sandbox.wait_ready();
    commit_meanwhile(&sandbox, "ann.txt", "hers\n");
    started.signal("INT");
    started.finish().exits(130);
    assert_eq!(sandbox.subjects(), ["first", "backlog", "Ann's own"]);
    sandbox.assert_clean();

    let started = sandbox.start("echo half > half.txt; hang", &["--verify", "true"]);
    sandbox.wait_ready();
    commit_meanwhile(&sandbox, "ann.txt", "hers again\n");
    started.kill();
    sandbox.run("echo work > work.txt; claim", &["--verify", "true"]).exits(0);
    assert_eq!(sandbox.subjects(), ["first", "backlog", "Ann's own", "Ann's own", "A: Do A"]);
    assert_eq!(sandbox.changed_in("HEAD"), ["PRD.json", "work.txt"]);
    sandbox.assert_clean();
}

/// Also where they change what judges the work: nothing of ours ran any more when they were made.
#[test]
fn commits_made_while_nobody_runs_are_a_persons() {
    let begun = || {
        let sandbox = Sandbox::with_tasks(&["A"]);
        // It waits for ever once there is work.
        let check = "#!/bin/sh\ntest ! -e work.txt || { echo $$ > $SANDBOX/ready; sleep 1000; }\n";
        sandbox.write_program("verify.sh", check);
        sandbox.commit_all("a check");
        sandbox.make_pipe("ready");
        sandbox
    };
    let (works, args) = ("echo work > work.txt; claim", ["--verify", "./verify.sh"]);
    let go_on = |sandbox: &Sandbox| {
        commit_meanwhile(sandbox, "verify.sh", "#!/bin/sh\ntest -e PRD.json\n");
        commit_meanwhile(sandbox, "ann.txt", "hers\n");
        let attempts = sandbox.worked_on().len();
        sandbox.run(works, &args).exits(0);
        assert_eq!(sandbox.subjects(), ["first", "backlog", "a check", "Ann's own", "Ann's own", "A: Do A"]);
        assert_eq!(sandbox.changed_in("HEAD"), ["PRD.json", "work.txt"]);
        sandbox.assert_clean();
        sandbox.worked_on().len() - attempts
    };

    // The engine was killed while the agent worked.
    let sandbox = begun();
    let started = sandbox.start("echo half > half.txt; hang", &args);
    sandbox.wait_ready();
    started.kill();
    let lock = sandbox.state_dir().loop_dir(sandbox.loop_id()).join("watchdog.lock");
    assert!(process::await_watchdog(&lock, Duration::from_secs(20)).unwrap());
    assert_eq!(go_on(&sandbox), 1);

    // The run was interrupted while a check ran, and once more after it had gone on.
    let sandbox = begun();
    for _ in 0..2 {
        let started = sandbox.start(works, &args);
        sandbox.wait_ready();
        started.signal("INT");
        started.finish().exits(130);
    }
    assert_eq!(go_on(&sandbox), 0, "the work that waits is checked and landed without another agent");
}

/// An agent that hides whose its commits are gets no weaker judge by that.
#[test]
fn a_commit_that_changes_what_judges_the_work_counts_as_the_agents() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.write_program("verify.sh", "#!/bin/sh\ntest -e wanted\n");
    sandbox.commit_all("a check");
    let agent = format!(
        "printf '#!/bin/sh\\n' > verify.sh; git add verify.sh; env -u GIT_REFLOG_ACTION {OWN_COMMIT}; claim"
    );
    let shared = ["--sandbox", "landlock"];
    let args = ["--verify", "./verify.sh", "--baseline", "go-on", "--max-retries", "0"];
    let run = sandbox.run(&agent, &[&shared[..], &args].concat());
    assert_ne!(run.code(), Some(0));
    assert_eq!(sandbox.subjects(), ["first", "backlog", "a check"]);
    let flagged = sandbox.flags().into_iter().filter(|flag| flag.kind == FlagKind::AgentCommitted);
    let details: Vec<String> = flagged.map(|flag| flag.detail).collect();
    assert!(details.iter().any(|detail| detail.contains("verify.sh")), "{details:?}");
    let kept = sandbox.git(&["for-each-ref", "--format=%(refname)", "refs/wiggum"]);
    assert!(kept.contains("/squashed/"), "{kept}");
}

#[test]
fn a_persons_commit_during_the_checks_stays_theirs() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    for pipe in ["ready", "go"] {
        sandbox.make_pipe(pipe);
    }
    // The check waits for the commit the first time.
    let check =
        "test ! -e work.txt || test -e ann.txt || { echo $$ > $SANDBOX/ready; cat $SANDBOX/go > /dev/null; }";
    let verify = format!("sh -c '{check}'");
    let started = sandbox.start("echo work > work.txt; claim", &["--verify", &verify]);
    sandbox.wait_ready();
    sandbox.write("ann.txt", "hers\n");
    sandbox.git(&["add", "ann.txt"]);
    sandbox.git(&[
        "-c",
        "user.name=Ann",
        "-c",
        "user.email=a@b.c",
        "commit",
        "-q",
        "-m",
        "Ann's own",
        "--",
        "ann.txt",
    ]);
    let hers = sandbox.git(&["rev-parse", "HEAD"]);
    sandbox.go();
    started.finish().exits(0);
    assert_eq!(sandbox.worked_on(), ["A"], "no other agent is needed");
    assert_eq!(sandbox.git(&["rev-parse", "HEAD~1"]), hers);
    assert_eq!(sandbox.changed_in("HEAD"), ["PRD.json", "work.txt"]);
    assert_eq!(sandbox.read("ann.txt"), "hers\n");
    sandbox.assert_clean();
}

/// A question that an earlier run left open has waited already: what can be done is done first.
#[test]
fn a_question_of_an_earlier_run_holds_up_nobody_elses_work() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    let asks = format!(
        "if [ $WIGGUM_TASK_ID = A ]; then cat <<'X'\n{ESCALATION}\nX\nelse echo x > B.txt; claim; fi"
    );
    sandbox.run(&asks, &["--verify", "true"]).exits(6);
    sandbox.write("PRD.json", &prd(&["A", "B"]));
    sandbox.commit_all("another task");
    let agent = sandbox.agent(&asks);
    let started =
        sandbox.launch(&sandbox.root, &["run", "--attended", "--agent-command", &agent, "--verify", "true"]);
    sandbox.wait_for(|event| matches!(event, Event::TaskCompleted { task, .. } if task.as_str() == "B"));
    answer(&sandbox, Answer::Skip);
    started.finish().exits(0);
}

/// A hangs, and B is to be skipped before anybody came to it.
#[test]
fn a_skip_that_was_acknowledged_is_in_the_file_after_ctrl_c() {
    let sandbox = Sandbox::new();
    sandbox.write("TODO.md", "- [ ] **A**: one\n- [ ] **B**: two\n");
    sandbox.commit_all("backlog");
    sandbox.make_pipe("ready");
    let run = sandbox.start("echo half > half.txt; hang", &["--verify", "true"]);
    sandbox.wait_ready();
    sandbox.launch(&sandbox.root, &["skip", "B"]).outcome_only().exits(0);
    run.signal("INT");
    run.finish().exits(130);
    assert_eq!(sandbox.read("TODO.md"), "- [ ] **A**: one\n- [ ] **B**: two (skipped)\n");
    assert_eq!(sandbox.subjects().last().map(String::as_str), Some("B: skipped"));
    sandbox.assert_clean();
    let list = sandbox.wiggum(&["task", "list", "--json"]).exits(0).stdout;
    assert!(list.contains("\"skipped\""), "{list}");
}

#[test]
fn what_a_person_adds_while_an_agent_works_is_not_the_agents_doing() {
    // Only one of the agents writes to the file itself.
    for (agent, touched) in [("", false), ("echo '- [ ] **D**: of the agent' >> TODO.md;", true)] {
        let sandbox = Sandbox::new();
        sandbox.write("TODO.md", "- [ ] **A**: one\n");
        sandbox.commit_all("backlog");
        sandbox.make_pipe("ready");
        sandbox.make_pipe("go");
        let script = format!(
            "[ \"$WIGGUM_TASK_ID\" = A ] && {{ {agent} echo r > \"$SANDBOX/ready\"; read go < \"$SANDBOX/go\"; }}; echo x > \"$WIGGUM_TASK_ID.txt\"; claim"
        );
        let run = sandbox.start(&script, &["--verify", "true"]);
        sandbox.wait_ready();
        for id in ["B", "C"] {
            let add = ["task", "add", "--id", id, "--description", "of a person"];
            sandbox.launch(&sandbox.root, &add).outcome_only().exits(0);
        }
        sandbox.go();
        run.finish().exits(0);
        assert_eq!(sandbox.has_flag(FlagKind::BacklogTouched), touched, "{:?}", sandbox.flags());
        assert_eq!(sandbox.state_of("C"), "done");
    }
}
