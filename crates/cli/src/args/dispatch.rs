//! What can be said to `wiggum dispatch`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{OutputArgs, TaskGuards};

#[derive(Debug, Subcommand)]
pub(crate) enum DispatchCommand {
    /// Start an agent in a tmux window of its own
    #[command(after_help = "Examples:\n  wiggum dispatch start api --agent claude\n  \
                            wiggum dispatch start web --command 'codex --full-auto' --dir ../web")]
    Start(DispatchStart),
    /// Give a name to an agent that lives in a tmux pane already
    #[command(after_help = "Examples:\n  wiggum dispatch adopt api --pane %3\n  \
                            wiggum dispatch adopt web --pane work:2.1 --dir ../web\n\n\
                            `tmux list-panes -a` lists the panes.")]
    Adopt(DispatchAdopt),
    /// Give an agent a task and prompt it again until the task is done
    ///
    /// Exit codes: 0 done, 2 usage, 3 iteration limit, 6 a person is needed, 7 a guard ended it,
    /// 8 stopped by request, 1 the agent is gone, 130 interrupted (the agent is left alone).
    #[command(
        after_help = "Examples:\n  wiggum dispatch send api \"make the tests pass\" --verify 'cargo test'\n  \
                            wiggum dispatch send api      # go on with its unfinished task"
    )]
    Send(Box<DispatchSend>),
    /// The agents, what they do and how far they are
    List(OutputArgs),
    /// End an agent's program and everything it started; one that was adopted is only let go
    Stop {
        /// The agent's name
        name: String,
    },
    /// Print the tmux command that shows an agent
    Attach {
        /// The agent's name
        name: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct DispatchStart {
    /// A name of your choice: letters, digits, `-` and `_`
    pub(crate) name: String,
    /// The agent: claude, codex, gemini, copilot, opencode, aider, amp, or one of wiggum.toml
    #[arg(long, value_name = "NAME", conflicts_with = "command")]
    pub(crate) agent: Option<String>,
    /// Any other interactive command
    #[arg(long, value_name = "COMMAND", required_unless_present = "agent")]
    pub(crate) command: Option<String>,
    /// Where it works [default: this repository]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// The tmux session that gets the window
    #[arg(long, value_name = "SESSION", default_value = "wiggum")]
    pub(crate) tmux: String,
    /// The socket of another tmux server than your usual one
    #[arg(long, value_name = "PATH")]
    pub(crate) socket: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct DispatchAdopt {
    /// A name of your choice: letters, digits, `-` and `_`
    pub(crate) name: String,
    /// The pane, as tmux calls it: `%3`, or `session:window.pane`
    #[arg(long, value_name = "PANE")]
    pub(crate) pane: String,
    /// Where it works [default: where the pane is]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// The socket of another tmux server than your usual one
    #[arg(long, value_name = "PATH")]
    pub(crate) socket: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct DispatchSend {
    /// The agent's name
    pub(crate) name: String,
    /// What to do [default: its unfinished task]
    pub(crate) task: Option<String>,
    #[command(flatten)]
    pub(crate) guards: TaskGuards,
    /// How long the pane must be silent before the agent counts as having stopped
    #[arg(long, value_name = "TIME", default_value = "5s")]
    pub(crate) quiet_after: String,
    /// Words on the screen of an agent at work, should its spinner be mistaken for a clock; may be
    /// given several times
    #[arg(long, value_name = "TEXT")]
    pub(crate) busy: Vec<String>,
}
