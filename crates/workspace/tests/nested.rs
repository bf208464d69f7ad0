//! Repositories inside the work tree: their files are the work, and nothing of theirs is obeyed.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test may fail here")]

mod support;

use std::fs;

use support::{Repository, git_in};
use wiggum_workspace::git::Odd;
use wiggum_workspace::process::{self, CommandLine, Launch};

fn nest(repository: &Repository, path: &str, commits: bool) {
    repository.write(&format!("{path}/inside.txt"), "inside\n");
    let at = repository.root.join(path);
    git_in(&at, &["init", "-q"]);
    if commits {
        git_in(&at, &["add", "-A"]);
        git_in(&at, &["commit", "-q", "-m", "inside"]);
    }
    git_in(&at, &["config", "core.fsmonitor", "touch ../pwned; false"]);
    git_in(&at, &["config", "filter.x.clean", "touch ../pwned; cat"]);
    fs::write(at.join(".gitattributes"), "* filter=x\n").unwrap();
}

#[test]
fn they_become_plain_files_with_a_commit_and_without() {
    let repository = Repository::new();
    nest(&repository, "with spaces", true);
    nest(&repository, "deep/er", false);
    nest(&repository, "deep/est", false);
    let found = repository.git.stage_all(&[]).unwrap();
    let mut paths = Vec::new();
    for odd in &found {
        let Odd::Repository { path, kept } = odd else { panic!("{odd:?}") };
        assert!(kept.join("HEAD").is_file(), "their history is kept");
        paths.push(path.as_str());
    }
    paths.sort_unstable();
    assert_eq!(paths, ["deep/er", "deep/est", "with spaces"]);
    let status = repository.git.status().unwrap();
    let staged: Vec<&str> = status.staged.iter().map(|entry| entry.path.as_str()).collect();
    for path in ["with spaces/inside.txt", "deep/er/inside.txt", "deep/est/inside.txt"] {
        assert!(staged.contains(&path), "{staged:?}");
    }
    assert!(status.unstaged.is_empty() && status.untracked.is_empty());
    assert!(!repository.exists("pwned"));
    // A clone has them.
    repository.commit_all("work");
    let clone = tempfile::tempdir().unwrap();
    git_in(clone.path(), &["clone", "-q", repository.root.to_str().unwrap(), "clone"]);
    assert!(clone.path().join("clone/deep/er/inside.txt").is_file());
}

#[test]
fn what_is_ignored_stays_as_it_is() {
    let repository = Repository::new();
    repository.write(".gitignore", "/ignored/\n");
    nest(&repository, "ignored", true);
    assert!(repository.git.stage_all(&[]).unwrap().is_empty());
    assert!(repository.exists("ignored/.git/HEAD"));
}

#[test]
fn submodules_stay_links() {
    let other = Repository::new();
    let repository = Repository::new();
    let url = other.root.to_str().unwrap();
    repository.run(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", url, "lib"]);
    assert!(repository.git.stage_all(&[]).unwrap().is_empty());
    assert!(repository.run(&["ls-files", "-s", "lib"]).starts_with("160000 "));
    repository.commit_all("with a submodule");
    // Known before: a link whose file of names is gone is still no work of anybody's.
    fs::remove_file(repository.root.join(".gitmodules")).unwrap();
    assert!(repository.git.stage_all(&[]).unwrap().is_empty());
    assert!(repository.exists("lib/.git"));
}

#[test]
fn a_pipe_in_the_place_of_a_file_is_a_file_that_is_gone() {
    let repository = Repository::new();
    repository.write("deep/b c.txt", "b\n");
    repository.commit_all("more");
    for path in ["a.txt", "deep/b c.txt"] {
        fs::remove_file(repository.root.join(path)).unwrap();
    }
    for path in ["a.txt", "deep/b c.txt", "new"] {
        let launch = Launch::new(CommandLine::new("mkfifo", [path]), &repository.root);
        assert!(process::run(launch).unwrap().exit.success());
    }
    let mut found = repository.git.stage_all(&[]).unwrap();
    found.sort_by_key(|odd| format!("{odd:?}"));
    let special = |path: &str| Odd::Special { path: path.to_owned() };
    assert_eq!(found, [special("a.txt"), special("deep/b c.txt")]);
    assert_eq!(repository.short_status(), "D  a.txt\nD  \"deep/b c.txt\"\n");
}
