//! `wiggum install` and `wiggum uninstall`: connect an agent's sessions to this program.

use std::path::PathBuf;
use std::process::ExitCode;

use serde::Serialize;
use wiggum_engine::error::chain;

use crate::args::{HostWord, InstallArgs};
use crate::commands::{print_json, run};
use crate::failure::Failure;
use crate::install::{Host, InstallError, Target};
use crate::term;

#[derive(Serialize)]
struct Report {
    agent: &'static str,
    changed: Vec<PathBuf>,
    notes: Vec<String>,
}

pub(crate) fn install(args: &InstallArgs) -> Result<ExitCode, Failure> {
    let program = std::env::current_exe()
        .map_err(|error| Failure::other(format!("cannot find this program's own path: {error}")))?;
    let program = program.to_str().ok_or_else(|| {
        Failure::usage(format!("{} is not UTF-8", program.display()))
            .hint("install wiggum below another path")
    })?;
    let changed = target(args)?.install(program)?;
    let notes = match args.host {
        HostWord::Claude => vec!["`/ralph-loop` works in sessions that start from now on".to_owned()],
        HostWord::Codex => vec![
            "call it as `$ralph-loop …`; `codex exec '/ralph-loop …'` works too".to_owned(),
            "Codex runs new hooks only once they are trusted: open Codex and review them with `/hooks`, or run \
             `codex exec --dangerously-bypass-hook-trust`"
                .to_owned(),
        ],
    };
    report(args, Report { agent: args.host.name(), changed, notes }, "is connected already")
}

pub(crate) fn uninstall(args: &InstallArgs) -> Result<ExitCode, Failure> {
    let changed = target(args)?.uninstall()?;
    report(args, Report { agent: args.host.name(), changed, notes: Vec::new() }, "was not connected")
}

fn report(args: &InstallArgs, report: Report, nothing: &str) -> Result<ExitCode, Failure> {
    if args.output.json {
        return print_json(&report);
    }
    let mut text = String::new();
    if report.changed.is_empty() {
        text.push_str(&format!("{} {nothing}\n", report.agent));
    }
    for path in &report.changed {
        let word = if path.exists() { "wrote" } else { "removed" };
        text.push_str(&format!("{word} {}\n", path.display()));
    }
    for note in &report.notes {
        text.push_str(&format!("{note}\n"));
    }
    Ok(term::print(&text))
}

fn target(args: &InstallArgs) -> Result<Target, Failure> {
    let (host, name, variable) = match args.host {
        HostWord::Claude => (Host::Claude, ".claude", "CLAUDE_CONFIG_DIR"),
        HostWord::Codex => (Host::Codex, ".codex", "CODEX_HOME"),
    };
    if !args.user {
        let workspace = run::workspace()?;
        return Ok(Target::new(host, &workspace.join(name), &workspace.join(".agents/skills")));
    }
    let set =
        |variable: &str| std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = || set("HOME").map(|home| home.join(name));
    let config = set(variable).or_else(home).filter(|path| path.is_absolute()).ok_or_else(|| {
        Failure::usage("there is no home directory to install into").hint(format!("set HOME or {variable}"))
    })?;
    Ok(Target::new(host, &config, &config.join("skills")))
}

impl From<InstallError> for Failure {
    fn from(error: InstallError) -> Self {
        let message = chain(&error);
        match error {
            InstallError::Settings { .. } => {
                Self::usage(message).hint("mend it by hand; nothing was changed")
            }
            InstallError::NotOurs { .. } => Self::usage(message).hint("rename it; nothing was changed"),
            InstallError::Read { .. } | InstallError::Write { .. } => {
                Self::other(message).hint("check that the directory is writable")
            }
        }
    }
}
