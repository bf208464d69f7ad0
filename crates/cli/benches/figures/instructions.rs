//! Instructions of an iteration, counted by valgrind: what twelve iterations take beyond what two
//! take. They are those of the program alone, without the agent, the check and git, and they do not
//! depend on what else the machine does.

use std::process::Stdio;

use crate::Outcome;
use crate::place::{Place, WIGGUM, run_arguments};
use crate::table::Table;

const FEW: usize = 2;
const MORE: usize = 12;
const MILLION: f64 = 1e6;

pub(crate) fn measure(table: &mut Table) -> Outcome<()> {
    let (few, more) = (count(FEW)?, count(MORE)?);
    table.told("instructions of an iteration", (more - few) / (MORE - FEW) as f64 / MILLION, "million");
    Ok(())
}

fn count(iterations: usize) -> Outcome<f64> {
    let place = Place::with_backlog(MORE)?;
    let mut command = place.command("valgrind");
    command.args(["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]);
    command.arg(WIGGUM).args(run_arguments(iterations, "none")).stdout(Stdio::null());
    let output = command.output().map_err(|error| format!("valgrind is needed: {error}"))?;
    let told = String::from_utf8_lossy(&output.stderr);
    if !matches!(output.status.code(), Some(0 | 3)) {
        return Err(format!("wiggum run below valgrind: {}\n{told}", output.status).into());
    }
    // An iteration whose agent cannot be started takes fewer, and is not what is meant.
    let done = place.done()?;
    if done != iterations {
        return Err(format!("{done} of {iterations} iterations completed their task below valgrind").into());
    }
    // Children that are still to become another program end their own count too; the last is ours.
    let counted = told.lines().rev().find_map(|line| line.split_once("I   refs:"));
    let (_, number) = counted.ok_or_else(|| format!("valgrind counted nothing\n{told}"))?;
    Ok(number.trim().replace(',', "").parse()?)
}
