//! `wiggum doctor`: looks for what is broken or missing, and says what to do about it. It changes
//! nothing.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::ExitCode;

use serde::Serialize;
use wiggum_core::checker;
use wiggum_engine::backlog_file::difference;
use wiggum_engine::error::chain;
use wiggum_engine::state_dir::StateDir;
use wiggum_store::LoopRecord;
use wiggum_workspace::git::Git;
use wiggum_workspace::process::{self, CommandLine, Launch};

use crate::args::OutputArgs;
use crate::commands::backlog::OpenBacklog;
use crate::commands::describe::counted;
use crate::commands::loops::{Engine, Loops};
use crate::commands::{print_json, run, surroundings};
use crate::config::{self, Config, Flags};
use crate::detect;
use crate::failure::{FAILURE, Failure};
use crate::sandbox::sandbox;
use crate::team::team;
use crate::term::{self, Style};

/// The first git that can merge trees onto a base of our choosing.
const OLDEST_GIT: (u32, u32) = (2, 38);

/// Less room than this is soon used up by an agent's build.
const LITTLE_ROOM: u64 = 200 * 1024 * 1024;

/// How many broken invariants are shown of one journal.
const SHOWN_VIOLATIONS: usize = 5;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Level {
    Ok,
    Warning,
    Problem,
}

#[derive(Debug, Serialize)]
struct Finding {
    about: &'static str,
    level: Level,
    message: String,
    hint: Option<String>,
}

impl Finding {
    fn ok(about: &'static str, message: impl Into<String>) -> Self {
        Self { about, level: Level::Ok, message: message.into(), hint: None }
    }

    fn warning(about: &'static str, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { about, level: Level::Warning, message: message.into(), hint: Some(hint.into()) }
    }

    fn problem(about: &'static str, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { about, level: Level::Problem, message: message.into(), hint: Some(hint.into()) }
    }

    fn failure(about: &'static str, failure: Failure) -> Self {
        let Failure { message, hint, .. } = failure;
        Self { about, level: Level::Problem, message, hint }
    }
}

pub(crate) fn doctor(args: &OutputArgs) -> Result<ExitCode, Failure> {
    let findings = examine()?;
    let sick = findings.iter().any(|finding| finding.level == Level::Problem);
    if args.json {
        print_json(&findings)?;
    } else {
        let style = Style::for_stdout();
        term::print(&findings.iter().map(|finding| line(finding, style)).collect::<String>());
    }
    Ok(if sick { ExitCode::from(FAILURE) } else { ExitCode::SUCCESS })
}

fn line(finding: &Finding, style: Style) -> String {
    let mark = match finding.level {
        Level::Ok => style.green("ok     "),
        Level::Warning => style.yellow("warning"),
        Level::Problem => style.red("problem"),
    };
    let message = term::harmless(&finding.message).replace('\n', "\n                   ");
    let mut text = format!("{mark}  {:8}  {message}\n", finding.about);
    if let Some(hint) = &finding.hint {
        text.push_str(&format!("                   {} {}\n", style.cyan("hint:"), term::harmless(hint)));
    }
    text
}

fn examine() -> Result<Vec<Finding>, Failure> {
    let mut findings = vec![git_program()];
    if findings[0].level == Level::Problem {
        // Without git nothing below can be told from a broken repository.
        return Ok(findings);
    }
    let here = surroundings()?;
    let workspace = here.workspace.as_path();
    let git = Git::discover(workspace).map_err(|error| Failure::other(chain(&error)))?;
    match &git {
        Some(git) => findings.extend(repository(git)),
        None => findings.push(Finding::warning(
            "git",
            "not inside a git repository",
            "loops work here, but nothing is committed: `git init` changes that",
        )),
    }
    findings.extend(state_directory(workspace, git.as_ref()));
    findings.push(disk_space(workspace));
    match config::resolve(&here.sources(&Flags::default())) {
        Ok(config) => findings.extend(configuration(workspace, &config)),
        Err(problems) => findings.push(Finding::failure("config", problems.into())),
    }
    match Loops::of(workspace) {
        Ok(loops) => findings.extend(stored(loops.as_ref(), git.as_ref())),
        Err(failure) => findings.push(Finding::failure("store", failure)),
    }
    findings.extend(backlog());
    Ok(findings)
}

fn git_program() -> Finding {
    let here = std::env::temp_dir();
    let output = match process::run(Launch::new(CommandLine::new("git", ["--version"]), here)) {
        Ok(output) => String::from_utf8_lossy(&output.stdout).trim().to_owned(),
        Err(error) => return Finding::problem("git", chain(&error), "install git"),
    };
    match version(&output) {
        Some(found) if found >= OLDEST_GIT => Finding::ok("git", output),
        Some(_) => {
            let (major, minor) = OLDEST_GIT;
            Finding::problem(
                "git",
                format!("{output} is too old"),
                format!("install {major}.{minor} or later"),
            )
        }
        None => Finding::warning("git", format!("cannot tell the version from `{output}`"), "is this git?"),
    }
}

/// The first two numbers of `git version 2.39.5 (Apple Git-154)`.
fn version(text: &str) -> Option<(u32, u32)> {
    let word = text.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit()))?;
    let mut numbers = word.split('.').map(|number| number.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

fn repository(git: &Git) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(operation) = git.unfinished_operation() {
        findings.push(Finding::problem(
            "git",
            format!("a {operation} is unfinished"),
            format!("finish or abort it: `git {operation} --continue` or `git {operation} --abort`"),
        ));
    }
    match git.head() {
        Ok(head) if head.branch.is_none() => findings.push(Finding::warning(
            "git",
            "HEAD is detached: commits would belong to no branch",
            "`git switch -c NAME` puts them on one",
        )),
        Ok(head) => {
            let branch = head.branch.unwrap_or_default();
            let commits = if head.commit.is_none() { ", no commits yet" } else { "" };
            findings.push(Finding::ok("git", format!("on {branch}{commits}")));
        }
        Err(error) => findings.push(Finding::problem("git", chain(&error), "is the repository damaged?")),
    }
    let missing: Vec<&str> =
        ["user.name", "user.email"].into_iter().filter(|key| !configured(git, key)).collect();
    if !missing.is_empty() {
        findings.push(Finding::warning(
            "git",
            format!("{} not set: commits are made in the name of Wiggum", missing.join(" and ")),
            "`git config --global user.name …` and `user.email …`",
        ));
    }
    findings
}

fn configured(git: &Git, key: &str) -> bool {
    let role = key.trim_start_matches("user.").to_uppercase();
    let given = std::env::var_os(format!("GIT_AUTHOR_{role}")).is_some()
        && std::env::var_os(format!("GIT_COMMITTER_{role}")).is_some();
    given || git_lines(git, &["config", "--get", key]).is_some_and(|lines| !lines.is_empty())
}

fn git_lines(git: &Git, args: &[&str]) -> Option<Vec<String>> {
    let output = process::run(Launch::new(CommandLine::new("git", args), git.root())).ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    output.exit.success().then(|| text.lines().map(str::to_owned).collect())
}

fn state_directory(workspace: &Path, git: Option<&Git>) -> Vec<Finding> {
    let dir = StateDir::of(workspace);
    let Ok(metadata) = dir.path().metadata() else { return Vec::new() };
    let mut findings = Vec::new();
    let mode = metadata.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        findings.push(Finding::warning(
            "state",
            format!("{} can be read by others (mode {mode:03o})", StateDir::NAME),
            format!("`chmod 700 {}`", StateDir::NAME),
        ));
    }
    let inside = format!("{}/", StateDir::NAME);
    if let Some(git) = git {
        match (git.is_tracked(StateDir::NAME), git.ignored(&inside)) {
            (Ok(true), _) => findings.push(Finding::problem(
                "state",
                format!("{} is tracked by git", StateDir::NAME),
                format!("`git rm -r --cached {}`, and add it to .gitignore", StateDir::NAME),
            )),
            (Ok(false), Ok(false)) => findings.push(Finding::warning(
                "state",
                format!("{} is not ignored by git", StateDir::NAME),
                format!("add `{inside}` to .gitignore"),
            )),
            (Ok(false), Ok(true)) => {}
            (Err(error), _) | (_, Err(error)) => {
                findings.push(Finding::problem("state", chain(&error), "is the repository damaged?"));
            }
        }
    }
    if findings.is_empty() {
        findings.push(Finding::ok("state", format!("{} is private and out of git", StateDir::NAME)));
    }
    findings
}

fn disk_space(workspace: &Path) -> Finding {
    let Ok(found) = rustix::fs::statvfs(workspace) else {
        return Finding::warning("disk", "cannot tell how much room there is", "check it yourself: `df .`");
    };
    let room = found.f_bavail.saturating_mul(found.f_frsize);
    let text = format!("{} MB free", room / 1024 / 1024);
    if room < LITTLE_ROOM {
        Finding::warning("disk", text, "make room: a full disk stops every loop")
    } else {
        Finding::ok("disk", text)
    }
}

fn configuration(workspace: &Path, config: &Config) -> Vec<Finding> {
    let mut findings = Vec::new();
    findings.push(match (&config.agent.scenario, &config.agent.command) {
        (Some(scenario), _) => match wiggum_agents::script::load(scenario) {
            Ok(_) => Finding::ok("agent", format!("scripted by {}", scenario.display())),
            Err(error) => Finding::problem("agent", chain(&error), "mend the scenario"),
        },
        (None, Some(line)) => command("agent", workspace, line, "agent command"),
        (None, None) if config.agent.name.is_some() => match team(workspace, config, false) {
            Ok(team) => Finding::ok("agent", team.rules.order.join(", else ")),
            Err(failure) => Finding::failure("agent", failure),
        },
        (None, None) => Finding::warning(
            "agent",
            "no agent is configured",
            "set `name` under [agent] in wiggum.toml, or use --agent (`wiggum agents` tells what is there)",
        ),
    });
    findings.push(match sandbox(workspace, config) {
        Ok(found) if found.kind.is_some() => Finding::ok("sandbox", found.says),
        Ok(found) => {
            Finding::warning("sandbox", found.says, "a kernel with Landlock (5.19 or later) or bwrap helps")
        }
        Err(failure) => Finding::failure("sandbox", failure),
    });
    findings.extend(withheld(workspace, config));
    let mut verify = config.policy.checks.verify.clone();
    if verify.is_empty() {
        let found = detect::detect(workspace, wiggum_backlog::candidates()).verify;
        verify.extend(found.map(|found| found.value));
    }
    if verify.is_empty() {
        findings.push(Finding::warning(
            "verify",
            "no verify command: what agents claim is marked unverified",
            "set `verify` under [checks] in wiggum.toml",
        ));
    }
    findings.extend(verify.iter().map(|line| command("verify", workspace, line, "verify command")));
    findings
}

/// Secrets of the environment that the agent does not get, which may be a surprise to it.
fn withheld(workspace: &Path, config: &Config) -> Option<Finding> {
    let team = team(workspace, config, false).ok()?;
    let first = team.rules.order.first()?;
    let names = team.agents.iter().find(|agent| agent.name == *first)?.withheld();
    let text = format!("withheld from the agent: {} (`agent.pass_env` passes them on)", names.join(", "));
    (!names.is_empty()).then(|| Finding::ok("secrets", text))
}

fn command(about: &'static str, workspace: &Path, line: &str, what: &str) -> Finding {
    match run::resolvable(workspace, line, what) {
        Ok(()) => Finding::ok(about, line),
        Err(failure) => Finding::failure(about, failure),
    }
}

fn stored(loops: Option<&Loops>, git: Option<&Git>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let records = match loops {
        None => {
            findings.push(Finding::ok("store", "no loops here yet"));
            Vec::new()
        }
        Some(loops) => match examine_store(loops, &mut findings) {
            Ok(records) => records,
            Err(failure) => {
                findings.push(Finding::failure("store", failure));
                return findings;
            }
        },
    };
    findings.extend(git.and_then(|git| references(git, &records)));
    findings
}

fn examine_store(loops: &Loops, findings: &mut Vec<Finding>) -> Result<Vec<LoopRecord>, Failure> {
    let broken = loops.store.check()?;
    let records = loops.all()?;
    if broken.is_empty() {
        findings.push(Finding::ok("store", format!("{}, nothing damaged", counted(records.len(), "loop"))));
    }
    let hint = "put back a copy of .wiggum/wiggum.db, or move it aside to start anew";
    findings.extend(broken.into_iter().map(|message| Finding::problem("store", message, hint)));
    for record in &records {
        examine_journal(loops, record, findings)?;
        examine_engine(loops, record, findings)?;
    }
    Ok(records)
}

fn examine_journal(loops: &Loops, record: &LoopRecord, findings: &mut Vec<Finding>) -> Result<(), Failure> {
    let name = &record.identity.name;
    let journal = loops.store.read(record.id, 0)?;
    let violations = checker::check(&journal);
    if violations.is_empty() {
        findings.push(Finding::ok("journal", format!("loop {name}: {} events in order", journal.len())));
    }
    for violation in violations.iter().take(SHOWN_VIOLATIONS) {
        findings.push(Finding::problem(
            "journal",
            format!("loop {name}: {violation}"),
            "this is our bug: please report it with `wiggum events --json`",
        ));
    }
    if violations.len() > SHOWN_VIOLATIONS {
        let more = violations.len() - SHOWN_VIOLATIONS;
        findings.push(Finding::problem(
            "journal",
            format!("loop {name}: {more} more like that"),
            "see above",
        ));
    }
    Ok(())
}

fn examine_engine(loops: &Loops, record: &LoopRecord, findings: &mut Vec<Finding>) -> Result<(), Failure> {
    let name = &record.identity.name;
    match loops.engine(record.id)? {
        Engine::Alive(holder) => {
            findings.push(Finding::ok("engine", format!("loop {name} is run by process {}", holder.pid)));
            return Ok(());
        }
        Engine::Dead(holder) => findings.push(Finding::warning(
            "engine",
            format!("loop {name} was run by process {}, which is gone", holder.pid),
            "`wiggum run` takes it over and goes on",
        )),
        Engine::None => {}
    }
    let left = process::marked("WIGGUM_LOOP_ID", &record.id.to_string());
    if !left.is_empty() {
        let pids: Vec<String> = left.iter().map(ToString::to_string).collect();
        findings.push(Finding::warning(
            "engine",
            format!("processes of loop {name} are left without an engine: {}", pids.join(", ")),
            "`wiggum run` ends them before it goes on",
        ));
    }
    Ok(())
}

/// Work that is kept for loops nobody knows any more.
fn references(git: &Git, records: &[LoopRecord]) -> Option<Finding> {
    let all = git_lines(git, &["for-each-ref", "--format=%(refname)", "refs/wiggum"])?;
    // References carry the end of the loop's id.
    let known = |reference: &str| {
        let part = reference.split('/').nth(2).unwrap_or_default();
        !part.is_empty() && records.iter().any(|record| record.id.to_string().ends_with(part))
    };
    let orphans = all.iter().filter(|reference| !known(reference)).count();
    Some(if orphans > 0 {
        Finding::warning(
            "git",
            format!("of no known loop: {} under refs/wiggum", counted(orphans, "reference")),
            "look with `git for-each-ref refs/wiggum`; `git update-ref -d REF` removes one",
        )
    } else {
        Finding::ok("git", format!("{} under refs/wiggum", counted(all.len(), "reference")))
    })
}

fn backlog() -> Vec<Finding> {
    let mut open = match OpenBacklog::locate(None) {
        Ok(open) => open,
        Err(Failure { message, hint, .. }) => {
            return vec![Finding { about: "backlog", level: Level::Warning, message, hint }];
        }
    };
    if let Err(error) = open.file.refresh() {
        return vec![Finding::failure("backlog", super::backlog::broken(error))];
    }
    let Some(backlog) = open.file.backlog() else { return Vec::new() };
    let mut findings =
        vec![Finding::ok("backlog", format!("{}: {}", open.name, counted(backlog.tasks().len(), "task")))];
    for problem in backlog.unsupported() {
        findings.push(Finding::problem("backlog", problem.to_string(), "skip the task, or remove the field"));
    }
    match open.any_state() {
        Ok(Some(state)) if difference(&state, backlog).is_some() => findings.push(Finding::warning(
            "backlog",
            format!("{} differs from what loop {} last knew", open.name, state.name),
            "if that was you, all is well: the loop takes it in before its next task",
        )),
        Ok(_) => {}
        Err(failure) => findings.push(Finding::failure("backlog", failure)),
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_git_are_understood() {
        let check = |text: &str, expected: Option<(u32, u32)>| assert_eq!(version(text), expected, "{text}");
        check("git version 2.47.3", Some((2, 47)));
        check("git version 2.39.5 (Apple Git-154)", Some((2, 39)));
        check("git version 2.47.1.windows.2", Some((2, 47)));
        check("git version 3.0", Some((3, 0)));
        check("hub", None);
        assert!(version("git version 2.9.5").is_some_and(|old| old < OLDEST_GIT));
    }
}
