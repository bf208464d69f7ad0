//! Thousands of worlds in which everything goes wrong, and nothing is lost.

use std::collections::BTreeSet;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use wiggum_core::event::{EndReason, Event};
use wiggum_core::health::Health;
use wiggum_core::policy::Policy;
use wiggum_sim::{Act, Fault, Given, Mix, Setup, Trial, fast_place, simulate, simulate_many};

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

/// What was done before the loop began is nobody's mistake.
#[test]
fn a_backlog_that_is_partly_done_breaks_no_rule() {
    let backlog = "- [x] T1 one\n- [ ] T2 two\n- [x] T3 three\n- [ ] T4 four (skipped)\n- [ ] T5 five\n";
    let given =
        Given { backlog_name: "TODO.md".to_owned(), backlog: backlog.to_owned(), policy: Policy::default() };
    let agents = Mix::parse("done=1").unwrap();
    let setup = Setup { faults: Vec::new(), agents, given: Some(given), ..Setup::default() };
    let trials = worlds(0, 100, &setup);
    assert_sound(&trials);
    assert!(trials.iter().any(|trial| trial.done > 2), "nothing was done in any world");
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

/// What became of the health of the agents in some worlds.
fn healths(trials: &[Trial]) -> BTreeSet<Health> {
    let events = trials.iter().flat_map(|trial| &trial.journal).map(|envelope| &envelope.event);
    let health = |event: &Event| match event {
        Event::HealthChanged { health, .. } => Some(*health),
        _ => None,
    };
    events.filter_map(health).collect()
}

#[test]
fn an_agent_that_chatters_for_hours_is_ended_and_one_that_waits_for_a_build_is_not() {
    let with = |agents: &str, faults: Vec<Fault>| {
        let agents = Mix::parse(agents).unwrap();
        let setup = Setup { faults, agents, tasks: Some(3), ..Setup::default() };
        let one = |seed| {
            let place = tempfile::tempdir_in(fast_place()).unwrap();
            simulate(seed, &setup, place.path(), true).unwrap()
        };
        let trials: Vec<Trial> = (20_000..20_040).map(one).collect();
        assert_sound(&trials);
        trials
    };
    let chatter = with("chatter=1", vec![Fault::Hang]);
    assert!(healths(&chatter).contains(&Health::Terminated), "{:?}", healths(&chatter));
    assert!(chatter.iter().any(|trial| trial.reason == Some(EndReason::HealthFailure)));
    let build = with("build=1", Vec::new());
    assert!(!healths(&build).contains(&Health::Stuck), "{:?}", healths(&build));
    assert!(build.iter().any(|trial| trial.done == 3 && trial.active > Duration::from_secs(3600)));
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
    assert_eq!(Act::ALL.len(), 14);
}
