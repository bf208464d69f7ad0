//! What a loop remembers across tasks and runs: notes that agents leave for one another.
//!
//! Bounded in number and size; the newest are kept. What is known of a task's own attempts is kept
//! with the task ([`crate::tasks::AttemptMemory`]).

use std::collections::VecDeque;

use crate::ids::{Iteration, TaskId};

/// How many notes are kept, and how much text altogether.
const MAX_NOTES: usize = 40;
const MAX_BYTES: usize = 8 * 1024;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    notes: VecDeque<Remembered>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remembered {
    pub iteration: Iteration,
    pub task: TaskId,
    pub text: String,
}

impl Memory {
    /// All notes, oldest first.
    pub fn notes(&self) -> impl DoubleEndedIterator<Item = &Remembered> {
        self.notes.iter()
    }

    /// The newest notes that fit into so many bytes, oldest first.
    pub fn newest(&self, mut room: usize) -> Vec<String> {
        let mut texts: Vec<String> = Vec::new();
        for note in self.notes.iter().rev() {
            let text = format!("{}: {}", note.task, note.text);
            let Some(left) = room.checked_sub(text.len() + "- \n".len()) else { break };
            room = left;
            texts.push(text);
        }
        texts.reverse();
        texts
    }

    pub(crate) fn remember(&mut self, iteration: Iteration, task: &TaskId, learnt: &[String]) {
        for text in learnt {
            // Said again, it is only newer.
            self.notes.retain(|note| note.text != *text);
            self.notes.push_back(Remembered { iteration, task: task.clone(), text: text.clone() });
        }
        while self.notes.len() > MAX_NOTES || self.bytes() > MAX_BYTES {
            self.notes.pop_front();
        }
    }

    fn bytes(&self) -> usize {
        self.notes.iter().map(|note| note.text.len()).sum()
    }
}
