//! `wiggum serve` from outside: who is let in, what the API tells and does, and events as they happen.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may fail here")]

mod serving;
mod support;

use std::io::{BufRead, Write};

use serde_json::{Value, json};
use serving::{ASKING, Page};
use support::{Sandbox, prd_of, story};

/// B fails its check at first, C prints what no page should swallow.
const AGENT: &str = r#"
    case $WIGGUM_TASK_ID-$WIGGUM_ATTEMPT in
        B-1) echo broken > B.txt; claim; exit ;;
        C-*) printf '<script>alert(1)</script> \033[31mred\033]0;x\007\n' ;;
    esac
    echo fine > "$WIGGUM_TASK_ID.txt"
    claim"#;

const VERIFY: [&str; 2] = ["--verify", "grep -q fine $WIGGUM_TASK_ID.txt"];

fn ended() -> Sandbox {
    let sandbox = Sandbox::with_tasks(&["A", "B", "C"]);
    sandbox.write("wiggum.toml", "[retry]\nbackoff = \"0s\"\n");
    sandbox.run(AGENT, &VERIFY).exits(0);
    sandbox
}

#[test]
fn without_a_token_nothing_is_told() {
    let sandbox = ended();
    let page = Page::open(&sandbox, &[]);
    for path in
        ["/", "/main.js", "/style.css", "/api/v1/loops", "/nowhere", "/api/v1/loops/main/events/stream"]
    {
        for more in
            [&[][..], &["Authorization: Bearer wrong"], &["Cookie: wiggum=x"], &["Authorization: Bearer "]]
        {
            let answer = page.ask("GET", path, more, "");
            assert_eq!(answer.status, 401, "{path} {more:?}");
            assert!(!answer.text.contains("PRD.json"), "{}", answer.text);
        }
    }
    assert_eq!(page.ask("GET", "/?token=wrong", &[], "").status, 401);
    assert_eq!(page.ask("GET", &format!("/api/v1/loops?token={}", page.token), &[], "").status, 401);
}

#[test]
fn the_link_becomes_a_session() {
    let sandbox = ended();
    let page = Page::open(&sandbox, &[]);
    let answer = page.ask("GET", &format!("/?token={}", page.token), &[], "");
    let key = answer.header("location").strip_prefix("/#key=").unwrap();
    let key = format!("X-Wiggum-Key: {key}");
    assert_eq!(answer.status, 303);
    let cookie = answer.header("set-cookie");
    assert!(!cookie.contains(&page.token) && !key.contains(&page.token), "{cookie} {key}");
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
    assert_eq!(answer.header("referrer-policy"), "no-referrer");
    let cookie = format!("Cookie: {}", cookie.split(';').next().unwrap());
    let index = page.ask("GET", "/", &[&cookie], "");
    assert_eq!(index.status, 200);
    let policy = index.header("content-security-policy");
    assert!(policy.contains("script-src 'self'") && !policy.contains("unsafe"), "{policy}");
    assert!(!index.text.contains("<script>") && !index.text.contains("style="), "{}", index.text);
    assert!(!index.text.contains(&page.token));
    // Another page may have the browser send the cookie, but not say where it comes from.
    let own = format!("Origin: http://{}", page.address);
    for (origin, status) in [
        (own.as_str(), 409),
        ("Origin: http://evil.example", 403),
        ("Origin: null", 403),
        ("X-Nothing: said", 403),
    ] {
        assert_eq!(
            page.ask("POST", "/api/v1/loops/main/pause", &[&cookie, &key, origin], "").status,
            status,
            "{origin}"
        );
    }
    let strange = [cookie.as_str(), key.as_str(), "Sec-Fetch-Site: cross-site"];
    assert_eq!(page.ask("GET", "/api/v1/loops", &strange, "").status, 403);
    assert_eq!(page.ask("GET", "/api/v1/loops", &[&cookie, &key], "").status, 200);
}

/// Cookies know no ports: a preview server on another one is sent ours, and can send it on with any header it likes.
#[test]
fn a_stolen_cookie_opens_nothing() {
    let sandbox = ended();
    let page = Page::open(&sandbox, &[]);
    let open = || {
        let answer = page.ask("GET", &format!("/?token={}", page.token), &[], "");
        let cookie = answer.header("set-cookie").split(';').next().unwrap().to_owned();
        (cookie, answer.header("location").strip_prefix("/#key=").unwrap().to_owned())
    };
    let ((cookie, key), (_, other_key)) = (open(), open());
    let stolen = format!("Cookie: {cookie}");
    let value = cookie.split_once('=').unwrap().1.to_owned();
    let origin = format!("Origin: http://{}", page.address);
    let mut guesses = vec!["X-Nothing: said".to_owned(), format!("Authorization: Bearer {value}")];
    let parts = value.split('.').chain([value.as_str(), other_key.as_str(), "", "null"]);
    guesses.extend(parts.map(|guess| format!("X-Wiggum-Key: {guess}")));
    for guess in &guesses {
        let headers = [stolen.as_str(), &origin, guess, "Sec-Fetch-Site: same-origin"];
        for path in ["loops", "loops/main", "session", "openapi.json", "loops/main/events/stream"] {
            let answer = page.ask("GET", &format!("/api/v1/{path}"), &headers, "");
            assert_eq!(answer.status, 401, "{path} {guess}");
        }
        for path in ["pause", "stop", "tasks/A/skip"] {
            let answer = page.ask("POST", &format!("/api/v1/loops/main/{path}"), &headers, "");
            assert_eq!(answer.status, 401, "{path} {guess}");
        }
        assert_eq!(page.ask("PATCH", "/api/v1/loops/main/tasks/A", &headers, "").status, 401);
    }
    // The files of the page are all it opens, and none of them tells the key.
    for path in ["/", "/main.js", "/api.js"] {
        let answer = page.ask("GET", path, &[&stolen], "");
        assert_eq!(answer.status, 200, "{path}");
        assert!(!answer.text.contains(&key) && answer.header("set-cookie").is_empty(), "{path}");
    }
    // Nor does the key alone, and neither outlasts the server.
    let key = format!("X-Wiggum-Key: {key}");
    assert_eq!(page.ask("GET", "/api/v1/loops", &[&key, &origin], "").status, 401);
    let token = sandbox.base().join("token");
    std::fs::write(&token, format!("{}\n", page.token)).unwrap();
    drop(page);
    let page = Page::open(&sandbox, &["--token-file", token.to_str().unwrap()]);
    let port = page.address.rsplit(':').next().unwrap();
    let renamed = format!("Cookie: wiggum-{port}={value}");
    assert_eq!(page.ask("GET", "/api/v1/loops", &[&renamed, &key], "").status, 401);
    assert_eq!(page.ask("GET", "/", &[&renamed], "").status, 401);
}

#[test]
fn a_name_made_to_mean_this_machine_is_not_answered_to() {
    let sandbox = ended();
    let page = Page::open(&sandbox, &[]);
    let bearer = format!("Authorization: Bearer {}", page.token);
    for host in ["evil.example", "127.0.0.1.evil.example", "0.0.0.0", ""] {
        let answer = page.ask_as(host, "GET", "/api/v1/loops", &[&bearer], "");
        assert!(answer.status == 403 || answer.status == 400, "{host}: {}", answer.status);
    }
    assert_eq!(page.ask_as("localhost", "GET", "/api/v1/loops", &[&bearer], "").status, 200);
    drop(page);
    let elsewhere = ["serve", "--no-open", "--listen", "0.0.0.0"];
    sandbox.wiggum(&elsewhere).complains(2, &["can be reached by other machines", "--listen-anywhere"]);
}

#[test]
fn one_may_look_and_not_touch_with_the_other_token() {
    let sandbox = ended();
    let page = Page::open(&sandbox, &["--read-only"]);
    assert_eq!(page.get("/api/v1/session")["read_only"], true);
    assert_eq!(page.get("/api/v1/loops")["loops"][0]["counts"]["done"], 3);
    for path in ["pause", "stop", "tasks", "tasks/A/skip", "questions/q1/answer", "nudge"] {
        assert_eq!(page.post(&format!("/api/v1/loops/main/{path}"), &json!({})).status, 403, "{path}");
    }
    assert_eq!(page.bearer("PATCH", "/api/v1/loops/main/tasks/A", "{}").status, 403);
}

#[test]
fn a_loop_is_told_as_it_is_and_as_it_was() {
    let sandbox = ended();
    let page = Page::open(&sandbox, &[]);
    let journal = sandbox.journal();
    let last = journal.len() as u64;
    let now = page.get("/api/v1/loops/main");
    assert_eq!((now["counts"]["done"].as_u64(), now["last_seq"].as_u64()), (Some(3), Some(last)));
    // At every event, the page tells what the fold tells.
    let mut state = wiggum_core::state::Loop::default();
    let mut calls = 0;
    for envelope in &journal {
        state.apply(envelope);
        calls += u64::from(matches!(envelope.event, wiggum_core::event::Event::AgentEnded { .. }));
        let cost = page.get(&format!("/api/v1/loops/main/cost?at={}", envelope.seq));
        assert_eq!(cost["total"]["calls"], calls, "{}", envelope.seq);
        let left =
            cost["burn_down"].as_array().unwrap().last().map_or(0, |left| left["tasks"].as_u64().unwrap());
        let counts = state.tasks.counts();
        assert_eq!(left, (counts.total - counts.done - counts.skipped) as u64, "{}", envelope.seq);
        let then = page.get(&format!("/api/v1/loops/main?at={}", envelope.seq));
        assert_eq!(then["counts"]["done"], state.tasks.counts().done, "{}", envelope.seq);
        assert_eq!(then["current"]["task"].as_str(), state.open.here().map(|open| open.task.as_str()));
        assert_eq!(then["seq"], envelope.seq);
    }
    let tasks = page.get("/api/v1/loops/main/tasks?limit=1&from=1");
    assert_eq!((tasks["total"].as_u64(), tasks["tasks"][0]["id"].as_str()), (Some(3), Some("B")));
    assert_eq!(page.get("/api/v1/loops/main/tasks?search=c&state=done")["total"], 1);
    assert_eq!(page.get("/api/v1/loops/main/tasks?at=1")["total"], 0);

    let forwards = page.get("/api/v1/loops/main/events?after=2&limit=3");
    assert_eq!(seqs(&forwards), [3, 4, 5]);
    let backwards = page.get("/api/v1/loops/main/events?before=4&limit=2");
    assert_eq!(seqs(&backwards), [2, 3]);
    assert_eq!(page.get("/api/v1/loops/main/events/1")["type"], "loop_created");

    let task = page.get("/api/v1/loops/main/tasks/B");
    let attempts = task["iterations"].as_array().unwrap();
    let outcomes: Vec<&str> = attempts.iter().map(|one| one["outcome"].as_str().unwrap()).collect();
    assert_eq!(outcomes, ["claim refuted", "completed"]);
    let first = page.get(&format!("/api/v1/loops/main/iterations/{}", attempts[0]["iteration"]));
    assert_eq!((first["evidence"][0]["passed"].as_bool(), first["attempt"].as_u64()), (Some(false), Some(1)));
    let second = attempts[1]["iteration"].as_u64().unwrap();
    let diff = page.get(&format!("/api/v1/loops/main/iterations/{second}/diff"));
    assert!(diff["lines"].as_array().unwrap().contains(&json!("+fine")), "{diff}");
    let said = page.get(&format!("/api/v1/loops/main/iterations/{second}/transcript"));
    assert!(said["entries"].to_string().contains("<promise>DONE</promise>"), "{said}");
    assert_eq!(page.get("/api/v1/loops/main/checkpoints")["total"], 4);
    assert_eq!(page.get("/api/v1/loops/main/cost")["loop"], "main");
    assert_eq!(page.get("/api/v1/loops/main/health")["state"], "completed");
}

#[test]
fn what_makes_no_sense_is_refused_and_harms_nothing() {
    let sandbox = ended();
    let page = Page::open(&sandbox, &[]);
    let check = |method: &str, path: &str, body: &str, expected: u16| {
        let answer = page.bearer(method, path, body);
        assert_eq!(answer.status, expected, "{method} {path}: {}", answer.text);
    };
    for path in [
        "/api/v1/loops/none",
        "/api/v1/loops/%2e%2e",
        "/api/v1/loops/main/tasks/..%2f..%2fetc%2fpasswd",
        "/api/v1/loops/main/iterations/99",
        "/api/v1/loops/main/iterations/-1",
        "/api/v1/loops/main/iterations/..%2F1/transcript",
        "/api/v1/loops/main/texts/..%2f..%2fwiggum.db",
        "/api/v1/loops/main/texts/zz",
        "/api/v1/loops/main/events/0",
        "/api/v1/loops/main/events/18446744073709551615",
        "/api/v1/loops//tasks",
        "/api/v1",
        "/api/v1/",
        "/../Cargo.toml",
        "/%2e%2e/Cargo.toml",
        "/assets/main.js",
        "/api/v1/loops/a%00b",
    ] {
        check("GET", path, "", 404);
    }
    for path in ["?at=x", "?at=-1", "?at=1&at=2", "?nothing=1", "?at=%zz"] {
        check("GET", &format!("/api/v1/loops/main{path}"), "", 400);
    }
    check("DELETE", "/api/v1/loops", "", 405);
    check("POST", "/", "", 405);
    check("POST", "/api/v1/loops/main/tasks", "{", 422);
    check("POST", "/api/v1/loops/main/tasks", r#"{"title":" "}"#, 422);
    check("POST", "/api/v1/loops/main/tasks", r#"{"title":"x","evil":1}"#, 422);
    check("POST", "/api/v1/loops/main/questions/q1/answer", r#"{"answer":"1"}"#, 404);
    check("POST", "/api/v1/loops/main/pause", "", 409);
    check("POST", "/api/v1/loops/main/tasks", &format!(r#"{{"title":"{}"}}"#, "x".repeat(300_000)), 413);
    let bearer = format!("Authorization: Bearer {}", page.token);
    let form = page.ask(
        "POST",
        "/api/v1/loops/main/tasks",
        &[&bearer, "Content-Type: text/plain"],
        r#"{"title":"x"}"#,
    );
    assert_eq!(form.status, 415);
    assert!(!sandbox.read("PRD.json").contains("\"x\""));
    check("POST", "/api/v1/loops/main/tasks", r#"{"title":"One more","depends_on":["A"]}"#, 200);
    assert!(sandbox.read("PRD.json").contains("One more"));
}

#[test]
fn events_come_as_they_happen_once_and_in_order() {
    let sandbox = Sandbox::with_tasks(&["A", "B"]);
    sandbox.make_pipe("ready");
    sandbox.make_pipe("go");
    let agent =
        r#"[ "$WIGGUM_TASK_ID" = B ] && { ready; wait_for_go; }; echo fine > "$WIGGUM_TASK_ID.txt"; claim"#;
    let started = sandbox.start(agent, &VERIFY);
    sandbox.wait_ready();
    let page = Page::open(&sandbox, &[]);
    let mut heard = page.listen("/api/v1/loops/main/events/stream", &["Last-Event-ID: 2"]);
    // What happened before comes from the journal, the rest as it happens.
    let before = heard
        .until(|name, data| name == "event" && data["type"] == "iteration_started" && data["task"] == "B");
    sandbox.go();
    let after = heard.until(|name, data| name == "event" && data["type"] == "run_ended");
    started.outcome_only().exits(0);
    let told: Vec<u64> = [before, after].concat();
    let expected: Vec<u64> = (3..=sandbox.journal().len() as u64).collect();
    assert_eq!(told, expected);
    // Whoever comes again goes on where they were.
    let mut again =
        page.listen(&format!("/api/v1/loops/main/events/stream?after={}", expected.last().unwrap() - 2), &[]);
    assert_eq!(again.until(|name, data| name == "event" && data["type"] == "run_ended").len(), 2);
}

#[test]
fn a_task_is_edited_in_its_file() {
    let sandbox = ended();
    let page = Page::open(&sandbox, &[]);
    let before = sandbox.read("PRD.json");
    let patch = |body: &Value| page.bearer("PATCH", "/api/v1/loops/main/tasks/B", &body.to_string());
    let answer = patch(&json!({"title": "<b>Bold</b>", "depends_on": ["A"]}));
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert!(answer.text.contains("kept") && answer.text.contains("the next run"), "{}", answer.text);
    let after = sandbox.read("PRD.json");
    assert!(after.contains("\"<b>Bold</b>\"") && after.contains("[\"A\"]"), "{after}");
    let answer = page.bearer("PATCH", "/api/v1/loops/main/tasks/A", r#"{"depends_on": ["B"]}"#);
    assert_eq!(answer.status, 409);
    assert!(answer.text.contains("`A` would depend on itself, through `B`"), "{}", answer.text);
    assert_eq!(patch(&json!({"depends_on": ["../../x"]})).status, 409);
    assert_eq!(patch(&json!({"title": "B", "depends_on": []})).status, 200);
    assert_eq!(sandbox.read("PRD.json").replace(", \"depends_on\": []", ""), before.replace("Do B", "B"));
}

#[test]
fn a_page_that_reads_nothing_does_not_hold_up_a_loop() {
    let sandbox = Sandbox::with_tasks(&["A", "B", "C"]);
    sandbox.make_pipe("ready");
    sandbox.make_pipe("go");
    let agent =
        r#"[ "$WIGGUM_TASK_ID" = A ] && { ready; wait_for_go; }; echo fine > "$WIGGUM_TASK_ID.txt"; claim"#;
    let started = sandbox.start(agent, &VERIFY);
    sandbox.wait_ready();
    let page = Page::open(&sandbox, &[]);
    let stuck: Vec<_> =
        (0..8).map(|_| page.connect("GET", "/api/v1/loops/main/events/stream?after=0", &[], "")).collect();
    let mut half = std::net::TcpStream::connect(&page.address).unwrap();
    half.write_all(b"GET / HT").unwrap();
    sandbox.go();
    started.outcome_only().exits(0);
    assert_eq!(page.get("/api/v1/loops/main")["counts"]["done"], 3);
    drop(stuck);
}

#[test]
fn a_question_is_answered_while_its_loop_runs() {
    let sandbox = Sandbox::with_tasks(&["A", "B"]);
    sandbox.make_pipe("ready");
    sandbox.make_pipe("go");
    let started = sandbox.start(ASKING, &VERIFY);
    sandbox.wait_ready();
    let page = Page::open(&sandbox, &[]);
    let inbox = page.get("/api/v1/inbox");
    assert_eq!(inbox["questions"][0]["summary"], "Which colour?", "{inbox}");
    let path = "/api/v1/loops/main/questions/q1/answer";
    assert_eq!(page.post(path, &json!({ "answer": "9" })).status, 422);
    let answer = page.post(path, &json!({ "answer": "2" }));
    assert_eq!(answer.status, 200, "{}", answer.text);
    let late = page.post(path, &json!({ "answer": "1" }));
    assert!(late.status == 409 || late.status == 404, "{}", late.text);
    sandbox.go();
    started.outcome_only().exits(0);
    assert!(sandbox.prompt("A", 2).contains("Blue"), "{}", sandbox.prompt("A", 2));
}

#[test]
fn loops_of_the_whole_machine_are_shown_and_steered() {
    let sandbox = Sandbox::with_tasks(&["A", "B"]);
    sandbox.make_pipe("ready");
    sandbox.make_pipe("go");
    let started = sandbox.start(ASKING, &VERIFY);
    sandbox.wait_ready();
    let other = sandbox.base().join("other");
    std::fs::create_dir(&other).unwrap();
    sandbox.git_in(&other, &["init", "-q"]);
    let page = Page::open_in(&sandbox, &other, &[]);

    let told = page.get("/api/v1/loops");
    assert_eq!((told["loops"].as_array().unwrap().len(), &told["repository"]), (0, &json!(other)));
    let (place, id) = (&told["elsewhere"][0], sandbox.loop_id());
    assert_eq!((&place["repository"], &place["loops"][0]["id"]), (&json!(sandbox.root), &json!(id)));
    assert_eq!(place["loops"][0]["engine_alive"], true);
    let of = |rest: &str| format!("/api/v1/loops/{id}{rest}");
    assert_eq!(page.get(&of(""))["counts"]["total"], 2);
    assert_eq!(page.get(&of("/tasks"))["total"], 2);
    assert_eq!(page.get("/api/v1/inbox")["questions"][0]["loop_id"], json!(id));

    // What is done goes to the store, and the backlog, of that workspace.
    let patch = page.bearer("PATCH", &of("/tasks/A"), r#"{"title": "Do A well"}"#);
    assert_eq!(patch.status, 200, "{}", patch.text);
    assert!(sandbox.read("PRD.json").contains("Do A well") && !other.join("PRD.json").exists());
    let mut heard = page.listen(&of("/events/stream?after=0"), &[]);
    let answer = page.post(&of("/questions/q1/answer"), &json!({ "answer": "2" }));
    assert_eq!(answer.status, 200, "{}", answer.text);
    heard.until(|name, data| name == "event" && data["type"] == "question_answered");
    sandbox.go();
    heard.until(|name, data| name == "event" && data["type"] == "run_ended");
    started.outcome_only().exits(0);
    assert!(sandbox.prompt("A", 2).contains("Blue") && sandbox.prompt("A", 2).contains("Do A well"));

    // A loop elsewhere goes by its whole id, and nothing by a path.
    let short = &id.to_string()[..8];
    let path = sandbox.root.display().to_string().replace('/', "%2F");
    for which in ["main", short, path.as_str(), "..%2F..%2Frepo"] {
        assert_eq!(page.bearer("GET", &format!("/api/v1/loops/{which}"), "").status, 404, "{which}");
    }
    drop(page);
    let looking = Page::open_in(&sandbox, &other, &["--read-only"]);
    assert_eq!(looking.get(&of(""))["counts"]["done"], 2);
    assert_eq!(looking.post(&of("/tasks/A/retry"), &json!({})).status, 403);
    drop(looking);
    let here = Page::open_in(&sandbox, &other, &["--here"]);
    assert_eq!(here.get("/api/v1/loops")["elsewhere"], json!([]));
    assert_eq!(here.bearer("GET", &of(""), "").status, 404);
}

#[test]
fn the_page_is_one_file_when_it_is_sent() {
    let sandbox = ended();
    let file = sandbox.base().join("page.html");
    sandbox.wiggum(&["report", "--html", &file.display().to_string()]).exits(0);
    let text = std::fs::read_to_string(file).unwrap();
    assert!(text.contains("script-src 'sha256-") && text.contains("style-src 'sha256-"), "{}", &text[..600]);
    assert!(!text.contains("<script>alert"), "what an agent printed is data");
    assert!(text.contains("\\u003cscript>alert") && !text.contains("src=\"/"));
}

fn seqs(told: &Value) -> Vec<u64> {
    told["events"].as_array().unwrap().iter().map(|event| event["seq"].as_u64().unwrap()).collect()
}

/// A stream of events that somebody reads.
impl serving::Heard {
    /// The numbers of the events up to the one that is meant.
    fn until(&mut self, wanted: impl Fn(&str, &Value) -> bool) -> Vec<u64> {
        let (mut seqs, mut name) = (Vec::new(), String::new());
        loop {
            let mut line = String::new();
            assert!(self.reader.read_line(&mut line).unwrap() > 0, "the stream ended");
            if let Some(event) = line.strip_prefix("event: ") {
                event.trim().clone_into(&mut name);
            }
            let Some(data) = line.strip_prefix("data: ") else { continue };
            let data: Value = serde_json::from_str(data).unwrap();
            if name == "event" {
                seqs.push(data["seq"].as_u64().unwrap());
            }
            if wanted(&name, &data) {
                return seqs;
            }
        }
    }
}

#[test]
fn nothing_is_served_inside_of_an_agent() {
    let mut sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.env("WIGGUM_LOOP_ID", "x");
    sandbox.wiggum(&["serve", "--no-open"]).complains(2, &["agent"]);
}

#[test]
fn a_run_can_have_its_page_beside_it() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    let run = sandbox.run(AGENT, &["--web", "--verify", "true"]).exits(0);
    assert!(run.stderr.contains("the page is at http://127.0.0.1:"), "{}", run.stderr);
    assert!(!run.stdout.contains("token="), "{}", run.stdout);
}

/// One word for what a loop does, wherever it is asked for.
#[test]
fn a_killed_engine_is_shown_as_dead_everywhere() {
    let sandbox = Sandbox::new();
    sandbox.write("PRD.json", &prd_of(&[story("A", ""), story("B", r#", "depends_on": ["A"]"#)]));
    sandbox.commit_all("backlog");
    sandbox.make_pipe("ready");
    let running = sandbox.start("hang", &["--verify", "true"]);
    sandbox.wait_ready();
    let page = Page::open(&sandbox, &[]);
    let one = page.get("/api/v1/loops/main");
    assert_eq!((&one["activity"], &one["health"]["health"]), (&json!("running"), &json!("healthy")));
    assert_eq!((&one["counts"]["running"], &one["counts"]["interrupted"]), (&json!(1), &json!(0)));
    running.kill();

    // Nobody works on its task.
    let one = page.get("/api/v1/loops/main");
    assert_eq!((&one["counts"]["running"], &one["counts"]["interrupted"]), (&json!(0), &json!(1)));
    let tasks = page.get("/api/v1/loops/main/tasks");
    assert_eq!(tasks["tasks"][0]["state"], "interrupted");
    assert_eq!(tasks["tasks"][1]["why"], "waits on A (interrupted)");
    assert_eq!(page.get("/api/v1/loops/main/graph")["nodes"][0]["state"], "interrupted");
    assert_eq!(page.get("/api/v1/loops/main/tasks/A")["state"], "interrupted");
    let last = tasks["seq"].as_u64().unwrap();
    let then = page.get(&format!("/api/v1/loops/main/tasks?at={last}"));
    assert_eq!(then["tasks"][0]["state"], "running", "it was at that moment");
    let shown = |command: &[&str]| sandbox.launch(&sandbox.root, command).outcome_only().exits(0).stdout;
    for command in [&["show", "A"][..], &["graph"]] {
        let told = shown(command);
        assert!(told.contains("interrupted") && !told.contains("]:::running"), "{command:?}: {told}");
    }
    let task: Value = serde_json::from_str(&shown(&["show", "A", "--json"])).unwrap();
    assert_eq!((&task["state"], &task["why"]), (&json!("interrupted"), &json!("interrupted")));

    let one = page.get("/api/v1/loops/main");
    assert_eq!(
        (&one["activity"], &one["health"], &one["waiting"]),
        (&json!("died"), &json!(null), &json!(null))
    );
    let all = page.get("/api/v1/loops");
    assert_eq!((&all["loops"][0]["activity"], &all["loops"][0]["waiting"]), (&json!("died"), &json!(null)));
    let health = page.get("/api/v1/loops/main/health");
    assert_eq!((&health["activity"], &health["health"]), (&json!("died"), &json!(null)));
    // The page still runs.
    let ask = |command: &[&str]| sandbox.launch(&sandbox.root, command).outcome_only().exits(0);
    for command in [&["status", "--json"][..], &["health", "--json"], &["monitor", "--once", "--json"]] {
        let told: Value = serde_json::from_str(&ask(command).stdout).unwrap();
        assert_eq!((&told[0]["activity"], &told[0]["health"]), (&json!("died"), &json!(null)), "{command:?}");
    }
    for command in [&["status"][..], &["health"], &["monitor", "--once"], &["report"]] {
        let told = ask(command).never_says("healthy").stdout;
        assert!(told.contains("its engine died"), "{command:?}: {told}");
    }
}

#[test]
fn a_task_waits_only_on_what_is_not_done() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    let stories = [support::story("A", ""), support::story("B", r#", "depends_on": ["A"]"#)];
    sandbox.write("PRD.json", &support::prd_of(&stories));
    sandbox.commit_all("dependencies");
    for name in ["ready", "go"] {
        sandbox.make_pipe(name);
    }
    let running = sandbox.start(
        "case $WIGGUM_TASK_ID in A) ready; wait_for_go ;; esac\necho fine > $WIGGUM_TASK_ID\nclaim",
        &["--verify", "true"],
    );
    sandbox.wait_ready();
    let page = Page::open(&sandbox, &[]);
    let before = page.get("/api/v1/loops/main/tasks/B");
    assert_eq!((&before["waits_on"], &before["why"]), (&json!(["A"]), &json!("waits on A (running)")));
    let mut heard = page.listen("/api/v1/loops/main/events/stream", &[]);
    heard.until(|name, _| name == "hello");
    sandbox.go();
    // Whoever looks at B is told, though nothing happened to B itself.
    let told = |row: &Value| row["id"] == "B" && row["why"] != "waits on A (running)";
    heard.until(|name, data| name == "change" && data["tasks"].as_array().unwrap().iter().any(told));
    running.outcome_only().exits(0);
    assert_eq!(page.get("/api/v1/loops/main/tasks/B")["waits_on"], json!([]));
}
