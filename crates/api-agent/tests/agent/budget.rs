//! It stays below what it may use, by one answer at most, and never throws an answer away.

use std::time::Duration;

use serde_json::json;
use wiggum_api_agent::{Ceiling, Provider};
use wiggum_core::event::Trouble;
use wiggum_testkit::{Cut, Turn, Usage};

use crate::desk::{BOTH, Desk};

/// A desk where a million tokens cost a dollar, whatever their kind.
fn desk(provider: Provider, ceiling: Ceiling) -> Desk {
    let mut desk = Desk::new(provider).price(&[("input", "1"), ("output", "1")]);
    desk.settings.ceiling = ceiling;
    desk
}

fn dollars(cost: f64) -> Ceiling {
    Ceiling { cost_usd: Some(cost), tokens: None }
}

/// A tool call that reads and writes so many tokens.
fn step(input: u64, output: u64) -> Turn {
    Turn::calls("write", json!({"path": "a.txt", "content": "a"})).uses(Usage {
        input,
        output,
        ..Usage::default()
    })
}

#[test]
fn it_ends_in_order_with_the_answer_that_goes_beyond() {
    // What was found: $101 of $1.10.
    for provider in BOTH {
        let desk = desk(provider, dollars(1.1));
        let (told, stub) = desk.work([step(900_000, 100_000).forever()]);
        let (trouble, message) = told.failure();
        assert_eq!(trouble, Trouble::Budget);
        let expected = "it has used $1.00 of the $1.10 that are left, and its next call needs at least $1.00";
        assert_eq!(message, expected);
        assert_eq!(stub.asked().len(), 1, "{provider:?}");
        // What the model asked for before is done, and what it used is told.
        assert_eq!((desk.read("a.txt").as_str(), told.results().len()), ("a", 1));
        assert_eq!(told.usage().unwrap().0.cost_usd, 1.0);
    }
}

#[test]
fn it_goes_on_as_long_as_the_next_call_may_fit() {
    for provider in BOTH {
        let steps = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map(|number| step(number * 10_000, 100));
        let (told, stub) = desk(provider, dollars(0.5)).work(steps);
        // 10, 20, 30 … thousand tokens: the tenth would begin at $0.45 and read 90,000 tokens again.
        assert_eq!((told.failure().0, stub.asked().len()), (Trouble::Budget, 9), "{provider:?}");
        assert!(told.usage().unwrap().0.cost_usd < 0.5);
    }
}

#[test]
fn an_answer_that_is_complete_counts_whatever_it_cost() {
    let last = Turn::says("<promise>DONE</promise>").uses(Usage { output: 2_000_000, ..Usage::default() });
    let (told, _stub) = desk(Provider::OpenAi, dollars(1.0)).work([step(1000, 10), last]);
    assert_eq!(told.message(), "<promise>DONE</promise>");
}

#[test]
fn tokens_are_bounded_too_and_need_no_price() {
    let mut desk = Desk::new(Provider::OpenAi);
    desk.settings.ceiling = Ceiling { cost_usd: Some(0.01), tokens: Some(10_000) };
    let (told, stub) = desk.work([step(4000, 500).forever()]);
    let (trouble, message) = told.failure();
    assert_eq!((trouble, stub.asked().len()), (Trouble::Budget, 2));
    let expected = "it has used 9000 tokens of the 10000 tokens that are left";
    assert!(message.starts_with(expected), "{message}");
}

#[test]
fn what_comes_from_the_cache_is_counted_at_its_price() {
    let cached =
        |turn: Turn| turn.uses(Usage { input: 1000, output: 100, cache_read: 900_000, ..Usage::default() });
    let list = || Turn::calls("list", json!({}));
    let turns = || [cached(list()), cached(list()), Turn::says("done").uses(Usage::default())];
    let mut desk =
        Desk::new(Provider::OpenAi).price(&[("input", "1"), ("output", "1"), ("cache_read", "0.1")]);
    desk.settings.context_window = Some(2_000_000);
    desk.settings.ceiling = dollars(0.3);
    assert_eq!(desk.work(turns()).0.message(), "done");
    desk.settings.ceiling = dollars(0.2);
    let (told, stub) = desk.work(turns());
    assert_eq!((told.failure().0, stub.asked().len()), (Trouble::Budget, 2));
}

#[test]
fn where_not_even_the_first_call_fits_nobody_is_asked() {
    let mut desk = desk(Provider::OpenAi, Ceiling { cost_usd: None, tokens: Some(10) });
    let (told, stub) = desk.work([Turn::says("never")]);
    assert_eq!((told.failure().0, stub.requests().len()), (Trouble::Budget, 0));
    desk.settings.ceiling = Ceiling { cost_usd: None, tokens: Some(10_000) };
    assert_eq!(desk.work([Turn::says("done")]).0.message(), "done");
}

#[test]
fn an_answer_that_breaks_off_is_counted() {
    let text = "Half of what I wanted to say. ".repeat(40);
    let broken = |cut| {
        let usage = Usage { input: 900_000, output: 300, ..Usage::default() };
        Turn::says(&text).uses(usage).cut(cut).in_pieces(8, Duration::ZERO)
    };
    for provider in BOTH {
        let (told, _stub) = desk(provider, dollars(10.0)).work([broken(Cut::Middle)]);
        told.failure();
        let (used, _) = told.usage().expect("the usage is told");
        assert!(used.output_tokens > 10 && used.cost_usd > 0.0, "{provider:?}: {used:?}");
        assert!(told.notices() == 1, "{provider:?}");
        // Nothing came, so nothing is counted.
        let (told, _stub) = desk(provider, dollars(10.0)).work([broken(Cut::Before)]);
        assert_eq!((told.usage(), told.notices()), (None, 0), "{provider:?}");
    }
    // This provider tells first what it has read.
    let (told, _stub) = desk(Provider::Anthropic, dollars(10.0)).work([broken(Cut::Middle)]);
    assert_eq!(told.usage().unwrap().0.input_tokens, 900_000);
}

#[test]
fn an_error_inside_the_stream_does_not_make_it_free() {
    let turn = Turn::says("x").uses(Usage { input: 5000, output: 1, ..Usage::default() });
    let (told, _stub) =
        desk(Provider::Anthropic, dollars(10.0)).work([turn.with_error("overloaded_error", "Overloaded")]);
    assert_eq!(told.usage().unwrap().0.input_tokens, 5000);
}
