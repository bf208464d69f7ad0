//! Many worlds, on as many threads as are worth it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;

use crate::trial::{Trial, simulate};
use crate::world::Setup;

/// Simulates so many worlds, those of the seeds from the first one on, and tells of each as it ends.
pub fn simulate_many(
    first: u64,
    loops: u64,
    setup: &Setup,
    threads: usize,
    mut told: impl FnMut(Trial),
) -> io::Result<()> {
    let next = AtomicU64::new(0);
    let (sender, trials) = mpsc::sync_channel(64);
    thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            let (sender, next) = (sender.clone(), &next);
            scope.spawn(move || {
                let place = match tempfile::Builder::new().prefix("wiggum-sim-").tempdir_in(fast_place()) {
                    Ok(place) => place,
                    Err(error) => return drop(sender.send(Err(error))),
                };
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= loops
                        || sender.send(one(first.wrapping_add(number), setup, place.path())).is_err()
                    {
                        return;
                    }
                }
            });
        }
        drop(sender);
        trials.iter().try_for_each(|trial| trial.map(&mut told))
    })
}

/// One world in a directory below this one, which is gone afterwards.
fn one(seed: u64, setup: &Setup, place: &Path) -> io::Result<Trial> {
    let directory = tempfile::tempdir_in(place)?;
    simulate(seed, setup, directory.path(), false)
}

/// Memory, where it can be used as a directory: no simulated world has to survive this machine.
pub fn fast_place() -> PathBuf {
    let memory = Path::new("/dev/shm");
    let usable = memory.is_dir() && tempfile::tempfile_in(memory).is_ok();
    if usable { memory.to_owned() } else { std::env::temp_dir() }
}
