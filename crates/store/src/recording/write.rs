//! Writing a recording, beside the run and never in its way.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::Value;
use wiggum_core::redact::{Redactor, Secrets};
use wiggum_core::stream::Stream;

use super::{Entry, Header, Line, RecordingError, Shown};
use crate::Store;
use crate::transcript::Characters;

/// What a kill may cost at most.
const FLUSH_EVERY: Duration = Duration::from_secs(1);

/// Output that may wait for the disk. Of what comes beyond it, only the amount is recorded.
const MOST_WAITING: usize = 64 << 20;

/// As for transcripts.
const LEVEL: i32 = 3;

/// Where a recording goes, and what it must not hold.
#[derive(Debug)]
pub struct Target {
    pub path: PathBuf,
    /// The store with the texts that events refer to.
    pub database: PathBuf,
    /// What is not to be seen in it.
    pub hidden: Secrets,
}

/// Takes what is seen, from any thread, and returns at once.
#[derive(Clone, Debug)]
pub struct Recorder {
    started: Instant,
    sender: Sender<Message>,
    waiting: Arc<AtomicUsize>,
    dropped: Arc<AtomicU64>,
    thread: Arc<Mutex<Option<Thread>>>,
}

type Thread = JoinHandle<Result<(), RecordingError>>;

#[derive(Debug)]
enum Message {
    Line(Box<Line>),
    Output { ms: u64, stream: Stream, bytes: Vec<u8> },
    Close,
}

impl Recorder {
    /// Begins a recording, in place of whatever the file held.
    pub fn create(target: Target, header: Header) -> Result<Self, RecordingError> {
        let failed = |source| RecordingError::Write { path: target.path.clone(), source };
        let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&target.path);
        let encoder = zstd::Encoder::new(file.map_err(failed)?, LEVEL).map_err(failed)?;
        let (sender, receiver) = channel();
        let waiting = Arc::default();
        let writer = Writer::new(target, encoder, Arc::clone(&waiting));
        let thread = thread::spawn(move || writer.run(&receiver));
        let recorder = Self {
            started: Instant::now(),
            sender,
            waiting,
            dropped: Arc::default(),
            thread: Arc::new(Mutex::new(Some(thread))),
        };
        recorder.line(Entry::Header(header));
        Ok(recorder)
    }

    pub fn line(&self, entry: Entry) {
        if self.has_room(weight(&entry)) {
            self.send(Message::Line(Box::new(Line { ms: self.now(), entry })));
        }
    }

    /// What an agent printed.
    pub fn output(&self, stream: Stream, bytes: &[u8]) {
        if self.has_room(bytes.len()) {
            self.send(Message::Output { ms: self.now(), stream, bytes: bytes.to_vec() });
        }
    }

    /// Whether so much output may wait as well; if not, it is counted.
    fn has_room(&self, weight: usize) -> bool {
        if weight == 0 {
            return true;
        }
        if self.waiting.load(Ordering::Relaxed) > MOST_WAITING {
            self.dropped.fetch_add(weight as u64, Ordering::Relaxed);
            return false;
        }
        self.waiting.fetch_add(weight, Ordering::Relaxed);
        true
    }

    /// Ends the recording. An error means that it is not whole; the run was none the worse for it.
    pub fn finish(&self, exit_code: u8) -> Result<(), RecordingError> {
        let bytes = self.dropped.load(Ordering::Relaxed);
        if bytes > 0 {
            self.line(Entry::Dropped { bytes });
        }
        self.line(Entry::End { exit_code });
        self.send(Message::Close);
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        thread.map_or(Ok(()), |thread| thread.join().unwrap_or(Ok(())))
    }

    fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// A writer that is gone has told why, or will at the end.
    fn send(&self, message: Message) {
        drop(self.sender.send(message));
    }
}

struct Writer {
    target: Target,
    encoder: zstd::Encoder<'static, File>,
    waiting: Arc<AtomicUsize>,
    flushed: Instant,
    /// What an agent printed, of each stream.
    streams: [Redactor; 2],
    characters: Characters,
    /// What was made of it, and checks' output: what is hidden may begin in one piece of text and end
    /// in the next.
    text: Redactor,
    store: Option<Store>,
    blobs: HashSet<String>,
}

impl Writer {
    fn new(target: Target, encoder: zstd::Encoder<'static, File>, waiting: Arc<AtomicUsize>) -> Self {
        let redactor = || Redactor::new(target.hidden.clone());
        Self {
            encoder,
            waiting,
            flushed: Instant::now(),
            streams: [redactor(), redactor()],
            characters: Characters::default(),
            text: redactor(),
            store: None,
            blobs: HashSet::new(),
            target,
        }
    }

    fn run(mut self, messages: &Receiver<Message>) -> Result<(), RecordingError> {
        let written = self.write_all(messages);
        let finished = written.and_then(|()| self.encoder.finish().map(drop));
        finished.map_err(|source| RecordingError::Write { path: self.target.path, source })
    }

    fn write_all(&mut self, messages: &Receiver<Message>) -> io::Result<()> {
        loop {
            match messages.recv_timeout(FLUSH_EVERY) {
                Ok(Message::Line(line)) => {
                    self.waiting.fetch_sub(weight(&line.entry), Ordering::Relaxed);
                    self.line(*line)?;
                }
                Ok(Message::Output { ms, stream, bytes }) => {
                    self.waiting.fetch_sub(bytes.len(), Ordering::Relaxed);
                    let text = self.characters.push(stream, &self.streams[stream as usize].push(&bytes));
                    self.output(ms, stream, text)?;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Ok(Message::Close) | Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
            if self.flushed.elapsed() >= FLUSH_EVERY {
                self.encoder.flush()?;
                self.flushed = Instant::now();
            }
        }
    }

    fn line(&mut self, Line { ms, entry }: Line) -> io::Result<()> {
        match entry {
            Entry::Shown { event: Shown::Output { text } } => {
                let text = self.piece(&text);
                self.unless_empty(text, |text| Line {
                    ms,
                    entry: Entry::Shown { event: Shown::Output { text } },
                })
            }
            Entry::CheckOutput { text } => {
                let text = self.piece(&text);
                self.unless_empty(text, |text| Line { ms, entry: Entry::CheckOutput { text } })
            }
            entry => {
                self.held_back(ms, &entry)?;
                self.blobs_of(ms, &entry)?;
                self.write(&Line { ms, entry })
            }
        }
    }

    fn piece(&mut self, text: &str) -> String {
        String::from_utf8_lossy(&self.text.push(text.as_bytes())).into_owned()
    }

    /// What comes next shows that a beginning was not one of something hidden.
    fn held_back(&mut self, ms: u64, next: &Entry) -> io::Result<()> {
        let held = String::from_utf8_lossy(&self.text.finish()).into_owned();
        self.unless_empty(held, |text| Line { ms, entry: Entry::Shown { event: Shown::Output { text } } })?;
        if matches!(next, Entry::AgentEnded { .. }) {
            for stream in [Stream::Stdout, Stream::Stderr] {
                let held = self.streams[stream as usize].finish();
                let text = self.characters.push(stream, &held) + &self.characters.rest(stream);
                self.output(ms, stream, text)?;
            }
        }
        Ok(())
    }

    fn output(&mut self, ms: u64, stream: Stream, text: String) -> io::Result<()> {
        self.unless_empty(text, |text| Line { ms, entry: Entry::Output { stream, text } })
    }

    fn unless_empty(&mut self, text: String, line: impl FnOnce(String) -> Line) -> io::Result<()> {
        if text.is_empty() { Ok(()) } else { self.write(&line(text)) }
    }

    /// The texts that an event refers to come before it, each once.
    fn blobs_of(&mut self, ms: u64, entry: &Entry) -> io::Result<()> {
        let (Entry::Event { envelope, .. } | Entry::Before { envelope }) = entry else { return Ok(()) };
        let mut hashes = Vec::new();
        collect_hashes(&serde_json::to_value(envelope)?, &mut hashes);
        for sha256 in hashes {
            if self.blobs.insert(sha256.clone())
                && let Some(text) = self.stored(&sha256)
            {
                self.write(&Line { ms, entry: Entry::Blob { sha256, text } })?;
            }
        }
        Ok(())
    }

    /// A text that cannot be read is missing in the recording, and its event tells how it ends.
    fn stored(&mut self, sha256: &str) -> Option<String> {
        if self.store.is_none() {
            self.store = Store::open_existing(&self.target.database).ok()?;
        }
        self.store.as_ref()?.blob(sha256).ok()?
    }

    fn write(&mut self, line: &Line) -> io::Result<()> {
        let mut value = serde_json::to_value(line)?;
        hide(&self.target.hidden, &mut value);
        let mut text = serde_json::to_vec(&value)?;
        text.push(b'\n');
        self.encoder.write_all(&text)
    }
}

/// How much of an entry is output, of which there can be any amount.
fn weight(entry: &Entry) -> usize {
    let (Entry::Shown { event: Shown::Output { text } } | Entry::CheckOutput { text }) = entry else {
        return 0;
    };
    text.len()
}

fn collect_hashes(value: &Value, hashes: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            if let Some(Value::String(hash)) = members.get("sha256") {
                hashes.push(hash.clone());
            }
            members.values().for_each(|member| collect_hashes(member, hashes));
        }
        Value::Array(elements) => elements.iter().for_each(|element| collect_hashes(element, hashes)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn hide(secrets: &Secrets, value: &mut Value) {
    match value {
        Value::String(text) => *text = secrets.hide(text).into_owned(),
        Value::Array(elements) => elements.iter_mut().for_each(|element| hide(secrets, element)),
        Value::Object(members) => members.values_mut().for_each(|member| hide(secrets, member)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
