//! The only clock: wall time at the start, then steady, so that nothing goes backwards while a
//! loop runs.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::host::Host;

#[derive(Clone)]
pub struct Clock {
    host: Arc<dyn Host>,
    started: Timestamp,
    since: Duration,
}

impl Clock {
    /// Starts at the wall time, or where the journal ended if the wall clock was set back.
    pub fn starting_after(host: Arc<dyn Host>, last: Option<Timestamp>) -> Self {
        let (wall, since) = (host.wall(), host.steady());
        Self { host, started: last.map_or(wall, |last| wall.max(last)), since }
    }

    pub fn now(&self) -> Timestamp {
        self.started.saturating_add(self.elapsed()).unwrap_or(Timestamp::MAX)
    }

    /// How long this clock has been running.
    pub fn elapsed(&self) -> Duration {
        self.host.steady().saturating_sub(self.since)
    }

    /// How long until a moment; nothing if it has passed.
    pub fn until(&self, at: Timestamp) -> Duration {
        let millis = at.as_millisecond() - self.now().as_millisecond();
        Duration::from_millis(u64::try_from(millis).map_or(0, |millis| millis + 1))
    }
}
