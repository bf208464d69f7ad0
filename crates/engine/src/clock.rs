//! The only clock: wall time at the start, then steady, so that nothing goes backwards while a
//! loop runs.

use std::time::{Duration, Instant};

use jiff::Timestamp;

#[derive(Clone, Debug)]
pub struct Clock {
    started: Timestamp,
    since: Instant,
}

impl Clock {
    /// Starts at the wall time, or where the journal ended if the wall clock was set back.
    pub fn starting_after(last: Option<Timestamp>) -> Self {
        let wall = Timestamp::now();
        Self { started: last.map_or(wall, |last| wall.max(last)), since: Instant::now() }
    }

    pub fn now(&self) -> Timestamp {
        self.started.saturating_add(self.since.elapsed()).unwrap_or(Timestamp::MAX)
    }

    /// How long until a moment; nothing if it has passed.
    pub fn until(&self, at: Timestamp) -> Duration {
        let millis = at.as_millisecond() - self.now().as_millisecond();
        Duration::from_millis(u64::try_from(millis).map_or(0, |millis| millis + 1))
    }
}
