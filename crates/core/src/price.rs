//! What tokens cost where the agent does not say it itself. Prices are the user's: providers change
//! theirs too often for numbers here to be trusted.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::event::Usage;

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
        let cost = |tokens: u64, price: f64| tokens as f64 * price / 1_000_000.0;
        cost(usage.input_tokens, self.input)
            + cost(usage.output_tokens, self.output)
            + cost(usage.cache_read_tokens, self.cache_read)
            + cost(usage.cache_write_tokens, self.cache_write)
    }
}

impl Usage {
    /// Tokens of every kind.
    pub fn tokens(&self) -> u64 {
        let Self { input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cost_usd: _ } = *self;
        [output_tokens, cache_read_tokens, cache_write_tokens]
            .into_iter()
            .fold(input_tokens, u64::saturating_add)
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
