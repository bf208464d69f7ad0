//! Handing over: the moment is the policy's, the figures are the agent's, and what the next attempt is
//! told comes from a checkpoint.

use wiggum_core::checkpoint::Checkpoint;
use wiggum_core::event::{ContextFill, Event};
use wiggum_core::handoff::{self, BY_AGENT, Trigger};
use wiggum_core::ids::TaskId;
use wiggum_core::signal::notes::Notes;
use wiggum_core::state::Stage;

use crate::engine::Engine;
use crate::error::chain;
use crate::nudge::OURS;

impl Engine<'_> {
    /// An agent tells how full its context is.
    pub(crate) fn heed_context(&mut self, used: u64, window: Option<u64>) {
        let (now, state) = (self.clock.now(), &self.journal.state);
        let Some(open) = state.open.here() else { return };
        // Some agents tell the size of their context only at the end: it is that of the last time.
        let window = window.or_else(|| state.handoffs.window(&open.agent));
        if let (Some(window), Some(agent)) = (window, &mut self.agent) {
            agent.figures.filled(ContextFill { used, window }, now);
        }
    }

    /// Asks the agent at work to wrap up if it can be spoken to; what follows is decided as always.
    pub(crate) fn start_handoff(&mut self, trigger: Trigger) {
        let Some(open) = self.journal.state.open.here() else { return };
        let at_work = open.stage == Stage::Agent && open.handoff.is_none();
        if !at_work || self.agent.as_ref().is_none_or(|agent| agent.stopping.is_some()) {
            return;
        }
        let (iteration, attempt) = (open.iteration, open.attempt);
        let asked = self.say(handoff::wrap_up(&trigger), OURS);
        self.record(Event::HandoffStarted { iteration, attempt, trigger, asked });
    }

    /// The agent's own word, at its end, that another should go on.
    pub(crate) fn note_handoff(&mut self, notes: &Notes) {
        let Some(open) = self.journal.state.open.here().filter(|open| open.handoff.is_none()) else {
            return;
        };
        if notes.handoff.is_some() {
            let (iteration, attempt) = (open.iteration, open.attempt);
            let trigger = Trigger::Requested { by: BY_AGENT.to_owned() };
            self.record(Event::HandoffStarted { iteration, attempt, trigger, asked: false });
        }
    }

    /// Where the work stands, for an attempt that goes on with it: as its own last checkpoint tells, or
    /// that of the iteration that has just handed over.
    pub(crate) fn continuation(&mut self, task: &TaskId, carried: bool) -> String {
        let state = &self.journal.state;
        let own =
            state.task(task).filter(|entry| entry.attempts > 0).and_then(|entry| entry.checkpoint.clone());
        let last = || state.handoffs.pending.as_ref().and(state.checkpoints.last.as_ref());
        let Some(sha256) = own.or_else(|| last().map(|last| last.sha256.clone())) else {
            return String::new();
        };
        let problem = match self.journal.text(&sha256) {
            Ok(Some(text)) => match serde_json::from_str::<Checkpoint>(&text) {
                Ok(checkpoint) => {
                    return handoff::continuation(&checkpoint.as_of_now(&self.journal.state), carried);
                }
                Err(error) => error.to_string(),
            },
            Ok(None) => "it is missing".to_owned(),
            Err(error) => chain(&error),
        };
        // The attempt can do without; whoever looks after the loop should know.
        let message = format!("the checkpoint {} cannot be used: {problem}", &sha256[..12.min(sha256.len())]);
        self.record(Event::Noticed { task: Some(task.clone()), message });
        String::new()
    }
}
