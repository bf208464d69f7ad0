//! Real repositories for tests.
#![allow(dead_code, reason = "each test program uses a part of it")]

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use wiggum_core::event::Exit;
use wiggum_workspace::git::{CommitOutcome, Git, GitError, Head};
use wiggum_workspace::process::{self, CommandLine, Launch};

/// A repository that knows nothing of the machine it is on.
pub(crate) struct Repository {
    _base: tempfile::TempDir,
    pub(crate) root: PathBuf,
    pub(crate) git: Git,
}

impl Repository {
    pub(crate) fn empty() -> Self {
        Self::with(&["init", "-q", "-b", "main"])
    }

    pub(crate) fn with(init: &[&str]) -> Self {
        let base = tempfile::tempdir().unwrap();
        let root = base.path().canonicalize().unwrap().join("my répo");
        fs::create_dir(&root).unwrap();
        git_in(&root, init);
        let git = discover(&root).unwrap();
        Self { _base: base, root, git }
    }

    pub(crate) fn set_aside(&self, reference: &str, keep: &[&str]) -> Result<Option<String>, GitError> {
        let kept = self.git.keep_changes(reference, keep)?;
        if kept.is_some() {
            self.git.reset_hard(self.git.head()?.commit.as_deref(), keep)?;
        }
        Ok(kept)
    }

    /// With one commit of `a.txt`.
    pub(crate) fn new() -> Self {
        let repository = Self::empty();
        repository.write("a.txt", "one\ntwo\nthree\n");
        repository.commit_all("first");
        repository
    }

    pub(crate) fn write(&self, path: &str, content: &str) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.root.join(path)).unwrap()
    }

    pub(crate) fn exists(&self, path: &str) -> bool {
        fs::symlink_metadata(self.root.join(path)).is_ok()
    }

    pub(crate) fn run(&self, args: &[&str]) -> String {
        git_in(&self.root, args)
    }

    pub(crate) fn commit_all(&self, message: &str) -> String {
        self.git.stage_all(&[]).unwrap();
        committed(self.git.commit(message, &[]).unwrap())
    }

    pub(crate) fn head(&self) -> Head {
        self.git.head().unwrap()
    }

    pub(crate) fn tip(&self) -> String {
        self.head().commit.unwrap()
    }

    pub(crate) fn short_status(&self) -> String {
        self.run(&["--no-optional-locks", "status", "--short", "-uall"])
    }

    pub(crate) fn hook(&self, name: &str, script: &str) {
        let path = self.git.common_dir().join("hooks").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
}

pub(crate) fn hermetic() -> Vec<(OsString, OsString)> {
    let env = [("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_CONFIG_SYSTEM", "/dev/null")];
    env.map(|(name, value)| (name.into(), value.into())).to_vec()
}

pub(crate) fn discover(directory: &Path) -> Option<Git> {
    Git::discover_with(directory, hermetic()).unwrap()
}

pub(crate) fn git_in(directory: &Path, args: &[&str]) -> String {
    let always = ["-c", "user.name=User", "-c", "user.email=user@example.org", "-c", "core.quotePath=off"];
    let args = always.iter().chain(args).copied();
    let mut launch = Launch::new(CommandLine::new("git", args), directory);
    launch.env = hermetic();
    let output = process::run(launch).unwrap();
    let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    assert_eq!(output.exit, Exit::Code { code: 0 }, "{text}");
    text
}

pub(crate) fn committed(outcome: CommitOutcome) -> String {
    match outcome {
        CommitOutcome::Committed(commit) => commit,
        CommitOutcome::Refused(output) => panic!("refused: {output}"),
    }
}
