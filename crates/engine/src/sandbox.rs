//! Where an agent may write: its workspace, its own directories, the caches of the tools it runs, the
//! temporary directory, and what its user adds. Checks and git of ours are not confined.
//!
//! The rule behind the lists: what runs at a login or in somebody else's shell, configures git or ssh,
//! or lies on the search path stays out, even where that means naming the entries of a directory
//! instead of the directory.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

use wiggum_agents::{Driver, Family};
use wiggum_workspace::git::Git;
use wiggum_workspace::sandbox::{Confinement, Kind};

use crate::agent::Agent;
use crate::engine::Engine;
use crate::state_dir::StateDir;

/// The sandbox of a run.
#[derive(Clone, Debug)]
pub struct Sandbox {
    /// Nothing where agents are not confined.
    pub kind: Option<Kind>,
    /// What is in force, and why nothing is, for people to read.
    pub says: String,
    /// What the user adds; `~/` is the home directory.
    pub writable: Vec<PathBuf>,
}

/// What nearly every program opens for writing.
const DEVICES: [&str; 9] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
    "/dev/shm",
];

/// Where tools keep what they fetched or built, which every agent's builds and tests need.
const CACHES: [&str; 18] = [
    "~/.cache",
    "~/.npm",
    "~/.node-gyp",
    "~/.yarn",
    "~/.pnpm-store",
    "~/.local/share/pnpm/store",
    "~/.bun/install/cache",
    "~/.deno",
    "~/.cargo/registry",
    "~/.cargo/git",
    "~/go/pkg",
    "~/.m2/repository",
    "~/.gradle/caches",
    "~/.gradle/daemon",
    "~/.gradle/wrapper",
    "~/.nuget/packages",
    "~/.ccache",
    "~/.terraform.d/plugin-cache",
];

/// Files beside such caches, by which their users wait for each other.
const CACHE_FILES: [&str; 3] =
    ["~/.cargo/.package-cache", "~/.cargo/.package-cache-mutate", "~/.cargo/.global-cache"];

/// Variables that say where such a cache is instead.
const CACHE_VARIABLES: [&str; 14] = [
    "XDG_CACHE_HOME",
    "CARGO_TARGET_DIR",
    "GOCACHE",
    "GOMODCACHE",
    "npm_config_cache",
    "NPM_CONFIG_CACHE",
    "YARN_CACHE_FOLDER",
    "BUN_INSTALL_CACHE_DIR",
    "DENO_DIR",
    "PIP_CACHE_DIR",
    "UV_CACHE_DIR",
    "CCACHE_DIR",
    "SCCACHE_DIR",
    "PRE_COMMIT_HOME",
];

/// Homes of agents without a driver of their own.
const OTHER_AGENTS: [&str; 12] = [
    "~/.cursor",
    "~/.qwen",
    "~/.goose",
    "~/.crush",
    "~/.kiro",
    "~/.kimi",
    "~/.grok",
    "~/.factory",
    "~/.augment",
    "~/.continue",
    "~/.cline",
    "~/.pi",
];

/// Directories that hold one entry for each program: an unknown agent gets those that are there.
const SHARED: [(&str, &str); 3] = [
    ("XDG_CONFIG_HOME", "~/.config"),
    ("XDG_DATA_HOME", "~/.local/share"),
    ("XDG_STATE_HOME", "~/.local/state"),
];

/// Entries of those that somebody else runs, or that say what somebody else may do.
const NOT_SHARED: [&str; 21] = [
    "applications",
    "autostart",
    "bash",
    "bash-completion",
    "containers",
    "dbus-1",
    "direnv",
    "environment.d",
    "fish",
    "flatpak",
    "gh",
    "git",
    "gnupg",
    "keyrings",
    "mise",
    "nushell",
    "nvim",
    "plasma-workspace",
    "systemd",
    "wiggum",
    "zsh",
];

impl Engine<'_> {
    /// The walls around an agent that is about to be started.
    pub(crate) fn confinement(&self, agent: &Agent) -> Option<Confinement> {
        let sandbox = &self.settings.sandbox;
        let kind = sandbox.kind.clone()?;
        let places = Places { home: home(), env: environment(agent) };
        let inner = Inner::of(&self.dir, &self.dir.reports(self.journal.id), self.git.as_ref());
        let closed = Closed { workspace: &self.settings.workspace, names: &self.settings.closed };
        let mut writable = match &kind {
            Kind::Landlock(_) if !closed.names.is_empty() => [closed.others(), inner.needed.clone()].concat(),
            Kind::Landlock(_) | Kind::Bwrap { .. } => vec![self.settings.workspace.clone()],
        };
        // A work tree's own and the one it shares with others may both lie elsewhere.
        let repository = self.git.iter().flat_map(|git| [git.git_dir(), git.common_dir()]);
        writable.extend(repository.filter_map(|dir| dir.canonicalize().ok()));
        writable.extend(DEVICES.iter().map(PathBuf::from));
        writable.extend(places.temporary());
        writable.extend(places.caches());
        writable.extend(places.own(agent.driver.as_ref()));
        writable.extend(sandbox.writable.iter().filter_map(|path| places.at_home(path)));
        Some(Confinement {
            kind,
            helper: self.settings.wiggum.clone(),
            writable: outermost(writable),
            read_only: [inner.read_only, closed.entries()].concat(),
            writable_again: inner.needed,
        })
    }
}

/// What is inside the workspace and not the agent's, for a sandbox that knows exceptions.
struct Inner {
    read_only: Vec<PathBuf>,
    needed: Vec<PathBuf>,
}

impl Inner {
    /// An agent may add tasks, which takes the backlog's lock, and report through its MCP server; the
    /// journal is not its to write.
    fn of(dir: &StateDir, reports: &Path, git: Option<&Git>) -> Self {
        let hooks =
            git.into_iter().flat_map(|git| ["hooks", "config"].map(|name| git.common_dir().join(name)));
        let lock = dir.backlog_lock();
        drop(fs::OpenOptions::new().append(true).create(true).open(&lock));
        let is_plain = |path: &PathBuf| fs::symlink_metadata(path).is_ok_and(|found| !found.is_symlink());
        Self {
            read_only: [dir.path().to_owned()].into_iter().chain(hooks).collect(),
            needed: [lock, reports.to_owned()].into_iter().filter(is_plain).collect(),
        }
    }
}

/// Entries of the workspace in which a file means something: an approval, an answer.
struct Closed<'a> {
    workspace: &'a Path,
    names: &'a [String],
}

impl Closed<'_> {
    fn entries(&self) -> Vec<PathBuf> {
        self.all().filter(|path| self.has(path)).collect()
    }

    /// What else is in the workspace now, for Landlock, which knows no exceptions; so nothing new can be put
    /// beside it.
    fn others(&self) -> Vec<PathBuf> {
        let is_ours = |path: &Path| path.file_name().is_some_and(|name| name == StateDir::NAME);
        self.all().filter(|path| !self.has(path) && !is_ours(path) && !path.is_symlink()).collect()
    }

    fn all(&self) -> impl Iterator<Item = PathBuf> + use<> {
        fs::read_dir(self.workspace).into_iter().flatten().flatten().map(|entry| entry.path())
    }

    fn has(&self, path: &Path) -> bool {
        path.file_name().is_some_and(|name| self.names.iter().any(|closed| name.eq_ignore_ascii_case(closed)))
    }
}

struct Places {
    home: Option<PathBuf>,
    env: BTreeMap<String, PathBuf>,
}

impl Places {
    fn at_home(&self, path: impl AsRef<Path>) -> Option<PathBuf> {
        let path = path.as_ref();
        match path.strip_prefix("~") {
            Ok(rest) => Some(self.home.as_ref()?.join(rest)),
            Err(_) => path.is_absolute().then(|| path.to_owned()),
        }
    }

    fn all_at_home<'a>(&'a self, paths: &'a [&str]) -> impl Iterator<Item = PathBuf> + 'a {
        paths.iter().filter_map(|path| self.at_home(path))
    }

    fn variables<'a>(&'a self, names: &'a [&str]) -> impl Iterator<Item = PathBuf> + 'a {
        names.iter().filter_map(|name| self.env.get(*name)).filter(|path| path.is_absolute()).cloned()
    }

    fn temporary(&self) -> Vec<PathBuf> {
        ["/tmp", "/var/tmp"].iter().map(PathBuf::from).chain(self.variables(&["TMPDIR"])).collect()
    }

    fn caches(&self) -> Vec<PathBuf> {
        let cargo = self.env.get("CARGO_HOME").filter(|path| path.is_absolute());
        let moved = cargo.into_iter().flat_map(|home| {
            ["registry", "git", ".package-cache", ".package-cache-mutate", ".global-cache"]
                .map(|name| home.join(name))
        });
        let usual = self.all_at_home(&CACHES).chain(self.all_at_home(&CACHE_FILES));
        usual.chain(self.variables(&CACHE_VARIABLES)).chain(moved).collect()
    }

    /// An agent's own places. Of one we do not know, all that could be.
    fn own(&self, driver: &dyn Driver) -> Vec<PathBuf> {
        let known = driver.own_paths();
        if known.is_empty() {
            return self.of_anybody();
        }
        let known: Vec<PathBuf> = known
            .iter()
            .filter_map(|path| self.at_home(path))
            .chain(self.variables(driver.path_variables()))
            .collect();
        known.iter().for_each(|path| bring_into_being(path));
        known
    }

    fn of_anybody(&self) -> Vec<PathBuf> {
        let families = Family::ALL.iter().flat_map(|family| self.all_at_home(family.own_paths()));
        let others = self.all_at_home(&OTHER_AGENTS);
        let variables = Family::ALL.iter().flat_map(|family| self.variables(family.path_variables()));
        let shared = SHARED.iter().filter_map(|(variable, usual)| {
            let moved = self.env.get(*variable).filter(|path| path.is_absolute()).cloned();
            moved.or_else(|| self.at_home(usual))
        });
        let shared = shared.flat_map(|dir| fs::read_dir(dir).into_iter().flatten().flatten());
        let shared = shared
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
            .filter(|entry| !NOT_SHARED.iter().any(|name| entry.file_name() == *name))
            .map(|entry| entry.path());
        families.chain(others).chain(variables).chain(shared).collect()
    }
}

/// Nobody can be allowed to write to what is not there, and an agent's first start makes its
/// directory. Where that fails, the agent says so better than we could.
fn bring_into_being(path: &Path) {
    if path.exists() {
        return;
    }
    match path.extension().and_then(|extension| extension.to_str()) {
        None => drop(fs::create_dir_all(path)),
        Some("json") => drop(fs::write(path, "{}\n")),
        Some(_) => drop(fs::write(path, "")),
    }
}

/// Without those that lie in another one. They would add nothing, except where the agent itself had
/// put a link in their place, to somewhere it may not write.
fn outermost(paths: Vec<PathBuf>) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = paths.iter().map(|path| without_detours(path)).collect();
    paths.sort();
    paths.dedup();
    let mut kept: Vec<PathBuf> = Vec::new();
    for path in paths {
        if !kept.iter().any(|outer| path.starts_with(outer)) {
            kept.push(path);
        }
    }
    kept
}

/// `/a/../b` is not in `/a`.
fn without_detours(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => plain.push(part),
        }
    }
    plain
}

fn home() -> Option<PathBuf> {
    std::env::var_os("HOME").filter(|home| !home.is_empty()).map(PathBuf::from)
}

/// What an agent finds in its environment, as far as it can be a path.
fn environment(agent: &Agent) -> BTreeMap<String, PathBuf> {
    let ours = std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into())));
    let added = agent.env.iter().map(|(name, value)| (name.clone(), PathBuf::from(value)));
    ours.chain(added).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(paths: &[&str]) -> Vec<PathBuf> {
        paths.iter().map(PathBuf::from).collect()
    }

    #[test]
    fn a_place_inside_another_is_left_out() {
        let kept = outermost(paths(&["/a/b", "/a-b", "/a", "/a/b/c", "/c/d", "/c/d", "/a/../e"]));
        assert_eq!(kept, paths(&["/a", "/a-b", "/c/d", "/e"]));
    }

    #[test]
    fn of_an_unknown_agent_shells_and_git_stay_out() {
        let home = tempfile::tempdir().unwrap();
        for dir in [".config/git", ".config/fish", ".config/some-agent", ".local/share/some-agent", ".ssh"] {
            fs::create_dir_all(home.path().join(dir)).unwrap();
        }
        std::os::unix::fs::symlink(home.path().join(".ssh"), home.path().join(".config/link")).unwrap();
        let places = Places { home: Some(home.path().to_owned()), env: BTreeMap::new() };
        let all = places.of_anybody();
        let has = |dir: &str| all.contains(&home.path().join(dir));
        assert!(has(".config/some-agent") && has(".local/share/some-agent") && has(".claude"));
        assert!(!has(".config/git") && !has(".config/fish") && !has(".config/link") && !has(".config"));
    }

    #[test]
    fn where_a_directory_was_moved_to_counts() {
        let env = [("CARGO_HOME", "/big/cargo"), ("XDG_CACHE_HOME", "relative"), ("GOCACHE", "/big/go")];
        let env = env.map(|(name, path)| (name.to_owned(), PathBuf::from(path))).into();
        let caches = Places { home: None, env }.caches();
        assert!(caches.contains(&"/big/cargo/registry".into()) && caches.contains(&"/big/go".into()));
        assert!(
            caches.iter().all(|path| path.is_absolute() && path != Path::new("/big/cargo")),
            "{caches:?}"
        );
    }
}
