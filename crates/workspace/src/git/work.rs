//! Moving work around: an attempt's under a ref and back, an agent's own commits into the task's,
//! the user's uncommitted changes out of the way and back again.
//!
//! Whatever is about to be overwritten is under a ref first.

use std::fs;
use std::path::Path;

use wiggum_core::event::Exit;

use crate::process::Input;

use super::ignore::{STATE_DIR, STATE_FILES};
use super::{
    Git, GitError, Hooks, Status, excluding, execute, failed, index_variable, literal, owned,
    remove_if_there, text,
};

/// What was found when HEAD was put back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Squashed {
    /// The commits that are no longer on the branch, newest first; their changes are in the files.
    pub commits: Vec<String>,
    /// HEAD was somewhere else: on this branch, or detached (`None` inside).
    pub switched_from: Option<Option<String>>,
    /// A merge, rebase, cherry-pick, revert or bisect was under way; it was given up.
    pub unfinished: Option<&'static str>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PutBack {
    Clean,
    /// The changes no longer fit: the work tree is as before, the changes are still in their commit.
    Conflict(String),
}

impl Git {
    /// Puts the index under a reference, as a commit on top of HEAD; nothing else changes.
    pub fn keep_work(&self, reference: &str, message: &str) -> Result<String, GitError> {
        let tree = self.index_tree()?;
        let parents: Vec<String> = self.head()?.commit.into_iter().collect();
        let commit = self.commit_tree(&tree, &parents, message)?;
        self.run(&["update-ref", reference, &commit])?;
        Ok(commit)
    }

    /// As [`Git::keep_work`], on top of another commit than HEAD.
    pub fn keep_tree_on(&self, reference: &str, parent: &str, message: &str) -> Result<String, GitError> {
        let tree = self.index_tree()?;
        let commit = self.commit_tree(&tree, &[parent.to_owned()], message)?;
        self.run(&["update-ref", reference, &commit])?;
        Ok(commit)
    }

    /// Work tree and index become that commit's tree; HEAD stays. Files that are not in it and not
    /// ignored are removed. Our files in `.wiggum/` and `keep` are not touched.
    pub fn restore_work(&self, commit: &str, keep: &[&str]) -> Result<(), GitError> {
        self.run(&["read-tree", "--reset", commit])?;
        self.work_tree_from_index(keep)
    }

    /// Files of the work tree become those of a commit; the index stays.
    pub fn restore_files(&self, commit: &str, paths: &[&str]) -> Result<(), GitError> {
        if paths.is_empty() {
            return Ok(());
        }
        let mut command = owned(&["restore", "--worktree", &format!("--source={commit}"), "--"]);
        command.extend(paths.iter().map(|path| literal(path)));
        self.run(&command)
    }

    /// HEAD (with its branch), index and work tree become that commit, or no commit at all.
    pub fn reset_hard(&self, commit: Option<&str>, keep: &[&str]) -> Result<(), GitError> {
        self.give_up_operation()?;
        let head = self.head()?;
        if head.commit.as_deref() != commit {
            match commit {
                Some(commit) => self.run(&["update-ref", "-m", "wiggum: reset", "HEAD", commit])?,
                None => self.run(&["update-ref", "-d", "HEAD"])?,
            }
        }
        match commit {
            Some(commit) => self.restore_work(commit, keep),
            None => {
                self.run(&["read-tree", "--empty"])?;
                self.work_tree_from_index(keep)
            }
        }
    }

    /// First the tracked files, so that the right `.gitignore` decides what is then removed.
    fn work_tree_from_index(&self, keep: &[&str]) -> Result<(), GitError> {
        let mut restore = owned(&["restore", "--worktree", "--", "."]);
        restore.extend(keep.iter().map(|path| excluding(path)));
        let output = self.output(&restore, Hooks::Off)?;
        let nothing_to_restore = || text(&output.stderr).contains("did not match any file");
        if !output.exit.success() && !nothing_to_restore() {
            return Err(failed(&restore, &output));
        }
        // Twice forced: also repositories that an agent made inside this one.
        let mut clean = owned(&["clean", "-ffdq"]);
        for name in STATE_FILES {
            clean.extend(["-e".to_owned(), format!("/{STATE_DIR}/{name}")]);
        }
        for path in keep {
            clean.extend(["-e".to_owned(), ignore_pattern(path)]);
        }
        self.run(&clean)?;
        self.submodules_from_index()
    }

    /// Submodules stand on the commits that the index names; what is not committed inside stays. One
    /// that cannot be moved (its changed files are in the way, or the commit was never fetched) is left
    /// where it is: the next status shows it.
    fn submodules_from_index(&self) -> Result<(), GitError> {
        if self.root.join(".gitmodules").exists() {
            self.output(&["submodule", "--quiet", "update", "--no-fetch"], Hooks::Off)?;
        }
        Ok(())
    }

    /// Undoes what an agent did to HEAD: the branch is at `base` again, index and files stay.
    /// Without anything to undo no process is started.
    pub fn squash_onto(&self, base: Option<&str>, branch: Option<&str>) -> Result<Squashed, GitError> {
        let unfinished = self.give_up_operation()?;
        let head = self.head()?;
        let moved = head.commit.as_deref() != base;
        let switched = head.branch.as_deref() != branch;
        let commits = match &head.commit {
            Some(commit) if moved => self.commits_between(base, commit)?,
            Some(_) | None => Vec::new(),
        };
        match (branch, base) {
            (Some(branch), base) if moved || switched => {
                let reference = format!("refs/heads/{branch}");
                match base {
                    Some(base) => self.run(&["update-ref", "-m", "wiggum: squash", &reference, base])?,
                    None => self.run(&["update-ref", "-d", &reference])?,
                }
                if switched {
                    self.run(&["symbolic-ref", "-m", "wiggum: switch back", "HEAD", &reference])?;
                }
            }
            (None, Some(base)) if moved || switched => {
                self.run(&["update-ref", "-m", "wiggum: squash", "--no-deref", "HEAD", base])?;
            }
            (Some(_) | None, _) => {}
        }
        Ok(Squashed { commits, switched_from: switched.then_some(head.branch), unfinished })
    }

    /// Is the one commit part of the other's history?
    pub fn is_ancestor(&self, commit: &str, of: &str) -> Result<bool, GitError> {
        let command = ["merge-base", "--is-ancestor", commit, of];
        let output = self.output(&command, Hooks::Off)?;
        match output.exit {
            Exit::Code { code: 0 } => Ok(true),
            Exit::Code { code: 1 } => Ok(false),
            Exit::Code { .. } | Exit::Signal { .. } | Exit::TimedOut | Exit::NotStarted => {
                Err(failed(&command, &output))
            }
        }
    }

    fn commits_between(&self, base: Option<&str>, tip: &str) -> Result<Vec<String>, GitError> {
        let mut command = owned(&["rev-list", tip]);
        command.extend(base.map(|base| format!("^{base}")));
        Ok(text(&self.bytes(&command)?).lines().map(str::to_owned).collect())
    }

    /// What git is in the middle of, if anything.
    pub fn unfinished_operation(&self) -> Option<&'static str> {
        OPERATIONS.iter().find(|(file, _)| self.git_dir.join(file).exists()).map(|(_, name)| *name)
    }

    /// Files and index stay; only git forgets what it was doing. (`git merge --quit` and its
    /// siblings would be a process each.)
    fn give_up_operation(&self) -> Result<Option<&'static str>, GitError> {
        let operation = self.unfinished_operation();
        if operation.is_some() {
            let files = ["MERGE_MODE", "MERGE_MSG", "AUTO_MERGE", "SQUASH_MSG", "MERGE_RR"];
            for file in OPERATIONS.iter().map(|(file, _)| *file).chain(files) {
                let path = self.git_dir.join(file);
                let removed = if path.is_dir() { fs::remove_dir_all(&path) } else { remove_if_there(&path) };
                removed.map_err(|source| GitError::File { path, source })?;
            }
        }
        Ok(operation)
    }

    /// Puts the user's uncommitted changes, staged, unstaged and untracked, under `reference` in the
    /// shape of a stash; nothing else changes. `None` if there are none, `keep` apart. The work tree
    /// is then made clean by [`Git::reset_hard`], once it is written down where they are.
    pub fn keep_changes(&self, reference: &str, keep: &[&str]) -> Result<Option<String>, GitError> {
        let status = without(self.status()?, keep);
        if status.is_clean() {
            return Ok(None);
        }
        refuse_what_no_stash_can_hold(&status)?;
        let head = self.head()?.commit;
        let base = match &head {
            Some(commit) => commit.clone(),
            // A stash needs something to stand on.
            None => {
                let empty = self.tree_with_index("empty", |_| Ok(()))?;
                self.commit_tree(&empty, &[], "wiggum: before the first commit")?
            }
        };
        let commit = self.stash_commit(&base, &status, keep)?;
        self.run(&["update-ref", reference, &commit])?;
        Ok(Some(commit))
    }

    fn stash_commit(&self, base: &str, status: &Status, keep: &[&str]) -> Result<String, GitError> {
        let parent = [base.to_owned()];
        let index = self.tree_with_index("index", |temporary| self.copy_staged(base, keep, temporary))?;
        let index = self.commit_tree(&index, &parent, "wiggum: index")?;
        let files = self.tree_with_index("files", |temporary| {
            self.copy_staged(base, keep, temporary)?;
            // Git complains where it knows no file at all.
            if status.staged.is_empty() && status.unstaged.is_empty() {
                return Ok(());
            }
            let mut command = owned(&["add", "-u", "--", "."]);
            command.extend(keep.iter().map(|path| excluding(path)));
            self.run_with_index(&command, temporary, Input::Nothing)
        })?;
        let mut parents = vec![base.to_owned(), index];
        if !status.untracked.is_empty() {
            let untracked = self.tree_with_index("untracked", |temporary| {
                let mut command = owned(&["add", "-f", "--pathspec-from-file=-", "--pathspec-file-nul"]);
                command.insert(0, "--literal-pathspecs".to_owned());
                let mut paths = status.untracked.join("\0").into_bytes();
                paths.push(0);
                self.run_with_index(&command, temporary, Input::Bytes(paths))
            })?;
            parents.push(self.commit_tree(&untracked, &[], "wiggum: untracked files")?);
        }
        self.commit_tree(&files, &parents, "wiggum: changes set aside")
    }

    /// The index, in which these files are as in the last commit.
    fn copy_staged(&self, base: &str, but: &[&str], to: &Path) -> Result<(), GitError> {
        let from = self.index_path();
        match fs::copy(&from, to) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                return Err(GitError::File { path: from, source });
            }
            Ok(_) | Err(_) => {}
        }
        if but.is_empty() {
            return Ok(());
        }
        let mut command = owned(&["reset", "--quiet", base, "--"]);
        command.extend(but.iter().map(|path| literal(path)));
        self.run_with_index(&command, to, Input::Nothing)
    }

    /// Do two commits made by [`Git::keep_changes`] hold the same changes?
    pub fn same_changes(&self, one: &str, other: &str) -> Result<bool, GitError> {
        for part in ["", "^2", "^3"] {
            let tree = |commit: &str| self.resolve(&format!("{commit}{part}^{{tree}}"));
            if tree(one)? != tree(other)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Brings changes back that were set aside; the work tree must be clean, `keep` apart. The
    /// reference stays either way.
    pub fn put_back(&self, commit: &str, keep: &[&str]) -> Result<PutBack, GitError> {
        let status = without(self.status()?, keep);
        if !status.is_clean() {
            return Err(GitError::NotClean { paths: status.paths() });
        }
        let head = self.head()?.commit;
        if head.is_none() {
            self.put_back_without_history(commit)?;
            return Ok(PutBack::Clean);
        }
        let output = self.output(&["stash", "apply", "--index", "--quiet", commit], Hooks::Off)?;
        if output.exit.success() {
            return Ok(PutBack::Clean);
        }
        self.reset_hard(head.as_deref(), keep)?;
        Ok(PutBack::Conflict(super::message_of(&output)))
    }

    /// On a branch without commits nothing can be in the way.
    fn put_back_without_history(&self, commit: &str) -> Result<(), GitError> {
        if let Some(untracked) = self.resolve(&format!("{commit}^3"))? {
            self.run(&["read-tree", "--reset", &untracked])?;
            self.run(&["checkout-index", "-a", "-f"])?;
        }
        self.run(&["read-tree", "--reset", commit])?;
        self.run(&["checkout-index", "-a", "-f"])?;
        self.run(&["read-tree", "--reset", &format!("{commit}^2")])
    }

    pub(super) fn commit_tree(
        &self,
        tree: &str,
        parents: &[String],
        message: &str,
    ) -> Result<String, GitError> {
        let mut command = owned(&["commit-tree", "--no-gpg-sign", tree]);
        command.extend(parents.iter().flat_map(|parent| ["-p".to_owned(), parent.clone()]));
        let mut launch = self.launch(&command, Hooks::Off);
        launch.env.extend(self.identity()?);
        launch.stdin = Input::Bytes(message.as_bytes().to_vec());
        Ok(text(&self.bytes_of(&command, launch)?).trim_end().to_owned())
    }

    /// The tree that `fill` builds in an index of its own; the user's is not involved.
    fn tree_with_index(
        &self,
        name: &str,
        fill: impl FnOnce(&Path) -> Result<(), GitError>,
    ) -> Result<String, GitError> {
        let temporary = self.git_dir.join(format!("index.wiggum-{name}"));
        let on_file = |source| GitError::File { path: temporary.clone(), source };
        remove_if_there(&temporary).map_err(on_file)?;
        let tree = fill(&temporary).and_then(|()| {
            let command = ["write-tree"];
            let mut launch = self.launch(&command, Hooks::Off);
            launch.env.push(index_variable(&temporary));
            Ok(text(&self.bytes_of(&command, launch)?).trim_end().to_owned())
        });
        remove_if_there(&temporary).map_err(on_file)?;
        tree
    }

    fn run_with_index(&self, command: &[String], index: &Path, input: Input) -> Result<(), GitError> {
        let mut launch = self.launch(command, Hooks::Off);
        launch.env.push(index_variable(index));
        launch.stdin = input;
        let output = execute(command, launch)?;
        if output.exit.success() { Ok(()) } else { Err(failed(command, &output)) }
    }
}

/// Files in the git directory that say what git is in the middle of.
const OPERATIONS: [(&str, &str); 7] = [
    ("MERGE_HEAD", "merge"),
    ("rebase-merge", "rebase"),
    ("rebase-apply", "rebase"),
    ("CHERRY_PICK_HEAD", "cherry-pick"),
    ("REVERT_HEAD", "revert"),
    ("sequencer", "sequence of picks"),
    ("BISECT_LOG", "bisect"),
];

fn refuse_what_no_stash_can_hold(status: &Status) -> Result<(), GitError> {
    let unmerged: Vec<String> = status
        .unstaged
        .iter()
        .filter(|entry| entry.change == super::Change::Unmerged)
        .map(|entry| entry.path.clone())
        .collect();
    if !unmerged.is_empty() {
        return Err(GitError::Unmerged { paths: unmerged });
    }
    match status.untracked.iter().find(|path| path.ends_with('/')) {
        Some(path) => Err(GitError::NestedRepository { path: path.clone() }),
        None => Ok(()),
    }
}

fn without(mut status: Status, keep: &[&str]) -> Status {
    let other = |path: &str| !keep.contains(&path);
    status.staged.retain(|entry| other(&entry.path));
    status.unstaged.retain(|entry| other(&entry.path));
    status.untracked.retain(|path| other(path));
    status
}

/// A path as a pattern of `.gitignore` that matches it alone.
fn ignore_pattern(path: &str) -> String {
    let mut pattern = String::from("/");
    for c in path.chars() {
        if "*?[]\\! #".contains(c) {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern
}
