//! Done means witnessed: claims, evidence, and what is committed.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may fail here")]

mod support;

use support::{Sandbox, WORKER, prd_of, story};
use wiggum_core::event::Event;

#[test]
fn a_claim_without_the_work_is_caught_and_the_next_attempt_knows_why() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    let agent = r#"keep_prompt
        if [ "$WIGGUM_ATTEMPT" = 2 ]; then cp draft.txt result.txt; fi
        echo "from attempt $WIGGUM_ATTEMPT" >> draft.txt
        claim"#;
    let verify = "test -f result.txt || { echo no-result-yet; exit 3; }";
    sandbox.run(agent, &["--baseline", "off", "--verify", verify]).exits(0).says("claimed, but not done");

    let prompt = sandbox.prompt("A", 2);
    assert!(prompt.contains("no-result-yet") && prompt.contains("exit code 3"), "{prompt}");
    // The second attempt stood on the work of the first.
    assert_eq!(sandbox.read("result.txt"), "from attempt 1\n");
    assert_eq!(sandbox.subjects(), ["first", "backlog", "A: Do A"]);
    assert_eq!(sandbox.changed_in("HEAD"), ["PRD.json", "draft.txt", "result.txt"]);
    sandbox.assert_clean();
}

#[test]
fn a_commit_says_whose_it_is_and_what_was_seen() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.run(WORKER, &["--baseline", "off", "--verify", "test -f A.txt"]).exits(0);
    assert_eq!(sandbox.trailer("HEAD", "Wiggum-Task"), "A");
    assert_eq!(sandbox.trailer("HEAD", "Wiggum-Loop"), sandbox.loop_id().to_string());
    assert_eq!(sandbox.trailer("HEAD", "Wiggum-Iteration"), format!("{}/1", sandbox.loop_id()));
    assert_eq!(sandbox.trailer("HEAD", "Wiggum-Attempt"), "1");
    assert_eq!(sandbox.trailer("HEAD", "Wiggum-Evidence"), "`test -f A.txt` exit code 0");
}

#[test]
fn without_any_check_a_completion_is_marked_unverified() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.run(WORKER, &[]).exits(0).says("unverified");
    assert_eq!(sandbox.trailer("HEAD", "Wiggum-Evidence"), "none (unverified)");
}

#[test]
fn the_tree_is_clean_after_every_task() {
    let sandbox = Sandbox::with_tasks(&["A", "B", "C"]);
    let agent =
        r#"git status --porcelain >> "$SANDBOX/dirt"; echo "$WIGGUM_TASK_ID" > "$WIGGUM_TASK_ID.txt"; claim"#;
    sandbox.run(agent, &["--verify", "true"]).exits(0);
    assert_eq!(sandbox.note("dirt"), "");
    assert_eq!(sandbox.subjects(), ["first", "backlog", "A: Do A", "B: Do B", "C: Do C"]);
    assert_eq!(sandbox.changed_in("HEAD~1"), ["B.txt", "PRD.json"]);
    assert_eq!(sandbox.read("PRD.json").matches("\"passes\": true").count(), 3);
    sandbox.assert_clean();
}

#[test]
fn an_untracked_backlog_is_updated_but_never_committed() {
    let sandbox = Sandbox::new();
    sandbox.write("PRD.json", &support::prd(&["A"]));
    sandbox.run(WORKER, &["--verify", "true"]).exits(0);
    assert_eq!(sandbox.changed_in("HEAD"), ["A.txt"]);
    assert!(sandbox.read("PRD.json").contains("\"passes\": true"));
    assert_eq!(sandbox.dirt(), "?? PRD.json");
}

#[test]
fn a_task_may_be_complete_without_a_change() {
    let sandbox = Sandbox::new();
    sandbox.write("PRD.json", &support::prd(&["A"]));
    sandbox.run("claim", &["--verify", "true"]).exits(0);
    assert_eq!(sandbox.subjects(), ["first", "A: Do A"]);
}

#[test]
fn words_that_only_look_like_a_claim_complete_nothing() {
    let words = [
        "I will not output <promise>COMPLETE</promise> yet.",
        "> <promise>DONE</promise>",
        "`<promise>DONE</promise>`",
        "```\n<promise>DONE</promise>\n```",
        "If the tests pass I will write <promise>DONE</promise>",
        "Must not say <promise>COMPLETE</promise> before the tests pass",
    ];
    for words in words {
        let sandbox = Sandbox::with_tasks(&["A"]);
        let agent = format!("touch work.txt; cat <<'EOT'\n{words}\nEOT");
        sandbox.run(&agent, &["--verify", "true", "--max-iterations", "1"]).exits(3);
        assert_eq!(sandbox.state_of("A"), "open", "{words}");
        assert_eq!(sandbox.subjects(), ["first", "backlog"], "{words}");
        assert!(!sandbox.read("PRD.json").contains("true"), "{words}");
    }
}

#[test]
fn an_agent_that_echoes_its_prompt_claims_and_asks_nothing() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.write(
        "PROMPT.md",
        "Be brief.\n\n## The last line\n\n<promise>COMPLETE</promise>\n\n## Style\n\nAs before.\n",
    );
    sandbox.commit_all("prompt");
    sandbox.run("cat", &["--verify", "true", "--max-iterations", "2"]).exits(3);
    assert_eq!(sandbox.state_of("A"), "open");
    assert!(!sandbox.events().iter().any(|event| matches!(event, Event::QuestionRaised { .. })));

    // Neither with the built-in instructions, nor with the feedback of earlier attempts in it.
    let sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.write("wiggum.toml", "[breaker]\nno_progress = 0\n");
    sandbox.run("cat", &["--verify", "true", "--max-iterations", "3"]).exits(3);
    assert_eq!(sandbox.state_of("A"), "open");
    assert!(!sandbox.events().iter().any(|event| matches!(event, Event::QuestionRaised { .. })));
}

#[test]
fn a_promise_with_the_mark_of_the_attempt_counts_and_with_another_one_does_not() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    let agent = r#"keep_prompt; touch work.txt
        if [ "$WIGGUM_ATTEMPT" = 1 ]; then echo '<promise>DONE 00</promise>'; exit; fi
        grep -o '<promise>DONE [0-9a-f]*</promise>' "$SANDBOX/prompt-A-2" | tail -n 1"#;
    sandbox.run(agent, &["--verify", "true"]).exits(0);
    assert_eq!(sandbox.trailer("HEAD", "Wiggum-Attempt"), "2");
    let prompt = sandbox.prompt("A", 2);
    assert!(prompt.contains("the mark `00`, which is not the one it was given"), "{prompt}");
    assert!(prompt.contains("A claim is the promise as it was asked for, alone on its line"), "{prompt}");
}

#[test]
fn a_prompt_of_ones_own_may_ask_for_a_promise_without_a_mark() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.write("PROMPT.md", "Be brief. At the end print `<promise>DONE</promise>` on a line.\n");
    sandbox.commit_all("prompt");
    sandbox.run("keep_prompt; touch work.txt; claim", &["--verify", "true"]).exits(0);
    assert_eq!(sandbox.prompt("A", 1).matches("<promise>").count(), 1, "{}", sandbox.prompt("A", 1));
    assert_eq!(sandbox.trailer("HEAD", "Wiggum-Attempt"), "1");
}

#[test]
fn every_criterion_with_a_check_is_evidence() {
    let sandbox = Sandbox::new();
    let criteria = r#", "criteria": ["be nice", { "text": "has a b", "check": "test -f b.txt" }]"#;
    sandbox.write("PRD.json", &prd_of(&[story("A", criteria)]));
    sandbox.commit_all("backlog");
    let agent = r#"keep_prompt; [ "$WIGGUM_ATTEMPT" = 1 ] || touch b.txt; touch a.txt; claim"#;
    sandbox.run(agent, &["--baseline", "off", "--verify", "test -f a.txt"]).exits(0);
    assert!(sandbox.prompt("A", 1).contains("be nice"));
    assert!(sandbox.prompt("A", 2).contains("has a b"));
    assert_eq!(sandbox.changed_in("HEAD"), ["PRD.json", "a.txt", "b.txt"]);
}

#[test]
fn green_checks_complete_nothing_without_a_claim_unless_the_policy_says_so() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.run("touch a.txt", &["--verify", "true", "--max-iterations", "1"]).exits(3);
    assert_eq!(sandbox.state_of("A"), "open");
    sandbox.run("touch a.txt", &["--verify", "true", "--complete-without-claim"]).exits(0);
    assert_eq!(sandbox.changed_in("HEAD"), ["PRD.json", "a.txt"]);
}

#[test]
fn what_a_check_leaves_behind_is_not_committed() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    let verify = "echo built > built.txt; git add built.txt; echo changed > A.txt; test -f A.txt";
    sandbox.run(WORKER, &["--verify", verify]).exits(0);
    assert_eq!(sandbox.changed_in("HEAD"), ["A.txt", "PRD.json"]);
    assert_eq!(sandbox.git(&["show", "HEAD:A.txt"]), "A");
    sandbox.assert_clean();
}

#[test]
fn what_a_check_staged_is_not_committed() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.write(".gitignore", "built/\n");
    sandbox.commit_all("ignore");
    let verify = "mkdir -p built; echo o > built/o; git add -f built";
    sandbox.run(WORKER, &["--verify", verify]).exits(0);
    assert_eq!(sandbox.changed_in("HEAD"), ["A.txt", "PRD.json"]);
    sandbox.assert_clean();
}
