//! Adds up tokens that an agent tells several times.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use wiggum_core::event::Usage;

/// Figures of one message come close together, even with sub-agents at work beside it; so a few are
/// remembered, rather than all of an agent's life.
const REMEMBERED: usize = 64;

/// A sum over messages, of which each counts once, with the last figures told for it.
#[derive(Clone, Debug, Default)]
pub(crate) struct ByMessage {
    settled: Usage,
    recent: VecDeque<(String, Usage)>,
}

impl ByMessage {
    /// Whether these are the first figures of a message.
    pub(crate) fn note(&mut self, id: &str, usage: Usage) -> bool {
        if let Some((_, known)) = self.recent.iter_mut().rev().find(|(known, _)| known == id) {
            let first = *known == Usage::default() && usage != Usage::default();
            *known = usage;
            return first;
        }
        if self.recent.len() == REMEMBERED
            && let Some((_, usage)) = self.recent.pop_front()
        {
            self.settled += usage;
        }
        self.recent.push_back((id.to_owned(), usage));
        usage != Usage::default()
    }

    pub(crate) fn total(&self) -> Usage {
        let mut total = self.settled;
        for (_, usage) in &self.recent {
            total += *usage;
        }
        total
    }
}

/// What sessions had used before they were continued, for agents that tell a session's whole figures
/// each time. Shared by all starts of an agent. A session begun before our own start is not known
/// here: it is counted from its beginning, so rather too much than too little.
#[derive(Clone, Debug, Default)]
pub(crate) struct Before {
    sessions: Arc<Mutex<BTreeMap<String, Usage>>>,
}

/// Ids of sessions begin with the time, so the first of them are the oldest.
const SESSIONS_REMEMBERED: usize = 1000;

impl Before {
    /// What a session used since it was asked about last.
    pub(crate) fn since(&self, session: &str, now: Usage) -> Usage {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let before = sessions.insert(session.to_owned(), now).unwrap_or_default();
        if sessions.len() > SESSIONS_REMEMBERED {
            sessions.pop_first();
        }
        Usage {
            input_tokens: now.input_tokens.saturating_sub(before.input_tokens),
            output_tokens: now.output_tokens.saturating_sub(before.output_tokens),
            cache_read_tokens: now.cache_read_tokens.saturating_sub(before.cache_read_tokens),
            cache_write_tokens: now.cache_write_tokens.saturating_sub(before.cache_write_tokens),
            cost_usd: (now.cost_usd - before.cost_usd).max(0.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(output_tokens: u64) -> Usage {
        Usage { output_tokens, ..Usage::default() }
    }

    #[test]
    fn a_message_told_again_counts_once_with_its_last_figures() {
        let mut sum = ByMessage::default();
        assert!(sum.note("a", output(1)));
        assert!(!sum.note("a", output(1)));
        assert!(sum.note("b", output(10)));
        assert!(!sum.note("a", output(5)), "it is no other message");
        assert!(!sum.note("c", output(0)));
        assert_eq!(sum.total(), output(15));
    }

    #[test]
    fn long_lives_add_up_in_constant_memory() {
        let mut sum = ByMessage::default();
        for n in 0..1000 {
            sum.note(&n.to_string(), output(1));
            sum.note(&n.to_string(), output(2));
        }
        assert_eq!(sum.total(), output(2000));
        assert_eq!(sum.recent.len(), REMEMBERED);
    }

    #[test]
    fn a_continued_session_counts_from_where_it_was() {
        let before = Before::default();
        assert_eq!(before.since("a", output(10)), output(10));
        assert_eq!(before.clone().since("a", output(15)), output(5));
        assert_eq!(before.since("b", output(7)), output(7));
        let all = |n: u64| Usage {
            input_tokens: n,
            output_tokens: 2 * n,
            cache_read_tokens: 3 * n,
            cache_write_tokens: 4 * n,
            cost_usd: 0.0,
        };
        assert_eq!(before.since("all", all(10)), all(10));
        assert_eq!(before.since("all", all(15)), all(5));
        for n in 0..2 * SESSIONS_REMEMBERED {
            before.since(&format!("c{n}"), output(1));
        }
        assert_eq!(before.sessions.lock().unwrap().len(), SESSIONS_REMEMBERED);
    }
}
