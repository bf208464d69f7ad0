//! Repositories inside the work tree: their files are the work, and nothing of theirs is obeyed.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test may fail here")]

mod support;

use std::fs;

use support::{Repository, git_in};

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
    let mut paths: Vec<&str> = found.iter().map(|(path, _)| path.as_str()).collect();
    paths.sort_unstable();
    assert_eq!(paths, ["deep/er", "deep/est", "with spaces"]);
    for (_, kept) in &found {
        assert!(kept.join("HEAD").is_file(), "their history is kept");
    }
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
