//! Many loops in one process: all of them finish, and none is much of a burden.
#![cfg(target_os = "linux")]

use std::fs;
use std::time::Duration;

use wiggum_sim::{Crowd, crowd};

const LOOPS: usize = 100;

#[test]
fn a_hundred_loops_at_once_all_finish_in_little_memory() {
    let place = tempfile::tempdir().unwrap();
    let done = crowd(LOOPS, 3, Duration::from_millis(300), place.path()).unwrap();
    assert_eq!(done, Crowd { finished: LOOPS, iterations: 3 * LOOPS as u64 });
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kib: usize = peak.trim().trim_end_matches(" kB").parse().unwrap();
    // Without optimisation, and the program itself included; a thousand are measured by the benches.
    assert!(kib < LOOPS * 800, "{kib} KiB for {LOOPS} loops");
}
