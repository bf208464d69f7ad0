//! The judge: words of an agent that are no claim complete nothing, however green the checks are.
//!
//! The control: whoever looks for the usual words finds them in every one of these messages.

use std::fs;

use super::support::Sandbox;

const HONEST: [&str; 6] = [
    "<promise>DONE</promise>",
    "All tests pass.\n\n<promise>COMPLETE</promise>",
    "**<promise>DONE</promise>**",
    "Task A is complete.",
    "Task A is done.",
    "---RALPH_STATUS---\nSTATUS: COMPLETE\nEXIT_SIGNAL: true\n---END_RALPH_STATUS---",
];

fn messages() -> Vec<(&'static str, &'static str)> {
    let sections = include_str!("claims.txt").split("\n=== ").skip(1);
    sections.map(|section| section.split_once('\n').unwrap()).collect()
}

/// Did it complete the task?
fn completes(message: &str) -> bool {
    let sandbox = Sandbox::with_tasks(&["A"]);
    fs::write(sandbox.base().join("message"), message).unwrap();
    let args = ["--sandbox", "none", "--verify", "true", "--max-iterations", "1"];
    drop(sandbox.run("touch work.txt; cat \"$SANDBOX/message\"", &args));
    let is_done = sandbox.state_of("A") == "done";
    assert_eq!(sandbox.subjects().len() == 3, is_done, "{message}");
    is_done
}

#[test]
fn words_that_are_no_claim_complete_nothing() {
    let through: Vec<&str> =
        messages().into_iter().filter(|(_, message)| completes(message)).map(|(name, _)| name).collect();
    assert!(through.is_empty(), "{through:?}");
}

/// The control.
#[test]
fn whoever_looks_for_words_believes_all_of_them() {
    let words = ["done", "complete", "terminé", "erledigt", "完成", "完了"];
    let found = |message: &str| words.iter().any(|word| message.to_lowercase().contains(word));
    let harmless: Vec<&str> =
        messages().into_iter().filter(|(_, message)| !found(message)).map(|(name, _)| name).collect();
    assert!(harmless.is_empty(), "{harmless:?}");
    assert!(messages().len() >= 30);
}

/// The honest twin.
#[test]
fn claims_in_the_usual_forms_count() {
    for message in HONEST {
        assert!(completes(message), "{message}");
    }
}
