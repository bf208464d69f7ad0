//! Where a session stands, so that whoever goes on need not find it out again: what is done, what is
//! left, what was decided. It is made from what the agent has said and from its plan; no model is asked.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use wiggum_backlog::Checkbox;
use wiggum_core::signal::notes::{self, Notes};
use wiggum_core::task::FileStatus;
use wiggum_core::text::clip;

use super::state::Session;

/// The newest of each kind that are kept.
const MOST: usize = 12;
/// How long the text may be that a prompt carries.
const LONGEST: usize = 4 * 1024;

/// What the agent has said for whoever goes on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Noted {
    /// What it did in each iteration that changed something, in its own words.
    done: Vec<String>,
    notes: Notes,
    /// What was missing at the last stop.
    pub(super) missing: String,
}

impl Noted {
    /// Takes in what was said at a stop. Decisions add up; next steps are those it said last.
    pub(crate) fn take(&mut self, iteration: u32, message: &str, progress: bool) {
        let summary = notes::summary(message);
        if progress && !summary.is_empty() {
            self.done.push(format!("iteration {iteration}: {summary}"));
        }
        let Notes { decisions, assumptions, constraints, next_steps, .. } = notes::read_notes(message);
        let known = &mut self.notes;
        for (known, new) in [
            (&mut known.decisions, decisions),
            (&mut known.assumptions, assumptions),
            (&mut known.constraints, constraints),
        ] {
            known.retain(|item| !new.contains(item));
            known.extend(new);
            keep_newest(known);
        }
        if !next_steps.is_empty() {
            known.next_steps = next_steps;
        }
        keep_newest(&mut self.done);
    }
}

fn keep_newest(items: &mut Vec<String>) {
    let old = items.len().saturating_sub(MOST);
    items.drain(..old);
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Checkpoint {
    pub(crate) number: u32,
    pub(crate) at: Timestamp,
    pub(crate) iteration: u32,
    /// What the user wanted to be kept in mind.
    #[serde(default)]
    pub(crate) note: String,
    #[serde(default)]
    pub(crate) completed: Vec<String>,
    #[serde(default)]
    pub(crate) pending: Vec<String>,
    #[serde(default)]
    pub(crate) decisions: Vec<String>,
    #[serde(default)]
    pub(crate) assumptions: Vec<String>,
    #[serde(default)]
    pub(crate) constraints: Vec<String>,
    #[serde(default)]
    pub(crate) next_steps: Vec<String>,
    #[serde(default)]
    pub(crate) commit: Option<String>,
    /// A prompt has told it.
    #[serde(default)]
    pub(crate) carried: bool,
}

/// What is looked at for a checkpoint beside the session itself.
pub(crate) struct Around<'a> {
    /// The boxes of its plan, if it has one.
    pub(crate) plan: &'a [Checkbox],
    pub(crate) commit: Option<String>,
    pub(crate) note: &'a str,
    pub(crate) now: Timestamp,
}

impl Checkpoint {
    /// Where the session stands now. The same again is the same checkpoint.
    pub(crate) fn of(session: &Session, around: Around<'_>) -> Self {
        let Noted { done, notes, missing } = &session.noted;
        let titles = |wanted: fn(FileStatus) -> bool| -> Vec<String> {
            let needed = around.plan.iter().filter(|found| wanted(found.status) && !found.optional);
            needed.map(|found| clip(&found.title, 240).into_owned()).collect()
        };
        let ticked = titles(|status| status == FileStatus::Done);
        let open = titles(|status| matches!(status, FileStatus::Open | FileStatus::Failed));
        let (completed, pending) = if around.plan.is_empty() {
            (done.clone(), Some(missing.clone()).filter(|missing| !missing.is_empty()).into_iter().collect())
        } else {
            (ticked, open)
        };
        let last = session.checkpoint.as_ref();
        let new = Self {
            number: last.map_or(0, |last| last.number) + 1,
            at: around.now,
            iteration: session.iteration,
            note: clip(around.note.trim(), 1000).into_owned(),
            completed,
            pending,
            decisions: notes.decisions.clone(),
            assumptions: notes.assumptions.clone(),
            constraints: notes.constraints.clone(),
            next_steps: notes.next_steps.clone(),
            commit: around.commit,
            carried: false,
        };
        match last {
            Some(last) if !last.carried && last.says(&new) => last.clone(),
            Some(_) | None => new,
        }
    }

    /// Does it say the same as another one?
    fn says(&self, other: &Self) -> bool {
        let Self { number, at, .. } = *other;
        Self { number, at, ..self.clone() } == *other
    }

    /// As people and agents read it.
    pub(crate) fn text(&self) -> String {
        let commit = self.commit.as_ref().map(|commit| format!(", commit {}", clip(commit, 12)));
        let mut text = format!(
            "Where it stands (checkpoint {}, made in iteration {}{}):\n",
            self.number,
            self.iteration,
            commit.unwrap_or_default()
        );
        if !self.note.is_empty() {
            text.push_str(&format!("\nThe user says: {}\n", self.note));
        }
        for (name, items) in [
            ("Completed", &self.completed),
            ("Pending", &self.pending),
            ("Decisions", &self.decisions),
            ("Assumptions", &self.assumptions),
            ("Constraints", &self.constraints),
            ("Next steps", &self.next_steps),
        ] {
            list(&mut text, name, items);
        }
        text
    }
}

fn list(text: &mut String, name: &str, items: &[String]) {
    if items.is_empty() {
        return;
    }
    text.push_str(&format!("\n{name}:\n"));
    for (number, item) in items.iter().enumerate() {
        let line = format!("- {}\n", item.replace('\n', " "));
        if text.len() + line.len() > LONGEST {
            text.push_str(&format!("- … and {} more\n", items.len() - number));
            return;
        }
        text.push_str(&line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decisions_add_up_and_next_steps_are_the_last() {
        let mut noted = Noted::default();
        noted.take(1, "I began.\n\nDecisions:\n- one\n- two\n\nNext steps:\n- a\n", true);
        noted.take(2, "Only looked.\n\nDecisions:\n- two\n- three\n", false);
        assert_eq!(noted.done, ["iteration 1: I began."]);
        assert_eq!(noted.notes.decisions, ["one", "two", "three"]);
        assert_eq!(noted.notes.next_steps, ["a"]);
        noted.take(3, "Next steps:\n- b\n", true);
        assert_eq!(noted.notes.next_steps, ["b"]);
        for n in 0..40 {
            noted.take(n, &format!("Did {n}.\n\nDecisions:\n- number {n}\n"), true);
        }
        assert_eq!((noted.done.len(), noted.notes.decisions.len()), (MOST, MOST));
        assert_eq!(noted.notes.decisions[MOST - 1], "number 39");
    }

    #[test]
    fn a_long_text_is_cut_and_says_so() {
        let items: Vec<String> = (0..200).map(|n| format!("{n} {}", "x".repeat(100))).collect();
        let mut text = String::new();
        list(&mut text, "Completed", &items);
        assert!(text.len() <= LONGEST + 40 && text.contains("- … and 1"), "{}", text.len());
    }
}
