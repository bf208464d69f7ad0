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
    let scope = Scope::of(args);
    let target = target(args.host, scope)?;
    let changed = target.install()?;
    let mut notes = match args.host {
        HostWord::Claude => vec!["`/ralph-loop` works in sessions that start from now on".to_owned()],
        HostWord::Codex => vec![
            "call it as `$ralph-loop …`; `codex exec '/ralph-loop …'` works too".to_owned(),
            "Codex runs new hooks only once they are trusted: open Codex and review them with `/hooks`, or run \
             `codex exec --dangerously-bypass-hook-trust`"
                .to_owned(),
        ],
    };
    match scope {
        Scope::Project => notes.push(
            "commit these files to share them. Whoever has no `wiggum` in their PATH is not affected".to_owned(),
        ),
        Scope::User => notes.extend(elsewhere(args.host, Scope::Project).map(|there| {
            format!(
                "this repository has its own: {there}. `wiggum install {0} --project` renews it, `wiggum uninstall \
                 {0} --project` takes it out",
                args.host.name()
            )
        })),
    }
    report(args, Report { agent: args.host.name(), changed, notes }, "is connected already")
}

pub(crate) fn uninstall(args: &InstallArgs) -> Result<ExitCode, Failure> {
    let scope = Scope::of(args);
    let changed = target(args.host, scope)?.uninstall()?;
    let other = match scope {
        Scope::User => (Scope::Project, "--project"),
        Scope::Project => (Scope::User, "--user"),
    };
    let left = elsewhere(args.host, other.0).map(|there| {
        format!("{there} is still there: `wiggum uninstall {} {}` takes it out", args.host.name(), other.1)
    });
    let notes = left.into_iter().collect();
    report(args, Report { agent: args.host.name(), changed, notes }, "was not connected")
}

/// For whom an agent is connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    User,
    Project,
}

impl Scope {
    fn of(args: &InstallArgs) -> Self {
        if args.project { Self::Project } else { Self::User }
    }
}

/// Where an agent is connected in this other way too.
fn elsewhere(host: HostWord, scope: Scope) -> Option<String> {
    // Whoever is in no repository, or has no home, has nothing there.
    let place = place(host, scope).ok()?;
    let present = Target::new(host.into(), &place.config, &place.skills, PROGRAM).is_present();
    present.then(|| place.config.display().to_string())
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

/// How hooks call us where they are shared: each machine has its own path.
const PROGRAM: &str = "wiggum";

fn target(host: HostWord, scope: Scope) -> Result<Target, Failure> {
    let place = place(host, scope)?;
    let program = match scope {
        Scope::Project => PROGRAM.to_owned(),
        // Programs that are not started from a shell often know no PATH of the user's.
        Scope::User => own_path()?,
    };
    Ok(Target::new(host.into(), &place.config, &place.skills, &program))
}

fn own_path() -> Result<String, Failure> {
    let program = std::env::current_exe()
        .map_err(|error| Failure::other(format!("cannot find this program's own path: {error}")))?;
    program.into_os_string().into_string().map_err(|path| {
        Failure::usage(format!("{} is not UTF-8", path.display())).hint("install wiggum below another path")
    })
}

/// Where an agent has its settings, and its skills.
struct Place {
    config: PathBuf,
    skills: PathBuf,
}

fn place(host: HostWord, scope: Scope) -> Result<Place, Failure> {
    let (name, variable) = match host {
        HostWord::Claude => (".claude", "CLAUDE_CONFIG_DIR"),
        HostWord::Codex => (".codex", "CODEX_HOME"),
    };
    if scope == Scope::Project {
        let workspace = run::workspace()?;
        return Ok(Place { config: workspace.join(name), skills: workspace.join(".agents/skills") });
    }
    let set =
        |variable: &str| std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = || set("HOME").map(|home| home.join(name));
    let config = set(variable).or_else(home).filter(|path| path.is_absolute()).ok_or_else(|| {
        Failure::usage("there is no home directory to install into").hint(format!("set HOME or {variable}"))
    })?;
    Ok(Place { skills: config.join("skills"), config })
}

impl From<HostWord> for Host {
    fn from(host: HostWord) -> Self {
        match host {
            HostWord::Claude => Self::Claude,
            HostWord::Codex => Self::Codex,
        }
    }
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
