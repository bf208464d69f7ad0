//! Done is witnessed: checks that fail already, checks that were changed, and what a person is told of both.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may fail here")]

mod support;

use std::fs;

use support::{Sandbox, WORKER};
use wiggum_core::checker;
use wiggum_core::event::{Event, Flag, FlagKind};

/// A project whose test script knows what the product does.
fn project() -> Sandbox {
    let sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.write("Makefile", "test:\n\tsh tests/run.sh\n");
    sandbox.write("tests/run.sh", "grep -q hello greeting.txt\n");
    sandbox.write("greeting.txt", "hello\n");
    sandbox.commit_all("project");
    sandbox
}

/// Writes the product, then what the loop's check runs, and claims.
fn writes_check(script: &str) -> String {
    format!(
        r#"echo hello > "$WIGGUM_TASK_ID.txt"
printf '%s\n' '#!/bin/sh' '{script}' > verify.sh && chmod +x verify.sh
echo '<promise>DONE</promise>'"#
    )
}

#[test]
fn a_check_that_cannot_run_yet_is_told_and_the_run_goes_on() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    let run = sandbox.run(WORKER, &["--verify", "./verify.sh"]).exits(6);
    let told = run.stdout.find("cannot run yet").expect(&run.stdout);
    assert!(told < run.stdout.find("Iteration 1").expect(&run.stdout), "{}", run.stdout);
    // At the claim it fails as any other.
    assert_eq!(agents(&sandbox), 3);
    sandbox.wiggum(&["inbox"]).exits(0).says("verify.sh");
    sandbox.write("wiggum.toml", "[checks]\nverify = \"./verify.sh\"\n");
    sandbox.wiggum(&["doctor"]).says("`./verify.sh` cannot run yet");

    // A program that is in no PATH is the same.
    let sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.run(WORKER, &["--verify", "no-such-program-here x"]).exits(6).says("cannot run yet");
    // Where nothing is looked at before the first agent, it is told all the same.
    let sandbox = Sandbox::with_tasks(&["A"]);
    let run = sandbox.run(WORKER, &["--verify", "./verify.sh", "--baseline", "off"]).exits(6);
    assert!(run.stderr.contains("`./verify.sh` cannot run yet"), "{}", run.stderr);
    // What can never be right is refused.
    let sandbox = Sandbox::with_tasks(&["A"]);
    let refused = sandbox.run(WORKER, &["--verify", "echo 'never closed"]).exits(2);
    assert!(refused.stderr.contains("the verify command is not valid"), "{}", refused.stderr);
}

#[test]
fn a_check_that_the_agent_wrote_itself_verifies_nothing() {
    let redefined = |sandbox: &Sandbox| {
        let state = sandbox.events();
        state.iter().any(|event| match event {
            Event::WorkInspected { flags, .. } => {
                flags.iter().any(|flag| flag.kind == FlagKind::CheckRedefined && flag.what == "verify.sh")
            }
            _ => false,
        })
    };
    let sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.run(&writes_check("true"), &["--verify", "./verify.sh"]).exits(0).says("unverified");
    assert!(redefined(&sandbox));
    assert!(
        sandbox.trailer("HEAD", "Wiggum-Evidence").starts_with("only checks that the agent wrote itself")
    );
    sandbox.wiggum(&["report"]).says("verify.sh");

    // Whoever asks for the check gets it.
    let sandbox = Sandbox::with_tasks(&["A"]);
    let prd = sandbox
        .read("PRD.json")
        .replace("\"title\":", "\"description\": \"Write verify.sh too.\", \"title\":");
    sandbox.write("PRD.json", &prd);
    sandbox.commit_all("backlog");
    let run = sandbox.run(&writes_check("grep -q hello A.txt"), &["--verify", "./verify.sh"]).exits(0);
    assert!(!run.stdout.contains("unverified") && !redefined(&sandbox), "{}", run.stdout);

    // A task's own check is no better if the agent wrote it.
    let sandbox = Sandbox::new();
    sandbox.write("TODO.md", "- [ ] **A**: Say hello\n  - check: `./verify.sh`\n");
    sandbox.commit_all("backlog");
    sandbox.run(&writes_check("true"), &[]).exits(0).says("unverified");
    assert!(redefined(&sandbox));

    // Another check that could run before is evidence.
    let sandbox = Sandbox::with_tasks(&["A"]);
    let both = ["--verify", "./verify.sh", "--verify", "test ! -e broken"];
    let run = sandbox.run(&writes_check("true"), &both).exits(0);
    assert!(!run.stdout.contains("unverified") && redefined(&sandbox), "{}", run.stdout);
}

/// How often an agent was started.
fn agents(sandbox: &Sandbox) -> usize {
    let by_agent = |event: &Event| matches!(event, Event::IterationStarted { accepted: false, .. });
    sandbox.events().iter().filter(|event| by_agent(event)).count()
}

#[test]
fn checks_that_fail_already_cost_no_agent() {
    let sandbox = Sandbox::with_tasks(&["A", "B", "C"]);
    let verify = ["--verify", "echo 'error: it is broken'; exit 3"];
    let run = sandbox.run(WORKER, &verify).exits(6).says("fails").says("error: it is broken");
    assert!(run.stdout.contains("wiggum answer q1") || run.stdout.contains("wiggum inbox"), "{}", run.stdout);
    assert_eq!(agents(&sandbox), 0);
    sandbox
        .wiggum(&["inbox"])
        .exits(0)
        .says("the checks fail before any agent has worked")
        .says("`--baseline go-on|stop|repair`, or set `baseline` under [checks]")
        .says("error: it is broken");

    // The question is kept, and asked once.
    sandbox.run(WORKER, &verify).exits(6);
    assert_eq!((agents(&sandbox), sandbox.state().questions.len()), (0, 1));
    // Repaired by somebody, nothing is left to ask.
    sandbox.run(WORKER, &["--verify", "true"]).exits(0);
    assert_eq!(sandbox.state().questions.len(), 0);
}

#[test]
fn the_same_failing_check_is_not_paid_for_over_and_over() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    let run =
        sandbox.run(WORKER, &["--verify", "echo 'error: never'; exit 1", "--baseline", "go-on"]).exits(6);
    assert_eq!(agents(&sandbox), 3);
    assert!(run.stdout.contains("the same checks failed each time"), "{}", run.stdout);
    let asked = sandbox.state().questions.values().next().unwrap().question.clone();
    assert!(asked.context.contains("error: never"), "{asked:?}");
}

#[test]
fn a_tree_that_passed_is_not_checked_again() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    let verify = ["--verify", r#"echo ran >> "$SANDBOX/ran""#];
    sandbox.run(WORKER, &verify).exits(0);
    assert_eq!(sandbox.note("ran").lines().count(), 3, "before the work, after it, and in a clean checkout");
    sandbox.write(
        "PRD.json",
        &sandbox
            .read("PRD.json")
            .replace("true }", "true },\n    { \"id\": \"B\", \"title\": \"b\", \"passes\": false }"),
    );
    sandbox.run(WORKER, &verify).exits(0);
    assert_eq!(sandbox.note("ran").lines().count(), 5, "the last commit is known to pass");
}

#[test]
fn what_is_about_tasks_or_cannot_run_yet_is_told_and_left_out() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.write("check.sh", "test -s \"$WIGGUM_TASK_ID.txt\"\n");
    sandbox.commit_all("check");
    sandbox.run(WORKER, &["--verify", "sh check.sh"]).exits(0).says("check.sh is about single tasks");

    let sandbox = Sandbox::with_tasks(&["A"]);
    let agent = r#"printf 'test:\n\ttest -s A.txt\n' > Makefile; echo a > A.txt; claim"#;
    sandbox.run(agent, &["--verify", "make test"]).exits(0).says("cannot run yet").says("A done");
}

#[test]
fn what_a_check_leaves_in_the_untouched_tree_is_no_work() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.run(WORKER, &["--verify", "echo litter > litter.txt"]).exits(0);
    assert_eq!(sandbox.changed_in("HEAD"), ["A.txt", "PRD.json"]);
    sandbox.assert_clean();
}

#[test]
fn repairing_can_be_made_the_first_task() {
    let sandbox = project();
    sandbox.write("greeting.txt", "good morning\n");
    sandbox.commit_all("broken");
    let agent = r#"keep_prompt
        case $WIGGUM_TASK_ID in repair-*) echo hello > greeting.txt;; *) echo a > a.txt;; esac
        claim"#;
    sandbox.run(agent, &["--verify", "make test", "--baseline", "repair"]).exits(0);
    assert_eq!(sandbox.worked_on(), ["repair-1", "A"]);
    assert!(sandbox.prompt("repair-1", 1).contains("`make test` fails"), "{}", sandbox.prompt("repair-1", 1));
    assert!(sandbox.read("PRD.json").contains("repair-1"));
    sandbox.assert_clean();
}

#[test]
fn a_check_of_its_own_that_passes_already_is_told_to_the_agent() {
    let sandbox = Sandbox::new();
    sandbox
        .write("TODO.md", "- [ ] **T1**: Do it\n  - check: `test -f README`\n  - check: `test -f a.txt`\n");
    sandbox.commit_all("backlog");
    let run = sandbox.run("keep_prompt; touch a.txt; claim", &["TODO.md"]).exits(0);
    assert!(run.stdout.contains("before T1 begins, `test -f README` passes"), "{}", run.stdout);
    let prompt = sandbox.prompt("T1", 1);
    assert!(prompt.contains("`test -f README` (passes already, before your work"), "{prompt}");
    assert!(!prompt.contains("`test -f a.txt` (passes"), "{prompt}");
}

#[test]
fn whoever_guts_the_check_is_refused_with_both_outputs() {
    let sandbox = project();
    let cheat = r#"keep_prompt; echo bye > greeting.txt; printf 'test:\n\t@true\n' > Makefile; claim"#;
    let run = sandbox.run(cheat, &["--verify", "make test"]).exits(6);
    assert!(run.stdout.contains("changed what defines a check: Makefile recipe `test`"), "{}", run.stdout);
    let prompt = sandbox.prompt("A", 2);
    assert!(prompt.contains("with its former definition") && prompt.contains("<changed-checks>"), "{prompt}");
    assert_ne!(sandbox.state_of("A"), "done");
    sandbox.assert_clean();

    // The same recipe in other words is fine: with the former one it passes too.
    let sandbox = project();
    let honest = r#"printf 'test:\n\tsh tests/run.sh\n\t@echo all well\n' > Makefile; echo a > A.txt; claim"#;
    sandbox.run(honest, &["--verify", "make test"]).exits(0);
    assert!(sandbox.has_flag(FlagKind::CheckRedefined));
    sandbox.wiggum(&["report"]).exits(0).says("what defines a check was changed: Makefile");
    assert!(sandbox.trailer("HEAD", "Wiggum-Evidence").contains("former definition"));
    sandbox.assert_clean();
}

#[test]
fn a_file_that_a_check_runs_may_be_what_the_task_is_about() {
    for (check, file) in [
        ("python3 src/app.py | grep -q new", "src/app.py"),
        ("python3 src/app.py", "src/app.py"),
        ("./build.sh", "build.sh"),
        ("node index.js", "index.js"),
        ("node --check index.js", "index.js"),
    ] {
        let sandbox = Sandbox::new();
        sandbox.write("src/app.py", "print('old')\n");
        sandbox.write("index.js", "console.log('old')\n");
        sandbox.write_program("build.sh", "#!/bin/sh\necho old\n");
        sandbox.write("TODO.md", &format!("- [ ] **T1**: Say something new\n  - check: `{check}`\n"));
        sandbox.commit_all("project");
        let agent = format!("sed -i s/old/new/ {file}; claim");
        sandbox.run(&agent, &["TODO.md"]).exits(0);
        assert!(sandbox.has_flag(FlagKind::CheckedProduct), "{check}");
        assert_eq!(sandbox.state_of("T1"), "done");
    }
}

#[test]
fn whoever_says_why_gets_a_persons_decision_and_accepting_needs_no_agent() {
    let sandbox = project();
    let agent = r#"echo good morning > greeting.txt; echo 'grep -q morning greeting.txt' > tests/run.sh
        echo '<changed-checks>the greeting is a new one</changed-checks>'; claim"#;
    sandbox.run(agent, &["--verify", "make test"]).exits(6);
    sandbox.wiggum(&["inbox"]).exits(0).says("the greeting is a new one").says("tests/run.sh");
    assert_eq!(agents(&sandbox), 1);
    sandbox.wiggum(&["answer", "q1", "1"]).exits(0);
    sandbox.run("touch somebody-worked", &["--verify", "make test"]).exits(0);
    assert_eq!((agents(&sandbox), sandbox.exists("somebody-worked")), (1, false));
    assert_eq!(sandbox.changed_in("HEAD"), ["PRD.json", "greeting.txt", "tests/run.sh"]);
    sandbox.assert_clean();

    // A task that asks for it is asked about too.
    let sandbox = Sandbox::new();
    sandbox.write("tests/run.sh", "exit 0\n");
    sandbox.write("TODO.md", "- [ ] **T1**: Let tests/run.sh be strict\n");
    sandbox.commit_all("project");
    let agent = "rm tests/run.sh; echo 'exit 0 # strict' > tests/run.sh; claim";
    sandbox.run(agent, &["TODO.md", "--verify", "sh tests/run.sh"]).exits(0);
}

#[test]
fn killed_anywhere_around_these_checks_it_comes_to_the_same() {
    let make = || {
        let sandbox = project();
        sandbox.write("tests/run.sh", "echo litter > litter.txt; grep -q hello greeting.txt\n");
        sandbox.commit_all("litter");
        sandbox
    };
    let agent = "echo '# more' >> tests/run.sh; echo a > A.txt; claim";
    let mut sandbox = make();
    let points = sandbox.base().join("points");
    sandbox.env("WIGGUM_CRASH_LOG", points.to_str().unwrap());
    sandbox.run(agent, &["--verify", "make test"]).exits(0);
    let log = fs::read_to_string(&points).unwrap();
    for name in ["before baseline", "former definition in place", "former definition put away"] {
        assert!(log.lines().any(|point| point == name), "{name}");
    }
    let count = log.lines().count();
    let full = std::env::var_os("WIGGUM_SWEEP").is_some();
    let special = |at: &usize| {
        let near = log.lines().skip(at.saturating_sub(2)).take(3);
        near.into_iter()
            .any(|point| point.contains("baseline") || point.contains("former") || point == "check ended")
    };
    for at in (1..=count).filter(|at| full || at % 9 == 4 || special(at)) {
        let mut sandbox = make();
        sandbox.env("WIGGUM_CRASH_AT", &at.to_string());
        let command = sandbox.agent(agent);
        let args = ["run", "--headless", "--agent-command", &command, "--verify", "make test"];
        sandbox.launch(&sandbox.root, &args).outcome_only();
        sandbox.env("WIGGUM_CRASH_AT", "1000000");
        sandbox.wiggum(&args).exits(0);
        assert_eq!(sandbox.changed_in("HEAD"), ["A.txt", "PRD.json", "tests/run.sh"], "killed at {at}");
        assert!(sandbox.read("tests/run.sh").ends_with("# more\n"), "killed at {at}");
        sandbox.assert_clean();
        assert_eq!(checker::check(&sandbox.journal()), vec![], "killed at {at}");
    }
}

#[test]
fn an_agent_does_not_change_how_it_is_judged_in_the_backlog() {
    let backlog = "- [ ] **T1**: Do it\n  - check: `test -f a.txt`\n- [ ] **T2**: Then this\n";
    let begun = || {
        let sandbox = Sandbox::new();
        sandbox.write("TODO.md", backlog);
        sandbox.commit_all("backlog");
        sandbox
    };
    for cheat in ["sed -i 's/test -f a.txt/true/' TODO.md; claim", "sed -i /check:/d TODO.md; claim"] {
        let sandbox = begun();
        sandbox.run(cheat, &["TODO.md", "--max-retries", "0"]);
        assert_ne!(sandbox.state_of("T1"), "done", "{cheat}");
        assert!(
            sandbox.read("TODO.md").starts_with("- [!] **T1**: Do it\n  - check: `test -f a.txt`\n"),
            "{cheat}"
        );
        assert!(sandbox.has_flag(FlagKind::BacklogTouched), "{cheat}");
    }
    // Taken out, it is not done, but back.
    let sandbox = begun();
    sandbox.run("sed -i '/T1/,/check:/d' TODO.md; claim", &["TODO.md", "--max-retries", "0"]);
    assert_ne!(sandbox.state_of("T1"), "done");
    assert!(sandbox.read("TODO.md").starts_with("- [!] **T1**: Do it\n  - check: `test -f a.txt`\n"));
    let said = |flag: &Flag| flag.detail.starts_with("`T1` was taken out and is still to be done; put back");
    assert!(sandbox.flags().iter().any(said), "{:?}", sandbox.flags());
    // What an agent adds is welcome, and so is work done.
    let sandbox = begun();
    let honest = "touch a.txt b.txt; sed -i 's/- \\[ \\] [*][*]T1.*/- [x] **T1**: Do it (it was easy)/' TODO.md
        grep -q T3 TODO.md || printf '  - check: `test -f b.txt`\n- [ ] **T3**: And that\n' >> TODO.md; claim";
    sandbox.run(honest, &["TODO.md"]).exits(0);
    for task in ["T1", "T2", "T3"] {
        assert_eq!(sandbox.state_of(task), "done", "{}", sandbox.read("TODO.md"));
    }
}

#[test]
fn a_title_with_a_remark_is_still_the_same_task() {
    let sandbox = Sandbox::new();
    sandbox.write("TODO.md", "- [ ] Mend the door\n- [ ] Paint it\n");
    sandbox.commit_all("backlog");
    let agent = "touch \"$WIGGUM_TASK_ID\"
        sed -i 's/- \\[ \\] Mend the door/- [x] Mend the door (new hinge)/' TODO.md
        grep -q lock TODO.md || echo '- [ ] Oil the lock' >> TODO.md; claim";
    sandbox.run(agent, &["TODO.md"]).exits(0);
    assert_eq!(sandbox.worked_on(), ["mend-the-door", "paint-it", "oil-the-lock"]);
    assert_eq!(sandbox.read("TODO.md"), "- [x] Mend the door\n- [x] Paint it\n- [x] Oil the lock\n");
}

/// Nothing is configured: the check is found in the project's files.
#[test]
fn a_new_manifest_does_not_weaken_the_checks_of_later_runs() {
    let begun = |files: &[(&str, &str)]| {
        let sandbox = Sandbox::with_tasks(&["A", "B"]);
        for (name, text) in files {
            sandbox.write(name, text);
        }
        sandbox.commit_all("project");
        sandbox
    };
    let one = ["--max-iterations", "1", "--max-retries", "0"];
    let weaken = "printf 'test:\\n\\ttrue\\n' >> Makefile";
    let strong = [("Makefile", "check:\n\t! test -f broken\n")];
    // The first run's agent adds what is found before the former check.
    let sandbox = begun(&strong);
    sandbox.run(&format!("{weaken}; touch a.txt; claim"), &one).exits(3);
    assert_eq!(sandbox.state_of("A"), "done");
    let run = sandbox.run("touch broken; claim", &one);
    run.says("`make test` is found now and runs beside `make check`");
    assert_ne!(sandbox.state_of("B"), "done");
    // Honest work is not refused by it.
    let sandbox = begun(&strong);
    sandbox.run(&format!("{weaken}; touch a.txt; claim"), &one).exits(3);
    sandbox.run("touch b.txt; claim", &[]).exits(0);
    let sandbox = begun(&[("README.md", "nothing yet\n")]);
    sandbox.run(&format!("{}; claim", weaken.replace("true", "! test -f broken")), &one).exits(3);
    let run = sandbox.run("touch broken; claim", &one);
    run.never_says("the checks of this loop changed");
    assert_ne!(sandbox.state_of("B"), "done", "the project that began empty is checked as soon as it can be");
}

#[test]
fn an_agent_does_not_choose_how_later_work_is_judged() {
    let setting = "printf '[checks]\\nverify = [\"true\"]\\n' > wiggum.toml";
    for before in [None, Some("[checks]\nverify = [\"test -f greeting.txt\"]\n")] {
        let sandbox = project();
        if let Some(text) = before {
            sandbox.write("wiggum.toml", text);
            sandbox.commit_all("settings");
        }
        let run = sandbox.run(&format!("echo a > A.txt; {setting}; claim"), &[]).exits(6);
        run.says("changed what is obeyed later");
        assert!(sandbox.has_flag(FlagKind::ConfigTouched));
        assert_ne!(sandbox.state_of("A"), "done");
        // A person may want it.
        sandbox.wiggum(&["answer", "q1", "1"]).exits(0);
        sandbox.run("exit 1", &[]).exits(0);
        assert_eq!((sandbox.state_of("A"), agents(&sandbox)), ("done", 1));
    }
    let sandbox = project();
    sandbox.write("PRD.json", &support::prd(&["A"]).replace("Do A", "Set verify in wiggum.toml"));
    sandbox.commit_all("a task about it");
    // Also where the task is about them: what they say is for a person to see.
    sandbox.run(&format!("{setting}; claim"), &[]).exits(6);
    sandbox.wiggum(&["answer", "q1", "1"]).exits(0);
    sandbox.run("exit 1", &[]).exits(0);
}

/// Removing a feature with its tests is one decision.
#[test]
fn what_is_asked_for_in_tests_needs_one_answer() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    sandbox
        .write("PRD.json", &support::prd(&["A"]).replace("Do A", "Remove sub, also from tests/test_calc.py"));
    sandbox.write("calc.py", "def add(a, b): return a + b\ndef sub(a, b): return a - b\n");
    let add = "def test_add():\n    assert add(1, 2) == 3\n";
    let run_all = "\nfor name, test in list(globals().items()):\n    if name.startswith('test_'): test()\n";
    let sub = "def test_sub():\n    assert sub(1, 2) == -1\n";
    let head = "import sys; sys.path.insert(0, '.')\nfrom calc import";
    sandbox.write("tests/test_calc.py", &format!("{head} add, sub\n{add}{sub}{run_all}"));
    sandbox.commit_all("project");
    let tests = format!("{head} add\n{add}{run_all}");
    let agent = format!(
        "echo 'def add(a, b): return a + b' > calc.py; cat > tests/test_calc.py <<'X'\n{tests}X\nclaim"
    );
    let verify = ["--verify", "python3 tests/test_calc.py"];
    sandbox.run(&agent, &verify).exits(6);
    assert_eq!(sandbox.state().questions.len(), 1);
    sandbox.wiggum(&["answer", "q1", "accept"]).exits(0);
    sandbox.run("exit 1", &verify).exits(0);
    assert_eq!((sandbox.state_of("A"), agents(&sandbox)), ("done", 1));
}

/// A task that asks to change tests without naming them leads to a person, one that does not is refused.
#[test]
fn a_wish_to_change_tests_need_not_name_them() {
    let agent =
        "echo 'def add(a, b): return a + b + 1' > calc.py; sed -i 's/== 3/== 4/' tests/test_calc.py; claim";
    for (wish, status) in [
        ("add() shall return one more; update the tests", "parked"),
        ("add() shall return one more; the tests must pass", "failed"),
    ] {
        let sandbox = Sandbox::with_tasks(&["A"]);
        sandbox.write("PRD.json", &support::prd(&["A"]).replace("Do A", wish));
        sandbox.write("calc.py", "def add(a, b): return a + b\n");
        let test = "import sys; sys.path.insert(0, '.')\nfrom calc import add\nassert add(1, 2) == 3\n";
        sandbox.write("tests/test_calc.py", test);
        sandbox.commit_all("project");
        let verify = ["--verify", "python3 -B tests/test_calc.py", "--max-retries", "0"];
        sandbox.run(agent, &verify).exits(6);
        assert_eq!(sandbox.state_of("A"), status, "{wish}");
    }
}

/// To say that a check must pass is not to ask for another one.
#[test]
fn naming_a_check_is_no_leave_to_change_it() {
    for (wish, status) in [("verify.sh must pass", "failed"), ("Let verify.sh look for bye", "done")] {
        let sandbox = Sandbox::with_tasks(&["A"]);
        sandbox.write("PRD.json", &support::prd(&["A"]).replace("Do A", wish));
        sandbox.write("verify.sh", "grep -q hello greeting.txt\n");
        sandbox.write("greeting.txt", "hello\n");
        sandbox.commit_all("project");
        let agent = "echo bye > greeting.txt; echo 'grep -q bye greeting.txt' > verify.sh; claim";
        sandbox.run(agent, &["--verify", "sh verify.sh", "--max-retries", "0"]);
        assert_eq!(sandbox.state_of("A"), status, "{wish}");
    }
}

/// A directory with the name of the target: make says that it is up to date, and nothing was checked.
#[test]
fn a_check_for_which_make_has_nothing_to_do_verifies_nothing() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.write("Makefile", "test:\n\tgrep -q hello greeting.txt\n");
    sandbox.write("test/notes.txt", "x\n");
    sandbox.commit_all("project");
    let run = sandbox.run("echo a > A.txt; claim", &["--verify", "make test"]).exits(0);
    run.says("add `.PHONY: test` to the Makefile").says("unverified");
    assert_eq!(sandbox.state().tasks.counts().unverified, 1);

    let sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.write("Makefile", ".PHONY: test\ntest:\n\tgrep -q hello greeting.txt\n");
    sandbox.write("test/notes.txt", "x\n");
    sandbox.write("greeting.txt", "hello\n");
    sandbox.commit_all("project");
    sandbox.run("echo a > A.txt; claim", &["--verify", "make test"]).exits(0).never_says("unverified");
}

/// Checks that were green before tell nothing of a task for which nothing was done.
#[test]
fn a_claim_without_any_change_is_not_verified_by_checks_that_passed_before() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.run("claim", &["--verify", "true"]).exits(0).says("unverified");
    assert_eq!(sandbox.state().tasks.counts().unverified, 1);
    let evidence = "nothing was changed, and no check failed before (unverified)";
    assert!(sandbox.trailer("HEAD", "Wiggum-Evidence").contains(evidence));

    // Somebody's work, seen by a check that failed before; and what had been done before by another task.
    let sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.run("echo a > A.txt; claim", &["--verify", "true"]).exits(0).never_says("unverified");
    let sandbox = Sandbox::new();
    sandbox.write(".gitignore", "built\n");
    sandbox.write("TODO.md", "- [ ] T1: build it\n  - check: `test -e built`\n");
    sandbox.commit_all("backlog");
    sandbox.run("echo a > built; claim", &[]).exits(0);
    assert_eq!(sandbox.state().tasks.counts().unverified, 0);
}

/// What the task before left unfinished is no part of the tree that a task begins with.
#[test]
fn a_tasks_own_check_looks_at_the_tree_without_the_work_of_others() {
    let sandbox = Sandbox::new();
    let first = "- [ ] T1: one\n  - check: `grep -q 42 T1.txt`\n";
    sandbox.write("TODO.md", &format!("{first}- [ ] T2: two\n  - check: `test ! -e T1.txt`\n"));
    sandbox.commit_all("backlog");
    let run = sandbox.run("echo x > $WIGGUM_TASK_ID.txt; claim", &["--max-retries", "0"]).exits(6);
    assert!(run.stdout.contains("`test ! -e T1.txt` passes"), "{}", run.stdout);
    assert_eq!(sandbox.state_of("T2"), "done");
}

/// Whoever says that a task is done is told what becomes of the work so far.
#[test]
fn done_by_a_persons_word_leaves_the_kept_work_out_and_says_so() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.run("echo a > A.txt; claim", &["--verify", "test ! -e A.txt", "--max-retries", "0"]).exits(6);
    sandbox.wiggum(&["answer", "q1", "done"]).exits(0);
    sandbox.run("exit 1", &["--verify", "true"]).exits(0).says("is not in the tree (`git show ");
    assert_eq!(sandbox.state_of("A"), "done");
}

/// A loop stays with its backlog, whatever an attempt puts before it.
#[test]
fn a_new_backlog_takes_no_loop_over() {
    let begun = || {
        let sandbox = Sandbox::new();
        sandbox.write("TODO.md", "- [ ] **T1**: One\n- [ ] **T2**: Two\n");
        sandbox.commit_all("backlog");
        sandbox
    };
    let sandbox = begun();
    let makes_another = format!("cat > PRD.json <<'X'\n{}\nX\nclaim", support::prd(&["EVIL"]));
    sandbox.run(&makes_another, &["--max-iterations", "1"]).exits(3);
    let run = sandbox.run("echo a > a.txt; claim", &[]).exits(0);
    assert_eq!(sandbox.worked_on(), ["T1", "T2"]);
    let told =
        "TODO.md is taken, which a loop works on already; PRD.json is new: `wiggum run PRD.json` takes it";
    assert!(run.stderr.contains(told), "{}", run.stderr);
    // Whoever wants it, names it; from then on it is as any other.
    sandbox.run("echo b > b.txt; claim", &["PRD.json"]).exits(0);
    assert_eq!(sandbox.wiggum(&["run", "--headless", "--agent-command", "false"]).code(), Some(0));
    // Where nobody has worked yet, the usual order holds.
    let sandbox = begun();
    sandbox.write("PRD.json", &support::prd(&["A"]));
    sandbox.commit_all("another");
    sandbox.run("echo a > a.txt; claim", &[]).exits(0);
    assert_eq!(sandbox.worked_on(), ["A"]);
}

/// The first tests of a project are their author's word, unless they were asked for and say something.
#[test]
fn tests_that_the_agent_wrote_are_no_evidence_alone() {
    const IDLE: &str = "self.assertTrue(True)";
    const REAL: &str = "self.assertEqual(add(1, 2), 3)";
    let kept = "import unittest\nclass K(unittest.TestCase):\n    def test_k(self):\n        self.assertEqual(1 + 1, 2)\n";
    for (wish, had_tests, assertion, is_verified) in [
        ("Add add() to calc.py", false, IDLE, false),
        ("Add add() to calc.py", false, REAL, false),
        ("Add add() to calc.py", true, REAL, true),
        ("Add add() and write tests for it", false, REAL, true),
        ("Add add() and write tests for it", false, IDLE, false),
        ("Add add() and write tests for it", true, IDLE, false),
        ("Add add() and write tests for it", true, REAL, true),
    ] {
        let sandbox = Sandbox::with_tasks(&["A"]);
        sandbox.write("PRD.json", &support::prd(&["A"]).replace("Do A", wish));
        if had_tests {
            sandbox.write("test_kept.py", kept);
        }
        sandbox.commit_all("project");
        let test = format!(
            "import unittest\nfrom calc import add\nclass T(unittest.TestCase):\n    def test_a(self):\n        {assertion}\n"
        );
        let agent = format!(
            "printf 'def add(a, b):\\n    return a + b\\n' > calc.py; cat > test_calc.py <<'X'\n{test}X\nclaim"
        );
        // With no tests, newer versions of unittest fail: the check is one that could not run yet.
        let verify = ["--verify", "python3 -B -m unittest || [ $? = 5 ]"];
        sandbox.run(&agent, &verify).exits(0);
        let is_unverified = sandbox.state().tasks.counts().unverified == 1;
        assert_eq!(is_unverified, !is_verified, "{wish}, {had_tests}, {assertion}");
        if !is_verified {
            assert!(sandbox.has_flag(FlagKind::CheckRedefined), "{wish}, {had_tests}, {assertion}");
        }
    }
}

/// A check that asks git may be answered by what the attempt made there.
#[test]
fn names_in_git_that_an_attempt_gave_are_shown_where_a_check_asks_git() {
    for (verify, agent, is_shown) in [
        ("git rev-parse -q --verify refs/tags/v1 || true", "git tag v1", true),
        ("git notes list || true", "git -c user.name=a -c user.email=a@b notes add -m fine", true),
        ("git diff --quiet HEAD -- README", "true", false),
        ("test -f README", "git tag v1", false),
    ] {
        let sandbox = Sandbox::with_tasks(&["A"]);
        let args = ["--verify", verify, "--sandbox", "none"];
        sandbox.run(&format!("echo a > a.txt; {agent}; claim"), &args).exits(0);
        assert_eq!(sandbox.has_flag(FlagKind::CheckRedefined), is_shown, "{verify}, {agent}");
    }
}

/// Where there is no git, copies of what judges the work are kept.
#[test]
fn without_git_the_former_definition_and_the_former_tests_judge_too() {
    let project = |files: &[(&str, &str)]| {
        let sandbox = Sandbox::plain();
        sandbox.write("PRD.json", &support::prd(&["A", "B"]));
        for (path, text) in files {
            sandbox.write(path, text);
        }
        sandbox
    };
    let script = [("verify.sh", "grep -q hello greeting.txt\n"), ("greeting.txt", "hello\n")];
    let recipe = [("Makefile", "test:\n\tgrep -q hello greeting.txt\n"), ("greeting.txt", "hello\n")];
    let test = "from calc import add\n\n\ndef test_a():\n    assert add(1, 2) == 3\n\n\ndef test_b():\n    assert add(0, 0) == 0\n\n\ntest_a()\ntest_b()\n";
    let tests = [("test_calc.py", test), ("calc.py", "def add(a, b):\n    return a + b\n")];
    for (files, verify, work, cheat, honest) in [
        (
            &script,
            "sh verify.sh",
            "echo bye > greeting.txt",
            "echo true > verify.sh",
            "echo 'echo well' >> verify.sh",
        ),
        (
            &script,
            "sh verify.sh",
            "echo bye > greeting.txt",
            "rm verify.sh; ln -s /dev/null verify.sh",
            "chmod +x verify.sh",
        ),
        (
            &recipe,
            "make test",
            "echo bye > greeting.txt",
            "printf 'test:\\n\\ttrue\\n' > Makefile",
            "printf '\\nclean:\\n\\trm -f x\\n' >> Makefile",
        ),
        (
            &tests,
            "python3 -B test_calc.py",
            "sed -i 's/a + b/a - b/' calc.py",
            "sed -i 's/== 3/== -1/' test_calc.py",
            "sed -i 's/== 3/== 3 and add(2, 1) == 3/' test_calc.py",
        ),
        (
            &tests,
            "python3 -B test_calc.py",
            "sed -i 's/a + b/a - b/' calc.py",
            "sed -i '/def test_a/,/== 3/d; /^test_a()/d' test_calc.py",
            "printf '\\n\\ndef test_c():\\n    assert add(2, 2) == 4\\n\\n\\ntest_c()\\n' >> test_calc.py",
        ),
    ] {
        let sandbox = project(files);
        let agent = format!("{work}; {cheat}; claim");
        sandbox.run(&agent, &["--verify", verify, "--max-retries", "1", "--max-iterations", "3"]);
        assert_ne!(sandbox.state_of("A"), "done", "{cheat}");
        // The attempt's own files are back, also after the former ones were in force.
        let changed = sandbox.read(files[1].0);
        assert_ne!(changed, files[1].1, "{cheat}");
        let sandbox = project(files);
        sandbox
            .run(
                &format!(
                    "echo $WIGGUM_TASK_ID > did.txt; if [ $WIGGUM_TASK_ID = A ]; then {honest}; fi; claim"
                ),
                &["--verify", verify],
            )
            .exits(0);
        assert_eq!((sandbox.state_of("A"), sandbox.state_of("B")), ("done", "done"), "{honest}");
    }
}

/// Killed while the former definition is in force, the tree is the attempt's again.
#[test]
fn without_git_what_was_put_aside_comes_back_after_a_kill() {
    let mut sandbox = Sandbox::plain();
    sandbox.write("PRD.json", &support::prd(&["A"]));
    sandbox.write("verify.sh", "grep -q hello greeting.txt\n");
    sandbox.write("greeting.txt", "hello\n");
    let command = sandbox.agent("echo '# more' >> verify.sh; rm -f fine; ln -s verify.sh fine; claim");
    let args = ["run", "--headless", "--agent-command", &command, "--verify", "sh verify.sh"];
    sandbox.env("WIGGUM_CRASH_AT", "former definition in place");
    sandbox.launch(&sandbox.root, &args).outcome_only();
    assert!(!sandbox.read("verify.sh").contains("more"), "the former one is in force");
    sandbox.env("WIGGUM_CRASH_AT", "nowhere");
    sandbox.wiggum(&args).exits(0);
    assert!(sandbox.read("verify.sh").ends_with("# more\n"), "{}", sandbox.read("verify.sh"));
    assert_eq!(sandbox.state_of("A"), "done");
}

/// A check that runs what was built before says nothing of new sources.
#[test]
fn what_was_built_before_the_work_is_shown() {
    let build = "mkdir -p dist; cp src/app.js dist/app.js";
    for (agent, is_stale) in [
        ("echo 'console.log(2)' > src/app.js", true),
        ("echo 'console.log(2)' > src/app.js; mkdir -p dist; cp src/app.js dist/app.js", false),
        ("echo more >> README", false),
    ] {
        let sandbox = Sandbox::with_tasks(&["A"]);
        sandbox.write("src/app.js", "console.log(1)\n");
        sandbox.write(".gitignore", "dist\n");
        sandbox.commit_all("project");
        sandbox.write("dist/app.js", "console.log(1)\n");
        // Older than whatever comes, on file systems with coarse times too.
        let mut touch = sandbox.command("touch");
        touch.args(["-d", "2020-01-01", "dist/app.js"]).current_dir(&sandbox.root);
        assert!(touch.status().unwrap().success());
        let verify = format!("[ -e dist/app.js ] || {{ {build}; }}; node dist/app.js | grep -q .");
        sandbox.run(&format!("{agent}; claim"), &["--verify", &verify]);
        let told = |flag: &Flag| flag.what == "dist/app.js" && flag.detail.contains("older than src/app.js");
        assert_eq!(sandbox.flags().iter().any(told), is_stale, "{agent}: {:?}", sandbox.flags());
    }
}

/// What an attempt left in the tree is not what judges the work in the next run; what a person changed there is.
#[test]
fn without_git_what_judges_the_work_outlives_a_run() {
    let gut = "printf '.PHONY: test\\ntest:\\n\\t@true\\n' > Makefile";
    let begun = || {
        let sandbox = Sandbox::plain();
        sandbox.write("PRD.json", &support::prd(&["A"]));
        sandbox.write("c.py", "add\n");
        sandbox.write("Makefile", ".PHONY: test\ntest:\n\tgrep -q sub c.py\n");
        sandbox
    };
    let args = ["--verify", "make test", "--baseline", "go-on", "--max-retries", "0"];
    for ending in ["refused", "interrupted", "killed"] {
        let sandbox = begun();
        if ending == "refused" {
            sandbox.run(&format!("{gut}; claim"), &args).exits(6);
            sandbox.wiggum(&["answer", "q1", "retry"]).exits(0);
        } else {
            sandbox.make_pipe("ready");
            let started = sandbox.start(&format!("{gut}; hang"), &args);
            sandbox.wait_ready();
            if ending == "killed" {
                started.kill_with_watchdog();
            } else {
                started.signal("INT");
                drop(started.finish());
            }
        }
        sandbox.run("echo '#' >> c.py; claim", &args).exits(6);
        assert_ne!(sandbox.state_of("A"), "done", "{ending}");
    }
    // The honest twin.
    let sandbox = begun();
    sandbox.run("echo x > x; claim", &args).exits(6);
    sandbox.wiggum(&["answer", "q1", "retry"]).exits(0);
    sandbox.write("Makefile", ".PHONY: test\ntest:\n\tgrep -q add c.py\n");
    sandbox.run("echo '#' >> c.py; claim", &args).exits(0);
    assert_eq!(sandbox.state_of("A"), "done");
}
