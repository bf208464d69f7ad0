//! Which ready task comes next, kept up to date event by event so that picking never looks at the
//! whole backlog.
//!
//! The queue knows slots (positions in the loop's task table) and ranks, nothing of tasks. A rank
//! has a fixed part and a part that grows with the time since the last attempt, up to a cap; the
//! two kinds are kept apart so that both stay sorted while time passes.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Scores are counted in sixtieths of a point, so that a second of waiting is one unit.
const UNITS: i64 = 60;
/// Waiting earns a point a minute, up to 60 points.
const WAITING_CAP: i64 = 60 * UNITS;

/// What the order of ready tasks is made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rank {
    pub phase: u32,
    /// Fixed part of the score, in units; 0 for every task where file order decides.
    pub fixed: i64,
    /// Unix seconds of the last attempt; a task never tried has waited long enough.
    pub last_attempt: Option<i64>,
    /// Place in the file, which decides between equals.
    pub position: u32,
}

/// The score of a task without its waiting time.
pub fn fixed_score(priority: i64, complexity: u32, fan_out: usize, failed_attempts: u32) -> i64 {
    let others = 5 * i64::try_from(fan_out).unwrap_or(i64::MAX / 1000)
        - 2 * i64::from(complexity)
        - 3 * i64::from(failed_attempts);
    let points = priority.saturating_mul(10).saturating_add(others);
    points.saturating_mul(UNITS)
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReadyQueue {
    phases: BTreeMap<u32, Phase>,
}

type Key = (Reverse<i64>, u32, usize);

#[derive(Clone, Debug, Default, PartialEq)]
struct Phase {
    /// Never attempted, or waiting for longer than earns points: the score stands still.
    still: BTreeSet<Key>,
    /// Attempted lately: the score grows by one unit a second, for all of them alike, so the order
    /// by `fixed - last_attempt` holds at any time.
    rising: BTreeSet<Key>,
}

impl ReadyQueue {
    pub fn insert(&mut self, slot: usize, rank: &Rank, now_seconds: i64) {
        let phase = self.phases.entry(rank.phase).or_default();
        match rank.last_attempt {
            Some(last) if now_seconds.saturating_sub(last) < WAITING_CAP => {
                phase.rising.insert(rising_key(rank, last, slot));
            }
            Some(_) | None => {
                phase.still.insert(still_key(rank, slot));
            }
        }
    }

    pub fn remove(&mut self, slot: usize, rank: &Rank) {
        let Some(phase) = self.phases.get_mut(&rank.phase) else { return };
        phase.still.remove(&still_key(rank, slot));
        if let Some(last) = rank.last_attempt {
            phase.rising.remove(&rising_key(rank, last, slot));
        }
        if phase.still.is_empty() && phase.rising.is_empty() {
            self.phases.remove(&rank.phase);
        }
    }

    /// The best slot of a phase at the given time that `eligible` lets pass.
    pub fn best(
        &self,
        phase: u32,
        now_seconds: i64,
        rank_of: impl Fn(usize) -> Rank,
        eligible: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let phase = self.phases.get(&phase)?;
        let mut best: Option<Key> = phase
            .still
            .iter()
            .find(|(_, _, slot)| eligible(*slot))
            .map(|&(Reverse(score), position, slot)| (Reverse(score + WAITING_CAP), position, slot));
        for &(Reverse(rising), position, slot) in &phase.rising {
            // No later one can be better than this bound: the list is sorted by it.
            let bound = rising.saturating_add(now_seconds);
            if best.is_some_and(|(Reverse(score), ..)| score > bound) {
                break;
            }
            if !eligible(slot) {
                continue;
            }
            let key = (Reverse(score_at(&rank_of(slot), now_seconds)), position, slot);
            if best.is_none_or(|other| key < other) {
                best = Some(key);
            }
        }
        best.map(|(_, _, slot)| slot)
    }

    /// All slots, phase by phase; what was attempted lately comes last.
    pub fn slots(&self) -> impl Iterator<Item = usize> {
        self.phases
            .values()
            .flat_map(|phase| phase.still.iter().chain(&phase.rising))
            .map(|(_, _, slot)| *slot)
    }

    pub fn is_empty(&self) -> bool {
        self.phases.is_empty()
    }
}

fn score_at(rank: &Rank, now_seconds: i64) -> i64 {
    let waited =
        rank.last_attempt.map_or(WAITING_CAP, |last| now_seconds.saturating_sub(last).clamp(0, WAITING_CAP));
    rank.fixed.saturating_add(waited)
}

fn still_key(rank: &Rank, slot: usize) -> Key {
    (Reverse(rank.fixed), rank.position, slot)
}

fn rising_key(rank: &Rank, last: i64, slot: usize) -> Key {
    (Reverse(rank.fixed.saturating_sub(last)), rank.position, slot)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rank(fixed_points: i64, last_attempt: Option<i64>, position: u32) -> Rank {
        Rank { phase: 1, fixed: fixed_points * UNITS, last_attempt, position }
    }

    fn check(ranks: &[Rank], now: i64, expected: usize) {
        let mut queue = ReadyQueue::default();
        for (slot, rank) in ranks.iter().enumerate() {
            // Inserted at its last attempt, looked at later: the case where it has to move.
            queue.insert(slot, rank, rank.last_attempt.unwrap_or(now));
        }
        let by_hand = (0..ranks.len())
            .min_by_key(|&slot| (Reverse(score_at(&ranks[slot], now)), ranks[slot].position))
            .unwrap();
        assert_eq!(by_hand, expected, "the expectation itself");
        assert_eq!(queue.best(1, now, |slot| ranks[slot], |_| true), Some(expected));
    }

    #[test]
    fn the_higher_score_wins_and_the_file_decides_ties() {
        check(&[rank(0, None, 0), rank(10, None, 1)], 0, 1);
        check(&[rank(5, None, 1), rank(5, None, 0)], 0, 1);
    }

    #[test]
    fn a_task_tried_just_now_waits_behind_fresh_ones_and_comes_back_with_time() {
        let tried_now = rank(10, Some(1_000), 0);
        let fresh = rank(0, None, 1);
        check(&[tried_now, fresh], 1_000, 1);
        check(&[tried_now, fresh], 1_000 + 51 * 60, 0);
    }

    #[test]
    fn waiting_earns_at_most_sixty_points() {
        let waited_for_days = rank(0, Some(0), 0);
        check(&[waited_for_days, rank(1, None, 1)], 1_000_000, 1);
    }

    #[test]
    fn the_score_is_the_documented_sum() {
        assert_eq!(fixed_score(3, 2, 4, 1), (30 - 4 + 20 - 3) * UNITS);
    }

    #[test]
    fn agrees_with_a_full_sort_on_many_random_queues() {
        let mut seed = 7_u64;
        let mut next = |bound: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % bound
        };
        for _ in 0..500 {
            let now = 10_000;
            let ranks: Vec<Rank> = (0..next(20) + 1)
                .map(|position| {
                    let last = (next(2) == 0).then(|| i64::try_from(next(10_000)).unwrap());
                    rank(i64::try_from(next(40)).unwrap(), last, u32::try_from(position).unwrap())
                })
                .collect();
            let expected = (0..ranks.len())
                .min_by_key(|&slot| (Reverse(score_at(&ranks[slot], now)), ranks[slot].position))
                .unwrap();
            check(&ranks, now, expected);
        }
    }
}
