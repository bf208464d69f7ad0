//! The mark that an attempt is asked to put into its promise, as in `<promise>DONE 7f3a</promise>`.
//!
//! Nobody writes it by accident, and a promise retold from another attempt carries another one. It is
//! no secret and proves nothing: a promise without a mark counts too, since people's own prompts ask
//! for one.

use crate::ids::{Attempt, Iteration, LoopId};
use crate::text::fold_whitespace;

/// The mark of one attempt: a function of these alone, so that a journal read again means the same.
pub fn claim_mark(loop_id: LoopId, iteration: Iteration, attempt: Attempt) -> String {
    let numbers = iteration.to_be_bytes().into_iter().chain(attempt.to_be_bytes());
    let hash = loop_id.0.into_bytes().into_iter().chain(numbers).fold(FNV_OFFSET, |hash, byte| {
        // FNV-1a: short, and the same on every machine and in every version.
        (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME)
    });
    let folded = hash ^ (hash >> 32);
    format!("{:04x}", (folded ^ (folded >> 16)) & 0xffff)
}

const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;

/// What stands between `<promise>` and `</promise>`, judged by its mark.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Promised {
    /// One of the words, without a mark or with the right one.
    Counts,
    /// One of the words with the mark of another attempt.
    WrongMark(String),
    /// Something else.
    Other,
}

impl Promised {
    pub(super) fn read(content: &str, promises: &[&str], mark: Option<&str>) -> Self {
        let is_promise = |text: &str| promises.iter().any(|promise| promise.eq_ignore_ascii_case(text));
        if is_promise(content) {
            return Self::Counts;
        }
        let Some(mark) = mark else { return Self::Other };
        match content.rsplit_once(' ') {
            Some((word, given)) if is_promise(word) && given.eq_ignore_ascii_case(mark) => Self::Counts,
            Some((word, given)) if is_promise(word) && is_mark(given) => Self::WrongMark(given.to_owned()),
            Some(_) | None => Self::Other,
        }
    }
}

fn is_mark(text: &str) -> bool {
    (2..=8).contains(&text.len()) && text.chars().all(|c| c.is_ascii_hexdigit())
}

/// The mark of another attempt in a promise of this message, for the next prompt to tell.
pub fn wrong_mark(message: &str, promises: &[&str], mark: &str) -> Option<String> {
    let lower = message.to_ascii_lowercase();
    let mut found = None;
    for (at, open) in lower.match_indices("<promise>") {
        let inside = &message[at + open.len()..];
        let content = inside.split('<').next().unwrap_or_default();
        if let Promised::WrongMark(given) = Promised::read(&fold_whitespace(content), promises, Some(mark)) {
            found = Some(given);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use uuid::Uuid;

    use super::*;

    const PROMISES: [&str; 2] = ["DONE", "ALL GREEN"];

    #[test]
    fn every_attempt_has_a_mark_of_its_own() {
        let id = |number| LoopId(Uuid::from_u128(number));
        assert_eq!(claim_mark(id(7), 1, 1), claim_mark(id(7), 1, 1));
        let marks: HashSet<String> =
            (1..=50).flat_map(|n| [claim_mark(id(7), n, 1), claim_mark(id(7), 1, n + 1)]).collect();
        assert!(marks.len() >= 99, "{}", marks.len());
        assert!(marks.iter().all(|mark| is_mark(mark) && mark.len() == 4), "{marks:?}");
        assert_ne!(claim_mark(id(7), 1, 1), claim_mark(id(8), 1, 1));
        // Journals that were written keep their meaning.
        assert_eq!(claim_mark(id(1), 2, 3), "de69");
    }

    #[test]
    fn a_wrong_mark_is_told() {
        let check = |message: &str, expected: Option<&str>| {
            assert_eq!(wrong_mark(message, &PROMISES, "7f3a").as_deref(), expected, "{message}");
        };
        check("<promise>DONE 1c9e</promise>", Some("1c9e"));
        check("x\n<Promise> all green  1C9E </promise>", Some("1C9E"));
        check("<promise>DONE 7f3a</promise>", None);
        check("<promise>DONE</promise>", None);
        check("<promise>DONE soon</promise>", None);
        check("<promise>BLOCKED 1c9e</promise>", None);
        check("<promise>DONE 1c9e</promise> <promise>", Some("1c9e"));
        check("", None);
    }
}
