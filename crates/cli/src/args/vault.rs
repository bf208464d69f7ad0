//! What can be said to `wiggum vault`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::OutputArgs;

pub(crate) const EXAMPLES: &str = "\
Examples:
  wiggum vault init ~/Vault       make the folders and a sample plan
  wiggum vault watch ~/Vault      carry out plans as they are moved to Approved/Plans
  wiggum vault run ~/Vault        the same once, for cron; exit code 6 if a plan waits for a person, 2 if one
                                  could not be read or started

A plan is approved by moving its file to Approved/Plans. What it needs to know it asks in Needs_Action:
tick a box to answer. See docs/vault.md.";

#[derive(Debug, Subcommand)]
pub(crate) enum VaultCommand {
    /// Make the folders of a vault and a sample plan; nothing that is there is changed
    Init(VaultArgs),
    /// Carry out approved plans, and those that come, until it is interrupted
    ///
    /// Says at the start what it watches and what it found there. A directory without the folders of a vault is
    /// refused.
    Watch(VaultArgs),
    /// Carry out what is approved now, then end
    ///
    /// Exit code 6 if a plan waits for a person. Plans that cannot be read or started keep no other from being
    /// carried out; they are named at the end, and the exit code is 2.
    Run(VaultArgs),
    /// The approved plans, and how each of them stands
    Status(VaultArgs),
}

#[derive(Debug, Args)]
pub(crate) struct VaultArgs {
    /// The vault
    pub(crate) dir: PathBuf,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
