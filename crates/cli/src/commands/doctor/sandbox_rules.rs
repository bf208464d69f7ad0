//! `wiggum doctor --sandbox`: the rules that are put around agents and checks here, path by path.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde::Serialize;
use wiggum_engine::{Agent, Sandbox};
use wiggum_workspace::git::Git;
use wiggum_workspace::sandbox::{Confinement, Mount};

use crate::args::DoctorArgs;
use crate::commands::{Surroundings, print_json, run, surroundings};
use crate::config::{self, Flags};
use crate::failure::Failure;
use crate::sandbox::sandbox;
use crate::team::team;
use crate::term::{self, harmless};

/// The rules around one program.
#[derive(Serialize)]
struct Rules {
    /// Whose they are.
    around: String,
    confined: bool,
    /// Directories with all that is in them, and single files.
    writable: Vec<PathBuf>,
    /// Caches in whose place a copy is seen, with where that is.
    copied: BTreeMap<PathBuf, PathBuf>,
    /// Places inside of those that are read-only all the same.
    read_only: Vec<PathBuf>,
    /// Places that look empty or cannot be opened.
    hidden: Vec<PathBuf>,
    /// Places inside of those that are seen.
    seen: Vec<PathBuf>,
    /// Variables of this environment that are not passed on.
    withheld: Vec<String>,
}

#[derive(Serialize)]
struct Printed {
    sandbox: String,
    rules: Vec<Rules>,
}

pub(super) fn print(args: &DoctorArgs) -> Result<ExitCode, Failure> {
    let here = surroundings()?;
    let config = config::resolve(&here.sources(&Flags::default())).map_err(Failure::from)?;
    let sandbox = sandbox(&here.workspace, &config)?;
    let private = private(&here)?;
    let git = Git::discover(&here.workspace)
        .map_err(|error| Failure::other(wiggum_engine::error::chain(&error)))?;
    let mut rules = Vec::new();
    // Without an agent there are still checks.
    let team = team(&here.workspace, &config, sandbox.kind.is_some(), &[]);
    for agent in team.iter().flat_map(|team| &team.agents) {
        rules.push(of_agent(&here.workspace, &sandbox, agent, &private)?);
    }
    rules.push(of_checks(&here.workspace, &sandbox, git.as_ref(), &private)?);
    let printed = Printed { sandbox: sandbox.says, rules };
    if args.output.json {
        return print_json(&printed);
    }
    let mut text = format!("sandbox: {}\n", harmless(&printed.sandbox));
    printed.rules.iter().for_each(|rules| text.push_str(&rules.text()));
    Ok(term::print(&text))
}

/// Where the private state is, or will be.
fn private(here: &Surroundings) -> Result<PathBuf, Failure> {
    let found = here.checkout()?.find()?;
    let root = config::state_root(&here.sources(&Flags::default()))?;
    Ok(found.map_or_else(|| root.path().join("this-checkout"), |dir| dir.path().to_owned()))
}

fn of_agent(workspace: &Path, sandbox: &Sandbox, agent: &Agent, private: &Path) -> Result<Rules, Failure> {
    let around = format!("the agent {}", agent.name);
    let places = vec![workspace.to_owned()];
    let walls = wiggum_engine::around_agent(sandbox, &run::own_path()?, agent, places, None, private);
    Ok(Rules::of(around, walls, private, agent.withheld()))
}

fn of_checks(
    workspace: &Path,
    sandbox: &Sandbox,
    git: Option<&Git>,
    private: &Path,
) -> Result<Rules, Failure> {
    // Where another repository is shown in the place of `.git`, that is inside of the workspace.
    let shared = git.filter(|_| !sandbox.kind.as_ref().is_some_and(|kind| kind.can_mount()));
    let walls = wiggum_engine::around_check(sandbox, &run::own_path()?, workspace, shared, private);
    let passed: Vec<&str> = sandbox.checks.pass_env.iter().map(String::as_str).collect();
    let walls = walls.filter(|_| !sandbox.checks.unconfined);
    Ok(Rules::of("checks".to_owned(), walls, private, wiggum_engine::withheld(&passed)))
}

impl Rules {
    fn of(around: String, walls: Option<Confinement>, private: &Path, withheld: Vec<String>) -> Self {
        let confined = walls.is_some();
        let Some(Confinement { writable, mounts, mut hidden, .. }) = walls else {
            return Self {
                around,
                confined,
                writable: Vec::new(),
                copied: BTreeMap::new(),
                read_only: Vec::new(),
                hidden: Vec::new(),
                seen: Vec::new(),
                withheld,
            };
        };
        let writable = writable.into_iter().filter(|path| path.exists()).collect();
        hidden.sort();
        let is_inside = hidden.iter().any(|hidden| private.starts_with(hidden));
        let (copied, same): (Vec<Mount>, Vec<Mount>) =
            mounts.into_iter().partition(|mount| mount.at != mount.from);
        let copied = copied.into_iter().map(|mount| (mount.at, mount.from)).collect();
        let hides = |path: &Path| hidden.iter().any(|hidden| path.starts_with(hidden));
        let (seen, inside): (Vec<Mount>, Vec<Mount>) = same.into_iter().partition(|mount| hides(&mount.at));
        // Those that can be written to are among the others.
        let only_read = inside.into_iter().filter(|mount| !mount.writable);
        let paths = |mounts: Vec<Mount>| mounts.into_iter().map(|mount| mount.at);
        Self {
            around,
            confined,
            writable,
            copied,
            read_only: only_read.map(|mount| mount.at).chain([private.to_owned()]).collect(),
            seen: paths(seen).chain(is_inside.then(|| private.to_owned())).collect(),
            hidden,
            withheld,
        }
    }

    fn text(&self) -> String {
        if !self.confined {
            return format!("\n{}: not confined\n{}", self.around, self.about_withheld());
        }
        let list = |words: &str, paths: &[PathBuf]| -> String {
            let lines = paths.iter().map(|path| format!("    {}\n", harmless(&path.display().to_string())));
            let lines: String = lines.collect();
            if lines.is_empty() { lines } else { format!("  {words}\n{lines}") }
        };
        [
            format!("\n{}:\n", harmless(&self.around)),
            list("may write to", &self.writable),
            list("may write to copies of", &self.copied()),
            list("may not write to", &self.read_only),
            list("sees nothing of", &self.hidden),
            list("sees of that all the same", &self.seen),
            self.about_withheld(),
        ]
        .concat()
    }

    fn copied(&self) -> Vec<PathBuf> {
        let line =
            |(place, copy): (&PathBuf, &PathBuf)| format!("{}, in {}", place.display(), copy.display());
        self.copied.iter().map(line).map(PathBuf::from).collect()
    }

    fn about_withheld(&self) -> String {
        if self.withheld.is_empty() {
            return String::new();
        }
        format!("  is not given\n    {}\n", harmless(&self.withheld.join(", ")))
    }
}
