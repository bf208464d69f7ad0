//! What can be said to `wiggum notify`.

use clap::{Args, Subcommand};

use super::OutputArgs;

pub(crate) const EXAMPLES: &str = "\
Examples:
  wiggum notify test              send a test to everybody who is configured
  wiggum notify test telegram     to one of them
  wiggum notify status            who was told how much, what waits, what was given up
  wiggum notify deliver           send what is left now, for cron; exit code 1 if something stays behind

Receivers are entries [[notify]] of wiggum.toml or of ~/.config/wiggum/config.toml:
  [[notify]]
  kind = \"ntfy\"
  url = \"https://ntfy.sh/my-topic\"
  on = [\"escalation\", \"failure\"]

See docs/notifications.md for all of them.";

#[derive(Debug, Subcommand)]
pub(crate) enum NotifyCommand {
    /// Who is told, how, and of what
    List(OutputArgs),
    /// Send a test message now
    ///
    /// Exit code 1 if somebody could not be reached.
    Test(NotifyWhich),
    /// How far everybody has been told, and what was given up
    Status(NotifyStatus),
    /// Send what is left now, each message once, without waiting for its next turn
    ///
    /// `wiggum run`, `wiggum serve` and `wiggum vault` do it by themselves. Exit code 1 if something stays behind.
    Deliver(NotifyWhich),
}

#[derive(Debug, Args)]
pub(crate) struct NotifyStatus {
    /// Forget what was given up, once you have seen it
    #[arg(long)]
    pub(crate) clear: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct NotifyWhich {
    /// Only this receiver
    pub(crate) name: Option<String>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
