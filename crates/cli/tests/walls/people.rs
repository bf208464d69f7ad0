//! Agents are not people: what only people decide is out of an agent's reach, also when it takes off the variables by
//! which it is known.
//!
//! The control is the same agent without a sandbox, which gets through; then it is told.

use super::sandboxes;
use super::support::Sandbox;
use wiggum_core::event::Event;

/// As a person at another terminal, as far as an agent can be one.
const AS_PERSON: &str =
    "env -u WIGGUM_LOOP_ID -u WIGGUM_TASK_ID -u WIGGUM_ITERATION -u WIGGUM_ATTEMPT setsid";

const ACTS: [(&str, &str); 8] = [
    ("skip", "skip two"),
    ("stop", "stop"),
    ("pause", "pause"),
    ("retry", "retry one"),
    ("nudge", "nudge hello"),
    ("status", "task set-status two done"),
    ("answer", "answer q1 1"),
    ("restore", "checkpoint restore 1"),
];

fn agent() -> String {
    let mut script =
        String::from("[ \"$WIGGUM_TASK_ID\" = one ] || { echo x > \"$WIGGUM_TASK_ID\"; claim; exit; }\n");
    for (name, act) in ACTS {
        script.push_str(&format!(
            "if {AS_PERSON} \"$WIGGUM_BIN\" {act} > /dev/null 2>> \"$TMPDIR/said\"; then echo '{name}: done'; else echo '{name}: refused'; fi >> \"$TMPDIR/tried\"\n"
        ));
    }
    script.push_str("echo x > x; claim");
    script
}

fn tried(sandbox: &Sandbox) -> String {
    sandbox.note("tmp/tried")
}

#[test]
fn an_agent_without_its_marks_is_still_no_person() {
    for kind in sandboxes() {
        let sandbox = Sandbox::walled(&["one", "two"]);
        let run = sandbox.run(&agent(), &["--sandbox", kind, "--max-retries", "0"]).exits(0);
        let through: Vec<String> =
            tried(&sandbox).lines().filter(|line| line.ends_with("done")).map(str::to_owned).collect();
        assert!(through.is_empty(), "{kind}: {through:?}\n{}", sandbox.note("tmp/said"));
        assert_eq!(sandbox.worked_on(), ["one", "two"], "{kind}: {}", run.stdout);
        assert_eq!(sandbox.state_of("two"), "done", "{kind}");
        assert!(!notices(&sandbox).iter().any(|text| text.contains("without a sandbox")), "{kind}");
    }
}

/// The control.
#[test]
fn without_a_sandbox_its_requests_are_flagged() {
    let sandbox = Sandbox::walled(&["one", "two"]);
    let script = format!(
        "[ \"$WIGGUM_TASK_ID\" = one ] || {{ claim; exit; }}\n{AS_PERSON} \"$WIGGUM_BIN\" skip two > /dev/null; echo x > x; claim"
    );
    let run = sandbox.run(&script, &["--sandbox", "none", "--max-retries", "0"]);
    assert_eq!(sandbox.state_of("two"), "skipped", "{}", run.stdout);
    let told = notices(&sandbox);
    assert!(
        told.iter().any(|text| text.starts_with("\"skip two\" by ") && text.contains("without a sandbox")),
        "{told:?}"
    );
}

/// The honest twin: a person's requests while a confined agent works are nobody else's.
#[test]
fn requests_of_people_are_not_flagged_where_the_agent_is_confined() {
    for kind in sandboxes() {
        let mut sandbox = Sandbox::walled(&["one", "two"]);
        for pipe in ["ready", "go"] {
            sandbox.make_pipe(pipe);
        }
        let base = sandbox.base().display().to_string();
        sandbox.env("WIGGUM_AGENT_WRITABLE", &format!("[\"{base}/ready\"]"));
        let started = sandbox.start("ready; wait_for_go; echo x > x; claim", &["--sandbox", kind]);
        sandbox.wait_ready();
        drop(sandbox.launch(&sandbox.root, &["skip", "two"]).outcome_only().exits(0));
        sandbox.wait_for(|event| matches!(event, Event::TaskSkipped { .. }));
        sandbox.go();
        drop(started.finish());
        assert!(!notices(&sandbox).iter().any(|text| text.contains("without a sandbox")), "{kind}");
    }
}

fn notices(sandbox: &Sandbox) -> Vec<String> {
    let events = sandbox.events().into_iter().filter_map(|event| match event {
        Event::Noticed { message, .. } => Some(message),
        _ => None,
    });
    events.collect()
}
