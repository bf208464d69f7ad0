//! `wiggum doctor`: looks for what is broken or missing, and says what to do about it. With `--fix` it
//! does what is safe ([`fix`]); otherwise it changes nothing.

mod fix;
mod sandbox_rules;
mod stored;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::ExitCode;

use serde::Serialize;
use wiggum_agents::Login;
use wiggum_core::definition::Definition;
use wiggum_engine::Sandbox;
use wiggum_engine::error::chain;
use wiggum_engine::former::FilesNow;
use wiggum_engine::state_dir::StateDir;
use wiggum_workspace::git::Git;
use wiggum_workspace::process::{self, CommandLine, Launch};

use crate::args::DoctorArgs;
use crate::commands::Surroundings;
use crate::commands::agents::login_of;
use crate::commands::loops::Loops;
use crate::commands::{notify, print_json, refuse_inside_agent, run, surroundings};
use crate::config::{self, Config, Flags};
use crate::detect;
use crate::failure::{CANNOT_SIGN, FAILURE, Failure, SWITCH_TO_BRANCH, finish_operation};
use crate::sandbox::sandbox;
use crate::team::team;
use crate::term::{self, Style};

use fix::Remedy;

/// The first git that can merge trees onto a base of our choosing.
const OLDEST_GIT: (u32, u32) = (2, 38);

/// Less room than this is soon used up by an agent's build.
const LITTLE_ROOM: u64 = 200 * 1024 * 1024;

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
    /// What `--fix` does about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<Remedy>,
    /// What `--fix` did about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    fixed: Option<String>,
}

impl Finding {
    fn new(about: &'static str, level: Level, message: String, hint: Option<String>) -> Self {
        Self { about, level, message, hint, fix: None, fixed: None }
    }

    fn ok(about: &'static str, message: impl Into<String>) -> Self {
        Self::new(about, Level::Ok, message.into(), None)
    }

    fn warning(about: &'static str, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(about, Level::Warning, message.into(), Some(hint.into()))
    }

    fn problem(about: &'static str, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(about, Level::Problem, message.into(), Some(hint.into()))
    }

    fn failure(about: &'static str, failure: Failure) -> Self {
        let Failure { message, hint, .. } = failure;
        Self::new(about, Level::Problem, message, hint)
    }

    /// There is something safe to be done about it.
    fn mended_by(self, remedy: Remedy) -> Self {
        Self { fix: Some(remedy), ..self }
    }
}

pub(crate) fn doctor(args: &DoctorArgs) -> Result<ExitCode, Failure> {
    if args.fix {
        refuse_inside_agent()?;
    }
    if args.sandbox {
        return sandbox_rules::print(args);
    }
    let mut findings = examine()?;
    if args.fix {
        findings.iter_mut().for_each(fix::mend);
    }
    let sick = findings.iter().any(|finding| finding.level == Level::Problem && finding.fixed.is_none());
    if args.output.json {
        print_json(&findings)?;
    } else {
        let style = Style::for_stdout();
        term::print(&findings.iter().map(|finding| line(finding, style)).collect::<String>());
    }
    Ok(if sick { ExitCode::from(FAILURE) } else { ExitCode::SUCCESS })
}

fn line(finding: &Finding, style: Style) -> String {
    let mark = match finding.level {
        _ if finding.fixed.is_some() => style.green("fixed  "),
        Level::Ok => style.green("ok     "),
        Level::Warning => style.yellow("warning"),
        Level::Problem => style.red("problem"),
    };
    let message = term::harmless(&finding.message).replace('\n', "\n                   ");
    let mut text = format!("{mark}  {:8}  {message}\n", finding.about);
    let (word, more) = match (&finding.fixed, &finding.hint, finding.fix) {
        (Some(done), _, _) => ("done:", done.clone()),
        (None, Some(hint), Some(_)) => ("hint:", format!("{hint}; `wiggum doctor --fix` does it")),
        (None, Some(hint), None) => ("hint:", hint.clone()),
        (None, None, _) => return text,
    };
    text.push_str(&format!("                   {} {}\n", style.cyan(word), term::harmless(&more)));
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
    let resolved = config::resolve(&here.sources(&Flags::default()));
    let sandbox = resolved.as_ref().ok().and_then(|config| sandbox(workspace, config).ok());
    findings.extend(state_directory(&here, git.as_ref(), sandbox.as_ref()));
    findings.push(disk_space(workspace));
    match resolved {
        Ok(config) => findings.extend(configuration(workspace, &config)),
        Err(problems) => findings.push(Finding::failure("config", problems.into())),
    }
    match here.checkout().and_then(|checkout| Ok(Loops::of(&checkout)?)) {
        Ok(loops) => findings.extend(stored::examine(loops.as_ref(), git.as_ref())),
        Err(failure) => findings.push(Finding::failure("store", failure)),
    }
    findings.extend(stored::backlog());
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
            finish_operation(operation),
        ));
    }
    let branch = git.head().ok().and_then(|head| head.branch);
    if git.is_locked(branch.as_deref()) {
        findings.push(
            Finding::warning(
                "git",
                "a lock is left by a git that may be gone",
                "look whether a git still runs",
            )
            .mended_by(Remedy::ClearLocks),
        );
    }
    findings.extend(lost_worktrees(git));
    match git.head() {
        Ok(head) if head.branch.is_none() => findings.push(Finding::problem(
            "git",
            "HEAD is detached: commits would belong to no branch",
            SWITCH_TO_BRANCH,
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
    match git.signing_problem() {
        Ok(None) => {}
        Ok(Some(message)) => findings.push(Finding::problem(
            "git",
            format!("commits cannot be signed (commit.gpgsign): {message}"),
            CANNOT_SIGN,
        )),
        Err(error) => findings.push(Finding::problem("git", chain(&error), "is the repository damaged?")),
    }
    findings
}

/// Work trees whose directory is gone, but whose branch is still taken by them.
fn lost_worktrees(git: &Git) -> Option<Finding> {
    let listed = git_lines(git, &["worktree", "list", "--porcelain"])?;
    let mut lost = Vec::new();
    let mut current = "";
    for line in &listed {
        current = line.strip_prefix("worktree ").unwrap_or(current);
        if line.starts_with("prunable") {
            lost.push(current);
        }
    }
    let message = format!("the work tree is gone, but git still counts it: {}", lost.join(", "));
    let finding =
        || Finding::warning("git", message, "`git worktree prune`").mended_by(Remedy::PruneWorktrees);
    (!lost.is_empty()).then(finding)
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

/// Where the private state is, whether others can read it, and whether git sees our files in the checkout.
fn state_directory(here: &Surroundings, git: Option<&Git>, sandbox: Option<&Sandbox>) -> Vec<Finding> {
    let dir = match here.checkout().and_then(|checkout| Ok(checkout.find()?)) {
        Ok(Some(dir)) => dir,
        Ok(None) => return Vec::new(),
        Err(failure) => {
            let hint = failure.hint.unwrap_or_default();
            return vec![Finding::problem("state", failure.message, hint)];
        }
    };
    let mut findings: Vec<Finding> = readable_by_others(&dir).into_iter().collect();
    findings.extend(git.and_then(shown_by_git));
    if dir.path() != dir.shared() && dir.shared().join("wiggum.db").exists() {
        findings.push(Finding::warning(
            "state",
            format!("{}/wiggum.db is not used: the journal is in {}", StateDir::NAME, dir.path().display()),
            "it came with the repository or from an older version; remove it".to_owned(),
        ));
    }
    if sandbox.is_some_and(|sandbox| sandbox.leaves_open(dir.path())) {
        findings.push(Finding::warning(
            "state",
            format!("agents in the sandbox can write to {}", dir.path().display()),
            "`state_root` in your own config.toml moves it out of temporary directories and caches"
                .to_owned(),
        ));
    }
    if findings.is_empty() {
        findings.push(Finding::ok("state", format!("private, in {}", dir.path().display())));
    }
    findings
}

fn readable_by_others(dir: &StateDir) -> Option<Finding> {
    let mode = dir.path().metadata().ok()?.permissions().mode() & 0o777;
    let path = dir.path().display();
    let finding = || {
        Finding::warning(
            "state",
            format!("{path} can be read by others (mode {mode:03o})"),
            format!("`chmod 700 {path}`"),
        )
        .mended_by(Remedy::MakePrivate)
    };
    (mode & 0o077 != 0).then(finding)
}

/// The mark of a checkout is its own: in a clone it would be wrong.
fn shown_by_git(git: &Git) -> Option<Finding> {
    let mark = format!("{}/store", StateDir::NAME);
    match (git.is_tracked(&mark), git.ignored(&mark)) {
        (Ok(true), _) => Some(Finding::problem(
            "state",
            format!("{mark} is tracked by git"),
            format!("`git rm --cached {mark}`, and `wiggum init` for what to ignore"),
        )),
        (Ok(false), Ok(false)) => Some(
            Finding::warning(
                "state",
                format!("{}/ is not ignored by git", StateDir::NAME),
                "`wiggum init` adds what to ignore to .gitignore".to_owned(),
            )
            .mended_by(Remedy::Exclude),
        ),
        (Ok(false), Ok(true)) => None,
        (Err(error), _) | (_, Err(error)) => {
            Some(Finding::problem("state", chain(&error), "is the repository damaged?"))
        }
    }
}

fn disk_space(workspace: &Path) -> Finding {
    let Ok(found) = rustix::fs::statvfs(workspace) else {
        return Finding::warning("disk", "cannot tell how much room there is", "check it yourself: `df .`");
    };
    room_left(found.f_bavail.saturating_mul(found.f_frsize))
}

fn room_left(room: u64) -> Finding {
    let text = format!("{} MB free", room / 1024 / 1024);
    if room < LITTLE_ROOM {
        Finding::warning("disk", text, "make room: a full disk stops every loop")
    } else {
        Finding::ok("disk", text)
    }
}

/// As `wiggum agents` knows them.
fn agents_found(config: &Config, order: &[String]) -> Finding {
    let not_logged_in = order.iter().find_map(|name| match login_of(config, name)? {
        Login::NotLoggedIn(hint) => Some((name, hint)),
        Login::LoggedIn(_) | Login::Unknown => None,
    });
    match not_logged_in {
        Some((name, hint)) => Finding::warning("agent", format!("{name} is not logged in"), hint),
        None => Finding::ok("agent", order.join(", else ")),
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
        (None, None) if config.agent.name.is_some() => match team(workspace, config, false, &[]) {
            Ok(team) => agents_found(config, &team.rules.order),
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
    for (name, problem) in notify::unusable(workspace, config) {
        let hint = "set it, or remove the entry [[notify]]";
        findings.push(Finding::warning("notify", format!("`{name}` is not told: it {problem}"), hint));
    }
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
    findings.extend(verify.iter().map(|line| defined(check(workspace, line), workspace, line)));
    findings
}

/// With what defines the check: whoever changes that does not change the verdict.
fn defined(mut finding: Finding, workspace: &Path, line: &str) -> Finding {
    let parts = Definition::of([line], &FilesNow::new(workspace)).describe();
    if finding.level == Level::Ok && !parts.is_empty() {
        finding.message.push_str(&format!(" (defined by: {})", parts.join("; ")));
    }
    finding
}

/// Secrets of the environment that the agent does not get, which may be a surprise to it.
fn withheld(workspace: &Path, config: &Config) -> Option<Finding> {
    let team = team(workspace, config, false, &[]).ok()?;
    let first = team.rules.order.first()?;
    let names = team.agents.iter().find(|agent| agent.name == *first)?.withheld();
    let text = format!("withheld from the agent: {} (`agent.pass_env` passes them on)", names.join(", "));
    (!names.is_empty()).then(|| Finding::ok("secrets", text))
}

/// A check that cannot run yet keeps no run from starting.
fn check(workspace: &Path, line: &str) -> Finding {
    let program = match run::valid(line, "verify command") {
        Ok(program) => program,
        Err(failure) => return Finding::failure("verify", failure),
    };
    match program.resolve(workspace) {
        Ok(_) => Finding::ok("verify", line),
        Err(error) => Finding::warning(
            "verify",
            format!("`{line}` cannot run yet: {error}"),
            "install it or give its full path; until it can run, it refutes every claim",
        ),
    }
}

fn command(about: &'static str, workspace: &Path, line: &str, what: &str) -> Finding {
    match run::resolvable(workspace, line, what) {
        Ok(()) => Finding::ok(about, line),
        Err(failure) => Finding::failure(about, failure),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn little_room_is_said() {
        assert_eq!(room_left(LITTLE_ROOM - 1).level, Level::Warning);
        assert_eq!(room_left(LITTLE_ROOM).level, Level::Ok);
    }

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
