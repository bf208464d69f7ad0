//! Parsers and the fold against input that nobody meant well: what others wrote, bent and broken.
//!
//! Bounded and seeded, so that it is part of every test run; `fuzz/` goes on for as long as one likes.

mod targets;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use serde_json::Value;
use targets::TARGETS;
use wiggum_core::event::Envelope;
use wiggum_sim::{Setup, fast_place, simulate};

/// What each target is given at most; time is short on a slow machine.
const INPUTS: u64 = 3000;
const TIME: Duration = Duration::from_secs(6);
/// For one input of a few kilobytes, without optimisation, beside other tests.
const PATIENCE: Duration = Duration::from_secs(5);

/// Beginnings that get further than noise does.
const TEXTS: [&str; 9] = [
    "[{\"id\": \"a\", \"description\": \"d\", \"status\": \"pending\", \"phase\": 2, \"depends_on\": [\"b\"]}]",
    "{\"userStories\": [{\"id\": \"a\", \"title\": \"t\", \"passes\": false, \"priority\": 1}]}",
    "# Plan\n\n- [ ] **US-001**: a (depends: b)\n\t- [x] é (id: b)\n```\ncode\n```\n",
    "---\nplan_id: p\ncompleted_steps: 0\n---\n- [ ] **Step 1:** a (action_type: mcp_x)\n  - MCP Server: s\n  - Tool: t\n  - Params: {a: [1]}\n",
    "Done.\n\n<promise>DONE</promise>\n**STATUS:** COMPLETE\n---RALPH_STATUS---\nEXIT_SIGNAL: true\n",
    "<escalate type=\"stuck\"><summary>s</summary><options>1. a\n2. b</options><question>q</question></escalate>",
    "Claude AI usage limit reached|1893456000\nresets 7:35am (Europe/Berlin)\nTry again in 3h 12m 9s\n429",
    "{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"x\",\"usage\":{\"input_tokens\":1}}\n",
    "sh -c 'a \"b\" $C' \\ s3cret-value-s3cret | q17",
];

struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % bound.max(1)
    }
}

/// One to eight small disasters.
fn bend(bytes: &mut Vec<u8>, chance: &mut Chance) {
    const BITS: [&[u8]; 12] = [
        b"\xff",
        b"\0",
        b"\"",
        b"{",
        b"]",
        b"\n",
        b"-1",
        b"1e999",
        b"\\ud800",
        b"null",
        "\u{202e}é".as_bytes(),
        b"</",
    ];
    for _ in 0..=chance.below(8) {
        let (at, other) = (chance.below(bytes.len() + 1), chance.below(bytes.len() + 1));
        let (start, end) = (at.min(other), at.max(other));
        match chance.below(6) {
            0 => drop(bytes.drain(start..end)),
            1 => drop(bytes.splice(at..at, BITS[chance.below(BITS.len())].iter().copied())),
            2 if at < bytes.len() => bytes[at] ^= 1 << chance.below(8),
            3 => bytes.extend_from_within(start..end.min(start + 200)),
            4 => bytes.truncate(end.max(1).min(bytes.len())),
            _ => bytes.splice(at..at, b"[".repeat(chance.below(300))).for_each(drop),
        }
        bytes.truncate(8 << 10);
    }
}

/// Journals of simulated worlds, as lines of JSON.
fn journals(seeds: std::ops::Range<u64>) -> Vec<Vec<Envelope>> {
    let world = |seed| {
        let place = tempfile::tempdir_in(fast_place()).expect("a place");
        simulate(seed, &Setup::default(), place.path(), true).expect("a world").journal
    };
    seeds.map(world).collect()
}

fn lines(journal: &[Envelope]) -> String {
    journal.iter().map(|envelope| serde_json::to_string(envelope).expect("an event") + "\n").collect()
}

#[test]
fn no_parser_falls_over_or_takes_long() {
    let mut beginnings: Vec<Vec<u8>> = TEXTS.iter().map(|text| text.as_bytes().to_vec()).collect();
    beginnings.extend(journals(0..6).iter().map(|journal| {
        let text = lines(journal);
        text.as_bytes()[..text.len().min(6 << 10)].to_vec()
    }));
    for (name, target) in TARGETS {
        let started = Instant::now();
        for seed in 0..INPUTS {
            let mut chance = Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) + 1);
            let mut bytes = beginnings[chance.below(beginnings.len())].clone();
            if seed > 0 {
                bend(&mut bytes, &mut chance);
            }
            let begun = Instant::now();
            if catch_unwind(AssertUnwindSafe(|| target(&bytes))).is_err() {
                panic!("{name} panicked over {:?}", String::from_utf8_lossy(&bytes));
            }
            assert!(begun.elapsed() < PATIENCE, "{name} took {:?}", begun.elapsed());
            if started.elapsed() > TIME {
                break;
            }
        }
    }
}

/// Events as they are, in an order that makes no sense and with numbers that nobody would count to.
#[test]
fn the_fold_takes_any_sequence_of_events() {
    let journals = journals(100..130);
    let all: Vec<&Envelope> = journals.iter().flatten().collect();
    let started = Instant::now();
    for seed in 0..INPUTS {
        let mut chance = Chance(seed + 7);
        let mut journal: Vec<Envelope> = journals[chance.below(journals.len())].clone();
        for _ in 0..=chance.below(20) {
            let (at, other) = (chance.below(journal.len()), chance.below(journal.len()));
            match chance.below(5) {
                0 if journal.len() > 1 => drop(journal.remove(at)),
                1 => journal.swap(at, other),
                2 => journal.insert(at, journal[other].clone()),
                3 => journal.insert(at, all[chance.below(all.len())].clone()),
                _ => bend_event(&mut journal[at], &mut chance),
            }
        }
        let text = lines(&journal);
        if catch_unwind(AssertUnwindSafe(|| targets::journal(text.as_bytes()))).is_err() {
            panic!("seed {seed}: the fold panicked over\n{text}");
        }
        if started.elapsed() > 3 * TIME {
            break;
        }
    }
}

/// Gives one value of an event another that its type allows.
fn bend_event(envelope: &mut Envelope, chance: &mut Chance) {
    let mut value = serde_json::to_value(&*envelope).expect("an event");
    let mut leaves = 0;
    visit(&mut value, &mut |_| leaves += 1);
    let wanted = chance.below(leaves);
    let mut number = 0;
    visit(&mut value, &mut |leaf| {
        if number == wanted {
            *leaf = match &*leaf {
                Value::Number(_) => [0, 1, 2, u64::from(u32::MAX), u64::MAX][chance.below(5)].into(),
                Value::String(_) => {
                    ["", "T1", "T2", "1970-01-01T00:00:00Z", "9999-12-30T22:00:00Z"][chance.below(5)].into()
                }
                Value::Bool(flag) => (!flag).into(),
                Value::Null | Value::Array(_) | Value::Object(_) => Value::Null,
            };
        }
        number += 1;
    });
    if let Ok(bent) = serde_json::from_value(value) {
        *envelope = bent;
    }
}

fn visit(value: &mut Value, leaf: &mut dyn FnMut(&mut Value)) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| visit(item, leaf)),
        Value::Object(members) => members.values_mut().for_each(|member| visit(member, leaf)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => leaf(value),
    }
}
