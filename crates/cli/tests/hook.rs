//! The loop inside a session, as an agent sees it: a hook's question in, our answer out.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may fail here")]

mod support;

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::Stdio;

use serde_json::{Value, json};
use support::Sandbox;

/// What a hook said; `Null` is silence.
struct Answer(Value);

impl Answer {
    #[track_caller]
    fn blocks(&self, words: &[&str]) {
        assert_eq!(self.0["decision"], "block", "{:#}", self.0);
        let reason = self.0["reason"].as_str().unwrap();
        for word in words {
            assert!(reason.contains(word), "{word:?} should be in:\n{reason}");
        }
    }

    /// It may stop, and the user is told this.
    #[track_caller]
    fn lets_go(&self, words: &[&str]) {
        assert_eq!(self.0.get("decision"), None, "{:#}", self.0);
        let note = self.0["systemMessage"].as_str().unwrap_or_else(|| panic!("silence: {:#}", self.0));
        for word in words {
            assert!(note.contains(word), "{word:?} should be in: {note}");
        }
    }

    #[track_caller]
    fn is_silent(&self) {
        assert_eq!(self.0, Value::Null);
    }
}

impl Sandbox {
    /// The session's id: one of its own, since checks of a session are found by it on the whole machine.
    fn id(&self) -> String {
        let name = self.base().file_name().unwrap().to_str().unwrap().replace('.', "");
        format!("4107-4f56-{name}")
    }

    /// Asks a hook; it must exit with 0 and answer JSON or nothing at all.
    fn hook_raw(&self, event: &str, input: &[u8]) -> Answer {
        let mut command = self.command(env!("CARGO_BIN_EXE_wiggum"));
        command.current_dir(&self.root).args(["hook", event]);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // A hook that answers without reading is fine.
        drop(child.stdin.take().unwrap().write_all(input));
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
        let text = String::from_utf8(output.stdout).unwrap();
        if text.is_empty() { Answer(Value::Null) } else { Answer(serde_json::from_str(&text).unwrap()) }
    }

    fn hook(&self, event: &str, more: Value) -> Answer {
        let mut input = json!({ "session_id": self.id(), "cwd": self.root, "hook_event_name": event });
        input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.hook_raw(event, input.to_string().as_bytes())
    }

    fn stop(&self, message: &str) -> Answer {
        self.hook("stop", json!({ "last_assistant_message": message }))
    }

    fn prompt_hook(&self, prompt: &str) -> Answer {
        self.hook("user-prompt-submit", json!({ "prompt": prompt }))
    }

    #[track_caller]
    fn begin(&self, prompt: &str) {
        let answer = self.prompt_hook(prompt);
        answer.lets_go(&["the loop is on"]);
    }

    fn state_file(&self) -> PathBuf {
        self.state_root().of_path("sessions", &self.root).join(format!("{}.json", self.id()))
    }

    fn session(&self) -> Value {
        serde_json::from_slice(&fs::read(self.state_file()).unwrap()).unwrap()
    }

    /// Waits until so many hooks hold or await the session's lock.
    fn wait_for_hooks(&self, count: usize) {
        let lock = self.state_file().with_extension("lock");
        let open = |process: &PathBuf| {
            let files = fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
            files.into_iter().any(|file| fs::read_link(file.path()).is_ok_and(|target| target == lock))
        };
        let count_now =
            || fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path()).filter(open).count();
        let until = std::time::Instant::now() + std::time::Duration::from_secs(8);
        while count_now() < count {
            assert!(std::time::Instant::now() < until, "the hooks should have come");
            std::thread::yield_now();
        }
    }

    /// Something a breaker takes for progress.
    fn work(&self, n: usize) {
        self.write("work.txt", &"x".repeat(n));
    }
}

#[test]
fn a_task_is_handed_back_until_it_is_promised() {
    let sandbox = Sandbox::new();
    let answer = sandbox
        .prompt_hook("/ralph-loop \"make it\nall of it\" --max-iterations 5 --completion-promise FIXED");
    answer.lets_go(&["iteration 1/5"]);
    let context = answer.0["hookSpecificOutput"]["additionalContext"].as_str().unwrap();
    assert!(
        context.contains("make it\nall of it") && context.contains("<promise>FIXED</promise>"),
        "{context}"
    );

    sandbox.stop("I am done.").blocks(&["make it\nall of it", "Iteration 2/5", "<promise>FIXED</promise>"]);
    sandbox.stop("<promise>DONE</promise>").blocks(&["Iteration 3/5"]);
    sandbox
        .stop("All there.\n\n<promise>FIXED</promise>")
        .lets_go(&["done after 3 iterations", "unverified"]);
    sandbox.stop("Something else.").is_silent();
    assert_eq!(sandbox.session()["ended"]["reason"], "goal_achieved");
    sandbox.assert_clean();
}

#[test]
fn words_that_only_mention_the_promise_do_not_count() {
    for message in [
        "I must not output `<promise>DONE</promise>` yet.",
        "Once the tests pass I will say:\n<promise>DONE</promise>",
        "DONE",
        "All tests passing. Ready for review.",
        "```\n<promise>DONE</promise>\n```",
        "Only when all of the task is really done, end your message with this line:\n\n<promise>DONE</promise>",
    ] {
        let sandbox = Sandbox::new();
        sandbox.begin("/ralph-loop make it");
        sandbox.stop(message).blocks(&["make it"]);
    }
    let sandbox = Sandbox::new();
    let asked = "Finish with this line:\n<promise>DONE</promise>";
    sandbox.begin(&format!("/ralph-loop make it\n{asked}"));
    sandbox.stop(asked).blocks(&["make it"]);
    for message in ["TASK_COMPLETE", "All of it works.\n\n**TASK_COMPLETE**", "<promise>complete</promise>"] {
        let sandbox = Sandbox::new();
        sandbox.begin("/ralph-loop make it");
        sandbox.stop(message).lets_go(&["done after 1 iteration:"]);
    }
}

#[test]
fn a_promise_needs_its_checks() {
    let sandbox = Sandbox::new();
    sandbox.begin(
        "/ralph-loop make it --verify 'test -f made.txt || { echo error: made.txt is missing; exit 3; }'",
    );
    let promise = "<promise>DONE</promise>";
    sandbox.stop(promise).blocks(&["exit code 3", "error: made.txt is missing", "make it", "Iteration 2/10"]);
    sandbox.write("made.txt", "");
    sandbox.stop("I made it.").blocks(&["its check passed", promise]);
    sandbox.stop(promise).lets_go(&["done after 3 iterations", "its check passed"]);
}

/// They run what the agent has written.
#[test]
fn checks_of_a_session_run_behind_walls() {
    let check = "sh attack.sh";
    let attack =
        "echo x >> ~/.profile; test -n \"$DEPLOY_TOKEN\"; echo \"DEPLOY_TOKEN: $?\"; touch made; false";
    for walls in [true, false] {
        let mut sandbox = Sandbox::walled(&["one"]);
        sandbox.env("DEPLOY_TOKEN", "tok-5f7a9c1e3b2d4f60");
        sandbox.write("attack.sh", attack);
        let exceptions = format!("pass_env = [\"DEPLOY_TOKEN\"]\nunconfined = [\"{check}\"]\n");
        let exceptions = if walls { "" } else { exceptions.as_str() };
        sandbox.write("wiggum.toml", &format!("[checks]\nverify = [\"{check}\"]\n{exceptions}"));
        sandbox.begin("/ralph-loop make it");
        let answer = sandbox.stop("<promise>DONE</promise>");
        match walls {
            true => {
                answer.blocks(&["DEPLOY_TOKEN: 1", "Variables withheld from it: DEPLOY_TOKEN (`pass_env`"])
            }
            false => answer.blocks(&["DEPLOY_TOKEN: 0"]),
        }
        assert_eq!(sandbox.base().join("home/.profile").exists(), !walls);
        assert!(sandbox.exists("made"));
    }
}

#[test]
fn the_checks_of_the_configuration_hold_as_they_were_at_the_start() {
    let sandbox = Sandbox::new();
    sandbox.write("wiggum.toml", "[checks]\nverify = [\"test -f made.txt\"]\n");
    sandbox.begin("/ralph-loop make it");
    fs::remove_file(sandbox.root.join("wiggum.toml")).unwrap();
    sandbox.stop("<promise>DONE</promise>").blocks(&["`test -f made.txt` failed"]);

    sandbox.write("wiggum.toml", "[checks]\nverify = 3\n");
    sandbox.prompt_hook("/ralph-loop again").lets_go(&["not in force", "wiggum.toml"]);
}

#[test]
fn a_session_goes_by_all_of_the_configuration() {
    let mut sandbox = Sandbox::new();
    sandbox.write(
        "wiggum.toml",
        "[claims]\npromises = [\"SHIPPED\"]\nphrases = [\"fertig\"]\n[limits]\niterations = 7\n[breaker]\nno_progress = 2\n",
    );
    let begun = sandbox.prompt_hook("/ralph-loop make it");
    begun.lets_go(&["iteration 1/7"]);
    let context = begun.0["hookSpecificOutput"]["additionalContext"].as_str().unwrap();
    assert!(context.contains("<promise>SHIPPED</promise>"), "{context}");
    sandbox.stop("<promise>DONE</promise>").blocks(&["<promise>SHIPPED</promise>"]);
    sandbox.stop("Nothing yet.").lets_go(&["nothing in the repository changed for 2 iterations"]);
    sandbox.begin("/ralph-loop make it");
    sandbox.stop("<promise>SHIPPED</promise>").lets_go(&["done after 1 iteration"]);

    // What is said in the session itself wins.
    sandbox.begin("/ralph-loop make it --completion-promise OK --max-iterations 3 --no-progress 0");
    sandbox.stop("<promise>SHIPPED</promise>").blocks(&["Iteration 2/3", "<promise>OK</promise>"]);

    sandbox.env("RALPH_MAX_ITERATIONS", "4");
    sandbox.prompt_hook("/ralph-loop make it").lets_go(&["iteration 1/4"]);
    sandbox.wiggum(&["config", "show"]).exits(0).says("RALPH_MAX_ITERATIONS");
    sandbox.env("WIGGUM_LIMITS_ITERATIONS", "5");
    sandbox.prompt_hook("/ralph-loop make it").lets_go(&["iteration 1/5"]);
    let start = ["session", "start", "--session", "s", "--prompt", "make it"];
    sandbox.wiggum(&start).exits(0).says("iteration 1/5");
}

#[test]
fn errors_in_a_row_and_time_end_a_session_where_they_are_limited() {
    let sandbox = Sandbox::new();
    sandbox.write("wiggum.toml", "[limits]\nconsecutive_errors = 2\n");
    sandbox.begin("/ralph-loop make it --verify 'echo error: $RANDOM$(cat n); exit 1'");
    sandbox.write("n", "one");
    sandbox.stop("a").blocks(&[]);
    sandbox.write("n", "two");
    sandbox.stop("b").lets_go(&["2 errors in a row"]);
    assert_eq!(sandbox.session()["ended"]["reason"], "consecutive_errors");

    sandbox.write("wiggum.toml", "[limits]\nduration = \"1ms\"\n");
    sandbox.begin("/ralph-loop make it");
    sandbox.stop("a").lets_go(&["its time is up", "1ms"]);
    assert_eq!(sandbox.session()["ended"]["reason"], "max_duration");

    // Without a limit of that kind, five different errors are no reason to stop.
    sandbox.write("wiggum.toml", "");
    sandbox.begin("/ralph-loop make it --verify 'cat n; exit 1'");
    for words in ["error: one", "error: two", "error: three", "error: four", "error: five"] {
        sandbox.write("n", words);
        sandbox.stop("a").blocks(&[words]);
    }
}

#[test]
fn a_promise_needs_every_box_of_its_plan() {
    let sandbox = Sandbox::new();
    sandbox.begin("/ralph-loop make it --plan fix_plan.md");
    let promise = "<promise>DONE</promise>";
    sandbox.stop(promise).blocks(&["fix_plan.md cannot be read"]);
    sandbox.write("fix_plan.md", "- [x] one\n- [ ] two\n- [ ] three\n- [ ] four (optional)\n");
    sandbox.stop(promise).blocks(&["2 boxes are open of fix_plan.md", "- [ ] two", "- [ ] three", "make it"]);
    sandbox.write("fix_plan.md", "- [x] one\n- [x] two\n- [x] three\n- [ ] four (optional)\n");
    sandbox.stop("Ticked.").blocks(&["its check passed", promise]);
    sandbox.stop(promise).lets_go(&["done after 4 iterations", "its check passed"]);
}

#[test]
fn ready_said_twice_completes_only_where_that_is_wanted_and_checked() {
    let ready = "All tests passing, ready for review.";
    let sandbox = Sandbox::new();
    sandbox.begin("/ralph-loop make it --complete-without-claim --verify true");
    sandbox.stop(ready).blocks(&[]);
    sandbox.stop("Hm.").blocks(&[]);
    sandbox.work(1);
    sandbox.stop(ready).blocks(&[]);
    sandbox.stop(ready).lets_go(&["done after 4 iterations", "its check passed"]);

    for arguments in ["--verify true", "--complete-without-claim"] {
        let sandbox = Sandbox::new();
        sandbox.begin(&format!("/ralph-loop make it {arguments} --no-progress 0"));
        for _ in 0..4 {
            sandbox.stop(ready).blocks(&[]);
        }
    }
}

#[test]
fn limits_let_it_stop_and_say_so() {
    let sandbox = Sandbox::new();
    sandbox.begin("/ralph-loop make it --max-iterations 3 --no-progress 0");
    sandbox.stop("a").blocks(&["Iteration 2/3"]);
    sandbox.stop("b").blocks(&["Iteration 3/3"]);
    sandbox.stop("c").lets_go(&["the limit of 3 iterations is reached"]);
    assert_eq!(sandbox.session()["ended"]["reason"], "max_iterations");

    sandbox.begin("/ralph-loop make it --max-iterations 0 --no-progress 0");
    for _ in 0..12 {
        sandbox.stop("a").blocks(&[]);
    }
}

#[test]
fn three_iterations_without_a_change_are_enough() {
    let sandbox = Sandbox::new();
    sandbox.begin("/ralph-loop make it");
    sandbox.stop("a").blocks(&[]);
    sandbox.stop("b").blocks(&[]);
    sandbox.work(1);
    sandbox.stop("c").blocks(&[]);
    sandbox.git(&["commit", "-q", "--allow-empty", "-m", "progress"]);
    sandbox.stop("d").blocks(&[]);
    sandbox.stop("e").blocks(&[]);
    sandbox.stop("f").blocks(&[]);
    sandbox.stop("g").lets_go(&["nothing in the repository changed for 3 iterations"]);
    assert_eq!(sandbox.session()["ended"]["reason"], "no_progress");
}

#[test]
fn an_agent_that_waits_for_its_own_background_work_is_not_stuck() {
    let sandbox = Sandbox::new();
    sandbox.begin("/ralph-loop make it");
    for n in 2..10 {
        let stop = json!({ "last_assistant_message": "Waiting.", "background_tasks": [{ "id": "b1" }] });
        sandbox.hook("stop", stop).blocks(&[&format!("Iteration {n}/10")]);
    }
}

#[test]
fn the_same_error_five_times_is_enough() {
    let sandbox = Sandbox::new();
    sandbox.begin("/ralph-loop make it --max-iterations 0 --verify 'echo error: no such thing in line $(date +%N) >&2; exit 1'");
    for n in 1..5 {
        sandbox.work(n);
        sandbox.stop("next").blocks(&["error: no such thing"]);
    }
    sandbox.work(5);
    sandbox.stop("next").lets_go(&["the same error 5 times in a row", "no such thing"]);

    sandbox.begin("/ralph-loop make it --max-iterations 0");
    for n in 1..12 {
        sandbox.work(10 + n);
        sandbox.stop(if n % 4 == 0 { "Error: other" } else { "Error: one" }).blocks(&[]);
    }
}

#[test]
fn a_cancelled_loop_lets_go() {
    let sandbox = Sandbox::new();
    sandbox.begin("/ralph-loop make it");
    sandbox.stop("a").blocks(&[]);
    sandbox.prompt_hook("/cancel-ralph").blocks(&["cancelled in iteration 2/10"]);
    sandbox.stop("b").lets_go(&["cancelled"]);
    sandbox.stop("c").is_silent();
    sandbox.prompt_hook("/cancel-ralph").blocks(&["no loop runs in this session"]);

    sandbox.begin("/ralph-loop make it again");
    sandbox.stop("d").blocks(&["make it again", "Iteration 2/10"]);
    sandbox.wiggum(&["session", "cancel"]).exits(0).says(&sandbox.id());
    sandbox.stop("e").lets_go(&["cancelled"]);
    sandbox.wiggum(&["session", "cancel"]).complains(2, &["no loop runs in any session"]);
}

#[test]
fn a_loop_cancelled_during_its_check_lets_go() {
    let mut sandbox = Sandbox::new();
    sandbox.env("WIGGUM", env!("CARGO_BIN_EXE_wiggum"));
    // In the sandbox it would have no session to cancel.
    sandbox.env("WIGGUM_CHECKS_SANDBOX", "none");
    sandbox.begin("/ralph-loop make it --verify '\"$WIGGUM\" session cancel'");
    sandbox.stop("a").lets_go(&["cancelled"]);
}

#[test]
fn other_sessions_and_sub_agents_are_never_caught() {
    let sandbox = Sandbox::new();
    sandbox.begin("/ralph-loop make it");
    let before = fs::read(sandbox.state_file()).unwrap();
    sandbox.hook("stop", json!({ "session_id": "another", "last_assistant_message": "x" })).is_silent();
    sandbox
        .hook("stop", json!({ "hook_event_name": "SubagentStop", "last_assistant_message": "x" }))
        .is_silent();
    sandbox.hook("stop", json!({ "agent_id": "a1", "last_assistant_message": "x" })).is_silent();
    sandbox.hook("session-end", json!({ "session_id": "another" })).is_silent();
    sandbox.prompt_hook("what about /ralph-loop?").is_silent();
    assert_eq!(fs::read(sandbox.state_file()).unwrap(), before);

    sandbox
        .hook("user-prompt-submit", json!({ "session_id": "another", "prompt": "/ralph-loop other" }))
        .lets_go(&[]);
    sandbox.stop("x").blocks(&["make it", "Iteration 2/10"]);
    sandbox.hook("stop", json!({ "session_id": "another" })).blocks(&["other", "Iteration 2/10"]);
}

#[test]
fn a_session_is_found_from_wherever_its_agent_went() {
    let mut sandbox = Sandbox::new();
    fs::create_dir_all(sandbox.root.join("a/b")).unwrap();
    let below = sandbox.root.join("a/b");
    sandbox.hook("user-prompt-submit", json!({ "cwd": below, "prompt": "/ralph-loop make it" })).lets_go(&[]);
    assert!(sandbox.state_file().exists(), "the state belongs to the repository");
    sandbox.stop("x").blocks(&[]);
    let root = sandbox.root.to_str().unwrap().to_owned();
    sandbox.env("CLAUDE_PROJECT_DIR", &root);
    sandbox.hook("stop", json!({ "cwd": sandbox.base() })).blocks(&[]);
}

#[test]
fn whatever_is_wrong_on_our_side_lets_it_stop() {
    let sandbox = Sandbox::new();
    sandbox.begin("/ralph-loop make it");
    let good = fs::read(sandbox.state_file()).unwrap();
    let newer = String::from_utf8(good.clone()).unwrap().replace("\"version\": 1", "\"version\": 99");
    for broken in [&b"{"[..], b"", b"null", b"\xff\xfe", &good[..good.len() / 2], newer.as_bytes()] {
        fs::write(sandbox.state_file(), broken).unwrap();
        sandbox.stop("x").lets_go(&["wiggum: the loop is not in force", &sandbox.id()]);
    }
    fs::remove_file(sandbox.state_file()).unwrap();
    fs::create_dir(sandbox.state_file()).unwrap();
    sandbox.stop("x").lets_go(&["not in force"]);
    fs::remove_dir(sandbox.state_file()).unwrap();
    fs::write(sandbox.state_file(), good).unwrap();

    for input in
        [&b""[..], b"not json", b"[]", b"{}", b"\xff", b"{\"session_id\": 3}", b"{\"session_id\": null}"]
    {
        sandbox.hook_raw("stop", input).lets_go(&["not in force"]);
    }
    sandbox.hook("no-such-hook", json!({})).lets_go(&["there is no hook `no-such-hook`"]);
    for arguments in [&["hook"][..], &["hook", "no", "such", "--thing"]] {
        // The exit code of usage errors would send an agent back.
        sandbox.wiggum(arguments).exits(0).says("there is no hook");
    }
    sandbox.wiggum(&["hook", "--help"]).exits(0).says("Usage: wiggum hook");
    sandbox.stop("x").blocks(&["make it"]);
}

#[test]
fn a_state_that_cannot_be_written_lets_it_stop() {
    let sandbox = Sandbox::new();
    sandbox.begin("/ralph-loop make it");
    // A name that leaves no room for a temporary one beside it: then even root cannot write.
    let long = sandbox.base().join("n".repeat(250));
    fs::rename(sandbox.state_file(), &long).unwrap();
    std::os::unix::fs::symlink(&long, sandbox.state_file()).unwrap();
    let before = fs::read(&long).unwrap();
    sandbox.stop("x").lets_go(&["not in force", "cannot read or write"]);
    assert_eq!(fs::read(&long).unwrap(), before);
}

#[test]
fn hostile_ids_touch_nothing() {
    let sandbox = Sandbox::new();
    for id in ["../../x", "..", "/etc/passwd", "a/b", "", ".json", "a\u{0}b", &"x".repeat(5000)] {
        sandbox.hook("stop", json!({ "session_id": id })).lets_go(&["is not a session id"]);
        let start = json!({ "session_id": id, "prompt": "/ralph-loop make it" });
        sandbox.hook("user-prompt-submit", start).lets_go(&["is not a session id"]);
    }
    assert!(!sandbox.exists(".wiggum"));
    assert!(!sandbox.base().join("x.json").exists());
    sandbox
        .wiggum(&["session", "start", "--session", "../x", "--prompt", "y"])
        .complains(2, &["is not a session id"]);
}

#[test]
fn a_mistyped_command_is_explained_instead_of_started() {
    let sandbox = Sandbox::new();
    for (prompt, words) in [
        ("/ralph-loop", "there is no task"),
        ("/ralph-loop x --max-iterations many", "whole number"),
        ("/ralph-loop x --max-iteration 3", "is not known"),
        ("/ralph-loop x --bogus 3", "there are --max-iterations, --completion-promise, --verify"),
    ] {
        sandbox.prompt_hook(prompt).blocks(&[words, "usage: /ralph-loop"]);
    }
    sandbox.prompt_hook("/ralph-status --bogus").blocks(&["/ralph-status takes no arguments"]);
    assert!(!sandbox.exists(".wiggum"));
    sandbox.stop("x").is_silent();
}

#[test]
fn two_questions_at_once_leave_a_whole_state() {
    let sandbox = Sandbox::new();
    sandbox.begin("/ralph-loop make it --max-iterations 0 --no-progress 0");
    std::thread::scope(|scope| {
        for n in 0..8 {
            let sandbox = &sandbox;
            scope.spawn(move || {
                for m in 0..4 {
                    sandbox.stop(&format!("step {n} {m}")).blocks(&["make it"]);
                }
            });
        }
    });
    assert_eq!(sandbox.session()["iteration"], 33, "every stop is counted once");
}

#[test]
fn one_stop_asked_about_twice_is_counted_once() {
    let sandbox = Sandbox::new();
    let check = r#"test -f checked || { echo > "$SANDBOX/ready"; cat "$SANDBOX/go"; }"#;
    sandbox.begin(&format!("/ralph-loop make it --no-progress 0 --verify '{check}'"));
    sandbox.make_pipe("ready");
    sandbox.make_pipe("go");
    // As when two installations call us: the second asks while the first still checks.
    std::thread::scope(|scope| {
        let answers = [(); 2].map(|()| scope.spawn(|| sandbox.stop("Not yet.")));
        sandbox.receive("ready");
        sandbox.wait_for_hooks(2);
        sandbox.go();
        for answer in answers {
            answer.join().unwrap().blocks(&["Iteration 2/10"]);
        }
    });
    assert_eq!(sandbox.session()["iteration"], 2);
    // The same words at the next stop are another stop.
    sandbox.write("checked", "");
    sandbox.stop("Not yet.").blocks(&["Iteration 3/10"]);
    sandbox.stop("Not yet.").blocks(&["Iteration 4/10"]);
}

#[test]
fn one_prompt_asked_about_twice_begins_one_loop() {
    let sandbox = Sandbox::new();
    let begin = |prompt: &str, id: &str| {
        sandbox.hook("user-prompt-submit", json!({ "prompt": prompt, "turn_id": id }))
    };
    begin("$ralph-loop make it", "t1").lets_go(&["the loop is on"]);
    sandbox.stop("a").blocks(&["Iteration 2/10"]);
    begin("$ralph-loop make it", "t1").is_silent();
    assert_eq!(sandbox.session()["iteration"], 2, "it goes on");
    begin("$cancel-ralph", "t2").blocks(&["cancelled in iteration 2/10"]);
    begin("$cancel-ralph", "t2").blocks(&["cancelled in iteration 2/10"]);
    begin("$ralph-loop make it", "t3").lets_go(&["iteration 1/10"]);
}

#[test]
fn the_message_is_read_from_the_end_of_a_huge_transcript() {
    let sandbox = Sandbox::new();
    sandbox.begin("/ralph-loop make it");
    let path = sandbox.base().join("transcript.jsonl");
    let mut file = fs::File::create(&path).unwrap();
    // Sparse, so that it costs nothing to make; reading it all would take minutes.
    file.set_len(200 << 30).unwrap();
    std::io::Seek::seek(&mut file, std::io::SeekFrom::End(0)).unwrap();
    let line = |text: &str, sidechain: bool| {
        json!({ "type": "assistant", "isSidechain": sidechain, "message": { "role": "assistant",
                "content": [{ "type": "text", "text": text }] } })
        .to_string()
    };
    let lines = [String::new(), line("All there.\n\n<promise>DONE</promise>", false), line("Not yet.", true)];
    file.write_all((lines.join("\n") + "\n").as_bytes()).unwrap();
    sandbox.hook("stop", json!({ "transcript_path": path })).lets_go(&["done after 1 iteration"]);

    sandbox.begin("/ralph-loop make it");
    sandbox.make_pipe("pipe");
    let pipe = sandbox.base().join("pipe").display().to_string();
    for path in ["/dev/zero", "/nowhere", "/", &pipe] {
        sandbox.hook("stop", json!({ "transcript_path": path })).blocks(&[]);
        sandbox.work(path.len());
    }
}

#[test]
fn the_cap_of_claude_code_is_never_hit_silently() {
    let mut sandbox = Sandbox::new();
    sandbox.env("CLAUDECODE", "1");
    sandbox.begin("/ralph-loop make it --max-iterations 0 --no-progress 0");
    for _ in 0..8 {
        sandbox.stop("a").blocks(&[]);
    }
    sandbox.stop("a").lets_go(&["8 times in a row", "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP"]);

    sandbox.env("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP", "2");
    sandbox.begin("/ralph-loop make it --max-iterations 0 --no-progress 0");
    let transcript = sandbox.base().join("transcript.jsonl");
    let mut lines = String::new();
    for n in 0..6 {
        // A tool in between starts the count anew.
        lines.push_str("{\"type\":\"assistant\",\"message\":{\"content\":[{\"type\":\"tool_use\"}]}}\n");
        fs::write(&transcript, &lines).unwrap();
        let stop = json!({ "transcript_path": transcript, "last_assistant_message": format!("step {n}") });
        sandbox.hook("stop", stop).blocks(&[]);
    }
    sandbox.stop("a").blocks(&[]);
    sandbox.stop("b").lets_go(&["2 times in a row"]);

    sandbox.env("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP", "0");
    sandbox.begin("/ralph-loop make it --max-iterations 0 --no-progress 0");
    for _ in 0..10 {
        sandbox.stop("a").blocks(&[]);
    }
}

#[test]
fn a_session_started_from_outside_learns_whose_it_is() {
    let mut sandbox = Sandbox::new();
    sandbox
        .wiggum(&["session", "start", "--session", &sandbox.id(), "--prompt", "x", "--no-progress", "0"])
        .exits(0);
    sandbox.env("CLAUDECODE", "1");
    sandbox.env("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP", "1");
    sandbox.stop("a").blocks(&[]);
    sandbox.stop("a").lets_go(&["claude lets itself be sent back 1 times"]);
}

#[test]
fn a_session_that_calls_us_need_not_be_named() {
    for variable in ["CLAUDE_CODE_SESSION_ID", "CODEX_SESSION_ID"] {
        let mut sandbox = Sandbox::new();
        sandbox.env(variable, &sandbox.id());
        sandbox.wiggum(&["session", "start", "--prompt", "make it"]).exits(0).says(&sandbox.id());
        sandbox.stop("a").blocks(&["make it"]);
        sandbox.wiggum(&["session", "cancel"]).exits(0).says(&sandbox.id());
        sandbox.stop("b").lets_go(&["cancelled"]);
    }
}

#[test]
fn what_nobody_touched_for_long_is_forgotten() {
    let sandbox = Sandbox::new();
    sandbox.begin("/ralph-loop make it");
    let old = sandbox.state_file().with_file_name("old.json");
    fs::copy(sandbox.state_file(), &old).unwrap();
    let month = std::time::Duration::from_secs(31 * 24 * 3600);
    let file = fs::File::options().write(true).open(&old).unwrap();
    file.set_modified(fs::metadata(&old).unwrap().modified().unwrap() - month).unwrap();
    sandbox.begin("/ralph-loop make it");
    assert!(!old.exists() && sandbox.state_file().exists());
}

#[test]
fn codex_has_no_cap_but_our_limit() {
    let sandbox = Sandbox::new();
    sandbox
        .hook(
            "user-prompt-submit",
            json!({ "turn_id": "t", "prompt": "$ralph-loop make it --no-progress 0" }),
        )
        .lets_go(&[]);
    let stop = json!({ "turn_id": "t", "last_assistant_message": "a" });
    for _ in 1..10 {
        sandbox.hook("stop", stop.clone()).blocks(&[]);
    }
    sandbox.hook("stop", stop).lets_go(&["the limit of 10 iterations"]);
    assert_eq!(sandbox.session()["agent"], "codex");
}

#[test]
fn a_usage_limit_or_a_question_costs_no_iteration() {
    let sandbox = Sandbox::new();
    sandbox.begin("/ralph-loop make it");
    for message in
        ["Claude AI usage limit reached|1794729540", "You've hit your session limit · resets 7:35am (UTC)"]
    {
        for _ in 0..12 {
            sandbox.stop(message).lets_go(&["usage limit until ", "costs no iteration"]);
        }
    }
    let question = "<escalate type=\"deviation\">\n<summary>Drop the old table?</summary>\n\
                    <question>May I?</question>\n</escalate>";
    sandbox.stop(question).lets_go(&["asks you", "Drop the old table?"]);
    assert_eq!(sandbox.session()["working"], false);
    sandbox.prompt_hook("yes, drop it").is_silent();
    assert_eq!(sandbox.session()["working"], true);
    sandbox.stop("Dropped.").blocks(&["Iteration 2/10"]);
}

#[test]
fn a_session_at_its_limit_is_seen_to_wait_for_the_reset() {
    let sandbox = Sandbox::new();
    sandbox.begin("/ralph-loop make it");
    sandbox.stop("Working on it.").blocks(&[]);
    let limit = json!({ "error": "rate_limit", "last_assistant_message": LIMIT });
    // Claude Code does not ask its stop hook then, but this one.
    sandbox
        .hook("stop-failure", limit.clone())
        .lets_go(&["waits until 2036-11-12T07:04:00Z", "no iteration"]);
    let status = sandbox.wiggum(&["status"]).exits(0);
    let status = status
        .says(&format!("{} - WAITING", sandbox.id()))
        .says("waits until 2036-11-12T07:04:00Z: usage limit");
    status.says("iteration 2/10, last: \"Working on it.\"").never_says("READY");
    let json: Value = serde_json::from_str(&sandbox.wiggum(&["status", "--json"]).exits(0).stdout).unwrap();
    assert_eq!((&json[0]["state"], &json[0]["current_iteration"]), (&json!("WAITING"), &json!(2)));
    assert_eq!(json[0]["waits_until"], "2036-11-12T07:04:00Z");

    sandbox.hook("session-end", json!({})).is_silent();
    sandbox.wiggum(&["session", "status"]).exits(0).says("WAITING");
    sandbox.prompt_hook("go on").is_silent();
    sandbox.wiggum(&["status"]).exits(0).says("WORKING").never_says("waits until");
    sandbox.stop("On it.").blocks(&["Iteration 3/10"]);

    // Where the limit ended in the meantime, nobody is waited for any more.
    let over = json!({ "error": "rate_limit", "last_assistant_message": "Claude AI usage limit reached|1700000000" });
    sandbox.hook("stop-failure", over).lets_go(&["usage limit"]);
    sandbox.wiggum(&["status"]).exits(0).says("READY").says("ended at 2023-11-14T22:13:20Z");

    sandbox.hook("stop-failure", json!({ "session_id": "another", "error": "rate_limit" })).is_silent();
    sandbox.hook("stop-failure", json!({ "error": "overloaded" })).lets_go(&["the provider is overloaded"]);
    sandbox.hook("stop-failure", json!({})).lets_go(&["cannot work"]);
    assert_eq!(sandbox.session()["iteration"], 3);
}

const LIMIT: &str = "You've hit your limit · resets Nov 12, 2036, 7:04am (UTC)";

#[test]
fn a_limit_that_only_the_transcript_tells_is_seen() {
    let mut sandbox = Sandbox::new();
    sandbox.env("TZ", "UTC");
    let transcript = sandbox.base().join("transcript.jsonl");
    // As Codex writes it, which calls no hook then.
    let started = r#"{"type":"event_msg","payload":{"type":"task_started"}}"#;
    let failed = r#"{"type":"event_msg","payload":{"type":"task_complete","last_agent_message":null,"error":{"message":"You’ve hit your usage limit. Upgrade to Pro (https://chatgpt.com/explore/pro), visit https://chatgpt.com/settings/usage to purchase more credits or try again at Nov 12th, 2036 7:04 AM."}}}"#;
    fs::write(&transcript, format!("{started}\n")).unwrap();
    let begin = json!({ "turn_id": "t", "transcript_path": transcript, "prompt": "$ralph-loop make it" });
    sandbox.hook("user-prompt-submit", begin).lets_go(&[]);
    sandbox.wiggum(&["status"]).exits(0).says("WORKING");
    fs::write(&transcript, format!("{started}\n{failed}\n")).unwrap();
    sandbox.wiggum(&["status"]).exits(0).says("WAITING").says("waits until 2036-11-12T07:04:00Z");
    assert_eq!(sandbox.session()["working"], true, "looking changes nothing");
    sandbox.hook("session-end", json!({ "transcript_path": transcript })).is_silent();
    assert_eq!(sandbox.session()["working"], false);
    fs::remove_file(&transcript).unwrap();
    sandbox.wiggum(&["status"]).exits(0).says("waits until 2036-11-12T07:04:00Z");
}

#[test]
fn a_question_is_shown_until_it_is_answered() {
    let sandbox = Sandbox::new();
    sandbox.begin("/ralph-loop make it");
    let question = "<escalate type=\"stuck\">\n<summary>Drop the old table?</summary>\n</escalate>";
    sandbox.stop(question).lets_go(&["asks you"]);
    sandbox.wiggum(&["status"]).exits(0).says("WAITING").says("waits for your answer: Drop the old table?");
    sandbox.prompt_hook("yes").is_silent();
    sandbox.wiggum(&["status"]).exits(0).says("WORKING").never_says("Drop the old table?");
}

/// One answer of a model, as Claude Code writes it: a line for each part of it, with the same figures.
fn answer_of(id: &str, input: u32, output: u32) -> String {
    let line = |part: Value| {
        json!({ "type": "assistant", "timestamp": "2036-01-02T03:04:05Z", "message": { "id": id, "role": "assistant",
                "model": "claude-opus-4-8", "content": [part], "usage": { "input_tokens": input, "output_tokens": output,
                "cache_read_input_tokens": 800, "cache_creation_input_tokens": 100 } } })
        .to_string()
    };
    let text = line(json!({ "type": "text", "text": "x" }));
    let tool = line(json!({ "type": "tool_use", "name": "Bash" }));
    format!("{text}\n{tool}\n")
}

#[test]
fn what_is_asked_in_a_session_is_answered_of_its_own_loop() {
    let sandbox = Sandbox::new();
    for command in ["/checkpoint", "/health-status", "/token-status", "/cost-report"] {
        sandbox.prompt_hook(command).blocks(&["no loop", "/ralph-loop"]);
    }
    let transcript = sandbox.base().join("t.jsonl");
    fs::write(&transcript, answer_of("before", 5_000, 5_000)).unwrap();
    sandbox.write("wiggum.toml", "[prices.\"claude-opus-4-8\"]\ninput = 5\noutput = 25\n");
    let begin = json!({ "prompt": "/ralph-loop make it --same-error 4", "transcript_path": transcript });
    sandbox.hook("user-prompt-submit", begin).lets_go(&[]);
    let text = fs::read_to_string(&transcript).unwrap();
    let text = text + &answer_of("m1", 1_000, 40) + &answer_of("m2", 200, 60);
    fs::write(&transcript, text).unwrap();
    let stop = |message: &str| {
        sandbox.hook("stop", json!({ "transcript_path": transcript, "last_assistant_message": message }))
    };
    sandbox.work(1);
    stop("I wrote the parser.\n\nError: no such thing\n\nReady for review.").blocks(&[]);

    sandbox.prompt_hook("/health-status").blocks(&[
        "iteration 2/10",
        "degraded",
        "1 of 4 with the same error",
        "it says \"ready for review\"",
        "I wrote the parser.",
    ]);
    // Once for each answer, and only of this loop.
    sandbox
        .prompt_hook("/token-status")
        .blocks(&["claude-opus-4-8      2  1 200     100       1 600          200"]);
    sandbox.prompt_hook("/cost-report").blocks(&["$0.0175", "$0.0088 for each iteration", "iteration 2/10"]);
    let show = sandbox.wiggum(&["session", "show", "--session", &sandbox.id(), "--json"]).exits(0).stdout;
    let show: Value = serde_json::from_str(&show).unwrap();
    assert_eq!(show["usage"]["claude-opus-4-8"]["input_tokens"], 1_200, "{show:#}");
    assert_eq!(show["health"], "degraded");
    sandbox.wiggum(&["session", "show"]).exits(0).says("1 200").says("iteration 2/10").says("make it");

    fs::remove_file(&transcript).unwrap();
    sandbox.prompt_hook("/token-status").blocks(&["no figures"]);
    sandbox.wiggum(&["session", "show", "--session", "none"]).complains(2, &["no loop", "hint:"]);
}

#[test]
fn a_checkpoint_of_a_session_is_in_its_next_prompt() {
    let sandbox = Sandbox::new();
    sandbox.write("plan.md", "- [x] read it\n- [ ] write it\n- [ ] publish it (optional)\n");
    sandbox.begin("/ralph-loop make it --plan plan.md");
    sandbox.work(1);
    let message = "I read it all.\n\nDecisions:\n- use the new API\n\nNext steps:\n- write the tests\n";
    sandbox.stop(message).blocks(&["Iteration 2/10"]);
    sandbox.work(2);
    sandbox.stop("Decisions:\n- keep the old name\n").blocks(&["Iteration 3/10"]);
    let made = sandbox.prompt_hook("/checkpoint mind the \"old\" format");
    let stands = [
        "checkpoint 1",
        "iteration 3",
        "mind the \"old\" format",
        "- read it",
        "- write it",
        "- use the new API",
        "- keep the old name",
        "- write the tests",
    ];
    made.blocks(&stands);
    assert!(!made.0["reason"].as_str().unwrap().contains("publish it"), "nobody has to");
    sandbox.work(3);
    sandbox.stop("Going on.").blocks(&stands);
    sandbox.work(4);
    let answer = sandbox.stop("Going on.");
    answer.blocks(&["Iteration 5/10"]);
    assert!(!answer.0["reason"].as_str().unwrap().contains("use the new API"), "it was told once");

    sandbox
        .wiggum(&["session", "checkpoint", "--session", &sandbox.id()])
        .exits(0)
        .says("checkpoint 2")
        .says("- write it");
    // The user's own words carry it too, if they come first.
    let said = sandbox.prompt_hook("go on, please");
    let context = said.0["hookSpecificOutput"]["additionalContext"].as_str().unwrap();
    assert!(context.contains("checkpoint 2") && context.contains("- use the new API"), "{context}");
    sandbox.prompt_hook("and more").is_silent();
    sandbox.wiggum(&["session", "show", "--session", &sandbox.id()]).exits(0).says("checkpoint 2");
}

#[test]
fn the_loop_of_the_plugin_is_taken_over() {
    let sandbox = Sandbox::new();
    let file = |session: &str| {
        format!(
            "---\nactive: true\niteration: 3\nsession_id: {session}\nmax_iterations: 7\n\
             completion_promise: \"ALL GREEN\"\nstarted_at: \"2026-01-02T03:04:05Z\"\n---\n\nFix everything.\n"
        )
    };
    sandbox.write(".claude/ralph-loop.local.md", &file("another"));
    sandbox.stop("x").is_silent();
    assert!(sandbox.exists(".claude/ralph-loop.local.md") && !sandbox.exists(".wiggum"));

    sandbox.write(".claude/ralph-loop.local.md", &file(&sandbox.id()));
    sandbox.stop("x").blocks(&["Fix everything.", "Iteration 4/7", "<promise>ALL GREEN</promise>"]);
    assert!(!sandbox.exists(".claude/ralph-loop.local.md"), "its own program must not go on with it too");
    assert_eq!(sandbox.session()["started_at"], "2026-01-02T03:04:05Z");
    sandbox.stop("<promise>ALL GREEN</promise>").lets_go(&["done after 4 iterations"]);

    sandbox.write(".claude/ralph-loop.local.md", &file("s2").replace("iteration: 3", "iteration: three"));
    sandbox.hook("stop", json!({ "session_id": "s2" })).lets_go(&["not in force", "`iteration`"]);
}

#[test]
fn the_status_has_a_block_per_agent() {
    let sandbox = Sandbox::new();
    sandbox.begin("/ralph-loop make it --max-iterations 5");
    sandbox.stop("Fixing test failures\nand more").blocks(&[]);
    let start =
        ["session", "start", "--session", "second", "--prompt", "other\ntask", "--max-iterations", "0"];
    sandbox.wiggum(&start).exits(0).says("iteration 1");
    sandbox
        .hook("stop", json!({ "session_id": "second", "last_assistant_message": "<promise>DONE</promise>" }))
        .lets_go(&[]);

    let status = sandbox.wiggum(&["status"]).exits(0);
    let status = status
        .says(&format!("{} - WORKING", sandbox.id()))
        .says("Ralph: iteration 2/5, last: \"Fixing test failures\"");
    status.says("second - READY").says("goal_achieved");
    let json: Value = serde_json::from_str(&sandbox.wiggum(&["status", "--json"]).exits(0).stdout).unwrap();
    assert_eq!(json[0]["kind"], "session");
    assert_eq!(json[0]["session_id"], sandbox.id());
    assert_eq!((&json[0]["state"], &json[0]["current_iteration"]), (&json!("WORKING"), &json!(2)));
    assert_eq!(
        (&json[1]["state"], &json[1]["termination_reason"]),
        (&json!("READY"), &json!("goal_achieved"))
    );

    sandbox.hook("session-end", json!({})).is_silent();
    sandbox.wiggum(&["session", "status"]).exits(0).says(&format!("{} - READY", sandbox.id()));
    sandbox.prompt_hook("/ralph-status").blocks(&["iteration 2/5", "second"]);
    let state = fs::read_to_string(sandbox.state_file()).unwrap();
    let updated = sandbox.session()["updated_at"].as_str().unwrap().to_owned();
    fs::write(sandbox.state_file(), state.replace(&updated, "2026-01-02T03:04:05Z")).unwrap();
    sandbox.wiggum(&["status"]).exits(0).never_says(&sandbox.id()).says("second");
    sandbox.wiggum(&["session", "status"]).exits(0).says(&sandbox.id());

    fs::write(sandbox.state_file(), "{").unwrap();
    sandbox.wiggum(&["status"]).exits(0).says("broken:").says("second - READY");
}

#[test]
fn a_session_started_from_the_command_line_is_checked_first() {
    let sandbox = Sandbox::new();
    sandbox.wiggum(&["session", "start", "--prompt", "x"]).complains(2, &["which session?"]);
    sandbox
        .wiggum(&["session", "start", "--session", "s", "--prompt", " "])
        .complains(2, &["the task is empty"]);
    let verify = |command| {
        sandbox.wiggum(&["session", "start", "--session", "s", "--prompt", "x", "--verify", command])
    };
    verify("check 'unclosed").complains(2, &["never closed"]);
    assert!(!sandbox.state_file().with_file_name("s.json").exists());
    let promise = ["session", "start", "--session", "s", "--prompt", "x", "--completion-promise", "a<b"];
    sandbox.wiggum(&promise).complains(2, &["--completion-promise"]);
    // A program may still be written, so that it is missing is only told.
    let told = verify("no-such-program").exits(0);
    assert!(told.stderr.contains("`no-such-program` cannot run yet"), "{}", told.stderr);
}

#[test]
fn an_input_that_never_ends_is_not_waited_for() {
    let sandbox = Sandbox::new();
    let mut command = sandbox.command(env!("CARGO_BIN_EXE_wiggum"));
    command.current_dir(&sandbox.root).args(["hook", "stop"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let _open = child.stdin.take();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&output.stdout).contains("took too long"));
}

#[test]
fn a_lock_that_is_never_given_back_is_not_waited_for() {
    let sandbox = Sandbox::new();
    sandbox.begin("/ralph-loop make it");
    let lock = fs::File::open(sandbox.state_file().with_extension("lock")).unwrap();
    lock.lock().unwrap();
    sandbox.stop("a").lets_go(&["took too long"]);
    lock.unlock().unwrap();
    sandbox.stop("a").blocks(&["Iteration 2/10"]);
}

#[test]
fn nothing_of_a_check_is_left() {
    let sandbox = Sandbox::new();
    sandbox.begin("/ralph-loop make it --verify 'sleep 1000 & echo started'");
    sandbox.stop("<promise>DONE</promise>").lets_go(&["its check passed"]);
    sandbox.check();
}

/// What an agent of a session may put in place of a file that a hook reads or writes.
const PLANTED: [(&str, &str); 4] = [
    ("a pipe", "mkfifo \"$AT\""),
    ("a device without end", "ln -s /dev/zero \"$AT\""),
    ("a directory", "mkdir \"$AT\""),
    ("a link to somebody's file", "ln -s \"$SANDBOX/theirs\" \"$AT\""),
];

/// Plants it, and tells whether it is there.
fn plant(sandbox: &Sandbox, how: &str, at: &std::path::Path) {
    fs::create_dir_all(at.parent().unwrap()).unwrap();
    if at.is_dir() && !at.is_symlink() {
        fs::remove_dir_all(at).unwrap();
    } else {
        drop(fs::remove_file(at));
    }
    let theirs = sandbox.base().join("theirs");
    fs::write(&theirs, "theirs").unwrap();
    let mut shell = sandbox.command("sh");
    assert!(shell.args(["-c", how]).env("AT", at).status().unwrap().success(), "{how}");
}

/// Within a second or two, of which most is the start of a process; nobody's file is written.
fn answers_soon(sandbox: &Sandbox, what: &str, ask: impl FnOnce() -> Answer) -> Answer {
    let begun = std::time::Instant::now();
    let answer = ask();
    let took = begun.elapsed();
    assert!(took < std::time::Duration::from_secs(5), "{what}: it took {took:?}");
    assert_eq!(fs::read_to_string(sandbox.base().join("theirs")).unwrap(), "theirs", "{what}");
    answer
}

#[test]
fn nothing_planted_where_the_session_is_kept_is_obeyed() {
    for (what, how) in PLANTED {
        for ending in ["json", "lock", "cancelled"] {
            let sandbox = Sandbox::new();
            sandbox.prompt_hook("/ralph-loop --max-iterations 5 --completion-promise DONE Do it");
            let file = sandbox.state_file();
            let named = format!("{what} at the {ending}");
            plant(&sandbox, how, &file.with_extension(ending));
            let answer = answers_soon(&sandbox, &named, || sandbox.stop("still at it"));
            match ending {
                "cancelled" => answer.lets_go(&["cancelled"]),
                _ => answer.lets_go(&["the loop is not in force"]),
            }
            answers_soon(&sandbox, &named, || sandbox.prompt_hook("/cancel-ralph"));
            answers_soon(&sandbox, &named, || sandbox.prompt_hook("/ralph-loop --max-iterations 5 Again"));
            answers_soon(&sandbox, &named, || sandbox.hook("session-end", json!({})));
        }
    }
}

#[test]
fn nothing_planted_in_the_workspace_holds_up_a_session() {
    for (what, how) in PLANTED {
        for name in [
            ".claude/ralph-loop.local.md",
            "wiggum.toml",
            "PLAN.md",
            ".git/HEAD",
            ".git/packed-refs",
            ".git/commondir",
            ".git/refs/heads/main",
        ] {
            let sandbox = Sandbox::new();
            sandbox.write("PLAN.md", "- [ ] one\n");
            sandbox.prompt_hook("/ralph-loop --max-iterations 5 --plan PLAN.md Do it");
            plant(&sandbox, how, &sandbox.root.join(name));
            let named = format!("{what} at {name}");
            answers_soon(&sandbox, &named, || sandbox.stop("still at it"));
            answers_soon(&sandbox, &named, || sandbox.prompt_hook("/checkpoint"));
            // A session of nobody's: it stops.
            let asked =
                json!({ "session_id": "another", "cwd": sandbox.root, "last_assistant_message": "done" });
            let ask = || sandbox.hook_raw("stop", asked.to_string().as_bytes());
            let other = answers_soon(&sandbox, &named, ask);
            assert_eq!(other.0.get("decision"), None, "{named}: {:#}", other.0);
            if name.ends_with(".local.md") {
                other.lets_go(&["ralph-loop.local.md"]);
            }
        }
    }
}

#[test]
fn no_transcript_is_waited_for_or_read_to_its_end() {
    for (what, how) in PLANTED {
        let sandbox = Sandbox::new();
        sandbox.prompt_hook("/ralph-loop --max-iterations 5 Do it");
        let transcript = sandbox.base().join("transcript.jsonl");
        plant(&sandbox, how, &transcript);
        let stop = || sandbox.hook("stop", json!({ "transcript_path": transcript }));
        answers_soon(&sandbox, what, stop).blocks(&["Do it"]);
        for command in ["/token-status", "/cost-report", "/ralph-status"] {
            answers_soon(&sandbox, what, || sandbox.prompt_hook(command));
        }
    }
    for path in ["/dev/zero", "/dev/tty", "/proc/kmsg", "/nowhere"] {
        let sandbox = Sandbox::new();
        fs::write(sandbox.base().join("theirs"), "theirs").unwrap();
        sandbox.prompt_hook("/ralph-loop --max-iterations 5 Do it");
        let stop = || sandbox.hook("stop", json!({ "transcript_path": path }));
        answers_soon(&sandbox, path, stop).blocks(&["Do it"]);
    }
}

#[test]
fn what_is_too_large_is_not_read() {
    let sandbox = Sandbox::new();
    fs::write(sandbox.base().join("theirs"), "theirs").unwrap();
    sandbox.prompt_hook("/ralph-loop --max-iterations 5 Do it");
    // It takes up no room, and would take all memory.
    let huge = |path: PathBuf| {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let file = fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
        file.set_len(1 << 40).unwrap();
    };
    huge(sandbox.root.join(".claude/ralph-loop.local.md"));
    let asked = json!({ "session_id": "another", "cwd": sandbox.root, "last_assistant_message": "done" });
    let ask = || sandbox.hook_raw("stop", asked.to_string().as_bytes());
    answers_soon(&sandbox, "a huge file of the plugin", ask).lets_go(&["ralph-loop.local.md"]);
    huge(sandbox.state_file());
    let stop = || sandbox.stop("still at it");
    answers_soon(&sandbox, "a huge state", stop).lets_go(&["the loop is not in force"]);
}
