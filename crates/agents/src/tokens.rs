//! Adds up tokens that an agent tells several times.

use std::collections::VecDeque;

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
    /// Whether that changed the sum.
    pub(crate) fn note(&mut self, id: &str, usage: Usage) -> bool {
        if let Some((_, known)) = self.recent.iter_mut().rev().find(|(known, _)| known == id) {
            let changed = *known != usage;
            *known = usage;
            return changed;
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
        assert!(sum.note("a", output(5)));
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
}
