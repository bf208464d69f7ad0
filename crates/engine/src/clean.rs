//! A checkout of our own that has nothing but what git has, and the checks that run in it.
//!
//! It lies in the loop's private directory and is thrown away when the run ends. Which commit is checked,
//! and what follows from it, is decided in [`wiggum_core::clean`].

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use wiggum_core::decide::CleanOf;
use wiggum_core::event::{Event, Evidence};
use wiggum_core::verdict::Check;
use wiggum_workspace::crash;
use wiggum_workspace::git::{Git, Head, Private};
use wiggum_workspace::paths::{copy_tree, inside, remove_tree};

use crate::checks::Purpose;
use crate::engine::Engine;
use crate::error::EngineError;

impl Engine<'_> {
    /// Runs a step in the checkout; false if a check runs already.
    pub(crate) fn start_clean(&mut self, of: &CleanOf, step: &Check) -> Result<bool, EngineError> {
        if self.check.is_some() {
            return Ok(false);
        }
        crash::point("before clean check");
        let Some(git) = self.git.clone() else { return Ok(true) };
        let tree = match of {
            CleanOf::Commit(commit) => commit.clone(),
            CleanOf::Attempt { .. } => git.tree_of_index(&self.taken_index())?,
        };
        if self.clean_checkout.as_ref() != Some(&tree) {
            self.clean_checkout = None;
            self.make_clean_checkout(&git, &tree)?;
            self.clean_checkout = Some(tree);
        }
        let env = self.environment_of_clean(of);
        self.run_check(Purpose::Clean { of: of.clone(), step: step.clone() }, env)
    }

    /// Where the checkout is.
    pub(crate) fn clean_root(&self) -> PathBuf {
        self.dir.lane(self.journal.id).join("clean")
    }

    fn make_clean_checkout(&self, git: &Git, tree: &str) -> Result<(), EngineError> {
        let root = self.clean_root();
        let index = self.dir.lane(self.journal.id).join("clean-index");
        let checkout = git.elsewhere(&root, &index);
        checkout.check_out_clean(tree)?;
        let commit = git.has_commit(tree)?.then(|| tree.to_owned());
        let head = Head { branch: None, commit: commit.or(git.head()?.commit) };
        Private::inside(&root).make(&checkout, &head, &index)?;
        for (submodule, commit) in checkout.submodules_elsewhere(git)? {
            submodule.check_out_clean(&commit)?;
            let head = Head { branch: None, commit: Some(commit) };
            Private::inside(submodule.root()).make(&submodule, &head, &submodule.index_path())?;
        }
        for name in &self.journal.state.policy.workspace.copy {
            let copied = copy_along(self.settings.workspace(), &root, name);
            copied.map_err(|source| EngineError::Write { path: root.join(name), source })?;
        }
        Ok(())
    }

    /// A check may be about single tasks: those of a commit are about its last one.
    fn environment_of_clean(&self, of: &CleanOf) -> Vec<(OsString, OsString)> {
        let state = &self.journal.state;
        let (task, iteration, attempt) = match of {
            CleanOf::Attempt { iteration, attempt } => {
                (state.open.here().map(|open| &open.task), *iteration, *attempt)
            }
            CleanOf::Commit(_) => {
                let task = state.clean.tasks.last();
                let attempts = task.and_then(|task| state.task(task)).map_or(1, |entry| entry.attempts);
                (task, state.iterations, attempts)
            }
        };
        match task {
            Some(task) => self.environment(iteration, task, attempt),
            None => self.environment_without_task(),
        }
    }

    pub(crate) fn record_clean(&mut self, of: &CleanOf, evidence: Evidence) {
        let evidence = Evidence { clean: true, ..evidence };
        self.record(match of.clone() {
            CleanOf::Commit(commit) => Event::CleanChecked { commit, evidence },
            CleanOf::Attempt { iteration, attempt } => {
                Event::EvidenceGathered { iteration, attempt, evidence }
            }
        });
    }

    /// It may be large, and the next run makes its own.
    pub(crate) fn remove_clean_checkout(&mut self) {
        if self.clean_checkout.take().is_some() {
            // What is left is removed by the next one.
            drop(remove_tree(&self.clean_root()));
        }
    }
}

/// Copies a file or a directory that git ignores, if it is there; what leads out of the workspace is refused.
fn copy_along(from: &Path, to: &Path, name: &str) -> io::Result<()> {
    let source = inside(from, name).map_err(io::Error::other)?;
    match fs::symlink_metadata(&source) {
        Ok(_) => copy_tree(&source, &to.join(name)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}
