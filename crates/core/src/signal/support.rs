//! What supports a claim: phrases that people take for one, boxes that are all ticked, and what the last
//! iterations have in common.
//!
//! None of it completes anything. It is shown beside a claim, and tells whoever looks at an attempt
//! without one how near it may be. "In a row" means iterations of one loop, of any task; what breaks each
//! row is said with it.

use serde::{Deserialize, Serialize};

use super::claim::DEFAULT_PROMISES;

/// What counts as a claim, and what supports one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Rules {
    /// Words inside `<promise>…</promise>` that claim a task.
    pub promises: Vec<String>,
    /// Phrases that support a claim, whatever their case.
    pub phrases: Vec<String>,
    /// All boxes of the backlog are ticked but for the task's own.
    pub boxes: bool,
    /// Claims in a row; 0 means that they are not counted, as below.
    pub done_claims: u32,
    /// Iterations in a row that changed nothing but tests.
    pub test_only: u32,
    /// Iterations in a row without a new commit.
    pub without_commit: u32,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            promises: DEFAULT_PROMISES.iter().map(|word| (*word).to_owned()).collect(),
            phrases: PHRASES.iter().map(|phrase| (*phrase).to_owned()).collect(),
            boxes: true,
            done_claims: 2,
            test_only: 3,
            without_commit: 2,
        }
    }
}

/// "All tests passing" is among them, with whatever else begins so.
const PHRASES: [&str; 4] = ["all tests pass", "ready for review", "no changes needed", "all tasks complete"];

/// What supports a claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Signal {
    /// The agent said this.
    Phrase { text: String },
    /// All boxes are ticked but for the task's own.
    BoxesTicked,
    /// It was claimed, or as good as claimed, this often in a row.
    DoneClaims { times: u32 },
    /// So many iterations in a row changed nothing but tests.
    TestOnly { times: u32 },
    /// So many iterations in a row led to no commit.
    WithoutCommit { times: u32 },
}

impl std::fmt::Display for Signal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Phrase { text } => write!(f, "it says \"{text}\""),
            Self::BoxesTicked => f.write_str("all other boxes are ticked"),
            Self::DoneClaims { times } => write!(f, "done was said {times} times in a row"),
            Self::TestOnly { times } => write!(f, "{times} iterations in a row changed only tests"),
            Self::WithoutCommit { times } => write!(f, "{times} iterations in a row led to no commit"),
        }
    }
}

impl Rules {
    /// The first of the phrases that a message contains.
    pub fn phrase(&self, message: &str) -> Option<&str> {
        let message = message.to_lowercase();
        self.phrases.iter().map(String::as_str).find(|phrase| message.contains(&phrase.to_lowercase()))
    }

    /// What is to be shown of the rows, with this iteration in them.
    pub fn signals(&self, rows: &Rows, phrase: Option<&str>, boxes_ticked: bool) -> Vec<Signal> {
        let row = |times: u32, limit: u32| Some(times).filter(|times| limit > 0 && *times >= limit);
        let said = phrase.map(|text| Signal::Phrase { text: text.to_owned() });
        let ticked = (self.boxes && boxes_ticked).then_some(Signal::BoxesTicked);
        let done = row(rows.done, self.done_claims).map(|times| Signal::DoneClaims { times });
        let tests = row(rows.test_only, self.test_only).map(|times| Signal::TestOnly { times });
        let commits =
            row(rows.without_commit, self.without_commit).map(|times| Signal::WithoutCommit { times });
        [said, ticked, done, tests, commits].into_iter().flatten().collect()
    }
}

/// What the last iterations have in common.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Rows {
    /// Broken by an iteration that says neither a claim nor a phrase.
    pub done: u32,
    /// Broken by one that changes nothing, or something else.
    pub test_only: u32,
    /// Broken by a commit.
    pub without_commit: u32,
}

impl Rows {
    /// The rows with one more iteration. A commit breaks its row once it is made ([`Rows::commit`]).
    pub fn with(self, says_done: bool, only_tests: bool) -> Self {
        Self {
            done: if says_done { self.done + 1 } else { 0 },
            test_only: if only_tests { self.test_only + 1 } else { 0 },
            without_commit: self.without_commit + 1,
        }
    }

    /// A task was completed: what was claimed is done, and the next one begins anew.
    pub fn commit(&mut self) {
        self.done = 0;
        self.without_commit = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_broken_by_what_does_not_belong_to_them() {
        let rules = Rules::default();
        let mut rows = Rows::default();
        let mut shown = |says_done, only_tests| {
            rows = rows.with(says_done, only_tests);
            rules.signals(&rows, None, false).iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
        };
        assert_eq!(shown(true, true), "");
        assert_eq!(
            shown(true, true),
            "done was said 2 times in a row; 2 iterations in a row led to no commit"
        );
        assert_eq!(
            shown(false, true),
            "3 iterations in a row changed only tests; 3 iterations in a row led to no commit"
        );
        assert_eq!(shown(true, false), "4 iterations in a row led to no commit");
        rows.commit();
        assert_eq!(rows, Rows::default());
    }

    #[test]
    fn phrases_are_found_whatever_their_case_and_can_be_others() {
        let mut rules = Rules::default();
        assert_eq!(rules.phrase("Great: ALL TESTS PASSING now."), Some("all tests pass"));
        assert_eq!(rules.phrase("some tests fail"), None);
        rules.phrases = vec!["Fertig".to_owned()];
        assert_eq!(rules.phrase("es ist fertig"), Some("Fertig"));
        assert_eq!(rules.phrase("all tests passing"), None);
        let none = Rules { done_claims: 0, test_only: 0, without_commit: 0, boxes: false, ..rules };
        assert_eq!(none.signals(&Rows { done: 9, test_only: 9, without_commit: 9 }, None, true), vec![]);
    }
}
