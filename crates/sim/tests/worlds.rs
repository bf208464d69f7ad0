//! Thousands of worlds in which everything goes wrong, and nothing is lost.

use wiggum_sim::{Setup, Trial, simulate_many};

fn threads() -> usize {
    std::thread::available_parallelism().map_or(2, usize::from)
}

#[test]
fn nothing_is_lost_whatever_happens() {
    let mut bad = Vec::new();
    let loops: u64 = std::env::var("WIGGUM_WORLDS").ok().and_then(|n| n.parse().ok()).unwrap_or(300);
    let mut all: Vec<Trial> = Vec::new();
    let started = std::time::Instant::now();
    simulate_many(0, loops, &Setup::default(), threads(), |trial| {
        if !trial.violations.is_empty() {
            bad.push((trial.seed, trial.violations.clone()));
        }
        all.push(trial);
    })
    .unwrap();
    println!("{:?}", started.elapsed());
    bad.sort();
    for (seed, v) in bad.iter().take(25) {
        println!("{seed}: {v:?}");
    }
    let mut reasons = std::collections::BTreeMap::new();
    for t in &all {
        *reasons.entry(format!("{:?}", t.reason)).or_insert(0) += 1;
    }
    println!(
        "{reasons:?} iterations {} crashes {} engines {} events {}",
        all.iter().map(|t| t.iterations).sum::<u32>(),
        all.iter().map(|t| t.crashes).sum::<u32>(),
        all.iter().map(|t| t.engines).sum::<u32>(),
        all.iter().map(|t| t.events).sum::<u64>()
    );
    assert!(bad.is_empty(), "{} of {loops}", bad.len());
}
