//! Agents that live in tmux panes: each has a name, is sent a task, and is prompted again until the
//! task is done or a guard ends it.
//!
//! Whether it is done is decided by the same code as for a session's stop hook; here is only what a
//! terminal needs: who lives where ([`roster`]), how to speak to tmux ([`tmux`]), when a pane is quiet
//! ([`watch`]), what its screen says ([`screen`]), and the loop over these ([`send`]).

pub(crate) mod roster;
pub(crate) mod screen;
pub(crate) mod send;
pub(crate) mod tmux;
pub(crate) mod watch;

use std::io;
use std::path::PathBuf;

use thiserror::Error;
use wiggum_workspace::process::LaunchError;

use crate::failure::Failure;
use crate::session::state::SessionError;

#[derive(Debug, Error)]
pub(crate) enum DispatchError {
    #[error("tmux is not installed")]
    NoTmux,
    #[error("cannot reach the pane")]
    Tmux(#[from] LaunchError),
    #[error("tmux refused `{command}`: {said}")]
    Refused { command: &'static str, said: String },
    #[error(
        "`{}` is no name for an agent: up to 40 letters, digits, `-` and `_` are allowed",
        crate::term::harmless(name)
    )]
    Name { name: String },
    #[error("there is no pane `{}`", crate::term::harmless(target))]
    NoPane { target: String },
    #[error("the pane {pane} belongs to an agent already")]
    Taken { pane: String },
    #[error("wiggum itself runs in the pane {pane}")]
    OwnPane { pane: String },
    #[error("the output of the pane {pane} goes to another program already")]
    Piped { pane: String },
    #[error("the program of the pane {pane} has ended")]
    Dead { pane: String },
    #[error("there is no agent `{name}`")]
    Unknown { name: String },
    #[error("the agent `{name}` is there already")]
    Exists { name: String },
    #[error("the agent `{name}` is gone: {why}")]
    Gone { name: String, why: String },
    #[error("the agent `{name}` cannot be watched: something else took over the output of its pane")]
    Unwatched { name: String },
    #[error("another `wiggum dispatch` is busy with the agent `{name}`")]
    Busy { name: String },
    #[error("the agent `{name}` has no unfinished task")]
    NoTask { name: String },
    #[error("{} is not understood", path.display())]
    Broken { path: PathBuf, source: serde_json::Error },
    #[error("cannot read or write {}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("cannot wait for the pane")]
    Wait(#[source] io::Error),
    #[error(transparent)]
    Session(#[from] SessionError),
}

impl From<DispatchError> for Failure {
    fn from(error: DispatchError) -> Self {
        let text = wiggum_engine::error::chain(&error);
        match error {
            DispatchError::NoTmux => Self::usage(text).hint("install it: `apt install tmux`, `brew install tmux`"),
            DispatchError::Tmux(_) | DispatchError::Refused { .. } => {
                Self::other(text).hint("does `tmux new-session` work in this terminal?")
            }
            DispatchError::Name { .. } => Self::usage(text),
            DispatchError::NoPane { .. } => Self::usage(text)
                .hint("`tmux list-panes -a` lists them; --socket names another server"),
            DispatchError::Taken { pane } => Self::usage(text).hint(format!(
                "`wiggum dispatch list` in its repository tells whose it is; if nobody's, `tmux set-option -pu -t {pane} @wiggum_agent`"
            )),
            DispatchError::OwnPane { .. } | DispatchError::Dead { .. } => {
                Self::usage(text).hint("name the pane of the agent: `tmux list-panes -a` lists them")
            }
            DispatchError::Piped { pane } => {
                Self::usage(text).hint(format!("`tmux pipe-pane -t {pane}` ends that"))
            }
            DispatchError::Unknown { name } => {
                Self::usage(text).hint(format!("`wiggum dispatch start {name}` starts one; `wiggum dispatch list` lists them"))
            }
            DispatchError::Exists { name } => Self::usage(text).hint(format!(
                "`wiggum dispatch send {name} TASK` gives it something to do, `wiggum dispatch stop {name}` ends it"
            )),
            DispatchError::Gone { name, .. } => Self::other(text)
                .hint(format!("`wiggum dispatch start {name}` starts it again; its task is kept: `wiggum dispatch send {name}` goes on")),
            DispatchError::Unwatched { .. } => {
                Self::other(text).hint("is there another `tmux pipe-pane`? The agent itself is left alone")
            }
            DispatchError::Busy { .. } => {
                Self::usage(text).hint("wait for it or interrupt it; the agent itself is left alone by that")
            }
            DispatchError::NoTask { name } => {
                Self::usage(text).hint(format!("say what to do: `wiggum dispatch send {name} TASK`"))
            }
            DispatchError::Broken { path, .. } => {
                Self::other(text).hint(format!("remove {} to forget that agent", path.display()))
            }
            DispatchError::File { .. } | DispatchError::Wait(_) => {
                Self::other(text).hint("check that the directory is writable and the disk is not full")
            }
            DispatchError::Session(error) => Self::from(error),
        }
    }
}
