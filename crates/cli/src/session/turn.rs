//! One stop of an agent, from what it said to what is answered: what stop hooks and dispatched agents
//! have in common.

use jiff::{Timestamp, Zoned};
use wiggum_core::event::Trouble;

use super::checks;
use super::judge::{self, Checked, Stop, Verdict};
use super::progress::Mark;
use super::state::{Place, Session};

/// What is known of an agent that stopped.
pub(crate) struct Turn<'a> {
    pub(crate) message: &'a str,
    /// The message is only about what keeps the agent from working.
    pub(crate) trouble: Option<Trouble>,
    pub(crate) used_tools: bool,
    /// It waits for work that it left running.
    pub(crate) waits: bool,
    pub(crate) cap: Option<u32>,
}

impl Turn<'_> {
    /// Runs the checks and judges; nothing if the loop was cancelled meanwhile. The session is not
    /// saved yet.
    pub(crate) fn judge(self, place: &Place, session: &mut Session, now: Timestamp) -> Option<Verdict> {
        let workspace = &place.workspace;
        let before = Mark::of(workspace);
        let earlier = session.seen.mark;
        let moved = earlier.is_none_or(|earlier| before.moved_since(earlier, self.used_tools));
        // An agent that cannot work has nothing to show.
        let checked = match self.trouble {
            Some(_) => Checked::NotConfigured,
            None => checks::run(session, workspace),
        };
        if place.is_cancelled() {
            return None;
        }
        let stop = Stop {
            message: self.message,
            trouble: self.trouble,
            used_tools: self.used_tools,
            progress: moved || self.waits,
            committed: earlier.is_some_and(|earlier| before.committed_since(earlier)),
            only_tests: earlier.is_some_and(|earlier| before.only_tests_since(earlier)),
            checked,
            cap: self.cap,
        };
        let verdict = judge::judge(session, &stop, now);
        // Checks change files too, and that is no progress of the agent's.
        session.seen.mark = Some(if session.rules.verify.is_empty() { before } else { Mark::of(workspace) });
        Some(verdict)
    }
}

/// Agents give a usage limit and the like as their message. A longer one is about limits, not stopped
/// by one.
pub(crate) fn trouble(message: &str) -> Option<Trouble> {
    let message = message.trim();
    let alone = message.len() < 300 && !message.contains('\n');
    alone.then(|| wiggum_agents::trouble_in_line(message, Zoned::now)).flatten()
}

/// What a failure of the agent's provider means: by its words, else by the kind that Claude Code gives.
pub(crate) fn trouble_in_failure(message: &str, kind: &str) -> Trouble {
    let told = wiggum_agents::trouble_in_complaint(message, &Zoned::now());
    told.unwrap_or(match kind {
        "rate_limit" | "overloaded" | "server_error" => Trouble::Overloaded,
        "authentication_failed" | "oauth_org_not_allowed" | "billing_error" | "model_not_found" => {
            Trouble::Authentication
        }
        _ => Trouble::Other,
    })
}
