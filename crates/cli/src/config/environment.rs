//! Reads environment variables: each key has its own (`WIGGUM_LIMITS_ITERATIONS`), and some have
//! more, from flags and from older programs.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use toml::Spanned;
use toml::de::DeValue;

use super::keys::{KEYS, SECTIONS};
use super::problem::distance;
use super::read::read;
use super::value::{Complaint, OWN_VARIABLES, Shape};
use super::{ConfigSource, Layer, Place, Setting};

pub(super) fn layer(env: &BTreeMap<String, String>) -> Layer {
    let mut layer = Layer::default();
    for key in KEYS {
        for variable in key.variables() {
            // Empty is how shells and CI say "not set".
            let Some(text) = env.get(&variable).filter(|text| !text.trim().is_empty()) else { continue };
            let place = Place::Variable(variable.clone());
            match read(key.shape, &written(key.shape, text)) {
                Ok(value) => {
                    let source = ConfigSource::Environment { variable };
                    layer.settings.push(Setting { key, value, place, source });
                }
                Err(faults) => {
                    faults.into_iter().for_each(|(_, complaint)| layer.refuse(place.clone(), complaint))
                }
            }
        }
    }
    refuse_typos(env, &mut layer);
    layer
}

/// The text of a variable as it would be written in a file: quotes may be left out, and a list or
/// table is written as in TOML.
fn written(shape: Shape, text: &str) -> Spanned<DeValue<'_>> {
    let plain = || Spanned::new(0..text.len(), DeValue::String(Cow::Borrowed(text)));
    match shape {
        Shape::Name | Shape::Path | Shape::Command | Shape::Choice(_) => plain(),
        // `[ -f done ]` is a command although it begins like a list.
        Shape::Commands | Shape::Globs | Shape::Words => match DeValue::parse(text.trim()) {
            Ok(value) if value.get_ref().is_array() => value,
            Ok(_) | Err(_) => plain(),
        },
        Shape::Switch => match text.trim().to_lowercase().as_str() {
            "1" | "true" | "yes" | "on" => Spanned::new(0..text.len(), DeValue::Boolean(true)),
            "0" | "false" | "no" | "off" => Spanned::new(0..text.len(), DeValue::Boolean(false)),
            _ => plain(),
        },
        Shape::Count(_)
        | Shape::Duration(_)
        | Shape::Amount(_)
        | Shape::Fraction(_)
        | Shape::Parts
        | Shape::Variables
        | Shape::Pairs => DeValue::parse(text.trim()).unwrap_or_else(|_| plain()),
    }
}

/// A variable of ours that is almost a known one, or has a known section and no known key, is a
/// typing mistake. Other `WIGGUM_` variables may belong to another version or to somebody's script.
fn refuse_typos(env: &BTreeMap<String, String>, layer: &mut Layer) {
    let known: BTreeSet<_> = KEYS.iter().flat_map(|key| key.variables()).collect();
    let sections: Vec<_> = SECTIONS.iter().map(|(name, _)| name.to_uppercase()).collect();
    let in_section = |name: &str| {
        let rest = name.trim_start_matches("WIGGUM_");
        sections.iter().any(|section| !section.is_empty() && rest.starts_with(&format!("{section}_")))
    };
    let ours = env.keys().filter(|name| name.starts_with("WIGGUM_"));
    for name in ours.filter(|name| !known.contains(*name) && !OWN_VARIABLES.contains(&name.as_str())) {
        let nearest = known.iter().map(|known| (distance(name, known), known)).min();
        // In a short name two letters make another word: WIGGUM_HOME is not WIGGUM_NAME.
        let tolerance = ((name.len() - "WIGGUM_".len()) / 4).min(2);
        let meant = nearest.filter(|(distance, _)| *distance <= tolerance).map(|(_, known)| known);
        if meant.is_none() && !in_section(name) {
            continue;
        }
        let complaint = Complaint::new("unknown variable");
        layer.refuse(
            Place::Variable(name.clone()),
            match meant {
                Some(known) => complaint.hint(format!("did you mean {known}?")),
                None => complaint.hint("see `wiggum config show` for the keys there are"),
            },
        );
    }
}
