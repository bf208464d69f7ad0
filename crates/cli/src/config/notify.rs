//! Who is told what happens: the entries `[[notify]]` and the keys in them.
//!
//! An entry is taken as a whole: one in the workspace's file takes the place of one of the same name in the user's.
//! Addresses and secrets may come from variables and files; what is shown of them is the host.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use toml::Spanned;
use toml::de::{DeTable, DeValue};
use wiggum_core::policy::Millis;
use wiggum_notify::{Address, Key, Kind, Secret, Target, Way};
use wiggum_workspace::beneath;

use super::problem::nearest;
use super::read::{Section, read};
use super::value::{Complaint, Shape, Value, Zero};
use super::{ConfigSource, Explained, Place, Problem, from_file};

pub(super) const SECTION: &str = "notify";

const KINDS: &[&str] = &["webhook", "ntfy", "slack", "discord", "telegram", "desktop", "bell", "command"];
const TIMEOUT: Millis = Millis::from_secs(10);
/// A weekend, and some more.
const GIVE_UP_AFTER: Millis = Millis::from_secs(72 * 3600);
/// Where bots of Telegram are.
const TELEGRAM: &str = "https://api.telegram.org";

/// An entry as it was written.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct TargetConfig {
    values: BTreeMap<&'static str, Value>,
    origins: BTreeMap<&'static str, ConfigSource>,
    place: Option<Place>,
}

/// One thing that can be said about a target.
#[derive(Debug)]
pub(crate) struct TargetKey {
    pub(crate) name: &'static str,
    pub(crate) shape: Shape,
    pub(crate) help: &'static str,
    /// The kinds it is about; all, if none is named.
    pub(crate) kinds: &'static [&'static str],
}

const WEB: &[&str] = &["webhook", "ntfy", "slack", "discord", "telegram"];

pub(crate) const TARGET_KEYS: &[TargetKey] = &[
    TargetKey { name: "kind", shape: Shape::Choice(KINDS), help: "How it is told.", kinds: &[] },
    TargetKey {
        name: "name",
        shape: Shape::Name,
        help: "What it is called, with letters, digits, `-` and `_`; the kind if not said. It is part of the ids of \
               messages, and what was told under one name is not told again.",
        kinds: &[],
    },
    TargetKey {
        name: "on",
        shape: Shape::Words,
        help: "What it is told: `escalation`, `answer`, `completion`, `budget`, `failure`, `transition` (every change of a \
               task's state), `notice`. All but the last two if not said.",
        kinds: &[],
    },
    TargetKey {
        name: "url",
        shape: Shape::Command,
        help: "The address; for ntfy with the topic at its end.",
        kinds: WEB,
    },
    TargetKey {
        name: "url_env",
        shape: Shape::Command,
        help: "The name of the variable with the address. Variables with WEBHOOK, TOKEN or SECRET in their names are kept \
               from agents.",
        kinds: WEB,
    },
    TargetKey {
        name: "secret_env",
        shape: Shape::Command,
        help: "The name of the variable with the secret (`whsec_…`) that messages are signed with.",
        kinds: &["webhook"],
    },
    TargetKey {
        name: "secret_file",
        shape: Shape::Path,
        help: "The file with that secret.",
        kinds: &["webhook"],
    },
    TargetKey {
        name: "token_env",
        shape: Shape::Command,
        help: "The name of the variable with the token of the bot, or of the reader of a topic.",
        kinds: &["telegram", "ntfy"],
    },
    TargetKey {
        name: "chat",
        shape: Shape::Command,
        help: "The id of the chat, in quotes.",
        kinds: &["telegram"],
    },
    TargetKey {
        name: "command",
        shape: Shape::Words,
        help: "The program and its arguments, called without a shell, with the message on its standard input as JSON.",
        kinds: &["command"],
    },
    TargetKey {
        name: "link",
        shape: Shape::Command,
        help: "The address under which the receiver reaches the page, if not the one it is served at.",
        kinds: &[],
    },
    TargetKey {
        name: "timeout",
        shape: Shape::Duration(Zero::Refused),
        help: "How long one attempt may take; 10 seconds if not said.",
        kinds: &[],
    },
    TargetKey {
        name: "give_up_after",
        shape: Shape::Duration(Zero::Refused),
        help: "How old a message may become before nobody tries to send it any more; 3 days if not said.",
        kinds: &[],
    },
];

/// An entry of a file.
pub(super) struct Found {
    name: String,
    values: Vec<(&'static TargetKey, Value, Range<usize>)>,
    span: Range<usize>,
}

impl Found {
    pub(super) fn at(self, at: impl Fn(&Range<usize>) -> (ConfigSource, Place)) -> (String, TargetConfig) {
        let mut target = TargetConfig { place: Some(at(&self.span).1), ..TargetConfig::default() };
        for (key, value, span) in self.values {
            target.values.insert(key.name, value);
            target.origins.insert(key.name, at(&span).0);
        }
        (self.name, target)
    }
}

pub(super) fn read_section(at: Range<usize>, value: &Spanned<DeValue<'_>>) -> Section<Found> {
    let mut section = Section::default();
    let how = "write [[notify]] and kind = \"desktop\" below it, once for each receiver";
    let Some(entries) = value.get_ref().as_array() else {
        section.faults.push((at, Complaint::new("`notify` is a list of receivers").hint(how)));
        return section;
    };
    for entry in entries {
        match entry.get_ref().as_table() {
            Some(table) => section.entry(entry.span(), table),
            None => section.faults.push((entry.span(), Complaint::new("a receiver is a table").hint(how))),
        }
    }
    section
}

impl Section<Found> {
    fn entry(&mut self, span: Range<usize>, table: &DeTable<'_>) {
        let before = self.faults.len() + self.unknown.len();
        let mut values = Vec::new();
        for (name, value) in table {
            self.key(name.get_ref(), name.span(), value, &mut values);
        }
        if self.faults.len() + self.unknown.len() > before {
            return;
        }
        let text =
            |name: &str| values.iter().find(|(key, ..)| key.name == name).map(|(_, value, _)| value.clone());
        let Some(Value::Text(kind)) = text("kind") else {
            let complaint = Complaint::new("a receiver needs a `kind`");
            return self.faults.push((span, complaint.hint(format!("it is one of {}", KINDS.join(", ")))));
        };
        let name = text("name").map_or_else(|| kind.clone(), Value::text);
        let said: Vec<&str> = values.iter().map(|(key, ..)| key.name).collect();
        if let Some(missing) = missing(&kind, &said) {
            let complaint = Complaint::new(format!("`{name}` needs {missing}"));
            return self.faults.push((span, complaint.hint(format!("it is of the kind {kind}"))));
        }
        let foreign =
            values.iter().find(|(key, ..)| !key.kinds.is_empty() && !key.kinds.contains(&kind.as_str()));
        if let Some((key, _, span)) = foreign {
            let complaint = Complaint::new(format!("`{}` is not for the kind {kind}", key.name));
            let hint = format!("it is for {}", key.kinds.join(", "));
            return self.faults.push((span.clone(), complaint.hint(hint)));
        }
        self.found.push(Found { name, values, span });
    }

    fn key(
        &mut self,
        word: &str,
        at: Range<usize>,
        value: &Spanned<DeValue<'_>>,
        values: &mut Vec<(&'static TargetKey, Value, Range<usize>)>,
    ) {
        let Some(key) = TARGET_KEYS.iter().find(|key| key.name == word) else {
            let complaint = Complaint::new(format!("unknown key `notify.{word}`"));
            let names = || TARGET_KEYS.iter().map(|key| key.name);
            let hint = match nearest(word, names()) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!("the keys of a receiver are {}", names().collect::<Vec<_>>().join(", ")),
            };
            return self.unknown.push((at, complaint.hint(hint)));
        };
        match read(key.shape, value) {
            Ok(read) => match nonsense(key.name, &read) {
                None => values.push((key, read, at)),
                Some(complaint) => self.faults.push((value.span(), complaint)),
            },
            Err(faults) => self.faults.extend(faults.into_iter().map(|(span, complaint)| {
                let message = format!("`notify.{word}`: {}", complaint.message);
                (span, Complaint { message, ..complaint })
            })),
        }
    }
}

/// What a kind cannot do without.
fn missing(kind: &str, said: &[&str]) -> Option<&'static str> {
    let has = |name: &str| said.contains(&name);
    match kind {
        "webhook" | "ntfy" | "slack" | "discord" if !has("url") && !has("url_env") => {
            Some("an address: `url` or `url_env`")
        }
        "telegram" if !has("token_env") => Some("the token of a bot: `token_env`"),
        "telegram" if !has("chat") => Some("a `chat`"),
        "command" if !has("command") => Some("a `command`"),
        _ => None,
    }
}

/// Values of the right shape that make no sense here.
fn nonsense(key: &str, value: &Value) -> Option<Complaint> {
    match (key, value) {
        ("name", Value::Text(name)) => {
            let fine = name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
            (!fine).then(|| {
                Complaint::new(format!("`notify.name`: {name:?} cannot be the name of a receiver"))
                    .hint("use letters, digits, `-` and `_`")
            })
        }
        ("on", Value::List(words)) => {
            let wrong = words.iter().find(|word| Kind::parse(word).is_none())?;
            let known = Kind::ALL.map(Kind::name);
            let complaint = Complaint::new(format!("`notify.on`: nothing is called {wrong:?}"));
            Some(match nearest(wrong, known) {
                Some(meant) => complaint.hint(format!("did you mean {meant:?}?")),
                None => complaint.hint(format!("there are {}", known.join(", "))),
            })
        }
        ("url" | "link", Value::Text(url)) => {
            let problem = Address::parse(url).err()?;
            Some(Complaint::new(format!("`notify.{key}` {problem}")))
        }
        _ => None,
    }
}

/// Takes one layer over what earlier ones said.
pub(super) fn adopt(
    targets: &mut BTreeMap<String, TargetConfig>,
    layer: Vec<(String, TargetConfig)>,
) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut named: Vec<String> = Vec::new();
    for (name, target) in layer {
        if named.contains(&name)
            && let Some(place) = target.place.clone()
        {
            let message = format!("two receivers are called `{name}`");
            problems.push(Problem {
                place,
                message,
                hint: Some("give one of them another `name`".to_owned()),
            });
        }
        named.push(name.clone());
        targets.insert(name, target);
    }
    problems
}

impl TargetConfig {
    /// What was said about it, and where.
    pub(super) fn explain(&self, name: &str) -> Vec<Explained> {
        let said = TARGET_KEYS.iter().filter_map(|key| Some((key, self.values.get(key.name)?)));
        said.map(|(key, value)| Explained {
            key: format!("{SECTION}.{name}.{}", key.name),
            value: shown(key.name, value),
            source: self.origins.get(key.name).cloned().unwrap_or(ConfigSource::Default),
            help: key.help,
        })
        .collect()
    }

    /// Whom to tell, with the variables in place. One whose variables are missing is there, and says so when it is
    /// used: others are none the worse for it.
    pub(crate) fn target(&self, name: &str, workspace: &Path, env: &BTreeMap<String, String>) -> Target {
        let kind = self.text("kind").unwrap_or_default();
        let way = self.way(&kind, workspace, env).unwrap_or_else(|problem| {
            let kind = KINDS.iter().find(|known| **known == kind).copied().unwrap_or_default();
            Way::Unusable { kind, problem }
        });
        let on = match self.values.get("on") {
            Some(Value::List(words)) => words.iter().filter_map(|word| Kind::parse(word)).collect(),
            Some(_) | None => Kind::USUAL.to_vec(),
        };
        let time = |key: &str, usual: Millis| match self.values.get(key) {
            Some(Value::Duration(set)) => Duration::from_millis(set.0),
            Some(_) | None => Duration::from_millis(usual.0),
        };
        Target {
            name: name.to_owned(),
            on,
            way,
            link: self.text("link"),
            timeout: time("timeout", TIMEOUT),
            give_up_after: time("give_up_after", GIVE_UP_AFTER),
        }
    }

    fn way(&self, kind: &str, workspace: &Path, env: &BTreeMap<String, String>) -> Result<Way, String> {
        let secret = |key: &str| self.variable(key, env).map(|found| found.map(|text| Secret::new(&text)));
        Ok(match kind {
            "webhook" => Way::Webhook { to: self.address(env)?, key: self.key(workspace, env)? },
            "ntfy" => Way::Ntfy { to: self.address(env)?, token: secret("token_env")? },
            "slack" => Way::Slack { to: self.address(env)? },
            "discord" => Way::Discord { to: self.address(env)? },
            "telegram" => {
                let to = if self.values.contains_key("url") || self.values.contains_key("url_env") {
                    self.address(env)?
                } else {
                    Address::parse(TELEGRAM)?
                };
                let token = secret("token_env")?.ok_or("has no token")?;
                Way::Telegram { to, token, chat: self.text("chat").unwrap_or_default() }
            }
            "desktop" => Way::Desktop,
            "command" => {
                let words = match self.values.get("command") {
                    Some(Value::List(words)) => words.clone(),
                    Some(_) | None => Vec::new(),
                };
                let (program, args) = words.split_first().ok_or("has no command")?;
                Way::Command { program: program.clone(), args: args.to_vec() }
            }
            _ => Way::Bell,
        })
    }

    fn address(&self, env: &BTreeMap<String, String>) -> Result<Address, String> {
        let from_variable = self.variable("url_env", env)?;
        let url = from_variable.or_else(|| self.text("url")).ok_or("has no address")?;
        Address::parse(&url).map_err(|problem| format!("its address {problem}"))
    }

    fn key(&self, workspace: &Path, env: &BTreeMap<String, String>) -> Result<Option<Key>, String> {
        let written =
            match self.text("secret_file") {
                Some(file) => {
                    let path = from_file(Path::new(&file), workspace, env);
                    let text = beneath::text_of(&path);
                    Some(text.map_err(|error| {
                        format!("its secret cannot be read from {}: {error}", path.display())
                    })?)
                }
                None => self.variable("secret_env", env)?,
            };
        let Some(written) = written else { return Ok(None) };
        let key = Key::parse(&written).ok_or("its secret is none: it should be `whsec_` and base64")?;
        Ok(Some(key))
    }

    /// The content of the variable that a key names.
    fn variable(&self, key: &str, env: &BTreeMap<String, String>) -> Result<Option<String>, String> {
        let Some(name) = self.text(key) else { return Ok(None) };
        let value = env.get(&name).filter(|value| !value.trim().is_empty());
        value
            .cloned()
            .map(Some)
            .ok_or_else(|| format!("needs the variable {name} (`{key}`), which is not set"))
    }

    fn text(&self, key: &str) -> Option<String> {
        match self.values.get(key)? {
            Value::Text(text) => Some(text.clone()),
            _ => None,
        }
    }
}

/// Tokens are part of many addresses, and of arguments.
fn shown(key: &str, value: &Value) -> Value {
    match (key, value) {
        ("url", Value::Text(url)) => {
            let host =
                Address::parse(url).map_or_else(|_| String::new(), |address| address.host().to_owned());
            Value::Text(format!("{host}/…"))
        }
        ("command", Value::List(words)) => Value::List(super::mcp::without_secrets(words)),
        _ => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::Case;
    use super::*;

    #[test]
    fn every_kind_is_read_and_shows_no_secret() {
        let case = Case::new(
            "[[notify]]\nkind = \"bell\"\non = \"escalation\"\n\
             [[notify]]\nkind = \"slack\"\nurl = \"https://hooks.example/services/T0/verysecret\"\n\
             [[notify]]\nname = \"mine\"\nkind = \"command\"\ncommand = [\"tell\", \"--token\", \"verysecret\"]\n\
             [[notify]]\nkind = \"webhook\"\nurl_env = \"HOOK\"\nsecret_env = \"HOOK_SECRET\"\n",
        );
        let config = case.config();
        let said = format!("{:?}", config.explain());
        assert!(!said.contains("verysecret") && said.contains("hooks.example/…"), "{said}");
        let env = BTreeMap::from([("HOOK".to_owned(), "https://h.example/x".to_owned())]);
        let of = |name: &str| config.notify[name].target(name, Path::new("/"), &env);
        assert_eq!(of("bell").on, [Kind::Escalation]);
        assert_eq!((of("slack").way.name(), of("slack").way.place()), ("slack", Some("hooks.example")));
        assert_eq!(of("mine").way.place(), Some("tell"));
        let unset = "needs the variable HOOK_SECRET (`secret_env`), which is not set";
        assert_eq!((of("webhook").way.name(), of("webhook").way.problem()), ("webhook", Some(unset)));
    }

    #[test]
    fn nonsense_is_refused_with_its_line() {
        let check = |text: &str, place: &str, message: &str| {
            let problems = Case::new(text).problems();
            assert!(problems.contains(place) && problems.contains(message), "{problems}");
        };
        check("[[notify]]\non = [\"failure\"]\n", ":1:", "a receiver needs a `kind`");
        check("[[notify]]\nkind = \"slak\"\n", ":2:", "slack");
        check("[[notify]]\nkind = \"slack\"\n", ":1:", "needs an address");
        check("[[notify]]\nkind = \"slack\"\nurl = \"ftp://x/y\"\n", ":3:", "only http:// and https://");
        check("[[notify]]\nkind = \"bell\"\non = [\"faliure\"]\n", ":3:", "did you mean \"failure\"?");
        check("[[notify]]\nkind = \"bell\"\nurl = \"http://x/\"\n", ":3:", "`url` is not for the kind bell");
        check("[[notify]]\nkind = \"bell\"\nnam = \"x\"\n", ":3:", "did you mean `name`?");
        check("[[notify]]\nkind = \"bell\"\nname = \"a/b\"\n", ":3:", "cannot be");
        check(
            "[[notify]]\nkind = \"bell\"\n[[notify]]\nkind = \"bell\"\n",
            ":3:",
            "two receivers are called `bell`",
        );
        check("[notify]\nkind = \"bell\"\n", ":1:", "is a list of receivers");
    }
}
