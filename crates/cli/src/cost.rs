//! Money as people read it.

use wiggum_core::budget::Unit;
use wiggum_engine::status::BudgetStatus;
pub(crate) use wiggum_engine::words::{cost, dollars};

/// A sum of which some tokens may have no price.
pub(crate) fn lower_bound(amount: f64, unpriced_tokens: u64) -> String {
    match unpriced_tokens {
        0 => dollars(amount),
        _ if amount > 0.0 => format!("{} and unpriced", dollars(amount)),
        _ => "unpriced".to_owned(),
    }
}

/// What of a budget is gone.
pub(crate) fn budget(budget: &BudgetStatus, unpriced_tokens: u64) -> String {
    let BudgetStatus { scope: _, unit, spent, limit, period, resets_at } = budget;
    let spent = match unit {
        Unit::Usd if unpriced_tokens > 0 => lower_bound(*spent, unpriced_tokens),
        Unit::Usd | Unit::Tokens => unit.show(*spent),
    };
    let period = period.as_ref().map_or_else(String::new, |period| format!(" a {period}"));
    let reset = resets_at.map_or_else(String::new, |at| format!(", resets {at:.0}"));
    format!("{spent} of {}{period}{reset}", unit.show(*limit))
}
