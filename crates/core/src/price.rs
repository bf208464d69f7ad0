//! What tokens cost where the agent does not say it itself: by the user's prices, else by the table
//! that ships with the program, which has a date ([`AS_OF`]).

mod table;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::event::Usage;

pub use table::{AS_OF, models};

/// What a model costs: as the user says, else as the table of this program says. No price is ever
/// guessed: a model that nobody knows has none.
pub fn find(own: &BTreeMap<String, Prices>, model: &str) -> Option<Prices> {
    let name = base_name(model);
    find_own(own, model).or_else(|| models().find(|(known, _)| *known == name).map(|(_, prices)| prices))
}

/// What the user says that a model costs.
pub fn find_own(own: &BTreeMap<String, Prices>, model: &str) -> Option<Prices> {
    let name = base_name(model);
    let same = || own.iter().find(|(known, _)| base_name(known) == name).map(|(_, prices)| prices);
    own.get(model).or_else(same).copied()
}

/// A model's name without what does not change its price: the provider before it, the day of its
/// snapshot and the size of its context behind it. `us.anthropic.claude-opus-4-5-20251101-v1:0`,
/// `anthropic/claude-opus-4.5` and `claude-opus-4-5[1m]` are all `claude-opus-4-5`.
fn base_name(model: &str) -> String {
    let name = model.trim().to_ascii_lowercase();
    let name = name.rsplit('/').next().unwrap_or_default();
    let name = name.rsplit("anthropic.").next().unwrap_or_default();
    let name = name.split(['[', '@']).next().unwrap_or_default();
    let name = name.strip_suffix("-v1:0").unwrap_or(name);
    let name = without_day(name);
    if name.starts_with("claude") { name.replace('.', "-") } else { name.to_owned() }
}

/// Without `-20251101` or `-2025-08-07` at its end.
fn without_day(name: &str) -> &str {
    [&[8][..], &[4, 2, 2][..]].into_iter().find_map(|widths| strip_numbers(name, widths)).unwrap_or(name)
}

fn strip_numbers<'a>(name: &'a str, widths: &[usize]) -> Option<&'a str> {
    widths.iter().rev().try_fold(name, |rest, width| {
        let (rest, number) = rest.rsplit_once('-')?;
        let fits = number.len() == *width && number.bytes().all(|byte| byte.is_ascii_digit());
        fits.then_some(rest)
    })
}

/// In US dollars per million tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Prices {
    pub input: f64,
    pub output: f64,
    pub cache_read: f64,
    pub cache_write: f64,
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PriceError {
    #[error("a price has no name `{0}`: there are input, output, cache_read and cache_write")]
    Name(String),
    #[error("`{0}` is not a price: write dollars per million tokens, such as 2.50")]
    Number(String),
    #[error("the price of {0} is missing")]
    Missing(&'static str),
}

impl Prices {
    /// From what was written, by name. Where nothing is said about the cache it costs as much as any
    /// input: rather too much than too little.
    pub fn read<'a>(written: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, PriceError> {
        let mut known = [("input", None), ("output", None), ("cache_read", None), ("cache_write", None)];
        for (name, text) in written {
            let place = known.iter_mut().find(|(known, _)| *known == name);
            let (_, price) = place.ok_or_else(|| PriceError::Name(name.to_owned()))?;
            let number = text.trim().trim_start_matches('$').parse::<f64>().ok();
            let number = number.filter(|number| number.is_finite() && *number >= 0.0);
            *price = Some(number.ok_or_else(|| PriceError::Number(text.to_owned()))?);
        }
        let [(_, input), (_, output), (_, cache_read), (_, cache_write)] = known;
        let input = input.ok_or(PriceError::Missing("input"))?;
        Ok(Self {
            input,
            output: output.ok_or(PriceError::Missing("output"))?,
            cache_read: cache_read.unwrap_or(input),
            cache_write: cache_write.unwrap_or(input),
        })
    }

    pub fn of(self, usage: &Usage) -> f64 {
        self.parts(usage).total()
    }

    /// What each kind of token costs.
    pub fn parts(self, usage: &Usage) -> Parts {
        let cost = |tokens: u64, price: f64| tokens as f64 * price / 1_000_000.0;
        Parts {
            input_usd: cost(usage.input_tokens, self.input),
            output_usd: cost(usage.output_tokens, self.output),
            cache_read_usd: cost(usage.cache_read_tokens, self.cache_read),
            cache_write_usd: cost(usage.cache_write_tokens, self.cache_write),
        }
    }
}

/// A cost in dollars, by kind of token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Parts {
    pub input_usd: f64,
    pub output_usd: f64,
    pub cache_read_usd: f64,
    pub cache_write_usd: f64,
}

impl Parts {
    pub fn total(self) -> f64 {
        let Self { input_usd, output_usd, cache_read_usd, cache_write_usd } = self;
        input_usd + output_usd + cache_read_usd + cache_write_usd
    }

    /// In the same proportions, with another total: an agent's own figure may differ from the table's.
    #[must_use]
    pub fn scaled_to(self, total: f64) -> Self {
        let factor = if self.total() > 0.0 { total / self.total() } else { 0.0 };
        Self {
            input_usd: self.input_usd * factor,
            output_usd: self.output_usd * factor,
            cache_read_usd: self.cache_read_usd * factor,
            cache_write_usd: self.cache_write_usd * factor,
        }
    }
}

impl std::ops::AddAssign for Parts {
    fn add_assign(&mut self, other: Self) {
        self.input_usd += other.input_usd;
        self.output_usd += other.output_usd;
        self.cache_read_usd += other.cache_read_usd;
        self.cache_write_usd += other.cache_write_usd;
    }
}

/// More than one start of an agent can use: at a thousand tokens a second it would take thirty years.
const MOST_TOKENS: u64 = 1_000_000_000_000;
/// As many tokens, at a dollar for a million.
const MOST_DOLLARS: f64 = 1_000_000.0;

impl Usage {
    /// Tokens of every kind.
    pub fn tokens(&self) -> u64 {
        let Self { input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cost_usd: _ } = *self;
        [output_tokens, cache_read_tokens, cache_write_tokens]
            .into_iter()
            .fold(input_tokens, u64::saturating_add)
    }

    /// Without figures that cannot be: a cost below zero would give money back to a budget.
    #[must_use]
    pub fn credible(self) -> Self {
        let tokens = |told: u64| if told <= MOST_TOKENS { told } else { 0 };
        Self {
            input_tokens: tokens(self.input_tokens),
            output_tokens: tokens(self.output_tokens),
            cache_read_tokens: tokens(self.cache_read_tokens),
            cache_write_tokens: tokens(self.cache_write_tokens),
            cost_usd: if (0.0..=MOST_DOLLARS).contains(&self.cost_usd) { self.cost_usd } else { 0.0 },
        }
    }

    /// Tokens, but not what they cost: that nobody told a cost does not mean that there is none.
    pub fn is_unpriced(&self) -> bool {
        self.cost_usd == 0.0 && self.tokens() > 0
    }

    /// With the cost that these prices give, unless it is known already.
    #[must_use]
    pub fn priced(self, prices: Option<&Prices>) -> Self {
        match prices {
            Some(prices) if self.is_unpriced() => Self { cost_usd: prices.of(&self), ..self },
            Some(_) | None => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRICES: Prices = Prices { input: 3.0, output: 15.0, cache_read: 0.5, cache_write: 4.0 };

    #[test]
    fn every_kind_of_token_has_its_price() {
        let usage = Usage {
            input_tokens: 1_000_000,
            output_tokens: 2_000_000,
            cache_read_tokens: 3_000_000,
            cache_write_tokens: 4_000_000,
            cost_usd: 0.0,
        };
        let all = [("input", "3"), ("output", "$15"), ("cache_read", "0.5"), ("cache_write", "4")];
        assert_eq!(Prices::read(all).unwrap().of(&usage), 3.0 + 30.0 + 1.5 + 16.0);
        let two = [("input", "3"), ("output", "15")];
        assert_eq!(Prices::read(two).unwrap().of(&usage), 3.0 + 30.0 + 9.0 + 12.0);
    }

    #[test]
    fn what_cannot_be_is_not_believed() {
        let told = Usage { input_tokens: 7, output_tokens: 5, cost_usd: 0.25, ..Usage::default() };
        assert_eq!(told.credible(), told);
        for cost_usd in [-50.0, -0.01, f64::NAN, f64::INFINITY, 1e30] {
            let credible = Usage { cost_usd, ..told }.credible();
            assert_eq!(credible, Usage { cost_usd: 0.0, ..told });
            assert_eq!(credible.priced(Some(&PRICES)).cost_usd, PRICES.of(&told), "then the table counts");
        }
        let absurd = Usage { input_tokens: u64::MAX, ..told };
        assert_eq!(absurd.credible(), Usage { input_tokens: 0, ..told });
    }

    #[test]
    fn a_model_has_its_price_under_every_name_it_goes_by() {
        let none = BTreeMap::new();
        let input = |model: &str| find(&none, model).map(|prices| prices.input);
        for model in [
            "claude-opus-4-5",
            "claude-opus-4-5-20251101",
            "claude-opus-4-5[1m]",
            "anthropic/claude-opus-4.5",
            "us.anthropic.claude-opus-4-5-20251101-v1:0",
            "claude-opus-4-5@20251101",
            "Claude-Opus-4-5",
        ] {
            assert_eq!(input(model), Some(5.0), "{model}");
        }
        assert_eq!(input("gpt-5-2025-08-07"), Some(1.25));
        assert_eq!(input("openai/gpt-5-mini"), Some(0.25));
        assert_eq!(input("models/gemini-2.5-pro"), Some(1.25));
        // Another model with a name that begins alike is another model.
        for unknown in ["gpt-5-unheard-of", "claude-opus-4-5-fast", "gpt-4.1-2", "qwen3-coder", "", "-1-2"] {
            assert_eq!(input(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn the_users_price_wins_over_the_table() {
        let own = BTreeMap::from([("claude-opus-4-8".to_owned(), PRICES), ("m".to_owned(), PRICES)]);
        assert_eq!(find(&own, "claude-opus-4-8[1m]"), Some(PRICES));
        assert_eq!((find(&own, "m"), find_own(&own, "gpt-5")), (Some(PRICES), None));
        assert_ne!(find(&own, "gpt-5"), None);
    }

    #[test]
    fn the_table_is_sound() {
        let mut names: Vec<&str> = models().map(|(model, _)| model).collect();
        for (model, Prices { input, output, cache_read, cache_write }) in models() {
            assert_eq!(base_name(model), model, "it would never be found");
            assert!(cache_read < input && input <= cache_write && cache_write < output, "{model}");
        }
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
        assert!(AS_OF.parse::<jiff::civil::Date>().is_ok());
    }

    #[test]
    fn parts_add_up_to_what_the_agent_told() {
        let usage = Usage { input_tokens: 1_000_000, output_tokens: 1_000_000, ..Usage::default() };
        let parts = PRICES.parts(&usage);
        assert_eq!((parts.input_usd, parts.output_usd, parts.total()), (3.0, 15.0, 18.0));
        let scaled = parts.scaled_to(9.0);
        assert_eq!((scaled.input_usd, scaled.output_usd), (1.5, 7.5));
        assert_eq!(Parts::default().scaled_to(9.0), Parts::default());
    }

    #[test]
    fn what_is_no_price_is_refused() {
        let read =
            |written: &[(&'static str, &'static str)]| Prices::read(written.iter().copied()).unwrap_err();
        assert_eq!(read(&[("in", "3")]), PriceError::Name("in".to_owned()));
        assert_eq!(read(&[("input", "cheap")]), PriceError::Number("cheap".to_owned()));
        assert_eq!(read(&[("input", "-1")]), PriceError::Number("-1".to_owned()));
        assert_eq!(read(&[("input", "1")]), PriceError::Missing("output"));
    }

    #[test]
    fn the_agents_own_figure_wins_and_no_price_leaves_it_open() {
        let told = Usage { input_tokens: 1_000_000, cost_usd: 0.25, ..Usage::default() };
        assert_eq!(told.priced(Some(&PRICES)).cost_usd, 0.25);
        let untold = Usage { cost_usd: 0.0, ..told };
        assert_eq!(untold.priced(Some(&PRICES)).cost_usd, 3.0);
        assert!(untold.priced(None).is_unpriced());
        assert!(!Usage::default().is_unpriced());
    }
}
