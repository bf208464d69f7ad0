//! The stored language: what happened to a loop, in the past tense, and what people ask of it.
//!
//! Every journal ever written must fold forever. Fields are added with a default and never change
//! their meaning; `crates/core/tests/journals/` keeps journals of every version. Nothing here acts:
//! [`crate::state`] folds events, [`crate::decide`] draws conclusions.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::budget::{Scope, Shared, Unit};
use crate::definition::Change;
use crate::handoff::Trigger;
use crate::health::Health;
use crate::ids::{Attempt, Epoch, Iteration, LoopId, QuestionId, RequestId, Seq, TaskId};
use crate::policy::{Millis, Policy};
use crate::restore::TaskThen;
use crate::signal::notes::Notes;
use crate::signal::support::Signal;
use crate::task::{FileStatus, Task};

/// Version of the event shapes written by this build.
///
/// Since version 2 the number of an interrupted iteration goes to the next iteration of the same task only.
pub const EVENT_VERSION: u32 = 2;

/// An event with its place in the journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Envelope {
    pub v: u32,
    pub seq: Seq,
    pub id: Uuid,
    pub at: Timestamp,
    pub epoch: Epoch,
    #[serde(flatten)]
    pub event: Event,
}

impl Envelope {
    /// As one line of JSON: the text that serde makes of it. Flattened, an event would be handed on field by field,
    /// which takes several times as long, and every event of a run is printed by `--json`.
    pub fn to_json(&self) -> serde_json::Result<String> {
        let Self { v, seq, id, at, epoch, event } = self;
        let event = serde_json::to_string(event)?;
        // An event says at least of what type it is, so that something follows the comma.
        let fields = event.strip_prefix('{').unwrap_or_default();
        Ok(format!(r#"{{"v":{v},"seq":{seq},"id":"{id}","at":"{at}","epoch":{epoch},{fields}"#))
    }
}

/// The JSON Schema of a line of `wiggum events --json`.
#[cfg(feature = "schema")]
pub fn schema() -> serde_json::Value {
    let mut schema = schemars::schema_for!(Envelope);
    schema.insert("title".to_owned(), "An event of a wiggum journal".into());
    schema.to_value()
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    LoopCreated {
        loop_id: LoopId,
        name: String,
        repository: String,
        backlog: String,
    },
    /// The checkout is at another path than when the loop last ran.
    LoopMoved {
        repository: String,
        /// Where it was.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        from: String,
        /// It is another directory than the one that was there: a copy, or one moved from another file system.
        #[serde(default, skip_serializing_if = "is_false")]
        copied: bool,
    },
    RunStarted {
        run: u32,
        policy: Box<Policy>,
        /// How the agent is called, for people to read.
        agent: String,
        version: String,
        git: bool,
        /// What keeps agents from writing elsewhere, for people to read.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        sandbox: String,
        /// What names the tree that the run starts from: a commit, or a stamp of the files outside of git.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        tree: String,
    },
    /// A new engine took over an unfinished run.
    RunResumed {
        run: u32,
        policy: Box<Policy>,
        agent: String,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        sandbox: String,
    },
    /// The backlog as it was read: the first time all of it, afterwards what differs.
    BacklogRead {
        /// Hash of the file's bytes.
        revision: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        added: Vec<Task>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        changed: Vec<Task>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        removed: Vec<TaskId>,
        /// The order of all tasks, when it is not simply "as before, then the added ones".
        #[serde(default, skip_serializing_if = "Option::is_none")]
        order: Option<Vec<TaskId>>,
    },
    /// The backlog cannot be read at the moment; nothing new starts until it can.
    BacklogBroken {
        message: String,
    },
    /// A task's status now stands in the backlog file.
    StatusWritten {
        task: TaskId,
        status: FileStatus,
    },
    /// The intention to run an agent; recorded before it is started.
    IterationStarted {
        iteration: Iteration,
        task: TaskId,
        attempt: Attempt,
        /// Commit the workspace stood on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        base: Option<String>,
        /// Branch the workspace was on; none with a detached HEAD.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        branch: Option<String>,
        /// Commit holding the earlier work this attempt starts from.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        carried: Option<String>,
        command: String,
        /// The name of the agent that works.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        agent: String,
        /// The agent's own session, where it was given one to go on with or to begin.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<String>,
        workspace: String,
        prompt: BlobRef,
        /// A person accepted the kept work as it is: it is checked and committed without an agent.
        #[serde(default, skip_serializing_if = "is_false")]
        accepted: bool,
    },
    AgentEnded {
        iteration: Iteration,
        attempt: Attempt,
        exit: Exit,
        /// The agent's final message.
        message: BlobRef,
        duration: Millis,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<Usage>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        claim: Option<Claim>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        questions: Vec<Question>,
        /// Why this counts as an error, if it does.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<Failure>,
        /// What the agent's own output tells about itself.
        #[serde(default, skip_serializing_if = "AgentFacts::is_empty")]
        facts: Box<AgentFacts>,
        /// A phrase in its message that supports a claim.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        phrase: Option<String>,
        /// What it did to the backlog that was not its to do.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        flags: Vec<Flag>,
        /// What it leaves for those who come after it.
        #[serde(default, skip_serializing_if = "Notes::is_empty")]
        notes: Box<Notes>,
        /// Processes that had to be ended after the agent itself was gone.
        #[serde(default, skip_serializing_if = "is_zero")]
        ended_processes: u32,
    },
    /// A tool is about to be called; recorded before anything is sent to it.
    CallStarted {
        iteration: Iteration,
        attempt: Attempt,
        server: String,
        tool: String,
        /// Without secrets.
        params: BlobRef,
        /// The tool says that it only reads, or that calling it twice is the same as once.
        #[serde(default, skip_serializing_if = "is_false")]
        repeatable: bool,
    },
    /// Work that needs no agent is over, or nobody knows whether it is.
    WorkEnded {
        iteration: Iteration,
        attempt: Attempt,
        duration: Millis,
        /// What came of it.
        result: BlobRef,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<Failure>,
        /// It may have happened, or not.
        #[serde(default, skip_serializing_if = "is_false")]
        uncertain: bool,
        /// Another attempt would end the same way, until somebody changes the task or the configuration.
        #[serde(default, skip_serializing_if = "is_false")]
        permanent: bool,
    },
    /// The agent at work said something through a tool of ours rather than in its text.
    AgentReported {
        iteration: Iteration,
        attempt: Attempt,
        report: Report,
    },
    /// Somebody else committed while the agent worked: their commits stay, and the attempt goes on top of them.
    CommitsFound {
        iteration: Iteration,
        attempt: Attempt,
        /// The newest of them.
        commit: String,
        /// For people to read, newest first.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        subjects: Vec<String>,
    },
    /// The attempt's work was written as a tree: that tree is checked and that tree is committed.
    TreeTaken {
        iteration: Iteration,
        attempt: Attempt,
        /// What it did to the repository that was put back.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        flags: Vec<Flag>,
    },
    /// A commit hook changed the tree: what it made of it has to be checked as well.
    TreeAltered {
        iteration: Iteration,
        attempt: Attempt,
    },
    EvidenceGathered {
        iteration: Iteration,
        attempt: Attempt,
        evidence: Evidence,
    },
    /// A step of checking a commit in a clean checkout is over: setting it up, or one of the checks.
    CleanChecked {
        commit: String,
        evidence: Evidence,
    },
    /// What the attempt left in the workspace.
    WorkInspected {
        iteration: Iteration,
        attempt: Attempt,
        /// Paths that differ from the base, at most [`MAX_LISTED_PATHS`] of them.
        changed: Vec<String>,
        changed_total: u32,
        /// Equal digests mean equal trees.
        digest: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        flags: Vec<Flag>,
        /// What it changed of what defines its checks, and of the files they run.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        redefined: Vec<Change>,
        /// The commands to be run again, with their former definition.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        former_checks: Vec<String>,
        /// The commands that could not run before, and whose definition the attempt wrote itself.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        written_checks: Vec<String>,
    },
    /// The verdict on an attempt. `Accepted` is also the intention to write the backlog and commit.
    Judged {
        iteration: Iteration,
        attempt: Attempt,
        verdict: Verdict,
        /// What supports a claim, or would; alone it completes nothing.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        signals: Vec<Signal>,
    },
    /// Unfinished work was put under a ref, where the next attempt (or a person) finds it.
    WorkKept {
        iteration: Iteration,
        task: TaskId,
        reference: String,
        commit: String,
    },
    /// The workspace went back to the last good commit.
    WorkspaceReset {
        commit: String,
    },
    TaskCompleted {
        iteration: Iteration,
        task: TaskId,
        attempt: Attempt,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        commit: Option<String>,
        /// Was there any evidence beside the claim?
        verified: bool,
    },
    /// An accepted attempt could not be committed (a hook refused it): it failed after all.
    CommitRefused {
        iteration: Iteration,
        attempt: Attempt,
        output: BlobRef,
    },
    TaskFailed {
        task: TaskId,
        reason: String,
    },
    TaskSkipped {
        task: TaskId,
        by: String,
    },
    /// The backlog was committed, in which these tasks are skipped.
    SkipsCommitted {
        tasks: Vec<TaskId>,
        /// Nothing if there was nothing to commit, or a hook refused it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        commit: Option<String>,
    },
    /// A person wants the task tried again.
    TaskReopened {
        task: TaskId,
        by: String,
    },
    /// A person skips a task that is being worked on. Whatever works on it is stopped first; the task is skipped once
    /// its iteration has been interrupted, also by the next engine if this one is killed meanwhile.
    SkipAsked {
        iteration: Iteration,
        attempt: Attempt,
        task: TaskId,
        by: String,
    },
    /// A request came to nothing. One that was taken up and is not named here was heeded.
    RequestRefused {
        /// Nothing where somebody typed it at the terminal of the run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request: Option<RequestId>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        task: Option<TaskId>,
        /// Who asked.
        by: String,
        why: String,
    },
    /// A person set a task's status by `wiggum task`.
    StatusSet {
        task: TaskId,
        status: FileStatus,
        by: String,
    },
    /// A status changed in the file while an agent ran; it was put back.
    StatusPutBack {
        task: TaskId,
        found: FileStatus,
        restored: FileStatus,
    },
    QuestionRaised {
        #[serde(rename = "question_id")]
        id: QuestionId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        task: Option<TaskId>,
        question: Question,
    },
    QuestionAnswered {
        #[serde(rename = "question_id")]
        id: QuestionId,
        answer: Answer,
        by: String,
    },
    /// Somebody spoke to the agent at work. What did not reach it is guidance for the next attempt.
    Nudged {
        iteration: Iteration,
        attempt: Attempt,
        text: String,
        by: String,
        delivered: bool,
    },
    /// The agent at work makes progress again, or none, and what follows from that.
    HealthChanged {
        iteration: Iteration,
        attempt: Attempt,
        health: Health,
        /// The last sign of progress.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        last_beat: Option<Timestamp>,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        detail: String,
    },
    /// The agent is to come to an end, or has, and another is to go on from there.
    HandoffStarted {
        iteration: Iteration,
        attempt: Attempt,
        trigger: Trigger,
        /// The agent at work was asked to wrap up.
        #[serde(default, skip_serializing_if = "is_false")]
        asked: bool,
    },
    /// The loop as it is was summed up, chained to the summary before.
    Checkpointed {
        iteration: Iteration,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        task: Option<TaskId>,
        #[serde(rename = "checkpoint_id")]
        id: Uuid,
        checkpoint: BlobRef,
        /// Hash of the checkpoint before this one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        previous: Option<String>,
        /// Who asked for it; empty where it belongs to the end of an iteration.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        by: String,
    },
    /// The intention to go back to a checkpoint; recorded before anything is put back.
    RestoreStarted {
        #[serde(rename = "checkpoint_id")]
        id: Uuid,
        /// The event that recorded it.
        to_seq: Seq,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        commit: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        branch: Option<String>,
        /// Commit the workspace stood on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<String>,
        /// Where that commit, and what lay in the work tree, is kept.
        reference: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tasks: Vec<TaskThen>,
        by: String,
    },
    /// Work tree and tasks are as they were at the checkpoint.
    Restored {
        #[serde(rename = "checkpoint_id")]
        id: Uuid,
    },
    Paused {
        by: String,
    },
    Resumed {
        by: String,
    },
    /// Somebody asked the run to stop.
    StopRequested {
        by: String,
    },
    /// An iteration ended without outcome (crash, Ctrl-C). Not a failure; costs nothing.
    Interrupted {
        iteration: Iteration,
        attempt: Attempt,
        reason: String,
        #[serde(default, skip_serializing_if = "is_zero")]
        ended_processes: u32,
        /// Commit holding what the attempt had done so far.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kept: Option<String>,
    },
    /// The user's own uncommitted changes were put under a ref before the run.
    UserChangesSetAside {
        reference: String,
        commit: String,
    },
    UserChangesPutBack {
        commit: String,
        clean: bool,
    },
    /// A check is about to run before any agent works; it may leave things in the tree.
    BaselineStarted {
        command: String,
    },
    /// One of the loop's own checks on the untouched tree, before any agent works.
    BaselineChecked {
        /// What names the tree: a commit, or a stamp of the files outside of git.
        tree: String,
        command: String,
        outcome: BaselineOutcome,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        evidence: Option<Evidence>,
    },
    /// One of a task's own checks before its first attempt.
    TaskBaselineChecked {
        task: TaskId,
        command: String,
        outcome: BaselineOutcome,
    },
    /// Repairing the checks becomes a task of its own, to be worked on first.
    RepairPlanned {
        task: TaskId,
    },
    /// Something a person should know that changes no decision.
    Noticed {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        task: Option<TaskId>,
        message: String,
    },
    /// So much of a budget is gone; told once for each limit and threshold.
    BudgetAlert {
        scope: Scope,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        task: Option<TaskId>,
        unit: Unit,
        spent: f64,
        limit: f64,
        /// The part that was to be told, such as 0.8.
        threshold: f64,
        /// When the budget begins anew.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resets_at: Option<Timestamp>,
    },
    /// Money that several loops share was asked for, for the iteration about to start.
    BudgetAsked {
        granted: bool,
        /// What all of them had spent and set aside at that moment.
        figures: Shared,
    },
    /// The agent at work has used up a budget, or what is left is too little for it: it is stopped, or
    /// has stopped by itself.
    BudgetReached {
        iteration: Iteration,
        attempt: Attempt,
        scope: Scope,
        unit: Unit,
        /// With what this agent has used so far.
        spent: f64,
        limit: f64,
        /// When the budget begins anew.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resets_at: Option<Timestamp>,
    },
    /// The agent at work has used this much so far. Recorded now and then where there is a budget, so that
    /// what it used is not forgotten if the engine is killed.
    UsageSeen {
        iteration: Iteration,
        attempt: Attempt,
        usage: Usage,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
    },
    /// What an agent had used that was interrupted.
    Charged {
        iteration: Iteration,
        attempt: Attempt,
        usage: Usage,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
    },
    RunEnded {
        run: u32,
        reason: EndReason,
        detail: String,
    },
}

/// How many changed paths an event lists before it only counts them.
pub const MAX_LISTED_PATHS: usize = 200;

/// Text kept beside the journal, with enough of it here to be read at a glance.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BlobRef {
    /// Hash of the whole text; empty where nothing was stored.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub sha256: String,
    pub bytes: u64,
    /// The end of the text, at most [`MAX_EXCERPT`] bytes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub excerpt: String,
}

/// How much of a stored text travels inside the event itself.
pub const MAX_EXCERPT: usize = 2048;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Exit {
    Code {
        code: i32,
    },
    Signal {
        signal: i32,
    },
    /// The engine ended it, at its time limit.
    TimedOut,
    /// It could not be started.
    NotStarted,
}

impl Exit {
    pub fn success(self) -> bool {
        self == Self::Code { code: 0 }
    }
}

impl std::fmt::Display for Exit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Code { code } => write!(f, "exit code {code}"),
            Self::Signal { signal } => write!(f, "ended by signal {signal}"),
            Self::TimedOut => f.write_str("timed out"),
            Self::NotStarted => f.write_str("could not be started"),
        }
    }
}

/// Tokens and money, as the agent itself reports them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Usage {
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub cache_read_tokens: u64,
    pub cache_write_tokens: u64,
    pub cost_usd: f64,
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        self.cache_read_tokens = self.cache_read_tokens.saturating_add(other.cache_read_tokens);
        self.cache_write_tokens = self.cache_write_tokens.saturating_add(other.cache_write_tokens);
        self.cost_usd += other.cost_usd;
    }
}

/// What an agent's output tells about itself, beside its message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct AgentFacts {
    /// What was the matter with it, rather than with its work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trouble: Option<Trouble>,
    /// Its own session, by which it can be continued.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(skip_serializing_if = "is_zero")]
    pub tool_calls: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<ContextFill>,
}

impl AgentFacts {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// How full the model's context was at its fullest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ContextFill {
    pub used: u64,
    pub window: u64,
}

/// What can be the matter with an agent, rather than with its work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Trouble {
    /// The account's allowance is used up, until then if it was said.
    UsageLimit {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resets_at: Option<Timestamp>,
    },
    /// The provider has too much to do, or is failing.
    Overloaded,
    /// The provider cannot be reached, or the connection broke.
    Network,
    /// Not logged in, a wrong key, no permission for the model.
    Authentication,
    /// The agent's program is not there.
    Missing,
    /// The conversation does not fit into the model's context any more.
    ContextFull,
    /// Its output ends before it said that it is finished.
    Truncated,
    /// It finished without a word.
    Empty,
    /// The model declined.
    Refused,
    /// A limit on turns, or on money, that its user gave it.
    OwnLimit,
    /// It stopped where a budget of the loop told it to.
    Budget,
    /// It was not permitted to do what it needed to.
    PermissionDenied,
    /// The session to be continued is not known to it.
    SessionLost,
    /// It made no progress, or was silent, for too long and was ended.
    Silent,
    /// It was interrupted by a signal.
    Interrupted,
    /// Anything else; the failure's message says what.
    Other,
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::UsageLimit { resets_at: Some(at) } => return write!(f, "usage limit until {at:.0}"),
            Self::UsageLimit { resets_at: None } => "usage limit",
            Self::Overloaded => "the provider is overloaded",
            Self::Network => "the provider cannot be reached",
            Self::Authentication => "not logged in, or not permitted",
            Self::Missing => "the agent's program is missing",
            Self::ContextFull => "the model's context is full",
            Self::Truncated => "its output ends too early",
            Self::Empty => "it finished without a word",
            Self::Refused => "the model declined",
            Self::OwnLimit => "its own limit on turns or money",
            Self::Budget => "the budget is used up",
            Self::PermissionDenied => "it was not permitted to act",
            Self::SessionLost => "its session is not known any more",
            Self::Silent => "no progress for too long",
            Self::Interrupted => "interrupted",
            Self::Other => "failed",
        })
    }
}

/// The agent says done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Claim {
    /// The words that were read as the claim.
    pub text: String,
    pub source: ClaimSource,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ClaimSource {
    /// `<promise>…</promise>`
    Promise,
    /// "Task X complete"
    Sentence,
    /// A `RALPH_STATUS` block.
    StatusBlock,
    /// The agent ticked its own box, in a dialect where that is the convention.
    TickedBox,
    /// The agent called the tool for it.
    Tool,
    /// No agent: the engine did the work itself.
    Work,
    /// A person accepted the work.
    Person,
}

/// What an agent says through a tool of ours.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "report", rename_all = "snake_case")]
pub enum Report {
    /// It claims that its task is done.
    Done { text: String },
    /// It needs a person.
    Question { question: Question },
    /// It is alive, and this is what it does.
    Progress { text: String },
}

/// Why an attempt counts as an error, and what makes two errors the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Failure {
    pub message: String,
    /// The message without paths, numbers and times.
    pub signature: String,
}

/// What the engine saw itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Evidence {
    /// "verify", or the criterion's text.
    pub name: String,
    pub command: String,
    pub exit: Exit,
    pub output: BlobRef,
    pub duration: Millis,
    /// The check was run with its definition as it was before the task.
    #[serde(default, skip_serializing_if = "is_false")]
    pub former: bool,
    /// It was run in a checkout that has nothing but what git has.
    #[serde(default, skip_serializing_if = "is_false")]
    pub clean: bool,
    /// How many tests passed, by what its runner says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests: Option<u32>,
    /// Variables of the user's environment that it did not get, as far as that may be why it failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub withheld: Vec<String>,
}

/// Where more variables were withheld than this, the others are only counted.
const WITHHELD_NAMED: usize = 6;

impl Evidence {
    pub fn passed(&self) -> bool {
        self.exit.success()
    }

    /// The variables that a failed check did not get, as people read it.
    pub fn about_withheld(&self) -> Option<String> {
        let named = self.withheld.iter().take(WITHHELD_NAMED).cloned().collect::<Vec<_>>().join(", ");
        let more = match self.withheld.len().saturating_sub(WITHHELD_NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        (!self.passed() && !named.is_empty())
            .then(|| format!("withheld from it: {named}{more} (`pass_env` under [checks] passes them on)"))
    }
}

/// Something about an attempt's changes that a person may want to look at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Flag {
    pub kind: FlagKind,
    /// The path or name concerned.
    pub what: String,
    pub detail: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FlagKind {
    /// A watched path was changed.
    ProtectedPath,
    /// A file that a check's command names was changed.
    CheckTouched,
    /// Tests were deleted or skipped, or assertions removed.
    WeakenedTests,
    /// The agent wrote to the backlog; its statuses were put back.
    BacklogTouched,
    /// The agent switched branches; it was put back.
    BranchSwitched,
    /// The agent changed git hooks or configuration; they were put back.
    HooksTouched,
    /// The agent changed `.wiggum/`.
    StateTouched,
    /// The agent committed by itself.
    AgentCommitted,
    /// A check changed files; they were put back.
    CheckLeftovers,
    /// A file that is obeyed later was changed, by the loop itself or by a person's programs.
    ConfigTouched,
    /// What defines a check was changed: its script, its recipe, the settings of its runner, the tests
    /// there were. The check was run with the former definition too.
    CheckRedefined,
    /// A file that a check runs was changed, which is what the task is about.
    CheckedProduct,
    /// Files inside a submodule are not committed there, so the task's commit does not have them.
    SubmoduleUncommitted,
    /// A repository inside the work tree that is no submodule: its files became part of the work.
    NestedRepository,
    /// A pipe, a socket or a device lay in the place of a file.
    SpecialFile,
    /// Rules of what git ignores were changed, which may hide what the checks need.
    IgnoreRules,
    /// Notes that later agents read were changed.
    NotesChanged,
    /// The product asks now whether it is being tested, and may behave otherwise then.
    AsksIfTested,
    /// A link leads to a file outside of the repository, which no clone has.
    LeadsOut,
}

/// What came of a check before any agent worked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum BaselineOutcome {
    Green,
    Red,
    /// It cannot run yet: its program, a manifest or tests are missing.
    CannotRun {
        why: String,
    },
    /// It is about single tasks, so it says nothing of the tree.
    LeftOut {
        why: String,
    },
    /// It was cut short and is run again.
    Interrupted,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Verdict {
    /// Complete as far as we can see; without any evidence it is unverified.
    Accepted { verified: bool },
    /// The agent claimed, but evidence or a guard says otherwise.
    Refuted { reasons: Vec<String> },
    /// The agent ended without claiming.
    Unclaimed,
    /// The agent itself failed.
    Errored { failure: Failure },
    /// The agent could not work, which is nobody's failure: it costs neither attempt nor iteration.
    Unavailable { trouble: Trouble, message: String },
    /// The agent asked a question instead.
    Asked,
    /// A person must look at what was flagged before it is accepted.
    Held { reasons: Vec<String> },
    /// It stopped in good order so that another can go on, which is no failure.
    HandedOver { trigger: Trigger },
}

/// A question to a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Question {
    pub kind: QuestionKind,
    pub summary: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub context: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub question: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum QuestionKind {
    /// The agent cannot make progress.
    Stuck,
    /// The agent could go on but should not without approval.
    Deviation,
    /// The same error came several times in a row.
    Repeated,
    /// A task used up its attempts.
    Failed,
    /// What is left waits on a skipped or failed task.
    Blocked,
    /// Flagged changes need a look before they are accepted.
    Flagged,
    /// The agent at work makes no progress.
    Unresponsive,
    /// A call that must not be made twice may have happened.
    Uncertain,
    /// The loop's own checks fail before any agent has worked.
    Baseline,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Answer {
    /// One of the question's options, counted from 1.
    Option {
        number: u32,
    },
    Words {
        text: String,
    },
    Skip,
    Retry,
    Abort,
    /// It is done: somebody saw to it, or saw that it had happened.
    Done,
}

/// Why a run ended; [`crate::termination`] has all there is to say of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum EndReason {
    GoalAchieved,
    CircuitBreakerOpen,
    HealthFailure,
    ConsecutiveErrors,
    BudgetExhausted,
    MaxIterations,
    MaxDuration,
    NoProgress,
    PersonNeeded,
    ExplicitStop,
}

/// What people and other programs ask of a running loop. Requests wait in the store until the
/// engine turns them into events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Request {
    Pause,
    Resume,
    Stop,
    /// Sum up the loop as it is now.
    Checkpoint,
    /// The agent that works now should wrap up and let another go on.
    Handoff,
    /// Words for the agent that works now.
    Nudge {
        text: String,
    },
    Skip {
        task: TaskId,
    },
    Retry {
        task: TaskId,
    },
    Answer {
        question: QuestionId,
        answer: Answer,
    },
    SetStatus {
        task: TaskId,
        status: FileStatus,
    },
    /// A person added tasks to the backlog or took some out, through us: told that it was done, they can rely on it.
    BacklogEdited {
        /// The file's new text.
        revision: String,
        /// Its text before; empty in what earlier versions left.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        former: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        added: Vec<Task>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        removed: Vec<TaskId>,
    },
    /// The agent of this very attempt has something to say.
    Report {
        iteration: Iteration,
        attempt: Attempt,
        report: Report,
    },
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_false(on: &bool) -> bool {
    !on
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(n: &u32) -> bool {
    *n == 0
}
