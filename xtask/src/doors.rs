//! Where files are opened. What lies where an agent can write may be a link, a pipe or a device; only
//! `wiggum_workspace::beneath` opens such files. Whoever opens one in another way says here why that is safe.

use std::collections::BTreeSet;
use std::fs;

use crate::tracked::tracked_files;

const WAYS: [&str; 9] = [
    "fs::read(",
    "fs::read_to_string(",
    "fs::write(",
    "fs::copy(",
    "File::open(",
    "File::create(",
    "File::create_new(",
    "File::options(",
    "OpenOptions::new(",
];

/// No agent of a user ever meets them.
const TEST_CRATES: [&str; 2] = ["crates/sim/", "crates/testkit/"];

const PRIVATE: &str = "the private state, where no agent can write";
const SYSTEM: &str = "files of the kernel";
const NEW: &str = "makes a file that must be new";
const LOOKED: &str = "looks what it is first, while no agent runs";

const ALLOWED: &[(&str, &str)] = &[
    ("agents/src/family.rs", LOOKED),
    ("agents/src/script.rs", "the scripted agent, which runs as an agent does"),
    ("api-agent/src/session.rs", "runs as an agent does, on its own record"),
    ("cli/src/commands/demo.rs", "a new directory"),
    ("cli/src/commands/serve.rs", NEW),
    ("cli/src/config/hostile.rs", "tests"),
    ("cli/src/dispatch/roster.rs", "opens a pipe on purpose, and does not wait"),
    ("cli/src/dispatch/watch.rs", "opens a pipe on purpose, and does not wait"),
    ("cli/src/init.rs", NEW),
    ("cli/src/listen.rs", PRIVATE),
    ("cli/src/started.rs", PRIVATE),
    ("engine/src/checkout.rs", PRIVATE),
    ("engine/src/copies.rs", LOOKED),
    ("engine/src/desk/launch.rs", PRIVATE),
    ("engine/src/engine.rs", PRIVATE),
    ("engine/src/nudge.rs", "sent by whoever may write there"),
    ("engine/src/proposals.rs", PRIVATE),
    ("engine/src/reports.rs", "sent by an agent, into the folder it may write to"),
    ("engine/src/sandbox.rs", "makes what an agent's program would make, before the agent"),
    ("engine/src/status.rs", PRIVATE),
    ("engine/src/wake.rs", PRIVATE),
    ("engine/src/watchdog.rs", PRIVATE),
    ("engine/src/watched.rs", PRIVATE),
    ("notify/src/page.rs", PRIVATE),
    ("store/src/recording/read.rs", "a file that a person names"),
    ("store/src/recording/write.rs", "a file that a person names"),
    ("store/src/restore.rs", PRIVATE),
    ("store/src/store.rs", PRIVATE),
    ("store/src/transcript.rs", PRIVATE),
    ("vault/src/keeper/begun.rs", PRIVATE),
    ("vault/src/layout.rs", "a directory, to bring it to the disk"),
    ("web/src/session.rs", SYSTEM),
    ("workspace/src/beneath.rs", "the door itself"),
    ("workspace/src/crash.rs", "only in builds for tests"),
    ("workspace/src/git/locks.rs", SYSTEM),
    ("workspace/src/git/mod.rs", NEW),
    ("workspace/src/git/private.rs", "hooks, taken before the agent"),
    ("workspace/src/git/users_index.rs", NEW),
    ("workspace/src/git/work.rs", "the index, after the agent's git was put aside"),
    ("workspace/src/paths.rs", "new files beside the one that is replaced, and directories"),
    ("workspace/src/process/identity.rs", SYSTEM),
    ("workspace/src/process/linux.rs", SYSTEM),
    ("workspace/src/process/spawn.rs", SYSTEM),
    ("workspace/src/process/watchdog.rs", PRIVATE),
    ("workspace/src/sandbox/landlock.rs", SYSTEM),
];

pub(crate) fn check() -> Result<String, String> {
    let mut unused: BTreeSet<&str> = ALLOWED.iter().map(|(path, _)| *path).collect();
    let mut problems = Vec::new();
    let mut looked_at = 0;
    for path in tracked_files()? {
        let Some(inner) = path.strip_prefix("crates/").filter(|inner| is_ours(&path, inner)) else {
            continue;
        };
        // What was deleted just now opens nothing.
        let Ok(text) = fs::read_to_string(&path) else { continue };
        looked_at += 1;
        let opened = opened(&text);
        if unused.remove(inner) && opened.is_empty() {
            problems.push(format!("{path} opens no file any more: take it off the list"));
        }
        if ALLOWED.iter().all(|(allowed, _)| *allowed != inner) {
            problems.extend(opened.iter().map(|(line, text)| {
                format!("{path}:{line}: open it through wiggum_workspace::beneath: {text}")
            }));
        }
    }
    problems.extend(unused.iter().map(|path| format!("crates/{path} is not there: take it off the list")));
    match problems.len() {
        0 => Ok(format!("{looked_at} files, {} of them open files by themselves", ALLOWED.len())),
        _ => Err(problems.join("\n")),
    }
}

fn is_ours(path: &str, inner: &str) -> bool {
    let is_test = path.ends_with("/tests.rs") || path.contains("/tests/");
    let is_code = inner.contains("/src/") && path.ends_with(".rs");
    is_code && !is_test && !TEST_CRATES.iter().any(|prefix| path.starts_with(prefix))
}

/// The lines on which files are opened, without tests, which come last, and comments.
fn opened(text: &str) -> Vec<(usize, &str)> {
    let tests = text.match_indices("\n#[cfg(").find(|(at, _)| begins_tests(&text[at + 1..]));
    let code = text[..tests.map_or(text.len(), |(at, _)| at)].lines().map(str::trim).zip(1..);
    let opens = |line: &str| WAYS.iter().any(|way| line.contains(way));
    code.filter(|(line, _)| !line.starts_with("//") && opens(line))
        .map(|(line, number)| (number, line))
        .collect()
}

/// Does this attribute stand before a module of tests that is written out here?
fn begins_tests(text: &str) -> bool {
    let mut lines = text.lines();
    let is_test = lines.next().is_some_and(|line| line.contains("test"));
    is_test && lines.next().is_some_and(|line| line.starts_with("mod ") && line.ends_with('{'))
}

#[cfg(test)]
mod tests {
    use super::{is_ours, opened};

    #[test]
    fn files_opened_by_code_are_found() {
        let text = "#[cfg(test)]\nmod other;\n// fs::read(x)\nlet a = std::fs::read(path);\n\n\
            #[cfg(all(test, unix))]\nmod tests {\nFile::open(p)\n";
        assert_eq!(opened(text), [(4, "let a = std::fs::read(path);")]);
    }

    #[test]
    fn only_what_ends_up_in_the_program_counts() {
        let ours = |path: &str| is_ours(path, path.strip_prefix("crates/").unwrap());
        assert!(ours("crates/engine/src/git/mod.rs"));
        for other in ["crates/engine/tests/a.rs", "crates/engine/src/a/tests.rs", "crates/sim/src/lib.rs"] {
            assert!(!ours(other), "{other}");
        }
    }
}
