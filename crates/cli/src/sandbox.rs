//! Which sandbox is put around agents: what was asked for, as far as this system has it.

use std::path::{Path, PathBuf};

use wiggum_engine::Sandbox;
use wiggum_engine::error::chain;
use wiggum_workspace::sandbox::{self, Kind, SandboxError};

use crate::config::Config;
use crate::failure::Failure;

/// What can be asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Choice {
    /// The first that works.
    #[default]
    Auto,
    Landlock,
    Bwrap,
    None,
}

impl Choice {
    pub(crate) const WORDS: &[&str] = &["auto", "bwrap", "landlock", "none"];

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Landlock => "landlock",
            Self::Bwrap => "bwrap",
            Self::None => "none",
        }
    }

    pub(crate) fn from_word(word: &str) -> Self {
        match word {
            "auto" => Self::Auto,
            "landlock" => Self::Landlock,
            "bwrap" => Self::Bwrap,
            "none" => Self::None,
            other => unreachable!("not a word of the table: {other}"),
        }
    }
}

const UNCONFINED: &str = "agents can write wherever you can";

/// What is in force for this configuration.
pub(crate) fn sandbox(workspace: &Path, config: &Config) -> Result<Sandbox, Failure> {
    let (kind, says) = match config.agent.sandbox {
        Choice::Auto => automatic(),
        Choice::Landlock => {
            let kind = sandbox::landlock().map_err(|error| refused("landlock", &error))?;
            (Some(kind.clone()), confined(&kind))
        }
        Choice::Bwrap => {
            let kind = sandbox::bwrap().map_err(|error| refused("bwrap", &error))?;
            (Some(kind.clone()), confined(&kind))
        }
        Choice::None => (None, format!("none, as configured: {UNCONFINED}")),
    };
    let writable = config.agent.writable.iter().map(|written| place(workspace, written)).collect();
    let git = match &kind {
        Some(Kind::Bwrap { .. }) => sandbox::landlock().ok().or_else(|| kind.clone()),
        Some(Kind::Landlock(_)) | None => kind.clone(),
    };
    Ok(Sandbox { kind, git, says, writable })
}

/// Landlock asks nothing of the system but its kernel, so it comes first.
fn automatic() -> (Option<Kind>, String) {
    let landlock = match sandbox::landlock() {
        Ok(kind) => return (Some(kind.clone()), confined(&kind)),
        Err(error) => error,
    };
    match sandbox::bwrap() {
        Ok(kind) => (Some(kind.clone()), confined(&kind)),
        Err(bwrap) => (None, format!("none, {UNCONFINED}: {landlock}, and {bwrap}")),
    }
}

fn confined(kind: &Kind) -> String {
    format!("{kind}: agents write in this workspace, their own directories, caches and temporary files only")
}

fn refused(what: &str, error: &SandboxError) -> Failure {
    Failure::usage(format!("the sandbox `{what}` cannot be used: {}", chain(error)))
        .hint("--sandbox auto takes the best that is there; --sandbox none does without")
}

/// `~/` is left for whoever knows the home directory; anything relative is so to the workspace.
fn place(workspace: &Path, written: &str) -> PathBuf {
    if written.starts_with("~/") { written.into() } else { workspace.join(written) }
}
