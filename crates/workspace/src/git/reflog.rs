//! How HEAD came to where it is, read from its log.

use std::io::{Read, Seek, SeekFrom};

use crate::beneath::{Links, open_plain};

use super::status::{Change, Entry};
use super::{Git, GitError, text};

/// The end of a log is enough: it is about one iteration.
const MAX_READ: u64 = 1 << 20;

/// One move of HEAD.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// The commit it went to.
    pub to: String,
    /// What whoever moved it noted, such as `commit: Add a file`.
    pub message: String,
}

impl Git {
    /// The moves of HEAD since it was last at this commit, or since there was none, oldest first.
    /// Nothing where the log does not tell.
    pub fn moves_since(&self, base: Option<&str>) -> Result<Vec<Move>, GitError> {
        let path = self.git_dir.join("logs/HEAD");
        let Ok(mut log) = open_plain(&path, Links::Follow) else { return Ok(Vec::new()) };
        let on_file = |source| GitError::File { path: path.clone(), source };
        let length = log.metadata().map_err(on_file)?.len();
        log.seek(SeekFrom::Start(length.saturating_sub(MAX_READ))).map_err(on_file)?;
        let mut bytes = Vec::new();
        log.read_to_end(&mut bytes).map_err(on_file)?;
        let moves: Vec<(String, Move)> = text(&bytes).lines().filter_map(parse).collect();
        let start = match base {
            Some(base) => moves.iter().rposition(|(_, step)| step.to == base).map(|at| at + 1),
            None => moves.iter().rposition(|(from, _)| from.bytes().all(|digit| digit == b'0')),
        };
        // HEAD's log begins with the first move, so the commit before it may stand there as its origin.
        let start = start.or_else(|| moves.iter().position(|(from, _)| Some(from.as_str()) == base));
        Ok(start.map_or(Vec::new(), |start| moves.into_iter().skip(start).map(|(_, step)| step).collect()))
    }

    /// What differs between two commits, or between nothing and a commit.
    pub fn changes_between(&self, from: Option<&str>, to: &str) -> Result<Vec<Entry>, GitError> {
        let mut command = vec!["diff-tree", "-r", "-z", "--no-renames", "--raw", "--no-abbrev"];
        match from {
            Some(from) => command.extend([from, to]),
            None => command.extend(["--root", "--no-commit-id", to]),
        }
        let output = self.bytes(&command)?;
        let output = text(&output);
        let mut fields = output.split('\0');
        let mut entries = Vec::new();
        while let (Some(facts), Some(path)) = (fields.next().filter(|facts| !facts.is_empty()), fields.next())
        {
            let entry = parse_raw(facts, path);
            entries.push(
                entry.ok_or_else(|| GitError::Answer {
                    command: command.join(" "),
                    answer: facts.to_owned(),
                })?,
            );
        }
        Ok(entries)
    }

    /// Commits that the one has beyond the other, newest first, one line each.
    pub fn subjects_between(&self, from: Option<&str>, to: &str) -> Result<Vec<String>, GitError> {
        let mut command = vec!["log".to_owned(), "--no-color".to_owned(), "--format=%h %s".to_owned()];
        command.push(to.to_owned());
        command.extend(from.map(|from| format!("^{from}")));
        Ok(text(&self.bytes(&command)?).lines().map(str::to_owned).collect())
    }
}

/// `FROM TO NAME <EMAIL> TIME ZONE<tab>MESSAGE`
fn parse(line: &str) -> Option<(String, Move)> {
    let (facts, message) = line.split_once('\t').unwrap_or((line, ""));
    let mut ids = facts.splitn(3, ' ');
    let (from, to) = (ids.next()?, ids.next()?);
    Some((from.to_owned(), Move { to: to.to_owned(), message: message.to_owned() }))
}

/// `:MODE MODE BLOB BLOB LETTER`
fn parse_raw(facts: &str, path: &str) -> Option<Entry> {
    let fields: Vec<&str> = facts.strip_prefix(':')?.split(' ').collect();
    let [older, newer, before, after, letter] = fields[..] else { return None };
    let change = match letter {
        "A" => Change::Added,
        "M" => Change::Modified,
        "D" => Change::Deleted,
        "T" => Change::TypeChanged,
        _ => return None,
    };
    let blob = |id: &str| (!id.bytes().all(|digit| digit == b'0')).then(|| id.to_owned());
    let mode = u32::from_str_radix(if change == Change::Deleted { older } else { newer }, 8).ok()?;
    Some(Entry { path: path.to_owned(), change, blob_before: blob(before), blob_after: blob(after), mode })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_log_is_taken_apart() {
        let (from, step) = parse("0a 1b A B <a b@c> 1763000000 +0100\tcommit: one\ttwo").unwrap();
        assert_eq!(
            (from.as_str(), step.to.as_str(), step.message.as_str()),
            ("0a", "1b", "commit: one\ttwo")
        );
        assert_eq!(parse("0a 1b A <> 1 +0000").unwrap().1.message, "");
        assert!(parse("nonsense").is_none());
    }
}
