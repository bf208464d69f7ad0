//! What a start may use: looked at before each call, so that it ends in order instead of in the middle of
//! an answer.

use wiggum_core::budget::Unit;
use wiggum_core::event::Usage;

use crate::Settings;

/// Why a call that uses at least this must not be made, after so much was used already.
pub(crate) fn beyond(settings: &Settings, used: &Usage, next: &Usage) -> Option<String> {
    let cost = settings.prices.zip(settings.ceiling.cost_usd).and_then(|(prices, limit)| {
        let (used, next) = (prices.of(used), prices.of(next));
        goes_beyond(Unit::Usd, used, next, limit)
    });
    let tokens = |limit: u64| {
        let (used, next) = (used.tokens() as f64, next.tokens() as f64);
        goes_beyond(Unit::Tokens, used, next, limit as f64)
    };
    cost.or_else(|| settings.ceiling.tokens.and_then(tokens))
}

fn goes_beyond(unit: Unit, used: f64, next: f64, limit: f64) -> Option<String> {
    let (spent, most) = (unit.show(used), unit.show(limit));
    if used >= limit {
        return Some(format!("it has used {spent} of the {most} that are left"));
    }
    let least = unit.show(next);
    (used + next > limit).then(|| {
        format!("it has used {spent} of the {most} that are left, and its next call needs at least {least}")
    })
}

#[cfg(test)]
mod tests {
    use super::goes_beyond;
    use wiggum_core::budget::Unit;

    #[test]
    fn a_call_is_made_as_long_as_it_may_fit() {
        let beyond = |used, next| goes_beyond(Unit::Usd, used, next, 1.0).is_some();
        assert!(!beyond(0.0, 0.0) && !beyond(0.4, 0.6) && !beyond(0.99, 0.0));
        assert!(beyond(1.0, 0.0) && beyond(0.5, 0.51) && beyond(0.0, 1.01));
        let why = goes_beyond(Unit::Tokens, 70.0, 40.0, 100.0).unwrap();
        assert_eq!(
            why,
            "it has used 70 tokens of the 100 tokens that are left, and its next call needs at least 40 tokens"
        );
    }
}
