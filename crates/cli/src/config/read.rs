//! Reads one TOML value as the value of a key. Files and environment variables both end up here.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};
use wiggum_core::policy::Millis;

use super::value::{Complaint, Shape, Value, parse_duration};

/// A complaint about certain bytes of the text.
pub(super) type Fault = (Range<usize>, Complaint);

/// The value, or everything that is wrong with it.
pub(super) fn read(shape: Shape, written: &Spanned<DeValue<'_>>) -> Result<Value, Vec<Fault>> {
    let (value, elements) = convert(shape, written)?;
    shape.accept(value).map_err(|complaints| {
        let span = |complaint: &Complaint| complaint.element.and_then(|index| elements.get(index));
        complaints.into_iter().map(|c| (span(&c).cloned().unwrap_or(written.span()), c)).collect()
    })
}

/// The value, and the places of its elements if it has any.
fn convert(shape: Shape, written: &Spanned<DeValue<'_>>) -> Result<(Value, Vec<Range<usize>>), Vec<Fault>> {
    let wrong = || vec![mismatch(shape, written)];
    let whole = |value: Value| (value, Vec::new());
    match (shape, written.get_ref()) {
        (Shape::Name | Shape::Path | Shape::Command | Shape::Choice(_), DeValue::String(text)) => {
            Ok(whole(Value::Text(text.to_string())))
        }
        (Shape::Commands | Shape::Globs, DeValue::String(text)) => {
            Ok(whole(Value::List(vec![text.to_string()])))
        }
        (Shape::Commands | Shape::Globs, DeValue::Array(elements)) => texts(shape, elements),
        (Shape::Count(_), DeValue::Integer(_)) => {
            integer(written).map(|number| whole(Value::Count(number))).ok_or_else(wrong)
        }
        (Shape::Duration(_), DeValue::Integer(_)) => {
            let seconds = integer(written).ok_or_else(wrong)?;
            Ok(whole(Value::Duration(Millis::from_secs(seconds.into()))))
        }
        (Shape::Duration(_), DeValue::String(text)) => {
            parse_duration(text).map(|millis| whole(Value::Duration(millis))).map_err(|_| wrong())
        }
        (Shape::Switch, DeValue::Boolean(on)) => Ok(whole(Value::Switch(*on))),
        (Shape::Variables, DeValue::Table(table)) => variables(table),
        (
            Shape::Name
            | Shape::Path
            | Shape::Command
            | Shape::Choice(_)
            | Shape::Commands
            | Shape::Globs
            | Shape::Count(_)
            | Shape::Duration(_)
            | Shape::Switch
            | Shape::Variables,
            _,
        ) => Err(wrong()),
    }
}

fn texts(shape: Shape, elements: &[Spanned<DeValue<'_>>]) -> Result<(Value, Vec<Range<usize>>), Vec<Fault>> {
    let mut texts = Vec::new();
    let mut faults = Vec::new();
    for element in elements {
        match element.get_ref().as_str() {
            Some(text) => texts.push(text.to_owned()),
            None => faults.push(mismatch(shape, element)),
        }
    }
    let places = elements.iter().map(Spanned::span).collect();
    if faults.is_empty() { Ok((Value::List(texts), places)) } else { Err(faults) }
}

fn variables(table: &DeTable<'_>) -> Result<(Value, Vec<Range<usize>>), Vec<Fault>> {
    let mut entries: Vec<_> = table.iter().collect();
    // The same order as in the map, so that the places fit its elements.
    entries.sort_by(|(one, _), (other, _)| one.get_ref().cmp(other.get_ref()));
    let places = entries.iter().map(|(name, _)| name.span()).collect();
    let mut faults = Vec::new();
    let mut texts = Vec::new();
    for (name, element) in entries {
        match element.get_ref().as_str() {
            Some(text) => texts.push((name.get_ref().to_string(), text.to_owned())),
            None => {
                let message =
                    format!("expected a text for `{}`, found {}", name.get_ref(), found(element.get_ref()));
                faults.push((element.span(), Complaint::new(message)));
            }
        }
    }
    if faults.is_empty() { Ok((Value::Variables(texts.into_iter().collect()), places)) } else { Err(faults) }
}

fn integer(written: &Spanned<DeValue<'_>>) -> Option<u32> {
    let integer = written.get_ref().as_integer()?;
    u32::from_str_radix(integer.as_str(), integer.radix()).ok()
}

fn mismatch(shape: Shape, written: &Spanned<DeValue<'_>>) -> Fault {
    let message = format!("expected {}, found {}", shape.expected(), found(written.get_ref()));
    (written.span(), Complaint::new(message))
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
