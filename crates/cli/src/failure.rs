//! Errors as people see them: what failed, on what, and `hint:` what to do. Sorted once, here.

use std::process::ExitCode;

use wiggum_engine::EngineError;
use wiggum_engine::backlog_file::BacklogError;
use wiggum_engine::checkout::CheckoutError;
use wiggum_engine::desk::DeskError;
use wiggum_engine::error::chain;
use wiggum_store::StoreError;
use wiggum_workspace::beneath::CreateError;
use wiggum_workspace::git::GitError;
use wiggum_workspace::process::LaunchError;

use crate::config::{ConfigProblems, NoHome};
use crate::term::{self, Style};

/// Exit code for mistakes of usage and configuration.
pub(crate) const USAGE: u8 = 2;
/// Exit code for our own failures and those of the world around us.
pub(crate) const FAILURE: u8 = 1;

/// What to do where commits cannot be signed.
pub(crate) const CANNOT_SIGN: &str = "set user.signingkey to a key that you have, mend gpg.program, or turn it off here: `git config commit.gpgsign false`";

/// What is printed before a command gives up.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    pub(crate) code: u8,
}

impl Failure {
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, code: USAGE }
    }

    pub(crate) fn other(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, code: FAILURE }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) fn report(&self) -> ExitCode {
        let style = Style::for_stderr();
        let mut text = format!("{} {}\n", style.red("error:"), self.message);
        if let Some(hint) = &self.hint {
            text.push_str(&format!("{} {hint}\n", style.cyan("hint:")));
        }
        term::note(&text);
        ExitCode::from(self.code)
    }
}

/// A mistake of ours on any thread ends the whole program at once: a loop that waits for a thread
/// that is no more would wait for ever, while one that was cut off goes on at the next start.
pub(crate) fn end_on_panic() {
    std::panic::set_hook(Box::new(|panic| {
        Failure::other(format!("a mistake in wiggum itself: {panic}"))
            .hint("what was recorded is kept, and `wiggum run` goes on there; please report this")
            .report();
        std::process::exit(i32::from(FAILURE));
    }));
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Checkout(error) => error.into(),
            EngineError::Store(error) => error.into(),
            EngineError::Backlog(error) => error.into(),
            EngineError::Unsupported { .. } => Self::usage(chain(&error))
                .hint("mend the fields named above, or mark these tasks as skipped"),
            EngineError::Dirty { .. } => Self::usage(chain(&error))
                .hint("commit or stash them, or run with --allow-dirty to have them set aside and put back"),
            EngineError::UnfinishedOperation { operation } => {
                Self::usage(chain(&error)).hint(format!("{} first", finish_operation(operation)))
            }
            EngineError::DetachedHead => Self::usage(chain(&error)).hint(SWITCH_TO_BRANCH),
            EngineError::NoPlainFile { .. } => Self::usage(chain(&error)).hint("remove it"),
            EngineError::RepositoryGone { .. } => Self::usage(chain(&error)).hint(
                "put its `.git` back, for example from a clone; `--name NAME` begins another loop, without its history",
            ),
            EngineError::CannotSign { .. } => Self::usage(chain(&error)).hint(CANNOT_SIGN),
            EngineError::Busy { .. } => Self::usage(chain(&error))
                .hint("wait for it, or run this loop in a work tree of its own: `git worktree add`"),
            EngineError::Prompt { .. } => {
                Self::usage(chain(&error)).hint("`wiggum init` writes a PROMPT.md; --prompt names another")
            }
            EngineError::NoCheckpoint { .. } => {
                Self::usage(chain(&error)).hint("see `wiggum checkpoint list`")
            }
            EngineError::DamagedCheckpoint { .. } => Self::other(chain(&error))
                .hint("`wiggum checkpoint verify` looks at all of them; another may do"),
            EngineError::BeforeCommits { .. } | EngineError::CommitGone { .. } => {
                Self::usage(chain(&error)).hint("choose another: `wiggum checkpoint list`")
            }
            EngineError::OtherBranch { .. } => {
                Self::usage(chain(&error)).hint("switch to it first: `git switch`")
            }
            EngineError::Uncommitted { .. } => Self::usage(chain(&error))
                .hint("commit or stash them, or use --keep-changes to have them kept under a ref"),
            EngineError::Glob { .. } => Self::usage(chain(&error)).hint("see `paths` under [protect]"),
            // Git passes on what the system said, and nothing else tells.
            EngineError::Git(_) if chain(&error).contains("No space left on device") => {
                Self::other(chain(&error))
                    .hint("the disk is full: free some space and run again; nothing is lost")
            }
            EngineError::Git(error) => git_failure(&error),
            EngineError::StateDir { .. } | EngineError::Write { .. } => Self::other(chain(&error))
                .hint("check that the directory is writable and the disk is not full"),
        }
    }
}

/// What leads out of a detached HEAD.
pub(crate) const SWITCH_TO_BRANCH: &str =
    "`git switch BRANCH` goes to a branch, `git switch -c NAME` makes one of what is here";

/// How a person ends what git is in the middle of, by the name that [`wiggum_workspace::git::Git`] has for it.
pub(crate) fn finish_operation(operation: &str) -> String {
    match operation {
        "bisect" => "end it: `git bisect reset`".to_owned(),
        "sequence of picks" => {
            "finish or abort it: `git cherry-pick --continue` or `git cherry-pick --abort` (or `git revert`)"
                .to_owned()
        }
        name => format!("finish or abort it: `git {name} --continue` or `git {name} --abort`"),
    }
}

/// What git itself says is the matter, and what mends that.
pub(crate) fn git_failure(error: &GitError) -> Failure {
    let failure = Failure::other(chain(error));
    match error {
        GitError::NotOwned { path } => {
            let owner = "make the directory yours, or tell git to trust it";
            Failure::usage(chain(error))
                .hint(format!("{owner}: git config --global --add safe.directory {path}"))
        }
        // Nobody has to read the command line that we made.
        GitError::Start(LaunchError::Spawn { source, .. }) => {
            Failure::other(format!("cannot run git: {source}"))
                .hint("git is needed inside a git repository; is it installed?")
        }
        GitError::Start(_) => failure.hint("git is needed inside a git repository; is it installed?"),
        GitError::Ended(_) => {
            Failure::other(error.to_string()).hint("nothing is lost: the next `wiggum run` goes on from here")
        }
        GitError::Failed { .. }
        | GitError::File { .. }
        | GitError::Answer { .. }
        | GitError::Locked { .. }
        | GitError::Unmerged { .. }
        | GitError::NestedRepository { .. }
        | GitError::NotClean { .. } => failure.hint("`wiggum doctor` looks at git and the repository"),
    }
}

impl From<DeskError> for Failure {
    fn from(error: DeskError) -> Self {
        let hint = error.hint();
        match error {
            DeskError::Checkout(error) => error.into(),
            DeskError::Store(error) => error.into(),
            DeskError::Engine(error) => error.into(),
            DeskError::Backlog(error) => error.into(),
            error => {
                let code = if error.is_usage() { USAGE } else { FAILURE };
                Self { message: chain(&error), hint, code }
            }
        }
    }
}

impl From<NoHome> for Failure {
    fn from(NoHome { relative }: NoHome) -> Self {
        let why = match relative {
            Some(home) => format!("HOME is `{}`, which is no absolute path", home.display()),
            None => "HOME is not set".to_owned(),
        };
        Self::usage(format!("cannot tell where to keep the state of loops: {why}"))
            .hint("set HOME, XDG_STATE_HOME or WIGGUM_STATE_ROOT to an absolute path")
    }
}

impl From<CheckoutError> for Failure {
    fn from(error: CheckoutError) -> Self {
        match error {
            CheckoutError::Store(error) => error.into(),
            CheckoutError::Git(error) => EngineError::Git(error).into(),
            CheckoutError::Inside { .. } => Self::usage(chain(&error)).hint(
                "agents can write there; set `state_root` in your own ~/.config/wiggum/config.toml, or WIGGUM_STATE_ROOT, to a directory outside",
            ),
            CheckoutError::NoDirectory { .. } => Self::usage(chain(&error))
                .hint("wiggum keeps files there for other programs to read: move it elsewhere"),
            CheckoutError::Mark { workspace, .. } if !workspace.exists() => {
                Self::usage(format!("{} is gone: it was moved or removed while the run worked", workspace.display()))
                    .hint("nothing is lost: `wiggum run` in its new place goes on")
            }
            CheckoutError::Mark { ref source, .. } if matches!(source, CreateError::Write { .. }) => {
                Self::other(chain(&error)).hint("check that the directory is writable and the disk is not full")
            }
            CheckoutError::Mark { .. } => Self::usage(chain(&error))
                .hint("`.wiggum` has to be a directory of this user, not a link to another"),
            CheckoutError::OlderVersionRuns { .. } => Self::usage(chain(&error))
                .hint("wait for it, or stop it with that version; its journal is then moved"),
            CheckoutError::File { .. } => Self::other(chain(&error))
                .hint("check that the directory is writable and the disk is not full"),
        }
    }
}

impl From<ConfigProblems> for Failure {
    fn from(problems: ConfigProblems) -> Self {
        Self::usage(problems.to_string()).hint("docs/configuration.md explains every key")
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let code = if matches!(error, StoreError::Held { .. }) { USAGE } else { FAILURE };
        Self { message: chain(&error), hint: error.hint().map(str::to_owned), code }
    }
}

impl From<BacklogError> for Failure {
    fn from(error: BacklogError) -> Self {
        let usage = Self::usage(chain(&error));
        match error {
            BacklogError::Read { .. } => usage.hint("name the backlog: `wiggum run FILE`"),
            BacklogError::Problems(_) => {
                usage.hint("nothing was started; mend the backlog, or name another: `wiggum run FILE`")
            }
            BacklogError::Edit(_) => usage,
            BacklogError::Write { .. } | BacklogError::Lock { .. } => Self {
                code: FAILURE,
                ..usage.hint("check that the directory is writable and the disk is not full")
            },
        }
    }
}
