//! What was said so far, and how it is made to fit into the model's context.
//!
//! The provider's own figures say how full it is. When it gets tight, results of tools are dropped,
//! the oldest first: the model can call the tool again, while its own thoughts and the task cannot
//! be had again.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::provider::Protocol;
use crate::session::Record;

/// Above this part of the window room is made.
const TIGHT: f64 = 0.8;
/// So much is kept then. Well below, because every change at the beginning voids the provider's cache.
const ROOMY: f64 = 0.5;
/// Above this part nothing useful can be said any more.
const FULL: f64 = 0.95;
/// What a token is worth in bytes of code and English, roughly; the next answer's figures correct it.
const BYTES_PER_TOKEN: usize = 4;
/// Shorter results are not worth a note in their place.
const WORTH_DROPPING: usize = 200;

/// One thing that was said.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Entry {
    User(String),
    /// As the provider sent it, with all fields, known or not.
    Assistant(Value),
    Results(Vec<ToolResult>),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ToolResult {
    pub(crate) id: String,
    pub(crate) text: String,
    pub(crate) is_error: bool,
}

#[derive(Debug)]
pub(crate) struct Conversation {
    pub(crate) system: String,
    pub(crate) entries: Vec<Entry>,
    /// Tokens, by the provider's last figures.
    used: u64,
    window: Option<u64>,
}

/// How much room there is for the next answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    Enough,
    /// There is, since so many results were dropped.
    Made(usize),
    None,
}

impl Conversation {
    pub(crate) fn new(system: String, prompt: String, window: Option<u64>) -> Self {
        Self { system, entries: vec![Entry::User(prompt)], used: 0, window }
    }

    /// Goes on with what was said before.
    pub(crate) fn after(mut self, before: Record) -> Self {
        self.used = before.used;
        self.entries.splice(0..0, before.entries);
        self
    }

    pub(crate) fn record(&self, protocol: Protocol) -> Record {
        Record::new(protocol, self.used, self.entries.clone())
    }

    pub(crate) fn window(&self) -> Option<u64> {
        self.window
    }

    /// How many tokens it has: by the provider's figures, before the first by its length.
    pub(crate) fn size(&self) -> u64 {
        if self.used > 0 {
            return self.used;
        }
        let of = |entry: &Entry| match entry {
            Entry::User(text) => tokens(text),
            Entry::Assistant(_) => 0,
            Entry::Results(results) => results.iter().map(|result| tokens(&result.text)).sum(),
        };
        tokens(&self.system) + self.entries.iter().map(of).sum::<u64>()
    }

    pub(crate) fn note_used(&mut self, tokens: u64) {
        self.used = tokens;
    }

    /// Adds what tools gave back, which the provider has not counted yet.
    pub(crate) fn add_results(&mut self, results: Vec<ToolResult>) {
        self.used += results.iter().map(|result| tokens(&result.text)).sum::<u64>();
        self.entries.push(Entry::Results(results));
    }

    /// Makes room if it is tight and the window is known.
    pub(crate) fn make_room(&mut self) -> Room {
        let Some(window) = self.window else { return Room::Enough };
        let part = |part: f64| (window as f64 * part) as u64;
        if self.used <= part(TIGHT) {
            return Room::Enough;
        }
        let dropped = self.drop_results(part(ROOMY));
        match dropped {
            _ if self.used > part(FULL) => Room::None,
            0 => Room::Enough,
            count => Room::Made(count),
        }
    }

    /// Makes all the room there is, after the provider said that it is too much.
    pub(crate) fn make_most_room(&mut self) -> Room {
        match self.drop_results(0) {
            0 => Room::None,
            count => Room::Made(count),
        }
    }

    /// Drops results until no more than this is used, the last ones excepted: they are what the model
    /// wants to know now.
    fn drop_results(&mut self, goal: u64) -> usize {
        let last = self.entries.iter().rposition(|entry| matches!(entry, Entry::Results(_)));
        let older = &mut self.entries[..last.unwrap_or(0)];
        let results = older.iter_mut().filter_map(|entry| match entry {
            Entry::Results(results) => Some(results),
            Entry::User(_) | Entry::Assistant(_) => None,
        });
        let mut dropped = 0;
        for result in results.flatten().filter(|result| result.text.len() > WORTH_DROPPING) {
            if self.used <= goal && goal > 0 {
                break;
            }
            let note =
                format!("[dropped to make room: {} bytes; call the tool again if needed]", result.text.len());
            self.used = self.used.saturating_sub(tokens(&result.text) - tokens(&note));
            result.text = note;
            dropped += 1;
        }
        dropped
    }
}

fn tokens(text: &str) -> u64 {
    tokens_in(text.len())
}

/// About how many tokens so many bytes of text are.
pub(crate) fn tokens_in(bytes: usize) -> u64 {
    (bytes / BYTES_PER_TOKEN) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A conversation with results of these lengths, of which the provider counted so many tokens.
    fn conversation(lengths: &[usize], window: Option<u64>, used: u64) -> Conversation {
        let mut conversation = Conversation::new("s".to_owned(), "p".to_owned(), window);
        for length in lengths {
            let result = ToolResult { id: "i".to_owned(), text: "x".repeat(*length), is_error: false };
            conversation.add_results(vec![result]);
        }
        conversation.note_used(used);
        conversation
    }

    fn kept(conversation: &Conversation) -> Vec<bool> {
        let texts = conversation.entries.iter().filter_map(|entry| match entry {
            Entry::Results(results) => Some(results[0].text.starts_with('x')),
            Entry::User(_) | Entry::Assistant(_) => None,
        });
        texts.collect()
    }

    #[test]
    fn nothing_is_dropped_while_there_is_room() {
        let mut roomy = conversation(&[4000, 4000], Some(10_000), 8000);
        assert_eq!((roomy.make_room(), kept(&roomy)), (Room::Enough, vec![true, true]));
        let mut unknown = conversation(&[4000, 4000], None, 1_000_000);
        assert_eq!((unknown.make_room(), kept(&unknown)), (Room::Enough, vec![true, true]));
    }

    #[test]
    fn the_oldest_results_go_first_and_no_more_than_needed() {
        let mut tight = conversation(&[8000, 8000, 8000, 8000], Some(10_000), 8500);
        assert_eq!(tight.make_room(), Room::Made(2));
        assert_eq!(kept(&tight), [false, false, true, true]);
        // The next time there is room again.
        assert_eq!(tight.make_room(), Room::Enough);
    }

    #[test]
    fn the_last_results_and_short_ones_stay() {
        let mut tight = conversation(&[100, 30_000], Some(10_000), 9000);
        assert_eq!((tight.make_room(), kept(&tight)), (Room::Enough, vec![true, true]));
        tight.note_used(9600);
        assert_eq!((tight.make_room(), kept(&tight)), (Room::None, vec![true, true]));
        assert_eq!(tight.make_most_room(), Room::None);
    }

    #[test]
    fn when_the_provider_says_so_all_older_results_go() {
        let mut conversation = conversation(&[4000, 4000, 4000], None, 10);
        assert_eq!(conversation.make_most_room(), Room::Made(2));
        assert_eq!(kept(&conversation), [false, false, true]);
    }

    #[test]
    fn results_count_before_the_provider_counted_them() {
        let mut conversation = conversation(&[40_000], Some(20_000), 1000);
        let text = "x".repeat(72_000);
        conversation.add_results(vec![ToolResult { id: "i".to_owned(), text, is_error: false }]);
        assert_eq!(conversation.make_room(), Room::Made(1));
        assert_eq!(kept(&conversation), [false, true]);
    }
}
