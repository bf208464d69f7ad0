//! `wiggum run`: resolves the configuration, starts the engine, shows what happens.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use wiggum_backlog::{Backlog, PlanHeader};
use wiggum_core::ids::LoopId;
use wiggum_core::policy::{Millis, Policy};
use wiggum_engine::desk::backlog::name_inside;
use wiggum_engine::{Engine, Input, Observer, Outcome, Remote, Settings};
use wiggum_workspace::git::Git;
use wiggum_workspace::process::{self, CommandLine};

use crate::args::RunArgs;
use crate::ask::Terminal;
use crate::commands::{find_backlog, notify, serve, surroundings, tui};
use crate::config::value::{Amount, parse_duration};
use crate::config::{self, Config, ConfigSource, Flags};
use crate::detect;
use crate::failure::Failure;
use crate::narrate::{JsonLines, Narrator};
use crate::record::{Recorded, Recording};
use crate::sandbox::sandbox;
use crate::servers::tools;
use crate::started;
use crate::team::{Team, team};
use crate::term;

pub(crate) fn run(args: &RunArgs) -> Result<ExitCode, Failure> {
    let here = surroundings()?;
    let config = config::resolve(&here.sources(&flags(args)?))?;
    if args.tui {
        return tui::run(&here, config);
    }
    let terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal() && !args.attended;
    let interactive = !config.headless && !args.json && (terminal || args.attended);
    let tools = tools(&here.workspace, &config, &here.env);
    // Before the first event, and to the end: what is still to be said is said when it is dropped.
    let _telling = notify::beside(&here, &config);
    let mut settings = settings(&here.workspace, config, interactive)?;
    settings.registry = here.registry();
    settings.tools = Some(tools);
    if args.web {
        let link = serve::beside(&here.workspace)?;
        // Data goes to standard output; a link is for a person.
        term::note(&format!("the page is at {link}\n"));
    }
    for agent in settings.without_tools() {
        term::note(&format!(
            "note: {agent} cannot be handed the MCP server (`mcp` under [agent]); it claims and asks in its text\n"
        ));
    }
    let recording = args.record.as_deref().map(|path| Recording::begin(path, &settings)).transpose()?;
    let outcome = if args.json {
        drive(settings, &mut JsonLines::default(), None, recording)?
    } else {
        let terminal = (interactive && terminal).then(Terminal::new);
        drive(settings, &mut Narrator::new(terminal.clone()), terminal, recording)?
    };
    Ok(ExitCode::from(outcome.exit_code()))
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
        budget_strategy: args.budget_strategy.clone(),
        max_retries: args.max_retries,
        verify: args.verify.clone(),
        complete_without_claim: args.complete_without_claim.then_some(true),
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
pub(crate) fn settings(workspace: &Path, config: Config, interactive: bool) -> Result<Settings, Failure> {
    let backlog = find_backlog(workspace, config.backlog.as_deref())?;
    let sandbox = sandbox(workspace, &config)?;
    let read = read_backlog(&backlog);
    let plan = read.as_ref().and_then(Backlog::plan);
    refuse_unapproved(&backlog, plan)?;
    let team = match needs_agent(read.as_ref()) {
        true => team(workspace, &config, sandbox.kind.is_some())?,
        false => Team { agents: Vec::new(), rules: config.policy.agents.clone() },
    };
    let mut policy = config.policy.clone();
    if let Some(plan) = plan {
        adopt_plan_rules(&mut policy, &config, plan);
    }
    policy.agents = team.rules;
    policy.people.present = interactive;
    // The steps of a plan say themselves how they are checked.
    let detects = plan.is_none() && *config.source("checks.verify") == ConfigSource::Default;
    if policy.checks.verify.is_empty() && detects {
        let found = detect::detect(workspace, wiggum_backlog::candidates()).verify;
        policy.checks.verify = found.map(|found| found.value).into_iter().collect();
    }
    for command in &policy.checks.verify {
        resolvable(workspace, command, "verify command")?;
    }
    let name = name_inside(workspace, &backlog);
    Ok(Settings {
        backlog,
        name: config.name.clone(),
        prompt: prompt(workspace, &config)?,
        policy,
        allow_dirty: config.allow_dirty,
        agent_mcp: config.agent.mcp,
        sandbox,
        wiggum: own_path()?,
        ..Settings::new(workspace, &name, team.agents)
    })
}

/// What is wrong with it is said by whoever runs it.
fn read_backlog(path: &Path) -> Option<Backlog> {
    let name = path.file_name()?.to_str()?;
    Backlog::parse(name, std::fs::read_to_string(path).ok()?).ok()
}

/// A plan of files, notices and calls needs nobody to be configured.
fn needs_agent(backlog: Option<&Backlog>) -> bool {
    backlog.is_none_or(|backlog| {
        backlog.tasks().is_empty() || backlog.tasks().iter().any(|task| task.work.is_agents())
    })
}

/// A plan that needs approval never runs without it: in a vault it is approved by being moved.
fn refuse_unapproved(path: &Path, plan: Option<&PlanHeader>) -> Result<(), Failure> {
    let waits = plan.is_some_and(|plan| {
        plan.approval_required && plan.status.as_deref().is_none_or(|status| status == "awaiting_approval")
    });
    let is_moved = path.parent().is_some_and(|folder| folder.ends_with("Approved/Plans"));
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
        policy.limits.iterations = Some(plan.max_iterations.unwrap_or(config.plans.max_iterations));
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

/// A missing program is said before anything runs, not after three retries.
pub(crate) fn resolvable(workspace: &Path, line: &str, what: &str) -> Result<(), Failure> {
    let command = CommandLine::parse(line)
        .map_err(|error| Failure::usage(format!("the {what} is not valid: {error}")))?;
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
    let here = std::env::current_dir()
        .and_then(|here| here.canonicalize())
        .map_err(|error| Failure::other(format!("cannot tell the current directory: {error}")))?;
    match Git::discover(&here) {
        Ok(Some(git)) => Ok(git.root().to_owned()),
        Ok(None) => Ok(here),
        Err(error) => Err(Failure::other(wiggum_engine::error::chain(&error))
            .hint("git is needed inside a git repository; is it installed?")),
    }
}
