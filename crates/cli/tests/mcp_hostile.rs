//! `wiggum mcp` with a server that does everything wrong that a server can.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test may fail here")]
#![expect(clippy::disallowed_methods, reason = "a person's shell starts the program as a process of its own")]

mod mcp;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use mcp::Place;
use rustix::process::{Pid, Signal, kill_process};

/// A call that fails and of which nobody knows whether it happened.
#[track_caller]
fn uncertain(how: &str, expected: &str) {
    let place = Place::hostile(how, "call_timeout = \"2s\"");
    let said = place.send();
    let answer = said.json();
    assert_eq!(said.code, Some(1), "{}", said.err);
    assert_eq!(answer["uncertain"], true, "{answer}");
    let message = answer["error"].as_str().unwrap();
    assert!(message.contains(expected), "{message}");
    assert!(message.contains("whether `send` was carried out is not known"), "{message}");
    assert!(said.err.contains("hint: look whether it happened"), "{}", said.err);
    assert_eq!(place.log().lines().next(), Some("called {\"text\": \"hello\"}"));
}

/// A call that fails and certainly did not happen.
#[track_caller]
fn refused(how: &str, code: i32, expected: &str) {
    let said = Place::hostile(how, "").send();
    assert_eq!(said.code, Some(code), "{} {}", said.out, said.err);
    assert!(said.err.contains(expected), "{}", said.err);
    assert!(!said.out.contains("\"uncertain\": true"), "{}", said.out);
}

/// A call that succeeds all the same.
#[track_caller]
fn done(how: &str) -> Place {
    let place = Place::hostile(how, "");
    let said = place.send();
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert_eq!(said.json()["text"], "did hello");
    assert_eq!(said.json()["structured"]["id"], 7);
    place
}

#[test]
fn what_was_sent_and_not_answered_properly_is_uncertain() {
    uncertain("dies", "ended with exit code 3");
    uncertain("killed", "was ended by signal 9");
    uncertain("never", "did not answer within 2 s");
    uncertain("other-id", "it answered a request that was not made, or not any more (9999)");
    uncertain("unreadable", "an answer that cannot be read");
    uncertain("not-a-result", "an answer that is no result of a tool");
    uncertain("huge", "sent a message of more than 16777216 bytes");
    uncertain("endless-line", "sent a message of more than 16777216 bytes");
}

#[test]
fn what_was_refused_or_not_sent_is_certain() {
    refused("refuses", 1, "MCP server `it` refused: the mailbox is full");
    refused("fails", 1, "`send` failed: no such recipient");
    refused("changed", 1, "has changed `send` since it was looked at; nothing was sent");
    refused("broken", 1, "ended with exit code 1; it said: cannot find module 'x'");
    refused("no-list", 1, "does not tell its tools: no list today");
    refused("endless", 1, "on more than 200 pages");
    refused("bad-schema", 1, "describes the params of `send` in a way that makes no sense");
}

/// What a call over HTTP comes to; the token for the server is never shown, nor sent to another.
#[track_caller]
fn over_http(how: &str, uncertain: bool, expected: &str) {
    let (place, _server) = Place::hostile_http(how);
    let said = place.send();
    assert_eq!(said.code, Some(1), "{how}: {} {}", said.out, said.err);
    assert!(said.err.contains(expected), "{how}: {}", said.err);
    assert_eq!(said.out.contains("\"uncertain\": true"), uncertain, "{how}: {}", said.out);
    assert!(!format!("{}{}", said.out, said.err).contains("hunter22"), "{how}: {} {}", said.out, said.err);
    let log = place.log();
    assert!(!log.contains("elsewhere"), "{how}: {log}");
    assert!(log.matches("called").count() <= 1, "{how}: called again: {log}");
}

#[test]
fn a_server_over_http_that_answers_is_heard() {
    for how in ["fine", "streams"] {
        let (place, _server) = Place::hostile_http(how);
        let said = place.send();
        assert_eq!(said.code, Some(0), "{how}: {}", said.err);
        assert_eq!(said.json()["text"], "did hello");
    }
}

#[test]
fn what_was_sent_over_http_and_not_answered_properly_is_uncertain() {
    over_http("cuts", true, "broke the connection off");
    over_http("cuts-stream", true, "whether `send` was carried out is not known");
    over_http("never", true, "did not answer within 2 s");
    over_http("huge", true, "sent an answer of more than 16777216 bytes");
    over_http("endless-event", true, "whether `send` was carried out is not known");
    over_http("not-json", true, "sent an answer that cannot be read: <html>It works!</html>");
    over_http("fails", true, "answered HTTP 503: the mill has burnt down");
}

#[test]
fn what_was_refused_over_http_is_certain() {
    over_http("refuses", false, "answered HTTP 429: too many letters today");
    over_http("moved", false, "now, and must be configured so");
    over_http("login", false, "answered HTTP 401");
}

#[test]
fn nothing_was_called_where_the_tool_changed_in_between() {
    let place = Place::hostile("changed", "");
    assert_eq!(place.send().code, Some(1));
    assert_eq!(place.log(), "");
}

#[test]
fn what_a_server_may_do_beside_answering_does_no_harm() {
    done("fine");
    done("noisy");
    done("chatty");
    done("old");
    done("batch");
    // It died after it had told its tools for the params, and is started anew.
    done("forgetful");
    let place = done("asks");
    let elicited = "elicitation/create: {\"action\": \"decline\"}";
    let log = place.log();
    assert!(log.contains("sampling/createMessage: refused"), "{log}");
    assert!(log.contains(elicited) || log.contains("elicitation/create: refused"), "{log}");
    assert!(log.contains("something/else: refused"), "{log}");
    let twice = Place::hostile("twice", "").send();
    assert_eq!(twice.json()["text"], "first");
}

#[test]
fn a_server_that_never_greets_back_is_given_up() {
    let place = Place::hostile("silent", "start_timeout = \"1s\"");
    let said = place.send();
    assert_eq!(said.code, Some(1));
    assert!(said.err.contains("MCP server `it` did not answer within 1 s"), "{}", said.err);
}

#[test]
fn a_result_is_cut_at_its_limit() {
    let place = Place::hostile("long", "max_result = 1001");
    let said = place.send();
    assert_eq!(said.code, Some(0), "{}", said.err);
    let answer = said.json();
    assert_eq!(answer["text"].as_str().unwrap().len(), 1000);
    assert_eq!((&answer["structured"], &answer["truncated"]), (&serde_json::Value::Null, &true.into()));
    assert!(said.err.contains("max_result"), "{}", said.err);
}

#[test]
fn params_are_checked_before_anything_is_called() {
    let place = Place::hostile("fine", "");
    let check = |args: &[&str], message: &str, hint: &str| {
        let said = place.said(&[&["mcp", "call"], args].concat());
        assert_eq!(said.code, Some(2), "{}", said.err);
        assert!(said.err.contains(message), "{}", said.err);
        assert!(said.err.contains(hint), "{}", said.err);
    };
    check(&["it", "send"], "\"text\" is a required property", "hint: `send` wants text: string");
    check(
        &["it", "send", "--params", r#"{"text": 5}"#],
        "`text`: 5 is not of type \"string\"",
        "text: string",
    );
    check(
        &["it", "snd", "text=1"],
        "MCP server `it` has no tool `snd`",
        "hint: it has `send`, `look`, `put`, `drop`",
    );
    check(&["at", "send", "text=1"], "there is no MCP server `at`", "hint: there is `it`");
    check(&["it", "send", "text"], "`text` is no param", "name=value");
    check(&["it", "send", "--params", "{"], "the params are not JSON", "--params");
    check(&["it", "send", "--params", "[]"], "not []", "`send` wants");
    assert_eq!(place.log(), "");
}

#[test]
fn tools_tell_their_parameters_and_what_they_may_do() {
    let place = Place::hostile("pages", "");
    let rows = place.said(&["mcp", "tools", "it", "--json"]).json();
    let told: Vec<_> =
        rows.as_array().unwrap().iter().map(|row| (&row["name"], &row["repeatable"])).collect();
    // What says nothing of itself may not be called twice.
    let expected = [("send", false), ("look", true), ("put", true), ("drop", false)];
    assert_eq!(told.len(), 4, "{rows}");
    for ((name, repeatable), (expected, is)) in told.iter().zip(expected) {
        assert_eq!((name.as_str(), repeatable.as_bool()), (Some(expected), Some(is)));
    }
    assert_eq!(rows[0]["parameters"][0]["type"], "string");
    let text = place.said(&["mcp", "tools"]).out;
    assert!(text.contains("  look(text: string)  [read-only]\n"), "{text}");
}

#[test]
fn a_server_gets_few_variables_and_its_secrets_are_not_shown() {
    let more = "env = { API_TOKEN = \"${OUTER}\", PLAIN = \"${NOT_SET:-plain}\" }";
    let place = Place::hostile("environment", more);
    let run = |args: &[&str]| -> mcp::Said {
        let mut command = place.wiggum(args);
        command.env("OUTER", "hunter22hunter22").env("AWS_SECRET_ACCESS_KEY", "aws").output().unwrap().into()
    };
    let said = run(&["mcp", "call", "it", "send", "text=x", "--json"]);
    let text = said.json()["text"].as_str().unwrap().to_owned();
    let variables: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(variables["API_TOKEN"], "[API_TOKEN redacted]");
    assert_eq!(variables["PLAIN"], "plain");
    assert!(variables["PATH"].is_string() && variables["WIGGUM_MCP"].is_string());
    for withheld in ["OUTER", "AWS_SECRET_ACCESS_KEY", "SANDBOX"] {
        assert!(variables[withheld].is_null(), "{withheld}");
    }
    let shown = run(&["config", "show"]).out;
    assert!(shown.contains("mcp.servers.it.env") && !shown.contains("hunter22"), "{shown}");

    let place = Place::hostile("dies", "env = { API_TOKEN = \"hunter22hunter22\" }");
    let said = place.send();
    assert!(said.err.contains("it hurts, token [API_TOKEN redacted]"), "{}", said.err);
}

#[test]
fn what_a_server_started_ends_with_it_however_stubborn() {
    for how in ["children", "stubborn"] {
        let place = Place::hostile(how, "");
        assert_eq!(place.send().code, Some(0));
        let log = place.log();
        let child = log.lines().find_map(|line| line.strip_prefix("child ")).unwrap();
        assert!(!Path::new("/proc").join(child).exists(), "{how}: {child} is left");
    }
}

#[test]
fn an_interruption_cancels_the_call_and_ends_the_server() {
    let place = Place::hostile("never", "");
    let log = place.root.join("log");
    let mut wiggum = place.wiggum(&["mcp", "call", "it", "send", "text=1"]);
    let wiggum = wiggum.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // Tells of the call as soon as it is noted.
    let follow = "until grep -q called \"$0\" 2>/dev/null; do :; done; echo called";
    let mut wait = Command::new("sh").args(["-c", follow]).arg(&log).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(wait.stdout.take().unwrap()).read_line(&mut line).unwrap();
    wait.wait().unwrap();
    kill_process(Pid::from_child(&wiggum), Signal::INT).unwrap();
    let said: mcp::Said = wiggum.wait_with_output().unwrap().into();
    assert_eq!(said.code, Some(130), "{}", said.err);
    assert!(
        said.err.contains("was told to stop: whether `send` was carried out is not known"),
        "{}",
        said.err
    );
    assert!(place.log().contains("cancelled"), "{}", place.log());
}

#[test]
fn servers_are_asked_at_the_same_time_and_one_does_not_hide_another() {
    let place = Place::hostile("fine", "");
    let config = std::fs::read_to_string(place.root.join("wiggum.toml")).unwrap();
    let silent = |name: &str| {
        let hangs = "command = \"sleep\"\nargs = \"1000\"\nstart_timeout = \"3s\"\n";
        format!("[mcp.servers.{name}]\n{hangs}")
    };
    let all = (1..=5).map(|number| silent(&format!("s{number}"))).collect::<String>();
    let gone = "[mcp.servers.gone]\ncommand = \"no-such-program\"\nargs = [\"--token\", \"hunter22\"]\n";
    let unset = "[mcp.servers.unset]\nurl = \"http://127.0.0.1:1\"\nbearer_env = \"NO_SUCH_TOKEN\"\n";
    place.write("wiggum.toml", &(config + &all + gone + unset));
    let began = std::time::Instant::now();
    let rows = place.said(&["mcp", "list", "--json"]).json();
    // One after the other they would take fifteen seconds.
    assert!(began.elapsed() < Duration::from_secs(12), "{:?}", began.elapsed());
    let of = |name: &str| rows.as_array().unwrap().iter().find(|row| row["name"] == name).unwrap().clone();
    assert_eq!(of("it")["tools"], 4);
    assert_eq!(of("s1")["reachable"], false);
    let problem = of("gone")["problem"].as_str().unwrap().to_owned();
    assert!(
        problem.contains("`no-such-program`: No such file") && !problem.contains("hunter22"),
        "{problem}"
    );
    assert!(of("unset")["problem"].as_str().unwrap().contains("the variable NO_SUCH_TOKEN"));
    let tools = place.said(&["mcp", "tools"]);
    assert!(tools.out.contains("send(text: string)") && tools.err.contains("`gone`"), "{}", tools.err);
}

#[test]
fn what_is_wrong_in_the_configuration_is_said_with_its_line() {
    let check = |toml: &str, json: &str, expected: &[&str]| {
        let place = Place::new(toml);
        if !json.is_empty() {
            place.write(".mcp.json", json);
        }
        let said = place.said(&["mcp", "list"]);
        assert_eq!(said.code, Some(2), "{}", said.out);
        expected.iter().for_each(|expected| assert!(said.err.contains(expected), "{}", said.err));
    };
    check("[mcp.servers.a]\ncommad = \"x\"", "", &["wiggum.toml:2:1", "did you mean `command`?"]);
    check("[mcp.servers.a]\nargs = [\"x\"]", "", &["wiggum.toml:2:1", "says neither `command` nor `url`"]);
    check(
        "[mcp.servers.a]\ncommand = \"x\"\nurl = \"y\"",
        "",
        &["wiggum.toml:3:1", "both a `command` and a `url`"],
    );
    check(
        "[mcp.servers.a]\ncommand = \"x\"\nheaders = { A = \"b\" }",
        "",
        &["headers` is for servers with a `url`"],
    );
    check("[mcp.servers]\na = \"x\"", "", &["`mcp.servers.a` is a section"]);
    check("[mcp]\nserver = 1", "", &["unknown key `mcp.server`"]);
    check("", "{\n  \"mcpServers\": {\n", &[".mcp.json:3:", "EOF while parsing"]);
    check(
        "",
        "{\"mcpServers\": {\n\"a\": {\n\"command\": 5}}}",
        &[".mcp.json:3:", "server `a`: invalid type: integer"],
    );
}

#[test]
fn mcp_json_is_read_beneath_wiggum_toml() {
    let place = Place::hostile("fine", "");
    let config = std::fs::read_to_string(place.root.join("wiggum.toml")).unwrap();
    let json = r#"{
      "mcpServers": {
        "it": { "command": "no-such-program", "args": ["x"], "env": { "A": "b" } },
        "other": { "type": "sse", "url": "http://127.0.0.1:1/sse" },
        "slow": { "type": "http", "url": "http://127.0.0.1:1/mcp?key=hunter22", "headers": { "X-Key": "hunter22" } }
      }
    }"#;
    place.write(".mcp.json", json);
    place.write("wiggum.toml", &(config + "[mcp.servers.slow]\ncall_timeout = \"9s\"\n"));
    assert_eq!(place.send().code, Some(0));
    let shown = place.said(&["config", "show"]).out;
    assert!(!shown.contains("mcp.servers.it.env"), "another program's environment: {shown}");
    assert!(shown.contains("mcp.servers.slow.call_timeout") && shown.contains(".mcp.json:5"), "{shown}");
    assert!(!shown.contains("hunter22"), "{shown}");
    let list = place.said(&["mcp", "list"]).out;
    assert!(list.contains("is of the type `sse`, which is not spoken here"), "{list}");
    assert!(list.contains("cannot be reached") && !list.contains("hunter22"), "{list}");
}

#[test]
fn a_plan_calls_a_tool_once_and_hands_its_result_on() {
    let place = Place::hostile("fine", "");
    let step = |number: u32, params: &str| {
        format!(
            "- [ ] **Step {number}:** Send it (action_type: mcp_it)\n  - MCP Server: it\n  - Tool: send\n  \
             - Params: {params}\n\n"
        )
    };
    let steps = step(1, "{text: hello}") + &step(2, "{text: \"after {{ steps.1.result.id }}\"}");
    place.write("Plan.md", &format!("---\nplan_id: p\nstatus: in_progress\n---\n\n{steps}"));
    let said = place.said(&["run", "Plan.md", "--headless", "--agent-command", "true"]);
    assert_eq!(said.code, Some(0), "{} {}", said.out, said.err);
    assert_eq!(place.log(), "called {\"text\": \"hello\"}\ncalled {\"text\": \"after 7\"}\n");
}
