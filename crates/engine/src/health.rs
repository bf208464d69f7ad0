//! The pulse of the agent at work: what is heard of it while it runs, and what has to be looked at.
//! What follows from it is decided by [`wiggum_core::health`].

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use wiggum_core::decide::Plan;
use wiggum_core::event::Trouble;
use wiggum_core::figures;
use wiggum_core::health::{self, Novelty, Pulse, Sample};
use wiggum_core::state::add_millis;
use wiggum_workspace::crash;
use wiggum_workspace::process::{Stop, Tool};

use crate::clock::Clock;
use crate::contents::Contents;
use crate::engine::{Engine, RunningAgent};

/// How far the last sign of progress in `status.json` may be behind while nothing is recorded.
const LAST_BEAT_INTERVAL: Duration = Duration::from_secs(5);

/// Listens to an agent's output, on the thread that reads it.
pub(crate) struct Ear {
    novelty: Novelty,
    last: Arc<LastHeard>,
}

struct LastHeard {
    clock: Clock,
    /// When the agent was started, by both clocks.
    at: Timestamp,
    since: Duration,
    /// Milliseconds from then to when it last said something new.
    millis: AtomicU64,
}

impl Ear {
    pub(crate) fn hear(&mut self, bytes: &[u8]) {
        if self.novelty.is_new(bytes) {
            let span = self.last.clock.elapsed().saturating_sub(self.last.since);
            let millis = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
            self.last.millis.store(millis, Ordering::Relaxed);
        }
    }
}

/// What the engine knows of an agent's signs of progress.
pub(crate) struct Heart {
    pulse: Pulse,
    heard: Arc<LastHeard>,
    tools: Tools,
    contents: Contents,
}

/// The programs that an agent has at work.
#[derive(Default)]
struct Tools {
    /// As they were at the last look.
    seen: Vec<Tool>,
    /// What they used between two looks, in all.
    used: Duration,
}

impl Tools {
    /// Takes note of those at work now. What was not there at the last look may be gone in a moment.
    fn look(&mut self, now: Vec<Tool>) -> Duration {
        let before = |tool: &Tool| {
            let same = |seen: &&Tool| (seen.pid, seen.start) == (tool.pid, tool.start);
            self.seen.iter().find(same).map(|seen| seen.used)
        };
        let used = now.iter().filter_map(|tool| Some(tool.used.saturating_sub(before(tool)?)));
        self.used += used.sum::<Duration>();
        self.seen = now;
        self.used
    }
}

impl Heart {
    /// A heart that beats now, and the ear that listens to it.
    pub(crate) fn new(clock: Clock, live: bool) -> (Self, Ear) {
        let (at, since) = (clock.now(), clock.elapsed());
        let heard = Arc::new(LastHeard { clock, at, since, millis: AtomicU64::new(0) });
        let ear = Ear { novelty: Novelty::default(), last: Arc::clone(&heard) };
        let (tools, contents) = (Tools::default(), Contents::default());
        (Self { pulse: Pulse::new(at, live), heard, tools, contents }, ear)
    }

    pub(crate) fn beat(&mut self, at: Timestamp) {
        self.pulse.beat(at);
    }

    pub(crate) fn pulse(&mut self) -> &Pulse {
        let heard = add_millis(self.heard.at, self.heard.millis.load(Ordering::Relaxed));
        self.pulse.hear(heard);
        &self.pulse
    }
}

impl Engine<'_> {
    /// Adds to a plan what the figures and the health of the agent at work ask for.
    pub(crate) fn look_after_agent(&mut self, plan: &mut Plan) {
        let now = self.clock.now();
        let Some(agent) = self.agent.as_mut().filter(|agent| !agent.is_ending()) else { return };
        let state = &self.journal.state;
        for more in [
            figures::decide(state, &agent.figures, agent.model.as_deref(), now),
            health::decide(state, agent.heart.pulse(), now),
        ] {
            plan.actions.extend(more.actions);
            plan.wake_at = [plan.wake_at, more.wake_at].into_iter().flatten().min();
        }
    }

    /// Only when a moment has come at which it matters: nothing here is done again and again.
    pub(crate) fn feel_pulse(&mut self) {
        crash::point("before pulse");
        if let Some(agent) = &mut self.agent {
            // Also those that git ignores, such as what a build makes.
            let files = agent.heart.contents.look(self.settings.workspace(), &self.settings.no_work());
            let now = self.clock.now();
            // What runs beside an agent that has no tool call under way is nothing that it waits for.
            let at_work = !agent.tells_calls || agent.figures.has_open_calls();
            let tools = agent.process.tools().filter(|_| at_work);
            let tools = tools.map(|tools| agent.heart.tools.look(tools).into());
            agent.heart.pulse();
            agent.heart.pulse.feel(Sample { tools, files: Some(files) }, now);
        }
    }

    pub(crate) fn agent_speaks(&mut self) {
        self.status.refresh_after(LAST_BEAT_INTERVAL, self.clock.elapsed());
    }

    /// The last sign of progress, for whoever looks.
    pub(crate) fn last_beat(&mut self) -> Option<Timestamp> {
        self.agent.as_mut().map(|agent| agent.heart.pulse().last_beat)
    }

    pub(crate) fn give_up_agent(&mut self, trouble: Trouble) {
        let grace = self.settings.grace;
        if let Some(agent) = self.agent.as_mut().filter(|agent| agent.given_up.is_none()) {
            agent.given_up = Some(trouble);
            agent.process.stop(Stop::Asked, grace);
            crash::point("agent given up");
        }
    }
}

impl RunningAgent {
    fn is_ending(&self) -> bool {
        self.given_up.is_some() || self.stopping.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Machine;

    #[test]
    fn only_programs_that_are_there_in_two_looks_count() {
        let tool = |pid, used| Tool { pid, start: 1, used: Duration::from_millis(used) };
        let mut tools = Tools::default();
        assert_eq!(tools.look(vec![tool(1, 500), tool(2, 10)]), Duration::ZERO);
        // The second has gone, and another one that has just begun is there instead.
        assert_eq!(tools.look(vec![tool(1, 700), tool(3, 900)]), Duration::from_millis(200));
        assert_eq!(tools.look(vec![tool(3, 950)]), Duration::from_millis(250));
        let again = Tool { start: 2, ..tool(3, 2000) };
        assert_eq!(tools.look(vec![again]), Duration::from_millis(250), "another one with the same number");
    }

    #[test]
    fn only_what_is_new_is_heard_and_nothing_heard_is_progress() {
        let clock = Clock::starting_after(Arc::new(Machine::new()), None);
        let (mut heart, mut ear) = Heart::new(clock, true);
        let start = heart.pulse().clone();
        // Whatever the clock does, nothing is heard before it.
        while ear.last.clock.elapsed() < ear.last.since + Duration::from_millis(2) {
            std::hint::spin_loop();
        }
        ear.hear(b"... \r\x1b[2K\xe2\xa0\x8b");
        assert_eq!(*heart.pulse(), start);
        ear.hear(b"working 1");
        assert_ne!(*heart.pulse(), start);
        assert_eq!(heart.pulse().last_beat, start.last_beat);
    }
}
