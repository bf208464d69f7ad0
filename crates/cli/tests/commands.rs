//! The commands beside `run`, driven through the real program in repositories of their own.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test may fail here")]
#![expect(clippy::disallowed_methods, reason = "a person's shell starts the program as a process of its own")]

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use uuid::Uuid;
use wiggum_core::event::{EVENT_VERSION, Envelope, Event};
use wiggum_core::ids::LoopId;
use wiggum_engine::checkout::{Checkout, StateRoot};
use wiggum_store::{Append, Holder, Identity, Store};

/// No wait in here comes near it unless something is broken.
const PATIENCE: Duration = Duration::from_secs(60);

const TWO_TASKS: &str = r#"{
  "userStories": [
    { "id": "one", "title": "The first", "description": "Write one.txt", "passes": false },
    { "id": "two", "title": "The second", "description": "Write two.txt", "passes": false, "depends_on": ["one"] }
  ]
}
"#;

const WORKS: &str = r#"
[[attempt]]
steps = [{ write = { path = "{task}.txt", content = "{task}\n" } }, { say = "Wrote it." }, { claim = "" }]
"#;

const HANGS: &str = r#"
[[attempt]]
steps = [{ say = "thinking" }, { hang = true }]
"#;

/// The first task asks, `other` hangs.
const ASKS: &str = r#"
[[attempt]]
task = "one"
number = 1
steps = [{ escalate = { type = "deviation", summary = "Which colour?", context = "Two are left.", options = ["red", "blue"], question = "Say one." } }]

[[attempt]]
task = "one"
steps = [{ write = { path = "one.txt", content = "colour\n" } }, { claim = "" }]

[[attempt]]
task = "other"
steps = [{ hang = true }]

[[attempt]]
steps = [{ write = { path = "{task}.txt", content = "{task}\n" } }, { claim = "" }]
"#;

/// A repository and everything around it that a person would have.
struct Place {
    base: tempfile::TempDir,
    root: PathBuf,
}

impl Place {
    fn new(backlog: &str) -> Self {
        let place = Self::outside_git(backlog);
        place.git(&["init", "--quiet", "--initial-branch=main"]);
        place.git(&["add", "-A"]);
        place.git(&["-c", "user.name=t", "-c", "user.email=t@t", "commit", "--quiet", "-m", "first"]);
        place
    }

    fn outside_git(backlog: &str) -> Self {
        let base = tempfile::tempdir().unwrap();
        let root = base.path().canonicalize().unwrap().join("project");
        fs::create_dir_all(&root).unwrap();
        fs::create_dir(base.path().join("home")).unwrap();
        fs::write(root.join("PRD.json"), backlog).unwrap();
        Self { base, root }
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        let path = std::env::var_os("PATH").unwrap_or_default();
        command.env_clear().env("PATH", path).env("HOME", self.base.path().join("home"));
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
        command.env("USER", "ralph").current_dir(&self.root).stdin(Stdio::null());
        command
    }

    fn wiggum(&self, args: &[&str]) -> Command {
        let mut command = self.command(env!("CARGO_BIN_EXE_wiggum"));
        command.args(args);
        command
    }

    fn git(&self, args: &[&str]) -> String {
        let output = self.command("git").args(args).output().unwrap();
        assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs a command that must end with this code; what it wrote.
    fn check(&self, args: &[&str], code: i32) -> String {
        said(&self.wiggum(args).output().unwrap(), args, code)
    }

    fn json(&self, args: &[&str]) -> Value {
        let output = self.wiggum(args).output().unwrap();
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{args:?}: {error}: {output:?}"))
    }

    fn ids(&self) -> Vec<String> {
        let tasks = self.json(&["task", "list", "--json"]);
        tasks.as_array().unwrap().iter().map(|task| task["id"].as_str().unwrap().to_owned()).collect()
    }

    fn scenario(&self, text: &str) -> String {
        let path = self.base.path().join("scenario.toml");
        fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    /// Runs the loop to its end.
    fn run(&self, scenario: &str, code: i32) -> String {
        let scenario = self.scenario(scenario);
        self.check(&["run", "--headless", "--json", "--scenario", &scenario], code)
    }

    fn start(&self, scenario: &str) -> Background {
        let scenario = self.scenario(scenario);
        Background::start(&mut self.wiggum(&["run", "--headless", "--json", "--scenario", &scenario]))
    }

    /// Runs many commands at the same time; all must succeed.
    fn at_once(&self, commands: impl Iterator<Item = Vec<String>>) {
        let start = |args: Vec<String>| {
            let args: Vec<&str> = args.iter().map(String::as_str).collect();
            self.wiggum(&args).stdout(Stdio::null()).spawn().unwrap()
        };
        let children: Vec<Child> = commands.map(start).collect();
        for mut child in children {
            assert!(child.wait().unwrap().success());
        }
    }

    /// A scenario whose agent tells that it runs: the event comes before the process.
    fn says_when_it_hangs(&self) -> (String, Receiver<()>) {
        let pipe = self.base.path().join("started");
        assert!(self.command("mkfifo").arg(&pipe).status().unwrap().success());
        let scenario =
            HANGS.replace("{ hang", &format!("{{ run = \"echo > '{}'\" }}, {{ hang", pipe.display()));
        let (sender, started) = channel();
        std::thread::spawn(move || {
            fs::read(pipe).unwrap();
            sender.send(()).unwrap_or_default();
        });
        (scenario, started)
    }

    fn database(&self) -> PathBuf {
        let root = StateRoot::new(self.base.path().join("home/.local/state/wiggum"));
        let found = Checkout::new(&self.root, &root).find().unwrap();
        found.map_or_else(|| root.path().join("none"), |dir| dir.database())
    }
}

impl Drop for Place {
    /// Ends whatever a test left running, also after it failed.
    fn drop(&mut self) {
        let store = Store::open_existing(&self.database());
        for record in store.ok().flatten().and_then(|store| store.loops().ok()).unwrap_or_default() {
            wiggum_workspace::process::end_marked("WIGGUM_LOOP_ID", &record.id.to_string());
        }
    }
}

fn said(output: &Output, args: &[&str], code: i32) -> String {
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{args:?}: {text}");
    text
}

fn contains_all(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is missing in: {text}");
    }
}

/// A program that goes on while the test does other things; its lines of JSON come as they are.
struct Background {
    child: Child,
    lines: Receiver<Value>,
}

impl Background {
    fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                drop(sender.send(serde_json::from_str(&line).unwrap()));
            }
        });
        Self { child, lines }
    }

    /// The next event of this type.
    fn wait_for(&self, kind: &str) -> Value {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let event = self.lines.recv_timeout(left).unwrap_or_else(|error| panic!("no {kind}: {error}"));
            if event["type"] == kind {
                return event;
            }
        }
    }

    /// All that is still to come, and how it ended.
    fn rest(mut self) -> (Vec<Value>, ExitStatus) {
        let mut rest = Vec::new();
        while let Ok(event) = self.lines.recv_timeout(PATIENCE) {
            rest.push(event);
        }
        (rest, self.child.wait().unwrap())
    }

    fn kill(&mut self) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, Signal::KILL).unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        // Only a failed test comes here with the program still running.
        if self.child.try_wait().is_ok_and(|ended| ended.is_none()) {
            self.kill();
        }
    }
}

#[test]
fn without_a_loop_there_is_nothing_to_see_and_nothing_to_steer() {
    let place = Place::new(TWO_TASKS);
    for command in ["status", "inbox"] {
        assert!(place.check(&[command], 0).contains("no loops here yet"));
        assert_eq!(place.check(&[command, "--json"], 0), "[]\n");
    }
    assert!(place.check(&["events"], 0).contains("no loops here yet"));
    assert_eq!(place.check(&["events", "--json"], 0), "");
    let refused: [&[&str]; 5] =
        [&["pause"], &["stop"], &["skip", "one"], &["show", "one"], &["answer", "q1", "1"]];
    for args in refused {
        assert!(place.check(args, 2).contains("no loops here yet"), "{args:?}");
    }
    assert!(!place.root.join(".wiggum").exists(), "looking makes nothing");
    assert!(place.check(&["graph"], 0).contains("n0 --> n1"));
    let graph: serde_json::Value = serde_json::from_str(&place.check(&["graph", "--json"], 0)).unwrap();
    assert_eq!(
        graph["edges"],
        serde_json::json!([{"from": graph["nodes"][0]["id"], "to": graph["nodes"][1]["id"]}])
    );
    assert!(place.check(&["doctor"], 0).contains("no loops here yet"));
}

#[test]
fn forty_additions_at_once_lose_nothing() {
    let place = Place::new(TWO_TASKS);
    place.at_once((0..40).map(|number| {
        let (id, text) = (format!("new-{number}"), format!("Do \"this\" {number}"));
        ["task", "add", "--id", &id, "--description", &text, "--depends-on", "one"]
            .map(str::to_owned)
            .to_vec()
    }));
    let ids: BTreeSet<String> = place.ids().into_iter().collect();
    assert_eq!(ids.len(), 42, "{ids:?}");
    assert!((0..40).all(|number| ids.contains(&format!("new-{number}"))));
    assert_eq!(place.check(&["task", "validate"], 0), "42 tasks, no problems (PRD.json)\n");
    assert_eq!(place.git(&["status", "--porcelain"]), " M PRD.json\n", "the lock is out of git's sight");
}

#[test]
fn tasks_get_the_next_free_number_and_the_cap_holds() {
    let place = Place::outside_git(
        r#"{"userStories": [{"id": "US-001", "title": "t", "description": "d", "passes": false}]}"#,
    );
    place.at_once((0..8).map(|number| {
        let text = format!("Another\nwith more to say: {number}");
        ["task", "add", "--description", &text].map(str::to_owned).to_vec()
    }));
    assert_eq!(place.ids(), (1..=9).map(|number| format!("US-{number:03}")).collect::<Vec<_>>());
    let title = &place.json(&["task", "list", "--json"])[8]["title"];
    assert_eq!(title, "Another", "the first line stands for a title");

    fs::write(place.root.join("wiggum.toml"), "[limits]\nmax_tasks = 9\n").unwrap();
    let before = fs::read(place.root.join("PRD.json")).unwrap();
    let text = place.check(&["task", "add", "--description", "one too many"], 2);
    contains_all(&text, &["`US-010` would be more than the 9 tasks that are allowed", "max_tasks"]);
    assert_eq!(fs::read(place.root.join("PRD.json")).unwrap(), before);
}

#[test]
fn the_backlog_is_edited_and_judged() {
    let place = Place::new(TWO_TASKS);
    assert_eq!(place.check(&["task", "set-status", "one", "done"], 0), "one set to done (PRD.json)\n");
    let list = place.check(&["task", "list"], 0);
    assert_eq!(list, "one  done      The first  (done by hand)\ntwo  open      The second\n");
    place.check(&["task", "set-status", "one", "open"], 0);
    assert!(place.check(&["task", "list"], 0).contains("(waits on one (open))"));
    assert_eq!(fs::read_to_string(place.root.join("PRD.json")).unwrap(), TWO_TASKS, "byte for byte");

    contains_all(&place.check(&["task", "set-status", "three", "done"], 2), &["no task `three`", "one, two"]);
    contains_all(&place.check(&["task", "set-status", "one", "failed"], 2), &["cannot say"]);
    contains_all(&place.check(&["task", "delete", "one"], 2), &["`two` depend"]);
    let edit = ["task", "edit", "two", "--title", "Not \"first\"", "--no-dependencies"];
    assert_eq!(place.check(&edit, 0), "two changed (PRD.json)\n");
    let edited = TWO_TASKS.replace("The second", "Not \\\"first\\\"").replace("[\"one\"]", "[]");
    assert_eq!(fs::read_to_string(place.root.join("PRD.json")).unwrap(), edited, "and nothing else");
    place.check(&["task", "edit", "two", "--title", "The second", "--depends-on", "one"], 0);
    assert_eq!(fs::read_to_string(place.root.join("PRD.json")).unwrap(), TWO_TASKS, "byte for byte");
    let edit = |args: &[&str]| place.check(&[&["task", "edit"], args].concat(), 2);
    contains_all(&edit(&["one", "--depends-on", "two"]), &["`one` would depend on itself, through `two`"]);
    contains_all(&edit(&["one", "--depends-on", "x"]), &["`one` would depend on `x`, which is not there"]);
    let add =
        |args: &[&str], code: i32| place.check(&[&["task", "add", "--description"], args].concat(), code);
    let same = ["write ONE.txt", "--title", "the FIRST."];
    contains_all(&add(&same, 2), &["says the same as `one`", "hint: say what is different", "--id"]);
    contains_all(&add(&["more", "--id", "one"], 2), &["`one` is there already"]);
    contains_all(&add(&["more", "--depends-on", "x"], 2), &["would depend on `x`"]);
    contains_all(&edit(&["one", "--priority", "-1"]), &["PRD.json cannot say the priority of `one`"]);
    contains_all(&edit(&["one", "--title", " "]), &["would be empty"]);
    contains_all(&edit(&["three", "--title", "t"]), &["no task `three`", "one, two"]);
    contains_all(&edit(&["one"]), &["--title", "--depends-on"]);

    place.check(&["task", "move", "two", "--first"], 0);
    assert_eq!(place.ids(), ["two", "one"]);
    place.check(&["task", "delete", "two"], 0);
    assert_eq!(place.ids(), ["one"]);

    fs::write(place.root.join("PRD.json"), TWO_TASKS.replace("[\"one\"]", "[\"two\", \"x\"]")).unwrap();
    let text = place.check(&["task", "validate"], 2);
    contains_all(&text, &["PRD.json:4: `two` depends on `x`", "PRD.json:4: dependency cycle"]);
    let output = place.wiggum(&["task", "validate", "--json"]).output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), report["problems"].as_array().unwrap().len()), (Some(2), 2));
}

#[test]
fn a_running_loop_is_seen_and_steered() {
    let place = Place::new(TWO_TASKS);
    let run = place.start(HANGS);
    run.wait_for("iteration_started");

    let status = &place.json(&["status", "--json"])[0];
    assert_eq!((&status["state"], &status["interrupted"]), (&"running".into(), &false.into()));
    assert_eq!(status["engine"]["pid"], run.child.id());
    let text = place.check(&["status"], 0);
    let parts =
        ["iteration  1/50: one The first, attempt 1, agent since", "waits for  the agent works on one"];
    contains_all(&text, &parts);
    assert!(place.check(&["task", "list"], 0).contains("one  running"));
    assert!(place.check(&["graph"], 0).contains(":::running"));
    assert!(place.check(&["doctor"], 0).contains("is run by process"));

    let asked = Timestamp::now();
    assert_eq!(place.check(&["pause"], 0), "paused by ralph\n");
    let seen: Timestamp = run.wait_for("paused")["at"].as_str().unwrap().parse().unwrap();
    let took = seen.as_millisecond() - asked.as_millisecond();
    println!("from `wiggum pause` to the event: {took} ms");
    assert!(took < 1000, "{took} ms");
    assert_eq!(place.check(&["pause"], 0), "already paused\n");
    assert_eq!(place.json(&["status", "--json"])[0]["state"], "paused");
    assert_eq!(place.check(&["resume"], 0), "resumed by ralph\n");

    contains_all(&place.check(&["skip", "nobody"], 2), &["no task `nobody`", "one, two"]);
    assert!(place.check(&["retry", "one"], 2).contains("is being worked on"));
    assert!(place.check(&["task", "delete", "one"], 2).contains("is being worked on"));
    assert!(place.check(&["task", "edit", "one", "--title", "x"], 2).contains("is being worked on"));
    place.check(&["task", "edit", "two", "--title", "Another second"], 0);
    assert!(place.check(&["stop", "--loop", "nobody"], 2).contains("there are: main over PRD.json"));
    assert_eq!(place.check(&["task", "set-status", "two", "skipped"], 0), "two set to skipped by ralph\n");
    run.wait_for("status_set");

    assert_eq!(place.check(&["skip", "one"], 0), "one skipped by ralph\n");
    let (rest, status) = run.rest();
    assert!(rest.iter().any(|event| event["type"] == "task_skipped"), "{rest:?}");
    assert_eq!(status.code(), Some(0), "nothing is left to do");
    assert!(place.check(&["pause"], 2).contains("it does not run"));
}

#[test]
fn a_stopped_loop_says_so() {
    let place = Place::new(TWO_TASKS);
    let run = place.start(HANGS);
    run.wait_for("iteration_started");
    assert_eq!(place.check(&["stop"], 0), "stop asked for by ralph\n");
    let (_, status) = run.rest();
    assert_eq!(status.code(), Some(8));
    contains_all(&place.check(&["status"], 0), &["main  terminated", "(explicit_stop)"]);
}

#[test]
fn a_killed_loop_is_interrupted_and_goes_on() {
    let place = Place::new(TWO_TASKS);
    let (scenario, started) = place.says_when_it_hangs();
    let mut run = place.start(&scenario);
    started.recv_timeout(PATIENCE).unwrap();
    let follower = Background::start(&mut place.wiggum(&["events", "--follow", "--json"]));
    follower.wait_for("iteration_started");
    run.kill();
    let (_, ended) = follower.rest();
    assert_eq!(ended.code(), Some(0), "nobody is left to follow");

    let text = place.check(&["status"], 0);
    contains_all(
        &text,
        &["main  interrupted: its engine died; `wiggum run` goes on", "iteration  1/50: one"],
    );
    assert!(!text.contains("waits for"), "nobody waits: {text}");
    let status = &place.json(&["status", "--json"])[0];
    assert_eq!((&status["interrupted"], &status["engine"]), (&true.into(), &Value::Null));
    assert!(place.check(&["pause"], 2).contains("it does not run"));
    contains_all(&place.check(&["doctor"], 0), &["which is gone"]);

    assert!(place.check(&["skip", "two"], 0).starts_with("kept: no engine runs now"));
    place.run(WORKS, 0);
    assert!(place.check(&["show", "two"], 0).contains("skipped by ralph"));
    let text = place.check(&["doctor"], 0);
    assert!(!text.contains("problem") && !text.contains("without an engine"), "{text}");
}

#[test]
fn a_question_is_answered_for_the_next_run() {
    let place = Place::new(TWO_TASKS);
    place.run(ASKS, 6);
    let parts =
        ["q1 about one: Which colour?", "Two are left.", "2. blue", "Say one.", "wiggum answer q1 1-2|"];
    contains_all(&place.check(&["inbox"], 0), &parts);
    let letter = &place.json(&["inbox", "--json"])[0];
    assert_eq!((&letter["id"], &letter["options"][1]), (&"q1".into(), &"blue".into()));
    assert_eq!(letter["answered"], Value::Null);
    contains_all(&place.check(&["status"], 0), &["? q1 about one: Which colour?", "wiggum answer q1 1-2|"]);

    assert!(place.check(&["answer", "q7", "1"], 2).contains("open are: q1"));
    assert!(place.check(&["answer", "x", "1"], 2).contains("not a question's id"));
    assert!(
        place
            .check(&["answer", "q1", "3"], 2)
            .contains("it takes 1-2|\"your own words\"|skip|retry|done|abort")
    );
    assert!(place.check(&["answer", "q1", "2"], 0).starts_with("kept: no engine runs now"));
    // A slip is corrected by whoever made it, until it is taken up; nobody else's answer is.
    let corrected = place.check(&["answer", "q1", "use", "the", "red", "one"], 0);
    assert!(corrected.starts_with("in place of \"option 2\": kept: "), "{corrected}");
    assert!(place.check(&["inbox"], 0).contains("answered: use the red one"));
    let others = place.wiggum(&["answer", "q1", "1"]).env("USER", "somebody").output().unwrap();
    let others = String::from_utf8_lossy(&others.stderr).into_owned();
    assert!(others.contains("answered already: use the red one (by ralph"), "{others}");
    assert!(place.check(&["answer", "q1", "2"], 0).starts_with("in place of \"use the red one\": "));
    assert!(place.check(&["answer", "q1", "2"], 2).contains("answered already: option 2"));
    assert!(place.check(&["inbox"], 0).contains("answered: option 2"));
    assert!(place.check(&["status"], 0).contains("q1 is answered"));
    assert!(place.check(&["skip", "two"], 0).starts_with("kept: "));
    assert!(place.check(&["status"], 0).contains("skip two, asked for by ralph: `wiggum run` takes it up"));
    let status = &place.json(&["status", "--json"])[0];
    assert_eq!(status["pending"].as_array().unwrap().last().unwrap()["request"]["task"], "two", "{status}");
    assert!(place.check(&["retry", "two"], 0).starts_with("kept: "));

    let journal = place.run(ASKS, 0);
    let answered = journal.lines().find(|line| line.contains("question_answered")).unwrap();
    contains_all(answered, &[r#""answer":{"kind":"option","number":2}"#, r#""by":"ralph""#]);
    assert_eq!(journal.matches("was corrected by ralph before it was used").count(), 2, "{journal}");
    assert_eq!(place.check(&["inbox"], 0), "no questions are open\n");
    let parts = [
        "done, unverified, commit",
        "Question q1: Which colour?",
        "answered by ralph: option 2",
        "option 2: blue",
        "+colour",
    ];
    contains_all(&place.check(&["show", "one"], 0), &parts);
}

#[test]
fn a_question_is_answered_while_the_loop_runs() {
    let place = Place::new(&TWO_TASKS.replace("\"two\"", "\"other\"").replace("[\"one\"]", "[]"));
    let run = place.start(ASKS);
    run.wait_for("question_raised");
    run.wait_for("iteration_started");
    let said = place.json(&["answer", "q1", "green, of course", "--json"]);
    assert_eq!(said["message"], "q1 answered by ralph: green, of course");
    assert_eq!(said["state"], "done");
    place.check(&["skip", "other"], 0);
    let (rest, status) = run.rest();
    assert_eq!(status.code(), Some(0), "{rest:?}");
    let shown = place.json(&["show", "one", "--json"]);
    assert_eq!(shown["guidance"][0], "green, of course");
    assert_eq!(shown["questions"][0]["answer"]["text"], "green, of course");
    assert_eq!(shown["state"], "done");
}

#[test]
fn the_journal_is_shown_as_it_is_and_as_it_grows() {
    let place = Place::new(TWO_TASKS);
    let run = place.start(HANGS);
    let seen = run.wait_for("iteration_started");
    let follower = Background::start(&mut place.wiggum(&["events", "--follow", "--json"]));
    assert_eq!(follower.wait_for("iteration_started"), seen);
    // One who reads a single byte only.
    let mut reader = place.wiggum(&["events", "--follow"]).stdout(Stdio::piped()).spawn().unwrap();
    reader.stdout.take().unwrap().read_exact(&mut [0; 1]).unwrap();
    assert!(reader.wait().unwrap().success(), "a closed pipe ends it, before anything else happens");

    place.check(&["stop"], 0);
    let (rest, ended) = follower.rest();
    assert_eq!((rest.last().unwrap()["type"].as_str(), ended.code()), (Some("run_ended"), Some(0)));
    run.rest();

    let whole = place.check(&["events", "--json"], 0);
    let lines: Vec<Value> = whole.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len() as u64, lines.last().unwrap()["seq"].as_u64().unwrap());
    assert!(lines[lines.len() - rest.len()..] == rest[..], "what was followed is what is stored");
    let last = place.check(&["events", "--after", &(lines.len() - 1).to_string()], 0);
    assert!(last.lines().count() == 1 && last.contains("run 1 ended (explicit_stop)"), "{last}");
}

#[test]
fn a_task_is_shown_with_its_evidence() {
    let place = Place::new(TWO_TASKS);
    let scenario = place.scenario(
        r#"
[[attempt]]
task = "one"
number = 1
steps = [{ write = { path = "one.txt", content = "wrong\n" } }, { say = "I think so." }, { claim = "" }]

[[attempt]]
steps = [{ write = { path = "{task}.txt", content = "right\n" } }, { claim = "" }]
"#,
    );
    let verify = "sh -c 'echo looked at it; ! grep wrong *.txt'";
    place.check(&["run", "--headless", "--json", "--verify", verify, "--scenario", &scenario], 0);
    let parts = [
        "Attempt 1",
        "I think so.",
        "claim: <promise>DONE</promise>",
        "exit code 1",
        "looked at it",
        "✗ claim refuted",
        "Attempt 2",
        "✓ accepted",
        "+right",
    ];
    contains_all(&place.check(&["show", "one"], 0), &parts);
    let shown = place.json(&["show", "one", "--json"]);
    assert_eq!(shown["attempts"].as_array().unwrap().len(), 2);
    let evidence = &shown["attempts"][0]["evidence"][0];
    assert_eq!((&evidence["command"], &evidence["passed"]), (&verify.into(), &false.into()));
    assert_eq!(shown["attempts"][1]["commit"], shown["commit"]);
    assert!(!shown["diff"]["text"].as_str().unwrap().contains("b/two.txt"));
    assert!(place.check(&["show", "three"], 2).contains("there are: one, two"));
}

#[test]
fn agents_may_look_and_add_but_not_judge() {
    let place = Place::new(TWO_TASKS);
    place.run(WORKS, 0);
    let refused: [&[&str]; 9] = [
        &["pause"],
        &["resume"],
        &["stop"],
        &["skip", "one"],
        &["retry", "one"],
        &["answer", "q1", "1"],
        &["task", "set-status", "one", "done"],
        &["task", "delete", "two"],
        &["task", "edit", "two", "--title", "easier"],
    ];
    let inside = |args: &[&str]| place.wiggum(args).env("WIGGUM_LOOP_ID", "some").output().unwrap();
    for args in refused {
        assert!(said(&inside(args), args, 2).contains("statuses and answers belong to people"), "{args:?}");
    }
    let allowed: [&[&str]; 3] = [
        &["status"],
        &["task", "list"],
        &["task", "add", "--id", "three", "--description", "found on the way"],
    ];
    for args in allowed {
        said(&inside(args), args, 0);
    }
    assert!(place.check(&["task", "list"], 0).contains("three  open"));
    assert!(place.check(&["retry", "one"], 0).starts_with("kept"));
}

#[test]
fn an_agent_adds_a_task_that_is_then_worked_on() {
    let place = Place::new(TWO_TASKS);
    let adds = r#"
[[attempt]]
task = "one"
steps = [{ run = "\"$WIGGUM_BIN\" task add --id three --description 'Found on the way'" }, { claim = "" }]
"#;
    place.run(&format!("{adds}{WORKS}"), 0);
    assert_eq!(place.ids(), ["one", "two", "three"]);
    assert_eq!(place.json(&["show", "three", "--json"])["state"], "done");
}

#[test]
fn loops_are_told_apart_by_name() {
    let place = Place::new(TWO_TASKS);
    let scenario = place.scenario(ASKS);
    for name in ["day", "night"] {
        place.check(&["run", "--headless", "--json", "--name", name, "--scenario", &scenario], 6);
    }
    let text = place.check(&["status"], 0);
    let place_of = |name: &str| text.find(&format!("{name}  a person is needed")).unwrap();
    assert!(place_of("day") < place_of("night"), "{text}");
    contains_all(&place.check(&["inbox"], 0), &["loop day", "loop night"]);
    let created = |args: &[&str]| place.check(args, 0).lines().next().unwrap().to_owned();
    assert!(created(&["events"]).contains("loop night over PRD.json"), "the last one is meant");
    assert!(created(&["events", "--loop", "day"]).contains("loop day over PRD.json"));
    assert!(place.check(&["events", "--loop", "noon"], 2).contains("there are: day over PRD.json"));
    let several = place.check(&["answer", "q1", "1"], 2);
    contains_all(&several, &["q1 is open in several loops", "hint: name one with --loop: day, night"]);
    assert!(place.check(&["answer", "q1", "1", "--loop", "day"], 0).starts_with("kept"));
}

#[test]
fn the_loop_that_runs_is_meant_before_the_one_that_ran_last() {
    let place = Place::new(TWO_TASKS);
    let run = place.start(HANGS);
    run.wait_for("iteration_started");
    let other = place.base.path().join("asks.toml");
    fs::write(&other, ASKS).unwrap();
    let other = other.display().to_string();
    // The work tree is taken, so the other loop exists but cannot run.
    let night = ["run", "--headless", "--json", "--name", "night", "--scenario", &other];
    place.check(&night, 2);
    assert!(place.check(&["events"], 0).contains("loop main over PRD.json"));
    place.check(&["stop"], 0);
    assert_eq!(run.rest().1.code(), Some(8));
    place.check(&night, 6);
    assert!(place.check(&["events"], 0).contains("loop night over PRD.json"));
}

#[test]
fn the_status_is_stored_and_folded_only_when_it_must_be() {
    const EVENTS: u64 = 100_000;
    let place = Place::new(TWO_TASKS);
    let root = StateRoot::new(place.base.path().join("home/.local/state/wiggum"));
    let dir = Checkout::new(&place.root, &root).open(None).unwrap();
    let mut store = Store::open(&dir.database()).unwrap();
    let identity = Identity {
        repository: place.root.display().to_string(),
        backlog: "PRD.json".to_owned(),
        name: "main".to_owned(),
    };
    let now = Timestamp::now();
    let id = store.create_loop(&identity, LoopId(Uuid::now_v7()), now).unwrap().id;
    let text = place.check(&["status"], 0);
    assert!(text.starts_with("main  not started"), "a loop without events: {text}");

    let holder = Holder { pid: 1, started: "never".into(), boot: "none".into(), host: "here".into() };
    let epoch = store.acquire(id, &holder, &|_| false, now).unwrap();
    let mut append = |from: u64, to: u64, projection: Option<&str>| {
        let event = Event::Noticed { task: None, message: "nothing".to_owned() };
        let v = EVENT_VERSION;
        let envelope = |seq| Envelope { v, seq, id: Uuid::now_v7(), at: now, epoch, event: event.clone() };
        let envelopes: Vec<Envelope> = (from + 1..=to).map(envelope).collect();
        let (loop_id, expected_seq, envelopes) = (id, from, envelopes.as_slice());
        let batch = Append { loop_id, expected_seq, epoch, envelopes, blobs: &[], handled: &[], projection };
        store.append(&batch).unwrap();
    };
    let mut status = serde_json::to_value(wiggum_engine::status::Status::default()).unwrap();
    status["name"] = "stored".into();
    append(0, EVENTS, Some(&status.to_string()));
    let look = || {
        let started = Instant::now();
        let text = place.check(&["status"], 0);
        assert!(text.starts_with("stored"), "{text}");
        started.elapsed()
    };
    let best = (0..5).map(|_| look()).min().unwrap();
    println!("`wiggum status` over {EVENTS} events: {best:?} at best");
    append(EVENTS, EVENTS + 1, None);
    let status = &place.json(&["status", "--json"])[0];
    assert_eq!(status["seq"], EVENTS + 1, "a status that is behind is not shown");
}

#[test]
fn doctor_names_what_is_broken() {
    let place = Place::new(TWO_TASKS);
    place.run(WORKS, 0);
    place.check(&["doctor"], 0);
    fs::write(place.root.join("wiggum.toml"), "[agent]\ncommand = \"no-such-agent -p\"\n").unwrap();
    fs::write(place.root.join("PRD.json"), "{").unwrap();
    let text = place.check(&["doctor"], 1);
    contains_all(&text, &["problem  agent", "no-such-agent", "problem  backlog"]);

    fs::write(place.root.join("PRD.json"), TWO_TASKS).unwrap();
    fs::remove_file(place.root.join("wiggum.toml")).unwrap();
    let text = place.check(&["doctor"], 0);
    contains_all(&text, &["warning  backlog", "differs from what loop main last knew"]);

    place.git(&["checkout", "--quiet", "--detach"]);
    assert!(place.check(&["doctor"], 1).contains("HEAD is detached"));
    place.git(&["update-ref", "refs/wiggum/000000000000/one/1", "HEAD"]);
    fs::write(place.root.join(".git/MERGE_HEAD"), place.git(&["rev-parse", "HEAD"])).unwrap();
    fs::set_permissions(place.database().parent().unwrap(), fs::Permissions::from_mode(0o755)).unwrap();
    let parts =
        ["a merge is unfinished", "of no known loop: 1 reference", "can be read by others (mode 755)"];
    contains_all(&place.check(&["doctor"], 1), &parts);

    for name in ["wiggum.db-wal", "wiggum.db-shm"] {
        drop(fs::remove_file(place.database().with_file_name(name)));
    }
    fs::write(place.database(), "this is no database, but it is long enough ".repeat(200)).unwrap();
    let output = place.wiggum(&["doctor", "--json"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let findings: Value = serde_json::from_slice(&output.stdout).unwrap();
    let store = findings.as_array().unwrap().iter().find(|finding| finding["about"] == "store").unwrap();
    assert_eq!(store["level"], "problem", "{store}");
}

#[test]
fn a_repository_is_set_up_and_explained() {
    let place = Place::new(TWO_TASKS);
    contains_all(&place.check(&["init"], 0), &["wrote     wiggum.toml", "PRD.json"]);
    assert!(place.check(&["config", "show"], 0).contains("wiggum.toml:"));
    assert!(place.json(&["config", "show", "--json"]).as_array().unwrap().len() > 10);
    assert!(place.check(&["completions", "bash"], 0).contains("_wiggum"));
    assert!(place.check(&["man"], 0).contains(".TH"));
}

#[test]
fn doctor_names_the_secrets_that_agents_do_not_get() {
    let place = Place::new(TWO_TASKS);
    let doctor = |pass: &str| {
        let settings = format!("[agent]\ncommand = \"true\"\npass_env = [{pass}]\n");
        fs::write(place.root.join("wiggum.toml"), settings).unwrap();
        let output = place.wiggum(&["doctor"]).env("NPM_TOKEN", "t0p-secret").output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let text = doctor("");
    assert!(text.contains("withheld from the agent") && text.contains("NPM_TOKEN"), "{text}");
    assert!(!text.contains("t0p-secret"), "{text}");
    assert!(!doctor("\"NPM_TOKEN\"").contains("NPM_TOKEN"));
}
