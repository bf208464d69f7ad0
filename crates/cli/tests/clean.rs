//! Work that passes only with files that no clone has: seen in a clean checkout.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test may fail here")]

mod support;

use support::Sandbox;
use wiggum_core::event::{Event, FlagKind};

/// The check passes with a file that only lies there.
const CHECK: &str = "cat answer.txt";

fn project(ignored: &str) -> Sandbox {
    let sandbox = Sandbox::with_tasks(&["A", "B"]);
    sandbox.write(".gitignore", ignored);
    sandbox.commit_all("rules");
    sandbox
}

/// What the checks said in clean checkouts of commits.
fn clean(sandbox: &Sandbox) -> Vec<bool> {
    let checked = sandbox.events().into_iter().filter_map(|event| match event {
        Event::CleanChecked { evidence, .. } => Some(evidence.passed()),
        _ => None,
    });
    checked.collect()
}

#[test]
fn an_answer_that_git_ignores_is_told_at_the_end() {
    let sandbox = project("/answer.txt\n");
    let agent = "echo 42 > answer.txt; echo x > $WIGGUM_TASK_ID.txt; claim";
    let run = sandbox.run(agent, &["--baseline", "off", "--verify", CHECK]);
    run.exits(6).says("clean checkout").says("done since they last passed there: A, B");
    assert_eq!(clean(&sandbox), [false]);
    assert_eq!((sandbox.state_of("A"), sandbox.state_of("B")), ("done", "done"));
    // The next run looks again: what is missing may have been added beside the project.
    sandbox.run(agent, &["--verify", CHECK]).exits(6).says("clean checkout");
    assert_eq!(clean(&sandbox), [false, false]);
    // A person mends it.
    sandbox.git(&["add", "-f", "answer.txt"]);
    sandbox.git(&["commit", "-q", "-m", "the answer"]);
    sandbox.run(agent, &["--verify", CHECK]).exits(0);
    assert_eq!(clean(&sandbox), [false, false, true]);
    sandbox.run(agent, &["--verify", CHECK]).exits(0);
    assert_eq!(clean(&sandbox), [false, false, true]);
}

#[test]
fn honest_work_is_looked_at_once_and_leaves_nothing_behind() {
    let sandbox = project("/build/\n");
    let agent =
        "mkdir -p build; echo cache > build/x; echo 42 > answer.txt; echo x > $WIGGUM_TASK_ID.txt; claim";
    sandbox.run(agent, &["--baseline", "off", "--verify", CHECK]).exits(0);
    assert_eq!(clean(&sandbox), [true]);
    assert_eq!(sandbox.git(&["worktree", "list"]).lines().count(), 1);
    let loops = sandbox.state_dir().path().join("loops");
    for entry in std::fs::read_dir(loops).unwrap().flatten() {
        assert!(!entry.path().join("lane/clean").exists());
    }
    sandbox.assert_clean();
}

#[test]
fn rules_that_hide_the_answer_are_refused_at_once() {
    let sandbox = project("/build/\n");
    let agent = r#"echo 42 > answer.txt; echo x > $WIGGUM_TASK_ID.txt
        [ $WIGGUM_ATTEMPT = 1 ] && echo /answer.txt >> .gitignore || git checkout -q HEAD -- .gitignore
        claim"#;
    let args = ["--baseline", "off", "--verify", CHECK, "--max-iterations", "2"];
    let run = sandbox.run(agent, &args).exits(3);
    assert!(run.stdout.contains("in a clean checkout"), "{run:?}");
    assert!(sandbox.has_flag(FlagKind::IgnoreRules));
    assert_eq!(sandbox.worked_on(), ["A", "A"]);
    assert_eq!(sandbox.state_of("A"), "done");
    assert!(sandbox.git(&["show", "--stat", "HEAD"]).contains("answer.txt"));

    // Rules that hide nothing the checks need.
    let sandbox = project("/build/\n");
    let agent = "echo 42 > answer.txt; echo '*.log' >> .gitignore; echo noise > x.log; echo x > $WIGGUM_TASK_ID.txt; claim";
    sandbox.run(agent, &["--baseline", "off", "--verify", CHECK]).exits(0);
    assert_eq!(sandbox.worked_on(), ["A", "B"]);
}

#[test]
fn what_is_installed_beside_a_project_is_no_reproach() {
    // As node says it of a package that nobody has installed there.
    let check = "test -e modules/mocha || { echo \"Error: Cannot find module 'mocha'\"; exit 1; }";
    let sandbox = project("/modules/\n");
    sandbox.write("modules/mocha", "");
    let agent = "echo x > $WIGGUM_TASK_ID.txt; claim";
    sandbox.run(agent, &["--verify", check]).exits(0);
    assert_eq!(clean(&sandbox), [false, false], "neither with the work nor before it");
    // With the command that installs it, it can be tried.
    let sandbox = project("/modules/\n/.env\n");
    sandbox.write("modules/mocha", "");
    sandbox.write(".env", "KEY=1\n");
    sandbox.write(
        "wiggum.toml",
        "[workspace]\nsetup = \"mkdir modules && touch modules/mocha && cat .env\"\ncopy = [\".env\", \"not-there\"]\n",
    );
    sandbox.commit_all("settings");
    sandbox.run(agent, &["--verify", check]).exits(0);
    assert_eq!(clean(&sandbox), [true, true]);
}

#[test]
fn what_could_run_before_the_work_has_to_run_after_it() {
    let sandbox = project("/hidden/\n");
    sandbox.write("calc.py", "");
    sandbox.commit_all("product");
    let check = "test -e calc.py || test -e hidden/calc.py || { echo \"ModuleNotFoundError: No module named 'calc'\"; exit 1; }";
    let agent = "mkdir -p hidden; [ -e calc.py ] && mv calc.py hidden; echo x > $WIGGUM_TASK_ID.txt; claim";
    sandbox.run(agent, &["--verify", check]).exits(6).says("clean checkout");
    assert_eq!(clean(&sandbox), [false, true]);
}

#[test]
fn each_task_or_never_by_the_policy() {
    let agent = "echo 42 > answer.txt; echo x > $WIGGUM_TASK_ID.txt; claim";
    let with = |when: &str| {
        let sandbox = project("/answer.txt\n");
        sandbox.write("wiggum.toml", &format!("[checks]\nclean = \"{when}\"\n"));
        sandbox.commit_all("settings");
        sandbox
    };
    let args = ["--baseline", "off", "--verify", CHECK, "--max-retries", "0"];
    let sandbox = with("never");
    sandbox.run(agent, &args).exits(0);
    assert!(clean(&sandbox).is_empty());
    let sandbox = with("task");
    sandbox.run(agent, &args).exits(6);
    assert!(clean(&sandbox).is_empty());
    assert_eq!(sandbox.state_of("A"), "failed");
    assert_eq!(sandbox.subjects(), ["first", "backlog", "rules", "settings"]);
}

/// The honest twin: the check passed in the work tree before, and never in a clean checkout.
#[test]
fn what_no_clean_checkout_ever_had_is_no_reproach() {
    let sandbox = project(".env\n");
    sandbox.write(".env", "A=1\n");
    let check = "cat .env";
    let run = sandbox.run("echo x > $WIGGUM_TASK_ID.txt; claim", &["--verify", check]);
    run.exits(0).says("not tried in a clean checkout").says("in the same way before this work");
    assert_eq!(clean(&sandbox), [false, false]);
    sandbox.wiggum(&["report"]).exits(0).says("not tried in a clean checkout");
}

#[test]
fn a_link_that_leads_out_of_the_repository_is_asked_about() {
    for (target, leads_out) in [
        ("$SANDBOX/outside", true),
        ("../../outside", true),
        ("../kept", false),
        ("other/../../kept", false),
        ("/usr/bin/env", false),
    ] {
        let sandbox = Sandbox::with_tasks(&["A"]);
        sandbox.write("kept", "x\n");
        sandbox.commit_all("kept");
        std::fs::write(sandbox.base().join("outside"), "x\n").unwrap();
        let agent = format!("mkdir -p sub/other; ln -s \"{target}\" sub/link; claim");
        let run = sandbox.run(&agent, &["--verify", "true", "--baseline", "off"]);
        let code = if leads_out { 6 } else { 0 };
        run.exits(code);
        assert_eq!(sandbox.has_flag(FlagKind::LeadsOut), leads_out, "{target}");
    }
}

/// The history of the repository is there for checks that ask for it.
#[test]
fn a_clean_checkout_has_the_history() {
    let sandbox = Sandbox::walled(&["A"]);
    let check = "test \"$(git log --format=%s | tail -n 1)\" = backlog && git cat-file -e HEAD:PRD.json";
    sandbox.run("echo x > x; claim", &["--verify", check]).exits(0);
    assert_eq!(clean(&sandbox), [true]);
}

/// Nothing of the work tree is there to be found by its path.
#[test]
fn a_clean_checkout_does_not_see_the_work_tree() {
    if wiggum_workspace::sandbox::bwrap().is_err() {
        eprintln!("SKIPPED: bwrap does not work here: what a clean checkout sees is NOT TESTED");
        return;
    }
    let sandbox = project("/answer.txt\n");
    let agent = "echo 42 > answer.txt; echo \"$PWD/answer.txt\" > where; claim";
    let check = "test -f where && cat \"$(cat where)\"";
    let args = ["--sandbox", "bwrap", "--baseline", "off", "--verify", check];
    sandbox.run(agent, &args).exits(6).says("in a clean checkout");
}
