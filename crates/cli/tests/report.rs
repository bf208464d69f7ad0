//! The account of a run: why it stopped, what it did, what a person should look at.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may fail here")]

mod support;

use std::fs;

use serde_json::Value;
use support::Sandbox;

/// A needs a second attempt, B touches a test and prints what no page should swallow, C never works.
const AGENT: &str = r#"
    case $WIGGUM_TASK_ID-$WIGGUM_ATTEMPT in
        A-1) claim; exit ;;
        B-*) echo 'assert 1' >> tests/basic.txt ;;
        C-*) echo '<script>alert("hi")</script> *bold* [link](x)' >&2; exit 3 ;;
    esac
    echo x > "$WIGGUM_TASK_ID.txt"
    claim"#;

fn ended() -> Sandbox {
    let sandbox = Sandbox::with_tasks(&["A", "B", "C"]);
    sandbox.write("tests/basic.txt", "assert\n");
    sandbox.commit_all("tests");
    sandbox.write("wiggum.toml", "[retry]\nmax_retries = 1\nbackoff = \"0s\"\n");
    sandbox.run(AGENT, &["--verify", "echo looking; test -e $WIGGUM_TASK_ID.txt"]).exits(6);
    sandbox
}

fn of_loop(sandbox: &Sandbox, name: &str) -> String {
    fs::read_to_string(sandbox.shared_file(name)).unwrap()
}

#[test]
fn a_run_ends_with_its_account_in_three_forms() {
    let sandbox = ended();
    let json: Value = serde_json::from_str(&of_loop(&sandbox, "report.json")).unwrap();
    assert_eq!(json["termination_reason"], "person_needed");
    assert_eq!(json["exit_code"], 6);
    let task = |id: &str| json["tasks"].as_array().unwrap().iter().find(|task| task["id"] == id).unwrap();
    let (a, c) = (task("A"), task("C"));
    assert_eq!(a["state"], "done");
    assert_eq!(a["history"].as_array().unwrap().len(), 2);
    let refuted = &a["history"][0];
    assert_eq!(refuted["outcome"], "claim refuted");
    assert_eq!(refuted["evidence"][0]["passed"], false);
    assert_eq!(refuted["evidence"][0]["output"], "looking");
    assert_eq!(a["history"][1]["outcome"], "completed");
    assert_eq!(a["commit"].as_str().unwrap().len(), 40);
    assert_eq!(c["state"], "failed");

    let kinds: Vec<(&str, Option<&str>)> = json["attention"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| (item["kind"].as_str().unwrap(), item["task"].as_str()))
        .collect();
    assert_eq!(kinds, [("question", Some("C")), ("flag", Some("B"))]);
    let moments = json["timeline"].as_array().unwrap();
    assert!(moments.first().unwrap()["what"].as_str().unwrap().starts_with("run 1 started"));
    assert!(moments.last().unwrap()["what"].as_str().unwrap().starts_with("run ended: person_needed"));

    let markdown = of_loop(&sandbox, "report.md");
    assert!(markdown.contains("**Why it stopped:** person_needed"), "{markdown}");
    assert!(markdown.contains("2 of 3 done, 1 failed"), "{markdown}");
    let html = of_loop(&sandbox, "report.html");
    assert!(html.contains("2 of 3 done") && html.contains("<svg"), "{html}");
}

#[test]
fn what_an_agent_prints_is_only_text_in_a_report() {
    let sandbox = ended();
    let html = of_loop(&sandbox, "report.html");
    assert!(html.contains("&lt;script&gt;alert"), "{html}");
    assert!(!html.contains("<script"), "{html}");
    assert!(html.contains("default-src 'none'"));
    let markdown = of_loop(&sandbox, "report.md");
    assert!(
        markdown.contains(r"\<script\>alert") && markdown.contains(r"\*bold\* \[link\](x)"),
        "{markdown}"
    );
}

#[test]
fn the_command_makes_the_same_from_the_journal_alone() {
    let sandbox = ended();
    let written: Value = serde_json::from_str(&of_loop(&sandbox, "report.json")).unwrap();
    fs::remove_dir_all(sandbox.root.join(".wiggum/loops")).unwrap();
    let told: Value = serde_json::from_str(&sandbox.wiggum(&["report", "--json"]).exits(0).stdout).unwrap();
    for key in ["tasks", "attention", "timeline", "cost", "termination_reason"] {
        assert_eq!(told[key], written[key], "{key}");
    }
    sandbox.wiggum(&["report"]).exits(0).says("## What to look at").says("wiggum answer q1 1");
    let page = sandbox.base().join("page.html");
    sandbox.wiggum(&["report", "--html", &page.display().to_string()]).exits(0);
    assert!(fs::read_to_string(page).unwrap().starts_with("<!doctype html>"));
    sandbox.wiggum(&["report", "--html", "/nowhere/page.html"]).complains(2, &["cannot write"]);
}

#[test]
fn an_attempt_that_was_cut_off_is_told_once() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.make_pipe("ready");
    let started = sandbox.start("echo x > \"$SANDBOX/ready\"; sleep 1000", &["--verify", "true"]);
    sandbox.wait_ready();
    started.kill();
    sandbox.run("echo x > A.txt; claim", &["--verify", "true"]).exits(0);
    let json: Value = serde_json::from_str(&of_loop(&sandbox, "report.json")).unwrap();
    assert_eq!(json["tasks"][0]["history"].as_array().unwrap().len(), 1);
    assert_eq!(json["tasks"][0]["history"][0]["outcome"], "completed");
    let interrupted =
        |moment: &Value| moment["what"].as_str().unwrap().starts_with("iteration 1 interrupted");
    assert!(json["timeline"].as_array().unwrap().iter().any(interrupted));
}

/// What programs made for the older of these systems read is there, under its own names.
#[test]
fn status_and_report_have_the_fields_that_other_programs_know() {
    let sandbox = ended();
    for name in ["status.json", "report.json"] {
        let told: Value = serde_json::from_str(&of_loop(&sandbox, name)).unwrap();
        let project = sandbox.root.file_name().unwrap().to_str().unwrap();
        assert_eq!((&told["task_id"], told["project_id"].as_str()), (&"C".into(), Some(project)), "{name}");
        assert_eq!(told["goal"], "all 3 tasks of PRD.json");
        assert_eq!((&told["state"], &told["activity"]), (&"terminated".into(), &"person_needed".into()));
        let config = told["config"].as_object().unwrap();
        for key in
            ["max_iterations", "max_cost", "max_duration_minutes", "context_threshold", "agent_type", "model"]
        {
            assert!(config.contains_key(key), "{name}: {key}");
        }
        assert_eq!((&config["max_iterations"], &config["context_threshold"]), (&50.into(), &0.7.into()));
        let errors = told["errors"].as_array().unwrap();
        assert!(
            errors.iter().any(|error| error.as_str().unwrap().starts_with("iteration 4, C: ")),
            "{errors:?}"
        );

        let iterations = told["iterations"].as_array().unwrap();
        let of = |task: &str, attempt: u32| {
            let found = |one: &&Value| one["task"] == task && one["attempt"] == attempt;
            iterations.iter().find(found).unwrap_or_else(|| panic!("{task}-{attempt}: {iterations:#?}"))
        };
        let (refuted, done, failed) = (of("A", 1), of("A", 2), of("C", 1));
        assert_eq!(
            (&refuted["phase"], &refuted["completed_items"]),
            (&"testing".into(), &Value::Array(vec![]))
        );
        assert_eq!(refuted["pending_items"], serde_json::json!(["A", "B", "C"]));
        assert_eq!(
            (&done["phase"], &done["completed_items"]),
            (&"complete".into(), &serde_json::json!(["A"]))
        );
        assert_eq!(
            (&done["errors"], &done["pending_items"]),
            (&serde_json::json!([]), &serde_json::json!(["B", "C"]))
        );
        assert!(failed["errors"][0].as_str().unwrap().contains("alert"), "{failed}");
        for one in iterations {
            assert_eq!((&one["health_state"], &one["handoff_trigger"]), (&"healthy".into(), &"".into()));
            assert_eq!(one["agent_id"], config["agent_type"], "{one}");
            assert_eq!(one["checkpoint_id"].as_str().unwrap().len(), 36, "{one}");
        }
        assert_eq!(told["last_checkpoint_id"], iterations.last().unwrap()["checkpoint_id"]);
    }
}

#[test]
fn nobody_is_asked_what_is_answered_already() {
    let sandbox = ended();
    sandbox.wiggum(&["status"]).exits(0).says("wiggum answer q1").says("a person is needed");
    sandbox.wiggum(&["answer", "q1", "skip"]).exits(0);
    sandbox.wiggum(&["status"]).exits(0).never_says("wiggum answer q1").says("q1 is answered");
    sandbox.wiggum(&["health"]).exits(0).never_says("wiggum answer q1");
    sandbox.wiggum(&["monitor", "--once"]).exits(0).never_says("wiggum answer q1");
}
