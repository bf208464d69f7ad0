//! What a loop costs when it is one of a thousand in the same process.

use std::fs;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::Outcome;
use crate::iteration::{peak_memory, processor_time};
use crate::table::Table;

const LOOPS: usize = 1000;
const TASKS: usize = 5;
/// Long enough that all of them are at work at the same time.
const AGENT: Duration = Duration::from_secs(5);
const ALONE: usize = 60;

pub(crate) fn measure(table: &mut Table) -> Outcome<()> {
    allow_files()?;
    // The very same loops, one after the other: each begins, works and ends.
    let alone = (0..ALONE).map(|_| per_iteration(1, TASKS, Duration::ZERO)).collect::<Outcome<Vec<f64>>>()?;
    let alone = alone.iter().sum::<f64>() / ALONE as f64;
    // From here on the peak counts anew.
    fs::write("/proc/self/clear_refs", "5")?;
    let together = per_iteration(LOOPS, TASKS, AGENT)?;
    let memory = peak_memory(std::process::id()).ok_or("no memory figure")? / 1024.0;
    table.limited("1 000 loops at once: CPU per iteration, of one loop alone", together / alone, "×", 2.0);
    table.limited("1 000 loops at once: most memory", memory, "MiB", 300.0);
    table.told("1 000 loops at once: CPU per iteration", together * 1e3, "ms");
    Ok(())
}

/// Processor seconds of this process for one iteration.
fn per_iteration(loops: usize, tasks: usize, agent: Duration) -> Outcome<f64> {
    let place = tempfile::tempdir()?;
    let (ourselves, before) = (std::process::id(), processor_time(std::process::id())?);
    let crowd = wiggum_sim::crowd(loops, tasks, agent, place.path())?;
    let spent = (processor_time(ourselves)? - before).as_secs_f64();
    if crowd.finished != loops || crowd.iterations != (loops * tasks) as u64 {
        return Err(format!("not all finished: {crowd:?}").into());
    }
    Ok(spent / crowd.iterations as f64)
}

/// Each loop has its database and its locks open.
fn allow_files() -> Outcome<()> {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum })?;
    Ok(())
}
