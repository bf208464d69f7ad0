//! Whose work is whose: between tasks, between the loop and the user, and what hooks make of it.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may fail here")]

mod support;

use support::{Sandbox, WORKER, prd, prd_of, story};
use wiggum_core::event::{Event, FlagKind};

/// Fails `A` at its first `$1` attempts and completes everything else.
fn fails_a_first(work: &str) -> String {
    format!(
        r#"keep_prompt
        if [ "$WIGGUM_TASK_ID" = A ]; then
            {work}
        else
            echo "$WIGGUM_TASK_ID" > "$WIGGUM_TASK_ID.txt"
            echo "$WIGGUM_TASK_ID" >> shared.txt
            claim
        fi"#
    )
}

/// A is tried, fails, and is tried again only after B: its dependency appears meanwhile.
fn sandbox_with_shared_file(a: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("shared.txt", "one\ntwo\nthree\nfour\nfive\n");
    sandbox.write("PRD.json", &prd_of(&[story("A", a), story("B", "")]));
    sandbox.commit_all("backlog");
    sandbox
}

#[test]
fn nothing_of_a_failed_task_lands_in_the_commit_of_another() {
    let sandbox = Sandbox::with_tasks(&["A", "B"]);
    let agent = fails_a_first("echo half > half.txt; echo more >> README; git add half.txt; claim");
    let verify = "test $WIGGUM_TASK_ID = B";
    sandbox.run(&agent, &["--verify", verify, "--max-retries", "0"]).exits(6);
    assert_eq!(sandbox.subjects(), ["first", "backlog", "B: Do B"]);
    assert_eq!(sandbox.changed_in("HEAD"), ["B.txt", "PRD.json", "shared.txt"]);
    assert!(!sandbox.exists("half.txt"));
    sandbox.assert_clean();
    // What A did is kept where a person finds it.
    let refs = sandbox.git(&["for-each-ref", "--format=%(refname)", "refs/wiggum/"]);
    let kept = refs.lines().find(|name| name.contains("/A/")).expect(&refs);
    assert_eq!(sandbox.git(&["show", &format!("{kept}:half.txt")]), "half");
}

#[test]
fn kept_work_comes_back_merged_with_what_was_committed_since() {
    let sandbox = sandbox_with_shared_file("");
    let agent = fails_a_first(
        r#"if [ "$WIGGUM_ATTEMPT" = 1 ]; then
               sed -i s/one/ONE/ shared.txt; echo half > half.txt
               printf '<escalate type="stuck">\n<summary>which way?</summary>\n</escalate>\n'
           else cp shared.txt "$SANDBOX/seen"; echo rest >> half.txt; claim; fi"#,
    );
    sandbox.run(&agent, &["--verify", "true"]).exits(6);
    assert_eq!(sandbox.changed_in("HEAD"), ["B.txt", "PRD.json", "shared.txt"]);
    sandbox.ask(&answer(1, "left"));
    sandbox.run(&agent, &["--verify", "true"]).exits(0);
    assert_eq!(sandbox.note("seen"), "ONE\ntwo\nthree\nfour\nfive\nB\n");
    assert_eq!(sandbox.read("half.txt"), "half\nrest\n");
    assert_eq!(sandbox.changed_in("HEAD"), ["PRD.json", "half.txt", "shared.txt"]);
    sandbox.assert_clean();
}

#[test]
fn kept_work_that_conflicts_is_left_under_its_ref_and_said() {
    let sandbox = sandbox_with_shared_file("");
    let agent = fails_a_first(
        r#"if [ "$WIGGUM_ATTEMPT" = 1 ]; then
               echo mine >> shared.txt; echo half > half.txt
               printf '<escalate type="stuck">\n<summary>which way?</summary>\n</escalate>\n'
           else cp shared.txt "$SANDBOX/seen"; test ! -e half.txt; claim; fi"#,
    );
    sandbox.run(&agent, &["--verify", "true"]).exits(6);
    sandbox.ask(&answer(1, "left"));
    sandbox.run(&agent, &["--verify", "true"]).exits(0).says("conflicts");
    assert_eq!(sandbox.note("seen"), "one\ntwo\nthree\nfour\nfive\nB\n");
    let notice =
        |event: &Event| matches!(event, Event::Noticed { message, .. } if message.contains("conflicts"));
    assert!(sandbox.events().iter().any(notice));
    let refs = sandbox.git(&["for-each-ref", "--format=%(refname)", "refs/wiggum/"]);
    let kept = refs.lines().find(|name| name.contains("/A/")).expect(&refs);
    assert_eq!(sandbox.git(&["show", &format!("{kept}:half.txt")]), "half");
}

#[test]
fn a_dirty_tree_is_refused_before_anything_starts() {
    for (path, staged) in [("README", false), ("README", true), ("new.txt", false), ("new.txt", true)] {
        let sandbox = Sandbox::with_tasks(&["A"]);
        sandbox.write(path, "mine\n");
        if staged {
            sandbox.git(&["add", path]);
        }
        sandbox.run(WORKER, &[]).complains(2, &["uncommitted", path, "hint:", "--allow-dirty"]);
        assert_eq!(sandbox.read(path), "mine\n");
        assert!(!sandbox.exists("A.txt"));
    }
}

#[test]
fn the_loops_own_files_are_no_dirt() {
    let sandbox = Sandbox::new();
    sandbox.write("PRD.json", &prd(&["A"]));
    sandbox.write("PROMPT.md", "Do it.\n");
    sandbox.write("wiggum.toml", "[limits]\niterations = 5\n");
    sandbox.write(".gitignore", &wiggum_workspace::git::ignoring_state("").unwrap());
    sandbox.run(WORKER, &["--verify", "true"]).exits(0);
    assert_eq!(sandbox.changed_in("HEAD"), ["A.txt"]);
    assert_eq!(sandbox.dirt(), "?? .gitignore\n?? PRD.json\n?? PROMPT.md\n?? wiggum.toml");

    // Changed after they were committed, they still are none.
    sandbox.commit_all("mine");
    sandbox.write(
        "PRD.json",
        &sandbox
            .read("PRD.json")
            .replace("true }", "true },\n    { \"id\": \"B\", \"title\": \"b\", \"passes\": false }"),
    );
    sandbox.run(WORKER, &["--verify", "true"]).exits(0);
    assert_eq!(sandbox.changed_in("HEAD"), ["B.txt", "PRD.json"]);
    sandbox.assert_clean();
}

/// What `wiggum` prints goes to a file of the work tree, as the shell makes it.
fn run_into(sandbox: &Sandbox, redirection: &str, agent: &str) -> Option<i32> {
    let command = sandbox.agent(agent);
    let line = format!(
        r#""{}" run --headless --json --verify true --agent-command "{command}" {redirection}"#,
        env!("CARGO_BIN_EXE_wiggum")
    );
    sandbox.command("sh").current_dir(&sandbox.root).args(["-c", &line]).status().unwrap().code()
}

#[test]
fn what_is_printed_to_a_file_in_the_tree_is_nobodys_work() {
    for redirection in ["> journal.jsonl", "> journal.jsonl 2>&1", ">> logs/run.jsonl 2> logs/errors"] {
        let sandbox = Sandbox::with_tasks(&["A"]);
        std::fs::create_dir(sandbox.root.join("logs")).unwrap();
        assert_eq!(run_into(&sandbox, redirection, WORKER), Some(0), "{redirection}");
        assert_eq!(sandbox.changed_in("HEAD"), ["A.txt", "PRD.json"], "{redirection}");
        let printed = ["journal.jsonl", "logs/run.jsonl"].into_iter().find(|name| sandbox.exists(name));
        let text = sandbox.read(printed.unwrap());
        assert!(text.lines().all(|line| line.starts_with('{')) && text.contains("run_ended"), "{text}");
        // And the next run starts, wherever it prints.
        sandbox.run(WORKER, &["--verify", "true"]).exits(0);
    }
    // The twin: any other file is dirt.
    let sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.write("other.jsonl", "");
    assert_eq!(run_into(&sandbox, "> journal.jsonl", WORKER), Some(2));
}

#[test]
fn a_file_that_is_printed_to_outlives_failed_attempts() {
    let sandbox = Sandbox::with_tasks(&["A", "B"]);
    let agent =
        r#"echo "$WIGGUM_TASK_ID" > "$WIGGUM_TASK_ID.txt"; [ "$WIGGUM_TASK_ID" = A ] && exit 1; claim"#;
    assert_eq!(run_into(&sandbox, "> journal.jsonl", agent), Some(6));
    assert!(sandbox.read("journal.jsonl").contains("run_ended"));
    assert_eq!(sandbox.changed_in("HEAD"), ["B.txt", "PRD.json"]);
}

#[test]
fn a_changed_prompt_and_configuration_stay_the_users_own() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.write("PROMPT.md", "Do it.\n");
    sandbox.write("wiggum.toml", "[limits]\niterations = 5\n");
    sandbox.commit_all("set up");
    sandbox.write("PROMPT.md", "Do it well.\n");
    sandbox.write("wiggum.toml", "[limits]\niterations = 6\n");
    sandbox.run(WORKER, &["--verify", "true"]).exits(0);
    assert_eq!(sandbox.read("PROMPT.md"), "Do it well.\n");
    assert_eq!(sandbox.read("wiggum.toml"), "[limits]\niterations = 6\n");
    assert_eq!(sandbox.changed_in("HEAD"), ["A.txt", "PRD.json"]);
}

/// A tree with something of everything, and how git describes it.
/// What a stash cannot hold, and what commits of a loop would become part of.
#[test]
fn a_repository_in_the_middle_of_something_is_left_as_it_is() {
    let cases: [(&str, &[&str], &[&str]); 6] = [
        ("MERGE_HEAD", &["merge", "-q", "--no-commit", "--no-ff", "other"], &["merge", "git merge --abort"]),
        ("CHERRY_PICK_HEAD", &["cherry-pick", "clash"], &["cherry-pick", "git cherry-pick --abort"]),
        ("REVERT_HEAD", &["revert", "--no-commit", "HEAD"], &["revert", "git revert --abort"]),
        ("rebase-merge", &["rebase", "clash"], &["rebase", "git rebase --abort"]),
        ("BISECT_LOG", &["bisect", "start"], &["bisect", "git bisect reset"]),
        ("HEAD", &["checkout", "-q", "--detach"], &["HEAD is detached", "git switch"]),
    ];
    for (file, command, words) in cases {
        let sandbox = Sandbox::with_tasks(&["A"]);
        for (branch, path) in [("other", "other.txt"), ("clash", "README")] {
            sandbox.git(&["checkout", "-q", "-b", branch, "main"]);
            sandbox.write(path, branch);
            sandbox.commit_all(branch);
        }
        sandbox.git(&["checkout", "-q", "main"]);
        sandbox.write("README", "of main\n");
        sandbox.commit_all("of main");
        // Some end with a conflict, as they are meant to.
        let mut git = sandbox.command("git");
        git.args(["-c", "user.name=User", "-c", "user.email=user@example.com"]).args(command);
        git.current_dir(&sandbox.root).output().unwrap();
        assert!(sandbox.root.join(".git").join(file).exists(), "{file} should be there");
        let before = (describe(&sandbox), sandbox.git(&["rev-parse", "HEAD"]));
        for more in [&[][..], &["--allow-dirty"]] {
            sandbox.run(WORKER, more).complains(2, words).complains(2, &["hint: "]);
            assert!(sandbox.root.join(".git").join(file).exists(), "{file} is gone");
            assert_eq!((describe(&sandbox), sandbox.git(&["rev-parse", "HEAD"])), before);
        }
        assert!(!sandbox.exists("A.txt") && !sandbox.has_store(), "{file}: nothing has begun");
    }
}

#[test]
fn doctor_tells_where_changes_are_that_were_set_aside() {
    let sandbox = sandbox_to_dirty();
    make_dirty(&sandbox);
    sandbox.make_pipe("ready");
    let run = sandbox.start("hang", &["--allow-dirty"]);
    sandbox.wait_ready();
    run.kill();
    let doctor = sandbox.launch(&sandbox.root, &["doctor"]).outcome_only();
    let told = format!("{}{}", doctor.stdout, doctor.stderr);
    assert!(told.contains("your uncommitted changes are kept under refs/wiggum/"), "{told}");
}

fn make_dirty(sandbox: &Sandbox) -> (String, String, String) {
    sandbox.write("README", "staged\n");
    sandbox.git(&["add", "README"]);
    sandbox.write("README", "staged and more\n");
    sandbox.write("untracked.txt", "mine\n");
    sandbox.write("added.txt", "added\n");
    sandbox.git(&["add", "added.txt"]);
    sandbox.git(&["rm", "-q", "--cached", "gone.txt"]);
    std::fs::remove_file(sandbox.root.join("gone.txt")).unwrap();
    describe(sandbox)
}

fn describe(sandbox: &Sandbox) -> (String, String, String) {
    (sandbox.dirt(), sandbox.git(&["diff", "--cached"]), sandbox.git(&["diff"]))
}

fn sandbox_to_dirty() -> Sandbox {
    let sandbox = Sandbox::with_tasks(&["A", "B"]);
    sandbox.write("gone.txt", "soon\n");
    sandbox.write("stashed.txt", "stash me\n");
    sandbox.commit_all("more");
    sandbox.write("stashed.txt", "stashed\n");
    sandbox.git(&["stash", "-q"]);
    sandbox
}

#[test]
fn set_aside_changes_are_put_back_exactly() {
    let sandbox = sandbox_to_dirty();
    let before = make_dirty(&sandbox);
    let stash = sandbox.git(&["stash", "list"]);
    let agent = r#"git status --porcelain >> "$SANDBOX/dirt"; echo x > "$WIGGUM_TASK_ID.txt"; claim"#;
    sandbox.run(agent, &["--verify", "true", "--allow-dirty"]).exits(0);
    assert_eq!(sandbox.note("dirt"), "");
    assert_eq!(describe(&sandbox), before);
    assert_eq!(sandbox.git(&["stash", "list"]), stash);
    assert_eq!(sandbox.subjects().last().unwrap(), "B: Do B");
}

#[test]
fn set_aside_changes_are_put_back_after_a_limit_with_work_left() {
    let sandbox = sandbox_to_dirty();
    let before = make_dirty(&sandbox);
    let agent = "echo half > half.txt; claim";
    sandbox
        .run(agent, &["--baseline", "off", "--verify", "false", "--allow-dirty", "--max-iterations", "1"])
        .exits(3);
    assert_eq!(describe(&sandbox), before);
    // And again: the next run takes them out of the way once more, with the work of the first.
    let agent = r#"cat half.txt > "$SANDBOX/seen"; echo rest >> half.txt; claim"#;
    sandbox
        .run(agent, &["--baseline", "off", "--verify", "true", "--allow-dirty", "--max-iterations", "1"])
        .exits(3);
    assert_eq!(sandbox.note("seen"), "half\n");
    assert_eq!(describe(&sandbox), before);
    assert_eq!(sandbox.subjects().last().unwrap(), "A: Do A");
}

#[test]
fn set_aside_changes_are_put_back_after_ctrl_c() {
    let sandbox = sandbox_to_dirty();
    let before = make_dirty(&sandbox);
    sandbox.make_pipe("ready");
    let started = sandbox.start("echo half > half.txt; hang", &["--allow-dirty"]);
    sandbox.wait_ready();
    started.signal("INT");
    started.finish().exits(130);
    assert_eq!(describe(&sandbox), before);

    sandbox.run(WORKER, &["--verify", "true", "--allow-dirty"]).exits(0);
    assert_eq!(describe(&sandbox), before);
    assert_eq!(sandbox.subjects().last().unwrap(), "B: Do B");
}

#[test]
fn set_aside_changes_that_no_longer_fit_are_not_lost() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.write("README", "my own words\n");
    sandbox.run("echo agent > README; claim", &["--verify", "true", "--allow-dirty"]).exits(0);
    sandbox.wiggum(&["report"]).exits(0).says("not in the work tree").says("git stash apply");
    assert_eq!(sandbox.read("README"), "agent\n");
    let refs = sandbox.git(&["for-each-ref", "--format=%(refname)", "refs/wiggum/"]);
    let kept = refs.lines().find(|name| name.contains("/user-changes/")).expect(&refs);
    assert_eq!(sandbox.git(&["show", &format!("{kept}:README")]), "my own words");
}

/// A backlog that was never committed is the loop's, and the rest is the user's again.
#[test]
fn a_backlog_that_is_only_staged_is_committed_and_nothing_is_lost() {
    for (unborn, dirty) in [(false, false), (false, true), (true, true)] {
        let sandbox = if unborn { Sandbox::unborn() } else { Sandbox::new() };
        sandbox.write("PRD.json", &prd(&["A"]));
        if dirty {
            sandbox.write("mine.txt", "mine\n");
        }
        sandbox.git(&["add", "-A"]);
        let args = if dirty { &["--allow-dirty"][..] } else { &[] };
        sandbox.run(WORKER, args).exits(0);
        assert_eq!(sandbox.changed_in("HEAD"), ["A.txt", "PRD.json"], "{unborn} {dirty}");
        assert_eq!(sandbox.dirt(), if dirty { "A  mine.txt" } else { "" }, "{unborn}");
    }
}

#[test]
fn a_staged_change_of_the_backlog_is_in_nobodys_way() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.write("PRD.json", &prd(&["A", "B"]));
    sandbox.write("README", "mine\n");
    sandbox.git(&["add", "-A"]);
    sandbox.run(WORKER, &["--allow-dirty"]).exits(0).says("your uncommitted changes are back");
    assert_eq!(sandbox.subjects(), ["first", "backlog", "A: Do A", "B: Do B"]);
    assert_eq!(sandbox.dirt(), "M  README");
}

#[test]
fn files_that_git_does_not_know_are_set_aside_before_the_first_commit() {
    let sandbox = Sandbox::unborn();
    sandbox.write("PRD.json", &prd(&["A"]));
    sandbox.write("mine.txt", "mine\n");
    sandbox.run(WORKER, &["--allow-dirty"]).exits(0);
    assert_eq!(sandbox.dirt(), "?? PRD.json\n?? mine.txt");
}

#[test]
fn after_ctrl_c_a_user_may_edit_and_is_then_asked_to_tidy_up() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.make_pipe("ready");
    let started = sandbox.start("echo half > half.txt; hang", &[]);
    sandbox.wait_ready();
    started.signal("INT");
    started.finish().exits(130);
    sandbox.assert_clean();
    sandbox.write("README", "my own edit\n");
    sandbox.run(WORKER, &["--verify", "true"]).complains(2, &["uncommitted", "README"]);
    assert_eq!(sandbox.read("README"), "my own edit\n");
    sandbox.commit_all("mine");
    sandbox.run(WORKER, &["--verify", "true"]).exits(0);
    assert_eq!(sandbox.changed_in("HEAD"), ["A.txt", "PRD.json"]);
}

#[test]
fn a_refusing_hook_fails_the_attempt_and_its_words_reach_the_next() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    let hook = "#!/bin/sh\ntest -f licence.txt || { echo hook-wants-a-licence >&2; exit 1; }\n";
    sandbox.write_program(".git/hooks/pre-commit", hook);
    let agent = r#"keep_prompt; cp PRD.json "$SANDBOX/backlog-$WIGGUM_ATTEMPT"
        [ "$WIGGUM_ATTEMPT" = 1 ] || touch licence.txt; touch a.txt; claim"#;
    sandbox.run(agent, &["--verify", "true"]).exits(0);
    assert!(sandbox.prompt("A", 2).contains("hook-wants-a-licence"));
    assert!(sandbox.note("backlog-2").contains("\"passes\": false"), "the status went back to open");
    assert_eq!(sandbox.subjects(), ["first", "backlog", "A: Do A"]);
    assert_eq!(sandbox.changed_in("HEAD"), ["PRD.json", "a.txt", "licence.txt"]);
    sandbox.assert_clean();
}

#[test]
fn a_hook_that_always_refuses_leaves_no_commit_and_an_open_status() {
    let sandbox = Sandbox::with_tasks(&["A", "B"]);
    sandbox.write_program(".git/hooks/commit-msg", "#!/bin/sh\ngrep -q '^A:' \"$1\" && exit 1\nexit 0\n");
    sandbox
        .run(WORKER, &["--verify", "true", "--max-retries", "1"])
        .exits(6)
        .says("a hook ended it without a word (exit code 1)");
    assert_eq!(sandbox.subjects(), ["first", "backlog", "B: Do B"]);
    assert_eq!(sandbox.state_of("A"), "failed");
    assert_eq!(sandbox.read("PRD.json").matches("\"passes\": true").count(), 1);
    sandbox.assert_clean();
}

#[test]
fn a_hook_that_says_the_same_three_times_is_asked_about() {
    let attempts = |sandbox: &Sandbox| sandbox.worked_on().len();
    let sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.write_program(".git/hooks/pre-commit", "#!/bin/sh\necho 'error: no ticket number' >&2\nexit 1\n");
    let agent = r#"echo "$WIGGUM_ATTEMPT" >> a.txt; claim"#;
    sandbox.run(agent, &["--verify", "true", "--max-retries", "9"]).exits(6);
    assert_eq!(attempts(&sandbox), 3);
    sandbox.wiggum(&["inbox"]).exits(0).says("refused the commit of A 3 times").says("no ticket number");
    assert_ne!(sandbox.state_of("A"), "failed");

    // Other words each time are progress of a kind.
    let sandbox = Sandbox::with_tasks(&["A"]);
    let hook = "#!/bin/sh\necho \"error: $(tail -n 1 a.txt) is missing\" >&2\nexit 1\n";
    sandbox.write_program(".git/hooks/pre-commit", hook);
    let agent = r#"echo "$WIGGUM_ATTEMPT" | tr 1234 abcd >> a.txt; claim"#;
    sandbox.run(agent, &["--verify", "true", "--max-retries", "3"]).exits(6);
    assert_eq!((attempts(&sandbox), sandbox.state_of("A")), (4, "failed"));
}

#[test]
fn what_a_hook_makes_of_the_files_is_checked_before_it_counts() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    let hook = "#!/bin/sh\ntr a-z A-Z < a.txt > a.tmp && mv a.tmp a.txt && git add a.txt\n";
    sandbox.write_program(".git/hooks/pre-commit", hook);
    let verify = r#"cat a.txt >> "$SANDBOX/checked""#;
    sandbox.run("echo text > a.txt; claim", &["--baseline", "off", "--verify", verify]).exits(0);
    // At last in a clean checkout.
    assert_eq!(sandbox.note("checked"), "text\nTEXT\nTEXT\n");
    assert_eq!(sandbox.git(&["show", "HEAD:a.txt"]), "TEXT");
    assert_eq!(sandbox.subjects(), ["first", "backlog", "A: Do A"]);
    sandbox.assert_clean();
}

/// Signs as gpg does, as far as git looks.
const SIGNER: &str = "#!/bin/sh
cat > /dev/null; echo signed >> \"$SANDBOX/signed\"
echo '[GNUPG:] SIG_CREATED D 1 8 00 1763000000 ABCD' >&2
printf -- '-----BEGIN PGP SIGNATURE-----\\n\\nx\\n-----END PGP SIGNATURE-----\\n'
";

#[test]
fn commits_that_cannot_be_signed_are_found_before_an_agent_is_started() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.git(&["config", "commit.gpgsign", "true"]);
    sandbox.git(&["config", "gpg.program", "/nowhere/gpg"]);
    let agent = r#"echo call >> "$SANDBOX/calls"; echo text > a.txt; claim"#;
    let words = ["cannot be signed", "/nowhere/gpg", "hint:", "user.signingkey"];
    sandbox.run(agent, &["--verify", "true"]).complains(2, &words);
    assert!(!sandbox.has_note("calls"));
    drop(sandbox.wiggum(&["doctor"]).exits(1).says("commits cannot be signed"));

    // The twins: one who can sign, and one who does not want to.
    let signer = sandbox.base().join("gpg");
    std::fs::write(&signer, SIGNER).unwrap();
    std::fs::set_permissions(&signer, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    sandbox.git(&["config", "gpg.program", signer.to_str().unwrap()]);
    drop(sandbox.wiggum(&["doctor"]).exits(0).never_says("signed"));
    sandbox.run(agent, &["--verify", "true"]).exits(0);
    assert!(sandbox.git(&["cat-file", "commit", "HEAD"]).contains("gpgsig"));

    let sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.git(&["config", "commit.gpgsign", "false"]);
    sandbox.git(&["config", "gpg.program", "/nowhere/gpg"]);
    sandbox.run(agent, &["--verify", "true"]).exits(0);
}

/// A run that has nothing to commit does not ask.
#[test]
fn a_run_without_work_needs_no_key() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.run(WORKER, &["--verify", "true"]).exits(0);
    sandbox.git(&["config", "commit.gpgsign", "true"]);
    sandbox.git(&["config", "gpg.program", "/nowhere/gpg"]);
    sandbox.run(WORKER, &["--verify", "true"]).exits(0);
}

/// As formatters under `pre-commit` do it: the files are changed, and the commit refused.
const FORMATTER: &str = "#!/bin/sh
tr a-z A-Z < a.txt > a.tmp
if cmp -s a.txt a.tmp; then rm a.tmp; exit 0; fi
mv a.tmp a.txt; echo files were modified by this hook; exit 1
";

#[test]
fn a_hook_that_changes_files_and_refuses_needs_no_other_agent() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.write_program(".git/hooks/pre-commit", FORMATTER);
    let verify = r#"cat a.txt >> "$SANDBOX/checked""#;
    let agent = r#"echo call >> "$SANDBOX/calls"; echo text > a.txt; claim"#;
    sandbox.run(agent, &["--baseline", "off", "--verify", verify]).exits(0);
    assert_eq!(sandbox.note("calls"), "call\n");
    // At last in a clean checkout.
    assert_eq!(sandbox.note("checked"), "text\nTEXT\nTEXT\n");
    assert_eq!(sandbox.git(&["show", "HEAD:a.txt"]), "TEXT");
    assert_eq!(sandbox.subjects(), ["first", "backlog", "A: Do A"]);
    assert_eq!(sandbox.changed_in("HEAD"), ["PRD.json", "a.txt"]);
    sandbox.assert_clean();
}

/// The twins: what the hook made of the files fails the checks, and a hook that is never content.
#[test]
fn what_a_refusing_hook_made_is_checked_and_tried_once() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.write_program(".git/hooks/pre-commit", FORMATTER);
    let args = ["--verify", "test ! -e a.txt || grep -q text a.txt", "--max-retries", "0"];
    sandbox.run("echo text > a.txt; claim", &args).exits(6);
    assert_eq!(sandbox.subjects(), ["first", "backlog"]);
    sandbox.assert_clean();

    let sandbox = Sandbox::with_tasks(&["A"]);
    let hook = "#!/bin/sh\necho x >> a.txt; echo x >> \"$SANDBOX/calls\"; exit 1\n";
    sandbox.write_program(".git/hooks/pre-commit", hook);
    sandbox.run("echo text > a.txt; claim", &["--verify", "true", "--max-retries", "0"]).exits(6);
    assert_eq!(sandbox.note("calls"), "x\nx\n");
    assert_eq!(sandbox.subjects(), ["first", "backlog"]);
    sandbox.assert_clean();
}

#[test]
fn a_hook_that_breaks_the_work_is_caught_by_the_checks() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    let hook = "#!/bin/sh\necho broken > a.txt; git add a.txt\n";
    sandbox.write_program(".git/hooks/pre-commit", hook);
    let args = ["--verify", "grep -q fine a.txt", "--max-retries", "0"];
    sandbox.run("echo fine > a.txt; claim", &args).exits(6);
    assert_eq!(sandbox.subjects(), ["first", "backlog"]);
    assert!(!sandbox.read("PRD.json").contains("true"));
    sandbox.assert_clean();
}

#[test]
fn a_hook_that_never_settles_is_bounded() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    let hook = "#!/bin/sh\necho x >> a.txt; git add a.txt; echo x >> \"$SANDBOX/calls\"\n";
    sandbox.write_program(".git/hooks/pre-commit", hook);
    sandbox.run("echo text > a.txt; claim", &["--verify", "true", "--max-retries", "0"]).exits(6);
    assert!(sandbox.note("calls").lines().count() <= 5);
    assert_eq!(sandbox.subjects(), ["first", "backlog"]);
    assert!(!sandbox.read("PRD.json").contains("true"));
    sandbox.assert_clean();
}

fn answer(question: u32, words: &str) -> wiggum_core::event::Request {
    wiggum_core::event::Request::Answer {
        question: wiggum_core::ids::QuestionId(question),
        answer: wiggum_core::event::Answer::Words { text: words.to_owned() },
    }
}

/// Git takes a file that is named to be left out for one to be added, and refuses it if it is ignored.
#[test]
fn a_configuration_that_git_ignores_is_no_obstacle() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.write(".gitignore", "wiggum.toml\nPROMPT.md\n");
    sandbox.commit_all("ignore");
    sandbox.write("wiggum.toml", "[retry]\nmax_retries = 1\n");
    sandbox.write("PROMPT.md", "Work.\n");
    sandbox.run(WORKER, &[]).exits(0);
    assert_eq!(sandbox.changed_in("HEAD"), ["A.txt", "PRD.json"]);
    sandbox.assert_clean();
}

/// A repository with another one inside as a submodule.
fn with_submodule(ids: &[&str]) -> Sandbox {
    let sandbox = Sandbox::with_tasks(ids);
    let library = sandbox.base().join("library");
    std::fs::create_dir(&library).unwrap();
    sandbox.git_in(&library, &["init", "-q", "-b", "main"]);
    std::fs::write(library.join("code"), "of the library\n").unwrap();
    sandbox.git_in(&library, &["add", "-A"]);
    let person = ["-c", "user.name=a", "-c", "user.email=a@b"];
    sandbox.git_in(&library, &[&person[..], &["commit", "-q", "-m", "library"]].concat());
    let url = library.to_str().unwrap();
    sandbox.git(&["-c", "protocol.file.allow=always", "submodule", "add", "-q", url, "lib"]);
    sandbox.commit_all("a submodule");
    sandbox
}

#[test]
fn files_inside_a_submodule_are_neither_a_checks_nor_lost() {
    let sandbox = with_submodule(&["A", "B"]);
    let agent =
        "echo new > lib/new-$WIGGUM_TASK_ID; echo more >> lib/code; echo x > $WIGGUM_TASK_ID.txt; claim";
    sandbox.run(agent, &["--verify", "true", "--max-iterations", "1"]).exits(3).says("lib");
    let told = |kind| sandbox.flags().iter().filter(|flag| flag.kind == kind).count();
    assert_eq!((told(FlagKind::CheckLeftovers), told(FlagKind::SubmoduleUncommitted)), (0, 1));
    assert_eq!(sandbox.read("lib/new-A"), "new\n");
    assert_eq!(sandbox.read("lib/code"), "of the library\nmore\n");
    assert_eq!(sandbox.changed_in("HEAD"), ["A.txt", "PRD.json"]);
    // It does not keep the next run from starting, and is not told again.
    sandbox.run(agent, &["--verify", "true"]).exits(0);
    assert_eq!(told(FlagKind::SubmoduleUncommitted), 1);
    assert_eq!(sandbox.read("lib/new-B"), "new\n");
}

#[test]
fn a_commit_inside_a_submodule_stays_with_its_task() {
    let sandbox = with_submodule(&["A", "B"]);
    let commit = "git -c user.name=a -c user.email=a@b commit -q -a -m inside";
    // A commits inside the submodule and fails; B has nothing to do with it.
    let agent = format!(
        r#"if [ $WIGGUM_TASK_ID = A ]; then echo A >> lib/code; (cd lib && {commit}); echo failed; exit 1; fi
        echo B > B.txt; claim"#
    );
    sandbox.run(&agent, &["--verify", "true", "--max-retries", "0"]);
    assert_eq!(sandbox.state_of("B"), "done");
    assert_eq!(sandbox.changed_in("HEAD"), ["B.txt", "PRD.json"]);
    sandbox.assert_clean();
}

#[test]
fn a_loop_whose_repository_is_gone_does_not_go_on_without_it() {
    let sandbox = Sandbox::with_tasks(&["A", "B"]);
    let agent = "echo x > $WIGGUM_TASK_ID.txt; [ $WIGGUM_TASK_ID = A ] || mv .git \"$SANDBOX/taken\"; claim";
    let shared = ["--sandbox", "landlock", "--verify", "true"];
    assert_ne!(sandbox.run(agent, &shared).code(), Some(0));
    for _ in 0..2 {
        sandbox
            .launch(
                &sandbox.root,
                &["run", "--headless", "--agent-command", "sh -c 'echo thinking'", "--verify", "true"],
            )
            .outcome_only()
            .complains(2, &["the git repository of this loop is gone", "hint: put its `.git` back"]);
    }
    std::fs::rename(sandbox.base().join("taken"), sandbox.root.join(".git")).unwrap();
    sandbox.run("echo x > $WIGGUM_TASK_ID.txt; claim", &["--verify", "true"]).exits(0);
    assert_eq!(sandbox.state_of("B"), "done");
}

#[test]
fn a_submodule_that_an_agent_adds_keeps_its_repository() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    let library = sandbox.base().join("library");
    std::fs::create_dir(&library).unwrap();
    sandbox.git_in(&library, &["init", "-q", "-b", "main"]);
    sandbox.git_in(&library, &["commit", "-q", "--allow-empty", "-m", "first"]);
    let agent = "git -c protocol.file.allow=always submodule --quiet add \"$SANDBOX/library\" lib && claim";
    sandbox.run(agent, &["--verify", "test -e lib/.git"]).exits(6);
    sandbox.run(agent, &["--verify", "test -e lib/.git", "--baseline", "go-on"]).exits(0);
    assert!(sandbox.exists(".git/modules/lib/config"));
    assert_eq!(sandbox.git_in(&sandbox.root.join("lib"), &["rev-parse", "--is-inside-work-tree"]), "true");
}
