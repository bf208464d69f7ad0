//! One attempt at a task in full: how the agent ended, what it claimed, the evidence, what was flagged, the
//! verdict, and what it changed.

use jiff::Timestamp;
use serde::Serialize;
use wiggum_core::event::{BlobRef, Envelope, Event, Flag, Verdict};
use wiggum_core::ids::Seq;
use wiggum_core::state::verdict_name;
use wiggum_store::LoopRecord;
use wiggum_workspace::git::{Git, Target};

use crate::desk::chronicle::{Span, iteration_of};
use crate::desk::{DeskError, Loops};
use crate::words::short;

/// What git calls the tree of a repository without files.
pub const EMPTY_TREE: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";

/// How much is read to find the end of an attempt: it has some ten events, and its checks.
const MOST_EVENTS: u32 = 2000;

/// An attempt, as far as it got.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Attempt {
    pub iteration: u32,
    pub attempt: u32,
    pub task: String,
    pub agent: String,
    pub command: String,
    pub started_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
    pub outcome: String,
    /// Why it ended so.
    pub reasons: Vec<String>,
    /// How the agent ended, in words.
    pub exit: Option<String>,
    pub agent_ms: Option<u64>,
    pub model: Option<String>,
    pub claim: Option<String>,
    /// The agent's last words.
    pub message: Option<TextRef>,
    pub prompt: Option<TextRef>,
    pub evidence: Vec<EvidenceShown>,
    pub flags: Vec<Flag>,
    /// Paths it changed, the first of them.
    pub changed: Vec<String>,
    pub changed_total: u32,
    pub commit: Option<String>,
    /// The commit with its unfinished work.
    pub kept: Option<String>,
    /// The commit it started from.
    pub base: Option<String>,
}

/// A check, and what it came to.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EvidenceShown {
    pub name: String,
    pub command: String,
    pub passed: bool,
    pub exit: String,
    pub duration_ms: u64,
    pub output: TextRef,
}

/// A stored text: its end, and by which hash the whole of it is found.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TextRef {
    pub sha256: String,
    pub bytes: u64,
    pub end: String,
}

impl From<&BlobRef> for TextRef {
    fn from(blob: &BlobRef) -> Self {
        Self { sha256: blob.sha256.clone(), bytes: blob.bytes, end: blob.excerpt.clone() }
    }
}

/// What an attempt changed.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Diff {
    /// What it is a difference of.
    pub of: String,
    pub text: String,
}

/// What the journal says of an attempt until this event.
pub fn read(loops: &Loops, record: &LoopRecord, span: &Span, until: Seq) -> Result<Attempt, DeskError> {
    let last = span.ended_seq.map_or(until, |ended| ended.min(until));
    let events = u32::try_from((last + 1).saturating_sub(span.seq)).unwrap_or(MOST_EVENTS).min(MOST_EVENTS);
    // Unfinished work is kept right after the verdict.
    let mut attempt = Attempt::default();
    loops.store.for_some(record.id, span.seq.saturating_sub(1), events + 4, |envelope| {
        if envelope.seq <= until && iteration_of(&envelope.event) == Some(span.iteration) {
            attempt.take(&envelope);
        }
    })?;
    Ok(attempt)
}

impl Attempt {
    fn take(&mut self, Envelope { at, event, .. }: &Envelope) {
        match event {
            Event::IterationStarted { iteration, task, attempt, agent, command, base, prompt, .. } => {
                *self = Self {
                    iteration: *iteration,
                    attempt: *attempt,
                    task: task.to_string(),
                    agent: agent.clone(),
                    command: command.clone(),
                    base: base.clone(),
                    prompt: Some(prompt.into()),
                    started_at: Some(*at),
                    outcome: "under way".to_owned(),
                    ..Self::default()
                };
            }
            Event::AgentEnded { exit, message, duration, claim, flags, facts, .. } => {
                self.exit = Some(exit.to_string());
                self.message = Some(message.into());
                self.agent_ms = Some(duration.0);
                self.model.clone_from(&facts.model);
                self.claim = claim.as_ref().map(|claim| claim.text.clone());
                self.flags.extend(flags.iter().cloned());
            }
            Event::WorkEnded { duration, result, error, .. } => {
                self.agent_ms = Some(duration.0);
                self.message = Some(result.into());
                self.reasons.extend(error.iter().map(|error| error.message.clone()));
            }
            Event::TreeTaken { flags, .. } => self.flags.extend(flags.iter().cloned()),
            Event::TreeAltered { .. } => self.evidence.clear(),
            Event::EvidenceGathered { evidence, .. } => self.evidence.push(EvidenceShown {
                name: evidence.name.clone(),
                command: evidence.command.clone(),
                passed: evidence.passed(),
                exit: evidence.exit.to_string(),
                duration_ms: evidence.duration.0,
                output: (&evidence.output).into(),
            }),
            Event::WorkInspected { changed, changed_total, flags, .. } => {
                self.changed.clone_from(changed);
                self.changed_total = *changed_total;
                self.flags.extend(flags.iter().cloned());
            }
            Event::Judged { verdict, .. } => self.judge(verdict, *at),
            Event::WorkKept { commit, .. } => self.kept = Some(commit.clone()),
            Event::TaskCompleted { commit, .. } => {
                self.commit.clone_from(commit);
                self.end("completed", *at);
            }
            Event::CommitRefused { output, .. } => {
                self.reasons = vec![output.excerpt.clone()];
                self.end("commit refused", *at);
            }
            Event::Interrupted { reason, kept, .. } => {
                self.reasons = vec![reason.clone()];
                self.kept.clone_from(kept);
                self.end("interrupted", *at);
            }
            _ => {}
        }
    }

    fn judge(&mut self, verdict: &Verdict, at: Timestamp) {
        self.end(verdict_name(verdict), at);
        match verdict {
            Verdict::Refuted { reasons } | Verdict::Held { reasons } => self.reasons.clone_from(reasons),
            Verdict::Errored { failure } => self.reasons = vec![failure.message.clone()],
            Verdict::Unavailable { message, .. } => self.reasons = vec![message.clone()],
            Verdict::HandedOver { trigger } => self.reasons = vec![trigger.to_string()],
            Verdict::Accepted { .. } | Verdict::Unclaimed | Verdict::Asked => {}
        }
    }

    fn end(&mut self, outcome: &str, at: Timestamp) {
        outcome.clone_into(&mut self.outcome);
        self.ended_at = Some(at);
    }

    /// What it changed: in its commit, in the work that was kept, or so far in the work tree.
    pub fn diff(&self, loops: &Loops) -> Option<Diff> {
        let git = Git::discover(&loops.workspace).ok().flatten()?;
        let base = self.base.as_deref().unwrap_or(EMPTY_TREE);
        let (of, text) = match (&self.commit, &self.kept) {
            (Some(commit), _) => {
                (format!("commit {}", short(commit)), git.diff(base, Target::Commit(commit), &[]))
            }
            (None, Some(kept)) => {
                let parent = git.resolve(&format!("{kept}^1")).ok().flatten();
                let parent = parent.unwrap_or_else(|| EMPTY_TREE.to_owned());
                (format!("unfinished work {}", short(kept)), git.diff(&parent, Target::Commit(kept), &[]))
            }
            (None, None) if self.ended_at.is_none() => {
                ("the work tree so far".to_owned(), git.diff(base, Target::WorkTree, &[]))
            }
            (None, None) => return None,
        };
        // A commit that was thrown away since is no reason to hide the rest.
        text.ok().map(|text| Diff { of, text })
    }
}
