//! The terminal interface to wiggum's loops.
//!
//! A surface like the others: it asks at the [`wiggum_engine::desk`] and leaves requests there. It reads the
//! journal and nothing of the engine, so that no terminal, however slow, stuck or gone, is in a loop's way.
//! `model` is what is shown, `app` what somebody does to it, `view` how it is drawn, all of them pure;
//! `follow` and `desk` read and do, and `terminal` has the screen and the keys.
//!
//! Absent on purpose: starting programs, and any way to a loop beside the desk.

mod app;
mod desk;
mod follow;
mod keys;
mod mirror;
mod model;
mod terminal;
mod text;
mod view;

use std::io;
use std::path::PathBuf;

pub use mirror::Mirror;
use wiggum_core::event::EndReason;
use wiggum_engine::checkout::Checkout;
use wiggum_store::LoopRecord;

/// What is to be shown, and to whom.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Where it was started.
    pub checkout: Checkout,
    /// The loop to look at first, and where it is.
    pub target: Option<(Checkout, LoopRecord)>,
    /// Where the loops of this machine are entered.
    pub registry: Option<PathBuf>,
    /// In whose name something is done.
    pub by: String,
    pub colour: bool,
}

/// How somebody left.
#[derive(Clone, Debug, Default)]
pub struct Left {
    /// The loop that was looked at last.
    pub name: Option<String>,
    pub workspace: Option<PathBuf>,
    /// Does it go on?
    pub running: bool,
    /// How its run ended, if it did.
    pub ended: Option<EndReason>,
}

#[derive(Debug, thiserror::Error)]
pub enum TuiError {
    #[error("the terminal does not answer")]
    Terminal(#[source] io::Error),
}

/// Shows the interface until somebody leaves it. The loops go on as they are.
pub fn run(setup: Setup) -> Result<Left, TuiError> {
    terminal::run(setup)
}
