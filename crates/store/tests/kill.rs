//! A writer killed at any point leaves a journal that is a prefix of what it meant to write, with
//! everything that belongs to each event, and nothing it was told is durable is missing.
#![expect(clippy::unwrap_used, reason = "helpers of tests may fail like tests")]

mod common;

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use common::*;
use wiggum_core::event::Request;
use wiggum_core::ids::Seq;
use wiggum_store::{Append, Blob, Store};

const PATH: &str = "WIGGUM_TEST_STORE";

/// Not a test of its own: the process the others kill.
#[test]
#[ignore = "started by the tests that kill it"]
fn writer() {
    let Ok(path) = std::env::var(PATH) else { return };
    let mut store = Store::open(Path::new(&path)).unwrap();
    let id = store.create_loop(&identity("main"), loop_id(1), at(0)).unwrap().id;
    let epoch = store.acquire(id, &holder(std::process::id()), &|_| false, at(0)).unwrap();
    let mut seq = store.last_seq(id).unwrap();
    let mut out = std::io::stdout();
    loop {
        let handled: Vec<_> = store.pending(id).unwrap().iter().map(|pending| pending.id).collect();
        let text = text_of(seq + 2);
        let blobs = [Blob { sha256: &sha256(&text), text: &text }];
        let envelopes = [envelope(seq + 1, epoch, "first"), envelope(seq + 2, epoch, "second")];
        let projection = format!("{}", seq + 2);
        store
            .append(&Append {
                loop_id: id,
                expected_seq: seq,
                epoch,
                envelopes: &envelopes,
                blobs: &blobs,
                handled: &handled,
                projection: Some(&projection),
            })
            .unwrap();
        seq += 2;
        writeln!(out, "durable {seq}").unwrap();
        store.post(id, &Request::Pause, "me", at(0)).unwrap();
    }
}

fn text_of(seq: Seq) -> String {
    format!("text of {seq} ").repeat(60)
}

#[test]
fn killed_while_appending() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("wiggum.db");
    let mut known = 0;
    // Every kill goes on with the store of the one before.
    for seed in 0..25_u64 {
        let mut child = start(&[], &path);
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let wanted = known + 2 * (1 + seed % 5);
        while known < wanted {
            known = lines.find_map(|line| durable(&line.unwrap())).expect("the writer goes on until killed");
        }
        std::hint::black_box((0..seed * 977 % 20_000).map(std::hint::black_box).sum::<u64>());
        child.kill().unwrap();
        child.wait().unwrap();
        known = lines.map_while(Result::ok).filter_map(|line| durable(&line)).last().unwrap_or(known);
        known = check_whole(&path, known);
    }
}

/// The same, killed at system calls that write: strace counts them for us.
#[test]
fn killed_at_chosen_writes() {
    if !can_trace() {
        eprintln!("SKIPPED: strace cannot trace here, so kills at chosen system calls were not tested");
        return;
    }
    for (call, step) in [("pwrite64", 3), ("fsync", 4)] {
        for when in (1..=40).step_by(step) {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("wiggum.db");
            let inject = format!("inject={call}:signal=KILL:when={when}");
            let mut child = start(&["strace", "-f", "-o", "/dev/null", "-e", &inject], &path);
            let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
            let known = lines.filter_map(|line| durable(&line)).take_while(|seq| *seq < 200).last();
            let status = child.wait().unwrap();
            assert_eq!(status.signal(), Some(9), "{call} {when} did not kill");
            check_whole(&path, known.unwrap_or(0));
        }
    }
}

/// Durable means synced, and an append is synced once.
#[test]
fn an_append_is_one_sync() {
    if !can_trace() {
        eprintln!("SKIPPED: strace cannot trace here, so syncs were not counted");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (path, trace) = (dir.path().join("wiggum.db"), dir.path().join("trace"));
    let wrapper = ["strace", "-f", "-y", "-o", trace.to_str().unwrap(), "-e", "trace=fsync,fdatasync"];
    let mut child = start(&wrapper, &path);
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    // The writer ends at its first word after we stop listening.
    lines.filter_map(|line| durable(&line)).find(|seq| *seq >= 200).unwrap();
    child.wait().unwrap();
    let events = check_whole(&path, 200);
    let trace = std::fs::read_to_string(&trace).unwrap();
    let syncs = trace.lines().filter(|line| line.contains("wiggum.db-wal>")).count() as u64;
    // Each append of two events is followed by a request; making the store takes a few more.
    assert!((events..=events + 8).contains(&syncs), "{syncs} syncs for {} appends and requests", events);
}

#[expect(clippy::disallowed_methods, reason = "the store cannot know the crate that starts processes")]
fn can_trace() -> bool {
    let traced = Command::new("strace").args(["-f", "-o", "/dev/null", "true"]).output();
    traced.is_ok_and(|output| output.status.success())
}

fn durable(line: &str) -> Option<Seq> {
    line.rsplit_once("durable ").map(|(_, seq)| seq.parse().unwrap())
}

#[expect(clippy::disallowed_methods, reason = "the store cannot know the crate that starts processes")]
fn start(wrapper: &[&str], path: &Path) -> Child {
    let own = std::env::current_exe().unwrap();
    let mut words = wrapper.iter().map(std::ffi::OsStr::new).chain([own.as_os_str()]);
    Command::new(words.next().unwrap())
        .args(words)
        .args(["writer", "--exact", "--ignored", "--nocapture"])
        .env(PATH, path)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Gives the last event there is.
fn check_whole(path: &Path, durable: Seq) -> Seq {
    let mut store = Store::open(path).unwrap();
    assert_eq!(store.check().unwrap(), [""; 0]);
    let Some(record) = store.find_loop(&identity("main")).unwrap() else {
        assert_eq!(durable, 0);
        return 0;
    };
    let id = record.id;
    let seqs: Vec<Seq> = store.read(id, 0).unwrap().iter().map(|envelope| envelope.seq).collect();
    assert_eq!(seqs, (1..=seqs.len() as Seq).collect::<Vec<_>>());
    let last = store.last_seq(id).unwrap();
    assert!(last >= durable, "{last} events, but {durable} were said to be durable");
    assert_eq!(last % 2, 0, "half an append");
    if last > 0 {
        assert_eq!(store.projection(id).unwrap(), Some((last, last.to_string())));
        let text = text_of(last);
        assert_eq!(store.blob(&sha256(&text)).unwrap(), Some(text));
    }
    // One request per append is posted after it, and handled by the next.
    assert!(store.pending(id).unwrap().len() <= 1);
    store.acquire(id, &holder(1), &|_| false, at(0)).unwrap();
    last
}
