//! What is left of an agent's output.
#![expect(clippy::unwrap_used, reason = "helpers of tests may fail like tests")]

use std::fs::{self, OpenOptions};
use std::path::Path;

use wiggum_core::ids::TaskId;
use wiggum_core::policy::Millis;
use wiggum_core::stream::Stream;
use wiggum_store::transcript::{Growing, Line, Output, Transcript, read};

use Stream::{Stderr, Stdout};

fn transcript(dir: &Path) -> Transcript {
    Transcript::create(dir, 7, 2, &TaskId::new("US-1"))
}

fn lines(path: &Path) -> Vec<Line> {
    read(path).unwrap().collect()
}

fn output(ms: u64, stream: Stream, text: &str) -> Line {
    Line::Output(Output { ms, stream, text: text.into() })
}

fn files(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// What is read after these pieces were written, one millisecond apart.
fn check(pieces: &[(Stream, &[u8])], expected: &[Line]) {
    let dir = tempfile::tempdir().unwrap();
    let mut transcript = transcript(dir.path());
    for (ms, (stream, bytes)) in (0..).zip(pieces) {
        transcript.write(Millis(ms), *stream, bytes).unwrap();
    }
    let path = transcript.finish().unwrap().unwrap();
    assert_eq!(lines(&path), expected);
}

#[test]
fn output_comes_back() {
    check(
        &[(Stdout, b"hello\n"), (Stderr, b"warning"), (Stdout, b"{\"json\":1}\n")],
        &[output(0, Stdout, "hello\n"), output(1, Stderr, "warning"), output(2, Stdout, "{\"json\":1}\n")],
    );
}

#[test]
fn characters_in_pieces_are_put_together() {
    let (euro, face) = ("€".as_bytes(), "🙂".as_bytes());
    check(
        &[
            (Stdout, &euro[..1]),
            (Stderr, b"e"),
            (Stdout, &euro[1..]),
            (Stdout, &face[..3]),
            (Stdout, &face[3..]),
        ],
        &[output(1, Stderr, "e"), output(2, Stdout, "€"), output(4, Stdout, "🙂")],
    );
    check(&[(Stdout, b"a\xff\xfeb")], &[output(0, Stdout, "a\u{fffd}\u{fffd}b")]);
    check(&[(Stdout, b"a\xe2\x82")], &[output(0, Stdout, "a"), output(0, Stdout, "\u{fffd}")]);
    check(&[(Stdout, b"\x80\x80\x80\x80")], &[output(0, Stdout, "\u{fffd}\u{fffd}\u{fffd}\u{fffd}")]);
}

#[test]
fn nothing_written_is_no_file() {
    let dir = tempfile::tempdir().unwrap();
    let transcripts = dir.path().join("transcripts");
    let mut transcript = transcript(&transcripts);
    transcript.write(Millis(1), Stdout, b"").unwrap();
    transcript.flush().unwrap();
    assert_eq!(transcript.path(), None);
    assert_eq!(transcript.finish().unwrap(), None);
    assert!(!transcripts.exists());
}

#[test]
fn the_whole_is_bounded() {
    let dir = tempfile::tempdir().unwrap();
    let mut transcript = transcript(dir.path()).with_limit(10);
    for text in ["1234567", "89€b", "more", "and more"] {
        transcript.write(Millis(0), Stdout, text.as_bytes()).unwrap();
    }
    let path = transcript.finish().unwrap().unwrap();
    assert_eq!(lines(&path), [output(0, Stdout, "1234567"), output(0, Stdout, "89"), Line::Cut]);
}

#[test]
fn flushed_output_survives_a_kill() {
    let dir = tempfile::tempdir().unwrap();
    let mut transcript = transcript(dir.path());
    transcript.write(Millis(0), Stdout, b"one").unwrap();
    transcript.flush().unwrap();
    transcript.write(Millis(1), Stdout, b"two").unwrap();
    // Killed here: the rest never reaches the file.
    let path = transcript.path().unwrap().to_owned();
    assert_eq!(lines(&path), [output(0, Stdout, "one"), Line::Unfinished]);
}

#[test]
fn flowing_output_is_flushed_every_second() {
    let dir = tempfile::tempdir().unwrap();
    let mut transcript = transcript(dir.path());
    transcript.write(Millis(900), Stdout, b"one").unwrap();
    transcript.write(Millis(1100), Stdout, b"two").unwrap();
    transcript.write(Millis(1200), Stdout, b"three").unwrap();
    let path = transcript.path().unwrap().to_owned();
    assert_eq!(lines(&path), [output(900, Stdout, "one"), output(1100, Stdout, "two"), Line::Unfinished]);
}

#[test]
fn a_file_cut_anywhere_can_be_read_up_to_there() {
    let dir = tempfile::tempdir().unwrap();
    let mut transcript = transcript(dir.path());
    let mut all = Vec::new();
    for n in 0..20 {
        let text = format!("line {n}");
        transcript.write(Millis(n * 1000), Stderr, text.as_bytes()).unwrap();
        all.push(output(n * 1000, Stderr, &text));
    }
    let path = transcript.finish().unwrap().unwrap();
    assert_eq!(lines(&path), all);
    for length in (0..fs::metadata(&path).unwrap().len()).rev() {
        OpenOptions::new().write(true).open(&path).unwrap().set_len(length).unwrap();
        let mut read = lines(&path);
        assert_eq!(read.pop(), Some(Line::Unfinished), "{length}");
        assert_eq!(read, all[..read.len()], "{length}");
    }
}

#[test]
fn an_attempt_made_again_keeps_the_first_transcript() {
    let dir = tempfile::tempdir().unwrap();
    for text in ["first", "second"] {
        let mut transcript = transcript(dir.path());
        transcript.write(Millis(0), Stdout, text.as_bytes()).unwrap();
        transcript.finish().unwrap();
    }
    assert_eq!(files(dir.path()), ["00007-2-US-1.2.jsonl.zst", "00007-2-US-1.jsonl.zst"]);
}

#[test]
fn any_task_name_stays_in_the_directory() {
    let check = |task: &str, expected: &str| {
        let dir = tempfile::tempdir().unwrap();
        let mut transcript = Transcript::create(dir.path(), 1, 1, &TaskId::new(task));
        transcript.write(Millis(0), Stdout, b"x").unwrap();
        transcript.finish().unwrap();
        assert_eq!(files(dir.path()), [format!("00001-1-{expected}.jsonl.zst")]);
    };
    check("../../etc/passwd", ".._.._etc_passwd");
    check("a b\0ü/", "a_b___");
    check("", "");
    check(&"long".repeat(100), &"long".repeat(20));
}

#[test]
fn whoever_looks_on_reads_each_line_once_and_as_soon_as_it_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let mut transcript = transcript(dir.path());
    transcript.write(Millis(0), Stdout, b"first\n").unwrap();
    transcript.flush().unwrap();
    let mut growing = Growing::open(transcript.path().unwrap()).unwrap();
    let mut more = || std::iter::from_fn(|| growing.next_line()).collect::<Vec<_>>();
    assert_eq!(more(), [output(0, Stdout, "first\n")]);
    assert_eq!(more(), []);
    let long = "x".repeat(100_000);
    transcript.write(Millis(1), Stderr, long.as_bytes()).unwrap();
    transcript.flush().unwrap();
    assert_eq!(more(), [output(1, Stderr, &long)]);
    transcript.write(Millis(2), Stdout, b"last").unwrap();
    transcript.finish().unwrap();
    assert_eq!(more(), [output(2, Stdout, "last")]);
    assert_eq!(more(), []);
}
