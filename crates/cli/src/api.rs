//! The built-in agent from both sides: how it is configured and started, and what its process does.

use std::io::Read;
use std::path::PathBuf;
use std::process::ExitCode;

use wiggum_agents::Login;
use wiggum_api_agent::{Begins, Ceiling, Key, Prices, Provider, Session, Settings, Timeouts, USUAL_TURNS};

use crate::args::ApiAgentArgs;
use crate::config::{ApiConfig, NamedAgent};
use crate::failure::Failure;

/// What tells its process whom to ask; read again as [`ApiAgentArgs`]. Its model goes the way of every
/// agent's model, and its key goes through the environment alone.
pub(crate) fn arguments(config: &ApiConfig) -> Vec<String> {
    let mut arguments = Vec::new();
    let mut add = |flag: &str, value: Option<String>| {
        arguments.extend(value.map(|value| format!("--{flag}={value}")));
    };
    add("provider", provider(config).map(|provider| provider.name().to_owned()));
    add("base-url", config.base_url.clone());
    add("key-env", config.key_env.clone());
    add("context-window", config.context_window.map(|tokens| tokens.to_string()));
    add("max-turns", config.max_turns.map(|turns| turns.to_string()));
    for (name, price) in &config.prices {
        add("price", Some(format!("{name}={price}")));
    }
    arguments
}

/// The variables that hold, or may hold, its key.
pub(crate) fn key_variables(config: &ApiConfig) -> Vec<String> {
    match (&config.key_env, provider(config)) {
        (Some(variable), _) => vec![variable.clone()],
        (None, Some(provider)) => provider.key_variables().iter().map(|&name| name.to_owned()).collect(),
        (None, None) => Vec::new(),
    }
}

/// All that can be wrong with its configuration, said before anything runs.
pub(crate) fn check(agent: &NamedAgent) -> Result<(), Failure> {
    let provider = provider(&agent.api).ok_or_else(no_provider)?;
    if agent.model.is_none() {
        return Err(no_model());
    }
    base_url(provider, agent.api.base_url.as_deref())?;
    prices_of(agent).map(drop)
}

/// What its section says of the prices of its model.
pub(crate) fn prices_of(agent: &NamedAgent) -> Result<Option<Prices>, Failure> {
    prices(agent.api.prices.iter().map(|(name, price)| (name.as_str(), price.as_str())))
}

/// A missing key is said before anything runs, unless somebody else can take over.
pub(crate) fn check_key(agent: &NamedAgent) -> Result<(), Failure> {
    match key(agent) {
        Some(Key::Missing { variable }) => Err(Failure::usage(format!("{variable} is not set"))
            .hint("it should hold the provider's key; name another variable with `key_env`")),
        Some(Key::NotNeeded | Key::Found { .. }) | None => Ok(()),
    }
}

pub(crate) fn login(agent: &NamedAgent) -> Login {
    match key(agent) {
        Some(Key::NotNeeded) => Login::LoggedIn("needs no key".to_owned()),
        Some(Key::Found { variable, .. }) => Login::LoggedIn(format!("{variable} is set")),
        Some(Key::Missing { variable }) => Login::NotLoggedIn(format!("set {variable}")),
        None => Login::NotLoggedIn("name a provider: --provider openai|anthropic|ollama|…".to_owned()),
    }
}

/// What `wiggum api-agent` does: works on the prompt that comes on its standard input.
pub(crate) fn work(args: ApiAgentArgs) -> Result<ExitCode, Failure> {
    let failed = |what: &str, error: std::io::Error| Failure::other(format!("cannot {what}: {error}"));
    let settings = settings(args)?;
    let mut prompt = String::new();
    std::io::stdin().read_to_string(&mut prompt).map_err(|error| failed("read the prompt", error))?;
    let workspace = std::env::current_dir().map_err(|error| failed("tell the current directory", error))?;
    let success = wiggum_api_agent::run(&settings, &workspace, &prompt, &mut std::io::stdout().lock())
        .map_err(|error| failed("write to standard output", error))?;
    Ok(if success { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn settings(args: ApiAgentArgs) -> Result<Settings, Failure> {
    let config = ApiConfig { provider: args.provider, base_url: args.base_url, ..ApiConfig::default() };
    let provider = provider(&config).ok_or_else(no_provider)?;
    base_url(provider, config.base_url.as_deref())?;
    Ok(Settings {
        provider,
        base_url: config.base_url,
        model: args.model.ok_or_else(no_model)?,
        key: provider.key(args.key_env.as_deref(), &|name| std::env::var(name).ok()),
        context_window: args.context_window.map(u64::from),
        max_turns: args.max_turns.unwrap_or(USUAL_TURNS),
        prices: prices(args.price.iter().map(|price| price.split_once('=').unwrap_or((price, ""))))?,
        ceiling: Ceiling { cost_usd: args.max_cost, tokens: args.max_tokens },
        session: session(args.session, args.resume),
        timeouts: Timeouts::default(),
    })
}

/// Sessions are kept below the home directory; without one they are not.
fn session(named: Option<String>, resumed: Option<String>) -> Option<Session> {
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty())?;
    let directory = PathBuf::from(home).join(".local/state/wiggum/sessions");
    let resumed = resumed.map(|id| (id, Begins::WhereItWas));
    let (id, begins) = resumed.or_else(|| Some((named?, Begins::Anew)))?;
    Some(Session { directory, id, begins })
}

/// The one that was named, else whoever is at the base URL.
fn provider(config: &ApiConfig) -> Option<Provider> {
    match &config.provider {
        Some(name) => Provider::from_name(name),
        None => config.base_url.is_some().then_some(Provider::Compatible),
    }
}

fn key(agent: &NamedAgent) -> Option<Key> {
    let variable = |name: &str| agent.env.get(name).cloned().or_else(|| std::env::var(name).ok());
    provider(&agent.api).map(|provider| provider.key(agent.api.key_env.as_deref(), &variable))
}

fn prices<'a>(written: impl ExactSizeIterator<Item = (&'a str, &'a str)>) -> Result<Option<Prices>, Failure> {
    if written.len() == 0 {
        return Ok(None);
    }
    Prices::read(written).map(Some).map_err(|error| {
        Failure::usage(format!("`prices`: {error}"))
            .hint("write dollars per million tokens: { input = \"3\", output = \"15\" }")
    })
}

fn base_url(provider: Provider, written: Option<&str>) -> Result<(), Failure> {
    let is_url = |url: &str| url.starts_with("https://") || url.starts_with("http://");
    match written.or(provider.base_url()) {
        Some(url) if is_url(url) => Ok(()),
        Some(url) => Err(Failure::usage(format!("`{url}` is not the address of a provider"))
            .hint("write base_url like https://example.com/v1")),
        None => Err(Failure::usage(format!("{} needs an address", provider.name()))
            .hint("give it: `--base-url https://example.com/v1`")),
    }
}

fn no_provider() -> Failure {
    Failure::usage("the agent `api` needs to know whom to ask").hint(format!(
        "name a provider ({}) with --provider, or an address with --base-url",
        Provider::NAMES.join(", ")
    ))
}

fn no_model() -> Failure {
    Failure::usage("the agent `api` needs a model").hint("name one: `--model NAME`, as the provider calls it")
}
