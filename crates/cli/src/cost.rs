//! Money as people read it.

use wiggum_core::budget::Unit;
use wiggum_core::event::Usage;
use wiggum_engine::status::BudgetStatus;

/// What a usage cost. Tokens whose cost nobody told are not free.
pub(crate) fn cost(usage: &Usage) -> String {
    if usage.is_unpriced() { "unpriced".to_owned() } else { dollars(usage.cost_usd) }
}

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
    let BudgetStatus { scope: _, unit, spent, limit } = budget;
    let spent = match unit {
        Unit::Usd if unpriced_tokens > 0 => lower_bound(*spent, unpriced_tokens),
        Unit::Usd | Unit::Tokens => unit.show(*spent),
    };
    format!("{spent} of {}", unit.show(*limit))
}

/// Cents, or more of the figure where cents would hide it.
pub(crate) fn dollars(amount: f64) -> String {
    let in_cents = (amount * 100.0 - (amount * 100.0).round()).abs() < 1e-4;
    if in_cents || amount.abs() >= 1.0 { format!("${amount:.2}") } else { format!("${amount:.4}") }
}
