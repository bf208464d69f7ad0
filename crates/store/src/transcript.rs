//! What an agent printed, as it came: compressed JSON lines in a file per attempt.
//!
//! The file appears with the first byte. What was written before the last flush can be read even
//! when the writer was killed. The whole is bounded; where it was cut, the last line says so.
//!
//! A transcript is a record for people. Nothing is decided from it, so nothing waits for the disk.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use thiserror::Error;
use wiggum_core::ids::{Attempt, Iteration, TaskId};
use wiggum_core::policy::Millis;
use wiggum_core::stream::Stream;
use zstd::zstd_safe::CParameter;

use crate::blobs;

/// Text one transcript may hold: far more than a person reads, little enough for any disk.
pub const DEFAULT_LIMIT: usize = 64 << 20;

/// What a kill may cost at most, while output flows; and how long whoever follows an agent may have to wait.
const FLUSH_EVERY: Millis = Millis(200);

/// Bytes that are kept until there are more: an encoder takes a hundred times as many.
const FEW: usize = 4 * 1024;

/// Output is text: even the fast levels make it small.
const LEVEL: i32 = 3;

#[derive(Debug, Error)]
pub enum TranscriptError {
    #[error("could not write the transcript {}", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("could not read the transcript {}", path.display())]
    Read { path: PathBuf, source: io::Error },
}

/// Writes one attempt's output.
pub struct Transcript {
    path: PathBuf,
    encoder: Option<zstd::Encoder<'static, File>>,
    /// The first lines, as long as they are few: most agents that end soon say little.
    first: Vec<u8>,
    room: usize,
    cut: bool,
    flushed: Millis,
    now: Millis,
    characters: Characters,
}

impl Transcript {
    /// Nothing is on disk until there is something worth it, or the first flush.
    pub fn create(dir: &Path, iteration: Iteration, attempt: Attempt, task: &TaskId) -> Self {
        let name = format!("{iteration:05}-{attempt}-{}", file_name(task.as_str()));
        Self {
            path: dir.join(name),
            encoder: None,
            first: Vec::new(),
            room: DEFAULT_LIMIT,
            cut: false,
            flushed: Millis(0),
            now: Millis(0),
            characters: Characters::default(),
        }
    }

    /// With another bound on the text in it.
    #[must_use]
    pub fn with_limit(self, bytes: usize) -> Self {
        Self { room: bytes, ..self }
    }

    /// The file, once there is one.
    pub fn path(&self) -> Option<&Path> {
        self.encoder.as_ref().map(|_| self.path.as_path())
    }

    /// Records what came `at` so long after the agent was started.
    pub fn write(&mut self, at: Millis, stream: Stream, bytes: &[u8]) -> Result<(), TranscriptError> {
        self.now = at;
        let text = self.characters.push(stream, bytes);
        self.record(stream, &text)?;
        if at.0.saturating_sub(self.flushed.0) >= FLUSH_EVERY.0 { self.flush() } else { Ok(()) }
    }

    /// From here on a kill does not cost what was written so far.
    pub fn flush(&mut self) -> Result<(), TranscriptError> {
        self.flushed = self.now;
        if self.encoder.is_none() && self.first.is_empty() {
            return Ok(());
        }
        let flushed = self.open().and_then(|encoder| encoder.map_or(Ok(()), Write::flush));
        flushed.map_err(|source| TranscriptError::Write { path: self.path.clone(), source })
    }

    /// Ends the transcript; its file, if anything was ever written.
    pub fn finish(mut self) -> Result<Option<PathBuf>, TranscriptError> {
        for stream in [Stream::Stdout, Stream::Stderr] {
            let rest = self.characters.rest(stream);
            self.record(stream, &rest)?;
        }
        let ended = match self.encoder.take() {
            Some(encoder) => encoder.finish().map(drop),
            None if self.first.is_empty() => return Ok(None),
            None => self.write_at_once(),
        };
        match ended {
            Ok(()) => Ok(Some(self.path)),
            Err(source) => Err(TranscriptError::Write { path: self.path, source }),
        }
    }

    fn write_at_once(&mut self) -> io::Result<()> {
        let small = blobs::compress(&self.first).ok_or_else(|| io::Error::other("cannot compress"))?;
        let (path, mut file) = create_new(&self.path)?;
        self.path = path;
        file.write_all(&small)
    }

    fn record(&mut self, stream: Stream, text: &str) -> Result<(), TranscriptError> {
        if text.is_empty() || self.cut {
            return Ok(());
        }
        let fitting = &text[..text.floor_char_boundary(self.room)];
        if !fitting.is_empty() {
            self.room -= fitting.len();
            self.line(&Output { ms: self.now.0, stream, text: fitting.to_owned() })?;
        }
        if fitting.len() < text.len() {
            self.cut = true;
            self.line(&CutLine { cut: true })?;
        }
        Ok(())
    }

    fn line(&mut self, line: &impl Serialize) -> Result<(), TranscriptError> {
        self.try_line(line).map_err(|source| TranscriptError::Write { path: self.path.clone(), source })
    }

    fn try_line(&mut self, line: &impl Serialize) -> io::Result<()> {
        let mut json = serde_json::to_vec(line)?;
        json.push(b'\n');
        if self.encoder.is_none() && self.first.len() + json.len() <= FEW {
            self.first.append(&mut json);
            return Ok(());
        }
        match self.open()? {
            Some(encoder) => encoder.write_all(&json),
            None => Ok(()),
        }
    }

    /// The file, with the first lines in it.
    fn open(&mut self) -> io::Result<Option<&mut zstd::Encoder<'static, File>>> {
        if self.encoder.is_none() {
            let (path, file) = create_new(&self.path)?;
            self.path = path;
            let mut encoder = encoder(file)?;
            encoder.write_all(&std::mem::take(&mut self.first))?;
            self.encoder = Some(encoder);
        }
        Ok(self.encoder.as_mut())
    }
}

/// With tables for as much text as an agent repeats itself in. The level's own would take more than a
/// megabyte for every agent at work, which counts where there are a thousand.
fn encoder(file: File) -> io::Result<zstd::Encoder<'static, File>> {
    let mut encoder = zstd::Encoder::new(file, LEVEL)?;
    for parameter in [CParameter::WindowLog(14), CParameter::HashLog(12), CParameter::ChainLog(12)] {
        encoder.set_parameter(parameter)?;
    }
    Ok(encoder)
}

/// One line of a transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    Output(Output),
    /// There was more than the transcript may hold.
    Cut,
    /// The end is missing: the writer is still at it, or was killed.
    Unfinished,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// Milliseconds since the agent was started.
    pub ms: u64,
    pub stream: Stream,
    pub text: String,
}

/// The lines of a transcript, as far as they can be read.
pub fn read(path: &Path) -> Result<impl Iterator<Item = Line> + use<>, TranscriptError> {
    let failed = |source| TranscriptError::Read { path: path.to_owned(), source };
    let file = File::open(path).map_err(failed)?;
    let decoder = zstd::Decoder::new(file).map_err(failed)?;
    Ok(Lines { reader: Some(BufReader::new(decoder)) })
}

/// A transcript that may still grow: each look tells the lines that came since the last.
pub struct Growing {
    reader: BufReader<zstd::Decoder<'static, BufReader<Patient>>>,
    /// The beginning of a line whose end has not come yet.
    partial: Vec<u8>,
}

impl Growing {
    pub fn open(path: &Path) -> Result<Self, TranscriptError> {
        let failed = |source| TranscriptError::Read { path: path.to_owned(), source };
        let file = File::open(path).map_err(failed)?;
        let decoder = zstd::Decoder::new(Patient(file)).map_err(failed)?;
        Ok(Self { reader: BufReader::new(decoder), partial: Vec::new() })
    }

    /// The next line that is there as a whole. What cannot be read will not get better.
    pub fn next_line(&mut self) -> Option<Line> {
        self.reader.read_until(b'\n', &mut self.partial).ok().filter(|bytes| *bytes > 0)?;
        Some(decode(&std::mem::take(&mut self.partial)))
    }
}

/// A file whose end is only where it ends for now.
struct Patient(File);

impl io::Read for Patient {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.read(buffer)? {
            // To the decoder an end would be the last word.
            0 if !buffer.is_empty() => Err(io::ErrorKind::WouldBlock.into()),
            bytes => Ok(bytes),
        }
    }
}

struct Lines<R> {
    /// `None` after the last line.
    reader: Option<R>,
}

impl<R: BufRead> Iterator for Lines<R> {
    type Item = Line;

    fn next(&mut self) -> Option<Line> {
        let mut text = Vec::new();
        let line = match self.reader.as_mut()?.read_until(b'\n', &mut text) {
            Ok(0) => None,
            Ok(_) => Some(decode(&text)),
            Err(_) => Some(Line::Unfinished),
        };
        match line {
            Some(Line::Output(_)) => {}
            None | Some(Line::Cut | Line::Unfinished) => self.reader = None,
        }
        line
    }
}

fn decode(text: &[u8]) -> Line {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Stored {
        Output(Output),
        Cut(#[expect(dead_code, reason = "that the line has this shape says it all")] CutLine),
    }
    match serde_json::from_slice(text) {
        Ok(Stored::Output(output)) => Line::Output(output),
        Ok(Stored::Cut(_)) => Line::Cut,
        Err(_) => Line::Unfinished,
    }
}

#[derive(Serialize, Deserialize)]
struct CutLine {
    cut: bool,
}

/// Makes text of output, which comes in pieces that may end within a character.
#[derive(Debug, Default)]
pub(crate) struct Characters {
    /// The beginning of a character whose other bytes have not come yet, per stream.
    split: [Vec<u8>; 2],
}

impl Characters {
    pub(crate) fn push(&mut self, stream: Stream, bytes: &[u8]) -> String {
        let mut all = std::mem::take(&mut self.split[stream as usize]);
        all.extend_from_slice(bytes);
        self.split[stream as usize] = all.split_off(all.len() - unfinished(&all));
        String::from_utf8(all).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
    }

    /// What never became a character.
    pub(crate) fn rest(&mut self, stream: Stream) -> String {
        let rest = std::mem::take(&mut self.split[stream as usize]);
        String::from_utf8_lossy(&rest).into_owned()
    }
}

/// How many bytes at the end are the beginning of a character.
fn unfinished(bytes: &[u8]) -> usize {
    // A character has at most four bytes, so an unfinished one at most three.
    let tail = &bytes[bytes.len().saturating_sub(3)..];
    let Some(start) = tail.iter().rposition(|byte| byte & 0b1100_0000 != 0b1000_0000) else { return 0 };
    match std::str::from_utf8(&tail[start..]) {
        Err(error) if error.error_len().is_none() => tail.len() - start,
        Ok(_) | Err(_) => 0,
    }
}

/// A task's id as (part of) a file name: harmless, readable, and short enough for every file system.
fn file_name(task: &str) -> String {
    const LONGEST: usize = 80;
    task.chars()
        .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '_' })
        .take(LONGEST)
        .collect()
}

/// An interrupted attempt is made again under the same numbers: its first transcript is kept.
fn create_new(path: &Path) -> io::Result<(PathBuf, File)> {
    if let Some(directory) = path.parent()
        && !fs::exists(directory)?
    {
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    }
    let mut number = 1;
    loop {
        let mut name = path.as_os_str().to_owned();
        name.push(if number == 1 { ".jsonl.zst".to_owned() } else { format!(".{number}.jsonl.zst") });
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            result => return result.map(|file| (PathBuf::from(name), file)),
        }
    }
}
