//! `wiggum init` and `wiggum config show`.

use std::process::ExitCode;

use crate::args::{InitArgs, OutputArgs};
use crate::commands::{agents, print_json, run, surroundings};
use crate::config::{self, Flags};
use crate::failure::{self, Failure};
use crate::init::{self, InitError, InitOptions};
use crate::term;

pub(crate) fn init(args: &InitArgs) -> Result<ExitCode, Failure> {
    let called_in = run::directory()?;
    let installed = agents::installed(&called_in);
    let options = InitOptions {
        called_in: &called_in,
        force: args.force,
        prompt: wiggum_core::prompt::DEFAULT_INSTRUCTIONS,
        backlog_names: wiggum_backlog::candidates(),
        agents: &installed,
    };
    let report = init::init(&run::workspace()?, options).map_err(|error| match &error {
        InitError::NotADirectory(_) => Failure::usage(wiggum_engine::error::chain(&error)),
        InitError::Read { .. } | InitError::Write { .. } => {
            Failure::other(wiggum_engine::error::chain(&error)).hint("check that the directory is writable")
        }
    })?;
    let printed = if args.output.json { print_json(&report)? } else { term::print(&report.to_string()) };
    // As a run would end: its files are written all the same.
    Ok(if report.problems.is_empty() { printed } else { ExitCode::from(failure::USAGE) })
}

pub(crate) fn config_show(args: &OutputArgs) -> Result<ExitCode, Failure> {
    let here = surroundings()?;
    let config = config::resolve(&here.sources(&Flags::default()))?;
    let rows = config.explain();
    if args.json { print_json(&rows) } else { Ok(term::print(&config::explained_table(&rows))) }
}
