//! Reads a configuration file: every key that is fine becomes a setting, everything else a problem
//! with its line and column.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::agents::{self, AGENT_KEYS, AgentKey};
use super::keys::{self, KEYS, Key, SECTIONS, Settable};
use super::mcp;
use super::notify;
use super::prices::{self, PRICE_KEYS};
use super::problem::{Lines, distance, nearest};
use super::read::{Fault, read};
use super::value::{Amount, Complaint, Shape, Value};
use super::{ConfigSource, Layer, Setting};

pub(super) fn layer(path: &Path, text: &str, source: impl Fn(PathBuf, usize) -> ConfigSource) -> Layer {
    let (document, syntax_errors) = DeTable::parse_recoverable(text);
    let mut walk = Walk::default();
    walk.document(document.get_ref());

    let lines = Lines::of(text);
    let place = |span: &Range<usize>| lines.place(path.to_owned(), span.start);
    let mut layer = Layer::default();
    for (span, complaint) in worth_reading(&lines, &syntax_errors, walk.faults, walk.unknown) {
        layer.refuse(place(&span), complaint);
    }
    walk.found.sort_by_key(|(_, _, span)| span.start);
    for (key, value, span) in walk.found {
        let source = source(path.to_owned(), lines.line(span.start));
        layer.settings.push(Setting { key, value, place: place(&span), source });
    }
    for (agent, key, value, span) in walk.agents {
        let source = source(path.to_owned(), lines.line(span.start));
        layer.agents.push(agents::Setting { agent, key, value, source });
    }
    for (model, name, amount, span) in walk.prices {
        let source = source(path.to_owned(), lines.line(span.start));
        layer.prices.push(prices::Setting { model, name, amount, source, place: place(&span) });
    }
    for found in walk.mcp {
        let source = source(path.to_owned(), lines.line(found.span.start));
        layer.mcp.push(found.at(source, place(&found.span)));
    }
    for found in walk.notify {
        let at = |span: &Range<usize>| (source(path.to_owned(), lines.line(span.start)), place(span));
        layer.notify.push(found.at(at));
    }
    layer
}

/// All faults in the order of the file, but for those that only follow from a syntax error. What
/// the parser makes of a broken line is a guess, so nothing else is said about that line; and from
/// there on it is a guess in which section a key is, so unknown ones are not mentioned. Nobody reads
/// more than a screen or two of them.
fn worth_reading(
    lines: &Lines<'_>,
    syntax_errors: &[toml::de::Error],
    known: Vec<Fault>,
    unknown: Vec<Fault>,
) -> Vec<Fault> {
    let mut broken_lines = BTreeSet::new();
    let mut faults = Vec::new();
    for error in syntax_errors {
        let span = error.span().unwrap_or(0..0);
        if broken_lines.insert(lines.line(span.start)) {
            faults.push((span, Complaint::new(error.message())));
        }
    }
    let is_broken = |(span, _): &Fault| broken_lines.contains(&lines.line(span.start));
    let first_broken = broken_lines.first();
    let before_broken = |(span, _): &Fault| first_broken.is_none_or(|line| lines.line(span.start) < *line);
    faults.extend(known.into_iter().filter(|fault| !is_broken(fault)));
    faults.extend(unknown.into_iter().filter(before_broken));
    faults.sort_by_key(|(span, _)| span.start);
    if faults.len() > MOST_TOLD {
        let more = faults.len() - MOST_TOLD;
        faults.truncate(MOST_TOLD + 1);
        if let Some((_, complaint)) = faults.last_mut() {
            *complaint = Complaint::new(format!("here and below are {more} more problems"));
        }
    }
    faults
}

/// How much is told of one file, and how often it is guessed what may have been meant.
const MOST_TOLD: usize = 50;

/// What was found so far.
#[derive(Default)]
struct Walk {
    found: Vec<(&'static Key, Value, Range<usize>)>,
    /// What is wrong with known keys and sections.
    faults: Vec<Fault>,
    unknown: Vec<Fault>,
    /// What the sections `[agents.NAME]` say.
    agents: Vec<(String, &'static AgentKey, Value, Range<usize>)>,
    /// What the sections `[prices."MODEL"]` say.
    prices: Vec<(String, &'static str, Amount, Range<usize>)>,
    /// What the sections `[mcp.servers.NAME]` say.
    mcp: Vec<mcp::Found>,
    /// What the entries `[[notify]]` say.
    notify: Vec<notify::Found>,
}

impl Walk {
    fn document(&mut self, document: &DeTable<'_>) {
        for (name, value) in document {
            let is_section = |(section, _): &&(&str, &str)| !section.is_empty() && *section == name.get_ref();
            match SECTIONS.iter().find(is_section) {
                Some((section, _)) => self.section(section, name, value),
                None if name.get_ref() == agents::SECTION => self.agents(name, value),
                None if name.get_ref() == prices::SECTION => self.prices(name, value),
                None if name.get_ref() == mcp::SECTION => {
                    let servers = mcp::read_section(name.span(), value);
                    self.mcp = servers.found;
                    self.faults.extend(servers.faults);
                    self.unknown.extend(servers.unknown);
                }
                None if name.get_ref() == notify::SECTION => {
                    let targets = notify::read_section(name.span(), value);
                    self.notify = targets.found;
                    self.faults.extend(targets.faults);
                    self.unknown.extend(targets.unknown);
                }
                None => self.entry("", name, value),
            }
        }
    }

    fn section(&mut self, section: &str, name: &Spanned<impl AsRef<str>>, value: &Spanned<DeValue<'_>>) {
        match value.get_ref().as_table() {
            Some(table) => table.iter().for_each(|(name, value)| self.entry(section, name, value)),
            None => {
                let complaint = Complaint::new(format!("`{section}` is a section"));
                let example = keys::of_section(section).find(|key| key.settable == Settable::Everywhere);
                let key = example.map_or("key", Key::name);
                self.faults
                    .push((name.span(), complaint.hint(format!("write [{section}] and {key} = … below it"))));
            }
        }
    }

    fn agents(&mut self, name: &Spanned<impl AsRef<str>>, value: &Spanned<DeValue<'_>>) {
        let Some(table) = value.get_ref().as_table() else {
            let complaint = Complaint::new("`agents` holds a section for each agent");
            return self.faults.push((name.span(), complaint.hint("write [agents.NAME]")));
        };
        for (name, agent) in table {
            let word = name.get_ref().as_ref();
            match (agent.get_ref().as_table(), Shape::Name.accept(Value::Text(word.to_owned()))) {
                (Some(keys), Ok(_)) => {
                    keys.iter().for_each(|(key, value)| self.agent_entry(word, key, value))
                }
                (None, _) => {
                    let complaint = Complaint::new(format!("`agents.{word}` is a section"));
                    self.faults.push((name.span(), complaint.hint(format!("write [agents.{word}]"))));
                }
                (Some(_), Err(complaints)) => {
                    self.faults.extend(complaints.into_iter().map(|complaint| (name.span(), complaint)));
                }
            }
        }
    }

    fn prices(&mut self, name: &Spanned<impl AsRef<str>>, value: &Spanned<DeValue<'_>>) {
        let example = "write [prices.\"MODEL\"] and input = … and output = … below it";
        let Some(models) = value.get_ref().as_table() else {
            let complaint = Complaint::new("`prices` holds a section for each model");
            return self.faults.push((name.span(), complaint.hint(example)));
        };
        for (model, prices) in models {
            let word = model.get_ref().as_ref();
            match prices.get_ref().as_table() {
                Some(prices) => {
                    prices.iter().for_each(|(name, value)| self.price_entry(word, name, value));
                }
                None => {
                    let complaint = Complaint::new(format!("`prices.{word:?}` is a section"));
                    self.faults.push((model.span(), complaint.hint(example)));
                }
            }
        }
    }

    fn price_entry(&mut self, model: &str, name: &Spanned<impl AsRef<str>>, value: &Spanned<DeValue<'_>>) {
        let word = name.get_ref().as_ref();
        let Some((known, _)) = PRICE_KEYS.iter().find(|(known, _)| *known == word) else {
            let complaint = Complaint::new(format!("unknown key `prices.{model:?}.{word}`"));
            let names: Vec<_> = PRICE_KEYS.iter().map(|(known, _)| *known).collect();
            let hint = format!("the prices of a model are {}", names.join(", "));
            return self.unknown.push((name.span(), complaint.hint(hint)));
        };
        match read(prices::SHAPE, value) {
            Ok(Value::Amount(amount)) => self.prices.push((model.to_owned(), known, amount, name.span())),
            Ok(_) => {}
            Err(faults) => self.faults.extend(faults.into_iter().map(|(span, complaint)| {
                let message = format!("`prices.{model:?}.{word}`: {}", complaint.message);
                (span, Complaint { message, ..complaint })
            })),
        }
    }

    fn agent_entry(&mut self, agent: &str, name: &Spanned<impl AsRef<str>>, value: &Spanned<DeValue<'_>>) {
        let word = name.get_ref().as_ref();
        let Some(key) = AGENT_KEYS.iter().find(|key| key.name == word) else {
            let complaint = Complaint::new(format!("unknown key `agents.{agent}.{word}`"));
            if self.unknown.len() > MOST_TOLD {
                return self.unknown.push((name.span(), complaint));
            }
            let names = || AGENT_KEYS.iter().map(|key| key.name);
            let hint = match nearest(word, names()) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!("the keys of an agent are {}", names().collect::<Vec<_>>().join(", ")),
            };
            return self.unknown.push((name.span(), complaint.hint(hint)));
        };
        match read(key.shape, value) {
            Ok(value) => self.agents.push((agent.to_owned(), key, value, name.span())),
            Err(faults) => self.faults.extend(faults.into_iter().map(|(span, complaint)| {
                let message = format!("`agents.{agent}.{word}`: {}", complaint.message);
                (span, Complaint { message, ..complaint })
            })),
        }
    }

    fn entry(&mut self, section: &str, name: &Spanned<impl AsRef<str>>, value: &Spanned<DeValue<'_>>) {
        let word = name.get_ref().as_ref();
        let Some(key) = keys::of_section(section).find(|key| key.name() == word) else {
            let complaint = match self.unknown.len() {
                0..=MOST_TOLD => unknown(section, word, value.get_ref()),
                _ => Complaint::new(format!("unknown key `{word}`")),
            };
            return self.unknown.push((name.span(), complaint));
        };
        match key.settable {
            Settable::PerRun => self.faults.push((name.span(), per_run(key))),
            Settable::Everywhere | Settable::ByUser => match read(key.shape, value) {
                Ok(value) => self.found.push((key, value, name.span())),
                Err(faults) => self.faults.extend(faults.into_iter().map(|fault| about(key, fault))),
            },
        }
    }
}

fn about(key: &Key, (span, complaint): Fault) -> Fault {
    (span, Complaint { message: format!("`{}`: {}", key.path, complaint.message), ..complaint })
}

fn per_run(key: &Key) -> Complaint {
    let flag = key.flag.unwrap_or_default();
    let variable = key.variables().next().unwrap_or_default();
    Complaint::new(format!("`{}` is decided for each run, not in a file", key.path))
        .hint(format!("use {flag} or {variable}"))
}

fn unknown(section: &str, word: &str, value: &DeValue<'_>) -> Complaint {
    let is_table = match value {
        DeValue::Table(_) => true,
        DeValue::Array(elements) => elements.iter().any(|element| element.get_ref().is_table()),
        DeValue::String(_)
        | DeValue::Integer(_)
        | DeValue::Float(_)
        | DeValue::Boolean(_)
        | DeValue::Datetime(_) => false,
    };
    match (section, is_table) {
        ("", true) if word == "loops" => Complaint::new("`[[loops]]` is not available yet")
            .hint("one file describes one loop: its keys are set at the top and in the sections"),
        ("", true) => unknown_section(word),
        ("", false) => with_hint(Complaint::new(format!("unknown key `{word}`")), section, word),
        (_, _) => with_hint(Complaint::new(format!("unknown key `{section}.{word}`")), section, word),
    }
}

fn unknown_section(word: &str) -> Complaint {
    let sections = || SECTIONS.iter().map(|(section, _)| *section).filter(|section| !section.is_empty());
    let complaint = Complaint::new(format!("unknown section `[{word}]`"));
    match nearest(word, sections()) {
        Some(section) => complaint.hint(format!("did you mean `[{section}]`?")),
        None => complaint.hint(format!("the sections are {}", sections().collect::<Vec<_>>().join(", "))),
    }
}

/// Adds what was most likely meant: a key of this section, or one of another that is spelled almost
/// so, or what there is to choose from. Keys are also known by the names of their flags.
fn with_hint(complaint: Complaint, section: &str, word: &str) -> Complaint {
    let here = || keys::of_section(section).filter(|key| key.settable == Settable::Everywhere);
    let spellings = |key: &'static Key| [key.name(), key.flag.unwrap_or_default().trim_start_matches('-')];
    let known = here().flat_map(spellings).filter(|spelling| !spelling.is_empty());
    if let Some(spelling) = nearest(word, known) {
        let meant = here().find(|key| spellings(key).contains(&spelling)).map_or(spelling, Key::name);
        return complaint.hint(format!("did you mean `{meant}`?"));
    }
    let plain = |spelling: &str| spelling.replace('-', "_");
    let near = |spelling: &str| distance(&plain(word), &plain(spelling)) <= 1;
    if let Some(key) = KEYS.iter().find(|key| spellings(key).into_iter().any(near)) {
        return complaint.hint(match key.section() {
            "" => format!("did you mean `{}` at the top of the file?", key.name()),
            section => format!("did you mean `{}` in `[{section}]`?", key.name()),
        });
    }
    let names: Vec<_> = here().map(Key::name).collect();
    complaint.hint(match section {
        "" => format!("the keys outside of sections are {}", names.join(", ")),
        section => format!("the keys of `[{section}]` are {}", names.join(", ")),
    })
}
