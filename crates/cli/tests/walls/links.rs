//! Nothing is written through what an agent puts in the place of a file or folder: links to what is not its own, and
//! pipes, at which whoever opens them waits for ever.
//!
//! The control of every attack is a plain write to the same name, which reaches what the link leads to.

use std::fs;
use std::os::unix::fs::FileTypeExt;

use super::sandboxes;
use super::support::Sandbox;

/// Files that the engine, or git on its behalf, reads or writes where agents work.
const FILES: &[&str] = &[
    "PRD.json",
    ".PRD.json.wiggum-tmp",
    ".gitignore",
    ".gitattributes",
    "wiggum.toml",
    "PROMPT.md",
    ".mcp.json",
    ".wiggum/store",
    ".wiggum/backlog.lock",
    ".wiggum/loops/LOOP/status.json",
    ".wiggum/loops/LOOP/.status.json.wiggum-tmp",
    ".wiggum/loops/LOOP/report.md",
    ".wiggum/loops/LOOP/report.html",
    ".wiggum/loops/LOOP/report.json",
    ".git/COMMIT_EDITMSG",
    ".git/index",
    ".git/index.lock",
    ".git/packed-refs",
    ".git/HEAD",
    ".git/refs/heads/main",
    ".git/logs/HEAD",
    ".git/logs/refs/heads/main",
];

/// Folders in which it writes.
const FOLDERS: &[&str] =
    &[".wiggum", ".wiggum/loops", ".wiggum/loops/LOOP", ".git/logs", ".git/logs/refs/heads"];

#[derive(Clone, Copy, Debug)]
enum Plant {
    /// A link to a file of the user's.
    Link,
    /// A link to a folder of the user's, with files that have the names that are written.
    Folder,
    Pipe,
}

fn plants() -> impl Iterator<Item = (&'static str, Plant)> {
    let links = FILES.iter().map(|name| (*name, Plant::Link));
    let pipes = FILES.iter().map(|name| (*name, Plant::Pipe));
    let folders = FOLDERS.iter().map(|name| (*name, Plant::Folder));
    links.chain(pipes).chain(folders)
}

fn plant(name: &str, plant: Plant) -> String {
    let name = name.replace("LOOP", "$WIGGUM_LOOP_ID");
    let put = match plant {
        Plant::Link => format!("ln -s \"$OUT/victim\" \"{name}\""),
        Plant::Folder => format!("ln -s \"$OUT/folder\" \"{name}\""),
        Plant::Pipe => format!("mkfifo \"{name}\""),
    };
    format!("mkdir -p \"$(dirname \"{name}\")\"; rm -rf \"{name}\"; {put}")
}

const THEIRS: &str = "theirs\n";

fn sandbox() -> Sandbox {
    let mut sandbox = Sandbox::walled(&["A", "B"]);
    sandbox.write("PROMPT.md", "Work on the task.\n");
    sandbox.commit_all("prompt");
    let out = sandbox.base().join("out");
    fs::create_dir_all(out.join("folder")).unwrap();
    let written = FILES.iter().chain(FOLDERS).map(|name| name.rsplit('/').next().unwrap());
    for name in written.filter(|name| *name != "LOOP") {
        fs::write(out.join("folder").join(name), THEIRS).unwrap();
    }
    fs::write(out.join("victim"), THEIRS).unwrap();
    sandbox.env("OUT", out.to_str().unwrap());
    sandbox
}

/// What is not any more as the user left it.
fn spoiled(sandbox: &Sandbox) -> Vec<String> {
    let out = sandbox.base().join("out");
    let count = fs::read_dir(out.join("folder")).unwrap().count();
    let entries = fs::read_dir(out.join("folder")).unwrap().map(|entry| entry.unwrap().path());
    let mut spoiled: Vec<String> = entries
        .chain([out.join("victim")])
        .filter(|path| !path.is_file() || fs::read_to_string(path).ok().as_deref() != Some(THEIRS))
        .map(|path| path.display().to_string())
        .collect();
    let expected = FILES.len() + FOLDERS.len() - 1 - repeated();
    if count != expected {
        spoiled.push(format!("{count} files in the folder instead of {expected}"));
    }
    spoiled
}

/// Names that are written in two places.
fn repeated() -> usize {
    let mut names: Vec<&str> =
        FILES.iter().chain(FOLDERS).map(|name| name.rsplit('/').next().unwrap()).collect();
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    all - names.len()
}

#[track_caller]
fn all_fail(kind: &str) {
    if kind != "none" && !sandboxes().contains(&kind) {
        return;
    }
    let mut wrong = Vec::new();
    for (name, how) in plants() {
        let sandbox = sandbox();
        let args = ["--sandbox", kind, "--prompt", "PROMPT.md", "--verify", "true", "--baseline", "off"];
        let agent = format!("{} 2> /dev/null; echo x > \"$WIGGUM_TASK_ID.txt\"; claim", plant(name, how));
        // Each of them ends: the test would wait no longer than a minute. The second begins with what the first left.
        for _ in 0..2 {
            let run = sandbox.run(&agent, &[&args[..], &["--max-iterations", "3"]].concat());
            if run.code().is_none_or(|code| ![0, 1, 2, 3, 4, 5, 6].contains(&code)) {
                wrong.push(format!("{name} {how:?}: {run:?}"));
            }
            if sandbox.worked_on().is_empty() {
                wrong.push(format!("{name} {how:?}: the agent was not started: {run:?}"));
            }
        }
        drop(sandbox.wiggum(&["status"]));
        wrong.extend(spoiled(&sandbox).into_iter().map(|what| format!("{name} {how:?}: {what}")));
    }
    assert!(wrong.is_empty(), "{} successes under {kind}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn nothing_is_written_through_links_under_landlock() {
    all_fail("landlock");
}

#[test]
fn nothing_is_written_through_links_under_bwrap() {
    all_fail("bwrap");
}

#[test]
fn nothing_is_written_through_links_without_a_sandbox() {
    all_fail("none");
}

/// The control.
#[test]
fn a_plain_write_would_go_through() {
    for (name, how) in plants() {
        let sandbox = sandbox();
        let script = plant(name, how);
        let mut shell = sandbox.command("sh");
        let done =
            shell.args(["-c", &script]).env("WIGGUM_LOOP_ID", "LOOP").current_dir(&sandbox.root).status();
        assert!(done.unwrap().success(), "{name}");
        let place = sandbox.root.join(name);
        match how {
            Plant::Link => fs::write(place, "ours").unwrap(),
            Plant::Folder => fs::write(place.join("status.json"), "ours").unwrap(),
            Plant::Pipe => {
                assert!(fs::symlink_metadata(place).unwrap().file_type().is_fifo(), "{name}");
                continue;
            }
        }
        assert_eq!(spoiled(&sandbox).len(), 1, "{name} {how:?}");
    }
}

/// The honest twin: what the user made a link of is written where it leads to.
#[test]
fn links_of_the_user_are_followed() {
    for kind in sandboxes().into_iter().chain(["none"]) {
        let sandbox = sandbox();
        let kept = sandbox.base().join("out/kept.json");
        fs::rename(sandbox.root.join("PRD.json"), &kept).unwrap();
        std::os::unix::fs::symlink("../out/kept.json", sandbox.root.join("PRD.json")).unwrap();
        sandbox.commit_all("a link");
        let agent = "echo x > \"$WIGGUM_TASK_ID.txt\"; claim";
        sandbox.run(agent, &["--sandbox", kind, "--verify", "true", "--baseline", "off"]).exits(0);
        assert_eq!(fs::read_to_string(kept).unwrap().matches("\"passes\": true").count(), 2, "{kind}");
        assert_eq!(spoiled(&sandbox), Vec::<String>::new(), "{kind}");
    }
}
