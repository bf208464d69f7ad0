//! What no journal may show of money: a call begun beyond a limit that denies, more calls than an
//! hour may have, the same thing told twice, a run ended for a budget that had something left.

use jiff::Timestamp;

use super::{Broken, Rule};
use crate::budget::{Account, Alert, AtLimit, Cap, Gauge, Shared, Strategy, Sum, Unit};
use crate::event::Event;
use crate::ids::TaskId;
use crate::state::Loop;

pub(super) fn check_start(before: &Loop, task: &TaskId, at: Timestamp) -> Option<Broken> {
    let limits = &before.policy.limits;
    if let Some(per_hour) = limits.calls_per_hour.filter(|n| !before.spending.rate_allows(*n, at)) {
        return Some((Rule::CallsPerHour, format!("more than {per_hour} calls within an hour")));
    }
    if before.policy.budget.action != AtLimit::Deny {
        return None;
    }
    if is_reached(before.policy.budget.own, Sum::from(before.usage)) {
        let message = "an iteration starts although the loop's budget is used up".to_owned();
        return Some((Rule::LoopBudget, message));
    }
    is_task_used_up(before, task)
        .then(|| (Rule::TaskBudget, format!("{task} is tried again although its budget is used up")))
}

pub(super) fn is_task_used_up(before: &Loop, task: &TaskId) -> bool {
    let Some(entry) = before.task(task) else { return false };
    let (cap, spent) = (before.policy.budget.task, entry.spent.since(entry.spent_before));
    let stopped = entry.budget_reached.is_some_and(|reached| {
        let now = match reached.unit {
            Unit::Usd => cap.max_cost,
            Unit::Tokens => cap.max_tokens.map(|tokens| tokens as f64),
        };
        now == Some(reached.limit)
    });
    before.policy.budget.action == AtLimit::Deny && (is_reached(cap, spent) || stopped)
}

pub(super) fn check_alert(before: &Loop, event: &Event) -> Option<Broken> {
    let Event::BudgetAlert { scope, task, unit, spent, limit, threshold, resets_at } = event else {
        return None;
    };
    let gauge = Gauge::told(*scope, *unit, *spent, *limit, *resets_at);
    let alert = Alert { gauge, task: task.clone(), threshold: *threshold };
    if before.spending.was_told(&alert) {
        let message = format!("the {} budget was already told to be this far gone", scope.name());
        return Some((Rule::AlertOnce, message));
    }
    (*spent < *limit * *threshold)
        .then(|| (Rule::AlertTrue, format!("the {} budget is not that far gone", scope.name())))
}

pub(super) fn check_asked(before: &Loop, granted: bool, figures: &Shared) -> Option<Broken> {
    let budget = &before.policy.budget;
    let accounts = [(budget.project, figures.project), (budget.organisation, figures.organisation)];
    let deny = budget.action == AtLimit::Deny;
    if granted && deny && accounts.iter().any(|(cap, account)| is_reached(*cap, account.spent)) {
        let message = "a call was granted from a shared budget that is used up".to_owned();
        return Some((Rule::GrantedWithin, message));
    }
    let (dearest, strategy) = (before.spending.largest, budget.strategy);
    let needed = |account: &Account| match strategy {
        Strategy::Greedy => account.spent,
        Strategy::CriticalPath => plus(account.spent, account.reserved),
        Strategy::Conservative => plus(plus(account.spent, account.reserved), dearest),
    };
    let reason = deny && accounts.iter().any(|(cap, account)| is_reached(*cap, needed(account)));
    (!granted && !reason)
        .then(|| (Rule::RefusedBeyond, "a call was refused although there is money for it".to_owned()))
}

pub(super) fn check_end(before: &Loop) -> Option<Broken> {
    let budget = &before.policy.budget;
    let shared = before.spending.shared.unwrap_or_default();
    let accounts = [
        (budget.own, Sum::from(before.usage)),
        (budget.project, shared.project.spent),
        (budget.organisation, shared.organisation.spent),
    ];
    let next = match budget.strategy {
        Strategy::Greedy | Strategy::CriticalPath => Sum::default(),
        Strategy::Conservative => before.spending.largest,
    };
    let reached = accounts.iter().any(|(cap, spent)| is_reached(*cap, plus(*spent, next)));
    // An agent may have stopped short of the limit, because its next call would have gone beyond.
    let fits = (reached || before.spending.reached.is_some()) && budget.action == AtLimit::Deny;
    (!fits).then(|| (Rule::EndBudget, "ended for a budget that is not used up".to_owned()))
}

fn is_reached(cap: Cap, spent: Sum) -> bool {
    cap.max_cost.is_some_and(|limit| spent.cost_usd >= limit)
        || cap.max_tokens.is_some_and(|limit| spent.tokens >= limit)
}

fn plus(mut sum: Sum, other: Sum) -> Sum {
    sum += other;
    sum
}
