//! `wiggum mcp serve` as clients meet it: over standard input and output and over HTTP, well-behaved and
//! hostile, and as the official inspector and conformance suite see it.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may fail here")]

#[path = "mcp_server/client.rs"]
mod client;
mod support;

use std::process::Stdio;
use std::time::Duration;

use client::{Http, Pipe, Proxy};
use serde_json::{Value, json};
use support::Sandbox;
use wiggum_core::event::{Answer, Event};
use wiggum_testkit::mcp;

/// An agent that does its task.
const WORKS: &str = "echo done > $WIGGUM_TASK_ID.txt; claim";
/// An agent that asks.
const ASKS: &str = r#"cat <<'END'
<escalate type="deviation">
<summary>Two ways</summary>
<options>
1. left
2. right
</options>
<question>Which one?</question>
</escalate>
END
"#;

fn names(list: &Value, of: &str) -> Vec<String> {
    list[of].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_client_plans_runs_and_reads_a_loop() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    let agent = sandbox.agent(WORKS);
    sandbox.write(
        "wiggum.toml",
        &format!(
            "[agent]\ncommand = {agent:?}\n[checks]\nverify = [\"test -s A.txt\"]\nbaseline = \"off\"\n"
        ),
    );
    sandbox.commit_all("settings");
    let mut client = Pipe::start(&sandbox, &[]);
    assert_eq!(client.tool("list_loops", json!({}))["loops"], json!([]));
    let added = client.tool("add_task", json!({"title": "Another", "criteria": ["A.txt is there"]}));
    assert_eq!(added["backlog"], "PRD.json");
    sandbox.commit_all("another");
    let tasks = client.tool("list_tasks", json!({"status": "open"}));
    assert_eq!((tasks["total"].as_u64(), tasks["tasks"].as_array().unwrap().len()), (Some(2), 2));

    let started = client.tool("start_loop", json!({}));
    assert_eq!(started["loop"], "main", "{started}");
    sandbox.wait_for(|event| matches!(event, Event::RunEnded { .. }));
    let status = client.tool("status", json!({"loop": "main"}));
    assert_eq!((&status["state"], &status["counts"]["done"]), (&json!("completed"), &json!(2)), "{status}");
    let evidence = client.tool("task_evidence", json!({"task": "A"}));
    let check = &evidence["attempts"][0]["evidence"][0];
    assert_eq!((&check["command"], &check["passed"]), (&json!("test -s A.txt"), &json!(true)), "{evidence}");
    assert_eq!(evidence["verified"], true);
    assert_eq!(client.tool("cost_report", json!({"by": "agent"}))["by"], "agent");
    assert_eq!(client.tool("token_status", json!({}))["loop"], "main");
    assert_eq!(client.tool("health_status", json!({}))["loops"][0]["state"], "completed");

    let id = started["loop_id"].as_str().unwrap();
    let report = client.resource(&format!("wiggum://loops/{id}/report"));
    assert!(report.contains("Do A"), "{report}");
    let page: Value =
        serde_json::from_str(&client.resource(&format!("wiggum://loops/{id}/journal?limit=2"))).unwrap();
    let (events, last) = (page["events"].as_array().unwrap(), page["last_seq"].as_u64().unwrap());
    assert_eq!(
        events.iter().map(|event| event["seq"].as_u64().unwrap()).collect::<Vec<_>>(),
        [last, last - 1]
    );
    let older: Value = serde_json::from_str(&client.resource(page["older"].as_str().unwrap())).unwrap();
    assert_eq!(older["events"][0]["seq"].as_u64(), Some(last - 2));
    let first: Value =
        serde_json::from_str(&client.resource("wiggum://loops/main/journal?after=0&limit=1")).unwrap();
    assert_eq!(first["events"][0]["seq"], 1);
}

#[test]
fn the_first_answer_wins_and_the_second_is_told_whose_it_was() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.run(ASKS, &[]).exits(6);
    let mut client = Pipe::start(&sandbox, &[]);
    assert!(client.tool("checkpoint", json!({}))["message"].as_str().unwrap().contains("checkpoint"));
    let inbox = client.tool("list_inbox", json!({}));
    assert_eq!(inbox["questions"][0]["options"], json!(["left", "right"]), "{inbox}");
    let refused = client.refused("answer", json!({"question": "q1", "answer": "7"}));
    assert!(refused.contains("it takes 1-2"), "{refused}");
    assert_eq!(client.tool("answer", json!({"question": "q1", "answer": "2"}))["state"], "kept");
    let refused = client.refused("answer", json!({"question": "q1", "answer": "1"}));
    assert!(refused.contains("answered already: option 2"), "{refused}");
    drop(client);
    sandbox.run(WORKS, &[]).exits(0);
    let answered = sandbox.events().into_iter().filter_map(|event| match event {
        Event::QuestionAnswered { answer, by, .. } => Some((answer, by)),
        _ => None,
    });
    let answered: Vec<(Answer, String)> = answered.collect();
    assert!(
        matches!(&answered[..], [(Answer::Option { number: 2 }, by)] if by.ends_with("(MCP)")),
        "{answered:?}"
    );
    let refused = Pipe::start(&sandbox, &[]).refused("answer", json!({"question": "q1", "answer": "1"}));
    assert!(refused.contains("was answered by") && refused.contains("option 2"), "{refused}");
}

#[test]
fn tasks_are_changed_as_the_command_line_would() {
    let sandbox = Sandbox::with_tasks(&["A", "B"]);
    let mut client = Pipe::start(&sandbox, &[]);
    client.tool("update_task", json!({"task": "B", "position": "first"}));
    let change = json!({"task": "A", "status": "skipped", "title": "Anew", "depends_on": ["B"]});
    client.tool("update_task", change);
    let tasks = client.tool("list_tasks", json!({}));
    let seen: Vec<_> =
        tasks["tasks"].as_array().unwrap().iter().map(|task| (&task["id"], &task["status"])).collect();
    assert_eq!(seen, [(&json!("B"), &json!("open")), (&json!("A"), &json!("skipped"))]);
    assert_eq!(
        (&tasks["tasks"][1]["title"], &tasks["tasks"][1]["depends_on"]),
        (&json!("Anew"), &json!(["B"]))
    );
    for (arguments, words) in [
        (json!({"task": "Z", "status": "done"}), "no task `Z`"),
        (json!({"task": "B", "depends_on": ["A"]}), "`B` would depend on itself, through `A`"),
        (json!({"task": "A"}), "nothing is to be changed"),
        (json!({"task": "A", "status": "splendid"}), "do not fit"),
        (json!({"task": "A", "status": "done", "backlog": "../../etc/passwd"}), "no backlog"),
        (json!({"task": "A", "status": "done", "backlog": "/etc/passwd"}), "no backlog"),
    ] {
        let refused = client.refused("update_task", arguments);
        assert!(refused.contains(words), "{refused}");
    }
}

#[test]
fn a_link_does_not_lead_out_of_the_repository() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    std::fs::write(sandbox.base().join("secret.md"), "- [ ] hidden\n").unwrap();
    std::os::unix::fs::symlink(sandbox.base().join("secret.md"), sandbox.root.join("link.md")).unwrap();
    let mut client = Pipe::start(&sandbox, &[]);
    let refused = client.refused("list_tasks", json!({"backlog": "link.md"}));
    assert!(refused.contains("no backlog") && !refused.contains("hidden"), "{refused}");
}

#[test]
fn a_loop_that_cannot_start_says_why() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    let mut client = Pipe::start(&sandbox, &[]);
    let refused = client.refused("start_loop", json!({"agent": "nobody"}));
    assert!(refused.contains("did not start") && refused.contains("no agent `nobody`"), "{refused}");
    for _ in 0..2 {
        let refused = client.refused("start_loop", json!({"agent": "x", "verify": ["rm -rf /"]}));
        assert!(refused.contains("unknown field `verify`"), "{refused}");
    }
}

#[test]
fn garbage_is_answered_or_passed_over_and_the_server_goes_on() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    let mut client = Pipe::start(&sandbox, &[]);
    for line in ["", "garbage", "{\"jsonrpc\":\"2.0\"}", "[]", "\u{0}\u{1}", "{\"a\":"] {
        client.write(line);
    }
    client.write(&format!("{{\"x\":\"{}\"}}", "y".repeat(2 * wiggum_mcp::MAX_MESSAGE)));
    let error = client.fails("tools/call", json!({"name": "rm", "arguments": {}}));
    assert!(error["message"].as_str().unwrap().contains("no tool `rm`"), "{error}");
    for uri in ["file:///etc/passwd", "wiggum://loops/../../etc/passwd", "wiggum://loops/nobody/report"] {
        assert!(client.fails("resources/read", json!({"uri": uri}))["code"].is_i64());
    }
    assert!(client.refused("status", json!({"loop": "nobody"})).contains("no loops here yet"));
    assert_eq!(client.tool("list_tasks", json!({}))["total"], 1);
}

/// With the environment of a loop it is the agent's server, whatever is asked for.
#[test]
fn an_agent_does_not_become_a_person_by_a_flag() {
    let mut sandbox = Sandbox::with_tasks(&["A"]);
    sandbox.wiggum(&["mcp", "serve", "--for", "agent"]).complains(2, &["WIGGUM_LOOP_ID is not set"]);
    sandbox.run(WORKS, &[]).exits(0);
    let id = sandbox.loop_id().to_string();
    for (name, value) in [
        ("WIGGUM_LOOP_ID", id.as_str()),
        ("WIGGUM_TASK_ID", "A"),
        ("WIGGUM_ITERATION", "1"),
        ("WIGGUM_ATTEMPT", "1"),
        ("WIGGUM_REPORTS", "/nowhere"),
    ] {
        sandbox.env(name, value);
    }
    sandbox.wiggum(&["mcp", "serve", "--for", "client"]).complains(2, &["inside of a loop"]);
    sandbox.wiggum(&["mcp", "serve", "--http", "0"]).complains(2, &["one client"]);
    let mut client = Pipe::start(&sandbox, &[]);
    let offered = names(&client.asks("tools/list", json!({})), "tools");
    assert!(
        offered.contains(&"claim_done".to_owned()) && !offered.contains(&"answer".to_owned()),
        "{offered:?}"
    );
    let error =
        client.fails("tools/call", json!({"name": "answer", "arguments": {"question": "q1", "answer": "1"}}));
    assert!(error["message"].as_str().unwrap().contains("no tool `answer`"), "{error}");
    // That attempt is over, and nobody speaks for it any more.
    let refused = client.refused("claim_done", json!({"summary": "again"}));
    assert!(refused.contains("came too late"), "{refused}");
    assert_eq!(client.tool("task_evidence", json!({}))["task"], "A");
}

#[test]
fn without_the_token_nothing_is_told() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    let server = Http::start(&sandbox, &[]);
    let body = client::list_tools();
    for authorization in
        ["", "Authorization: Bearer wrong\r\n", "Authorization: Basic eA==\r\n", "Authorization: Bearer \r\n"]
    {
        let answer = server.post(authorization, &body);
        assert!(answer.starts_with("HTTP/1.1 401"), "{authorization}: {answer}");
        assert!(answer.to_lowercase().contains("www-authenticate: bearer"), "{answer}");
        assert!(!answer.contains("list_loops"), "{answer}");
    }
    assert!(server.post(&server.bearer(), &body).contains("list_loops"));
}

#[test]
fn pages_in_a_browser_and_other_names_are_turned_away() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    let server = Http::start(&sandbox, &[]);
    let (bearer, body) = (server.bearer(), client::list_tools());
    let from = |origin: &str| server.post(&format!("{bearer}Origin: {origin}\r\n"), &body);
    for origin in ["http://evil.example", "https://localhost.evil.example", "null"] {
        let answer = from(origin);
        assert!(answer.starts_with("HTTP/1.1 403") && !answer.contains("list_loops"), "{origin}: {answer}");
    }
    let rebound = server.raw(&server.request("POST /mcp", "evil.example:80", &bearer, &body));
    assert!(rebound.starts_with("HTTP/1.1 403") && !rebound.contains("list_loops"), "{rebound}");
    let elsewhere = server.raw(&server.request("POST /other", &server.host(), &bearer, &body));
    assert!(elsewhere.starts_with("HTTP/1.1 404"), "{elsewhere}");
}

#[test]
fn what_is_too_much_or_no_request_is_refused_and_the_server_goes_on() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    let server = Http::start(&sandbox, &[]);
    let bearer = server.bearer();
    let huge = format!("{{\"x\":\"{}\"}}", "y".repeat(2 * wiggum_mcp::MAX_MESSAGE));
    let answer = server.post(&bearer, &huge);
    assert!(answer.starts_with("HTTP/1.1 413"), "{}", &answer[..answer.len().min(200)]);
    for garbage in ["garbage\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "\u{0}\u{16}\u{3}\u{1}\r\n\r\n"] {
        assert!(!server.raw(garbage).contains("200 OK"));
    }
    assert!(server.post(&bearer, "{not json").starts_with("HTTP/1.1 4"));
    assert!(server.post(&bearer, &client::list_tools()).contains("list_loops"));
}

/// Those who say nothing, or begin and never end, take no place from others; not even with the token.
#[test]
fn slow_clients_are_in_nobodys_way() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    let server = Http::start(&sandbox, &[]);
    let bearer = server.bearer();
    let whole = server.request("POST /mcp", &server.host(), &bearer, &client::list_tools());
    let beginnings = ["", "POST /mcp HTT", &whole[..40], &whole[..whole.len() - 1]];
    let slow: Vec<_> = beginnings
        .iter()
        .cycle()
        .take(600)
        .map(|said| {
            let mut stream = std::net::TcpStream::connect(server.address()).unwrap();
            drop(std::io::Write::write_all(&mut stream, said.as_bytes()));
            stream
        })
        .collect();
    let begun = std::time::Instant::now();
    assert!(server.post(&bearer, &client::list_tools()).contains("list_loops"));
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(5), "it took {took:?} beside {} slow clients", slow.len());
}

#[test]
fn a_token_to_look_with_changes_nothing() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    let looking = sandbox.base().join("looking");
    let server = Http::start(&sandbox, &["--read-only-token-file", looking.to_str().unwrap()]);
    let token = std::fs::read_to_string(&looking).unwrap();
    let bearer = format!("Authorization: Bearer {}\r\n", token.trim());
    let offered = server.post(&bearer, &client::list_tools());
    assert!(offered.contains("list_tasks") && !offered.contains("add_task"), "{offered}");
    let refused = server.post(&bearer, &client::call("add_task", &json!({"title": "no"})));
    assert!(refused.contains("no tool `add_task`"), "{refused}");
    assert!(!sandbox.read("PRD.json").contains("\"no\""));
}

#[test]
fn other_machines_are_let_in_only_where_that_is_said() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    sandbox
        .wiggum(&["mcp", "serve", "--http", "0.0.0.0:0"])
        .complains(2, &["--listen-anywhere", "start agents here"]);
    sandbox.wiggum(&["mcp", "serve", "--http", "nowhere"]).complains(2, &["no address"]);
    let short = sandbox.base().join("short");
    std::fs::write(&short, "1234\n").unwrap();
    let words = ["mcp", "serve", "--http", "0", "--token-file", short.to_str().unwrap()];
    sandbox.wiggum(&words).complains(2, &["does not do"]);
}

/// The newest protocol has no sessions: every request says by itself what it is.
#[test]
fn the_newest_protocol_works_without_a_session() {
    let sandbox = Sandbox::with_tasks(&["A"]);
    let server = Http::start(&sandbox, &[]);
    let answer = server.post(&server.bearer(), &client::call("list_tasks", &json!({})));
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("Do A"), "{answer}");
    assert!(!answer.to_lowercase().contains("mcp-session-id"), "{answer}");
}

#[test]
fn the_inspector_sees_what_is_there_over_both_transports() {
    let Some(inspector) = mcp::inspector_or_skip("our server as the inspector sees it") else { return };
    let sandbox = Sandbox::with_tasks(&["A"]);
    let server = Http::start(&sandbox, &[]);
    // Its command line cannot send a token.
    let url = Proxy::start(server.address(), server.bearer()).url();
    let own = env!("CARGO_BIN_EXE_wiggum");
    let targets: [Vec<&str>; 2] = [vec![own, "mcp", "serve"], vec![&url]];
    for target in targets {
        let inspect = |more: &[&str]| -> Value {
            let mut command = sandbox.command(inspector.to_str().unwrap());
            command.current_dir(&sandbox.root).arg("--cli").args(&target).args(more);
            if target.len() == 1 {
                command.args(["--transport", "http"]);
            }
            let output = command.stdin(Stdio::null()).output().unwrap();
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            serde_json::from_str(&text)
                .unwrap_or_else(|error| panic!("{error}: {text}{}", String::from_utf8_lossy(&output.stderr)))
        };
        let tools = inspect(&["--method", "tools/list"]);
        assert_eq!(names(&tools, "tools").len(), 14, "{tools}");
        let tasks = inspect(&["--method", "tools/call", "--tool-name", "list_tasks"]);
        assert_eq!(tasks["structuredContent"]["tasks"][0]["id"], "A", "{tasks}");
        let resources = inspect(&["--method", "resources/list"]);
        assert_eq!(resources["resources"][0]["uri"], "wiggum://loops", "{resources}");
        let templates = inspect(&["--method", "resources/templates/list"]);
        assert_eq!(templates["resourceTemplates"].as_array().unwrap().len(), 4, "{templates}");
        let prompts = inspect(&["--method", "prompts/list"]);
        assert_eq!(names(&prompts, "prompts"), ["ralph-loop", "plan"], "{prompts}");
        let plan =
            inspect(&["--method", "prompts/get", "--prompt-name", "plan", "--prompt-args", "goal=fly"]);
        assert!(plan["messages"][0]["content"]["text"].as_str().unwrap().contains("fly"), "{plan}");
    }
}

/// What the suite wants and this server has no use for, each with the reason.
const NOT_OURS: &str = "\
server:
  # Tools, prompts and resources by fixed names that only its own example server has.
  - tools-call-simple-text
  - tools-call-image
  - tools-call-audio
  - tools-call-embedded-resource
  - tools-call-mixed-content
  - tools-call-with-logging
  - tools-call-error
  - tools-call-with-progress
  - tools-call-sampling
  - tools-call-elicitation
  - json-schema-2020-12
  - elicitation-sep1034-defaults
  - elicitation-sep1330-enums
  - resources-read-text
  - resources-read-binary
  - resources-templates-read
  - prompts-get-simple
  - prompts-get-with-args
  - prompts-get-embedded-resource
  - prompts-get-with-image
  # It has neither a log for clients nor subscriptions, and does not say it had.
  - logging-set-level
  - resources-subscribe
  - resources-unsubscribe
";

#[test]
fn the_conformance_suite_is_content() {
    let Some((suite, node)) = mcp::conformance_or_skip("our server") else { return };
    let sandbox = Sandbox::with_tasks(&["A"]);
    let server = Http::start(&sandbox, &[]);
    // The suite knows no tokens.
    let proxy = Proxy::start(server.address(), server.bearer());
    let expected = sandbox.base().join("expected.yml");
    std::fs::write(&expected, NOT_OURS).unwrap();
    let mut command = sandbox.command(node.join("node").to_str().unwrap());
    command.arg(suite).args(["server", "--url", &proxy.url(), "--expected-failures"]);
    let output = command.arg(&expected).current_dir(sandbox.base()).stdin(Stdio::null()).output().unwrap();
    let said =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}");
    for scenario in [
        "server-initialize",
        "ping",
        "tools-list",
        "resources-list",
        "prompts-list",
        "dns-rebinding-protection",
    ] {
        assert!(said.contains(scenario), "{scenario}:\n{said}");
    }
}

/// How long a test waits for what should come at once.
const PATIENCE: Duration = Duration::from_secs(60);
