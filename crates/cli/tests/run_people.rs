//! People beside a running loop: they edit the backlog, ask for things and answer questions.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may fail here")]

mod support;

use support::{Sandbox, Started, WORKER, prd, prd_of, story};
use wiggum_core::event::{Answer, Event, FlagKind, Request};
use wiggum_core::ids::QuestionId;

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
    // B gets other words, C goes, X comes, and D comes before B.
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
    started.finish().exits(0);
    assert_eq!(sandbox.worked_on(), ["A", "B"]);
    assert_eq!(sandbox.subjects()[2..], ["A: Do A", "B: Do B"]);
    assert!(!sandbox.read("PRD.json").contains("\"A\""));
    sandbox.assert_clean();
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
        sandbox.run(WORKER, &args).exits(0);
        assert_eq!(sandbox.changed_in("HEAD"), ["A.txt", "PRD.json"]);
        assert_eq!(sandbox.dirt(), if more.is_empty() { "" } else { " M README" });
    }
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
    assert_eq!(sandbox.subjects()[2..], ["B: Do B"]);
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
    sandbox.run(WORKER, &["--verify", "false", "--max-retries", "0"]).exits(6);
    assert_eq!(sandbox.state_of("A"), "failed");
    sandbox.ask(&Request::Retry { task: "A".into() });
    sandbox.run(WORKER, &["--verify", "true", "--max-retries", "0"]).exits(0);
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
