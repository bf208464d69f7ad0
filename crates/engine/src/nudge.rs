//! Words for an agent at work. They are put where a hook of the agent finds them ([`take`]); that they
//! are gone from there is how we know that they were heard.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use wiggum_core::event::Event;
use wiggum_workspace::beneath::{self, Links};

use crate::engine::Engine;

/// Tells an agent's hook where to look.
pub const VARIABLE: &str = "WIGGUM_NUDGES";

/// Who speaks where no person does.
pub(crate) const OURS: &str = "wiggum";

/// The nudges that wait for one agent.
#[derive(Clone, Debug)]
pub(crate) struct Nudges {
    prefix: PathBuf,
    waiting: Vec<Nudge>,
    last: u32,
}

#[derive(Clone, Debug)]
struct Nudge {
    path: PathBuf,
    text: String,
    by: String,
}

impl Nudges {
    /// What an engine that was killed left there is for the next agent: nobody's words are lost. Its own
    /// were for the agent of that time.
    pub(crate) fn open(prefix: PathBuf) -> Self {
        let (ours, left): (Vec<_>, Vec<_>) = lying(&prefix).into_iter().partition(|(_, path)| is_ours(path));
        ours.iter().for_each(|(_, path)| drop(fs::remove_file(path)));
        let last = left.last().map_or(0, |(number, _)| *number);
        let by = "somebody, before a restart".to_owned();
        let adopt = |(_, path): (u32, PathBuf)| {
            let text = beneath::text_of(&path).ok()?;
            Some(Nudge { path, text, by: by.clone() })
        };
        Self { waiting: left.into_iter().filter_map(adopt).collect(), prefix, last }
    }

    fn put(&mut self, text: String, by: &str) -> io::Result<()> {
        self.last += 1;
        let mut path = numbered(&self.prefix, self.last);
        if by == OURS {
            path.as_mut_os_string().push(OURS_END);
        }
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

/// How the name of a nudge ends that no person gave.
const OURS_END: &str = ".own";

fn is_ours(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().ends_with(OURS_END.as_bytes())
}

fn numbered(prefix: &Path, number: u32) -> PathBuf {
    let mut path = prefix.as_os_str().to_owned();
    path.push(format!("-{number}"));
    path.into()
}

/// The nudges there are, oldest first.
fn lying(prefix: &Path) -> Vec<(u32, PathBuf)> {
    let (Some(directory), Some(start)) = (prefix.parent(), prefix.file_name()) else { return Vec::new() };
    let start = format!("{}-", start.to_string_lossy());
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let number = |entry: fs::DirEntry| {
        let name = entry.file_name();
        let rest = name.to_str()?.strip_prefix(&start)?;
        let number = rest.strip_suffix(OURS_END).unwrap_or(rest).parse().ok()?;
        Some((number, entry.path()))
    };
    let mut found: Vec<(u32, PathBuf)> = entries.filter_map(number).collect();
    found.sort();
    found
}

/// A nudge is some sentences of a person.
const MOST: usize = 1024 * 1024;

/// For the agent's hook: takes what lies there, oldest first. Each is taken by one caller only.
pub fn take(prefix: &Path) -> Vec<String> {
    let take = |(_, path): (u32, PathBuf)| {
        let text = beneath::read_plain_text(&path, Links::Refuse, MOST).ok()?;
        fs::remove_file(&path).ok().map(|()| text)
    };
    lying(prefix).into_iter().filter_map(take).collect()
}

impl Engine<'_> {
    pub(crate) fn nudge(&mut self, text: String, by: &str) {
        if !self.say(text.clone(), by) {
            self.record_nudge(text, by.to_owned(), false);
        }
    }

    /// Puts words where the agent at work finds them; false if it cannot be spoken to.
    pub(crate) fn say(&mut self, text: String, by: &str) -> bool {
        let able = self.abilities_at_work().nudge;
        match self.agent.as_mut().filter(|_| able) {
            Some(agent) => agent.nudges.put(text, by).is_ok(),
            None => false,
        }
    }

    /// Some may have been heard.
    pub(crate) fn note_delivered(&mut self) {
        let taken = self.agent.as_mut().map(|agent| agent.nudges.taken()).unwrap_or_default();
        let now = self.clock.now();
        if let Some(agent) = self.agent.as_mut().filter(|_| !taken.is_empty()) {
            agent.heart.beat(now);
        }
        for nudge in taken {
            self.record_nudge(nudge.text, nudge.by, true);
        }
    }

    /// The agent has ended: what it has not heard, it will not hear.
    pub(crate) fn close_nudges(&mut self) {
        self.note_delivered();
        let left = self.agent.as_mut().map(|agent| agent.nudges.withdraw()).unwrap_or_default();
        // What the loop itself had to say was about that agent, not about the task.
        for nudge in left.into_iter().filter(|nudge| nudge.by != OURS) {
            self.record_nudge(nudge.text, nudge.by, false);
        }
    }

    fn record_nudge(&mut self, text: String, by: String, delivered: bool) {
        if let Some(open) = self.journal.state.open.here() {
            let (iteration, attempt) = (open.iteration, open.attempt);
            self.record(Event::Nudged { iteration, attempt, text, by, delivered });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_nudge_is_taken_once_and_what_is_left_comes_back() {
        let dir = tempfile::tempdir().unwrap();
        let prefix = dir.path().join("loop.nudge");
        let mut nudges = Nudges::open(prefix.clone());
        assert_eq!(take(&prefix), Vec::<String>::new());
        for text in ["one", "two"] {
            nudges.put(text.to_owned(), "me").unwrap();
        }
        assert!(nudges.taken().is_empty());
        assert_eq!(take(&prefix), ["one", "two"]);
        let heard = nudges.taken();
        assert_eq!(heard.iter().map(|nudge| nudge.text.as_str()).collect::<Vec<_>>(), ["one", "two"]);
        nudges.put("three".to_owned(), "me").unwrap();
        assert_eq!(nudges.withdraw().len(), 1);
        assert_eq!(take(&prefix), Vec::<String>::new());
    }

    #[test]
    fn what_a_killed_engine_left_is_for_the_next_agent() {
        let dir = tempfile::tempdir().unwrap();
        let prefix = dir.path().join("loop.nudge");
        Nudges::open(prefix.clone()).put("mind the gap".to_owned(), "me").unwrap();
        let mut nudges = Nudges::open(prefix.clone());
        nudges.put("and the door".to_owned(), "me").unwrap();
        assert_eq!(take(&prefix), ["mind the gap", "and the door"]);
        assert_eq!(nudges.taken().len(), 2);
    }

    #[test]
    fn what_a_killed_engine_itself_had_to_say_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let prefix = dir.path().join("loop.nudge");
        let mut nudges = Nudges::open(prefix.clone());
        nudges.put("wrap up".to_owned(), OURS).unwrap();
        assert_eq!(take(&prefix), ["wrap up"]);
        nudges.put("wrap up again".to_owned(), OURS).unwrap();
        Nudges::open(prefix.clone());
        assert_eq!(take(&prefix), Vec::<String>::new());
    }
}
