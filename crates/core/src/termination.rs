//! Why a run ends: one table of reasons, with their order, exit codes and words.
//!
//! [`reached`] looks at the guards in that order, and the first that holds is the reason. Whether there
//! is work left is asked before: a completion in the last allowed iteration is a completion.

use jiff::Timestamp;

use crate::budget;
use crate::event::EndReason;
use crate::mutant::{Mutant, planted};
use crate::state::Loop;

/// What there is to say of a reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ending {
    pub reason: EndReason,
    /// A public contract, as is the exit code.
    pub name: &'static str,
    pub exit_code: u8,
    /// The loop's state once it ended so.
    pub state: &'static str,
    /// In a few words, for a headline.
    pub says: &'static str,
    /// What a person can do about it.
    pub hint: &'static str,
}

/// Every reason: first the guards in the order in which they are looked at, then the others.
pub const TABLE: [Ending; 10] = [
    Ending {
        reason: EndReason::CircuitBreakerOpen,
        name: "circuit_breaker_open",
        exit_code: 7,
        state: "failed",
        says: "Ended: the circuit breaker opened",
        hint: "see what stands in the way, then `wiggum run`: it waits for the cooldown and tries one iteration. \
               `wiggum retry TASK` or an answer before it, or `wiggum resume` while it waits, ends the wait",
    },
    Ending {
        reason: EndReason::HealthFailure,
        name: "health_failure",
        exit_code: 7,
        state: "failed",
        says: "Ended: agents made no progress",
        hint: "`wiggum show TASK` has what they printed last; `[health]` says how long they are waited for",
    },
    Ending {
        reason: EndReason::ConsecutiveErrors,
        name: "consecutive_errors",
        exit_code: 7,
        state: "failed",
        says: "Ended: too many errors in a row",
        hint: "`wiggum show TASK` has the errors; `wiggum run` tries again",
    },
    Ending {
        reason: EndReason::BudgetExhausted,
        name: "budget_exhausted",
        exit_code: 4,
        state: "terminated",
        says: "Ended: the budget is used up",
        hint: "raise the budget (--max-cost, or [budget] in wiggum.toml), then `wiggum run` goes on",
    },
    Ending {
        reason: EndReason::MaxIterations,
        name: "max_iterations",
        exit_code: 3,
        state: "terminated",
        says: "Ended: the iteration limit is reached",
        hint: "`wiggum run` goes on with a fresh count",
    },
    Ending {
        reason: EndReason::MaxDuration,
        name: "max_duration",
        exit_code: 5,
        state: "terminated",
        says: "Ended: the time limit is reached",
        hint: "`wiggum run` goes on with a fresh clock",
    },
    Ending {
        reason: EndReason::NoProgress,
        name: "no_progress",
        exit_code: 7,
        state: "failed",
        says: "Ended: no progress",
        hint: "make the tasks smaller or clearer, then `wiggum run`",
    },
    Ending {
        reason: EndReason::GoalAchieved,
        name: "goal_achieved",
        exit_code: 0,
        state: "completed",
        says: "All tasks complete",
        hint: "",
    },
    Ending {
        reason: EndReason::PersonNeeded,
        name: "person_needed",
        exit_code: 6,
        state: "terminated",
        says: "A person is needed",
        hint: "`wiggum inbox` has the questions; `wiggum run` goes on with the answers",
    },
    Ending {
        reason: EndReason::ExplicitStop,
        name: "explicit_stop",
        exit_code: 8,
        state: "terminated",
        says: "Stopped",
        hint: "`wiggum run` goes on",
    },
];

impl EndReason {
    pub fn ending(self) -> &'static Ending {
        &TABLE[match self {
            Self::CircuitBreakerOpen => 0,
            Self::HealthFailure => 1,
            Self::ConsecutiveErrors => 2,
            Self::BudgetExhausted => 3,
            Self::MaxIterations => 4,
            Self::MaxDuration => 5,
            Self::NoProgress => 6,
            Self::GoalAchieved => 7,
            Self::PersonNeeded => 8,
            Self::ExplicitStop => 9,
        }]
    }

    pub fn name(self) -> &'static str {
        self.ending().name
    }

    pub fn exit_code(self) -> u8 {
        self.ending().exit_code
    }
}

type Guard = fn(&Loop, Timestamp) -> Option<String>;

/// The guards in order, each with what it says when it ends the run.
const GUARDS: [(EndReason, Guard); 7] = [
    (EndReason::CircuitBreakerOpen, breaker_open),
    (EndReason::HealthFailure, agents_terminated),
    (EndReason::ConsecutiveErrors, errors_in_a_row),
    (EndReason::BudgetExhausted, money_is_spent),
    (EndReason::MaxIterations, iterations_used),
    (EndReason::MaxDuration, time_is_up),
    (EndReason::NoProgress, nothing_changes),
];

/// What is said of a run that found an empty backlog. Nothing was complete in it.
pub const NO_TASKS: &str = "no tasks yet";

/// What is said where every task is done. Where some were skipped, the detail counts them.
pub const ALL_COMPLETE: &str = "all tasks complete";

/// How an end is headed, with what is told of it.
pub fn headline(reason: EndReason, detail: &str) -> &'static str {
    match (reason, detail) {
        (EndReason::GoalAchieved, NO_TASKS) => "No tasks yet",
        (EndReason::GoalAchieved, detail) if detail != ALL_COMPLETE => "Nothing left to do",
        (reason, _) => reason.ending().says,
    }
}

/// What the headline leaves to be said.
pub fn more(reason: EndReason, detail: &str) -> &str {
    let says_it_all = reason == EndReason::GoalAchieved && [NO_TASKS, ALL_COMPLETE].contains(&detail);
    if says_it_all { "" } else { detail }
}

/// The first guard that holds, and in which words.
pub fn reached(state: &Loop, now: Timestamp) -> Option<(EndReason, String)> {
    GUARDS.iter().find_map(|(reason, guard)| Some((*reason, guard(state, now)?)))
}

fn breaker_open(state: &Loop, _now: Timestamp) -> Option<String> {
    if planted(Mutant::IgnoresBreaker) {
        return None;
    }
    let blindly = (planted(Mutant::TripsBlindly) && state.run.without_progress > 0).then(String::new);
    state.breaker.opened_in(state.run.number).map(|tripped| tripped.why.clone()).or(blindly)
}

fn agents_terminated(state: &Loop, _now: Timestamp) -> Option<String> {
    let (limit, times) = (state.policy.health.max_terminations, state.run.terminations);
    let times = times + u32::from(planted(Mutant::CountsTerminations));
    (limit > 0 && times >= limit).then(|| format!("{times} agents in a row made no progress and were ended"))
}

fn errors_in_a_row(state: &Loop, _now: Timestamp) -> Option<String> {
    let (limit, times) = (state.policy.limits.consecutive_errors, state.run.consecutive_errors);
    let times = times + u32::from(planted(Mutant::CountsErrors));
    (limit > 0 && times >= limit).then(|| format!("{times} errors in a row"))
}

fn money_is_spent(state: &Loop, now: Timestamp) -> Option<String> {
    budget::exhausted(state, now)
}

fn iterations_used(state: &Loop, now: Timestamp) -> Option<String> {
    let used = state.run.iterations.saturating_add(u32::from(planted(Mutant::EndsEarly)));
    let endless = planted(Mutant::IgnoresIterationLimit);
    let limit = state.policy.limits.iterations.filter(|limit| used >= *limit && !endless)?;
    let delayed = || state.tasks.next_delayed(now).map(|(_, entry)| entry);
    let next = state.tasks.next(now).or_else(delayed);
    next.is_none_or(|entry| state.counts(entry)).then(|| match limit {
        1 => "1 iteration used".to_owned(),
        limit => format!("{limit} iterations used"),
    })
}

pub(crate) fn time_is_up(state: &Loop, now: Timestamp) -> Option<String> {
    let early = if planted(Mutant::EndsBeforeTime) { 600_000 } else { 0 };
    let limit = state.policy.limits.duration.filter(|limit| state.active_ms(now) + early >= limit.0)?;
    Some(format!("ran for {:?}", limit.as_duration()))
}

fn nothing_changes(state: &Loop, _now: Timestamp) -> Option<String> {
    let (limit, times) = (state.policy.limits.no_progress, state.run.without_progress);
    let times = times + u32::from(planted(Mutant::CountsIdleness));
    (limit > 0 && times >= limit).then(|| crate::text::without_progress(times))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_all_complete_is_called_so() {
        let of = |detail| (headline(EndReason::GoalAchieved, detail), more(EndReason::GoalAchieved, detail));
        assert_eq!(of(ALL_COMPLETE), ("All tasks complete", ""));
        assert_eq!(of(NO_TASKS), ("No tasks yet", ""));
        assert_eq!(of("2 done, 1 skipped"), ("Nothing left to do", "2 done, 1 skipped"));
        assert_eq!(headline(EndReason::ExplicitStop, "by ann"), "Stopped");
    }
}
