//! Tells a message's own words from those it repeats from its prompt.
//!
//! A prompt shows how to claim, so a line that also stands in the prompt proves nothing by itself:
//! an echo reproduces the lines around it too.

use std::collections::HashSet;

use crate::text::fold_whitespace;

pub(super) struct Echo {
    prompt: Windows,
    message: Vec<String>,
    /// For every line of the message its place among the meaningful ones.
    places: Vec<Option<usize>>,
}

struct Windows {
    singles: HashSet<String>,
    pairs: HashSet<[String; 2]>,
    triples: HashSet<[String; 3]>,
}

impl Echo {
    pub(super) fn new<'a>(prompt: &str, message: impl Iterator<Item = &'a str>) -> Self {
        let mut lines = Vec::new();
        let places = message
            .map(|line| {
                let line = meaningful(line)?;
                lines.push(line);
                Some(lines.len() - 1)
            })
            .collect();
        Self { prompt: Windows::new(prompt), message: lines, places }
    }

    /// Is this line of the message (counted from 0) part of a passage taken from the prompt?
    pub(super) fn is_echo(&self, line: usize) -> bool {
        let Some(at) = self.places.get(line).copied().flatten() else { return false };
        if !self.prompt.singles.contains(&self.message[at]) {
            return false;
        }
        if self.in_common_triple(at) {
            return true;
        }
        // The prompt may show an example of two lines ("All criteria met." and the promise). An
        // agent that ends with exactly those follows it; one that goes on, or that repeats the
        // words introducing the example, recites.
        let last = at + 1 == self.message.len();
        if last {
            self.common_pair(at.checked_sub(1)) && self.message[at - 1].ends_with(':')
        } else {
            self.common_pair(at.checked_sub(1)) || self.common_pair(Some(at))
        }
    }

    /// Do all these lines of the message stand in the prompt, one after the other?
    pub(super) fn is_echoed_block(&self, lines: std::ops::Range<usize>) -> bool {
        let places: Vec<usize> = lines.filter_map(|line| self.places.get(line).copied().flatten()).collect();
        match places.as_slice() {
            [] => false,
            [only] => self.prompt.singles.contains(&self.message[*only]),
            [first, .., last] => (*first..*last).all(|at| self.common_pair(Some(at))),
        }
    }

    fn common_pair(&self, first: Option<usize>) -> bool {
        first.is_some_and(|at| {
            self.message[at..].first_chunk::<2>().is_some_and(|pair| self.prompt.pairs.contains(pair))
        })
    }

    fn in_common_triple(&self, at: usize) -> bool {
        (at.saturating_sub(2)..=at).any(|first| {
            self.message[first..]
                .first_chunk::<3>()
                .is_some_and(|triple| self.prompt.triples.contains(triple))
        })
    }
}

impl Windows {
    fn new(prompt: &str) -> Self {
        let lines: Vec<String> = prompt.lines().filter_map(meaningful).collect();
        Self {
            singles: lines.iter().cloned().collect(),
            pairs: lines.windows(2).filter_map(|pair| pair.first_chunk().cloned()).collect(),
            triples: lines.windows(3).filter_map(|triple| triple.first_chunk().cloned()).collect(),
        }
    }
}

/// The line with its whitespace folded, if there is any word in it.
fn meaningful(line: &str) -> Option<String> {
    line.chars().any(char::is_alphanumeric).then(|| fold_whitespace(line))
}
