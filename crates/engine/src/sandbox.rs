//! Where an agent may write: its workspace, its own directories, the caches of the tools it runs, the
//! temporary directory, and what its user adds. Checks and git of ours are confined too, since they run tests,
//! hooks and filters that an agent may have written.
//!
//! The rule behind the lists: what runs at a login or in somebody else's shell, configures git or ssh,
//! or lies on the search path stays out, even where that means naming the entries of a directory
//! instead of the directory.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};
use wiggum_agents::{Driver, Family};
use wiggum_core::event::Event;
use wiggum_workspace::git::{Git, GitError};
use wiggum_workspace::sandbox::{Confinement, Kind, Mount};

use crate::agent::Agent;
use crate::engine::{Engine, Settings};
use crate::packages::Copied;
use crate::state_dir::StateDir;

/// The sandbox of a run.
#[derive(Clone, Debug, Default)]
pub struct Sandbox {
    /// Nothing where agents are not confined.
    pub kind: Option<Kind>,
    /// How git is confined: it is started often, so by the way that costs least.
    pub git: Option<Kind>,
    /// What is in force, and why nothing is, for people to read.
    pub says: String,
    /// What the user adds; `~/` is the home directory.
    pub writable: Vec<PathBuf>,
    /// Credentials of other programs and sockets of daemons that are not hidden.
    pub seen: Vec<PathBuf>,
    /// Copies of the caches of packages are seen in their place, where the sandbox can do that.
    pub copies_packages: bool,
    pub checks: OfChecks,
}

/// What is different for checks. The default is that nothing is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OfChecks {
    /// None of them is confined.
    pub unconfined: bool,
    /// The commands that are not.
    pub except: Vec<String>,
    /// Variables that they get although they look like secrets.
    pub pass_env: Vec<String>,
}

impl OfChecks {
    /// Is a check of this command confined?
    pub fn confines(&self, command: &str) -> bool {
        !self.unconfined && !self.except.iter().any(|other| other.trim() == command.trim())
    }
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

/// Where tools keep what they fetched or built, which every agent's builds and tests need; with the program whose
/// first use would make it. Many use the first one.
const CACHES: [(&str, &str); 18] = [
    ("~/.cache", ""),
    ("~/.npm", "npm"),
    ("~/.node-gyp", "node-gyp"),
    ("~/.yarn", "yarn"),
    ("~/.pnpm-store", "pnpm"),
    ("~/.local/share/pnpm/store", "pnpm"),
    ("~/.bun/install/cache", "bun"),
    ("~/.deno", "deno"),
    ("~/.cargo/registry", "cargo"),
    ("~/.cargo/git", "cargo"),
    ("~/go/pkg", "go"),
    ("~/.m2/repository", "java"),
    ("~/.gradle/caches", "java"),
    ("~/.gradle/daemon", "java"),
    ("~/.gradle/wrapper", "java"),
    ("~/.nuget/packages", "dotnet"),
    ("~/.ccache", "ccache"),
    ("~/.terraform.d/plugin-cache", "terraform"),
];

/// Files beside the caches of cargo, by which its users wait for each other.
const CARGO_FILES: [&str; 3] = [".package-cache", ".package-cache-mutate", ".global-cache"];

/// Variables that say where what is built goes, which its user wants to find there.
const OUTPUT_VARIABLES: [&str; 1] = ["CARGO_TARGET_DIR"];

/// Variables that say where such a cache is instead.
const CACHE_VARIABLES: [&str; 13] = [
    "XDG_CACHE_HOME",
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

/// Directories that hold one entry for each program: an unknown agent gets those of its own name.
const SHARED: [(&str, &str); 3] = [
    ("XDG_CONFIG_HOME", "~/.config"),
    ("XDG_DATA_HOME", "~/.local/share"),
    ("XDG_STATE_HOME", "~/.local/state"),
];

/// Programs that run others: their directories are not an agent's.
const NO_AGENTS: [&str; 16] = [
    "sh", "bash", "dash", "zsh", "fish", "env", "nice", "timeout", "node", "npx", "python", "python3", "uv",
    "git", "wiggum", "docker",
];

/// Where programs keep what opens other doors. An agent has its own, and names in words what it needs beyond.
const CREDENTIALS: [&str; 36] = [
    "~/.ssh",
    "~/.gnupg",
    "~/.aws",
    "~/.azure",
    "~/.kube",
    "~/.oci",
    "~/.boto",
    "~/.s3cfg",
    "~/.netrc",
    "~/.pgpass",
    "~/.my.cnf",
    "~/.pypirc",
    "~/.vault-token",
    "~/.git-credentials",
    "~/.config/git/credentials",
    "~/.config/gh",
    "~/.config/hub",
    "~/.config/glab-cli",
    "~/.config/gcloud",
    "~/.config/doctl",
    "~/.config/op",
    "~/.config/rclone",
    "~/.config/containers/auth.json",
    "~/.docker/config.json",
    "~/.cargo/credentials",
    "~/.cargo/credentials.toml",
    "~/.gem/credentials",
    "~/.terraform.d/credentials.tfrc.json",
    "~/.password-store",
    "~/.local/share/keyrings",
    "~/.local/share/kwalletd",
    "~/.mozilla",
    "~/.thunderbird",
    "~/.config/google-chrome",
    "~/.config/chromium",
    "~/.config/BraveSoftware",
];

/// Those of a user's own daemons, below the directory that a variable names.
const OF_USER: [&str; 7] =
    ["bus", "systemd", "docker.sock", "podman", "gnupg", "keyring", "ssh-agent.socket"];

/// Sockets of daemons that run what they are asked, and directories of such.
const SOCKETS: [&str; 28] = [
    "/run/docker.sock",
    "/run/containerd",
    "/run/crio",
    "/run/podman",
    "/run/dbus/system_bus_socket",
    "/run/systemd/private",
    "/run/systemd/journal/dev-log",
    "/run/snapd.socket",
    "/run/snapd-snap.socket",
    "/run/libvirt",
    "/run/incus",
    "/run/lxd.socket",
    "/run/screen",
    "/run/supervisor.sock",
    "/run/supervisord.sock",
    "/run/acpid.socket",
    "/run/udisks2",
    "/run/WSL",
    "/var/lib/lxd/unix.socket",
    "/var/lib/incus/unix.socket",
    "/var/snap/lxd/common/lxd/unix.socket",
    "/tmp/.X11-unix",
    "~/.docker/run",
    "~/.docker/desktop",
    "~/.colima",
    "~/.lima",
    "~/.orbstack/run",
    "~/.screen",
];

impl Sandbox {
    /// How [`Sandbox::says`] begins where agents are not confined, and how it goes on where somebody wants that.
    pub const NONE: &str = "none";
    pub const AS_CONFIGURED: &str = ", as configured";

    /// Can a confined agent write here, though this is private state? Landlock knows no exceptions inside of what may
    /// be written; bwrap does.
    pub fn leaves_open(&self, private: &Path) -> bool {
        let places = Places::new(own_environment());
        let writable = || {
            let added = self.writable.iter().filter_map(|path| places.at_home(path));
            places.temporary().into_iter().chain(places.caches()).chain(places.outputs()).chain(added)
        };
        match &self.kind {
            Some(Kind::Landlock(_)) => writable().any(|place| private.starts_with(place)),
            Some(Kind::Bwrap { .. }) | None => false,
        }
    }

    /// What is in force, with what it does not hold for a loop whose private state is here.
    pub fn says_of(&self, private: &Path) -> String {
        match self.leaves_open(private) {
            true => {
                format!(
                    "{}; the loop's private state is among these: state_root moves it elsewhere",
                    self.says
                )
            }
            false => self.says.clone(),
        }
    }
}

/// What a confined program does not see, for a sandbox that can hide something.
struct Hidden {
    places: Vec<PathBuf>,
}

impl Sandbox {
    /// Where every confined program writes, whoever it is.
    fn written(&self, places: &Places) -> Vec<PathBuf> {
        let named = self.writable.iter().filter_map(|path| places.at_home(path));
        places.temporary().into_iter().chain(places.outputs()).chain(named).collect()
    }

    /// What the user named, by which nothing else may be hidden.
    fn named(&self, places: &Places) -> Vec<PathBuf> {
        self.writable
            .iter()
            .chain(&self.seen)
            .filter_map(|path| places.at_home(path))
            .map(|path| places.real(&path))
            .collect()
    }

    /// Credentials of other programs, sockets of daemons that run what they are asked, and the private state of all
    /// other stores than this one. `own` are the places of the agent itself.
    fn hidden(&self, places: &Places, own: &[PathBuf], private: &Path) -> Hidden {
        if !self.kind.as_ref().is_some_and(Kind::can_mount) {
            return Hidden { places: Vec::new() };
        }
        let shown: Vec<PathBuf> =
            self.named(places).into_iter().chain(own.iter().map(|path| places.real(path))).collect();
        // Somebody who keeps state elsewhere may keep more there.
        let stores = private.parent().filter(|root| root.ends_with("wiggum")).map(Path::to_owned);
        let found = places
            .credentials()
            .into_iter()
            .chain(places.sockets())
            .chain(stores)
            .map(|path| places.real(&path));
        let is_hidden = |path: &PathBuf| {
            path.exists() && path.parent().is_some() && !shown.iter().any(|shown| path.starts_with(shown))
        };
        Hidden { places: outermost(found.filter(is_hidden).collect()) }
    }

    /// The caches in whose place copies of them are seen. `shared` are the places where a confined program writes
    /// anyway, and `private` is where the private state is: that has to stay where it is seen.
    fn copied(&self, places: &Places, shared: &[PathBuf], private: &Path) -> Vec<Copied> {
        let can_mount = self.kind.as_ref().is_some_and(Kind::can_mount);
        // Beside all stores, where no agent can write.
        let root = private.parent().filter(|_| self.copies_packages && can_mount);
        let Some(root) = root.map(|root| real(root.to_owned()).join("packages")) else { return Vec::new() };
        let private = places.real(private);
        let shared: Vec<PathBuf> = shared.iter().map(|path| places.real(path)).collect();
        let found =
            places.caches().into_iter().filter(|path| path.exists()).map(|path| places.real(&path)).collect();
        let is_shared = |path: &Path| shared.iter().any(|shared| path.starts_with(shared));
        let (copied, written): (Vec<PathBuf>, Vec<PathBuf>) =
            outermost(found).into_iter().partition(|place| !is_shared(place) && !private.starts_with(place));
        // Whoever can write to the copies could have us mount something else.
        if is_shared(&root) || written.iter().any(|place| root.starts_with(place)) {
            return Vec::new();
        }
        copied.into_iter().map(|place| Copied::of(&root, place, places.home.as_deref())).collect()
    }
}

/// Places that are written to although they lie inside of a cache of which a copy is seen.
fn within(copied: &[Copied], places: &Places, writable: &[PathBuf]) -> Vec<Mount> {
    // A link in its place may be an agent's, who would have something else written to.
    let is_plain = |path: &&PathBuf| fs::symlink_metadata(path).is_ok_and(|found| !found.is_symlink());
    let is_inside = |path: &PathBuf| copied.iter().any(|cache| cache.has_place_for(path));
    let inside =
        outermost(writable.iter().filter(is_plain).map(|path| places.real(path)).filter(is_inside).collect());
    inside.into_iter().map(|path| Mount { from: path.clone(), at: path, writable: true }).collect()
}

impl Hidden {
    /// What has to be seen although it lies inside of something that is hidden.
    fn seen(&self, writable: &[PathBuf], named: &[PathBuf]) -> Vec<Mount> {
        let is_inside = |path: &&PathBuf| {
            path.exists() && self.places.iter().any(|hidden| path.starts_with(hidden) && *path != hidden)
        };
        let may_write = |path: &PathBuf| writable.iter().any(|place| path.starts_with(place));
        let inside = outermost(writable.iter().chain(named).filter(is_inside).cloned().collect());
        let mount =
            |path: &PathBuf| Mount { from: path.clone(), at: path.clone(), writable: may_write(path) };
        inside.iter().map(mount).collect()
    }
}

/// Where a path is, though it may be a link to somewhere else.
fn seat(path: &Path) -> PathBuf {
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => real(parent.to_owned()).join(name),
        (None, _) | (_, None) => path.to_owned(),
    }
}

/// Where a path leads; nothing can be put over a link.
fn real(path: PathBuf) -> PathBuf {
    path.canonicalize().unwrap_or(path)
}

impl Engine<'_> {
    /// What confined agents need and could not make themselves. Where it cannot be made, the tool that misses it says
    /// so better than we could.
    pub(crate) fn prepare_confinement(&mut self) {
        if self.settings.sandbox.kind.is_none() {
            return;
        }
        let with_own = self.settings.agents.iter().filter(|agent| !agent.env.is_empty());
        let environments = with_own.map(environment).chain([own_environment().collect()]);
        let all: Vec<Places> = environments.map(Places::new).collect();
        for places in all {
            places.make_caches();
            self.copy_caches(&places);
        }
    }

    fn copy_caches(&mut self, places: &Places) {
        let sandbox = &self.settings.sandbox;
        let shared = [vec![self.settings.workspace().to_owned()], sandbox.written(places)].concat();
        let copied = sandbox.copied(places, &shared, self.dir.path());
        let is_shared = |path: PathBuf| {
            let path = places.real(&path);
            shared.iter().any(|place| path.starts_with(places.real(place)))
        };
        let own = places.caches().into_iter().filter(|path| path.exists()).any(|path| !is_shared(path));
        if copied.is_empty()
            && own
            && sandbox.copies_packages
            && sandbox.kind.as_ref().is_some_and(Kind::can_mount)
        {
            let message =
                "agents share your caches of packages, since the private state lies where agents can write";
            self.record(Event::Noticed { task: None, message: message.to_owned() });
        }
        let mut made = Vec::new();
        for cache in copied {
            let place = cache.place().display().to_string();
            match cache.make() {
                Ok(true) => made.push(place),
                Ok(false) => {}
                Err(error) => {
                    let message =
                        format!("{place} cannot be copied for agents, who cannot write to it: {error}");
                    self.record(Event::Noticed { task: None, message });
                }
            }
        }
        if !made.is_empty() {
            let message =
                format!("agents and checks get copies of {}; yours stay as they are", made.join(", "));
            self.record(Event::Noticed { task: None, message });
        }
    }

    /// The walls around an agent that is about to be started.
    pub(crate) fn confinement(&self, agent: &Agent) -> Option<Confinement> {
        let settings = &self.settings;
        let shared = self.git.as_ref().filter(|_| self.own.is_none());
        let inner = Inner::of(&self.dir, self.dir.agent_dir(self.journal.id), shared);
        let closed = Closed { workspace: settings.workspace(), names: &settings.closed };
        let of_workspace = match &settings.sandbox.kind {
            Some(Kind::Landlock(_)) if !closed.names.is_empty() => closed.others(),
            Some(Kind::Landlock(_) | Kind::Bwrap { .. }) | None => vec![settings.workspace().to_owned()],
        };
        let places = [of_workspace, inner.needed.clone()].concat();
        let private = self.dir.path();
        let walls = around_agent(&settings.sandbox, &settings.wiggum, agent, places, shared, private)?;
        Some(Confinement {
            read_only: [inner.read_only, closed.entries()].concat(),
            writable_again: inner.needed,
            mounts: [walls.mounts, self.private_mounts()].concat(),
            ..walls
        })
    }

    /// The walls around a check in the workspace.
    pub(crate) fn around_own_check(&self) -> Option<Confinement> {
        let shared = self.git.as_ref().filter(|_| self.own.is_none());
        self.around_check_in(self.settings.workspace(), shared, self.private_mounts())
    }

    /// The walls around a check in the clean checkout, which has a repository of its own.
    pub(crate) fn around_clean_check(&self) -> Option<Confinement> {
        let (root, workspace) = (self.clean_root(), self.settings.workspace());
        let mut walls = self.around_check_in(&root, None, Vec::new())?;
        // What lies in the work tree, ignored by git, is not to be found by its path either.
        if walls.kind.can_mount() && !root.starts_with(workspace) {
            walls.hidden.push(workspace.to_owned());
            // Its history is the repository's, which no agent can write to.
            let git = self
                .git
                .iter()
                .flat_map(|git| [git.git_dir(), git.common_dir()])
                .map(|dir| real(dir.to_owned()));
            let inside = outermost(git.filter(|dir| dir.starts_with(workspace)).collect());
            walls.mounts.extend(inside.into_iter().map(|dir| Mount {
                from: dir.clone(),
                at: dir,
                writable: false,
            }));
        }
        Some(walls)
    }

    fn around_check_in(&self, root: &Path, shared: Option<&Git>, mounts: Vec<Mount>) -> Option<Confinement> {
        let inner = Inner::of(&self.dir, self.dir.agent_dir(self.journal.id), shared);
        let (sandbox, helper) = (&self.settings.sandbox, &self.settings.wiggum);
        let walls = around_check(sandbox, helper, root, shared, self.dir.path())?;
        Some(Confinement {
            read_only: inner.read_only,
            // A checkout of ours lies in the private state.
            writable_again: vec![real(root.to_owned())],
            mounts: [walls.mounts, mounts].concat(),
            ..walls
        })
    }
}

/// Makes the caches that tools of this user have: whoever is confined cannot make them.
pub fn make_caches() {
    Places::new(own_environment()).make_caches();
}

/// The walls around an agent that works there. `private` is where the private state of its loop is.
pub fn around_agent(
    sandbox: &Sandbox,
    helper: &Path,
    agent: &Agent,
    workspace: Vec<PathBuf>,
    git: Option<&Git>,
    private: &Path,
) -> Option<Confinement> {
    let places = Places::new(environment(agent));
    let own = places.own(agent.driver.as_ref());
    around(sandbox, helper, &places, [workspace, own.clone()].concat(), &own, git, private)
}

/// The walls around a check that runs there: it writes where an agent does, but for an agent's own directories.
pub fn around_check(
    sandbox: &Sandbox,
    helper: &Path,
    root: &Path,
    git: Option<&Git>,
    private: &Path,
) -> Option<Confinement> {
    let places = Places::new(own_environment());
    around(sandbox, helper, &places, vec![root.to_owned()], &[], git, private)
}

fn around(
    sandbox: &Sandbox,
    helper: &Path,
    places: &Places,
    mut writable: Vec<PathBuf>,
    own: &[PathBuf],
    git: Option<&Git>,
    private: &Path,
) -> Option<Confinement> {
    let kind = sandbox.kind.clone()?;
    // A work tree's own repository and the one it shares with others may both lie elsewhere.
    let repository = git.into_iter().flat_map(|git| [git.git_dir(), git.common_dir()]);
    writable.extend(repository.filter_map(|dir| dir.canonicalize().ok()));
    writable.extend(DEVICES.iter().map(PathBuf::from));
    writable.extend(sandbox.written(places));
    let caches = places.caches();
    // An agent may count a cache of packages among its own places.
    writable.retain(|path| !(own.contains(path) && caches.contains(path)));
    let copied = sandbox.copied(places, &writable, private);
    let is_copied = |path: &PathBuf| {
        let path = places.real(path);
        copied.iter().any(|cache| path.starts_with(cache.place()))
    };
    let inside = within(&copied, places, &writable);
    writable.retain(|path| {
        let seat = places.seat(path);
        !copied.iter().any(|cache| seat.starts_with(cache.place()))
    });
    writable.extend(caches.into_iter().filter(|path| !is_copied(path)));
    let hidden = sandbox.hidden(places, own, private);
    // Before what lies in another one is left out: that may be hidden in between.
    let seen = hidden.seen(&writable, &sandbox.named(places));
    let mounts = copied.iter().flat_map(Copied::mounts).chain(inside).chain(seen).collect();
    Some(Confinement {
        kind,
        helper: helper.to_owned(),
        read_only: Vec::new(),
        writable_again: Vec::new(),
        mounts,
        hidden: hidden.places,
        writable: outermost(writable),
    })
}

/// The walls around git while it may run hooks, filters and monitors.
pub(crate) fn around_git(settings: &Settings, git: &Git) -> Result<Option<Confinement>, GitError> {
    let Some(kind) = settings.sandbox.git.clone() else { return Ok(None) };
    let places = Places::new(own_environment());
    let mut writable = vec![git.root().to_owned()];
    writable.extend([git.git_dir(), git.common_dir()].iter().filter_map(|dir| dir.canonicalize().ok()));
    writable.extend(DEVICES.iter().map(PathBuf::from));
    writable.extend(settings.sandbox.written(&places));
    writable.extend(places.caches());
    if git.signs()? {
        let moved = places.variables(&["GNUPGHOME"]).next();
        writable.extend(moved.or_else(|| places.at_home("~/.gnupg")));
    }
    Ok(Some(Confinement {
        kind,
        helper: settings.wiggum.clone(),
        writable: outermost(writable),
        read_only: Vec::new(),
        writable_again: Vec::new(),
        hidden: Vec::new(),
        mounts: Vec::new(),
    }))
}

/// What is inside the workspace and not the agent's, for a sandbox that knows exceptions.
struct Inner {
    read_only: Vec<PathBuf>,
    needed: Vec<PathBuf>,
}

impl Inner {
    /// The journal and the rest of the private state are not the agent's to write, wherever they lie;
    /// only its own directory there is.
    fn of(dir: &StateDir, agent: PathBuf, git: Option<&Git>) -> Self {
        let hooks =
            git.into_iter().flat_map(|git| ["hooks", "config"].map(|name| git.common_dir().join(name)));
        let shared = ["loops", "store"].map(|name| dir.shared().join(name));
        let is_plain = |path: &PathBuf| fs::symlink_metadata(path).is_ok_and(|found| !found.is_symlink());
        Self {
            // Nothing can be mounted at a path that leads through a link.
            read_only: [dir.path().to_owned()]
                .into_iter()
                .chain(shared)
                .chain(hooks)
                .map(|path| seat(&path))
                .collect(),
            needed: [agent].into_iter().filter(is_plain).map(|path| seat(&path)).collect(),
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
    /// Where the directories of places really are: there are few of them, and each is asked for often.
    parents: RefCell<HashMap<PathBuf, PathBuf>>,
}

impl Places {
    fn new(env: impl IntoIterator<Item = (String, PathBuf)>) -> Self {
        Self { home: home(), env: env.into_iter().collect(), parents: RefCell::default() }
    }

    /// Where a path is, though it may be a link to somewhere else.
    fn seat(&self, path: &Path) -> PathBuf {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return path.to_owned() };
        let mut parents = self.parents.borrow_mut();
        let known = parents.entry(parent.to_owned()).or_insert_with(|| real(parent.to_owned()));
        known.join(name)
    }

    /// Where a path leads; nothing can be put over a link.
    fn real(&self, path: &Path) -> PathBuf {
        let seat = self.seat(path);
        match fs::symlink_metadata(&seat) {
            Ok(found) if found.is_symlink() => real(seat),
            Ok(_) => seat,
            Err(_) => path.to_owned(),
        }
    }

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
        let place = |name: &&str| {
            let (variable, rest) =
                name.split_once('/').map_or((*name, None), |(name, rest)| (name, Some(rest)));
            let path = self.env.get(variable).filter(|path| path.is_absolute())?;
            // A slash at the end would make a directory of a file.
            Some(rest.map_or_else(|| path.clone(), |rest| path.join(rest)))
        };
        names.iter().filter_map(place)
    }

    fn temporary(&self) -> Vec<PathBuf> {
        ["/tmp", "/var/tmp"].iter().map(PathBuf::from).chain(self.variables(&["TMPDIR"])).collect()
    }

    fn credentials(&self) -> Vec<PathBuf> {
        let tokens = self.at_home("~/.config/wiggum").into_iter().flat_map(fs::read_dir).flatten().flatten();
        let tokens = tokens
            .map(|entry| entry.path())
            .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().contains("token")));
        let moved = self.variables(&["GNUPGHOME", "GH_CONFIG_DIR", "KUBECONFIG"]);
        self.all_at_home(&CREDENTIALS).chain(tokens).chain(moved).collect()
    }

    /// Where such sockets are, also where a variable says it.
    fn sockets(&self) -> Vec<PathBuf> {
        let user = rustix::process::getuid().as_raw();
        let tmux = self.env.get("TMUX_TMPDIR").map_or("/tmp".into(), Clone::clone);
        let named = self.variables(&["SSH_AUTH_SOCK"]);
        // Some containers say that it is /tmp.
        let own = self.variables(&["XDG_RUNTIME_DIR"]).flat_map(|dir| OF_USER.map(|name| dir.join(name)));
        let addresses = ["DOCKER_HOST", "CONTAINER_HOST", "DBUS_SESSION_BUS_ADDRESS"];
        let addresses = addresses.iter().filter_map(|name| socket_of(self.env.get(*name)?.to_str()?));
        let usual = [format!("/run/user/{user}").into(), tmux.join(format!("tmux-{user}"))];
        self.all_at_home(&SOCKETS).chain(usual).chain(named).chain(own).chain(addresses).collect()
    }

    fn caches(&self) -> Vec<PathBuf> {
        let usual = CACHES.iter().filter_map(|(path, _)| self.cache(path));
        usual.chain(self.variables(&CACHE_VARIABLES)).chain(self.cargo_files()).collect()
    }

    /// Where users of a cache leave what they build.
    fn outputs(&self) -> impl Iterator<Item = PathBuf> {
        self.variables(&OUTPUT_VARIABLES)
    }

    fn cache(&self, path: &str) -> Option<PathBuf> {
        let of_cargo = path.strip_prefix("~/.cargo/").and_then(|rest| Some(self.moved_cargo()?.join(rest)));
        of_cargo.or_else(|| self.at_home(path))
    }

    fn moved_cargo(&self) -> Option<&PathBuf> {
        self.env.get("CARGO_HOME").filter(|path| path.is_absolute())
    }

    fn cargo_files(&self) -> impl Iterator<Item = PathBuf> {
        let home = self.moved_cargo().cloned().or_else(|| self.at_home("~/.cargo"));
        home.into_iter().flat_map(|home| CARGO_FILES.map(|name| home.join(name)))
    }

    /// Makes the caches of programs that are there.
    fn make_caches(&self) {
        for (path, program) in CACHES {
            let Some(path) = self.cache(path).filter(|path| !path.exists()) else { continue };
            if program.is_empty() || self.has_program(program) {
                drop(fs::create_dir_all(path));
            }
        }
        if self.has_program("cargo") {
            self.cargo_files().filter(|path| !path.exists()).for_each(|path| drop(fs::write(path, "")));
        }
        let moved = self.variables(&CACHE_VARIABLES).chain(self.variables(&OUTPUT_VARIABLES));
        moved.for_each(|path| drop(fs::create_dir_all(path)));
    }

    fn has_program(&self, name: &str) -> bool {
        let Some(path) = self.env.get("PATH") else { return false };
        std::env::split_paths(path).any(|directory| directory.join(name).is_file())
    }

    /// An agent's own places. Of one we do not know, all that could be.
    fn own(&self, driver: &dyn Driver) -> Vec<PathBuf> {
        let known = driver.own_paths();
        if known.is_empty() {
            return self.of_anybody(driver.program());
        }
        let known: Vec<PathBuf> = known
            .iter()
            .filter_map(|path| self.at_home(path))
            .chain(self.variables(driver.path_variables()))
            .collect();
        known.iter().for_each(|path| bring_into_being(path));
        known
    }

    /// Of an agent that is not known: the places of those that are, which it may start, and those that have its name.
    /// Whatever else it needs its user names.
    fn of_anybody(&self, program: Option<&str>) -> Vec<PathBuf> {
        let families = Family::ALL.iter().flat_map(|family| self.all_at_home(family.own_paths()));
        let others = self.all_at_home(&OTHER_AGENTS);
        let variables = Family::ALL.iter().flat_map(|family| self.variables(family.path_variables()));
        let is_own = |name: &&str| {
            let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
            is_plain && !name.is_empty() && !NO_AGENTS.contains(name)
        };
        let named = program.filter(is_own).into_iter().flat_map(|name| self.of_name(name));
        families.chain(others).chain(variables).chain(named).collect()
    }

    /// Directories of this name that are there. Nobody made a link to somewhere else of them.
    fn of_name(&self, name: &str) -> Vec<PathBuf> {
        let shared = SHARED.iter().filter_map(|(variable, usual)| {
            let moved = self.env.get(*variable).filter(|path| path.is_absolute()).cloned();
            Some(moved.or_else(|| self.at_home(usual))?.join(name))
        });
        let hidden = self.at_home(format!("~/.{name}"));
        let is_directory = |path: &PathBuf| fs::symlink_metadata(path).is_ok_and(|found| found.is_dir());
        shared.chain(hidden).filter(is_directory).collect()
    }
}

/// The file of `unix:///path` and of `unix:path=/path,guid=…`.
fn socket_of(address: &str) -> Option<PathBuf> {
    let rest = address.strip_prefix("unix:")?;
    let path = rest.strip_prefix("path=").or_else(|| rest.strip_prefix("//"))?;
    let path = path.split([',', ';']).next()?;
    path.starts_with('/').then(|| path.into())
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
    let added = agent.env.iter().map(|(name, value)| (name.clone(), PathBuf::from(value)));
    own_environment().chain(added).collect()
}

fn own_environment() -> impl Iterator<Item = (String, PathBuf)> {
    std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into())))
}

#[cfg(test)]
mod tests {
    use wiggum_agents::{AgentSpec, CommandAgent, PromptVia};

    use super::*;

    fn paths(paths: &[&str]) -> Vec<PathBuf> {
        paths.iter().map(PathBuf::from).collect()
    }

    #[test]
    fn private_state_where_agents_may_write_is_told() {
        use wiggum_workspace::sandbox::Strength;
        let sandbox = |kind| Sandbox {
            kind,
            says: "confined".to_owned(),
            writable: paths(&["/srv/shared"]),
            ..Sandbox::default()
        };
        let landlock = sandbox(Some(Kind::Landlock(Strength::Full)));
        for open in ["/tmp/state/wiggum", "/var/tmp/x", "/srv/shared/state"] {
            assert!(landlock.leaves_open(Path::new(open)), "{open}");
            assert!(landlock.says_of(Path::new(open)).contains("state_root"));
        }
        assert!(!landlock.leaves_open(Path::new("/var/lib/wiggum")));
        assert_eq!(landlock.says_of(Path::new("/var/lib/wiggum")), "confined");
        // Bwrap makes it read-only wherever it lies, and without a sandbox that is said already.
        let bwrap = sandbox(Some(Kind::Bwrap { program: PathBuf::from("/usr/bin/bwrap"), landlock: true }));
        assert!(!bwrap.leaves_open(Path::new("/tmp/state/wiggum")));
        assert!(!sandbox(None).leaves_open(Path::new("/tmp/state/wiggum")));
    }

    #[test]
    fn a_place_inside_another_is_left_out() {
        let kept = outermost(paths(&["/a/b", "/a-b", "/a", "/a/b/c", "/c/d", "/c/d", "/a/../e"]));
        assert_eq!(kept, paths(&["/a", "/a-b", "/c/d", "/e"]));
    }

    #[test]
    fn an_unknown_agent_gets_what_has_its_name() {
        let home = tempfile::tempdir().unwrap();
        for dir in
            [".config/git", ".config/fish", ".config/some-agent", ".local/share/some-agent", ".some-agent"]
        {
            fs::create_dir_all(home.path().join(dir)).unwrap();
        }
        fs::create_dir_all(home.path().join(".ssh")).unwrap();
        std::os::unix::fs::symlink(home.path().join(".ssh"), home.path().join(".config/link")).unwrap();
        let places =
            Places { home: Some(home.path().to_owned()), env: BTreeMap::new(), parents: RefCell::default() };
        let has =
            |program: Option<&str>, dir: &str| places.of_anybody(program).contains(&home.path().join(dir));
        for dir in [".config/some-agent", ".local/share/some-agent", ".some-agent"] {
            assert!(has(Some("some-agent"), dir) && !has(Some("other"), dir) && !has(None, dir), "{dir}");
        }
        assert!(has(None, ".claude"));
        assert!(!has(Some("git"), ".config/git") && !has(Some("fish"), ".config/fish"));
        assert!(!has(Some("link"), ".config/link") && !has(Some(""), ".config") && !has(Some(".."), "."));
    }

    /// Directories that all programs share hold the private state as well.
    #[test]
    fn where_shared_directories_were_moved_to_stays_out() {
        let home = tempfile::tempdir().unwrap();
        let moved = home.path().join("moved");
        let env = SHARED.map(|(variable, _)| (variable.to_owned(), moved.clone())).into();
        let places = Places { home: Some(home.path().to_owned()), env, parents: RefCell::default() };
        let private = moved.join("wiggum/store");
        fs::create_dir_all(&private).unwrap();
        for &family in &Family::ALL {
            let driver = Family::driver(AgentSpec::new(family));
            let own = places.own(driver.as_ref());
            assert!(!own.iter().any(|place| private.starts_with(place)), "{family:?}: {own:?}");
            let has_own = own.contains(&moved.join("opencode"));
            assert_eq!(has_own, family == Family::Opencode, "{family:?}: {own:?}");
        }
        let unknown = CommandAgent { line: "my-agent".to_owned(), prompt_via: PromptVia::Stdin };
        let own = places.own(&unknown);
        assert!(!own.iter().any(|place| private.starts_with(place)), "{own:?}");
        assert!(own.contains(&moved.join("opencode")), "{own:?}");
    }

    #[test]
    fn where_a_directory_was_moved_to_counts() {
        let env = [("CARGO_HOME", "/big/cargo"), ("XDG_CACHE_HOME", "relative"), ("GOCACHE", "/big/go")];
        let env = env.map(|(name, path)| (name.to_owned(), PathBuf::from(path))).into();
        let caches = Places { home: None, env, parents: RefCell::default() }.caches();
        assert!(caches.contains(&"/big/cargo/registry".into()) && caches.contains(&"/big/go".into()));
        assert!(
            caches.iter().all(|path| path.is_absolute() && path != Path::new("/big/cargo")),
            "{caches:?}"
        );
    }
}
