//! What a recording holds, however it came in.
#![expect(clippy::unwrap_used, reason = "a test may fail here")]

use std::path::Path;

use jiff::Timestamp;
use wiggum_core::event::Exit;
use wiggum_core::policy::Policy;
use wiggum_core::redact::Secrets;
use wiggum_core::stream::Stream;
use wiggum_store::recording::{self, Entry, Header, Recorder, Shown, Target, VERSION};

fn recorder(dir: &Path) -> Recorder {
    let hidden = Secrets::among([("API_TOKEN".to_owned(), "swordfish-1".to_owned())]).and("/base/me", "~");
    let target = Target { path: dir.join("rec"), database: dir.join("none"), hidden };
    let at = Timestamp::UNIX_EPOCH;
    let header = Header { version: VERSION, wiggum: "0".to_owned(), at, policy: Box::new(Policy::default()) };
    Recorder::create(target, header).unwrap()
}

fn read(dir: &Path) -> Vec<Entry> {
    recording::read(&dir.join("rec")).unwrap().map(|line| line.entry).collect()
}

#[test]
fn what_is_hidden_is_hidden_however_it_is_cut() {
    let text = "a /base/me/x swordfish-1 é /base/m";
    for size in 1..=text.len() {
        let dir = tempfile::tempdir().unwrap();
        let recorder = recorder(dir.path());
        for piece in text.as_bytes().chunks(size) {
            recorder.output(Stream::Stdout, piece);
            if let Ok(text) = std::str::from_utf8(piece) {
                recorder.line(Entry::Shown { event: Shown::Output { text: text.to_owned() } });
            }
        }
        recorder.line(Entry::AgentEnded { exit: Exit::Code { code: 0 } });
        recorder.finish(0).unwrap();
        let (mut raw, mut shown) = (String::new(), String::new());
        for entry in read(dir.path()) {
            match entry {
                Entry::Output { text, .. } => raw.push_str(&text),
                Entry::Shown { event: Shown::Output { text } } => shown.push_str(&text),
                _ => {}
            }
        }
        assert_eq!(raw, "a ~/x [API_TOKEN redacted] é /base/m", "in pieces of {size}");
        assert!(!shown.contains("/base/me") && !shown.contains("swordfish"), "in pieces of {size}: {shown}");
    }
}

#[test]
fn what_was_shown_keeps_its_order() {
    let dir = tempfile::tempdir().unwrap();
    let recorder = recorder(dir.path());
    let output = |text: &str| Entry::Shown { event: Shown::Output { text: text.to_owned() } };
    let call =
        Entry::Shown { event: Shown::ToolCall { name: "n".to_owned(), detail: "/base/me".to_owned() } };
    recorder.line(output("see /base"));
    recorder.line(call);
    recorder.line(Entry::CheckOutput { text: "checked\n".to_owned() });
    recorder.finish(3).unwrap();
    let hidden = Entry::Shown { event: Shown::ToolCall { name: "n".to_owned(), detail: "~".to_owned() } };
    let checked = Entry::CheckOutput { text: "checked\n".to_owned() };
    assert_eq!(
        read(dir.path()),
        [output("see "), output("/base"), hidden, checked, Entry::End { exit_code: 3 }]
    );
}
