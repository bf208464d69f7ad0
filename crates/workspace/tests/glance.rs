//! A look at the files in place of `git status`: it says what git says, or asks git.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test may fail here")]

use std::fs::{self, File, FileTimes, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use wiggum_workspace::git::{Git, GitError, Known, Status};
use wiggum_workspace::process::{self, CommandLine, Launch};

struct Repository {
    _base: tempfile::TempDir,
    root: PathBuf,
    git: Git,
    /// The same, but it cannot start git: what it answers, it saw for itself.
    blind: Git,
    known: Known,
}

impl Repository {
    /// With a commit, and after one question to git.
    fn new() -> Self {
        let base = tempfile::tempdir().unwrap();
        let root = base.path().canonicalize().unwrap().join("répo");
        fs::create_dir(&root).unwrap();
        // Before git is started: its time cannot be set back.
        symlink("a.txt", root.join("link")).unwrap();
        git(&root, &["init", "-q", "-b", "main"]);
        let isolated = vec![("GIT_CONFIG_GLOBAL".into(), "/dev/null".into())];
        let sighted = Git::discover_with(&root, isolated).unwrap().unwrap();
        let mut blind = Git::new(&root, None);
        blind = blind.with_env(vec![("PATH".into(), "/nowhere".into())]);
        let mut repository = Self { _base: base, root, git: sighted, blind, known: Known::default() };
        repository.write("a.txt", "one\n");
        repository.write("src/b.txt", "two\n");
        repository.write("run.sh", "true\n");
        repository.write(".gitignore", "*.log\n/target/\n");
        repository.write("target/x", "built\n");
        repository.write("out.log", "noise\n");
        repository.commit();
        repository.ask();
        repository
    }

    fn write(&self, path: &str, content: &str) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        age(&path);
    }

    fn stage(&self) {
        self.git.stage_all(&[]).unwrap();
    }

    fn commit(&mut self) {
        self.stage();
        git(&self.root, &["commit", "-q", "--allow-empty", "-m", "next"]);
        let commit = self.git.head().unwrap().commit.unwrap();
        self.known.committed(&self.git, &commit);
    }

    /// As the engine asks.
    fn ask(&mut self) -> Status {
        self.git.status_known(&mut self.known, &[]).unwrap()
    }

    /// What can be said without git.
    fn glance(&mut self) -> Option<Status> {
        match self.blind.status_known(&mut self.known, &[]) {
            Ok(status) => Some(status),
            Err(GitError::Start(_)) => None,
            Err(error) => panic!("{error}"),
        }
    }

    #[track_caller]
    fn sees(&mut self) {
        let seen = self.glance().expect("git should not be needed");
        assert_eq!(seen, self.git.status().unwrap());
    }

    #[track_caller]
    fn asks(&mut self) {
        assert_eq!(self.glance(), None, "git should be asked");
    }
}

/// Older than any index: what was written in the same moment as the index is looked at by git.
fn age(path: &Path) {
    let past = SystemTime::UNIX_EPOCH + Duration::from_secs(1_600_000_000);
    File::open(path).unwrap().set_times(FileTimes::new().set_modified(past)).unwrap();
}

fn git(root: &Path, arguments: &[&str]) {
    let own = ["-c", "user.name=R", "-c", "user.email=r@example.com"];
    let mut launch = Launch::new(CommandLine::new("git", own.iter().chain(arguments)), root);
    launch.env =
        ["GLOBAL", "SYSTEM"].map(|of| (format!("GIT_CONFIG_{of}").into(), "/dev/null".into())).into();
    assert!(process::run(launch).unwrap().exit.success(), "git {arguments:?}");
}

#[test]
fn a_tree_as_it_was_staged_needs_no_git() {
    let mut repository = Repository::new();
    repository.sees();
    repository.write("a.txt", "one and more\n");
    repository.write("new/c.txt", "three\n");
    fs::remove_file(repository.root.join("src/b.txt")).unwrap();
    fs::set_permissions(repository.root.join("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    repository.stage();
    repository.sees();
    assert_eq!(repository.glance().unwrap().staged.len(), 4);
    repository.commit();
    repository.sees();
    assert!(repository.glance().unwrap().is_clean());
}

#[test]
fn a_file_that_became_a_link_is_told_as_git_tells_it() {
    let mut repository = Repository::new();
    fs::remove_file(repository.root.join("a.txt")).unwrap();
    symlink("run.sh", repository.root.join("a.txt")).unwrap();
    fs::remove_file(repository.root.join("link")).unwrap();
    repository.write("link", "no link any more\n");
    repository.stage();
    // A link's own time cannot be set back from here.
    git(&repository.root, &["update-index", "--refresh"]);
    if repository.glance().is_some() {
        repository.sees();
    }
}

#[test]
fn what_is_ignored_may_change_as_it_likes() {
    let mut repository = Repository::new();
    repository.write("out.log", "more noise\n");
    repository.write("target/deep/y", "built as well\n");
    repository.sees();
}

#[test]
fn every_change_since_the_tree_was_staged_is_for_git() {
    let changes: [fn(&Repository); 9] = [
        |r| r.write("a.txt", "changed\n"),
        |r| fs::write(r.root.join("a.txt"), "two\n").unwrap(),
        |r| r.write("untracked.txt", "new\n"),
        |r| r.write("deep/er/untracked.txt", "new\n"),
        |r| r.write("src/other.log", "ignored, but never seen before\n"),
        |r| fs::remove_file(r.root.join("src/b.txt")).unwrap(),
        |r| fs::set_permissions(r.root.join("a.txt"), fs::Permissions::from_mode(0o755)).unwrap(),
        |r| {
            fs::remove_file(r.root.join("link")).unwrap();
            symlink("run.sh", r.root.join("link")).unwrap();
        },
        |r| {
            fs::remove_file(r.root.join("a.txt")).unwrap();
            fs::create_dir(r.root.join("a.txt")).unwrap();
        },
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let mut repository = Repository::new();
        change(&repository);
        assert_eq!(repository.glance(), None, "change {number}");
    }
}

#[test]
fn a_change_that_keeps_size_and_time_is_noticed() {
    let mut repository = Repository::new();
    let path = repository.root.join("a.txt");
    let before = path.metadata().unwrap().modified().unwrap();
    let mut file = OpenOptions::new().write(true).open(&path).unwrap();
    file.write_all(b"ONE\n").unwrap();
    file.set_times(FileTimes::new().set_modified(before)).unwrap();
    repository.asks();
}

#[test]
fn a_file_of_the_same_moment_as_the_index_is_for_git() {
    let mut repository = Repository::new();
    fs::write(repository.root.join("a.txt"), "just now\n").unwrap();
    repository.stage();
    // As if both had been written within one tick of the clock.
    let index = File::open(repository.root.join(".git/index")).unwrap();
    let written = repository.root.join("a.txt").metadata().unwrap().modified().unwrap();
    index.set_times(FileTimes::new().set_modified(written)).unwrap();
    repository.asks();
}

#[test]
fn another_commit_or_other_rules_of_what_is_ignored_are_for_git() {
    let mut repository = Repository::new();
    git(&repository.root, &["commit", "-q", "--allow-empty", "-m", "by somebody else"]);
    repository.asks();
    let mut repository = Repository::new();
    fs::remove_file(repository.root.join("target/x")).unwrap();
    repository.write(".gitignore", "*.log\n");
    repository.stage();
    repository.write("target/x", "nobody ignores it any more\n");
    repository.asks();
}

#[test]
fn an_unusual_index_is_for_git() {
    let unusual: [&[&str]; 5] = [
        &["update-index", "--assume-unchanged", "a.txt"],
        &["update-index", "--skip-worktree", "a.txt"],
        &["update-index", "--index-version", "4"],
        &["update-index", "--split-index"],
        &["add", "--intent-to-add", "--", "later.txt"],
    ];
    for arguments in unusual {
        let mut repository = Repository::new();
        repository.write("later.txt", "not yet\n");
        if arguments[0] != "add" {
            fs::remove_file(repository.root.join("later.txt")).unwrap();
        }
        git(&repository.root, arguments);
        assert_eq!(repository.glance(), None, "{arguments:?}");
    }
}

#[test]
fn a_repository_inside_is_for_git() {
    let mut repository = Repository::new();
    fs::create_dir(repository.root.join("inner")).unwrap();
    git(&repository.root.join("inner"), &["init", "-q"]);
    repository.asks();
}

#[test]
fn paths_apart_are_not_looked_at() {
    let mut repository = Repository::new();
    fs::write(repository.root.join("a.txt"), "somebody else's\n").unwrap();
    let apart = ["a.txt".to_owned(), "none.txt".to_owned()];
    let status = repository.blind.status_known(&mut repository.known, &apart).unwrap();
    assert!(status.is_clean());
    fs::remove_file(repository.root.join("run.sh")).unwrap();
    assert!(repository.blind.status_known(&mut repository.known, &apart).is_err());
}

/// Whatever happens to a tree: what is seen without git is what git says.
#[test]
fn random_changes_are_never_told_otherwise_than_by_git() {
    let mut answered = 0;
    for seed in 1..=12_u64 {
        let mut random = seed;
        let mut repository = Repository::new();
        for _ in 0..12 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let path = ["a.txt", "src/b.txt", "new.txt", "out.log", "src/deep/d.txt", "run.sh"]
                [usize::try_from(random >> 33).unwrap() % 6];
            match (random >> 40) % 7 {
                0 | 1 => repository.write(path, &format!("{random}\n")),
                2 => drop(fs::remove_file(repository.root.join(path))),
                3 => repository.stage(),
                4 => repository.commit(),
                5 => drop(repository.ask()),
                _ => drop(fs::write(repository.root.join(path), "now\n")),
            }
            if let Some(seen) = repository.glance() {
                assert_eq!(seen, repository.git.status().unwrap(), "seed {seed}");
                answered += 1;
            }
        }
    }
    assert!(answered > 30, "git was needed nearly always: {answered}");
}
