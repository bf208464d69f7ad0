//! A commit whose hooks run in the repository that stands in for the user's ([`super::Private`]).
//!
//! Hooks are programs, and some of them are files of the work tree, which an agent may have written. So
//! the commit is made where they can harm nothing, and only what it came to is read: the tree, which
//! has to be the one that we know, and the message. The user's repository then gets a commit of our own
//! tree with that message.

use wiggum_core::event::Exit;

use super::{CommitOutcome, Git, GitError, Hooks, commit_command, execute, failed, message_of, text};
use crate::process::{Input, Launch};
use crate::sandbox::Confinement;

/// What came of a commit in the stand-in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Inside {
    Made {
        tree: String,
        message: String,
    },
    /// A hook said no; what it and git wrote.
    Refused(String),
}

impl Git {
    /// Commits the index of the stand-in that the confinement shows, and `include` as it is in the work tree.
    pub fn commit_inside(
        &self,
        message: &str,
        include: &[&str],
        confinement: &Confinement,
    ) -> Result<Inside, GitError> {
        let command = commit_command(include);
        let mut launch = self.launch_inside(&command, Hooks::On, confinement);
        launch.env.extend(self.identity()?);
        launch.stdin = Input::Bytes(message.as_bytes().to_vec());
        let output = execute(&command, launch)?;
        match output.exit {
            Exit::Code { code: 0 } => self.made_inside(confinement),
            Exit::Code { code: 1 } => Ok(Inside::Refused(message_of(&output))),
            Exit::Code { .. } | Exit::Signal { .. } | Exit::TimedOut | Exit::NotStarted => {
                Err(failed(&command, &output))
            }
        }
    }

    fn made_inside(&self, confinement: &Confinement) -> Result<Inside, GitError> {
        let command = ["log", "-1", "--format=%T%n%B"];
        let output = execute(&command, self.launch_inside(&command, Hooks::Off, confinement))?;
        if !output.exit.success() {
            return Err(failed(&command, &output));
        }
        let said = text(&output.stdout);
        let (tree, message) = said.split_once('\n').unwrap_or((&said, ""));
        Ok(Inside::Made { tree: tree.to_owned(), message: message.to_owned() })
    }

    fn launch_inside(&self, command: &[impl AsRef<str>], hooks: Hooks, confinement: &Confinement) -> Launch {
        let mut launch = self.of_user().launch(command, hooks);
        launch.confinement = Some(confinement.clone());
        launch
    }

    /// Commits a tree that is known, signed if the user wants that, on top of `from`, where HEAD has to be.
    /// Refused if it is not there any more.
    pub fn commit_known_tree(
        &self,
        tree: &str,
        from: Option<&str>,
        message: &str,
    ) -> Result<CommitOutcome, GitError> {
        let sign = if self.signs()? { "-S" } else { "--no-gpg-sign" };
        let mut command = vec!["commit-tree", sign, tree];
        command.extend(from.into_iter().flat_map(|parent| ["-p", parent]));
        let mut launch = self.launch(&command, Hooks::Off);
        launch.env.extend(self.identity()?);
        launch.stdin = Input::Bytes(message.as_bytes().to_vec());
        let commit = text(&self.bytes_of(&command, launch)?).trim_end().to_owned();
        let subject = message.lines().next().unwrap_or_default();
        let log = format!("commit: {subject}");
        // Nothing but zeros stands for a branch without commits.
        let nothing = "0".repeat(commit.len());
        let command = ["update-ref", "-m", &log, "HEAD", &commit, from.unwrap_or(&nothing)];
        let output = self.output(&command, Hooks::Off)?;
        match output.exit.success() {
            true => Ok(CommitOutcome::Committed(commit)),
            false => Ok(CommitOutcome::Refused(message_of(&output))),
        }
    }
}
