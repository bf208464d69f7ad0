//! MCP servers: the sections `[mcp.servers.NAME]` and the keys in them. What `.mcp.json` says is beneath them, read by
//! [`super::mcp_json`].
//!
//! Values are kept as they were written, with `${NAME}` in them, so that showing the configuration shows no secret of
//! the environment; [`ServerConfig::spec`] puts the variables in.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use toml::Spanned;
use toml::de::DeValue;
use wiggum_core::policy::Millis;
use wiggum_core::redact::is_secret_name;
use wiggum_integrations::{Secret, ServerSpec, Transport};

use super::problem::nearest;
use super::read::{Section, read};
use super::value::{Complaint, Shape, Value, Zero};
use super::{ConfigSource, Explained, Place, Problem, from_file};

pub(super) const SECTION: &str = "mcp";
/// The section in it that holds one section for each server.
pub(super) const SERVERS: &str = "servers";

/// `npx` may have to fetch a package first.
const START_TIMEOUT: Millis = Millis::from_secs(30);
const CALL_TIMEOUT: Millis = Millis::from_secs(120);
/// More than anybody reads, and far less than would hurt.
const MAX_RESULT: u32 = 1024 * 1024;

/// A server as it was described.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ServerConfig {
    command: Option<String>,
    args: Vec<String>,
    env: BTreeMap<String, String>,
    cwd: Option<String>,
    url: Option<String>,
    headers: BTreeMap<String, String>,
    bearer_env: Option<String>,
    start_timeout: Option<Millis>,
    call_timeout: Option<Millis>,
    max_result: Option<u32>,
    /// A kind of server that is not spoken to.
    unknown_type: Option<String>,
    origins: BTreeMap<&'static str, (ConfigSource, Place)>,
}

/// One thing that can be said about a server.
#[derive(Debug)]
pub(crate) struct ServerKey {
    pub(crate) name: &'static str,
    pub(crate) shape: Shape,
    pub(crate) help: &'static str,
    /// What kind of server it is about.
    kind: Option<Kind>,
    default: Option<Value>,
    get: fn(&ServerConfig) -> Value,
    set: fn(&mut ServerConfig, Value),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Program,
    Address,
}

/// One key set for one server in one layer.
#[derive(Debug)]
pub(super) struct Setting {
    pub(super) server: String,
    pub(super) key: &'static ServerKey,
    pub(super) value: Value,
    pub(super) source: ConfigSource,
    pub(super) place: Place,
}

pub(crate) const SERVER_KEYS: &[ServerKey] = &[
    ServerKey {
        name: "command",
        shape: Shape::Command,
        help: "The program to start; it speaks on its standard input and output.",
        kind: Some(Kind::Program),
        default: None,
        get: |server| text(server.command.as_ref()),
        set: |server, value| server.command = value.optional_text(),
    },
    ServerKey {
        name: "args",
        shape: Shape::Words,
        help: "Its arguments.",
        kind: Some(Kind::Program),
        default: None,
        get: |server| Value::List(without_secrets(&server.args)),
        set: |server, value| server.args = value.list(),
    },
    ServerKey {
        name: "env",
        shape: Shape::Variables,
        help: "Variables for it. Of your own it gets only a few that every program needs, such as PATH and HOME.",
        kind: Some(Kind::Program),
        default: None,
        get: |server| Value::Variables(server.env.clone()).without_secrets(),
        set: |server, value| server.env = value.variables(),
    },
    ServerKey {
        name: "cwd",
        shape: Shape::Path,
        help: "Where it runs, if not in the workspace.",
        kind: Some(Kind::Program),
        default: None,
        get: |server| text(server.cwd.as_ref()),
        set: |server, value| server.cwd = value.optional_text(),
    },
    ServerKey {
        name: "url",
        shape: Shape::Command,
        help: "Instead of a program: the address of a server that speaks streamable HTTP.",
        kind: Some(Kind::Address),
        default: None,
        get: |server| text(server.url.as_deref().map(url_without_secrets).as_ref()),
        set: |server, value| server.url = value.optional_text(),
    },
    ServerKey {
        name: "headers",
        shape: Shape::Pairs,
        help: "Headers of every request to it.",
        kind: Some(Kind::Address),
        default: None,
        get: |server| Value::Variables(server.headers.clone()).without_secrets(),
        set: |server, value| server.headers = value.variables(),
    },
    ServerKey {
        name: "bearer_env",
        shape: Shape::Command,
        help: "The name of the variable with the token that it wants (`Authorization: Bearer`).",
        kind: Some(Kind::Address),
        default: None,
        get: |server| text(server.bearer_env.as_ref()),
        set: |server, value| server.bearer_env = value.optional_text(),
    },
    ServerKey {
        name: "start_timeout",
        shape: Shape::Duration(Zero::Refused),
        help: "How long it may take to start and to tell its tools.",
        kind: None,
        default: Some(Value::Duration(START_TIMEOUT)),
        get: |server| Value::Duration(server.start_timeout.unwrap_or(START_TIMEOUT)),
        set: |server, value| server.start_timeout = value.optional_duration(),
    },
    ServerKey {
        name: "call_timeout",
        shape: Shape::Duration(Zero::Refused),
        help: "How long one call of a tool may take.",
        kind: None,
        default: Some(Value::Duration(CALL_TIMEOUT)),
        get: |server| Value::Duration(server.call_timeout.unwrap_or(CALL_TIMEOUT)),
        set: |server, value| server.call_timeout = value.optional_duration(),
    },
    ServerKey {
        name: "max_result",
        shape: Shape::Count(Zero::Refused),
        help: "How many bytes of a result are kept.",
        kind: None,
        default: Some(Value::Count(MAX_RESULT)),
        get: |server| Value::Count(server.max_result.unwrap_or(MAX_RESULT)),
        set: |server, value| server.max_result = value.optional_count(),
    },
];

/// Only in `.mcp.json`: a kind of server that is not spoken to here.
pub(super) const UNKNOWN_TYPE: ServerKey = ServerKey {
    name: "type",
    shape: Shape::Command,
    help: "A kind of server that is not spoken to.",
    kind: None,
    default: None,
    get: |server| text(server.unknown_type.as_ref()),
    set: |server, value| server.unknown_type = value.optional_text(),
};

impl ServerKey {
    pub(super) fn shown_default(&self) -> String {
        self.default.as_ref().map_or_else(|| "none".to_owned(), |default| format!("`{default}`"))
    }
}

/// A key of a server in a file.
pub(super) struct Found {
    server: String,
    key: &'static ServerKey,
    value: Value,
    pub(super) span: Range<usize>,
}

impl Found {
    pub(super) fn at(&self, source: ConfigSource, place: Place) -> Setting {
        let Self { server, key, value, .. } = self;
        Setting { server: server.clone(), key, value: value.clone(), source, place }
    }
}

pub(super) fn read_section(at: Range<usize>, value: &Spanned<DeValue<'_>>) -> Section<Found> {
    let mut section = Section::default();
    let how = "write [mcp.servers.NAME] and command = … or url = … below it";
    let Some(table) = value.get_ref().as_table() else {
        section.faults.push((at, Complaint::new("`mcp` holds the sections of servers").hint(how)));
        return section;
    };
    for (name, value) in table {
        match (name.get_ref().as_ref(), value.get_ref().as_table()) {
            (SERVERS, Some(servers)) => {
                for (name, server) in servers {
                    section.server(name.get_ref(), name.span(), server);
                }
            }
            (SERVERS, None) => {
                let complaint = Complaint::new("`mcp.servers` holds a section for each server");
                section.faults.push((name.span(), complaint.hint(how)));
            }
            (other, _) => {
                let complaint = Complaint::new(format!("unknown key `mcp.{other}`"));
                section.unknown.push((name.span(), complaint.hint(how)));
            }
        }
    }
    section
}

impl Section<Found> {
    fn server(&mut self, server: &str, at: Range<usize>, value: &Spanned<DeValue<'_>>) {
        let Some(keys) = value.get_ref().as_table() else {
            let complaint = Complaint::new(format!("`mcp.servers.{server}` is a section"));
            return self.faults.push((at, complaint.hint(format!("write [mcp.servers.{server}]"))));
        };
        if let Some(complaint) = complain_name(server) {
            return self.faults.push((at, complaint));
        }
        for (name, value) in keys {
            self.entry(server, name.get_ref(), name.span(), value);
        }
    }

    fn entry(&mut self, server: &str, word: &str, at: Range<usize>, value: &Spanned<DeValue<'_>>) {
        let Some(key) = SERVER_KEYS.iter().find(|key| key.name == word) else {
            let complaint = Complaint::new(format!("unknown key `mcp.servers.{server}.{word}`"));
            let names = || SERVER_KEYS.iter().map(|key| key.name);
            let hint = match nearest(word, names()) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!("the keys of a server are {}", names().collect::<Vec<_>>().join(", ")),
            };
            return self.unknown.push((at, complaint.hint(hint)));
        };
        match read(key.shape, value) {
            Ok(value) => self.found.push(Found { server: server.to_owned(), key, value, span: at }),
            Err(faults) => self.faults.extend(faults.into_iter().map(|(span, complaint)| {
                let message = format!("`mcp.servers.{server}.{word}`: {}", complaint.message);
                (span, Complaint { message, ..complaint })
            })),
        }
    }
}

/// Names are said on the command line and in plans.
pub(super) fn complain_name(name: &str) -> Option<Complaint> {
    let fine = !name.trim().is_empty() && name.chars().count() <= 64 && !name.chars().any(char::is_control);
    (!fine).then(|| Complaint::new(format!("{name:?} cannot be the name of a server")))
}

/// Takes one layer over what earlier ones said. A layer that says what kind of server it is describes it anew, so that
/// nobody's arguments reach somebody else's program; one that does not adds to it.
pub(super) fn adopt(servers: &mut BTreeMap<String, ServerConfig>, settings: Vec<Setting>) -> Vec<Problem> {
    let says =
        |server: &str, key: &str| settings.iter().find(|one| one.server == server && one.key.name == key);
    let mut problems = Vec::new();
    let mut named: Vec<&str> = settings.iter().map(|setting| setting.server.as_str()).collect();
    named.dedup();
    for name in named {
        match (says(name, "command"), says(name, "url")) {
            (Some(_), Some(url)) => problems.push(Problem {
                place: url.place.clone(),
                message: format!("`mcp.servers.{name}` has both a `command` and a `url`"),
                hint: Some("a server is a program or an address: keep one".to_owned()),
            }),
            (None, None) => {}
            (Some(_), None) | (None, Some(_)) => servers.entry(name.to_owned()).or_default().forget_kind(),
        }
    }
    for Setting { server, key, value, source, place } in settings {
        let server = servers.entry(server).or_default();
        (key.set)(server, value);
        server.origins.insert(key.name, (source, place));
    }
    problems
}

impl ServerConfig {
    fn forget_kind(&mut self) {
        let of_a_kind = |name: &str| {
            name == UNKNOWN_TYPE.name || SERVER_KEYS.iter().any(|key| key.name == name && key.kind.is_some())
        };
        self.origins.retain(|name, _| !of_a_kind(name));
        *self = Self {
            start_timeout: self.start_timeout,
            call_timeout: self.call_timeout,
            max_result: self.max_result,
            origins: std::mem::take(&mut self.origins),
            ..Self::default()
        };
    }

    /// What was said about it, and where.
    pub(super) fn explain(&self, server: &str) -> Vec<Explained> {
        let said = SERVER_KEYS.iter().filter_map(|key| Some((key, self.origins.get(key.name)?)));
        said.map(|(key, (source, _))| Explained {
            key: format!("{SECTION}.{SERVERS}.{server}.{}", key.name),
            value: (key.get)(self),
            source: source.clone(),
            help: key.help,
        })
        .collect()
    }

    /// Where it was described.
    pub(crate) fn source(&self) -> &ConfigSource {
        let said = |name: &str| self.origins.get(name);
        let main = said("command").or_else(|| said("url")).or_else(|| self.origins.values().next());
        main.map_or(&ConfigSource::Default, |(source, _)| source)
    }

    /// Keys that are fine each, but not together.
    pub(super) fn contradiction(&self, name: &str) -> Option<Problem> {
        let kind = match (&self.command, &self.url) {
            (Some(_), _) => Some(Kind::Program),
            (None, Some(_)) => Some(Kind::Address),
            (None, None) => None,
        };
        if self.unknown_type.is_some() {
            return None;
        }
        let Some(kind) = kind else {
            return Some(Problem {
                place: self.origins.values().next()?.1.clone(),
                message: format!("`mcp.servers.{name}` says neither `command` nor `url`"),
                hint: Some("a server is a program or an address".to_owned()),
            });
        };
        let mut said = SERVER_KEYS.iter().filter_map(|key| Some((key, self.origins.get(key.name)?)));
        let (key, (_, place)) = said.find(|(key, _)| key.kind.is_some_and(|other| other != kind))?;
        let (has, wants) = match kind {
            Kind::Program => ("command", "url"),
            Kind::Address => ("url", "command"),
        };
        Some(Problem {
            place: place.clone(),
            message: format!("`mcp.servers.{name}.{}` is for servers with a `{wants}`", key.name),
            hint: Some(format!("this one has a `{has}`")),
        })
    }

    /// What is to be connected to, with the variables in place. A server whose variables are missing is there, and
    /// says so when it is used: others are none the worse for it.
    pub(crate) fn spec(&self, name: &str, workspace: &Path, env: &BTreeMap<String, String>) -> ServerSpec {
        let transport =
            self.transport(workspace, env).unwrap_or_else(|problem| Transport::Unusable { problem });
        let time = |set: Option<Millis>, default: Millis| Duration::from_millis(set.unwrap_or(default).0);
        ServerSpec {
            name: name.to_owned(),
            transport,
            start_timeout: time(self.start_timeout, START_TIMEOUT),
            call_timeout: time(self.call_timeout, CALL_TIMEOUT),
            max_result: usize::try_from(self.max_result.unwrap_or(MAX_RESULT)).unwrap_or(usize::MAX),
        }
    }

    fn transport(&self, workspace: &Path, env: &BTreeMap<String, String>) -> Result<Transport, String> {
        let put = |text: &String| expand(text, env);
        let each = |texts: &BTreeMap<String, String>| -> Result<BTreeMap<String, String>, String> {
            texts.iter().map(|(name, text)| Ok((name.clone(), put(text)?))).collect()
        };
        if let Some(kind) = &self.unknown_type {
            return Err(format!("is of the type `{kind}`, which is not spoken here (stdio and http are)"));
        }
        if let Some(command) = &self.command {
            let directory = self.cwd.as_ref().map(put).transpose()?.map(PathBuf::from);
            let directory =
                directory.map_or_else(|| workspace.to_owned(), |written| from_file(&written, workspace, env));
            return Ok(Transport::Stdio {
                program: put(command)?,
                arguments: self.args.iter().map(put).collect::<Result<_, _>>()?,
                env: each(&self.env)?,
                directory: Some(directory),
            });
        }
        let bearer = match &self.bearer_env {
            Some(variable) => Some(env.get(variable).filter(|token| !token.is_empty()).ok_or_else(|| {
                format!("wants a token from the variable {variable} (`bearer_env`), which is not set")
            })?),
            None => None,
        };
        let url = self.url.as_ref().ok_or("is neither a program nor an address")?;
        Ok(Transport::Http { url: put(url)?, headers: each(&self.headers)?, bearer: bearer.map(Secret::new) })
    }
}

/// Puts in variables where `${NAME}` or `${NAME:-default}` is written.
fn expand(text: &str, env: &BTreeMap<String, String>) -> Result<String, String> {
    let mut expanded = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let Some((inside, behind)) = after.split_once('}') else { break };
        let (name, default) = match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        // As shells have it: with a default, an empty variable counts as none.
        let set = env.get(name).map(String::as_str).filter(|value| !(value.is_empty() && default.is_some()));
        let value = set.or(default);
        let value = value.ok_or_else(|| format!("needs the variable {name}, which is not set"))?;
        expanded.push_str(before);
        expanded.push_str(value);
        rest = behind;
    }
    expanded.push_str(rest);
    Ok(expanded)
}

fn text(text: Option<&String>) -> Value {
    text.cloned().map_or(Value::None, Value::Text)
}

/// Arguments as they may be shown: `--token` and what follows it is somebody's.
pub(super) fn without_secrets(args: &[String]) -> Vec<String> {
    let is_secret =
        |flag: &str| flag.starts_with('-') && is_secret_name(&flag.trim_start_matches('-').replace('-', "_"));
    let mut hide_next = false;
    let shown = args.iter().map(|arg| match arg.split_once('=') {
        _ if std::mem::take(&mut hide_next) => "…".to_owned(),
        Some((flag, _)) if is_secret(flag) => format!("{flag}=…"),
        Some(_) => arg.clone(),
        None => {
            hide_next = is_secret(arg);
            arg.clone()
        }
    });
    shown.collect()
}

/// An address as it may be shown: without a password, and without what is asked for in it.
fn url_without_secrets(url: &str) -> String {
    let (url, asked) = url.split_once('?').map_or((url, ""), |(url, _)| (url, "?…"));
    let Some((scheme, rest)) = url.split_once("://") else { return format!("{url}{asked}") };
    let (host, path) = rest.split_once('/').map_or((rest, None), |(host, path)| (host, Some(path)));
    let host = host.rsplit_once('@').map_or_else(|| host.to_owned(), |(_, host)| format!("…@{host}"));
    let path = path.map_or_else(String::new, |path| format!("/{path}"));
    format!("{scheme}://{host}{path}{asked}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_put_in_as_in_mcp_json() {
        let env = BTreeMap::from([("KEY".to_owned(), "k".to_owned()), ("EMPTY".to_owned(), String::new())]);
        let check = |text: &str, expected: Result<&str, &str>| {
            assert_eq!(expand(text, &env).as_deref().map_err(String::as_str), expected, "{text}");
        };
        check("plain $KEY", Ok("plain $KEY"));
        check("a ${KEY} b ${KEY}", Ok("a k b k"));
        check("${NONE:-x}${KEY:-y}${EMPTY:-z}${EMPTY}", Ok("xkz"));
        check("${NONE:-}", Ok(""));
        check("${NONE}", Err("needs the variable NONE, which is not set"));
        check("${KEY", Ok("${KEY"));
    }

    #[test]
    fn what_is_shown_holds_no_secret() {
        let args = ["--api-key", "abc", "--token=def", "--port=1", "-v", "x"].map(str::to_owned);
        assert_eq!(without_secrets(&args), ["--api-key", "…", "--token=…", "--port=1", "-v", "x"]);
        assert_eq!(url_without_secrets("https://u:p@h/mcp?key=1"), "https://…@h/mcp?…");
        assert_eq!(url_without_secrets("https://h:1"), "https://h:1");
        assert_eq!(url_without_secrets("${URL}"), "${URL}");
    }
}
