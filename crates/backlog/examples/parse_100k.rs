//! Prints how long it takes to read a tasks.json of 100 000 tasks (about 20 MB), and to change the
//! status of one of them. On a busy machine the time on the processor is the one to look at.
#![allow(clippy::print_stdout)]

use std::time::{Duration, Instant};

use wiggum_backlog::Backlog;
use wiggum_core::task::FileStatus;

fn main() {
    let task = |n: usize| {
        let depends_on =
            if n == 0 { String::new() } else { format!("\"task-{}\", \"task-{}\"", n - 1, n / 2) };
        format!(
            "  {{\n    \"id\": \"task-{n}\",\n    \"description\": \"Task number {n} does something \\\"useful\\\" \
             and says so at some length\",\n    \"status\": \"pending\",\n    \"phase\": 1,\n    \"priority\": \
             {n},\n    \"depends_on\": [{depends_on}]\n  }}"
        )
    };
    let text = format!("[\n{}\n]\n", (0..100_000).map(task).collect::<Vec<_>>().join(",\n"));
    println!("{} bytes", text.len());
    for _ in 0..5 {
        let copy = text.clone();
        let Ok(mut backlog) = timed("parse", || Backlog::parse("tasks.json", copy)) else { return };
        let changed = timed("set_status", || backlog.set_status("task-50000", FileStatus::Done));
        assert!(changed.is_ok());
    }
}

fn timed<T>(what: &str, run: impl FnOnce() -> T) -> T {
    let (start, busy_before) = (Instant::now(), processor_time());
    let result = run();
    println!("{what}: {:?}, on the processor {:?}", start.elapsed(), processor_time() - busy_before);
    result
}

/// Linux tells how long this thread has run; elsewhere nothing does without a dependency.
fn processor_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = stat.split(' ').next().and_then(|first| first.parse().ok());
    Duration::from_nanos(nanoseconds.unwrap_or(0))
}
