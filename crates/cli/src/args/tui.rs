//! `wiggum tui`.

use clap::Args;

use super::OutputArgs;

pub(crate) const EXAMPLES: &str = "\
Examples:
  wiggum tui                         the loop that runs here, else the last; 8 shows all of this machine
  wiggum tui nightly                 the loop of that name, here or anywhere on this machine
  wiggum run --tui                   start one and look at it
  ssh -t build wiggum tui            over ssh; a lost connection ends nothing

What is where, and all keys, is in docs/tui.md.";

#[derive(Debug, Args)]
pub(crate) struct TuiArgs {
    /// The loop's name or the beginning of its id [default: the one that runs, else the last]
    #[arg(value_name = "LOOP")]
    pub(crate) which: Option<String>,
    /// How that loop is, as JSON, instead of the interface
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
