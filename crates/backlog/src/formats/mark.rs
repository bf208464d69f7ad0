//! A place in a text that says a status, and what is written there for each.

use std::ops::Range;

use wiggum_core::task::FileStatus;

use crate::edit::Change;

#[derive(Clone, Debug)]
pub(crate) struct Mark {
    pub(crate) at: Range<usize>,
    /// What it says of a task that is open, done or skipped; nothing where it stays as it is.
    pub(crate) open: Option<String>,
    pub(crate) done: Option<String>,
    pub(crate) skipped: Option<String>,
}

impl Mark {
    /// What is to be changed for it to say that.
    pub(crate) fn change(&self, text: &str, status: FileStatus) -> Option<Change> {
        let with = match status {
            FileStatus::Open | FileStatus::Failed => self.open.as_ref(),
            FileStatus::Done => self.done.as_ref(),
            FileStatus::Skipped => self.skipped.as_ref(),
        }?;
        (text[self.at.clone()] != **with).then(|| Change { range: self.at.clone(), with: with.clone() })
    }
}
