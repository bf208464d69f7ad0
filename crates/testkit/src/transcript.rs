//! What a real agent once printed, line by line, and how it ended. One JSON value per line on disk:
//! first who spoke and how it was called, then the lines, last the exit.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use wiggum_core::event::Exit;
use wiggum_core::stream::Stream;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transcript {
    pub head: Head,
    /// In the order they came, as far as that can be told of two streams.
    pub lines: Vec<Line>,
    pub exit: Exit,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    pub agent: String,
    pub version: String,
    pub arguments: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    pub stream: Stream,
    pub line: String,
}

#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("cannot read {}", path.display())]
    File { path: PathBuf, source: std::io::Error },
    #[error("line {number} of {} is not of a transcript", path.display())]
    Line { path: PathBuf, number: usize, source: serde_json::Error },
    #[error("{} ends too early", path.display())]
    Incomplete { path: PathBuf },
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Entry {
    Head(Head),
    Line(Line),
    Exit { exit: Exit },
}

impl Transcript {
    pub fn read(path: &Path) -> Result<Self, ReadError> {
        let owned = || path.to_owned();
        let text =
            std::fs::read_to_string(path).map_err(|source| ReadError::File { path: owned(), source })?;
        let (mut head, mut lines, mut exit) = (None, Vec::new(), None);
        for (index, line) in text.lines().enumerate() {
            let entry = serde_json::from_str(line).map_err(|source| ReadError::Line {
                path: owned(),
                number: index + 1,
                source,
            })?;
            match entry {
                Entry::Head(found) => head = Some(found),
                Entry::Line(line) => lines.push(line),
                Entry::Exit { exit: found } => exit = Some(found),
            }
        }
        let (head, exit) = head.zip(exit).ok_or_else(|| ReadError::Incomplete { path: owned() })?;
        Ok(Self { head, lines, exit })
    }

    /// As it lies on disk.
    pub fn to_text(&self) -> Result<String, serde_json::Error> {
        let lines = self.lines.iter().cloned().map(Entry::Line);
        let head = std::iter::once(Entry::Head(self.head.clone()));
        let all = head.chain(lines).chain(std::iter::once(Entry::Exit { exit: self.exit }));
        all.map(|entry| serde_json::to_string(&entry).map(|line| line + "\n")).collect()
    }

    /// What was written to one of its streams.
    pub fn text_of(&self, stream: Stream) -> String {
        let lines = self.lines.iter().filter(|line| line.stream == stream);
        lines.map(|line| format!("{}\n", line.line)).collect()
    }
}
