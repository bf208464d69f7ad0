//! `wiggum monitor`: all loops of the machine at a glance, those in sessions and panes too, and what
//! has to be done about them.
//!
//! It decides nothing that an engine decides: it nudges through the store, calls people, and lets a run
//! go on whose engine died. It looks when something changes; a clock only keeps the shown times young.

mod care;
mod sessions;

use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use wiggum_engine::checkout::Checkout;
use wiggum_engine::desk::machine;
use wiggum_engine::state_dir::StateDir;

use crate::args::MonitorArgs;
use crate::commands::health::{self, LoopHealth, health_word, state_words};
use crate::commands::loops::{self, Loops};
use crate::commands::{print_json, surroundings, surroundings_of};
use crate::failure::Failure;
use crate::narrate::elapsed;
use crate::session::known;
use crate::term::{self, Reader, Style};
use sessions::{ShownRow, WorkerRow};
use wiggum_engine::desk::watch::{Happened, Watch};
use wiggum_engine::words::one_line;

/// How old the shown times may become.
const REFRESH: Duration = Duration::from_secs(2);

/// A loop that ended longer ago than this is shown only where it was asked for.
const RECENT: SignedDuration = SignedDuration::from_hours(24);

/// A loop, and what the monitor did about it just now.
#[derive(Clone, Debug, Serialize)]
struct Row {
    #[serde(flatten)]
    health: LoopHealth,
    /// What a person should know.
    alert: Option<String>,
    did: Option<String>,
}

/// What one look found.
#[derive(Debug, Default)]
struct View {
    rows: Vec<Row>,
    workers: Vec<WorkerRow>,
    /// Stores that could not be read.
    problems: Vec<String>,
    places: Vec<PathBuf>,
}

pub(crate) fn monitor(args: &MonitorArgs) -> Result<ExitCode, Failure> {
    if args.once {
        let view = look(args)?;
        return show_once(&view, args.output.json);
    }
    let live = std::io::stdout().is_terminal() && !args.output.json;
    let mut told = BTreeSet::new();
    loop {
        let view = look(args)?;
        let reader =
            if live { redraw(&view, &mut told) } else { tell_changes(&view, args.output.json, &mut told) };
        if reader == Reader::Gone {
            return Ok(ExitCode::SUCCESS);
        }
        // The first must exist, or it would be looked for again and again.
        let here = PathBuf::from(".");
        let watch =
            Watch::over(if view.places.is_empty() { std::slice::from_ref(&here) } else { &view.places });
        watch.tell_end_of_reader();
        if watch.wait(Some(REFRESH)) == Happened::ReaderGone {
            return Ok(ExitCode::SUCCESS);
        }
    }
}

/// Looks at every loop and does what has to be done.
fn look(args: &MonitorArgs) -> Result<View, Failure> {
    let mut view = View::default();
    let now = Timestamp::now();
    for (checkout, asked_for) in stores(args)? {
        let dir = checkout.find()?;
        match look_at(&checkout, asked_for, args.restart, now) {
            Ok(rows) => {
                if let Some(dir) = dir {
                    let loops = rows.iter().map(|row| dir.path().join("loops").join(&row.health.loop_id));
                    view.places.extend(loops);
                    view.places.push(dir.path().to_owned());
                }
                view.rows.extend(rows);
            }
            Err(failure) => {
                view.problems.push(format!("{}: {}", checkout.path().display(), failure.message));
            }
        }
        let (workers, problems) = sessions::look_at(checkout.path(), now);
        view.workers.extend(workers);
        view.problems.extend(problems);
    }
    Ok(view)
}

fn look_at(checkout: &Checkout, asked_for: bool, restart: bool, now: Timestamp) -> Result<Vec<Row>, Failure> {
    let Some(mut loops) = Loops::of(checkout)? else { return Ok(Vec::new()) };
    let mut rows = Vec::new();
    for record in loops.all()? {
        let health = health::of(&loops, &record)?;
        if !asked_for && health.termination_reason.is_some() && !is_recent(&loops, &record, now)? {
            continue;
        }
        let (alert, did) = (care::alert(&health), care::care(&mut loops, &record, &health, restart, now)?);
        rows.push(Row { health, alert, did });
    }
    Ok(rows)
}

fn is_recent(loops: &Loops, record: &wiggum_store::LoopRecord, now: Timestamp) -> Result<bool, Failure> {
    let updated = loops.status(record)?.updated_at;
    Ok(updated.is_some_and(|at| now.duration_since(at) < RECENT))
}

/// Where loops may be, each once: those asked for first.
fn stores(args: &MonitorArgs) -> Result<Vec<(Checkout, bool)>, Failure> {
    let mut found: Vec<(Checkout, bool)> = Vec::new();
    for store in &args.stores {
        let place = store.canonicalize().map_err(|error| {
            Failure::usage(format!("cannot look at {}: {error}", store.display()))
                .hint("name a repository, or its .wiggum directory")
        })?;
        let workspace = if place.file_name().is_some_and(|name| name == StateDir::NAME) {
            place.parent().map(Path::to_owned).unwrap_or(place)
        } else {
            place
        };
        found.push((surroundings_of(workspace).checkout()?, true));
    }
    found.extend(loops::checkout().ok().map(|checkout| (checkout, true)));
    found.extend(registered()?.into_iter().map(|checkout| (checkout, false)));
    for workspace in known::all() {
        found.push((surroundings_of(workspace).checkout()?, false));
    }
    Ok(machine::each_once(found, |(checkout, _)| checkout))
}

/// What this machine knows of, as far as it is still there.
fn registered() -> Result<Vec<Checkout>, Failure> {
    let Some(file) = surroundings()?.registry() else { return Ok(Vec::new()) };
    Ok(machine::registered(&file)?.into_iter().map(|place| place.checkout).collect())
}

fn show_once(view: &View, json: bool) -> Result<ExitCode, Failure> {
    view.problems.iter().for_each(|problem| term::note(&format!("warning: {problem}\n")));
    if json {
        let loops = view.rows.iter().map(Shown::Loop);
        let workers = view.workers.iter().map(|row| Shown::Worker(Box::new(row.shown())));
        return print_json(&loops.chain(workers).collect::<Vec<_>>());
    }
    Ok(term::print(&tables(view, Style::for_stdout())))
}

/// One row for other programs; all but loops have a `kind`.
#[derive(Serialize)]
#[serde(untagged)]
enum Shown<'a> {
    Loop(&'a Row),
    Worker(Box<ShownRow<'a>>),
}

/// The whole screen anew, and a bell for what a person has not been called for yet.
fn redraw(view: &View, told: &mut BTreeSet<String>) -> Reader {
    let of_workers =
        view.workers.iter().filter_map(|row| Some(format!("{} {}", row.name(), row.alert.as_ref()?)));
    let alerts: BTreeSet<String> = view.rows.iter().filter_map(key).chain(of_workers).collect();
    let bell = if alerts.is_subset(told) { "" } else { "\x07" };
    *told = alerts;
    let problems: String = view.problems.iter().map(|problem| format!("! {}\n", one_line(problem))).collect();
    term::print_to_reader(&format!("\x1b[H\x1b[2J{}{problems}{bell}", tables(view, Style::for_stdout())))
}

/// A line for each loop whenever something about it has changed.
fn tell_changes(view: &View, json: bool, told: &mut BTreeSet<String>) -> Reader {
    let style = Style::for_stdout();
    let mut now_told = BTreeSet::new();
    let mut out = String::new();
    for row in &view.rows {
        let key = change_key(row);
        if !told.contains(&key) || row.did.is_some() {
            match json {
                true => out.push_str(&serde_json::to_string(row).unwrap_or_default()),
                false => out.push_str(&line(row, style).join("  ")),
            }
            out.push('\n');
        }
        now_told.insert(key);
    }
    let now = Timestamp::now();
    for row in &view.workers {
        let key = row.change_key(now);
        if !told.contains(&key) {
            match json {
                true => out.push_str(&serde_json::to_string(&row.shown()).unwrap_or_default()),
                false => {
                    out.push_str(&with_alert(row.cells(style, now).to_vec(), row.alert.as_ref()).join("  "))
                }
            }
            out.push('\n');
        }
        now_told.insert(key);
    }
    for problem in &view.problems {
        if !told.contains(problem) {
            term::note(&format!("warning: {problem}\n"));
        }
        now_told.insert(problem.clone());
    }
    *told = now_told;
    if out.is_empty() { Reader::There } else { term::print_to_reader(&out) }
}

fn key(row: &Row) -> Option<String> {
    row.alert.as_ref().map(|alert| format!("{} {alert}", row.health.loop_id))
}

fn change_key(row: &Row) -> String {
    let seen = &row.health;
    let health = seen.health.as_ref().map(|health| (health.health.clone(), health.nudges));
    format!(
        "{:?}",
        (&seen.loop_id, &seen.state, seen.activity, seen.done, health, &row.alert, &seen.breaker.state)
    )
}

/// A table of the loops, and one of the sessions and dispatched agents.
fn tables(view: &View, style: Style) -> String {
    let alert = |alert: &String| format!("  {} {}\n", style.red("!"), one_line(alert));
    let loops = view.rows.iter().map(|row| {
        let did = row.did.iter().map(|did| format!("  {} {}\n", style.cyan("»"), one_line(did)));
        let below = row.alert.iter().map(alert).chain(did).collect();
        (cells(row, Style::plain()), cells(row, style), below)
    });
    let now = Timestamp::now();
    let workers = view.workers.iter().map(|row| {
        (row.cells(Style::plain(), now), row.cells(style, now), row.alert.iter().map(alert).collect())
    });
    let loops = table(["LOOP", "STATE", "DONE", "AGENT", "LAST BEAT", "WHERE"], loops.collect(), style);
    let workers = table(WorkerRow::HEADING, workers.collect(), style);
    match (loops.is_empty(), workers.is_empty()) {
        (true, true) => "no loops: `wiggum run` starts one, `/ralph-loop` one in a session\n".to_owned(),
        (false, false) => format!("{loops}\n{workers}"),
        (true, false) | (false, true) => loops + &workers,
    }
}

/// Each row as it is without colours, with them, and with what stands below it.
fn table(heading: [&str; 6], rows: Vec<([String; 6], [String; 6], String)>, style: Style) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let heading = heading.map(str::to_owned);
    let width = |column: usize| {
        let cells = rows.iter().map(|(plain, ..)| plain).chain([&heading]);
        cells.map(|cells| cells[column].chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..6).map(width).collect();
    let mut out = pad(&heading, &heading, &widths, |text| style.bold(text));
    for (plain, painted, below) in &rows {
        out.push_str(&pad(painted, plain, &widths, str::to_owned));
        out.push_str(below);
    }
    out
}

/// Cells beside each other; colours do not count for their width.
fn pad(cells: &[String; 6], plain: &[String; 6], widths: &[usize], paint: impl Fn(&str) -> String) -> String {
    let mut line = String::new();
    for (index, cell) in cells.iter().enumerate() {
        let gap = widths[index].saturating_sub(plain[index].chars().count()) + 2;
        line.push_str(&paint(cell));
        line.push_str(&" ".repeat(gap));
    }
    line.trim_end().to_owned() + "\n"
}

fn cells(row: &Row, style: Style) -> [String; 6] {
    let seen = &row.health;
    let now = Timestamp::now();
    let health = seen.health.as_ref();
    let task = seen.task.as_ref().filter(|_| health.is_some()).map(|task| format!(" at {}", one_line(task)));
    [
        one_line(&seen.name),
        state_words(seen, style),
        format!("{}/{}", seen.done, seen.total),
        health.map_or("-".to_owned(), |health| health_word(&health.health, style))
            + &task.unwrap_or_default(),
        health.map_or("-".to_owned(), |health| format!("{} ago", elapsed(health.last_beat, now))),
        format!("{} {}{}", one_line(&seen.repository), one_line(&seen.backlog), gone(&seen.repository)),
    ]
}

/// Loops outlast the directory in which they ran.
fn gone(repository: &str) -> &'static str {
    if Path::new(repository).exists() { "" } else { " (no longer there)" }
}

fn with_alert(mut parts: Vec<String>, alert: Option<&String>) -> Vec<String> {
    parts.extend(alert.map(|alert| format!("! {}", one_line(alert))));
    parts
}

fn line(row: &Row, style: Style) -> Vec<String> {
    let mut parts = with_alert(cells(row, style).to_vec(), row.alert.as_ref());
    parts.extend(row.did.iter().map(|did| format!("» {}", one_line(did))));
    parts
}
