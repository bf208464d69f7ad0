//! `wiggum run`: resolves the configuration, starts the engine, shows what happens.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use wiggum_backlog::{Backlog, PlanHeader};
use wiggum_core::ids::LoopId;
use wiggum_core::policy::{Baseline, Millis, Policy};
use wiggum_core::price::Prices;
use wiggum_engine::backlog_file::BacklogError;
use wiggum_engine::checkout::Checkout;
use wiggum_engine::desk::backlog::name_inside;
use wiggum_engine::{Engine, Input, Observer, Outcome, Remote, Settings};
use wiggum_workspace::beneath;
use wiggum_workspace::git::Git;
use wiggum_workspace::paths::redirected_output;
use wiggum_workspace::process::{self, CommandLine};

use crate::api;
use crate::args::RunArgs;
use crate::ask::Terminal;
use crate::commands::{Surroundings, backlog, find_backlog, notify, serve, surroundings, tui};
use crate::config::value::{Amount, parse_duration};
use crate::config::{self, Config, ConfigSource, Flags};
use crate::detect;
use crate::failure::{Failure, git_failure};
use crate::narrate::{JsonLines, Narrator};
use crate::priced;
use crate::record::{Recorded, Recording};
use crate::sandbox::sandbox;
use crate::servers::tools;
use crate::started;
use crate::team::{self, Team, team};
use crate::term;

pub(crate) fn run(args: &RunArgs) -> Result<ExitCode, Failure> {
    let here = surroundings()?;
    let mut config = config::resolve(&here.sources(&flags(args)?))?;
    let chosen = backlog::choose(&here, &config)?;
    backlog::refuse_elsewhere(&here, &config, &chosen.path)?;
    if let Some(why) = &chosen.why {
        term::note(&format!("note: {why}\n"));
    }
    config.backlog = Some(chosen.path);
    if args.tui {
        return tui::run(&here, config);
    }
    let terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal() && !args.attended;
    let interactive = !config.headless && !args.json && (terminal || args.attended);
    let tools = tools(&here.workspace, &config, &here.env);
    // Before the first event, and to the end: what is still to be said is said when it is dropped.
    let _telling = notify::beside(&here, &config);
    let without_key = team::without_key(&config);
    let mut settings = settings(&here, config, interactive)?;
    settings.registry = here.registry();
    settings.tools = Some(tools);
    settings.outputs = outputs(&here.workspace);
    settings.tell = Some(Arc::new(|words| term::note(&format!("note: {words}\n"))));
    if args.web {
        let link = serve::beside(&settings.checkout)?;
        // Data goes to standard output; a link is for a person.
        term::note(&format!("the page is at {link}\n"));
    }
    for agent in settings.without_tools() {
        term::note(&format!(
            "note: {agent} cannot be handed the MCP server (`mcp` under [agent]); it claims and asks in its text\n"
        ));
    }
    for note in without_key.into_iter().chain(priced::notes(&settings)).chain(cannot_run_yet(&settings)) {
        term::note(&format!("note: {note}\n"));
    }
    let recording = args.record.as_deref().map(|path| Recording::begin(path, &settings)).transpose()?;
    let outcome = if args.json {
        drive(settings, &mut JsonLines::default(), None, recording)?
    } else {
        let terminal = (interactive && terminal).then(Terminal::new);
        drive(settings, &mut Narrator::new(terminal.clone()), terminal, recording)?
    };
    if let (Outcome::Interrupted { .. }, false) = (&outcome, args.json) {
        // A terminal has just shown `^C`.
        let line = if std::io::stderr().is_terminal() { "\n" } else { "" };
        term::note(&format!("{line}nothing is lost: `{}` goes on from here\n", started::this_call()));
    }
    Ok(ExitCode::from(outcome.exit_code()))
}

/// What is redirected to files of the workspace, as in `wiggum run --json > journal.jsonl`: the shell has
/// made them already, and they are neither the user's changes nor an agent's.
fn outputs(workspace: &Path) -> Vec<String> {
    let files = redirected_output().into_iter();
    let inside = files.filter_map(|path| Some(path.strip_prefix(workspace).ok()?.to_str()?.to_owned()));
    inside.filter(|name| !name.contains('\n')).collect()
}

/// Runs a loop to its end, recorded if that is wanted.
fn drive(
    mut settings: Settings,
    observer: &mut dyn Observer,
    terminal: Option<Terminal>,
    recording: Option<Recording>,
) -> Result<Outcome, Failure> {
    let Some(recording) = recording else { return watched(settings, observer, terminal, |_| Ok(())) };
    settings.tap = Some(Arc::new(recording.clone()));
    let mut observer = Recorded { recording: recording.clone(), observer };
    let outcome = watched(settings, &mut observer, terminal, |id| recording.history(id));
    recording.end(outcome.as_ref().map_or_else(|failure| failure.code, Outcome::exit_code));
    outcome
}

/// Runs a loop to its end, with signals and the terminal connected to it.
fn watched(
    settings: Settings,
    observer: &mut dyn Observer,
    terminal: Option<Terminal>,
    opened: impl FnOnce(LoopId) -> Result<(), Failure>,
) -> Result<Outcome, Failure> {
    // Without it, orphans of agents go to init: they are then found by their marker only.
    drop(process::adopt_orphans());
    let mut engine = Engine::open(settings, observer)?;
    opened(engine.loop_id())?;
    started::note(engine.dir(), engine.loop_id());
    forward_signals(engine.remote())?;
    if let Some(terminal) = terminal {
        terminal.listen(engine.remote());
    }
    Ok(engine.run()?)
}

fn forward_signals(remote: Remote) -> Result<(), Failure> {
    on_signals(move |name| remote.send(Input::Interrupt(name)))
}

/// Calls this whenever the process is asked to end.
pub(crate) fn on_signals(hear: impl Fn(&'static str) + Send + 'static) -> Result<(), Failure> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP])
        .map_err(|error| Failure::other(format!("cannot listen for signals: {error}")))?;
    std::thread::spawn(move || {
        for signal in signals.forever() {
            let name = match signal {
                SIGINT => "interrupted",
                SIGTERM => "terminated",
                _ => "hung up",
            };
            hear(name);
            term::stop_waiting_for_readers();
        }
    });
    Ok(())
}

fn flags(args: &RunArgs) -> Result<Flags, Failure> {
    Ok(Flags {
        backlog: args.backlog.clone(),
        name: args.name.clone(),
        prompt: args.prompt.clone(),
        headless: args.headless.then_some(true),
        allow_dirty: args.allow_dirty.then_some(true),
        agent: args.agent.clone(),
        agent_command: args.agent_command.clone(),
        agent_timeout: duration("--agent-timeout", args.agent_timeout.as_deref())?,
        model: args.model.clone(),
        provider: args.provider.clone(),
        base_url: args.base_url.clone(),
        fallback: args.fallback.clone(),
        max_wait: duration("--max-wait", args.max_wait.as_deref())?,
        continue_sessions: args.continue_sessions.then_some(true),
        agent_mcp: args.agent_mcp.then_some(true),
        sandbox: args.sandbox.clone(),
        scenario: args.scenario.clone(),
        max_iterations: args.max_iterations,
        max_duration: duration("--max-duration", args.max_duration.as_deref())?,
        max_cost: amount("--max-cost", args.max_cost.as_deref())?,
        allow_unpriced: args.allow_unpriced.then_some(true),
        budget_strategy: args.budget_strategy.clone(),
        max_retries: args.max_retries,
        verify: args.verify.clone(),
        complete_without_claim: args.complete_without_claim.then_some(true),
        baseline: args.baseline.clone(),
    })
}

pub(crate) fn duration(flag: &str, text: Option<&str>) -> Result<Option<Millis>, Failure> {
    text.map(|text| {
        parse_duration(text).map_err(|error| {
            Failure::usage(format!("{flag} {text}: {error}")).hint("write it like 2h, 90m or 45s")
        })
    })
    .transpose()
}

fn amount(flag: &str, text: Option<&str>) -> Result<Option<Amount>, Failure> {
    text.map(|text| {
        let refused = || Failure::usage(format!("{flag} {text}: not an amount of dollars, 0 or more"));
        Amount::parse(text).ok_or_else(|| refused().hint("write it like 5 or 2.50"))
    })
    .transpose()
}

/// Everything the engine needs, or what is missing for it.
pub(crate) fn settings(here: &Surroundings, config: Config, interactive: bool) -> Result<Settings, Failure> {
    settings_of(here.checkout()?, config, interactive)
}

/// As [`settings`], for a checkout whose state is kept elsewhere.
pub(crate) fn settings_of(
    checkout: Checkout,
    config: Config,
    interactive: bool,
) -> Result<Settings, Failure> {
    let workspace = &checkout.path().to_owned();
    let backlog = find_backlog(workspace, config.backlog.as_deref())?;
    let name = name_inside(workspace, &backlog);
    let read = read_backlog(&backlog, &name)?;
    let sandbox = sandbox(workspace, &config)?;
    let plan = read.plan();
    refuse_unapproved(&backlog, plan)?;
    let team = match needs_agent(&read) {
        true => team(workspace, &config, sandbox.kind.is_some(), read.tasks())?,
        false => Team { agents: Vec::new(), rules: config.policy.agents.clone() },
    };
    let mut policy = config.policy.clone();
    if let Some(plan) = plan {
        adopt_plan_rules(&mut policy, &config, plan);
    }
    policy.agents = team.rules;
    adopt_prices(&mut policy.prices, &config);
    priced::check(&config, &policy, &team.agents, read.tasks())?;
    policy.people.present = interactive;
    // The steps of a plan say themselves how they are checked.
    let detects = plan.is_none() && *config.source("checks.verify") == ConfigSource::Default;
    let mut can_find = None;
    if policy.checks.verify.is_empty() && detects {
        let all: Vec<String> = detect::checks(workspace).map(|found| found.value).collect();
        policy.checks.verify = all.first().cloned().into_iter().collect();
        let can_run = |command: &String| resolvable(workspace, command, "verify command").is_ok();
        can_find = Some(all.into_iter().filter(can_run).collect());
    }
    for command in &policy.checks.verify {
        valid(command, "verify command")?;
    }
    Ok(Settings {
        backlog,
        name: config.name.clone(),
        prompt: prompt(workspace, &config)?,
        policy,
        can_find,
        allow_dirty: config.allow_dirty,
        agent_mcp: config.agent.mcp,
        sandbox,
        wiggum: own_path()?,
        ..Settings::new(checkout, &name, team.agents)
    })
}

/// What an agent's own section says of its model's prices counts for that model, unless `[prices]` says otherwise.
fn adopt_prices(prices: &mut BTreeMap<String, Prices>, config: &Config) {
    let first = config.agent.name.iter();
    for name in first.chain(config.agents.keys()) {
        let agent = team::describe(config, name, config.agent.name.as_ref() == Some(name));
        if let (Some(model), Ok(Some(own))) = (&agent.model, api::prices_of(&agent)) {
            prices.entry(model.clone()).or_insert(own);
        }
    }
}

/// What is wrong with the backlog is said before anything else that may be missing.
fn read_backlog(path: &Path, name: &str) -> Result<Backlog, Failure> {
    let text =
        beneath::text_of(path).map_err(|source| BacklogError::Read { path: path.to_owned(), source })?;
    let backlog = Backlog::parse(name, text).map_err(BacklogError::Problems)?;
    backlog.recognised().map_err(BacklogError::Problems)?;
    Ok(backlog)
}

/// A plan of files, notices and calls needs nobody to be configured, nor does an empty backlog.
fn needs_agent(backlog: &Backlog) -> bool {
    backlog.tasks().iter().any(|task| task.work.is_agents())
}

/// A plan that needs approval never runs without it: in a vault it is approved by being moved.
fn refuse_unapproved(path: &Path, plan: Option<&PlanHeader>) -> Result<(), Failure> {
    let waits = plan.is_some_and(|plan| {
        plan.approval_required && plan.status.as_deref().is_none_or(|status| status == "awaiting_approval")
    });
    let is_moved = path.ancestors().skip(1).any(|folder| folder.ends_with("Approved/Plans"));
    if !waits || is_moved {
        return Ok(());
    }
    Err(Failure::usage(format!("the plan {} waits for approval", path.display())).hint(
        "move it to the Approved/Plans folder of its vault, or set `status: approved` in its front matter",
    ))
}

/// What a plan says, and what is usual for plans, unless somebody configured something else.
fn adopt_plan_rules(policy: &mut Policy, config: &Config, plan: &PlanHeader) {
    let is_default = |key: &str| *config.source(key) == ConfigSource::Default;
    if is_default("limits.iterations") {
        policy.limits.iterations = Some(config.plans.limit(plan.max_iterations));
    }
    if is_default("retry.max_retries") {
        policy.retry.max_retries = config.plans.retries;
    }
    if is_default("retry.backoff") {
        policy.retry.backoff = config.plans.backoff;
    }
}

/// This very program, for what it starts to call.
pub(crate) fn own_path() -> Result<PathBuf, Failure> {
    std::env::current_exe()
        .map_err(|error| Failure::other(format!("cannot find this program's own path: {error}")))
}

/// A command that can never be right is refused. A check whose program is still missing is not: an agent may
/// be about to write it, and the baseline tells.
pub(crate) fn valid(line: &str, what: &str) -> Result<CommandLine, Failure> {
    CommandLine::parse(line).map_err(|error| Failure::usage(format!("the {what} is not valid: {error}")))
}

/// Checks whose program is missing, where no baseline will tell.
fn cannot_run_yet(settings: &Settings) -> Vec<String> {
    let checks = &settings.policy.checks;
    let untold = checks.verify.iter().filter(|_| checks.baseline == Baseline::Off);
    let problem = |command: &String| {
        let error = CommandLine::parse(command).ok()?.resolve(settings.workspace()).err()?;
        Some(format!("the verify command `{command}` cannot run yet: {error}"))
    };
    untold.filter_map(problem).collect()
}

/// A missing program is said before anything runs, not after three retries.
pub(crate) fn resolvable(workspace: &Path, line: &str, what: &str) -> Result<(), Failure> {
    let command = valid(line, what)?;
    command.resolve(workspace).map(drop).map_err(|error| {
        Failure::usage(format!("the {what} `{line}` cannot be run: {error}"))
            .hint("install it, or give its full path")
    })
}

fn prompt(workspace: &Path, config: &Config) -> Result<Option<PathBuf>, Failure> {
    if let Some(path) = &config.prompt {
        let path = absolute(path)?;
        return if path.is_file() {
            Ok(Some(path))
        } else {
            Err(Failure::usage(format!("the prompt {} does not exist", path.display()))
                .hint("`wiggum init` writes a PROMPT.md; without one, built-in instructions are used"))
        };
    }
    let usual = [workspace.join("PROMPT.md"), workspace.join(".ralph/PROMPT.md")];
    Ok(usual.into_iter().find(|path| path.is_file()))
}

fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path).map_err(|error| Failure::other(format!("{}: {error}", path.display())))
}

/// Where a command works: the repository's root, or the current directory outside of one.
pub(crate) fn workspace() -> Result<PathBuf, Failure> {
    let here = directory()?;
    match Git::discover(&here) {
        Ok(Some(git)) => Ok(git.root().to_owned()),
        Ok(None) => Ok(here),
        Err(error) => Err(git_failure(&error)),
    }
}

/// The directory in which a command was called.
pub(crate) fn directory() -> Result<PathBuf, Failure> {
    std::env::current_dir()
        .and_then(|here| here.canonicalize())
        .map_err(|error| Failure::other(format!("cannot tell the current directory: {error}")))
}
