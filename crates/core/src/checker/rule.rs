//! The rules by name, each with the mutants that break it.
//!
//! A checker that cannot fail proves nothing. So every rule names at least one [`Mutant`] of the core, the
//! engine or the store that breaks it, and the tests of the simulator (`crates/sim/tests/mutants`) want
//! each of them noticed by that very rule, in simulated worlds or over a real repository. A rule that
//! names none is seen to fail over histories that break it (`crates/core/tests/rules.rs`).

use crate::mutant::Mutant::{self, *};

macro_rules! rules {
    ($($(#[$doc:meta])+ $name:ident $(: $($mutant:expr),+)?;)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Rule {
            $($(#[$doc])+ $name,)*
        }

        impl Rule {
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// Who breaks this rule; each of them is noticed by it.
            pub fn mutants(self) -> &'static [Mutant] {
                match self {
                    $(Self::$name => &[$($($mutant),+)?],)*
                }
            }
        }
    };
}

rules! {
    // Order.
    /// Events are numbered without gaps.
    Sequence: LosesEvents;
    /// What was written under a lease is not followed by what was written under an older one.
    Epoch: ForgetsEpoch;
    /// A loop is created once.
    CreatedOnce: ForgetsItself;

    // Runs.
    /// A run starts after the one before it ended.
    OneRun: StartsInsideRun;
    /// Runs are numbered without gaps.
    RunNumber: ForgetsRunNumber;
    /// Only a run that has not ended is resumed.
    RunToResume: ResumesEndedRun;
    /// Only a run that has not ended ends.
    RunToEnd: EndsTwice;

    // Checks before anybody works.
    /// The untouched tree is checked before an agent works on it.
    UntouchedTree;
    /// No agent starts while it is open how to go on from checks that fail already.
    BaselineSettled;

    // The start of an iteration.
    /// Iterations belong to a run.
    StartInRun: RunsUnstarted;
    /// One iteration at a time.
    StartAlone: StartsBeside;
    /// The work of the attempt before it is under a ref.
    StartAfterKeeping: ForgetsWork;
    /// The tree does not hold the work of another task.
    StartOnOwnWork: CarriesAcross;
    /// A restore that was begun is complete.
    StartAfterRestore: LeavesRestore;
    /// The iteration before it has its checkpoint.
    StartAfterCheckpoint: SkipsCheckpoints;
    /// Nothing starts while the loop is paused.
    StartUnpaused: StartsWhilePaused;
    /// Nothing starts once somebody asked to stop.
    StartUnstopped: IgnoresStop;
    /// Iterations are numbered without gaps.
    IterationNumber: SkipsNumber;
    /// A run has no more iterations than it may.
    IterationLimit: IgnoresIterationLimit;
    /// The task is in the backlog.
    TaskKnown: UnknownTask;
    /// The task is open.
    TaskOpen: WorksOnSettled;
    /// Attempts at a task are numbered without gaps.
    AttemptNumber: MiscountsAttempts;
    /// The task has attempts left.
    AttemptsLeft: ForgivesFailures;
    /// What the task depends on is done.
    DependenciesMet: IgnoresDependencies;
    /// The agent is one that the policy names for the task.
    AgentOfTask: WrongAgent;
    /// What needs no agent is done without one.
    AgentNeeded: SendsAgent;
    /// The agent can work.
    AgentAvailable: IgnoresUnavailable;
    /// Nothing starts in the run in which the breaker opened.
    BreakerEndsRun: IgnoresBreaker;
    /// Nothing starts before an open breaker has cooled down.
    BreakerCools: IgnoresCooldown;
    /// No more calls within an hour than there may be.
    CallsPerHour: IgnoresRate;
    /// Nothing starts beyond the loop's own budget.
    LoopBudget: IgnoresBudget;
    /// Nothing starts beyond the task's budget.
    TaskBudget: IgnoresTaskBudget;

    // Money.
    /// The same part of a budget is told once.
    AlertOnce: ForgetsAlerts;
    /// An alert is true.
    AlertTrue: AlertsEarly;
    /// No call is granted from a shared budget that is used up.
    GrantedWithin: GrantsEverything;
    /// No call is refused while there is money for it.
    RefusedBeyond: RefusesEverything;

    // The fence: what is said of an attempt.
    /// It is said of an iteration under way.
    FenceOpen: NudgesTheAbsent;
    /// It is said of this attempt, not of an older one.
    FenceFresh: StaleResults;
    /// It is said at its time.
    FenceStage: NudgesNobody;
    /// Only what is under way is interrupted.
    InterruptedOnce: InterruptsTwice;
    /// The agent's health changes step by step.
    HealthInSteps: SkipsNudges;
    /// Work is handed over that was to be.
    HandoffDue: HandsOverAnother;

    // Work without an agent.
    /// Agents report, and the engine works, each on what is theirs.
    WorkByItsOwn: ReportsForEngine;
    /// A call that must not be made twice is not.
    CallOnce: ForgetsCalls;
    /// A call that may have happened is not forgotten.
    CallSettled: CallsInDoubt;

    // The verdict.
    /// In a repository, what is checked is a tree that was taken.
    CheckedTree: ChecksFirst;
    /// In a repository, what is accepted is a tree that was taken.
    AcceptedTree: TrustsAltered;
    /// An agent is unavailable by its own word.
    UnavailableSaid: CallsUnavailable;
    /// Work is handed over if something called for it.
    HandoffCalledFor: HandsOverUnasked;
    /// What is accepted was claimed, where the policy asks for that.
    AcceptedClaim: AcceptsUnclaimed;
    /// What is accepted has no evidence against it.
    AcceptedEvidence: AcceptsRefuted, AcceptsErrors;
    /// What is accepted went through every check.
    AcceptedChecks: SkipsChecks;
    /// Nothing is accepted that fails with the former definition of its checks, unless a person or the policy
    /// said so.
    AcceptedFormer;
    /// Verified means that there is evidence.
    VerifiedByEvidence: CallsVerified;

    // Landing.
    /// What is completed was accepted.
    CompletedAccepted: AcceptsEverything;
    /// The completed task is that of the iteration.
    CompletedTask: CompletesAnother;
    /// A completion is as verified as the verdict said.
    CompletedAsJudged: CompletesOtherwise;
    /// The commit that is refused is that of an accepted attempt.
    RefusedAccepted: AcceptsEverything;
    /// The tree that a hook altered is that of an accepted attempt.
    AlteredAccepted: AcceptsEverything;

    // The work tree.
    /// Work is kept once, when an attempt left some.
    KeptOnce: KeepsTwice;
    /// The work tree is not reset while it holds what is not under a ref.
    ResetAfterKeeping: ResetsUnkept;

    // Checkpoints and going back to them.
    /// A checkpoint names the one before it.
    CheckpointChain: BreaksChain;
    /// A checkpoint has a text.
    CheckpointText: LosesCheckpoint;
    /// A restore begins when nothing else is under way.
    RestoreAlone: LeavesRestore;
    /// A restore goes back.
    RestoreBack: RestoresAhead;
    /// Only a restore that was begun is complete.
    RestoreBegun: RestoresTwice;

    // People and their backlog.
    /// Only an open question is answered.
    AnswerOfOpen: AnswersTwice;
    /// Questions are numbered without gaps.
    QuestionNumber: SkipsQuestionNumber;
    /// A status is written to the backlog that the task has.
    StatusTrue: WritesWrongStatus;
    /// A task fails that has used up its attempts or its budget.
    FailedForGood: GivesUpEarly;

    // Why a run ends.
    /// The goal is achieved with no task left.
    EndGoal: CallsItDone;
    /// The iteration limit is reached.
    EndIterations: EndsEarly;
    /// Somebody asked to stop.
    EndStop: StopsUnasked;
    /// The breaker opened in this run.
    EndBreaker: TripsBlindly;
    /// So many agents were ended for their silence.
    EndHealth: CountsTerminations;
    /// A budget is used up.
    EndBudget: EndsRich;
    /// There were so many errors in a row.
    EndErrors: CountsErrors;
    /// The run has taken as long as it may.
    EndDuration: EndsBeforeTime;
    /// There were so many iterations without progress.
    EndNoProgress: CountsIdleness;
}
