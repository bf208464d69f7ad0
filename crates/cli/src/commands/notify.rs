//! `wiggum notify`: who is told what happens, and how far they have been told. Also what every command uses that
//! runs or serves loops: telling beside it.

use std::path::Path;
use std::process::ExitCode;

use jiff::Timestamp;
use serde::Serialize;
use wiggum_engine::words::{counted, one_line};
use wiggum_notify::{Courier, Delivery, Kind, Outcome, Sender, Target, trial};
use wiggum_store::{Delivery as Place, LoopRecord, Undelivered};

use crate::args::{NotifyCommand, NotifyStatus, NotifyWhich, OutputArgs};
use crate::commands::loops::Loops;
use crate::commands::{Surroundings, print_json, refuse_inside_agent, surroundings, surroundings_of};
use crate::config::{self, Config, Flags};
use crate::failure::{FAILURE, Failure};
use crate::term::{self, Style};

pub(crate) fn notify(command: &NotifyCommand) -> Result<ExitCode, Failure> {
    match command {
        NotifyCommand::List(args) => list(args),
        NotifyCommand::Test(args) => test(args),
        NotifyCommand::Status(args) => status(args),
        NotifyCommand::Deliver(args) => deliver(args),
    }
}

/// Tells of the loops of a workspace for as long as what is returned is kept. What is wrong with a receiver is said
/// once, and stands in nobody's way.
pub(crate) fn beside(here: &Surroundings, config: &Config) -> Option<Courier> {
    let targets = targets(here, config);
    for target in &targets {
        if let Some(problem) = target.way.problem() {
            term::note(&format!("note: `{}` is not told: it {problem}\n", target.name));
        }
    }
    if targets.is_empty() {
        return None;
    }
    match here.checkout().and_then(|checkout| Ok(checkout.open(None)?)) {
        Ok(dir) => Some(Courier::start(&dir, targets)),
        Err(failure) => {
            term::note(&format!("warning: nobody is told: {}\n", failure.message));
            None
        }
    }
}

fn targets(here: &Surroundings, config: &Config) -> Vec<Target> {
    let each = config.notify.iter();
    each.map(|(name, target)| target.target(name, &here.workspace, &here.env)).collect()
}

/// The receivers that are meant, all if none is named.
fn meant(here: &Surroundings, name: Option<&str>) -> Result<Vec<Target>, Failure> {
    let config = config::resolve(&here.sources(&Flags::default()))?;
    let all = targets(here, &config);
    if all.is_empty() && name.is_none() {
        return Ok(all);
    }
    let names: Vec<String> = all.iter().map(|target| target.name.clone()).collect();
    let found: Vec<Target> =
        all.into_iter().filter(|target| name.is_none_or(|name| target.name == name)).collect();
    match (found.is_empty(), name) {
        (true, Some(name)) => {
            let there = if names.is_empty() { "there are none".to_owned() } else { names.join(", ") };
            Err(Failure::usage(format!("no receiver is called `{name}`"))
                .hint(format!("configured under [[notify]]: {there}")))
        }
        _ => Ok(found),
    }
}

#[derive(Serialize)]
struct Listed {
    name: String,
    kind: &'static str,
    /// Only the host of an address, which may be a secret otherwise.
    to: Option<String>,
    on: Vec<Kind>,
    problem: Option<String>,
}

fn list(args: &OutputArgs) -> Result<ExitCode, Failure> {
    let here = surroundings()?;
    let listed = |target: Target| Listed {
        kind: target.way.name(),
        to: target.way.place().map(str::to_owned),
        problem: target.way.problem().map(str::to_owned),
        name: target.name,
        on: target.on,
    };
    let rows: Vec<Listed> = meant(&here, None)?.into_iter().map(listed).collect();
    if args.json {
        return print_json(&rows);
    }
    if rows.is_empty() {
        return nobody();
    }
    let style = Style::for_stdout();
    let line = |row: &Listed| {
        let on: Vec<&str> = row.on.iter().map(|kind| kind.name()).collect();
        let to = row.to.as_ref().map(|to| format!(" {}", one_line(to))).unwrap_or_default();
        let problem = row.problem.as_ref().map(|problem| format!("  {} it {problem}\n", style.red("!")));
        format!(
            "{}: {}{to}: {}\n{}",
            style.bold(&row.name),
            row.kind,
            on.join(", "),
            problem.unwrap_or_default()
        )
    };
    Ok(term::print(&rows.iter().map(line).collect::<String>()))
}

fn nobody() -> Result<ExitCode, Failure> {
    Ok(term::print("nobody is told: configure [[notify]] in wiggum.toml (see docs/notifications.md)\n"))
}

#[derive(Serialize)]
struct Tried {
    name: String,
    reached: bool,
    problem: Option<String>,
}

fn test(args: &NotifyWhich) -> Result<ExitCode, Failure> {
    refuse_inside_agent()?;
    let here = surroundings()?;
    let targets = meant(&here, args.name.as_deref())?;
    let tried: Vec<Tried> = targets.into_iter().map(|target| try_one(target, &here.workspace)).collect();
    let failed = tried.iter().any(|tried| !tried.reached);
    if args.output.json {
        print_json(&tried)?;
    } else if tried.is_empty() {
        return nobody();
    } else {
        let style = Style::for_stdout();
        let line = |tried: &Tried| match &tried.problem {
            None => format!("{} {}\n", style.green("reached"), tried.name),
            Some(problem) => format!("{} {}: {}\n", style.red("not reached"), tried.name, one_line(problem)),
        };
        term::print(&tried.iter().map(line).collect::<String>());
    }
    Ok(if failed { ExitCode::from(FAILURE) } else { ExitCode::SUCCESS })
}

fn try_one(target: Target, workspace: &Path) -> Tried {
    let now = Timestamp::now();
    let name = target.name.clone();
    let delivery = Delivery { id: format!("test_{}_{name}", now.as_millisecond()), message: trial(now) };
    let problem = match Sender::new(target, workspace).send(&delivery, now) {
        Outcome::Sent => None,
        Outcome::Failed { problem, .. } => Some(problem),
    };
    Tried { name, reached: problem.is_none(), problem }
}

#[derive(Serialize)]
struct Told {
    name: String,
    kind: &'static str,
    to: Option<String>,
    problem: Option<String>,
    loops: Vec<ToldLoop>,
    given_up: Vec<GivenUp>,
}

#[derive(Serialize)]
struct ToldLoop {
    loop_id: String,
    name: String,
    sent: u64,
    sent_at: Option<Timestamp>,
    /// Up to this event.
    seq: u64,
    failing: Option<ToldFailing>,
}

#[derive(Serialize)]
struct ToldFailing {
    seq: u64,
    attempts: u32,
    next_try: Timestamp,
    problem: String,
}

#[derive(Serialize)]
struct GivenUp {
    loop_id: String,
    seq: u64,
    at: Timestamp,
    attempts: u32,
    problem: String,
}

fn status(args: &NotifyStatus) -> Result<ExitCode, Failure> {
    let here = surroundings()?;
    let targets = meant(&here, None)?;
    let mut loops = Loops::of(&here.checkout()?)?;
    let rows = match &loops {
        Some(loops) => standing(loops, targets)?,
        None => targets.into_iter().map(|target| told(target, Vec::new(), Vec::new())).collect(),
    };
    if args.clear
        && let Some(loops) = &mut loops
    {
        refuse_inside_agent()?;
        for row in &rows {
            loops.store.clear_undelivered(&row.name)?;
        }
    }
    if args.output.json {
        return print_json(&rows);
    }
    if rows.is_empty() {
        return nobody();
    }
    let style = Style::for_stdout();
    Ok(term::print(&rows.iter().map(|row| row.text(style)).collect::<String>()))
}

/// How everybody stands who is configured.
fn standing(loops: &Loops, targets: Vec<Target>) -> Result<Vec<Told>, Failure> {
    let (records, places, given_up) = (loops.all()?, loops.store.deliveries()?, loops.store.undelivered()?);
    let row = |target: Target| {
        let of_loops = places
            .iter()
            .filter(|(_, name, _)| *name == target.name)
            .filter_map(|(id, _, place)| Some((records.iter().find(|record| record.id == *id)?, place)));
        let of_loops = of_loops.map(|(record, place)| told_loop(record, place)).collect();
        let given_up = given_up.iter().filter(|one| one.target == target.name).map(gone).collect();
        told(target, of_loops, given_up)
    };
    Ok(targets.into_iter().map(row).collect())
}

fn told(target: Target, loops: Vec<ToldLoop>, given_up: Vec<GivenUp>) -> Told {
    Told {
        kind: target.way.name(),
        to: target.way.place().map(str::to_owned),
        problem: target.way.problem().map(str::to_owned),
        name: target.name,
        loops,
        given_up,
    }
}

fn told_loop(record: &LoopRecord, place: &Place) -> ToldLoop {
    ToldLoop {
        loop_id: record.id.to_string(),
        name: record.identity.name.clone(),
        sent: place.sent,
        sent_at: place.sent_at,
        seq: place.cursor,
        failing: place.failing.as_ref().map(|failing| ToldFailing {
            seq: failing.seq,
            attempts: failing.attempts,
            next_try: failing.next_try,
            problem: failing.problem.clone(),
        }),
    }
}

fn gone(one: &Undelivered) -> GivenUp {
    GivenUp {
        loop_id: one.loop_id.to_string(),
        seq: one.seq,
        at: one.at,
        attempts: one.attempts,
        problem: one.problem.clone(),
    }
}

impl Told {
    fn text(&self, style: Style) -> String {
        let to = self.to.as_ref().map(|to| format!(" {}", one_line(to))).unwrap_or_default();
        let mut text = format!("{}: {}{to}\n", style.bold(&self.name), self.kind);
        if let Some(problem) = &self.problem {
            text.push_str(&format!("  {} it {}\n", style.red("!"), one_line(problem)));
        }
        for ToldLoop { name, sent, sent_at, failing, .. } in &self.loops {
            let last = sent_at.map(|at| format!(", the last at {at:.0}")).unwrap_or_default();
            let messages = counted(usize::try_from(*sent).unwrap_or(usize::MAX), "message");
            text.push_str(&format!("  {}: {messages} sent{last}\n", one_line(name)));
            if let Some(ToldFailing { seq, attempts, next_try, problem }) = failing {
                let tries = counted(*attempts as usize, "attempt");
                let problem = one_line(problem);
                text.push_str(&format!(
                    "  {} event {seq} waits after {tries}, next at {next_try:.0}: {problem}\n",
                    style.yellow("…")
                ));
            }
        }
        for GivenUp { seq, at, attempts, problem, .. } in &self.given_up {
            let tries = counted(*attempts as usize, "attempt");
            text.push_str(&format!(
                "  {} event {seq} was given up at {at:.0} after {tries}: {}\n",
                style.red("!"),
                one_line(problem)
            ));
        }
        text
    }
}

fn deliver(args: &NotifyWhich) -> Result<ExitCode, Failure> {
    refuse_inside_agent()?;
    let here = surroundings()?;
    let targets = meant(&here, args.name.as_deref())?;
    let sent = match here.checkout()?.find()? {
        Some(dir) => wiggum_notify::deliver(&dir, targets),
        None => Vec::new(),
    };
    let left = sent.iter().any(|one| one.left || one.given_up > 0);
    if args.output.json {
        print_json(&sent)?;
    } else if sent.is_empty() {
        return nobody();
    } else {
        for one in &sent {
            let messages = counted(usize::try_from(one.sent).unwrap_or(usize::MAX), "message");
            let more = match (one.elsewhere, one.left, &one.problem) {
                (true, ..) => ": another process tells it".to_owned(),
                (_, _, Some(problem)) => format!(": {}", one_line(problem)),
                (_, true, None) => ", and more waits: see `wiggum notify status`".to_owned(),
                (_, false, None) if one.given_up > 0 => format!(", {} given up", one.given_up),
                (_, false, None) => String::new(),
            };
            term::print(&format!("{}: {messages} sent{more}\n", one.name));
        }
    }
    Ok(if left { ExitCode::from(FAILURE) } else { ExitCode::SUCCESS })
}

/// Those who are configured and cannot be told, and why, for `wiggum doctor`.
pub(crate) fn unusable(workspace: &Path, config: &Config) -> Vec<(String, String)> {
    let all = targets(&surroundings_of(workspace.to_owned()), config).into_iter();
    all.filter_map(|target| Some((target.name.clone(), target.way.problem()?.to_owned()))).collect()
}

/// What was given up, for `wiggum doctor`: how much of it for each receiver, and why at last.
pub(crate) fn given_up(loops: &Loops) -> Result<Vec<(String, usize, String)>, Failure> {
    let mut found: Vec<(String, usize, String)> = Vec::new();
    for Undelivered { target, problem, .. } in loops.store.undelivered()? {
        match found.iter_mut().find(|(name, ..)| *name == target) {
            Some((_, count, last)) => {
                *count += 1;
                *last = problem;
            }
            None => found.push((target, 1, problem)),
        }
    }
    Ok(found)
}
