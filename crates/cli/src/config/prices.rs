//! What models cost whose agents do not say it: the sections `[prices."MODEL"]`.

use std::collections::BTreeMap;

use wiggum_core::price::Prices;

use super::value::{Amount, Shape, Value, Zero};
use super::{ConfigSource, Explained, Place, Problem};

/// The section that holds one section for each model.
pub(super) const SECTION: &str = "prices";

/// What can be said about a model, in dollars per million tokens.
pub(crate) const PRICE_KEYS: &[(&str, &str)] = &[
    ("input", "Tokens that the model reads."),
    ("output", "Tokens that it writes."),
    ("cache_read", "Tokens that it reads from its cache; as much as input if not said."),
    ("cache_write", "Tokens that it puts into its cache; as much as input if not said."),
];

pub(crate) const SHAPE: Shape = Shape::Amount(Zero::Number);

/// The prices of a model as they were written.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Written(BTreeMap<&'static str, (Amount, ConfigSource, Place)>);

/// One price set for one model in one layer.
#[derive(Debug)]
pub(super) struct Setting {
    pub(super) model: String,
    pub(super) name: &'static str,
    pub(super) amount: Amount,
    pub(super) source: ConfigSource,
    pub(super) place: Place,
}

impl Written {
    pub(super) fn set(&mut self, Setting { name, amount, source, place, .. }: Setting) {
        self.0.insert(name, (amount, source, place));
    }

    pub(super) fn prices(&self, model: &str) -> Result<Prices, Problem> {
        let texts: Vec<(&str, String)> =
            self.0.iter().map(|(name, (amount, ..))| (*name, amount.to_string())).collect();
        Prices::read(texts.iter().map(|(name, text)| (*name, text.as_str()))).map_err(|error| {
            let place = self.0.values().next().map(|(.., place)| place.clone());
            Problem {
                place: place.unwrap_or(Place::Variable(SECTION.to_owned())),
                message: format!("`{SECTION}.{model:?}`: {error}"),
                hint: Some("a model needs at least the prices of input and output".to_owned()),
            }
        })
    }

    /// What was said about a model, and where.
    pub(super) fn explain(&self, model: &str) -> Vec<Explained> {
        let help =
            |name: &str| PRICE_KEYS.iter().find(|(known, _)| *known == name).map_or("", |(_, help)| help);
        self.0
            .iter()
            .map(|(name, (amount, source, _))| Explained {
                key: format!("{SECTION}.{model:?}.{name}"),
                value: Value::Amount(*amount),
                source: source.clone(),
                help: help(name),
            })
            .collect()
    }
}
