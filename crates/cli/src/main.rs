//! The `wiggum` command: reads its arguments, calls the library, prints, and exits with a code that
//! means something.

mod args;
mod ask;
mod commands;
mod config;
mod detect;
mod failure;
mod init;
mod narrate;
mod record;
mod sandbox;
mod team;
mod term;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    // Scripts ask for the version all the time; it needs no parser.
    if let [_, flag] = &std::env::args_os().collect::<Vec<_>>()[..]
        && (flag == "--version" || flag == "-V")
    {
        return term::print(&format!("wiggum {}\n", env!("CARGO_PKG_VERSION")));
    }
    // Every start of an agent comes by here first, so it should take no time either.
    if std::env::args_os().nth(1).is_some_and(|word| word == wiggum_workspace::sandbox::HELPER) {
        return commands::become_program();
    }
    failure::end_on_panic();
    commands::dispatch(args::Cli::parse())
}
