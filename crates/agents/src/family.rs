//! The coding agents we know, and how people configure one.

use std::path::{Path, PathBuf};

use crate::tokens::Before;
use crate::{
    Abilities, Assignment, CommandText, Driver, Invocation, StreamParser, aider, amp, api, claude, codex,
    copilot, gemini, opencode,
};

/// Settings are shorter by far.
const MOST_SETTINGS: u64 = 4 << 20;

/// One configured agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentSpec {
    /// As people call it.
    pub name: String,
    pub family: Family,
    /// The family's own if missing.
    pub program: Option<String>,
    pub model: Option<String>,
    /// The model that its own settings choose where none is named here; see [`Family::settings_model`].
    pub settings_model: Option<String>,
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
            settings_model: None,
            args: Vec::new(),
            env: Vec::new(),
            sandboxed: false,
        }
    }

    /// Whether the configured arguments have one of these flags.
    pub(crate) fn says(&self, flags: &[&str]) -> bool {
        let names = self.args.iter().map(|arg| arg.split_once('=').map_or(arg.as_str(), |(name, _)| name));
        names.into_iter().any(|name| flags.contains(&name))
    }
}

/// The makers' programs, told apart by the stream they print.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    Claude,
    Codex,
    Gemini,
    Copilot,
    Opencode,
    Aider,
    Amp,
    /// Built in: works over a model's API.
    Api,
}

impl Family {
    pub const ALL: [Self; 8] = [
        Self::Claude,
        Self::Codex,
        Self::Gemini,
        Self::Copilot,
        Self::Opencode,
        Self::Aider,
        Self::Amp,
        Self::Api,
    ];

    pub fn name(self) -> &'static str {
        self.profile().program
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|family| family.name() == name)
    }

    /// What it is called on the search path.
    pub fn program(self) -> &'static str {
        self.profile().program
    }

    /// Whether its program is this very one.
    pub fn is_built_in(self) -> bool {
        self == Self::Api
    }

    /// What its driver can do.
    pub fn abilities(self) -> Abilities {
        self.profile().abilities
    }

    /// Where it keeps settings, sessions and caches; `~/` is the user's home.
    pub fn own_paths(self) -> &'static [&'static str] {
        self.profile().own_paths
    }

    /// Variables that say where such a directory is instead, as [`Driver::path_variables`].
    pub fn path_variables(self) -> &'static [&'static str] {
        self.profile().path_variables
    }

    pub fn driver(spec: AgentSpec) -> Box<dyn Driver> {
        Box::new(Cli { profile: spec.family.profile(), spec, before: Before::default() })
    }

    /// Whether somebody is logged in, as far as variables and files tell without asking anybody.
    pub fn login(self, env: &dyn Fn(&str) -> Option<String>, home: &Path) -> Login {
        let traces = &self.profile().login;
        let is_set = |name: &str| env(name).is_some_and(|value| !value.is_empty());
        // Its settings choose a provider with a key of its own: no other login counts there.
        match self.key_variable(env, home) {
            Some(name) if is_set(&name) => return Login::LoggedIn(format!("{name} is set")),
            Some(name) => {
                return Login::NotLoggedIn(format!("set {name}, which its settings name for the key"));
            }
            None => {}
        }
        if let Some(name) = traces.variables.iter().find(|name| is_set(name)) {
            return Login::LoggedIn(format!("{name} is set"));
        }
        let dir = self.directory(env, home);
        match traces.files.iter().map(|file| dir.join(file)).find(|file| file.is_file()) {
            Some(file) => Login::LoggedIn(format!("{} is there", file.display())),
            None if traces.elsewhere => Login::Unknown,
            None => Login::NotLoggedIn(traces.hint.to_owned()),
        }
    }

    /// The variable with the key of the provider that the agent's own settings choose.
    pub fn key_variable(self, env: &dyn Fn(&str) -> Option<String>, home: &Path) -> Option<String> {
        codex::key_variable(&self.settings(env, home)?)
    }

    /// The model that the agent's own settings choose, or the arguments that it is given. Only looked at for
    /// agents that never tell which model answers.
    pub fn settings_model(
        self,
        args: &[String],
        env: &dyn Fn(&str) -> Option<String>,
        home: &Path,
    ) -> Option<String> {
        let reads = self == Self::Codex;
        reads.then(|| codex::model(&self.settings(env, home).unwrap_or_default(), args))?
    }

    /// The text of the settings that we know how to read.
    fn settings(self, env: &dyn Fn(&str) -> Option<String>, home: &Path) -> Option<String> {
        match self {
            Self::Codex => {
                let path = self.directory(env, home).join("config.toml");
                // An earlier session could write there, and a pipe would keep us waiting.
                let found = std::fs::metadata(&path).ok()?;
                let is_readable = found.is_file() && found.len() <= MOST_SETTINGS;
                is_readable.then(|| std::fs::read_to_string(path).ok())?
            }
            Self::Claude
            | Self::Gemini
            | Self::Copilot
            | Self::Opencode
            | Self::Aider
            | Self::Amp
            | Self::Api => None,
        }
    }

    /// Where it keeps what is its own.
    fn directory(self, env: &dyn Fn(&str) -> Option<String>, home: &Path) -> PathBuf {
        let traces = &self.profile().login;
        let moved = traces.dir_variable.and_then(env).filter(|dir| !dir.is_empty());
        moved.map_or_else(|| home.join(traces.dir), PathBuf::from)
    }

    /// What to do to be logged in.
    pub fn login_hint(self) -> &'static str {
        self.profile().login.hint
    }

    fn profile(self) -> &'static Profile {
        match self {
            Self::Claude => &claude::PROFILE,
            Self::Codex => &codex::PROFILE,
            Self::Gemini => &gemini::PROFILE,
            Self::Copilot => &copilot::PROFILE,
            Self::Opencode => &opencode::PROFILE,
            Self::Aider => &aider::PROFILE,
            Self::Amp => &amp::PROFILE,
            Self::Api => &api::PROFILE,
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

/// All there is to know about a family.
pub(crate) struct Profile {
    /// Also the family's name.
    pub(crate) program: &'static str,
    pub(crate) start: fn(&AgentSpec, &Assignment<'_>) -> Start,
    pub(crate) parser: fn(&Cli) -> Box<dyn StreamParser>,
    pub(crate) abilities: Abilities,
    pub(crate) own_paths: &'static [&'static str],
    /// Variables that say where its own directories are instead.
    pub(crate) path_variables: &'static [&'static str],
    pub(crate) secrets: &'static [&'static str],
    pub(crate) login: Traces,
}

/// How a family is started, without what is the same for all.
#[derive(Default)]
pub(crate) struct Start {
    pub(crate) arguments: Vec<String>,
    pub(crate) stdin: Option<String>,
    pub(crate) env: Vec<(&'static str, &'static str)>,
}

/// Where a login leaves its traces.
pub(crate) struct Traces {
    pub(crate) variables: &'static [&'static str],
    /// The variable that says where the directory is.
    pub(crate) dir_variable: Option<&'static str>,
    /// Below the home directory.
    pub(crate) dir: &'static str,
    pub(crate) files: &'static [&'static str],
    /// It may be kept where we do not look, such as a keychain.
    pub(crate) elsewhere: bool,
    pub(crate) hint: &'static str,
}

/// The driver of one configured agent of any family.
pub(crate) struct Cli {
    profile: &'static Profile,
    pub(crate) spec: AgentSpec,
    pub(crate) before: Before,
}

/// What lies in the directory that a variable names, if the place is in there; it may be the directory itself.
fn within<'a>(place: &'a str, variable: &str) -> Option<&'a str> {
    let (name, rest) = place.split_once('/').unwrap_or((place, ""));
    (name == variable).then_some(rest)
}

impl Driver for Cli {
    fn describe(&self) -> String {
        let family = self.profile.program;
        let called = if self.spec.name == family { String::new() } else { format!("{}: ", self.spec.name) };
        let model = self.spec.model.as_ref().map_or(String::new(), |model| format!(" ({model})"));
        format!("{called}{family}{model}")
    }

    fn invocation(&self, assignment: &Assignment<'_>) -> Invocation {
        let start = match assignment.model {
            Some(model) => {
                let spec = AgentSpec { model: Some(model.to_owned()), ..self.spec.clone() };
                (self.profile.start)(&spec, assignment)
            }
            None => (self.profile.start)(&self.spec, assignment),
        };
        let usual = match self.spec.family.is_built_in() {
            true => assignment.wiggum.display().to_string(),
            false => self.profile.program.to_owned(),
        };
        let program = self.spec.program.clone().unwrap_or(usual);
        let env = start
            .env
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .filter(|(name, _)| self.spec.env.iter().all(|(own, _)| own != name))
            .chain(self.spec.env.iter().cloned());
        Invocation {
            command: CommandText::Program { program, arguments: start.arguments },
            stdin: start.stdin.map(String::into_bytes),
            env: env.collect(),
        }
    }

    fn parser(&self) -> Box<dyn StreamParser> {
        (self.profile.parser)(self)
    }

    fn abilities(&self) -> Abilities {
        let all = self.profile.abilities;
        let heard = match self.spec.family {
            Family::Claude => !self.spec.says(&["--settings"]),
            // It runs no hooks of ours without those of the repository, which only our sandbox makes safe.
            Family::Codex => self.spec.sandboxed,
            Family::Gemini
            | Family::Copilot
            | Family::Opencode
            | Family::Aider
            | Family::Amp
            | Family::Api => true,
        };
        // A limit of its user's stays as it is.
        let bounded = !self.spec.says(&["--max-budget-usd"]);
        let priced = self.spec.family.is_built_in() && self.spec.says(&["--price"]);
        Abilities {
            nudge: all.nudge && heard,
            bounds_cost: all.bounds_cost && bounded,
            cost: all.cost || priced,
            ..all
        }
    }

    fn model(&self) -> Option<&str> {
        self.spec.model.as_deref().or(self.spec.settings_model.as_deref())
    }

    fn own_paths(&self) -> Vec<PathBuf> {
        let moved = self.spec.env.iter().flat_map(|(name, path)| {
            let named = self.profile.path_variables.iter().filter_map(move |place| within(place, name));
            named.map(move |rest| PathBuf::from(path).join(rest))
        });
        let own = self.profile.own_paths.iter().map(PathBuf::from);
        own.chain(moved).collect()
    }

    fn path_variables(&self) -> &[&str] {
        self.profile.path_variables
    }

    fn secrets(&self) -> &[&str] {
        self.profile.secrets
    }
}

/// Adds a flag with its value.
pub(crate) fn flag(arguments: &mut Vec<String>, name: &str, value: &str) {
    arguments.extend([name.to_owned(), value.to_owned()]);
}

/// The hook by which an agent hears what somebody wants to say to it, as a line for its shell.
pub(crate) fn nudge_hook(wiggum: &Path) -> String {
    let quoted = wiggum.display().to_string().replace('\'', r"'\''");
    format!("'{quoted}' hook nudge")
}

/// Words as arguments.
pub(crate) fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}
