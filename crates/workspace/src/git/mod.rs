//! The user's repository, through the git command.
//!
//! The command and not a library, because only the command honours hooks, filters and every
//! configuration. What is asked in each iteration without changing anything (where HEAD is, whether
//! hooks exist, whether the tree is still as it was staged) is read from the files instead, so that a
//! completed iteration costs two git processes, [`Git::stage_all`] and [`Git::commit`], and a third,
//! [`Git::status`], only where the files leave a doubt.
//!
//! Hooks run for [`Git::commit`] alone; everything else is bookkeeping they should not see. The
//! user's stash list is never touched.
//!
//! Git runs programs that a configuration names: hooks, filters, monitors. Some are files of the work
//! tree, which an agent may have written, so commands that can run any of them are confined like an
//! agent ([`Git::with_confinement`]). Replaced objects and grafts are never obeyed.

mod carry;
mod config;
mod elsewhere;
mod glance;
mod guardian;
mod head;
mod ignore;
mod index;
mod inside;
mod locks;
mod nested;
mod pipes;
mod private;
mod references;
mod reflog;
mod status;
mod users_index;
mod work;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use thiserror::Error;
use wiggum_core::event::Exit;

use crate::beneath::{Links, open_plain};
use crate::crash;
use crate::paths::file_id;
use crate::process::{self, Attend, CommandLine, Input, Launch, LaunchError, Output};
use crate::sandbox::Confinement;

use config::Configuration;
pub use glance::Known;
pub use guardian::Guardian;
pub use head::Head;
pub use ignore::{STATE_DIR, STATE_FILES, ignoring_state};
pub use index::is_index;
pub use inside::Inside;
pub use nested::Odd;
pub use pipes::free_readers;
pub use private::Private;
pub use reflog::Move;
pub use status::{Change, Entry, Status};
pub use users_index::{IndexStamp, UsersIndex};
pub use work::{PutBack, Squashed};

/// A work tree. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Git {
    root: PathBuf,
    /// Of this work tree: HEAD and index.
    git_dir: PathBuf,
    /// Shared by all work trees: refs, objects, hooks, configuration.
    common_dir: PathBuf,
    /// Ours, where it is not the user's.
    index: Option<PathBuf>,
    marker: Option<(String, String)>,
    env: Vec<(OsString, OsString)>,
    configuration: Arc<OnceLock<Configuration>>,
    confinement: Option<Arc<Confinement>>,
    /// Variables that neither git gets nor what it runs.
    withheld: Arc<[OsString]>,
    attendant: Option<Arc<dyn Attend>>,
}

#[derive(Debug, Error)]
pub enum GitError {
    #[error("git is not usable")]
    Start(#[source] LaunchError),
    #[error("git was ended before it was done")]
    Ended(#[source] LaunchError),
    #[error("`git {command}` failed ({exit}): {message}")]
    Failed { command: String, exit: Exit, message: String },
    #[error("git does not trust the repository at {path}: it belongs to another user (dubious ownership)")]
    NotOwned { path: String },
    #[error("cannot read or write {}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("git answered `{answer}` to `git {command}`")]
    Answer { command: String, answer: String },
    #[error("the index is locked: {} exists", path.display())]
    Locked { path: PathBuf },
    #[error("there are unmerged paths: {}", paths.join(", "))]
    Unmerged { paths: Vec<String> },
    #[error("the repository inside this one cannot be set aside: {path}")]
    NestedRepository { path: String },
    #[error("the work tree is not clean: {}", paths.join(", "))]
    NotClean { paths: Vec<String> },
}

impl From<LaunchError> for GitError {
    fn from(error: LaunchError) -> Self {
        match error {
            LaunchError::Ended { .. } => Self::Ended(error),
            LaunchError::Spawn { .. } | LaunchError::Supervise { .. } => Self::Start(error),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommitOutcome {
    Committed(String),
    /// A hook said no; what it and git wrote.
    Refused(String),
}

/// The other side of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target<'a> {
    Commit(&'a str),
    Index,
    WorkTree,
}

/// Where a file's content is taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source<'a> {
    Commit(&'a str),
    Index,
}

impl Git {
    /// The work tree that `directory` lies in; `None` outside of one, and in a bare repository.
    pub fn discover(directory: &Path) -> Result<Option<Self>, GitError> {
        Self::discover_with(directory, Vec::new())
    }

    /// As [`Git::discover`], with variables that every git command gets.
    pub fn discover_with(directory: &Path, env: Vec<(OsString, OsString)>) -> Result<Option<Self>, GitError> {
        if !directory.ancestors().any(|ancestor| ancestor.join(".git").exists()) {
            // No process needed. A relative directory is looked at again below its real path.
            let real = directory
                .canonicalize()
                .map_err(|source| GitError::File { path: directory.to_owned(), source })?;
            if !real.ancestors().any(|ancestor| ancestor.join(".git").exists()) {
                return Ok(None);
            }
        }
        let mut git = Self::new(directory, None).with_env(env);
        // The git directory comes last, since it alone may contain a line break.
        let query = ["rev-parse", "--is-inside-work-tree", "--show-cdup", "--absolute-git-dir"];
        let output = git.output(&query, Hooks::Off)?;
        if output.exit == (Exit::Code { code: 128 }) && text(&output.stderr).contains("not a git repository")
        {
            return Ok(None);
        }
        let answer = text(&output.stdout);
        let mut lines = answer.splitn(3, '\n');
        match (output.exit.success(), lines.next(), lines.next(), lines.next()) {
            (true, Some("true"), Some(up), Some(git_dir)) => {
                let root = directory.join(up);
                git.root = root.canonicalize().map_err(|source| GitError::File { path: root, source })?;
                git.git_dir = PathBuf::from(git_dir.trim_end_matches('\n'));
                git.common_dir = head::common_dir(&git.git_dir);
                Ok(Some(git))
            }
            (_, Some("false"), _, _) => Ok(None),
            (true, _, _, _) => {
                Err(GitError::Answer { command: query.join(" "), answer: answer.clone().into() })
            }
            (false, _, _, _) => Err(failed(&query, &output)),
        }
    }

    /// A work tree whose `.git` lies in `root`. `marker` is put into the environment of every git.
    pub fn new(root: &Path, marker: Option<(String, String)>) -> Self {
        let git_dir = head::git_dir(root);
        let common_dir = head::common_dir(&git_dir);
        let configuration = Arc::new(OnceLock::new());
        Self {
            root: root.to_owned(),
            git_dir,
            common_dir,
            index: None,
            marker,
            env: Vec::new(),
            configuration,
            confinement: None,
            withheld: Arc::new([]),
            attendant: None,
        }
    }

    pub fn with_marker(mut self, marker: Option<(String, String)>) -> Self {
        self.marker = marker;
        self
    }

    /// Where git may write while it can run other programs.
    #[must_use]
    pub fn with_confinement(mut self, confinement: Option<Confinement>) -> Self {
        self.confinement = confinement.map(Arc::new);
        self
    }

    /// Variables of our own that hooks and filters should not get.
    #[must_use]
    pub fn without_variables(mut self, names: Vec<OsString>) -> Self {
        self.withheld = names.into();
        self
    }

    /// Who says how long to wait for a git command, and for the programs that it runs.
    #[must_use]
    pub fn with_attendant(mut self, attendant: Arc<dyn Attend>) -> Self {
        self.attendant = Some(attendant);
        self
    }

    /// Variables that every git command gets.
    #[must_use]
    pub fn with_env(mut self, env: Vec<(OsString, OsString)>) -> Self {
        self.env = env;
        self
    }

    /// With an index of our own: the user's stays as it is until [`UsersIndex::publish`].
    #[must_use]
    pub fn with_index(mut self, index: impl Into<PathBuf>) -> Self {
        self.index = Some(index.into());
        self
    }

    /// The same work tree with the user's own index.
    #[must_use]
    pub fn of_user(&self) -> Self {
        Self { index: None, ..self.clone() }
    }

    /// Is the index another one than the user's?
    pub fn has_own_index(&self) -> bool {
        self.index.is_some()
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn git_dir(&self) -> &Path {
        &self.git_dir
    }

    pub fn common_dir(&self) -> &Path {
        &self.common_dir
    }

    pub fn is_tracked(&self, path: &str) -> Result<bool, GitError> {
        let listed = self.bytes(&["ls-files", "-z", "--", &literal(path)])?;
        Ok(!listed.is_empty())
    }

    pub fn ignored(&self, path: &str) -> Result<bool, GitError> {
        let command = ["check-ignore", "-q", "--no-index", "--", path];
        let output = self.output(&command, Hooks::Off)?;
        match output.exit {
            Exit::Code { code: 0 } => Ok(true),
            Exit::Code { code: 1 } => Ok(false),
            _ => Err(failed(&command, &output)),
        }
    }

    /// Is this commit in the repository?
    pub fn has_commit(&self, commit: &str) -> Result<bool, GitError> {
        let output = self.output(&["cat-file", "-e", &format!("{commit}^{{commit}}")], Hooks::Off)?;
        Ok(output.exit.success())
    }

    /// Was the history cut off when it was fetched?
    pub fn is_shallow(&self) -> bool {
        self.common_dir.join("shallow").exists()
    }

    /// Where `origin` is, if there is one.
    pub fn remote_url(&self) -> Result<Option<String>, GitError> {
        let command = ["config", "--get", "remote.origin.url"];
        let output = self.output(&command, Hooks::Off)?;
        match output.exit {
            Exit::Code { code: 0 } => Ok(Some(text(&output.stdout).trim_end().to_owned())),
            Exit::Code { code: 1 } => Ok(None),
            _ => Err(failed(&command, &output)),
        }
    }

    fn add_all(&self, exclude: &[&str]) -> Result<(), GitError> {
        let excluded = exclude.iter().map(|path| excluding_from_add(path));
        let mut command = owned(&["add", "-A", "--", "."]);
        command.extend(excluded);
        self.run(&command)
    }

    /// Puts these files into the index as they are.
    pub fn stage(&self, paths: &[&str]) -> Result<(), GitError> {
        if paths.is_empty() {
            return Ok(());
        }
        let mut command = owned(&["add", "-f", "--"]);
        command.extend(paths.iter().map(|path| literal(path)));
        self.run(&command)
    }

    /// Makes the index the same as HEAD for these paths; files stay.
    pub fn unstage(&self, paths: &[&str]) -> Result<(), GitError> {
        let mut command = owned(&["reset", "--quiet", "--"]);
        command.extend(paths.iter().map(|path| literal(path)));
        self.run(&command)
    }

    /// Keeps the index as it is now, so that a check which runs `git add` cannot change what will be
    /// committed. Git never writes to an index in place, so a hard link is enough.
    pub fn save_index(&self, to: &Path) -> Result<(), GitError> {
        let index = self.index_path();
        if same_file(&index, to) {
            return Ok(());
        }
        let on_target = |source| GitError::File { path: to.to_owned(), source };
        if !index.exists() {
            // A new repository has none before the first file is added.
            self.run(&["read-tree", "--empty"])?;
        }
        to.parent().map_or(Ok(()), std::fs::create_dir_all).map_err(on_target)?;
        let mut fresh = to.as_os_str().to_owned();
        fresh.push(".new");
        let fresh = PathBuf::from(fresh);
        // The one saved before is needed until this one is there.
        remove_if_there(&fresh).map_err(on_target)?;
        link_or_copy(&index, &fresh).map_err(on_target)?;
        crash::point("index copied");
        std::fs::rename(&fresh, to).map_err(on_target)?;
        crash::point("index saved");
        // Renaming one link of a file over another link of it leaves both.
        remove_if_there(&fresh).map_err(on_target)
    }

    /// Keeps a copy of the index that nobody can change through the original. Nothing is kept of a new
    /// repository, which has none.
    pub fn copy_index(&self, to: &Path) -> Result<(), GitError> {
        let on_target = |source| GitError::File { path: to.to_owned(), source };
        remove_if_there(to).map_err(on_target)?;
        let index = self.index_path();
        if !index.exists() {
            return Ok(());
        }
        to.parent().map_or(Ok(()), std::fs::create_dir_all).map_err(on_target)?;
        copy(&index, to).map_err(on_target)
    }

    pub fn put_back_index(&self, from: &Path) -> Result<(), GitError> {
        let (index, lock) = (self.index_path(), self.index_lock());
        if same_file(&index, from) && !lock.exists() {
            return Ok(());
        }
        self.lock_index(|lock| link_or_copy(from, lock), from)?;
        crash::point("index locked");
        self.rename_lock()
    }

    fn lock_index(&self, fill: impl Fn(&Path) -> io::Result<()>, from: &Path) -> Result<(), GitError> {
        let lock = self.index_lock();
        match fill(&lock) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Err(GitError::Locked { path: lock })
            }
            Err(source) => Err(GitError::File { path: from.to_owned(), source }),
        }
    }

    fn rename_lock(&self) -> Result<(), GitError> {
        let (index, lock) = (self.index_path(), self.index_lock());
        let renamed = std::fs::rename(&lock, &index);
        crash::point("index renamed");
        // Renaming one link of a file over another link of it leaves both.
        remove_if_there(&lock).map_err(|source| GitError::File { path: lock, source })?;
        renamed.map_err(|source| GitError::File { path: index, source })
    }

    /// The file that the index is in.
    pub fn index_path(&self) -> PathBuf {
        self.index.clone().unwrap_or_else(|| self.git_dir.join("index"))
    }

    /// What git makes while it writes the index.
    fn index_lock(&self) -> PathBuf {
        let mut lock = self.index_path().into_os_string();
        lock.push(".lock");
        lock.into()
    }

    /// A real `git commit` of the index, hooks and signing included, and of `include` as it is in
    /// the work tree. A commit without a change is fine: a task may be complete without one.
    pub fn commit(&self, message: &str, include: &[&str]) -> Result<CommitOutcome, GitError> {
        self.commit_while(message, include, &mut || {})
    }

    /// With something to be done while git is at it.
    pub fn commit_while(
        &self,
        message: &str,
        include: &[&str],
        meanwhile: &mut dyn FnMut(),
    ) -> Result<CommitOutcome, GitError> {
        self.make_commit(&commit_command(include), message, meanwhile)
    }

    /// Commits one file as it is in the work tree, whatever else is staged; that stays staged.
    pub fn commit_only(&self, message: &str, path: &str) -> Result<CommitOutcome, GitError> {
        let mut command = owned(&["commit", "--quiet", "--cleanup=whitespace", "-F", "-", "--only", "--"]);
        command.push(literal(path));
        self.make_commit(&command, message, &mut || {})
    }

    /// Is this file another one than in the last commit?
    pub fn differs_from_head(&self, path: &str) -> Result<bool, GitError> {
        if self.head()?.commit.is_none() {
            return Ok(true);
        }
        let command =
            owned(&["diff", "--quiet", "--no-ext-diff", "--no-textconv", "HEAD", "--", &literal(path)]);
        let output = self.output(&command, Hooks::Off)?;
        match output.exit {
            Exit::Code { code: 0 } => Ok(false),
            Exit::Code { code: 1 } => Ok(true),
            Exit::Code { .. } | Exit::Signal { .. } | Exit::TimedOut | Exit::NotStarted => {
                Err(failed(&command, &output))
            }
        }
    }

    fn make_commit(
        &self,
        command: &[String],
        message: &str,
        meanwhile: &mut dyn FnMut(),
    ) -> Result<CommitOutcome, GitError> {
        let mut launch = self.launch(command, Hooks::On);
        launch.env.extend(self.identity()?);
        launch.stdin = Input::Bytes(message.as_bytes().to_vec());
        let output = execute_while(command, launch, meanwhile)?;
        match output.exit {
            Exit::Code { code: 0 } => match self.head()?.commit {
                Some(commit) => Ok(CommitOutcome::Committed(commit)),
                None => {
                    Err(GitError::Answer { command: "commit".to_owned(), answer: "no commit".to_owned() })
                }
            },
            // Hooks alone make git end with 1 here; its own refusals are 128.
            Exit::Code { code: 1 } => Ok(CommitOutcome::Refused(message_of(&output))),
            Exit::Code { .. } | Exit::Signal { .. } | Exit::TimedOut | Exit::NotStarted => {
                Err(failed(command, &output))
            }
        }
    }

    /// Does the user want commits to be signed?
    pub fn signs(&self) -> Result<bool, GitError> {
        Ok(self.configuration()?.is_on("commit.gpgsign"))
    }

    /// Why commits cannot be signed, where the user wants that; found out by signing one that no
    /// reference will ever point to.
    pub fn signing_problem(&self) -> Result<Option<String>, GitError> {
        if !self.signs()? {
            return Ok(None);
        }
        let tree = self.empty_tree()?;
        let command = ["commit-tree", "-S", "-m", "wiggum: can commits be signed?", &tree];
        let mut launch = self.launch(&command, Hooks::Off);
        launch.env.extend(self.identity()?);
        let output = execute(&command, launch)?;
        Ok((!output.exit.success()).then(|| message_of(&output)))
    }

    /// The tree without any file.
    pub fn empty_tree(&self) -> Result<String, GitError> {
        self.line(&["mktree"])
    }

    /// The newest of the last 50 commits that carries this trailer.
    pub fn find_commit(&self, trailer: &str, value: &str) -> Result<Option<String>, GitError> {
        if self.head()?.commit.is_none() {
            return Ok(None);
        }
        let format = format!("--format=%x1e%H%x1f%(trailers:key={trailer},valueonly,unfold)");
        let log = self.bytes(&["log", "-50", &format])?;
        let log = text(&log);
        let commits = log.split('\x1e').filter_map(|commit| commit.split_once('\x1f'));
        let mut found = commits.filter(|(_, values)| values.lines().any(|line| line.trim() == value));
        Ok(found.next().map(|(commit, _)| commit.to_owned()))
    }

    /// For people to read.
    pub fn diff(&self, from: &str, to: Target<'_>, paths: &[&str]) -> Result<String, GitError> {
        let mut command = owned(&["diff", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames"]);
        match to {
            Target::Commit(commit) => command.extend(owned(&[from, commit])),
            Target::Index => command.extend(owned(&["--cached", from])),
            Target::WorkTree => command.extend(owned(&[from])),
        }
        command.push("--".to_owned());
        command.extend(paths.iter().map(|path| literal(path)));
        Ok(text(&self.bytes(&command)?).into_owned())
    }

    /// `None` if there is no such file there.
    pub fn show_file(&self, source: Source<'_>, path: &str) -> Result<Option<Vec<u8>>, GitError> {
        let object = match source {
            Source::Commit(commit) => format!("{commit}:{path}"),
            Source::Index => format!(":0:{path}"),
        };
        let output = self.output(&["cat-file", "blob", &object], Hooks::Off)?;
        Ok(output.exit.success().then_some(output.stdout))
    }

    /// The last commits, newest first, one line each.
    pub fn log_oneline(&self, count: usize) -> Result<Vec<String>, GitError> {
        if self.head()?.commit.is_none() {
            return Ok(Vec::new());
        }
        let log = self.bytes(&["log", "--no-color", "--format=%h %s", &format!("-{count}")])?;
        Ok(text(&log).lines().map(str::to_owned).collect())
    }

    /// The id of the tree that the index stands for.
    pub fn index_tree(&self) -> Result<String, GitError> {
        self.line(&["write-tree"])
    }

    /// The id of the tree that a saved index stands for.
    pub fn tree_of_index(&self, index: &Path) -> Result<String, GitError> {
        self.clone().with_index(index).index_tree()
    }

    /// The id of a commit's tree.
    pub fn tree_of(&self, commit: &str) -> Result<String, GitError> {
        self.line(&["rev-parse", "--verify", &format!("{commit}^{{tree}}")])
    }

    /// What a reference points to, if it exists.
    pub fn resolve(&self, reference: &str) -> Result<Option<String>, GitError> {
        let command = ["rev-parse", "--quiet", "--verify", "--end-of-options", reference];
        let output = self.output(&command, Hooks::Off)?;
        Ok(output.exit.success().then(|| text(&output.stdout).trim().to_owned()))
    }

    pub fn set_reference(&self, reference: &str, commit: &str) -> Result<(), GitError> {
        self.run(&["update-ref", reference, commit])
    }

    pub fn delete_reference(&self, reference: &str) -> Result<(), GitError> {
        self.run(&["update-ref", "-d", reference])
    }

    /// Might a hook refuse or change a commit?
    pub fn hooks_present(&self) -> Result<bool, GitError> {
        let hooks = self.common_dir.join("hooks");
        let here = ["pre-commit", "prepare-commit-msg", "commit-msg", "post-commit"]
            .into_iter()
            .any(|name| is_executable(&hooks.join(name)));
        Ok(here
            || guardian::hooks_path(&self.common_dir).is_some()
            || self.configuration()?.get("core.hookspath").is_some())
    }

    /// Variables that give a commit somebody's name where the user has none configured.
    fn identity(&self) -> Result<Vec<(OsString, OsString)>, GitError> {
        let configuration = self.configuration()?;
        let mut missing = Vec::new();
        for (part, key, ours) in
            [("NAME", "user.name", "Wiggum"), ("EMAIL", "user.email", "wiggum@localhost")]
        {
            let known = configuration.get(key).is_some();
            for role in ["AUTHOR", "COMMITTER"] {
                let variable = OsString::from(format!("GIT_{role}_{part}"));
                let given = std::env::var_os(&variable).is_some()
                    || self.env.iter().any(|(name, _)| *name == variable);
                if !known && !given {
                    missing.push((variable, ours.into()));
                }
            }
        }
        Ok(missing)
    }

    fn line(&self, command: &[impl AsRef<str>]) -> Result<String, GitError> {
        Ok(text(&self.bytes(command)?).trim_end_matches('\n').to_owned())
    }

    fn run(&self, command: &[impl AsRef<str>]) -> Result<(), GitError> {
        self.bytes(command).map(drop)
    }

    fn bytes(&self, command: &[impl AsRef<str>]) -> Result<Vec<u8>, GitError> {
        self.bytes_of(command, self.launch(command, Hooks::Off))
    }

    fn bytes_of(&self, command: &[impl AsRef<str>], launch: Launch) -> Result<Vec<u8>, GitError> {
        let output = execute(command, launch)?;
        if output.exit.success() { Ok(output.stdout) } else { Err(failed(command, &output)) }
    }

    fn output(&self, command: &[impl AsRef<str>], hooks: Hooks) -> Result<Output, GitError> {
        Ok(execute(command, self.launch(command, hooks))?)
    }

    fn launch(&self, command: &[impl AsRef<str>], hooks: Hooks) -> Launch {
        let mut args: Vec<&str> = CONFIGURATION.iter().flat_map(|setting| ["-c", setting]).collect();
        match hooks {
            Hooks::Off => args.extend(["-c", "core.hooksPath=/dev/null"]),
            Hooks::On | Hooks::AsConfigured => {}
        }
        args.extend(command.iter().map(AsRef::as_ref));
        let mut launch = Launch::new(CommandLine::new("git", args), &self.root);
        launch.marker.clone_from(&self.marker);
        let runs_nothing = command.first().is_some_and(|name| RUNS_NOTHING.contains(&name.as_ref()));
        launch.confinement = self.confinement.as_deref().filter(|_| !runs_nothing).cloned();
        launch.env_remove = self.withheld.to_vec();
        launch.attendant = self.attendant.clone().or_else(|| pipes::AtPipes::of(&self.root));
        let env = ENVIRONMENT.map(|(name, value)| (name.into(), value.into()));
        launch.env = env.into_iter().chain(self.env.iter().cloned()).collect();
        launch.env.extend(self.index.as_deref().map(index_variable));
        launch
    }
}

/// A commit of the index, and of `include` as it is in the work tree, with a message on standard input.
fn commit_command(include: &[&str]) -> Vec<String> {
    let mut command = owned(&["commit", "--quiet", "--allow-empty", "--cleanup=whitespace", "-F", "-"]);
    if !include.is_empty() {
        command.extend(owned(&["-i", "--"]));
        command.extend(include.iter().map(|path| literal(path)));
    }
    command
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Hooks {
    On,
    Off,
    /// For reading the setting itself.
    AsConfigured,
}

/// No maintenance in the background of a commit, no quoting of names, no advice in what people read.
const CONFIGURATION: [&str; 9] = [
    "gc.auto=0",
    "maintenance.auto=false",
    "core.quotePath=off",
    "advice.addEmbeddedRepo=false",
    "advice.ignoredHook=false",
    "advice.detachedHead=false",
    "advice.graftFileDeprecated=false",
    // What is not committed inside a submodule is nobody's to overwrite.
    "submodule.recurse=false",
    // A program of a configuration, also of that of a repository inside this one.
    "core.fsmonitor=false",
];

/// One language, no questions, no lock taken only to save time later, and objects as they are.
const ENVIRONMENT: [(&str, &str); 6] = [
    ("LC_ALL", "C"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_EDITOR", ":"),
    ("GIT_NO_REPLACE_OBJECTS", "1"),
    ("GIT_GRAFT_FILE", "/dev/null"),
];

/// Commands that start no program but git, whatever is configured.
const RUNS_NOTHING: [&str; 17] = [
    "cat-file",
    "check-ignore",
    "commit-tree",
    "config",
    "diff-index",
    "diff-tree",
    "log",
    "ls-files",
    "merge-base",
    "mktree",
    "read-tree",
    "rev-list",
    "rev-parse",
    "show-ref",
    "symbolic-ref",
    "update-ref",
    "write-tree",
];

/// Commands that change nothing another process could see.
const LOOKING: [&str; 12] = [
    "cat-file",
    "check-ignore",
    "config",
    "diff",
    "diff-index",
    "diff-tree",
    "log",
    "ls-files",
    "merge-base",
    "rev-list",
    "rev-parse",
    "status",
];

/// Every git of ours is run here.
pub(super) fn execute(command: &[impl AsRef<str>], launch: Launch) -> Result<Output, LaunchError> {
    execute_while(command, launch, &mut || {})
}

fn execute_while(
    command: &[impl AsRef<str>],
    launch: Launch,
    meanwhile: &mut dyn FnMut(),
) -> Result<Output, LaunchError> {
    let name = command.first().map(AsRef::as_ref).unwrap_or_default();
    if LOOKING.contains(&name) {
        return process::run(launch);
    }
    crash::point(&format!("before git {name}"));
    let output = process::run_while(launch, meanwhile);
    crash::point(&format!("after git {name}"));
    output
}

fn failed(command: &[impl AsRef<str>], output: &Output) -> GitError {
    if let Some(path) = not_owned(&text(&output.stderr)) {
        return GitError::NotOwned { path };
    }
    let command = command.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(" ");
    GitError::Failed { command, exit: output.exit, message: message_of(output) }
}

/// The repository that git will not look at because it belongs to somebody else.
fn not_owned(said: &str) -> Option<String> {
    let (_, rest) = said.split_once("detected dubious ownership in repository at '")?;
    let (path, _) = rest.split_once("'\n").or_else(|| rest.rsplit_once('\''))?;
    Some(path.to_owned())
}

/// What was said about a commit that was not made; hooks may end it without a word.
fn message_of(output: &Output) -> String {
    let both = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
    match text(&both).trim() {
        "" => format!("a hook ended it without a word ({})", output.exit),
        said => said.to_owned(),
    }
}

fn text(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// A path as nothing but itself, whatever characters it is made of.
fn literal(path: &str) -> String {
    format!(":(top,literal){path}")
}

fn excluding(path: &str) -> String {
    format!(":(top,exclude,literal){path}")
}

/// `git add` takes a path that is written out for one that it is asked to add, even to be left out, and
/// fails if it is ignored. Of a pattern, also of one that fits a single path only, it does not.
fn excluding_from_add(path: &str) -> String {
    let Some(at) = path.find(|c: char| c.is_ascii_alphanumeric()) else { return excluding(path) };
    let escaped = |part: &str| -> String {
        let special = |c: char| matches!(c, '*' | '?' | '[' | '\\').then_some('\\');
        part.chars().flat_map(|c| special(c).into_iter().chain([c])).collect()
    };
    let (before, after) = (escaped(&path[..at]), escaped(&path[at + 1..]));
    format!(":(top,exclude,glob){before}[{}]{after}", &path[at..=at])
}

fn index_variable(path: &Path) -> (OsString, OsString) {
    ("GIT_INDEX_FILE".into(), path.into())
}

/// Are both names of one file?
fn same_file(one: &Path, other: &Path) -> bool {
    file_id(one).is_some_and(|found| file_id(other) == Some(found))
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Fails if `to` exists. A copy keeps the time of the original: git compares it with that of the
/// files to know which of them it must look into.
fn link_or_copy(from: &Path, to: &Path) -> io::Result<()> {
    match std::fs::hard_link(from, to) {
        Ok(()) => return Ok(()),
        Err(error) if matches!(error.kind(), io::ErrorKind::AlreadyExists | io::ErrorKind::NotFound) => {
            return Err(error);
        }
        Err(_) => {}
    }
    copy(from, to)
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let mut source = open_plain(from, Links::Follow)?;
    let mut target = std::fs::OpenOptions::new().write(true).create_new(true).open(to)?;
    io::copy(&mut source, &mut target)?;
    target.set_times(std::fs::FileTimes::new().set_modified(source.metadata()?.modified()?))
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}
