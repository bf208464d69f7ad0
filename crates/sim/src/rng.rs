//! Seeded chance: the same seed gives the same world, on every machine.

use std::time::Duration;

#[derive(Clone, Debug)]
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Another source that depends on this one and disturbs it no further.
    pub(crate) fn fork(&mut self) -> Self {
        Self(self.next())
    }

    /// SplitMix64: short, well known, and good for every seed.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    pub(crate) fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).unwrap_or(0)
    }

    pub(crate) fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        if from.is_empty() { None } else { from.get(self.index(from.len())) }
    }

    /// Short ones are more frequent than long ones, as in life.
    pub(crate) fn duration(&mut self, shortest: Duration, longest: Duration) -> Duration {
        let spread = u64::try_from(longest.saturating_sub(shortest).as_millis()).unwrap_or(u64::MAX);
        let (a, b) = (self.below(spread + 1), self.below(spread + 1));
        shortest + Duration::from_millis(a.min(b))
    }
}
