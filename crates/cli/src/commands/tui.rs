//! `wiggum tui`, and `wiggum run --tui`: which loop, in which terminal. A run is started in a process of its
//! own, so that nothing that happens to the terminal happens to it.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use jiff::Timestamp;
use wiggum_engine::checkout::Checkout;
use wiggum_engine::desk::backlog::name_inside;
use wiggum_engine::desk::launch::{Begun, Launched};
use wiggum_engine::desk::watch::Watch;
use wiggum_engine::desk::{health, machine};
use wiggum_engine::error::chain;
use wiggum_store::LoopRecord;
use wiggum_tui::{Left, Setup};

use crate::args::TuiArgs;
use crate::commands::loops::{self, DeskError, Loops};
use crate::commands::requests::who;
use crate::commands::{Surroundings, find_backlog, print_json, refuse_inside_agent, run, surroundings};
use crate::config::Config;
use crate::failure::Failure;
use crate::started;
use crate::term::{self, Style};

/// A run that has not opened its loop by then is slow, or waits for something.
const PATIENCE: Duration = Duration::from_secs(30);

/// A loop, and where it is.
type Target = (Checkout, LoopRecord);

pub(crate) fn tui(args: &TuiArgs) -> Result<ExitCode, Failure> {
    refuse_inside_agent()?;
    let checkout = loops::checkout()?;
    let registry = surroundings()?.registry();
    let target = target(&checkout, args.which.as_deref(), registry.as_deref())?;
    if args.output.json {
        let (checkout, record) = target.ok_or(DeskError::NoLoops)?;
        return print_json(&health::of(&Loops::of(&checkout)?.ok_or(DeskError::NoLoops)?, &record)?);
    }
    let left = show(&checkout, target, registry)?;
    Ok(farewell(&left))
}

/// Starts the run that is meant, unless it runs already, and shows it. Its exit code is the run's if that
/// ended meanwhile.
pub(crate) fn run(here: &Surroundings, config: Config) -> Result<ExitCode, Failure> {
    refuse_inside_agent()?;
    require_terminal()?;
    let backlog = name_inside(&here.workspace, &find_backlog(&here.workspace, config.backlog.as_deref())?);
    let name = config.name.clone();
    let checkout = here.checkout()?;
    let target = match running(&checkout, &backlog, &name)? {
        Some(record) => record,
        None => {
            // What is wrong with the settings is said here, where somebody sees it.
            run::settings(here, config, true)?;
            launch(&checkout, backlog, name)?
        }
    };
    let left = show(&checkout, Some((checkout.clone(), target)), here.registry())?;
    let shown = farewell(&left);
    Ok(left.ended.map_or(shown, |reason| ExitCode::from(reason.ending().exit_code)))
}

fn running(checkout: &Checkout, backlog: &str, name: &str) -> Result<Option<LoopRecord>, Failure> {
    let Some(loops) = Loops::of(checkout)? else { return Ok(None) };
    for record in loops.all()? {
        let meant = record.identity.backlog == backlog && record.identity.name == name;
        if meant && loops.lease(record.id)?.alive().is_some() {
            return Ok(Some(record));
        }
    }
    Ok(None)
}

/// The same call, in a process of its own.
fn launch(checkout: &Checkout, backlog: String, name: String) -> Result<LoopRecord, Failure> {
    let cannot = |error: std::io::Error| Failure::other(format!("cannot start the loop: {error}"));
    let given = std::env::args_os().skip(2).filter(|argument| argument != "--tui");
    let arguments: Vec<OsString> =
        ["run", "--attended"].map(OsString::from).into_iter().chain(given).collect();
    let dir = checkout.open(None)?;
    let watch = Watch::over(&[dir.path().to_owned()]);
    let at = Timestamp::now();
    let directory = std::env::current_dir().map_err(cannot)?;
    let (pid, log) = started::apart(&dir, &directory, &name, &arguments).map_err(cannot)?;
    let launched = Launched { pid, backlog, name, log, at };
    match launched.begun(checkout, watch, PATIENCE)? {
        Begun::Loop(record) => Ok(*record),
        Begun::Ended(said) => Err(Failure::other(format!("the loop did not start:\n{said}"))),
        Begun::NotYet => Err(Failure::other(format!("process {pid} has not begun its loop yet")).hint(
            format!("`wiggum tui` shows it once it has; what it prints is in {}", launched.log.display()),
        )),
    }
}

/// The loop that is meant: here, or by its name anywhere on this machine. None where there is a choice.
fn target(
    checkout: &Checkout,
    which: Option<&str>,
    registry: Option<&Path>,
) -> Result<Option<Target>, Failure> {
    let here = Loops::of(checkout)?.map_or(Err(DeskError::NoLoops), |loops| loops.select(which));
    let error = match (here, which) {
        (Ok(record), _) => return Ok(Some((checkout.clone(), record))),
        (Err(DeskError::SeveralRun { .. }), None) => return Ok(None),
        (Err(error @ (DeskError::NoLoops | DeskError::UnknownLoop { .. })), _) => error,
        (Err(error), _) => return Err(error.into()),
    };
    let places = registry.map(machine::registered).transpose()?.unwrap_or_default();
    let Some(which) = which else {
        return if places.is_empty() { Err(error.into()) } else { Ok(None) };
    };
    let mut found: Vec<Target> = Vec::new();
    for place in places {
        // A store that cannot be read has no loop that could be looked at.
        let loops = Loops::of(&place.checkout).ok().flatten();
        let record = loops.and_then(|loops| loops.select(Some(which)).ok());
        found.extend(record.map(|record| (place.checkout, record)));
    }
    match found.len() {
        0 => Err(error.into()),
        1 => Ok(found.pop()),
        _ => {
            let places =
                found.iter().map(|(place, record)| format!("{} in {}", record.id, place.path().display()));
            let (which, found) = (which.to_owned(), places.collect::<Vec<_>>().join(", "));
            Err(DeskError::AmbiguousLoop { which, found }.into())
        }
    }
}

fn require_terminal() -> Result<(), Failure> {
    let lines =
        "`wiggum status`, `wiggum monitor` and `wiggum inbox` print lines; `wiggum serve` opens a page";
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        return Err(Failure::usage("the interface needs a terminal").hint(lines));
    }
    if std::env::var_os("TERM").is_none_or(|term| term == "dumb" || term.is_empty()) {
        return Err(Failure::usage("this terminal cannot show the interface (TERM is dumb)").hint(lines));
    }
    Ok(())
}

fn show(checkout: &Checkout, target: Option<Target>, registry: Option<PathBuf>) -> Result<Left, Failure> {
    require_terminal()?;
    let setup = Setup {
        checkout: checkout.clone(),
        target,
        registry,
        by: format!("{} (TUI)", who()),
        colour: Style::for_stdout().is_coloured(),
    };
    wiggum_tui::run(setup).map_err(|error| Failure::other(chain(&error)))
}

/// What becomes of the loop that was looked at.
fn farewell(left: &Left) -> ExitCode {
    let Some(name) = &left.name else { return ExitCode::SUCCESS };
    let name = term::harmless(name);
    let text = match left.ended {
        _ if left.running => {
            format!("loop {name} goes on: `wiggum tui {name}` comes back to it, `wiggum stop` ends it\n")
        }
        Some(reason) => format!("loop {name}: {}\n", reason.ending().says),
        None => format!("loop {name} does not run: `wiggum run` goes on\n"),
    };
    term::print(&text);
    ExitCode::SUCCESS
}
