//! The `wiggum` command: reads its arguments, calls the library, prints, and exits with a code that
//! means something.

mod api;
mod args;
mod ask;
mod commands;
mod config;
mod cost;
mod detect;
mod dispatch;
mod failure;
mod init;
mod install;
mod listen;
mod narrate;
mod plot;
mod priced;
mod record;
mod sandbox;
mod servers;
mod session;
mod started;
mod team;
mod term;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    match arguments.as_slice() {
        // Scripts ask for the version all the time; it needs no parser.
        [flag] if flag == "--version" || flag == "-V" => {
            return term::print(&format!("wiggum {}\n", env!("CARGO_PKG_VERSION")));
        }
        // Nor does a hook, for which an agent waits. And a wrong call must not end as usage errors do:
        // some agents take that exit code for an order to go on.
        [command, rest @ ..] if command == "hook" && !rest.iter().any(asks_for_help) => {
            return session::hook::run(rest.first().map_or("".as_ref(), |event| event));
        }
        // Every start of an agent comes by here first, so it should take no time either.
        [command, ..] if command == wiggum_workspace::sandbox::HELPER => return commands::become_program(),
        // It stays for as long as a run does, so it should be small.
        [command, rest @ ..] if command == wiggum_workspace::process::WATCHDOG => {
            wiggum_workspace::process::stand_watch(rest.iter().cloned());
            return ExitCode::SUCCESS;
        }
        _ => {}
    }
    failure::end_on_panic();
    commands::dispatch(args::Cli::parse())
}

fn asks_for_help(argument: &OsString) -> bool {
    argument == "--help" || argument == "-h"
}
