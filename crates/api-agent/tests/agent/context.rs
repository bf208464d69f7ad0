//! The model's context has an end, and that is not the end of the work.

use serde_json::json;
use wiggum_api_agent::Provider;
use wiggum_core::event::Trouble;
use wiggum_testkit::{HttpError, Turn, Usage};

use crate::desk::{BOTH, Desk};

fn using(input: u64) -> Usage {
    Usage { input, output: 0, cache_read: 0, cache_write: 0, reasoning: 0 }
}

fn desk(provider: Provider, window: u64) -> Desk {
    let mut desk = Desk::new(provider);
    desk.settings.context_window = Some(window);
    desk.write("big", &"0123456789abcdef\n".repeat(1000));
    desk
}

fn reads() -> Turn {
    Turn::calls("read", json!({"path": "big"}))
}

#[test]
fn older_results_are_dropped_when_it_gets_tight() {
    for provider in BOTH {
        let desk = desk(provider, 20_000);
        let (told, stub) = desk.work([
            reads().uses(using(2000)),
            reads().uses(using(7000)),
            reads().uses(using(12_500)),
            Turn::says("done").uses(using(9000)),
        ]);
        assert_eq!(told.message(), "done");
        assert_eq!(told.notices(), 1);
        let results = &stub.asked()[3].request.tool_results;
        let dropped: Vec<bool> = results.iter().map(|text| text.contains("dropped to make room")).collect();
        assert_eq!(dropped, [true, true, false], "{provider:?}");
        // Before that nothing was missing.
        assert!(stub.asked()[2].request.tool_results.iter().all(|text| text.len() > 10_000));
    }
}

#[test]
fn it_ends_when_nothing_is_left_to_drop() {
    let desk = desk(Provider::OpenAi, 4000);
    let (told, stub) = desk.work([reads().uses(using(1000)), Turn::says("never")]);
    let (trouble, message) = told.failure();
    assert_eq!(trouble, Trouble::ContextFull);
    assert!(message.contains("nothing is left that could be dropped"), "{message}");
    assert_eq!(stub.asked().len(), 1);
}

#[test]
fn a_provider_that_says_too_much_is_asked_once_more_with_less() {
    for provider in BOTH {
        let desk = desk(provider, 1_000_000);
        let too_long =
            || Turn::fails(HttpError::new(400, "prompt is too long: 210000 tokens > 200000 maximum"));
        let (told, stub) = desk.work([reads(), reads(), too_long(), Turn::says("done")]);
        assert_eq!(told.message(), "done");
        let asked = stub.asked();
        assert!(asked[2].request.tool_results[0].len() > 10_000);
        assert!(asked[3].request.tool_results[0].contains("dropped to make room"), "{provider:?}");
        assert!(asked[3].request.tool_results[1].len() > 10_000);

        let (told, stub) = desk.work([reads(), reads(), too_long(), too_long(), Turn::says("never")]);
        assert_eq!(told.failure().0, Trouble::ContextFull);
        assert_eq!(stub.asked().len(), 4);

        // There is nothing to drop from a prompt.
        let (told, stub) = desk.work([too_long(), Turn::says("never")]);
        assert_eq!(told.failure().0, Trouble::ContextFull);
        assert_eq!(stub.asked().len(), 1);
    }
}
