//! Rules broken on purpose, to see that somebody notices: a checker that cannot fail proves nothing.
//!
//! Only with the feature `mutants` can one be planted; in every other build [`planted`] is `false` for
//! the compiler too. A new one is a line here and the place where it breaks its rule; the tests of the
//! simulator then want it caught.

macro_rules! mutants {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Mutant {
            $($(#[$doc])* $name,)*
        }

        impl Mutant {
            pub const ALL: &[Self] = &[$(Self::$name,)*];
        }
    };
}

mutants! {
    // Order.
    SeqStandsStill,
    StaleEpoch,
    LosesEvents,
    ForgetsEpoch,
    ForgetsItself,
    // Runs.
    StartsInsideRun,
    ForgetsRunNumber,
    ResumesEndedRun,
    NeverEnds,
    EndsTwice,
    RunsUnstarted,
    // Starting an iteration.
    StartsBeside,
    StartsWhilePaused,
    IgnoresStop,
    SkipsNumber,
    IgnoresIterationLimit,
    IgnoresBreaker,
    IgnoresCooldown,
    SkipsCheckpoints,
    UnknownTask,
    WorksOnSettled,
    MiscountsAttempts,
    ForgivesFailures,
    IgnoresDependencies,
    WrongAgent,
    IgnoresUnavailable,
    // Money.
    IgnoresBudget,
    IgnoresTaskBudget,
    IgnoresRate,
    ForgetsAlerts,
    AlertsEarly,
    GrantsEverything,
    RefusesEverything,
    // Judging it.
    StaleResults,
    CallsUnavailable,
    AcceptsUnclaimed,
    AcceptsRefuted,
    AcceptsErrors,
    SkipsChecks,
    CallsVerified,
    AcceptsEverything,
    CompletesOtherwise,
    CompletesAnother,
    InterruptsTwice,
    SkipsNudges,
    HandsOverAnother,
    HandsOverUnasked,
    // The work tree.
    ChecksFirst,
    TrustsAltered,
    ForgetsWork,
    KeepsTwice,
    ResetsUnkept,
    CarriesAcross,
    // Checkpoints.
    BreaksChain,
    LosesCheckpoint,
    LeavesRestore,
    RestoresAhead,
    RestoresTwice,
    // Calls.
    ForgetsCalls,
    CallsInDoubt,
    SendsAgent,
    ReportsForEngine,
    // People.
    NudgesNobody,
    NudgesTheAbsent,
    AnswersTwice,
    SkipsQuestionNumber,
    // Ends.
    WritesWrongStatus,
    GivesUpEarly,
    CallsItDone,
    EndsEarly,
    StopsUnasked,
    TripsBlindly,
    CountsTerminations,
    CountsErrors,
    CountsIdleness,
    EndsBeforeTime,
    EndsRich,
}

#[cfg(feature = "mutants")]
mod plant {
    use std::cell::Cell;

    use super::Mutant;

    thread_local! {
        static PLANTED: Cell<Option<Mutant>> = const { Cell::new(None) };
    }

    /// Breaks a rule on this thread; nothing heals all of them.
    pub fn plant(mutant: Option<Mutant>) {
        PLANTED.set(mutant);
    }

    pub fn planted(mutant: Mutant) -> bool {
        PLANTED.get() == Some(mutant)
    }
}

#[cfg(feature = "mutants")]
pub use plant::{plant, planted};

/// Is this rule broken?
#[cfg(not(feature = "mutants"))]
pub const fn planted(_mutant: Mutant) -> bool {
    false
}
