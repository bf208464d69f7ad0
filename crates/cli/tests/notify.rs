//! Being told, from outside: receivers that fail, hang, cut and come back, programs that are killed, and several
//! people who answer at once.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may fail here")]

#[path = "mcp_server/client.rs"]
#[allow(dead_code, reason = "this test uses one of its clients")]
mod client;
mod serving;
mod support;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use client::Pipe;
use serde_json::{Value, json};
use serving::Page;
use support::{Sandbox, WORKER};
use wiggum_core::event::Event;

const PATIENCE: Duration = Duration::from_secs(60);
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// A receiver of its own process, which can be killed and come back.
struct Receiver {
    _child: Ended,
    port: u16,
    log: PathBuf,
}

impl Receiver {
    fn start(sandbox: &Sandbox, python: &Path, port: u16, plan: &[&str]) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/notify/receiver.py");
        let log = sandbox.base().join("received");
        let mut command = sandbox.command(python.to_str().unwrap());
        // It is no process of the run, and is there after it.
        command.env_remove("SANDBOX").current_dir("/").arg(script).arg(port.to_string());
        command.arg(&log).arg(SECRET).args(plan).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { _child: Ended(child), port: line.trim().parse().unwrap(), log }
    }

    fn lines(&self) -> Vec<Value> {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn wait_for(&self, count: usize) {
        let until = Instant::now() + PATIENCE;
        while self.lines().len() < count {
            assert!(Instant::now() < until, "{:#?}", self.lines());
            std::thread::yield_now();
        }
    }
}

/// The numbers of the events that a receiver of these is told of.
fn told_of(sandbox: &Sandbox) -> Vec<u64> {
    let is_told = |event: &Event| {
        matches!(event, Event::IterationStarted { .. } | Event::TaskCompleted { .. } | Event::RunEnded { .. })
    };
    let journal = sandbox.journal();
    journal.iter().filter(|envelope| is_told(&envelope.event)).map(|envelope| envelope.seq).collect()
}

#[test]
fn everything_is_told_in_order_whatever_breaks() {
    let what = "webhooks against the library of the Standard Webhooks specification";
    let Some(python) = wiggum_testkit::mcp::webhooks_or_skip(what) else { return };
    let mut sandbox = Sandbox::with_tasks(&["A", "B", "C"]);
    sandbox.env("HOOK_SECRET", SECRET);
    let receiver = Receiver::start(&sandbox, &python, 0, &["500", "429", "lost", "cut"]);
    let port = receiver.port;
    sandbox.write(
        "wiggum.toml",
        &format!(
            "[[notify]]\nkind = \"webhook\"\nurl = \"http://127.0.0.1:{port}/hook\"\ntimeout = \"1s\"\n\
             secret_env = \"HOOK_SECRET\"\non = [\"transition\", \"completion\"]\n"
        ),
    );

    // The first run is killed while its messages are refused, lost and sent again.
    sandbox.make_pipe("ready");
    let agent = r#"[ "$WIGGUM_TASK_ID" = B ] && hang; echo fine > "$WIGGUM_TASK_ID.txt"; claim"#;
    let started = sandbox.start(agent, &[]);
    sandbox.wait_ready();
    receiver.wait_for(5);
    started.kill();
    let lines = receiver.lines();
    let pause = lines[2]["at"].as_f64().unwrap() - lines[1]["at"].as_f64().unwrap();
    assert!(pause >= 0.99, "it asked for a second: {pause}");

    // The second one has nobody to tell, and does not mind.
    drop(receiver);
    sandbox.run(WORKER, &[]).exits(0);
    let status = sandbox.wiggum(&["notify", "status"]).exits(0);
    status.says("waits after").says(&format!("127.0.0.1:{port}")).never_says("/hook");

    // Somebody is there again, and gets what is left.
    let receiver = Receiver::start(&sandbox, &python, port, &["500", "hang", "slow", "lost", "cut", "slow"]);
    let failed = (0..20).take_while(|_| sandbox.wiggum(&["notify", "deliver"]).code() == Some(1)).count();
    assert!((1..20).contains(&failed), "{failed} times something was left");

    let lines = receiver.lines();
    let taken: Vec<&Value> =
        lines.iter().filter(|line| ["ok", "slow", "lost"].contains(&line["did"].as_str().unwrap())).collect();
    let seqs: Vec<u64> = taken.iter().map(|line| line["said"]["data"]["seq"].as_u64().unwrap()).collect();
    assert!(seqs.is_sorted(), "later ones came before earlier ones: {seqs:?}");
    let mut once = seqs.clone();
    once.dedup();
    assert_eq!(once, told_of(&sandbox), "every message came, and no other");
    assert!(seqs.len() > once.len(), "what was lost on the way back was sent again");
    let id = sandbox.loop_id();
    for line in &lines {
        assert!(line["said"]["problem"].is_null(), "the signature is good: {line}");
        assert_eq!(line["id"], line["said"]["id"]);
        assert_eq!(line["id"], format!("{id}_{}_webhook", line["said"]["data"]["seq"]));
    }
    assert_eq!(taken.last().unwrap()["said"]["type"], "wiggum.completion");
}

#[test]
fn one_that_hangs_holds_up_neither_the_loop_nor_the_others() {
    let sandbox = Sandbox::with_tasks(&["A", "B"]);
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let tell = sandbox.base().join("told");
    sandbox.write(
        "wiggum.toml",
        &format!(
            "[[notify]]\nkind = \"slack\"\nurl = \"http://127.0.0.1:{port}/x\"\ntimeout = \"10m\"\non = \"transition\"\n\
             [[notify]]\nkind = \"command\"\ncommand = [\"sh\", \"-c\", \"cat >> {0}; echo >> {0}\"]\non = \"completion\"\n",
            tell.display()
        ),
    );
    // Had anything waited for it, this would take ten minutes.
    sandbox.run(WORKER, &[]).exits(0);
    let said: Value = serde_json::from_str(fs::read_to_string(tell).unwrap().trim()).unwrap();
    assert_eq!(
        (&said["type"], &said["data"]["reason"]),
        (&json!("wiggum.completion"), &json!("goal_achieved"))
    );
    // What was on its way when the run ended is still to be sent.
    let status: Value =
        serde_json::from_str(&sandbox.wiggum(&["notify", "status", "--json"]).exits(0).stdout).unwrap();
    assert_eq!(status[1]["loops"].as_array().map_or(0, Vec::len), 0, "{status:#}");
    drop(silent);
    let run = sandbox.wiggum(&["notify", "deliver", "slack"]).exits(1);
    run.says("more waits");
}

/// Takes whatever comes, and keeps it.
struct Recorder {
    address: String,
    requests: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Recorder {
    fn start(answer: impl Fn(&str) -> String + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&requests);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (path, body) = read_request(&stream);
                let answer = answer(&path);
                kept.lock().unwrap().push((path, body));
                drop((&stream).write_all(answer.as_bytes()));
            }
        });
        Self { address, requests }
    }

    fn to(&self, path: &str) -> Vec<Value> {
        let requests = self.requests.lock().unwrap();
        requests.iter().filter(|(of, _)| of == path).map(|(_, body)| body.clone()).collect()
    }
}

fn read_request(stream: &TcpStream) -> (String, Value) {
    let mut reader = BufReader::new(stream);
    let (mut head, mut length) = (String::new(), 0);
    reader.read_line(&mut head).unwrap();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    (path, serde_json::from_slice(&body).unwrap_or_default())
}

fn answer(status: &str) -> String {
    format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
}

/// A asks, in words that would like to ring everybody's bell.
const ASKS: &str = r#"
    [ "$WIGGUM_ATTEMPT" = 1 ] || { echo fine > "$WIGGUM_TASK_ID.txt"; claim; exit; }
    cat <<'END'
<escalate type="stuck">
<summary>@everyone <!channel> which colour?</summary>
<options>
1. Red
2. Blue
</options>
<question>Which one?</question>
</escalate>
END"#;

#[test]
fn chats_and_desktops_are_told_in_their_own_shape_and_no_secret_is_kept() {
    let mut sandbox = Sandbox::with_tasks(&["A"]);
    let elsewhere = Recorder::start(|_| answer("204 No Content"));
    let away = format!("http://{}/stolen", elsewhere.address);
    let recorder = Recorder::start(move |path| match path {
        "/hooks/redirectsecret" => answer(&format!("307 Temporary Redirect\r\nLocation: {away}")),
        "/hooks/gonesecret" => answer("410 Gone"),
        _ => answer("200 OK"),
    });
    let at = &recorder.address;
    sandbox.env("BOT_TOKEN", "123456:telegramsecret");
    sandbox.env("TEAM_WEBHOOK", &format!("http://{at}/services/T0/B0/slacksecret"));
    let record = sandbox.base().join("desktop");
    sandbox.write_program(
        "../bin/notify-send",
        &format!("#!/bin/sh\nprintf '%s|' \"$@\" >> {}\n", record.display()),
    );
    let path = std::env::var("PATH").unwrap();
    sandbox.env("PATH", &format!("{}:{path}", sandbox.base().join("bin").display()));
    sandbox.write(
        "wiggum.toml",
        &format!(
            "[[notify]]\nkind = \"slack\"\nurl_env = \"TEAM_WEBHOOK\"\n\
             [[notify]]\nkind = \"discord\"\nurl = \"http://{at}/api/webhooks/1/discordsecret\"\n\
             [[notify]]\nkind = \"ntfy\"\nurl = \"http://{at}/topicsecret\"\n\
             [[notify]]\nkind = \"telegram\"\nurl = \"http://{at}\"\ntoken_env = \"BOT_TOKEN\"\nchat = \"-100\"\n\
             [[notify]]\nkind = \"desktop\"\non = [\"escalation\"]\n\
             [[notify]]\nkind = \"bell\"\n\
             [[notify]]\nname = \"away\"\nkind = \"webhook\"\nurl = \"http://{at}/hooks/redirectsecret\"\n\
             [[notify]]\nname = \"gone\"\nkind = \"webhook\"\nurl = \"http://{at}/hooks/gonesecret\"\n"
        ),
    );
    let run = sandbox.run(ASKS, &[]).exits(6);

    let slack = recorder.to("/services/T0/B0/slacksecret");
    assert_eq!(slack[0]["blocks"][0]["text"]["text"], "main: q1 waits for you about A", "{slack:#?}");
    assert!(
        slack[0].to_string().contains("&lt;!channel&gt;")
            && slack[0].to_string().contains("wiggum answer q1")
    );
    assert!(slack[1]["text"].as_str().unwrap().contains("A person is needed"));
    let discord = recorder.to("/api/webhooks/1/discordsecret");
    assert!(discord[0]["content"].as_str().unwrap().contains("\\@everyone"), "{discord:#?}");
    assert_eq!(recorder.to("/")[0]["topic"], "topicsecret");
    assert_eq!(recorder.to("/bot123456:telegramsecret/sendMessage")[0]["chat_id"], "-100");
    let desktop = fs::read_to_string(record).unwrap();
    assert!(
        desktop.contains("--|main: q1 waits for you about A|A: Do A\n@everyone &lt;!channel&gt;"),
        "{desktop}"
    );
    assert!(elsewhere.requests.lock().unwrap().is_empty(), "nobody is followed elsewhere");

    // What was given up is said, once it is, and can be forgotten.
    let status = sandbox.wiggum(&["notify", "status"]).exits(0);
    let status = status.says("was given up").says("HTTP 410").says("leads elsewhere");
    let doctor = sandbox.wiggum(&["doctor"]);
    assert!(doctor.stdout.contains("to `gone` could not be sent"), "{}", doctor.stdout);
    let config = sandbox.wiggum(&["config", "show"]).exits(0);
    let list = sandbox.wiggum(&["notify", "list"]).exits(0);
    sandbox.wiggum(&["notify", "status", "--clear"]).exits(0);
    sandbox.wiggum(&["notify", "status"]).exits(0).never_says("was given up");

    let mut kept =
        [run.stdout, run.stderr, status.stdout, config.stdout, list.stdout, doctor.stdout].concat();
    kept.push_str(&sandbox.wiggum(&["events", "--json"]).exits(0).stdout);
    for entry in
        fs::read_dir(sandbox.state_dir().path()).unwrap().flatten().filter(|entry| entry.path().is_file())
    {
        kept.push_str(&String::from_utf8_lossy(&fs::read(entry.path()).unwrap()));
    }
    for secret in ["slacksecret", "discordsecret", "telegramsecret", "redirectsecret", "gonesecret"] {
        assert!(!kept.contains(secret), "{secret} is kept somewhere");
    }
}

#[test]
fn slack_takes_what_it_is_told() {
    let Some((program, node)) = wiggum_testkit::mcp::emulate_or_skip("messages to an emulated Slack") else {
        return;
    };
    let sandbox = Sandbox::with_tasks(&["A"]);
    // It cannot choose a port by itself.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let path = format!("{}:{}", node.display(), std::env::var("PATH").unwrap());
    let mut command = sandbox.command(program.to_str().unwrap());
    command.env_remove("SANDBOX").env("PATH", path).current_dir("/");
    command.args(["start", "--service", "slack", "--port", &port.to_string()]).stdout(Stdio::piped());
    let mut slack = Ended(command.spawn().unwrap());
    let mut lines = BufReader::new(slack.0.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains("Ready")), "it should have started");

    let url = format!("http://127.0.0.1:{port}/services/T000000001/B000000001/X000000001");
    sandbox.write(
        "wiggum.toml",
        &format!("[[notify]]\nkind = \"slack\"\nurl = \"{url}\"\non = \"escalation\"\n"),
    );
    sandbox.run(ASKS, &[]).exits(6);
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let body = r#"{"channel":"C000000001"}"#;
    write!(
        stream,
        "POST /api/conversations.history HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer test_token_admin\r\n\
         Content-Type: application/json\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut history = String::new();
    stream.read_to_string(&mut history).unwrap();
    assert!(
        history.contains("main: q1 waits for you about A") && history.contains("plain_text"),
        "{history}"
    );
    assert!(history.contains("&lt;!channel&gt;"), "nobody is called by what an agent says: {history}");
}

/// Ends with the test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[test]
fn several_that_tell_tell_once() {
    let sandbox = Sandbox::with_tasks(&["A", "B", "C", "D"]);
    let recorder = Recorder::start(|_| answer("200 OK"));
    let url = format!("http://{}/hook", recorder.address);
    let text =
        format!("[[notify]]\nkind = \"webhook\"\nurl = \"{url}\"\non = [\"transition\", \"completion\"]\n");
    sandbox.write("wiggum.toml", &text);
    let page = Page::open(&sandbox, &[]);
    let started = sandbox.start(WORKER, &[]);
    let codes: Vec<_> =
        (0..5).map(|_| sandbox.launch(&sandbox.root, &["notify", "deliver"]).outcome_only().code()).collect();
    started.outcome_only().exits(0);
    let expected = told_of(&sandbox);
    let until = Instant::now() + PATIENCE;
    while recorder.to("/hook").len() < expected.len() {
        assert!(Instant::now() < until, "{:#?}", recorder.to("/hook"));
        std::thread::yield_now();
    }
    drop(page);
    sandbox.wiggum(&["notify", "deliver"]).exits(0).says("0 messages sent");
    let told = recorder.to("/hook");
    let seqs: Vec<u64> = told.iter().map(|said| said["data"]["seq"].as_u64().unwrap()).collect();
    assert_eq!(seqs, expected, "{codes:?}");
    let link = told[0]["data"]["link"].as_str().unwrap();
    assert!(link.starts_with("http://127.0.0.1:") && !link.contains("token"), "{link}");
}

#[test]
fn the_first_answer_wins_and_all_others_are_told_whose_it_was() {
    let sandbox = Sandbox::with_tasks(&["A", "B"]);
    let recorder = Recorder::start(|_| answer("200 OK"));
    let url = format!("http://{}/hook", recorder.address);
    sandbox.write("wiggum.toml", &format!("[[notify]]\nkind = \"webhook\"\nurl = \"{url}\"\n"));
    sandbox.make_pipe("ready");
    sandbox.make_pipe("go");
    let agent = format!("[ \"$WIGGUM_TASK_ID\" = B ] && {{ ready; wait_for_go; claim; exit; }}\n{ASKS}");
    let started = sandbox.start(&agent, &[]);
    sandbox.wait_ready();
    let page = Page::open(&sandbox, &[]);
    let mut clients: Vec<Pipe> = (0..2).map(|_| Pipe::start(&sandbox, &[])).collect();
    let told = all_answer(&sandbox, &page, &mut clients);
    sandbox.go();
    started.outcome_only().exits(0);
    let answers: Vec<String> = sandbox
        .events()
        .into_iter()
        .filter_map(|event| match event {
            Event::QuestionAnswered { by, .. } => Some(by),
            _ => None,
        })
        .collect();
    let [winner] = &answers[..] else { panic!("{answers:?}") };
    // Two of a kind say the same in the same name, so both may take it for theirs.
    let won = told.iter().filter(|(won, _)| *won).count();
    assert!((1..=2).contains(&won), "{told:#?}");
    for (_, said) in told.iter().filter(|(won, _)| !won) {
        assert!(said.contains("answered") && said.contains(&format!("by {winner} at 20")), "{said}");
    }
    drop((page, clients));
    let late = sandbox.wiggum(&["answer", "q1", "1"]);
    late.complains(2, &[&format!("q1 was answered by {winner} at 20")]);
    let kinds: Vec<String> =
        recorder.to("/hook").iter().map(|said| said["type"].as_str().unwrap().to_owned()).collect();
    assert_eq!(kinds, ["wiggum.escalation", "wiggum.answer", "wiggum.completion"]);
}

#[test]
fn without_an_engine_one_answer_is_kept() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.run(ASKS, &[]).exits(6);
    let page = Page::open(&sandbox, &[]);
    let mut clients: Vec<Pipe> = (0..2).map(|_| Pipe::start(&sandbox, &[])).collect();
    let told = all_answer(&sandbox, &page, &mut clients);
    let kept = sandbox.store().pending(sandbox.loop_id()).unwrap();
    let [first] = &kept[..] else { panic!("{kept:?}") };
    assert_eq!(told.iter().filter(|(won, _)| *won).count(), 1, "{told:#?}");
    for (_, said) in told.iter().filter(|(won, _)| !won) {
        assert!(
            said.contains("is answered already") && said.contains(&format!("by {} at 20", first.by)),
            "{said}"
        );
    }
}

/// Everybody answers the same question, each in another way; who was told that it was done, and what was said.
fn all_answer(sandbox: &Sandbox, page: &Page, clients: &mut [Pipe]) -> Vec<(bool, String)> {
    std::thread::scope(|scope| {
        let mcp: Vec<_> = clients
            .iter_mut()
            .map(|client| scope.spawn(|| client.tried("answer", json!({"question": "q1", "answer": "1"}))))
            .collect();
        let web: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let answer =
                        page.post("/api/v1/loops/main/questions/q1/answer", &json!({ "answer": "2" }));
                    (answer.status == 200, answer.text)
                })
            })
            .collect();
        let cli: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let run = sandbox.launch(&sandbox.root, &["answer", "q1", "green"]).outcome_only();
                    (run.code() == Some(0), run.stdout + &run.stderr)
                })
            })
            .collect();
        mcp.into_iter().chain(web).chain(cli).map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn nobody_is_named_and_nonsense_is_refused() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.wiggum(&["notify", "list"]).exits(0).says("nobody is told");
    sandbox.write("wiggum.toml", "[[notify]]\nkind = \"desktp\"\n");
    sandbox.wiggum(&["notify", "list"]).complains(2, &["wiggum.toml:2:", "did you mean \"desktop\"?"]);
    sandbox.write("wiggum.toml", "[[notify]]\nkind = \"command\"\ncommand = [\"true\"]\n");
    sandbox.wiggum(&["notify", "test", "nobody"]).complains(2, &["no receiver is called", "command"]);
    sandbox.wiggum(&["notify", "test"]).exits(0).says("reached command");
}

#[test]
fn what_happened_before_somebody_was_known_is_no_news() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.run(WORKER, &[]).exits(0);
    let told = sandbox.base().join("told");
    let command = format!("[\"sh\", \"-c\", \"echo $WIGGUM_NOTIFY_TITLE >> {}\"]", told.display());
    let text = format!(
        "[[notify]]\nkind = \"command\"\ncommand = {command}\non = [\"completion\", \"transition\"]\n"
    );
    sandbox.write("wiggum.toml", &text);
    sandbox.wiggum(&["notify", "deliver"]).exits(0).says("0 messages sent");
    sandbox.write("PRD.json", &support::prd(&["A", "B"]).replacen("false", "true", 1));
    sandbox.commit_all("one more");
    sandbox.run(WORKER, &[]).exits(0);
    let told = fs::read_to_string(told).unwrap();
    assert!(told.starts_with("main: iteration 2: B, attempt 1\n"), "{told}");
    assert!(told.ends_with("main: All tasks complete\n"), "{told}");
}
