//! Runs recorded and shown again, elsewhere, without anything of what made them.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may fail here")]

mod support;

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use support::{Run, Sandbox, WORKER};
use wiggum_core::event::{Envelope, Event};
use wiggum_core::policy::Policy;
use wiggum_core::redact::Secrets;
use wiggum_store::recording::{self, Entry, Header, Recorder, Target, VERSION};

fn file(sandbox: &Sandbox) -> PathBuf {
    sandbox.base().join("run.rec")
}

fn record(sandbox: &Sandbox, agent: &str, args: &[&str]) -> Run {
    let path = file(sandbox).display().to_string();
    let mut all = vec!["--record", &path];
    all.extend(args);
    sandbox.run(agent, &all)
}

/// In a directory with nothing in it.
fn replay(sandbox: &Sandbox, args: &[&str]) -> Run {
    let elsewhere = sandbox.base().join("elsewhere");
    fs::create_dir_all(&elsewhere).unwrap();
    let path = file(sandbox).display().to_string();
    let mut all = vec!["replay", &path];
    all.extend(args);
    sandbox.wiggum_in(&elsewhere, &all)
}

fn entries(sandbox: &Sandbox) -> Vec<Entry> {
    recording::read(&file(sandbox)).unwrap().map(|line| line.entry).collect()
}

/// Claims too early, fails, asks, leaves a process, and works.
const EVENTFUL: &str = r#"
    keep_prompt
    echo "working on $WIGGUM_TASK_ID, attempt $WIGGUM_ATTEMPT"
    echo "a complaint" >&2
    case $WIGGUM_TASK_ID-$WIGGUM_ATTEMPT in
        A-1) claim; exit ;;
        A-2) exit 3 ;;
        B-*) setsid sleep 1000 & ;;
        C-*) printf '<escalate type="stuck">\n<summary>Which one?</summary>\n</escalate>\n'; exit ;;
    esac
    echo x > "$WIGGUM_TASK_ID.txt"
    claim"#;

const CHECK: [&str; 2] = ["--verify", "echo checking; test -e $WIGGUM_TASK_ID.txt"];

#[test]
fn a_replay_prints_what_the_run_printed() {
    let mut sandbox = Sandbox::with_tasks(&["A", "B", "C"]);
    sandbox.env("WIGGUM_RETRY_BACKOFF", "50ms");
    let live = record(&sandbox, EVENTFUL, &CHECK).exits(6);
    assert!(
        live.stdout.contains("claimed, but not done") && live.stdout.contains("✗ a complaint"),
        "{live:?}"
    );
    assert!(
        live.stdout.contains("q1 about C: Which one?\n") && live.stdout.contains("… waiting: "),
        "{live:?}"
    );
    assert!(live.stdout.contains("it had left running"), "{live:?}");
    let again = replay(&sandbox, &[]).exits(0);
    assert_eq!(again.stdout, live.stdout);
    assert!(again.stderr.contains("events in order"), "{}", again.stderr);
    assert!(!again.stderr.contains("cut"), "{}", again.stderr);
    assert_eq!(replay(&sandbox, &["--speed", "1000000"]).stdout, live.stdout);
    assert_eq!(replay(&sandbox, &["--step"]).stdout, live.stdout);
}

/// Tools, tokens and text of an agent with a stream of its own.
#[test]
fn a_replay_of_a_scripted_run_prints_what_the_run_printed() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    let scenario = r#"
[[attempt]]
steps = [
    { say = "I will write it." },
    { write = { path = "A.txt", content = "x" } },
    { run = "cat A.txt; echo" },
    { usage = { input_tokens = 7, output_tokens = 5, cost_usd = 0.5 } },
    { claim = "" },
]
"#;
    let path = sandbox.base().join("scenario.toml");
    fs::write(&path, scenario).unwrap();
    let (path, recording) = (path.display().to_string(), file(&sandbox).display().to_string());
    let live = sandbox.wiggum(&["run", "--headless", "--scenario", &path, "--record", &recording]).exits(0);
    assert!(live.stdout.contains("⚙ write A.txt") && live.stdout.contains("$0.50"), "{live:?}");
    assert_eq!(replay(&sandbox, &[]).exits(0).stdout, live.stdout);
}

#[test]
fn a_replay_prints_the_journal() {
    let sandbox = Sandbox::with_tasks(&["A", "B"]);
    sandbox.run(WORKER, &["--max-iterations", "1"]).exits(3);
    let live = record(&sandbox, WORKER, &[]).exits(0);
    assert_eq!(replay(&sandbox, &[]).stdout, live.stdout, "the run before it is known, but not shown");
    let journal = sandbox.wiggum(&["events", "--json"]).exits(0);
    assert_eq!(replay(&sandbox, &["--json"]).exits(0).stdout, journal.stdout);
}

#[test]
fn a_recording_holds_what_is_needed_to_understand_a_run() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    record(&sandbox, r#"cat > /dev/null; echo out; echo err >&2; echo x > A.txt; claim"#, &CHECK).exits(0);
    let entries = entries(&sandbox);
    let texts = |wanted: &str| {
        let texts = entries.iter().filter_map(|entry| match entry {
            Entry::Output { stream, text } if format!("{stream:?}") == wanted => Some(text.as_str()),
            _ => None,
        });
        texts.collect::<String>()
    };
    assert_eq!(texts("Stdout"), "out\n\n<promise>DONE</promise>\n");
    assert_eq!(texts("Stderr"), "err\n");
    assert!(
        entries.iter().any(|entry| matches!(entry, Entry::AgentStarted { iteration: 1, attempt: 1, .. }))
    );
    assert!(entries.iter().any(|entry| matches!(entry, Entry::AgentEnded { exit } if exit.success())));
    let prompt = sandbox.events().into_iter().find_map(|event| match event {
        Event::IterationStarted { prompt, .. } => Some(prompt.sha256),
        _ => None,
    });
    let prompt = prompt.unwrap();
    let kept = entries.iter().find_map(|entry| match entry {
        Entry::Blob { sha256, text } if *sha256 == prompt => Some(text.clone()),
        _ => None,
    });
    assert_eq!(kept.unwrap(), sandbox.blob(&prompt));
    assert!(matches!(entries.last(), Some(Entry::End { exit_code: 0 })));
}

#[test]
fn neither_secrets_nor_the_home_directory_get_in() {
    let mut sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.write("PROMPT.md", "Use the token tell-nobody-42, please.\n");
    sandbox.commit_all("a careless prompt");
    sandbox.env("DEPLOY_TOKEN", "tell-nobody-42");
    let home = sandbox.base().join("home").display().to_string();
    let dashes = home.replace('/', "-");
    let script = format!("echo \"$DEPLOY_TOKEN tell-nobody-42 {home}/x ; {dashes}-x\"; claim");
    record(&sandbox, &script, &["--verify", &format!("echo tell-nobody-42 {home}/y")]).exits(0);
    let all = format!("{:?} {:?}", recording::read(&file(&sandbox)).unwrap().header, entries(&sandbox));
    assert!(!all.contains("tell-nobody-42"), "{all}");
    assert!(!all.contains(&home) && !all.contains(&dashes), "{all}");
    assert!(all.contains("~/x") && all.contains("~/y") && all.contains("[DEPLOY_TOKEN redacted]"), "{all}");
}

#[test]
fn a_recording_of_a_killed_run_is_shown_as_far_as_it_goes() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.make_pipe("ready");
    let path = file(&sandbox).display().to_string();
    let started = sandbox.start("echo so far; hang", &["--record", &path]);
    sandbox.wait_ready();
    // What was seen is in the file a second later, whatever happens then.
    let until = Instant::now() + Duration::from_secs(60);
    while !sandbox.launch(&sandbox.base(), &["replay", &path]).outcome_only().stdout.contains("so far") {
        assert!(Instant::now() < until, "what was seen should be in the file");
    }
    started.kill();
    let shown = sandbox.launch(&sandbox.base(), &["replay", &path]).outcome_only().exits(0);
    assert!(shown.stdout.ends_with("▶ Iteration 1/50  A  Do A\n  │ so far\n"), "{shown:?}");
    assert!(shown.stderr.contains("warning: the recording is cut: it ends after"), "{shown:?}");
    // The loop goes on, and ends what was left.
    sandbox.run(WORKER, &[]).exits(0);
}

#[test]
fn a_full_disk_costs_the_recording_and_not_the_run() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    let run = sandbox.run(WORKER, &["--record", "/dev/full"]).exits(0);
    assert!(run.stderr.contains("warning: could not write the recording /dev/full"), "{run:?}");
    assert_eq!(sandbox.state_of("A"), "done");
}

#[test]
fn a_recording_does_not_get_into_the_work() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    sandbox
        .run(WORKER, &["--record", "run.rec"])
        .complains(2, &["run.rec", "would be taken for work", "hint: "]);
    assert!(!sandbox.exists("run.rec") && !sandbox.exists(".wiggum"));
    sandbox.run(WORKER, &["--record", "/nowhere/run.rec"]).complains(2, &["could not write", "hint: "]);
    sandbox.run(WORKER, &["--record", ".wiggum/run.rec"]).exits(0);
    sandbox.wiggum(&["replay", ".wiggum/run.rec"]).exits(0).says("All tasks complete");
    sandbox.assert_clean();
}

/// The example of the documentation, in every sandbox and from a folder of the repository.
#[test]
fn a_recording_outside_of_the_tree_works_as_documented() {
    let sandbox = Sandbox::with_tasks(&["A", "B"]);
    sandbox.run(WORKER, &["--record", "../run.rec", "--max-iterations", "1"]).exits(3);
    sandbox.wiggum(&["replay", "../run.rec"]).exits(0).says("A");
    fs::create_dir(sandbox.root.join("folder")).unwrap();
    let command = sandbox.agent(WORKER);
    let args = ["run", "--headless", "--agent-command", &command, "--record", "../../second.rec"];
    sandbox.wiggum_in(&sandbox.root.join("folder"), &args).exits(0);
    assert!(sandbox.base().join("second.rec").exists());
    sandbox.run(WORKER, &["--record", "../missing/run.rec"]).complains(2, &["could not write", "hint: "]);
    // What leads back into the tree is found out too.
    sandbox.run(WORKER, &["--record", "../repo/run.rec"]).complains(2, &["would be taken for work"]);
    sandbox.assert_clean();
}

#[test]
fn what_is_no_recording_is_refused() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    fs::write(file(&sandbox), "just text\n").unwrap();
    replay(&sandbox, &[]).complains(2, &["is not a recording", "hint: "]);
    write(&sandbox, VERSION + 1, &[]);
    replay(&sandbox, &[]).complains(2, &["later version"]);
    sandbox.wiggum(&["replay", "missing.rec"]).complains(2, &["missing.rec"]);
    sandbox.wiggum(&["replay", "any.rec", "--speed", "0"]).exits(2);
}

#[test]
fn a_journal_that_cannot_be_is_told() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    record(&sandbox, WORKER, &[]).exits(0);
    let whole = sandbox.journal();
    write(&sandbox, VERSION, &whole);
    replay(&sandbox, &[]).exits(0);
    let without = |unwanted: fn(&Event) -> bool| {
        whole.iter().filter(|envelope| !unwanted(&envelope.event)).cloned().collect::<Vec<_>>()
    };
    write(&sandbox, VERSION, &without(|event| matches!(event, Event::AgentEnded { .. })));
    replay(&sandbox, &[]).complains(1, &["broken: ", "broken rule", "hint: "]);
}

/// A recording of nothing but these events.
fn write(sandbox: &Sandbox, version: u32, journal: &[Envelope]) {
    let target =
        Target { path: file(sandbox), database: sandbox.base().join("nothing"), hidden: Secrets::among([]) };
    let at = Timestamp::UNIX_EPOCH;
    let header = Header { version, wiggum: "0".to_owned(), at, policy: Box::new(Policy::default()) };
    let recorder = Recorder::create(target, header).unwrap();
    for envelope in journal {
        recorder.line(Entry::Event { envelope: Box::new(envelope.clone()), upto: envelope.seq });
    }
    recorder.finish(0).unwrap();
}
