//! The stub as an agent sees it: bytes on a connection.
#![expect(clippy::unwrap_used, reason = "a test may fail here")]

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};
use wiggum_testkit::{Choice, Cut, HttpError, Scenario, StubModel, Turn, Usage};

const PATIENCE: Duration = Duration::from_secs(20);

/// Sends a request and reads until the other side ends, or breaks, the connection.
fn exchange(stub: &StubModel, head: &str, body: &str) -> (String, Option<ErrorKind>) {
    let mut stream = connect(stub);
    let length = body.len();
    write!(stream, "{head} HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n\r\n{body}").unwrap();
    // It would wait for another request otherwise. Where it has already broken the connection, reading tells.
    if let Err(error) = stream.shutdown(std::net::Shutdown::Write) {
        assert_eq!(error.kind(), ErrorKind::NotConnected);
    }
    let mut bytes = Vec::new();
    let error = stream.read_to_end(&mut bytes).err().map(|error| error.kind());
    (String::from_utf8(bytes).unwrap(), error)
}

fn connect(stub: &StubModel) -> TcpStream {
    let url = stub.base_url();
    let stream = TcpStream::connect(url.strip_prefix("http://").unwrap()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

fn ask(stub: &StubModel, path: &str) -> (String, Option<ErrorKind>) {
    let body = json!({"model": "m", "stream": true, "tools": [{"name": "t"}],
        "messages": [{"role": "user", "content": "hi"}], "input": "hi",
        "contents": [{"role": "user", "parts": [{"text": "hi"}]}]});
    exchange(stub, &format!("POST {path}"), &body.to_string())
}

const STREAMS: [&str; 4] =
    ["/v1/messages", "/v1/responses", "/v1/chat/completions", "/v1beta/models/m:streamGenerateContent"];

/// The word by which each of them says that an answer is complete.
const COMPLETE: [&str; 4] = ["message_stop", "response.completed", "[DONE]", "finishReason"];

#[test]
fn every_dialect_streams_text_tools_and_usage() {
    for (path, complete) in STREAMS.into_iter().zip(COMPLETE) {
        let usage = Usage { input: 4321, output: 77, cache_read: 1000, ..Usage::default() };
        let turn = Turn::says("Grüße aus dem Stub").and_calls("run", json!({"command": "ls"}));
        let scenario = Scenario::from([turn.in_pieces(3, Duration::ZERO)]).usage(usage);
        let stub = StubModel::start(scenario).unwrap();
        let (answer, error) = ask(&stub, path);
        assert_eq!(error, None, "{path}");
        for word in ["HTTP/1.1 200", "Grü", "stub000001", "\"run\"", "ls", "77", complete, "\r\n0\r\n\r\n"] {
            assert!(answer.contains(word), "{word:?} in {path}: {answer}");
        }
        let input = if path == "/v1/messages" { "4321" } else { "5321" };
        assert!(answer.contains(input), "{path}: {answer}");
    }
}

#[test]
fn every_dialect_answers_in_one_piece() {
    let whole = [
        ("/v1/messages", "/content/0/text"),
        ("/v1/responses", "/output/0/content/0/text"),
        ("/v1/chat/completions", "/choices/0/message/content"),
        ("/v1beta/models/m:generateContent", "/candidates/0/content/parts/0/text"),
    ];
    for (path, place) in whole {
        let stub = StubModel::start([Turn::says("unused")]).unwrap();
        let (answer, _) = exchange(&stub, &format!("POST {path}"), "{}");
        let body: Value = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
        assert_eq!(body.pointer(place), Some(&json!("ok")), "no tools, so no turn: {path}: {body}");
    }
}

#[test]
fn a_stream_is_cut_where_it_should_be() {
    for (path, complete) in STREAMS.into_iter().zip(COMPLETE) {
        let cut = |at| {
            let stub =
                StubModel::start([Turn::says("abcdefghi").in_pieces(3, Duration::ZERO).cut(at)]).unwrap();
            ask(&stub, path)
        };
        assert_eq!(cut(Cut::Before), (String::new(), Some(ErrorKind::ConnectionReset)), "{path}");
        let (head, error) = cut(Cut::Head);
        // What was sent just before a reset may be lost with it.
        assert!(!head.contains("data:") && error == Some(ErrorKind::ConnectionReset), "{path}: {head}");
        let (middle, error) = cut(Cut::Middle);
        assert!(middle.contains("abc") && !middle.contains("ghi"), "{path}: {middle}");
        assert!(!middle.ends_with("\r\n0\r\n\r\n") && error.is_none(), "{path}: {middle}");
        let (end, error) = cut(Cut::End);
        assert!(end.contains("ghi") && end.ends_with("\r\n0\r\n\r\n"), "{path}: {end}");
        assert!(!end.contains(complete) && error.is_none(), "{path}: {end}");
    }
}

#[test]
fn an_error_has_its_status_headers_and_body() {
    let error = HttpError::new(429, "slow down").header("retry-after", "7");
    let stub = StubModel::start([Turn::fails(error)]).unwrap();
    let (answer, _) = ask(&stub, "/v1/messages");
    assert!(answer.starts_with("HTTP/1.1 429 ") && answer.contains("retry-after: 7\r\n"), "{answer}");
    assert!(answer.contains("rate_limit_error") && answer.contains("slow down"), "{answer}");

    for path in STREAMS {
        let stub = StubModel::start([Turn::default().with_error("overloaded", "too much")]).unwrap();
        let (answer, _) = ask(&stub, path);
        assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains("too much"), "{path}: {answer}");
    }
}

#[test]
fn a_hang_is_silent_until_the_stub_ends() {
    let stub = StubModel::start([Turn::says("abcdef").in_pieces(3, Duration::ZERO).hangs_midway()]).unwrap();
    let mut stream = connect(&stub);
    let body = r#"{"stream":true,"tools":[{"name":"t"}]}"#;
    write!(stream, "POST /v1/messages HTTP/1.1\r\ncontent-length: {}\r\n\r\n{body}", body.len()).unwrap();
    assert!(stub.wait_asked(1, PATIENCE));
    let mut received = String::new();
    while !received.contains("abc") {
        let mut buffer = [0; 4096];
        let count = stream.read(&mut buffer).unwrap();
        received.push_str(std::str::from_utf8(&buffer[..count]).unwrap());
    }
    stream.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    let silence = stream.read(&mut [0; 16]).unwrap_err().kind();
    assert!(matches!(silence, ErrorKind::WouldBlock | ErrorKind::TimedOut), "{silence}");
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    drop(stub);
    assert_eq!(stream.read(&mut [0; 16]).unwrap_or(0), 0);
    assert!(!received.contains("def"), "{received}");
}

#[test]
fn what_was_asked_can_be_looked_at() {
    let stub = StubModel::start([Turn::says("first")]).unwrap();
    exchange(&stub, "HEAD /", "");
    ask(&stub, "/v1/messages?beta=true");
    ask(&stub, "/v1/chat/completions");
    let requests = stub.requests();
    assert_eq!(requests.len(), 3);
    assert!(requests[0].asked.is_none());
    let choices: Vec<Choice> = stub.asked().iter().map(|asked| asked.choice).collect();
    assert_eq!(choices, [Choice::Turn(0), Choice::Fallback]);
    assert_eq!(stub.asked()[0].request.last(), "hi");
}

#[test]
fn start_up_probes_are_answered() {
    let stub = StubModel::start(Scenario::default()).unwrap();
    let says = |head: &str, words: &str| {
        let (answer, _) = exchange(&stub, head, "{}");
        assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains(words), "{head}: {answer}");
    };
    says("GET /v1/models", "stub-model");
    says("POST /v1/messages/count_tokens", "input_tokens");
    says("POST /v1beta/models/m:countTokens", "totalTokens");
    says("GET /anything?at=all", "\r\n\r\n{}");
    says("HEAD /", "content-length: 2");
}

#[test]
fn scenarios_beside_each_other_keep_their_own_count() {
    let stub = StubModel::start([Turn::says("one")]).unwrap();
    let other = stub.add("other", [Turn::says("two")]).unwrap();
    let path = other.strip_prefix(&stub.base_url()).unwrap().to_owned() + "/v1/messages";
    assert!(ask(&stub, &path).0.contains("two"));
    assert!(ask(&stub, "/v1/messages").0.contains("one"));
    assert!(ask(&stub, &path).0.contains("no turn is left"));
    stub.replace([Turn::says("three")]).unwrap();
    assert!(ask(&stub, "/v1/messages").0.contains("three"));
    assert!(ask(&stub, "/s/unknown/v1/messages").0.starts_with("HTTP/1.1 404 "));
}
