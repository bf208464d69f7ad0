//! Configuration that nobody meant well: noise, files bent and broken, nesting and numbers beyond all
//! measure. Whatever is written there is read or refused, at once, and a refusal names its line.
//!
//! Bounded and seeded, so that it is part of every test run.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use super::keys::{KEYS, SECTIONS};
use super::*;

const INPUTS: u64 = 4000;
/// For all inputs of one kind, on a slow machine; what is left is left out.
const TIME: Duration = Duration::from_secs(10);
/// For one input, without optimisation, beside other tests.
const PATIENCE: Duration = Duration::from_secs(5);

/// Lines that get further than noise does, beside every key of ours.
const BEGINNING: &str = "backlog = \"tasks.json\"\n[agents.other]\ncommand = 'sh -c \"x\"'\nenv = { A = \"b\" }\n\
    [prices.\"a/b-1.5\"]\ninput = 3\noutput = 15.0\n[[loops]]\nx = 1979-05-27T07:32:00Z\n[budget]\nalert_at = [0.5, 0.9]\n";

struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % bound.max(1)
    }
}

/// Resolves what is in the file, and insists on what must hold of any.
fn take(place: &Path, bytes: &[u8]) {
    fs::write(place.join(WORKSPACE_FILE), bytes).unwrap();
    let begun = Instant::now();
    let (env, flags) = (BTreeMap::new(), Flags::default());
    let sources = Sources { workspace: place, user_file: None, env: &env, flags: &flags };
    let shown = || String::from_utf8_lossy(&bytes[..bytes.len().min(300)]).into_owned();
    let Ok(resolved) = catch_unwind(AssertUnwindSafe(|| resolve(&sources))) else {
        panic!("panicked over {:?}", shown());
    };
    let took = begun.elapsed();
    assert!(took < PATIENCE, "{took:?} for {} bytes: {:?}", bytes.len(), shown());
    let Err(ConfigProblems(problems)) = resolved else { return };
    assert!(!problems.is_empty(), "refused without a word: {:?}", shown());
    let lines = bytes.iter().filter(|byte| **byte == b'\n').count() + 1;
    for problem in &problems {
        let Place::File { line, column, .. } = problem.place else {
            panic!("no line is named: {problem} in {:?}", shown());
        };
        assert!((1..=lines).contains(&line) && column > 0, "{problem} in {lines} lines of {:?}", shown());
        assert!(!problem.message.is_empty(), "{problem:?}");
    }
}

/// Every key of ours once, with its default.
fn every_key() -> String {
    let mut text = String::new();
    for (section, _) in SECTIONS {
        if !section.is_empty() {
            text.push_str(&format!("[{section}]\n"));
        }
        for key in KEYS.iter().filter(|key| key.section() == *section) {
            let value = key.example.map_or_else(|| key.default().to_string(), str::to_owned);
            text.push_str(&format!("{} = {value}\n", key.name()));
        }
    }
    text
}

/// One to eight small disasters.
fn bend(bytes: &mut Vec<u8>, chance: &mut Chance) {
    const BITS: [&[u8]; 16] = [
        b"\xff",
        b"\0",
        b"\"",
        b"'''",
        b"\"\"\"",
        b"{",
        b"]",
        b"\n",
        b"\r",
        b"=",
        b"-1",
        b"1e999",
        b"\\uD800",
        b".",
        b"#",
        "\u{202e}é".as_bytes(),
    ];
    for _ in 0..=chance.below(8) {
        let (at, other) = (chance.below(bytes.len() + 1), chance.below(bytes.len() + 1));
        let (start, end) = (at.min(other), at.max(other));
        match chance.below(6) {
            0 => drop(bytes.drain(start..end)),
            1 => drop(bytes.splice(at..at, BITS[chance.below(BITS.len())].iter().copied())),
            2 if at < bytes.len() => bytes[at] ^= 1 << chance.below(8),
            3 => bytes.extend_from_within(start..end.min(start + 200)),
            4 => bytes.truncate(end.max(1)),
            _ => bytes.splice(at..at, b"[".repeat(chance.below(300))).for_each(drop),
        }
        bytes.truncate(16 << 10);
    }
}

#[test]
fn bent_files_are_read_or_refused_with_a_line() {
    let place = tempfile::tempdir().unwrap();
    let (keys, started) = (every_key(), Instant::now());
    for seed in 0..INPUTS {
        let mut chance = Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) + 1);
        let mut bytes = [keys.as_str(), BEGINNING][chance.below(2)].as_bytes().to_vec();
        if seed > 1 {
            bend(&mut bytes, &mut chance);
        }
        take(place.path(), &bytes);
        if started.elapsed() > TIME {
            break;
        }
    }
}

#[test]
fn noise_is_read_or_refused_with_a_line() {
    let place = tempfile::tempdir().unwrap();
    let started = Instant::now();
    for seed in 0..INPUTS {
        let mut chance = Chance(seed + 99);
        let alphabet: &[u8] = if seed.is_multiple_of(2) { b"a.=[]{}\"'\n #\\1-_,:\r\t" } else { b"" };
        let byte = |_| match alphabet {
            [] => chance.below(256) as u8,
            known => known[chance.below(known.len())],
        };
        let length = 1 + (seed as usize * 7) % 600;
        let bytes: Vec<u8> = (0..length).map(byte).collect();
        take(place.path(), &bytes);
        if started.elapsed() > TIME {
            break;
        }
    }
}

#[test]
fn no_nesting_is_too_deep() {
    let place = tempfile::tempdir().unwrap();
    for depth in [10, 79, 80, 81, 1000, 30_000, 300_000] {
        let dotted = vec!["a"; depth].join(".");
        for text in [
            format!("verify = {}", "[".repeat(depth)),
            format!("[checks]\nverify = {}{}", "[".repeat(depth), "]".repeat(depth)),
            format!("env = {}", "{a=".repeat(depth)),
            format!("{dotted} = 1\n"),
            format!("[{dotted}]\n"),
            format!("[agents.x.{dotted}]\nb = 1\n[[{dotted}]]\n"),
            format!("[prices]\n{dotted} = {{ {dotted} = 1 }}\n"),
            "[[".repeat(depth),
            "[a]\n".repeat(depth),
        ] {
            take(place.path(), text.as_bytes());
        }
    }
}

#[test]
fn no_value_is_too_large() {
    let place = tempfile::tempdir().unwrap();
    let digits = "9".repeat(5000);
    let values = [
        "99999999999999999999",
        "-9223372036854775808",
        "9223372036854775807",
        "4294967296",
        "-1",
        "0",
        "1e999",
        "-1e-999",
        "nan",
        "-inf",
        "0xffffffffffffffffff",
        "1_000_000_000_000_000_000",
        "\"99999999999999999999d\"",
        "\"1e300h\"",
        "\"-5m\"",
        "\"\"",
        "[]",
        "{}",
        "[[]]",
        "1979-05-27",
        "25:61:61",
        "\"\\u0000\"",
        "'\u{202e}'",
        &digits,
    ];
    for key in KEYS {
        let section = if key.section().is_empty() { String::new() } else { format!("[{}]\n", key.section()) };
        for value in values {
            take(place.path(), format!("{section}{} = {value}\n", key.name()).as_bytes());
        }
    }
}

#[test]
fn no_file_is_too_long() {
    let place = tempfile::tempdir().unwrap();
    let word = "x".repeat(400_000);
    let many = |line: fn(usize) -> String| (0..30_000).map(line).collect::<String>();
    for text in [
        format!("{word} = 1\n"),
        format!("[{word}]\na = 1\n"),
        format!("backlog = \"{word}\"\n"),
        format!("# {word}\nbacklog = 1\n"),
        many(|n| format!("key{n} = {n}\n")),
        many(|n| format!("[section{n}]\n")),
        many(|n| format!("[agents.a{n}]\ncommand = 1\n")),
        many(|_| "= broken\n".to_owned()),
        many(|_| "name = \"twice\"\n".to_owned()),
    ] {
        take(place.path(), text.as_bytes());
    }
}

#[test]
fn text_that_is_no_text_is_refused_where_it_begins() {
    let place = tempfile::tempdir().unwrap();
    take(place.path(), b"name = \"a\"\n# \xff\n");
    take(place.path(), b"\xef\xbb\xbfname = \"a\"\n");
    take(place.path(), &[0; 100]);
}
