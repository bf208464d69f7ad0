//! The figures of docs/performance.md, measured: `cargo xtask bench [NAME…]`.
//!
//! Other people use this machine too, so what counts is the ratio to a floor done by hand in the
//! same run, in turns, and the median of several rounds.
#![expect(clippy::print_stdout, reason = "its output is its purpose")]
#![allow(
    clippy::disallowed_methods,
    reason = "starts programs to measure them, and no engine to keep a clock"
)]

mod admit;
mod checkpoint;
mod crowd;
mod floor;
mod fold;
mod instructions;
mod iteration;
mod journal;
mod page;
mod parse;
mod place;
mod start;
mod supervise;
mod table;
mod terminal;
mod trace;
mod vault;

use std::error::Error;
use std::time::Duration;

use table::Table;

type Outcome<T> = Result<T, Box<dyn Error>>;

type Measure = fn(&mut Table) -> Outcome<()>;

const FIGURES: [(&str, Measure); 22] = [
    // First, since its memory is the most that this process ever held.
    ("supervise", supervise::measure),
    ("iteration", iteration::wall),
    ("confined", iteration::confined),
    ("memory", iteration::memory),
    ("trace", trace::measure),
    ("instructions", instructions::measure),
    ("version", start::version),
    ("hook", start::hook),
    ("status", start::status),
    ("checkpoint", checkpoint::measure),
    ("fold", fold::fold),
    ("schedule", fold::schedule),
    ("admit", admit::measure),
    ("parse", parse::measure),
    ("crowd", crowd::measure),
    ("plan", vault::steps),
    ("watch", vault::watch),
    ("paint", page::paint),
    ("screen", page::screen),
    ("pages", page::pages),
    ("weight", page::weight),
    ("terminal", terminal::measure),
];

fn main() -> Outcome<()> {
    // Cargo adds `--bench` of its own.
    let wanted: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    if let Some(unknown) = wanted.iter().find(|name| FIGURES.iter().all(|(known, _)| known != name)) {
        let known: Vec<&str> = FIGURES.iter().map(|(name, _)| *name).collect();
        return Err(format!("no figure `{unknown}`; there are {}", known.join(", ")).into());
    }
    let mut table = Table::default();
    for (name, measure) in FIGURES {
        if wanted.is_empty() || wanted.iter().any(|word| word == name) {
            println!("measuring {name} …");
            measure(&mut table)?;
        }
    }
    println!("\n{table}");
    Ok(())
}

/// The middle of several measurements; half of an even pair's gap does not matter here.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// How long this thread has been on a processor: what others do on a busy machine does not count.
fn busy() -> Outcome<Duration> {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanoseconds = stat.split(' ').next().ok_or("unknown format of schedstat")?.parse()?;
    Ok(Duration::from_nanos(nanoseconds))
}
