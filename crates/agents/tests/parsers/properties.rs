//! Whatever arrives in whatever portions, parsers neither fall over nor change their mind.

use crate::replay::{case_names, load, now, parse};
use proptest::prelude::*;
use wiggum_agents::{AgentEvent, AgentSpec, Family};
use wiggum_core::event::Exit;
use wiggum_core::stream::Stream;

const SUCCESS: Exit = Exit::Code { code: 0 };

/// All that a case's agent printed to one stream.
fn printed(case: &str, stream: Stream) -> (Family, Vec<u8>) {
    let (family, transcript) = load(case);
    let lines = transcript.lines.iter().filter(|line| line.stream == stream);
    (family, lines.flat_map(|line| format!("{}\n", line.line).into_bytes()).collect())
}

fn any_case() -> impl Strategy<Value = String> {
    prop::sample::select(case_names().into_iter().collect::<Vec<_>>())
}

fn any_family() -> impl Strategy<Value = Family> {
    prop::sample::select(Family::ALL.to_vec())
}

/// Words as they stand in streams, to get further than noise does.
fn any_scrap() -> impl Strategy<Value = Vec<u8>> {
    let known = [
        "{",
        "}",
        "[",
        "]",
        ":",
        ",",
        "\"",
        "\n",
        "null",
        "-1",
        "1e999",
        "true",
        "\\ud800",
        "\\u0000",
        "\"type\":",
        "{\"type\":\"result\",",
        "{\"type\":\"assistant\",\"message\":",
        "\"usage\":",
        "\"content\":[{\"type\":",
        "\"text\"",
        "\"tool_use\"",
        "{\"type\":\"item.completed\",\"item\":{",
        "\"modelUsage\":{\"m\":{\"inputTokens\":",
        "18446744073709551615",
        "{\"type\":\"step_finish\",\"part\":{\"tokens\":",
        "Tokens: 1k sent, 1 received.\n",
        "usage limit reached|9999999999",
        "resets 99:99pm (Nowhere/Land)",
        "try again in 9999999999 days",
    ];
    let known = prop::sample::select(known.to_vec()).prop_map(|word| word.as_bytes().to_vec());
    prop_oneof![8 => known, 1 => prop::collection::vec(any::<u8>(), 0..20)]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    #[test]
    fn portions_do_not_matter(case in any_case(), sizes in prop::collection::vec(1_usize..5000, 1..20)) {
        let (family, bytes) = printed(&case, Stream::Stdout);
        let whole = parse(family, [(Stream::Stdout, &*bytes)], SUCCESS);
        let (mut portions, mut rest) = (Vec::new(), &*bytes);
        for size in sizes.into_iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (portion, later) = rest.split_at(size.min(rest.len()));
            portions.push((Stream::Stdout, portion));
            rest = later;
        }
        prop_assert_eq!(parse(family, portions, SUCCESS), whole);
    }

    #[test]
    fn standard_error_in_between_changes_nothing_but_what_is_shown(case in any_case(), every in 1_usize..300) {
        let (family, bytes) = printed(&case, Stream::Stdout);
        let alone = parse(family, [(Stream::Stdout, &*bytes)], SUCCESS).1;
        let noise: &[u8] = b"(node:7) a warning {\"type\":\"result\"}\n";
        let portions = bytes.chunks(every).flat_map(|chunk| [(Stream::Stdout, chunk), (Stream::Stderr, noise)]);
        let among = parse(family, portions, SUCCESS).1;
        prop_assert_eq!((among.message, among.usage, among.facts), (alone.message, alone.usage, alone.facts));
    }

    #[test]
    fn scraps_of_streams_are_survived(family in any_family(), scraps in prop::collection::vec(any_scrap(), 0..60)) {
        let bytes = scraps.concat();
        parse(family, [(Stream::Stdout, &*bytes), (Stream::Stderr, &*bytes)], Exit::Code { code: 1 });
    }

    #[test]
    fn a_damaged_byte_is_survived(case in any_case(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let (family, mut bytes) = printed(&case, Stream::Stdout);
        if !bytes.is_empty() {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        parse(family, [(Stream::Stdout, &*bytes)], SUCCESS);
    }
}

/// Cut before its end, no stream is taken for a success, at whatever byte.
#[test]
fn a_stream_cut_anywhere_is_no_success() {
    for (case, final_event) in [
        ("claude/success", "{\"type\":\"result\""),
        ("codex/success", "{\"type\":\"turn.completed\""),
        ("gemini/success", "{\"type\":\"result\""),
        ("copilot/success", "{\"type\":\"result\""),
    ] {
        let (family, bytes) = printed(case, Stream::Stdout);
        let text = String::from_utf8(bytes.clone()).unwrap();
        let end =
            text[text.rfind(final_event).unwrap()..].find('\n').unwrap() + text.rfind(final_event).unwrap();
        let mut parser = Family::driver(AgentSpec::new(family)).parser();
        drop(parser.push(Stream::Stdout, &bytes));
        assert_eq!(parser.finish(SUCCESS, &now()).problem, None, "{case}");
        // Every byte of the end, where it matters, and some of the rest.
        for cut in (0..end).filter(|cut| cut + 700 > end || cut % 97 == 0) {
            let (_, finished) = parse(family, [(Stream::Stdout, &bytes[..cut])], SUCCESS);
            assert!(finished.problem.is_some(), "{case} cut at {cut}");
        }
    }
}

#[test]
fn an_endless_line_is_skipped_and_what_follows_is_read() {
    let (family, bytes) = printed("claude/success", Stream::Stdout);
    let expected = parse(family, [(Stream::Stdout, &*bytes)], SUCCESS).1;
    let mut parser = Family::driver(AgentSpec::new(family)).parser();
    let portion = vec![b'x'; 1024 * 1024];
    let mut events = parser.push(Stream::Stdout, b"{\"type\":\"user\",\"message\":\"");
    for _ in 0..64 {
        events.extend(parser.push(Stream::Stdout, &portion));
    }
    assert_eq!(events, []);
    events.extend(parser.push(Stream::Stdout, b"\n"));
    assert!(
        matches!(&*events, [AgentEvent::Notice(text)] if text.contains("{\"type\":\"user\"")),
        "{events:?}"
    );
    drop(parser.push(Stream::Stdout, &bytes));
    assert_eq!(parser.finish(SUCCESS, &now()), expected);
}

#[test]
fn words_that_are_no_utf8_do_not_hide_an_event() {
    let mut line = b"{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"d".to_vec();
    line.extend_from_slice(b"\xff\xfene\"}\n");
    let (_, finished) = parse(Family::Claude, [(Stream::Stdout, &*line)], SUCCESS);
    assert_eq!((finished.message.as_str(), finished.problem), ("d\u{fffd}\u{fffd}ne", None));
}
