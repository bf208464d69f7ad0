//! What is wrong with a configuration: every problem at once, each with its place and a hint.

use std::fmt;
use std::path::PathBuf;

/// Everything wrong in all layers, in the order of the layers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
pub(crate) struct ConfigProblems(pub(crate) Vec<Problem>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) place: Place,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

/// Where a value was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Lines and columns (in characters) start at 1.
    File {
        path: PathBuf,
        line: usize,
        column: usize,
    },
    /// The file as a whole, when it cannot even be read.
    WholeFile(PathBuf),
    Variable(String),
    Flag(&'static str),
}

/// Where the lines of a file's text begin, looked for once however much is to be told of it.
pub(super) struct Lines<'t> {
    text: &'t str,
    starts: Vec<usize>,
}

impl<'t> Lines<'t> {
    pub(super) fn of(text: &'t str) -> Self {
        let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Self { text, starts }
    }

    /// The line of a byte; lines start at 1.
    pub(super) fn line(&self, byte: usize) -> usize {
        self.starts.partition_point(|start| *start <= byte.min(self.text.len()))
    }

    pub(super) fn place(&self, path: PathBuf, byte: usize) -> Place {
        let line = self.line(byte);
        let start = self.starts.get(line - 1).copied().unwrap_or(0);
        let before = self.text.get(start..byte).or_else(|| self.text.get(start..)).unwrap_or_default();
        Place::File { path, line, column: before.chars().count() + 1 }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, line, column } => write!(f, "{}:{line}:{column}", path.display()),
            Self::WholeFile(path) => write!(f, "{}", path.display()),
            Self::Variable(name) => f.write_str(name),
            Self::Flag(flag) => f.write_str(flag),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)?;
        match &self.hint {
            Some(hint) => write!(f, "\n  hint: {hint}"),
            None => Ok(()),
        }
    }
}

/// The known word that a mistyped one most likely means, if any is near enough: at most one
/// letter in three may be wrong.
pub(super) fn nearest<'w>(written: &str, known: impl IntoIterator<Item = &'w str>) -> Option<&'w str> {
    let written = written.to_lowercase().replace('-', "_");
    let measured = known.into_iter().map(|word| (distance(&written, &word.to_lowercase()), word));
    let (distance, word) = measured.min_by_key(|(distance, _)| *distance)?;
    (distance <= word.chars().count().max(written.chars().count()) / 3).then_some(word)
}

/// Nobody mistypes a word of ours into something longer, and comparing takes time and room for every
/// pair of letters.
const LONGEST_WORD: usize = 80;

/// Insertions, deletions and replacements between two words; two swapped letters count once. Words
/// that are too long to be one of ours have nothing in common with any.
pub(super) fn distance(one: &str, other: &str) -> usize {
    if one.len().max(other.len()) > LONGEST_WORD {
        return one.len().max(other.len());
    }
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let mut rows = vec![(0..=other.len()).collect::<Vec<_>>()];
    for i in 1..=one.len() {
        let mut row = vec![i];
        for j in 1..=other.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(one[i - 1] != other[j - 1]);
            let mut best = replaced.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[one.len()][other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_words() {
        let known = ["iterations", "duration", "max_tasks", "wait"];
        let check = |written: &str, expected: Option<&str>| {
            assert_eq!(nearest(written, known), expected, "{written}")
        };
        check("iteration", Some("iterations"));
        check("itertaions", Some("iterations"));
        check("Duration", Some("duration"));
        check("max-tasks", Some("max_tasks"));
        check("wiat", Some("wait"));
        check("colour", None);
        check("x", None);
        assert_eq!(nearest("x", []), None);
    }

    #[test]
    fn places_count_characters() {
        let text = "a = 1\r\nü = \"é\" x";
        let byte = text.find('x').unwrap();
        let lines = Lines::of(text);
        assert_eq!(lines.place("f".into(), byte).to_string(), "f:2:9");
        assert_eq!(lines.place("f".into(), 0).to_string(), "f:1:1");
        assert_eq!(lines.place("f".into(), 999).to_string(), "f:2:10");
    }
}
