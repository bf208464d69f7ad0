//! `wiggum simulate`: many loops in virtual time, to size a run or to hold the engine against its
//! invariants.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::thread::available_parallelism;
use std::time::Instant;

use serde::Serialize;
use wiggum_sim::{Fault, Given, Mix, Setup, Trial};
use wiggum_workspace::beneath;

use crate::args::SimulateArgs;
use crate::commands::{find_backlog, print_json, surroundings};
use crate::config::{self, Flags};
use crate::failure::{FAILURE, Failure};
use crate::term::{self, Style, harmless};

/// What goes wrong in the world of somebody who sizes a run; crashes and full disks are our business.
const EVERYDAY: [Fault; 3] = [Fault::Hang, Fault::Lie, Fault::Limit];

/// How many failing seeds are shown.
const SHOWN: usize = 20;

#[derive(Debug, Default, Serialize)]
struct Report {
    loops: u64,
    seed: u64,
    /// All that must not happen, and did.
    violations: usize,
    /// The worlds in which it did.
    seeds: Vec<u64>,
    findings: Vec<Finding>,
    /// How loops ended; `waiting` are those that wait for a person.
    ended: BTreeMap<&'static str, u64>,
    /// Loops that have done all of their tasks.
    completed: u64,
    engines: u64,
    crashes: u64,
    total_iterations: u64,
    events: u64,
    iterations: Spread,
    hours: Spread,
    cost_usd: Spread,
    /// What the simulation itself took.
    seconds: f64,
}

#[derive(Debug, Serialize)]
struct Finding {
    seed: u64,
    violations: Vec<String>,
    replay: String,
}

/// How a figure is spread over the loops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
struct Spread {
    p10: f64,
    p50: f64,
    p90: f64,
    max: f64,
}

pub(crate) fn simulate(args: &SimulateArgs) -> Result<ExitCode, Failure> {
    let setup = setup(args)?;
    // A mistake of ours in one world is a finding, and not the end of all others.
    std::panic::set_hook(Box::new(|_| {}));
    let started = Instant::now();
    let mut trials = Vec::new();
    let failed = |error| Failure::other(format!("cannot simulate: {error}"));
    if args.trace {
        for seed in args.seed..args.seed.saturating_add(args.loops) {
            let place = tempfile::tempdir_in(wiggum_sim::fast_place()).map_err(failed)?;
            let mut trial = wiggum_sim::simulate(seed, &setup, place.path(), true).map_err(failed)?;
            show_trace(&mut trial);
            trials.push(trial);
        }
    } else {
        let threads = args.threads.unwrap_or_else(|| available_parallelism().map_or(1, usize::from));
        wiggum_sim::simulate_many(args.seed, args.loops, &setup, threads, |trial| trials.push(trial))
            .map_err(failed)?;
    }
    trials.sort_by_key(|trial| trial.seed);
    let mut report = report(args, &trials);
    report.seconds = started.elapsed().as_secs_f64();
    if args.output.json {
        let _printed = print_json(&report)?;
    } else {
        let _printed = term::print(&text(&report, Style::for_stdout()));
    }
    Ok(if report.violations == 0 { ExitCode::SUCCESS } else { ExitCode::from(FAILURE) })
}

fn setup(args: &SimulateArgs) -> Result<Setup, Failure> {
    let usage = |flag: &str| {
        let flag = flag.to_owned();
        move |problem: String| {
            Failure::usage(format!("{flag}: {problem}")).hint("`wiggum simulate --help` names them all")
        }
    };
    let everyday = || args.backlog.is_some().then(|| EVERYDAY.to_vec());
    let faults = match &args.faults {
        Some(list) => Fault::parse_list(list).map_err(usage("--faults"))?,
        None => everyday().unwrap_or_else(|| Fault::ALL.to_vec()),
    };
    let agents = args.agents.as_deref().map(Mix::parse).transpose().map_err(usage("--agents"))?;
    Ok(Setup { faults, agents: agents.unwrap_or_default(), tasks: args.tasks, given: given(args)? })
}

/// The backlog to be sized, under the rules it would run by.
fn given(args: &SimulateArgs) -> Result<Option<Given>, Failure> {
    let Some(path) = &args.backlog else { return Ok(None) };
    let here = surroundings()?;
    let policy = config::resolve(&here.sources(&Flags::default()))?.policy;
    let path = find_backlog(&here.workspace, Some(path))?;
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let backlog = beneath::text_of(&path)
        .map_err(|error| Failure::usage(format!("cannot read the backlog {}: {error}", path.display())))?;
    let parsed = wiggum_backlog::Backlog::parse(&name, backlog.as_str())
        .map_err(|problems| Failure::usage(problems.to_string()))?;
    Ok(Some(Given {
        policy: wiggum_core::policy::Policy { selection: parsed.selection(), ..policy },
        backlog_name: name,
        backlog,
    }))
}

fn show_trace(trial: &mut Trial) {
    let mut text = format!("seed {}\n", trial.seed);
    for line in std::mem::take(&mut trial.trace) {
        text.push_str(&harmless(&line));
        text.push('\n');
    }
    let _printed = term::print(&text);
}

fn report(args: &SimulateArgs, trials: &[Trial]) -> Report {
    let mut report = Report { loops: args.loops, seed: args.seed, ..Report::default() };
    for trial in trials {
        *report.ended.entry(trial.reason.map_or("waiting", |reason| reason.name())).or_default() += 1;
        report.completed += u64::from(trial.done == trial.tasks);
        report.engines += u64::from(trial.engines);
        report.crashes += u64::from(trial.crashes);
        report.total_iterations += u64::from(trial.iterations);
        report.events += trial.events;
        report.violations += trial.violations.len();
        if !trial.violations.is_empty() {
            report.seeds.push(trial.seed);
            let violations = trial.violations.clone();
            report.findings.push(Finding { seed: trial.seed, violations, replay: replay(args, trial.seed) });
        }
    }
    report.iterations = spread(trials, |trial| f64::from(trial.iterations));
    report.hours = spread(trials, |trial| trial.active.as_secs_f64() / 3600.0);
    report.cost_usd = spread(trials, |trial| trial.cost);
    report
}

/// The command that shows one of these worlds again.
fn replay(args: &SimulateArgs, seed: u64) -> String {
    let mut command = "wiggum simulate".to_owned();
    if let Some(backlog) = &args.backlog {
        command.push_str(&format!(" {}", backlog.display()));
    }
    command.push_str(&format!(" --loops 1 --seed {seed} --trace"));
    let tasks = args.tasks.map(|tasks| tasks.to_string());
    for (flag, value) in [("--faults", &args.faults), ("--agents", &args.agents), ("--tasks", &tasks)] {
        if let Some(value) = value {
            command.push_str(&format!(" {flag} {value}"));
        }
    }
    command
}

fn spread(trials: &[Trial], figure: impl Fn(&Trial) -> f64) -> Spread {
    let mut figures: Vec<f64> = trials.iter().map(figure).collect();
    figures.sort_by(f64::total_cmp);
    let at = |percent: usize| figures.get((figures.len().saturating_sub(1)) * percent / 100).copied();
    let [p10, p50, p90, max] = [10, 50, 90, 100].map(|percent| at(percent).unwrap_or_default());
    Spread { p10, p50, p90, max }
}

fn text(report: &Report, style: Style) -> String {
    let verdict = match report.violations {
        0 => style.green("no violation"),
        1 => style.red("1 violation"),
        n => style.red(&format!("{n} violations")),
    };
    let mut text = format!(
        "{} loops in {:.1} s: {} iterations, {} crashes, {verdict}\n",
        report.loops, report.seconds, report.total_iterations, report.crashes
    );
    let percent = |count: u64| 100.0 * count as f64 / report.loops.max(1) as f64;
    text.push_str(&format!("all tasks done: {:.0} %; ended:", percent(report.completed)));
    for (reason, count) in &report.ended {
        text.push_str(&format!(" {reason} {:.0} %", percent(*count)));
    }
    text.push_str(&style.dim("\n\n                    10 %      50 %      90 %      most\n"));
    let rows = [
        ("iterations", report.iterations, 0),
        ("hours at work", report.hours, 1),
        ("cost in $", report.cost_usd, 2),
    ];
    for (name, spread, digits) in rows {
        let Spread { p10, p50, p90, max } = spread;
        text.push_str(&format!(
            "{name:<14}{p10:>10.digits$}{p50:>10.digits$}{p90:>10.digits$}{max:>10.digits$}\n"
        ));
    }
    for finding in report.findings.iter().take(SHOWN) {
        text.push_str(&format!("\n{} {}\n", style.red("seed"), finding.seed));
        finding
            .violations
            .iter()
            .for_each(|violation| text.push_str(&format!("  {}\n", harmless(violation))));
        text.push_str(&format!("  {} {}\n", style.cyan("again:"), finding.replay));
    }
    if report.findings.len() > SHOWN {
        text.push_str(&format!("\nand {} more\n", report.findings.len() - SHOWN));
    }
    text
}
