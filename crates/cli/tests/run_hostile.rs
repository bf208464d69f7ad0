//! Agents that do what they should not: to git, to the backlog, to the checks, to our state.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may fail here")]

mod support;

use support::{Sandbox, WORKER, prd, story};
use wiggum_core::event::{Answer, Event, FlagKind, Request};
use wiggum_core::ids::QuestionId;

/// Does the task, and before that something it should not.
fn worker_that(does: &str) -> String {
    format!("{does}\n{WORKER}")
}

/// Two tasks by such an agent: both complete, in one commit each, on the branch the user was on.
fn completes_all_the_same(does: &str) -> Sandbox {
    completes(does, &[])
}

/// The same where the agent sees the user's own repository.
fn completes_in_shared_repository(does: &str) -> Sandbox {
    completes(does, &["--sandbox", "landlock"])
}

fn completes(does: &str, args: &[&str]) -> Sandbox {
    let sandbox = Sandbox::with_tasks(&["A", "B"]);
    let verify = ["--verify", "test -f $WIGGUM_TASK_ID.txt"];
    sandbox.run(&worker_that(does), &[&verify, args].concat()).exits(0);
    assert_eq!(sandbox.subjects(), ["first", "backlog", "A: Do A", "B: Do B"], "{does}");
    assert_eq!(sandbox.git(&["symbolic-ref", "HEAD"]), "refs/heads/main");
    assert_eq!(sandbox.read("PRD.json").matches("\"passes\": true").count(), 2);
    sandbox.assert_clean();
    sandbox
}

const COMMIT: &str = "git -c user.name=a -c user.email=a@b commit -q --allow-empty -m own";

#[test]
fn an_agents_own_commits_become_part_of_the_tasks() {
    let does = format!("echo own > own-$WIGGUM_TASK_ID.txt; git add -A; {COMMIT}");
    let sandbox = completes_all_the_same(&does);
    assert_eq!(sandbox.changed_in("HEAD"), ["B.txt", "PRD.json", "own-B.txt"]);
    assert!(sandbox.has_flag(FlagKind::AgentCommitted));
}

#[test]
fn a_branch_it_switched_to_is_left() {
    let switches = format!("git checkout -q -b mine-$WIGGUM_TASK_ID; {COMMIT}");
    let sandbox = completes_all_the_same(&switches);
    assert!(sandbox.has_flag(FlagKind::BranchSwitched));
    // In a repository that is shared, the branch itself is not ours to delete.
    let sandbox = completes_in_shared_repository(&switches);
    assert!(sandbox.has_flag(FlagKind::BranchSwitched));
    assert!(sandbox.git(&["branch", "--list", "mine-A"]).contains("mine-A"));
}

#[test]
fn a_detached_head_is_put_back() {
    let sandbox = completes_all_the_same(&format!("git checkout -q --detach; {COMMIT}"));
    assert!(sandbox.has_flag(FlagKind::BranchSwitched));
}

#[test]
fn history_it_threw_away_is_put_back() {
    let sandbox = completes_all_the_same("git reset -q --hard HEAD~1");
    assert!(sandbox.has_flag(FlagKind::BranchSwitched));
    // What A did is still there, though the agent of B undid it.
    assert_eq!(sandbox.read("A.txt"), "A\n");
    assert_eq!(sandbox.changed_in("HEAD"), ["B.txt", "PRD.json"]);
}

#[test]
fn a_branch_it_deleted_is_there_again() {
    completes_all_the_same("git checkout -q --detach; git branch -q -D main");
}

#[test]
fn a_merge_it_left_half_done_is_given_up() {
    let does = r#"git checkout -q -b side; echo side > README; git -c user.name=a -c user.email=a@b commit -qam side
        git checkout -q main; echo other > README; git -c user.name=a -c user.email=a@b commit -qam other
        git -c user.name=a -c user.email=a@b merge -q side; git checkout -q --ours README; git branch -q -D side"#;
    let sandbox = completes_all_the_same(does);
    assert!(!sandbox.exists(".git/MERGE_HEAD"));
}

#[test]
fn what_it_stashed_is_no_harm() {
    completes_all_the_same("echo x > README; git -c user.name=a -c user.email=a@b stash -q");
}

#[test]
fn a_deleted_index_is_made_anew() {
    completes_all_the_same("rm -f .git/index");
}

#[test]
fn the_lock_of_a_git_it_killed_is_removed() {
    completes_all_the_same("touch .git/index.lock .git/HEAD.lock .git/refs/heads/main.lock");
}

#[test]
fn a_file_mode_or_link_it_made_is_work_like_any_other() {
    let sandbox = completes_all_the_same("chmod +x README; ln -sf README link");
    assert!(sandbox.changed_in("HEAD~1").contains(&"link".to_owned()));
}

#[test]
fn a_repository_inside_the_repository_is_no_obstacle() {
    let does = "git init -q inner; cd inner; echo x > x; git add x; \
                git -c user.name=a -c user.email=a@b commit -qm inner; cd ..";
    completes_all_the_same(&format!("test -d inner || {{ {does}; }}"));
}

#[test]
fn state_that_it_deleted_is_restored() {
    let sandbox = completes_in_shared_repository("git clean -q -fdx");
    assert!(sandbox.has_flag(FlagKind::StateTouched));
    assert!(sandbox.has_store() && sandbox.exists(".wiggum/store"));
}

#[test]
fn an_untracked_set_up_that_it_deleted_is_restored() {
    let sandbox = Sandbox::new();
    sandbox.write("PRD.json", &prd(&["A", "B"]));
    sandbox.write("PROMPT.md", "Do it.\n");
    sandbox.write("wiggum.toml", "[limits]\niterations = 7\n");
    sandbox.run(&worker_that("git clean -q -fdx"), &["--verify", "true"]).exits(0);
    assert_eq!(sandbox.subjects(), ["first", "A: Do A", "B: Do B"]);
    assert_eq!(sandbox.read("PROMPT.md"), "Do it.\n");
    assert_eq!(sandbox.read("wiggum.toml"), "[limits]\niterations = 7\n");
    assert_eq!(sandbox.read("PRD.json").matches("\"passes\": true").count(), 2);
}

#[test]
fn a_deleted_prompt_does_not_stop_the_loop() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.write("PROMPT.md", "Do it.\n");
    sandbox.commit_all("prompt");
    let agent = r#"rm -f PROMPT.md; echo half > "half-$WIGGUM_ATTEMPT"; claim"#;
    sandbox.run(agent, &["--baseline", "off", "--verify", "test -f half-2"]).exits(0);
    assert_eq!(sandbox.read("PROMPT.md"), "Do it.\n");
    assert!(sandbox.has_flag(FlagKind::ProtectedPath));
    sandbox.assert_clean();
}

#[test]
fn a_prompt_echoed_after_the_state_was_deleted_is_still_an_echo() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.write(
        "PROMPT.md",
        "Be brief.\n\n## The last line\n\n<promise>COMPLETE</promise>\n\n## Style\n\nAs before.\n",
    );
    sandbox.commit_all("prompt");
    sandbox.run("rm -rf .wiggum; cat", &["--verify", "true", "--max-iterations", "1"]).exits(3);
    assert_eq!(sandbox.state_of("A"), "open");
}

#[test]
fn hooks_and_configuration_it_planted_never_run() {
    let planted = r#"mkdir -p .git/hooks hooks
        for at in .git/hooks/pre-commit .git/hooks/post-commit .git/hooks/post-index-change hooks/pre-commit; do
            printf '#!/bin/sh\necho $0 >> "$SANDBOX/ran"\n' > $at; chmod +x $at
        done
        git config core.hooksPath "$PWD/hooks"
        git config core.fsmonitor "sh -c 'echo fsmonitor >> $SANDBOX/ran'"
        git config filter.evil.clean "sh -c 'echo filter >> $SANDBOX/ran; cat'"
        mkdir -p .git/info; echo '* filter=evil' > .git/info/attributes"#;
    let sandbox = completes_all_the_same(planted);
    assert!(!sandbox.has_note("ran"), "{}", sandbox.note("ran"));
    let sandbox = completes_in_shared_repository(planted);
    assert!(!sandbox.has_note("ran"), "{}", sandbox.note("ran"));
    assert!(sandbox.has_flag(FlagKind::HooksTouched));
    assert!(!sandbox.exists(".git/hooks/pre-commit"));
    assert_eq!(sandbox.git(&["config", "--local", "--list"]).matches("hookspath").count(), 0);
}

#[test]
fn what_a_check_does_to_git_reaches_no_commit() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    let verify = r#"printf '#!/bin/sh\necho ran > "$SANDBOX/ran"\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit"#;
    let args = ["--sandbox", "landlock", "--baseline", "off", "--verify", verify];
    sandbox.run(WORKER, &args).exits(0);
    assert!(!sandbox.has_note("ran"));
    assert!(sandbox.has_flag(FlagKind::HooksTouched));

    let sandbox = Sandbox::with_tasks(&["A"]);
    sandbox
        .run(
            WORKER,
            &[
                "--sandbox",
                "landlock",
                "--baseline",
                "off",
                "--verify",
                "git checkout -q -B elsewhere",
                "--max-iterations",
                "1",
            ],
        )
        .exits(3);
    assert_eq!(sandbox.subjects(), ["first", "backlog"], "nothing lands on a branch nobody chose");
}

#[test]
fn what_the_user_changes_in_git_between_iterations_stays() {
    let sandbox = Sandbox::with_tasks(&["A", "B"]);
    sandbox.write_program(".git/hooks/post-commit", "#!/bin/sh\ngit config remote.origin.url here\n");
    sandbox.run(WORKER, &["--sandbox", "landlock", "--verify", "true"]).exits(0);
    assert_eq!(sandbox.git(&["config", "remote.origin.url"]), "here");
}

#[test]
fn files_of_the_user_that_it_staged_are_not_committed() {
    let sandbox = Sandbox::new();
    sandbox.write("PRD.json", &prd(&["A", "B"]));
    sandbox.write("PROMPT.md", "Do it.\n");
    sandbox.run(&worker_that("git add -A -f ."), &["--verify", "true"]).exits(0);
    assert_eq!(sandbox.changed_in("HEAD"), ["B.txt"]);
    assert_eq!(sandbox.dirt(), "?? PRD.json\n?? PROMPT.md");
}

#[test]
fn the_users_own_hook_survives_an_agent_that_removes_it() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.write_program(".git/hooks/pre-commit", "#!/bin/sh\necho ran >> \"$SANDBOX/ran\"\n");
    sandbox.run(&worker_that("rm -rf .git/hooks"), &["--verify", "true"]).exits(0);
    assert_eq!(sandbox.note("ran"), "ran\n");
}

#[test]
fn statuses_in_a_prd_are_put_back_and_prove_nothing() {
    let sandbox = Sandbox::with_tasks(&["A", "B", "C"]);
    let agent = r#"sed -i 's/"passes": false/"passes": true/' PRD.json; touch a.txt"#;
    sandbox.run(agent, &["--verify", "true", "--max-iterations", "1"]).exits(3);
    assert_eq!(sandbox.read("PRD.json"), prd(&["A", "B", "C"]));
    assert!(sandbox.has_flag(FlagKind::BacklogTouched));
    let put_back = |event: &&Event| matches!(event, Event::StatusPutBack { .. });
    assert_eq!(sandbox.events().iter().filter(put_back).count(), 3);
    assert_eq!(sandbox.state_of("B"), "open");
}

#[test]
fn a_tick_is_a_claim_where_that_is_the_convention_and_is_checked_like_one() {
    let snarktank = r#"{"project":"p","branchName":"ralph/x","userStories":[{"id":"A","title":"a","acceptanceCriteria":["c"],"priority":1,"passes":false,"notes":""},{"id":"B","title":"b","acceptanceCriteria":[],"priority":2,"passes":false,"notes":""}]}"#;
    let plan = "# Plan\n\n- [ ] first thing\n- [ ] second thing\n";
    let ticks = [
        ("prd.json", snarktank, r#"sed -i 's/"passes":false/"passes":true/g' prd.json"#),
        ("fix_plan.md", plan, "sed -i 's/- \\[ \\]/- [x]/' fix_plan.md"),
    ];
    for (name, text, tick) in ticks {
        let sandbox = Sandbox::new();
        sandbox.write(name, text);
        sandbox.commit_all("backlog");
        // Both boxes are ticked; only its own is a claim, and the check refutes that.
        let agent = format!("{tick}; touch work.txt");
        sandbox
            .run(&agent, &["--baseline", "off", "--verify", "false", "--max-iterations", "1"])
            .exits(3)
            .says("claimed, but not done");
        assert_eq!(sandbox.read(name), text);
        let put_back = |event: &&Event| matches!(event, Event::StatusPutBack { .. });
        assert_eq!(sandbox.events().iter().filter(put_back).count(), 1, "{name}");

        sandbox.run(&agent, &["--baseline", "off", "--verify", "true", "--max-iterations", "1"]).exits(3);
        assert_eq!(sandbox.state().tasks.counts().done, 1, "{name}");
        sandbox.assert_clean();
    }
}

#[test]
fn a_backlog_it_broke_or_deleted_comes_back() {
    let breaks = [
        "echo '{' > PRD.json",
        "rm PRD.json",
        "printf '\\377' > PRD.json",
        ": > PRD.json",
        "rm PRD.json; mkdir PRD.json",
    ];
    for does in breaks {
        let sandbox = completes_all_the_same(does);
        assert!(sandbox.has_flag(FlagKind::BacklogTouched), "{does}");
    }
}

#[test]
fn a_task_it_added_as_done_is_still_to_be_done() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    let added = r#"sed -i 's/"userStories": \[/&{"id":"B","title":"b","passes":true},/' PRD.json"#;
    let agent = format!("[ \"$WIGGUM_TASK_ID\" = B ] || {added}; touch \"$WIGGUM_TASK_ID\"; claim");
    sandbox.run(&agent, &["--verify", "true"]).exits(0);
    assert_eq!(sandbox.worked_on(), ["A", "B"]);
}

#[test]
fn a_task_it_added_is_taken_in() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    let added = story("X", "");
    let agent = worker_that(&format!(
        r#"[ $WIGGUM_TASK_ID = X ] || sed -i 's/^  \]/, {} ]/' PRD.json"#,
        added.replace('"', "\\\"").replace("\\\"", "\"")
    ));
    sandbox.run(&agent, &["--verify", "true"]).exits(0);
    assert_eq!(sandbox.worked_on(), ["A", "X"]);
    sandbox.assert_clean();
}

#[test]
fn more_tasks_than_the_limit_are_refused() {
    let agent = r#"
        [ $WIGGUM_TASK_ID = A ] && {
          echo '{"userStories":[{"id":"A","title":"Do A","passes":false}'
          i=0; while [ $i -lt 600 ]; do echo ",{\"id\":\"N$i\",\"title\":\"n $i\",\"passes\":false}"; i=$((i+1)); done
          echo ']}'; } > PRD.json
        touch $WIGGUM_TASK_ID.txt; claim"#;
    let sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.write("wiggum.toml", "[limits]\nmax_tasks = 3\n");
    sandbox.commit_all("limit");
    sandbox.run(agent, &["--verify", "true"]).exits(0);
    assert_eq!(sandbox.worked_on(), ["A", "N0", "N1"]);
    assert_eq!(sandbox.read("PRD.json").matches("true").count(), 3);
    assert!(!sandbox.read("PRD.json").contains("N2"));
    let said = |part: &str| sandbox.flags().iter().filter(|flag| flag.detail.contains(part)).count();
    assert_eq!((said("more than the 3 tasks"), said("578 more tasks were refused")), (20, 1));
}

#[test]
fn what_is_there_already_is_not_added_again() {
    let agent = worker_that("[ $WIGGUM_TASK_ID = T1 ] && printf -- '- [ ] do b!\n- [ ] do C\n' >> TODO.md");
    let sandbox = Sandbox::new();
    sandbox.write("TODO.md", "- [ ] T1: Do A\n- [ ] T2: Do B\n");
    sandbox.commit_all("backlog");
    sandbox.run(&agent, &["--verify", "true"]).exits(0);
    assert_eq!(sandbox.read("TODO.md"), "- [x] T1: Do A\n- [x] T2: Do B\n- [x] do C\n");
    assert!(sandbox.flags().iter().any(|flag| flag.detail.contains("`do-b` says the same as `T2`")));
}

/// Four open tasks in every kind of file, as it is before and after all of them were done.
fn backlogs_of_four() -> [(&'static str, String, String); 3] {
    let markdown = "# Work\n\n- [ ] T1: one\n\n## Later\n\n- [ ] T2: two\n  more\n- [ ] T3: three\n- [ ] T4: four\n\nEnd.\n";
    let item = |n: usize| {
        format!("  {{ \"id\": \"T{n}\",\"description\": \"do {n}\", \"status\": \"pending\", \"x\": 1.50 }}")
    };
    let tasks = format!("[\n{}\n]\n", (1..=4).map(item).collect::<Vec<_>>().join(",\n"));
    let stories = prd(&["T1", "T2", "T3", "T4"]);
    [
        ("TODO.md", markdown.to_owned(), markdown.replace("[ ]", "[x]")),
        ("tasks.json", tasks.clone(), tasks.replace("pending", "completed")),
        ("prd.json", stories.clone(), stories.replace("false", "true")),
    ]
}

/// Without the times at which tasks were tried.
fn without_times(text: &str) -> String {
    let mut parts = text.split(r#" "last_attempt_at": "#);
    let first = parts.next().unwrap().to_owned();
    parts.fold(first, |text, part| text + part.trim_start_matches(|c: char| c.is_ascii_digit() || c == ','))
}

#[test]
fn a_backlog_is_not_finished_by_deleting_it() {
    let thin_out = r#"case $1 in
        *.md) grep -v 'T[2-4]:\|  more' $1 > "$SANDBOX/less" ;;
        *) python3 - $1 > "$SANDBOX/less" <<'EOF'
import json, sys
data = json.load(open(sys.argv[1]))
holder = data if isinstance(data, list) else data["userStories"]
holder[:] = [task for task in holder if task["id"] == "T1"]
print(json.dumps(data))
EOF
        esac; cp "$SANDBOX/less" $1"#;
    let ways = [thin_out, ": > $1", "rm $1", "echo '# Nothing left to do' > $1", "echo '[]' > $1"];
    for (file, before, after) in backlogs_of_four() {
        for way in ways {
            let sandbox = Sandbox::new();
            sandbox.write(file, &before);
            sandbox.commit_all("backlog");
            let agent = format!(
                "set -- {file}\n[ $WIGGUM_TASK_ID = T1 ] && {{ {way}\n}}\necho x > $WIGGUM_TASK_ID.txt; claim"
            );
            let run = sandbox.run(&agent, &[file, "--verify", "true"]).exits(0);
            assert_eq!(sandbox.worked_on(), ["T1", "T2", "T3", "T4"], "{file}: {way}\n{}", run.stderr);
            if way != thin_out || file == "TODO.md" {
                assert_eq!(without_times(&sandbox.read(file)), after, "{way}");
            }
            if way == thin_out {
                let said = "`T2`, `T3`, `T4` were taken out and are still to be done; put back";
                assert!(
                    sandbox.flags().iter().any(|flag| flag.detail.starts_with(said)),
                    "{:?}",
                    sandbox.flags()
                );
                run.says("`wiggum task delete ID` takes a task out for good");
            }
            sandbox.assert_clean();
        }
    }
}

#[test]
fn a_task_that_was_split_stays_beside_its_parts() {
    let sandbox = Sandbox::new();
    sandbox.write("TODO.md", "- [ ] T1: one\n- [ ] T2: all of it\n- [x] T0: before\n");
    sandbox.commit_all("backlog");
    // What is done may be tidied away.
    let agent = worker_that(
        "[ $WIGGUM_TASK_ID = T1 ] && { sed -i '/T2/d; /T0/d' TODO.md; printf -- '- [ ] T3: half\n- [ ] T4: rest\n' >> TODO.md; }",
    );
    sandbox.run(&agent, &["--verify", "true"]).exits(0);
    assert_eq!(sandbox.worked_on(), ["T1", "T2", "T3", "T4"]);
    assert_eq!(
        sandbox.read("TODO.md"),
        "- [x] T1: one\n- [x] T2: all of it\n- [x] T3: half\n- [x] T4: rest\n"
    );
    assert!(!sandbox.flags().iter().any(|flag| flag.detail.contains("T0")), "{:?}", sandbox.flags());
}

#[test]
fn what_a_check_runs_neither_takes_tasks_out_nor_ticks_them() {
    for does in ["sed -i '/T2/d' TODO.md", "sed -i 's/ ] T2/x] T2/' TODO.md"] {
        let sandbox = Sandbox::new();
        sandbox.write("TODO.md", "- [ ] T1: one\n- [ ] T2: two\n- [ ] T3: three\n");
        sandbox.commit_all("backlog");
        let verify = format!("test -e \"$SANDBOX/once\" || {{ touch \"$SANDBOX/once\"; {does}; }}");
        sandbox.run(WORKER, &["--verify", &verify, "--baseline", "off"]).exits(0);
        assert_eq!(sandbox.worked_on(), ["T1", "T2", "T3"], "{does}");
        assert_eq!(sandbox.read("TODO.md"), "- [x] T1: one\n- [x] T2: two\n- [x] T3: three\n", "{does}");
    }
}

#[test]
fn whoever_edits_the_check_has_no_verdict() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.write_program("verify.sh", "#!/bin/sh\ntest -f result.txt\n");
    sandbox.commit_all("check");
    let agent = r#"keep_prompt
        if [ "$WIGGUM_ATTEMPT" = 1 ]; then echo 'exit 0' > verify.sh
        else git checkout -q HEAD verify.sh; touch result.txt; fi
        claim"#;
    for (name, verify) in [("one", "sh verify.sh"), ("two", "./verify.sh")] {
        sandbox.run(agent, &["--name", name, "--baseline", "off", "--verify", verify]).exits(0);
        assert!(sandbox.prompt("A", 2).contains("verify.sh"), "{}", sandbox.prompt("A", 2));
        assert_eq!(sandbox.changed_in("HEAD"), ["PRD.json", "result.txt"]);
        sandbox.git(&["reset", "-q", "--hard", "HEAD~1"]);
    }
}

const TEST_FILE: &str =
    "#[test]\nfn one() {\n    assert_eq!(1, 1);\n}\n\n#[test]\nfn two() {\n    assert!(true);\n}\n";

fn sandbox_with_tests(policy: &str) -> Sandbox {
    let sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.write("tests/things.rs", TEST_FILE);
    sandbox.write("wiggum.toml", &format!("[protect]\non_weakened_tests = \"{policy}\"\n"));
    sandbox.commit_all("tests");
    sandbox
}

#[test]
fn a_deleted_test_is_flagged() {
    let sandbox = sandbox_with_tests("warn");
    sandbox.run("rm tests/things.rs; touch a.txt; claim", &["--verify", "true"]).exits(0).says("things.rs");
    assert!(sandbox.has_flag(FlagKind::WeakenedTests));
}

#[test]
fn a_deleted_test_is_refused_if_the_policy_says_so() {
    let sandbox = sandbox_with_tests("refuse");
    let agent = r#"keep_prompt; touch a.txt
        if [ "$WIGGUM_ATTEMPT" = 1 ]; then rm tests/things.rs; else git checkout -q HEAD tests; fi; claim"#;
    sandbox.run(agent, &["--verify", "true"]).exits(0);
    assert!(sandbox.prompt("A", 2).contains("tests/things.rs"));
    assert_eq!(sandbox.changed_in("HEAD"), ["PRD.json", "a.txt"]);
}

#[test]
fn a_deleted_test_is_asked_about_if_the_policy_says_so() {
    let sandbox = sandbox_with_tests("ask");
    let agent = "rm -f tests/things.rs; touch a.txt; claim";
    sandbox.run(agent, &["--verify", "true"]).exits(6).says("things.rs");
    assert_eq!(sandbox.state_of("A"), "parked");
    sandbox.assert_clean();
    let approve = Answer::Option { number: 1 };
    sandbox.ask(&Request::Answer { question: QuestionId(1), answer: approve });
    sandbox.run(agent, &["--verify", "true"]).exits(0);
    assert_eq!(sandbox.changed_in("HEAD"), ["PRD.json", "a.txt", "tests/things.rs"]);
}

#[test]
fn what_was_accepted_lands_without_another_agent() {
    let sandbox = sandbox_with_tests("ask");
    sandbox.run("rm -f tests/things.rs; touch a.txt; claim", &["--verify", "true"]).exits(6);
    sandbox.ask(&Request::Answer { question: QuestionId(1), answer: Answer::Option { number: 1 } });
    // Whoever worked now would do something else.
    sandbox.run("rm -rf tests; touch b.txt; claim", &["--verify", "true"]).exits(0).says("A done");
    assert_eq!(sandbox.changed_in("HEAD"), ["PRD.json", "a.txt", "tests/things.rs"]);
    assert!(!sandbox.exists("b.txt"));
    sandbox.assert_clean();
}

#[test]
fn an_approval_holds_for_what_was_approved_and_not_for_ever() {
    let sandbox = sandbox_with_tests("ask");
    sandbox.write("tests/others.rs", TEST_FILE);
    sandbox.commit_all("other tests");
    sandbox.run("rm -f tests/things.rs; claim", &["--verify", "true"]).exits(6);
    sandbox.ask(&Request::Answer { question: QuestionId(1), answer: Answer::Option { number: 1 } });
    // Somebody else touches the same file meanwhile: the accepted work does not fit any more, and the next
    // attempt also removes what nobody was asked about.
    sandbox.write("tests/things.rs", "// rewritten\n#[test]\nfn one() {\n    assert_eq!(2, 2);\n}\n");
    sandbox.commit_all("rewritten");
    sandbox.run("rm -f tests/*.rs; claim", &["--verify", "true"]).exits(6);
    assert_eq!(sandbox.state_of("A"), "parked");
}

/// What is put back is not written through a link that an agent left in the place of the file.
#[test]
fn a_backlog_replaced_by_a_link_overwrites_nothing() {
    let does =
        r#"test $WIGGUM_TASK_ID = B || { mv PRD.json moved.json; ln -s "$SANDBOX/precious" PRD.json; }"#;
    let sandbox = Sandbox::with_tasks(&["A", "B"]);
    std::fs::write(sandbox.base().join("precious"), "mine\n").unwrap();
    sandbox.run(&worker_that(does), &["--sandbox", "none", "--verify", "true"]).exits(0);
    assert_eq!(sandbox.note("precious"), "mine\n");
    assert!(!sandbox.root.join("PRD.json").is_symlink());
    assert_eq!(sandbox.read("PRD.json").matches("\"passes\": true").count(), 2);
    assert!(sandbox.has_flag(FlagKind::BacklogTouched));
}

#[test]
fn a_backlog_behind_a_link_of_the_users_own_is_worked_off_and_stays_one() {
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.base().join("kept.json"), prd(&["A", "B"])).unwrap();
    std::os::unix::fs::symlink("../kept.json", sandbox.root.join("PRD.json")).unwrap();
    sandbox.commit_all("backlog");
    sandbox.run(WORKER, &["PRD.json", "--sandbox", "none", "--verify", "true"]).exits(0);
    assert!(sandbox.root.join("PRD.json").is_symlink());
    assert_eq!(sandbox.note("kept.json").matches("\"passes\": true").count(), 2);
}

/// Whoever opens a pipe waits until somebody writes to it.
#[test]
fn pipes_in_the_place_of_files_keep_nobody_waiting() {
    for pipe in ["PRD.json", ".gitignore", "sub/.gitignore", ".gitattributes", "wiggum.toml", "README"] {
        let does = format!("mkdir -p sub; rm -f {pipe}; mkfifo {pipe}");
        let sandbox = Sandbox::with_tasks(&["A"]);
        let run = sandbox.run(&worker_that(&does), &["--sandbox", "none", "--verify", "true"]);
        assert!(run.code().is_some_and(|code| [0, 3, 4, 5, 6].contains(&code)), "{pipe}: {}", run.stderr);
        assert_eq!(sandbox.read("PRD.json").matches("A").count(), 2, "{pipe}");
    }
    // In a repository that is shared, what git needs is put back first.
    for pipe in ["packed-refs", "HEAD", "refs/heads/main"] {
        let sandbox = Sandbox::with_tasks(&["A"]);
        sandbox.git(&["tag", "kept"]);
        sandbox.git(&["pack-refs", "--all"]);
        let does = worker_that(&format!("rm -f .git/{pipe}; mkfifo .git/{pipe}"));
        sandbox.run(&does, &["--sandbox", "none", "--verify", "true"]).exits(0);
        assert_eq!(sandbox.subjects(), ["first", "backlog", "A: Do A"], "{pipe}");
        assert_eq!(sandbox.git(&["tag"]), "kept", "{pipe}");
        assert!(sandbox.has_flag(FlagKind::HooksTouched), "{pipe}");
    }
}

/// An agent may word other tasks better, and may take the work out of them: people see what was there.
#[test]
fn a_task_that_an_agent_rewords_is_told_with_what_it_said() {
    let sandbox = Sandbox::new();
    sandbox.write("TODO.md", "- [ ] **T1**: Add it\n- [ ] **T2**: Write docs of twenty lines\n");
    sandbox.commit_all("backlog");
    let agent = "[ $WIGGUM_TASK_ID = T2 ] || sed -i 's/Write docs of twenty lines/Nothing to do/' TODO.md
        echo x > $WIGGUM_TASK_ID; claim";
    sandbox.run(agent, &["--verify", "true"]).exits(0);
    let told = "reworded T2, which said: Write docs of twenty lines";
    assert!(sandbox.flags().iter().any(|flag| flag.detail == told), "{:?}", sandbox.flags());
    sandbox.wiggum(&["report"]).exits(0).says("reworded T2");
}

/// Task Master keeps which of its lists is current in a file of its own.
#[test]
fn a_pipe_beside_a_list_keeps_nobody_waiting() {
    let tasks = r#"{"master": {"tasks": [
        {"id": 1, "title": "One", "description": "one", "status": "pending", "dependencies": []},
        {"id": 2, "title": "Two", "description": "two", "status": "pending", "dependencies": []}]}}"#;
    let sandbox = Sandbox::new();
    sandbox.write(".taskmaster/tasks/tasks.json", tasks);
    sandbox.write(".taskmaster/state.json", r#"{"currentTag": "master"}"#);
    sandbox.commit_all("tasks");
    let does = worker_that("rm -f .taskmaster/state.json; mkfifo .taskmaster/state.json");
    let run = sandbox.run(&does, &["--sandbox", "none", "--verify", "true"]);
    run.exits(0);
    assert_eq!(sandbox.read(".taskmaster/tasks/tasks.json").matches("done").count(), 2);
}

/// Put there by a check, and met by commands that nobody attends to.
#[test]
fn a_pipe_that_a_check_leaves_keeps_nobody_waiting() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    let check = "rm -f .gitignore; mkfifo .gitignore";
    sandbox.run(WORKER, &["--baseline", "off", "--max-iterations", "1", "--verify", check]);
    assert!(!sandbox.exists(".gitignore"), "{:?}", sandbox.flags());
    sandbox.make_pipe("repo/.gitattributes");
    for command in [&["show", "A"][..], &["doctor"], &["report"]] {
        drop(sandbox.wiggum(command));
    }
}

#[test]
fn a_run_does_not_begin_with_a_pipe_where_a_file_should_be() {
    for (code, pipe, args) in [
        (2, ".gitignore", &["run", "--headless", "--agent-command", "true"][..]),
        (2, "PRD.json", &["run", "PRD.json", "--headless", "--agent-command", "true"]),
        (2, "wiggum.toml", &["run", "--headless", "--agent-command", "true"]),
        (1, ".gitignore", &["init"]),
    ] {
        let sandbox = Sandbox::with_tasks(&["A"]);
        drop(std::fs::remove_file(sandbox.root.join(pipe)));
        sandbox.make_pipe(&format!("repo/{pipe}"));
        sandbox.wiggum(args).complains(code, &[pipe]);
    }
    // What is looked at to find out how a project is built tells nothing, and no more.
    let sandbox = Sandbox::with_tasks(&["A"]);
    for pipe in ["package.json", "Makefile", "Cargo.toml", "pyproject.toml"] {
        sandbox.make_pipe(&format!("repo/{pipe}"));
    }
    sandbox.run(WORKER, &["--max-iterations", "1"]);
    sandbox.wiggum(&["doctor"]);
}
