//! One file per command; each turns arguments into one call of the library and prints the result.

mod agents;
mod backlog;
mod checkpoint;
mod cost;
mod demo;
mod dispatch;
mod doctor;
mod events;
mod graph;
mod health;
mod inbox;
mod install;
mod loops;
mod mcp;
mod monitor;
mod notify;
mod reference;
mod replay;
mod report;
mod requests;
mod run;
mod serve;
mod session;
mod setup;
mod show;
mod simulate;
mod status;
mod task;
mod tokens;
mod tui;
mod vault;

pub(crate) use run::resolvable;
pub(crate) use session::Task;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde::Serialize;
use wiggum_engine::checkout::Checkout;
use wiggum_engine::desk::backlog::name_inside;
use wiggum_store::Registry;
use wiggum_workspace::beneath;

use crate::api;
use crate::args::{Cli, Command, ConfigCommand};
use crate::config::{self, Flags, Sources};
use crate::failure::Failure;
use crate::term;

pub(crate) fn dispatch(cli: Cli) -> ExitCode {
    let result = match cli.command {
        Command::Run(args) => run::run(&args),
        Command::Replay(args) => replay::replay(&args),
        Command::Demo(args) => demo::demo(&args),
        Command::Init(args) => setup::init(&args),
        Command::Status(args) => status::status(&args),
        Command::Health(args) => health::health(&args),
        Command::Monitor(args) => monitor::monitor(&args),
        Command::Events(args) => events::events(&args),
        Command::Show(args) => show::show(&args),
        Command::Pause(args) => requests::pause(&args),
        Command::Resume(args) => requests::resume(&args),
        Command::Stop(args) => requests::stop(&args),
        Command::Nudge(args) => requests::nudge(&args),
        Command::Skip(args) => requests::skip(&args),
        Command::Retry(args) => requests::retry(&args),
        Command::Handoff(args) => requests::handoff(&args),
        Command::Checkpoint(command) => checkpoint::checkpoint(&command),
        Command::Inbox(args) => inbox::inbox(&args),
        Command::Answer(args) => requests::answer(&args),
        Command::Graph(args) => graph::graph(&args),
        Command::Agents(args) => agents::agents(&args),
        Command::Tokens(args) => tokens::tokens(&args),
        Command::Report(args) => report::report(&args),
        Command::Cost(args) => cost::cost(&args),
        Command::Doctor(args) => doctor::doctor(&args),
        Command::Simulate(args) => simulate::simulate(&args),
        Command::Config(ConfigCommand::Show(args)) => setup::config_show(&args),
        Command::Task(command) => task::task(&command),
        Command::Install(args) => install::install(&args),
        Command::Uninstall(args) => install::uninstall(&args),
        Command::Session(command) => session::session(&command),
        Command::Dispatch(command) => dispatch::dispatch(&command),
        Command::Serve(args) => serve::serve(&args),
        Command::Tui(args) => tui::tui(&args),
        Command::Vault(command) => vault::vault(&command),
        Command::Mcp(command) => mcp::mcp(&command),
        Command::Notify(command) => notify::notify(&command),
        Command::Hook { event } => Ok(crate::session::hook::run(&event)),
        Command::Completions { shell } => Ok(reference::completions(shell)),
        Command::Man => reference::man(),
        Command::ScriptedAgent { scenario } => demo::scripted_agent(&scenario),
        Command::ApiAgent(args) => api::work(args),
        Command::Reference { what } => reference::reference(what),
    };
    result.unwrap_or_else(|failure| failure.report())
}

/// What `wiggum sandboxed-exec` does, which only an engine calls: on success it does not come back.
pub(crate) fn become_program() -> ExitCode {
    let error = wiggum_workspace::sandbox::become_program(std::env::args_os().skip(2));
    let _shown = Failure::other(wiggum_engine::error::chain(&error)).report();
    // As shells say that a command was found, but could not be run.
    ExitCode::from(126)
}

/// Where a command was called, and what around it is configuration.
pub(crate) struct Surroundings {
    pub(crate) workspace: PathBuf,
    /// The directory itself: the workspace or one inside it.
    pub(crate) directory: PathBuf,
    env: BTreeMap<String, String>,
}

pub(crate) fn surroundings() -> Result<Surroundings, Failure> {
    let directory = run::directory()?;
    Ok(Surroundings { directory, ..surroundings_of(run::workspace()?) })
}

/// As [`surroundings`], for a directory that was named.
pub(crate) fn surroundings_of(workspace: PathBuf) -> Surroundings {
    let env = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    Surroundings { directory: workspace.clone(), workspace, env }
}

impl Surroundings {
    /// The workspace with its private state.
    pub(crate) fn checkout(&self) -> Result<Checkout, Failure> {
        let root = config::state_root(&self.sources(&Flags::default()))?;
        Ok(Checkout::new(&self.workspace, &root))
    }

    /// Where the loops of this machine are entered.
    pub(crate) fn registry(&self) -> Option<PathBuf> {
        Some(config::data_dir(&self.env)?.join(Registry::FILE))
    }

    pub(crate) fn sources<'a>(&'a self, flags: &'a Flags) -> Sources<'a> {
        Sources { workspace: &self.workspace, user_file: config::user_file(&self.env), env: &self.env, flags }
    }
}

/// Were we called by the agent of a loop, or by what it started?
pub(crate) fn is_inside_agent() -> bool {
    std::env::var_os("WIGGUM_LOOP_ID").is_some()
}

/// The loop whose agent called us.
pub(crate) fn own_loop() -> Option<String> {
    std::env::var("WIGGUM_LOOP_ID").ok().filter(|id| !id.is_empty())
}

/// What agents may not do with the loop that runs them.
pub(crate) fn refuse_inside_agent() -> Result<(), Failure> {
    if !is_inside_agent() {
        return Ok(());
    }
    Err(Failure::usage("statuses and answers belong to people: claim the task instead")
        .hint("an agent may use `wiggum status`, `wiggum task list` and `wiggum task add`"))
}

/// Nothing to look at is no failure.
pub(crate) fn no_loops(json: bool) -> Result<ExitCode, Failure> {
    Ok(term::print(if json { "[]\n" } else { "no loops here yet: `wiggum run` starts one\n" }))
}

pub(crate) fn print_json(value: &impl Serialize) -> Result<ExitCode, Failure> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|error| Failure::other(format!("cannot write JSON: {error}")))?;
    Ok(term::print(&(text + "\n")))
}

/// Files at the usual paths with a folder of any name in them, in which there is work.
fn matching(workspace: &Path) -> Vec<PathBuf> {
    let is_work = |path: &PathBuf| {
        let text = beneath::text_of(path).unwrap_or_default();
        let read = wiggum_backlog::Backlog::parse(&path.to_string_lossy(), text);
        let is_open = |task: &wiggum_core::task::Task| task.status == wiggum_core::task::FileStatus::Open;
        read.is_ok_and(|backlog| backlog.tasks().iter().any(is_open))
    };
    let paths = wiggum_backlog::candidate_patterns().iter().flat_map(|pattern| expanded(workspace, pattern));
    paths.filter(is_work).collect()
}

/// The files that a pattern with one `*` stands for, by name.
fn expanded(workspace: &Path, pattern: &str) -> Vec<PathBuf> {
    let Some((folder, rest)) = pattern.split_once('*') else { return Vec::new() };
    let Ok(entries) = std::fs::read_dir(workspace.join(folder)) else { return Vec::new() };
    let path = |entry: std::fs::DirEntry| match rest.strip_prefix('/') {
        Some(rest) => Some(entry.path().join(rest)),
        None => entry.file_name().to_string_lossy().ends_with(rest).then(|| entry.path()),
    };
    let mut paths: Vec<PathBuf> =
        entries.filter_map(Result::ok).filter_map(path).filter(|path| path.is_file()).collect();
    paths.sort();
    paths
}

/// The backlog that was named, or the first of the usual names that is there.
pub(crate) fn find_backlog(workspace: &Path, named: Option<&Path>) -> Result<PathBuf, Failure> {
    if let Some(path) = named {
        let path = path.canonicalize().map_err(|error| {
            Failure::usage(format!("cannot read the backlog {}: {error}", path.display()))
                .hint("name an existing file: `wiggum run FILE`")
        })?;
        return Ok(path);
    }
    let found =
        wiggum_backlog::candidates().iter().map(|name| workspace.join(name)).find(|path| path.is_file());
    if let Some(found) = found {
        return Ok(found);
    }
    let matching = matching(workspace);
    match matching.as_slice() {
        [only] => return Ok(only.clone()),
        [] => {}
        [first, ..] => {
            let names: Vec<String> =
                matching.iter().take(12).map(|path| name_inside(workspace, path)).collect();
            let more = if matching.len() > names.len() { ", …" } else { "" };
            let message = format!("several backlogs in {}: {}{more}", workspace.display(), names.join(", "));
            let hint = format!("name one: `wiggum run {}`", name_inside(workspace, first));
            return Err(Failure::usage(message).hint(hint));
        }
    }
    Err({
        Failure::usage(format!("no backlog in {}", workspace.display())).hint(
            "name one: `wiggum run PRD.json`. It may be a PRD.json, tasks.json, Plan.md, fix_plan.md or any \
             Markdown with boxes (`- [ ] text`)",
        )
    })
}
