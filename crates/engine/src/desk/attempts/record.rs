//! What the journal says of one attempt, gathered event by event: whoever shows attempts begins here.

use jiff::Timestamp;
use wiggum_core::event::{BlobRef, Claim, Envelope, Event, Evidence, Exit, Flag, Verdict};
use wiggum_core::state::verdict_name;

/// An attempt, as far as it got.
#[derive(Clone, Debug, Default)]
pub struct Record {
    pub iteration: u32,
    pub attempt: u32,
    pub task: String,
    pub agent: String,
    pub command: String,
    /// The commit it started from.
    pub base: Option<String>,
    pub prompt: BlobRef,
    pub started_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    pub exit: Option<Exit>,
    pub agent_ms: Option<u64>,
    pub model: Option<String>,
    pub claim: Option<Claim>,
    /// The agent's last words, or what came of work that needs no agent.
    pub message: Option<BlobRef>,
    /// Why such work failed.
    pub trouble: Option<String>,
    /// What supports a claim, or would.
    pub supports: Vec<String>,
    pub evidence: Vec<Evidence>,
    pub flags: Vec<Flag>,
    /// Paths it changed, the first of them.
    pub changed: Vec<String>,
    pub changed_total: Option<u32>,
    pub verdict: Option<Verdict>,
    pub interrupted: Option<String>,
    /// What was said against its commit.
    pub refused: Option<BlobRef>,
    pub completed: bool,
    pub commit: Option<String>,
    /// The commit with its unfinished work, and where that is found.
    pub kept: Option<String>,
    pub kept_under: Option<String>,
}

impl Record {
    /// Takes an event of its iteration. One that was interrupted begins anew under its number.
    pub fn take(&mut self, Envelope { at, event, .. }: &Envelope) {
        match event {
            Event::IterationStarted { iteration, task, attempt, agent, command, base, prompt, .. } => {
                *self = Self {
                    iteration: *iteration,
                    attempt: *attempt,
                    task: task.to_string(),
                    agent: agent.clone(),
                    command: command.clone(),
                    base: base.clone(),
                    prompt: prompt.clone(),
                    started_at: *at,
                    ..Self::default()
                };
            }
            Event::AgentEnded { exit, message, duration, claim, flags, facts, .. } => {
                self.exit = Some(*exit);
                self.message = Some(message.clone());
                self.agent_ms = Some(duration.0);
                self.model.clone_from(&facts.model);
                self.claim.clone_from(claim);
                self.flags.extend(flags.iter().cloned());
            }
            Event::WorkEnded { duration, result, error, .. } => {
                self.agent_ms = Some(duration.0);
                self.message = Some(result.clone());
                self.trouble = error.as_ref().map(|error| error.message.clone());
            }
            Event::CommitsFound { commit, .. } => self.base = Some(commit.clone()),
            Event::TreeTaken { flags, .. } => self.flags.extend(flags.iter().cloned()),
            // What was seen of it was seen of another tree.
            Event::TreeAltered { .. } => {
                self.evidence.clear();
                (self.verdict, self.ended_at) = (None, None);
            }
            Event::EvidenceGathered { evidence, .. } => self.evidence.push(evidence.clone()),
            Event::WorkInspected { changed, changed_total, flags, .. } => {
                self.changed.clone_from(changed);
                self.changed_total = Some(*changed_total);
                self.flags.extend(flags.iter().cloned());
            }
            Event::Judged { verdict, signals, .. } => {
                self.supports = signals.iter().map(ToString::to_string).collect();
                self.verdict = Some(verdict.clone());
                self.ended_at = Some(*at);
            }
            Event::WorkKept { commit, reference, .. } => {
                self.kept = Some(commit.clone());
                self.kept_under = Some(reference.clone());
            }
            Event::TaskCompleted { commit, .. } => {
                self.commit.clone_from(commit);
                (self.completed, self.ended_at) = (true, Some(*at));
            }
            Event::CommitRefused { output, .. } => {
                self.refused = Some(output.clone());
                self.ended_at = Some(*at);
            }
            Event::Interrupted { reason, kept, .. } => {
                self.interrupted = Some(reason.clone());
                self.kept.clone_from(kept);
                self.ended_at = Some(*at);
            }
            _ => {}
        }
    }

    /// How it ended, in a word or two.
    pub fn outcome(&self) -> &'static str {
        match &self.verdict {
            _ if self.interrupted.is_some() => "interrupted",
            _ if self.refused.is_some() => "commit refused",
            _ if self.completed => "completed",
            Some(verdict) => verdict_name(verdict),
            None => "under way",
        }
    }

    /// Why it ended so.
    pub fn reasons(&self) -> Vec<String> {
        if let Some(reason) = &self.interrupted {
            return vec![reason.clone()];
        }
        if let Some(output) = &self.refused {
            return vec![output.excerpt.clone()];
        }
        match &self.verdict {
            Some(Verdict::Refuted { reasons } | Verdict::Held { reasons }) => reasons.clone(),
            Some(Verdict::Errored { failure }) => vec![failure.message.clone()],
            Some(Verdict::Unavailable { message, .. }) => vec![message.clone()],
            Some(Verdict::HandedOver { trigger }) => vec![trigger.to_string()],
            Some(Verdict::Accepted { .. } | Verdict::Unclaimed | Verdict::Asked) | None => {
                self.trouble.iter().cloned().collect()
            }
        }
    }
}
