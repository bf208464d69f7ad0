//! Every rule that is broken on purpose is noticed by the simulator.

use wiggum_core::mutant::{Mutant, plant};
use wiggum_sim::{Setup, fast_place, simulate};

/// Worlds in which a broken rule has to show; most show within ten.
const WORLDS: u64 = 1000;

#[test]
fn every_mutant_is_caught() {
    // What mutants do to the engine is not for people to read.
    std::panic::set_hook(Box::new(|_| {}));
    let (mut caught, mut missed) = (Vec::new(), Vec::new());
    for mutant in Mutant::ALL {
        match first_violation(*mutant) {
            Some((seed, violation)) => caught.push(format!("{mutant:?}: seed {seed}: {violation}")),
            None => missed.push(mutant),
        }
    }
    drop(std::panic::take_hook());
    println!("{}", caught.join("\n"));
    assert!(missed.is_empty(), "not noticed in {WORLDS} worlds: {missed:?}");
}

fn first_violation(mutant: Mutant) -> Option<(u64, String)> {
    (0..WORLDS).find_map(|seed| {
        let place = tempfile::tempdir_in(fast_place()).expect("a place for a world");
        plant(Some(mutant));
        let trial = simulate(seed, &Setup::default(), place.path(), false).expect("a world");
        trial.violations.into_iter().next().map(|violation| (seed, violation))
    })
}
