//! Which sandbox is put around agents: what was asked for, as far as this system has it.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use wiggum_engine::error::chain;
use wiggum_engine::{OfChecks, Sandbox};
use wiggum_workspace::sandbox::{self, Kind, SandboxError};

use crate::config::{AgentConfig, Config};
use crate::failure::Failure;

/// What can be asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
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

/// All that is configured of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Wanted {
    choice: Choice,
    writable: Vec<String>,
    /// Of what is hidden otherwise.
    seen: Vec<String>,
    checks: OfChecks,
}

impl Wanted {
    pub(crate) fn of(config: &Config) -> Self {
        let mut checks = config.checks.clone();
        // What an agent may have is no secret to the tests that it writes.
        checks.pass_env.extend(config.agent.pass_env.iter().cloned());
        let AgentConfig { sandbox: choice, writable, readable, sockets, .. } = &config.agent;
        let seen = [readable.as_slice(), sockets].concat();
        Self { choice: *choice, writable: writable.clone(), seen, checks }
    }
}

/// What is in force for this configuration.
pub(crate) fn sandbox(workspace: &Path, config: &Config) -> Result<Sandbox, Failure> {
    let sandbox = in_force(workspace, &Wanted::of(config))?;
    Ok(Sandbox { copies_packages: true, ..sandbox })
}

pub(crate) fn in_force(workspace: &Path, wanted: &Wanted) -> Result<Sandbox, Failure> {
    let (kind, says) = match wanted.choice {
        Choice::Auto => automatic(),
        Choice::Landlock => {
            let kind = sandbox::landlock().map_err(|error| refused("landlock", &error))?;
            (Some(kind.clone()), confined(&kind))
        }
        Choice::Bwrap => {
            let kind = sandbox::bwrap().map_err(|error| refused("bwrap", &error))?;
            (Some(kind.clone()), confined(&kind))
        }
        Choice::None => (None, format!("{}{}: {UNCONFINED}", Sandbox::NONE, Sandbox::AS_CONFIGURED)),
    };
    let places = |all: &[String]| all.iter().map(|written| place(workspace, written)).collect();
    let (writable, seen) = (places(&wanted.writable), places(&wanted.seen));
    let git = match &kind {
        Some(Kind::Bwrap { .. }) => sandbox::landlock().ok().or_else(|| kind.clone()),
        Some(Kind::Landlock(_)) | None => kind.clone(),
    };
    let checks = wanted.checks.clone();
    let says = match &kind {
        Some(kind) => says + &about_checks(&checks) + gaps(kind),
        None => says,
    };
    Ok(Sandbox { kind, git, says, writable, seen, checks, copies_packages: false })
}

fn about_checks(checks: &OfChecks) -> String {
    let except: Vec<String> = checks.except.iter().map(|command| format!("`{command}`")).collect();
    match (checks.unconfined, except.is_empty()) {
        (true, _) => "; checks are not confined, as configured".to_owned(),
        (false, true) => "; so do checks".to_owned(),
        (false, false) => format!("; so do checks, except for {}, as configured", except.join(", ")),
    }
}

/// The one that holds more comes first.
fn automatic() -> (Option<Kind>, String) {
    let bwrap = match sandbox::bwrap() {
        Ok(kind) => return (Some(kind.clone()), confined(&kind)),
        Err(error) => error,
    };
    match sandbox::landlock() {
        Ok(kind) => (Some(kind.clone()), confined(&kind)),
        Err(landlock) => (None, format!("{}, {UNCONFINED}: {bwrap}, and {landlock}", Sandbox::NONE)),
    }
}

/// What a sandbox leaves open that another one closes.
fn gaps(kind: &Kind) -> &'static str {
    match kind {
        Kind::Bwrap { .. } => "",
        Kind::Landlock(_) => {
            "; they see your credentials, share .git and the caches you build with, and can ask docker, systemd, tmux and D-Bus: bwrap closes that"
        }
    }
}

fn confined(kind: &Kind) -> String {
    let strength = match kind {
        Kind::Bwrap { .. } => "",
        Kind::Landlock(_) => " (partial)",
    };
    format!(
        "{kind}{strength}: agents write in this workspace, their own directories, caches and temporary files only"
    )
}

fn refused(what: &str, error: &SandboxError) -> Failure {
    Failure::usage(format!("the sandbox `{what}` cannot be used: {}", chain(error)))
        .hint("--sandbox auto takes the best that is there; --sandbox none does without")
}

/// `~/` is left for whoever knows the home directory; anything relative is so to the workspace.
fn place(workspace: &Path, written: &str) -> PathBuf {
    if written.starts_with("~/") { written.into() } else { workspace.join(written) }
}
