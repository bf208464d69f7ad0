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

/// The agent, the file with its hooks, and the file with its settings.
const HOSTS: [(&str, &str, &str); 2] = [
    ("claude", ".claude/skills/wiggum/hooks/hooks.json", ".claude/settings.json"),
    ("codex", ".codex/hooks.json", ".codex/hooks.json"),
];

#[test]
fn what_is_installed_comes_out_again_to_the_byte() {
    for (host, hooks, file) in HOSTS {
        for settings in SETTINGS {
            let sandbox = Sandbox::new();
            if let Some(settings) = settings {
                sandbox.write(file, settings);
            }
            let before = files(&sandbox.root);
            sandbox.wiggum(&["install", host, "--project"]).exits(0).says(hooks);
            let stop = |command: &String| command == "wiggum hook stop || exit 0";
            assert!(commands(&sandbox, hooks).iter().any(stop), "{:?}", commands(&sandbox, hooks));
            let installed = files(&sandbox.root);
            sandbox.wiggum(&["install", host, "--project"]).exits(0).says("is connected already");
            assert_eq!(files(&sandbox.root), installed, "{host} {settings:?}");
            sandbox.wiggum(&["uninstall", host, "--project"]).exits(0).says(hooks);
            assert_eq!(files(&sandbox.root), before, "{host} {settings:?}");
            sandbox.wiggum(&["uninstall", host, "--project"]).exits(0).says("was not connected");
            assert_eq!(files(&sandbox.root), before, "{host} {settings:?}");
        }
    }
}

#[test]
fn settings_of_claude_code_are_left_alone() {
    for settings in ["{ // mine\n}", "{\"hooks\": []}", "{}"] {
        let sandbox = Sandbox::new();
        sandbox.write(".claude/settings.json", settings);
        sandbox.wiggum(&["install", "claude", "--project"]).exits(0).never_says("settings.json");
        assert_eq!(sandbox.read(".claude/settings.json"), settings);
        sandbox.wiggum(&["uninstall", "claude", "--project"]).exits(0).never_says("settings.json");
        assert_eq!(sandbox.read(".claude/settings.json"), settings);
    }
}

#[test]
fn connecting_an_agent_leaves_the_repository_as_it_is() {
    let sandbox = Sandbox::new();
    for (host, ..) in HOSTS {
        sandbox.wiggum(&["install", host]).exits(0);
    }
    sandbox.assert_clean();
}

#[test]
fn what_is_shared_has_no_path_of_this_machine() {
    for (host, ..) in HOSTS {
        let sandbox = Sandbox::new();
        let before = files(&sandbox.root);
        sandbox.wiggum(&["install", host, "--project"]).exits(0).says("commit these files");
        let program = std::path::Path::new(env!("CARGO_BIN_EXE_wiggum")).parent().unwrap().to_str().unwrap();
        for (file, content) in files(&sandbox.root) {
            if before.contains_key(&file) {
                continue;
            }
            let content = String::from_utf8(content).unwrap();
            for path in [program, sandbox.root.to_str().unwrap(), "/home", "/root"] {
                assert!(!content.contains(path), "{path} in {file}: {content}");
            }
        }
    }
}

/// What a shared hook does to whoever has these programs in their PATH: its exit code and output.
fn call(sandbox: &Sandbox, command: &str, path: &str) -> (Option<i32>, String) {
    let mut shell = sandbox.command("/bin/sh");
    let output = shell.env("PATH", path).args(["-c", command]).output().unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn a_shared_hook_hinders_nobody_who_has_no_wiggum_or_another_one() {
    for (host, hooks, _) in HOSTS {
        let sandbox = Sandbox::new();
        sandbox.wiggum(&["install", host, "--project"]).exits(0);
        let bin = sandbox.base().join("bin");
        fs::create_dir_all(&bin).unwrap();
        let path = format!("{}:/usr/bin:/bin", bin.display());
        for command in commands(&sandbox, hooks) {
            assert_eq!(call(&sandbox, &command, &path), (Some(0), String::new()), "{command}");
        }
        // With this exit code agents are sent back for ever.
        let other = bin.join("wiggum");
        fs::write(&other, "#!/bin/sh\necho unknown command: hook >&2\nexit 2\n").unwrap();
        fs::set_permissions(&other, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        for command in commands(&sandbox, hooks) {
            assert_eq!(call(&sandbox, &command, &path), (Some(0), String::new()), "{command}");
        }
        // The honest twin is heard.
        fs::remove_file(&other).unwrap();
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_wiggum"), &other).unwrap();
        for command in commands(&sandbox, hooks) {
            let (code, said) = call(&sandbox, &command, &path);
            assert_eq!(code, Some(0));
            assert!(said.contains("wiggum: the loop is not in force"), "{command}: {said}");
        }
    }
}

#[test]
fn what_an_earlier_version_put_into_the_settings_is_taken_out() {
    let sandbox = Sandbox::new();
    let mine = "{ \"type\": \"command\", \"command\": \"mine\" }";
    let old = format!(
        "{{ \"hooks\": {{ \"Stop\": [{{ \"hooks\": [{mine}, {{ \"type\": \"command\", \"command\": \"'/a b/wiggum' hook stop\" }}] }}] }} }}\n"
    );
    sandbox.write(".claude/settings.json", &old);
    sandbox.wiggum(&["install", "claude"]).exits(0).says("this repository has its own");
    assert_eq!(sandbox.read(".claude/settings.json"), old);
    sandbox.wiggum(&["install", "claude", "--project"]).exits(0).says(".claude/settings.json");
    let left = format!("{{ \"hooks\": {{ \"Stop\": [{{ \"hooks\": [{mine}] }}] }} }}\n");
    assert_eq!(sandbox.read(".claude/settings.json"), left);
    sandbox.wiggum(&["uninstall", "claude"]).exits(0).says("wiggum uninstall claude --project");
    sandbox.wiggum(&["uninstall", "claude", "--project"]).exits(0).never_says("still there");
}

#[test]
fn what_the_user_changed_meanwhile_stays() {
    let sandbox = Sandbox::new();
    sandbox.write(".codex/hooks.json", "{}");
    sandbox.wiggum(&["install", "codex", "--project"]).exits(0);
    let changed = sandbox.read(".codex/hooks.json").replacen('{', "{ \"other\": 1,", 1);
    sandbox.write(".codex/hooks.json", &changed);
    sandbox.write(".agents/skills/ralph-loop/mine.md", "mine");
    sandbox.wiggum(&["uninstall", "codex", "--project"]).exits(0);
    let settings: Value = serde_json::from_str(&sandbox.read(".codex/hooks.json")).unwrap();
    assert_eq!(settings, serde_json::json!({ "other": 1 }));
    let names: Vec<String> = files(&sandbox.root.join(".agents")).into_keys().collect();
    assert_eq!(names.len(), 1, "{names:?}");
}

#[test]
fn nothing_is_written_where_something_is_in_the_way() {
    let sandbox = Sandbox::new();
    for (host, file, text, words) in [
        ("codex", ".codex/hooks.json", "{ // mine\n}", "not valid JSON"),
        ("codex", ".codex/hooks.json", "{\"hooks\": []}", "`hooks` in it is an array"),
        ("claude", ".claude/commands/ralph-loop.md", "my own", "is not ours"),
        ("claude", ".claude/skills/wiggum/SKILL.md", "my own", ".claude/skills/wiggum is not ours"),
    ] {
        sandbox.write(file, text);
        let before = files(&sandbox.root);
        sandbox
            .wiggum(&["install", host, "--project"])
            .complains(2, &[words, "hint:", "nothing was changed"]);
        assert_eq!(files(&sandbox.root), before);
        fs::remove_file(sandbox.root.join(file)).unwrap();
    }
    sandbox.write(".claude/commands/ralph-loop.md", "my own");
    sandbox.wiggum(&["uninstall", "claude", "--project"]).exits(0);
    assert_eq!(sandbox.read(".claude/commands/ralph-loop.md"), "my own");
}

#[test]
fn by_default_it_is_for_the_user_in_the_agents_home() {
    let mut sandbox = Sandbox::new();
    sandbox.wiggum(&["install", "claude"]).exits(0);
    sandbox.wiggum(&["install", "codex", "--user"]).exits(0).says("trusted");
    for file in [
        ".claude/skills/wiggum/.claude-plugin/plugin.json",
        ".claude/skills/wiggum/hooks/hooks.json",
        ".claude/skills/wiggum/commands/ralph-loop.md",
        ".claude/commands/ralph-loop.md",
        ".codex/hooks.json",
        ".codex/skills/ralph-loop/SKILL.md",
    ] {
        assert!(sandbox.base().join("home").join(file).exists(), "{file}");
    }
    sandbox.wiggum(&["uninstall", "claude", "--user"]).exits(0);
    sandbox.wiggum(&["uninstall", "codex"]).exits(0);
    assert!(files(&sandbox.base().join("home")).is_empty());

    let other = sandbox.base().join("other").display().to_string();
    sandbox.env("CLAUDE_CONFIG_DIR", &other);
    sandbox.wiggum(&["install", "claude"]).exits(0);
    assert!(sandbox.base().join("other/skills/wiggum/hooks/hooks.json").exists());
    sandbox.assert_clean();
    sandbox.wiggum(&["install", "claude", "--user", "--project"]).exits(2);
}

#[test]
fn another_path_of_this_program_replaces_the_first() {
    let mut sandbox = Sandbox::new();
    let home = sandbox.root.join(".home").display().to_string();
    sandbox.env("CODEX_HOME", &home);
    sandbox.wiggum(&["install", "codex"]).exits(0);
    let first = commands(&sandbox, ".home/hooks.json");
    let moved = sandbox.base().join("it's here/wiggum");
    fs::create_dir_all(moved.parent().unwrap()).unwrap();
    fs::copy(env!("CARGO_BIN_EXE_wiggum"), &moved).unwrap();
    let status = sandbox
        .command(moved.to_str().unwrap())
        .current_dir(&sandbox.root)
        .args(["install", "codex"])
        .output();
    assert!(status.unwrap().status.success());
    let second = commands(&sandbox, ".home/hooks.json");
    assert_eq!(first.len(), second.len());
    // The shell finds it whatever is in its path.
    let stop = second.iter().find(|command| command.contains(" hook stop ")).unwrap();
    let (code, said) = call(&sandbox, stop, "/nowhere");
    assert!(code == Some(0) && said.contains("not in force"), "{stop}: {said}");
    sandbox.wiggum(&["uninstall", "codex"]).exits(0);
    assert!(!sandbox.exists(".home"));
}
