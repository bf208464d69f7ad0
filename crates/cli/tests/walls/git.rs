//! The user's repository: nothing that an agent wrote is obeyed by our git, and what is not its work stays as it was.
//!
//! The attacks are in `git.txt`: what a person has set up before, and what the agent does. An attack
//! succeeds when `$OUT/pwned` exists, which no agent can write, or when the repository is not as it was.

use std::fs;
use std::path::Path;

use super::sandboxes;
use super::support::Sandbox;

struct Attack {
    name: &'static str,
    before: &'static str,
    agent: &'static str,
}

fn attacks() -> Vec<Attack> {
    let mut found = Vec::new();
    for section in include_str!("git.txt").split("\n=== ").skip(1) {
        let (name, body) = section.split_once('\n').unwrap();
        let (before, agent) = body.split_once("--- agent\n").unwrap();
        let before = before.strip_prefix("--- before\n").unwrap_or(before);
        found.push(Attack { name, before, agent });
    }
    found
}

impl Attack {
    fn sandbox(&self) -> Sandbox {
        let mut sandbox = Sandbox::walled(&["A"]);
        let out = sandbox.base().join("out");
        fs::create_dir(&out).unwrap();
        sandbox.env("OUT", out.to_str().unwrap());
        shell(&sandbox, BEGIN);
        shell(&sandbox, self.before);
        sandbox
    }

    /// What came of it where nothing but plain git looks at what it left.
    fn control(&self) -> Vec<String> {
        let sandbox = self.sandbox();
        let before = repository(&sandbox);
        shell(&sandbox, self.agent);
        for words in
            [&["status"][..], &["add", "-A"], &["status"], &["commit", "-q", "-m", "x"], &["diff", "HEAD~1"]]
        {
            drop(sandbox.command("git").args(words).current_dir(&sandbox.root).output().unwrap());
        }
        successes(&sandbox, &before)
    }

    fn behind_wall(&self, kind: &str) -> Vec<String> {
        let sandbox = self.sandbox();
        let before = repository(&sandbox);
        let agent = format!("({}) > /dev/null 2>&1\necho work > work.txt\nclaim", self.agent);
        let run = sandbox
            .run(&agent, &["--sandbox", kind, "--max-iterations", "2", "--verify", "test -e PRD.json"]);
        let mut found = successes(&sandbox, &before);
        if !sandbox.has_store() || sandbox.worked_on().is_empty() {
            found.push(format!("the agent was not started: {}", run.stdout));
        }
        found
    }
}

/// A repository with some history, as people have it.
const BEGIN: &str = "
    git config user.name P && git config user.email p@example.com
    echo one > file.txt && git add -A && git commit -q -m one
    git branch other && git tag v1
    echo two > file.txt && git commit -q -am two
    echo stashed > file.txt && git stash -q
    printf '/.wiggum/*\\n!/.wiggum/plans/\\n!/.wiggum/*-findings.json\\n!/.wiggum/artefacts.json\\n' >> .git/info/exclude
";

fn shell(sandbox: &Sandbox, script: &str) {
    let output = sandbox.command("sh").args(["-c", script]).current_dir(&sandbox.root).output().unwrap();
    assert!(output.status.success(), "{script}\n{}", String::from_utf8_lossy(&output.stderr));
}

/// What of a repository is not the agent's to change.
fn repository(sandbox: &Sandbox) -> Vec<String> {
    let mut all = Vec::new();
    let ask = |words: &[&str]| {
        let mut git = sandbox.command("git");
        git.args(["-c", "core.fsmonitor=false"]).args(words).current_dir(&sandbox.root);
        let output = git.env("GIT_NO_REPLACE_OBJECTS", "1").output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    // Entries of the index that hide what is in the files.
    let entries = ask(&["ls-files", "-v"]);
    all.extend(entries.lines().filter(|line| !line.starts_with("H ")).map(|line| format!("index {line}")));
    let refs = ask(&["for-each-ref", "--format=%(refname) %(objectname)"]);
    let not_ours = |line: &&str| !line.starts_with("refs/heads/main ") && !line.starts_with("refs/wiggum");
    all.extend(refs.lines().filter(not_ours).map(str::to_owned));
    all.extend(ask(&["stash", "list"]).lines().map(|line| format!("stash {line}")));
    all.push(format!("on {}", ask(&["symbolic-ref", "HEAD"]).trim()));
    collect(&sandbox.root.join(".git"), "", &mut all);
    all.sort();
    all
}

/// Files that git obeys.
fn collect(git_dir: &Path, below: &str, all: &mut Vec<String>) {
    let Ok(entries) = fs::read_dir(git_dir.join(below)) else { return };
    for entry in entries {
        let entry = entry.unwrap();
        let name = Path::new(below).join(entry.file_name()).to_str().unwrap().to_owned();
        if entry.file_type().unwrap().is_dir() {
            let is_obeyed = ["hooks", "info", "modules", "objects", "objects/info"].contains(&name.as_str());
            if is_obeyed
                || below.starts_with("modules")
                    && !name.ends_with("/objects")
                    && !name.ends_with("/refs")
                    && !name.ends_with("/logs")
            {
                collect(git_dir, &name, all);
            }
            continue;
        }
        let last = name.rsplit('/').next().unwrap();
        let is_obeyed = name.starts_with("hooks/")
            || name.starts_with("info/")
            || name.starts_with("objects/info/alternates")
            || ["config", "config.worktree", "commondir", "shallow", "gitdir"].contains(&last)
            || last.starts_with("pre-")
            || last.starts_with("post-");
        if is_obeyed && !name.ends_with(".sample") {
            let text = fs::read(entry.path()).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
            all.push(format!("{name}: {}", text.unwrap_or_default()));
        }
    }
}

fn successes(sandbox: &Sandbox, before: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    if sandbox.base().join("out/pwned").exists() {
        found.push("a program of the agent ran outside of its sandbox".to_owned());
    }
    let after = repository(sandbox);
    found.extend(before.iter().filter(|line| !after.contains(line)).map(|line| format!("gone: {line}")));
    // A branch of its own is the agent's.
    let came = after.iter().filter(|line| !before.contains(line) && !line.starts_with("refs/heads/mine "));
    found.extend(came.map(|line| format!("new: {line}")));
    found
}

#[track_caller]
fn all_fail(kind: &str) {
    if !sandboxes().contains(&kind) {
        return;
    }
    let of = |attack: &Attack| {
        attack
            .behind_wall(kind)
            .into_iter()
            .map(|what| format!("{}: {what}", attack.name))
            .collect::<Vec<_>>()
    };
    let wrong: Vec<String> = attacks().iter().flat_map(of).collect();
    assert!(wrong.is_empty(), "{} successes:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn attacks_fail_under_landlock() {
    all_fail("landlock");
}

#[test]
fn attacks_fail_under_bwrap() {
    all_fail("bwrap");
}

#[test]
fn attacks_succeed_where_there_is_no_wall() {
    let harmless: Vec<&str> =
        attacks().iter().filter(|attack| attack.control().is_empty()).map(|attack| attack.name).collect();
    assert!(harmless.is_empty(), "{harmless:?}");
}
