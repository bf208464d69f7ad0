//! The values a key can have, the shapes a key asks for, and what counts as nonsense in them.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use wiggum_core::policy::Millis;

/// What a key is set to, whatever layer it came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(into = "serde_json::Value")]
pub(crate) enum Value {
    /// Nothing: no limit, no command, found automatically.
    None,
    Text(String),
    Count(u32),
    Switch(bool),
    Duration(Millis),
    Amount(Amount),
    Amounts(Vec<Amount>),
    List(Vec<String>),
    Variables(BTreeMap<String, String>),
}

/// A number with up to six decimals, zero or more: dollars, or a part of something. Counted in
/// millionths, so that two of them are equal exactly when they are written alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Amount(u64);

impl Amount {
    const ONE: u64 = 1_000_000;

    /// From what was written; nothing of what is negative, not a number or beyond all sense.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let number: f64 = text.trim().trim_start_matches('$').parse().ok()?;
        Self::from_f64(number)
    }

    pub(crate) fn from_f64(number: f64) -> Option<Self> {
        let sensible = number.is_sign_positive() && number <= 1e12;
        let millionths = (number * Self::ONE as f64).round();
        let vanishes = number > 0.0 && millionths == 0.0;
        (sensible && !vanishes).then_some(Self(millionths as u64))
    }

    pub(crate) fn to_f64(self) -> f64 {
        self.0 as f64 / Self::ONE as f64
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.to_f64().to_string())
    }
}

/// What a key asks for. It decides which variant of [`Value`] the key's value has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// A name for people and for file names.
    Name,
    Path,
    Command,
    /// One command or a list of them.
    Commands,
    Globs,
    Count(Zero),
    Duration(Zero),
    /// Dollars, or how many times.
    Amount(Zero),
    /// A part of a whole, such as 0.70.
    Fraction(Zero),
    /// One part of a whole or a list of them.
    Parts,
    Switch,
    Choice(&'static [&'static str]),
    /// One text or a list of them.
    Words,
    /// Environment variables.
    Variables,
    /// Names for names.
    Pairs,
}

/// What `0` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Zero {
    /// Just the number.
    Number,
    /// The same as nothing: no limit.
    NoLimit,
    Refused,
}

/// Variables that wiggum itself gives to agents and checks, or reads for its own tests. They are
/// not configuration, also when one wiggum runs inside an agent of another.
pub(crate) const OWN_VARIABLES: &[&str] = &[
    "WIGGUM_LOOP_ID",
    "WIGGUM_TASK_ID",
    "WIGGUM_ITERATION",
    "WIGGUM_ATTEMPT",
    "WIGGUM_PROMPT_FILE",
    "WIGGUM_BIN",
    "WIGGUM_NUDGES",
    "WIGGUM_REPORTS",
    "WIGGUM_CRASH_AT",
    "WIGGUM_RECORD",
    "WIGGUM_DATA_DIR",
    "WIGGUM_MCP",
];

/// Why a value is refused; `element` says which one of a list or table is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Complaint {
    pub(crate) element: Option<usize>,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

impl Complaint {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { element: None, message: message.into(), hint: None }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    fn at(mut self, element: usize) -> Self {
        self.element = Some(element);
        self
    }
}

impl Shape {
    /// What is expected, for error messages.
    pub(crate) fn expected(self) -> String {
        match self {
            Self::Name => "a name".to_owned(),
            Self::Path => "a path".to_owned(),
            Self::Command => "a command".to_owned(),
            Self::Commands => "a command or a list of commands".to_owned(),
            Self::Globs => "a list of path patterns".to_owned(),
            Self::Count(Zero::Number | Zero::NoLimit) => "a whole number, 0 or more".to_owned(),
            Self::Count(Zero::Refused) => "a whole number, 1 or more".to_owned(),
            Self::Duration(_) => "a duration such as \"90s\", \"30m\" or \"1h30m\"".to_owned(),
            Self::Amount(Zero::Number | Zero::NoLimit) => "an amount such as 5 or 2.50, 0 or more".to_owned(),
            Self::Amount(Zero::Refused) => "an amount such as 5 or 2.50, more than 0".to_owned(),
            Self::Parts => "a part such as 0.8, or a list of them".to_owned(),
            Self::Fraction(_) => "a part of a whole between 0 and 1, such as 0.70".to_owned(),
            Self::Switch => "true or false".to_owned(),
            Self::Choice(words) => one_of(words),
            Self::Words => "a text or a list of texts".to_owned(),
            Self::Variables => "a table of texts such as { KEY = \"value\" }".to_owned(),
            Self::Pairs => "a table of texts such as { tester = \"codex\" }".to_owned(),
        }
    }

    /// What is expected of one element of a list.
    pub(crate) fn expected_element(self) -> String {
        match self {
            Self::Commands => Self::Command.expected(),
            Self::Globs => "a path pattern".to_owned(),
            Self::Words => "a text".to_owned(),
            Self::Parts => "a part such as 0.8".to_owned(),
            Self::Name
            | Self::Path
            | Self::Command
            | Self::Count(_)
            | Self::Duration(_)
            | Self::Amount(_)
            | Self::Fraction(_)
            | Self::Switch
            | Self::Choice(_)
            | Self::Variables
            | Self::Pairs => self.expected(),
        }
    }

    /// Takes a value of this shape if it makes sense, and `0` for what it means here.
    pub(crate) fn accept(self, value: Value) -> Result<Value, Vec<Complaint>> {
        let complaints: Vec<_> = match (&value, self) {
            (Value::Count(0), Self::Count(zero))
            | (Value::Duration(Millis(0)), Self::Duration(zero))
            | (Value::Amount(Amount(0)), Self::Amount(zero) | Self::Fraction(zero)) => {
                return match zero {
                    Zero::Number => Ok(value),
                    Zero::NoLimit => Ok(Value::None),
                    Zero::Refused => {
                        Err(vec![Complaint::new(format!("expected {}, found 0", self.expected()))])
                    }
                };
            }
            (Value::Text(text), _) => self.complain(text).into_iter().collect(),
            (Value::List(texts), _) => {
                let elements = texts.iter().enumerate();
                elements.filter_map(|(index, text)| Some(self.complain(text)?.at(index))).collect()
            }
            (Value::Variables(variables), _) => {
                let elements = variables.iter().enumerate();
                elements
                    .filter_map(|(index, (name, text))| Some(complain_variable(name, text)?.at(index)))
                    .collect()
            }
            (Value::Amounts(parts), _) => {
                let elements = parts.iter().enumerate();
                elements.filter_map(|(index, part)| Some(complain_part(*part)?.at(index))).collect()
            }
            (Value::Amount(part), Self::Fraction(_)) => complain_part(*part).into_iter().collect(),
            (Value::None | Value::Count(_) | Value::Switch(_) | Value::Duration(_) | Value::Amount(_), _) => {
                Vec::new()
            }
        };
        if complaints.is_empty() { Ok(value) } else { Err(complaints) }
    }

    /// What is wrong with one text of this shape.
    fn complain(self, text: &str) -> Option<Complaint> {
        if text.trim().is_empty() {
            return Some(Complaint::new(format!(
                "expected {}, found an empty text",
                self.expected_element()
            )));
        }
        if text.contains('\0') {
            return Some(Complaint::new("a NUL character is not possible here"));
        }
        match self {
            Self::Name => complain_name(text),
            Self::Globs => complain_glob(text),
            Self::Choice(words) => complain_choice(words, text),
            Self::Path
            | Self::Command
            | Self::Commands
            | Self::Count(_)
            | Self::Duration(_)
            | Self::Amount(_)
            | Self::Parts
            | Self::Fraction(_)
            | Self::Switch
            | Self::Words
            | Self::Variables
            | Self::Pairs => None,
        }
    }
}

/// Names end up in file names and in identities, so they stay simple.
fn complain_name(text: &str) -> Option<Complaint> {
    let simple = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    if text.chars().all(simple) && text.chars().count() <= 64 && !text.starts_with('.') {
        return None;
    }
    Some(
        Complaint::new(format!("{text:?} cannot be a name"))
            .hint("use up to 64 letters, digits, `-`, `_` and `.`, not beginning with `.`"),
    )
}

fn complain_glob(text: &str) -> Option<Complaint> {
    if text.starts_with('/') {
        let hint = format!("write {:?}", text.trim_start_matches('/'));
        return Some(
            Complaint::new(format!("the pattern {text:?} is not relative to the workspace")).hint(hint),
        );
    }
    let error = globset::Glob::new(text).err()?;
    Some(Complaint::new(format!("{text:?} is not a path pattern: {}", error.kind())))
}

fn complain_choice(words: &[&'static str], text: &str) -> Option<Complaint> {
    if words.contains(&text) {
        return None;
    }
    let complaint = Complaint::new(format!("expected {}, found {text:?}", one_of(words)));
    Some(match super::problem::nearest(text, words.iter().copied()) {
        Some(word) => complaint.hint(format!("did you mean {word:?}?")),
        None => complaint,
    })
}

/// 70 where 0.70 is meant is the usual slip.
fn complain_part(part: Amount) -> Option<Complaint> {
    if part.0 > 0 && part.0 <= Amount::ONE {
        return None;
    }
    let complaint = Complaint::new(format!("expected a part above 0 and up to 1, found {part}"));
    let percent = part.0 > Amount::ONE && part.0 <= 100 * Amount::ONE;
    Some(if percent { complaint.hint(format!("write {}", part.to_f64() / 100.0)) } else { complaint })
}

fn complain_variable(name: &str, text: &str) -> Option<Complaint> {
    if name.is_empty() || name.contains(['=', '\0']) || text.contains('\0') {
        return Some(Complaint::new(format!("{name:?} cannot be an environment variable")));
    }
    if OWN_VARIABLES.contains(&name) {
        return Some(Complaint::new(format!("`{name}` is set by wiggum itself")));
    }
    None
}

fn one_of(words: &[&str]) -> String {
    let quoted: Vec<_> = words.iter().map(|word| format!("{word:?}")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
        None => String::new(),
    }
}

/// Reads `2h`, `90m`, `1h30m`, `45s`, `500ms`, `1d`; a bare number is seconds.
pub(crate) fn parse_duration(text: &str) -> Result<Millis, DurationError> {
    let error = || DurationError { text: text.to_owned() };
    let mut rest = text.trim();
    if let Ok(seconds) = rest.parse::<u64>() {
        return seconds.checked_mul(1000).map(Millis).ok_or_else(error);
    }
    if rest.is_empty() {
        return Err(error());
    }
    let mut total: u64 = 0;
    let mut smallest_so_far = u64::MAX;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(error)?;
        let number: u64 = rest[..digits].parse().map_err(|_| error())?;
        let after = rest[digits..].trim_start();
        let letters = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let unit = unit_millis(&after[..letters]).filter(|unit| *unit < smallest_so_far).ok_or_else(error)?;
        total = number.checked_mul(unit).and_then(|part| total.checked_add(part)).ok_or_else(error)?;
        smallest_so_far = unit;
        rest = after[letters..].trim_start();
    }
    Ok(Millis(total))
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a duration such as \"90s\", \"30m\" or \"1h30m\"")]
pub(crate) struct DurationError {
    text: String,
}

fn unit_millis(unit: &str) -> Option<u64> {
    UNITS.iter().find(|(names, _)| names.contains(&unit)).map(|(_, millis)| *millis)
}

/// Names of the units, the short one first, and their length in milliseconds.
pub(super) const UNITS: &[(&[&str], u64)] = &[
    (&["d", "day", "days"], 86_400_000),
    (&["h", "hour", "hours"], 3_600_000),
    (&["m", "min", "minute", "minutes"], 60_000),
    (&["s", "sec", "second", "seconds"], 1000),
    (&["ms"], 1),
];

/// A text that [`parse_duration`] reads back as the same, in hours and smaller units.
pub(crate) fn format_duration(Millis(mut millis): Millis) -> String {
    if millis == 0 {
        return "0s".to_owned();
    }
    let mut text = String::new();
    for (names, unit) in &UNITS[1..] {
        if millis >= *unit {
            text.push_str(&format!("{}{}", millis / unit, names[0]));
            millis %= unit;
        }
    }
    text
}

/// As it would be written in a file; nothing is `none`.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.pad("none"),
            Self::Count(number) => f.pad(&number.to_string()),
            Self::Switch(on) => f.pad(if *on { "true" } else { "false" }),
            Self::Text(text) => f.pad(&quoted(text)),
            Self::Duration(millis) => f.pad(&quoted(&format_duration(*millis))),
            Self::Amount(amount) => amount.fmt(f),
            Self::Amounts(amounts) => {
                let texts: Vec<_> = amounts.iter().map(ToString::to_string).collect();
                f.pad(&format!("[{}]", texts.join(", ")))
            }
            Self::List(texts) => match texts.as_slice() {
                [only] => f.pad(&format!("[{}]", quoted(only))),
                texts => {
                    let texts: Vec<_> = texts.iter().map(|text| quoted(text)).collect();
                    f.pad(&format!("[{}]", texts.join(", ")))
                }
            },
            Self::Variables(variables) if variables.is_empty() => f.pad("{}"),
            Self::Variables(variables) => {
                let pairs = variables
                    .iter()
                    .map(|(name, text)| format!("{} = {}", bare_or_quoted(name), quoted(text)));
                f.pad(&format!("{{ {} }}", pairs.collect::<Vec<_>>().join(", ")))
            }
        }
    }
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

fn bare_or_quoted(name: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if !name.is_empty() && name.chars().all(bare) { name.to_owned() } else { quoted(name) }
}

impl From<Value> for serde_json::Value {
    fn from(value: Value) -> Self {
        match value {
            Value::None => Self::Null,
            Value::Text(text) => text.into(),
            Value::Count(number) => number.into(),
            Value::Switch(on) => on.into(),
            Value::Duration(millis) => format_duration(millis).into(),
            Value::Amount(amount) => amount.to_f64().into(),
            Value::Amounts(amounts) => amounts.into_iter().map(Amount::to_f64).collect(),
            Value::List(texts) => texts.into(),
            Value::Variables(variables) => {
                variables.into_iter().map(|(name, text)| (name, Self::from(text))).collect()
            }
        }
    }
}

impl Value {
    /// What may be shown to anybody: variables often hold keys and tokens, so only their names are.
    pub(super) fn without_secrets(mut self) -> Self {
        if let Self::Variables(variables) = &mut self {
            variables.values_mut().for_each(|text| "…".clone_into(text));
        }
        self
    }

    /// Nothing worth showing as an example.
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::None => true,
            Self::List(texts) => texts.is_empty(),
            Self::Amounts(amounts) => amounts.is_empty(),
            Self::Variables(variables) => variables.is_empty(),
            Self::Text(_) | Self::Count(_) | Self::Switch(_) | Self::Duration(_) | Self::Amount(_) => false,
        }
    }
}

/// What a key's `set` takes out of its value. The key's shape has already decided the variant, so
/// another one is a mistake in the table, which the test over all keys finds.
impl Value {
    pub(super) fn text(self) -> String {
        match self {
            Self::Text(text) => text,
            other => other.misfit("text"),
        }
    }

    pub(super) fn optional_text(self) -> Option<String> {
        if self == Self::None { None } else { Some(self.text()) }
    }

    pub(super) fn count(self) -> u32 {
        match self {
            Self::Count(number) => number,
            other => other.misfit("a count"),
        }
    }

    pub(super) fn optional_count(self) -> Option<u32> {
        if self == Self::None { None } else { Some(self.count()) }
    }

    pub(super) fn switch(self) -> bool {
        match self {
            Self::Switch(on) => on,
            other => other.misfit("a switch"),
        }
    }

    pub(super) fn duration(self) -> Millis {
        match self {
            Self::Duration(millis) => millis,
            other => other.misfit("a duration"),
        }
    }

    pub(super) fn optional_duration(self) -> Option<Millis> {
        if self == Self::None { None } else { Some(self.duration()) }
    }

    pub(super) fn amount(self) -> f64 {
        match self {
            Self::Amount(amount) => amount.to_f64(),
            other => other.misfit("an amount"),
        }
    }

    pub(super) fn optional_amount(self) -> Option<f64> {
        if self == Self::None { None } else { Some(self.amount()) }
    }

    pub(super) fn parts(self) -> Vec<f64> {
        match self {
            Self::Amounts(amounts) => amounts.into_iter().map(Amount::to_f64).collect(),
            other => other.misfit("parts"),
        }
    }

    pub(super) fn list(self) -> Vec<String> {
        match self {
            Self::List(texts) => texts,
            other => other.misfit("a list"),
        }
    }

    pub(super) fn variables(self) -> BTreeMap<String, String> {
        match self {
            Self::Variables(variables) => variables,
            other => other.misfit("variables"),
        }
    }

    fn misfit(&self, wanted: &str) -> ! {
        unreachable!("the table of keys asks for {wanted} but its shape gives {self:?}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_as_people_write_them() {
        let check = |text: &str, millis: u64, back: &str| {
            assert_eq!(parse_duration(text), Ok(Millis(millis)), "{text}");
            assert_eq!(format_duration(Millis(millis)), back, "{text}");
            assert_eq!(parse_duration(back), Ok(Millis(millis)), "{back}");
        };
        check("2h", 7_200_000, "2h");
        check("90m", 5_400_000, "1h30m");
        check("1h30m", 5_400_000, "1h30m");
        check(" 1h 30m ", 5_400_000, "1h30m");
        check("45s", 45_000, "45s");
        check("500ms", 500, "500ms");
        check("90", 90_000, "1m30s");
        check("0", 0, "0s");
        check("2 hours", 7_200_000, "2h");
        check("5 min", 300_000, "5m");
        check("1d", 86_400_000, "24h");
        check("3d", 259_200_000, "72h");
        check("1d1ms", 86_400_001, "24h1ms");
    }

    #[test]
    fn nonsense_is_no_duration() {
        for text in [
            "",
            " ",
            "soon",
            "h",
            "2x",
            "-5s",
            "-5",
            "1.5h",
            "30m1h",
            "1h1h",
            "2h30",
            "1e3",
            "99999999999999999999",
            "+5m",
            "２h",
        ] {
            assert!(parse_duration(text).is_err(), "{text:?}");
        }
    }
}
