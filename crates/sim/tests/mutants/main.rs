//! Every rule of the checker can fail: each is broken on purpose, and notices.
//!
//! Most rules are broken in simulated worlds. What only happens in a repository is broken over a real one
//! (`repository.rs`), by the same engine with a scripted agent.

mod repository;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use wiggum_core::checker::Rule;
use wiggum_core::mutant::{Mutant, plant};
use wiggum_sim::{Setup, fast_place, simulate};

/// Worlds in which a broken rule has to show. Most show within ten; one that needs a crash in the middle of a
/// call, and a person who then says the right thing, took 1089.
const WORLDS: u64 = 4000;

/// What threads are called on which rules are broken.
const MUTANT: &str = "mutant";

/// What no checker ever sees: the store refuses to write it, or the engine gets nowhere.
const NEVER_WRITTEN: [Mutant; 3] = [Mutant::SeqStandsStill, Mutant::StaleEpoch, Mutant::NeverEnds];

thread_local! {
    /// How the last panic of this thread is told, should it matter.
    static LAST_PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

#[test]
fn every_rule_notices_its_mutants() {
    // What mutants do to the engine is not for people to read, unless the test itself breaks by it.
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if thread::current().name() == Some(MUTANT) {
            LAST_PANIC.set(panic.to_string());
        } else {
            usual(panic);
        }
    }));
    let (next, told) = (AtomicUsize::new(0), Mutex::new((Vec::new(), Vec::new())));
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(2, usize::from).min(4) {
            let worker = || {
                while let Some(mutant) = Mutant::ALL.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let result = catch_unwind(AssertUnwindSafe(|| try_out(*mutant)))
                        .unwrap_or_else(|_| Err(format!("{mutant:?}: {}", LAST_PANIC.take())));
                    let mut told = told.lock().expect("nobody panics with it");
                    match result {
                        Ok(line) => told.0.push(line),
                        Err(line) => told.1.push(line),
                    }
                }
            };
            thread::Builder::new().name(MUTANT.to_owned()).spawn_scoped(scope, worker).expect("a thread");
        }
    });
    let (mut caught, missed) = told.into_inner().expect("nobody panics with it");
    caught.sort();
    println!("{}", caught.join("\n"));
    assert!(missed.is_empty(), "not noticed:\n{}", missed.join("\n"));
}

/// The rules that this mutant has to be noticed by.
fn rules_of(mutant: Mutant) -> BTreeSet<Rule> {
    Rule::ALL.iter().copied().filter(|rule| rule.mutants().contains(&mutant)).collect()
}

/// In which worlds it was noticed, or what was not.
fn try_out(mutant: Mutant) -> Result<String, String> {
    let mut wanted = rules_of(mutant);
    if wanted.is_empty() && !NEVER_WRITTEN.contains(&mutant) {
        return Err(format!("{mutant:?} breaks no rule that names it"));
    }
    let mut line = format!("{mutant:?}:");
    for broken in repository::broken_by(mutant) {
        if wanted.remove(&broken) {
            line += &format!(" {broken:?} (repository)");
        }
    }
    for seed in 0..WORLDS {
        if wanted.is_empty() && !NEVER_WRITTEN.contains(&mutant) {
            break;
        }
        let place = tempfile::tempdir_in(fast_place()).expect("a place for a world");
        plant(Some(mutant));
        let trial = simulate(seed, &Setup::default(), place.path(), false).expect("a world");
        if wanted.is_empty() && !trial.violations.is_empty() {
            return Ok(format!("{line} never written (seed {seed})"));
        }
        for broken in trial.broken {
            if wanted.remove(&broken) {
                line += &format!(" {broken:?} (seed {seed})");
            }
        }
    }
    if wanted.is_empty() && !NEVER_WRITTEN.contains(&mutant) {
        Ok(line)
    } else {
        Err(format!("{mutant:?}: not by {wanted:?} in {WORLDS} worlds"))
    }
}
