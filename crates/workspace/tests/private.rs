//! A repository that stands in for the user's, and an index that is not the user's.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test may fail here")]

mod support;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use support::{Repository, committed, discover, git_in, hermetic};
use wiggum_core::event::Exit;
use wiggum_workspace::git::{Git, GitError, IndexStamp, Private};
use wiggum_workspace::process::{self, CommandLine, Launch};
use wiggum_workspace::sandbox::Mount;

/// A stand-in, seen without mounts: what would be mounted is found by variables and links.
struct StandIn {
    base: tempfile::TempDir,
    private: Private,
}

impl StandIn {
    fn of(git: &Git) -> Self {
        let base = tempfile::tempdir().unwrap();
        let private = Private::mounted(base.path());
        let stand_in = Self { base, private };
        stand_in.make(git);
        let borrowed = stand_in.base.path().join("borrowed");
        fs::remove_dir(&borrowed).unwrap();
        symlink(git.common_dir().join("objects"), borrowed).unwrap();
        stand_in
    }

    fn make(&self, git: &Git) {
        let index = git.git_dir().join("index");
        self.private.make(git, &git.head().unwrap(), &index).unwrap();
    }

    fn git_dir(&self) -> PathBuf {
        self.base.path().join("git")
    }

    fn run(&self, root: &Path, args: &[&str]) -> String {
        let always = ["-c", "user.name=Agent", "-c", "user.email=agent@example.org"];
        let mut launch = Launch::new(CommandLine::new("git", always.iter().chain(args).copied()), root);
        launch.env = hermetic();
        launch.env.push(("GIT_DIR".into(), self.git_dir().into()));
        launch.env.push(("GIT_WORK_TREE".into(), root.into()));
        let output = process::run(launch).unwrap();
        let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert_eq!(output.exit, Exit::Code { code: 0 }, "git {args:?}: {text}");
        text
    }
}

/// Everything below a directory with its content, but for the times.
fn everything(directory: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut todo = vec![directory.to_owned()];
    while let Some(directory) = todo.pop() {
        for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_dir() {
                todo.push(entry.path());
            } else {
                found.push((entry.path(), fs::read(entry.path()).unwrap()));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn what_is_done_in_it_stays_in_it() {
    let repository = Repository::new();
    repository.run(&["branch", "other"]);
    repository.run(&["tag", "-m", "an annotated one", "v1"]);
    repository.run(&["pack-refs", "--all"]);
    repository.run(&["tag", "v2"]);
    let stand_in = StandIn::of(&repository.git);
    let before = everything(&repository.root.join(".git"));
    let seen = stand_in.run(&repository.root, &["for-each-ref", "--format=%(refname) %(objectname)"]);
    assert_eq!(seen, repository.run(&["for-each-ref", "--format=%(refname) %(objectname)"]));
    assert_eq!(stand_in.run(&repository.root, &["status", "--short"]), "");
    assert_eq!(stand_in.run(&repository.root, &["log", "--format=%s"]), "first\n");

    repository.write("b.txt", "new\n");
    stand_in.run(&repository.root, &["add", "-A"]);
    stand_in.run(&repository.root, &["commit", "-q", "-m", "of the agent"]);
    stand_in.run(&repository.root, &["branch", "-D", "other"]);
    stand_in.run(&repository.root, &["tag", "-d", "v1"]);
    stand_in.run(&repository.root, &["stash", "list"]);
    stand_in.run(&repository.root, &["config", "core.fsmonitor", "./evil"]);
    stand_in.run(&repository.root, &["reflog", "expire", "--expire=now", "--all"]);
    stand_in.run(&repository.root, &["gc", "-q", "--prune=now"]);
    assert_eq!(everything(&repository.root.join(".git")), before);
    let head = stand_in.private.head().unwrap();
    assert_eq!(head.branch.as_deref(), Some("main"));
    assert_ne!(head.commit, repository.head().commit);

    // Made anew, nothing of that is left.
    stand_in.make(&repository.git);
    assert_eq!(stand_in.private.head().unwrap(), repository.head());
    assert!(!fs::read_to_string(stand_in.git_dir().join("config")).unwrap().contains("evil"));
}

#[test]
fn it_is_made_anew_whatever_became_of_it() {
    let repository = Repository::new();
    let stand_in = StandIn::of(&repository.git);
    let git_dir = stand_in.git_dir();
    fs::remove_dir_all(&git_dir).unwrap();
    stand_in.make(&repository.git);
    // A link in its place is removed, and what it leads to stays.
    let elsewhere = tempfile::tempdir().unwrap();
    fs::write(elsewhere.path().join("file"), "kept").unwrap();
    fs::create_dir_all(git_dir.join("closed/inside")).unwrap();
    symlink(elsewhere.path(), git_dir.join("closed/link")).unwrap();
    fs::set_permissions(git_dir.join("closed"), fs::Permissions::from_mode(0o000)).unwrap();
    stand_in.make(&repository.git);
    assert_eq!(fs::read_to_string(elsewhere.path().join("file")).unwrap(), "kept");
    assert!(!git_dir.join("closed").exists());
}

#[test]
fn unborn_branches_detached_heads_and_other_formats_of_hashes_are_seen_as_they_are() {
    let unborn = Repository::empty();
    let stand_in = StandIn::of(&unborn.git);
    assert_eq!(stand_in.private.head(), Some(unborn.head()));
    unborn.write("a", "a");
    assert_eq!(stand_in.run(&unborn.root, &["status", "--short"]), "?? a\n");

    let detached = Repository::new();
    detached.run(&["checkout", "-q", "--detach"]);
    let stand_in = StandIn::of(&detached.git);
    assert_eq!(stand_in.private.head(), Some(detached.head()));
    assert_eq!(stand_in.run(&detached.root, &["status", "--short"]), "");

    for format in [&["--object-format=sha256"][..], &["--ref-format=reftable"]] {
        let other = Repository::with(&[&["init", "-q", "-b", "main"], format].concat());
        other.write("a.txt", "one\n");
        other.commit_all("first");
        other.run(&["tag", "v1"]);
        let stand_in = StandIn::of(&other.git);
        assert_eq!(stand_in.run(&other.root, &["status", "--short"]), "", "{format:?}");
        assert_eq!(stand_in.run(&other.root, &["tag"]), "v1\n", "{format:?}");
        assert_eq!(stand_in.run(&other.root, &["log", "--format=%s", "main"]), "first\n", "{format:?}");
    }
}

#[test]
fn rules_of_the_repository_count_in_it_too() {
    let repository = Repository::new();
    repository.run(&["config", "core.autocrlf", "input"]);
    repository.run(&["config", "remote.origin.url", "https://me:secret@host/x.git"]);
    repository.run(&["config", "index.version", "4"]);
    repository.run(&["update-index", "--split-index"]);
    fs::write(repository.root.join(".git/info/exclude"), "*.log\n").unwrap();
    fs::write(repository.root.join(".git/info/attributes"), "*.bin -text\n").unwrap();
    // Read anew: the configuration is read once.
    let git = discover(&repository.root).unwrap();
    let stand_in = StandIn::of(&git);
    repository.write("x.log", "noise");
    repository.write("crlf.txt", "a\r\n");
    assert_eq!(stand_in.run(&repository.root, &["status", "--short"]), "?? crlf.txt\n");
    assert_eq!(stand_in.run(&repository.root, &["config", "core.autocrlf"]), "input\n");
    assert_eq!(stand_in.run(&repository.root, &["remote", "get-url", "origin"]), "https://me@host/x.git\n");
    let all = everything(&stand_in.git_dir());
    assert!(all.iter().all(|(_, bytes)| !String::from_utf8_lossy(bytes).contains("secret")));
}

#[test]
fn a_shallow_clone_and_borrowed_objects_can_be_read() {
    let repository = Repository::new();
    repository.write("b.txt", "b\n");
    repository.commit_all("second");
    for extra in [&["--depth=1"][..], &["--shared"]] {
        let base = tempfile::tempdir().unwrap();
        let url = format!("file://{}", repository.root.display());
        git_in(base.path(), &[&["clone", "-q"], extra, &[url.as_str(), "clone"]].concat());
        let git = discover(&base.path().join("clone")).unwrap();
        let stand_in = StandIn::of(&git);
        assert_eq!(stand_in.run(git.root(), &["status", "--short"]), "", "{extra:?}");
        assert_eq!(stand_in.run(git.root(), &["log", "-1", "--format=%s"]), "second\n", "{extra:?}");
        stand_in.run(git.root(), &["fsck", "--connectivity-only"]);
    }
}

#[test]
fn a_linked_work_tree_is_mounted_by_its_file() {
    let repository = Repository::new();
    let other = repository.root.parent().unwrap().join("linked");
    repository.run(&["worktree", "add", "-q", "-b", "feature", other.to_str().unwrap()]);
    let git = discover(&other).unwrap();
    let stand_in = StandIn::of(&git);
    assert_eq!(stand_in.private.head().unwrap().branch.as_deref(), Some("feature"));
    let mounts = stand_in.private.mounts(&git);
    let at = |path: &Path| mounts.iter().find(|mount| mount.at == path).unwrap();
    let file = at(&other.canonicalize().unwrap().join(".git"));
    assert!(!file.writable);
    assert_eq!(
        fs::read_to_string(&file.from).unwrap(),
        format!("gitdir: {}\n", stand_in.git_dir().display())
    );
    assert!(at(&stand_in.git_dir()).writable);

    let mounts = stand_in.private.mounts(&repository.git);
    let dot_git = repository.root.join(".git");
    let expected = Mount { from: stand_in.git_dir(), at: dot_git.clone(), writable: true };
    assert!(mounts.contains(&expected));
    assert!(mounts.iter().all(|mount| mount.writable == (mount.at == dot_git)), "{mounts:?}");
}

#[test]
fn submodules_and_filters_have_no_stand_in() {
    let repository = Repository::new();
    assert!(Private::fits(&repository.git).unwrap());
    repository.write(".gitmodules", "");
    assert!(!Private::fits(&repository.git).unwrap());

    let repository = Repository::empty();
    repository.run(&["config", "filter.x.clean", "./clean.sh"]);
    assert!(!Private::fits(&repository.git).unwrap());
}

/// With an index of our own, into which two changes are committed.
struct Committed {
    repository: Repository,
    _own: tempfile::TempDir,
    git: Git,
    seen: IndexStamp,
    base: String,
}

impl Committed {
    fn new(meanwhile: impl Fn(&Repository)) -> Self {
        let repository = Repository::new();
        let own = tempfile::tempdir().unwrap();
        let git = repository.git.clone().with_index(own.path().join("index"));
        let (seen, base) = (git.take_users_index().unwrap(), repository.tip());
        let users = repository.root.join(".git/index");
        let before = fs::read(&users).unwrap();
        repository.write("a.txt", "changed\n");
        repository.write("new.txt", "new\n");
        git.stage_all(&[]).unwrap();
        assert_eq!(git.status().unwrap().staged.len(), 2);
        assert_eq!(fs::read(&users).unwrap(), before);
        assert_eq!(repository.short_status(), " M a.txt\n?? new.txt\n");
        meanwhile(&repository);
        committed(git.commit("work", &[]).unwrap());
        Self { repository, _own: own, git, seen, base }
    }

    fn publish(&self) -> bool {
        let lock = self.git.lock_users_index().unwrap();
        lock.publish(Some(&self.seen), &self.base, &self.repository.tip()).unwrap()
    }

    fn is_unlocked(&self) -> bool {
        !self.repository.exists(".git/index.lock")
    }
}

#[test]
fn with_an_index_of_our_own_the_users_follows_the_commit() {
    let done = Committed::new(|_| {});
    assert_eq!(done.repository.short_status(), "MM a.txt\nD  new.txt\n?? new.txt\n");
    assert!(done.publish() && done.is_unlocked());
    assert_eq!(done.repository.short_status(), "");
    // A copy: what is done to one of them does not reach the other.
    fs::write(done.repository.root.join(".git/index"), "broken").unwrap();
    assert!(done.git.status().unwrap().is_clean());
}

#[test]
fn what_the_user_staged_meanwhile_stays_staged() {
    let done = Committed::new(|repository| {
        repository.write("theirs.txt", "theirs\n");
        repository.run(&["add", "theirs.txt"]);
    });
    assert!(done.publish() && done.is_unlocked());
    assert_eq!(done.repository.short_status(), "A  theirs.txt\n");

    let in_the_way = Committed::new(|repository| {
        repository.write("a.txt", "theirs\n");
        repository.run(&["add", "a.txt"]);
        repository.write("a.txt", "changed\n");
    });
    let before = fs::read(in_the_way.repository.root.join(".git/index")).unwrap();
    assert!(!in_the_way.publish() && in_the_way.is_unlocked());
    assert_eq!(fs::read(in_the_way.repository.root.join(".git/index")).unwrap(), before);
}

#[test]
fn a_saved_index_of_our_own_is_put_back() {
    let repository = Repository::new();
    let own = tempfile::tempdir().unwrap();
    let git = repository.git.clone().with_index(own.path().join("index"));
    git.take_users_index().unwrap();
    repository.write("new.txt", "new\n");
    git.stage_all(&[]).unwrap();
    let saved = own.path().join("saved");
    git.save_index(&saved).unwrap();
    repository.write("later.txt", "later\n");
    git.stage_all(&[]).unwrap();
    git.put_back_index(&saved).unwrap();
    assert_eq!(git.status().unwrap().untracked, ["later.txt"]);
}

#[test]
fn an_index_that_somebody_locked_is_theirs() {
    let done = Committed::new(|_| {});
    let lock = done.repository.root.join(".git/index.lock");
    fs::write(&lock, "of somebody").unwrap();
    assert!(matches!(done.git.lock_users_index(), Err(GitError::Locked { .. })));
    assert_eq!(fs::read_to_string(&lock).unwrap(), "of somebody");
    fs::remove_file(&lock).unwrap();
    let ours = done.git.lock_users_index().unwrap();
    assert!(matches!(done.git.lock_users_index(), Err(GitError::Locked { .. })));
    drop(ours);
    assert!(done.is_unlocked());
}

#[test]
fn a_clean_checkout_has_what_git_has_and_nothing_else() {
    let repository = Repository::new();
    repository.write(".gitignore", "/ignored.txt\n");
    repository.write("dir/b.txt", "b\n");
    repository.write("ignored.txt", "here only\n");
    let first = repository.commit_all("more");
    let status = repository.short_status();
    let base = tempfile::tempdir().unwrap();
    let root = base.path().join("check out");
    let git = repository.git.elsewhere(&root, &base.path().join("index"));
    git.check_out_clean(&first).unwrap();
    let private = Private::inside(&root);
    private.make(&git, &repository.head(), &base.path().join("index")).unwrap();
    assert_eq!(git_in(&root, &["status", "--short", "--ignored"]), "");
    assert_eq!(fs::read_to_string(root.join("dir/b.txt")).unwrap(), "b\n");
    assert!(!root.join("ignored.txt").exists());

    // Whatever became of it, the next one is clean.
    fs::remove_dir_all(root.join("dir")).unwrap();
    fs::write(root.join("dir"), "a file").unwrap();
    fs::write(root.join("ignored.txt"), "left").unwrap();
    fs::write(root.join("a.txt"), "changed").unwrap();
    git_in(&root, &["config", "core.fsmonitor", "touch pwned; false"]);
    repository.run(&["rm", "-q", "dir/b.txt"]);
    repository.write("c.txt", "c\n");
    let second = repository.commit_all("less");
    git.check_out_clean(&second).unwrap();
    private.make(&git, &repository.head(), &base.path().join("index")).unwrap();
    assert_eq!(git_in(&root, &["status", "--short", "--ignored"]), "");
    assert!(!root.join("dir").exists() && !root.join("pwned").exists());
    assert_eq!(fs::read_to_string(root.join("a.txt")).unwrap(), "one\ntwo\nthree\n");
    assert_eq!(status, "");
    assert_eq!(repository.short_status(), "");
}
