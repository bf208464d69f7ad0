//! Words for an agent at work. They are put where a hook of the agent finds them ([`take`]); that they
//! are gone from there is how we know that they were heard.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use wiggum_core::event::Event;
use wiggum_core::ids::LoopId;

use crate::engine::Engine;

/// Tells an agent's hook where to look.
pub const VARIABLE: &str = "WIGGUM_NUDGES";

/// The nudges of one loop: those that lie there, and what is known of them.
#[derive(Clone, Debug)]
pub struct Nudges {
    prefix: PathBuf,
    waiting: Vec<Nudge>,
    count: u32,
}

#[derive(Clone, Debug)]
struct Nudge {
    path: PathBuf,
    text: String,
    by: String,
}

impl Nudges {
    pub(crate) fn new(directory: PathBuf, id: LoopId) -> Self {
        Self { prefix: directory.join(format!("{id}.nudge")), waiting: Vec::new(), count: 0 }
    }

    /// What the paths of all nudges begin with.
    pub(crate) fn prefix(&self) -> PathBuf {
        self.prefix.clone()
    }

    fn put(&mut self, text: String, by: &str) -> io::Result<()> {
        self.count += 1;
        let path = numbered(&self.prefix, self.count);
        // Whole or not at all: the hook may look at any moment.
        let half = path.with_extension("half");
        fs::write(&half, &text)?;
        fs::rename(&half, &path)?;
        self.waiting.push(Nudge { path, text, by: by.to_owned() });
        Ok(())
    }

    /// Those that were taken since the last look.
    fn taken(&mut self) -> Vec<Nudge> {
        self.waiting.extract_if(.., |nudge| !nudge.path.exists()).collect()
    }

    /// Takes back what nobody took.
    fn withdraw(&mut self) -> Vec<Nudge> {
        let left = std::mem::take(&mut self.waiting);
        left.into_iter().inspect(|nudge| drop(fs::remove_file(&nudge.path))).collect()
    }
}

fn numbered(prefix: &Path, number: u32) -> PathBuf {
    let mut path = prefix.as_os_str().to_owned();
    path.push(format!("-{number}"));
    path.into()
}

/// For the agent's hook: takes what lies there, oldest first. Each is taken by one caller only.
pub fn take(prefix: &Path) -> Vec<String> {
    let mut taken = Vec::new();
    for number in 1..=u32::from(u16::MAX) {
        let path = numbered(prefix, number);
        match fs::read_to_string(&path) {
            Ok(text) if fs::remove_file(&path).is_ok() => taken.push(text),
            Ok(_) => {}
            // They are numbered without gaps, but those before may be taken.
            Err(_) if later_exists(prefix, number) => {}
            Err(_) => break,
        }
    }
    taken
}

/// An agent's run has few nudges; looking a little ahead passes those that were taken before.
fn later_exists(prefix: &Path, number: u32) -> bool {
    (number + 1..number + 64).any(|later| numbered(prefix, later).exists())
}

impl Engine<'_> {
    pub(crate) fn nudge(&mut self, text: String, by: &str) {
        let able = self
            .journal
            .state
            .open
            .as_ref()
            .and_then(|open| self.settings.agent(&open.agent))
            .is_some_and(|agent| agent.driver.abilities().nudge);
        let put = match self.agent.as_mut().filter(|_| able) {
            Some(agent) => agent.nudges.put(text.clone(), by).is_ok(),
            None => false,
        };
        if !put {
            self.record_nudge(text, by.to_owned(), false);
        }
    }

    /// Some may have been heard.
    pub(crate) fn note_delivered(&mut self) {
        let taken = self.agent.as_mut().map(|agent| agent.nudges.taken()).unwrap_or_default();
        for nudge in taken {
            self.record_nudge(nudge.text, nudge.by, true);
        }
    }

    /// The agent has ended: what it has not heard, it will not hear.
    pub(crate) fn close_nudges(&mut self) {
        self.note_delivered();
        let left = self.agent.as_mut().map(|agent| agent.nudges.withdraw()).unwrap_or_default();
        for nudge in left {
            self.record_nudge(nudge.text, nudge.by, false);
        }
    }

    fn record_nudge(&mut self, text: String, by: String, delivered: bool) {
        if let Some(open) = &self.journal.state.open {
            let (iteration, attempt) = (open.iteration, open.attempt);
            self.record(Event::Nudged { iteration, attempt, text, by, delivered });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[test]
    fn each_nudge_is_taken_once_and_what_is_left_comes_back() {
        let dir = tempfile::tempdir().unwrap();
        let mut nudges = Nudges::new(dir.path().to_owned(), LoopId(Uuid::nil()));
        assert_eq!(take(&nudges.prefix()), Vec::<String>::new());
        for text in ["one", "two"] {
            nudges.put(text.to_owned(), "me").unwrap();
        }
        assert!(nudges.taken().is_empty());
        assert_eq!(take(&nudges.prefix()), ["one", "two"]);
        assert_eq!(
            nudges.taken().iter().map(|nudge| nudge.text.as_str()).collect::<Vec<_>>(),
            ["one", "two"]
        );
        nudges.put("three".to_owned(), "me").unwrap();
        assert_eq!(take(&nudges.prefix()), ["three"], "numbers that are gone are passed over");
        nudges.put("four".to_owned(), "me").unwrap();
        assert_eq!(nudges.withdraw().len(), 2, "the third was not noted yet");
        assert_eq!(take(&nudges.prefix()), Vec::<String>::new());
    }
}
