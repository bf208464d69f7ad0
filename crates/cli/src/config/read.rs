//! Reads one TOML value as the value of a key. Files and environment variables both end up here.

use std::collections::BTreeMap;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};
use wiggum_core::policy::Millis;

use super::value::{Amount, Complaint, Shape, Value, parse_duration};

/// A complaint about certain bytes of the text.
pub(super) type Fault = (Range<usize>, Complaint);

/// What a section with entries of its own kind says, and what is wrong with it.
pub(super) struct Section<Found> {
    pub(super) found: Vec<Found>,
    pub(super) faults: Vec<Fault>,
    pub(super) unknown: Vec<Fault>,
}

impl<Found> Default for Section<Found> {
    fn default() -> Self {
        Self { found: Vec::new(), faults: Vec::new(), unknown: Vec::new() }
    }
}

/// The value, or everything that is wrong with it.
pub(super) fn read(shape: Shape, written: &Spanned<DeValue<'_>>) -> Result<Value, Vec<Fault>> {
    let Converted { value, places, mut faults } = convert(shape, written).map_err(|fault| vec![fault])?;
    match shape.accept(value) {
        Ok(value) if faults.is_empty() => Ok(value),
        Ok(_) => Err(faults),
        Err(complaints) => {
            let place =
                |complaint: &Complaint| complaint.element.and_then(|index| places.get(index)).cloned();
            faults.extend(complaints.into_iter().map(|c| (place(&c).unwrap_or(written.span()), c)));
            Err(faults)
        }
    }
}

/// A value of the right kind; of a list or table, what of it is of the right kind.
struct Converted {
    value: Value,
    /// Where the elements of the value are, if it has any.
    places: Vec<Range<usize>>,
    /// What is wrong with the elements that are missing in the value.
    faults: Vec<Fault>,
}

impl From<Value> for Converted {
    fn from(value: Value) -> Self {
        Self { value, places: Vec::new(), faults: Vec::new() }
    }
}

fn convert(shape: Shape, written: &Spanned<DeValue<'_>>) -> Result<Converted, Fault> {
    let wrong = || mismatch(&shape.expected(), written);
    match (shape, written.get_ref()) {
        (Shape::Name | Shape::Path | Shape::Command | Shape::Choice(_), DeValue::String(text)) => {
            Ok(Value::Text(text.to_string()).into())
        }
        (Shape::Commands | Shape::Globs | Shape::Words, DeValue::String(text)) => {
            Ok(Value::List(vec![text.to_string()]).into())
        }
        (Shape::Commands | Shape::Globs | Shape::Words, DeValue::Array(elements)) => {
            Ok(texts(shape, elements))
        }
        (Shape::Count(_), DeValue::Integer(_)) => {
            integer(written).map(|number| Value::Count(number).into()).ok_or_else(wrong)
        }
        (Shape::Duration(_), DeValue::Integer(_)) => {
            let seconds = integer(written).ok_or_else(wrong)?;
            Ok(Value::Duration(Millis::from_secs(seconds.into())).into())
        }
        (Shape::Duration(_), DeValue::String(text)) => {
            parse_duration(text).map(|millis| Value::Duration(millis).into()).map_err(|_| wrong())
        }
        (Shape::Amount(_), _) => amount(written).map(|amount| Value::Amount(amount).into()).ok_or_else(wrong),
        (Shape::Fraction(_), DeValue::Integer(_) | DeValue::Float(_)) => {
            amount(written).map(|part| Value::Amount(part).into()).ok_or_else(wrong)
        }
        (Shape::Parts, DeValue::Array(elements)) => Ok(amounts(elements)),
        (Shape::Parts, _) => {
            let part = amount(written).ok_or_else(wrong)?;
            Ok(Value::Amounts(vec![part]).into())
        }
        (Shape::Switch, DeValue::Boolean(on)) => Ok(Value::Switch(*on).into()),
        (Shape::Variables | Shape::Pairs, DeValue::Table(table)) => Ok(variables(table)),
        (
            Shape::Name
            | Shape::Path
            | Shape::Command
            | Shape::Choice(_)
            | Shape::Commands
            | Shape::Globs
            | Shape::Count(_)
            | Shape::Duration(_)
            | Shape::Fraction(_)
            | Shape::Switch
            | Shape::Words
            | Shape::Variables
            | Shape::Pairs,
            _,
        ) => Err(wrong()),
    }
}

fn texts(shape: Shape, elements: &[Spanned<DeValue<'_>>]) -> Converted {
    let (mut texts, mut places, mut faults) = (Vec::new(), Vec::new(), Vec::new());
    for element in elements {
        match element.get_ref().as_str() {
            Some(text) => {
                texts.push(text.to_owned());
                places.push(element.span());
            }
            None => faults.push(mismatch(&shape.expected_element(), element)),
        }
    }
    Converted { value: Value::List(texts), places, faults }
}

/// A number, or the text of one as shells and habit write it (`"$5"`).
fn amount(written: &Spanned<DeValue<'_>>) -> Option<Amount> {
    match written.get_ref() {
        DeValue::Integer(_) => Amount::from_f64(integer(written)?.into()),
        DeValue::Float(number) => Amount::parse(number.as_str()),
        DeValue::String(text) => Amount::parse(text),
        DeValue::Boolean(_) | DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => None,
    }
}

fn amounts(elements: &[Spanned<DeValue<'_>>]) -> Converted {
    let (mut amounts, mut places, mut faults) = (Vec::new(), Vec::new(), Vec::new());
    for element in elements {
        match amount(element) {
            Some(amount) => {
                amounts.push(amount);
                places.push(element.span());
            }
            None => faults.push(mismatch(&Shape::Parts.expected_element(), element)),
        }
    }
    Converted { value: Value::Amounts(amounts), places, faults }
}

fn variables(table: &DeTable<'_>) -> Converted {
    let mut faults = Vec::new();
    let mut texts = BTreeMap::new();
    for (name, element) in table {
        match element.get_ref().as_str() {
            Some(text) => drop(texts.insert(name.get_ref().to_string(), (text.to_owned(), name.span()))),
            None => faults.push(mismatch(&format!("a text for `{}`", name.get_ref()), element)),
        }
    }
    // In the order of the map, so that the places fit its elements.
    let places = texts.values().map(|(_, place)| place.clone()).collect();
    let texts = texts.into_iter().map(|(name, (text, _))| (name, text)).collect();
    Converted { value: Value::Variables(texts), places, faults }
}

fn integer(written: &Spanned<DeValue<'_>>) -> Option<u32> {
    let integer = written.get_ref().as_integer()?;
    u32::from_str_radix(integer.as_str(), integer.radix()).ok()
}

fn mismatch(expected: &str, written: &Spanned<DeValue<'_>>) -> Fault {
    (written.span(), Complaint::new(format!("expected {expected}, found {}", found(written.get_ref()))))
}

fn found(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) if text.is_empty() => "an empty text".to_owned(),
        DeValue::String(text) => format!("the text {text:?}"),
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => number.to_string(),
        DeValue::Boolean(on) => on.to_string(),
        DeValue::Datetime(date) => format!("the date {date}"),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}
