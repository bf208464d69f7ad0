//! Interrupted, killed, limited, contended: `wiggum run` again goes on exactly there, and nothing an
//! agent started outlives its iteration.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may fail here")]

mod support;

use std::path::Path;

use support::{Sandbox, WORKER};
use wiggum_core::checker;
use wiggum_core::event::{Event, Exit, Request};

const RESUMED: fn(&Event) -> bool = |event| matches!(event, Event::RunResumed { .. });
const INTERRUPTED: fn(&Event) -> bool = |event| matches!(event, Event::Interrupted { .. });

/// Leaves a file in the tree and hangs, the first time; works the second time.
const HANGS_ONCE: &str = r#"
    echo "$WIGGUM_TASK_ID $WIGGUM_ITERATION $WIGGUM_ATTEMPT" >> "$SANDBOX/calls"
    if [ "$WIGGUM_TASK_ID" = B ] && [ ! -e "$SANDBOX/hung" ]; then
        touch "$SANDBOX/hung"; echo half > half.txt; hang
    fi
    echo "$WIGGUM_TASK_ID" > "$WIGGUM_TASK_ID.txt"; claim"#;

#[test]
fn a_signal_ends_the_agent_keeps_the_state_and_costs_nothing() {
    for signal in ["INT", "TERM", "HUP"] {
        let sandbox = Sandbox::with_tasks(&["A", "B"]);
        sandbox.make_pipe("ready");
        let started = sandbox.start(HANGS_ONCE, &["--verify", "true", "--max-iterations", "2"]);
        sandbox.wait_ready();
        started.signal(signal);
        started.finish().exits(130);
        sandbox.assert_clean();

        sandbox.run(HANGS_ONCE, &["--verify", "true", "--max-iterations", "2"]).exits(0);
        assert_eq!(sandbox.note("calls"), "A 1 1\nB 2 1\nB 2 1\n");
        assert_eq!(sandbox.events().iter().filter(|event| RESUMED(event)).count(), 1);
        assert_eq!(sandbox.state().run.number, 1);
        assert_eq!(sandbox.subjects(), ["first", "backlog", "A: Do A", "B: Do B"]);
        // What the interrupted attempt had done is no part of the next one, but not lost.
        assert_eq!(sandbox.changed_in("HEAD"), ["B.txt", "PRD.json"]);
        let refs = sandbox.git(&["for-each-ref", "--format=%(refname)", "refs/wiggum/"]);
        let kept = refs.lines().find(|name| name.contains("interrupted")).expect(&refs);
        assert_eq!(sandbox.git(&["show", &format!("{kept}:half.txt")]), "half");
    }
}

#[test]
fn a_checkout_that_was_moved_goes_on_where_it_was() {
    let mut sandbox = Sandbox::with_tasks(&["A", "B", "C"]);
    sandbox.make_pipe("ready");
    let started = sandbox.start(HANGS_ONCE, &["--verify", "true"]);
    sandbox.wait_ready();
    started.signal("KILL");
    started.outcome_only();
    let (id, spent) = (sandbox.loop_id(), sandbox.state().iterations);
    let former = sandbox.root.display().to_string();
    sandbox.move_to("elsewhere");
    assert_eq!(sandbox.loop_id(), id);
    let status = sandbox.launch(&sandbox.root, &["status"]).outcome_only().exits(0).says("1/3 done");
    assert_eq!(status.stdout.matches("PRD.json").count(), 1, "one loop: {}", status.stdout);
    let told = format!("this loop last ran in {former}, which was moved: it goes on in ");
    let went_on = sandbox.run(HANGS_ONCE, &["--verify", "true"]).exits(0).says("All tasks complete");
    went_on.says(&told);
    assert_eq!(sandbox.note("calls"), "A 1 1\nB 2 1\nB 2 1\nC 3 1\n");
    assert_eq!((sandbox.loop_id(), sandbox.state().run.number, spent), (id, 1, 2));
    assert_eq!(sandbox.state().repository, sandbox.root.display().to_string());
    assert_eq!(sandbox.subjects(), ["first", "backlog", "A: Do A", "B: Do B", "C: Do C"]);
    sandbox.assert_clean();

    // A copy is another checkout, with loops of its own.
    let copy = sandbox.base().join("copy");
    assert!(sandbox.command("cp").arg("-a").arg(&sandbox.root).arg(&copy).status().unwrap().success());
    let command = sandbox.agent(WORKER);
    let again = ["run", "--headless", "--agent-command", &command, "--verify", "true", "--json"];
    sandbox.wiggum_in(&copy, &again).exits(0).says("\"run\":1").says("this is a copy of ");
    assert_eq!(sandbox.loop_id(), id);
    assert_ne!(sandbox.state_dir_of(&copy).unwrap().path(), sandbox.state_dir().path());
}

#[test]
fn ctrl_c_during_a_check_keeps_the_attempt() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.make_pipe("ready");
    let agent = format!("echo call >> \"$SANDBOX/calls\"\n{WORKER}");
    let verify =
        r#"test -e "$SANDBOX/hung" || { touch "$SANDBOX/hung"; echo x > "$SANDBOX/ready"; sleep 1000; }"#;
    let started = sandbox.start(&agent, &["--baseline", "off", "--verify", verify]);
    sandbox.wait_ready();
    started.signal("INT");
    started.finish().exits(130);
    sandbox.assert_clean();
    assert!(!sandbox.exists("A.txt"), "the tree is as it was before the attempt");
    sandbox.run(&agent, &["--baseline", "off", "--verify", verify]).exits(0).never_says("while nobody ran");
    assert_eq!(sandbox.note("calls"), "call\n", "the agent's work was not thrown away");
    assert_eq!(sandbox.changed_in("HEAD"), ["A.txt", "PRD.json"]);
    sandbox.assert_clean();
}

/// Hangs the first time, having written to the tree.
const CHECK_HANGS_ONCE: &str = r#"test -e "$SANDBOX/hung" || { touch "$SANDBOX/hung"; echo x > left.txt; echo x > "$SANDBOX/ready"; sleep 1000; }"#;

#[test]
fn a_commit_while_an_attempt_waits_for_its_checks_stays() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.make_pipe("ready");
    let agent = format!("echo call >> \"$SANDBOX/calls\"\n{WORKER}");
    let args = ["--baseline", "off", "--verify", CHECK_HANGS_ONCE];
    let started = sandbox.start(&agent, &args);
    sandbox.wait_ready();
    started.signal("INT");
    started.finish().exits(130);
    sandbox.assert_clean();
    sandbox.write("mine.txt", "mine\n");
    sandbox.commit_all("mine");
    sandbox.run(&agent, &args).exits(0);
    assert_eq!(sandbox.note("calls"), "call\n");
    assert_eq!(sandbox.subjects(), ["first", "backlog", "mine", "A: Do A"]);
    assert_eq!(sandbox.changed_in("HEAD"), ["A.txt", "PRD.json"]);
    sandbox.assert_clean();

    // Where the two do not fit, the task is worked on again, on top of what was committed.
    let sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.make_pipe("ready");
    let started = sandbox.start(&agent, &args);
    sandbox.wait_ready();
    started.signal("INT");
    started.finish().exits(130);
    sandbox.write("A.txt", "mine\n");
    sandbox.commit_all("mine");
    sandbox.run(&agent, &args).exits(0).says("does not fit");
    assert_eq!(sandbox.note("calls"), "call\ncall\n");
    assert_eq!(sandbox.subjects(), ["first", "backlog", "mine", "A: Do A"]);
    sandbox.assert_clean();
}

#[test]
fn what_a_user_does_while_an_attempt_waits_for_its_checks_is_not_lost() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.make_pipe("ready");
    let verify =
        r#"test -e "$SANDBOX/hung" || { touch "$SANDBOX/hung"; echo x > "$SANDBOX/ready"; sleep 1000; }"#;
    let started = sandbox.start(WORKER, &["--baseline", "off", "--verify", verify]);
    sandbox.wait_ready();
    started.signal("INT");
    started.finish().exits(130);
    sandbox.write("README", "my own edit\n");
    sandbox.write("mine.txt", "mine\n");
    sandbox.run(WORKER, &["--baseline", "off", "--verify", verify]).exits(0).says("refs/wiggum/");
    assert_eq!(sandbox.changed_in("HEAD"), ["A.txt", "PRD.json"]);
    let refs = sandbox.git(&["for-each-ref", "--format=%(refname)", "refs/wiggum/"]);
    let kept = |path: &str, text: &str| {
        refs.lines().any(|name| {
            let shown = sandbox
                .command("git")
                .current_dir(&sandbox.root)
                .args(["show", &format!("{name}:{path}")])
                .output();
            String::from_utf8_lossy(&shown.unwrap().stdout) == text
        })
    };
    assert!(kept("README", "my own edit\n") && kept("mine.txt", "mine\n"), "{refs}");
}

#[test]
fn ctrl_c_during_a_check_puts_set_aside_changes_back() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.write("README", "my own words\n");
    sandbox.make_pipe("ready");
    let verify =
        r#"test -e "$SANDBOX/hung" || { touch "$SANDBOX/hung"; echo x > "$SANDBOX/ready"; sleep 1000; }"#;
    let started = sandbox.start(WORKER, &["--verify", verify, "--allow-dirty"]);
    sandbox.wait_ready();
    started.signal("INT");
    started.finish().exits(130);
    assert_eq!(sandbox.dirt(), " M README");
    assert_eq!(sandbox.read("README"), "my own words\n");
    sandbox.run(WORKER, &["--verify", verify, "--allow-dirty"]).exits(0);
    assert_eq!(sandbox.dirt(), " M README");
    assert_eq!(sandbox.changed_in("HEAD"), ["A.txt", "PRD.json"]);
}

#[test]
fn a_second_ctrl_c_is_in_a_hurry() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.make_pipe("ready");
    let started = sandbox.start("trap '' INT TERM; ready; while :; do sleep 1; done", &[]);
    sandbox.wait_ready();
    let before = std::time::Instant::now();
    started.signal("INT");
    started.signal("TERM");
    started.finish().exits(130);
    assert!(before.elapsed().as_secs() < 3, "it did not wait for the grace periods: {:?}", before.elapsed());
}

#[test]
fn after_a_limit_the_next_run_has_fresh_limits_and_the_rest() {
    let sandbox = Sandbox::with_tasks(&["A", "B", "C"]);
    for (code, done) in [(3, 1), (3, 2), (0, 3)] {
        sandbox.run(WORKER, &["--verify", "true", "--max-iterations", "1"]).exits(code);
        assert_eq!(sandbox.state().tasks.counts().done, done);
    }
    assert_eq!(sandbox.worked_on(), ["A", "B", "C"]);
    assert_eq!(sandbox.state().run.number, 3);
}

#[test]
fn only_one_engine_works_on_a_loop() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.make_pipe("ready");
    sandbox.make_pipe("go");
    let agent = format!("ready; wait_for_go; {WORKER}");
    let first = sandbox.start(&agent, &["--verify", "true"]);
    sandbox.wait_ready();
    let before = sandbox.journal().len();
    let other = sandbox.agent_named("other", "echo other > other.txt; claim");
    let args = ["run", "--headless", "--agent-command", &other];
    let second = sandbox.launch(&sandbox.root, &args).outcome_only();
    second.complains(2, &[&first.pid(), "hint:"]);
    assert_eq!(sandbox.journal().len(), before);
    sandbox.go();
    first.finish().exits(0);
    assert_eq!(sandbox.changed_in("HEAD"), ["A.txt", "PRD.json"]);
}

#[test]
fn after_kill_9_the_orphans_are_ended_and_the_attempt_is_made_again() {
    let orphans = [
        ("a plain child", "hang"),
        ("its own session", "setsid sh -c 'echo $$ > $SANDBOX/ready; exec sleep 1000' & wait"),
        ("no environment", "env -i setsid sleep 1000 & echo $! > $SANDBOX/ready; wait"),
    ];
    for (name, agent) in orphans {
        let sandbox = Sandbox::with_tasks(&["A"]);
        sandbox.make_pipe("ready");
        let agent = format!(
            r#"echo "$WIGGUM_ITERATION $WIGGUM_ATTEMPT" >> "$SANDBOX/calls"
            if [ -e "$SANDBOX/orphan" ]; then
                grep -qs '^State:.[^ZX]' "/proc/$(cat "$SANDBOX/orphan")/status" && touch "$SANDBOX/orphan-met"
            fi
            if [ ! -e "$SANDBOX/hung" ]; then touch "$SANDBOX/hung"; echo half > half.txt; {agent}; fi
            test ! -e half.txt && touch a.txt && claim"#
        );
        let started = sandbox.start(&agent, &["--verify", "true"]);
        std::fs::write(sandbox.base().join("orphan"), sandbox.wait_ready()).unwrap();
        started.kill_with_watchdog();
        assert!(!sandbox.processes().is_empty(), "{name}: it should be an orphan now");
        // A person's, who cannot know that it will be taken for the agent's.
        sandbox.write("mine.txt", "mine\n");
        let words = "what was in the work tree is kept under refs/wiggum/";
        sandbox.run(&agent, &["--verify", "true"]).exits(0).says(words).says("half.txt, mine.txt");
        assert_eq!(sandbox.note("calls"), "1 1\n1 1\n", "{name}");
        assert!(!sandbox.has_note("orphan-met"), "{name}: it should be gone before the next agent starts");
        assert!(sandbox.events().iter().any(INTERRUPTED));
        assert_eq!(sandbox.changed_in("HEAD"), ["PRD.json", "a.txt"], "{name}");
        sandbox.assert_clean();
    }
}

#[test]
fn a_tick_left_by_a_killed_agent_is_no_completion() {
    let sandbox = Sandbox::new();
    let plan = "- [ ] first thing\n- [ ] second thing\n";
    sandbox.write("fix_plan.md", plan);
    sandbox.commit_all("backlog");
    sandbox.make_pipe("ready");
    let started = sandbox.start("sed -i 's/\\[ \\]/[x]/' fix_plan.md; hang", &["--verify", "true"]);
    sandbox.wait_ready();
    started.kill();
    sandbox.run("echo nothing", &["--verify", "true", "--max-iterations", "1"]).exits(3);
    assert_eq!(sandbox.read("fix_plan.md"), plan);
    assert_eq!(sandbox.state().tasks.counts().done, 0);
}

/// Its agent does not go when asked to, so the engine is killed between the decision and its effect.
#[test]
fn a_skip_of_the_task_that_is_worked_on_outlives_the_engine() {
    let sandbox = Sandbox::with_tasks(&["A", "B"]);
    sandbox.make_pipe("ready");
    let agent = format!("[ $WIGGUM_TASK_ID = A ] && {{ trap '' INT TERM; hang; }}\n{WORKER}");
    let started = sandbox.start(&agent, &["--verify", "true"]);
    sandbox.wait_ready();
    sandbox.ask(&Request::Skip { task: "A".into() });
    sandbox.wait_for(|event| matches!(event, Event::SkipAsked { .. }));
    started.kill_with_watchdog();
    sandbox.run(WORKER, &["--verify", "true"]).exits(0);
    assert_eq!(sandbox.state_of("A"), "skipped");
    assert_eq!(sandbox.worked_on(), ["A", "B"], "A in the run that was killed only");
    let skipped = |event: &&Event| matches!(event, Event::TaskSkipped { .. });
    assert_eq!(sandbox.events().iter().filter(skipped).count(), 1);
    sandbox.assert_clean();
}

/// A power cut between the backlog's new text and the commit may take the saved index with it, or leave an empty
/// file: "done" in the backlog is then ours, and not yet true.
#[test]
fn what_was_not_committed_is_not_done_although_the_backlog_says_so() {
    let agent = r#"echo "$WIGGUM_TASK_ID" >> "$SANDBOX/calls"; echo "$WIGGUM_TASK_ID" > "$WIGGUM_TASK_ID.txt"; claim"#;
    let lose: fn(&Path) = |index| std::fs::remove_file(index).unwrap();
    let empty: fn(&Path) = |index| {
        // Not through a link that git's own index shares.
        std::fs::remove_file(index).unwrap();
        std::fs::write(index, "").unwrap();
    };
    let keep: fn(&Path) = |_| {};
    for (point, harm, agents) in [
        ("backlog written", lose, "A\nA\nB\n"),
        ("backlog written", empty, "A\nA\nB\n"),
        // With the index, the tree that was checked is checked again, and no agent works twice.
        ("backlog written", keep, "A\nB\n"),
        // The commit is there: what it took is not needed any more.
        ("committed", lose, "A\nB\n"),
        ("committed", keep, "A\nB\n"),
    ] {
        let mut sandbox = Sandbox::with_tasks(&["A", "B"]);
        sandbox.env("WIGGUM_CRASH_AT", point);
        let command = sandbox.agent(agent);
        let args = ["run", "--headless", "--agent-command", &command, "--verify", "test -f README"];
        sandbox.launch(&sandbox.root, &args).outcome_only();
        assert_eq!(sandbox.read("PRD.json").matches("\"passes\": true").count(), 1, "{point}");
        harm(&sandbox.state_dir().taken_index(sandbox.loop_id()));
        sandbox.env("WIGGUM_CRASH_AT", "1000000");
        sandbox.wiggum(&args).exits(0);
        assert_eq!(sandbox.note("calls"), agents, "{point}");
        assert_eq!(sandbox.subjects(), ["first", "backlog", "A: Do A", "B: Do B"], "{point}");
        assert_eq!(sandbox.changed_in("HEAD~1"), ["A.txt", "PRD.json"], "{point}");
        sandbox.assert_clean();
        assert_eq!(checker::check(&sandbox.journal()), vec![], "{point}");
    }
}

#[test]
fn a_request_that_came_while_nobody_ran_is_heard_at_the_start() {
    let sandbox = Sandbox::with_tasks(&["A", "B"]);
    sandbox.run(WORKER, &["--verify", "true", "--max-iterations", "1"]).exits(3);
    sandbox.ask(&Request::Skip { task: "B".into() });
    sandbox.ask(&Request::Stop);
    sandbox.run(WORKER, &["--verify", "true"]).exits(0);
    assert_eq!(sandbox.state_of("B"), "skipped");
    assert_eq!(sandbox.worked_on(), ["A"]);
}

/// Everything a program can do to get away.
#[test]
fn nothing_an_agent_or_a_check_started_outlives_it() {
    let children = [
        "sleep 1000 &",
        "nohup sleep 1000 > /dev/null 2>&1 &",
        "setsid sleep 1000 &",
        "(setsid sh -c 'sleep 1000 & sleep 1000' &) ",
        "env -i setsid sleep 1000 < /dev/null > /dev/null 2>&1 &",
        "(trap '' TERM INT HUP; while :; do sleep 1; done) &",
        "setsid sh -c 'trap \"\" TERM; (sleep 1000 &) ; while :; do sleep 1; done' > /dev/null 2>&1 &",
        "cd / && env -i sh -c '(sleep 1000 &)' ; cd - > /dev/null",
    ];
    let all = children.join("\n");
    let agent = format!("cat > /dev/null\n{all}\necho work > a.txt\nclaim");
    let sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.agent_named("check", &all);
    let check = format!("sh {}", sandbox.base().join("agents/check").display());
    sandbox.run(&agent, &["--verify", &check]).exits(0);
    let ended = sandbox.events().into_iter().find_map(|event| match event {
        Event::AgentEnded { ended_processes, .. } => Some(ended_processes),
        _ => None,
    });
    assert!(ended.unwrap() >= 8, "{ended:?}");
}

#[test]
fn a_flood_of_output_is_bounded() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    let agent = "touch a.txt; head -c 20000000 /dev/zero | tr '\\0' 'x'; claim";
    let run = sandbox.run(agent, &["--verify", "true", "--json"]).exits(0);
    assert!(run.stdout.len() < 100_000, "{}", run.stdout.len());
    let database = std::fs::metadata(sandbox.state_dir().database()).unwrap().len();
    assert!(database < 2_000_000, "{database}");
}

/// Agents that treat their pipes badly.
#[test]
fn pipes_that_are_treated_badly_do_no_harm() {
    let agents = [
        ("never reads", "sleep 0; touch a.txt; claim"),
        ("closes its input", "exec <&-; touch a.txt; claim"),
        ("closes its output", "touch a.txt; claim; exec >&- 2>&-; true"),
        ("invalid UTF-8", "touch a.txt; printf '\\377\\376\\n'; claim"),
        ("control characters", "touch a.txt; printf '\\033]0;title\\007\\033[2J\\000'; claim"),
        ("a line without end", "touch a.txt; head -c 300000 /dev/zero | tr '\\0' 'x' >&2; claim"),
    ];
    for (name, agent) in agents {
        let sandbox = Sandbox::with_tasks(&["A"]);
        // More than any pipe holds.
        sandbox.write("PROMPT.md", &format!("{}\n", "words ".repeat(200_000)));
        let run = sandbox.run(agent, &["--verify", "true", "--json"]).exits(0);
        assert!(run.stdout.len() < 4_000_000, "{name}: {}", run.stdout.len());
        assert_eq!(sandbox.changed_in("HEAD"), ["PRD.json", "a.txt"], "{name}");
    }
}

#[test]
fn an_agent_that_is_ended_by_a_signal_has_failed() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.run("claim; kill -SEGV $$", &["--verify", "true", "--max-iterations", "1"]).exits(3);
    let exit = sandbox.events().into_iter().find_map(|event| match event {
        Event::AgentEnded { exit, .. } => Some(exit),
        _ => None,
    });
    assert_eq!(exit, Some(Exit::Signal { signal: 11 }));
    assert_eq!(sandbox.state_of("A"), "open", "a claim does not outweigh a crash");
}

/// Whoever reads may hold a run up, but not beyond a signal.
#[test]
fn a_signal_ends_a_run_that_nobody_reads() {
    for (more, agent) in
        [(&[][..], "yes | head -c 300000; claim"), (&["--json"], "head -c 300000 /dev/zero; claim")]
    {
        let sandbox = Sandbox::with_tasks(&["A", "B"]);
        // So that there is a journal to look into.
        sandbox.run("echo no", &["--verify", "true", "--max-iterations", "1"]).exits(3);
        let command = sandbox.agent(agent);
        let (reader, writer) = std::io::pipe().unwrap();
        // What fits into it is there already: the first line has to wait.
        let full = rustix::pipe::fcntl_getpipe_size(&writer).unwrap();
        rustix::io::write(&writer, &vec![b' '; full]).unwrap();
        let mut run = sandbox.command(env!("CARGO_BIN_EXE_wiggum"));
        run.args(["run", "--headless", "--agent-command", &command, "--verify", "true"]).args(more);
        let mut run = run.current_dir(&sandbox.root).stdout(writer).spawn().unwrap();
        sandbox.wait_for(|event| matches!(event, Event::RunStarted { run: 2, .. }));
        support::signal(&sandbox, &run.id().to_string(), "TERM");
        assert_eq!(run.wait().unwrap().code(), Some(130), "{more:?}");
        assert!(sandbox.processes().is_empty());
        drop(reader);
        sandbox.run(agent, &["--verify", "true"]).exits(0);
        sandbox.assert_clean();
    }
}
