//! Everything that was seen to happen with real agents and that a driver has to tell apart.

mod claude;
mod codex;
mod copilot;
mod gemini;

use crate::agents::Agent;
use crate::case::Case;

pub fn of(agent: Agent) -> Vec<Case> {
    match agent {
        Agent::Claude => claude::cases(),
        Agent::Codex => codex::cases(),
        Agent::Copilot => copilot::cases(),
        Agent::Gemini => gemini::cases(),
    }
}

/// A time within the next hour, in seconds of the epoch: of today, so that agents tell the hour alone.
fn soon() -> u64 {
    #[expect(clippy::disallowed_methods, reason = "agents compare it with the real clock")]
    let now = std::time::SystemTime::now();
    let since = now.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    since.as_secs() + 1800
}
