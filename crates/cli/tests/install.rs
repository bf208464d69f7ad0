//! `wiggum install` and `uninstall`: what is put into an agent's settings comes out again, and nothing
//! of the user's is touched.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may fail here")]

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;
use support::Sandbox;

/// Every file below a directory with its content.
fn files(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![directory.to_owned()];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            if entry.file_type().unwrap().is_dir() {
                waiting.push(entry.path());
            } else {
                found.insert(entry.path().display().to_string(), fs::read(entry.path()).unwrap());
            }
        }
    }
    found
}

fn commands(sandbox: &Sandbox, file: &str) -> Vec<String> {
    let settings: Value = serde_json::from_str(&sandbox.read(file)).unwrap();
    let events = settings["hooks"].as_object().unwrap().values();
    let groups = events.flat_map(|event| event.as_array().unwrap());
    let hooks = groups.flat_map(|group| group["hooks"].as_array().unwrap());
    hooks.map(|hook| hook["command"].as_str().unwrap().to_owned()).collect()
}

const SETTINGS: [Option<&str>; 8] = [
    None,
    Some(""),
    Some("{}"),
    Some("{\n}\n"),
    Some("{\"hooks\": {}}\n"),
    Some("{ \"hooks\": { \"Stop\": [] }, \"model\": \"opus\" }"),
    Some("{\n\t\"model\": \"opus\"\n}\n"),
    Some(
        "{\n  \"hooks\": {\n    \"Stop\": [{ \"hooks\": [{ \"type\": \"command\", \"command\": \"mine\" }] }]\n  }\n}\n",
    ),
];

#[test]
fn what_is_installed_comes_out_again_to_the_byte() {
    for (host, file) in [("claude", ".claude/settings.json"), ("codex", ".codex/hooks.json")] {
        for settings in SETTINGS {
            let sandbox = Sandbox::new();
            if let Some(settings) = settings {
                sandbox.write(file, settings);
            }
            let before = files(&sandbox.root);
            sandbox.wiggum(&["install", host, "--project"]).exits(0).says(file);
            assert!(commands(&sandbox, file).iter().any(|command| command.ends_with(" hook stop")));
            let installed = files(&sandbox.root);
            sandbox.wiggum(&["install", host]).exits(0).says("is connected already");
            assert_eq!(files(&sandbox.root), installed, "{host} {settings:?}");
            sandbox.wiggum(&["uninstall", host]).exits(0).says(file);
            assert_eq!(files(&sandbox.root), before, "{host} {settings:?}");
            sandbox.wiggum(&["uninstall", host]).exits(0).says("was not connected");
            assert_eq!(files(&sandbox.root), before, "{host} {settings:?}");
        }
    }
}

#[test]
fn what_the_user_changed_meanwhile_stays() {
    let sandbox = Sandbox::new();
    sandbox.write(".claude/settings.json", "{}");
    sandbox.wiggum(&["install", "claude"]).exits(0);
    let changed = sandbox.read(".claude/settings.json").replacen('{', "{ \"model\": \"opus\",", 1);
    sandbox.write(".claude/settings.json", &changed);
    sandbox.write(".claude/commands/mine.md", "mine");
    sandbox.wiggum(&["uninstall", "claude"]).exits(0);
    let settings: Value = serde_json::from_str(&sandbox.read(".claude/settings.json")).unwrap();
    assert_eq!(settings, serde_json::json!({ "model": "opus" }));
    let names: Vec<String> = files(&sandbox.root.join(".claude")).into_keys().collect();
    assert_eq!(names.len(), 2, "{names:?}");
}

#[test]
fn nothing_is_written_where_something_is_in_the_way() {
    let sandbox = Sandbox::new();
    for (file, text, words) in [
        (".claude/settings.json", "{ // mine\n}", "not valid JSON"),
        (".claude/settings.json", "{\"hooks\": []}", "`hooks` in it is an array"),
        (".claude/commands/ralph-loop.md", "my own", "is not ours"),
    ] {
        sandbox.write(file, text);
        let before = files(&sandbox.root);
        sandbox.wiggum(&["install", "claude"]).complains(2, &[words, "hint:", "nothing was changed"]);
        assert_eq!(files(&sandbox.root), before);
        fs::remove_file(sandbox.root.join(file)).unwrap();
    }
    sandbox.write(".claude/commands/ralph-loop.md", "my own");
    sandbox.wiggum(&["uninstall", "claude"]).exits(0);
    assert_eq!(sandbox.read(".claude/commands/ralph-loop.md"), "my own");
}

#[test]
fn for_the_user_it_goes_into_the_agents_home() {
    let mut sandbox = Sandbox::new();
    sandbox.wiggum(&["install", "claude", "--user"]).exits(0);
    sandbox.wiggum(&["install", "codex", "--user"]).exits(0).says("trusted");
    for file in [
        ".claude/settings.json",
        ".claude/commands/ralph-loop.md",
        ".codex/hooks.json",
        ".codex/skills/ralph-loop/SKILL.md",
    ] {
        assert!(sandbox.base().join("home").join(file).exists(), "{file}");
    }
    sandbox.wiggum(&["uninstall", "claude", "--user"]).exits(0);
    sandbox.wiggum(&["uninstall", "codex", "--user"]).exits(0);
    assert!(files(&sandbox.base().join("home")).is_empty());

    let other = sandbox.base().join("other").display().to_string();
    sandbox.env("CLAUDE_CONFIG_DIR", &other);
    sandbox.wiggum(&["install", "claude", "--user"]).exits(0);
    assert!(sandbox.base().join("other/settings.json").exists());
    sandbox.assert_clean();
    sandbox.wiggum(&["install", "claude", "--user", "--project"]).exits(2);
}

#[test]
fn another_path_of_this_program_replaces_the_first() {
    let sandbox = Sandbox::new();
    sandbox.wiggum(&["install", "claude"]).exits(0);
    let first = commands(&sandbox, ".claude/settings.json");
    let moved = sandbox.base().join("it's here/wiggum");
    fs::create_dir_all(moved.parent().unwrap()).unwrap();
    fs::copy(env!("CARGO_BIN_EXE_wiggum"), &moved).unwrap();
    let status = sandbox
        .command(moved.to_str().unwrap())
        .current_dir(&sandbox.root)
        .args(["install", "claude"])
        .output();
    assert!(status.unwrap().status.success());
    let second = commands(&sandbox, ".claude/settings.json");
    assert_eq!(first.len(), second.len());
    // The shell finds it whatever is in its path.
    let stop = second.iter().find(|command| command.ends_with(" hook stop")).unwrap();
    let output = sandbox.command("sh").args(["-c", stop]).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    sandbox.wiggum(&["uninstall", "claude"]).exits(0);
    assert!(!sandbox.exists(".claude"));
}
