//! Configuration, resolved once: layers in, one [`Config`] out, in which every value remembers
//! where it came from.
//!
//! The layers, later wins: built-in defaults, the user's file, `.mcp.json` and `wiggum.toml` in the workspace, the
//! environment, flags. All that is wrong in any of them is reported at once.
//!
//! What keys there are is the matter of [`keys`]; whether a file that a value names exists, and
//! whether somebody is there to ask, is not looked at here.

pub(crate) mod agents;
pub(crate) mod environment;
mod file;
pub(crate) mod generate;
#[cfg(test)]
mod hostile;
pub(crate) mod keys;
pub(crate) mod mcp;
mod mcp_json;
pub(crate) mod notify;
mod prices;
pub(crate) mod problem;
mod read;
#[cfg(test)]
mod tests;
pub(crate) mod value;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;
use wiggum_agents::PromptVia;
use wiggum_core::policy::{Millis, Policy};
use wiggum_engine::checkout::{Checkout, StateRoot};
use wiggum_engine::state_dir::StateDir;
use wiggum_engine::{InForce, OfChecks};
use wiggum_workspace::beneath::{self, Links};

pub(crate) use agents::{ApiConfig, NamedAgent};
use keys::{Key, Settable};
use problem::Lines;
pub(crate) use problem::{ConfigProblems, Place, Problem};
use value::{Amount, Complaint, Shape, Value};

use crate::sandbox::Choice;

/// The file of a workspace.
pub(crate) const WORKSPACE_FILE: &str = "wiggum.toml";

const WAYS_TO_NAME_AN_AGENT: [&str; 3] = ["agent.name", "agent.command", "agent.scenario"];

/// Where configuration is read from.
#[derive(Clone, Debug)]
pub(crate) struct Sources<'a> {
    pub(crate) workspace: &'a Path,
    /// See [`user_file`]; it need not exist.
    pub(crate) user_file: Option<PathBuf>,
    pub(crate) env: &'a BTreeMap<String, String>,
    pub(crate) flags: &'a Flags,
}

/// What was said on the command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flags {
    pub(crate) backlog: Option<PathBuf>,
    pub(crate) name: Option<String>,
    pub(crate) prompt: Option<PathBuf>,
    pub(crate) headless: Option<bool>,
    pub(crate) allow_dirty: Option<bool>,
    pub(crate) agent: Option<String>,
    pub(crate) agent_command: Option<String>,
    pub(crate) agent_timeout: Option<Millis>,
    pub(crate) model: Option<String>,
    pub(crate) provider: Option<String>,
    pub(crate) base_url: Option<String>,
    pub(crate) fallback: Vec<String>,
    pub(crate) max_wait: Option<Millis>,
    pub(crate) continue_sessions: Option<bool>,
    pub(crate) agent_mcp: Option<bool>,
    pub(crate) sandbox: Option<String>,
    pub(crate) scenario: Option<PathBuf>,
    pub(crate) max_iterations: Option<u32>,
    pub(crate) max_duration: Option<Millis>,
    pub(crate) max_cost: Option<Amount>,
    pub(crate) allow_unpriced: Option<bool>,
    pub(crate) budget_strategy: Option<String>,
    pub(crate) max_retries: Option<u32>,
    pub(crate) verify: Vec<String>,
    pub(crate) complete_without_claim: Option<bool>,
    pub(crate) baseline: Option<String>,
}

/// The one settings value that is passed down.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Config {
    /// Paths from files are relative to the workspace and already joined to it; those from flags
    /// and the environment are as they were given, relative to the current directory.
    pub(crate) backlog: Option<PathBuf>,
    pub(crate) name: String,
    pub(crate) prompt: Option<PathBuf>,
    /// Where private state is kept; [`state_root`] knows the usual place.
    pub(crate) state_root: Option<PathBuf>,
    pub(crate) headless: bool,
    pub(crate) allow_dirty: bool,
    pub(crate) agent: AgentConfig,
    /// What is not policy of checks: `pass_env` is what the file says.
    pub(crate) checks: OfChecks,
    /// The sections `[agents.NAME]`.
    pub(crate) agents: BTreeMap<String, NamedAgent>,
    /// A limit in dollars may be without effect.
    pub(crate) allow_unpriced: bool,
    /// All rules of the run but two, which are not configuration: `people.present` is up to
    /// whoever knows the terminal, `selection` to the backlog.
    pub(crate) policy: Policy,
    /// The sections `[mcp.servers.NAME]`, and what `.mcp.json` says beneath them.
    pub(crate) mcp: BTreeMap<String, mcp::ServerConfig>,
    pub(crate) plans: wiggum_vault::Rules,
    /// The entries `[[notify]]`, by their names.
    pub(crate) notify: BTreeMap<String, notify::TargetConfig>,
    /// The sections `[prices."MODEL"]` as they were written.
    prices: BTreeMap<String, prices::Written>,
    origins: BTreeMap<&'static str, Origin>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct AgentConfig {
    pub(crate) name: Option<String>,
    /// At most one of `name`, `command` and `scenario` is set: the one that was said last.
    pub(crate) command: Option<String>,
    pub(crate) scenario: Option<PathBuf>,
    pub(crate) prompt_via: PromptVia,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) model: Option<String>,
    pub(crate) api: ApiConfig,
    pub(crate) args: Vec<String>,
    pub(crate) fallback: Vec<String>,
    pub(crate) mcp: bool,
    pub(crate) pass_env: Vec<String>,
    pub(crate) sandbox: Choice,
    pub(crate) writable: Vec<String>,
    pub(crate) readable: Vec<String>,
    pub(crate) sockets: Vec<String>,
}

/// Where a value came from. The order is the precedence: later wins.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(tag = "from", rename_all = "snake_case")]
pub(crate) enum ConfigSource {
    Default,
    UserFile { path: PathBuf, line: usize },
    WorkspaceFile { path: PathBuf, line: usize },
    Environment { variable: String },
    Flag { flag: &'static str },
}

/// A value that was set, as it was written.
#[derive(Clone, Debug, PartialEq)]
struct Origin {
    value: Value,
    source: ConfigSource,
    place: Place,
}

/// One line of `wiggum config show`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Explained {
    pub(crate) key: String,
    pub(crate) value: Value,
    pub(crate) source: ConfigSource,
    pub(crate) help: &'static str,
}

/// Reads all layers and makes one configuration of them, or says everything that is wrong.
pub(crate) fn resolve(sources: &Sources<'_>) -> Result<Config, ConfigProblems> {
    let mut layers = Vec::new();
    if let Some(path) = &sources.user_file {
        layers.push(file_layer(path, |path, line| ConfigSource::UserFile { path, line }));
    }
    let attempts = Attempts::of(sources);
    let found = attempts.read(mcp_json::FILE);
    layers.push(mcp_json::layer(&sources.workspace.join(mcp_json::FILE), found));
    let (path, found) = (sources.workspace.join(WORKSPACE_FILE), attempts.read(WORKSPACE_FILE));
    let mut layer = layer_of(&path, found, |path, line| ConfigSource::WorkspaceFile { path, line });
    layer.refuse_keys_of_the_user(sources.user_file.as_deref());
    layers.push(layer);
    layers.push(environment::layer(sources.env));
    layers.push(flags_layer(sources.flags));

    let mut problems = Vec::new();
    let mut config = Config::default();
    for mut layer in layers {
        problems.append(&mut layer.problems);
        problems.extend(layer.two_agents());
        for setting in layer.settings {
            config.set(setting);
        }
        for setting in layer.agents {
            config.set_agent(setting);
        }
        problems.extend(mcp::adopt(&mut config.mcp, layer.mcp));
        problems.extend(notify::adopt(&mut config.notify, layer.notify));
        for setting in layer.prices {
            config.prices.entry(setting.model.clone()).or_default().set(setting);
        }
    }
    // A refused value left its default behind, which would contradict what nobody wrote.
    if problems.is_empty() {
        problems.extend(config.contradiction());
        problems.extend(config.adopt_prices());
        problems.extend(config.mcp.iter().filter_map(|(name, server)| server.contradiction(name)));
    }
    if !problems.is_empty() {
        return Err(ConfigProblems(problems));
    }
    config.join_paths(sources);
    config.bound_plans();
    Ok(config)
}

/// Where this user's loops of all repositories are entered: `$WIGGUM_DATA_DIR`, else `wiggum` in
/// `$XDG_DATA_HOME` or `~/.local/share`.
pub(crate) fn data_dir(env: &BTreeMap<String, String>) -> Option<PathBuf> {
    let ours = env.get("WIGGUM_DATA_DIR").filter(|path| !path.is_empty()).map(PathBuf::from);
    let usual = || {
        let xdg = env.get("XDG_DATA_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
        let base = xdg.or_else(|| Some(home(env)?.join(".local/share")))?;
        Some(base.join("wiggum"))
    };
    ours.or_else(usual)
}

/// Where the private state of this user's checkouts is kept, as far as that can be told without the rest
/// of the configuration: commands that only look must work although something else in it is wrong.
pub(crate) fn state_root(sources: &Sources<'_>) -> Result<StateRoot, NoHome> {
    let variable = sources.env.get("WIGGUM_STATE_ROOT").filter(|path| !path.trim().is_empty());
    let in_file = |path: &Path| {
        let table: toml::Table = read(path)
            .and_then(|bytes| String::from_utf8(bytes).map_err(io::Error::other))
            .ok()?
            .parse()
            .ok()?;
        let written = table.get("state_root")?.as_str()?;
        Some(from_file(Path::new(written), sources.workspace, sources.env))
    };
    let configured = variable.map(PathBuf::from).or_else(|| sources.user_file.as_deref().and_then(in_file));
    if let Some(path) = configured {
        return Ok(StateRoot::new(std::path::absolute(&path).unwrap_or(path)));
    }
    let xdg = sources.env.get("XDG_STATE_HOME").map(Path::new);
    let home = home(sources.env);
    StateRoot::of_user(xdg, home.as_deref()).ok_or(NoHome { relative: home })
}

/// Neither HOME nor anything else says where this user's state is kept.
#[derive(Clone, Debug)]
pub(crate) struct NoHome {
    /// What HOME is, if it is no absolute path.
    pub(crate) relative: Option<PathBuf>,
}

/// The user's own file: `$XDG_CONFIG_HOME/wiggum/config.toml`, else below `~/.config`.
pub(crate) fn user_file(env: &BTreeMap<String, String>) -> Option<PathBuf> {
    // The XDG specification says that a relative path there is to be ignored.
    let xdg = env.get("XDG_CONFIG_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let base = xdg.or_else(|| Some(home(env)?.join(".config")))?;
    Some(base.join("wiggum/config.toml"))
}

impl Config {
    /// Every key with its value, source and meaning, in the order of the documentation.
    pub(crate) fn explain(&self) -> Vec<Explained> {
        let named = self.agents.iter().flat_map(|(name, agent)| agent.explain(name));
        let prices = self.prices.iter().flat_map(|(model, written)| written.explain(model));
        let servers = self.mcp.iter().flat_map(|(name, server)| server.explain(name));
        let targets = self.notify.iter().flat_map(|(name, target)| target.explain(name));
        let keys = keys::KEYS.iter().map(|key| self.explain_key(key));
        keys.chain(named).chain(servers).chain(prices).chain(targets).collect()
    }

    /// Where the value of a key came from.
    pub(crate) fn source(&self, path: &str) -> &ConfigSource {
        self.origins.get(path).map_or(&ConfigSource::Default, |origin| &origin.source)
    }

    fn explain_key(&self, key: &'static Key) -> Explained {
        let value = self.origins.get(key.path).map_or_else(|| key.default(), |origin| origin.value.clone());
        let value = if key.shape == Shape::Variables { value.without_secrets() } else { value };
        Explained { key: key.path.to_owned(), value, source: self.source(key.path).clone(), help: key.help }
    }

    fn set(&mut self, Setting { key, value, place, source }: Setting) {
        // These exclude each other, so the later one takes the place of the others.
        if WAYS_TO_NAME_AN_AGENT.contains(&key.path) {
            let others = WAYS_TO_NAME_AN_AGENT.iter().filter(|path| **path != key.path);
            others.for_each(|path| self.unset(path));
        }
        (key.set)(self, value.clone());
        self.origins.insert(key.path, Origin { value, source, place });
    }

    fn set_agent(&mut self, agents::Setting { agent, key, value, source }: agents::Setting) {
        self.agents.entry(agent).or_default().set(key, value, source);
    }

    fn unset(&mut self, path: &str) {
        if let Some(key) = keys::find(path) {
            (key.set)(self, key.default());
            self.origins.remove(path);
        }
    }

    fn adopt_prices(&mut self) -> Vec<Problem> {
        let mut problems = Vec::new();
        for (model, written) in &self.prices {
            match written.prices(model) {
                Ok(prices) => drop(self.policy.prices.insert(model.clone(), prices)),
                Err(problem) => problems.push(problem),
            }
        }
        problems
    }

    /// In a file, the limit of plans is for those that name none. Said for this very run, it is the most
    /// that any of them may use.
    fn bound_plans(&mut self) {
        let said_now = match self.source("plans.max_iterations") {
            ConfigSource::Environment { .. } | ConfigSource::Flag { .. } => true,
            ConfigSource::Default | ConfigSource::UserFile { .. } | ConfigSource::WorkspaceFile { .. } => {
                false
            }
        };
        self.plans.most_iterations = said_now.then_some(self.plans.max_iterations);
    }

    /// Values that are fine each, but not together.
    fn contradiction(&self) -> Option<Problem> {
        let retry = &self.policy.retry;
        if retry.backoff <= retry.backoff_max {
            return None;
        }
        let written =
            ["retry.backoff", "retry.backoff_max"].into_iter().filter_map(|path| self.origins.get(path));
        let later = written.max_by_key(|origin| &origin.source)?;
        Some(Problem {
            place: later.place.clone(),
            message: format!(
                "`retry.backoff` ({}) is longer than `retry.backoff_max` ({})",
                value::format_duration(retry.backoff),
                value::format_duration(retry.backoff_max)
            ),
            hint: Some("set both".to_owned()),
        })
    }

    /// Makes paths of the texts that were written. Those of flags are taken from there again,
    /// because a path need not be text.
    fn join_paths(&mut self, Sources { workspace, env, flags, .. }: &Sources<'_>) {
        let fields = [
            ("backlog", &mut self.backlog, &flags.backlog),
            ("prompt", &mut self.prompt, &flags.prompt),
            ("state_root", &mut self.state_root, &None),
            ("agent.scenario", &mut self.agent.scenario, &flags.scenario),
        ];
        for (key, field, flag) in fields {
            match self.origins.get(key).map(|origin| &origin.source) {
                Some(ConfigSource::UserFile { .. } | ConfigSource::WorkspaceFile { .. }) => {
                    *field = field.take().map(|written| from_file(&written, workspace, env));
                }
                Some(ConfigSource::Flag { .. }) => field.clone_from(flag),
                Some(ConfigSource::Default | ConfigSource::Environment { .. }) | None => {}
            }
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            backlog: None,
            name: "main".to_owned(),
            prompt: None,
            state_root: None,
            headless: false,
            allow_dirty: false,
            agent: AgentConfig::default(),
            checks: OfChecks::default(),
            agents: BTreeMap::new(),
            allow_unpriced: false,
            policy: Policy::default(),
            mcp: BTreeMap::new(),
            plans: wiggum_vault::Rules::default(),
            notify: BTreeMap::new(),
            prices: BTreeMap::new(),
            origins: BTreeMap::new(),
        }
    }
}

impl fmt::Display for ConfigSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.pad("default"),
            Self::UserFile { path, line } | Self::WorkspaceFile { path, line } => {
                f.pad(&format!("{}:{line}", path.display()))
            }
            Self::Environment { variable } => f.pad(variable),
            Self::Flag { flag } => f.pad(flag),
        }
    }
}

/// `wiggum config show` for people: key, value and source in columns.
pub(crate) fn explained_table(rows: &[Explained]) -> String {
    let key_width = rows.iter().map(|row| row.key.len()).max().unwrap_or(0);
    // One long list must not push the sources of all others out of sight.
    let widths = rows.iter().map(|row| row.value.to_string().chars().count());
    let value_width = widths.filter(|width| *width <= 48).max().unwrap_or(0);
    let lines = rows.iter().map(|row| {
        let value = row.value.to_string();
        format!("{:key_width$}  {value:value_width$}  {}\n", row.key, row.source)
    });
    lines.collect()
}

/// What one layer says.
#[derive(Debug, Default)]
struct Layer {
    settings: Vec<Setting>,
    agents: Vec<agents::Setting>,
    prices: Vec<prices::Setting>,
    mcp: Vec<mcp::Setting>,
    notify: Vec<(String, notify::TargetConfig)>,
    problems: Vec<Problem>,
}

/// One key set in one layer.
#[derive(Debug)]
struct Setting {
    key: &'static Key,
    value: Value,
    place: Place,
    source: ConfigSource,
}

impl Layer {
    fn refuse(&mut self, place: Place, Complaint { message, hint, element: _ }: Complaint) {
        self.problems.push(Problem { place, message, hint });
    }

    /// An agent could have written them here.
    fn refuse_keys_of_the_user(&mut self, user_file: Option<&Path>) {
        let is_of_user = |setting: &Setting| setting.key.settable == Settable::ByUser;
        let own = user_file.map_or_else(|| "your own file".to_owned(), |path| path.display().to_string());
        for setting in self.settings.extract_if(.., |setting| is_of_user(setting)) {
            let variable = setting.key.variables().next().unwrap_or_default();
            self.problems.push(Problem {
                place: setting.place,
                message: format!("`{}` is not read from the workspace, where agents write", setting.key.path),
                hint: Some(format!("set it in {own}, or use {variable}")),
            });
        }
    }

    /// One layer cannot want several agents in several ways; between layers the later one wins.
    fn two_agents(&self) -> Option<Problem> {
        let said = |path: &&&str| self.settings.iter().find(|setting| setting.key.path == **path);
        let mut said = WAYS_TO_NAME_AN_AGENT.iter().filter_map(|path| said(&path));
        let (one, other) = (said.next()?, said.next()?);
        Some(Problem {
            place: other.place.clone(),
            message: format!("`{}` and `{}` are both set", one.key.path, other.key.path),
            hint: Some("each says who works: keep one".to_owned()),
        })
    }
}

/// Much more than anybody configures.
const MOST: usize = 16 * 1024 * 1024;

/// A pipe in place of a configuration would have every command wait, and every hook. People keep theirs behind links.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    beneath::read_plain(path, Links::Follow, MOST)
}

/// Attempts whose work may lie in the workspace: what they changed is not in force.
struct Attempts<'a> {
    workspace: &'a Path,
    state: Option<StateDir>,
}

impl<'a> Attempts<'a> {
    fn of(sources: &Sources<'a>) -> Self {
        let workspace = sources.workspace;
        // Where this user's state cannot be told, no loop ever ran.
        let root = state_root(sources).ok();
        let state = root.and_then(|root| Checkout::new(workspace, &root).find().ok().flatten());
        Self { workspace, state }
    }

    /// What is in force of a file of the workspace.
    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        let in_force = self.state.as_ref().map(|state| wiggum_engine::in_force(state, self.workspace, name));
        match in_force {
            Some(InForce::Former(Some(former))) => Ok(former),
            Some(InForce::Former(None)) => Err(io::ErrorKind::NotFound.into()),
            Some(InForce::Present) | None => read(&self.workspace.join(name)),
        }
    }
}

fn file_layer(path: &Path, source: impl Fn(PathBuf, usize) -> ConfigSource) -> Layer {
    layer_of(path, read(path), source)
}

fn layer_of(
    path: &Path,
    found: io::Result<Vec<u8>>,
    source: impl Fn(PathBuf, usize) -> ConfigSource,
) -> Layer {
    let whole = |message: String| Problem { place: Place::WholeFile(path.to_owned()), message, hint: None };
    match found {
        Ok(bytes) => match String::from_utf8(bytes) {
            Ok(text) => file::layer(path, &text, source),
            Err(error) => Layer { problems: vec![not_text(path, &error)], ..Layer::default() },
        },
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Layer::default()
        }
        Err(error) => Layer { problems: vec![whole(format!("cannot be read: {error}"))], ..Layer::default() },
    }
}

fn not_text(path: &Path, error: &std::string::FromUtf8Error) -> Problem {
    let good = error.utf8_error().valid_up_to();
    let text = String::from_utf8_lossy(&error.as_bytes()[..good]);
    let place = Lines::of(&text).place(path.to_owned(), good);
    Problem { place, message: "this is not UTF-8 text from here on".to_owned(), hint: None }
}

fn flags_layer(flags: &Flags) -> Layer {
    let mut layer = Layer::default();
    for (path, value) in flag_values(flags) {
        let Some(key) = keys::find(path) else { unreachable!("{path} is in the table") };
        let flag = key.flag.unwrap_or(key.path);
        match key.shape.accept(value) {
            Ok(value) => {
                let source = ConfigSource::Flag { flag };
                layer.settings.push(Setting { key, value, place: Place::Flag(flag), source });
            }
            Err(complaints) => {
                complaints.into_iter().for_each(|complaint| layer.refuse(Place::Flag(flag), complaint))
            }
        }
    }
    layer
}

/// The flags that were given, by the key each one sets.
fn flag_values(flags: &Flags) -> Vec<(&'static str, Value)> {
    let Flags {
        backlog,
        name,
        prompt,
        headless,
        allow_dirty,
        agent,
        agent_command,
        agent_timeout,
        model,
        provider,
        base_url,
        fallback,
        max_wait,
        continue_sessions,
        agent_mcp,
        sandbox,
        scenario,
        max_iterations,
        max_duration,
        max_cost,
        allow_unpriced,
        budget_strategy,
        max_retries,
        verify,
        complete_without_claim,
        baseline,
    } = flags;
    let text = |text: &Option<String>| text.clone().map(Value::Text);
    let path = |path: &Option<PathBuf>| path.as_ref().map(|path| Value::Text(path.display().to_string()));
    let values = [
        ("backlog", path(backlog)),
        ("name", text(name)),
        ("prompt", path(prompt)),
        ("headless", headless.map(Value::Switch)),
        ("allow_dirty", allow_dirty.map(Value::Switch)),
        ("agent.name", text(agent)),
        ("agent.command", text(agent_command)),
        ("agent.timeout", agent_timeout.map(Value::Duration)),
        ("agent.model", text(model)),
        ("agent.provider", text(provider)),
        ("agent.base_url", text(base_url)),
        ("agent.fallback", (!fallback.is_empty()).then(|| Value::List(fallback.clone()))),
        ("agent.max_wait", max_wait.map(Value::Duration)),
        ("agent.continue", continue_sessions.map(Value::Switch)),
        ("agent.mcp", agent_mcp.map(Value::Switch)),
        ("agent.sandbox", text(sandbox)),
        ("agent.scenario", path(scenario)),
        ("limits.iterations", max_iterations.map(Value::Count)),
        ("limits.duration", max_duration.map(Value::Duration)),
        ("budget.max_cost", max_cost.map(Value::Amount)),
        ("budget.allow_unpriced", allow_unpriced.map(Value::Switch)),
        ("budget.strategy", text(budget_strategy)),
        ("retry.max_retries", max_retries.map(Value::Count)),
        ("checks.verify", (!verify.is_empty()).then(|| Value::List(verify.clone()))),
        ("checks.complete_without_claim", complete_without_claim.map(Value::Switch)),
        ("checks.baseline", text(baseline)),
    ];
    values.into_iter().filter_map(|(key, value)| Some((key, value?))).collect()
}

/// A path in a file: `~/` is the home directory, anything relative is so to the workspace.
fn from_file(written: &Path, workspace: &Path, env: &BTreeMap<String, String>) -> PathBuf {
    let at_home = written.strip_prefix("~").ok().and_then(|rest| Some(home(env)?.join(rest)));
    at_home.unwrap_or_else(|| workspace.join(written))
}

fn home(env: &BTreeMap<String, String>) -> Option<PathBuf> {
    env.get("HOME").filter(|home| !home.is_empty()).map(PathBuf::from)
}
