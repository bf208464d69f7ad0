//! Statuses written as words, as one format or its owner spells them.

use wiggum_core::task::FileStatus;

/// The words of a format. Where several mean the same, the first is the one written.
#[derive(Debug)]
pub(crate) struct Words {
    pub(crate) meanings: &'static [(&'static str, FileStatus)],
    /// Those that say that somebody works on a task, which is open to us.
    pub(crate) in_progress: &'static [&'static str],
    /// A skipped task has no word of its own: `"skipped": true` stands beside its status.
    pub(crate) has_skipped_flag: bool,
}

/// The words that one file uses, where that differs from what its format would write.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OwnWords {
    pub(crate) open: Option<&'static str>,
    pub(crate) in_progress: Option<&'static str>,
    pub(crate) done: Option<&'static str>,
    pub(crate) skipped: Option<&'static str>,
}

impl Words {
    /// The entry of a word, whatever its capitals and separators are.
    pub(crate) fn entry(&self, word: &str) -> Option<&'static (&'static str, FileStatus)> {
        let exact = self.meanings.iter().find(|(known, _)| *known == word);
        exact.or_else(|| {
            let folded = fold(word);
            self.meanings.iter().find(|(known, _)| fold(known) == folded)
        })
    }

    pub(crate) fn meaning_of(&self, word: &str) -> Option<FileStatus> {
        self.entry(word).map(|(_, status)| *status)
    }

    pub(crate) fn is_in_progress(&self, word: &str) -> bool {
        let folded = fold(word);
        self.in_progress.iter().any(|known| fold(known) == folded)
    }

    /// The word to write for a status.
    pub(crate) fn word_of(&self, status: FileStatus, own: OwnWords) -> &'static str {
        let given = match status {
            FileStatus::Open => own.open,
            FileStatus::Done => own.done,
            FileStatus::Skipped if self.has_skipped_flag => own.open,
            FileStatus::Skipped => own.skipped,
            FileStatus::Failed => None,
        };
        let looked_for =
            if self.has_skipped_flag && status == FileStatus::Skipped { FileStatus::Open } else { status };
        let usual =
            || self.meanings.iter().find(|(_, meaning)| *meaning == looked_for).map(|(word, _)| *word);
        given.or_else(usual).unwrap_or("pending")
    }

    pub(crate) fn progress_word(&self, own: OwnWords) -> &'static str {
        own.in_progress.or(self.in_progress.first().copied()).unwrap_or("in_progress")
    }
}

/// Words that say of a task that nobody is to work on it, and no more.
const SKIPPED: [&str; 6] = ["skipped", "deferred", "cancelled", "canceled", "dropped", "wontfix"];

impl OwnWords {
    /// Takes note of a word that a file uses.
    pub(crate) fn note(&mut self, words: &Words, word: &str) {
        let Some((known, status)) = words.meanings.iter().find(|(known, _)| *known == word) else { return };
        let slot = match status {
            FileStatus::Open if words.is_in_progress(known) => &mut self.in_progress,
            FileStatus::Open => &mut self.open,
            FileStatus::Done => &mut self.done,
            // Other words set a task aside for a reason of their own.
            FileStatus::Skipped if SKIPPED.contains(known) => &mut self.skipped,
            FileStatus::Skipped | FileStatus::Failed => return,
        };
        *slot = slot.or(Some(known));
    }

    /// What is known here, and otherwise there.
    pub(crate) fn or(self, other: Self) -> Self {
        Self {
            open: self.open.or(other.open),
            in_progress: self.in_progress.or(other.in_progress),
            done: self.done.or(other.done),
            skipped: self.skipped.or(other.skipped),
        }
    }
}

/// Without capitals and separators.
fn fold(word: &str) -> String {
    word.chars().filter(|c| !matches!(c, ' ' | '_' | '-')).flat_map(char::to_lowercase).collect()
}
