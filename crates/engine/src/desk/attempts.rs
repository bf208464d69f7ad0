//! One attempt at a task in full: how the agent ended, what it claimed, the evidence, what was flagged, the
//! verdict, and what it changed.

use jiff::Timestamp;
use serde::Serialize;
use wiggum_core::event::{BlobRef, Evidence, Flag};
use wiggum_core::ids::Seq;
use wiggum_store::LoopRecord;
use wiggum_workspace::git::{Git, Target};

use crate::desk::chronicle::{Span, iteration_of};
use crate::desk::{DeskError, Loops};
use crate::words::short;

mod record;

pub use record::Record;

/// What git calls the tree of a repository without files.
const EMPTY_TREE: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";

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
    let mut found = Record::default();
    loops.store.for_some(record.id, span.seq.saturating_sub(1), events + 4, |envelope| {
        if envelope.seq <= until && iteration_of(&envelope.event) == Some(span.iteration) {
            found.take(&envelope);
        }
    })?;
    Ok(found.into())
}

impl From<Record> for Attempt {
    fn from(record: Record) -> Self {
        Self {
            outcome: record.outcome().to_owned(),
            reasons: record.reasons(),
            iteration: record.iteration,
            attempt: record.attempt,
            task: record.task,
            agent: record.agent,
            command: record.command,
            started_at: Some(record.started_at),
            ended_at: record.ended_at,
            exit: record.exit.map(|exit| exit.to_string()),
            agent_ms: record.agent_ms,
            model: record.model,
            claim: record.claim.map(|claim| claim.text),
            message: record.message.as_ref().map(TextRef::from),
            prompt: Some((&record.prompt).into()),
            evidence: record.evidence.iter().map(EvidenceShown::from).collect(),
            flags: record.flags,
            changed: record.changed,
            changed_total: record.changed_total.unwrap_or(0),
            commit: record.commit,
            kept: record.kept,
            base: record.base,
        }
    }
}

impl From<&Evidence> for EvidenceShown {
    fn from(evidence: &Evidence) -> Self {
        Self {
            name: evidence.name.clone(),
            command: evidence.command.clone(),
            passed: evidence.passed(),
            exit: evidence.exit.to_string(),
            duration_ms: evidence.duration.0,
            output: (&evidence.output).into(),
        }
    }
}

impl Attempt {
    /// What it changed: in its commit, in the work that was kept, or so far in the work tree.
    pub fn diff(&self, loops: &Loops) -> Option<Diff> {
        let git = Git::discover(loops.checkout.path()).ok().flatten()?;
        let work = match (&self.commit, &self.kept) {
            (Some(commit), _) => Work::Commit(commit),
            (None, Some(kept)) => Work::Kept(kept),
            (None, None) if self.ended_at.is_none() => Work::SoFar,
            (None, None) => return None,
        };
        diff(&git, self.base.as_deref(), work)
    }
}

/// Where the work of an attempt is.
#[derive(Clone, Copy, Debug)]
pub enum Work<'a> {
    Commit(&'a str),
    /// In a commit of its own, unfinished.
    Kept(&'a str),
    /// In the work tree.
    SoFar,
}

/// What was changed since a commit. One that was thrown away since is no reason to hide the rest.
pub fn diff(git: &Git, base: Option<&str>, work: Work<'_>) -> Option<Diff> {
    let base = base.unwrap_or(EMPTY_TREE);
    let (of, text) = match work {
        Work::Commit(commit) => {
            (format!("commit {}", short(commit)), git.diff(base, Target::Commit(commit), &[]))
        }
        Work::Kept(kept) => {
            let parent = git.resolve(&format!("{kept}^1")).ok().flatten();
            let parent = parent.as_deref().unwrap_or(EMPTY_TREE);
            (format!("unfinished work {}", short(kept)), git.diff(parent, Target::Commit(kept), &[]))
        }
        Work::SoFar => ("the work tree so far".to_owned(), git.diff(base, Target::WorkTree, &[])),
    };
    text.ok().map(|text| Diff { of, text })
}
