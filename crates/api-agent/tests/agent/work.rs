//! What it is for: a task that is really done.

use serde_json::json;
use wiggum_api_agent::{Begins, Key, Provider, Session};
use wiggum_core::event::Trouble;
use wiggum_testkit::{Dialect, Turn, Usage};

use crate::desk::{BOTH, Desk};

#[test]
fn it_looks_changes_runs_and_says_so() {
    for provider in BOTH {
        let desk = Desk::new(provider);
        desk.write("src/add.sh", "echo $(($1 - $2))\n");
        let (told, stub) = desk.work([
            Turn::says("Let me look.")
                .and_calls("list", json!({}))
                .and_calls("read", json!({"path": "src/add.sh"})),
            Turn::calls("edit", json!({"path": "src/add.sh", "old": "$1 - $2", "new": "$1 + $2"}))
                .and_calls("write", json!({"path": "docs/add.md", "content": "Adds.\n"}))
                .and_calls("run", json!({"command": "sh src/add.sh 2 3"})),
            Turn::says("All done.\n<promise>DONE</promise>"),
        ]);
        assert_eq!(told.message(), "All done.\n<promise>DONE</promise>");
        assert_eq!(desk.read("src/add.sh"), "echo $(($1 + $2))\n");
        assert_eq!(desk.read("docs/add.md"), "Adds.\n");
        assert_eq!(told.results()[0], "src/\nsrc/add.sh");
        // In the order of the calls: the command saw the edit.
        assert_eq!(told.results()[4], "5\n[exit code 0]");
        assert_eq!(told.text(), "Let me look.\nAll done.\n<promise>DONE</promise>\n");

        let asked = stub.asked();
        let dialect = if provider == Provider::Anthropic { Dialect::Anthropic } else { Dialect::Chat };
        assert!(asked.iter().all(|asked| asked.dialect == dialect && asked.request.streamed));
        assert_eq!(asked[0].request.tools, ["read", "list", "search", "edit", "write", "run"]);
        assert_eq!(asked[0].request.last(), "Do the task.");
        assert!(asked[0].request.system.contains(desk.root.to_str().unwrap()));
        assert_eq!(asked[2].request.tool_results.len(), 5, "{provider:?}");
    }
}

#[test]
fn an_answer_goes_back_as_it_came() {
    let desk = Desk::new(Provider::Anthropic);
    let (told, stub) = desk
        .work([Turn::says("Hm.").thinking("A thought.").and_calls("list", json!({})), Turn::says("done")]);
    assert_eq!(told.message(), "done");
    let content = &stub.requests()[1].body["messages"][1]["content"];
    assert_eq!(content[0]["type"], "thinking");
    assert_eq!(
        (&content[0]["thinking"], &content[0]["signature"]),
        (&json!("A thought."), &json!("c3R1Yg=="))
    );
    assert_eq!(content[1]["text"], "Hm.");
    assert_eq!(content[2]["name"], "list");
}

#[test]
fn tokens_are_added_up_and_cost_what_was_said() {
    for provider in BOTH {
        let cache_write = if provider == Provider::Anthropic { 50 } else { 0 };
        let usage = Usage { input: 100, output: 10, cache_read: 800, cache_write, reasoning: 0 };
        let mut desk = Desk::new(provider).price(&[("input", "10"), ("output", "100"), ("cache_read", "1")]);
        desk.settings.context_window = Some(10_000);
        let turns = [Turn::calls("list", json!({})).uses(usage), Turn::says("done").uses(usage)];
        let (told, _stub) = desk.work(turns.clone());
        let (total, context) = told.usage().unwrap();
        assert_eq!((total.input_tokens, total.output_tokens), (200, 20), "{provider:?}");
        assert_eq!((total.cache_read_tokens, total.cache_write_tokens), (1600, 2 * cache_write));
        let cost = 200.0 * 10.0 + 20.0 * 100.0 + 1600.0 + 2.0 * cache_write as f64 * 10.0;
        assert!((total.cost_usd - cost / 1e6).abs() < 1e-12);
        assert_eq!(context.map(|fill| (fill.used, fill.window)), Some((910 + cache_write, 10_000)));

        desk.settings.prices = None;
        assert_eq!(desk.work(turns).0.usage().unwrap().0.cost_usd, 0.0);
    }
}

#[test]
fn an_answer_that_is_too_short_is_gone_on_with() {
    for (provider, reason) in [(Provider::OpenAi, "length"), (Provider::Anthropic, "max_tokens")] {
        let desk = Desk::new(provider);
        let (told, stub) = desk.work([Turn::says("One, ").stops_for(reason), Turn::says("two.")]);
        assert_eq!(told.message(), "One, two.");
        assert!(stub.asked()[1].request.last().contains("Go on where it ends"));
    }
}

#[test]
fn it_ends_at_its_limit_on_turns() {
    let mut desk = Desk::new(Provider::OpenAi);
    desk.settings.max_turns = 3;
    let (told, stub) = desk.work([Turn::calls("list", json!({})).forever()]);
    assert_eq!(told.failure(), (Trouble::OwnLimit, "not finished after 3 turns"));
    assert_eq!(stub.asked().len(), 3);
}

#[test]
fn only_the_last_words_are_its_message() {
    let desk = Desk::new(Provider::OpenAi);
    let (told, _stub) = desk
        .work([Turn::says("<promise>DONE</promise>").and_calls("list", json!({})), Turn::says("Not yet.")]);
    assert_eq!(told.message(), "Not yet.");
}

#[test]
fn without_its_key_it_asks_nobody() {
    let mut desk = Desk::new(Provider::OpenAi);
    desk.settings.key = Key::Missing { variable: "STUB_KEY".to_owned() };
    let (told, stub) = desk.work([Turn::says("never")]);
    let (trouble, message) = told.failure();
    assert_eq!(trouble, Trouble::Authentication);
    assert!(message.contains("STUB_KEY is not set"), "{message}");
    assert!(stub.requests().is_empty());
}

#[test]
fn a_session_is_gone_on_with() {
    for provider in BOTH {
        let mut desk = Desk::new(provider);
        let session =
            |begins| Session { directory: desk.outside("sessions"), id: "0192-abc".to_owned(), begins };
        let (anew, again) = (session(Begins::Anew), session(Begins::WhereItWas));
        desk.settings.session = Some(again.clone());
        let (told, stub) = desk.work([Turn::says("never")]);
        assert_eq!(told.failure().0, Trouble::SessionLost);
        assert!(stub.requests().is_empty());

        desk.settings.session = Some(anew);
        desk.work([Turn::says("Hm.").and_calls("list", json!({})), Turn::says("first done")]).0.message();
        desk.settings.session = Some(again);
        let (told, stub) = desk.work([Turn::says("second done")]);
        assert_eq!(told.message(), "second done");
        let asked = &stub.asked()[0].request;
        assert_eq!(asked.user, ["Do the task.", "Do the task."]);
        assert_eq!(asked.tool_results, ["(nothing)"]);
        assert!(stub.requests()[0].body.to_string().contains("first done"));
    }
}

#[test]
fn empty_things_are_never_sent_back() {
    for (provider, reason) in [(Provider::OpenAi, "length"), (Provider::Anthropic, "max_tokens")] {
        let desk = Desk::new(provider);
        desk.write("empty", "");
        let (told, stub) = desk.work([
            Turn::calls("read", json!({"path": "empty"})),
            Turn::says(" \n").stops_for(reason),
            Turn::default().stops_for(reason),
            Turn::says("done"),
        ]);
        assert_eq!(told.message().trim(), "done");
        assert_eq!(stub.asked()[1].request.tool_results, ["(empty)"]);
        let last = &stub.requests()[3].body["messages"];
        assert!(
            !last.to_string().contains("\"text\":\"\"") && !last.to_string().contains("\"content\":[]"),
            "{last}"
        );
    }
}
