//! `wiggum dispatch` with a real tmux on a socket of its own. Its agents are small shell scripts that
//! read a prompt from their terminal and answer there. Where tmux is not installed, that is said and
//! nothing is tested.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may fail here")]

mod panes;
mod support;

use std::fs;
use std::os::unix::fs::symlink;

use panes::{LISTEN, Stage, wait_until};
use serde_json::Value;

#[test]
fn a_promise_that_comes_too_early_is_sent_back_with_the_task_and_the_failed_check() {
    let answer = r#"[ $n = 1 ] || echo hello > hello.txt; echo "That was it."; promise"#;
    let Some(stage) = Stage::with(answer) else { return };
    let check = "sh -c 'cat hello.txt'";
    let run = stage.send("a", &["write hello.txt", "--verify", check]).exits(0);
    let run = run.says("a: done after 2 iterations").says("its check passed (goal_achieved)");
    assert!(run.stderr.contains("iteration 2/10 begins"), "{}", run.stderr);

    let heard = stage.heard("a");
    assert_eq!(heard.len(), 2, "{heard:#?}");
    assert!(heard[0].contains("iteration 1/10") && heard[0].contains("\nwrite hello.txt\n"), "{}", heard[0]);
    for words in ["The task is not done", check, "No such file", "\nwrite hello.txt\n"] {
        assert!(heard[1].contains(words), "{words:?} should be in {}", heard[1]);
    }

    let list = stage.list();
    assert_eq!((&list[0]["state"], &list[0]["kind"]), (&"READY".into(), &"dispatch".into()), "{list:#?}");
    assert_eq!(list[0]["task"]["termination_reason"], "goal_achieved");
    let status = stage.sandbox.launch(&stage.sandbox.root, &["status"]).outcome_only();
    status.exits(0).says("sh a - READY  write hello.txt").says("iteration 2/10, last: \"That was it.\"");
    let monitor = ["monitor", "--once", "--json"];
    let rows = stage.sandbox.launch(&stage.sandbox.base(), &monitor).outcome_only().exits(0).stdout;
    let rows: Value = serde_json::from_str(&rows).unwrap();
    assert_eq!(
        (&rows[0]["kind"], &rows[0]["name"], &rows[1]),
        (&"dispatch".into(), &"a".into(), &Value::Null)
    );
    assert_eq!((&rows[0]["state"], &rows[0]["task"]["current_iteration"]), (&"READY".into(), &2.into()));
    stage.send("a", &[]).complains(2, &["`a` has no unfinished task", "hint: "]);
    assert_eq!(stage.sandbox.dirt(), "?? hello.txt", "our own state is out of sight");
}

/// A program that draws nothing until it is spoken to is not taken for one that is still starting.
#[test]
fn a_program_that_draws_nothing_is_spoken_to_as_soon_as_it_rests() {
    let Some(stage) = Stage::new() else { return };
    let script = "while IFS= read -r line; do [ \"$line\" = '<promise>DONE</promise>' ] && echo 'Done it.' && \
                  printf '\\n<promise>DONE</promise>\\n'; done";
    let command = stage.sandbox.agent_named("a", script);
    stage.start_command("a", &command).exits(0);
    let started = std::time::Instant::now();
    let sending = stage.sending("a", &["say it"]);
    wait_until(|| stage.list()[0]["task"] != Value::Null);
    let agent = &stage.list()[0];
    assert_eq!(
        (&agent["state"], &agent["task"]["state"]),
        (&"WORKING".into(), &"WORKING".into()),
        "{agent:#?}"
    );
    sending.outcome_only().exits(0).says("done after 1 iteration");
    // It used to be waited for for twenty seconds.
    assert!(started.elapsed().as_secs() < 15, "{:?}", started.elapsed());
    assert_eq!(stage.list()[0]["state"], "READY");
}

#[test]
fn the_limit_ends_it_and_the_promise_in_the_prompt_is_no_claim() {
    // The terminal shows the whole prompt, promise included; the agent says nothing of its own.
    let Some(stage) = Stage::with("echo $n > work; echo 'Not yet.'") else { return };
    let run = stage.send("a", &["say <promise>DONE</promise>", "--max-iterations", "2"]);
    run.exits(3).says("limit of 2 iterations").says("(max_iterations)");
    assert_eq!(stage.heard("a").len(), 2);
}

#[test]
fn an_agent_that_changes_nothing_is_let_go() {
    let Some(stage) = Stage::with("echo Thinking.") else { return };
    let run = stage.send("a", &["do something", "--no-progress", "2"]);
    run.exits(7).says("nothing in the repository changed for 2 iterations");
}

#[test]
fn a_program_that_ends_is_told_and_its_task_goes_on_with_the_next() {
    let dies = "echo $n > work; [ $n = 1 ] || exit 3; echo 'Go on.'";
    let Some(stage) = Stage::with(dies) else { return };
    let run = stage.send("a", &["make it", "--max-iterations", "5"]);
    let run = run.complains(1, &["the agent `a` is gone: its program ended with exit code 3", "hint: "]);
    assert_eq!(run.stdout, "");
    assert_eq!(stage.list()[0]["state"], "GONE");
    let monitor = stage.sandbox.launch(&stage.sandbox.root, &["monitor", "--once"]).outcome_only().exits(0);
    monitor.says("GONE").says("! its program has ended before its task");
    stage.send("a", &[]).complains(1, &["exit code 3"]);

    stage.start("a", "promise");
    stage.send("a", &[]).exits(0).says("done after 2 iterations");
    let heard = stage.heard("a");
    assert!(heard[2].contains("iteration 2/5") && heard[2].contains("\nmake it\n"), "{heard:#?}");
}

#[test]
fn what_an_agent_or_a_check_prints_drives_neither_our_terminal_nor_the_agents() {
    // A task and a check's output are typed into the agent's terminal: ^C and ^D would end it there.
    let check = r#"sh -c 'printf "\033[201~\003\004\rrm -rf x\033]0;t\007;\n"; test -e done'"#;
    let answer = r#"
printf '\033]0;title\007\033[2J\033[31mError: \033[1mred\033[0m \033]52;c;ZXZpbA==\007\n'
[ $n = 1 ] || { : > done; promise; }"#;
    let Some(stage) = Stage::with(answer) else { return };
    let run = stage
        .send("a", &["make; it;\x1b[201~\x03\x04", "--verify", check])
        .exits(0)
        .says("done after 2 iterations");
    let status = stage.sandbox.launch(&stage.sandbox.root, &["status"]).outcome_only().exits(0);
    for text in [&run.stdout, &run.stderr, &status.stdout] {
        let control = |c: char| c.is_control() && c != '\n';
        assert!(!text.contains(control), "{text:?}");
    }
    let heard = stage.heard("a");
    assert!(heard[1].contains("rm -rf x") && !heard[1].contains('\x1b'), "{:?}", heard[1]);
}

/// Blinks, as agents at work do, until the test lets it go on.
const BLINKS: &str = r#"
blink() {
  i=0
  : > "$SANDBOX/blinks"
  while [ ! -e "$SANDBOX/go" ]; do
    i=$((i + 1)); printf '\r%s s %s' $i "$1"; sleep 0.05; echo $i > "$SANDBOX/blinks"
  done
  echo
}"#;

#[test]
fn two_agents_work_at_once_and_one_of_us_speaks_to_each() {
    let Some(stage) = Stage::with("echo a > a.txt; promise") else { return };
    stage.start("b", &format!("{BLINKS}\nblink '(esc to interrupt)'; echo b > b.txt; promise"));
    let b = stage.sending("b", &["do b"]);
    wait_until(|| stage.sandbox.has_note("blinks"));
    stage.send("b", &["something else"]).complains(2, &["busy with the agent `b`", "hint: "]);
    stage.send("a", &["do a"]).exits(0).says("a: done after 1 iteration");
    let states: Vec<Value> = stage.list().into_iter().map(|agent| agent["state"].clone()).collect();
    assert_eq!(states, ["READY", "WORKING"]);
    // Longer than a pane that only blinks is waited for.
    wait_until(|| stage.sandbox.note("blinks").trim().parse::<u32>().is_ok_and(|blinks| blinks > 120));
    fs::write(stage.sandbox.base().join("go"), "").unwrap();
    b.outcome_only().exits(0).says("b: done after 1 iteration");
    assert_eq!(stage.heard("b").len(), 1);
}

#[test]
fn a_clock_does_not_keep_a_pane_from_being_quiet() {
    let clock = format!("{BLINKS}\necho 'I am done.'; promise; blink 'o clock'");
    let Some(stage) = Stage::with(&clock) else { return };
    stage.send("a", &["tell the time"]).exits(0).says("done after 1 iteration");
}

#[test]
fn whoever_is_interrupted_leaves_the_agent_alone_and_the_next_one_goes_on() {
    let Some(stage) = Stage::with(&format!("{BLINKS}\nblink '(esc to interrupt)'; promise")) else { return };
    let sending = stage.sending("a", &["take your time"]);
    wait_until(|| stage.sandbox.has_note("blinks"));
    sending.signal("INT");
    let run = sending.outcome_only().exits(130);
    assert!(run.stderr.contains("the agent a is left alone"), "{}", run.stderr);
    assert_eq!(stage.list()[0]["state"], "WORKING");
    let next = stage.sending("a", &[]);
    fs::write(stage.sandbox.base().join("go"), "").unwrap();
    next.outcome_only().exits(0).says("done after 1 iteration");
    assert_eq!(stage.heard("a").len(), 1, "it was not told twice");
}

#[test]
fn a_program_that_was_started_anew_is_told_the_task() {
    let Some(stage) = Stage::with(&format!("{BLINKS}\nblink '(esc to interrupt)'")) else { return };
    let sending = stage.sending("a", &["take your time"]);
    wait_until(|| stage.sandbox.has_note("blinks"));
    sending.signal("INT");
    sending.outcome_only().exits(130);
    stage.end_tmux();
    stage.start("a", "promise");
    stage.send("a", &[]).exits(0).says("done after 1 iteration");
    assert_eq!(stage.heard("a").len(), 2);
}

#[test]
fn a_choice_is_left_to_a_person() {
    let dialog = r#"printf 'Run rm -rf /?\n ❯ 1. Yes\n   2. No\n'; read -r answer; echo "$answer." > "$SANDBOX/chosen""#;
    let Some(stage) = Stage::with(dialog) else { return };
    let run = stage.send("a", &["tidy up"]).exits(6).says("waits for a choice");
    assert!(run.stderr.contains("wiggum dispatch attach a"), "{}", run.stderr);
    stage.send("a", &[]).exits(6);
    assert!(!stage.sandbox.has_note("chosen"));
    assert_eq!(stage.session("a")["iteration"], 1, "that costs no iteration");
    let attach = stage.dispatch(&["attach", "a"]).exits(0).stdout;
    assert!(attach.starts_with("tmux -S /") && attach.contains("attach-session -t wiggum:@"), "{attach}");
}

#[test]
fn a_usage_limit_costs_no_iteration() {
    // Longer than anybody wants to wait, which ends it; whoever sends again may have seen to it.
    let answer = r#"[ $n = 1 ] && echo "Claude AI usage limit reached|2110086276" || promise"#;
    let Some(stage) = Stage::with(answer) else { return };
    stage.send("a", &["make it"]).exits(6).says("costs no iteration");
    assert_eq!(stage.list()[0]["state"], "WAITING");
    assert_eq!(stage.session("a")["iteration"], 1);
    stage.send("a", &["make it"]).exits(0).says("done after 1 iteration");
}

#[test]
fn a_usage_limit_is_waited_out_and_the_task_given_again() {
    let answer = r#"[ $n = 1 ] && echo "Claude AI usage limit reached|$(($(date +%s) + 5))" || promise"#;
    let Some(stage) = Stage::with(answer) else { return };
    let sending = stage.sending("a", &["make it"]);
    wait_until(|| stage.list()[0]["state"] == "WAITING");
    assert!(stage.list()[0]["task"]["waits"].as_str().unwrap().contains("usage limit"));
    let run = sending.outcome_only().exits(0).says("done after 1 iteration");
    assert!(run.stderr.contains("a waits until "), "{}", run.stderr);
    assert_eq!(stage.heard("a").len(), 2, "it was asked again");
}

#[test]
fn the_dialog_about_a_limit_is_closed_and_nothing_chosen() {
    let answer = r#"
if [ $n = 1 ]; then
  printf '  ⎿  You have hit your limit · resets in 4 seconds\n\n  What do you want to do?\n\n  ❯ 1. Stop and wait for limit to reset\n    2. Upgrade your plan\n\n  Enter to confirm · Esc to cancel\n'
  stty -icanon -echo; dd bs=1 count=1 2> "$SANDBOX/dd" | od -An -c > "$SANDBOX/key"; stty icanon echo
  printf '\033[2J\033[H> \n'
else promise; fi"#;
    let Some(stage) = Stage::with(answer) else { return };
    stage.send("a", &["make it"]).exits(0).says("done after 1 iteration");
    assert_eq!(stage.sandbox.note("key").trim(), "033", "the key that closes it");
    assert_eq!(stage.heard("a").len(), 2);
}

#[test]
fn whoever_waits_for_a_limit_can_be_told_to_stop() {
    let answer = r#"[ $n = 1 ] && echo "Claude AI usage limit reached|$(($(date +%s) + 3600))" || promise"#;
    let Some(stage) = Stage::with(answer) else { return };
    let sending = stage.sending("a", &["make it"]);
    wait_until(|| stage.list()[0]["state"] == "WAITING");
    stage
        .sandbox
        .launch(&stage.sandbox.root, &["session", "cancel", "--session", "a"])
        .outcome_only()
        .exits(0);
    sending.outcome_only().exits(8).says("(explicit_stop)");

    stage.send("a", &["make it now"]).exits(0).says("done after 1 iteration");
}

#[test]
fn stopping_ends_all_that_an_agent_started_and_whoever_waits_for_it() {
    let starts = r#"setsid sh -c 'echo $$ > "$SANDBOX/child"; exec sleep 1000' & exec sleep 1000"#;
    let Some(stage) = Stage::with(starts) else { return };
    let sending = stage.sending("a", &["make it", "--no-progress", "0", "--max-iterations", "0"]);
    wait_until(|| stage.sandbox.has_note("child"));
    let child = stage.sandbox.base().join("child");
    wait_until(|| fs::read_to_string(&child).is_ok_and(|pid| pid.ends_with('\n')));
    stage.dispatch(&["stop", "a"]).exits(0).says("a is stopped: 2 processes ended");
    let left = stage.sandbox.processes();
    assert!(!left.iter().any(|process| process.contains("sleep")), "{left:#?}");
    sending.outcome_only().exits(8).says("(explicit_stop)");
    assert_eq!(stage.list(), Vec::<Value>::new());
    stage.send("a", &["x"]).complains(2, &["there is no agent `a`", "hint: "]);
}

#[test]
fn an_agent_that_lives_in_a_pane_already_is_adopted_and_let_go() {
    let Some(stage) = Stage::new() else { return };
    let script = format!("AGENT=a\n{LISTEN}\necho hello > hello.txt; promise\ndone");
    let command = stage.sandbox.agent_named("mine", &script);
    let socket = stage.sandbox.base().join("tmux");
    let socket = socket.to_str().unwrap();
    let tmux = |arguments: &[&str]| {
        let output = stage.sandbox.command("tmux").args(["-S", socket]).args(arguments).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    };
    let root = stage.sandbox.root.to_str().unwrap();
    tmux(&["new-session", "-d", "-s", "mine", "-x", "200", "-y", "50", "-c", root, &command]);
    let pane = tmux(&["display-message", "-p", "-t", "mine", "#{pane_id}"]);

    // From anywhere: it works where the pane is.
    let adopt = |name: &str, pane: &str| stage.dispatch(&["adopt", name, "--pane", pane, "--socket", socket]);
    adopt("a", "mine:0.0").exits(0).says("a is there");
    let list = stage.list();
    assert_eq!((&list[0]["pane"], &list[0]["state"]), (&pane.as_str().into(), &"READY".into()), "{list:#?}");
    assert_eq!(list[0]["workspace"], root);
    stage.send("a", &["write hello.txt", "--verify", "test -s hello.txt"]).exits(0).says("its check passed");
    assert_eq!(stage.heard("a").len(), 1);

    adopt("b", &pane).complains(2, &["the pane", "belongs to an agent", "hint: "]);
    adopt("a", &pane).complains(2, &["the agent `a` is there already"]);
    adopt("c", "%99").complains(2, &["there is no pane `%99`", "hint: "]);
    adopt("c", "nowhere:1").complains(2, &["there is no pane `nowhere:1`"]);
    adopt("x.y", &pane).complains(2, &["is no name for an agent"]);

    // It was not ours to start, and is not ours to end.
    stage.dispatch(&["stop", "a"]).exits(0).says("its program is left running");
    assert_eq!(tmux(&["display-message", "-p", "-t", &pane, "#{pane_dead} #{@wiggum_agent}"]), "0");
    assert_eq!(stage.list(), Vec::<Value>::new());
    adopt("b", &pane).exits(0);
    tmux(&["kill-pane", "-t", &pane]);
    stage.send("b", &["x"]).complains(1, &["`b` is gone"]);
}

#[test]
fn nobody_adopts_the_terminal_in_which_wiggum_itself_runs() {
    let Some(stage) = Stage::new() else { return };
    let socket = stage.sandbox.base().join("tmux");
    let wiggum = env!("CARGO_BIN_EXE_wiggum");
    let said = stage.sandbox.base().join("said");
    let line = format!(
        "cd {}; '{wiggum}' dispatch adopt a --pane $TMUX_PANE > {} 2>&1; tmux wait-for -S done",
        stage.sandbox.root.display(),
        said.display()
    );
    let mut tmux = stage.sandbox.command("tmux");
    tmux.arg("-S").arg(&socket).args(["new-session", "-d", &line, ";", "wait-for", "done"]);
    tmux.output().unwrap();
    let said = fs::read_to_string(said).unwrap();
    assert!(said.contains("wiggum itself runs in the pane"), "{said}");
}

#[test]
fn a_tmux_that_dies_is_told() {
    let Some(stage) = Stage::with("echo $n > work; : > \"$SANDBOX/answered\"; exec cat") else { return };
    let sending = stage.sending("a", &["make it", "--max-iterations", "0", "--no-progress", "0"]);
    wait_until(|| stage.sandbox.has_note("answered"));
    stage.end_tmux();
    sending.outcome_only().complains(1, &["`a` is gone: its pane was closed, or tmux has ended", "hint: "]);
    assert_eq!(stage.list()[0]["state"], "GONE");
    // Another server gives its first pane the same id, and that is somebody else's.
    stage.start("b", "promise");
    stage.send("a", &["make it"]).complains(1, &["`a` is gone"]);
}

#[test]
fn a_missing_tmux_is_told() {
    let Some(mut stage) = Stage::new() else { return };
    let programs = stage.sandbox.base().join("bin");
    fs::create_dir(&programs).unwrap();
    let path = std::env::var_os("PATH").unwrap();
    let git = std::env::split_paths(&path).map(|directory| directory.join("git")).find(|git| git.exists());
    symlink(git.unwrap(), programs.join("git")).unwrap();
    stage.sandbox.env("PATH", programs.to_str().unwrap());
    stage.start_command("a", "/bin/cat").complains(2, &["tmux is not installed", "hint: install it"]);
}

#[test]
fn no_name_and_no_path_is_ever_a_command() {
    let Some(stage) = Stage::new() else { return };
    let socket = stage.sandbox.base().join("tmux");
    let odd = stage.sandbox.base().join("#{pid} it's %H $(touch evil);");
    fs::create_dir(&odd).unwrap();
    let script = format!("AGENT=a\n{LISTEN}\npwd > \"$SANDBOX/where\"; promise\ndone");
    let command = stage.sandbox.agent_named("odd", &script);
    let start = ["start", "a", "--command", &command, "--socket", socket.to_str().unwrap()];
    stage.launch(&odd, &start).outcome_only().exits(0);
    let task = "'; touch evil; #{pid} `touch evil` $(touch evil);";
    stage.launch(&odd, &["send", "a", task, "--quiet-after", "1s"]).outcome_only().exits(0);
    assert_eq!(stage.sandbox.note("where").trim(), odd.to_str().unwrap());
    assert!(stage.heard("a")[0].contains(&format!("\n{task}\n")), "{:?}", stage.heard("a"));
    let evil: Vec<_> = fs::read_dir(&odd).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(evil.is_empty(), "{evil:?}");

    for name in ["a.b", "a:0", "$(x)", "../x", ""] {
        stage.start_command(name, "cat").complains(2, &["is no name for an agent"]);
    }
    stage.launch(&odd, &start).outcome_only().complains(2, &["the agent `a` is there already", "hint: "]);
    stage.start_command("c", "no-such-program").complains(2, &["`no-such-program` is not in PATH"]);
}

#[test]
fn an_agent_may_work_in_another_repository() {
    let Some(stage) = Stage::new() else { return };
    let other = stage.sandbox.base().join("other");
    fs::create_dir_all(other.join("deep")).unwrap();
    stage.sandbox.git_in(&other, &["init", "-q"]);
    let command = stage.sandbox.agent(&format!("{LISTEN}\npwd > ../made; promise\ndone"));
    let deep = other.join("deep");
    stage.start_with("a", &["--command", &command, "--dir", deep.to_str().unwrap()]).exits(0);
    stage.send("a", &["make it", "--verify", "test -s made"]).exits(0).says("done after 1 iteration");
    let made = fs::read_to_string(other.join("made")).unwrap();
    assert_eq!(made.trim(), deep.to_str().unwrap());
    stage.start_with("b", &["--command", "cat", "--dir", "none"]).complains(2, &["cannot work in none"]);
    stage.start_with("b", &["--agent", "nobody"]).complains(2, &["there is no agent `nobody`", "hint: "]);
}
