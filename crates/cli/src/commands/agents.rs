//! `wiggum agents`: who could do the work: what is installed, whether somebody is logged in as far
//! as can be told without asking anybody, and what each driver can do.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc;
use std::time::Duration;

use serde::Serialize;
use wiggum_agents::{Abilities, Family, Login};
use wiggum_workspace::process::{self, CommandLine, Launch};

use crate::api;
use crate::args::OutputArgs;
use crate::commands::{print_json, surroundings};
use crate::config::agents::NamedAgent;
use crate::config::{self, Config, Flags};
use crate::failure::Failure;
use crate::sandbox::sandbox;
use crate::team;
use crate::term::{self, Style, harmless};

/// Longer than the slowest of them takes to tell its version on a cold start.
const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Debug, Serialize)]
struct Row {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    family: Option<&'static str>,
    /// Where its program is.
    #[serde(skip_serializing_if = "Option::is_none")]
    program: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    /// Missing where only a call would tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    logged_in: Option<bool>,
    login: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    can: Vec<&'static str>,
    /// Its place in the order of this workspace, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    choice: Option<usize>,
}

pub(crate) fn agents(args: &OutputArgs) -> Result<ExitCode, Failure> {
    let here = surroundings()?;
    let config = config::resolve(&here.sources(&Flags::default()))?;
    let mut rows: Vec<Row> =
        team::known(&config).iter().map(|name| row(&here.workspace, &config, name)).collect();
    tell_versions(&here.workspace, &mut rows);
    if args.json {
        return print_json(&rows);
    }
    let around = match sandbox(&here.workspace, &config) {
        Ok(sandbox) => sandbox.says,
        Err(failure) => failure.message,
    };
    Ok(term::print(&format!("{}\nsandbox: {}\n", text(&rows), harmless(&around))))
}

/// The coding agents whose programs are there, in the order in which they are listed.
pub(crate) fn installed(directory: &Path) -> Vec<&'static str> {
    let programs = Family::ALL.into_iter().filter(|family| !family.is_built_in());
    let is_there =
        |family: &Family| CommandLine::new(family.program(), Vec::<String>::new()).resolve(directory).is_ok();
    programs.filter(is_there).map(Family::name).collect()
}

fn row(workspace: &Path, config: &Config, name: &str) -> Row {
    let order: Vec<&String> = config.agent.name.iter().chain(&config.agent.fallback).collect();
    let is_first = config.agent.name.as_deref() == Some(name);
    let described = team::describe(config, name, is_first);
    let family = team::family(config, name);
    let line = match (&described.command, family) {
        (Some(line), _) => CommandLine::parse(line).ok(),
        (None, Some(family)) if family.is_built_in() => {
            let own = std::env::current_exe().ok();
            own.map(|program| CommandLine::new(program, Vec::<String>::new()))
        }
        (None, Some(family)) => {
            let program = described.program.clone().unwrap_or_else(|| family.program().to_owned());
            Some(CommandLine::new(program, Vec::<String>::new()))
        }
        (None, None) => None,
    };
    let login = login_of(config, name);
    Row {
        name: name.to_owned(),
        family: family.map(Family::name),
        program: line.and_then(|line| line.resolve(workspace).ok()),
        version: None,
        logged_in: login.as_ref().and_then(|login| match login {
            Login::LoggedIn(_) => Some(true),
            Login::NotLoggedIn(_) => Some(false),
            Login::Unknown => None,
        }),
        login: match login {
            Some(Login::LoggedIn(how)) => how,
            Some(Login::NotLoggedIn(hint)) => hint,
            Some(Login::Unknown) | None => "only a call would tell".to_owned(),
        },
        model: described.model,
        can: family.map_or_else(Vec::new, |family| {
            let usual = family.abilities();
            abilities(Abilities { cost: usual.cost || !described.api.prices.is_empty(), ..usual })
        }),
        choice: order.iter().position(|other| *other == name).map(|index| index + 1),
    }
}

/// Whether somebody is logged in to an agent, as far as that can be told without asking it.
pub(crate) fn login_of(config: &Config, name: &str) -> Option<Login> {
    let family = team::family(config, name)?;
    let described = team::describe(config, name, config.agent.name.as_deref() == Some(name));
    if family.is_built_in() {
        return Some(api::login(&described));
    }
    let own = described.env.clone();
    Some(withheld(config, name, family, described).unwrap_or_else(|| login(family, &own)))
}

fn login(family: Family, own: &std::collections::BTreeMap<String, String>) -> Login {
    let variable = |name: &str| own.get(name).cloned().or_else(|| std::env::var(name).ok());
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    family.login(&variable, &home)
}

/// A key that the agent's own settings name, and that it does not get.
fn withheld(config: &Config, name: &str, family: Family, described: NamedAgent) -> Option<Login> {
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let variable = family.key_variable(&|name| std::env::var(name).ok(), &home)?;
    let agent = team::named(config, name, described, false).ok()?;
    agent.about_withheld(&variable).map(Login::NotLoggedIn)
}

fn abilities(abilities: Abilities) -> Vec<&'static str> {
    let Abilities { live, usage, cost, nudge, resume, sandbox, mcp, usage_live, .. } = abilities;
    let all = [
        (live, "live"),
        (usage, "usage"),
        (cost, "cost"),
        // Stopped at a budget in the middle of its work.
        (usage_live, "budget"),
        (nudge, "nudge"),
        (resume, "resume"),
        (sandbox, "sandbox"),
        (mcp, "mcp"),
    ];
    all.into_iter().filter_map(|(can, name)| can.then_some(name)).collect()
}

/// All at the same time, since some take seconds; one that takes too long has no version.
fn tell_versions(workspace: &Path, rows: &mut [Row]) {
    let (sender, versions) = mpsc::channel();
    let mut asked = 0;
    for (index, row) in rows.iter().enumerate() {
        let (Some(program), Some(_)) = (&row.program, row.family) else { continue };
        let mut launch =
            Launch::new(CommandLine::new(program.display().to_string(), ["--version"]), workspace);
        // None of them should use the moment to look for a newer self.
        for name in ["DISABLE_AUTOUPDATER", "OPENCODE_DISABLE_AUTOUPDATE", "COPILOT_OFFLINE"] {
            launch.env.push((name.into(), "1".into()));
        }
        let sender = sender.clone();
        asked += 1;
        std::thread::spawn(move || drop(sender.send((index, process::run(launch)))));
    }
    let until = std::time::Instant::now() + PATIENCE;
    for _ in 0..asked {
        let left = until.saturating_duration_since(std::time::Instant::now());
        let Ok((index, output)) = versions.recv_timeout(left) else { return };
        rows[index].version = output.ok().and_then(|output| version_in(&output.stdout));
    }
}

/// The first word of the output that begins like a version.
fn version_in(output: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(output);
    let is_version = |word: &&str| word.contains('.') && word.starts_with(|c: char| c.is_ascii_digit());
    text.split_whitespace()
        .map(|word| word.trim_start_matches('v').trim_end_matches('.'))
        .find(is_version)
        .map(str::to_owned)
}

fn text(rows: &[Row]) -> String {
    let style = Style::for_stdout();
    let width = rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for row in rows {
        let name = format!("{:width$}", harmless(&row.name));
        let Some(program) = &row.program else {
            text.push_str(&style.dim(&format!("  ·  {name}  not installed\n")));
            continue;
        };
        let mark = match row.logged_in {
            Some(true) => style.green("✓"),
            Some(false) => style.yellow("!"),
            None => style.dim("?"),
        };
        let choice = row.choice.map_or_else(|| " ".to_owned(), |choice| choice.to_string());
        let version = row.version.as_deref().unwrap_or("version not told");
        let model = row.model.as_ref().map_or_else(String::new, |model| format!(", {}", harmless(model)));
        text.push_str(&format!("{choice} {mark}  {}  {version}{model}\n", style.bold(&name)));
        let detail = format!("{}; {}", harmless(&row.login), program.display());
        text.push_str(&style.dim(&format!("     {:width$}  {detail}\n", "")));
        if !row.can.is_empty() {
            text.push_str(&style.dim(&format!("     {:width$}  can: {}\n", "", row.can.join(", "))));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::version_in;

    #[test]
    fn versions_as_real_programs_tell_them() {
        for (output, version) in [
            ("2.1.197 (Claude Code)\n", Some("2.1.197")),
            ("codex-cli 0.166.0\n", Some("0.166.0")),
            ("GitHub Copilot CLI 1.0.102.\nRun 'copilot update' to check for updates.\n", Some("1.0.102")),
            ("aider v0.86.2\n", Some("0.86.2")),
            ("no idea\n", None),
        ] {
            assert_eq!(version_in(output.as_bytes()).as_deref(), version);
        }
    }
}
