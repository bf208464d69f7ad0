//! What an iteration costs: wall time against the floor, our own time on the processor, memory.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::floor::Floor;
use crate::place::Place;
use crate::table::Table;
use crate::{Outcome, median};

const ROUNDS: usize = 10;
/// Iterations of each in a round, in turns: the floor, then the engine.
const BLOCK: usize = 20;

pub(crate) fn wall(table: &mut Table) -> Outcome<()> {
    let figures = against(Floor::new(Place::with_backlog(ROUNDS * BLOCK)?)?, "none")?;
    table.limited("wall time of an iteration, against the floor", figures.ratio, "×", 1.4);
    table.told("… of the floor", figures.by_hand, "ms");
    table.told("… of the engine", figures.by_us, "ms");
    table.limited("own time on the processor in an iteration", figures.processor, "ms", 3.0);
    table.told("… of the floor", figures.floors_processor, "ms");
    table.told("from the start of the program to the first iteration", figures.start, "ms");
    Ok(())
}

/// The same with agent and check in the default sandbox, against a floor that starts them through the same wrappers.
pub(crate) fn confined(table: &mut Table) -> Outcome<()> {
    if let Err(problem) = wiggum_workspace::sandbox::bwrap() {
        println!("SKIPPED: {problem}: a confined iteration is NOT MEASURED");
        return Ok(());
    }
    let floor = Floor::confined(Place::with_backlog(ROUNDS * BLOCK + 1)?)?;
    let figures = against(floor, "bwrap")?;
    table.limited("wall time of a confined iteration, against the floor", figures.ratio, "×", 1.3);
    table.told("… of the floor", figures.by_hand, "ms");
    table.told("… of the engine", figures.by_us, "ms");
    Ok(())
}

struct Figures {
    ratio: f64,
    by_hand: f64,
    by_us: f64,
    processor: f64,
    floors_processor: f64,
    start: f64,
}

fn against(mut floor: Floor, sandbox: &str) -> Outcome<Figures> {
    let tasks = ROUNDS * BLOCK;
    let place = Place::with_backlog(tasks)?;
    let (mut by_hand, mut by_us, mut ratios, mut starts) = (vec![], vec![], vec![], vec![]);
    let (mut floors_processor, mut processor) = (vec![], vec![]);
    for _ in 0..ROUNDS {
        let (start, busy) = (Instant::now(), processor_time(std::process::id())?);
        for _ in 0..BLOCK {
            floor.iteration()?;
        }
        let floor_took = each(start.elapsed());
        floors_processor.push(each(processor_time(std::process::id())? - busy));
        let watched = watch(&place, BLOCK, sandbox)?;
        let took = each(watched.iterations);
        by_hand.push(floor_took);
        by_us.push(took);
        ratios.push(took / floor_took);
        processor.push(each(watched.processor));
        starts.push(millis(watched.start));
    }
    if place.done()? != tasks {
        return Err(format!("{} of {tasks} tasks done", place.done()?).into());
    }
    Ok(Figures {
        ratio: median(ratios),
        by_hand: median(by_hand),
        by_us: median(by_us),
        processor: mean(&processor),
        floors_processor: mean(&floors_processor),
        start: median(starts),
    })
}

/// The most memory a run over a thousand tasks ever holds.
pub(crate) fn memory(table: &mut Table) -> Outcome<()> {
    let watched = watch(&Place::with_backlog(1000)?, 20, "none")?;
    table.limited("memory at 1 000 tasks", watched.memory_kib / 1024.0, "MiB", 25.0);
    Ok(())
}

/// What could be seen of one `wiggum run` from outside.
struct Watched {
    /// Until the first iteration was recorded.
    start: Duration,
    /// From there to the end of the run.
    iterations: Duration,
    /// Of the program itself, in the same span.
    processor: Duration,
    memory_kib: f64,
}

/// Follows the journal that the program prints, looking at the process at each event.
fn watch(place: &Place, iterations: usize, sandbox: &str) -> Outcome<Watched> {
    let started = Instant::now();
    let mut child = place.wiggum_run(iterations, sandbox).stdout(Stdio::piped()).spawn()?;
    let mut first: Option<(Instant, Duration)> = None;
    let mut last: Option<(Instant, Duration)> = None;
    let mut memory_kib = 0.0;
    let stdout = child.stdout.take().ok_or("no output")?;
    for line in BufReader::new(stdout).lines() {
        let line = line?;
        memory_kib = peak_memory(child.id()).unwrap_or(memory_kib);
        if first.is_none() && line.contains("\"type\":\"iteration_started\"") {
            first = Some((Instant::now(), processor_time(child.id())?));
        }
        if line.contains("\"type\":\"run_ended\"") {
            last = Some((Instant::now(), processor_time(child.id())?));
        }
    }
    let status = child.wait()?;
    // All done, or as many iterations as were wanted.
    if !matches!(status.code(), Some(0 | 3)) {
        return Err(format!("wiggum run: {status}").into());
    }
    let (Some(first), Some(last)) = (first, last) else { return Err("no run was seen".into()) };
    let (start, iterations, processor) = (first.0 - started, last.0 - first.0, last.1 - first.1);
    Ok(Watched { start, iterations, processor, memory_kib })
}

/// User and system time of a process and its threads, its children apart.
pub(crate) fn processor_time(pid: u32) -> Outcome<Duration> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let after_name = stat.rsplit_once(')').ok_or("unknown format of stat")?.1;
    let fields: Vec<&str> = after_name.split_ascii_whitespace().collect();
    let ticks = |index: usize| fields.get(index).and_then(|field| field.parse::<u64>().ok());
    let ticks = ticks(11).zip(ticks(12)).map(|(user, system)| user + system).ok_or("no times in stat")?;
    // A hundred a second, on every Linux there is.
    Ok(Duration::from_millis(ticks * 10))
}

/// Gone as soon as the process has ended.
pub(crate) fn peak_memory(pid: u32) -> Option<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

fn each(duration: Duration) -> f64 {
    millis(duration) / BLOCK as f64
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// The clock behind it ticks too slowly for a median of rounds.
fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}
