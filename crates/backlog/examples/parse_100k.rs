//! Prints how long it takes to read a tasks.json of 100 000 tasks (about 20 MB), and to change the
//! status of one of them.
#![allow(clippy::print_stdout)]

use std::time::Instant;

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
        let start = Instant::now();
        let Ok(mut backlog) = Backlog::parse("tasks.json", copy) else { return };
        println!("parse: {} ms", start.elapsed().as_millis());
        let start = Instant::now();
        let changed = backlog.set_status("task-50000", FileStatus::Done);
        println!("set_status: {} µs ({changed:?})", start.elapsed().as_micros());
    }
}
