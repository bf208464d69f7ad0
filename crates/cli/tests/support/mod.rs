//! A sandbox for `wiggum run` from outside: the real binary, real git, real processes, and nothing
//! of the machine it runs on.
//!
//! After every run the journal goes through the invariant checker, and nothing that an agent or a
//! check started may be left. Agents are small shell scripts; they lie outside the repository.
#![allow(dead_code, reason = "each test file uses its part of this")]

use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use jiff::Timestamp;
use wiggum_core::checker;
use wiggum_core::event::{Envelope, Event, Flag, FlagKind, Request};
use wiggum_core::ids::LoopId;
use wiggum_core::state::Loop;
use wiggum_engine::checkout::{Checkout, StateRoot};
use wiggum_engine::state_dir::StateDir;
use wiggum_store::Store;

/// How long a test waits for what should come at once, on a machine with other things to do.
const PATIENCE: Duration = Duration::from_secs(60);

/// What every agent can call. `claim` is meant, so it stands on a line of its own.
const AGENT_FUNCTIONS: &str = r#"
claim() { echo; echo '<promise>DONE</promise>'; }
keep_prompt() { cat > "$SANDBOX/prompt-$WIGGUM_TASK_ID-$WIGGUM_ATTEMPT"; }
ready() { echo "$$" > "$SANDBOX/ready"; }
wait_for_go() { cat "$SANDBOX/go" > /dev/null; }
hang() { ready; exec sleep 1000; }
"#;

pub(crate) struct Sandbox {
    base: tempfile::TempDir,
    /// The repository, or the plain directory, that wiggum works in.
    pub(crate) root: PathBuf,
    env: Vec<(String, String)>,
}

impl Sandbox {
    /// A repository with one commit.
    pub(crate) fn new() -> Self {
        let sandbox = Self::unborn();
        sandbox.write("README", "a project\n");
        sandbox.commit_all("first");
        sandbox
    }

    /// A repository without any commit.
    pub(crate) fn unborn() -> Self {
        let sandbox = Self::plain();
        sandbox.git(&["init", "-q", "-b", "main"]);
        sandbox
    }

    /// A directory outside of any repository.
    pub(crate) fn plain() -> Self {
        Self::plain_in(tempfile::tempdir().unwrap())
    }

    fn plain_in(base: tempfile::TempDir) -> Self {
        let path = base.path().canonicalize().unwrap();
        let root = path.join("repo");
        for dir in ["repo", "home", "agents"] {
            fs::create_dir(path.join(dir)).unwrap();
        }
        Self { base, root, env: Vec::new() }
    }

    /// As [`Sandbox::new`], with a tracked PRD.json of these tasks, in their order.
    pub(crate) fn with_tasks(ids: &[&str]) -> Self {
        let sandbox = Self::new();
        sandbox.write("PRD.json", &prd(ids));
        sandbox.commit_all("backlog");
        sandbox
    }

    /// As [`Sandbox::with_tasks`], but neither the home directory nor what lies beside the repository
    /// is in a directory for temporary files, which every agent may write to.
    pub(crate) fn walled(ids: &[&str]) -> Self {
        let mut sandbox = Self::plain_in(tempfile::tempdir_in(untemporary()).unwrap());
        let temporary = sandbox.base().join("tmp");
        fs::create_dir(&temporary).unwrap();
        sandbox.env("TMPDIR", temporary.to_str().unwrap());
        sandbox.git(&["init", "-q", "-b", "main"]);
        sandbox.write("PRD.json", &prd(ids));
        sandbox.commit_all("backlog");
        sandbox
    }

    /// Moves the repository, as somebody does who renames a folder.
    pub(crate) fn move_to(&mut self, name: &str) {
        let root = self.base().join(name);
        fs::rename(&self.root, &root).unwrap();
        self.root = root;
    }

    pub(crate) fn env(&mut self, name: &str, value: &str) {
        self.env.push((name.to_owned(), value.to_owned()));
    }

    /// Where everything lies, the repository included.
    pub(crate) fn base(&self) -> PathBuf {
        self.base.path().canonicalize().unwrap()
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn write_program(&self, path: &str, text: &str) {
        self.write(path, text);
        fs::set_permissions(self.root.join(path), fs::Permissions::from_mode(0o755)).unwrap();
    }

    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    pub(crate) fn exists(&self, path: &str) -> bool {
        fs::symlink_metadata(self.root.join(path)).is_ok()
    }

    /// A file beside the repository, such as those that agents leave for the test.
    pub(crate) fn note(&self, name: &str) -> String {
        let path = self.base().join(name);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub(crate) fn has_note(&self, name: &str) -> bool {
        self.base().join(name).exists()
    }

    /// The prompt of an attempt whose agent called `keep_prompt`.
    pub(crate) fn prompt(&self, task: &str, attempt: u32) -> String {
        self.note(&format!("prompt-{task}-{attempt}"))
    }

    /// Runs git as the user would; what it printed, without the last line end.
    pub(crate) fn git(&self, args: &[&str]) -> String {
        self.git_in(&self.root, args)
    }

    pub(crate) fn git_in(&self, directory: &Path, args: &[&str]) -> String {
        let identity = ["-c", "user.name=User", "-c", "user.email=user@example.com"];
        // Git's housekeeping outlives it for a moment and would be taken for something left of a run.
        let alone = ["-c", "maintenance.auto=false"];
        let mut git = self.command("git");
        let output = git.current_dir(directory).args(identity).args(alone).args(args).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "git {args:?}: {text}{}", String::from_utf8_lossy(&output.stderr));
        text.trim_end_matches('\n').to_owned()
    }

    pub(crate) fn commit_all(&self, message: &str) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", message]);
    }

    /// Subjects of the commits, the oldest first.
    pub(crate) fn subjects(&self) -> Vec<String> {
        let log = self.git(&["log", "--reverse", "--format=%s"]);
        log.lines().map(str::to_owned).collect()
    }

    /// The paths a commit changed.
    pub(crate) fn changed_in(&self, commit: &str) -> Vec<String> {
        let list = self.git(&["show", "--format=", "--name-only", commit]);
        list.lines().map(str::to_owned).collect()
    }

    pub(crate) fn trailer(&self, commit: &str, name: &str) -> String {
        self.git(&["log", "-1", &format!("--format=%(trailers:key={name},valueonly)"), commit])
            .trim()
            .to_owned()
    }

    pub(crate) fn dirt(&self) -> String {
        self.git(&["status", "--porcelain", "--untracked-files=all"])
    }

    pub(crate) fn assert_clean(&self) {
        assert_eq!(self.dirt(), "", "the tree should be clean");
    }

    /// Writes an agent and returns the command that runs it.
    pub(crate) fn agent(&self, script: &str) -> String {
        self.agent_named("agent", script)
    }

    pub(crate) fn agent_named(&self, name: &str, script: &str) -> String {
        let path = self.base().join("agents").join(name);
        fs::write(&path, format!("{AGENT_FUNCTIONS}\n{script}\n")).unwrap();
        format!("sh {}", path.display())
    }

    /// `wiggum run` to its end, with this agent.
    pub(crate) fn run(&self, agent: &str, args: &[&str]) -> Run {
        let command = self.agent(agent);
        let mut all = vec!["run", "--headless", "--agent-command", &command];
        all.extend(args);
        self.wiggum(&all)
    }

    pub(crate) fn wiggum(&self, args: &[&str]) -> Run {
        self.wiggum_in(&self.root, args)
    }

    pub(crate) fn wiggum_in(&self, directory: &Path, args: &[&str]) -> Run {
        self.launch(directory, args).finish()
    }

    /// `wiggum run` beside the test, which may then do things to it.
    pub(crate) fn start(&self, agent: &str, args: &[&str]) -> Started<'_> {
        let command = self.agent(agent);
        let mut all = vec!["run", "--headless", "--agent-command", &command];
        all.extend(args);
        self.launch(&self.root, &all)
    }

    pub(crate) fn launch(&self, directory: &Path, args: &[&str]) -> Started<'_> {
        let mut command = self.command(env!("CARGO_BIN_EXE_wiggum"));
        command.current_dir(directory).args(args);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stdout = collect(child.stdout.take().unwrap());
        let stderr = collect(child.stderr.take().unwrap());
        Started { sandbox: self, child, stdout, stderr }
    }

    /// A pipe by which an agent and the test meet.
    pub(crate) fn make_pipe(&self, name: &str) {
        let status = self.command("mkfifo").arg(self.base().join(name)).status().unwrap();
        assert!(status.success());
    }

    /// Waits until an agent calls `ready`, and returns the number of its process.
    pub(crate) fn wait_ready(&self) -> String {
        self.receive("ready")
    }

    pub(crate) fn receive(&self, name: &str) -> String {
        let path = self.base().join(name);
        let (sender, receiver) = channel();
        std::thread::spawn(move || drop(sender.send(fs::read_to_string(path))));
        receiver.recv_timeout(PATIENCE).expect("the agent should have written").unwrap().trim().to_owned()
    }

    /// Lets an agent go on that called `wait_for_go`.
    pub(crate) fn go(&self) {
        let path = self.base().join("go");
        let (sender, receiver) = channel();
        std::thread::spawn(move || drop(sender.send(fs::write(path, "go\n"))));
        receiver.recv_timeout(PATIENCE).expect("the agent should be waiting").unwrap();
    }

    /// Where the private state of the repository is.
    pub(crate) fn state_dir(&self) -> StateDir {
        self.state_dir_of(&self.root).expect("there should be a store")
    }

    /// Where the private state of a directory is, if it has any.
    pub(crate) fn state_dir_of(&self, directory: &Path) -> Option<StateDir> {
        Checkout::new(directory, &self.state_root()).find().unwrap()
    }

    pub(crate) fn state_root(&self) -> StateRoot {
        StateRoot::new(self.base().join("home/.local/state/wiggum"))
    }

    /// Did a loop ever begin here?
    pub(crate) fn has_store(&self) -> bool {
        self.state_dir_of(&self.root).is_some_and(|dir| dir.database().exists())
    }

    pub(crate) fn store(&self) -> Store {
        Store::open_existing(&self.state_dir().database()).unwrap().expect("there should be a store")
    }

    /// A file that other programs read of the only loop.
    pub(crate) fn shared_file(&self, name: &str) -> PathBuf {
        self.root.join(StateDir::shared_loop_dir(self.loop_id())).join(name)
    }

    /// The id of the only loop.
    pub(crate) fn loop_id(&self) -> LoopId {
        let loops = self.store().loops().unwrap();
        assert_eq!(loops.len(), 1, "{loops:?}");
        loops[0].id
    }

    /// The journal of the only loop.
    pub(crate) fn journal(&self) -> Vec<Envelope> {
        self.store().read(self.loop_id(), 0).unwrap()
    }

    pub(crate) fn events(&self) -> Vec<Event> {
        self.journal().into_iter().map(|envelope| envelope.event).collect()
    }

    pub(crate) fn state(&self) -> Loop {
        Loop::fold(&self.journal())
    }

    /// The state of a task in a word, as the journal tells it.
    pub(crate) fn state_of(&self, task: &str) -> &'static str {
        let state = self.state();
        state.task(&task.into()).map_or("missing", |entry| entry.state.name())
    }

    /// The whole text that an event only shows the end of.
    pub(crate) fn blob(&self, sha256: &str) -> String {
        self.store().blob(sha256).unwrap().expect("the text should be stored")
    }

    /// Leaves a request as `wiggum answer`, `skip` and the like do.
    pub(crate) fn ask(&self, request: &Request) {
        let id = self.loop_id();
        self.store().post(id, request, "test", Timestamp::now()).unwrap();
        wiggum_engine::wake::wake(&self.state_dir(), id).unwrap();
    }

    /// Waits until the journal of a running loop has such an event.
    pub(crate) fn wait_for(&self, wanted: impl Fn(&Event) -> bool) {
        let until = std::time::Instant::now() + PATIENCE;
        while !self.events().iter().any(&wanted) {
            assert!(std::time::Instant::now() < until, "no such event: {:#?}", self.events());
            std::thread::yield_now();
        }
    }

    /// Everything that was flagged, in order.
    pub(crate) fn flags(&self) -> Vec<Flag> {
        let flags = self.events().into_iter().flat_map(|event| match event {
            Event::AgentEnded { flags, .. }
            | Event::TreeTaken { flags, .. }
            | Event::WorkInspected { flags, .. } => flags,
            _ => Vec::new(),
        });
        flags.collect()
    }

    pub(crate) fn has_flag(&self, kind: FlagKind) -> bool {
        self.flags().iter().any(|flag| flag.kind == kind)
    }

    /// The tasks of the iterations, in the order they were started.
    pub(crate) fn worked_on(&self) -> Vec<String> {
        let started = self.events().into_iter().filter_map(|event| match event {
            Event::IterationStarted { task, .. } => Some(task.as_str().to_owned()),
            _ => None,
        });
        started.collect()
    }

    /// The journal keeps every invariant, and no process is left.
    pub(crate) fn check(&self) {
        let dir = self.state_dir_of(&self.root);
        if let Some(Ok(Some(store))) = dir.map(|dir| Store::open_existing(&dir.database())) {
            for record in store.loops().unwrap() {
                let journal = store.read(record.id, 0).unwrap();
                let violations: Vec<String> =
                    checker::check(&journal).iter().map(ToString::to_string).collect();
                assert!(violations.is_empty(), "{violations:#?}\n{}", lines(&journal));
            }
        }
        let left = self.processes();
        assert!(left.is_empty(), "processes are left: {left:#?}");
    }

    /// Processes that work in the sandbox or carry its name in their environment.
    pub(crate) fn processes(&self) -> Vec<String> {
        let base = self.base();
        let marker = format!("SANDBOX={}", base.display());
        let ours = |process: &Path| {
            let inside = fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd.starts_with(&base));
            let environment = fs::read(process.join("environ")).unwrap_or_default();
            inside || environment.split(|byte| *byte == 0).any(|entry| entry == marker.as_bytes())
        };
        let processes = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
        processes
            .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().parse::<u32>().is_ok()))
            .filter(|path| ours(path))
            .map(|path| {
                let line = fs::read(path.join("cmdline")).unwrap_or_default();
                format!("{} {}", path.display(), String::from_utf8_lossy(&line).replace('\0', " "))
            })
            .collect()
    }

    /// The numbers of the watchdogs that look after this sandbox's loop.
    pub(crate) fn watchdogs(&self) -> Vec<String> {
        let line = format!("loop-watchdog\0watchdog\0WIGGUM_LOOP_ID\0{}\0", self.loop_id());
        let processes = fs::read_dir("/proc").unwrap().flatten();
        processes
            .filter(|entry| {
                fs::read(entry.path().join("cmdline")).is_ok_and(|found| found.starts_with(line.as_bytes()))
            })
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect()
    }

    /// A command that knows nothing of this machine but where its programs are.
    pub(crate) fn command(&self, program: &str) -> Command {
        let base = self.base();
        #[expect(clippy::disallowed_methods, reason = "tests start the program itself")]
        let mut command = Command::new(program);
        command.env_clear();
        let path = std::env::var_os("PATH").unwrap_or_default();
        command.env("PATH", path).env("HOME", base.join("home")).env("SANDBOX", &base);
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
        command.env("LC_ALL", "C.UTF-8").env("TZ", "UTC").env("TMPDIR", &base);
        // Waiting after an error is the core's business and tested there.
        command.env("WIGGUM_RETRY_BACKOFF", "0s");
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }
}

/// A `wiggum` that runs.
pub(crate) struct Started<'a> {
    sandbox: &'a Sandbox,
    child: Child,
    stdout: Receiver<String>,
    stderr: Receiver<String>,
}

impl Started<'_> {
    /// Sends a signal by its name, as in `INT`.
    pub(crate) fn signal(&self, name: &str) {
        signal(self.sandbox, &self.child.id().to_string(), name);
    }

    pub(crate) fn pid(&self) -> String {
        self.child.id().to_string()
    }

    pub(crate) fn finish(self) -> Run {
        let sandbox = self.sandbox;
        let run = self.outcome_only();
        sandbox.check();
        run
    }

    /// How it ended, while another one still runs in the sandbox.
    pub(crate) fn outcome_only(mut self) -> Run {
        // Whoever still holds the pipes open would hold up the test.
        let stdout = self.stdout.recv_timeout(PATIENCE).expect("wiggum should have ended");
        let stderr = self.stderr.recv_timeout(PATIENCE).expect("wiggum should have ended");
        let status = self.child.wait().unwrap();
        Run { status, stdout, stderr }
    }

    /// Ends it and its watchdog the hard way; what it started stays for the next one to deal with.
    pub(crate) fn kill_with_watchdog(self) {
        for watchdog in self.sandbox.watchdogs() {
            signal(self.sandbox, &watchdog, "KILL");
        }
        self.kill();
    }

    /// Ends it the hard way; its watchdog ends what it started.
    pub(crate) fn kill(mut self) {
        self.signal("KILL");
        drop(self.child.wait());
    }
}

impl Drop for Started<'_> {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

pub(crate) fn signal(sandbox: &Sandbox, pid: &str, name: &str) {
    let status = sandbox.command("kill").args([&format!("-{name}"), pid]).status().unwrap();
    assert!(status.success(), "kill -{name} {pid}");
}

/// How a `wiggum` ended and what it wrote.
#[derive(Debug)]
pub(crate) struct Run {
    status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Run {
    pub(crate) fn code(&self) -> Option<i32> {
        self.status.code()
    }

    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.status.code(), Some(code), "\n{}\n{}", self.stdout, self.stderr);
        self
    }

    /// An error: the message and a hint on standard error, and nothing on standard output.
    #[track_caller]
    pub(crate) fn complains(self, code: i32, words: &[&str]) -> Self {
        let run = self.exits(code);
        for word in words.iter().chain(&["error: "]) {
            assert!(run.stderr.contains(word), "{word:?} should be in:\n{}", run.stderr);
        }
        run
    }

    #[track_caller]
    pub(crate) fn says(self, words: &str) -> Self {
        assert!(self.stdout.contains(words), "{words:?} should be in:\n{}", self.stdout);
        self
    }

    #[track_caller]
    pub(crate) fn never_says(self, words: &str) -> Self {
        assert!(!self.stdout.contains(words), "{words:?} should not be in:\n{}", self.stdout);
        self
    }
}

/// A PRD.json of these tasks.
pub(crate) fn prd(ids: &[&str]) -> String {
    let stories: Vec<String> = ids.iter().map(|id| story(id, "")).collect();
    prd_of(&stories)
}

pub(crate) fn prd_of(stories: &[impl AsRef<str>]) -> String {
    let stories: Vec<&str> = stories.iter().map(AsRef::as_ref).collect();
    format!("{{\n  \"project\": \"p\",\n  \"userStories\": [\n    {}\n  ]\n}}\n", stories.join(",\n    "))
}

/// One story of a PRD.json; `more` is further members, as in `, "depends_on": ["A"]`.
pub(crate) fn story(id: &str, more: &str) -> String {
    format!("{{ \"id\": \"{id}\", \"title\": \"Do {id}\", \"passes\": false{more} }}")
}

/// A directory that is not below one for temporary files, which every agent may write to. The build
/// directory is one, unless the checkout itself is a temporary directory.
fn untemporary() -> PathBuf {
    let is_temporary = |path: &Path| ["/tmp", "/var/tmp"].iter().any(|tmp| path.starts_with(tmp));
    let below_home = std::env::home_dir().map(|home| home.join(".cache/wiggum-tests"));
    let places = [Some(PathBuf::from(env!("CARGO_TARGET_TMPDIR"))), below_home];
    let place = places.into_iter().flatten().find(|path| !is_temporary(path));
    let place = place.expect("a build directory or a home directory outside of /tmp and /var/tmp");
    fs::create_dir_all(&place).unwrap();
    place.canonicalize().unwrap()
}

/// An agent that does its task: a file named after it, with the task's name in it.
pub(crate) const WORKER: &str = r#"cat > /dev/null; echo "$WIGGUM_TASK_ID" > "$WIGGUM_TASK_ID.txt"; claim"#;

fn collect(mut pipe: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        drop(pipe.read_to_end(&mut bytes));
        drop(sender.send(String::from_utf8_lossy(&bytes).into_owned()));
    });
    receiver
}

fn lines(journal: &[Envelope]) -> String {
    journal.iter().map(|envelope| serde_json::to_string(envelope).unwrap() + "\n").collect()
}
