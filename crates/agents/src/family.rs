//! The coding agents we know, and how people configure one.

use std::path::{Path, PathBuf};

use crate::claude::Claude;
use crate::{CommandText, Driver, Invocation};

/// One configured agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentSpec {
    /// As people call it.
    pub name: String,
    pub family: Family,
    /// The family's own if missing.
    pub program: Option<String>,
    pub model: Option<String>,
    /// Added to the driver's. What they say about permissions and sandbox replaces what it would.
    pub args: Vec<String>,
    /// Added to the driver's, and before it.
    pub env: Vec<(String, String)>,
    /// Our own sandbox is around it, so it needs none.
    pub sandboxed: bool,
}

impl AgentSpec {
    pub fn new(family: Family) -> Self {
        Self {
            name: family.name().to_owned(),
            family,
            program: None,
            model: None,
            args: Vec::new(),
            env: Vec::new(),
            sandboxed: false,
        }
    }

    pub(crate) fn describe(&self) -> String {
        let family = self.family.name();
        let called = if self.name == family { String::new() } else { format!("{}: ", self.name) };
        let model = self.model.as_ref().map_or(String::new(), |model| format!(" ({model})"));
        format!("{called}{family}{model}")
    }

    /// Whether the configured arguments have one of these flags.
    pub(crate) fn says(&self, flags: &[&str]) -> bool {
        let names = self.args.iter().map(|arg| arg.split_once('=').map_or(arg.as_str(), |(name, _)| name));
        names.into_iter().any(|name| flags.contains(&name))
    }

    /// The start of this agent with the driver's own arguments before the configured ones.
    pub(crate) fn invocation(
        &self,
        arguments: Vec<String>,
        stdin: Option<&str>,
        defaults: &[(&str, &str)],
    ) -> Invocation {
        let program = self.program.clone().unwrap_or_else(|| self.family.program().to_owned());
        let env = defaults
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .filter(|(name, _)| self.env.iter().all(|(own, _)| own != name))
            .chain(self.env.iter().cloned());
        Invocation {
            command: CommandText::Program { program, arguments },
            stdin: stdin.map(|text| text.as_bytes().to_vec()),
            env: env.collect(),
        }
    }
}

/// The makers' programs, told apart by the stream they print.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    Claude,
}

impl Family {
    pub const ALL: [Self; 1] = [Self::Claude];

    pub fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|family| family.name() == name)
    }

    /// What it is called on the search path.
    pub fn program(self) -> &'static str {
        self.name()
    }

    pub fn driver(spec: AgentSpec) -> Box<dyn Driver> {
        match spec.family {
            Self::Claude => Box::new(Claude::new(spec)),
        }
    }

    /// Whether somebody is logged in, as far as variables and files tell without asking anybody.
    pub fn login(self, env: &dyn Fn(&str) -> Option<String>, home: &Path) -> Login {
        let evidence = self.evidence();
        let set = |name: &&&str| env(name).is_some_and(|value| !value.is_empty());
        if let Some(name) = evidence.variables.iter().find(set) {
            return Login::LoggedIn(format!("{name} is set"));
        }
        let dir = evidence.dir_variable.and_then(env).map_or_else(|| home.join(evidence.dir), PathBuf::from);
        let file = evidence.files.iter().map(|file| dir.join(file)).find(|file| file.is_file());
        match file {
            Some(file) => Login::LoggedIn(format!("{} exists", file.display())),
            None if evidence.elsewhere => Login::Unknown,
            None => Login::NotLoggedIn(evidence.hint.to_owned()),
        }
    }

    fn evidence(self) -> Evidence {
        match self {
            Self::Claude => Evidence {
                variables: &["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"],
                dir_variable: Some("CLAUDE_CONFIG_DIR"),
                dir: ".claude",
                files: &[".credentials.json"],
                elsewhere: cfg!(target_os = "macos"),
                hint: "run `claude` and `/login`, or set ANTHROPIC_API_KEY or CLAUDE_CODE_OAUTH_TOKEN",
            },
        }
    }
}

/// Whether somebody is logged in to an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Login {
    /// And how that is known.
    LoggedIn(String),
    /// And what to do about it.
    NotLoggedIn(String),
    /// Only a call would tell.
    Unknown,
}

/// Where a login leaves its traces.
struct Evidence {
    variables: &'static [&'static str],
    /// The variable that says where the directory is.
    dir_variable: Option<&'static str>,
    /// Below the home directory.
    dir: &'static str,
    files: &'static [&'static str],
    /// It may be kept where we do not look, such as a keychain.
    elsewhere: bool,
    hint: &'static str,
}
