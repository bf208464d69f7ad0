//! Tells a message's own words from those it repeats from its prompt.
//!
//! A prompt shows how to claim, so a line that also stands in the prompt proves nothing by itself:
//! an echo reproduces the lines around it too.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use crate::text::fold_whitespace;

pub(super) struct Echo {
    prompt: Windows,
    message: Vec<String>,
    /// The numbers of the message's meaningful lines: equal lines have the same.
    numbers: Vec<usize>,
    /// For every line of the message its place among the meaningful ones.
    places: Vec<Option<usize>>,
}

/// What the prompt has of the message: its lines, and which of them follow each other there. Prompts are long and
/// the messages that claim are short, so the other lines of the prompt are only looked up and forgotten.
struct Windows {
    singles: HashSet<usize>,
    pairs: HashSet<[usize; 2]>,
    triples: HashSet<[usize; 3]>,
}

impl Echo {
    pub(super) fn new<'a>(prompt: &str, message: impl Iterator<Item = &'a str>) -> Self {
        let mut lines: Vec<String> = Vec::new();
        let places = message
            .map(|line| {
                lines.push(meaningful(line)?.into_owned());
                Some(lines.len() - 1)
            })
            .collect();
        let mut known: HashMap<&str, usize> = HashMap::new();
        let mut numbers = Vec::with_capacity(lines.len());
        for line in &lines {
            let next = known.len();
            numbers.push(*known.entry(line).or_insert(next));
        }
        Self { prompt: Windows::new(prompt, &known), numbers, places, message: lines }
    }

    /// Is this line of the message (counted from 0) part of a passage taken from the prompt?
    pub(super) fn is_echo(&self, line: usize) -> bool {
        let Some(at) = self.places.get(line).copied().flatten() else { return false };
        if !self.prompt.singles.contains(&self.numbers[at]) {
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
            [only] => self.prompt.singles.contains(&self.numbers[*only]),
            [first, .., last] => (*first..*last).all(|at| self.common_pair(Some(at))),
        }
    }

    fn common_pair(&self, first: Option<usize>) -> bool {
        first.is_some_and(|at| {
            self.numbers[at..].first_chunk::<2>().is_some_and(|pair| self.prompt.pairs.contains(pair))
        })
    }

    fn in_common_triple(&self, at: usize) -> bool {
        (at.saturating_sub(2)..=at).any(|first| {
            self.numbers[first..]
                .first_chunk::<3>()
                .is_some_and(|triple| self.prompt.triples.contains(triple))
        })
    }
}

impl Windows {
    fn new(prompt: &str, known: &HashMap<&str, usize>) -> Self {
        let lines = prompt.lines().filter_map(meaningful);
        let numbers: Vec<Option<usize>> = lines.map(|line| known.get(&*line).copied()).collect();
        Self {
            singles: numbers.iter().flatten().copied().collect(),
            pairs: known_windows(&numbers).collect(),
            triples: known_windows(&numbers).collect(),
        }
    }
}

/// So many lines in a row of which the message has each.
fn known_windows<const N: usize>(numbers: &[Option<usize>]) -> impl Iterator<Item = [usize; N]> {
    numbers.windows(N).filter_map(|window| {
        let mut known = [0; N];
        for (place, number) in known.iter_mut().zip(window) {
            *place = (*number)?;
        }
        Some(known)
    })
}

/// The line with its whitespace folded, if there is any word in it.
fn meaningful(line: &str) -> Option<Cow<'_, str>> {
    let has_word = line.chars().any(char::is_alphanumeric);
    has_word.then(|| if is_folded(line) { line.into() } else { fold_whitespace(line).into() })
}

/// Surely, where nearly all lines are.
fn is_folded(line: &str) -> bool {
    let bytes = line.as_bytes();
    let is_plain = bytes.iter().all(|byte| (b' '..0x7f).contains(byte));
    is_plain && !line.starts_with(' ') && !line.ends_with(' ') && !line.contains("  ")
}
