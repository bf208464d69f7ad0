//! Work that needs no agent: a call of a tool, a file, a notice. The engine does it itself, so it has
//! seen what it claims.
//!
//! A call that must not be made twice is made once: it is recorded before it is sent, its end ends the
//! doubt, and without one a person is asked. Also here is what an agent says through tools of ours.

use crate::baseline::nothing_done;
use crate::event::{BlobRef, Claim, ClaimSource, Evidence, Exit, Failure, Question, Report};
use crate::ids::{Iteration, TaskId};
use crate::mutant::{Mutant, planted};
use crate::policy::Millis;
use crate::question;
use crate::state::{Loop, OpenIteration, Stage};

/// A call that was begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Server and tool, for people to read.
    pub what: String,
    /// Making it twice is the same as once.
    pub repeatable: bool,
}

/// What is known of a call that must not be made twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Happened,
    /// Nobody knows.
    InDoubt,
}

/// What the agent at work said through tools of ours.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reported {
    pub claim: Option<Claim>,
    pub questions: Vec<Question>,
    pub progress: Option<String>,
}

impl OpenIteration {
    /// May something have happened that must not happen twice, of which nobody knows the end?
    pub fn is_in_doubt(&self) -> bool {
        self.stage == Stage::Agent && self.call.as_ref().is_some_and(|call| !call.repeatable)
    }

    /// Did the engine see for itself that it is done?
    pub(crate) fn is_witnessed(&self) -> bool {
        let own = self.inspection.as_ref().map_or(&[][..], |seen| seen.written_checks.as_slice());
        self.witnessed || self.evidence.iter().any(|evidence| !own.contains(&evidence.command))
    }

    /// Are there checks, and had make nothing to do for any of them?
    pub fn ran_nothing(&self) -> bool {
        let is_idle = |evidence: &Evidence| nothing_done(&evidence.output.excerpt).is_some();
        !self.evidence.is_empty() && self.evidence.iter().all(is_idle)
    }

    pub(crate) fn take_report(&mut self, report: &Report) {
        let reported = &mut self.reported;
        match report {
            Report::Done { text } => {
                reported.claim = Some(Claim { text: text.clone(), source: ClaimSource::Tool });
            }
            Report::Question { question } => reported.questions.push(question.clone()),
            Report::Progress { text } => reported.progress = Some(text.clone()),
        }
    }
}

impl Loop {
    pub(crate) fn is_own_work(&self, task: &TaskId) -> bool {
        self.task(task).is_some_and(|entry| !entry.spec.work.is_agents())
    }

    pub(crate) fn start_call(&mut self, iteration: Iteration, server: &str, tool: &str, repeatable: bool) {
        if let Some(open) = self.open.get_mut(iteration) {
            open.call = Some(Call { what: format!("{tool} of {server}"), repeatable });
        }
    }

    pub(crate) fn end_work(
        &mut self,
        iteration: Iteration,
        duration: Millis,
        result: &BlobRef,
        error: Option<&Failure>,
        uncertain: bool,
    ) {
        let Some(open) = self.open.get_mut(iteration) else { return };
        open.stage = Stage::Judging;
        open.agent_duration = duration;
        open.message.clone_from(&result.excerpt);
        let once = open.call.as_ref().is_some_and(|call| !call.repeatable);
        let slot = self.tasks.slot(&open.task);
        let known = slot.map(|slot| &self.tasks.entries[slot]);
        // Of a call that is not made again, a person may be all that saw it.
        open.witnessed = once || known.is_some_and(|entry| entry.fate.is_none() || entry.result.is_some());
        if let Some(slot) = slot.filter(|_| (once || uncertain) && !planted(Mutant::ForgetsCalls)) {
            self.tasks.entries[slot].fate = match (uncertain, error) {
                (true, _) => Some(Fate::InDoubt),
                (false, None) => Some(Fate::Happened),
                (false, Some(_)) => None,
            };
        }
        if uncertain {
            let why = error.map_or("", |failure| failure.message.as_str());
            let call = open.call.as_ref().map_or("its work", |call| call.what.as_str());
            open.asked = vec![question::uncertain(&open.task, call, why)];
            return;
        }
        open.error = error.cloned();
        if error.is_some() {
            return;
        }
        open.exit = Some(Exit::Code { code: 0 });
        open.claim = Some(Claim { text: "carried out".to_owned(), source: ClaimSource::Work });
        if let Some(slot) = slot {
            self.tasks.entries[slot].result = Some(result.clone());
        }
    }

    /// Somebody saw that it did.
    pub(crate) fn call_happened(&mut self, task: &TaskId) {
        if let Some(slot) = self.tasks.slot(task) {
            let entry = &mut self.tasks.entries[slot];
            entry.fate = entry.fate.map(|_| Fate::Happened);
        }
    }
}
