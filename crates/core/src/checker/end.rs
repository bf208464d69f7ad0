//! A run ends for the reason it names.

use jiff::Timestamp;

use super::{Broken, Rule, budget};
use crate::event::EndReason;
use crate::state::Loop;

pub(super) fn check(before: &Loop, reason: EndReason, at: Timestamp) -> Option<Broken> {
    if !before.run.active {
        return Some((Rule::RunToEnd, "no run to end".to_owned()));
    }
    let (run, limits) = (&before.run, &before.policy.limits);
    let unless = |holds: bool, rule: Rule, message: &str| (!holds).then(|| (rule, message.to_owned()));
    let reached = |count: u32, limit: u32| limit > 0 && count >= limit;
    match reason {
        EndReason::GoalAchieved => {
            let counts = before.tasks.counts();
            let left = counts.total.saturating_sub(counts.done + counts.skipped);
            (left > 0).then(|| (Rule::EndGoal, format!("goal achieved with {left} tasks left")))
        }
        EndReason::MaxIterations => {
            let holds = limits.iterations.is_some_and(|limit| run.iterations >= limit);
            unless(holds, Rule::EndIterations, "the iteration limit was not reached")
        }
        EndReason::ExplicitStop => {
            unless(run.stop_requested.is_some(), Rule::EndStop, "nobody asked to stop")
        }
        EndReason::CircuitBreakerOpen => {
            let holds = before.breaker.opened_in(run.number).is_some();
            unless(holds, Rule::EndBreaker, "the breaker did not open in this run")
        }
        EndReason::HealthFailure => {
            let holds = reached(run.terminations, before.policy.health.max_terminations);
            unless(holds, Rule::EndHealth, "too few agents were ended for silence")
        }
        EndReason::BudgetExhausted => budget::check_end(before),
        EndReason::ConsecutiveErrors => {
            let holds = reached(run.consecutive_errors, limits.consecutive_errors);
            unless(holds, Rule::EndErrors, "there were fewer errors in a row")
        }
        EndReason::MaxDuration => {
            let holds = limits.duration.is_some_and(|limit| before.active_ms(at) >= limit.0);
            unless(holds, Rule::EndDuration, "the run had time left")
        }
        EndReason::NoProgress => {
            let holds = reached(run.without_progress, limits.no_progress);
            unless(holds, Rule::EndNoProgress, "there was progress more lately")
        }
        // Nothing can start, for more reasons than can be told apart here.
        EndReason::PersonNeeded => None,
    }
}
