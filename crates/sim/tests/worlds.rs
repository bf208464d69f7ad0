//! Thousands of worlds in which everything goes wrong, and nothing is lost.

use std::collections::BTreeSet;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use wiggum_sim::{Act, Fault, Mix, Setup, Trial, fast_place, simulate, simulate_many};

fn threads() -> usize {
    available_parallelism().map_or(2, usize::from)
}

/// Worlds of consecutive seeds until there are enough of them, or time is up on a slow machine.
fn worlds(first: u64, most: u64, setup: &Setup) -> Vec<Trial> {
    const PORTION: u64 = 100;
    let started = Instant::now();
    let mut trials = Vec::new();
    for first in (first..first + most).step_by(PORTION as usize) {
        simulate_many(first, PORTION, setup, threads(), |trial| trials.push(trial)).expect("worlds");
        if started.elapsed() > Duration::from_secs(60) {
            break;
        }
    }
    trials
}

fn assert_sound(trials: &[Trial]) {
    let mut bad: Vec<String> = trials
        .iter()
        .filter(|trial| !trial.violations.is_empty())
        .map(|trial| {
            let replay = format!("wiggum simulate --loops 1 --seed {} --trace", trial.seed);
            format!("{}\n  again: {replay}", trial.violations.join("\n"))
        })
        .collect();
    bad.truncate(20);
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}

#[test]
fn nothing_is_lost_whatever_happens() {
    let trials = worlds(0, 3000, &Setup::default());
    println!("{} worlds", trials.len());
    assert_sound(&trials);
    // They prove something only if much of what can happen did.
    let crashes: u32 = trials.iter().map(|trial| trial.crashes).sum();
    assert!(crashes as usize > trials.len(), "{crashes} crashes in {} worlds", trials.len());
    let ends: BTreeSet<&str> =
        trials.iter().map(|trial| trial.reason.map_or("waiting", |reason| reason.name())).collect();
    for end in ["goal_achieved", "person_needed", "consecutive_errors", "explicit_stop", "waiting"] {
        assert!(ends.contains(end), "no world ended with {end}: {ends:?}");
    }
}

#[test]
fn where_nothing_goes_wrong_everything_gets_done() {
    let agents = Mix::parse("done=1").unwrap();
    let setup = Setup { faults: Vec::new(), agents, tasks: Some(6), ..Setup::default() };
    let trials = worlds(10_000, 100, &setup);
    assert_sound(&trials);
    let done = trials.iter().filter(|trial| trial.done == trial.tasks && trial.iterations >= 6).count();
    // People may stop the loop or leave a task out even so.
    assert!(done > 60, "{done} of {}", trials.len());
}

#[test]
fn a_seed_gives_the_same_world_every_time() {
    let once = |seed| {
        let place = tempfile::tempdir_in(fast_place()).unwrap();
        let trial = simulate(seed, &Setup::default(), place.path(), true).unwrap();
        (
            trial.events,
            trial.iterations,
            trial.crashes,
            trial.cost,
            trial.reason,
            trial.active,
            trial.trace.len(),
        )
    };
    for seed in 500..530 {
        assert_eq!(once(seed), once(seed), "seed {seed}");
    }
}

#[test]
fn mixes_and_faults_are_read_as_they_are_written() {
    let mix = Mix::parse("done=80,lie=10,ask=10").unwrap();
    assert_eq!(Mix::parse(&mix.to_string()), Ok(mix));
    assert!(Mix::parse("done=0").is_err());
    assert!(Mix::parse("dance=1").unwrap_err().contains("dance"));
    assert_eq!(Fault::parse_list("crash,full-disk"), Ok(vec![Fault::Crash, Fault::FullDisk]));
    assert_eq!(Fault::parse_list("none"), Ok(Vec::new()));
    assert!(Fault::parse_list("flood").unwrap_err().contains("flood"));
    assert_eq!(Act::ALL.len(), 12);
}
