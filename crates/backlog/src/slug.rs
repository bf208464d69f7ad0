//! Ids for tasks that have none of their own: made from their text, so that they stay the same
//! while boxes are ticked and lines move.

use std::collections::{HashMap, HashSet};

/// Long enough to tell tasks apart, short enough to type.
const MAX_CHARS: usize = 60;

/// The ids of one file, so that each is given out once.
#[derive(Default)]
pub(crate) struct Slugs {
    taken: HashSet<String>,
    /// The number to try next for a text already seen, so that many equal texts stay cheap.
    next_number: HashMap<String, u64>,
}

impl Slugs {
    /// Ids that the file spells out come first; made ones give way to them.
    pub(crate) fn reserve(&mut self, id: Option<&str>) {
        self.taken.extend(id.map(str::to_owned));
    }

    /// An id for this text: `write-tests`, then `write-tests-2`, …
    pub(crate) fn make(&mut self, text: &str) -> String {
        let slug = slug(text);
        let mut id = slug.clone();
        let next = self.next_number.entry(slug).or_insert(2);
        let base = id.len();
        while !self.taken.insert(id.clone()) {
            id.truncate(base);
            id.push_str(&format!("-{next}"));
            *next += 1;
        }
        id
    }
}

pub(crate) fn slug(text: &str) -> String {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let mut slug = String::new();
    for word in words {
        let word = word.to_lowercase();
        let length = slug.chars().count() + 1 + word.chars().count();
        if !slug.is_empty() && length > MAX_CHARS {
            break;
        }
        if !slug.is_empty() {
            slug.push('-');
        }
        slug.extend(word.chars().take(MAX_CHARS));
    }
    if slug.is_empty() { "task".to_owned() } else { slug }
}
