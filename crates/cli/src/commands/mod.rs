//! One file per command; each turns arguments into one call of the library and prints the result.

mod demo;
mod run;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::args::{Cli, Command};
use crate::config::{self, Flags, Sources};
use crate::failure::Failure;

pub(crate) fn dispatch(cli: Cli) -> ExitCode {
    let result = match cli.command {
        Command::Run(args) => run::run(&args),
        Command::Demo(args) => demo::demo(&args),
        Command::ScriptedAgent { scenario } => demo::scripted_agent(&scenario),
        _ => Err(Failure::usage("not yet")),
    };
    result.unwrap_or_else(|failure| failure.report())
}

/// Where a command was called, and what around it is configuration.
pub(crate) struct Surroundings {
    pub(crate) workspace: PathBuf,
    env: BTreeMap<String, String>,
}

pub(crate) fn surroundings() -> Result<Surroundings, Failure> {
    let env = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    Ok(Surroundings { workspace: run::workspace()?, env })
}

impl Surroundings {
    pub(crate) fn sources<'a>(&'a self, flags: &'a Flags) -> Sources<'a> {
        Sources { workspace: &self.workspace, user_file: config::user_file(&self.env), env: &self.env, flags }
    }
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
    found.ok_or_else(|| {
        Failure::usage(format!("no backlog in {}", workspace.display())).hint(
            "name one: `wiggum run PRD.json`. Understood are PRD.json, tasks.json, fix_plan.md and other \
             Markdown with checkboxes",
        )
    })
}
