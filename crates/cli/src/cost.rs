//! Money as people read it.

use wiggum_core::event::Usage;

/// What a usage cost. Tokens whose cost nobody told are not free.
pub(crate) fn cost(usage: &Usage) -> String {
    if usage.is_unpriced() { "unpriced".to_owned() } else { dollars(usage.cost_usd) }
}

/// Cents, or more of the figure where cents would hide it.
pub(crate) fn dollars(amount: f64) -> String {
    let in_cents = (amount * 100.0 - (amount * 100.0).round()).abs() < 1e-4;
    if in_cents || amount.abs() >= 1.0 { format!("${amount:.2}") } else { format!("${amount:.4}") }
}
