//! Everything a provider can do wrong: each is named, and none is waited for.

use std::time::Duration;

use serde_json::json;
use wiggum_api_agent::Provider;
use wiggum_core::event::Trouble;
use wiggum_testkit::scenario::Hang;
use wiggum_testkit::{Cut, Fault, HttpError, Turn};

use crate::desk::{BOTH, Desk, Rude};

#[track_caller]
fn check(turn: &Turn, expected: &str, words: &str) {
    for provider in BOTH {
        let desk = Desk::new(provider);
        let (told, stub) = desk.work([turn.clone(), Turn::says("tried again")]);
        let (trouble, message) = told.failure();
        assert_eq!(trouble.to_string(), expected, "{provider:?}: {message}");
        assert!(message.contains(words), "{provider:?}: {words:?} should be in {message:?}");
        assert_eq!(stub.asked().len(), 1, "nothing is tried again in here");
    }
}

#[test]
fn refusals_are_named() {
    let overloaded = "the provider is overloaded";
    check(&Turn::fails(HttpError::new(429, "slow down")), overloaded, "HTTP 429: slow down");
    check(&Turn::fails(HttpError::new(500, "oops")), overloaded, "HTTP 500: oops");
    check(&Turn::fails(HttpError::new(529, "Overloaded")), overloaded, "Overloaded");
    let login = "not logged in, or not permitted";
    check(&Turn::fails(HttpError::new(401, "invalid x-api-key")), login, "invalid x-api-key");
    check(&Turn::fails(HttpError::new(404, "no such model")), login, "no such model");
    check(&Turn::fails(HttpError::new(400, "bad request")), "failed", "bad request");
}

#[test]
fn a_limit_with_an_end_is_told_with_it() {
    let before = jiff::Timestamp::now();
    let limited = Turn::fails(HttpError::new(429, "slow down").header("retry-after", "3600"));
    let (told, _stub) = Desk::new(Provider::OpenAi).work([limited]);
    let (Trouble::UsageLimit { resets_at: Some(at) }, _) = told.failure() else { panic!("{told:#?}") };
    let wait = at.duration_since(before).as_secs();
    assert!((3600..3700).contains(&wait), "{wait}");
}

#[test]
fn an_answer_that_breaks_off_is_none() {
    let text = "Half of what I wanted to say";
    let network = "the provider cannot be reached";
    check(&Turn::says(text).cut(Cut::Before), network, "cannot be reached");
    check(&Turn::says(text).cut(Cut::Middle).in_pieces(4, Duration::ZERO), network, "broke off");
    check(&Turn::says(text).cut(Cut::End), "its output ends too early", "before it is complete");
}

#[test]
fn a_call_that_breaks_off_is_not_carried_out() {
    for provider in BOTH {
        for cut in [Cut::Middle, Cut::End] {
            let desk = Desk::new(provider);
            let turn = Turn::calls("write", json!({"path": "a", "content": "a"}))
                .and_calls("write", json!({"path": "b", "content": "b"}));
            let (told, _stub) = desk.work([turn.cut(cut)]);
            told.failure();
            assert!(!desk.root.join("a").exists(), "{provider:?} {cut:?}");
        }
    }
}

#[test]
fn an_error_inside_the_stream_is_one() {
    let turn = Turn::says("x").with_error("overloaded_error", "Overloaded");
    check(&turn, "the provider is overloaded", "Overloaded");
    let turn = Turn::says("x").with_error("authentication_error", "who are you");
    check(&turn, "not logged in, or not permitted", "who are you");
    check(&Turn::says("x").with_error("odd_error", "something"), "failed", "something");
}

#[test]
fn refusals_of_the_model_and_silence_are_told_apart() {
    for (provider, reason) in [(Provider::OpenAi, "content_filter"), (Provider::Anthropic, "refusal")] {
        let (told, _stub) = Desk::new(provider).work([Turn::says("I won't.").stops_for(reason)]);
        assert_eq!(told.failure(), (Trouble::Refused, "I won't."));
        // It is the driver that says what to make of an empty message.
        let (told, _stub) = Desk::new(provider).work([Turn::default()]);
        assert_eq!(told.message(), "");
    }
}

#[test]
fn nobody_is_waited_for_longer_than_allowed() {
    // Long enough to be told from no limit at all, short enough to wait for then.
    let hangs = |midway| {
        let hang = Hang { seconds: 10.0, midway, ping: None };
        Turn { fault: Some(Fault::Hang(hang)), ..Turn::says("Hello there") }
    };
    for midway in [false, true] {
        for provider in BOTH {
            let mut desk = Desk::new(provider);
            desk.settings.timeouts.silence = Duration::from_millis(200);
            let (told, _stub) = desk.work([hangs(midway)]);
            assert_eq!(told.failure().0, Trouble::Network);
        }
    }
    let mut desk = Desk::new(Provider::OpenAi);
    desk.settings.timeouts.first_byte = Duration::from_millis(200);
    assert_eq!(desk.work([hangs(false)]).0.failure().0, Trouble::Network);
}

#[test]
fn nobody_there_is_a_matter_of_the_network() {
    // A port that was free a moment ago.
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let base_url = format!("http://{}/v1", listener.local_addr().unwrap());
    drop(listener);
    assert_eq!(Desk::new(Provider::OpenAi).work_at(&base_url).failure().0, Trouble::Network);
}

#[test]
fn garbage_is_no_answer() {
    let endless = [b"data: ".to_vec(), vec![b'x'; 8 * 1024 * 1024]].concat();
    let pages: [(Vec<u8>, Trouble, &str); 6] = [
        (b"<html>Welcome to our proxy</html>".to_vec(), Trouble::Truncated, "before it is complete"),
        (b"data: <html>\n\n".to_vec(), Trouble::Other, "not JSON: <html>"),
        (b"data: {\"choices\": [{\"delta\": 3}]}\n\ndata: 7\n\n".to_vec(), Trouble::Truncated, "complete"),
        (b"\xff\xfe\0data: \x80\n\n".to_vec(), Trouble::Truncated, "complete"),
        (Vec::new(), Trouble::Truncated, "complete"),
        (endless, Trouble::Other, "a line of more than"),
    ];
    for provider in BOTH {
        for (page, trouble, words) in &pages {
            let server = Rude::answering(page.clone());
            let told = Desk::new(provider).work_at(&server.base_url);
            let (told_trouble, message) = told.failure();
            assert_eq!(told_trouble, *trouble, "{provider:?}: {message}");
            assert!(message.contains(words), "{provider:?}: {words:?} should be in {message:?}");
        }
    }
}

#[test]
fn arguments_that_are_not_json_are_answered() {
    let chunk = |delta: &str, end: &str| {
        format!("data: {{\"choices\":[{{\"delta\":{delta},\"finish_reason\":{end}}}]}}\n\n")
    };
    let call =
        r#"{"tool_calls":[{"index":0,"id":"c","function":{"name":"write","arguments":"{\"path\": "}}]}"#;
    let page = chunk(call, "null") + &chunk("{}", "\"tool_calls\"") + "data: [DONE]\n\n";
    let mut desk = Desk::new(Provider::OpenAi);
    desk.settings.max_turns = 1;
    let server = Rude::answering(page.into_bytes());
    let told = desk.work_at(&server.base_url);
    assert!(told.results()[0].starts_with("error: the arguments are not JSON"), "{told:#?}");
    assert_eq!(told.failure().0, Trouble::OwnLimit);
}
