//! `wiggum monitor`: all loops of the machine at a glance, and what has to be done about them.
//!
//! It decides nothing that an engine decides: it nudges through the store, calls people, and lets a run
//! go on whose engine died. It looks when something changes; a clock only keeps the shown times young.

mod care;

use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use wiggum_engine::desk::machine;
use wiggum_engine::state_dir::StateDir;

use crate::args::MonitorArgs;
use crate::commands::health::{self, LoopHealth, health_word, state_words};
use crate::commands::loops::{self, Loops};
use crate::commands::{print_json, surroundings};
use crate::failure::Failure;
use crate::narrate::elapsed;
use crate::term::{self, Reader, Style};
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
        let watch = Watch::over(&view.places);
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
    for (dir, asked_for) in stores(args)? {
        match look_at(&dir, asked_for, args.restart, now) {
            Ok(rows) => {
                view.places.push(dir.path().to_owned());
                view.places.extend(rows.iter().map(|row| dir.path().join("loops").join(&row.health.loop_id)));
                view.rows.extend(rows);
            }
            Err(failure) => view.problems.push(format!("{}: {}", dir.path().display(), failure.message)),
        }
    }
    Ok(view)
}

fn look_at(dir: &StateDir, asked_for: bool, restart: bool, now: Timestamp) -> Result<Vec<Row>, Failure> {
    let Some(mut loops) = dir.path().parent().map(Loops::of).transpose()?.flatten() else {
        return Ok(Vec::new());
    };
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
fn stores(args: &MonitorArgs) -> Result<Vec<(StateDir, bool)>, Failure> {
    let mut found: Vec<(PathBuf, bool)> = Vec::new();
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
        found.push((workspace, true));
    }
    found.extend(loops::workspace().ok().map(|workspace| (workspace, true)));
    found.extend(registered()?.into_iter().map(|workspace| (workspace, false)));
    let mut seen = BTreeSet::new();
    let each_once = found.into_iter().filter(|(workspace, _)| seen.insert(workspace.clone()));
    Ok(each_once
        .map(|(workspace, asked_for)| (StateDir::of(&workspace), asked_for))
        .filter(|(dir, _)| dir.database().exists())
        .collect())
}

/// What this machine knows of, as far as it is still there.
fn registered() -> Result<Vec<PathBuf>, Failure> {
    let Some(file) = surroundings()?.registry() else { return Ok(Vec::new()) };
    Ok(machine::registered(&file)?.into_iter().map(|place| place.workspace).collect())
}

fn show_once(view: &View, json: bool) -> Result<ExitCode, Failure> {
    view.problems.iter().for_each(|problem| term::note(&format!("warning: {problem}\n")));
    if json {
        return print_json(&view.rows);
    }
    Ok(term::print(&table(view, Style::for_stdout())))
}

/// The whole screen anew, and a bell for what a person has not been called for yet.
fn redraw(view: &View, told: &mut BTreeSet<String>) -> Reader {
    let alerts: BTreeSet<String> = view.rows.iter().filter_map(key).collect();
    let bell = if alerts.is_subset(told) { "" } else { "\x07" };
    *told = alerts;
    let problems: String = view.problems.iter().map(|problem| format!("! {}\n", one_line(problem))).collect();
    term::print_to_reader(&format!("\x1b[H\x1b[2J{}{problems}{bell}", table(view, Style::for_stdout())))
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
        (&seen.loop_id, &seen.state, seen.interrupted, seen.done, health, &row.alert, &seen.breaker.state)
    )
}

fn table(view: &View, style: Style) -> String {
    if view.rows.is_empty() {
        return "no loops: `wiggum run` starts one\n".to_owned();
    }
    let heading = ["LOOP", "STATE", "DONE", "AGENT", "LAST BEAT", "WHERE"].map(str::to_owned);
    let rows: Vec<[String; 6]> = view.rows.iter().map(|row| cells(row, Style::plain())).collect();
    let widths: Vec<usize> = (0..6)
        .map(|column| {
            rows.iter().chain([&heading]).map(|cells| cells[column].chars().count()).max().unwrap_or(0)
        })
        .collect();
    let mut out = pad(&heading, &heading, &widths, |text| style.bold(text));
    for (row, plain) in view.rows.iter().zip(&rows) {
        out.push_str(&pad(&cells(row, style), plain, &widths, str::to_owned));
        out.extend(row.alert.iter().map(|alert| format!("  {} {}\n", style.red("!"), one_line(alert))));
        out.extend(row.did.iter().map(|did| format!("  {} {}\n", style.cyan("»"), one_line(did))));
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
        format!("{} {}", one_line(&seen.repository), one_line(&seen.backlog)),
    ]
}

fn line(row: &Row, style: Style) -> Vec<String> {
    let mut parts: Vec<String> = cells(row, style).to_vec();
    parts.extend(row.alert.iter().map(|alert| format!("! {}", one_line(alert))));
    parts.extend(row.did.iter().map(|did| format!("» {}", one_line(did))));
    parts
}
