//! Many agents at once: what it costs to supervise two hundred processes that do next to nothing.

use std::sync::mpsc::{Sender, channel};
use std::time::Instant;

use wiggum_workspace::process::{self, CommandLine, Ended, Launch, Sink, Stream};

use crate::Outcome;
use crate::iteration::{peak_memory, processor_time};
use crate::table::Table;

const AGENTS: usize = 200;

struct Told(Sender<Ended>);

impl Sink for Told {
    fn output(&mut self, _stream: Stream, _bytes: &[u8]) {}

    fn ended(&mut self, ended: Ended) {
        // Whoever measures is gone only after a failure.
        let _ = self.0.send(ended);
    }
}

pub(crate) fn measure(table: &mut Table) -> Outcome<()> {
    let ourselves = std::process::id();
    let (sender, ends) = channel();
    let (started, busy) = (Instant::now(), processor_time(ourselves)?);
    for _ in 0..AGENTS {
        // A line a second, as agents do that are at work.
        let script = "for i in 1 2 3 4 5; do echo working; sleep 1; done";
        process::launch(Launch::new(CommandLine::new("sh", ["-c", script]), "/"), Told(sender.clone()))?;
    }
    for _ in 0..AGENTS {
        let ended = ends.recv()?;
        if !ended.exit.success() {
            return Err(format!("an agent ended badly: {ended:?}").into());
        }
    }
    let share = (processor_time(ourselves)? - busy).as_secs_f64() / started.elapsed().as_secs_f64() * 100.0;
    let memory = peak_memory(ourselves).ok_or("no memory figure")? / 1024.0;
    table.limited("share of one core, 200 agents supervised", share, "%", 10.0);
    table.limited("memory, 200 agents supervised", memory, "MiB", 100.0);
    Ok(())
}
