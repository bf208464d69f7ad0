//! When a message that could not be sent is tried again, and when no more: a pure judgement.

use jiff::{SignedDuration, Timestamp};

/// The pause after the first failure, in milliseconds; doubles with each.
const FIRST: u64 = 250;
/// Nobody waits longer than this for a receiver that is back.
const LONGEST: u64 = 5 * 60 * 1000;
/// A receiver may ask for more patience than that, within reason.
const ASKED: SignedDuration = SignedDuration::from_hours(1);
/// So often a receiver may say that it is the message that is wrong.
const REFUSALS: u32 = 3;

/// What became of an attempt that failed, as far as trying again goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    /// It may work later: nobody there, overloaded, not let in.
    Later,
    /// The receiver says when.
    After(SignedDuration),
    /// The receiver does not want this very message.
    Refused,
    /// The receiver wants nothing any more.
    Never,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    Try(Timestamp),
    GiveUp,
}

/// After so many attempts, the last of which failed just now, for something that is too old from `until` on. The
/// jitter, from 0 to 1, keeps those that failed together from coming back together.
pub(crate) fn next(again: Again, attempts: u32, now: Timestamp, until: Timestamp, jitter: f64) -> Next {
    let usual = FIRST.saturating_mul(1 << attempts.saturating_sub(1).min(20)).min(LONGEST);
    let spread = SignedDuration::from_secs_f64(usual as f64 / 1000.0 * (0.75 + 0.5 * jitter));
    let pause = match again {
        Again::Never => return Next::GiveUp,
        Again::Refused if attempts >= REFUSALS => return Next::GiveUp,
        Again::Refused | Again::Later => spread,
        Again::After(asked) => asked.clamp(spread, ASKED.max(spread)),
    };
    match now.checked_add(pause) {
        Ok(at) if at <= until => Next::Try(at),
        Ok(_) | Err(_) => Next::GiveUp,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::new(1_800_000_000 + second, 0).unwrap()
    }

    fn pause(again: Again, attempts: u32, jitter: f64) -> Option<f64> {
        match next(again, attempts, at(0), at(86_400), jitter) {
            Next::Try(when) => Some(when.duration_since(at(0)).as_secs_f64()),
            Next::GiveUp => None,
        }
    }

    #[test]
    fn pauses_double_up_to_a_bound_and_are_spread() {
        assert_eq!(pause(Again::Later, 1, 0.5), Some(0.25));
        assert_eq!(pause(Again::Later, 3, 0.5), Some(1.0));
        assert_eq!(pause(Again::Later, 3, 0.0), Some(0.75));
        assert_eq!(pause(Again::Later, 3, 1.0), Some(1.25));
        assert_eq!(pause(Again::Later, 400, 0.5), Some(300.0));
    }

    #[test]
    fn a_receiver_may_ask_for_patience_within_reason() {
        let ask = |seconds| Again::After(SignedDuration::from_secs(seconds));
        assert_eq!(pause(ask(30), 1, 0.5), Some(30.0));
        assert_eq!(pause(ask(0), 1, 0.5), Some(0.25));
        assert_eq!(pause(ask(1_000_000), 1, 0.5), Some(3600.0));
    }

    #[test]
    fn it_is_given_up_when_it_is_refused_or_too_old() {
        assert_eq!(pause(Again::Never, 1, 0.5), None);
        assert!(pause(Again::Refused, 2, 0.5).is_some());
        assert_eq!(pause(Again::Refused, 3, 0.5), None);
        assert_eq!(next(Again::Later, 1, at(100), at(100), 0.5), Next::GiveUp);
    }
}
