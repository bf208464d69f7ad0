//! What can be said to `wiggum simulate`.

use std::path::PathBuf;

use clap::Args;

use super::OutputArgs;

pub(crate) const EXAMPLES: &str = "\
Examples:
  wiggum simulate PRD.json --loops 500 --agents done=70,lie=10,fail=10,ask=10
  wiggum simulate --loops 10000 --seed 1 --json
  wiggum simulate --loops 1 --seed 4711 --trace

Agents do one of these with an attempt, as often as --agents weighs it: done, lie, idle, fail, odd (fails
in another way every time), ask, limit, overload, truncated, hang, slow, meddle (writes statuses into the
backlog), chatter (talks and does nothing), build (waits for hours). Faults are crash, hang, lie, limit, slow-disk, full-disk, lost-answer and clock-jump.";

#[derive(Debug, Args)]
pub(crate) struct SimulateArgs {
    /// A backlog to be sized, with the limits of your configuration [default: random ones]
    pub(crate) backlog: Option<PathBuf>,
    /// How many loops are simulated
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub(crate) loops: u64,
    /// The seed of the first; the others follow
    #[arg(long, value_name = "S", default_value_t = 0)]
    pub(crate) seed: u64,
    /// What may go wrong: all, none, or a list [default: all; for a backlog of yours hang,lie,limit]
    #[arg(long, value_name = "LIST")]
    pub(crate) faults: Option<String>,
    /// How often agents do what, as in done=80,lie=10,ask=10 [default: a bit of everything]
    #[arg(long, value_name = "WEIGHTS")]
    pub(crate) agents: Option<String>,
    /// How many tasks a random backlog has [default: up to 11]
    #[arg(long, value_name = "N", conflicts_with = "backlog")]
    pub(crate) tasks: Option<usize>,
    /// Threads to use [default: one for each processor]
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<usize>,
    /// Print what happens in every world, moment by moment
    #[arg(long, conflicts_with = "json")]
    pub(crate) trace: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
