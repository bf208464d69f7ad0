//! Moving kept work onto newer commits, and comparing commits with a saved index.

use std::path::Path;

use wiggum_core::event::Exit;

use super::{Git, GitError, Hooks, excluding, failed, owned, text};
use crate::process::{self, Input};

impl Git {
    /// Kept work as if it had been done on `onto`: the same commit if it was, a merged one if git
    /// can merge it, nothing if the two conflict. Only objects are written.
    pub fn move_work(&self, kept: &str, onto: &str) -> Result<Option<String>, GitError> {
        // Kept before the first commit: nothing tells what it was done on.
        let Some(parent) = self.resolve(&format!("{kept}^1"))? else { return Ok(None) };
        if parent == onto {
            return Ok(Some(kept.to_owned()));
        }
        let base = format!("--merge-base={parent}");
        let command = ["merge-tree", "--write-tree", "--no-messages", &base, onto, kept];
        let output = self.output(&command, Hooks::Off)?;
        match output.exit {
            Exit::Code { code: 0 } => {
                let tree = text(&output.stdout).lines().next().unwrap_or_default().to_owned();
                self.commit_tree(&tree, &[onto.to_owned()], "Unfinished work, moved onto newer commits")
                    .map(Some)
            }
            Exit::Code { code: 1 } => Ok(None),
            Exit::Code { .. } | Exit::Signal { .. } | Exit::TimedOut | Exit::NotStarted => {
                Err(failed(&command, &output))
            }
        }
    }

    /// Is HEAD's tree another than that of a saved index, the excluded paths apart?
    pub fn differs_from_index(&self, saved: &Path, exclude: &[&str]) -> Result<bool, GitError> {
        self.index_differs("HEAD", Some(saved), exclude)
    }

    /// Is the index another tree than that of a commit, the excluded paths apart?
    pub fn index_differs_from(&self, commit: &str, exclude: &[&str]) -> Result<bool, GitError> {
        self.index_differs(commit, None, exclude)
    }

    fn index_differs(&self, commit: &str, saved: Option<&Path>, exclude: &[&str]) -> Result<bool, GitError> {
        let mut command = owned(&["diff-index", "--cached", "--quiet", commit, "--", "."]);
        command.extend(exclude.iter().map(|path| excluding(path)));
        let mut launch = self.launch(&command, Hooks::Off);
        launch.env.extend(saved.map(|saved| ("GIT_INDEX_FILE".into(), saved.into())));
        let output = process::run(launch)?;
        match output.exit {
            Exit::Code { code: 0 } => Ok(false),
            Exit::Code { code: 1 } => Ok(true),
            Exit::Code { .. } | Exit::Signal { .. } | Exit::TimedOut | Exit::NotStarted => {
                Err(failed(&command, &output))
            }
        }
    }

    /// The texts of blobs, in one process; nothing for those that are missing or not text.
    pub fn read_blobs(&self, blobs: &[Option<&str>]) -> Result<Vec<Option<String>>, GitError> {
        let command = ["cat-file", "--batch"];
        let wanted: Vec<&str> = blobs.iter().flatten().copied().collect();
        let mut launch = self.launch(&command, Hooks::Off);
        launch.stdin = Input::Bytes((wanted.join("\n") + "\n").into_bytes());
        let output = self.bytes_of(&command, launch)?;
        let mut contents = read_batch(&output).into_iter();
        Ok(blobs.iter().map(|blob| blob.and_then(|_| contents.next().flatten())).collect())
    }
}

/// `<oid> blob <size>\n<content>\n`, or `<oid> missing\n`, one after the other.
fn read_batch(mut output: &[u8]) -> Vec<Option<String>> {
    let mut contents = Vec::new();
    while let Some(end) = output.iter().position(|byte| *byte == b'\n') {
        let header = text(&output[..end]).into_owned();
        output = &output[end + 1..];
        let size = header.rsplit_once(' ').and_then(|(_, size)| size.parse::<usize>().ok());
        let Some(size) = size.filter(|size| *size < output.len()) else {
            contents.push(None);
            continue;
        };
        contents.push(String::from_utf8(output[..size].to_vec()).ok());
        output = &output[size + 1..];
    }
    contents
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_of_blobs_is_read_whatever_is_in_it() {
        let output = b"aaa blob 3\na\nb\nbbb missing\nccc blob 0\n\nddd blob 2\n\xff\xfe\n";
        let expected = vec![Some("a\nb".to_owned()), None, Some(String::new()), None];
        assert_eq!(read_batch(output), expected);
    }
}
