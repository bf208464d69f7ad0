//! What differs between HEAD, the index and the work tree.

use super::{Git, GitError, owned, text};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// HEAD against the index.
    pub staged: Vec<Entry>,
    /// The index against the work tree; unmerged paths too.
    pub unstaged: Vec<Entry>,
    /// A repository inside this one ends in `/`.
    pub untracked: Vec<String>,
    /// Submodules with files inside that are not committed there. Only the commit of a submodule can be
    /// staged or put back here, so these are no changes of this repository.
    pub uncommitted_inside: Vec<String>,
}

impl Status {
    pub fn is_clean(&self) -> bool {
        self.staged.is_empty() && self.unstaged.is_empty() && self.untracked.is_empty()
    }

    /// Every path once.
    pub fn paths(&self) -> Vec<String> {
        let entries = self.staged.iter().chain(&self.unstaged).map(|entry| &entry.path);
        let mut paths: Vec<String> = entries.chain(&self.untracked).cloned().collect();
        paths.sort_unstable();
        paths.dedup();
        paths
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Relative to the root; bytes that are not UTF-8 are replaced.
    pub path: String,
    pub change: Change,
    pub blob_before: Option<String>,
    /// Not known for files of the work tree.
    pub blob_after: Option<String>,
    /// As git writes it: `100644`, `100755`, `120000` (link), `160000` (submodule); of the newer
    /// side, or of the older one where the file is gone.
    pub mode: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Change {
    Added,
    Modified,
    Deleted,
    TypeChanged,
    Unmerged,
}

impl Git {
    pub fn status(&self) -> Result<Status, GitError> {
        Ok(self.ask_status(&[])?.0)
    }

    /// Also what is ignored: files, and directories with a `/` at the end as wholes.
    pub(super) fn status_and_ignored(&self) -> Result<(Status, Vec<String>), GitError> {
        self.ask_status(&["--ignored=matching"])
    }

    fn ask_status(&self, more: &[&str]) -> Result<(Status, Vec<String>), GitError> {
        let mut command = owned(&[
            "status",
            "--porcelain=v2",
            "-z",
            "--no-renames",
            "--untracked-files=all",
            "--ignore-submodules=none",
        ]);
        command.extend(owned(more));
        let output = self.bytes(&command)?;
        parse(&output).map_err(|line| GitError::Answer { command: command.join(" "), answer: line })
    }
}

fn parse(output: &[u8]) -> Result<(Status, Vec<String>), String> {
    let (mut status, mut ignored) = (Status::default(), Vec::new());
    for record in output.split(|byte| *byte == 0).filter(|record| !record.is_empty()) {
        let record = text(record);
        match record.strip_prefix("! ") {
            Some(path) => ignored.push(path.to_owned()),
            None => parse_record(&record, &mut status).ok_or_else(|| record.clone().into_owned())?,
        }
    }
    Ok((status, ignored))
}

fn parse_record(record: &str, status: &mut Status) -> Option<()> {
    let (kind, rest) = record.split_once(' ')?;
    match kind {
        "1" => parse_changed(rest, status),
        "u" => {
            let fields: Vec<&str> = rest.splitn(10, ' ').collect();
            let [_, _, _, _, _, mode, _, _, _, path] = fields[..] else { return None };
            status.unstaged.push(Entry {
                path: path.to_owned(),
                change: Change::Unmerged,
                blob_before: None,
                blob_after: None,
                mode: octal(mode)?,
            });
            Some(())
        }
        "?" => {
            status.untracked.push(rest.to_owned());
            Some(())
        }
        "#" => Some(()),
        _ => None,
    }
}

fn parse_changed(rest: &str, status: &mut Status) -> Option<()> {
    let fields: Vec<&str> = rest.splitn(8, ' ').collect();
    let [letters, submodule, mode_head, mode_index, mode_tree, blob_head, blob_index, path] = fields[..]
    else {
        return None;
    };
    let mut letters = letters.chars();
    let entry = |change, modes: [&str; 2], blob_before, blob_after| {
        let [older, newer] = modes;
        let mode = match change {
            Change::Deleted => octal(older)?,
            Change::Added | Change::Modified | Change::TypeChanged | Change::Unmerged => octal(newer)?,
        };
        Some(Entry { path: path.to_owned(), change, blob_before, blob_after, mode })
    };
    if let Some(change) = change(letters.next()?)? {
        let blobs = (blob(blob_head), blob(blob_index));
        status.staged.push(entry(change, [mode_head, mode_index], blobs.0, blobs.1)?);
    }
    // `S` and then a letter each for another commit, changed files and untracked files; `N...` otherwise.
    let is_inside = matches!(submodule.as_bytes(), [b'S', b'.', ..]);
    if !matches!(submodule.as_bytes(), [b'N', ..] | [b'S', _, b'.', b'.']) {
        status.uncommitted_inside.push(path.to_owned());
    }
    if let Some(change) = change(letters.next()?)?.filter(|_| !is_inside) {
        status.unstaged.push(entry(change, [mode_index, mode_tree], blob(blob_index), None)?);
    }
    Some(())
}

/// The outer `None` is a letter we do not know.
fn change(letter: char) -> Option<Option<Change>> {
    match letter {
        '.' => Some(None),
        'A' => Some(Some(Change::Added)),
        'M' => Some(Some(Change::Modified)),
        'D' => Some(Some(Change::Deleted)),
        'T' => Some(Some(Change::TypeChanged)),
        _ => None,
    }
}

fn octal(mode: &str) -> Option<u32> {
    u32::from_str_radix(mode, 8).ok()
}

/// All zeros stand for "no such file".
fn blob(id: &str) -> Option<String> {
    id.bytes().any(|byte| byte != b'0').then(|| id.to_owned())
}
