//! What is wrong with a backlog file: all of it at once, each with its line.

use std::fmt;

/// Everything found wrong with one file, in the order of the lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problems(pub Vec<Problem>);

/// One thing wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub file: String,
    /// Counted from 1.
    pub line: usize,
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.message)
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, problem) in self.0.iter().enumerate() {
            let line_end = if position == 0 { "" } else { "\n" };
            write!(f, "{line_end}{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

/// Problems as a reader finds them, still by byte.
#[derive(Default)]
pub(crate) struct Findings {
    found: Vec<(usize, String)>,
    /// The task that is being read, if it has an id.
    about: Option<String>,
}

impl Findings {
    pub(crate) fn add(&mut self, offset: usize, message: impl Into<String>) {
        let message = message.into();
        let message = match &self.about {
            Some(id) => format!("`{id}`: {message}"),
            None => message,
        };
        self.found.push((offset, message));
    }

    /// What is found from here on is about this task, or about none.
    pub(crate) fn set_about(&mut self, id: Option<String>) {
        self.about = id;
    }

    pub(crate) fn append(&mut self, mut other: Self) {
        self.found.append(&mut other.found);
    }

    /// Adds what was found in a part of the text that starts there.
    pub(crate) fn append_at(&mut self, other: Self, start: usize) {
        self.found.extend(other.found.into_iter().map(|(offset, message)| (offset + start, message)));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Lines are counted in one pass, so that a file full of problems is not read once for each.
    pub(crate) fn into_problems(mut self, file: &str, text: &str) -> Problems {
        self.found.sort_by_key(|(offset, _)| *offset);
        let (mut line, mut counted) = (1, 0);
        let to_problem = |(offset, message): (usize, String)| {
            let until = offset.min(text.len());
            line += text.as_bytes()[counted..until].iter().filter(|&&b| b == b'\n').count();
            counted = until;
            Problem { file: file.to_owned(), line, message }
        };
        Problems(self.found.into_iter().map(to_problem).collect())
    }
}
